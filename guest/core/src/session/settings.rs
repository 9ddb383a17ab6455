//! Settings a session is opened with.
//!
//! Knows each setting's name, default and range, and turns pairs of text into values. Must not know where a host keeps
//! them. The table here is the one FORMAT.md prints; a test compares the two.

use core::fmt;

use super::lines::LineWeights;
use crate::ids::SourceId;
use crate::search::Weights;
use crate::source::{Limits, Preview};
use crate::trust::UnpairedLimits;
use crate::turns::{TurnLimits, UpkeepLimits};
use crate::update::{DEFAULT_PROVIDER, Limits as UpdateLimits};
use crate::views::ViewLimits;
use crate::writer::{OrganiserLimits, WriterLimits};

/// What may be set, by name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// `backend`: whether memory is on.
    pub backend: Backend,
    /// `caller`: who is kept waiting.
    pub caller: Caller,
    /// `owner.principal`: what the host calls the owner; none: it does not say.
    pub owner_principal: Option<String>,
    /// `limits.batch-bytes`: text that one batch of turns may hold, in bytes (D04).
    pub batch_bytes: u64,
    /// `limits.header-bytes`: a frame's lines up to its record's label, in bytes.
    pub header_bytes: u64,
    /// `limits.conversation-bytes`: text that a conversation of an export may have, in bytes.
    pub conversation_bytes: u64,
    /// `limits.conversation-messages`: messages that a conversation of an export may have.
    pub conversation_messages: u64,
    /// `limits.findings-max`: findings one verification reports; more are counted, not kept.
    pub findings: u64,
    /// `limits.records-max`: records the verifier keeps to be listed; more are counted, not kept.
    pub records: u64,
    /// `limits.topics-bytes`: text of topics the verifier keeps until all archives are known, in bytes; topics beyond are not
    /// checked.
    pub topics_bytes: u64,
    /// `limits.query-bytes`: a query's text, in bytes.
    pub query_bytes: u64,
    /// `limits.index-bytes`: text that one search may have to index, in bytes.
    pub index_bytes: u64,
    /// `search.record-bytes`: a record's text that is searched, in bytes; what comes behind is not found.
    pub record_bytes: u64,
    /// `search.top-k-max`: hits one search may ask for.
    pub top_k_max: u64,
    /// `search.resident-bytes`: pages of the search index that a session keeps in memory from one search to the next, in bytes.
    pub resident_bytes: u64,
    /// `search.hit-bytes`: text shown with a hit, in bytes.
    pub hit_bytes: u64,
    /// `search.embed-texts`: texts that one search has embedded; more are left to the next.
    pub embed_texts: u64,
    /// `search.embed-bytes`: a text that is embedded, in bytes; what comes behind is not found by what it means.
    pub embed_bytes: u64,
    /// `search.embed-ms`: how long the model that embeds may take for a piece of them, in milliseconds.
    pub embed_ms: u64,
    /// `search.vectors-bytes`: the file of vectors, in bytes.
    pub vectors_bytes: u64,
    /// `recall.tokens`: what a turn gets of memory where the caller does not say, its fence included, in tokens.
    pub recall_tokens: u64,
    /// `recall.memories`: of how many records and claims, at most.
    pub recall_memories: u64,
    /// `search.weight.…`: how much each part of a score counts, in thousandths.
    pub weights: Weights,
    /// `search.weight.…-branch`: what hits count for that stand on another branch than the reader.
    pub lines: LineWeights,
    /// `get.lines`: lines one read shows where the caller does not say.
    pub get_lines: u64,
    /// `get.bytes`: text one read shows, in bytes; the line that crosses it is cut.
    pub get_bytes: u64,
    /// `browse.files`: files one listing shows where the caller does not say.
    pub browse_files: u64,
    /// `browse.blocks`: blocks one listing of topics shows where the caller does not say.
    pub browse_blocks: u64,
    /// `references.chars`: characters in which blocks that are referred to are shown, where the caller does not say.
    pub references_chars: u64,
    /// `grep.matches`: matching lines one search within lines shows where the caller does not say.
    pub grep_matches: u64,
    /// `grep.context-max`: lines it shows before and after each, at most.
    pub grep_context: u64,
    /// `grep.line-chars`: characters of a line it shows.
    pub grep_line_chars: u64,
    /// `timeline.entries`: claims a part of the timeline has where the caller does not say.
    pub timeline_entries: u64,
    /// `views.…`: how large derived files may be.
    pub views: ViewLimits,
    /// `import.skipped-max`: things left out of a conversation that an import names, what is missing first; all are counted.
    pub import_skipped: u64,
    /// `import.commit-bytes`: conversations of an import wait for others to be kept with by one commit, until they take as
    /// many bytes in archives.
    pub import_commit_bytes: u64,
    /// `import.commit-conversations`: the same, until there are so many.
    pub import_commit_conversations: u64,
    /// `import.preview-records`: records that a dry run of an import remembers, to compare later ones with.
    pub import_preview_records: u64,
    /// `lock.wait-ms`: how long a call that changes something waits for the lock, in milliseconds.
    pub lock_wait_ms: u64,
    /// `update.provider`: under which provider sources are archived that an update quotes (D36).
    pub update_provider: String,
    /// `update.…`: what one update may be.
    pub update: UpdateLimits,
    /// `turns.…`: when turns are written, and how many at a time.
    pub turns: TurnLimits,
    /// `upkeep.…`: how often memory is put in order after turns were written.
    pub upkeep: UpkeepLimits,
    /// `writer.…` and `salvage.…`: how much a model that writes memory may do, read and say.
    pub writer: WriterLimits,
    /// `organiser.…`: what has to be put in order, and how much of it at a time.
    pub organiser: OrganiserLimits,
    /// `unpaired.…`: what people who are not paired may have kept of what they say.
    pub unpaired: UnpairedLimits,
}

/// Where memory is kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Backend {
    /// In files, as FORMAT.md says.
    #[default]
    Files,
    /// Nowhere: every call answers that memory is off (D45).
    None,
}

/// Who is kept waiting by a lock that another holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Caller {
    /// A person, or an agent's turn: ten seconds.
    #[default]
    Interactive,
    /// Work that can be done later: one second.
    Background,
}

impl Caller {
    /// How long such a caller waits, in milliseconds, where `lock.wait-ms` does not say.
    const fn lock_wait_ms(self) -> u64 {
        match self {
            Self::Interactive => INTERACTIVE_WAIT_MS,
            Self::Background => BACKGROUND_WAIT_MS,
        }
    }
}

/// A setting that could not be taken.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SettingError {
    /// There is no setting of that name.
    #[error("there is no setting `{name}`; FORMAT.md lists them")]
    Unknown {
        /// As given.
        name: String,
    },
    /// The value is not one of those allowed.
    #[error("setting `{name}` takes {expected}, not `{value}`")]
    Value {
        /// The setting.
        name: &'static str,
        /// As given, at most 64 characters of it.
        value: String,
        /// What it takes, in words.
        expected: Expected,
    },
}

/// What a setting takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expected {
    /// One of these words.
    Words(&'static str),
    /// A whole number in this range.
    Number(u64, u64),
    /// Any text that is not blank, of at most so many bytes.
    Text(u64),
    /// A text that can be the provider in a source id, of at most so many bytes.
    Provider(u64),
}

impl fmt::Display for Expected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Words(words) => f.write_str(words),
            Self::Number(least, most) => write!(f, "a whole number from {least} to {most}"),
            Self::Text(most) => write!(f, "text of at most {most} bytes, not blank"),
            Self::Provider(most) => write!(f, "a provider's name of at most {most} bytes"),
        }
    }
}

/// A numeric setting: how it is called, what it may be, and where it lives.
struct Number {
    name: &'static str,
    default: u64,
    range: (u64, u64),
    field: fn(&mut Settings) -> &mut u64,
}

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

const fn weight(name: &'static str, default: u64, range: (u64, u64), field: fn(&mut Settings) -> &mut u64) -> Number {
    Number { name, default, range, field }
}

const HEADER_BYTES: Number =
    Number { name: Limits::HEADER_BYTES, default: MIB, range: (KIB, 64 * MIB), field: |s| &mut s.header_bytes };
const FINDINGS_MAX: Number =
    Number { name: Limits::FINDINGS_MAX, default: 10_000, range: (1, 1_000_000), field: |s| &mut s.findings };
const RECORDS_MAX: Number =
    Number { name: Limits::RECORDS_MAX, default: 3_000_000, range: (0, 100_000_000), field: |s| &mut s.records };
const TOPICS_BYTES: Number =
    Number { name: Limits::TOPICS_BYTES, default: 64 * MIB, range: (0, GIB), field: |s| &mut s.topics_bytes };

/// What the verifier may be told: name and range, and where it goes.
type OfVerifier = (&'static str, (u64, u64), fn(&mut Limits, u64));

const VERIFIER: [OfVerifier; 4] = [
    (HEADER_BYTES.name, HEADER_BYTES.range, |limits, value| {
        limits.header_bytes = usize::try_from(value).unwrap_or(usize::MAX);
    }),
    (FINDINGS_MAX.name, FINDINGS_MAX.range, |limits, value| limits.findings_max = value),
    (RECORDS_MAX.name, RECORDS_MAX.range, |limits, value| limits.records_max = value),
    (TOPICS_BYTES.name, TOPICS_BYTES.range, |limits, value| limits.topics_bytes = value),
];

/// Names of the settings that [`verifier_limits`] takes.
pub const VERIFIER_SETTINGS: [&str; 4] = [HEADER_BYTES.name, FINDINGS_MAX.name, RECORDS_MAX.name, TOPICS_BYTES.name];

/// The default limits, with each of `pairs` (name, value) applied in order: the few settings of which the verifier, which is to be
/// small, has to know.
///
/// # Errors
/// The first pair that names none of them or has no allowed value.
pub fn verifier_limits<'a>(pairs: impl IntoIterator<Item = (&'a str, &'a str)>) -> Result<Limits, SettingError> {
    let mut limits = Limits::default();
    for (name, value) in pairs {
        let Some((name, range, set)) = VERIFIER.iter().find(|(known, ..)| *known == name) else {
            return Err(SettingError::Unknown { name: name.to_owned() });
        };
        set(&mut limits, number(name, *range, value)?);
    }
    Ok(limits)
}

/// Reads the value of a numeric setting.
fn number(name: &'static str, (least, most): (u64, u64), value: &str) -> Result<u64, SettingError> {
    // `u64::from_str` would also take a leading plus sign.
    let parsed = if value.bytes().all(|byte| byte.is_ascii_digit()) { value.parse::<u64>().ok() } else { None };
    let allowed = parsed.filter(|parsed| (least..=most).contains(parsed));
    allowed.ok_or_else(|| wrong(name, value, Expected::Number(least, most)))
}

/// Every numeric setting. The one place where names, defaults and ranges are written.
const NUMBERS: &[Number] = &[
    Number { name: Limits::BATCH_BYTES, default: 64 * MIB, range: (1, GIB), field: |s| &mut s.batch_bytes },
    HEADER_BYTES,
    Number {
        name: Limits::CONVERSATION_BYTES,
        default: 64 * MIB,
        range: (KIB, GIB),
        field: |s| &mut s.conversation_bytes,
    },
    Number {
        name: Limits::CONVERSATION_MESSAGES,
        default: 1_000_000,
        range: (1, 10_000_000),
        field: |s| &mut s.conversation_messages,
    },
    FINDINGS_MAX,
    RECORDS_MAX,
    TOPICS_BYTES,
    Number { name: "limits.query-bytes", default: 64 * KIB, range: (1, 16 * MIB), field: |s| &mut s.query_bytes },
    Number { name: "limits.index-bytes", default: GIB, range: (MIB, 64 * GIB), field: |s| &mut s.index_bytes },
    Number { name: "search.record-bytes", default: MIB, range: (KIB, 64 * MIB), field: |s| &mut s.record_bytes },
    Number { name: "search.top-k-max", default: 1000, range: (1, 100_000), field: |s| &mut s.top_k_max },
    Number {
        name: "search.resident-bytes",
        default: 384 * MIB,
        range: (MIB, 4 * GIB),
        field: |s| &mut s.resident_bytes,
    },
    Number { name: "search.hit-bytes", default: 4 * KIB, range: (16, MIB), field: |s| &mut s.hit_bytes },
    Number { name: "search.embed-texts", default: 512, range: (0, 100_000), field: |s| &mut s.embed_texts },
    Number { name: "search.embed-bytes", default: 4 * KIB, range: (16, MIB), field: |s| &mut s.embed_bytes },
    Number { name: "search.embed-ms", default: 30_000, range: (100, 3_600_000), field: |s| &mut s.embed_ms },
    Number {
        name: "search.vectors-bytes",
        default: 128 * MIB,
        range: (64 * KIB, 256 * MIB),
        field: |s| &mut s.vectors_bytes,
    },
    Number { name: "recall.tokens", default: 1500, range: (1, 1_000_000), field: |s| &mut s.recall_tokens },
    Number { name: "recall.memories", default: 8, range: (1, 1000), field: |s| &mut s.recall_memories },
    weight("search.weight.k1", Weights::DEFAULT.k1, (0, Weights::MAX), |s| &mut s.weights.k1),
    weight("search.weight.b", Weights::DEFAULT.b, (0, 1000), |s| &mut s.weights.b),
    weight("search.weight.session", Weights::DEFAULT.session, (0, Weights::MAX), |s| &mut s.weights.session),
    weight("search.weight.session-k1", Weights::DEFAULT.session_k1, (0, Weights::MAX), |s| &mut s.weights.session_k1),
    weight("search.weight.session-b", Weights::DEFAULT.session_b, (0, 1000), |s| &mut s.weights.session_b),
    weight("search.weight.before", Weights::DEFAULT.before, (0, Weights::MAX), |s| &mut s.weights.before),
    weight("search.weight.after", Weights::DEFAULT.after, (0, Weights::MAX), |s| &mut s.weights.after),
    weight("search.weight.decay", Weights::DEFAULT.decay, (0, 1000), |s| &mut s.weights.decay),
    weight("search.weight.question", Weights::DEFAULT.question, (0, Weights::MAX), |s| &mut s.weights.question),
    weight("search.weight.when", Weights::DEFAULT.when, (0, Weights::MAX), |s| &mut s.weights.when),
    weight("search.weight.answer", Weights::DEFAULT.answer, (0, Weights::MAX), |s| &mut s.weights.answer),
    weight("search.weight.assistant", Weights::DEFAULT.assistant, (1, Weights::MAX), |s| &mut s.weights.assistant),
    weight("search.weight.named", Weights::DEFAULT.named, (1, Weights::MAX), |s| &mut s.weights.named),
    weight("search.weight.inquiry", Weights::DEFAULT.inquiry, (1, 1000), |s| &mut s.weights.inquiry),
    weight("search.weight.time", Weights::DEFAULT.time, (1, Weights::MAX), |s| &mut s.weights.time),
    weight("search.weight.number", Weights::DEFAULT.number, (1, Weights::MAX), |s| &mut s.weights.number),
    weight("search.weight.standing", Weights::DEFAULT.standing, (1000, Weights::MAX), |s| &mut s.weights.standing),
    weight("search.weight.adjacent", Weights::DEFAULT.adjacent, (0, Weights::MAX), |s| &mut s.weights.adjacent),
    weight("search.weight.weak", Weights::DEFAULT.weak, (1, Weights::MAX), |s| &mut s.weights.weak),
    weight("search.weight.asking", Weights::DEFAULT.asking, (1, Weights::MAX), |s| &mut s.weights.asking),
    weight("search.weight.other-branch", LineWeights::DEFAULT.other, (0, 1000), |s| &mut s.lines.other),
    weight("search.weight.abandoned-branch", LineWeights::DEFAULT.abandoned, (0, 1000), |s| &mut s.lines.abandoned),
    Number { name: "get.lines", default: 400, range: (1, 1_000_000), field: |s| &mut s.get_lines },
    Number { name: "get.bytes", default: 256 * KIB, range: (16, 64 * MIB), field: |s| &mut s.get_bytes },
    Number { name: "browse.files", default: 500, range: (1, 100_000), field: |s| &mut s.browse_files },
    Number { name: "browse.blocks", default: 500, range: (1, 100_000), field: |s| &mut s.browse_blocks },
    Number { name: "references.chars", default: 8000, range: (1, 1_000_000), field: |s| &mut s.references_chars },
    Number { name: "grep.matches", default: 50, range: (1, 100_000), field: |s| &mut s.grep_matches },
    Number { name: "grep.context-max", default: 20, range: (0, 1000), field: |s| &mut s.grep_context },
    Number { name: "grep.line-chars", default: 300, range: (16, MIB), field: |s| &mut s.grep_line_chars },
    Number { name: "timeline.entries", default: 200, range: (1, 100_000), field: |s| &mut s.timeline_entries },
    Number { name: "views.core-budget", default: 2000, range: (0, 1_000_000), field: |s| &mut s.views.core_budget },
    Number { name: "views.recent", default: 50, range: (0, 10_000), field: |s| &mut s.views.recent },
    Number { name: "unpaired.messages-max", default: 600, range: (1, 100_000), field: |s| &mut s.unpaired.messages },
    Number { name: "unpaired.window-s", default: 3600, range: (1, 604_800), field: |s| &mut s.unpaired.window_s },
    Number {
        name: "unpaired.text-bytes",
        default: 64 * KIB,
        range: (1, 64 * MIB),
        field: |s| &mut s.unpaired.text_bytes,
    },
    Number {
        name: "unpaired.identity-bytes",
        default: 4 * KIB,
        range: (16, MIB),
        field: |s| &mut s.unpaired.identity_bytes,
    },
    Number {
        name: "unpaired.channel-bytes",
        default: 64 * MIB,
        range: (KIB, 64 * GIB),
        field: |s| &mut s.unpaired.channel_bytes,
    },
    Number { name: UpdateLimits::SOURCES, default: 64, range: (1, 1000), field: |s| &mut s.update.sources },
    Number {
        name: UpdateLimits::SOURCE_BYTES,
        default: 256_000,
        range: (1, 64 * MIB),
        field: |s| &mut s.update.source_bytes,
    },
    Number { name: UpdateLimits::CHANGES, default: 64, range: (1, 1000), field: |s| &mut s.update.changes },
    Number {
        name: UpdateLimits::CHANGE_BYTES,
        default: 512_000,
        range: (1, 64 * MIB),
        field: |s| &mut s.update.change_bytes,
    },
    Number { name: "import.skipped-max", default: 100, range: (0, 100_000), field: |s| &mut s.import_skipped },
    Number {
        name: "import.commit-bytes",
        default: 4 * MIB,
        range: (1, 64 * MIB),
        field: |s| &mut s.import_commit_bytes,
    },
    Number {
        name: "import.commit-conversations",
        default: 256,
        range: (1, 10_000),
        field: |s| &mut s.import_commit_conversations,
    },
    Number {
        name: Preview::RECORDS,
        default: 3_000_000,
        range: (0, 10_000_000),
        field: |s| &mut s.import_preview_records,
    },
    Number {
        name: TurnLimits::BATCH_TOKENS,
        default: 16_000,
        range: (1, 1_000_000),
        field: |s| &mut s.turns.batch_tokens,
    },
    Number { name: TurnLimits::SETTLED_S, default: 3600, range: (0, 604_800), field: |s| &mut s.turns.settled_s },
    Number { name: TurnLimits::IDLE_S, default: 1800, range: (1, 604_800), field: |s| &mut s.turns.idle_s },
    Number { name: UpkeepLimits::BATCHES, default: 5, range: (1, 100_000), field: |s| &mut s.upkeep.batches },
    Number { name: UpkeepLimits::TOKENS, default: 40_000, range: (1, 100_000_000), field: |s| &mut s.upkeep.tokens },
    Number { name: UpkeepLimits::WHOLE_S, default: 86_400, range: (60, 31_536_000), field: |s| &mut s.upkeep.whole_s },
    Number { name: WriterLimits::ROUNDS, default: 20, range: (1, 100), field: |s| &mut s.writer.rounds },
    Number {
        name: WriterLimits::MAX_OUTPUT,
        default: 8192,
        range: (256, 1_000_000),
        field: |s| &mut s.writer.max_output,
    },
    Number {
        name: WriterLimits::DEADLINE_MS,
        default: 120_000,
        range: (1000, 3_600_000),
        field: |s| &mut s.writer.deadline_ms,
    },
    Number {
        name: WriterLimits::REPLY_BYTES,
        default: 256 * KIB,
        range: (KIB, 64 * MIB),
        field: |s| &mut s.writer.reply_bytes,
    },
    Number { name: WriterLimits::CALLS, default: 16, range: (1, 128), field: |s| &mut s.writer.calls },
    Number {
        name: WriterLimits::CONTEXT_BYTES,
        default: 384 * KIB,
        range: (16 * KIB, 64 * MIB),
        field: |s| &mut s.writer.context_bytes,
    },
    Number {
        name: WriterLimits::LISTING_BYTES,
        default: 16 * KIB,
        range: (0, MIB),
        field: |s| &mut s.writer.listing_bytes,
    },
    Number { name: WriterLimits::BLOCKS, default: 24, range: (0, 1000), field: |s| &mut s.writer.blocks },
    Number {
        name: WriterLimits::BLOCK_BYTES,
        default: 32 * KIB,
        range: (0, MIB),
        field: |s| &mut s.writer.block_bytes,
    },
    Number {
        name: WriterLimits::TURN_BYTES,
        default: 64 * KIB,
        range: (KIB, 64 * MIB),
        field: |s| &mut s.writer.turn_bytes,
    },
    Number {
        name: WriterLimits::ANSWER_BYTES,
        default: 32 * KIB,
        range: (KIB, MIB),
        field: |s| &mut s.writer.answer_bytes,
    },
    Number { name: WriterLimits::REPLANS, default: 5, range: (0, 100), field: |s| &mut s.writer.replans },
    Number {
        name: WriterLimits::SECOND_TOKENS,
        default: 4000,
        range: (1, 1_000_000),
        field: |s| &mut s.writer.second_tokens,
    },
    Number {
        name: OrganiserLimits::FILE_BYTES,
        default: 16 * KIB,
        range: (KIB, 64 * MIB),
        field: |s| &mut s.organiser.file_bytes,
    },
    Number {
        name: OrganiserLimits::FILE_BLOCKS,
        default: 40,
        range: (1, 10_000),
        field: |s| &mut s.organiser.file_blocks,
    },
    Number { name: OrganiserLimits::FILES, default: 8, range: (1, 100), field: |s| &mut s.organiser.files },
    Number {
        name: OrganiserLimits::SHOWN_BYTES,
        default: 64 * KIB,
        range: (KIB, 64 * MIB),
        field: |s| &mut s.organiser.shown_bytes,
    },
    Number {
        name: WriterLimits::SALVAGE_BYTES,
        default: 128 * KIB,
        range: (KIB, 64 * MIB),
        field: |s| &mut s.writer.salvage_bytes,
    },
    Number {
        name: WriterLimits::SALVAGE_TOKENS,
        default: 1024,
        range: (64, 100_000),
        field: |s| &mut s.writer.salvage_tokens,
    },
    Number { name: LOCK_WAIT, default: INTERACTIVE_WAIT_MS, range: (0, 600_000), field: |s| &mut s.lock_wait_ms },
];

const BACKEND: &str = "backend";
const BACKENDS: Expected = Expected::Words("`files` or `none`");
const CALLER: &str = "caller";
const CALLERS: Expected = Expected::Words("`interactive` or `background`");
const OWNER: &str = "owner.principal";
const OWNER_BYTES_MAX: u64 = 1024;
const PROVIDER: &str = "update.provider";
const PROVIDER_BYTES_MAX: u64 = 64;
const LOCK_WAIT: &str = "lock.wait-ms";
const INTERACTIVE_WAIT_MS: u64 = 10_000;
const BACKGROUND_WAIT_MS: u64 = 1_000;

impl Default for Settings {
    fn default() -> Self {
        let mut settings = Self {
            backend: Backend::default(),
            caller: Caller::default(),
            owner_principal: None,
            batch_bytes: 0,
            header_bytes: 0,
            conversation_bytes: 0,
            conversation_messages: 0,
            findings: 0,
            records: 0,
            topics_bytes: 0,
            query_bytes: 0,
            index_bytes: 0,
            record_bytes: 0,
            top_k_max: 0,
            resident_bytes: 0,
            hit_bytes: 0,
            embed_texts: 0,
            embed_bytes: 0,
            embed_ms: 0,
            vectors_bytes: 0,
            recall_tokens: 0,
            recall_memories: 0,
            weights: Weights::DEFAULT,
            lines: LineWeights::DEFAULT,
            get_lines: 0,
            get_bytes: 0,
            browse_files: 0,
            browse_blocks: 0,
            references_chars: 0,
            grep_matches: 0,
            grep_context: 0,
            grep_line_chars: 0,
            timeline_entries: 0,
            views: ViewLimits::default(),
            import_skipped: 0,
            import_commit_bytes: 0,
            import_commit_conversations: 0,
            import_preview_records: 0,
            lock_wait_ms: 0,
            update_provider: DEFAULT_PROVIDER.to_owned(),
            update: UpdateLimits::default(),
            turns: TurnLimits::default(),
            upkeep: UpkeepLimits::default(),
            writer: WriterLimits::default(),
            organiser: OrganiserLimits::default(),
            unpaired: UnpairedLimits::default(),
        };
        for number in NUMBERS {
            *(number.field)(&mut settings) = number.default;
        }
        settings
    }
}

impl Settings {
    /// The defaults, with each of `pairs` (name, value) applied in order.
    ///
    /// # Errors
    /// The first pair that names no setting or has no allowed value.
    pub fn parse<'a>(pairs: impl IntoIterator<Item = (&'a str, &'a str)>) -> Result<Self, SettingError> {
        let mut settings = Self::default();
        let mut is_wait_given = false;
        for (name, value) in pairs {
            settings.set(name, value)?;
            is_wait_given |= name == LOCK_WAIT;
        }
        if !is_wait_given {
            settings.lock_wait_ms = settings.caller.lock_wait_ms();
        }
        Ok(settings)
    }

    fn set(&mut self, name: &str, value: &str) -> Result<(), SettingError> {
        if name == BACKEND {
            self.backend = match value {
                "files" => Backend::Files,
                "none" => Backend::None,
                _ => return Err(wrong(BACKEND, value, BACKENDS)),
            };
            return Ok(());
        }
        if name == CALLER {
            self.caller = match value {
                "interactive" => Caller::Interactive,
                "background" => Caller::Background,
                _ => return Err(wrong(CALLER, value, CALLERS)),
            };
            return Ok(());
        }
        if name == OWNER {
            if value.trim().is_empty() || value.len() as u64 > OWNER_BYTES_MAX {
                return Err(wrong(OWNER, value, Expected::Text(OWNER_BYTES_MAX)));
            }
            self.owner_principal = Some(value.to_owned());
            return Ok(());
        }
        if name == PROVIDER {
            if !is_provider(value) || value.len() as u64 > PROVIDER_BYTES_MAX {
                return Err(wrong(PROVIDER, value, Expected::Provider(PROVIDER_BYTES_MAX)));
            }
            value.clone_into(&mut self.update_provider);
            return Ok(());
        }
        let Some(found) = NUMBERS.iter().find(|number| number.name == name) else {
            return Err(SettingError::Unknown { name: name.to_owned() });
        };
        *(found.field)(self) = number(found.name, found.range, value)?;
        Ok(())
    }

    /// The part of them that archives, batches and reports obey.
    #[must_use]
    pub fn limits(&self) -> Limits {
        Limits {
            header_bytes: usize::try_from(self.header_bytes).unwrap_or(usize::MAX),
            batch_bytes: self.batch_bytes,
            conversation_bytes: self.conversation_bytes,
            conversation_messages: self.conversation_messages,
            findings_max: self.findings,
            records_max: self.records,
            topics_bytes: self.topics_bytes,
        }
    }

    /// Name, default (empty: not set) and range of every setting, in the order FORMAT.md lists them.
    pub fn table() -> impl Iterator<Item = (&'static str, String, Expected)> {
        let words = [
            (BACKEND, "files".to_owned(), BACKENDS),
            (CALLER, "interactive".to_owned(), CALLERS),
            (OWNER, String::new(), Expected::Text(OWNER_BYTES_MAX)),
            (PROVIDER, DEFAULT_PROVIDER.to_owned(), Expected::Provider(PROVIDER_BYTES_MAX)),
        ];
        words.into_iter().chain(
            NUMBERS.iter().map(|number| {
                (number.name, number.default.to_string(), Expected::Number(number.range.0, number.range.1))
            }),
        )
    }
}

/// Whether records can be archived under a provider of that name.
fn is_provider(name: &str) -> bool {
    SourceId::for_writing(&format!("{name}/t/m")).is_ok_and(|id| id.provider() == name)
}

fn wrong(name: &'static str, value: &str, expected: Expected) -> SettingError {
    SettingError::Value { name, value: value.chars().take(64).collect(), expected }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_are_within_their_own_ranges() {
        for number in NUMBERS {
            assert!((number.range.0..=number.range.1).contains(&number.default), "{}", number.name);
        }
    }

    #[test]
    fn limits_agree_with_the_layer_that_obeys_them() {
        assert_eq!(Settings::default().limits(), Limits::default());
        assert_eq!(Settings::default().unpaired, UnpairedLimits::default());
        assert_eq!(Settings::default().views, ViewLimits::default());
        assert_eq!(Settings::default().update, UpdateLimits::default());
        assert_eq!(Settings::default().turns, TurnLimits::default());
        assert_eq!(Settings::default().upkeep, UpkeepLimits::default());
        assert_eq!(Settings::default().writer, WriterLimits::default());
        assert_eq!(Settings::default().organiser, OrganiserLimits::default());
    }

    #[test]
    fn every_number_has_a_field_of_its_own() {
        let mut settings = Settings::default();
        for (place, number) in NUMBERS.iter().enumerate() {
            *(number.field)(&mut settings) = u64::MAX - place as u64;
        }
        for (place, number) in NUMBERS.iter().enumerate() {
            assert_eq!(*(number.field)(&mut settings), u64::MAX - place as u64, "{}", number.name);
        }
    }

    #[test]
    fn later_pairs_win_and_the_rest_stays() {
        let settings = Settings::parse([("get.lines", "7"), ("get.lines", "9"), ("backend", "none")]).unwrap();
        assert_eq!((settings.get_lines, settings.backend), (9, Backend::None));
        assert_eq!(settings.get_bytes, Settings::default().get_bytes);
    }

    #[test]
    fn who_waits_decides_how_long_unless_that_is_said() {
        let wait =
            |pairs: &[(&'static str, &'static str)]| Settings::parse(pairs.iter().copied()).unwrap().lock_wait_ms;
        assert_eq!(wait(&[]), 10_000);
        assert_eq!(wait(&[("caller", "interactive")]), 10_000);
        assert_eq!(wait(&[("caller", "background")]), 1_000);
        assert_eq!(wait(&[("lock.wait-ms", "7"), ("caller", "background")]), 7);
        assert!(matches!(Settings::parse([("caller", "me")]), Err(SettingError::Value { .. })));
    }

    #[test]
    fn names_and_values_that_do_not_exist_are_refused() {
        assert!(matches!(Settings::parse([("get.line", "7")]), Err(SettingError::Unknown { .. })));
        for value in ["", "-1", "+1", "1.0", " 1", "0", "1000001", "18446744073709551616", "１"] {
            assert!(matches!(Settings::parse([("get.lines", value)]), Err(SettingError::Value { .. })), "{value:?}");
        }
        assert!(matches!(Settings::parse([("backend", "None")]), Err(SettingError::Value { .. })));
        for blank in ["", " ", &"x".repeat(1025)] {
            assert!(matches!(Settings::parse([("owner.principal", blank)]), Err(SettingError::Value { .. })));
        }
        for provider in ["", "..", "a/b", "a\nb", "a<b", &"x".repeat(65)] {
            assert!(matches!(Settings::parse([("update.provider", provider)]), Err(SettingError::Value { .. })));
        }
        let named = Settings::parse([("update.provider", "我的 agent")]).unwrap();
        assert_eq!(named.update_provider, "我的 agent");
        let named = Settings::parse([("owner.principal", "owner/install/1")]).unwrap();
        assert_eq!(named.owner_principal.as_deref(), Some("owner/install/1"));
    }
}
