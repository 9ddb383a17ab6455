//! What a run wants next, and what it is told.

use super::model::Request;
use super::outcome::Outcome;
use crate::ids::{SourceRef, TopicPath};
use crate::prompt::ShownBlock;
use crate::turns::WriterFailure;
use crate::update;
use std::collections::BTreeSet;

/// What a run wants next.
#[derive(Clone, Debug)]
pub enum Step {
    /// To ask the model; answered by [`super::Writer::replied`].
    Ask(Request),
    /// To read of memory; answered by [`super::Writer::answered`].
    Read(Read),
    /// To search the claims of topics, and nothing else; answered by [`super::Writer::answered`].
    Search(Search),
    /// To plan changes and commit them; answered by [`super::Writer::submitted`].
    Submit(Submission),
    /// Nothing any more.
    Done(Outcome),
}

/// What of a topic is read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Read {
    /// A topic, or the section under one of its headings.
    Topic {
        /// Its path.
        path: TopicPath,
        /// The heading's text (FORMAT.md, "Parts of files"); none: all of it.
        heading: Option<String>,
    },
    /// The block with this id.
    Block(String),
}

/// What is searched for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Search {
    /// The words.
    pub query: String,
    /// Hits at most.
    pub top_k: u64,
}

/// What a tool found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// A topic, a section or a block as it stands.
    Text {
        /// The topic's path.
        path: String,
        /// Its text; it is cut to `writer.answer-bytes`.
        text: String,
    },
    /// Blocks, best first; those behind `writer.answer-bytes` are left out.
    Blocks(Vec<ShownBlock>),
    /// There is no such thing, or it cannot be read; in words that say what to do.
    Nothing(String),
    /// Memory cannot be read at all: the run ends.
    Failed(WriterFailure, String),
}

/// Changes to be planned as an update and committed, all of them or none.
#[derive(Clone, Debug)]
pub struct Submission {
    /// The update, on operations on records.
    pub request: update::Request,
    /// What blocks may newly rest on ([`update::Caller::offered`]).
    pub offered: BTreeSet<SourceRef>,
    /// Of the turns that were given those that the update cites, in their order.
    pub cited: Vec<String>,
    /// Ids of blocks that are rewritten, deleted or moved.
    pub touched: Vec<String>,
}

/// What became of a [`Submission`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Submitted {
    /// It is committed.
    Committed {
        /// The revision after it.
        revision: String,
        /// Topics that have changed. None: the plan was empty, and there was nothing to commit.
        files: Vec<String>,
    },
    /// It breaks rules, for these reasons.
    Refused(Vec<update::Fault>),
    /// The workspace has another revision by now ([`update::Rejection::Stale`], or a commit that came too late).
    Stale {
        /// The revision now.
        revision: String,
        /// A block of [`Submission::touched`] stands in a topic that has changed since, or may do so. The model has to look again:
        /// it would undo what somebody else has just written.
        are_touched_changed: bool,
    },
    /// It could not be committed: the run ends.
    Failed(WriterFailure, String),
}
