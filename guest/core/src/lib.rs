//! The logic of Recollex: bytes and values in, decisions out.
//!
//! No I/O, no clock, no randomness, no panic. `guest/component` and `guest/verifier` wrap it as WebAssembly components;
//! the tests call it directly. Read `FORMAT.md` beside this crate first: it says what the bytes mean.
//!
//! Arrows point down only (a test holds them to it):
//!
//! ```text
//! session            what a call does
//!   -> writer        a model that changes memory: what it is asked and told, and when it is over
//!   -> search        index, query, ranking
//!      prompt        what an agent is shown of it
//!      turns         what a conversation owes to memory, marks, what is due
//!      import        exports of other programs, a conversation at a time
//!      update        from a request to what is committed, or why not
//!      read          what a reader is shown of a file
//!     -> views       what is derived from topics
//!       -> table     what was found out, kept for the next time
//!         -> trust     who may do what, what may be built on, who may see it
//!           -> source  frames, records, archives, batches, verification
//!              topic   headings, blocks, citations, what is wrong with them
//!             -> ids  text  digest  time
//! ```

#![forbid(unsafe_code)]
// A panic in a guest is a trap, and a trap loses the session. Tests may panic: that is how they fail.
#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, clippy::unreachable)
)]

pub mod digest;
pub mod ids;
pub mod import;
pub mod prompt;
pub mod read;
pub mod search;
pub mod session;
pub mod source;
pub mod table;
pub mod text;
pub mod time;
pub mod topic;
pub mod trust;
pub mod turns;
pub mod update;
pub mod views;
pub mod writer;
