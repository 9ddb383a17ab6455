//! What changes in a workspace's tree, as the system tells it, so that not every search has to look at every file.
//!
//! Linux tells by inotify: what it tells of a file is in the queue before the program that changed the file goes on, so that of
//! what it tells nothing is missed. What the system does not tell of is asked for anew: other
//! systems, file systems that others change behind this one's back, a queue that ran over, a directory that came or went, a
//! commit that is not in place yet, and, because not every way to change a file is told of (one through another hard link is
//! not), everything once in a while. Must not know what files mean.

use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd as _, OwnedFd};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use rustix::fs::FileType;
use rustix::fs::inotify::{self, CreateFlags, ReadFlags, Reader, WatchFlags};
use rustix::io::Errno;

use super::disk;
use super::ground::{Way, descend};
use super::journal::Head;
use super::path::{self, hidden};
use super::place::Place;
use super::view::View;
use super::{Area, FileId, Watch};

/// For so long the files need not be looked at themselves.
const FRESH: Duration = Duration::from_secs(10);

/// Directories that are watched at most: each takes memory of the system.
const MOST_DIRECTORIES: usize = 4096;

/// Paths that are told one by one.
const MOST_PATHS: usize = 1024;

/// So many events are read for one question: others may write faster than they are read.
const MOST_EVENTS: usize = 1 << 16;

/// Bytes that are read from the queue at a time: some hundred events.
const EVENTS: usize = 16 << 10;

/// File systems that only this machine changes, and tells of: their numbers in Linux' `magic.h`.
const LOCAL: [u64; 8] = [
    0xef53,      // ext2, ext3, ext4
    0x5846_5342, // XFS
    0x9123_683e, // Btrfs
    0x0102_1994, // tmpfs
    0x794c_7630, // overlayfs
    0x2fc1_2fc1, // ZFS
    0xf2f5_2010, // F2FS
    0xca45_1a4e, // bcachefs
];

/// What may happen to a directory's files.
const CHANGES: WatchFlags = WatchFlags::ATTRIB
    .union(WatchFlags::CLOSE_WRITE)
    .union(WatchFlags::CREATE)
    .union(WatchFlags::DELETE)
    .union(WatchFlags::DELETE_SELF)
    .union(WatchFlags::MODIFY)
    .union(WatchFlags::MOVE)
    .union(WatchFlags::MOVE_SELF)
    .union(WatchFlags::ONLYDIR);

/// Watches the tree of one workspace.
pub(super) struct Watcher {
    place: Place,
    watching: Option<Watching>,
    /// When it last said that everything is to be looked at.
    looked: Option<Instant>,
    /// When the system last refused to watch.
    refused: Option<Instant>,
}

/// Watches that are in place.
struct Watching {
    queue: OwnedFd,
    root: FileId,
    /// Path of each directory, by the number of its watch.
    directories: HashMap<i32, String>,
}

/// What the queue had.
enum Told {
    /// These paths.
    Paths(BTreeSet<String>),
    /// So much that it is not worth telling.
    Much,
    /// The watches are not those of what is there now.
    Lost,
}

impl Watcher {
    pub(super) fn new(place: Place) -> Self {
        Self { place, watching: None, looked: None, refused: None }
    }

    fn everything(&mut self) -> Option<Vec<String>> {
        self.looked = Some(Instant::now());
        None
    }
}

impl fmt::Debug for Watcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watcher").field("root", &self.place.root()).finish_non_exhaustive()
    }
}

impl Watch for Watcher {
    fn changes(&mut self) -> Option<Vec<String>> {
        let is_fresh = self.looked.is_some_and(|looked| looked.elapsed() < FRESH);
        // What a pending commit makes of files shows, and no file has changed yet.
        let view = View::open(&self.place, &Mutex::default()).ok().flatten();
        let view = view.filter(|view| matches!(view.head, Head::Absent | Head::Settled { .. }));
        let root = view.as_ref().and_then(|view| identity(view.ground.root()));
        let (Some(view), Some(root)) = (view, root) else { return self.everything() };
        let told = match &mut self.watching {
            Some(watching) if watching.root == root => watching.told(),
            // Where it was refused it is not tried at each question.
            None if self.refused.is_some_and(|refused| refused.elapsed() < FRESH) => return None,
            _ => Told::Lost,
        };
        match told {
            Told::Paths(paths) if is_fresh => Some(paths.into_iter().collect()),
            Told::Paths(_) | Told::Much => self.everything(),
            Told::Lost => {
                self.watching = Watching::begin(view.ground.root(), root).ok();
                self.refused = self.watching.is_none().then(Instant::now);
                self.everything()
            }
        }
    }
}

impl Watching {
    /// Watches all directories below the root. An error: it cannot be, or would miss something.
    fn begin(root: impl AsFd, id: FileId) -> Result<Self, Errno> {
        let kind = rustix::fs::fstatfs(root.as_fd())?.f_type;
        if !u64::try_from(kind).is_ok_and(|kind| LOCAL.contains(&kind)) {
            return Err(Errno::NOTSUP);
        }
        let queue = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC)?;
        let mut watching = Self { queue, root: id, directories: HashMap::new() };
        let root = root.as_fd();
        let mut left = vec![String::new()];
        while let Some(path) = left.pop() {
            if watching.directories.len() + left.len() >= MOST_DIRECTORIES {
                return Err(Errno::NOSPC);
            }
            // Gone, which its parent's watch tells, or no directory.
            let Way::Open(directory) = descend(rustix::io::fcntl_dupfd_cloexec(root, 0)?, &path)? else { continue };
            if identity(&directory).is_none_or(|found| found.device != id.device) {
                return Err(Errno::XDEV);
            }
            // This very directory, whatever has its name by now.
            let by_descriptor = format!("/proc/self/fd/{}", directory.as_raw_fd());
            let number = inotify::add_watch(&watching.queue, by_descriptor, CHANGES)?;
            // What comes from here on is told.
            disk::each_name(&directory, |name, kind| {
                // What is in a directory without a name in UTF-8 is not listed.
                let name = std::str::from_utf8(name).ok().filter(|name| !(path.is_empty() && hidden(Area::Tree, name)));
                if matches!(kind, FileType::Directory | FileType::Unknown) {
                    left.extend(name.map(|name| path::join(&path, name)));
                }
            })?;
            // One directory at two paths: what is told of one is true of both.
            if watching.directories.insert(number, path).is_some() {
                return Err(Errno::XDEV);
            }
        }
        Ok(watching)
    }

    /// Empties the queue.
    fn told(&mut self) -> Told {
        let mut paths = BTreeSet::new();
        let mut is_much = false;
        let mut buffer = [MaybeUninit::uninit(); EVENTS];
        let mut events = Reader::new(&self.queue, &mut buffer);
        for _ in 0..MOST_EVENTS {
            let event = match events.next() {
                Ok(event) => event,
                Err(Errno::AGAIN) => return if is_much { Told::Much } else { Told::Paths(paths) },
                Err(Errno::INTR) => continue,
                Err(_) => return Told::Lost,
            };
            let name = event.file_name().map(|name| name.to_str().ok());
            let (Some(directory), Some(name)) = (self.directories.get(&event.wd()), name) else {
                // Something became of the directory itself, or the queue ran over.
                return Told::Lost;
            };
            if directory.is_empty() && name.is_some_and(|name| hidden(Area::Tree, name)) {
                continue;
            }
            if event.events().contains(ReadFlags::ISDIR) {
                return Told::Lost;
            }
            is_much |= paths.len() >= MOST_PATHS;
            if !is_much {
                // One that is not UTF-8 is somewhere in the directory.
                paths.insert(name.map_or_else(|| directory.clone(), |name| path::join(directory, name)));
            }
        }
        Told::Lost
    }
}

fn identity(directory: impl AsFd) -> Option<FileId> {
    rustix::fs::fstat(directory).ok().map(|stat| disk::identity(&stat))
}
