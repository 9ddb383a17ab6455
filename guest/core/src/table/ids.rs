//! From a record's id to its row.
//!
//! ```text
//! 0     8  magic
//! 8     4  version
//! 12    8  rows covered: the first so many
//! 20    8  the check behind the last of them
//! 28    8  check over all that
//! 36       pages: check (8), then up to 255 times key (12) and row (4), ascending by key
//! ```
//!
//! Keys are the beginnings of SHA-256 values and so spread evenly: where a key must lie can be computed to within a page
//! or two, however many there are.

use super::VERSION;
use super::bytes::{Check, Reader, check};
use super::rows::Key;
use core::cmp::Ordering;
use core::ops::Range;

const MAGIC: &[u8; 8] = b"RCLXIDS\n";
const HEAD_BYTES: usize = 36;
const ENTRY_BYTES: usize = 16;
const PAGE_ENTRIES: usize = 255;
const PAGE_BYTES: u64 = 8 + (PAGE_ENTRIES * ENTRY_BYTES) as u64;

/// How often a guess by interpolation may miss before the rest is halved. Ids chosen by somebody who wants this to be
/// slow cost a few pages more.
const GUESSES: u32 = 4;

/// The head of an id index: what is needed to search it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IdIndex {
    rows: u64,
    chain: Check,
    seal: Check,
}

impl IdIndex {
    /// The bytes of the file that [`IdIndex::read`] needs.
    pub const HEAD: Range<u64> = 0..HEAD_BYTES as u64;

    /// Reads the head. None if it is damaged or of another version.
    pub fn read(head: &[u8]) -> Option<Self> {
        let mut reader = Reader(head);
        let (magic, version) = (reader.array::<8>()?, reader.number::<4>()?);
        let (rows, chain) = (reader.number::<8>()?, reader.array()?);
        let seal: Check = reader.array()?;
        reader.end()?;
        let sound = magic == *MAGIC && version == u64::from(VERSION) && seal == Self::seal_of(rows, &chain);
        sound.then_some(Self { rows, chain, seal })
    }

    /// How many rows it covers: the first so many.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// The check behind the last of them, which says whether this index belongs to a file of rows.
    pub fn chain(&self) -> [u8; 8] {
        self.chain
    }

    /// The bytes of a page.
    pub fn page(&self, number: u64) -> Range<u64> {
        let start = HEAD_BYTES as u64 + number.saturating_mul(PAGE_BYTES);
        let left = self.rows.saturating_sub(number.saturating_mul(PAGE_ENTRIES as u64)).min(PAGE_ENTRIES as u64);
        start..start.saturating_add(8 + left * ENTRY_BYTES as u64)
    }

    /// How many pages there are.
    pub fn pages(&self) -> u64 {
        self.rows.div_ceil(PAGE_ENTRIES as u64)
    }

    /// Reads a page. None if it is damaged or not of this index.
    pub fn read_page(&self, number: u64, bytes: &[u8]) -> Option<Vec<(Key, u32)>> {
        let range = self.page(number);
        if bytes.len() as u64 != range.end - range.start {
            return None;
        }
        let (found, body) = bytes.split_first_chunk::<8>()?;
        if *found != check(&[&self.seal, &number.to_le_bytes(), body]) {
            return None;
        }
        let mut reader = Reader(body);
        let mut entries = Vec::with_capacity(PAGE_ENTRIES);
        while reader.end().is_none() {
            entries.push((reader.array()?, u32::from_le_bytes(reader.array()?)));
        }
        Some(entries)
    }

    /// The whole file: of `rows` rows with these keys, ascending; `chain` is the check behind the last row.
    pub fn write(keys: &[(Key, u32)], chain: [u8; 8]) -> Vec<u8> {
        let rows = keys.len() as u64;
        let seal = Self::seal_of(rows, &chain);
        let mut out = Vec::with_capacity(HEAD_BYTES + keys.len() * (ENTRY_BYTES + 1));
        out.extend_from_slice(MAGIC);
        out.extend_from_slice(&VERSION.to_le_bytes());
        out.extend_from_slice(&rows.to_le_bytes());
        out.extend_from_slice(&chain);
        out.extend_from_slice(&seal);
        let mut body = Vec::with_capacity(PAGE_BYTES as usize);
        for (number, page) in keys.chunks(PAGE_ENTRIES).enumerate() {
            body.clear();
            for (key, row) in page {
                body.extend_from_slice(key);
                body.extend_from_slice(&row.to_le_bytes());
            }
            out.extend_from_slice(&check(&[&seal, &(number as u64).to_le_bytes(), &body]));
            out.extend_from_slice(&body);
        }
        out
    }

    /// Looks for a row whose key begins with `prefix`, at least 8 bytes of it.
    pub fn search(&self, prefix: &[u8]) -> Search {
        let mut search = Search {
            prefix: prefix.to_vec(),
            pages: 0..self.pages(),
            keys: (0, u64::MAX),
            wanted: None,
            tries: 0,
            row: None,
        };
        search.guess();
        search
    }

    fn seal_of(rows: u64, chain: &Check) -> Check {
        check(&[MAGIC, &VERSION.to_le_bytes(), &rows.to_le_bytes(), chain])
    }
}

/// A search under way: give it the page it wants until it wants none.
#[derive(Clone, Debug)]
pub struct Search {
    prefix: Vec<u8>,
    /// Where the key may still be.
    pages: Range<u64>,
    /// Least and greatest key there can be in `pages`, by their first eight bytes.
    keys: (u64, u64),
    wanted: Option<u64>,
    tries: u32,
    row: Option<u32>,
}

impl Search {
    /// The number of the page to read next; none: the search is over.
    pub fn wanted(&self) -> Option<u64> {
        self.wanted
    }

    /// The row that was found.
    pub fn row(&self) -> Option<u32> {
        self.row
    }

    /// Takes the page that is wanted, as [`IdIndex::read_page`] read it.
    pub fn supply(&mut self, page: &[(Key, u32)]) {
        let Some(number) = self.wanted.take() else { return };
        let (Some((first, _)), Some((last, _))) = (page.first(), page.last()) else { return };
        match (self.order(first), self.order(last)) {
            (Ordering::Greater, _) => {
                self.pages.end = number;
                self.keys.1 = leading(first);
            }
            (_, Ordering::Less) => {
                self.pages.start = number + 1;
                self.keys.0 = leading(last);
            }
            _ => {
                let found = page.binary_search_by(|(key, _)| self.order(key));
                self.row = found.ok().and_then(|at| page.get(at)).map(|(_, row)| *row);
                return;
            }
        }
        self.guess();
    }

    /// How a key of the index compares with the one that is looked for.
    fn order(&self, key: &Key) -> Ordering {
        key.get(..self.prefix.len()).unwrap_or(key).cmp(&self.prefix)
    }

    fn guess(&mut self) {
        let Range { start, end } = self.pages;
        let Some(last) = end.checked_sub(1).filter(|last| *last >= start) else { return };
        self.tries += 1;
        let (least, most) = self.keys;
        let into = if self.tries > GUESSES {
            (end - start) / 2
        } else {
            let share = u128::from(leading(&self.prefix).saturating_sub(least)) * u128::from(end - start);
            u64::try_from(share / (u128::from(most.saturating_sub(least)) + 1)).unwrap_or(u64::MAX)
        };
        self.wanted = Some(start.saturating_add(into).min(last));
    }
}

/// The first eight bytes as a number that compares as they do.
fn leading(key: &[u8]) -> u64 {
    key.first_chunk::<8>().map_or(0, |first| u64::from_be_bytes(*first))
}

/// The keys of an index, page after page, and those of later rows in any order: all of them, ascending.
pub fn merge_keys(mut sorted: Vec<(Key, u32)>, later: impl IntoIterator<Item = (Key, u32)>) -> Vec<(Key, u32)> {
    sorted.extend(later);
    // Fast where most of it is in order already.
    sorted.sort();
    sorted
}
