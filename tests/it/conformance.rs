//! The directory store and the store in memory keep every promise of the contract; and stores that break one are found.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use recollex::lock::{FileLock, Holder, Lock, LockError};
use recollex::store::{
    About, Area, ByteChunk, Change, CommitError, Committed, Directory, Edit, Entry, Expect, FileId, Guard, Kind, Page,
    Stamp, Store, StoreError, TextChunk, UndoLimits,
};
use recollex_tests::conformance::{Ability, CASES, Fixture, Handle, Report, Workspace, run};
use recollex_tests::memory_store::{MemoryStore, exact, ignoring_case};

/// Workspaces in temporary directories.
struct Directories;

struct InDirectory {
    directory: tempfile::TempDir,
    store: Directory,
    lock: FileLock,
}

impl InDirectory {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let store = Directory::new(directory.path()).with_undo(UndoLimits::default());
        Self { store, lock: FileLock::new(directory.path()), directory }
    }
}

impl Fixture for Directories {
    fn fresh(&self) -> Box<dyn Workspace> {
        Box::new(InDirectory::new())
    }

    fn abilities(&self) -> Vec<Ability> {
        use Ability::{Another, Behind, Guards, LetterCase, NormalForms, Search};
        vec![Another, Behind, Guards, LetterCase, NormalForms, Search]
    }
}

impl Workspace for InDirectory {
    fn store(&self) -> &dyn Store {
        &self.store
    }

    fn lock(&self) -> &dyn Lock {
        &self.lock
    }

    fn another(&self) -> Option<Handle> {
        let root = self.directory.path();
        Some((Box::new(Directory::new(root)), Box::new(FileLock::new(root))))
    }

    fn write_behind(&self, path: &str, data: Option<&[u8]>) -> bool {
        let path: PathBuf = self.directory.path().join(path);
        match data {
            Some(data) => std::fs::write(path, data).is_ok(),
            None => std::fs::remove_file(path).is_ok(),
        }
    }

    fn holds(&self, bytes: &[u8]) -> Option<bool> {
        let files = crate::support::snapshot(self.directory.path());
        Some(files.iter().any(|(_, _, content)| content.windows(bytes.len()).any(|part| part == bytes)))
    }
}

/// Workspaces in memory, with what is claimed of them.
struct Memories {
    fold: fn(&str) -> String,
    abilities: &'static [Ability],
}

const MEMORY: Memories = Memories {
    fold: ignoring_case,
    abilities: &[
        Ability::Another,
        Ability::Behind,
        Ability::Guards,
        Ability::LetterCase,
        Ability::Search,
        Ability::Faults,
    ],
};

struct InMemory(MemoryStore);

impl Fixture for Memories {
    fn fresh(&self) -> Box<dyn Workspace> {
        Box::new(InMemory(MemoryStore::new(self.fold)))
    }

    fn abilities(&self) -> Vec<Ability> {
        self.abilities.to_vec()
    }
}

impl Workspace for InMemory {
    fn store(&self) -> &dyn Store {
        &self.0
    }

    fn lock(&self) -> &dyn Lock {
        &self.0
    }

    fn another(&self) -> Option<Handle> {
        Some((Box::new(self.0.clone()), Box::new(self.0.clone())))
    }

    fn write_behind(&self, path: &str, data: Option<&[u8]>) -> bool {
        self.0.write_behind(path, data);
        true
    }

    fn holds(&self, bytes: &[u8]) -> Option<bool> {
        Some(self.0.holds(bytes))
    }

    fn fail(&self, fault: Option<(usize, StoreError)>) {
        self.0.fail(fault);
    }

    fn is_failing(&self) -> bool {
        self.0.is_failing()
    }
}

/// What a wrapper does with the calls to the store that it wraps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// Hands all on, but fails the call that was chosen.
    Faulty,
    Reorders,
    Repeats,
    IgnoresExpectations,
    ForgetsGeneration,
    IgnoresBase,
    AppliesHalf,
    AppliesBeforeFailing,
    DropsKeeps,
    IgnoresAt,
    EndsTooEarly,
    CutsCharacters,
    LeavesTheArea,
    TellsOldStamps,
    AppendsAnywhere,
    ReplacesOnMove,
    MixesAreas,
    CountsNothings,
    InventsFiles,
    LosesBytes,
    MergesChanges,
    CutsNames,
    CutsLargeTexts,
    KeepsCaches,
    TakesAnyGuard,
    SharesTheLock,
    SplicesLoosely,
    /// Begins a listing behind whatever it is given.
    TakesAnyCursor,
    /// Keeps for undo what was to be erased.
    KeepsErased,
    /// Checks nothing of a commit that erases.
    ErasesBlindly,
}

/// A store around another.
struct Wrapped {
    way: Way,
    inner: Arc<dyn Workspace + Send + Sync>,
    fault: Arc<Mutex<Option<(usize, StoreError)>>>,
}

impl Wrapped {
    fn call(&self) -> Result<(), StoreError> {
        let mut fault = self.fault.lock().unwrap();
        match &mut *fault {
            Some((0, error)) => {
                let error = error.clone();
                *fault = None;
                Err(error)
            }
            Some((left, _)) => {
                *left -= 1;
                Ok(())
            }
            None => Ok(()),
        }
    }

    fn store(&self) -> &dyn Store {
        self.inner.store()
    }

    fn area(&self, area: Area) -> Area {
        if self.way == Way::MixesAreas && area == Area::Runtime { Area::Tree } else { area }
    }

    fn path<'a>(&self, path: &'a str) -> &'a str {
        match self.way {
            Way::LeavesTheArea => path.trim_start_matches("../"),
            Way::CutsNames => path.trim_matches(' '),
            _ => path,
        }
    }
}

impl Store for Wrapped {
    fn generation(&self) -> Result<u64, StoreError> {
        self.call()?;
        let generation = self.store().generation()?;
        Ok(if self.way == Way::ForgetsGeneration { generation.min(1) } else { generation })
    }

    fn entries(&self, area: Area, prefix: &str, cursor: Option<&str>, max: u32) -> Result<Page, StoreError> {
        self.call()?;
        let is_odd =
            |cursor: &&str| cursor.split('/').any(|part| matches!(part, "" | "." | "..")) || cursor.contains('\0');
        let cursor = cursor.filter(|cursor| self.way != Way::TakesAnyCursor || !is_odd(cursor));
        let mut page = self.store().entries(self.area(area), self.path(prefix), cursor, max)?;
        match self.way {
            Way::Reorders => page.entries.reverse(),
            Way::Repeats => page.entries.extend(page.entries.last().cloned()),
            _ => {}
        }
        Ok(page)
    }

    fn stat(&self, area: Area, path: &str) -> Result<Entry, StoreError> {
        self.call()?;
        let stat = self.store().stat(self.area(area), self.path(path));
        match stat {
            Err(StoreError::NotFound) if self.way == Way::InventsFiles => Ok(Entry {
                path: path.to_owned(),
                kind: Kind::File,
                stamp: Stamp { size: 0, token: String::new(), racy: true },
            }),
            stat => stat,
        }
    }

    fn read_text(
        &self,
        area: Area,
        path: &str,
        at: Option<&Stamp>,
        offset: u64,
        max: u32,
    ) -> Result<TextChunk, StoreError> {
        self.call()?;
        let at = at.filter(|_| self.way != Way::IgnoresAt);
        let area = self.area(area);
        if self.way == Way::CutsCharacters {
            let chunk = self.store().read_bytes(area, path, at, offset, max.max(1))?;
            let text = String::from_utf8_lossy(&chunk.data).into_owned();
            let next = offset + chunk.data.len() as u64;
            return Ok(TextChunk { text, next, eof: chunk.eof, stamp: chunk.stamp });
        }
        let mut chunk = self.store().read_text(area, self.path(path), at, offset, max)?;
        chunk.eof |= self.way == Way::EndsTooEarly && chunk.next + 4 >= chunk.stamp.size;
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
        self.call()?;
        let at = at.filter(|_| self.way != Way::IgnoresAt);
        let mut chunk = self.store().read_bytes(self.area(area), self.path(path), at, offset, max)?;
        if self.way == Way::LosesBytes && max == 7 {
            chunk.data.pop();
        }
        Ok(chunk)
    }

    fn commit(
        &self,
        guard: &dyn Guard,
        base: u64,
        changes: &[Change],
        about: &About,
    ) -> Result<Committed, CommitError> {
        let failed = |error| CommitError::Failed { path: String::new(), error };
        let fault = self.call();
        if let (Err(error), Way::AppliesBeforeFailing) = (&fault, self.way) {
            self.store().commit(guard, base, changes, about)?;
            return Err(failed(error.clone()));
        }
        fault.map_err(failed)?;
        let now = self.store().generation().map_err(failed)?;
        let base = match self.way {
            Way::IgnoresBase | Way::ForgetsGeneration => now,
            _ => base,
        };
        let kept = About::new(about.verb(), about.note());
        let about = if self.way == Way::KeepsErased { &kept } else { about };
        let mut changes = changes.to_vec();
        for change in &mut changes {
            change.area = self.area(change.area);
            let length = self.store().stat(change.area, &change.path).map_or(0, |entry| entry.stamp.size);
            match (self.way, &mut change.edit) {
                (Way::IgnoresExpectations, _) => change.expect = Expect::Any,
                (Way::ErasesBlindly, _) if about.erases() => change.expect = Expect::Any,
                (Way::AppendsAnywhere, Edit::Append { length: expected, .. }) => *expected = length,
                (Way::DropsKeeps, Edit::Keep) => change.expect = Expect::Any,
                (Way::CountsNothings, edit @ Edit::Keep) if length > 0 => {
                    *edit = Edit::Append { length, text: " ".to_owned() };
                }
                (Way::CutsNames, _) => change.path = self.path(&change.path).to_owned(),
                (Way::CutsLargeTexts, Edit::Put(text)) => text.truncate(text.floor_char_boundary(1 << 20)),
                (Way::SplicesLoosely, Edit::Splice(splices)) => {
                    splices.retain(|splice| splice.offset.saturating_add(splice.remove) <= length);
                }
                _ => {}
            }
        }
        if self.way == Way::ReplacesOnMove {
            let targets = changes.iter().filter_map(|change| match &change.edit {
                Edit::MoveTo(to) if self.store().stat(change.area, to).is_ok() && *to != change.path => {
                    Some(Change { area: change.area, path: to.clone(), expect: Expect::Any, edit: Edit::Delete })
                }
                _ => None,
            });
            let targets: Vec<_> = targets.collect();
            if !targets.is_empty() {
                let base = self.store().commit(guard, base, &targets, about)?.generation;
                return self.store().commit(guard, base, &changes, about);
            }
        }
        if self.way == Way::MergesChanges {
            let mut last = Vec::<Change>::new();
            for change in changes {
                last.retain(|other| other.path != change.path);
                last.push(change);
            }
            changes = last;
        }
        if self.way == Way::AppliesHalf {
            let mut made = Committed { generation: base, stamps: Vec::new() };
            for change in &changes {
                let one = self.store().commit(guard, made.generation, std::slice::from_ref(change), about)?;
                made.generation = one.generation;
                made.stamps.extend(one.stamps);
            }
            return Ok(made);
        }
        let before: Vec<_> = changes
            .iter()
            .map(|change| self.store().stat(change.area, &change.path).ok().map(|entry| entry.stamp))
            .collect();
        let mut committed = match self.store().commit(guard, base, &changes, about) {
            Err(CommitError::LockLost) if self.way == Way::TakesAnyGuard => {
                let guard = self.inner.lock().acquire(0, "").map_err(|_| CommitError::LockLost)?;
                self.store().commit(&*guard, base, &changes, about)?
            }
            result => result?,
        };
        if self.way == Way::TellsOldStamps {
            committed.stamps = before;
        }
        Ok(committed)
    }

    fn put_cache(&self, name: &str, data: &[u8]) -> Result<Stamp, StoreError> {
        self.call()?;
        self.store().put_cache(name, data)
    }

    fn append_cache(&self, name: &str, length: u64, data: &[u8]) -> Result<Stamp, StoreError> {
        self.call()?;
        self.store().append_cache(name, length, data)
    }

    fn drop_cache(&self, name: &str) -> Result<(), StoreError> {
        self.call()?;
        if self.way == Way::KeepsCaches { Ok(()) } else { self.store().drop_cache(name) }
    }
}

/// The lock that it wraps, or one that gives to everyone who asks.
impl Lock for Wrapped {
    fn acquire(&self, wait_ms: u32, purpose: &str) -> Result<Box<dyn Guard>, LockError> {
        match self.inner.lock().acquire(wait_ms, purpose) {
            Err(LockError::Held(_)) if self.way == Way::SharesTheLock => Ok(Box::new(Shared)),
            result => result,
        }
    }

    fn current(&self) -> Result<Option<Holder>, LockError> {
        self.inner.lock().current()
    }
}

#[derive(Debug)]
struct Shared;

impl Guard for Shared {
    fn file(&self) -> Option<FileId> {
        None
    }
}

impl Workspace for Wrapped {
    fn store(&self) -> &dyn Store {
        self
    }

    fn lock(&self) -> &dyn Lock {
        self
    }

    fn another(&self) -> Option<Handle> {
        let again = || Self { way: self.way, inner: Arc::clone(&self.inner), fault: Arc::clone(&self.fault) };
        Some((Box::new(again()), Box::new(again())))
    }

    fn write_behind(&self, path: &str, data: Option<&[u8]>) -> bool {
        self.inner.write_behind(path, data)
    }

    fn holds(&self, bytes: &[u8]) -> Option<bool> {
        self.inner.holds(bytes)
    }

    fn fail(&self, fault: Option<(usize, StoreError)>) {
        *self.fault.lock().unwrap() = fault;
    }

    fn is_failing(&self) -> bool {
        self.fault.lock().unwrap().is_some()
    }
}

/// Wrapped workspaces of one of the two kinds.
struct Wrapping {
    way: Way,
    in_memory: bool,
}

impl Wrapping {
    fn make(&self) -> Wrapped {
        let inner: Arc<dyn Workspace + Send + Sync> = if self.in_memory {
            Arc::new(InMemory(MemoryStore::new(ignoring_case)))
        } else {
            Arc::new(InDirectory::new())
        };
        Wrapped { way: self.way, inner, fault: Arc::default() }
    }
}

impl Fixture for Wrapping {
    fn fresh(&self) -> Box<dyn Workspace> {
        Box::new(self.make())
    }

    fn abilities(&self) -> Vec<Ability> {
        let mut abilities = if self.in_memory { MEMORY.abilities() } else { Directories.abilities() };
        abilities.push(Ability::Faults);
        abilities
    }
}

#[track_caller]
fn conforms(report: &Report, skipped: &[&str]) {
    assert_eq!(report.failed, []);
    assert_eq!(report.skipped, skipped);
    assert_eq!(report.passed.len() + skipped.len(), CASES.len());
}

#[test]
fn the_directory_conforms() {
    conforms(&run(&Directories), &["faults"]);
}

#[test]
fn the_store_in_memory_conforms() {
    conforms(&run(&MEMORY), &["normal-forms"]);
    let exact =
        Memories { fold: exact, abilities: &[Ability::Another, Ability::Behind, Ability::Guards, Ability::Faults] };
    conforms(&run(&exact), &["letter-case", "normal-forms", "erased-everywhere"]);
}

#[test]
fn a_store_whose_calls_fail_conforms() {
    conforms(&run(&Wrapping { way: Way::Faulty, in_memory: true }), &["normal-forms"]);
    // What the directory does without a fault is asked above.
    let faults = CASES.iter().find(|case| case.name == "faults").unwrap();
    assert_eq!((faults.run)(&Wrapping { way: Way::Faulty, in_memory: false }), Ok(()));
}

/// Each call of a session fails once, in each way: the session goes on as if that call had not been made.
#[test]
fn whichever_call_fails_the_next_commit_works() {
    for in_memory in [true, false] {
        // What a directory does when its calls are not made is the same whatever the reason.
        let errors =
            [StoreError::Full, StoreError::Io("injected".to_owned()), StoreError::Denied("injected".to_owned())];
        for error in errors.into_iter().take(if in_memory { 3 } else { 1 }) {
            for step in 0.. {
                let workspace = Wrapping { way: Way::Faulty, in_memory }.make();
                workspace.fail(Some((step, error.clone())));
                let mut expected = Vec::new();
                let mut failures = 0;
                for round in 0..4_u32 {
                    let path = format!("file-{round}");
                    let guard = workspace.lock().acquire(1_000, "").unwrap();
                    let put = |path: &str| Change {
                        area: Area::Tree,
                        path: path.to_owned(),
                        expect: Expect::Any,
                        edit: Edit::Put(path.to_owned()),
                    };
                    let twin = format!("{path}-twin");
                    let commit = Store::generation(&workspace)
                        .map_err(|error| CommitError::Failed { path: String::new(), error })
                        .and_then(|base| workspace.commit(&*guard, base, &[put(&path), put(&twin)], &About::default()));
                    match commit {
                        Ok(_) => expected.extend([path.clone(), twin]),
                        Err(CommitError::Failed { error: found, .. }) => {
                            assert_eq!(found, error);
                            failures += 1;
                        }
                        Err(other) => panic!("step {step}: {other:?}"),
                    }
                    failures += usize::from(workspace.put_cache("cache", b"x").is_err());
                    failures += usize::from(Store::stat(&workspace, Area::Cache, "cache").is_err_and(|e| e == error));
                    let page = workspace.inner.store().entries(Area::Tree, "", None, 0).unwrap();
                    let paths: Vec<_> = page.entries.into_iter().map(|entry| entry.path).collect();
                    assert_eq!(paths, expected, "step {step}, round {round}");
                }
                let is_over = workspace.is_failing();
                assert_eq!(failures, usize::from(!is_over), "step {step}: one fault, one failure");
                if is_over {
                    assert_eq!(step, 4 * 4, "each call was tried");
                    break;
                }
            }
        }
    }
}

/// Of each way to break the contract, the cases that must find it.
#[test]
fn stores_that_break_a_promise_fail() {
    let mut proven = BTreeSet::from(["letter-case", "normal-forms"]);
    let ways = [
        (Way::Reorders, &["listing"][..]),
        (Way::Repeats, &["listing"]),
        (Way::IgnoresExpectations, &["edits-and-expectations", "keep", "stamps-behind"]),
        (Way::ForgetsGeneration, &["generation"]),
        (Way::IgnoresBase, &["generation", "second-handle"]),
        (Way::AppliesHalf, &["all-or-nothing", "edits-and-expectations", "wrong-kind"]),
        (Way::AppliesBeforeFailing, &["faults"]),
        (Way::DropsKeeps, &["keep", "edits-and-expectations"]),
        (Way::IgnoresAt, &["stamps", "stamps-behind"]),
        (Way::EndsTooEarly, &["text-ranges"]),
        (Way::CutsCharacters, &["text-ranges", "not-text"]),
        (Way::LeavesTheArea, &["containment"]),
        (Way::TellsOldStamps, &["stamps", "edits-and-expectations"]),
        (Way::AppendsAnywhere, &["edits-and-expectations"]),
        (Way::ReplacesOnMove, &["moves"]),
        (Way::MixesAreas, &["areas"]),
        (Way::CountsNothings, &["keep"]),
        (Way::InventsFiles, &["empty-workspace", "stat"]),
        (Way::LosesBytes, &["byte-ranges"]),
        (Way::MergesChanges, &["duplicate-paths"]),
        (Way::CutsNames, &["names"]),
        (Way::CutsLargeTexts, &["large-text"]),
        (Way::KeepsCaches, &["cache"]),
        (Way::TakesAnyGuard, &["lock-lost"]),
        (Way::SharesTheLock, &["lock", "lock-between-handles"]),
        (Way::SplicesLoosely, &["splices"]),
        (Way::TakesAnyCursor, &["containment"]),
        (Way::ErasesBlindly, &["erasing"]),
    ];
    // Most of it is waiting for locks, so all at once.
    let reports = std::thread::scope(|scope| {
        let runs =
            ways.map(|(way, found_by)| (way, found_by, scope.spawn(move || run(&Wrapping { way, in_memory: true }))));
        runs.map(|(way, found_by, run)| (way, found_by, run.join().unwrap()))
    });
    for (way, found_by, report) in reports {
        must_fail(&report, found_by, &format!("{way:?}"));
        proven.extend(report.failed.iter().map(|(name, _)| *name));
    }
    // And one that claims more than it does: in it each spelling is a name of its own.
    let abilities = &[Ability::Another, Ability::Guards, Ability::LetterCase, Ability::NormalForms];
    must_fail(&run(&Memories { fold: exact, abilities }), &["letter-case", "normal-forms"], "no folding");
    // Only where something is kept can it be kept too long.
    let keeps = run(&Wrapping { way: Way::KeepsErased, in_memory: false });
    must_fail(&keeps, &["erased-everywhere"], "keeps what was to be erased");
    proven.insert("erased-everywhere");
    must_fail(&run(&Strangers), &["lock-between-handles", "second-handle"], "a lock of its own for each handle");
    // A case that nothing can fail proves nothing.
    let unproven: Vec<_> = CASES.iter().map(|case| case.name).filter(|name| !proven.contains(name)).collect();
    assert_eq!(unproven, [""; 0], "cases that found no broken store");
}

#[track_caller]
fn must_fail(report: &Report, found_by: &[&str], what: &str) {
    for case in found_by {
        assert!(
            report.failed.iter().any(|(name, broken)| name == case && !broken.is_empty()),
            "{what} is found by {case}: {:?}",
            report.failed
        );
    }
}

/// Workspaces whose second handle is one of another workspace.
struct Strangers;

struct Stranger(MemoryStore);

impl Fixture for Strangers {
    fn fresh(&self) -> Box<dyn Workspace> {
        Box::new(Stranger(MemoryStore::new(exact)))
    }

    fn abilities(&self) -> Vec<Ability> {
        vec![Ability::Another]
    }
}

impl Workspace for Stranger {
    fn store(&self) -> &dyn Store {
        &self.0
    }

    fn lock(&self) -> &dyn Lock {
        &self.0
    }

    fn another(&self) -> Option<Handle> {
        Some((Box::new(self.0.clone()), Box::new(MemoryStore::new(exact))))
    }
}
