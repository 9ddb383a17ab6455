//! References to blocks that other programs keep with their tasks.

use super::structure::is_about;
use super::{ReadFault, first_chars};
use crate::ids::{EvidenceTime, is_label_byte};
use crate::text::{caseless, collapse_whitespace};
use crate::topic::Unit;
use serde_json::Value;

/// References that one task may have.
pub const REFERENCES_MAX: usize = 16;

/// Characters that an id of a block in a reference may have.
const ID_CHARS_MAX: usize = 128;

const HEAD: &str = "Referenced Memory (current content):\n\
                    When a referenced record describes this scheduled task, keep its status current with memory_status, \
                    memory_get, and memory_update; delete it only when no durable value remains.";
const CUT: &str = " … [content truncated]";

/// A block of a workspace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockReference {
    /// `w-` and eight hexadecimal digits.
    pub workspace_id: String,
    /// The block's id.
    pub memory_id: String,
}

/// A block that is referred to, as it reads now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReferencedBlock {
    /// What refers to it.
    pub reference: BlockReference,
    /// Its topic's path below `topics/`.
    pub topic_path: String,
    /// What it claims.
    pub content: String,
    /// When it was.
    pub when: Option<EvidenceTime>,
}

impl BlockReference {
    /// Reads what a program has kept: nothing, or a list of objects with `workspace_id` and `memory_id`. Each reference once.
    ///
    /// # Errors
    /// It is something else, or too long a list.
    pub fn read(value: &Value) -> Result<Vec<Self>, ReadFault> {
        let given = match value {
            Value::Null => return Ok(Vec::new()),
            Value::Array(given) => given,
            _ => return Err(ReadFault::MalformedReference(1)),
        };
        let field = |value: &Value, name| value.get(name).and_then(Value::as_str).map(str::to_owned);
        Self::take(given.iter().map(|value| Some((field(value, "workspace_id")?, field(value, "memory_id")?))))
    }

    /// The same of pairs of a workspace's id and a block's.
    ///
    /// # Errors
    /// As [`BlockReference::read`].
    pub fn of_pairs(pairs: Vec<(String, String)>) -> Result<Vec<Self>, ReadFault> {
        Self::take(pairs.into_iter().map(Some))
    }

    fn take(given: impl ExactSizeIterator<Item = Option<(String, String)>>) -> Result<Vec<Self>, ReadFault> {
        if given.len() > REFERENCES_MAX {
            return Err(ReadFault::TooManyReferences);
        }
        let mut references: Vec<Self> = Vec::new();
        for (number, pair) in (1..).zip(given) {
            let is_id = |id: &str| !id.is_empty() && id.len() <= ID_CHARS_MAX && id.bytes().all(is_label_byte);
            let (workspace_id, memory_id) = pair.ok_or(ReadFault::MalformedReference(number))?;
            if !is_id(&memory_id) {
                return Err(ReadFault::MalformedReference(number));
            }
            let reference = Self { workspace_id, memory_id };
            if !references.contains(&reference) {
                references.push(reference);
            }
        }
        Ok(references)
    }
}

fn referenced(workspace_id: &str, unit: &Unit) -> ReferencedBlock {
    ReferencedBlock {
        reference: BlockReference { workspace_id: workspace_id.to_owned(), memory_id: unit.id.as_str().to_owned() },
        topic_path: unit.topic.below_topics().to_owned(),
        content: unit.content.clone(),
        when: unit.when,
    }
}

/// What references lead to. `find` gives the unit with an id.
///
/// # Errors
/// One leads into another workspace, or to no block: then nothing is shown, so that nobody takes a part for all.
pub fn resolve(
    references: &[BlockReference],
    workspace_id: &str,
    find: &dyn Fn(&str) -> Option<Unit>,
) -> Result<Vec<ReferencedBlock>, ReadFault> {
    let one = |reference: &BlockReference| {
        if reference.workspace_id != workspace_id {
            return Err(ReadFault::ForeignWorkspace(reference.workspace_id.clone()));
        }
        let unit = find(&reference.memory_id).ok_or_else(|| ReadFault::NoSuchBlock(reference.memory_id.clone()))?;
        Ok(referenced(workspace_id, &unit))
    };
    references.iter().map(one).collect()
}

/// The blocks there are to refer to, in order, those whose id, path or text contains `query` in whatever letter case; at most
/// `limit`, and at least 1.
pub fn referable(units: &[Unit], workspace_id: &str, query: &str, limit: usize) -> Vec<ReferencedBlock> {
    let query = caseless(query);
    let is_meant = |unit: &&Unit| is_about([unit.id.as_str(), unit.topic.below_topics(), &unit.content], &query);
    units.iter().filter(is_meant).take(limit.max(1)).map(|unit| referenced(workspace_id, unit)).collect()
}

/// Blocks as a prompt shows them, in at most `max_chars` characters: a head, and a line each. What some leave over is the
/// others'; what is cut is marked.
///
/// # Errors
/// There is too little room to show something of each.
pub fn render(blocks: &[ReferencedBlock], max_chars: usize) -> Result<String, ReadFault> {
    if blocks.is_empty() {
        return Ok(String::new());
    }
    let lead = |block: &ReferencedBlock| format!("\n- [{}] topics/{}: ", block.reference.memory_id, block.topic_path);
    let leads: Vec<String> = blocks.iter().map(lead).collect();
    let contents: Vec<String> = blocks.iter().map(|block| collapse_whitespace(&block.content)).collect();
    let fixed = chars(HEAD) + leads.iter().map(|lead| chars(lead)).sum::<usize>();
    let needed = fixed + contents.iter().map(|content| chars(content).min(chars(CUT))).sum::<usize>();
    if needed > max_chars {
        return Err(ReadFault::TooFewChars { given: max_chars, needed });
    }
    let shares = shares(&contents, max_chars - fixed);
    let mut out = HEAD.to_owned();
    for ((lead, content), share) in leads.iter().zip(&contents).zip(shares) {
        out.push_str(lead);
        match first_chars(content, share) {
            (whole, false) => out.push_str(whole),
            _ => {
                out.push_str(first_chars(content, share.saturating_sub(chars(CUT))).0.trim_end());
                out.push_str(CUT);
            }
        }
    }
    Ok(out)
}

fn chars(text: &str) -> usize {
    text.chars().count()
}

/// Divides room among texts: all the same, but what one does not need is the others'.
fn shares(texts: &[String], mut room: usize) -> Vec<usize> {
    let mut shortest: Vec<(usize, usize)> = texts.iter().map(|text| chars(text)).zip(0..).collect();
    shortest.sort_unstable();
    let mut shares = vec![0; texts.len()];
    let mut left = texts.len();
    for (length, number) in shortest {
        let share = length.min(room / left.max(1));
        room -= share;
        left -= 1;
        if let Some(own) = shares.get_mut(number) {
            *own = share;
        }
    }
    shares
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(id: &str, length: usize) -> ReferencedBlock {
        let reference = BlockReference { workspace_id: "w-0a1b2c3d".into(), memory_id: id.into() };
        ReferencedBlock { reference, topic_path: "a.md".into(), content: "块".repeat(length), when: None }
    }

    #[test]
    fn room_is_divided() {
        for lengths in [&[0, 1000][..], &[1000, 0], &[300, 300, 300], &[5], &[1000, 10, 1000]] {
            let blocks: Vec<_> = lengths.iter().map(|length| block("id", *length)).collect();
            for most in 100..2500 {
                match render(&blocks, most) {
                    Ok(text) => {
                        let length = text.chars().count();
                        assert!(length <= most, "{most}: {length}");
                        // Nothing is cut while there is room.
                        assert!(!text.contains(CUT) || length + 1 >= most, "{most}: {length}\n{text}");
                        assert_eq!(text.lines().count(), 2 + blocks.len());
                    }
                    Err(fault) => assert_eq!(fault.reason(), "too-few-characters"),
                }
            }
            assert!(render(&blocks, 2500).is_ok_and(|text| !text.contains(CUT)));
        }
        assert_eq!(render(&[], 0), Ok(String::new()));
    }
}
