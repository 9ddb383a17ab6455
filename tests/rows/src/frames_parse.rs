//! Rows of `frames_parse.jsonl`: one archive's path and bytes, and what a scan, the index and a reader make of it.

use std::collections::BTreeSet;

use recollex_core::ids::Location;
use recollex_core::source::{Event, Fault, FrameRef, Limits, Metadata, ScanEnd, Scanner, Trust};
use serde_json::{Value, json};

use crate::{Input, Malformed, Observed, Outcome};

/// Length of the pieces in which an archive is scanned besides whole: short and odd, so that every kind of line and
/// character is cut somewhere.
const PIECE: usize = 7;

pub(crate) fn observe(input: &Input<'_>) -> Observed {
    let path = input.field("path")?.text()?;
    let bytes = input.field("bytes")?.bytes()?;
    let whole = scan(path, &bytes, |scanner, sink| scanner.push_bytes(&bytes, sink))?;
    let pieces = scan(path, &bytes, |scanner, sink| {
        for piece in bytes.chunks(PIECE) {
            scanner.push_bytes(piece, sink);
        }
    })?;
    if whole != pieces {
        return Err(Malformed::new("scan in pieces", format!("{pieces} instead of {whole}")));
    }
    if let Ok(text) = core::str::from_utf8(&bytes) {
        let text = scan(path, &bytes, |scanner, sink| scanner.push_text(text, sink))?;
        if whole != text {
            return Err(Malformed::new("scan as text", format!("{text} instead of {whole}")));
        }
    }
    Ok(Outcome::Shown(whole))
}

/// What is kept of a frame, as the row shows it.
#[derive(Default)]
struct Shown {
    frames: Vec<Value>,
    events: Vec<Value>,
    trusted: BTreeSet<String>,
    lines: Vec<Value>,
}

fn scan(
    path: &str,
    bytes: &[u8],
    push: impl FnOnce(&mut Scanner, &mut dyn FnMut(&FrameRef<'_>)),
) -> Result<Value, Malformed> {
    let lines: Vec<&[u8]> = bytes.split(|byte| *byte == b'\n').collect();
    let mut shown = Shown::default();
    let mut misplaced = None;
    let mut sink = |frame: &FrameRef<'_>| {
        if !is_placed(frame, bytes) {
            misplaced.get_or_insert_with(|| format!("{frame:?} in {} bytes", bytes.len()));
        }
        shown.frames.push(show_frame(frame));
        shown.events.push(show_event(Event::new(path, frame, frame.record)));
        if frame.trust() == Trust::Trusted {
            shown.trusted.insert(frame.id.to_owned());
        }
        shown.lines.extend(show_lines(frame, &lines));
    };
    let mut scanner = Scanner::new(Some(Location::of_path(path)), &Limits::default()).keep_records(usize::MAX);
    push(&mut scanner, &mut sink);
    let end = scanner.finish(&mut sink);
    if let Some(frame) = misplaced {
        return Err(Malformed::new("offsets", frame));
    }
    let mut outcome = json!({
        "scan": {
            "complete": end.complete,
            "frames": shown.frames,
            "valid_prefix_lines": end.valid_prefix_lines,
            "valid_prefix_bytes": end.valid_prefix_bytes,
        },
        "events": shown.events,
        "trusted_source_ids": shown.trusted,
        "visible_lines": shown.lines,
    });
    if let Some(fault) = fault(&end) {
        outcome["fault"] = json!({"code": fault.code.as_str(), "line": fault.line});
    }
    Ok(outcome)
}

/// Whether a frame's offsets name what they say, which rows do not show: its anchor, its record, its end.
fn is_placed(frame: &FrameRef<'_>, bytes: &[u8]) -> bool {
    let slice = |start: u64, end: u64| bytes.get(usize::try_from(start).ok()?..usize::try_from(end).ok()?);
    let behind_record = frame.record_offset + frame.record_length;
    slice(frame.offset, frame.record_offset).is_some_and(|head| head.starts_with(b"<a id="))
        && slice(frame.record_offset, behind_record) == Some(frame.record.as_bytes())
        // The record's last LF, and that of the empty line unless the file ends before it.
        && slice(behind_record, frame.end).is_some_and(|tail| tail == b"\n\n" || (tail == b"\n" && frame.end == bytes.len() as u64))
}

/// The fault a row about invalid UTF-8 is about, else the first.
fn fault(end: &ScanEnd) -> Option<&Fault> {
    end.invalid_utf8.as_ref().or(end.fault.as_ref())
}

/// The lines rows count from 0.
fn index(line: u64) -> u64 {
    line - 1
}

fn show_frame(frame: &FrameRef<'_>) -> Value {
    json!({
        "source_id": frame.id,
        "frame_start": index(frame.anchor_line),
        "encoded_speaker_id": frame.speaker,
        "metadata": frame.metadata.map(show_metadata),
        "metadata_index": frame.meta_line.map(index),
        "record_index": index(frame.record_line),
        "record_end": index(frame.end_line()),
    })
}

fn show_metadata(metadata: &Metadata) -> Value {
    json!({
        "version": 1,
        "trust_state": metadata.trust.as_str(),
        "speaker_kind": metadata.kind,
        "principal_id": metadata.principal,
        "authority_tier": metadata.tier.map(|tier| tier.as_str()),
    })
}

/// An event in the shape of rows.
pub(crate) fn show_event(event: Event) -> Value {
    let record = event.record;
    let (speaker_id, display, label, trusted) = match record.speaker {
        Some(speaker) => (speaker.id, speaker.display, speaker.label, speaker.trusted),
        None => Default::default(),
    };
    json!({
        "event_id": record.id,
        "path": record.path,
        "line": record.line,
        "headings": event.headings,
        "date": event.date.as_deref().unwrap_or_default(),
        "dates": event.date.as_slice(),
        "content": event.content,
        "refs": event.references,
        "speaker_id": speaker_id,
        "speaker_display": display,
        "speaker_label": label,
        "speaker_trusted": trusted,
        "trust_state": record.trust.as_str(),
        "speaker_kind": record.kind,
        "principal_id": record.principal,
        "authority_tier": record.tier.map(|tier| tier.as_str()),
        "visibility": null,
    })
}

/// The lines of a frame that a reader is shown, each with its number.
fn show_lines(frame: &FrameRef<'_>, lines: &[&[u8]]) -> Vec<Value> {
    (1_u64..)
        .zip(lines)
        .filter(|(number, _)| frame.shows(*number))
        .map(|(number, line)| json!([number, String::from_utf8_lossy(line)]))
        .collect()
}
