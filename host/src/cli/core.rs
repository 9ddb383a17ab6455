//! `recollex core`: the part of memory that every prompt holds.

use recollex::workspace::CoreState;
use serde::Serialize;

use super::context::Context;
use super::failure::{Exit, Failure};
use super::terminal::count;

/// What is known of the view.
#[derive(Serialize)]
#[cfg_attr(feature = "mcp", derive(schemars::JsonSchema))]
pub struct CoreStateView<'a> {
    tokens: u64,
    exact: bool,
    budget: u64,
    blocks: u64,
    left_out: &'a [String],
}

impl<'a> From<&'a CoreState> for CoreStateView<'a> {
    fn from(state: &'a CoreState) -> Self {
        let CoreState { tokens, exact, budget, blocks, left_out } = state;
        Self { tokens: *tokens, exact: *exact, budget: *budget, blocks: *blocks, left_out }
    }
}

#[derive(Serialize)]
struct Document<'a> {
    text: &'a str,
    core: Option<CoreStateView<'a>>,
}

/// Runs the verb.
pub fn run(context: &Context) -> Result<Exit, Failure> {
    let mut session = context.reading_session()?;
    let Some(view) = context.time("core", || session.core())? else {
        context.hint("There is no core.md: it is made of topics/core.md, once that says something.");
        return Ok(Exit::NOTHING);
    };
    if context.out.json {
        let core = view.state.as_ref().map(CoreStateView::from);
        context.out.document(&Document { text: &view.text, core });
        return Ok(Exit::DONE);
    }
    context.out.text(&view.text);
    if let Some(state) = view.state.filter(|state| !state.left_out.is_empty()) {
        let left_out = count(state.left_out.len() as u64, "block", "blocks");
        context.hint(&format!("{left_out} did not fit, or rests on pending evidence: {}", state.left_out.join(", ")));
    }
    Ok(Exit::DONE)
}

/// `1,203 of 2,000 tokens, 12 blocks, 3 left out`
pub fn summary(state: &CoreState) -> String {
    let about = if state.exact { "" } else { "at most " };
    let blocks = count(state.blocks, "block", "blocks");
    let mut text = format!("{about}{} of {} tokens, {blocks}", state.tokens, state.budget);
    if !state.left_out.is_empty() {
        text.push_str(&format!(", {} left out", state.left_out.len()));
    }
    text
}
