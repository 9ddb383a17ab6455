//! Parses what stands above a record's text: from a frame's anchor to the end of its label.
//!
//! Knows one header, whole or cut: it says what is wrong, or that more is needed. Must not know what came before it in the
//! file, save the tokens of metadata that were decoded last.

use super::frame::{ANCHOR_CLOSE, ANCHOR_OPEN, CLOSE, COUNT_OPEN, META_OPEN, SOURCE_OPEN, SPEAKER_OPEN};
use super::metadata::Metadata;
use super::record_head::{NoHead, record_head};
use super::report::FindingCode;
use crate::digest::Digest;
use crate::ids::{Location, SourceId};
use crate::text::{is_canonical_speaker, is_printable_reading};
use core::ops::Range;
use memchr::memchr;

/// Most archives repeat a handful of tokens; decoding one costs more than the rest of a frame.
const TOKENS_KEPT: usize = 4;

/// And a handful of speakers, who take turns.
const SPEAKERS_KEPT: usize = 8;

/// A frame's header. Positions count from the frame's first byte.
#[derive(Clone, Debug, Default)]
pub(super) struct Header {
    pub(super) id: Range<usize>,
    pub(super) id_digest: [u8; 32],
    pub(super) speaker: Option<Range<usize>>,
    /// Where the parser keeps the metadata.
    pub(super) metadata: Option<usize>,
    /// Lines above the one with the metadata.
    pub(super) meta_line: u64,
    /// Lines above the record.
    pub(super) record_line: u64,
    pub(super) record_lines: u32,
    pub(super) record: usize,
    pub(super) time: Range<usize>,
    pub(super) label: Range<usize>,
    /// Behind the label's `": "`.
    pub(super) end: usize,
    /// Where the LF of the record's first line was seen, so that nobody looks for it twice.
    pub(super) first_lf: Option<usize>,
}

/// What a try to parse gave.
pub(super) enum Parsed {
    Header(Header),
    /// So far so good, but the text ends before the header does.
    More,
    Fault {
        code: FindingCode,
        /// Lines above the offending one.
        line: u64,
        /// Where that line starts.
        offset: usize,
    },
}

/// Where the archive lies, as far as that is known.
#[derive(Clone, Debug)]
enum Place {
    /// Ids must map here. The flag: every character of the prefix is fit for an id.
    Known(Location, bool),
    /// The first id will tell.
    Unknown,
}

/// Parses headers of one archive, remembering what repeats.
#[derive(Clone, Debug)]
pub(super) struct HeaderParser {
    place: Place,
    tokens: Vec<(String, Metadata)>,
    next_token: usize,
    speakers: Vec<String>,
    next_speaker: usize,
}

impl HeaderParser {
    pub(super) fn new(location: Option<Location>) -> Self {
        let mut parser =
            Self { place: Place::Unknown, tokens: Vec::new(), next_token: 0, speakers: Vec::new(), next_speaker: 0 };
        if let Some(location) = location {
            parser.settle(location);
        }
        parser
    }

    pub(super) fn location(&self) -> Option<&Location> {
        match &self.place {
            Place::Known(location, _) => Some(location),
            Place::Unknown => None,
        }
    }

    pub(super) fn settle(&mut self, location: Location) {
        let fit = location.id_prefix().is_some_and(is_fit);
        self.place = Place::Known(location, fit);
    }

    pub(super) fn metadata(&self, header: &Header) -> Option<&Metadata> {
        self.tokens.get(header.metadata?).map(|(_, metadata)| metadata)
    }

    /// Parses the header that `text` starts with.
    pub(super) fn parse(&mut self, text: &str) -> Parsed {
        let mut lines = Lines { text, next: 0, above: 0 };
        match self.lines(&mut lines) {
            Ok(header) => Parsed::Header(header),
            Err(Stop::More) => Parsed::More,
            Err(Stop::Fault(code, line, offset)) => Parsed::Fault { code, line, offset },
        }
    }

    fn lines(&mut self, lines: &mut Lines<'_>) -> Result<Header, Stop> {
        let mut header = Header::default();

        let anchor = lines.take()?;
        let name = anchor.within(ANCHOR_OPEN, ANCHOR_CLOSE).filter(|name| !name.text.is_empty());
        let name = name.filter(|name| !name.text.contains('"')).ok_or(anchor.fault(FindingCode::BadAnchor))?;

        let source = lines.take()?;
        let id = source.within(SOURCE_OPEN, CLOSE).ok_or(source.fault(FindingCode::BadSourceId))?;
        self.check_id(id.text).map_err(|code| source.fault(code))?;
        let digest = Digest::of(id.text.as_bytes());
        if !is_anchor(name.text, &digest) {
            return Err(anchor.fault(FindingCode::AnchorMismatch));
        }
        header.id = id.range();
        header.id_digest = digest.0;

        let mut line = lines.take()?;
        if line.text.starts_with(SPEAKER_OPEN) {
            let value = line.within(SPEAKER_OPEN, CLOSE).filter(|value| self.is_speaker(value.text));
            header.speaker = Some(value.ok_or(line.fault(FindingCode::BadSpeaker))?.range());
            line = lines.take()?;
        }
        if line.text.starts_with(META_OPEN) {
            let slot = line.within(META_OPEN, CLOSE).and_then(|token| self.token(token.text));
            header.metadata = Some(slot.ok_or(line.fault(FindingCode::BadMetadata))?);
            header.meta_line = line.above;
            line = lines.take()?;
        }
        let count = line.within(COUNT_OPEN, CLOSE).and_then(|digits| record_lines(digits.text));
        header.record_lines = count.ok_or(line.fault(FindingCode::BadRecordCount))?;

        first_line(lines, header)
    }

    fn check_id(&self, id: &str) -> Result<(), FindingCode> {
        if let Place::Known(location, true) = &self.place
            && let Some(message) = location.id_prefix().and_then(|prefix| id.strip_prefix(prefix))
            && !message.is_empty()
            && is_fit(message)
        {
            return Ok(());
        }
        if SourceId::for_reading(id).is_err() {
            return Err(FindingCode::BadSourceId);
        }
        match &self.place {
            Place::Known(location, _) if !location.holds(id) => Err(FindingCode::WrongLocation),
            _ => Ok(()),
        }
    }

    fn is_speaker(&mut self, encoded: &str) -> bool {
        if self.speakers.iter().any(|known| known == encoded) {
            return true;
        }
        let canonical = is_canonical_speaker(encoded);
        if canonical {
            let slot = self.next_speaker;
            self.next_speaker = (slot + 1) % SPEAKERS_KEPT;
            match self.speakers.get_mut(slot) {
                Some(old) => encoded.clone_into(old),
                None => self.speakers.push(encoded.to_owned()),
            }
        }
        canonical
    }

    fn token(&mut self, token: &str) -> Option<usize> {
        if let Some(slot) = self.tokens.iter().position(|(known, _)| known == token) {
            return Some(slot);
        }
        let entry = (token.to_owned(), Metadata::decode(token)?);
        let slot = self.next_token;
        self.next_token = (slot + 1) % TOKENS_KEPT;
        match self.tokens.get_mut(slot) {
            Some(old) => *old = entry,
            None => self.tokens.push(entry),
        }
        Some(slot)
    }
}

/// `[time] label: `; what follows is not looked at.
fn first_line(lines: &Lines<'_>, mut header: Header) -> Result<Header, Stop> {
    let (line, whole) = lines.peek();
    let head = record_head(line.text, whole).map_err(|none| match none {
        NoHead::More => Stop::More,
        NoHead::Bad => line.fault(FindingCode::BadRecord),
    })?;
    let from_here = |range: Range<usize>| line.start + range.start..line.start + range.end;
    header.record_line = line.above;
    header.record = line.start;
    header.time = from_here(head.time);
    header.label = from_here(head.label);
    header.end = line.start + head.end;
    header.first_lf = whole.then(|| line.start + line.text.len());
    Ok(header)
}

enum Stop {
    More,
    Fault(FindingCode, u64, usize),
}

/// A line, or a part of one, and where it stands.
#[derive(Clone, Copy)]
struct Line<'a> {
    text: &'a str,
    start: usize,
    above: u64,
}

impl<'a> Line<'a> {
    #[inline]
    fn within(&self, open: &str, close: &str) -> Option<Line<'a>> {
        let text = self.text.strip_prefix(open)?.strip_suffix(close)?;
        Some(Line { text, start: self.start + open.len(), above: self.above })
    }

    #[inline]
    fn range(&self) -> Range<usize> {
        self.start..self.start + self.text.len()
    }

    #[inline]
    fn fault(&self, code: FindingCode) -> Stop {
        Stop::Fault(code, self.above, self.start)
    }
}

struct Lines<'a> {
    text: &'a str,
    next: usize,
    above: u64,
}

impl<'a> Lines<'a> {
    /// The next line, if its LF is there.
    #[inline]
    fn take(&mut self) -> Result<Line<'a>, Stop> {
        let (line, whole) = self.peek();
        if !whole {
            return Err(Stop::More);
        }
        self.next += line.text.len() + 1;
        self.above += 1;
        Ok(line)
    }

    /// The next line as far as there is text, and whether that is all of it.
    #[inline]
    fn peek(&self) -> (Line<'a>, bool) {
        let rest = self.text.get(self.next..).unwrap_or_default();
        let end = memchr(b'\n', rest.as_bytes());
        let text = rest.get(..end.unwrap_or(rest.len())).unwrap_or_default();
        (Line { text, start: self.next, above: self.above }, end.is_some())
    }
}

/// Whether a part may stand in an id that is read.
fn is_fit(part: &str) -> bool {
    let plain = |byte: u8| matches!(byte, b' '..=b'~') && !matches!(byte, b'[' | b']' | b'<' | b'>');
    part.bytes().all(plain) || part.chars().all(|c| crate::ids::is_allowed(c, is_printable_reading))
}

fn is_anchor(name: &str, id: &Digest) -> bool {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    const HEX: usize = 16;
    let mut expected = [0; HEX];
    for (pair, byte) in expected.chunks_exact_mut(2).zip(id.0) {
        if let [high, low] = pair {
            *high = DIGITS.get(usize::from(byte >> 4)).copied().unwrap_or_default();
            *low = DIGITS.get(usize::from(byte & 15)).copied().unwrap_or_default();
        }
    }
    name.as_bytes().strip_prefix(b"source-").is_some_and(|found| found == expected)
}

pub(super) fn record_lines(digits: &str) -> Option<u32> {
    let plain = (1..=9).contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_digit());
    plain.then(|| digits.parse().ok()).flatten().filter(|&count| count > 0)
}
