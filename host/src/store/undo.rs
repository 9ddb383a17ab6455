//! Taking commits back: what each leaves behind for that, and how it is used.
//!
//! In the directory `undo` beside the journal, a commit leaves a note, `<generation>.<bytes>.note`, of what it did to each
//! path, and the old version of each file that it replaced or removed, `<generation>-<index>.old`: a hard link, made
//! before the commit, so that it costs no copy. Of an addition only the old length is noted. Nothing here is synced: after
//! a power failure a note may be missing or torn, which its checksum tells, and then there is nothing to take back.
//!
//! ```text
//! new.note written      it names the journal that will be the commit, by generation and digest
//! the commit
//! <generation>.….note   the same, and how additions left their files
//! ```
//!
//! So a `new.note` whose journal is not the last one belongs to a commit that did not happen, and is removed with its
//! links; one whose journal is the last one belongs to a commit whose writer died, and stands.
//!
//! Commits are taken back in their order, the last one first, and only while every file is as the commit left it. Taking
//! back is a commit, with a note of its own: taking *that* back is redoing. What a file system without hard links, or a
//! commit beyond the [limits](UndoLimits), leaves out cannot be taken back, nor can what came before it.
//!
//! A commit that [erases](About::erasing) leaves a note that names no path, and everything older goes, notes and versions:
//! past it nothing can be taken back, so nothing may be kept for that.

use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::time::{SystemTime, UNIX_EPOCH};

use rustix::io::Errno;
use sha2::{Digest as _, Sha256};

use super::commit::{self, Contents, Origin, Staged, Staging};
use super::disk::{self, Time};
use super::ground::{Found, Ground};
use super::journal::{self, Pending, Step, TAIL, Version};
use super::path::RelPath;
use super::{
    About, Area, Change, CommitError, Committed, Directory, Edit, Expect, Guard, Store as _, StoreError, redo,
};

/// The directory's name in the store's own.
pub(super) const DIRECTORY: &str = "undo";
/// The note of a commit that is being made.
const NEW: &str = "new.note";
/// A note being written.
const DRAFT: &str = "draft";
/// No note is longer.
const NOTE_BYTES_MAX: usize = 16 << 20;

/// How much is kept to take commits back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UndoLimits {
    /// So many commits; older ones are forgotten.
    pub commits: usize,
    /// So many bytes of old versions, of all of them together.
    pub bytes: u64,
    /// A commit of more changes leaves nothing behind.
    pub changes: usize,
}

impl Default for UndoLimits {
    fn default() -> Self {
        Self { commits: 32, bytes: 256 << 20, changes: 1000 }
    }
}

/// A commit that can be taken back, as far as what it left behind says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PastCommit {
    /// The generation that it made.
    pub generation: u64,
    /// When, in seconds since 1970, by the clock of the machine that made it.
    pub time: u64,
    /// What its caller did ([`About::verb`]): `archive`, `restore`; of one that took a commit back `undo`, and of one that
    /// took that back `redo`. Empty if it was not said.
    pub verb: String,
    /// One line for people ([`About::note`]), perhaps empty; of `undo` and `redo`, the verb and the line of the commit
    /// that is meant.
    pub note: String,
    /// What it did, path by path; nothing of one that erased.
    pub changes: Vec<PastChange>,
}

/// What a commit did to one path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PastChange {
    /// Of the path.
    pub area: Area,
    /// The path.
    pub path: String,
    /// What was done.
    pub what: PastEdit,
}

/// What was done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PastEdit {
    /// The file came into being.
    Created,
    /// It got another content.
    Replaced,
    /// It got longer, by so many bytes.
    Appended(u64),
    /// It was removed.
    Deleted,
    /// It was renamed to this path.
    Moved(String),
}

/// Why a commit was not taken back. Nothing was changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UndoError {
    /// The last commit left nothing behind to take it back with, or there was none.
    #[error("there is no commit to take back")]
    Nothing,
    /// Something newer depends on it: this file is not as the commit left it.
    #[error("{0} is not as the commit left it")]
    Changed(String),
    /// The last commit that is not taken back, of this generation, erased something for good.
    #[error("commit {0} erased something for good: neither it nor what came before it can be taken back")]
    Erased(u64),
    /// The commit that takes it back did not happen.
    #[error(transparent)]
    Commit(#[from] CommitError),
    /// The medium failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// What a commit is in the order of commits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Role {
    /// Somebody's change.
    Commit,
    /// It took a commit back.
    Undo,
    /// It took that back.
    Redo,
    /// It erased something: here it ends.
    Erase,
    /// It could not be made and did not happen: a generation without a change.
    Void,
}

#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Note {
    generation: u64,
    /// The SHA-256 of the journal's body, in hex.
    journal: String,
    role: Role,
    /// The generation whose state is there again once this commit is taken back; of one that took a commit back, the
    /// generation whose state it brought back.
    below: u64,
    /// The generation that could be redone once this is.
    redo: Option<u64>,
    /// Seconds since 1970.
    time: u64,
    /// What the caller said it is. Notes of older versions of this program do not have the two.
    #[serde(default)]
    verb: String,
    #[serde(default)]
    note: String,
    /// Of old versions.
    bytes: u64,
    items: Vec<Item>,
}

/// One path's part of a note.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Item {
    area: Area,
    path: String,
    what: What,
}

#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
enum What {
    Created {
        now: Version,
    },
    Replaced {
        old: String,
        before: Version,
        now: Version,
    },
    /// `tail` proves what stands at the end of the longer file; the time of change is known only once it was added to.
    Appended {
        length: u64,
        before: Version,
        now: u64,
        tail: String,
        modified: Option<Time>,
    },
    Deleted {
        old: String,
        before: Version,
    },
    Moved {
        to: String,
        now: Version,
    },
}

/// What a commit is to be noted as.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    role: Role,
    below: u64,
    redo: Option<u64>,
}

impl Place {
    /// Somebody's change to the state at `base`.
    pub(super) fn commit(base: u64) -> Self {
        Self { role: Role::Commit, below: base, redo: None }
    }
}

/// A note of a commit that is being made; removed when dropped, unless the commit was made.
pub(super) struct Prepared {
    undo: OwnedFd,
    note: Note,
    is_made: bool,
}

impl Prepared {
    /// The commit is in the journal, whatever else becomes of it.
    pub(super) fn made(mut self, ground: &Ground, is_whole: bool, limits: &UndoLimits) {
        self.is_made = true;
        if is_whole {
            // If it fails, the note stands as it was prepared.
            let _ = self.complete(ground, limits);
        }
    }

    fn complete(&mut self, ground: &Ground, limits: &UndoLimits) -> Result<(), StoreError> {
        for item in &mut self.note.items {
            if let What::Appended { now, modified, .. } = &mut item.what
                && let Found::File(_, stat) = ground.find(item.area, RelPath::parse(item.area, &item.path)?)?
                && disk::size(&stat) == *now
            {
                *modified = Some(Time::modified(&stat));
            }
        }
        let failed = |error| disk::store_error(error, "noting a commit");
        write(&self.undo, &format!("{}.{}.note", self.note.generation, self.note.bytes), &self.note)?;
        disk::unlink(&self.undo, NEW).map_err(failed)?;
        prune(&self.undo, limits).map_err(failed)
    }
}

impl Drop for Prepared {
    fn drop(&mut self) {
        if !self.is_made {
            // What stays is swept away by the next writer.
            let _ = disk::unlink(&self.undo, NEW);
            let _ = forget_links(&self.undo, self.note.generation);
        }
    }
}

/// Notes a commit that is about to be made; `befores` says what each entry found. None: it cannot be, and so not be taken back.
pub(super) fn prepare(
    ground: &Ground,
    pending: &Pending,
    befores: &[Option<Version>],
    place: Place,
    about: &About,
    limits: &UndoLimits,
) -> Option<Prepared> {
    if limits.commits == 0 || (pending.entries.len() > limits.changes && !pending.erases) {
        return None;
    }
    let (undo, _) = disk::make_dir(ground.own()?, DIRECTORY).ok()?;
    let mut prepared = Prepared {
        undo,
        note: Note {
            generation: pending.generation,
            journal: redo::hex(&pending.digest),
            role: if pending.erases { Role::Erase } else { place.role },
            below: place.below,
            redo: place.redo,
            time: SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs(),
            verb: about.verb().to_owned(),
            note: about.note().to_owned(),
            bytes: 0,
            items: Vec::new(),
        },
        is_made: false,
    };
    // Dropped with what it has, if it does not come to an end.
    if !pending.erases {
        fill(ground, pending, befores, limits, &mut prepared).ok().flatten()?;
    }
    write(&prepared.undo, NEW, &prepared.note).ok()?;
    Some(prepared)
}

fn fill(
    ground: &Ground,
    pending: &Pending,
    befores: &[Option<Version>],
    limits: &UndoLimits,
    prepared: &mut Prepared,
) -> Result<Option<()>, StoreError> {
    let failed = |error| disk::store_error(error, "noting a commit");
    let own = ground.own().ok_or(StoreError::NotFound)?;
    for (index, entry) in pending.entries.iter().enumerate() {
        let path = RelPath::parse(entry.area, &entry.path)?;
        let mut keep = |version: &Version| -> Result<Option<String>, StoreError> {
            prepared.note.bytes = prepared.note.bytes.saturating_add(version.size);
            if prepared.note.bytes > limits.bytes {
                return Ok(None);
            }
            let Found::File(parent, _) = ground.find(entry.area, path)? else { return Ok(None) };
            let old = format!("{}-{index}.old", pending.generation);
            disk::link(&parent, path.name(), &prepared.undo, &old).map_err(failed)?;
            Ok(Some(old))
        };
        let what = match &entry.step {
            Step::Replace { stage, before, .. } => {
                let stat = disk::look(own, stage.as_str()).map_err(failed)?.ok_or(StoreError::NotFound)?;
                let now = Version::of(&stat);
                match before {
                    None => What::Created { now },
                    Some(before) => {
                        let Some(old) = keep(before)? else { return Ok(None) };
                        What::Replaced { old, before: *before, now }
                    }
                }
            }
            Step::Append { length, text, .. } => {
                let Found::File(parent, _) = ground.find(entry.area, path)? else { return Ok(None) };
                let Some(before) = befores.get(index).copied().flatten() else { return Ok(None) };
                let file = disk::open_file(&parent, path.name(), false).map_err(failed)?;
                let from = length.saturating_sub(TAIL);
                let mut end = disk::read_at(&file, from, (length - from) as usize).map_err(failed)?;
                end.extend_from_slice(text.as_bytes());
                let tail = end.get(end.len().saturating_sub(TAIL as usize)..).unwrap_or_default();
                What::Appended {
                    length: *length,
                    before,
                    now: length + text.len() as u64,
                    tail: redo::hex(&Sha256::digest(tail)),
                    modified: None,
                }
            }
            Step::Delete { before } => {
                let Some(old) = keep(before)? else { return Ok(None) };
                What::Deleted { old, before: *before }
            }
            Step::Move { to, before } => What::Moved { to: to.clone(), now: *before },
        };
        prepared.note.items.push(Item { area: entry.area, path: entry.path.clone(), what });
    }
    Ok(Some(()))
}

/// Notes that a generation came without a change: what was before `generation` is the state at `below`, and can be taken
/// back as if nothing had been. If it cannot be noted, taking back ends there.
pub(super) fn pass_over(own: BorrowedFd<'_>, generation: u64, below: u64) {
    let Ok(undo) = disk::open_dir(own, DIRECTORY) else { return };
    let note = Note {
        generation,
        journal: String::new(),
        role: Role::Void,
        below,
        redo: None,
        time: 0,
        verb: String::new(),
        note: String::new(),
        bytes: 0,
        items: Vec::new(),
    };
    let _ = write(&undo, &format!("{generation}.0.note"), &note);
}

/// Writes a note, with its checksum before it, so that it is there whole or not at all for every process.
fn write(undo: &OwnedFd, name: &str, note: &Note) -> Result<(), StoreError> {
    let failed = |error| disk::store_error(error, "noting a commit");
    let text = serde_json::to_string(note).map_err(|error| StoreError::Io(format!("noting a commit: {error}")))?;
    let bytes = format!("{}\n{text}", redo::hex(&Sha256::digest(&text)));
    disk::unlink(undo, DRAFT).map_err(failed)?;
    let file = disk::create(undo, DRAFT).map_err(failed)?;
    disk::write_at(&file, bytes.as_bytes(), 0).map_err(failed)?;
    disk::rename(undo, DRAFT, undo, name).map_err(failed)
}

/// Reads a note; none if it is missing, torn or not what was written.
fn read(undo: BorrowedFd<'_>, name: &str) -> Option<Note> {
    let file = disk::open_file(undo, name, false).ok()?;
    let bytes =
        disk::read_at(&file, 0, NOTE_BYTES_MAX.min(disk::size(&rustix::fs::fstat(&file).ok()?) as usize)).ok()?;
    let (sum, text) = std::str::from_utf8(&bytes).ok()?.split_once('\n')?;
    let note: Note = (redo::hex(&Sha256::digest(text)) == sum).then(|| serde_json::from_str(text).ok())??;
    let is_sound = note.items.iter().all(|item| {
        let old = match &item.what {
            What::Replaced { old, .. } | What::Deleted { old, .. } => Some(old),
            _ => None,
        };
        let to = match &item.what {
            What::Moved { to, .. } => Some(to),
            _ => None,
        };
        item.area != Area::Cache
            && old.is_none_or(|old| !old.contains(['/', '\0']))
            && std::iter::once(&item.path).chain(to).all(|path| RelPath::parse(item.area, path).is_ok())
    });
    is_sound.then_some(note)
}

/// The generation and the bytes that a note's name says.
fn parse_name(name: &str) -> Option<(u64, u64)> {
    let (generation, bytes) = name.strip_suffix(".note")?.split_once('.')?;
    Some((generation.parse().ok()?, bytes.parse().ok()?))
}

/// The last generation that a note speaks of. 0: there is none.
pub(super) fn last_noted(own: BorrowedFd<'_>) -> Result<u64, StoreError> {
    let failed = |error| disk::store_error(error, "looking for notes of commits");
    let undo = match disk::open_dir(own, DIRECTORY) {
        Ok(undo) => undo,
        Err(Errno::NOENT) => return Ok(0),
        Err(error) => return Err(failed(error)),
    };
    let names = names(undo.as_fd()).map_err(failed)?;
    Ok(names.iter().filter_map(|name| parse_name(name)).map(|(generation, _)| generation).max().unwrap_or(0))
}

fn names(undo: BorrowedFd<'_>) -> disk::Sys<Vec<String>> {
    Ok(disk::names(undo)?.into_iter().filter_map(|(name, _)| String::from_utf8(name).ok()).collect())
}

fn forget_links(undo: &OwnedFd, generation: u64) -> disk::Sys<()> {
    let prefix = format!("{generation}-");
    for name in names(undo.as_fd())?.iter().filter(|name| name.starts_with(&prefix)) {
        disk::unlink(undo, name)?;
    }
    Ok(())
}

/// Forgets a commit's note and what it kept.
fn forget(undo: &OwnedFd, generation: u64) -> disk::Sys<()> {
    for name in names(undo.as_fd())? {
        if parse_name(&name).is_some_and(|(of, _)| of == generation) {
            disk::unlink(undo, &name)?;
        }
    }
    forget_links(undo, generation)
}

/// Forgets everything that is kept to take commits back, but what the commit of `generation`, which erases, says of itself.
pub(super) fn forget_all(own: BorrowedFd<'_>, generation: u64) -> Result<(), StoreError> {
    let failed = |error| disk::store_error(error, "removing old versions");
    let undo = match disk::open_dir(own, DIRECTORY) {
        Ok(undo) => undo,
        Err(Errno::NOENT) => return Ok(()),
        Err(error) => return Err(failed(error)),
    };
    for name in names(undo.as_fd()).map_err(failed)? {
        let is_its_own = (name == NEW || parse_name(&name).is_some_and(|(of, _)| of == generation))
            && read(undo.as_fd(), &name).is_some_and(|note| note.generation == generation && note.role == Role::Erase);
        if !is_its_own {
            disk::unlink(&undo, &name).map_err(failed)?;
        }
    }
    // Before the commit says that it is gone.
    disk::sync(&undo).map_err(failed)
}

/// Forgets the oldest commits beyond the limits.
fn prune(undo: &OwnedFd, limits: &UndoLimits) -> disk::Sys<()> {
    let mut notes: Vec<(u64, u64)> = names(undo.as_fd())?.iter().filter_map(|name| parse_name(name)).collect();
    notes.sort_unstable_by(|one, other| other.cmp(one));
    let mut bytes: u64 = 0;
    for (index, (generation, size)) in notes.into_iter().enumerate() {
        bytes = bytes.saturating_add(size);
        if index >= limits.commits || bytes > limits.bytes {
            forget(undo, generation)?;
        }
    }
    Ok(())
}

/// Whether a note belongs to the commit that the journal speaks of last.
fn is_last(own: BorrowedFd<'_>, note: &Note) -> bool {
    journal::last(own).is_ok_and(|last| last == Some((note.generation, note.journal.clone())))
}

/// Puts right what a writer that died left: its note stands if its commit does. Under the lock, with a settled journal.
pub(super) fn sweep(own: BorrowedFd<'_>) -> Result<(), StoreError> {
    let failed = |error| disk::store_error(error, "sweeping notes of commits");
    let undo = match disk::open_dir(own, DIRECTORY) {
        Ok(undo) => undo,
        Err(Errno::NOENT) => return Ok(()),
        Err(error) => return Err(failed(error)),
    };
    let all = names(undo.as_fd()).map_err(failed)?;
    let is_known = |generation: u64| all.iter().any(|name| parse_name(name).is_some_and(|(of, _)| of == generation));
    let mut stands = None;
    if all.iter().any(|name| name == NEW) {
        match read(undo.as_fd(), NEW).filter(|note| is_last(own, note) && !is_known(note.generation)) {
            Some(note) => {
                let name = format!("{}.{}.note", note.generation, note.bytes);
                disk::rename(&undo, NEW, &undo, &name).map_err(failed)?;
                stands = Some(note.generation);
            }
            None => {
                disk::unlink(&undo, NEW).map_err(failed)?;
            }
        }
    }
    for name in &all {
        let of = name.strip_suffix(".old").and_then(|name| name.split_once('-')?.0.parse::<u64>().ok());
        let is_orphan = of.is_some_and(|of| stands != Some(of) && !is_known(of));
        if is_orphan || name == DRAFT {
            disk::unlink(&undo, name).map_err(failed)?;
        }
    }
    Ok(())
}

/// The notes of a workspace, to be followed from the last commit on.
struct Past {
    undo: OwnedFd,
    names: Vec<String>,
    /// That of the last commit, where its writer did not come to say so.
    new: Option<Note>,
    /// The generation of the last commit that happened.
    head: u64,
}

impl Past {
    fn open(ground: &Ground) -> Result<Option<Self>, StoreError> {
        let failed = |error| disk::store_error(error, "reading notes of commits");
        let Some(own) = ground.own() else { return Ok(None) };
        let undo = match disk::open_dir(own, DIRECTORY) {
            Ok(undo) => undo,
            Err(Errno::NOENT) => return Ok(None),
            Err(error) => return Err(failed(error)),
        };
        let names = names(undo.as_fd()).map_err(failed)?;
        let new = read(undo.as_fd(), NEW).filter(|note| is_last(own, note));
        let head = journal::head(own)?.0.generation();
        let mut past = Self { undo, names, new, head };
        while let Some(note) = past.note(past.head).filter(|note| note.role == Role::Void && note.below < past.head) {
            past.head = note.below;
        }
        Ok(Some(past))
    }

    fn note(&self, generation: u64) -> Option<Note> {
        let name = self.names.iter().find(|name| parse_name(name).is_some_and(|(of, _)| of == generation));
        name.and_then(|name| read(self.undo.as_fd(), name))
            .filter(|note| note.generation == generation)
            .or_else(|| self.new.clone().filter(|note| note.generation == generation))
    }

    /// The next commit that can be taken back, from the state of a generation; or the one that erased, where it ends.
    fn next(&self, mut generation: u64) -> Option<Note> {
        // Each step leads to an older generation, whatever a note says.
        loop {
            let note = self.note(generation)?;
            if !matches!(note.role, Role::Undo | Role::Void) {
                return Some(note);
            }
            generation = Some(note.below).filter(|below| *below < generation)?;
        }
    }

    /// The commits that can be taken back one after the other, the last one first; and the one that erased, if that is
    /// where it ends.
    fn commits(&self) -> (Vec<Note>, Option<Note>) {
        let mut found = Vec::new();
        let mut at = self.head;
        loop {
            match self.next(at) {
                Some(note) if note.role == Role::Erase => return (found, Some(note)),
                Some(note) => {
                    let below = Some(note.below).filter(|below| *below < note.generation);
                    found.push(note);
                    match below {
                        Some(below) => at = below,
                        None => return (found, None),
                    }
                }
                None => return (found, None),
            }
        }
    }

    /// What taking back, or bringing back, would begin with.
    fn first(&self, role: Role) -> Result<Note, UndoError> {
        let note = if role == Role::Redo { self.redoable() } else { self.next(self.head) };
        match note {
            Some(note) if note.role == Role::Erase => Err(UndoError::Erased(note.generation)),
            Some(note) => Ok(note),
            None => Err(UndoError::Nothing),
        }
    }

    /// The commit that took one back and can be taken back itself.
    fn redoable(&self) -> Option<Note> {
        let note = self.note(self.head)?;
        match note.role {
            Role::Undo => Some(note),
            Role::Redo => self.note(note.redo?).filter(|note| note.role == Role::Undo),
            Role::Commit | Role::Erase | Role::Void => None,
        }
    }
}

impl Note {
    fn past(&self) -> PastCommit {
        let change = |item: &Item| PastChange {
            area: item.area,
            path: item.path.clone(),
            what: match &item.what {
                What::Created { .. } => PastEdit::Created,
                What::Replaced { .. } => PastEdit::Replaced,
                What::Appended { length, now, .. } => PastEdit::Appended(now.saturating_sub(*length)),
                What::Deleted { .. } => PastEdit::Deleted,
                What::Moved { to, .. } => PastEdit::Moved(to.clone()),
            },
        };
        PastCommit {
            generation: self.generation,
            time: self.time,
            verb: self.verb.clone(),
            note: self.note.clone(),
            changes: self.items.iter().map(change).collect(),
        }
    }

    /// What a commit is that takes this one back.
    fn about_reverse(&self, role: Role) -> About {
        match role {
            // The line is that of the commit which was taken back, and now is back.
            Role::Redo => About::new("redo", &self.note),
            _ => {
                let said = [self.verb.as_str(), self.note.as_str()];
                About::new("undo", &said.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(": "))
            }
        }
    }
}

/// Where the content of a file comes from that a commit brings back.
enum Back {
    /// It needs none.
    Nothing,
    /// A version that was kept.
    Kept(String, u64),
    /// The beginning of the file that is there.
    Prefix { area: Area, path: String, length: u64, modified: Option<Time> },
}

struct Taking<'a> {
    ground: &'a Ground,
    undo: &'a OwnedFd,
    backs: Vec<Back>,
    place: Place,
}

impl Contents for Taking<'_> {
    fn stage(&mut self, index: usize, staging: &mut Staging<'_>) -> Result<Option<Staged>, StoreError> {
        let failed = |error| disk::store_error(error, "bringing a version back");
        match self.backs.get(index) {
            None | Some(Back::Nothing) => Ok(None),
            Some(Back::Kept(old, size)) => {
                let name = staging.link(self.undo, old).map_err(failed)?;
                // Who wrote it may not have waited for the medium, and a commit must.
                disk::open_file(self.undo, old, false).and_then(|file| disk::sync(&file)).map_err(failed)?;
                Ok(Some(Staged { name, size: *size, sealed: None }))
            }
            Some(Back::Prefix { area, path, length, modified }) => {
                let path = RelPath::parse(*area, path)?;
                let Found::File(parent, _) = self.ground.find(*area, path)? else { return Err(StoreError::Changed) };
                let from = disk::open_file(&parent, path.name(), false).map_err(failed)?;
                let (name, file) = staging.create().map_err(failed)?;
                disk::copy(&from, 0, &file, 0, *length).map_err(failed)?;
                let sealed = match modified {
                    // The very version that was there: what older commits say of it is true again.
                    Some(time) => disk::date(&file, *time).map(|()| None),
                    None => disk::seal(&file),
                };
                let sealed = sealed.map_err(failed)?;
                staging.written(&name, file);
                Ok(Some(Staged { name, size: *length, sealed }))
            }
        }
    }

    fn origin(&self) -> Origin {
        Origin::Noted(self.place)
    }
}

impl Directory {
    /// The commits that can be taken back one after the other, the last one first, as far as what they left behind says.
    ///
    /// # Errors
    /// As the medium fails.
    pub fn past(&self) -> Result<Vec<PastCommit>, StoreError> {
        let Some(ground) = Ground::open(&self.place)? else { return Ok(Vec::new()) };
        let Some(past) = Past::open(&ground)? else { return Ok(Vec::new()) };
        Ok(past.commits().0.iter().map(Note::past).collect())
    }

    /// The commit at which taking back ends because it erased something for good, if that is why it ends.
    ///
    /// # Errors
    /// As the medium fails.
    pub fn erased(&self) -> Result<Option<PastCommit>, StoreError> {
        let Some(ground) = Ground::open(&self.place)? else { return Ok(None) };
        Ok(Past::open(&ground)?.and_then(|past| past.commits().1).map(|note| note.past()))
    }

    /// The commit that [`redo`](Self::redo) would take back, which itself took one back.
    ///
    /// # Errors
    /// As the medium fails.
    pub fn undone(&self) -> Result<Option<PastCommit>, StoreError> {
        let Some(ground) = Ground::open(&self.place)? else { return Ok(None) };
        Ok(Past::open(&ground)?.and_then(|past| past.redoable()).map(|note| note.past()))
    }

    /// Takes the last commit back that was not taken back yet. That is a commit, whole as any other.
    ///
    /// # Errors
    /// `Nothing`; `Erased`; `Changed` if a file that it touched is no longer as it left it; as of any commit.
    pub fn undo(&self, guard: &dyn Guard) -> Result<(PastCommit, Committed), UndoError> {
        self.take_back(guard, Role::Undo)
    }

    /// Takes back what the last [`undo`](Self::undo) did, as long as nothing was committed since.
    ///
    /// # Errors
    /// As of `undo`.
    pub fn redo(&self, guard: &dyn Guard) -> Result<(PastCommit, Committed), UndoError> {
        self.take_back(guard, Role::Redo)
    }

    /// What [`undo`](Self::undo), or [`redo`](Self::redo), would do now. Changes nothing and takes no lock.
    ///
    /// # Errors
    /// As of those, but for what only a commit can find out.
    pub fn would_undo(&self, redo: bool) -> Result<PastCommit, UndoError> {
        let ground = Ground::open(&self.place)?.ok_or(UndoError::Nothing)?;
        let past = Past::open(&ground)?.ok_or(UndoError::Nothing)?;
        let note = past.first(if redo { Role::Redo } else { Role::Undo })?;
        for item in &note.items {
            self.reverse(&ground, &past.undo, item)?;
        }
        Ok(note.past())
    }

    fn take_back(&self, guard: &dyn Guard, role: Role) -> Result<(PastCommit, Committed), UndoError> {
        let ground = commit::open(&self.place, guard)?;
        let (base, _) = commit::recover(&ground)?;
        if let Some(own) = ground.own() {
            sweep(own)?;
        }
        let past = Past::open(&ground)?.ok_or(UndoError::Nothing)?;
        let head = past.note(past.head).ok_or(UndoError::Nothing)?;
        let note = past.first(role)?;
        let redo = match (role, head.role) {
            (Role::Redo, _) => note.redo,
            (_, Role::Undo) => Some(head.generation),
            (_, Role::Redo) => head.redo,
            (_, Role::Commit | Role::Erase | Role::Void) => None,
        };
        let (mut changes, mut backs) = (Vec::new(), Vec::new());
        for item in &note.items {
            let (change, back) = self.reverse(&ground, &past.undo, item)?;
            changes.push(change);
            backs.push(back);
        }
        // The note of the commit that is redone went when it was taken back: the state before is that of what came last.
        let below = if role == Role::Redo && head.role != Role::Undo { head.generation } else { note.below };
        let place = Place { role, below, redo };
        let mut contents = Taking { ground: &ground, undo: &past.undo, backs, place };
        let about = note.about_reverse(role);
        let committed = commit::commit(self, guard, base, &changes, &mut contents, &about)?;
        // Done with: its old versions are in place again, or are none any more.
        let _ = forget(&past.undo, note.generation);
        Ok((note.past(), committed))
    }

    /// The change that takes a part of a commit back, if what it touched is as it left it.
    fn reverse(&self, ground: &Ground, undo: &OwnedFd, item: &Item) -> Result<(Change, Back), UndoError> {
        let area = item.area;
        let changed = |path: &str| UndoError::Changed(path.to_owned());
        let find = |path: &str| -> Result<Found, StoreError> { ground.find(area, RelPath::parse(area, path)?) };
        let is_at = |path: &str, version: &Version| -> Result<bool, StoreError> {
            Ok(matches!(find(path)?, Found::File(_, stat) if Version::of(&stat) == *version))
        };
        let is_kept = |old: &str, version: &Version| -> Result<bool, StoreError> {
            let stat = disk::look(undo, old).map_err(|error| disk::store_error(error, "reading an old version"))?;
            Ok(stat.is_some_and(|stat| Version::of(&stat) == *version))
        };
        let put = || Edit::Put(String::new());
        let (path, edit, back) = match &item.what {
            What::Created { now } => {
                if !is_at(&item.path, now)? {
                    return Err(changed(&item.path));
                }
                (item.path.clone(), Edit::Delete, Back::Nothing)
            }
            What::Replaced { old, before, now } => {
                if !is_at(&item.path, now)? {
                    return Err(changed(&item.path));
                }
                if !is_kept(old, before)? {
                    return Err(UndoError::Nothing);
                }
                (item.path.clone(), put(), Back::Kept(old.clone(), before.size))
            }
            What::Appended { length, before, now, tail, modified } => {
                let Found::File(parent, stat) = find(&item.path)? else { return Err(changed(&item.path)) };
                let failed = |error| disk::store_error(error, &format!("reading {}", item.path));
                let file = disk::open_file(&parent, RelPath::parse(area, &item.path)?.name(), false).map_err(failed)?;
                let is_same = disk::size(&stat) == *now
                    && modified.is_none_or(|modified| modified == Time::modified(&stat))
                    && redo::tail_digest(&file, *now).map_err(failed)? == *tail;
                if !is_same {
                    return Err(changed(&item.path));
                }
                // Only where nobody can have changed what stands before the addition.
                let modified = modified.map(|_| before.modified);
                let back = Back::Prefix { area, path: item.path.clone(), length: *length, modified };
                (item.path.clone(), put(), back)
            }
            What::Deleted { old, before } => {
                if !matches!(find(&item.path)?, Found::Nothing) {
                    return Err(changed(&item.path));
                }
                if !is_kept(old, before)? {
                    return Err(UndoError::Nothing);
                }
                (item.path.clone(), put(), Back::Kept(old.clone(), before.size))
            }
            What::Moved { to, now } => {
                if !is_at(to, now)? || !matches!(find(&item.path)?, Found::Nothing) {
                    return Err(changed(to));
                }
                (to.clone(), Edit::MoveTo(item.path.clone()), Back::Nothing)
            }
        };
        let expect = match self.stat(area, &path) {
            Ok(entry) => Expect::Same(entry.stamp),
            Err(StoreError::NotFound) => Expect::Absent,
            Err(error) => return Err(error.into()),
        };
        Ok((Change { area, path, expect, edit }, back))
    }
}
