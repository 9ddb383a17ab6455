//! What a call is, before it touches anything: who may make it, and with which settings.
//!
//! Knows callers, verbs and settings. Must not know stores or files: `guest/component` reads and writes, and asks the
//! layers below for every decision.

mod authority;
mod settings;
mod window;
mod workspace_id;

pub use authority::{Denied, Verb, authorise, keep_to_caller};
pub use settings::{Backend, Caller, Expected, SettingError, Settings};
pub use window::{LineWindow, Shown};
pub use workspace_id::WorkspaceId;
