//! Text of unknown origin, made fit to be shown.

use super::chars::is_printable_reading;
use core::fmt::Write as _;

/// How much of an offending line a finding shows, in bytes before escaping.
pub const EXCERPT_BYTES: usize = 120;

/// The beginning of `bytes` up to its first LF, at most [`EXCERPT_BYTES`] of it, safe to print: what is not printable
/// shows as `\u{…}`, what is not UTF-8 as `\x…`. A cut is marked by `…`.
pub fn excerpt(bytes: &[u8]) -> String {
    let line = bytes.split(|&byte| byte == b'\n').next().unwrap_or_default();
    let cut = line.len() > EXCERPT_BYTES;
    let shown = line.get(..EXCERPT_BYTES.min(line.len())).unwrap_or_default();
    let mut out = String::with_capacity(shown.len() + 4);
    let mut chunks = shown.utf8_chunks().peekable();
    while let Some(chunk) = chunks.next() {
        for c in chunk.valid().chars() {
            if is_printable_reading(c) {
                out.push(c);
            } else {
                // Writing to a String cannot fail.
                let _ = write!(out, "\\u{{{:x}}}", u32::from(c));
            }
        }
        // The last character may have been cut by us; then it is not the file's fault.
        let ours = cut && chunks.peek().is_none();
        for byte in chunk.invalid().iter().filter(|_| !ours) {
            let _ = write!(out, "\\x{byte:02x}");
        }
    }
    if cut {
        out.push('…');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn harmless_and_short() {
        assert_eq!(excerpt(b"plain\nnext"), "plain");
        assert_eq!(excerpt("\u{1b}[31m\u{202e}你\r".as_bytes()), "\\u{1b}[31m\\u{202e}你\\u{d}");
        assert_eq!(excerpt(b"a\xffb"), "a\\xffb");
        assert_eq!(excerpt("你".repeat(41).as_bytes()), format!("{}…", "你".repeat(40)));
        assert_eq!(excerpt("x".repeat(120).as_bytes()), "x".repeat(120));
        let odd = format!("x{}", "你".repeat(50));
        assert_eq!(excerpt(odd.as_bytes()), format!("x{}…", "你".repeat(39)));
    }
}
