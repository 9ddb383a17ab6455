//! A row a record, in the order of the file.
//!
//! ```text
//! 0   8  magic
//! 8   8  check over magic, version, settings and the archive's path: the check before row 0
//! 16  80 row 0, row 1, …
//! ```
//!
//! Each row ends with a check over itself and the check before it. So the check behind a row speaks for all rows up to
//! there, whoever holds one can tell whether a file has those rows, and a row is verified with the eight bytes before it.

use super::VERSION;
use super::bytes::{Check, Reader, check, put_number};
use crate::digest::Digest;
use crate::source::{FrameRef, Limits};
use core::ops::Range;

const MAGIC: &[u8; 8] = b"RCLXROWS";
const HEAD_BYTES: u64 = 16;
const ROW_BYTES: u64 = 80;
const CHECK_BYTES: u64 = 8;

/// Rows that a table has at most; archives of more records have none. It bounds what an index takes in memory, and what
/// a rebuild hands to the host in one call.
pub const ROWS_MAX: u64 = 1 << 20;

/// What an id index sorts by: the beginning of the SHA-256 of a record's id.
pub type Key = [u8; 12];

/// What is known of a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// The first half of the SHA-256 of its id.
    pub id: [u8; 16],
    /// The first half of its content digest; none: not known.
    pub content: Option<[u8; 16]>,
    /// Of its frame's first byte.
    pub offset: u64,
    /// Bytes from there to the record.
    pub header: u64,
    /// Of the record, without its last LF.
    pub length: u64,
    /// Of its frame's first line, from 1.
    pub line: u64,
    /// How many lines the record has.
    pub lines: u64,
}

impl Row {
    /// Of a frame, and its content digest if that is known.
    pub fn new(frame: &FrameRef<'_>, content: Option<&Digest>) -> Self {
        Self {
            id: half(&frame.id_digest),
            content: content.map(half),
            offset: frame.offset,
            header: frame.record_offset.saturating_sub(frame.offset),
            length: frame.record_length,
            line: frame.anchor_line,
            lines: frame.record_lines,
        }
    }

    /// What it is found by.
    pub fn key(&self) -> Key {
        key_of(&self.id)
    }

    /// Whether this is the row of the record with that id.
    pub fn is_of(&self, id: &Digest) -> bool {
        self.id == half(id)
    }

    /// Whether the record is known to have that content.
    pub fn has_content(&self, content: &Digest) -> bool {
        self.content == Some(half(content))
    }

    /// The bytes of its frame, the empty line at the end included, as far as the file has one.
    pub fn frame(&self) -> Range<u64> {
        let end = self.offset.saturating_add(self.header).saturating_add(self.length).saturating_add(2);
        self.offset..end
    }

    fn write(&self, out: &mut Vec<u8>) -> Option<()> {
        out.extend_from_slice(&self.id);
        out.extend_from_slice(&self.content.unwrap_or_default());
        put_number::<6>(out, self.offset)?;
        put_number::<4>(out, self.header)?;
        put_number::<6>(out, self.length)?;
        put_number::<5>(out, self.line)?;
        put_number::<4>(out, self.lines)?;
        // Speaker (4), day (4), length norm (1) and what else the search index will keep here. Not trust: a promotion changes
        // that, and rows are only added.
        out.extend_from_slice(&[0; 15]);
        Some(())
    }

    fn read(bytes: &[u8]) -> Option<Self> {
        let mut reader = Reader(bytes);
        Some(Self {
            id: reader.array()?,
            content: reader.array().map(|content| (content != [0; 16]).then_some(content))?,
            offset: reader.number::<6>()?,
            header: reader.number::<4>()?,
            length: reader.number::<6>()?,
            line: reader.number::<5>()?,
            lines: reader.number::<4>()?,
        })
    }
}

fn half(digest: &Digest) -> [u8; 16] {
    core::array::from_fn(|at| digest.0.get(at).copied().unwrap_or_default())
}

/// The key of the record whose id has that SHA-256.
pub fn row_key(id: &Digest) -> Key {
    key_of(&half(id))
}

fn key_of(id: &[u8; 16]) -> Key {
    core::array::from_fn(|at| id.get(at).copied().unwrap_or_default())
}

/// The check before row 0.
fn seed(path: &str, limits: &Limits) -> Check {
    check(&[MAGIC, &VERSION.to_le_bytes(), &(limits.header_bytes as u64).to_le_bytes(), path.as_bytes()])
}

/// Length of the file with that many rows.
pub fn rows_length(rows: u64) -> u64 {
    HEAD_BYTES.saturating_add(rows.saturating_mul(ROW_BYTES))
}

/// The bytes of the file that [`Rows::read`] needs for these rows: the check before them comes first.
pub fn rows_range(rows: Range<u64>) -> Range<u64> {
    rows_length(rows.start).saturating_sub(CHECK_BYTES)..rows_length(rows.end)
}

/// Rows that were read, whole and in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rows {
    /// The check before the first.
    pub before: [u8; 8],
    /// They.
    pub rows: Vec<Row>,
    /// The check behind the last.
    pub behind: [u8; 8],
}

impl Rows {
    /// Reads the bytes of a [`rows_range`]. None if there are too few or too many for `count` rows, or one of them is
    /// damaged.
    pub fn read(bytes: &[u8], count: u64) -> Option<Self> {
        let mut reader = Reader(bytes);
        let before: Check = reader.array()?;
        let mut behind = before;
        let mut rows = Vec::new();
        for _ in 0..count {
            let body = reader.take((ROW_BYTES - CHECK_BYTES) as usize)?;
            let found: Check = reader.array()?;
            if found != check(&[&behind, body]) {
                return None;
            }
            behind = found;
            rows.push(Row::read(body)?);
        }
        reader.end()?;
        Some(Self { before, rows, behind })
    }
}

/// Rows being written: of a whole archive, or of what is added to one.
#[derive(Clone, Debug)]
pub struct RowLog {
    bytes: Vec<u8>,
    keys: Vec<(Key, u32)>,
    rows: u64,
    chain: Check,
    fits: bool,
}

impl RowLog {
    /// For the archive at `path`, from its first record on.
    pub fn new(path: &str, limits: &Limits) -> Self {
        let chain = seed(path, limits);
        let mut bytes = MAGIC.to_vec();
        bytes.extend_from_slice(&chain);
        Self { bytes, keys: Vec::new(), rows: 0, chain, fits: true }
    }

    /// For what comes behind `rows` rows, the last of which has the check `chain`.
    pub fn resume(rows: u64, chain: [u8; 8]) -> Self {
        Self { bytes: Vec::new(), keys: Vec::new(), rows, chain, fits: true }
    }

    /// Adds a record.
    pub fn push(&mut self, frame: &FrameRef<'_>, content: Option<&Digest>) {
        if self.rows >= ROWS_MAX {
            // The rest is not kept either, so that memory stays bounded.
            self.fits = false;
            self.bytes = Vec::new();
            self.keys = Vec::new();
        }
        if !self.fits {
            return;
        }
        let row = Row::new(frame, content);
        let start = self.bytes.len();
        self.fits = row.write(&mut self.bytes).is_some();
        self.chain = check(&[&self.chain, self.bytes.get(start..).unwrap_or_default()]);
        self.bytes.extend_from_slice(&self.chain);
        self.keys.push((row.key(), self.rows as u32));
        self.rows += 1;
    }

    /// Rows in all, those before this log included.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// The check behind the last row.
    pub fn chain(&self) -> [u8; 8] {
        self.chain
    }

    /// What to write: the whole file, or what to add to it. None: the archive is too long for a table.
    pub fn bytes(&self) -> Option<&[u8]> {
        self.fits.then_some(&self.bytes)
    }

    /// Keys of the rows in this log and their numbers, in the order of the rows.
    pub fn keys(&self) -> &[(Key, u32)] {
        &self.keys
    }
}
