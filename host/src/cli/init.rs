//! `recollex init`: makes a workspace, or says what is there.
//!
//! What older programs left in its directory is put aside here, by the host: the component knows which names these are, and
//! can move nothing out of its workspace. To it there are only files, so a directory without any is looked for here.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Component, Path, PathBuf};

use recollex::lock::{FileLock, Lock, LockError};
use recollex::workspace::Status;
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

/// The component's finding for a name that older programs used (decision D44).
const OLD_LAYOUT: &str = "old-layout";

/// Directories that older programs made (FORMAT.md, "Workspace"): without a file in them the component does not see them.
const OLD_DIRECTORIES: [&str; 3] = ["journal", "wiki", ".state"];

/// Runs the verb.
pub fn run(context: &Context) -> Result<Exit, Failure> {
    let root = &context.setup.workspace;
    // The component first: it knows whether memory is on and whether this caller may.
    let mut session = context.session()?;
    let initialised = context.time("init", || session.init())?;
    context.out.stands(if initialised.created { "the workspace is made" } else { "there is a workspace" });
    let mut status = session.status()?;
    let older = older(&status, root);
    let (moved, kept) = if older.is_empty() {
        (Vec::new(), Vec::new())
    } else {
        let done = put_aside_locked(root, &older, context.setup.lock_wait_ms()?)?;
        status = session.status()?;
        done
    };
    for name in ["sources", "topics"] {
        make_directory(&root.join(name))?;
    }
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
        context
            .hint("Next: recollex import FORMAT FILE, or recollex archive --provider NAME --thread NAME turns.jsonl");
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

/// Names in the workspace's directory that the component finds to be older programs', and those of empty directories.
fn older<'a>(status: &'a Status, root: &Path) -> Vec<&'a str> {
    let found = status.reasons.iter().filter(|finding| finding.code == OLD_LAYOUT);
    let mut names: Vec<&str> =
        found.filter_map(|finding| finding.path.as_deref()).filter(|name| is_name(name)).collect();
    let is_directory = |name: &&str| root.join(name).symlink_metadata().is_ok_and(|metadata| metadata.is_dir());
    let unseen = OLD_DIRECTORIES.into_iter().filter(|name| !names.contains(name)).filter(is_directory);
    names.extend(unseen.collect::<Vec<_>>());
    names
}

/// Whether a path is one name, and so of something in the directory itself.
fn is_name(path: &str) -> bool {
    let mut parts = Path::new(path).components();
    matches!((parts.next(), parts.next()), (Some(Component::Normal(_)), None))
}

/// Puts what older programs left aside, under the workspace's lock: one of those programs may be running.
fn put_aside_locked(root: &Path, older: &[&str], wait_ms: u32) -> Result<(Vec<Moved>, Vec<Kept>), Failure> {
    let guard = FileLock::new(root).acquire(wait_ms, "init").map_err(|error| {
        let is_held = matches!(error, LockError::Held(_));
        let mut failure = Failure::from(error);
        if is_held {
            failure.message = format!("an older layout is to be moved, and {}", failure.message);
        }
        failure
    })?;
    let result = put_aside(root, older);
    drop(guard);
    result
}

/// Moves what older programs left into the sibling directory `<name>-superseded`, never over anything that is there. If the
/// medium fails on the way, what was moved is moved back.
fn put_aside(root: &Path, older: &[&str]) -> Result<(Vec<Moved>, Vec<Kept>), Failure> {
    let (mut moved, mut kept) = (Vec::new(), Vec::new());
    let mut done: Vec<(PathBuf, PathBuf)> = Vec::new();
    for name in older {
        let from = root.join(name);
        let to = superseded(root).join(name);
        let (from_shown, to_shown) = (from.display().to_string(), to.display().to_string());
        match move_aside(root, &from, &to) {
            Ok(Aside::Moved) => {
                moved.push(Moved { from: from_shown, to: to_shown });
                done.push((from, to));
            }
            Ok(Aside::Taken) => {
                let why = format!("{to_shown} is there already; move one of them yourself");
                kept.push(Kept { path: from_shown, why });
            }
            Ok(Aside::Gone) => {}
            Err(failure) => {
                let stuck = done.iter().rev().filter(|(from, to)| rename_to_nothing(to, from).is_err());
                let stuck: Vec<String> = stuck.map(|(_, to)| to.display().to_string()).collect();
                return Err(match &*stuck {
                    [] => failure.next("nothing was moved; try again once that is mended"),
                    stuck => failure.next(format!("move back what could not be: {}", stuck.join(", "))),
                });
            }
        }
    }
    Ok((moved, kept))
}

/// What became of something that was to be moved.
enum Aside {
    Moved,
    /// Something is there already.
    Taken,
    /// It was gone by then.
    Gone,
}

/// Moves one thing.
fn move_aside(root: &Path, from: &Path, to: &Path) -> Result<Aside, Failure> {
    match from.symlink_metadata() {
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Aside::Gone),
        Err(error) => return Err(Failure::io("look at", from, &error)),
    }
    make_directory(&superseded(root))?;
    match rename_to_nothing(from, to) {
        Ok(()) => Ok(Aside::Moved),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(Aside::Taken),
        Err(error) => Err(Failure::io("move it aside", from, &error)),
    }
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

        let (moved, kept) = put_aside(&root, &["journal", "wiki", "index.sqlite", "gone"]).unwrap();
        assert_eq!(moved.len(), 1);
        assert_eq!(fs::read_to_string(aside.join("journal/a.md")).unwrap(), "a");
        let kept: Vec<&str> = kept.iter().filter_map(|kept| kept.path.rsplit('/').next()).collect();
        assert_eq!(kept, ["wiki", "index.sqlite"]);
        assert_eq!(fs::read_to_string(aside.join("index.sqlite")).unwrap(), "old");
        assert_eq!(fs::read_to_string(root.join("index.sqlite")).unwrap(), "new");
        assert!(root.join("topics").exists());
    }

    #[test]
    fn what_fails_on_the_way_is_taken_back() {
        let parent = tempfile::tempdir().unwrap();
        let root = parent.path().join("memory");
        fs::create_dir_all(root.join("journal")).unwrap();
        fs::create_dir_all(root.join("wiki/deep")).unwrap();
        // There is no directory beside that the second could be put into.
        let failure = put_aside(&root, &["journal", "wiki/deep"]).unwrap_err();
        assert!(failure.next.as_deref().is_some_and(|next| next.starts_with("nothing was moved")), "{failure:?}");
        assert!(root.join("journal").is_dir() && root.join("wiki/deep").is_dir());
        assert!(!parent.path().join("memory-superseded/journal").exists());
    }

    #[test]
    fn what_is_gone_by_now_is_nothing_to_move() {
        let parent = tempfile::tempdir().unwrap();
        let root = parent.path().join("memory");
        fs::create_dir(&root).unwrap();
        assert_eq!(put_aside(&root, &["journal"]).unwrap(), (Vec::new(), Vec::new()));
        assert!(!parent.path().join("memory-superseded").exists());
    }

    #[test]
    fn only_what_lies_in_the_directory_itself_is_moved() {
        assert!(is_name("journal") && is_name(".state"));
        for path in ["", ".", "..", "/", "/etc", "a/b", "../b"] {
            assert!(!is_name(path), "{path:?}");
        }
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
