//! `turns`: from conversations to memory, and what keeps memory in order.
//!
//! `conversation` takes nodes in and makes marks, `writing` has a model write, `organising` and `backfilling` have it put memory in
//! order and catch up, `files` are what turns leave behind. What is owed, what a model is told and what it may do, core says.

mod ask;
mod backfilling;
mod conversation;
mod files;
mod ground;
mod migration;
mod organising;
mod writing;

pub(crate) use ask::failed as model_failed;

use recollex_core::time::Zone;
use recollex_core::trust::Verb;
use recollex_core::turns::{Due, Handled, LastOutcome, SessionState, WriterCode, WriterFailure, WriterStatus, due};

use crate::Component;
use crate::bindings::exports::recollex::memory::turns as wit;
use crate::bindings::exports::recollex::memory::workspace::SessionBorrow;
use crate::change::{self, carry_out};
use crate::clock;
use crate::session::Session;

/// The session that something is asked of, if its caller may ask that.
fn of(session: &SessionBorrow<'_>) -> Result<Session, wit::Error> {
    let session: &Session = session.get();
    session.allow(Verb::Turns)?;
    Ok(session.clone())
}

impl wit::Guest for Component {
    type Conversation = conversation::Conversation;
    type Organising = organising::Organising;
    type Backfilling = backfilling::Backfilling;
    type Migration = migration::Migration;

    fn due(of: SessionBorrow<'_>, conversations: Vec<wit::ListedConversation>) -> Result<Vec<String>, wit::Error> {
        let session = self::of(&of)?;
        let (handled, _) = files::handled()?;
        let state = |one: &wit::ListedConversation| (one.id.clone(), one.updated_at, one.told);
        let states: Vec<(String, f64, bool)> = conversations.iter().map(state).collect();
        let states =
            states.iter().map(|(id, updated_at, told)| SessionState { id, updated_at: *updated_at, told: *told });
        let found: Vec<(SessionState<'_>, Due)> = due(states, &handled, &session.settings.turns, clock::seconds());
        Ok(found.into_iter().map(|(state, _)| state.id.to_owned()).collect())
    }

    fn settle(
        of: SessionBorrow<'_>,
        id: String,
        updated_at: Option<f64>,
        outcome: Option<wit::Failure>,
    ) -> Result<(), wit::Error> {
        let session = self::of(&of)?;
        let failure = outcome.map(|failure| WriterFailure {
            code: WriterCode::parse(&failure.code).unwrap_or(WriterCode::WriterFailureUnknown),
            retryable: failure.retryable,
        });
        let plan = || {
            let (mut handled, found) = files::handled()?;
            let outcome = failure.map_or(Ok(()), Err);
            let is_settled = updated_at.is_some_and(|at| handled.settle(&id, at, outcome));
            let mut changes: Vec<_> =
                if is_settled { found.change(Handled::PATH, handled.file()) } else { None }.into_iter().collect();
            // Best effort: what cannot be read is made anew.
            if let (status, Some(found)) = files::status() {
                let at = clock::now().iso(&Zone::utc());
                let status = match failure {
                    Some(failure) => status.failed(&at, failure),
                    None => status.succeeded(&at),
                };
                changes.extend(found.change(WriterStatus::PATH, status.file()));
            }
            Ok(change::Planned { changes, note: "how a write went".to_owned(), basis: () })
        };
        carry_out(&session, "settle", plan, |error| error).map(|_| ())
    }

    fn writer_status(of: SessionBorrow<'_>) -> Result<wit::WriterState, wit::Error> {
        self::of(&of)?;
        let (status, _) = files::status();
        Ok(wit::WriterState {
            last_outcome: status.last_outcome.map(|outcome| match outcome {
                LastOutcome::Success => "success".to_owned(),
                LastOutcome::Failure => "failure".to_owned(),
            }),
            last_success_at: status.last_success_at,
            last_failure_at: status.last_failure.as_ref().map(|last| last.at.clone()),
            last_failure: status.last_failure.map(|last| failure(last.failure)),
        })
    }

    fn salvage(
        of: SessionBorrow<'_>,
        messages: Vec<wit::Said>,
        model: Option<String>,
    ) -> Result<wit::Salvaged, wit::Error> {
        writing::salvage(&self::of(&of)?, &messages, model)
    }
}

/// A failure as callers see it.
fn failure(failure: WriterFailure) -> wit::Failure {
    wit::Failure {
        code: failure.code.as_str().to_owned(),
        retryable: failure.retryable,
        message: failure.code.what().to_owned(),
    }
}
