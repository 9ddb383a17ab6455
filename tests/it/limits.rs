//! A component that misbehaves gets a typed error, the next call works, and the lock is free.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use recollex::lock::{FileLock, Lock as _};
use recollex::types::{self, Tier};
use recollex::workspace::Turn;
use recollex::{Error, Limits, OpenOptions, Runtime, RuntimeOptions, Session};
use recollex_tests::{built, turns};

use crate::support;

/// Small enough that each case ends soon, large enough that honest calls never meet them, on a busy machine too.
fn limits() -> Limits {
    Limits { deadline: Duration::from_secs(20), memory_bytes: 128 << 20, output_bytes: 8 << 20, ..Limits::default() }
}

/// For what never ends by itself.
fn short() -> Limits {
    Limits { deadline: Duration::from_millis(300), ..limits() }
}

fn runtime(limits: Limits) -> Runtime {
    let options = RuntimeOptions {
        memory_component: Some(built::hostile().to_path_buf()),
        cache: Some(support::cache()),
        limits,
        ..RuntimeOptions::default()
    };
    Runtime::new(options).unwrap()
}

fn open(runtime: &Runtime, root: &Path, behaviour: &str) -> Session {
    let options = OpenOptions::new(Tier::Owner).setting("hostile", behaviour);
    Session::open(runtime, root, options).unwrap()
}

/// A workspace directory inside a temporary one, so that there is an outside to look at.
struct Place {
    directory: tempfile::TempDir,
}

impl Place {
    fn new() -> Self {
        let place = Self { directory: tempfile::tempdir().unwrap() };
        fs::create_dir(place.root()).unwrap();
        fs::write(place.directory.path().join("outside.txt"), "secret").unwrap();
        place
    }

    fn root(&self) -> std::path::PathBuf {
        self.directory.path().join("workspace")
    }
}

/// What `status` answers to a behaviour; afterwards the same session works and somebody else gets the lock.
fn misbehave(behaviour: &str, limits: Limits) -> Error {
    let place = Place::new();
    let most = limits.deadline + Duration::from_secs(10);
    let runtime = runtime(limits);
    let mut session = open(&runtime, &place.root(), behaviour);
    let start = Instant::now();
    let error = session.status().expect_err("the host let it pass");
    assert!(start.elapsed() < most, "{behaviour} took {:?}", start.elapsed());

    session.browse("", None, 0).unwrap_or_else(|error| panic!("after {behaviour} the next call failed: {error:?}"));
    let mut other = open(&runtime, &place.root(), "");
    other.archive(&[]).unwrap_or_else(|error| panic!("after {behaviour} the lock is not free: {error:?}"));
    // And the same again: recovering once is not enough.
    session.status().expect_err("the host let it pass the second time");
    session.browse("", None, 0).unwrap();
    error
}

#[track_caller]
fn limit(behaviour: &str, limits: Limits, expected: &str) {
    let error = misbehave(behaviour, limits);
    assert!(matches!(&error, Error::Limit { name, .. } if *name == expected), "{behaviour}: {error:?}");
    assert_eq!(error.exit_code(), 7);
}

#[track_caller]
fn trap(behaviour: &str) -> Error {
    let error = misbehave(behaviour, limits());
    assert!(matches!(error, Error::Trap { .. }), "{behaviour}: {error:?}");
    assert_eq!(error.exit_code(), 7);
    error
}

#[test]
fn an_honest_call_passes_and_so_does_a_newer_component() {
    // The hostile component exports more than this host knows.
    let place = Place::new();
    let mut session = open(&runtime(limits()), &place.root(), "");
    assert_eq!(session.status().unwrap().health, types::Health::Ok);
}

#[test]
fn an_endless_loop_reaches_the_deadline() {
    limit("spin", short(), "deadline");
}

#[test]
fn an_endless_loop_under_the_lock_gives_it_back() {
    limit("spin-with-lock", short(), "deadline");
}

#[test]
fn a_cancelled_loop_under_the_lock_gives_it_back() {
    let place = Place::new();
    let runtime = runtime(limits());
    let mut session = open(&runtime, &place.root(), "spin-with-lock");
    let canceller = session.canceller();
    for _ in 0..2 {
        let ended = std::thread::scope(|scope| {
            scope.spawn(|| {
                // Once it has the lock.
                while FileLock::new(&place.root()).current().unwrap().is_none() {
                    std::thread::sleep(Duration::from_millis(1));
                }
                assert!(canceller.cancel());
            });
            session.status()
        });
        assert!(matches!(ended, Err(Error::Cancelled)), "{ended:?}");
        session.browse("", None, 0).unwrap();
        open(&runtime, &place.root(), "").archive(&[]).unwrap();
    }
}

#[test]
fn endless_allocation_reaches_the_memory_limit() {
    limit("allocate", limits(), "memory");
}

#[test]
fn endless_recursion_reaches_the_stack_limit() {
    limit("recurse", limits(), "stack");
}

#[test]
fn recursion_with_large_frames_is_a_trap() {
    // They fill the component's own stack, which lies in its memory, before the engine's.
    trap("recurse-in-memory");
}

#[test]
fn endless_logging_reaches_the_output_limit() {
    limit("flood-log", limits(), "output");
}

#[test]
fn endless_writing_fills_the_cache_to_the_output_limit_and_no_further() {
    // The cache can be done without, so the component is told and not stopped.
    let place = Place::new();
    let runtime = runtime(limits());
    let mut session = open(&runtime, &place.root(), "flood-cache");
    let error = session.status().unwrap_err();
    assert!(matches!(&error, Error::Memory(_)) && format!("{error:?}").contains("Limit((\\\"output\\\""), "{error:?}");
    let cache = place.root().join(".scriptorium-recollex");
    let written: u64 = fs::read_dir(cache).unwrap().map(|entry| entry.unwrap().metadata().unwrap().len()).sum();
    assert!(written > 0 && written <= limits().output_bytes, "{written}");
    session.browse("", None, 0).unwrap();
}

#[test]
fn endless_calls_reach_their_limit() {
    limit("flood-calls", Limits { host_calls: 5000, ..limits() }, "host-calls");
}

#[test]
fn an_answer_without_end_reaches_the_output_limit() {
    let place = Place::new();
    let runtime = runtime(Limits { memory_bytes: 1 << 30, ..limits() });
    let mut session = open(&runtime, &place.root(), "flood-answer");
    let error = session.status().unwrap_err();
    assert!(matches!(&error, Error::Limit { name: "output", .. }), "{error:?}");
    session.browse("", None, 0).unwrap();
}

#[test]
fn a_wish_for_endless_randomness_is_refused() {
    let error = misbehave("random", limits());
    assert!(matches!(error, Error::Limit { .. }), "{error:?}");
}

#[test]
fn a_trap_is_an_error_with_the_component_s_functions() {
    let Error::Trap { backtrace, .. } = trap("trap") else { unreachable!() };
    assert!(backtrace.contains("status"), "no function of the component in: {backtrace}");
}

#[test]
fn a_trap_under_the_lock_gives_it_back() {
    trap("trap-with-lock");
}

#[test]
fn an_answer_that_is_no_text_is_a_trap() {
    trap("no-text");
}

#[test]
fn a_trap_in_open_is_an_error_of_open() {
    let place = Place::new();
    let runtime = runtime(limits());
    let options = OpenOptions::new(Tier::Owner).setting("hostile", "trap-in-open");
    let error = Session::open(&runtime, &place.root(), options).unwrap_err();
    assert!(matches!(error, Error::Trap { .. }), "{error:?}");
    open(&runtime, &place.root(), "").status().unwrap();
}

#[test]
fn a_lock_that_is_kept_ends_with_its_session() {
    let place = Place::new();
    let runtime = runtime(limits());
    let mut session = open(&runtime, &place.root(), "keep-lock");
    session.status().unwrap();
    let mut other = open(&runtime, &place.root(), "");
    let error = other.archive(&[]).unwrap_err();
    assert!(error.to_string().contains("Held"), "{error}");
    drop(session);
    other.archive(&[]).unwrap();
}

/// The hostile component writes the text to that path, unchanged.
fn put(area: &str, path: &str, text: &str) -> Turn {
    turns::plain(area, path, 0, text)
}

/// Paths that name nothing inside a workspace.
const OUTSIDE: &[&str] = &[
    "../outside.txt",
    "sources/../../outside.txt",
    "/etc/passwd",
    "",
    ".",
    "..",
    "./a",
    "a//b",
    "a/",
    "a/./b",
    "a/../b",
    "a\0b",
];

#[test]
fn nothing_outside_the_workspace_can_be_read() {
    let place = Place::new();
    let mut session = open(&runtime(limits()), &place.root(), "");
    for area in ["tree", "runtime", "cache"] {
        for path in OUTSIDE {
            let error = session.get(&format!("{area}:{path}"), None, 0).unwrap_err();
            assert_eq!(error.reason(), Some("denied"), "{area}: {path:?}: {error:?}");
        }
    }
    let long = format!("tree:{}", "x".repeat(300));
    let error = session.get(&long, None, 0).unwrap_err();
    assert!(["denied", "not-found", "limit"].contains(&error.reason().unwrap()), "{error:?}");
}

#[test]
fn nothing_outside_the_workspace_can_be_written() {
    let place = Place::new();
    let mut session = open(&runtime(limits()), &place.root(), "");
    for area in ["tree", "runtime"] {
        for path in OUTSIDE {
            let error = session.archive(&[put(area, path, "x")]).unwrap_err();
            assert_eq!(error.reason(), Some("denied"), "{area}: {path:?}: {error:?}");
        }
        session.archive(&[put(area, &"x".repeat(300), "x")]).unwrap_err();
    }
    assert_eq!(fs::read_to_string(place.directory.path().join("outside.txt")).unwrap(), "secret");
}

#[test]
fn the_tree_shows_neither_runtime_nor_version_control() {
    let place = Place::new();
    for path in [".scriptorium/runtime.json", ".git/config", ".scriptorium-bm25.json"] {
        let path = place.root().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "{}").unwrap();
    }
    let mut session = open(&runtime(limits()), &place.root(), "");
    for path in [".scriptorium/runtime.json", ".git/config", ".scriptorium-bm25.json"] {
        let error = session.get(&format!("tree:{path}"), None, 0).unwrap_err();
        assert!(["denied", "not-found"].contains(&error.reason().unwrap()), "{path}: {error:?}");
        session.archive(&[put("tree", path, "changed")]).unwrap_err();
        assert_eq!(fs::read_to_string(place.root().join(path)).unwrap(), "{}", "{path}");
    }
}

#[test]
fn links_are_not_followed() {
    let place = Place::new();
    let outside = place.directory.path().join("elsewhere");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("a.md"), "secret").unwrap();
    fs::create_dir(place.root().join("topics")).unwrap();
    std::os::unix::fs::symlink(&outside, place.root().join("topics/linked")).unwrap();
    std::os::unix::fs::symlink(outside.join("a.md"), place.root().join("topics/a.md")).unwrap();
    let mut session = open(&runtime(limits()), &place.root(), "");
    for path in ["topics/linked/a.md", "topics/a.md"] {
        let error = session.get(&format!("tree:{path}"), None, 0).unwrap_err();
        assert_eq!(error.reason(), Some("denied"), "{path}: {error:?}");
        session.archive(&[put("tree", path, "changed")]).unwrap_err();
    }
    session.archive(&[put("tree", "topics/linked/new.md", "x")]).unwrap_err();
    assert_eq!(fs::read_to_string(outside.join("a.md")).unwrap(), "secret");
    assert_eq!(fs::read_dir(&outside).unwrap().count(), 1);
}

#[test]
fn a_commit_is_whole_or_nothing() {
    let place = Place::new();
    let mut session = open(&runtime(limits()), &place.root(), "");
    session.archive(&[put("tree", "topics/a.md", "a"), put("tree", "topics/../../b.md", "b")]).unwrap_err();
    assert!(!place.root().join("topics/a.md").exists());
    session.archive(&[put("tree", "topics/a.md", "a"), put("tree", "topics/b.md", "b")]).unwrap();
    assert_eq!(fs::read_to_string(place.root().join("topics/b.md")).unwrap(), "b");
}
