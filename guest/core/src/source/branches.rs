//! How the records of a conversation hang together where it was not one line (FORMAT.md, "Branches").
//!
//! An archive is a sequence: a record comes behind the one before it, unless a line in a file beside the archive says what
//! it comes behind instead. Knows those lines. Must not know records or archives; [`super::Batch`] finds out which lines
//! are needed.

use crate::text::{Line, Lines, json_string};
use serde_json::Value;
use std::collections::BTreeMap;

/// Longest line that is read, in bytes: two ids as long as a frame's header may be by default.
pub(super) const LINE_BYTES_MAX: usize = 2 << 20;

/// What a record comes behind in its conversation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Predecessor {
    /// The record before it in the archive, whichever that is.
    #[default]
    Before,
    /// Nothing: something began here.
    Start,
    /// The record of the same conversation with this message part of its id.
    Record(String),
}

/// A line that says what a record comes behind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BranchLine {
    /// The record's message part.
    pub id: String,
    /// That of the record it comes behind; none: nothing.
    pub after: Option<String>,
}

impl BranchLine {
    /// Reads a line without its end. None if it says nothing of the kind. Keys that mean nothing are no fault.
    pub fn parse(line: &[u8]) -> Option<Self> {
        let Value::Object(keys) = serde_json::from_str(core::str::from_utf8(line).ok()?).ok()? else { return None };
        // Both have to be there, so that nothing is taken for said which is not.
        let id = keys.get("id")?.as_str()?.to_owned();
        let after = match keys.get("after")? {
            Value::Null => None,
            Value::String(after) if !after.is_empty() => Some(after.clone()),
            _ => return None,
        };
        (!id.is_empty() && after.as_ref() != Some(&id)).then_some(Self { id, after })
    }

    /// Adds the line, and its end, to `out`.
    pub fn write(&self, out: &mut String) {
        let after = self.after.as_deref().map_or_else(|| "null".to_owned(), json_string);
        out.push_str(&format!("{{\"id\":{},\"after\":{after}}}\n", json_string(&self.id)));
    }
}

/// What a conversation's branches file says.
///
/// Memory follows the number of its lines, which is that of the places where somebody went back, and of imports.
#[derive(Clone, Debug)]
pub struct Branches {
    lines: Lines,
    after: BTreeMap<String, Option<String>>,
    faults: u64,
}

impl Default for Branches {
    fn default() -> Self {
        Self { lines: Lines::new(LINE_BYTES_MAX), after: BTreeMap::new(), faults: 0 }
    }
}

impl Branches {
    /// Of a file that does not exist: every record comes behind the one before it.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes the next piece of the file.
    pub fn push(&mut self, mut piece: &[u8]) {
        let Self { lines, after, faults } = self;
        while let Some(line) = lines.next(&mut piece) {
            keep(after, faults, &line);
        }
    }

    /// The file is over.
    #[must_use]
    pub fn finish(mut self) -> Self {
        let Self { lines, after, faults } = &mut self;
        if let Some(line) = lines.last() {
            keep(after, faults, &line);
        }
        self
    }

    /// What the record with this message part comes behind. Of two lines about one record the first counts, as of two
    /// records with one id. What comes out follows from a file and may lead in circles: whoever walks has to count.
    #[must_use]
    pub fn predecessor(&self, message: &str) -> Predecessor {
        match self.after.get(message) {
            None => Predecessor::Before,
            Some(None) => Predecessor::Start,
            Some(Some(after)) => Predecessor::Record(after.clone()),
        }
    }

    /// How many records have a line.
    #[must_use]
    pub fn len(&self) -> usize {
        self.after.len()
    }

    /// Whether the conversation is one line, as far as its file says.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.after.is_empty()
    }

    /// Lines that say nothing of the kind; they are passed over.
    #[must_use]
    pub fn faults(&self) -> u64 {
        self.faults
    }
}

fn keep(after: &mut BTreeMap<String, Option<String>>, faults: &mut u64, line: &Line<'_>) {
    match BranchLine::parse(line.bytes).filter(|_| !line.long) {
        Some(line) => drop(after.entry(line.id).or_insert(line.after)),
        None if line.bytes.is_empty() => {}
        None => *faults += 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read_as_they_are_written() {
        for (id, after) in [("m2", Some("m1")), ("a/b", None), ("q\"\\\u{1}", Some("你"))] {
            let line = BranchLine { id: id.to_owned(), after: after.map(str::to_owned) };
            let mut text = String::new();
            line.write(&mut text);
            assert_eq!(text.matches('\n').count(), 1);
            assert_eq!(BranchLine::parse(text.trim_end().as_bytes()), Some(line));
        }
        let mut text = String::new();
        BranchLine { id: "m2".into(), after: None }.write(&mut text);
        assert_eq!(text, "{\"id\":\"m2\",\"after\":null}\n");
    }

    #[test]
    fn other_lines_say_nothing() {
        for line in [
            "",
            "m2",
            "[\"m2\",\"m1\"]",
            "{\"id\":\"m2\"}",
            "{\"after\":null}",
            "{\"id\":\"\",\"after\":null}",
            "{\"id\":\"m2\",\"after\":\"\"}",
            "{\"id\":\"m2\",\"after\":\"m2\"}",
            "{\"id\":\"m2\",\"after\":3}",
            "{\"id\":2,\"after\":null}",
            "{\"id\":\"m2\",\"after\":null",
            "{\"id\":\"m2\",\"after\":null} x",
        ] {
            assert_eq!(BranchLine::parse(line.as_bytes()), None, "{line}");
        }
        assert!(BranchLine::parse(b"{\"id\":\"m2\",\"after\":null,\"later\":[1]}").is_some());
    }

    #[test]
    fn a_file_says_what_comes_behind_what() {
        let file =
            "{\"id\":\"b\",\"after\":\"a\"}\n\nbroken\n{\"id\":\"c\",\"after\":null}\n{\"id\":\"b\",\"after\":null}";
        for piece in 1..=file.len() {
            let mut branches = Branches::new();
            file.as_bytes().chunks(piece).for_each(|piece| branches.push(piece));
            let branches = branches.finish();
            assert_eq!(branches.predecessor("b"), Predecessor::Record("a".into()));
            assert_eq!(branches.predecessor("c"), Predecessor::Start);
            assert_eq!(branches.predecessor("a"), Predecessor::Before);
            assert_eq!((branches.len(), branches.faults()), (2, 1));
        }
        assert!(Branches::new().finish().is_empty());
    }
}
