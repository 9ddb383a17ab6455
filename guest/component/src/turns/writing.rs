//! Writing turns: a batch's evidence is kept, a model writes of it, its changes are committed with a receipt, and then its nodes are
//! to be marked.
//!
//! Knows the order of things and what is committed together. What is owed and what is written twice core's `turns` says, what
//! a model is told and may do core's `writer`.

use std::cell::Cell;
use std::collections::BTreeSet;

use recollex_core::prompt::Origin;
use recollex_core::source::Batch as Records;
use recollex_core::table::TopicTable;
use recollex_core::turns::{
    Batch, Citations, Receipt, Receipts, Session as Nodes, Trigger, Turn, Upkeep, WriterFailure,
};
use recollex_core::writer::{self, Ending, Evidence, Outcome, Step, Submission, Submitted, Task, Writer, second_offer};

use super::ask;
use super::conversation::{Conversation, counted_all, next_batch};
use super::files;
use super::ground;
use super::organising;
use crate::bindings::exports::recollex::memory::turns as wit;
use crate::bindings::exports::recollex::memory::workspace::Updated;
use crate::cache;
use crate::clock;
use crate::convert;
use crate::keep;
use crate::reading;
use crate::session::{Session, unfit};
use crate::update::{self, Beside, OfTurns};

/// Writes the next batch of a conversation.
pub(super) fn write(conversation: &Conversation, options: &wit::WriteOptions) -> Result<wit::Written, wit::Error> {
    let session = &conversation.session;
    let (workspace, _) = session.ensure()?;
    let (receipts, _) = files::receipts()?;
    conversation.whole(|nodes| {
        let unmarked = receipts.unmarked(&conversation.id, nodes, workspace);
        if !unmarked.is_empty() {
            return resume(conversation, nodes, &unmarked, options);
        }
        if receipts.open().iter().any(|receipt| receipt.session == conversation.id) {
            // Somebody has made the marks and did not come to say so.
            conversation.settle(nodes, workspace)?;
        }
        let owed = match options.only.is_empty() {
            true => nodes.owed(workspace),
            false => {
                let own = workspace.to_string();
                let is_marked = |id: &&str| nodes.node(id).is_some_and(|node| node.marks.contains(&own));
                nodes.chosen(options.only.iter().map(String::as_str).filter(|id| !is_marked(id)))
            }
        };
        match next_batch(&owed, options.trigger, &session.settings.turns, clock::now()) {
            Some(batch) => write_batch(conversation, &batch, options),
            None => Ok(nothing()),
        }
    })
}

/// What a batch is written as.
pub(super) struct Writing<'w> {
    pub(super) session: &'w Session,
    pub(super) origin: Origin,
    pub(super) model: Option<String>,
    pub(super) verb: &'w str,
    /// What its first commit leaves beside the topics.
    pub(super) receipt: Option<Beside<'w>>,
    /// What upkeep counts.
    pub(super) tokens: Option<u64>,
}

/// What came of a batch, all its runs together.
pub(super) struct Done {
    pub(super) report: wit::BatchReport,
    pub(super) upkeep: Vec<Upkeep>,
    /// Of the first run.
    pub(super) has_changed_memory: bool,
    pub(super) failure: Option<wit::Failure>,
}

/// Writes a batch that is owed.
fn write_batch(
    conversation: &Conversation,
    batch: &Batch<'_>,
    options: &wit::WriteOptions,
) -> Result<wit::Written, wit::Error> {
    let session = &conversation.session;
    let records = Records::check(batch.records(), &session.settings.limits()).map_err(unfit)?;
    let mut known = session.files();
    keep::keep(session, &records, "write", &mut known, |_| Ok(Vec::new()))?;
    cache::save_file_table(&known, false, &session.settings.limits());
    drop(known);

    let nodes: Vec<String> = batch.nodes().into_iter().map(str::to_owned).collect();
    let sources = batch.source_ids();
    let cited_before = cited(session, &sources)?;
    let is_written_elsewhere = Cell::new(false);
    let receipt = |table: &TopicTable| {
        let (mut receipts, found) = files::receipts()?;
        // Somebody else has written of these turns since this batch was cut.
        let of_batch = |receipt: &&Receipt| {
            receipt.session == conversation.id && receipt.nodes.iter().any(|node| nodes.contains(node))
        };
        let citations = Citations::of(table);
        let is_new = |source: &String| citations.is_cited(source) && !cited_before.contains(source);
        if receipts.open().iter().any(|receipt| of_batch(&receipt)) || sources.iter().any(is_new) {
            is_written_elsewhere.set(true);
            return Err(wit::Error::Conflict(String::new()));
        }
        receipts.add(Receipt { session: conversation.id.clone(), nodes: nodes.clone() });
        Ok(found.change(Receipts::PATH, receipts.file()).into_iter().collect())
    };
    let counted = counted_all(&batch.turns);
    let tokens = |turn: &Turn<'_>| counted.get(turn.node.id.as_str()).copied().unwrap_or_default();
    let writing = Writing {
        session,
        origin: Origin::Conversation,
        model: options.model.clone(),
        verb: "write",
        receipt: Some(&receipt),
        tokens: Some(batch.tokens),
    };
    let evidence = |places: Option<&[usize]>| {
        let turns = match places {
            None => batch.turns.clone(),
            Some(places) => places.iter().filter_map(|place| batch.turns.get(*place).copied()).collect(),
        };
        let part = Batch { turns, ..batch.clone() };
        Evidence::of_batch(&part, tokens, &session.settings.writer)
    };
    let done = writing.all(&sources, &evidence)?;
    if is_written_elsewhere.get() {
        return Err(wit::Error::Conflict(session.revision(session.files())?));
    }
    let trigger = match options.trigger {
        wit::Trigger::Due => Trigger::Unforced,
        wit::Trigger::Everything => Trigger::Forced,
    };
    let Done { report, upkeep, has_changed_memory, failure } = done;
    if failure.is_some() && !has_changed_memory {
        return Ok(wit::Written { failure, ..nothing() });
    }
    let (to_mark, failure) = match trigger.is_to_mark(has_changed_memory) {
        Ok(true) => (batch.nodes().into_iter().map(str::to_owned).collect(), None),
        Ok(false) => (Vec::new(), None),
        Err(failure) => (Vec::new(), Some(super::failure(failure))),
    };
    Ok(wit::Written {
        more: has_changed_memory && trigger == Trigger::Forced,
        to_mark,
        batch: has_changed_memory.then_some(report),
        failure,
        upkeep: upkeep.into_iter().map(of_upkeep).collect(),
    })
}

/// Goes on with turns that a writer wrote who did not come to mark them: what topics do not cite is offered once more, and then
/// all of them are to be marked.
fn resume(
    conversation: &Conversation,
    nodes: &Nodes,
    unmarked: &[&str],
    options: &wit::WriteOptions,
) -> Result<wit::Written, wit::Error> {
    let session = &conversation.session;
    let to_mark = unmarked.iter().map(|id| (*id).to_owned()).collect();
    let chosen = nodes.chosen(unmarked.iter().copied());
    let mut done: Option<Done> = None;
    for segment in chosen.segments() {
        let sources: Vec<String> = segment.turns.iter().map(Turn::source_id).collect();
        let counted = counted_all(&segment.turns);
        let tokens = |turn: &Turn<'_>| counted.get(turn.node.id.as_str()).copied().unwrap_or_default();
        let cited = cited(session, &sources)?;
        let writing = Writing {
            session,
            origin: Origin::Conversation,
            model: options.model.clone(),
            verb: "write",
            receipt: None,
            tokens: None,
        };
        let evidence = |places: Option<&[usize]>| {
            let turns = match places {
                None => segment.turns.clone(),
                Some(places) => places.iter().filter_map(|place| segment.turns.get(*place).copied()).collect(),
            };
            let tokens_of = |turns: &[Turn<'_>]| turns.iter().map(tokens).sum();
            let part = Batch { branch: segment.branch, tokens: tokens_of(&turns), turns };
            Evidence::of_batch(&part, tokens, &session.settings.writer)
        };
        let part = writing.again(&sources, cited, &evidence, None)?;
        done = Some(match done {
            None => part,
            Some(before) => before.and(part),
        });
    }
    let Some(Done { report, failure, .. }) = done else { return Ok(wit::Written { to_mark, more: true, ..nothing() }) };
    // Where a model fails now that wrote before, what is left uncited is in the ledger.
    let batch = (report.requests > 0).then_some(report);
    let failure = failure.filter(|failure| failure.retryable);
    if failure.is_some() {
        return Ok(wit::Written { batch, failure, ..nothing() });
    }
    Ok(wit::Written { to_mark, batch, more: true, ..nothing() })
}

/// Which of these topics cite.
pub(super) fn cited(session: &Session, sources: &[String]) -> Result<BTreeSet<String>, wit::Error> {
    let view = session.view()?;
    crate::session::settled(|_| {
        let topics = reading::known(session, &view)?;
        let citations = Citations::of(&topics.table);
        Ok(sources.iter().filter(|source| citations.is_cited(source)).cloned().collect())
    })
}

impl Writing<'_> {
    /// A first run over all of the evidence, and then those of what it left uncited.
    pub(super) fn all(
        &self,
        sources: &[String],
        evidence: &dyn Fn(Option<&[usize]>) -> Evidence,
    ) -> Result<Done, wit::Error> {
        let first = self.run(evidence(None), self.receipt, self.tokens)?;
        if !first.has_changed_memory {
            return Ok(first);
        }
        let cited = cited(self.session, sources)?;
        self.again(sources, cited, evidence, Some(first))
    }

    /// What is uncited is offered once more, in smaller pieces.
    fn again(
        &self,
        sources: &[String],
        cited: BTreeSet<String>,
        evidence: &dyn Fn(Option<&[usize]>) -> Evidence,
        first: Option<Done>,
    ) -> Result<Done, wit::Error> {
        let whole = evidence(None);
        let turns: Vec<(u64, bool)> =
            whole.turns().iter().map(|turn| (turn.tokens, cited.contains(&turn.reference))).collect();
        let mut done = first.unwrap_or_else(|| Done::nothing(sources, &turns));
        for piece in second_offer(&turns, self.session.settings.writer.second_tokens) {
            let part = self.run(evidence(Some(&piece)), None, None)?;
            let has_failed = part.failure.is_some();
            done = done.and(part);
            if has_failed {
                break;
            }
        }
        let cited = self::cited(self.session, sources)?;
        done.report.uncited = sources.iter().filter(|source| !cited.contains(*source)).cloned().collect();
        Ok(done)
    }

    /// One run.
    fn run(&self, evidence: Evidence, receipt: Option<Beside<'_>>, tokens: Option<u64>) -> Result<Done, wit::Error> {
        let settings = &self.session.settings;
        let texts: Vec<&str> = evidence.turns().iter().map(|turn| turn.content.as_str()).collect();
        let ground = ground::of_texts(self.session, &texts, self.model.clone(), &settings.writer)?;
        let sources = evidence.turns().iter().map(|turn| turn.reference.clone()).collect();
        let task = Task::write(self.origin, evidence, ground, &settings.writer);
        let nothing = |_: &TopicTable| Ok(Vec::new());
        let commits = Commits { session: self.session, verb: self.verb, beside: receipt.unwrap_or(&nothing), tokens };
        let Ran { outcome, updated, upkeep, models, requests } = run(task, &commits)?;
        organising::touched(&outcome.files);
        Ok(Done {
            report: report(sources, &outcome, updated, models, requests, self.session)?,
            upkeep,
            has_changed_memory: outcome.has_changed_memory(),
            failure: failure_of(&outcome),
        })
    }
}

impl Done {
    /// Nothing was done yet with so many turns.
    fn nothing(sources: &[String], turns: &[(u64, bool)]) -> Self {
        let tokens = turns.iter().map(|(tokens, _)| tokens).sum();
        let report = wit::BatchReport { evidence: sources.to_vec(), evidence_tokens: tokens, ..no_report() };
        Self { report, upkeep: Vec::new(), has_changed_memory: false, failure: None }
    }

    /// With what another run of the same batch came to.
    fn and(mut self, other: Self) -> Self {
        let files: BTreeSet<String> = self.report.changed_files.into_iter().chain(other.report.changed_files).collect();
        self.report.changed_files = files.into_iter().collect();
        self.report.topic_bytes = self.report.topic_bytes.saturating_add(other.report.topic_bytes);
        self.report.requests = self.report.requests.saturating_add(other.report.requests);
        self.report.tokens_in = self.report.tokens_in.saturating_add(other.report.tokens_in);
        self.report.tokens_out = self.report.tokens_out.saturating_add(other.report.tokens_out);
        for model in other.report.models {
            if !self.report.models.contains(&model) {
                self.report.models.push(model);
            }
        }
        self.report.uncited = other.report.uncited;
        self.report.revision = other.report.revision;
        self.upkeep.extend(other.upkeep);
        self.failure = self.failure.or(other.failure);
        self
    }
}

/// How the commits of a run are made.
pub(super) struct Commits<'c> {
    pub(super) session: &'c Session,
    pub(super) verb: &'c str,
    /// What changes with the topics.
    pub(super) beside: Beside<'c>,
    pub(super) tokens: Option<u64>,
}

/// What a run came to.
pub(super) struct Ran {
    pub(super) outcome: Outcome,
    pub(super) updated: Option<Updated>,
    pub(super) upkeep: Vec<Upkeep>,
    pub(super) models: Vec<String>,
    pub(super) requests: u32,
}

/// Runs a task to its end. An error is of the store or the workspace; what a model does wrong is part of the outcome.
pub(super) fn run(task: Task<'_>, commits: &Commits<'_>) -> Result<Ran, wit::Error> {
    let session = commits.session;
    let mut writer = Writer::new(task, session.settings.writer, session.settings.update);
    let (mut updated, mut upkeep, mut models, mut requests) = (None, Vec::new(), Vec::new(), 0_u32);
    loop {
        match writer.next() {
            Step::Ask(request) => {
                requests = requests.saturating_add(1);
                let reply = ask::complete(request);
                if let Ok(reply) = &reply
                    && !models.contains(&reply.model)
                {
                    models.push(reply.model.clone());
                }
                writer.replied(reply);
            }
            Step::Read(read) => writer.answered(ground::read(session, &read)),
            Step::Search(search) => writer.answered(ground::find(session, &search)),
            Step::Submit(submission) => {
                let (submitted, done) = submit(submission, commits);
                if let Some((done, due)) = done {
                    updated = Some(done);
                    upkeep = due;
                }
                writer.submitted(submitted);
            }
            Step::Done(outcome) => return Ok(Ran { outcome, updated, upkeep, models, requests }),
        }
    }
}

/// Plans and commits what a run wants.
fn submit(submission: Submission, commits: &Commits<'_>) -> (Submitted, Option<(Updated, Vec<Upkeep>)>) {
    let Submission { request, offered, touched, .. } = submission;
    let turns = OfTurns { offered, beside: commits.beside, tokens: commits.tokens, verb: commits.verb };
    let stale = |revision: String| Submitted::Stale { revision, are_touched_changed: !touched.is_empty() };
    let failed = |failure: WriterFailure, error: wit::Error| Submitted::Failed(failure, convert::told(error).1);
    match update::of_turns(commits.session, request, &turns) {
        Ok(Ok((updated, upkeep))) => {
            let files = updated.changed_files.iter().filter(|path| path.starts_with("topics/")).cloned().collect();
            (Submitted::Committed { revision: updated.revision.clone(), files }, Some((updated, upkeep)))
        }
        Ok(Err(recollex_core::update::Rejection::Stale { revision, .. })) => (stale(revision), None),
        Ok(Err(recollex_core::update::Rejection::Refused(faults))) => (Submitted::Refused(faults), None),
        Err(wit::Error::Conflict(revision)) if !revision.is_empty() => (stale(revision), None),
        Err(error @ (wit::Error::Conflict(_) | wit::Error::Locked(_))) => {
            (failed(WriterFailure::of_transaction("CONCURRENT_UPDATE"), error), None)
        }
        Err(error) => (failed(WriterFailure::of_transaction(code_of(&error)), error), None),
    }
}

fn code_of(error: &wit::Error) -> &str {
    match error {
        wit::Error::Invalid(problem)
        | wit::Error::NotFound(problem)
        | wit::Error::Store(problem)
        | wit::Error::Unavailable((_, problem))
        | wit::Error::Model((problem, _)) => &problem.code,
        wit::Error::Refused(problems) => problems.first().map_or("", |problem| problem.code.as_str()),
        wit::Error::Conflict(_) | wit::Error::Locked(_) | wit::Error::Limit(_) => "",
    }
}

/// What a caller is told of a run over this evidence.
fn report(
    evidence: Vec<String>,
    outcome: &Outcome,
    updated: Option<Updated>,
    models: Vec<String>,
    requests: u32,
    session: &Session,
) -> Result<wit::BatchReport, wit::Error> {
    let revision = match &updated {
        Some(updated) => updated.revision.clone(),
        None => session.revision(session.files())?,
    };
    Ok(wit::BatchReport {
        evidence,
        evidence_tokens: outcome.given.tokens,
        uncited: outcome.uncited.clone(),
        topic_bytes: outcome.written.bytes,
        changed_files: updated.map(|updated| updated.changed_files).unwrap_or_default(),
        revision,
        requests,
        tokens_in: outcome.usage.tokens_in,
        tokens_out: outcome.usage.tokens_out,
        models,
    })
}

/// Why a run came to nothing, if it failed.
pub(super) fn failure_of(outcome: &Outcome) -> Option<wit::Failure> {
    match &outcome.ending {
        Ending::Failed(failed) => Some(wit::Failure {
            code: failed.failure.code.as_str().to_owned(),
            retryable: failed.failure.retryable,
            message: failed.message.clone(),
        }),
        Ending::Committed { .. } | Ending::NoProgress { .. } => None,
    }
}

const fn no_report() -> wit::BatchReport {
    wit::BatchReport {
        evidence: Vec::new(),
        evidence_tokens: 0,
        uncited: Vec::new(),
        topic_bytes: 0,
        changed_files: Vec::new(),
        revision: String::new(),
        requests: 0,
        tokens_in: 0,
        tokens_out: 0,
        models: Vec::new(),
    }
}

/// Nothing was due.
const fn nothing() -> wit::Written {
    wit::Written { to_mark: Vec::new(), batch: None, failure: None, upkeep: Vec::new(), more: false }
}

const fn of_upkeep(upkeep: Upkeep) -> wit::Upkeep {
    match upkeep {
        Upkeep::Recent => wit::Upkeep::Recent,
        Upkeep::Whole => wit::Upkeep::Whole,
    }
}

/// What is worth keeping of messages.
pub(super) fn salvage(
    session: &Session,
    messages: &[wit::Said],
    model: Option<String>,
) -> Result<wit::Salvaged, wit::Error> {
    let limits = &session.settings.writer;
    if messages.is_empty() {
        return Ok(wit::Salvaged { text: String::new(), failure: None });
    }
    let said = messages.iter().map(|message| (message.speaker.as_str(), message.text.as_str()));
    let reply = ask::complete(writer::salvage(said, model, limits));
    Ok(match writer::salvaged(reply, limits) {
        Ok(text) => wit::Salvaged { text, failure: None },
        Err(failed) => wit::Salvaged {
            text: String::new(),
            failure: Some(wit::Failure {
                code: failed.failure.code.as_str().to_owned(),
                retryable: failed.failure.retryable,
                message: failed.message,
            }),
        },
    })
}
