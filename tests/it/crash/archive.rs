//! The `recollex` binary, killed while it archives: from the moment it has the lock to its exit.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};

use nix::libc;
use serde_json::{Value, json};

use super::workspace::{child, copy, scratch};
use super::{report, rounds, share};
use crate::support::{cache, recollex};
use recollex_tests::trace::{self, Stop, Traced};

/// Of all stops, one in this many is tried.
const EVERY: usize = 7;

/// Turns before, and turns in the batch that is interrupted.
const BEFORE: u64 = 2;
const BATCH: u64 = 4;

/// What archives the batch.
const ARCHIVE: [&str; 3] = ["archive", "--provider", "p"];

/// A home with a workspace and the batch to archive.
pub(super) struct Home {
    directory: tempfile::TempDir,
}

impl Home {
    pub(super) fn new() -> Self {
        let home = Self { directory: scratch() };
        home.batch(&lines(&[("t", "m2"), ("t", "m3"), ("new", "n1"), ("t", "m4")]));
        home
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub(super) fn workspace(&self) -> PathBuf {
        self.path("memory")
    }

    /// What there is to archive.
    pub(super) fn batch(&self, lines: &str) {
        fs::write(self.path("batch.jsonl"), lines).unwrap();
    }

    /// The same workspace as another home has.
    pub(super) fn like(&self, other: &Self) {
        if self.workspace().exists() {
            fs::remove_dir_all(self.workspace()).unwrap();
        }
        copy(&other.workspace(), &self.workspace());
    }

    fn prepare(&self, command: &mut Command) {
        for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("RECOLLEX_")) {
            command.env_remove(name);
        }
        command
            .env("HOME", self.directory.path())
            .env("XDG_CONFIG_HOME", self.path("config"))
            .env("XDG_DATA_HOME", self.path("data"))
            .env("XDG_STATE_HOME", self.path("state"))
            .env("XDG_CACHE_HOME", cache())
            .env("RECOLLEX_WORKSPACE", self.workspace())
            .stdin(File::open(self.path("batch.jsonl")).unwrap())
            .stderr(Stdio::null())
            .current_dir(self.directory.path());
    }

    /// Runs to the end, and answers with the exit code and the document.
    #[track_caller]
    pub(super) fn run(&self, arguments: &[&str], what: &str) -> (i32, Value) {
        let mut command = Command::new(recollex());
        self.prepare(&mut command);
        let output = command.args(arguments).arg("--json").output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        let document = serde_json::from_str(&said).unwrap_or_else(|error| panic!("{what}: {error} in {said}"));
        (output.status.code().unwrap(), document)
    }

    /// The turns that a clean workspace holds.
    #[track_caller]
    fn turns(&self, what: &str) -> u64 {
        let (code, document) = self.run(&["verify"], what);
        assert_eq!((code, &document["health"]), (0, &json!("ok")), "{what}: {document}");
        document["counts"]["frames"].as_u64().unwrap()
    }

    /// The turns that an interrupted workspace holds. That a commit waits to be completed may be found, and nothing else.
    #[track_caller]
    fn turns_after_death(&self, what: &str) -> u64 {
        let (_, document) = self.run(&["verify"], what);
        let findings = document["findings"].as_array().unwrap();
        assert!(findings.iter().all(|finding| finding["code"] == "journal-pending"), "{what}: {document}");
        let turns = document["counts"]["frames"].as_u64().unwrap();
        assert!(findings.is_empty() || turns == BEFORE + BATCH, "{what}: {document}");
        turns
    }

    /// Runs, traced, until it has the lock.
    pub(super) fn locked(&self, arguments: &[&str]) -> Traced {
        let mut command = child();
        self.prepare(&mut command);
        command.args(["traced", "exec"]).arg(recollex()).args(arguments).arg("--json");
        let mut traced = Traced::start(&mut command);
        let mut calls = BTreeMap::new();
        loop {
            match traced.step() {
                Stop::Enter(thread) => {
                    calls.insert(thread, trace::call(thread));
                }
                Stop::Leave(thread) => {
                    if let Some(call) = calls.remove(&thread)
                        && call.number == libc::SYS_flock
                        && trace::result(thread) == 0
                    {
                        let file = fs::read_link(format!("/proc/{thread}/fd/{}", call.arguments[0])).unwrap();
                        if file.ends_with("write.lock") {
                            return traced;
                        }
                    }
                }
                Stop::Over(code) => panic!("it ended, with {code:?}, and never had the lock"),
            }
        }
    }

    /// The archives, by what is in them.
    pub(super) fn sources(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        let mut found = BTreeMap::new();
        crate::support::walk(&self.workspace().join("sources"), &mut |path: &Path| {
            if path.is_file() {
                found.insert(path.strip_prefix(self.workspace()).unwrap().to_owned(), fs::read(path).unwrap());
            }
            true
        });
        found
    }
}

fn lines(turns: &[(&str, &str)]) -> String {
    turns
        .iter()
        .map(|(thread, id)| {
            let text = format!("what {id} of {thread} said");
            json!({"thread": thread, "id": id, "role": "user", "text": text, "time": "2026-01-02T03:04:05+00:00"})
        })
        .map(|turn| format!("{turn}\n"))
        .collect()
}

#[test]
fn killed_anywhere_it_archived_no_turn_of_a_batch_or_all() {
    let before = Home::new();
    before.batch(&lines(&[("t", "m0"), ("t", "m1")]));
    assert_eq!(before.run(&["init"], "init").0, 0);
    assert_eq!(before.run(&ARCHIVE, "the first batch").0, 0);
    assert_eq!(before.turns("before"), BEFORE);

    // Uninterrupted.
    let home = Home::new();
    home.like(&before);
    let mut traced = home.locked(&ARCHIVE);
    let mut count = 0;
    let code = loop {
        match traced.step() {
            Stop::Over(code) => break code,
            _ => count += 1,
        }
    };
    assert_eq!(code, Some(0));
    assert_eq!(home.turns("uninterrupted"), BEFORE + BATCH);
    let complete = home.sources();

    let homes: Vec<_> = (0..std::thread::available_parallelism().map_or(1, usize::from)).map(|_| Home::new()).collect();
    let stops: Vec<usize> = (0..count).step_by((EVERY / rounds()).max(1)).collect();
    let (none, all) = (AtomicUsize::new(0), AtomicUsize::new(0));
    share(&stops, |thread, &stop| {
        let what = format!("killed at stop {stop} behind the lock");
        let home = &homes[thread];
        home.like(&before);
        let mut traced = home.locked(&ARCHIVE);
        for _ in 0..=stop {
            if matches!(traced.step(), Stop::Over(_)) {
                break;
            }
        }
        let said = traced.kill();
        drop(traced);
        let turns = home.turns_after_death(&what);
        assert!([BEFORE, BEFORE + BATCH].contains(&turns), "{what}: {turns} turns");
        if !said.is_empty() {
            assert_eq!(turns, BEFORE + BATCH, "{what}, when it had said {said}");
        }
        let is_all = turns != BEFORE;
        if is_all { &all } else { &none }.fetch_add(1, Ordering::Relaxed);

        let (code, again) = home.run(&ARCHIVE, &what);
        let expected = if is_all { (0, BATCH) } else { (BATCH, 0) };
        assert_eq!(
            (code, &again["archived"], &again["already"]),
            (0, &json!(expected.0), &json!(expected.1)),
            "{what}"
        );
        assert_eq!(home.turns(&what), BEFORE + BATCH, "{what}, then archived again");
        assert!(home.sources() == complete, "{what}, then archived again: not as uninterrupted");
    });
    let (none, all) = (none.into_inner(), all.into_inner());
    report(&format!(
        "recollex archive killed at {} of {count} stops: {none} times no turn, {all} times all",
        stops.len()
    ));
    assert!(none > 10 && all > 10, "{none} and {all}");
}
