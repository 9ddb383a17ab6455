//! Language models, as a host has them: what is asked, what is answered, and who answers.
//!
//! A [`Provider`] answers requests; [`Models`] says which one serves a purpose (`writer`, `organiser`, `observer`, `embed`)
//! at the moment of a call. A program gives its own to [`RuntimeOptions`](crate::RuntimeOptions::models), [`Roles`] of the
//! providers here, or [`Live`] settings that are read again with every call:
//!
//! - [`OpenAi`]: chat completions over HTTP, of OpenAI and of the many servers that speak like it (feature `http`);
//! - [`Anthropic`]: messages over HTTP (feature `http`);
//! - [`Command`]: a program that reads a request on stdin and writes a reply on stdout;
//! - [`Replay`]: the recording of an earlier exchange, which [`Recorder`] makes of any other provider.
//!
//! The contract is `wit/model.wit`; the types here say the same in Rust and are also the JSON of commands and recordings
//! (`host/MODELS.md`). Nothing here repeats a request by itself, and nothing knows what a request is about. What a provider
//! answers is untrusted: it is bounded, checked and of the right shape when it leaves this module.

#[cfg(feature = "http")]
mod anthropic;
mod command;
#[cfg(feature = "http")]
mod http;
#[cfg(feature = "http")]
mod openai;
mod raw;
mod replay;
mod secret;
mod settings;
#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::observer::Observer;

#[cfg(feature = "http")]
pub use anthropic::Anthropic;
pub use command::Command;
#[cfg(feature = "http")]
pub use openai::OpenAi;
pub use replay::{Recorder, Replay};
pub use secret::{KeySource, KeyState, Secret};
pub use settings::{Kind, Live, RoleSettings, RolesSettings};

/// The purpose of turning conversations into topics.
pub const WRITER: &str = "writer";
/// The purpose of putting topics in order.
pub const ORGANISER: &str = "organiser";
/// The purpose of continuous memory.
pub const OBSERVER: &str = "observer";
/// The name by which an embedding model is described.
pub const EMBED: &str = "embed";

/// Bytes that a provider's answer may have where its settings say nothing: many times the longest reply of any model.
pub const REPLY_BYTES: u64 = 8 << 20;
/// Characters that the message of an error has at most, ours and the provider's words together.
const MESSAGE_CHARS: usize = 600;
/// How often whoever waits for a model looks whether it is still wanted.
const POLL: Duration = Duration::from_millis(20);

/// The model asks for a tool to be run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolCall {
    /// Chosen by the model; the outcome repeats it.
    pub id: String,
    /// The tool.
    pub name: String,
    /// A JSON document.
    #[serde(with = "raw")]
    pub arguments: String,
}

/// What a tool answered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolOutcome {
    /// The call's id.
    pub id: String,
    /// The answer.
    pub text: String,
    /// It says why there is no answer.
    #[serde(default)]
    pub is_error: bool,
}

/// A piece of a message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Part {
    /// Words.
    Text(String),
    /// The model asks for a tool.
    Call(ToolCall),
    /// What the tool answered.
    Outcome(ToolOutcome),
    /// A JSON document of the provider's own (a reasoning record, say), which goes back to it unread and unchanged. A
    /// provider passes over those of another.
    Opaque(#[serde(with = "raw")] String),
}

/// Who a message is from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Author {
    /// Whoever set the conversation up.
    System,
    /// Whoever asks.
    User,
    /// The model.
    Assistant,
    /// Tools.
    Tool,
}

/// A message of the conversation with the model, its parts in order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Message {
    /// Who it is from.
    pub author: Author,
    /// What it holds.
    pub parts: Vec<Part>,
}

/// A tool the model may call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tool {
    /// Its name.
    pub name: String,
    /// What it is for, to the model.
    pub description: String,
    /// JSON Schema of its arguments.
    #[serde(with = "raw")]
    pub schema: String,
}

/// One request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Request {
    /// What it is for: [`WRITER`], [`ORGANISER`] or [`OBSERVER`].
    pub purpose: String,
    /// A model the caller insists on, as the provider names it; none: the provider's choice.
    pub model: Option<String>,
    /// The conversation so far.
    pub messages: Vec<Message>,
    /// What the model may call.
    pub tools: Vec<Tool>,
    /// The reply must contain a tool call.
    pub must_call: bool,
    /// Tokens that the reply may have.
    pub max_output: u32,
}

/// Why the model stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StopReason {
    /// It had said everything.
    Done,
    /// It waits for its tool calls.
    Tools,
    /// `max_output` was reached: the reply is cut.
    Length,
    /// The provider's policy cut it.
    Policy,
}

/// What the model said.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reply {
    /// What it said, in order.
    pub parts: Vec<Part>,
    /// Why it stopped.
    pub stop: StopReason,
    /// Tokens of the request, as the provider counts; none if it does not say.
    #[serde(default)]
    pub tokens_in: Option<u32>,
    /// Tokens of the reply, likewise.
    #[serde(default)]
    pub tokens_out: Option<u32>,
    /// The model that answered, as the provider names it.
    pub model: String,
}

/// What kind of failure it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ModelErrorKind {
    /// There is no model for this purpose.
    Unconfigured,
    /// The provider could not be reached, or the connection broke.
    Transport,
    /// Too much was asked of it lately.
    RateLimit,
    /// The provider failed, or answered something unreadable.
    Provider,
    /// It does not know who asks: the key is missing or wrong.
    Authentication,
    /// It knows, and does not allow it.
    Authorization,
    /// It does not understand the request.
    InvalidRequest,
    /// The request is longer than the model can read.
    ContextLength,
    /// It does not answer such a request.
    ContentPolicy,
    /// It took too long.
    Timeout,
    /// The host or the provider has not what is insisted on.
    Unsupported,
    /// The host was told to stop it.
    Cancelled,
}

/// Why the model gave no reply.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ModelError {
    /// What kind of failure it was.
    pub kind: ModelErrorKind,
    /// Another try later may succeed.
    pub retryable: bool,
    /// After which the provider asks to try again; none if it does not say, or if no try would help.
    pub retry_after: Option<Duration>,
    /// For people. It never holds a key.
    pub message: String,
}

impl ModelError {
    /// An error of this kind. Another try may help if it is of the kinds that pass by themselves: `transport`, `rate-limit`,
    /// `provider`, `timeout`. The message is cut to some hundred characters of one line.
    #[must_use]
    pub fn new(kind: ModelErrorKind, message: impl AsRef<str>) -> Self {
        use ModelErrorKind::{Provider, RateLimit, Timeout, Transport};
        let retryable = matches!(kind, Transport | RateLimit | Provider | Timeout);
        let line = message.as_ref().chars().map(|c| if c.is_control() { ' ' } else { c });
        let message = line.take(MESSAGE_CHARS).collect::<String>().trim().to_owned();
        Self { kind, retryable, retry_after: None, message }
    }

    /// The same, which no other try helps.
    #[must_use]
    pub fn lasting(self) -> Self {
        Self { retryable: false, retry_after: None, ..self }
    }

    /// The same, to be tried again after this time, if another try may help.
    #[must_use]
    pub fn after(self, wait: Option<Duration>) -> Self {
        let retry_after = if self.retryable { wait } else { None };
        Self { retry_after, ..self }
    }

    fn unconfigured(message: impl AsRef<str>) -> Self {
        Self::new(ModelErrorKind::Unconfigured, message)
    }

    fn invalid(message: impl AsRef<str>) -> Self {
        Self::new(ModelErrorKind::InvalidRequest, message)
    }

    fn provider(message: impl AsRef<str>) -> Self {
        Self::new(ModelErrorKind::Provider, message)
    }

    fn unsupported(message: impl AsRef<str>) -> Self {
        Self::new(ModelErrorKind::Unsupported, message)
    }

    fn timeout() -> Self {
        Self::new(ModelErrorKind::Timeout, "the model did not answer in time")
    }

    fn cancelled() -> Self {
        Self::new(ModelErrorKind::Cancelled, "the call was cancelled while the model was at work")
    }
}

/// What a text is embedded as; some models treat the two differently.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EmbeddingRole {
    /// Something to be found.
    Passage,
    /// What it is looked for by.
    Query,
}

/// One vector for each text.
#[derive(Clone, Debug, PartialEq)]
pub struct Embeddings {
    /// Vectors of different models are not comparable.
    pub model: String,
    /// In the order of the texts, all of one length, every number finite.
    pub vectors: Vec<Vec<f32>>,
}

/// What a provider would use, as far as it knows without asking anybody.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ModelInfo {
    /// The model, as the provider names it; none if that is decided with each request.
    pub model: Option<String>,
    /// Tokens that request and reply may have together; none if not known.
    pub context: Option<u32>,
    /// Tokens that a reply may have; none if not known.
    pub max_output: Option<u32>,
    /// It can call tools.
    pub tools: bool,
    /// The length of its vectors; none if not known, or if it does not embed.
    pub dimensions: Option<u32>,
}

/// One attempt to get an answer: how long it may take, whether it is still wanted, and who hears of it.
pub struct Attempt<'a> {
    deadline: Option<Instant>,
    cancelled: &'a dyn Fn() -> bool,
    observer: &'a dyn Observer,
}

impl<'a> Attempt<'a> {
    /// An attempt that may take `time` from now, is not wanted any more once `cancelled` answers true, and is heard of by
    /// `observer`.
    #[must_use]
    pub fn new(time: Duration, cancelled: &'a dyn Fn() -> bool, observer: &'a dyn Observer) -> Self {
        Self { deadline: Instant::now().checked_add(time), cancelled, observer }
    }

    /// The time that is left.
    #[must_use]
    pub fn left(&self) -> Duration {
        self.deadline.map_or(Duration::MAX, |deadline| deadline.saturating_duration_since(Instant::now()))
    }

    /// Whether to go on: a provider that waits asks it some times a second.
    ///
    /// # Errors
    /// `cancelled` and `timeout`.
    pub fn check(&self) -> Result<(), ModelError> {
        if (self.cancelled)() {
            Err(ModelError::cancelled())
        } else if self.left().is_zero() {
            Err(ModelError::timeout())
        } else {
            Ok(())
        }
    }

    /// Who hears of it. Never of a key, nor of what was said.
    #[must_use]
    pub fn observer(&self) -> &'a dyn Observer {
        self.observer
    }
}

impl fmt::Debug for Attempt<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Attempt").field("left", &self.left()).finish_non_exhaustive()
    }
}

/// Answers requests. Called from any thread, several at a time; it may block, and keeps to its [`Attempt`].
pub trait Provider: Send + Sync {
    /// What it would use. Costs nothing and asks nobody.
    fn describe(&self) -> ModelInfo;

    /// Asks the model, once.
    ///
    /// # Errors
    /// Of a kind, as `wit/model.wit` has them.
    fn complete(&self, request: &Request, attempt: &Attempt<'_>) -> Result<Reply, ModelError>;

    /// Embeds texts: one vector for each, all or none.
    ///
    /// # Errors
    /// As [`Provider::complete`]. A provider that does not embed is `unconfigured`, which is the default.
    fn embed(&self, texts: &[String], role: EmbeddingRole, attempt: &Attempt<'_>) -> Result<Embeddings, ModelError> {
        let _ = (texts, role, attempt);
        Err(ModelError::unconfigured("this provider does not embed"))
    }
}

/// Says who answers, at the moment of a call.
pub trait Models: Send + Sync {
    /// The provider that serves a purpose: [`WRITER`], [`ORGANISER`], [`OBSERVER`], [`EMBED`].
    ///
    /// # Errors
    /// `unconfigured`, also for a purpose that nobody knows; the message says what to set.
    fn provider(&self, purpose: &str) -> Result<Arc<dyn Provider>, ModelError>;
}

/// No model for anything. Everything but writing by a model works without one.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoModels;

impl Models for NoModels {
    fn provider(&self, _: &str) -> Result<Arc<dyn Provider>, ModelError> {
        Err(ModelError::unconfigured("no language model is configured in this host"))
    }
}

/// Providers that stay: one a role. `organiser` and `observer` fall back to `writer`; nothing falls back to `embedding`.
///
/// ```
/// use std::sync::Arc;
/// use recollex::model::{Models, Replay, Roles};
/// use recollex::{Runtime, RuntimeOptions};
///
/// let writer = Arc::new(Replay::new("exchange.jsonl"));
/// let models = Roles { writer: Some(writer), ..Roles::default() };
/// assert!(models.provider("observer").is_ok());
/// let options = RuntimeOptions { models: Arc::new(models), ..RuntimeOptions::default() };
/// ```
#[derive(Clone, Default)]
pub struct Roles {
    /// Turns conversations into topics.
    pub writer: Option<Arc<dyn Provider>>,
    /// Puts topics in order; none: the writer does.
    pub organiser: Option<Arc<dyn Provider>>,
    /// Continuous memory; none: the writer does.
    pub observer: Option<Arc<dyn Provider>>,
    /// Embeds.
    pub embedding: Option<Arc<dyn Provider>>,
}

impl Models for Roles {
    fn provider(&self, purpose: &str) -> Result<Arc<dyn Provider>, ModelError> {
        let own = match purpose {
            WRITER => &self.writer,
            ORGANISER => &self.organiser,
            OBSERVER => &self.observer,
            EMBED => &self.embedding,
            _ => return Err(unknown_purpose(purpose)),
        };
        let fallback = if purpose == EMBED { None } else { self.writer.as_ref() };
        own.as_ref()
            .or(fallback)
            .cloned()
            .ok_or_else(|| ModelError::unconfigured(format!("no model is configured for `{purpose}`")))
    }
}

impl fmt::Debug for Roles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Roles").finish_non_exhaustive()
    }
}

fn unknown_purpose(purpose: &str) -> ModelError {
    ModelError::unconfigured(format!("`{purpose}` is no purpose that this host has a model for"))
}

/// Asks the model of the request's purpose, and checks request and reply, whoever provides them.
///
/// # Errors
/// As [`Provider::complete`]; `invalid-request` for a request that nobody could answer, `unsupported` for tools that the
/// model does not have. A reply without the tool call that was insisted on is none.
pub(crate) fn complete(models: &dyn Models, request: &Request, attempt: &Attempt<'_>) -> Result<Reply, ModelError> {
    check(request)?;
    attempt.check()?;
    let provider = models.provider(&request.purpose)?;
    if !request.tools.is_empty() && !provider.describe().tools {
        return Err(ModelError::unsupported("the model that is configured has no tools"));
    }
    let reply = provider.complete(request, attempt)?;
    for part in &reply.parts {
        match part {
            Part::Call(ToolCall { arguments: json, .. }) | Part::Opaque(json) => {
                parsed(json).map_err(|_| ModelError::provider("a part of the model's reply is not JSON"))?;
            }
            Part::Outcome(_) => return Err(ModelError::provider("the model answered for a tool")),
            Part::Text(_) => {}
        }
    }
    // A model that only talks, though a call was insisted on, is handed on: who asked knows what to tell it.
    Ok(reply)
}

/// Whether anybody could answer it.
fn check(request: &Request) -> Result<(), ModelError> {
    if request.must_call && request.tools.is_empty() {
        return Err(ModelError::invalid("a tool call is insisted on, and there is no tool"));
    }
    if request.max_output == 0 {
        return Err(ModelError::invalid("a reply of no tokens is asked for"));
    }
    if request.messages.iter().all(|message| message.author == Author::System) {
        return Err(ModelError::invalid("there is no message to answer"));
    }
    let is_json = |what: &str, name: &str, json: &str| match parsed(json) {
        Ok(_) => Ok(()),
        Err(error) => Err(ModelError::invalid(format!("{what} `{name}` is not JSON: {error}"))),
    };
    for tool in &request.tools {
        is_json("the schema of tool", &tool.name, &tool.schema)?;
    }
    for part in request.messages.iter().flat_map(|message| &message.parts) {
        match part {
            Part::Call(call) => is_json("what is passed in call", &call.id, &call.arguments)?,
            Part::Opaque(json) => is_json("a part that is", "opaque", json)?,
            Part::Text(_) | Part::Outcome(_) => {}
        }
    }
    Ok(())
}

/// Embeds, and checks what comes.
///
/// # Errors
/// As [`Provider::embed`]; `provider` for vectors that are not one a text, of one length, finite.
pub(crate) fn embed(
    models: &dyn Models,
    texts: &[String],
    role: EmbeddingRole,
    attempt: &Attempt<'_>,
) -> Result<Embeddings, ModelError> {
    let provider = models.provider(EMBED)?;
    if texts.is_empty() {
        let model = provider.describe().model.unwrap_or_default();
        return Ok(Embeddings { model, vectors: Vec::new() });
    }
    attempt.check()?;
    let embeddings = provider.embed(texts, role, attempt)?;
    let vectors = &embeddings.vectors;
    let length = vectors.first().map_or(0, Vec::len);
    let fault = if vectors.len() != texts.len() {
        format!("{} vectors came for {} texts", vectors.len(), texts.len())
    } else if length == 0 {
        "a vector has no numbers".to_owned()
    } else if vectors.iter().any(|vector| vector.len() != length) {
        "vectors of several lengths came".to_owned()
    } else if vectors.iter().flatten().any(|number| !number.is_finite()) {
        "a vector holds a number that is not finite".to_owned()
    } else {
        return Ok(embeddings);
    };
    Err(ModelError::provider(fault))
}

/// A JSON document as it stands.
fn parsed(json: &str) -> Result<&RawValue, serde_json::Error> {
    serde_json::from_str(json)
}
