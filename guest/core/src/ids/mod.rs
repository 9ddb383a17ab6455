//! Names that decide where things lie, who said them and when: source ids, speaker ids, block ids, paths, revisions,
//! days.
//!
//! Knows the format's rules for names (FORMAT.md, "Ids", "Paths", "Revision", "Topics"); must not know what a file
//! contains.

mod block_id;
mod date;
mod evidence_time;
mod mention;
mod path;
mod revision;
mod source_id;
mod source_ref;
mod speaker;
mod topic_path;
mod workspace_id;

pub(crate) use block_id::is_label_byte;
pub use block_id::{BlockId, FootnoteLabel};
pub use date::{Day, Period, PeriodError, Span};
pub use evidence_time::EvidenceTime;
pub use mention::{REFERENCES_MAX, lexical_id, mentions_turns, numbered_conversation, references_in};
pub use path::{
    LegacyLocation, Location, archive_of_branches, is_derived_path, is_internal_path, is_v2_path, legacy_twin,
    path_order,
};
pub use revision::{FlatRevision, Revision, RevisionBuilder};
pub(crate) use source_id::is_allowed;
pub use source_id::{SourceId, SourceIdError, anchor_of};
pub use source_ref::{SourceRef, TurnRef};
pub use speaker::{SpeakerId, label};
pub use topic_path::{TopicPath, TopicPathError};
pub use workspace_id::WorkspaceId;
