//! What is owed to memory, and in which pieces it is written.
//!
//! A branch owes what comes behind its newest mark of the workspace. What several branches have in common is owed once, by
//! the first of them that is written. Must not know how tokens are counted or what a writer does.

use super::lines::turn_line;
use super::session::{Branch, Session, Turn};
use super::status::{WriterCode, WriterFailure};
use crate::ids::{WorkspaceId, label};
use crate::source::NewRecord;
use crate::time::Instant;
use std::collections::BTreeSet;

/// When turns are written, and how many at a time. Field names are the settings'.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TurnLimits {
    /// `turns.batch-tokens`: a batch is the leading turns that reach so many tokens.
    pub batch_tokens: u64,
    /// `turns.settled-s`: fewer are written once the newest of them is so many seconds old.
    pub settled_s: u64,
    /// `turns.idle-s`: a session is looked at without being told once nothing was said for so many seconds.
    pub idle_s: u64,
}

impl TurnLimits {
    /// The setting's name of [`TurnLimits::batch_tokens`].
    pub const BATCH_TOKENS: &'static str = "turns.batch-tokens";
    /// The setting's name of [`TurnLimits::settled_s`].
    pub const SETTLED_S: &'static str = "turns.settled-s";
    /// The setting's name of [`TurnLimits::idle_s`].
    pub const IDLE_S: &'static str = "turns.idle-s";
}

impl Default for TurnLimits {
    fn default() -> Self {
        Self { batch_tokens: 16_000, settled_s: 3600, idle_s: 1800 }
    }
}

/// What one branch owes and none before it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment<'s> {
    /// The branch.
    pub branch: Branch,
    /// Its turns, oldest first. There is at least one.
    pub turns: Vec<Turn<'s>>,
}

/// What is owed on all branches that were not put away, every turn once: exactly what a forced write writes (D24, D40).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Owed<'s> {
    segments: Vec<Segment<'s>>,
}

/// Turns that are written together: of one branch, one behind the other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Batch<'s> {
    /// The branch.
    pub branch: Branch,
    /// The turns, oldest first. There is at least one.
    pub turns: Vec<Turn<'s>>,
    /// What they come to, as they were counted.
    pub tokens: u64,
}

/// What a write is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trigger {
    /// To write what is due: [`Owed::unforced`]. That nothing was is no failure.
    Unforced,
    /// To write everything: [`Owed::batches`].
    Forced,
}

impl Trigger {
    /// Whether a batch's nodes are to be marked after its writer was done, which changed memory or did not. Only what changed
    /// memory is marked; a batch that did not is offered again.
    ///
    /// # Errors
    /// [`WriterCode::NoProgress`] if a forced write did not: going on would ask the same writer the same for ever.
    pub const fn is_to_mark(self, has_changed_memory: bool) -> Result<bool, WriterFailure> {
        match (self, has_changed_memory) {
            (_, true) => Ok(true),
            (Self::Unforced, false) => Ok(false),
            (Self::Forced, false) => Err(WriterFailure { code: WriterCode::NoProgress, retryable: false }),
        }
    }
}

impl Session {
    /// All that a branch owes, also what others owe with it; oldest first.
    #[must_use]
    pub fn owed_on(&self, branch: Branch, workspace: WorkspaceId) -> Vec<Turn<'_>> {
        let workspace = workspace.to_string();
        let open = self.dag.upwards(branch.tip).take_while(|place| !self.is_marked(*place, &workspace));
        let mut turns: Vec<Turn<'_>> = open.filter_map(|place| self.turn_at(place)).collect();
        turns.reverse();
        turns
    }

    /// What is owed on all live branches, every turn once. Costs what there are nodes, however many branches.
    #[must_use]
    pub fn owed(&self, workspace: WorkspaceId) -> Owed<'_> {
        let workspace = workspace.to_string();
        let mut seen = vec![false; self.nodes.len()];
        let mut segments = Vec::new();
        for &branch in self.branches().iter().filter(|branch| !branch.archived) {
            let open = self.dag.upwards(branch.tip).take_while(|place| {
                let is_new = seen.get_mut(*place).is_some_and(|seen| !core::mem::replace(seen, true));
                is_new && !self.is_marked(*place, &workspace)
            });
            let mut turns: Vec<Turn<'_>> = open.filter_map(|place| self.turn_at(place)).collect();
            turns.reverse();
            if !turns.is_empty() {
                segments.push(Segment { branch, turns });
            }
        }
        Owed { segments }
    }

    /// These turns alone, by the ids of their nodes: what is written on request though no branch owes it. Those next to each
    /// other on a branch come together; a turn of several branches belongs to the first.
    #[must_use]
    pub fn chosen<'i>(&self, ids: impl IntoIterator<Item = &'i str>) -> Owed<'_> {
        let mut open: BTreeSet<usize> = ids.into_iter().filter_map(|id| self.place(id)).collect();
        let mut seen = vec![false; self.nodes.len()];
        let mut segments = Vec::new();
        for &branch in self.branches() {
            let new = self
                .dag
                .upwards(branch.tip)
                .take_while(|place| seen.get_mut(*place).is_some_and(|seen| !core::mem::replace(seen, true)));
            let mut turns: Vec<Turn<'_>> =
                new.filter(|place| open.remove(place)).filter_map(|place| self.turn_at(place)).collect();
            turns.reverse();
            if !turns.is_empty() {
                segments.push(Segment { branch, turns });
            }
        }
        Owed { segments }
    }

    pub(super) fn is_marked(&self, place: usize, workspace: &str) -> bool {
        self.nodes.get(place).is_some_and(|node| node.marks.contains(workspace))
    }
}

/// How many leading turns make a batch: as many as reach the threshold, all if none do. Asks for no more counts than it needs.
pub fn leading(tokens: impl IntoIterator<Item = u64>, threshold: u64) -> (usize, u64) {
    let (mut turns, mut sum) = (0, 0_u64);
    for more in tokens {
        turns += 1;
        sum = sum.saturating_add(more);
        if sum >= threshold {
            break;
        }
    }
    (turns, sum)
}

impl<'s> Owed<'s> {
    /// By branch, in the order in which they are written.
    #[must_use]
    pub fn segments(&self) -> &[Segment<'s>] {
        &self.segments
    }

    /// How many turns.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.segments.iter().map(|segment| segment.turns.len() as u64).sum()
    }

    /// A forced write: everything, in batches, the current branch first, whatever the size of what is left of a branch
    /// (D40). `tokens` counts a turn's text.
    pub fn batches<'o>(
        &'o self,
        limits: &TurnLimits,
        mut tokens: impl FnMut(&Turn<'s>) -> u64 + 'o,
    ) -> impl Iterator<Item = Batch<'s>> + 'o {
        let threshold = limits.batch_tokens;
        let mut segments = self.segments.iter();
        let mut rest: Option<(Branch, &'o [Turn<'s>])> = None;
        core::iter::from_fn(move || {
            let (branch, turns) = match rest.take().filter(|(_, turns)| !turns.is_empty()) {
                Some(rest) => rest,
                None => segments.next().map(|segment| (segment.branch, segment.turns.as_slice()))?,
            };
            let (batch, left) = batch(branch, turns, threshold, &mut tokens);
            rest = Some((branch, left));
            Some(batch)
        })
    }

    /// An unforced write: the next batch of the current branch, if it reaches the threshold, or if the newest turn that the
    /// branch owes is old enough. A turn without a time says nothing of that; where none has one, waiting would be for ever.
    pub fn unforced(
        &self,
        limits: &TurnLimits,
        now: Instant,
        mut tokens: impl FnMut(&Turn<'s>) -> u64,
    ) -> Option<Batch<'s>> {
        let segment = self.segments.first().filter(|segment| segment.branch.current)?;
        let (batch, _) = batch(segment.branch, &segment.turns, limits.batch_tokens, &mut tokens);
        let newest = segment.turns.iter().rev().find_map(|turn| Instant::parse(turn.record.time.as_deref()?));
        let is_settled = newest.is_none_or(|newest| now.seconds_since(newest) >= limits.settled_s as f64);
        (batch.tokens >= limits.batch_tokens || is_settled).then_some(batch)
    }
}

fn batch<'o, 's>(
    branch: Branch,
    turns: &'o [Turn<'s>],
    threshold: u64,
    tokens: &mut dyn FnMut(&Turn<'s>) -> u64,
) -> (Batch<'s>, &'o [Turn<'s>]) {
    let (count, tokens) = leading(turns.iter().map(tokens), threshold);
    let (now, later) = turns.split_at_checked(count).unwrap_or((turns, &[]));
    (Batch { branch, turns: now.to_vec(), tokens }, later)
}

/// The day that stands where nothing has one.
pub(super) const UNDATED: &str = "undated";

impl<'s> Batch<'s> {
    /// Those turns of it that stand at these places, in their order; what is not there is left out. What they come to is counted anew.
    #[must_use]
    pub fn part(&self, places: &[usize], tokens: impl FnMut(&Turn<'s>) -> u64) -> Self {
        let turns: Vec<Turn<'s>> = places.iter().filter_map(|place| self.turns.get(*place)).cloned().collect();
        let tokens = turns.iter().map(tokens).fold(0, u64::saturating_add);
        Self { branch: self.branch, turns, tokens }
    }

    /// Their records, to be archived before anything is written of them.
    #[must_use]
    pub fn records(&self) -> Vec<NewRecord> {
        self.turns.iter().map(|turn| turn.record.clone()).collect()
    }

    /// Their source ids: all that a writer of this batch may cite anew (D20).
    #[must_use]
    pub fn source_ids(&self) -> Vec<String> {
        self.turns.iter().map(Turn::source_id).collect()
    }

    /// The ids of their nodes: what is marked once they are written.
    #[must_use]
    pub fn nodes(&self) -> Vec<&str> {
        self.turns.iter().map(|turn| turn.node.id.as_str()).collect()
    }

    /// The day they were said: of the last one that has a time, `YYYY-MM-DD`; otherwise `undated`.
    #[must_use]
    pub fn observed(&self) -> &str {
        let last = self.turns.iter().rev().find_map(|turn| turn.record.time.as_deref());
        last.and_then(|time| time.get(..10)).unwrap_or(UNDATED)
    }

    /// What the writer is given to read: the day, an empty line, and a line a turn ([`turn_line`]).
    #[must_use]
    pub fn text(&self) -> String {
        let line = |turn: &Turn<'_>| {
            let record = turn.record;
            let part = |part: &Option<String>| part.clone().unwrap_or_default();
            let speaker = label(&part(&record.speaker_display), &part(&record.speaker_id), &record.role);
            turn_line(&turn.source_id(), &speaker, &record.text)
        };
        let lines: Vec<String> = self.turns.iter().map(line).collect();
        observed_text(self.observed(), &lines)
    }
}

/// Lines of turns under the day they were said: `## Observed DAY`, an empty line, the lines.
#[must_use]
pub fn observed_text(day: &str, lines: &[String]) -> String {
    format!("## Observed {day}\n\n{}", lines.join("\n"))
}
