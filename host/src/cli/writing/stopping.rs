//! Ctrl-C while a model thinks: the call under way is ended, which loses nothing, and nothing new begins.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use recollex::{Canceller, Session};

use crate::cli::failure::{Exit, Failure};
use crate::cli::import::Interrupt;

/// How long a signal waits to be noticed.
const LOOK: Duration = Duration::from_millis(50);

/// Ends a session's call when somebody asks to stop, for as long as it lives.
pub struct Stopping {
    interrupt: Interrupt,
    is_over: Arc<AtomicBool>,
}

impl Stopping {
    /// Listens from now on.
    ///
    /// # Errors
    /// The system does not let signals be heard.
    pub fn listen(session: &Session) -> Result<Self, Failure> {
        let interrupt = Interrupt::listen()
            .map_err(|error| Failure::usage("signals", format!("the system does not let signals be heard: {error}")))?;
        let is_over = Arc::new(AtomicBool::new(false));
        let stopping = Self { interrupt: interrupt.clone(), is_over: Arc::clone(&is_over) };
        let canceller = session.canceller();
        thread::spawn(move || watch(&interrupt, &canceller, &is_over));
        Ok(stopping)
    }

    /// Whether to stop.
    pub fn asked(&self) -> bool {
        self.interrupt.asked()
    }

    /// How the process ends if it was asked to stop.
    pub fn exit(&self) -> Exit {
        self.interrupt.exit()
    }

    /// Waits at most so long; says whether somebody asked to stop meanwhile.
    pub fn wait(&self, time: Duration) -> bool {
        let mut left = time;
        while !self.asked() && !left.is_zero() {
            let pause = LOOK.min(left);
            thread::sleep(pause);
            left -= pause;
        }
        self.asked()
    }
}

impl Drop for Stopping {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
    }
}

fn watch(interrupt: &Interrupt, canceller: &Canceller, is_over: &AtomicBool) {
    while !is_over.load(Ordering::Relaxed) {
        // Between two calls there is none to end, and the next may begin before anybody asks.
        if interrupt.asked() && canceller.cancel() {
            return;
        }
        thread::sleep(LOOK);
    }
}
