//! Ids that are made from what they name, so that the same edit gives the same ids everywhere.

use crate::digest::{Digest, Hasher};
use crate::text::collapse_whitespace;
use std::collections::BTreeMap;

/// Hexadecimal digits of a block's id.
const BLOCK_DIGITS: usize = 8;
/// Hexadecimal digits of a footnote's label, behind its `e-`.
const FOOTNOTE_DIGITS: usize = 10;
const FOOTNOTE_PREFIX: &str = "e-";

/// Gives ids. What it gave from a seed counts as used: of many things that read the same, each costs one try.
#[derive(Debug, Default)]
pub struct Mint {
    /// By the digest of a seed: the first number that was not tried.
    tried: BTreeMap<Digest, u64>,
}

impl Mint {
    /// The first free one of the ids that a seed gives: `prefix` and the beginning of the SHA-256 of `seed|0`, `seed|1`, …, in
    /// so many hexadecimal digits, at most 64.
    pub fn id(&mut self, seed: &str, prefix: &str, digits: usize, used: impl Fn(&str) -> bool) -> String {
        let mut hasher = Hasher::new();
        hasher.push(seed.as_bytes());
        hasher.push(b"|");
        let number = self.tried.entry(hasher.clone().finish()).or_default();
        loop {
            let mut numbered = hasher.clone();
            numbered.push(number.to_string().as_bytes());
            *number += 1;
            let id = format!("{prefix}{}", numbered.finish().hex_prefix(digits));
            if !used(&id) {
                return id;
            }
        }
    }

    /// An id for a new block: of `block|` and its file's name, `|` and its text with white space collapsed, local labels as
    /// their writer wrote them.
    pub fn block(&mut self, file_name: &str, text: &str, used: impl Fn(&str) -> bool) -> String {
        self.id(&format!("block|{file_name}|{}", collapse_whitespace(text)), "", BLOCK_DIGITS, used)
    }

    /// A stable label for a local one: of `evidence|`, the time as it is written, `|` and its sources' targets, joined by `|`.
    pub fn footnote(&mut self, time: &str, targets: &[String], used: impl Fn(&str) -> bool) -> String {
        self.id(&format!("evidence|{time}|{}", targets.join("|")), FOOTNOTE_PREFIX, FOOTNOTE_DIGITS, used)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_ids() {
        let nobody = |_: &str| false;
        let block = |text: &str, used: fn(&str) -> bool| Mint::default().block("note.md", text, used);
        assert_eq!(block(" A\nfact.[^e1] ", nobody), "97f8301d");
        assert_eq!(block("A fact.[^e1]", |id| id == "97f8301d"), "66dda624");
        let footnote = |time, targets: &[&str]| {
            let targets: Vec<String> = targets.iter().map(|target| (*target).to_owned()).collect();
            Mint::default().footnote(time, &targets, nobody)
        };
        assert_eq!(footnote("2026-01-02", &["D1:1"]), "e-1ba2d3a108");
        assert_eq!(footnote("2026", &["openprogram/sess-1/m1", "D1:1"]), "e-b2b6f17aa7");
        let mut mint = Mint::default();
        let twice = [mint.block("note.md", "A fact.[^e1]", nobody), mint.block("note.md", "A fact.[^e1]", nobody)];
        assert_eq!(twice, ["97f8301d", "66dda624"]);
    }
}
