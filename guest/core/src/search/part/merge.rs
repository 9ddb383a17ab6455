//! One segment of several parts.
//!
//! Documents are put in the order of their files and of their places in them, so that the runs of a file become one where
//! nothing is missing between them. Documents of runs that are no longer their file's are left out.

use super::layout::{ENTRY_BYTES, HEAD_BYTES, Head, NO_SPEAKER, Section, put_clamped};
use super::pages::{CONTENT_BYTES, Missing, Seal};
use super::segment::{Block, Segment};
use super::{List, PART_DOCUMENTS, Part, Run};
use crate::search::names::{Names, Speakers};
use crate::table::bytes::{put_number, put_text};

/// A run that still is its file's: the part among those to be merged, and the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::search) struct Live {
    pub(in crate::search) part: usize,
    pub(in crate::search) run: usize,
}

/// Makes a segment of these runs of these parts. None if pages are missing, and then they are noted, or if it would have
/// too many documents or postings.
pub(in crate::search) fn merge(
    parts: &[&Part],
    live: &[Live],
    settings: Seal,
    missing: &mut Missing,
) -> Option<Segment> {
    for (number, part) in (0..).zip(parts) {
        if let Part::Segment(segment) = part {
            missing.part = number;
            segment.need_all(missing);
        }
    }
    if !missing.pages.is_empty() {
        return None;
    }
    let order = Order::new(parts, live)?;
    let mut content = vec![0; usize::try_from(HEAD_BYTES).ok()?];
    let mut sections = [(0_u64, 0_u64); Section::ALL.len()];
    let mut lists = Lists::write(parts, &order)?;
    for (section, place) in Section::ALL.into_iter().zip(&mut sections) {
        if matches!(section, Section::Dictionary | Section::Postings) {
            let page = usize::try_from(CONTENT_BYTES).ok()?;
            content.resize(content.len().next_multiple_of(page), 0);
        }
        let start = content.len();
        match section {
            Section::Runs => order.write_runs(&mut content)?,
            Section::Speakers => order.write_speakers(&mut content)?,
            Section::Fences => content.append(&mut lists.fences),
            Section::Dictionary => content.append(&mut lists.dictionary),
            Section::Postings => content.append(&mut lists.postings),
            column => order.write_column(parts, column, &mut content, missing)?,
        }
        *place = (start as u64, (content.len() - start) as u64);
    }
    let sum = crc32fast::hash(content.get(usize::try_from(HEAD_BYTES).ok()?..)?);
    let head = Head { settings, documents: order.documents, sum, sections };
    let bytes = head.write();
    content.get_mut(..bytes.len())?.copy_from_slice(&bytes);
    Segment::made(head, &content)
}

/// Which document comes where.
struct Order<'p> {
    documents: u32,
    files: Vec<&'p str>,
    runs: Vec<Run>,
    /// Where each document comes from, by its new number: part, and number there.
    origins: Vec<(usize, u32)>,
    /// New numbers by part and old number; `GONE` for those that are left out.
    numbers: Vec<Vec<u32>>,
    speakers: Speakers,
    /// New numbers of speakers by part and old number.
    spoken: Vec<Vec<u16>>,
}

const GONE: u32 = u32::MAX;

impl<'p> Order<'p> {
    fn new(parts: &[&'p Part], live: &[Live]) -> Option<Order<'p>> {
        let mut runs: Vec<(&'p str, &'p Run, usize)> = Vec::with_capacity(live.len());
        for Live { part, run } in live {
            let owner = *parts.get(*part)?;
            let run = owner.runs().get(*run)?;
            runs.push((owner.files().get(run.file as usize)?, run, *part));
        }
        runs.sort_by_key(|(path, run, _)| (*path, run.ordinal));
        let gone = |part: &&Part| vec![GONE; part.documents() as usize];
        let mut order = Order {
            documents: 0,
            files: Vec::new(),
            runs: Vec::new(),
            origins: Vec::new(),
            numbers: parts.iter().map(gone).collect(),
            speakers: Speakers::default(),
            spoken: Vec::new(),
        };
        for (path, run, part) in runs {
            order.add(path, run, part)?;
        }
        if order.documents > PART_DOCUMENTS {
            return None;
        }
        for part in parts {
            let intern = |names: &Names| Some(order.speakers.intern(names.clone())?.0);
            order.spoken.push(part.speakers().iter().map(intern).collect::<Option<_>>()?);
        }
        Some(order)
    }

    fn add(&mut self, path: &'p str, run: &Run, part: usize) -> Option<()> {
        if self.files.last() != Some(&path) {
            self.files.push(path);
        }
        let file = u32::try_from(self.files.len()).ok()?.checked_sub(1)?;
        let first = self.documents;
        match self.runs.last_mut() {
            Some(last) if last.file == file && last.ordinal + last.documents == run.ordinal => {
                last.documents += run.documents;
                last.languages |= run.languages;
                last.version.clone_from(&run.version);
            }
            _ => self.runs.push(Run { file, first, ..run.clone() }),
        }
        let numbers = self.numbers.get_mut(part)?;
        for old in run.range() {
            *numbers.get_mut(old as usize)? = self.documents;
            self.documents = self.documents.checked_add(1)?;
            self.origins.push((part, old));
        }
        Some(())
    }

    fn write_runs(&self, out: &mut Vec<u8>) -> Option<()> {
        put_number::<4>(out, self.files.len() as u64)?;
        for path in &self.files {
            put_text::<4>(out, path)?;
        }
        put_number::<4>(out, self.runs.len() as u64)?;
        for run in &self.runs {
            put_number::<4>(out, run.file.into())?;
            put_number::<4>(out, run.ordinal.into())?;
            put_number::<4>(out, run.documents.into())?;
            put_number::<2>(out, run.languages.into())?;
            // A token that is too long is none: the file is read again next time.
            match run.version.as_ref().filter(|version| version.token.len() <= usize::from(u8::MAX)) {
                Some(version) => {
                    out.push(if version.faulty { 2 } else { 1 });
                    put_number::<8>(out, version.size)?;
                    put_text::<1>(out, &version.token)?;
                }
                None => out.push(0),
            }
        }
        Some(())
    }

    fn write_speakers(&self, out: &mut Vec<u8>) -> Option<()> {
        put_number::<4>(out, self.speakers.len() as u64)?;
        for names in self.speakers.iter() {
            for name in [&names.id, &names.display, &names.label] {
                put_text::<4>(out, name)?;
            }
        }
        Some(())
    }

    fn write_column(&self, parts: &[&Part], section: Section, out: &mut Vec<u8>, missing: &mut Missing) -> Option<()> {
        let mut id_end = 0_u64;
        for (number, document) in &self.origins {
            let (part, document) = (*parts.get(*number)?, *document);
            match section {
                Section::Lengths => out.push(part.lengths().get(document as usize).copied()?),
                Section::Traits => out.push(part.traits_of(document).0),
                Section::Spoken => {
                    let speaker = match part.speaker(document, missing)? {
                        Some(speaker) => *self.spoken.get(*number)?.get(usize::from(speaker.0))?,
                        None => NO_SPEAKER,
                    };
                    out.extend_from_slice(&speaker.to_le_bytes());
                }
                Section::Days => {
                    let code = part.days(document, missing)?.map_or(0, |days| days.code());
                    out.extend_from_slice(&code.to_le_bytes());
                }
                Section::Places => {
                    let place = part.place(document, missing)?;
                    put_clamped::<6>(out, place.offset);
                    put_clamped::<4>(out, place.header);
                    put_clamped::<6>(out, place.length);
                    put_clamped::<5>(out, place.line);
                }
                Section::IdEnds => {
                    id_end += part.id(document, missing)?.len() as u64;
                    put_number::<4>(out, id_end)?;
                }
                Section::Ids => out.extend_from_slice(part.id(document, missing)?.as_bytes()),
                Section::Runs | Section::Speakers | Section::Fences | Section::Dictionary | Section::Postings => {}
            }
        }
        Some(())
    }
}

/// The terms of all parts.
#[derive(Default)]
struct Lists {
    fences: Vec<u8>,
    dictionary: Vec<u8>,
    postings: Vec<u8>,
}

impl Lists {
    fn write(parts: &[&Part], order: &Order<'_>) -> Option<Lists> {
        let mut cursors: Vec<Cursor<'_>> = parts.iter().map(|part| Cursor::new(part)).collect();
        let mut writer = Writer::default();
        let mut merged: Vec<u32> = Vec::new();
        let mut term: Vec<u8> = Vec::new();
        let mut missing = Missing::default();
        // The least term of all is next; there are few parts.
        while let Some(least) = cursors.iter().filter_map(Cursor::term).min() {
            term.clear();
            term.extend_from_slice(least);
            merged.clear();
            for ((cursor, part), numbers) in cursors.iter_mut().zip(parts).zip(&order.numbers) {
                let Some((_, list)) = cursor.now().filter(|(found, _)| *found == term) else { continue };
                part.postings(list, &mut missing)?.for_each(|posting| {
                    let number = numbers.get(posting.document() as usize).copied().unwrap_or(GONE);
                    if number != GONE {
                        merged.push(posting.of(number).0);
                    }
                });
                cursor.advance();
            }
            if !merged.is_empty() {
                merged.sort_unstable();
                writer.add(&term, &merged)?;
            }
        }
        writer.finish()
    }
}

/// Goes through the terms of a part.
enum Cursor<'p> {
    Memory { terms: Vec<(String, List)>, at: usize },
    Segment { segment: &'p Segment, next: usize, block: Option<Block<'p>>, at: usize },
}

impl<'p> Cursor<'p> {
    fn new(part: &'p Part) -> Cursor<'p> {
        match part {
            Part::Memory(memory) => Cursor::Memory { terms: memory.terms(), at: 0 },
            Part::Segment(segment) => {
                let mut cursor = Cursor::Segment { segment, next: 0, block: None, at: 0 };
                cursor.settle();
                cursor
            }
        }
    }

    /// The term it is at, and its postings; none behind the last.
    fn now(&self) -> Option<(&[u8], List)> {
        match self {
            Cursor::Memory { terms, at } => terms.get(*at).map(|(term, list)| (term.as_bytes(), *list)),
            Cursor::Segment { block, at, .. } => block.as_ref()?.get(*at),
        }
    }

    fn term(&self) -> Option<&[u8]> {
        self.now().map(|(term, _)| term)
    }

    fn advance(&mut self) {
        let (Cursor::Memory { at, .. } | Cursor::Segment { at, .. }) = self;
        *at += 1;
        self.settle();
    }

    /// Goes on to the next block where one is over.
    fn settle(&mut self) {
        let Cursor::Segment { segment, next, block, at } = self else { return };
        while block.is_none_or(|block| *at >= block.len()) && *next < segment.blocks() {
            *block = segment.block(*next, &mut Missing::default());
            *next += 1;
            *at = 0;
        }
    }
}

/// Writes fences, dictionary and postings.
#[derive(Default)]
struct Writer {
    lists: Lists,
    blocks: u32,
    fences: Vec<u8>,
    /// The open block: entries and texts.
    entries: Vec<u8>,
    texts: Vec<u8>,
}

impl Writer {
    fn add(&mut self, term: &[u8], postings: &[u32]) -> Option<()> {
        let taken = 2 + self.entries.len() + ENTRY_BYTES + self.texts.len() + term.len();
        if taken as u64 > CONTENT_BYTES {
            self.end_block()?;
        }
        if self.entries.is_empty() {
            self.blocks += 1;
            put_text::<1>(&mut self.fences, core::str::from_utf8(term).ok()?)?;
        }
        self.texts.extend_from_slice(term);
        put_number::<2>(&mut self.entries, self.texts.len() as u64)?;
        put_number::<4>(&mut self.entries, self.lists.postings.len() as u64 / 4)?;
        put_number::<2>(&mut self.entries, (postings.len() as u64).checked_sub(1)?)?;
        for posting in postings {
            self.lists.postings.extend_from_slice(&posting.to_le_bytes());
        }
        Some(())
    }

    fn end_block(&mut self) -> Option<()> {
        let start = self.lists.dictionary.len();
        put_number::<2>(&mut self.lists.dictionary, (self.entries.len() / ENTRY_BYTES) as u64)?;
        self.lists.dictionary.append(&mut self.entries);
        self.lists.dictionary.append(&mut self.texts);
        self.lists.dictionary.resize(start + usize::try_from(CONTENT_BYTES).ok()?, 0);
        Some(())
    }

    fn finish(mut self) -> Option<Lists> {
        if !self.entries.is_empty() {
            self.end_block()?;
        }
        put_number::<4>(&mut self.lists.fences, self.blocks.into())?;
        self.lists.fences.append(&mut self.fences);
        Some(self.lists)
    }
}
