//! The stores over real files: what is handed over, what a mark changes, and what it leaves to others.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, SystemTime};

use rustix::fs::FlockOperation;

use super::*;
use crate::error::Error;
use crate::lock::LockError;
use crate::store::disk::fault::{counting, crashing, failing};

/// Keeps what a store hands over.
#[derive(Default)]
struct Taken {
    files: Vec<(String, Vec<u8>)>,
    lines: Vec<Vec<u8>>,
}

impl NodeSink for Taken {
    fn file(&mut self, name: &str, data: &[u8]) -> Result<(), Error> {
        self.files.push((name.to_owned(), data.to_vec()));
        Ok(())
    }

    fn lines(&mut self, data: &[u8]) -> Result<(), Error> {
        self.lines.push(data.to_vec());
        Ok(())
    }
}

type Between<'a> = Box<dyn FnMut(&str) + 'a>;

/// Marks as the component does, as far as these files go: `"metadata":{}` gets a member, a file of lines a line. `between` happens
/// after the file was read and before it is replaced.
struct Marks<'a> {
    workspace: &'static str,
    between: Between<'a>,
}

impl<'a> Marks<'a> {
    fn of(workspace: &'static str) -> Self {
        Self { workspace, between: Box::new(|_| ()) }
    }

    fn then(between: impl FnMut(&str) + 'a) -> Self {
        Self { workspace: "w-1", between: Box::new(between) }
    }
}

impl MarkPlanner for Marks<'_> {
    fn splice(&mut self, node: &str, text: &str) -> Result<Plan, Error> {
        let plan = if !text.starts_with(&format!("{{\"id\":\"{node}\"")) {
            Plan::Refused("this is another node".to_owned())
        } else if let Some(at) = text.find("\"metadata\":{}") {
            let at = (at + "\"metadata\":{".len()) as u64;
            Plan::Splice(Splice { start: at, end: at, insert: format!("\"mark\":\"{}\"", self.workspace) })
        } else {
            Plan::Marked
        };
        (self.between)(node);
        Ok(plan)
    }

    fn line(&mut self, nodes: &[String], ended: bool) -> Result<String, Error> {
        (self.between)("");
        Ok(format!("{}{}\n", if ended { "" } else { "\n" }, mark(self.workspace, nodes)))
    }
}

fn mark(workspace: &str, nodes: &[String]) -> String {
    format!("{{\"memory_written_scriptorium\":\"{workspace}\",\"nodes\":{nodes:?}}}")
}

fn nodes(ids: &[&str]) -> Vec<String> {
    ids.iter().map(|id| (*id).to_owned()).collect()
}

fn node(id: &str, text: &str) -> String {
    format!("{{\"id\":\"{id}\",\"output\":\"{text}\",\"metadata\":{{}}}}\n")
}

/// A time of change that no test takes place at, with parts of a second.
fn long_ago() -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::new(1_700_000_000, 123_456_789)
}

fn date(path: &Path, time: SystemTime) {
    fs::File::options().write(true).open(path).unwrap().set_modified(time).unwrap();
}

struct Sessions {
    directory: tempfile::TempDir,
}

impl Sessions {
    /// One session, `s`, of the nodes `u1` and `a1`.
    fn new() -> Self {
        let sessions = Self { directory: tempfile::tempdir().unwrap() };
        sessions.put("s/history/0001-u-u1.json", &node("u1", "hello"));
        sessions.put("s/history/0002-l-a1.json", &node("a1", "hi"));
        sessions
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn put(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        date(&path, long_ago());
        path
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap()
    }

    fn names(&self, directory: &str) -> Vec<String> {
        let entries = fs::read_dir(self.path(directory)).unwrap();
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    fn openprogram(&self) -> OpenProgramSessions {
        OpenProgramSessions::new(self.directory.path()).limits(StoreLimits { wait_ms: 50, ..StoreLimits::default() })
    }

    fn jsonl(&self) -> JsonlSessions {
        JsonlSessions::directory(self.directory.path()).limits(StoreLimits { wait_ms: 50, ..StoreLimits::default() })
    }
}

fn ids(listing: &Listing) -> Vec<&str> {
    listing.conversations.iter().map(|it| it.id.as_str()).collect()
}

fn fault(error: StoreError) -> StoreFault {
    match error {
        StoreError::Store(fault) => fault,
        StoreError::Session(error) => panic!("{error}"),
    }
}

#[test]
fn a_session_is_a_directory_of_nodes() {
    let sessions = Sessions::new();
    sessions.put("s/history/notes.txt", "x");
    sessions.put("s/history/.hidden.json", "x");
    sessions.put("s/head.json", "{}");
    sessions.put("empty/meta.json", "{}");
    sessions.put("t/history/0001-u-u1.json", "{\"half");
    date(&sessions.path("t/history/0001-u-u1.json"), long_ago() + Duration::from_secs(7));
    fs::create_dir_all(sessions.path("u/history")).unwrap();
    let store = sessions.openprogram();
    let listing = store.list().unwrap();
    assert_eq!(ids(&listing), ["s", "t"]);
    assert_eq!(listing.faults, []);
    assert!((listing.conversations[0].updated_at - 1_700_000_000.123_456).abs() < 1e-5);
    assert!((listing.conversations[1].updated_at - 1_700_000_007.123_456).abs() < 1e-5);
    let mut taken = Taken::default();
    assert_eq!(store.read("s", &mut taken).unwrap(), Heads { current: None, archived: Vec::new() });
    assert_eq!(
        taken.files,
        [
            ("history/0001-u-u1.json".to_owned(), node("u1", "hello").into_bytes()),
            ("history/0002-l-a1.json".to_owned(), node("a1", "hi").into_bytes()),
        ]
    );
    let mut taken = Taken::default();
    store.read("t", &mut taken).unwrap();
    assert_eq!(taken.files[0].1, b"{\"half", "what it says is for others to judge");
}

#[test]
fn one_sessions_trouble_is_no_others() {
    let sessions = Sessions::new();
    symlink(sessions.path("s"), sessions.path("linked")).unwrap();
    sessions.put("t/history/0001-u-u1.json", &node("u1", "x"));
    symlink("0001-u-u1.json", sessions.path("t/history/0002-u-u2.json")).unwrap();
    fs::create_dir_all(sessions.path("w")).unwrap();
    symlink(sessions.path("s/history"), sessions.path("w/history")).unwrap();
    let store = sessions.openprogram();
    let listing = store.list().unwrap();
    assert_eq!(ids(&listing), ["s", "t"]);
    let about: Vec<_> = listing.faults.iter().map(|fault| fault.session.clone().unwrap()).collect();
    assert_eq!(about, ["linked", "w"]);
    for fault in &listing.faults {
        assert!(fault.message.contains("not followed"), "{fault}");
    }
    let fault = fault(store.read("t", &mut Taken::default()).unwrap_err());
    assert_eq!(fault.path, Some(sessions.path("t/history/0002-u-u2.json")));
    assert_eq!(fault.session.as_deref(), Some("t"));
    assert!(store.read("s", &mut Taken::default()).is_ok());
}

#[test]
fn names_that_lead_elsewhere_are_none() {
    let sessions = Sessions::new();
    for bad in ["", "..", ".", "../s", "s/../s", "a\0b", "none"] {
        assert!(sessions.openprogram().read(bad, &mut Taken::default()).is_err(), "{bad:?}");
        assert!(sessions.openprogram().mark(bad, &nodes(&["u1"]), &mut Marks::of("w-1")).is_err(), "{bad:?}");
        assert!(sessions.jsonl().read(bad, &mut Taken::default()).is_err(), "{bad:?}");
        assert!(sessions.jsonl().mark(bad, &nodes(&["u1"]), &mut Marks::of("w-1")).is_err(), "{bad:?}");
    }
}

#[test]
fn limits_are_named() {
    let sessions = Sessions::new();
    sessions.put("t/history/0001-u-u1.json", "x");
    sessions.put("long.jsonl", "{\"id\":\"a\"}\n");
    sessions.put("longer.jsonl", "{\"id\":\"a\"}\n");
    let named = |change: fn(&mut StoreLimits)| {
        let mut limits = StoreLimits::default();
        change(&mut limits);
        let files = OpenProgramSessions::new(sessions.directory.path()).limits(limits.clone());
        let lines = JsonlSessions::directory(sessions.directory.path()).limits(limits);
        let mut faults: Vec<String> =
            [files.list().err(), lines.list().err()].into_iter().flatten().map(|it| it.message).collect();
        faults.extend(files.read("s", &mut Taken::default()).err().map(|error| fault(error).message));
        faults.extend(lines.read("long", &mut Taken::default()).err().map(|error| fault(error).message));
        faults
    };
    assert_eq!(named(|_| ()), Vec::<String>::new());
    let faults = named(|limits| limits.conversations = 1);
    assert!(faults.len() == 2 && faults.iter().all(|it| it.contains("`conversations`")), "{faults:?}");
    let faults = named(|limits| limits.nodes = 1);
    assert!(faults.len() == 1 && faults[0].contains("`nodes`"), "{faults:?}");
    let faults = named(|limits| limits.node_bytes = 10);
    assert!(faults.len() == 1 && faults[0].contains("`node-bytes`"), "{faults:?}");
    let faults = named(|limits| limits.conversation_bytes = 10);
    assert!(faults.len() == 2 && faults.iter().all(|it| it.contains("`conversation-bytes`")), "{faults:?}");
}

#[test]
fn a_mark_changes_its_splice_and_nothing_else() {
    let sessions = Sessions::new();
    let path = sessions.path("s/history/0002-l-a1.json");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
    let store = sessions.openprogram();
    let before = store.list().unwrap().conversations;
    let marked = store.mark("s", &nodes(&["u1", "a1", "gone"]), &mut Marks::of("w-1")).unwrap();
    assert_eq!(marked.done, nodes(&["u1", "a1"]));
    assert_eq!(marked.left.len(), 1);
    assert!(marked.left[0].1.message.contains("not there any more"));
    assert_eq!(sessions.read("s/history/0002-l-a1.json"), node("a1", "hi").replace("{}", "{\"mark\":\"w-1\"}"));
    let metadata = fs::metadata(&path).unwrap();
    assert_eq!(metadata.mode() & 0o7777, 0o640);
    assert_eq!(metadata.modified().unwrap(), long_ago());
    assert_eq!(store.list().unwrap().conversations, before);
    assert_eq!(sessions.names("s/history"), ["0001-u-u1.json", "0002-l-a1.json"]);
    let again = store.mark("s", &nodes(&["u1", "a1"]), &mut Marks::of("w-1")).unwrap();
    assert_eq!((again.done, again.left), (nodes(&["u1", "a1"]), Vec::new()));
}

#[test]
fn a_node_is_found_by_what_its_file_says() {
    let sessions = Sessions::new();
    sessions.put("s/history/0003-u-a-b.json", &node("a-b", "x"));
    // An id that no file name can hold, and a name that lies.
    sessions.put("s/history/0004-u-x_y.json", &node("x/y", "x"));
    sessions.put("s/history/0005-u-u1.json", &node("other", "x"));
    let marked =
        sessions.openprogram().mark("s", &nodes(&["a-b", "x/y", "other", "u1"]), &mut Marks::of("w-1")).unwrap();
    assert_eq!((marked.done, marked.left), (nodes(&["a-b", "x/y", "other", "u1"]), Vec::new()));
}

#[test]
fn what_another_program_changes_meanwhile_stays_theirs() {
    let sessions = Sessions::new();
    let theirs = node("u1", "said otherwise");
    let mut marks = Marks::then(|node| {
        if node == "u1" {
            // After ours has read it, and before it is replaced.
            sessions.put("s/history/0001-u-u1.json", &theirs);
        }
    });
    let store = sessions.openprogram();
    let marked = store.mark("s", &nodes(&["u1", "a1"]), &mut marks).unwrap();
    assert_eq!(marked.done, nodes(&["a1"]));
    assert_eq!(marked.left[0].0, "u1");
    assert!(marked.left[0].1.retryable);
    assert_eq!(sessions.read("s/history/0001-u-u1.json"), theirs);
    assert_eq!(sessions.names("s/history").len(), 2, "no leftovers");
    assert_eq!(store.mark("s", &nodes(&["u1"]), &mut Marks::of("w-1")).unwrap().done, nodes(&["u1"]));
}

#[test]
fn a_node_that_is_removed_meanwhile_stays_removed() {
    let sessions = Sessions::new();
    let path = sessions.path("s/history/0001-u-u1.json");
    let mut marks = Marks::then(|_| fs::remove_file(&path).unwrap());
    let marked = sessions.openprogram().mark("s", &nodes(&["u1"]), &mut marks).unwrap();
    assert_eq!((marked.done.len(), marked.left.len()), (0, 1));
    assert_eq!(sessions.names("s/history"), ["0002-l-a1.json"]);
}

/// Runs in a process of its own: dies while it marks the second node.
#[test]
fn child_dies_between_two_nodes() {
    let Some(root) = std::env::var_os("RECOLLEX_TEST_SESSIONS") else { return };
    let store = OpenProgramSessions::new(Path::new(&root));
    let mut marks = Marks::then(|node| {
        if node == "a1" {
            std::process::abort();
        }
    });
    let _ = store.mark("s", &nodes(&["u1", "a1"]), &mut marks);
    panic!("it did not die");
}

#[test]
fn a_crash_between_temporary_file_and_rename_leaves_the_node() {
    let sessions = Sessions::new();
    let status = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "turns::tests::child_dies_between_two_nodes", "--test-threads=1"])
        .env("RECOLLEX_TEST_SESSIONS", sessions.directory.path())
        .output()
        .unwrap()
        .status;
    assert_eq!(std::os::unix::process::ExitStatusExt::signal(&status), Some(6), "it aborted");
    let names = sessions.names("s/history");
    assert!(names.len() == 3 && names[0].starts_with(".recollex-mark-"), "{names:?}");
    assert_eq!(sessions.read("s/history/0001-u-u1.json"), node("u1", "hello"));
    let store = sessions.openprogram();
    let mut taken = Taken::default();
    store.read("s", &mut taken).unwrap();
    assert_eq!(taken.files.len(), 2, "a leftover is no node");
    assert_eq!(store.mark("s", &nodes(&["u1", "a1"]), &mut Marks::of("w-1")).unwrap().done.len(), 2);
    assert_eq!(sessions.names("s/history"), ["0001-u-u1.json", "0002-l-a1.json"]);
}

#[test]
fn at_every_step_a_node_is_whole_before_or_after() {
    let (_, steps) = {
        let sessions = Sessions::new();
        counting(|| sessions.openprogram().mark("s", &nodes(&["u1", "a1"]), &mut Marks::of("w-1")).unwrap())
    };
    assert!(steps > 8);
    for step in 0..steps {
        for torn in [0, 5] {
            let sessions = Sessions::new();
            let store = sessions.openprogram();
            let (_, happened) = crashing(step, torn, || store.mark("s", &nodes(&["u1", "a1"]), &mut Marks::of("w-1")));
            assert!(happened);
            for (name, id, text) in [("0001-u-u1.json", "u1", "hello"), ("0002-l-a1.json", "a1", "hi")] {
                let now = sessions.read(&format!("s/history/{name}"));
                let before = node(id, text);
                assert!(now == before || now == before.replace("{}", "{\"mark\":\"w-1\"}"), "step {step}: {now}");
            }
            let marked = store.mark("s", &nodes(&["u1", "a1"]), &mut Marks::of("w-1")).unwrap();
            assert_eq!((marked.done.len(), sessions.names("s/history").len()), (2, 2), "step {step}");
        }
        let sessions = Sessions::new();
        let store = sessions.openprogram();
        let (result, _) =
            failing(step, rustix::io::Errno::NOSPC, || store.mark("s", &nodes(&["u1", "a1"]), &mut Marks::of("w-1")));
        if let Ok(marked) = result {
            assert!(marked.left.iter().all(|(_, fault)| fault.retryable), "step {step}");
            assert_eq!(marked.done.len() + marked.left.len(), 2, "every node is accounted for");
        }
    }
}

#[test]
fn two_who_mark_wait_for_one_another() {
    let sessions = Sessions::new();
    let held = fs::File::open(sessions.path("s/history")).unwrap();
    rustix::fs::flock(&held, FlockOperation::LockExclusive).unwrap();
    let refused = fault(sessions.openprogram().mark("s", &nodes(&["u1"]), &mut Marks::of("w-1")).unwrap_err());
    assert!(refused.retryable && refused.message.contains("another program"));
    drop(held);
    let many: Vec<String> = (0..40).map(|n| format!("n{n}")).collect();
    for (n, id) in many.iter().enumerate() {
        sessions.put(&format!("s/history/{:04}-u-{id}.json", n + 10), &node(id, "x"));
    }
    let store = OpenProgramSessions::new(sessions.directory.path());
    std::thread::scope(|scope| {
        let markers = [(); 2].map(|()| scope.spawn(|| store.mark("s", &many, &mut Marks::of("w-1")).unwrap()));
        for marker in markers {
            let marked = marker.join().unwrap();
            assert_eq!((marked.done.len(), marked.left.len()), (many.len(), 0));
        }
    });
    for name in sessions.names("s/history").iter().filter(|name| name.contains("-n")) {
        assert_eq!(sessions.read(&format!("s/history/{name}")).matches("w-1").count(), 1);
    }
}

#[test]
fn a_file_of_lines_is_handed_over_in_pieces_of_text() {
    let sessions = Sessions::new();
    let text: String = (0..20_000).map(|n| format!("{{\"id\":\"n{n}\",\"content\":\"喷油嘴 👩🏽‍🔧\"}}\n")).collect();
    sessions.put("a.jsonl", &text);
    let long = "é".repeat(400_000);
    sessions.put("one-line.jsonl", &long);
    fs::write(sessions.path("bytes.jsonl"), [b"{}\n\xff\n".as_slice(), &b"x".repeat(300_000)].concat()).unwrap();
    let store = sessions.jsonl();
    for (id, whole, is_text) in [
        ("a", text.as_bytes(), true),
        ("one-line", long.as_bytes(), true),
        ("bytes", &*fs::read(sessions.path("bytes.jsonl")).unwrap(), false),
    ] {
        let mut taken = Taken::default();
        store.read(id, &mut taken).unwrap();
        assert_eq!(taken.lines.concat(), whole, "{id}");
        assert!(taken.lines.len() > 1 && taken.lines.iter().all(|piece| piece.len() <= 600_000), "{id}");
        assert_eq!(taken.lines.iter().all(|piece| std::str::from_utf8(piece).is_ok()), is_text, "{id}");
    }
}

#[test]
fn a_file_of_lines_was_last_changed_when_something_was_said() {
    let sessions = Sessions::new();
    let said = |time: &str| format!("{{\"id\":\"a\",\"timestamp\":{time}}}\n");
    let marks = format!("{}\n", mark("w-1", &nodes(&["a"]))).repeat(3000);
    let torn = "{\"memory_written_scriptorium\":\"w-1\",\"nod";
    for (name, text, updated_at) in [
        ("number", said("1500000000.5"), 1_500_000_000.5),
        ("text", said("\"2017-07-14T02:40:00+00:00\""), 1_500_000_000.0),
        ("local", said("\"2017-07-14T02:40:00\""), 1_500_000_000.0),
        ("marked", format!("{}{marks}", said("1500000000")), 1_500_000_000.0),
        ("two", format!("{}\n\n{}", said("1500000000"), said("1500000001")), 1_500_000_001.0),
        ("unended", said("1500000000").trim_end().to_owned(), 1_500_000_000.0),
        ("none", "{\"id\":\"a\"}\n".to_owned(), 1_700_000_000.123_456_8),
        ("torn", format!("{}{torn}", said("1500000000")), 1_700_000_000.123_456_8),
        ("empty", String::new(), 1_700_000_000.123_456_8),
    ] {
        let file = sessions.put(&format!("{name}.jsonl"), &text);
        let alone = JsonlSessions::file(&file).unwrap().list().unwrap();
        assert_eq!(ids(&alone), [name]);
        assert!((alone.conversations[0].updated_at - updated_at).abs() < 1e-6, "{name}: {alone:?}");
    }
    sessions.put("ignored.json", "{}");
    fs::create_dir(sessions.path("directory.jsonl")).unwrap();
    symlink("number.jsonl", sessions.path("linked.jsonl")).unwrap();
    let listing = sessions.jsonl().list().unwrap();
    assert_eq!(ids(&listing), ["empty", "local", "marked", "none", "number", "text", "torn", "two", "unended"]);
    assert_eq!(listing.faults.len(), 1);
    assert_eq!(listing.faults[0].session.as_deref(), Some("linked"));
}

#[test]
fn a_mark_is_a_line_behind_the_last() {
    let sessions = Sessions::new();
    for (text, between) in [("", ""), ("{\"id\":\"u1\"}\n", ""), ("{\"id\":\"u1\"}", "\n")] {
        sessions.put("a.jsonl", text);
        let marked = sessions.jsonl().mark("a", &nodes(&["u1"]), &mut Marks::of("w-1")).unwrap();
        assert_eq!(marked.done, nodes(&["u1"]));
        assert_eq!(sessions.read("a.jsonl"), format!("{text}{between}{}\n", mark("w-1", &nodes(&["u1"]))));
    }
    let path = sessions.path("a.jsonl");
    let before = sessions.read("a.jsonl");
    assert_eq!(sessions.jsonl().mark("a", &[], &mut Marks::of("w-1")).unwrap(), Marked::default());
    let mut linked = fs::File::options().append(true).open(&path).unwrap();
    linked.write_all(b"").unwrap();
    assert_eq!(sessions.read("a.jsonl"), before);
    fs::rename(&path, sessions.path("there")).unwrap();
    symlink("there", &path).unwrap();
    assert!(sessions.jsonl().mark("a", &nodes(&["u1"]), &mut Marks::of("w-1")).is_err(), "a link is not followed");
    assert_eq!(sessions.read("there"), before);
}

#[test]
fn what_is_appended_while_a_mark_is_planned_is_looked_at_again() {
    let sessions = Sessions::new();
    let path = sessions.put("a.jsonl", "{\"id\":\"u1\"}\n");
    let mut pieces = ["{\"id\":\"a1\"", "}"].into_iter();
    // Another program writes half of its line, then the rest of it.
    let mut marks = Marks::then(|_| {
        if let Some(piece) = pieces.next() {
            fs::File::options().append(true).open(&path).unwrap().write_all(piece.as_bytes()).unwrap();
        }
    });
    sessions.jsonl().mark("a", &nodes(&["u1"]), &mut marks).unwrap();
    assert_eq!(
        sessions.read("a.jsonl"),
        format!("{{\"id\":\"u1\"}}\n{{\"id\":\"a1\"}}\n{}\n", mark("w-1", &nodes(&["u1"])))
    );
    let mut endless = Marks::then(|_| {
        fs::File::options().append(true).open(&path).unwrap().write_all(b"\n").unwrap();
    });
    let refused = fault(sessions.jsonl().mark("a", &nodes(&["u1"]), &mut endless).unwrap_err());
    assert!(refused.retryable, "{refused}");
}

#[test]
fn lines_and_marks_of_several_programs_stay_whole() {
    let sessions = Sessions::new();
    let path = sessions.put("a.jsonl", "");
    let store = JsonlSessions::directory(sessions.directory.path());
    std::thread::scope(|scope| {
        for writer in 0..2 {
            let path = &path;
            scope.spawn(move || {
                for n in 0..200 {
                    let mut file = fs::File::options().append(true).open(path).unwrap();
                    rustix::fs::flock(&file, FlockOperation::LockExclusive).unwrap();
                    file.write_all(format!("{{\"id\":\"{writer}-{n}\"}}\n").as_bytes()).unwrap();
                }
            });
        }
        for workspace in ["w-1", "w-2"] {
            let store = &store;
            scope.spawn(move || {
                for n in 0..50 {
                    store.mark("a", &[n.to_string()], &mut Marks::of(workspace)).unwrap();
                }
            });
        }
    });
    let text = sessions.read("a.jsonl");
    let whole = text.lines().filter(|line| serde_json::from_str::<serde_json::Value>(line).is_ok()).count();
    assert_eq!((whole, text.lines().count()), (500, 500));
}

#[test]
fn a_lock_that_is_held_or_a_file_that_is_replaced_is_tried_again() {
    let sessions = Sessions::new();
    let path = sessions.put("a.jsonl", "{\"id\":\"u1\"}\n");
    let held = fs::File::open(&path).unwrap();
    rustix::fs::flock(&held, FlockOperation::LockExclusive).unwrap();
    assert!(fault(sessions.jsonl().mark("a", &nodes(&["u1"]), &mut Marks::of("w-1")).unwrap_err()).retryable);
    drop(held);
    let mut is_first = true;
    let mut marks = Marks::then(|_| {
        if std::mem::take(&mut is_first) {
            fs::write(sessions.path("new"), "{\"id\":\"u1\"}\n{\"id\":\"a1\"}\n").unwrap();
            fs::File::options().append(true).open(&path).unwrap().write_all(b"\n").unwrap();
            fs::rename(sessions.path("new"), &path).unwrap();
        }
    });
    assert!(fault(sessions.jsonl().mark("a", &nodes(&["u1"]), &mut marks).unwrap_err()).retryable);
    assert_eq!(sessions.read("a.jsonl"), "{\"id\":\"u1\"}\n{\"id\":\"a1\"}\n", "nothing was written into either");
}

#[test]
fn one_writer_at_a_time() {
    let workspace = tempfile::tempdir().unwrap();
    let take = || WriterLock::acquire(workspace.path(), WRITER_LOCK, 0);
    let held = take().unwrap();
    assert_eq!(take().unwrap_err(), LockError::Held(None));
    let watching = WriterLock::acquire(workspace.path(), WATCH_LOCK, 0).unwrap();
    drop(held);
    assert!(take().is_ok());
    drop(watching);
    assert!(workspace.path().join(".scriptorium/recollex-writer.lock").is_file());
    let nowhere = WriterLock::acquire(&workspace.path().join("none"), WRITER_LOCK, 0).unwrap_err();
    assert!(matches!(nowhere, LockError::Denied(_)), "and none is made");
    assert!(!workspace.path().join("none").exists());
}

#[test]
fn failures_say_whether_another_try_can_help() {
    let full = crate::types::Error::Store(crate::types::Problem {
        code: "TRANSACTION_FAILURE_UNKNOWN".to_owned(),
        reason: "full".to_owned(),
        path: None,
        line: None,
        subject: None,
        message: "no space is left".to_owned(),
    });
    for (error, code, retryable) in [
        (Error::from(crate::types::Error::Conflict("r1-0".to_owned())), "CONCURRENT_UPDATE", true),
        (Error::from(crate::types::Error::Locked(None)), "CONCURRENT_UPDATE", true),
        (Error::from(full), "WRITER_FAILURE_UNKNOWN", true),
        (Error::from(crate::types::Error::Refused(Vec::new())), "WRITER_PRECONDITION_FAILED", false),
        (Error::Limit { name: "deadline", allowed: 1, unit: "ms" }, "WRITER_FAILURE_UNKNOWN", true),
        (Error::Limit { name: "memory", allowed: 1, unit: "bytes" }, "WRITER_FAILURE_UNKNOWN", false),
    ] {
        let failure = failure_of(&error);
        assert_eq!((&*failure.code, failure.retryable), (code, retryable), "{error}");
        assert!(!failure.message.is_empty());
    }
    let fault = StoreFault::new(Path::new("/x"), "it is gone").of("s").passing();
    let failure = Failure::from(fault);
    assert_eq!((&*failure.code, failure.retryable), (SESSION_NODES_UNAVAILABLE, true));
    assert_eq!(failure.message, "/x: it is gone");
}
