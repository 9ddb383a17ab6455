//! Markdown links, as the format means them.

use core::ops::Range;
use memchr::{memchr, memchr2};

/// `[label](target)`: where it stands in the text that was searched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// From `[` to behind `)`.
    pub span: Range<usize>,
    /// Between the brackets: at least one character, none of them `]`.
    pub label: Range<usize>,
    /// Between the parentheses: at least one character, none of them `)`.
    pub target: Range<usize>,
}

/// The links of a text, leftmost first, none within another. A label begins at the first `[` that no `]` follows before
/// the label's own; there is no escaping, and line breaks are ordinary characters. Every byte is looked at once, whatever
/// the text.
#[derive(Clone, Debug)]
pub struct Links<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Links<'a> {
    /// Those of `text`.
    pub fn new(text: &'a str) -> Self {
        Self { text, at: 0 }
    }
}

impl Iterator for Links<'_> {
    type Item = Link;

    fn next(&mut self) -> Option<Link> {
        let bytes = self.text.as_bytes();
        let mut open = None;
        loop {
            let bracket = self.at + memchr2(b'[', b']', bytes.get(self.at..)?)?;
            self.at = bracket + 1;
            if bytes.get(bracket) == Some(&b'[') {
                open.get_or_insert(bracket);
                continue;
            }
            // Whatever opened before this bracket has its label closed by it, or none.
            let Some(start) = open.take().filter(|start| bracket > start + 1) else { continue };
            if bytes.get(bracket + 1) != Some(&b'(') {
                continue;
            }
            let target = bracket + 2;
            // Without a `)` there is no link in all the rest.
            let end = target + memchr(b')', bytes.get(target..)?)?;
            if end == target {
                continue;
            }
            self.at = end + 1;
            return Some(Link { span: start..end + 1, label: start + 1..bracket, target: target..end });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The definition, character by character: at each `[`, in order, the label up to the next `]` and the target up to
    /// the next `)`.
    fn naive(text: &str) -> Vec<Link> {
        let mut found = Vec::new();
        let mut at = 0;
        while at < text.len() {
            let link = text[at..].strip_prefix('[').and_then(|label| {
                let close = label.find(']').filter(|close| *close > 0)?;
                let target = label[close + 1..].strip_prefix('(')?;
                let end = target.find(')').filter(|end| *end > 0)?;
                let (label, target) = (at + 1..at + 1 + close, at + close + 3..at + close + 3 + end);
                Some(Link { span: at..target.end + 1, label, target })
            });
            at = link.as_ref().map_or(at + text[at..].chars().next().unwrap().len_utf8(), |link| link.span.end);
            found.extend(link);
        }
        found
    }

    #[test]
    fn labels_and_targets() {
        let text = "[a](b) [[c](d] e) [](x) [y]() [f]\n(g) [^1](2) [h](i";
        let shown: Vec<(&str, &str)> =
            Links::new(text).map(|link| (&text[link.label.clone()], &text[link.target.clone()])).collect();
        assert_eq!(shown, [("a", "b"), ("[c", "d] e"), ("^1", "2")]);
    }

    proptest! {
        #[test]
        fn as_defined(text in "[a\\[\\]()\n你^]{0,40}") {
            prop_assert_eq!(Links::new(&text).collect::<Vec<_>>(), naive(&text));
        }
    }

    #[test]
    fn linear() {
        for unit in ["[", "]", "[a](", "[a]()", "](", "[[a]", "[a](b)"] {
            Links::new(&unit.repeat(1_000_000)).count();
        }
    }
}
