//! Rows of `structure.jsonl`: a workspace's topics, and how their blocks are listed.

use recollex_core::ids::TopicPath;
use recollex_core::read::structure;
use recollex_core::topic::{Check, TopicRef, Tree};

use crate::{Input, Malformed, Observed, Outcome};

pub(crate) fn observe(input: &Input<'_>) -> Observed {
    let files = input.field("files")?.entries()?;
    let topics = files.map(|(path, content)| {
        let path = TopicPath::parse(path).map_err(|error| content.fault(error.to_string()))?;
        Ok(Check::new(path, TopicRef::parse(content.text()?), &()))
    });
    let tree = Tree::new(topics.collect::<Result<Vec<_>, Malformed>>()?);
    Ok(Outcome::Shown(structure(tree.topics()).into()))
}
