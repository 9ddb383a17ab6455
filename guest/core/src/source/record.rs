//! What is kept of a frame: who, when, what.
//!
//! Knows how frames and records of the older form come to the same shape, and that only a frame has a speaker to be
//! trusted. Must not know how either is found in a file.

use super::frame::FrameRef;
use super::legacy::{LegacyKind, LegacyRef};
use super::metadata::{Tier, Trust, UNKNOWN};
use crate::ids::{SpeakerId, lexical_id};
use crate::text::{clean, identity_part};

/// Who a record says spoke, where the runtime gave a speaker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Speaker {
    /// As the runtime gave it; empty where it gave a name only.
    pub id: String,
    /// The name alone; empty where the label shows the id only.
    pub display: String,
    /// Name and id as people see them.
    pub label: String,
    /// The runtime vouches for it, and the record may be built on.
    pub trusted: bool,
}

impl Speaker {
    /// Reads a speaker from its marker and the record's label (FORMAT.md, "Labels"). None if the marker is not canonical,
    /// which does not happen in a frame.
    pub fn new(marker: &str, label: &str, trust: Trust) -> Option<Self> {
        let id = SpeakerId::from_marker(marker)?;
        let shown_id = identity_part(id.as_str());
        let suffix = format!(" ({shown_id})");
        let display = match label.strip_suffix(suffix.as_str()) {
            Some(display) if !shown_id.is_empty() => display,
            _ if label == shown_id => "",
            _ => label,
        };
        Some(Self {
            label: shown(display, &shown_id),
            display: display.to_owned(),
            id: id.as_str().to_owned(),
            trusted: trust == Trust::Trusted,
        })
    }
}

/// Name and id as people see them. Parts of full length were cut when they were written: the whole is not cut again, or a long
/// name would hide the id.
fn shown(display: &str, shown_id: &str) -> String {
    match (identity_part(display).as_str(), shown_id) {
        ("", one) | (one, "") => one.to_owned(),
        (display, id) if display == id => id.to_owned(),
        (display, id) => format!("{display} ({id})"),
    }
}

/// A record as it was met: a frame of a v2 archive, or something in one of the older form.
#[derive(Clone, Copy, Debug)]
pub enum RecordRef<'a> {
    /// A frame.
    Frame(&'a FrameRef<'a>),
    /// What an older archive has; not all of it is a record ([`LegacyRef::is_record`]).
    Legacy(&'a LegacyRef<'a>),
}

impl RecordRef<'_> {
    /// Whether it is a record: every frame is.
    pub fn is_record(&self) -> bool {
        match self {
            Self::Frame(_) => true,
            Self::Legacy(legacy) => legacy.is_record(),
        }
    }

    /// Its text, as far as the scanner was asked to keep it.
    pub fn text(&self) -> &str {
        match self {
            Self::Frame(frame) => frame.record,
            Self::Legacy(legacy) => legacy.text,
        }
    }
}

/// A record of evidence, without its text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// `provider/thread/message`; of a numbered turn its reference, `D3:7`; of a line that mentions some `lex_…`.
    pub id: String,
    /// Its file, as it was given.
    pub path: String,
    /// Of its anchor in the file: `source-…` or `d3-7`; a line that mentions turns has its id in the place of one.
    pub anchor: String,
    /// Of its first line, from 1.
    pub line: u64,
    /// Of its first byte in the file.
    pub offset: u64,
    /// In bytes.
    pub length: u64,
    /// What stands between the brackets.
    pub time: String,
    /// Speaker or role, as written in the record. A body can say anything; this alone proves nothing.
    pub label: String,
    /// Only where the runtime gave one, or where an older record's text begins with a name; then it is not trusted.
    pub speaker: Option<Speaker>,
    /// Whether it may be built on.
    pub trust: Trust,
    /// Kind of speaker.
    pub kind: String,
    /// On whose behalf.
    pub principal: String,
    /// On whose authority.
    pub tier: Option<Tier>,
}

impl Record {
    /// What is kept of a frame of the file at `path`.
    pub fn new(path: &str, frame: &FrameRef<'_>) -> Self {
        Self {
            id: frame.id.to_owned(),
            path: path.to_owned(),
            anchor: frame.anchor(),
            line: frame.record_line,
            offset: frame.record_offset,
            length: frame.record_length,
            time: frame.time.to_owned(),
            label: frame.label.to_owned(),
            speaker: frame.speaker.and_then(|marker| Speaker::new(marker, frame.label, frame.trust())),
            trust: frame.trust(),
            kind: frame.kind().to_owned(),
            principal: frame.principal().to_owned(),
            tier: frame.tier(),
        }
    }

    /// What is kept of something in the older archive at `path`. Evidence of that form is trusted: nothing in it could say
    /// otherwise (FORMAT.md, "Older archives").
    pub fn of_legacy(path: &str, legacy: &LegacyRef<'_>) -> Self {
        Self {
            id: legacy.id.to_owned(),
            path: path.to_owned(),
            anchor: legacy.anchor.to_owned(),
            line: legacy.line,
            offset: legacy.offset,
            length: legacy.length,
            time: legacy.time.to_owned(),
            label: legacy.label.to_owned(),
            speaker: legacy.hint.cloned(),
            trust: Trust::Trusted,
            kind: UNKNOWN.to_owned(),
            principal: UNKNOWN.to_owned(),
            tier: None,
        }
    }

    /// What is kept of a line in the older archive at `path` that mentions numbered turns: found like a record, under an id
    /// that is made of where it stands and what it says.
    pub fn of_mention(path: &str, mention: &LegacyRef<'_>) -> Self {
        let id = lexical_id(path, mention.line, &clean(mention.text), &mention.references());
        Self { anchor: id.clone(), id, ..Self::of_legacy(path, mention) }
    }
}

/// A record as search sees it: with its text made plain, and dated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// The record.
    pub record: Record,
    /// Its text, cleaned: see [`clean`].
    pub content: String,
    /// Its first date, `YYYY-MM-DD`: see [`first_date`].
    pub date: Option<String>,
    /// The headings above it, outermost first; v2 archives have none.
    pub headings: Vec<String>,
    /// What it is evidence for when cited: its own id, or what a line mentions.
    pub references: Vec<String>,
}

impl Event {
    /// Of a frame of the file at `path`, whose record reads `text`.
    pub fn new(path: &str, frame: &FrameRef<'_>, text: &str) -> Self {
        Self {
            record: Record::new(path, frame),
            content: clean(text),
            date: first_date(text).map(str::to_owned),
            headings: Vec::new(),
            references: vec![frame.id.to_owned()],
        }
    }

    /// Of something in the older archive at `path`, all of its text kept. A numbered turn has no event of its own: its lines
    /// that mention turns have, itself among them. None for those and for a header without a record.
    pub fn of_legacy(path: &str, legacy: &LegacyRef<'_>) -> Option<Self> {
        let references = match legacy.kind {
            LegacyKind::Message => vec![legacy.id.to_owned()],
            LegacyKind::Mention => legacy.references().iter().map(|reference| reference.as_str().to_owned()).collect(),
            LegacyKind::Numbered | LegacyKind::Bare => return None,
        };
        let is_mention = legacy.kind == LegacyKind::Mention;
        Some(Self {
            record: if is_mention { Record::of_mention(path, legacy) } else { Record::of_legacy(path, legacy) },
            content: clean(legacy.text),
            date: first_date(legacy.text).map(str::to_owned),
            headings: legacy.headings.to_vec(),
            references,
        })
    }
}

/// The first `YYYY-MM-DD` in ASCII digits that no further digit touches. Whether there is such a day is not asked.
pub fn first_date(text: &str) -> Option<&str> {
    let bytes = text.as_bytes();
    memchr::memchr_iter(b'-', bytes).find_map(|dash| {
        let start = dash.checked_sub(4)?;
        let date = bytes.get(start..start + 10)?;
        let shaped = date.iter().enumerate().all(|(at, byte)| match at {
            4 | 7 => *byte == b'-',
            _ => byte.is_ascii_digit(),
        });
        let touched = |at: Option<usize>| at.and_then(|at| bytes.get(at)).is_some_and(u8::is_ascii_digit);
        (shaped && !touched(start.checked_sub(1)) && !touched(Some(start + 10))).then(|| text.get(start..start + 10))?
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates() {
        for (text, date) in [
            ("[] user: on 2025-12-31 we met", Some("2025-12-31")),
            ("12025-12-31 2025-12-310 2024-01-02", Some("2024-01-02")),
            ("２025-12-31", None),
            ("2025-1-02", None),
            ("x-2025-12-31-y", Some("2025-12-31")),
            ("---", None),
            ("2025-12-3", None),
        ] {
            assert_eq!(first_date(text), date, "{text}");
        }
    }
}
