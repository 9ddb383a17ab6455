//! How much a writer may do, read and say.

/// Limits of one run. Field names are the settings' (`writer.rounds`, …).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WriterLimits {
    /// Replies of the model.
    pub rounds: u64,
    /// Tokens of one reply.
    pub max_output: u64,
    /// Milliseconds that one reply may take.
    pub deadline_ms: u64,
    /// Bytes of a reply; a longer one ends the run.
    pub reply_bytes: u64,
    /// Calls of one reply that are heard; further ones are left out, and the model is told.
    pub calls: u64,
    /// Bytes of the conversation that are sent; older answers of tools are left out first.
    pub context_bytes: u64,
    /// Bytes of the list of topics.
    pub listing_bytes: u64,
    /// Blocks that are shown because the turns may be about them.
    pub blocks: u64,
    /// Bytes of those together.
    pub block_bytes: u64,
    /// Bytes of one turn that are shown.
    pub turn_bytes: u64,
    /// Bytes of what a tool answers.
    pub answer_bytes: u64,
    /// How often a commit is planned anew because memory has changed meanwhile.
    pub replans: u64,
    /// Tokens of turns that are offered a second time together.
    pub second_tokens: u64,
    /// Bytes of messages that are read to say what of them is worth keeping.
    pub salvage_bytes: u64,
    /// Tokens of what is kept of them.
    pub salvage_tokens: u64,
}

impl WriterLimits {
    /// The setting's name of [`WriterLimits::rounds`].
    pub const ROUNDS: &'static str = "writer.rounds";
    /// The setting's name of [`WriterLimits::max_output`].
    pub const MAX_OUTPUT: &'static str = "writer.max-output";
    /// The setting's name of [`WriterLimits::deadline_ms`].
    pub const DEADLINE_MS: &'static str = "writer.deadline-ms";
    /// The setting's name of [`WriterLimits::reply_bytes`].
    pub const REPLY_BYTES: &'static str = "writer.reply-bytes";
    /// The setting's name of [`WriterLimits::calls`].
    pub const CALLS: &'static str = "writer.calls";
    /// The setting's name of [`WriterLimits::context_bytes`].
    pub const CONTEXT_BYTES: &'static str = "writer.context-bytes";
    /// The setting's name of [`WriterLimits::listing_bytes`].
    pub const LISTING_BYTES: &'static str = "writer.listing-bytes";
    /// The setting's name of [`WriterLimits::blocks`].
    pub const BLOCKS: &'static str = "writer.blocks";
    /// The setting's name of [`WriterLimits::block_bytes`].
    pub const BLOCK_BYTES: &'static str = "writer.block-bytes";
    /// The setting's name of [`WriterLimits::turn_bytes`].
    pub const TURN_BYTES: &'static str = "writer.turn-bytes";
    /// The setting's name of [`WriterLimits::answer_bytes`].
    pub const ANSWER_BYTES: &'static str = "writer.answer-bytes";
    /// The setting's name of [`WriterLimits::replans`].
    pub const REPLANS: &'static str = "writer.replans";
    /// The setting's name of [`WriterLimits::second_tokens`].
    pub const SECOND_TOKENS: &'static str = "writer.second-tokens";
    /// The setting's name of [`WriterLimits::salvage_bytes`].
    pub const SALVAGE_BYTES: &'static str = "salvage.bytes";
    /// The setting's name of [`WriterLimits::salvage_tokens`].
    pub const SALVAGE_TOKENS: &'static str = "salvage.tokens";
}

impl Default for WriterLimits {
    fn default() -> Self {
        Self {
            rounds: 20,
            max_output: 8192,
            deadline_ms: 120_000,
            reply_bytes: 256 * 1024,
            calls: 16,
            context_bytes: 384 * 1024,
            listing_bytes: 16 * 1024,
            blocks: 24,
            block_bytes: 32 * 1024,
            turn_bytes: 64 * 1024,
            answer_bytes: 32 * 1024,
            replans: 5,
            second_tokens: 4000,
            salvage_bytes: 128 * 1024,
            salvage_tokens: 1024,
        }
    }
}

/// Limits of putting memory in order. Field names are the settings'.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OrganiserLimits {
    /// Bytes from which on a topic has outgrown itself.
    pub file_bytes: u64,
    /// Blocks from which on it has.
    pub file_blocks: u64,
    /// Topics that one run is about.
    pub files: u64,
    /// Bytes of them that are shown in one run.
    pub shown_bytes: u64,
}

impl OrganiserLimits {
    /// The setting's name of [`OrganiserLimits::file_bytes`].
    pub const FILE_BYTES: &'static str = "organiser.file-bytes";
    /// The setting's name of [`OrganiserLimits::file_blocks`].
    pub const FILE_BLOCKS: &'static str = "organiser.file-blocks";
    /// The setting's name of [`OrganiserLimits::files`].
    pub const FILES: &'static str = "organiser.files";
    /// The setting's name of [`OrganiserLimits::shown_bytes`].
    pub const SHOWN_BYTES: &'static str = "organiser.shown-bytes";
}

impl Default for OrganiserLimits {
    fn default() -> Self {
        Self { file_bytes: 16 * 1024, file_blocks: 40, files: 8, shown_bytes: 64 * 1024 }
    }
}
