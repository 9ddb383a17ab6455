//! `recollex promote`: vouches for pending records, after showing who said what.

use std::io::{IsTerminal as _, Write as _};

use recollex::types::SourceRecord;
use recollex::workspace::Excerpt;
use recollex::{Error, Session};
use serde::Serialize;

use super::args::Promote;
use super::context::Context;
use super::failure::{Exit, Failure};
use super::terminal::{count, escape_line, one_line};
use super::views::SpeakerView;

/// So many lines of a record are shown before the question.
const SHOWN_LINES: u32 = 12;

#[derive(Serialize)]
struct Document<'a> {
    dry_run: bool,
    records: Vec<Row<'a>>,
    revision: Option<&'a str>,
}

#[derive(Serialize)]
struct Row<'a> {
    id: &'a str,
    path: &'a str,
    line: u64,
    speaker: Option<SpeakerView<'a>>,
    time: &'a str,
    /// Vouched for now; with `dry_run`: it would be.
    promoted: bool,
}

/// A call that stopped: what was done, and why no more.
#[derive(Serialize)]
struct Stopped<'a> {
    #[serde(flatten)]
    document: Document<'a>,
    #[serde(flatten)]
    failure: super::failure::FailureDocument<'a>,
}

/// A record that was asked for, and its beginning.
struct Asked {
    record: SourceRecord,
    excerpt: Excerpt,
    promoted: bool,
}

/// Runs the verb.
pub fn run(args: &Promote, context: &Context) -> Result<Exit, Failure> {
    context.owner_only("promote")?;
    let mut session = context.session()?;
    let mut asked = args.ids.iter().map(|id| find(id, &args.ids, &mut session)).collect::<Result<Vec<_>, _>>()?;
    // What would be refused is refused before anything is asked or done.
    for asked in &mut asked {
        let would = context.time("would-promote", || session.would_promote(&asked.record.id));
        asked.promoted = would.map_err(|error| about(&args.ids, &asked.record.id, error))?.promoted;
    }
    if args.dry_run {
        finish(context, &asked, None, true);
        return Ok(Exit::DONE);
    }
    if !args.yes && asked.iter().any(|asked| asked.promoted) {
        confirm(&asked, context)?;
    }
    asked.iter_mut().for_each(|asked| asked.promoted = false);
    let mut revision = None;
    for at in 0..asked.len() {
        let Some(next) = asked.get_mut(at) else { break };
        match context.time("promote", || session.promote(&next.record.id)) {
            Ok(promotion) => {
                next.promoted = promotion.promoted;
                revision = Some(promotion.revision);
                context.out.stands(format!("{} for good", summary(&asked)));
            }
            Err(error) => {
                let failure = about(&args.ids, &next.record.id, error);
                let done = asked.get(..at).unwrap_or_default();
                if done.is_empty() {
                    return Err(failure);
                }
                context.hint(&format!("Before that: {}. Repeating the call is safe.", summary(done)));
                if !context.out.json {
                    return Err(failure);
                }
                let document = document(done, revision.as_deref(), false);
                context.out.document(&Stopped { document, failure: failure.document() });
                context.remarks.failure(&failure);
                return Ok(failure.exit);
            }
        }
    }
    finish(context, &asked, revision.as_deref(), false);
    Ok(Exit::DONE)
}

/// The record with that id, or at that `path#anchor`.
fn find(id: &str, all: &[String], session: &mut Session) -> Result<Asked, Failure> {
    let mut excerpt = session.get(id, None, SHOWN_LINES).map_err(|error| about(all, id, error))?;
    match excerpt.record.take() {
        Some(record) => Ok(Asked { record, excerpt, promoted: false }),
        None => Err(Failure::usage("not-a-record", format!("{} is a file, not a record", escape_line(id)))
            .next("give the id of a record: recollex search shows them")),
    }
}

/// What failed for one record; of several, which.
fn about(all: &[String], id: &str, error: Error) -> Failure {
    let failure = Failure::from(error);
    if all.len() > 1 { failure.prefixed(&format!("{}: ", escape_line(id))) } else { failure }
}

/// Shows who said what, and asks.
fn confirm(asked: &[Asked], context: &Context) -> Result<(), Failure> {
    let pending = || asked.iter().filter(|asked| asked.promoted);
    let what = format!("{} would be vouched for", count(pending().count() as u64, "record", "records"));
    if !std::io::stdin().is_terminal() || !std::io::stderr().is_terminal() {
        return Err(Failure::usage("unconfirmed", what).next("look at it with recollex get; if it is meant: --yes"));
    }
    context.out.flush();
    let mut stderr = std::io::stderr().lock();
    let mut show = || -> std::io::Result<()> {
        for asked in pending() {
            writeln!(stderr, "{}", escape_line(&who(&asked.record)))?;
            for line in &asked.excerpt.lines {
                writeln!(stderr, "    {}", escape_line(&line.text))?;
            }
            if asked.excerpt.next_line.is_some() {
                writeln!(stderr, "    …")?;
            }
        }
        write!(stderr, "From now on this may be built on. Vouch for it? [y/N] ")?;
        stderr.flush()
    };
    let mut answer = String::new();
    // What cannot be shown or asked is no.
    if show().and_then(|()| std::io::stdin().read_line(&mut answer)).is_ok()
        && matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes")
    {
        return Ok(());
    }
    Err(Failure::usage("unconfirmed", "nothing was done").exit(Exit::REFUSED))
}

/// Whose words these are, as far as the runtime vouches for it. A label alone is only what the text says.
fn who(record: &SourceRecord) -> String {
    let speaker = match &record.speaker {
        Some(speaker) => one_line(&speaker.label),
        None => format!("{} (no speaker recorded)", one_line(&record.label)),
    };
    let kind = if record.kind == "unknown" { String::new() } else { format!(", {}", one_line(&record.kind)) };
    format!("{}: {speaker}{kind}", one_line(&record.id))
}

fn document<'a>(asked: &'a [Asked], revision: Option<&'a str>, dry_run: bool) -> Document<'a> {
    let row = |asked: &'a Asked| Row {
        id: &asked.record.id,
        path: &asked.record.path,
        line: asked.record.line,
        speaker: asked.record.speaker.as_ref().map(SpeakerView::from),
        time: &asked.record.time,
        promoted: asked.promoted,
    };
    Document { dry_run, records: asked.iter().map(row).collect(), revision }
}

fn summary(asked: &[Asked]) -> String {
    let promoted = asked.iter().filter(|asked| asked.promoted).count() as u64;
    format!("{} vouched for", count(promoted, "record", "records"))
}

fn finish(context: &Context, asked: &[Asked], revision: Option<&str>, dry_run: bool) {
    if context.out.json {
        context.out.document(&document(asked, revision, dry_run));
        return;
    }
    let look = context.out.look;
    for asked in asked {
        let outcome = match (asked.promoted, dry_run) {
            (true, false) => look.good("trusted now"),
            (true, true) => "would be trusted".to_owned(),
            (false, _) => look.faint("trusted already"),
        };
        context.out.line(&format!("{}  {outcome}", look.foreign(&who(&asked.record))));
    }
}
