//! Turns to archive.

use recollex::workspace::Turn;

/// A trusted turn of a user, without a speaker.
#[must_use]
pub fn plain(provider: &str, thread: &str, number: i64, text: &str) -> Turn {
    Turn {
        provider: provider.to_owned(),
        thread: thread.to_owned(),
        id: format!("m{number}"),
        ordinal: number,
        role: "user".to_owned(),
        text: text.to_owned(),
        time: Some("2026-03-04T08:00:00+00:00".to_owned()),
        speaker_id: None,
        speaker_display: None,
        speaker_kind: None,
        principal: None,
        tier: None,
        trust: "trusted".to_owned(),
    }
}
