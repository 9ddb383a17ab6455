//! One call into a component: armed with its limits, timed, and its failure told apart.
//!
//! Knows wasmtime's stores and errors, for any component. Must not know what a call is about.

use std::fmt::Write as _;

use wasmtime::{Store, StoreContextMut, Trap, UpdateDeadline, WasmBacktrace};

use crate::error::Error;
use crate::limits::{Limits, Meter, Reached};
use crate::ticker::Ticker;

/// What a store of ours holds: whatever the component's imports need, and the meter of its calls.
pub(crate) trait Metered: Send + 'static {
    fn meter(&mut self) -> &mut Meter;
}

/// A store that keeps `limits`, for calls made through [`call`].
pub(crate) fn store<H: Metered>(engine: &wasmtime::Engine, data: H) -> Store<H> {
    let mut store = Store::new(engine, data);
    store.limiter(|data| data.meter());
    store.epoch_deadline_callback(|mut context: StoreContextMut<'_, H>| {
        context.data_mut().meter().check_time()?;
        Ok(UpdateDeadline::Continue(1))
    });
    let limits = store.data_mut().meter().limits();
    let (output, handles) = (limits.output_bytes, limits.handles);
    // What one transfer out of the component may make the host allocate: strings of a returned list can all point to
    // the same bytes, so that the component's memory is no bound for it.
    store.set_hostcall_fuel(usize::try_from(output).unwrap_or(usize::MAX));
    store.set_max_component_handles(handles);
    store
}

/// Runs `f`, which makes a call into the component of `store`, within the limits.
///
/// After an error the store must not be used again: what runs in it was stopped anywhere.
pub(crate) fn call<H: Metered, T>(
    ticker: &Ticker,
    store: &mut Store<H>,
    f: impl FnOnce(&mut Store<H>) -> wasmtime::Result<T>,
) -> Result<T, Error> {
    store.data_mut().meter().begin();
    store.set_epoch_deadline(1);
    let running = ticker.enter();
    let outcome = f(store);
    drop(running);
    outcome.map_err(|error| told_apart(&error, store.data_mut().meter()))
}

/// What a failed call was: a limit of this host, or a fault of the component.
fn told_apart(error: &wasmtime::Error, meter: &mut Meter) -> Error {
    if let Some(reached) = error.downcast_ref::<Reached>().copied().or_else(|| reached(error, meter.limits())) {
        return reached.into();
    }
    Error::Trap {
        message: error.root_cause().to_string(),
        said: meter.said.take(),
        backtrace: error.downcast_ref::<WasmBacktrace>().map(backtrace).unwrap_or_default(),
    }
}

/// The limits that wasmtime keeps itself. Two of its errors have no public type, only words: the tests below see it when
/// those change.
fn reached(error: &wasmtime::Error, limits: &Limits) -> Option<Reached> {
    if let Some(trap) = error.downcast_ref::<Trap>() {
        return (*trap == Trap::StackOverflow).then(|| limits.stack_reached());
    }
    let words = error.root_cause().to_string();
    if words.contains("fuel allocated for hostcalls has been exhausted") {
        Some(limits.output_reached())
    } else if words.contains("store handle limit exceeded") {
        Some(limits.handles_reached())
    } else {
        None
    }
}

/// The functions that were running, innermost first, by the names that the component's author gave them.
fn backtrace(trace: &WasmBacktrace) -> String {
    let mut text = String::new();
    for (number, frame) in trace.frames().iter().enumerate() {
        let name = frame.func_name().map_or_else(
            || format!("function {}", frame.func_index()),
            |name| format!("{:#}", rustc_demangle::demangle(name)),
        );
        let offset = frame.module_offset().map(|offset| format!(" (at {offset:#x})")).unwrap_or_default();
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{number}: {name}{offset}");
    }
    text
}
