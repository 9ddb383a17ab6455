//! The vectors that describe names, frames and records, run against the crate itself.

use base64::Engine as _;
use recollex_core::digest::FileHasher;
use recollex_core::ids::{FlatRevision, Location, SourceId, SpeakerId, is_internal_path, label, path_order};
use recollex_core::source::{
    Batch, BatchError, Event, Existing, ExistingScan, FindingCode, Limits, Metadata, NewRecord, Outcome, ScanEnd,
    Scanner, Tier, Trust,
};
use recollex_core::text::{encode_speaker, identity_part, is_canonical_speaker};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Vectors whose outcome is not ours, and why. What is ours instead is checked in `deviations`.
const DEVIATIONS: &[(&str, &str)] = &[
    ("frames_parse/record_lines_'１'_of_1", "D01: a count is written in ASCII digits"),
    ("frames_write/bad_trust_after_good_partial", "D04: a batch is all or nothing"),
];

fn rows(file: &str) -> Vec<(String, Value, Value)> {
    let path = format!("{}/../../tests/vectors/{file}.jsonl", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(&path).expect(&path);
    text.lines()
        .map(|line| {
            let mut row: Value = serde_json::from_str(line).expect("a vector is JSON");
            let name = format!("{file}/{}", row["name"].as_str().expect("a name"));
            (name, row["input"].take(), row["expected"].take())
        })
        .collect()
}

fn bytes(value: &Value) -> Vec<u8> {
    match value {
        Value::String(text) => text.as_bytes().to_vec(),
        coded => {
            base64::engine::general_purpose::STANDARD.decode(coded["b64"].as_str().expect("base 64")).expect("base 64")
        }
    }
}

struct Failures(Vec<String>, usize);

impl Failures {
    fn check(&mut self, name: &str, what: &str, found: &Value, expected: &Value) {
        self.1 += 1;
        if found != expected {
            self.0.push(format!("{name} {what}\n  found    {found}\n  expected {expected}"));
        }
    }

    fn done(self, at_least: usize) {
        assert!(self.0.is_empty(), "{} failed:\n{}", self.0.len(), self.0.join("\n"));
        assert!(self.1 >= at_least, "only {} comparisons", self.1);
    }
}

fn deviates(name: &str) -> bool {
    DEVIATIONS.iter().any(|(deviation, _)| *deviation == name)
}

#[test]
fn deviations() {
    let by_name = |name: &str| rows(name.split('/').next().expect("a file")).into_iter().find(|row| row.0 == name);
    let (_, input, _) = by_name(DEVIATIONS[0].0).expect("the vector");
    let (found, end) = scan(input["path"].as_str().expect("a path"), &bytes(&input["bytes"]));
    assert!(found.frames.is_empty());
    let fault = end.fault.expect("a fault");
    assert_eq!((fault.code, fault.line), (FindingCode::BadRecordCount, 6));
    assert_eq!(fault.excerpt, "<!-- record-lines:１ -->");

    let (_, input, expected) = by_name(DEVIATIONS[1].0).expect("the vector");
    let mut files = BTreeMap::new();
    let records = input["calls"][0]["records"].as_array().expect("records").iter().map(new_record).collect();
    assert_eq!(archive(&mut files, records).expect_err("bad trust"), expected["calls"][0]["error"]["code"]);
    assert!(files.is_empty(), "not even the good record of the other file");
}

fn metadata_json(metadata: &Metadata) -> Value {
    json!({
        "version": 1, "trust_state": metadata.trust.as_str(), "speaker_kind": metadata.kind,
        "principal_id": metadata.principal, "authority_tier": metadata.tier.map(Tier::as_str),
    })
}

#[derive(Default)]
struct Found {
    frames: Vec<Value>,
    events: Vec<Value>,
    trusted: Vec<String>,
    visible: Vec<Value>,
}

fn scan(path: &str, bytes: &[u8]) -> (Found, ScanEnd) {
    let mut found = Found::default();
    let lossy = String::from_utf8_lossy(bytes).into_owned();
    let lines: Vec<&str> = lossy.split('\n').collect();
    let mut scanner = Scanner::new(Some(Location::of_path(path)), &Limits::default());
    let mut sink = |frame: &recollex_core::source::FrameRef<'_>| {
        let text = &bytes[frame.record_offset as usize..(frame.record_offset + frame.record_length) as usize];
        let event = Event::new(path, frame, std::str::from_utf8(text).expect("records are text"));
        found.frames.push(json!({
            "source_id": frame.id, "frame_start": frame.anchor_line - 1, "encoded_speaker_id": frame.speaker,
            "metadata": frame.metadata.map(metadata_json), "metadata_index": frame.meta_line.map(|line| line - 1),
            "record_index": frame.record_line - 1, "record_end": frame.end_line() - 1,
        }));
        let speaker = event.record.speaker.as_ref();
        found.events.push(json!({
            "event_id": event.record.id, "path": path, "line": event.record.line, "headings": [],
            "date": event.date.as_deref().unwrap_or(""), "dates": event.date.iter().collect::<Vec<_>>(),
            "content": event.content, "refs": [event.record.id],
            "speaker_id": speaker.map_or("", |speaker| &speaker.id),
            "speaker_display": speaker.map_or("", |speaker| &speaker.display),
            "speaker_label": speaker.map_or("", |speaker| &speaker.label),
            "speaker_trusted": speaker.is_some_and(|speaker| speaker.trusted),
            "trust_state": event.record.trust.as_str(), "speaker_kind": event.record.kind,
            "principal_id": event.record.principal, "authority_tier": event.record.tier.map(Tier::as_str),
            "visibility": null,
        }));
        if frame.trust() == Trust::Trusted {
            found.trusted.push(frame.id.to_owned());
        }
        for line in frame.anchor_line..=frame.end_line() {
            if frame.shows(line) {
                found.visible.push(json!([line, lines[line as usize - 1]]));
            }
        }
        assert_eq!(frame.record_lines, text.iter().filter(|byte| **byte == b'\n').count() as u64 + 1);
    };
    scanner.push_bytes(bytes, &mut sink);
    let end = scanner.finish(&mut sink);
    found.trusted.sort();
    (found, end)
}

#[test]
fn frames_parse() {
    let mut failures = Failures(Vec::new(), 0);
    for (name, input, expected) in rows("frames_parse").into_iter().filter(|row| !deviates(&row.0)) {
        let (found, end) = scan(input["path"].as_str().expect("a path"), &bytes(&input["bytes"]));
        assert_eq!(end.complete, end.fault.is_none());
        if expected["scan"].get("error").is_some() {
            // The other program gives such a file up; here it is a finding on the file (D06).
            let code = end.invalid_utf8.map(|fault| fault.code.as_str());
            failures.check(&name, "error", &json!({ "error": { "code": code } }), &expected["scan"]);
            continue;
        }
        let scan = json!({
            "complete": end.complete, "frames": found.frames, "valid_prefix_lines": end.valid_prefix_lines,
            "valid_prefix_bytes": end.valid_prefix_bytes,
        });
        failures.check(&name, "scan", &scan, &expected["scan"]);
        failures.check(&name, "events", &json!(found.events), &expected["events"]);
        failures.check(&name, "trusted", &json!(found.trusted), &expected["trusted_source_ids"]);
        if let Some(lines) = expected.get("visible_lines") {
            failures.check(&name, "visible lines", &json!(found.visible), lines);
        }
    }
    failures.done(1800);
}

fn new_record(value: &Value) -> NewRecord {
    let text = |key: &str| match &value[key] {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        other => Some(other.to_string()),
    };
    let must = |key: &str| text(key).expect(key);
    NewRecord {
        provider: must("provider"),
        thread: must("thread_id"),
        id: must("message_id"),
        ordinal: value["ordinal"].as_i64().expect("a number"),
        role: must("role"),
        text: must("content"),
        time: text("timestamp"),
        speaker_id: text("speaker_id"),
        speaker_display: text("speaker_display"),
        speaker_kind: text("speaker_kind"),
        principal: text("principal_id"),
        tier: text("authority_tier"),
        trust: must("trust_state"),
    }
}

/// Archives a batch into `files`, as a store would.
fn archive(files: &mut BTreeMap<String, Vec<u8>>, records: Vec<NewRecord>) -> Result<Vec<(String, Outcome)>, String> {
    let limits = Limits::default();
    let batch = Batch::check(records, &limits).map_err(|error| match error {
        BatchError::Refused(problems) => problems[0].reason.to_owned(),
        BatchError::Limit(limit) => limit.name.to_owned(),
    })?;
    let mut existing: BTreeMap<String, Existing> = BTreeMap::new();
    for path in batch.paths() {
        if let Some(bytes) = files.get(path) {
            let mut scan = ExistingScan::new(&batch, path, &limits);
            scan.push_bytes(bytes);
            existing.insert(path.to_owned(), scan.finish());
        }
    }
    let mut comparison = batch.compare(existing).map_err(|problems| problems[0].reason.to_owned())?;
    while let Some(range) = comparison.wanted().cloned() {
        let start = range.offset as usize;
        comparison.supply(&files[&range.path][start..start + (range.length as usize).min(7)]);
    }
    let plan = comparison.plan().expect("everything was supplied");
    for change in plan.changes {
        let file = files.entry(change.path).or_default();
        assert_eq!(file.len() as u64, change.from.bytes);
        file.extend_from_slice(change.text.as_bytes());
    }
    Ok(plan.records.into_iter().map(|kept| (kept.id.as_str().to_owned(), kept.outcome)).collect())
}

#[test]
fn frames_write() {
    let mut failures = Failures(Vec::new(), 0);
    for (name, input, expected) in rows("frames_write").into_iter().filter(|row| !deviates(&row.0)) {
        if input["calls"].as_array().expect("calls").iter().any(|call| call.get("sessions").is_some()) {
            // Conversation files are not written by this version.
            continue;
        }
        let existing = input["existing"].as_object().expect("files");
        let mut files: BTreeMap<String, Vec<u8>> =
            existing.iter().map(|(path, content)| (path.clone(), bytes(content))).collect();
        let calls = input["calls"].as_array().expect("calls").iter().zip(expected["calls"].as_array().expect("calls"));
        let mut decided_by_the_store = false;
        for (call, outcome) in calls {
            let error = outcome["error"]["code"].as_str();
            if matches!(error, Some("path-collision" | "not-a-directory")) {
                decided_by_the_store = true;
                break;
            }
            let records = call["records"].as_array().expect("records").iter().map(new_record).collect();
            match archive(&mut files, records) {
                Ok(kept) => {
                    let refs: Vec<&str> = kept.iter().map(|(id, _)| id.as_str()).collect();
                    failures.check(&name, "call", &json!({ "ok": true, "refs": refs }), outcome);
                }
                Err(reason) => failures.check(&name, "reason", &json!(reason), &json!(error)),
            }
        }
        if decided_by_the_store {
            continue;
        }
        let found: BTreeMap<&String, Value> = files
            .iter()
            .filter(|(path, _)| path.starts_with("sources/"))
            .map(|(path, bytes)| (path, text_or_coded(bytes)))
            .collect();
        failures.check(&name, "files", &json!(found), &expected["files"]);
        for (path, complete) in expected["rescan"].as_object().expect("files") {
            failures.check(&name, "rescan", &json!(scan(path, &files[path]).1.complete), complete);
        }
    }
    failures.done(270);
}

fn text_or_coded(bytes: &[u8]) -> Value {
    match std::str::from_utf8(bytes) {
        Ok(text) => json!(text),
        Err(_) => json!({ "b64": base64::engine::general_purpose::STANDARD.encode(bytes) }),
    }
}

#[test]
fn ids() {
    let mut failures = Failures(Vec::new(), 0);
    for (name, input, expected) in rows("ids") {
        let value = input["value"].as_str();
        let found = match input["kind"].as_str().expect("a kind") {
            "source_location" => {
                let text = input["source_id"].as_str().expect("an id");
                let id = SourceId::parse(text).ok();
                json!({
                    "legacy": id.as_ref().map(|id| (id.legacy_path(), id.anchor())),
                    "v2": id.as_ref().map(|id| (id.v2_path(), id.anchor())),
                    "valid_v2_source_id": SourceId::for_writing(text).is_ok(),
                })
            }
            "speaker_encode" => {
                let encoded = encode_speaker(value.expect("text"));
                let back = SpeakerId::from_marker(&encoded);
                json!({ "canonical_roundtrip": back.is_some_and(|id| id.marker() == encoded), "encoded": encoded })
            }
            "speaker_canonical" => json!(is_canonical_speaker(value.expect("text"))),
            "identity_part" => json!(identity_part(value.expect("text"))),
            "speaker_label" => {
                let part = |key: &str| input[key].as_str().unwrap_or_default();
                json!({ "label": label(part("display"), part("speaker_id"), part("role")), "source_id": "p/t/m" })
            }
            "source_meta" => source_meta(&input["value"]),
            "revision" => {
                let files: BTreeMap<String, Vec<u8>> = input["files"]
                    .as_object()
                    .expect("files")
                    .iter()
                    .map(|(path, file)| (path.clone(), bytes(file)))
                    .collect();
                json!({ "revision": flat_revision(&files), "visible_files": visible(&files) })
            }
            _ => continue,
        };
        let mut expected = expected;
        if let Some(fields) = expected.as_object_mut() {
            // Where the workspace's own id comes from is not core's matter.
            fields.remove("identity");
        }
        failures.check(&name, "", &found, &expected);
    }
    failures.done(70);
}

fn source_meta(value: &Value) -> Value {
    let mut record = NewRecord {
        provider: "p".into(),
        thread: "t".into(),
        id: "m".into(),
        role: "user".into(),
        trust: value["trust_state"].as_str().unwrap_or_default().into(),
        ..NewRecord::default()
    };
    record.speaker_kind = value["speaker_kind"].as_str().map(Into::into);
    record.principal = value["principal_id"].as_str().map(Into::into);
    record.tier = value["authority_tier"].as_str().map(Into::into);
    let mut files = BTreeMap::new();
    match archive(&mut files, vec![record]) {
        Err(reason) => json!({ "error": { "code": reason } }),
        Ok(_) => {
            let text = String::from_utf8(files.into_values().next().expect("a file")).expect("text");
            json!(text.lines().find(|line| line.starts_with("<!-- source-meta:")).expect("metadata"))
        }
    }
}

fn visible(files: &BTreeMap<String, Vec<u8>>) -> Vec<&String> {
    let mut paths: Vec<&String> = files.keys().filter(|path| !is_internal_path(path)).collect();
    paths.sort_by(|a, b| path_order(a, b));
    paths
}

fn flat_revision(files: &BTreeMap<String, Vec<u8>>) -> String {
    let counts = |path: &str| !is_internal_path(path) || path == ".scriptorium/runtime.json";
    let mut paths: Vec<&String> = files.keys().filter(|path| counts(path)).collect();
    paths.sort_by(|a, b| path_order(a, b));
    let mut revision = FlatRevision::new();
    for path in paths {
        revision.file(path);
        revision.push(&files[path]);
        let mut hasher = FileHasher::new();
        hasher.push(&files[path]);
        assert_eq!(hasher.offset(), files[path].len() as u64);
    }
    revision.finish()
}

/// Every fault has a code of its own; a few rows name theirs.
#[test]
fn fault_codes() {
    let codes: BTreeMap<String, FindingCode> = rows("frames_parse")
        .into_iter()
        .filter_map(|(name, input, _)| {
            let end = scan(input["path"].as_str().expect("a path"), &bytes(&input["bytes"])).1;
            Some((name, end.fault?.code))
        })
        .collect();
    for (row, code) in [
        ("marker_upper", FindingCode::MissingMarker),
        ("extra_final_blank", FindingCode::BadAnchor),
        ("anchor_single_quotes", FindingCode::BadAnchor),
        ("source_id_nbsp", FindingCode::BadSourceId),
        ("source_id_wrong_thread", FindingCode::WrongLocation),
        ("path_wrong_thread", FindingCode::WrongLocation),
        ("dup_source_id", FindingCode::DuplicateId),
        ("speaker_slash_raw", FindingCode::BadSpeaker),
        ("meta_speaker_padded", FindingCode::BadMetadata),
        ("record_lines_'0'_of_1", FindingCode::BadRecordCount),
        ("record_lines_'2'_of_1", FindingCode::MissingTerminator),
        ("record_no_colon", FindingCode::BadRecord),
        ("trunc_0200", FindingCode::TruncatedFrame),
        ("trunc_0397", FindingCode::InvalidUtf8),
    ] {
        if let Some(found) = codes.get(&format!("frames_parse/{row}")) {
            assert_eq!(*found, code, "{row}");
        }
    }
}
