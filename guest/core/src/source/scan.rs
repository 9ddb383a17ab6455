//! Reads one v2 archive as it streams past.
//!
//! It is fed pieces of any length and hands on whole frames; behind the first fault nothing counts (FORMAT.md, "Damage"). Knows the
//! order of things in a file and how far it got. Must not know what the frames are wanted for.

use super::frame::{ANCHOR_OPEN, FrameRef, MARKER};
use super::header::{Header, HeaderParser, Parsed};
use super::ids_seen::IdsSeen;
use super::limits::Limits;
use super::line_start::LineStart;
use super::report::FindingCode;
use crate::digest::Digest;
use crate::ids::{Location, SourceId};
use crate::text::Utf8Pieces;
use core::ops::Range;
use memchr::memchr_iter;

/// Bytes taken from the input at a time: text is checked and read while it is in the nearest cache.
const PIECE_BYTES: usize = 64 * 1024;

/// Marker line and empty line.
const PREAMBLE_BYTES: usize = MARKER.len() + 2;

/// What is wrong with an archive, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// What is wrong.
    pub code: FindingCode,
    /// Of the offending line, from 1; for a truncated frame its first line.
    pub line: u64,
    /// Of the offending line's first byte; for invalid UTF-8 of the byte itself.
    pub offset: u64,
    /// The beginning of the offending line, safe to print.
    pub excerpt: String,
}

/// How an archive ends, which decides how text is appended to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tail {
    /// There is no byte: the marker comes first.
    Empty,
    /// Behind the marker's or a frame's empty line: the next frame can follow as it is.
    AfterBlank,
    /// Right behind a record's last LF: an empty line comes first.
    AfterRecord,
    /// Something is wrong: nothing may be appended.
    Damaged,
}

/// Where a scan of a growing archive may go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Resume {
    /// Bytes that need not be read again.
    pub bytes: u64,
    /// Lines in them, the empty line at their end included.
    pub lines: u64,
    /// How they end.
    pub tail: Tail,
}

/// What a scan found, apart from the frames.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScanEnd {
    /// Everything is whole frames.
    pub complete: bool,
    /// The first thing that is wrong. Frames before it are whole and usable; nothing behind it was read as a frame.
    pub fault: Option<Fault>,
    /// The first byte that is not UTF-8, wherever it is: also behind another fault.
    pub invalid_utf8: Option<Fault>,
    /// Whole frames.
    pub frames: u64,
    /// Lines of the marker and of whole frames, each with its empty line.
    pub valid_prefix_lines: u64,
    /// Bytes of the same.
    pub valid_prefix_bytes: u64,
    /// Lines in the file; a last one without LF counts.
    pub lines: u64,
    /// Bytes in the file.
    pub bytes: u64,
    /// How it ends.
    pub tail: Tail,
    /// Where the archive belongs: as given, else as its first id says.
    pub location: Option<Location>,
}

impl ScanEnd {
    /// Where to go on once the file has grown. None if the file is damaged.
    pub fn resume(&self) -> Option<Resume> {
        let resume = Resume { bytes: self.valid_prefix_bytes, lines: self.valid_prefix_lines, tail: self.tail };
        self.complete.then_some(resume)
    }
}

/// Reads one v2 archive, in pieces of any size, and hands on every whole frame.
///
/// What it finds does not depend on how the input was cut. It keeps one header at most ([`Limits::header_bytes`]) and 20
/// to 45 bytes per frame (to find an id that comes twice); records are counted past, not kept. After the first fault no
/// further frame is handed on: a damaged file is never guessed back into step.
pub struct Scanner {
    parser: HeaderParser,
    header_bytes: usize,
    keep: usize,
    state: State,
    /// Of the next byte to work on.
    offset: u64,
    /// Of the line that byte is in.
    line: u64,
    /// Text that is not worked on yet: the beginning of a header.
    carry: String,
    /// Not worth another try before the carry is that long.
    retry_at: usize,
    open: Open,
    seen: IdsSeen,
    frames: u64,
    valid: Resume,
    fault: Option<Spot>,
    utf8: Utf8Pieces,
    /// The line that the input so far ends in.
    last_line: LineStart,
    invalid_utf8: Option<Spot>,
    /// The input's last byte is something other than LF.
    ends_open: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Before the marker.
    Preamble,
    /// Before a frame, or at the end.
    Frame,
    /// Resumed right behind a record: its empty line, or the end.
    Gap,
    /// Within a record: that many of its LFs are still to come.
    Record(u32),
    /// Behind a record: its empty line, or the end.
    Terminator,
    /// Something is wrong; the rest is only counted.
    Faulty,
}

/// The frame that is being read, once its header is known and its end is not.
#[derive(Debug, Default)]
struct Open {
    header: Header,
    /// The frame up to the end of its label.
    text: String,
    offset: u64,
    line: u64,
    record: String,
}

/// A fault whose line may still be coming in.
#[derive(Clone, Debug)]
struct Spot {
    code: FindingCode,
    line: u64,
    offset: u64,
    start: LineStart,
}

impl Spot {
    fn fault(self) -> Fault {
        Fault { code: self.code, line: self.line, offset: self.offset, excerpt: self.start.excerpt() }
    }
}

/// What frames are handed to.
type Sink<'a> = &'a mut dyn FnMut(&FrameRef<'_>);

impl Scanner {
    /// For the archive at `location`: records that belong elsewhere are faults. Without a location the first record's id
    /// says where the file belongs.
    pub fn new(location: Option<Location>, limits: &Limits) -> Self {
        Self {
            parser: HeaderParser::new(location),
            header_bytes: limits.header_bytes,
            keep: 0,
            state: State::Preamble,
            offset: 0,
            line: 1,
            carry: String::new(),
            retry_at: 0,
            open: Open::default(),
            seen: IdsSeen::default(),
            frames: 0,
            valid: Resume { bytes: 0, lines: 0, tail: Tail::Empty },
            fault: None,
            utf8: Utf8Pieces::new(),
            last_line: LineStart::default(),
            invalid_utf8: None,
            ends_open: false,
        }
    }

    /// For the rest of an archive whose beginning was scanned before and has not changed. The input starts at
    /// `from.bytes`; offsets and lines go on counting, `frames` counts anew. An id that the beginning has too is not
    /// noticed: the caller, who kept those ids, must look.
    pub fn resume(location: Location, from: Resume, limits: &Limits) -> Self {
        let (state, line) = match from.tail {
            Tail::Empty | Tail::Damaged => return Self::new(Some(location), limits),
            Tail::AfterBlank => (State::Frame, from.lines + 1),
            Tail::AfterRecord => (State::Gap, from.lines),
        };
        Self { state, line, offset: from.bytes, valid: from, ..Self::new(Some(location), limits) }
    }

    /// Hands frames on with their record's text, at most its first `bytes` bytes (cut between characters). Memory follows
    /// that number.
    #[must_use]
    pub fn keep_records(self, bytes: usize) -> Self {
        Self { keep: bytes, ..self }
    }

    /// Takes the next piece, which may end anywhere, even inside a character.
    pub fn push_bytes(&mut self, bytes: &[u8], sink: Sink<'_>) {
        for piece in bytes.chunks(PIECE_BYTES) {
            self.ends_open = piece.last() != Some(&b'\n');
            if self.invalid_utf8.is_some() {
                self.count(piece);
                continue;
            }
            let mut utf8 = core::mem::take(&mut self.utf8);
            let waiting = utf8.waiting().len();
            let mut text_bytes = 0;
            let checked = utf8.push(piece, |text| {
                text_bytes += text.len();
                self.work(text, sink);
            });
            match checked {
                Ok(()) => self.last_line.follow(piece),
                // Of the character that is none, the first bytes may have come with an earlier piece.
                Err(_) if text_bytes == 0 => {
                    let ahead = utf8.waiting().get(..waiting).unwrap_or_default();
                    self.not_utf8(ahead, piece, sink);
                }
                Err(_) => {
                    let (text, rest) =
                        piece.split_at_checked(text_bytes.saturating_sub(waiting)).unwrap_or((piece, &[]));
                    self.last_line.follow(text);
                    self.not_utf8(&[], rest, sink);
                }
            }
            self.utf8 = utf8;
        }
    }

    /// The same for a piece that is text already: nothing is checked twice.
    pub fn push_text(&mut self, text: &str, sink: Sink<'_>) {
        if self.invalid_utf8.is_some() || !self.utf8.waiting().is_empty() {
            return self.push_bytes(text.as_bytes(), sink);
        }
        if let Some(last) = text.as_bytes().last() {
            self.ends_open = *last != b'\n';
            self.work(text, sink);
            self.last_line.follow(text.as_bytes());
        }
    }

    /// The input is over.
    pub fn finish(mut self, sink: Sink<'_>) -> ScanEnd {
        let mut utf8 = core::mem::take(&mut self.utf8);
        if self.invalid_utf8.is_none() && utf8.finish().is_err() {
            self.not_utf8(utf8.waiting(), &[], sink);
        }
        let carry = core::mem::take(&mut self.carry);
        let used = self.process(&carry, sink);
        let rest = carry.get(used..).unwrap_or_default();
        match self.state {
            State::Preamble => {
                let (lines, offset) = preamble_line(rest.len());
                self.stop(FindingCode::MissingMarker, lines, offset);
                self.count(rest.get(offset..).unwrap_or_default().as_bytes());
            }
            State::Frame if !rest.is_empty() => {
                let could_be = rest.starts_with(ANCHOR_OPEN) || ANCHOR_OPEN.starts_with(rest);
                let code = if could_be { FindingCode::TruncatedFrame } else { FindingCode::BadAnchor };
                self.stop(code, 0, 0);
                self.count(rest.as_bytes());
            }
            State::Record(_) => {
                self.fail(FindingCode::TruncatedFrame, self.open.line, self.open.offset);
                if let Some(spot) = &mut self.fault {
                    spot.start.push(self.open.text.as_bytes());
                }
            }
            State::Terminator => {
                self.hand_on_open(self.offset, sink);
                self.valid = Resume { bytes: self.offset, lines: self.line, tail: Tail::AfterRecord };
            }
            State::Frame | State::Gap | State::Faulty => {}
        }
        let complete = self.fault.is_none();
        let tail = match self.offset {
            0 => Tail::Empty,
            _ if complete => self.valid.tail,
            _ => Tail::Damaged,
        };
        ScanEnd {
            complete,
            fault: self.fault.map(Spot::fault),
            invalid_utf8: self.invalid_utf8.map(Spot::fault),
            frames: self.frames,
            valid_prefix_lines: self.valid.lines,
            valid_prefix_bytes: self.valid.bytes,
            lines: self.line - 1 + u64::from(self.ends_open),
            bytes: self.offset,
            tail,
            location: self.parser.location().cloned(),
        }
    }

    /// Works on text that follows what is carried.
    fn work(&mut self, mut text: &str, sink: Sink<'_>) {
        while !self.carry.is_empty() {
            let wanted = self.retry_at.saturating_sub(self.carry.len());
            let all = text;
            let (now, later) = all.split_at_checked(all.ceil_char_boundary(wanted)).unwrap_or((all, ""));
            self.carry.push_str(now);
            text = later;
            if self.carry.len() < self.retry_at {
                return;
            }
            let mut carry = core::mem::take(&mut self.carry);
            let used = self.process(&carry, sink);
            let left = carry.len() - used;
            if left <= now.len() {
                // What is left came with this text: go on there, and copy nothing more.
                text = all.get(now.len() - left..).unwrap_or_default();
                carry.clear();
            } else {
                carry.drain(..used);
            }
            self.carry = carry;
            self.plan_retry();
        }
        let used = self.process(text, sink);
        self.carry.push_str(text.get(used..).unwrap_or_default());
        self.plan_retry();
    }

    /// Trying again with every byte would take quadratic time for a header that comes in byte by byte.
    fn plan_retry(&mut self) {
        self.retry_at = self.carry.len() + self.carry.len() / 4 + 128;
    }

    /// Works on `text`, which starts at `self.offset`, and returns how much of it is done with. What is not done with is
    /// the beginning of a marker or header.
    fn process(&mut self, text: &str, sink: Sink<'_>) -> usize {
        let mut at = 0;
        while let Some(rest) = text.get(at..).filter(|rest| !rest.is_empty()) {
            let used = match self.state {
                State::Preamble => self.preamble(rest),
                State::Frame => self.frame(rest, sink),
                State::Gap | State::Terminator => self.empty_line(rest, sink),
                State::Record(left) => self.record(rest, left),
                State::Faulty => self.count(rest.as_bytes()),
            };
            match used {
                Some(used) => at += used,
                None => break,
            }
        }
        at
    }

    fn preamble(&mut self, rest: &str) -> Option<usize> {
        let mut expected = MARKER.bytes().chain(*b"\n\n");
        let same = rest.bytes().take_while(|byte| expected.next() == Some(*byte)).count();
        if same == PREAMBLE_BYTES {
            self.offset += same as u64;
            self.line += 2;
            self.state = State::Frame;
            self.valid = Resume { bytes: self.offset, lines: 2, tail: Tail::AfterBlank };
            return Some(same);
        }
        if same == rest.len() {
            return None;
        }
        let (lines, offset) = preamble_line(same);
        Some(self.stop(FindingCode::MissingMarker, lines, offset))
    }

    fn frame(&mut self, rest: &str, sink: Sink<'_>) -> Option<usize> {
        let view = rest.get(..rest.floor_char_boundary(self.header_bytes)).unwrap_or(rest);
        let header = match self.parser.parse(view) {
            Parsed::Header(header) => header,
            Parsed::More if rest.len() < self.header_bytes => return None,
            Parsed::More => return Some(self.stop(FindingCode::HeaderTooLong, 0, 0)),
            Parsed::Fault { code, line, offset } => return Some(self.stop(code, line, offset)),
        };
        let id = rest.get(header.id.clone()).unwrap_or_default();
        if !self.seen.insert(&Digest(header.id_digest)) {
            let line_at = rest.get(..header.id.start).and_then(|before| before.rfind('\n')).map_or(0, |lf| lf + 1);
            return Some(self.stop(FindingCode::DuplicateId, 1, line_at));
        }
        if self.parser.location().is_none()
            && let Ok(id) = SourceId::for_reading(id)
        {
            self.parser.settle(Location::of_id(&id));
        }

        let text = rest.get(..header.end).unwrap_or(rest);
        let (from, lines) = match header.first_lf {
            Some(lf) => (lf + 1, header.record_lines - 1),
            None => (header.end, header.record_lines),
        };
        let (used, left) = skip_lines(rest.as_bytes().get(from..).unwrap_or_default(), lines);
        let record_end = from + used;
        let lines = header.record_line + u64::from(header.record_lines - left);
        if left == 0 && rest.as_bytes().get(record_end) == Some(&b'\n') {
            // The usual case: all of the frame is at hand, and nothing is copied.
            let record = rest.get(header.record..record_end - 1).unwrap_or_default();
            let (start, line) = (self.offset, self.line);
            let whole = record_end + 1;
            self.advance(whole, lines + 1);
            self.hand_on(&header, text, record, (start, line), (start + record_end as u64, self.offset), sink);
            self.valid = Resume { bytes: self.offset, lines: self.line - 1, tail: Tail::AfterBlank };
            return Some(whole);
        }
        self.open.text.clear();
        self.open.text.push_str(text);
        self.open.record.clear();
        let record = rest.get(header.record..record_end).unwrap_or_default();
        keep_more(&mut self.open.record, record, self.keep);
        self.open.offset = self.offset;
        self.open.line = self.line;
        self.open.header = header;
        self.state = if left == 0 { State::Terminator } else { State::Record(left) };
        self.advance(record_end, lines);
        Some(record_end)
    }

    fn record(&mut self, rest: &str, left: u32) -> Option<usize> {
        let (used, still) = skip_lines(rest.as_bytes(), left);
        keep_more(&mut self.open.record, rest.get(..used).unwrap_or_default(), self.keep);
        self.state = if still == 0 { State::Terminator } else { State::Record(still) };
        self.advance(used, u64::from(left - still));
        Some(used)
    }

    fn empty_line(&mut self, rest: &str, sink: Sink<'_>) -> Option<usize> {
        if !rest.starts_with('\n') {
            return Some(self.stop(FindingCode::MissingTerminator, 0, 0));
        }
        if self.state == State::Terminator {
            self.hand_on_open(self.offset + 1, sink);
        }
        self.state = State::Frame;
        self.advance(1, 1);
        self.valid = Resume { bytes: self.offset, lines: self.line - 1, tail: Tail::AfterBlank };
        Some(1)
    }

    fn advance(&mut self, bytes: usize, lines: u64) {
        self.offset += bytes as u64;
        self.line += lines;
    }

    /// A fault in the line that starts `offset` bytes from here, below `lines` more; the rest is only counted.
    fn stop(&mut self, code: FindingCode, lines: u64, offset: usize) -> usize {
        self.advance(offset, lines);
        self.fail(code, self.line, self.offset);
        offset
    }

    fn fail(&mut self, code: FindingCode, line: u64, offset: u64) {
        self.state = State::Faulty;
        self.fault = Some(Spot { code, line, offset, start: LineStart::default() });
    }

    /// Counts bytes behind a fault.
    fn count(&mut self, bytes: &[u8]) -> Option<usize> {
        for spot in [&mut self.fault, &mut self.invalid_utf8].into_iter().flatten() {
            spot.start.push(bytes);
        }
        self.advance(bytes.len(), memchr_iter(b'\n', bytes).count() as u64);
        Some(bytes.len())
    }

    /// The text is over, because what follows is none: the bytes `ahead`, which came with earlier pieces, and `rest`.
    fn not_utf8(&mut self, ahead: &[u8], rest: &[u8], sink: Sink<'_>) {
        let carry = core::mem::take(&mut self.carry);
        let used = self.process(&carry, sink);
        let left = carry.get(used..).unwrap_or_default();
        self.advance(left.len(), memchr_iter(b'\n', left.as_bytes()).count() as u64);
        let spot = Spot {
            code: FindingCode::InvalidUtf8,
            line: self.line,
            offset: self.offset,
            // Has the bytes `ahead` already.
            start: self.last_line.clone(),
        };
        match &mut self.fault {
            Some(fault) => fault.start.push(ahead),
            None => self.fault = Some(spot.clone()),
        }
        self.state = State::Faulty;
        self.advance(ahead.len(), 0);
        self.invalid_utf8 = Some(spot);
        self.count(rest);
    }

    fn hand_on_open(&mut self, end: u64, sink: Sink<'_>) {
        let open = core::mem::take(&mut self.open);
        self.hand_on(&open.header, &open.text, &open.record, (open.offset, open.line), (self.offset, end), sink);
        self.open = open;
    }

    /// Hands a frame on: where it starts (offset and line), where its record and where itself ends (behind the LF).
    #[allow(clippy::too_many_arguments, reason = "the parts of one frame, passed on once per frame without a copy")]
    fn hand_on(
        &mut self,
        header: &Header,
        text: &str,
        record: &str,
        (offset, line): (u64, u64),
        (record_end, end): (u64, u64),
        sink: Sink<'_>,
    ) {
        self.frames += 1;
        let part = |range: &Range<usize>| text.get(range.clone()).unwrap_or_default();
        let record_offset = offset + header.record as u64;
        let record_length = record_end - 1 - record_offset;
        let kept = self.keep.min(usize::try_from(record_length).unwrap_or(usize::MAX));
        sink(&FrameRef {
            id: part(&header.id),
            id_digest: Digest(header.id_digest),
            offset,
            end,
            anchor_line: line,
            meta_line: header.metadata.map(|_| line + header.meta_line),
            record_line: line + header.record_line,
            record_lines: u64::from(header.record_lines),
            record_offset,
            record_length,
            speaker: header.speaker.as_ref().map(part),
            metadata: self.parser.metadata(header),
            time: part(&header.time),
            label: part(&header.label),
            record: record.get(..record.floor_char_boundary(kept)).unwrap_or_default(),
        });
    }
}

/// Lines above that byte of marker and empty line, and where its own line starts.
fn preamble_line(byte: usize) -> (u64, usize) {
    if byte <= MARKER.len() { (0, 0) } else { (1, MARKER.len() + 1) }
}

/// Skips `left` lines: returns the bytes skipped, the last LF included, and how many lines are missing.
fn skip_lines(bytes: &[u8], mut left: u32) -> (usize, u32) {
    /// Where many lines are to be skipped, they are counted by the block.
    const BLOCK: usize = 4096;
    if left == 0 {
        return (0, 0);
    }
    let mut at = 0;
    while left > 64
        && let Some(block) = bytes.get(at..at + BLOCK)
    {
        let lines = memchr_iter(b'\n', block).count() as u32;
        if lines >= left {
            break;
        }
        left -= lines;
        at += BLOCK;
    }
    for lf in memchr_iter(b'\n', bytes.get(at..).unwrap_or_default()) {
        left -= 1;
        if left == 0 {
            return (at + lf + 1, 0);
        }
    }
    (bytes.len(), left)
}

fn keep_more(kept: &mut String, piece: &str, keep: usize) {
    let room = keep.saturating_sub(kept.len());
    if room > 0 {
        kept.push_str(piece.get(..piece.ceil_char_boundary(room)).unwrap_or_default());
    }
}
