//! A last word before a trap. On this target the message of a panic is lost; the host's log keeps it.

use std::sync::Once;

use crate::bindings::recollex::memory::log::{Level, write};

/// From now on a panic is written to the log first. Core does not panic; this is for what nobody foresaw.
pub(crate) fn report_to_log() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| std::panic::set_hook(Box::new(|panic| write(Level::Error, &panic.to_string()))));
}
