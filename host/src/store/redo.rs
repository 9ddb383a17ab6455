//! Doing what a journal says, once or again: by the commit that wrote it, by whoever takes the lock after a crash, and,
//! without doing it, by readers who want to see it done.
//!
//! One question decides everything: is the target of an entry still as the commit found it, or already as the commit
//! makes it, or neither? [`judge`] answers it, for writers and readers alike, from the target alone. If neither,
//! another program came between: its work stays, ours is kept aside. Must not know how entries come about.

use std::collections::BTreeSet;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::path::PathBuf;

use rustix::fs::FileType;
use rustix::io::Errno;
use sha2::{Digest as _, Sha256};

use super::disk::{self, Time};
use super::ground::{Found, Ground, Way, descend};
use super::journal::{self, Entry, Pending, Step, TAIL, Version};
use super::path::{self, OWN, RelPath};
use super::{Area, StoreError, undo};

/// Where what could not be applied is kept, in the store's own directory.
const KEPT: &str = "kept";

/// What an entry of a journal still means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// The target is as the commit found it, or torn by ourselves: it is to be applied.
    Due,
    /// The target is, or was at some time, as the commit makes it.
    Done,
    /// Another program came between.
    Conflict,
}

/// Something of a commit that could not be applied, because another program changed its target in between.
///
/// Nothing removes these by itself: a person compares, copies what is wanted, and deletes the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kept {
    /// The commit's generation; 0 if it is not known.
    pub generation: u64,
    /// Of the path.
    pub area: Area,
    /// What it was to be done to; empty for [`KeptEdit::Journal`].
    pub path: String,
    /// What was to be done.
    pub edit: KeptEdit,
    /// Where the text lies that was to be written; for a journal, the directory with its parts.
    pub content: Option<PathBuf>,
    /// The commit was to erase what it removed, and what the path holds now may still have it.
    pub erases: bool,
}

/// What was to be done.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum KeptEdit {
    /// The content was to replace the file.
    Replace,
    /// The content was to be added.
    Append,
    /// The file was to be removed.
    Delete,
    /// The file was to be renamed to this path.
    Move(String),
    /// A journal that the medium damaged: what it said is unknown.
    Journal,
}

/// How a [`Kept`] is written down beside its content.
#[derive(serde::Serialize, serde::Deserialize)]
struct KeptNote {
    generation: u64,
    area: Area,
    path: String,
    edit: KeptEdit,
    /// The content's name in the same directory.
    content: Option<String>,
    #[serde(default)]
    erases: bool,
}

/// What became of a journal's entries.
#[derive(Debug, Default)]
pub(super) struct Outcome {
    /// How many were applied now.
    pub(super) applied: usize,
    /// How many were kept aside now.
    pub(super) kept: usize,
    /// For each entry, its file's time of change if that cannot come again.
    pub(super) sealed: Vec<Option<Time>>,
}

/// Why a journal could not be worked off. It stays pending.
#[derive(Debug)]
pub(super) struct Failure {
    /// The entry that failed.
    pub(super) index: usize,
    /// `Changed`: a conflict, in a commit that can still be taken back.
    pub(super) error: StoreError,
    /// No entry was applied or kept aside, at any time: the commit can still be taken back.
    pub(super) untouched: bool,
}

/// What a run must still see to when its entries are applied.
#[derive(Default)]
struct Touched {
    /// Directories that must reach the medium.
    directories: BTreeSet<(Area, String)>,
    /// Directories that are new.
    created: Vec<(Area, String)>,
    /// Directories whose own names are known to stay.
    anchored: BTreeSet<(Area, String)>,
    /// Earlier runs may have made directories, and nobody knows whether they came to sync their names.
    is_again: bool,
    /// Directories that lost a file and may be empty now.
    left: BTreeSet<(Area, String)>,
}

impl Touched {
    /// What an earlier run may have begun with an entry: which directories it made, whether it came to sync them, and
    /// whether it emptied one, nobody knows.
    fn by_earlier_runs(&mut self, entry: &Entry) {
        self.is_again = true;
        if matches!(entry.step, Step::Delete { .. } | Step::Move { .. }) {
            self.left.insert((entry.area, above(&entry.path).to_owned()));
        }
        for path in entry.paths() {
            let mut directory = path;
            while !directory.is_empty() {
                directory = above(directory);
                self.directories.insert((entry.area, directory.to_owned()));
            }
        }
    }
}

/// Judges one entry by its target.
pub(super) fn judge(ground: &Ground, entry: &Entry) -> Result<Verdict, StoreError> {
    let found = ground.find(entry.area, RelPath::parse(entry.area, &entry.path)?)?;
    match &entry.step {
        Step::Replace { stage, size, before } => {
            let failed = |error| disk::store_error(error, "reading a staged file");
            let Some(own) = ground.own() else { return Ok(Verdict::Conflict) };
            Ok(match disk::look(own, stage.as_str()).map_err(failed)? {
                // Renamed into place; what happened to the target after that is another matter.
                None => Verdict::Done,
                Some(stat) if disk::file_type(&stat) != FileType::RegularFile || disk::size(&stat) != *size => {
                    Verdict::Conflict
                }
                Some(_) if is_version(&found, *before) => Verdict::Due,
                // In place, and the old name not gone: where a rename is no single step, or was a copy.
                Some(stat) => match found {
                    Found::File(parent, target)
                        if disk::size(&target) == *size
                            && (disk::identity(&target) == disk::identity(&stat)
                                || is_copy(own, stage, &parent, path_name(&entry.path), *size).map_err(failed)?) =>
                    {
                        Verdict::Done
                    }
                    _ => Verdict::Conflict,
                },
            })
        }
        Step::Append { length, tail, text } => judge_append(&entry.path, found, *length, tail, text.as_bytes()),
        Step::Delete { before } => Ok(match found {
            Found::Nothing => Verdict::Done,
            other => due_if(is_version(&other, Some(*before))),
        }),
        Step::Move { to, before } => {
            let target = ground.find(entry.area, RelPath::parse(entry.area, to)?)?;
            Ok(match (found, target) {
                (Found::Nothing, Found::File(..)) => Verdict::Done,
                (source, Found::Nothing) => due_if(is_version(&source, Some(*before))),
                _ => Verdict::Conflict,
            })
        }
    }
}

/// Whether two files of `size` bytes hold the same.
fn is_copy(own: BorrowedFd<'_>, stage: &str, parent: &OwnedFd, name: &str, size: u64) -> disk::Sys<bool> {
    const PIECE: usize = 1 << 20;
    let ours = disk::open_file(own, stage, false)?;
    let theirs = disk::open_file(parent, name, false)?;
    let mut at = 0;
    while at < size {
        let piece = disk::read_at(&ours, at, PIECE)?;
        if piece.is_empty() || piece != disk::read_at(&theirs, at, PIECE)? {
            return Ok(false);
        }
        at += piece.len() as u64;
    }
    Ok(true)
}

fn due_if(unchanged: bool) -> Verdict {
    if unchanged { Verdict::Due } else { Verdict::Conflict }
}

fn is_version(found: &Found, version: Option<Version>) -> bool {
    match (found, version) {
        (Found::Nothing, None) => true,
        (Found::File(_, stat), Some(version)) => Version::of(stat) == version,
        _ => false,
    }
}

/// An addition is due while its file ends where it begins, or in a torn part of it: ours up to some byte, or zeros where
/// the medium kept the length and lost the content. What changed further up in the file does not matter.
fn judge_append(path: &str, found: Found, length: u64, tail: &str, text: &[u8]) -> Result<Verdict, StoreError> {
    let Found::File(parent, stat) = found else { return Ok(Verdict::Conflict) };
    let failed = |error| disk::store_error(error, &format!("reading {path}"));
    let size = disk::size(&stat);
    if size < length {
        return Ok(Verdict::Conflict);
    }
    let file = disk::open_file(&parent, path_name(path), false).map_err(failed)?;
    if tail_digest(&file, length).map_err(failed)? != tail {
        return Ok(Verdict::Conflict);
    }
    let end = length.saturating_add(text.len() as u64);
    let there = disk::read_at(&file, length, text.len()).map_err(failed)?;
    Ok(if there == text {
        Verdict::Done
    } else if size <= end && there.iter().zip(text).all(|(there, ours)| there == ours || *there == 0) {
        Verdict::Due
    } else {
        Verdict::Conflict
    })
}

/// The proof of what stands before `length` in a file.
pub(super) fn tail_digest(file: &OwnedFd, length: u64) -> disk::Sys<String> {
    let from = length.saturating_sub(TAIL);
    let tail = disk::read_at(file, from, (length - from) as usize)?;
    Ok(hex(&Sha256::digest(tail)))
}

pub(super) fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// A path's last part.
fn path_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// A path without its last part; empty: the area's own directory.
fn above(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(above, _)| above)
}

/// Works off a journal and settles it. `fresh`: by the very commit that wrote it, which prefers taking everything back
/// to keeping something aside.
pub(super) fn run(ground: &Ground, pending: &Pending, fresh: bool) -> Result<Outcome, Failure> {
    let mut outcome = Outcome::default();
    let mut touched = Touched::default();
    let mut untouched = true;
    if let Some(own) = ground.own()
        && pending.entries.iter().any(|entry| matches!(entry.step, Step::Append { .. }))
    {
        // What was set aside is for them. If it cannot go, there is perhaps enough without it.
        let _ = disk::unlink(own, journal::ROOM);
    }
    for (index, entry) in pending.entries.iter().enumerate() {
        let mut sealed = None;
        let mut step = || -> Result<(), StoreError> {
            if !fresh {
                touched.by_earlier_runs(entry);
            }
            match judge(ground, entry)? {
                Verdict::Done => {
                    untouched = false;
                    sync_addition(ground, entry)?;
                }
                Verdict::Due => {
                    sealed = apply(ground, entry, &mut touched, &mut untouched)?;
                    outcome.applied += 1;
                }
                Verdict::Conflict if fresh && untouched => return Err(StoreError::Changed),
                Verdict::Conflict => {
                    keep(ground, pending, index, entry)?;
                    untouched = false;
                    outcome.kept += 1;
                }
            }
            Ok(())
        };
        if let Err(error) = step() {
            if untouched {
                remove_created(ground, &touched);
            }
            return Err(Failure { index, error, untouched });
        }
        outcome.sealed.push(sealed);
    }
    sync_directories(ground, &touched).map_err(|error| Failure {
        index: pending.entries.len(),
        error,
        untouched: false,
    })?;
    remove_empty(ground, &touched);
    if let Some(own) = ground.own() {
        if pending.erases {
            undo::forget_all(own, pending.generation).map_err(|error| Failure {
                index: pending.entries.len(),
                error,
                untouched: false,
            })?;
        }
        // If this fails, the next writer finds every entry done and settles it then.
        let _ = journal::settle(own);
    }
    Ok(outcome)
}

/// Applies one entry that is due.
fn apply(
    ground: &Ground,
    entry: &Entry,
    touched: &mut Touched,
    untouched: &mut bool,
) -> Result<Option<Time>, StoreError> {
    let area = entry.area;
    let path = RelPath::parse(area, &entry.path)?;
    let failed = |error| disk::store_error(error, &format!("writing {}", path.as_str()));
    let own = ground.own().ok_or(StoreError::NotFound)?;
    match &entry.step {
        Step::Replace { stage, before, .. } => {
            let parent = make_parents(ground, area, path.parent(), touched)?;
            put_in_place(own, stage, parent.as_fd(), path.name(), before.is_none()).map_err(failed)?;
            *untouched = false;
            touched.directories.insert((area, path.parent().to_owned()));
            Ok(None)
        }
        Step::Append { length, text, .. } => {
            let Found::File(parent, stat) = ground.find(area, path)? else { return Err(StoreError::Changed) };
            let file = disk::open_file(&parent, path.name(), true).map_err(failed)?;
            let write = || {
                disk::write_at(&file, text.as_bytes(), *length)?;
                let sealed = disk::seal(&file)?;
                disk::sync(&file)?;
                Ok(sealed)
            };
            match write() {
                Ok(sealed) => {
                    *untouched = false;
                    Ok(sealed)
                }
                Err(error) => {
                    // Cut back to what was there, a torn end of an earlier try included; and as old as it was, or older
                    // commits would not know it as theirs.
                    let is_back = disk::size(&stat) == *length
                        && disk::truncate(&file, *length).is_ok()
                        && disk::date(&file, Time::modified(&stat)).is_ok();
                    if !is_back {
                        *untouched = false;
                    }
                    Err(failed(error))
                }
            }
        }
        Step::Delete { .. } => {
            let Found::File(parent, _) = ground.find(area, path)? else { return Err(StoreError::Changed) };
            disk::unlink(&parent, path.name()).map_err(failed)?;
            *untouched = false;
            touched.directories.insert((area, path.parent().to_owned()));
            touched.left.insert((area, path.parent().to_owned()));
            Ok(None)
        }
        Step::Move { to, .. } => {
            let to = RelPath::parse(area, to)?;
            let Found::File(parent, _) = ground.find(area, path)? else { return Err(StoreError::Changed) };
            let target = make_parents(ground, area, to.parent(), touched)?;
            disk::rename_new(&parent, path.name(), &target, to.name()).map_err(failed)?;
            *untouched = false;
            touched.directories.insert((area, path.parent().to_owned()));
            touched.directories.insert((area, to.parent().to_owned()));
            touched.left.insert((area, path.parent().to_owned()));
            Ok(None)
        }
    }
}

/// What a staged file is called beside its target, where it must be copied there first.
fn beside(stage: &str) -> String {
    format!(".{OWN}-{stage}")
}

/// Renames a staged file into place, over file systems if it must be.
fn put_in_place(own: BorrowedFd<'_>, stage: &str, parent: BorrowedFd<'_>, name: &str, new: bool) -> disk::Sys<()> {
    let rename = |from: BorrowedFd<'_>, staged: &str| {
        if new { disk::rename_new(from, staged, parent, name) } else { disk::rename(from, staged, parent, name) }
    };
    match rename(own, stage) {
        // A directory of the workspace is a mount point. A copy beside the target, then, which can be renamed there.
        Err(Errno::XDEV) => {
            let beside = beside(stage);
            disk::unlink(parent, &beside)?;
            let from = disk::open_file(own, stage, false)?;
            let copy = || {
                let to = disk::create(parent, &beside)?;
                disk::copy(&from, 0, &to, 0, disk::size(&rustix::fs::fstat(&from)?))?;
                disk::sync(&to)?;
                rename(parent, &beside)
            };
            copy().inspect_err(|_| {
                // What stays is of no use to anyone.
                let _ = disk::unlink(parent, &beside);
            })?;
            // The rename must be there to stay before the staged file, whose absence means done, goes.
            disk::sync(parent)?;
            disk::unlink(own, stage).map(drop)
        }
        other => other,
    }
}

/// Opens a directory, and makes what is missing of it. What is renamed into it loses its old name, so that the way to
/// its new one must not be lost: each new directory's name is synced before anything is put in it.
fn make_parents(ground: &Ground, area: Area, directory: &str, touched: &mut Touched) -> Result<OwnedFd, StoreError> {
    let failed = |error| disk::store_error(error, &format!("making {directory}"));
    let mut at = ground.base(area)?.ok_or(StoreError::NotFound)?;
    let mut way = String::new();
    for part in directory.split('/').filter(|part| !part.is_empty()) {
        let next = path::join(&way, part);
        let (open, new) = match disk::open_dir(&at, part) {
            Ok(open) => (open, false),
            Err(Errno::NOENT) => disk::make_dir(&at, part).map_err(failed)?,
            Err(error) => return Err(failed(error)),
        };
        if new {
            touched.created.push((area, next.clone()));
        }
        if (new || touched.is_again) && touched.anchored.insert((area, next.clone())) {
            disk::sync(&at).map_err(failed)?;
        }
        at = open;
        way = next;
    }
    Ok(at)
}

/// An addition that an earlier run made may not have reached the medium.
fn sync_addition(ground: &Ground, entry: &Entry) -> Result<(), StoreError> {
    let Step::Append { .. } = entry.step else { return Ok(()) };
    let path = RelPath::parse(entry.area, &entry.path)?;
    let failed = |error| disk::store_error(error, &format!("syncing {}", entry.path));
    match ground.find(entry.area, path)? {
        Found::File(parent, _) => {
            disk::open_file(&parent, path.name(), true).and_then(|file| disk::sync(&file)).map_err(failed)
        }
        _ => Ok(()),
    }
}

fn sync_directories(ground: &Ground, touched: &Touched) -> Result<(), StoreError> {
    for (area, directory) in &touched.directories {
        let Some(base) = ground.base(*area)? else { continue };
        let failed = |error| disk::store_error(error, &format!("syncing {directory}"));
        // One that is gone has nothing to keep.
        if let Way::Open(open) = descend(base, directory).map_err(failed)? {
            disk::sync(&open).map_err(failed)?;
        }
    }
    Ok(())
}

/// Takes back the directories of a commit that did not happen.
fn remove_created(ground: &Ground, touched: &Touched) {
    for (area, directory) in touched.created.iter().rev() {
        remove_directory(ground, *area, directory);
    }
}

/// Removes directories that lost their last file, but never one at the top: a workspace keeps its `sources` and
/// `topics`. A directory that is not empty says so; nothing depends on the success.
fn remove_empty(ground: &Ground, touched: &Touched) {
    for (area, directory) in touched.left.iter().rev() {
        let mut directory = directory.as_str();
        while directory.contains('/') && remove_directory(ground, *area, directory) {
            directory = above(directory);
        }
    }
}

fn remove_directory(ground: &Ground, area: Area, directory: &str) -> bool {
    let Ok(Some(base)) = ground.base(area) else { return false };
    match descend(base, above(directory)) {
        Ok(Way::Open(parent)) => disk::remove_dir(&parent, path_name(directory)).is_ok(),
        _ => false,
    }
}

/// Keeps aside what an entry would have written. Doing it twice is doing it once.
fn keep(ground: &Ground, pending: &Pending, index: usize, entry: &Entry) -> Result<(), StoreError> {
    let failed = |error| disk::store_error(error, "keeping a conflict aside");
    let own = ground.own().ok_or(StoreError::NotFound)?;
    let (kept, new) = disk::make_dir(own, KEPT).map_err(failed)?;
    let name = format!("{}-{index}-{}", pending.generation, hex(pending.digest.get(..4).unwrap_or_default()));
    let text = format!("{name}.text");
    let (edit, content) = match &entry.step {
        Step::Replace { .. } => (KeptEdit::Replace, Some(text.clone())),
        Step::Append { .. } => (KeptEdit::Append, Some(text.clone())),
        Step::Delete { .. } => (KeptEdit::Delete, None),
        Step::Move { to, .. } => (KeptEdit::Move(to.clone()), None),
    };
    let (generation, erases) = (pending.generation, pending.erases);
    let note = KeptNote { generation, area: entry.area, path: entry.path.clone(), edit, content, erases };
    write_note(&kept, &name, &note)?;
    match &entry.step {
        Step::Replace { stage, .. } => {
            // A run that died may have left a copy of it beside the target.
            let base = ground.base(entry.area)?;
            if let Some(Ok(Way::Open(parent))) = base.map(|base| descend(base, above(&entry.path))) {
                let _ = disk::unlink(&parent, &beside(stage));
            }
            disk::rename(own, stage, &kept, &text).map_err(failed)?;
        }
        Step::Append { text: added, .. } => write_new(&kept, &text, added.as_bytes()).map_err(failed)?,
        Step::Delete { .. } | Step::Move { .. } => {}
    }
    disk::sync(&kept).map_err(failed)?;
    if new {
        disk::sync(own).map_err(failed)?;
    }
    Ok(())
}

/// Keeps a damaged journal aside, with the staged files that it may have meant.
pub(super) fn keep_journal(own: BorrowedFd<'_>, generation: u64) -> Result<(), StoreError> {
    let failed = |error| disk::store_error(error, "keeping a damaged journal aside");
    let (kept, _) = disk::make_dir(own, KEPT).map_err(failed)?;
    let mut number = 0_u32;
    let (name, directory) = loop {
        let name = format!("journal-{number}");
        let (directory, new) = disk::make_dir(&kept, &name).map_err(failed)?;
        if new {
            break (name, directory);
        }
        number += 1;
    };
    let note = KeptNote {
        generation,
        area: Area::Runtime,
        path: String::new(),
        edit: KeptEdit::Journal,
        content: Some(name.clone()),
        erases: false,
    };
    write_note(&kept, &name, &note)?;
    for (staged, _) in disk::names(own).map_err(failed)? {
        if let Ok(staged) = std::str::from_utf8(&staged)
            && staged.starts_with(journal::STAGE)
        {
            disk::rename(own, staged, &directory, staged).map_err(failed)?;
        }
    }
    disk::rename(own, journal::NAME, &directory, journal::NAME).map_err(failed)?;
    disk::sync(&directory).and_then(|()| disk::sync(&kept)).and_then(|()| disk::sync(own)).map_err(failed)
}

fn write_note(kept: &OwnedFd, name: &str, note: &KeptNote) -> Result<(), StoreError> {
    let note = serde_json::to_vec_pretty(note).map_err(|error| StoreError::Io(format!("writing a note: {error}")))?;
    write_new(kept, &format!("{name}.json"), &note)
        .map_err(|error| disk::store_error(error, "keeping a conflict aside"))
}

/// Writes a file that may be there from an earlier, unfinished try.
fn write_new(directory: &OwnedFd, name: &str, data: &[u8]) -> disk::Sys<()> {
    disk::unlink(directory, name)?;
    let file = disk::create(directory, name)?;
    disk::write_at(&file, data, 0)?;
    disk::sync(&file)
}

/// Lists what was kept aside, oldest commit first.
pub(super) fn kept(ground: &Ground, place: &std::path::Path) -> Result<Vec<Kept>, StoreError> {
    /// No note is longer: two paths and a few words.
    const NOTE: usize = 64 << 10;
    let failed = |error| disk::store_error(error, "reading what was kept aside");
    let Some(own) = ground.own() else { return Ok(Vec::new()) };
    let directory = match disk::open_dir(own, KEPT) {
        Ok(directory) => directory,
        Err(Errno::NOENT) => return Ok(Vec::new()),
        Err(error) => return Err(failed(error)),
    };
    let path = place.join(super::place::runtime_name(ground.root())).join(OWN).join(KEPT);
    let mut found = Vec::new();
    for (name, _) in disk::names(&directory).map_err(failed)? {
        let Some(name) = std::str::from_utf8(&name).ok().filter(|name| name.ends_with(".json")) else { continue };
        let file = disk::open_file(&directory, name, false).map_err(failed)?;
        let note = disk::read_at(&file, 0, NOTE).map_err(failed)?;
        let note: KeptNote = serde_json::from_slice(&note)
            .map_err(|error| StoreError::Io(format!("{}: {error}", path.join(name).display())))?;
        found.push(Kept {
            generation: note.generation,
            area: note.area,
            path: note.path,
            edit: note.edit,
            content: note.content.map(|content| path.join(content)),
            erases: note.erases,
        });
    }
    found.sort_by(|a, b| (a.generation, a.area, &a.path).cmp(&(b.generation, b.area, &b.path)));
    Ok(found)
}

/// The highest generation that anything beside the journal speaks of: staged files, what was kept aside, what takes commits
/// back. 0: nothing does.
pub(super) fn last_seen(own: BorrowedFd<'_>) -> Result<u64, StoreError> {
    let failed = |error| disk::store_error(error, "looking for the last commit");
    let leading = |name: &[u8]| {
        let name = name.strip_prefix(journal::STAGE.as_bytes()).unwrap_or(name);
        let digits = name.iter().take_while(|byte| byte.is_ascii_digit()).count();
        std::str::from_utf8(name.get(..digits)?).ok()?.parse::<u64>().ok()
    };
    let mut last = 0;
    for directory in [None, Some(KEPT), Some(undo::DIRECTORY)] {
        let names = match directory.map(|name| disk::open_dir(own, name)) {
            None => disk::names(own).map_err(failed)?,
            Some(Ok(open)) => disk::names(&open).map_err(failed)?,
            Some(Err(Errno::NOENT)) => continue,
            Some(Err(error)) => return Err(failed(error)),
        };
        last = names.iter().filter_map(|(name, _)| leading(name)).max().unwrap_or(0).max(last);
    }
    Ok(last)
}

/// Whether a content is kept aside: anything but notes of what was to be done.
pub(super) fn keeps_content(own: BorrowedFd<'_>) -> Result<bool, StoreError> {
    let failed = |error| disk::store_error(error, "reading what was kept aside");
    match disk::open_dir(own, KEPT) {
        Ok(kept) => Ok(disk::names(&kept).map_err(failed)?.iter().any(|(name, _)| !name.ends_with(b".json"))),
        Err(Errno::NOENT) => Ok(false),
        Err(error) => Err(failed(error)),
    }
}

/// Removes what no journal speaks of: staged files and journals of commits that did not happen. Under the lock, and with
/// a settled journal only.
pub(super) fn sweep(own: BorrowedFd<'_>) -> disk::Sys<()> {
    for (name, _) in disk::names(own)? {
        if let Ok(name) = std::str::from_utf8(&name)
            && (name == journal::NEW || name == journal::ROOM || name.starts_with(journal::STAGE))
        {
            disk::unlink(own, name)?;
        }
    }
    Ok(())
}
