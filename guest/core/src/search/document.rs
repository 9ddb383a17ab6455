//! What the index is given, and what it keeps of it.
//!
//! The index keeps no text: whoever shows a hit reads it from its file. It keeps what filters and ties need, names
//! interned, about 40 bytes a document and the last part of its id.

use super::fold::fold_name;
use super::token::{Token, Tokenizer};
use crate::ids::Span;
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// Number of a document, from 0 in the order in which documents were added.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DocId(pub(super) u32);

impl DocId {
    /// The number, as an index into a table of the caller's.
    pub fn get(self) -> usize {
        self.0 as usize
    }
}

/// What kind of thing a document is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// A record of evidence.
    Source,
    /// A paragraph of a topic.
    Topic,
    /// A reviewed experience.
    Experience,
}

/// Something to be found.
#[derive(Clone, Copy, Debug)]
pub struct Document<'a> {
    /// Its id, by which hits are named and ties are broken. Unique by the caller's care: the index finds what it was given
    /// as often as it was given.
    pub id: &'a str,
    /// Its file, relative to the workspace, as in `sources/openprogram/_v2/t1.md`.
    pub path: &'a str,
    /// What it is.
    pub kind: Kind,
    /// When: what stands between a record's brackets. Its day is the whole of it where it is written `YYYY`, `YYYY-MM` or
    /// `YYYY-MM-DD`, else the first `YYYY-MM-DD` in it, else the first in the label and the text.
    pub time: &'a str,
    /// The label as written in the record. Counts as text, so that a query may name the speaker.
    pub label: &'a str,
    /// Who the runtime says spoke; none where it gave nobody.
    pub speaker: Option<Speaker<'a>>,
    /// What was said, of any length.
    pub text: &'a str,
}

impl Document<'_> {
    /// The days it is about.
    pub(super) fn days(&self) -> Option<Span> {
        Span::parse(self.time).or_else(|| [self.time, self.label, self.text].into_iter().find_map(Span::first_in))
    }
}

/// The names of a speaker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Speaker<'a> {
    /// As the runtime gave it; may be empty.
    pub id: &'a str,
    /// The name alone; may be empty.
    pub display: &'a str,
    /// Name and id as people see them.
    pub label: &'a str,
}

/// A document's id, in the two parts in which it is kept.
#[derive(Clone, Copy, Debug)]
pub struct Id<'a> {
    /// Up to and with the second `/`: what the records of a conversation share.
    conversation: &'a str,
    message: &'a str,
}

impl Id<'_> {
    fn bytes(&self) -> impl Iterator<Item = u8> {
        self.conversation.bytes().chain(self.message.bytes())
    }
}

impl fmt::Display for Id<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.conversation)?;
        f.write_str(self.message)
    }
}

impl PartialEq for Id<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Id<'_> {}

impl PartialOrd for Id<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// In code-point order of the whole.
impl Ord for Id<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        if self.conversation == other.conversation {
            self.message.cmp(other.message)
        } else {
            self.bytes().cmp(other.bytes())
        }
    }
}

/// What is kept of a document.
#[derive(Clone, Copy, Debug)]
pub struct Stored<'a> {
    /// Its id.
    pub id: Id<'a>,
    /// Its file.
    pub path: &'a str,
    /// What it is.
    pub kind: Kind,
    /// The days it is about, if any.
    pub days: Option<Span>,
}

/// All documents, without their text.
#[derive(Clone, Debug, Default)]
pub(super) struct Documents {
    entries: Vec<Entry>,
    conversations: Names,
    messages: String,
    pub(super) paths: Names,
    pub(super) speakers: Speakers,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    conversation: u32,
    /// Where the last part of the id ends in `messages`; it begins where the one before it ends.
    message_end: usize,
    /// Number of the file.
    pub(super) path: u32,
    /// Number of the speaker.
    pub(super) speaker: Option<SpeakerId>,
    pub(super) days: Option<Span>,
    pub(super) kind: Kind,
}

impl Documents {
    pub(super) fn add(&mut self, document: &Document<'_>) {
        let slash = document.id.match_indices('/').nth(1).map_or(0, |(at, _)| at + 1);
        let (conversation, message) = document.id.split_at_checked(slash).unwrap_or(("", document.id));
        self.messages.push_str(message);
        let entry = Entry {
            conversation: self.conversations.intern(conversation),
            message_end: self.messages.len(),
            path: self.paths.intern(document.path),
            speaker: document.speaker.map(|speaker| self.speakers.intern(speaker)),
            days: document.days(),
            kind: document.kind,
        };
        self.entries.push(entry);
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(super) fn entry(&self, document: DocId) -> Option<&Entry> {
        self.entries.get(document.get())
    }

    pub(super) fn id(&self, document: DocId) -> Option<Id<'_>> {
        let entry = self.entry(document)?;
        let start = match document.get().checked_sub(1) {
            Some(before) => self.entries.get(before)?.message_end,
            None => 0,
        };
        let conversation = self.conversations.get(entry.conversation)?;
        Some(Id { conversation, message: self.messages.get(start..entry.message_end)? })
    }

    pub(super) fn get(&self, document: DocId) -> Option<Stored<'_>> {
        let entry = self.entry(document)?;
        let path = self.paths.get(entry.path)?;
        Some(Stored { id: self.id(document)?, path, kind: entry.kind, days: entry.days })
    }
}

/// Strings, each kept once.
#[derive(Clone, Debug, Default)]
pub(super) struct Names {
    numbers: BTreeMap<Arc<str>, u32>,
    names: Vec<Arc<str>>,
}

impl Names {
    fn intern(&mut self, name: &str) -> u32 {
        if let Some(number) = self.numbers.get(name) {
            return *number;
        }
        // At most one name a document, and documents are numbered by `u32`.
        let number = self.names.len() as u32;
        let name: Arc<str> = name.into();
        self.names.push(Arc::clone(&name));
        self.numbers.insert(name, number);
        number
    }

    fn get(&self, number: u32) -> Option<&str> {
        self.names.get(number as usize).map(|name| &**name)
    }

    /// Which names satisfy a test, by number.
    pub(super) fn select(&self, test: impl Fn(&str) -> bool) -> Vec<bool> {
        self.names.iter().map(|name| test(name)).collect()
    }
}

/// Number of a speaker; a speaker is the three names together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SpeakerId(u32);

impl SpeakerId {
    pub(super) fn get(self) -> usize {
        self.0 as usize
    }
}

/// Speakers, each kept once, with their names folded for comparison.
#[derive(Clone, Debug, Default)]
pub(super) struct Speakers {
    numbers: BTreeMap<[String; 3], SpeakerId>,
    folded: Vec<[String; 3]>,
    /// The words of the display name.
    words: Vec<Vec<String>>,
}

impl Speakers {
    fn intern(&mut self, speaker: Speaker<'_>) -> SpeakerId {
        let names = [speaker.id, speaker.display, speaker.label].map(fold_name);
        if let Some(number) = self.numbers.get(&names) {
            return *number;
        }
        let number = SpeakerId(self.folded.len() as u32);
        let mut words = Vec::new();
        Tokenizer::default().tokenize(speaker.display, |token| match token {
            Token::Word(word) | Token::Pair(word) => words.push(word.to_owned()),
            // One character is too little to be taken for a name.
            Token::Single(_) | Token::Last(_) => {}
        });
        self.words.push(words);
        self.folded.push(names.clone());
        self.numbers.insert(names, number);
        number
    }

    /// Which speakers have a word in their display name that satisfies a test, by number.
    pub(super) fn select_by_word(&self, test: impl Fn(&str) -> bool) -> Vec<bool> {
        self.words.iter().map(|words| words.iter().any(|word| test(word))).collect()
    }

    /// Which speakers have a name, folded, that satisfies a test, by number.
    pub(super) fn select(&self, test: impl Fn(&str) -> bool) -> Vec<bool> {
        self.folded.iter().map(|names| names.iter().any(|name| test(name))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn document<'a>(id: &'a str, time: &'a str, text: &'a str) -> Document<'a> {
        Document { id, path: "sources/p/_v2/t.md", kind: Kind::Source, time, label: "user", speaker: None, text }
    }

    #[test]
    fn ids_come_back_whole_and_in_their_order() {
        let ids = ["p/t/m/1", "p/t/", "p/t/m", "lex_0123", "", "p/t", "p-/t/m", "p/t-/m", "p/t/é", "p/t/m/1"];
        let mut documents = Documents::default();
        for id in ids {
            documents.add(&document(id, "", ""));
        }
        let kept: Vec<Id<'_>> = (0..ids.len() as u32).map(|n| documents.id(DocId(n)).unwrap()).collect();
        for (a, a_text) in kept.iter().zip(ids) {
            assert_eq!(a.to_string(), a_text);
            for (b, b_text) in kept.iter().zip(ids) {
                assert_eq!(a.cmp(b), a_text.cmp(b_text), "{a_text} {b_text}");
            }
        }
        assert!(documents.id(DocId(ids.len() as u32)).is_none());
    }

    #[test]
    fn the_day_is_the_times_or_the_first_that_is_written() {
        let day = |time, text| document("p/t/m", time, text).days().map(|span| (span.first(), span.last()));
        let of = |written| Span::parse(written).map(|span| (span.first(), span.last()));
        assert_eq!(day("2024-03-15T10:00:00+00:00", "on 2020-01-01"), of("2024-03-15"));
        assert_eq!(day("2024-03", "on 2020-01-01"), of("2024-03"));
        assert_eq!(day("yesterday", "on 2020-01-01"), of("2020-01-01"));
        assert_eq!(day("", "never"), None);
    }
}
