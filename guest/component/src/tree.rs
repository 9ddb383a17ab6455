//! Reading the workspace through the `store` import: listings and files, piece by piece.
//!
//! Knows pages, stamps and the two ways to read. Must not know what the bytes mean.

use core::ops::Range;

use recollex_core::ids::is_v2_path;
use recollex_core::table;

use crate::bindings::recollex::memory::store::{self, Area, Entry, Kind, Stamp, StoreError};

/// Bytes asked for at a time. Large enough that the crossing costs nothing, small enough for any guest.
const PIECE: u32 = 1 << 20;

/// How often a listing is begun again because a commit came in between, before it is taken as an error.
const LISTING_TRIES: u32 = 8;

/// Everything below `prefix`, of one generation.
pub(crate) fn list(area: Area, prefix: &str) -> Result<Vec<Entry>, StoreError> {
    for _ in 0..LISTING_TRIES {
        if let Some(entries) = try_list(area, prefix)? {
            return Ok(entries);
        }
    }
    Err(StoreError::Changed)
}

/// None: a commit came between two pages.
fn try_list(area: Area, prefix: &str) -> Result<Option<Vec<Entry>>, StoreError> {
    let first = store::entries(area, prefix, None, 0)?;
    let mut entries = first.entries;
    let mut next = first.next;
    while let Some(cursor) = next {
        let page = store::entries(area, prefix, Some(&cursor), 0)?;
        if page.generation != first.generation {
            return Ok(None);
        }
        entries.extend(page.entries);
        next = page.next;
    }
    Ok(Some(entries))
}

/// The entry at `path`; none if nothing is there.
pub(crate) fn find(area: Area, path: &str) -> Result<Option<Entry>, StoreError> {
    match store::stat(area, path) {
        Ok(entry) => Ok(Some(entry)),
        Err(StoreError::NotFound) => Ok(None),
        Err(error) => Err(error),
    }
}

/// A piece of a file.
pub(crate) enum Piece {
    /// As long as the file is text.
    Text(String),
    /// From the first byte on that is not.
    Bytes(Vec<u8>),
}

impl Piece {
    /// Its bytes, whichever way they came.
    pub(crate) fn as_bytes(&self) -> &[u8] {
        match self {
            Self::Text(text) => text.as_bytes(),
            Self::Bytes(bytes) => bytes,
        }
    }
}

/// A file, or a part of one, being read from its start to its end, at one version.
///
/// What was listed and is gone has changed since: whoever reads looks again, and then it is not there.
pub(crate) struct Reader {
    area: Area,
    path: String,
    at: Stamp,
    may_grow: bool,
    offset: u64,
    end: u64,
    as_text: bool,
    ended: bool,
}

impl Reader {
    /// Starts at the beginning of `entry`'s file.
    pub(crate) fn new(area: Area, entry: &Entry) -> Self {
        Self::part(area, &entry.path, &entry.stamp, 0..u64::MAX)
    }

    /// Of a file of the tree, as it was listed. An archive may be added to meanwhile: it is read up to the length it had, so
    /// that no writer, however busy, keeps readers waiting. One that was put in the place of another, as taking a commit
    /// back does, is another version.
    pub(crate) fn listed(entry: &Entry) -> Self {
        if is_v2_path(&entry.path) {
            Self { may_grow: true, ..Self::part(Area::Tree, &entry.path, &entry.stamp, 0..entry.stamp.size) }
        } else {
            Self::new(Area::Tree, entry)
        }
    }

    /// Of these bytes of the file, as far as it has them.
    pub(crate) fn part(area: Area, path: &str, at: &Stamp, range: Range<u64>) -> Self {
        let Range { start: offset, end } = range;
        Self {
            area,
            path: path.to_owned(),
            at: at.clone(),
            may_grow: false,
            offset,
            end,
            as_text: true,
            ended: offset >= end,
        }
    }

    /// Of the next byte to be read.
    pub(crate) fn offset(&self) -> u64 {
        self.offset
    }

    /// The next piece; none at the end. Fails with `changed` when the file is no longer the version listed.
    pub(crate) fn next(&mut self) -> Result<Option<Piece>, StoreError> {
        if self.ended {
            return Ok(None);
        }
        self.read_on().map(Some).map_err(|error| match error {
            StoreError::NotFound => StoreError::Changed,
            error => error,
        })
    }

    fn read_on(&mut self) -> Result<Piece, StoreError> {
        let left = self.end.saturating_sub(self.offset);
        let want = u32::try_from(left).unwrap_or(PIECE).min(PIECE);
        let at = (!self.may_grow).then_some(&self.at);
        if self.as_text {
            match store::read_text(self.area, &self.path, at, self.offset, want) {
                // One character may be longer than what is left of a part: then its bytes are asked for.
                Ok(chunk) if chunk.text.len() as u64 > left => self.as_text = false,
                Ok(chunk) => {
                    self.check(&chunk.stamp)?;
                    self.offset = chunk.next;
                    self.ended = chunk.eof || self.offset >= self.end;
                    self.check_length()?;
                    return Ok(Piece::Text(chunk.text));
                }
                Err(StoreError::NotText(_)) => self.as_text = false,
                Err(error) => return Err(error),
            }
        }
        let chunk = store::read_bytes(self.area, &self.path, at, self.offset, want)?;
        self.check(&chunk.stamp)?;
        self.offset = self.offset.saturating_add(chunk.data.len() as u64);
        // A host that answers nothing and says that more follows would keep us here for ever.
        self.ended = chunk.eof || chunk.data.is_empty() || self.offset >= self.end;
        self.check_length()?;
        Ok(Piece::Bytes(chunk.data))
    }

    /// What was read must be of the version listed, or of one that it was added to.
    fn check(&self, now: &Stamp) -> Result<(), StoreError> {
        let may_be = !self.may_grow || has_grown_from(&self.at, now);
        if may_be { Ok(()) } else { Err(StoreError::Changed) }
    }

    /// A file that ends before it did when it was listed was not only added to.
    fn check_length(&self) -> Result<(), StoreError> {
        if self.may_grow && self.ended && self.offset < self.end { Err(StoreError::Changed) } else { Ok(()) }
    }
}

/// Whether a version begins with the bytes of an earlier one, as far as stamps say: it is the same, or the same file with
/// something added.
fn has_grown_from(before: &Stamp, now: &Stamp) -> bool {
    let file = |stamp: &Stamp| stamp.token.rsplit_once('-').map(|(_, file)| file.to_owned());
    let is_same = now.size == before.size && now.token == before.token;
    is_same
        || (now.size >= before.size && file(now).is_some_and(|now| file(before).is_some_and(|before| before == now)))
}

/// At most `length` bytes of text from `offset` on, at the version `at`; shorter if the file ends there. A version that is
/// gone has changed.
pub(crate) fn read_range(
    area: Area,
    path: &str,
    at: Option<&Stamp>,
    offset: u64,
    length: u64,
) -> Result<String, StoreError> {
    let mut text = String::new();
    let end = offset.saturating_add(length);
    let mut from = offset;
    while from < end {
        let want = u32::try_from(end - from).unwrap_or(PIECE).min(PIECE);
        let chunk = store::read_text(area, path, at, from, want).map_err(|error| match error {
            StoreError::NotFound if at.is_some() => StoreError::Changed,
            error => error,
        })?;
        text.push_str(&chunk.text);
        if chunk.eof || chunk.next <= from {
            break;
        }
        from = chunk.next;
    }
    // A host hands out at least one character, which may be longer than what was left to ask for.
    let most = usize::try_from(length).unwrap_or(usize::MAX);
    if text.len() > most {
        let cut = text.floor_char_boundary(most);
        text.truncate(cut);
    }
    Ok(text)
}

/// Whether an entry is a file that can be read.
pub(crate) fn is_file(entry: &Entry) -> bool {
    matches!(entry.kind, Kind::File)
}

/// A stamp as core's tables take it.
pub(crate) fn version(stamp: &Stamp) -> table::Stamp<'_> {
    table::Stamp { size: stamp.size, token: &stamp.token, racy: stamp.racy }
}
