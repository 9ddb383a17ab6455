//! How the last writes went: what a writer can fail of, and the file that says so.
//!
//! The file is best effort and outside every transaction: that it cannot be read or written keeps nothing from being written to
//! memory. Knows its form and the closed list of codes. Must not know clocks: times come as they are to be written.

use crate::text::json_string;
use serde_json::Value;

macro_rules! codes {
    ($($(#[$doc:meta])* $name:ident = $text:literal, $retry:ident, $what:literal;)*) => {
        /// Why a writer failed (FORMAT.md, "Codes of writers").
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum WriterCode {
            $($(#[$doc])* $name,)*
        }

        impl WriterCode {
            /// All of them, in the order of FORMAT.md.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];

            /// The word that files and events carry.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$name => $text,)*
                }
            }

            /// What it is, for people.
            #[must_use]
            pub const fn what(self) -> &'static str {
                match self {
                    $(Self::$name => $what,)*
                }
            }

            /// Whether another try can help.
            #[must_use]
            pub const fn retry(self) -> Retry {
                match self {
                    $(Self::$name => Retry::$retry,)*
                }
            }
        }
    };
}

/// Whether another try can help.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retry {
    /// It can.
    Yes,
    /// Not before somebody has changed something.
    No,
    /// Whoever failed says.
    AsTold,
}

impl Retry {
    /// `yes`, `no` or `as told`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Yes => "yes",
            Self::No => "no",
            Self::AsTold => "as told",
        }
    }
}

codes! {
    /// Nobody said which session.
    MissingSessionId = "MISSING_SESSION_ID", No, "nobody said which session";
    /// The session's nodes cannot be read.
    SessionNodesUnavailable = "SESSION_NODES_UNAVAILABLE", AsTold, "the session's nodes cannot be read";
    /// A forced write changed nothing in memory; nothing is marked.
    NoProgress = "WRITER_NO_PROGRESS", No, "a forced write changed nothing in memory, so nothing is marked";
    /// Something a writer needs before it begins is missing.
    PreconditionFailed = "WRITER_PRECONDITION_FAILED", No, "something a writer needs before it begins is missing";
    /// No model is configured, or not so that it can be used.
    ProviderResolutionFailed = "MEMORY_PROVIDER_RESOLUTION_FAILED", AsTold, "no model is configured, or not so that it can be used";
    /// The model was not reached.
    ModelTransport = "MODEL_TRANSPORT", AsTold, "the model was not reached";
    /// The model was asked too often.
    ModelRateLimit = "MODEL_RATE_LIMIT", AsTold, "the model was asked too often";
    /// The model's provider failed.
    ModelProviderInternal = "MODEL_PROVIDER_INTERNAL", AsTold, "the model's provider failed";
    /// The key was not accepted.
    ModelAuthentication = "MODEL_AUTHENTICATION", AsTold, "the key was not accepted";
    /// The key may not do that.
    ModelAuthorization = "MODEL_AUTHORIZATION", AsTold, "the key may not do that";
    /// The provider does not take the request.
    ModelInvalidRequest = "MODEL_INVALID_REQUEST", AsTold, "the provider does not take the request";
    /// The request is longer than the model takes.
    ModelContextLength = "MODEL_CONTEXT_LENGTH", AsTold, "the request is longer than the model takes";
    /// The provider's policy forbids it.
    ModelContentPolicy = "MODEL_CONTENT_POLICY", AsTold, "the provider's policy forbids it";
    /// The model took too long.
    ModelTimeout = "MODEL_TIMEOUT", AsTold, "the model took too long";
    /// The model failed, and nobody says of what.
    ModelFailureUnknown = "MODEL_FAILURE_UNKNOWN", AsTold, "the model failed, and nobody says of what";
    /// The writer may only add, and changed what was there.
    AppendOnlyRequired = "APPEND_ONLY_REQUIRED", No, "the writer may only add, and changed what was there";
    /// The writer's changes were refused twice.
    CommitRejected = "COMMIT_REJECTED", No, "the writer's changes were refused twice";
    /// Another program kept changing memory meanwhile.
    ConcurrentUpdate = "CONCURRENT_UPDATE", Yes, "another program kept changing memory meanwhile";
    /// Nothing can be embedded.
    EmbeddingUnavailable = "EMBEDDING_UNAVAILABLE", No, "nothing can be embedded";
    /// The history did not take the commit.
    GitCommitFailed = "GIT_COMMIT_FAILED", No, "the history did not take the commit";
    /// The writer asked for something that cannot be.
    InvalidArgument = "INVALID_ARGUMENT", No, "the writer asked for something that cannot be";
    /// The writer's topic breaks the rules of topics.
    InvalidTopicFormat = "INVALID_TOPIC_FORMAT", No, "the writer's topic breaks the rules of topics";
    /// The writer cited what no archive has.
    MissingSource = "MISSING_SOURCE", No, "the writer cited what no archive has";
    /// The writer's patch does not fit.
    PatchConflict = "PATCH_CONFLICT", No, "the writer's patch does not fit";
    /// The writer named a path outside memory.
    PathOutsideWorkspace = "PATH_OUTSIDE_WORKSPACE", No, "the writer named a path outside memory";
    /// The writer changed what it may not.
    ReadOnlyPath = "READ_ONLY_PATH", No, "the writer changed what it may not";
    /// The commit failed of something else.
    TransactionFailureUnknown = "TRANSACTION_FAILURE_UNKNOWN", No, "the commit failed of something else";
    /// The writer failed of something else.
    WriterFailureUnknown = "WRITER_FAILURE_UNKNOWN", AsTold, "the writer failed of something else";
}

/// What kind of failure a model's was, in the words of the contract (`wit/model.wit`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ModelFailure {
    /// No model serves the purpose.
    Unconfigured,
    /// It was not reached.
    Transport,
    /// Asked too often.
    RateLimit,
    /// The provider failed.
    Provider,
    /// The key was not accepted.
    Authentication,
    /// The key may not do that.
    Authorization,
    /// The provider does not take the request.
    InvalidRequest,
    /// Longer than the model takes.
    ContextLength,
    /// The provider's policy forbids it.
    ContentPolicy,
    /// It took too long.
    Timeout,
    /// The provider cannot do what was asked for.
    Unsupported,
    /// The host was told to stop it.
    Cancelled,
    /// Nobody says.
    Unknown,
}

/// A failure as status and events carry it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WriterFailure {
    /// Of what.
    pub code: WriterCode,
    /// Another try can help.
    pub retryable: bool,
}

impl WriterCode {
    /// Reads a word of the list.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|code| code.as_str() == word)
    }

    /// Whether a refusal of an update may come with this code.
    fn is_of_transactions(self) -> bool {
        (Self::AppendOnlyRequired..=Self::ReadOnlyPath).contains(&self)
    }
}

impl WriterFailure {
    /// Of something that nobody can name. Trying again what is not understood would be trying for ever.
    pub const UNKNOWN: Self = Self { code: WriterCode::WriterFailureUnknown, retryable: false };

    /// Of a refusal or failure of a commit with this code (FORMAT.md, "Refusals"). Codes that no list of writers has are
    /// [`WriterCode::TransactionFailureUnknown`].
    #[must_use]
    pub fn of_transaction(code: &str) -> Self {
        let code = WriterCode::parse(code)
            .filter(|code| code.is_of_transactions())
            .unwrap_or(WriterCode::TransactionFailureUnknown);
        Self { code, retryable: code.retry() == Retry::Yes }
    }

    /// Of a model. Whether another try can help is the host's to say; of being stopped it always can.
    #[must_use]
    pub const fn of_model(kind: ModelFailure, retryable: bool) -> Self {
        let code = match kind {
            ModelFailure::Unconfigured => WriterCode::ProviderResolutionFailed,
            ModelFailure::Transport => WriterCode::ModelTransport,
            ModelFailure::RateLimit => WriterCode::ModelRateLimit,
            ModelFailure::Provider => WriterCode::ModelProviderInternal,
            ModelFailure::Authentication => WriterCode::ModelAuthentication,
            ModelFailure::Authorization => WriterCode::ModelAuthorization,
            ModelFailure::InvalidRequest | ModelFailure::Unsupported => WriterCode::ModelInvalidRequest,
            ModelFailure::ContextLength => WriterCode::ModelContextLength,
            ModelFailure::ContentPolicy => WriterCode::ModelContentPolicy,
            ModelFailure::Timeout => WriterCode::ModelTimeout,
            ModelFailure::Cancelled | ModelFailure::Unknown => WriterCode::ModelFailureUnknown,
        };
        Self { code, retryable: retryable || matches!(kind, ModelFailure::Cancelled) }
    }
}

/// How a write went, as the file remembers it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LastOutcome {
    /// It wrote.
    Success,
    /// It failed.
    Failure,
}

/// The last failure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LastFailure {
    /// When, as it was written.
    pub at: String,
    /// Of what, and whether another try can help.
    pub failure: WriterFailure,
}

/// What the file says. Nothing of it is known where the file is missing, damaged or of another version.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WriterStatus {
    /// How the last write went.
    pub last_outcome: Option<LastOutcome>,
    /// When one last succeeded, as it was written.
    pub last_success_at: Option<String>,
    /// The last that failed, also if others have succeeded since.
    pub last_failure: Option<LastFailure>,
}

impl WriterStatus {
    /// The file's path within the runtime directory.
    pub const PATH: &'static str = "writer-status.json";

    /// The empty file beside it, which whoever changes the status holds a lock on meanwhile.
    pub const LOCK_PATH: &'static str = "writer-status.json.lock";

    /// Reads the file. Each member is taken by itself: one that is not as it should be is unknown, and costs no other.
    #[must_use]
    pub fn read(content: &str) -> Self {
        let Ok(Value::Object(members)) = serde_json::from_str(content) else { return Self::default() };
        // The other program compares with 1, and Python's `True` is 1.
        let is_known = match members.get("version") {
            Some(Value::Bool(is_one)) => *is_one,
            Some(version) => version.as_f64() == Some(1.0),
            None => false,
        };
        if !is_known {
            return Self::default();
        }
        let last_outcome = match members.get("last_outcome").and_then(Value::as_str) {
            Some("success") => Some(LastOutcome::Success),
            Some("failure") => Some(LastOutcome::Failure),
            _ => None,
        };
        let last_failure = members.get("last_failure").and_then(|failure| {
            let code = WriterCode::parse(failure.get("reason_code")?.as_str()?)?;
            let retryable = failure.get("retryable")?.as_bool()?;
            Some(LastFailure {
                at: failure.get("at")?.as_str()?.to_owned(),
                failure: WriterFailure { code, retryable },
            })
        });
        let last_success_at = members.get("last_success_at").and_then(Value::as_str).map(str::to_owned);
        Self { last_outcome, last_success_at, last_failure }
    }

    /// After a write that succeeded at `now`. What failed last is remembered.
    #[must_use]
    pub fn succeeded(self, now: &str) -> Self {
        Self { last_outcome: Some(LastOutcome::Success), last_success_at: Some(now.to_owned()), ..self }
    }

    /// After one that failed at `now`. What succeeded last is remembered.
    #[must_use]
    pub fn failed(self, now: &str, failure: WriterFailure) -> Self {
        let last_failure = Some(LastFailure { at: now.to_owned(), failure });
        Self { last_outcome: Some(LastOutcome::Failure), last_failure, ..self }
    }

    /// The file's content.
    #[must_use]
    pub fn file(&self) -> String {
        let outcome = self.last_outcome.map_or("null", |outcome| match outcome {
            LastOutcome::Success => "\"success\"",
            LastOutcome::Failure => "\"failure\"",
        });
        let success = self.last_success_at.as_deref().map_or_else(|| "null".to_owned(), json_string);
        let failure = self.last_failure.as_ref().map_or_else(
            || "null".to_owned(),
            |LastFailure { at, failure }| {
                format!(
                    "{{\n    \"at\": {},\n    \"reason_code\": \"{}\",\n    \"retryable\": {}\n  }}",
                    json_string(at),
                    failure.code.as_str(),
                    failure.retryable
                )
            },
        );
        format!(
            "{{\n  \"version\": 1,\n  \"last_outcome\": {outcome},\n  \"last_success_at\": {success},\n  \"last_failure\": {failure}\n}}\n"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_back() {
        let failure = WriterFailure::of_model(ModelFailure::Timeout, true);
        let status = WriterStatus::default().succeeded("then \"\n").failed("now", failure);
        assert_eq!(WriterStatus::read(&status.file()), status);
        assert_eq!(WriterStatus::read(&WriterStatus::default().file()), WriterStatus::default());
    }

    #[test]
    fn only_transactions_speak_for_themselves() {
        for code in WriterCode::ALL {
            let failure = WriterFailure::of_transaction(code.as_str());
            assert_eq!(
                failure.code == *code,
                code.is_of_transactions() || *code == WriterCode::TransactionFailureUnknown
            );
        }
        for code in ["MEMORY_NOT_FOUND", "AUTHORITY_TIER_MISSING", "", "commit_rejected"] {
            let failure = WriterFailure::of_transaction(code);
            assert_eq!(failure, WriterFailure { code: WriterCode::TransactionFailureUnknown, retryable: false });
        }
        assert!(WriterFailure::of_transaction("CONCURRENT_UPDATE").retryable);
    }
}
