//! What readers see: the files as they are, under what a pending journal says they will be.
//!
//! A reader takes no lock. It looks at the journal, reads, and looks at the journal again; if a commit came between, it
//! reads anew. While a commit is pending, for a moment or because its writer died, each of its paths is shown as the
//! commit makes it ([`redo::judge`] tells whether it is so already), also on a medium that cannot be written. Must not
//! change anything.

use std::collections::BTreeMap;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, PoisonError};

use rustix::fs::{FileType, Stat};
use rustix::io::Errno;

use super::disk;
use super::ground::{Ground, Way, descend};
use super::journal::{self, Head, Pending, Step};
use super::path::RelPath;
use super::place::{self, Place};
use super::redo::{self, Verdict};
use super::{Area, Entry, Kind, Stamp, StoreError};

/// How often a reader tries again while commits come between. Each try takes far less time than a commit.
pub(super) const TRIES: usize = 100;

/// A workspace as one reader sees it at one moment.
#[derive(Debug)]
pub(super) struct View {
    pub(super) ground: Ground,
    pub(super) head: Head,
    pub(super) pending: Option<Arc<Pending>>,
}

/// What a pending commit makes of a path that it has not come to yet.
enum Shown<'a> {
    Gone,
    /// The staged file of that name.
    Staged(&'a str),
    /// The file with the addition of that entry.
    Joined(usize),
    /// The file that is still at that path.
    Moved(&'a str),
}

impl View {
    /// Looks at a workspace; none if its root does not exist. `cache` saves reading the same pending journal again.
    pub(super) fn open(place: &Place, cache: &Mutex<Option<Arc<Pending>>>) -> Result<Option<Self>, StoreError> {
        for _ in 0..TRIES {
            let Some(ground) = Ground::open(place)? else { return Ok(None) };
            let (head, file) = match ground.own() {
                Some(own) => journal::head(own)?,
                None => (Head::Absent, None),
            };
            let pending = match (&head, file) {
                (Head::Pending { digest, .. }, Some(file)) => {
                    let mut cache = cache.lock().unwrap_or_else(PoisonError::into_inner);
                    match cache
                        .as_ref()
                        .filter(|known| &known.digest == digest && known.generation == head.generation())
                    {
                        Some(known) => Some(Arc::clone(known)),
                        None => match journal::body(&file, &head)?.map(Arc::new) {
                            Some(read) => {
                                *cache = Some(Arc::clone(&read));
                                Some(read)
                            }
                            // Settled or replaced while it was read?
                            None if is_head(&ground, &head)? => None,
                            None => continue,
                        },
                    }
                }
                _ => None,
            };
            return Ok(Some(Self { ground, head, pending }));
        }
        Err(StoreError::Changed)
    }

    /// Whether no commit came since this view was taken.
    pub(super) fn is_current(&self) -> Result<bool, StoreError> {
        is_head(&self.ground, &self.head)
    }

    /// Refuses what an unknown pending commit would show wrongly.
    pub(super) fn check_readable(&self) -> Result<(), StoreError> {
        match self.head {
            Head::Foreign { version, .. } => Err(StoreError::Denied(format!(
                "a commit of a newer version (journal {version}) is unfinished: use that version once"
            ))),
            _ => Ok(()),
        }
    }

    /// One path's entry.
    pub(super) fn stat(&self, area: Area, path: RelPath<'_>) -> Result<Entry, StoreError> {
        if let Some(shown) = self.shown(area, path.as_str())? {
            return self.shown_entry(area, path.as_str(), shown)?.ok_or(StoreError::NotFound);
        }
        let parent = self.parent(area, path)?;
        let stat = disk::look(&parent, path.name())
            .map_err(|error| disk::store_error(error, &format!("reading {}", path.as_str())))?
            .ok_or(StoreError::NotFound)?;
        let kind = kind_of(&stat).ok_or(StoreError::NotFound)?;
        Ok(Entry { path: path.as_str().to_owned(), kind, stamp: disk::stamp(&stat) })
    }

    /// Opens one file.
    pub(super) fn open_file(&self, area: Area, path: RelPath<'_>) -> Result<OpenFile, StoreError> {
        match self.shown(area, path.as_str())? {
            None => self.open_plain(area, path),
            Some(shown) => self.open_shown(area, path, shown),
        }
    }

    fn open_shown(&self, area: Area, path: RelPath<'_>, shown: Shown<'_>) -> Result<OpenFile, StoreError> {
        match shown {
            Shown::Gone => Err(StoreError::NotFound),
            Shown::Staged(stage) => {
                let own = self.ground.own().ok_or(StoreError::Changed)?;
                // Renamed into place this very moment: to be looked at again.
                let file = disk::open_file(own, stage, false).map_err(|error| match error {
                    Errno::NOENT => StoreError::Changed,
                    other => disk::store_error(other, &format!("reading {}", path.as_str())),
                })?;
                OpenFile::new(file)
            }
            Shown::Joined(index) => {
                let mut open = self.open_plain(area, path)?;
                open.joined = self.pending.clone().map(|pending| (pending, index));
                Ok(open)
            }
            Shown::Moved(from) => self.open_plain(area, RelPath::parse(area, from)?).map_err(|error| match error {
                StoreError::NotFound => StoreError::Changed,
                other => other,
            }),
        }
    }

    /// What a pending commit makes of those paths of an area that are wanted and that it has not come to yet: none where it
    /// removes them.
    pub(super) fn overlay(
        &self,
        area: Area,
        wanted: impl Fn(&str) -> bool,
    ) -> Result<BTreeMap<String, Option<Entry>>, StoreError> {
        let mut overlay = BTreeMap::new();
        let entries = self.pending.iter().flat_map(|pending| pending.entries.iter().enumerate());
        for (index, entry) in entries.filter(|(_, entry)| entry.area == area) {
            for path in entry.paths().filter(|path| wanted(path)) {
                if let Some(shown) = self.made_by(index, entry, path)? {
                    overlay.insert(path.to_owned(), self.shown_entry(area, path, shown)?);
                }
            }
        }
        Ok(overlay)
    }

    fn shown(&self, area: Area, path: &str) -> Result<Option<Shown<'_>>, StoreError> {
        let Some(pending) = &self.pending else { return Ok(None) };
        let named = pending.entries.iter().enumerate().find(|(_, e)| e.area == area && e.paths().any(|p| p == path));
        named.map_or(Ok(None), |(index, entry)| self.made_by(index, entry, path))
    }

    /// What the entry of that number of a pending commit makes of one of its paths; none if it has come to it.
    fn made_by<'a>(
        &self,
        index: usize,
        entry: &'a journal::Entry,
        path: &str,
    ) -> Result<Option<Shown<'a>>, StoreError> {
        if redo::judge(&self.ground, entry)? != Verdict::Due {
            return Ok(None);
        }
        Ok(Some(match &entry.step {
            Step::Replace { stage, .. } => Shown::Staged(stage),
            Step::Append { .. } => Shown::Joined(index),
            Step::Delete { .. } => Shown::Gone,
            Step::Move { to, .. } if to == path => Shown::Moved(&entry.path),
            Step::Move { .. } => Shown::Gone,
        }))
    }

    fn shown_entry(&self, area: Area, path: &str, shown: Shown<'_>) -> Result<Option<Entry>, StoreError> {
        if matches!(shown, Shown::Gone) {
            return Ok(None);
        }
        let open = self.open_shown(area, RelPath::parse(area, path)?, shown)?;
        Ok(Some(Entry { path: path.to_owned(), kind: Kind::File, stamp: open.stamp() }))
    }

    fn open_plain(&self, area: Area, path: RelPath<'_>) -> Result<OpenFile, StoreError> {
        let parent = self.parent(area, path)?;
        disk::open_file(&parent, path.name(), false)
            .map_err(|error| disk::store_error(error, &format!("opening {}", path.as_str())))
            .and_then(OpenFile::new)
    }

    fn parent(&self, area: Area, path: RelPath<'_>) -> Result<OwnedFd, StoreError> {
        let base = self.ground.base(area)?.ok_or(StoreError::NotFound)?;
        match descend(base, path.parent())
            .map_err(|error| disk::store_error(error, &format!("opening {}", path.as_str())))?
        {
            Way::Open(parent) => Ok(parent),
            Way::Missing(..) | Way::File(_) => Err(StoreError::NotFound),
            Way::Link(prefix) => Err(StoreError::Denied(format!("{prefix} is a symbolic link"))),
        }
    }
}

/// Whether the journal still says what it said.
fn is_head(ground: &Ground, head: &Head) -> Result<bool, StoreError> {
    if let Some(own) = ground.own() {
        return Ok(journal::head(own)?.0 == *head);
    }
    // There was no journal. Is there one now?
    let own = match ground.runtime() {
        Some(runtime) => place::open_own(runtime)?,
        None => match place::open_runtime(ground.root()) {
            Ok(Some(runtime)) => place::open_own(&runtime)?,
            _ => None,
        },
    };
    Ok(match own {
        Some(own) => journal::head(&own)?.0 == *head,
        None => true,
    })
}

/// What the contract calls a file of this type; none: a directory.
pub(super) fn kind_of(stat: &Stat) -> Option<Kind> {
    match disk::file_type(stat) {
        FileType::RegularFile => Some(Kind::File),
        FileType::Directory => None,
        FileType::Symlink => Some(Kind::Symlink),
        _ => Some(Kind::Special),
    }
}

/// A file open for reading, as a view shows it.
#[derive(Debug)]
pub(super) struct OpenFile {
    file: OwnedFd,
    stat: Stat,
    /// The addition that is to be shown at its end: an entry of a pending commit.
    joined: Option<(Arc<Pending>, usize)>,
}

impl OpenFile {
    fn new(file: OwnedFd) -> Result<Self, StoreError> {
        let stat = rustix::fs::fstat(&file).map_err(|error| disk::store_error(error, "reading"))?;
        match disk::file_type(&stat) {
            FileType::RegularFile => Ok(Self { file, stat, joined: None }),
            _ => Err(StoreError::Denied("not a regular file".to_owned())),
        }
    }

    /// The addition, and where it begins.
    fn addition(&self) -> Option<(u64, &str, u64)> {
        let (pending, index) = self.joined.as_ref()?;
        match &pending.entries.get(*index)?.step {
            Step::Append { length, text, .. } => Some((*length, text, pending.generation)),
            _ => None,
        }
    }

    /// The version that is read.
    pub(super) fn stamp(&self) -> Stamp {
        let mut stamp = disk::stamp(&self.stat);
        if let Some((length, text, generation)) = self.addition() {
            stamp.size = length + text.len() as u64;
            // In front: what is behind the last `-` names the file, which stays the same.
            stamp.token = format!("{generation}+{}", stamp.token);
        }
        stamp
    }

    /// Its length in bytes.
    pub(super) fn size(&self) -> u64 {
        self.addition().map_or(disk::size(&self.stat), |(length, text, _)| length + text.len() as u64)
    }

    /// Reads at most `most` bytes from `offset` on; fewer only at the end.
    pub(super) fn read(&self, offset: u64, most: usize) -> Result<Vec<u8>, StoreError> {
        let failed = |error| disk::store_error(error, "reading");
        // No more room than there are bytes: most files are small, whatever is asked for.
        let most = usize::try_from(self.size().saturating_sub(offset)).unwrap_or(usize::MAX).min(most);
        let Some((length, text, _)) = self.addition() else {
            return disk::read_at(&self.file, offset, most).map_err(failed);
        };
        let here = usize::try_from(length.saturating_sub(offset)).unwrap_or(usize::MAX).min(most);
        let mut data = disk::read_at(&self.file, offset, here).map_err(failed)?;
        if data.len() == here {
            let from = usize::try_from(offset.saturating_sub(length)).unwrap_or(usize::MAX);
            data.extend(text.as_bytes().iter().skip(from).take(most - here));
        }
        Ok(data)
    }

    /// Whether the file is still as it was when it was opened.
    pub(super) fn is_current(&self) -> Result<bool, StoreError> {
        let now = rustix::fs::fstat(&self.file).map_err(|error| disk::store_error(error, "reading"))?;
        let of = |stat: &Stat| (disk::size(stat), disk::Time::modified(stat), disk::Time::changed(stat));
        Ok(of(&now) == of(&self.stat))
    }
}

#[cfg(test)]
mod tests {
    use super::super::{About, Change, Directory, Edit, Expect, Store as _};
    use super::*;
    use crate::lock::{FileLock, Lock as _};

    #[test]
    fn a_view_knows_when_a_commit_came() {
        let directory = tempfile::tempdir().unwrap();
        let place = Place::new(directory.path());
        let view = || View::open(&place, &Mutex::default()).unwrap().unwrap();
        let store = Directory::new(directory.path());
        let commit = || {
            let guard = FileLock::new(directory.path()).acquire(0, "").unwrap();
            let edit = Edit::Put("x".to_owned());
            let change = Change { area: Area::Tree, path: "a".to_owned(), expect: Expect::Any, edit };
            store.commit(&*guard, store.generation().unwrap(), &[change], &About::default()).unwrap();
        };
        // Before there is a runtime directory, before there is a journal, and after.
        let bare = view();
        assert_eq!(bare.is_current(), Ok(true));
        drop(FileLock::new(directory.path()).acquire(0, "").unwrap());
        let locked = view();
        assert!(locked.is_current().unwrap() && bare.is_current().unwrap());
        commit();
        let committed = view();
        assert_eq!((bare.is_current(), locked.is_current(), committed.is_current()), (Ok(false), Ok(false), Ok(true)));
        commit();
        assert_eq!(committed.is_current(), Ok(false));
    }
}
