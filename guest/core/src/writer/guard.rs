//! What a model's changes are held to, besides the rules of every update.
//!
//! An update is judged by what topics are. Here it is asked what a model must not do though topics could be so: rewrite what it has not
//! seen, take recalled memory for something new, and, when it puts things in order, lose or mix up what is known.

use super::facts::numbers;
use super::model::Purpose;
use super::outcome::{Refusal, words};
use super::task::{OfferedTurn, Task};
use crate::prompt::ShownBlock;
use crate::text::collapse_whitespace;
use crate::update::{Code, ProposedOperation, ProposedRecord};
use std::collections::{BTreeMap, BTreeSet};

words! {
    /// Why changes of a model are refused, besides the reasons of updates (FORMAT.md, "Reasons of updates").
    GuardReason {
        /// It was not read in this run.
        BlockNotSeen = "block-not-seen",
            "this block was not shown in this run, or has changed since. Read it, by its id, before you change it";
        /// Nothing but recalled memory.
        RecalledMemory = "recalled-memory",
            "this says what a turn holds only as recalled memory, which is no evidence. Leave it out";
        /// Records of sibling branches.
        MergesSiblings = "merges-siblings",
            "this would rest on turns of sibling branches that no block rests on together. Leave the blocks apart";
        /// What a block rested on would be lost.
        EvidenceDropped = "evidence-dropped",
            "nothing would rest any more on what this block rests on. Give all its source_refs to the block that says it now";
        /// A number would be lost.
        FactDropped = "fact-dropped",
            "a number in this block would be lost. Say it in the block that takes its place, or leave both as they are";
    }
}

impl GuardReason {
    fn at(self, place: String, subject: &str) -> Refusal {
        Refusal {
            code: Code::CommitRejected.as_str(),
            reason: self.as_str(),
            path: None,
            line: None,
            place: Some(place),
            subject: Some(subject.to_owned()),
            message: self.what().to_owned(),
        }
    }
}

/// Blocks that the model was shown, as far as is known of them.
#[derive(Clone, Debug, Default)]
pub(super) struct Seen {
    /// Ids of blocks that were shown, in whatever form.
    ids: BTreeSet<String>,
    /// Blocks of which it is known what they rest on, by their own ids.
    blocks: BTreeMap<String, ShownBlock>,
}

impl Seen {
    pub(super) fn block(&mut self, block: &ShownBlock) {
        self.ids.extend(block.ids().map(str::to_owned));
        self.blocks.insert(block.id.clone(), block.clone());
    }

    /// A text of a topic: ids stand at the ends of lines, behind `^`.
    pub(super) fn text(&mut self, text: &str) {
        let ends = text.lines().flat_map(|line| {
            line.split_whitespace().rev().map_while(|word| word.strip_prefix('^')).filter(|id| !id.is_empty())
        });
        self.ids.extend(ends.map(str::to_owned));
    }

    /// They have changed, or may have.
    pub(super) fn forget(&mut self, ids: &[String]) {
        for id in ids {
            self.ids.remove(id);
            self.blocks.retain(|_, block| block.ids().all(|known| known != id));
        }
    }

    fn known(&self, id: &str) -> Option<&ShownBlock> {
        self.blocks.get(id).or_else(|| self.blocks.values().find(|block| block.ids().any(|known| known == id)))
    }

    /// All that the blocks rest on that were shown.
    pub(super) fn sources(&self) -> impl Iterator<Item = &str> {
        self.blocks.values().flat_map(|block| &block.sources).map(String::as_str)
    }
}

/// What an operation rewrites, deletes or moves.
pub(super) fn touched(operation: &ProposedOperation) -> &[String] {
    match operation {
        ProposedOperation::Create { .. } => &[],
        ProposedOperation::Update { id, .. } | ProposedOperation::Delete { id } => core::slice::from_ref(id),
        ProposedOperation::Move { ids, .. } => ids,
    }
}

/// What an operation says anew.
pub(super) fn said(operation: &ProposedOperation) -> Option<&ProposedRecord> {
    match operation {
        ProposedOperation::Create { record, .. } | ProposedOperation::Update { record, .. } => Some(record),
        ProposedOperation::Delete { .. } | ProposedOperation::Move { .. } => None,
    }
}

/// Handles of what a record rests on.
pub(super) fn rests_on(record: &ProposedRecord) -> impl Iterator<Item = &str> {
    record.sources.iter().map(|reference| reference.source.trim())
}

/// Every reason against the operations of a run.
pub(super) fn refusals(task: &Task<'_>, seen: &Seen, operations: &[ProposedOperation]) -> Vec<Refusal> {
    let mut found = Vec::new();
    for (at, operation) in operations.iter().enumerate() {
        for id in touched(operation) {
            let id = id.trim();
            // To merge blocks, it has to be known what they rest on.
            let is_rewritten = !matches!(operation, ProposedOperation::Move { .. });
            let is_enough = match task.purpose {
                Purpose::Organiser if is_rewritten => seen.known(id).is_some(),
                Purpose::Organiser | Purpose::Writer => seen.ids.contains(id),
            };
            if !is_enough {
                found.push(GuardReason::BlockNotSeen.at(format!("changes[{at}]"), id));
            }
        }
    }
    match task.purpose {
        Purpose::Writer => recalled(&task.turns, operations, &mut found),
        Purpose::Organiser => {
            mixed(task, seen, operations, &mut found);
            lost(seen, operations, &mut found);
        }
    }
    found
}

/// Operations that take recalled memory for evidence.
fn recalled(turns: &[OfferedTurn], operations: &[ProposedOperation], found: &mut Vec<Refusal>) {
    let by_reference: BTreeMap<&str, &OfferedTurn> = turns.iter().map(|turn| (turn.reference.as_str(), turn)).collect();
    for (at, operation) in operations.iter().enumerate() {
        let Some(record) = said(operation) else { continue };
        let cited: Vec<&OfferedTurn> =
            rests_on(record).filter_map(|handle| by_reference.get(handle).copied()).collect();
        for echo in cited.iter().filter(|turn| turn.is_echo()) {
            found.push(GuardReason::RecalledMemory.at(format!("changes[{at}].source_refs"), &echo.reference));
        }
        let content = collapse_whitespace(&record.content);
        if matches!(operation, ProposedOperation::Create { .. })
            && !cited.is_empty()
            && cited.iter().all(|turn| !turn.is_echo() && turn.only_recalls(&content))
        {
            let first = cited.first().map_or("", |turn| turn.reference.as_str());
            found.push(GuardReason::RecalledMemory.at(format!("changes[{at}].content"), first));
        }
    }
}

/// Records that would rest on sibling branches, where no block does already.
fn mixed(task: &Task<'_>, seen: &Seen, operations: &[ProposedOperation], found: &mut Vec<Refusal>) {
    let Some(are_siblings) = &task.are_siblings else { return };
    let shown: BTreeSet<&str> = seen.sources().collect();
    for (at, operation) in operations.iter().enumerate() {
        let Some(record) = said(operation) else { continue };
        // Others are refused by the update, which asks no questions about pairs.
        let handles: Vec<&str> =
            rests_on(record).filter(|handle| shown.contains(handle)).collect::<BTreeSet<_>>().into_iter().collect();
        let pair = handles.iter().enumerate().find_map(|(place, a)| {
            let b = handles.iter().skip(place + 1).find(|b| are_siblings(a, b) && !together(seen, a, b))?;
            Some(format!("{a}, {b}"))
        });
        if let Some(pair) = pair {
            found.push(GuardReason::MergesSiblings.at(format!("changes[{at}].source_refs"), &pair));
        }
    }
}

/// Whether a block rests on both already.
fn together(seen: &Seen, a: &str, b: &str) -> bool {
    let rests = |block: &ShownBlock, handle: &str| block.sources.iter().any(|source| source == handle);
    seen.blocks.values().any(|block| rests(block, a) && rests(block, b))
}

/// What would say or rest on something after the changes.
struct Survivor<'s> {
    text: &'s str,
    sources: BTreeSet<&'s str>,
}

/// Evidence and numbers of rewritten and deleted blocks that nothing would have any more.
fn lost(seen: &Seen, operations: &[ProposedOperation], found: &mut Vec<Refusal>) {
    let gone: BTreeMap<&str, usize> = operations
        .iter()
        .enumerate()
        .filter(|(_, operation)| !matches!(operation, ProposedOperation::Move { .. }))
        .flat_map(|(at, operation)| touched(operation).iter().map(move |id| (id.trim(), at)))
        .filter_map(|(id, at)| Some((seen.known(id)?.id.as_str(), at)))
        .collect();
    let new = operations.iter().filter_map(said);
    let new = new.map(|record| Survivor { text: &record.content, sources: rests_on(record).collect() });
    let old = seen.blocks.values().filter(|block| !gone.contains_key(block.id.as_str()));
    let old =
        old.map(|block| Survivor { text: &block.text, sources: block.sources.iter().map(String::as_str).collect() });
    let survivors: Vec<Survivor<'_>> = new.chain(old).collect();
    for (id, at) in gone {
        let Some(block) = seen.known(id) else { continue };
        let own: BTreeSet<&str> = block.sources.iter().map(String::as_str).collect();
        let heirs: Vec<&Survivor<'_>> = survivors.iter().filter(|one| !one.sources.is_disjoint(&own)).collect();
        let is_dropped = |source: &&&str| !heirs.iter().any(|heir| heir.sources.contains(**source));
        if let Some(source) = own.iter().find(is_dropped) {
            found.push(GuardReason::EvidenceDropped.at(format!("changes[{at}]"), &format!("{id}, {source}")));
            // What it says goes with what it rests on, and comes back with it.
            continue;
        }
        let said: BTreeSet<String> = heirs.iter().flat_map(|heir| numbers(heir.text)).collect();
        if let Some(number) = numbers(&block.text).difference(&said).next() {
            found.push(GuardReason::FactDropped.at(format!("changes[{at}]"), &format!("{id}, {number}")));
        }
    }
}
