//! Rows of `backfill.jsonl`: a workspace's evidence that no topic cites, in batches, and as a writer reads it.

use core::num::NonZeroU64;
use std::collections::BTreeMap;

use recollex_core::ids::TopicPath;
use recollex_core::source::{EntryKind, Event, Given, Limits, NewerIds, RecordRef, Verifier};
use recollex_core::table::{TopicNote, TopicTable};
use recollex_core::turns::Citations;
use recollex_core::turns::backfill::{Candidate, Candidates, next_batch, parts};
use recollex_core::views::{CORE_FILE, HandCore, hand_written_core};
use serde_json::{Map, Value, json};

use crate::archives::Archives;
use crate::{Input, Malformed, Observed, Outcome};

type Files = BTreeMap<String, Vec<u8>>;

/// Budgets in tokens that rows cut batches by.
const BUDGETS: [u64; 4] = [1, 20, 60, 16_000];

pub(crate) fn observe(input: &Input<'_>) -> Observed {
    let files = input.field("files")?;
    let files: Files = files
        .entries()?
        .map(|(path, content)| Ok((path.to_owned(), content.bytes()?)))
        .collect::<Result<_, Malformed>>()?;
    let archives = Archives::new(files.iter().map(|(path, bytes)| (path.as_str(), bytes.as_slice())));
    if input.maybe("op").is_some() {
        return Ok(prepare_core(&files, &archives));
    }
    if let Some(budget) = input.maybe("budget")
        && u64::try_from(budget.integer()?).ok().and_then(NonZeroU64::new).is_none()
    {
        return Ok(Outcome::Shown(json!({"error": {"code": "error"}})));
    }
    let mut topics = TopicTable::new(&Limits::default());
    for (path, bytes) in &files {
        if let (Ok(path), Ok(text)) = (TopicPath::parse(path), core::str::from_utf8(bytes)) {
            topics.apply(&TopicNote::read(&path, text, &archives));
        }
    }
    let citations = Citations::of(&topics);
    let mut candidates = Candidates::default();
    let mut texts: BTreeMap<(String, u64), String> = BTreeMap::new();
    for event in events(&files) {
        candidates.see(&event, &citations);
        texts.insert((event.record.path.clone(), event.record.line), event.content);
    }
    let candidates = candidates.finish();
    let text = |candidate: &Candidate| {
        texts.get(&(candidate.path.clone(), candidate.line)).map(String::as_str).unwrap_or_default()
    };
    let tokens: Vec<u64> = candidates.iter().map(|candidate| text(candidate).chars().count() as u64).collect();
    let batches: Map<String, Value> = BUDGETS
        .iter()
        .filter_map(|budget| {
            Some((budget.to_string(), batches(&candidates, &tokens, NonZeroU64::new(*budget)?).into()))
        })
        .collect();
    let sessions: Vec<Value> = parts(candidates.iter().map(|candidate| (candidate, text(candidate))))
        .into_iter()
        .map(|part| {
            let turns: Vec<Value> =
                part.turns.iter().map(|(candidate, text)| json!([candidate.speaker, text])).collect();
            let refs: Vec<&str> = part.turns.iter().map(|(candidate, _)| candidate.reference.as_str()).collect();
            json!({"observation_date": part.day, "turns": turns, "refs": refs})
        })
        .collect();
    let shown: Vec<Value> =
        candidates.iter().map(|candidate| json!([candidate.reference, candidate.path, candidate.line])).collect();
    Ok(Outcome::Shown(json!({"candidates": shown, "batches": batches, "sessions": sessions})))
}

fn batches(candidates: &[Candidate], tokens: &[u64], budget: NonZeroU64) -> Vec<Vec<String>> {
    let mut batches = Vec::new();
    let mut done = 0;
    while let Some(rest) = tokens.get(done..).filter(|rest| !rest.is_empty()) {
        let count = next_batch(rest.iter().copied(), budget);
        batches.push(candidates.iter().skip(done).take(count).map(|candidate| candidate.reference.clone()).collect());
        done += count;
    }
    batches
}

/// All evidence, but older records that also have a frame.
fn events(files: &Files) -> Vec<Event> {
    let mut newer = NewerIds::among(files.keys().map(String::as_str));
    read(files, |path, record| newer.see(path, record));
    let mut events = Vec::new();
    read(files, |path, record| match record {
        RecordRef::Frame(frame) => events.push(Event::new(path, frame, frame.record)),
        RecordRef::Legacy(legacy) if newer.supersedes(legacy) => {}
        RecordRef::Legacy(legacy) => events.extend(Event::of_legacy(path, legacy)),
    });
    events
}

fn read(files: &Files, mut see: impl FnMut(&str, RecordRef<'_>)) {
    let mut verifier = Verifier::new(Given::InWorkspace, &Limits::default()).keep_records(usize::MAX);
    for (path, bytes) in files.iter().filter(|(path, _)| path.starts_with("sources/")) {
        verifier.file(path, EntryKind::File);
        verifier.push_bytes(bytes, &mut see);
        verifier.end(&mut see);
    }
}

/// What becomes of a `core.md` that somebody wrote by hand.
fn prepare_core(files: &Files, archives: &Archives) -> Outcome {
    let core = files.get(CORE_FILE).map(Vec::as_slice).unwrap_or_default();
    match hand_written_core(core, None, &|_| false, archives, &|_| false, None) {
        HandCore::Leave => {
            Outcome::Shown(json!({"result": null, "changed": {}, "removed": [], "second_run_changes": {}}))
        }
        HandCore::Promote(_) | HandCore::Archive { .. } => {
            Outcome::not_here("rows of `derived` show what is made of it")
        }
    }
}
