//! New records against what is stored: which are new, which are there already, and what to append.
//!
//! Knows content digests and where stored records lie (FORMAT.md, "Same record"). Must not read: it asks for the ranges it needs, and
//! is supplied.

use super::batch::{Batch, Turn};
use super::branches::{BranchLine, Predecessor};
use super::frame::{ContentHasher, FrameRef};
use super::limits::Limits;
use super::metadata::Metadata;
use super::report::{FindingCode, Problem};
use super::scan::{Fault, Resume, Scanner, Tail};
use crate::digest::Digest;
use crate::ids::{Location, SourceId};
use std::collections::{BTreeMap, BTreeSet};

/// What is known of an archive before text is appended to it: from an [`ExistingScan`] or from an index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Existing {
    /// Its length, and how it ends.
    pub at: Resume,
    /// What is wrong with it, if `at.tail` is [`Tail::Damaged`].
    pub fault: Option<Fault>,
    /// Its records with an id that the batch has too, as far as they have to be read. Others do no harm.
    pub stored: Vec<Stored>,
    /// The same whose content digest is known, by id: these are not read.
    pub known: BTreeMap<String, Digest>,
    /// Those of [`Batch::predecessors`] that it has.
    pub predecessors: BTreeSet<SourceId>,
}

impl Existing {
    /// Of a file that does not exist, or is empty.
    pub fn absent() -> Self {
        let at = Resume { bytes: 0, lines: 0, tail: Tail::Empty };
        Self { at, fault: None, stored: Vec::new(), known: BTreeMap::new(), predecessors: BTreeSet::new() }
    }
}

/// A record that is stored already.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stored {
    /// Its id.
    pub id: String,
    /// Of its first byte in the file.
    pub offset: u64,
    /// In bytes, without its last LF.
    pub length: u64,
    /// How many lines it has.
    pub lines: u64,
    /// Its speaker marker's value.
    pub speaker: Option<String>,
    /// Its metadata, if it has any.
    pub metadata: Option<Metadata>,
}

impl Stored {
    /// Of a frame.
    pub fn new(frame: &FrameRef<'_>) -> Self {
        Self {
            id: frame.id.to_owned(),
            offset: frame.record_offset,
            length: frame.record_length,
            lines: frame.record_lines,
            speaker: frame.speaker.map(str::to_owned),
            metadata: frame.metadata.cloned(),
        }
    }
}

/// Reads an archive for what a batch must know of it.
pub struct ExistingScan<'b> {
    scanner: Scanner,
    wanted: Wanted<'b>,
    found: Found,
    also: Box<dyn FnMut(&FrameRef<'_>) + 'b>,
}

/// What is looked for.
struct Wanted<'b> {
    ids: BTreeSet<&'b str>,
    predecessors: BTreeMap<String, SourceId>,
}

#[derive(Default)]
struct Found {
    stored: Vec<Stored>,
    predecessors: BTreeSet<SourceId>,
}

impl<'b> ExistingScan<'b> {
    /// Of the archive at `path`.
    pub fn new(batch: &'b Batch, path: &str, limits: &Limits) -> Self {
        let ids = batch.turns_of(path).map(|turn| turn.id.as_str()).collect();
        let mut predecessors = BTreeMap::new();
        predecessors.extend(batch.predecessors(path).into_iter().map(|id| (id.to_string(), id)));
        Self {
            scanner: Scanner::new(Some(Location::of_path(path)), limits),
            wanted: Wanted { ids, predecessors },
            found: Found::default(),
            also: Box::new(|_| {}),
        }
    }

    /// Hands every frame on to `also`, those that the batch has nothing to do with included.
    #[must_use]
    pub fn also(self, also: impl FnMut(&FrameRef<'_>) + 'b) -> Self {
        Self { also: Box::new(also), ..self }
    }

    /// Takes the next piece.
    pub fn push_text(&mut self, text: &str) {
        let Self { scanner, wanted, found, also } = self;
        scanner.push_text(text, &mut |frame| keep(wanted, found, also, frame));
    }

    /// Takes the next piece.
    pub fn push_bytes(&mut self, bytes: &[u8]) {
        let Self { scanner, wanted, found, also } = self;
        scanner.push_bytes(bytes, &mut |frame| keep(wanted, found, also, frame));
    }

    /// The file is over.
    pub fn finish(self) -> Existing {
        let Self { scanner, wanted, mut found, mut also } = self;
        let end = scanner.finish(&mut |frame| keep(&wanted, &mut found, &mut also, frame));
        let at = Resume { bytes: end.bytes, lines: end.valid_prefix_lines, tail: end.tail };
        let damaged = end.tail == Tail::Damaged;
        let fault = end.invalid_utf8.or(end.fault).filter(|_| damaged);
        let Found { stored, predecessors } = found;
        Existing { at, fault, stored, known: BTreeMap::new(), predecessors }
    }
}

fn keep(wanted: &Wanted<'_>, found: &mut Found, also: &mut dyn FnMut(&FrameRef<'_>), frame: &FrameRef<'_>) {
    also(frame);
    if wanted.ids.contains(frame.id) {
        found.stored.push(Stored::new(frame));
    } else if let Some(id) = wanted.predecessors.get(frame.id) {
        found.predecessors.insert(id.clone());
    }
}

/// A part of a file to be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordRange {
    /// The file.
    pub path: String,
    /// Of the first byte still wanted.
    pub offset: u64,
    /// How many bytes are still wanted; at least 1.
    pub length: u64,
}

/// A batch being held against the archives it belongs to.
///
/// Ask for [`Comparison::wanted`] and [`Comparison::supply`] it until nothing is wanted, then [`Comparison::plan`]. Only
/// records whose id comes again are asked for.
pub struct Comparison<'b> {
    batch: &'b Batch,
    existing: BTreeMap<String, Existing>,
    queue: std::vec::IntoIter<(String, Stored)>,
    open: Option<(String, RecordRange, ContentHasher)>,
    /// Content digests by id.
    kept: BTreeMap<String, Digest>,
}

/// What became of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It is new.
    Archived,
    /// The same record was there already, or came earlier in the batch.
    Already,
    /// A record with this id but other content was there already, or came earlier in the batch. The first stays.
    Differs {
        /// Content digest of the one that stays.
        kept: Digest,
        /// Content digest of the one that was offered.
        offered: Digest,
    },
}

/// A record of the batch and what became of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kept {
    /// Its id.
    pub id: SourceId,
    /// Its archive.
    pub path: String,
    /// Its anchor within the archive.
    pub anchor: String,
    /// Content digest of the one that was offered.
    pub content: Digest,
    /// What became of it.
    pub outcome: Outcome,
}

/// Text to add to one archive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// The archive.
    pub path: String,
    /// Where it goes: `from.bytes` is the length the file must have now; 0: it does not exist or is empty. A
    /// [`Scanner::resume`] from here over `text` finds the new frames.
    pub from: Resume,
    /// What to add.
    pub text: String,
}

/// Lines to add to what is said of a conversation's branches, in the same commit as its records.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BranchChange {
    /// The file; there may be none yet.
    pub path: String,
    /// Whole lines. If the file there ends without a LF, one comes first.
    pub text: String,
}

/// What to do. Nothing has been done yet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// Sorted by path; empty if there is nothing new.
    pub changes: Vec<Change>,
    /// Sorted by path; only of archives in `changes`.
    pub branches: Vec<BranchChange>,
    /// Every record, in the order of (provider, thread, ordinal).
    pub records: Vec<Kept>,
}

impl Batch {
    /// Holds the batch against its archives, one entry for each of [`Batch::paths`]; a path without an entry does not
    /// exist.
    ///
    /// # Errors
    /// One problem for each archive that is damaged: nothing may be appended to it, so nothing is to any.
    pub fn compare(&self, existing: BTreeMap<String, Existing>) -> Result<Comparison<'_>, Vec<Problem>> {
        let here: BTreeSet<&str> = self.paths().into_iter().collect();
        let damaged = |(path, existing): (&String, &Existing)| {
            (existing.at.tail == Tail::Damaged && here.contains(path.as_str())).then(|| refuse(path, existing))
        };
        let problems: Vec<Problem> = existing.iter().filter_map(damaged).collect();
        if !problems.is_empty() {
            return Err(problems);
        }
        let offered: BTreeSet<&str> = self.turns.iter().map(|turn| turn.id.as_str()).collect();
        let again = existing.iter().flat_map(|(path, existing)| {
            let again = existing.stored.iter().filter(|stored| offered.contains(stored.id.as_str()));
            again.map(|stored| (path.clone(), stored.clone()))
        });
        let queue: Vec<_> = again.collect();
        let known = existing.values().flat_map(|existing| &existing.known);
        let kept = known.map(|(id, content)| (id.clone(), *content)).collect();
        let mut comparison = Comparison { batch: self, existing, queue: queue.into_iter(), open: None, kept };
        comparison.next();
        Ok(comparison)
    }
}

impl<'b> Comparison<'b> {
    /// What to read next, if anything. Shorter pieces will do; it then asks for the rest.
    pub fn wanted(&self) -> Option<&RecordRange> {
        self.open.as_ref().map(|(_, range, _)| range)
    }

    /// Takes the bytes that [`Comparison::wanted`] asked for, or the first of them.
    pub fn supply(&mut self, piece: &[u8]) {
        let Some((_, range, hasher)) = &mut self.open else { return };
        let used = piece.len().min(usize::try_from(range.length).unwrap_or(usize::MAX));
        hasher.push(piece.get(..used).unwrap_or_default());
        range.offset += used as u64;
        range.length -= used as u64;
        if range.length == 0 {
            self.next();
        }
    }

    /// Closes the record that was read and opens the next.
    fn next(&mut self) {
        if let Some((id, _, hasher)) = self.open.take() {
            self.kept.entry(id).or_insert_with(|| hasher.finish());
        }
        // No record is empty: it has at least its brackets.
        self.open = self.queue.next().map(|(path, stored)| {
            let Stored { id, offset, length, lines, speaker, metadata } = stored;
            let hasher = ContentHasher::new(&id, speaker.as_deref(), metadata.as_ref(), lines);
            (id, RecordRange { path, offset, length }, hasher)
        });
    }

    /// What to do, now that everything is known.
    ///
    /// # Errors
    /// What is still wanted.
    pub fn plan(mut self) -> Result<Plan, RecordRange> {
        if let Some((_, range, _)) = self.open {
            return Err(range);
        }
        let mut changes: BTreeMap<&'b str, Change> = BTreeMap::new();
        let mut lines = BranchLines::default();
        let mut records = Vec::with_capacity(self.batch.turns.len());
        for turn in &self.batch.turns {
            let offered = turn.content();
            let outcome = match self.kept.get(turn.id.as_str()) {
                Some(kept) if *kept == offered => Outcome::Already,
                Some(kept) => Outcome::Differs { kept: *kept, offered },
                None => {
                    self.kept.insert(turn.id.as_str().to_owned(), offered);
                    self.append(turn, &mut changes);
                    lines.add(turn, self.existing.get(&turn.path), &self.kept);
                    Outcome::Archived
                }
            };
            records.push(Kept {
                id: turn.id.clone(),
                path: turn.path.clone(),
                anchor: turn.id.anchor(),
                content: offered,
                outcome,
            });
        }
        Ok(Plan { changes: changes.into_values().collect(), branches: lines.finish(), records })
    }

    fn append(&self, turn: &'b Turn, changes: &mut BTreeMap<&'b str, Change>) {
        let change = changes.entry(&turn.path).or_insert_with(|| {
            let from = self.existing.get(&turn.path).map_or_else(|| Existing::absent().at, |existing| existing.at);
            Change { path: turn.path.clone(), from, text: String::new() }
        });
        let tail = if change.text.is_empty() { change.from.tail } else { Tail::AfterRecord };
        turn.write(tail, &mut change.text);
    }
}

/// Finds out which new records need a line (FORMAT.md, "Branches").
#[derive(Default)]
struct BranchLines<'b> {
    /// By archive: the record that was added last.
    last: BTreeMap<&'b str, &'b SourceId>,
    /// By branches file.
    text: BTreeMap<String, String>,
}

impl<'b> BranchLines<'b> {
    /// `turn` is being added behind those before it. `kept`: what the archive has, as far as it was looked for, and what
    /// was added.
    fn add(&mut self, turn: &'b Turn, existing: Option<&Existing>, kept: &BTreeMap<String, Digest>) {
        let before = self.last.insert(&turn.path, &turn.id);
        let after = match &turn.after {
            Predecessor::Before => return,
            Predecessor::Start => None,
            Predecessor::Record(_) => turn.predecessor().filter(|id| {
                let known = existing.is_some_and(|existing| existing.predecessors.contains(id));
                *id != turn.id && (known || kept.contains_key(id.as_str()))
            }),
        };
        // What stands before the first of them is not known here, if there is anything.
        let is_said = match before {
            Some(before) => after.as_ref() == Some(before),
            None => after.is_none() && existing.is_none_or(|existing| existing.at.bytes == 0),
        };
        if !is_said {
            let line = BranchLine { id: turn.id.message().to_owned(), after: after.map(|id| id.message().to_owned()) };
            line.write(self.text.entry(turn.id.branches_path()).or_default());
        }
    }

    fn finish(self) -> Vec<BranchChange> {
        self.text.into_iter().map(|(path, text)| BranchChange { path, text }).collect()
    }
}

fn refuse(path: &str, existing: &Existing) -> Problem {
    let not_utf8 = existing.fault.as_ref().is_some_and(|fault| fault.code == FindingCode::InvalidUtf8);
    let reason = if not_utf8 { "invalid-utf8" } else { "damaged-archive" };
    let what = existing.fault.as_ref().map_or("", |fault| fault.code.as_str());
    Problem {
        code: "COMMIT_REJECTED",
        reason,
        path: Some(path.to_owned()),
        line: existing.fault.as_ref().map(|fault| fault.line),
        subject: None,
        message: format!(
            "the archive is damaged ({what}) and nothing may be added to it; verify it, then restore it from a copy or \
             cut it behind its last whole record"
        ),
    }
}
