//! What is kept of a frame: who, when, what.

use super::frame::FrameRef;
use super::metadata::{Tier, Trust};
use crate::ids::{SpeakerId, label as label_of};
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
            label: label_of(display, id.as_str(), ""),
            display: display.to_owned(),
            id: id.as_str().to_owned(),
            trusted: trust == Trust::Trusted,
        })
    }
}

/// A record of evidence, without its text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// `provider/thread/message`.
    pub id: String,
    /// Its file, as it was given.
    pub path: String,
    /// Of its anchor in the file.
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
    /// Only where the runtime gave one.
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
}

impl Event {
    /// Of a frame of the file at `path`, whose record reads `text`.
    pub fn new(path: &str, frame: &FrameRef<'_>, text: &str) -> Self {
        Self { record: Record::new(path, frame), content: clean(text), date: first_date(text).map(str::to_owned) }
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
