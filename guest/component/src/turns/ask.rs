//! Between core's messages and the model's import.

use recollex_core::turns::ModelFailure;
use recollex_core::writer as core;

use crate::bindings::recollex::memory::model as wit;

/// Asks the model.
pub(super) fn complete(request: core::Request) -> Result<core::Reply, core::ModelError> {
    wit::complete(&requested(request)).map(replied).map_err(failed)
}

fn requested(request: core::Request) -> wit::Request {
    wit::Request {
        purpose: request.purpose.as_str().to_owned(),
        model: request.model,
        messages: request.messages.into_iter().map(message).collect(),
        tools: request.tools.into_iter().map(tool).collect(),
        must_call: request.must_call,
        max_output: request.max_output,
        deadline_ms: request.deadline_ms,
    }
}

fn message(message: core::Message) -> wit::Message {
    wit::Message {
        author: match message.author {
            core::Author::System => wit::Author::System,
            core::Author::User => wit::Author::User,
            core::Author::Assistant => wit::Author::Assistant,
            core::Author::Tool => wit::Author::Tool,
        },
        parts: message.parts.into_iter().map(part).collect(),
    }
}

fn part(part: core::Part) -> wit::Part {
    match part {
        core::Part::Text(text) => wit::Part::Text(text),
        core::Part::Call(call) => {
            wit::Part::Call(wit::ToolCall { id: call.id, name: call.name, arguments: call.arguments })
        }
        core::Part::Outcome(outcome) => {
            wit::Part::Outcome(wit::ToolOutcome { id: outcome.id, text: outcome.text, is_error: outcome.is_error })
        }
        core::Part::Opaque(json) => wit::Part::Opaque(json),
    }
}

fn tool(tool: core::Tool) -> wit::Tool {
    wit::Tool { name: tool.name.to_owned(), description: tool.description.to_owned(), schema: tool.schema }
}

fn replied(reply: wit::Reply) -> core::Reply {
    core::Reply {
        parts: reply.parts.into_iter().map(said).collect(),
        stop: match reply.stop {
            wit::StopReason::Done => core::StopReason::Done,
            wit::StopReason::Tools => core::StopReason::Tools,
            wit::StopReason::Length => core::StopReason::Length,
            wit::StopReason::Policy => core::StopReason::Policy,
        },
        tokens_in: reply.tokens_in,
        tokens_out: reply.tokens_out,
        model: reply.model,
    }
}

fn said(part: wit::Part) -> core::Part {
    match part {
        wit::Part::Text(text) => core::Part::Text(text),
        wit::Part::Call(call) => {
            core::Part::Call(core::ToolCall { id: call.id, name: call.name, arguments: call.arguments })
        }
        wit::Part::Outcome(outcome) => {
            core::Part::Outcome(core::ToolOutcome { id: outcome.id, text: outcome.text, is_error: outcome.is_error })
        }
        wit::Part::Opaque(json) => core::Part::Opaque(json),
    }
}

/// Why a model gave nothing, as core has it.
pub(crate) fn failed(error: wit::ModelError) -> core::ModelError {
    core::ModelError { kind: failure(error.kind), retryable: error.retryable, message: error.message }
}

const fn failure(kind: wit::ModelErrorKind) -> ModelFailure {
    match kind {
        wit::ModelErrorKind::Unconfigured => ModelFailure::Unconfigured,
        wit::ModelErrorKind::Transport => ModelFailure::Transport,
        wit::ModelErrorKind::RateLimit => ModelFailure::RateLimit,
        wit::ModelErrorKind::Provider => ModelFailure::Provider,
        wit::ModelErrorKind::Authentication => ModelFailure::Authentication,
        wit::ModelErrorKind::Authorization => ModelFailure::Authorization,
        wit::ModelErrorKind::InvalidRequest => ModelFailure::InvalidRequest,
        wit::ModelErrorKind::ContextLength => ModelFailure::ContextLength,
        wit::ModelErrorKind::ContentPolicy => ModelFailure::ContentPolicy,
        wit::ModelErrorKind::Timeout => ModelFailure::Timeout,
        wit::ModelErrorKind::Unsupported => ModelFailure::Unsupported,
        wit::ModelErrorKind::Cancelled => ModelFailure::Cancelled,
    }
}
