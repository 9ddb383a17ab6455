//! A session that goes on finds what a new one finds, whoever changes what, and looks at nothing else for it.
#![cfg(target_os = "linux")]

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use recollex::lock::FileLock;
use recollex::store::{
    About, Area, ByteChunk, Change, CommitError, Committed, Directory, Entry, Guard, Page, Stamp, Store, StoreError,
    TextChunk, UndoLimits, Watch,
};
use recollex::types::Severity;
use recollex::workspace::{Query, RecallQuery, Turn};
use recollex::{Medium, OpenOptions, Runtime, RuntimeOptions, Session, Tier};

fn runtime() -> Runtime {
    let cache = Some(Path::new(env!("CARGO_TARGET_TMPDIR")).join("compiled"));
    Runtime::new(RuntimeOptions { cache, ..RuntimeOptions::default() }).expect("a runtime")
}

/// A directory that counts how often its tree is listed.
struct Counting(Directory, AtomicU64);

impl Counting {
    fn over(root: &Path) -> Arc<Self> {
        Arc::new(Self(Directory::new(root).with_undo(UndoLimits::default()), AtomicU64::new(0)))
    }

    fn session(self: &Arc<Self>, runtime: &Runtime, root: &Path) -> Session {
        let medium = Medium { store: self.clone(), lock: Arc::new(FileLock::new(root)) };
        Session::over(runtime, medium, OpenOptions::new(Tier::Owner)).expect("a session")
    }

    /// Since this was asked last.
    fn listings(&self) -> u64 {
        self.1.swap(0, Ordering::Relaxed)
    }
}

impl Store for Counting {
    fn watch(&self) -> Option<Box<dyn Watch>> {
        self.0.watch()
    }

    fn generation(&self) -> Result<u64, StoreError> {
        self.0.generation()
    }

    fn entries(&self, area: Area, prefix: &str, cursor: Option<&str>, max: u32) -> Result<Page, StoreError> {
        self.1.fetch_add(u64::from(area == Area::Tree), Ordering::Relaxed);
        self.0.entries(area, prefix, cursor, max)
    }

    fn stat(&self, area: Area, path: &str) -> Result<Entry, StoreError> {
        self.0.stat(area, path)
    }

    fn read_text(
        &self,
        area: Area,
        path: &str,
        at: Option<&Stamp>,
        offset: u64,
        max: u32,
    ) -> Result<TextChunk, StoreError> {
        self.0.read_text(area, path, at, offset, max)
    }

    fn read_bytes(
        &self,
        area: Area,
        path: &str,
        at: Option<&Stamp>,
        offset: u64,
        max: u32,
    ) -> Result<ByteChunk, StoreError> {
        self.0.read_bytes(area, path, at, offset, max)
    }

    fn commit(
        &self,
        guard: &dyn Guard,
        base: u64,
        changes: &[Change],
        about: &About,
    ) -> Result<Committed, CommitError> {
        self.0.commit(guard, base, changes, about)
    }

    fn put_cache(&self, name: &str, data: &[u8]) -> Result<Stamp, StoreError> {
        self.0.put_cache(name, data)
    }

    fn append_cache(&self, name: &str, length: u64, data: &[u8]) -> Result<Stamp, StoreError> {
        self.0.append_cache(name, length, data)
    }

    fn drop_cache(&self, name: &str) -> Result<(), StoreError> {
        self.0.drop_cache(name)
    }
}

fn turn(thread: &str, number: usize, text: &str) -> Turn {
    let ordinal = i64::try_from(number).unwrap();
    let turn = Turn::new("probe", thread, format!("m{number}"), "user", text);
    Turn { ordinal, trust: "trusted".to_owned(), time: Some("2026-01-02T03:04:05Z".to_owned()), ..turn }
}

/// A topic of one claim.
fn topic(number: u8, text: &str) -> String {
    let source = "[said](probe/a/m0)";
    format!(
        "# Birds\n\n{text}[^e-000000000{number}] ^aaaa000{number}\n\n[^e-000000000{number}]: Time: `2026-01-02`; Sources: {source}\n"
    )
}

/// What a search tells. Information is told when a file is read, and files are read at other times by others.
fn found(session: &mut Session, words: &str) -> String {
    let answer = session.search(&Query { explain: true, ..Query::new(words, 20) }).map(|mut answer| {
        answer.findings.retain(|finding| finding.severity != Severity::Info);
        answer
    });
    format!("{answer:?}")
}

fn recall(words: &str) -> RecallQuery {
    RecallQuery { text: words.to_owned(), max_tokens: 0, max_memories: 0 }
}

#[test]
fn what_did_not_change_is_not_looked_at() {
    let (directory, runtime) = (tempfile::tempdir().unwrap(), runtime());
    let root = directory.path();
    let store = Counting::over(root);
    let mut session = store.session(&runtime, root);
    session.init().unwrap();
    for thread in ["a", "b", "c"] {
        session.archive(&[turn(thread, 0, "the heron stands in the reeds")]).unwrap();
    }
    // The first search looks, the next begins to watch.
    let first = found(&mut session, "heron");
    assert_eq!(found(&mut session, "heron"), first);
    assert!(store.listings() > 0);
    assert_eq!(found(&mut session, "heron"), first);
    session.recall(&recall("heron")).unwrap();
    assert_eq!(store.listings(), 0, "files that nobody touched were listed");

    session.archive(&[turn("b", 1, "a second heron came")]).unwrap();
    store.listings();
    let second = found(&mut session, "heron");
    assert_eq!(store.listings(), 0, "one file was added to");
    assert!(second.contains("a second heron came"));
    assert_eq!(second, found(&mut store.session(&runtime, root), "heron"));

    // Another program, in one topic.
    fs::create_dir_all(root.join("topics")).unwrap();
    fs::write(root.join("topics/birds.md"), topic(1, "Herons fish alone.")).unwrap();
    let third = found(&mut session, "heron");
    assert_eq!(third, found(&mut store.session(&runtime, root), "heron"));
    store.listings();
    fs::write(root.join("topics/birds.md"), topic(1, "A heron fishes alone and at dusk.")).unwrap();
    let fourth = found(&mut session, "heron");
    assert_eq!(store.listings(), 0);
    assert_ne!(third, fourth);
    assert_eq!(fourth, found(&mut store.session(&runtime, root), "heron"));
}

/// What may happen between two searches.
#[derive(Clone, Debug)]
enum Event {
    /// The session itself keeps a turn in a thread, or another one does.
    Archive {
        thread: u8,
        word: u8,
        by_other: bool,
    },
    /// Somebody writes a topic, a file of an older form beside an archive, a file that is none, or takes one away.
    Topic {
        name: u8,
        word: u8,
    },
    Older {
        thread: u8,
        word: u8,
    },
    Damage {
        thread: u8,
    },
    Delete {
        thread: u8,
    },
    DeleteTopic {
        name: u8,
    },
    MoveTopics,
    Undo,
    /// Another session searches, and so may write the index.
    SearchElsewhere,
    LoseCache,
    /// Of each file of the index the second half is gone.
    CutIndex,
    /// A file whose name is no text.
    Undecodable,
    /// Long enough for what was written to be relied on.
    Wait,
}

fn event() -> impl Strategy<Value = Event> {
    let small = || 0..3_u8;
    prop_oneof![
        4 => (small(), small(), any::<bool>()).prop_map(|(thread, word, by_other)| Event::Archive { thread, word, by_other }),
        3 => (small(), small()).prop_map(|(name, word)| Event::Topic { name, word }),
        1 => (small(), small()).prop_map(|(thread, word)| Event::Older { thread, word }),
        1 => small().prop_map(|thread| Event::Damage { thread }),
        1 => small().prop_map(|thread| Event::Delete { thread }),
        1 => small().prop_map(|name| Event::DeleteTopic { name }),
        1 => Just(Event::MoveTopics),
        1 => Just(Event::Undo),
        2 => Just(Event::SearchElsewhere),
        1 => Just(Event::LoseCache),
        1 => Just(Event::CutIndex),
        1 => Just(Event::Undecodable),
        6 => Just(Event::Wait),
    ]
}

const WORDS: [&str; 3] = ["heron", "kestrel", "plover"];

#[test]
fn a_session_that_goes_on_finds_what_a_new_one_finds() {
    let runtime = runtime();
    let word = |number: u8| WORDS[usize::from(number)];
    let run = |events: &[Event]| {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path();
        let store = Counting::over(root);
        let mut session = store.session(&runtime, root);
        session.init().unwrap();
        let mut count = 0;
        for (step, event) in events.iter().enumerate() {
            let archive = |thread: u8| root.join(format!("sources/probe/_v2/t{thread}.md"));
            match event {
                Event::Archive { thread, word: said, by_other } => {
                    count += 1;
                    let turn = turn(&format!("t{thread}"), count, &format!("{} number {count}", word(*said)));
                    // A damaged archive takes nothing.
                    let _ = match by_other {
                        true => store.session(&runtime, root).archive(&[turn]),
                        false => session.archive(&[turn]),
                    };
                }
                Event::Topic { name, word: said } => {
                    fs::create_dir_all(root.join("topics")).unwrap();
                    let text = topic(*name, &format!("A {} at step {step}.", word(*said)));
                    fs::write(root.join(format!("topics/t{name}.md")), text).unwrap();
                }
                Event::Older { thread, word: said } => {
                    fs::create_dir_all(root.join("sources/probe")).unwrap();
                    let text = format!("## probe/t{thread}/m1\n\nuser: an older {} at step {step}\n", word(*said));
                    fs::write(root.join(format!("sources/probe/t{thread}.md")), text).unwrap();
                }
                Event::Damage { thread } => {
                    if let Ok(text) = fs::read_to_string(archive(*thread)) {
                        fs::write(archive(*thread), text.replacen("number", "humber", 1)).unwrap();
                    }
                }
                Event::Delete { thread } => drop(fs::remove_file(archive(*thread))),
                Event::DeleteTopic { name } => drop(fs::remove_file(root.join(format!("topics/t{name}.md")))),
                Event::MoveTopics => {
                    if root.join("topics").exists() && !root.join("sources/probe/old").exists() {
                        fs::create_dir_all(root.join("sources/probe")).unwrap();
                        fs::rename(root.join("topics"), root.join("sources/probe/old")).unwrap();
                    }
                }
                Event::Undo => {
                    let lock = FileLock::new(root);
                    let guard = recollex::lock::Lock::acquire(&lock, 10_000, "undo").unwrap();
                    drop(store.0.undo(&*guard));
                }
                Event::SearchElsewhere => drop(found(&mut store.session(&runtime, root), "heron")),
                Event::Wait => std::thread::sleep(Duration::from_millis(25)),
                Event::CutIndex => {
                    for file in fs::read_dir(root.join(".scriptorium-recollex/search")).into_iter().flatten() {
                        let file = fs::OpenOptions::new().write(true).open(file.unwrap().path()).unwrap();
                        file.set_len(file.metadata().unwrap().len() / 2).unwrap();
                    }
                }
                Event::Undecodable => {
                    fs::create_dir_all(root.join("sources/probe")).unwrap();
                    fs::write(root.join("sources/probe").join(OsStr::from_bytes(b"\xff.md")), "x").unwrap();
                }
                Event::LoseCache => drop(fs::remove_dir_all(root.join(".scriptorium-recollex"))),
            }
            for asked in WORDS {
                let goes_on = found(&mut session, asked);
                let new = found(&mut store.session(&runtime, root), asked);
                prop_assert_eq!(goes_on, new, "{} after step {} of {:?}", asked, step, events);
            }
        }
        Ok(())
    };
    let config = Config { cases: 24, failure_persistence: None, ..Config::default() };
    TestRunner::new(config).run(&prop::collection::vec(event(), 1..20), |events| run(&events)).unwrap();
}
