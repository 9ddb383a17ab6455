//! What can run a row.

mod component;
mod native;
mod verifier;
mod wasm;

use std::error::Error;

use recollex_test_rows::Outcome;
use serde_json::Value;

pub use component::Component;
pub use native::Native;
pub use verifier::Verifier;
pub use wasm::Wasm;

/// Something that runs rows.
pub trait Engine {
    /// Runs the input of one row of `file`.
    ///
    /// # Errors
    /// The row cannot be read or the engine broke; the text is for people. The next row can be run.
    fn observe(&mut self, file: &str, input: &Value) -> Result<Outcome, String>;

    /// What of an expected outcome this engine can show at all. Most show everything.
    fn view(&self, _file: &str, _input: &Value, expected: &Value) -> Value {
        expected.clone()
    }

    /// Whether [`Engine::view`] leaves something of a row out: then what a decision changes may be out of this engine's sight.
    fn shows_less(&self) -> bool {
        false
    }
}

/// The engines, as the command line names them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum EngineName {
    /// Core, called directly.
    Native,
    /// The same runner inside a test-only component.
    Wasm,
    /// The shipped component `memory` over a real directory, through the host library.
    Component,
    /// The shipped component `verifier`, without any import.
    Verifier,
}

impl EngineName {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Native, Self::Wasm, Self::Component, Self::Verifier];

    /// Makes the engine ready.
    ///
    /// # Errors
    /// Its component does not compile or cannot be instantiated.
    pub fn start(self) -> Result<Box<dyn Engine>, Box<dyn Error>> {
        Ok(match self {
            Self::Native => Box::new(Native),
            Self::Wasm => Box::new(Wasm::start()?),
            Self::Component => Box::new(Component::start()?),
            Self::Verifier => Box::new(Verifier::start()?),
        })
    }
}

/// An expected outcome without the modes of files: core has no part in them.
fn without_modes(expected: &Value) -> Value {
    let mut expected = expected.clone();
    if let Some(fields) = expected.as_object_mut() {
        fields.remove("modes");
    }
    expected
}
