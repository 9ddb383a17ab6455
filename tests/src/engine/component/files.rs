//! The directory of a row's workspace, and what is in it, in the rows' shape.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use recollex_test_rows::{Input, bytes_value, promote};
use serde_json::{Map, Value};
use tempfile::TempDir;

use super::RowError;

/// Every file with its bytes, and every directory.
pub(super) type Snapshot = BTreeMap<String, Option<Vec<u8>>>;

/// A directory for the workspace of a row: in memory, where there is such a place. No row is about the medium.
pub(super) fn scratch() -> io::Result<TempDir> {
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir())
}

/// Writes a row's files below `root`.
pub(super) fn write(root: &Path, files: &Input<'_>) -> Result<(), RowError> {
    for (path, content) in files.entries()? {
        let target = root.join(path);
        fs::create_dir_all(target.parent().unwrap_or(root))?;
        fs::write(target, content.bytes()?)?;
    }
    Ok(())
}

/// Whether a file is this program's own: the other writes nothing of the kind, so rows say nothing of it.
pub(super) fn is_own(path: &str) -> bool {
    path.starts_with(".scriptorium/recollex") || path == ".scriptorium/workspace-id"
}

/// The files that are new or other than before, in the rows' shape: without what is this program's own, with the time
/// of an audit line as rows write it.
pub(super) fn changed(before: &Snapshot, after: &Snapshot) -> Map<String, Value> {
    let new = after.iter().filter(|(path, content)| !is_own(path) && before.get(*path) != Some(content));
    new.filter_map(|(path, content)| {
        let content = content.as_deref()?;
        let shown = if path == promote::AUDIT { untimed(content).into() } else { bytes_value(content) };
        Some((path.clone(), shown))
    })
    .collect()
}

/// An audit line with `<now>` for its time, if that is a time.
fn untimed(line: &[u8]) -> String {
    let line = String::from_utf8_lossy(line).into_owned();
    let time = line.strip_prefix("{\"timestamp\":\"").and_then(|rest| rest.split('"').next()).unwrap_or_default();
    if time.len() > 18 && time.ends_with("+00:00") { line.replacen(time, "<now>", 1) } else { line }
}

/// Every file below `root` with its bytes, and every directory.
pub(super) fn snapshot(root: &Path) -> io::Result<Snapshot> {
    let mut found = BTreeMap::new();
    walk(root, "", &mut |path, at| {
        found.insert(path.to_owned(), if at.is_dir() { None } else { Some(fs::read(at)?) });
        Ok(())
    })?;
    // The lock file comes into being when the lock is first taken, as an empty file, with its directory and that of the store;
    // they say nothing of what is kept. The cache can be made again.
    let is_nothing = |path: &str| {
        matches!(path, ".scriptorium" | ".scriptorium/recollex")
            || path.ends_with("/write.lock")
            || path.starts_with(".scriptorium-recollex")
    };
    found.retain(|path, _| !is_nothing(path));
    Ok(found)
}

/// The files below `sources/`, in the rows' shape.
pub(super) fn files(root: &Path) -> io::Result<Map<String, Value>> {
    let mut found = Map::new();
    walk(&root.join("sources"), "sources/", &mut |path, at| {
        if at.is_file() {
            found.insert(path.to_owned(), bytes_value(&fs::read(at)?));
        }
        Ok(())
    })?;
    Ok(found)
}

/// The modes of what was made below `sources/`, in the rows' shape.
pub(super) fn modes(root: &Path) -> io::Result<Map<String, Value>> {
    let mut found = Map::new();
    walk(&root.join("sources"), "sources/", &mut |path, at| {
        let mode = fs::symlink_metadata(at)?.permissions().mode() & 0o7777;
        found.insert(path.to_owned(), format!("0o{mode:o}").into());
        Ok(())
    })?;
    Ok(found)
}

/// Calls `visit` with each path below `directory`, `prefix` before it. Nothing there: nothing is visited.
fn walk(directory: &Path, prefix: &str, visit: &mut dyn FnMut(&str, &Path) -> io::Result<()>) -> io::Result<()> {
    let entries = match fs::read_dir(directory) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    for entry in entries {
        let entry = entry?;
        let path = format!("{prefix}{}", entry.file_name().to_string_lossy());
        visit(&path, &entry.path())?;
        if entry.file_type()?.is_dir() {
            walk(&entry.path(), &format!("{path}/"), visit)?;
        }
    }
    Ok(())
}
