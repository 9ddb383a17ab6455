//! What is known of one topic, and how it is written.
//!
//! Counts are written seven bits a byte, the lowest first. A name is its length as a count, and its text.
//!
//! ```text
//! 32  digest of the file
//! 1   flags: 1 it is text; 2 no fault for which a strict reading refuses it
//! n   references: count; each kind (1) and name: 0 a record, in the v2 archive it belongs to; 1 in the older archive;
//!     2 a handle, which leads to no file; 3 a record at a path (name) and anchor (name) that its id does not give
//! n   places without a record: count; each path (name) and anchor (name)
//! n   times: count; each name and a check (8) over all that the topic says of the time
//! n   labels of definitions: count; each a name
//! n   ids of blocks that links name: count; each a name
//! n   paragraphs that have ids: count; each flags (1: 1 sound) and blocks: count; each of three lists, a count first:
//!     names of ids; numbers of links; numbers of references
//! ```

use super::super::bytes::{Check, Reader, check, put_count, put_counted_text};
use crate::digest::{Digest, FileHasher};
use crate::ids::{BlockId, EvidenceTime, SourceId, SourceRef, TopicPath};
use crate::topic::{Check as Looked, Item, Items, Sources, TopicRef};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

const IS_TEXT: u8 = 1;
const IS_SOUND: u8 = 2;

const IN_V2: u8 = 0;
const IN_OLDER: u8 = 1;
const HANDLE: u8 = 2;
const ELSEWHERE: u8 = 3;

/// What is found out of one topic at one time, to be kept in a [`TopicTable`](super::TopicTable).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopicNote {
    pub(super) path: TopicPath,
    /// None: there is no such topic.
    pub(super) body: Option<Vec<u8>>,
}

impl TopicNote {
    /// Of a topic's text; `sources` answers for the archives as they are.
    pub fn read(path: &TopicPath, text: &str, sources: &dyn Sources) -> Self {
        let recorder = Recorder { sources, answers: RefCell::default() };
        let looked = Looked::new(path.clone(), TopicRef::parse(text), &recorder);
        Self {
            path: path.clone(),
            body: Some(write(&looked, digest_of(text.as_bytes()), recorder.answers.into_inner())),
        }
    }

    /// Of a topic that is not UTF-8: it has no blocks.
    pub fn unreadable(path: &TopicPath, digest: Digest) -> Self {
        let mut body = digest.0.to_vec();
        body.extend_from_slice(&[0; 7]);
        Self { path: path.clone(), body: Some(body) }
    }

    /// Of a topic that is no longer there.
    pub fn gone(path: &TopicPath) -> Self {
        Self { path: path.clone(), body: None }
    }

    /// The topic it is about.
    pub fn path(&self) -> &TopicPath {
        &self.path
    }

    /// What it says; none if the topic is gone.
    pub fn entry(&self) -> Option<TopicEntry<'_>> {
        TopicEntry::read(self.body.as_deref()?)
    }
}

fn digest_of(bytes: &[u8]) -> Digest {
    let mut hasher = FileHasher::new();
    hasher.push(bytes);
    hasher.finish().root
}

/// Hands questions on and keeps what was answered.
struct Recorder<'s> {
    sources: &'s dyn Sources,
    answers: RefCell<BTreeMap<(String, String), Option<SourceId>>>,
}

impl Sources for Recorder<'_> {
    fn record_at(&self, path: &str, anchor: &str) -> Option<SourceId> {
        let key = (path.to_owned(), anchor.to_owned());
        if let Some(known) = self.answers.borrow().get(&key) {
            return known.clone();
        }
        let answer = self.sources.record_at(path, anchor);
        self.answers.borrow_mut().insert(key, answer.clone());
        answer
    }
}

/// What is said once of many blocks: each gets a number.
#[derive(Default)]
struct Numbered<'a> {
    numbers: BTreeMap<&'a str, usize>,
    names: Vec<&'a str>,
}

impl<'a> Numbered<'a> {
    fn number(&mut self, name: &'a str) -> usize {
        *self.numbers.entry(name).or_insert_with(|| {
            self.names.push(name);
            self.names.len() - 1
        })
    }

    fn write(&self, out: &mut Vec<u8>) {
        put_count(out, self.names.len());
        self.names.iter().for_each(|name| put_counted_text(out, name));
    }
}

fn write(looked: &Looked<'_>, digest: Digest, answers: BTreeMap<(String, String), Option<SourceId>>) -> Vec<u8> {
    let mut out = digest.0.to_vec();
    out.push(if looked.first_strict().is_none() { IS_TEXT | IS_SOUND } else { IS_TEXT });

    let mut refs = Numbered::default();
    let mut written = Vec::new();
    for ((path, anchor), id) in &answers {
        let Some(id) = id else { continue };
        refs.number(id.as_str());
        let usual = id.anchor() == *anchor;
        let kind = if usual && id.v2_path() == *path {
            IN_V2
        } else if usual && id.legacy_path() == *path {
            IN_OLDER
        } else {
            ELSEWHERE
        };
        written.push((kind, id.as_str(), path, anchor));
    }
    // A record that two places lead to stands there twice, and has the number of the first.
    let mut numbers: BTreeMap<&str, usize> = BTreeMap::new();
    for (number, (_, name, ..)) in written.iter().enumerate() {
        numbers.entry(name).or_insert(number);
    }
    let sources = looked.footnotes().iter().flat_map(|footnote| footnote.sources());
    let mut handles = Vec::new();
    for name in sources.filter_map(|source| source.evidence()).map(SourceRef::as_str) {
        let next = written.len() + handles.len();
        numbers.entry(name).or_insert_with(|| {
            handles.push(name);
            next
        });
    }
    put_count(&mut out, written.len() + handles.len());
    for (kind, name, path, anchor) in &written {
        out.push(*kind);
        put_counted_text(&mut out, name);
        if *kind == ELSEWHERE {
            put_counted_text(&mut out, path);
            put_counted_text(&mut out, anchor);
        }
    }
    for name in &handles {
        out.push(HANDLE);
        put_counted_text(&mut out, name);
    }

    let missing: Vec<_> = answers.iter().filter(|(_, id)| id.is_none()).map(|(place, _)| place).collect();
    put_count(&mut out, missing.len());
    for (path, anchor) in missing {
        put_counted_text(&mut out, path);
        put_counted_text(&mut out, anchor);
    }

    let mut places: BTreeMap<&str, usize> = BTreeMap::new();
    for (place, (_, id)) in looked.names().enumerate() {
        // Of two with one id, the first counts.
        places.entry(id.as_str()).or_insert(place);
    }
    let times = times_of(looked);
    put_count(&mut out, times.len());
    for (time, Said { text, rows }) in &times {
        put_counted_text(&mut out, &time.to_string());
        out.extend_from_slice(&check(&[text]));
        put_count(&mut out, rows.len());
        for (source, id) in rows {
            let source = source.as_ref().and_then(|source| numbers.get(source.as_str()));
            put_count(&mut out, source.map_or(0, |number| number + 1));
            put_count(&mut out, places.get(id.as_str()).copied().unwrap_or_default());
        }
    }

    let mut labels = Numbered::default();
    for item in Items::new(looked.topic().text()) {
        match item {
            Item::Definition(definition) => {
                labels.number(definition.label().as_str());
            }
            Item::Fence(fence) => {
                for definition in fence.definitions() {
                    labels.number(definition.label().as_str());
                }
            }
            Item::Blank(_) | Item::Heading(_) | Item::Comment(_) | Item::Paragraph(_) => {}
        }
    }
    labels.write(&mut out);

    let mut links = Numbered::default();
    for id in looked.topic().paragraphs().flat_map(|paragraph| paragraph.linked_blocks()) {
        links.number(id);
    }
    links.write(&mut out);
    write_paragraphs(looked, &links, &numbers, &mut out);
    out
}

/// What a topic says of a time.
#[derive(Default)]
struct Said {
    /// All of it, in order, so that it can be told whether it changed.
    text: Vec<u8>,
    /// What its rows go by: the first source, and the unit's id.
    rows: Vec<(Option<SourceRef>, BlockId)>,
}

fn times_of(looked: &Looked<'_>) -> BTreeMap<EvidenceTime, Said> {
    let mut times: BTreeMap<EvidenceTime, Said> = BTreeMap::new();
    for unit in looked.blocks().flat_map(|block| block.units(0)) {
        for piece in unit.dated() {
            let Said { text: said, rows } = times.entry(piece.when).or_default();
            rows.push((piece.refs.first().cloned(), unit.id.clone()));
            put_counted_text(said, unit.id.as_str());
            put_counted_text(said, piece.quote);
            for list in [piece.labels, piece.links] {
                put_count(said, list.len());
                list.iter().for_each(|text| put_counted_text(said, text));
            }
            put_count(said, piece.refs.len());
            piece.refs.iter().for_each(|one| put_counted_text(said, one.as_str()));
        }
    }
    times
}

fn write_paragraphs(looked: &Looked<'_>, links: &Numbered<'_>, refs: &BTreeMap<&str, usize>, out: &mut Vec<u8>) {
    let mut paragraphs: Vec<(usize, Vec<u8>, usize)> = Vec::new();
    for block in looked.all_blocks() {
        if paragraphs.last().is_none_or(|(number, ..)| *number != block.number()) {
            paragraphs.push((block.number(), Vec::new(), 0));
        }
        let Some((_, out, blocks)) = paragraphs.last_mut() else { continue };
        *blocks += 1;
        put_count(out, block.ids().len());
        block.ids().iter().for_each(|id| put_counted_text(out, id.as_str()));
        let relations = block.relations();
        let numbers: Vec<usize> = relations.iter().filter_map(|id| links.numbers.get(id.as_str()).copied()).collect();
        put_numbers(out, &numbers);
        let numbers: Vec<usize> = block.evidence().filter_map(|one| refs.get(one.as_str()).copied()).collect();
        put_numbers(out, &numbers);
    }
    put_count(out, paragraphs.len());
    for (number, written, blocks) in paragraphs {
        out.push(u8::from(looked.is_sound(number)));
        put_count(out, blocks);
        out.extend_from_slice(&written);
    }
}

fn put_numbers(out: &mut Vec<u8>, numbers: &[usize]) {
    put_count(out, numbers.len());
    numbers.iter().for_each(|number| put_count(out, *number));
}

/// A name, and where it stands in what was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Name<'b> {
    pub(super) text: &'b str,
    pub(super) at: usize,
}

/// A reference of a topic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ref<'b> {
    pub(super) name: Name<'b>,
    kind: u8,
    /// Path and anchor of one that is elsewhere.
    place: (&'b str, &'b str),
}

impl Ref<'_> {
    /// Where its record is looked for: the archive's path and the anchor. None: a handle.
    pub(super) fn place(&self) -> Option<(String, String)> {
        match self.kind {
            HANDLE => None,
            ELSEWHERE => Some((self.place.0.to_owned(), self.place.1.to_owned())),
            kind => {
                let id = SourceId::parse(self.name.text).ok()?;
                let path = if kind == IN_V2 { id.v2_path() } else { id.legacy_path() };
                Some((path, id.anchor()))
            }
        }
    }

    /// The same without the anchor, which costs a hash.
    pub(super) fn archive(&self) -> Option<String> {
        match self.kind {
            HANDLE => None,
            ELSEWHERE => Some(self.place.0.to_owned()),
            kind => {
                let id = SourceId::parse(self.name.text).ok()?;
                Some(if kind == IN_V2 { id.v2_path() } else { id.legacy_path() })
            }
        }
    }

    /// What all records of the same archive share, if that is told by the id.
    pub(super) fn conversation(&self) -> Option<(u8, &str)> {
        let mut slashes = self.name.text.match_indices('/');
        let (end, _) = slashes.nth(1)?;
        (self.kind == IN_V2 || self.kind == IN_OLDER).then_some((self.kind, self.name.text.get(..end)?))
    }
}

/// What is known of one topic.
#[derive(Clone, Debug)]
pub struct TopicEntry<'b> {
    digest: Digest,
    flags: u8,
    pub(super) refs: Vec<Ref<'b>>,
    pub(super) missing: Vec<(&'b str, &'b str)>,
    pub(super) times: Vec<KnownTime<'b>>,
    /// Rows of times, one behind the other: the reference's number and 1, or 0 without one; the unit's place among the ids.
    rows: Vec<(usize, usize)>,
    pub(super) labels: Vec<Name<'b>>,
    pub(super) links: Vec<Name<'b>>,
    /// Ids of blocks, one behind the other.
    pub(super) ids: Vec<Name<'b>>,
    /// Numbers of links and references, one behind the other.
    numbers: Vec<usize>,
    blocks: Vec<BlockEntry>,
}

/// A time, a check over all that is said of it, and its rows.
#[derive(Clone, Copy, Debug)]
pub(super) struct KnownTime<'b> {
    pub(super) name: Name<'b>,
    said: Check,
    rows: (usize, usize),
}

/// A row of a timeline file, as much of it as decides where it stands there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KnownRow<'b> {
    /// The first source it rests on, by name.
    pub source: Option<&'b str>,
    /// The unit's id.
    pub id: &'b str,
    /// Its place among the ids of the topic.
    pub place: usize,
}

/// A block: what is its own in the lists of its topic. Each begins where the one before ends.
#[derive(Clone, Copy, Debug)]
struct BlockEntry {
    paragraph: usize,
    sound: bool,
    ids: (usize, usize),
    links: (usize, usize),
    refs: (usize, usize),
}

fn within<T>(list: &[T], (start, end): (usize, usize)) -> &[T] {
    list.get(start..end).unwrap_or_default()
}

/// A block of a topic.
#[derive(Clone, Copy, Debug)]
pub struct KnownBlock<'e, 'b> {
    entry: &'e TopicEntry<'b>,
    block: BlockEntry,
}

impl<'e, 'b> KnownBlock<'e, 'b> {
    /// Its ids, its own last.
    pub fn ids(&self) -> impl Iterator<Item = &'b str> + use<'e, 'b> {
        within(&self.entry.ids, self.block.ids).iter().map(|name| name.text)
    }

    /// Which of the topic's paragraphs that have ids it stands in. Blocks of the older kind share one.
    pub fn paragraph(&self) -> usize {
        self.block.paragraph
    }

    /// Whether it is sound, as far as its own topic goes.
    pub fn is_sound(&self) -> bool {
        self.block.sound
    }

    /// The blocks its links name, each once, in order.
    pub fn links(&self) -> impl Iterator<Item = &'b str> + use<'e, 'b> {
        let entry = self.entry;
        let numbers = within(&entry.numbers, self.block.links).iter();
        numbers.filter_map(|number| entry.links.get(*number).map(|name| name.text))
    }

    /// What it rests on, each once, in order.
    pub fn refs(&self) -> impl Iterator<Item = &'b str> + use<'e, 'b> {
        let entry = self.entry;
        let numbers = within(&entry.numbers, self.block.refs).iter();
        numbers.filter_map(|number| entry.refs.get(*number).map(|one| one.name.text))
    }
}

impl<'b> TopicEntry<'b> {
    /// Reads what a note wrote; none if it is not that.
    pub(super) fn read(body: &'b [u8]) -> Option<Self> {
        let mut reader = Cursor { reader: Reader(body), length: body.len() };
        let digest = Digest(reader.reader.array()?);
        let [flags] = reader.reader.array::<1>()?;
        let refs = reader.list(|reader| {
            let [kind] = reader.reader.array::<1>()?;
            let name = reader.name()?;
            let place = match kind {
                IN_V2 | IN_OLDER | HANDLE => ("", ""),
                ELSEWHERE => (reader.name()?.text, reader.name()?.text),
                _ => return None,
            };
            Some(Ref { name, kind, place })
        })?;
        let missing = reader.list(|reader| Some((reader.name()?.text, reader.name()?.text)))?;
        let (mut times, mut rows) = (Vec::new(), Vec::new());
        for _ in 0..reader.reader.count()? {
            let (name, said) = (reader.name()?, reader.reader.array()?);
            let here = reader.append(&mut rows, |reader| Some((reader.reader.count()?, reader.reader.count()?)))?;
            times.push(KnownTime { name, said, rows: here });
        }
        let labels = reader.list(Cursor::name)?;
        let links = reader.list(Cursor::name)?;
        let (mut ids, mut numbers, mut blocks) = (Vec::new(), Vec::new(), Vec::new());
        for paragraph in 0..reader.reader.count()? {
            let sound = reader.reader.array::<1>()? == [1];
            for _ in 0..reader.reader.count()? {
                let ids = reader.append(&mut ids, Cursor::name)?;
                let links = reader.append(&mut numbers, |reader| reader.reader.count())?;
                let refs = reader.append(&mut numbers, |reader| reader.reader.count())?;
                blocks.push(BlockEntry { paragraph, sound, ids, links, refs });
            }
        }
        reader.reader.end()?;
        Some(Self { digest, flags, refs, missing, times, rows, labels, links, ids, numbers, blocks })
    }

    /// The digest of the file it is about.
    pub fn digest(&self) -> Digest {
        self.digest
    }

    /// Whether the file is UTF-8.
    pub fn is_text(&self) -> bool {
        self.flags & IS_TEXT != 0
    }

    /// Whether a strict reading takes it, as far as the topic alone goes.
    pub fn is_sound(&self) -> bool {
        self.flags & IS_SOUND != 0
    }

    /// Its blocks, sound or not, in order.
    pub fn blocks<'e>(&'e self) -> impl Iterator<Item = KnownBlock<'e, 'b>> {
        self.blocks.iter().map(move |block| KnownBlock { entry: self, block: *block })
    }

    /// Every id in it, blocks' and older ones', sound or not, in order; one that comes twice, twice.
    pub fn ids(&self) -> impl Iterator<Item = &'b str> {
        self.ids.iter().map(|id| id.text)
    }

    /// The times of its sound blocks' evidence, ascending, each with a check over all that it says of the time.
    pub fn times(&self) -> impl Iterator<Item = (EvidenceTime, [u8; 8])> {
        self.times.iter().filter_map(|time| Some((EvidenceTime::parse(time.name.text)?, time.said)))
    }

    /// The rows that its sound blocks have in the file of a time (`YYYY`, `YYYY-MM` or `YYYY-MM-DD`), in order.
    pub fn rows_at(&self, time: &str) -> impl Iterator<Item = KnownRow<'b>> {
        let known = self.times.iter().find(|known| known.name.text == time);
        known.into_iter().flat_map(|known| within(&self.rows, known.rows)).filter_map(|(source, place)| {
            let source = match source.checked_sub(1) {
                Some(number) => Some(self.refs.get(number)?.name.text),
                None => None,
            };
            Some(KnownRow { source, id: self.ids.get(*place)?.text, place: *place })
        })
    }

    /// What its footnotes name, each once.
    pub fn refs(&self) -> BTreeSet<&'b str> {
        self.refs.iter().map(|one| one.name.text).collect()
    }

    /// Paths of the archives that its links to records lead to, those without the record included; some come several times. A
    /// handle names none.
    pub fn archives(&self) -> impl Iterator<Item = String> {
        let found = self.refs.iter().filter_map(Ref::archive);
        found.chain(self.missing.iter().map(|(path, _)| (*path).to_owned()))
    }

    /// What the archives answered when it was read, so that it can be read again without asking them.
    pub fn sources(&self) -> Answers {
        let found = self.refs.iter().filter_map(|one| Some((one.place()?, SourceId::parse(one.name.text).ok()?)));
        Answers(found.collect())
    }
}

/// What archives answered once.
#[derive(Clone, Debug, Default)]
pub struct Answers(BTreeMap<(String, String), SourceId>);

impl Sources for Answers {
    fn record_at(&self, path: &str, anchor: &str) -> Option<SourceId> {
        self.0.get(&(path.to_owned(), anchor.to_owned())).cloned()
    }
}

/// Reads, and knows where.
struct Cursor<'b> {
    reader: Reader<'b>,
    length: usize,
}

impl<'b> Cursor<'b> {
    fn name(&mut self) -> Option<Name<'b>> {
        let at = self.length - self.reader.0.len();
        Some(Name { text: self.reader.counted_text()?, at })
    }

    fn list<T>(&mut self, one: impl FnMut(&mut Self) -> Option<T>) -> Option<Vec<T>> {
        let mut list = Vec::new();
        self.append(&mut list, one)?;
        Some(list)
    }

    /// Adds a list to another: where it stands there.
    fn append<T>(&mut self, to: &mut Vec<T>, mut one: impl FnMut(&mut Self) -> Option<T>) -> Option<(usize, usize)> {
        let (start, count) = (to.len(), self.reader.count()?);
        for _ in 0..count {
            to.push(one(self)?);
        }
        Some((start, to.len()))
    }
}
