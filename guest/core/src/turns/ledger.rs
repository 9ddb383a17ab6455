//! The ledger: which turns are owed, as a question to what there is.
//!
//! Nothing is kept of it. What archives hold, what topics cite and how the session hangs together say at any time which turns
//! are written; a paragraph that is deleted makes its turns owed again by being gone. Must not know how any of that is read.

use super::dag::{at, set};
use super::session::{Session, Turn};
use crate::digest::Digest;
use crate::ids::{TopicPath, WorkspaceId};
use crate::table::{TopicEntry, TopicTable};
use std::collections::{BTreeMap, BTreeSet};

/// What topics cite: the evidence of every sound block, those of topics that are faulty otherwise included (D07).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Citations {
    cited: BTreeSet<String>,
}

impl Citations {
    /// By what is known of the topics.
    #[must_use]
    pub fn of(topics: &TopicTable) -> Self {
        let mut cited = BTreeSet::new();
        for (_, topic) in topics.entries() {
            cited.extend(cited_in(&topic).into_iter().map(str::to_owned));
        }
        Self { cited }
    }

    /// Whether a block rests on the evidence with this source id or reference.
    #[must_use]
    pub fn is_cited(&self, reference: &str) -> bool {
        self.cited.contains(reference)
    }

    /// How many pieces of evidence are cited.
    #[must_use]
    pub fn len(&self) -> usize {
        self.cited.len()
    }

    /// Whether nothing is cited.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.cited.is_empty()
    }
}

impl<S: Into<String>> FromIterator<S> for Citations {
    fn from_iter<I: IntoIterator<Item = S>>(references: I) -> Self {
        Self { cited: references.into_iter().map(Into::into).collect() }
    }
}

fn cited_in<'b>(topic: &TopicEntry<'b>) -> BTreeSet<&'b str> {
    let sound = topic.blocks().filter(|block| block.is_sound());
    let mut cited = BTreeSet::new();
    sound.for_each(|block| cited.extend(block.refs()));
    cited
}

/// Topics of which the table knows another content than they have, or none: as long as there is one, citations may be missing
/// or gone. `topics` are those there are, with the digests of their files. In order.
#[must_use]
pub fn stale_topics(table: &TopicTable, topics: &BTreeMap<TopicPath, Digest>) -> Vec<TopicPath> {
    let changed = topics.iter().filter(|(path, digest)| !table.knows(path, digest)).map(|(path, _)| path.clone());
    let gone = table.paths().filter(|path| !topics.contains_key(path));
    let stale: BTreeSet<TopicPath> = changed.chain(gone).collect();
    stale.into_iter().collect()
}

/// A turn in the ledger.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LedgerEntry<'s> {
    /// The turn.
    pub turn: Turn<'s>,
    /// Its source id.
    pub source_id: String,
    /// An archive holds it. One that is marked and not archived was lost, or was never this workspace's.
    pub archived: bool,
}

/// The turns of a session that are not both marked and cited, in four classes, each in the order of the nodes. A turn is in at
/// most one. One that only branches have which were put away, neither marked nor cited, is in none: nobody owes it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ledger<'s> {
    /// Not marked, not cited, and a live branch owes it: the next writes write it.
    pub unmarked: Vec<LedgerEntry<'s>>,
    /// Marked, and nothing cites it: the writer left it out, or what cited it was deleted.
    pub marked_uncited: Vec<LedgerEntry<'s>>,
    /// Not marked, not cited, and a later turn is marked, so that no write reaches it (D24). Written on request:
    /// [`Session::chosen`].
    pub stranded: Vec<LedgerEntry<'s>>,
    /// Cited, and not marked: somebody cited it by hand, or whoever wrote it died before the mark and left no receipt. A mark
    /// on it alone would strand what is older: it is written in its turn, if a branch owes it.
    pub cited_unmarked: Vec<LedgerEntry<'s>>,
}

impl Ledger<'_> {
    /// How many turns nothing rests on, and should: all but those that are cited and only lack their mark.
    #[must_use]
    pub fn owed(&self) -> u64 {
        (self.unmarked.len() + self.marked_uncited.len() + self.stranded.len()) as u64
    }
}

impl Session {
    /// The ledger of this session. `is_archived` tells whether an archive holds the record with a source id. Costs what there
    /// are nodes, and a look-up of each turn in what is cited.
    #[must_use]
    pub fn ledger(
        &self,
        workspace: WorkspaceId,
        citations: &Citations,
        is_archived: &dyn Fn(&str) -> bool,
    ) -> Ledger<'_> {
        let text = workspace.to_string();
        let mut has_later_mark = vec![false; self.nodes.len()];
        for place in self.dag.order().rev() {
            let is_later = self.is_marked(place, &text) || at(&has_later_mark, place) == Some(true);
            if let Some(above) = self.dag.above(place).filter(|_| is_later) {
                set(&mut has_later_mark, above, true);
            }
        }
        let owed: BTreeSet<&str> = self
            .owed(workspace)
            .segments()
            .iter()
            .flat_map(|segment| segment.turns.iter().map(|turn| turn.node.id.as_str()))
            .collect();
        let mut ledger = Ledger::default();
        for place in 0..self.nodes.len() {
            let Some(turn) = self.turn_at(place) else { continue };
            let source_id = turn.source_id();
            let is_stranded = at(&has_later_mark, place) == Some(true);
            let class = match (self.is_marked(place, &text), citations.is_cited(&source_id)) {
                (true, true) => continue,
                (true, false) => &mut ledger.marked_uncited,
                (false, true) => &mut ledger.cited_unmarked,
                (false, false) if owed.contains(turn.node.id.as_str()) => &mut ledger.unmarked,
                (false, false) if is_stranded => &mut ledger.stranded,
                (false, false) => continue,
            };
            let archived = is_archived(&source_id);
            class.push(LedgerEntry { turn, source_id, archived });
        }
        ledger
    }
}
