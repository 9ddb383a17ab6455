//! The row runner, and the benchmarks' workloads, inside a test-only component that imports nothing.

use recollex_test_rows::Outcome;
use serde_json::Value;
use wasmtime::component::{Component, Linker, ResourceAny};
use wasmtime::{Config, OptLevel, Store};

use super::{Engine, without_modes};
use crate::built;

mod bindings {
    #![allow(missing_docs, reason = "the WIT file carries the documentation")]
    #![allow(unused_qualifications, reason = "generated")]

    wasmtime::component::bindgen!({ path: "wasm-engine/wit", world: "engine" });
}

use bindings::exports::recollex::tests::rows;
pub use bindings::exports::recollex::tests::workloads::Done;

/// How many ticks of the epoch a call may take. Nobody ticks here: the checks cost what they cost in the host.
const NEVER: u64 = 1 << 40;

/// Runs rows and workloads in wasm.
pub struct Wasm {
    compiled: Component,
    linker: Linker<()>,
    store: Store<()>,
    instance: bindings::Engine,
}

impl Wasm {
    /// Compiles and instantiates the component.
    ///
    /// # Errors
    /// The engine's or the component's.
    pub fn start() -> Result<Self, wasmtime::Error> {
        // As the host sets its engine up, so that measurements here hold there: compiled code checks the epoch at every
        // loop and call, memory does not move, floating point is the same everywhere.
        let mut config = Config::new();
        config
            .cranelift_opt_level(OptLevel::Speed)
            .epoch_interruption(true)
            .concurrency_support(false)
            .memory_may_move(false)
            .cranelift_nan_canonicalization(true)
            .wasm_relaxed_simd(false)
            .wasm_memory64(false);
        let engine = wasmtime::Engine::new(&config)?;
        let compiled = Component::from_file(&engine, built::wasm_engine())?;
        let linker = Linker::new(&engine);
        let (store, instance) = instantiate(&compiled, &linker)?;
        Ok(Self { compiled, linker, store, instance })
    }

    /// Makes a workload ready, its data made inside.
    ///
    /// # Errors
    /// There is no such workload, or the component trapped.
    pub fn prepare(&mut self, name: &str, bytes: u64) -> Result<ResourceAny, String> {
        let workloads = self.instance.recollex_tests_workloads();
        workloads
            .workload()
            .call_prepare(&mut self.store, name, bytes)
            .unwrap_or_else(|trap| Err(format!("trapped: {trap:#}")))
    }

    /// Gets a workload ready for another run.
    ///
    /// # Errors
    /// The component trapped.
    pub fn rewind(&mut self, workload: ResourceAny) -> Result<(), String> {
        let workloads = self.instance.recollex_tests_workloads();
        workloads.workload().call_rewind(&mut self.store, workload).map_err(|trap| format!("trapped: {trap:#}"))
    }

    /// Runs a workload, once for each [`Wasm::rewind`].
    ///
    /// # Errors
    /// It failed or trapped.
    pub fn run(&mut self, workload: ResourceAny) -> Result<Done, String> {
        let workloads = self.instance.recollex_tests_workloads();
        workloads
            .workload()
            .call_run(&mut self.store, workload)
            .unwrap_or_else(|trap| Err(format!("trapped: {trap:#}")))
    }
}

fn instantiate(compiled: &Component, linker: &Linker<()>) -> Result<(Store<()>, bindings::Engine), wasmtime::Error> {
    let mut store = Store::new(compiled.engine(), ());
    store.set_epoch_deadline(NEVER);
    let instance = bindings::Engine::instantiate(&mut store, compiled, linker)?;
    Ok((store, instance))
}

impl Engine for Wasm {
    fn observe(&mut self, file: &str, input: &Value) -> Result<Outcome, String> {
        let answer = self.instance.recollex_tests_rows().call_observe(&mut self.store, file, &input.to_string());
        match answer {
            Ok(Ok(rows::Outcome::Shown(json))) => {
                serde_json::from_str(&json).map(Outcome::Shown).map_err(|error| format!("answered no JSON: {error}"))
            }
            Ok(Ok(rows::Outcome::NotHere(reason))) => Ok(Outcome::NotHere(reason.into())),
            Ok(Err(unreadable)) => Err(unreadable),
            Err(trap) => {
                // After a trap the whole store is unusable: the next row gets a new one.
                let (store, instance) =
                    instantiate(&self.compiled, &self.linker).map_err(|error| format!("{error:#}"))?;
                self.store = store;
                self.instance = instance;
                Err(format!("trapped: {trap:#}"))
            }
        }
    }

    fn view(&self, _file: &str, _input: &Value, expected: &Value) -> Value {
        without_modes(expected)
    }
}
