//! Runs one row of a vector file against core and shows what came out, in the row's own shape.
//!
//! Compiled twice: natively, and into the test-only component `tests/wasm-engine`. Whoever runs a row never sees what
//! the row expects: [`observe`] gets the input alone, and [`judge`] compares afterwards. That keeps a runner from
//! agreeing with a row by looking at it, and lets one outcome be held against the original and against a deviation.
//!
//! A later step adds a vector file by adding a module with a `fn(&Input) -> Observed` and a line in [`FILES`].

mod archives;
mod authority;
mod backfill;
mod compare;
pub mod derived;
mod derived_files;
mod fence;
mod frames_parse;
mod frames_write;
mod ids;
mod index_events;
mod input;
pub mod inspect;
mod legacy_parse;
mod markers;
mod markers_suffix;
pub mod promote;
pub mod references;
mod structure;
mod topics_parse;
mod topics_validate;
pub mod unpaired;
pub mod update;
pub mod workload;
mod writer_status;
mod writer_turns;

use std::borrow::Cow;

use serde_json::Value;

pub use compare::{Difference, judge};
pub use frames_write::{is_archive_path, numbered_turns, timestamp};
pub use input::{Input, Malformed, bytes_value};

/// What a row came to.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// What core did, in the shape of the row's `expected`; it may show more at the top level.
    Shown(Value),
    /// Core has no part in this row, or not yet: the reason.
    NotHere(Cow<'static, str>),
}

impl Outcome {
    /// Core has no part in this row, for this reason.
    #[must_use]
    pub const fn not_here(reason: &'static str) -> Self {
        Self::NotHere(Cow::Borrowed(reason))
    }
}

/// A runner's answer; an error is a row that the runner cannot read, which is a fault of the runner or of the row.
pub type Observed = Result<Outcome, Malformed>;

/// Counts the tokens of a text by the vocabulary `o200k_base`.
pub type Counter = fn(&str) -> u64;

/// Runs a row of one file.
#[derive(Clone, Copy)]
enum Runner {
    /// With nothing but the row.
    Plain(fn(&Input<'_>) -> Observed),
    /// With somebody who counts tokens, if there is one.
    Counting(fn(&Input<'_>, Option<Counter>) -> Observed),
}

/// Vector files, by name without `.jsonl`, and who runs their rows.
const FILES: &[(&str, Runner)] = &[
    ("authority", Runner::Plain(authority::observe)),
    ("backfill", Runner::Plain(backfill::observe)),
    ("derived", Runner::Counting(derived::observe)),
    ("fence", Runner::Plain(fence::observe)),
    ("frames_parse", Runner::Plain(frames_parse::observe)),
    ("frames_write", Runner::Plain(frames_write::observe)),
    ("ids", Runner::Plain(ids::observe)),
    ("index_events", Runner::Plain(index_events::observe)),
    ("inspect", Runner::Plain(inspect::observe)),
    ("legacy_parse", Runner::Plain(legacy_parse::observe)),
    ("markers", Runner::Plain(markers::observe)),
    ("markers_suffix", Runner::Plain(markers_suffix::observe)),
    ("promote", Runner::Plain(promote::observe)),
    ("references", Runner::Plain(references::observe)),
    ("structure", Runner::Plain(structure::observe)),
    ("topics_parse", Runner::Plain(topics_parse::observe)),
    ("topics_validate", Runner::Plain(topics_validate::observe)),
    ("unpaired_archive", Runner::Plain(unpaired::observe)),
    ("update", Runner::Plain(update::observe)),
    ("writer_status", Runner::Plain(writer_status::observe)),
    ("writer_turns", Runner::Plain(writer_turns::observe)),
];

/// What one row came to once it was held against its expectation.
#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    /// It came to what the row expects.
    Passed,
    /// It did not: the first difference.
    Failed(Difference),
    /// Not a row for this engine: the reason.
    Unsupported(Cow<'static, str>),
}

/// Runs the input of one row of `file` (its name without `.jsonl`).
///
/// # Errors
/// The row's input has not the shape that the file's runner reads.
pub fn observe(file: &str, input: &Value) -> Observed {
    observe_counting(file, input, None)
}

/// The same, with somebody who counts tokens for rows that need it.
///
/// # Errors
/// As [`observe`].
pub fn observe_counting(file: &str, input: &Value, counter: Option<Counter>) -> Observed {
    match FILES.iter().find(|(name, _)| *name == file) {
        Some((_, Runner::Plain(runner))) => runner(&Input::new(input)),
        Some((_, Runner::Counting(runner))) => runner(&Input::new(input), counter),
        None => Ok(Outcome::not_here("no runner for this file yet")),
    }
}

/// Runs one row, given as its line of the file, and holds it against its own `expected`.
///
/// # Errors
/// The line is no row, or its input has not the shape that the file's runner reads.
pub fn run(file: &str, line: &str) -> Result<Verdict, Malformed> {
    let row: Value = serde_json::from_str(line).map_err(|error| Malformed::new("row", error.to_string()))?;
    let field = |name: &'static str| row.get(name).ok_or_else(|| Malformed::new(name, "missing"));
    Ok(match observe(file, field("input")?)? {
        Outcome::NotHere(reason) => Verdict::Unsupported(reason),
        Outcome::Shown(got) => judge(field("expected")?, &got).map_or(Verdict::Passed, Verdict::Failed),
    })
}
