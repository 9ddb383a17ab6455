//! What a run is about: what the model is told at the beginning, and what it may rest claims on.

use super::limits::WriterLimits;
use super::model::Purpose;
use super::organise::Needs;
use super::outcome::Given;
use crate::ids::{SourceRef, label};
use crate::prompt::{
    Origin, ShownBlock, block_lines, organiser_message, organiser_system, quoted, sanitize, writer_message,
    writer_system,
};
use crate::text::{collapse_whitespace, is_whitespace};
use crate::turns::backfill::Part;
use crate::turns::{Batch, Turn, cut_turn_line, observed_text};
use core::fmt;
use std::collections::BTreeSet;

/// A turn, or a record, that may be cited.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OfferedTurn {
    /// Its `ref`: a source id, or `D3:7`.
    pub reference: String,
    /// What was said.
    pub content: String,
    /// Its tokens, as they were counted.
    pub tokens: u64,
}

/// What is to be written: turns, and the text that shows them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Evidence {
    text: String,
    turns: Vec<OfferedTurn>,
}

impl Evidence {
    /// Turns of a session. The text is [`Batch::text`], but of turns longer than `writer.turn-bytes` the beginning.
    #[must_use]
    pub fn of_batch(batch: &Batch<'_>, mut tokens: impl FnMut(&Turn<'_>) -> u64, limits: &WriterLimits) -> Self {
        let most = size(limits.turn_bytes);
        let mut lines = Vec::with_capacity(batch.turns.len());
        let mut turns = Vec::with_capacity(batch.turns.len());
        for turn in &batch.turns {
            let record = turn.record;
            let part = |part: &Option<String>| part.clone().unwrap_or_default();
            let speaker = label(&part(&record.speaker_display), &part(&record.speaker_id), &record.role);
            let reference = turn.source_id();
            lines.push(cut_turn_line(&reference, &speaker, &record.text, most));
            turns.push(OfferedTurn { reference, content: record.text.clone(), tokens: tokens(turn) });
        }
        Self { text: observed_text(batch.observed(), &lines), turns }
    }

    /// Evidence of a backfill, with the tokens of each.
    #[must_use]
    pub fn of_parts(parts: &[Part<'_>], mut tokens: impl FnMut(&str) -> u64, limits: &WriterLimits) -> Self {
        let most = size(limits.turn_bytes);
        let mut evidence = Self::default();
        for part in parts {
            let line = |(candidate, text): &(&crate::turns::backfill::Candidate, &str)| {
                cut_turn_line(&candidate.reference, &candidate.speaker, text, most)
            };
            let lines: Vec<String> = part.turns.iter().map(line).collect();
            if !evidence.text.is_empty() {
                evidence.text.push_str("\n\n");
            }
            evidence.text.push_str(&observed_text(part.day, &lines));
            evidence.turns.extend(part.turns.iter().map(|(candidate, text)| OfferedTurn {
                reference: candidate.reference.clone(),
                content: (*text).to_owned(),
                tokens: tokens(text),
            }));
        }
        evidence
    }

    /// The turns, in order.
    #[must_use]
    pub fn turns(&self) -> &[OfferedTurn] {
        &self.turns
    }

    /// What the writer is shown of them.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }
}

/// What there is of memory when a run begins.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ground {
    /// The workspace's revision.
    pub revision: String,
    /// The list of topics ([`crate::read::structure`]).
    pub listing: String,
    /// Of a writer, the blocks that the turns may be about, best first: a search over topics for what each turn says. Of an organiser, the
    /// blocks of what is to be put in order.
    pub blocks: Vec<ShownBlock>,
    /// The writer may add, and do nothing else: it writes for somebody who is not the owner.
    pub may_only_add: bool,
    /// A model that the caller insists on.
    pub model: Option<String>,
}

/// Whether two records, by their handles, are of sibling branches: neither was said on the way to the other.
pub type AreSiblings<'t> = Box<dyn Fn(&str, &str) -> bool + 't>;

/// What a run is about.
pub struct Task<'t> {
    pub(super) purpose: Purpose,
    pub(super) revision: String,
    pub(super) model: Option<String>,
    pub(super) system: String,
    pub(super) opening: String,
    pub(super) may_only_add: bool,
    pub(super) turns: Vec<OfferedTurn>,
    /// The blocks that are shown at the beginning.
    pub(super) blocks: Vec<ShownBlock>,
    pub(super) are_siblings: Option<AreSiblings<'t>>,
}

impl fmt::Debug for Task<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Task").field("purpose", &self.purpose).field("opening", &self.opening).finish_non_exhaustive()
    }
}

impl<'t> Task<'t> {
    /// To write what was said.
    #[must_use]
    pub fn write(origin: Origin, evidence: Evidence, ground: Ground, limits: &WriterLimits) -> Self {
        let (shown, count) = block_lines(&ground.blocks, size(limits.blocks), size(limits.block_bytes));
        let listing = quoted(&ground.listing, size(limits.listing_bytes));
        let opening = writer_message(&listing, &shown, &evidence.text);
        Self {
            purpose: Purpose::Writer,
            system: writer_system(origin, ground.may_only_add),
            opening,
            revision: ground.revision,
            model: ground.model,
            may_only_add: ground.may_only_add,
            turns: evidence.turns,
            blocks: ground.blocks.into_iter().take(count).collect(),
            are_siblings: None,
        }
    }

    /// To put topics in order. `ground.blocks` are those of the topics that need it; what of them does not fit is not shown, and the
    /// organiser may look it up.
    #[must_use]
    pub fn organise(needs: &Needs, ground: Ground, limits: &WriterLimits, are_siblings: AreSiblings<'t>) -> Self {
        let (shown, count) = block_lines(&ground.blocks, usize::MAX, size(needs.shown_bytes()));
        let listing = quoted(&ground.listing, size(limits.listing_bytes));
        let mut blocks = ground.blocks;
        blocks.truncate(count);
        let opening = organiser_message(&listing, &needs.lines(&blocks), &shown);
        Self {
            purpose: Purpose::Organiser,
            system: organiser_system(),
            opening,
            revision: ground.revision,
            model: ground.model,
            may_only_add: false,
            turns: Vec::new(),
            blocks,
            are_siblings: Some(are_siblings),
        }
    }

    pub(super) fn given(&self) -> Given {
        Given {
            records: self.turns.len() as u64,
            bytes: self.turns.iter().map(|turn| turn.content.len() as u64).sum(),
            tokens: self.turns.iter().map(|turn| turn.tokens).fold(0, u64::saturating_add),
        }
    }
}

impl OfferedTurn {
    /// There is nothing in it but recalled memory.
    pub(super) fn is_echo(&self) -> bool {
        let said = sanitize(&self.content);
        said.len() != self.content.len() && said.chars().all(is_whitespace)
    }

    /// A text stands in it word for word, but only within recalled memory.
    pub(super) fn only_recalls(&self, text: &str) -> bool {
        let said = sanitize(&self.content);
        said.len() != self.content.len()
            && collapse_whitespace(&self.content).contains(text)
            && !collapse_whitespace(&said).contains(text)
    }
}

/// Handles as evidence; those that are none are left out: no archive can hold them.
pub(super) fn handles<'h>(handles: impl Iterator<Item = &'h str>) -> BTreeSet<SourceRef> {
    handles.filter_map(|handle| SourceRef::parse(handle).ok()).collect()
}

/// A limit as a size.
pub(super) fn size(limit: u64) -> usize {
    usize::try_from(limit).unwrap_or(usize::MAX)
}
