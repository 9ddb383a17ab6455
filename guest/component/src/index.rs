//! The search index of a workspace: taken from the cache, brought up to date with the files, written down again.
//!
//! Knows which files there are, which are other than the index thinks, and how to read them. What becomes of a record, and
//! what is kept in which cache file, core's `search` knows.

use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use recollex_core::ids::{Location, TopicPath, is_v2_path, legacy_twin};
use recollex_core::search::{
    self, CATALOG, Candidate, Claim, DIRECTORY, Document, Extension, Index, Key, Known, LOG_BYTES, MissingPages,
    Opening, Place, Query, Ranking, Scratch, Wanted, Write,
};
use recollex_core::session::Settings;
use recollex_core::source::{
    Change, EntryKind, FileClass, Finding, FrameRef, Given, LimitReached, NewerIds, Record, RecordRef, Scanner,
    Verifier, said,
};
use recollex_core::trust::Audience;

use crate::bindings::exports::recollex::memory::workspace as wit;
use crate::bindings::recollex::memory::store::{Area, Entry, Kind as FileKind, Stamp, StoreError};
use crate::cache;
use crate::convert;
use crate::listing::{Listing, Look, Noted, order};
use crate::session;
use crate::tree::{self, Piece, Reader};

/// So many documents may be indexed before they are written down, in case that the rest takes longer than there is time.
/// Four times as many, and the rest of a file, fit into a segment.
const UNSAVED_DOCUMENTS: u32 = 12 << 10;

/// The index of a session, once it has been needed.
#[derive(Clone, Default)]
pub(crate) struct Shelf(Rc<RefCell<Shelved>>);

#[derive(Default)]
struct Shelved {
    held: Option<Held>,
    noted: Noted,
}

/// An index at hand.
struct Held {
    index: Index,
    /// Of the catalog it came with, or wrote last; none: there was none.
    catalog: Option<String>,
    /// What others have learned cannot be told from what is here any more.
    is_stale: bool,
    /// There was no index to go on with, and what there was instead still has to be cleared away.
    is_new: bool,
    scratch: Scratch,
    /// The setting `search.resident-bytes`.
    resident_bytes: u64,
    /// As some callers see it.
    view: Option<(search::View, Audience)>,
    /// What is wrong with files, by path: the version, and the findings.
    faults: BTreeMap<String, (String, Vec<Finding>)>,
    /// The files that the index was last brought up to date with; none: it may have lost some since.
    listing: Option<Listing>,
    /// A segment was lost since the last update began: its files have to be indexed again.
    has_lost: bool,
}

/// Whether a path is one of evidence.
fn is_source(path: &str) -> bool {
    path.starts_with("sources/")
}

/// What decides how records are indexed.
fn manner(settings: &Settings) -> Vec<u8> {
    // The last word: how claims are made words of.
    format!("{} {} plain", settings.record_bytes, settings.header_bytes).into_bytes()
}

fn stamp(name: &str) -> Option<Stamp> {
    Some(tree::find(Area::Cache, name).ok()??.stamp)
}

impl Shelf {
    /// What a host that watches says: see `note-changes` in the contract.
    pub(crate) fn note(&self, paths: Option<Vec<String>>) {
        self.0.borrow_mut().noted.note(paths);
    }

    /// From now on files are looked at, whatever was said of them.
    pub(crate) fn end_note(&self) {
        self.0.borrow_mut().noted.end();
    }

    /// Answers a query among the files that the caller sees, and says why the answer may be incomplete. A file that changes
    /// while it is read is an error, or on the `last` try a finding.
    pub(crate) fn search(
        &self,
        settings: &Settings,
        audience: &Audience,
        query: &Query,
        last: bool,
    ) -> Result<Ranked, wit::Error> {
        let shelf = &mut *self.0.borrow_mut();
        loop {
            let (held, noted) = shelf.at_hand(settings);
            let findings = held.update(settings, audience, noted, last)?;
            // A segment that turns out to be damaged leaves files to be indexed again. There are only so many.
            if !held.save() {
                continue;
            }
            if let Some((ranking, documents)) = held.rank(settings, audience, query) {
                return Ok(Ranked { ranking, findings, documents });
            }
        }
    }

    /// What the caller could find that passes the filters of a query, whatever it says.
    pub(crate) fn candidates(
        &self,
        settings: &Settings,
        audience: &Audience,
        query: &Query,
        manner: &[u8],
        last: bool,
    ) -> Result<Candidates, wit::Error> {
        let shelf = &mut *self.0.borrow_mut();
        loop {
            let (held, noted) = shelf.at_hand(settings);
            let findings = held.update(settings, audience, noted, last)?;
            if !held.save() {
                continue;
            }
            let documents = held.see(settings, audience).documents();
            let found = held.seen(|index, view| index.candidates(Some(query), view, manner));
            if let Some(candidates) = found {
                return Ok(Candidates { candidates, findings, documents });
            }
        }
    }

    /// The keys of everything that anybody could find.
    pub(crate) fn keys(&self, settings: &Settings, manner: &[u8]) -> Result<BTreeSet<Key>, wit::Error> {
        self.with(|held| {
            let view = held.index.view(&settings.weights, |_| true);
            let all = held.pages(|index| index.candidates(None, &view, manner))?;
            Some(all.into_iter().filter_map(|one| one.key).collect())
        })
    }

    /// Where candidates are, if nothing has become of the index since they were.
    pub(crate) fn placed(&self, candidates: &[Candidate]) -> Result<Vec<search::Ranked>, wit::Error> {
        self.with(|held| held.seen(|index, view| index.placed(candidates, view)))
    }

    /// The best of candidates, each with its score, likewise.
    pub(crate) fn rank_by(
        &self,
        query: &Query,
        scored: &[(u64, Candidate)],
        signal: &str,
    ) -> Result<Ranking, wit::Error> {
        self.with(|held| held.seen(|index, view| index.rank_by(query, view, scored, signal)))
    }

    /// Something of the index as it was left. An error that is worth another try: it is not there any more.
    fn with<T>(&self, get: impl FnOnce(&mut Held) -> Option<T>) -> Result<T, wit::Error> {
        let mut shelf = self.0.borrow_mut();
        let found = shelf.held.as_mut().and_then(get);
        found.ok_or_else(|| convert::store_error(StoreError::Changed, None))
    }

    /// How many documents the caller could find, and why that may not be all.
    pub(crate) fn documents(
        &self,
        settings: &Settings,
        audience: &Audience,
        last: bool,
    ) -> Result<(u32, Vec<Finding>), wit::Error> {
        let shelf = &mut *self.0.borrow_mut();
        loop {
            let (held, noted) = shelf.at_hand(settings);
            let findings = held.update(settings, audience, noted, last)?;
            if held.save() {
                return Ok((held.see(settings, audience).documents(), findings));
            }
        }
    }
}

/// What could be found.
pub(crate) struct Candidates {
    pub(crate) candidates: Vec<Candidate>,
    /// Why that may not be all.
    pub(crate) findings: Vec<Finding>,
    /// How many documents the caller could find, whatever their filters.
    pub(crate) documents: u32,
}

/// What a query came to.
pub(crate) struct Ranked {
    pub(crate) ranking: Ranking,
    /// Why it may be incomplete.
    pub(crate) findings: Vec<Finding>,
    /// How many documents the caller could find.
    pub(crate) documents: u32,
}

impl Shelved {
    /// The index that was held, if it still says what the cache does, with what others have added since.
    fn at_hand(&mut self, settings: &Settings) -> (&mut Held, &mut Noted) {
        // Where no file has changed there is nothing that others could have learned.
        let is_settled =
            |held: &Held| !held.is_stale && held.listing.as_ref().is_some_and(|one| one.is_settled(&self.noted));
        let held = match self.held.take() {
            Some(held) if is_settled(&held) => held,
            held => {
                let mut held = held.filter(Held::is_current).unwrap_or_else(|| Held::open(settings));
                held.take_log();
                held
            }
        };
        (self.held.insert(held), &mut self.noted)
    }
}

impl Held {
    /// Of what the cache has.
    fn open(settings: &Settings) -> Self {
        let catalog = stamp(CATALOG);
        let bytes = catalog.as_ref().and_then(|_| cache::read_all(CATALOG));
        let mut opening = Opening::new(bytes.as_deref(), &manner(settings));
        while let Some(Wanted { name, range }) = opening.wanted().cloned() {
            opening.supply(cache::read_up_to(&name, range));
        }
        let index = opening.finish();
        Self {
            catalog: catalog.map(|stamp| stamp.token),
            is_stale: false,
            is_new: index.log().is_none(),
            index,
            scratch: Scratch::default(),
            resident_bytes: settings.resident_bytes,
            view: None,
            faults: BTreeMap::new(),
            listing: None,
            has_lost: false,
        }
    }

    /// Whether the cache still has what this came from.
    fn is_current(&self) -> bool {
        !self.is_stale && stamp(CATALOG).map(|stamp| stamp.token) == self.catalog
    }

    /// Takes in what others have learned meanwhile.
    fn take_log(&mut self) {
        let Some((name, taken)) = self.index.log() else { return };
        let length = stamp(&name).map_or(0, |stamp| stamp.size);
        if length > taken {
            let said = self.index.take_log(&cache::read_up_to(&name, taken..length).unwrap_or_default());
            // Those who said it may have seen other versions.
            if let Some(listing) = &mut self.listing {
                said.iter().for_each(|path| listing.unsettle(path));
            }
        }
    }

    /// Indexes what is other than the index thinks. Most searches find everything as it was: then they cost no look at any
    /// file.
    fn update(
        &mut self,
        settings: &Settings,
        audience: &Audience,
        noted: &mut Noted,
        last: bool,
    ) -> Result<Vec<Finding>, wit::Error> {
        let (mut listing, look) = Listing::of_now(self.listing.take(), noted)?;
        self.has_lost = false;
        let mut entries: Vec<Entry> = match &look {
            Look::Everything => listing.entries().to_vec(),
            Look::At(paths) => paths.iter().filter_map(|path| listing.get(path)).cloned().collect(),
        };
        // The sort is stable: within a class they stay in order of path.
        entries.sort_by_cached_key(|entry| order(&entry.path));
        let keep = usize::try_from(settings.record_bytes).unwrap_or(usize::MAX);
        let mut update = Update {
            verifier: Verifier::new(Given::InWorkspace, &settings.limits()).keep_records(keep),
            newer: NewerIds::among(entries.iter().map(|entry| entry.path.as_str()).filter(|path| is_source(path))),
            twins: Twins::among(&entries),
            bytes: 0,
            has_read: false,
            settings,
            last,
        };
        if let Look::Everything = look {
            self.index.begin_survey();
        }
        update.twins.find_what_to_read(&mut self.index, &entries);
        let mut findings = Vec::new();
        for entry in &entries {
            update.has_read = false;
            let found = self.update_file(entry, &mut update)?;
            findings.extend(found.into_iter().map(|finding| (entry.path.clone(), finding)));
            // Of what is no file the kind alone counts, and a name that is no text cannot be asked for.
            if update.has_read || entry.stamp.racy && entry.kind == FileKind::File {
                listing.unsettle(&entry.path);
            }
        }
        let gone: Vec<String> = match &look {
            Look::Everything => self.index.unseen(),
            Look::At(paths) => paths.iter().filter(|path| listing.get(path).is_none()).cloned().collect(),
        };
        for path in gone {
            self.index.remove(&path);
            self.faults.remove(&path);
        }
        listing.found(&look, findings);
        let seen = listing.findings().filter(|(path, _)| audience.sees(path)).map(|(_, finding)| finding.clone());
        let seen = seen.collect();
        self.listing = (!self.has_lost).then_some(listing);
        Ok(seen)
    }

    /// Brings the index up to date with one file. What is wrong with it.
    fn update_file(&mut self, entry: &Entry, update: &mut Update<'_>) -> Result<Vec<Finding>, wit::Error> {
        let path = entry.path.as_str();
        let kind = match entry.kind {
            FileKind::File => EntryKind::File,
            FileKind::Symlink => EntryKind::Symlink,
            FileKind::Special => EntryKind::Special,
            FileKind::Undecodable => EntryKind::Undecodable,
            FileKind::Unreadable => EntryKind::Unreadable,
        };
        if kind != EntryKind::File {
            update.verifier.file(path, kind);
            update.verifier.end(&mut |_, _| {});
            return Ok(update.verifier.take_findings(usize::MAX));
        }
        let version = update.twins.version(entry);
        let known = self.index.known(path, &tree::version(&version));
        if known == (Known::This { faulty: false }) {
            update.see_twin(entry)?;
            return Ok(Vec::new());
        }
        let topic = match update.verifier.class(path) {
            FileClass::Archive | FileClass::OlderArchive => None,
            FileClass::Topic => TopicPath::parse(path).ok(),
            // It has nothing that can be found.
            _ => return Ok(Vec::new()),
        };
        let told = self.faults.get(path).filter(|(token, _)| *token == version.token);
        match (known, told) {
            (Known::This { .. }, Some((_, findings))) => {
                update.see_twin(entry)?;
                return Ok(findings.clone());
            }
            // What is wrong has to be found out again, and nothing else.
            (Known::This { .. }, None) => match &topic {
                Some(topic) => drop(update.read_topic(entry, topic, |_| Ok(()))?),
                None => drop(update.read(entry, |_| Ok(()))?),
            },
            (Known::Not, _) => {
                self.index.replace(path);
                let is_clean = match &topic {
                    Some(topic) => {
                        update.read_topic(entry, topic, |claim| put(&mut self.index, path, &claim.document()))?
                    }
                    None => update.read(entry, |found| add(&mut self.index, path, found))?,
                };
                if let Some(is_clean) = is_clean {
                    self.index.finish(path, &tree::version(&version), !is_clean);
                }
            }
        }
        let findings = update.verifier.take_findings(usize::MAX);
        if findings.is_empty() {
            self.faults.remove(path);
        } else {
            self.faults.insert(path.to_owned(), (version.token.clone(), findings.clone()));
        }
        if self.index.unsaved() > UNSAVED_DOCUMENTS {
            self.save();
        }
        Ok(findings)
    }

    /// Writes down what is new, where there is a workspace. False: the index has lost something since it was brought up to date.
    fn save(&mut self) -> bool {
        let is_to_be = self.listing.is_none() || self.index.is_to_be_saved();
        if is_to_be && session::workspace_id().is_ok_and(|id| id.is_some()) {
            self.write();
        }
        !self.has_lost
    }

    fn write(&mut self) {
        let writes = loop {
            match self.index.save() {
                Ok(writes) => break writes,
                Err(missing) => {
                    self.supply(&missing);
                    if self.is_stale {
                        return;
                    }
                }
            }
        };
        for write in writes {
            match write {
                Write::Put { name, bytes } => {
                    let is_written = cache::put(&name, &bytes);
                    if name == CATALOG {
                        self.catalog = stamp(CATALOG).filter(|_| is_written).map(|stamp| stamp.token);
                        self.clear_away();
                    }
                }
                // Another process has added something meanwhile: that is not here, and this is not there.
                Write::Append { name, length, bytes } => self.is_stale |= !cache::append(&name, length, &bytes),
                Write::Drop { name } => cache::drop(&name),
            }
        }
    }

    /// Removes what an index of other settings or another version has left, once.
    fn clear_away(&mut self) {
        if !core::mem::take(&mut self.is_new) {
            return;
        }
        for entry in tree::list(Area::Cache, DIRECTORY).unwrap_or_default() {
            if !self.index.keeps(&entry.path) {
                cache::drop(&entry.path);
            }
        }
    }

    /// False: a segment is damaged and no part of the index any more, or others have put another index in place of this one.
    fn supply(&mut self, missing: &MissingPages) -> bool {
        let supplied = self.index.wanted(missing).iter().all(|wanted| {
            let bytes = cache::read(&wanted.name, wanted.range.clone());
            self.is_stale |= bytes.is_none() && !self.is_current();
            !self.is_stale && self.index.supply(wanted, bytes.as_deref())
        });
        if !supplied {
            self.listing = None;
            self.has_lost = true;
        }
        supplied
    }

    /// The index as a caller sees it.
    fn see(&mut self, settings: &Settings, audience: &Audience) -> &search::View {
        let view = match self.view.take() {
            Some((view, of)) if of == *audience && self.index.is_current(&view) => view,
            _ => self.index.view(&settings.weights, |path| audience.sees(path)),
        };
        &self.view.insert((view, audience.clone())).0
    }

    /// Asks the index, reading the pages that this takes. None: something has to be indexed again first.
    fn pages<T>(&mut self, ask: impl Fn(&Index) -> Result<T, MissingPages>) -> Option<T> {
        loop {
            match ask(&self.index) {
                Ok(found) => {
                    self.index.shrink(self.resident_bytes);
                    return Some(found);
                }
                Err(missing) if !self.supply(&missing) => return None,
                Err(_) => {}
            }
        }
    }

    /// The same of what the last caller sees. None also where the index has changed since they looked.
    fn seen<T>(&mut self, ask: impl Fn(&Index, &search::View) -> Result<T, MissingPages>) -> Option<T> {
        let (view, audience) = self.view.take().filter(|(view, _)| self.index.is_current(view))?;
        let found = self.pages(|index| ask(index, &view));
        self.view = Some((view, audience));
        found
    }

    /// A ranking, and among how many documents. None: something has to be indexed again first.
    fn rank(&mut self, settings: &Settings, audience: &Audience, query: &Query) -> Option<(Ranking, u32)> {
        loop {
            self.see(settings, audience);
            let Self { index, view, scratch, resident_bytes, .. } = self;
            let (view, _) = view.as_ref()?;
            match index.search(query, view, scratch) {
                Ok(ranking) => {
                    let documents = view.documents();
                    index.shrink(*resident_bytes);
                    return Some((ranking, documents));
                }
                Err(missing) if !self.supply(&missing) => return None,
                Err(_) => {}
            }
        }
    }
}

/// Older archives that lie beside a v2 archive with the same ids. Which of their records are found depends on both.
struct Twins {
    /// By path of the older archive: stamp of the newer.
    newer: BTreeMap<String, Stamp>,
    /// Paths of the newer whose ids have to be known.
    to_read: BTreeSet<String>,
}

impl Twins {
    fn among(entries: &[Entry]) -> Self {
        let sources = || entries.iter().filter(|entry| is_source(&entry.path));
        let older: BTreeSet<&str> =
            sources().map(|entry| entry.path.as_str()).filter(|path| !is_v2_path(path)).collect();
        let twin = |entry: &Entry| {
            let path = legacy_twin(&entry.path).filter(|path| older.contains(path.as_str()))?;
            Some((path, entry.stamp.clone()))
        };
        let newer = if older.is_empty() { BTreeMap::new() } else { sources().filter_map(twin).collect() };
        Self { newer, to_read: BTreeSet::new() }
    }

    /// What an entry's records depend on.
    fn version<'e>(&self, entry: &'e Entry) -> Cow<'e, Stamp> {
        match self.newer.get(&entry.path) {
            Some(newer) => Cow::Owned(Stamp {
                size: entry.stamp.size,
                token: format!("{}+{}:{}", entry.stamp.token, newer.size, newer.token),
                racy: entry.stamp.racy || newer.racy,
            }),
            None => Cow::Borrowed(&entry.stamp),
        }
    }

    /// Of v2 archives beside an older one that has to be indexed, the ids have to be known.
    fn find_what_to_read(&mut self, index: &mut Index, entries: &[Entry]) {
        if self.newer.is_empty() {
            return;
        }
        let stale: BTreeSet<&str> = entries
            .iter()
            .filter(|entry| self.newer.contains_key(&entry.path))
            .filter(|entry| index.known(&entry.path, &tree::version(&self.version(entry))) == Known::Not)
            .map(|entry| entry.path.as_str())
            .collect();
        let is_beside = |entry: &&Entry| legacy_twin(&entry.path).is_some_and(|older| stale.contains(older.as_str()));
        self.to_read = entries.iter().filter(is_beside).map(|entry| entry.path.clone()).collect();
    }
}

/// An index being brought up to date.
struct Update<'s> {
    verifier: Verifier,
    /// Which records of older archives have a frame in their place.
    newer: NewerIds,
    twins: Twins,
    /// Text that was indexed.
    bytes: u64,
    /// The file under way had to be read.
    has_read: bool,
    settings: &'s Settings,
    last: bool,
}

impl Update<'_> {
    /// Takes note of the ids of an archive that is in the index already, if somebody has to know them.
    fn see_twin(&mut self, entry: &Entry) -> Result<(), wit::Error> {
        if !self.twins.to_read.contains(&entry.path) {
            return Ok(());
        }
        self.has_read = true;
        let Self { newer, settings, last, .. } = self;
        let mut scanner = Scanner::new(Some(Location::of_path(&entry.path)), &settings.limits());
        let mut see = |frame: &FrameRef<'_>| newer.see(&entry.path, RecordRef::Frame(frame));
        let mut reader = Reader::listed(entry);
        loop {
            match reader.next() {
                Ok(Some(Piece::Text(text))) => scanner.push_text(&text, &mut see),
                Ok(Some(Piece::Bytes(bytes))) => scanner.push_bytes(&bytes, &mut see),
                Err(StoreError::Changed) if !*last => {
                    return Err(convert::store_error(StoreError::Changed, Some(&entry.path)));
                }
                Ok(None) | Err(_) => break,
            }
        }
        scanner.finish(&mut see);
        Ok(())
    }

    /// Reads a file and hands on what can be found in it. Whether nothing is wrong with it; none: it could not be read to
    /// its end.
    fn read(
        &mut self,
        entry: &Entry,
        mut found: impl FnMut(RecordRef<'_>) -> Result<(), LimitReached>,
    ) -> Result<Option<bool>, wit::Error> {
        self.has_read = true;
        let Self { verifier, newer, bytes, settings, last, .. } = self;
        verifier.file(&entry.path, EntryKind::File);
        let mut full = None;
        let mut take = |path: &str, record: RecordRef<'_>| {
            newer.see(path, record);
            let counts = match record {
                RecordRef::Frame(_) => true,
                RecordRef::Legacy(legacy) => legacy.stands_alone() && !newer.supersedes(legacy),
            };
            if full.is_some() || !counts {
                return;
            }
            full = within(bytes, record.text(), settings).and_then(|()| found(record)).err();
        };
        let outcome = verify(verifier, entry, *last, &mut take, |_| {})?;
        match full {
            Some(limit) => Err(convert::limit(limit)),
            None => Ok(outcome),
        }
    }

    /// The same of a topic, and its claims.
    fn read_topic(
        &mut self,
        entry: &Entry,
        topic: &TopicPath,
        mut found: impl FnMut(&Claim) -> Result<(), LimitReached>,
    ) -> Result<Option<bool>, wit::Error> {
        self.has_read = true;
        let Self { verifier, bytes, settings, last, .. } = self;
        verifier.file(&entry.path, EntryKind::File);
        let mut text = String::new();
        let outcome = verify(verifier, entry, *last, &mut |_, _| {}, |piece| text.push_str(piece))?;
        // What is not UTF-8 is no text.
        if outcome == Some(true) {
            let mut each = |claim: &Claim| within(bytes, claim.text(), settings).and_then(|()| found(claim));
            Claim::all(topic, &text).iter().try_for_each(&mut each).map_err(convert::limit)?;
        }
        Ok(outcome)
    }
}

/// What counts is text that can be found. The error: it is more than the setting allows.
fn within(bytes: &mut u64, text: &str, settings: &Settings) -> Result<(), LimitReached> {
    *bytes = bytes.saturating_add(text.len() as u64);
    match *bytes > settings.index_bytes {
        true => Err(LimitReached {
            name: "limits.index-bytes",
            allowed: settings.index_bytes,
            asked: *bytes,
            subject: None,
        }),
        false => Ok(()),
    }
}

/// Has the file that the verifier has opened read. Whether nothing is wrong with it; none: it could not be read to its end.
fn verify(
    verifier: &mut Verifier,
    entry: &Entry,
    last: bool,
    take: &mut dyn FnMut(&str, RecordRef<'_>),
    mut text: impl FnMut(&str),
) -> Result<Option<bool>, wit::Error> {
    let mut reader = Reader::listed(entry);
    loop {
        match reader.next() {
            Ok(Some(Piece::Text(piece))) => {
                text(&piece);
                verifier.push_text(&piece, take);
            }
            Ok(Some(Piece::Bytes(bytes))) => verifier.push_bytes(&bytes, take),
            Ok(None) => return Ok(verifier.end(take).map(|outcome| outcome.clean)),
            Err(StoreError::Changed) if !last => {
                return Err(convert::store_error(StoreError::Changed, Some(&entry.path)));
            }
            Err(error) => {
                verifier.unreadable(&convert::in_words(&error));
                return Ok(None);
            }
        }
    }
}

/// Adds a record to the index.
fn add(index: &mut Index, path: &str, found: RecordRef<'_>) -> Result<(), LimitReached> {
    let record = match found {
        RecordRef::Frame(frame) => Record::new(path, frame),
        RecordRef::Legacy(legacy) if legacy.is_record() => Record::of_legacy(path, legacy),
        RecordRef::Legacy(legacy) => Record::of_mention(path, legacy),
    };
    let text = said_in(found, &record);
    let place = match found {
        RecordRef::Frame(frame) => Place::of_frame(frame, text),
        RecordRef::Legacy(legacy) => {
            let header = (legacy.text.len() - text.len()) as u64;
            let length = record.length.saturating_sub(header);
            Place { offset: record.offset, header, length, line: record.line }
        }
    };
    put(index, path, &Document::of_record(&record, text, place))
}

fn put(index: &mut Index, path: &str, document: &Document<'_>) -> Result<(), LimitReached> {
    index.add(path, document).map_err(|full| LimitReached {
        name: "search.documents",
        allowed: u64::from(full.documents),
        asked: u64::from(full.documents).saturating_add(1),
        subject: None,
    })
}

/// What of a record is searched and shown.
pub(crate) fn said_in<'r>(found: RecordRef<'r>, record: &Record) -> &'r str {
    match found {
        RecordRef::Frame(frame) => said(frame.record, frame.time, frame.label),
        RecordRef::Legacy(legacy) if legacy.is_record() => said(legacy.text, &record.time, &record.label),
        RecordRef::Legacy(legacy) => legacy.text,
    }
}

/// The log of the index in the cache, for those who change archives: what becomes of them is told to it, without opening the
/// index.
pub(crate) struct IndexLog<'s> {
    settings: &'s Settings,
    catalog: Vec<u8>,
    name: String,
    length: u64,
}

impl<'s> IndexLog<'s> {
    /// None: there is no index, or its log is full.
    pub(crate) fn open(settings: &'s Settings) -> Option<Self> {
        let catalog = cache::read_all(CATALOG)?;
        let name = search::log_of(&catalog, &manner(settings))?;
        let length = stamp(&name).map_or(0, |stamp| stamp.size);
        (length <= LOG_BYTES).then_some(Self { settings, catalog, name, length })
    }

    /// Something was added to an archive that had so many documents.
    pub(crate) fn added(&mut self, change: &Change, documents: u64, before: Option<&Stamp>, after: &Stamp) {
        if self.length > LOG_BYTES {
            return;
        }
        let mut extension = Extension::new(&change.path, documents, before.map(tree::version).as_ref());
        let keep = usize::try_from(self.settings.record_bytes).unwrap_or(usize::MAX);
        let location = Location::of_path(&change.path);
        let mut scanner = Scanner::resume(location, change.from, &self.settings.limits()).keep_records(keep);
        let mut add = |frame: &FrameRef<'_>| {
            let text = said(frame.record, frame.time, frame.label);
            let record = Record::new(&change.path, frame);
            extension.add(&Document::of_record(&record, text, Place::of_frame(frame, text)));
        };
        scanner.push_text(&change.text, &mut add);
        scanner.finish(&mut add);
        self.write(extension, after);
    }

    /// An archive of so many documents was changed without a change to anything that the index knows.
    pub(crate) fn touched(&mut self, path: &str, documents: u64, before: &Stamp, after: &Stamp) {
        self.write(Extension::new(path, documents, Some(&tree::version(before))), after);
    }

    fn write(&mut self, extension: Extension, after: &Stamp) {
        let write = extension.finish(&self.catalog, &manner(self.settings), self.length, &tree::version(after));
        let Some(Write::Append { name, length, bytes }) = write else { return };
        // If somebody was faster, nothing more is said, and the archives are indexed when they are searched next.
        self.length = match name == self.name && cache::append(&name, length, &bytes) {
            true => length.saturating_add(bytes.len() as u64),
            false => u64::MAX,
        };
    }
}
