//! Whether somebody wants the work to stop: Ctrl-C, or a system that asks politely.
//!
//! The first signal is noted and looked at between commits; the second ends the process at once, which loses nothing
//! either, but says nothing.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;

use crate::cli::failure::Exit;

/// Whether to stop. Clones speak of the same.
#[derive(Clone, Debug, Default)]
pub struct Interrupt {
    signal: Arc<AtomicUsize>,
}

impl Interrupt {
    /// Listens from now on, for as long as the process runs.
    ///
    /// # Errors
    /// The system does not let it.
    pub fn listen() -> io::Result<Self> {
        let interrupt = Self::default();
        let seen = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM] {
            // In this order: the first signal must not yet find itself seen.
            flag::register_conditional_shutdown(signal, exit(signal).0.into(), Arc::clone(&seen))?;
            flag::register(signal, Arc::clone(&seen))?;
            flag::register_usize(signal, Arc::clone(&interrupt.signal), usize::try_from(signal).unwrap_or(1))?;
        }
        Ok(interrupt)
    }

    /// Whether to stop.
    pub fn asked(&self) -> bool {
        self.signal.load(Ordering::Relaxed) != 0
    }

    /// How the process ends if it was asked to: as a shell reports a process that the signal ended.
    pub fn exit(&self) -> Exit {
        exit(i32::try_from(self.signal.load(Ordering::Relaxed)).unwrap_or(SIGINT))
    }

    /// What a stream answers that stops waiting because of it.
    pub fn error() -> io::Error {
        io::Error::other("stopped")
    }
}

fn exit(signal: i32) -> Exit {
    Exit(u8::try_from(128 + signal).unwrap_or(u8::MAX))
}
