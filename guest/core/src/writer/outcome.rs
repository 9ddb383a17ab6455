//! How a run ended, and what came of it.

use crate::turns::{ModelFailure, WriterCode, WriterFailure};
use crate::update::Fault;

macro_rules! words {
    ($(#[$head:meta])* $name:ident { $($(#[$doc:meta])* $variant:ident = $text:literal, $what:literal;)* }) => {
        $(#[$head])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name {
            $($(#[$doc])* $variant,)*
        }

        impl $name {
            /// All of them, in the order of FORMAT.md.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// The stable, kebab-case word.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $text,)*
                }
            }

            /// For people and models: what it is.
            #[must_use]
            pub const fn what(self) -> &'static str {
                match self {
                    $(Self::$variant => $what,)*
                }
            }
        }
    };
}
pub(super) use words;

words! {
    /// Of what a run failed. Finer than the closed list of [`WriterCode`], which it comes with.
    Why {
        /// The model gave no reply.
        Model = "model-failed", "the model gave no reply";
        /// It went on talking.
        Prose = "prose-only", "the model answered twice in a row without calling a tool";
        /// It went on calling.
        Rounds = "too-many-rounds", "the model used up its rounds without submitting anything";
        /// It said far too much.
        ReplyTooLarge = "reply-too-large", "the model's reply is longer than writer.reply-bytes allows";
        /// It ran out of tokens twice.
        ReplyCut = "reply-cut", "the model's replies were cut at writer.max-output twice in a row";
        /// The provider stopped it.
        Policy = "reply-stopped", "the provider's policy stopped the reply";
        /// What it wants was refused, and once more.
        RefusedTwice = "refused-twice", "the changes were refused, and so was what came of the reasons";
        /// Memory kept changing.
        Stale = "memory-kept-changing", "memory changed each time the changes were to be committed";
        /// There is more to say to the model than it may be told.
        ContextFull = "context-full", "what the model has to be told is longer than writer.context-bytes or the model allows";
        /// The commit could not be made.
        CommitFailed = "commit-failed", "the commit failed";
        /// A tool could not answer.
        ToolFailed = "tool-failed", "memory could not be read for the model";
    }
}

/// One reason for which changes were refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The coarse code (FORMAT.md, "Refusals").
    pub code: &'static str,
    /// The fine, kebab-case word.
    pub reason: &'static str,
    /// The topic it is about.
    pub path: Option<String>,
    /// The line in it, from 1.
    pub line: Option<u64>,
    /// Where in the changes: `changes[2].content`, counted over all calls of the run.
    pub place: Option<String>,
    /// What it is about: an id, a label.
    pub subject: Option<String>,
    /// What is wrong and what to do.
    pub message: String,
}

/// What the model calls the list that an update calls `memory_changes`.
const CHANGES: (&str, &str) = ("memory_changes", "changes");

impl From<&Fault> for Refusal {
    fn from(fault: &Fault) -> Self {
        let place = fault.field.as_ref().map(|field| match field.strip_prefix(CHANGES.0) {
            Some(rest) => format!("{}{rest}", CHANGES.1),
            None => field.clone(),
        });
        Self {
            code: fault.why.code().as_str(),
            reason: fault.why.as_str(),
            path: fault.path.clone(),
            line: fault.line,
            place,
            subject: fault.subject.clone(),
            message: fault.message.clone(),
        }
    }
}

impl core::fmt::Display for Refusal {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{} {}: ", self.code, self.reason)?;
        if let Some(place) = &self.place {
            write!(f, "{place}: ")?;
        }
        match (&self.path, self.line) {
            (Some(path), Some(line)) => write!(f, "{path}:{line}: ")?,
            (Some(path), None) => write!(f, "{path}: ")?,
            (None, _) => {}
        }
        if let Some(subject) = &self.subject {
            write!(f, "{subject}: ")?;
        }
        f.write_str(&self.message)
    }
}

/// A run that failed. Nothing of it is in memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// What status and events carry.
    pub failure: WriterFailure,
    /// Of what, more exactly.
    pub why: Why,
    /// For people.
    pub message: String,
    /// Of [`Why::RefusedTwice`]: every reason of the second refusal.
    pub refusals: Vec<Refusal>,
}

impl Failure {
    /// Of a model that does what it should not. Asking it the same again would be asking for the same answer.
    pub(super) fn of(why: Why) -> Self {
        let failure = match why {
            Why::RefusedTwice => WriterFailure { code: WriterCode::CommitRejected, retryable: false },
            Why::Stale => WriterFailure { code: WriterCode::ConcurrentUpdate, retryable: true },
            Why::ContextFull => WriterFailure::of_model(ModelFailure::ContextLength, false),
            Why::Policy => WriterFailure::of_model(ModelFailure::ContentPolicy, false),
            _ => WriterFailure::UNKNOWN,
        };
        Self { failure, why, message: why.what().to_owned(), refusals: Vec::new() }
    }

    /// With what else there is to say.
    pub(super) fn about(self, message: &str) -> Self {
        Self { message: format!("{}: {message}", self.why.what()), ..self }
    }
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ending {
    /// Memory has changed, by one commit.
    Committed {
        /// Its revision after that.
        revision: String,
    },
    /// Nothing has changed, and the model says why.
    NoProgress {
        /// In its words; empty: it gave none.
        reason: String,
    },
    /// It failed; nothing has changed.
    Failed(Failure),
}

/// What a run was given.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Given {
    /// Turns, or records.
    pub records: u64,
    /// Bytes of what they say.
    pub bytes: u64,
    /// Tokens, as they were counted.
    pub tokens: u64,
}

/// What a run has put into topics. All nought unless it was [committed](Ending::Committed).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Written {
    /// Bytes of new and rewritten paragraphs.
    pub bytes: u64,
    /// New ones.
    pub created: u64,
    /// Rewritten ones.
    pub updated: u64,
    /// Ids that are gone.
    pub deleted: u64,
    /// Ids that stand somewhere else.
    pub moved: u64,
}

/// What a run has used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Replies and failures of the model.
    pub rounds: u64,
    /// Tokens of requests, as far as the provider says.
    pub tokens_in: u64,
    /// Tokens of replies, likewise.
    pub tokens_out: u64,
    /// Rounds of which it did not say.
    pub uncounted: u64,
}

/// What came of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// How it ended.
    pub ending: Ending,
    /// What it was given.
    pub given: Given,
    /// What it has written.
    pub written: Written,
    /// Turns that the commit cites, in their order.
    pub cited: Vec<String>,
    /// The others that were given.
    pub uncited: Vec<String>,
    /// Topics that have changed.
    pub files: Vec<String>,
    /// What it has used.
    pub usage: Usage,
    /// The model that answered last, as the provider names it.
    pub model: Option<String>,
}

impl Outcome {
    /// Whether memory has changed: whether turns may be marked.
    #[must_use]
    pub const fn has_changed_memory(&self) -> bool {
        matches!(self.ending, Ending::Committed { .. })
    }

    /// What status and events carry; none: it did not fail.
    #[must_use]
    pub const fn failure(&self) -> Option<WriterFailure> {
        match &self.ending {
            Ending::Failed(failure) => Some(failure.failure),
            Ending::Committed { .. } | Ending::NoProgress { .. } => None,
        }
    }
}
