//! The form of a backup: a tar archive whose first member says what the others are.
//!
//! ```text
//! recollex-backup.json     the manifest: format, workspace, generation, time; of each file path, length, SHA-256
//! runtime/…                what of the runtime directory belongs to memory
//! tree/…                   what the person sees
//! recollex-backup.sha256   the SHA-256 of the manifest, in hex: the end
//! ```
//!
//! `tar` unpacks it anywhere. It is read with more care: a member of another kind, another name, another length or other
//! bytes than the manifest says, a name that leads outside or has a twin, and everything is refused. Whatever is read is
//! read in pieces; only the manifest is held in memory. Must not know where the bytes come from or go to.

use std::collections::BTreeSet;
use std::io::{self, Read, Seek, SeekFrom};

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::store::path::{MAX_PATH, RelPath};
use crate::store::{Area, CommitError, StoreError, Twins};

/// The version of the format that is written, and the newest that is read.
pub const FORMAT: u32 = 1;

/// The most files that a backup may hold: what one commit can restore.
pub const FILES_MAX: usize = 1_000_000;

/// The longest manifest that is read, in bytes.
pub const MANIFEST_BYTES_MAX: u64 = 1 << 30;

/// What of the runtime directory belongs to memory. The rest are locks, journals and caches.
pub const RUNTIME_FILES: [&str; 9] = [
    "agent-history.jsonl",
    "recollex-receipts.jsonl",
    "recollex.json",
    "runtime.json",
    "session-end.json",
    "trust-audit.jsonl",
    "unpaired-archive-quota.json",
    "workspace-id",
    "writer-status.json",
];

pub(super) const MANIFEST: &str = "recollex-backup.json";
pub(super) const SUM: &str = "recollex-backup.sha256";

/// Bytes that are read or written at a time.
pub(super) const PIECE: usize = 1 << 20;

/// Tells how far the work is: done and whole, in bytes.
pub type Progress<'a> = &'a mut dyn FnMut(u64, u64);

/// What a backup holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    /// [`FORMAT`], or the older one that it has.
    pub format: u32,
    /// The workspace's id; none if it has none.
    pub workspace: Option<String>,
    /// Its generation when this was made.
    pub generation: u64,
    /// When, in UTC: `YYYY-MM-DDThh:mm:ssZ`.
    pub time: String,
    /// Its files, in the order of the members.
    pub files: Vec<Member>,
}

/// One file of a backup.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Member {
    /// `tree/` or `runtime/`, and its path there.
    pub path: String,
    /// Its length in bytes.
    pub size: u64,
    /// The SHA-256 of its bytes, in hex.
    pub sha256: String,
}

impl Member {
    /// The area and the path in it; none for a path that no backup may hold.
    #[must_use]
    pub fn place(&self) -> Option<(Area, &str)> {
        let (area, path) = match self.path.split_once('/')? {
            ("tree", path) => (Area::Tree, path),
            ("runtime", path) if RUNTIME_FILES.contains(&path) => (Area::Runtime, path),
            _ => return None,
        };
        RelPath::parse(area, path).ok().map(|_| (area, path))
    }
}

impl Manifest {
    /// The bytes of all files.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.files.iter().map(|member| member.size).sum()
    }
}

/// Why a backup could not be made, read or restored.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BackupError {
    /// The workspace could not be read.
    #[error("{path}: {error}")]
    Store {
        /// Where; empty: at no path in particular.
        path: String,
        /// Why.
        #[source]
        error: StoreError,
    },
    /// Two names that are one to some file systems cannot be restored everywhere, so they are not backed up either.
    #[error("{one} and {other} are one name to some file systems")]
    Twins {
        /// The one that sorts first.
        one: String,
        /// The other one.
        other: String,
    },
    /// More files than [`FILES_MAX`].
    #[error("more than {FILES_MAX} files")]
    TooMany,
    /// No backup of this program.
    #[error("this is no backup: {0}")]
    Foreign(String),
    /// A format of a newer version of this program.
    #[error("the backup has format {0}, and this program knows {FORMAT}: use a newer version")]
    Newer(u32),
    /// The backup is not what was written.
    #[error("the backup is damaged: {0}")]
    Damaged(String),
    /// The commit that restores it did not happen.
    #[error(transparent)]
    Commit(#[from] CommitError),
    /// The file that holds the backup could not be read or written.
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl BackupError {
    pub(super) fn store(path: &str) -> impl Fn(StoreError) -> Self + '_ {
        move |error| Self::Store { path: path.to_owned(), error }
    }
}

/// A digest in hex.
pub(super) fn hex(digest: &[u8]) -> String {
    use std::fmt::Write as _;
    digest.iter().fold(String::with_capacity(digest.len() * 2), |mut text, byte| {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// The header of a member, without its name.
pub(super) fn header(size: u64) -> tar::Header {
    let mut header = tar::Header::new_gnu();
    header.set_entry_type(tar::EntryType::Regular);
    header.set_mode(0o600);
    header.set_size(size);
    header
}

/// Reads a backup's members one after the other.
pub(super) struct Members<'a, R: Read> {
    entries: tar::Entries<'a, R>,
}

/// A member: its name, and its bytes to be read.
pub(super) struct Open<'a, R: Read> {
    pub(super) name: String,
    pub(super) size: u64,
    pub(super) data: tar::Entry<'a, R>,
}

impl<'a, R: Read> Members<'a, R> {
    /// Of an archive that is at its beginning.
    pub(super) fn new(archive: &'a mut tar::Archive<R>) -> Result<Self, BackupError> {
        // Raw: the library would read a long name of any length into memory, and follow extensions that are not written.
        Ok(Self { entries: archive.entries()?.raw(true) })
    }

    /// The next member; none behind the last.
    pub(super) fn next(&mut self) -> Result<Option<Open<'a, R>>, BackupError> {
        let Some(mut entry) = self.entries.next().transpose().map_err(damaged)? else { return Ok(None) };
        let mut long = None;
        if entry.header().entry_type().is_gnu_longname() {
            let most = (MAX_PATH + "runtime/".len() + 1) as u64;
            let mut name = Vec::new();
            if entry.size() > most {
                return Err(BackupError::Damaged("a name is too long".to_owned()));
            }
            entry.read_to_end(&mut name).map_err(damaged)?;
            name.pop_if(|last| *last == 0);
            long = Some(name);
            entry = match self.entries.next().transpose().map_err(damaged)? {
                Some(entry) => entry,
                None => return Err(BackupError::Damaged("it ends behind a name".to_owned())),
            };
        }
        let name = long.unwrap_or_else(|| entry.path_bytes().into_owned());
        let name = String::from_utf8(name).map_err(|_| BackupError::Damaged("a name is not UTF-8".to_owned()))?;
        if entry.header().entry_type() != tar::EntryType::Regular {
            return Err(BackupError::Damaged(format!("{name} is no regular file")));
        }
        Ok(Some(Open { name, size: entry.size(), data: entry }))
    }
}

/// A fault of the archive itself, as far as it is none of the medium.
fn damaged(error: io::Error) -> BackupError {
    match error.kind() {
        io::ErrorKind::Other | io::ErrorKind::UnexpectedEof | io::ErrorKind::InvalidData => {
            BackupError::Damaged(error.to_string())
        }
        _ => BackupError::Io(error),
    }
}

/// Reads a backup from its beginning to its end, and checks everything that can be checked without a workspace.
///
/// # Errors
/// `Foreign`, `Newer`, `Damaged`; `Twins`, `TooMany` for one that was not made by this program; `Io`.
pub fn check(stream: &mut (impl Read + Seek), progress: Progress<'_>) -> Result<Manifest, BackupError> {
    stream.seek(SeekFrom::Start(0))?;
    let mut archive = tar::Archive::new(io::BufReader::with_capacity(PIECE, stream));
    let mut members = Members::new(&mut archive)?;
    let foreign = |what: &str| BackupError::Foreign(what.to_owned());
    let first = match members.next() {
        Ok(Some(first)) if first.name == MANIFEST => first,
        Err(error @ BackupError::Io(_)) => return Err(error),
        _ => return Err(foreign(&format!("its first member is not {MANIFEST}"))),
    };
    if first.size > MANIFEST_BYTES_MAX {
        return Err(BackupError::Damaged("the manifest is too long".to_owned()));
    }
    let mut manifest = Vec::new();
    let mut data = first.data;
    data.read_to_end(&mut manifest).map_err(damaged)?;
    let sum = hex(&Sha256::digest(&manifest));
    let manifest = parse(&manifest)?;
    check_names(&manifest)?;

    let total = manifest.bytes();
    let mut done = 0;
    for member in &manifest.files {
        let wrong = |what: &str| BackupError::Damaged(format!("{}: {what}", member.path));
        let mut open = members.next()?.ok_or_else(|| wrong("it is missing"))?;
        if open.name != member.path {
            return Err(wrong("another member is in its place"));
        }
        if open.size != member.size {
            return Err(wrong("it has another length"));
        }
        let mut digest = Sha256::new();
        each_piece(&mut open.data, &mut |piece| {
            digest.update(piece);
            done += piece.len() as u64;
            progress(done, total);
            Ok(())
        })?;
        if hex(&digest.finalize()) != member.sha256 {
            return Err(wrong("its bytes are not those that were written"));
        }
    }
    let mut end = match members.next()? {
        Some(end) if end.name == SUM && end.size == sum.len() as u64 => end,
        _ => return Err(BackupError::Damaged("its end is missing".to_owned())),
    };
    let mut text = Vec::new();
    end.data.read_to_end(&mut text).map_err(damaged)?;
    if text != sum.as_bytes() {
        return Err(BackupError::Damaged("the manifest is not the one that was written".to_owned()));
    }
    match members.next()? {
        None => Ok(manifest),
        Some(more) => Err(BackupError::Damaged(format!("{} lies behind its end", more.name))),
    }
}

/// Reads to the end, piece by piece.
pub(super) fn each_piece(
    data: &mut impl Read,
    with: &mut dyn FnMut(&[u8]) -> Result<(), BackupError>,
) -> Result<(), BackupError> {
    let mut piece = vec![0; PIECE];
    loop {
        let read = match data.read(&mut piece) {
            Ok(0) => return Ok(()),
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(damaged(error)),
        };
        with(piece.get(..read).unwrap_or_default())?;
    }
}

fn parse(bytes: &[u8]) -> Result<Manifest, BackupError> {
    /// What every format says.
    #[derive(Deserialize)]
    struct Any {
        format: u32,
    }
    let damaged = |error: serde_json::Error| BackupError::Damaged(format!("the manifest: {error}"));
    match serde_json::from_slice::<Any>(bytes).map_err(damaged)?.format {
        1 => serde_json::from_slice(bytes).map_err(damaged),
        newer => Err(BackupError::Newer(newer)),
    }
}

/// Whether the names of a manifest can all be there at once, on any file system, inside of a workspace.
fn check_names(manifest: &Manifest) -> Result<(), BackupError> {
    if manifest.files.len() > FILES_MAX {
        return Err(BackupError::TooMany);
    }
    let mut twins = Twins::default();
    let mut files = BTreeSet::new();
    let mut whole: u64 = 0;
    for member in &manifest.files {
        let wrong = |what: &str| BackupError::Damaged(format!("{}: {what}", member.path.escape_debug()));
        if member.place().is_none() {
            return Err(wrong("no backup may hold a file of this name"));
        }
        whole = whole.checked_add(member.size).ok_or_else(|| wrong("its length is impossible"))?;
        if !files.insert(member.path.as_str()) {
            return Err(wrong("it is there twice"));
        }
        if let Some((one, other)) = twins.add(&member.path) {
            return Err(BackupError::Twins { one, other });
        }
    }
    for member in &manifest.files {
        let above = member.path.match_indices('/').filter_map(|(at, _)| member.path.get(..at));
        if let Some(file) = above.into_iter().find(|above| files.contains(above)) {
            return Err(BackupError::Damaged(format!("{file} is a file and a directory")));
        }
    }
    Ok(())
}

/// A moment in UTC: `YYYY-MM-DDThh:mm:ssZ`, from seconds since 1970.
#[must_use]
pub fn utc(seconds: u64) -> String {
    let (mut days, second) = (seconds / 86_400, seconds % 86_400);
    let is_leap = |year: u64| year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let mut year = 1970;
    while days >= 365 + u64::from(is_leap(year)) {
        days -= 365 + u64::from(is_leap(year));
        year += 1;
    }
    let february = 28 + u64::from(is_leap(year));
    let mut month = 1;
    for length in [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31] {
        if days < length {
            break;
        }
        days -= length;
        month += 1;
    }
    let (hour, minute) = (second / 3600, second / 60 % 60);
    format!("{year:04}-{month:02}-{:02}T{hour:02}:{minute:02}:{:02}Z", days + 1, second % 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_told_in_utc() {
        for (seconds, text) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_399, "2000-02-28T23:59:59Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (951_868_800, "2000-03-01T00:00:00Z"),
            (1_798_761_599, "2026-12-31T23:59:59Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"),
        ] {
            assert_eq!(utc(seconds), text);
        }
    }

    fn manifest(paths: &[&str]) -> Manifest {
        let member = |path: &&str| Member { path: (*path).to_owned(), size: 0, sha256: hex(&Sha256::digest([])) };
        Manifest { format: 1, workspace: None, generation: 0, time: utc(0), files: paths.iter().map(member).collect() }
    }

    #[test]
    fn names_that_no_workspace_can_hold_are_refused() {
        assert!(check_names(&manifest(&["runtime/workspace-id", "tree/a/b.md", "tree/a/c.md", "tree/ab"])).is_ok());
        for bad in [
            &["tree/../x"][..],
            &["tree//etc/passwd"],
            &["/etc/passwd"],
            &["tree/.git/config"],
            &["tree/.scriptorium/runtime.json"],
            &["runtime/write.lock"],
            &["runtime/recollex/journal"],
            &["other/x"],
            &["tree"],
            &["tree/a", "tree/a"],
            &["tree/a", "tree/a/b"],
            &["tree/A.md", "tree/a.md"],
            &["tree/cafe\u{301}", "tree/caf\u{e9}"],
        ] {
            assert!(check_names(&manifest(bad)).is_err(), "{bad:?}");
        }
        let mut huge = manifest(&["tree/a", "tree/b"]);
        huge.files[0].size = u64::MAX;
        huge.files[1].size = 1;
        assert!(matches!(check_names(&huge), Err(BackupError::Damaged(_))));
    }
}
