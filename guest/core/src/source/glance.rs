//! One frame, read without the rest of its archive.

use super::frame::FrameRef;
use super::header::{HeaderParser, Parsed};
use crate::digest::Digest;
use crate::ids::Location;

/// Where a frame is known to stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FramePlace {
    /// Of its anchor line.
    pub offset: u64,
    /// That line, from 1.
    pub line: u64,
    /// Bytes from the anchor to the end of the record, its last LF left out.
    pub length: u64,
}

/// Looks at the frame of the archive at `path` that `text` begins with, as far as `text` goes: to the end of the record's
/// label or further. What comes behind is not looked at, so what `place` says of it is taken as it is. None: no frame
/// begins here, or `text` ends before the label does.
pub fn glance<R>(path: &str, text: &str, place: FramePlace, see: impl FnOnce(&FrameRef<'_>) -> R) -> Option<R> {
    let mut parser = HeaderParser::new(Some(Location::of_path(path)));
    let Parsed::Header(header) = parser.parse(text) else { return None };
    let part = |range: &core::ops::Range<usize>| text.get(range.clone()).unwrap_or_default();
    let before = header.record as u64;
    Some(see(&FrameRef {
        id: part(&header.id),
        id_digest: Digest(header.id_digest),
        offset: place.offset,
        // And the last LF, and the empty line.
        end: place.offset.saturating_add(place.length).saturating_add(2),
        anchor_line: place.line,
        meta_line: header.metadata.map(|_| place.line.saturating_add(header.meta_line)),
        record_line: place.line.saturating_add(header.record_line),
        record_lines: u64::from(header.record_lines),
        record_offset: place.offset.saturating_add(before),
        record_length: place.length.saturating_sub(before),
        speaker: header.speaker.as_ref().map(part),
        metadata: parser.metadata(&header),
        time: part(&header.time),
        label: part(&header.label),
        record: text.get(header.record..).unwrap_or_default(),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::{Batch, Record};
    use crate::source::{Limits, NewRecord, Scanner, said};
    use std::collections::BTreeMap;

    #[test]
    fn a_glance_shows_what_a_scan_shows() {
        let record = |id: &str, text: &str, speaker: Option<&str>| NewRecord {
            provider: "p".into(),
            thread: "t".into(),
            id: id.into(),
            role: "user".into(),
            text: text.into(),
            time: Some("2026-01-02".into()),
            speaker_id: speaker.map(str::to_owned),
            trust: "pending".into(),
            ..NewRecord::default()
        };
        let long = "line\n".repeat(50);
        let records = vec![record("1", "short", None), record("2", &long, Some("u-1")), record("3", "", Some("u-2"))];
        let batch = Batch::check(records, &Limits::default()).expect("sound records");
        let plan = batch.compare(BTreeMap::new()).expect("no file").plan().expect("nothing to read");
        let archive = &plan.changes[0];
        let mut seen = 0;
        let mut check = |frame: &FrameRef<'_>| {
            let length = frame.record_offset + frame.record_length - frame.offset;
            let place = FramePlace { offset: frame.offset, line: frame.anchor_line, length };
            let rest = &archive.text[frame.offset as usize..];
            let behind_label = said(frame.record, frame.time, frame.label);
            let head = rest.len() - rest[(frame.record_offset - frame.offset) as usize..].len() + frame.record.len()
                - behind_label.len();
            for shown in [length as usize, head] {
                let found = glance(&archive.path, &rest[..shown], place, |glanced| {
                    assert_eq!((glanced.end_line(), glanced.end), (frame.end_line(), frame.offset + length + 2));
                    assert_eq!(said(glanced.record, glanced.time, glanced.label), &behind_label[..shown - head]);
                    Record::new(&archive.path, glanced)
                });
                assert_eq!(found, Some(Record::new(&archive.path, frame)));
            }
            assert!(glance(&archive.path, &rest[..head - 1], place, |_| ()).is_none());
            assert!(glance("sources/p/_v2/other.md", rest, place, |_| ()).is_none());
            seen += 1;
        };
        let mut scanner =
            Scanner::new(Some(Location::of_path(&archive.path)), &Limits::default()).keep_records(1 << 20);
        scanner.push_text(&archive.text, &mut check);
        scanner.finish(&mut check);
        assert_eq!(seen, 3);
    }
}
