//! Reads one archive of the older form as it streams past.
//!
//! Such an archive is a page of Markdown, written by programs that are gone: nothing says how long it is or that it is
//! whole, and there is no first fault behind which nothing counts. Each line is taken for what it is, and a file that is
//! wrong in one place is read on behind it. So it is said narrowly what names a source (FORMAT.md, "Older archives"): a header
//! whose two lines both belong to this very file. Whatever else looks like one is text.
//!
//! Knows lines and what they come to together. Must not know other files: which of two records with one id counts, and what
//! of them may be built on, is for [`super::NewerIds`] and [`super::Resolution`].

use super::header::record_lines;
use super::ids_seen::IdsSeen;
use super::legacy_line::{anchor_name, comment, heading, hint, is_blank, is_markup, is_user};
use super::limits::Limits;
use super::line_start::LineStart;
use super::record::Speaker;
use super::record_head::{RecordHead, record_head};
use super::report::{FindingCode, Severity};
use super::scan::Fault;
use crate::digest::Digest;
use crate::ids::{LegacyLocation, SourceId, TurnRef, anchor_of, mentions_turns, references_in};
use crate::text::{Utf8Pieces, excerpt, is_printable_reading, is_whitespace};
use core::ops::Range;
use memchr::{memchr, memchr_iter};

/// Words of the comments that make up a header.
const SOURCE: &str = "source-id";
const SPEAKER: &str = "speaker-id";
const COUNT: &str = "record-lines";

/// How the anchors of records begin, those of numbered turns aside.
const SOURCE_ANCHOR: &str = "source-";

/// How much of a line's end is looked at for the reference that closes a numbered turn.
const TAIL_BYTES: usize = 128;

/// What was found in an older archive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LegacyKind {
    /// A record under its header.
    Message,
    /// A turn of a numbered conversation, under its anchor.
    Numbered,
    /// A header or the anchor of a numbered turn, without a record: it names a source, and that is all.
    Bare,
    /// A line that mentions numbered turns, wherever it stands.
    Mention,
}

/// Something in an older archive, as the scanner met it. Offsets are bytes from the start of the file, lines count from 1.
#[derive(Clone, Copy, Debug)]
pub struct LegacyRef<'a> {
    /// What it is.
    pub kind: LegacyKind,
    /// The source id, or the reference `D3:7` of a numbered turn. Empty for a mention.
    pub id: &'a str,
    /// The anchor: `source-…` or `d3-7`. Empty for a mention.
    pub anchor: &'a str,
    /// The first line of the record, or the mention; of a bare header, its anchor's.
    pub line: u64,
    /// The record's lines; 0 for a bare header.
    pub lines: u64,
    /// Of the first byte of that line.
    pub offset: u64,
    /// In bytes, without the LF behind the last line.
    pub length: u64,
    /// What stands between the record's brackets.
    pub time: &'a str,
    /// What stands before the first `": "`. Anyone may have written anything there.
    pub label: &'a str,
    /// Who the text itself says it is from; never trusted.
    pub hint: Option<&'a Speaker>,
    /// The headings above it, outermost first.
    pub headings: &'a [String],
    /// An earlier record of the file has the id. The first is the record; this one only looks like it.
    pub repeated: bool,
    /// A mention that is a line of a numbered turn.
    pub inside: bool,
    /// The text, as far as the scanner was asked to keep it ([`LegacyScanner::keep_records`]); a mention is always whole.
    pub text: &'a str,
}

impl LegacyRef<'_> {
    /// Whether it is a record: one with a text, and the first with its id.
    pub fn is_record(&self) -> bool {
        matches!(self.kind, LegacyKind::Message | LegacyKind::Numbered) && !self.repeated
    }

    /// What a mention mentions; nothing, if it is none.
    pub fn references(&self) -> Vec<TurnRef> {
        if self.kind == LegacyKind::Mention { references_in(self.text) } else { Vec::new() }
    }

    /// Whether it is found by itself: a record, or a mention that is no part of one.
    pub fn stands_alone(&self) -> bool {
        self.is_record() || (self.kind == LegacyKind::Mention && !self.inside)
    }
}

/// What a scan found, apart from what it handed on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LegacyEnd {
    /// Records.
    pub records: u64,
    /// What makes the file one that nothing may be added to: the first fault that leaves evidence out of reach.
    pub fault: Option<Fault>,
    /// Lines that are neither record nor heading nor markup nor mention, and the first of them.
    pub loose_lines: u64,
    /// See `loose_lines`.
    pub first_loose: Option<Fault>,
    /// The first byte that is not UTF-8.
    pub invalid_utf8: Option<Fault>,
    /// Lines in the file; a last one without LF counts.
    pub lines: u64,
    /// Bytes in the file.
    pub bytes: u64,
    /// LFs at the end of the file, at most 2.
    pub closing_lfs: u8,
}

/// What is handed on while a file is read.
#[derive(Clone, Copy, Debug)]
pub enum LegacyItem<'a> {
    /// Something that was found.
    Found(&'a LegacyRef<'a>),
    /// Something that is wrong, and the id it is about, as far as known.
    Wrong(&'a Fault, Option<&'a str>),
}

/// What things are handed to.
type Sink<'a> = &'a mut dyn FnMut(LegacyItem<'_>);

/// Reads one older archive, in pieces of any size.
///
/// What it finds does not depend on how the input was cut. It keeps one line at most, as far as [`Limits::header_bytes`] or
/// [`LegacyScanner::keep_records`] reach; a line longer than the former is a record's or plain text, never a header, a heading or
/// a mention. Besides that it keeps headings, the text of one record as far as asked, and 20 to 45 bytes per record, to
/// notice an id that comes twice.
pub struct LegacyScanner {
    location: LegacyLocation,
    header_bytes: usize,
    keep: usize,
    utf8: Utf8Pieces,
    invalid_utf8: Option<Invalid>,
    /// The line that the input so far ends in, for a finding about bytes that are no text.
    last_line: LineStart,
    /// That line as far as it came in pieces.
    pieces: Pieces,
    /// Where it starts, and its number.
    offset: u64,
    line: u64,
    state: State,
    open: Option<Open>,
    headings: Vec<String>,
    seen: IdsSeen,
    end: LegacyEnd,
    /// The input's last byte is something other than LF.
    ends_open: bool,
}

/// The first byte that is not UTF-8.
#[derive(Debug)]
struct Invalid {
    offset: u64,
    line: u64,
    start: LineStart,
}

/// A whole line, as far as it matters.
#[derive(Clone, Copy)]
struct Line<'a> {
    /// Its beginning: all of it, unless it is longer than anything that is kept.
    head: &'a str,
    /// In bytes.
    length: u64,
    /// Its end, at least the last [`TAIL_BYTES`] bytes.
    tail: &'a str,
}

impl<'a> Line<'a> {
    fn new(text: &'a str, most: usize) -> Self {
        let head = text.get(..text.floor_char_boundary(most)).unwrap_or(text);
        Self { head, length: text.len() as u64, tail: text }
    }

    /// The line, if it is not longer than `most` bytes.
    fn short(&self, most: usize) -> Option<&'a str> {
        (self.length <= most as u64).then_some(self.head)
    }

    /// Whether it ends with this reference in brackets.
    fn closes(&self, id: &str) -> bool {
        let end = self.tail.get(self.tail.ceil_char_boundary(self.tail.len().saturating_sub(TAIL_BYTES))..);
        let end = end.unwrap_or_default().trim_end_matches(is_whitespace);
        end.strip_suffix(']').and_then(|end| end.rsplit_once('[')).is_some_and(|(_, last)| last == id)
    }
}

/// A line that comes in pieces.
#[derive(Debug, Default)]
struct Pieces {
    head: String,
    length: u64,
    /// Kept only once the line is longer than its head.
    tail: String,
}

impl Pieces {
    fn push(&mut self, part: &str, most: usize) {
        let mut beyond = part;
        if self.head.len() as u64 == self.length {
            let room = part.floor_char_boundary(most.saturating_sub(self.head.len()));
            let (now, later) = part.split_at_checked(room).unwrap_or((part, ""));
            self.head.push_str(now);
            beyond = later;
            if !beyond.is_empty() {
                self.tail.push_str(last_bytes(&self.head));
            }
        }
        self.length += part.len() as u64;
        if !beyond.is_empty() {
            self.tail.push_str(last_bytes(beyond));
            let cut = self.tail.len() - last_bytes(&self.tail).len();
            self.tail.drain(..cut);
        }
    }

    fn line(&self) -> Line<'_> {
        let tail = if self.tail.is_empty() { &self.head } else { &self.tail };
        Line { head: &self.head, length: self.length, tail }
    }

    fn clear(&mut self) {
        self.head.clear();
        self.tail.clear();
        self.length = 0;
    }
}

/// The last [`TAIL_BYTES`] bytes, as far as they are whole characters.
fn last_bytes(text: &str) -> &str {
    text.get(text.ceil_char_boundary(text.len().saturating_sub(TAIL_BYTES))..).unwrap_or_default()
}

/// What came before the line that is looked at.
#[derive(Debug)]
enum State {
    /// Nothing that matters.
    Plain,
    /// An anchor that may belong to a header.
    Anchor(AnchorLine),
    /// A header; its record may come now.
    Header(Header),
    /// The anchor of a numbered turn, which must come now.
    Turn(String, AnchorLine),
    /// Within a record whose lines are counted: so many are still to come.
    Counted(u32),
    /// Within a numbered turn.
    InTurn,
}

#[derive(Debug)]
struct AnchorLine {
    text: String,
    name: String,
    offset: u64,
    line: u64,
    /// It stands in a numbered turn, which went so far before: it is a line of it, unless it begins a record.
    within: Option<Extent>,
}

#[derive(Debug)]
struct Header {
    anchor: AnchorLine,
    id: String,
    has_speaker: bool,
    count: Option<u32>,
}

/// How far a record goes.
#[derive(Clone, Copy, Debug, Default)]
struct Extent {
    /// Behind its last byte.
    end: u64,
    lines: u64,
    /// Bytes of its text that are kept.
    kept: usize,
}

/// The record that is being read.
#[derive(Debug)]
struct Open {
    kind: LegacyKind,
    id: String,
    anchor: AnchorLine,
    line: u64,
    offset: u64,
    time: String,
    label: String,
    hint: Option<Speaker>,
    repeated: bool,
    extent: Extent,
    /// Without the empty lines at its end.
    solid: Extent,
    text: String,
    /// No more of the text is kept.
    full: bool,
    /// What stood above it, if that has changed since.
    headings: Option<Vec<String>>,
}

impl Open {
    /// Takes its next line, which starts at `offset`.
    fn add(&mut self, line: Line<'_>, offset: u64, keep: usize) {
        if self.extent.lines > 0 {
            self.keep_more("\n", keep);
        }
        self.keep_more(line.head, keep);
        self.full |= (line.head.len() as u64) < line.length;
        self.extent = Extent { end: offset + line.length, lines: self.extent.lines + 1, kept: self.text.len() };
        if !is_blank(line.head) {
            self.solid = self.extent;
        }
    }

    fn keep_more(&mut self, part: &str, keep: usize) {
        let room = keep.saturating_sub(self.text.len());
        if !self.full {
            self.full = part.len() > room;
            self.text.push_str(part.get(..part.floor_char_boundary(room)).unwrap_or_default());
        }
    }
}

impl LegacyScanner {
    /// For the file at `path` within a workspace.
    pub fn new(path: &str, limits: &Limits) -> Self {
        Self {
            location: LegacyLocation::of_path(path),
            header_bytes: limits.header_bytes,
            keep: 0,
            utf8: Utf8Pieces::new(),
            invalid_utf8: None,
            last_line: LineStart::default(),
            pieces: Pieces::default(),
            offset: 0,
            line: 1,
            state: State::Plain,
            open: None,
            headings: Vec::new(),
            seen: IdsSeen::default(),
            end: LegacyEnd::default(),
            ends_open: false,
        }
    }

    /// Hands records on with at most the first `bytes` bytes of their text, cut between characters. Memory follows that
    /// number.
    #[must_use]
    pub fn keep_records(self, bytes: usize) -> Self {
        Self { keep: bytes, ..self }
    }

    /// Takes the next piece, which may end anywhere, even inside a character.
    pub fn push_bytes(&mut self, bytes: &[u8], sink: Sink<'_>) {
        let before = self.end.bytes;
        self.count(bytes);
        if let Some(invalid) = &mut self.invalid_utf8 {
            return invalid.start.push(bytes);
        }
        let mut utf8 = core::mem::take(&mut self.utf8);
        let waiting = utf8.waiting().len();
        let mut text_bytes = 0;
        let checked = utf8.push(bytes, |text| {
            text_bytes += text.len();
            self.work(text, sink);
        });
        if checked.is_ok() {
            self.last_line.follow(bytes);
        } else {
            // Of the character that is none, the first bytes may have come with an earlier piece.
            let (text, rest) = bytes.split_at_checked(text_bytes.saturating_sub(waiting)).unwrap_or((bytes, &[]));
            self.last_line.follow(text);
            self.not_utf8((before + text_bytes as u64).saturating_sub(waiting as u64), rest);
        }
        self.utf8 = utf8;
    }

    /// The same for a piece that is text already: nothing is checked twice.
    pub fn push_text(&mut self, text: &str, sink: Sink<'_>) {
        if self.invalid_utf8.is_some() || !self.utf8.waiting().is_empty() {
            return self.push_bytes(text.as_bytes(), sink);
        }
        self.count(text.as_bytes());
        self.work(text, sink);
        self.last_line.follow(text.as_bytes());
    }

    /// The input is over.
    pub fn finish(mut self, sink: Sink<'_>) -> LegacyEnd {
        let waiting = self.utf8.waiting().len() as u64;
        if self.invalid_utf8.is_none() && waiting > 0 {
            self.not_utf8(self.end.bytes.saturating_sub(waiting), &[]);
        }
        match self.invalid_utf8.take() {
            Some(Invalid { offset, line, start }) => {
                let fault = Fault { code: FindingCode::InvalidUtf8, line, offset, excerpt: start.excerpt() };
                self.end.fault.get_or_insert_with(|| fault.clone());
                self.end.invalid_utf8 = Some(fault);
            }
            None => {
                // What stands behind the last LF is a line, also if it is empty.
                self.end_line(sink);
                self.close(sink);
            }
        }
        self.end.lines += u64::from(self.ends_open);
        self.end
    }

    /// Figures of the file, whatever its bytes are.
    fn count(&mut self, bytes: &[u8]) {
        let Some(last) = bytes.last() else { return };
        self.ends_open = *last != b'\n';
        self.end.bytes += bytes.len() as u64;
        self.end.lines += memchr_iter(b'\n', bytes).count() as u64;
        let closing = bytes.iter().rev().take(2).take_while(|byte| **byte == b'\n').count() as u8;
        let before = if usize::from(closing) == bytes.len() { self.end.closing_lfs } else { 0 };
        self.end.closing_lfs = (before + closing).min(2);
    }

    /// The text is over, because what follows is none. The line it is in is given up with the record it belongs to.
    fn not_utf8(&mut self, offset: u64, rest: &[u8]) {
        let mut start = self.last_line.clone();
        start.push(rest);
        self.invalid_utf8 = Some(Invalid { offset, line: self.line, start });
        self.pieces = Pieces::default();
        self.open = None;
    }

    fn work(&mut self, text: &str, sink: Sink<'_>) {
        let mut rest = text;
        while let Some(lf) = memchr(b'\n', rest.as_bytes()) {
            let (line, behind) = rest.split_at_checked(lf).unwrap_or((rest, ""));
            if self.pieces.length == 0 {
                // The usual case: all of the line is at hand, and nothing is copied.
                self.take(Line::new(line, self.kept_of_line()), sink);
            } else {
                self.pieces.push(line, self.kept_of_line());
                self.end_line(sink);
            }
            rest = behind.get(1..).unwrap_or_default();
        }
        self.pieces.push(rest, self.kept_of_line());
    }

    fn kept_of_line(&self) -> usize {
        self.header_bytes.max(self.keep)
    }

    /// The line that was coming in is over.
    fn end_line(&mut self, sink: Sink<'_>) {
        let mut pieces = core::mem::take(&mut self.pieces);
        self.take(pieces.line(), sink);
        pieces.clear();
        self.pieces = pieces;
    }

    fn take(&mut self, line: Line<'_>, sink: Sink<'_>) {
        match core::mem::replace(&mut self.state, State::Plain) {
            State::Plain => self.plain(line, sink),
            State::Anchor(anchor) => self.behind_anchor(anchor, line, sink),
            State::Header(header) => self.behind_header(header, line, sink),
            State::Turn(id, anchor) => self.first_of_turn(id, anchor, line, sink),
            State::Counted(left) => self.counted(left, line, sink),
            State::InTurn => self.in_turn(line, sink),
        }
        self.offset += line.length + 1;
        self.line += 1;
    }

    /// A line that belongs to nothing before it.
    fn plain(&mut self, line: Line<'_>, sink: Sink<'_>) {
        let Some(text) = line.short(self.header_bytes) else { return self.loose(line) };
        if is_blank(text) || self.heading(text) {
            return;
        }
        if let Some(name) = anchor_name(text) {
            self.anchor(text, name, sink);
        } else if comment(text, SOURCE).is_some() {
            let fault = self.fault(FindingCode::LegacyBadHeader, text);
            self.wrong(fault, None, sink);
        } else if !is_markup(text) && !self.mention(text, false, sink) {
            self.loose(line);
        }
    }

    fn loose(&mut self, line: Line<'_>) {
        self.end.loose_lines += 1;
        if self.end.first_loose.is_none() {
            self.end.first_loose = Some(self.fault(FindingCode::LegacyLooseText, line.head));
        }
    }

    /// Whether the line is a heading; then what follows stands below it.
    fn heading(&mut self, text: &str) -> bool {
        let Some((level, text)) = heading(text) else { return false };
        if let Some(open) = &mut self.open {
            open.headings.get_or_insert_with(|| self.headings.clone());
        }
        self.headings.truncate(level - 1);
        self.headings.push(text.to_owned());
        true
    }

    /// Whether the line mentions numbered turns; then it is handed on.
    fn mention(&mut self, text: &str, inside: bool, sink: Sink<'_>) -> bool {
        if !mentions_turns(text) {
            return false;
        }
        sink(LegacyItem::Found(&LegacyRef {
            kind: LegacyKind::Mention,
            id: "",
            anchor: "",
            line: self.line,
            lines: 1,
            offset: self.offset,
            length: text.len() as u64,
            time: "",
            label: "",
            hint: None,
            headings: &self.headings,
            repeated: false,
            inside,
            text,
        }));
        true
    }

    /// An anchor that stands in no record.
    fn anchor(&mut self, text: &str, name: &str, sink: Sink<'_>) {
        match TurnRef::of_anchor(name) {
            Some(id) if self.location.holds_turn(&id) => {
                self.state = State::Turn(id.to_string(), self.anchor_line(text, name, None));
            }
            Some(_) => {
                let fault = self.fault(FindingCode::LegacyBadHeader, text);
                self.wrong(fault, None, sink);
            }
            None if name.starts_with(SOURCE_ANCHOR) => self.state = State::Anchor(self.anchor_line(text, name, None)),
            None => {}
        }
    }

    fn anchor_line(&self, text: &str, name: &str, within: Option<Extent>) -> AnchorLine {
        AnchorLine { text: text.to_owned(), name: name.to_owned(), offset: self.offset, line: self.line, within }
    }

    fn behind_anchor(&mut self, anchor: AnchorLine, line: Line<'_>, sink: Sink<'_>) {
        let named = line.short(self.header_bytes).and_then(|text| comment(text, SOURCE));
        match (named, anchor.within) {
            (Some(id), within) if self.names(&anchor.name, id) => {
                if let Some(before) = within {
                    self.cut(before, sink);
                }
                self.state = State::Header(Header { anchor, id: id.to_owned(), has_speaker: false, count: None });
            }
            (_, Some(_)) => self.in_turn(line, sink),
            (named, None) => {
                self.wrong(anchor.fault(FindingCode::LegacyBadHeader), named, sink);
                if named.is_none() {
                    self.plain(line, sink);
                }
            }
        }
    }

    /// Whether anchor and id belong to each other and to this file (D08).
    fn names(&self, anchor: &str, id: &str) -> bool {
        self.location.holds(id)
            && SourceId::parse(id).is_ok()
            && id.chars().all(is_printable_reading)
            && anchor_of(&Digest::of(id.as_bytes())) == anchor
    }

    fn behind_header(&mut self, header: Header, line: Line<'_>, sink: Sink<'_>) {
        let short = line.short(self.header_bytes);
        if !header.has_speaker && header.count.is_none() && short.is_some_and(|text| comment(text, SPEAKER).is_some()) {
            self.state = State::Header(Header { has_speaker: true, ..header });
            return;
        }
        if header.count.is_none()
            && let Some(digits) = short.and_then(|text| comment(text, COUNT))
        {
            match record_lines(digits) {
                Some(count) => self.state = State::Header(Header { count: Some(count), ..header }),
                None => self.bare(&header.id, &header.anchor, sink),
            }
            return;
        }
        let Some((text, head)) = self.record_head(line) else {
            self.bare(&header.id, &header.anchor, sink);
            return self.plain(line, sink);
        };
        let label = text.get(head.label.clone()).unwrap_or_default();
        let hint = if header.count.is_none() && is_user(label) { text.get(head.end..).and_then(hint) } else { None };
        let Header { anchor, id, count, .. } = header;
        self.open(LegacyKind::Message, id, anchor, (text, &head), hint, sink);
        self.counted(count.unwrap_or(1), line, sink);
    }

    fn first_of_turn(&mut self, id: String, anchor: AnchorLine, line: Line<'_>, sink: Sink<'_>) {
        let Some((text, head)) = self.record_head(line) else {
            self.bare(&id, &anchor, sink);
            return self.plain(line, sink);
        };
        self.open(LegacyKind::Numbered, id, anchor, (text, &head), None, sink);
        self.line_of_turn(line, sink);
    }

    /// The record's first line, as far as it may reach, and where its parts are.
    fn record_head<'l>(&self, line: Line<'l>) -> Option<(&'l str, RecordHead)> {
        let text = line.head.get(..line.head.floor_char_boundary(self.header_bytes))?;
        let head = record_head(text, line.short(self.header_bytes).is_some()).ok()?;
        Some((text, head))
    }

    fn open(
        &mut self,
        kind: LegacyKind,
        id: String,
        anchor: AnchorLine,
        (text, head): (&str, &RecordHead),
        hint: Option<Speaker>,
        sink: Sink<'_>,
    ) {
        let part = |range: &Range<usize>| text.get(range.clone()).unwrap_or_default().to_owned();
        let repeated = !self.seen.insert(&Digest::of(id.as_bytes()));
        if repeated {
            self.wrong(anchor.fault(FindingCode::LegacyDuplicateId), Some(&id), sink);
        }
        self.open = Some(Open {
            kind,
            id,
            anchor,
            line: self.line,
            offset: self.offset,
            time: part(&head.time),
            label: part(&head.label),
            hint,
            repeated,
            extent: Extent::default(),
            solid: Extent::default(),
            text: String::new(),
            full: false,
            headings: None,
        });
    }

    /// A line of the open record, the first of `left`.
    fn counted(&mut self, left: u32, line: Line<'_>, sink: Sink<'_>) {
        let Some(open) = &mut self.open else { return };
        open.add(line, self.offset, self.keep);
        let extent = open.extent;
        match left.saturating_sub(1) {
            0 => self.hand_on(extent, sink),
            left => self.state = State::Counted(left),
        }
    }

    /// A line behind the first of a numbered turn: it belongs to the turn, unless another begins here.
    fn in_turn(&mut self, line: Line<'_>, sink: Sink<'_>) {
        let before = self.open.as_ref().map(|open| open.solid).unwrap_or_default();
        if let Some(text) = line.short(self.header_bytes)
            && let Some(name) = anchor_name(text)
        {
            if let Some(next) = TurnRef::of_anchor(name).filter(|next| self.location.holds_turn(next)) {
                self.cut(before, sink);
                self.state = State::Turn(next.to_string(), self.anchor_line(text, name, None));
                return;
            }
            if name.starts_with(SOURCE_ANCHOR) {
                self.line_of_turn(line, sink);
                self.state = State::Anchor(self.anchor_line(text, name, Some(before)));
                return;
            }
        }
        self.line_of_turn(line, sink);
    }

    fn line_of_turn(&mut self, line: Line<'_>, sink: Sink<'_>) {
        if let Some(text) = line.short(self.header_bytes)
            && !self.heading(text)
            && !is_markup(text)
        {
            self.mention(text, true, sink);
        }
        let Some(open) = &mut self.open else { return };
        open.add(line, self.offset, self.keep);
        let extent = open.extent;
        if line.closes(&open.id) {
            self.hand_on(extent, sink);
        } else {
            self.state = State::InTurn;
        }
    }

    /// The file is over, all of its lines were taken.
    fn close(&mut self, sink: Sink<'_>) {
        match core::mem::replace(&mut self.state, State::Plain) {
            State::Plain => {}
            State::Anchor(anchor) if anchor.within.is_none() => {
                self.wrong(anchor.fault(FindingCode::LegacyBadHeader), None, sink);
            }
            State::Header(header) => self.bare(&header.id, &header.anchor, sink),
            State::Turn(id, anchor) => self.bare(&id, &anchor, sink),
            State::Anchor(_) | State::Counted(_) | State::InTurn => {
                let solid = self.open.as_ref().map(|open| open.solid).unwrap_or_default();
                self.cut(solid, sink);
            }
        }
    }

    /// The open record is over before it should be.
    fn cut(&mut self, extent: Extent, sink: Sink<'_>) {
        let Some(open) = &self.open else { return };
        let (fault, id) = (open.anchor.fault(FindingCode::LegacyCutRecord), open.id.clone());
        self.hand_on(extent, sink);
        self.wrong(fault, Some(&id), sink);
    }

    fn hand_on(&mut self, extent: Extent, sink: Sink<'_>) {
        let Some(open) = self.open.take() else { return };
        let found = LegacyRef {
            kind: open.kind,
            id: &open.id,
            anchor: &open.anchor.name,
            line: open.line,
            lines: extent.lines,
            offset: open.offset,
            length: extent.end.saturating_sub(open.offset),
            time: &open.time,
            label: &open.label,
            hint: open.hint.as_ref(),
            headings: open.headings.as_ref().unwrap_or(&self.headings),
            repeated: open.repeated,
            inside: false,
            text: open.text.get(..extent.kept).unwrap_or_default(),
        };
        self.end.records += u64::from(found.is_record());
        sink(LegacyItem::Found(&found));
    }

    /// A header, or the anchor of a turn, behind which no record stands.
    fn bare(&mut self, id: &str, anchor: &AnchorLine, sink: Sink<'_>) {
        sink(LegacyItem::Found(&LegacyRef {
            kind: LegacyKind::Bare,
            id,
            anchor: &anchor.name,
            line: anchor.line,
            lines: 0,
            offset: anchor.offset,
            length: 0,
            time: "",
            label: "",
            hint: None,
            headings: &self.headings,
            repeated: false,
            inside: false,
            text: "",
        }));
        self.wrong(anchor.fault(FindingCode::LegacyBadRecord), Some(id), sink);
    }

    /// A fault of the line that is looked at.
    fn fault(&self, code: FindingCode, text: &str) -> Fault {
        Fault { code, line: self.line, offset: self.offset, excerpt: excerpt(text.as_bytes()) }
    }

    fn wrong(&mut self, fault: Fault, id: Option<&str>, sink: Sink<'_>) {
        sink(LegacyItem::Wrong(&fault, id));
        if fault.code.severity() == Severity::Error {
            self.end.fault.get_or_insert(fault);
        }
    }
}

impl AnchorLine {
    fn fault(&self, code: FindingCode) -> Fault {
        Fault { code, line: self.line, offset: self.offset, excerpt: excerpt(self.text.as_bytes()) }
    }
}
