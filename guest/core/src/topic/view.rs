//! A topic read whole: where everything stands, and nothing yet about whether it is sound.

use super::item::{DefinitionRef, FenceRef, HeadingRef, Item, Items};
use super::line::{Locator, Part};
use super::paragraph::{Ending, ParagraphRef};
use core::ops::Range;

/// A topic's parts, each with where it stands. What holds for a file that no edit touches holds here: no byte is changed,
/// and every part's span leads back to it.
#[derive(Clone, Debug)]
pub struct TopicRef<'a> {
    text: &'a str,
    headings: Vec<Section<'a>>,
    paragraphs: Vec<Placed<'a>>,
    definitions: Vec<DefinitionRef<'a>>,
    fences: Vec<FenceRef<'a>>,
}

/// A heading, and the one it stands below.
#[derive(Clone, Copy, Debug)]
struct Section<'a> {
    heading: HeadingRef<'a>,
    parent: Option<usize>,
}

/// A paragraph, and what stands above it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Placed<'a> {
    pub(super) paragraph: ParagraphRef<'a>,
    /// The heading it stands under.
    pub(super) section: Option<usize>,
    /// Where the text that a reader sees as one with it begins, and in which line: above it, if nothing but comments stands
    /// between.
    pub(super) lead: (usize, usize),
}

impl<'a> TopicRef<'a> {
    /// Reads a topic. Never fails; costs time and memory in proportion to the text.
    pub fn parse(text: &'a str) -> Self {
        let mut topic =
            Self { text, headings: Vec::new(), paragraphs: Vec::new(), definitions: Vec::new(), fences: Vec::new() };
        let mut open: Vec<usize> = Vec::new();
        // Where the text that goes on here began, and the paragraph it ends with if that stands directly above.
        let mut lead = None;
        let mut above: Option<ParagraphRef<'a>> = None;
        for item in Items::new(text) {
            let here = (item.span().start, item.lump().line());
            let directly_above = above.take();
            match item {
                Item::Comment(_) => {
                    // What follows a block begins anew.
                    if directly_above.is_some_and(|paragraph| matches!(paragraph.ending(), Ending::Ids { .. })) {
                        lead = None;
                    }
                    lead.get_or_insert(here);
                }
                Item::Paragraph(paragraph) => {
                    let start = *lead.get_or_insert(here);
                    topic.paragraphs.push(Placed { paragraph, section: open.last().copied(), lead: start });
                    above = Some(paragraph);
                }
                Item::Blank(_) => lead = None,
                Item::Heading(heading) => {
                    lead = None;
                    open.truncate(usize::from(heading.level() - 1));
                    topic.headings.push(Section { heading, parent: open.last().copied() });
                    open.push(topic.headings.len() - 1);
                }
                Item::Definition(definition) => {
                    lead = None;
                    topic.definitions.push(definition);
                }
                Item::Fence(fence) => {
                    lead = None;
                    topic.fences.push(fence);
                }
            }
        }
        topic
    }

    /// The file.
    pub fn text(&self) -> &'a str {
        self.text
    }

    /// Its headings, in order.
    pub fn headings(&self) -> impl Iterator<Item = HeadingRef<'a>> {
        self.headings.iter().map(|section| section.heading)
    }

    /// Its paragraphs, blocks or not, in order.
    pub fn paragraphs(&self) -> impl Iterator<Item = ParagraphRef<'a>> {
        self.paragraphs.iter().map(|placed| placed.paragraph)
    }

    /// Its definitions outside of fences, in order.
    pub fn definitions(&self) -> &[DefinitionRef<'a>] {
        &self.definitions
    }

    /// Its code fences, in order.
    pub fn fences(&self) -> &[FenceRef<'a>] {
        &self.fences
    }

    /// The headings that the paragraph of this number (from 0) stands under, outermost first. One of level *k* takes the
    /// place of everything from level *k* on; levels that are left out are not there.
    pub fn headings_of(&self, paragraph: usize) -> Vec<HeadingRef<'a>> {
        let mut at = self.paragraphs.get(paragraph).and_then(|placed| placed.section);
        let mut path = Vec::new();
        while let Some(section) = at.and_then(|at| self.headings.get(at)) {
            path.push(section.heading);
            at = section.parent;
        }
        path.reverse();
        path
    }

    /// Tells lines and columns of offsets.
    pub fn locator(&self) -> Locator<'a> {
        Locator::new(self.text)
    }

    /// The piece of the file at `span`; empty if that is none.
    pub fn part(&self, span: Range<usize>) -> Part<'a> {
        Part::new(self.text, 0).slice(span)
    }

    pub(super) fn placed(&self) -> &[Placed<'a>] {
        &self.paragraphs
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_of_headings() {
        let topic = TopicRef::parse("a\n# A\n### C\nb\n## B\nc\n# D\n### E\n## F\nd\n");
        let paths: Vec<Vec<&str>> = (0..topic.paragraphs().count())
            .map(|at| topic.headings_of(at).iter().map(|heading| heading.text().as_str()).collect())
            .collect();
        assert_eq!(paths, [&[][..], &["A", "C"], &["A", "B"], &["D", "F"]]);
        assert_eq!(topic.headings_of(9), []);
    }

    #[test]
    fn what_a_reader_sees_as_one() {
        let lead = |text| TopicRef::parse(text).placed().last().map(|placed| placed.lead.1);
        for (text, line) in [
            ("a\n<!-- -->\nb", 1),
            ("<!-- -->\n<a id=\"x\"></a>\nb", 1),
            ("a ^a\n<!-- -->\nb", 2),
            ("a\n<!-- -->\n\nb", 4),
            ("<!-- -->\n# h\nb", 3),
            ("a\n<!-- -->\nb\n<!-- -->\nc", 1),
            ("<!-- -->\n```\n```\nb", 4),
        ] {
            assert_eq!(lead(text), Some(line), "{text:?}");
        }
    }
}
