//! The workspace's one lock: the trait behind the WIT interface `lock` (`wit/lock.wit`, the contract) and the lock that
//! other programs share, `flock` on `write.lock`.
//!
//! Knows the lock file and who holds it. Must not know what is written under the lock.

mod file;

pub use file::FileLock;
pub(crate) use file::is_alive;

use crate::store::Guard;

/// Who holds the lock, as far as this machine can tell.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Holder {
    /// Process id; none if unknown.
    pub process: Option<u64>,
    /// What the holder said it was doing; none if it did not say.
    pub purpose: Option<String>,
}

/// Why the lock was not given. Nothing was changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LockError {
    /// Another holder kept it for the whole wait.
    #[error("another process is writing")]
    Held(Option<Holder>),
    /// Locking is not possible here. Reading still works.
    #[error("denied: {0}")]
    Denied(String),
    /// The medium failed; the text is for people.
    #[error("{0}")]
    Io(String),
}

/// A workspace's lock. The contract is `wit/lock.wit`.
pub trait Lock: Send + Sync {
    /// Takes the lock, waiting at most `wait_ms` milliseconds. At most 64 bytes of `purpose` are shown to others.
    ///
    /// # Errors
    /// `Held` after the wait, also if this very process is the holder.
    fn acquire(&self, wait_ms: u32, purpose: &str) -> Result<Box<dyn Guard>, LockError>;

    /// Who holds the lock now; none if nobody does.
    ///
    /// # Errors
    /// As the medium fails.
    fn current(&self) -> Result<Option<Holder>, LockError>;
}
