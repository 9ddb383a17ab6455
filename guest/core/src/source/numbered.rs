//! New turns of numbered conversations: checked together, held against what is stored, appended.
//!
//! The form has no lengths, so a text must not look like what stands around it: a turn whose lines could be read as
//! another anchor, comment, heading or end is refused (FORMAT.md, "Older archives"). Everything else is as for
//! [`super::Batch`]: all or nothing, every fault told, the first with a reference stays.

use super::batch::BatchError;
use super::compare::{Outcome, RecordRange};
use super::frame::{ANCHOR_CLOSE, ANCHOR_OPEN};
use super::legacy::{LegacyEnd, LegacyItem, LegacyKind, LegacyRef, LegacyScanner};
use super::legacy_line::{heading, is_markup};
use super::limits::{LimitReached, Limits};
use super::report::{FindingCode, Problem};
use super::scan::Fault;
use crate::digest::{Digest, Hasher};
use crate::ids::TurnRef;
use crate::text::{identity_part, is_printable_writing, is_whitespace};
use std::collections::{BTreeMap, BTreeSet};

/// A turn to keep. Nothing is checked yet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NewNumbered {
    /// `D3:7`.
    pub reference: String,
    /// Usually `YYYY-MM-DD`; empty: not known.
    pub date: String,
    /// What stands before the text, normalised like a role. It is no identity.
    pub label: String,
    /// Kept byte for byte.
    pub text: String,
}

/// Turns that can be written, in the order given. Made only by [`NumberedBatch::check`].
#[derive(Clone, Debug)]
pub struct NumberedBatch {
    turns: Vec<Turn>,
}

#[derive(Clone, Debug)]
struct Turn {
    id: TurnRef,
    path: String,
    /// The record: `[date] label: text [D3:7]`.
    record: String,
}

impl Turn {
    fn content(&self) -> Digest {
        Digest::of(self.record.as_bytes())
    }

    fn bytes(&self) -> u64 {
        // Heading or empty line, anchor and line ends: at most.
        self.record.len() as u64 + 64
    }
}

impl NumberedBatch {
    /// Checks every turn: nothing is written unless all are good.
    ///
    /// # Errors
    /// Every fault of every turn, in the order given; or, if there is none, that together they are too large.
    pub fn check(turns: Vec<NewNumbered>, limits: &Limits) -> Result<Self, BatchError> {
        let mut problems = Vec::new();
        let mut checked = Vec::with_capacity(turns.len());
        for (number, turn) in (1..).zip(turns) {
            match check(&turn, limits) {
                Ok(turn) => checked.push(turn),
                Err(faults) => problems.extend(faults.into_iter().map(|(reason, message)| Problem {
                    code: "INVALID_ARGUMENT",
                    reason,
                    path: None,
                    line: Some(number),
                    subject: Some(turn.reference.clone()),
                    message,
                })),
            }
        }
        if !problems.is_empty() {
            return Err(BatchError::Refused(problems));
        }
        let asked = checked.iter().map(Turn::bytes).sum();
        if asked > limits.batch_bytes {
            let name = Limits::BATCH_BYTES;
            return Err(BatchError::Limit(LimitReached { name, allowed: limits.batch_bytes, asked, subject: None }));
        }
        Ok(Self { turns: checked })
    }

    /// The files this batch belongs to, each once, sorted: what must be looked at before planning.
    pub fn paths(&self) -> Vec<&str> {
        let paths: BTreeSet<&str> = self.turns.iter().map(|turn| turn.path.as_str()).collect();
        paths.into_iter().collect()
    }

    /// Holds the batch against its files, one entry for each of [`NumberedBatch::paths`]; a path without an entry does not
    /// exist.
    ///
    /// # Errors
    /// One problem for each file that nothing may be added to; then nothing is to any.
    pub fn compare(
        &self,
        existing: BTreeMap<String, NumberedExisting>,
    ) -> Result<NumberedComparison<'_>, Vec<Problem>> {
        let here: BTreeSet<&str> = self.paths().into_iter().collect();
        let damaged = existing.iter().filter(|(path, _)| here.contains(path.as_str()));
        let problems: Vec<Problem> =
            damaged.filter_map(|(path, file)| Some(refuse(path, file.fault.as_ref()?))).collect();
        if !problems.is_empty() {
            return Err(problems);
        }
        let again =
            existing.iter().flat_map(|(path, file)| file.stored.iter().map(|stored| (path.clone(), stored.clone())));
        let queue: Vec<_> = again.collect();
        let mut comparison =
            NumberedComparison { batch: self, existing, queue: queue.into_iter(), open: None, kept: BTreeMap::new() };
        comparison.next();
        Ok(comparison)
    }
}

/// What is wrong with a turn: reasons, and in words.
type Faults = Vec<(&'static str, String)>;

fn check(turn: &NewNumbered, limits: &Limits) -> Result<Turn, Faults> {
    let mut faults = Faults::new();
    let id = TurnRef::parse(&turn.reference).filter(TurnRef::is_canonical);
    if id.is_none() {
        let message = "give a reference such as D3:7, each number of at most nine digits and without a zero in front";
        faults.push(("malformed-reference", message.to_owned()));
    }
    if let Some(c) = turn.date.chars().find(|&c| !is_printable_writing(c) || matches!(c, '[' | ']')) {
        let message = format!("the date contains {c:?}; give one without brackets and control characters, or none");
        faults.push(("unsafe-timestamp", message));
    }
    let label = identity_part(&turn.label);
    if label.is_empty() {
        faults.push(("empty-label", "the label has no visible character; give a name or a role".to_owned()));
    }
    let head = format!("[{}] {label}: ", turn.date);
    if head.len() > limits.header_bytes {
        let allowed = limits.header_bytes;
        let message = format!("date and label take {} bytes, {} allows {allowed}", head.len(), Limits::HEADER_BYTES);
        faults.push(("header-too-long", message));
    }
    if let Some((line, what)) = id.as_ref().and_then(|id| forged(&turn.text, id)) {
        let message = format!(
            "line {line} of the text could be read as {what}, and this form has nothing that would tell them apart; change \
             that line, or archive the conversation in the other form (`archive`), which takes any text"
        );
        faults.push(("forged-line", message));
    }
    match id.filter(|_| faults.is_empty()) {
        Some(id) => Ok(Turn { path: id.path(), record: format!("{head}{} [{id}]", turn.text), id }),
        None => Err(faults),
    }
}

/// The first line of a text, from 1, that could be taken for what stands around texts, and for what.
fn forged(text: &str, id: &TurnRef) -> Option<(usize, &'static str)> {
    let last = text.split('\n').count();
    let close = format!("[{id}]");
    (1..).zip(text.split('\n')).find_map(|(number, line)| {
        // The first stands behind the label, the last before the reference that belongs there.
        let what = if number > 1 && is_markup(line) {
            "an anchor or a comment"
        } else if number > 1 && heading(line).is_some() {
            "a heading"
        } else if number < last && line.trim_end_matches(is_whitespace).ends_with(&close) {
            "the end of the turn"
        } else {
            return None;
        };
        Some((number, what))
    })
}

/// What is known of a file before something is added to it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NumberedExisting {
    /// Its length.
    bytes: u64,
    closing_lfs: u8,
    fault: Option<Fault>,
    stored: Vec<Stored>,
}

/// A turn that is stored already.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Stored {
    id: TurnRef,
    offset: u64,
    length: u64,
}

/// Reads a file for what a batch must know of it.
pub struct NumberedScan {
    scanner: LegacyScanner,
    wanted: BTreeSet<TurnRef>,
    stored: Vec<Stored>,
}

impl NumberedScan {
    /// Of the file at `path`.
    pub fn new(batch: &NumberedBatch, path: &str, limits: &Limits) -> Self {
        let wanted = batch.turns.iter().filter(|turn| turn.path == path).map(|turn| turn.id.clone()).collect();
        Self { scanner: LegacyScanner::new(path, limits), wanted, stored: Vec::new() }
    }

    /// Takes the next piece.
    pub fn push_text(&mut self, text: &str) {
        let Self { scanner, wanted, stored } = self;
        scanner.push_text(text, &mut |item| keep(wanted, stored, item));
    }

    /// Takes the next piece.
    pub fn push_bytes(&mut self, bytes: &[u8]) {
        let Self { scanner, wanted, stored } = self;
        scanner.push_bytes(bytes, &mut |item| keep(wanted, stored, item));
    }

    /// The file is over.
    pub fn finish(self) -> NumberedExisting {
        let Self { scanner, wanted, mut stored } = self;
        let end = scanner.finish(&mut |item| keep(&wanted, &mut stored, item));
        let LegacyEnd { bytes, closing_lfs, fault, .. } = end;
        NumberedExisting { bytes, closing_lfs, fault, stored }
    }
}

fn keep(wanted: &BTreeSet<TurnRef>, stored: &mut Vec<Stored>, item: LegacyItem<'_>) {
    if let LegacyItem::Found(found @ LegacyRef { kind: LegacyKind::Numbered, .. }) = item
        && found.is_record()
        && let Some(id) = TurnRef::parse(found.id).filter(|id| wanted.contains(id))
    {
        stored.push(Stored { id, offset: found.offset, length: found.length });
    }
}

/// A batch being held against the files it belongs to. Ask for [`NumberedComparison::wanted`] and
/// [`NumberedComparison::supply`] it until nothing is wanted, then [`NumberedComparison::plan`].
pub struct NumberedComparison<'b> {
    batch: &'b NumberedBatch,
    existing: BTreeMap<String, NumberedExisting>,
    queue: std::vec::IntoIter<(String, Stored)>,
    open: Option<(TurnRef, RecordRange, Hasher)>,
    kept: BTreeMap<TurnRef, Digest>,
}

/// A turn of the batch and what became of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NumberedKept {
    /// Its reference.
    pub id: TurnRef,
    /// Its file.
    pub path: String,
    /// What became of it; digests are SHA-256 over the turn from its bracket to the end of its reference.
    pub outcome: Outcome,
}

/// Text to add to one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NumberedChange {
    /// The file.
    pub path: String,
    /// The length it must have now; 0: it does not exist or is empty.
    pub length: u64,
    /// What to add.
    pub text: String,
}

/// What to do. Nothing has been done yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NumberedPlan {
    /// Sorted by path; empty if there is nothing new.
    pub changes: Vec<NumberedChange>,
    /// Every turn, in the order given.
    pub turns: Vec<NumberedKept>,
}

impl NumberedComparison<'_> {
    /// What to read next, if anything. Shorter pieces will do; it then asks for the rest.
    pub fn wanted(&self) -> Option<&RecordRange> {
        self.open.as_ref().map(|(_, range, _)| range)
    }

    /// Takes the bytes that [`NumberedComparison::wanted`] asked for, or the first of them.
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

    /// Closes the turn that was read and opens the next.
    fn next(&mut self) {
        if let Some((id, _, hasher)) = self.open.take() {
            self.kept.entry(id).or_insert_with(|| hasher.finish());
        }
        // No turn is empty: it has at least its brackets.
        self.open = self.queue.next().map(|(path, stored)| {
            let Stored { id, offset, length } = stored;
            (id, RecordRange { path, offset, length }, Hasher::new())
        });
    }

    /// What to do, now that everything is known.
    ///
    /// # Errors
    /// What is still wanted.
    pub fn plan(mut self) -> Result<NumberedPlan, RecordRange> {
        if let Some((_, range, _)) = self.open {
            return Err(range);
        }
        let mut changes: BTreeMap<&str, NumberedChange> = BTreeMap::new();
        let mut turns = Vec::with_capacity(self.batch.turns.len());
        for turn in &self.batch.turns {
            let offered = turn.content();
            let outcome = match self.kept.get(&turn.id) {
                Some(kept) if *kept == offered => Outcome::Already,
                Some(kept) => Outcome::Differs { kept: *kept, offered },
                None => {
                    self.kept.insert(turn.id.clone(), offered);
                    let change = changes.entry(&turn.path).or_insert_with(|| {
                        let length = self.existing.get(&turn.path).map_or(0, |file| file.bytes);
                        NumberedChange { path: turn.path.clone(), length, text: String::new() }
                    });
                    let closing_lfs = self.existing.get(&turn.path).map_or(0, |file| file.closing_lfs);
                    append(turn, closing_lfs, change);
                    Outcome::Archived
                }
            };
            turns.push(NumberedKept { id: turn.id.clone(), path: turn.path.clone(), outcome });
        }
        Ok(NumberedPlan { changes: changes.into_values().collect(), turns })
    }
}

/// Adds the turn to what the file becomes, and what has to come before it.
fn append(turn: &Turn, closing_lfs: u8, change: &mut NumberedChange) {
    let out = &mut change.text;
    if !out.is_empty() {
        out.push('\n');
    } else if change.length == 0 {
        out.push_str(&format!("# D{}\n\n", turn.id.conversation()));
    } else {
        (closing_lfs..2).for_each(|_| out.push('\n'));
    }
    for part in [ANCHOR_OPEN, &turn.id.anchor(), ANCHOR_CLOSE, "\n", &turn.record, "\n"] {
        out.push_str(part);
    }
}

fn refuse(path: &str, fault: &Fault) -> Problem {
    let reason = if fault.code == FindingCode::InvalidUtf8 { "invalid-utf8" } else { "damaged-archive" };
    Problem {
        code: "COMMIT_REJECTED",
        reason,
        path: Some(path.to_owned()),
        line: Some(fault.line),
        subject: None,
        message: format!(
            "the file is damaged ({}) and nothing may be added to it; verify it, then restore it from a copy or mend the \
             line",
            fault.code.as_str(),
        ),
    }
}
