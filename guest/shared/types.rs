//! Core's values as the types of `wit/types.wit`.
//!
//! A file of both guests: each has bindings of its own, which are the same text but not the same types.

use recollex_core::session::SettingError;
use recollex_core::source;

use crate::bindings::recollex::memory::types as shared;

pub(crate) fn finding(finding: source::Finding) -> shared::Finding {
    shared::Finding {
        code: finding.code.to_owned(),
        severity: match finding.severity {
            source::Severity::Info => shared::Severity::Info,
            source::Severity::Warning => shared::Severity::Warning,
            source::Severity::Error => shared::Severity::Error,
        },
        path: finding.path,
        line: finding.line,
        subject: finding.subject,
        excerpt: finding.excerpt,
        message: finding.message,
    }
}

pub(crate) fn health(health: source::Health) -> shared::Health {
    match health {
        source::Health::Empty => shared::Health::Empty,
        source::Health::Ok => shared::Health::Ok,
        source::Health::Degraded => shared::Health::Degraded,
    }
}

pub(crate) fn counts(counts: &source::Counts) -> shared::Counts {
    shared::Counts {
        source_files: counts.source_files,
        frames: counts.frames,
        legacy_records: Some(counts.legacy_records),
        topic_files: counts.topic_files,
        blocks: counts.blocks,
        bytes: counts.bytes,
    }
}

pub(crate) fn trust(trust: source::Trust) -> shared::Trust {
    match trust {
        source::Trust::Trusted => shared::Trust::Trusted,
        source::Trust::Pending => shared::Trust::Pending,
    }
}

pub(crate) fn tier(tier: source::Tier) -> shared::Tier {
    match tier {
        source::Tier::Owner => shared::Tier::Owner,
        source::Tier::Paired => shared::Tier::Paired,
    }
}

pub(crate) fn speaker(speaker: source::Speaker) -> shared::Speaker {
    shared::Speaker { id: speaker.id, display: speaker.display, label: speaker.label, trusted: speaker.trusted }
}

pub(crate) fn record(record: source::Record) -> shared::SourceRecord {
    shared::SourceRecord {
        id: record.id,
        path: record.path,
        anchor: record.anchor,
        line: record.line,
        offset: record.offset,
        length: record.length,
        time: record.time,
        label: record.label,
        speaker: record.speaker.map(speaker),
        trust: trust(record.trust),
        kind: record.kind,
        principal: record.principal,
        tier: record.tier.map(tier),
    }
}

pub(crate) fn problem(code: &str, reason: &str, path: Option<&str>, message: impl Into<String>) -> shared::Problem {
    shared::Problem {
        code: code.to_owned(),
        reason: reason.to_owned(),
        path: path.map(str::to_owned),
        line: None,
        subject: None,
        message: message.into(),
    }
}

pub(crate) fn bad_setting(error: &SettingError) -> shared::Problem {
    let (reason, name) = match error {
        SettingError::Unknown { name } => ("unknown-setting", name.as_str()),
        SettingError::Value { name, .. } => ("invalid-setting", *name),
    };
    let problem = problem("INVALID_ARGUMENT", reason, None, error.to_string());
    shared::Problem { subject: Some(name.to_owned()), ..problem }
}
