//! The contract's values and the host's own, into each other.
//!
//! Both say the same; they are two sets of types so that the store and the lock know nothing of the engine. All of it is
//! here, one `From` a direction that is needed, and nothing is decided.

use crate::bindings::memory::recollex::memory as wit;
use crate::lock;
use crate::model;
use crate::observer;
use crate::store;

impl From<wit::store::Area> for store::Area {
    fn from(area: wit::store::Area) -> Self {
        match area {
            wit::store::Area::Tree => Self::Tree,
            wit::store::Area::Runtime => Self::Runtime,
            wit::store::Area::Cache => Self::Cache,
        }
    }
}

impl From<store::Kind> for wit::store::Kind {
    fn from(kind: store::Kind) -> Self {
        match kind {
            store::Kind::File => Self::File,
            store::Kind::Symlink => Self::Symlink,
            store::Kind::Special => Self::Special,
            store::Kind::Undecodable => Self::Undecodable,
            store::Kind::Unreadable => Self::Unreadable,
        }
    }
}

impl From<wit::store::Stamp> for store::Stamp {
    fn from(stamp: wit::store::Stamp) -> Self {
        let wit::store::Stamp { size, token, racy } = stamp;
        Self { size, token, racy }
    }
}

impl From<store::Stamp> for wit::store::Stamp {
    fn from(stamp: store::Stamp) -> Self {
        let store::Stamp { size, token, racy } = stamp;
        Self { size, token, racy }
    }
}

impl From<store::Entry> for wit::store::Entry {
    fn from(entry: store::Entry) -> Self {
        let store::Entry { path, kind, stamp } = entry;
        Self { path, kind: kind.into(), stamp: stamp.into() }
    }
}

impl From<store::Page> for wit::store::Page {
    fn from(page: store::Page) -> Self {
        let store::Page { entries, next, generation } = page;
        Self { entries: entries.into_iter().map(Into::into).collect(), next, generation }
    }
}

impl From<store::TextChunk> for wit::store::TextChunk {
    fn from(chunk: store::TextChunk) -> Self {
        let store::TextChunk { text, next, eof, stamp } = chunk;
        Self { text, next, eof, stamp: stamp.into() }
    }
}

impl From<store::ByteChunk> for wit::store::ByteChunk {
    fn from(chunk: store::ByteChunk) -> Self {
        let store::ByteChunk { data, eof, stamp } = chunk;
        Self { data, eof, stamp: stamp.into() }
    }
}

impl From<store::StoreError> for wit::store::StoreError {
    fn from(error: store::StoreError) -> Self {
        match error {
            store::StoreError::NotFound => Self::NotFound,
            store::StoreError::NotText(offset) => Self::NotText(offset),
            store::StoreError::Changed => Self::Changed,
            store::StoreError::Denied(why) => Self::Denied(why),
            store::StoreError::Limit { name, value } => Self::Limit((name, value)),
            store::StoreError::Full => Self::Full,
            store::StoreError::Io(what) => Self::Io(what),
        }
    }
}

impl From<wit::store::Expect> for store::Expect {
    fn from(expect: wit::store::Expect) -> Self {
        match expect {
            wit::store::Expect::Any => Self::Any,
            wit::store::Expect::Absent => Self::Absent,
            wit::store::Expect::Same(stamp) => Self::Same(stamp.into()),
        }
    }
}

impl From<wit::store::Splice> for store::Splice {
    fn from(splice: wit::store::Splice) -> Self {
        let wit::store::Splice { offset, remove, insert } = splice;
        Self { offset, remove, insert }
    }
}

impl From<wit::store::Edit> for store::Edit {
    fn from(edit: wit::store::Edit) -> Self {
        match edit {
            wit::store::Edit::Put(text) => Self::Put(text),
            wit::store::Edit::Append(wit::store::Addition { length, text }) => Self::Append { length, text },
            wit::store::Edit::Splice(splices) => Self::Splice(splices.into_iter().map(Into::into).collect()),
            wit::store::Edit::Delete => Self::Delete,
            wit::store::Edit::MoveTo(path) => Self::MoveTo(path),
            wit::store::Edit::Keep => Self::Keep,
        }
    }
}

impl From<wit::store::Change> for store::Change {
    fn from(change: wit::store::Change) -> Self {
        let wit::store::Change { area, path, expect, edit } = change;
        Self { area: area.into(), path, expect: expect.into(), edit: edit.into() }
    }
}

impl From<wit::store::About> for store::About {
    fn from(about: wit::store::About) -> Self {
        let wit::store::About { verb, note, erases } = about;
        let about = Self::new(&verb, &note);
        if erases { about.erasing() } else { about }
    }
}

impl From<store::Trouble> for wit::store::Trouble {
    fn from(trouble: store::Trouble) -> Self {
        let store::Trouble { code, path, message } = trouble;
        Self { code: code.to_owned(), path, message }
    }
}

impl From<store::CommitError> for wit::store::CommitError {
    fn from(error: store::CommitError) -> Self {
        match error {
            store::CommitError::Stale(generation) => Self::Stale(generation),
            store::CommitError::Changed(path) => Self::Changed(path),
            store::CommitError::Collision { planned, existing } => Self::Collision((planned, existing)),
            store::CommitError::WrongKind(path) => Self::WrongKind(path),
            store::CommitError::LockLost => Self::LockLost,
            store::CommitError::Failed { path, error } => Self::Failed((path, error.into())),
        }
    }
}

impl From<store::Committed> for wit::store::Committed {
    fn from(committed: store::Committed) -> Self {
        let store::Committed { generation, stamps } = committed;
        Self { generation, stamps: stamps.into_iter().map(|stamp| stamp.map(Into::into)).collect() }
    }
}

impl From<lock::Holder> for wit::lock::Holder {
    fn from(holder: lock::Holder) -> Self {
        let lock::Holder { process, purpose } = holder;
        Self { process, purpose }
    }
}

impl From<Option<lock::Holder>> for wit::lock::LockState {
    fn from(holder: Option<lock::Holder>) -> Self {
        Self { held: holder.is_some(), holder: holder.map(Into::into) }
    }
}

impl From<lock::LockError> for wit::lock::LockError {
    fn from(error: lock::LockError) -> Self {
        match error {
            lock::LockError::Held(holder) => Self::Held(holder.map(Into::into)),
            lock::LockError::Denied(why) => Self::Denied(why),
            lock::LockError::Io(what) => Self::Io(what),
        }
    }
}

impl From<wit::log::Level> for observer::Level {
    fn from(level: wit::log::Level) -> Self {
        match level {
            wit::log::Level::Debug => Self::Debug,
            wit::log::Level::Info => Self::Info,
            wit::log::Level::Warn => Self::Warn,
            wit::log::Level::Error => Self::Error,
        }
    }
}

impl From<wit::model::Part> for model::Part {
    fn from(part: wit::model::Part) -> Self {
        match part {
            wit::model::Part::Text(text) => Self::Text(text),
            wit::model::Part::Call(wit::model::ToolCall { id, name, arguments }) => {
                Self::Call(model::ToolCall { id, name, arguments })
            }
            wit::model::Part::Outcome(wit::model::ToolOutcome { id, text, is_error }) => {
                Self::Outcome(model::ToolOutcome { id, text, is_error })
            }
            wit::model::Part::Opaque(json) => Self::Opaque(json),
        }
    }
}

impl From<model::Part> for wit::model::Part {
    fn from(part: model::Part) -> Self {
        match part {
            model::Part::Text(text) => Self::Text(text),
            model::Part::Call(model::ToolCall { id, name, arguments }) => {
                Self::Call(wit::model::ToolCall { id, name, arguments })
            }
            model::Part::Outcome(model::ToolOutcome { id, text, is_error }) => {
                Self::Outcome(wit::model::ToolOutcome { id, text, is_error })
            }
            model::Part::Opaque(json) => Self::Opaque(json),
        }
    }
}

impl From<wit::model::Request> for model::Request {
    /// All but the deadline, which is the attempt's.
    fn from(request: wit::model::Request) -> Self {
        let wit::model::Request { purpose, model, messages, tools, must_call, max_output, deadline_ms: _ } = request;
        let messages = messages.into_iter().map(|wit::model::Message { author, parts }| model::Message {
            author: match author {
                wit::model::Author::System => model::Author::System,
                wit::model::Author::User => model::Author::User,
                wit::model::Author::Assistant => model::Author::Assistant,
                wit::model::Author::Tool => model::Author::Tool,
            },
            parts: parts.into_iter().map(Into::into).collect(),
        });
        let tools = tools.into_iter().map(|wit::model::Tool { name, description, schema }| model::Tool {
            name,
            description,
            schema,
        });
        Self { purpose, model, messages: messages.collect(), tools: tools.collect(), must_call, max_output }
    }
}

impl From<model::Reply> for wit::model::Reply {
    fn from(reply: model::Reply) -> Self {
        let model::Reply { parts, stop, tokens_in, tokens_out, model } = reply;
        let stop = match stop {
            model::StopReason::Done => wit::model::StopReason::Done,
            model::StopReason::Tools => wit::model::StopReason::Tools,
            model::StopReason::Length => wit::model::StopReason::Length,
            model::StopReason::Policy => wit::model::StopReason::Policy,
        };
        Self { parts: parts.into_iter().map(Into::into).collect(), stop, tokens_in, tokens_out, model }
    }
}

impl From<model::ModelError> for wit::model::ModelError {
    fn from(error: model::ModelError) -> Self {
        use model::ModelErrorKind as Kind;
        let model::ModelError { kind, retryable, retry_after, message } = error;
        let kind = match kind {
            Kind::Unconfigured => wit::model::ModelErrorKind::Unconfigured,
            Kind::Transport => wit::model::ModelErrorKind::Transport,
            Kind::RateLimit => wit::model::ModelErrorKind::RateLimit,
            Kind::Provider => wit::model::ModelErrorKind::Provider,
            Kind::Authentication => wit::model::ModelErrorKind::Authentication,
            Kind::Authorization => wit::model::ModelErrorKind::Authorization,
            Kind::InvalidRequest => wit::model::ModelErrorKind::InvalidRequest,
            Kind::ContextLength => wit::model::ModelErrorKind::ContextLength,
            Kind::ContentPolicy => wit::model::ModelErrorKind::ContentPolicy,
            Kind::Timeout => wit::model::ModelErrorKind::Timeout,
            Kind::Unsupported => wit::model::ModelErrorKind::Unsupported,
            Kind::Cancelled => wit::model::ModelErrorKind::Cancelled,
        };
        let retry_after_ms = retry_after.map(|wait| u32::try_from(wait.as_millis()).unwrap_or(u32::MAX));
        Self { kind, retryable, retry_after_ms, message }
    }
}

impl From<wit::model::EmbeddingRole> for model::EmbeddingRole {
    fn from(role: wit::model::EmbeddingRole) -> Self {
        match role {
            wit::model::EmbeddingRole::Passage => Self::Passage,
            wit::model::EmbeddingRole::Query => Self::Query,
        }
    }
}

impl From<model::Embeddings> for wit::model::Embeddings {
    fn from(embeddings: model::Embeddings) -> Self {
        let model::Embeddings { model, vectors } = embeddings;
        Self { model, vectors }
    }
}

impl From<Option<model::ModelInfo>> for wit::model::ModelInfo {
    fn from(info: Option<model::ModelInfo>) -> Self {
        let configured = info.is_some();
        let model::ModelInfo { model, context, max_output, tools, dimensions } = info.unwrap_or_default();
        Self { configured, model, context, max_output, tools, dimensions }
    }
}
