//! Sources that a request quotes: who vouches for them, and which records they become.

use super::request::{QuotedSource, is_blank};
use crate::digest::Digest;
use crate::source::{NewRecord, Tier, Trust, UNKNOWN};
use crate::text::identity_part;
use crate::trust::Authority;

/// Under which provider quoted sources are archived, unless a setting says otherwise. Identities that the other program
/// gives contain it.
pub const DEFAULT_PROVIDER: &str = "claude-code";

/// What stands between the parts of an identity before it is hashed.
const UNIT: char = '\u{1f}';

/// Hexadecimal digits of a thread's and of a message's name.
const DIGITS: usize = 16;

/// On whose authority sources are quoted: told by the runtime, never by the request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Provenance {
    /// On whose behalf.
    pub principal_id: String,
    /// `owner`, `human`, `runtime`, ….
    pub speaker_kind: String,
    /// Who.
    pub speaker_id: String,
    /// Their name. It may change, so it is no part of identities.
    pub speaker_display: String,
    /// `owner` or `paired`.
    pub authority_tier: String,
    /// Where it was said: session and turn.
    pub origin_id: String,
}

impl Provenance {
    /// Of what a session knows of its caller. None without an authority that is whole, or without an origin.
    #[must_use]
    pub fn new(authority: Option<Authority>, origin_id: &str) -> Option<Self> {
        let authority = authority?;
        if is_blank(origin_id) {
            return None;
        }
        Some(Self {
            principal_id: authority.principal_id,
            speaker_kind: authority.speaker_kind,
            speaker_id: authority.speaker_id,
            speaker_display: authority.speaker_display,
            authority_tier: authority.authority_tier,
            origin_id: origin_id.to_owned(),
        })
    }

    /// Of a speaker whom the host knows, on the authority of its caller. None if one of them is missing or blank: half an
    /// authority is none.
    #[must_use]
    pub fn of_speaker(
        [kind, id, display]: [&str; 3],
        principal: Option<&str>,
        tier: Option<Tier>,
        origin: &str,
    ) -> Option<Self> {
        let parts = [kind, id, display, principal?, origin];
        let display = identity_part(display);
        (!parts.into_iter().any(is_blank)).then(|| Self {
            principal_id: principal.unwrap_or_default().to_owned(),
            speaker_kind: kind.to_owned(),
            speaker_id: id.to_owned(),
            speaker_display: if display.is_empty() { UNKNOWN.to_owned() } else { display },
            authority_tier: tier.map(Tier::as_str).unwrap_or_default().to_owned(),
            origin_id: origin.to_owned(),
        })
    }

    /// What of it identities are made from.
    fn seed(&self) -> String {
        let parts = [&self.principal_id, &self.speaker_kind, &self.speaker_id, &self.authority_tier, &self.origin_id];
        joined(&parts.map(String::as_str))
    }
}

/// The records that quoted sources become, in order. Who says the same on the same authority at the same place gets the same
/// ids, so that a request made again archives nothing twice. Times must be canonical.
#[must_use]
pub fn quoted_records(sources: &[QuotedSource], provenance: &Provenance, provider: &str) -> Vec<NewRecord> {
    let seed = provenance.seed();
    let said = |source: &QuotedSource| {
        joined(&[&source.role, &source.content, source.observed_at.as_deref().unwrap_or_default()])
    };
    let all: Vec<String> = std::iter::once(seed.clone()).chain(sources.iter().map(said)).collect();
    let thread = name(&all.join("\n"));
    let record = |(ordinal, source): (i64, &QuotedSource)| NewRecord {
        provider: provider.to_owned(),
        thread: thread.clone(),
        id: name(&joined(&[&seed, &thread, &ordinal.to_string(), &said(source)])),
        ordinal,
        role: source.role.clone(),
        text: source.content.clone(),
        time: source.observed_at.clone(),
        speaker_id: Some(provenance.speaker_id.clone()),
        speaker_display: Some(provenance.speaker_display.clone()),
        speaker_kind: Some(provenance.speaker_kind.clone()),
        principal: Some(provenance.principal_id.clone()),
        tier: Some(provenance.authority_tier.clone()),
        trust: Trust::Trusted.as_str().to_owned(),
        ..NewRecord::default()
    };
    (1..).zip(sources).map(record).collect()
}

fn joined(parts: &[&str]) -> String {
    let mut text = String::with_capacity(parts.iter().map(|part| part.len() + 1).sum());
    for (at, part) in parts.iter().enumerate() {
        if at > 0 {
            text.push(UNIT);
        }
        text.push_str(part);
    }
    text
}

fn name(text: &str) -> String {
    Digest::of(text.as_bytes()).hex_prefix(DIGITS)
}
