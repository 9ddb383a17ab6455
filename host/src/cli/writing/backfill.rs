//! `recollex backfill`: evidence that no topic cites, written into topics.

use recollex::Error;
use recollex::lock::LockError;
use recollex::turns::{Backfilled, WRITER_LOCK, WriterLock};
use serde::Serialize;

use super::args::Backfill;
use super::report::{BatchView, FailureView, failure};
use super::stopping::Stopping;
use crate::cli::context::Context;
use crate::cli::failure::{Exit, Failure};
use crate::cli::output::Unit;
use crate::cli::terminal::count;

#[derive(Serialize)]
struct Document<'a> {
    ok: bool,
    dry_run: bool,
    stopped: bool,
    candidates: u64,
    processed: u64,
    remaining: u64,
    batches: Vec<BatchView<'a>>,
    failure: Option<FailureView<'a>>,
}

/// Runs the verb.
pub fn run(args: &Backfill, context: &Context) -> Result<Exit, Failure> {
    let mut session = context.session()?;
    let stopping = Stopping::listen(&session)?;
    // Who writes turns has evidence that nothing rests on yet: it would be written by both.
    let lock = match args.dry_run || context.is_absent() {
        true => None,
        false => match WriterLock::acquire(&context.setup.workspace, WRITER_LOCK, context.setup.lock_wait_ms()?) {
            Ok(lock) => Some(lock),
            Err(LockError::Held(_)) => {
                return Err(Failure::locked("another program is writing turns into this memory"));
            }
            Err(error) => return Err(error.into()),
        },
    };
    let mut backfilling = session.backfill(args.model.as_deref())?;
    let mut last = backfilling.outlook(&mut session)?;
    let mut batches = Vec::new();
    let mut stopped = false;
    let progress = context.remarks.progress("backfill", last.candidates, Unit::Other);
    while !args.dry_run && last.more && last.failure.is_none() {
        if stopping.asked() {
            stopped = true;
            break;
        }
        match backfilling.step(&mut session) {
            Ok(step) => {
                progress.at(step.processed, step.candidates);
                let Backfilled { batch, .. } = &step;
                batches.extend(batch.clone());
                last = step;
            }
            Err(Error::Cancelled) => {
                stopped = true;
                break;
            }
            Err(error) => return Err(Failure::from(error).next("what was written stays; repeating the call goes on")),
        }
    }
    drop(progress);
    drop(lock);
    let failed = last.failure.as_ref().map(failure);
    if context.out.json {
        context.out.document(&Document {
            ok: failed.is_none(),
            dry_run: args.dry_run,
            stopped,
            candidates: last.candidates,
            processed: last.processed,
            remaining: last.remaining,
            batches: batches.iter().map(BatchView::from).collect(),
            failure: last.failure.as_ref().map(FailureView::from),
        });
    } else if args.dry_run {
        context.out.line(&format!("{} that no topic cites", count(last.candidates, "record", "records")));
    } else {
        let offered = count(last.processed, "record was", "records were");
        let left = count(last.remaining, "is", "are");
        context.out.line(&format!("{offered} given to the writer; {left} cited by nothing still"));
    }
    match failed {
        _ if stopped => Ok(stopping.exit()),
        None => Ok(Exit::DONE),
        Some(failure) if context.out.json => {
            context.remarks.failure(&failure);
            Ok(failure.exit)
        }
        Some(failure) => Err(failure),
    }
}
