//! The store over a directory: [`Directory`], which puts the parts of this module together.

use std::fmt;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};

#[cfg(target_os = "linux")]
use super::Watch;
use super::journal::{Head, Pending};
use super::path::RelPath;
use super::place::Place;
use super::redo::{self, Kept};
use super::undo::UndoLimits;
use super::view::{OpenFile, TRIES, View};
use super::walk::{Listing, Walk, check_listing};
#[cfg(target_os = "linux")]
use super::watch::Watcher;
use super::{
    About, Area, ByteChunk, Change, CommitError, Committed, Entry, Guard, Page, Stamp, Store, StoreError, TextChunk,
    Trouble, cache, commit,
};

/// Entries of a page whose size is left to the store, and the most that any page has.
const PAGE: usize = 4096;
const MAX_PAGE: usize = 1 << 16;

/// The longest chunk of a file, in bytes. Whoever wants more reads again.
const MAX_CHUNK: usize = 16 << 20;

/// Listings that may go on at the same time without being read anew for each page.
const WALKS: usize = 8;

/// A workspace in a directory.
///
/// - `tree` is the directory without `.git`, `.scriptorium`, `.nativemem` and what begins with one of the last two and
///   a hyphen. A spelling of these names that some file systems would take for them is hidden too.
/// - `runtime` is `.scriptorium`, or `.nativemem` where a directory of that name exists, without the lock file and the
///   directory `recollex`, which hold what makes commits safe.
/// - `cache` is `.scriptorium-recollex`; it may be deleted at any time.
///
/// The directory need not exist: then it is an empty workspace. Reading creates nothing. Making an instance touches
/// nothing; it may be shared by threads, and any number of them, in any number of processes, may be at one directory.
///
/// # What a commit costs
///
/// It syncs each file that is written whole or spliced, once, and then their directory; the journal and its directory,
/// once each; each file that is added to, once; each directory in which names changed, once. One addition: three syncs.
/// One new file in an existing directory: five. Whole files of one commit are waited for together, several at a time, so a
/// commit of many takes far less than as many commits. To see that no new name is one to some media with another, the
/// directories that get new names are read.
///
/// A splice copies what it does not change, within the kernel where that can be; and so does an addition to a file that
/// has other hard links, which are not to change with it.
pub struct Directory {
    pub(super) place: Place,
    pub(super) journal: Mutex<Option<Arc<Pending>>>,
    /// What commits leave behind so that they can be taken back; none: nothing.
    pub(super) undo: Option<UndoLimits>,
    /// Whether leftovers of caches were looked for.
    pub(super) cache_is_tidy: AtomicBool,
    walks: Mutex<Vec<(Head, Walk)>>,
}

impl fmt::Debug for Directory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Directory").field("root", &self.place.root()).finish_non_exhaustive()
    }
}

/// What [`Directory::recover`] found to do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Recovery {
    /// Changes of an unfinished commit that were put in place.
    pub applied: usize,
    /// Changes that were kept aside, because another program had changed their targets: see [`Directory::kept`].
    pub kept: usize,
    /// The journal was damaged, and kept aside whole.
    pub damaged: bool,
}

impl Directory {
    /// The workspace at `root`. A relative path counts from the current directory of this moment.
    #[must_use]
    pub fn new(root: &Path) -> Self {
        Self {
            place: Place::new(root),
            journal: Mutex::default(),
            undo: None,
            cache_is_tidy: AtomicBool::new(false),
            walks: Mutex::default(),
        }
    }

    /// The same, and its commits can be [taken back](Self::undo), within these limits.
    ///
    /// What a commit replaces or removes then stays beside the journal under a further name. It costs no sync and no copy.
    #[must_use]
    pub fn with_undo(mut self, limits: UndoLimits) -> Self {
        self.undo = Some(limits);
        self
    }

    /// The workspace's directory, absolute.
    #[must_use]
    pub fn root(&self) -> &Path {
        self.place.root()
    }

    /// Whether a commit is not yet in place, which readers here do not notice and other programs do. Its writer is at
    /// work or died; in that case the next commit, or [`recover`](Self::recover), completes it.
    ///
    /// # Errors
    /// As the medium fails.
    pub fn is_unfinished(&self) -> Result<bool, StoreError> {
        let view = View::open(&self.place, &self.journal)?;
        Ok(view.is_some_and(|view| !matches!(view.head, Head::Absent | Head::Settled { .. })))
    }

    /// Completes what a writer that died left unfinished. Each commit begins with this; whoever only wants other
    /// programs to see the workspace as it is calls it with the lock taken.
    ///
    /// A change is put in place only if its path is still as its commit found it, or in part as its commit makes it.
    /// Otherwise another program came between: what it wrote stays, and the change is kept aside.
    ///
    /// # Errors
    /// `Denied` without the lock, for a journal of a newer version, and where nothing may be written; `Full`; as the
    /// medium fails. What is not yet in place stays in the journal, and visible to readers here.
    pub fn recover(&self, guard: &dyn Guard) -> Result<Recovery, StoreError> {
        let ground = commit::open(&self.place, guard)?;
        commit::recover(&ground).map(|(_, recovery)| recovery)
    }

    /// What could not be put in place and waits for a person to compare it, oldest commit first.
    ///
    /// # Errors
    /// As the medium fails.
    pub fn kept(&self) -> Result<Vec<Kept>, StoreError> {
        match View::open(&self.place, &self.journal)? {
            Some(view) => redo::kept(&view.ground, self.place.root()),
            None => Ok(Vec::new()),
        }
    }

    /// Reads through views until one lasts for the whole of `read`. None: there is no workspace.
    ///
    /// `Changed` of a file means that it changed while it was read; with `settled`, that is an answer.
    fn read<T>(&self, settled: bool, read: impl Fn(&View) -> Result<T, StoreError>) -> Result<Option<T>, StoreError> {
        for _ in 0..TRIES {
            let Some(view) = View::open(&self.place, &self.journal)? else { return Ok(None) };
            view.check_readable()?;
            let result = read(&view);
            if !view.is_current()? || (!settled && matches!(result, Err(StoreError::Changed))) {
                std::thread::yield_now();
                continue;
            }
            return result.map(Some);
        }
        Err(StoreError::Changed)
    }

    fn read_file<T>(
        &self,
        area: Area,
        path: &str,
        at: Option<&Stamp>,
        read: impl Fn(&OpenFile, Stamp) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let path = RelPath::parse(area, path)?;
        let result = self.read(at.is_some(), |view| {
            let open = view.open_file(area, path)?;
            let stamp = open.stamp();
            if at.is_some_and(|at| !at.same_version(&stamp)) {
                return Err(StoreError::Changed);
            }
            let result = read(&open, stamp);
            if open.is_current()? { result } else { Err(StoreError::Changed) }
        });
        result?.ok_or(StoreError::NotFound)
    }
}

impl Store for Directory {
    #[cfg(target_os = "linux")]
    fn watch(&self) -> Option<Box<dyn Watch>> {
        Some(Box::new(Watcher::new(self.place.clone())))
    }

    fn generation(&self) -> Result<u64, StoreError> {
        Ok(View::open(&self.place, &self.journal)?.map_or(0, |view| view.head.generation()))
    }

    fn entries(&self, area: Area, prefix: &str, cursor: Option<&str>, max: u32) -> Result<Page, StoreError> {
        check_listing(area, prefix, cursor)?;
        let max = if max == 0 { PAGE } else { usize::try_from(max).unwrap_or(MAX_PAGE).min(MAX_PAGE) };
        let page = self.read(false, |view| {
            // What a pending commit has not come to is asked first: what it comes to in between, both then show.
            let overlay = view.overlay(area, |path| {
                let below = prefix.is_empty() || path.strip_prefix(prefix).is_some_and(|rest| rest.starts_with('/'));
                below && cursor.is_none_or(|cursor| path > cursor)
            })?;
            let walk = match cursor.and_then(|cursor| self.take_walk(&view.head, area, prefix, cursor)) {
                Some(walk) => walk,
                None => Walk::begin(&view.ground, area, prefix, cursor)?,
            };
            let mut listing =
                Listing { walk, ground: &view.ground, overlay: overlay.into_iter().peekable(), ahead: None };
            let mut entries = Vec::new();
            while entries.len() < max
                && let Some(entry) = listing.next()?
            {
                entries.push(entry);
            }
            let Listing { mut walk, mut overlay, ahead, .. } = listing;
            let is_over = walk.is_over() && ahead.is_none() && overlay.peek().is_none();
            let next = entries.last().filter(|_| !is_over).map(|entry| entry.path.clone());
            // An entry that is ahead is lost to the walk: the next page begins anew.
            if next.is_some() && ahead.is_none() && view.pending.is_none() {
                walk.rest();
                self.keep_walk(view.head.clone(), walk);
            }
            Ok(Page { entries, next, generation: view.head.generation() })
        })?;
        Ok(page.unwrap_or(Page { entries: Vec::new(), next: None, generation: 0 }))
    }

    fn stat(&self, area: Area, path: &str) -> Result<Entry, StoreError> {
        let path = RelPath::parse(area, path)?;
        self.read(false, |view| view.stat(area, path))?.ok_or(StoreError::NotFound)
    }

    fn read_text(
        &self,
        area: Area,
        path: &str,
        at: Option<&Stamp>,
        offset: u64,
        max: u32,
    ) -> Result<TextChunk, StoreError> {
        // Room for one character, however little was asked for.
        let max = usize::try_from(max).unwrap_or(MAX_CHUNK).min(MAX_CHUNK);
        let room = max.max(char::MAX.len_utf8());
        self.read_file(area, path, at, |open, stamp| {
            let data = open.read(offset, room)?;
            let at_end = offset.saturating_add(data.len() as u64) >= open.size();
            let text = text_prefix(data, max, at_end).ok_or(StoreError::NotText(offset))?;
            let next = offset.saturating_add(text.len() as u64);
            Ok(TextChunk { eof: next >= open.size(), text, next, stamp })
        })
    }

    fn read_bytes(
        &self,
        area: Area,
        path: &str,
        at: Option<&Stamp>,
        offset: u64,
        max: u32,
    ) -> Result<ByteChunk, StoreError> {
        let max = usize::try_from(max).unwrap_or(MAX_CHUNK).min(MAX_CHUNK);
        self.read_file(area, path, at, |open, stamp| {
            let data = open.read(offset, max)?;
            Ok(ByteChunk { eof: offset.saturating_add(data.len() as u64) >= open.size(), data, stamp })
        })
    }

    /// A commit that erases leaves nothing behind to be taken back with, and removes what others left. It is `Denied` while
    /// a content lies aside after a conflict, which may hold what is to be gone. The blocks that a removed file had on its
    /// medium are not written over.
    fn commit(
        &self,
        guard: &dyn Guard,
        base: u64,
        changes: &[Change],
        about: &About,
    ) -> Result<Committed, CommitError> {
        commit::commit(self, guard, base, changes, &mut commit::AsGiven, about)
    }

    fn troubles(&self) -> Result<Vec<Trouble>, StoreError> {
        self.look_for_troubles()
    }

    fn complete(&self, guard: &dyn Guard) -> Result<(), StoreError> {
        self.recover(guard).map(drop)
    }

    fn put_cache(&self, name: &str, data: &[u8]) -> Result<Stamp, StoreError> {
        cache::put(self, name, data)
    }

    fn append_cache(&self, name: &str, length: u64, data: &[u8]) -> Result<Stamp, StoreError> {
        cache::append(self, name, length, data)
    }

    fn drop_cache(&self, name: &str) -> Result<(), StoreError> {
        cache::drop(self, name)
    }
}

impl Directory {
    fn take_walk(&self, head: &Head, area: Area, prefix: &str, cursor: &str) -> Option<Walk> {
        let mut walks = self.walks.lock().unwrap_or_else(PoisonError::into_inner);
        let at = walks.iter().position(|(of, walk)| of == head && walk.continues(area, prefix, cursor))?;
        Some(walks.swap_remove(at).1)
    }

    fn keep_walk(&self, head: Head, walk: Walk) {
        let mut walks = self.walks.lock().unwrap_or_else(PoisonError::into_inner);
        if walks.len() == WALKS {
            walks.remove(0);
        }
        walks.push((head, walk));
    }
}

/// The text at the beginning of `data`, at most `max` bytes of it but at least one character; none if it begins with
/// no character. `at_end`: nothing follows `data`, so that a character cut off there is no character.
fn text_prefix(mut data: Vec<u8>, max: usize, at_end: bool) -> Option<String> {
    if !at_end {
        // Cut off first what would make a second look at all of it necessary.
        data.truncate(data.len() - unfinished(&data));
    }
    let mut text = match String::from_utf8(data) {
        Ok(text) => text,
        Err(error) => {
            let valid = error.utf8_error().valid_up_to();
            let mut data = error.into_bytes();
            data.truncate(valid);
            String::from_utf8(data).ok().filter(|text| !text.is_empty())?
        }
    };
    if text.len() > max {
        let first = text.chars().next().map_or(0, char::len_utf8);
        text.truncate(text.floor_char_boundary(max).max(first));
    }
    Some(text)
}

/// How many bytes at the end begin a character and do not finish it.
fn unfinished(data: &[u8]) -> usize {
    for (seen, byte) in (1..=3).zip(data.iter().rev()) {
        let needed = match byte {
            0x80..=0xbf => continue,
            0xc0..=0xdf => 2,
            0xe0..=0xef => 3,
            0xf0..=0xff => 4,
            _ => 1,
        };
        return if needed > seen { seen } else { 0 };
    }
    0
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::super::{About, Edit, Expect};
    use super::*;
    use crate::lock::{FileLock, Lock as _};

    fn commit(root: &Path, text: &str) {
        let guard = FileLock::new(root).acquire(10_000, "").unwrap();
        let store = Directory::new(root);
        let edit = Edit::Put(text.to_owned());
        let change = Change { area: Area::Tree, path: "a".to_owned(), expect: Expect::Any, edit };
        store.commit(&*guard, store.generation().unwrap(), &[change], &About::default()).unwrap();
    }

    #[test]
    fn a_read_that_a_commit_came_into_is_done_again() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path();
        commit(root, "old");
        let store = Directory::new(root);
        let tries = Cell::new(0);
        let seen = store.read(false, |view| {
            tries.set(tries.get() + 1);
            if tries.get() <= 2 {
                commit(root, "new");
            }
            Ok(view.head.generation())
        });
        assert_eq!((seen, tries.get()), (Ok(Some(3)), 3));
        // But not for ever.
        let seen = store.read(false, |_| {
            commit(root, "newer");
            Ok(())
        });
        assert_eq!(seen, Err(StoreError::Changed));
    }

    #[test]
    fn a_file_that_changes_while_it_is_read_is_read_again() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a");
        std::fs::write(&path, "old").unwrap();
        let store = Directory::new(directory.path());
        let tries = Cell::new(0);
        let read = |at: Option<&Stamp>| {
            tries.set(0);
            store.read_file(Area::Tree, "a", at, |open, _| {
                tries.set(tries.get() + 1);
                let first = open.read(0, 2)?;
                if tries.get() == 1 {
                    // In place, as an editor does that no lock stops.
                    std::fs::write(&path, "new!").unwrap();
                }
                Ok([first, open.read(2, 9)?].concat())
            })
        };
        assert_eq!((read(None), tries.get()), (Ok(b"new!".to_vec()), 2));
        let stamp = store.stat(Area::Tree, "a").unwrap().stamp;
        assert_eq!((read(Some(&stamp)), tries.get()), (Err(StoreError::Changed), 1));
    }
}
