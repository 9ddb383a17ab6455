//! The layout of a segment's content.
//!
//! ```text
//! 0    8   magic
//! 8    4   version
//! 12   8   settings: a check over what decides how documents are indexed
//! 20   4   documents
//! 24   4   CRC-32 over all sections
//! 28   16  for each section: offset, length (8 each)
//! 220  8   seal: a check over all that
//! 228      sections, in this order; those of the dictionary and of postings begin with a page
//! ```
//!
//! | section | content |
//! |---|---|
//! | runs | files: how many (4), for each its path (4, n); runs: how many (4), for each file (4), ordinal (4), documents (4), languages (2), whether a version is known (1: 0 no, 1 yes, 2 yes and the file has faults) and if so length (8) and token (1, n) |
//! | speakers | how many (4), for each id, display and label, folded (4, n each) |
//! | lengths | a length code for each document (1) |
//! | traits | of each document (1) |
//! | spoken | the speaker of each document (2), 65,535 where there is none |
//! | days | of each document (4): a span's code, 0 where there is none |
//! | places | of each document: offset (6), header (4), length (6), line (5) |
//! | id ends | where the id of each document ends in the next section (4) |
//! | ids | one after the other |
//! | fences | how many blocks the dictionary has (4), for each its first term (1, n) |
//! | dictionary | blocks of a page each |
//! | postings | four bytes each |
//!
//! A block of the dictionary is a page: how many terms (2), for each where its text ends in the block (2), its first
//! posting (4) and how many there are, less one (2); then the texts. Terms ascend by their bytes.

use super::pages::Seal;
use crate::table::Stamp;
use crate::table::bytes::{Reader, check, put_number};
use core::ops::Range;

const MAGIC: &[u8; 8] = b"RCLXSEGM";

/// Any change of the layout, or of what becomes of a text, raises it.
pub(in crate::search) const VERSION: u32 = 3;

/// Bytes before the sections.
pub(super) const HEAD_BYTES: u64 = 28 + 16 * Section::ALL.len() as u64 + 8;

/// Bytes of a place.
pub(super) const PLACE_BYTES: u64 = 21;

/// Bytes that a block has for each term beside its text.
pub(super) const ENTRY_BYTES: usize = 8;

/// What stands for no speaker.
pub(super) const NO_SPEAKER: u16 = u16::MAX;

/// A part of a segment's content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::search) enum Section {
    Runs,
    Speakers,
    Lengths,
    Traits,
    Spoken,
    Days,
    Places,
    IdEnds,
    Ids,
    Fences,
    Dictionary,
    Postings,
}

impl Section {
    /// In their order.
    pub(super) const ALL: [Section; 12] = [
        Section::Runs,
        Section::Speakers,
        Section::Lengths,
        Section::Traits,
        Section::Spoken,
        Section::Days,
        Section::Places,
        Section::IdEnds,
        Section::Ids,
        Section::Fences,
        Section::Dictionary,
        Section::Postings,
    ];

    /// Those that are read when a segment is opened.
    pub(super) const AT_ONCE: [Section; 5] =
        [Section::Runs, Section::Speakers, Section::Lengths, Section::Traits, Section::Fences];
}

/// A file's version, as a store tells it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::search) struct Version {
    pub(in crate::search) size: u64,
    /// At most 255 bytes.
    pub(in crate::search) token: String,
    /// Something is wrong with the file, and it takes reading to say what.
    pub(in crate::search) faulty: bool,
}

impl Version {
    pub(in crate::search) fn of(stamp: &Stamp<'_>, faulty: bool) -> Version {
        Version { size: stamp.size, token: stamp.token.to_owned(), faulty }
    }
}

/// The beginning of a segment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) settings: Seal,
    pub(super) documents: u32,
    pub(super) sum: u32,
    pub(super) sections: [(u64, u64); Section::ALL.len()],
}

impl Head {
    pub(super) fn section(&self, section: Section) -> Range<u64> {
        let (offset, length) = self.sections.get(section as usize).copied().unwrap_or_default();
        offset..offset.saturating_add(length)
    }

    /// Of the whole content.
    pub(super) fn length(&self) -> u64 {
        self.sections.iter().map(|(offset, length)| offset.saturating_add(*length)).max().unwrap_or(0).max(HEAD_BYTES)
    }

    fn body(&self) -> Vec<u8> {
        let mut out = MAGIC.to_vec();
        out.extend_from_slice(&VERSION.to_le_bytes());
        out.extend_from_slice(&self.settings);
        out.extend_from_slice(&self.documents.to_le_bytes());
        out.extend_from_slice(&self.sum.to_le_bytes());
        for (offset, length) in self.sections {
            out.extend_from_slice(&offset.to_le_bytes());
            out.extend_from_slice(&length.to_le_bytes());
        }
        out
    }

    pub(super) fn seal(&self) -> Seal {
        check(&[&self.body()])
    }

    /// As it stands in the file.
    pub(super) fn write(&self) -> Vec<u8> {
        let mut out = self.body();
        let seal = check(&[&out]);
        out.extend_from_slice(&seal);
        out
    }

    /// Of the beginning of a file. None: it is none of this version, or damaged, or makes no sense.
    pub(super) fn read(bytes: &[u8]) -> Option<Head> {
        let mut reader = Reader(bytes);
        let body = reader.take(usize::try_from(HEAD_BYTES).ok()? - 8)?;
        let seal: Seal = reader.array()?;
        if seal != check(&[body]) {
            return None;
        }
        let mut fields = Reader(body);
        if fields.array::<8>()? != *MAGIC || fields.number::<4>()? != u64::from(VERSION) {
            return None;
        }
        let settings = fields.array()?;
        let documents = u32::try_from(fields.number::<4>()?).ok()?;
        let sum = u32::try_from(fields.number::<4>()?).ok()?;
        let mut sections = [(0, 0); Section::ALL.len()];
        for section in &mut sections {
            *section = (fields.number::<8>()?, fields.number::<8>()?);
        }
        Some(Head { settings, documents, sum, sections })
    }
}

/// Adds the lowest `N` bytes of a number, or as many ones if it needs more: nothing that big is real.
pub(super) fn put_clamped<const N: usize>(out: &mut Vec<u8>, number: u64) {
    if put_number::<N>(out, number).is_none() {
        let start = out.len().saturating_sub(N);
        if let Some(bytes) = out.get_mut(start..) {
            bytes.fill(u8::MAX);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_comes_back_and_a_damaged_one_does_not() {
        let head = Head { settings: *b"settings", documents: 7, sum: 9, sections: [(228, 10); 12] };
        let bytes = head.write();
        assert_eq!(bytes.len() as u64, HEAD_BYTES);
        assert_eq!(Head::read(&bytes), Some(head.clone()));
        assert_eq!((head.section(Section::Ids), head.length()), (228..238, 238));
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 1;
            assert_eq!(Head::read(&damaged), None, "{at}");
            assert_eq!(Head::read(&bytes[..at]), None, "{at}");
        }
    }

    #[test]
    fn numbers_that_do_not_fit_are_the_greatest() {
        let mut out = Vec::new();
        put_clamped::<2>(&mut out, 258);
        put_clamped::<2>(&mut out, 1 << 20);
        assert_eq!(out, [2, 1, 255, 255]);
    }
}
