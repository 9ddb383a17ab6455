//! What a workspace's directories look like to whoever examines them: the journal's state, what was left lying about,
//! who else may read what.
//!
//! Knows the store's own directory, which no other module shows. Changes nothing unless it is asked to, and then only what
//! any writer would do first. Must not know what is worth a finding.

use std::os::fd::{AsFd as _, OwnedFd};

use rustix::fs::{FileType, Mode, OFlags};
use rustix::io::{Errno, retry_on_intr};

use super::ground::{Ground, Way, descend};
use super::journal::{self, Head};
use super::path::{self, CACHE, OWN, TEMPORARY};
use super::view::View;
use super::{Area, Directory, Guard, StoreError, commit, disk, place, redo};

/// What the journal says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JournalState {
    /// There was no commit by this program yet.
    Absent,
    /// The last commit is in place.
    Settled,
    /// A commit is made, and perhaps not all of it is in place: its writer is at work or died.
    Pending {
        /// How many paths it changes.
        changes: usize,
    },
    /// A commit of a newer version of this program is unfinished: nothing can be read until that version completes it.
    Newer {
        /// The journal's version.
        version: u32,
    },
    /// The medium damaged it: what it said is unknown.
    Damaged,
}

/// What has the name of the runtime directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RuntimeKind {
    /// Nothing: the workspace is not made yet.
    Absent,
    /// `.scriptorium`
    Scriptorium,
    /// `.nativemem`, in old workspaces.
    Nativemem,
    /// A symbolic link, no directory, or one that may not be opened: nothing can be written.
    Unusable,
}

/// A file or directory that others than its owner may use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WideMode {
    /// Below the workspace's root; empty: the root.
    pub path: String,
    /// It is a directory.
    pub is_directory: bool,
    /// Its permissions.
    pub mode: u32,
}

/// A file or directory that its owner may not use as the workspace needs it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TightMode {
    /// Below the workspace's root; empty: the root.
    pub path: String,
    /// It is a directory.
    pub is_directory: bool,
    /// Its permissions.
    pub mode: u32,
}

/// What an owner must be permitted of a file, and of a directory.
const OWNERS: (u32, u32) = (0o600, 0o700);
/// The permissions of a group and of others.
const OTHERS: u32 = 0o077;

/// How the name begins under which a staged file is copied beside its target, where the target is on another medium.
fn is_copy_beside(name: &str) -> bool {
    name.strip_prefix('.')
        .and_then(|name| name.strip_prefix(OWN))
        .is_some_and(|name| name.strip_prefix('-').is_some_and(|name| name.starts_with(journal::STAGE)))
}

impl Directory {
    /// What the journal says.
    ///
    /// # Errors
    /// As the medium fails.
    pub fn journal(&self) -> Result<JournalState, StoreError> {
        let Some(view) = View::open(&self.place, &self.journal)? else { return Ok(JournalState::Absent) };
        Ok(match (&view.head, &view.pending) {
            (Head::Absent, _) => JournalState::Absent,
            (Head::Settled { .. }, _) => JournalState::Settled,
            (Head::Pending { .. }, Some(pending)) => JournalState::Pending { changes: pending.entries.len() },
            (Head::Foreign { version, .. }, _) => JournalState::Newer { version: *version },
            (Head::Pending { .. } | Head::Damaged { .. }, _) => JournalState::Damaged,
        })
    }

    /// What has the name of the runtime directory.
    ///
    /// # Errors
    /// As the medium fails.
    pub fn runtime_kind(&self) -> Result<RuntimeKind, StoreError> {
        let Some(root) = self.place.open()? else { return Ok(RuntimeKind::Absent) };
        Ok(match place::open_runtime(&root) {
            Ok(None) => RuntimeKind::Absent,
            Ok(Some(_)) if place::runtime_name(&root) == place::OLD_RUNTIME => RuntimeKind::Nativemem,
            Ok(Some(_)) => RuntimeKind::Scriptorium,
            Err(StoreError::Denied(_)) => RuntimeKind::Unusable,
            Err(error) => return Err(error),
        })
    }

    /// Files that writers which died left behind, below the workspace's root. A writer at work has some too: ask with the
    /// lock taken, or when nobody has it.
    ///
    /// # Errors
    /// As the medium fails.
    pub fn leftovers(&self) -> Result<Vec<String>, StoreError> {
        let Some(ground) = Ground::open(&self.place)? else { return Ok(Vec::new()) };
        let failed = |error| disk::store_error(error, "looking for leftovers");
        let mut found = Vec::new();
        if let Some(own) = ground.own() {
            let runtime = place::runtime_name(ground.root());
            for (name, _) in disk::names(own).map_err(failed)? {
                if let Ok(name) = String::from_utf8(name)
                    && (name == journal::NEW
                        || name == journal::ROOM
                        || name == "holder.new"
                        || name.starts_with(journal::STAGE))
                {
                    found.push(format!("{runtime}/{OWN}/{name}"));
                }
            }
        }
        if let Ok(Some(cache)) = ground.base(Area::Cache) {
            for (name, _) in disk::names(&cache).map_err(failed)? {
                if let Ok(name) = String::from_utf8(name)
                    && name.starts_with(TEMPORARY)
                {
                    found.push(format!("{CACHE}/{name}"));
                }
            }
        }
        self.each(&mut |path, stat| {
            if disk::file_type(stat) == FileType::RegularFile && path.rsplit('/').next().is_some_and(is_copy_beside) {
                found.push(path.to_owned());
            }
        })?;
        found.sort();
        found.dedup();
        Ok(found)
    }

    /// Completes what is pending and removes what [`leftovers`](Self::leftovers) lists.
    ///
    /// # Errors
    /// As [`recover`](Self::recover).
    pub fn sweep(&self, guard: &dyn Guard) -> Result<(), StoreError> {
        let ground = commit::open(&self.place, guard)?;
        commit::recover(&ground)?;
        let failed = |error| disk::store_error(error, "removing leftovers");
        if let Some(own) = ground.own() {
            redo::sweep(own).map_err(failed)?;
        }
        for path in self.leftovers()? {
            let (above, name) = path.rsplit_once('/').unwrap_or(("", &path));
            if let Some(parent) = open_below(ground.root(), above)? {
                disk::unlink(&parent, name).map_err(failed)?;
            }
        }
        Ok(())
    }

    /// What others than the owner may use, of everything in the workspace but version control. Links are not followed.
    ///
    /// # Errors
    /// As the medium fails.
    pub fn wide_modes(&self) -> Result<Vec<WideMode>, StoreError> {
        let mut found = Vec::new();
        self.each(&mut |path, stat| {
            let kind = disk::file_type(stat);
            let mode = stat.st_mode & 0o7777;
            if matches!(kind, FileType::RegularFile | FileType::Directory) && mode & OTHERS != 0 {
                found.push(WideMode { path: path.to_owned(), is_directory: kind == FileType::Directory, mode });
            }
        })?;
        Ok(found)
    }

    /// Files and directories that their owner may not read and write, or not enter.
    ///
    /// # Errors
    /// As the medium fails.
    pub fn tight_modes(&self) -> Result<Vec<TightMode>, StoreError> {
        let mut found = Vec::new();
        self.each(&mut |path, stat| {
            let kind = disk::file_type(stat);
            let is_directory = kind == FileType::Directory;
            let needed = if is_directory { OWNERS.1 } else { OWNERS.0 };
            let mode = stat.st_mode & 0o7777;
            if matches!(kind, FileType::RegularFile | FileType::Directory) && mode & needed != needed {
                found.push(TightMode { path: path.to_owned(), is_directory, mode });
            }
        })?;
        Ok(found)
    }

    /// Takes the permissions of others from a file or directory of the workspace.
    ///
    /// # Errors
    /// `NotFound`; `Denied` for what is not one's own; as the medium fails.
    pub fn narrow(&self, wide: &WideMode) -> Result<(), StoreError> {
        let root = self.place.open()?.ok_or(StoreError::NotFound)?;
        let failed = |error| disk::store_error(error, &format!("changing the mode of {}", wide.path));
        let open = if wide.path.is_empty() {
            root
        } else {
            let (above, name) = wide.path.rsplit_once('/').unwrap_or(("", &wide.path));
            let parent = open_below(root.as_fd(), above)?.ok_or(StoreError::NotFound)?;
            let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
            retry_on_intr(|| rustix::fs::openat(&parent, name, flags, Mode::empty())).map_err(failed)?
        };
        let stat = rustix::fs::fstat(&open).map_err(failed)?;
        let mode = Mode::from_raw_mode(stat.st_mode & 0o7777 & !OTHERS);
        rustix::fs::fchmod(&open, mode).map_err(failed)
    }

    /// Visits everything in the workspace, directories too, but version control. What cannot be looked into is passed over.
    fn each(&self, visit: &mut dyn FnMut(&str, &rustix::fs::Stat)) -> Result<(), StoreError> {
        let Some(root) = self.place.open()? else { return Ok(()) };
        let failed = |error| disk::store_error(error, "looking through the workspace");
        visit("", &rustix::fs::fstat(&root).map_err(failed)?);
        let mut open = vec![String::new()];
        while let Some(above) = open.pop() {
            let Some(directory) = open_below(root.as_fd(), &above)? else { continue };
            for (name, _) in disk::names(&directory).map_err(failed)? {
                // A name that is not UTF-8 is a finding of the component's.
                let Ok(name) = String::from_utf8(name) else { continue };
                if above.is_empty() && name == ".git" {
                    continue;
                }
                let Some(stat) = disk::look(&directory, name.as_str()).map_err(failed)? else { continue };
                let path = path::join(&above, &name);
                visit(&path, &stat);
                if disk::file_type(&stat) == FileType::Directory {
                    open.push(path);
                }
            }
        }
        Ok(())
    }
}

/// Opens a directory below the root, through no link; none if it is gone, is none, or may not be opened.
fn open_below(root: std::os::fd::BorrowedFd<'_>, directory: &str) -> Result<Option<OwnedFd>, StoreError> {
    let failed = |error| disk::store_error(error, &format!("opening {directory}"));
    let base = root.try_clone_to_owned().map_err(|error| StoreError::Io(format!("opening the workspace: {error}")))?;
    match descend(base, directory) {
        Ok(Way::Open(open)) => Ok(Some(open)),
        Ok(_) | Err(Errno::ACCESS | Errno::PERM) => Ok(None),
        Err(error) => Err(failed(error)),
    }
}
