//! Test-only component: core, with the row runner and the benchmarks' workloads, inside wasm.
//!
//! It imports nothing, so that a difference between its outcomes and native ones is core's alone.

#![cfg(target_arch = "wasm32")]

mod bindings {
    #![allow(missing_docs, reason = "the WIT file carries the documentation")]
    #![allow(unused_qualifications, reason = "generated")]

    wit_bindgen::generate!({ path: "wit", world: "engine" });
}

use core::cell::RefCell;

use bindings::exports::recollex::tests::rows::{Guest as Rows, Outcome};
use bindings::exports::recollex::tests::workloads::{Done, Guest as Workloads, GuestWorkload, Workload};
use recollex_test_rows::workload;

struct Engine;

impl Rows for Engine {
    fn observe(file: String, input: String) -> Result<Outcome, String> {
        let input = serde_json::from_str(&input).map_err(|error| error.to_string())?;
        match recollex_test_rows::observe(&file, &input).map_err(|error| error.to_string())? {
            recollex_test_rows::Outcome::Shown(value) => Ok(Outcome::Shown(value.to_string())),
            recollex_test_rows::Outcome::NotHere(reason) => Ok(Outcome::NotHere(reason.into_owned())),
        }
    }
}

impl Workloads for Engine {
    type Workload = Prepared;
}

/// A workload with its data.
pub struct Prepared(RefCell<workload::Prepared>);

impl GuestWorkload for Prepared {
    fn prepare(name: String, bytes: u64) -> Result<Workload, String> {
        let bytes = usize::try_from(bytes).map_err(|_| format!("{bytes} bytes do not fit into memory"))?;
        workload::prepare(&name, bytes).map(|prepared| Workload::new(Self(RefCell::new(prepared))))
    }

    fn rewind(&self) {
        self.0.borrow_mut().rewind();
    }

    fn run(&self) -> Result<Done, String> {
        let done = self.0.borrow_mut().run()?;
        Ok(Done { bytes: done.bytes, items: done.items })
    }
}

bindings::export!(Engine with_types_in bindings);
