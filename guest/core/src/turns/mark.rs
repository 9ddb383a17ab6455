//! The written mark: how a node, or a file of lines, comes to say that it is in memory.
//!
//! A node's file keeps every byte but those of its mark: what else the program that owns it wrote there, how it spelled it and in
//! which order, stays. Knows JSON and one key; what is marked, and when, is decided elsewhere. Nothing but the mark is
//! touched, so neither is a session's time of change.

use super::node::{MARK_KEY, id_of};
use crate::ids::WorkspaceId;
use crate::import::value::{Raw, entries, name};
use crate::source::Problem;
use crate::text::json_string;
use core::ops::Range;
use serde_json::value::RawValue;

/// The change that marks a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MarkSplice {
    /// The bytes of the file that give way; empty: nothing does.
    pub at: Range<usize>,
    /// What comes in their place.
    pub insert: String,
}

/// Why a node's file cannot be marked. It stays as it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MarkError {
    /// It is not what was read: no JSON object any more, or not a whole one.
    #[error("the file is no whole JSON object; read the session again")]
    NotANode,
    /// It is about another node than was read.
    #[error("the file is another node's; read the session again")]
    OtherNode,
    /// A key twice: which of them a program reads is anybody's guess.
    #[error("the file has `{key}` twice; remove one where the conversation is kept")]
    Twice {
        /// The key.
        key: &'static str,
    },
    /// Its metadata is something else than an object or `null`.
    #[error("`metadata` is no object; put it right where the conversation is kept")]
    Metadata,
}

impl MarkError {
    /// The refusal to mark a node's file.
    #[must_use]
    pub fn problem(self, node: &str) -> Problem {
        Problem {
            code: "INVALID_ARGUMENT",
            reason: "unmarkable-node",
            path: None,
            line: None,
            subject: Some(node.to_owned()),
            message: self.to_string(),
        }
    }
}

impl MarkSplice {
    /// The file with the change made. None if these are not the bytes it was planned for.
    #[must_use]
    pub fn apply(&self, bytes: &[u8]) -> Option<Vec<u8>> {
        let (before, behind) = (bytes.get(..self.at.start)?, bytes.get(self.at.end..)?);
        Some([before, self.insert.as_bytes(), behind].concat())
    }
}

/// An entry of an object: where its value is, and what stands between it and the value before.
struct Entry<'a> {
    value: Range<usize>,
    /// From the end of the value before, or behind the opening brace, to the key.
    lead: &'a str,
    /// From the key to the value.
    colon: &'a str,
}

/// An object within a text.
struct Object<'a> {
    /// Behind the last value, or behind the opening brace.
    end: usize,
    last: Option<Entry<'a>>,
    count: usize,
    found: Option<Raw<'a>>,
}

/// Plans the mark of `workspace` on the node `id` whose file holds `bytes`. None: it is marked already.
///
/// A mark of another workspace gives way. A mark that is new comes last in the metadata, spaced as what stands there.
///
/// # Errors
/// The file cannot be marked: see [`MarkError`].
pub fn mark_node(bytes: &[u8], id: &str, workspace: WorkspaceId) -> Result<Option<MarkSplice>, MarkError> {
    let text = core::str::from_utf8(bytes).map_err(|_| MarkError::NotANode)?;
    let node: &RawValue = serde_json::from_str(text).map_err(|_| MarkError::NotANode)?;
    if id_of(object(text, node, "id")?.found).is_none_or(|found| found != id) {
        return Err(MarkError::OtherNode);
    }
    let mark = json_string(&workspace.to_string());
    let around = object(text, node, METADATA)?;
    let Some(metadata) = around.found else {
        let colon = around.last.as_ref().map_or(": ", |entry| entry.colon);
        let value = format!("{{{}{colon}{mark}}}", json_string(MARK_KEY));
        return Ok(Some(around.append(METADATA, &value)));
    };
    let place = span(text, metadata.get()).ok_or(MarkError::NotANode)?;
    if metadata.get() == "null" {
        let colon = around.last.as_ref().map_or(": ", |entry| entry.colon);
        return Ok(Some(MarkSplice { at: place, insert: format!("{{{}{colon}{mark}}}", json_string(MARK_KEY)) }));
    }
    if !metadata.get().starts_with('{') {
        return Err(MarkError::Metadata);
    }
    let inner = object(text, metadata, MARK_KEY)?;
    let Some(old) = inner.found else { return Ok(Some(inner.append(MARK_KEY, &mark))) };
    if name(Some(old)).is_some_and(|old| old == workspace.to_string()) {
        return Ok(None);
    }
    let at = span(text, old.get()).ok_or(MarkError::NotANode)?;
    Ok(Some(MarkSplice { at, insert: mark }))
}

const METADATA: &str = "metadata";

/// Looks through the object `raw` of `text` for a key.
fn object<'a>(text: &'a str, raw: Raw<'a>, key: &'static str) -> Result<Object<'a>, MarkError> {
    let start = span(text, raw.get()).ok_or(MarkError::NotANode)?.start;
    let mut object = Object { end: start + 1, last: None, count: 0, found: None };
    let (mut is_twice, mut is_lost) = (false, false);
    entries(raw, &mut |found, value| {
        let Some(place) = span(text, value.get()) else {
            is_lost = true;
            return false;
        };
        let between = text.get(object.end..place.start).unwrap_or_default();
        // Between two values stand a comma, white space and one key: its quotes are the first and the last.
        let lead = between.find('"').and_then(|quote| between.get(..quote)).unwrap_or_default();
        let colon = between.rfind('"').and_then(|quote| between.get(quote + 1..)).unwrap_or_default();
        object.end = place.end;
        object.count += 1;
        object.last = Some(Entry { value: place, lead, colon });
        if found.bytes() == key.as_bytes() {
            is_twice |= object.found.replace(value).is_some();
        }
        true
    })
    .ok_or(MarkError::NotANode)?;
    match (is_lost, is_twice) {
        (true, _) => Err(MarkError::NotANode),
        (_, true) => Err(MarkError::Twice { key }),
        _ => Ok(object),
    }
}

impl Object<'_> {
    /// A new entry behind the last, spaced as that one is.
    fn append(&self, key: &str, value: &str) -> MarkSplice {
        let key = json_string(key);
        let (at, insert) = match &self.last {
            None => (self.end, format!("{key}: {value}")),
            Some(Entry { value: last, lead, colon }) => {
                let lead = match self.count {
                    // The first of an object has no comma before it; on a line of its own the next has one too.
                    1 if lead.contains('\n') => format!(",{lead}"),
                    1 if colon.ends_with(' ') => ", ".to_owned(),
                    1 => ",".to_owned(),
                    _ => (*lead).to_owned(),
                };
                (last.end, format!("{lead}{key}{colon}{value}"))
            }
        };
        MarkSplice { at: at..at, insert }
    }
}

/// Where a part of a text stands in it. Values are borrowed from the text they were read from, so their addresses tell.
fn span(text: &str, part: &str) -> Option<Range<usize>> {
    let start = part.as_ptr().addr().checked_sub(text.as_ptr().addr())?;
    let range = start..start.checked_add(part.len())?;
    (text.get(range.clone())? == part).then_some(range)
}

/// The line that marks nodes in a file of lines, to be added at its end; `is_ended`: the file is empty or ends in LF.
///
/// One line marks a whole batch: torn, it marks nothing, and nothing before it is touched.
#[must_use]
pub fn mark_line<'i>(ids: impl IntoIterator<Item = &'i str>, workspace: WorkspaceId, is_ended: bool) -> String {
    let ids: Vec<String> = ids.into_iter().map(json_string).collect();
    let start = if is_ended { "" } else { "\n" };
    let workspace = json_string(&workspace.to_string());
    format!("{start}{{{}:{workspace},\"nodes\":[{}]}}\n", json_string(MARK_KEY), ids.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    const WORKSPACE: [u8; 4] = [0x0a, 0x1b, 0x2c, 0x3d];

    fn marked(text: &str) -> Result<String, MarkError> {
        let workspace = WorkspaceId::new(WORKSPACE);
        let splice = mark_node(text.as_bytes(), "a", workspace)?.expect("it was not marked");
        let bytes = splice.apply(text.as_bytes()).expect("its own bytes");
        assert_eq!(mark_node(&bytes, "a", workspace), Ok(None), "{text}");
        Ok(String::from_utf8(bytes).expect("text"))
    }

    #[test]
    fn a_mark_is_spaced_as_its_surroundings() {
        let mark = r#""memory_written_scriptorium": "w-0a1b2c3d""#;
        for (before, after) in [
            (
                "{\n  \"id\": \"a\",\n  \"metadata\": {\n    \"x\": 1\n  }\n}\n",
                format!("{{\n  \"id\": \"a\",\n  \"metadata\": {{\n    \"x\": 1,\n    {mark}\n  }}\n}}\n"),
            ),
            (
                r#"{"id": "a", "metadata": {"x": 1, "y": 2}, "z": 3}"#,
                format!(r#"{{"id": "a", "metadata": {{"x": 1, "y": 2, {mark}}}, "z": 3}}"#),
            ),
            (r#"{"id": "a", "metadata": {"x": 1}}"#, format!(r#"{{"id": "a", "metadata": {{"x": 1, {mark}}}}}"#)),
            (r#"{"id": "a", "metadata": {}}"#, format!(r#"{{"id": "a", "metadata": {{{mark}}}}}"#)),
            (r#"{"id": "a", "metadata": null, "b": 1}"#, format!(r#"{{"id": "a", "metadata": {{{mark}}}, "b": 1}}"#)),
            (r#"{"id": "a"}"#, format!(r#"{{"id": "a", "metadata": {{{mark}}}}}"#)),
            (
                "{\"id\":\"a\"}",
                "{\"id\":\"a\",\"metadata\":{\"memory_written_scriptorium\":\"w-0a1b2c3d\"}}".to_owned(),
            ),
            (
                "{\"id\":\"a\",\"metadata\":{\"x\":1}}",
                "{\"id\":\"a\",\"metadata\":{\"x\":1,\"memory_written_scriptorium\":\"w-0a1b2c3d\"}}".to_owned(),
            ),
        ] {
            assert_eq!(marked(before).as_deref(), Ok(after.as_str()));
        }
    }

    #[test]
    fn a_mark_of_another_workspace_gives_way() {
        let other = r#"{"metadata": {"memory_written_scriptorium": "w-deadbeef", "x": "é\u00e9"}, "id": "a"}"#;
        assert_eq!(marked(other), Ok(other.replace("deadbeef", "0a1b2c3d")));
        let odd = r#"{"metadata": {"memory\u005fwritten_scriptorium": {"n": []}}, "id": "\u0061"}"#;
        assert_eq!(marked(odd), Ok(odd.replace(r#"{"n": []}"#, "\"w-0a1b2c3d\"")));
    }

    #[test]
    fn what_is_in_a_text_is_no_key() {
        let text =
            r#"{"output": "\"metadata\": {\"memory_written_scriptorium\": \"x\"}", "id": "a", "m": {"metadata": {}}}"#;
        let expected = text.replacen(r#"{}}}"#, r#"{}}, "metadata": {"memory_written_scriptorium": "w-0a1b2c3d"}}"#, 1);
        assert_eq!(marked(text), Ok(expected));
    }

    #[test]
    fn what_cannot_be_marked_stays() {
        for (text, error) in [
            ("", MarkError::NotANode),
            ("{\"id\": \"a\"", MarkError::NotANode),
            ("[]", MarkError::NotANode),
            ("{\"id\": \"b\"}", MarkError::OtherNode),
            ("{}", MarkError::OtherNode),
            ("{\"id\": \"a\", \"id\": \"a\"}", MarkError::Twice { key: "id" }),
            ("{\"id\": \"a\", \"metadata\": {}, \"metadata\": {}}", MarkError::Twice { key: "metadata" }),
            ("{\"id\": \"a\", \"metadata\": []}", MarkError::Metadata),
            ("{\"id\": \"a\", \"metadata\": \"{}\"}", MarkError::Metadata),
        ] {
            assert_eq!(mark_node(text.as_bytes(), "a", WorkspaceId::new(WORKSPACE)), Err(error), "{text}");
        }
        assert_eq!(mark_node(b"{\"id\": \"a\xff\"}", "a", WorkspaceId::new(WORKSPACE)), Err(MarkError::NotANode));
    }
}
