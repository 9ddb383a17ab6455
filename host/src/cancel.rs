//! Ending a call that another thread makes.
//!
//! Knows calls by number only. Must not know what they do, or how one is stopped: that is the meter's and the engine's.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Ends the call that a session is making, from any thread. Clones are of the same session.
#[derive(Clone, Debug, Default)]
pub struct Canceller(Arc<Calls>);

#[derive(Debug, Default)]
struct Calls {
    /// The number of the call under way; 0: there is none.
    running: AtomicU64,
    /// The number of the last call that is to end.
    cancelled: AtomicU64,
    /// The number of the last call that began.
    last: AtomicU64,
}

impl Canceller {
    /// Ends the call that the session is making now, if it is making one, with
    /// [`Error::Cancelled`](crate::Error::Cancelled); says whether it was.
    ///
    /// The call ends within some hundredths of a second, a wait for the lock within tenths; one that reads or commits,
    /// when the medium is done with that. What it had committed stays, what it had not is gone, a commit is completed if
    /// it had begun and not begun if it had not, and the lock is free. A call that was about to return may still do so,
    /// with what it had to say. Calls that come later are not meant.
    pub fn cancel(&self) -> bool {
        let running = self.0.running.load(Ordering::SeqCst);
        // If that call ends just now, no later one has its number.
        self.0.cancelled.fetch_max(running, Ordering::SeqCst);
        running != 0
    }

    /// A call begins, and ends when this is dropped.
    pub(crate) fn begin(&self) -> Running {
        let number = self.0.last.fetch_add(1, Ordering::SeqCst) + 1;
        self.0.running.store(number, Ordering::SeqCst);
        Running { calls: Arc::clone(&self.0), number }
    }

    /// Whether the call with this number is to end.
    pub(crate) fn is_cancelled(&self, number: u64) -> bool {
        number != 0 && self.0.cancelled.load(Ordering::SeqCst) == number
    }
}

/// A call under way. It ends also where the host panics.
#[derive(Debug)]
#[must_use]
pub(crate) struct Running {
    calls: Arc<Calls>,
    number: u64,
}

impl Running {
    pub(crate) fn number(&self) -> u64 {
        self.number
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.calls.running.store(0, Ordering::SeqCst);
    }
}

/// What stops the component, and becomes [`Error::Cancelled`](crate::Error::Cancelled).
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("cancelled")]
pub(crate) struct Cancelled;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_call_under_way_is_meant() {
        let canceller = Canceller::default();
        assert!(!canceller.cancel());
        let running = canceller.begin();
        let first = running.number();
        assert!(!canceller.is_cancelled(first));
        assert!(canceller.clone().cancel());
        assert!(canceller.is_cancelled(first));
        drop(running);
        assert!(!canceller.cancel());
        let running = canceller.begin();
        assert!(!canceller.is_cancelled(running.number()) && running.number() != first);
        assert!(!canceller.is_cancelled(0));
    }
}
