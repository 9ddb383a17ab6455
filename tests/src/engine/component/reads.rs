//! Rows of `inspect.jsonl`, `structure.jsonl` and `references.jsonl`: reads of a workspace through the contract.
//!
//! How a tool words an answer or a refusal is the host's; what is read, and that something cannot be, is the component's.

use recollex::types::Tier;
use recollex::workspace::{BlockReference, Excerpt, GrepQuery};
use recollex::{OpenOptions, Session};
use recollex_test_rows::{Input, Outcome, inspect, references};
use serde_json::{Value, json};

use super::files::{scratch, write};
use super::{Component, RowError};

/// Limits of the observed program.
const MATCHES: u32 = 200;
const LISTED: usize = 200;
const LISTED_MAX: usize = 500;
const WORDED: &str = "how a tool words this is the host's";
const NO_SUCH_PARAMETER: &str = "the interface cannot be asked that";

impl Component {
    /// One read.
    pub(super) fn inspect(&self, input: &Input<'_>) -> Result<Outcome, RowError> {
        let shared = inspect::workspace()?;
        let directory = scratch()?;
        let root = directory.path().join("workspace");
        write(&root, &input.maybe("files").unwrap_or_else(|| Input::new(&shared)))?;
        let options = OpenOptions::new(Tier::Owner).setting("get.bytes", inspect::CHARS.to_string());
        let mut session =
            Session::open(&self.runtime, &root, options).map_err(|error| RowError::Host { doing: "open", error })?;
        match input.field("op")?.text()? {
            "read_file" => read(&mut session, input, false),
            "memory_get" => read(&mut session, input, true),
            "grep" => grep(&mut session, input),
            "list_files" => list(&mut session, input),
            _ => Ok(Outcome::not_here(WORDED)),
        }
    }

    /// Blocks of all topics, in pages of one, as rows have them in one text.
    pub(super) fn list_blocks(&self, input: &Input<'_>) -> Result<Outcome, RowError> {
        let directory = scratch()?;
        let root = directory.path().join("workspace");
        write(&root, &input.field("files")?)?;
        let mut session = self.open(&root)?;
        let (mut text, mut topic, mut cursor) = (String::new(), String::new(), None);
        loop {
            let page = session
                .structure("", "", cursor.as_deref(), 1)
                .map_err(|error| RowError::Host { doing: "structure", error })?;
            for block in page.blocks {
                if block.path != topic {
                    text.push_str(&format!("{}\n", block.path));
                    topic = block.path;
                }
                text.push_str(&format!("    ^{}  [{}]  {}\n", block.id, block.headings.join(" / "), block.text));
            }
            cursor = page.next;
            if cursor.is_none() {
                break;
            }
        }
        let text = text.trim_end();
        Ok(Outcome::Shown(if text.is_empty() { "(empty workspace)" } else { text }.into()))
    }

    /// Blocks that another program refers to.
    pub(super) fn refer(&self, input: &Input<'_>) -> Result<Outcome, RowError> {
        let op = input.field("op")?.text()?;
        if op == "list" {
            return Ok(Outcome::not_here("what may be referred to is listed by structure"));
        }
        let given = input.field("refs")?;
        let text = |given: &Value, name: &str| given[name].as_str().map(str::to_owned);
        let reference = |given: &Value| {
            Some(BlockReference { workspace: text(given, "workspace_id")?, block: text(given, "memory_id")? })
        };
        let refs: Option<Vec<BlockReference>> = match given.value() {
            Value::Null => Some(Vec::new()),
            Value::Array(refs) => refs.iter().map(reference).collect(),
            _ => None,
        };
        let Some(refs) = refs else { return Ok(Outcome::not_here(NO_SUCH_PARAMETER)) };
        let directory = scratch()?;
        let root = directory.path().join("workspace");
        let mut files = references::workspace();
        files.insert(".scriptorium/workspace-id".to_owned(), format!("{}\n", references::WORKSPACE));
        write(&root, &Input::new(&json!(files)))?;
        let most = number(input, "max_chars")?.map_or(0, |most| u32::try_from(most).unwrap_or(0));
        match self.open(&root)?.references(&refs, most) {
            Ok(found) if op == "render_context" => Ok(Outcome::Shown(found.prompt.into())),
            Ok(found) => {
                let block = |block: &recollex::workspace::ReferencedBlock| {
                    json!({
                        "workspace_id": references::WORKSPACE,
                        "memory_id": block.block,
                        "topic_path": block.path.strip_prefix("topics/"),
                        "content": block.text,
                        "when": block.time,
                    })
                };
                Ok(Outcome::Shown(found.blocks.iter().map(block).collect::<Vec<_>>().into()))
            }
            // The observed program has no code for what it refuses.
            Err(error @ recollex::Error::Memory(_)) => {
                Ok(Outcome::Shown(json!({"error": {"code": "error", "refusal": error.code()}})))
            }
            Err(error) => Err(RowError::Host { doing: "references", error }),
        }
    }
}

fn text_of<'i>(input: &Input<'i>, name: &str) -> Result<Option<&'i str>, RowError> {
    Ok(input.maybe(name).map(|field| field.text()).transpose()?)
}

fn number(input: &Input<'_>, name: &str) -> Result<Option<i64>, RowError> {
    Ok(input.maybe(name).map(|field| field.integer()).transpose()?)
}

fn read(session: &mut Session, input: &Input<'_>, is_tool: bool) -> Result<Outcome, RowError> {
    let path = input.field("path")?.text()?;
    let (heading, block) = (text_of(input, "heading")?, text_of(input, "block_id")?);
    // The tool has no such parameters.
    let window = |name| if is_tool { Ok(None) } else { number(input, name) };
    let (offset, limit) = (window("offset")?, window("limit")?);
    let has_lines = offset.is_some() || limit.is_some();
    let (mode, excerpt) = match (heading, block) {
        (None, None) => {
            let (Ok(from), Ok(count)) =
                (offset.map(u64::try_from).transpose(), u32::try_from(limit.unwrap_or_default()))
            else {
                return Ok(Outcome::not_here(NO_SUCH_PARAMETER));
            };
            if limit == Some(0) {
                return Ok(Outcome::not_here(NO_SUCH_PARAMETER));
            }
            ("lines", session.get(path, from, count))
        }
        (Some(heading), None) if !has_lines => ("heading", session.get_section(path, heading)),
        (None, Some(block)) if !has_lines => ("block", session.get_block(block)),
        _ => return Ok(Outcome::not_here(NO_SUCH_PARAMETER)),
    };
    match excerpt {
        Ok(excerpt) if is_tool => Ok(Outcome::Shown(content(mode, &excerpt).into())),
        Ok(excerpt) => Ok(Outcome::Shown(json!({
            "path": excerpt.path,
            "mode": mode,
            "content": content(mode, &excerpt),
            // That there are more lines than asked for, or than are shown without being asked, is not called so.
            "truncated": excerpt.lines.last().is_some_and(|line| line.cut),
        }))),
        Err(recollex::Error::Memory(_)) if is_tool => Ok(Outcome::not_here(WORDED)),
        Err(error @ recollex::Error::Memory(_)) => Ok(Outcome::Shown(json!({"error": {"code": error.code()}}))),
        Err(error) => Err(RowError::Host { doing: "read", error }),
    }
}

/// Lines as one text; an empty one between a block and its footnotes, and where else lines between two of it are left out.
fn content(mode: &str, excerpt: &Excerpt) -> String {
    let mut text = String::new();
    let mut next = None;
    for line in &excerpt.lines {
        if mode == "block" && next.is_some_and(|next| next != line.number) && !text.ends_with("\n\n") {
            text.push('\n');
        }
        text.push_str(&line.text);
        if !line.cut {
            text.push('\n');
        }
        next = Some(line.number + 1);
    }
    text
}

fn grep(session: &mut Session, input: &Input<'_>) -> Result<Outcome, RowError> {
    let query = input.field("query")?.text()?;
    if query.is_empty() {
        return Ok(Outcome::not_here(WORDED));
    }
    let is = |name: &str, wanted: bool| input.maybe(name).is_some_and(|field| field.value() == &Value::Bool(wanted));
    let limit = number(input, "limit")?.unwrap_or_else(|| MATCHES.into()).clamp(1, MATCHES.into());
    let query = GrepQuery {
        pattern: query.to_owned(),
        regex: is("literal", false),
        case_sensitive: is("case_sensitive", true),
        path_prefix: text_of(input, "prefix")?.unwrap_or_default().to_owned(),
        context: 0,
        max: u32::try_from(limit).unwrap_or(MATCHES),
    };
    let found = match session.grep(&query) {
        Ok(found) => found,
        // To name a place that is not there is an error here.
        Err(recollex::Error::Memory(_)) => return Ok(Outcome::not_here(NO_SUCH_PARAMETER)),
        Err(error) => return Err(RowError::Host { doing: "grep", error }),
    };
    let lines = found.lines.iter();
    let lines = lines.map(|found| json!({"path": found.path, "line": found.line.number, "text": found.line.text}));
    Ok(Outcome::Shown(
        json!({"matches": lines.collect::<Vec<_>>(), "total": found.total, "truncated": found.truncated}),
    ))
}

fn list(session: &mut Session, input: &Input<'_>) -> Result<Outcome, RowError> {
    let prefix = text_of(input, "prefix")?.unwrap_or_default();
    let limit = number(input, "limit")?.map_or(LISTED, |limit| usize::try_from(limit).unwrap_or(0));
    let limit = limit.clamp(1, LISTED_MAX);
    let (mut files, mut cursor) = (Vec::new(), None);
    loop {
        // In pages of three, so that there are several.
        let page = match session.browse(prefix, cursor.as_deref(), 3) {
            Ok(page) => page,
            Err(recollex::Error::Memory(_)) => return Ok(Outcome::not_here(NO_SUCH_PARAMETER)),
            Err(error) => return Err(RowError::Host { doing: "browse", error }),
        };
        files.extend(page.files);
        cursor = page.next;
        if cursor.is_none() {
            break;
        }
    }
    let total = files.len();
    let shown = files.iter().take(limit);
    let shown = shown.map(|file| json!({"path": file.path, "bytes": file.bytes, "derived": file.derived}));
    Ok(Outcome::Shown(json!({"files": shown.collect::<Vec<_>>(), "total": total, "truncated": total > limit})))
}
