//! From conversations to memory: where conversations are kept, and who has them written, marked and put in order.
//!
//! What is owed, what a writer reads, and where the mark goes is the component's (`wit/turns.wit`; FORMAT.md, "Turns"). Here is what
//! it cannot do: find conversations, hand their nodes over, change their files, wait, and try again.
//!
//! - [`SessionStore`] is a place where conversations are kept: [`OpenProgramSessions`], [`JsonlSessions`], or a program's own.
//! - [`Drive`] writes what a conversation owes, batch by batch, and marks it.
//! - [`Watch`] looks for conversations that have stopped; [`Nightly`] says when the night's work is due.
//! - [`Backend`] is memory as an agent sees it, whoever keeps it; [`Recollex`] is this one, [`Backends`] chooses by name.
//! - [`Conversation`], [`Organising`], [`Backfilling`] and [`Migration`] are what the component has under way for a [`Session`].
//!
//! ```no_run
//! use std::path::Path;
//!
//! use recollex::turns::{Drive, DriveOptions, OpenProgramSessions, SessionStore as _};
//! # fn example(session: &mut recollex::Session) -> Result<(), Box<dyn std::error::Error>> {
//! let workspace = Path::new("memory");
//! let store = OpenProgramSessions::new(Path::new("sessions"));
//! for conversation in store.list()?.conversations {
//!     let outcome = Drive::new(session, &store, Some(workspace)).write(&conversation, &DriveOptions::default());
//!     if let Some(failure) = outcome.failure {
//!         println!("{}: {}", failure.code, failure.message);
//!     }
//! }
//! # Ok(())
//! # }
//! ```
//!
//! [`Session`]: crate::Session

mod backend;
mod conversation;
mod drive;
mod jsonl;
mod lock;
mod openprogram;
mod place;
mod store;
#[cfg(test)]
mod tests;
mod watch;

pub use crate::bindings::turns::{
    Backfilled, BatchReport, Failure, Heads, Ledger, LedgerClass, LedgerEntry, ListedConversation, Organised,
    OwingBranch, Pending, Said, Salvaged, Splice, Trigger, Upkeep, WriteOptions, WriterState, Written,
};
pub use backend::{Backend, BackendError, Backends, Found, NoMemory, Recollex, Wrote};
pub use conversation::{Backfilling, Conversation, Migration, Organising};
pub use drive::{Drive, DriveOptions, Ended, Outcome, SESSION_NODES_UNAVAILABLE, failure_of, open, organise};
pub use jsonl::JsonlSessions;
pub use lock::{WATCH_LOCK, WRITER_LOCK, WriterLock};
pub use openprogram::OpenProgramSessions;
pub use store::{
    Listed, Listing, MarkPlanner, Marked, NodeSink, Plan, SessionStore, StoreError, StoreFault, StoreLimits,
};
pub use watch::{Nightly, Round, Watch, WatchError};
