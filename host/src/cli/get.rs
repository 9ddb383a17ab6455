//! `recollex get`: reads a file or a record.

use recollex::types::{SourceRecord, Trust};
use recollex::workspace::Excerpt;
use serde::Serialize;

use super::args::Get;
use super::context::Context;
use super::failure::{Exit, Failure};
use super::output::Output;
use super::terminal::{Look, one_line};
use super::views::{LineView, RecordView};

#[derive(Serialize)]
struct Document<'a> {
    path: &'a str,
    record: Option<RecordView<'a>>,
    lines: Vec<LineView<'a>>,
    next_line: Option<u64>,
}

/// Runs the verb.
pub fn run(args: &Get, context: &Context) -> Result<Exit, Failure> {
    let mut session = context.session()?;
    let excerpt = context
        .time("get", || session.get(&args.target, args.from_line, args.lines.unwrap_or(0)))
        .map_err(|error| nowhere(context, error.into()))?;
    if context.out.json {
        context.out.document(&Document {
            path: &excerpt.path,
            record: excerpt.record.as_ref().map(RecordView::from),
            lines: excerpt.lines.iter().map(LineView::from).collect(),
            next_line: excerpt.next_line,
        });
    } else {
        render(&context.out, &excerpt);
    }
    if let Some(line) = excerpt.lines.iter().find(|line| line.cut) {
        context.warn(&cut(&args.target, line.number));
    }
    if let Some(next) = excerpt.next_line {
        context.hint(&format!("There is more: recollex get {} --from-line {next}", quoted(&args.target)));
    }
    Ok(Exit::DONE)
}

/// Nothing has that name where there is no workspace, whatever the name.
fn nowhere(context: &Context, failure: Failure) -> Failure {
    if failure.exit == Exit::NOTHING && context.is_absent() {
        Failure::no_workspace("read", &context.setup.workspace)
    } else {
        failure
    }
}

/// A line that is shown in part must not pass for a whole one.
fn cut(target: &str, line: u64) -> String {
    format!(
        "only the beginning of line {line} is shown. All of it: recollex get {} --from-line {line} --set get.bytes=N",
        quoted(target)
    )
}

/// The text; on a terminal with numbers, and what is known of the record above it.
fn render(out: &Output, excerpt: &Excerpt) {
    let look = out.look;
    if !look.terminal {
        excerpt.lines.iter().for_each(|line| out.line(&line.text));
        return;
    }
    if let Some(record) = &excerpt.record {
        out.line(&head(look, record));
    }
    let digits = excerpt.lines.last().map_or(1, |line| line.number.to_string().len());
    for line in &excerpt.lines {
        let number = look.faint(&format!("{:>digits$}", line.number));
        out.line(&format!("{number}  {}", look.foreign(&line.text)));
    }
}

fn head(look: Look, record: &SourceRecord) -> String {
    let who = match &record.speaker {
        Some(speaker) if speaker.trusted => look.strong(&look.foreign(&one_line(&speaker.label))),
        Some(speaker) => format!("{} {}", look.foreign(&one_line(&speaker.label)), look.warning("(unconfirmed)")),
        None => format!("{} {}", look.foreign(&one_line(&record.label)), look.faint("(no speaker recorded)")),
    };
    let trust = match record.trust {
        Trust::Trusted => look.good("trusted"),
        Trust::Pending => look.warning("pending"),
    };
    let rest = format!("{}:{}  {}", one_line(&record.path), record.line, one_line(&record.id));
    format!("{who}  {trust}  {}", look.faint(&look.foreign(&rest)))
}

/// As a shell takes it back.
fn quoted(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-:#%@+,".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        text.to_owned()
    } else {
        format!("'{}'", text.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hints_can_be_pasted() {
        assert_eq!(quoted("p/t/m-1"), "p/t/m-1");
        assert_eq!(quoted("p/预算/it's"), r"'p/预算/it'\''s'");
        assert_eq!(quoted("a b"), "'a b'");
        assert_eq!(quoted(""), "''");
    }
}
