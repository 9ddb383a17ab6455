//! Rows of `writer_status.jsonl`: the file that says how writes went, read and rewritten, and what a failure is called.

use recollex_core::turns::{LastOutcome, ModelFailure, WriterCode, WriterFailure, WriterStatus};
use serde_json::{Value, json};

use crate::{Input, Observed, Outcome};

pub(crate) fn observe(input: &Input<'_>) -> Observed {
    let op = input.field("op")?;
    match op.value() {
        Value::String(word) if word == "load" => {
            Ok(Outcome::Shown(shown(&WriterStatus::read(input.field("file")?.text()?))))
        }
        Value::String(word) if word == "classify" => classify(input),
        _ => record(input, &op),
    }
}

fn shown(status: &WriterStatus) -> Value {
    let outcome = status.last_outcome.map(|outcome| match outcome {
        LastOutcome::Success => "success",
        LastOutcome::Failure => "failure",
    });
    let failure = status.last_failure.as_ref().map(
        |last| json!({"at": last.at, "reason_code": last.failure.code.as_str(), "retryable": last.failure.retryable}),
    );
    json!({"last_outcome": outcome, "last_success_at": status.last_success_at, "last_failure": failure})
}

fn record(input: &Input<'_>, op: &Input<'_>) -> Observed {
    let before = input.field("file")?.optional_text()?.map(WriterStatus::read).unwrap_or_default();
    let now = input.field("now")?.text()?;
    let parts: Vec<Input<'_>> = op.elements()?.collect();
    let after = match &parts[..] {
        [word] if word.text()? == "success" => before.succeeded(now),
        [word, code, retryable] if word.text()? == "failure" => {
            let code = code.optional_text()?.and_then(WriterCode::parse).unwrap_or(WriterCode::WriterFailureUnknown);
            // Rows also have a number where a program would have a truth value.
            let retryable = !matches!(retryable.value(), Value::Bool(false) | Value::Null)
                && retryable.value().as_f64() != Some(0.0);
            before.failed(now, WriterFailure { code, retryable })
        }
        _ => return Err(op.fault("neither success nor failure")),
    };
    Ok(Outcome::Shown(json!({
        (format!(".scriptorium/{}", WriterStatus::PATH)): after.file(),
        (format!(".scriptorium/{}", WriterStatus::LOCK_PATH)): "",
    })))
}

fn classify(input: &Input<'_>) -> Observed {
    let failure = match (input.field("code")?.optional_text()?, input.field("reason")?.optional_text()?) {
        (Some(code), _) => WriterFailure::of_transaction(code),
        (None, Some(reason)) => {
            let retryable = input.field("retryable")?.value() == &Value::Bool(true);
            kind(reason).map_or(WriterFailure::UNKNOWN, |kind| WriterFailure::of_model(kind, retryable))
        }
        (None, None) if input.field("exception")?.text()? == "ConnectionError" => {
            WriterFailure::of_model(ModelFailure::Transport, true)
        }
        (None, None) => return Ok(Outcome::not_here("what an exception of a program means is its host's to say")),
    };
    Ok(Outcome::Shown(json!({"reason_code": failure.code.as_str(), "retryable": failure.retryable})))
}

/// The observed program's words for what the contract names.
fn kind(reason: &str) -> Option<ModelFailure> {
    Some(match reason {
        "rate_limit" => ModelFailure::RateLimit,
        "provider" => ModelFailure::Provider,
        "auth" => ModelFailure::Authentication,
        "invalid" => ModelFailure::InvalidRequest,
        "context" => ModelFailure::ContextLength,
        "timeout" => ModelFailure::Timeout,
        "unknown" => ModelFailure::Unknown,
        _ => return None,
    })
}
