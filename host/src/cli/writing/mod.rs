//! From conversations to memory: the verbs `turns`, `write`, `sleep`, `backfill`, `salvage` and `daemon`.
//!
//! Each is thin: options in, calls of [`recollex::turns`], results out. What is owed, due or written is the component's.

pub mod args;
mod backfill;
mod daemon;
mod report;
mod salvage;
mod sessions;
mod sleep;
mod stopping;
mod turns;
mod write;

pub use backfill::run as backfill;
pub use daemon::run as daemon;
pub use report::WriterView;
pub use salvage::run as salvage;
pub use sessions::{Format, pending_turns};
pub use sleep::run as sleep;
pub use turns::run as turns;
pub use write::{hook, run as write};
