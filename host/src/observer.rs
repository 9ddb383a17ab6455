//! Where a component's log lines, events and progress go.
//!
//! Knows nothing of wasmtime, so that an embedding program implements [`Observer`] with its own logging and no more.

use std::fmt;

/// How much a log line matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Level {
    /// For whoever looks for the cause of something.
    Debug,
    /// Worth knowing.
    Info,
    /// Something was not as it should be; work went on.
    Warn,
    /// Something failed.
    Error,
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Debug => "debug",
            Self::Info => "info",
            Self::Warn => "warn",
            Self::Error => "error",
        })
    }
}

/// Hears what a component and the host around it tell while they work.
///
/// Every method has an empty default. They are called on the thread that made the call, in the middle of it: what takes
/// long here takes from the call's deadline, and calling back into the same session is impossible by type.
pub trait Observer: Send + Sync {
    /// A line for people. Holds paths and ids, never what was said in a record.
    fn log(&self, level: Level, message: &str) {
        let _ = (level, message);
    }

    /// Something that happened, for programs.
    fn event(&self, name: &str, fields: &[(String, String)]) {
        let _ = (name, fields);
    }

    /// How far a task is: `done` of `total` (0: not known) in `unit` (`bytes`, `files`, `turns`).
    fn progress(&self, task: &str, done: u64, total: u64, unit: &str) {
        let _ = (task, done, total, unit);
    }
}

/// Listens to nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Silent;

impl Observer for Silent {}
