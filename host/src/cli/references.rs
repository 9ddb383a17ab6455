//! `recollex references`: blocks that another program refers to, for its prompt.

use recollex::workspace::{BlockReference, ReferencedBlock};
use serde::{Deserialize, Serialize};

use super::args::References;
use super::context::Context;
use super::failure::{Exit, Failure};
use super::input;

/// The longest list that is read, in bytes: far more than 16 references have.
const LIST_BYTES_MAX: u64 = 1 << 20;

/// A reference as programs keep it.
#[derive(Deserialize)]
struct Given {
    workspace_id: String,
    memory_id: String,
}

#[derive(Serialize)]
struct Document<'a> {
    blocks: Vec<Block<'a>>,
    prompt: &'a str,
}

#[derive(Serialize)]
struct Block<'a> {
    memory_id: &'a str,
    path: &'a str,
    text: &'a str,
    time: Option<&'a str>,
}

impl<'a> From<&'a ReferencedBlock> for Block<'a> {
    fn from(block: &'a ReferencedBlock) -> Self {
        let ReferencedBlock { block, path, text, time } = block;
        Self { memory_id: block, path, text, time: time.as_deref() }
    }
}

/// Runs the verb.
pub fn run(args: &References, context: &Context) -> Result<Exit, Failure> {
    let (text, path) = input::whole(args.file.as_deref(), "references", LIST_BYTES_MAX)?;
    let given: Option<Vec<Given>> = serde_json::from_str(&text).map_err(|error| {
        Failure::usage("malformed-references", format!("this is no list of references: {error}"))
            .at_path(path)
            .at_line(error.line() as u64)
            .next("give a JSON list of {\"workspace_id\", \"memory_id\"}")
    })?;
    let reference = |one: Given| BlockReference { workspace: one.workspace_id, block: one.memory_id };
    let references: Vec<BlockReference> = given.unwrap_or_default().into_iter().map(reference).collect();
    let mut session = context.session()?;
    let shown = context.time("references", || session.references(&references, args.max_chars.unwrap_or(0)))?;
    if context.out.json {
        let blocks = shown.blocks.iter().map(Block::from).collect();
        context.out.document(&Document { blocks, prompt: &shown.prompt });
    } else {
        shown.prompt.lines().for_each(|line| context.out.line(&context.out.look.foreign(line)));
    }
    Ok(if shown.blocks.is_empty() { Exit::NOTHING } else { Exit::DONE })
}
