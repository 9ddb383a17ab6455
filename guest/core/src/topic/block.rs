//! A claim: what it says, what it is called, what it rests on.

use super::check::{Check, Footnote};
use super::item::LinkRef;
use super::line::{Met, Part};
use super::paragraph::{
    CitationRef, Citations, Ending, GroupRef, Groups, ParagraphRef, links_of_text, with_lf, without_citations,
};
use crate::ids::{BlockId, EvidenceTime, FootnoteLabel, SourceRef, TopicPath};
use crate::text::clean;
use std::collections::BTreeSet;

/// A block as it stands in a topic. Nothing is copied: a block may have many ids and cite footnotes with many sources, and
/// so may its neighbours.
#[derive(Clone, Debug)]
pub struct Block<'c, 'a> {
    check: &'c Check<'a>,
    number: usize,
    paragraph: ParagraphRef<'a>,
    ids: Vec<Part<'a>>,
    body: Part<'a>,
    older: bool,
}

impl<'c, 'a> Block<'c, 'a> {
    /// The block that the paragraph of this number is; none if it has no id.
    pub(super) fn of_paragraph(check: &'c Check<'a>, number: usize) -> Option<Self> {
        let paragraph = check.topic().placed().get(number)?.paragraph;
        match paragraph.ending() {
            Ending::Ids { ids, body } => Some(Self { check, number, paragraph, ids, body, older: false }),
            Ending::Unfit(_) | Ending::Plain => None,
        }
    }

    /// The blocks of a paragraph of the older kind: each group's citations name what comes before them.
    pub(super) fn of_older(check: &'c Check<'a>, number: usize) -> Vec<Self> {
        let Some(placed) = check.topic().placed().get(number) else { return Vec::new() };
        let text = placed.paragraph.text();
        let block = |group: GroupRef<'a>| Self {
            check,
            number,
            paragraph: placed.paragraph,
            ids: group.citations().map(|citation| citation.label()).collect(),
            body: text.slice(group.before().start() - text.start()..group.run().end() - text.start()),
            older: true,
        };
        Groups::new(text).map(block).collect()
    }

    /// The block of the older kind whose body is this, in the paragraph of this number.
    pub(super) fn older_at(check: &'c Check<'a>, number: usize, body: Part<'a>) -> Option<Self> {
        let paragraph = check.topic().placed().get(number)?.paragraph;
        let ids = Groups::new(body).next()?.citations().map(|citation| citation.label()).collect();
        Some(Self { check, number, paragraph, ids, body, older: true })
    }

    /// The topic it stands in.
    pub fn topic(&self) -> &'c Check<'a> {
        self.check
    }

    /// The paragraph's number in its topic, from 0.
    pub fn number(&self) -> usize {
        self.number
    }

    /// The paragraph it is, or is of.
    pub fn paragraph(&self) -> ParagraphRef<'a> {
        self.paragraph
    }

    /// Its ids as they stand in the file, at least one: those of blocks that were merged into it, and last its own.
    pub fn ids(&self) -> &[Part<'a>] {
        &self.ids
    }

    /// Its own id.
    pub fn identity(&self) -> Part<'a> {
        self.ids.last().copied().unwrap_or(self.body)
    }

    /// Whether it is of the older kind, named by its footnotes and without an id of its own.
    pub fn is_older(&self) -> bool {
        self.older
    }

    /// Its text in the file, citations included, ids not.
    pub fn body(&self) -> Part<'a> {
        self.body
    }

    /// What it claims: the text without citations, lines joined by LF, no white space at the ends. Links stay.
    pub fn content(&self) -> String {
        with_lf(&without_citations(self.body)).trim_matches(crate::text::is_whitespace).to_owned()
    }

    /// The headings it stands under, outermost first.
    pub fn headings(&self) -> Vec<&'a str> {
        self.check.topic().headings_of(self.number).iter().map(|heading| heading.text().as_str()).collect()
    }

    /// Its groups of citations, each with the text it speaks for.
    pub fn groups(&self) -> Groups<'a> {
        Groups::new(self.body)
    }

    /// The footnote that a citation leads to; of a sound block, there always is one.
    pub fn footnote(&self, citation: &CitationRef<'a>) -> Option<&'c Footnote<'a>> {
        self.check.footnote(citation.label().as_str())
    }

    /// The footnotes it cites, each once, in order.
    pub fn footnotes(&self) -> impl Iterator<Item = &'c Footnote<'a>> {
        let mut seen = Met::default();
        let labels = self.groups().flat_map(|group| group.citations()).map(|citation| citation.label().as_str());
        labels.filter(move |label| seen.insert(label)).filter_map(|label| self.check.footnote(label))
    }

    /// When it was: the time of its first footnote that has one.
    pub fn when(&self) -> Option<EvidenceTime> {
        self.footnotes().filter_map(|footnote| footnote.time()).find(|time| *time != EvidenceTime::Undated)
    }

    /// Everything it rests on, each once, in order.
    pub fn evidence(&self) -> impl Iterator<Item = &'c SourceRef> {
        let mut seen = BTreeSet::new();
        let sources = self.footnotes().flat_map(|footnote| footnote.sources()).filter_map(|source| source.evidence());
        sources.filter(move |one| seen.insert(*one))
    }

    /// Its links, footnotes' not included.
    pub fn links(&self) -> impl Iterator<Item = LinkRef<'a>> + use<'a> {
        links_of_text(self.body)
    }

    /// The blocks its links name, each once, in order. Whether they exist is not asked.
    pub fn relations(&self) -> Vec<BlockId> {
        let mut seen = BTreeSet::new();
        let named = self.links().filter_map(|link| linked_block(link.target().as_str()));
        named.filter(|id| seen.insert(*id)).filter_map(BlockId::parse).collect()
    }

    /// The block as values of their own, one for each id. `order` is how many units there are before it.
    ///
    /// Each holds a copy of everything: of a block with many ids, or with many sources, ask only for what is needed.
    pub fn units(&self, order: usize) -> Vec<Unit> {
        let (links, labels) = self.links_and_labels();
        let (content, refs): (_, Vec<_>) = (self.content(), self.evidence().cloned().collect());
        let evidence = if self.older { Vec::new() } else { self.pieces().collect() };
        let headings: Vec<_> = self.headings().into_iter().map(str::to_owned).collect();
        let relations = self.relations();
        let ids = self.ids.iter().filter_map(|id| BlockId::parse(id.as_str()));
        let unit = |(number, id)| Unit {
            id,
            content: content.clone(),
            when: self.when(),
            refs: refs.clone(),
            links: links.clone(),
            labels: labels.clone(),
            topic: self.check.path().clone(),
            headings: headings.clone(),
            // Merged blocks are one claim, older ones are each their own.
            order: if self.older { order + number } else { order },
            evidence: evidence.clone(),
            relations: relations.clone(),
        };
        ids.enumerate().map(unit).collect()
    }

    /// Targets and labels of the sources it rests on, each once, in order.
    fn links_and_labels(&self) -> (Vec<String>, Vec<String>) {
        let once = |parts: Vec<&'a str>| {
            let mut seen = BTreeSet::new();
            parts.into_iter().filter(|part| seen.insert(*part)).map(str::to_owned).collect()
        };
        let links = || self.footnotes().flat_map(Footnote::sources).map(|source| source.link());
        (
            once(links().map(|link| link.target().as_str()).collect()),
            once(links().map(|link| link.label().as_str()).collect()),
        )
    }

    fn pieces(&self) -> impl Iterator<Item = Evidence> {
        self.groups().flat_map(move |group| {
            let quote = group.quote();
            let piece = move |citation: CitationRef<'a>| {
                let footnote = self.footnote(&citation)?;
                let sources = footnote.sources();
                Some(Evidence {
                    citation: FootnoteLabel::parse(citation.label().as_str())?,
                    quote: quote.clone().into_owned(),
                    when: footnote.time().filter(|time| *time != EvidenceTime::Undated),
                    refs: sources.iter().filter_map(|source| source.evidence().cloned()).collect(),
                    links: sources.iter().map(|source| source.link().target().as_str().to_owned()).collect(),
                    labels: sources.iter().map(|source| source.link().label().as_str().to_owned()).collect(),
                })
            };
            group.citations().filter_map(piece)
        })
    }

    /// What search finds of it: an event for each group of citations that something is claimed before and that rests on
    /// something. Faults elsewhere in the block do not matter.
    pub fn events(&self) -> impl Iterator<Item = Event> {
        let topic = self.check.topic();
        let (lead, line) = topic
            .placed()
            .get(self.number)
            .map_or((self.body.start(), self.paragraph.lump().line()), |placed| placed.lead);
        // Of what stands above, the part that nothing is cited for.
        let above = topic.part(lead..self.body.start());
        let start = Citations::new(above).last().map_or(lead, |citation| citation.span().end);
        let identity = BlockId::parse(self.identity().as_str());
        (1..).zip(self.groups()).filter_map(move |(number, group)| {
            let before = if number == 1 { topic.part(start..group.before().end()) } else { group.before() };
            let text = clean(&without_citations(before));
            let footnotes: Vec<_> = group.citations().map(|citation| self.footnote(&citation)).collect();
            let mut times = Vec::new();
            let mut refs = Vec::new();
            let mut complete = true;
            let (mut known_times, mut known_refs) = (BTreeSet::new(), BTreeSet::new());
            for footnote in &footnotes {
                let Some(footnote) = footnote else {
                    complete = false;
                    continue;
                };
                complete &= footnote.is_sound();
                times.extend(footnote.dated().filter(|time| known_times.insert(*time)).map(str::to_owned));
                let found = footnote.sources().iter().filter_map(|source| source.evidence());
                refs.extend(found.filter(|one| known_refs.insert(*one)).cloned());
            }
            if text.is_empty() || refs.is_empty() {
                return None;
            }
            let content =
                if times.is_empty() || text.starts_with('[') { text } else { format!("[{}] {text}", times.join("; ")) };
            Some(Event { block: identity.clone()?, number, line, times, content, refs, complete })
        })
    }
}

/// The block that a link's target names: what stands behind its last `#^`, if that is an id. A target with a scheme
/// (`https:`) leads elsewhere.
pub(crate) fn linked_block(target: &str) -> Option<&str> {
    let mut carets = target.rmatch_indices('^').map(|(at, _)| at);
    let caret = carets.find(|at| target.get(..*at).is_some_and(|before| before.ends_with('#')))?;
    let id = target.get(caret + 1..)?;
    (!has_scheme(target) && (BlockId::is_written(id) || BlockId::is_older(id))).then_some(id)
}

/// Whether a target begins like `https:` or `mailto:`.
pub(super) fn has_scheme(target: &str) -> bool {
    target.split_once(':').is_some_and(|(scheme, _)| {
        scheme.starts_with(|first: char| first.is_ascii_alphabetic())
            && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.'))
    })
}

/// A claim under one of its ids, as a value of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unit {
    /// What it is called.
    pub id: BlockId,
    /// What it claims: see [`Block::content`].
    pub content: String,
    /// When it was: see [`Block::when`].
    pub when: Option<EvidenceTime>,
    /// What it rests on: see [`Block::evidence`].
    pub refs: Vec<SourceRef>,
    /// Targets of its sources as they are written, each once.
    pub links: Vec<String>,
    /// Labels of its sources, each once.
    pub labels: Vec<String>,
    /// Where it stands.
    pub topic: TopicPath,
    /// The headings it stands under, outermost first.
    pub headings: Vec<String>,
    /// Its place among all units of a workspace, from 0; ids of one block share it.
    pub order: usize,
    /// Its citations, each with what it speaks for. None in the older kind.
    pub evidence: Vec<Evidence>,
    /// The blocks its links name, each once.
    pub relations: Vec<BlockId>,
}

/// What a unit says of a time: the text that speaks for it, and what that rests on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dated<'u> {
    /// When it was.
    pub when: EvidenceTime,
    /// The text, links included.
    pub quote: &'u str,
    /// What its sources name, in order.
    pub refs: &'u [SourceRef],
    /// Their labels.
    pub labels: &'u [String],
    /// Their targets as they are written.
    pub links: &'u [String],
}

impl Unit {
    /// What it says of each time, a piece for each citation that is dated. A claim of the older kind is one piece, all of it
    /// of one time.
    pub fn dated(&self) -> impl Iterator<Item = Dated<'_>> {
        let older = self.evidence.is_empty().then_some(self.when).flatten().map(|when| {
            let Self { content, refs, labels, links, .. } = self;
            Dated { when, quote: content, refs, labels, links }
        });
        let pieces = self.evidence.iter().filter_map(|evidence| {
            let Evidence { quote, refs, labels, links, .. } = evidence;
            Some(Dated { when: evidence.when?, quote, refs, labels, links })
        });
        pieces.chain(older)
    }
}

/// A citation of a unit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Evidence {
    /// The footnote's label.
    pub citation: FootnoteLabel,
    /// The text that rests on it, links included.
    pub quote: String,
    /// When it was; none if undated.
    pub when: Option<EvidenceTime>,
    /// What the footnote's sources name, in order.
    pub refs: Vec<SourceRef>,
    /// Their targets as they are written.
    pub links: Vec<String>,
    /// Their labels.
    pub labels: Vec<String>,
}

/// What search finds of a block: one group of citations, and the text it speaks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// The block's own id.
    pub block: BlockId,
    /// Which of the block's groups it is, from 1.
    pub number: usize,
    /// The line that the block, or what a reader sees as one with it, begins in; from 1.
    pub line: usize,
    /// Its times as they are written, each once, even if there is no such day.
    pub times: Vec<String>,
    /// The text made plain ([`clean`]), behind its times in brackets unless it begins with one.
    pub content: String,
    /// What it rests on, each once.
    pub refs: Vec<SourceRef>,
    /// Whether that is everything it cites. If not, it can be found, but must not be trusted.
    pub complete: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn linked_blocks() {
        for (target, id) in [("#^a-1", "a-1"), ("x/y.md#^mem_z", "mem_z"), ("x#^a#^b", "b")] {
            assert_eq!(linked_block(target), Some(id));
        }
        for target in ["", "a", "#a", "^a", "#^", "#^a_b", "#^a b", "#^块", "#^a#b", "https://x/#^a", "mailto:a#^b"] {
            assert_eq!(linked_block(target), None, "{target}");
        }
    }
}
