//! The index in files of a cache.
//!
//! | file | what | changes |
//! |---|---|---|
//! | `search/catalog` | which segments there are, which of their runs are dead, which log comes on top | replaced whole |
//! | `search/<seal>.segment` | a part, in pages ([`super::part`]) | never |
//! | `search/<check>.log` | statements about files, in the order in which they became true | added to |
//!
//! Opening reads the catalog, of each segment what is needed all the time, and the log, whose documents go to memory. When
//! the log has grown to [`LOG_DOCUMENTS`] or [`LOG_BYTES`] it becomes a segment, and segments of one size are merged.
//!
//! All of it is a cache. Each statement is about one version of one file, and what cannot be read or does not fit says
//! nothing: then the files it was about are unknown, and indexed again. Knows layouts; must not know where the files are:
//! it says what it wants to read, and what is to be written.

use super::document::{Document, Place};
use super::engine::MissingPages;
use super::files::RunAt;
use super::index::Index;
use super::names::Names;
use super::part::{Entry, Memory, Missing, PAGE_BYTES, Part, Segment, Term, Version};
use crate::ids::Span;
use crate::table::Stamp;
use crate::table::bytes::{Reader, check, put_number, put_text};
use core::ops::Range;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

/// Name of the catalog in the cache area.
pub const CATALOG: &str = "search/catalog";

/// Where all files of the index lie in the cache area.
pub const DIRECTORY: &str = "search";

/// A log with more documents becomes a segment.
pub const LOG_DOCUMENTS: u32 = 1024;

/// A log with more bytes becomes a segment, and nothing is added to it.
pub const LOG_BYTES: u64 = 1 << 20;

/// Segments of one size that become one.
const FAN: usize = 4;

const CATALOG_MAGIC: &[u8; 8] = b"RCLXSCAT";
const LOG_MAGIC: &[u8; 8] = b"RCLXSLOG";
/// Of the catalog and the log. The log holds documents, so what raises the version of segments because a text becomes something
/// else raises this one too.
const VERSION: u32 = 2;

/// Greatest length of a catalog or a log that is read.
const BYTES_MAX: u64 = 64 << 20;

/// Most bytes that are asked for at a time.
const READ_BYTES: u64 = 256 * PAGE_BYTES;

/// Bytes of a cache file that are needed, or as many of them as it has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// The file.
    pub name: String,
    /// Within it.
    pub range: Range<u64>,
}

/// Something to be done to a cache file, in the order given. One that fails is no reason to stop: then the files say less.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Write {
    /// Replace it.
    Put {
        /// The file.
        name: String,
        /// Its content.
        bytes: Vec<u8>,
    },
    /// Add to it.
    Append {
        /// The file.
        name: String,
        /// The length it must have; 0: it need not exist.
        length: u64,
        /// What to add.
        bytes: Vec<u8>,
    },
    /// Remove it.
    Drop {
        /// The file.
        name: String,
    },
}

/// What an index knows of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Known {
    /// Nothing, or another version.
    Not,
    /// All of this version.
    This {
        /// Something is wrong with the file, and it takes reading to say what.
        faulty: bool,
    },
}

/// Which cache files an index stands for, and what is in none of them yet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Kept {
    /// Of the catalog that is in force; none: there is none yet.
    catalog: Option<[u8; 8]>,
    /// Names of the segment files in force.
    segments: BTreeSet<String>,
    /// Of the log, as far as it has been taken in.
    log_bytes: u64,
    /// The log ends in something that is none of it.
    torn: bool,
    /// What has become true since, in order.
    pending: Vec<Change>,
    /// So many runs of the memory are in the log.
    pub(super) logged_runs: usize,
}

/// Something that has become true.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Change {
    /// The file has no documents any more, and no known version.
    Gone(String),
    /// There is this run of the memory.
    Run(u32),
}

impl Kept {
    pub(super) fn note(&mut self, change: Change) {
        self.pending.push(change);
    }

    /// There is a new memory, whose runs are numbered anew.
    pub(super) fn begin_memory(&mut self) {
        self.pending.retain(|change| matches!(change, Change::Gone(_)));
        self.logged_runs = 0;
    }
}

const GONE: u64 = 0;
const RUN: u64 = 1;

/// A catalog, read.
struct Catalog {
    check: [u8; 8],
    segments: Vec<Listed>,
}

/// A segment in a catalog.
struct Listed {
    seal: [u8; 8],
    /// Of its content.
    length: u64,
    dead: Vec<u32>,
}

impl Listed {
    fn name(&self) -> String {
        file_name(&self.seal, "segment")
    }
}

fn file_name(seal: &[u8; 8], kind: &str) -> String {
    let mut name = format!("{DIRECTORY}/");
    for byte in seal {
        use core::fmt::Write as _;
        // Writing to a String cannot fail.
        let _ = write!(name, "{byte:02x}");
    }
    name + "." + kind
}

impl Catalog {
    fn read(bytes: &[u8], settings: [u8; 8]) -> Option<Catalog> {
        let (body, found) = bytes.split_last_chunk::<8>()?;
        if *found != check(&[body]) {
            return None;
        }
        let mut reader = Reader(body);
        let sound = reader.array::<8>()? == *CATALOG_MAGIC
            && reader.number::<4>()? == u64::from(VERSION)
            && reader.array::<8>()? == settings;
        let mut segments = Vec::new();
        for _ in 0..reader.number::<4>().filter(|_| sound)? {
            let (seal, length) = (reader.array()?, reader.number::<8>()?);
            let mut dead = Vec::new();
            for _ in 0..reader.number::<4>()? {
                dead.push(u32::try_from(reader.number::<4>()?).ok()?);
            }
            segments.push(Listed { seal, length, dead });
        }
        reader.end()?;
        Some(Catalog { check: *found, segments })
    }

    fn write(segments: &[Listed], settings: [u8; 8]) -> Vec<u8> {
        let mut out = CATALOG_MAGIC.to_vec();
        out.extend_from_slice(&VERSION.to_le_bytes());
        out.extend_from_slice(&settings);
        out.extend_from_slice(&(segments.len() as u32).to_le_bytes());
        for Listed { seal, length, dead } in segments {
            out.extend_from_slice(seal);
            out.extend_from_slice(&length.to_le_bytes());
            out.extend_from_slice(&(dead.len() as u32).to_le_bytes());
            for run in dead {
                out.extend_from_slice(&run.to_le_bytes());
            }
        }
        let seal = check(&[&out]);
        out.extend_from_slice(&seal);
        out
    }
}

fn log_head(catalog: &[u8; 8], settings: [u8; 8]) -> Vec<u8> {
    let mut out = LOG_MAGIC.to_vec();
    out.extend_from_slice(&VERSION.to_le_bytes());
    out.extend_from_slice(&settings);
    out.extend_from_slice(catalog);
    let seal = check(&[&out]);
    out.extend_from_slice(&seal);
    out
}

/// A block of a log that begins at that offset.
fn log_block(offset: u64, content: &[u8]) -> Option<Vec<u8>> {
    let length = u32::try_from(content.len()).ok()?.to_le_bytes();
    let mut out = length.to_vec();
    out.extend_from_slice(&check(&[&offset.to_le_bytes(), &length, content]));
    out.extend_from_slice(content);
    Some(out)
}

/// Of what becomes of files, for a log.
#[derive(Default)]
struct Statements(Vec<u8>);

impl Statements {
    fn gone(&mut self, path: &str) -> Option<()> {
        put_number::<1>(&mut self.0, GONE)?;
        put_text::<4>(&mut self.0, path)
    }

    fn run(&mut self, statement: &RunStatement<'_>) -> Option<()> {
        let out = &mut self.0;
        put_number::<1>(out, RUN)?;
        put_text::<4>(out, &statement.path)?;
        put_number::<4>(out, statement.ordinal.into())?;
        put_version(out, statement.before.as_ref())?;
        put_version(out, statement.after.as_ref())?;
        put_number::<2>(out, statement.languages.into())?;
        put_number::<4>(out, statement.entries.len() as u64)?;
        statement.entries.iter().try_for_each(|entry| put_entry(out, entry))
    }
}

/// What a log says of a file's documents from one on.
struct RunStatement<'e> {
    path: String,
    /// How many documents come before; 0: all there were are gone.
    ordinal: u32,
    /// What the file's version must have been, if any come before.
    before: Option<Version>,
    after: Option<Version>,
    languages: u16,
    entries: Cow<'e, [Entry]>,
}

impl RunStatement<'_> {
    fn read(reader: &mut Reader<'_>) -> Option<RunStatement<'static>> {
        let path = reader.text::<4>()?.to_owned();
        let ordinal = u32::try_from(reader.number::<4>()?).ok()?;
        let (before, after) = (read_version(reader)?, read_version(reader)?);
        let languages = u16::try_from(reader.number::<2>()?).ok()?;
        let mut entries = Vec::new();
        for _ in 0..reader.number::<4>()? {
            entries.push(read_entry(reader)?);
        }
        Some(RunStatement { path, ordinal, before, after, languages, entries: entries.into() })
    }
}

/// Documents of the memory from one on, put together once for many runs: it takes going through all terms.
#[derive(Default)]
struct Entries {
    first: u32,
    entries: Option<Vec<Entry>>,
}

impl Entries {
    /// Those of a run that does not begin before the run that was asked for first.
    fn of(&mut self, memory: &Memory, range: Range<u32>) -> Option<&[Entry]> {
        let entries = self.entries.get_or_insert_with(|| {
            self.first = range.start;
            memory.entries(range.start..memory.documents())
        });
        let into = |document: u32| document.checked_sub(self.first).map(|into| into as usize);
        entries.get(into(range.start)?..into(range.end)?)
    }
}

fn put_version(out: &mut Vec<u8>, version: Option<&Version>) -> Option<()> {
    match version.filter(|version| version.token.len() <= usize::from(u8::MAX)) {
        None => put_number::<1>(out, 0),
        Some(version) => {
            put_number::<1>(out, if version.faulty { 2 } else { 1 })?;
            put_number::<8>(out, version.size)?;
            put_text::<1>(out, &version.token)
        }
    }
}

fn read_version(reader: &mut Reader<'_>) -> Option<Option<Version>> {
    let faulty = match reader.number::<1>()? {
        0 => return Some(None),
        1 => false,
        2 => true,
        _ => return None,
    };
    Some(Some(Version { size: reader.number::<8>()?, token: reader.text::<1>()?.to_owned(), faulty }))
}

fn put_entry(out: &mut Vec<u8>, entry: &Entry) -> Option<()> {
    put_text::<4>(out, &entry.id)?;
    for number in [entry.place.offset, entry.place.header, entry.place.length, entry.place.line] {
        put_number::<8>(out, number)?;
    }
    put_number::<4>(out, entry.days.map_or(0, Span::code).into())?;
    put_number::<1>(out, entry.traits.into())?;
    put_number::<1>(out, entry.length.into())?;
    put_number::<1>(out, entry.speaker.is_some().into())?;
    if let Some(names) = &entry.speaker {
        for name in [&names.id, &names.display, &names.label] {
            put_text::<4>(out, name)?;
        }
    }
    put_number::<4>(out, entry.terms.len() as u64)?;
    for term in &entry.terms {
        put_text::<1>(out, &term.text)?;
        out.extend_from_slice(&[term.frequency, term.place]);
    }
    Some(())
}

fn read_entry(reader: &mut Reader<'_>) -> Option<Entry> {
    let id = reader.text::<4>()?.to_owned();
    let mut number = || reader.number::<8>();
    let place = Place { offset: number()?, header: number()?, length: number()?, line: number()? };
    let days = Span::of_code(u32::try_from(reader.number::<4>()?).ok()?);
    let [traits, length, speaks] = reader.array()?;
    let mut names = || Some(Names { id: name(reader)?, display: name(reader)?, label: name(reader)? });
    let speaker = if speaks == 0 { None } else { Some(names()?) };
    let mut terms = Vec::new();
    for _ in 0..reader.number::<4>()? {
        let text = reader.text::<1>()?.to_owned();
        let [frequency, place] = reader.array()?;
        terms.push(Term { text, frequency, place });
    }
    Some(Entry { id, place, days, traits, length, speaker, terms })
}

fn name(reader: &mut Reader<'_>) -> Option<String> {
    Some(reader.text::<4>()?.to_owned())
}

/// An index being opened: give it what it wants until it wants nothing.
#[derive(Debug)]
pub struct Opening {
    index: Index,
    /// Segments still to be read, the next last; and what is dead in each.
    waiting: Vec<([u8; 8], u64, Vec<u32>)>,
    /// The segment being read.
    segment: Option<(Segment, Vec<u32>)>,
    dead: BTreeSet<RunAt>,
    wanted: Vec<Wanted>,
    log: Option<String>,
}

impl Opening {
    /// Of what the cache file [`CATALOG`] holds, and of the settings that decide what becomes of documents, in whatever form.
    /// A catalog that is damaged, or of other settings, is none.
    pub fn new(catalog: Option<&[u8]>, settings: &[u8]) -> Opening {
        let settings = check(&[settings]);
        let mut index = Index::with_settings(settings);
        let mut waiting = Vec::new();
        let mut log = None;
        if let Some(catalog) = catalog.and_then(|bytes| Catalog::read(bytes, settings)) {
            index.kept.catalog = Some(catalog.check);
            log = Some(file_name(&catalog.check, "log"));
            // Also of those that turn out to be lost or damaged: what takes their place lets them go.
            index.kept.segments.extend(catalog.segments.iter().map(Listed::name));
            let listed = catalog.segments.into_iter().rev();
            waiting.extend(listed.map(|listed| (listed.seal, listed.length, listed.dead)));
        }
        let mut opening = Opening { index, waiting, segment: None, dead: BTreeSet::new(), wanted: Vec::new(), log };
        opening.go_on();
        opening
    }

    /// What is needed next; none: everything is there.
    pub fn wanted(&self) -> Option<&Wanted> {
        self.wanted.first()
    }

    /// Takes what was wanted; none if there is no such file, or not so much of it.
    pub fn supply(&mut self, bytes: Option<Vec<u8>>) {
        if self.wanted.is_empty() {
            return;
        }
        let wanted = self.wanted.remove(0);
        match &mut self.segment {
            Some((segment, _)) => {
                if !bytes.is_some_and(|bytes| segment.supply_range(&wanted.range, &bytes)) {
                    // What the others say does not depend on it.
                    self.segment = None;
                    self.wanted.clear();
                    self.index.kept.torn = true;
                }
            }
            None => match self.waiting.pop() {
                Some((_, _, dead)) => {
                    let opened = bytes.and_then(|bytes| Segment::open(&wanted.name, &bytes, self.index.settings));
                    self.index.kept.torn |= opened.is_none();
                    self.segment = opened.map(|segment| (segment, dead));
                }
                None => {
                    self.index.take_log(&bytes.unwrap_or_default());
                }
            },
        }
        self.go_on();
    }

    /// The index. What was still wanted is left out.
    pub fn finish(self) -> Index {
        self.index
    }

    fn go_on(&mut self) {
        while self.wanted.is_empty() {
            if let Some((segment, _)) = &mut self.segment {
                let mut missing = Missing::default();
                match segment.start(&mut missing) {
                    None => {
                        let pages = missing.pages.into_iter().map(|(_, page)| page);
                        self.wanted = ranges(segment, pages);
                        return;
                    }
                    Some(sound) => self.take_segment(sound),
                }
            } else if let Some((seal, length, _)) = self.waiting.last() {
                let name = file_name(seal, "segment");
                let range = 0..Segment::file_length(*length).min(PAGE_BYTES);
                self.wanted.push(Wanted { name, range });
                return;
            } else {
                self.index.settle(&self.dead);
                let Some(name) = self.log.take() else { return };
                self.wanted.push(Wanted { name, range: 0..BYTES_MAX });
                return;
            }
        }
    }

    fn take_segment(&mut self, sound: bool) {
        let Some((segment, dead)) = self.segment.take() else { return };
        if !sound {
            self.index.kept.torn = true;
            return;
        }
        let part = self.index.put_before_memory(Part::Segment(segment));
        self.dead.extend(dead.into_iter().map(|run| RunAt { part, run }));
    }
}

/// Pages as ranges of the file, neighbours together.
fn ranges(segment: &Segment, pages: impl Iterator<Item = u32>) -> Vec<Wanted> {
    let pages: BTreeSet<u32> = pages.collect();
    let mut ranges: Vec<Range<u64>> = Vec::new();
    for page in pages {
        let next = segment.page_range(page);
        match ranges.last_mut() {
            Some(last) if last.end == next.start && next.end - last.start <= READ_BYTES => last.end = next.end,
            _ => ranges.push(next),
        }
    }
    ranges.into_iter().map(|range| Wanted { name: segment.name.clone(), range }).collect()
}

impl Index {
    /// What a search lacked, in the files of the cache.
    pub fn wanted(&self, missing: &MissingPages) -> Vec<Wanted> {
        let mut by_part: BTreeMap<u32, BTreeSet<u32>> = BTreeMap::new();
        for (part, page) in &missing.0.pages {
            by_part.entry(*part).or_default().insert(*page);
        }
        let mut wanted = Vec::new();
        for (part, pages) in by_part {
            if let Some(Part::Segment(segment)) = self.parts.get(part as usize) {
                wanted.extend(ranges(segment, pages.into_iter()));
            }
        }
        wanted
    }

    /// Takes what was wanted; none if it could not be read. False: that segment cannot be used any more, and nothing is
    /// known any more of the files that have documents in it.
    pub fn supply(&mut self, wanted: &Wanted, bytes: Option<&[u8]>) -> bool {
        let of_name = |part: &Part| matches!(part, Part::Segment(segment) if segment.name == wanted.name);
        let Some(number) = self.parts.iter().position(of_name) else { return false };
        let supplied = match self.parts.get_mut(number) {
            Some(Part::Segment(segment)) => bytes.is_some_and(|bytes| segment.supply_range(&wanted.range, bytes)),
            _ => false,
        };
        if !supplied {
            self.lose(number);
            self.kept.torn = true;
        }
        supplied
    }

    /// Name of the log, and how far it has been taken in; none where there is no catalog yet.
    pub fn log(&self) -> Option<(String, u64)> {
        Some((file_name(self.kept.catalog.as_ref()?, "log"), self.kept.log_bytes))
    }

    /// Whether the catalog is the one the index was opened with, or has written since.
    pub fn is_of(&self, catalog: &[u8]) -> bool {
        Catalog::read(catalog, self.settings).map(|catalog| catalog.check) == self.kept.catalog
    }

    /// Whether a file of the cache is one of those that the index is kept in.
    pub fn keeps(&self, name: &str) -> bool {
        name == CATALOG || self.kept.segments.contains(name) || self.log().is_some_and(|(log, _)| log == name)
    }

    /// Takes in what a log has from where it was read last: what other processes have added. The paths of the files that it
    /// is about.
    pub fn take_log(&mut self, bytes: &[u8]) -> BTreeSet<String> {
        let mut about = BTreeSet::new();
        let Some(catalog) = self.kept.catalog else { return about };
        let mut reader = Reader(bytes);
        if self.kept.log_bytes == 0 && !bytes.is_empty() {
            let head = log_head(&catalog, self.settings);
            if reader.take(head.len()) != Some(head.as_slice()) {
                self.kept.torn = true;
                return about;
            }
            self.kept.log_bytes = head.len() as u64;
        }
        while reader.end().is_none() {
            let Some(content) = read_block(&mut reader, self.kept.log_bytes) else {
                self.kept.torn = true;
                break;
            };
            self.kept.log_bytes += BLOCK_HEAD_BYTES + content.len() as u64;
            if self.take_statements(content, &mut about).is_none() {
                self.kept.torn = true;
                break;
            }
        }
        self.kept.pending.clear();
        self.kept.logged_runs = self.memory_runs();
        about
    }

    fn take_statements(&mut self, content: &[u8], about: &mut BTreeSet<String>) -> Option<()> {
        let mut reader = Reader(content);
        while reader.end().is_none() {
            match reader.number::<1>()? {
                GONE => {
                    let path = reader.text::<4>()?.to_owned();
                    self.remove(&path);
                    about.insert(path);
                }
                RUN => {
                    let statement = RunStatement::read(&mut reader)?;
                    self.take_run(&statement);
                    about.insert(statement.path);
                }
                _ => return None,
            }
        }
        Some(())
    }

    fn take_run(&mut self, statement: &RunStatement<'_>) {
        let path = statement.path.as_str();
        if statement.ordinal == 0 {
            self.remove(path);
        } else if self.standing(path) != (statement.ordinal, statement.before.as_ref()) {
            // It is about a file that was something else by then.
            self.remove(path);
            return;
        }
        self.restore(path, &statement.entries, statement.languages, statement.after.clone());
    }

    /// Whether [`Index::save`] may have something to write.
    pub fn is_to_be_saved(&self) -> bool {
        let unsaved = |part: &Part| matches!(part, Part::Segment(segment) if segment.name.is_empty());
        !self.kept.pending.is_empty()
            || self.kept.torn
            || self.memory_documents() > LOG_DOCUMENTS
            || self.kept.log_bytes > LOG_BYTES
            || self.parts.iter().any(unsaved)
    }

    /// Writes down what the index has learned since it was opened or saved last. Costs time and bytes in proportion to
    /// that, and now and then, on average, to a few times that.
    ///
    /// # Errors
    /// Pages of segments that are to be merged are missing: supply them and call again. The index is whole and of use.
    pub fn save(&mut self) -> Result<Vec<Write>, MissingPages> {
        let log_is_full = self.memory_documents() > LOG_DOCUMENTS || self.kept.log_bytes > LOG_BYTES;
        let unsaved = self.parts.iter().any(|part| matches!(part, Part::Segment(segment) if segment.name.is_empty()));
        let anew = log_is_full || unsaved || self.kept.torn || self.kept.catalog.is_none();
        if !anew {
            let pending = core::mem::take(&mut self.kept.pending);
            let content = self.statements(pending.iter());
            return Ok(content.and_then(|content| self.append(&content)).into_iter().collect());
        }
        if self.kept.pending.is_empty() && !log_is_full && !unsaved && !self.kept.torn {
            return Ok(Vec::new());
        }
        if log_is_full {
            self.seal();
        }
        self.merge_tiers()?;
        Ok(self.write_anew())
    }

    fn append(&mut self, content: &[u8]) -> Option<Write> {
        if content.is_empty() {
            return None;
        }
        let (name, length) = self.log()?;
        let mut bytes = Vec::new();
        if length == 0 {
            bytes = log_head(self.kept.catalog.as_ref()?, self.settings);
        }
        bytes.extend_from_slice(&log_block(length + bytes.len() as u64, content)?);
        self.kept.log_bytes += bytes.len() as u64;
        self.kept.logged_runs = self.memory_runs();
        Some(Write::Append { name, length, bytes })
    }

    fn statements<'c>(&self, changes: impl Iterator<Item = &'c Change>) -> Option<Vec<u8>> {
        let mut statements = Statements::default();
        let mut entries = Entries::default();
        for change in changes {
            match change {
                Change::Gone(path) if self.standing(path) == (0, None) => statements.gone(path)?,
                // It came back, and its first run says so.
                Change::Gone(_) => {}
                Change::Run(run) => {
                    if let Some(statement) = self.run_statement(*run, &mut entries) {
                        statements.run(&statement)?;
                    }
                }
            }
        }
        Some(statements.0)
    }

    /// Of a run of the memory; none if it is dead. Runs are asked for in their order.
    fn run_statement<'e>(&self, run: u32, entries: &'e mut Entries) -> Option<RunStatement<'e>> {
        let part = self.parts.len().checked_sub(1)? as u32;
        let Some(Part::Memory(memory)) = self.parts.last() else { return None };
        let found = memory.run(run)?;
        let path = memory.path(found)?;
        let file = self.files.get(self.files.find(path)?)?;
        let at = file.runs.iter().position(|at| *at == RunAt { part, run })?;
        let before = at.checked_sub(1).and_then(|before| file.runs.get(before));
        let before =
            before.and_then(|at| self.parts.get(at.part as usize)?.runs().get(at.run as usize)?.version.clone());
        Some(RunStatement {
            path: path.to_owned(),
            ordinal: found.ordinal,
            before,
            after: found.version.clone(),
            languages: found.languages,
            entries: entries.of(memory, found.range())?.into(),
        })
    }

    /// A new catalog, its segments and its log, and the end of those before.
    fn write_anew(&mut self) -> Vec<Write> {
        let mut writes = Vec::new();
        let (mut listed, mut names) = (Vec::new(), BTreeSet::new());
        let dead = self.dead();
        for (number, part) in self.parts.iter_mut().enumerate() {
            let Part::Segment(segment) = part else { continue };
            let seal = segment.seal();
            let length = segment.length();
            if segment.name.is_empty() {
                // It was just made: all of it is at hand.
                let Some(bytes) = segment.file() else { continue };
                segment.name = file_name(&seal, "segment");
                writes.push(Write::Put { name: segment.name.clone(), bytes });
            }
            names.insert(segment.name.clone());
            let dead = dead.iter().filter(|at| at.part as usize == number).map(|at| at.run).collect();
            listed.push(Listed { seal, length, dead });
        }
        let catalog = Catalog::write(&listed, self.settings);
        let seal = catalog.last_chunk::<8>().copied();
        let old_log = self.kept.catalog.map(|catalog| file_name(&catalog, "log"));
        let old_names = core::mem::replace(&mut self.kept.segments, names);
        self.kept.catalog = seal;
        self.kept.log_bytes = 0;
        self.kept.torn = false;
        self.kept.pending.clear();
        let runs: Vec<Change> = (0..self.memory_runs() as u32).map(Change::Run).collect();
        let log = self.statements(runs.iter()).and_then(|content| self.append(&content));
        let log_name = self.log().map(|(name, _)| name);
        if let Some(Write::Append { name, bytes, .. }) = log {
            // Before the catalog, so that whoever reads that finds all of it.
            writes.push(Write::Put { name, bytes });
        } else if let Some(name) = log_name.clone() {
            writes.push(Write::Drop { name });
        }
        writes.push(Write::Put { name: CATALOG.to_owned(), bytes: catalog });
        let gone = old_names.into_iter().filter(|name| !self.kept.segments.contains(name));
        writes.extend(gone.map(|name| Write::Drop { name }));
        writes.extend(old_log.filter(|name| Some(name) != log_name.as_ref()).map(|name| Write::Drop { name }));
        writes
    }

    /// Merges segments of one size, and makes those anew most of whose documents are dead.
    fn merge_tiers(&mut self) -> Result<(), MissingPages> {
        // Each turn leaves fewer documents or fewer segments.
        while let Some(numbers) = self.next_merge() {
            let mut missing = Missing::default();
            if !self.replace_by_one(&numbers, &mut missing) {
                if missing.pages.is_empty() {
                    // They do not fit together after all.
                    break;
                }
                return Err(MissingPages(missing));
            }
        }
        Ok(())
    }

    /// Segments to be made one: neighbours of one tier, or one of which half is dead.
    fn next_merge(&self) -> Option<Vec<usize>> {
        let last = self.parts.len().saturating_sub(1);
        let live = self.live_documents();
        let tier = |number: usize| live.get(number).map_or(0, |live| (live / LOG_DOCUMENTS.max(1)).max(1).ilog2() / 2);
        for number in 0..last {
            let documents = self.parts.get(number).map_or(0, Part::documents);
            if live.get(number).is_some_and(|live| u64::from(*live) * 2 < u64::from(documents)) {
                return Some(vec![number]);
            }
        }
        (0..last.saturating_sub(FAN - 1)).rev().find_map(|first| {
            let numbers: Vec<usize> = (first..first + FAN).collect();
            let same = numbers.iter().all(|number| tier(*number) == tier(first));
            (same && self.fit_together(&numbers)).then_some(numbers)
        })
    }
}

const BLOCK_HEAD_BYTES: u64 = 12;

fn read_block<'b>(reader: &mut Reader<'b>, offset: u64) -> Option<&'b [u8]> {
    let length = reader.array::<4>()?;
    let seal = reader.array::<8>()?;
    let content = reader.take(usize::try_from(u32::from_le_bytes(length)).ok()?)?;
    (seal == check(&[&offset.to_le_bytes(), &length, content])).then_some(content)
}

/// Documents that were added to the end of a file by whoever does not have the index at hand, for its log.
#[derive(Debug)]
pub struct Extension {
    index: Index,
    path: String,
    before: Option<Version>,
    ordinal: u32,
}

impl Extension {
    /// To the file at `path`, which had `documents` documents and was the version `before`; none: it was not there.
    pub fn new(path: &str, documents: u64, before: Option<&Stamp<'_>>) -> Extension {
        Extension {
            index: Index::new(),
            path: path.to_owned(),
            before: before.map(|stamp| Version::of(stamp, false)),
            ordinal: u32::try_from(documents).unwrap_or(u32::MAX),
        }
    }

    /// Adds one.
    pub fn add(&mut self, document: &Document<'_>) {
        // What does not fit makes the file a stale one, which is indexed again.
        let _ = self.index.add(&self.path, document);
    }

    /// What to add to the log of `length` bytes under this catalog, and the log's name, now that the file is `after`. None:
    /// there is no index of these settings, the log is full, or the stamp cannot be relied on.
    pub fn finish(self, catalog: &[u8], settings: &[u8], length: u64, after: &Stamp<'_>) -> Option<Write> {
        let settings = check(&[settings]);
        let catalog = Catalog::read(catalog, settings)?;
        // More than a part has room for is no matter for a log.
        if length > LOG_BYTES || after.racy || self.index.parts.len() > 1 {
            return None;
        }
        let Some(Part::Memory(memory)) = self.index.parts.last() else { return None };
        let run = memory.run(0);
        let statement = RunStatement {
            path: self.path,
            ordinal: self.ordinal,
            before: self.before,
            after: Some(Version::of(after, false)),
            languages: run.map_or(0, |run| run.languages),
            entries: run.map_or_else(Vec::new, |run| memory.entries(run.range())).into(),
        };
        let mut statements = Statements::default();
        statements.run(&statement)?;
        let name = file_name(&catalog.check, "log");
        let mut bytes = if length == 0 { log_head(&catalog.check, settings) } else { Vec::new() };
        bytes.extend_from_slice(&log_block(length + bytes.len() as u64, &statements.0)?);
        Some(Write::Append { name, length, bytes })
    }
}

/// Name of the log that belongs to a catalog of these settings.
pub fn log_of(catalog: &[u8], settings: &[u8]) -> Option<String> {
    Some(file_name(&Catalog::read(catalog, check(&[settings]))?.check, "log"))
}
