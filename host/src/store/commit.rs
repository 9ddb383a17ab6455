//! Making a commit: check everything, stage what is whole, write the journal, work it off.
//!
//! ```text
//! recover    what a writer that died left is completed first
//! check      expectations, kinds, collisions, bounds: nothing is written yet
//! stage      whole contents go to files beside the journal, synced, names too; room for additions is set aside there
//! journal    written, synced, renamed, directory synced: from here on the commit is made
//! redo       each change is put in place, and synced
//! settle     the journal is cut to its header
//! ```
//!
//! A commit that [erases](About::erasing) says so in its journal. It is not settled before all that was kept to take
//! older commits back is gone, whoever completes it; and it is refused while something lies aside that may hold the text.
//!
//! Before the journal is in place no file outside the store's own directory changes, nor its time of
//! change: whoever dies until then has changed nothing, and older commits can be taken back as before. A failure until
//! then leaves everything as it was, and what was staged is removed. After that,
//! only what no check could foresee fails: if nothing was put in place yet, the commit is taken back, under a generation
//! of its own; otherwise it stands, readers here see it whole, and the next writer completes it. Must not know what the
//! files mean.

use std::collections::btree_map::Entry as Slot;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};

use rustix::fs::{Access, AtFlags, FileType, Stat};
use rustix::io::Errno;

use super::directory::{Directory, Recovery};
use super::disk::{self, Time};
use super::ground::{Found, Ground, Way, descend};
use super::journal::{self, Entry, Head, Pending, Step, Version};
use super::path::{LOCK, RelPath, fold};
use super::place::Place;
use super::redo;
use super::undo;
use super::{About, Area, Change, CommitError, Committed, Edit, Expect, Guard, Splice, Stamp, Store as _, StoreError};

/// So many staged files are open before they are synced together.
const SYNC_TOGETHER: usize = 64;

/// Opens a workspace to write in it. None: `guard` is not its lock's, or no longer.
fn open_locked(place: &Place, guard: &dyn Guard) -> Result<Option<Ground>, StoreError> {
    let Some(ground) = Ground::open(place)? else { return Ok(None) };
    let Some(runtime) = ground.runtime() else { return Ok(None) };
    let lock = disk::look(runtime, LOCK).map_err(|error| disk::store_error(error, "looking for the lock"))?;
    if guard.file().is_none() || lock.as_ref().map(disk::identity) != guard.file() {
        return Ok(None);
    }
    ground.with_own().map(Some)
}

/// Opens a workspace to mend it, which is no commit: without the lock it is `Denied`.
pub(super) fn open(place: &Place, guard: &dyn Guard) -> Result<Ground, StoreError> {
    open_locked(place, guard)?.ok_or_else(|| StoreError::Denied(CommitError::LockLost.to_string()))
}

/// Completes what a writer that died left. The generation after that.
pub(super) fn recover(ground: &Ground) -> Result<(u64, Recovery), StoreError> {
    let own = ground.own().ok_or(StoreError::NotFound)?;
    let (head, file) = journal::head(own)?;
    let body = match &file {
        Some(file) => journal::body(file, &head)?,
        None => None,
    };
    match (head, body) {
        (head @ Head::Settled { .. }, _) => Ok((head.generation(), Recovery::default())),
        (Head::Absent, _) => match undo::last_noted(own)? {
            0 => Ok((0, Recovery::default())),
            // Somebody removed the journal. Its generations must not come again: new commits would be taken for those that
            // notes speak of, and these be taken back.
            last => Ok((settle_at(own, last + 1)?, Recovery::default())),
        },
        (Head::Foreign { version, .. }, _) => Err(StoreError::Denied(format!(
            "a commit of a newer version (journal {version}) is unfinished: use that version once"
        ))),
        (head @ Head::Pending { .. }, Some(pending)) => {
            // Its writer may have died before it came to sync the journal's name. Nothing may be put in place under a
            // journal that could still get lost.
            disk::sync(own).map_err(|error| disk::store_error(error, "syncing the journal"))?;
            let outcome = redo::run(ground, &pending, false).map_err(|failure| failure.error)?;
            let recovery = Recovery { applied: outcome.applied, kept: outcome.kept, damaged: false };
            Ok((head.generation(), recovery))
        }
        (head @ (Head::Pending { .. } | Head::Damaged { .. }), _) => {
            if matches!(head, Head::Pending { erases: true, .. }) {
                // What it was to remove is lost, and that it was to be kept nowhere is not.
                undo::forget_all(own, head.generation())?;
            }
            // A header that is gone says nothing of the generation, which must not come again: what lies beside it does.
            let last = head.generation().max(redo::last_seen(own)?);
            redo::keep_journal(own, last)?;
            // What readers saw may differ from what they see now.
            Ok((settle_at(own, last + 1)?, Recovery { damaged: true, ..Recovery::default() }))
        }
    }
}

/// Puts a journal in place that says nothing but the generation.
fn settle_at(own: BorrowedFd<'_>, generation: u64) -> Result<u64, StoreError> {
    let settled = journal::encode(generation, &[], false)?;
    journal::install(own, &settled).map_err(|(error, _)| disk::store_error(error, "writing the journal"))?;
    Ok(generation)
}

/// Gives the contents of puts whose text does not say them: of any size, of bytes that are no text, or of a file that is
/// there already.
pub(super) trait Contents {
    /// Stages the content of the change at `index`. None: the change says it itself.
    fn stage(&mut self, index: usize, staging: &mut Staging<'_>) -> Result<Option<Staged>, StoreError>;

    /// What the commit is to be noted as, for who wants to take it back.
    fn origin(&self) -> Origin {
        Origin::Change
    }
}

/// What a commit is to be noted as.
#[derive(Clone, Copy)]
pub(super) enum Origin {
    /// Somebody's change.
    Change,
    /// What took another commit back.
    Noted(undo::Place),
}

/// Each change says its content itself.
pub(super) struct AsGiven;

impl Contents for AsGiven {
    fn stage(&mut self, _index: usize, _staging: &mut Staging<'_>) -> Result<Option<Staged>, StoreError> {
        Ok(None)
    }
}

/// A content that is staged, and synced before the journal speaks of it.
pub(super) struct Staged {
    /// Its name in the store's own directory.
    pub(super) name: String,
    /// Its length.
    pub(super) size: u64,
    /// Its time of change, if that cannot come again.
    pub(super) sealed: Option<Time>,
}

/// Makes all changes, or none.
pub(super) fn commit(
    store: &Directory,
    guard: &dyn Guard,
    base: u64,
    changes: &[Change],
    contents: &mut dyn Contents,
    about: &About,
) -> Result<Committed, CommitError> {
    let failed = |error| CommitError::Failed { path: String::new(), error };
    let journal_failed = |error| failed(disk::store_error(error, "writing the journal"));

    let ground = open_locked(&store.place, guard).map_err(failed)?.ok_or(CommitError::LockLost)?;
    let own = ground.own().ok_or_else(|| failed(StoreError::NotFound))?;
    let (generation, _) = recover(&ground).map_err(failed)?;
    if generation != base {
        return Err(CommitError::Stale(generation));
    }
    redo::sweep(own).map_err(journal_failed)?;
    if store.undo.is_some() {
        // First, so that no version is linked that is not kept: a file with links is not added to in place.
        undo::sweep(own).map_err(failed)?;
    }
    if about.erases() && redo::keeps_content(own).map_err(failed)? {
        // A copy that waits for a person may hold what is to be gone, and may be the only one of something else.
        return Err(failed(StoreError::Denied(
            "what was kept aside after a conflict may hold what is to be erased: `doctor` says where it lies; take what \
             is wanted, delete it, and repeat"
                .to_owned(),
        )));
    }

    let mut check = Check::new(&ground, changes);
    let planned = changes.iter().map(|change| check.change(change)).collect::<Result<Vec<_>, _>>()?;

    let generation = generation + 1;
    let mut staging = Staging { own, generation, names: Vec::new(), has_room: false, unsynced: Vec::new() };
    let mut entries = Vec::new();
    let mut sealed = Vec::new();
    // What each entry found.
    let mut befores = Vec::new();
    // Which entry a change became.
    let mut places = Vec::with_capacity(planned.len());
    for (index, planned) in planned.iter().enumerate() {
        let staged = match contents.stage(index, &mut staging) {
            Ok(None) => stage(&ground, &mut staging, planned),
            Ok(Some(Staged { name, size, sealed })) => {
                let before = planned.existing.as_ref().map(Version::of);
                Ok(Some((Step::Replace { stage: name, size, before }, sealed)))
            }
            Err(error) => Err(error),
        };
        let staged = staged.map_err(|error| planned.failed(error))?;
        places.push(staged.is_some().then_some(entries.len()));
        if let Some((step, time)) = staged {
            entries.push(Entry { area: planned.area, path: planned.path.as_str().to_owned(), step });
            sealed.push(time);
            befores.push(planned.existing.as_ref().map(Version::of));
        }
        if staging.unsynced.len() >= SYNC_TOGETHER || index + 1 == changes.len() {
            staging.sync().map_err(|(name, error)| {
                let is_of = |entry: &&Entry| matches!(&entry.step, Step::Replace { stage, .. } if *stage == name);
                let path = entries.iter().find(is_of).map(|entry| entry.path.clone()).unwrap_or_default();
                CommitError::Failed { path, error: disk::store_error(error, "staging the file") }
            })?;
        }
    }
    if entries.is_empty() {
        let stamps = stamps(store, &ground, changes, &places, &sealed);
        return Ok(Committed { generation: base, stamps });
    }

    let additions = room_for(&entries);
    if additions > 0 {
        staging.set_aside(additions).map_err(journal_failed)?;
    }
    if !staging.names.is_empty() {
        // A journal says that a staged file which is gone is in place. So none may get lost while the journal is kept:
        // where the medium keeps names in no order, only this sees to that; elsewhere the files' own syncs did it.
        disk::sync(own).map_err(journal_failed)?;
    }

    let (pending, bytes) = Pending::new(generation, entries, about.erases()).map_err(failed)?;
    let place = match contents.origin() {
        Origin::Change => undo::Place::commit(base),
        Origin::Noted(place) => place,
    };
    let noted = store.undo.as_ref().and_then(|limits| {
        undo::prepare(&ground, &pending, &befores, place, about, limits).map(|prepared| (prepared, limits))
    });
    let run = match journal::install(own, &bytes) {
        Err((error, false)) => return Err(journal_failed(error)),
        // In place, but perhaps not to stay: no promise can be given, so it is taken back.
        Err((error, true)) => Err((journal_failed(error), true)),
        Ok(()) => redo::run(&ground, &pending, true).map_err(|failure| {
            let path = pending.entries.get(failure.index).map(|entry| entry.path.clone()).unwrap_or_default();
            let error = match failure.error {
                StoreError::Changed => CommitError::Changed(path),
                error => CommitError::Failed { path, error },
            };
            (error, failure.untouched)
        }),
    };
    match run {
        Ok(outcome) => {
            staging.forget();
            if let Some((prepared, limits)) = noted {
                prepared.made(&ground, outcome.kept == 0, limits);
            }
            for (sealed, applied) in sealed.iter_mut().zip(outcome.sealed) {
                *sealed = sealed.or(applied);
            }
        }
        Err((error, true)) if take_back(own, generation).is_ok() => {
            if store.undo.is_some() {
                undo::pass_over(own, generation + 1, base);
            }
            return Err(error);
        }
        // The commit is on the medium and readers here see it: it stands, and the next writer goes on.
        Err(_) => {
            staging.forget();
            if let Some((prepared, limits)) = noted {
                prepared.made(&ground, false, limits);
            }
        }
    }
    Ok(Committed { generation, stamps: stamps(store, &ground, changes, &places, &sealed) })
}

/// Makes a commit of which nothing is in place not have happened. Its generation was seen by readers, perhaps, and is
/// not used again.
fn take_back(own: BorrowedFd<'_>, generation: u64) -> Result<(), StoreError> {
    let settled = journal::encode(generation + 1, &[], false)?;
    match journal::install(own, &settled) {
        // In place for everyone who looks, which is as much as can be had of this medium.
        Ok(()) | Err((_, true)) => Ok(()),
        Err((error, false)) => Err(disk::store_error(error, "writing the journal")),
    }
}

/// The stamps after a commit.
fn stamps(
    store: &Directory,
    ground: &Ground,
    changes: &[Change],
    places: &[Option<usize>],
    sealed: &[Option<Time>],
) -> Vec<Option<Stamp>> {
    let is_settled = ground.own().is_some_and(|own| {
        journal::head(own).is_ok_and(|(head, _)| matches!(head, Head::Settled { .. } | Head::Absent))
    });
    let stamp = |(change, place): (&Change, &Option<usize>)| {
        let path = match &change.edit {
            Edit::Delete => return None,
            Edit::MoveTo(to) => to,
            _ => &change.path,
        };
        if !is_settled {
            // Readers see it through the journal, and so does whoever made it.
            return store.stat(change.area, path).ok().map(|entry| entry.stamp);
        }
        let sealed = place.and_then(|place| sealed.get(place).copied()).flatten();
        match ground.find(change.area, RelPath::parse(change.area, path).ok()?) {
            Ok(Found::File(_, stat)) => Some(disk::sealed_stamp(&stat, sealed)),
            _ => None,
        }
    };
    changes.iter().zip(places).map(stamp).collect()
}

/// A change that was checked.
struct Planned<'a> {
    area: Area,
    path: RelPath<'a>,
    /// The file that is there.
    existing: Option<Stat>,
    edit: &'a Edit,
}

impl Planned<'_> {
    fn failed(&self, error: StoreError) -> CommitError {
        let path = self.path.as_str().to_owned();
        match error {
            StoreError::Changed => CommitError::Changed(path),
            error => CommitError::Failed { path, error },
        }
    }
}

/// The checks of one commit, each change against the directory and against the changes before it.
struct Check<'a> {
    ground: &'a Ground,
    /// Paths that would come into being, directories too: from what a medium may take for their name to how they are
    /// spelled, and whether it is a file.
    planned: BTreeMap<(Area, String), (String, bool)>,
    named: BTreeSet<(Area, &'a str)>,
    /// What the commit puts somewhere: targets, so that a directory is read for all of them at once.
    targets: BTreeSet<(Area, &'a str)>,
    /// Of directories in which something would come into being: the names there that a medium may take for one of those,
    /// by what it may take them for.
    names: BTreeMap<(Area, String), HashMap<String, String>>,
}

/// What is at a path that a change names.
struct Spot {
    /// The last directory on the way that exists.
    directory: OwnedFd,
    existing: Option<Stat>,
    /// The shortest prefix that does not exist.
    missing: Option<String>,
}

impl<'a> Check<'a> {
    fn new(ground: &'a Ground, changes: &'a [Change]) -> Self {
        let targets = changes.iter().filter_map(|change| match &change.edit {
            Edit::Put(_) | Edit::Append { .. } => Some((change.area, change.path.as_str())),
            Edit::MoveTo(to) => Some((change.area, to.as_str())),
            Edit::Splice(_) | Edit::Delete | Edit::Keep => None,
        });
        let targets = targets.collect();
        Self { ground, planned: BTreeMap::new(), named: BTreeSet::new(), targets, names: BTreeMap::new() }
    }

    fn change(&mut self, change: &'a Change) -> Result<Planned<'a>, CommitError> {
        let failed = |error| CommitError::Failed { path: change.path.clone(), error };
        if change.area == Area::Cache {
            return Err(failed(StoreError::Denied("the cache is no part of commits".to_owned())));
        }
        let path = self.name(change.area, &change.path)?;
        let spot = self.spot(change.area, path)?;
        let is_as_expected = match (&change.expect, &spot.existing) {
            (Expect::Any, _) | (Expect::Absent, None) => true,
            (Expect::Same(expected), Some(stat)) => disk::stamp(stat).same_version(expected),
            (Expect::Absent, Some(_)) | (Expect::Same(_), None) => false,
        };
        let creates = spot.existing.is_none() && matches!(change.edit, Edit::Put(_) | Edit::Append { .. });
        if creates {
            self.creates(change.area, path, &spot)?;
        }
        if !is_as_expected {
            return Err(CommitError::Changed(change.path.clone()));
        }
        match (&change.edit, &spot.existing) {
            (Edit::Keep, _) => {}
            (Edit::Put(_), _) => may_change(&spot).map_err(failed)?,
            (Edit::Append { length, .. }, existing) => {
                if existing.as_ref().map_or(0, disk::size) != *length {
                    return Err(CommitError::Changed(change.path.clone()));
                }
                if existing.is_some() {
                    disk::open_file(&spot.directory, path.name(), true)
                        .map_err(|error| failed(disk::store_error(error, "adding to the file")))?;
                } else {
                    may_change(&spot).map_err(failed)?;
                }
            }
            (Edit::Splice(_) | Edit::Delete | Edit::MoveTo(_), None) => return Err(failed(StoreError::NotFound)),
            (Edit::Splice(splices), Some(stat)) => {
                may_change(&spot).map_err(failed)?;
                let file = disk::open_file(&spot.directory, path.name(), false)
                    .map_err(|error| failed(disk::store_error(error, "reading the file")))?;
                check_splices(&file, disk::size(stat), splices).map_err(|error| match error {
                    StoreError::Changed => CommitError::Changed(change.path.clone()),
                    error => failed(error),
                })?;
            }
            (Edit::Delete, Some(_)) => may_change(&spot).map_err(failed)?,
            (Edit::MoveTo(to), Some(_)) => {
                may_change(&spot).map_err(failed)?;
                let target = self.name(change.area, to)?;
                let there = self.spot(change.area, target)?;
                if there.existing.is_some() {
                    return Err(CommitError::Changed(to.clone()));
                }
                self.creates(change.area, target, &there)?;
                let failed = |error| CommitError::Failed { path: to.clone(), error };
                may_change(&there).map_err(failed)?;
                if device(&spot.directory).map_err(failed)? != device(&there.directory).map_err(failed)? {
                    return Err(failed(StoreError::Denied("the target is on another file system".to_owned())));
                }
            }
        }
        Ok(Planned { area: change.area, path, existing: spot.existing, edit: &change.edit })
    }

    /// A path that the commit names, for the only time.
    fn name(&mut self, area: Area, path: &'a str) -> Result<RelPath<'a>, CommitError> {
        let failed = |error| CommitError::Failed { path: path.to_owned(), error };
        let checked = RelPath::parse(area, path).map_err(failed)?;
        if self.named.insert((area, path)) {
            Ok(checked)
        } else {
            Err(failed(StoreError::Denied("the commit names this path twice".to_owned())))
        }
    }

    /// Follows a path as far as it exists.
    fn spot(&self, area: Area, path: RelPath<'_>) -> Result<Spot, CommitError> {
        let failed = |error| CommitError::Failed { path: path.as_str().to_owned(), error };
        let medium = |error| failed(disk::store_error(error, "looking for the file"));
        let link = |prefix: &str| failed(StoreError::Denied(format!("{prefix} is a symbolic link")));
        let base = self.ground.base(area).map_err(failed)?.ok_or_else(|| failed(StoreError::NotFound))?;
        let directory = match descend(base, path.parent()).map_err(medium)? {
            Way::Open(directory) => directory,
            Way::Missing(directory, missing) => {
                return Ok(Spot { directory, existing: None, missing: Some(missing) });
            }
            Way::Link(prefix) => return Err(link(&prefix)),
            Way::File(prefix) => return Err(CommitError::WrongKind(prefix)),
        };
        let Some(stat) = disk::look(&directory, path.name()).map_err(medium)? else {
            return Ok(Spot { directory, existing: None, missing: Some(path.as_str().to_owned()) });
        };
        match disk::file_type(&stat) {
            FileType::RegularFile => Ok(Spot { directory, existing: Some(stat), missing: None }),
            FileType::Directory => Err(CommitError::WrongKind(path.as_str().to_owned())),
            FileType::Symlink => Err(link(path.as_str())),
            _ => Err(failed(StoreError::Denied("not a regular file".to_owned()))),
        }
    }

    /// A path would come into being, with each prefix that is missing. Is one of them, to some medium, the name of
    /// something else?
    fn creates(&mut self, area: Area, path: RelPath<'_>, spot: &Spot) -> Result<(), CommitError> {
        let failed = |error| CommitError::Failed { path: path.as_str().to_owned(), error };
        let Some(missing) = spot.missing.as_deref() else { return Ok(()) };
        let (above, name) = missing.rsplit_once('/').unwrap_or(("", missing));
        let names = match self.names.entry((area, above.to_owned())) {
            Slot::Occupied(known) => known.into_mut(),
            Slot::Vacant(slot) => {
                let wanted = names_below(&self.targets, area, above);
                let twins = read_twins(&spot.directory, &wanted);
                slot.insert(twins.map_err(|error| failed(disk::store_error(error, "looking for twins")))?)
            }
        };
        if let Some(twin) = names.get(&fold(name)) {
            let existing = super::path::join(above, twin);
            return Err(CommitError::Collision { planned: missing.to_owned(), existing });
        }
        let mut key = String::new();
        let mut end = 0;
        for part in path.parts() {
            if end > 0 {
                key.push('/');
                end += 1;
            }
            key.push_str(&fold(part));
            end += part.len();
            if end < missing.len() {
                continue;
            }
            let prefix = path.as_str().get(..end).unwrap_or(path.as_str());
            let is_file = end == path.as_str().len();
            match self.planned.entry((area, key.clone())) {
                Slot::Vacant(slot) => {
                    slot.insert((prefix.to_owned(), is_file));
                }
                Slot::Occupied(slot) => {
                    let (other, other_is_file) = slot.get();
                    if other != prefix {
                        return Err(CommitError::Collision { planned: prefix.to_owned(), existing: other.clone() });
                    }
                    if *other_is_file || is_file {
                        return Err(CommitError::WrongKind(prefix.to_owned()));
                    }
                }
            }
        }
        Ok(())
    }
}

/// What the targets below a directory are in it: the next part of each path, as a medium may take it.
fn names_below(targets: &BTreeSet<(Area, &str)>, area: Area, above: &str) -> HashSet<String> {
    let start = if above.is_empty() { String::new() } else { format!("{above}/") };
    let below = targets.range((area, start.as_str())..).map_while(|(of, path)| {
        let rest = if *of == area { path.strip_prefix(start.as_str()) } else { None };
        rest.map(|rest| rest.split('/').next().unwrap_or(rest))
    });
    below.map(fold).collect()
}

/// The names in a directory that a medium may take for one of those `wanted`. A directory may have far more names than a
/// commit has changes, so the others are looked at and not kept.
fn read_twins(directory: &OwnedFd, wanted: &HashSet<String>) -> disk::Sys<HashMap<String, String>> {
    let mut twins = HashMap::new();
    disk::each_name(directory, |name, _| {
        // A name that is not UTF-8 is no path's, and no twin of one.
        let Ok(name) = std::str::from_utf8(name) else { return };
        let folded = fold(name);
        if wanted.contains(&folded) {
            twins.insert(folded, name.to_owned());
        }
    })?;
    Ok(twins)
}

/// Whether names may change in a directory. Asked before the commit is made, because it could not be undone after.
fn may_change(spot: &Spot) -> Result<(), StoreError> {
    let access = Access::WRITE_OK | Access::EXEC_OK;
    match rustix::fs::accessat(&spot.directory, ".", access, AtFlags::EACCESS) {
        // Systems that cannot answer for the effective user: the change itself will tell.
        Ok(()) | Err(Errno::NOSYS | Errno::INVAL) => Ok(()),
        Err(error) => Err(disk::store_error(error, "changing the directory")),
    }
}

fn device(directory: &OwnedFd) -> Result<u64, StoreError> {
    let stat = rustix::fs::fstat(directory).map_err(|error| disk::store_error(error, "looking at the directory"))?;
    Ok(disk::identity(&stat).device)
}

/// Splices ascend, do not overlap, lie within the file, and begin and end between characters.
fn check_splices(file: &OwnedFd, size: u64, splices: &[Splice]) -> Result<(), StoreError> {
    let mut last = 0;
    for splice in splices {
        if splice.offset < last {
            return Err(StoreError::Denied("the splices overlap or do not ascend".to_owned()));
        }
        last = splice.offset.checked_add(splice.remove).filter(|end| *end <= size).ok_or(StoreError::Changed)?;
        for at in [splice.offset, last] {
            let byte = disk::read_at(file, at, 1).map_err(|error| disk::store_error(error, "reading the file"))?;
            if byte.first().is_some_and(|byte| byte & 0xc0 == 0x80) {
                return Err(StoreError::NotText(at));
            }
        }
    }
    Ok(())
}

/// How much room the additions of a commit take at most.
fn room_for(entries: &[Entry]) -> u64 {
    /// What file systems give out at a time, commonly.
    const BLOCK: u64 = 4096;
    let added = |entry: &Entry| match &entry.step {
        Step::Append { text, .. } => (text.len() as u64).next_multiple_of(BLOCK),
        Step::Replace { .. } | Step::Delete { .. } | Step::Move { .. } => 0,
    };
    entries.iter().map(added).sum()
}

/// Staged files, removed when dropped unless the commit took them over.
pub(super) struct Staging<'a> {
    own: BorrowedFd<'a>,
    generation: u64,
    names: Vec<String>,
    /// Room is set aside.
    has_room: bool,
    /// Those of which it is not certain yet that they are on the medium.
    unsynced: Vec<(String, OwnedFd)>,
}

impl Staging<'_> {
    /// Makes a file that is to be written and sealed, and then given to [`written`](Self::written).
    pub(super) fn create(&mut self) -> disk::Sys<(String, OwnedFd)> {
        let name = format!("{}{}-{}", journal::STAGE, self.generation, self.names.len());
        self.names.push(name.clone());
        let file = disk::create(self.own, &name)?;
        Ok((name, file))
    }

    /// A file has all that it is to have. It is synced together with others before the journal speaks of it.
    pub(super) fn written(&mut self, name: &str, file: OwnedFd) {
        self.unsynced.push((name.to_owned(), file));
    }

    /// Waits for the files that were written. An error comes with the name of its file.
    fn sync(&mut self) -> Result<(), (String, Errno)> {
        let (names, files): (Vec<String>, Vec<OwnedFd>) = self.unsynced.drain(..).unzip();
        disk::sync_all(&files).map_err(|(at, error)| (names.get(at).cloned().unwrap_or_default(), error))
    }

    /// Makes a file that is there already a staged one, under a further name.
    pub(super) fn link(&mut self, directory: &OwnedFd, file: &str) -> disk::Sys<String> {
        let name = format!("{}{}-{}", journal::STAGE, self.generation, self.names.len());
        self.names.push(name.clone());
        disk::link(directory, file, self.own, &name)?;
        Ok(name)
    }

    /// Sets room aside for additions, so that a full medium refuses the commit before it is made. In a file of its own:
    /// reserved in the files that are added to, it would change their times even if the commit did not happen.
    fn set_aside(&mut self, bytes: u64) -> disk::Sys<()> {
        self.has_room = true;
        let file = disk::create(self.own, journal::ROOM)?;
        disk::reserve(&file, 0, bytes)
    }

    /// Leaves them where they are.
    fn forget(mut self) {
        self.names.clear();
        self.has_room = false;
    }
}

impl Drop for Staging<'_> {
    fn drop(&mut self) {
        let room = self.has_room.then_some(journal::ROOM);
        for name in self.names.iter().map(String::as_str).chain(room) {
            // What stays is swept away by the next writer.
            let _ = disk::unlink(self.own, name);
        }
    }
}

/// Prepares one change: nothing that anyone sees changes. None: there is nothing to do.
fn stage(
    ground: &Ground,
    staging: &mut Staging<'_>,
    planned: &Planned<'_>,
) -> Result<Option<(Step, Option<Time>)>, StoreError> {
    let existing = planned.existing.as_ref();
    let before = existing.map(Version::of);
    match (planned.edit, existing) {
        (Edit::Keep, _) => Ok(None),
        (Edit::Put(text), _) => stage_whole(staging, before, None, &[Piece::New(text)]).map(Some),
        (Edit::Append { text, .. }, Some(_)) if text.is_empty() => Ok(None),
        (Edit::Append { length: 0, text }, _) | (Edit::Append { text, .. }, None) => {
            stage_whole(staging, before, None, &[Piece::New(text)]).map(Some)
        }
        (Edit::Append { length, text }, Some(stat)) => {
            let file = open_unchanged(ground, planned, stat)?;
            if stat.st_nlink > 1 {
                // Somebody keeps this version under another name: that one must not change.
                let pieces = [Piece::Old(0, *length), Piece::New(text)];
                return stage_whole(staging, before, Some(&file), &pieces).map(Some);
            }
            let failed = |error| disk::store_error(error, "adding to the file");
            let tail = redo::tail_digest(&file, *length).map_err(failed)?;
            Ok(Some((Step::Append { length: *length, tail, text: text.clone() }, None)))
        }
        (Edit::Splice(splices), Some(stat)) => {
            let file = open_unchanged(ground, planned, stat)?;
            let mut pieces = Vec::with_capacity(splices.len() * 2 + 1);
            let mut at = 0;
            for splice in splices {
                pieces.push(Piece::Old(at, splice.offset - at));
                pieces.push(Piece::New(&splice.insert));
                at = splice.offset + splice.remove;
            }
            pieces.push(Piece::Old(at, disk::size(stat) - at));
            stage_whole(staging, before, Some(&file), &pieces).map(Some)
        }
        (Edit::Delete, Some(stat)) => Ok(Some((Step::Delete { before: Version::of(stat) }, None))),
        (Edit::MoveTo(to), Some(stat)) => Ok(Some((Step::Move { to: to.clone(), before: Version::of(stat) }, None))),
        (Edit::Splice(_) | Edit::Delete | Edit::MoveTo(_), None) => Err(StoreError::NotFound),
    }
}

/// A part of a file that is staged.
enum Piece<'a> {
    /// From this offset of the old file, this many bytes.
    Old(u64, u64),
    New(&'a str),
}

fn stage_whole(
    staging: &mut Staging<'_>,
    before: Option<Version>,
    old: Option<&OwnedFd>,
    pieces: &[Piece<'_>],
) -> Result<(Step, Option<Time>), StoreError> {
    let failed = |error| disk::store_error(error, "staging the file");
    let (stage, file) = staging.create().map_err(failed)?;
    let mut size = 0;
    for piece in pieces {
        match (piece, old) {
            (Piece::New(text), _) => {
                disk::write_at(&file, text.as_bytes(), size).map_err(failed)?;
                size += text.len() as u64;
            }
            (Piece::Old(_, 0), _) => {}
            (Piece::Old(at, length), Some(old)) => {
                disk::copy(old, *at, &file, size, *length).map_err(failed)?;
                size += length;
            }
            (Piece::Old(..), None) => return Err(StoreError::NotFound),
        }
    }
    if let (Some(old), Some(before)) = (old, before)
        && Version::of(&rustix::fs::fstat(old).map_err(failed)?) != before
    {
        return Err(StoreError::Changed);
    }
    let sealed = disk::seal(&file).map_err(failed)?;
    staging.written(&stage, file);
    Ok((Step::Replace { stage, size, before }, sealed))
}

/// Opens the file that was checked: for writing too, if it is added to.
fn open_unchanged(ground: &Ground, planned: &Planned<'_>, checked: &Stat) -> Result<OwnedFd, StoreError> {
    let Found::File(parent, _) = ground.find(planned.area, planned.path)? else { return Err(StoreError::Changed) };
    let write = matches!(planned.edit, Edit::Append { .. });
    let failed = |error| disk::store_error(error, "opening the file");
    let file = disk::open_file(parent.as_fd(), planned.path.name(), write).map_err(failed)?;
    let stat = rustix::fs::fstat(&file).map_err(failed)?;
    if disk::identity(&stat) == disk::identity(checked) && Version::of(&stat) == Version::of(checked) {
        Ok(file)
    } else {
        Err(StoreError::Changed)
    }
}
