//! A run: from a task to its outcome, a step at a time.
//!
//! Every reply of the model costs a round, and rounds are bounded; everything between two replies is bounded by the reply. So a run ends
//! whatever the model says. Nothing is changed before the one commit at its end.

use super::guard::{self, Seen};
use super::limits::WriterLimits;
use super::model::{Author, Message, ModelError, Part, Purpose, Reply, Request, StopReason, ToolCall, ToolOutcome};
use super::outcome::{Ending, Failure, Outcome, Refusal, Usage, Why, Written};
use super::salvage::{of_model, small};
use super::step::{Answer, Step, Submission, Submitted};
use super::talk::Talk;
use super::task::{Task, handles, size};
use super::tools::{Action, action, is_object, last_tools, tools};
use crate::ids::SourceRef;
use crate::text::{is_whitespace, json_line};
use crate::turns::{ModelFailure, WriterFailure};
use crate::update::{self, Proposal, ProposedEdit, ProposedOperation};
use std::collections::{BTreeSet, VecDeque};

/// Replies of one kind that lead nowhere, one behind the other, before a run ends.
const PATIENCE: u32 = 2;

/// What the model is told.
mod told {
    pub(super) const REMINDER: &str =
        "Nothing was done: answer with calls of tools only. Submit your changes with submit_changes, or call finish.";
    pub(super) const CUT: &str = "Your reply was cut because it was too long, so nothing of it was done. Say less: give fewer changes in one call of \
                                  submit_changes, with \"more\": true if others follow.";
    pub(super) const LAST: &str = "\n\nThis is your last reply: submit what you have, or finish.";
    pub(super) const KEPT: &str = "Kept with what was given before; not committed yet.";
    pub(super) const HELD_BACK: &str = "Kept, but not committed, because another call of the same reply was not understood. Give that one again, \
                                        corrected, and only that one; or finish.";
    pub(super) const FINISHING: &str = "Noted.";
    pub(super) const STALE: &str = "Nothing was committed: somebody else has changed memory meanwhile, and with it blocks that you change. Read them \
                                    again, then give all changes again.";
}

/// A run under way.
#[derive(Debug)]
pub struct Writer<'t> {
    task: Task<'t>,
    limits: WriterLimits,
    update_limits: update::Limits,
    revision: String,
    talk: Talk,
    state: State,
    /// Calls of the last reply that are not answered yet.
    queue: VecDeque<(String, Result<Action, String>)>,
    /// Answers to those before them.
    outcomes: Vec<ToolOutcome>,
    /// Of the last reply.
    reply: Heard,
    /// Operations that are not committed yet.
    collected: Vec<ProposedOperation>,
    reason: String,
    seen: Seen,
    must_call: bool,
    is_refused: bool,
    stale: u64,
    fruitless: u32,
    cut: u32,
    usage: Usage,
    model: Option<String>,
}

#[derive(Clone, Debug)]
enum State {
    Asking,
    Reading(String, Step),
    Submitting(Submission),
    Done(Outcome),
}

/// What was heard in one reply.
#[derive(Clone, Debug, Default)]
struct Heard {
    /// Places in the answers of calls that submit or finish.
    commits: Vec<usize>,
    /// Everything that was given shall be committed.
    is_final: bool,
    /// A call was not understood.
    is_faulty: bool,
    /// Calls that were left out.
    left_out: usize,
}

impl<'t> Writer<'t> {
    /// Begins a run.
    #[must_use]
    pub fn new(task: Task<'t>, limits: WriterLimits, update_limits: update::Limits) -> Self {
        let mut seen = Seen::default();
        for block in &task.blocks {
            seen.block(block);
        }
        let talk = Talk::new(vec![
            Message::text(Author::System, task.system.as_str()),
            Message::text(Author::User, task.opening.as_str()),
        ]);
        let mut writer = Self {
            revision: task.revision.clone(),
            task,
            limits,
            update_limits,
            talk,
            state: State::Asking,
            queue: VecDeque::new(),
            outcomes: Vec::new(),
            reply: Heard::default(),
            collected: Vec::new(),
            reason: String::new(),
            seen,
            must_call: true,
            is_refused: false,
            stale: 0,
            fruitless: 0,
            cut: 0,
            usage: Usage::default(),
            model: None,
        };
        writer.ask();
        writer
    }

    /// What the run wants next: the same until it is answered.
    #[must_use]
    pub fn next(&self) -> Step {
        match &self.state {
            State::Asking => Step::Ask(self.request()),
            State::Reading(_, step) => step.clone(),
            State::Submitting(submission) => Step::Submit(submission.clone()),
            State::Done(outcome) => Step::Done(outcome.clone()),
        }
    }

    /// The answer to [`Step::Ask`]. In any other step it changes nothing.
    pub fn replied(&mut self, reply: Result<Reply, ModelError>) {
        if !matches!(self.state, State::Asking) {
            return;
        }
        self.usage.rounds += 1;
        match reply {
            Ok(reply) => self.hear(reply),
            Err(error) => self.model_failed(&error),
        }
    }

    /// The answer to [`Step::Read`] and [`Step::Search`]. In any other step it changes nothing.
    pub fn answered(&mut self, answer: Answer) {
        let State::Reading(id, _) = &self.state else { return };
        let id = id.clone();
        let (text, is_error) = match answer {
            Answer::Text { path, text } => {
                let shown = text.get(..text.floor_char_boundary(size(self.limits.answer_bytes))).unwrap_or_default();
                self.seen.text(shown);
                (answer_text(&path, shown, text.len() - shown.len()), false)
            }
            Answer::Blocks(blocks) => {
                let (lines, count) = crate::prompt::block_lines(&blocks, blocks.len(), size(self.limits.answer_bytes));
                for block in blocks.iter().take(count) {
                    self.seen.block(block);
                }
                (blocks_answer(lines, blocks.len() - count), false)
            }
            Answer::Nothing(message) => (message.chars().take(1000).collect(), true),
            Answer::Failed(failure, message) => {
                return self.fail(Failure { failure, ..Failure::of(Why::ToolFailed).about(&message) });
            }
        };
        self.outcomes.push(ToolOutcome { id, text, is_error });
        self.run_calls();
    }

    /// The answer to [`Step::Submit`]. In any other step it changes nothing.
    pub fn submitted(&mut self, submitted: Submitted) {
        let State::Submitting(submission) = &self.state else { return };
        let (cited, touched) = (submission.cited.clone(), submission.touched.clone());
        match submitted {
            Submitted::Committed { files, .. } if files.is_empty() => self.end_without_progress(),
            Submitted::Committed { revision, files } => {
                let written = written(&self.collected);
                self.end(Ending::Committed { revision }, written, &cited, files);
            }
            Submitted::Refused(faults) => self.refused(faults.iter().map(Refusal::from).collect()),
            Submitted::Stale { revision, are_touched_changed } => {
                self.revision = revision;
                self.stale += 1;
                if self.stale > self.limits.replans {
                    self.fail(Failure::of(Why::Stale));
                } else if are_touched_changed && !touched.is_empty() {
                    self.seen.forget(&touched);
                    self.collected.clear();
                    self.tell(told::STALE, Failure::of(Why::Stale));
                } else {
                    self.commit();
                }
            }
            Submitted::Failed(failure, message) => {
                self.fail(Failure { failure, ..Failure::of(Why::CommitFailed).about(&message) });
            }
        }
    }

    fn request(&self) -> Request {
        Request {
            purpose: self.task.purpose,
            model: self.task.model.clone(),
            messages: self.talk.messages().to_vec(),
            tools: if self.is_last() { last_tools(self.task.may_only_add) } else { tools(self.task.may_only_add) },
            must_call: self.must_call,
            max_output: small(self.limits.max_output),
            deadline_ms: small(self.limits.deadline_ms),
        }
    }

    /// Whether the next round is the last.
    const fn is_last(&self) -> bool {
        self.usage.rounds + 1 >= self.limits.rounds
    }

    const fn has_rounds(&self) -> bool {
        self.usage.rounds < self.limits.rounds
    }

    /// Goes on with the model, if it may be asked again and told all of it.
    fn ask(&mut self) {
        if !self.has_rounds() {
            return self.out_of_rounds(Failure::of(Why::Rounds));
        }
        if !self.talk.shorten(self.limits.context_bytes) {
            return self.fail(Failure::of(Why::ContextFull));
        }
        self.state = State::Asking;
    }

    /// What was given is not lost because the model did not come to an end.
    fn out_of_rounds(&mut self, failure: Failure) {
        if self.collected.is_empty() { self.fail(failure) } else { self.commit() }
    }

    fn model_failed(&mut self, error: &ModelError) {
        self.usage.uncounted += 1;
        let is_too_long = error.kind == ModelFailure::ContextLength;
        if is_too_long && self.has_rounds() {
            let half = self.talk.bytes() / 2;
            let before = self.talk.bytes();
            self.talk.shorten(half);
            if self.talk.bytes() < before {
                return;
            }
        }
        if error.kind == ModelFailure::Unsupported && self.must_call && self.has_rounds() {
            self.must_call = false;
            return;
        }
        let failure = of_model(error);
        self.fail(if is_too_long { Failure { why: Why::ContextFull, ..failure } } else { failure });
    }

    fn hear(&mut self, reply: Reply) {
        match reply.tokens_in.zip(reply.tokens_out) {
            Some((tokens_in, tokens_out)) => {
                self.usage.tokens_in += u64::from(tokens_in);
                self.usage.tokens_out += u64::from(tokens_out);
            }
            None => self.usage.uncounted += 1,
        }
        self.model = Some(reply.model.chars().take(200).collect());
        if reply.parts.iter().map(Part::bytes).sum::<u64>() > self.limits.reply_bytes {
            return self.fail(Failure::of(Why::ReplyTooLarge));
        }
        if reply.stop == StopReason::Policy {
            return self.fail(Failure::of(Why::Policy));
        }
        let (parts, calls, left_out) = heard(reply.parts, size(self.limits.calls));
        if !parts.is_empty() {
            self.talk.push(Message { author: Author::Assistant, parts });
        }
        self.reply = Heard { left_out, ..Heard::default() };
        self.outcomes.clear();
        let is_cut = reply.stop == StopReason::Length;
        self.cut = if is_cut { self.cut + 1 } else { 0 };
        self.fruitless = if calls.is_empty() { self.fruitless + 1 } else { 0 };
        if is_cut {
            return self.cut_off(calls);
        }
        if calls.is_empty() {
            return self.without_calls();
        }
        let actions = calls.into_iter().map(|call| {
            let asked = action(&call, self.task.may_only_add, &self.limits);
            (call.id, asked)
        });
        self.queue = actions.collect();
        self.run_calls();
    }

    /// A reply that was cut may have lost the end of any call, so none is done.
    fn cut_off(&mut self, calls: Vec<ToolCall>) {
        if self.cut >= PATIENCE {
            return self.out_of_rounds(Failure::of(Why::ReplyCut));
        }
        if calls.is_empty() {
            return self.remind(told::CUT);
        }
        let answers =
            calls.into_iter().map(|call| ToolOutcome { id: call.id, text: told::CUT.to_owned(), is_error: true });
        self.outcomes.extend(answers);
        self.go_on();
    }

    /// A reply without calls: what was given before is taken for all there is; otherwise the model is reminded once.
    fn without_calls(&mut self) {
        if !self.collected.is_empty() {
            self.commit();
        } else if self.fruitless >= PATIENCE {
            self.fail(Failure::of(Why::Prose));
        } else {
            self.remind(told::REMINDER);
        }
    }

    fn remind(&mut self, text: &str) {
        self.talk.push(Message::text(Author::User, text));
        self.ask();
    }

    /// Does what the calls of a reply ask for, up to one that asks for something of memory.
    fn run_calls(&mut self) {
        while let Some((id, asked)) = self.queue.pop_front() {
            let (text, is_error) = match asked {
                Ok(Action::Read(read)) => {
                    self.state = State::Reading(id, Step::Read(read));
                    return;
                }
                Ok(Action::Search(search)) => {
                    self.state = State::Reading(id, Step::Search(search));
                    return;
                }
                Ok(Action::Submit { operations, more }) => {
                    self.reply.commits.push(self.outcomes.len());
                    self.reply.is_final |= !more;
                    self.collect(operations)
                }
                Ok(Action::Finish { reason }) => {
                    self.reply.commits.push(self.outcomes.len());
                    self.reply.is_final = true;
                    self.reason = reason;
                    (told::FINISHING.to_owned(), false)
                }
                Err(text) => {
                    self.reply.is_faulty = true;
                    (self.cut_answer(text), true)
                }
            };
            self.outcomes.push(ToolOutcome { id, text, is_error });
        }
        self.after_calls();
    }

    /// Takes operations to what was given before, if one update may have as many. One that was given already is not taken twice.
    fn collect(&mut self, operations: Vec<ProposedOperation>) -> (String, bool) {
        let mut new: Vec<ProposedOperation> = Vec::new();
        for operation in operations {
            if !self.collected.contains(&operation) && !new.contains(&operation) {
                new.push(operation);
            }
        }
        let most = self.update_limits.changes;
        if (self.collected.len() + new.len()) as u64 > most {
            self.reply.is_faulty = true;
            let kept = self.collected.len();
            let text = format!(
                "Nothing of this call is kept: {kept} changes were kept before, and {most} can be made in all. Give the most important that fit; \
                 turns that they leave out are offered again."
            );
            return (text, true);
        }
        self.collected.append(&mut new);
        (told::KEPT.to_owned(), false)
    }

    fn after_calls(&mut self) {
        if !self.reply.is_final {
            return self.go_on();
        }
        if self.reply.is_faulty && self.has_rounds() {
            for place in &self.reply.commits {
                if let Some(outcome) = self.outcomes.get_mut(*place).filter(|outcome| !outcome.is_error) {
                    told::HELD_BACK.clone_into(&mut outcome.text);
                }
            }
            return self.go_on();
        }
        if self.collected.is_empty() { self.end_without_progress() } else { self.commit() }
    }

    /// Goes on with the model, which reads what came of its calls.
    fn go_on(&mut self) {
        if let Some(last) = self.outcomes.last_mut() {
            if self.reply.left_out > 0 {
                let (left_out, calls) = (self.reply.left_out, self.limits.calls);
                last.text.push_str(&format!(
                    "\n\n({left_out} further calls of this reply were left out: {calls} are heard.)"
                ));
            }
            if self.usage.rounds + 1 == self.limits.rounds {
                last.text.push_str(told::LAST);
            }
        }
        let parts: Vec<Part> = self.outcomes.drain(..).map(Part::Outcome).collect();
        if !parts.is_empty() {
            self.talk.push(Message { author: Author::Tool, parts });
        }
        self.reply = Heard::default();
        self.ask();
    }

    /// Tells the model what became of what it gave, if it can still do something about that.
    fn tell(&mut self, text: &str, otherwise: Failure) {
        if !self.has_rounds() {
            return self.fail(otherwise);
        }
        let text = self.cut_answer(text.to_owned());
        match self.reply.commits.last().and_then(|place| self.outcomes.get_mut(*place)) {
            Some(outcome) => {
                outcome.text = text;
                outcome.is_error = true;
                self.go_on();
            }
            // It had said nothing that could be answered.
            None => self.remind(&text),
        }
    }

    fn cut_answer(&self, text: String) -> String {
        let most = size(self.limits.answer_bytes);
        match text.get(..text.floor_char_boundary(most)) {
            Some(kept) if kept.len() < text.len() => format!("{kept}\n(cut)"),
            _ => text,
        }
    }

    /// Hands over all that was given, if nothing speaks against it already.
    fn commit(&mut self) {
        let mut refusals = guard::refusals(&self.task, &self.seen, &self.collected);
        let proposal = Proposal {
            base_revision: self.revision.clone(),
            edit: ProposedEdit::Records(self.collected.clone()),
            sources: Vec::new(),
            commit_message: Some(message(self.task.purpose, &self.collected)),
            removed_blocks: Vec::new(),
        };
        match update::Request::new(proposal, &self.update_limits) {
            Ok(request) if refusals.is_empty() => {
                let submission = Submission {
                    request,
                    offered: self.offered(),
                    cited: self.cited(),
                    touched: self.collected.iter().flat_map(guard::touched).cloned().collect(),
                };
                self.state = State::Submitting(submission);
            }
            Ok(_) => self.refused(refusals),
            Err(faults) => {
                refusals.extend(faults.iter().map(Refusal::from));
                self.refused(refusals);
            }
        }
    }

    /// What blocks may newly rest on: the turns that were given, or what the blocks rest on that were shown.
    fn offered(&self) -> BTreeSet<SourceRef> {
        match self.task.purpose {
            Purpose::Writer => {
                let turns = self.task.turns.iter().filter(|turn| !turn.is_echo());
                handles(turns.map(|turn| turn.reference.as_str()))
            }
            Purpose::Organiser => handles(self.seen.sources()),
        }
    }

    fn cited(&self) -> Vec<String> {
        let cited: BTreeSet<&str> = self.collected.iter().filter_map(guard::said).flat_map(guard::rests_on).collect();
        let turns = self.task.turns.iter().map(|turn| &turn.reference);
        turns.filter(|reference| cited.contains(reference.as_str())).cloned().collect()
    }

    /// Changes that were refused go back once, with every reason.
    fn refused(&mut self, refusals: Vec<Refusal>) {
        if self.is_refused {
            return self.fail(Failure { refusals, ..Failure::of(Why::RefusedTwice) });
        }
        self.is_refused = true;
        self.collected.clear();
        let reasons: Vec<String> = refusals.iter().map(Refusal::to_string).collect();
        let text = format!(
            "Nothing was committed. changes[0] is the first change that you gave in any call since you began or were last refused. Every reason:\n{}\n\
             Give all changes again, corrected; they are refused for good if anything is wrong with them then.",
            reasons.join("\n")
        );
        self.tell(&text, Failure { refusals, ..Failure::of(Why::Rounds) });
    }

    fn end_without_progress(&mut self) {
        let reason = core::mem::take(&mut self.reason);
        self.end(Ending::NoProgress { reason }, Written::default(), &[], Vec::new());
    }

    fn fail(&mut self, failure: Failure) {
        self.end(Ending::Failed(failure), Written::default(), &[], Vec::new());
    }

    fn end(&mut self, ending: Ending, written: Written, cited: &[String], files: Vec<String>) {
        let is_cited: BTreeSet<&str> = cited.iter().map(String::as_str).collect();
        let turns = self.task.turns.iter().map(|turn| turn.reference.as_str());
        let uncited = turns.filter(|reference| !is_cited.contains(reference)).map(str::to_owned).collect();
        self.queue.clear();
        self.state = State::Done(Outcome {
            ending,
            given: self.task.given(),
            written,
            cited: cited.to_vec(),
            uncited,
            files,
            usage: self.usage,
            model: self.model.clone(),
        });
    }

    /// The outcome of a run that its caller breaks off, because something around it failed. Nothing of it is in memory. If it has ended
    /// by itself, its own.
    #[must_use]
    pub fn abandoned(&self, failure: WriterFailure, message: &str) -> Outcome {
        if let State::Done(outcome) = &self.state {
            return outcome.clone();
        }
        Outcome {
            ending: Ending::Failed(Failure { failure, ..Failure::of(Why::ToolFailed).about(message) }),
            given: self.task.given(),
            written: Written::default(),
            cited: Vec::new(),
            uncited: self.task.turns.iter().map(|turn| turn.reference.clone()).collect(),
            files: Vec::new(),
            usage: self.usage,
            model: self.model.clone(),
        }
    }
}

/// What goes back of a reply, and what is done of it: calls with an id of their own, so many at most. Outcomes are ours to give, empty text
/// is refused by some providers, and arguments that are no object by others: those go back as an object without members.
fn heard(parts: Vec<Part>, most: usize) -> (Vec<Part>, Vec<ToolCall>, usize) {
    let mut ids = BTreeSet::new();
    let (mut kept, mut calls, mut left_out) = (Vec::new(), Vec::new(), 0);
    for part in parts {
        match part {
            Part::Outcome(_) => {}
            Part::Text(text) if text.chars().all(is_whitespace) => {}
            Part::Text(_) | Part::Opaque(_) => kept.push(part),
            Part::Call(call) if call.id.is_empty() || !ids.insert(call.id.clone()) || calls.len() >= most => {
                left_out += 1
            }
            Part::Call(call) => {
                let arguments = if is_object(&call.arguments) { call.arguments.clone() } else { "{}".to_owned() };
                kept.push(Part::Call(ToolCall { arguments, ..call.clone() }));
                calls.push(call);
            }
        }
    }
    (kept, calls, left_out)
}

/// A text of memory as an answer: one line of JSON.
fn answer_text(path: &str, text: &str, cut_bytes: usize) -> String {
    let cut = if cut_bytes > 0 { format!(",\"cut_bytes\":{cut_bytes}") } else { String::new() };
    format!("{{\"path\":{},\"text\":{}{cut}}}", json_line(path), json_line(text))
}

/// Blocks as an answer, and how many of them did not fit.
fn blocks_answer(lines: String, left_out: usize) -> String {
    match (lines.is_empty(), left_out) {
        (true, 0) => "(none)".to_owned(),
        (_, 0) => lines,
        _ => format!("{lines}\n({left_out} more did not fit here. Ask for fewer, or for one by its id.)"),
    }
}

fn written(operations: &[ProposedOperation]) -> Written {
    let mut written = Written::default();
    for operation in operations {
        written.bytes += guard::said(operation).map_or(0, |record| record.content.len() as u64);
        match operation {
            ProposedOperation::Create { .. } => written.created += 1,
            ProposedOperation::Update { .. } => written.updated += 1,
            ProposedOperation::Delete { .. } => written.deleted += 1,
            ProposedOperation::Move { ids, .. } => written.moved += ids.len() as u64,
        }
    }
    written
}

/// What the history says.
fn message(purpose: Purpose, operations: &[ProposedOperation]) -> String {
    let Written { created, updated, deleted, moved, .. } = written(operations);
    let what = match purpose {
        Purpose::Writer => "Write memory",
        Purpose::Organiser => "Put memory in order",
    };
    let counts = [(created, "new"), (updated, "rewritten"), (deleted, "deleted"), (moved, "moved")];
    let told: Vec<String> =
        counts.iter().filter(|(count, _)| *count > 0).map(|(count, word)| format!("{count} {word}")).collect();
    format!("{what}: {}", told.join(", "))
}
