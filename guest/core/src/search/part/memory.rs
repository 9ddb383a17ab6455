//! The part that documents are added to.

use super::dictionary::{Dictionary, TermId};
use super::layout::Version;
use super::posting::{NO_PLACE, Posting, Postings};
use super::stretches::Stretches;
use super::{Entry, List, PART_DOCUMENTS, PART_POSTINGS, Run, Term};
use crate::ids::Span;
use crate::search::analysis::{Analyzer, Found, is_question, is_standing};
use crate::search::document::{Document, Place, Traits};
use crate::search::names::{Names, SpeakerId, Speakers};
use crate::search::score::{OCCURRENCE, length_code};
use crate::search::stem::stem;
use crate::search::words::{Language, Languages};
use core::ops::Range;

/// Documents in the order in which they were added, with their terms.
#[derive(Clone, Debug, Default)]
pub(in crate::search) struct Memory {
    files: Vec<String>,
    runs: Vec<Run>,
    speakers: Speakers,
    lengths: Vec<u8>,
    traits: Vec<u8>,
    stretches: Stretches,
    rows: Vec<Row>,
    ids: String,
    dictionary: Dictionary,
    /// By term.
    lists: Vec<Vec<u32>>,
    postings: u64,
}

#[derive(Clone, Copy, Debug)]
struct Row {
    place: Place,
    days: Option<Span>,
    speaker: Option<SpeakerId>,
    id_end: u32,
}

/// Names of months as a date is spelled out.
const MONTHS: [&str; 12] = [
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
];

impl Memory {
    pub(in crate::search) fn documents(&self) -> u32 {
        // At most `PART_DOCUMENTS`.
        self.rows.len() as u32
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

    pub(in crate::search) fn postings_held(&self) -> u64 {
        self.postings
    }

    /// Whether one more document fits.
    pub(in crate::search) fn has_room(&self) -> bool {
        self.documents() < PART_DOCUMENTS
            && self.postings < PART_POSTINGS
            && self.speakers.has_room()
            && self.ids.len() < 1 << 30
            && self.runs.len() < 1 << 20
    }

    pub(super) fn list(&self, term: &str) -> Option<List> {
        let TermId(number) = self.dictionary.get(term)?;
        let count = self.lists.get(number as usize)?.len() as u32;
        Some(List { start: number, count })
    }

    pub(super) fn postings(&self, list: List) -> Postings<'_> {
        Postings::Words(self.lists.get(list.start as usize).map(Vec::as_slice).unwrap_or_default())
    }

    fn row(&self, document: u32) -> Option<&Row> {
        self.rows.get(document as usize)
    }

    pub(super) fn speaker(&self, document: u32) -> Option<SpeakerId> {
        self.row(document)?.speaker
    }

    pub(super) fn days(&self, document: u32) -> Option<Span> {
        self.row(document)?.days
    }

    pub(super) fn place(&self, document: u32) -> Place {
        self.row(document).map(|row| row.place).unwrap_or_default()
    }

    pub(super) fn id(&self, document: u32) -> &str {
        let end = |document: u32| self.row(document).map_or(0, |row| row.id_end as usize);
        let start = document.checked_sub(1).map_or(0, end);
        self.ids.get(start..end(document)).unwrap_or_default()
    }

    /// All terms, ascending by their bytes, with their postings.
    pub(super) fn terms(&self) -> Vec<(String, List)> {
        let list =
            |TermId(start): TermId| List { start, count: self.lists.get(start as usize).map_or(0, Vec::len) as u32 };
        self.dictionary.sorted().into_iter().map(|(term, id)| (term, list(id))).collect()
    }

    /// Number of the run that was begun last.
    pub(in crate::search) fn last_run(&self) -> Option<u32> {
        // Bounded by `has_room`.
        self.runs.len().checked_sub(1).map(|last| last as u32)
    }

    /// How many documents come before a run.
    pub(in crate::search) fn documents_before_run(&self, run: usize) -> u32 {
        self.runs.get(run).map_or(self.documents(), |run| run.first)
    }

    pub(in crate::search) fn run(&self, number: u32) -> Option<&Run> {
        self.runs.get(number as usize)
    }

    /// The file of a run.
    pub(in crate::search) fn path(&self, run: &Run) -> Option<&str> {
        self.files.get(run.file as usize).map(String::as_str)
    }

    /// Begins a run of a file, of which so many documents come before it.
    pub(in crate::search) fn begin(&mut self, path: &str, ordinal: u32) {
        // The file is mostly the one of the run before; another row of the same name does no harm.
        if self.files.last().is_none_or(|last| last != path) {
            self.files.push(path.to_owned());
        }
        self.runs.push(Run {
            file: self.files.len().saturating_sub(1) as u32,
            ordinal,
            first: self.documents(),
            documents: 0,
            languages: 0,
            version: None,
        });
        self.stretches.begin();
    }

    /// Says of the run that was begun last which version of its file it goes up to.
    pub(in crate::search) fn end(&mut self, version: Option<Version>) {
        if let Some(run) = self.runs.last_mut() {
            run.version = version;
        }
    }

    /// Adds a document to the run that was begun last. False: there is no room, and nothing was done.
    pub(in crate::search) fn add(&mut self, document: &Document<'_>, analyzer: &mut Analyzer) -> bool {
        if !self.has_room() {
            return false;
        }
        let number = self.rows.len() as u16;
        let days = document.days();
        let mut adder = Adder { memory: self, number, length: 0, languages: 0 };
        analyzer.analyse(document.searched_label(), |found| adder.found(found, 1, None));
        document.dates().for_each(|date| adder.date(date));
        let cues = analyzer.analyse(document.text, |found| {
            let place = match found {
                Found::Word { place, .. } => Some(place),
                Found::Pair(_) | Found::Unit { .. } => None,
            };
            adder.found(found, OCCURRENCE, place);
        });
        let Adder { length, languages, .. } = adder;
        let traits = Traits::new(document.kind, document.by_machine)
            .with(Traits::QUESTION, is_question(document.text))
            .with(Traits::TIME, cues.time)
            .with(Traits::NUMBER, cues.number)
            .with(Traits::STANDING, !document.by_machine && is_standing(document.text, cues));
        // There is room for a speaker.
        let speaker = document.speaker.and_then(|speaker| self.speakers.intern(Names::of(speaker)));
        self.push(&document.key(), document.place, days, speaker, length_code(length), traits, languages);
        true
    }

    /// Documents with everything that is known of them.
    pub(in crate::search) fn entries(&self, documents: Range<u32>) -> Vec<Entry> {
        let mut entries: Vec<Entry> = documents
            .clone()
            .map(|document| {
                let row = self.row(document);
                Entry {
                    id: self.id(document).to_owned(),
                    place: self.place(document),
                    days: self.days(document),
                    traits: self.traits.get(document as usize).copied().unwrap_or(0),
                    length: self.lengths.get(document as usize).copied().unwrap_or(0),
                    speaker: row.and_then(|row| row.speaker).and_then(|speaker| self.speakers.get(speaker)).cloned(),
                    terms: Vec::new(),
                }
            })
            .collect();
        for (text, list) in self.terms() {
            let postings = self.lists.get(list.start as usize).map(Vec::as_slice).unwrap_or_default();
            let from = postings.partition_point(|posting| Posting(*posting).document() < documents.start);
            for posting in postings.iter().skip(from).map(|posting| Posting(*posting)) {
                let at = posting.document().checked_sub(documents.start);
                let Some(entry) = at.and_then(|at| entries.get_mut(at as usize)) else { break };
                let (frequency, place) = (posting.frequency(), posting.place());
                entry.terms.push(Term { text: text.clone(), frequency, place });
            }
        }
        entries
    }

    /// Adds a document that was indexed before to the run that was begun last. False: there is no room.
    pub(in crate::search) fn restore(&mut self, entry: &Entry, languages: Languages) -> bool {
        if !self.has_room() {
            return false;
        }
        let number = self.rows.len() as u16;
        for Term { text, frequency, place } in &entry.terms {
            let place = Some(*place).filter(|place| *place != NO_PLACE).map(u32::from);
            self.count(text, number, *frequency, place);
        }
        let speaker = entry.speaker.clone().and_then(|names| self.speakers.intern(names));
        self.push(&entry.id, entry.place, entry.days, speaker, entry.length, Traits(entry.traits), languages);
        true
    }

    #[expect(clippy::too_many_arguments, reason = "a row has that many columns")]
    fn push(
        &mut self,
        id: &str,
        place: Place,
        days: Option<Span>,
        speaker: Option<SpeakerId>,
        length: u8,
        traits: Traits,
        languages: Languages,
    ) {
        self.ids.push_str(id);
        let id_end = u32::try_from(self.ids.len()).unwrap_or(u32::MAX);
        self.rows.push(Row { place, days, speaker, id_end });
        self.lengths.push(length);
        self.traits.push(traits.0);
        if let Some(run) = self.runs.last_mut() {
            self.stretches.extend(run.ordinal.saturating_add(run.documents), &[length], &[traits.0]);
            run.documents += 1;
            run.languages |= languages;
            // Of what it was before.
            run.version = None;
        }
    }

    fn count(&mut self, term: &str, document: u16, times: u8, place: Option<u32>) {
        let TermId(number) = self.dictionary.intern(term);
        if self.lists.len() <= number as usize {
            self.lists.push(Vec::new());
        }
        let Some(list) = self.lists.get_mut(number as usize) else { return };
        let place = place.and_then(|place| u8::try_from(place).ok()).unwrap_or(NO_PLACE);
        match list.last_mut() {
            Some(last) if Posting(*last).document() == u32::from(document) => {
                let known = Posting(*last);
                let first = if known.place() == NO_PLACE { place } else { known.place() };
                *last = Posting::new(document, known.frequency().saturating_add(times), first).0;
            }
            _ => {
                if list.is_empty() {
                    // Most terms occur once and never again: no room for more.
                    list.reserve_exact(1);
                }
                list.push(Posting::new(document, times, place).0);
                self.postings += 1;
            }
        }
    }
}

/// A document being added.
struct Adder<'m> {
    memory: &'m mut Memory,
    number: u16,
    length: u32,
    languages: Languages,
}

impl Adder<'_> {
    fn found(&mut self, found: Found<'_>, times: u8, place: Option<u32>) {
        self.length = self.length.saturating_add(1);
        match found {
            Found::Word { word, language, .. } => {
                self.languages |= language.bit();
                self.memory.count(&stem(word, language), self.number, times, place);
            }
            Found::Pair(pair) => self.memory.count(pair, self.number, times, None),
            Found::Unit { character, .. } => {
                self.memory.count(character.encode_utf8(&mut [0; 4]), self.number, times, None);
            }
        }
    }

    /// The day, spelled out as people ask for it: `8 may 2023`.
    fn date(&mut self, date: Span) {
        let (first, last) = (date.first(), date.last());
        if first == last {
            self.memory.count(&first.day().to_string(), self.number, 1, None);
        }
        if first.month() == last.month()
            && let Some(month) = MONTHS.get(usize::from(first.month()).saturating_sub(1))
        {
            self.memory.count(&stem(month, Language::English), self.number, 1, None);
        }
        self.memory.count(&format!("{:04}", first.year()), self.number, 1, None);
    }
}
