//! An update of topics, killed anywhere: the topics, the sources that it quotes and every view are as before or as after,
//! the same for whoever reads before it is completed and for everybody behind, and memory goes on from there.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use recollex::lock::{FileLock, Lock as _};
use recollex::store::Directory;
use recollex::types::Error::Conflict;
use recollex::workspace::Updated;
use recollex::{Error, Runtime, Session};
use recollex_tests::crash::{Files, READY};
use recollex_tests::edits;
use recollex_tests::trace::Traced;
use recollex_tests::turns;
use serde_json::{Value, json};

use super::binary::tree;
use super::kills::{kill_at, reported, stops};
use super::workspace::{child, copy, scratch, see};
use super::{Random, report, rounds, share};
use crate::support::cache;

/// Of all system calls, one in this many is tried: there are about two thousand.
const EVERY: usize = 12;

/// Of all kills, one in this many is followed by everything that memory can do.
const THOROUGH: usize = 4;

/// How often it is killed at a random moment.
const RANDOM: usize = 20;

type Tree = Vec<(PathBuf, u32, Vec<u8>)>;

/// A workspace, the update that is interrupted, and the two states that there may be.
struct Template {
    directory: tempfile::TempDir,
    runtime: Runtime,
    before: State,
    after: State,
}

struct State {
    /// As readers see it.
    seen: Files,
    /// As other programs see it.
    tree: Tree,
    revision: String,
}

impl State {
    fn of(root: &Path, revision: &str) -> Self {
        Self { seen: see(&Directory::new(root)), tree: tree(root), revision: revision.to_owned() }
    }
}

fn record(op: &str, rest: &Value) -> Value {
    let mut record = json!({"op": op, "time": "2026-01-02", "source_refs": [edits::RECORD]});
    record.as_object_mut().unwrap().extend(rest.as_object().unwrap().clone());
    record
}

fn to(topic: &str) -> Value {
    json!({"topic_path": topic, "headings": ["Notes"], "position": "end"})
}

fn update(session: &mut Session, base: &str, changes: &[Value]) -> Updated {
    let request = json!({"base_revision": base, "memory_changes": changes});
    session.update(&request.to_string(), &edits::quoting()).unwrap_or_else(|error| panic!("{error}"))
}

impl Template {
    fn new() -> Self {
        let directory = scratch();
        let root = directory.path().join("before");
        let runtime = edits::runtime(&cache()).unwrap();
        let mut session = edits::session(&runtime, &root).unwrap();
        session
            .archive(&(1..4).map(|number| turns::plain("p", "t", number, "I drink tea.")).collect::<Vec<_>>())
            .unwrap();
        let create = |topic, content| record("create_record", &json!({"content": content, "destination": to(topic)}));
        let base = session.status().unwrap().revision;
        let made = update(
            &mut session,
            &base,
            &[
                create("topics/tea.md", "Ada drinks tea."),
                create("topics/tea.md", "Ada drinks it hot."),
                create("topics/core.md", "Ada is the owner."),
                create("topics/gone.md", "Ada had a boat."),
            ],
        );
        let id = |name: &str| made.block_ids.iter().find(|given| given.name == name).unwrap().id.clone();
        assert_eq!(made.revision, session.status().unwrap().revision);
        assert_eq!(made.revision, edits::session(&runtime, &root).unwrap().status().unwrap().revision);
        let (hot, boat) = (id("topics/tea.md#1"), id("topics/gone.md#0"));
        // Every kind of thing that an update does: archives come to be, topics come, change and go, and every view with them.
        let linked = format!("Ada takes milk first, see [hot](../tea.md#^{hot}).");
        let quoted = json!([{"label": "new-source-milk", "role": "user", "content": "Milk first.", "observed_at": "2026-02-01"}]);
        let changes = [
            record(
                "create_record",
                &json!({"content": linked, "time": "2026-02-01", "source_refs": ["new-source-milk"],
                "destination": to("topics/drinks/milk.md")}),
            ),
            record("update_record", &json!({"memory_id": hot, "content": "Ada drinks it cold."})),
            record("create_record", &json!({"content": "Ada has two sisters.", "destination": to("topics/core.md")})),
            json!({"op": "delete_record", "memory_id": boat}),
        ];
        let request = json!({"base_revision": made.revision, "sources": quoted, "memory_changes": changes});
        fs::write(directory.path().join("request.json"), request.to_string()).unwrap();
        let before = State::of(&root, &made.revision);
        drop(session);

        let aside = directory.path().join("after");
        copy(&root, &aside);
        let updated =
            edits::session(&runtime, &aside).unwrap().update(&request.to_string(), &edits::quoting()).unwrap();
        let changed: Vec<&str> = updated.changed_files.iter().map(String::as_str).collect();
        let archive = changed.iter().find(|path| path.starts_with("sources/")).copied().unwrap();
        assert_eq!(
            changed,
            [
                "core.md",
                "recent_events.jsonl",
                "relations.json",
                archive,
                "timeline/2026/01/02.md",
                "timeline/2026/02/01.md",
                "topics/core.md",
                "topics/drinks/milk.md",
                "topics/gone.md",
                "topics/tea.md"
            ]
        );
        let after = State::of(&aside, &updated.revision);
        Self { directory, runtime, before, after }
    }

    fn copy_to(&self, root: &Path) {
        if root.exists() {
            fs::remove_dir_all(root).unwrap();
        }
        copy(&self.directory.path().join("before"), root);
    }

    fn child(&self, when: &str, root: &Path) -> Command {
        let mut child = child();
        child.args([when, "update"]).arg(root).arg(cache()).arg(self.directory.path().join("request.json"));
        child
    }

    /// Which state a workspace is in whose writer is dead: 0 or 1.
    fn settle(&self, root: &Path, said: &str, is_thorough: bool, what: &str) -> usize {
        let states = [&self.before, &self.after];
        let seen = see(&Directory::new(root));
        let names: Vec<_> = seen.keys().collect();
        let index = states.iter().position(|state| state.seen == seen);
        let index = index.unwrap_or_else(|| panic!("{what}: a reader sees neither state, but {names:?}"));
        let state = states[index];
        assert!(index >= reported(said), "{what}: it said that it was done, and was not");

        let guard = FileLock::new(root).acquire(0, "after").unwrap_or_else(|error| panic!("{what}: {error}"));
        let recovery = Directory::new(root).recover(&*guard).unwrap_or_else(|error| panic!("{what}: {error}"));
        assert!(!recovery.damaged && recovery.kept == 0, "{what}: {recovery:?}");
        drop(guard);
        assert!(tree(root) == state.tree, "{what}: completed it is not what was seen");
        if is_thorough {
            self.go_on(root, index, what);
        }
        index
    }

    /// Nothing is wrong, nothing waits, and whoever asks again is answered as in the state that there is.
    fn go_on(&self, root: &Path, index: usize, what: &str) {
        let mut session = edits::session(&self.runtime, root).unwrap();
        let mut verification = session.verify("").unwrap();
        while let Some(findings) = verification.step(&mut session, u64::MAX).unwrap() {
            assert!(findings.is_empty(), "{what}: {findings:?}");
        }
        drop(verification);
        let repaired = session.repair(true).unwrap();
        assert!(repaired.changed_files.is_empty(), "{what}: {:?} follow from no topic", repaired.changed_files);
        let request = fs::read_to_string(self.directory.path().join("request.json")).unwrap();
        match (index, session.update(&request, &edits::quoting())) {
            (0, Ok(updated)) => assert_eq!(updated.revision, self.after.revision, "{what}, then once more"),
            (1, Err(Error::Memory(Conflict(fresh)))) => {
                assert_eq!(fresh, self.after.revision, "{what}, then once more")
            }
            (_, other) => panic!("{what}, then once more: {other:?}"),
        }
        assert!(tree(root) == self.after.tree, "{what}, then once more");
    }
}

#[test]
fn killed_at_every_system_call_it_is_as_before_or_as_after() {
    let template = Template::new();
    let spots: Vec<_> = (0..std::thread::available_parallelism().map_or(1, usize::from)).map(|_| scratch()).collect();
    let root = |thread: usize| spots[thread].path().join("w");

    template.copy_to(&root(0));
    let (count, made) = stops(Traced::start(&mut template.child("traced", &root(0))));
    assert_eq!(made.len(), 1, "one commit");
    assert_eq!(template.settle(&root(0), "committed", true, "uninterrupted"), 1);

    // The stops come in pairs: what a call has left is what there is before the next.
    let all: Vec<(usize, usize)> = (0..count).step_by(2 * (EVERY / rounds()).max(1)).enumerate().collect();
    let states: [AtomicUsize; 2] = Default::default();
    share(&all, |thread, &(number, stop)| {
        let root = root(thread);
        template.copy_to(&root);
        let Some(said) = kill_at(Traced::start(&mut template.child("traced", &root)), stop) else { return };
        let what = format!("killed at stop {stop} of {count}");
        let state = template.settle(&root, &said, number % THOROUGH == 0, &what);
        states[state].fetch_add(1, Ordering::Relaxed);
    });
    let [old, new] = states.map(AtomicUsize::into_inner);
    report(&format!(
        "an update killed at {} of {} system calls: {old} times as before, {new} times as after",
        all.len(),
        count.div_ceil(2)
    ));
    assert!(old > 20 && new > 10, "{old} and {new}");
}

#[test]
fn killed_at_random_moments_it_is_as_before_or_as_after() {
    let template = Template::new();
    let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let root = directory.path().join("w");
    let mut random = Random(5);
    let mut usual = Duration::MAX;
    let (mut kills, mut states) = (0, [0, 0]);
    for round in 0..3 + RANDOM * rounds() {
        template.copy_to(&root);
        let mut process = template.child("free", &root).stdout(Stdio::piped()).spawn().unwrap();
        let mut output = BufReader::new(process.stdout.take().unwrap());
        let mut said = String::new();
        output.read_line(&mut said).unwrap();
        assert_eq!(said.trim_end(), READY);
        let begun = Instant::now();
        // The first few show how long it takes.
        if round >= 3 {
            // Most of the time goes by before anything is written.
            std::thread::sleep(usual.mul_f64(0.4 + 0.7 * random.below(1_000) as f64 / 1_000.0));
            process.kill().unwrap();
        }
        output.read_to_string(&mut said).unwrap();
        let status = process.wait().unwrap();
        if round < 3 {
            assert!(status.success(), "without any interruption");
            usual = usual.min(begun.elapsed());
        }
        kills += usize::from(!status.success());
        states[template.settle(&root, &said, true, &format!("killed in round {round}"))] += 1;
    }
    let [old, new] = states;
    report(&format!("an update killed at {kills} random moments: {old} times as before, {new} times as after"));
    assert!(kills >= RANDOM / 4, "only {kills} kills");
}
