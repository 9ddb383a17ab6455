//! What somebody unpaired said in a group: kept as pending evidence, within a quota (FORMAT.md, "Unpaired people").
//!
//! Whoever is in a group can write there, so what they can fill is bounded: messages in a span of time, bytes of a
//! channel, bytes of a message. Time is handed in; a clock that is put back neither locks anybody out nor opens the gate.
//! Knows messages and sums. Must not know how archives are listed or a record is appended.

use super::float::python_float;
use crate::digest::Digest;
use crate::source::{NewRecord, Problem, Trust};
use crate::text::encode_path_part;
use crate::time::{Instant, Zone};
use serde_json::Value;

/// So much a message may take beside its text, whatever is said of who said it.
const RECORD_BYTES: u64 = 16 << 10;

/// Between the parts that a message's id is made of.
const UNIT_SEPARATOR: &str = "\u{1f}";

/// What people who are not paired may have kept. The settings `unpaired.…`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnpairedLimits {
    /// Messages in any span of [`UnpairedLimits::window_s`], over all channels.
    pub messages: u64,
    /// Length of that span, in seconds.
    pub window_s: u64,
    /// Bytes of one message.
    pub text_bytes: u64,
    /// Bytes of everything that says where a message comes from and who wrote it.
    pub identity_bytes: u64,
    /// Bytes of the archives of one channel.
    pub channel_bytes: u64,
}

impl Default for UnpairedLimits {
    fn default() -> Self {
        Self { messages: 600, window_s: 3600, text_bytes: 64 << 10, identity_bytes: 4 << 10, channel_bytes: 64 << 20 }
    }
}

/// A message as a channel hands it over. Nothing is checked yet.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct UnpairedMessage {
    /// `slack`, `telegram`, …
    pub channel: String,
    /// Whose connection to the channel.
    pub account: String,
    /// The group.
    pub chat: String,
    /// The channel's own id of the message.
    pub message: String,
    /// The channel's own id of the user; may be empty.
    pub user: String,
    /// Their name as the channel shows it; may be empty.
    pub user_display: String,
    /// Kept byte for byte.
    pub text: String,
    /// Seconds since 1970, UTC.
    pub time: f64,
}

impl UnpairedMessage {
    /// The record to keep. Where it comes from decides its id, so that the same message is the same record; who wrote it is
    /// its speaker, of whom the runtime knows no more than the channel says: a human, without a tier, pending.
    ///
    /// # Errors
    /// `empty-text`, `text-too-long`, `identity-too-long`, `invalid-time`: every one that holds.
    pub fn record(self, limits: &UnpairedLimits) -> Result<NewRecord, Vec<Problem>> {
        let thread = encode_path_part(&format!("{}:{}", self.account, self.chat));
        let provider = provider(&self.channel);
        let id = self.id();
        let mut problems = Vec::new();
        let mut refuse = |reason, message: String| {
            let subject = Some(format!("{provider}/{thread}/{id}"));
            problems.push(Problem { code: "INVALID_ARGUMENT", reason, path: None, line: None, subject, message });
        };
        if self.text.is_empty() {
            refuse("empty-text", "the message has no text; there is nothing to keep".to_owned());
        }
        if self.text.len() as u64 > limits.text_bytes {
            let (is, allowed) = (self.text.len(), limits.text_bytes);
            refuse("text-too-long", format!("the text has {is} bytes, unpaired.text-bytes allows {allowed}"));
        }
        let parts = [&self.channel, &self.account, &self.chat, &self.message, &self.user, &self.user_display];
        let identity: usize = parts.iter().map(|part| part.len()).sum();
        if identity as u64 > limits.identity_bytes {
            let allowed = limits.identity_bytes;
            refuse(
                "identity-too-long",
                format!(
                    "what says who wrote it and where has {identity} bytes, unpaired.identity-bytes allows {allowed}"
                ),
            );
        }
        let time = Instant::from_seconds(self.time).map(|instant| instant.iso(&Zone::utc()));
        if time.is_none() {
            refuse("invalid-time", "the time is none between the years 1 and 9999; give seconds since 1970".to_owned());
        }
        let given = |text: String| (!text.is_empty()).then_some(text);
        match time {
            Some(time) if problems.is_empty() => Ok(NewRecord {
                provider,
                thread,
                id,
                ordinal: 0,
                role: "user".to_owned(),
                text: self.text,
                time: Some(time),
                speaker_id: given(self.user),
                speaker_display: given(self.user_display),
                speaker_kind: Some("human".to_owned()),
                principal: None,
                tier: None,
                trust: Trust::Pending.as_str().to_owned(),
                ..NewRecord::default()
            }),
            _ => Err(problems),
        }
    }

    /// The same for the same message, whatever name its writer goes by.
    fn id(&self) -> String {
        let time = python_float(self.time);
        let parts = [&*self.channel, &*self.account, &*self.chat, &*self.message, &*self.user, &*time, &*self.text];
        Digest::of(parts.join(UNIT_SEPARATOR).as_bytes()).hex_prefix(24)
    }
}

fn provider(channel: &str) -> String {
    format!("channel-{}", encode_path_part(channel))
}

/// The directory with a channel's archives.
pub fn channel_directory(channel: &str) -> String {
    format!("sources/{}", encode_path_part(&provider(channel)))
}

/// Whether a channel whose archives have `bytes` may take a message of `text` bytes.
///
/// # Errors
/// `channel-full`.
pub fn channel_has_room(channel: &str, bytes: u64, text: u64, limits: &UnpairedLimits) -> Result<(), Problem> {
    let asked = bytes.saturating_add(text).saturating_add(RECORD_BYTES);
    if asked <= limits.channel_bytes {
        return Ok(());
    }
    Err(Problem {
        code: "COMMIT_REJECTED",
        reason: "channel-full",
        path: Some(channel_directory(channel)),
        line: None,
        subject: Some("unpaired.channel-bytes".to_owned()),
        message: format!(
            "unpaired people have filled this channel ({bytes} bytes, unpaired.channel-bytes allows {}); raise the limit, \
             or move what nobody needs",
            limits.channel_bytes
        ),
    })
}

/// When messages of unpaired people were kept lately: the runtime directory's `unpaired-archive-quota.json`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Quota {
    accepted_at: Vec<f64>,
}

impl Quota {
    /// Name in the runtime directory.
    pub const PATH: &'static str = "unpaired-archive-quota.json";

    /// No such file is longer, in bytes.
    pub const BYTES_MAX: u32 = 4 << 20;

    /// Reads the file. None if it is not what a program of either kind writes: then nothing is known of lately, and
    /// counting begins anew, because a file that only a person could mend must not shut everybody out.
    pub fn parse(text: &str) -> Option<Self> {
        let value: Value = serde_json::from_str(text).ok()?;
        if value.get("version")?.as_u64() != Some(1) {
            return None;
        }
        let times = value.get("accepted_at")?.as_array()?.iter();
        Some(Self { accepted_at: times.map(Value::as_f64).collect::<Option<_>>()? })
    }

    /// What the file becomes once one more message is kept at `now`, seconds since 1970. Times that are over, or not yet,
    /// no longer count: those ahead of the clock are from before it was put back.
    ///
    /// # Errors
    /// `too-many-messages`.
    pub fn accept(&self, now: f64, limits: &UnpairedLimits) -> Result<Self, Problem> {
        let window = limits.window_s as f64;
        let counts = |at: &&f64| **at <= now && **at > now - window;
        let mut accepted_at: Vec<f64> = self.accepted_at.iter().filter(counts).copied().collect();
        if accepted_at.len() as u64 >= limits.messages {
            return Err(Problem {
                code: "COMMIT_REJECTED",
                reason: "too-many-messages",
                path: None,
                line: None,
                subject: Some("unpaired.messages-max".to_owned()),
                message: format!(
                    "unpaired people have written {} messages within {} seconds, and unpaired.messages-max allows no more; \
                     try again later",
                    accepted_at.len(),
                    limits.window_s
                ),
            });
        }
        accepted_at.push(now);
        Ok(Self { accepted_at })
    }

    /// The file.
    pub fn file(&self) -> String {
        let times: Vec<String> = self.accepted_at.iter().map(|at| python_float(*at)).collect();
        format!("{{\"version\":1,\"accepted_at\":[{}]}}\n", times.join(","))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: f64 = 1_800_000_000.25;

    fn message() -> UnpairedMessage {
        UnpairedMessage {
            channel: "slack".to_owned(),
            account: "acct".to_owned(),
            chat: "C1".to_owned(),
            message: "123.45".to_owned(),
            user: "U1".to_owned(),
            user_display: "Eve".to_owned(),
            text: "hello group".to_owned(),
            time: 1_799_999_999.5,
        }
    }

    fn reasons(message: UnpairedMessage) -> Vec<&'static str> {
        let refused = message.record(&UnpairedLimits::default()).expect_err("it is refused");
        refused.into_iter().map(|problem| problem.reason).collect()
    }

    #[test]
    fn every_reason_is_told() {
        let long =
            UnpairedMessage { user: "u".repeat(5000), text: "x".repeat((64 << 10) + 1), time: f64::NAN, ..message() };
        assert_eq!(reasons(long), ["text-too-long", "identity-too-long", "invalid-time"]);
        assert_eq!(reasons(UnpairedMessage { text: String::new(), ..message() }), ["empty-text"]);
        for time in [f64::INFINITY, -1e12, 253_402_300_800.0] {
            assert_eq!(reasons(UnpairedMessage { time, ..message() }), ["invalid-time"], "{time}");
        }
        let most = UnpairedMessage { text: "x".repeat(64 << 10), ..message() };
        assert!(most.record(&UnpairedLimits::default()).is_ok());
    }

    #[test]
    fn another_name_is_the_same_message() {
        let record = |message: UnpairedMessage| message.record(&UnpairedLimits::default()).expect("it is good");
        let renamed = record(UnpairedMessage { user_display: "Eva".to_owned(), ..message() });
        assert_eq!(renamed.id, record(message()).id);
        // No part runs into the next.
        let shifted = UnpairedMessage { account: "acctC".to_owned(), chat: "1".to_owned(), ..message() };
        assert_ne!(record(shifted).id, record(message()).id);
    }

    #[test]
    fn the_window_slides() {
        let limits = UnpairedLimits { messages: 3, window_s: 10, ..UnpairedLimits::default() };
        let mut quota = Quota::default();
        for at in [0.0, 1.0, 2.0] {
            quota = quota.accept(NOW + at, &limits).expect("room");
        }
        assert_eq!(quota.accept(NOW + 9.9, &limits).expect_err("full").reason, "too-many-messages");
        let later = quota.accept(NOW + 10.0, &limits).expect("the first is over");
        assert_eq!(later.file(), "{\"version\":1,\"accepted_at\":[1800000001.25,1800000002.25,1800000010.25]}\n");
        assert_eq!(Quota::parse(&later.file()), Some(later));
    }

    #[test]
    fn a_clock_that_was_put_back_locks_nobody_out() {
        let limits = UnpairedLimits { messages: 2, ..UnpairedLimits::default() };
        let ahead = Quota { accepted_at: vec![NOW + 1e6, NOW + 1e6] };
        let back = ahead.accept(NOW, &limits).expect("they do not count").accept(NOW, &limits).expect("room");
        assert!(back.accept(NOW, &limits).is_err(), "and the gate is not open either");
    }

    #[test]
    fn what_is_no_quota() {
        for text in [
            "",
            "{}",
            "[]",
            "{\"version\":2,\"accepted_at\":[]}",
            "{\"version\":1,\"accepted_at\":[null]}",
            "{\"version\":1,\"accepted_at\":[1e999]}",
        ] {
            assert_eq!(Quota::parse(text), None, "{text}");
        }
        assert_eq!(Quota::parse(" {\"accepted_at\": [1], \"version\": 1}\n"), Some(Quota { accepted_at: vec![1.0] }));
    }

    #[test]
    fn a_channel_has_so_much_room() {
        let limits = UnpairedLimits::default();
        assert!(channel_has_room("slack", (64 << 20) - (16 << 10) - 5, 5, &limits).is_ok());
        let full = channel_has_room("a/b", (64 << 20) - (16 << 10) - 5, 6, &limits).expect_err("full");
        assert_eq!((full.reason, full.path.as_deref()), ("channel-full", Some("sources/channel-a%252Fb")));
    }
}
