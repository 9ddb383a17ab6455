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
            let mut check = Check::new(topic.path.clone(), TopicRef::parse(text), &records as &dyn Sources);
            let is_taken = |id: &str| records.block(id).is_some_and(|first| first < number);
            for found in topic_findings(&mut check, &|id| records.block(id).is_some(), &is_taken) {
                verifier.tell(Finding { path: Some(path.clone()), ..found });
            }
            blocks += check.blocks().count() as u64;
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::digest::Digest;
    use crate::ids::anchor_of;
    use crate::source::{Counts, EntryKind, Given, MARKER};

    /// What is said of these files, handed over in this order: code and path.
    fn said(given: Given, limits: &Limits, files: &[(&str, &str)]) -> (Vec<(String, String)>, Counts) {
        let mut verifier = Verifier::new(given, limits);
        let mut catalogue = Catalogue::new(limits.records_max);
        let mut topics = HandedTopics::new(limits);
        for (path, text) in files {
            let class = verifier.file(path, EntryKind::File);
            catalogue.file(path, class);
            if class == FileClass::Topic {
                topics.open(path, verifier.within(path, class));
            }
            for piece in text.as_bytes().chunks(7) {
                topics.push(piece);
                verifier.push_bytes(piece, &mut |path, record| {
                    catalogue.add(record);
                    topics.record(path, record);
                });
            }
            let outcome = verifier.end(&mut |path, record| {
                catalogue.add(record);
                topics.record(path, record);
            });
            catalogue.close(&outcome.expect("an open file"));
            topics.close();
        }
        topics.check(&catalogue, &mut verifier);
        let found = verifier.take_findings(usize::MAX).into_iter();
        let shown = found.map(|one| (one.code.to_owned(), one.path.unwrap_or_default())).collect();
        (shown, verifier.summary().counts)
    }

    fn archive() -> String {
        let anchor = anchor_of(&Digest::of(b"p/t/m1"));
        format!(
            "{MARKER}\n\n<a id=\"{anchor}\"></a>\n<!-- source-id:p/t/m1 -->\n<!-- record-lines:1 -->\n[2026-01-01] user: said\n"
        )
    }

    fn topic(id: &str, target: &str) -> String {
        format!("# T\n\nA claim.[^e-1] ^{id}\n\n[^e-1]: Time: `2026`; Sources: [x]({target})\n")
    }

    fn place() -> String {
        format!("../sources/p/_v2/t.md#{}", anchor_of(&Digest::of(b"p/t/m1")))
    }

    #[test]
    fn topics_may_come_before_what_they_cite() {
        let (archive, topic) = (archive(), topic("aaaa1111", &place()));
        let files = [("topics/a.md", topic.as_str()), ("sources/p/_v2/t.md", &archive)];
        let (found, counts) = said(Given::InWorkspace, &Limits::default(), &files);
        assert_eq!((found, counts.blocks), (Vec::new(), Some(1)));
        let without = said(Given::InWorkspace, &Limits::default(), &files[..1]);
        assert_eq!(without.0, [("unresolved-source".to_owned(), "topics/a.md".to_owned())]);
        assert_eq!(without.1.blocks, Some(0));
    }

    #[test]
    fn two_workspaces_have_nothing_to_do_with_each_other() {
        let (archive, good) = (archive(), topic("aaaa1111", &place()));
        let files = [
            ("w/one/topics/a.md", good.as_str()),
            ("w/one/topics/b.md", &good),
            ("w/two/topics/a.md", &good),
            ("w/one/sources/p/_v2/t.md", &archive),
            ("w/two/sources/p/_v2/u.md", ""),
        ];
        let (found, counts) = said(Given::InDirectory, &Limits::default(), &files);
        let expected = [
            ("empty-archive", "w/two/sources/p/_v2/u.md"),
            ("duplicate-block-id", "w/one/topics/b.md"),
            ("unresolved-source", "w/two/topics/a.md"),
        ];
        assert_eq!(found, expected.map(|(code, path)| (code.to_owned(), path.to_owned())));
        // Of two blocks with one id the first counts, and none whose evidence is not there.
        assert_eq!(counts.blocks, Some(1));
    }

    #[test]
    fn what_cannot_be_known_is_said_once() {
        let (archive, good) = (archive(), topic("aaaa1111", &place()));
        let other = topic("bbbb2222", &place());
        let alone = [("w/topics/a.md", good.as_str()), ("w/topics/b.md", &other)];
        let (found, counts) = said(Given::InDirectory, &Limits::default(), &alone);
        assert_eq!(found, [("citations-unchecked".to_owned(), "w/topics/a.md".to_owned())]);
        assert_eq!(counts.blocks, Some(2));

        let files = [("topics/a.md", good.as_str()), ("sources/p/_v2/t.md", &archive), ("topics/b.md", &other)];
        let few = Limits { records_max: 0, ..Limits::default() };
        assert_eq!(
            said(Given::InWorkspace, &few, &files).0,
            [("citations-unchecked".to_owned(), "topics/a.md".to_owned())]
        );
        // Room for one of the two; what does not fit takes none away.
        let small = Limits { topics_bytes: good.len() as u64, ..Limits::default() };
        let (found, counts) = said(Given::InWorkspace, &small, &files);
        assert_eq!(found, [("topic-unchecked".to_owned(), "topics/b.md".to_owned())]);
        assert_eq!(counts.blocks, Some(1));
    }
}
