//! `recollex status`: figures and health.

use recollex::Session;
use recollex::types::{Counts, Health};
use recollex::workspace::Status;
use serde::Serialize;

use super::context::Context;
use super::core::{self, CoreStateView};
use super::failure::{Exit, Failure};
use super::terminal::{bytes, count};
use super::views::{self, CountsView, FindingView, LockView};
use super::writing::{WriterView, pending_turns};

/// The document of `--json`.
#[derive(Serialize)]
#[cfg_attr(feature = "mcp", derive(schemars::JsonSchema))]
pub struct Document<'a> {
    health: &'static str,
    workspace: Option<&'a str>,
    root: String,
    revision: &'a str,
    counts: CountsView,
    core: Option<CoreStateView<'a>>,
    /// How writes went; none: this caller may not know
    writer: Option<WriterView>,
    history: &'static str,
    lock: LockView<'a>,
    reasons: Vec<FindingView<'a>>,
}

/// Runs the verb.
pub fn run(context: &Context) -> Result<Exit, Failure> {
    let mut session = context.session()?;
    // What is wrong with topics is among the reasons below.
    context.notice_edits(&mut session);
    let status = context.time("status", || session.status())?;
    let writer = writer(context, &mut session);
    if context.out.json {
        context.out.document(&document(context, &status, writer));
    } else {
        render(context, &status, writer.as_ref());
    }
    for reason in &status.reasons {
        let place = place(reason.path.as_deref(), reason.line);
        context.warn(&format!("{place}{} [{}]", reason.message, reason.code));
    }
    Ok(match status.health {
        Health::Broken => Exit::BROKEN,
        Health::Off => Exit::OFF,
        Health::Empty => {
            if let Some(why) = context.nothing_there(&status) {
                context.hint(&why);
            }
            Exit::DONE
        }
        Health::Ok | Health::Degraded => Exit::DONE,
    })
}

/// The JSON document.
pub fn document<'a>(context: &Context, status: &'a Status, writer: Option<WriterView>) -> Document<'a> {
    Document {
        health: views::health(status.health),
        workspace: status.workspace.as_deref(),
        root: context.setup.workspace.display().to_string(),
        revision: &status.revision,
        counts: CountsView::from(&status.counts),
        core: status.core.as_ref().map(CoreStateView::from),
        writer,
        history: context.history(),
        lock: LockView::from(&status.lock),
        reasons: views::findings(&status.reasons),
    }
}

/// How writes went, and how much is owed. That it cannot be told keeps nobody from the rest.
pub fn writer(context: &Context, session: &mut Session) -> Option<WriterView> {
    let state = context.time("writer", || session.writer_status()).ok()?;
    let pending = context.time("pending", || pending_turns(context, session)).unwrap_or_else(|failure| {
        context.remarks.warn(&format!("how many turns are pending is not known: {}", failure.message));
        None
    });
    Some(WriterView::new(state, pending))
}

fn render(context: &Context, status: &Status, writer: Option<&WriterView>) {
    let out = &context.out;
    let look = out.look;
    let root = context.setup.workspace.display().to_string();
    let line = |name: &str, value: &str| out.line(&format!("{} {value}", look.faint(&format!("{name:<10}"))));
    line("health", &health(look, status.health));
    line("workspace", &format!("{}  {}", status.workspace.as_deref().unwrap_or("none"), look.foreign(&root)));
    line("revision", &status.revision);
    line("sources", &sources(&status.counts));
    line("topics", &topics(&status.counts));
    if let Some(core) = &status.core {
        line("core", &core::summary(core));
    }
    if let Some(writer) = writer {
        line("writer", &writer.line());
    }
    line(
        "lock",
        &match (status.lock.held, &status.lock.holder) {
            (false, _) => "free".to_owned(),
            (true, None) => "held".to_owned(),
            (true, Some(holder)) => format!("held by {}", look.foreign(holder)),
        },
    );
    line("history", context.history());
}

/// Health with its colour.
pub fn health(look: super::terminal::Look, health: Health) -> String {
    let word = views::health(health);
    match health {
        Health::Ok => look.good(word),
        Health::Empty => word.to_owned(),
        Health::Off | Health::Degraded => look.warning(word),
        Health::Broken => look.bad(word),
    }
}

/// `3 files, 52 records, 25.10 KiB`
pub fn sources(counts: &Counts) -> String {
    let mut text =
        format!("{}, {}", count(counts.source_files, "file", "files"), count(counts.frames, "record", "records"),);
    if let Some(legacy) = counts.legacy_records.filter(|n| *n > 0) {
        text.push_str(&format!(", {}", count(legacy, "older record", "older records")));
    }
    text.push_str(&format!(", {}", bytes(counts.bytes)));
    text
}

fn topics(counts: &Counts) -> String {
    let mut text = count(counts.topic_files, "file", "files");
    if let Some(blocks) = counts.blocks {
        text.push_str(&format!(", {}", count(blocks, "paragraph", "paragraphs")));
    }
    text
}

/// `path:line: `, or as much of it as is known.
pub fn place(path: Option<&str>, line: Option<u64>) -> String {
    match (path, line) {
        (Some(path), Some(line)) => format!("{path}:{line}: "),
        (Some(path), None) => format!("{path}: "),
        (None, Some(line)) => format!("line {line}: "),
        (None, None) => String::new(),
    }
}
