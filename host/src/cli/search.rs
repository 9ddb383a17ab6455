//! `recollex search`: finds what was said.

use recollex::types::{Finding, Health, Trust};
use recollex::workspace::{Answer, Branch, Hit, HitKind, Method, Query, Reader, Scope};
use recollex::{Error, Session};
use serde::Serialize;

use super::args::{self, Kind, Search};
use super::context::Context;
use super::failure::{Exit, Failure};
use super::output::Output;
use super::status::place;
use super::terminal::{Look, highlight, one_line, wrap};
use super::verify::is_remark;
use super::views::{self, FindingView, HitView};

#[derive(Serialize)]
struct Document<'a> {
    query: &'a str,
    results: Vec<HitView<'a>>,
    truncated: bool,
    findings: Vec<FindingView<'a>>,
}

/// Runs the verb.
pub fn run(args: &Search, context: &Context) -> Result<Exit, Failure> {
    let mut session = context.reading_session()?;
    let query = query(args);
    let answer = match context.time("search", || session.search(&query)) {
        Ok(answer) => answer,
        Err(error) => return Err(unusable(error)),
    };
    if context.out.json {
        context.out.document(&document(&query, &answer));
    } else {
        render(&context.out, &query, &answer);
    }
    warn_of(context, &answer.findings);
    if answer.hits.is_empty() {
        context.hint(&nothing(context, &mut session, args));
        return Ok(Exit::NOTHING);
    }
    if answer.truncated {
        context.hint(&format!("More matched than {}. Ask for more with --top-k N.", args.top_k));
    }
    Ok(Exit::DONE)
}

/// Warns of what keeps memory from answering fully. What is only worth knowing degrades nothing: of a file `verify` tells
/// it, and of the call itself it is a hint.
pub fn warn_of(context: &Context, findings: &[Finding]) {
    for finding in findings {
        let place = place(finding.path.as_deref(), finding.line);
        match finding.path {
            _ if !is_remark(finding) => {
                context.warn(&format!("degraded: {place}{} [{}]", finding.message, finding.code));
            }
            None => context.hint(&finding.message),
            Some(_) => {}
        }
    }
}

/// Where the reader is. Clap has seen to it that both are there or neither is.
fn reader(args: &Search) -> Option<Reader> {
    Some(Reader { session: args.session.clone()?, head: args.head.clone()? })
}

/// What the options say, in the contract's words.
pub fn query(args: &Search) -> Query {
    Query {
        text: args.query.join(" "),
        top_k: args.top_k,
        scope: match args.kind {
            Kind::Any => Scope::Any,
            Kind::Source => Scope::Source,
            Kind::Topic => Scope::Topic,
        },
        speaker: args.speaker.clone(),
        path_prefix: args.path_prefix.clone(),
        from: args.from.clone(),
        to: args.to.clone(),
        reader: reader(args),
        explain: args.explain,
        method: match args.method {
            args::Method::Words => Method::Words,
            args::Method::Embedding => Method::Embedding,
            args::Method::Hybrid => Method::Hybrid,
        },
    }
}

/// The JSON document.
fn document<'a>(query: &'a Query, answer: &'a Answer) -> Document<'a> {
    Document {
        query: &query.text,
        results: answer.hits.iter().map(HitView::from).collect(),
        truncated: answer.truncated,
        findings: views::findings(&answer.findings),
    }
}

/// A query without a word to look for finds nothing, as one whose words stand nowhere does.
fn unusable(error: Error) -> Failure {
    let empty = matches!(error.reason(), Some("nothing-searchable" | "only-function-words"));
    let failure = Failure::from(error);
    if empty { failure.exit(Exit::NOTHING) } else { failure }
}

/// In words, that there is nothing to find in: no workspace, or one without memories.
pub fn nothing_there(context: &Context, session: &mut Session) -> Option<String> {
    let status = session.status().ok()?;
    let empty =
        || (status.health == Health::Empty).then(|| "Memory is empty: there is nothing to find yet.".to_owned());
    context.nothing_there(&status).or_else(empty)
}

/// Why there is no result: an empty memory and a search without a match are not the same.
fn nothing(context: &Context, session: &mut Session, args: &Search) -> String {
    if let Some(why) = nothing_there(context, session) {
        return why;
    }
    let filters = [
        ("--speaker", args.speaker.is_some()),
        ("--path-prefix", args.path_prefix.is_some()),
        ("--from", args.from.is_some()),
        ("--to", args.to.is_some()),
        ("--kind", args.kind != Kind::Any),
    ];
    let used: Vec<&str> = filters.iter().filter(|(_, used)| *used).map(|(name, _)| *name).collect();
    let forms = "words are found in all their forms (bolt, bolts), and not by others that mean the same";
    if used.is_empty() {
        format!("Nothing found: {forms}.")
    } else {
        let dated = args.from.is_some() || args.to.is_some();
        let dated = if dated { " What has no date is left out by --from and --to." } else { "" };
        format!("Nothing found. Try without {}; or {forms}.{dated}", used.join(", "))
    }
}

/// Lines of a result's text on a terminal; `get` shows all of it.
const LINES_MAX: usize = 8;

/// For people.
pub fn render(out: &Output, query: &Query, answer: &Answer) {
    for (at, hit) in answer.hits.iter().enumerate() {
        if at > 0 {
            out.line("");
        }
        hit_lines(out.look, at + 1, query, hit).iter().for_each(|line| out.line(line));
    }
}

fn hit_lines(look: Look, number: usize, query: &Query, hit: &Hit) -> Vec<String> {
    const INDENT: &str = "    ";
    let mut head = format!("{number:>2}. {}", who(look, hit));
    if !hit.time.is_empty() {
        head.push_str(&format!("  {}", look.foreign(&one_line(&hit.time))));
    }
    if query.explain {
        head.push_str(&look.faint(&format!("  score {}", hit.score)));
    }
    if hit.trust == Trust::Pending {
        head.push_str(&format!("  {}", look.warning("pending")));
    }
    match hit.branch {
        None | Some(Branch::Own) => {}
        Some(Branch::Other) => head.push_str(&look.faint("  on another branch")),
        Some(Branch::Abandoned) => head.push_str(&look.faint("  on an abandoned branch")),
    }
    let mut lines = vec![head];
    if !hit.headings.is_empty() {
        lines.push(format!("{INDENT}{}", look.faint(&look.foreign(&one_line(&hit.headings.join(" > "))))));
    }
    let mut text = look.foreign(&one_line(&hit.text));
    if hit.text_cut {
        text.push('…');
    }
    let mut wrapped = match look.width {
        Some(width) => wrap(&text, width.saturating_sub(INDENT.len())),
        None => vec![text],
    };
    if wrapped.len() > LINES_MAX {
        wrapped.truncate(LINES_MAX);
        wrapped.push("…".to_owned());
    }
    lines.extend(wrapped.iter().map(|line| format!("{INDENT}{}", highlight(line, &query.text, look))));
    let place = format!("{}:{}  {}", one_line(&hit.path), hit.line, one_line(&hit.id));
    lines.push(format!("{INDENT}{}", look.faint(&look.foreign(&place))));
    if !hit.evidence.is_empty() && hit.kind != HitKind::Source {
        let evidence = format!("rests on {}", hit.evidence.join(", "));
        lines.push(format!("{INDENT}{}", look.faint(&look.foreign(&one_line(&evidence)))));
    }
    for signal in &hit.signals {
        lines.push(look.faint(&look.foreign(&format!("{INDENT}{:>8}  {}", signal.points, one_line(&signal.name)))));
    }
    lines
}

/// A name that the runtime vouches for, or one that the text claims: never shown alike.
fn who(look: Look, hit: &Hit) -> String {
    match (&hit.speaker, hit.kind) {
        (Some(speaker), _) if speaker.trusted => look.strong(&look.foreign(&one_line(&speaker.label))),
        (Some(speaker), _) => format!("{} {}", look.foreign(&one_line(&speaker.label)), look.warning("(unconfirmed)")),
        (None, HitKind::Source) => look.faint("no speaker recorded"),
        (None, HitKind::Topic) => "topic".to_owned(),
        (None, HitKind::Experience) => "experience".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use recollex::types::Speaker;
    use recollex::workspace::Signal;

    use super::*;

    const PIPE: Look = Look { terminal: false, colour: false, width: None };
    const NARROW: Look = Look { terminal: true, colour: false, width: Some(30) };

    fn hit(text: &str, trusted: bool) -> Hit {
        Hit {
            kind: HitKind::Source,
            id: "p/t/m".to_owned(),
            path: "sources/p/_v2/t.md".to_owned(),
            anchor: "source-0123456789abcdef".to_owned(),
            line: 8,
            text: text.to_owned(),
            text_cut: false,
            time: "2026-05-04".to_owned(),
            score: 1200,
            speaker: Some(Speaker {
                id: "u".to_owned(),
                display: "Ada".to_owned(),
                label: "Ada (u)".to_owned(),
                trusted,
            }),
            trust: Trust::Trusted,
            evidence_number: None,
            block: None,
            evidence: vec!["p/t/m".to_owned()],
            headings: Vec::new(),
            branch: None,
            signals: Vec::new(),
        }
    }

    fn words(text: &str) -> Query {
        Query {
            text: text.to_owned(),
            top_k: 1,
            scope: Scope::Any,
            speaker: None,
            path_prefix: None,
            from: None,
            to: None,
            reader: None,
            explain: false,
            method: Method::Words,
        }
    }

    #[test]
    fn a_result_says_who_when_what_and_where() {
        let lines = hit_lines(PIPE, 1, &words("bolts"), &hit("nine\n  bolts", true));
        assert_eq!(lines, [" 1. Ada (u)  2026-05-04", "    nine bolts", "    sources/p/_v2/t.md:8  p/t/m"]);
    }

    #[test]
    fn a_claimed_name_is_not_shown_as_a_confirmed_one() {
        assert!(hit_lines(PIPE, 1, &words("x"), &hit("x", false))[0].contains("Ada (u) (unconfirmed)"));
        let mut nameless = hit("x", false);
        nameless.speaker = None;
        assert!(hit_lines(PIPE, 1, &words("x"), &nameless)[0].contains("no speaker recorded"));
    }

    #[test]
    fn pending_evidence_is_marked() {
        let mut pending = hit("x", true);
        pending.trust = Trust::Pending;
        assert!(hit_lines(PIPE, 1, &words("x"), &pending)[0].ends_with("pending"));
    }

    #[test]
    fn text_is_wrapped_and_harmless_on_a_terminal() {
        let lines = hit_lines(NARROW, 1, &words("x"), &hit("one two three four five six \x1b[2J seven", true));
        assert!(lines.len() > 3);
        assert!(lines.iter().all(|line| !line.contains('\x1b')), "{lines:?}");
        assert!(lines[1..lines.len() - 1].iter().all(|line| line.len() <= 30), "{lines:?}");
    }

    #[test]
    fn a_long_text_does_not_fill_the_screen() {
        let lines = hit_lines(NARROW, 1, &words("x"), &hit(&"word ".repeat(500), true));
        assert_eq!(lines.len(), 1 + LINES_MAX + 1 + 1);
        assert_eq!(lines[1 + LINES_MAX], "    …");
    }

    #[test]
    fn explanations_follow() {
        let mut explained = hit("x", true);
        explained.signals = vec![Signal { name: "term:x".to_owned(), points: 1200 }];
        let lines = hit_lines(PIPE, 1, &Query { explain: true, ..words("x") }, &explained);
        assert!(lines[0].ends_with("score 1200"), "{lines:?}");
        assert_eq!(lines[3], "        1200  term:x");
    }

    #[test]
    fn the_document_has_the_stable_keys() {
        let answer = Answer { hits: vec![hit("nine bolts", true)], truncated: false, findings: Vec::new() };
        let query = words("bolts");
        let value = serde_json::to_value(document(&query, &answer)).unwrap();
        assert_eq!(value["query"], "bolts");
        assert_eq!(value["truncated"], false);
        let result = &value["results"][0];
        for key in [
            "kind", "id", "path", "anchor", "line", "text", "time", "score", "speaker", "trust", "evidence", "headings",
        ] {
            assert!(!result[key].is_null(), "{key}");
        }
        assert_eq!(result["speaker"]["trusted"], true);
    }
}
