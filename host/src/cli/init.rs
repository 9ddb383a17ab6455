//! `recollex init`: makes a workspace, or says what is there.
//!
//! What older programs left in its directory is put aside here, by the host: the component sees a workspace's areas only.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use recollex::lock::{FileLock, Lock, LockError};
use serde::Serialize;

use super::context::Context;
use super::failure::{Exit, Failure};
use super::status::sources;
use super::views::{self, CountsView};

#[derive(Serialize)]
struct Document<'a> {
    workspace: &'a str,
    root: String,
    created: bool,
    revision: &'a str,
    health: &'static str,
    counts: CountsView,
    moved: &'a [Moved],
    kept: &'a [Kept],
}

/// Something older that was put aside.
#[derive(Debug, Serialize, PartialEq, Eq)]
pub struct Moved {
    from: String,
    to: String,
}

/// Something older that stayed.
#[derive(Debug, Serialize, PartialEq, Eq)]
pub struct Kept {
    path: String,
    why: String,
}

/// Names in a workspace's directory that older programs used (decision D44).
const OLDER: [&str; 4] = ["journal", "wiki", ".state", "index.sqlite"];

/// How long to wait for another writer, in milliseconds.
const LOCK_WAIT_MS: u32 = 5000;

/// Runs the verb.
pub fn run(context: &Context) -> Result<Exit, Failure> {
    let root = &context.setup.workspace;
    // The component first: it knows whether memory is on and whether this caller may.
    let mut session = context.session()?;
    let initialised = context.time("init", || session.init())?;
    let (moved, kept) = put_aside_locked(root)?;
    for name in ["sources", "topics"] {
        make_directory(&root.join(name))?;
    }
    let status = session.status()?;
    let shown = root.display().to_string();
    if context.out.json {
        context.out.document(&Document {
            workspace: &initialised.workspace,
            root: shown,
            created: initialised.created,
            revision: &status.revision,
            health: views::health(status.health),
            counts: CountsView::from(&status.counts),
            moved: &moved,
            kept: &kept,
        });
    } else {
        let look = context.out.look;
        let what = if initialised.created { "Made workspace" } else { "There is a workspace:" };
        context.out.line(&format!("{what} {} in {}", initialised.workspace, look.foreign(&shown)));
        if status.counts.source_files + status.counts.topic_files > 0 {
            context.out.line(&format!(
                "Found {} and {} of topics; memory is {}.",
                sources(&status.counts),
                super::terminal::count(status.counts.topic_files, "file", "files"),
                super::status::health(look, status.health)
            ));
        }
        for Moved { from, to } in &moved {
            context.out.line(&format!("Moved {} to {}", look.foreign(from), look.foreign(to)));
        }
    }
    for Kept { path, why } in &kept {
        context.warn(&format!("{path} is from an older program and stayed where it is: {why}"));
    }
    if initialised.created {
        context.hint("Next: recollex archive --provider NAME --thread NAME turns.jsonl");
    }
    Ok(Exit::DONE)
}

/// A directory of one's own (decision D34).
fn make_directory(path: &Path) -> Result<(), Failure> {
    match DirBuilder::new().mode(0o700).create(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        result => result.map_err(|error| Failure::io("make the directory", path, &error)),
    }
}

/// Puts what older programs left aside, under the workspace's lock: one of those programs may be running.
fn put_aside_locked(root: &Path) -> Result<(Vec<Moved>, Vec<Kept>), Failure> {
    if !OLDER.iter().any(|name| root.join(name).symlink_metadata().is_ok()) {
        return Ok((Vec::new(), Vec::new()));
    }
    let guard = FileLock::new(root).acquire(LOCK_WAIT_MS, "init").map_err(|error| match error {
        LockError::Held(_) => Failure::locked("an older layout is to be moved, and another process is writing"),
        LockError::Denied(why) | LockError::Io(why) => {
            Failure::usage("lock", format!("an older layout is to be moved, and the lock cannot be taken: {why}"))
        }
    })?;
    let result = put_aside(root);
    drop(guard);
    result
}

/// Moves what older programs left into the sibling directory `<name>-superseded`, never over anything that is there.
fn put_aside(root: &Path) -> Result<(Vec<Moved>, Vec<Kept>), Failure> {
    let (mut moved, mut kept) = (Vec::new(), Vec::new());
    for name in OLDER {
        let from = root.join(name);
        match from.symlink_metadata() {
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => return Err(Failure::io("look at", &from, &error)),
        }
        let aside = superseded(root);
        make_directory(&aside)?;
        let to = aside.join(name);
        let (from_shown, to_shown) = (from.display().to_string(), to.display().to_string());
        match rename_to_nothing(&from, &to) {
            Ok(()) => moved.push(Moved { from: from_shown, to: to_shown }),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                kept.push(Kept {
                    path: from_shown,
                    why: format!("{to_shown} is there already; move one of them yourself"),
                });
            }
            Err(error) => return Err(Failure::io("move it aside", &from, &error)),
        }
    }
    Ok((moved, kept))
}

/// `memory` -> `memory-superseded`, beside it.
fn superseded(root: &Path) -> PathBuf {
    let mut name = root.file_name().unwrap_or_default().to_owned();
    name.push("-superseded");
    root.with_file_name(name)
}

/// Renames where nothing is; the file system sees to it where it can.
fn rename_to_nothing(from: &Path, to: &Path) -> io::Result<()> {
    #[cfg(any(target_os = "linux", target_os = "macos"))]
    match rustix::fs::renameat_with(rustix::fs::CWD, from, rustix::fs::CWD, to, rustix::fs::RenameFlags::NOREPLACE) {
        // Some file systems (network, FUSE) do not know the flag: look, then rename.
        Err(rustix::io::Errno::INVAL | rustix::io::Errno::NOSYS | rustix::io::Errno::NOTSUP) => {}
        result => return result.map_err(io::Error::from),
    }
    if to.symlink_metadata().is_ok() {
        return Err(io::ErrorKind::AlreadyExists.into());
    }
    fs::rename(from, to)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn older_layouts_are_put_aside_and_nothing_is_overwritten() {
        let parent = tempfile::tempdir().unwrap();
        let root = parent.path().join("memory");
        fs::create_dir_all(root.join("journal")).unwrap();
        fs::create_dir_all(root.join("wiki")).unwrap();
        fs::create_dir_all(root.join("topics")).unwrap();
        fs::write(root.join("journal/a.md"), "a").unwrap();
        fs::write(root.join("index.sqlite"), "new").unwrap();
        let aside = parent.path().join("memory-superseded");
        fs::create_dir_all(aside.join("wiki")).unwrap();
        fs::write(aside.join("index.sqlite"), "old").unwrap();

        let (moved, kept) = put_aside(&root).unwrap();
        assert_eq!(moved.len(), 1);
        assert_eq!(fs::read_to_string(aside.join("journal/a.md")).unwrap(), "a");
        let kept: Vec<&str> = kept.iter().filter_map(|kept| kept.path.rsplit('/').next()).collect();
        assert_eq!(kept, ["wiki", "index.sqlite"]);
        assert_eq!(fs::read_to_string(aside.join("index.sqlite")).unwrap(), "old");
        assert_eq!(fs::read_to_string(root.join("index.sqlite")).unwrap(), "new");
        assert!(root.join("topics").exists());
    }

    #[test]
    fn with_nothing_older_nothing_is_made() {
        let parent = tempfile::tempdir().unwrap();
        let root = parent.path().join("memory");
        fs::create_dir(&root).unwrap();
        assert_eq!(put_aside(&root).unwrap(), (Vec::new(), Vec::new()));
        assert!(!parent.path().join("memory-superseded").exists());
    }

    #[test]
    fn directories_are_private() {
        let parent = tempfile::tempdir().unwrap();
        let path = parent.path().join("sources");
        make_directory(&path).unwrap();
        make_directory(&path).unwrap();
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o700);
    }
}
