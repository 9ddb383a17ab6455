//! What a commit does to the files below a directory, as its system calls say.
//!
//! Follows descriptors and names, so that each change is told of a file or directory by what it is, not by what it is called
//! at the moment. A system call that may change files and is not known here fails the recording: nothing is left out in
//! silence. Must not know what a medium makes of the changes.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Component, Path, PathBuf};
use std::process::Command;

use nix::libc;
use nix::unistd::Pid;
use recollex_tests::crash::COMMITTED;

use super::workspace::{Template, child};
use recollex_tests::trace::{self, Call, Stop, Traced};

/// A file or directory, whatever its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Node(usize);

impl Node {
    /// The directory that the workspace's root is in.
    pub const TOP: Self = Self(0);
}

/// A time of change: seconds since 1970 and nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Time(pub u64, pub u32);

/// What a node is apart from names.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Inode {
    pub is_directory: bool,
    pub data: Vec<u8>,
    pub mode: u32,
    pub modified: Time,
}

/// A change, or what makes changes stay.
#[derive(Clone, Debug)]
pub enum Change {
    /// A name in a directory now stands for this, or for nothing.
    Name {
        directory: Node,
        name: String,
        node: Option<Node>,
    },
    /// A name went over to another, perhaps in another directory.
    Rename {
        from: (Node, String),
        to: (Node, String),
        node: Node,
    },
    /// A node came into being.
    Create {
        node: Node,
        inode: Inode,
    },
    Write {
        node: Node,
        offset: usize,
        data: Vec<u8>,
    },
    Truncate {
        node: Node,
        length: usize,
    },
    Mode {
        node: Node,
        mode: u32,
    },
    /// The time of change that the kernel or the program gave.
    Time {
        node: Node,
        time: Time,
    },
    /// Returned from `fsync`.
    Sync {
        node: Node,
    },
    /// A commit returned success.
    Returned,
}

impl Change {
    /// The node whose content, mode or time it changes. That a node came into being comes with its first name.
    pub fn content_of(&self) -> Option<Node> {
        match self {
            Self::Write { node, .. }
            | Self::Truncate { node, .. }
            | Self::Mode { node, .. }
            | Self::Time { node, .. } => Some(*node),
            _ => None,
        }
    }
}

/// A commit from its beginning to its end.
pub struct Recording {
    /// The names before, by directory.
    pub names: BTreeMap<Node, BTreeMap<String, Node>>,
    /// All nodes: those from before as they were, those that came as they came.
    pub files: BTreeMap<Node, Inode>,
    pub changes: Vec<Change>,
}

impl Recording {
    /// For people.
    pub fn describe(&self) -> String {
        let line = |(at, change): (usize, &Change)| match change {
            Change::Write { node, offset, data } => format!("{at}: write {node:?} at {offset}, {} bytes\n", data.len()),
            other => format!("{at}: {other:?}\n"),
        };
        self.changes.iter().enumerate().map(line).collect()
    }
}

/// Runs what a template does in a new workspace below `top`, which must be empty, and records it.
pub fn perform(template: &Template, top: &Path) -> Recording {
    let root = top.join("w");
    template.copy_to(&root);
    let mut recorder = Recorder::new(top);
    let mut traced = Traced::start(&mut template.child("traced", &root));
    recorder.record(&mut traced, None);
    recorder.finish()
}

/// Runs a process upon what is below `top`, and records it.
pub fn process(top: &Path, command: &mut Command) -> Recording {
    let mut recorder = Recorder::new(top);
    recorder.record(&mut Traced::start(command), None);
    recorder.finish()
}

/// The same, but the commit is killed at a stop; then a recovery runs. Returns too how many changes came before the death.
pub fn recovery(template: &Template, top: &Path, stop: usize) -> (Recording, usize) {
    let root = top.join("w");
    template.copy_to(&root);
    let mut recorder = Recorder::new(top);
    let mut traced = Traced::start(&mut template.child("traced", &root));
    recorder.record(&mut traced, Some(stop));
    traced.kill();
    recorder.open.clear();
    let before = recorder.changes.len();
    let mut traced = Traced::start(child().args(["traced", "recover"]).arg(&root));
    recorder.record(&mut traced, None);
    (recorder.finish(), before)
}

/// The files as they are while the commit runs.
#[derive(Clone, Default)]
struct Now {
    names: BTreeMap<Node, BTreeMap<String, Node>>,
    files: BTreeMap<Node, Inode>,
}

impl Now {
    fn check(&self, node: Node, path: &Path) {
        let names = self.names.get(&node).cloned().unwrap_or_default();
        let mut there: Vec<String> =
            fs::read_dir(path).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        there.sort();
        assert_eq!(there, names.keys().cloned().collect::<Vec<_>>(), "recorded of {}", path.display());
        for (name, node) in names {
            let path = path.join(name);
            let inode = &self.files[&node];
            if inode.is_directory {
                self.check(node, &path);
            } else {
                let (now, recorded) = (look(&path), inode);
                assert!(now == *recorded, "recorded of {}: {recorded:?}, there is {now:?}", path.display());
            }
        }
    }
}

fn look(path: &Path) -> Inode {
    let metadata = fs::symlink_metadata(path).unwrap();
    let is_directory = metadata.is_dir();
    Inode {
        is_directory,
        data: if is_directory { Vec::new() } else { fs::read(path).unwrap() },
        mode: metadata.permissions().mode() & 0o7777,
        modified: Time(metadata.mtime().try_into().unwrap(), metadata.mtime_nsec().try_into().unwrap()),
    }
}

struct Recorder {
    top: PathBuf,
    names: BTreeMap<Node, BTreeMap<String, Node>>,
    files: BTreeMap<Node, Inode>,
    changes: Vec<Change>,
    now: Now,
    /// The descriptors that stand for something below the top.
    open: BTreeMap<i64, Node>,
}

impl Recorder {
    fn new(top: &Path) -> Self {
        let mut recorder = Self {
            top: top.to_owned(),
            names: BTreeMap::new(),
            files: BTreeMap::new(),
            changes: Vec::new(),
            now: Now::default(),
            open: BTreeMap::new(),
        };
        recorder.now.files.insert(Node::TOP, look(top));
        recorder.take_in(Node::TOP, top);
        (recorder.names, recorder.files) = (recorder.now.names.clone(), recorder.now.files.clone());
        recorder
    }

    /// Follows a child to its end, or to one of its stops.
    fn record(&mut self, traced: &mut Traced, stop: Option<usize>) {
        self.find_open(traced.process());
        let mut call = None;
        for at in 0.. {
            match traced.step() {
                Stop::Enter(thread) => call = Some(trace::call(thread)),
                Stop::Leave(thread) => {
                    let call = call.take().expect("it entered before it left");
                    self.follow(thread, call, trace::result(thread));
                }
                Stop::Over(code) => {
                    assert_eq!((code, stop), (Some(0), None), "nothing interrupts it");
                    break;
                }
            }
            if stop == Some(at) {
                break;
            }
        }
    }

    /// What was recorded is what is there.
    fn finish(self) -> Recording {
        self.now.check(Node::TOP, &self.top);
        Recording { names: self.names, files: self.files, changes: self.changes }
    }

    fn take_in(&mut self, directory: Node, path: &Path) {
        for entry in fs::read_dir(path).unwrap() {
            let path = entry.unwrap().path();
            let inode = look(&path);
            let node = self.new_node();
            let name = path.file_name().unwrap().to_str().unwrap().to_owned();
            self.now.names.entry(directory).or_default().insert(name, node);
            let is_directory = inode.is_directory;
            self.now.files.insert(node, inode);
            if is_directory {
                self.take_in(node, &path);
            }
        }
    }

    fn new_node(&self) -> Node {
        Node(self.now.files.len())
    }

    /// What the child had open before it was traced.
    fn find_open(&self, process: Pid) {
        for entry in fs::read_dir(format!("/proc/{process}/fd")).unwrap() {
            let target = fs::read_link(entry.unwrap().path()).unwrap();
            assert!(!target.starts_with(&self.top), "open before the commit: {}", target.display());
        }
    }

    fn change(&mut self, change: Change) {
        match &change {
            Change::Name { directory, name, node: Some(node) } => {
                self.now.names.entry(*directory).or_default().insert(name.clone(), *node);
            }
            Change::Name { directory, name, node: None } => {
                self.now.names.entry(*directory).or_default().remove(name);
            }
            Change::Rename { from, to, node } => {
                self.now.names.entry(from.0).or_default().remove(&from.1);
                self.now.names.entry(to.0).or_default().insert(to.1.clone(), *node);
            }
            Change::Create { node, inode } => {
                self.now.files.insert(*node, inode.clone());
                self.files.insert(*node, inode.clone());
            }
            Change::Write { node, offset, data } => {
                let inode = self.now.files.get_mut(node).unwrap();
                let end = offset + data.len();
                inode.data.resize(inode.data.len().max(end), 0);
                inode.data[*offset..end].copy_from_slice(data);
            }
            Change::Truncate { node, length } => self.now.files.get_mut(node).unwrap().data.resize(*length, 0),
            Change::Mode { node, mode } => self.now.files.get_mut(node).unwrap().mode = *mode,
            Change::Time { node, time } => self.now.files.get_mut(node).unwrap().modified = *time,
            Change::Sync { .. } | Change::Returned => {}
        }
        self.changes.push(change);
    }

    /// Where a path leads: the directory and the name in it. None: outside the top, or nowhere.
    fn place(&self, directory: u64, path: &str) -> Option<(Node, String)> {
        let path = Path::new(path);
        let (mut at, rest) = match path.strip_prefix(&self.top) {
            Ok(rest) => (Node::TOP, rest),
            Err(_) if path.is_absolute() => return None,
            Err(_) => (*self.open.get(&i64::from(directory as i32))?, path),
        };
        let mut name = String::new();
        for component in rest.components() {
            let Component::Normal(part) = component else { continue };
            if !name.is_empty() {
                at = *self.now.names.get(&at)?.get(&name)?;
            }
            name = part.to_str().unwrap().to_owned();
        }
        Some((at, name))
    }

    fn node_at(&self, (directory, name): &(Node, String)) -> Option<Node> {
        if name.is_empty() { Some(*directory) } else { self.now.names.get(directory)?.get(name).copied() }
    }

    fn node(&self, descriptor: u64) -> Option<Node> {
        self.open.get(&i64::from(descriptor as i32)).copied()
    }

    /// The time of change that the kernel gave with a write.
    fn time_of(&mut self, thread: Pid, descriptor: u64, node: Node) {
        let metadata = fs::metadata(format!("/proc/{thread}/fd/{}", descriptor as i32)).unwrap();
        let time = Time(metadata.mtime().try_into().unwrap(), metadata.mtime_nsec().try_into().unwrap());
        self.change(Change::Time { node, time });
    }

    /// A name for something new.
    fn create(&mut self, thread: Pid, place: (Node, String), descriptor: Option<i64>) {
        let path = match descriptor {
            Some(descriptor) => PathBuf::from(format!("/proc/{thread}/fd/{descriptor}")),
            None => self.path_of(&place),
        };
        let metadata = fs::metadata(path).unwrap();
        let inode = Inode {
            is_directory: metadata.is_dir(),
            data: Vec::new(),
            mode: metadata.permissions().mode() & 0o7777,
            modified: Time(metadata.mtime().try_into().unwrap(), metadata.mtime_nsec().try_into().unwrap()),
        };
        let node = self.new_node();
        self.change(Change::Create { node, inode });
        self.change(Change::Name { directory: place.0, name: place.1, node: Some(node) });
    }

    fn path_of(&self, (directory, name): &(Node, String)) -> PathBuf {
        fn find(now: &Now, at: Node, path: &Path, wanted: Node) -> Option<PathBuf> {
            if at == wanted {
                return Some(path.to_owned());
            }
            let names = now.names.get(&at)?;
            names.iter().find_map(|(name, node)| find(now, *node, &path.join(name), wanted))
        }
        find(&self.now, Node::TOP, &self.top, *directory).expect("a directory that has a name").join(name)
    }

    /// Takes in a system call that returned.
    fn follow(&mut self, thread: Pid, call: Call, result: i64) {
        let [a, b, c, d, ..] = call.arguments;
        let path = |at: u64| trace::string(thread, at);
        let failed = result < 0;
        match call.number {
            #[cfg(target_arch = "x86_64")]
            libc::SYS_open => self.opened(thread, self.place(u64::MAX, &path(a)), b as i32, result),
            libc::SYS_openat => self.opened(thread, self.place(a, &path(b)), c as i32, result),
            libc::SYS_openat2 => {
                // The flags are the first eight bytes of what it is told how.
                let how = trace::memory(thread, c, size_of::<u64>());
                let flags = how.first_chunk().map_or(0, |flags| u64::from_ne_bytes(*flags));
                self.opened(thread, self.place(a, &path(b)), flags as i32, result);
            }
            libc::SYS_close => {
                self.open.remove(&(i64::from(a as i32)));
            }
            libc::SYS_fcntl => {
                let command = b as i32;
                let duplicates = !failed && [libc::F_DUPFD, libc::F_DUPFD_CLOEXEC].contains(&command);
                if let Some(node) = self.node(a).filter(|_| duplicates) {
                    self.open.insert(result, node);
                }
            }
            #[cfg(target_arch = "x86_64")]
            libc::SYS_mkdir => {
                if let Some(place) = self.place(u64::MAX, &path(a)).filter(|_| !failed) {
                    self.create(thread, place, None);
                }
            }
            libc::SYS_mkdirat => {
                if let Some(place) = self.place(a, &path(b)).filter(|_| !failed) {
                    self.create(thread, place, None);
                }
            }
            libc::SYS_pwrite64 => {
                let Some(node) = self.node(a).filter(|_| result > 0) else { return };
                let data = trace::memory(thread, b, result as usize);
                self.change(Change::Write { node, offset: d as usize, data });
                self.time_of(thread, a, node);
            }
            libc::SYS_write => {
                if let Some(node) = self.node(a).filter(|_| result > 0) {
                    let data = trace::memory(thread, b, result as usize);
                    // The kernel has moved on by as much as it wrote.
                    let offset = position(thread, a) - data.len();
                    self.change(Change::Write { node, offset, data });
                    self.time_of(thread, a, node);
                }
                if a == 1 && result > 0 && trace::memory(thread, b, result as usize).starts_with(COMMITTED.as_bytes()) {
                    self.change(Change::Returned);
                }
            }
            libc::SYS_copy_file_range => {
                let (Some(from), Some(to)) = (self.node(a), self.node(c)) else { return };
                if result <= 0 {
                    return;
                }
                // The kernel moved both offsets on by as much as it copied.
                let offset = |at: u64| {
                    let bytes = trace::memory(thread, at, 8);
                    u64::from_le_bytes(bytes.try_into().unwrap()) as usize - result as usize
                };
                let (at, offset) = (offset(b), offset(d));
                let data = self.now.files[&from].data[at..at + result as usize].to_vec();
                self.change(Change::Write { node: to, offset, data });
                self.time_of(thread, c, to);
            }
            libc::SYS_ftruncate => {
                let Some(node) = self.node(a).filter(|_| !failed) else { return };
                self.change(Change::Truncate { node, length: b as usize });
                self.time_of(thread, a, node);
            }
            libc::SYS_fallocate => {
                assert_eq!(
                    b as i32,
                    libc::FALLOC_FL_KEEP_SIZE,
                    "an allocation that changes the length is not known here"
                );
            }
            libc::SYS_fsync | libc::SYS_fdatasync => {
                if let Some(node) = self.node(a).filter(|_| !failed) {
                    self.change(Change::Sync { node });
                }
            }
            #[cfg(target_arch = "x86_64")]
            libc::SYS_renameat => self.rename(self.place(a, &path(b)), self.place(c, &path(d)), failed),
            libc::SYS_renameat2 => self.rename(self.place(a, &path(b)), self.place(c, &path(d)), failed),
            #[cfg(target_arch = "x86_64")]
            libc::SYS_rename => self.rename(self.place(u64::MAX, &path(a)), self.place(u64::MAX, &path(b)), failed),
            libc::SYS_linkat => {
                let (from, to) = (self.place(a, &path(b)), self.place(c, &path(d)));
                if let (Some(from), Some((directory, name)), false) = (from, to, failed) {
                    let node = self.node_at(&from);
                    self.change(Change::Name { directory, name, node });
                }
            }
            #[cfg(target_arch = "x86_64")]
            libc::SYS_unlink => {
                if let Some((directory, name)) = self.place(u64::MAX, &path(a)).filter(|_| !failed) {
                    self.change(Change::Name { directory, name, node: None });
                }
            }
            libc::SYS_unlinkat => {
                if let Some((directory, name)) = self.place(a, &path(b)).filter(|_| !failed) {
                    self.change(Change::Name { directory, name, node: None });
                }
            }
            libc::SYS_fchmod => {
                if let Some(node) = self.node(a).filter(|_| !failed) {
                    self.change(Change::Mode { node, mode: b as u32 });
                }
            }
            libc::SYS_utimensat => {
                if let Some(node) = self.node(a).filter(|_| !failed) {
                    assert_eq!(b, 0, "only times of what is open are known here");
                    self.time_of(thread, a, node);
                }
            }
            other => assert!(changes_nothing(other), "system call {other} is not known here"),
        }
    }

    fn opened(&mut self, thread: Pid, place: Option<(Node, String)>, flags: i32, descriptor: i64) {
        let Some(place) = place.filter(|_| descriptor >= 0) else { return };
        assert_eq!(flags & libc::O_TRUNC, 0, "an open that truncates is not known here");
        if self.node_at(&place).is_none() {
            assert_ne!(flags & libc::O_CREAT, 0, "{place:?} is open and was never made");
            self.create(thread, place.clone(), Some(descriptor));
        }
        self.open.insert(descriptor, self.node_at(&place).expect("it is known by now"));
    }

    fn rename(&mut self, from: Option<(Node, String)>, to: Option<(Node, String)>, failed: bool) {
        let (Some(from), Some(to)) = (from.filter(|_| !failed), to) else { return };
        let node = self.node_at(&from).expect("what is renamed is there");
        self.change(Change::Rename { from, to, node });
    }
}

/// Where a descriptor stands in its file.
fn position(thread: Pid, descriptor: u64) -> usize {
    let text = fs::read_to_string(format!("/proc/{thread}/fdinfo/{}", descriptor as i32)).unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix("pos:")).expect("a position");
    line.trim().parse().unwrap()
}

/// Whether a system call leaves the files alone.
fn changes_nothing(number: i64) -> bool {
    #[cfg(target_arch = "x86_64")]
    let old = [libc::SYS_stat, libc::SYS_lstat, libc::SYS_readlink, libc::SYS_access].contains(&number);
    #[cfg(target_arch = "aarch64")]
    let old = false;
    old || [
        libc::SYS_read,
        libc::SYS_pread64,
        libc::SYS_lseek,
        libc::SYS_fstat,
        libc::SYS_fadvise64,
        libc::SYS_newfstatat,
        libc::SYS_statx,
        libc::SYS_getdents64,
        libc::SYS_faccessat,
        libc::SYS_faccessat2,
        libc::SYS_flock,
        libc::SYS_brk,
        libc::SYS_mmap,
        libc::SYS_munmap,
        libc::SYS_mremap,
        libc::SYS_mprotect,
        libc::SYS_madvise,
        libc::SYS_futex,
        libc::SYS_getpid,
        libc::SYS_gettid,
        libc::SYS_geteuid,
        libc::SYS_getrandom,
        libc::SYS_clock_gettime,
        libc::SYS_clock_nanosleep,
        libc::SYS_sched_yield,
        libc::SYS_sigaltstack,
        libc::SYS_rt_sigaction,
        libc::SYS_rt_sigprocmask,
        libc::SYS_exit_group,
    ]
    .contains(&number)
}
