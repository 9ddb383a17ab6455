//! The lock of a workspace in a directory: [`FileLock`], `flock` on `write.lock` in the runtime directory.
//!
//! `flock` belongs to an open file: it goes when its holder closes the file or dies, in whatever way. What the file holds
//! means nothing and is never read. Who the holder is stands beside it, as a hint that is believed only while the lock is
//! really held.

use std::cell::Cell;
use std::marker::PhantomData;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::fs::{FileType, FlockOperation};
use rustix::io::{Errno, retry_on_intr};
use rustix::process::Pid;

use super::{Holder, Lock, LockError};
use crate::store::path::LOCK;
use crate::store::place::{self, Place};
use crate::store::{FileId, Guard, StoreError, disk};

/// The pause after a try that failed, at first and at most. The other program tries every 50 ms.
const PAUSE: Duration = Duration::from_millis(5);
const MAX_PAUSE: Duration = Duration::from_millis(50);

/// Someone may hold the lock for a moment only to see whether it is free. Even who does not wait looks past that.
const GRACE: Duration = Duration::from_millis(2);

/// What others see of a purpose, in bytes.
const MAX_PURPOSE: usize = 64;

/// Why nobody can be kept from writing.
const NO_LOCK_FILE: &str = "nothing can be written here, and there is no lock file: whoever reaches the same files from \
                            elsewhere could not be kept from writing; copy the directory instead";

/// Where the holder says who it is, in the store's own directory.
const NOTE: &str = "holder";
const NEW_NOTE: &str = "holder.new";

/// The lock of the workspace in a directory. Making an instance touches nothing.
///
/// [`acquire`](Lock::acquire) makes the directory, its runtime directory and the lock file if they do not exist yet.
/// [`current`](Lock::current) makes nothing.
#[derive(Clone, Debug)]
pub struct FileLock {
    place: Place,
    /// Nothing is to be written under it.
    to_read: bool,
}

/// What a holder says of itself.
#[derive(serde::Serialize, serde::Deserialize)]
struct Note {
    process: u64,
    purpose: String,
}

/// The lock, held.
#[derive(Debug)]
struct FileGuard {
    file: OwnedFd,
    id: FileId,
    /// Where the note lies, if it could be written.
    note: Option<OwnedFd>,
    /// Not shared between threads: a commit under way is the only one.
    one_thread: PhantomData<Cell<()>>,
}

impl Guard for FileGuard {
    fn file(&self) -> Option<FileId> {
        Some(self.id)
    }
}

impl Drop for FileGuard {
    fn drop(&mut self) {
        if let Some(own) = &self.note {
            // A note that stays is not believed.
            let _ = disk::unlink(own, NOTE);
        }
        // Closing gives the lock back too, unless a child process has the file as well.
        let _ = rustix::fs::flock(&self.file, FlockOperation::Unlock);
    }
}

impl FileLock {
    /// The lock of the workspace at `root`. A relative path counts from the current directory of this moment.
    #[must_use]
    pub fn new(root: &Path) -> Self {
        Self { place: Place::new(root), to_read: false }
    }

    /// The same for who only keeps writers away: where nothing can be written, a lock file that is there is enough.
    #[must_use]
    pub fn to_read(self) -> Self {
        Self { to_read: true, ..self }
    }

    /// Takes the lock if it is free.
    fn try_acquire(&self) -> Result<Option<FileGuard>, LockError> {
        let root = self.place.create()?;
        let runtime = place::create_runtime(&root)?;
        let file = match open_or_create(&runtime) {
            Err(error @ (Errno::ROFS | Errno::ACCESS | Errno::PERM)) if self.to_read => {
                match disk::open_file(&runtime, LOCK, false) {
                    Err(Errno::NOENT) => return Err(LockError::Denied(format!("{NO_LOCK_FILE} ({error})"))),
                    opened => opened.map_err(failed)?,
                }
            }
            opened => opened.map_err(failed)?,
        };
        let stat = rustix::fs::fstat(&file).map_err(failed)?;
        if disk::file_type(&stat) != FileType::RegularFile {
            return Err(LockError::Denied(format!("{LOCK} is not a regular file")));
        }
        match retry_on_intr(|| rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive)) {
            Ok(()) => {}
            Err(Errno::WOULDBLOCK) => return Ok(None),
            Err(error) => return Err(failed(error)),
        }
        // The file may have been replaced, or the runtime directory changed its name, since it was opened. Others lock
        // what is there now.
        let id = disk::identity(&stat);
        let now = match place::open_runtime(&root)? {
            Some(runtime) => disk::look(&runtime, LOCK).map_err(failed)?,
            None => None,
        };
        if now.as_ref().map(disk::identity) != Some(id) {
            return Ok(None);
        }
        Ok(Some(FileGuard { file, id, note: None, one_thread: PhantomData }))
    }
}

impl Lock for FileLock {
    fn acquire(&self, wait_ms: u32, purpose: &str) -> Result<Box<dyn Guard>, LockError> {
        let begun = Instant::now();
        let wait = Duration::from_millis(wait_ms.into()).max(GRACE);
        let mut pause = PAUSE.min(wait / 2);
        loop {
            if let Some(mut guard) = self.try_acquire()? {
                guard.note = write_note(&self.place, purpose);
                return Ok(Box::new(guard));
            }
            let left = wait.saturating_sub(begun.elapsed());
            if left.is_zero() {
                // Who holds it is a courtesy: failing to find out changes nothing.
                return Err(LockError::Held(self.current().ok().flatten()));
            }
            std::thread::sleep(pause.min(left));
            pause = (pause * 2).min(MAX_PAUSE);
        }
    }

    fn current(&self) -> Result<Option<Holder>, LockError> {
        let Some(root) = self.place.open()? else { return Ok(None) };
        let Some(runtime) = place::open_runtime(&root)? else { return Ok(None) };
        let file = match disk::open_file(&runtime, LOCK, false) {
            Ok(file) => file,
            Err(Errno::NOENT) => return Ok(None),
            Err(error) => return Err(failed(error)),
        };
        let note = place::open_own(&runtime).ok().flatten().and_then(|own| read_note(&own));
        let stat = rustix::fs::fstat(&file).map_err(failed)?;
        let known = |process| {
            let purpose = note.as_ref().filter(|note| note.process == process).map(|note| note.purpose.clone());
            Ok(Some(Holder { process: Some(process), purpose }))
        };
        if let Some(process) = holder_by_system(&stat) {
            return known(process);
        }
        // The system does not say: on this file system, to this process, or because there is none. Sharing the lock for a
        // moment tells; a writer that comes just then tries again a few milliseconds later.
        match retry_on_intr(|| rustix::fs::flock(&file, FlockOperation::NonBlockingLockShared)) {
            Ok(()) => {
                let _ = rustix::fs::flock(&file, FlockOperation::Unlock);
                Ok(None)
            }
            // The list may miss a line while other locks come and go: now that there must be one, look again.
            Err(Errno::WOULDBLOCK) => match (0..5).find_map(|_| holder_by_system(&stat)) {
                Some(process) => known(process),
                None => Ok(Some(match note.filter(|note| is_alive(note.process)) {
                    Some(note) => Holder { process: Some(note.process), purpose: Some(note.purpose) },
                    None => Holder::default(),
                })),
            },
            Err(error) => Err(failed(error)),
        }
    }
}

impl From<StoreError> for LockError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Denied(why) => Self::Denied(why),
            other => Self::Io(other.to_string()),
        }
    }
}

fn failed(error: Errno) -> LockError {
    disk::store_error(error, "locking the workspace").into()
}

fn open_or_create(runtime: &OwnedFd) -> disk::Sys<OwnedFd> {
    match disk::open_file(runtime, LOCK, true) {
        Err(Errno::NOENT) => match disk::create(runtime, LOCK) {
            // Another process was faster.
            Err(Errno::EXIST) => disk::open_file(runtime, LOCK, true),
            other => other,
        },
        other => other,
    }
}

/// Says who holds the lock and why. Only a hint: none, if it cannot be written.
fn write_note(place: &Place, purpose: &str) -> Option<OwnedFd> {
    let root = place.open().ok()??;
    let own = place::create_own(place::open_runtime(&root).ok()??).ok()?;
    let purpose = purpose.get(..purpose.floor_char_boundary(MAX_PURPOSE)).unwrap_or_default();
    // It is shown on terminals, and comes from whoever asked for the lock.
    let purpose = purpose.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    let note = serde_json::to_vec(&Note { process: std::process::id().into(), purpose }).ok()?;
    disk::unlink(&own, NEW_NOTE).ok()?;
    let file = disk::create(&own, NEW_NOTE).ok()?;
    disk::write_at(file, &note, 0).ok()?;
    disk::rename(own.as_fd(), NEW_NOTE, own.as_fd(), NOTE).ok()?;
    Some(own)
}

fn read_note(own: &OwnedFd) -> Option<Note> {
    /// More than any note takes, escapes included.
    const MOST: usize = 1024;
    let file = disk::open_file(own, NOTE, false).ok()?;
    serde_json::from_slice(&disk::read_at(&file, 0, MOST).ok()?).ok()
}

/// Whether there is such a process on this machine.
pub(crate) fn is_alive(process: u64) -> bool {
    let Some(process) = i32::try_from(process).ok().and_then(Pid::from_raw) else { return false };
    // Not permitted to signal it: it lives.
    matches!(rustix::process::test_kill_process(process), Ok(()) | Err(Errno::PERM))
}

/// The process that has the lock on this file, as Linux lists it; none also where it does not.
fn holder_by_system(stat: &rustix::fs::Stat) -> Option<u64> {
    let locks = std::fs::read_to_string("/proc/locks").ok()?;
    let file = format!("{:02x}:{:02x}:{}", rustix::fs::major(stat.st_dev), rustix::fs::minor(stat.st_dev), stat.st_ino);
    holder_in(&locks, &file)
}

/// Lines are `1: FLOCK  ADVISORY  WRITE 1234 fe:00:567 0 EOF`; with `->` in the second place, of someone who waits.
fn holder_in(locks: &str, file: &str) -> Option<u64> {
    locks.lines().find_map(|line| {
        let mut words = line.split_ascii_whitespace().skip(1);
        let is_it = words.next() == Some("FLOCK") && words.nth(1) == Some("WRITE");
        let process = words.next()?;
        (is_it && words.next() == Some(file)).then(|| process.parse().ok())?
    })
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
