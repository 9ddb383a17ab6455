//! `recollex get`: reads a file or a record.

use recollex::Error;
use recollex::types::{self, SourceRecord, Trust};
use recollex::workspace::Excerpt;
use serde::Serialize;

use super::args::Get;
use super::context::Context;
use super::failure::{Exit, Failure};
use super::html;
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
    let mut session = context.reading_session()?;
    if args.block.is_some() || args.heading.is_some() {
        let part = context.time("get", || match (&args.block, &args.heading) {
            (Some(block), _) => session.get_block(block),
            (None, heading) => session.get_section(&args.target, heading.as_deref().unwrap_or_default()),
        });
        let excerpt = part.map_err(|error| nowhere(context, error.into()))?;
        show(context, &excerpt, args);
        if let Some(next) = excerpt.next_line {
            context.hint(&format!("There is more: recollex get {} --from-line {next}", quoted(&excerpt.path)));
        }
        return Ok(Exit::DONE);
    }
    let mut get = |target: &str, from| context.time("get", || session.get(target, from, args.lines.unwrap_or(0)));
    let (mut target, mut from) = (&*args.target, args.from_line);
    let mut answer = get(target, from);
    // A name may end in a colon and a number: only what is not there is read as findings name a line.
    if let (Err(Error::Memory(types::Error::NotFound(_))), Some((path, line))) = (&answer, placed(args)) {
        (target, from) = (path, Some(line));
        answer = get(target, from);
    }
    let excerpt = answer.map_err(|error| nowhere(context, error.into()))?;
    show(context, &excerpt, args);
    if let (Some(line), [], None) = (from.filter(|line| *line > 1), &*excerpt.lines, excerpt.next_line) {
        context.hint(&format!(
            "There is nothing from line {line} on: the file ends before it, or is damaged there (recollex verify {}).",
            quoted(&excerpt.path)
        ));
        return Ok(Exit::NOTHING);
    }
    if let Some(line) = excerpt.lines.iter().find(|line| line.cut) {
        context.warn(&cut(target, line.number));
    }
    if let Some(next) = excerpt.next_line {
        context.hint(&format!("There is more: recollex get {} --from-line {next}", quoted(target)));
    }
    Ok(Exit::DONE)
}

/// The result.
fn show(context: &Context, excerpt: &Excerpt, args: &Get) {
    if args.html {
        return context.out.line(html::of(excerpt).trim_end());
    }
    if !context.out.json {
        return render(&context.out, excerpt);
    }
    context.out.document(&Document {
        path: &excerpt.path,
        record: excerpt.record.as_ref().map(RecordView::from),
        lines: excerpt.lines.iter().map(LineView::from).collect(),
        next_line: excerpt.next_line,
    });
}

/// `path:line`, as findings and results name a place; the colon behind it may have been copied along.
fn placed(args: &Get) -> Option<(&str, u64)> {
    let target = args.target.strip_suffix(':').unwrap_or(&args.target);
    let (path, line) = target.rsplit_once(':')?;
    let line = line.parse().ok().filter(|line| *line > 0)?;
    (args.from_line.is_none() && !path.is_empty()).then_some((path, line))
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
    fn a_place_is_a_path_and_a_line() {
        let place = |target: &str| {
            let get = Get {
                target: target.to_owned(),
                from_line: None,
                lines: None,
                heading: None,
                block: None,
                html: false,
            };
            placed(&get).map(|(p, l)| (p.to_owned(), l))
        };
        assert_eq!(place("a/b.md:7"), Some(("a/b.md".to_owned(), 7)));
        assert_eq!(place("a/b.md:7:"), Some(("a/b.md".to_owned(), 7)));
        for none in ["a/b.md", "a:b", "a:0", "a:-1", ":7", "7", "a:", "::"] {
            assert_eq!(place(none), None, "{none}");
        }
    }

    #[test]
    fn hints_can_be_pasted() {
        assert_eq!(quoted("p/t/m-1"), "p/t/m-1");
        assert_eq!(quoted("p/预算/it's"), r"'p/预算/it'\''s'");
        assert_eq!(quoted("a b"), "'a b'");
        assert_eq!(quoted(""), "''");
    }
}
