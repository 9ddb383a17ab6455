//! What is known of an archive before something is added to it, and what is kept of it afterwards.
//!
//! A long archive has a record table in the cache (core's `table`): while it is about the version that is there, nothing
//! of the archive is read but records that have to be compared or changed and the chunks that the digest needs. Otherwise
//! the archive is read once, and its table made from that. Knows how to fetch and keep; what it all means core knows.

use core::ops::Range;
use std::collections::BTreeMap;

use recollex_core::digest::{CHUNK_BYTES, Chunks, Digest, FileDigest, FileHasher, Hasher};
use recollex_core::ids::{Location, SourceId};
use recollex_core::source::{
    Batch, Change, Existing, ExistingScan, Fault, FrameRef, Limits, Resume, Scanner, Stored, Tail,
};
use recollex_core::table::{
    ARCHIVE_BYTES_MIN, ArchiveFiles, ArchiveHead, FileState, FileTable, IdIndex, Key, REST_MAX, Row, RowLog, Rows,
    chunks_range, merge_keys, read_chunks, row_key, rows_length, rows_range, write_chunks,
};

use crate::bindings::recollex::memory::store::{Area, Entry, Expect, Stamp, StoreError};
use crate::cache;
use crate::tree::{self, Piece, Reader};

/// So many times [`REST_MAX`] rows are read in the hope that the index only lags behind.
const REST_FACTOR: u64 = 4;

/// The record table of one version of an archive.
pub(crate) struct RecordTable {
    files: ArchiveFiles,
    head: ArchiveHead,
    index: Option<IdIndex>,
    /// The rows that the index does not cover.
    rest: BTreeMap<Key, (u32, Row)>,
    /// The page of the index that was read last.
    page: Option<(u64, Vec<(Key, u32)>)>,
}

impl RecordTable {
    /// Of the archive at `path` in this version, if there is a sound one.
    pub(crate) fn open(path: &str, stamp: &Stamp, limits: &Limits) -> Option<Self> {
        if stamp.size < ARCHIVE_BYTES_MIN {
            return None;
        }
        let files = ArchiveFiles::of(path);
        let head = ArchiveHead::read(&cache::read_all(&files.head)?, path, limits)?;
        if !head.is_of(&tree::version(stamp)) {
            return None;
        }
        let index = if head.rows > REST_MAX { read_index(&files.ids, head.rows) } else { None };
        let covered = index.map_or(0, |index| index.rows());
        let count = head.rows.saturating_sub(covered);
        if count > REST_MAX * REST_FACTOR {
            return None;
        }
        let rows = Rows::read(&cache::read(&files.rows, rows_range(covered..head.rows))?, count)?;
        if rows.behind != head.chain || index.is_some_and(|index| index.chain() != rows.before) {
            return None;
        }
        let keyed = |(row, number): (Row, u64)| Some((row.key(), (u32::try_from(number).ok()?, row)));
        let rest = rows.rows.into_iter().zip(covered..).filter_map(keyed).collect();
        Some(Self { files, head, index, rest, page: None })
    }

    /// The row of the record whose key begins with `prefix`. The outer none: the table is damaged.
    pub(crate) fn find(&mut self, prefix: &[u8]) -> Option<Option<Row>> {
        let mut from = Key::default();
        from.get_mut(..prefix.len())?.copy_from_slice(prefix);
        if let Some((key, (_, row))) = self.rest.range(from..).next()
            && key.starts_with(prefix)
        {
            return Some(Some(row.clone()));
        }
        let Some(index) = self.index else { return Some(None) };
        let mut search = index.search(prefix);
        while let Some(number) = search.wanted() {
            search.supply(self.page(&index, number)?);
        }
        let Some(number) = search.row().map(u64::from) else { return Some(None) };
        let rows = Rows::read(&cache::read(&self.files.rows, rows_range(number..number + 1))?, 1)?;
        let row = rows.rows.into_iter().next()?;
        row.key().starts_with(prefix).then_some(Some(row))
    }

    fn page(&mut self, index: &IdIndex, number: u64) -> Option<&[(Key, u32)]> {
        if self.page.as_ref().is_none_or(|(kept, _)| *kept != number) {
            let bytes = cache::read(&self.files.ids, index.page(number))?;
            self.page = Some((number, index.read_page(number, &bytes)?));
        }
        self.page.as_ref().map(|(_, page)| page.as_slice())
    }

    /// The digests of the archive's whole chunks, if they were kept.
    fn chunks(&self) -> Option<Vec<Digest>> {
        let kept = &self.head.chunks;
        read_chunks(&cache::read(&self.files.chunks, chunks_range(kept.count()))?, kept)
    }

    /// The keys of all rows, ascending, those of `later` included.
    fn keys(&self, later: &[(Key, u32)]) -> Option<Vec<(Key, u32)>> {
        let mut sorted = Vec::new();
        if let Some(index) = &self.index {
            let bytes = cache::read_all(&self.files.ids)?;
            for number in 0..index.pages() {
                let range = index.page(number);
                let page = bytes.get(usize::try_from(range.start).ok()?..usize::try_from(range.end).ok()?)?;
                sorted.extend(index.read_page(number, page)?);
            }
        }
        let rest = self.rest.iter().map(|(key, (number, _))| (*key, *number));
        Some(merge_keys(sorted, rest.chain(later.iter().copied())))
    }
}

/// The index over the first of `rows` rows.
fn read_index(name: &str, rows: u64) -> Option<IdIndex> {
    IdIndex::read(&cache::read(name, IdIndex::HEAD)?).filter(|index| index.rows() <= rows)
}

/// Hands on the frame that a row speaks of, if it is there, however long its record is.
pub(crate) fn read_frame(
    path: &str,
    stamp: &Stamp,
    row: &Row,
    limits: &Limits,
    sink: &mut dyn FnMut(&FrameRef<'_>),
) -> Result<(), StoreError> {
    let from = Resume { bytes: row.offset, lines: row.line.saturating_sub(1), tail: Tail::AfterBlank };
    let mut scanner = Scanner::resume(Location::of_path(path), from, limits);
    let mut reader = Reader::part(Area::Tree, path, stamp, row.frame());
    while let Some(piece) = reader.next()? {
        match piece {
            Piece::Text(text) => scanner.push_text(&text, sink),
            Piece::Bytes(bytes) => scanner.push_bytes(&bytes, sink),
        }
    }
    scanner.finish(sink);
    Ok(())
}

/// An archive that something may be changed in.
pub(crate) struct Archive {
    path: String,
    /// What must still be there when something is changed.
    pub(crate) expect: Expect,
    at: Resume,
    basis: Basis,
}

/// Where knowledge of an archive comes from.
enum Basis {
    /// It was read, or does not exist. Frames, rows and digest of what is there.
    Read {
        frames: u64,
        log: RowLog,
        hasher: FileHasher,
        /// What was read is what its stamp stands for, also later.
        settled: bool,
    },
    /// Nothing but its table was read.
    Table(RecordTable),
}

impl Archive {
    /// Finds out what a batch must know of the archive at `path`.
    pub(crate) fn look(
        batch: &Batch,
        path: &str,
        limits: &Limits,
        files: &mut FileTable,
    ) -> Result<(Self, Existing), StoreError> {
        let entry = match tree::find(Area::Tree, path) {
            Ok(Some(entry)) => entry,
            Ok(None) => return Ok(Self::absent(path, Expect::Absent, limits)),
            // Something else lies where the archive or one of its directories belongs: the commit says what.
            Err(StoreError::Denied(_)) => return Ok(Self::absent(path, Expect::Any, limits)),
            Err(error) => return Err(error),
        };
        if let Some(table) = RecordTable::open(path, &entry.stamp, limits)
            && let Some((existing, table)) = from_table(table, batch, &entry, limits)
        {
            let expect = Expect::Same(entry.stamp);
            let archive = Self { path: path.to_owned(), expect, at: existing.at, basis: Basis::Table(table) };
            return Ok((archive, existing));
        }
        Self::read(batch, &entry, limits, files)
    }

    /// Hands the frame with this id on, if the archive has it, and says what is wrong with the archive, as far as it was
    /// read: one with a table is sound.
    pub(crate) fn find(
        entry: &Entry,
        id: &SourceId,
        limits: &Limits,
        files: &mut FileTable,
        sink: &mut dyn FnMut(&FrameRef<'_>),
    ) -> Result<(Self, Option<Fault>), StoreError> {
        let path = entry.path.clone();
        let expect = Expect::Same(entry.stamp.clone());
        if let Some(mut table) = RecordTable::open(&path, &entry.stamp, limits) {
            let row = table.find(&row_key(&id.digest()));
            let mut is_as_said = matches!(row, Some(None));
            if let Some(Some(row)) = row.filter(|row| row.as_ref().is_some_and(|row| row.is_of(&id.digest()))) {
                read_frame(&path, &entry.stamp, &row, limits, &mut |frame| {
                    if frame.id == id.as_str() {
                        is_as_said = true;
                        sink(frame);
                    }
                })?;
            }
            if is_as_said {
                return Ok((Self { path, expect, at: table.head.at, basis: Basis::Table(table) }, None));
            }
        }
        let mut log = RowLog::new(&path, limits);
        let mut frames = 0;
        let mut add = |frame: &FrameRef<'_>| {
            frames += 1;
            log.push(frame, None);
            if frame.id == id.as_str() {
                sink(frame);
            }
        };
        let mut scanner = Scanner::new(Some(Location::of_path(&path)), limits);
        let mut hasher = FileHasher::new();
        let mut reader = Reader::new(Area::Tree, entry);
        while let Some(piece) = reader.next()? {
            hasher.push(piece.as_bytes());
            match piece {
                Piece::Text(text) => scanner.push_text(&text, &mut add),
                Piece::Bytes(bytes) => scanner.push_bytes(&bytes, &mut add),
            }
        }
        let end = scanner.finish(&mut add);
        let at = Resume { bytes: end.bytes, lines: end.valid_prefix_lines, tail: end.tail };
        let settled = !entry.stamp.racy || files.known(&path, &tree::version(&entry.stamp)).is_some();
        let basis = Basis::Read { frames, log, hasher, settled };
        Ok((Self { path, expect, at, basis }, end.invalid_utf8.or(end.fault)))
    }

    fn absent(path: &str, expect: Expect, limits: &Limits) -> (Self, Existing) {
        let existing = Existing::absent();
        let basis = Basis::Read { frames: 0, log: RowLog::new(path, limits), hasher: FileHasher::new(), settled: true };
        (Self { path: path.to_owned(), expect, at: existing.at, basis }, existing)
    }

    fn read(
        batch: &Batch,
        entry: &Entry,
        limits: &Limits,
        files: &mut FileTable,
    ) -> Result<(Self, Existing), StoreError> {
        let path = entry.path.as_str();
        let mut log = RowLog::new(path, limits);
        let mut frames = 0;
        let mut scan = ExistingScan::new(batch, path, limits).also(|frame| {
            frames += 1;
            log.push(frame, None);
        });
        let mut hasher = FileHasher::new();
        let mut reader = Reader::new(Area::Tree, entry);
        while let Some(piece) = reader.next()? {
            hasher.push(piece.as_bytes());
            match piece {
                Piece::Text(text) => scan.push_text(&text),
                Piece::Bytes(bytes) => scan.push_bytes(&bytes),
            }
        }
        let existing = scan.finish();
        // A stamp that was reliable once is reliable for good.
        let settled = !entry.stamp.racy || files.known(path, &tree::version(&entry.stamp)).is_some();
        let basis = Basis::Read { frames, log, hasher, settled };
        let expect = Expect::Same(entry.stamp.clone());
        Ok((Self { path: path.to_owned(), expect, at: existing.at, basis }, existing))
    }

    /// Where it lies.
    pub(crate) fn path(&self) -> &str {
        &self.path
    }

    /// The version that was looked at; none: there is no file.
    pub(crate) fn stamp(&self) -> Option<&Stamp> {
        match &self.expect {
            Expect::Same(stamp) => Some(stamp),
            Expect::Any | Expect::Absent => None,
        }
    }

    /// How many records it has.
    pub(crate) fn records(&self) -> u64 {
        match &self.basis {
            Basis::Read { frames, .. } => *frames,
            Basis::Table(table) => table.head.rows,
        }
    }

    /// Whether the archive is long enough for a table of its records, once `change` is added to it.
    pub(crate) fn is_long(change: &Change) -> bool {
        change.from.bytes.saturating_add(change.text.len() as u64) >= ARCHIVE_BYTES_MIN
    }

    /// Keeps what is known of the archive now: `change` was added to it, so many `records`, which made the version `stamp`.
    /// `contents`: the digests of what they say by their ids, if the archive [is long](Self::is_long).
    pub(crate) fn keep_added(
        self,
        change: &Change,
        stamp: &Stamp,
        records: u64,
        contents: &BTreeMap<&str, Digest>,
        limits: &Limits,
        files: &mut FileTable,
    ) {
        let size = change.from.bytes.saturating_add(change.text.len() as u64);
        if stamp.racy || stamp.size != size {
            return;
        }
        let (mut log, hasher, before) = match self.basis {
            Basis::Read { settled: false, .. } => return,
            Basis::Read { frames, mut hasher, .. } if !Self::is_long(change) => {
                hasher.push(change.text.as_bytes());
                let frames = frames.saturating_add(records);
                let state = FileState { root: hasher.finish().root, frames, legacy_records: 0, clean: true };
                files.note(&self.path, &tree::version(stamp), state);
                return;
            }
            Basis::Read { frames, log, hasher, .. } => (log, Some(hasher), (frames, None)),
            Basis::Table(table) => {
                let hasher = go_on(&self.path, stamp, table.head.chunks.clone(), change.from.bytes);
                (RowLog::resume(table.head.rows, table.head.chain), hasher, (table.head.rows, Some(table)))
            }
        };
        let (Some(mut hasher), (frames, table)) = (hasher, before) else { return };
        hasher.push(change.text.as_bytes());
        let mut scanner = Scanner::resume(Location::of_path(&self.path), change.from, limits);
        let mut add = |frame: &FrameRef<'_>| log.push(frame, contents.get(frame.id));
        scanner.push_text(&change.text, &mut add);
        let end = scanner.finish(&mut add);
        let Some(at) = end.resume() else { return };
        let version = Version { path: &self.path, stamp, at, frames: frames.saturating_add(end.frames) };
        version.keep(hasher.finish(), &log, table.as_ref(), limits, files);
    }

    /// Keeps what is known of the archive now: these bytes were replaced by as many, without a change to where anything
    /// stands, which made the version `stamp`.
    pub(crate) fn keep_replaced(self, bytes: Range<u64>, stamp: &Stamp, limits: &Limits, files: &mut FileTable) {
        if stamp.racy || stamp.size != self.at.bytes {
            return;
        }
        let (frames, log, sums, table) = match self.basis {
            Basis::Read { settled: false, .. } => return,
            Basis::Read { frames, log, hasher, .. } => (frames, log, Some(hasher.finish().added), None),
            Basis::Table(table) => {
                let log = RowLog::resume(table.head.rows, table.head.chain);
                (table.head.rows, log, table.chunks(), Some(table))
            }
        };
        let Some(digest) = sums.and_then(|sums| rehash(&self.path, stamp, sums, bytes)) else { return };
        let version = Version { path: &self.path, stamp, at: self.at, frames };
        version.keep(digest, &log, table.as_ref(), limits, files);
    }

    /// Keeps what reading it has shown; nothing was added.
    pub(crate) fn keep_unchanged(&self, limits: &Limits, files: &mut FileTable) {
        let (Basis::Read { frames, log, hasher, settled: true }, Some(stamp)) = (&self.basis, self.stamp()) else {
            return;
        };
        if !matches!(self.at.tail, Tail::Damaged | Tail::Empty) {
            // It is reliable, whatever a stamp taken now says.
            let stamp = &Stamp { racy: false, ..stamp.clone() };
            let version = Version { path: &self.path, stamp, at: self.at, frames: *frames };
            version.keep(hasher.clone().finish(), log, None, limits, files);
        }
    }
}

/// What a batch must know of an archive, from its table. None: the table says what is not so.
fn from_table(
    mut table: RecordTable,
    batch: &Batch,
    entry: &Entry,
    limits: &Limits,
) -> Option<(Existing, RecordTable)> {
    let mut offered: Vec<_> = batch.offered(&entry.path).map(|(id, content)| (id.digest(), id, content)).collect();
    // Neighbours share a page of the index.
    offered.sort_by_key(|(digest, ..)| *digest);
    let mut existing = Existing { at: table.head.at, ..Existing::absent() };
    let mut others = BTreeMap::new();
    for (digest, id, content) in offered {
        let Some(row) = table.find(&row_key(&digest))? else { continue };
        if !row.is_of(&digest) {
            return None;
        }
        let content = content();
        if row.has_content(&content) {
            existing.known.insert(id.as_str().to_owned(), content);
        } else {
            others.insert(id.as_str(), row);
        }
    }
    for (id, row) in others {
        if existing.known.contains_key(id) {
            continue;
        }
        let mut found = None;
        let mut keep = |frame: &FrameRef<'_>| found = Some(Stored::new(frame)).filter(|stored| stored.id == id);
        read_frame(&entry.path, &entry.stamp, &row, limits, &mut keep).ok()?;
        existing.stored.push(found?);
    }
    for id in batch.predecessors(&entry.path) {
        let digest = id.digest();
        if let Some(row) = table.find(&row_key(&digest))? {
            if !row.is_of(&digest) {
                return None;
            }
            existing.predecessors.insert(id);
        }
    }
    Some((existing, table))
}

/// The digest of the archive in its version `stamp`, in which these bytes are not what they were when its whole chunks had
/// these digests: only their chunks are read, and the one at the end.
fn rehash(path: &str, stamp: &Stamp, mut sums: Vec<Digest>, bytes: Range<u64>) -> Option<FileDigest> {
    let chunk = CHUNK_BYTES as u64;
    for number in bytes.start / chunk..bytes.end.div_ceil(chunk) {
        // None: it lies in the chunk at the end.
        let Some(sum) = sums.get_mut(usize::try_from(number).ok()?) else { continue };
        let mut hasher = Hasher::new();
        let range = number * chunk..(number + 1) * chunk;
        let mut reader = Reader::part(Area::Tree, path, stamp, range);
        while let Some(piece) = reader.next().ok()? {
            hasher.push(piece.as_bytes());
        }
        *sum = hasher.finish();
    }
    let end = go_on(path, stamp, Chunks::of(&sums), stamp.size)?.finish();
    // The end was no whole chunk before, and is none now.
    Some(FileDigest { added: sums, ..end })
}

/// The hash of the archive's first `bytes` bytes, going on behind these whole chunks.
fn go_on(path: &str, stamp: &Stamp, chunks: Chunks, bytes: u64) -> Option<FileHasher> {
    let mut hasher = FileHasher::resume(chunks);
    let mut reader = Reader::part(Area::Tree, path, stamp, hasher.offset()..bytes);
    while let Some(piece) = reader.next().ok()? {
        hasher.push(piece.as_bytes());
    }
    (hasher.offset() == bytes).then_some(hasher)
}

/// A version of an archive of which everything is known.
struct Version<'a> {
    path: &'a str,
    stamp: &'a Stamp,
    at: Resume,
    frames: u64,
}

impl Version<'_> {
    /// Keeps it: its record table, if it is long enough for one, and its line in the file table. `log` has all rows, or
    /// those that come behind `table`; `digest` has all whole chunks, or those that come behind.
    fn keep(
        &self,
        digest: FileDigest,
        log: &RowLog,
        table: Option<&RecordTable>,
        limits: &Limits,
        files: &mut FileTable,
    ) {
        let state = FileState { root: digest.root, frames: self.frames, legacy_records: 0, clean: true };
        files.note(self.path, &tree::version(self.stamp), state);
        let Some(rows) = log.bytes().filter(|_| self.stamp.size >= ARCHIVE_BYTES_MIN) else { return };
        let head = ArchiveHead {
            size: self.stamp.size,
            token: self.stamp.token.clone(),
            at: self.at,
            chunks: digest.chunks,
            rows: log.rows(),
            chain: log.chain(),
        };
        let names = ArchiveFiles::of(self.path);
        let all = head.chunks.count();
        let Some(head) = head.write(self.path, limits) else { return };
        let written = match table {
            Some(table) => cache::append(&names.rows, rows_length(table.head.rows), rows),
            None => cache::put(&names.rows, rows),
        };
        if !written {
            return;
        }
        let covered = table.and_then(|table| table.index).map_or(0, |index| index.rows());
        if log.rows().saturating_sub(covered) > REST_MAX {
            let keys = match table {
                Some(table) => table.keys(log.keys()),
                None => Some(merge_keys(log.keys().to_vec(), [])),
            };
            if let Some(keys) = keys {
                cache::put(&names.ids, &IdIndex::write(&keys, log.chain()));
            }
        }
        // Unless all of them are here, they come behind those that are kept. Where that goes wrong they are not sound, and
        // the next change that needs them reads the archive.
        let before = all.saturating_sub(digest.added.len() as u64);
        match (before, write_chunks(&digest.added)) {
            (0, sums) => cache::put(&names.chunks, &sums),
            (_, sums) if sums.is_empty() => true,
            (before, sums) => cache::append(&names.chunks, chunks_range(before).end, &sums),
        };
        // Last: it is what says that the others are sound.
        cache::put(&names.head, &head);
    }
}
