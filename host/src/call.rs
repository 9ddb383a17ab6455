//! One call into a component: armed with its limits, timed, and its failure told apart.
//!
//! Knows wasmtime's stores and errors, for any component. Must not know what a call is about.

use std::fmt::Write as _;

use wasmtime::{Store, StoreContextMut, Trap, UpdateDeadline, WasmBacktrace};

use crate::cancel::Cancelled;
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
    let calling = store.data_mut().meter().begin();
    store.set_epoch_deadline(1);
    let running = ticker.enter();
    let outcome = f(store);
    drop((running, calling));
    outcome.map_err(|error| told_apart(&error, store.data_mut().meter()))
}

/// What a failed call was: a limit of this host, or a fault of the component.
fn told_apart(error: &wasmtime::Error, meter: &mut Meter) -> Error {
    if error.downcast_ref::<Cancelled>().is_some() {
        return Error::Cancelled;
    }
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
    } else if has_no_memory(error, &words) {
        Some(limits.machine_reached())
    } else {
        None
    }
}

/// Whether the system had no memory left, for the component's own or for what runs it.
fn has_no_memory(error: &wasmtime::Error, words: &str) -> bool {
    let of_system = error.root_cause().downcast_ref::<std::io::Error>();
    of_system.is_some_and(|error| error.kind() == std::io::ErrorKind::OutOfMemory)
        || words.starts_with("Cannot allocate memory")
        || words.starts_with("out of memory")
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

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use wasmtime::Engine;
    use wasmtime::component::{Component, ComponentNamedList, Instance, Lift, Linker};

    use super::*;
    use crate::cancel::Canceller;
    use crate::runtime;

    /// A component whose every export misbehaves in one way, but the last.
    const HOSTILE: &str = r#"
        (component
          (type $thing (resource (rep i32)))
          (core func $new (canon resource.new $thing))
          (core instance $host (export "new" (func $new)))
          (core module $module
            (import "host" "new" (func $new (param i32) (result i32)))
            (memory (export "memory") 1)
            (table $table 1 funcref)
            (func (export "spin") (loop br 0))
            (func (export "grow") (loop (drop (memory.grow (i32.const 1))) br 0))
            (func $recurse (export "recurse") (call $recurse) (call $recurse))
            (func (export "tables") (loop (drop (table.grow $table (ref.null func) (i32.const 1))) br 0))
            (func (export "handles") (loop (drop (call $new (i32.const 0))) br 0))
            (func $fails_here (export "trap") unreachable)
            ;; A list of as many strings as asked for, which are all the same 32 KiB: so its size is not that of memory.
            (func (export "answer") (param $count i32) (result i32)
              (local $entry i32)
              (local.set $entry (i32.const 32768))
              (loop
                (i32.store (local.get $entry) (i32.const 0))
                (i32.store offset=4 (local.get $entry) (i32.const 32768))
                (local.set $entry (i32.add (local.get $entry) (i32.const 8)))
                (br_if 0 (i32.lt_u (local.get $entry) (i32.const 65528))))
              (i32.store (i32.const 65528) (i32.const 32768))
              (i32.store (i32.const 65532) (local.get $count))
              (i32.const 65528))
            (func (export "behave")))
          (core instance $instance (instantiate $module (with "host" (instance $host))))
          (func (export "spin") (canon lift (core func $instance "spin")))
          (func (export "grow") (canon lift (core func $instance "grow")))
          (func (export "recurse") (canon lift (core func $instance "recurse")))
          (func (export "tables") (canon lift (core func $instance "tables")))
          (func (export "handles") (canon lift (core func $instance "handles")))
          (func (export "trap") (canon lift (core func $instance "trap")))
          (func (export "answer") (param "count" u32) (result (list string))
            (canon lift (core func $instance "answer") (memory (core memory $instance "memory"))))
          (func (export "behave") (canon lift (core func $instance "behave"))))
    "#;

    struct Data(Meter);

    impl Metered for Data {
        fn meter(&mut self) -> &mut Meter {
            &mut self.0
        }
    }

    struct Fixture {
        ticker: Ticker,
        store: Store<Data>,
        instance: Instance,
    }

    fn limits() -> Limits {
        Limits {
            // Long, for a machine that is busy otherwise: cases about time say their own.
            deadline: Duration::from_secs(60),
            model_time: Duration::from_secs(60),
            memory_bytes: 1 << 20,
            output_bytes: 1 << 20,
            host_calls: 1000,
            stack_bytes: 256 << 10,
            table_elements: 1000,
            handles: 100,
        }
    }

    fn start(limits: Limits) -> Result<Fixture, Error> {
        let engine: Engine = runtime::engine(&limits).expect("an engine");
        let component = Component::new(&engine, wat::parse_str(HOSTILE).expect("its text")).expect("a component");
        let ticker = Ticker::start(&engine).expect("a thread");
        let mut store = store(&engine, Data(Meter::new(limits)));
        let linker = Linker::new(&engine);
        let instance = call(&ticker, &mut store, |store| linker.instantiate(store, &component))?;
        Ok(Fixture { ticker, store, instance })
    }

    impl Fixture {
        fn call<P, R>(&mut self, name: &str, parameters: P) -> Result<R, Error>
        where
            P: ComponentNamedList + wasmtime::component::Lower + Send + Sync,
            R: ComponentNamedList + Lift + Send + Sync + 'static,
        {
            let function = self.instance.get_typed_func::<P, R>(&mut self.store, name).expect("the function");
            call(&self.ticker, &mut self.store, |store| function.call(store, parameters))
        }
    }

    fn reached(name: &str) -> (&'static str, u64, &'static str) {
        reached_within(limits(), name)
    }

    fn reached_within(limits: Limits, name: &str) -> (&'static str, u64, &'static str) {
        let mut fixture = start(limits).expect("an instance");
        match fixture.call::<(), ()>(name, ()) {
            Err(Error::Limit { name, allowed, unit }) => (name, allowed, unit),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn time_is_limited() {
        let began = Instant::now();
        let limits = Limits { deadline: Duration::from_secs(1), ..limits() };
        assert_eq!(reached_within(limits, "spin"), ("deadline", 1000, "ms"));
        let took = began.elapsed();
        assert!(took >= Duration::from_secs(1), "{took:?}");
        // Generous, for a machine that is busy otherwise; without the limit it would not end.
        assert!(took < Duration::from_secs(20), "{took:?}");
    }

    #[test]
    fn a_call_can_be_cancelled_and_no_other_is() {
        let canceller = Canceller::default();
        let engine = runtime::engine(&limits()).expect("an engine");
        let component = Component::new(&engine, wat::parse_str(HOSTILE).expect("its text")).expect("a component");
        let ticker = Ticker::start(&engine).expect("a thread");
        let linker = Linker::new(&engine);
        for _ in 0..3 {
            let mut store = store(&engine, Data(Meter::new(limits()).cancelled_by(canceller.clone())));
            let instance =
                call(&ticker, &mut store, |store| linker.instantiate(store, &component)).expect("an instance");
            assert!(!canceller.cancel(), "nothing is under way");
            let mut fixture = Fixture { ticker: Ticker::start(&engine).expect("a thread"), store, instance };
            fixture.call::<(), ()>("behave", ()).expect("it behaves");
            let ended = std::thread::scope(|scope| {
                scope.spawn(|| while !canceller.cancel() {});
                fixture.call::<(), ()>("spin", ())
            });
            assert!(matches!(ended, Err(Error::Cancelled)), "{ended:?}");
        }
    }

    #[test]
    fn time_counts_for_each_call_anew() {
        let mut fixture = start(Limits { deadline: Duration::from_secs(2), ..limits() }).expect("an instance");
        for _ in 0..3 {
            fixture.call::<(), ()>("behave", ()).expect("it behaves");
            std::thread::sleep(Duration::from_millis(800));
        }
    }

    #[test]
    fn no_deadline_is_possible() {
        let mut fixture = start(Limits { deadline: Duration::MAX, ..limits() }).expect("an instance");
        fixture.call::<(), ()>("behave", ()).expect("it behaves");
    }

    #[test]
    fn memory_is_limited() {
        assert_eq!(reached("grow"), ("memory", 1 << 20, "bytes"));
    }

    #[test]
    fn memory_is_limited_from_the_start() {
        match start(Limits { memory_bytes: 65_535, ..limits() }) {
            Err(Error::Limit { name: "memory", allowed: 65_535, unit: "bytes" }) => {}
            other => panic!("{:?}", other.map(|_| "an instance")),
        }
    }

    #[test]
    fn the_stack_is_limited() {
        assert_eq!(reached("recurse"), ("stack", 256 << 10, "bytes"));
    }

    #[test]
    fn tables_are_limited() {
        assert_eq!(reached("tables"), ("table", 1000, "elements"));
    }

    /// Told by wasmtime's words.
    #[test]
    fn handles_are_limited() {
        assert_eq!(reached("handles"), ("handles", 100, "handles"));
    }

    /// Told by wasmtime's words. The component has 64 KiB of memory and would return 100 MiB.
    #[test]
    fn answers_are_limited_by_what_the_host_must_hold() {
        let mut fixture = start(limits()).expect("an instance");
        let (answer,) = fixture.call::<(u32,), (Vec<String>,)>("answer", (16,)).expect("half a mebibyte");
        assert_eq!(answer.iter().map(String::len).sum::<usize>(), 512 << 10);
        match fixture.call::<(u32,), (Vec<String>,)>("answer", (3200,)) {
            Err(Error::Limit { name: "output", allowed: 1_048_576, unit: "bytes" }) => {}
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_fault_is_no_limit_and_says_where() {
        let mut fixture = start(limits()).expect("an instance");
        match fixture.call::<(), ()>("trap", ()) {
            Err(Error::Trap { message, said: None, backtrace }) => {
                assert!(message.contains("unreachable"), "{message}");
                assert!(backtrace.starts_with("0: fails_here"), "{backtrace}");
            }
            other => panic!("{other:?}"),
        }
    }
}
