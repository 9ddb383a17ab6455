//! Where a record stands from where a reader is: on their own line, on another branch, or on one that nobody follows.
//!
//! Knows the shape of a session or of an archive with its branches; must not know what is searched or shown.

use super::dag::{Dag, Kind};
use super::node::{NoTurn, Node};
use super::session::Session;
use crate::import::{SkipReason, message_part};
use crate::source::{Branches, Predecessor};
use std::borrow::Cow;
use std::collections::BTreeMap;

/// Where a record stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Line {
    /// Said before the reader's place, on the way to it.
    Own,
    /// Said on a branch that somebody can still go on with, but not on the way to the reader's place.
    Other,
    /// Said only where nobody goes on: taken back, or only on branches that were put away.
    Abandoned,
}

impl Line {
    /// `own`, `other` or `abandoned`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Own => "own",
            Self::Other => "other",
            Self::Abandoned => "abandoned",
        }
    }

    /// The line of a claim: the best of those of its evidence. `None` in `evidence` is a record of another conversation; a claim
    /// that also rests on such a one is not [`Line::Abandoned`]. None: the claim is on no line of this conversation.
    #[must_use]
    pub fn of_claim(evidence: impl IntoIterator<Item = Option<Self>>) -> Option<Self> {
        let (mut best, mut is_elsewhere) = (None::<Self>, false);
        for line in evidence {
            match line {
                Some(line) => best = Some(best.map_or(line, |best| best.min(line))),
                None => is_elsewhere = true,
            }
        }
        best.filter(|best| !(is_elsewhere && *best == Self::Abandoned))
    }
}

/// All records of a conversation as a reader at one of them sees them.
#[derive(Clone, Debug, Default)]
pub struct Lineage {
    /// By the message's part of the source id.
    lines: BTreeMap<String, Line>,
}

impl Lineage {
    /// Of a session, from its current node. Costs what there are nodes.
    #[must_use]
    pub fn of_session(session: &Session) -> Self {
        let mut places = vec![Line::Abandoned; session.nodes.len()];
        for &branch in session.branches() {
            let line = match (branch.current, branch.archived) {
                (true, _) => Line::Own,
                (false, true) => continue,
                (false, false) => Line::Other,
            };
            spread(&session.dag, branch.tip, line, &mut places);
        }
        let name = |node: &Node| match &node.turn {
            Ok(record) => Some(record.id.clone()),
            // It may have been archived before it was taken back.
            Err(NoTurn::LeftOut(SkipReason::Rewound)) => message_part(&node.id).map(Cow::into_owned),
            Err(_) => None,
        };
        let lines = session.nodes.iter().zip(places).filter_map(|(node, line)| Some((name(node)?, line))).collect();
        Self { lines }
    }

    /// Of an archive: its records in order, by the message's part of their ids, and what its branches file says. `head` is the
    /// record the reader is at. Nothing in an archive says that a branch was put away. None: it has no such record.
    #[must_use]
    pub fn of_archive(records: &[&str], branches: &Branches, head: &str) -> Option<Self> {
        let mut places: BTreeMap<&str, usize> = BTreeMap::new();
        for (place, record) in records.iter().enumerate() {
            places.entry(record).or_insert(place);
        }
        let mut parents: Vec<Option<usize>> = Vec::with_capacity(records.len());
        for (place, record) in records.iter().enumerate() {
            parents.push(match branches.predecessor(record) {
                Predecessor::Start => None,
                Predecessor::Before => place.checked_sub(1),
                // One that is not there says nothing (FORMAT.md, "Branches").
                Predecessor::Record(after) => places.get(after.as_str()).copied().or(place.checked_sub(1)),
            });
        }
        crate::import::cut_circles(&mut parents);
        let dag = Dag::new(vec![Kind::Row; records.len()], &parents);
        let mut lines = vec![Line::Other; records.len()];
        spread(&dag, *places.get(head)?, Line::Own, &mut lines);
        Some(Self { lines: records.iter().map(|record| (*record).to_owned()).zip(lines).collect() })
    }

    /// Where the record with this message part stands. None: the conversation has no such record.
    #[must_use]
    pub fn line(&self, message: &str) -> Option<Line> {
        self.lines.get(message).copied()
    }
}

/// Says of a node and all above it that they are on a line, where they are not on a better one. Stops where that was said
/// before: what is above was met with it.
fn spread(dag: &Dag, tip: usize, line: Line, places: &mut [Line]) {
    for place in dag.upwards(tip) {
        match places.get_mut(place) {
            Some(known) if *known > line => *known = line,
            _ => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_archive_of_one_line_is_the_readers_up_to_their_place() {
        let lineage = Lineage::of_archive(&["a", "b", "c"], &Branches::new(), "b").expect("b is there");
        let lines: Vec<_> = ["a", "b", "c", "d"].iter().map(|id| lineage.line(id)).collect();
        assert_eq!(lines, [Some(Line::Own), Some(Line::Own), Some(Line::Other), None]);
        assert!(Lineage::of_archive(&["a"], &Branches::new(), "z").is_none());
    }

    #[test]
    fn branches_of_an_archive() {
        let mut branches = Branches::new();
        branches
            .push(b"{\"id\":\"x\",\"after\":\"a\"}\n{\"id\":\"b\",\"after\":\"c\"}\n{\"id\":\"c\",\"after\":\"b\"}\n");
        // b and c come behind each other: the first of them begins something.
        let lineage = Lineage::of_archive(&["a", "b", "c", "x"], &branches.finish(), "x").expect("x is there");
        let lines: Vec<_> = ["a", "b", "c", "x"].iter().filter_map(|id| lineage.line(id)).collect();
        assert_eq!(lines, [Line::Own, Line::Other, Line::Other, Line::Own]);
    }

    #[test]
    fn claims() {
        use Line::*;
        assert_eq!(Line::of_claim([Some(Other), Some(Own), Some(Abandoned)]), Some(Own));
        assert_eq!(Line::of_claim([Some(Abandoned), Some(Other), None]), Some(Other));
        assert_eq!(Line::of_claim([Some(Abandoned), Some(Abandoned)]), Some(Abandoned));
        assert_eq!(Line::of_claim([Some(Abandoned), None]), None);
        assert_eq!(Line::of_claim([None]), None);
        assert_eq!(Line::of_claim([]), None);
    }
}
