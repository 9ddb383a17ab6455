//! What proves Recollex: vectors over every engine, and the pieces that the integration tests and benchmarks share.
//!
//! See `README.md` beside this crate for how to run it all and what a row is.

pub mod built;
pub mod conformance;
pub mod corpus;
pub mod crash;
pub mod deviations;
pub mod edits;
pub mod engine;
pub mod exports;
pub mod extraction;
pub mod memory_store;
pub mod retrieval;
#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
pub mod trace;
pub mod turns;
pub mod vectors;
