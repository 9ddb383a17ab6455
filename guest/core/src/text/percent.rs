//! Percent encoding, in the two dialects of the format. Both write upper-case hexadecimal.

use core::fmt::Write as _;

/// Encodes a part of a path: `A-Z a-z 0-9 _ . - ~` stay.
pub fn encode_path_part(raw: &str) -> String {
    encode_path_bytes(raw.as_bytes())
}

/// The same of bytes, which need not be UTF-8. Two inputs never give one output.
pub fn encode_path_bytes(raw: &[u8]) -> String {
    encode(raw, |byte| is_unreserved(byte) || byte == b'-')
}

/// Encodes a speaker's id for its marker: `A-Z a-z 0-9 _ . ~` stay. The hyphen does not, so that no value can end the
/// comment it stands in.
pub fn encode_speaker(raw: &str) -> String {
    encode(raw.as_bytes(), is_unreserved)
}

fn is_unreserved(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'~')
}

fn encode(raw: &[u8], stays: impl Fn(u8) -> bool) -> String {
    let mut out = String::with_capacity(raw.len());
    for &byte in raw {
        if stays(byte) {
            out.push(char::from(byte));
        } else {
            // Writing to a String cannot fail.
            let _ = write!(out, "%{byte:02X}");
        }
    }
    out
}

/// Decodes; none where a `%` is not followed by two hexadecimal digits or the result is not UTF-8.
pub fn decode(encoded: &str) -> Option<String> {
    if !encoded.contains('%') {
        return Some(encoded.to_owned());
    }
    let mut out = Vec::with_capacity(encoded.len());
    let mut rest = encoded.bytes();
    while let Some(byte) = rest.next() {
        if byte == b'%' {
            let high = char::from(rest.next()?).to_digit(16)?;
            let low = char::from(rest.next()?).to_digit(16)?;
            out.push((high * 16 + low) as u8);
        } else {
            out.push(byte);
        }
    }
    String::from_utf8(out).ok()
}

/// Whether `encoded` is what [`encode_speaker`] makes of what it decodes to.
pub fn is_canonical_speaker(encoded: &str) -> bool {
    // Unreserved characters alone need no second look; that is nearly every id.
    encoded.bytes().all(is_unreserved) || decode(encoded).is_some_and(|raw| encode_speaker(&raw) == encoded)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn round_trip() {
        for raw in ["", "a", "a-b c/d", "你好", "\0", "100%", "%41"] {
            assert_eq!(decode(&encode_path_part(raw)).as_deref(), Some(raw));
            assert_eq!(decode(&encode_speaker(raw)).as_deref(), Some(raw));
            assert!(is_canonical_speaker(&encode_speaker(raw)), "{raw:?}");
        }
        assert_eq!(encode_path_part("a-b/c"), "a-b%2Fc");
        assert_eq!(encode_speaker("a-b/c"), "a%2Db%2Fc");
    }

    #[test]
    fn not_canonical() {
        for encoded in ["a-b", "a/b", "%2f", "%61", "%E4%BD", "%ED%A0%80", "%", "%4", "%zz", "a b", "a+b"] {
            assert!(!is_canonical_speaker(encoded), "{encoded}");
        }
    }
}
