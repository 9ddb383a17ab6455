//! The clock that running components are measured by.
//!
//! wasmtime looks at an epoch number on loops and function entries, which is far cheaper than counting. Someone must
//! advance that number; this thread does, and only while a call runs, so that an idle program sleeps.

use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use wasmtime::{Engine, EngineWeak};

/// How far apart two looks at the deadline are.
const TICK: Duration = Duration::from_millis(10);

#[derive(Debug)]
pub(crate) struct Ticker {
    shared: Arc<Shared>,
    thread: Option<thread::JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// Calls under way.
    running: usize,
    /// The thread sleeps until a call begins.
    asleep: bool,
    stop: bool,
}

/// A call under way. The epoch advances as long as one of these lives.
#[derive(Debug)]
pub(crate) struct Running<'a>(&'a Shared);

impl Ticker {
    pub fn start(engine: &Engine) -> io::Result<Self> {
        let shared = Arc::new(Shared { state: Mutex::default(), changed: Condvar::new() });
        let thread = thread::Builder::new().name("recollex-ticker".to_owned()).spawn({
            let shared = Arc::clone(&shared);
            let engine = engine.weak();
            move || shared.run(&engine)
        })?;
        Ok(Self { shared, thread: Some(thread) })
    }

    pub fn enter(&self) -> Running<'_> {
        let mut state = self.shared.lock();
        state.running += 1;
        if state.asleep {
            state.asleep = false;
            self.shared.changed.notify_one();
        }
        Running(&self.shared)
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.0.lock().running -= 1;
    }
}

impl Drop for Ticker {
    fn drop(&mut self) {
        self.shared.lock().stop = true;
        self.shared.changed.notify_one();
        if let Some(thread) = self.thread.take() {
            // It cannot have panicked, and if it had there would be nothing to do about it here.
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn run(&self, engine: &EngineWeak) {
        let mut state = self.lock();
        while !state.stop {
            if state.running == 0 {
                state.asleep = true;
                state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
                continue;
            }
            // A call that begins does not shorten this wait: one wake-up a tick, however many calls there are.
            state = self.changed.wait_timeout(state, TICK).unwrap_or_else(PoisonError::into_inner).0;
            let Some(engine) = engine.upgrade() else { return };
            engine.increment_epoch();
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // The state is whole between any two statements, so a panic elsewhere does not spoil it.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wait_for(what: impl Fn() -> bool) -> bool {
        (0..500).any(|_| {
            thread::sleep(Duration::from_millis(2));
            what()
        })
    }

    #[test]
    fn sleeps_unless_a_call_runs() {
        let engine = Engine::default();
        let ticker = Ticker::start(&engine).expect("a thread");
        let asleep = || ticker.shared.lock().asleep;
        assert!(wait_for(asleep), "asleep at first");
        let outer = ticker.enter();
        let inner = ticker.enter();
        assert!(!asleep());
        drop(outer);
        thread::sleep(TICK * 3);
        assert!(!asleep(), "one call still runs");
        drop(inner);
        assert!(wait_for(asleep), "asleep again");
    }

    #[test]
    fn ends_with_its_owner() {
        let engine = Engine::default();
        let ticker = Ticker::start(&engine).expect("a thread");
        let shared = Arc::downgrade(&ticker.shared);
        let running = ticker.enter();
        drop(running);
        drop(ticker);
        assert_eq!(shared.strong_count(), 0, "the thread has let go");
    }
}
