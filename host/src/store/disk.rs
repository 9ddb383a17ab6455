//! System calls: one small function for each thing the store does to a medium, and what their errors and times mean.
//!
//! Knows file descriptors and names, one part at a time: nothing here resolves a path with more than one part, save where the
//! system promises to follow no symbolic link, and nothing follows one. Must not know journals or commits.
//!
//! Everything that changes the medium passes a gate that lets tests fail or "crash" at any such step.

use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::fs::{self, AtFlags, FileType, Mode, OFlags, Stat, Timespec, Timestamps};
use rustix::io::{Errno, retry_on_intr};
use rustix::path::Arg;

use super::{FileId, Stamp, StoreError};

/// The result of a system call.
pub(crate) type Sys<T> = Result<T, Errno>;

/// What is created is readable by its owner alone, whatever the umask.
const FILE_MODE: Mode = Mode::RUSR.union(Mode::WUSR);
const DIRECTORY_MODE: Mode = Mode::RWXU;

/// File systems that keep nanoseconds move their clock at least this often: ticks of 100 Hz, and as much again.
const FINE_CLOCK: Duration = Duration::from_millis(20);
/// Those that keep whole seconds, some of them even ones only.
const COARSE_CLOCK: Duration = Duration::from_secs(2);

/// The limit of how long a file may get: this process's, or the file system's.
const FILE_SIZE: &str = "file-size";

/// Puts an error in the contract's words. `doing` says what failed, for people.
pub(crate) fn store_error(error: Errno, doing: &str) -> StoreError {
    match error {
        Errno::NOENT => StoreError::NotFound,
        Errno::LOOP => StoreError::Denied("behind a symbolic link".to_owned()),
        Errno::ACCESS | Errno::PERM => StoreError::Denied(format!("no permission for {doing}")),
        Errno::ROFS => StoreError::Denied("the file system is read-only".to_owned()),
        Errno::NAMETOOLONG => StoreError::Denied("the name is too long for the file system".to_owned()),
        Errno::ILSEQ => StoreError::Denied("the file system does not take this name".to_owned()),
        Errno::NXIO | Errno::ISDIR => StoreError::Denied("not a regular file".to_owned()),
        Errno::NOSPC | Errno::DQUOT => StoreError::Full,
        Errno::FBIG => StoreError::Limit { name: FILE_SIZE.to_owned(), value: longest_file() },
        other => StoreError::Io(format!("{doing}: {other}")),
    }
}

/// How long this process may make a file, in bytes; where nothing but the file system limits it, more than any file has.
fn longest_file() -> u64 {
    rustix::process::getrlimit(rustix::process::Resource::Fsize).current.unwrap_or(u64::MAX)
}

/// Opens the directory `name` of `parent`. A symbolic link, like anything else that is no directory, is `NOTDIR` or
/// `LOOP`.
pub(crate) fn open_dir(parent: impl AsFd, name: impl Arg + Copy) -> Sys<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    retry_on_intr(|| fs::openat(parent.as_fd(), name, flags, Mode::empty()))
}

/// Opens the directory at a path of several parts, in one step where the system has one that follows no symbolic link and does
/// not leave `above`. None: it has to be looked at part by part, which also tells what is in the way.
pub(crate) fn open_dir_below(above: impl AsFd, path: &str) -> Option<OwnedFd> {
    #[cfg(target_os = "linux")]
    {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let within = fs::ResolveFlags::BENEATH | fs::ResolveFlags::NO_SYMLINKS;
        path.contains('/').then(|| fs::openat2(above, path, flags, Mode::empty(), within).ok()).flatten()
    }
    #[cfg(not(target_os = "linux"))]
    {
        let _ = (above, path);
        None
    }
}

/// Opens `name` for reading, or for writing too, without waiting for whoever is at the other end of a pipe.
pub(crate) fn open_file(parent: impl AsFd, name: impl Arg + Copy, write: bool) -> Sys<OwnedFd> {
    let access = if write { OFlags::RDWR } else { OFlags::RDONLY };
    let flags = access | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    retry_on_intr(|| fs::openat(parent.as_fd(), name, flags, Mode::empty()))
}

/// What is at `name`; a link is not followed.
pub(crate) fn look(parent: impl AsFd, name: impl Arg + Copy) -> Sys<Option<Stat>> {
    match retry_on_intr(|| fs::statat(parent.as_fd(), name, AtFlags::SYMLINK_NOFOLLOW)) {
        Ok(stat) => Ok(Some(stat)),
        Err(Errno::NOENT) => Ok(None),
        Err(error) => Err(error),
    }
}

/// The kind of file a stat speaks of.
pub(crate) fn file_type(stat: &Stat) -> FileType {
    FileType::from_raw_mode(stat.st_mode)
}

/// Reads at most `most` bytes from `offset` on; fewer only at the end.
pub(crate) fn read_at(file: impl AsFd, offset: u64, most: usize) -> Sys<Vec<u8>> {
    let mut data = Vec::with_capacity(most);
    while data.len() < most {
        let at = offset + data.len() as u64;
        if retry_on_intr(|| rustix::io::pread(file.as_fd(), rustix::buffer::spare_capacity(&mut data), at))? == 0 {
            break;
        }
    }
    // The allocator may have given room for more than was asked for.
    data.truncate(most);
    Ok(data)
}

/// Makes the directory `name`, or opens it if it exists. Says whether it is new.
pub(crate) fn make_dir(parent: impl AsFd, name: &str) -> Sys<(OwnedFd, bool)> {
    gate()?;
    let new = match fs::mkdirat(parent.as_fd(), name, DIRECTORY_MODE) {
        Ok(()) => true,
        Err(Errno::EXIST) => false,
        Err(error) => return Err(error),
    };
    let directory = open_dir(parent.as_fd(), name)?;
    if new {
        fs::fchmod(&directory, DIRECTORY_MODE)?;
    }
    Ok((directory, new))
}

/// Makes the file `name`, which must not exist, for reading and writing.
pub(crate) fn create(parent: impl AsFd, name: &str) -> Sys<OwnedFd> {
    gate()?;
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = retry_on_intr(|| fs::openat(parent.as_fd(), name, flags, FILE_MODE))?;
    fs::fchmod(&file, FILE_MODE)?;
    Ok(file)
}

/// Writes all of `data` at `offset`.
pub(crate) fn write_at(file: impl AsFd, mut data: &[u8], mut offset: u64) -> Sys<()> {
    let torn = gate_write(data.len());
    if let Err((prefix, _)) = torn {
        data = data.get(..prefix).unwrap_or(data);
    }
    while !data.is_empty() {
        let done = retry_on_intr(|| rustix::io::pwrite(file.as_fd(), data, offset))?;
        if done == 0 {
            return Err(Errno::IO);
        }
        data = data.get(done..).unwrap_or_default();
        offset += done as u64;
    }
    torn.map_err(|(_, error)| error)
}

/// Copies `length` bytes within the kernel where it can; a file that turns out shorter is `IO`.
pub(crate) fn copy(from: impl AsFd, mut at: u64, to: impl AsFd, mut target: u64, mut length: u64) -> Sys<()> {
    gate()?;
    #[cfg(target_os = "linux")]
    while length > 0 {
        let some = usize::try_from(length).unwrap_or(usize::MAX).min(1 << 30);
        match fs::copy_file_range(from.as_fd(), Some(&mut at), to.as_fd(), Some(&mut target), some) {
            Ok(0) => return Err(Errno::IO),
            Ok(done) => length -= done as u64,
            Err(Errno::INTR) => {}
            // Not between these file systems, or not in this kernel: by hand.
            Err(Errno::XDEV | Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP | Errno::PERM) => break,
            Err(error) => return Err(error),
        }
    }
    while length > 0 {
        let some = usize::try_from(length).unwrap_or(usize::MAX).min(1 << 20);
        let buffer = read_at(from.as_fd(), at, some)?;
        if buffer.is_empty() {
            return Err(Errno::IO);
        }
        write_at(to.as_fd(), &buffer, target)?;
        at += buffer.len() as u64;
        target += buffer.len() as u64;
        length -= buffer.len() as u64;
    }
    Ok(())
}

/// Waits until what was written is on the medium.
pub(crate) fn sync(file: impl AsFd) -> Sys<()> {
    gate()?;
    #[cfg(target_vendor = "apple")]
    if fs::fcntl_fullfsync(file.as_fd()).is_ok() {
        return Ok(());
    }
    match retry_on_intr(|| fs::fsync(file.as_fd())) {
        // Some file systems cannot sync a directory; they write its entries in order by themselves.
        Err(Errno::INVAL) => Ok(()),
        other => other,
    }
}

/// Waits until what was written to all of these is on the medium. The medium is asked to begin with all of them before it is
/// waited for the first, which takes hardly longer than for one alone. An error comes with the place of its file.
pub(crate) fn sync_all(files: &[OwnedFd]) -> Result<(), (usize, Errno)> {
    // Begins to write what the kernel only holds, and does not wait. Nothing depends on it.
    #[cfg(any(target_os = "linux", target_os = "android"))]
    for file in files.iter().filter(|_| files.len() > 1) {
        let _ = fs::fadvise(file, 0, None, fs::Advice::DontNeed);
    }
    files.iter().enumerate().try_for_each(|(at, file)| sync(file).map_err(|error| (at, error)))
}

/// Renames, replacing what has the new name.
pub(crate) fn rename(from: impl AsFd, name: &str, to: impl AsFd, target: &str) -> Sys<()> {
    gate()?;
    fs::renameat(from, name, to, target)
}

/// Renames; `EXIST` if something has the new name already.
pub(crate) fn rename_new(from: impl AsFd, name: &str, to: impl AsFd, target: &str) -> Sys<()> {
    gate()?;
    #[cfg(any(target_os = "linux", target_vendor = "apple"))]
    match fs::renameat_with(from.as_fd(), name, to.as_fd(), target, fs::RenameFlags::NOREPLACE) {
        Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => {}
        done => return done,
    }
    // This file system cannot do it in one step. Writers hold the lock, so between the two steps only a person can come.
    match look(to.as_fd(), target)? {
        Some(_) => Err(Errno::EXIST),
        None => fs::renameat(from, name, to, target),
    }
}

/// Gives a file a further name, which must be free.
pub(crate) fn link(from: impl AsFd, name: &str, to: impl AsFd, target: &str) -> Sys<()> {
    gate()?;
    fs::linkat(from, name, to, target, AtFlags::empty())
}

/// Gives a file this time of change.
pub(crate) fn date(file: impl AsFd, time: Time) -> Sys<()> {
    gate()?;
    let keep = Timespec { tv_sec: 0, tv_nsec: fs::UTIME_OMIT };
    let time = Timespec { tv_sec: time.seconds, tv_nsec: i64::from(time.nanoseconds) as fs::Nsecs };
    fs::futimens(file, &Timestamps { last_access: keep, last_modification: time })
}

/// Removes a file; says whether there was one.
pub(crate) fn unlink(parent: impl AsFd, name: &str) -> Sys<bool> {
    gate()?;
    match fs::unlinkat(parent, name, AtFlags::empty()) {
        Ok(()) => Ok(true),
        Err(Errno::NOENT) => Ok(false),
        Err(error) => Err(error),
    }
}

/// Removes an empty directory.
pub(crate) fn remove_dir(parent: impl AsFd, name: &str) -> Sys<()> {
    gate()?;
    fs::unlinkat(parent, name, AtFlags::REMOVEDIR)
}

/// Cuts a file.
pub(crate) fn truncate(file: impl AsFd, length: u64) -> Sys<()> {
    gate()?;
    retry_on_intr(|| fs::ftruncate(file.as_fd(), length))
}

/// Reserves room in a file without making it longer. Only lack of room is an error: where reserving is not possible,
/// writing finds out.
pub(crate) fn reserve(file: impl AsFd, offset: u64, length: u64) -> Sys<()> {
    gate()?;
    #[cfg(target_os = "linux")]
    if let Err(error @ (Errno::NOSPC | Errno::DQUOT | Errno::FBIG)) =
        retry_on_intr(|| fs::fallocate(file.as_fd(), fs::FallocateFlags::KEEP_SIZE, offset, length))
    {
        return Err(error);
    }
    #[cfg(not(target_os = "linux"))]
    let _ = (file, offset, length);
    Ok(())
}

/// Gives a file a time of change that no later write can give it again, and returns it; none where the file system's
/// clock is too coarse for that.
///
/// A write sets the time of the last tick of the kernel's clock, which two writes can share. A time between two ticks,
/// set by hand, is shared with none, so that a stamp taken now is reliable at once.
pub(crate) fn seal(file: impl AsFd) -> Sys<Option<Time>> {
    gate()?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let time = Timespec {
        tv_sec: i64::try_from(now.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: i64::from(now.subsec_nanos()) as fs::Nsecs,
    };
    let keep = Timespec { tv_sec: 0, tv_nsec: fs::UTIME_OMIT };
    fs::futimens(file.as_fd(), &Timestamps { last_access: keep, last_modification: time })?;
    let stat = fs::fstat(file)?;
    let sealed = Time::modified(&stat);
    Ok((sealed.seconds == time.tv_sec && sealed.nanoseconds == now.subsec_nanos() && sealed.is_fine())
        .then_some(sealed))
}

/// The names in a directory, with what the directory itself says of their types.
pub(crate) fn names(directory: impl AsFd) -> Sys<Vec<(Vec<u8>, FileType)>> {
    let mut found = Vec::new();
    each_name(directory, |name, file_type| found.push((name.to_vec(), file_type)))?;
    Ok(found)
}

/// Hands on each of them, without keeping any.
pub(crate) fn each_name(directory: impl AsFd, mut with: impl FnMut(&[u8], FileType)) -> Sys<()> {
    let mut entries = fs::Dir::read_from(directory)?;
    while let Some(entry) = entries.read() {
        let entry = entry?;
        let name = entry.file_name().to_bytes();
        if name != b"." && name != b".." {
            with(name, entry.file_type());
        }
    }
    Ok(())
}

/// Which file a stat speaks of.
#[allow(clippy::unnecessary_cast, reason = "the types differ between systems")]
pub(crate) fn identity(stat: &Stat) -> FileId {
    FileId { device: stat.st_dev as u64, inode: stat.st_ino as u64 }
}

/// A file's length, never negative.
pub(crate) fn size(stat: &Stat) -> u64 {
    u64::try_from(stat.st_size).unwrap_or(0)
}

/// A point in time as a file system keeps it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
pub(crate) struct Time {
    /// Since 1970.
    pub(crate) seconds: i64,
    /// Less than a second.
    pub(crate) nanoseconds: u32,
}

impl Time {
    /// When the content last changed.
    #[allow(clippy::unnecessary_cast, reason = "the types differ between systems")]
    pub(crate) fn modified(stat: &Stat) -> Self {
        Self { seconds: stat.st_mtime as i64, nanoseconds: stat.st_mtime_nsec as u32 }
    }

    /// When anything about the file last changed.
    #[allow(clippy::unnecessary_cast, reason = "the types differ between systems")]
    pub(crate) fn changed(stat: &Stat) -> Self {
        Self { seconds: stat.st_ctime as i64, nanoseconds: stat.st_ctime_nsec as u32 }
    }

    /// Whether the file system evidently keeps parts of seconds.
    fn is_fine(self) -> bool {
        self.nanoseconds != 0
    }

    fn since_epoch(self) -> Duration {
        Duration::new(u64::try_from(self.seconds).unwrap_or(0), self.nanoseconds)
    }
}

/// The stamp of a file: its size, and a token of both its times and its inode.
///
/// The time of the last change of the inode is in it, so that a rewrite which puts the old time of the content back is
/// noticed; a `chmod` then looks like a change, which costs a read and nothing else. The inode stands behind the last `-`:
/// it stays while a file is added to, and every other edit puts a new file in place. Racy while the file system's clock
/// may still show the time of its last change.
pub(crate) fn stamp(stat: &Stat) -> Stamp {
    let (modified, changed) = (Time::modified(stat), Time::changed(stat));
    let window = if modified.is_fine() || changed.is_fine() { FINE_CLOCK } else { COARSE_CLOCK };
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Stamp {
        size: size(stat),
        token: format!(
            "{:x}.{:x}-{:x}.{:x}-{:x}",
            modified.seconds, modified.nanoseconds, changed.seconds, changed.nanoseconds, stat.st_ino
        ),
        racy: modified.max(changed).since_epoch() + window > now,
    }
}

/// The stamp of a file whose content was sealed with `sealed`.
pub(crate) fn sealed_stamp(stat: &Stat, sealed: Option<Time>) -> Stamp {
    let mut stamp = stamp(stat);
    if sealed == Some(Time::modified(stat)) {
        stamp.racy = false;
    }
    stamp
}

#[cfg(not(test))]
#[inline(always)]
fn gate() -> Sys<()> {
    Ok(())
}

#[cfg(not(test))]
#[inline(always)]
fn gate_write(_length: usize) -> Result<(), (usize, Errno)> {
    Ok(())
}

#[cfg(test)]
use fault::{gate, gate_write};

/// Faults for tests: the n-th step of this thread that changes the medium fails, once or like a crash.
#[cfg(test)]
pub(crate) mod fault {
    use std::cell::Cell;

    use super::{Errno, Sys};

    #[derive(Clone, Copy)]
    enum Plan {
        None,
        /// Steps to go, and the error of that step alone.
        Fail(usize, Errno),
        /// Steps to go; if that step is a write, how much of it still happens. Nothing happens from there on.
        Crash(usize, usize),
        Dead,
    }

    thread_local! {
        static PLAN: Cell<Plan> = const { Cell::new(Plan::None) };
        static STEPS: Cell<usize> = const { Cell::new(0) };
    }

    /// Runs `work` with the step number `step` (from 0) failing. Says whether it came to that.
    pub(crate) fn failing<T>(step: usize, error: Errno, work: impl FnOnce() -> T) -> (T, bool) {
        run(Plan::Fail(step, error), work)
    }

    /// Runs `work` as if the process died at step number `step`: that step and all later ones do nothing, except that
    /// a write still leaves `torn` bytes. Says whether it came to that.
    pub(crate) fn crashing<T>(step: usize, torn: usize, work: impl FnOnce() -> T) -> (T, bool) {
        run(Plan::Crash(step, torn), work)
    }

    /// Runs `work` and counts its steps.
    pub(crate) fn counting<T>(work: impl FnOnce() -> T) -> (T, usize) {
        STEPS.set(0);
        let result = work();
        (result, STEPS.get())
    }

    fn run<T>(plan: Plan, work: impl FnOnce() -> T) -> (T, bool) {
        PLAN.set(plan);
        let result = work();
        let happened = matches!(PLAN.replace(Plan::None), Plan::None | Plan::Dead);
        (result, happened)
    }

    pub(super) fn gate() -> Sys<()> {
        gate_write(0).map_err(|(_, error)| error)
    }

    pub(super) fn gate_write(length: usize) -> Result<(), (usize, Errno)> {
        STEPS.set(STEPS.get() + 1);
        match PLAN.get() {
            Plan::None => Ok(()),
            Plan::Fail(0, error) => {
                PLAN.set(Plan::None);
                Err((0, error))
            }
            Plan::Crash(0, torn) => {
                PLAN.set(Plan::Dead);
                Err((torn.min(length), Errno::IO))
            }
            Plan::Fail(steps, error) => {
                PLAN.set(Plan::Fail(steps - 1, error));
                Ok(())
            }
            Plan::Crash(steps, torn) => {
                PLAN.set(Plan::Crash(steps - 1, torn));
                Ok(())
            }
            Plan::Dead => Err((0, Errno::IO)),
        }
    }
}
