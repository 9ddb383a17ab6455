//! UTF-8 in pieces: bytes in, text out, cut anywhere.

/// The first byte that is not UTF-8.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InvalidUtf8 {
    /// From the start of the input.
    pub offset: u64,
}

/// Turns pieces of bytes into pieces of text. A character may be cut by the end of a piece; its first bytes (at most
/// three) wait here for the rest.
#[derive(Clone, Debug, Default)]
pub struct Utf8Pieces {
    waiting: [u8; 4],
    waiting_len: usize,
    /// Bytes handed on as text.
    passed: u64,
    invalid: Option<InvalidUtf8>,
}

impl Utf8Pieces {
    /// At the start of the input.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes the next piece and hands its text on.
    ///
    /// # Errors
    /// The first byte that is no text. What came before it was handed on; nothing after it ever is, and every later call
    /// answers with the same byte.
    pub fn push(&mut self, bytes: &[u8], mut text: impl FnMut(&str)) -> Result<(), InvalidUtf8> {
        if let Some(invalid) = self.invalid {
            return Err(invalid);
        }
        let mut bytes = bytes;
        while self.waiting_len > 0 && !bytes.is_empty() {
            let Some((&next, rest)) = bytes.split_first() else { break };
            if let Some(slot) = self.waiting.get_mut(self.waiting_len) {
                *slot = next;
            }
            let candidate = self.waiting.get(..self.waiting_len + 1).unwrap_or_default();
            match core::str::from_utf8(candidate) {
                Ok(character) => {
                    text(character);
                    self.passed += character.len() as u64;
                    self.waiting_len = 0;
                }
                Err(error) if error.error_len().is_none() => self.waiting_len += 1,
                Err(_) => return Err(self.fail()),
            }
            bytes = rest;
        }
        if bytes.is_empty() {
            return Ok(());
        }
        let (whole, cut) = bytes.split_at(bytes.len() - cut_bytes(bytes));
        // The vectorised check only says yes or no; where is asked for once, when the answer was no.
        if let Ok(all) = simdutf8::basic::from_utf8(whole) {
            self.pass(all, &mut text);
            for (slot, byte) in self.waiting.iter_mut().zip(cut) {
                *slot = *byte;
            }
            self.waiting_len = cut.len();
            return Ok(());
        }
        if let Some(valid) = whole.utf8_chunks().next() {
            self.pass(valid.valid(), &mut text);
        }
        Err(self.fail())
    }

    fn pass(&mut self, valid: &str, text: &mut impl FnMut(&str)) {
        if !valid.is_empty() {
            text(valid);
            self.passed += valid.len() as u64;
        }
    }

    /// The input is over.
    ///
    /// # Errors
    /// It ended inside a character, or an earlier byte was no text.
    pub fn finish(&mut self) -> Result<(), InvalidUtf8> {
        match self.invalid {
            Some(invalid) => Err(invalid),
            None if self.waiting_len > 0 => Err(self.fail()),
            None => Ok(()),
        }
    }

    /// The bytes of a character that is not whole yet.
    pub fn waiting(&self) -> &[u8] {
        self.waiting.get(..self.waiting_len).unwrap_or_default()
    }

    fn fail(&mut self) -> InvalidUtf8 {
        *self.invalid.insert(InvalidUtf8 { offset: self.passed })
    }
}

/// How many bytes at the end begin a character without ending it: at most three.
fn cut_bytes(bytes: &[u8]) -> usize {
    for (index, byte) in bytes.iter().rev().take(3).enumerate() {
        let length = match byte {
            0x80..=0xBF => continue,
            0xC0..=0xDF => 2,
            0xE0..=0xEF => 3,
            0xF0..=0xFF => 4,
            _ => 1,
        };
        return if length > index + 1 { index + 1 } else { 0 };
    }
    0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(bytes: &[u8], piece: usize) -> (String, Option<u64>) {
        let mut pieces = Utf8Pieces::new();
        let mut out = String::new();
        for piece in bytes.chunks(piece) {
            let _ = pieces.push(piece, |text| out.push_str(text));
        }
        let end = pieces.finish();
        (out, end.err().map(|error| error.offset))
    }

    #[test]
    fn cut_anywhere() {
        let text = "a你好😀é\n".repeat(3);
        for piece in 1..=text.len() {
            assert_eq!(run(text.as_bytes(), piece), (text.clone(), None), "pieces of {piece}");
        }
    }

    #[test]
    fn text_before_the_first_invalid_byte() {
        for bad in
            [&b"ab\xffcd"[..], b"ab\xe4\xbdX", b"ab\xe4\xbd", b"ab\xf0\x9f\x98", b"ab\xed\xa0\x80", b"ab\xc0\x80"]
        {
            for piece in 1..=bad.len() {
                assert_eq!(run(bad, piece), ("ab".to_owned(), Some(2)), "{bad:?} in pieces of {piece}");
            }
        }
    }
}
