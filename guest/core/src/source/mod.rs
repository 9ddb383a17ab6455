//! Evidence: archives, the frames in them, the records in those; reading, appending, checking.
//!
//! The bytes are specified in `FORMAT.md`. From the outside in:
//!
//! - [`Verifier`] is fed files of any kind and says what is wrong with them.
//! - [`Scanner`] is fed one v2 archive and hands on its frames, each as a [`FrameRef`]; [`LegacyScanner`] is fed one of the
//!   older form and hands on [`LegacyRef`]s. [`Record`] and [`Event`] are what is kept of one.
//! - [`Catalogue`] keeps what somebody who looks into an archive wants to see: files, records, who speaks.
//! - [`Batch`] checks new records, [`Comparison`] holds them against what is stored, and [`Plan`] is the text to append;
//!   [`NumberedBatch`], [`NumberedComparison`] and [`NumberedPlan`] are the same for numbered conversations.
//! - [`Preview`] stands for what a run that writes nothing would have kept.
//! - [`Branches`] is what a conversation's second file says where records do not come behind the one before them.
//! - [`NewerIds`] and [`Resolution`] say, over all files, which record counts and what may be built on.
//!
//! Nothing here reads or writes: callers push pieces and are told what to fetch. Memory follows the limits, not the size
//! of files or records. Knows names, text and hashes; must not know sessions, stores, indexes or who is asking.

mod batch;
mod branches;
mod catalogue;
mod compare;
mod evidence;
mod frame;
mod glance;
mod header;
mod ids_seen;
mod legacy;
mod legacy_line;
mod limits;
mod line_start;
mod metadata;
mod numbered;
mod preview;
mod record;
mod record_head;
mod report;
mod scan;
mod verify;

pub use crate::text::clean;
pub use batch::{Batch, BatchError, NewRecord};
pub use branches::{BranchLine, Branches, Predecessor};
pub use catalogue::{Catalogue, CatalogueFile, Listed, Selection, Standing, Tally, Voice};
pub(crate) use catalogue::{Key, Numbers, next_number};
pub use compare::{BranchChange, Change, Comparison, Existing, ExistingScan, Kept, Outcome, Plan, RecordRange, Stored};
pub use evidence::{NewerIds, Resolution, Unresolved};
pub use frame::{ContentHasher, FrameRef, MARKER, metadata_token, said};
pub use glance::{FramePlace, glance};
pub use legacy::{LegacyEnd, LegacyItem, LegacyKind, LegacyRef, LegacyScanner};
pub use limits::{LimitReached, Limits};
pub use metadata::{Metadata, REDACTED_KIND, Tier, Trust, UNKNOWN};
pub use numbered::{
    NewNumbered, NumberedBatch, NumberedChange, NumberedComparison, NumberedExisting, NumberedKept, NumberedPlan,
    NumberedScan,
};
pub use preview::{Obstacle, Occupant, Preview};
pub use record::{Event, Record, RecordRef, Speaker, first_date};
pub use report::{Finding, FindingCode, Problem, Severity};
pub use scan::{Fault, Resume, ScanEnd, Scanner, Tail};
pub use verify::{Counts, EntryKind, FileClass, FileOutcome, Given, Health, Summary, Verifier};
