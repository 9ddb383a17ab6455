//! Where conversations are kept: the trait [`SessionStore`], and what passes through it.
//!
//! Knows that conversations have ids, nodes and marks. Must not know how a node is spelt, what is owed, or when something is
//! written: a store hands over what it has, and changes what it is told to change.

use std::path::{Path, PathBuf};

use super::{Heads, Splice};
use crate::error::Error;

/// How much a store of this crate reads and waits, at most. What is beyond is that conversation's trouble, with the limit's name.
#[derive(Clone, Debug)]
pub struct StoreLimits {
    /// `conversations`: of one store.
    pub conversations: usize,
    /// `nodes`: files of one conversation.
    pub nodes: usize,
    /// `node-bytes`: bytes of a node's file.
    pub node_bytes: u64,
    /// `conversation-bytes`: bytes of all files of one conversation.
    pub conversation_bytes: u64,
    /// Milliseconds that a mark waits for others who mark the same conversation.
    pub wait_ms: u32,
}

impl Default for StoreLimits {
    fn default() -> Self {
        Self {
            conversations: 1_000_000,
            nodes: 1_000_000,
            node_bytes: 64 << 20,
            conversation_bytes: 8 << 30,
            wait_ms: 10_000,
        }
    }
}

/// A conversation as its store lists it.
#[derive(Clone, Debug, PartialEq)]
pub struct Listed {
    /// Its id, which is a part of the ids of its turns in memory. It never changes.
    pub id: String,
    /// When something was last said, in seconds since 1970. A mark does not change it, and nothing of what was said is read to
    /// find it out.
    pub updated_at: f64,
    /// Somebody told the store that it has stopped for now.
    pub told: bool,
}

/// What a store has.
#[derive(Debug, Default)]
pub struct Listing {
    /// In the order of their ids.
    pub conversations: Vec<Listed>,
    /// What looks like a conversation and cannot be one.
    pub faults: Vec<StoreFault>,
}

/// Why a conversation, or all of them, cannot be read or marked. Nothing was changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}{message}", path.as_deref().map(|path| format!("{}: ", path.display())).unwrap_or_default())]
pub struct StoreFault {
    /// The conversation; none: the store as a whole.
    pub session: Option<String>,
    /// The file it is about; none where files are not what the store has.
    pub path: Option<PathBuf>,
    /// What is wrong, and what to do, for people.
    pub message: String,
    /// Another try may help, though nobody does anything.
    pub retryable: bool,
}

impl StoreFault {
    /// What is wrong with `path`, whoever tries again.
    #[must_use]
    pub fn new(path: &Path, message: impl Into<String>) -> Self {
        Self { session: None, path: Some(path.to_owned()), message: message.into(), retryable: false }
    }

    /// The conversation it is about.
    #[must_use]
    pub fn of(mut self, session: &str) -> Self {
        self.session = Some(session.to_owned());
        self
    }

    /// Another try may help.
    #[must_use]
    pub fn passing(mut self) -> Self {
        self.retryable = true;
        self
    }
}

/// Why a store did not do what it was asked for.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// It cannot.
    #[error(transparent)]
    Store(#[from] StoreFault),
    /// Who was given the nodes, or plans the marks, failed.
    #[error(transparent)]
    Session(#[from] Error),
}

/// Takes a conversation's nodes from its store. An error is passed on by the store, which then stops.
pub trait NodeSink {
    /// A node's file, whole. `name` is for people.
    ///
    /// # Errors
    /// Nobody takes more.
    fn file(&mut self, name: &str, data: &[u8]) -> Result<(), Error>;

    /// The next piece of a file of lines, of any length.
    ///
    /// # Errors
    /// Nobody takes more.
    fn lines(&mut self, data: &[u8]) -> Result<(), Error>;
}

/// Says how a mark is made. An error is passed on by the store, which then stops; a [`Plan::Refused`] is one node's trouble.
pub trait MarkPlanner {
    /// For a node with a file of its own, which reads `text` now.
    ///
    /// # Errors
    /// Nothing can be planned any more.
    fn splice(&mut self, node: &str, text: &str) -> Result<Plan, Error>;

    /// For nodes in a file of lines: what is appended. `ended`: the file ends with a line feed, or is empty.
    ///
    /// # Errors
    /// Nothing can be planned any more.
    fn line(&mut self, nodes: &[String], ended: bool) -> Result<String, Error>;
}

/// What is to be done to a node's file.
#[derive(Clone, Debug, PartialEq)]
pub enum Plan {
    /// These bytes give way to that text.
    Splice(Splice),
    /// Nothing: it has the mark.
    Marked,
    /// It is not this node's, or no whole node: why, for people.
    Refused(String),
}

impl Splice {
    /// `text` with the splice made; none where it does not fit `text`.
    #[must_use]
    pub fn apply(&self, text: &str) -> Option<String> {
        let (start, end) = (usize::try_from(self.start).ok()?, usize::try_from(self.end).ok()?);
        if start > end {
            return None;
        }
        let (head, tail) = (text.get(..start)?, text.get(end..)?);
        Some([head, &self.insert, tail].concat())
    }
}

/// What came of marking.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Marked {
    /// Nodes that have the mark now, and keep it over a loss of power.
    pub done: Vec<String>,
    /// Nodes that do not, each with the reason.
    pub left: Vec<(String, StoreFault)>,
}

/// A place where the program that holds conversations keeps them.
///
/// Two are here: [`OpenProgramSessions`](super::OpenProgramSessions) and [`JsonlSessions`](super::JsonlSessions). Another is three
/// functions: what there is, what one conversation has, and what is marked. Calls may come from several programs at once.
pub trait SessionStore: Send + Sync {
    /// What there is. Costs no reading of what was said.
    ///
    /// # Errors
    /// The store as a whole cannot be read. A single conversation's trouble is among [`Listing::faults`].
    fn list(&self) -> Result<Listing, StoreFault>;

    /// Hands over all nodes of a conversation, either as files or as pieces of one file of lines, and tells which node the
    /// conversation is at, if the store knows. Nodes come in the same order each time, for those that do not say their place.
    ///
    /// # Errors
    /// All of it could not be read: what was handed over is not to be used. A node that reads and makes no sense is no error:
    /// whoever takes it says so.
    fn read(&self, id: &str, sink: &mut dyn NodeSink) -> Result<Heads, StoreError>;

    /// Marks nodes of a conversation, as `planner` says, so that they stay marked over a loss of power. Nothing else of the
    /// conversation changes, its time of change included; what another program has changed meanwhile stays theirs, and that node is
    /// left. Marking what is marked is no error.
    ///
    /// # Errors
    /// Nothing more could be marked. Some nodes may be.
    fn mark(&self, id: &str, nodes: &[String], planner: &mut dyn MarkPlanner) -> Result<Marked, StoreError>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_splice_fits_or_is_none() {
        let splice = |start, end| Splice { start, end, insert: "é".to_owned() };
        assert_eq!(splice(1, 3).apply("abcd").as_deref(), Some("aéd"));
        assert_eq!(splice(4, 4).apply("abcd").as_deref(), Some("abcdé"));
        for (start, end) in [(3, 1), (0, 5), (5, 5), (u64::MAX, u64::MAX)] {
            assert_eq!(splice(start, end).apply("abcd"), None);
        }
        assert_eq!(splice(1, 1).apply("é"), None, "not within a character");
    }
}
