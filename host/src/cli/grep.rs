//! `recollex grep`: finds lines.

use recollex::workspace::{GrepQuery, Matches};
use serde::Serialize;

use super::args::Grep;
use super::context::Context;
use super::failure::{Exit, Failure};
use super::search::warn_of;
use super::views::{self, FindingView, MatchView};

#[derive(Serialize)]
struct Document<'a> {
    pattern: &'a str,
    lines: Vec<MatchView<'a>>,
    total: u64,
    truncated: bool,
    findings: Vec<FindingView<'a>>,
}

/// Runs the verb.
pub fn run(args: &Grep, context: &Context) -> Result<Exit, Failure> {
    let mut session = context.reading_session()?;
    let query = GrepQuery {
        pattern: args.pattern.clone(),
        regex: args.regex,
        case_sensitive: args.case_sensitive,
        path_prefix: args.path_prefix.clone(),
        context: args.context,
        max: args.max.unwrap_or(0),
    };
    let found = context.time("grep", || session.grep(&query))?;
    if context.out.json {
        context.out.document(&Document {
            pattern: &args.pattern,
            lines: found.lines.iter().map(MatchView::from).collect(),
            total: found.total,
            truncated: found.truncated,
            findings: views::findings(&found.findings),
        });
    } else {
        render(context, &found);
    }
    warn_of(context, &found.findings);
    if found.truncated {
        context.hint(&format!("{} lines match. Show more with --max N.", found.total));
    }
    Ok(if found.total == 0 { Exit::NOTHING } else { Exit::DONE })
}

/// `path:line: text`; where a line only stands near a match, `path-line- text`.
fn render(context: &Context, found: &Matches) {
    let look = context.out.look;
    for found in &found.lines {
        let mark = if found.is_match { ':' } else { '-' };
        let place = format!("{}{mark}{}{mark}", look.foreign(&found.path), found.line.number);
        context.out.line(&format!("{} {}", look.faint(&place), look.foreign(&found.line.text)));
    }
}
