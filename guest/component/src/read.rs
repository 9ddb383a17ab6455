//! What `get` and `browse` show.
//!
//! Knows which files a name may lead to, and how to fetch a record or lines of them. Which lines fit a window, and what a
//! record is, core says; what the caller sees, the view.

use std::cell::Cell;

use recollex_core::digest::Digest;
use recollex_core::ids::{
    Location, SourceId, TurnRef, is_derived_path, is_internal_path, is_v2_path, numbered_conversation,
};
use recollex_core::session::LineWindow;
use recollex_core::source::{
    FrameRef, LegacyItem, LegacyKind, LegacyRef, LegacyScanner, Limits, Record, RecordRef, Scanner,
};
use recollex_core::table::row_key;

use crate::bindings::exports::recollex::memory::workspace as wit;
use crate::bindings::recollex::memory::store::{Area, Entry, StoreError};
use crate::bindings::recollex::memory::types::Problem;
use crate::convert;
use crate::records::{self, RecordTable};
use crate::tree::{self, Piece, Reader};
use crate::view::View;

/// What a caller asked to read.
pub(crate) enum Target {
    File(Entry),
    /// A record, and the files it may be in: the first that has it counts.
    Record {
        files: Vec<Entry>,
        id: RecordName,
    },
}

/// How a record is named.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum RecordName {
    /// Over all files: a source id, `D3:7`, `lex_…`.
    Id(String),
    /// Within its file.
    Anchor(String),
}

impl RecordName {
    fn names(&self, path: &str, record: RecordRef<'_>) -> bool {
        match (self, record) {
            (Self::Id(id), RecordRef::Frame(frame)) => frame.id == id,
            (Self::Anchor(anchor), RecordRef::Frame(frame)) => frame.anchor() == *anchor,
            // Its id is its anchor too, and costs a hash.
            (Self::Id(name) | Self::Anchor(name), RecordRef::Legacy(legacy)) if legacy.kind == LegacyKind::Mention => {
                is_mention(name) && Record::of_mention(path, legacy).id == *name
            }
            (Self::Id(id), RecordRef::Legacy(legacy)) => legacy.is_record() && legacy.id == id,
            (Self::Anchor(anchor), RecordRef::Legacy(legacy)) => legacy.is_record() && legacy.anchor == anchor,
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

/// Whether this is the form of names that lines have which mention numbered turns.
fn is_mention(name: &str) -> bool {
    name.strip_prefix("lex_").is_some_and(|digits| digits.len() == 16)
}

fn is_anchor(name: &str) -> bool {
    name.starts_with("source-") || TurnRef::of_anchor(name).is_some() || is_mention(name)
}

impl Target {
    /// Finds what `target` names for a caller: a file by its path, a record by `path#anchor` or by its id. A path that exists wins
    /// over an id that looks like one.
    pub(crate) fn find(target: &str, view: &View) -> Result<Self, wit::Error> {
        let (path, anchor) = match target.rsplit_once('#') {
            Some((path, anchor)) if is_anchor(anchor) => (path, Some(anchor)),
            _ => (target, None),
        };
        if is_internal_path(path) {
            return Err(internal(path));
        }
        let found = match view.find(path) {
            // An id may hold what no path does; only if it is none either, the path's fault counts.
            Err(StoreError::Denied(why)) if anchor.is_none() => {
                let files = by_id(target, view)?;
                if files.is_empty() {
                    return Err(convert::store_error(StoreError::Denied(why), Some(path)));
                }
                return Ok(Self::Record { files, id: RecordName::Id(target.to_owned()) });
            }
            other => other.map_err(|error| convert::store_error(error, Some(path))),
        }?;
        match (found, anchor) {
            (Some(entry), Some(anchor)) => {
                Ok(Self::Record { files: vec![entry], id: RecordName::Anchor(anchor.to_owned()) })
            }
            (Some(entry), None) => Ok(Self::File(entry)),
            (None, Some(_)) => Err(missing(target)),
            (None, None) => match by_id(target, view)? {
                files if files.is_empty() => Err(missing(target)),
                files => Ok(Self::Record { files, id: RecordName::Id(target.to_owned()) }),
            },
        }
    }
}

/// The files that may hold the record with this id, those first that count first. None if it is no id.
fn by_id(target: &str, view: &View) -> Result<Vec<Entry>, wit::Error> {
    if let Some(id) = TurnRef::parse(target) {
        return numbered_archives(view, id.conversation());
    }
    if is_mention(target) {
        return older_archives(view, |_| true);
    }
    let Ok(id) = SourceId::for_reading(target) else { return Ok(Vec::new()) };
    // Where both have it, the frame counts.
    let mut files = Vec::new();
    for path in [id.v2_path(), id.legacy_path()] {
        files.extend(view.find(&path).map_err(|error| convert::store_error(error, Some(&path)))?);
    }
    Ok(files)
}

/// The files of a numbered conversation, those first that count first.
pub(crate) fn numbered_archives(view: &View, number: &str) -> Result<Vec<Entry>, wit::Error> {
    older_archives(view, |path| numbered_conversation(path) == Some(number))
}

/// The archives of the older form whose path is wanted, those first that lie higher.
fn older_archives(view: &View, wanted: impl Fn(&str) -> bool) -> Result<Vec<Entry>, wit::Error> {
    let mut files = view.list("sources").map_err(|error| convert::store_error(error, Some("sources")))?;
    files.retain(|entry| {
        tree::is_file(entry) && entry.path.ends_with(".md") && !is_v2_path(&entry.path) && wanted(&entry.path)
    });
    files.sort_by_key(|entry| entry.path.matches('/').count());
    Ok(files)
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

/// One record's lines, and what is known of it. The first of `files` that has it counts.
pub(crate) fn record(
    files: &[Entry],
    name: &RecordName,
    window: impl Fn(u64) -> LineWindow,
    limits: &Limits,
) -> Result<wit::Excerpt, wit::Error> {
    let mut damaged = None;
    for entry in files {
        let (found, is_damaged) = look_for(entry, name, limits)?;
        if let Some(record) = found {
            let mut parts = Parts { entry, window: window(record.line), failed: None };
            parts.show(record.offset, record.offset.saturating_add(record.length), record.line, None);
            return parts.finish(Some(convert::record(record)));
        }
        if is_damaged {
            damaged = damaged.or(Some(entry));
        }
    }
    let (RecordName::Id(target) | RecordName::Anchor(target)) = name;
    Err(damaged.map_or_else(|| missing(target), |entry| behind_damage(&entry.path, target)))
}

/// The record of that name in this file; and whether it may be that damage hides it.
pub(crate) fn look_for(
    entry: &Entry,
    name: &RecordName,
    limits: &Limits,
) -> Result<(Option<Record>, bool), wit::Error> {
    let mut found = None;
    let is_damaged = if is_v2_path(&entry.path) {
        found = from_table(entry, name, limits);
        if found.is_some() {
            return Ok((found, false));
        }
        scan(entry, limits, |frame| {
            if name.names(&entry.path, RecordRef::Frame(frame)) {
                found = Some(Record::new(&entry.path, frame));
            }
            found.is_none()
        })?
    } else {
        scan_legacy(entry, limits, 0, |legacy| {
            if name.names(&entry.path, RecordRef::Legacy(legacy)) {
                let is_mention = legacy.kind == LegacyKind::Mention;
                let record = if is_mention { Record::of_mention } else { Record::of_legacy };
                found = Some(record(&entry.path, legacy));
            }
            found.is_none()
        })?
    };
    Ok((found, is_damaged))
}

/// Hands on every record of an archive, mentions left out.
pub(crate) fn all(entry: &Entry, limits: &Limits, mut each: impl FnMut(&Record)) -> Result<(), wit::Error> {
    if is_v2_path(&entry.path) {
        scan(entry, limits, |frame| {
            each(&Record::new(&entry.path, frame));
            true
        })?;
    } else {
        scan_legacy(entry, limits, 0, |legacy| {
            if legacy.is_record() {
                each(&Record::of_legacy(&entry.path, legacy));
            }
            true
        })?;
    }
    Ok(())
}

/// The record, if the record table leads to it. Whatever is wrong with the table, a scan finds out the truth.
fn from_table(entry: &Entry, name: &RecordName, limits: &Limits) -> Option<Record> {
    let mut table = RecordTable::open(&entry.path, &entry.stamp, limits)?;
    in_table(&mut table, entry, name, limits).flatten()
}

/// The record of that name, as this table of the archive knows it; the inner none: the archive has no such record. The
/// outer none: the table is damaged, or what it leads to could not be read, so that nothing is known.
pub(crate) fn in_table(
    table: &mut RecordTable,
    entry: &Entry,
    name: &RecordName,
    limits: &Limits,
) -> Option<Option<Record>> {
    let Some(prefix) = name.key() else { return Some(None) };
    let Some(row) = table.find(&prefix)? else { return Some(None) };
    let mut found = None;
    let mut keep = |frame: &FrameRef<'_>| {
        found = name.names(&entry.path, RecordRef::Frame(frame)).then(|| Record::new(&entry.path, frame))
    };
    records::read_frame(&entry.path, &entry.stamp, &row, limits, &mut keep).ok()?;
    found.map(Some)
}

/// Hands frames on until `more` says no, and reads no further. Whether the archive is damaged, if it was read to its end.
pub(crate) fn scan(
    entry: &Entry,
    limits: &Limits,
    mut more: impl FnMut(&FrameRef<'_>) -> bool,
) -> Result<bool, wit::Error> {
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

/// The same for what an archive of the older form has, with so many bytes of the text of each.
pub(crate) fn scan_legacy(
    entry: &Entry,
    limits: &Limits,
    text_bytes: u64,
    mut more: impl FnMut(&LegacyRef<'_>) -> bool,
) -> Result<bool, wit::Error> {
    let wanted = Cell::new(true);
    let mut sink = |item: LegacyItem<'_>| {
        if let LegacyItem::Found(legacy) = item
            && wanted.get()
        {
            wanted.set(more(legacy));
        }
    };
    let keep = usize::try_from(text_bytes).unwrap_or(usize::MAX);
    let mut scanner = LegacyScanner::new(&entry.path, limits).keep_records(keep);
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
