//! A text with pieces of it replaced, which still knows where everything came from.

use crate::text::is_whitespace;
use crate::topic::line::Part;
use core::ops::Range;

/// Replacements to make in one text.
#[derive(Debug, Default)]
pub(super) struct Splices {
    list: Vec<(Range<usize>, String)>,
}

impl Splices {
    /// Puts `with` in the place of the bytes at `range`, which may be none. Of two that overlap, only the one that begins
    /// first is made; two at one place are put one behind the other.
    pub(super) fn replace(&mut self, range: Range<usize>, with: impl Into<String>) {
        self.list.push((range, with.into()));
    }

    /// Takes the replacements of another list over.
    pub(super) fn append(&mut self, mut other: Self) {
        self.list.append(&mut other.list);
    }

    /// What they make of a piece of the text that they are all within.
    pub(super) fn applied(&self, piece: Part<'_>) -> String {
        let within = |(range, with): &(Range<usize>, String)| {
            (range.start.saturating_sub(piece.start())..range.end.saturating_sub(piece.start()), with.clone())
        };
        Self { list: self.list.iter().map(within).collect() }.apply(piece.as_str()).text
    }

    /// Makes the replacements.
    pub(super) fn apply(mut self, text: &str) -> Rewritten {
        self.list.sort_by_key(|(range, _)| (range.start, range.end));
        let mut new = Rewritten { text: String::with_capacity(text.len()), pieces: Vec::new() };
        let mut at = 0;
        for (range, with) in self.list {
            let Some(kept) = text.get(at..range.start) else { continue };
            if text.get(range.clone()) == Some(with.as_str()) {
                continue;
            }
            new.push(kept, at, true);
            new.push(&with, range.start, false);
            at = range.end;
        }
        new.push(text.get(at..).unwrap_or_default(), at, true);
        new
    }
}

/// What came of it.
#[derive(Debug)]
pub(super) struct Rewritten {
    pub(super) text: String,
    pieces: Vec<Piece>,
}

/// A piece of the new text, and what it came from: the same bytes, or the place of those that it replaces.
#[derive(Clone, Copy, Debug)]
struct Piece {
    out: usize,
    origin: usize,
    kept: bool,
}

impl Rewritten {
    fn push(&mut self, piece: &str, origin: usize, kept: bool) {
        if !piece.is_empty() || self.pieces.is_empty() {
            self.pieces.push(Piece { out: self.text.len(), origin, kept });
            self.text.push_str(piece);
        }
    }

    /// White space at the end of the new text gives way to one LF.
    pub(super) fn end_with_lf(&mut self) {
        self.text.truncate(self.text.trim_end_matches(is_whitespace).len());
        self.text.push('\n');
    }

    /// Where in the old text the byte at `offset` of the new one comes from; for one that was put in, the place it was put.
    pub(super) fn origin(&self, offset: usize) -> usize {
        let behind = self.pieces.partition_point(|piece| piece.out <= offset);
        match behind.checked_sub(1).and_then(|at| self.pieces.get(at)) {
            Some(piece) if piece.kept => piece.origin + (offset - piece.out),
            Some(piece) => piece.origin,
            None => offset,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replaced_and_traced() {
        let text = "abcdef";
        let mut splices = Splices::default();
        splices.replace(4..5, "");
        splices.replace(1..3, "XYZ");
        splices.replace(6..6, "!");
        splices.replace(2..4, "overlaps");
        let new = splices.apply(text);
        assert_eq!(new.text, "aXYZdf!");
        let origins: Vec<usize> = (0..=new.text.len()).map(|offset| new.origin(offset)).collect();
        assert_eq!(origins, [0, 1, 1, 1, 3, 5, 6, 6]);
        let mut ended = Splices::default().apply("a \n\n");
        ended.end_with_lf();
        assert_eq!(ended.text, "a\n");
        let same = Splices::default().apply("");
        assert_eq!((same.text.as_str(), same.origin(0)), ("", 0));
    }
}
