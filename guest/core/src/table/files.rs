//! What is known of every file of a workspace.
//!
//! ```text
//! 0   8  magic
//! 8   4  version
//! 12  8  settings: limits.header-bytes
//! 20  8  check over all that
//! 28     blocks: length (4), check over offset, length and content (8), content
//! ```
//!
//! A block's content is a list of statements; a later one about a path takes the place of an earlier one:
//!
//! ```text
//! path length (2), path, kind (1): 0, the file is gone, or
//! 1, size (8), token length (1), token, frames (8), legacy records (8), clean (1), digest (32)
//! ```
//!
//! The table is written whole, in ascending order of the paths, and then added to until half of it is out of date. A block
//! that is damaged or torn ends the table there: what lies behind is unknown again. Each statement is true by itself, so
//! no mixture of old and new blocks can be wrong, only incomplete.

use super::bytes::{Reader, check, put_number, put_text};
use super::{Stamp, VERSION};
use crate::digest::Digest;
use crate::source::Limits;
use std::collections::BTreeMap;

const MAGIC: &[u8; 8] = b"RCLXFILE";
const HEAD_BYTES: usize = 28;
const BLOCK_HEAD_BYTES: usize = 12;

/// A block is closed once it is that long.
const BLOCK_BYTES: usize = 128 * 1024;

/// So much may be out of date whatever the rest is.
const STALE_BYTES: usize = 64 * 1024;

/// Greatest length of a table. What does not fit is read again each time.
const TABLE_BYTES_MAX: usize = 64 << 20;

/// What reading a file has shown, apart from findings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileState {
    /// Its digest.
    pub root: Digest,
    /// Whole frames, if it is a v2 archive.
    pub frames: u64,
    /// Records, if it is an archive of the older form.
    pub legacy_records: u64,
    /// Nothing is wrong with its content. Otherwise it has to be read to say what.
    pub clean: bool,
}

/// How to bring the cache file up to date.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Save {
    /// It is.
    Nothing,
    /// Add `bytes` to the `length` bytes that were loaded.
    Append {
        /// The length the file must have.
        length: u64,
        /// What to add.
        bytes: Vec<u8>,
    },
    /// Replace it.
    Replace(Vec<u8>),
}

/// All that is known of files, as it was loaded and as it was found since.
#[derive(Clone, Debug)]
pub struct FileTable {
    bytes: Vec<u8>,
    settings: u64,
    /// Whether `bytes` is a whole sound table.
    sound: bool,
    /// Ascending by path, one for each; the newest statement.
    rows: Vec<RowAt>,
    /// The row behind the one that was asked about last: files are mostly asked about in order.
    next: usize,
    /// Found since: of each path what to say of it now.
    noted: BTreeMap<String, Noted>,
}

/// A statement within the table's bytes.
#[derive(Clone, Copy, Debug)]
struct RowAt {
    /// Of the path, whose length stands in the two bytes before.
    path: u32,
    path_length: u16,
    /// Of the last byte, and one.
    end: u32,
    gone: bool,
    seen: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Noted {
    size: u64,
    token: String,
    state: FileState,
}

impl FileTable {
    /// Of the cache file's bytes; none or damaged ones are a table that knows less.
    pub fn load(bytes: Vec<u8>, limits: &Limits) -> Self {
        let settings = limits.header_bytes as u64;
        let mut table = Self { bytes, settings, sound: false, rows: Vec::new(), next: 0, noted: BTreeMap::new() };
        if table.bytes.len() <= TABLE_BYTES_MAX {
            table.sound = table.parse().is_some();
        }
        if !table.rows.is_sorted_by(|a, b| table.path_bytes(a) < table.path_bytes(b)) {
            let mut rows = core::mem::take(&mut table.rows);
            // Stable, so the newest of one path comes last.
            rows.sort_by(|a, b| table.path_bytes(a).cmp(table.path_bytes(b)));
            rows.reverse();
            rows.dedup_by(|older, newer| table.path_bytes(older) == table.path_bytes(newer));
            rows.reverse();
            table.rows = rows;
        }
        table
    }

    /// What was noted in this one, over the file as somebody else has left it since.
    pub fn over(&self, bytes: Vec<u8>, limits: &Limits) -> Self {
        Self { noted: self.noted.clone(), ..Self::load(bytes, limits) }
    }

    /// What is known of the file at `path` in this version. Asking says that the file is still there.
    pub fn known(&mut self, path: &str, stamp: &Stamp<'_>) -> Option<FileState> {
        if let Some(noted) = self.noted.get(path) {
            return (noted.size == stamp.size && noted.token == stamp.token).then_some(noted.state);
        }
        let at = self.find(path)?;
        self.next = at + 1;
        let row = self.rows.get_mut(at)?;
        row.seen = true;
        let row = *row;
        let (size, token, state) = self.statement(&row)?;
        (size == stamp.size && token == stamp.token).then_some(state)
    }

    /// Keeps what reading this version has shown, unless the stamp is racy.
    pub fn note(&mut self, path: &str, stamp: &Stamp<'_>, state: FileState) {
        let fits = path.len() <= usize::from(u16::MAX) && stamp.token.len() <= usize::from(u8::MAX);
        if stamp.racy || !fits || self.known(path, stamp) == Some(state) {
            return;
        }
        let noted = Noted { size: stamp.size, token: stamp.token.to_owned(), state };
        self.noted.insert(path.to_owned(), noted);
    }

    /// Paths that are in the table and were not asked about: if all files were, those that are gone.
    pub fn unseen(&self) -> impl Iterator<Item = &str> {
        let unseen = self.rows.iter().filter(|row| !row.seen && !row.gone);
        unseen.map(|row| self.path(row)).filter(|path| !self.noted.contains_key(*path))
    }

    /// How to keep what was noted. `all_seen`: every file that is there was asked about, so that the others are gone.
    pub fn save(&self, all_seen: bool) -> Save {
        let gone = || self.unseen().filter(|_| all_seen);
        let new = self.noted.len() + gone().count();
        if self.sound && new == 0 {
            return Save::Nothing;
        }
        if self.sound {
            let mut blocks = Blocks::new(self.bytes.len());
            for (path, noted) in &self.noted {
                blocks.file(path, noted.size, &noted.token, &noted.state);
            }
            gone().for_each(|path| blocks.gone(path));
            let bytes = blocks.finish();
            let live: usize = self.rows.iter().filter(|row| !row.gone).map(|row| self.length(row)).sum();
            let whole = self.bytes.len() + bytes.len();
            if live + bytes.len() > TABLE_BYTES_MAX - STALE_BYTES {
                // Full: it would be written anew every time for nothing.
                return Save::Nothing;
            }
            if whole <= (live + bytes.len()) * 2 + STALE_BYTES && whole <= TABLE_BYTES_MAX {
                return Save::Append { length: self.bytes.len() as u64, bytes };
            }
        }
        Save::Replace(self.whole(all_seen))
    }

    /// The whole table anew.
    fn whole(&self, all_seen: bool) -> Vec<u8> {
        let mut out = MAGIC.to_vec();
        out.extend_from_slice(&VERSION.to_le_bytes());
        out.extend_from_slice(&self.settings.to_le_bytes());
        let seal = check(&[&out]);
        out.extend_from_slice(&seal);
        let mut blocks = Blocks::new(out.len());
        let mut noted = self.noted.iter().peekable();
        let kept = |row: &&RowAt| !row.gone && (row.seen || !all_seen) && !self.noted.contains_key(self.path(row));
        for row in self.rows.iter().filter(kept) {
            while let Some((path, found)) = noted.next_if(|(path, _)| path.as_str() < self.path(row)) {
                blocks.file(path, found.size, &found.token, &found.state);
            }
            if let Some((size, token, state)) = self.statement(row) {
                blocks.file(self.path(row), size, token, &state);
            }
        }
        for (path, found) in noted {
            blocks.file(path, found.size, &found.token, &found.state);
        }
        out.extend_from_slice(&blocks.finish());
        out
    }

    /// None: something is wrong with the table from where the rows end.
    fn parse(&mut self) -> Option<()> {
        let mut reader = Reader(&self.bytes);
        let head = reader.take(HEAD_BYTES - 8)?;
        let seal = reader.array::<8>()?;
        let mut fields = Reader(head);
        let sound = seal == check(&[head])
            && fields.array::<8>()? == *MAGIC
            && fields.number::<4>()? == u64::from(VERSION)
            && fields.number::<8>()? == self.settings;
        if !sound {
            return None;
        }
        while reader.end().is_none() {
            let offset = self.bytes.len() - reader.0.len();
            let length = reader.array::<4>()?;
            let seal = reader.array::<8>()?;
            let content = reader.take(usize::try_from(u32::from_le_bytes(length)).ok()?)?;
            if seal != check(&[&(offset as u64).to_le_bytes(), &length, content]) {
                return None;
            }
            let mut at = offset + BLOCK_HEAD_BYTES;
            let mut content = Reader(content);
            while content.end().is_none() {
                let before = content.0.len();
                let path = content.text::<2>()?;
                let gone = match content.number::<1>()? {
                    0 => true,
                    1 => {
                        content.take(8)?;
                        content.text::<1>()?;
                        content.take(8 + 8 + 1 + 32)?;
                        false
                    }
                    _ => return None,
                };
                let end = at + before - content.0.len();
                self.rows.push(RowAt {
                    path: u32::try_from(at + 2).ok()?,
                    path_length: u16::try_from(path.len()).ok()?,
                    end: u32::try_from(end).ok()?,
                    gone,
                    seen: false,
                });
                at = end;
            }
        }
        Some(())
    }

    fn path(&self, row: &RowAt) -> &str {
        // It was text when the table was loaded.
        core::str::from_utf8(self.path_bytes(row)).unwrap_or_default()
    }

    fn path_bytes(&self, row: &RowAt) -> &[u8] {
        let start = row.path as usize;
        self.bytes.get(start..start + usize::from(row.path_length)).unwrap_or_default()
    }

    fn length(&self, row: &RowAt) -> usize {
        (row.end as usize + 2).saturating_sub(row.path as usize)
    }

    fn find(&self, path: &str) -> Option<usize> {
        if self.rows.get(self.next).is_some_and(|row| self.path_bytes(row) == path.as_bytes()) {
            return Some(self.next);
        }
        self.rows.binary_search_by(|row| self.path_bytes(row).cmp(path.as_bytes())).ok()
    }

    /// None: the file is gone.
    fn statement(&self, row: &RowAt) -> Option<(u64, &str, FileState)> {
        if row.gone {
            return None;
        }
        let start = row.path as usize + usize::from(row.path_length) + 1;
        let mut reader = Reader(self.bytes.get(start..row.end as usize)?);
        let (size, token) = (reader.number::<8>()?, reader.text::<1>()?);
        let (frames, legacy_records) = (reader.number::<8>()?, reader.number::<8>()?);
        let clean = reader.number::<1>()? == 1;
        let root = Digest(reader.array()?);
        Some((size, token, FileState { root, frames, legacy_records, clean }))
    }
}

/// Statements being written, a block at a time.
struct Blocks {
    /// Of the first block in the file.
    offset: usize,
    out: Vec<u8>,
    content: Vec<u8>,
}

impl Blocks {
    fn new(offset: usize) -> Self {
        Self { offset, out: Vec::new(), content: Vec::new() }
    }

    fn file(&mut self, path: &str, size: u64, token: &str, state: &FileState) {
        self.add(path, |out| {
            put_number::<1>(out, 1)?;
            put_number::<8>(out, size)?;
            put_text::<1>(out, token)?;
            put_number::<8>(out, state.frames)?;
            put_number::<8>(out, state.legacy_records)?;
            put_number::<1>(out, u64::from(state.clean))?;
            out.extend_from_slice(&state.root.0);
            Some(())
        });
    }

    fn gone(&mut self, path: &str) {
        self.add(path, |out| put_number::<1>(out, 0));
    }

    /// Adds a statement, unless it cannot be written down.
    fn add(&mut self, path: &str, rest: impl FnOnce(&mut Vec<u8>) -> Option<()>) {
        let start = self.content.len();
        let whole = put_text::<2>(&mut self.content, path).and_then(|()| rest(&mut self.content));
        let length = self.offset + self.out.len() + BLOCK_HEAD_BYTES + self.content.len();
        if whole.is_none() || length > TABLE_BYTES_MAX {
            self.content.truncate(start);
        }
        if self.content.len() >= BLOCK_BYTES {
            self.close();
        }
    }

    fn close(&mut self) {
        if self.content.is_empty() {
            return;
        }
        let offset = ((self.offset + self.out.len()) as u64).to_le_bytes();
        let length = (self.content.len() as u32).to_le_bytes();
        let seal = check(&[&offset, &length, &self.content]);
        self.out.extend_from_slice(&length);
        self.out.extend_from_slice(&seal);
        self.out.append(&mut self.content);
    }

    fn finish(mut self) -> Vec<u8> {
        self.close();
        self.out
    }
}
