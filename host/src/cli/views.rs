//! The JSON shapes of results. Their keys are a contract with scripts: more may be added, none changes.
//!
//! Borrowed views over the contract's types; nothing is decided here.

use recollex::types::{Counts, Finding, Health, Severity, SourceRecord, Speaker, Tier, Trust};
use recollex::workspace::{
    ArchivedTurn, Branch, FoundLine, Hit, HitKind, ListedFile, LockState, NumberedLine, Outcome,
};
use serde::Serialize;

/// `off`, `empty`, `ok`, `degraded`, `broken`
pub fn health(health: Health) -> &'static str {
    match health {
        Health::Off => "off",
        Health::Empty => "empty",
        Health::Ok => "ok",
        Health::Degraded => "degraded",
        Health::Broken => "broken",
    }
}

/// `info`, `warning`, `error`
pub fn severity(severity: Severity) -> &'static str {
    match severity {
        Severity::Info => "info",
        Severity::Warning => "warning",
        Severity::Error => "error",
    }
}

/// `source`, `topic`, `experience`
pub fn kind(kind: HitKind) -> &'static str {
    match kind {
        HitKind::Source => "source",
        HitKind::Topic => "topic",
        HitKind::Experience => "experience",
    }
}

/// `trusted`, `pending`
pub fn trust(trust: Trust) -> &'static str {
    match trust {
        Trust::Trusted => "trusted",
        Trust::Pending => "pending",
    }
}

/// Something found while reading.
#[derive(Serialize)]
#[cfg_attr(feature = "mcp", derive(schemars::JsonSchema))]
pub struct FindingView<'a> {
    code: &'a str,
    severity: &'static str,
    path: Option<&'a str>,
    line: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    subject: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    excerpt: Option<&'a str>,
    message: &'a str,
}

impl<'a> From<&'a Finding> for FindingView<'a> {
    fn from(finding: &'a Finding) -> Self {
        Self {
            code: &finding.code,
            severity: severity(finding.severity),
            path: finding.path.as_deref(),
            line: finding.line,
            subject: finding.subject.as_deref(),
            excerpt: finding.excerpt.as_deref(),
            message: &finding.message,
        }
    }
}

/// Several of them.
pub fn findings(findings: &[Finding]) -> Vec<FindingView<'_>> {
    findings.iter().map(FindingView::from).collect()
}

/// Figures.
#[derive(Serialize)]
#[cfg_attr(feature = "mcp", derive(schemars::JsonSchema))]
pub struct CountsView {
    source_files: u64,
    frames: u64,
    legacy_records: Option<u64>,
    topic_files: u64,
    blocks: Option<u64>,
    bytes: u64,
}

impl From<&Counts> for CountsView {
    fn from(counts: &Counts) -> Self {
        Self {
            source_files: counts.source_files,
            frames: counts.frames,
            legacy_records: counts.legacy_records,
            topic_files: counts.topic_files,
            blocks: counts.blocks,
            bytes: counts.bytes,
        }
    }
}

/// Who a record says spoke.
#[derive(Serialize)]
#[cfg_attr(feature = "mcp", derive(schemars::JsonSchema))]
pub struct SpeakerView<'a> {
    id: &'a str,
    display: &'a str,
    label: &'a str,
    trusted: bool,
}

impl<'a> From<&'a Speaker> for SpeakerView<'a> {
    fn from(speaker: &'a Speaker) -> Self {
        Self { id: &speaker.id, display: &speaker.display, label: &speaker.label, trusted: speaker.trusted }
    }
}

/// A search result.
#[derive(Serialize)]
#[cfg_attr(feature = "mcp", derive(schemars::JsonSchema))]
pub struct HitView<'a> {
    kind: &'static str,
    id: &'a str,
    path: &'a str,
    anchor: &'a str,
    line: u64,
    text: &'a str,
    text_cut: bool,
    time: &'a str,
    score: u64,
    speaker: Option<SpeakerView<'a>>,
    trust: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    evidence_number: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    block: Option<&'a str>,
    evidence: &'a [String],
    headings: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    branch: Option<&'static str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    signals: Vec<SignalView<'a>>,
}

#[derive(Serialize)]
#[cfg_attr(feature = "mcp", derive(schemars::JsonSchema))]
struct SignalView<'a> {
    name: &'a str,
    points: i64,
}

impl<'a> From<&'a Hit> for HitView<'a> {
    fn from(hit: &'a Hit) -> Self {
        Self {
            kind: kind(hit.kind),
            id: &hit.id,
            path: &hit.path,
            anchor: &hit.anchor,
            line: hit.line,
            text: &hit.text,
            text_cut: hit.text_cut,
            time: &hit.time,
            score: hit.score,
            speaker: hit.speaker.as_ref().map(SpeakerView::from),
            trust: trust(hit.trust),
            evidence_number: hit.evidence_number,
            block: hit.block.as_deref(),
            evidence: &hit.evidence,
            headings: &hit.headings,
            branch: hit.branch.map(branch),
            signals: hit
                .signals
                .iter()
                .map(|signal| SignalView { name: &signal.name, points: signal.points })
                .collect(),
        }
    }
}

/// Where a hit stands from where the reader is.
pub const fn branch(branch: Branch) -> &'static str {
    match branch {
        Branch::Own => "own",
        Branch::Other => "other",
        Branch::Abandoned => "abandoned",
    }
}

/// A record without its text.
#[derive(Serialize)]
#[cfg_attr(feature = "mcp", derive(schemars::JsonSchema))]
pub struct RecordView<'a> {
    id: &'a str,
    path: &'a str,
    anchor: &'a str,
    line: u64,
    offset: u64,
    length: u64,
    time: &'a str,
    label: &'a str,
    speaker: Option<SpeakerView<'a>>,
    trust: &'static str,
    kind: &'a str,
    principal: &'a str,
    tier: Option<&'static str>,
}

impl<'a> From<&'a SourceRecord> for RecordView<'a> {
    fn from(record: &'a SourceRecord) -> Self {
        Self {
            id: &record.id,
            path: &record.path,
            anchor: &record.anchor,
            line: record.line,
            offset: record.offset,
            length: record.length,
            time: &record.time,
            label: &record.label,
            speaker: record.speaker.as_ref().map(SpeakerView::from),
            trust: trust(record.trust),
            kind: &record.kind,
            principal: &record.principal,
            tier: record.tier.map(|tier| match tier {
                Tier::Owner => "owner",
                Tier::Paired => "paired",
            }),
        }
    }
}

/// A line of a file.
#[derive(Serialize)]
#[cfg_attr(feature = "mcp", derive(schemars::JsonSchema))]
pub struct LineView<'a> {
    number: u64,
    text: &'a str,
    /// Only the beginning.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    cut: bool,
}

impl<'a> From<&'a NumberedLine> for LineView<'a> {
    fn from(line: &'a NumberedLine) -> Self {
        Self { number: line.number, text: &line.text, cut: line.cut }
    }
}

/// A line that matches, or stands next to one that does.
#[derive(Serialize)]
#[cfg_attr(feature = "mcp", derive(schemars::JsonSchema))]
pub struct MatchView<'a> {
    path: &'a str,
    #[serde(flatten)]
    line: LineView<'a>,
    is_match: bool,
}

impl<'a> From<&'a FoundLine> for MatchView<'a> {
    fn from(found: &'a FoundLine) -> Self {
        Self { path: &found.path, line: LineView::from(&found.line), is_match: found.is_match }
    }
}

/// A file of a listing.
#[derive(Serialize)]
#[cfg_attr(feature = "mcp", derive(schemars::JsonSchema))]
pub struct FileView<'a> {
    path: &'a str,
    bytes: u64,
    derived: bool,
}

impl<'a> From<&'a ListedFile> for FileView<'a> {
    fn from(file: &'a ListedFile) -> Self {
        Self { path: &file.path, bytes: file.bytes, derived: file.derived }
    }
}

/// The lock.
#[derive(Serialize)]
#[cfg_attr(feature = "mcp", derive(schemars::JsonSchema))]
pub struct LockView<'a> {
    held: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    holder: Option<&'a str>,
}

impl<'a> From<&'a LockState> for LockView<'a> {
    fn from(lock: &'a LockState) -> Self {
        Self { held: lock.held, holder: lock.holder.as_deref() }
    }
}

/// What became of a turn.
#[derive(Serialize)]
#[cfg_attr(feature = "mcp", derive(schemars::JsonSchema))]
pub struct TurnView<'a> {
    id: &'a str,
    path: &'a str,
    anchor: &'a str,
    outcome: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    digests: Option<DigestsView<'a>>,
}

#[derive(Serialize)]
#[cfg_attr(feature = "mcp", derive(schemars::JsonSchema))]
struct DigestsView<'a> {
    kept: &'a str,
    offered: &'a str,
}

impl<'a> From<&'a ArchivedTurn> for TurnView<'a> {
    fn from(turn: &'a ArchivedTurn) -> Self {
        Self {
            id: &turn.id,
            path: &turn.path,
            anchor: &turn.anchor,
            outcome: match turn.outcome {
                Outcome::Archived => "archived",
                Outcome::Already => "already",
                Outcome::Differs => "already-archived-differs",
            },
            digests: turn.digests.as_ref().map(|(kept, offered)| DigestsView { kept, offered }),
        }
    }
}
