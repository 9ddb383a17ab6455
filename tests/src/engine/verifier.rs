//! The shipped component `verifier`, which imports nothing, through the host library.
//!
//! Its interface shows less than a row notes down: records without their text, completeness as findings. So a row's
//! expectation is first cut down to what can be shown, and the text of each record is looked up in the input by the
//! offsets that the verifier gives. Of topics it shows what is wrong with them, and how many blocks are sound; what blocks say,
//! where paragraphs end and what is searched is left to the engines `native` and `wasm`.

use std::collections::{BTreeMap, BTreeSet};

use recollex::archive_view::{Origin, Selection, Summary};
use recollex::types::{Finding, Severity, SourceRecord, Tier, Trust};
use recollex::{Archive, Runtime, RuntimeOptions};
use recollex_core::ids::{TopicPath, TurnRef, numbered_conversation};
use recollex_core::source::clean;
use recollex_core::topic::FaultCode;
use recollex_test_rows::{Input, Malformed, Outcome, is_archive_path};
use serde_json::{Map, Value, json};

use super::Engine;

/// Length of the pieces in which a file is handed over besides whole: short and odd, so that every kind of line and
/// character is cut somewhere.
const PIECE: usize = 7;

/// Runs reading rows through the verifier.
pub struct Verifier {
    runtime: Runtime,
}

/// What the verifier said of one file.
#[derive(Clone, Debug, PartialEq)]
struct Said {
    records: Vec<SourceRecord>,
    findings: Vec<Finding>,
    summary: Summary,
}

/// Why a row could not be run.
#[derive(Debug, thiserror::Error)]
enum RowError {
    #[error(transparent)]
    Row(#[from] Malformed),
    #[error("{} {error}", error.code())]
    Host { error: recollex::Error },
    #[error("handed over {how} it says something else: {said:?} instead of {whole:?}")]
    Pieces { how: &'static str, said: Box<Said>, whole: Box<Said> },
    #[error("{records} records of older archives are listed, and {said:?} are counted")]
    Counted { records: usize, said: Option<u64> },
    #[error("a record lies outside its file: {0:?}")]
    Outside(Box<SourceRecord>),
}

impl From<recollex::Error> for RowError {
    fn from(error: recollex::Error) -> Self {
        Self::Host { error }
    }
}

impl Verifier {
    /// Compiles the component.
    ///
    /// # Errors
    /// The host's.
    pub fn start() -> Result<Self, recollex::Error> {
        Ok(Self { runtime: Runtime::new(RuntimeOptions::default())? })
    }

    fn parse_frames(&self, input: &Input<'_>) -> Result<Outcome, RowError> {
        let path = input.field("path")?.text()?;
        let bytes = input.field("bytes")?.bytes()?;
        let whole = self.ask(|archive| archive.push_bytes(path, &bytes, true))?;
        let agree = |how, said: Said| {
            if said == whole {
                Ok(())
            } else {
                Err(RowError::Pieces { how, said: said.into(), whole: whole.clone().into() })
            }
        };
        agree(
            "in pieces",
            self.ask(|archive| {
                bytes.chunks(PIECE).try_for_each(|piece| archive.push_bytes(path, piece, false))?;
                archive.push_bytes(path, &[], true)
            })?,
        )?;
        if let Ok(text) = str::from_utf8(&bytes) {
            agree("as text", self.ask(|archive| archive.push_text(path, text, true))?)?;
        }
        show(&bytes, &whole)
    }

    /// Files of any form, handed over whole and in pieces: their records.
    fn read_legacy(&self, input: &Input<'_>) -> Result<Outcome, RowError> {
        let files = input.field("files")?;
        let files: BTreeMap<&str, Vec<u8>> =
            files.entries()?.map(|(path, content)| Ok((path, content.bytes()?))).collect::<Result<_, Malformed>>()?;
        let whole =
            self.ask(|archive| files.iter().try_for_each(|(path, bytes)| archive.push_bytes(path, bytes, true)))?;
        let pieces = self.ask(|archive| {
            files.iter().try_for_each(|(path, bytes)| {
                bytes.chunks(PIECE).try_for_each(|piece| archive.push_bytes(path, piece, false))?;
                archive.push_bytes(path, &[], true)
            })
        })?;
        if pieces != whole {
            return Err(RowError::Pieces { how: "in pieces", said: pieces.into(), whole: whole.into() });
        }
        let legacy = |record: &&SourceRecord| !is_archive_path(&record.path);
        let legacy_records = whole.records.iter().filter(legacy).count();
        if whole.summary.counts.legacy_records != Some(legacy_records as u64) {
            return Err(RowError::Counted { records: legacy_records, said: whole.summary.counts.legacy_records });
        }
        let shown = whole.records.iter().map(|record| {
            let mut shown = show_record(files.get(&*record.path).map(Vec::as_slice).unwrap_or_default(), record)?;
            if let Some(text) = shown["record"].as_str().map(clean) {
                shown["record"] = text.into();
            }
            Ok(shown)
        });
        Ok(Outcome::Shown(json!({"records": shown.collect::<Result<Vec<_>, RowError>>()?})))
    }

    /// A workspace, handed over in two orders and in pieces: what is wrong with its topics.
    fn check_topics(&self, input: &Input<'_>) -> Result<Outcome, RowError> {
        let files = input.field("files")?;
        let files: BTreeMap<&str, Vec<u8>> =
            files.entries()?.map(|(path, content)| Ok((path, content.bytes()?))).collect::<Result<_, Malformed>>()?;
        let whole = self.ask_of(Origin::Workspace, |archive| {
            files.iter().try_for_each(|(path, bytes)| archive.push_bytes(path, bytes, true))
        })?;
        // Topics before the archives that they cite.
        let reversed = self.ask_of(Origin::Workspace, |archive| {
            files.iter().rev().try_for_each(|(path, bytes)| {
                bytes.chunks(PIECE).try_for_each(|piece| archive.push_bytes(path, piece, false))?;
                archive.push_bytes(path, &[], true)
            })
        })?;
        let shown = show_topics(&whole);
        if show_topics(&reversed) != shown {
            return Err(RowError::Pieces { how: "the other way round", said: reversed.into(), whole: whole.into() });
        }
        Ok(Outcome::Shown(shown))
    }

    /// What the verifier says of what `push` hands over.
    fn ask(&self, push: impl FnOnce(&mut Archive) -> Result<(), recollex::Error>) -> Result<Said, recollex::Error> {
        self.ask_of(Origin::Named, push)
    }

    fn ask_of(
        &self,
        origin: Origin,
        push: impl FnOnce(&mut Archive) -> Result<(), recollex::Error>,
    ) -> Result<Said, recollex::Error> {
        let mut archive = Archive::open(&self.runtime, origin, std::iter::empty::<(&str, &str)>())?;
        push(&mut archive)?;
        archive.finish()?;
        let mut records = Vec::new();
        loop {
            let more = archive.records(Selection::All, records.len() as u64, 100)?;
            if more.is_empty() {
                break;
            }
            records.extend(more.into_iter().map(|listed| listed.record));
        }
        Ok(Said { records, findings: archive.take_findings(u32::MAX)?, summary: archive.summary()? })
    }
}

impl Engine for Verifier {
    fn shows_less(&self) -> bool {
        true
    }

    fn observe(&mut self, file: &str, input: &Value) -> Result<Outcome, String> {
        match file {
            "frames_parse" => self.parse_frames(&Input::new(input)).map_err(|error| error.to_string()),
            "legacy_parse" => self.read_legacy(&Input::new(input)).map_err(|error| error.to_string()),
            "topics_parse" => self.check_topics(&Input::new(input)).map_err(|error| error.to_string()),
            _ => Ok(Outcome::not_here("not about reading archives and topics")),
        }
    }

    fn view(&self, file: &str, input: &Value, expected: &Value) -> Value {
        match file {
            "frames_parse" => visible(input, expected).unwrap_or_else(|| expected.clone()),
            "legacy_parse" => visible_records(expected).unwrap_or_else(|| expected.clone()),
            "topics_parse" => visible_topics(expected).unwrap_or_else(|| expected.clone()),
            _ => expected.clone(),
        }
    }
}

/// What the verifier said, in the shape that [`visible`] cuts expectations down to.
fn show(bytes: &[u8], said: &Said) -> Result<Outcome, RowError> {
    let records = said.records.iter().map(|record| show_record(bytes, record)).collect::<Result<Vec<_>, _>>()?;
    let errors: Vec<&Finding> = said.findings.iter().filter(|finding| finding.severity == Severity::Error).collect();
    let mut shown = Map::new();
    shown.insert("complete".to_owned(), errors.is_empty().into());
    shown.insert("records".to_owned(), records.into());
    shown.insert("counted".to_owned(), json!({"files": said.summary.counts.source_files, "frames": said.summary.counts.frames, "bytes": said.summary.counts.bytes}));
    // The verifier may call an archive faulty only in words that also end its summary.
    shown.insert("ok".to_owned(), said.summary.ok.into());
    // A row about invalid UTF-8 is about that, whatever else the same byte spoils.
    let invalid = errors.iter().find(|finding| finding.code == "invalid-utf8");
    if let Some(fault) = invalid.or(errors.first()) {
        shown.insert("fault".to_owned(), json!({"code": fault.code, "line": fault.line}));
    }
    Ok(Outcome::Shown(shown.into()))
}

fn show_record(bytes: &[u8], record: &SourceRecord) -> Result<Value, RowError> {
    let start = usize::try_from(record.offset).ok();
    let end = record.offset.checked_add(record.length).and_then(|end| usize::try_from(end).ok());
    let text = start
        .zip(end)
        .and_then(|(start, end)| bytes.get(start..end))
        .and_then(|text| str::from_utf8(text).ok())
        .ok_or_else(|| RowError::Outside(Box::new(record.clone())))?;
    let speaker = record.speaker.as_ref().map(|speaker| {
        json!({"id": speaker.id, "display": speaker.display, "label": speaker.label, "trusted": speaker.trusted})
    });
    Ok(json!({
        "id": record.id,
        "path": record.path,
        "line": record.line,
        "record": text,
        "speaker": speaker,
        "trust": match record.trust { Trust::Trusted => "trusted", Trust::Pending => "pending" },
        "kind": record.kind,
        "principal": record.principal,
        "tier": record.tier.map(|tier| match tier { Tier::Owner => "owner", Tier::Paired => "paired" }),
    }))
}

/// What the verifier said of topics, in the shape that [`visible_topics`] cuts expectations down to.
fn show_topics(said: &Said) -> Value {
    let of_grammar = |finding: &&Finding| {
        finding.code == "invalid-utf8" || FaultCode::ALL.iter().any(|code| code.as_str() == finding.code)
    };
    let in_topic = |finding: &Finding| TopicPath::parse(finding.path.as_deref()?).ok();
    let found: Vec<(TopicPath, &Finding)> =
        said.findings.iter().filter(of_grammar).filter_map(|finding| Some((in_topic(finding)?, finding))).collect();
    // Findings are in the order of lines; who stops at the first fault meets those of definitions first, and definitions that
    // nothing cites last.
    let strict = found.iter().filter(|(_, finding)| finding.severity != Severity::Info);
    let first = strict.min_by_key(|(path, finding)| (path, rank(&finding.code), finding.line));
    let faults = found.iter().filter(|(_, finding)| finding.code != "invalid-utf8").map(|(path, finding)| {
        json!({"path": path.as_str(), "code": finding.code, "line": finding.line, "subject": finding.subject})
    });
    json!({
        "strict": first.map_or(json!("sound"), |(_, finding)| json!({"error": {"code": finding.code, "subject": finding.subject}})),
        "blocks": said.summary.counts.blocks,
        "faults": in_order(faults.collect()),
    })
}

/// When a reader of a topic meets a fault.
fn rank(code: &str) -> u8 {
    match code {
        "invalid-utf8"
        | "duplicate-footnote"
        | "invalid-time"
        | "missing-source-link"
        | "missing-source-label"
        | "unresolved-source" => 0,
        "unused-footnote" => 2,
        _ => 1,
    }
}

fn in_order(mut faults: Vec<Value>) -> Value {
    faults.sort_by_cached_key(Value::to_string);
    faults.into()
}

/// What of an expected outcome of `topics_parse` the verifier can show: the first fault of a strict reading, how many blocks are
/// sound, and every fault where the row has them.
fn visible_topics(expected: &Value) -> Option<Value> {
    let units = expected["lenient"]["units"].as_array()?;
    // The ids of a merged block share its place, those of an older one its text.
    let block = |unit: &Value| match unit["evidence"].as_array() {
        Some(evidence) if evidence.is_empty() => (unit["topic_path"].to_string(), unit["content"].to_string()),
        _ => (unit["topic_path"].to_string(), unit["created_order"].to_string()),
    };
    let blocks: BTreeSet<(String, String)> = units.iter().map(block).collect();
    let strict = expected["strict"].get("error").map_or(json!("sound"), |error| json!({"error": error}));
    let mut shown = json!({"strict": strict, "blocks": blocks.len()});
    if let Some(faults) = expected.get("faults") {
        let mut faults = faults.as_array()?.clone();
        for fault in &mut faults {
            fault.as_object_mut()?.remove("column");
        }
        shown["faults"] = in_order(faults);
    }
    Some(shown)
}

/// What of an expected outcome of `legacy_parse` the verifier can show: the records that the index has events of, the first
/// with each id. A turn of a numbered conversation has an event of its line, and is known by its reference.
fn visible_records(expected: &Value) -> Option<Value> {
    let mut ids = BTreeSet::new();
    let mut records = Vec::new();
    for event in expected.get("index_events")?.as_array()? {
        let path = event["path"].as_str()?;
        let own = event["refs"].as_array()?.last()?.as_str()?;
        let is_turn = TurnRef::parse(own).is_some_and(|id| numbered_conversation(path) == Some(id.conversation()));
        let id = if is_turn { own } else { event["event_id"].as_str()? };
        if id.starts_with("lex_") || !ids.insert(id) {
            continue;
        }
        let names = ["speaker_id", "speaker_display", "speaker_label"];
        let is_named = names.iter().any(|name| event[*name] != json!(""));
        records.push(json!({
            "id": id,
            "path": path,
            "line": event["line"],
            "record": event["content"],
            "speaker": is_named.then(|| json!({
                "id": event["speaker_id"],
                "display": event["speaker_display"],
                "label": event["speaker_label"],
                "trusted": event["speaker_trusted"],
            })),
            "trust": event["trust_state"],
            "kind": event["speaker_kind"],
            "principal": event["principal_id"],
            "tier": event["authority_tier"],
        }));
    }
    Some(json!({"records": records}))
}

/// What of an expected outcome of `frames_parse` the verifier can show; none if the row has another shape.
fn visible(input: &Value, expected: &Value) -> Option<Value> {
    let bytes = Input::new(input).field("bytes").ok()?.bytes().ok()?;
    let lines: Vec<&[u8]> = bytes.split(|byte| *byte == b'\n').collect();
    let scan = expected.get("scan")?;
    let frames = scan.get("frames")?.as_array()?;
    let events = expected.get("events")?.as_array()?;
    let mut records = Vec::new();
    for (frame, event) in frames.iter().zip(events) {
        let index = |name: &str| frame.get(name)?.as_u64().and_then(|index| usize::try_from(index).ok());
        let record = lines.get(index("record_index")?..index("record_end")?)?.join(&b'\n');
        let has_marker = frame.get("encoded_speaker_id")?.is_string();
        let speaker = has_marker.then(|| {
            json!({
                "id": event["speaker_id"],
                "display": event["speaker_display"],
                "label": event["speaker_label"],
                "trusted": event["speaker_trusted"],
            })
        });
        records.push(json!({
            "id": frame["source_id"],
            "path": event["path"],
            "line": event["line"],
            "record": str::from_utf8(&record).ok()?,
            "speaker": speaker,
            "trust": event["trust_state"],
            "kind": event["speaker_kind"],
            "principal": event["principal_id"],
            "tier": event["authority_tier"],
        }));
    }
    let complete = scan.get("complete")?;
    let mut shown = Map::new();
    shown.insert("complete".to_owned(), complete.clone());
    shown.insert("counted".to_owned(), json!({"files": 1, "frames": records.len(), "bytes": bytes.len()}));
    shown.insert("records".to_owned(), records.into());
    if *complete == json!(false) {
        shown.insert("ok".to_owned(), false.into());
    }
    if let Some(fault) = expected.get("fault") {
        shown.insert("fault".to_owned(), fault.clone());
    }
    Some(shown.into())
}
