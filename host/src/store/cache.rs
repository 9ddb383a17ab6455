//! The cache area: files that can be made again, written without the lock and outside of commits.
//!
//! Each change is whole for readers of this machine. None is synced: after a power failure a cache file may be torn,
//! which its reader finds out by what is in it. Must not know what that is.

use std::os::fd::{AsFd as _, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::fs::{FileType, FlockOperation};
use rustix::io::Errno;

use super::directory::Directory;
use super::disk;
use super::ground::{Way, descend};
use super::path::{CACHE, RelPath, TEMPORARY};
use super::{Area, Stamp, StoreError};

/// A temporary file this old has no writer any more.
const ABANDONED: Duration = Duration::from_secs(3600);

/// Makes the names of temporary files of this process differ.
static NEXT: AtomicU64 = AtomicU64::new(0);

/// Opens the cache directory, and makes it if need be; never the workspace.
fn open(store: &Directory) -> Result<OwnedFd, StoreError> {
    let root = store.place.open()?.ok_or_else(|| StoreError::Denied("there is no workspace yet".to_owned()))?;
    match disk::open_dir(&root, CACHE) {
        Err(Errno::NOENT) => disk::make_dir(&root, CACHE).map(|(cache, _)| cache),
        other => other,
    }
    .map_err(|error| match error {
        Errno::NOTDIR | Errno::LOOP => StoreError::Denied(format!("{CACHE} is no directory")),
        other => disk::store_error(other, "opening the cache"),
    })
}

/// Opens the directory of a cache file, and makes it if need be.
fn open_parent(cache: OwnedFd, name: RelPath<'_>) -> Result<OwnedFd, StoreError> {
    let mut at = cache;
    for part in name.parent().split('/').filter(|part| !part.is_empty()) {
        at = disk::make_dir(&at, part).map(|(open, _)| open).map_err(|error| match error {
            Errno::NOTDIR | Errno::LOOP => StoreError::Denied(format!("{part} is no directory")),
            other => disk::store_error(other, "writing the cache"),
        })?;
    }
    Ok(at)
}

/// Replaces a cache file.
pub(super) fn put(store: &Directory, name: &str, data: &[u8]) -> Result<Stamp, StoreError> {
    let name = RelPath::parse(Area::Cache, name)?;
    let failed = |error| disk::store_error(error, "writing the cache");
    let cache = open(store)?;
    if !store.cache_is_tidy.swap(true, Ordering::Relaxed) {
        tidy(&cache);
    }
    let temporary = format!("{TEMPORARY}{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
    let file = disk::create(&cache, &temporary).map_err(failed)?;
    let write = || {
        disk::write_at(&file, data, 0).map_err(failed)?;
        let sealed = disk::seal(&file).map_err(failed)?;
        let parent = open_parent(cache.try_clone().map_err(|error| StoreError::Io(error.to_string()))?, name)?;
        disk::rename(&cache, &temporary, &parent, name.name()).map_err(failed)?;
        let stat = rustix::fs::fstat(&file).map_err(failed)?;
        Ok(disk::sealed_stamp(&stat, sealed))
    };
    let result = write();
    if result.is_err() {
        let _ = disk::unlink(&cache, &temporary);
    }
    result
}

/// Adds to a cache file. Two writers at once do not mix: one is told that the file changed.
pub(super) fn append(store: &Directory, name: &str, length: u64, data: &[u8]) -> Result<Stamp, StoreError> {
    let name = RelPath::parse(Area::Cache, name)?;
    let failed = |error| disk::store_error(error, "writing the cache");
    let parent = open_parent(open(store)?, name)?;
    let file = match disk::open_file(&parent, name.name(), true) {
        Err(Errno::NOENT) if length == 0 => match disk::create(&parent, name.name()) {
            Err(Errno::EXIST) => return Err(StoreError::Changed),
            created => created,
        },
        Err(Errno::NOENT) => return Err(StoreError::Changed),
        open => open,
    }
    .map_err(failed)?;
    match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Err(Errno::WOULDBLOCK) => return Err(StoreError::Changed),
        other => other.map_err(failed)?,
    }
    let stat = rustix::fs::fstat(&file).map_err(failed)?;
    if disk::file_type(&stat) != FileType::RegularFile {
        return Err(StoreError::Denied("not a regular file".to_owned()));
    }
    let is_there = disk::look(&parent, name.name()).map_err(failed)?;
    if disk::size(&stat) != length || is_there.as_ref().map(disk::identity) != Some(disk::identity(&stat)) {
        return Err(StoreError::Changed);
    }
    match disk::write_at(&file, data, length).and_then(|()| disk::seal(&file)) {
        Ok(sealed) => {
            let stat = rustix::fs::fstat(&file).map_err(failed)?;
            Ok(disk::sealed_stamp(&stat, sealed))
        }
        Err(error) => {
            // The whole file where there was none: one that holds nothing is of no use.
            let _ = if length == 0 {
                disk::unlink(&parent, name.name()).map(|_| ())
            } else {
                disk::truncate(&file, length)
            };
            Err(failed(error))
        }
    }
}

/// Removes a cache file.
pub(super) fn drop(store: &Directory, name: &str) -> Result<(), StoreError> {
    let name = RelPath::parse(Area::Cache, name)?;
    let failed = |error| disk::store_error(error, "dropping a cache file");
    let Some(root) = store.place.open()? else { return Ok(()) };
    let cache = match disk::open_dir(&root, CACHE) {
        Ok(cache) => cache,
        Err(Errno::NOENT) => return Ok(()),
        Err(Errno::NOTDIR | Errno::LOOP) => return Err(StoreError::Denied(format!("{CACHE} is no directory"))),
        Err(error) => return Err(failed(error)),
    };
    match descend(cache, name.parent()).map_err(failed)? {
        Way::Open(parent) => disk::unlink(&parent, name.name()).map(|_| ()).map_err(failed),
        Way::Missing(..) => Ok(()),
        Way::Link(prefix) | Way::File(prefix) => Err(StoreError::Denied(format!("{prefix} is no directory"))),
    }
}

/// Removes what writers that died left. Best effort: these files only take room.
fn tidy(cache: &OwnedFd) {
    let Ok(names) = disk::names(cache) else { return };
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    for (name, _) in names {
        let Ok(name) = std::str::from_utf8(&name) else { continue };
        if name.starts_with(TEMPORARY)
            && let Ok(Some(stat)) = disk::look(cache.as_fd(), name)
            && u64::try_from(stat.st_mtime).is_ok_and(|written| written + ABANDONED.as_secs() < now.as_secs())
        {
            let _ = disk::unlink(cache, name);
        }
    }
}
