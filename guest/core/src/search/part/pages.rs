//! Files in pages: read in part, checked in whole pages.
//!
//! ```text
//! page n:  16,380 bytes of content (the last page: what is left), CRC-32 (4) over the file's seal, n and the content
//! ```
//!
//! The seal is eight bytes that differ from file to file, so a page of another file, or another page of this one, is as
//! wrong as a damaged one. Knows pages; must not know what they hold or where they come from.

use core::cell::Cell;
use core::ops::Range;
use std::borrow::Cow;

/// Bytes of a page in the file. A search reads single terms and single rows from everywhere: the smaller, the less of what it
/// does not need.
pub(in crate::search) const PAGE_BYTES: u64 = 1 << 14;

/// Bytes of content in a page: whole postings.
pub(super) const CONTENT_BYTES: u64 = PAGE_BYTES - CHECK_BYTES;

const CHECK_BYTES: u64 = 4;

/// Identifies a file.
pub(super) type Seal = [u8; 8];

/// Pages that were needed and not at hand: the part, and the page.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::search) struct Missing {
    pub(in crate::search) pages: Vec<(u32, u32)>,
    /// The part whose pages are noted.
    pub(in crate::search) part: u32,
}

/// Bytes of a file that may not all be at hand.
#[derive(Clone, Debug)]
pub(super) struct Pages {
    seal: Seal,
    /// Of the content, checks left out.
    length: u64,
    pages: Vec<Page>,
    clock: Cell<u32>,
}

#[derive(Clone, Debug, Default)]
struct Page {
    content: Option<Box<[u8]>>,
    /// When it was read last.
    used: Cell<u32>,
}

impl Pages {
    pub(super) fn new(seal: Seal, length: u64) -> Pages {
        let count = usize::try_from(length.div_ceil(CONTENT_BYTES)).unwrap_or(0);
        let mut pages = Vec::new();
        pages.resize_with(count, Page::default);
        Pages { seal, length, pages, clock: Cell::new(0) }
    }

    /// With all pages at hand: the content of a file that is being made.
    pub(super) fn whole(seal: Seal, content: &[u8]) -> Pages {
        let mut pages = Pages::new(seal, content.len() as u64);
        for (page, content) in pages.pages.iter_mut().zip(content.chunks(CONTENT_BYTES as usize)) {
            page.content = Some(content.into());
        }
        pages
    }

    /// Of the content.
    pub(super) fn length(&self) -> u64 {
        self.length
    }

    /// Length of the file that has so much content.
    pub(super) fn file_length(content: u64) -> u64 {
        content.saturating_add(content.div_ceil(CONTENT_BYTES).saturating_mul(CHECK_BYTES))
    }

    /// The file: content and checks. None if a page is not at hand.
    pub(super) fn file(&self) -> Option<Vec<u8>> {
        let checks = CHECK_BYTES * self.pages.len() as u64;
        let mut file = Vec::with_capacity(usize::try_from(self.length + checks).unwrap_or(0));
        for (number, page) in (0..).zip(&self.pages) {
            let content = page.content.as_deref()?;
            file.extend_from_slice(content);
            file.extend_from_slice(&check(&self.seal, number, content));
        }
        Some(file)
    }

    /// Bytes of the file that page `number` takes.
    pub(super) fn range(&self, number: u32) -> Range<u64> {
        let start = u64::from(number) * PAGE_BYTES;
        let content = (self.length - (u64::from(number) * CONTENT_BYTES).min(self.length)).min(CONTENT_BYTES);
        start..start + content + CHECK_BYTES
    }

    /// Takes a page as it is in the file. False: it is damaged, or there is no such page.
    pub(super) fn supply(&mut self, number: u32, bytes: &[u8]) -> bool {
        let range = self.range(number);
        let Some(page) = self.pages.get_mut(number as usize) else { return false };
        if bytes.len() as u64 != range.end - range.start {
            return false;
        }
        let Some((content, found)) = bytes.split_last_chunk::<{ CHECK_BYTES as usize }>() else { return false };
        if *found != check(&self.seal, number, content) {
            return false;
        }
        page.content = Some(content.into());
        page.used.set(self.clock.get());
        true
    }

    /// Bytes of the content, if they are at hand and there are so many.
    pub(super) fn read(&self, range: Range<u64>, missing: &mut Missing) -> Option<Cow<'_, [u8]>> {
        if range.start >= range.end {
            return Some(Cow::Borrowed(&[]));
        }
        let first = range.start / CONTENT_BYTES;
        let last = (range.end - 1) / CONTENT_BYTES;
        if first == last {
            return self.within(first, range, missing).map(Cow::Borrowed);
        }
        let mut bytes = Vec::new();
        let mut whole = true;
        for piece in self.pieces(range, missing) {
            match piece {
                Some(piece) => bytes.extend_from_slice(piece),
                None => whole = false,
            }
        }
        whole.then_some(Cow::Owned(bytes))
    }

    /// The same, page by page; a piece that is not at hand is none.
    pub(super) fn pieces<'p, 'm>(
        &'p self,
        range: Range<u64>,
        missing: &'m mut Missing,
    ) -> impl Iterator<Item = Option<&'p [u8]>> + use<'p, 'm> {
        let (first, last) = (range.start / CONTENT_BYTES, range.end.saturating_sub(1) / CONTENT_BYTES);
        let pages = if range.start < range.end { first..last + 1 } else { 0..0 };
        pages.map(move |number| {
            let start = range.start.max(number * CONTENT_BYTES);
            let end = range.end.min((number + 1) * CONTENT_BYTES);
            self.within(number, start..end, missing)
        })
    }

    /// Bytes that lie in one page.
    fn within(&self, number: u64, range: Range<u64>, missing: &mut Missing) -> Option<&[u8]> {
        let page = self.pages.get(usize::try_from(number).ok()?)?;
        let Some(content) = page.content.as_deref() else {
            // A page number of a file that was opened is a `u32`.
            missing.pages.push((missing.part, number as u32));
            return None;
        };
        page.used.set(self.clock.get());
        let start = number * CONTENT_BYTES;
        let (from, to) = (range.start - start, range.end - start);
        content.get(usize::try_from(from).ok()?..usize::try_from(to).ok()?)
    }

    /// Bytes at hand.
    pub(super) fn resident(&self) -> u64 {
        self.pages.iter().filter_map(|page| page.content.as_ref()).map(|content| content.len() as u64).sum()
    }

    /// Lets go of pages that were read neither now nor in the last `keep - 1` times before.
    pub(super) fn forget(&mut self, keep: u32) {
        let now = self.clock.get();
        for page in self.pages.iter_mut().filter(|page| now.wrapping_sub(page.used.get()) >= keep) {
            page.content = None;
        }
    }

    /// Begins a time to be told from the one before.
    pub(super) fn turn(&mut self) {
        self.clock.set(self.clock.get().wrapping_add(1));
    }
}

fn check(seal: &Seal, number: u32, content: &[u8]) -> [u8; CHECK_BYTES as usize] {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(seal);
    hasher.update(&number.to_le_bytes());
    hasher.update(content);
    hasher.finalize().to_le_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn content() -> Vec<u8> {
        (0..CONTENT_BYTES * 2 + 100).map(|n| (n % 251) as u8).collect()
    }

    #[test]
    fn pages_come_back_checked_and_in_any_order() {
        let content = content();
        let file = Pages::whole(*b"sealseal", &content).file().unwrap();
        assert_eq!(file.len(), content.len() + 12);
        let mut pages = Pages::new(*b"sealseal", content.len() as u64);
        let mut missing = Missing::default();
        assert_eq!(pages.read(10..CONTENT_BYTES + 10, &mut missing), None);
        assert_eq!(missing.pages, [(0, 0), (0, 1)]);
        for number in [2, 0, 1] {
            let range = pages.range(number);
            let bytes = &file[range.start as usize..range.end as usize];
            assert!(pages.supply(number, bytes));
        }
        for range in [0..1, 10..CONTENT_BYTES + 10, 0..content.len() as u64, 5..5] {
            let expected = &content[range.start as usize..range.end as usize];
            assert_eq!(pages.read(range, &mut Missing::default()).as_deref(), Some(expected));
        }
        let end = content.len() as u64;
        assert_eq!(pages.read(end - 1..end + 1, &mut Missing::default()), None);
        assert_eq!(pages.resident(), end);
    }

    #[test]
    fn damaged_and_foreign_pages_are_refused() {
        let content = content();
        let file = Pages::whole(*b"sealseal", &content).file().unwrap();
        let first = &file[..PAGE_BYTES as usize];
        let fresh = || Pages::new(*b"sealseal", content.len() as u64);
        assert!(fresh().supply(0, first));
        assert!(!fresh().supply(1, first), "another page");
        assert!(!fresh().supply(3, first), "no page");
        assert!(!Pages::new(*b"sealSEAL", content.len() as u64).supply(0, first), "another file");
        assert!(!fresh().supply(0, &first[1..]));
        for at in [0, 1000, first.len() - 1] {
            let mut damaged = first.to_vec();
            damaged[at] ^= 1;
            assert!(!fresh().supply(0, &damaged));
        }
    }

    #[test]
    fn what_was_not_read_lately_is_let_go() {
        let content = content();
        let mut pages = Pages::whole(*b"sealseal", &content);
        let touch = |pages: &Pages, at: u64| pages.read(at..at + 1, &mut Missing::default()).is_some();
        pages.turn();
        assert!(touch(&pages, 0));
        pages.forget(2);
        assert!(pages.resident() > 2 * CONTENT_BYTES);
        pages.forget(1);
        assert!(touch(&pages, 0) && !touch(&pages, CONTENT_BYTES));
        assert_eq!(pages.resident(), CONTENT_BYTES);
    }
}
