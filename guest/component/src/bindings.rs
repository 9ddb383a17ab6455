//! What wit-bindgen makes of `wit/`. WASI's two interfaces come through the `wasi` crate.

#![allow(missing_docs, unused_qualifications, clippy::all)]

wit_bindgen::generate!({
    world: "memory",
    path: "../../wit",
    generate_all,
    pub_export_macro: true,
    with: {
        "wasi:clocks/wall-clock@0.2.12": wasi::clocks::wall_clock,
        "wasi:random/random@0.2.12": wasi::random::random,
    },
});
