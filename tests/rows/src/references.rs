//! Rows of `references.jsonl`: references to blocks that another program keeps.
//!
//! Rows without files are about the workspace of those with. The observed program has no code for what it refuses; ours is
//! shown beside.

use std::collections::BTreeMap;

use recollex_core::ids::TopicPath;
use recollex_core::read::{BlockReference, ReadFault, ReferencedBlock, referable, render, resolve};
use recollex_core::topic::{Check, TopicRef, Tree, Unit};
use serde_json::{Value, json};

use crate::archives::Archives;
use crate::{Input, Malformed, Observed, Outcome};

/// What the workspace of every row is called.
pub const WORKSPACE: &str = "w-0a1b2c3d";
/// How many sentences the long block of the rows' workspace has.
const SENTENCES: usize = 200;

pub(crate) fn observe(input: &Input<'_>) -> Observed {
    let files = match input.maybe("files") {
        Some(files) => files
            .entries()?
            .map(|(path, content)| Ok((path.to_owned(), content.text()?.to_owned())))
            .collect::<Result<BTreeMap<_, _>, Malformed>>()?,
        None => workspace(),
    };
    let units = units(&files);
    let number = |name: &str| -> Result<usize, Malformed> {
        let field = input.field(name)?;
        usize::try_from(field.integer()?).map_err(|error| field.fault(error.to_string()))
    };
    let refs = || -> Result<Result<Vec<ReferencedBlock>, ReadFault>, Malformed> {
        let references = BlockReference::read(input.field("refs")?.value());
        let find = |id: &str| units.iter().find(|unit| unit.id.as_str() == id).cloned();
        Ok(references.and_then(|references| resolve(&references, WORKSPACE, &find)))
    };
    let shown = match input.field("op")?.text()? {
        "list" => Ok(listed(&referable(&units, WORKSPACE, input.field("query")?.text()?, number("limit")?))),
        "resolve" => refs()?.map(|blocks| listed(&blocks)),
        "render_context" => {
            let most = number("max_chars")?;
            refs()?.and_then(|blocks| render(&blocks, most)).map(Value::from)
        }
        _ => return Ok(Outcome::not_here("an operation that is not known")),
    };
    Ok(Outcome::Shown(shown.unwrap_or_else(
        |fault| json!({"error": {"code": "error", "refusal": fault.code(), "reason": fault.reason()}}),
    )))
}

/// What rows without files are about.
#[must_use]
pub fn workspace() -> BTreeMap<String, String> {
    let note = |text: &str, id: &str| format!("{text}[^e] ^{id}\n\n[^e]: Time: `2026-01-02`; Sources: [one](D1:1)\n");
    let long = "Long fact. ".repeat(SENTENCES);
    BTreeMap::from([
        ("topics/note.md".to_owned(), note("A fact.", "aaaa1111")),
        ("topics/b.md".to_owned(), note(&long, "bbbb2222")),
    ])
}

fn units(files: &BTreeMap<String, String>) -> Vec<Unit> {
    let archives = Archives::new(files.iter().map(|(path, text)| (path.as_str(), text.as_bytes())));
    let topics = files
        .iter()
        .filter_map(|(path, text)| Some(Check::new(TopicPath::parse(path).ok()?, TopicRef::parse(text), &archives)));
    Tree::new(topics.collect()).units()
}

fn listed(blocks: &[ReferencedBlock]) -> Value {
    let block = |block: &ReferencedBlock| {
        json!({
            "workspace_id": block.reference.workspace_id,
            "memory_id": block.reference.memory_id,
            "topic_path": block.topic_path,
            "content": block.content,
            "when": block.when.map(|when| when.to_string()),
        })
    };
    blocks.iter().map(block).collect()
}
