//! Turns on their way from a conversation to memory: what is owed, what is marked, what is due.
//!
//! A conversation is a graph: whoever goes back and says something else begins a branch. Every turn of every branch is written
//! into memory exactly once. From the outside in:
//!
//! - [`SessionReader`] takes a session's nodes as its store has them, damaged ones too, and makes a [`Session`] of them:
//!   branches, [`Turn`]s with the records they become, and [`SessionFault`]s.
//! - [`Session::owed`] says what is owed on all branches, [`Owed`] cuts it into [`Batch`]es, [`Batch::text`] is what a writer
//!   reads. [`mark_node`] and [`mark_line`] mark what was written, [`Receipts`] what a crash kept from being marked.
//! - [`Session::ledger`] holds marks against evidence and citations.
//! - [`due`] says which sessions are looked at, [`Handled`] which were; [`WriterStatus`] how that went.
//! - [`Session::migrated`] is for workspaces from before marks; [`backfill`] for evidence that nothing marks at all.
//! - [`Lineage`] says from which branch a record comes.
//!
//! ```
//! use recollex_core::ids::WorkspaceId;
//! use recollex_core::source::Limits;
//! use recollex_core::time::Zone;
//! use recollex_core::turns::{Heads, SessionReader, TurnLimits, mark_line};
//!
//! let workspace = WorkspaceId::new([0x0a, 0x1b, 0x2c, 0x3d]);
//! let mut store = String::from(
//!     "{\"id\":\"u1\",\"role\":\"user\",\"content\":\"The hall is free on the 7th.\"}\n\
//!      {\"id\":\"a1\",\"role\":\"assistant\",\"content\":\"Noted.\",\"predecessor\":\"u1\"}\n",
//! );
//! let read = |store: &str| {
//!     let mut reader = SessionReader::new("openprogram", "local_42", &Zone::utc(), &Limits::default());
//!     reader.lines(store.as_bytes());
//!     reader.finish(&Heads::default())
//! };
//! let session = read(&store);
//! let owed = session.owed(workspace);
//! let count = |turn: &recollex_core::turns::Turn<'_>| turn.record.text.len() as u64 / 4;
//! let batch = owed.batches(&TurnLimits::default(), count).next().expect("both turns");
//! assert_eq!(batch.source_ids(), ["openprogram/local_42/u1", "openprogram/local_42/a1"]);
//! // Archive `batch.records()`, let a writer read `batch.text()`, commit its topics with a receipt; then:
//! store.push_str(&mark_line(batch.nodes(), workspace, true));
//! assert_eq!(read(&store).owed(workspace).count(), 0);
//! ```
//!
//! FORMAT.md, "Turns", says what the files mean. Knows nodes, marks and batches. Must not know stores, models or prompts.

pub mod backfill;
mod dag;
mod due;
mod fault;
mod ledger;
mod lineage;
mod lines;
mod mark;
mod migrate;
mod node;
mod owed;
mod receipt;
mod session;
mod status;
mod upkeep;

pub use due::{Due, Handled, HandledError, SessionState, due};
pub use fault::{SessionFault, SessionFaultCode};
pub use ledger::{Citations, Ledger, LedgerEntry, stale_topics};
pub use lineage::{Line, Lineage};
pub use lines::{cut_turn_line, turn_line};
pub use mark::{MarkError, MarkSplice, mark_line, mark_node};
pub use migrate::{CursorCandidates, has_cursors, without_cursors};
pub use node::{MARK_KEY, NoTurn, Node, Place};
pub use owed::{Batch, Owed, Segment, Trigger, TurnLimits, leading, observed_text};
pub use receipt::{Receipt, Receipts};
pub use session::{Branch, Heads, Session, SessionReader, Turn};
pub use status::{LastFailure, LastOutcome, ModelFailure, Retry, WriterCode, WriterFailure, WriterStatus};
pub use upkeep::{Upkeep, UpkeepLimits, after_batch};
