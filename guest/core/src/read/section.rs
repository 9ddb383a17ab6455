//! A part of a file: its first lines, a section, a block.

use super::{ReadFault, first_chars, lines};
use crate::ids::{TopicPath, is_v2_path};
use crate::source::Limits;
use crate::text::{caseless, is_whitespace};
use crate::topic::{Block, Check, Item, Items, TopicRef};
use core::ops::Range;
use std::collections::BTreeSet;

/// What of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Selection<'a> {
    /// So many lines, from line number `from` on, which counts from 1.
    Lines {
        /// The first.
        from: u64,
        /// How many, at least 1.
        count: u64,
    },
    /// The first section with this heading, up to the next of the same or a higher level. Letter case does not matter, nor do
    /// `#` and white space before it.
    Heading(&'a str),
    /// The block that has this id, of merged blocks any, with the footnotes it cites.
    Block(&'a str),
}

impl<'a> Selection<'a> {
    /// Of what a caller gives.
    ///
    /// # Errors
    /// More than one thing is given.
    pub fn of(
        heading: Option<&'a str>,
        block: Option<&'a str>,
        lines: Option<(u64, u64)>,
        default_count: u64,
    ) -> Result<Self, ReadFault> {
        match (heading, block, lines) {
            (None, None, lines) => {
                let (from, count) = lines.unwrap_or((1, default_count));
                Ok(Self::Lines { from: from.max(1), count: count.max(1) })
            }
            (Some(heading), None, None) => Ok(Self::Heading(heading)),
            (None, Some(block), None) => Ok(Self::Block(block)),
            _ => Err(ReadFault::SeveralSelections),
        }
    }
}

/// How a part was selected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// By lines.
    Lines,
    /// By a heading.
    Heading,
    /// By a block.
    Block,
}

impl Mode {
    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Lines => "lines",
            Self::Heading => "heading",
            Self::Block => "block",
        }
    }
}

/// A part of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Excerpt {
    /// How it was selected.
    pub mode: Mode,
    /// Whole lines, each with LF at its end, but for what is cut.
    pub content: String,
    /// There is more of it: more than `max_chars` characters.
    pub truncated: bool,
}

/// Selects a part of a file. `shown` are its [`lines`](super::lines), `text` is all of it: sections and blocks are looked for
/// there as in a topic.
///
/// # Errors
/// There is no such heading or block.
pub fn select(
    text: &str,
    shown: &[(u64, &str)],
    selection: Selection<'_>,
    max_chars: usize,
) -> Result<Excerpt, ReadFault> {
    let (mode, content) = match selection {
        Selection::Lines { from, count } => {
            let wanted = shown.iter().filter(|(number, _)| *number >= from);
            let wanted = wanted.take(usize::try_from(count).unwrap_or(usize::MAX));
            let mut content = String::new();
            for (_, line) in wanted {
                content.push_str(line);
                content.push('\n');
            }
            // A last line without LF is as it is.
            if !text.ends_with('\n') && shown.last().is_some_and(|(_, last)| content.ends_with(&format!("{last}\n"))) {
                content.pop();
            }
            (Mode::Lines, content)
        }
        Selection::Heading(heading) => {
            let range = section(text, heading).ok_or_else(|| ReadFault::NoSuchHeading(heading.to_owned()))?;
            let section = text.get(range).unwrap_or_default();
            (Mode::Heading, format!("{}\n", section.trim_end_matches(is_whitespace)))
        }
        Selection::Block(id) => {
            let block = block(text, id).ok_or_else(|| ReadFault::NoSuchBlock(id.to_owned()))?;
            (Mode::Block, block)
        }
    };
    let (first, truncated) = first_chars(&content, max_chars);
    Ok(Excerpt { mode, content: first.to_owned(), truncated })
}

/// The same part of the file at `path` as [`select`] gives, as lines with their numbers in the file, from 1. Of a v2 archive, lines
/// that are not [shown](super::lines) are left out.
///
/// # Errors
/// There is no such heading or block.
pub fn part<'t>(
    path: &str,
    text: &'t str,
    selection: Selection<'_>,
    limits: &Limits,
) -> Result<Vec<(u64, &'t str)>, ReadFault> {
    let mut part = match selection {
        Selection::Lines { from, count } => {
            let wanted = lines(path, text, limits).into_iter().filter(|(number, _)| *number >= from);
            return Ok(wanted.take(usize::try_from(count).unwrap_or(usize::MAX)).collect());
        }
        Selection::Heading(heading) => {
            let range = section(text, heading).ok_or_else(|| ReadFault::NoSuchHeading(heading.to_owned()))?;
            let before = text.get(..range.start).unwrap_or_default();
            let section = text.get(range).unwrap_or_default().trim_end_matches(is_whitespace);
            numbered(before.bytes().filter(|byte| *byte == b'\n').count(), section)
        }
        Selection::Block(id) => block_lines(text, id).ok_or_else(|| ReadFault::NoSuchBlock(id.to_owned()))?,
    };
    if is_v2_path(path) {
        let shown: BTreeSet<u64> = lines(path, text, limits).into_iter().map(|(number, _)| number).collect();
        part.retain(|(number, _)| shown.contains(number));
    }
    Ok(part)
}

/// Lines of a text before which so many stand.
fn numbered(before: usize, text: &str) -> Vec<(u64, &str)> {
    (before as u64 + 1..).zip(text.split('\n').map(|line| line.strip_suffix('\r').unwrap_or(line))).collect()
}

fn block_lines<'t>(text: &'t str, id: &str) -> Option<Vec<(u64, &'t str)>> {
    let path = TopicPath::parse("topics/-.md").ok()?;
    let check = Check::new(path, TopicRef::parse(text), &());
    let found = check.all_blocks().find(|block| block.ids().iter().any(|name| name.as_str() == id))?;
    let lump = found.paragraph().lump();
    let mut lines = numbered(lump.line() - 1, found.paragraph().text().as_str());
    for footnote in found.footnotes() {
        let lump = footnote.definition().lump();
        lines.extend(numbered(lump.line() - 1, lump.text().as_str()));
    }
    Some(lines)
}

fn section(text: &str, heading: &str) -> Option<Range<usize>> {
    let title = |title: &str| caseless(title.trim_matches(is_whitespace));
    let wanted = title(heading.trim_start_matches(is_whitespace).trim_start_matches('#'));
    let headings = Items::new(text).filter_map(|item| match item {
        Item::Heading(heading) => Some((item.span().start, heading)),
        _ => None,
    });
    let mut headings = headings.skip_while(|(_, heading)| title(heading.text().as_str()) != wanted);
    let (start, first) = headings.next()?;
    let end = headings.find(|(_, next)| next.level() <= first.level()).map_or(text.len(), |(end, _)| end);
    Some(start..end)
}

fn block(text: &str, id: &str) -> Option<String> {
    // Where the topic lies matters for where links lead, which nobody asks here.
    let path = TopicPath::parse("topics/-.md").ok()?;
    let check = Check::new(path, TopicRef::parse(text), &());
    let found = check.all_blocks().find(|block| block.ids().iter().any(|name| name.as_str() == id))?;
    Some(with_footnotes(&found))
}

/// A block as it stands, and behind an empty line the definitions it cites.
fn with_footnotes(block: &Block<'_, '_>) -> String {
    let mut out = block.paragraph().text().as_str().to_owned();
    for (number, footnote) in block.footnotes().enumerate() {
        out.push_str(if number == 0 { "\n\n" } else { "\n" });
        out.push_str(footnote.definition().lump().text().as_str());
    }
    out.push('\n');
    out
}

#[cfg(test)]
mod tests {
    use super::super::lines;
    use super::*;
    use crate::source::Limits;

    fn read(text: &str, selection: Selection<'_>, most: usize) -> Result<(String, bool), ReadFault> {
        let shown = lines("topics/a.md", text, &Limits::default());
        select(text, &shown, selection, most).map(|excerpt| (excerpt.content, excerpt.truncated))
    }

    const TOPIC: &str = "# A\n\nx\n```\n## B\n```\n## B\n\none.[^a][^b] ^y ^z\n\n### c\n# D #\nlast\n\n\
                         [^b]: Time: `2026`; Sources: [l](D1:1)\n[^a]: 2026 · Sources: [l](D1:1)\n[^c]: 2026 · Sources: [l](D1:1)";

    #[test]
    fn sections() {
        for heading in ["b", " ## B ", "#B"] {
            assert_eq!(
                read(TOPIC, Selection::Heading(heading), 99).unwrap().0,
                "## B\n\none.[^a][^b] ^y ^z\n\n### c\n"
            );
        }
        assert!(read(TOPIC, Selection::Heading("d #"), 999).unwrap().0.ends_with("[l](D1:1)\n"));
        assert_eq!(read(TOPIC, Selection::Heading("x"), 9).unwrap_err().reason(), "no-such-heading");
    }

    #[test]
    fn blocks() {
        let expected =
            "one.[^a][^b] ^y ^z\n\n[^a]: 2026 · Sources: [l](D1:1)\n[^b]: Time: `2026`; Sources: [l](D1:1)\n";
        for id in ["y", "z"] {
            assert_eq!(read(TOPIC, Selection::Block(id), 999).unwrap(), (expected.to_owned(), false));
        }
        assert_eq!(read(TOPIC, Selection::Block("z"), 5).unwrap(), ("one.[".to_owned(), true));
        for id in ["", "^z", "a"] {
            assert_eq!(read(TOPIC, Selection::Block(id), 9).unwrap_err().reason(), "no-such-block");
        }
        assert_eq!(read("old[^mem_x]", Selection::Block("mem_x"), 99).unwrap().0, "old[^mem_x]\n");
    }

    #[test]
    fn parts_keep_their_numbers() {
        let part = |selection| part("topics/a.md", TOPIC, selection, &Limits::default()).unwrap();
        let section = part(Selection::Heading("b"));
        assert_eq!((section[0], section.last().copied()), ((7, "## B"), Some((11, "### c"))));
        let block: Vec<u64> = part(Selection::Block("y")).into_iter().map(|(number, _)| number).collect();
        assert_eq!(block, [9, 16, 15]);
        for (number, line) in part(Selection::Block("z")) {
            assert_eq!(TOPIC.lines().nth(number as usize - 1), Some(line));
        }
    }

    #[test]
    fn some_lines() {
        let lines = |from, count| read("a\nb\nc", Selection::Lines { from, count }, 99).unwrap().0;
        assert_eq!((lines(1, 2), lines(2, 9), lines(9, 1)), ("a\nb\n".into(), "b\nc".into(), String::new()));
        assert_eq!(read("你好\n", Selection::Lines { from: 1, count: 1 }, 1).unwrap(), ("你".to_owned(), true));
        assert_eq!(Selection::of(None, None, Some((0, 0)), 400), Ok(Selection::Lines { from: 1, count: 1 }));
        assert!(Selection::of(Some("a"), Some("b"), None, 1).is_err());
        assert!(Selection::of(None, Some("b"), Some((1, 1)), 1).is_err());
    }
}
