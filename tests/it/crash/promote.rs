//! The `recollex` binary, killed while it vouches for a record: the mark in the archive and the line of the log are there
//! together or not at all, and a second attempt makes them one of each.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};

use super::archive::Home;
use super::{report, rounds, share};
use recollex_tests::trace::Stop;

/// Of all stops, one in this many is tried.
const EVERY: usize = 7;

const ID: &str = "p/t/m1";
const PROMOTE: [&str; 3] = ["promote", ID, "--yes"];

/// A home in whose workspace the record is pending, among others, and something was logged before.
fn pending() -> Home {
    let home = Home::new();
    assert_eq!(home.run(&["init"], "init").0, 0);
    let turn = |id: &str| json!({"thread": "t", "id": id, "role": "user", "text": id, "trust": "pending"});
    home.batch(&["m0", "m1", "m2"].map(|id| format!("{}\n", turn(id))).concat());
    assert_eq!(home.run(&["archive", "--provider", "p"], "archive").0, 0);
    assert_eq!(home.run(&["promote", "p/t/m0", "--yes"], "promote").0, 0);
    home
}

/// Whether the record is trusted, as everybody sees it, and how often that was logged.
fn state(home: &Home, what: &str) -> (bool, usize) {
    let (_, document) = home.run(&["get", ID], what);
    let trust = document["record"]["trust"].as_str().unwrap_or_else(|| panic!("{what}: {document}")).to_owned();
    let log = fs::read_to_string(home.workspace().join(".scriptorium/trust-audit.jsonl")).unwrap();
    let lines: Vec<Value> = log
        .strip_suffix('\n')
        .unwrap_or_else(|| panic!("{what}: torn: {log}"))
        .split('\n')
        .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{what}: {error} in {line}")))
        .collect();
    assert_eq!(lines[0]["source_id"], "p/t/m0", "{what}");
    (trust == "trusted", lines.iter().filter(|line| line["source_id"] == ID).count())
}

/// The archives by what is in them, once another writer has completed what was interrupted.
fn completed(home: &Home, what: &str) -> BTreeMap<PathBuf, Vec<u8>> {
    let (code, changed) = home.run(&["audience", "narrow", "topics/other"], what);
    assert_eq!((code, &changed["changed"]), (0, &json!(true)), "{what}");
    home.sources()
}

#[test]
fn killed_anywhere_it_marked_and_logged_or_neither() {
    let before = pending();
    assert_eq!(state(&before, "before"), (false, 0));
    let unmarked = before.sources();

    // Uninterrupted.
    let home = Home::new();
    home.like(&before);
    let mut traced = home.locked(&PROMOTE);
    let mut count = 0;
    let code = loop {
        match traced.step() {
            Stop::Over(code) => break code,
            _ => count += 1,
        }
    };
    assert_eq!((code, state(&home, "uninterrupted")), (Some(0), (true, 1)));
    let marked = home.sources();
    assert_ne!(marked, unmarked);

    let homes: Vec<_> = (0..std::thread::available_parallelism().map_or(1, usize::from)).map(|_| Home::new()).collect();
    let stops: Vec<usize> = (0..count).step_by((EVERY / rounds()).max(1)).collect();
    let (neither, both) = (AtomicUsize::new(0), AtomicUsize::new(0));
    share(&stops, |thread, &stop| {
        let what = format!("killed at stop {stop} behind the lock");
        let home = &homes[thread];
        home.like(&before);
        let mut traced = home.locked(&PROMOTE);
        for _ in 0..=stop {
            if matches!(traced.step(), Stop::Over(_)) {
                break;
            }
        }
        let said = traced.kill();
        drop(traced);
        // Before anybody writes, a reader sees the mark as it will be.
        let (_, document) = home.run(&["get", ID], &what);
        let is_marked = document["record"]["trust"] == "trusted";
        assert!(is_marked || said.is_empty(), "{what}, when it had said {said}");
        assert!(completed(home, &what) == *if is_marked { &marked } else { &unmarked }, "{what}: the archive");
        assert_eq!(state(home, &what), (is_marked, usize::from(is_marked)), "{what}");
        if is_marked { &both } else { &neither }.fetch_add(1, Ordering::Relaxed);

        let (code, again) = home.run(&PROMOTE, &what);
        assert_eq!((code, &again["records"][0]["promoted"]), (0, &json!(!is_marked)), "{what}");
        assert_eq!(state(home, &what), (true, 1), "{what}, then once more");
        assert!(home.sources() == marked, "{what}, then once more: the archive");
    });
    let (neither, both) = (neither.into_inner(), both.into_inner());
    report(&format!(
        "recollex promote killed at {} of {count} stops: {neither} times neither, {both} times both",
        stops.len()
    ));
    assert!(neither > 5 && both > 5, "{neither} and {both}");
}
