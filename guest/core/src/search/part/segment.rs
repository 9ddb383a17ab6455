//! A part that does not change, read from pages as far as they are needed.

use super::layout::{ENTRY_BYTES, Head, NO_SPEAKER, PLACE_BYTES, Section, Version};
use super::pages::{CONTENT_BYTES, Missing, PAGE_BYTES, Pages, Seal};
use super::posting::Postings;
use super::stretches::Stretches;
use super::{List, PART_DOCUMENTS, Run};
use crate::ids::Span;
use crate::search::document::Place;
use crate::search::names::{Names, SpeakerId, Speakers};
use crate::table::bytes::Reader;
use core::ops::Range;
use std::borrow::Cow;

/// A segment: what is needed of it all the time, and pages of the rest.
#[derive(Clone, Debug)]
pub(in crate::search) struct Segment {
    /// Of the file it is in; empty if it is in none.
    pub(in crate::search) name: String,
    head: Head,
    pages: Pages,
    files: Vec<String>,
    runs: Vec<Run>,
    speakers: Speakers,
    lengths: Vec<u8>,
    traits: Vec<u8>,
    stretches: Stretches,
    /// The first term of each block of the dictionary.
    fences: Vec<Box<[u8]>>,
}

impl Segment {
    /// Of the first page of a file, or of all of it if it is shorter. None: it is damaged, or not of these settings.
    pub(in crate::search) fn open(name: &str, first: &[u8], settings: Seal) -> Option<Segment> {
        let head = Head::read(first)?;
        let sound = head.settings == settings && head.documents <= PART_DOCUMENTS && is_ordered(&head);
        if !sound {
            return None;
        }
        let mut pages = Pages::new(head.seal(), head.length());
        if !pages.supply(0, first) {
            return None;
        }
        Some(Segment::of(name.to_owned(), head, pages))
    }

    /// Of content that was just made, all of it.
    pub(super) fn made(head: Head, content: &[u8]) -> Option<Segment> {
        let pages = Pages::whole(head.seal(), content);
        let mut segment = Segment::of(String::new(), head, pages);
        segment.start(&mut Missing::default())?.then_some(segment)
    }

    fn of(name: String, head: Head, pages: Pages) -> Segment {
        Segment {
            name,
            head,
            pages,
            files: Vec::new(),
            runs: Vec::new(),
            speakers: Speakers::default(),
            lengths: Vec::new(),
            traits: Vec::new(),
            stretches: Stretches::default(),
            fences: Vec::new(),
        }
    }

    /// Reads what is needed all the time. None: pages are missing. False: it makes no sense.
    pub(in crate::search) fn start(&mut self, missing: &mut Missing) -> Option<bool> {
        for section in Section::AT_ONCE {
            self.need(section, missing);
        }
        if !missing.pages.is_empty() {
            return None;
        }
        Some(self.parse(missing).is_some())
    }

    fn parse(&mut self, missing: &mut Missing) -> Option<()> {
        let documents = self.head.documents;
        let runs = self.section(Section::Runs, missing)?;
        let (files, runs) = read_runs(&runs, documents)?;
        let speakers = read_speakers(&self.section(Section::Speakers, missing)?)?;
        let lengths = self.section(Section::Lengths, missing)?.into_owned();
        let traits = self.section(Section::Traits, missing)?.into_owned();
        let fences = read_fences(&self.section(Section::Fences, missing)?)?;
        let dictionary = self.head.section(Section::Dictionary);
        let blocks = (dictionary.end - dictionary.start).div_ceil(CONTENT_BYTES);
        let counts = [lengths.len(), traits.len()].iter().all(|count| *count as u64 == u64::from(documents));
        if !counts || blocks != fences.len() as u64 {
            return None;
        }
        for run in &runs {
            let range = run.first as usize..run.range().end as usize;
            self.stretches.begin();
            self.stretches.extend(run.ordinal, lengths.get(range.clone())?, traits.get(range)?);
        }
        (self.files, self.runs, self.speakers) = (files, runs, speakers);
        (self.lengths, self.traits, self.fences) = (lengths, traits, fences);
        Some(())
    }

    pub(in crate::search) fn documents(&self) -> u32 {
        self.head.documents
    }

    pub(super) fn files(&self) -> &[String] {
        &self.files
    }

    pub(super) fn runs(&self) -> &[Run] {
        &self.runs
    }

    pub(super) fn lengths(&self) -> &[u8] {
        &self.lengths
    }

    pub(super) fn traits(&self) -> &[u8] {
        &self.traits
    }

    pub(super) fn stretches(&self) -> &Stretches {
        &self.stretches
    }

    pub(super) fn speakers(&self) -> &Speakers {
        &self.speakers
    }

    /// Of the whole content, in bytes.
    pub(in crate::search) fn length(&self) -> u64 {
        self.pages.length()
    }

    /// See [`Head::seal`].
    pub(in crate::search) fn seal(&self) -> Seal {
        self.head.seal()
    }

    /// How many postings there are.
    pub(super) fn postings_held(&self) -> u64 {
        let Range { start, end } = self.head.section(Section::Postings);
        (end - start) / 4
    }

    /// Length of the file that has so much content.
    pub(in crate::search) fn file_length(content: u64) -> u64 {
        Pages::file_length(content)
    }

    /// Takes whole pages that stand side by side in the file. False: one is damaged, or they are not all there.
    pub(in crate::search) fn supply_range(&mut self, range: &Range<u64>, bytes: &[u8]) -> bool {
        let first = range.start / PAGE_BYTES;
        let pages = bytes.chunks(PAGE_BYTES as usize).zip(first..);
        let whole = range.start.is_multiple_of(PAGE_BYTES) && bytes.len() as u64 == range.end - range.start;
        let mut pages = pages.filter_map(|(page, number)| Some((u32::try_from(number).ok()?, page)));
        whole && pages.all(|(number, page)| self.pages.supply(number, page))
    }

    /// Bytes of the file that a page takes.
    pub(in crate::search) fn page_range(&self, page: u32) -> Range<u64> {
        self.pages.range(page)
    }

    /// The file. None if a page is not at hand.
    pub(in crate::search) fn file(&self) -> Option<Vec<u8>> {
        self.pages.file()
    }

    /// Bytes of pages at hand.
    pub(in crate::search) fn resident(&self) -> u64 {
        self.pages.resident()
    }

    /// See [`Pages::forget`].
    pub(in crate::search) fn forget(&mut self, keep: u32) {
        self.pages.forget(keep);
    }

    /// See [`Pages::turn`].
    pub(in crate::search) fn turn(&mut self) {
        self.pages.turn();
    }

    pub(super) fn need(&self, section: Section, missing: &mut Missing) {
        self.pages.pieces(self.head.section(section), missing).for_each(drop);
    }

    /// Notes every page that is not at hand.
    pub(super) fn need_all(&self, missing: &mut Missing) {
        self.pages.pieces(0..self.head.length(), missing).for_each(drop);
    }

    fn section(&self, section: Section, missing: &mut Missing) -> Option<Cow<'_, [u8]>> {
        self.pages.read(self.head.section(section), missing)
    }

    /// Row `number` of a section whose rows have that many bytes.
    fn at(&self, section: Section, number: u32, bytes: u64, missing: &mut Missing) -> Option<Cow<'_, [u8]>> {
        let Range { start, end } = self.head.section(section);
        let start = start + u64::from(number) * bytes;
        if start + bytes > end {
            // No document of this segment has that number.
            return Some(Cow::Borrowed(&[]));
        }
        self.pages.read(start..start + bytes, missing)
    }

    fn number(&self, section: Section, number: u32, missing: &mut Missing) -> Option<u32> {
        let bytes = self.at(section, number, 4, missing)?;
        Some(bytes.first_chunk().map_or(0, |bytes| u32::from_le_bytes(*bytes)))
    }

    pub(super) fn speaker(&self, document: u32, missing: &mut Missing) -> Option<Option<SpeakerId>> {
        let bytes = self.at(Section::Spoken, document, 2, missing)?;
        let number = bytes.first_chunk().map_or(NO_SPEAKER, |bytes| u16::from_le_bytes(*bytes));
        Some((number != NO_SPEAKER).then_some(SpeakerId(number)))
    }

    pub(super) fn days(&self, document: u32, missing: &mut Missing) -> Option<Option<Span>> {
        self.number(Section::Days, document, missing).map(Span::of_code)
    }

    pub(super) fn place(&self, document: u32, missing: &mut Missing) -> Option<Place> {
        let bytes = self.at(Section::Places, document, PLACE_BYTES, missing)?;
        let mut reader = Reader(&bytes);
        let mut read = || -> Option<Place> {
            Some(Place {
                offset: reader.number::<6>()?,
                header: reader.number::<4>()?,
                length: reader.number::<6>()?,
                line: reader.number::<5>()?,
            })
        };
        Some(read().unwrap_or_default())
    }

    pub(super) fn id(&self, document: u32, missing: &mut Missing) -> Option<String> {
        let start = match document.checked_sub(1) {
            Some(before) => self.number(Section::IdEnds, before, missing),
            None => Some(0),
        };
        let end = self.number(Section::IdEnds, document, missing);
        let (start, end) = (start?, end?);
        let ids = self.head.section(Section::Ids);
        let range = ids.start + u64::from(start)..(ids.start + u64::from(end)).min(ids.end);
        let bytes = self.pages.read(range, missing)?;
        Some(String::from_utf8_lossy(&bytes).into_owned())
    }

    pub(super) fn list(&self, term: &str, missing: &mut Missing) -> Option<Option<List>> {
        let Some(block) = self.fences.partition_point(|first| **first <= *term.as_bytes()).checked_sub(1) else {
            return Some(None);
        };
        let block = self.block(block, missing)?;
        Some(block.find(term.as_bytes()))
    }

    /// How many blocks the dictionary has.
    pub(super) fn blocks(&self) -> usize {
        self.fences.len()
    }

    pub(super) fn block(&self, number: usize, missing: &mut Missing) -> Option<Block<'_>> {
        let Range { start, end } = self.head.section(Section::Dictionary);
        let start = start + number as u64 * CONTENT_BYTES;
        // A block is a page, so it is never put together.
        match self.pages.read(start..(start + CONTENT_BYTES).min(end), missing)? {
            Cow::Borrowed(bytes) => Some(Block::new(bytes)),
            Cow::Owned(_) => Some(Block::new(&[])),
        }
    }

    pub(super) fn postings(&self, list: List, missing: &mut Missing) -> Option<Postings<'_>> {
        let Range { start, end } = self.head.section(Section::Postings);
        let from = start + u64::from(list.start) * 4;
        let to = (from + u64::from(list.count) * 4).min(end);
        let mut whole = true;
        let pieces = self.pages.pieces(from..to, missing).filter_map(|piece| {
            whole &= piece.is_some();
            piece
        });
        let pieces = pieces.collect();
        whole.then_some(Postings::Bytes(pieces))
    }
}

/// Sections follow each other, those of the dictionary and of postings at the beginning of a page.
fn is_ordered(head: &Head) -> bool {
    let follow = head.sections.is_sorted_by(|a, b| a.0.checked_add(a.1).is_some_and(|end| end <= b.0));
    let small =
        head.sections.iter().all(|(offset, length)| offset.checked_add(*length).is_some_and(|end| end < 1 << 40));
    let aligned = [Section::Dictionary, Section::Postings]
        .into_iter()
        .all(|section| head.section(section).start.is_multiple_of(CONTENT_BYTES));
    follow && small && aligned
}

/// A block of the dictionary.
#[derive(Clone, Copy, Debug)]
pub(super) struct Block<'a> {
    entries: &'a [[u8; ENTRY_BYTES]],
    texts: &'a [u8],
}

impl<'a> Block<'a> {
    fn new(bytes: &'a [u8]) -> Block<'a> {
        let read = || {
            let (count, rest) = bytes.split_first_chunk::<2>()?;
            let (entries, texts) = rest.split_at_checked(usize::from(u16::from_le_bytes(*count)) * ENTRY_BYTES)?;
            Some(Block { entries: entries.as_chunks().0, texts })
        };
        read().unwrap_or(Block { entries: &[], texts: &[] })
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Term `number` and its postings.
    pub(super) fn get(&self, number: usize) -> Option<(&'a [u8], List)> {
        let end = |number: usize| {
            let [low, high, ..] = self.entries.get(number)?;
            Some(usize::from(u16::from_le_bytes([*low, *high])))
        };
        let start = match number.checked_sub(1) {
            Some(before) => end(before)?,
            None => 0,
        };
        let term = self.texts.get(start..end(number)?)?;
        let [_, _, a, b, c, d, low, high] = self.entries.get(number)?;
        let count = u32::from(u16::from_le_bytes([*low, *high])) + 1;
        Some((term, List { start: u32::from_le_bytes([*a, *b, *c, *d]), count }))
    }

    fn find(&self, term: &[u8]) -> Option<List> {
        let (mut from, mut to) = (0, self.len());
        while from < to {
            let middle = from.midpoint(to);
            let (found, list) = self.get(middle)?;
            match found.cmp(term) {
                core::cmp::Ordering::Less => from = middle + 1,
                core::cmp::Ordering::Greater => to = middle,
                core::cmp::Ordering::Equal => return Some(list),
            }
        }
        None
    }
}

fn read_runs(bytes: &[u8], documents: u32) -> Option<(Vec<String>, Vec<Run>)> {
    let mut reader = Reader(bytes);
    let mut files = Vec::new();
    for _ in 0..reader.number::<4>()? {
        files.push(reader.text::<4>()?.to_owned());
    }
    let (mut runs, mut first) = (Vec::new(), 0_u32);
    for _ in 0..reader.number::<4>()? {
        let file = u32::try_from(reader.number::<4>()?).ok().filter(|file| (*file as usize) < files.len())?;
        let ordinal = u32::try_from(reader.number::<4>()?).ok()?;
        let count = u32::try_from(reader.number::<4>()?).ok()?;
        let languages = u16::try_from(reader.number::<2>()?).ok()?;
        let version = match reader.number::<1>()? {
            0 => None,
            known => {
                let (size, token) = (reader.number::<8>()?, reader.text::<1>()?.to_owned());
                Some(Version { size, token, faulty: known != 1 })
            }
        };
        runs.push(Run { file, ordinal, first, documents: count, languages, version });
        ordinal.checked_add(count)?;
        first = first.checked_add(count).filter(|end| *end <= documents)?;
    }
    reader.end()?;
    (first == documents).then_some((files, runs))
}

fn read_speakers(bytes: &[u8]) -> Option<Speakers> {
    let mut reader = Reader(bytes);
    let mut speakers = Speakers::default();
    for _ in 0..reader.number::<4>()? {
        let mut name = || Some(reader.text::<4>()?.to_owned());
        speakers.intern(Names { id: name()?, display: name()?, label: name()? })?;
    }
    reader.end()?;
    Some(speakers)
}

fn read_fences(bytes: &[u8]) -> Option<Vec<Box<[u8]>>> {
    let mut reader = Reader(bytes);
    let mut fences: Vec<Box<[u8]>> = Vec::new();
    for _ in 0..reader.number::<4>()? {
        fences.push(reader.text::<1>()?.as_bytes().into());
    }
    reader.end()?;
    fences.is_sorted().then_some(fences)
}
