//! What a call is, before it touches anything: with which settings it is made, and what it shows.
//!
//! Knows settings and windows. Must not know stores or files: `guest/component` reads and writes, and asks the
//! layers below for every decision.

mod handed;
mod lines;
mod settings;
mod topics;
mod window;

pub use crate::ids::WorkspaceId;
pub use handed::HandedTopics;
pub use lines::LineWeights;
pub use settings::{Backend, Caller, Expected, SettingError, Settings, VERIFIER_SETTINGS, verifier_limits};
pub use topics::{core_not_a_topic, stale_view, topic_findings, unmended};
pub use window::{LineWindow, Shown};
