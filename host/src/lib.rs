//! The long-term memory of AI agents, kept as files a person can read: the host.
//!
//! The logic is in two WebAssembly components whose contract is `wit/`. This crate runs them with wasmtime and gives
//! them what they import: a store over one directory, a lock, a clock, randomness, a log. What a component cannot do is
//! as much part of it as what it can: it touches one workspace and nothing else, within [`Limits`] of time, memory and
//! output, and a fault in it is an [`Error`] with a name, after which the next call works.

#![forbid(unsafe_code)]

pub mod bindings;
mod call;
mod error;
mod imports;
mod limits;
pub mod lock;
pub mod observer;
mod runtime;
mod session;
pub mod store;
mod ticker;
mod verifier;
mod versions;

pub use bindings::types::{self, Tier};
pub use bindings::workspace;
pub use error::Error;
pub use limits::Limits;
pub use observer::Observer;
pub use runtime::{Runtime, RuntimeOptions};
pub use session::{Medium, OpenOptions, Session, Verification};
pub use verifier::Archive;
