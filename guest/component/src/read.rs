//! What `get` and `browse` show.

use std::cell::Cell;

use recollex_core::digest::Digest;
use recollex_core::ids::{Location, SourceId, is_derived_path, is_internal_path, is_v2_path};
use recollex_core::session::LineWindow;
use recollex_core::source::{FrameRef, Limits, Record, Scanner};
use recollex_core::table::row_key;

use crate::bindings::exports::recollex::memory::workspace as wit;
use crate::bindings::recollex::memory::store::{Area, Entry, StoreError};
use crate::bindings::recollex::memory::types::Problem;
use crate::convert;
use crate::records::{self, RecordTable};
use crate::tree::{self, Piece, Reader};

/// What a caller asked to read.
pub(crate) enum Target {
    File(Entry),
    Record { entry: Entry, id: RecordName },
}

/// How a record is named within its archive.
pub(crate) enum RecordName {
    Id(String),
    Anchor(String),
}

impl RecordName {
    fn names(&self, frame: &FrameRef<'_>) -> bool {
        match self {
            Self::Id(id) => frame.id == id,
            Self::Anchor(anchor) => frame.anchor() == *anchor,
        }
    }

    /// What the record table knows it by. None: it is no name that a record can have.
    fn key(&self) -> Option<Vec<u8>> {
        match self {
            Self::Id(id) => Some(row_key(&Digest::of(id.as_bytes())).to_vec()),
            Self::Anchor(anchor) => {
                let digits = anchor.strip_prefix("source-").filter(|digits| digits.len() == 16)?;
                let number = u64::from_str_radix(digits, 16).ok()?;
                Some(number.to_be_bytes().to_vec())
            }
        }
    }
}

impl Target {
    /// Finds what `target` names: a file by its path, a record by `path#anchor` or by its id. A path that exists wins
    /// over an id that looks like one.
    pub(crate) fn find(target: &str) -> Result<Self, wit::Error> {
        let (path, anchor) = match target.rsplit_once('#') {
            Some((path, anchor)) if anchor.starts_with("source-") => (path, Some(anchor)),
            _ => (target, None),
        };
        if is_internal_path(path) {
            return Err(internal(path));
        }
        let found = match tree::find(Area::Tree, path) {
            // An id may hold what no path does; only if it is none either, the path's fault counts.
            Err(StoreError::Denied(why)) if anchor.is_none() && SourceId::for_reading(target).is_ok() => {
                match by_id(target) {
                    Ok(None) => Err(convert::store_error(StoreError::Denied(why), Some(path))),
                    other => return other?.ok_or_else(|| missing(target)),
                }
            }
            other => other.map_err(|error| convert::store_error(error, Some(path))),
        }?;
        match (found, anchor) {
            (Some(entry), Some(anchor)) => Ok(Self::Record { entry, id: RecordName::Anchor(anchor.to_owned()) }),
            (Some(entry), None) => Ok(Self::File(entry)),
            (None, Some(_)) => Err(missing(target)),
            (None, None) => by_id(target)?.ok_or_else(|| missing(target)),
        }
    }
}

/// The archive that holds the record with this id, if it is an id and there is one.
fn by_id(target: &str) -> Result<Option<Target>, wit::Error> {
    let Ok(id) = SourceId::for_reading(target) else { return Ok(None) };
    let path = id.v2_path();
    let entry = tree::find(Area::Tree, &path).map_err(|error| convert::store_error(error, Some(&path)))?;
    Ok(entry.map(|entry| Target::Record { entry, id: RecordName::Id(target.to_owned()) }))
}

fn missing(target: &str) -> wit::Error {
    let problem = convert::problem(
        "MEMORY_NOT_FOUND",
        "no-such-record-or-file",
        None,
        "no file and no record has this name; `browse` lists files, `search` shows ids",
    );
    wit::Error::NotFound(Problem { subject: Some(target.to_owned()), ..problem })
}

/// Not among the whole records of an archive that is damaged.
fn behind_damage(path: &str, target: &str) -> wit::Error {
    let problem = convert::problem(
        "MEMORY_NOT_FOUND",
        "perhaps-behind-damage",
        Some(path),
        "the archive is damaged, and no record before the damage has this name; `verify` shows where, a backup may have it",
    );
    wit::Error::NotFound(Problem { subject: Some(target.to_owned()), ..problem })
}

/// No read verb shows the runtime directory or version control (D11).
pub(crate) fn internal(path: &str) -> wit::Error {
    wit::Error::Refused(vec![convert::problem(
        "PATH_OUTSIDE_WORKSPACE",
        "internal-path",
        Some(path),
        "the runtime directory and version control are not part of memory",
    )])
}

pub(crate) fn listed(entry: &Entry) -> wit::ListedFile {
    wit::ListedFile { path: entry.path.clone(), bytes: entry.stamp.size, derived: is_derived_path(&entry.path) }
}

/// A file's lines: of an archive only those of whole frames, without their metadata.
pub(crate) fn file(entry: &Entry, window: LineWindow, limits: &Limits) -> Result<wit::Excerpt, wit::Error> {
    if !tree::is_file(entry) {
        return Err(convert::store_error(StoreError::Denied("not a regular file".to_owned()), Some(&entry.path)));
    }
    if is_v2_path(&entry.path) {
        let mut parts = Parts { entry, window, failed: None };
        scan(entry, limits, |frame| {
            parts.show(frame.offset, frame.end, frame.anchor_line, frame.meta_line);
            parts.failed.is_none() && parts.window.wants_more()
        })?;
        return parts.finish(None);
    }
    let mut window = window;
    let mut reader = Reader::listed(entry);
    while window.wants_more() {
        match reader.next().map_err(|error| convert::store_error(error, Some(&entry.path)))? {
            Some(Piece::Text(text)) => window.push(&text),
            Some(Piece::Bytes(_)) => {
                return Err(convert::store_error(StoreError::NotText(reader.offset()), Some(&entry.path)));
            }
            None => break,
        }
    }
    Ok(excerpt(entry, window, None))
}

/// One record's lines, and what is known of it.
pub(crate) fn record(
    entry: &Entry,
    name: &RecordName,
    window: impl Fn(u64) -> LineWindow,
    limits: &Limits,
) -> Result<wit::Excerpt, wit::Error> {
    let mut found = from_table(entry, name, limits);
    let mut is_damaged = false;
    if found.is_none() {
        is_damaged = scan(entry, limits, |frame| {
            if name.names(frame) {
                found = Some(Record::new(&entry.path, frame));
            }
            found.is_none()
        })?;
    }
    let Some(record) = found else {
        let (RecordName::Id(target) | RecordName::Anchor(target)) = name;
        return Err(if is_damaged { behind_damage(&entry.path, target) } else { missing(target) });
    };
    let mut parts = Parts { entry, window: window(record.line), failed: None };
    parts.show(record.offset, record.offset.saturating_add(record.length), record.line, None);
    parts.finish(Some(convert::record(record)))
}

/// The record, if the record table leads to it. Whatever is wrong with the table, a scan finds out the truth.
fn from_table(entry: &Entry, name: &RecordName, limits: &Limits) -> Option<Record> {
    let prefix = name.key()?;
    let row = RecordTable::open(&entry.path, &entry.stamp, limits)?.find(&prefix)??;
    let mut found = None;
    let mut keep = |frame: &FrameRef<'_>| found = name.names(frame).then(|| Record::new(&entry.path, frame));
    records::read_frame(&entry.path, &entry.stamp, &row, limits, &mut keep).ok()?;
    found
}

/// Hands frames on until `more` says no, and reads no further. Whether the archive is damaged, if it was read to its end.
fn scan(entry: &Entry, limits: &Limits, mut more: impl FnMut(&FrameRef<'_>) -> bool) -> Result<bool, wit::Error> {
    let wanted = Cell::new(true);
    let mut sink = |frame: &FrameRef<'_>| {
        if wanted.get() {
            wanted.set(more(frame));
        }
    };
    let mut scanner = Scanner::new(Some(Location::of_path(&entry.path)), limits);
    let mut reader = Reader::listed(entry);
    while wanted.get() {
        match reader.next().map_err(|error| convert::store_error(error, Some(&entry.path)))? {
            Some(Piece::Text(text)) => scanner.push_text(&text, &mut sink),
            Some(Piece::Bytes(bytes)) => scanner.push_bytes(&bytes, &mut sink),
            None => return Ok(scanner.finish(&mut sink).fault.is_some()),
        }
    }
    Ok(false)
}

/// Parts of a file, shown through a window.
struct Parts<'a> {
    entry: &'a Entry,
    window: LineWindow,
    failed: Option<StoreError>,
}

impl Parts<'_> {
    /// Shows the bytes from `offset` to `end`, which begin with line `line`, without the line `hidden`.
    fn show(&mut self, offset: u64, end: u64, line: u64, hidden: Option<u64>) {
        self.window.jump(line);
        self.window.hide(hidden);
        let mut from = offset;
        while from < end && self.window.wants_more() && self.failed.is_none() {
            let at = Some(&self.entry.stamp);
            match tree::read_range(Area::Tree, &self.entry.path, at, from, (end - from).min(1 << 16)) {
                Ok(text) if text.is_empty() => self.failed = Some(StoreError::Changed),
                Ok(text) => {
                    from = from.saturating_add(text.len() as u64);
                    self.window.push(&text);
                }
                Err(error) => self.failed = Some(error),
            }
        }
    }

    fn finish(self, record: Option<wit::SourceRecord>) -> Result<wit::Excerpt, wit::Error> {
        match self.failed {
            Some(error) => Err(convert::store_error(error, Some(&self.entry.path))),
            None => Ok(excerpt(self.entry, self.window, record)),
        }
    }
}

fn excerpt(entry: &Entry, window: LineWindow, record: Option<wit::SourceRecord>) -> wit::Excerpt {
    let shown = window.finish();
    let (lines, next_line, cut_line) = (shown.lines, shown.next, shown.cut);
    wit::Excerpt {
        path: entry.path.clone(),
        lines: lines
            .into_iter()
            .map(|(number, text)| wit::NumberedLine { number, text, cut: cut_line == Some(number) })
            .collect(),
        record,
        next_line,
    }
}
