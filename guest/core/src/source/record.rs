//! What is kept of a frame: who, when, what.

use super::frame::FrameRef;
use super::metadata::{Tier, Trust};
use crate::ids::{SpeakerId, label as label_of};
use crate::text::{collapse_whitespace, identity_part};
use memchr::memmem;

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

/// Text made plain: a Markdown link becomes its text, a comment within a line becomes a space, every run of white space
/// becomes one space.
pub fn clean(text: &str) -> String {
    let unlinked = without_links(text);
    collapse_whitespace(&without_comments(unlinked.as_deref().unwrap_or(text)))
}

/// `[text](target)` becomes `text`, leftmost first, neither part empty. None: nothing to do.
fn without_links(text: &str) -> Option<String> {
    memmem::find(text.as_bytes(), b"](")?;
    let mut out = String::with_capacity(text.len());
    let (mut closes, mut ends) = (Next::new(text, "]"), Next::new(text, ")"));
    let mut rest = 0;
    let mut from = 0;
    while let Some(open) = text.get(from..).and_then(|tail| tail.find('[')).map(|at| from + at) {
        from = open + 1;
        // From the second character on: an empty text is no link.
        let Some(close) = closes.at_or_after(open + 1).filter(|&close| close > open + 1) else { continue };
        if text.as_bytes().get(close + 1) != Some(&b'(') {
            continue;
        }
        let Some(end) = ends.at_or_after(close + 2).filter(|&end| end > close + 2) else { continue };
        out.push_str(text.get(rest..open).unwrap_or_default());
        out.push_str(text.get(open + 1..close).unwrap_or_default());
        rest = end + 1;
        from = rest;
    }
    out.push_str(text.get(rest..).unwrap_or_default());
    Some(out)
}

/// `<!-- … -->` becomes a space if it opens and closes in one line.
fn without_comments(text: &str) -> String {
    const OPEN: &str = "<!--";
    let mut out = String::with_capacity(text.len());
    let (mut closes, mut breaks) = (Next::new(text, "-->"), Next::new(text, "\n"));
    let mut rest = 0;
    let mut from = 0;
    while let Some(open) = text.get(from..).and_then(|tail| tail.find(OPEN)).map(|at| from + at) {
        from = open + OPEN.len();
        let Some(close) = closes.at_or_after(from) else { break };
        if breaks.at_or_after(from).is_some_and(|lf| lf < close) {
            continue;
        }
        out.push_str(text.get(rest..open).unwrap_or_default());
        out.push(' ');
        rest = close + 3;
        from = rest;
    }
    out.push_str(text.get(rest..).unwrap_or_default());
    out
}

/// Where something comes next, asked for ever later places: every byte is looked at once, whatever the text.
struct Next<'a> {
    text: &'a str,
    what: &'static str,
    found: Option<usize>,
}

impl<'a> Next<'a> {
    fn new(text: &'a str, what: &'static str) -> Self {
        Self { text, what, found: text.find(what) }
    }

    fn at_or_after(&mut self, from: usize) -> Option<usize> {
        if self.found.is_some_and(|at| at < from) {
            self.found = self.text.get(from..).and_then(|tail| tail.find(self.what)).map(|at| from + at);
        }
        self.found
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
    fn cleaning() {
        for (raw, plain) in [
            ("see [doc](http://x/y) <!-- c --> end", "see doc end"),
            ("[a [b](c)", "a [b"),
            ("[](x) [a]() [a] (b)", "[](x) [a]() [a] (b)"),
            ("a <!-- b\n --> c", "a <!-- b --> c"),
            ("a <!--> b --> c", "a c"),
            ("<!-- a --><!-- b -->", ""),
            ("x\r\n\t y\u{2028}z", "x y z"),
            ("[<!-- ](x)--> y", "y"),
        ] {
            assert_eq!(clean(raw), plain, "{raw:?}");
        }
    }

    #[test]
    fn cleaning_is_linear() {
        for unit in ["[", "[a](", "<!--", "](", "<!-- -", "[a](b) <!-- c -->"] {
            clean(&unit.repeat(200_000));
        }
    }

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
