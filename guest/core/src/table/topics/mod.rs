//! What is known of every topic of a workspace: blocks and their ids, links, labels, times, what they rest on.
//!
//! ```text
//! 0   8  magic
//! 8   4  version
//! 12  8  settings: limits.header-bytes
//! 20  8  check over all that
//! 28     blocks: length (4), check over the check before, length and content (8), content
//! ```
//!
//! Each check goes by the one before it, so that no block counts behind any but those it was written behind. A block's content is a list of statements; a later one about a path takes the place of an earlier one:
//!
//! ```text
//! path length (2), path, kind (1): 0, the topic is gone, or
//! 1, length (4), what is known of the topic (`entry.rs`), or
//! 2, known (1), digest (32): what the statements about topics before this one say of their places in the archive at `path`
//!    holds for the archive as it was when it had that digest; known 0: for when it was not there
//! ```
//!
//! A topic's statement is about one content of its file, named by its digest, and about what archives answered then. So
//! two questions tell whether it holds: has the file that digest, and do the archives still answer so
//! ([`TopicTable::settle`], which asks only about archives that changed, and for topics that were stated since). A statement
//! about an archive says nothing of topics behind it: nobody knows for which version of the archive they were found out, and an
//! archive may come to be again what it was before.
//!
//! The table is written whole and then added to until half of it is out of date. Whole, it is topics in ascending order, and
//! archives in ascending order; topics of which an archive's statement does not say that they hold follow them. In memory it is the bytes of the file and, once somebody asks, a sorted list of where names stand in them.

mod entry;
mod names;

pub use entry::{Answers, KnownBlock, KnownRow, TopicEntry, TopicNote};

use super::bytes::{Check, Reader, check, put_text};
use super::{Save, VERSION};
use crate::digest::Digest;
use crate::ids::{TopicPath, path_order};
use crate::source::Limits;
use crate::topic::Sources;
use crate::topic::edit::Committed;
use names::{Names, Places};
use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};

/// Name of the topic table in the cache area.
pub const TOPIC_TABLE: &str = "topics";

const MAGIC: &[u8; 8] = b"RCLXTOPI";
const HEAD_BYTES: usize = 28;
const BLOCK_HEAD_BYTES: usize = 12;

/// A block is closed once it is that long.
const BLOCK_BYTES: usize = 128 * 1024;

/// So much may be out of date whatever the rest is.
const STALE_BYTES: usize = 64 * 1024;

/// Greatest length of a table that is kept. A longer one is made anew each time.
const TABLE_BYTES_MAX: usize = 256 << 20;

const GONE: u8 = 0;
const TOPIC: u8 = 1;
const ARCHIVE: u8 = 2;

/// What is known of all topics.
#[derive(Clone, Debug)]
pub struct TopicTable {
    /// As the file, blocks behind `kept` included; the last of them may be open: its head is not filled in.
    bytes: Vec<u8>,
    /// So many bytes are in the cache file; none: it must be written whole.
    kept: Option<usize>,
    open: Option<usize>,
    /// The check of the last block that is closed, or of the head.
    seal: Check,
    /// In the order of the bytes.
    rows: Vec<Row>,
    /// Those that are live, by path.
    by_path: Vec<usize>,
    /// Of each archive, when topics were last held against it.
    archives: BTreeMap<String, Held>,
    names: OnceCell<Names>,
}

/// What a table does not know of the topics there are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Differences {
    /// Topics that the table knows and that are not there; in order.
    pub gone: Vec<TopicPath>,
    /// Topics whose content is not the one that the table knows, or that nobody has looked at; in order.
    pub unknown: Vec<TopicPath>,
}

/// What an archive was when topics were held against it, and which topics were.
#[derive(Clone, Copy, Debug)]
struct Held {
    /// None: it was not there.
    digest: Option<Digest>,
    /// So many rows, from the first.
    rows: usize,
}

/// A statement about a topic, within the table's bytes.
#[derive(Clone, Copy, Debug)]
struct Row {
    path: usize,
    path_length: usize,
    body: usize,
    body_length: usize,
    live: bool,
}

impl Row {
    fn path<'b>(&self, bytes: &'b [u8]) -> &'b str {
        let path = bytes.get(self.path..self.path + self.path_length).unwrap_or_default();
        // It was text when it came in.
        core::str::from_utf8(path).unwrap_or_default()
    }

    fn entry<'b>(&self, bytes: &'b [u8]) -> Option<TopicEntry<'b>> {
        TopicEntry::read(bytes.get(self.body..self.body + self.body_length)?)
    }

    fn length(&self) -> usize {
        self.body + self.body_length + 2 - self.path
    }
}

impl TopicTable {
    /// Of a workspace about which nothing is known.
    pub fn new(limits: &Limits) -> Self {
        let mut bytes = MAGIC.to_vec();
        bytes.extend_from_slice(&VERSION.to_le_bytes());
        bytes.extend_from_slice(&(limits.header_bytes as u64).to_le_bytes());
        let seal = check(&[&bytes]);
        bytes.extend_from_slice(&seal);
        Self {
            bytes,
            kept: None,
            open: None,
            seal,
            rows: Vec::new(),
            by_path: Vec::new(),
            archives: BTreeMap::new(),
            names: OnceCell::new(),
        }
    }

    /// Of the cache file's bytes; none or damaged ones are a table that knows less.
    pub fn load(bytes: Vec<u8>, limits: &Limits) -> Self {
        let mut table = Self::new(limits);
        if bytes.len() > TABLE_BYTES_MAX || !bytes.starts_with(&table.bytes) {
            return table;
        }
        table.bytes = bytes;
        let sound = table.parse();
        table.kept = (sound == table.bytes.len()).then_some(sound);
        table.bytes.truncate(sound);
        table.by_path = (0..table.rows.len()).collect();
        let (rows, bytes) = (&table.rows, &table.bytes);
        let path = |row: &usize| rows.get(*row).map_or("", |row| row.path(bytes));
        // Stable, so the newest of one path comes last. Mostly in order already.
        table.by_path.sort_by(|a, b| path_order(path(a), path(b)));
        table.by_path.reverse();
        table.by_path.dedup_by(|older, newer| path(older) == path(newer));
        table.by_path.reverse();
        let named: BTreeSet<usize> = table.by_path.iter().copied().collect();
        for (number, row) in table.rows.iter_mut().enumerate() {
            row.live &= named.contains(&number);
        }
        let rows = &table.rows;
        table.by_path.retain(|row| rows.get(*row).is_some_and(|row| row.live));
        table
    }

    /// Reads the blocks. How many bytes, from the first, are sound.
    fn parse(&mut self) -> usize {
        let mut sound = HEAD_BYTES;
        while let Some(end) = self.parse_block(sound) {
            sound = end;
        }
        sound
    }

    /// Reads the block that begins there: where it ends. None: there is none, or it is damaged; nothing of it counts.
    fn parse_block(&mut self, offset: usize) -> Option<usize> {
        let mut reader = Reader(self.bytes.get(offset..)?);
        let length = reader.array::<4>()?;
        let seal = reader.array::<8>()?;
        let content = reader.take(u32::from_le_bytes(length) as usize)?;
        if seal != check(&[&self.seal, &length, content]) {
            return None;
        }
        let end = offset + BLOCK_HEAD_BYTES + content.len();
        let (mut rows, mut archives) = (Vec::new(), Vec::new());
        let mut content = Reader(content);
        while content.end().is_none() {
            let path = content.text::<2>()?;
            let at = end - content.0.len() - path.len();
            let [kind] = content.array::<1>()?;
            if kind == ARCHIVE {
                let known = content.array::<1>()? == [1];
                let digest = Digest(content.array()?);
                let held = Held { digest: known.then_some(digest), rows: self.rows.len() + rows.len() };
                archives.push((path.to_owned(), held));
                continue;
            }
            let body_length = if kind == TOPIC { content.number::<4>()? as usize } else { 0 };
            let body = end - content.0.len();
            content.take(body_length)?;
            if kind > TOPIC {
                return None;
            }
            rows.push(Row { path: at, path_length: path.len(), body, body_length, live: kind == TOPIC });
        }
        self.rows.append(&mut rows);
        self.archives.extend(archives);
        self.seal = seal;
        Some(end)
    }

    /// Where the path stands in `by_path`, or would.
    fn place(&self, path: &str) -> Result<usize, usize> {
        self.by_path.binary_search_by(|row| path_order(self.path_of(*row), path))
    }

    fn path_of(&self, row: usize) -> &str {
        self.rows.get(row).map_or("", |row| row.path(&self.bytes))
    }

    fn names(&self) -> &Names {
        self.names.get_or_init(|| Names::new(&self.bytes, &self.rows))
    }

    /// Takes in what was found out of a topic, in the place of what was known. A path of more than 65,535 bytes is not kept,
    /// and no file has one.
    pub fn apply(&mut self, note: &TopicNote) {
        let path = note.path.as_str();
        let place = self.place(path);
        let Ok(path_length) = u16::try_from(path.len()) else { return };
        if place.is_err() && note.body.is_none() {
            return;
        }
        if let Some(row) = place.ok().and_then(|place| self.by_path.get(place)).copied()
            && let Some(row) = self.rows.get_mut(row)
        {
            row.live = false;
        }
        let start = self.begin();
        self.bytes.extend_from_slice(&path_length.to_le_bytes());
        self.bytes.extend_from_slice(path.as_bytes());
        let mut row = Row {
            path: start + 2,
            path_length: path.len(),
            body: 0,
            body_length: note.body.as_ref().map_or(0, Vec::len),
            live: note.body.is_some(),
        };
        match &note.body {
            Some(body) => {
                self.bytes.push(TOPIC);
                // No topic is 4 GiB long where this runs.
                self.bytes.extend_from_slice(&(body.len() as u32).to_le_bytes());
                row.body = self.bytes.len();
                self.bytes.extend_from_slice(body);
            }
            None => {
                self.bytes.push(GONE);
                row.body = self.bytes.len();
            }
        }
        self.end();
        let number = self.rows.len();
        self.rows.push(row);
        match (place, row.live) {
            (Ok(place), true) => {
                if let Some(known) = self.by_path.get_mut(place) {
                    *known = number;
                }
            }
            (Ok(place), false) => drop(self.by_path.remove(place)),
            (Err(place), _) => self.by_path.insert(place, number),
        }
        if row.live
            && let Some(names) = self.names.get_mut()
        {
            names.add(&self.bytes, number, &row);
        }
    }

    /// Begins a statement: where it stands.
    fn begin(&mut self) -> usize {
        if self.open.is_none() {
            self.open = Some(self.bytes.len());
            self.bytes.extend_from_slice(&[0; BLOCK_HEAD_BYTES]);
        }
        self.bytes.len()
    }

    /// Ends a statement.
    fn end(&mut self) {
        let length = self.open.map_or(0, |open| self.bytes.len() - open - BLOCK_HEAD_BYTES);
        if length >= BLOCK_BYTES {
            self.close();
        }
    }

    /// Fills in the head of the open block.
    fn close(&mut self) {
        let Some(open) = self.open.take() else { return };
        let Some((head, content)) =
            self.bytes.get_mut(open..).and_then(|block| block.split_at_mut_checked(BLOCK_HEAD_BYTES))
        else {
            return;
        };
        let length = (content.len() as u32).to_le_bytes();
        self.seal = check(&[&self.seal, &length, content]);
        for (to, from) in head.iter_mut().zip(length.iter().chain(&self.seal)) {
            *to = *from;
        }
    }

    /// States that all topics there are now hold for the archive with this digest.
    fn note_archive(&mut self, path: &str, digest: Option<Digest>) {
        self.begin();
        if put_text::<2>(&mut self.bytes, path).is_some() {
            self.bytes.push(ARCHIVE);
            self.bytes.push(u8::from(digest.is_some()));
            self.bytes.extend_from_slice(&digest.map_or([0; 32], |digest| digest.0));
        }
        self.end();
        self.archives.insert(path.to_owned(), Held { digest, rows: self.rows.len() });
    }

    /// The live ones among some rows, from the given one on.
    fn live<'s>(&'s self, rows: &'s BTreeSet<usize>, first: usize) -> impl Iterator<Item = (usize, &'s Row)> {
        let rows = rows.range(first..).filter_map(|row| Some((*row, self.rows.get(*row)?)));
        rows.filter(|(_, row)| row.live)
    }

    /// Holds the topics against archives as they are. `digest_of` tells the digest of the file at a path, none if there is
    /// none; of an archive that has the digest it had, only topics that were stated since are held against it. `sources`
    /// answers for the archives' records.
    ///
    /// Gives the topics of which something else is to be said now than the table does: read them and [`apply`](Self::apply)
    /// what comes of it. As long as nobody does, they are given again.
    pub fn settle(&mut self, digest_of: &dyn Fn(&str) -> Option<Digest>, sources: &dyn Sources) -> BTreeSet<TopicPath> {
        let mut stale = BTreeSet::new();
        let mut now = Vec::new();
        for (archive, rows) in &self.names().archives {
            // What rests on it no more counts for nothing, and nobody has to read an archive for it.
            if self.live(rows, 0).next().is_none() {
                continue;
            }
            let digest = digest_of(archive);
            let held = self.archives.get(archive).filter(|held| held.digest == digest).map_or(0, |held| held.rows);
            let mut asked = self.live(rows, held).map(|(_, row)| row).peekable();
            if asked.peek().is_none() {
                continue;
            }
            let mut all_hold = true;
            for row in asked {
                if row.entry(&self.bytes).is_none_or(|entry| !holds(&entry, archive, sources)) {
                    all_hold = false;
                    stale.extend(TopicPath::parse(row.path(&self.bytes)).ok());
                }
            }
            if all_hold {
                now.push((archive.clone(), digest));
            }
        }
        for (archive, digest) in now {
            self.note_archive(&archive, digest);
        }
        stale
    }

    /// The topics there are, in order.
    pub fn paths(&self) -> impl Iterator<Item = TopicPath> {
        self.by_path.iter().filter_map(|row| TopicPath::parse(self.path_of(*row)).ok())
    }

    /// How many topics there are.
    pub fn len(&self) -> usize {
        self.by_path.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.by_path.is_empty()
    }

    /// What is known of a topic; none if there is no such topic.
    pub fn entry(&self, path: &TopicPath) -> Option<TopicEntry<'_>> {
        let row = self.by_path.get(self.place(path.as_str()).ok()?)?;
        self.rows.get(*row)?.entry(&self.bytes)
    }

    /// Everything that is known, in the order of the topics.
    pub fn entries(&self) -> impl Iterator<Item = (&str, TopicEntry<'_>)> {
        let rows = self.by_path.iter().filter_map(|row| self.rows.get(*row));
        rows.filter_map(|row| Some((row.path(&self.bytes), row.entry(&self.bytes)?)))
    }

    /// Whether what is known of a topic is about this content of it.
    pub fn knows(&self, path: &TopicPath, digest: &Digest) -> bool {
        let row = self.place(path.as_str()).ok().and_then(|place| self.by_path.get(place));
        row.is_some_and(|row| self.is_about(*row, digest))
    }

    fn is_about(&self, row: usize, digest: &Digest) -> bool {
        let row = self.rows.get(row);
        row.and_then(|row| self.bytes.get(row.body..row.body + digest.0.len())) == Some(digest.0.as_slice())
    }

    /// Holds the table against the topics there are, in order, each with the digest of its content if somebody knows it. Goes
    /// through both once.
    pub fn differences<'p>(&self, there: impl IntoIterator<Item = (&'p TopicPath, Option<Digest>)>) -> Differences {
        let mut differences = Differences::default();
        let mut known = self.by_path.iter().peekable();
        let gone = |row: &usize, gone: &mut Vec<TopicPath>| gone.extend(TopicPath::parse(self.path_of(*row)).ok());
        for (path, digest) in there {
            while let Some(row) = known.next_if(|row| path_order(self.path_of(**row), path.as_str()).is_lt()) {
                gone(row, &mut differences.gone);
            }
            let row = known.next_if(|row| self.path_of(**row) == path.as_str());
            if !row.zip(digest).is_some_and(|(row, digest)| self.is_about(*row, &digest)) {
                differences.unknown.push(path.clone());
            }
        }
        known.for_each(|row| gone(row, &mut differences.gone));
        differences
    }

    fn topics_at(&self, places: &Places, name: &str) -> Vec<TopicPath> {
        let row_at = |at: usize| {
            let next = self.rows.partition_point(|row| row.body <= at);
            self.rows.get(next.checked_sub(1)?).filter(|row| row.live)
        };
        let rows = places.of(&self.bytes, name).filter_map(row_at);
        let mut paths: Vec<TopicPath> = rows.filter_map(|row| TopicPath::parse(row.path(&self.bytes)).ok()).collect();
        paths.sort();
        paths.dedup();
        paths
    }

    /// The topics in which a block has the id, sound or not; in order.
    pub fn topics_of(&self, id: &str) -> Vec<TopicPath> {
        self.topics_at(&self.names().ids, id)
    }

    /// The topics in which a definition has the label, inside a fence or not; in order.
    pub fn topics_defining(&self, label: &str) -> Vec<TopicPath> {
        self.topics_at(&self.names().labels, label)
    }

    /// The topics in which a paragraph links to the block; in order.
    pub fn linking_to(&self, id: &str) -> Vec<TopicPath> {
        self.topics_at(&self.names().links, id)
    }

    /// The blocks that link to the block, each by its own id and with its topic; in order.
    pub fn blocks_linking_to(&self, id: &str) -> Vec<(TopicPath, String)> {
        let mut found = Vec::new();
        for path in self.linking_to(id) {
            let entry = self.entry(&path);
            for block in entry.iter().flat_map(TopicEntry::blocks).filter(|block| block.links().any(|link| link == id))
            {
                found.extend(block.ids().last().map(|own| (path.clone(), own.to_owned())));
            }
        }
        found
    }

    /// The topics with a footnote that names this record or turn; in order.
    pub fn resting_on(&self, source: &str) -> Vec<TopicPath> {
        self.topics_at(&self.names().refs, source)
    }

    /// The topics with a sound block that has evidence of this time, `YYYY`, `YYYY-MM` or `YYYY-MM-DD`; in order.
    pub fn topics_at_time(&self, time: &str) -> Vec<TopicPath> {
        self.topics_at(&self.names().times, time)
    }

    /// Every id that stands in more than one topic, with the first of them. There is none unless something is wrong.
    pub fn shared_ids(&self) -> BTreeMap<&str, TopicPath> {
        let shared = self.names().repeated_ids(&self.bytes).into_iter().filter_map(|id| {
            let topics = self.topics_of(id);
            (topics.len() > 1).then(|| Some((id, topics.into_iter().next()?))).flatten()
        });
        shared.collect()
    }

    /// How to bring the cache file up to date. [`TopicTable::saved`] says that it was.
    pub fn save(&mut self) -> Save {
        self.close();
        let live: usize = self.by_path.iter().filter_map(|row| self.rows.get(*row)).map(Row::length).sum();
        let archives: usize = self.archives.keys().map(|path| path.len() + 36).sum();
        if let Some(kept) = self.kept {
            if kept == self.bytes.len() {
                return Save::Nothing;
            }
            let length = self.bytes.len();
            if length <= (live + archives) * 2 + STALE_BYTES && length <= TABLE_BYTES_MAX {
                let bytes = self.bytes.get(kept..).unwrap_or_default().to_vec();
                return Save::Append { length: kept as u64, bytes };
            }
        }
        if live + archives > TABLE_BYTES_MAX - STALE_BYTES {
            return Save::Nothing;
        }
        self.compact();
        Save::Replace(self.bytes.clone())
    }

    /// The file now is as [`TopicTable::save`] said.
    pub fn saved(&mut self) {
        self.kept = Some(self.bytes.len());
    }

    /// The file is somebody else's by now, or is not there: it will be written whole.
    pub fn forget_file(&mut self) {
        self.kept = None;
    }

    /// Writes everything anew, without what is out of date.
    fn compact(&mut self) {
        let (archives, unsettled) = self.standing();
        let head = self.bytes.get(..HEAD_BYTES).unwrap_or_default().to_vec();
        self.seal = Reader(head.get(HEAD_BYTES - 8..).unwrap_or_default()).array().unwrap_or_default();
        let old = core::mem::replace(&mut self.bytes, head);
        let rows = core::mem::take(&mut self.rows);
        let order = core::mem::take(&mut self.by_path);
        self.archives.clear();
        self.names.take();
        self.open = None;
        self.kept = None;
        let (behind, before): (Vec<_>, Vec<_>) =
            order.into_iter().enumerate().partition(|(_, row)| unsettled.contains(row));
        let mut places = Vec::with_capacity(rows.len());
        for (place, row) in before {
            places.extend(rows.get(row).map(|row| (place, self.copy(row, &old))));
        }
        for (path, digest) in archives {
            self.note_archive(&path, digest);
        }
        for (place, row) in behind {
            places.extend(rows.get(row).map(|row| (place, self.copy(row, &old))));
        }
        self.close();
        places.sort_unstable();
        self.by_path = places.into_iter().map(|(_, row)| row).collect();
    }

    /// States again what a row of an older table says: its number.
    fn copy(&mut self, row: &Row, old: &[u8]) -> usize {
        let start = self.begin();
        let statement = old.get(row.path - 2..row.body + row.body_length).unwrap_or_default();
        self.bytes.extend_from_slice(statement);
        self.end();
        self.rows.push(Row { path: start + 2, body: start + 2 + row.body - row.path, ..*row });
        self.rows.len() - 1
    }

    /// The statements about archives that topics have places in; and the rows that some of these say nothing of, though the
    /// topic has a place there.
    fn standing(&self) -> (Vec<(String, Option<Digest>)>, BTreeSet<usize>) {
        let (mut archives, mut unsettled) = (Vec::new(), BTreeSet::new());
        // Names take a while to find: without a statement about an archive nobody needs them here.
        let Some(names) = (!self.archives.is_empty()).then(|| self.names()) else { return (archives, unsettled) };
        for (path, held) in &self.archives {
            let Some(rows) = names.archives.get(path) else { continue };
            if self.live(rows, 0).next().is_some() {
                archives.push((path.clone(), held.digest));
                unsettled.extend(self.live(rows, held.rows).map(|(row, _)| row));
            }
        }
        (archives, unsettled)
    }
}

/// Whether an archive still answers a topic's questions as it did.
fn holds(entry: &TopicEntry<'_>, archive: &str, sources: &dyn Sources) -> bool {
    let found = entry.refs.iter().all(|one| {
        one.archive().as_deref() != Some(archive)
            || one.place().is_some_and(|(path, anchor)| {
                sources.record_at(&path, &anchor).is_some_and(|id| id.as_str() == one.name.text)
            })
    });
    found && entry.missing.iter().all(|(path, anchor)| *path != archive || sources.record_at(path, anchor).is_none())
}

/// A table, and the texts of topics it is about: what an edit must know.
pub struct CommittedTopics<'t> {
    /// What is known.
    pub table: &'t TopicTable,
    /// Gives the text of a topic; none if there is no such topic, or it is not UTF-8.
    pub text: &'t dyn Fn(&TopicPath) -> Option<&'t str>,
}

impl Committed for CommittedTopics<'_> {
    fn text(&self, path: &TopicPath) -> Option<&str> {
        (self.text)(path)
    }

    fn is_there(&self, path: &TopicPath) -> bool {
        self.table.entry(path).is_some()
    }

    fn topics_of(&self, id: &str) -> Vec<TopicPath> {
        self.table.topics_of(id)
    }

    fn topics_defining(&self, label: &str) -> Vec<TopicPath> {
        self.table.topics_defining(label)
    }

    fn linking_to(&self, id: &str) -> Vec<TopicPath> {
        self.table.linking_to(id)
    }
}
