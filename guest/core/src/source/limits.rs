//! Limits with names. Reaching one is an answer, never a crash; every one is a setting.
//!
//! Knows names and defaults; `session` knows what may be set.

/// What archives, batches, imports and reports may take. Field names are the settings' (`limits.header-bytes`, …).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of a frame from its anchor to the end of its label. More is the finding `header-too-long` when reading and
    /// refused when writing.
    pub header_bytes: usize,
    /// Bytes that one batch would append at most.
    pub batch_bytes: u64,
    /// Bytes that a conversation of an export may have. An import takes several times that in memory, and no more however
    /// large the export is.
    pub conversation_bytes: u64,
    /// Messages that a conversation of an export may have.
    pub conversation_messages: u64,
    /// Findings that one verification yields at most; further ones are only counted.
    pub findings_max: u64,
    /// Records that a catalogue keeps at most, to be listed; further ones are only counted.
    pub records_max: u64,
    /// Bytes of topics that are kept at most until all archives are known; topics beyond are not checked.
    pub topics_bytes: u64,
}

impl Limits {
    /// The setting's name of [`Limits::header_bytes`].
    pub const HEADER_BYTES: &'static str = "limits.header-bytes";
    /// The setting's name of [`Limits::batch_bytes`].
    pub const BATCH_BYTES: &'static str = "limits.batch-bytes";
    /// The setting's name of [`Limits::conversation_bytes`].
    pub const CONVERSATION_BYTES: &'static str = "limits.conversation-bytes";
    /// The setting's name of [`Limits::conversation_messages`].
    pub const CONVERSATION_MESSAGES: &'static str = "limits.conversation-messages";
    /// The setting's name of [`Limits::findings_max`].
    pub const FINDINGS_MAX: &'static str = "limits.findings-max";
    /// The setting's name of [`Limits::records_max`].
    pub const RECORDS_MAX: &'static str = "limits.records-max";
    /// The setting's name of [`Limits::topics_bytes`].
    pub const TOPICS_BYTES: &'static str = "limits.topics-bytes";
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            header_bytes: 1 << 20,
            batch_bytes: 64 << 20,
            conversation_bytes: 64 << 20,
            conversation_messages: 1_000_000,
            findings_max: 10_000,
            records_max: 3_000_000,
            topics_bytes: 64 << 20,
        }
    }
}

/// A limit that was reached. Nothing was done.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{name} allows {allowed}, {asked} were asked for")]
pub struct LimitReached {
    /// The setting's name.
    pub name: &'static str,
    /// What it is set to.
    pub allowed: u64,
    /// What was asked for, as far as known.
    pub asked: u64,
    /// What it was about.
    pub subject: Option<String>,
}
