//! Topics: what evidence means, a paragraph a claim, each citing what it rests on.
//!
//! The bytes are specified in `FORMAT.md`, "Topics". From the inside out:
//!
//! - [`Items`] goes through a file by its lines: headings, paragraphs, definitions, fences. It never fails.
//! - [`TopicRef`] is a file read so, each part a view into the text that knows where it stands.
//! - [`Check`] looks through a topic: which [`Block`]s are sound, and every [`Fault`].
//! - [`Tree`] holds all topics of a workspace, and [`Unit`] is a claim as a value of its own.
//! - [`edit`] makes of what somebody wrote what is committed, or says why not.
//!
//! Reading repairs nothing and copies nothing: whoever edits works on the spans. Every step costs time in proportion to the
//! text, whatever the text. Knows names, text and hashes, and of archives what [`Sources`] answers; must not know how
//! archives are stored, what a session is, or who is asking.

mod block;
mod check;
pub mod edit;
mod fault;
mod item;
mod line;
mod paragraph;
mod resolve;
mod tree;
mod view;

pub(crate) use block::linked_block;
pub use block::{Block, Dated, Event, Evidence, Unit};
pub(crate) use check::is_older;
pub use check::{Check, Footnote, Source};
pub use fault::{Fault, FaultCode};
pub use item::{DefinitionForm, DefinitionRef, FenceKind, FenceRef, HeadingRef, Item, Items, LinkRef, Lump};
pub(crate) use line::ascending;
pub use line::{Locator, Part};
pub(crate) use paragraph::with_lf;
pub use paragraph::{CitationRef, Citations, Ending, GroupRef, Groups, ParagraphRef};
pub use resolve::{Anything, SourceTarget, Sources};
pub use tree::Tree;
pub use view::TopicRef;
