//! Rows of `index_events.jsonl`: a workspace by name, and everything in it that is found by itself.

use std::collections::BTreeMap;

use recollex_core::ids::TopicPath;
use recollex_core::search::{Claim, Grounds};
use recollex_core::source::{
    EntryKind, Event, Given, LegacyRef, Limits, NewerIds, Record, RecordRef, Verifier, first_date,
};
use recollex_core::text::clean;
use recollex_core::topic::edit::Evidence as _;
use serde_json::{Value, json};

use crate::archives::Archives;
use crate::frames_parse::show_event;
use crate::{Input, Malformed, Observed, Outcome};

/// The workspaces that rows name.
const WORKSPACES: &str = include_str!("../../vectors/bm25_workspaces.json");

type Files = BTreeMap<String, Vec<u8>>;

pub(crate) fn observe(input: &Input<'_>) -> Observed {
    let all: Value =
        serde_json::from_str(WORKSPACES).map_err(|error| Malformed::new("bm25_workspaces.json", error.to_string()))?;
    let name = input.field("workspace")?.text()?;
    let mut files = Files::new();
    for (path, content) in Input::new(&all).field(name)?.entries()? {
        files.insert(path.to_owned(), content.bytes()?);
    }
    let mut events = records(&files);
    events.extend(claims(&files)?);
    Ok(Outcome::Shown(json!({ "events": events })))
}

fn records(files: &Files) -> Vec<Value> {
    let mut newer = NewerIds::among(files.keys().map(String::as_str));
    read(files, |path, record| newer.see(path, record));
    let mut events = Vec::new();
    read(files, |path, record| match record {
        RecordRef::Frame(frame) => events.push(show_event(Event::new(path, frame, frame.record))),
        RecordRef::Legacy(legacy) if !legacy.stands_alone() || newer.supersedes(legacy) => {}
        RecordRef::Legacy(legacy) => events.push(show_event(of_legacy(path, legacy))),
    });
    events
}

fn of_legacy(path: &str, legacy: &LegacyRef<'_>) -> Event {
    Event::of_legacy(path, legacy).unwrap_or_else(|| Event {
        record: Record::of_legacy(path, legacy),
        content: clean(legacy.text),
        date: first_date(legacy.text).map(str::to_owned),
        headings: legacy.headings.to_vec(),
        references: vec![legacy.id.to_owned()],
    })
}

fn read(files: &Files, mut see: impl FnMut(&str, RecordRef<'_>)) {
    let mut verifier = Verifier::new(Given::InWorkspace, &Limits::default()).keep_records(usize::MAX);
    for (path, bytes) in files {
        verifier.file(path, EntryKind::File);
        verifier.push_bytes(bytes, &mut see);
        verifier.end(&mut see);
    }
}

fn claims(files: &Files) -> Result<Vec<Value>, Malformed> {
    let archives = Archives::new(files.iter().map(|(path, bytes)| (path.as_str(), bytes.as_slice())));
    let mut events = Vec::new();
    for (path, bytes) in files {
        let Ok(topic) = TopicPath::parse(path) else { continue };
        let text = core::str::from_utf8(bytes).map_err(|error| Malformed::new(path.clone(), error.to_string()))?;
        let mut grounds: BTreeMap<String, Grounds> = Claim::grounds(&topic, text, &archives).into_iter().collect();
        for claim in Claim::all(&topic, text) {
            let Grounds { refs, complete } = grounds.remove(claim.id()).unwrap_or_default();
            let trusted = complete && refs.iter().all(|one| archives.look_up(one).is_some_and(|kept| kept.trusted));
            events.push(json!({
                "event_id": claim.id(),
                "path": path,
                "line": claim.event.line,
                "headings": claim.headings,
                "date": claim.event.times.first().map_or("", String::as_str),
                "dates": claim.event.times,
                "content": claim.event.content,
                "refs": refs.iter().map(ToString::to_string).collect::<Vec<_>>(),
                "speaker_id": "",
                "speaker_display": "",
                "speaker_label": "",
                "speaker_trusted": false,
                "trust_state": if trusted { "trusted" } else { "pending" },
                "speaker_kind": "unknown",
                "principal_id": "unknown",
                "authority_tier": null,
                "visibility": null,
            }));
        }
    }
    Ok(events)
}
