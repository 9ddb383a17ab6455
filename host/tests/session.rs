//! The life of sessions and archives, with the components of this build.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use recollex::archive_view::{FileClass, Obstacle, Origin, Selection, Standing};
use recollex::lock::{FileLock, Holder, Lock, LockError};
use recollex::store::{
    About, Area, ByteChunk, Change, CommitError, Committed, Directory, Entry, Guard, Page, Stamp, Store, StoreError,
    TextChunk, UndoLimits,
};
use recollex::types::Health;
use recollex::workspace::{Query, Turn};
use recollex::{
    Archive, Canceller, Error, Limits, Medium, OpenOptions, Runtime, RuntimeOptions, Session, Tier, Verification, types,
};

fn runtime() -> Runtime {
    limited(Limits::default())
}

fn limited(limits: Limits) -> Runtime {
    let cache = Some(Path::new(env!("CARGO_TARGET_TMPDIR")).join("compiled"));
    Runtime::new(RuntimeOptions { cache, limits, ..RuntimeOptions::default() }).expect("a runtime")
}

fn open(runtime: &Runtime, root: &Path) -> Session {
    Session::open(runtime, root, OpenOptions::new(Tier::Owner)).expect("a session")
}

fn turns(count: u32) -> Vec<Turn> {
    let text = "The green folder with the building permit stands in the attic.";
    (0..count).map(|number| Turn::new("tests", "thread", format!("m{number:05}"), "user", text)).collect()
}

/// A directory that can be made to fail in ways that the system does not offer.
struct Faulty {
    directory: Directory,
    lock: FileLock,
    /// The next commit panics, as a host's own code may.
    panic: AtomicBool,
    /// Every read takes this long.
    pause: Duration,
    /// Cancels the call that next comes to this point.
    cancel: Mutex<Option<(Point, Canceller)>>,
}

/// Where in a call that writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Point {
    HasLock,
    Commits,
    HasCommitted,
}

impl Faulty {
    fn medium(root: &Path, pause: Duration) -> (Arc<Self>, Medium) {
        let faulty = Arc::new(Self {
            directory: Directory::new(root),
            lock: FileLock::new(root),
            panic: AtomicBool::new(false),
            pause,
            cancel: Mutex::default(),
        });
        (faulty.clone(), Medium { store: faulty.clone(), lock: faulty })
    }

    fn come_to(&self, point: Point) {
        let mut cancel = self.cancel.lock().expect("no panic");
        if let Some((_, canceller)) = cancel.take_if(|(at, _)| *at == point) {
            assert!(canceller.cancel(), "it is under way");
        }
    }
}

impl Lock for Faulty {
    fn acquire(&self, wait_ms: u32, purpose: &str) -> Result<Box<dyn Guard>, LockError> {
        let guard = self.lock.acquire(wait_ms, purpose)?;
        self.come_to(Point::HasLock);
        Ok(guard)
    }

    fn current(&self) -> Result<Option<Holder>, LockError> {
        self.lock.current()
    }
}

impl Store for Faulty {
    fn generation(&self) -> Result<u64, StoreError> {
        self.directory.generation()
    }

    fn entries(&self, area: Area, prefix: &str, cursor: Option<&str>, max: u32) -> Result<Page, StoreError> {
        self.directory.entries(area, prefix, cursor, max)
    }

    fn stat(&self, area: Area, path: &str) -> Result<Entry, StoreError> {
        self.directory.stat(area, path)
    }

    fn read_text(
        &self,
        area: Area,
        path: &str,
        at: Option<&Stamp>,
        offset: u64,
        max: u32,
    ) -> Result<TextChunk, StoreError> {
        std::thread::sleep(self.pause);
        self.directory.read_text(area, path, at, offset, max)
    }

    fn read_bytes(
        &self,
        area: Area,
        path: &str,
        at: Option<&Stamp>,
        offset: u64,
        max: u32,
    ) -> Result<ByteChunk, StoreError> {
        std::thread::sleep(self.pause);
        self.directory.read_bytes(area, path, at, offset, max)
    }

    fn commit(
        &self,
        guard: &dyn Guard,
        base: u64,
        changes: &[Change],
        about: &About,
    ) -> Result<Committed, CommitError> {
        assert!(!self.panic.swap(false, Ordering::Relaxed), "as asked for");
        self.come_to(Point::Commits);
        let committed = self.directory.commit(guard, base, changes, about)?;
        self.come_to(Point::HasCommitted);
        Ok(committed)
    }

    fn put_cache(&self, name: &str, data: &[u8]) -> Result<Stamp, StoreError> {
        self.directory.put_cache(name, data)
    }

    fn append_cache(&self, name: &str, length: u64, data: &[u8]) -> Result<Stamp, StoreError> {
        self.directory.append_cache(name, length, data)
    }

    fn drop_cache(&self, name: &str) -> Result<(), StoreError> {
        self.directory.drop_cache(name)
    }
}

#[test]
fn sessions_may_move_between_threads_and_a_runtime_be_shared() {
    fn sent<T: Send>() {}
    fn shared<T: Send + Sync>() {}
    sent::<Session>();
    sent::<Archive>();
    shared::<Runtime>();
    shared::<Error>();
}

#[test]
fn a_turn_that_was_archived_is_found() {
    let (runtime, root) = (runtime(), tempfile::tempdir().expect("a directory"));
    let mut session = open(&runtime, root.path());
    assert_eq!(session.status().expect("a status").health, Health::Empty);
    assert!(session.init().expect("a workspace").created);
    let archived = session.archive(&turns(3)).expect("three turns");
    assert_eq!(archived.turns.len(), 3);
    let answer = session.search(&Query::new("permit", 2)).expect("an answer");
    assert_eq!((answer.hits.len(), answer.truncated), (2, true));

    // Another session, as another process would see it.
    let status = open(&runtime, root.path()).status().expect("a status");
    assert_eq!((status.health, status.counts.frames), (Health::Ok, 3));
    assert_eq!(status.revision, archived.revision);
}

#[test]
fn an_error_of_the_contract_leaves_the_session_and_a_verification_as_they_were() {
    let (runtime, root) = (runtime(), tempfile::tempdir().expect("a directory"));
    let mut session = open(&runtime, root.path());
    session.init().expect("a workspace");
    session.archive(&turns(3)).expect("three turns");
    let mut verification = session.verify("").expect("a verification");
    match session.get("topics/nowhere.md", None, 0) {
        Err(Error::Memory(types::Error::NotFound(problem))) => assert_eq!(problem.code, "MEMORY_NOT_FOUND"),
        other => panic!("{other:?}"),
    }
    while verification.step(&mut session, 1 << 16).expect("a step").is_some() {}
    let report = verification.report(&mut session).expect("a report");
    assert_eq!((report.ok, report.counts.frames), (true, 3));
}

/// A turn whose archive is read in several pieces.
fn long(id: &str, lines: usize) -> Vec<Turn> {
    let text = format!("{id} says that the green folder stands in the attic.\n").repeat(lines);
    vec![Turn::new("tests", "thread", id, "user", text)]
}

/// A workspace whose commits can be taken back, and a session in it.
fn undoable(runtime: &Runtime, root: &Path) -> (Session, Arc<Directory>) {
    let store = Arc::new(Directory::new(root).with_undo(UndoLimits::default()));
    let medium = Medium { store: store.clone(), lock: Arc::new(FileLock::new(root)) };
    let mut session = Session::over(runtime, medium, OpenOptions::new(Tier::Owner)).expect("a session");
    session.init().expect("a workspace");
    (session, store)
}

fn undo(store: &Directory, root: &Path) {
    let guard = FileLock::new(root).acquire(1000, "test").expect("the lock");
    store.undo(&*guard).expect("a commit to take back");
}

/// Verifies, with `meanwhile` after the first piece. What was found, and the revision.
fn verify_while(session: &mut Session, meanwhile: impl FnOnce()) -> (Vec<String>, String) {
    let mut verification = session.verify("").expect("a verification");
    let mut codes = Vec::new();
    let mut step = |verification: &mut Verification, bytes| {
        let findings = verification.step(session, bytes).expect("a step");
        let is_over = findings.is_none();
        codes.extend(findings.into_iter().flatten().map(|finding| format!("{} {}", finding.code, finding.message)));
        is_over
    };
    assert!(!step(&mut verification, 1), "there is more than a piece");
    meanwhile();
    while !step(&mut verification, 1) {}
    let report = verification.report(session).expect("a report");
    (codes, report.revision)
}

#[test]
fn a_verification_sees_one_version_of_an_archive_whose_commits_are_taken_back() {
    let runtime = runtime();
    // Another version, longer, shorter or as long, comes while a piece of the archive is read.
    for (before, after) in [(60_000, 90_000), (90_000, 60_000), (60_000, 60_000)] {
        let root = tempfile::tempdir().expect("a directory");
        let (mut session, store) = undoable(&runtime, root.path());
        let mut writer = open(&runtime, root.path());
        session.archive(&turns(1)).expect("a short beginning");
        session.archive(&long("first", before)).expect("some mebibytes");
        let (findings, revision) = verify_while(&mut session, || {
            undo(&store, root.path());
            writer.archive(&long("other", after)).expect("others in their place");
        });
        let status = writer.status().expect("a status");
        assert_eq!((findings, revision, status.health), (Vec::new(), status.revision, Health::Ok));
    }
}

#[test]
fn a_file_that_is_taken_back_while_others_are_read_is_not_missed() {
    let (runtime, root) = (runtime(), tempfile::tempdir().expect("a directory"));
    let (mut session, store) = undoable(&runtime, root.path());
    session.archive(&long("first", 60_000)).expect("some mebibytes");
    session.archive(&[Turn::new("tests", "zebra", "m1", "user", "Read last.")]).expect("a file read after it");
    let (findings, revision) = verify_while(&mut session, || undo(&store, root.path()));
    assert_eq!((findings, revision), (Vec::new(), session.status().expect("a status").revision));
    assert!(!root.path().join("sources/tests/_v2/zebra.md").exists());
}

#[test]
fn an_archive_that_only_grows_is_read_as_it_was() {
    let (runtime, root) = (runtime(), tempfile::tempdir().expect("a directory"));
    let (mut session, _) = undoable(&runtime, root.path());
    let mut writer = open(&runtime, root.path());
    session.archive(&long("first", 60_000)).expect("some mebibytes");
    let before = session.status().expect("a status").revision;
    let (findings, revision) = verify_while(&mut session, || {
        writer.archive(&turns(3)).expect("more at its end");
    });
    // Nothing was begun again: the state is that of the listing.
    assert_eq!((findings, revision), (Vec::new(), before));
}

#[test]
fn a_verification_is_of_one_session_and_can_be_dropped_at_any_time() {
    let runtime = limited(Limits { handles: 50, ..Limits::default() });
    let root = tempfile::tempdir().expect("a directory");
    let (mut session, mut other) = (open(&runtime, root.path()), open(&runtime, root.path()));
    session.init().expect("a workspace");
    let mut verification = session.verify("").expect("a verification");
    assert!(matches!(verification.step(&mut other, 1), Err(Error::Gone)));
    other.status().expect("the other session is as it was");
    assert!(verification.report(&mut session).is_ok());
    drop(other);
    // More than may live at one time, were they not given back.
    drop(verification);
    for _ in 0..10 {
        let many: Vec<_> = (0..20).map(|_| session.verify("").expect("a verification")).collect();
        drop(many);
    }
    let late = session.verify("").expect("a verification");
    drop(session);
    drop(late);
}

#[test]
fn after_a_limit_the_next_call_starts_afresh() {
    let root = tempfile::tempdir().expect("a directory");
    open(&runtime(), root.path()).init().expect("a workspace");
    // The batch alone is larger than the output that is allowed.
    let runtime = limited(Limits { output_bytes: 64 << 10, ..Limits::default() });
    let mut session = open(&runtime, root.path());
    session.archive(&turns(10)).expect("a small batch");
    let mut verification = session.verify("").expect("a verification");
    let error = session.archive(&turns(2000)).expect_err("a large batch");
    assert!(matches!(error, Error::Limit { name: "output", allowed: 65_536, unit: "bytes" }), "{error:?}");
    assert_eq!((error.code(), error.reason(), error.exit_code()), ("HOST_LIMIT_REACHED", Some("output"), 7));

    assert!(matches!(verification.step(&mut session, 1), Err(Error::Gone)));
    assert!(matches!(verification.report(&mut session), Err(Error::Gone)));
    assert_eq!(session.status().expect("a status").counts.frames, 10, "nothing of it was written");
    session.archive(&turns(20)).expect("the lock was given back");
    assert!(matches!(verification.report(&mut session), Err(Error::Gone)), "still");
}

#[test]
fn time_in_the_host_counts() {
    let root = tempfile::tempdir().expect("a directory");
    let mut session = open(&runtime(), root.path());
    session.init().expect("a workspace");
    session.archive(&turns(3)).expect("three turns");
    let runtime = limited(Limits { deadline: Duration::from_millis(300), ..Limits::default() });
    let (_, slow) = Faulty::medium(root.path(), Duration::from_millis(400));
    let mut session = Session::over(&runtime, slow, OpenOptions::new(Tier::Owner)).expect("a session");
    match session.search(&Query::new("permit", 2)) {
        Err(Error::Limit { name: "deadline", allowed: 300, unit: "ms" }) => {}
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_panic_of_the_host_gives_the_lock_back_and_the_next_call_works() {
    let (runtime, root) = (runtime(), tempfile::tempdir().expect("a directory"));
    let (faulty, medium) = Faulty::medium(root.path(), Duration::ZERO);
    let mut session = Session::over(&runtime, medium, OpenOptions::new(Tier::Owner)).expect("a session");
    session.init().expect("a workspace");
    faulty.panic.store(true, Ordering::Relaxed);
    let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| session.archive(&turns(1))));
    assert!(outcome.is_err(), "the panic comes through");
    assert_eq!(faulty.lock.current(), Ok(None));
    session.archive(&turns(1)).expect("the next call works");
}

/// Whether it waits for the lock or reads: what was cancelled ends soon, changed nothing, and the next call works.
#[test]
fn a_cancelled_call_leaves_no_lock_and_no_change() {
    let (runtime, root) = (runtime(), tempfile::tempdir().expect("a directory"));
    let (faulty, medium) = Faulty::medium(root.path(), Duration::from_millis(20));
    let mut session = Session::over(&runtime, medium, OpenOptions::new(Tier::Owner)).expect("a session");
    session.archive(&turns(1)).expect("archived");
    let generation = faulty.directory.generation();
    let canceller = session.canceller();
    let mut cancelled = |when: Duration, call: &mut dyn FnMut(&mut Session) -> Result<(), Error>| {
        let begun = Instant::now();
        let ended = std::thread::scope(|scope| {
            scope.spawn(|| {
                std::thread::sleep(when);
                // Between two calls there is nothing to cancel.
                while !canceller.cancel() {
                    assert!(begun.elapsed() < Duration::from_secs(20), "nothing was under way");
                }
            });
            call(&mut session)
        });
        assert!(matches!(ended, Err(Error::Cancelled)), "{ended:?}");
        assert!(begun.elapsed() < when + Duration::from_secs(4), "{:?}", begun.elapsed());
        assert_eq!(faulty.directory.generation(), generation);
    };
    let guard = faulty.lock.acquire(0, "somebody else").expect("the lock");
    cancelled(Duration::from_millis(300), &mut |session| session.archive(&turns(5)).map(drop));
    drop(guard);
    assert_eq!(faulty.lock.current(), Ok(None));
    // While it reads, again and again.
    cancelled(Duration::from_millis(100), &mut |session| {
        loop {
            session.get("tests/thread/m00000", None, 0)?;
        }
    });
    assert_eq!(faulty.lock.current(), Ok(None));
    session.archive(&turns(5)).expect("the next call works");
}

/// Around the commit: before it nothing is done, in it all of it; and the next call works, from what there is.
#[test]
fn a_call_cancelled_around_its_commit_did_all_or_nothing() {
    let (runtime, root) = (runtime(), tempfile::tempdir().expect("a directory"));
    let (faulty, medium) = Faulty::medium(root.path(), Duration::ZERO);
    let mut session = Session::over(&runtime, medium, OpenOptions::new(Tier::Owner)).expect("a session");
    session.archive(&turns(1)).expect("archived");
    let mut there = 1;
    for point in [Point::HasLock, Point::Commits, Point::HasCommitted] {
        let generation = faulty.directory.generation().expect("a generation");
        let count = there + 5;
        *faulty.cancel.lock().expect("no panic") = Some((point, session.canceller()));
        let ended = session.archive(&turns(count));
        assert!(faulty.cancel.lock().expect("no panic").is_none(), "{point:?}: it came to that");
        assert_eq!(faulty.lock.current(), Ok(None), "{point:?}");
        if point == Point::HasLock {
            assert!(matches!(ended, Err(Error::Cancelled)), "{ended:?}");
            let error = ended.expect_err("cancelled");
            assert_eq!((error.code(), error.exit_code()), ("CANCELLED", 7));
            assert_eq!(faulty.directory.generation(), Ok(generation), "nothing was done");
        } else {
            // What was about to return may do so.
            assert!(matches!(ended, Ok(_) | Err(Error::Cancelled)), "{ended:?}");
            assert_eq!(faulty.directory.generation(), Ok(generation + 1), "{point:?}: all was done");
            there = count;
        }
        assert_eq!(session.status().expect("a status").counts.frames, u64::from(there), "{point:?}");
        assert!(!faulty.directory.is_unfinished().expect("it can be asked"), "{point:?}");
        session.archive(&turns(count)).expect("the next call works");
        there = count;
        assert_eq!(session.status().expect("a status").counts.frames, u64::from(there), "{point:?}");
    }
}

#[test]
fn memory_that_is_off_says_so_and_touches_nothing() {
    let (runtime, root) = (runtime(), tempfile::tempdir().expect("a directory"));
    let place = root.path().join("memory");
    let off = OpenOptions::new(Tier::Owner).setting("backend", "none");
    match Session::open(&runtime, &place, off) {
        Err(error @ Error::Memory(types::Error::Unavailable((Health::Off, _)))) => {
            assert_eq!((error.code(), error.exit_code()), ("MEMORY_DISABLED", 5));
        }
        other => panic!("{other:?}"),
    }
    assert!(!place.exists());
}

#[test]
fn a_caller_without_a_tier_is_refused() {
    let (runtime, root) = (runtime(), tempfile::tempdir().expect("a directory"));
    let nobody = OpenOptions { tier: None, ..OpenOptions::new(Tier::Owner) };
    let error = Session::open(&runtime, root.path(), nobody)
        .and_then(|mut session| session.status())
        .expect_err("a refusal, of the session or of its calls");
    assert_eq!(error.code(), "AUTHORITY_TIER_MISSING");
}

#[test]
fn an_archive_is_checked_without_a_workspace() {
    let (runtime, root) = (runtime(), tempfile::tempdir().expect("a directory"));
    let mut session = open(&runtime, root.path());
    session.init().expect("a workspace");
    let archived = session.archive(&turns(3)).expect("three turns");
    let path = &archived.turns[0].path;
    let text = std::fs::read_to_string(root.path().join(path)).expect("the file");

    let mut archive = Archive::new(&runtime).expect("an archive");
    let (first, second) = text.split_at(text.len() / 2);
    archive.push_text(path, first, false).expect("a piece");
    assert!(matches!(archive.push_text("sources/other.md", "", false), Err(Error::Memory(types::Error::Invalid(_)))));
    archive.push_bytes(path, second.as_bytes(), true).expect("the rest");
    let summary = archive.summary().expect("a summary");
    assert_eq!((summary.ok, summary.counts.frames), (true, 3));
    assert_eq!(archive.take_findings(10).expect("findings"), []);
    let records = archive.records(Selection::All, 1, 10).expect("records");
    let ids: Vec<String> = records.into_iter().map(|listed| listed.record.id).collect();
    assert_eq!(ids, ["tests/thread/m00001", "tests/thread/m00002"]);
}

#[test]
fn an_archive_has_settings_and_says_what_it_takes_paths_for() {
    let runtime = runtime();
    let open = |origin, settings: &[(&str, &str)]| Archive::open(&runtime, origin, settings.iter().copied());
    for (name, value, reason) in
        [("limits.records", "1", "unknown-setting"), ("limits.records-max", "-1", "invalid-setting")]
    {
        let error = open(Origin::Named, &[(name, value)]).expect_err("a refusal");
        assert_eq!((error.code(), error.reason()), ("INVALID_ARGUMENT", Some(reason)), "{error:?}");
    }

    let mut archive = open(Origin::Directory, &[("limits.findings-max", "2")]).expect("an archive");
    let paths = ["mem/sources/p/_v2/t.md", "mem/sources/p/t.md", "mem/notes.txt"].map(str::to_owned);
    let classes = archive.classify(&paths).expect("classes");
    assert_eq!(classes, [FileClass::Archive, FileClass::OlderArchive, FileClass::Other]);

    archive.set_aside("mem/topics/a.md", Obstacle::Symlink).expect("a note");
    archive.push_text(&paths[0], "<!-- openprogram", false).expect("a piece");
    assert!(archive.set_aside(&paths[0], Obstacle::Unreadable).is_err(), "it is open");
    archive.break_off(&paths[0], "the medium is gone").expect("an end");
    assert!(archive.push_text(&paths[0], "", true).is_err(), "it came before");
    archive.break_off("mem/sources/p/_v2/u.md", "it never began").expect("another end");
    let findings = archive.take_findings(10).expect("findings");
    let codes: Vec<&str> = findings.iter().map(|finding| finding.code.as_str()).collect();
    assert_eq!(codes, ["symlink-ignored", "unreadable-file"]);
    assert!(findings[1].message.contains("the medium is gone"), "{findings:?}");
    let summary = archive.summary().expect("a summary");
    assert_eq!((summary.ok, summary.findings_dropped, summary.counts.source_files), (false, 1, 2));
    let files = archive.files(0, 10).expect("files");
    assert_eq!(files.iter().map(|file| file.clean).collect::<Vec<_>>(), [Some(false), Some(false)]);
}

#[test]
fn an_archive_shows_who_spoke_and_keeps_to_its_limit() {
    let (runtime, root) = (runtime(), tempfile::tempdir().expect("a directory"));
    let mut session = open(&runtime, root.path());
    session.init().expect("a workspace");
    let mut batch = turns(4);
    for (turn, trust) in batch.iter_mut().zip(["trusted", "pending", "trusted"]) {
        turn.speaker_id = Some("u-1".to_owned());
        turn.speaker_display = Some("Ada".to_owned());
        turn.trust = trust.to_owned();
    }
    let path = session.archive(&batch).expect("four turns").turns.remove(0).path;
    let text = std::fs::read_to_string(root.path().join(&path)).expect("the file");
    let view = |settings: &[(&str, &str)]| {
        let mut archive = Archive::open(&runtime, Origin::Workspace, settings.iter().copied()).expect("an archive");
        archive.push_text(&path, &text, true).expect("a file");
        archive
    };

    let mut archive = view(&[]);
    let voices = archive.voices(0, 10).expect("voices");
    let seen: Vec<_> = voices.iter().map(|voice| (voice.standing, voice.records, voice.speaker.is_some())).collect();
    assert_eq!(seen, [(Standing::Trusted, 2, true), (Standing::Hint, 1, true), (Standing::Unnamed, 1, false)]);
    let of_hint = archive.records(Selection::Voice(voices[1].number), 0, 10).expect("records");
    assert_eq!(of_hint.iter().map(|listed| listed.number).collect::<Vec<_>>(), [1]);
    let file = archive.files(0, 10).expect("files").remove(0);
    assert_eq!(file.conversation, Some(("tests".to_owned(), "thread".to_owned())));
    assert_eq!((file.records, archive.records(Selection::File(0), 2, 10).expect("records").len()), (4, 2));

    let mut archive = view(&[("limits.records-max", "1")]);
    let summary = archive.summary().expect("a summary");
    assert_eq!((summary.counts.frames, summary.records_dropped, summary.trusted.records), (4, 3, 1));
    assert_eq!(archive.records(Selection::All, 0, 10).expect("records").len(), 1);
}

#[test]
fn an_archive_that_reached_a_limit_is_gone() {
    let runtime = limited(Limits { memory_bytes: 8 << 20, ..Limits::default() });
    let mut archive = Archive::new(&runtime).expect("an archive");
    let error = archive.push_text("sources/a.md", &"x".repeat(32 << 20), false).expect_err("more than its memory");
    assert!(matches!(error, Error::Limit { name: "memory", allowed: 8_388_608, .. }), "{error:?}");
    assert!(matches!(archive.summary(), Err(Error::Gone)));
    assert!(matches!(archive.push_text("sources/a.md", "", true), Err(Error::Gone)));
    Archive::new(&runtime).expect("another").push_text("sources/a.md", "", true).expect("it works");
}
