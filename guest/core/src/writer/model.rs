//! What is said between a writer and a model, in the shape of the contract (`wit/model.wit`) and in plain types.

use crate::turns::ModelFailure;

/// What a model is asked for: the host picks one by it, and how hard it is to think.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Purpose {
    /// To write what was said into memory, from turns or from evidence, or to say what of it is worth keeping.
    Writer,
    /// To put memory in order.
    Organiser,
}

impl Purpose {
    /// `writer` or `organiser`, as requests carry it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Writer => "writer",
            Self::Organiser => "organiser",
        }
    }
}

/// The model asks for a tool to be run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolCall {
    /// Chosen by the model; the outcome repeats it.
    pub id: String,
    /// The tool's name.
    pub name: String,
    /// JSON, as the model wrote it; perhaps none.
    pub arguments: String,
}

/// What a tool answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolOutcome {
    /// The call's id.
    pub id: String,
    /// What the model reads.
    pub text: String,
    /// The call did not do what it was to do.
    pub is_error: bool,
}

/// A piece of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Part {
    /// Text.
    Text(String),
    /// A call, in messages of the assistant.
    Call(ToolCall),
    /// An outcome, in messages of the tool.
    Outcome(ToolOutcome),
    /// Something of the provider's own, which goes back to it unread and unchanged.
    Opaque(String),
}

impl Part {
    /// Bytes of all that it says.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        let bytes = match self {
            Self::Text(text) | Self::Opaque(text) => text.len(),
            Self::Call(call) => call.id.len() + call.name.len() + call.arguments.len(),
            Self::Outcome(outcome) => outcome.id.len() + outcome.text.len(),
        };
        bytes as u64
    }
}

/// Who a message is from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Author {
    /// Whoever runs the writer.
    System,
    /// What the writer is given to do.
    User,
    /// The model.
    Assistant,
    /// Outcomes of its calls.
    Tool,
}

/// A message, its parts in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// Who it is from.
    pub author: Author,
    /// Its parts.
    pub parts: Vec<Part>,
}

impl Message {
    /// A message of text alone.
    #[must_use]
    pub fn text(author: Author, text: impl Into<String>) -> Self {
        Self { author, parts: vec![Part::Text(text.into())] }
    }

    /// Bytes of all that it says.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.parts.iter().map(Part::bytes).sum()
    }
}

/// A tool the model may call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tool {
    /// Its name.
    pub name: &'static str,
    /// When to call it, for the model.
    pub description: &'static str,
    /// JSON Schema of its arguments.
    pub schema: String,
}

/// One request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// What it is for.
    pub purpose: Purpose,
    /// A model that the caller insists on; none: the host's choice for the purpose.
    pub model: Option<String>,
    /// The conversation so far.
    pub messages: Vec<Message>,
    /// What may be called.
    pub tools: Vec<Tool>,
    /// The reply has to call something.
    pub must_call: bool,
    /// Tokens that the reply may have.
    pub max_output: u32,
    /// Milliseconds that it may take.
    pub deadline_ms: u32,
}

/// Why the model stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopReason {
    /// It had said everything.
    Done,
    /// It waits for its calls.
    Tools,
    /// `max_output` was reached: the reply is cut.
    Length,
    /// The provider's policy cut it.
    Policy,
}

/// What the model said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    /// In order.
    pub parts: Vec<Part>,
    /// Why it stopped.
    pub stop: StopReason,
    /// Tokens of the request, as the provider counts.
    pub tokens_in: Option<u32>,
    /// Tokens of the reply, likewise.
    pub tokens_out: Option<u32>,
    /// The model that answered, as the provider names it.
    pub model: String,
}

/// Why it said nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelError {
    /// What kind of failure it was.
    pub kind: ModelFailure,
    /// Another try later may succeed.
    pub retryable: bool,
    /// For people.
    pub message: String,
}
