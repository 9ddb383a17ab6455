//! Trust: who may do what, what may be built on, and who may see it.
//!
//! - [`authorise`]: which tier may make which call; [`keep_to_caller`]: what a caller may say of themselves.
//! - [`Audience`]: what of the tree a caller sees; [`Narrowing`]: what the owner keeps to themselves.
//! - [`Promotion`]: vouching for a pending record; [`Promoter`]: who may.
//! - [`UnpairedMessage`], [`Quota`]: what people may have kept whom nobody let in.
//!
//! Knows tiers, records and paths. Must not know sessions, stores or how anything is searched.

mod audience;
mod authority;
mod caller;
mod float;
mod promote;
mod unpaired;

pub use audience::{
    Audience, InvalidPrefix, NarrowedAbove, Narrowing, Prefix, SETTINGS_BYTES_MAX, SETTINGS_PATH, SettingsFault,
};
pub use authority::{Authority, CHECK, Capability, Decision, Denied, Verb, authorise, decide, tool_capability};
pub use caller::keep_to_caller;
pub(crate) use float::python_float;
pub use promote::{AUDIT_PATH, Promoter, Promotion, Vouched, damaged};
pub use unpaired::{Quota, UnpairedLimits, UnpairedMessage, channel_directory, channel_has_room};
