//! What a component may use up: named, counted, and each a typed error when it is reached.
//!
//! Knows the numbers and how a store is made to keep them. Must not know what the component does.

use std::time::Duration;

/// What one call of a component may use. A call that reaches one of these ends with
/// [`Error::Limit`](crate::Error::Limit), which carries the name given here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// `deadline`: wall-clock time of one call, time spent in the host included.
    pub deadline: Duration,
    /// `memory`: bytes of linear memory, over all memories of a session.
    pub memory_bytes: u64,
    /// `output`: bytes that one call may write, log or return.
    pub output_bytes: u64,
    /// `stack`: bytes of stack for the component's own calls. The thread that calls needs more than this left.
    pub stack_bytes: usize,
    /// `table`: elements over all tables of a session.
    pub table_elements: u64,
}

impl Default for Limits {
    /// 60 s, 1 GiB of memory, 256 MiB of output, 512 KiB of stack, 100 000 table elements.
    fn default() -> Self {
        Self {
            deadline: Duration::from_secs(60),
            memory_bytes: 1 << 30,
            output_bytes: 256 << 20,
            stack_bytes: 512 << 10,
            table_elements: 100_000,
        }
    }
}
