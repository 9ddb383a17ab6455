//! Core, called directly.

use recollex_test_rows::Outcome;
use serde_json::Value;

use super::{Engine, without_modes};

/// Runs rows against core in this process.
#[derive(Clone, Copy, Debug, Default)]
pub struct Native;

impl Engine for Native {
    fn observe(&mut self, file: &str, input: &Value) -> Result<Outcome, String> {
        recollex_test_rows::observe(file, input).map_err(|error| error.to_string())
    }

    fn view(&self, _file: &str, _input: &Value, expected: &Value) -> Value {
        without_modes(expected)
    }
}
