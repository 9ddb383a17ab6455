//! Rows of `ids.jsonl` that are about sources: locations, speakers, labels, metadata, those that an update quotes; about
//! workspaces: their id and the flat revision; about ids that are given; and about times.
//!
//! One row is one value; its `kind` says which rule it is about.

use std::collections::BTreeMap;

use recollex_core::ids::{
    Day, EvidenceTime, FlatRevision, SourceId, Span, SpeakerId, is_internal_path, label, lexical_id, path_order,
};
use recollex_core::session::WorkspaceId;
use recollex_core::source::{Batch, BatchError, Limits, NewRecord};
use recollex_core::text::identity_part;
use recollex_core::topic::edit::Mint;
use recollex_core::trust::Authority;
use recollex_core::update::{
    Caller, DEFAULT_PROVIDER, Draft, Limits as UpdateLimits, Proposal, ProposedEdit, Provenance, QuotedSource, Request,
    quoted_records,
};
use serde_json::{Value, json};

use crate::update::given_provenance;
use crate::{Input, Malformed, Observed, Outcome};

/// The runtime directory's file that counts in a revision.
const RUNTIME_FILE: &str = ".scriptorium/runtime.json";

pub(crate) fn observe(input: &Input<'_>) -> Observed {
    let shown = match input.field("kind")?.text()? {
        "source_location" => source_location(input.field("source_id")?.text()?),
        "speaker_encode" => speaker_encode(input.field("value")?.text()?),
        "speaker_canonical" => SpeakerId::from_marker(input.field("value")?.text()?).is_some().into(),
        "identity_part" => identity_part(input.field("value")?.text()?).into(),
        "speaker_label" => speaker_label(input)?,
        "source_meta" => source_meta(&input.field("value")?)?,
        "revision" => revision(input)?,
        "stable_local_id" => stable_id(input)?,
        "provenance" => provenance(input)?,
        "update_source_id" => quoted_sources(input)?,
        "temporal" => temporal(input.field("value")?.text()?),
        "lexical_event_id" => lexical_event_id(input)?,
        "workspace_id" => workspace_id(input.field("file")?.optional_text()?),
        _ => return Ok(Outcome::not_here("no rule about sources, workspaces or times, or not yet")),
    };
    Ok(Outcome::Shown(shown))
}

fn source_location(text: &str) -> Value {
    let id = SourceId::parse(text).ok();
    json!({
        "legacy": id.as_ref().map(|id| [id.legacy_path(), id.anchor()]),
        "v2": id.as_ref().map(|id| [id.v2_path(), id.anchor()]),
        "valid_v2_source_id": SourceId::for_writing(text).is_ok(),
    })
}

fn lexical_event_id(input: &Input<'_>) -> Result<Value, Malformed> {
    let line = input.field("line")?;
    let number = u64::try_from(line.integer()?).map_err(|error| line.fault(error.to_string()))?;
    let references = input.field("refs")?.elements()?.map(|item| item.text()).collect::<Result<Vec<_>, _>>()?;
    Ok(lexical_id(input.field("path")?.text()?, number, input.field("content")?.text()?, &references).into())
}

fn speaker_encode(raw: &str) -> Value {
    let marker = SpeakerId::new(raw).marker();
    let back = SpeakerId::from_marker(&marker);
    json!({"canonical_roundtrip": back.is_some_and(|id| id.as_str() == raw), "encoded": marker})
}

fn speaker_label(input: &Input<'_>) -> Result<Value, Malformed> {
    let part = |name| Ok::<_, Malformed>(input.field(name)?.optional_text()?.unwrap_or_default());
    let label = label(part("display")?, part("speaker_id")?, part("role")?);
    // The row's id is that of the record it was observed on, which the label has no part in.
    Ok(json!({"label": label, "source_id": "p/t/m"}))
}

/// The metadata line of a record with these fields, as it is written.
fn source_meta(value: &Input<'_>) -> Result<Value, Malformed> {
    let field = |name| match value.maybe(name) {
        Some(field) => Ok::<_, Malformed>(field.optional_text()?.map(str::to_owned)),
        None => Ok(None),
    };
    let record = NewRecord {
        provider: "p".to_owned(),
        thread: "t".to_owned(),
        id: "m".to_owned(),
        role: "user".to_owned(),
        trust: field("trust_state")?.unwrap_or_default(),
        speaker_kind: field("speaker_kind")?,
        principal: field("principal_id")?,
        tier: field("authority_tier")?,
        ..NewRecord::default()
    };
    let batch = match Batch::check(vec![record], &Limits::default()) {
        Ok(batch) => batch,
        Err(BatchError::Refused(problems)) => {
            return Ok(json!({"error": {"code": problems.first().map(|problem| problem.reason)}}));
        }
        Err(BatchError::Limit(limit)) => return Ok(json!({"error": {"code": limit.name}})),
    };
    let plan = batch.compare(BTreeMap::new()).ok().and_then(|comparison| comparison.plan().ok());
    let text = plan.and_then(|plan| plan.changes.into_iter().next()).map(|change| change.text).unwrap_or_default();
    Ok(text.lines().find(|line| line.starts_with("<!-- source-meta:")).into())
}

fn revision(input: &Input<'_>) -> Result<Value, Malformed> {
    let mut files = input
        .field("files")?
        .entries()?
        .map(|(path, content)| Ok((path, content.bytes()?)))
        .collect::<Result<Vec<_>, Malformed>>()?;
    files.sort_by(|(a, _), (b, _)| path_order(a, b));
    let mut flat = FlatRevision::new();
    for (path, content) in files.iter().filter(|(path, _)| !is_internal_path(path) || *path == RUNTIME_FILE) {
        flat.file(path);
        flat.push(content);
    }
    let identity = files.iter().find(|(path, _)| path.strip_prefix(".scriptorium/") == Some(WorkspaceId::PATH));
    let identity = identity.and_then(|(_, content)| WorkspaceId::parse(core::str::from_utf8(content).ok()?));
    let visible: Vec<&str> = files.iter().map(|(path, _)| *path).filter(|path| !is_internal_path(path)).collect();
    Ok(json!({
        "revision": flat.finish(),
        "visible_files": visible,
        "identity": identity.map_or_else(|| "workspace".to_owned(), |id| id.to_string()),
    }))
}

/// What becomes of a `workspace-id` file: rows write a new id as its pattern.
fn workspace_id(file: Option<&str>) -> Value {
    let kept = file.and_then(WorkspaceId::parse);
    let now = kept.unwrap_or_else(|| WorkspaceId::new([0x0a, 0x1b, 0x2c, 0x3d]));
    let value = match kept {
        Some(id) => id.to_string(),
        None => "<fresh w-[0-9a-f]{8}>".to_owned(),
    };
    json!({
        "kept": kept.is_some(),
        "value": value,
        "file_after_matches": WorkspaceId::parse(&now.file()) == Some(now),
    })
}

/// Whether a topic may carry the time, and the days a search for it covers: the first, and the one behind the last.
fn temporal(value: &str) -> Value {
    let bounds = match Span::parse(value.trim()) {
        Some(span) => json!([show_day(span.first()), day_behind(span.last())]),
        None => json!({"error": {"code": "error"}}),
    };
    json!({"valid": EvidenceTime::parse(value).is_some(), "bounds": bounds})
}

fn show_day(day: Day) -> String {
    EvidenceTime::Day(day).to_string()
}

fn day_behind(day: Day) -> String {
    let (year, month) = (day.year(), day.month());
    let next = Day::new(year, month, day.day() + 1)
        .or_else(|| Day::new(year, month + 1, 1))
        .or_else(|| Day::new(year + 1, 1, 1));
    // Behind the calendar's last day is none.
    next.map_or_else(|| format!("{}-01-01", year + 1), show_day)
}

/// What a seed gives, and what it gives once that is used.
fn stable_id(input: &Input<'_>) -> Result<Value, Malformed> {
    /// Digits of a block's id.
    const DIGITS: usize = 8;
    let (seed, prefix) = (input.field("seed")?.text()?, input.field("prefix")?.text()?);
    let used = input.field("used")?.elements()?.map(|id| id.text()).collect::<Result<Vec<_>, Malformed>>()?;
    let mint = |more: &[&str]| Mint::default().id(seed, prefix, DIGITS, |id| used.contains(&id) || more.contains(&id));
    let first = mint(&[]);
    Ok(json!({"first": first, "second_when_first_used": mint(&[&first])}))
}

/// What of an authority goes with sources that are quoted on it.
fn provenance(input: &Input<'_>) -> Result<Value, Malformed> {
    let authority = Authority::read(input.field("authority")?.value());
    let Some(found) = Provenance::new(authority, input.field("origin_id")?.text()?) else {
        return Ok(json!({"error": {"code": refusal_without_authority(input)?}}));
    };
    Ok(json!({
        "principal_id": found.principal_id,
        "speaker_kind": found.speaker_kind,
        "speaker_id": found.speaker_id,
        "authority_tier": found.authority_tier,
        "origin_id": found.origin_id,
        "speaker_display": found.speaker_display,
    }))
}

/// A request that quotes something and changes nothing that matters.
fn quoting(input: &Input<'_>, sources: Vec<QuotedSource>) -> Result<Request, Malformed> {
    let proposal = Proposal {
        base_revision: "r".to_owned(),
        edit: ProposedEdit::Changes(vec![("topics/a.md".to_owned(), None)]),
        sources,
        commit_message: None,
        removed_blocks: Vec::new(),
    };
    Request::new(proposal, &UpdateLimits::default()).map_err(|faults| input.fault(format!("{faults:?}")))
}

/// The code with which sources are refused that nobody vouches for.
fn refusal_without_authority(input: &Input<'_>) -> Result<&'static str, Malformed> {
    let source = QuotedSource {
        label: "new-source-a".to_owned(),
        role: "user".to_owned(),
        content: "hello".to_owned(),
        observed_at: None,
    };
    let request = quoting(input, vec![source])?;
    match Draft::new(request, Caller::default(), DEFAULT_PROVIDER, &Limits::default()) {
        Ok(_) => Err(input.fault("quoted on nobody's authority")),
        Err(rejection) => Ok(rejection.code().as_str()),
    }
}

/// The records that quoted sources become.
fn quoted_sources(input: &Input<'_>) -> Result<Value, Malformed> {
    let given = input.field("provenance")?;
    let provenance = given_provenance(&given)?.ok_or_else(|| given.fault("no provenance"))?;
    let mut sources = Vec::new();
    for source in input.field("sources")?.elements()? {
        let observed_at = source.maybe("observed_at").map(|at| at.text().map(str::to_owned)).transpose()?;
        sources.push(QuotedSource {
            label: source.field("label")?.text()?.to_owned(),
            role: source.field("role")?.text()?.to_owned(),
            content: source.field("content")?.text()?.to_owned(),
            observed_at,
        });
    }
    let request = quoting(input, sources)?;
    let record = |record: NewRecord| {
        json!({
            "provider": record.provider,
            "thread_id": record.thread,
            "message_id": record.id,
            "ordinal": record.ordinal,
            "role": record.role,
            "content": record.text,
            "timestamp": record.time,
            "speaker_id": record.speaker_id,
            "speaker_display": record.speaker_display,
            "speaker_kind": record.speaker_kind,
            "principal_id": record.principal,
            "authority_tier": record.tier,
            "trust_state": record.trust,
            "source_id": format!("{}/{}/{}", record.provider, record.thread, record.id),
        })
    };
    Ok(quoted_records(request.sources(), &provenance, DEFAULT_PROVIDER).into_iter().map(record).collect())
}
