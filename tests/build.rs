//! Builds the test-only components, and tells the crate where they and the shipped ones are.

use recollex_guest_build::{Guest, provide};

fn main() {
    // The shipped two exactly as the host builds them: in a call with others cargo would unify the features of what
    // they share, and make other components of them.
    let shipped = [
        Guest { package: "recollex-component", variable: "RECOLLEX_MEMORY_COMPONENT" },
        Guest { package: "recollex-verifier", variable: "RECOLLEX_VERIFIER_COMPONENT" },
    ];
    let test_only = [
        Guest { package: "recollex-hostile", variable: "RECOLLEX_HOSTILE" },
        Guest { package: "recollex-wasm-engine", variable: "RECOLLEX_WASM_ENGINE" },
    ];
    let result = provide(&shipped, &["guest", "wit", "Cargo.lock", "Cargo.toml"])
        .and_then(|()| provide(&test_only, &["tests/rows", "tests/wasm-engine", "tests/hostile"]));
    if let Err(message) = result {
        println!("cargo::error={message}");
    }
}
