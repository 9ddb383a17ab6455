//! A paragraph and what stands within it: citations, quotes, links, and the ids that make a block of it.

use super::block::linked_block;
use super::item::{LinkRef, Lump, links};
use super::line::Part;
use crate::ids::{BlockId, FootnoteLabel, is_label_byte};
use crate::text::{collapse_whitespace, is_whitespace};
use core::ops::Range;
use memchr::memchr;
use std::borrow::Cow;

/// Consecutive lines of text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParagraphRef<'a> {
    lump: Lump<'a>,
    lines: usize,
}

impl<'a> ParagraphRef<'a> {
    pub(super) fn new(lump: Lump<'a>, lines: usize) -> Self {
        Self { lump, lines }
    }

    /// Its lines.
    pub fn lump(&self) -> Lump<'a> {
        self.lump
    }

    /// The text, without the last line's end.
    pub fn text(&self) -> Part<'a> {
        self.lump.text()
    }

    /// How many lines it has, at least 1.
    pub fn lines(&self) -> usize {
        self.lines
    }

    /// How it ends.
    pub fn ending(&self) -> Ending<'a> {
        Ending::of(self.text())
    }

    /// Everything it cites, in order.
    pub fn citations(&self) -> Citations<'a> {
        Citations::new(self.text())
    }

    /// The ids of the blocks that its links name, in order. Whether they exist is not asked.
    pub fn linked_blocks(&self) -> impl Iterator<Item = &'a str> + use<'a> {
        links_of_text(self.text()).filter_map(|link| linked_block(link.target().as_str()))
    }

    /// What it says, as a list shows it: no citations, no ids at its end, each run of white space one space. May be empty.
    pub fn prose(&self) -> String {
        let body = match self.ending() {
            Ending::Ids { body, .. } => body,
            Ending::Plain | Ending::Unfit(_) => self.text(),
        };
        collapse_whitespace(&without_citations(body))
    }
}

/// How a paragraph ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ending<'a> {
    /// With ids, each ` ^id`: it is a block.
    Ids {
        /// At least one. The last is the block's identity, the others are those of blocks that were merged into it.
        ids: Vec<Part<'a>>,
        /// What comes before, without white space at its end.
        body: Part<'a>,
    },
    /// With a `^` and what is no id.
    Unfit(Part<'a>),
    /// With neither.
    Plain,
}

impl<'a> Ending<'a> {
    fn of(text: Part<'a>) -> Self {
        let mut ids = Vec::new();
        let mut rest = text.as_str().trim_end_matches(is_whitespace);
        while let Some(space) = rest.rfind(is_whitespace) {
            let token_at = space + rest.get(space..).and_then(|tail| tail.chars().next()).map_or(0, char::len_utf8);
            let Some(name) = rest.get(token_at..).and_then(|token| token.strip_prefix('^')) else { break };
            let name = text.slice(token_at + 1..token_at + 1 + name.len());
            if !BlockId::is_written(name.as_str()) {
                if ids.is_empty() && !name.as_str().is_empty() {
                    return Self::Unfit(name);
                }
                break;
            }
            ids.push(name);
            rest = rest.get(..space).unwrap_or_default().trim_end_matches(is_whitespace);
        }
        if ids.is_empty() {
            return Self::Plain;
        }
        ids.reverse();
        Self::Ids { ids, body: text.slice(0..rest.len()) }
    }
}

/// `[^label]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CitationRef<'a> {
    label: Part<'a>,
}

impl<'a> CitationRef<'a> {
    /// The label.
    pub fn label(&self) -> Part<'a> {
        self.label
    }

    /// Its bytes in the file, brackets included.
    pub fn span(&self) -> Range<usize> {
        self.label.start() - 2..self.label.end() + 1
    }
}

/// The citations in a piece of a file, in order.
#[derive(Clone, Debug)]
pub struct Citations<'a> {
    part: Part<'a>,
    at: usize,
}

impl<'a> Citations<'a> {
    /// Those of a piece.
    pub fn new(part: Part<'a>) -> Self {
        Self { part, at: 0 }
    }
}

impl<'a> Iterator for Citations<'a> {
    type Item = CitationRef<'a>;

    fn next(&mut self) -> Option<CitationRef<'a>> {
        let bytes = self.part.as_str().as_bytes();
        loop {
            let caret = self.at + memchr(b'^', bytes.get(self.at..)?)?;
            self.at = caret + 1;
            if caret.checked_sub(1).and_then(|before| bytes.get(before)) != Some(&b'[') {
                continue;
            }
            let length = bytes.get(caret + 1..)?.iter().take_while(|byte| is_label_byte(**byte)).count();
            let end = caret + 1 + length;
            self.at = end;
            if length > 0 && bytes.get(end) == Some(&b']') {
                return Some(CitationRef { label: self.part.slice(caret + 1..end) });
            }
        }
    }
}

/// Citations with nothing between them, and the text they speak for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupRef<'a> {
    before: Part<'a>,
    run: Part<'a>,
}

impl<'a> GroupRef<'a> {
    /// The text since the group before, or since the beginning: the quote, with the white space around it.
    pub fn before(&self) -> Part<'a> {
        self.before
    }

    /// The text it speaks for, without white space at its ends, its lines joined by LF. Empty is a fault.
    pub fn quote(&self) -> Cow<'a, str> {
        with_lf(self.before.trim().as_str())
    }

    /// Its citations, at least one.
    pub fn citations(&self) -> Citations<'a> {
        Citations::new(self.run)
    }

    /// The citations as they stand in the file.
    pub fn run(&self) -> Part<'a> {
        self.run
    }
}

/// The groups of a block's body, or of any piece, in order; and then what is left behind the last.
#[derive(Clone, Debug)]
pub struct Groups<'a> {
    body: Part<'a>,
    citations: Citations<'a>,
    ahead: Option<CitationRef<'a>>,
    at: usize,
}

impl<'a> Groups<'a> {
    /// Those of a piece.
    pub fn new(body: Part<'a>) -> Self {
        let mut citations = Citations::new(body);
        let ahead = citations.next();
        Self { body, citations, ahead, at: body.start() }
    }

    /// What comes behind the groups taken so far; once all are taken, the text that nothing is cited for.
    pub fn rest(&self) -> Part<'a> {
        self.part(self.at, self.body.end())
    }

    fn part(&self, start: usize, end: usize) -> Part<'a> {
        self.body.slice(start - self.body.start()..end - self.body.start())
    }
}

impl<'a> Iterator for Groups<'a> {
    type Item = GroupRef<'a>;

    fn next(&mut self) -> Option<GroupRef<'a>> {
        let first = self.ahead.take()?.span();
        let mut end = first.end;
        self.ahead = self.citations.next();
        while let Some(next) = self.ahead.filter(|next| next.span().start == end) {
            end = next.span().end;
            self.ahead = self.citations.next();
        }
        let group = GroupRef { before: self.part(self.at, first.start), run: self.part(first.start, end) };
        self.at = end;
        Some(group)
    }
}

/// The links of a paragraph's piece; a citation with something in parentheses behind it is none.
pub(super) fn links_of_text<'a>(part: Part<'a>) -> impl Iterator<Item = LinkRef<'a>> + use<'a> {
    links(part).filter(|link| !link.label().as_str().strip_prefix('^').is_some_and(FootnoteLabel::is_label))
}

/// A piece without its citations, line ends as they are.
pub(super) fn without_citations(part: Part<'_>) -> Cow<'_, str> {
    let mut citations = Citations::new(part).peekable();
    if citations.peek().is_none() {
        return Cow::Borrowed(part.as_str());
    }
    let mut out = String::with_capacity(part.as_str().len());
    let mut at = part.start();
    for citation in citations {
        out.push_str(part.slice(at - part.start()..citation.span().start - part.start()).as_str());
        at = citation.span().end;
    }
    out.push_str(part.slice(at - part.start()..part.as_str().len()).as_str());
    Cow::Owned(out)
}

/// The text with its lines joined by LF.
pub(crate) fn with_lf(text: &str) -> Cow<'_, str> {
    if memchr(b'\r', text.as_bytes()).is_none() {
        return Cow::Borrowed(text);
    }
    let mut lines = text.split('\r');
    let mut out = String::with_capacity(text.len());
    out.push_str(lines.next().unwrap_or_default());
    for line in lines {
        out.push('\n');
        out.push_str(line.strip_prefix('\n').unwrap_or(line));
    }
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::super::item::{Item, Items};
    use super::*;

    fn paragraph(text: &str) -> ParagraphRef<'_> {
        let Some(Item::Paragraph(paragraph)) = Items::new(text).next() else { panic!("{text:?} is no paragraph") };
        assert_eq!(paragraph.text().as_str(), text.trim_end_matches('\n'));
        paragraph
    }

    #[test]
    fn endings() {
        for (text, ids, body) in [
            ("A.[^e] ^a", &["a"][..], "A.[^e]"),
            ("A ^a  ^b\t^c-9  \n", &["a", "b", "c-9"], "A"),
            ("A\n^a", &["a"], "A"),
            ("A ^no_id ^a", &["a"], "A ^no_id"),
            ("A ^ ^a", &["a"], "A ^"),
            ("A\u{3000}^a\u{85}", &["a"], "A"),
            (" ^a", &["a"], ""),
        ] {
            let Ending::Ids { ids: found, body: rest } = paragraph(text).ending() else {
                panic!("{text:?} has no ids")
            };
            assert_eq!(found.iter().map(|id| id.as_str()).collect::<Vec<_>>(), ids);
            assert!(found.iter().all(|id| &text[id.span()] == id.as_str()), "{text:?}");
            assert_eq!(rest.as_str(), body);
        }
        for (text, unfit) in [("A ^a_b", "a_b"), ("A ^块 ", "块"), ("A ^a ^b^c", "b^c"), ("x ^2)", "2)")] {
            assert!(matches!(paragraph(text).ending(), Ending::Unfit(found) if found.as_str() == unfit), "{text:?}");
        }
        for text in ["A^a", "^a", "A ^", "A ^ ", "A ^a x", "A.[^e]^a", "A"] {
            assert_eq!(paragraph(text).ending(), Ending::Plain, "{text:?}");
        }
    }

    #[test]
    fn citations() {
        for (text, labels) in [
            ("a[^e1]b[^e-2][^_]", &["e1", "e-2", "_"][..]),
            ("[[^a]] [^b]: [^c](d)", &["a", "b", "c"]),
            ("[^] [^a b] [ ^c] [^d [^e] ^f] [^é]", &["e"]),
            ("[^a^b] [^[^c]", &["c"]),
        ] {
            let found: Vec<_> = paragraph(text).citations().collect();
            assert_eq!(found.iter().map(|one| one.label().as_str()).collect::<Vec<_>>(), labels, "{text}");
            for one in found {
                assert_eq!(text[one.span()], format!("[^{}]", one.label().as_str()));
            }
        }
    }

    #[test]
    fn groups() {
        let text = "x [^a][^b] y\r\nz[^c] [^d] rest";
        let mut groups = Groups::new(Part::new(text, 0));
        let shown: Vec<_> = groups
            .by_ref()
            .map(|group| {
                let labels: Vec<_> = group.citations().map(|one| one.label().as_str()).collect();
                assert!(text[group.run().span()].starts_with("[^"));
                format!("{:?} {labels:?}", group.quote())
            })
            .collect();
        assert_eq!(shown, [r#""x" ["a", "b"]"#, r#""y\nz" ["c"]"#, r#""" ["d"]"#]);
        assert_eq!(groups.rest().as_str(), " rest");
    }

    #[test]
    fn prose() {
        for (text, prose) in [
            ("- A [^e1]\r\n  fact.[^e2] ^a ^b", "- A fact."),
            ("A. ^no_id", "A. ^no_id"),
            ("[^e] ^a", ""),
            ("See [x](y#^z).[^e] ^a", "See [x](y#^z)."),
        ] {
            assert_eq!(paragraph(text).prose(), prose);
        }
    }

    #[test]
    fn links_are_no_citations() {
        let text = "[^a](b) [c](d) [^e f](g)";
        let found: Vec<_> = links_of_text(Part::new(text, 0)).map(|link| link.target().as_str()).collect();
        assert_eq!(found, ["d", "g"]);
    }
}
