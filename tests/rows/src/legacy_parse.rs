//! Rows of `legacy_parse.jsonl`: files of a workspace, and what the scan of one of the older form, the index over all of
//! them and a reader make of them.

use std::collections::{BTreeMap, BTreeSet};

use recollex_core::session::LineWindow;
use recollex_core::source::{
    EntryKind, Event, Given, LegacyItem, LegacyKind, LegacyScanner, Limits, NewerIds, RecordRef, Resolution, Trust,
    Verifier,
};
use serde_json::{Value, json};

use crate::frames_parse::show_event;
use crate::{Input, Malformed, Observed, Outcome};

/// Length of the pieces in which a file is scanned besides whole: short and odd, so that every kind of line and character
/// is cut somewhere.
const PIECE: usize = 7;

type Files<'a> = BTreeMap<&'a str, Vec<u8>>;

pub(crate) fn observe(input: &Input<'_>) -> Observed {
    let path = input.field("path")?.text()?;
    let files = input.field("files")?;
    let files: Files<'_> =
        files.entries()?.map(|(path, content)| Ok((path, content.bytes()?))).collect::<Result<_, Malformed>>()?;
    let bytes = files.get(path).ok_or_else(|| Malformed::new("input.files", "not the file of `path`"))?;
    Ok(Outcome::Shown(json!({
        "events": events(path, bytes)?,
        "trusted_source_ids": trusted(&files),
        "visible_lines": visible_lines(bytes),
        "index_events": index_events(&files),
    })))
}

/// The events of one file, the same however it is cut.
fn events(path: &str, bytes: &[u8]) -> Result<Vec<Value>, Malformed> {
    let whole = scan(path, |scanner, sink| scanner.push_bytes(bytes, sink));
    let pieces = scan(path, |scanner, sink| bytes.chunks(PIECE).for_each(|piece| scanner.push_bytes(piece, sink)));
    if whole != pieces {
        return Err(Malformed::new("scan in pieces", format!("{pieces:?} instead of {whole:?}")));
    }
    if let Ok(text) = core::str::from_utf8(bytes) {
        let text = scan(path, |scanner, sink| scanner.push_text(text, sink));
        if whole != text {
            return Err(Malformed::new("scan as text", format!("{text:?} instead of {whole:?}")));
        }
    }
    Ok(whole)
}

fn scan(path: &str, push: impl FnOnce(&mut LegacyScanner, &mut dyn FnMut(LegacyItem<'_>))) -> Vec<Value> {
    let mut events = Vec::new();
    let mut sink = |item: LegacyItem<'_>| {
        if let LegacyItem::Found(legacy) = item {
            events.extend(Event::of_legacy(path, legacy).map(show_event));
        }
    };
    let mut scanner = LegacyScanner::new(path, &Limits::default()).keep_records(usize::MAX);
    push(&mut scanner, &mut sink);
    scanner.finish(&mut sink);
    events
}

/// Goes through all files.
fn read(files: &Files<'_>, mut see: impl FnMut(&str, RecordRef<'_>)) {
    let mut verifier = Verifier::new(Given::InWorkspace, &Limits::default()).keep_records(usize::MAX);
    for (path, bytes) in files {
        verifier.file(path, EntryKind::File);
        verifier.push_bytes(bytes, &mut see);
        verifier.end(&mut see);
    }
}

/// All that is trusted evidence: what is met anywhere, resolved.
fn trusted(files: &Files<'_>) -> BTreeSet<String> {
    let mut met = BTreeSet::new();
    read(files, |_, record| match record {
        RecordRef::Frame(frame) => drop(met.insert(frame.id.to_owned())),
        RecordRef::Legacy(legacy) if legacy.kind == LegacyKind::Mention => {}
        RecordRef::Legacy(legacy) => drop(met.insert(legacy.id.to_owned())),
    });
    let mut resolution = Resolution::of(&met);
    read(files, |_, record| resolution.see(record));
    met.retain(|id| resolution.trust_of(id) == Some(Trust::Trusted));
    met
}

/// The lines that a reader is shown. Rows also count what stands behind the last LF.
fn visible_lines(bytes: &[u8]) -> Vec<Value> {
    let text = String::from_utf8_lossy(bytes);
    let mut window = LineWindow::new(1, u64::MAX, u64::MAX);
    window.push(&text);
    let mut lines = window.finish().lines;
    if text.is_empty() || text.ends_with('\n') {
        lines.push((lines.len() as u64 + 1, String::new()));
    }
    lines.into_iter().map(|line| json!([line.0, line.1])).collect()
}

/// The events of all files: where a frame has the id of an older record, that one is left out.
fn index_events(files: &Files<'_>) -> Vec<Value> {
    let mut newer = NewerIds::among(files.keys().copied());
    read(files, |path, record| newer.see(path, record));
    let mut events = Vec::new();
    read(files, |path, record| match record {
        RecordRef::Frame(frame) => events.push(show_event(Event::new(path, frame, frame.record))),
        RecordRef::Legacy(legacy) if newer.supersedes(legacy) => {}
        RecordRef::Legacy(legacy) => events.extend(Event::of_legacy(path, legacy).map(show_event)),
    });
    events
}
