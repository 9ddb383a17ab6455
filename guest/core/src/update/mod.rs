//! Updates of memory: from a request to what is to be done, or every reason why not.
//!
//! From the outside in:
//!
//! - [`Request`] is read from JSON ([`Request::from_json`]) or made of a [`Proposal`], and is as requests have to be.
//! - [`Draft`] is the request of a [`Caller`]: it has the records that quoted sources become, to be looked up in archives.
//! - [`Draft::plan`] takes a [`Workspace`] and gives a [`Plan`], or a [`Rejection`] with its [`Fault`]s.
//! - [`Patch`] is a unified diff of topics.
//!
//! An edit has three forms: a patch, whole topics, operations on records. All three come to topics as they shall be, which
//! are then judged as every edit is ([`crate::topic::edit`]): whole. The rules are in FORMAT.md, "Updates".
//!
//! Pure, and costs follow the edit: it asks about the topics that it gives, those its records are in, and those that link to
//! what it moves. Knows topics, records and who may do what. Must not know views, stores or sessions: whoever commits a plan
//! adds what is derived from it.

mod document;
mod fault;
mod json;
mod limits;
mod observed_at;
mod patch;
mod quoted;
mod records;
mod request;
mod transaction;

pub use fault::{Code, Fault, Reason, Rejection, Why};
pub use limits::Limits;
pub use patch::{Conflict, FilePatch, Patch};
pub use quoted::{DEFAULT_PROVIDER, Provenance, quoted_records};
pub use request::{
    DEFAULT_MESSAGE, Position, Proposal, ProposedDestination, ProposedEdit, ProposedOperation, ProposedRecord,
    QuotedSource, Reference, Request,
};
pub use transaction::{Caller, Draft, Plan, WithQuoted, Workspace};
