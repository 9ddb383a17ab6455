//! What is under way in the component: a conversation, and what keeps memory in order.
//!
//! Knows the contract (`wit/turns.wit`) and how much is handed over at a time. Must not know where conversations are kept. What the
//! calls mean is the component's, and their documentation is whole there.

use std::fmt;

use super::{
    Backfilled, BatchReport, Failure, Heads, Ledger, ListedConversation, Organised, Pending, Said, Salvaged, Splice,
    Upkeep, WriteOptions, WriterState, Written,
};
use crate::bindings::types::Finding;
use crate::error::Error;
use crate::session::{Session, Underway};

impl Session {
    /// Begins to take in a conversation, by the id it has in its store; its turns are archived under `provider`.
    ///
    /// # Errors
    /// As [`Session::init`].
    pub fn open_conversation(&mut self, provider: &str, id: &str) -> Result<Conversation, Error> {
        let handle =
            self.call_turns(|turns, store, session| turns.conversation().call_open(store, session, provider, id))?;
        self.underway(handle).map(Conversation)
    }

    /// Those of the conversations that are to be looked at now, by their ids, in the order in which they are.
    ///
    /// # Errors
    /// As [`Session::init`].
    pub fn due(&mut self, conversations: &[ListedConversation]) -> Result<Vec<String>, Error> {
        self.call_turns(|turns, store, session| turns.call_due(store, session, conversations))
    }

    /// Takes note of how a write went, and that the conversation was looked at when it had this time of change; none: it is to be
    /// looked at again.
    ///
    /// # Errors
    /// As [`Session::init`].
    pub fn settle(&mut self, id: &str, updated_at: Option<f64>, outcome: Option<&Failure>) -> Result<(), Error> {
        self.call_turns(|turns, store, session| turns.call_settle(store, session, id, updated_at, outcome))
    }

    /// How writes went.
    ///
    /// # Errors
    /// As [`Session::init`].
    pub fn writer_status(&mut self) -> Result<WriterState, Error> {
        self.call_turns(|turns, store, session| turns.call_writer_status(store, session))
    }

    /// The text worth keeping of messages that are about to be discarded. Stores nothing.
    ///
    /// # Errors
    /// As [`Session::init`]. That a model failed is told in what comes back.
    pub fn salvage(&mut self, messages: &[Said], model: Option<&str>) -> Result<Salvaged, Error> {
        self.call_turns(|turns, store, session| turns.call_salvage(store, session, messages, model))
    }

    /// Begins to put memory in order.
    ///
    /// # Errors
    /// As [`Session::init`].
    pub fn organise(&mut self, what: Upkeep, model: Option<&str>) -> Result<Organising, Error> {
        let handle =
            self.call_turns(|turns, store, session| turns.organising().call_start(store, session, what, model))?;
        self.underway(handle).map(Organising)
    }

    /// Looks for trusted evidence that nothing rests on.
    ///
    /// # Errors
    /// As [`Session::init`].
    pub fn backfill(&mut self, model: Option<&str>) -> Result<Backfilling, Error> {
        let handle = self.call_turns(|turns, store, session| turns.backfilling().call_start(store, session, model))?;
        self.underway(handle).map(Backfilling)
    }

    /// Begins to mark what an older form of the other program had written; none: there is nothing of that.
    ///
    /// # Errors
    /// As [`Session::init`].
    pub fn migrate(&mut self) -> Result<Option<Migration>, Error> {
        let handle = self.call_turns(|turns, store, session| turns.migration().call_start(store, session))?;
        handle.map(|handle| self.underway(handle).map(Migration)).transpose()
    }
}

/// A conversation in the component. It belongs to the session that opened it and ends with that session's instance: after a
/// trap, a limit or a cancelled call its calls answer [`Error::Gone`].
pub struct Conversation(Underway);

impl Conversation {
    /// Takes a node's file whole. `name` is what its store calls it.
    ///
    /// # Errors
    /// As [`Session::init`], and [`Error::Gone`]. A node that is damaged is a finding of [`Conversation::finish`].
    pub fn push_file(&mut self, session: &mut Session, name: &str, data: &[u8]) -> Result<(), Error> {
        session.call_turns_on(&self.0, |turns, store, it| match std::str::from_utf8(data) {
            Ok(text) => turns.conversation().call_push_file(store, it, name, text),
            Err(_) => turns.conversation().call_push_file_bytes(store, it, name, data),
        })
    }

    /// Takes the next piece of a file of lines. A piece that is text comes over faster; it may end anywhere.
    ///
    /// # Errors
    /// As [`Conversation::push_file`].
    pub fn push_lines(&mut self, session: &mut Session, data: &[u8]) -> Result<(), Error> {
        session.call_turns_on(&self.0, |turns, store, it| match std::str::from_utf8(data) {
            Ok(text) => turns.conversation().call_push_lines(store, it, text),
            Err(_) => turns.conversation().call_push_lines_bytes(store, it, data),
        })
    }

    /// There is no more. Answers what is wrong with the conversation.
    ///
    /// # Errors
    /// As [`Conversation::push_file`].
    pub fn finish(&mut self, session: &mut Session, heads: &Heads) -> Result<Vec<Finding>, Error> {
        session.call_turns_on(&self.0, |turns, store, it| turns.conversation().call_finish(store, it, heads))
    }

    /// What is owed.
    ///
    /// # Errors
    /// As [`Conversation::push_file`].
    pub fn pending(&mut self, session: &mut Session) -> Result<Pending, Error> {
        session.call_turns_on(&self.0, |turns, store, it| turns.conversation().call_pending(store, it))
    }

    /// Marks held against evidence and citations.
    ///
    /// # Errors
    /// As [`Conversation::push_file`].
    pub fn ledger(&mut self, session: &mut Session) -> Result<Ledger, Error> {
        session.call_turns_on(&self.0, |turns, store, it| turns.conversation().call_ledger(store, it))
    }

    /// Writes the next batch. [`Drive`](super::Drive) calls it until there is no more, and marks between the calls.
    ///
    /// # Errors
    /// As [`Conversation::push_file`]; a conflict where another program wrote turns of the batch meanwhile: open the
    /// conversation anew. A model's failure is told in what comes back.
    pub fn write(&mut self, session: &mut Session, options: &WriteOptions) -> Result<Written, Error> {
        session.call_turns_on(&self.0, |turns, store, it| turns.conversation().call_write(store, it, options))
    }

    /// The mark of a node on its file as it is now; none: it has it.
    ///
    /// # Errors
    /// As [`Conversation::push_file`]; refused where the file is no whole node, or another's.
    pub fn plan_mark(&mut self, session: &mut Session, node: &str, text: &str) -> Result<Option<Splice>, Error> {
        session.call_turns_on(&self.0, |turns, store, it| turns.conversation().call_plan_mark(store, it, node, text))
    }

    /// The line that marks nodes in a file of lines; `ended`: the file ends with a line feed, or is empty.
    ///
    /// # Errors
    /// As [`Conversation::push_file`].
    pub fn mark_line(&mut self, session: &mut Session, nodes: &[String], ended: bool) -> Result<String, Error> {
        session.call_turns_on(&self.0, |turns, store, it| turns.conversation().call_mark_line(store, it, nodes, ended))
    }

    /// These nodes were marked in their store.
    ///
    /// # Errors
    /// As [`Conversation::push_file`].
    pub fn marked(&mut self, session: &mut Session, nodes: &[String]) -> Result<(), Error> {
        session.call_turns_on(&self.0, |turns, store, it| turns.conversation().call_marked(store, it, nodes))
    }
}

impl fmt::Debug for Conversation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Conversation").finish_non_exhaustive()
    }
}

/// Memory being put in order.
pub struct Organising(Underway);

impl Organising {
    /// Goes on with the next group of topics.
    ///
    /// # Errors
    /// As [`Conversation::push_file`]. A model's failure is told in what comes back.
    pub fn step(&mut self, session: &mut Session) -> Result<Organised, Error> {
        session.call_turns_on(&self.0, |turns, store, it| turns.organising().call_step(store, it))
    }
}

impl fmt::Debug for Organising {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Organising").finish_non_exhaustive()
    }
}

/// Evidence that nothing rests on, being written into topics.
pub struct Backfilling(Underway);

impl Backfilling {
    /// What there is to do, without doing it.
    ///
    /// # Errors
    /// As [`Conversation::push_file`].
    pub fn outlook(&mut self, session: &mut Session) -> Result<Backfilled, Error> {
        session.call_turns_on(&self.0, |turns, store, it| turns.backfilling().call_outlook(store, it))
    }

    /// Writes the next batch.
    ///
    /// # Errors
    /// As [`Conversation::push_file`]. A model's failure is told in what comes back.
    pub fn step(&mut self, session: &mut Session) -> Result<Backfilled, Error> {
        session.call_turns_on(&self.0, |turns, store, it| turns.backfilling().call_step(store, it))
    }
}

impl fmt::Debug for Backfilling {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Backfilling").finish_non_exhaustive()
    }
}

/// Conversations of an older form of the other program being marked.
pub struct Migration(Underway);

impl Migration {
    /// The nodes of a conversation to mark in its store.
    ///
    /// # Errors
    /// As [`Conversation::push_file`].
    pub fn nodes(&mut self, session: &mut Session, conversation: &Conversation) -> Result<Vec<String>, Error> {
        if !self.0.is_beside(&conversation.0) {
            return Err(Error::Gone);
        }
        let of = conversation.0.handle;
        session.call_turns_on(&self.0, |turns, store, it| turns.migration().call_nodes(store, it, of))
    }

    /// Every conversation's marks are made: the cursors go.
    ///
    /// # Errors
    /// As [`Conversation::push_file`].
    pub fn finish(&mut self, session: &mut Session) -> Result<(), Error> {
        session.call_turns_on(&self.0, |turns, store, it| turns.migration().call_finish(store, it))
    }
}

impl fmt::Debug for Migration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Migration").finish_non_exhaustive()
    }
}

impl BatchReport {
    /// Turns, or pieces of evidence, that topics cite now.
    #[must_use]
    pub fn cited(&self) -> usize {
        self.evidence.len().saturating_sub(self.uncited.len())
    }
}
