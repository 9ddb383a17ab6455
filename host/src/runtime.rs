//! The engine and the two components, compiled and checked once for a whole program.
//!
//! Knows where components come from and how the engine is set. Must not know what their exports mean: that is
//! [`Session`](crate::Session) and [`Archive`](crate::Archive).

use std::borrow::Cow;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use recollex_cwasm::{Cache, Origin};
use wasmtime::component::{Component, HasSelf, Linker};
use wasmtime::{Config, Engine, OptLevel};

use crate::bindings::memory::{Memory, MemoryPre};
use crate::bindings::verifier::VerifierPre;
use crate::error::Error;
use crate::imports::Host;
use crate::limits::Limits;
use crate::observer::{Level, Observer, Silent};
use crate::ticker::Ticker;
use crate::verifier::Alone;
use crate::versions::{self, World};

/// The components of this build.
static MEMORY_COMPONENT: &[u8] = include_bytes!(env!("RECOLLEX_MEMORY_COMPONENT"));
static VERIFIER_COMPONENT: &[u8] = include_bytes!(env!("RECOLLEX_VERIFIER_COMPONENT"));

/// How a [`Runtime`] is set up. `RuntimeOptions::default()` runs the components that this crate carries, within the
/// default limits, without a cache.
#[derive(Clone)]
pub struct RuntimeOptions {
    /// Directory for compiled components. It is made if it is not there, must belong to the user alone, and may be
    /// deleted at any time. None, or one that cannot be used: the components are compiled anew for each runtime, which
    /// takes tenths of a second.
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
#[derive(Clone)]
pub struct Runtime {
    inner: Arc<Inner>,
}

struct Inner {
    options: RuntimeOptions,
    engine: Engine,
    ticker: Ticker,
    memory: MemoryPre<Host>,
    /// Made at its first use.
    verifier: Mutex<Option<VerifierPre<Alone>>>,
}

impl Runtime {
    /// Sets the engine up, compiles the `memory` component or takes it from the cache, and checks its version. The
    /// verifier follows in the same way with the first [`Archive`](crate::Archive).
    ///
    /// # Errors
    /// [`Error::Version`] when the component and this host do not fit, [`Error::Component`] when it is none,
    /// [`Error::Io`] when a named component file cannot be read, [`Error::Engine`] when this machine cannot run it.
    /// A cache that cannot be used is no error; the observer hears of it.
    pub fn new(options: RuntimeOptions) -> Result<Self, Error> {
        let engine = engine(&options.limits).map_err(|error| Error::Engine { message: format!("{error:#}") })?;
        let component = component(&engine, &options, versions::MEMORY)?;
        let mut linker = Linker::new(&engine);
        Memory::add_to_linker::<Host, HasSelf<Host>>(&mut linker, |host| host)
            .map_err(|error| Error::Engine { message: format!("{error:#}") })?;
        let memory = linker
            .instantiate_pre(&component)
            .and_then(MemoryPre::new)
            .map_err(|error| misfit(&error, versions::MEMORY))?;
        let ticker = Ticker::start(&engine)
            .map_err(|error| Error::Engine { message: format!("no thread for its clock: {error}") })?;
        Ok(Self { inner: Arc::new(Inner { options, engine, ticker, memory, verifier: Mutex::new(None) }) })
    }

    /// The limits that every call keeps.
    #[must_use]
    pub fn limits(&self) -> &Limits {
        &self.inner.options.limits
    }

    pub(crate) fn engine(&self) -> &Engine {
        &self.inner.engine
    }

    pub(crate) fn ticker(&self) -> &Ticker {
        &self.inner.ticker
    }

    pub(crate) fn memory(&self) -> &MemoryPre<Host> {
        &self.inner.memory
    }

    /// The verifier, linked to nothing at all.
    pub(crate) fn verifier(&self) -> Result<VerifierPre<Alone>, Error> {
        let Inner { options, engine, verifier, .. } = &*self.inner;
        // A panic while it was held left it as it was: empty or whole.
        let mut verifier = verifier.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(verifier) = &*verifier {
            return Ok(verifier.clone());
        }
        let component = component(engine, options, versions::VERIFIER)?;
        let made = Linker::new(engine)
            .instantiate_pre(&component)
            .and_then(VerifierPre::new)
            .map_err(|error| misfit(&error, versions::VERIFIER))?;
        Ok(verifier.insert(made).clone())
    }
}

impl fmt::Debug for Runtime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Runtime").field("options", &self.inner.options).finish_non_exhaustive()
    }
}

/// An engine for components of ours: 32-bit, single-threaded, the same results on every machine.
fn engine(limits: &Limits) -> wasmtime::Result<Engine> {
    let mut config = Config::new();
    config
        .cranelift_opt_level(OptLevel::Speed)
        .epoch_interruption(true)
        .max_wasm_stack(limits.stack_bytes)
        // Calls are synchronous; what is there for concurrent ones costs each of them three times its length.
        .concurrency_support(false)
        // The whole 32-bit space is reserved, so that a memory never moves and needs no bounds checks.
        .memory_may_move(false)
        // Results must not depend on the machine, and what no guest of ours uses need not be there to be attacked.
        .cranelift_nan_canonicalization(true)
        .wasm_relaxed_simd(false)
        .wasm_memory64(false);
    Engine::new(&config)
}

/// The component of a world, compiled and of a version that fits.
fn component(engine: &Engine, options: &RuntimeOptions, world: World) -> Result<Component, Error> {
    let (file, embedded) = if world.name == versions::MEMORY.name {
        (&options.memory_component, MEMORY_COMPONENT)
    } else {
        (&options.verifier_component, VERIFIER_COMPONENT)
    };
    let wasm: Cow<'_, [u8]> = match file {
        Some(path) => std::fs::read(path).map_err(|source| Error::Io { path: path.clone(), source })?.into(),
        None => embedded.into(),
    };
    let began = Instant::now();
    let (component, how) = compiled(engine, options.cache.as_deref(), &wasm)
        .map_err(|error| Error::Component { message: format!("{error:#}") })?;
    options.observer.log(Level::Debug, &format!("component `{}` {how} in {:.1?}", world.name, began.elapsed()));
    world.check(engine, &component)?;
    Ok(component)
}

/// Compiles or loads, and says which.
fn compiled(engine: &Engine, cache: Option<&Path>, wasm: &[u8]) -> wasmtime::Result<(Component, String)> {
    let Some(directory) = cache else {
        return Ok((Component::from_binary(engine, wasm)?, "compiled, without a cache,".to_owned()));
    };
    let (component, origin) = Cache::new(directory).component(engine, wasm)?;
    let how = match origin {
        Origin::Cache => "loaded from the cache".to_owned(),
        Origin::Compiled { passed_over, kept } => {
            let mut how = "compiled".to_owned();
            if let Some(entry) = passed_over {
                how.push_str(&format!(", passing over {entry},"));
            }
            match kept {
                Ok(()) => how.push_str(" and kept"),
                Err(why) => how.push_str(&format!(", not kept: {why},")),
            }
            how
        }
    };
    Ok((component, how))
}

/// Interfaces of a fitting version that still do not fit: a function is missing or has another type.
fn misfit(error: &wasmtime::Error, world: World) -> Error {
    Error::Version {
        wanted: format!("does not match: {error:#}"),
        offered: format!("has the world `{}` around {}", world.name, world.export),
    }
}
