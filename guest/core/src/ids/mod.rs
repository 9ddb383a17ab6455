//! Names that decide where things lie and who said them: source ids, speaker ids, paths, revisions.
//!
//! Knows the format's rules for names (FORMAT.md, "Ids", "Paths", "Revision"); must not know what a file contains.

mod path;
mod revision;
mod source_id;
mod speaker;

pub use path::{Location, is_derived_path, is_internal_path, is_v2_path, path_order};
pub use revision::{FlatRevision, Revision, RevisionBuilder};
pub(crate) use source_id::is_allowed;
pub use source_id::{SourceId, SourceIdError, anchor_of};
pub use speaker::{SpeakerId, label};
