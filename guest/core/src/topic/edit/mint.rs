//! Ids that are made from what they name, so that the same edit gives the same ids everywhere.

use crate::digest::Digest;
use crate::text::collapse_whitespace;

/// Hexadecimal digits of a block's id.
const BLOCK_DIGITS: usize = 8;
/// Hexadecimal digits of a footnote's label, behind its `e-`.
const FOOTNOTE_DIGITS: usize = 10;
const FOOTNOTE_PREFIX: &str = "e-";

/// The first free one of the ids that a seed gives: `prefix` and the beginning of the SHA-256 of `seed|0`, `seed|1`, …, in so
/// many hexadecimal digits.
pub fn stable_id(seed: &str, prefix: &str, digits: usize, used: impl Fn(&str) -> bool) -> String {
    let mut number = 0_u64;
    loop {
        let digest = Digest::of(format!("{seed}|{number}").as_bytes());
        let id = format!("{prefix}{}", digest.hex_prefix(digits));
        if !used(&id) {
            return id;
        }
        number += 1;
    }
}

/// An id for a new block: of `block|` and its file's name, `|` and its text with white space collapsed, local labels as
/// their writer wrote them.
pub fn block_id(file_name: &str, text: &str, used: impl Fn(&str) -> bool) -> String {
    stable_id(&format!("block|{file_name}|{}", collapse_whitespace(text)), "", BLOCK_DIGITS, used)
}

/// A stable label for a local one: of `evidence|`, the time as it is written, and its sources' targets, each behind a `|`.
pub fn footnote_label<'a>(time: &str, targets: impl Iterator<Item = &'a str>, used: impl Fn(&str) -> bool) -> String {
    let targets: Vec<&str> = targets.collect();
    stable_id(&format!("evidence|{time}|{}", targets.join("|")), FOOTNOTE_PREFIX, FOOTNOTE_DIGITS, used)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_ids() {
        let nobody = |_: &str| false;
        assert_eq!(block_id("note.md", " A\nfact.[^e1] ", nobody), block_id("note.md", "A fact.[^e1]", nobody));
        assert_eq!(block_id("note.md", "A fact.[^e1]", nobody), "97f8301d");
        assert_eq!(block_id("note.md", "A fact.[^e1]", |id| id == "97f8301d"), "66dda624");
        assert_eq!(footnote_label("2026-01-02", ["D1:1"].into_iter(), nobody), "e-1ba2d3a108");
        assert_eq!(footnote_label("2026", ["openprogram/sess-1/m1", "D1:1"].into_iter(), nobody), "e-b2b6f17aa7");
    }
}
