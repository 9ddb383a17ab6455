//! Builds both guests, or takes ready ones, and tells the crate where they are.

use recollex_guest_build::{Guest, provide};

fn main() {
    let guests = [
        Guest { package: "recollex-component", variable: "RECOLLEX_MEMORY_COMPONENT" },
        Guest { package: "recollex-verifier", variable: "RECOLLEX_VERIFIER_COMPONENT" },
    ];
    if let Err(message) = provide(&guests, &["guest", "wit", "Cargo.lock", "Cargo.toml"]) {
        println!("cargo::error={message}");
    }
}
