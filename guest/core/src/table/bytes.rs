//! Little-endian values out of bytes, and checks over bytes.

use crate::digest::Hasher;

/// The first eight bytes of a SHA-256.
pub(crate) type Check = [u8; 8];

/// The check over these parts as if they were one.
pub(crate) fn check(parts: &[&[u8]]) -> Check {
    let mut hasher = Hasher::new();
    for part in parts {
        hasher.push(part);
    }
    let digest = hasher.finish().0;
    core::array::from_fn(|at| digest.get(at).copied().unwrap_or_default())
}

/// Takes values off the front of bytes. None: there are too few.
pub(crate) struct Reader<'a>(pub(crate) &'a [u8]);

impl<'a> Reader<'a> {
    pub(crate) fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(taken)
    }

    pub(crate) fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (taken, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*taken)
    }

    /// A number of `N` bytes, at most eight.
    pub(crate) fn number<const N: usize>(&mut self) -> Option<u64> {
        let taken = self.array::<N>()?;
        Some(taken.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte)))
    }

    /// A text and, before it, its length in `N` bytes.
    pub(crate) fn text<const N: usize>(&mut self) -> Option<&'a str> {
        let length = usize::try_from(self.number::<N>()?).ok()?;
        core::str::from_utf8(self.take(length)?).ok()
    }

    /// A count: seven bits a byte, the lowest first, the highest bit set but in the last.
    pub(super) fn count(&mut self) -> Option<usize> {
        let mut count = 0_u64;
        for shift in (0..63).step_by(7) {
            let [byte] = self.array::<1>()?;
            count |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return usize::try_from(count).ok();
            }
        }
        None
    }

    /// A text and, before it, its length as a count.
    pub(super) fn counted_text(&mut self) -> Option<&'a str> {
        let length = self.count()?;
        core::str::from_utf8(self.take(length)?).ok()
    }

    /// Some only at the end: nothing may follow.
    pub(crate) fn end(&self) -> Option<()> {
        self.0.is_empty().then_some(())
    }
}

/// Adds the lowest `N` bytes of a number. None if it needs more.
pub(crate) fn put_number<const N: usize>(out: &mut Vec<u8>, number: u64) -> Option<()> {
    let bytes = number.to_le_bytes();
    let (low, high) = bytes.split_at_checked(N)?;
    out.extend_from_slice(low);
    high.iter().all(|byte| *byte == 0).then_some(())
}

/// Adds a text and, before it, its length in `N` bytes. None if that is too few.
pub(crate) fn put_text<const N: usize>(out: &mut Vec<u8>, text: &str) -> Option<()> {
    put_number::<N>(out, text.len() as u64)?;
    out.extend_from_slice(text.as_bytes());
    Some(())
}

/// Adds a count.
pub(super) fn put_count(out: &mut Vec<u8>, mut count: usize) {
    while count >= 0x80 {
        out.push((count & 0x7f) as u8 | 0x80);
        count >>= 7;
    }
    out.push(count as u8);
}

/// Adds a text and, before it, its length as a count.
pub(super) fn put_counted_text(out: &mut Vec<u8>, text: &str) {
    put_count(out, text.len());
    out.extend_from_slice(text.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_come_back() {
        for count in [0, 1, 127, 128, 300, 16_383, 16_384, u32::MAX as usize] {
            let mut out = Vec::new();
            put_count(&mut out, count);
            put_counted_text(&mut out, "né");
            let mut reader = Reader(&out);
            assert_eq!((reader.count(), reader.counted_text()), (Some(count), Some("né")));
            assert_eq!(reader.end(), Some(()));
            assert_eq!(Reader(&out[..out.len() - 4].iter().map(|byte| byte | 0x80).collect::<Vec<_>>()).count(), None);
        }
    }

    #[test]
    fn values_come_back_and_too_few_bytes_are_none() {
        let mut out = Vec::new();
        put_number::<6>(&mut out, 0x0102_0304_0506).expect("fits");
        put_text::<2>(&mut out, "né").expect("fits");
        assert_eq!(put_number::<1>(&mut Vec::new(), 256), None);
        assert_eq!(put_text::<1>(&mut Vec::new(), &"x".repeat(256)), None);
        for cut in 0..out.len() {
            let mut reader = Reader(&out[..cut]);
            let number = reader.number::<6>();
            assert!(cut < 6 && number.is_none() || reader.text::<2>().is_none());
        }
        let mut reader = Reader(&out);
        assert_eq!(reader.number::<6>(), Some(0x0102_0304_0506));
        assert_eq!(reader.end(), None);
        assert_eq!(reader.text::<2>(), Some("né"));
        assert_eq!(reader.end(), Some(()));
        // Not text.
        assert_eq!(Reader(&[1, 0xff]).text::<1>(), None);
    }
}
