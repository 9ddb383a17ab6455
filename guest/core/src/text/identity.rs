//! Names of people and programs, made fit to stand in a record's label.

use super::chars::{collapse_whitespace, is_printable_writing};

/// Longest identity part, in code points; what is longer is cut here and gets an ellipsis.
pub const IDENTITY_CHARS: usize = 64;

/// Normalises one part of an identity (FORMAT.md, "Labels"): white space collapsed, unprintable characters dropped,
/// `[` `]` `:` replaced by look-alikes that cannot end a label, cut to [`IDENTITY_CHARS`].
pub fn identity_part(raw: &str) -> String {
    let mut out = String::with_capacity(raw.len().min(IDENTITY_CHARS * 4));
    let spaced = collapse_whitespace(raw);
    let shown = spaced.chars().filter(|&c| is_printable_writing(c)).map(|c| match c {
        '[' => '(',
        ']' => ')',
        ':' => '：',
        other => other,
    });
    for (index, c) in shown.enumerate() {
        if index == IDENTITY_CHARS {
            out.push('…');
            break;
        }
        out.push(c);
    }
    out
}
