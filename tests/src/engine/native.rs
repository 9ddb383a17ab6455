//! Core, called directly.

use recollex_test_rows::Outcome;
use serde_json::Value;

use super::{Engine, without_modes};

/// Tokens of a text by `o200k_base`; what looks like a special token is ordinary text.
fn count_tokens(text: &str) -> u64 {
    bpe_openai::o200k_base().count(text) as u64
}

/// Runs rows against core in this process.
#[derive(Clone, Copy, Debug, Default)]
pub struct Native;

impl Engine for Native {
    fn observe(&mut self, file: &str, input: &Value) -> Result<Outcome, String> {
        recollex_test_rows::observe_counting(file, input, Some(count_tokens)).map_err(|error| error.to_string())
    }

    fn view(&self, _file: &str, _input: &Value, expected: &Value) -> Value {
        without_modes(expected)
    }
}
