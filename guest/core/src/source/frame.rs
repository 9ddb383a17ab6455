//! One frame: a record and what the runtime wrote above it.
//!
//! Knows the lines of a frame, as constants that reading and writing share. Must not know where frames begin in a file; the
//! scanner does.

use super::metadata::{Metadata, Tier, Trust, UNKNOWN};
use crate::digest::{Digest, Hasher};
use crate::ids::anchor_of;
use crate::text::is_whitespace;
use core::ops::Range;

/// First line of every v2 archive; an empty line follows.
pub const MARKER: &str = "<!-- openprogram-source-archive:v2 -->";

pub(super) const ANCHOR_OPEN: &str = "<a id=\"";
pub(super) const ANCHOR_CLOSE: &str = "\"></a>";
pub(super) const SOURCE_OPEN: &str = "<!-- source-id:";
pub(super) const SPEAKER_OPEN: &str = "<!-- speaker-id:";
pub(super) const META_OPEN: &str = "<!-- source-meta:";
pub(super) const COUNT_OPEN: &str = "<!-- record-lines:";
pub(super) const CLOSE: &str = " -->";
/// Greatest number of lines a record may have: nine digits.
pub(super) const RECORD_LINES_MAX: u64 = 999_999_999;

/// A whole frame, as a scanner met it. Offsets are bytes from the start of the file, lines count from 1.
///
/// ```text
/// offset ->        <a id="source-…"></a>          anchor_line
///                  <!-- source-id:id -->
///                  <!-- speaker-id:speaker -->    if speaker
///                  <!-- source-meta:… -->         meta_line, if metadata
///                  <!-- record-lines:N -->        record_lines
/// record_offset -> [time] label: text…            record_line
///                  …                              N lines in all, record_length bytes without the last LF
///                  (an empty line)                end_line
/// end ->
/// ```
#[derive(Clone, Copy, Debug)]
pub struct FrameRef<'a> {
    /// The source id; valid for reading and of this file.
    pub id: &'a str,
    /// SHA-256 of `id`.
    pub id_digest: Digest,
    /// Of the anchor line.
    pub offset: u64,
    /// Behind the empty line, or behind the record's last LF where the file ends right there.
    pub end: u64,
    /// The frame's first line.
    pub anchor_line: u64,
    /// The line with the metadata.
    pub meta_line: Option<u64>,
    /// The record's first line.
    pub record_line: u64,
    /// How many lines the record has; at least 1.
    pub record_lines: u64,
    /// The record's first byte.
    pub record_offset: u64,
    /// The record's bytes, without the LF that ends its last line.
    pub record_length: u64,
    /// The speaker marker's value, as encoded; none: no marker, nobody vouches for a speaker.
    pub speaker: Option<&'a str>,
    /// None: the frame carries no metadata, see [`Metadata::absent`].
    pub metadata: Option<&'a Metadata>,
    /// What stands between the brackets.
    pub time: &'a str,
    /// What stands before the first `": "`.
    pub label: &'a str,
    /// The record, as far as the scanner was asked to keep it ([`super::Scanner::keep_records`]).
    pub record: &'a str,
}

impl FrameRef<'_> {
    /// The anchor within the file.
    pub fn anchor(&self) -> String {
        anchor_of(&self.id_digest)
    }

    /// The frame's last line: the empty one.
    pub fn end_line(&self) -> u64 {
        self.record_line + self.record_lines
    }

    /// Whether a reader is shown this line of the file: all of the frame but its metadata.
    pub fn shows(&self, line: u64) -> bool {
        (self.anchor_line..=self.end_line()).contains(&line) && self.meta_line != Some(line)
    }

    /// Whether the record may be built on.
    pub fn trust(&self) -> Trust {
        self.metadata.map_or(Trust::Trusted, |metadata| metadata.trust)
    }

    /// Kind of speaker.
    pub fn kind(&self) -> &str {
        self.metadata.map_or(UNKNOWN, |metadata| &metadata.kind)
    }

    /// On whose behalf.
    pub fn principal(&self) -> &str {
        self.metadata.map_or(UNKNOWN, |metadata| &metadata.principal)
    }

    /// On whose authority.
    pub fn tier(&self) -> Option<Tier> {
        self.metadata.and_then(|metadata| metadata.tier)
    }
}

/// What was said: a record, or the beginning of one, behind its time and label as they stand in it.
pub fn said<'a>(record: &'a str, time: &str, label: &str) -> &'a str {
    // `[time]`, white space of any length, `label: `.
    let behind_time = record.get(time.len() + 2..).unwrap_or_default().trim_start_matches(is_whitespace);
    behind_time.get(label.len() + 2..).unwrap_or_default()
}

/// The parts of a frame above its record, written the canonical way.
pub(super) fn write_head(
    out: &mut String,
    id: &str,
    anchor: &str,
    speaker: Option<&str>,
    metadata: &Metadata,
    record_lines: u64,
) {
    let mut line = |parts: [&str; 3]| {
        for part in parts {
            out.push_str(part);
        }
        out.push('\n');
    };
    line([ANCHOR_OPEN, anchor, ANCHOR_CLOSE]);
    line([SOURCE_OPEN, id, CLOSE]);
    if let Some(speaker) = speaker {
        line([SPEAKER_OPEN, speaker, CLOSE]);
    }
    line([META_OPEN, &metadata.encode(), CLOSE]);
    line([COUNT_OPEN, &record_lines.to_string(), CLOSE]);
}

/// Where in a frame's header, the text from its anchor to its record, the metadata token stands.
pub fn metadata_token(header: &str) -> Option<Range<usize>> {
    let mut start = 0;
    for line in header.split_inclusive('\n') {
        if let Some(token) = line.strip_prefix(META_OPEN).and_then(|rest| rest.strip_suffix('\n')?.strip_suffix(CLOSE))
        {
            let from = start + META_OPEN.len();
            return Some(from..from + token.len());
        }
        start += line.len();
    }
    None
}

/// The content digest of a record (FORMAT.md, "Same record"): SHA-256 over its frame as it would be written with trust
/// state `pending`, from the anchor to the record's last byte. Two records with one id are the same record if their
/// content digests are equal; promoting a record does not change it.
#[derive(Clone)]
pub struct ContentHasher(Hasher);

impl ContentHasher {
    /// For a record with this id, speaker marker, metadata and number of lines; its bytes are pushed next.
    pub fn new(id: &str, speaker: Option<&str>, metadata: Option<&Metadata>, record_lines: u64) -> Self {
        let metadata = Metadata { trust: Trust::Pending, ..metadata.cloned().unwrap_or_else(Metadata::absent) };
        let mut head = String::with_capacity(512);
        write_head(&mut head, id, &anchor_of(&Digest::of(id.as_bytes())), speaker, &metadata, record_lines);
        let mut hasher = Hasher::new();
        hasher.push(head.as_bytes());
        Self(hasher)
    }

    /// For the record of a frame.
    pub fn of_frame(frame: &FrameRef<'_>) -> Self {
        Self::new(frame.id, frame.speaker, frame.metadata, frame.record_lines)
    }

    /// Takes the next bytes of the record.
    pub fn push(&mut self, record: &[u8]) {
        self.0.push(record);
    }

    /// The content digest.
    pub fn finish(self) -> Digest {
        self.0.finish()
    }
}
