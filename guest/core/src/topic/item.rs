//! What a topic consists of, one item after the other, by looking at lines only.

use super::line::{Line, Lines, Part};
use super::paragraph::ParagraphRef;
use crate::ids::{EvidenceTime, is_label_byte};
use crate::text::{Links, is_whitespace};
use core::ops::Range;

/// An item: whole lines, their ends included. The items of a text, one after the other, are the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Item<'a> {
    /// Lines of white space only.
    Blank(Lump<'a>),
    /// `# text`.
    Heading(HeadingRef<'a>),
    /// Lines of text.
    Paragraph(ParagraphRef<'a>),
    /// `[^label]: Time: …; Sources: …`.
    Definition(DefinitionRef<'a>),
    /// A code fence with what it holds.
    Fence(FenceRef<'a>),
    /// A line that begins with a comment or an anchor.
    Comment(Lump<'a>),
}

impl<'a> Item<'a> {
    /// Its lines.
    pub fn lump(&self) -> Lump<'a> {
        match self {
            Self::Blank(lump) | Self::Comment(lump) => *lump,
            Self::Heading(heading) => heading.lump,
            Self::Paragraph(paragraph) => paragraph.lump(),
            Self::Definition(definition) => definition.lump,
            Self::Fence(fence) => fence.lump,
        }
    }

    /// Its bytes in the file, line ends included.
    pub fn span(&self) -> Range<usize> {
        self.lump().span()
    }
}

/// Whole lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lump<'a> {
    text: Part<'a>,
    next: usize,
    line: usize,
}

impl<'a> Lump<'a> {
    pub(super) fn new(first: Line<'a>, text: Part<'a>, next: usize) -> Self {
        Self { text, next, line: first.number }
    }

    fn of(line: Line<'a>) -> Self {
        Self::new(line, line.part, line.next)
    }

    /// From the first line's beginning to the last line's, without that one's end.
    pub fn text(self) -> Part<'a> {
        self.text
    }

    /// Its bytes in the file, the last line's end included.
    pub fn span(self) -> Range<usize> {
        self.text.start()..self.next
    }

    /// The number of its first line, from 1.
    pub fn line(self) -> usize {
        self.line
    }
}

/// A heading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeadingRef<'a> {
    lump: Lump<'a>,
    level: u8,
    text: Part<'a>,
}

impl<'a> HeadingRef<'a> {
    /// 1 to 6.
    pub fn level(&self) -> u8 {
        self.level
    }

    /// What it says, without white space at its ends; `#` at the end stays.
    pub fn text(&self) -> Part<'a> {
        self.text
    }

    /// Its line.
    pub fn lump(&self) -> Lump<'a> {
        self.lump
    }

    fn parse(line: Line<'a>) -> Option<Self> {
        let behind = line.part.as_str().trim_start_matches('#');
        let level = line.part.as_str().len() - behind.len();
        let text = line.part.tail(behind).trim();
        let heading = (1..=6).contains(&level) && behind.starts_with(is_whitespace) && !text.as_str().is_empty();
        heading.then(|| Self { lump: Lump::of(line), level: level as u8, text })
    }
}

/// What a code fence is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FenceKind {
    /// ```` ``` ````
    Backticks,
    /// `~~~`
    Tildes,
}

impl FenceKind {
    fn of(line: &str) -> Option<Self> {
        let text = line.trim_start_matches(is_whitespace);
        if text.starts_with("```") {
            Some(Self::Backticks)
        } else if text.starts_with("~~~") {
            Some(Self::Tildes)
        } else {
            None
        }
    }
}

/// A code fence: the line that opens it, lines that nothing is made of, and the line that closes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FenceRef<'a> {
    lump: Lump<'a>,
    kind: FenceKind,
    body: Part<'a>,
    body_line: usize,
    closed: bool,
}

impl<'a> FenceRef<'a> {
    /// What it is made of.
    pub fn kind(&self) -> FenceKind {
        self.kind
    }

    /// The lines within it, their ends included.
    pub fn body(&self) -> Part<'a> {
        self.body
    }

    /// Whether a line closes it. If not, the rest of the file is in it.
    pub fn is_closed(&self) -> bool {
        self.closed
    }

    /// Its lines.
    pub fn lump(&self) -> Lump<'a> {
        self.lump
    }

    /// Lines within it that would be definitions outside.
    pub fn definitions(&self) -> impl Iterator<Item = DefinitionRef<'a>> + use<'a> {
        let (body, above) = (self.body, self.body_line - 1);
        Lines::new(body.as_str()).filter_map(move |line| {
            DefinitionRef::parse(Line {
                part: Part::new(line.part.as_str(), body.start() + line.part.start()),
                next: body.start() + line.next,
                number: above + line.number,
            })
        })
    }
}

/// How a definition is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DefinitionForm {
    /// `Time: …; Sources: …`, the time between backticks or not.
    Current,
    /// `… · Sources: …`, read and never written.
    Older,
}

/// The definition of a footnote: when something was said, and where that is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DefinitionRef<'a> {
    lump: Lump<'a>,
    form: DefinitionForm,
    label: Part<'a>,
    time: Part<'a>,
    sources: Part<'a>,
}

impl<'a> DefinitionRef<'a> {
    /// Its line.
    pub fn lump(&self) -> Lump<'a> {
        self.lump
    }

    /// How it is written.
    pub fn form(&self) -> DefinitionForm {
        self.form
    }

    /// What it defines.
    pub fn label(&self) -> Part<'a> {
        self.label
    }

    /// The time as it is written: well formed, but perhaps no day of the calendar.
    pub fn time(&self) -> Part<'a> {
        self.time
    }

    /// What stands behind `Sources:`, not empty, without white space at its ends.
    pub fn sources(&self) -> Part<'a> {
        self.sources
    }

    /// The links among its sources. What stands between them does not matter.
    pub fn links(&self) -> impl Iterator<Item = LinkRef<'a>> + use<'a> {
        links(self.sources)
    }

    /// Reads a line; none if it is no definition.
    ///
    /// ```text
    /// [^label]: Time: `2026-01-02`; Sources: [label](target), …
    /// [^label]: 2026-01-02 · Sources: [label](target), …
    /// ```
    fn parse(line: Line<'a>) -> Option<Self> {
        let part = line.part;
        let behind = part.as_str().strip_prefix("[^")?;
        let length = behind.bytes().take_while(|byte| is_label_byte(*byte)).count();
        let label = part.tail(behind).slice(0..length);
        if length == 0 {
            return None;
        }
        let rest = skip_space(behind.get(length..)?.strip_prefix("]:")?);
        let (form, time, rest) = match rest.strip_prefix("Time:").map(skip_space) {
            Some(rest) => {
                let (ticked, rest) = rest.strip_prefix('`').map_or((false, rest), |rest| (true, rest));
                let (time, rest) = split_time(part.tail(rest))?;
                let rest = if ticked { rest.strip_prefix('`')? } else { rest };
                (DefinitionForm::Current, time, skip_space(rest).strip_prefix(';')?)
            }
            None => {
                let (time, rest) = split_time(part.tail(rest))?;
                (DefinitionForm::Older, time, skip_space(rest).strip_prefix('·')?)
            }
        };
        let sources = part.tail(skip_space(skip_space(rest).strip_prefix("Sources:")?)).trim();
        (!sources.as_str().is_empty()).then(|| Self { lump: Lump::of(line), form, label, time, sources })
    }
}

/// Whether a line, taken by itself, is a definition.
pub(super) fn is_definition(line: &str) -> bool {
    DefinitionRef::parse(Line { part: Part::new(line, 0), next: line.len(), number: 1 }).is_some()
}

/// A link, and where it stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkRef<'a> {
    whole: Part<'a>,
    label: Part<'a>,
    target: Part<'a>,
}

impl<'a> LinkRef<'a> {
    /// From `[` to `)`.
    pub fn whole(&self) -> Part<'a> {
        self.whole
    }

    /// Between the brackets.
    pub fn label(&self) -> Part<'a> {
        self.label
    }

    /// Between the parentheses.
    pub fn target(&self) -> Part<'a> {
        self.target
    }
}

/// The links of a piece of a file.
pub(super) fn links<'a>(part: Part<'a>) -> impl Iterator<Item = LinkRef<'a>> + use<'a> {
    Links::new(part.as_str()).map(move |link| LinkRef {
        whole: part.slice(link.span),
        label: part.slice(link.label),
        target: part.slice(link.target),
    })
}

fn skip_space(text: &str) -> &str {
    text.trim_start_matches(is_whitespace)
}

/// The time that the piece begins with, and what follows it.
fn split_time(part: Part<'_>) -> Option<(Part<'_>, &str)> {
    let text = part.as_str();
    let length = match text.strip_prefix(UNDATED) {
        Some(_) => UNDATED.len(),
        None => text.bytes().take_while(|byte| byte.is_ascii_digit() || *byte == b'-').count(),
    };
    let time = part.slice(0..length);
    EvidenceTime::is_written(time.as_str()).then(|| (time, text.get(length..).unwrap_or_default()))
}

const UNDATED: &str = "undated";

/// What a line is, outside of a fence.
enum Kind<'a> {
    Blank,
    Heading(HeadingRef<'a>),
    Fence(FenceKind),
    Definition(DefinitionRef<'a>),
    Comment,
    Text,
}

impl<'a> Kind<'a> {
    fn of(line: Line<'a>) -> Self {
        let text = line.part.as_str();
        match text.as_bytes().first() {
            None => Self::Blank,
            Some(b'#') => HeadingRef::parse(line).map_or(Self::Text, Self::Heading),
            Some(b'[') => DefinitionRef::parse(line).map_or(Self::Text, Self::Definition),
            // What may be white space or open something that may be indented.
            Some(b'`' | b'~' | b'<' | ..=b' ' | 0x80..) => Self::of_indented(text),
            Some(_) => Self::Text,
        }
    }

    fn of_indented(line: &str) -> Self {
        let text = skip_space(line);
        let opens_anchor = text.strip_prefix("<a").is_some_and(|rest| rest.starts_with(is_whitespace));
        match FenceKind::of(text) {
            _ if text.is_empty() => Self::Blank,
            Some(kind) => Self::Fence(kind),
            None if opens_anchor || text.starts_with("<!--") => Self::Comment,
            None => Self::Text,
        }
    }
}

/// The items of a topic, in order. Never fails and never allocates: what is no item of another kind is a paragraph.
///
/// A paragraph ends at any line that is not text; a fence at the next line that begins like the one that opened it, or
/// with the file.
#[derive(Clone, Debug)]
pub struct Items<'a> {
    text: &'a str,
    lines: Lines<'a>,
    /// A line that was read ahead: the one that ended an item.
    ahead: Option<Line<'a>>,
}

impl<'a> Items<'a> {
    /// Those of `text`.
    pub fn new(text: &'a str) -> Self {
        Self { text, lines: Lines::new(text), ahead: None }
    }

    /// From `first` on, the lines that are such; the next is kept for later. Behind the last of them, its text's end and
    /// its own, and how many they are.
    fn run(&mut self, first: Line<'a>, such: impl Fn(&Kind<'a>) -> bool) -> (Lump<'a>, usize) {
        let (mut last, mut count) = (first, 1);
        loop {
            match self.lines.next() {
                Some(line) if such(&Kind::of(line)) => (last, count) = (line, count + 1),
                other => {
                    self.ahead = other;
                    break;
                }
            }
        }
        (Lump::new(first, self.part(first.part.start(), last.part.end()), last.next), count)
    }

    fn fence(&mut self, first: Line<'a>, kind: FenceKind) -> FenceRef<'a> {
        let (mut last, mut body_end, mut closed) = (first, first.next, false);
        for line in self.lines.by_ref() {
            body_end = line.part.start();
            last = line;
            closed = FenceKind::of(line.part.as_str()) == Some(kind);
            if closed {
                break;
            }
            body_end = line.next;
        }
        let lump = Lump::new(first, self.part(first.part.start(), last.part.end()), last.next);
        FenceRef { lump, kind, body: self.part(first.next, body_end), body_line: first.number + 1, closed }
    }

    fn part(&self, start: usize, end: usize) -> Part<'a> {
        Part::new(self.text.get(start..end).unwrap_or_default(), start)
    }
}

impl<'a> Iterator for Items<'a> {
    type Item = Item<'a>;

    fn next(&mut self) -> Option<Item<'a>> {
        let line = self.ahead.take().or_else(|| self.lines.next())?;
        Some(match Kind::of(line) {
            Kind::Blank => Item::Blank(self.run(line, |kind| matches!(kind, Kind::Blank)).0),
            Kind::Heading(heading) => Item::Heading(heading),
            Kind::Definition(definition) => Item::Definition(definition),
            Kind::Fence(kind) => Item::Fence(self.fence(line, kind)),
            Kind::Comment => Item::Comment(Lump::of(line)),
            Kind::Text => {
                let (lump, lines) = self.run(line, |kind| matches!(kind, Kind::Text));
                Item::Paragraph(ParagraphRef::new(lump, lines))
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> Vec<String> {
        let mut end = 0;
        let shown = Items::new(text)
            .map(|item| {
                assert_eq!(item.span().start, end, "{text:?}");
                end = item.span().end;
                let name = match item {
                    Item::Blank(_) => "blank".to_owned(),
                    Item::Heading(heading) => format!("h{} {}", heading.level(), heading.text().as_str()),
                    Item::Paragraph(paragraph) => format!("p {}", paragraph.text().as_str()),
                    Item::Definition(definition) => {
                        let part = |part: Part<'_>| {
                            assert_eq!(&text[part.span()], part.as_str());
                            part.as_str().to_owned()
                        };
                        let (time, sources) = (part(definition.time()), part(definition.sources()));
                        format!("d {} {time} {sources}", part(definition.label()))
                    }
                    Item::Fence(fence) => format!("f {:?} {}", fence.body().as_str(), fence.is_closed()),
                    Item::Comment(_) => "c".to_owned(),
                };
                format!("{} {name}", item.lump().line())
            })
            .collect();
        assert_eq!(end, text.len(), "{text:?}");
        shown
    }

    #[test]
    fn kinds_of_lines() {
        assert_eq!(
            shown("# A\n\n \u{85}\nx\r\n- y\r## B ##  \n<!-- c\n  <a id=\"\"></a>\n<abbr>\n"),
            ["1 h1 A", "2 blank", "4 p x\r\n- y", "6 h2 B ##", "7 c", "8 c", "9 p <abbr>"]
        );
        assert_eq!(shown("#\t标题  \n"), ["1 h1 标题"]);
        for paragraph in
            ["#x", "#", "# ", "#  \u{3000}", "####### x", " # x", "\u{feff}# x", "---", "=", "> x", "\\# x"]
        {
            assert_eq!(shown(paragraph), [format!("1 p {paragraph}")], "{paragraph:?}");
        }
    }

    #[test]
    fn fences() {
        assert_eq!(shown("```\n~~~\n# x\n ```py\ny"), ["1 f \"~~~\\n# x\\n\" true", "5 p y"]);
        assert_eq!(shown("~~~~ x\n```\n\n~~~"), ["1 f \"```\\n\\n\" true"]);
        assert_eq!(shown("x\n\t```\nnever"), ["1 p x", "2 f \"never\" false"]);
        assert_eq!(shown("```"), ["1 f \"\" false"]);
        assert_eq!(shown("```\n```"), ["1 f \"\" true"]);
        assert_eq!(shown("``\n~~"), ["1 p ``\n~~"]);
    }

    #[test]
    fn definitions() {
        for (line, parts) in [
            ("[^a]: Time: `2026-01-02`; Sources: [x](y)", "a 2026-01-02 [x](y)"),
            ("[^a]:Time:2026;Sources:x", "a 2026 x"),
            ("[^a-_9]:  Time:\t`undated` ;\u{3000}Sources:  a, b  ", "a-_9 undated a, b"),
            ("[^a]: 2026-01 · Sources: [x](y)", "a 2026-01 [x](y)"),
            ("[^a]:undated·Sources:y", "a undated y"),
            ("[^a]: Time: `0000`; Sources: y", "a 0000 y"),
        ] {
            assert_eq!(shown(line), [format!("1 d {parts}")], "{line}");
        }
        for line in [
            " [^a]: Time: `2026`; Sources: x",
            "[^]: Time: `2026`; Sources: x",
            "[^é]: Time: `2026`; Sources: x",
            "[^a] : Time: `2026`; Sources: x",
            "[^a]: time: `2026`; sources: x",
            "[^a]: Time: `2026; Sources: x",
            "[^a]: Time: 2026`; Sources: x",
            "[^a]: Time: ` 2026`; Sources: x",
            "[^a]: Time: 2026-1; Sources: x",
            "[^a]: Time: 2026-01-02-; Sources: x",
            "[^a]: Time: undatedx; Sources: x",
            "[^a]: Time: ２０２６; Sources: x",
            "[^a]: Time: 2026, Sources: x",
            "[^a]: Time: 2026; Sources:",
            "[^a]: Time: 2026; Sources: \u{85}",
            "[^a]: Time: 2026; Source: x",
            "[^a]: 2026; Sources: x",
            "[^a]: `2026` · Sources: x",
            "[^a]: Sources: x; Time: 2026",
        ] {
            assert_eq!(shown(line), [format!("1 p {line}")], "{line}");
        }
    }

    #[test]
    fn definitions_in_a_fence() {
        let text = "x\n```\r\nno\r\n[^a]: Time: 2026; Sources: y\r\n```\n";
        let Some(Item::Fence(fence)) = Items::new(text).nth(1) else { panic!("a fence") };
        let [definition] = fence.definitions().collect::<Vec<_>>()[..] else { panic!("one") };
        assert_eq!(definition.lump().line(), 4);
        assert_eq!(&text[definition.lump().span()], "[^a]: Time: 2026; Sources: y\r\n");
        assert_eq!(&text[definition.label().span()], "a");
    }
}
