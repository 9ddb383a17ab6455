//! Where things are: a workspace's root, its runtime directory, and the store's own directory in that.
//!
//! Knows the observed layout (two possible names of the runtime directory) and how each directory comes into being.
//! Must not know what is in them.

use std::fs::DirBuilder;
use std::io::ErrorKind;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, FileType, Mode, OFlags};
use rustix::io::{Errno, retry_on_intr};

use super::StoreError;
use super::disk::{self, Sys};
use super::path::OWN;

/// The runtime directory's name in a new workspace.
pub(crate) const RUNTIME: &str = ".scriptorium";
/// Its name in old ones, which keep it.
pub(crate) const OLD_RUNTIME: &str = ".nativemem";

/// A workspace's root, by its path. The path is resolved at each call: the root may not exist yet, may be put in place
/// of another, and may be reached through symbolic links.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    root: PathBuf,
}

impl Place {
    /// The workspace at `root`. A relative path counts from the current directory of this moment.
    pub(crate) fn new(root: &Path) -> Self {
        Self { root: std::path::absolute(root).unwrap_or_else(|_| root.to_owned()) }
    }

    /// The root's path.
    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// Opens the root; none if there is nothing.
    pub(crate) fn open(&self) -> Result<Option<OwnedFd>, StoreError> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        match retry_on_intr(|| rustix::fs::open(&self.root, flags, Mode::empty())) {
            Ok(root) => Ok(Some(root)),
            Err(Errno::NOENT) => Ok(None),
            Err(Errno::NOTDIR) => Err(StoreError::Denied(format!("{} is not a directory", self.root.display()))),
            Err(error) => Err(disk::store_error(error, &format!("opening {}", self.root.display()))),
        }
    }

    /// Opens the root, and makes it, with the directories above it, if there is nothing.
    pub(crate) fn create(&self) -> Result<OwnedFd, StoreError> {
        if let Some(root) = self.open()? {
            return Ok(root);
        }
        let failed = |error: &std::io::Error| match Errno::from_io_error(error) {
            Some(errno) => disk::store_error(errno, &format!("making {}", self.root.display())),
            None => StoreError::Io(error.to_string()),
        };
        let mut builder = DirBuilder::new();
        builder.mode(0o700);
        if let Some(above) = self.root.parent() {
            builder.recursive(true).create(above).map_err(|error| failed(&error))?;
        }
        let new = match builder.recursive(false).create(&self.root) {
            Ok(()) => true,
            // Another process was faster.
            Err(error) if error.kind() == ErrorKind::AlreadyExists => false,
            Err(error) => return Err(failed(&error)),
        };
        let root = self.open()?.ok_or(StoreError::NotFound)?;
        if new {
            // Only its owner reads it, whatever the umask took away or left.
            rustix::fs::fchmod(&root, Mode::RWXU).map_err(|error| disk::store_error(error, "making the workspace"))?;
            if let Some(above) = self.root.parent()
                && let Ok(above) =
                    rustix::fs::open(above, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())
            {
                disk::sync(&above).map_err(|error| disk::store_error(error, "making the workspace"))?;
            }
        }
        Ok(root)
    }
}

/// The name of the runtime directory below `root`: the old one if there is a directory of that name.
///
/// Other programs follow a symbolic link there. This one chooses as they do, and then refuses to open the link, so that
/// two programs never write one workspace under two locks.
pub(crate) fn runtime_name(root: impl AsFd) -> &'static str {
    match rustix::fs::statat(root, OLD_RUNTIME, AtFlags::empty()) {
        Ok(stat) if disk::file_type(&stat) == FileType::Directory => OLD_RUNTIME,
        _ => RUNTIME,
    }
}

/// The same below a path, for messages.
pub(crate) fn runtime_of(root: &Path) -> &'static str {
    if root.join(OLD_RUNTIME).is_dir() { OLD_RUNTIME } else { RUNTIME }
}

/// Opens the runtime directory; none if there is nothing.
///
/// # Errors
/// `Denied` if it is a link or not a directory.
pub(crate) fn open_runtime(root: impl AsFd) -> Result<Option<OwnedFd>, StoreError> {
    let name = runtime_name(root.as_fd());
    match disk::open_dir(root, name) {
        Ok(runtime) => Ok(Some(runtime)),
        Err(Errno::NOENT) => Ok(None),
        Err(Errno::NOTDIR | Errno::LOOP) => {
            Err(StoreError::Denied(format!("{name} is a symbolic link or not a directory")))
        }
        Err(error) => Err(disk::store_error(error, &format!("opening {name}"))),
    }
}

/// Opens the runtime directory, and makes it if there is nothing.
///
/// # Errors
/// As [`open_runtime`], and as the medium fails.
pub(crate) fn create_runtime(root: impl AsFd) -> Result<OwnedFd, StoreError> {
    if let Some(runtime) = open_runtime(root.as_fd())? {
        return Ok(runtime);
    }
    make(root.as_fd(), runtime_name(root.as_fd()))
        .map_err(|error| disk::store_error(error, "making the runtime directory"))
}

/// Opens the store's own directory in the runtime directory; none if there is nothing, or something else.
pub(crate) fn open_own(runtime: impl AsFd) -> Result<Option<OwnedFd>, StoreError> {
    match disk::open_dir(runtime, OWN) {
        Ok(own) => Ok(Some(own)),
        Err(Errno::NOENT) => Ok(None),
        Err(Errno::NOTDIR | Errno::LOOP) => {
            Err(StoreError::Denied(format!("{OWN} in the runtime directory is a symbolic link or not a directory")))
        }
        Err(error) => Err(disk::store_error(error, "opening the store's own directory")),
    }
}

/// Opens the store's own directory, and makes it if there is nothing.
pub(crate) fn create_own(runtime: impl AsFd) -> Result<OwnedFd, StoreError> {
    if let Some(own) = open_own(runtime.as_fd())? {
        return Ok(own);
    }
    make(runtime, OWN).map_err(|error| disk::store_error(error, "making the store's own directory"))
}

/// Makes a directory so that it stays.
fn make(parent: impl AsFd, name: &str) -> Sys<OwnedFd> {
    let (directory, new) = disk::make_dir(parent.as_fd(), name)?;
    if new {
        disk::sync(parent)?;
    }
    Ok(directory)
}
