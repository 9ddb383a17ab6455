//! World `memory`: a workspace over a store.
//!
//! Turns imports into what core asks for, and core's decisions into exports. Every rule is in `recollex-core`; what is
//! here is loops over files and conversions between types.

// Empty for any other target, so that `cargo check --workspace` works on the machine that builds it.
#![cfg(target_arch = "wasm32")]

mod audience;
mod bindings;
mod branches;
mod cache;
mod change;
mod clock;
mod convert;
mod core_view;
mod evidence;
mod import;
mod index;
mod keep;
mod listing;
mod meaning;
mod numbered;
mod panic;
mod promote;
mod read;
mod reading;
mod recall;
mod records;
mod search;
mod session;
#[path = "../../shared/types.rs"]
mod shared;
mod state;
mod survey;
mod topics;
mod tree;
mod troubles;
mod turns;
mod unpaired;
mod update;
mod view;

use bindings::exports::recollex::memory::workspace;

struct Component;

impl workspace::Guest for Component {
    type Session = session::Session;
    type Verification = survey::Verification;
    type Importing = import::Importing;
}

bindings::export!(Component with_types_in bindings);
