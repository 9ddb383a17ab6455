//! `recollex sleep`: puts memory in order.

use recollex::turns::{Ended, Organised, Upkeep, organise};
use serde::Serialize;

use super::args::Sleep;
use super::report::{OrganisedView, failure};
use super::stopping::Stopping;
use crate::cli::context::Context;
use crate::cli::failure::{Exit, Failure};
use crate::cli::terminal::count;

#[derive(Serialize)]
struct Document<'a> {
    ok: bool,
    stopped: bool,
    changed_files: Vec<&'a str>,
    steps: Vec<OrganisedView<'a>>,
}

/// Runs the verb.
pub fn run(args: &Sleep, context: &Context) -> Result<Exit, Failure> {
    let mut session = context.session()?;
    let stopping = Stopping::listen(&session)?;
    let what = if args.recent { Upkeep::Recent } else { Upkeep::Whole };
    let mut steps: Vec<Organised> = Vec::new();
    let ended = context.time("sleep", || {
        organise(&mut session, what, args.model.as_deref(), &|| stopping.asked(), &mut |step| {
            if !context.out.json {
                tell(step, context);
            }
            steps.push(step.clone());
        })
    })?;
    let failed = steps.iter().find_map(|step| step.failure.as_ref()).map(failure);
    let mut files: Vec<&str> = steps.iter().flat_map(|step| &step.changed_files).map(String::as_str).collect();
    files.sort_unstable();
    files.dedup();
    let changed = files.len() as u64;
    if changed > 0 {
        context.out.stands(format!("{} changed", count(changed, "file was", "files were")));
    }
    if context.out.json {
        context.out.document(&Document {
            ok: failed.is_none(),
            stopped: ended == Ended::Stopped,
            changed_files: files,
            steps: steps.iter().map(OrganisedView::from).collect(),
        });
    } else if failed.is_none() && ended == Ended::Done {
        context.hint(&match changed {
            0 => "Nothing was changed.".to_owned(),
            n => format!("{} changed.", count(n, "file was", "files were")),
        });
    }
    match (ended, failed) {
        (Ended::Stopped, _) => Ok(stopping.exit()),
        (Ended::Done, None) => Ok(Exit::DONE),
        (Ended::Done, Some(failure)) if context.out.json => {
            context.remarks.failure(&failure);
            Ok(failure.exit)
        }
        (Ended::Done, Some(failure)) => Err(failure),
    }
}

/// A step, as it is done.
pub fn tell(step: &Organised, context: &Context) {
    let look = context.out.look;
    for file in &step.changed_files {
        context.out.line(&look.foreign(file));
    }
    for note in &step.notes {
        context.remarks.hint(note);
    }
}
