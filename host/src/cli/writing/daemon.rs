//! `recollex daemon`: looks for conversations that have stopped, and puts memory in order at night, in the foreground.
//!
//! Knows when to look and when to end. Whether a conversation has stopped is the component's to say.

use std::time::{Duration, SystemTime};

use recollex::Session;
use recollex::lock::LockError;
use recollex::turns::{
    DriveOptions, Ended, Nightly, Outcome, Trigger, Upkeep, WATCH_LOCK, Watch, WatchError, WriterLock, organise,
};
use serde::Serialize;

use super::args::{self, Daemon};
use super::report::{OrganisedView, OutcomeView};
use super::sessions::{Sessions, unavailable};
use super::sleep;
use super::stopping::Stopping;
use crate::cli::context::Context;
use crate::cli::failure::{Exit, Failure, FailureBody};
use crate::cli::terminal::count;

/// A line of `--json`.
#[derive(Serialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
enum Line<'a> {
    /// What came of a conversation
    Conversation(OutcomeView<'a>),
    /// A step of the night's work
    Sleep(OrganisedView<'a>),
    /// A look came to nothing
    Failure { error: FailureBody<'a> },
    /// What came of a look
    Round { conversations: u64, looked_at: u64, failed: u64, put_off: u64, unavailable: u64 },
}

/// Runs the verb.
pub fn run(args: &Daemon, context: &Context) -> Result<Exit, Failure> {
    let mut session = context.session()?;
    let sessions = Sessions::of(&args.sessions, context)?;
    let setup = &context.setup.daemon;
    let zone = context.setup.time_zone.as_ref().map(|(name, _)| name.as_str());
    let nightly = match setup.nightly.as_deref() {
        Some("off") => None,
        at => Some(Nightly::new(at.unwrap_or(NIGHTLY), zone).ok_or_else(|| {
            let said = at.unwrap_or_default();
            Failure::usage("invalid-setting", format!("`nightly` takes a time of day (`HH:MM`) or `off`, not `{said}`"))
        })?),
    };
    let _lock = WriterLock::acquire(&context.setup.workspace, WATCH_LOCK, 0).map_err(|error| match error {
        LockError::Held(_) => Failure::locked("another program watches over this memory already"),
        LockError::Denied(_) if context.is_absent() => Failure::no_workspace("watch over", &context.setup.workspace),
        error => error.into(),
    })?;
    let stopping = Stopping::listen(&session)?;
    let options = sessions.options(&args::Heads::default(), args.model.as_deref(), context)?;
    let watch = Watch { options: DriveOptions { trigger: Trigger::Everything, ..options } };
    let work = Work { context, sessions: &sessions, watch, stopping: &stopping };
    if args.once {
        return work.round(&mut session);
    }
    let poll = Duration::from_secs(setup.poll_s.unwrap_or(POLL_S));
    context.remarks.hint(&format!(
        "Watching {} for {}, every {} seconds. Ctrl-C ends it.",
        sessions.path.display(),
        context.setup.workspace.display(),
        poll.as_secs()
    ));
    let mut since = SystemTime::now();
    loop {
        if let Err(failure) = work.round(&mut session) {
            // What is wrong now may be put right while this goes on.
            work.failed(&failure);
        }
        if let Some(nightly) = &nightly
            && !stopping.asked()
            && nightly.is_due(since, SystemTime::now())
        {
            since = SystemTime::now();
            work.night(&mut session, args.model.as_deref());
        }
        context.out.flush();
        if stopping.wait(poll) {
            context.remarks.hint("Ended.");
            return Ok(Exit::DONE);
        }
    }
}

/// When memory is put in order where nobody says.
const NIGHTLY: &str = "03:00";
/// Seconds between two looks where nobody says.
const POLL_S: u64 = 300;

struct Work<'a> {
    context: &'a Context,
    sessions: &'a Sessions,
    watch: Watch,
    stopping: &'a Stopping,
}

impl Work<'_> {
    fn round(&self, session: &mut Session) -> Result<Exit, Failure> {
        let context = self.context;
        let mut told = |outcome: &Outcome| {
            if context.out.json {
                context.out.document(&Line::Conversation(OutcomeView::from(outcome)));
            } else if outcome.failure.is_some() {
                context.warn(&outcome.to_string());
            } else if !outcome.is_silent() {
                context.out.line(&outcome.to_string());
            }
        };
        let workspace = Some(context.setup.workspace.as_path());
        let store = &*self.sessions.store;
        let round = self.watch.round(session, store, workspace, &|| self.stopping.asked(), &mut told);
        let round = round.map_err(|error| match error {
            WatchError::Store(fault) => unavailable(&fault),
            WatchError::Session(error) => error.into(),
        })?;
        let failed = round.outcomes.iter().filter(|outcome| outcome.failure.is_some()).count() as u64;
        if context.out.json {
            context.out.document(&Line::Round {
                conversations: round.conversations,
                looked_at: round.outcomes.len() as u64,
                failed,
                put_off: round.put_off,
                unavailable: round.faults.len() as u64,
            });
        }
        if round.put_off > 0 {
            let waiting = count(round.put_off, "conversation waits", "conversations wait");
            context.warn(&format!("{waiting} for the next look, because the model fails"));
        }
        Ok(match round.ended {
            Ended::Stopped => self.stopping.exit(),
            Ended::Done if failed > 0 || !round.faults.is_empty() => Exit::NOTHING,
            Ended::Done => Exit::DONE,
        })
    }

    fn night(&self, session: &mut Session, model: Option<&str>) {
        let context = self.context;
        let result = organise(session, Upkeep::Whole, model, &|| self.stopping.asked(), &mut |step| {
            if context.out.json {
                context.out.document(&Line::Sleep(OrganisedView::from(step)));
            } else {
                sleep::tell(step, context);
            }
            if let Some(failure) = &step.failure {
                context.warn(&format!("memory was not put in order: {}: {}", failure.code, failure.message));
            }
        });
        if let Err(error) = result {
            self.failed(&error.into());
        }
    }

    fn failed(&self, failure: &Failure) {
        if self.context.out.json {
            self.context.out.document(&Line::Failure { error: failure.body() });
        }
        self.context.out.flush();
        self.context.remarks.failure(failure);
    }
}
