//! Views: what is derived from topics, byte for byte the same for the same topics.
//!
//! The bytes are specified in `FORMAT.md`, "Derived views". One function or type a view:
//!
//! - [`Timeline`]: a file for each time that something is evidence of;
//! - [`relations`]: which block links to which;
//! - [`recent_events`]: the claims made last;
//! - [`RuntimeState`]: in which order claims were made, and what else `runtime.json` keeps;
//! - [`CoreDraft`]: the part of the topics that an agent always sees, within a budget of tokens; [`CoreCount`] and
//!   [`CoreState`] keep what was counted, [`hand_written_core`] decides about one from before there were topics.
//!
//! [`Derivation`] puts them together: which of them an edit changes, and what they become, at the cost of the edit.
//!
//! All of it may be deleted and made again. Knows topics as values, and the table of what is known of them; must not know
//! files, tokenizers or who asked.

mod core_state;
mod core_view;
mod derive;
mod hand_core;
mod json;
mod recent;
mod relations;
mod runtime;
mod timeline;

pub use core_state::{CORE_STATE, CoreCount, CoreMade, CoreState, VOCABULARY};
pub use core_view::{CORE_FILE, CORE_TOPIC, CoreDraft, CoreView};
pub use derive::{ChangedTopic, Derivation, Derived, ViewLimits};
pub use hand_core::{HandCore, hand_core_fault, hand_written_core};
pub use recent::recent_events;
pub use relations::relations;
pub use runtime::RuntimeState;
pub use timeline::Timeline;
