//! The tools: what each is called, takes and answers.
//!
//! Arguments and answers are types; their JSON schemas are made from them, so neither can say what the other does not. An
//! answer has the keys that the verb of the same name has with `--json`, and says what it left out: `truncated`, and a
//! `cursor` that goes on from there where going on makes sense.

use std::time::Duration;

use recollex::recaller::Recall;
use recollex::workspace::{GrepQuery, Method, Query, RecallQuery, Scope};
use recollex::{Error, Recaller, Session};
use rmcp::model::{JsonObject, Tool, ToolAnnotations};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::cli::context::Context;
use crate::cli::failure::Failure;
use crate::cli::views::{self, FileView, FindingView, HitView, LineView, MatchView, RecordView};
use crate::cli::{recall, search, status};

/// Hits of a page, unless the caller says otherwise.
const HITS: u32 = 10;
/// Files of a page, unless the caller says otherwise.
const FILES: u32 = 200;

/// What calls are made with.
pub struct Desk {
    /// Answers all calls, one after the other.
    pub session: Session,
    /// Answers those that wait for so long and no longer; there once somebody did.
    recaller: Option<Recaller>,
}

impl Desk {
    pub const fn new(session: Session) -> Self {
        Self { session, recaller: None }
    }
}

/// A tool and how it is called.
struct Entry {
    name: &'static str,
    describe: fn(&'static str) -> Tool,
    call: fn(JsonObject, &Context, &mut Desk) -> Result<Value, Failure>,
}

/// All tools, in the order in which they are listed.
const TOOLS: &[Entry] = &[
    Entry {
        name: "memory_search",
        describe: |name| {
            tool::<SearchArguments, SearchAnswer<'static>>(
                name,
                "Search memory",
                "Finds what was said (sources) and what it means (topics) by words, in any language. Returns the best first, \
                 each with its id, place, time, speaker and trust.",
            )
        },
        call: |arguments, context, desk| find(read(arguments)?, context, &mut desk.session),
    },
    Entry {
        name: "memory_recall",
        describe: |name| {
            tool::<RecallArguments, recall::Document<'static>>(
                name,
                "Recall for a turn",
                "Says what memory holds about what was just said: the best records and claims within a number of tokens, as \
                 one fenced text. Pending evidence is not told.",
            )
        },
        call: |arguments, context, desk| recall_for_turn(read(arguments)?, context, desk),
    },
    Entry {
        name: "memory_get",
        describe: |name| {
            tool::<GetArguments, GetAnswer<'static>>(
                name,
                "Read from memory",
                "Reads a record by its id, a claim by its block id, or a file of the workspace, whole or from a line on.",
            )
        },
        call: |arguments, _, desk| show(read(arguments)?, &mut desk.session),
    },
    Entry {
        name: "memory_browse",
        describe: |name| {
            tool::<BrowseArguments, BrowseAnswer<'static>>(
                name,
                "List memory",
                "Lists the files of the workspace below a path, with their sizes.",
            )
        },
        call: |arguments, _, desk| list_files(read(arguments)?, &mut desk.session),
    },
    Entry {
        name: "memory_grep",
        describe: |name| {
            tool::<GrepArguments, GrepAnswer<'static>>(
                name,
                "Find lines in memory",
                "Finds lines with exactly these characters, or that match a regular expression, in all files.",
            )
        },
        call: |arguments, _, desk| find_lines(read(arguments)?, &mut desk.session),
    },
    Entry {
        name: "memory_status",
        describe: |name| {
            tool::<StatusArguments, status::Document<'static>>(
                name,
                "State of memory",
                "Says whether memory is whole, how much there is, and what is wrong with it.",
            )
        },
        call: |arguments, context, desk| {
            let StatusArguments {} = read(arguments)?;
            let status = desk.session.status()?;
            let writer = status::writer(context, &mut desk.session);
            written(&status::document(context, &status, writer))
        },
    },
];

/// The tools, as a client is told of them.
pub fn list() -> Vec<Tool> {
    TOOLS.iter().map(|entry| (entry.describe)(entry.name)).collect()
}

/// The tool of this name, if there is one.
pub fn name(name: &str) -> Option<&'static str> {
    TOOLS.iter().map(|entry| entry.name).find(|known| *known == name)
}

/// Calls the tool of this name.
pub fn call(name: &str, arguments: JsonObject, context: &Context, desk: &mut Desk) -> Result<Value, Failure> {
    let entry = TOOLS.iter().find(|entry| entry.name == name);
    let entry = entry.ok_or_else(|| Failure::usage("unknown-tool", format!("there is no tool {name}")))?;
    (entry.call)(arguments, context, desk)
}

/// An error as a client is shown it: the document that `--json` shows.
pub fn failed(failure: &Failure) -> Value {
    serde_json::to_value(failure.document()).unwrap_or(Value::Null)
}

fn tool<A: JsonSchema + 'static, R: JsonSchema + 'static>(name: &'static str, title: &str, what: &'static str) -> Tool {
    let hints =
        ToolAnnotations::with_title(title).read_only(true).destructive(false).idempotent(true).open_world(false);
    Tool::new(name, what, JsonObject::new())
        .with_title(title)
        .with_input_schema::<A>()
        .with_output_schema::<R>()
        .with_annotations(hints)
}

fn read<A: for<'de> Deserialize<'de>>(arguments: JsonObject) -> Result<A, Failure> {
    serde_json::from_value(Value::Object(arguments)).map_err(|error| Failure::usage("arguments", error.to_string()))
}

fn written(answer: &impl Serialize) -> Result<Value, Failure> {
    serde_json::to_value(answer).map_err(|error| Failure::usage("answer", error.to_string()))
}

/// Where to look.
#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Kind {
    /// What was said
    Source,
    /// What it means
    Topic,
    /// Both
    #[default]
    Any,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct SearchArguments {
    /// Words to look for
    query: String,
    /// How many results at most (10 if not said)
    top_k: Option<u32>,
    /// Where to look
    #[serde(default)]
    kind: Kind,
    /// Only what this speaker said: an id, a name or a label
    speaker: Option<String>,
    /// Only below this path of the workspace
    path_prefix: Option<String>,
    /// First day: YYYY, YYYY-MM or YYYY-MM-DD; leaves out what has no date
    from: Option<String>,
    /// Last day, included, in the same form
    to: Option<String>,
    /// Say how each score came about
    #[serde(default)]
    explain: bool,
    /// Go on where an answer was truncated: its cursor, with the same query
    cursor: Option<String>,
}

/// The best results first.
#[derive(Serialize, JsonSchema)]
struct SearchAnswer<'a> {
    results: Vec<HitView<'a>>,
    /// More matched
    truncated: bool,
    /// Goes on behind these results
    #[serde(skip_serializing_if = "Option::is_none")]
    cursor: Option<String>,
    /// Why there are no results, where it is not the words
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<String>,
    /// What is wrong with memory, so that results may be missing
    findings: Vec<FindingView<'a>>,
}

fn find(arguments: SearchArguments, context: &Context, session: &mut Session) -> Result<Value, Failure> {
    let skipped = match &arguments.cursor {
        Some(cursor) => cursor.parse().map_err(|_| unknown_cursor(cursor))?,
        None => 0_u32,
    };
    let wanted = arguments.top_k.unwrap_or(HITS);
    let query = Query {
        text: arguments.query,
        top_k: wanted.saturating_add(skipped),
        scope: match arguments.kind {
            Kind::Source => Scope::Source,
            Kind::Topic => Scope::Topic,
            Kind::Any => Scope::Any,
        },
        speaker: arguments.speaker,
        path_prefix: arguments.path_prefix,
        from: arguments.from,
        to: arguments.to,
        reader: None,
        explain: arguments.explain,
        method: Method::Words,
    };
    let answer = session.search(&query)?;
    let note = if answer.hits.is_empty() { search::nothing_there(context, session) } else { None };
    written(&SearchAnswer {
        results: answer.hits.iter().skip(skipped as usize).map(HitView::from).collect(),
        truncated: answer.truncated,
        cursor: answer.truncated.then(|| query.top_k.to_string()),
        note,
        findings: views::findings(&answer.findings),
    })
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct RecallArguments {
    /// What the turn is about, usually what was just said
    text: Option<String>,
    /// Tokens the text may take, its fence included (1500 if not said)
    max_tokens: Option<u64>,
    /// Records and claims at most (8 if not said)
    max_memories: Option<u32>,
    /// Milliseconds to wait for an answer; without one by then the answer is `pending`, with the request to ask for it by
    wait_ms: Option<u64>,
    /// In place of a text: the request of a pending answer
    request: Option<String>,
}

fn recall_for_turn(arguments: RecallArguments, context: &Context, desk: &mut Desk) -> Result<Value, Failure> {
    let RecallArguments { text, max_tokens, max_memories, wait_ms, request } = arguments;
    let wait = Duration::from_millis(wait_ms.unwrap_or(0));
    let recalled = match (text, request) {
        (Some(text), None) => {
            let (max_tokens, max_memories) = (max_tokens.unwrap_or(0), max_memories.unwrap_or(0));
            let query = RecallQuery { text, max_tokens, max_memories };
            if wait_ms.is_none() {
                return written(&recall::document(&desk.session.recall(&query)?));
            }
            if desk.recaller.is_none() {
                desk.recaller = Some(recall::recaller(context.session()?)?);
            }
            let Some(recaller) = &desk.recaller else { return Err(Error::Gone.into()) };
            recaller.recall(query, wait)?
        }
        (None, Some(request)) => {
            let unknown =
                || Failure::usage("unknown-request", format!("no answer is kept for the request {request:?}"));
            let id = request.parse().map_err(|_| unknown())?;
            let recaller = desk.recaller.as_ref().ok_or_else(unknown)?;
            recaller.late(id, wait)?.ok_or_else(unknown)?
        }
        _ => return Err(Failure::usage("text-or-request", "give either text or request".to_owned())),
    };
    match recalled {
        Recall::Told(recollection) => written(&recall::document(&recollection)),
        Recall::Pending(id) => written(&recall::pending(id)),
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct GetArguments {
    /// A record's id, a path in the workspace, or path#anchor, as results name them
    target: Option<String>,
    /// A claim, by its block id, with the footnotes it cites; in place of a target
    block: Option<String>,
    /// Of a file: only what stands under this heading
    heading: Option<String>,
    /// How many lines at most
    lines: Option<u32>,
    /// Go on where an answer was truncated: its cursor, or the number of a line
    cursor: Option<String>,
}

/// Lines, and the record that they are.
#[derive(Serialize, JsonSchema)]
struct GetAnswer<'a> {
    path: &'a str,
    record: Option<RecordView<'a>>,
    lines: Vec<LineView<'a>>,
    /// There are more lines
    truncated: bool,
    /// Goes on behind these lines
    #[serde(skip_serializing_if = "Option::is_none")]
    cursor: Option<String>,
}

fn show(arguments: GetArguments, session: &mut Session) -> Result<Value, Failure> {
    let GetArguments { target, block, heading, lines, cursor } = arguments;
    let from = match &cursor {
        Some(cursor) => Some(cursor.parse::<u64>().map_err(|_| unknown_cursor(cursor))?),
        None => None,
    };
    let excerpt = match (target, block, heading) {
        (None, Some(block), None) => session.get_block(&block)?,
        (Some(target), None, Some(heading)) if from.is_none() => session.get_section(&target, &heading)?,
        (Some(target), None, _) => session.get(&target, from, lines.unwrap_or(0))?,
        (Some(_), Some(_), _) => return Err(Failure::usage("arguments", "either `target` or `block`, not both")),
        (None, Some(_), Some(_)) => return Err(Failure::usage("arguments", "a `heading` goes with a `target`")),
        (None, None, _) => return Err(Failure::usage("arguments", "name a `target` or a `block`")),
    };
    written(&GetAnswer {
        path: &excerpt.path,
        record: excerpt.record.as_ref().map(RecordView::from),
        lines: excerpt.lines.iter().map(LineView::from).collect(),
        truncated: excerpt.next_line.is_some(),
        cursor: excerpt.next_line.map(|line| line.to_string()),
    })
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct BrowseArguments {
    /// Only below this path of the workspace
    #[serde(default)]
    path_prefix: String,
    /// How many files at most (200 if not said)
    max: Option<u32>,
    /// Go on where an answer was truncated: its cursor
    cursor: Option<String>,
}

/// Files, in order.
#[derive(Serialize, JsonSchema)]
struct BrowseAnswer<'a> {
    files: Vec<FileView<'a>>,
    /// There are more files
    truncated: bool,
    /// Goes on behind these files
    #[serde(skip_serializing_if = "Option::is_none")]
    cursor: Option<String>,
}

fn list_files(arguments: BrowseArguments, session: &mut Session) -> Result<Value, Failure> {
    let max = arguments.max.unwrap_or(FILES);
    let page = session.browse(&arguments.path_prefix, arguments.cursor.as_deref(), max)?;
    written(&BrowseAnswer {
        files: page.files.iter().map(FileView::from).collect(),
        truncated: page.next.is_some(),
        cursor: page.next.clone(),
    })
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct GrepArguments {
    /// What to look for within a line
    pattern: String,
    /// The pattern is a regular expression, of the kind that takes time in proportion to the text
    #[serde(default)]
    regex: bool,
    /// Upper and lower case differ
    #[serde(default)]
    case_sensitive: bool,
    /// Only below this path
    #[serde(default)]
    path_prefix: String,
    /// Lines to show before and after each match
    #[serde(default)]
    context: u32,
    /// How many matches at most
    max: Option<u32>,
}

/// Lines that match, and lines around them, in the order of files.
#[derive(Serialize, JsonSchema)]
struct GrepAnswer<'a> {
    lines: Vec<MatchView<'a>>,
    /// How many lines match, also those that are not shown
    total: u64,
    /// More match than are shown: ask for more, or below a path
    truncated: bool,
    /// What is wrong with memory, so that lines may be missing
    findings: Vec<FindingView<'a>>,
}

fn find_lines(arguments: GrepArguments, session: &mut Session) -> Result<Value, Failure> {
    let found = session.grep(&GrepQuery {
        pattern: arguments.pattern,
        regex: arguments.regex,
        case_sensitive: arguments.case_sensitive,
        path_prefix: arguments.path_prefix,
        context: arguments.context,
        max: arguments.max.unwrap_or(0),
    })?;
    written(&GrepAnswer {
        lines: found.lines.iter().map(MatchView::from).collect(),
        total: found.total,
        truncated: found.truncated,
        findings: views::findings(&found.findings),
    })
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct StatusArguments {}

fn unknown_cursor(cursor: &str) -> Failure {
    Failure::usage("cursor", format!("`{cursor}` is no cursor of this tool")).next("ask without it, from the beginning")
}
