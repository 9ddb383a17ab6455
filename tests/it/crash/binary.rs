//! The `recollex` binary, killed at random moments of each verb that changes something: what was before, or what comes of
//! the verb, and whoever comes next goes on.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Instant;

use serde_json::json;

use super::workspace::copy;
use super::{Random, report, rounds};
use crate::home::Home;
use crate::support::snapshot;

/// How often each verb is killed.
const KILLS: usize = 5;

/// What belongs to memory.
pub(super) fn tree(root: &Path) -> Vec<(PathBuf, u32, Vec<u8>)> {
    let mut found = if root.exists() { snapshot(root) } else { Vec::new() };
    found.retain(|(path, ..)| !path.starts_with(".scriptorium/recollex") && !path.starts_with(".scriptorium-recollex"));
    // They come with the lock, before any commit, and go with nothing.
    found.retain(|(path, ..)| path != Path::new(".scriptorium") && path != Path::new(".scriptorium/write.lock"));
    // Directories that lost their last file are removed one after the other, once the commit is made: they say nothing.
    let files: Vec<PathBuf> =
        found.iter().map(|(path, ..)| path.clone()).filter(|path| !root.join(path).is_dir()).collect();
    found.retain(|(path, ..)| files.iter().any(|file| file.starts_with(path)));
    found
}

fn lines(thread: &str, from: usize) -> String {
    (from..from + 20)
        .map(|number| {
            let text = format!("{number}: four of the nine keel bolts are wasted");
            json!({"provider": "p", "thread": thread, "id": format!("m{number}"), "role": "user", "text": text})
        })
        .map(|turn| format!("{turn}\n"))
        .collect()
}

#[test]
fn killed_at_random_moments_it_did_all_or_nothing() {
    // A workspace with a history, and a backup of an older state.
    let home = Home::with_workspace();
    home.feed(&["archive"], lines("t", 0).as_bytes()).exits(0);
    home.run(&["backup", "backup.tar"]).exits(0);
    home.feed(&["archive"], (lines("t", 20) + &lines("u", 0)).as_bytes()).exits(0);
    home.feed(&["archive"], lines("v", 0).as_bytes()).exits(0);
    home.run(&["undo"]).exits(0);
    let revision = home.run(&["status", "--json"]).exits(0).json()["revision"].clone();
    let claim = json!({"op": "create_record", "content": "Bolts are wasted.", "time": "2026-01-02", "source_refs": ["p/t/m0"],
        "destination": {"topic_path": "topics/keel.md", "headings": ["Keel"], "position": "end"}});
    let request = json!({"base_revision": revision, "memory_changes": [claim]});
    std::fs::write(home.path().join("request.json"), request.to_string()).unwrap();
    let template = home.path().join("template");
    copy(&home.workspace(), &template);
    std::fs::write(home.path().join("turns.jsonl"), lines("t", 40) + &lines("w", 0)).unwrap();

    let verbs: [&[&str]; 7] = [
        &["archive", "turns.jsonl"],
        &["update", "request.json"],
        &["undo"],
        &["undo", "2"],
        &["undo", "--redo"],
        &["restore", "backup.tar", "--replace", "--yes", "--safety", "safety"],
        &["doctor", "--fix"],
    ];
    let reset = || {
        std::fs::remove_dir_all(home.workspace()).unwrap();
        copy(&template, &home.workspace());
        // Two backups of one second have one name, and no backup replaces another.
        let _ = std::fs::remove_dir_all(home.path().join("safety"));
        std::fs::create_dir(home.path().join("safety")).unwrap();
    };
    let mut random = Random(7);
    let (mut kills, mut old, mut new) = (0, 0, 0);
    for verb in verbs {
        reset();
        let mut states = vec![tree(&home.workspace())];
        if verb == ["undo", "2"] {
            // Two commits: the state between them is one, too.
            home.run(&["undo"]).exits(0);
            states.push(tree(&home.workspace()));
            reset();
        }
        let once = || {
            reset();
            let begun = Instant::now();
            home.run(verb).exits(0);
            begun.elapsed()
        };
        // The quickest of three: whoever sleeps longer than that kills nobody.
        let usual = once().min(once()).min(once());
        states.push(tree(&home.workspace()));
        for _ in 0..KILLS * rounds() {
            reset();
            let mut process = home.command(verb).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
            // Most of the time goes by before anything is written.
            std::thread::sleep(usual.mul_f64(0.2 + 0.8 * random.below(1_000) as f64 / 1_000.0));
            process.kill().unwrap();
            kills += usize::from(!process.wait().unwrap().success());
            let what = format!("{verb:?} killed");
            // A reader sees one state, and says nothing but that a commit waits to be completed.
            let verified = home.run(&["verify", "--json"]).json();
            let findings = verified["findings"].as_array().unwrap();
            assert!(findings.iter().all(|finding| finding["code"] == "journal-pending"), "{what}: {verified}");
            // And that is what is there once somebody has completed it.
            home.run(&["doctor", "--fix"]).exits(0);
            let now = tree(&home.workspace());
            let Some(state) = states.iter().position(|state| *state == now) else {
                let names = |tree: &[(PathBuf, u32, Vec<u8>)]| -> Vec<String> {
                    tree.iter()
                        .map(|(path, mode, bytes)| format!("{} {mode:o} {}", path.display(), bytes.len()))
                        .collect()
                };
                let known: Vec<_> = states.iter().map(|state| names(state)).collect();
                panic!("{what}: a state that never was: {:?}; known are {known:?}", names(&now));
            };
            *if state == 0 { &mut old } else { &mut new } += 1;
            home.run(&["verify"]).exits(0);
            home.feed(&["archive"], lines("x", 0).as_bytes()).exits(0);
            home.run(&["undo"]).exits(0);
            assert!(tree(&home.workspace()) == now, "{what}, then archived and taken back");
        }
    }
    report(&format!("{kills} kills of recollex at random moments: {old} times as before, {new} times done"));
    assert!(kills > 5 && old > 0, "{kills} kills, {old} old, {new} new");
}
