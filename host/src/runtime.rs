//! The engine and the two components, compiled and checked once for a whole program.
//!
//! Knows where components come from and how the engine is set. Must not know what their exports mean: that is
//! [`Session`](crate::Session) and [`Archive`](crate::Archive).

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use recollex_cwasm::{Cache, Origin, Reason, Unusable, Wasm};
use wasmtime::component::{Component, HasSelf, Linker};
use wasmtime::{Config, Engine, OptLevel};

use crate::bindings::memory::{Memory, MemoryPre};
use crate::bindings::verifier::VerifierPre;
use crate::error::Error;
use crate::imports::Host;
use crate::limits::Limits;
use crate::model::{Models, NoModels};
use crate::observer::{Level, Observer, Silent};
use crate::ticker::Ticker;
use crate::verifier::Alone;
use crate::versions::{self, World};

/// The components of this build.
static MEMORY_COMPONENT: &[u8] = include_bytes!(env!("RECOLLEX_MEMORY_COMPONENT"));
const MEMORY_DIGEST: &str = env!("RECOLLEX_MEMORY_COMPONENT_SHA256");
static VERIFIER_COMPONENT: &[u8] = include_bytes!(env!("RECOLLEX_VERIFIER_COMPONENT"));
const VERIFIER_DIGEST: &str = env!("RECOLLEX_VERIFIER_COMPONENT_SHA256");

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
    /// The language models that sessions may ask; none: everything but writing by a model works.
    pub models: Arc<dyn Models>,
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
            models: Arc::new(NoModels),
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

    /// The models that sessions ask.
    #[must_use]
    pub fn models(&self) -> &Arc<dyn Models> {
        &self.inner.options.models
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
pub(crate) fn engine(limits: &Limits) -> wasmtime::Result<Engine> {
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
    let (file, embedded, digest) = if world.name == versions::MEMORY.name {
        (&options.memory_component, MEMORY_COMPONENT, MEMORY_DIGEST)
    } else {
        (&options.verifier_component, VERIFIER_COMPONENT, VERIFIER_DIGEST)
    };
    let read = file.as_ref().map(|path| std::fs::read(path).map_err(|source| Error::Io { path: path.clone(), source }));
    let read = read.transpose()?;
    // Of what this build carries the digest is known.
    let wasm = match &read {
        Some(read) => Wasm::new(read),
        None => Wasm::with_digest(embedded, digest),
    };
    let began = Instant::now();
    let (component, how, warning) =
        compiled(engine, options.cache.as_deref(), wasm, world.name == versions::MEMORY.name)
            .map_err(|error| Error::Component { message: format!("{error:#}") })?;
    options.observer.log(Level::Debug, &format!("component `{}` {how} in {:.1?}", world.name, began.elapsed()));
    if let Some(warning) = warning {
        options.observer.log(Level::Warn, &warning);
    }
    world.check(engine, &component)?;
    Ok(component)
}

/// Compiles or loads, and says which; and what the user should see to, if the cache is not to be trusted. `first`: no
/// component was looked for in it before.
fn compiled(
    engine: &Engine,
    cache: Option<&Path>,
    wasm: Wasm<'_>,
    first: bool,
) -> wasmtime::Result<(Component, String, Option<String>)> {
    let Some(directory) = cache else {
        return Ok((Component::from_binary(engine, wasm.bytes)?, "compiled, without a cache,".to_owned(), None));
    };
    let (component, origin) = Cache::new(directory).component(engine, wasm)?;
    Ok(match origin {
        Origin::Cache => (component, "loaded from the cache".to_owned(), None),
        Origin::Compiled { passed_over, kept } => {
            let warning = rejected(passed_over.as_ref(), &kept, first);
            let mut how = "compiled".to_owned();
            if let Some(entry) = passed_over {
                how.push_str(&format!(", passing over {entry},"));
            }
            match kept {
                Ok(()) => how.push_str(" and kept"),
                Err(why) => how.push_str(&format!(", not kept: {why},")),
            }
            (component, how, warning)
        }
    })
}

/// The warning for a cache that somebody else could have written: who, by the reason, and what to do. Damage and other
/// settings mend themselves; a medium that cannot be written costs time and nothing else. What is wrong with the directory
/// is told once, with the first component.
fn rejected(passed_over: Option<&Unusable>, kept: &Result<(), Unusable>, first: bool) -> Option<String> {
    let is_unsafe =
        |unusable: &&Unusable| matches!(unusable.reason, Reason::Kind(_) | Reason::Owner(_) | Reason::Mode(_));
    if let Some(why) = kept.as_ref().err().filter(is_unsafe) {
        let cure = match why.reason {
            Reason::Mode(_) => "take the others' right to write away (chmod go-w), after a look at what is in it",
            _ => "move it away, or use another directory",
        };
        return first.then(|| format!("compiled components are not kept, and each call takes longer: {why}; {cure}"));
    }
    let entry = passed_over.filter(is_unsafe)?;
    let outcome = if kept.is_ok() { "it was replaced" } else { "delete it" };
    Some(format!("a compiled component was not used: {entry}; {outcome}"))
}

/// Interfaces of a fitting version that still do not fit: a function is missing or has another type.
fn misfit(error: &wasmtime::Error, world: World) -> Error {
    Error::Version {
        wanted: format!("does not match: {error:#}"),
        offered: format!("has the world `{}` around {}", world.name, world.exports.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Archive;

    #[derive(Default)]
    struct Lines(Mutex<Vec<String>>);

    impl Observer for Lines {
        fn log(&self, _level: Level, message: &str) {
            self.0.lock().unwrap().push(message.to_owned());
        }
    }

    /// The property that the verifier is for: there is nothing outside itself that it could call.
    #[test]
    fn the_verifier_imports_nothing_that_can_be_called() {
        let engine = engine(&Limits::default()).expect("an engine");
        let component = Component::from_binary(&engine, VERIFIER_COMPONENT).expect("a component");
        let ty = component.component_type();
        for (name, import) in ty.imports(&engine) {
            let wasmtime::component::types::ComponentItem::ComponentInstance(instance) = import.ty else {
                panic!("{name} is no interface");
            };
            for (item, export) in instance.exports(&engine) {
                assert!(
                    matches!(export.ty, wasmtime::component::types::ComponentItem::Type(_)),
                    "{name} holds {item}, which is no type"
                );
            }
        }
        Linker::<()>::new(&engine).instantiate_pre(&component).expect("to link with nothing");
    }

    #[test]
    fn a_second_runtime_loads_from_the_cache() {
        let directory = tempfile::tempdir().expect("a directory");
        let lines = Arc::new(Lines::default());
        let options = || RuntimeOptions {
            cache: Some(directory.path().join("cwasm")),
            observer: lines.clone(),
            ..RuntimeOptions::default()
        };
        for expected in ["compiled and kept", "loaded from the cache"] {
            let runtime = Runtime::new(options()).expect("a runtime");
            Archive::new(&runtime).expect("an archive");
            let lines = std::mem::take(&mut *lines.0.lock().unwrap());
            assert_eq!(lines.len(), 2, "{lines:?}");
            assert!(lines.iter().all(|line| line.contains(expected)), "{lines:?}");
        }
    }

    #[test]
    fn a_cache_that_cannot_be_used_is_said_and_no_error() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        let lines = Arc::new(Lines::default());
        let options = RuntimeOptions {
            cache: Some(file.path().join("below")),
            observer: lines.clone(),
            ..RuntimeOptions::default()
        };
        Runtime::new(options).expect("a runtime");
        let lines = lines.0.lock().unwrap().clone();
        assert!(lines.len() == 2 && lines.iter().all(|line| line.contains("not kept")), "{lines:?}");
    }

    #[test]
    fn a_cache_that_others_can_write_is_a_warning_once() {
        use std::os::unix::fs::{PermissionsExt, symlink};

        #[derive(Default)]
        struct Warnings(Mutex<Vec<String>>);
        impl Observer for Warnings {
            fn log(&self, level: Level, message: &str) {
                if level >= Level::Warn {
                    self.0.lock().unwrap().push(message.to_owned());
                }
            }
        }
        let directory = tempfile::tempdir().expect("a directory");
        let open = directory.path().join("open");
        std::fs::create_dir(&open).expect("a directory");
        std::fs::set_permissions(&open, std::fs::Permissions::from_mode(0o777)).expect("its mode");
        let link = directory.path().join("link");
        symlink(&open, &link).expect("a link");
        for (cache, word) in [(open, "0777"), (link, "link")] {
            let warnings = Arc::new(Warnings::default());
            let options =
                RuntimeOptions { cache: Some(cache), observer: warnings.clone(), ..RuntimeOptions::default() };
            let runtime = Runtime::new(options).expect("a runtime");
            Archive::new(&runtime).expect("an archive");
            let warnings = warnings.0.lock().unwrap();
            assert!(warnings.len() == 1 && warnings[0].contains(word), "{warnings:?}");
        }
    }

    #[test]
    fn an_entry_that_others_can_write_is_told_of_and_replaced() {
        let entry = |reason| Unusable { path: "/c/x.cwasm".into(), reason };
        let said = rejected(Some(&entry(Reason::Mode(0o644))), &Ok(()), false).expect("a warning");
        assert!(said.contains("/c/x.cwasm") && said.contains("0644") && said.ends_with("replaced"), "{said}");
        let said = rejected(Some(&entry(Reason::Owner(7))), &Err(entry(Reason::Damaged)), true).expect("a warning");
        assert!(said.ends_with("delete it"), "{said}");
        assert_eq!(rejected(Some(&entry(Reason::Damaged)), &Ok(()), true), None);
        assert_eq!(rejected(None, &Ok(()), true), None);
    }

    fn with_component(bytes: &[u8]) -> Error {
        let mut file = tempfile::NamedTempFile::new().expect("a file");
        std::io::Write::write_all(&mut file, bytes).expect("to write");
        let options = RuntimeOptions { memory_component: Some(file.path().to_path_buf()), ..RuntimeOptions::default() };
        Runtime::new(options).expect_err("it does not fit")
    }

    #[test]
    fn components_of_other_makes_are_told_from_each_other() {
        let missing = RuntimeOptions { memory_component: Some("/nowhere/at-all".into()), ..RuntimeOptions::default() };
        assert!(matches!(Runtime::new(missing), Err(Error::Io { path, .. }) if path == Path::new("/nowhere/at-all")));
        assert!(matches!(with_component(b"no wasm"), Error::Component { .. }));
        // A core module, and the component of the other world.
        assert!(matches!(with_component(b"\0asm\x01\0\0\0"), Error::Component { .. }));
        assert!(matches!(with_component(VERIFIER_COMPONENT), Error::Version { .. }));
        // The right name with nothing behind it.
        let hollow = r#"(component (instance $empty) (export "recollex:memory/workspace@0.1.0" (instance $empty)))"#;
        assert!(matches!(with_component(&wat::parse_str(hollow).expect("its text")), Error::Version { .. }));
    }
}
