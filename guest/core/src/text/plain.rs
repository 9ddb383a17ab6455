//! Text made plain, for search and for people who read it in a list.

use super::chars::collapse_whitespace;
use super::link::Links;
use memchr::memmem;

/// Text made plain: a Markdown link becomes its text, a comment within a line becomes a space, every run of white space
/// becomes one space.
pub fn clean(text: &str) -> String {
    let unlinked = without_links(text);
    collapse_whitespace(&without_comments(unlinked.as_deref().unwrap_or(text)))
}

/// Every link becomes its text. None: there is none.
fn without_links(text: &str) -> Option<String> {
    memmem::find(text.as_bytes(), b"](")?;
    let mut out = String::with_capacity(text.len());
    let mut rest = 0;
    for link in Links::new(text) {
        out.push_str(text.get(rest..link.span.start).unwrap_or_default());
        out.push_str(text.get(link.label).unwrap_or_default());
        rest = link.span.end;
    }
    out.push_str(text.get(rest..).unwrap_or_default());
    Some(out)
}

/// `<!-- … -->` becomes a space if it opens and closes in one line.
fn without_comments(text: &str) -> String {
    const OPEN: &str = "<!--";
    let mut out = String::with_capacity(text.len());
    let (mut closes, mut breaks) = (Next::new(text, "-->"), Next::new(text, "\n"));
    let mut rest = 0;
    let mut from = 0;
    while let Some(open) = text.get(from..).and_then(|tail| tail.find(OPEN)).map(|at| from + at) {
        from = open + OPEN.len();
        let Some(close) = closes.at_or_after(from) else { break };
        if breaks.at_or_after(from).is_some_and(|lf| lf < close) {
            continue;
        }
        out.push_str(text.get(rest..open).unwrap_or_default());
        out.push(' ');
        rest = close + 3;
        from = rest;
    }
    out.push_str(text.get(rest..).unwrap_or_default());
    out
}

/// Where something comes next, asked for ever later places: every byte is looked at once, whatever the text.
struct Next<'a> {
    text: &'a str,
    what: &'static str,
    found: Option<usize>,
}

impl<'a> Next<'a> {
    fn new(text: &'a str, what: &'static str) -> Self {
        Self { text, what, found: text.find(what) }
    }

    fn at_or_after(&mut self, from: usize) -> Option<usize> {
        if self.found.is_some_and(|at| at < from) {
            self.found = self.text.get(from..).and_then(|tail| tail.find(self.what)).map(|at| from + at);
        }
        self.found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cleaning() {
        for (raw, plain) in [
            ("see [doc](http://x/y) <!-- c --> end", "see doc end"),
            ("[a [b](c)", "a [b"),
            ("[](x) [a]() [a] (b)", "[](x) [a]() [a] (b)"),
            ("a <!-- b\n --> c", "a <!-- b --> c"),
            ("a <!--> b --> c", "a c"),
            ("<!-- a --><!-- b -->", ""),
            ("x\r\n\t y\u{2028}z", "x y z"),
            ("[<!-- ](x)--> y", "y"),
        ] {
            assert_eq!(clean(raw), plain, "{raw:?}");
        }
    }

    #[test]
    fn cleaning_is_linear() {
        for unit in ["[", "[a](", "<!--", "](", "<!-- -", "[a](b) <!-- c -->"] {
            clean(&unit.repeat(200_000));
        }
    }
}
