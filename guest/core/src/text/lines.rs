//! Lines in pieces: bytes in, lines out, cut anywhere.

use memchr::memchr;

/// A line without its LF.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Line<'a> {
    /// From 1.
    pub number: u64,
    /// Of its first byte in the input.
    pub offset: u64,
    /// Its bytes; only the first of them if it is longer than is allowed.
    pub bytes: &'a [u8],
    /// It is longer than is allowed.
    pub long: bool,
    /// A LF follows. False: the input ends here.
    pub ended: bool,
}

/// Cuts an input that comes in pieces at each LF. Keeps at most one line, and of that as much as is allowed.
#[derive(Clone, Debug)]
pub struct Lines {
    max: usize,
    kept: Vec<u8>,
    long: bool,
    /// What is kept was handed out.
    handed: bool,
    number: u64,
    start: u64,
    at: u64,
}

impl Lines {
    /// At the start of an input, for lines of at most `max` bytes.
    #[must_use]
    pub fn new(max: usize) -> Self {
        Self { max, kept: Vec::new(), long: false, handed: false, number: 1, start: 0, at: 0 }
    }

    /// The next line that ends in `piece`, whose bytes up to there are taken off it. None: all of it is taken.
    pub fn next<'a, 'p: 'a>(&'a mut self, piece: &mut &'p [u8]) -> Option<Line<'a>> {
        if core::mem::take(&mut self.handed) {
            self.kept.clear();
        }
        if piece.is_empty() {
            return None;
        }
        let Some(end) = memchr(b'\n', piece) else {
            self.keep(piece);
            self.at += piece.len() as u64;
            *piece = &[];
            return None;
        };
        let (bytes, rest) = piece.split_at_checked(end).unwrap_or((piece, &[]));
        *piece = rest.get(1..).unwrap_or_default();
        self.at += end as u64 + 1;
        let bytes = if self.kept.is_empty() && bytes.len() <= self.max {
            bytes
        } else {
            self.keep(bytes);
            self.handed = true;
            &self.kept
        };
        let line = Line { number: self.number, offset: self.start, bytes, long: self.long, ended: true };
        self.number += 1;
        self.start = self.at;
        self.long = false;
        Some(line)
    }

    /// The input is over: what comes behind its last LF, if anything does.
    pub fn last(&mut self) -> Option<Line<'_>> {
        if core::mem::take(&mut self.handed) {
            self.kept.clear();
        }
        let offset = core::mem::replace(&mut self.start, self.at);
        self.handed = true;
        (offset < self.at).then_some(Line {
            number: self.number,
            offset,
            bytes: &self.kept,
            long: self.long,
            ended: false,
        })
    }

    fn keep(&mut self, bytes: &[u8]) {
        let room = self.max.saturating_sub(self.kept.len());
        self.long |= bytes.len() > room;
        self.kept.extend_from_slice(bytes.get(..room.min(bytes.len())).unwrap_or_default());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Seen = (u64, u64, Vec<u8>, bool, bool);

    fn seen(line: Line<'_>) -> Seen {
        (line.number, line.offset, line.bytes.to_vec(), line.long, line.ended)
    }

    fn run(input: &[u8], piece: usize, max: usize) -> Vec<Seen> {
        let mut lines = Lines::new(max);
        let mut found = Vec::new();
        for mut piece in input.chunks(piece) {
            while let Some(line) = lines.next(&mut piece) {
                found.push(seen(line));
            }
        }
        found.extend(lines.last().map(seen));
        assert_eq!(lines.last(), None);
        found
    }

    #[test]
    fn cut_anywhere() {
        let input = b"one\n\ntwo\r\nfour is long\nend";
        let expected: Vec<Seen> = vec![
            (1, 0, b"one".to_vec(), false, true),
            (2, 4, b"".to_vec(), false, true),
            (3, 5, b"two\r".to_vec(), false, true),
            (4, 10, b"four".to_vec(), true, true),
            (5, 23, b"end".to_vec(), false, false),
        ];
        for piece in 1..=input.len() {
            assert_eq!(run(input, piece, 4), expected, "pieces of {piece}");
        }
        assert_eq!(run(b"", 1, 4), []);
        assert_eq!(run(b"a\n", 1, 4).len(), 1);
        assert_eq!(run(b"abcdefgh", 3, 4), [(1, 0, b"abcd".to_vec(), true, false)]);
    }
}
