//! Rows of `frames_write.jsonl` that archive records: files, calls one after the other, what each call answers and what
//! the files are afterwards.
//!
//! The files are in memory here. What a medium decides (whether two names are one, whether a file stands where a
//! directory is needed, modes) is not core's and not run here; the engine `component` runs those rows.

use std::collections::BTreeMap;

use recollex_core::ids::{Location, is_v2_path};
use recollex_core::source::{Batch, BatchError, ExistingScan, Limits, NewRecord, Plan, Problem, Scanner};
use serde_json::{Map, Value, json};

use crate::input::bytes_value;
use crate::{Input, Malformed, Observed, Outcome};

type Files = BTreeMap<String, Vec<u8>>;

pub(crate) fn observe(input: &Input<'_>) -> Observed {
    let mut files = Files::new();
    for (path, content) in input.field("existing")?.entries()? {
        files.insert(path.to_owned(), content.bytes()?);
    }
    let mut shown = Vec::new();
    for call in input.field("calls")?.elements()? {
        let Some(records) = call.maybe("records") else {
            return Ok(Outcome::not_here("sessions of D-files come with a later step"));
        };
        let records = records.elements()?.map(|record| new_record(&record)).collect::<Result<Vec<_>, _>>()?;
        let before = files.clone();
        shown.push(match archive(records, &mut files) {
            Archived::Done(ids) => json!({"ok": true, "refs": ids}),
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
    Refused {
        code: String,
        subject: Option<String>,
    },
    ForTheHost,
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
        let content = files.get(&range.path).map(Vec::as_slice).unwrap_or_default();
        let start = usize::try_from(range.offset).unwrap_or(usize::MAX);
        let rest = content.get(start..).unwrap_or_default();
        // Shorter than asked for, so that it has to ask again; never nothing, or it would ask forever.
        let half = usize::try_from(range.length / 2).unwrap_or(usize::MAX).max(1);
        match rest.get(..half) {
            Some(piece) => comparison.supply(piece),
            None => return Archived::Refused { code: "reads behind the end".to_owned(), subject: Some(range.path) },
        }
    }
    let Ok(plan) = comparison.plan() else {
        return Archived::Refused { code: "still wants something".to_owned(), subject: None };
    };
    apply(plan, files)
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
