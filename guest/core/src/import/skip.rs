//! What was left out of a conversation, and why.

/// Something that was left out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Skipped {
    /// Its id in the export, or its line, as far as known.
    pub item: Option<String>,
    /// A [`SkipReason`], or a reason why a record is refused (FORMAT.md, "Refusals").
    pub reason: &'static str,
    /// For people.
    pub message: String,
}

macro_rules! skip_reasons {
    ($($(#[$doc:meta])* $name:ident = $text:literal, $message:literal;)*) => {
        /// Why something of a conversation is not kept.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum SkipReason {
            $($(#[$doc])* $name,)*
        }

        impl SkipReason {
            /// All of them, in the order of FORMAT.md.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];

            /// The stable, kebab-case word.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$name => $text,)*
                }
            }

            /// The same for people.
            #[must_use]
            pub const fn message(self) -> &'static str {
                match self {
                    $(Self::$name => $message,)*
                }
            }
        }
    };
}

skip_reasons! {
    /// What the model was told before anybody spoke.
    SystemPrompt = "system-prompt", "instructions to the model; nobody said it in the conversation";
    /// The model called a tool.
    ToolCall = "tool-call", "the model called a tool";
    /// A tool answered.
    ToolResult = "tool-result", "what a tool answered";
    /// What the model wrote for itself.
    Thinking = "thinking", "what the model wrote for itself";
    /// The program that was talked with did not show it.
    Hidden = "hidden", "not shown in the conversation";
    /// Between the model and helpers of its own.
    Sidechain = "sidechain", "between the model and a helper of its own; no person took part";
    /// A summary that a program made of what was said.
    Summary = "summary", "a summary that the program made of what was said before";
    /// Written by the program that was talked with, not by a person or the model.
    ProgramMessage = "program-message", "written by the program itself";
    /// Taken back by the person.
    Rewound = "rewound", "taken back";
    /// On an authority that may not add to memory.
    NotPermitted = "not-permitted", "came about on an authority that may not add to memory";
    /// It should say on whose authority it came about, and does not.
    NoAuthority = "no-authority", "does not say on whose authority it came about, as it should";
    /// There is no text in it.
    Empty = "empty", "there is no text in it";
    /// It has no id, and none is made up.
    NoId = "no-id", "has no id, so it could not be known again";
    /// It says who spoke with a word that is not known.
    UnknownRole = "unknown-role", "who spoke is said with a word that is not known";
    /// It is of a kind that is not known, without text.
    UnknownContent = "unknown-content", "of a kind that is not known, and without text";
    /// It does not have the form that it should.
    Malformed = "malformed", "does not have the form that it should";
    /// Something is missing without which it cannot be kept.
    MissingField = "missing-field", "provider, thread, id, role or text is missing";
    /// Longer than a batch may be.
    RecordTooLarge = "record-too-large", "longer than limits.batch-bytes allows";
    /// Longer than a conversation may be.
    LineTooLong = "line-too-long", "longer than limits.conversation-bytes allows";
}

/// Collects what is left out; keeps the first so many.
#[derive(Clone, Debug, Default)]
pub(super) struct Skips {
    pub(super) kept: Vec<Skipped>,
    pub(super) count: u64,
    max: usize,
}

impl Skips {
    pub(super) fn new(max: usize) -> Self {
        Self { max, ..Self::default() }
    }

    pub(super) fn add(&mut self, item: Option<&str>, reason: SkipReason) {
        self.add_refused(item, reason.as_str(), reason.message());
    }

    pub(super) fn add_refused(&mut self, item: Option<&str>, reason: &'static str, message: &str) {
        self.count += 1;
        if self.kept.len() < self.max {
            let item = item.map(|item| item.chars().take(ITEM_CHARS).collect());
            self.kept.push(Skipped { item, reason, message: message.to_owned() });
        }
    }

    pub(super) fn append(&mut self, other: Self) {
        self.count += other.count;
        let room = self.max.saturating_sub(self.kept.len());
        self.kept.extend(other.kept.into_iter().take(room));
    }
}

/// So much of an id is shown: an export may have any.
const ITEM_CHARS: usize = 256;
