//! Rows of `update.jsonl`: a workspace's files and a request, and what becomes of them.
//!
//! History is the host's: rows about git are not run here, unless git is merely not there.

use std::collections::{BTreeMap, BTreeSet};

use recollex_core::ids::{FlatRevision, TopicPath, is_internal_path, path_order};
use recollex_core::source::{self, Batch, ExistingScan, Tier};
use recollex_core::topic::edit::Snapshot;
use recollex_core::update::{
    Caller, DEFAULT_PROVIDER, Draft, Fault, Limits, Plan, Provenance, Rejection, Request, Workspace,
};
use serde_json::{Map, Value, json};

use crate::archives::Archives;
use crate::derived_files::after;
use crate::{Input, Malformed, Observed, Outcome};

const RUNTIME_FILE: &str = ".scriptorium/runtime.json";
/// How rows write the revision that the files have.
const CURRENT: &str = "<current>";

pub(crate) fn observe(input: &Input<'_>) -> Observed {
    if !matches!(input.field("git_commit")?.text()?, "off" | "auto") {
        return Ok(Outcome::not_here("whether a commit is recorded is the host's to decide"));
    }
    let files = input
        .field("files")?
        .entries()?
        .map(|(path, content)| Ok((path, content.text()?)))
        .collect::<Result<BTreeMap<_, _>, Malformed>>()?;
    let revision = flat_revision(&files);
    let request = request(input, &revision)?;
    let paired = input.field("append_only")?.value() == &Value::Bool(true);
    let caller = Caller {
        tier: Some(if paired { Tier::Paired } else { Tier::Owner }),
        provenance: given_provenance(&input.field("provenance")?)?,
        offered: None,
    };
    let shown = match update(&files, &request.to_string(), caller, &limits(input)?, &revision) {
        Ok(plan) => committed(&files, &plan),
        Err(Stop::Rejected(rejection)) => refused(&rejection),
        Err(Stop::Archive(problem)) => return Err(input.fault(problem)),
    };
    Ok(Outcome::Shown(shown))
}

/// The request of a row for files that have this revision.
///
/// # Errors
/// The row has none, or no base of it.
pub fn request(input: &Input<'_>, revision: &str) -> Result<Value, Malformed> {
    let mut request = input.field("request")?.value().clone();
    if let (Some(base), Some(fields)) = (input.field("base_revision")?.optional_text()?, request.as_object_mut()) {
        let base = if base == CURRENT { revision } else { base };
        fields.insert("base_revision".to_owned(), base.into());
    }
    Ok(request)
}

/// Why nothing comes of a request.
enum Stop {
    Rejected(Rejection),
    /// A row's archive is not as rows' archives are.
    Archive(String),
}

fn update(
    files: &BTreeMap<&str, &str>,
    request: &str,
    caller: Caller,
    limits: &Limits,
    revision: &str,
) -> Result<Plan, Stop> {
    let rejected = |faults| Stop::Rejected(Rejection::Refused(faults));
    let request = Request::from_json(request, limits).map_err(rejected)?;
    let draft = Draft::new(request, caller, DEFAULT_PROVIDER, &source::Limits::default()).map_err(Stop::Rejected)?;
    draft.check_revision(&[revision]).map_err(Stop::Rejected)?;
    let archive = archive(draft.batch(), files).map_err(Stop::Archive)?;
    let topics = files.iter().filter_map(|(path, text)| Some((TopicPath::parse(path).ok()?, *text)));
    let archives = Archives::new(files.iter().map(|(path, text)| (*path, text.as_bytes())));
    let committed = Snapshot::new(topics);
    let workspace = Workspace { revisions: &[revision], committed: &committed, evidence: &archives };
    draft.plan(workspace, archive).map_err(Stop::Rejected)
}

/// Holds quoted sources against the archives of the row.
fn archive(batch: &Batch, files: &BTreeMap<&str, &str>) -> Result<source::Plan, String> {
    let look = |path: &str| {
        let mut scan = ExistingScan::new(batch, path, &source::Limits::default());
        scan.push_text(files.get(path)?);
        Some((path.to_owned(), scan.finish()))
    };
    let existing = batch.paths().into_iter().filter_map(look).collect();
    let mut comparison = batch.compare(existing).map_err(|problems| format!("{problems:?}"))?;
    while let Some(range) = comparison.wanted().cloned() {
        let text = files.get(range.path.as_str()).copied().unwrap_or_default().as_bytes();
        let from = usize::try_from(range.offset).map_err(|error| error.to_string())?;
        let piece = text.get(from..).and_then(|rest| rest.get(..usize::try_from(range.length).ok()?));
        comparison.supply(piece.ok_or("reads behind the end")?);
    }
    comparison.plan().map_err(|range| format!("still wants {range:?}"))
}

fn limits(input: &Input<'_>) -> Result<Limits, Malformed> {
    let mut limits = Limits::default();
    if let Some(given) = input.maybe("limits") {
        for (name, value) in given.entries()? {
            let number = u64::try_from(value.integer()?).map_err(|error| value.fault(error.to_string()))?;
            match name {
                "max_source_bytes" => limits.source_bytes = number,
                "max_patch_bytes" => limits.change_bytes = number,
                _ => return Err(value.fault("no limit of that name")),
            }
        }
    }
    Ok(limits)
}

/// On whose authority a row's request quotes sources.
///
/// # Errors
/// A field is missing or no text.
pub fn given_provenance(given: &Input<'_>) -> Result<Option<Provenance>, Malformed> {
    if given.value().is_null() {
        return Ok(None);
    }
    let text = |name: &str| Ok::<_, Malformed>(given.field(name)?.text()?.to_owned());
    Ok(Some(Provenance {
        principal_id: text("principal_id")?,
        speaker_kind: text("speaker_kind")?,
        speaker_id: text("speaker_id")?,
        speaker_display: text("speaker_display")?,
        authority_tier: text("authority_tier")?,
        origin_id: text("origin_id")?,
    }))
}

/// The other program's name for a state of files.
#[must_use]
pub fn flat_revision<P: AsRef<str>, T: AsRef<str>>(files: &BTreeMap<P, T>) -> String {
    let mut sorted: Vec<(&str, &str)> = files.iter().map(|(path, text)| (path.as_ref(), text.as_ref())).collect();
    sorted.sort_by(|(a, _), (b, _)| path_order(a, b));
    let mut flat = FlatRevision::new();
    for (path, text) in sorted.into_iter().filter(|(path, _)| !is_internal_path(path) || *path == RUNTIME_FILE) {
        flat.file(path);
        flat.push(text.as_bytes());
    }
    flat.finish()
}

fn committed(files: &BTreeMap<&str, &str>, plan: &Plan) -> Value {
    let mut before: BTreeMap<&str, String> = files.iter().map(|(path, text)| (*path, (*text).to_owned())).collect();
    for change in &plan.archive().changes {
        before.entry(&change.path).or_default().push_str(&change.text);
    }
    let after = after(&before, plan.topics());
    let changed: BTreeMap<&String, &String> =
        after.iter().filter(|(path, text)| files.get(path.as_str()) != Some(&text.as_str())).collect();
    let removed: BTreeSet<&str> = files.keys().copied().filter(|path| !after.contains_key(*path)).collect();
    let visible: BTreeSet<&str> = changed
        .keys()
        .map(|path| path.as_str())
        .filter(|path| !is_internal_path(path))
        .chain(removed.iter().copied())
        .chain(plan.given().iter().map(TopicPath::as_str))
        .collect();
    let sources = plan.source_ids().iter().map(|(label, id)| (label.clone(), json!(id.as_str())));
    let blocks = plan.block_ids().iter().map(|block| (format!("{}#{}", block.topic, block.number), json!(block.id)));
    let footnotes = plan.evidence_ids().iter().map(|one| (one.local.clone(), json!(one.label)));
    json!({
        "ok": true,
        "revision": flat_revision(&after),
        "source_ids": sources.collect::<Map<_, _>>(),
        "block_ids": blocks.collect::<Map<_, _>>(),
        "evidence_ids": footnotes.collect::<Map<_, _>>(),
        "changed_files": visible,
        "memory_committed": true,
        "git_committed": false,
        "files": changed,
        "removed": removed,
    })
}

fn refused(rejection: &Rejection) -> Value {
    let mut error = Map::new();
    error.insert("code".to_owned(), rejection.code().as_str().into());
    if let Some(first) = rejection.faults().first() {
        error.insert("reason".to_owned(), first.why.as_str().into());
        error.insert("subject".to_owned(), first.subject.clone().into());
        if let Some((expected, found)) = &first.expected {
            error.insert("details".to_owned(), json!({"line": first.line, "expected": expected, "found": found}));
        }
    }
    let fault = |fault: &Fault| {
        json!({
            "code": fault.why.code().as_str(),
            "reason": fault.why.as_str(),
            "path": fault.path,
            "line": fault.line,
            "column": fault.column,
            "field": fault.field,
            "subject": fault.subject,
        })
    };
    let faults: Vec<Value> = rejection.faults().iter().map(fault).collect();
    json!({"ok": false, "error": error, "unchanged": true, "faults": faults})
}
