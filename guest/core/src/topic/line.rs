//! Lines of a topic, and pieces of them that know where they stand.

use core::ops::Range;
use memchr::memchr2;
use std::collections::{BTreeMap, BinaryHeap};

/// A piece of a file, and where it stands in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part<'a> {
    text: &'a str,
    start: usize,
}

impl<'a> Part<'a> {
    pub(super) fn new(text: &'a str, start: usize) -> Self {
        Self { text, start }
    }

    /// The piece itself, line breaks as they are in the file.
    pub fn as_str(self) -> &'a str {
        self.text
    }

    /// Its bytes in the file. Both ends lie between characters.
    pub fn span(self) -> Range<usize> {
        self.start..self.start + self.text.len()
    }

    /// Its first byte in the file.
    pub fn start(self) -> usize {
        self.start
    }

    /// The byte behind its last in the file.
    pub fn end(self) -> usize {
        self.start + self.text.len()
    }

    /// The piece of it at `range`, which counts from its beginning; empty if that is not within it.
    pub(super) fn slice(self, range: Range<usize>) -> Self {
        Self { text: self.text.get(range.clone()).unwrap_or_default(), start: self.start + range.start }
    }

    /// The piece of it that `rest` is, which must be its end.
    pub(super) fn tail(self, rest: &'a str) -> Self {
        Self { text: rest, start: self.end() - rest.len() }
    }

    /// Without white space at its ends.
    pub(super) fn trim(self) -> Self {
        let tail = self.text.trim_start_matches(crate::text::is_whitespace);
        let start = self.end() - tail.len();
        Self { text: tail.trim_end_matches(crate::text::is_whitespace), start }
    }
}

/// A line without its end.
#[derive(Clone, Copy, Debug)]
pub(super) struct Line<'a> {
    pub(super) part: Part<'a>,
    /// Behind the line's end: where the next one begins.
    pub(super) next: usize,
    /// From 1.
    pub(super) number: usize,
}

/// The lines of a text. One ends at LF, CRLF or CR, or with the text; all else that may look like an end (VT, FF, NEL,
/// U+2028, …) is an ordinary character. There is no line behind the last end.
#[derive(Clone, Debug)]
pub(super) struct Lines<'a> {
    text: &'a str,
    at: usize,
    number: usize,
}

impl<'a> Lines<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self { text, at: 0, number: 0 }
    }
}

impl<'a> Iterator for Lines<'a> {
    type Item = Line<'a>;

    #[inline]
    fn next(&mut self) -> Option<Line<'a>> {
        let rest = self.text.get(self.at..).filter(|rest| !rest.is_empty())?;
        let bytes = rest.as_bytes();
        let length = memchr2(b'\n', b'\r', bytes).unwrap_or(bytes.len());
        let end = match (bytes.get(length), bytes.get(length + 1)) {
            (Some(b'\r'), Some(b'\n')) => 2,
            (Some(_), _) => 1,
            (None, _) => 0,
        };
        let start = self.at;
        self.at += length + end;
        self.number += 1;
        Some(Line {
            part: Part::new(rest.get(..length).unwrap_or_default(), start),
            next: self.at,
            number: self.number,
        })
    }
}

/// Tells lines and columns of offsets. Ask in ascending order: then all answers together cost one pass over the text.
#[derive(Clone, Debug)]
pub struct Locator<'a> {
    lines: Lines<'a>,
    line: Option<Line<'a>>,
    text: &'a str,
    /// The offset asked for last, and its column.
    at: usize,
    column: usize,
}

impl<'a> Locator<'a> {
    /// For offsets in `text`.
    pub fn new(text: &'a str) -> Self {
        let mut lines = Lines::new(text);
        let line = lines.next();
        Self { lines, line, text, at: 0, column: 1 }
    }

    /// The line, from 1, and the column in it, from 1 and in characters, that the offset stands at. The end of a text
    /// stands behind its last character.
    pub fn locate(&mut self, offset: usize) -> (usize, usize) {
        if offset < self.at {
            *self = Self::new(self.text);
        }
        while let Some(line) = self.line.filter(|line| line.next <= offset) {
            let Some(next) = self.lines.next() else { break };
            self.line = Some(next);
            self.at = line.next;
            self.column = 1;
        }
        self.column += self.text.get(self.at..offset).map_or(0, |passed| passed.chars().count());
        self.at = self.at.max(offset);
        (self.line.map_or(1, |line| line.number), self.column)
    }
}

/// Texts that were met. A map like those that topics look labels up in, because each kind of map is code of its own.
#[derive(Clone, Debug, Default)]
pub(crate) struct Met<'a>(BTreeMap<&'a str, usize>);

impl<'a> Met<'a> {
    /// Whether it was not met before; now it was.
    pub(crate) fn insert(&mut self, text: &'a str) -> bool {
        self.0.insert(text, 0).is_none()
    }
}

/// The places of these keys in ascending order, of equal ones the first first. A heap sorts in a tenth of the code of `sort`,
/// and the verifier has to be small.
pub(crate) fn ascending(keys: &[usize]) -> Vec<usize> {
    let places = keys.iter().enumerate().map(|(at, key)| (*key, at));
    BinaryHeap::from_iter(places).into_sorted_vec().into_iter().map(|(_, at)| at).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str) -> Vec<&str> {
        Lines::new(text).map(|line| line.part.as_str()).collect()
    }

    #[test]
    fn three_ends_and_no_other() {
        assert_eq!(lines("a\nb\rc\r\nd"), ["a", "b", "c", "d"]);
        assert_eq!(lines("a\n\r\r\nb\n"), ["a", "", "", "b"]);
        assert_eq!(lines("a\u{b}b\u{c}c\u{1c}d\u{85}e\u{2028}f\u{2029}g").len(), 1);
        assert_eq!(lines(""), [""; 0]);
        assert_eq!(lines("\r"), [""]);
    }

    #[test]
    fn places() {
        let text = "ab\r\n你好x\r\rz";
        let mut locator = Locator::new(text);
        let place = |locator: &mut Locator<'_>, what: &str| locator.locate(text.find(what).unwrap());
        assert_eq!(place(&mut locator, "b"), (1, 2));
        assert_eq!(place(&mut locator, "你"), (2, 1));
        assert_eq!(place(&mut locator, "x"), (2, 3));
        assert_eq!(place(&mut locator, "z"), (4, 1));
        assert_eq!(locator.locate(text.len()), (4, 2));
        assert_eq!(place(&mut locator, "好"), (2, 2));
        assert_eq!(Locator::new("").locate(0), (1, 1));
        assert_eq!(Locator::new("a\n").locate(2), (1, 3));
    }
}
