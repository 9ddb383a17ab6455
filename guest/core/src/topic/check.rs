//! A topic looked through: its footnotes, which of its paragraphs are sound, everything that is wrong.

use super::block::Block;
use super::fault::{Fault, FaultCode};
use super::item::{DefinitionRef, LinkRef};
use super::line::{Lines, Met, Part, ascending};
use super::paragraph::{Citations, Ending, Groups, ParagraphRef};
use super::resolve::{SourceTarget, Sources};
use super::view::TopicRef;
use crate::ids::{BlockId, EvidenceTime, SourceRef, TopicPath, is_label_byte};
use crate::text::is_whitespace;
use memchr::memmem;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

/// A topic that was looked through.
///
/// Blocks that are sound count, whatever is wrong elsewhere in the file. Whoever wants all or nothing asks first whether
/// a fault is [strict](FaultCode::is_strict).
#[derive(Clone, Debug)]
pub struct Check<'a> {
    path: TopicPath,
    topic: TopicRef<'a>,
    footnotes: Vec<Footnote<'a>>,
    labels: BTreeMap<&'a str, usize>,
    verdicts: Vec<Verdict>,
    faults: Vec<Fault>,
}

/// A footnote that a file defines.
#[derive(Clone, Debug)]
pub struct Footnote<'a> {
    definition: DefinitionRef<'a>,
    time: Option<EvidenceTime>,
    sources: Vec<Source<'a>>,
    fenced: bool,
    sound: bool,
    cited: bool,
}

impl<'a> Footnote<'a> {
    /// Where it is defined; of two definitions of one label, the first.
    pub fn definition(&self) -> &DefinitionRef<'a> {
        &self.definition
    }

    /// When it was; none if there is no such day.
    pub fn time(&self) -> Option<EvidenceTime> {
        self.time
    }

    /// The time as it is written, unless that is `undated`.
    pub fn dated(&self) -> Option<&'a str> {
        (self.time != Some(EvidenceTime::Undated)).then(|| self.definition.time().as_str())
    }

    /// Its links, in order.
    pub fn sources(&self) -> &[Source<'a>] {
        &self.sources
    }

    /// Whether it is defined within a code fence. Such a definition counts if no line outside defines the label; it is
    /// never changed, and unless it is cited it is no fault.
    pub fn is_fenced(&self) -> bool {
        self.fenced
    }

    /// Whether a claim may rest on it: defined once, a real time, at least one source, each labelled and found.
    pub fn is_sound(&self) -> bool {
        self.sound
    }
}

/// One link of a footnote.
#[derive(Clone, Debug)]
pub struct Source<'a> {
    link: LinkRef<'a>,
    evidence: Option<SourceRef>,
}

impl<'a> Source<'a> {
    /// The link.
    pub fn link(&self) -> LinkRef<'a> {
        self.link
    }

    /// What it names; none if nothing.
    pub fn evidence(&self) -> Option<&SourceRef> {
        self.evidence.as_ref()
    }
}

/// What a paragraph came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    /// A block, and sound.
    Block,
    /// Claims of the older kind, each named by its footnote, and sound.
    Older,
    /// Such claims, and something is wrong with them.
    FaultyOlder,
    /// Anything else, and something is wrong with it.
    Faulty,
}

impl<'a> Check<'a> {
    /// Looks through the topic at this path. `sources` answers for the archives beside it.
    pub fn new(path: TopicPath, topic: TopicRef<'a>, sources: &(impl Sources + ?Sized)) -> Self {
        let mut checker = Checker::new(&path, &topic, sources);
        topic.definitions().iter().for_each(|definition| checker.define(*definition));
        let verdicts = topic.paragraphs().map(|paragraph| checker.paragraph(paragraph)).collect();
        checker.unused();
        checker.advise();
        let Checker { footnotes, labels, mut faults, .. } = checker;
        locate(&topic, &mut faults);
        Self { path, topic, footnotes, labels, verdicts, faults }
    }

    /// Where the topic lies.
    pub fn path(&self) -> &TopicPath {
        &self.path
    }

    /// Its parts.
    pub fn topic(&self) -> &TopicRef<'a> {
        &self.topic
    }

    /// Everything that is wrong with it, in this order: what is wrong with definitions; with paragraphs; definitions that
    /// are not used, by label; advice. Each in the order of the file. The first strict one is what a program that stops at
    /// the first would tell.
    pub fn faults(&self) -> &[Fault] {
        &self.faults
    }

    /// What a fault is about: a label, an id, a time, a target, or the topic's path below `topics/`.
    pub fn subject(&self, fault: &Fault) -> &str {
        fault.subject(self.topic.text(), self.path.below_topics())
    }

    /// The first fault for which a strict reading refuses the file; none if the file is sound.
    pub fn first_strict(&self) -> Option<&Fault> {
        self.faults.iter().find(|fault| fault.code.is_strict())
    }

    /// The footnote with that label.
    pub fn footnote(&self, label: &str) -> Option<&Footnote<'a>> {
        self.footnotes.get(*self.labels.get(label)?)
    }

    /// Its footnotes, those within fences only if they count; in the order they were met.
    pub fn footnotes(&self) -> &[Footnote<'a>] {
        &self.footnotes
    }

    /// Its sound blocks, in order. A paragraph of the older kind gives one for each group of citations.
    pub fn blocks(&self) -> impl Iterator<Item = Block<'_, 'a>> {
        self.verdicts.iter().enumerate().flat_map(|(number, verdict)| match verdict {
            Verdict::Block => Block::of_paragraph(self, number).into_iter().collect(),
            Verdict::Older => Block::of_older(self, number),
            Verdict::FaultyOlder | Verdict::Faulty => Vec::new(),
        })
    }

    /// Every paragraph that ends with an id, sound or not, in order.
    pub fn claimed_blocks(&self) -> impl Iterator<Item = Block<'_, 'a>> {
        (0..self.verdicts.len()).filter_map(|number| Block::of_paragraph(self, number))
    }

    /// Whether the paragraph of this number is a sound block, or is made of sound older claims.
    pub fn is_sound(&self, paragraph: usize) -> bool {
        matches!(self.verdicts.get(paragraph), Some(Verdict::Block | Verdict::Older))
    }

    /// Every id in it, blocks' and older ones', sound or not, with the number of its paragraph; in order.
    pub(crate) fn names(&self) -> impl Iterator<Item = (usize, Part<'a>)> {
        self.all_blocks().flat_map(|block| block.ids().to_vec().into_iter().map(move |id| (block.number(), id)))
    }

    /// Every block, sound or not, in order; those of the older kind too.
    pub fn all_blocks(&self) -> impl Iterator<Item = Block<'_, 'a>> {
        self.verdicts.iter().enumerate().flat_map(|(number, verdict)| match verdict {
            Verdict::Block | Verdict::Faulty => Block::of_paragraph(self, number).into_iter().collect(),
            Verdict::Older | Verdict::FaultyOlder => Block::of_older(self, number),
        })
    }

    /// Of the ids that are `taken` by blocks of topics which come before, what has them here no longer counts: of two blocks
    /// with one id, the first does.
    pub fn yield_to(&mut self, taken: &dyn Fn(&str) -> bool) {
        // An id that comes twice in a topic was told there.
        let mut told = Met::default();
        let names: Vec<_> = self.names().filter(|(_, id)| taken(id.as_str()) && told.insert(id.as_str())).collect();
        self.take_out(&names);
    }

    fn take_out(&mut self, names: &[(usize, Part<'a>)]) {
        for (number, _) in names {
            if let Some(verdict) = self.verdicts.get_mut(*number) {
                *verdict = match verdict {
                    Verdict::Block | Verdict::Faulty => Verdict::Faulty,
                    Verdict::Older | Verdict::FaultyOlder => Verdict::FaultyOlder,
                };
            }
        }
        let fault = |(_, id): &(usize, Part<'a>)| new_fault(FaultCode::DuplicateBlockId, *id, Some(*id));
        let mut faults: Vec<Fault> = names.iter().map(fault).collect();
        locate(&self.topic, &mut faults);
        let comes_last = |fault: &Fault| fault.code == FaultCode::UnusedFootnote || !fault.code.is_strict();
        let at = self.faults.iter().position(comes_last).unwrap_or(self.faults.len());
        let last = self.faults.split_off(at);
        self.faults.extend(faults);
        self.faults.extend(last);
    }
}

fn new_fault(code: FaultCode, at: Part<'_>, subject: Option<Part<'_>>) -> Fault {
    Fault { code, span: at.span(), line: 0, column: 0, subject: subject.map(Part::span) }
}

/// Fills in lines and columns, in one pass over the file.
fn locate(topic: &TopicRef<'_>, faults: &mut [Fault]) {
    let starts: Vec<usize> = faults.iter().map(|fault| fault.span.start).collect();
    let mut locator = topic.locator();
    for at in ascending(&starts) {
        if let Some(fault) = faults.get_mut(at) {
            (fault.line, fault.column) = locator.locate(fault.span.start);
        }
    }
}

/// The work of looking through one topic.
struct Checker<'c, 'a, S: ?Sized> {
    path: &'c TopicPath,
    topic: &'c TopicRef<'a>,
    sources: &'c S,
    footnotes: Vec<Footnote<'a>>,
    labels: BTreeMap<&'a str, usize>,
    /// Definitions within fences that will count if they are cited.
    fenced: Vec<DefinitionRef<'a>>,
    fenced_labels: BTreeMap<&'a str, usize>,
    ids: Met<'a>,
    /// The footnote behind the one cited last.
    next: usize,
    faults: Vec<Fault>,
}

impl<'c, 'a, S: Sources + ?Sized> Checker<'c, 'a, S> {
    fn new(path: &'c TopicPath, topic: &'c TopicRef<'a>, sources: &'c S) -> Self {
        let mut fenced = Vec::new();
        let mut fenced_labels = BTreeMap::new();
        for definition in topic.fences().iter().flat_map(|fence| fence.definitions()) {
            fenced_labels.entry(definition.label().as_str()).or_insert(fenced.len());
            fenced.push(definition);
        }
        Self {
            path,
            topic,
            sources,
            footnotes: Vec::new(),
            labels: BTreeMap::new(),
            fenced,
            fenced_labels,
            ids: Met::default(),
            next: 0,
            faults: Vec::new(),
        }
    }

    fn fault(&mut self, code: FaultCode, at: Part<'a>, subject: Part<'a>) {
        self.faults.push(new_fault(code, at, Some(subject)));
    }

    /// Takes a definition outside of a fence.
    fn define(&mut self, definition: DefinitionRef<'a>) {
        let label = definition.label();
        let first = match self.labels.entry(label.as_str()) {
            Entry::Vacant(entry) => {
                entry.insert(self.footnotes.len());
                None
            }
            Entry::Occupied(entry) => Some(*entry.get()),
        };
        if first.is_some() {
            self.fault(FaultCode::DuplicateFootnote, label, label);
        }
        let footnote = self.read(definition, false);
        match first.and_then(|number| self.footnotes.get_mut(number)) {
            Some(first) => first.sound = false,
            None => self.footnotes.push(footnote),
        }
    }

    fn read(&mut self, definition: DefinitionRef<'a>, fenced: bool) -> Footnote<'a> {
        let before = self.faults.len();
        let (label, written) = (definition.label(), definition.time());
        let time = EvidenceTime::parse(written.as_str());
        if time.is_none() {
            self.fault(FaultCode::InvalidTime, written, written);
        }
        let mut sources = Vec::new();
        for link in definition.links() {
            if link.label().trim().as_str().is_empty() {
                self.fault(FaultCode::MissingSourceLabel, link.label(), label);
            }
            let target = link.target();
            let evidence = SourceTarget::parse(target.as_str()).resolve(self.path, self.sources);
            if evidence.is_none() {
                self.fault(FaultCode::UnresolvedSource, target, target);
            }
            sources.push(Source { link, evidence });
        }
        if sources.is_empty() {
            self.fault(FaultCode::MissingSourceLink, definition.sources(), label);
        }
        Footnote { definition, time, sources, fenced, sound: self.faults.len() == before, cited: false }
    }

    /// Takes a definition within a fence, now that it is cited.
    fn define_fenced(&mut self, label: &'a str) -> Option<usize> {
        let definition = *self.fenced.get(*self.fenced_labels.get(label)?)?;
        let footnote = self.read(definition, true);
        let number = self.footnotes.len();
        self.labels.insert(label, number);
        self.footnotes.push(footnote);
        Some(number)
    }

    /// Follows a citation; whether a claim may rest on it.
    fn cite(&mut self, label: Part<'a>) -> bool {
        // Most files cite their footnotes in the order they define them.
        let next =
            self.footnotes.get(self.next).filter(|footnote| footnote.definition.label().as_str() == label.as_str());
        let known = match next {
            Some(_) => Some(self.next),
            None => self.labels.get(label.as_str()).copied().or_else(|| self.define_fenced(label.as_str())),
        };
        match known.and_then(|number| Some((number, self.footnotes.get_mut(number)?))) {
            Some((number, footnote)) => {
                self.next = number + 1;
                footnote.cited = true;
                footnote.sound
            }
            None => {
                self.fault(FaultCode::UndefinedFootnote, label, label);
                false
            }
        }
    }

    fn paragraph(&mut self, paragraph: ParagraphRef<'a>) -> Verdict {
        match paragraph.ending() {
            Ending::Ids { ids, body } => self.block(&ids, body),
            Ending::Unfit(name) => {
                self.fault(FaultCode::InvalidBlockId, name, name);
                self.loose(paragraph, false);
                Verdict::Faulty
            }
            Ending::Plain if is_older(paragraph) => self.older(paragraph),
            Ending::Plain => {
                self.loose(paragraph, true);
                Verdict::Faulty
            }
        }
    }

    fn block(&mut self, ids: &[Part<'a>], body: Part<'a>) -> Verdict {
        let before = self.faults.len();
        let mut sound = true;
        let identity = ids.last().copied().unwrap_or(body);
        let mut groups = Groups::new(body);
        let mut any = false;
        for group in groups.by_ref() {
            any = true;
            sound &= self.group(group.before(), group.citations());
        }
        let rest = groups.rest().trim();
        if !any {
            self.fault(FaultCode::UncitedBlock, identity, identity);
        } else if !rest.as_str().is_empty() {
            self.fault(FaultCode::TextAfterCitation, rest, identity);
        }
        ids.iter().for_each(|id| self.name(*id));
        if sound && self.faults.len() == before { Verdict::Block } else { Verdict::Faulty }
    }

    fn older(&mut self, paragraph: ParagraphRef<'a>) -> Verdict {
        let before = self.faults.len();
        let mut sound = true;
        for group in Groups::new(paragraph.text()) {
            sound &= self.group(group.before(), group.citations());
            group.citations().for_each(|citation| self.name(citation.label()));
        }
        if sound && self.faults.len() == before { Verdict::Older } else { Verdict::FaultyOlder }
    }

    fn group(&mut self, before: Part<'a>, citations: Citations<'a>) -> bool {
        let mut sound = true;
        let mut claim = !before.trim().as_str().is_empty();
        for citation in citations {
            // Told once, at the first.
            if !std::mem::replace(&mut claim, true) {
                self.fault(FaultCode::CitationWithoutClaim, citation.label(), citation.label());
            }
            sound &= self.cite(citation.label());
        }
        sound
    }

    fn name(&mut self, id: Part<'a>) {
        if !self.ids.insert(id.as_str()) {
            self.fault(FaultCode::DuplicateBlockId, id, id);
        }
    }

    /// A paragraph that is no block. Lines that begin like a definition are told as such, and so is the lack of an id if
    /// there is other text and `unnamed` says so; citations are followed.
    fn loose(&mut self, paragraph: ParagraphRef<'a>, unnamed: bool) {
        let text = paragraph.text();
        let mut only_heads = true;
        // Ascending.
        let mut heads = Vec::new();
        for line in Lines::new(text.as_str()) {
            let line = text.slice(line.part.span());
            match definition_head(line) {
                Some(label) => {
                    heads.push(label.start());
                    self.fault(FaultCode::MalformedFootnote, line.trim(), label);
                }
                None => only_heads = false,
            }
        }
        if unnamed && !only_heads {
            self.faults.push(new_fault(FaultCode::MissingBlockId, text, None));
        }
        for citation in paragraph.citations().filter(|citation| heads.binary_search(&citation.label().start()).is_err())
        {
            self.cite(citation.label());
        }
    }

    fn unused(&mut self) {
        let unused = self.labels.values().filter_map(|number| self.footnotes.get(*number));
        let unused: Vec<_> = unused.filter(|footnote| !footnote.cited).map(|one| one.definition.label()).collect();
        unused.into_iter().for_each(|label| self.fault(FaultCode::UnusedFootnote, label, label));
    }

    fn advise(&mut self) {
        let topic = self.topic;
        if let Some(fence) = topic.fences().last().filter(|fence| !fence.is_closed()) {
            let first = Lines::new(fence.lump().text().as_str()).next().map_or(0..0, |line| line.part.span());
            let line = fence.lump().text().slice(first);
            self.fault(FaultCode::UnclosedFence, line, line);
        }
        if topic.text().starts_with(BYTE_ORDER_MARK) {
            let mark = Part::new(topic.text(), 0).slice(0..BYTE_ORDER_MARK.len_utf8());
            self.fault(FaultCode::ByteOrderMark, mark, mark);
        }
    }
}

pub(super) const BYTE_ORDER_MARK: char = '\u{feff}';

/// Whether a paragraph without an id is of the older kind: it cites, nothing comes behind its last citation, and every
/// label has an older id's form.
pub(crate) fn is_older(paragraph: ParagraphRef<'_>) -> bool {
    let mut groups = Groups::new(paragraph.text());
    let mut any = false;
    let older = groups.by_ref().all(|group| {
        any = true;
        group.citations().all(|citation| BlockId::is_older(citation.label().as_str()))
    });
    any && older && groups.rest().trim().as_str().is_empty()
}

/// The label of a line that begins like a definition: white space, `[^label]:`.
pub(super) fn definition_head(line: Part<'_>) -> Option<Part<'_>> {
    memmem::find(line.as_str().as_bytes(), b"]:")?;
    let text = line.as_str().trim_start_matches(is_whitespace).strip_prefix("[^")?;
    let length = text.bytes().take_while(|byte| is_label_byte(*byte)).count();
    (length > 0 && text.get(length..)?.starts_with("]:")).then(|| line.tail(text).slice(0..length))
}
