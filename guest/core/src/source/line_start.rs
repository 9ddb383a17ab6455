//! The beginning of a line, kept in case a finding has to show it.
//!
//! Knows bytes as they come in, in pieces of any length. Must not know what the line is.

use crate::text::{EXCERPT_BYTES, excerpt};
use memchr::{memchr, memrchr};

/// As much of a line as an excerpt needs, collected while the line comes in.
#[derive(Clone, Debug, Default)]
pub(super) struct LineStart {
    bytes: Vec<u8>,
    over: bool,
}

impl LineStart {
    /// Takes what comes next, up to the line's end.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        // One more than is shown, so that the excerpt can tell that there is more.
        let room = (EXCERPT_BYTES + 1).saturating_sub(self.bytes.len());
        if self.over || room == 0 {
            return;
        }
        let near = bytes.get(..room).unwrap_or(bytes);
        let end = memchr(b'\n', near);
        self.over = end.is_some();
        self.bytes.extend_from_slice(near.get(..end.unwrap_or(near.len())).unwrap_or_default());
    }

    /// Goes on to whichever line is open at the end of `piece`.
    pub(super) fn follow(&mut self, piece: &[u8]) {
        let mut line = piece;
        if let Some(lf) = memrchr(b'\n', piece) {
            *self = Self::default();
            line = piece.get(lf + 1..).unwrap_or_default();
        }
        self.push(line);
    }

    /// The line's beginning, safe to print.
    pub(super) fn excerpt(&self) -> String {
        excerpt(&self.bytes)
    }
}
