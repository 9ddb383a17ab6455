//! Rows of `inspect.jsonl`: reads of one workspace, as values and as a tool shows them.

use std::collections::BTreeMap;

use recollex_core::ids::{is_derived_path, is_internal_path, path_order};
use recollex_core::read::{
    Excerpt, Grep, GrepLimits, Matches, Pattern, PatternOptions, ReadFault, Selection, lines, select,
};
use recollex_core::source::Limits;
use serde_json::{Value, json};

use crate::{Input, Malformed, Observed, Outcome};

/// The workspace that every row reads unless it brings files of its own.
const WORKSPACE: &str = include_str!("../../vectors/inspect_workspace.json");

/// Limits of the observed program.
const LINES: u64 = 400;
/// Characters that a read shows in the observed program.
pub const CHARS: usize = 40_000;
const MATCHES: u64 = 200;
const TOOL_MATCHES: u64 = 50;
const LINE_CHARS: usize = 300;
const LISTED: u64 = 200;
const LISTED_MAX: u64 = 500;

type Files = BTreeMap<String, Vec<u8>>;

/// The files that rows read which bring none.
///
/// # Errors
/// They are no JSON.
pub fn workspace() -> Result<Value, Malformed> {
    serde_json::from_str(WORKSPACE).map_err(|error| Malformed::new("inspect_workspace.json", error.to_string()))
}

pub(crate) fn observe(input: &Input<'_>) -> Observed {
    let shared = workspace()?;
    let shared = Input::new(&shared);
    let mut files = Files::new();
    for (path, content) in input.maybe("files").unwrap_or(shared).entries()? {
        files.insert(path.to_owned(), content.bytes()?);
    }
    files.retain(|path, _| !is_internal_path(path));
    let op = input.field("op")?.text()?;
    Ok(match op {
        "read_file" | "memory_get" => {
            let path = input.field("path")?.text()?;
            match (read(&files, path, input, op == "memory_get")?, op) {
                (Ok(excerpt), "memory_get") => Outcome::Shown(excerpt.content.into()),
                (Ok(excerpt), _) => Outcome::Shown(json!({
                    "path": path,
                    "mode": excerpt.mode.as_str(),
                    "content": excerpt.content,
                    "truncated": excerpt.truncated,
                })),
                (Err(error), "memory_get") if error["error"]["code"] != "invalid-utf8" => {
                    Outcome::not_here("how a tool words a refusal is the host's")
                }
                (Err(error), _) => Outcome::Shown(error),
            }
        }
        "grep" | "memory_grep" => {
            if input.field("query")?.text()?.is_empty() {
                return Ok(Outcome::not_here("how a tool words a refusal is the host's"));
            }
            let found = grep(&files, input, op == "memory_grep")?;
            Outcome::Shown(if op == "memory_grep" { found.to_text().into() } else { matches(&found) })
        }
        "list_files" | "memory_browse" => listed(&files, input, op == "memory_browse")?,
        _ => Outcome::not_here("not a read of core's: the component answers, or the host"),
    })
}

fn number(input: &Input<'_>, name: &str) -> Result<Option<i64>, Malformed> {
    input.maybe(name).map(|field| field.integer()).transpose()
}

fn text_of<'i>(input: &Input<'i>, name: &str) -> Result<Option<&'i str>, Malformed> {
    input.maybe(name).map(|field| field.text()).transpose()
}

fn error(fault: &ReadFault) -> Value {
    json!({"error": {"code": fault.code(), "reason": fault.reason()}})
}

fn read(files: &Files, path: &str, input: &Input<'_>, is_tool: bool) -> Result<Result<Excerpt, Value>, Malformed> {
    let is_outside = path.starts_with('/') || path.split('/').any(|part| part == "..");
    let Some(content) = files.get(path) else {
        let code = if is_outside { "PATH_OUTSIDE_WORKSPACE" } else { "INVALID_ARGUMENT" };
        return Ok(Err(json!({"error": {"code": code}})));
    };
    let Ok(text) = core::str::from_utf8(content) else {
        return Ok(Err(json!({"error": {"code": "invalid-utf8"}})));
    };
    // The tool has no such parameters.
    let window = |name| if is_tool { Ok(None) } else { number(input, name) };
    let (offset, limit) = (window("offset")?, window("limit")?);
    let positive = |number: i64| u64::try_from(number).unwrap_or(0);
    let asked =
        (offset.is_some() || limit.is_some()).then(|| (offset.map_or(1, positive), limit.map_or(LINES, positive)));
    let shown = lines(path, text, &Limits::default());
    let part = Selection::of(text_of(input, "heading")?, text_of(input, "block_id")?, asked, LINES)
        .and_then(|selection| select(text, &shown, selection, CHARS));
    Ok(part.map_err(|fault| error(&fault)))
}

/// Whether a path is within a prefix, by whole parts.
fn is_within(path: &str, prefix: Option<&str>) -> bool {
    let prefix = prefix.unwrap_or_default().trim_matches('/');
    prefix.is_empty() || path.strip_prefix(prefix).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

fn in_order<'f>(files: &'f Files, prefix: Option<&str>) -> Vec<(&'f str, &'f [u8])> {
    let mut found: Vec<_> = files
        .iter()
        .filter(|(path, _)| is_within(path, prefix))
        .map(|(path, content)| (path.as_str(), content.as_slice()))
        .collect();
    found.sort_by(|(a, _), (b, _)| path_order(a, b));
    found
}

fn grep(files: &Files, input: &Input<'_>, is_tool: bool) -> Result<Matches, Malformed> {
    let query = input.field("query")?;
    let options = PatternOptions {
        regex: !is_tool && input.maybe("literal").is_some_and(|literal| literal.value() == &Value::Bool(false)),
        case_sensitive: input.maybe("case_sensitive").is_some_and(|value| value.value() == &Value::Bool(true)),
    };
    let pattern = Pattern::new(query.text()?, options).map_err(|fault| query.fault(fault.to_string()))?;
    let limit = if is_tool { None } else { number(input, "limit")? };
    let limit = limit.map_or(if is_tool { TOOL_MATCHES } else { MATCHES }, |limit| u64::try_from(limit).unwrap_or(0));
    let matches = usize::try_from(limit.clamp(1, MATCHES)).unwrap_or(usize::MAX);
    let mut grep = Grep::new(&pattern, GrepLimits { matches, context: 0, line_chars: LINE_CHARS });
    for (path, content) in in_order(files, text_of(input, "prefix")?) {
        if let Ok(text) = core::str::from_utf8(content) {
            grep.file(path, lines(path, text, &Limits::default()));
        }
    }
    Ok(grep.finish())
}

fn matches(found: &Matches) -> Value {
    let line = |found: &recollex_core::read::Found| json!({"path": found.path, "line": found.line, "text": found.text});
    let lines: Vec<Value> = found.lines.iter().map(line).collect();
    json!({"matches": lines, "total": found.total, "truncated": found.truncated})
}

fn listed(files: &Files, input: &Input<'_>, is_tool: bool) -> Observed {
    let found = in_order(files, text_of(input, "prefix")?);
    if is_tool {
        if found.is_empty() {
            return Ok(Outcome::not_here("how a tool says that there is nothing is the host's"));
        }
        let paths: Vec<String> = found.iter().map(|(path, _)| format!("\n  {path}")).collect();
        return Ok(Outcome::Shown(format!("{} file(s):\n{}", found.len(), paths.concat()).into()));
    }
    let limit = number(input, "limit")?.map_or(LISTED, |limit| u64::try_from(limit).unwrap_or(0)).clamp(1, LISTED_MAX);
    let most = usize::try_from(limit).unwrap_or(usize::MAX);
    let file = |(path, content): &(&str, &[u8])| json!({"path": path, "bytes": content.len(), "derived": is_derived_path(path)});
    let shown: Vec<Value> = found.iter().take(most).map(file).collect();
    Ok(Outcome::Shown(json!({"truncated": found.len() > shown.len(), "total": found.len(), "files": shown})))
}
