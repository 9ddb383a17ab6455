//! What a component may use up: named, counted, and each a typed error when it is reached.
//!
//! Knows the numbers and how a wasmtime store is made to keep them. Must not know what the component does.

use std::time::{Duration, Instant};

use wasmtime::ResourceLimiter;

use crate::cancel::{Cancelled, Canceller, Running};
use crate::error::Error;

/// What one call of a component may use. A call that reaches one of these ends with [`Error::Limit`], which carries the
/// name given here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// `deadline`: wall-clock time of one call, time spent in the host included, save what models take. It is kept to within
    /// about 10 ms, and never cuts a commit of the store in two.
    pub deadline: Duration,
    /// `model-time`: wall-clock time that models may take within one call, all requests together. A request is cut short by
    /// it (`timeout`); the next one ends the call.
    pub model_time: Duration,
    /// `memory`: bytes of linear memory, over all memories of a session.
    pub memory_bytes: u64,
    /// `output`: bytes that one call may write and log, and again bytes that it may return.
    pub output_bytes: u64,
    /// `host-calls`: imports that one call may call, whatever they answer.
    pub host_calls: u64,
    /// `stack`: bytes of stack for the component's own calls. The thread that calls needs more than this left.
    pub stack_bytes: usize,
    /// `table`: elements over all tables of a session.
    pub table_elements: u64,
    /// `handles`: resource handles that live at one time in a session.
    pub handles: usize,
}

impl Default for Limits {
    /// 60 s, an hour of models, 1 GiB of memory, 256 MiB of output, ten million calls of imports, 512 KiB of stack, 100 000 table elements and as many handles.
    fn default() -> Self {
        Self {
            deadline: Duration::from_secs(60),
            model_time: Duration::from_secs(60 * 60),
            memory_bytes: 1 << 30,
            output_bytes: 256 << 20,
            host_calls: 10_000_000,
            stack_bytes: 512 << 10,
            table_elements: 100_000,
            handles: 100_000,
        }
    }
}

/// Bytes of randomness that one import call gives. Fixed: nobody needs more at a time, and the answer is the host's
/// memory.
pub(crate) const RANDOM_BYTES: u64 = 1 << 20;

/// So many memories, tables and instances a component may have. Ours have one memory and a handful of instances; each
/// memory reserves gigabytes of address space, whatever its size.
const PARTS: usize = 64;

/// A limit that was reached: the error that stops the component, and becomes [`Error::Limit`].
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("limit `{name}` of {allowed} {unit} reached")]
pub(crate) struct Reached {
    pub name: &'static str,
    pub allowed: u64,
    pub unit: &'static str,
}

impl From<Reached> for Error {
    fn from(reached: Reached) -> Self {
        Self::Limit { name: reached.name, allowed: reached.allowed, unit: reached.unit }
    }
}

impl Limits {
    pub(crate) fn deadline_reached(&self) -> Reached {
        let allowed = u64::try_from(self.deadline.as_millis()).unwrap_or(u64::MAX);
        Reached { name: "deadline", allowed, unit: "ms" }
    }

    pub(crate) fn model_time_reached(&self) -> Reached {
        let allowed = u64::try_from(self.model_time.as_millis()).unwrap_or(u64::MAX);
        Reached { name: "model-time", allowed, unit: "ms" }
    }

    pub(crate) fn output_reached(&self) -> Reached {
        Reached { name: "output", allowed: self.output_bytes, unit: "bytes" }
    }

    pub(crate) fn host_calls_reached(&self) -> Reached {
        Reached { name: "host-calls", allowed: self.host_calls, unit: "calls" }
    }

    pub(crate) fn stack_reached(&self) -> Reached {
        Reached { name: "stack", allowed: self.stack_bytes as u64, unit: "bytes" }
    }

    pub(crate) fn handles_reached(&self) -> Reached {
        Reached { name: "handles", allowed: self.handles as u64, unit: "handles" }
    }

    /// The system gave no more memory, whatever this host allows.
    pub(crate) fn machine_reached(&self) -> Reached {
        let of_process = rustix::process::getrlimit(rustix::process::Resource::As).current;
        let allowed = of_process.unwrap_or(self.memory_bytes);
        Reached { name: "machine-memory", allowed, unit: "bytes" }
    }

    pub(crate) fn random_reached() -> Reached {
        Reached { name: "random", allowed: RANDOM_BYTES, unit: "bytes" }
    }
}

/// What the calls of one wasmtime store have used so far.
#[derive(Debug)]
pub(crate) struct Meter {
    limits: Limits,
    /// Who may end a call, and the number of the one under way.
    canceller: Canceller,
    number: u64,
    /// When the call under way must be over; none: never.
    deadline: Option<Instant>,
    /// Time that models may still take.
    model_time_left: Duration,
    output_left: u64,
    host_calls_left: u64,
    memory: u64,
    table: u64,
    /// What the component logged last as an error in this call: why it is about to fail, if it does.
    pub said: Option<String>,
}

impl Meter {
    pub fn new(limits: Limits) -> Self {
        Self {
            limits,
            canceller: Canceller::default(),
            number: 0,
            deadline: None,
            model_time_left: Duration::ZERO,
            output_left: 0,
            host_calls_left: 0,
            memory: 0,
            table: 0,
            said: None,
        }
    }

    /// The same, for calls that may be ended so.
    pub fn cancelled_by(self, canceller: Canceller) -> Self {
        Self { canceller, ..self }
    }

    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Bytes of linear memory, over all memories.
    pub fn memory(&self) -> u64 {
        self.memory
    }

    /// A call begins, and is over when what is returned is dropped: time and output count from here. Memory stays as it
    /// is, because it does.
    pub fn begin(&mut self) -> Running {
        self.deadline = Instant::now().checked_add(self.limits.deadline);
        self.model_time_left = self.limits.model_time;
        self.output_left = self.limits.output_bytes;
        self.host_calls_left = self.limits.host_calls;
        self.said = None;
        let running = self.canceller.begin();
        self.number = running.number();
        running
    }

    /// Whether nobody has cancelled the call under way.
    pub fn check_cancelled(&self) -> wasmtime::Result<()> {
        if self.canceller.is_cancelled(self.number) { Err(Cancelled.into()) } else { Ok(()) }
    }

    /// Whether the call under way may go on: nobody has cancelled it, and it has not had its time.
    pub fn check_time(&self) -> wasmtime::Result<()> {
        self.check_cancelled()?;
        match self.deadline {
            Some(deadline) if Instant::now() >= deadline => Err(self.limits.deadline_reached().into()),
            _ => Ok(()),
        }
    }

    /// The time that is left to the call under way.
    pub fn time_left(&self) -> Duration {
        self.deadline.map_or(Duration::MAX, |deadline| deadline.saturating_duration_since(Instant::now()))
    }

    /// The time that a model may take which is asked to answer within `wanted`.
    pub fn model_time(&self, wanted: Duration) -> wasmtime::Result<Duration> {
        if self.model_time_left.is_zero() {
            return Err(self.limits.model_time_reached().into());
        }
        Ok(wanted.min(self.model_time_left))
    }

    /// A model took so long: that is counted as its own, and given back to the call.
    pub fn spent_on_model(&mut self, time: Duration) {
        self.model_time_left = self.model_time_left.saturating_sub(time);
        self.deadline = self.deadline.and_then(|deadline| deadline.checked_add(time));
    }

    /// Counts one call of an import, which somebody who cancelled the call does not want any more.
    pub fn count_call(&mut self) -> wasmtime::Result<()> {
        self.check_cancelled()?;
        match self.host_calls_left.checked_sub(1) {
            Some(left) => {
                self.host_calls_left = left;
                Ok(())
            }
            None => Err(self.limits.host_calls_reached().into()),
        }
    }

    /// Counts bytes that leave the component for good.
    pub fn charge(&mut self, bytes: usize) -> Result<(), Reached> {
        match self.output_left.checked_sub(bytes as u64) {
            Some(left) => {
                self.output_left = left;
                Ok(())
            }
            None => Err(self.limits.output_reached()),
        }
    }
}

/// An error here becomes a trap; answering `false` would only make the component's allocator give up a little later, in
/// words that say less.
impl ResourceLimiter for Meter {
    fn memory_growing(&mut self, current: usize, desired: usize, maximum: Option<usize>) -> wasmtime::Result<bool> {
        self.memory = grown(self.memory, current, desired, maximum, self.limits.memory_bytes)
            .map_err(|allowed| Reached { name: "memory", allowed, unit: "bytes" })?;
        Ok(true)
    }

    fn memory_grow_failed(&mut self, _error: wasmtime::Error) -> wasmtime::Result<()> {
        Err(self.limits.machine_reached().into())
    }

    fn table_growing(&mut self, current: usize, desired: usize, maximum: Option<usize>) -> wasmtime::Result<bool> {
        self.table = grown(self.table, current, desired, maximum, self.limits.table_elements)
            .map_err(|allowed| Reached { name: "table", allowed, unit: "elements" })?;
        Ok(true)
    }

    fn instances(&self) -> usize {
        PARTS
    }

    fn tables(&self) -> usize {
        PARTS
    }

    fn memories(&self) -> usize {
        PARTS
    }
}

/// What all memories, or all tables, have together once one of them has grown from `current` to `desired`. An error is
/// what was allowed: that one's own `maximum`, which its type gives, or the `limit` on all.
fn grown(all: u64, current: usize, desired: usize, maximum: Option<usize>, limit: u64) -> Result<u64, u64> {
    if let Some(maximum) = maximum
        && desired > maximum
    {
        return Err(maximum as u64);
    }
    let all = all.saturating_add(desired.saturating_sub(current) as u64);
    if all > limit { Err(limit) } else { Ok(all) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_grown_is_counted_together_and_its_own_maximum_apart() {
        assert_eq!(grown(0, 0, 10, None, 100), Ok(10));
        assert_eq!(grown(10, 10, 20, Some(20), 100), Ok(20));
        // A second one: small by itself, too much together.
        assert_eq!(grown(95, 0, 5, Some(5), 100), Ok(100));
        assert_eq!(grown(96, 0, 5, Some(5), 100), Err(100));
        assert_eq!(grown(0, 20, 21, Some(20), 100), Err(20));
        assert_eq!(grown(u64::MAX, 0, usize::MAX, None, 100), Err(100));
    }
}
