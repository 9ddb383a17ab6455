//! A workspace that is open for one operation: the descriptors of its directories, and the ways from them to a path.
//!
//! Every way is taken one part at a time from the root's descriptor, and no part may be a symbolic link, so that no
//! path leads outside, whatever changes on the way. Must not know journals or commits.

use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};

use rustix::fs::{FileType, Stat};
use rustix::io::Errno;

use super::disk::{self, Sys};
use super::path::{self, RelPath};
use super::place::{self, Place};
use super::{Area, StoreError};

/// The directories of a workspace whose root exists.
#[derive(Debug)]
pub(super) struct Ground {
    root: OwnedFd,
    /// None: there is nothing yet. An error: what has its name is no directory of ours.
    runtime: Result<Option<OwnedFd>, StoreError>,
    own: Option<OwnedFd>,
}

/// Where a way of directories ends.
#[derive(Debug)]
pub(super) enum Way {
    /// The last directory is open.
    Open(OwnedFd),
    /// This prefix does not exist; the directory that would hold it is open.
    Missing(OwnedFd, String),
    /// This prefix is a symbolic link.
    Link(String),
    /// This prefix is neither directory nor link.
    File(String),
}

/// What is at a path.
#[derive(Debug)]
pub(super) enum Found {
    /// Nothing.
    Nothing,
    /// A regular file, in this open directory.
    File(OwnedFd, Box<Stat>),
    /// Something else, or something else on the way.
    Other,
}

impl Ground {
    /// Opens a workspace; none if its root does not exist.
    pub(super) fn open(place: &Place) -> Result<Option<Self>, StoreError> {
        let Some(root) = place.open()? else { return Ok(None) };
        let runtime = place::open_runtime(&root);
        let own = match &runtime {
            Ok(Some(runtime)) => place::open_own(runtime)?,
            // What is in its place cannot hold a journal of ours, and hides nothing of the tree.
            _ => None,
        };
        Ok(Some(Self { root, runtime, own }))
    }

    /// Makes the store's own directory, if there is none yet.
    pub(super) fn with_own(mut self) -> Result<Self, StoreError> {
        if self.own.is_none() {
            let runtime = self.runtime().ok_or(StoreError::NotFound)?;
            self.own = Some(place::create_own(runtime)?);
        }
        Ok(self)
    }

    /// The root.
    pub(super) fn root(&self) -> BorrowedFd<'_> {
        self.root.as_fd()
    }

    /// The runtime directory, if there is one.
    pub(super) fn runtime(&self) -> Option<BorrowedFd<'_>> {
        self.runtime.as_ref().ok().and_then(Option::as_ref).map(|runtime| runtime.as_fd())
    }

    /// The store's own directory, if there is one.
    pub(super) fn own(&self) -> Option<BorrowedFd<'_>> {
        self.own.as_ref().map(|own| own.as_fd())
    }

    /// The directory of an area; none if there is nothing.
    ///
    /// # Errors
    /// `Denied` if it is a link or not a directory.
    pub(super) fn base(&self, area: Area) -> Result<Option<OwnedFd>, StoreError> {
        let open = |directory: &OwnedFd| {
            directory.try_clone().map(Some).map_err(|error| StoreError::Io(format!("opening the workspace: {error}")))
        };
        match area {
            Area::Tree => open(&self.root),
            Area::Runtime => self.runtime.as_ref().map_err(Clone::clone)?.as_ref().map_or(Ok(None), open),
            Area::Cache => match disk::open_dir(&self.root, path::CACHE) {
                Ok(cache) => Ok(Some(cache)),
                Err(Errno::NOENT) => Ok(None),
                Err(Errno::NOTDIR | Errno::LOOP) => Err(StoreError::Denied(format!("{} is no directory", path::CACHE))),
                Err(error) => Err(disk::store_error(error, "opening the cache")),
            },
        }
    }

    /// What is at a path of an area.
    pub(super) fn find(&self, area: Area, path: RelPath<'_>) -> Result<Found, StoreError> {
        let Some(base) = self.base(area)? else { return Ok(Found::Nothing) };
        let failed = |error| disk::store_error(error, &format!("opening {}", path.as_str()));
        let parent = match descend(base, path.parent()).map_err(failed)? {
            Way::Open(parent) => parent,
            Way::Missing(..) => return Ok(Found::Nothing),
            Way::Link(_) | Way::File(_) => return Ok(Found::Other),
        };
        Ok(match disk::look(&parent, path.name()).map_err(failed)? {
            None => Found::Nothing,
            Some(stat) if disk::file_type(&stat) == FileType::RegularFile => Found::File(parent, Box::new(stat)),
            Some(_) => Found::Other,
        })
    }
}

/// Follows `directory`, empty or a path, from `base` on.
pub(super) fn descend(base: OwnedFd, directory: &str) -> Sys<Way> {
    let mut at = base;
    if directory.is_empty() {
        return Ok(Way::Open(at));
    }
    if let Some(open) = disk::open_dir_below(&at, directory) {
        return Ok(Way::Open(open));
    }
    let mut end = 0;
    for part in directory.split('/') {
        // The prefix up to and with this part.
        end += part.len();
        let prefix = || directory.get(..end).unwrap_or(directory).to_owned();
        at = match disk::open_dir(&at, part) {
            Ok(next) => next,
            Err(Errno::NOENT) => return Ok(Way::Missing(at, prefix())),
            // Systems differ in which of the two they say of a link.
            Err(error @ (Errno::NOTDIR | Errno::LOOP)) => {
                return Ok(match disk::look(&at, part)?.as_ref().map(disk::file_type) {
                    None => Way::Missing(at, prefix()),
                    Some(FileType::Symlink) => Way::Link(prefix()),
                    // It became a directory a moment ago.
                    Some(FileType::Directory) => return Err(error),
                    Some(_) => Way::File(prefix()),
                });
            }
            Err(error) => return Err(error),
        };
        end += 1;
    }
    Ok(Way::Open(at))
}
