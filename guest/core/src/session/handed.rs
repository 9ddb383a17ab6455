//! Topics that are handed over among other files, in any order: they wait until all archives are known, and are checked then.
//!
//! Knows topics, what is kept of archives, and findings. Of archives nothing is kept here but which headers have no record; the
//! rest is in the [`Catalogue`]. Must not know who hands files over.

use core::cell::RefCell;
use core::cmp::Ordering;
use std::collections::BinaryHeap;

use super::topics::topic_findings;
use crate::ids::{SourceId, TopicPath};
use crate::source::{
    Catalogue, FileClass, Finding, FindingCode, Key, LegacyKind, Limits, Listed, Numbers, RecordRef, Selection,
    Verifier, next_number,
};
use crate::topic::{Anything, Check, Sources, TopicRef};

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

struct State {
    numbers: Numbers,
    key: Key,
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
    pub fn check(self, catalogue: &Catalogue, verifier: &mut Verifier) {
        let topics = self.topics.into_sorted_vec();
        let mut records = Records {
            catalogue,
            bare: &self.bare,
            state: RefCell::new(State { numbers: self.numbers, key: self.key }),
            root: "",
            assumes: false,
        };
        // Which topic has an id first. What is wrong with it does not matter yet.
        for (number, topic) in (0..).zip(&topics) {
            let Some(text) = &topic.text else { continue };
            let check = Check::new(topic.path.clone(), TopicRef::parse(text), &() as &dyn Sources);
            for (_, id) in check.names() {
                records.state.get_mut().set(BLOCK, &[&topic.root, id.as_str()], number);
            }
        }
        let mut blocks = 0;
        let mut root = None;
        for (number, topic) in (0..).zip(&topics) {
            let path = topic.given();
            let Some(text) = &topic.text else {
                verifier.tell(unchecked(FindingCode::TopicUnchecked, path, Limits::TOPICS_BYTES, NO_ROOM));
                continue;
            };
            if root.replace(&topic.root) != Some(&topic.root) {
                let reason = why_not(catalogue, verifier, &topic.root);
                records.root = &topic.root;
                records.assumes = reason.is_some();
                if let Some((subject, why)) = reason {
                    verifier.tell(unchecked(FindingCode::CitationsUnchecked, path.clone(), subject, why));
                }
            }
            let check = Check::new(topic.path.clone(), TopicRef::parse(text), &records as &dyn Sources);
            blocks += check.blocks().count() as u64;
            let is_taken = |id: &str| records.block(id).is_some_and(|first| first < number);
            for found in topic_findings(check, &|id| records.block(id).is_some(), &is_taken) {
                verifier.tell(Finding { path: Some(path.clone()), ..found });
            }
        }
        verifier.count_blocks(blocks);
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
    bare: &'c [SourceId],
    state: RefCell<State>,
    root: &'c str,
    /// Which records there are is not known: links are taken for good.
    assumes: bool,
}

impl Records<'_> {
    /// The first topic with a block of that id.
    fn block(&self, id: &str) -> Option<u32> {
        self.state.borrow_mut().get(BLOCK, &[self.root, id])
    }

    /// The number of the record there.
    fn find(&self, path: &str, anchor: &str) -> Option<u64> {
        let path = [self.root, path].concat();
        let state = &mut *self.state.borrow_mut();
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
        state.get(ANCHOR, &[&path, anchor]).map(u64::from)
    }
}

impl Sources for Records<'_> {
    fn record_at(&self, path: &str, anchor: &str) -> Option<SourceId> {
        if self.assumes {
            return Anything.record_at(path, anchor);
        }
        if let Some(number) = self.find(path, anchor) {
            let listed = self.catalogue.records(Selection::All, number, 1).pop()?;
            return SourceId::parse(&listed.record.id).ok();
        }
        let number = self.state.borrow_mut().get(BARE, &[&[self.root, path].concat(), anchor])?;
        self.bare.get(number as usize).cloned()
    }
}
