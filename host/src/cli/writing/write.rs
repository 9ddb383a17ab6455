//! `recollex write`: a conversation has just stopped, and what is due of it becomes memory.

use std::io::{IsTerminal as _, Read as _};

use recollex::turns::{Drive, DriveOptions, Ended, Listed, Trigger};
use serde::Deserialize;

use super::args::Write;
use super::report::{OutcomeView, failure_of};
use super::sessions::Sessions;
use super::stopping::Stopping;
use crate::cli::args::Verb;
use crate::cli::context::Context;
use crate::cli::failure::{Exit, Failure};
use crate::cli::input;

/// The longest word of a hook that is read, in bytes.
const HOOK_BYTES_MAX: u64 = 1 << 20;

/// Whether this is a call that a hook made, whose exit code is 0 whatever happens.
pub fn hook(verb: &Verb) -> bool {
    matches!(verb, Verb::Write(args) if args.hook)
}

/// Runs the verb.
pub fn run(args: &Write, context: &Context) -> Result<Exit, Failure> {
    // Memory that is off is told before anything is looked at.
    let mut session = context.session()?;
    let sessions = Sessions::of(&args.sessions, context)?;
    let id = match &args.session {
        Some(id) => id.clone(),
        None if args.hook => told_by_hook()?,
        None => return Err(missing()),
    };
    let mut listing = sessions.chosen(Some(&id))?;
    let Some(of) = listing.conversations.pop() else { return Err(missing()) };
    let of = Listed { told: true, ..of };
    let trigger = if args.force { Trigger::Everything } else { Trigger::Due };
    let options = DriveOptions { trigger, ..sessions.options(&args.heads, args.model.as_deref(), context)? };
    let stopping = Stopping::listen(&session)?;
    let stop = || stopping.asked();
    let workspace = Some(context.setup.workspace.as_path());
    let outcome = context
        .time("write", || Drive::new(&mut session, &*sessions.store, workspace).stop(&stop).write(&of, &options));
    if !outcome.batches.is_empty() {
        context.out.stands("what was written stays");
    }
    if context.out.json && !(args.hook && outcome.is_silent()) {
        context.out.document(&OutcomeView::from(&outcome));
    }
    if outcome.ended == Ended::Stopped {
        return Ok(stopping.exit());
    }
    if let Some(failure) = failure_of(&outcome) {
        if context.out.json {
            // The document has said it.
            context.remarks.failure(&failure);
            return Ok(failure.exit);
        }
        return Err(failure);
    }
    if !context.out.json && !args.hook {
        if outcome.is_silent() {
            context.hint("Nothing is due. To write all that is owed: --force");
        } else {
            context.out.line(&outcome.to_string());
        }
    }
    Ok(Exit::DONE)
}

fn missing() -> Failure {
    Failure::writer("MISSING_SESSION_ID", "nobody said which conversation").next("name it: --session ID")
}

/// The conversation that a hook's word on stdin names: agents hand `{"session_id":…}` to their hooks.
fn told_by_hook() -> Result<String, Failure> {
    #[derive(Deserialize)]
    struct Word {
        #[serde(alias = "session")]
        session_id: String,
    }
    let stdin = input::stdin()?;
    if stdin.is_terminal() {
        return Err(missing());
    }
    let mut word = Vec::new();
    stdin
        .take(HOOK_BYTES_MAX)
        .read_to_end(&mut word)
        .map_err(|error| Failure::usage("unreadable-input", format!("stdin cannot be read: {error}")))?;
    serde_json::from_slice(&word).map(|Word { session_id }| session_id).map_err(|_| missing())
}
