//! All topics of a workspace together.

use super::block::{Block, Unit};
use super::check::Check;
use super::fault::Fault;
use std::collections::BTreeSet;

/// The topics of a workspace, in the order of their paths, with ids told apart: of two blocks with one id, the first
/// counts.
#[derive(Clone, Debug)]
pub struct Tree<'a> {
    topics: Vec<Check<'a>>,
}

impl<'a> Tree<'a> {
    /// Of these topics, given in any order.
    pub fn new(mut topics: Vec<Check<'a>>) -> Self {
        topics.sort_by(|a, b| a.path().cmp(b.path()));
        let mut known: BTreeSet<&'a str> = BTreeSet::new();
        for topic in &mut topics {
            let here: Vec<&'a str> = topic.names().map(|(_, id)| id.as_str()).collect();
            topic.yield_to(&|id| known.contains(id));
            known.extend(here);
        }
        Self { topics }
    }

    /// The topics, in order.
    pub fn topics(&self) -> &[Check<'a>] {
        &self.topics
    }

    /// Every fault of every topic, in order.
    pub fn faults(&self) -> impl Iterator<Item = (&Check<'a>, &Fault)> {
        self.topics.iter().flat_map(|topic| topic.faults().iter().map(move |fault| (topic, fault)))
    }

    /// The first fault for which a strict reading refuses the topics.
    pub fn first_strict(&self) -> Option<(&Check<'a>, &Fault)> {
        self.topics.iter().find_map(|topic| topic.first_strict().map(|fault| (topic, fault)))
    }

    /// The sound blocks of all topics, in order.
    pub fn blocks(&self) -> impl Iterator<Item = Block<'_, 'a>> {
        self.topics.iter().flat_map(Check::blocks)
    }

    /// The same as values, numbered in order.
    pub fn units(&self) -> Vec<Unit> {
        let mut units = Vec::new();
        for block in self.blocks() {
            let more = block.units(units.len());
            units.extend(more);
        }
        units
    }
}
