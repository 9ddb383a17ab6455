//! One node of a session, from its JSON.
//!
//! Two spellings are read, and either may hold what it likes besides:
//!
//! ```text
//! file  {"id", "created_at", "seq", "role": "user" | "llm" | "code", "output": TEXT | BLOCKS, "predecessor": ID | null,
//!        "metadata": {AUTHORITY, "display", "source", "rewound", "memory_written_scriptorium": WORKSPACE}}
//! line  {"id", "timestamp", "role": "user" | "assistant" | "tool", "content": TEXT | BLOCKS, "predecessor": ID | null,
//!        AUTHORITY, "display", "source", "rewound", "metadata": {"memory_written_scriptorium": WORKSPACE}}
//! mark  {"memory_written_scriptorium": WORKSPACE, "nodes": [ID, …]}
//! ```
//!
//! Knows JSON and these keys. Must not know other nodes.

use super::fault::SessionFaultCode;
use crate::import::value::{Raw, fields, is_absent, items, literal, name, number};
use crate::import::{SkipReason, Utterance, spoken};
use crate::source::NewRecord;
use crate::time::Zone;
use core::fmt;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::collections::BTreeSet;

/// Key of the mark in a node's metadata. Its value is the id of the workspace that the node was written into.
pub const MARK_KEY: &str = "memory_written_scriptorium";

/// Where a node stands in its store.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// In a file of its own, by the name the store gave.
    File(String),
    /// In a line of a file of lines, from 1.
    Line(u64),
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(name) => f.write_str(name),
            Self::Line(number) => write!(f, "line {number}"),
        }
    }
}

/// A node as it was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// As the session has it.
    pub id: String,
    /// The node it comes behind, by its id; none: it begins something.
    pub predecessor: Option<String>,
    /// Where it stands.
    pub place: Place,
    /// Workspaces it is marked as written into; usually none or one.
    pub marks: BTreeSet<String>,
    /// What was said, or why nothing of it is a turn.
    pub turn: Result<Box<NewRecord>, NoTurn>,
    /// Its place among the nodes, where it says so.
    pub(super) rank: Option<i64>,
}

/// Why nothing of a node is a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoTurn {
    /// Nobody said it, or it is not to be kept: the reasons of imports.
    LeftOut(SkipReason),
    /// An archive would refuse it, for this reason (FORMAT.md, "Refusals").
    Refused(&'static str),
}

impl NoTurn {
    /// The stable, kebab-case word.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::LeftOut(reason) => reason.as_str(),
            Self::Refused(reason) => reason,
        }
    }
}

/// What a JSON text turned out to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Entry {
    Node(Node),
    /// Nodes were written into a workspace.
    Mark {
        workspace: String,
        nodes: Vec<String>,
    },
}

/// Why it is none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct NoEntry {
    pub(super) code: SessionFaultCode,
    pub(super) node: Option<String>,
    pub(super) detail: String,
}

impl NoEntry {
    fn new(code: SessionFaultCode, detail: impl Into<String>) -> Self {
        Self { code, node: None, detail: detail.into() }
    }
}

/// Reads a file or line.
pub(super) fn read(bytes: &[u8], place: Place, zone: &Zone) -> Result<Entry, NoEntry> {
    let text = match core::str::from_utf8(bytes) {
        Ok(text) => text,
        // Cut within a character, like any other cut.
        Err(error) if error.error_len().is_none() => {
            return Err(NoEntry::new(SessionFaultCode::HalfWrittenNode, "it ends within a character"));
        }
        Err(error) => {
            let detail = format!("byte {} is not UTF-8", error.valid_up_to());
            return Err(NoEntry::new(SessionFaultCode::MalformedNode, detail));
        }
    };
    let raw: &RawValue = match serde_json::from_str(text) {
        Ok(raw) => raw,
        Err(error) if is_cut(text, &error) => {
            return Err(NoEntry::new(SessionFaultCode::HalfWrittenNode, format!("it has {} bytes", bytes.len())));
        }
        Err(error) => return Err(NoEntry::new(SessionFaultCode::MalformedNode, error.to_string())),
    };
    let malformed = |detail: &str| NoEntry::new(SessionFaultCode::MalformedNode, detail);
    let keys = [
        "id",
        "predecessor",
        "role",
        "output",
        "content",
        "created_at",
        "timestamp",
        "seq",
        "metadata",
        MARK_KEY,
        "nodes",
    ];
    let [id, predecessor, role, output, content, created, timestamp, seq, metadata, mark, nodes] =
        fields(raw, keys).ok_or_else(|| malformed("no JSON object, or a key twice"))?;
    if id.is_none() && (mark.is_some() || nodes.is_some()) {
        return mark_of(mark, nodes).ok_or_else(|| NoEntry::new(SessionFaultCode::BadMarkLine, ""));
    }
    let Some(id) = id_of(id) else {
        return Err(match name(id) {
            Some(_) => malformed("its id has half of a surrogate pair, which no text can hold"),
            None => NoEntry::new(SessionFaultCode::NodeWithoutId, ""),
        });
    };
    let of_this = |fault: NoEntry| NoEntry { node: Some(id.clone()), ..fault };
    if !is_absent(predecessor) && id_of(predecessor).is_none() && predecessor.is_none_or(|raw| raw.get() != "\"\"") {
        return Err(of_this(malformed("predecessor is no id")));
    }
    let marked = match metadata.filter(|metadata| metadata.get() != "null") {
        Some(metadata) => {
            let [marked] = fields(metadata, [MARK_KEY])
                .ok_or_else(|| of_this(malformed("metadata is no object, or has a key twice")))?;
            marked
        }
        None => None,
    };
    let is_line = output.is_none() && content.is_some();
    let utterance = Utterance {
        time: created.or(timestamp),
        role,
        content: output.or(content),
        about: if is_line { Some(raw) } else { metadata },
    };
    let turn = spoken(&id, utterance, zone).map(Box::new).map_err(NoTurn::LeftOut);
    if turn == Err(NoTurn::LeftOut(SkipReason::Malformed)) {
        return Err(of_this(malformed("a key twice")));
    }
    Ok(Entry::Node(Node {
        predecessor: id_of(predecessor),
        marks: [marked, mark].into_iter().filter_map(name).map(Cow::into_owned).collect(),
        // The cast saturates.
        rank: seq.and_then(number).map(|seq| seq as i64),
        id,
        place,
        turn,
    }))
}

/// An id: a text that is not empty, as it is. Of two ids that differ no two are taken for one, so one with half of a surrogate
/// pair is none.
pub(super) fn id_of(raw: Option<Raw<'_>>) -> Option<String> {
    let literal = literal(raw?)?;
    let text = core::str::from_utf8(literal.bytes()).ok()?;
    (!text.is_empty()).then(|| text.to_owned())
}

/// Whether JSON is wrong only because it ends. Within a number the parser says that the number is wrong.
fn is_cut(text: &str, error: &serde_json::Error) -> bool {
    let last = text.rsplit('\n').next().unwrap_or_default();
    let is_at_end = error.line() > text.matches('\n').count() && error.column() >= last.len();
    error.is_eof() || (is_at_end && last.ends_with(['.', '-', '+', 'e', 'E']))
}

fn mark_of(workspace: Option<Raw<'_>>, nodes: Option<Raw<'_>>) -> Option<Entry> {
    let workspace = name(workspace)?.into_owned();
    let mut found = Vec::new();
    let mut sound = true;
    items(nodes?, &mut |node| {
        match id_of(Some(node)) {
            Some(id) => found.push(id),
            None => sound = false,
        }
        true
    })?;
    sound.then_some(Entry::Mark { workspace, nodes: found })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Result<Entry, NoEntry> {
        read(text.as_bytes(), Place::Line(1), &Zone::utc())
    }

    fn node(text: &str) -> Node {
        match of(text) {
            Ok(Entry::Node(node)) => node,
            other => panic!("{text}: {other:?}"),
        }
    }

    fn code(text: &str) -> SessionFaultCode {
        of(text).expect_err(text).code
    }

    #[test]
    fn both_spellings() {
        let file = node(
            r#"{"id":"a","created_at":1700000000.0,"seq":3,"role":"llm","output":"yo","predecessor":"u","metadata":{"memory_written_scriptorium":"w-0a1b2c3d"}}"#,
        );
        let line = node(
            r#"{"id":"a","timestamp":1700000000.0,"role":"assistant","content":[{"type":"text","text":"yo"}],"predecessor":"u","memory_written_scriptorium":"w-0a1b2c3d"}"#,
        );
        assert_eq!(file.turn, line.turn);
        assert_eq!((&file.predecessor, &file.marks), (&line.predecessor, &line.marks));
        let record = file.turn.expect("a turn");
        assert_eq!((record.role.as_str(), record.text.as_str()), ("assistant", "yo"));
        assert_eq!(record.time.as_deref(), Some("2023-11-14T22:13:20+00:00"));
        assert_eq!((file.rank, line.rank), (Some(3), None));
    }

    #[test]
    fn a_line_says_its_authority_beside_its_text() {
        let line = node(
            r#"{"id":"a","role":"user","content":"x","speaker_kind":"human","speaker_id":"7391","speaker_display":"Ada","principal_id":"p","authority_tier":"paired","interaction":"i"}"#,
        );
        let record = line.turn.expect("a turn");
        assert_eq!((record.speaker_id.as_deref(), record.tier.as_deref()), (Some("7391"), Some("paired")));
    }

    #[test]
    fn every_cut_is_half_written_and_no_other_fault() {
        let whole = r#"{"id": "a", "role": "user", "output": "你好 \u4f60", "n": [1.5, true, null], "metadata": {}}"#;
        assert!(of(whole).is_ok());
        for cut in 0..whole.len() {
            let fault = read(&whole.as_bytes()[..cut], Place::Line(1), &Zone::utc()).expect_err("it is cut");
            assert_eq!(fault.code, SessionFaultCode::HalfWrittenNode, "{cut}");
        }
    }

    #[test]
    fn what_is_no_node() {
        use SessionFaultCode::*;
        for text in [
            "[]",
            "1",
            "\"id\"",
            "{} {}",
            "{\"id\":\"a\",\"id\":\"b\"}",
            "{\"id\":\"a\",\"metadata\":[]}",
            "{\"id\":\"a\",\"metadata\":\"x\"}",
            "{\"id\":\"a\",\"metadata\":{\"memory_written_scriptorium\":1,\"memory_written_scriptorium\":2}}",
            "{\"id\":\"a\",\"predecessor\":7}",
            "{\"id\":\"\\ud800\",\"role\":\"user\",\"content\":\"x\"}",
            "{\"id\":\"a\",\"predecessor\":\"x\\udc00\"}",
            "{\"id\":\"a\",\"role\":\"user\",\"content\":\"x\",\"display\":1,\"display\":2}",
            "not json",
        ] {
            assert_eq!(code(text), MalformedNode, "{text}");
        }
        for text in ["{}", "{\"id\":\"\"}", "{\"id\":7}", "{\"id\":null,\"nodes\":[]}"] {
            assert_eq!(code(text), NodeWithoutId, "{text}");
        }
        assert_eq!(read(b"{\"id\":\"\xff\"}", Place::Line(1), &Zone::utc()).expect_err("bytes").code, MalformedNode);
        assert!(node("{\"id\":\"a\",\"predecessor\":\"\",\"metadata\":null}").predecessor.is_none());
    }

    #[test]
    fn lines_that_mark() {
        assert_eq!(
            of("{\"memory_written_scriptorium\":\"w-0a1b2c3d\",\"nodes\":[\"a\",\"b\"]}"),
            Ok(Entry::Mark { workspace: "w-0a1b2c3d".into(), nodes: vec!["a".into(), "b".into()] })
        );
        for text in [
            "{\"memory_written_scriptorium\":\"w-0a1b2c3d\"}",
            "{\"nodes\":[]}",
            "{\"memory_written_scriptorium\":\"w\",\"nodes\":[7]}",
            "{\"memory_written_scriptorium\":\"w\",\"nodes\":\"a\"}",
            "{\"memory_written_scriptorium\":3,\"nodes\":[\"a\"]}",
        ] {
            assert_eq!(code(text), SessionFaultCode::BadMarkLine, "{text}");
        }
    }
}
