//! The index: documents in, rankings out.
//!
//! Documents are added to the files they stand in, in their order. How rare a word is and how long the mean document are
//! looked at only when a query is scored, so an index grown one document at a time ranks as the index of all of them at
//! once, and as one that was put away in segments in between.

use super::analysis::Analyzer;
use super::document::Document;
use super::files::{Files, RunAt};
use super::kept::{Change, Kept, Known};
use super::part::{Entry, Live, Memory, Missing, PART_DOCUMENTS, PART_POSTINGS, Part, Version, merge};
use super::view::View;
use super::weights::Weights;
use super::words::Languages;
use crate::table::Stamp;
use crate::table::bytes::check;
use core::cmp::Ordering;
use std::collections::BTreeSet;
use thiserror::Error;

/// Most documents of one index, unless [`Index::with_room_for`] says less.
pub const DOCUMENTS: u32 = 1 << 24;

/// No document can be added any more. The index is as it was, and answers as before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("the index is full with {documents} documents")]
pub struct IndexFull {
    /// How many it holds.
    pub documents: u32,
}

/// A full-text index over documents.
#[derive(Clone, Debug)]
pub struct Index {
    room: u32,
    /// The last is a [`Memory`].
    pub(super) parts: Vec<Part>,
    pub(super) files: Files,
    analyzer: Analyzer,
    /// A check over what decides how documents are indexed.
    pub(super) settings: [u8; 8],
    revision: u64,
    pub(super) kept: Kept,
}

impl Default for Index {
    fn default() -> Self {
        Index::new()
    }
}

impl Index {
    /// An index without documents, and of no settings: what it writes is opened again with empty ones
    /// ([`Opening`](super::Opening)).
    pub fn new() -> Index {
        Index::with_room_for(DOCUMENTS)
    }

    /// An index that takes at most so many documents.
    pub fn with_room_for(documents: u32) -> Index {
        Index {
            room: documents.min(DOCUMENTS),
            parts: vec![Part::Memory(Memory::default())],
            files: Files::default(),
            analyzer: Analyzer::default(),
            settings: check(&[b""]),
            revision: 0,
            kept: Kept::default(),
        }
    }

    pub(super) fn with_settings(settings: [u8; 8]) -> Index {
        Index { settings, ..Index::new() }
    }

    /// How many documents there are.
    pub fn len(&self) -> u32 {
        self.files.iter().map(|file| file.documents).sum()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Adds a document at the end of a file. Costs time in proportion to its text, and memory for its distinct terms only.
    pub fn add(&mut self, path: &str, document: &Document<'_>) -> Result<(), IndexFull> {
        let held = self.held();
        if held >= self.room {
            return Err(IndexFull { documents: held });
        }
        if self.memory().is_some_and(|memory| !memory.has_room()) {
            self.seal();
        }
        let number = self.files.number(path);
        if !self.goes_on(number) {
            self.begin(path, number);
        }
        let Some(Part::Memory(memory)) = self.parts.last_mut() else { return Err(IndexFull { documents: held }) };
        if !memory.add(document, &mut self.analyzer) {
            return Err(IndexFull { documents: held });
        }
        if let Some(file) = self.files.get_mut(number) {
            file.documents += 1;
            file.version = None;
        }
        self.revision += 1;
        Ok(())
    }

    /// Whether the last run of a file is the one that documents can be added to, and is in no log.
    fn goes_on(&self, number: u32) -> bool {
        let part = self.parts.len().saturating_sub(1) as u32;
        let last = self.memory().and_then(Memory::last_run);
        let of_file = self.files.get(number).and_then(|file| file.runs.last());
        last.is_some_and(|run| of_file == Some(&RunAt { part, run }) && run as usize >= self.kept.logged_runs)
    }

    /// Begins a run of a file.
    fn begin(&mut self, path: &str, number: u32) {
        let part = self.parts.len().saturating_sub(1) as u32;
        let Some(Part::Memory(memory)) = self.parts.last_mut() else { return };
        let Some(file) = self.files.get_mut(number) else { return };
        memory.begin(path, file.documents);
        if let Some(run) = memory.last_run() {
            file.runs.push(RunAt { part, run });
            self.kept.note(Change::Run(run));
        }
    }

    /// Begins a file anew: it has no documents, and those that are added next are all it has. Doing so says that the file
    /// is there.
    pub fn replace(&mut self, path: &str) {
        self.remove(path);
        let number = self.files.number(path);
        self.files.see(number);
    }

    /// Says that the file's documents are those of this version. `faulty`: something is wrong with the file, so that it
    /// has to be read to tell. A stamp that is racy, or has a token of more than 255 bytes, is not relied on.
    pub fn finish(&mut self, path: &str, stamp: &Stamp<'_>, faulty: bool) {
        if stamp.racy || stamp.token.len() > usize::from(u8::MAX) {
            return;
        }
        let number = self.files.number(path);
        self.files.see(number);
        if !self.goes_on(number) {
            self.begin(path, number);
        }
        let version = Version::of(stamp, faulty);
        if let Some(Part::Memory(memory)) = self.parts.last_mut() {
            memory.end(Some(version.clone()));
        }
        if let Some(file) = self.files.get_mut(number) {
            file.version = Some(version);
        }
    }

    /// Begins to go through all files that there are.
    pub fn begin_survey(&mut self) {
        self.files.begin_survey();
    }

    /// What is known of a file in this version. Asking says that the file is there.
    pub fn known(&mut self, path: &str, stamp: &Stamp<'_>) -> Known {
        let Some(number) = self.files.find(path) else { return Known::Not };
        self.files.see(number);
        match self.files.get(number).and_then(|file| file.version.as_ref()) {
            Some(version) if version.size == stamp.size && version.token == stamp.token => {
                Known::This { faulty: version.faulty }
            }
            _ => Known::Not,
        }
    }

    /// Paths of files that have something in the index and were not asked about since the survey began.
    pub fn unseen(&self) -> Vec<String> {
        self.files.unseen().map(|file| file.path.clone()).collect()
    }

    /// Documents that are in no cache file yet.
    pub fn unsaved(&self) -> u32 {
        let logged = self.memory().map_or(0, |memory| memory.documents_before_run(self.kept.logged_runs));
        let unnamed = |part: &Part| match part {
            Part::Segment(segment) if segment.name.is_empty() => segment.documents(),
            _ => 0,
        };
        self.memory_documents() - logged + self.parts.iter().map(unnamed).sum::<u32>()
    }

    /// Lets go of pages that were not needed lately, until those that are left take no more than so many bytes or only
    /// those are left that the last search needed.
    pub fn shrink(&mut self, bytes: u64) {
        let segments = self.parts.iter_mut().filter_map(|part| match part {
            // What is in no file yet cannot be read again.
            Part::Segment(segment) if !segment.name.is_empty() => Some(segment),
            _ => None,
        });
        let mut segments: Vec<_> = segments.collect();
        for keep in [64, 8, 1] {
            if segments.iter().map(|segment| segment.resident()).sum::<u64>() <= bytes {
                break;
            }
            segments.iter_mut().for_each(|segment| segment.forget(keep));
        }
        segments.iter_mut().for_each(|segment| segment.turn());
    }

    /// How many documents a file has, and its version.
    pub(super) fn standing(&self, path: &str) -> (u32, Option<&Version>) {
        let file = self.files.find(path).and_then(|number| self.files.get(number));
        file.map_or((0, None), |file| (file.documents, file.version.as_ref()))
    }

    /// Adds documents that were indexed before at the end of a file, which is of that version then.
    pub(super) fn restore(&mut self, path: &str, entries: &[Entry], languages: Languages, version: Option<Version>) {
        if self.memory().is_some_and(|memory| !memory.has_room()) {
            self.seal();
        }
        let number = self.files.number(path);
        self.begin(path, number);
        for entry in entries {
            let Some(Part::Memory(memory)) = self.parts.last_mut() else { return };
            if !memory.restore(entry, languages) {
                self.seal();
                self.begin(path, number);
                let Some(Part::Memory(memory)) = self.parts.last_mut() else { return };
                memory.restore(entry, languages);
            }
            if let Some(file) = self.files.get_mut(number) {
                file.documents += 1;
            }
        }
        if let Some(Part::Memory(memory)) = self.parts.last_mut() {
            memory.end(version.clone());
        }
        if let Some(file) = self.files.get_mut(number) {
            file.version = version;
        }
        self.revision += 1;
    }

    /// Takes all documents of a file out.
    pub fn remove(&mut self, path: &str) {
        let known =
            self.files.find(path).filter(|number| self.files.get(*number).is_some_and(|file| !file.runs.is_empty()));
        if let Some(number) = known {
            self.files.clear(number);
            self.kept.note(Change::Gone(path.to_owned()));
            self.revision += 1;
        }
    }

    /// Documents in all parts, also those that no file has any more.
    fn held(&self) -> u32 {
        self.parts.iter().map(Part::documents).sum()
    }

    pub(super) fn memory_documents(&self) -> u32 {
        self.memory().map_or(0, Memory::documents)
    }

    /// How many runs were begun in memory.
    pub(super) fn memory_runs(&self) -> usize {
        self.memory().and_then(Memory::last_run).map_or(0, |last| last as usize + 1)
    }

    /// Documents by part that files still have.
    pub(super) fn live_documents(&self) -> Vec<u32> {
        let mut live = vec![0; self.parts.len()];
        for at in self.files.iter().flat_map(|file| &file.runs) {
            let run = self.parts.get(at.part as usize).and_then(|part| part.runs().get(at.run as usize));
            if let (Some(sum), Some(run)) = (live.get_mut(at.part as usize), run) {
                *sum += run.documents;
            }
        }
        live
    }

    /// Whether parts are small enough to be one.
    pub(super) fn fit_together(&self, numbers: &[usize]) -> bool {
        let parts = || numbers.iter().filter_map(|number| self.parts.get(*number));
        parts().map(|part| u64::from(part.documents())).sum::<u64>() <= u64::from(PART_DOCUMENTS)
            && parts().map(Part::postings_held).sum::<u64>() <= PART_POSTINGS
    }

    /// Puts a part in front of the memory, and says which it is now. Nothing knows of its runs until [`Index::settle`].
    pub(super) fn put_before_memory(&mut self, part: Part) -> u32 {
        let at = self.parts.len().saturating_sub(1);
        self.parts.insert(at, part);
        at as u32
    }

    /// Finds out what files are made of, from the parts alone.
    pub(super) fn settle(&mut self, dead: &BTreeSet<RunAt>) {
        self.files = Files::of(&self.parts, dead, &self.files);
        self.revision += 1;
    }

    /// Takes a segment out. Nothing is known any more of files that had documents in it.
    pub(super) fn lose(&mut self, number: usize) {
        let dead = self.dead();
        self.parts.remove(number);
        let moved = |at: RunAt| match (at.part as usize).cmp(&number) {
            Ordering::Less => Some(at),
            Ordering::Equal => None,
            Ordering::Greater => Some(RunAt { part: at.part - 1, ..at }),
        };
        self.settle(&dead.into_iter().filter_map(moved).collect());
    }

    fn memory(&self) -> Option<&Memory> {
        match self.parts.last() {
            Some(Part::Memory(memory)) => Some(memory),
            _ => None,
        }
    }

    /// Makes a segment of what was added last, so that there is room. Rankings stay as they are.
    pub fn seal(&mut self) {
        let last = self.parts.len().saturating_sub(1);
        self.replace_by_one(&[last], &mut Missing::default());
    }

    /// Makes one segment of those among these segments that there are, if it would not be too large and all of them are at
    /// hand. Rankings stay as they are.
    pub fn merge(&mut self, segments: core::ops::Range<usize>) {
        let last = self.parts.len().saturating_sub(1);
        let numbers: Vec<usize> = (segments.start..segments.end.min(last)).collect();
        if !numbers.is_empty() && self.fit_together(&numbers) {
            self.replace_by_one(&numbers, &mut Missing::default());
        }
    }

    /// Makes one segment of these neighbours, in their place; of the memory, with an empty one behind. False: pages are
    /// missing, or it would be too large.
    pub(super) fn replace_by_one(&mut self, numbers: &[usize], missing: &mut Missing) -> bool {
        let (Some(first), Some(last)) = (numbers.first().copied(), numbers.last().copied()) else { return false };
        let live: Vec<Live> = self.live(numbers);
        let parts: Vec<&Part> = numbers.iter().filter_map(|number| self.parts.get(*number)).collect();
        let Some(segment) = merge(&parts, &live, self.settings, missing) else {
            // What is missing is told by the number of the part in the index.
            for (part, _) in &mut missing.pages {
                *part = numbers.get(*part as usize).copied().unwrap_or_default() as u32;
            }
            return false;
        };
        let seals = last + 1 == self.parts.len();
        let dead = self.dead();
        // Nothing of no documents and no versions is worth a segment.
        let made = (!live.is_empty()).then_some(Part::Segment(segment));
        let (gone, come) = (numbers.len(), usize::from(made.is_some()));
        self.parts.splice(first..=last, made);
        if seals {
            self.parts.push(Part::Memory(Memory::default()));
            self.kept.begin_memory();
        }
        let moved = |at: RunAt| match at.part as usize {
            part if part < first => Some(at),
            part if part <= last => None,
            part => Some(RunAt { part: (part + come - gone) as u32, ..at }),
        };
        self.files = Files::of(&self.parts, &dead.into_iter().filter_map(moved).collect(), &self.files);
        self.revision += 1;
        true
    }

    /// Runs that no file has any more.
    pub(super) fn dead(&self) -> BTreeSet<RunAt> {
        let all = (0_u32..)
            .zip(&self.parts)
            .flat_map(|(part, of)| (0..of.runs().len() as u32).map(move |run| RunAt { part, run }));
        let mut all: BTreeSet<RunAt> = all.collect();
        for at in self.files.iter().flat_map(|file| &file.runs) {
            all.remove(at);
        }
        all
    }

    /// The runs of files in these parts, by the place of the part among them.
    fn live(&self, numbers: &[usize]) -> Vec<Live> {
        let runs = self.files.iter().flat_map(|file| &file.runs);
        let of = |at: &RunAt| {
            let part = numbers.iter().position(|number| *number == at.part as usize)?;
            Some(Live { part, run: at.run as usize })
        };
        runs.filter_map(of).collect()
    }

    /// What a caller sees of it, who may see the files for which `visible` says so. Costs time in proportion to the number
    /// of files and sessions, and passes over one byte of each document; keep it as long as [`Index::is_current`].
    pub fn view(&self, weights: &Weights, visible: impl Fn(&str) -> bool) -> View {
        View::new(&self.parts, &self.files, self.revision, *weights, visible)
    }

    /// Whether a view still is of this index as it is.
    pub fn is_current(&self, view: &View) -> bool {
        view.revision == self.revision
    }
}
