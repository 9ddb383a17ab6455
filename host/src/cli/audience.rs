//! `recollex audience`: what of a workspace only its owner sees.

use serde::Serialize;

use super::args::{Audience, AudienceAction};
use super::context::Context;
use super::failure::{Exit, Failure};
use super::terminal::{count, one_line};

#[derive(Serialize)]
struct Listed<'a> {
    owner_only: &'a [String],
}

#[derive(Serialize)]
struct Changed<'a> {
    prefix: &'a str,
    changed: bool,
    files: u64,
}

/// Runs the verb.
pub fn run(args: &Audience, context: &Context) -> Result<Exit, Failure> {
    let mut session = context.session()?;
    let (change, is_narrower) = match args.action.as_ref().unwrap_or(&AudienceAction::List) {
        AudienceAction::List => {
            let audience = session.audience()?;
            list(context, &audience.owner_only);
            return Ok(Exit::DONE);
        }
        AudienceAction::Narrow { prefix } => (session.narrow_audience(prefix)?, true),
        AudienceAction::Widen { prefix } => (session.widen_audience(prefix)?, false),
    };
    if context.out.json {
        context.out.document(&Changed { prefix: &change.prefix, changed: change.changed, files: change.files });
    } else {
        let prefix = context.out.look.foreign(&one_line(&change.prefix));
        let files = count(change.files, "file", "files");
        context.out.line(&match (change.changed, is_narrower) {
            (true, true) => format!("only the owner sees {prefix} from now on ({files})"),
            (true, false) => format!("everybody who may read sees {prefix} again ({files})"),
            (false, true) => format!("only the owner sees {prefix} already ({files})"),
            (false, false) => format!("nothing is narrowed at {prefix} ({files})"),
        });
    }
    if is_narrower && change.files == 0 {
        context.warn("nothing lies there now; if it should, look at the spelling: recollex browse");
    }
    if is_narrower && change.changed {
        context.hint(
            "While anything is narrowed, paired callers see only sources/: topics and what is made of them may tell of anything.",
        );
    }
    Ok(Exit::DONE)
}

fn list(context: &Context, owner_only: &[String]) {
    if context.out.json {
        context.out.document(&Listed { owner_only });
        return;
    }
    for prefix in owner_only {
        context.out.line(&context.out.look.foreign(&one_line(prefix)));
    }
    if owner_only.is_empty() {
        context.hint("Nothing is narrowed: whoever may read sees everything.");
    }
}
