//! Checks files of any kind that are handed to it, one after the other, and says what is wrong with them.
//!
//! Knows what a file is by its path, which scanner it needs, and how to say a fault to people. Must not know where files come
//! from: who lists and reads them hands them over.

use super::branches::{BranchLine, LINE_BYTES_MAX};
use super::frame::FrameRef;
use super::legacy::{LegacyEnd, LegacyItem, LegacyScanner};
use super::limits::Limits;
use super::line_start::LineStart;
use super::record::RecordRef;
use super::report::{Finding, FindingCode, Severity};
use super::scan::{Fault, ScanEnd, Scanner};
use crate::ids::{Location, archive_of_branches, is_derived_path, is_internal_path, is_v2_path};
use crate::text::{InvalidUtf8, Line, Lines, Utf8Pieces, excerpt};
use std::collections::{BTreeMap, VecDeque};

/// What the paths of the files are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Given {
    /// Relative to a workspace, parts joined by `/`: they say what each file is and where its records belong.
    InWorkspace,
    /// As someone typed them: what a file is, is found out as far as the path tells; anything else counts as an archive
    /// whose place is unknown.
    AnyPath,
    /// Of a directory that someone chose, its own name first: it may hold a workspace, be a part of one, or have nothing
    /// to do with any. What no workspace contains is left alone. A path of one part names a file that was chosen by
    /// itself, and counts as under [`Given::AnyPath`].
    InDirectory,
}

/// What lies at a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryKind {
    /// A regular file.
    File,
    /// A symbolic link.
    Symlink,
    /// Neither file nor directory nor link.
    Special,
    /// A name that is not UTF-8.
    Undecodable,
    /// A file or directory that may not be looked into.
    Unreadable,
}

/// What a file is, going by its path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileClass {
    /// A v2 archive: its records are checked.
    Archive,
    /// What is said of a conversation's branches: its lines are checked, and that its archive has the records they name.
    Branches,
    /// An archive of the older form (`sources/p/t.md`, `sources/D1.md`): its records are read and checked.
    OlderArchive,
    /// A topic: only its encoding is checked here, for the rest depends on other files.
    Topic,
    /// Made from other files, or carried along: only its encoding is checked.
    Derived,
    /// Of a layout from before archives and topics: its content is not wanted.
    OldLayout,
    /// Nothing this format knows, or not a file: its content is not wanted.
    Other,
}

impl FileClass {
    /// Whether the file's bytes should be pushed. Pushing those of other files does no harm.
    pub fn wants_content(self) -> bool {
        !matches!(self, Self::OldLayout | Self::Other)
    }
}

/// Figures of what was checked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Archives, of any format.
    pub source_files: u64,
    /// Whole v2 frames.
    pub frames: u64,
    /// Records of older archives, those included that a frame has taken the place of.
    pub legacy_records: u64,
    /// Topics.
    pub topic_files: u64,
    /// Sound blocks in them; none: nobody counted.
    pub blocks: Option<u64>,
    /// Bytes read.
    pub bytes: u64,
}

/// How memory is doing, as far as files show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Health {
    /// No archive and no topic.
    Empty,
    /// Nothing above an info finding.
    Ok,
    /// At least one warning or error.
    Degraded,
}

/// What came of one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileOutcome {
    /// As it was given.
    pub path: String,
    /// What it is.
    pub class: FileClass,
    /// Bytes read.
    pub bytes: u64,
    /// What the scan found, for a v2 archive that could be read.
    pub scan: Option<ScanEnd>,
    /// Records, if it is an older archive.
    pub legacy_records: u64,
    /// Nothing is wrong with what was read; [`Verifier::known`] says the same of the file as long as it does not change.
    pub clean: bool,
}

/// What came of all files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Summary {
    /// No finding above `info`, dropped ones included.
    pub ok: bool,
    /// How memory is doing.
    pub health: Health,
    /// Figures.
    pub counts: Counts,
    /// Findings that were dropped because more than `limits.findings-max` came.
    pub findings_dropped: u64,
}

/// Records and the path of their file.
type Sink<'a> = &'a mut dyn FnMut(&str, RecordRef<'_>);

/// Checks files. Each is opened with [`Verifier::file`], fed in pieces and closed with [`Verifier::end`]; findings can be
/// taken at any time. Nothing of a file is kept but findings and figures.
pub struct Verifier {
    given: Given,
    limits: Limits,
    keep: usize,
    open: Option<OpenFile>,
    findings: Findings,
    counts: Counts,
    /// There are not many names of such.
    old_layouts: Vec<String>,
    named: NamedRecords,
}

/// The records that a branches file names, with the line that named them first.
#[derive(Default)]
struct Named {
    file: String,
    /// What ids begin with there.
    prefix: String,
    /// What they end with; [`SEEN`] in place of the line once the archive has shown the record.
    messages: BTreeMap<String, u64>,
}

/// By archive: what a branches file that came before it names.
#[derive(Default)]
struct NamedRecords {
    places: BTreeMap<String, u64>,
    named: Vec<Named>,
}

impl NamedRecords {
    fn of(&mut self, archive: &str) -> Option<&mut Named> {
        let place = *self.places.get(archive)?;
        self.named.get_mut(place as usize)
    }

    fn insert(&mut self, archive: String, named: Named) {
        self.places.insert(archive, self.named.len() as u64);
        self.named.push(named);
    }
}

/// No line: they count from 1.
const SEEN: u64 = 0;

/// What was found and not taken out yet, and what it comes to.
struct Findings {
    waiting: VecDeque<Finding>,
    most: u64,
    made: u64,
    dropped: u64,
    worst: Option<Severity>,
}

impl Findings {
    fn add(&mut self, finding: Finding) {
        self.worst = self.worst.max(Some(finding.severity));
        if self.made < self.most {
            self.made += 1;
            self.waiting.push_back(finding);
        } else {
            self.dropped += 1;
        }
    }
}

struct OpenFile {
    path: String,
    class: FileClass,
    bytes: u64,
    /// Figures of the files before it.
    before: Counts,
    check: Check,
}

enum Check {
    Archive(Box<Scanner>),
    Legacy(Box<LegacyCheck>),
    Text(Box<TextCheck>),
    Branches(Box<BranchCheck>),
    Nothing,
}

impl Verifier {
    /// Nothing checked yet.
    pub fn new(given: Given, limits: &Limits) -> Self {
        Self {
            given,
            limits: *limits,
            keep: 0,
            open: None,
            findings: Findings {
                waiting: VecDeque::new(),
                most: limits.findings_max,
                made: 0,
                dropped: 0,
                worst: None,
            },
            counts: Counts::default(),
            old_layouts: Vec::new(),
            named: NamedRecords::default(),
        }
    }

    /// Hands records on with at most the first `bytes` bytes of their text: see [`Scanner::keep_records`].
    pub fn keep_records(self, bytes: usize) -> Self {
        Self { keep: bytes, ..self }
    }

    /// What the file at this path would be taken for.
    pub fn class(&self, path: &str) -> FileClass {
        classify(path, self.given).0
    }

    /// What of a path is the path within its workspace, if the file is of that class; all of it if none of its ends is.
    pub fn within<'p>(&self, path: &'p str, class: FileClass) -> &'p str {
        in_workspace(path, self.given, class)
    }

    /// Whether the paths are those of one workspace that was handed over whole, as far as it goes.
    pub fn is_of_workspace(&self) -> bool {
        self.given == Given::InWorkspace
    }

    /// Opens a file, or notes that something else lies there. A file that is still open is closed first.
    pub fn file(&mut self, path: &str, kind: EntryKind) -> FileClass {
        if self.open.is_some() {
            self.end(&mut |_, _| {});
        }
        let (class, location) = classify(path, self.given);
        let kind_code = match kind {
            EntryKind::File => None,
            EntryKind::Symlink => Some((FindingCode::SymlinkIgnored, SYMLINK)),
            EntryKind::Special => Some((FindingCode::SpecialFile, SPECIAL)),
            EntryKind::Undecodable => Some((FindingCode::UndecodableName, UNDECODABLE)),
            EntryKind::Unreadable => Some((FindingCode::UnreadableFile, UNREADABLE)),
        };
        let class = match kind_code {
            Some((code, message)) => {
                let is_internal = match self.given {
                    Given::InDirectory => tails(path).any(is_internal_path),
                    Given::InWorkspace | Given::AnyPath => is_internal_path(path),
                };
                if !is_internal {
                    self.findings.add(finding(code, path, message));
                }
                FileClass::Other
            }
            None => class,
        };
        match class {
            FileClass::Archive | FileClass::OlderArchive => self.counts.source_files += 1,
            FileClass::Topic => self.counts.topic_files += 1,
            FileClass::OldLayout => {
                let name = path.split('/').next().unwrap_or(path);
                if self.old_layouts.iter().all(|told| told != name) {
                    self.old_layouts.push(name.to_owned());
                    self.findings.add(finding(FindingCode::OldLayout, name, OLD_LAYOUT));
                }
            }
            FileClass::Branches | FileClass::Derived | FileClass::Other => {}
        }
        let check = self.check(path, class, location);
        self.open = Some(OpenFile { path: path.to_owned(), class, bytes: 0, before: self.counts, check });
        class
    }

    /// The open file changed while it was read: what was pushed of it does not count, and it is pushed from its start.
    pub fn again(&mut self) {
        let Some(mut open) = self.open.take() else { return };
        let (class, location) = classify(&open.path, self.given);
        if class == open.class {
            open.check = self.check(&open.path, class, location);
        }
        open.bytes = 0;
        self.counts.frames = open.before.frames;
        self.counts.legacy_records = open.before.legacy_records;
        self.open = Some(open);
    }

    /// The open file is gone since it was listed: it does not count, and nothing is said of it.
    pub fn gone(&mut self) {
        let Some(open) = self.open.take() else { return };
        self.counts = open.before;
        match open.class {
            FileClass::Archive | FileClass::OlderArchive => self.counts.source_files -= 1,
            FileClass::Topic => self.counts.topic_files -= 1,
            FileClass::Branches | FileClass::Derived | FileClass::OldLayout | FileClass::Other => {}
        }
    }

    fn check(&self, path: &str, class: FileClass, location: Option<Location>) -> Check {
        match class {
            FileClass::Archive => {
                Check::Archive(Box::new(Scanner::new(location, &self.limits).keep_records(self.keep)))
            }
            FileClass::OlderArchive => {
                let scanner = LegacyScanner::new(self.within(path, class), &self.limits).keep_records(self.keep);
                Check::Legacy(Box::new(LegacyCheck { scanner, clean: true }))
            }
            FileClass::Topic | FileClass::Derived => Check::Text(Box::default()),
            FileClass::Branches => Check::Branches(Box::default()),
            FileClass::OldLayout | FileClass::Other => Check::Nothing,
        }
    }

    /// The next piece of the open file; it may end inside a character.
    pub fn push_bytes(&mut self, bytes: &[u8], sink: Sink<'_>) {
        let Some(OpenFile { path, bytes: read, check, .. }) = &mut self.open else { return };
        *read += bytes.len() as u64;
        let Self { counts, findings, named, .. } = self;
        let mut found = Found { path, counts, findings, named, sink };
        match check {
            Check::Archive(scanner) => scanner.push_bytes(bytes, &mut |frame| found.record(RecordRef::Frame(frame))),
            Check::Legacy(check) => {
                let LegacyCheck { scanner, clean } = check.as_mut();
                scanner.push_bytes(bytes, &mut |item| found.legacy(item, clean));
            }
            Check::Text(text) => text.push(bytes),
            Check::Branches(lines) => lines.push(bytes),
            Check::Nothing => {}
        }
    }

    /// The same for text.
    pub fn push_text(&mut self, text: &str, sink: Sink<'_>) {
        let Some(OpenFile { path, bytes: read, check, .. }) = &mut self.open else { return };
        let Self { counts, findings, named, .. } = self;
        let mut found = Found { path, counts, findings, named, sink };
        match check {
            Check::Archive(scanner) => {
                *read += text.len() as u64;
                scanner.push_text(text, &mut |frame| found.record(RecordRef::Frame(frame)));
            }
            Check::Legacy(check) => {
                *read += text.len() as u64;
                let LegacyCheck { scanner, clean } = check.as_mut();
                scanner.push_text(text, &mut |item| found.legacy(item, clean));
            }
            Check::Text(_) | Check::Branches(_) | Check::Nothing => self.push_bytes(text.as_bytes(), sink),
        }
    }

    /// The open file could not be read to its end, and why, in words. Closes it.
    pub fn unreadable(&mut self, why: &str) -> Option<FileOutcome> {
        let OpenFile { path, class, bytes, .. } = self.open.take()?;
        self.counts.bytes += bytes;
        self.unread(&path, why);
        Some(FileOutcome { path, class, bytes, scan: None, legacy_records: 0, clean: false })
    }

    /// Closes the open file without its content, which was found clean before ([`FileOutcome::clean`]): so many bytes,
    /// whole frames and records of the older form. What was worth knowing of it (`info`) is not told again.
    pub fn known(&mut self, bytes: u64, frames: u64, legacy_records: u64) {
        if self.open.take().is_some() {
            self.counts.bytes += bytes;
            self.counts.frames += frames;
            self.counts.legacy_records += legacy_records;
        }
    }

    /// The tables of the cache say something else of this file than its content, though it has not changed since.
    pub fn stale_index(&mut self, path: &str) {
        self.findings.add(finding(FindingCode::StaleIndex, path, STALE_INDEX));
    }

    /// What lies at a path could not be read, and why, in words.
    pub fn unread(&mut self, path: &str, why: &str) {
        self.findings.add(finding(
            FindingCode::UnreadableFile,
            path,
            &format!("{why}; what is there is not remembered until it can be read"),
        ));
    }

    /// Takes in how many sound blocks topics have.
    pub fn count_blocks(&mut self, blocks: u64) {
        self.counts.blocks = Some(blocks);
    }

    /// Takes in what was found elsewhere: in topics, in views.
    pub fn tell(&mut self, finding: Finding) {
        self.findings.add(finding);
    }

    /// Closes the open file. None if none is open.
    pub fn end(&mut self, sink: Sink<'_>) -> Option<FileOutcome> {
        let OpenFile { path, class, bytes, before, check } = self.open.take()?;
        self.counts.bytes += bytes;
        let mut clean = true;
        let mut scan = None;
        let Self { counts, findings, named, .. } = self;
        let mut found = Found { path: &path, counts, findings, named, sink };
        match check {
            Check::Archive(scanner) => {
                let end = scanner.finish(&mut |frame| found.record(RecordRef::Frame(frame)));
                self.archive(&path, &end);
                // Behind damage a record may be there.
                if end.complete
                    && let Some(named) = self.named.of(&path)
                {
                    let named = core::mem::take(named);
                    self.unknown_records(&named);
                }
                clean = end.complete && end.invalid_utf8.is_none();
                scan = Some(end);
            }
            Check::Legacy(check) => {
                clean = check.clean;
                let end = check.scanner.finish(&mut |item| found.legacy(item, &mut clean));
                clean &= end.fault.is_none();
                self.legacy(&path, &end);
            }
            Check::Text(text) => {
                if let Some(fault) = text.finish() {
                    clean = false;
                    self.findings.add(located(&path, &fault, INVALID_TEXT.to_owned()));
                }
            }
            Check::Branches(lines) => clean = self.branches(&path, *lines),
            Check::Nothing => {}
        }
        let legacy_records = self.counts.legacy_records - before.legacy_records;
        Some(FileOutcome { path, class, bytes, scan, legacy_records, clean })
    }

    fn legacy(&mut self, path: &str, end: &LegacyEnd) {
        if let Some(invalid) = &end.invalid_utf8 {
            self.findings.add(located(path, invalid, INVALID_LEGACY.to_owned()));
        }
        if let Some(first) = &end.first_loose {
            let what = match end.loose_lines {
                1 => "1 line belongs to no record and is".to_owned(),
                lines => format!("{lines} lines belong to no record and are"),
            };
            let message = format!("{what} not searched; `get` shows the file as it stands");
            self.findings.add(located(path, first, message));
        }
    }

    fn archive(&mut self, path: &str, end: &ScanEnd) {
        let unplaced = classify(path, self.given).1.is_none();
        match &end.fault {
            Some(_) if end.bytes == 0 => self.findings.add(finding(FindingCode::EmptyArchive, path, EMPTY)),
            Some(fault) => self.findings.add(located(path, fault, explain(fault, end, unplaced))),
            None => {}
        }
        if let Some(invalid) = end.invalid_utf8.as_ref().filter(|invalid| end.fault.as_ref() != Some(invalid)) {
            self.findings.add(located(path, invalid, explain(invalid, end, unplaced)));
        }
        if unplaced {
            let place = end.location.as_ref().map(Location::path);
            let message = match place {
                Some(place) => {
                    format!("checked without its place in a workspace; going by its first record it belongs at {place}")
                }
                None => "checked without its place in a workspace".to_owned(),
            };
            let subject = place.map(str::to_owned);
            self.findings.add(Finding { subject, ..finding(FindingCode::LocationUnchecked, path, &message) });
        }
    }

    /// False: there is something wrong with its lines. What they name is looked for in the archive, which comes later.
    fn branches(&mut self, path: &str, mut lines: BranchCheck) -> bool {
        lines.finish();
        let BranchCheck { names, bad, .. } = lines;
        if let Some((line, count)) = bad {
            let more = if count > 1 { format!(", nor do {} further lines", count - 1) } else { String::new() };
            let message = format!(
                "this line does not say what a record comes behind{more}; records without a line come behind the one \
                 before them. Restore the file from a copy, or remove the line"
            );
            self.findings.add(Finding { line: Some(line), ..finding(FindingCode::BadBranchLine, path, &message) });
        }
        if let Some(archive) = archive_beside(path)
            && let Some(location) = classify(&archive, self.given).1
            && let Some(prefix) = location.id_prefix()
        {
            self.named.insert(archive, Named { file: path.to_owned(), prefix: prefix.to_owned(), messages: names });
        }
        bad.is_none()
    }

    fn unknown_records(&mut self, named: &Named) {
        let unknown = || named.messages.iter().filter(|(_, line)| **line != SEEN);
        let Some((message, line)) = unknown().min_by_key(|(_, line)| **line) else { return };
        let id = format!("{}{message}", named.prefix);
        let others = unknown().count() - 1;
        let more = if others > 0 { format!(", nor {others} others") } else { String::new() };
        let message = format!(
            "this line names a record that the archive does not have{more}; what comes behind it cannot be told. \
             Restore both files from one copy"
        );
        let found = finding(FindingCode::UnknownBranchRecord, &named.file, &message);
        self.findings.add(Finding { line: Some(*line), subject: Some(id), ..found });
    }

    /// Takes findings out, oldest first, at most `max`.
    pub fn take_findings(&mut self, max: usize) -> Vec<Finding> {
        let waiting = &mut self.findings.waiting;
        core::iter::from_fn(|| waiting.pop_front()).take(max).collect()
    }

    /// What came of the files so far; a file still open counts with the frames it has shown.
    pub fn summary(&self) -> Summary {
        let ok = self.findings.worst.is_none_or(|worst| worst == Severity::Info);
        let mut counts = self.counts;
        counts.bytes += self.open.as_ref().map_or(0, |open| open.bytes);
        let health = match (ok, counts.source_files + counts.topic_files) {
            (false, _) => Health::Degraded,
            (true, 0) => Health::Empty,
            (true, _) => Health::Ok,
        };
        Summary { ok, health, counts, findings_dropped: self.findings.dropped }
    }
}

/// An older archive being read.
struct LegacyCheck {
    scanner: LegacyScanner,
    /// Nothing above `info` was found.
    clean: bool,
}

/// What becomes of what scanners hand on.
struct Found<'a> {
    path: &'a str,
    counts: &'a mut Counts,
    findings: &'a mut Findings,
    named: &'a mut NamedRecords,
    sink: Sink<'a>,
}

impl Found<'_> {
    fn record(&mut self, record: RecordRef<'_>) {
        match record {
            RecordRef::Frame(frame) => {
                self.counts.frames += 1;
                strike(self.named, self.path, frame);
            }
            RecordRef::Legacy(_) => self.counts.legacy_records += u64::from(record.is_record()),
        }
        (self.sink)(self.path, record);
    }

    fn legacy(&mut self, item: LegacyItem<'_>, clean: &mut bool) {
        match item {
            LegacyItem::Found(legacy) => self.record(RecordRef::Legacy(legacy)),
            LegacyItem::Wrong(fault, id) => {
                *clean = false;
                let message = explain_legacy(fault.code).to_owned();
                let subject = id.map(|id| excerpt(id.as_bytes()));
                self.findings.add(Finding { subject, ..located(self.path, fault, message) });
            }
        }
    }
}

const SYMLINK: &str =
    "a symbolic link; it was not followed and nothing behind it is remembered. Put the file itself here";
const SPECIAL: &str = "neither a file nor a directory; it was not opened. Remove it";
const UNDECODABLE: &str = "the name is not UTF-8, so nothing in it can be reached. Rename it";
const UNREADABLE: &str =
    "may not be looked into, so nothing in it is remembered. Change its owner or its mode (`chmod u+rwX`)";
const OLD_LAYOUT: &str = "from a layout that is no longer read; `init` moves it aside, beside the workspace";
const INVALID_TEXT: &str =
    "not UTF-8 from here on; the file is left out. Restore it from a copy, or convert it to UTF-8";
const INVALID_LEGACY: &str = "not UTF-8 from here on; what stands before it stays in use. Restore the file from a copy, or convert it \
    to UTF-8";
const STALE_INDEX: &str = "the cache was wrong about this file, and has been made again; nothing else is needed. If it comes \
    back, something changes files and hides it: look at the medium and at programs that set file times";
const EMPTY: &str = "the archive is empty; if it held anything, restore it from a copy";

fn finding(code: FindingCode, path: &str, message: &str) -> Finding {
    Finding {
        code: code.as_str(),
        severity: code.severity(),
        path: Some(path.to_owned()),
        line: None,
        subject: None,
        excerpt: None,
        message: message.to_owned(),
    }
}

fn located(path: &str, fault: &Fault, message: String) -> Finding {
    Finding { line: Some(fault.line), excerpt: Some(fault.excerpt.clone()), ..finding(fault.code, path, &message) }
}

/// What is wrong with something in an older archive, and what to do.
fn explain_legacy(code: FindingCode) -> &'static str {
    match code {
        FindingCode::LegacyBadRecord => {
            "a header, and no record below it: what it named is not here. Restore the file from a copy"
        }
        FindingCode::LegacyCutRecord => {
            "the record that begins here is over before it should be; what there is of it stays in use. Restore the file \
             from a copy"
        }
        FindingCode::LegacyDuplicateId => {
            "a record with this id is in the file already; that one stays, and this one is left out. If both are wanted, \
             restore the file from a copy"
        }
        _ => {
            "this looks like a record's header and names nothing of this file, so it is taken for text. If the file was \
             moved or renamed, put it back"
        }
    }
}

/// What is wrong, what is still good, what to do.
fn explain(fault: &Fault, end: &ScanEnd, unplaced: bool) -> String {
    let what = match fault.code {
        FindingCode::MissingMarker if unplaced => {
            return "not an archive: its first line is not the marker, or no empty line follows".to_owned();
        }
        FindingCode::MissingMarker => "the file does not begin with the archive's marker and an empty line",
        FindingCode::BadAnchor => "a record's anchor line should be here",
        FindingCode::BadSourceId => "the id of a record should be here, and this is none that an archive may carry",
        FindingCode::WrongLocation => "this record's id belongs to another file",
        FindingCode::AnchorMismatch => "the anchor does not belong to the id below it",
        FindingCode::DuplicateId => "a record with this id is in the file already",
        FindingCode::BadSpeaker => "the speaker marker is not as a runtime writes it",
        FindingCode::BadMetadata => "the metadata is not as a runtime writes it",
        FindingCode::BadRecordCount => "the number of the record's lines should be here, 1 to 999999999",
        FindingCode::BadRecord => "a record should begin here with [time] label: text",
        FindingCode::MissingTerminator => "the record should be over here, with an empty line",
        FindingCode::TruncatedFrame => "the file ends before the record that begins here does",
        FindingCode::HeaderTooLong => "what stands above the record's text is longer than limits.header-bytes",
        _ => "not UTF-8 from here on",
    };
    let good = match end.frames {
        0 => "no record before it is whole".to_owned(),
        1 => format!("the record before it is whole and stays in use ({} bytes)", end.valid_prefix_bytes),
        frames => format!("{frames} records before it are whole and stay in use ({} bytes)", end.valid_prefix_bytes),
    };
    format!("{what}; {good}, nothing can be added. Restore the file from a copy, or undo what was done to it")
}

/// What a file is, and for a v2 archive where its records belong (none: unknown).
fn classify(path: &str, given: Given) -> (FileClass, Option<Location>) {
    match given {
        Given::InWorkspace => {
            let class = class_in_workspace(path);
            (class, (class == FileClass::Archive).then(|| Location::of_path(path)))
        }
        Given::AnyPath => {
            if let Some(location) = Location::in_given_path(path) {
                return (FileClass::Archive, Some(location));
            }
            let class = tails(path).map(class_in_workspace).find(|class| class.wants_content());
            (class.unwrap_or(FileClass::Archive), None)
        }
        Given::InDirectory if !path.contains('/') => classify(path, Given::AnyPath),
        Given::InDirectory => {
            for tail in tails(path) {
                if is_internal_path(tail) {
                    return (FileClass::Other, None);
                }
                let class = class_in_workspace(tail);
                if class.wants_content() {
                    return (class, (class == FileClass::Archive).then(|| Location::of_path(tail)));
                }
            }
            // Below `sources/`, or below a provider's directory.
            let location = Location::in_given_path(path);
            (if location.is_some() { FileClass::Archive } else { FileClass::Other }, location)
        }
    }
}

/// Where a file of that class lies in its workspace, going by the path that was given.
fn in_workspace(path: &str, given: Given, class: FileClass) -> &str {
    match given {
        Given::InWorkspace => path,
        Given::AnyPath | Given::InDirectory => {
            tails(path).find(|path| class_in_workspace(path) == class).unwrap_or(path)
        }
    }
}

/// The archive whose branches the file at `path` keeps, wherever its workspace lies.
fn archive_beside(path: &str) -> Option<String> {
    tails(path).find_map(|tail| {
        let above = path.strip_suffix(tail)?;
        archive_of_branches(tail).map(|archive| format!("{above}{archive}"))
    })
}

/// A path and what is left of it without its first parts, longest first: what a workspace could contain.
fn tails(path: &str) -> impl Iterator<Item = &str> {
    core::iter::successors(Some(path), |path| path.split_once('/').map(|(_, tail)| tail))
}

fn class_in_workspace(path: &str) -> FileClass {
    let (top, below) = path.split_once('/').map_or((path, None), |(top, below)| (top, Some(below)));
    match (top, below) {
        _ if is_internal_path(path) => FileClass::Other,
        ("sources", Some(_)) if path.ends_with(".md") && is_v2_path(path) => FileClass::Archive,
        ("sources", Some(_)) if path.ends_with(".md") => FileClass::OlderArchive,
        ("sources", Some(_)) if archive_of_branches(path).is_some() => FileClass::Branches,
        ("topics", Some(_)) if path.ends_with(".md") => FileClass::Topic,
        ("core.md" | "commitments.jsonl", None) => FileClass::Derived,
        _ if is_derived_path(path) => FileClass::Derived,
        ("journal" | "wiki" | ".state", Some(_)) | ("index.sqlite", None) => FileClass::OldLayout,
        _ => FileClass::Other,
    }
}

/// The archive has this record.
fn strike(named: &mut NamedRecords, path: &str, frame: &FrameRef<'_>) {
    if !named.named.is_empty()
        && let Some(named) = named.of(path)
    {
        let message = frame.id.strip_prefix(named.prefix.as_str());
        if let Some(line) = message.and_then(|message| named.messages.get_mut(message)) {
            *line = SEEN;
        }
    }
}

/// Reads the lines of a branches file.
struct BranchCheck {
    lines: Lines,
    /// Message parts that were named, with the first line that did.
    names: BTreeMap<String, u64>,
    /// The first bad line, and how many there are.
    bad: Option<(u64, u64)>,
}

impl Default for BranchCheck {
    fn default() -> Self {
        Self { lines: Lines::new(LINE_BYTES_MAX), names: BTreeMap::new(), bad: None }
    }
}

impl BranchCheck {
    fn push(&mut self, mut bytes: &[u8]) {
        let Self { lines, names, bad } = self;
        while let Some(line) = lines.next(&mut bytes) {
            Self::line(names, bad, &line);
        }
    }

    fn finish(&mut self) {
        let Self { lines, names, bad } = self;
        if let Some(line) = lines.last() {
            Self::line(names, bad, &line);
        }
    }

    fn line(names: &mut BTreeMap<String, u64>, bad: &mut Option<(u64, u64)>, line: &Line<'_>) {
        if line.bytes.is_empty() {
            return;
        }
        match BranchLine::parse(line.bytes).filter(|_| !line.long) {
            Some(BranchLine { id, after }) => {
                for name in [Some(id), after].into_iter().flatten() {
                    names.entry(name).or_insert(line.number);
                }
            }
            None => bad.get_or_insert((line.number, 0)).1 += 1,
        }
    }
}

/// Looks for the first byte that is not UTF-8.
#[derive(Default)]
struct TextCheck {
    utf8: Utf8Pieces,
    /// LFs so far.
    lines: u64,
    /// The line that the bytes so far end in.
    last_line: LineStart,
    /// The offending byte, and its line as far as it has come in.
    invalid: Option<(InvalidUtf8, LineStart)>,
}

impl TextCheck {
    fn push(&mut self, bytes: &[u8]) {
        if let Some((_, start)) = &mut self.invalid {
            return start.push(bytes);
        }
        let waiting = self.utf8.waiting().len();
        let mut text_bytes = 0_usize;
        let checked = self.utf8.push(bytes, |text| text_bytes += text.len());
        let valid = if checked.is_ok() { bytes.len() } else { text_bytes.saturating_sub(waiting) };
        let (text, rest) = bytes.split_at_checked(valid).unwrap_or((bytes, &[]));
        self.lines += memchr::memchr_iter(b'\n', text).count() as u64;
        self.last_line.follow(text);
        if let Err(invalid) = checked {
            let mut start = self.last_line.clone();
            start.push(rest);
            self.invalid = Some((invalid, start));
        }
    }

    fn finish(mut self) -> Option<Fault> {
        if let (None, Err(invalid)) = (&self.invalid, self.utf8.finish()) {
            self.invalid = Some((invalid, self.last_line.clone()));
        }
        let (InvalidUtf8 { offset }, start) = self.invalid?;
        Some(Fault { code: FindingCode::InvalidUtf8, line: self.lines + 1, offset, excerpt: start.excerpt() })
    }
}
