//! Topics that are handed over among other files, in any order: they wait until all archives are known, and are checked then.
//!
//! Knows topics, what is kept of archives, and findings. Of archives nothing is kept here but which headers have no record; the
//! rest is in the [`Catalogue`]. Must not know who hands files over.

use core::cell::RefCell;
use core::cmp::Ordering;
use std::collections::BinaryHeap;

use super::topics::topic_findings;
use crate::ids::{SourceId, SourceRef, TopicPath, legacy_twin};
use crate::source::{
    Catalogue, FileClass, Finding, FindingCode, Key, LegacyKind, Limits, Listed, Numbers, RecordRef, Selection,
    Verifier, next_number,
};
use crate::topic::{Anything, Block, Check, Footnote, Met, Sources, TopicRef};

/// Records that are looked at together while a file's anchors are noted.
const RECORDS: usize = 1000;

/// First bytes of a [`Key`]: what it is of.
const ANCHOR: u8 = 0;
const NOTED: u8 = 1;
const BARE: u8 = 2;
const BLOCK: u8 = 3;

/// The texts of topics, as they come.
#[derive(Default)]
pub struct HandedTopics {
    room: u64,
    open: Option<(Handed, Vec<u8>)>,
    topics: BinaryHeap<Handed>,
    bare: Vec<SourceId>,
    /// Places in `bare`.
    numbers: Numbers,
    key: Key,
}

/// A topic that waits. Ordered by workspace, then by path.
#[derive(PartialEq, Eq)]
struct Handed {
    /// What its path begins with, up to its workspace.
    root: String,
    path: TopicPath,
    /// None: there was no room.
    text: Option<String>,
}

impl Ord for Handed {
    fn cmp(&self, other: &Self) -> Ordering {
        self.root.cmp(&other.root).then_with(|| self.path.cmp(&other.path))
    }
}

impl PartialOrd for Handed {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Topics that were checked, for whoever wants to see what they claim. Claims are read from the texts when they are asked for: a
/// footnote with many sources may be cited by many of them.
pub struct CheckedTopics {
    topics: Vec<Checked>,
    bare: Vec<SourceId>,
    state: RefCell<State>,
}

struct Checked {
    topic: Handed,
    /// Its place among the topics.
    number: u32,
    /// Which records there are is not known: links are taken for good.
    assumes: bool,
    /// Sound blocks that count.
    claims: u64,
}

struct State {
    numbers: Numbers,
    key: Key,
}

/// A sound block of a topic that was handed over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HandedClaim {
    /// Counted from 0, in the order of the topics' paths.
    pub number: u64,
    /// The topic, as its path was given.
    pub path: String,
    /// The line it begins in, from 1.
    pub line: u64,
    /// Its own id.
    pub block: String,
    /// What it claims: see [`Block::content`].
    pub text: String,
    /// Its first time as it is written; none if it is undated.
    pub time: Option<String>,
    /// What it rests on, each once, in order; at most [`HandedClaim::GROUNDS_MAX`].
    pub grounds: Vec<Ground>,
    /// How much more it rests on.
    pub grounds_left_out: u64,
}

impl HandedClaim {
    /// How many grounds a claim is shown with, at most.
    pub const GROUNDS_MAX: usize = 100;
}

/// Something a claim rests on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ground {
    /// The record's id, or its reference; the link's target where it was not asked which records there are.
    pub name: String,
    /// The record; none: it was not handed over, or only its header was.
    pub found: Option<Listed>,
}

impl HandedTopics {
    /// None yet.
    #[must_use]
    pub fn new(limits: &Limits) -> Self {
        Self { room: limits.topics_bytes, ..Self::default() }
    }

    /// The file at `path` is open; `within` is what of it is the path in its workspace. What no topic can be called is none.
    pub fn open(&mut self, path: &str, within: &str) {
        let root = path.strip_suffix(within).unwrap_or_default().to_owned();
        self.open =
            TopicPath::parse(within).ok().map(|path| (Handed { root, path, text: Some(String::new()) }, Vec::new()));
    }

    /// The next piece of the open topic, if one is open.
    pub fn push(&mut self, bytes: &[u8]) {
        let Some((topic, kept)) = &mut self.open else { return };
        match self.room.checked_sub(bytes.len() as u64) {
            Some(room) if topic.text.is_some() => {
                self.room = room;
                kept.extend_from_slice(bytes);
            }
            _ => {
                topic.text = None;
                self.room += core::mem::take(kept).len() as u64;
            }
        }
    }

    /// The open topic is over; one that could not be read, or is not UTF-8, was told of as a file.
    pub fn close(&mut self) {
        let Some((mut topic, kept)) = self.open.take() else { return };
        if topic.text.is_some() {
            topic.text = match String::from_utf8(kept) {
                Ok(text) => Some(text),
                Err(_) => return,
            };
        }
        self.topics.push(topic);
    }

    /// The open file does not count.
    pub fn drop_open(&mut self) {
        self.open = None;
    }

    /// What a scanner showed of the file at `path`: of a header without a record, the catalogue does not know.
    pub fn record(&mut self, path: &str, record: RecordRef<'_>) {
        if let RecordRef::Legacy(legacy) = record
            && legacy.kind == LegacyKind::Bare
            && let Ok(id) = SourceId::parse(legacy.id)
        {
            let number = next_number(self.bare.len());
            self.numbers.insert(self.key.set(&[BARE], &[path, legacy.anchor]).into(), number);
            self.bare.push(id);
        }
    }

    /// All files came: tells `verifier` what is wrong with topics, and how many sound blocks they have.
    #[must_use]
    pub fn check(self, catalogue: &Catalogue, verifier: &mut Verifier) -> CheckedTopics {
        let state = State { numbers: self.numbers, key: self.key };
        let mut checked = CheckedTopics {
            topics: (0..)
                .zip(self.topics.into_sorted_vec())
                .map(|(number, topic)| Checked { topic, number, assumes: false, claims: 0 })
                .collect(),
            bare: self.bare,
            state: RefCell::new(state),
        };
        // Which topic has an id first. What is wrong with it does not matter yet.
        for Checked { topic, number, .. } in &checked.topics {
            let Some(text) = &topic.text else { continue };
            let check = Check::new(topic.path.clone(), TopicRef::parse(text), &() as &dyn Sources);
            for (_, id) in check.names() {
                checked.state.borrow_mut().set(BLOCK, &[&topic.root, id.as_str()], *number);
            }
        }
        let mut blocks = 0;
        let mut topics = core::mem::take(&mut checked.topics);
        let mut before: Option<(&str, bool)> = None;
        for Checked { topic, number, assumes, claims } in &mut topics {
            let topic = &*topic;
            let path = topic.given();
            let Some(text) = &topic.text else {
                verifier.tell(unchecked(FindingCode::TopicUnchecked, path, Limits::TOPICS_BYTES, NO_ROOM));
                continue;
            };
            *assumes = match before {
                Some((root, assumes)) if root == topic.root => assumes,
                _ => {
                    let reason = why_not(catalogue, verifier, &topic.root);
                    if let Some((subject, why)) = reason {
                        let found = unchecked(FindingCode::CitationsUnchecked, path.clone(), subject, why);
                        verifier.tell(found);
                    }
                    reason.is_some()
                }
            };
            before = Some((&topic.root, *assumes));
            let records = Records { catalogue, topics: &checked, root: &topic.root, assumes: *assumes };
            let mut check = Check::new(topic.path.clone(), TopicRef::parse(text), &records as &dyn Sources);
            blocks += check.blocks().count() as u64;
            check.yield_to(&|id| records.is_taken(id, *number));
            *claims = check.blocks().count() as u64;
            for found in topic_findings(check, &|id| records.block(id).is_some(), &|_| false) {
                verifier.tell(Finding { path: Some(path.clone()), ..found });
            }
        }
        checked.topics = topics;
        verifier.count_blocks(blocks);
        checked
    }
}

impl CheckedTopics {
    /// Claims from number `from` on, at most `max`. Costs time in proportion to the topics that have them.
    #[must_use]
    pub fn claims(&self, catalogue: &Catalogue, from: u64, max: usize) -> Vec<HandedClaim> {
        let mut claims = Vec::new();
        let mut first = 0;
        for Checked { topic, number, assumes, claims: here } in &self.topics {
            let start = first;
            first += here;
            let Some(text) = topic.text.as_ref().filter(|_| first > from && claims.len() < max) else { continue };
            let records = Records { catalogue, topics: self, root: &topic.root, assumes: *assumes };
            let mut check = Check::new(topic.path.clone(), TopicRef::parse(text), &records as &dyn Sources);
            check.yield_to(&|id| records.is_taken(id, *number));
            for (number, block) in (start..).zip(check.blocks()).filter(|(number, _)| *number >= from) {
                if claims.len() == max {
                    break;
                }
                claims.push(records.claim(number, topic.given(), &block));
            }
        }
        claims
    }
}

impl Handed {
    /// Its path, as it was given.
    fn given(&self) -> String {
        [&self.root, self.path.as_str()].concat()
    }
}

/// Why it cannot be asked whether the records of the workspace at `root` are there: what it is about, and in words.
fn why_not(catalogue: &Catalogue, verifier: &Verifier, root: &str) -> Option<(&'static str, &'static str)> {
    if catalogue.dropped() > 0 {
        return Some((Limits::RECORDS_MAX, TOO_MANY));
    }
    let is_archive = |class| matches!(class, FileClass::Archive | FileClass::OlderArchive);
    let files = catalogue.files(0, usize::MAX);
    let is_any = files.iter().any(|file| is_archive(file.class) && file.path.starts_with(root));
    (!verifier.is_of_workspace() && !is_any).then_some(("sources", NO_ARCHIVES))
}

const NO_ROOM: &str = "there was no room to keep this topic until all archives are known, so it was not checked";
const TOO_MANY: &str = "there are more records than are kept, so it was not asked whether links lead to evidence";
const NO_ARCHIVES: &str = "no archive came with the topics, so it was not asked whether links lead to evidence. Give the workspace as a whole";

fn unchecked(code: FindingCode, path: String, subject: &str, why: &str) -> Finding {
    Finding {
        code: code.as_str(),
        severity: code.severity(),
        path: Some(path),
        line: None,
        subject: Some(subject.to_owned()),
        excerpt: None,
        message: why.to_owned(),
    }
}

impl State {
    fn get(&mut self, kind: u8, texts: &[&str]) -> Option<u32> {
        self.numbers.get(self.key.set(&[kind], texts)).copied()
    }

    /// Notes a number, unless there is one; whether there was none.
    fn set(&mut self, kind: u8, texts: &[&str], number: u32) -> bool {
        let key = self.key.set(&[kind], texts);
        let is_new = !self.numbers.contains_key(key);
        if is_new {
            self.numbers.insert(key.into(), number);
        }
        is_new
    }
}

/// The records of the workspace at `root`, found by file and anchor. The anchors of a file are noted when it is first asked for.
struct Records<'c> {
    catalogue: &'c Catalogue,
    topics: &'c CheckedTopics,
    root: &'c str,
    assumes: bool,
}

impl Records<'_> {
    /// The first topic with a block of that id.
    fn block(&self, id: &str) -> Option<u32> {
        self.topics.state.borrow_mut().get(BLOCK, &[self.root, id])
    }

    /// Whether a topic before that one has a block of that id.
    fn is_taken(&self, id: &str, number: u32) -> bool {
        self.block(id).is_some_and(|first| first < number)
    }

    fn find(&self, path: &str, anchor: &str) -> Option<Listed> {
        let path = [self.root, path].concat();
        let state = &mut *self.topics.state.borrow_mut();
        let file = self.catalogue.file_number(&path)?;
        if state.set(NOTED, &[&path], file) {
            let mut from = 0;
            loop {
                let records = self.catalogue.records(Selection::File(file), from, RECORDS);
                let Some(last) = records.last() else { break };
                from = last.number + 1;
                for Listed { number, record, .. } in records {
                    state.set(ANCHOR, &[&path, &record.anchor], u32::try_from(number).unwrap_or(u32::MAX));
                }
            }
        }
        let number = state.get(ANCHOR, &[&path, anchor])?;
        self.catalogue.records(Selection::All, number.into(), 1).pop()
    }

    fn claim(&self, number: u64, path: String, block: &Block<'_, '_>) -> HandedClaim {
        let mut seen = Met::default();
        let (mut grounds, mut grounds_left_out) = (Vec::new(), 0);
        for source in block.footnotes().flat_map(Footnote::sources) {
            let evidence = source.evidence().filter(|_| !self.assumes);
            let name = evidence.map_or(source.link().target().as_str(), SourceRef::as_str);
            if !seen.insert(name) {
                continue;
            }
            if grounds.len() == HandedClaim::GROUNDS_MAX {
                grounds_left_out += 1;
                continue;
            }
            grounds.push(Ground { name: name.to_owned(), found: evidence.and_then(|evidence| self.look_up(evidence)) });
        }
        HandedClaim {
            number,
            path,
            line: block.paragraph().lump().line() as u64,
            block: block.identity().as_str().to_owned(),
            text: block.content(),
            time: block.footnotes().find_map(Footnote::dated).map(str::to_owned),
            grounds,
            grounds_left_out,
        }
    }

    /// The record that counts: of two with one id, that of the v2 archive.
    fn look_up(&self, evidence: &SourceRef) -> Option<Listed> {
        match evidence {
            SourceRef::Record(id) => {
                let (path, anchor) = (id.v2_path(), id.anchor());
                self.find(&path, &anchor).or_else(|| self.find(&legacy_twin(&path)?, &anchor))
            }
            SourceRef::Turn(turn) => self.find(&turn.path(), &turn.anchor()),
        }
    }
}

impl Sources for Records<'_> {
    fn record_at(&self, path: &str, anchor: &str) -> Option<SourceId> {
        if self.assumes {
            return Anything.record_at(path, anchor);
        }
        if let Some(listed) = self.find(path, anchor) {
            return SourceId::parse(&listed.record.id).ok();
        }
        let number = self.topics.state.borrow_mut().get(BARE, &[&[self.root, path].concat(), anchor])?;
        self.topics.bare.get(number as usize).cloned()
    }
}
