//! A consistent copy of a workspace, made while others want to write: they wait.
//!
//! The caller has the lock; what a writer that died left unfinished is completed first, so that the copy is one state of
//! the workspace and nothing else. Every byte is read once.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use sha2::{Digest as _, Sha256};

use super::bundle::{
    BackupError, FILES_MAX, FORMAT, MANIFEST, Manifest, Member, PIECE, Progress, RUNTIME_FILES, SUM, header, hex, utc,
};
use super::doctor::each_entry;
use crate::lock::is_alive;
use crate::store::{Area, Directory, Guard, Kind, Stamp, Store as _, StoreError, Twins};

/// A temporary file that nobody has written to for so long has no writer any more, though there is a process of its number.
const ABANDONED: Duration = Duration::from_secs(3600);

/// What stands between a backup's name and the writer's process in the name of a temporary file.
const TEMPORARY: &str = ".tmp-";

/// A backup that was made.
#[derive(Clone, Debug)]
pub struct Backup {
    /// Where it is.
    pub path: PathBuf,
    /// What it holds.
    pub manifest: Manifest,
    /// What lies in the tree and is no regular file: it is not in the backup.
    pub left_out: Vec<String>,
}

/// A file to be copied.
struct Source {
    area: Area,
    path: String,
    stamp: Stamp,
}

/// What a backup that is made now is called, where only its directory is named.
#[must_use]
pub fn name(store: &Directory) -> String {
    let id = workspace_id(store).unwrap_or_else(|| "workspace".to_owned());
    // Colons are no part of a name on every medium that a backup may be taken to.
    format!("recollex-{id}-{}.tar", utc(now()).replace(':', ""))
}

/// Makes a backup in the file `target`, under the lock. The file is there whole or not at all, for its owner alone.
///
/// # Errors
/// `Io` with [`io::ErrorKind::AlreadyExists`] if there is a file and not `replace`; `Twins`; `Store`; `Io`.
pub fn backup(
    store: &Directory,
    guard: &dyn Guard,
    target: &Path,
    replace: bool,
    progress: Progress<'_>,
) -> Result<Backup, BackupError> {
    if !replace && target.symlink_metadata().is_ok() {
        return Err(BackupError::Io(io::ErrorKind::AlreadyExists.into()));
    }
    let directory = match target.parent() {
        Some(directory) if !directory.as_os_str().is_empty() => directory,
        _ => Path::new("."),
    };
    let file_name = target.file_name().ok_or_else(|| io::Error::from(io::ErrorKind::InvalidInput))?;
    tidy(directory, file_name);
    let mut name = OsString::from(".");
    name.push(file_name);
    name.push(format!("{TEMPORARY}{}", std::process::id()));
    let temporary = Temporary(directory.join(name));
    let mut file = OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(&temporary.0)?;
    // Whatever the umask took away.
    rustix::fs::fchmod(&file, rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR).map_err(io::Error::from)?;
    let (manifest, left_out) = write(store, guard, &mut file, progress)?;
    file.sync_all()?;
    if replace {
        fs::rename(&temporary.0, target)?;
    } else {
        // A link, unlike a rename, never replaces what came to be there meanwhile.
        match fs::hard_link(&temporary.0, target) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists && target.symlink_metadata().is_err() => {
                fs::rename(&temporary.0, target)?;
            }
            linked => linked?,
        }
    }
    drop(temporary);
    File::open(directory)?.sync_all()?;
    Ok(Backup { path: target.to_owned(), manifest, left_out })
}

/// Removed when dropped, if it is still there.
struct Temporary(PathBuf);

impl Drop for Temporary {
    fn drop(&mut self) {
        // After a rename there is nothing; otherwise it is of no use, and only takes room.
        let _ = fs::remove_file(&self.0);
    }
}

/// Removes what backups of this name, or of a name that [`name`] gives, left where they were killed. Best effort: these
/// files only take room.
fn tidy(directory: &Path, target: &OsStr) {
    let Ok(entries) = fs::read_dir(directory) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let Some((of, process)) = name.to_str().and_then(|name| name.strip_prefix('.')?.rsplit_once(TEMPORARY)) else {
            continue;
        };
        let is_ours = target == of || of.starts_with("recollex-") && of.ends_with(".tar");
        let Ok(process) = process.parse::<u64>() else { continue };
        let is_abandoned = entry.metadata().is_ok_and(|metadata| {
            let written = metadata.modified().ok().and_then(|written| written.elapsed().ok());
            metadata.is_file() && (!is_alive(process) || written.is_some_and(|since| since > ABANDONED))
        });
        if is_ours && is_abandoned {
            let _ = fs::remove_file(entry.path());
        }
    }
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}

fn workspace_id(store: &Directory) -> Option<String> {
    let chunk = store.read_text(Area::Runtime, "workspace-id", None, 0, 256).ok()?;
    let id = chunk.text.trim();
    let is_name = !id.is_empty() && id.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_');
    is_name.then(|| id.to_owned())
}

/// Writes the archive. The manifest comes first and is known last: its length is known before, so its place is kept free.
fn write(
    store: &Directory,
    guard: &dyn Guard,
    file: &mut File,
    progress: Progress<'_>,
) -> Result<(Manifest, Vec<String>), BackupError> {
    // Where nothing is unfinished nothing need be written.
    if store.is_unfinished().map_err(BackupError::store(""))? {
        store.recover(guard).map_err(BackupError::store(""))?;
    }
    let (sources, left_out) = sources(store)?;
    let member = |source: &Source| {
        let area = if source.area == Area::Tree { "tree" } else { "runtime" };
        Member { path: format!("{area}/{}", source.path), size: source.stamp.size, sha256: "0".repeat(64) }
    };
    let mut manifest = Manifest {
        format: FORMAT,
        workspace: workspace_id(store),
        generation: store.generation().map_err(BackupError::store(""))?,
        time: utc(now()),
        files: sources.iter().map(member).collect(),
    };
    let time = now();
    let total = manifest.bytes();
    let length = encode(&manifest)?.len();
    let mut done = 0;

    let mut archive = tar::Builder::new(io::BufWriter::with_capacity(PIECE, &mut *file));
    let mut first = header(length as u64);
    first.set_mtime(time);
    archive.append_data(&mut first, MANIFEST, io::repeat(b' ').take(length as u64))?;
    for (source, member) in sources.iter().zip(&mut manifest.files) {
        let mut content = Content::new(store, source);
        let mut header = header(member.size);
        header.set_mtime(time);
        let written = archive.append_data(&mut header, &member.path, &mut content);
        match (content.error, written) {
            (Some(error), _) => return Err(BackupError::Store { path: source.path.clone(), error }),
            (None, written) => written?,
        }
        member.sha256 = hex(&content.digest.finalize());
        done += member.size;
        progress(done, total);
    }
    let bytes = encode(&manifest)?;
    let sum = hex(&Sha256::digest(&bytes));
    let mut last = header(sum.len() as u64);
    last.set_mtime(time);
    archive.append_data(&mut last, SUM, sum.as_bytes())?;
    archive.into_inner()?.flush()?;
    file.seek(SeekFrom::Start(512))?;
    file.write_all(&bytes)?;
    Ok((manifest, left_out))
}

fn encode(manifest: &Manifest) -> Result<Vec<u8>, BackupError> {
    serde_json::to_vec(manifest).map_err(|error| BackupError::Io(error.into()))
}

/// What is copied, in order, and what in the tree cannot be.
fn sources(store: &Directory) -> Result<(Vec<Source>, Vec<String>), BackupError> {
    let (mut sources, mut left_out, mut twins) = (Vec::new(), Vec::new(), Vec::new());
    for path in RUNTIME_FILES {
        match store.stat(Area::Runtime, path) {
            Ok(entry) if entry.kind == Kind::File => {
                sources.push(Source { area: Area::Runtime, path: path.to_owned(), stamp: entry.stamp });
            }
            Ok(_) | Err(StoreError::NotFound) => {}
            Err(error) => return Err(BackupError::Store { path: path.to_owned(), error }),
        }
    }
    let mut seen = Twins::default();
    each_entry(store, Area::Tree, &mut |entry| {
        if entry.kind == Kind::File {
            twins.extend(seen.add(&entry.path));
            sources.push(Source { area: Area::Tree, path: entry.path, stamp: entry.stamp });
        } else {
            left_out.push(entry.path);
        }
        Ok(())
    })
    .map_err(BackupError::store(""))?;
    if let Some((one, other)) = twins.into_iter().next() {
        return Err(BackupError::Twins { one, other });
    }
    if sources.len() > FILES_MAX {
        return Err(BackupError::TooMany);
    }
    Ok((sources, left_out))
}

/// The bytes of one version of a file, hashed as they go by.
struct Content<'a> {
    store: &'a Directory,
    source: &'a Source,
    offset: u64,
    ahead: Vec<u8>,
    taken: usize,
    digest: Sha256,
    error: Option<StoreError>,
}

impl<'a> Content<'a> {
    fn new(store: &'a Directory, source: &'a Source) -> Self {
        Self { store, source, offset: 0, ahead: Vec::new(), taken: 0, digest: Sha256::new(), error: None }
    }
}

impl Read for Content<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.taken == self.ahead.len() && self.offset < self.source.stamp.size {
            let Source { area, path, stamp } = self.source;
            match self.store.read_bytes(*area, path, Some(stamp), self.offset, PIECE as u32) {
                Ok(chunk) => {
                    self.offset += chunk.data.len() as u64;
                    self.digest.update(&chunk.data);
                    (self.ahead, self.taken) = (chunk.data, 0);
                }
                Err(error) => {
                    let text = error.to_string();
                    self.error = Some(error);
                    return Err(io::Error::other(text));
                }
            }
        }
        let rest = self.ahead.get(self.taken..).unwrap_or_default();
        let some = rest.len().min(into.len());
        for (to, from) in into.iter_mut().zip(rest) {
            *to = *from;
        }
        self.taken += some;
        Ok(some)
    }
}
