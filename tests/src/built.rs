//! Where the components are that `build.rs` built.

use std::path::Path;

/// The shipped component of world `memory`.
#[must_use]
pub fn memory() -> &'static Path {
    Path::new(env!("RECOLLEX_MEMORY_COMPONENT"))
}

/// The shipped component of world `verifier`.
#[must_use]
pub fn verifier() -> &'static Path {
    Path::new(env!("RECOLLEX_VERIFIER_COMPONENT"))
}

/// The row runner inside wasm.
#[must_use]
pub fn wasm_engine() -> &'static Path {
    Path::new(env!("RECOLLEX_WASM_ENGINE"))
}

/// The component that misbehaves.
#[must_use]
pub fn hostile() -> &'static Path {
    Path::new(env!("RECOLLEX_HOSTILE"))
}

/// The repository's root.
#[must_use]
pub fn repository() -> &'static Path {
    // This crate's directory is one below it.
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap_or_else(|| Path::new("."))
}
