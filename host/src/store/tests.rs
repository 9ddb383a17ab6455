//! The directory store over real directories, processes and faults. Here: what all these tests share.

mod commits;
mod erase;
mod model;
mod reading;
mod recovery;
mod undo;
#[cfg(target_os = "linux")]
mod watch;
mod writers;

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::*;
use crate::lock::{FileLock, Lock as _};

/// A workspace in a temporary directory.
struct Space {
    directory: tempfile::TempDir,
    store: Directory,
}

impl Space {
    /// An empty workspace, in which the lock was taken once: its files exist.
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let space = Self { store: Directory::new(directory.path()), directory };
        drop(space.guard());
        space
    }

    fn with(files: &[(&str, &str)]) -> Self {
        let space = Self::new();
        for (path, text) in files {
            space.write(path, text);
        }
        space
    }

    fn root(&self) -> &Path {
        self.directory.path()
    }

    fn guard(&self) -> Box<dyn Guard> {
        FileLock::new(self.root()).acquire(10_000, "test").unwrap()
    }

    /// What another program writes.
    fn write(&self, path: &str, content: impl AsRef<[u8]>) {
        let path = self.root().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }

    /// What another program reads.
    fn raw(&self, path: &str) -> Option<String> {
        std::fs::read_to_string(self.root().join(path)).ok()
    }

    fn commit(&self, changes: &[Change]) -> Result<Committed, CommitError> {
        let base = self.store.generation().unwrap();
        self.store.commit(&*self.guard(), base, changes, &About::default())
    }

    fn stamp(&self, path: &str) -> Stamp {
        self.store.stat(Area::Tree, path).unwrap().stamp
    }

    /// A second store at the same directory, as another process would have.
    fn another(&self) -> Directory {
        Directory::new(self.root())
    }
}

/// The whole text of a file, in pieces of `max` bytes.
fn text(store: &Directory, area: Area, path: &str, max: u32) -> Result<String, StoreError> {
    let (mut whole, mut offset) = (String::new(), 0);
    loop {
        let chunk = store.read_text(area, path, None, offset, max)?;
        whole.push_str(&chunk.text);
        assert_eq!(chunk.next, whole.len() as u64);
        assert!(chunk.eof || !chunk.text.is_empty());
        offset = chunk.next;
        if chunk.eof {
            assert_eq!(chunk.stamp.size, offset);
            return Ok(whole);
        }
    }
}

/// All entries of an area, in pages of `max`.
fn list(store: &Directory, area: Area, prefix: &str, max: u32) -> Vec<Entry> {
    let (mut entries, mut cursor) = (Vec::new(), None);
    loop {
        let page = store.entries(area, prefix, cursor.as_deref(), max).unwrap();
        assert!(max == 0 || page.entries.len() <= max as usize);
        entries.extend(page.entries);
        match page.next {
            Some(next) => cursor = Some(next),
            None => return entries,
        }
    }
}

/// What a reader sees of the tree: each file with its text.
fn contents(store: &Directory) -> BTreeMap<String, String> {
    list(store, Area::Tree, "", 3)
        .into_iter()
        .map(|entry| {
            let text = text(store, Area::Tree, &entry.path, 5).unwrap();
            assert_eq!(entry.stamp.size, text.len() as u64, "{}", entry.path);
            (entry.path, text)
        })
        .collect()
}

/// Everything below a directory, as the file system has it: kind and mode, and content or target.
fn snapshot(root: &Path) -> BTreeMap<PathBuf, (u32, Vec<u8>)> {
    fn visit(directory: &Path, found: &mut BTreeMap<PathBuf, (u32, Vec<u8>)>) {
        for entry in std::fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            let metadata = path.symlink_metadata().unwrap();
            let content = if metadata.is_symlink() {
                std::fs::read_link(&path).unwrap().into_os_string().into_encoded_bytes()
            } else if metadata.is_file() {
                std::fs::read(&path).unwrap()
            } else {
                Vec::new()
            };
            if metadata.is_dir() {
                visit(&path, found);
            }
            found.insert(path, (metadata.permissions().mode(), content));
        }
    }
    let mut found = BTreeMap::new();
    visit(root, &mut found);
    found
}

/// What a snapshot has outside the store's own directory.
fn visible(snapshot: &BTreeMap<PathBuf, (u32, Vec<u8>)>) -> Vec<(&PathBuf, &(u32, Vec<u8>))> {
    snapshot
        .iter()
        .filter(|(path, _)| !path.components().any(|part| part.as_os_str() == OsStr::new(path::OWN)))
        .collect()
}

fn change(path: &str, edit: Edit) -> Change {
    Change { area: Area::Tree, path: path.to_owned(), expect: Expect::Any, edit }
}

fn put(path: &str, text: &str) -> Change {
    change(path, Edit::Put(text.to_owned()))
}

fn append(path: &str, length: u64, text: &str) -> Change {
    change(path, Edit::Append { length, text: text.to_owned() })
}

fn splice(path: &str, splices: &[(u64, u64, &str)]) -> Change {
    let splices = splices
        .iter()
        .map(|(offset, remove, insert)| Splice { offset: *offset, remove: *remove, insert: (*insert).to_owned() })
        .collect();
    change(path, Edit::Splice(splices))
}

fn delete(path: &str) -> Change {
    change(path, Edit::Delete)
}

fn rename(path: &str, to: &str) -> Change {
    change(path, Edit::MoveTo(to.to_owned()))
}

/// Names the directory of a test to a process that is part of it.
const DIRECTORY: &str = "RECOLLEX_TEST_DIRECTORY";

/// This program again, to run one ignored test as a process of its own, on a directory.
pub(crate) fn process(test: &str, directory: &Path) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args([test, "--exact", "--ignored", "--nocapture", "--test-threads=1"]).env(DIRECTORY, directory);
    command
}

/// The directory that a process of [`process`] is to work on.
pub(crate) fn directory_of_process() -> PathBuf {
    std::env::var_os(DIRECTORY).expect("run by another test only").into()
}
