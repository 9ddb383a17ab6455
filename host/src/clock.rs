//! What time it is for a component.
//!
//! Knows moments only. A program that plays something back, or a test, gives the time itself.

use std::fmt;
use std::time::SystemTime;

/// Tells a component the time: of promotions, of messages that count against a quota.
pub trait Clock: Send + Sync {
    /// Now. A moment before 1970 counts as 1970: a clock that is not set.
    fn now(&self) -> SystemTime;
}

/// The machine's clock.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> SystemTime {
        SystemTime::now()
    }
}

/// A clock that stands still.
impl Clock for SystemTime {
    fn now(&self) -> SystemTime {
        *self
    }
}

impl fmt::Debug for dyn Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Clock")
    }
}
