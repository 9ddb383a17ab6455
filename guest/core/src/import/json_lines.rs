//! JSON Lines of the shape that `archive` takes, a record a line, and `after` for what it comes behind.
//!
//! ```text
//! {"provider"?, "thread"?, "id", "role", "text", "time"?, "speaker"?: {"id"?, "display"?, "kind"?}, "principal"?, "tier"?,
//!  "trust"?, "after"?: ID | null}
//! ```
//!
//! The lines are as good as their writer: what they say of speakers, tiers and trust is taken as it is, as by `archive`,
//! which is why only the owner imports. Whoever imports what others wrote gives [`Trust::Pending`](crate::source::Trust),
//! and then nothing of it is trusted, whatever it says.

use super::Part;
use super::draft::{Node, Parent, Turn, Vouched};
use super::name::id_part;
use super::skip::SkipReason;
use super::value::{Raw, fields, is_absent, text};
use crate::text::is_whitespace;
use std::borrow::Cow;

/// What a line says.
pub(super) struct Line {
    pub(super) provider: String,
    pub(super) thread: String,
    pub(super) id: String,
    /// None: the line does not say.
    pub(super) parent: Option<Parent>,
    pub(super) turn: Result<Turn, SkipReason>,
}

impl Line {
    pub(super) fn node(self, parent: Parent) -> (Node, Option<SkipReason>) {
        let (turn, skipped) = match self.turn {
            Ok(turn) => (Some(turn), None),
            Err(reason) => (None, Some(reason)),
        };
        (Node { id: self.id, parent, turn, rank: 0 }, skipped)
    }
}

/// Reads a line. `provider` and `thread`: of lines that do not say, as parts of source ids; empty: there is none.
pub(super) fn line(raw: Raw<'_>, provider: &str, thread: &str) -> Result<Line, SkipReason> {
    let (default_provider, default_thread) = (provider, thread);
    let keys = ["provider", "thread", "id", "role", "text", "time", "speaker", "principal", "tier", "trust", "after"];
    let [provider, thread, id, role, said, time, speaker, principal, tier, trust, after] =
        fields(raw, keys).ok_or(SkipReason::Malformed)?;
    let [speaker_id, speaker_display, kind] = match speaker.filter(|speaker| speaker.get() != "null") {
        Some(speaker) => fields(speaker, ["id", "display", "kind"]).ok_or(SkipReason::Malformed)?,
        None => [None; 3],
    };
    let vouched = Vouched {
        speaker_id: optional(speaker_id)?,
        speaker_display: optional(speaker_display)?,
        kind: optional(kind)?,
        principal: optional(principal)?,
        tier: optional(tier)?,
        trust: optional(trust)?,
    };
    let needed = |value: Option<String>| value.filter(|value| !value.is_empty()).ok_or(SkipReason::MissingField);
    let provider = identity(provider, Part::Provider, default_provider)?;
    let thread = identity(thread, Part::Thread, default_thread)?;
    let id = identity(id, Part::Message, "")?;
    let (role, said) = (needed(optional(role)?)?, optional(said)?.ok_or(SkipReason::MissingField)?);
    let parent = match after {
        None => None,
        after if is_absent(after) => Some(Parent::Start),
        after => Some(Parent::Node(id_part(after, Part::Message).ok_or(SkipReason::Malformed)?)),
    };
    let time = optional(time)?;
    let turn = if said.chars().all(is_whitespace) {
        Err(SkipReason::Empty)
    } else {
        Ok(Turn { role: Cow::Owned(role), text: said, time, vouched: Some(Box::new(vouched)) })
    };
    Ok(Line { provider, thread, id, parent, turn })
}

/// A part of the record's id; where the line does not say, `otherwise`.
fn identity(raw: Option<Raw<'_>>, of: Part, otherwise: &str) -> Result<String, SkipReason> {
    if optional(raw)?.is_none() {
        return Some(otherwise.to_owned()).filter(|otherwise| !otherwise.is_empty()).ok_or(SkipReason::MissingField);
    }
    id_part(raw, of).ok_or(SkipReason::MissingField)
}

/// A text, or nothing where there is none. Anything else is a fault: a misread trust or tier must not pass.
fn optional(raw: Option<Raw<'_>>) -> Result<Option<String>, SkipReason> {
    match raw {
        raw if is_absent(raw) => Ok(None),
        raw => raw.and_then(text).map(|text| Some(text.into_owned())).ok_or(SkipReason::Malformed),
    }
}
