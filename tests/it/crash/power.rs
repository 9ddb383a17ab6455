//! A medium that loses power at any point of a commit.
//!
//! A commit runs once, traced, and every system call that changes files or syncs them is recorded, with its data. Then, for
//! each point between two of them, the states are made that a file system may be found in when the power fails there, and
//! each must come to exactly the old or the new state; to the new one if the commit had returned.
//!
//! # What the medium may do
//!
//! Assumed, as POSIX and the documentation of Linux have it:
//!
//! - What `fsync` of a file returned for is there: the file's bytes, length, mode and times. Not the file's name.
//! - What `fsync` of a directory returned for is there: the names in it. Not the directory's own name, and nothing of the
//!   content of what is named.
//! - `rename` is one step: a file has its old name or its new one, also between directories, and never neither.
//! - What was on the medium before and is not touched stays.
//!
//! Allowed is everything else. Of a file's writes since its last sync, each may be lost, be there, be there as far as some
//! byte, or be there as zeros (a length that came before its bytes); in the order they were made or in the reverse. A
//! truncation, a mode and a time may be lost or there, each by itself. Of a directory's names:
//!
//! - [`Model::Ordered`]: of one directory, the changes up to some point are there, and none behind it, as journaling file
//!   systems do it; directories do not wait for each other.
//! - [`Model::Subset`]: any of them are there, in their order, and the others are lost.
//!
//! The store leaves what is there to take commits back with unsynced: after a failure there may be less of it, and what is
//! there leads to exactly what was.
//!
//! Small spaces of possibilities are gone through completely; of large ones a sample is taken, the same in each run, with
//! both ends. Assumed away: bytes that go bad by themselves, a sync that lies, sectors torn in the middle of what was synced.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fs::{self, File, FileTimes};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use recollex_tests::crash::Act;

use super::kills;
use super::record::{self, Change, Node, Recording};
use super::workspace::{After, Template, scratch};
use super::{Random, report, rounds, share};

/// How much of a space of possibilities is tried.
#[derive(Clone, Copy, Debug)]
pub struct Measure {
    /// Spaces of at most this many possibilities are gone through completely.
    complete: usize,
    /// Of larger ones, as many are tried, and both ends.
    sample: usize,
}

/// For commits, which everything else stands on.
const WIDE: Measure = Measure { complete: 32, sample: 14 };
/// For what is made of commits.
pub const NARROW: Measure = Measure { complete: 8, sample: 3 };

/// How directories lose names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Model {
    Ordered,
    Subset,
}

/// What may have become of a change that no sync forced.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Fate {
    Lost,
    There,
    /// A write: the bytes up to here.
    Prefix(usize),
    /// A write: zeros in place of its bytes, where the file was shorter.
    Zeros,
}

/// The changes before a point: those that are there for sure, and those that may be.
struct Pending {
    /// Of each change, whether some sync forced it.
    forced: Vec<bool>,
    /// Those of names that were not forced.
    names: Vec<usize>,
    /// Those of content that were not forced, by file.
    content: BTreeMap<Node, Vec<usize>>,
}

/// The directories whose names a change is about.
fn directories(change: &Change) -> Vec<Node> {
    match change {
        Change::Name { directory, .. } => vec![*directory],
        Change::Rename { from, to, .. } => vec![from.0, to.0],
        _ => Vec::new(),
    }
}

fn pending(changes: &[Change], model: Model) -> Pending {
    let mut forced = vec![false; changes.len()];
    for (at, change) in changes.iter().enumerate() {
        let Change::Sync { node } = change else { continue };
        for (before, change) in changes[..at].iter().enumerate() {
            forced[before] |= change.content_of() == Some(*node) || directories(change).contains(node);
        }
    }
    // A rename is one step: forced in one directory, it is there in the other; in order, with all that came before it.
    let mut is_closed = model != Model::Ordered;
    while !is_closed {
        let before = forced.clone();
        for at in 0..changes.len() {
            if forced[at] {
                for earlier in 0..at {
                    let shares = directories(&changes[earlier]).iter().any(|d| directories(&changes[at]).contains(d));
                    forced[earlier] |= shares;
                }
            }
        }
        is_closed = forced == before;
    }
    let mut names = Vec::new();
    let mut content: BTreeMap<Node, Vec<usize>> = BTreeMap::new();
    for (at, change) in changes.iter().enumerate().filter(|(at, _)| !forced[*at]) {
        match change.content_of() {
            Some(node) => content.entry(node).or_default().push(at),
            None if !directories(change).is_empty() => names.push(at),
            None => {}
        }
    }
    Pending { forced, names, content }
}

fn fates(change: &Change) -> Vec<Fate> {
    let mut fates = vec![Fate::Lost, Fate::There];
    if let Change::Write { data, .. } = change {
        let half = data.len() / 2;
        // A page, and what a sector holds, are where real media tear.
        let cuts: BTreeSet<usize> = [1, half, 512, 4096, data.len().saturating_sub(1)].into();
        fates.extend(cuts.into_iter().filter(|cut| (1..data.len()).contains(cut)).map(Fate::Prefix));
        fates.push(Fate::Zeros);
    }
    fates
}

/// One way in which it can come, as a number for each thing that can come in several ways.
struct Space<'a> {
    recording: &'a Recording,
    pending: &'a Pending,
    model: Model,
    /// For each number, how many values it has.
    sizes: Vec<usize>,
}

impl<'a> Space<'a> {
    fn new(recording: &'a Recording, pending: &'a Pending, model: Model) -> Self {
        let mut sizes = Vec::new();
        match model {
            Model::Subset => sizes.extend(pending.names.iter().map(|_| 2)),
            Model::Ordered => sizes.extend(Self::per_directory(recording, pending).values().map(|of| of.len() + 1)),
        }
        for changes in pending.content.values() {
            sizes.extend(changes.iter().map(|at| fates(&recording.changes[*at]).len()));
            // In their order, or in the reverse.
            sizes.push(if changes.len() > 1 { 2 } else { 1 });
        }
        Self { recording, pending, model, sizes }
    }

    fn per_directory(recording: &Recording, pending: &Pending) -> BTreeMap<Node, Vec<usize>> {
        let mut of: BTreeMap<Node, Vec<usize>> = BTreeMap::new();
        for at in &pending.names {
            for directory in directories(&recording.changes[*at]).into_iter().collect::<BTreeSet<_>>() {
                of.entry(directory).or_default().push(*at);
            }
        }
        of
    }

    /// All ways, or a sample of them.
    fn ways(&self, measure: Measure, random: &mut Random) -> Vec<Vec<usize>> {
        let total = self.sizes.iter().try_fold(1_usize, |total, size| total.checked_mul(*size));
        match total.filter(|total| *total <= measure.complete * rounds()) {
            Some(total) => (0..total)
                .map(|mut number| {
                    let digit = |size: &usize| {
                        let digit = number % size;
                        number /= size;
                        digit
                    };
                    self.sizes.iter().map(digit).collect()
                })
                .collect(),
            None => {
                let least = self.sizes.iter().map(|_| 0).collect();
                let most = self.sizes.iter().map(|size| size - 1).collect();
                let mut ways = vec![least, most];
                ways.extend(
                    (0..measure.sample * rounds()).map(|_| self.sizes.iter().map(|size| random.below(*size)).collect()),
                );
                ways
            }
        }
    }

    /// What is on the medium if it comes in this way.
    fn image(&self, way: &[usize]) -> Image {
        let changes = &self.recording.changes;
        let mut way = way.iter().copied();
        let mut digit = || way.next().unwrap_or(0);
        let mut there: BTreeSet<usize> = (0..self.pending.forced.len()).filter(|at| self.pending.forced[*at]).collect();
        match self.model {
            Model::Subset => there.extend(self.pending.names.iter().filter(|_| digit() == 1)),
            Model::Ordered => {
                let of = Self::per_directory(self.recording, self.pending);
                let mut kept: BTreeMap<Node, usize> = of.keys().map(|directory| (*directory, digit())).collect();
                // What one directory of a rename loses, the other loses too, with all behind it.
                loop {
                    let is_kept = |at: &usize| {
                        directories(&changes[*at]).iter().all(|d| of[d].iter().take(kept[d]).any(|kept| kept == at))
                    };
                    let next: BTreeMap<Node, usize> =
                        of.iter().map(|(d, all)| (*d, all.iter().take_while(|at| is_kept(at)).count())).collect();
                    if next == kept {
                        there.extend(self.pending.names.iter().filter(|at| is_kept(at)));
                        break;
                    }
                    kept = next;
                }
            }
        }

        let mut image = Image { directories: self.recording.names.clone(), files: self.recording.files.clone() };
        for at in &there {
            image.name(&changes[*at]);
        }
        // Content: what was forced, in order; then the rest, as it comes.
        for (at, change) in changes[..self.pending.forced.len()].iter().enumerate() {
            if self.pending.forced[at] && change.content_of().is_some() {
                image.content(change, Fate::There);
            }
        }
        for of in self.pending.content.values() {
            let mut rest: Vec<_> = of.iter().map(|at| (at, fates(&changes[*at])[digit()])).collect();
            if digit() == 1 {
                rest.reverse();
            }
            for (at, fate) in rest {
                image.content(&changes[*at], fate);
            }
        }
        image
    }
}

/// What is found on a medium.
#[derive(Clone, Hash)]
struct Image {
    directories: BTreeMap<Node, BTreeMap<String, Node>>,
    files: BTreeMap<Node, record::Inode>,
}

impl Image {
    fn name(&mut self, change: &Change) {
        match change {
            Change::Name { directory, name, node: Some(node) } => {
                self.directories.entry(*directory).or_default().insert(name.clone(), *node);
            }
            Change::Name { directory, name, node: None } => {
                self.directories.entry(*directory).or_default().remove(name);
            }
            Change::Rename { from, to, node } => {
                let names = self.directories.entry(from.0).or_default();
                // Something else may have that name where changes were lost.
                if names.get(&from.1) == Some(node) {
                    names.remove(&from.1);
                }
                self.directories.entry(to.0).or_default().insert(to.1.clone(), *node);
            }
            _ => {}
        }
    }

    fn content(&mut self, change: &Change, fate: Fate) {
        let Some(node) = change.content_of().filter(|_| fate != Fate::Lost) else { return };
        let inode = self.files.entry(node).or_default();
        match change {
            Change::Create { inode: new, .. } => inode.mode = new.mode,
            Change::Write { offset, data, .. } => {
                let data: &[u8] = match fate {
                    Fate::Prefix(cut) => &data[..cut],
                    Fate::Zeros => &vec![0; data.len()],
                    _ => data,
                };
                let old = inode.data.len();
                let end = offset + data.len();
                inode.data.resize(old.max(end), 0);
                // Zeros do not come over bytes that were there.
                let from = if fate == Fate::Zeros { old.clamp(*offset, end) } else { *offset };
                inode.data[from..end].copy_from_slice(&data[from - offset..]);
            }
            Change::Truncate { length, .. } => inode.data.resize(*length, 0),
            Change::Mode { mode, .. } => inode.mode = *mode,
            Change::Time { time, .. } => inode.modified = *time,
            _ => {}
        }
    }

    fn digest(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.hash(&mut hasher);
        hasher.finish()
    }

    /// Makes it, below a directory that is empty.
    fn make(&self, root: &Path) {
        let mut made = BTreeMap::new();
        self.make_directory(Node::TOP, root, &mut made);
    }

    fn make_directory(&self, node: Node, path: &Path, made: &mut BTreeMap<Node, std::path::PathBuf>) {
        for (name, node) in self.directories.get(&node).into_iter().flatten() {
            let path = path.join(name);
            let default = record::Inode::default();
            let inode = self.files.get(node).unwrap_or(&default);
            if inode.is_directory {
                fs::create_dir(&path).unwrap();
                self.make_directory(*node, &path, made);
            } else if let Some(other) = made.get(node) {
                fs::hard_link(other, &path).unwrap();
                continue;
            } else {
                fs::write(&path, &inode.data).unwrap();
                made.insert(*node, path.clone());
            }
            fs::set_permissions(&path, fs::Permissions::from_mode(inode.mode)).unwrap();
            File::open(&path).unwrap().set_times(FileTimes::new().set_modified(inode.modified.to_system())).unwrap();
        }
    }
}

impl record::Time {
    fn to_system(self) -> SystemTime {
        UNIX_EPOCH + Duration::new(self.0, self.1)
    }
}

/// A way that a medium is found in.
pub struct Found {
    /// How many commits had returned.
    pub reported: usize,
    image: Image,
    /// For people.
    pub what: String,
}

/// The ways that a medium is found in when the power fails at each point of a recording from `first` on.
pub fn failures(recording: &Recording, first: usize, measure: Measure, name: &str) -> Vec<Found> {
    let mut found = Vec::new();
    let mut known = HashSet::new();
    for point in first..=recording.changes.len() {
        let changes = &recording.changes[..point];
        let reported = changes.iter().filter(|change| matches!(change, Change::Returned)).count();
        for model in [Model::Ordered, Model::Subset] {
            let pending = pending(changes, model);
            let space = Space::new(recording, &pending, model);
            let mut random = Random((point as u64) << 8 | u64::from(model == Model::Subset));
            for way in space.ways(measure, &mut random) {
                let image = space.image(&way);
                if known.insert((reported, image.digest())) {
                    let what = format!("{name} at point {point}, {model:?}, {way:?}\n{}", recording.describe());
                    found.push(Found { reported, image, what });
                }
            }
        }
    }
    found
}

/// Makes each of them, and lets it be looked at.
pub fn try_each(found: &[Found], look: impl Fn(&Path, &Found) + Sync) {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let spots: Vec<_> = (0..threads).map(|_| scratch()).collect();
    share(found, |thread, found| {
        let top = spots[thread].path().join("top");
        if top.exists() {
            fs::remove_dir_all(&top).unwrap();
        }
        fs::create_dir(&top).unwrap();
        found.image.make(&top);
        look(&top, found);
    });
}

/// What came of the ways that a medium is found in.
#[derive(Default)]
struct Outcome {
    points: usize,
    /// How often it came to the state before, and to that after each commit.
    states: [AtomicUsize; 3],
}

impl Outcome {
    fn tried(&self) -> usize {
        self.states.iter().map(|state| state.load(Ordering::Relaxed)).sum()
    }

    /// Lets the power fail at each point of a recording from `first` on.
    fn fail(&mut self, template: &Template, recording: &Recording, first: usize, measure: Measure, name: &str) {
        self.points += recording.changes.len() + 1 - first;
        try_each(&failures(recording, first, measure, name), |top, found| {
            // The one that died had perhaps returned too.
            let reported = found.reported.min(template.commits());
            let state = template.settle(&top.join("w"), After::Power, reported, &found.what);
            self.states[state].fetch_add(1, Ordering::Relaxed);
        });
    }
}

#[test]
fn a_medium_that_reorders_and_loses_what_is_not_synced() {
    let templates = Template::all(Act::Bare);
    let mut outcome = Outcome::default();
    for template in &templates {
        let directory = scratch();
        let recording = record::perform(template, directory.path());
        let syncs = recording.changes.iter().filter(|change| matches!(change, Change::Sync { .. })).count();
        assert!(syncs >= 3, "{}: only {syncs} syncs", template.case.name);
        outcome.fail(template, &recording, 0, WIDE, &template.name());
    }
    report(&format!(
        "{} different states of a medium at {} points of {} cases; what they came to: {:?}",
        outcome.tried(),
        outcome.points,
        templates.len(),
        outcome.states
    ));
    let came_to = outcome.states.map(AtomicUsize::into_inner);
    assert!(came_to[0] > 500 && came_to[1] > 500, "{came_to:?}");
}

/// First its process dies, then, while another recovers it, the power fails: what the dead one did not sync, nobody may
/// rely on.
#[test]
fn a_recovery_relies_on_nothing_that_the_dead_did_not_sync() {
    let mut outcome = Outcome::default();
    let names = ["put-new-in-new-directories", "move-between", "archive", "delete-last-of-directory"];
    for template in &Template::of(Act::Bare, &names) {
        let name = template.name();
        let directory = scratch();
        let root = directory.path().join("w");
        template.copy_to(&root);
        let (count, made) = kills::stops(kills::perform(&root, template));
        // From the moment the commit is made, at some of the stops.
        let every = ((count - made[0]) / (3 * rounds())).max(1);
        for stop in (made[0]..count - 1).step_by(every) {
            let directory = scratch();
            let (recording, first) = record::recovery(template, directory.path(), stop);
            outcome.fail(template, &recording, first, WIDE, &format!("{name} killed at stop {stop}, recovery"));
        }
    }
    report(&format!(
        "{} different states of a medium at {} points of recoveries; what they came to: {:?}",
        outcome.tried(),
        outcome.points,
        outcome.states
    ));
    assert!(outcome.states[1].load(Ordering::Relaxed) > 500);
}

/// The store as it is shipped, which leaves something to take commits back with; and what is done with that.
#[test]
fn commits_are_taken_back_and_restored_whole_or_not() {
    let mut outcome = Outcome::default();
    let mut taken_back = 0;
    for (act, names) in [
        (Act::Commit, &["archive", "everything", "delete-last-of-directory"][..]),
        (Act::Undo, &["everything"]),
        (Act::Redo, &["everything"]),
        (Act::Restore, &["everything"]),
    ] {
        for template in &Template::of(act, names) {
            let directory = scratch();
            let recording = record::perform(template, directory.path());
            outcome.fail(template, &recording, 0, NARROW, &template.name());
            taken_back += template.taken_back.load(Ordering::Relaxed);
        }
    }
    report(&format!(
        "{} different states of a medium at {} points of undos, redos and restores; what they came to: {:?}; taken back \
         behind: {taken_back}",
        outcome.tried(),
        outcome.points,
        outcome.states
    ));
    let tried = outcome.tried();
    let came_to = outcome.states.map(AtomicUsize::into_inner);
    assert!(came_to[0] > 200 && came_to[1] > 200 && taken_back > tried / 4, "{came_to:?} {taken_back}");
}
