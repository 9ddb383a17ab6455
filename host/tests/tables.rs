//! What the tables in the cache are worth: what is known is not read again, and what they say is always true.
//!
//! Costs are counted in bytes that pass the store, not in time, so that they are the same everywhere.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use recollex::lock::{FileLock, Lock};
use recollex::store::{
    About, Area, ByteChunk, Change, CommitError, Committed, Directory, Edit, Entry, Guard, Page, Stamp, Store,
    StoreError, TextChunk,
};
use recollex::types::{Finding, Health};
use recollex::workspace::{Archived, Outcome, Report, Turn};
use recollex::{Error, Medium, OpenOptions, Runtime, RuntimeOptions, Session, Tier};

const CACHE: &str = ".scriptorium-recollex";

fn runtime() -> Runtime {
    let cache = Some(Path::new(env!("CARGO_TARGET_TMPDIR")).join("compiled"));
    Runtime::new(RuntimeOptions { cache, ..RuntimeOptions::default() }).expect("a runtime")
}

/// A directory, and how many bytes went through its store.
struct Counting {
    directory: Directory,
    lock: FileLock,
    /// Refuses everything that is written to the cache.
    no_cache: bool,
    tree_read: AtomicU64,
    cache_read: AtomicU64,
    committed: AtomicU64,
    cache_written: AtomicU64,
}

#[derive(Debug, Default, PartialEq, Eq)]
struct Counts {
    tree_read: u64,
    cache_read: u64,
    committed: u64,
    cache_written: u64,
}

impl Counting {
    fn over(root: &Path) -> Arc<Self> {
        Arc::new(Self::new(root, false))
    }

    fn new(root: &Path, no_cache: bool) -> Self {
        Self {
            directory: Directory::new(root),
            lock: FileLock::new(root),
            no_cache,
            tree_read: AtomicU64::new(0),
            cache_read: AtomicU64::new(0),
            committed: AtomicU64::new(0),
            cache_written: AtomicU64::new(0),
        }
    }

    fn session(self: &Arc<Self>, runtime: &Runtime) -> Session {
        let medium = Medium { store: self.clone(), lock: self.clone() };
        Session::over(runtime, medium, OpenOptions::new(Tier::Owner)).expect("a session")
    }

    /// What went through since this was asked last.
    fn take(&self) -> Counts {
        let take = |count: &AtomicU64| count.swap(0, Ordering::Relaxed);
        Counts {
            tree_read: take(&self.tree_read),
            cache_read: take(&self.cache_read),
            committed: take(&self.committed),
            cache_written: take(&self.cache_written),
        }
    }

    fn count_read(&self, area: Area, bytes: usize) {
        let count = match area {
            Area::Tree => &self.tree_read,
            Area::Cache => &self.cache_read,
            Area::Runtime => return,
        };
        count.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    fn count_cache(&self, data: &[u8]) -> Result<(), StoreError> {
        if self.no_cache {
            return Err(StoreError::Denied("no cache here".to_owned()));
        }
        self.cache_written.fetch_add(data.len() as u64, Ordering::Relaxed);
        Ok(())
    }
}

impl Lock for Counting {
    fn acquire(&self, wait_ms: u32, purpose: &str) -> Result<Box<dyn Guard>, recollex::lock::LockError> {
        self.lock.acquire(wait_ms, purpose)
    }

    fn current(&self) -> Result<Option<recollex::lock::Holder>, recollex::lock::LockError> {
        self.lock.current()
    }
}

impl Store for Counting {
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
        let chunk = self.directory.read_text(area, path, at, offset, max)?;
        self.count_read(area, chunk.text.len());
        Ok(chunk)
    }

    fn read_bytes(
        &self,
        area: Area,
        path: &str,
        at: Option<&Stamp>,
        offset: u64,
        max: u32,
    ) -> Result<ByteChunk, StoreError> {
        let chunk = self.directory.read_bytes(area, path, at, offset, max)?;
        self.count_read(area, chunk.data.len());
        Ok(chunk)
    }

    fn commit(
        &self,
        guard: &dyn Guard,
        base: u64,
        changes: &[Change],
        about: &About,
    ) -> Result<Committed, CommitError> {
        for change in changes {
            if let Edit::Append { text, .. } | Edit::Put(text) = &change.edit {
                self.committed.fetch_add(text.len() as u64, Ordering::Relaxed);
            }
        }
        self.directory.commit(guard, base, changes, about)
    }

    fn put_cache(&self, name: &str, data: &[u8]) -> Result<Stamp, StoreError> {
        self.count_cache(data)?;
        self.directory.put_cache(name, data)
    }

    fn append_cache(&self, name: &str, length: u64, data: &[u8]) -> Result<Stamp, StoreError> {
        self.count_cache(data)?;
        self.directory.append_cache(name, length, data)
    }

    fn drop_cache(&self, name: &str) -> Result<(), StoreError> {
        self.directory.drop_cache(name)
    }
}

fn turn(thread: &str, number: usize) -> Turn {
    let text = format!("{number}: the green folder stands in the attic. ").repeat(8);
    let trust = if number % 3 == 1 { "pending" } else { "trusted" };
    Turn {
        ordinal: number as i64,
        trust: trust.to_owned(),
        ..Turn::new("tests", thread, format!("m{number:07}"), "user", text)
    }
}

fn turns(thread: &str, numbers: std::ops::Range<usize>) -> Vec<Turn> {
    numbers.map(|number| turn(thread, number)).collect()
}

fn archive_path(root: &Path, thread: &str) -> PathBuf {
    root.join(format!("sources/tests/_v2/{thread}.md"))
}

/// Archives that many turns, and takes the counts of that.
fn fill(session: &mut Session, store: &Counting, thread: &str, count: usize) {
    for start in (0..count).step_by(10_000) {
        session.archive(&turns(thread, start..(start + 10_000).min(count))).expect("archived");
    }
    store.take();
}

/// The clock of the file system has moved on, so that what was written before can be told from what comes.
fn settle() {
    std::thread::sleep(Duration::from_millis(120));
}

/// Everything read, whatever is in the cache.
fn verify(session: &mut Session) -> (Report, Vec<Finding>) {
    let mut verification = session.verify("").expect("a verification");
    let mut findings = Vec::new();
    while let Some(more) = verification.step(session, 1 << 30).expect("a step") {
        findings.extend(more);
    }
    (verification.report(session).expect("a report"), findings)
}

fn outcomes(archived: &Archived) -> Vec<Outcome> {
    archived.turns.iter().map(|turn| turn.outcome).collect()
}

#[test]
fn appending_a_turn_costs_that_turn() {
    let root = tempfile::tempdir().expect("a directory");
    let store = Counting::over(root.path());
    let runtime = runtime();
    let mut session = store.session(&runtime);
    // 20 MB, and more records than the index leaves out.
    let count = 34_000;
    fill(&mut session, &store, "long", count);
    let bytes = fs::metadata(archive_path(root.path(), "long")).expect("there").len();
    assert!(bytes > 20_000_000, "{bytes}");

    for number in count..count + 5 {
        // Another process each time: nothing is remembered but in the cache.
        let mut session = store.session(&runtime);
        let archived = session.archive(&[turn("long", number)]).expect("archived");
        assert_eq!(outcomes(&archived), [Outcome::Archived]);
        let counts = store.take();
        assert!(counts.tree_read < 65_536, "{counts:?}");
        assert!(counts.tree_read + counts.cache_read < 200_000, "{counts:?}");
        assert!(counts.committed + counts.cache_written < 20_000, "{counts:?}");
    }

    // What is there already is known without reading it, first and last and in the middle.
    let again: Vec<_> = [0, 1, 17_000, count - 1, count, count + 4].map(|number| turn("long", number)).into();
    let archived = session.archive(&again).expect("archived");
    assert_eq!(outcomes(&archived), [Outcome::Already; 6]);
    let counts = store.take();
    assert_eq!((counts.tree_read, counts.committed, counts.cache_written), (0, 0, 0));
    assert!(counts.cache_read < 200_000, "{counts:?}");

    // One that differs is read itself, for its digest.
    let other = Turn { text: "something else".to_owned(), ..turn("long", 20_000) };
    let archived = session.archive(&[other]).expect("archived");
    assert_eq!(outcomes(&archived), [Outcome::Differs]);
    assert!(archived.turns[0].digests.is_some());
    let counts = store.take();
    assert!(counts.tree_read < 2_000, "{counts:?}");

    let quick = session.status().expect("a status");
    let (report, findings) = verify(&mut session);
    assert_eq!(quick.revision, report.revision);
    assert_eq!(quick.counts, report.counts);
    assert_eq!((report.ok, findings), (true, vec![]));
}

#[test]
fn many_small_appends_stay_small() {
    let root = tempfile::tempdir().expect("a directory");
    let store = Counting::over(root.path());
    let runtime = runtime();
    let mut session = store.session(&runtime);
    fill(&mut session, &store, "long", 3000);
    let mut written = 0;
    for number in 3000..4200 {
        session.archive(&[turn("long", number)]).expect("archived");
        let counts = store.take();
        assert!(counts.tree_read < 65_536, "turn {number}: {counts:?}");
        written += counts.cache_written;
    }
    // Among them one making of the index.
    assert!(written < 1200 * 1200, "{written}");
    let archived = session.archive(&turns("long", 0..4200)).expect("archived");
    assert!(outcomes(&archived).iter().all(|outcome| *outcome == Outcome::Already));
    assert_eq!(store.take().tree_read, 0);
    let (report, findings) = verify(&mut session);
    assert_eq!((report.revision, findings), (archived.revision, vec![]));
}

#[test]
fn an_unchanged_workspace_costs_a_walk() {
    let root = tempfile::tempdir().expect("a directory");
    let store = Counting::over(root.path());
    let runtime = runtime();
    let mut session = store.session(&runtime);
    session.init().expect("a workspace");
    for thread in ["a", "b", "c"] {
        fill(&mut session, &store, thread, 300);
    }
    fs::create_dir(root.path().join("topics")).expect("made");
    for number in 0..200 {
        fs::write(root.path().join(format!("topics/{number}.md")), "# A topic\n").expect("written");
    }
    fs::write(root.path().join(".scriptorium/runtime.json"), "{}").expect("written");
    settle();
    let first = session.status().expect("a status");
    assert!(store.take().tree_read > 0);
    for _ in 0..2 {
        let mut session = store.session(&runtime);
        let again = session.status().expect("a status");
        assert_eq!((&again.revision, again.counts), (&first.revision, first.counts));
        let counts = store.take();
        assert!(counts.cache_read > 0);
        assert_eq!(Counts { cache_read: 0, ..counts }, Counts::default());
    }
    assert_eq!(verify(&mut session).0.revision, first.revision);
    store.take();
    // One file changed: that one is read, for its digest and for what stands in it.
    let changed = "# B topic\n";
    fs::write(root.path().join("topics/7.md"), changed).expect("written");
    settle();
    let other = session.status().expect("a status");
    assert_ne!(other.revision, first.revision);
    assert_eq!(store.take().tree_read, 2 * changed.len() as u64);
}

#[test]
fn findings_are_exact_though_files_are_known() {
    let root = tempfile::tempdir().expect("a directory");
    let store = Counting::over(root.path());
    let runtime = runtime();
    let mut session = store.session(&runtime);
    session.archive(&turns("good", 0..10)).expect("archived");
    session.archive(&turns("bad", 0..10)).expect("archived");
    let bad = archive_path(root.path(), "bad");
    let mut text = fs::read(&bad).expect("there");
    text.truncate(text.len() - 100);
    fs::write(&bad, text).expect("written");
    let older = "# D1\n\n<a id=\"d1-1\"></a>\n[] A: x [D1:1]\n";
    fs::write(root.path().join("sources/D1.md"), older).expect("written");
    fs::write(root.path().join("sources/tests/older.md"), older).expect("written");
    settle();
    let first = session.status().expect("a status");
    assert_eq!(first.health, Health::Degraded);
    let codes: Vec<&str> = first.reasons.iter().map(|finding| finding.code.as_str()).collect();
    assert_eq!(codes, ["truncated-frame", "legacy-bad-header"]);
    assert_eq!(first.counts.legacy_records, Some(1));
    let second = session.status().expect("a status");
    assert_eq!((second.reasons, second.counts, second.revision), (first.reasons, first.counts, first.revision));
    // Adding to it is refused with the same words, again and again.
    for _ in 0..2 {
        let Err(Error::Memory(recollex::types::Error::Refused(problems))) = session.archive(&turns("bad", 20..21))
        else {
            panic!("a damaged archive was added to");
        };
        assert_eq!((problems[0].reason.as_str(), problems[0].line), ("damaged-archive", Some(57)));
    }
}

#[test]
fn what_another_program_changed_is_read_again() {
    let root = tempfile::tempdir().expect("a directory");
    let store = Counting::over(root.path());
    let runtime = runtime();
    let mut session = store.session(&runtime);
    fill(&mut session, &store, "long", 2000);
    let path = archive_path(root.path(), "long");

    // It appends a turn by itself.
    let ours = fs::read_to_string(&path).expect("there");
    let elsewhere = tempfile::tempdir().expect("a directory");
    let mut other = Session::open(&runtime, elsewhere.path(), OpenOptions::new(Tier::Owner)).expect("a session");
    other.archive(&turns("long", 2000..2001)).expect("archived");
    let theirs = fs::read_to_string(archive_path(elsewhere.path(), "long")).expect("there");
    let frame = theirs.split_once("\n\n").expect("a preamble").1;
    fs::write(&path, format!("{ours}\n{frame}")).expect("written");
    let archived = session.archive(&turns("long", 1999..2002)).expect("archived");
    assert_eq!(outcomes(&archived), [Outcome::Already, Outcome::Already, Outcome::Archived]);
    assert!(store.take().tree_read > ours.len() as u64);
    assert_eq!(verify(&mut session).0.revision, archived.revision);

    // It changes a letter and hides it as well as it can.
    settle();
    let before = fs::metadata(&path).expect("there").modified().expect("a time");
    let text = fs::read_to_string(&path).expect("there").replacen("attic", "addic", 1);
    fs::write(&path, text).expect("written");
    fs::File::options().write(true).open(&path).and_then(|file| file.set_modified(before)).expect("set");
    let status = session.status().expect("a status");
    assert_ne!(status.revision, archived.revision);
    let archived = session.archive(&turns("long", 0..1)).expect("archived");
    assert_eq!(outcomes(&archived), [Outcome::Differs]);
    assert_eq!((verify(&mut session).0.revision, status.revision.clone()), (archived.revision, status.revision));

    // It puts an older state back.
    fs::write(&path, ours).expect("written");
    let archived = session.archive(&turns("long", 2000..2001)).expect("archived");
    assert_eq!(outcomes(&archived), [Outcome::Archived]);
    let (report, findings) = verify(&mut session);
    assert_eq!((report.revision, findings), (archived.revision, vec![]));
}

#[test]
fn records_are_found_without_reading_the_archive() {
    let root = tempfile::tempdir().expect("a directory");
    let store = Counting::over(root.path());
    let runtime = runtime();
    let mut session = store.session(&runtime);
    fill(&mut session, &store, "long", 4000);
    // Some rows that no index covers.
    session.archive(&turns("long", 4000..4010)).expect("archived");
    store.take();
    for number in [0, 1, 2222, 3999, 4000, 4009] {
        let id = format!("tests/long/m{number:07}");
        let excerpt = session.get(&id, None, 0).expect("found");
        let record = excerpt.record.as_ref().expect("a record");
        assert_eq!(record.id, id);
        assert!(excerpt.lines[0].text.contains(&format!("{number}: the green folder")));
        let by_anchor = session.get(&format!("{}#{}", record.path, record.anchor), None, 0).expect("found");
        assert_eq!(by_anchor, excerpt);
        let counts = store.take();
        assert!(counts.tree_read < 4_000 && counts.cache_read < 250_000, "{counts:?}");
        // The same as without any cache.
        let bare = Arc::new(Counting::new(root.path(), true));
        fs::rename(root.path().join(CACHE), root.path().join(".scriptorium-aside")).expect("moved");
        assert_eq!(bare.session(&runtime).get(&id, None, 0).expect("found"), excerpt);
        fs::rename(root.path().join(".scriptorium-aside"), root.path().join(CACHE)).expect("moved");
    }
    for target in ["tests/long/none", "sources/tests/_v2/long.md#source-0000000000000000"] {
        let Err(Error::Memory(recollex::types::Error::NotFound(_))) = session.get(target, None, 0) else {
            panic!("{target} was found");
        };
    }
}

#[test]
fn promoting_a_record_costs_that_record_and_its_chunk() {
    let root = tempfile::tempdir().expect("a directory");
    let store = Counting::over(root.path());
    let runtime = runtime();
    let mut session = store.session(&runtime);
    fill(&mut session, &store, "long", 4000);
    session.archive(&turns("long", 4000..4010)).expect("archived");
    settle();
    let bytes = fs::metadata(archive_path(root.path(), "long")).expect("there").len();
    assert!(bytes > 2_000_000, "{bytes}");
    // First, last, in the middle, and behind what the index covers.
    for number in [1, 2224, 3997, 4000, 4009] {
        store.take();
        let id = format!("tests/long/m{number:07}");
        let promotion = session.promote(&id).expect("promoted");
        assert_eq!(promotion.promoted, number % 3 == 1, "{id}");
        let counts = store.take();
        // A chunk is 64 KiB; two where the record lies on a border, and what comes behind the last whole one.
        assert!(counts.tree_read < 300_000 && counts.cache_read < 300_000, "{counts:?}");
        settle();
        // What is known after it is what a session without any cache finds out.
        let bare = Arc::new(Counting::new(root.path(), true));
        fs::rename(root.path().join(CACHE), root.path().join(".scriptorium-aside")).expect("moved");
        let mut bare = bare.session(&runtime);
        assert_eq!(bare.status().expect("a status").revision, promotion.revision);
        let found = bare.get(&id, None, 0).expect("found");
        fs::rename(root.path().join(".scriptorium-aside"), root.path().join(CACHE)).expect("moved");
        assert_eq!(session.get(&id, None, 0).expect("found"), found);
        assert_eq!(session.status().expect("a status").revision, promotion.revision);
        let counts = store.take();
        assert!(counts.tree_read < 4_000, "the table was lost: {counts:?}");
    }
    // The table goes on being used, by what is added and by who looks again.
    let archived = session.archive(&turns("long", 4005..4012)).expect("archived");
    assert_eq!(outcomes(&archived).iter().filter(|outcome| **outcome == Outcome::Archived).count(), 2);
    assert!(store.take().tree_read < 200_000);
    assert!(!session.promote("tests/long/m0000001").expect("again").promoted);
    let (report, findings) = verify(&mut session);
    assert_eq!((report.revision, findings), (archived.revision, vec![]));
}

#[test]
fn a_store_that_keeps_no_cache_works() {
    let root = tempfile::tempdir().expect("a directory");
    let store = Arc::new(Counting::new(root.path(), true));
    let runtime = runtime();
    let mut session = store.session(&runtime);
    session.archive(&turns("long", 0..1500)).expect("archived");
    let archived = session.archive(&turns("long", 1400..1501)).expect("archived");
    assert_eq!(outcomes(&archived).iter().filter(|outcome| **outcome == Outcome::Archived).count(), 1);
    assert_eq!(session.status().expect("a status").revision, archived.revision);
    assert_eq!(verify(&mut session).0.revision, archived.revision);
    session.get("tests/long/m0001500", None, 0).expect("found");
    assert!(!root.path().join(CACHE).exists());
}

#[test]
fn looking_at_what_is_no_workspace_leaves_nothing_behind() {
    let root = tempfile::tempdir().expect("a directory");
    fs::write(root.path().join("letter.txt"), "dear").expect("written");
    settle();
    let store = Counting::over(root.path());
    let mut session = store.session(&runtime());
    session.status().expect("a status");
    verify(&mut session);
    let names: Vec<_> =
        fs::read_dir(root.path()).expect("a listing").map(|entry| entry.expect("one").file_name()).collect();
    assert_eq!(names, ["letter.txt"]);
}

#[test]
fn a_table_that_lies_is_found_out() {
    let root = tempfile::tempdir().expect("a directory");
    let store = Counting::over(root.path());
    let runtime = runtime();
    let mut session = store.session(&runtime);
    session.init().expect("a workspace");
    let path = root.path().join("note.md");
    fs::write(&path, "one").expect("written");
    settle();
    let honest = session.status().expect("a status");
    // A medium whose stamps do not change with the bytes: the store over it vouches for what is not so.
    let liar = Arc::new(Lying {
        inner: Counting::over(root.path()),
        says: store.stat(Area::Tree, "note.md").expect("there").stamp,
    });
    fs::write(&path, "two").expect("written");
    let medium = Medium { store: liar.clone(), lock: liar.inner.clone() };
    let mut session = Session::over(&runtime, medium, OpenOptions::new(Tier::Owner)).expect("a session");
    assert_eq!(session.status().expect("a status").revision, honest.revision, "nobody can know");
    let (report, findings) = verify(&mut session);
    assert_eq!(findings.iter().map(|finding| finding.code.as_str()).collect::<Vec<_>>(), ["stale-index"]);
    assert_ne!(report.revision, honest.revision);
    // Made again: the next call knows better, and the next verification has nothing to say.
    assert_eq!(session.status().expect("a status").revision, report.revision);
    assert_eq!(verify(&mut session), (Report { ok: true, health: Health::Empty, ..report }, vec![]));
}

/// A store that gives every file the same stamp.
struct Lying {
    inner: Arc<Counting>,
    says: Stamp,
}

impl Store for Lying {
    fn generation(&self) -> Result<u64, StoreError> {
        self.inner.generation()
    }

    fn entries(&self, area: Area, prefix: &str, cursor: Option<&str>, max: u32) -> Result<Page, StoreError> {
        let mut page = self.inner.entries(area, prefix, cursor, max)?;
        page.entries.iter_mut().for_each(|entry| entry.stamp = self.says.clone());
        Ok(page)
    }

    fn stat(&self, area: Area, path: &str) -> Result<Entry, StoreError> {
        Ok(Entry { stamp: self.says.clone(), ..self.inner.stat(area, path)? })
    }

    fn read_text(
        &self,
        area: Area,
        path: &str,
        _: Option<&Stamp>,
        offset: u64,
        max: u32,
    ) -> Result<TextChunk, StoreError> {
        self.inner.read_text(area, path, None, offset, max)
    }

    fn read_bytes(
        &self,
        area: Area,
        path: &str,
        _: Option<&Stamp>,
        offset: u64,
        max: u32,
    ) -> Result<ByteChunk, StoreError> {
        self.inner.read_bytes(area, path, None, offset, max)
    }

    fn commit(
        &self,
        guard: &dyn Guard,
        base: u64,
        changes: &[Change],
        about: &About,
    ) -> Result<Committed, CommitError> {
        self.inner.commit(guard, base, changes, about)
    }

    fn put_cache(&self, name: &str, data: &[u8]) -> Result<Stamp, StoreError> {
        self.inner.put_cache(name, data)
    }

    fn append_cache(&self, name: &str, length: u64, data: &[u8]) -> Result<Stamp, StoreError> {
        self.inner.append_cache(name, length, data)
    }

    fn drop_cache(&self, name: &str) -> Result<(), StoreError> {
        self.inner.drop_cache(name)
    }
}

#[test]
fn writers_and_readers_share_the_cache() {
    const TURNS: usize = 40;
    let root = tempfile::tempdir().expect("a directory");
    let runtime = runtime();
    let open = || Session::open(&runtime, root.path(), OpenOptions::new(Tier::Owner)).expect("a session");
    open().archive(&turns("long", 0..1000)).expect("archived");
    std::thread::scope(|scope| {
        for writer in 0..2 {
            let mut session = open();
            scope.spawn(move || {
                for number in 0..TURNS {
                    let own = format!("w{writer}");
                    let batch = [turn("long", 10_000 + 2 * number + writer), turn(&own, number)];
                    let archived = session.archive(&batch).expect("archived");
                    assert_eq!(outcomes(&archived), [Outcome::Archived; 2]);
                    let again = session.archive(&batch).expect("archived");
                    assert_eq!(outcomes(&again), [Outcome::Already; 2]);
                }
            });
        }
        for _ in 0..2 {
            let mut session = open();
            scope.spawn(move || {
                for number in 0..TURNS {
                    let status = session.status().expect("a status");
                    assert_eq!((status.health, status.reasons), (Health::Ok, vec![]));
                    session.get(&format!("tests/long/m{:07}", number * 20), None, 0).expect("found");
                }
            });
        }
    });
    let mut session = open();
    let status = session.status().expect("a status");
    assert_eq!(status.counts.frames, 1000 + 4 * TURNS as u64);
    let (report, findings) = verify(&mut session);
    assert_eq!((report.revision, findings), (status.revision, vec![]));
}

/// Something that happens to a workspace between two calls.
#[derive(Clone, Debug)]
enum Event {
    /// Turns of a thread: (thread, first, count).
    Archive(u8, usize, usize),
    /// A turn of a thread is vouched for.
    Promote(u8, usize),
    Status,
    /// By another program: a file is written, replaced by one of the same length, cut, added to, removed.
    Write(u8, u8),
    Twist(u8, usize),
    Cut(u8, usize),
    Grow(u8),
    Remove(u8),
    /// One of the cache's files, which are not what they seem any more.
    DropCache(usize),
    CutCache(usize, usize),
    FlipCache(usize, usize, u8),
    GrowCache(usize),
    /// The file system's clock moves on.
    Settle,
}

fn event() -> impl Strategy<Value = Event> {
    let thread = 0_u8..3;
    let any = any::<usize>;
    prop_oneof![
        8 => (thread.clone(), 0_usize..1500, 1_usize..600).prop_map(|(thread, first, count)| Event::Archive(thread, first, count)),
        4 => (thread.clone(), 0_usize..2000).prop_map(|(thread, first)| Event::Archive(thread, first, 1)),
        4 => (thread.clone(), 0_usize..1500).prop_map(|(thread, number)| Event::Promote(thread, number)),
        4 => Just(Event::Status),
        2 => (0_u8..3, 0_u8..4).prop_map(|(file, content)| Event::Write(file, content)),
        2 => (thread.clone(), any()).prop_map(|(thread, at)| Event::Twist(thread, at)),
        1 => (thread.clone(), any()).prop_map(|(thread, at)| Event::Cut(thread, at)),
        1 => thread.clone().prop_map(Event::Grow),
        1 => thread.prop_map(Event::Remove),
        1 => any().prop_map(Event::DropCache),
        1 => (any(), any()).prop_map(|(file, at)| Event::CutCache(file, at)),
        3 => (any(), any(), 1_u8..).prop_map(|(file, at, bits)| Event::FlipCache(file, at, bits)),
        1 => any().prop_map(Event::GrowCache),
        2 => Just(Event::Settle),
    ]
}

/// The n-th file of the cache, counted round.
fn cache_file(root: &Path, number: usize) -> Option<PathBuf> {
    let mut files = Vec::new();
    for directory in [root.join(CACHE), root.join(CACHE).join("records")] {
        let entries = fs::read_dir(directory).into_iter().flatten().filter_map(Result::ok);
        files.extend(entries.map(|entry| entry.path()).filter(|path| path.is_file()));
    }
    files.sort();
    (!files.is_empty()).then(|| files.swap_remove(number % files.len()))
}

fn rewrite(path: &Path, change: impl FnOnce(&mut Vec<u8>)) {
    if let Ok(mut bytes) = fs::read(path) {
        change(&mut bytes);
        fs::write(path, bytes).expect("written");
    }
}

/// The work of both sessions: one keeps caches, whatever becomes of them; the other never has any. They must say the same.
#[test]
fn with_damaged_and_stale_caches_the_answers_are_those_without() {
    let runtime = runtime();
    let cases = std::env::var("RECOLLEX_TABLE_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(24);
    let mut runner =
        TestRunner::new(Config { cases, max_shrink_iters: 200, failure_persistence: None, ..Config::default() });
    let events = proptest::collection::vec(event(), 1..24);
    runner
        .run(&events, |events| {
            let root = tempfile::tempdir().expect("a directory");
            let bare_root = tempfile::tempdir().expect("a directory");
            let roots = [root.path(), bare_root.path()];
            let mut session = Session::open(&runtime, roots[0], OpenOptions::new(Tier::Owner)).expect("a session");
            let bare = Arc::new(Counting::new(roots[1], true));
            let mut bare = bare.session(&runtime);
            session.init().expect("a workspace");
            bare.init().expect("a workspace");
            let thread = |number: u8| ["a", "b", "c"][usize::from(number)];
            for event in events {
                match event.clone() {
                    Event::Archive(number, first, count) => {
                        let turns = turns(thread(number), first..first + count);
                        match (session.archive(&turns), bare.archive(&turns)) {
                            (Ok(ours), Ok(theirs)) => prop_assert_eq!(ours, theirs),
                            (Err(Error::Memory(ours)), Err(Error::Memory(theirs))) => prop_assert_eq!(ours, theirs),
                            other => prop_assert!(false, "{:?}", other),
                        }
                    }
                    Event::Promote(number, turn) => {
                        let id = format!("tests/{}/m{turn:07}", thread(number));
                        match (session.promote(&id), bare.promote(&id)) {
                            (Ok(ours), Ok(theirs)) => prop_assert_eq!(ours, theirs),
                            (Err(Error::Memory(ours)), Err(Error::Memory(theirs))) => prop_assert_eq!(ours, theirs),
                            other => prop_assert!(false, "{:?}", other),
                        }
                    }
                    Event::Status => {
                        let (ours, theirs) = (session.status().expect("a status"), bare.status().expect("a status"));
                        prop_assert_eq!(&ours.revision, &theirs.revision);
                        prop_assert_eq!(
                            (ours.health, ours.counts, ours.reasons),
                            (theirs.health, theirs.counts, theirs.reasons)
                        );
                    }
                    Event::Write(file, content) => {
                        for root in roots {
                            fs::create_dir_all(root.join("topics")).expect("made");
                            fs::write(root.join(format!("topics/{file}.md")), format!("topic {content}\n"))
                                .expect("written");
                        }
                    }
                    Event::Twist(number, at) => {
                        for root in roots {
                            rewrite(&archive_path(root, thread(number)), |bytes| {
                                let letters: Vec<usize> = (0..bytes.len()).filter(|at| bytes[*at] == b'g').collect();
                                if !letters.is_empty() {
                                    bytes[letters[at % letters.len()]] = b'q';
                                }
                            });
                        }
                    }
                    Event::Cut(number, at) => {
                        for root in roots {
                            rewrite(&archive_path(root, thread(number)), |bytes| {
                                bytes.truncate(at % (bytes.len() + 1))
                            });
                        }
                    }
                    Event::Grow(number) => {
                        for root in roots {
                            rewrite(&archive_path(root, thread(number)), |bytes| bytes.push(b'\n'));
                        }
                    }
                    Event::Remove(number) => {
                        for root in roots {
                            let _ = fs::remove_file(archive_path(root, thread(number)));
                        }
                    }
                    Event::DropCache(file) => {
                        if let Some(path) = cache_file(roots[0], file) {
                            fs::remove_file(path).expect("removed");
                        }
                    }
                    Event::CutCache(file, at) => {
                        if let Some(path) = cache_file(roots[0], file) {
                            rewrite(&path, |bytes| bytes.truncate(at % (bytes.len() + 1)));
                        }
                    }
                    Event::FlipCache(file, at, bits) => {
                        if let Some(path) = cache_file(roots[0], file) {
                            rewrite(&path, |bytes| {
                                if !bytes.is_empty() {
                                    let at = at % bytes.len();
                                    bytes[at] ^= bits;
                                }
                            });
                        }
                    }
                    Event::GrowCache(file) => {
                        if let Some(path) = cache_file(roots[0], file) {
                            rewrite(&path, |bytes| bytes.extend_from_slice(&[0; 100]));
                        }
                    }
                    Event::Settle => settle(),
                }
            }
            for number in 0..3 {
                prop_assert_eq!(
                    fs::read(archive_path(roots[0], thread(number))).ok(),
                    fs::read(archive_path(roots[1], thread(number))).ok()
                );
            }
            let status = session.status().expect("a status");
            let (report, findings) = verify(&mut session);
            prop_assert_eq!(status.revision, report.revision);
            prop_assert!(findings.iter().all(|finding| finding.code != "stale-index"), "{:?}", findings);
            Ok(())
        })
        .unwrap_or_else(|failure| panic!("{failure}"));
}
