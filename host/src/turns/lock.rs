//! What keeps writers of turns apart, and watchers: a `flock` on an empty file of the runtime directory.
//!
//! The lock of the workspace is held only for a commit, because a model thinks between them. So that two programs do not have the
//! same turns written at once, who writes turns holds this one as well, from reading a conversation to the last mark. It goes when
//! its holder ends, in whatever way. Nothing depends on it but work done twice: what is written twice is refused by the component.
//!
//! Knows the files' names. Must not know what is done under the lock.

use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::FileType;
use rustix::io::Errno;

use super::place::lock;
use crate::lock::LockError;
use crate::store::disk;
use crate::store::place::{self, Place};

/// Held while turns of any conversation are written.
pub const WRITER_LOCK: &str = "recollex-writer.lock";
/// Held by whoever watches for conversations that have stopped, of this program or another.
pub const WATCH_LOCK: &str = "session-end.lock";

/// Such a lock, held.
#[derive(Debug)]
#[must_use]
pub struct WriterLock(#[allow(dead_code, reason = "held, not used: closing it gives the lock back")] OwnedFd);

impl WriterLock {
    /// Takes the lock `name` of the workspace in `root`, waiting at most `wait_ms` milliseconds.
    ///
    /// # Errors
    /// [`LockError::Held`] after the wait; [`LockError::Denied`] where there is no workspace, or nothing can be locked.
    pub fn acquire(root: &Path, name: &str, wait_ms: u32) -> Result<Self, LockError> {
        let failed = |error: Errno| LockError::from(disk::store_error(error, &format!("locking {name}")));
        let root = Place::new(root).open()?.ok_or_else(|| LockError::Denied("there is no workspace".to_owned()))?;
        let runtime = place::create_runtime(&root)?;
        let file = match disk::open_file(&runtime, name, true) {
            Err(Errno::NOENT) => match disk::create(&runtime, name) {
                // Another process was faster.
                Err(Errno::EXIST) => disk::open_file(&runtime, name, true),
                other => other,
            },
            other => other,
        }
        .map_err(failed)?;
        let stat = rustix::fs::fstat(&file).map_err(failed)?;
        if disk::file_type(&stat) != FileType::RegularFile {
            return Err(LockError::Denied(format!("{name} is not a regular file")));
        }
        match lock(&file, wait_ms).map_err(failed)? {
            Some(true) => Ok(Self(file)),
            Some(false) => Err(LockError::Held(None)),
            None => Err(LockError::Denied("the workspace's file system has no locks".to_owned())),
        }
    }
}
