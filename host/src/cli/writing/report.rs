//! What writers and organisers came to, as JSON and as an exit code.
//!
//! The keys are a contract with scripts: more may be added, none changes.

use recollex::turns::{BatchReport, Ended, Failure as WriterFailure, Organised, Outcome, WriterState};
use serde::Serialize;

use crate::cli::failure::{Exit, Failure};
use crate::cli::views::{self, FindingView};

/// `recollex status`, `writer`.
#[derive(Serialize)]
#[cfg_attr(feature = "mcp", derive(schemars::JsonSchema))]
pub struct WriterView {
    /// `success`, `failure`
    last_outcome: Option<String>,
    last_success_at: Option<String>,
    last_failure: Option<LastFailureView>,
    /// Turns that the next writes write; none: it is not known where conversations are kept
    pending_turns: Option<u64>,
}

/// The last failure, also if others have succeeded since.
#[derive(Serialize)]
#[cfg_attr(feature = "mcp", derive(schemars::JsonSchema))]
struct LastFailureView {
    at: Option<String>,
    reason_code: String,
    retryable: bool,
}

impl WriterView {
    /// Of what the component says.
    pub fn new(state: WriterState, pending_turns: Option<u64>) -> Self {
        let WriterState { last_outcome, last_success_at, last_failure_at, last_failure } = state;
        let last_failure = last_failure.map(|failure| LastFailureView {
            at: last_failure_at,
            reason_code: failure.code,
            retryable: failure.retryable,
        });
        Self { last_outcome, last_success_at, last_failure, pending_turns }
    }

    /// In a line, for people.
    pub fn line(&self) -> String {
        let mut parts = Vec::new();
        match (self.last_outcome.as_deref(), &self.last_success_at, &self.last_failure) {
            (Some("failure"), _, Some(failure)) => {
                let at = failure.at.as_deref().unwrap_or("?");
                parts.push(format!("failed {at} ({})", failure.reason_code));
            }
            (Some(_), Some(at), _) => parts.push(format!("wrote last {at}")),
            _ => parts.push("has not written yet".to_owned()),
        }
        if let Some(turns) = self.pending_turns {
            parts.push(format!("{turns} turns pending"));
        }
        parts.join(", ")
    }
}

/// A writer's failure.
#[derive(Serialize)]
pub struct FailureView<'a> {
    reason_code: &'a str,
    retryable: bool,
    message: &'a str,
}

impl<'a> From<&'a WriterFailure> for FailureView<'a> {
    fn from(failure: &'a WriterFailure) -> Self {
        Self { reason_code: &failure.code, retryable: failure.retryable, message: &failure.message }
    }
}

/// What became of a batch.
#[derive(Serialize)]
pub struct BatchView<'a> {
    evidence: &'a [String],
    evidence_tokens: u64,
    uncited: &'a [String],
    topic_bytes: u64,
    changed_files: &'a [String],
    revision: &'a str,
    requests: u32,
    tokens_in: u64,
    tokens_out: u64,
    models: &'a [String],
}

impl<'a> From<&'a BatchReport> for BatchView<'a> {
    fn from(batch: &'a BatchReport) -> Self {
        Self {
            evidence: &batch.evidence,
            evidence_tokens: batch.evidence_tokens,
            uncited: &batch.uncited,
            topic_bytes: batch.topic_bytes,
            changed_files: &batch.changed_files,
            revision: &batch.revision,
            requests: batch.requests,
            tokens_in: batch.tokens_in,
            tokens_out: batch.tokens_out,
            models: &batch.models,
        }
    }
}

/// A step of putting memory in order.
#[derive(Serialize)]
pub struct OrganisedView<'a> {
    changed_files: &'a [String],
    revision: &'a str,
    notes: &'a [String],
    requests: u32,
    tokens_in: u64,
    tokens_out: u64,
    failure: Option<FailureView<'a>>,
}

impl<'a> From<&'a Organised> for OrganisedView<'a> {
    fn from(step: &'a Organised) -> Self {
        Self {
            changed_files: &step.changed_files,
            revision: &step.revision,
            notes: &step.notes,
            requests: step.requests,
            tokens_in: step.tokens_in,
            tokens_out: step.tokens_out,
            failure: step.failure.as_ref().map(FailureView::from),
        }
    }
}

/// What came of a conversation.
#[derive(Serialize)]
pub struct OutcomeView<'a> {
    session: &'a str,
    ok: bool,
    /// None where it is `ok`
    reason_code: Option<&'a str>,
    retryable: bool,
    message: Option<&'a str>,
    /// Somebody asked to stop before the end
    stopped: bool,
    /// Given to the writer
    turns: usize,
    /// Of those, cited by topics now
    cited: usize,
    marked: u64,
    batches: Vec<BatchView<'a>>,
    upkeep: Vec<OrganisedView<'a>>,
    findings: Vec<FindingView<'a>>,
}

impl<'a> From<&'a Outcome> for OutcomeView<'a> {
    fn from(outcome: &'a Outcome) -> Self {
        let failure = outcome.failure.as_ref();
        Self {
            session: &outcome.session,
            ok: failure.is_none(),
            reason_code: failure.map(|failure| &*failure.code),
            retryable: failure.is_some_and(|failure| failure.retryable),
            message: failure.map(|failure| &*failure.message),
            stopped: outcome.ended == Ended::Stopped,
            turns: outcome.batches.iter().map(|batch| batch.evidence.len()).sum(),
            cited: outcome.batches.iter().map(BatchReport::cited).sum(),
            marked: outcome.marked,
            batches: outcome.batches.iter().map(BatchView::from).collect(),
            upkeep: outcome.upkeep.iter().map(OrganisedView::from).collect(),
            findings: views::findings(&outcome.findings),
        }
    }
}

/// A writer's failure as that of a verb.
pub fn failure(failure: &WriterFailure) -> Failure {
    let told = Failure::writer(&failure.code, failure.message.clone());
    match failure.retryable {
        true => told.next("repeat the call: nothing is written twice"),
        false => told,
    }
}

/// Why a conversation failed, if it did; with the exit code of the error behind it.
pub fn failure_of(outcome: &Outcome) -> Option<Failure> {
    let told = failure(outcome.failure.as_ref()?).prefixed(&format!("{}: ", outcome.session));
    Some(match &outcome.error {
        Some(error) => told.exit(Exit(error.exit_code())),
        None => told,
    })
}
