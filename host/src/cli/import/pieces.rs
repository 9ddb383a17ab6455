//! A stream in pieces that are text wherever the stream is.
//!
//! Knows where a character ends. Must not know what the text means.

use std::io::{self, Read};
use std::str::Utf8Error;

/// Bytes read at a time, at most. Between two pieces a person who wants to stop is heard, and the bar goes on.
pub const PIECE_BYTES: usize = 256 << 10;

/// A part of a stream.
#[derive(Debug, PartialEq, Eq)]
pub enum Piece<'a> {
    /// Whole characters.
    Text(&'a str),
    /// From here on the stream is not UTF-8; may begin and end inside a character.
    Bytes(&'a [u8]),
}

/// Cuts a stream into pieces: one buffer, whatever the stream's length.
pub struct Pieces<R> {
    stream: R,
    buffer: Vec<u8>,
    /// Bytes of the buffer that hold what was read.
    filled: usize,
    /// Bytes of the buffer that were handed out by the last call.
    given: usize,
    is_text: bool,
}

impl<R: Read> Pieces<R> {
    /// Reads from `stream`.
    pub fn new(stream: R) -> Self {
        Self::of_size(stream, PIECE_BYTES)
    }

    fn of_size(stream: R, size: usize) -> Self {
        // No character is longer than four bytes: with less there might be no whole one in the buffer.
        Self { stream, buffer: vec![0; size.max(4)], filled: 0, given: 0, is_text: true }
    }

    /// The next piece; none at the end. Every piece but the last is as long as the buffer, save the beginning of a
    /// character that comes with the next one; a stream that gives less at a time is waited for.
    ///
    /// # Errors
    /// The stream cannot be read on.
    pub fn next(&mut self) -> io::Result<Option<Piece<'_>>> {
        self.buffer.copy_within(self.given..self.filled, 0);
        self.filled -= self.given;
        self.given = 0;
        let mut ended = false;
        while let Some(room) = self.buffer.get_mut(self.filled..).filter(|room| !room.is_empty()) {
            match self.stream.read(room) {
                Ok(0) => {
                    ended = true;
                    break;
                }
                Ok(read) => self.filled += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        let bytes = self.buffer.get(..self.filled).unwrap_or_default();
        if bytes.is_empty() {
            return Ok(None);
        }
        if self.is_text {
            match std::str::from_utf8(bytes).map_err(|error| whole(&error, ended)) {
                Ok(text) => {
                    self.given = bytes.len();
                    return Ok(Some(Piece::Text(text)));
                }
                Err(Some(end)) => {
                    self.given = end;
                    // Checked up to here just now.
                    let text = std::str::from_utf8(bytes.get(..end).unwrap_or_default()).unwrap_or_default();
                    return Ok(Some(Piece::Text(text)));
                }
                Err(None) => self.is_text = false,
            }
        }
        self.given = bytes.len();
        Ok(Some(Piece::Bytes(bytes)))
    }
}

/// Where the whole characters end, if all that is wrong is that the last one goes on in the next piece.
fn whole(error: &Utf8Error, ended: bool) -> Option<usize> {
    (error.error_len().is_none() && !ended && error.valid_up_to() > 0).then(|| error.valid_up_to())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Gives a few bytes at a time.
    struct Drip<'a>(&'a [u8], usize);

    impl Read for Drip<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let n = self.1.min(self.0.len()).min(buffer.len());
            let (now, later) = self.0.split_at(n);
            buffer[..n].copy_from_slice(now);
            self.0 = later;
            Ok(n)
        }
    }

    /// All pieces, and whether all of them were text.
    fn read(bytes: &[u8], size: usize, drip: usize) -> (Vec<u8>, bool) {
        let mut pieces = Pieces::of_size(Drip(bytes, drip), size);
        let (mut all, mut is_text) = (Vec::new(), true);
        while let Some(piece) = pieces.next().unwrap() {
            match piece {
                Piece::Text(text) => {
                    assert!(is_text && !text.is_empty());
                    all.extend_from_slice(text.as_bytes());
                }
                Piece::Bytes(bytes) => {
                    is_text = false;
                    all.extend_from_slice(bytes);
                }
            }
        }
        (all, is_text)
    }

    #[test]
    fn text_stays_text_wherever_it_is_cut() {
        let text = "a é 喷油嘴 👩🏽‍🔧 \u{10ffff} end";
        for size in 4..40 {
            for drip in [1, 2, 3, 5, 100] {
                assert_eq!(read(text.as_bytes(), size, drip), (text.as_bytes().to_vec(), true), "{size} {drip}");
            }
        }
        assert_eq!(read(b"", 4, 1), (Vec::new(), true));
    }

    #[test]
    fn what_is_no_text_comes_as_it_is() {
        for bad in [&b"\xff"[..], b"abc\xffdef", b"\xe5\x96", b"long enough text \xe5\x96", b"\xed\xa0\x80 more text"] {
            for size in 4..24 {
                assert_eq!(read(bad, size, 3), (bad.to_vec(), false), "{bad:?} {size}");
            }
        }
    }

    #[test]
    fn a_stream_that_fails_says_so_behind_what_it_gave() {
        struct Fails;
        impl Read for Fails {
            fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
                Err(io::ErrorKind::StorageFull.into())
            }
        }
        let mut pieces = Pieces::of_size(Drip(b"abcd", 4).chain(Fails), 4);
        assert_eq!(pieces.next().unwrap(), Some(Piece::Text("abcd")));
        assert_eq!(pieces.next().unwrap_err().kind(), io::ErrorKind::StorageFull);
    }
}
