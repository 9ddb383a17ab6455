//! Rows of `frames_write.jsonl` that archive records or sessions of numbered conversations: files, calls one after the
//! other, what each call answers and what the files are afterwards.
//!
//! The files are in memory here. What a medium decides (whether two names are one, whether a file stands where a
//! directory is needed, modes) is not core's and not run here; the engine `component` runs those rows.

use std::collections::BTreeMap;

use recollex_core::ids::{Location, is_v2_path};
use recollex_core::source::{
    Batch, BatchError, ExistingScan, Limits, NewNumbered, NewRecord, NumberedBatch, NumberedScan, Plan, Problem,
    RecordRange, Scanner,
};
use serde_json::{Map, Value, json};

use crate::input::bytes_value;
use crate::{Input, Malformed, Observed, Outcome};

pub(crate) type Files = BTreeMap<String, Vec<u8>>;

pub(crate) fn observe(input: &Input<'_>) -> Observed {
    let mut files = Files::new();
    for (path, content) in input.field("existing")?.entries()? {
        files.insert(path.to_owned(), content.bytes()?);
    }
    let mut shown = Vec::new();
    for call in input.field("calls")?.elements()? {
        let before = files.clone();
        let archived = match call.maybe("records") {
            Some(records) => {
                let records = records.elements()?.map(|record| new_record(&record)).collect::<Result<Vec<_>, _>>()?;
                archive(records, &mut files)
            }
            None => archive_numbered(numbered_turns(&call)?, &mut files),
        };
        shown.push(match archived {
            Archived::Done(ids) => json!({"ok": true, "refs": ids}),
            Archived::Numbered => json!({"ok": true}),
            Archived::Refused { code, subject } => {
                json!({"ok": false, "error": {"code": code, "subject": subject}, "unchanged": files == before})
            }
            Archived::ForTheHost => {
                return Ok(Outcome::not_here("whether two paths are one is the host's to decide"));
            }
        });
    }
    let kept: Map<String, Value> = files
        .iter()
        .filter(|(path, _)| path.starts_with("sources/"))
        .map(|(path, content)| (path.clone(), bytes_value(content)))
        .collect();
    Ok(Outcome::Shown(json!({"calls": shown, "files": kept, "rescan": rescan(&files)})))
}

/// What a call came to.
enum Archived {
    /// Ids in the order of the answer.
    Done(Vec<String>),
    /// Rows say nothing of what became of sessions.
    Numbered,
    Refused {
        code: String,
        subject: Option<String>,
    },
    ForTheHost,
}

/// Archives records among files in memory. Whether they were taken.
pub(crate) fn is_archived(records: Vec<NewRecord>, files: &mut Files) -> bool {
    matches!(archive(records, files), Archived::Done(_))
}

fn archive(records: Vec<NewRecord>, files: &mut Files) -> Archived {
    let limits = Limits::default();
    let batch = match Batch::check(records, &limits) {
        Ok(batch) => batch,
        Err(BatchError::Refused(problems)) => return refused(&problems),
        Err(BatchError::Limit(limit)) => {
            return Archived::Refused { code: limit.name.to_owned(), subject: limit.subject };
        }
    };
    if batch.paths().iter().any(|path| is_for_the_host(path, files)) {
        return Archived::ForTheHost;
    }
    let existing = batch
        .paths()
        .into_iter()
        .filter_map(|path| {
            let mut scan = ExistingScan::new(&batch, path, &limits);
            scan.push_bytes(files.get(path)?);
            Some((path.to_owned(), scan.finish()))
        })
        .collect();
    let mut comparison = match batch.compare(existing) {
        Ok(comparison) => comparison,
        Err(problems) => return refused(&problems),
    };
    while let Some(range) = comparison.wanted().cloned() {
        match piece_of(files, &range) {
            Some(piece) => comparison.supply(piece),
            None => return Archived::Refused { code: "reads behind the end".to_owned(), subject: Some(range.path) },
        }
    }
    let Ok(plan) = comparison.plan() else {
        return Archived::Refused { code: "still wants something".to_owned(), subject: None };
    };
    apply(plan, files)
}

fn archive_numbered(turns: Vec<NewNumbered>, files: &mut Files) -> Archived {
    let limits = Limits::default();
    let batch = match NumberedBatch::check(turns, &limits) {
        Ok(batch) => batch,
        Err(BatchError::Refused(problems)) => return refused(&problems),
        Err(BatchError::Limit(limit)) => {
            return Archived::Refused { code: limit.name.to_owned(), subject: limit.subject };
        }
    };
    let look = |path: &str| {
        let mut scan = NumberedScan::new(&batch, path, &limits);
        scan.push_bytes(files.get(path)?);
        Some((path.to_owned(), scan.finish()))
    };
    let mut comparison = match batch.compare(batch.paths().into_iter().filter_map(look).collect()) {
        Ok(comparison) => comparison,
        Err(problems) => return refused(&problems),
    };
    while let Some(range) = comparison.wanted().cloned() {
        match piece_of(files, &range) {
            Some(piece) => comparison.supply(piece),
            None => return Archived::Refused { code: "reads behind the end".to_owned(), subject: Some(range.path) },
        }
    }
    let Ok(plan) = comparison.plan() else {
        return Archived::Refused { code: "still wants something".to_owned(), subject: None };
    };
    for change in plan.changes {
        let content = files.entry(change.path.clone()).or_default();
        if content.len() as u64 != change.length {
            return Archived::Refused { code: "appends at a wrong length".to_owned(), subject: Some(change.path) };
        }
        content.extend_from_slice(change.text.as_bytes());
    }
    Archived::Numbered
}

/// A part of what was asked for, so that it has to be asked for again; never nothing.
fn piece_of<'f>(files: &'f Files, range: &RecordRange) -> Option<&'f [u8]> {
    let content = files.get(&range.path).map(Vec::as_slice).unwrap_or_default();
    let rest = content.get(usize::try_from(range.offset).ok()?..)?;
    rest.get(..usize::try_from(range.length / 2).ok()?.max(1))
}

fn apply(plan: Plan, files: &mut Files) -> Archived {
    for change in plan.changes {
        let content = files.entry(change.path.clone()).or_default();
        if content.len() as u64 != change.from.bytes {
            return Archived::Refused { code: "appends at a wrong length".to_owned(), subject: Some(change.path) };
        }
        content.extend_from_slice(change.text.as_bytes());
    }
    Archived::Done(plan.records.into_iter().map(|record| record.id.as_str().to_owned()).collect())
}

fn refused(problems: &[Problem]) -> Archived {
    let first = problems.first();
    Archived::Refused {
        code: first.map_or("refused without a reason", |problem| problem.reason).to_owned(),
        subject: first.and_then(|problem| problem.path.clone().or_else(|| problem.subject.clone())),
    }
}

/// Whether a medium might take the path, or one of the directories above it, for something else that is there: the rows
/// have such names in ASCII only.
fn is_for_the_host(path: &str, files: &Files) -> bool {
    let prefixes = |path: &str| -> Vec<String> {
        path.match_indices('/').map(|(at, _)| path[..at].to_owned()).chain([path.to_owned()]).collect()
    };
    let ours = prefixes(path);
    files.keys().any(|other| {
        let is_directory_of_ours = *other != path && ours.contains(other);
        is_directory_of_ours
            || prefixes(other)
                .iter()
                .any(|theirs| ours.iter().any(|ours| ours != theirs && ours.eq_ignore_ascii_case(theirs)))
    })
}

/// Which archives are whole; those that are no text are left out, as rows do.
fn rescan(files: &Files) -> Map<String, Value> {
    files
        .iter()
        .filter(|(path, content)| is_archive_path(path) && core::str::from_utf8(content).is_ok())
        .map(|(path, content)| {
            let mut scanner = Scanner::new(Some(Location::of_path(path)), &Limits::default());
            scanner.push_bytes(content, &mut |_| {});
            (path.clone(), scanner.finish(&mut |_| {}).complete.into())
        })
        .collect()
}

/// Whether rows scan a file at this path again.
#[must_use]
pub fn is_archive_path(path: &str) -> bool {
    path.starts_with("sources/") && is_v2_path(path)
}

/// A record's time as text: rows have a number in one place, and a runtime would hand it over as its digits.
///
/// # Errors
/// It is neither text nor a number.
pub fn timestamp(time: &Input<'_>) -> Result<Option<String>, Malformed> {
    match time.value() {
        Value::Number(number) => Ok(Some(number.to_string())),
        _ => Ok(time.optional_text()?.map(str::to_owned)),
    }
}

/// The turns of a call that archives sessions: of each, a date for all of its turns, and a reference for each.
///
/// # Errors
/// It has not that shape.
pub fn numbered_turns(call: &Input<'_>) -> Result<Vec<NewNumbered>, Malformed> {
    let mut all = Vec::new();
    for session in call.field("sessions")?.elements()? {
        let date = session.field("observation_date")?.text()?;
        for (turn, reference) in session.field("turns")?.elements()?.zip(session.field("refs")?.elements()?) {
            let parts = turn.elements()?.map(|part| part.text()).collect::<Result<Vec<_>, _>>()?;
            let [label, text] = parts[..] else { return Err(turn.fault("neither label nor text")) };
            all.push(NewNumbered {
                reference: reference.text()?.to_owned(),
                date: date.to_owned(),
                label: label.to_owned(),
                text: text.to_owned(),
            });
        }
    }
    Ok(all)
}

fn new_record(record: &Input<'_>) -> Result<NewRecord, Malformed> {
    let optional = |name: &str| Ok::<_, Malformed>(record.field(name)?.optional_text()?.map(str::to_owned));
    let text = |name: &str| Ok::<_, Malformed>(record.field(name)?.text()?.to_owned());
    Ok(NewRecord {
        provider: text("provider")?,
        thread: text("thread_id")?,
        id: text("message_id")?,
        ordinal: record.field("ordinal")?.integer()?,
        role: text("role")?,
        text: text("content")?,
        time: timestamp(&record.field("timestamp")?)?,
        speaker_id: optional("speaker_id")?,
        speaker_display: optional("speaker_display")?,
        speaker_kind: optional("speaker_kind")?,
        principal: optional("principal_id")?,
        tier: optional("authority_tier")?,
        trust: text("trust_state")?,
        ..NewRecord::default()
    })
}
