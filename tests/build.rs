//! Builds the test-only components, and tells the crate where they and the shipped ones are.

use recollex_guest_build::{Aim, Guest, SHIPPED, SOURCES, provide};

fn main() {
    let test_only = [
        Guest { package: "recollex-hostile", variable: "RECOLLEX_HOSTILE", aim: Aim::Speed },
        Guest { package: "recollex-wasm-engine", variable: "RECOLLEX_WASM_ENGINE", aim: Aim::Speed },
    ];
    let result = provide(&SHIPPED, &SOURCES)
        .and_then(|()| provide(&test_only, &["tests/rows", "tests/wasm-engine", "tests/hostile"]));
    if let Err(message) = result {
        println!("cargo::error={message}");
    }
}
