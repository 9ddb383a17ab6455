//! The engine and the two components, compiled and checked once for a whole program.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use crate::error::Error;
use crate::limits::Limits;
use crate::observer::{Observer, Silent};

/// How a [`Runtime`] is set up. `RuntimeOptions::default()` runs the components that this crate carries, within the
/// default limits, without a cache.
#[derive(Clone)]
pub struct RuntimeOptions {
    /// Directory for compiled components. It is made if it is not there, must belong to the user alone, and may be
    /// deleted at any time. None: the components are compiled anew for each runtime, which takes tenths of a second.
    pub cache: Option<PathBuf>,
    /// What one call may use.
    pub limits: Limits,
    /// Hears of what happens to the runtime itself: compiling, the cache. Sessions have their own.
    pub observer: Arc<dyn Observer>,
    /// A component file of world `memory` to run instead of the one in this crate.
    pub memory_component: Option<PathBuf>,
    /// A component file of world `verifier` to run instead of the one in this crate.
    pub verifier_component: Option<PathBuf>,
}

impl Default for RuntimeOptions {
    fn default() -> Self {
        Self {
            cache: None,
            limits: Limits::default(),
            observer: Arc::new(Silent),
            memory_component: None,
            verifier_component: None,
        }
    }
}

impl fmt::Debug for RuntimeOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RuntimeOptions")
            .field("cache", &self.cache)
            .field("limits", &self.limits)
            .field("memory_component", &self.memory_component)
            .field("verifier_component", &self.verifier_component)
            .finish_non_exhaustive()
    }
}

/// An engine with both components, ready to be used by any number of sessions and threads. Cheap to clone: clones share
/// everything.
#[derive(Clone, Debug)]
pub struct Runtime {
    options: Arc<RuntimeOptions>,
}

impl Runtime {
    /// Sets the engine up, compiles the `memory` component or takes it from the cache, and checks its version. The
    /// verifier follows at its first use.
    ///
    /// # Errors
    /// [`Error::Version`] when the component and this host do not fit, [`Error::Component`] when it is none,
    /// [`Error::Io`] when a named component file cannot be read, [`Error::Engine`] when this machine cannot run it.
    /// A cache that cannot be used is no error.
    pub fn new(options: RuntimeOptions) -> Result<Self, Error> {
        Ok(Self { options: Arc::new(options) })
    }

    /// The limits that every call keeps.
    #[must_use]
    pub fn limits(&self) -> &Limits {
        &self.options.limits
    }
}
