//! What topics must know of the archives: which record a place names, where a record is, and whether it may be built on.
//!
//! Asks for one record after the other, and remembers what it found for the length of a call. A long archive answers from
//! its record table; a short one is read once. Knows how to look; what the answers mean core's `topic` knows.

use std::cell::RefCell;
use std::collections::BTreeMap;

use recollex_core::ids::{SourceId, SourceRef, TurnRef, is_v2_path};
use recollex_core::source::{Branches, Limits, Predecessor, Record, Trust};
use recollex_core::table::ARCHIVE_BYTES_MIN;
use recollex_core::topic::Sources;
use recollex_core::topic::edit::{Evidence, Kept};

use crate::bindings::exports::recollex::memory::workspace as wit;
use crate::bindings::recollex::memory::store::{Entry, StoreError};
use crate::convert;
use crate::read::{self, RecordName};
use crate::records::RecordTable;
use crate::tree::{self, Reader};
use crate::view::View;

/// So many record tables are kept open: what topics cite lies close together, and one may take some hundred kilobytes.
const TABLES_MAX: usize = 32;

/// So many answers of record tables are remembered: each costs a read of its record, and topics cite the same ones again and
/// again. Some megabytes.
const ANSWERS_MAX: usize = 1 << 15;

/// The archives that a caller sees.
pub(crate) struct Archives {
    view: View,
    limits: Limits,
    entries: RefCell<BTreeMap<String, Option<Entry>>>,
    /// The record tables of long archives, those asked about last; none: there is no sound one.
    tables: RefCell<BTreeMap<String, Option<RecordTable>>>,
    /// What they said, by archive.
    answers: RefCell<Answers>,
    /// Archives that were read whole: their records by anchor, and places of them by id.
    read: RefCell<BTreeMap<String, Whole>>,
    /// Files of numbered conversations, by number, those first that count first.
    numbered: RefCell<BTreeMap<String, Vec<Entry>>>,
    /// The first thing that went wrong: what was answered since may not be so.
    failed: RefCell<Option<wit::Error>>,
}

/// Records that were looked up, found or not.
#[derive(Default)]
struct Answers {
    by_archive: BTreeMap<String, BTreeMap<RecordName, Option<Found>>>,
    count: usize,
}

impl Answers {
    fn get(&self, path: &str, name: &RecordName) -> Option<&Option<Found>> {
        self.by_archive.get(path)?.get(name)
    }

    fn remember(&mut self, path: &str, name: &RecordName, found: Option<Found>) {
        if self.count >= ANSWERS_MAX {
            *self = Self::default();
        }
        let of_archive = self.by_archive.entry(path.to_owned()).or_default();
        self.count += usize::from(of_archive.insert(name.clone(), found).is_none());
    }
}

/// What an archive holds.
#[derive(Default)]
struct Whole {
    by_anchor: BTreeMap<String, Found>,
    by_id: BTreeMap<String, Found>,
}

/// A record as far as topics ask about it.
#[derive(Clone)]
struct Found {
    id: String,
    trust: Trust,
}

impl From<&Record> for Found {
    fn from(record: &Record) -> Self {
        Self { id: record.id.clone(), trust: record.trust }
    }
}

impl Archives {
    pub(crate) fn of(view: &View, limits: &Limits) -> Self {
        Self {
            view: view.clone(),
            limits: *limits,
            entries: RefCell::default(),
            tables: RefCell::default(),
            answers: RefCell::default(),
            read: RefCell::default(),
            numbered: RefCell::default(),
            failed: RefCell::default(),
        }
    }

    /// Fails if an archive could not be read: then nothing that was decided by its answers may be done.
    pub(crate) fn check(&self) -> Result<(), wit::Error> {
        self.failed.take().map_or(Ok(()), Err)
    }

    fn fail(&self, error: wit::Error) {
        self.failed.borrow_mut().get_or_insert(error);
    }

    fn entry(&self, path: &str) -> Option<Entry> {
        if let Some(entry) = self.entries.borrow().get(path) {
            return entry.clone();
        }
        let entry = match self.view.find(path) {
            Ok(entry) => entry.filter(tree::is_file),
            // A link, or a name that no file can have: no record is there.
            Err(StoreError::Denied(_) | StoreError::NotFound) => None,
            Err(error) => {
                self.fail(convert::store_error(error, Some(path)));
                None
            }
        };
        self.entries.borrow_mut().insert(path.to_owned(), entry.clone());
        entry
    }

    /// The record of that name in the archive at `path`.
    fn record(&self, path: &str, name: &RecordName) -> Option<Found> {
        let entry = self.entry(path)?;
        self.record_in(&entry, name)
    }

    fn record_in(&self, entry: &Entry, name: &RecordName) -> Option<Found> {
        if is_v2_path(&entry.path)
            && entry.stamp.size >= ARCHIVE_BYTES_MIN
            && !self.read.borrow().contains_key(&entry.path)
        {
            if let Some(found) = self.answers.borrow().get(&entry.path, name) {
                return found.clone();
            }
            let mut tables = self.tables.borrow_mut();
            if tables.len() >= TABLES_MAX && !tables.contains_key(&entry.path) {
                tables.clear();
            }
            let open = || RecordTable::open(&entry.path, &entry.stamp, &self.limits);
            let table = tables.entry(entry.path.clone()).or_insert_with(open);
            // One that is damaged further in says nothing of what is there: then the archive is read.
            if let Some(table) = table
                && let Some(found) = read::in_table(table, entry, name, &self.limits)
            {
                let found = found.map(|record| Found::from(&record));
                self.answers.borrow_mut().remember(&entry.path, name, found.clone());
                return found;
            }
        }
        let mut read = self.read.borrow_mut();
        if !read.contains_key(&entry.path) {
            let mut whole = Whole::default();
            let each = |record: &Record| {
                let found = Found::from(record);
                // Of two with one name the first counts.
                whole.by_anchor.entry(record.anchor.clone()).or_insert_with(|| found.clone());
                whole.by_id.entry(record.id.clone()).or_insert(found);
            };
            if let Err(error) = read::all(entry, &self.limits, each) {
                self.fail(error);
            }
            read.insert(entry.path.clone(), whole);
        }
        let whole = read.get(&entry.path)?;
        match name {
            RecordName::Id(id) => whole.by_id.get(id).cloned(),
            RecordName::Anchor(anchor) => whole.by_anchor.get(anchor).cloned(),
        }
    }

    /// All that is known of a record or turn, wherever it is.
    pub(crate) fn whole_record(&self, evidence: &SourceRef) -> Option<Record> {
        let place = self.look_up(evidence)?;
        let entry = self.entry(&place.path)?;
        let name = RecordName::Id(evidence.to_string());
        match read::look_for(&entry, &name, &self.limits) {
            Ok((record, _)) => record,
            Err(error) => {
                self.fail(error);
                None
            }
        }
    }

    /// The id of the record that a file beside the archive says it comes behind.
    pub(crate) fn predecessor(&self, evidence: &SourceRef) -> Option<String> {
        let SourceRef::Record(id) = evidence else { return None };
        let path = id.branches_path();
        let mut branches = Branches::new();
        let mut reader = Reader::listed(&self.entry(&path)?);
        loop {
            match reader.next() {
                Ok(Some(piece)) => branches.push(piece.as_bytes()),
                Ok(None) => break,
                Err(error) => {
                    self.fail(convert::store_error(error, Some(&path)));
                    return None;
                }
            }
        }
        match branches.finish().predecessor(id.message()) {
            Predecessor::Record(message) => Some(format!("{}/{}/{message}", id.provider(), id.thread())),
            Predecessor::Before | Predecessor::Start => None,
        }
    }

    fn turn(&self, turn: &TurnRef) -> Option<Kept> {
        let number = turn.conversation();
        if !self.numbered.borrow().contains_key(number) {
            let files = read::numbered_archives(&self.view, number).unwrap_or_else(|error| {
                self.fail(error);
                Vec::new()
            });
            self.numbered.borrow_mut().insert(number.to_owned(), files);
        }
        let name = RecordName::Id(turn.to_string());
        let numbered = self.numbered.borrow();
        let holds = |entry: &&Entry| self.record_in(entry, &name).is_some();
        let entry = numbered.get(number)?.iter().find(holds)?;
        // Nothing says on whose authority such a turn came about: it is trusted everywhere (D16).
        Some(Kept { path: entry.path.clone(), trusted: true })
    }
}

impl Sources for Archives {
    fn record_at(&self, path: &str, anchor: &str) -> Option<SourceId> {
        let found = self.record(path, &RecordName::Anchor(anchor.to_owned()))?;
        SourceId::for_reading(&found.id).ok()
    }
}

impl Evidence for Archives {
    fn look_up(&self, evidence: &SourceRef) -> Option<Kept> {
        let id = match evidence {
            SourceRef::Record(id) => id,
            SourceRef::Turn(turn) => return self.turn(turn),
        };
        let name = RecordName::Id(id.to_string());
        // Where both have it, the frame counts.
        [id.v2_path(), id.legacy_path()].into_iter().find_map(|path| {
            let found = self.record(&path, &name)?;
            Some(Kept { path, trusted: found.trust == Trust::Trusted })
        })
    }
}
