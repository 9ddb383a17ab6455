//! Rows of `fence.jsonl`: a text, what is left of it, and its fence.

use recollex_core::prompt::{fence, sanitize};
use serde_json::json;

use crate::{Input, Observed, Outcome};

pub(crate) fn observe(input: &Input<'_>) -> Observed {
    let Some(text) = input.maybe("text") else {
        return Ok(Outcome::not_here("what stands in a system prompt is not made yet"));
    };
    let text = text.text()?;
    let fenced = fence(text);
    Ok(Outcome::Shown(json!({
        "fence": fenced,
        "sanitize": sanitize(text),
        "fence_twice": fence(&fenced),
        "sanitize_fence": sanitize(&fenced),
    })))
}
