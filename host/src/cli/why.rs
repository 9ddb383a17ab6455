//! `recollex why`: a claim, and what it rests on.

use recollex::types::Trust;
use recollex::workspace::{Account, Backlink, Citation, CitedSource};
use serde::Serialize;

use super::args::Why;
use super::context::Context;
use super::failure::{Exit, Failure};
use super::output::Output;
use super::terminal::one_line;
use super::views::{self, RecordView};

/// So much of what was said is shown with each source.
const SHOWN_LINES: u32 = 3;

#[derive(Serialize)]
struct Document<'a> {
    block: &'a str,
    merged: &'a [String],
    path: &'a str,
    line: u64,
    headings: &'a [String],
    text: &'a str,
    sound: bool,
    trust: &'static str,
    citations: Vec<CitationView<'a>>,
    links: &'a [String],
    linked_from: Vec<BacklinkView<'a>>,
}

#[derive(Serialize)]
struct CitationView<'a> {
    label: &'a str,
    time: Option<&'a str>,
    quote: &'a str,
    sources: Vec<SourceView<'a>>,
}

#[derive(Serialize)]
struct SourceView<'a> {
    label: &'a str,
    target: &'a str,
    id: Option<&'a str>,
    record: Option<RecordView<'a>>,
    after: Option<&'a str>,
    trust: &'static str,
}

#[derive(Serialize)]
struct BacklinkView<'a> {
    block: &'a str,
    path: &'a str,
}

/// Runs the verb.
pub fn run(args: &Why, context: &Context) -> Result<Exit, Failure> {
    let mut session = context.reading_session()?;
    let block = args.block.trim_start_matches('^');
    let account = context.time("why", || session.why(block))?;
    if context.out.json {
        context.out.document(&document(&account));
        return Ok(Exit::DONE);
    }
    let mut said = |source: &CitedSource| {
        let id = source.record.as_ref().map(|record| record.id.clone())?;
        let excerpt = session.get(&id, None, SHOWN_LINES).ok()?;
        Some(excerpt.lines.into_iter().map(|line| line.text).collect::<Vec<_>>())
    };
    render(&context.out, &account, &mut said);
    Ok(Exit::DONE)
}

fn document(account: &Account) -> Document<'_> {
    Document {
        block: &account.block,
        merged: &account.merged,
        path: &account.path,
        line: account.line,
        headings: &account.headings,
        text: &account.text,
        sound: account.sound,
        trust: views::trust(account.trust),
        citations: account.citations.iter().map(citation).collect(),
        links: &account.links,
        linked_from: account.linked_from.iter().map(|Backlink { block, path }| BacklinkView { block, path }).collect(),
    }
}

fn citation(citation: &Citation) -> CitationView<'_> {
    CitationView {
        label: &citation.label,
        time: citation.time.as_deref(),
        quote: &citation.quote,
        sources: citation.sources.iter().map(source).collect(),
    }
}

fn source(source: &CitedSource) -> SourceView<'_> {
    SourceView {
        label: &source.label,
        target: &source.target,
        id: source.id.as_deref(),
        record: source.record.as_ref().map(RecordView::from),
        after: source.after.as_deref(),
        trust: views::trust(source.trust),
    }
}

/// The claim; below it each source with who said it, when, and how far it may be built on.
fn render(out: &Output, account: &Account, said: &mut dyn FnMut(&CitedSource) -> Option<Vec<String>>) {
    let look = out.look;
    out.line(&look.strong(&look.foreign(&account.text)));
    let mut place = format!("{}:{}  ^{}", account.path, account.line, account.block);
    if !account.headings.is_empty() {
        place.push_str(&format!("  {}", account.headings.join(" > ")));
    }
    out.line(&look.faint(&look.foreign(&one_line(&place))));
    if !account.sound {
        out.line(&look.warning("something is wrong with it: recollex verify says what"));
    }
    for citation in &account.citations {
        let time = citation.time.as_deref().unwrap_or("undated");
        out.line(&format!("\n{}  {}", time, look.foreign(&one_line(&citation.quote))));
        for source in &citation.sources {
            out.line(&format!("  {}", whose(out, source)));
            for line in said(source).unwrap_or_default() {
                out.line(&format!("    {}", look.foreign(&line)));
            }
        }
    }
    if !account.linked_from.is_empty() {
        out.line("\nlinked from");
        for Backlink { block, path } in &account.linked_from {
            out.line(&format!("  {}", look.foreign(&one_line(&format!("{path}  ^{block}")))));
        }
    }
}

fn whose(out: &Output, source: &CitedSource) -> String {
    let look = out.look;
    let trust = match source.trust {
        Trust::Trusted => look.good("trusted"),
        Trust::Pending => look.warning("pending"),
    };
    let Some(record) = &source.record else {
        let target = look.foreign(&one_line(&source.target));
        return format!("{} {target}", look.bad("no such record:"));
    };
    let who = match &record.speaker {
        Some(speaker) if speaker.trusted => look.foreign(&one_line(&speaker.label)),
        Some(speaker) => format!("{} {}", look.foreign(&one_line(&speaker.label)), look.warning("(unconfirmed)")),
        None => look.foreign(&one_line(&record.label)),
    };
    let after = source.after.as_deref().map(|after| format!(", on the branch behind {after}")).unwrap_or_default();
    let rest = one_line(&format!("{}  {}{after}", record.time, record.id));
    format!("{who}  {trust}  {}", look.faint(&look.foreign(&rest)))
}
