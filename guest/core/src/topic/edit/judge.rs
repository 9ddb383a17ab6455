//! Whether an edit may be made: what it would do to topics, to blocks, to links, and what new claims would rest on.

use super::fault::{EditFault, EditReason};
use super::render::Located;
use super::{Committed, Edit, Evidence};
use crate::digest::{Digest, Hasher};
use crate::ids::{SourceRef, TopicPath};
use crate::text::{collapse_whitespace, decode, is_whitespace};
use crate::topic::block::{Block, has_scheme, linked_block};
use crate::topic::check::{Check, Footnote, is_older};
use crate::topic::fault::{Fault, FaultCode};
use crate::topic::line::{Locator, Part};
use crate::topic::paragraph::{Ending, links_of_text};
use crate::topic::resolve::SourceTarget;
use crate::topic::view::TopicRef;
use std::collections::{BTreeMap, BTreeSet};

/// The committed topics that an edit is held against: those it gives, and those its blocks come from.
pub(super) struct Old<'c> {
    topics: BTreeMap<TopicPath, Check<'c>>,
    ids: BTreeMap<&'c str, Place<'c>>,
}

/// Where a block was: its topic, the number of its paragraph there and, if it is of the older kind, its body.
struct Place<'c> {
    path: TopicPath,
    number: usize,
    older: Option<Part<'c>>,
}

impl<'c> Old<'c> {
    pub(super) fn new(
        edit: &Edit<'_>,
        ids: impl Iterator<Item = impl AsRef<str>>,
        committed: &'c dyn Committed,
        evidence: &dyn Evidence,
    ) -> Self {
        let mut paths: BTreeSet<TopicPath> = edit.topics.keys().cloned().collect();
        paths.extend(ids.flat_map(|id| committed.topics_of(id.as_ref())));
        let mut old = Self { topics: BTreeMap::new(), ids: BTreeMap::new() };
        for path in paths {
            let Some(text) = committed.text(&path) else { continue };
            let check = Check::new(path.clone(), TopicRef::parse(text), evidence);
            for block in check.all_blocks() {
                for id in block.ids() {
                    old.ids.entry(id.as_str()).or_insert_with(|| Place {
                        path: path.clone(),
                        number: block.number(),
                        older: block.is_older().then(|| block.body()),
                    });
                }
            }
            old.topics.insert(path, check);
        }
        old
    }

    /// A block as it was.
    fn block(&self, id: &str) -> Option<Block<'_, 'c>> {
        let place = self.ids.get(id)?;
        let check = self.topics.get(&place.path)?;
        match place.older {
            Some(body) => Block::older_at(check, place.number, body),
            None => Block::of_paragraph(check, place.number),
        }
    }

    /// What the targets of footnotes named that blocks of a topic cited in the topics they were in before.
    pub(super) fn recovered(
        &self,
        path: &TopicPath,
        topic: &TopicRef<'_>,
        evidence: &dyn Evidence,
    ) -> BTreeMap<String, Located> {
        let mut recovered = BTreeMap::new();
        let mut seen = BTreeSet::new();
        let ids = topic.paragraphs().flat_map(|paragraph| match paragraph.ending() {
            Ending::Ids { ids, .. } => ids,
            Ending::Plain if is_older(paragraph) => paragraph.citations().map(|citation| citation.label()).collect(),
            Ending::Unfit(_) | Ending::Plain => Vec::new(),
        });
        let mut met = BTreeSet::new();
        for id in ids {
            let Some(place) = self.ids.get(id.as_str()).filter(|place| place.path != *path) else { continue };
            // A block under many ids is one block.
            if !met.insert((&place.path, place.number, place.older.map(Part::start))) {
                continue;
            }
            let Some(block) = self.block(id.as_str()) else { continue };
            for footnote in block.footnotes() {
                if !seen.insert((&place.path, footnote.definition().label().as_str().to_owned())) {
                    continue;
                }
                for link in footnote.definition().links() {
                    let target = link.target().as_str().trim_matches(is_whitespace);
                    if let Some(located) = SourceTarget::parse(target).locate(&place.path, evidence) {
                        recovered.entry(target.to_owned()).or_insert(located);
                    }
                }
            }
        }
        recovered
    }
}

/// A fault, and where it stands: in the topic as it is given, or as it was.
struct Raw {
    reason: EditReason,
    path: TopicPath,
    given: bool,
    offset: usize,
    subject: String,
}

/// What an edit is judged by.
#[derive(Clone, Copy)]
pub(super) struct Scene<'j, 'c> {
    pub(super) edit: &'j Edit<'j>,
    pub(super) committed: &'c dyn Committed,
    pub(super) evidence: &'j dyn Evidence,
    pub(super) old: &'j Old<'c>,
    /// Where the block of an id is, once the edit is made.
    pub(super) place: &'j dyn Fn(&str) -> Option<TopicPath>,
}

/// A topic as it would be: its text, and where in the text that was given a byte of it comes from.
pub(super) struct Outcome<'j> {
    pub(super) path: &'j TopicPath,
    pub(super) text: &'j str,
    pub(super) origin: &'j dyn Fn(usize) -> usize,
}

/// The faults of an edit, as they come up.
pub(super) struct Judge<'j, 'c> {
    scene: Scene<'j, 'c>,
    unquoted: Vec<Raw>,
    topics: Vec<Raw>,
    gone: Vec<Raw>,
    links: Vec<Raw>,
    evidence: Vec<Raw>,
}

impl<'j, 'c> Judge<'j, 'c> {
    pub(super) fn new(scene: Scene<'j, 'c>) -> Self {
        Self {
            scene,
            unquoted: Vec::new(),
            topics: Vec::new(),
            gone: Vec::new(),
            links: Vec::new(),
            evidence: Vec::new(),
        }
    }

    /// A name for a quoted source that there is not, at this place of the topic as it is given.
    pub(super) fn unquoted(&mut self, path: &TopicPath, offset: usize, name: &str) {
        let subject = name.trim_matches(is_whitespace).to_owned();
        self.unquoted.push(Raw { reason: EditReason::MissingSource, path: path.clone(), given: true, offset, subject });
    }

    /// Judges a topic as it would be.
    pub(super) fn topic(&mut self, new: &Outcome<'_>) {
        let check = Check::new(new.path.clone(), TopicRef::parse(new.text), self.scene.evidence);
        let mut before = self.scene.old.topics.get(new.path).map(faults_of).unwrap_or_default();
        let mut contexts = Contexts::default();
        for fault in check.faults().iter().filter(|fault| fault.code.is_strict()) {
            let key = contexts.key(&check, fault);
            match before.get_mut(&key).filter(|count| **count > 0) {
                Some(count) => *count -= 1,
                None => {
                    let subject = check.subject(fault).to_owned();
                    self.topics.push(raw(EditReason::Topic(fault.code), new, fault.span.start, subject));
                }
            }
        }
        for (_, id) in check.names() {
            if self.is_elsewhere(new.path, id.as_str()) {
                let reason = EditReason::Topic(FaultCode::DuplicateBlockId);
                self.topics.push(raw(reason, new, id.start(), id.as_str().to_owned()));
            }
        }
        let mut problems = Problems::default();
        for block in check.all_blocks() {
            let old = block.ids().iter().find_map(|id| self.scene.old.block(id.as_str()));
            self.links(new, &block, old.as_ref());
            self.rests(new, &block, old.as_ref(), &mut problems);
        }
    }

    /// Whether an id that this topic would have would be in another one too, and was not before.
    fn is_elsewhere(&self, path: &TopicPath, id: &str) -> bool {
        let before = self.scene.committed.topics_of(id);
        let stays = |other: &&TopicPath| !self.scene.edit.topics.contains_key(*other);
        let elsewhere =
            before.iter().any(|other| stays(&other)) || (self.scene.place)(id).is_some_and(|first| first != *path);
        elsewhere && !(before.len() > 1 && before.contains(path))
    }

    fn links(&mut self, new: &Outcome<'_>, block: &Block<'_, '_>, old: Option<&Block<'_, '_>>) {
        let changed = old.is_none_or(|old| old.content() != block.content());
        for link in block.links() {
            let target = link.target();
            if changed && leads_to_topic(new.path, target.as_str()) && linked_block(target.as_str()).is_none() {
                let subject = format!("{} -> {}", new.path.below_topics(), target.as_str());
                self.links.push(raw(EditReason::TopicLinkWithoutBlock, new, target.start(), subject));
            }
            let Some(id) = linked_block(target.as_str()) else { continue };
            let broken = || changed || !self.scene.committed.topics_of(id).is_empty();
            if !self.scene.edit.mend && (self.scene.place)(id).is_none() && broken() {
                self.links.push(raw(EditReason::DanglingBlockLink, new, target.start(), id.to_owned()));
            }
        }
    }

    /// What a block newly rests on.
    fn rests(
        &mut self,
        new: &Outcome<'_>,
        block: &Block<'_, '_>,
        old: Option<&Block<'_, '_>>,
        problems: &mut Problems,
    ) {
        let mut before: Option<BTreeSet<SourceRef>> = None;
        for footnote in block.footnotes() {
            let label = footnote.definition().label();
            let found = problems.of(label.as_str(), || self.problems(footnote));
            if found.is_empty() {
                continue;
            }
            let same = |old: &Block<'_, '_>| old.footnotes().any(|one| evidence_of(one).eq(evidence_of(footnote)));
            if old.is_some_and(same) {
                continue;
            }
            let before =
                before.get_or_insert_with(|| old.into_iter().flat_map(|old| old.evidence().cloned()).collect());
            for problem in found.iter_mut().filter(|problem| !problem.told) {
                let source = footnote.sources().get(problem.source);
                let Some((source, evidence)) = source.and_then(|source| Some((source, source.evidence()?))) else {
                    continue;
                };
                if !before.contains(evidence) {
                    problem.told = true;
                    let at = source.link().target().start();
                    self.evidence.push(raw(problem.reason, new, at, evidence.to_string()));
                }
            }
        }
    }

    /// Why a block may not newly rest on the sources of a footnote.
    fn problems(&self, footnote: &Footnote<'_>) -> Vec<Problem> {
        let reason = |evidence: &SourceRef| match self.scene.evidence.look_up(evidence) {
            None => Some(EditReason::Topic(FaultCode::UnresolvedSource)),
            Some(kept) if !kept.trusted => Some(EditReason::UntrustedSource),
            Some(_) => {
                let offered = self.scene.edit.offered.as_ref().is_none_or(|offered| offered.contains(evidence));
                (!offered).then_some(EditReason::SourceNotOffered)
            }
        };
        let sources = footnote.sources().iter().enumerate();
        sources
            .filter_map(|(number, source)| {
                Some(Problem { source: number, reason: reason(source.evidence()?)?, told: false })
            })
            .collect()
    }

    /// Judges what disappears: blocks of the topics that the edit gives, and links to them in topics that it does not.
    pub(super) fn gone(&mut self) {
        let scene = self.scene;
        let mut broken: BTreeMap<TopicPath, BTreeSet<&str>> = BTreeMap::new();
        for (path, check) in scene.old.topics.iter().filter(|(path, _)| scene.edit.topics.contains_key(*path)) {
            for (_, id) in check.names().filter(|(_, id)| (scene.place)(id.as_str()).is_none()) {
                if !scene.edit.removed.contains(id.as_str()) {
                    self.gone.push(committed(EditReason::BlockIdRemoved, path, id.start(), id.as_str()));
                }
                for linking in scene.committed.linking_to(id.as_str()) {
                    if !scene.edit.topics.contains_key(&linking) {
                        broken.entry(linking).or_default().insert(id.as_str());
                    }
                }
            }
        }
        for (path, ids) in broken {
            let topic = TopicRef::parse(scene.committed.text(&path).unwrap_or_default());
            let links = topic.paragraphs().flat_map(|paragraph| links_of_text(paragraph.text()));
            for target in links.map(|link| link.target()) {
                if let Some(id) = linked_block(target.as_str()).filter(|id| ids.contains(id)) {
                    self.links.push(committed(EditReason::DanglingBlockLink, &path, target.start(), id));
                }
            }
        }
    }

    /// Every fault, each with its line and column.
    pub(super) fn finish(self, given: &BTreeMap<&TopicPath, &str>) -> Vec<EditFault> {
        let lists = [self.unquoted, self.topics, self.gone, self.links, self.evidence];
        let raws: Vec<Raw> = lists.into_iter().flatten().collect();
        let mut order: Vec<usize> = (0..raws.len()).collect();
        order.sort_by_key(|at| raws.get(*at).map(|raw| (&raw.path, raw.given, raw.offset)));
        let mut places = vec![(1, 1); raws.len()];
        let mut locator: Option<(&TopicPath, bool, Locator<'_>)> = None;
        for at in order {
            let Some(raw) = raws.get(at) else { continue };
            if locator.as_ref().is_none_or(|(path, given, _)| *path != &raw.path || *given != raw.given) {
                let text = match raw.given {
                    true => given.get(&raw.path).copied(),
                    false => self.scene.committed.text(&raw.path),
                };
                locator = Some((&raw.path, raw.given, Locator::new(text.unwrap_or_default())));
            }
            if let (Some((_, _, locator)), Some(place)) = (&mut locator, places.get_mut(at)) {
                *place = locator.locate(raw.offset);
            }
        }
        let fault = |(raw, (line, column)): (Raw, (usize, usize))| EditFault {
            reason: raw.reason,
            path: raw.path,
            line,
            column,
            subject: raw.subject,
        };
        raws.into_iter().zip(places).map(fault).collect()
    }
}

fn raw(reason: EditReason, new: &Outcome<'_>, offset: usize, subject: String) -> Raw {
    Raw { reason, path: new.path.clone(), given: true, offset: (new.origin)(offset), subject }
}

fn committed(reason: EditReason, path: &TopicPath, offset: usize, subject: &str) -> Raw {
    Raw { reason, path: path.clone(), given: false, offset, subject: subject.to_owned() }
}

fn evidence_of<'f>(footnote: &'f Footnote<'_>) -> impl Iterator<Item = Option<&'f SourceRef>> {
    footnote.sources().iter().map(|source| source.evidence())
}

/// Whether a link's target is a topic, by a relative path.
fn leads_to_topic(from: &TopicPath, target: &str) -> bool {
    let path = target.split(['#', '?']).next().unwrap_or_default();
    if path.is_empty() || has_scheme(target) {
        return false;
    }
    let path = decode(path).unwrap_or_else(|| path.to_owned());
    path.to_ascii_lowercase().ends_with(".md") && from.join(&path).is_some_and(|path| path.starts_with("topics/"))
}

/// Why a source of a footnote may not be newly rested on; told once, whoever cites it.
struct Problem {
    source: usize,
    reason: EditReason,
    told: bool,
}

/// The problems of a topic's footnotes, found once for each.
#[derive(Default)]
struct Problems(BTreeMap<String, Vec<Problem>>);

impl Problems {
    fn of(&mut self, label: &str, find: impl FnOnce() -> Vec<Problem>) -> &mut Vec<Problem> {
        if !self.0.contains_key(label) {
            self.0.insert(label.to_owned(), find());
        }
        self.0.entry(label.to_owned()).or_default()
    }
}

/// What makes two faults of one topic, before and after an edit, the same: what is wrong, about what, and in which paragraph
/// or definition.
type Key = Digest;

/// What faults stand in, each looked at once.
#[derive(Default)]
struct Contexts(BTreeMap<usize, Digest>);

impl Contexts {
    fn key(&mut self, check: &Check<'_>, fault: &Fault) -> Key {
        let topic = check.topic();
        let at = fault.span.start;
        let paragraphs = topic.placed();
        let number = paragraphs.partition_point(|placed| placed.paragraph.text().start() <= at).checked_sub(1);
        let paragraph = number.and_then(|number| Some((number, paragraphs.get(number)?.paragraph.text())));
        let context = match paragraph.filter(|(_, text)| at <= text.end()) {
            Some((number, text)) => *self.0.entry(number).or_insert_with(|| {
                // As it would be after an edit, which puts citations where they belong.
                Digest::of(collapse_whitespace(text.as_str()).replace(" [^", "[^").as_bytes())
            }),
            None => {
                let definitions = topic.definitions();
                let behind = definitions.partition_point(|definition| definition.label().start() <= at + 2);
                let label = behind.checked_sub(1).and_then(|number| definitions.get(number)).map(|one| one.label());
                Digest::of(label.map_or("", |label| label.as_str()).as_bytes())
            }
        };
        let mut key = Hasher::new();
        for part in [fault.code.as_str(), "\0", check.subject(fault), "\0"] {
            key.push(part.as_bytes());
        }
        key.push(&context.0);
        key.finish()
    }
}

/// How often each fault is in a topic.
fn faults_of(check: &Check<'_>) -> BTreeMap<Key, u32> {
    let mut contexts = Contexts::default();
    let mut faults = BTreeMap::new();
    for fault in check.faults() {
        *faults.entry(contexts.key(check, fault)).or_default() += 1;
    }
    faults
}
