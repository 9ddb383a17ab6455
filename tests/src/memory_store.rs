//! A workspace in memory: the smallest exact implementation of [`Store`] and [`Lock`], to hold others against and to
//! start from when writing one.
//!
//! A commit is made on a copy of the list of files, which then takes the place of the old one: that is all it takes to be
//! whole or not to be. What it does not do is to outlast the process, and an addition copies its file.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use recollex::lock::{Holder, Lock, LockError};
use recollex::store::{
    About, Area, ByteChunk, Change, CommitError, Committed, Edit, Entry, Expect, FileId, Guard, Kind, Page, Splice,
    Stamp, Store, StoreError, TextChunk,
};

/// Entries of a page whose size is left to the store.
const PAGE: usize = 1000;

/// What others see of a purpose, in bytes.
const MAX_PURPOSE: usize = 64;

/// What one part of a path has in common with every other that is one name with it. Exact names: [`exact`].
pub type Fold = fn(&str) -> String;

/// Each spelling is a name of its own.
#[must_use]
pub fn exact(part: &str) -> String {
    part.to_owned()
}

/// Upper and lower case are one name; NFC and NFD are two.
#[must_use]
pub fn ignoring_case(part: &str) -> String {
    part.to_lowercase()
}

/// A workspace in memory: its store and its lock in one. A clone is a second handle on the same workspace.
#[derive(Clone, Debug)]
pub struct MemoryStore {
    medium: Arc<Medium>,
    fold: Fold,
}

#[derive(Debug)]
struct Medium {
    id: u64,
    state: Mutex<State>,
    released: Condvar,
}

#[derive(Debug, Default)]
struct State {
    generation: u64,
    /// By area and path; the order of paths is that of code points.
    files: Files,
    /// Counts what was ever written: a token that never comes again.
    versions: u64,
    leases: u64,
    holder: Option<(u64, String)>,
    /// Which step from now on fails, and how.
    fault: Option<(usize, StoreError)>,
}

type Files = BTreeMap<(Area, String), File>;

#[derive(Clone, Debug)]
struct File {
    data: Arc<Vec<u8>>,
    version: u64,
}

impl File {
    fn stamp(&self) -> Stamp {
        Stamp { size: self.data.len() as u64, token: self.version.to_string(), racy: false }
    }
}

#[derive(Debug)]
struct Lease {
    medium: Arc<Medium>,
    number: u64,
}

impl Guard for Lease {
    /// No file of a file system, but as good: no other guard has this pair.
    fn file(&self) -> Option<FileId> {
        Some(FileId { device: self.medium.id, inode: self.number })
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        let mut state = self.medium.lock();
        if state.holder.as_ref().is_some_and(|(lease, _)| *lease == self.number) {
            state.holder = None;
        }
        drop(state);
        self.medium.released.notify_all();
    }
}

impl Medium {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// A moment at which the medium may fail.
    fn step(&mut self) -> Result<(), StoreError> {
        match &mut self.fault {
            Some((0, error)) => {
                let error = error.clone();
                self.fault = None;
                Err(error)
            }
            Some((left, _)) => {
                *left -= 1;
                Ok(())
            }
            None => Ok(()),
        }
    }

    fn write(&mut self, data: Vec<u8>) -> File {
        self.versions += 1;
        File { data: Arc::new(data), version: self.versions }
    }

    fn file(&self, area: Area, path: &str, at: Option<&Stamp>) -> Result<&File, StoreError> {
        check_path(area, path)?;
        let file = self.files.get(&(area, path.to_owned())).ok_or(StoreError::NotFound)?;
        if at.is_some_and(|at| !at.same_version(&file.stamp())) { Err(StoreError::Changed) } else { Ok(file) }
    }
}

impl MemoryStore {
    /// An empty workspace in which spellings that `fold` to one are one name.
    #[must_use]
    pub fn new(fold: Fold) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let id = NEXT.fetch_add(1, Ordering::Relaxed) | 1 << 63;
        Self { medium: Arc::new(Medium { id, state: Mutex::default(), released: Condvar::new() }), fold }
    }

    /// Writes to the tree, or removes (none) from it, as a program would that knows nothing of commits.
    pub fn write_behind(&self, path: &str, data: Option<&[u8]>) {
        let mut state = self.medium.lock();
        let key = (Area::Tree, path.to_owned());
        match data {
            Some(data) => {
                let file = state.write(data.to_vec());
                state.files.insert(key, file);
            }
            None => drop(state.files.remove(&key)),
        }
    }

    /// Whether these bytes are in any file, of any area. Nothing else is kept.
    #[must_use]
    pub fn holds(&self, bytes: &[u8]) -> bool {
        self.medium.lock().files.values().any(|file| file.data.windows(bytes.len()).any(|part| part == bytes))
    }

    /// Makes the step fail that comes after `steps` others. A commit takes one for each of its changes and one at its
    /// end; a cache write takes one. None: no step fails any more.
    pub fn fail(&self, fault: Option<(usize, StoreError)>) {
        self.medium.lock().fault = fault;
    }

    /// Whether a step that was to fail has not come.
    #[must_use]
    pub fn is_failing(&self) -> bool {
        self.medium.lock().fault.is_some()
    }
}

impl Lock for MemoryStore {
    fn acquire(&self, wait_ms: u32, purpose: &str) -> Result<Box<dyn Guard>, LockError> {
        let until = Instant::now() + Duration::from_millis(wait_ms.into());
        let mut state = self.medium.lock();
        while let Some((_, purpose)) = &state.holder {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(LockError::Held(Some(holder(purpose))));
            }
            state = self.medium.released.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        state.leases += 1;
        let number = state.leases;
        let shown = purpose.get(..purpose.floor_char_boundary(MAX_PURPOSE)).unwrap_or_default();
        state.holder = Some((number, shown.to_owned()));
        Ok(Box::new(Lease { medium: Arc::clone(&self.medium), number }))
    }

    fn current(&self) -> Result<Option<Holder>, LockError> {
        Ok(self.medium.lock().holder.as_ref().map(|(_, purpose)| holder(purpose)))
    }
}

fn holder(purpose: &str) -> Holder {
    Holder {
        process: Some(std::process::id().into()),
        purpose: Some(purpose.to_owned()).filter(|purpose| !purpose.is_empty()),
    }
}

impl Store for MemoryStore {
    fn generation(&self) -> Result<u64, StoreError> {
        Ok(self.medium.lock().generation)
    }

    fn entries(&self, area: Area, prefix: &str, cursor: Option<&str>, max: u32) -> Result<Page, StoreError> {
        if !prefix.is_empty() {
            check_path(area, prefix)?;
        }
        if let Some(cursor) = cursor {
            // A cursor need not be a path that exists, or could: what lies behind it is asked for.
            check_path(area, cursor.trim_end_matches('/'))?;
        }
        let max = if max == 0 { PAGE } else { usize::try_from(max).unwrap_or(PAGE) };
        let state = self.medium.lock();
        let mut below = state
            .files
            .iter()
            .filter(|((of, path), _)| *of == area && (prefix.is_empty() || is_below(path, prefix)))
            .filter(|((_, path), _)| cursor.is_none_or(|cursor| path.as_str() > cursor))
            .map(|((_, path), file)| Entry { path: path.clone(), kind: Kind::File, stamp: file.stamp() });
        let entries: Vec<_> = below.by_ref().take(max).collect();
        let next = below.next().and_then(|_| entries.last()).map(|entry| entry.path.clone());
        Ok(Page { entries, next, generation: state.generation })
    }

    fn stat(&self, area: Area, path: &str) -> Result<Entry, StoreError> {
        let state = self.medium.lock();
        let stamp = state.file(area, path, None)?.stamp();
        Ok(Entry { path: path.to_owned(), kind: Kind::File, stamp })
    }

    fn read_text(
        &self,
        area: Area,
        path: &str,
        at: Option<&Stamp>,
        offset: u64,
        max: u32,
    ) -> Result<TextChunk, StoreError> {
        let state = self.medium.lock();
        let file = state.file(area, path, at)?;
        // Room for one character, however little was asked for.
        let data = range(&file.data, offset, u64::from(max).max(4));
        let text = match std::str::from_utf8(data) {
            Ok(text) => text,
            Err(error) => std::str::from_utf8(&data[..error.valid_up_to()]).unwrap_or_default(),
        };
        let first = text.chars().next().map_or(0, char::len_utf8);
        let text = &text[..text.floor_char_boundary(usize::try_from(max).unwrap_or(usize::MAX)).max(first)];
        if text.is_empty() && !data.is_empty() {
            return Err(StoreError::NotText(offset));
        }
        let next = offset.saturating_add(text.len() as u64);
        Ok(TextChunk { text: text.to_owned(), next, eof: next >= file.data.len() as u64, stamp: file.stamp() })
    }

    fn read_bytes(
        &self,
        area: Area,
        path: &str,
        at: Option<&Stamp>,
        offset: u64,
        max: u32,
    ) -> Result<ByteChunk, StoreError> {
        let state = self.medium.lock();
        let file = state.file(area, path, at)?;
        let data = range(&file.data, offset, max.into());
        let eof = offset.saturating_add(data.len() as u64) >= file.data.len() as u64;
        Ok(ByteChunk { data: data.to_vec(), eof, stamp: file.stamp() })
    }

    fn commit(
        &self,
        guard: &dyn Guard,
        base: u64,
        changes: &[Change],
        _about: &About,
    ) -> Result<Committed, CommitError> {
        let mut state = self.medium.lock();
        let lease = state.holder.as_ref().map(|(lease, _)| FileId { device: self.medium.id, inode: *lease });
        if lease.is_none() || lease != guard.file() {
            return Err(CommitError::LockLost);
        }
        if state.generation != base {
            return Err(CommitError::Stale(state.generation));
        }
        let mut check =
            Check { fold: self.fold, files: &state.files, named: BTreeSet::new(), planned: BTreeMap::new() };
        let edited = changes.iter().map(|change| check.change(change)).collect::<Result<Vec<_>, _>>()?;

        let mut files = state.files.clone();
        let mut is_changed = false;
        for (change, edited) in changes.iter().zip(edited) {
            state.step().map_err(|error| CommitError::Failed { path: change.path.clone(), error })?;
            let key = (change.area, change.path.clone());
            match (edited, &change.edit) {
                (Edited::Nothing, _) => continue,
                (Edited::Content(data), _) => drop(files.insert(key, state.write(data))),
                (Edited::Gone, Edit::MoveTo(to)) => {
                    if let Some(file) = files.remove(&key) {
                        files.insert((change.area, to.clone()), file);
                    }
                }
                (Edited::Gone, _) => drop(files.remove(&key)),
            }
            is_changed = true;
        }
        state.step().map_err(|error| CommitError::Failed { path: String::new(), error })?;
        if is_changed {
            state.files = files;
            state.generation += 1;
        }
        let stamp = |change: &Change| {
            let path = if let Edit::MoveTo(to) = &change.edit { to } else { &change.path };
            state.files.get(&(change.area, path.clone())).map(File::stamp)
        };
        Ok(Committed { generation: state.generation, stamps: changes.iter().map(stamp).collect() })
    }

    fn put_cache(&self, name: &str, data: &[u8]) -> Result<Stamp, StoreError> {
        self.write_cache(name, |_| Ok(data.to_vec()))
    }

    fn append_cache(&self, name: &str, length: u64, data: &[u8]) -> Result<Stamp, StoreError> {
        self.write_cache(name, |old| {
            let old = old.unwrap_or_default();
            if old.len() as u64 == length { Ok([old, data].concat()) } else { Err(StoreError::Changed) }
        })
    }

    fn drop_cache(&self, name: &str) -> Result<(), StoreError> {
        check_path(Area::Cache, name)?;
        let mut state = self.medium.lock();
        state.step()?;
        state.files.remove(&(Area::Cache, name.to_owned()));
        Ok(())
    }
}

impl MemoryStore {
    fn write_cache(
        &self,
        name: &str,
        content: impl FnOnce(Option<&[u8]>) -> Result<Vec<u8>, StoreError>,
    ) -> Result<Stamp, StoreError> {
        check_path(Area::Cache, name)?;
        let mut state = self.medium.lock();
        let key = (Area::Cache, name.to_owned());
        if kind_fault(&state.files, Area::Cache, name).is_some() {
            return Err(StoreError::Denied("a file where a directory is needed, or the reverse".to_owned()));
        }
        let data = content(state.files.get(&key).map(|file| file.data.as_slice()))?;
        state.step()?;
        let file = state.write(data);
        let stamp = file.stamp();
        state.files.insert(key, file);
        Ok(stamp)
    }
}

/// What a change comes to.
enum Edited {
    Nothing,
    Content(Vec<u8>),
    Gone,
}

/// The checks of one commit, each change against what is there and against the changes before it.
struct Check<'a> {
    fold: Fold,
    files: &'a Files,
    named: BTreeSet<(Area, &'a str)>,
    /// What would come into being, directories too: from its folded path to how it is spelled, and whether it is a file.
    planned: BTreeMap<(Area, String), (&'a str, bool)>,
}

impl<'a> Check<'a> {
    fn change(&mut self, change: &'a Change) -> Result<Edited, CommitError> {
        let (area, path) = (change.area, change.path.as_str());
        let failed = |error| CommitError::Failed { path: path.to_owned(), error };
        if area == Area::Cache {
            return Err(failed(StoreError::Denied("the cache is no part of commits".to_owned())));
        }
        let file = self.name(area, path)?;
        let is_as_expected = match (&change.expect, file) {
            (Expect::Any, _) | (Expect::Absent, None) => true,
            (Expect::Same(stamp), Some(file)) => stamp.same_version(&file.stamp()),
            (Expect::Absent, Some(_)) | (Expect::Same(_), None) => false,
        };
        let changed = || CommitError::Changed(path.to_owned());
        if !is_as_expected {
            return Err(changed());
        }
        let old = file.map(|file| file.data.as_slice());
        Ok(match (&change.edit, old) {
            (Edit::Keep, _) => Edited::Nothing,
            (Edit::Put(text), _) => {
                self.creates(area, path)?;
                Edited::Content(text.clone().into_bytes())
            }
            (Edit::Append { length, text }, old) => {
                if old.unwrap_or_default().len() as u64 != *length {
                    return Err(changed());
                }
                self.creates(area, path)?;
                if old.is_some() && text.is_empty() {
                    Edited::Nothing
                } else {
                    Edited::Content([old.unwrap_or_default(), text.as_bytes()].concat())
                }
            }
            (Edit::Splice(_) | Edit::Delete | Edit::MoveTo(_), None) => return Err(failed(StoreError::NotFound)),
            (Edit::Splice(splices), Some(_)) if splices.is_empty() => Edited::Nothing,
            (Edit::Splice(splices), Some(old)) => {
                Edited::Content(spliced(old, splices).map_err(|error| match error {
                    StoreError::Changed => changed(),
                    error => failed(error),
                })?)
            }
            (Edit::Delete, Some(_)) => Edited::Gone,
            (Edit::MoveTo(to), Some(_)) => {
                if self.name(area, to)?.is_some() {
                    return Err(CommitError::Changed(to.clone()));
                }
                self.creates(area, to)?;
                Edited::Gone
            }
        })
    }

    /// What is at a path that the commit names, for the only time.
    fn name(&mut self, area: Area, path: &'a str) -> Result<Option<&'a File>, CommitError> {
        let failed = |error| CommitError::Failed { path: path.to_owned(), error };
        check_path(area, path).map_err(failed)?;
        if !self.named.insert((area, path)) {
            return Err(failed(StoreError::Denied("the commit names this path twice".to_owned())));
        }
        match kind_fault(self.files, area, path) {
            Some(at) => Err(CommitError::WrongKind(at.to_owned())),
            None => Ok(self.files.get(&(area, path.to_owned()))),
        }
    }

    /// A path would come into being, with each prefix that is missing. Is one of them the name of something else?
    fn creates(&mut self, area: Area, path: &'a str) -> Result<(), CommitError> {
        for prefix in prefixes(path) {
            let is_there = |of: &(Area, String)| of.0 == area && (of.1 == prefix || is_below(&of.1, prefix));
            if self.files.keys().any(is_there) {
                continue;
            }
            let (above, name) = prefix.rsplit_once('/').unwrap_or(("", prefix));
            let name = (self.fold)(name);
            let twin = self.files.keys().filter(|(of, _)| *of == area).find_map(|(_, other)| {
                let other = prefixes(other).nth(prefix.split('/').count() - 1)?;
                let (beside, other_name) = other.rsplit_once('/').unwrap_or(("", other));
                (beside == above && (self.fold)(other_name) == name).then_some(other)
            });
            let collision =
                |existing: &str| CommitError::Collision { planned: prefix.to_owned(), existing: existing.to_owned() };
            if let Some(twin) = twin {
                return Err(collision(twin));
            }
            let key = prefix.split('/').map(self.fold).collect::<Vec<_>>().join("/");
            let is_file = prefix.len() == path.len();
            match self.planned.get(&(area, key.clone())) {
                Some((other, _)) if *other != prefix => return Err(collision(other)),
                Some((_, other_is_file)) if *other_is_file || is_file => {
                    return Err(CommitError::WrongKind(prefix.to_owned()));
                }
                _ => drop(self.planned.insert((area, key), (prefix, is_file))),
            }
        }
        Ok(())
    }
}

/// The shortest prefix of `path` that is a file, or `path` if it is a directory.
fn kind_fault<'a>(files: &Files, area: Area, path: &'a str) -> Option<&'a str> {
    let is_file = |prefix: &&str| prefix.len() < path.len() && files.contains_key(&(area, (*prefix).to_owned()));
    let is_directory = || files.keys().any(|(of, other)| *of == area && is_below(other, path));
    prefixes(path).find(is_file).or_else(|| is_directory().then_some(path))
}

fn spliced(old: &[u8], splices: &[Splice]) -> Result<Vec<u8>, StoreError> {
    let old = std::str::from_utf8(old).map_err(|error| StoreError::NotText(error.valid_up_to() as u64))?;
    let (mut new, mut last) = (String::new(), 0);
    for splice in splices {
        let end = splice.offset.checked_add(splice.remove).filter(|end| *end <= old.len() as u64);
        let [start, end] = [Some(splice.offset), end].map(|at| at.and_then(|at| usize::try_from(at).ok()));
        let (Some(start), Some(end)) = (start, end) else { return Err(StoreError::Changed) };
        if start < last {
            return Err(StoreError::Denied("the splices overlap or do not ascend".to_owned()));
        }
        if let Some(at) = [start, end].into_iter().find(|at| !old.is_char_boundary(*at)) {
            return Err(StoreError::NotText(at as u64));
        }
        new.push_str(&old[last..start]);
        new.push_str(&splice.insert);
        last = end;
    }
    new.push_str(&old[last..]);
    Ok(new.into_bytes())
}

/// `a`, `a/b` and `a/b/c` of `a/b/c`.
fn prefixes(path: &str) -> impl Iterator<Item = &str> {
    path.match_indices('/').map(|(at, _)| at).chain([path.len()]).map(|end| &path[..end])
}

fn is_below(path: &str, directory: &str) -> bool {
    path.strip_prefix(directory).is_some_and(|rest| rest.starts_with('/'))
}

fn range(data: &[u8], offset: u64, max: u64) -> &[u8] {
    let length = data.len() as u64;
    let (from, to) = (offset.min(length), offset.saturating_add(max).min(length));
    let [from, to] = [from, to].map(|at| usize::try_from(at).unwrap_or(data.len()));
    &data[from..to]
}

fn check_path(area: Area, path: &str) -> Result<(), StoreError> {
    let denied = |what: &str| Err(StoreError::Denied(what.to_owned()));
    if path.contains('\0') {
        return denied("the path holds a NUL");
    }
    if path.split('/').any(|part| matches!(part, "" | "." | "..")) {
        return denied("the path is absolute, or has a part that is empty, . or ..");
    }
    let first = path.split('/').next().unwrap_or_default().to_lowercase();
    let is_internal = first == ".git"
        || [".scriptorium", ".nativemem"]
            .iter()
            .any(|internal| first.strip_prefix(internal).is_some_and(|rest| rest.is_empty() || rest.starts_with('-')));
    if area == Area::Tree && is_internal { denied("the path is internal") } else { Ok(()) }
}
