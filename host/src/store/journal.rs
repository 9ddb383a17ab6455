//! The journal: what a commit is going to do, on the medium before it does any of it.
//!
//! Knows the journal file's format, who writes it when, and what its states mean. Must not know how entries are judged
//! or applied (see [`redo`](super::redo)).
//!
//! One file, `recollex/journal` in the runtime directory, holds the generation and the last commit:
//!
//! ```text
//!  offset  bytes  what (integers little-endian)
//!       0     16  "recollex-journal"
//!      16      4  version of the body, 1
//!      20      4  flags: 1, what the commit removes may be kept nowhere; the others zero
//!      24      8  generation that this commit made
//!      32      8  length of the body
//!      40     32  SHA-256 of the body
//!      72      8  first bytes of the SHA-256 of bytes 0 to 71
//!      80      …  body: JSON, a list of entries
//! ```
//!
//! - A commit writes a whole new file beside it, syncs it, renames it over `journal` and syncs the directory: that
//!   rename is the commit. The file is then *pending*: as long as header and body say.
//! - When everything in it is done and synced, the file is cut to its header: *settled*. Cutting is one step, and need
//!   not reach the medium: a body that comes back after a power failure finds its work done.
//! - The header never changes its layout, so that any version reads the generation of any other. A pending body of an
//!   unknown version is refused, for readers and writers alike, rather than guessed at.
//! - Anything else (a wrong sum, a body that is cut elsewhere) is damage of the medium: it is kept aside and reported.
//!
//! The body costs what the commit changes: whole contents lie in staged files beside the journal, which are later
//! renamed into place; of an addition it holds the text; of a removal or a move, the names.

use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::FileType;
use rustix::io::Errno;
use sha2::{Digest as _, Sha256};

use super::disk::{self, Sys, Time};
use super::path::{OWN, RelPath};
use super::{Area, StoreError};

/// The journal's name in the store's own directory.
pub(super) const NAME: &str = "journal";
/// A journal being written.
pub(super) const NEW: &str = "journal.new";
/// How the names of staged files begin.
pub(super) const STAGE: &str = "stage-";
/// Holds the room that a commit's additions will take, from before its journal until they are written.
pub(super) const ROOM: &str = "room";

const MAGIC: &[u8; 16] = b"recollex-journal";
const VERSION: u32 = 1;
/// The flag of a commit that erases.
const ERASES: u32 = 1;
/// The header's length: the whole length of a settled journal.
pub(super) const HEADER: usize = 80;

/// How many bytes before an addition prove that the file is still the one that was added to.
pub(super) const TAIL: u64 = 4096;

/// What the journal file says, without its body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Head {
    /// There was no commit yet.
    Absent,
    /// The last commit is done.
    Settled { generation: u64 },
    /// The last commit is made, but not all of it may be in place.
    Pending { generation: u64, length: u64, digest: [u8; 32], erases: bool },
    /// A pending commit of a version that this program does not know.
    Foreign { generation: u64, version: u32 },
    /// Not a journal. The generation, if at least the header is whole.
    Damaged { generation: u64 },
}

impl Head {
    /// The generation it speaks of.
    pub(super) fn generation(&self) -> u64 {
        match *self {
            Self::Absent => 0,
            Self::Settled { generation }
            | Self::Pending { generation, .. }
            | Self::Foreign { generation, .. }
            | Self::Damaged { generation } => generation,
        }
    }
}

/// A version of a file, as far as it survives a copy of the workspace and a `chmod`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Version {
    pub(super) size: u64,
    pub(super) modified: Time,
}

impl Version {
    pub(super) fn of(stat: &rustix::fs::Stat) -> Self {
        Self { size: disk::size(stat), modified: Time::modified(stat) }
    }
}

/// What is to be done to one path.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) enum Step {
    /// Rename the staged file into place. A staged file that is gone was renamed: its absence means done.
    Replace { stage: String, size: u64, before: Option<Version> },
    /// Add `text` at `length`. `tail` is the SHA-256, in hex, of what stands before that, at most [`TAIL`] bytes.
    Append { length: u64, tail: String, text: String },
    /// Remove.
    Delete { before: Version },
    /// Rename, to a path of the same area.
    Move { to: String, before: Version },
}

/// One path's part of a commit.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Entry {
    pub(super) area: Area,
    pub(super) path: String,
    pub(super) step: Step,
}

impl Entry {
    /// The paths it names: its own, and a move's target.
    pub(super) fn paths(&self) -> impl Iterator<Item = &str> {
        let to = match &self.step {
            Step::Move { to, .. } => Some(to.as_str()),
            _ => None,
        };
        std::iter::once(self.path.as_str()).chain(to)
    }

    /// Whether each name in it is one that a commit could have written.
    fn is_sound(&self) -> bool {
        let stage = match &self.step {
            Step::Replace { stage, .. } => stage.starts_with(STAGE) && !stage.contains(['/', '\0']),
            _ => true,
        };
        stage && self.area != Area::Cache && self.paths().all(|path| RelPath::parse(self.area, path).is_ok())
    }
}

/// A commit that was made and is perhaps not all in place.
#[derive(Debug)]
pub(super) struct Pending {
    pub(super) generation: u64,
    pub(super) digest: [u8; 32],
    /// What it removes may be kept nowhere: it is not in place before all that is gone.
    pub(super) erases: bool,
    pub(super) entries: Vec<Entry>,
}

impl Pending {
    /// A commit, and the journal that says it.
    pub(super) fn new(generation: u64, entries: Vec<Entry>, erases: bool) -> Result<(Self, Vec<u8>), StoreError> {
        let bytes = encode(generation, &entries, erases)?;
        let digest = bytes.get(40..72).and_then(|digest| digest.try_into().ok()).unwrap_or_default();
        Ok((Self { generation, digest, erases, entries }, bytes))
    }
}

/// The bytes of a journal: pending if there are entries.
pub(super) fn encode(generation: u64, entries: &[Entry], erases: bool) -> Result<Vec<u8>, StoreError> {
    let body = if entries.is_empty() {
        Vec::new()
    } else {
        serde_json::to_vec(entries).map_err(|error| StoreError::Io(format!("writing the journal: {error}")))?
    };
    let mut bytes = Vec::with_capacity(HEADER + body.len());
    bytes.extend_from_slice(MAGIC);
    bytes.extend_from_slice(&VERSION.to_le_bytes());
    bytes.extend_from_slice(&(if erases { ERASES } else { 0 }).to_le_bytes());
    bytes.extend_from_slice(&generation.to_le_bytes());
    bytes.extend_from_slice(&(body.len() as u64).to_le_bytes());
    bytes.extend_from_slice(&Sha256::digest(&body));
    let sum = Sha256::digest(&bytes);
    bytes.extend_from_slice(sum.get(..8).unwrap_or_default());
    bytes.extend_from_slice(&body);
    Ok(bytes)
}

/// Reads a header. `file_length` is the whole file's, which tells a settled journal from a pending one.
fn decode_head(header: &[u8], file_length: u64) -> Head {
    let field = |from: usize, to: usize| header.get(from..to).unwrap_or_default();
    let integer = |from: usize| field(from, from + 8).try_into().map_or(0, u64::from_le_bytes);
    let sum = Sha256::digest(field(0, 72));
    if header.len() != HEADER || field(0, 16) != MAGIC || sum.get(..8) != header.get(72..80) {
        return Head::Damaged { generation: 0 };
    }
    let (generation, length) = (integer(24), integer(32));
    let word = |from: usize| field(from, from + 4).try_into().map_or(0, u32::from_le_bytes);
    let (version, flags) = (word(16), word(20));
    if file_length == HEADER as u64 {
        Head::Settled { generation }
    } else if version != VERSION || flags & !ERASES != 0 {
        Head::Foreign { generation, version }
    } else if file_length == (HEADER as u64).saturating_add(length) {
        let digest = field(40, 72).try_into().unwrap_or_default();
        Head::Pending { generation, length, digest, erases: flags & ERASES != 0 }
    } else {
        Head::Damaged { generation }
    }
}

/// Reads the state of the journal in the store's own directory, and its file if there is one.
pub(super) fn head(own: impl AsFd) -> Result<(Head, Option<OwnedFd>), StoreError> {
    let refused = |why: &str| {
        let what = format!("{OWN}/{NAME} in the runtime directory cannot be used: {why}; see to it, or move it aside");
        StoreError::Denied(what)
    };
    let failed = |error: Errno| match disk::store_error(error, "reading the journal") {
        StoreError::Denied(why) => refused(&why),
        error => error,
    };
    let file = match disk::open_file(own, NAME, false) {
        Ok(file) => file,
        Err(Errno::NOENT) => return Ok((Head::Absent, None)),
        Err(error) => return Err(failed(error)),
    };
    let stat = rustix::fs::fstat(&file).map_err(failed)?;
    if disk::file_type(&stat) != FileType::RegularFile {
        return Err(refused("it is no regular file"));
    }
    let header = disk::read_at(&file, 0, HEADER).map_err(failed)?;
    let length = disk::size(&stat);
    Ok((decode_head(&header, length), Some(file)))
}

/// Which commit the journal speaks of last, pending or settled: its generation, and the digest of its body in hex.
pub(super) fn last(own: impl AsFd) -> Result<Option<(u64, String)>, StoreError> {
    let (head, file) = head(own)?;
    let Some(file) = file.filter(|_| matches!(head, Head::Settled { .. } | Head::Pending { .. })) else {
        return Ok(None);
    };
    let digest = disk::read_at(&file, 40, 32).map_err(|error| disk::store_error(error, "reading the journal"))?;
    Ok(Some((head.generation(), super::redo::hex(&digest))))
}

/// Reads the body that goes with a pending head. None: it is gone by now, or damaged; the head, read again, tells which.
pub(super) fn body(file: impl AsFd, head: &Head) -> Result<Option<Pending>, StoreError> {
    let Head::Pending { generation, length, digest, erases } = *head else { return Ok(None) };
    let Ok(length) = usize::try_from(length) else { return Ok(None) };
    let body =
        disk::read_at(file, HEADER as u64, length).map_err(|error| disk::store_error(error, "reading the journal"))?;
    if body.len() != length || <[u8; 32]>::from(Sha256::digest(&body)) != digest {
        return Ok(None);
    }
    let entries = match serde_json::from_slice::<Vec<Entry>>(&body) {
        Ok(entries) if entries.iter().all(Entry::is_sound) => entries,
        _ => return Ok(None),
    };
    Ok(Some(Pending { generation, digest, erases, entries }))
}

/// Puts a journal in place of the one that is there: the commit point, once this returns.
///
/// # Errors
/// Before the rename, everything is as it was. If only the last sync failed, the new journal is in place: the flag.
pub(super) fn install(own: impl AsFd, bytes: &[u8]) -> Result<(), (Errno, bool)> {
    let write = || -> Sys<()> {
        let file = disk::create(own.as_fd(), NEW)?;
        disk::write_at(&file, bytes, 0)?;
        disk::sync(&file)
    };
    write().and_then(|()| disk::rename(own.as_fd(), NEW, own.as_fd(), NAME)).map_err(|error| {
        // What is left of it is swept away by the next writer, if not here.
        let _ = disk::unlink(own.as_fd(), NEW);
        (error, false)
    })?;
    disk::sync(own.as_fd()).map_err(|error| (error, true))
}

/// Says that everything in the journal is in place.
pub(super) fn settle(own: impl AsFd) -> Sys<()> {
    let file = disk::open_file(own, NAME, true)?;
    disk::truncate(&file, HEADER as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entries() -> Vec<Entry> {
        let before = Version { size: 3, modified: Time { seconds: 5, nanoseconds: 6 } };
        let entry = |path: &str, step| Entry { area: Area::Tree, path: path.to_owned(), step };
        vec![
            entry("a", Step::Replace { stage: "stage-1-0".to_owned(), size: 9, before: None }),
            entry("b", Step::Append { length: 7, tail: "00".to_owned(), text: "\u{0}\"\n\u{2028}汉".to_owned() }),
            entry("c", Step::Delete { before }),
            Entry { area: Area::Runtime, path: "d".to_owned(), step: Step::Move { to: "e/f".to_owned(), before } },
        ]
    }

    /// Reads a journal of these bytes.
    fn reader() -> impl Fn(&[u8]) -> (Head, Option<Pending>) {
        let directory = tempfile::tempdir().unwrap();
        move |bytes| {
            std::fs::write(directory.path().join(NAME), bytes).unwrap();
            let own = std::fs::File::open(directory.path()).unwrap();
            let (head, file) = head(&own).unwrap();
            let body = body(file.unwrap(), &head).unwrap();
            (head, body)
        }
    }

    #[test]
    fn what_is_written_is_read() {
        let read = reader();
        let bytes = encode(41, &entries(), false).unwrap();
        let (head, pending) = read(&bytes);
        assert_eq!(head.generation(), 41);
        assert!(matches!(head, Head::Pending { .. }));
        assert_eq!(pending.unwrap().entries, entries());
        assert_eq!(read(&bytes[..HEADER]).0, Head::Settled { generation: 41 });
        assert_eq!(read(&encode(42, &[], false).unwrap()).0, Head::Settled { generation: 42 });
        for erases in [false, true] {
            assert_eq!(read(&encode(43, &entries(), erases).unwrap()).1.unwrap().erases, erases);
        }
    }

    #[test]
    fn a_file_cut_anywhere_or_changed_anywhere_is_never_taken_for_pending() {
        let read = reader();
        let bytes = encode(41, &entries(), false).unwrap();
        for cut in 0..bytes.len() {
            let (head, pending) = read(&bytes[..cut]);
            assert_eq!(matches!(head, Head::Settled { .. }), cut == HEADER, "cut at {cut}");
            assert!(pending.is_none(), "cut at {cut}");
        }
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 0x20;
            assert!(read(&damaged).1.is_none(), "changed at {at}");
        }
    }

    #[test]
    fn a_body_of_another_version_is_foreign_until_it_is_settled() {
        let read = reader();
        let mut bytes = encode(41, &entries(), false).unwrap();
        let sealed = |bytes: &mut [u8]| {
            let sum = Sha256::digest(&bytes[..72]);
            bytes[72..80].copy_from_slice(&sum[..8]);
        };
        bytes[16] = 2;
        sealed(&mut bytes);
        assert_eq!(read(&bytes).0, Head::Foreign { generation: 41, version: 2 });
        assert_eq!(read(&bytes[..HEADER]).0, Head::Settled { generation: 41 });
        // A flag that is not known may ask for anything.
        (bytes[16], bytes[20]) = (1, 2);
        sealed(&mut bytes);
        assert_eq!(read(&bytes).0, Head::Foreign { generation: 41, version: 1 });
    }

    #[test]
    fn a_forged_journal_names_nothing_outside() {
        let read = reader();
        for entry in [
            Entry { area: Area::Tree, path: "../x".to_owned(), step: entries().remove(1).step },
            Entry { area: Area::Cache, path: "x".to_owned(), step: entries().remove(1).step },
            Entry { area: Area::Tree, path: ".git/config".to_owned(), step: entries().remove(1).step },
            Entry {
                area: Area::Tree,
                path: "x".to_owned(),
                step: Step::Replace { stage: "../../etc/passwd".to_owned(), size: 1, before: None },
            },
            Entry {
                area: Area::Tree,
                path: "x".to_owned(),
                step: Step::Replace { stage: "stage-/../../x".to_owned(), size: 1, before: None },
            },
        ] {
            assert!(read(&encode(1, &[entry], false).unwrap()).1.is_none());
        }
    }
}
