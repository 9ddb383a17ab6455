//! `recollex timeline`: claims by the time of their evidence.

use recollex::workspace::TimelineEntry;
use serde::Serialize;

use super::args::Timeline;
use super::context::Context;
use super::failure::{Exit, Failure};
use super::terminal::one_line;

#[derive(Serialize)]
struct Document<'a> {
    entries: Vec<Entry<'a>>,
    truncated: bool,
}

#[derive(Serialize)]
struct Entry<'a> {
    time: &'a str,
    text: &'a str,
    block: &'a str,
    path: &'a str,
    headings: &'a [String],
    evidence: &'a [String],
}

impl<'a> From<&'a TimelineEntry> for Entry<'a> {
    fn from(entry: &'a TimelineEntry) -> Self {
        let TimelineEntry { time, text, block, path, headings, evidence } = entry;
        Self { time, text, block, path, headings, evidence }
    }
}

/// Runs the verb.
pub fn run(args: &Timeline, context: &Context) -> Result<Exit, Failure> {
    let mut session = context.reading_session()?;
    let (from, to) = (args.from.as_deref(), args.to.as_deref());
    let page = context.time("timeline", || session.timeline(from, to, args.max.unwrap_or(0)))?;
    let out = &context.out;
    if out.json {
        out.document(&Document { entries: page.entries.iter().map(Entry::from).collect(), truncated: page.truncated });
    } else {
        for entry in &page.entries {
            let place = format!("{}  ^{}", one_line(&entry.path), one_line(&entry.block));
            let text = out.look.foreign(&one_line(&entry.text));
            out.line(&format!("{}  {text}  {}", entry.time, out.look.faint(&out.look.foreign(&place))));
        }
    }
    if page.truncated {
        context.hint("There are more claims. Show more with --max N, or narrow it with --from and --to.");
    }
    Ok(if page.entries.is_empty() { Exit::NOTHING } else { Exit::DONE })
}
