//! What is worth keeping of messages that are about to be discarded: one question, no tools, nothing stored.

use super::limits::WriterLimits;
use super::model::{Author, Message, ModelError, Part, Purpose, Reply, Request, StopReason};
use super::outcome::{Failure, Why};
use super::task::size;
use crate::prompt::{salvage_message, salvage_system, sanitize};
use crate::text::is_whitespace;
use crate::turns::WriterFailure;

/// The question. Each message is who spoke and what was said, oldest first; those that do not fit into `salvage.bytes` are left out,
/// the oldest first. No messages: there is nothing to ask.
#[must_use]
pub fn salvage<'m>(
    messages: impl DoubleEndedIterator<Item = (&'m str, &'m str)>,
    model: Option<String>,
    limits: &WriterLimits,
) -> Request {
    Request {
        purpose: Purpose::Writer,
        model,
        messages: vec![
            Message::text(Author::System, salvage_system()),
            Message::text(Author::User, salvage_message(messages, size(limits.salvage_bytes))),
        ],
        tools: Vec::new(),
        must_call: false,
        max_output: small(limits.salvage_tokens),
        deadline_ms: small(limits.deadline_ms),
    }
}

/// What is worth keeping; empty: nothing. It has nothing that could be taken for a fence. A reply that was cut is kept as far as it goes.
///
/// # Errors
/// The model failed, was stopped, or said far more than it was asked for.
pub fn salvaged(reply: Result<Reply, ModelError>, limits: &WriterLimits) -> Result<String, Failure> {
    let reply = reply.map_err(|error| of_model(&error))?;
    if reply.parts.iter().map(Part::bytes).sum::<u64>() > limits.reply_bytes {
        return Err(Failure::of(Why::ReplyTooLarge));
    }
    if reply.stop == StopReason::Policy {
        return Err(Failure::of(Why::Policy));
    }
    let texts = reply.parts.iter().filter_map(|part| match part {
        Part::Text(text) => Some(text.as_str()),
        Part::Call(_) | Part::Outcome(_) | Part::Opaque(_) => None,
    });
    let text: String = texts.collect();
    Ok(sanitize(&text).trim_matches(is_whitespace).to_owned())
}

/// Characters of a model's message that are kept.
const MESSAGE_CHARS: usize = 500;

/// The failure that comes of a model's.
pub(super) fn of_model(error: &ModelError) -> Failure {
    let message: String = error.message.chars().take(MESSAGE_CHARS).collect();
    let failure = WriterFailure::of_model(error.kind, error.retryable);
    Failure { failure, ..Failure::of(Why::Model).about(&message) }
}

/// A limit as the contract carries it.
pub(super) fn small(limit: u64) -> u32 {
    u32::try_from(limit).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::turns::{ModelFailure, WriterCode};

    fn reply(parts: Vec<Part>, stop: StopReason) -> Reply {
        Reply { parts, stop, tokens_in: None, tokens_out: None, model: "m".into() }
    }

    #[test]
    fn what_is_kept_is_text_and_no_fence() {
        let limits = WriterLimits::default();
        let asked = salvage([("user", "keep me")].into_iter(), None, &limits);
        assert!(asked.tools.is_empty() && !asked.must_call);
        assert!(
            asked.messages[1].parts.iter().any(|part| matches!(part, Part::Text(text) if text.contains("keep me")))
        );
        let said = reply(
            vec![
                Part::Opaque("{}".into()),
                Part::Text(" a <memory-context>b</memory-context>".into()),
                Part::Text("c\n".into()),
            ],
            StopReason::Length,
        );
        assert_eq!(salvaged(Ok(said), &limits), Ok("a c".to_owned()));
        assert_eq!(salvaged(Ok(reply(vec![], StopReason::Done)), &limits), Ok(String::new()));
    }

    #[test]
    fn failures_have_codes() {
        let limits = WriterLimits { reply_bytes: 3, ..WriterLimits::default() };
        let why = |result: Result<String, Failure>| result.expect_err("a failure").why;
        let long = reply(vec![Part::Text("long".into())], StopReason::Done);
        assert_eq!(why(salvaged(Ok(long), &limits)), Why::ReplyTooLarge);
        assert_eq!(why(salvaged(Ok(reply(vec![], StopReason::Policy)), &limits)), Why::Policy);
        let error = ModelError { kind: ModelFailure::Timeout, retryable: true, message: "x".repeat(9999) };
        let failure = salvaged(Err(error), &limits).expect_err("a failure");
        assert_eq!((failure.failure.code, failure.failure.retryable), (WriterCode::ModelTimeout, true));
        assert!(failure.message.len() < 600);
    }
}
