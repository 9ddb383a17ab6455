//! One conversation from its store to memory: read, written batch by batch, marked, settled.
//!
//! Knows the order of the steps and who may try again. Must not know what a node, a turn or a mark is.
//!
//! Dying between any two steps is safe: evidence and topics are commits of the component, the topics' commit carries the ids of what
//! it wrote, and what lacks its mark is marked by the next run and not written again.

use std::fmt;
use std::path::Path;

use super::lock::{WRITER_LOCK, WriterLock};
use super::store::{Listed, MarkPlanner, Marked, NodeSink, Plan, SessionStore, StoreError, StoreFault};
use super::{BatchReport, Conversation, Failure, Heads, Organised, Splice, Trigger, Upkeep, WriteOptions};
use crate::bindings::types::{self, Finding};
use crate::error::Error;
use crate::lock::LockError;
use crate::observer::Level;
use crate::session::Session;

/// The code of a conversation that its store does not hand over, or does not mark (FORMAT.md, "Codes of writers").
pub const SESSION_NODES_UNAVAILABLE: &str = "SESSION_NODES_UNAVAILABLE";
const PRECONDITION_FAILED: &str = "WRITER_PRECONDITION_FAILED";
const CONCURRENT_UPDATE: &str = "CONCURRENT_UPDATE";
const INVALID_ARGUMENT: &str = "INVALID_ARGUMENT";
const FAILURE_UNKNOWN: &str = "WRITER_FAILURE_UNKNOWN";

/// The component's reason where a node's file cannot take its mark.
const UNMARKABLE: &str = "unmarkable-node";
/// The event of a look at a conversation.
const EVENT: &str = "writer";
/// So often in a row a call may say that there is more and bring nothing.
const IDLE_MAX: u32 = 16;
/// Nodes whose trouble is told in words.
const TOLD_MAX: usize = 3;

/// How a conversation is written.
#[derive(Clone, Debug)]
pub struct DriveOptions {
    /// Under which its turns are archived: a part of their ids.
    pub provider: String,
    /// What is written.
    pub trigger: Trigger,
    /// These nodes alone, whether a branch owes them or not; empty: what is owed.
    pub only: Vec<String>,
    /// Instead of the configured model.
    pub model: Option<String>,
    /// Instead of what the store says of the conversation's head and of branches that were put away; an empty list is what the
    /// store says.
    pub heads: Heads,
    /// Milliseconds to wait for others who write turns into this workspace.
    pub wait_ms: u32,
    /// How often a conversation is read anew because another program wrote turns of it meanwhile.
    pub tries: u32,
    /// Whether memory is put in order where a batch asks for it.
    pub upkeep: bool,
}

impl Default for DriveOptions {
    fn default() -> Self {
        Self {
            provider: "openprogram".to_owned(),
            trigger: Trigger::Due,
            only: Vec::new(),
            model: None,
            heads: Heads { current: None, archived: Vec::new() },
            wait_ms: 10_000,
            tries: 5,
            upkeep: true,
        }
    }
}

/// How it ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ended {
    /// What was asked for is done, or it failed ([`Outcome::failure`]).
    #[default]
    Done,
    /// Somebody asked to stop. What was done stays, the rest is owed as before.
    Stopped,
}

/// What came of a conversation.
#[derive(Debug, Default)]
pub struct Outcome {
    /// The conversation.
    pub session: String,
    /// What was written, batch by batch.
    pub batches: Vec<BatchReport>,
    /// Nodes that were marked.
    pub marked: u64,
    /// What is wrong with the conversation.
    pub findings: Vec<Finding>,
    /// What putting memory in order came to, where a batch asked for it. Its failures are not the conversation's.
    pub upkeep: Vec<Organised>,
    /// How it ended.
    pub ended: Ended,
    /// Why not everything was done that was asked for. None is success, also if there was nothing to do.
    pub failure: Option<Failure>,
    /// The error behind the failure, where it was one.
    pub error: Option<Error>,
}

impl Outcome {
    /// Nothing was written or marked, nothing is wrong, and nobody has to be told.
    #[must_use]
    pub fn is_silent(&self) -> bool {
        self.batches.is_empty() && self.marked == 0 && self.failure.is_none() && self.ended == Ended::Done
    }
}

/// Writes conversations of a store into the memory of a session.
pub struct Drive<'a> {
    session: &'a mut Session,
    store: &'a dyn SessionStore,
    workspace: Option<&'a Path>,
    stop: &'a dyn Fn() -> bool,
}

impl<'a> Drive<'a> {
    /// For these. `workspace` is the workspace's directory, where the lock of writers is; none for a medium that is none: the
    /// program then sees to it by itself that one writer works at a time.
    #[must_use]
    pub fn new(session: &'a mut Session, store: &'a dyn SessionStore, workspace: Option<&'a Path>) -> Self {
        Self { session, store, workspace, stop: &|| false }
    }

    /// With somebody who is asked between the steps whether to stop. To end a step that is under way as well, cancel the session's
    /// call ([`Session::canceller`]).
    #[must_use]
    pub fn stop(mut self, stop: &'a dyn Fn() -> bool) -> Self {
        self.stop = stop;
        self
    }

    /// Writes what a conversation owes, marks what is written, and takes note of how it went. Tells the session's observer of it.
    pub fn write(&mut self, of: &Listed, options: &DriveOptions) -> Outcome {
        let mut outcome = Outcome { session: of.id.clone(), ..Outcome::default() };
        let mut wanted = None;
        let left = match self.locked(options) {
            Ok(lock) => {
                let result = self.tried(&of.id, options, &mut outcome, &mut wanted);
                drop(lock);
                result
            }
            Err(trouble) => Err(trouble),
        };
        let left = match left {
            Ok(left) => left,
            Err(Trouble::Stop) => {
                outcome.ended = Ended::Stopped;
                None
            }
            Err(Trouble::Failed(failure, error)) => {
                outcome.failure = Some(failure);
                outcome.error = error.map(|error| *error);
                None
            }
        };
        self.settle(of, options, left, &mut outcome);
        self.tell(&outcome);
        if let Some(what) = wanted.filter(|_| options.upkeep && outcome.ended == Ended::Done) {
            // A workspace that was just written to is in order enough to be left as it is.
            match organise(self.session, what, options.model.as_deref(), self.stop, &mut |step| {
                outcome.upkeep.push(step.clone());
            }) {
                Ok(ended) => outcome.ended = ended,
                Err(error) => {
                    let message = format!("memory was not put in order after a write: {error}");
                    self.session.observer().log(Level::Warn, &message);
                }
            }
        }
        outcome
    }

    fn locked(&mut self, options: &DriveOptions) -> Result<Option<WriterLock>, Trouble> {
        let Some(root) = self.workspace else { return Ok(None) };
        // The lock is a file of the workspace: where there is none yet, it is made now.
        if !root.exists() {
            self.session.init()?;
        }
        match WriterLock::acquire(root, WRITER_LOCK, options.wait_ms) {
            Ok(lock) => Ok(Some(lock)),
            Err(LockError::Held(_)) => {
                let failure = failure(
                    CONCURRENT_UPDATE,
                    true,
                    "another program is writing turns into this memory; try again when it is done",
                );
                let holder = Some("another program writes turns".to_owned());
                Err(Trouble::Failed(failure, Some(Box::new(Error::from(types::Error::Locked(holder))))))
            }
            Err(error) => Err(Trouble::Failed(failure(PRECONDITION_FAILED, false, &error.to_string()), None)),
        }
    }

    /// Tries again as long as others write the same turns. Answers how many turns are left, where that was looked at.
    fn tried(
        &mut self,
        id: &str,
        options: &DriveOptions,
        outcome: &mut Outcome,
        wanted: &mut Option<Upkeep>,
    ) -> Result<Option<u64>, Trouble> {
        let mut tries = options.tries.max(1);
        loop {
            match self.once(id, options, outcome, wanted) {
                Err(Trouble::Failed(_, Some(error)))
                    if tries > 1 && matches!(*error, Error::Memory(types::Error::Conflict(_))) =>
                {
                    tries -= 1;
                }
                result => return result,
            }
        }
    }

    /// Reads a conversation and writes it to its end.
    fn once(
        &mut self,
        id: &str,
        options: &DriveOptions,
        outcome: &mut Outcome,
        wanted: &mut Option<Upkeep>,
    ) -> Result<Option<u64>, Trouble> {
        let (mut conversation, findings) = open(self.session, self.store, id, options)?;
        outcome.findings = findings;
        let mut how =
            WriteOptions { trigger: options.trigger, only: options.only.clone(), model: options.model.clone() };
        let mut idle = 0;
        loop {
            if (self.stop)() {
                return Err(Trouble::Stop);
            }
            let written = conversation.write(self.session, &how)?;
            let brought = written.batch.is_some() || !written.to_mark.is_empty();
            outcome.batches.extend(written.batch);
            for what in written.upkeep {
                // All of it is also what was written to lately.
                *wanted = Some(match (*wanted, what) {
                    (None | Some(Upkeep::Recent), what) => what,
                    (Some(Upkeep::Whole), _) => Upkeep::Whole,
                });
            }
            let marks = self.mark(id, &mut conversation, &written.to_mark, outcome);
            if let Some(failure) = written.failure {
                return Err(Trouble::Failed(failure, None));
            }
            marks?;
            if !written.more {
                break;
            }
            if !how.only.is_empty() {
                // Nodes that were asked for are written whether they are marked or not: each is asked for once. None left is not
                // everything.
                how.only.retain(|node| !written.to_mark.contains(node));
                if how.only.is_empty() {
                    break;
                }
            }
            idle = if brought { 0 } else { idle + 1 };
            if idle > IDLE_MAX {
                let message =
                    "the component says again and again that there is more, and brings nothing; please report it";
                return Err(Trouble::Failed(failure(FAILURE_UNKNOWN, false, message), None));
            }
        }
        Ok(Some(conversation.pending(self.session)?.turns))
    }

    /// Marks nodes in their store and tells the component. What is not marked keeps its receipt, and is marked the next time.
    fn mark(
        &mut self,
        id: &str,
        conversation: &mut Conversation,
        nodes: &[String],
        outcome: &mut Outcome,
    ) -> Result<(), Trouble> {
        if nodes.is_empty() {
            return Ok(());
        }
        let marked = mark(self.session, self.store, id, conversation, nodes)?;
        outcome.marked += marked.done.len() as u64;
        if !marked.done.is_empty() {
            conversation.marked(self.session, &marked.done)?;
        }
        let Some((_, first)) = marked.left.first() else { return Ok(()) };
        let told: Vec<String> =
            marked.left.iter().take(TOLD_MAX).map(|(node, fault)| format!("{node}: {fault}")).collect();
        let message = format!(
            "{} of {} nodes are written and could not be marked ({}); the next write marks them",
            marked.left.len(),
            nodes.len(),
            told.join("; ")
        );
        // What would not be marked by anybody stops nobody; what may be the next time is offered again.
        let retryable = marked.left.iter().any(|(_, fault)| fault.retryable) || first.retryable;
        Err(Trouble::Failed(failure(SESSION_NODES_UNAVAILABLE, retryable, &message), None))
    }

    /// Takes note, unless it was stopped. Where something is left that was not due yet the conversation does not count as handled: it
    /// would wait until somebody says something more.
    fn settle(&mut self, of: &Listed, options: &DriveOptions, left: Option<u64>, outcome: &mut Outcome) {
        let is_everything = options.trigger == Trigger::Everything && options.only.is_empty();
        let is_settled = outcome.failure.is_some() || is_everything || left == Some(0);
        // Who waits for another writer has not looked at anything, and memory that is off is to be left alone.
        let looked = !matches!(
            outcome.error,
            Some(Error::Memory(types::Error::Locked(_) | types::Error::Unavailable(_)) | Error::Cancelled)
        );
        // Where nothing happened and something is left, there is nothing to note.
        if outcome.ended != Ended::Done || !looked || (!is_settled && outcome.is_silent()) {
            return;
        }
        let at = is_settled.then_some(of.updated_at);
        if let Err(error) = self.session.settle(&of.id, at, outcome.failure.as_ref()) {
            let message = format!("that `{}` was looked at could not be noted: {error}", of.id);
            self.session.observer().log(Level::Warn, &message);
            if outcome.failure.is_none() {
                outcome.failure = Some(failure_of(&error));
                outcome.error = Some(error);
            }
        }
    }

    fn tell(&self, outcome: &Outcome) {
        let observer = self.session.observer();
        let (code, retryable) = match &outcome.failure {
            Some(failure) => (failure.code.as_str(), failure.retryable),
            None => ("", false),
        };
        let fields = [
            ("session", outcome.session.clone()),
            ("ok", outcome.failure.is_none().to_string()),
            ("reason_code", code.to_owned()),
            ("retryable", retryable.to_string()),
        ];
        observer.event(EVENT, &fields.map(|(name, value)| (name.to_owned(), value)));
        if !outcome.is_silent() {
            observer.log(Level::Info, &outcome.to_string());
        }
    }
}

impl fmt::Debug for Drive<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Drive").field("workspace", &self.workspace).finish_non_exhaustive()
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let turns: usize = self.batches.iter().map(|batch| batch.evidence.len()).sum();
        let cited: usize = self.batches.iter().map(BatchReport::cited).sum();
        write!(f, "{}: ", self.session)?;
        match (turns, self.marked) {
            (0, 0) => write!(f, "nothing was written")?,
            (0, marked) => write!(f, "nodes that were written before: {marked} are marked")?,
            (turns, marked) => {
                write!(f, "of {turns} turns topics cite {cited}; {marked} nodes are marked")?;
            }
        }
        if self.ended == Ended::Stopped {
            write!(f, "; stopped, and the rest is owed as before")?;
        }
        if let Some(failure) = &self.failure {
            write!(f, "; {}: {}", failure.code, failure.message)?;
        }
        Ok(())
    }
}

/// Why a conversation is not written on.
#[derive(Debug)]
enum Trouble {
    Stop,
    Failed(Failure, Option<Box<Error>>),
}

impl From<Error> for Trouble {
    fn from(error: Error) -> Self {
        match error {
            Error::Cancelled => Self::Stop,
            error => Self::Failed(failure_of(&error), Some(Box::new(error))),
        }
    }
}

impl From<StoreError> for Trouble {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Session(error) => error.into(),
            StoreError::Store(fault) => Self::Failed(fault.into(), None),
        }
    }
}

impl From<StoreFault> for Failure {
    fn from(fault: StoreFault) -> Self {
        failure(SESSION_NODES_UNAVAILABLE, fault.retryable, &fault.to_string())
    }
}

fn failure(code: &str, retryable: bool, message: &str) -> Failure {
    Failure { code: code.to_owned(), retryable, message: message.to_owned() }
}

/// An error of a call in the words of writers.
#[must_use]
pub fn failure_of(error: &Error) -> Failure {
    let (code, retryable) = match error {
        Error::Memory(error) => match error {
            types::Error::Conflict(_) | types::Error::Locked(_) => (CONCURRENT_UPDATE, true),
            types::Error::Invalid(_) | types::Error::NotFound(_) => (INVALID_ARGUMENT, false),
            types::Error::Refused(_) | types::Error::Unavailable(_) => (PRECONDITION_FAILED, false),
            // A medium that is full or fails may be another one soon.
            types::Error::Store(_) => (FAILURE_UNKNOWN, true),
            types::Error::Model((_, retryable)) => (FAILURE_UNKNOWN, *retryable),
            types::Error::Limit(_) => (FAILURE_UNKNOWN, false),
        },
        // That it took too long, or that the machine had no memory, may be otherwise the next time.
        Error::Limit { name, .. } => (FAILURE_UNKNOWN, matches!(*name, "deadline" | "machine-memory")),
        Error::Cancelled | Error::Gone | Error::Io { .. } => (FAILURE_UNKNOWN, true),
        _ => (FAILURE_UNKNOWN, false),
    };
    failure(code, retryable, &error.to_string())
}

/// Hands a conversation over from its store. Answers what is wrong with it, too.
///
/// # Errors
/// The store cannot be read, or the component takes nothing.
pub fn open(
    session: &mut Session,
    store: &dyn SessionStore,
    id: &str,
    options: &DriveOptions,
) -> Result<(Conversation, Vec<Finding>), StoreError> {
    let conversation = session.open_conversation(&options.provider, id)?;
    let mut sink = Sink { session, conversation };
    let told = store.read(id, &mut sink)?;
    let Sink { session, mut conversation } = sink;
    let heads = Heads {
        current: options.heads.current.clone().or(told.current),
        archived: if options.heads.archived.is_empty() { told.archived } else { options.heads.archived.clone() },
    };
    let findings = conversation.finish(session, &heads)?;
    Ok((conversation, findings))
}

/// Marks nodes of a conversation in its store, and tells nobody.
///
/// # Errors
/// Nothing more could be marked.
pub(super) fn mark(
    session: &mut Session,
    store: &dyn SessionStore,
    id: &str,
    conversation: &mut Conversation,
    nodes: &[String],
) -> Result<Marked, StoreError> {
    store.mark(id, nodes, &mut Planner { session, conversation })
}

impl Conversation {
    /// Marks nodes in their store and tells the component of those that are.
    ///
    /// # Errors
    /// Nothing more could be marked. Some nodes may be; their receipts stay, and marking again is safe.
    pub fn mark(
        &mut self,
        session: &mut Session,
        store: &dyn SessionStore,
        id: &str,
        nodes: &[String],
    ) -> Result<Marked, StoreError> {
        let marked = mark(session, store, id, self, nodes)?;
        if !marked.done.is_empty() {
            self.marked(session, &marked.done)?;
        }
        Ok(marked)
    }
}

/// Puts memory in order to the end, or until it fails or `stop` says so. `told` hears of each step.
///
/// # Errors
/// As [`Session::init`]. That a model failed is told in the step.
pub fn organise(
    session: &mut Session,
    what: Upkeep,
    model: Option<&str>,
    stop: &dyn Fn() -> bool,
    told: &mut dyn FnMut(&Organised),
) -> Result<Ended, Error> {
    let stopped = |error| match error {
        Error::Cancelled => Ok(Ended::Stopped),
        error => Err(error),
    };
    let mut organising = match session.organise(what, model) {
        Ok(organising) => organising,
        Err(error) => return stopped(error),
    };
    loop {
        if stop() {
            return Ok(Ended::Stopped);
        }
        let step = match organising.step(session) {
            Ok(step) => step,
            Err(error) => return stopped(error),
        };
        told(&step);
        if step.failure.is_some() || !step.more {
            return Ok(Ended::Done);
        }
    }
}

/// Hands nodes on to the component.
struct Sink<'a> {
    session: &'a mut Session,
    conversation: Conversation,
}

impl NodeSink for Sink<'_> {
    fn file(&mut self, name: &str, data: &[u8]) -> Result<(), Error> {
        self.conversation.push_file(self.session, name, data)
    }

    fn lines(&mut self, data: &[u8]) -> Result<(), Error> {
        self.conversation.push_lines(self.session, data)
    }
}

/// Has marks planned by the component.
struct Planner<'a> {
    session: &'a mut Session,
    conversation: &'a mut Conversation,
}

impl MarkPlanner for Planner<'_> {
    fn splice(&mut self, node: &str, text: &str) -> Result<Plan, Error> {
        match self.conversation.plan_mark(self.session, node, text) {
            Ok(Some(Splice { start, end, insert })) => Ok(Plan::Splice(Splice { start, end, insert })),
            Ok(None) => Ok(Plan::Marked),
            Err(error) if error.reason() == Some(UNMARKABLE) => Ok(Plan::Refused(error.to_string())),
            Err(error) => Err(error),
        }
    }

    fn line(&mut self, nodes: &[String], ended: bool) -> Result<String, Error> {
        self.conversation.mark_line(self.session, nodes, ended)
    }
}
