//! What both stores of files share: opening without following, waiting for a lock, reading within a limit.
//!
//! Knows file descriptors and system calls. Must not know nodes.

use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::fs::{FileType, FlockOperation, Mode, OFlags, Stat};
use rustix::io::{Errno, retry_on_intr};

use super::store::StoreFault;
use crate::store::disk;

/// The pause after a try for a lock that failed, at first and at most.
const PAUSE: Duration = Duration::from_millis(5);
const PAUSE_MAX: Duration = Duration::from_millis(50);

/// What the system said of `path`.
pub(super) fn fault(path: &Path, doing: &str, error: Errno) -> StoreFault {
    let fault = |message: String| StoreFault::new(path, message);
    match error {
        Errno::NOENT => fault(format!("{doing}: it is not there")),
        Errno::LOOP => fault(format!("{doing}: it is a symbolic link, and is not followed: put the file itself there")),
        Errno::NOTDIR => fault(format!("{doing}: it is a link or no directory, and is not followed")),
        Errno::ACCESS | Errno::PERM => fault(format!("{doing}: no permission; see to the permissions")),
        Errno::ROFS => fault(format!("{doing}: the file system is read-only")),
        Errno::NOSPC | Errno::DQUOT => fault(format!("{doing}: no space is left; make room")).passing(),
        other => fault(format!("{doing}: {other}")).passing(),
    }
}

/// Opens a directory that a person named: a link to it is followed.
pub(super) fn open_root(path: &Path) -> Result<OwnedFd, StoreFault> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    retry_on_intr(|| rustix::fs::open(path, flags, Mode::empty()))
        .map_err(|error| fault(path, "the directory of conversations cannot be opened", error))
}

/// Opens the regular file `name`, without following a link or waiting for anybody.
pub(super) fn open_regular(
    parent: impl AsFd,
    name: &str,
    path: &Path,
    write: bool,
) -> Result<(OwnedFd, Stat), StoreFault> {
    let failed = |error| fault(path, "it cannot be opened", error);
    let file = disk::open_file(parent, name, write).map_err(failed)?;
    let stat = rustix::fs::fstat(&file).map_err(failed)?;
    if disk::file_type(&stat) != FileType::RegularFile {
        return Err(StoreFault::new(path, "it is no regular file, and is not read"));
    }
    Ok((file, stat))
}

/// All of a file of at most `most` bytes; none: it is longer.
pub(super) fn read_whole(file: impl AsFd, most: u64) -> disk::Sys<Option<Vec<u8>>> {
    /// Bytes that are made room for before it is known that they are there.
    const PIECE: usize = 1 << 20;
    let mut data = Vec::new();
    loop {
        let piece = disk::read_at(file.as_fd(), data.len() as u64, PIECE)?;
        let is_last = piece.len() < PIECE;
        if data.is_empty() {
            data = piece;
        } else {
            data.extend_from_slice(&piece);
        }
        if data.len() as u64 > most {
            return Ok(None);
        }
        if is_last {
            return Ok(Some(data));
        }
    }
}

/// Takes the exclusive `flock` on an open file or directory, waiting at most so long; says whether it has it. A file system
/// without such locks gives it to everybody, which is `None`.
pub(super) fn lock(file: impl AsFd, wait_ms: u32) -> disk::Sys<Option<bool>> {
    let (begun, wait) = (Instant::now(), Duration::from_millis(wait_ms.into()));
    let mut pause = PAUSE;
    loop {
        match retry_on_intr(|| rustix::fs::flock(file.as_fd(), FlockOperation::NonBlockingLockExclusive)) {
            Ok(()) => return Ok(Some(true)),
            Err(Errno::WOULDBLOCK) => {}
            Err(Errno::NOTSUP | Errno::NOLCK | Errno::NOSYS | Errno::BADF | Errno::INVAL) => return Ok(None),
            Err(error) => return Err(error),
        }
        let left = wait.saturating_sub(begun.elapsed());
        if left.is_zero() {
            return Ok(Some(false));
        }
        std::thread::sleep(pause.min(left));
        pause = (pause * 2).min(PAUSE_MAX);
    }
}

/// A time of change in seconds since 1970.
pub(super) fn seconds(time: disk::Time) -> f64 {
    time.seconds as f64 + f64::from(time.nanoseconds) / 1e9
}

/// Whether a name is text that may be a part of an id: not empty, not hidden, no control characters.
pub(super) fn is_sound(name: &str) -> bool {
    !name.is_empty() && !name.starts_with('.') && !name.chars().any(char::is_control)
}
