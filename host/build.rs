//! Builds both guests, or takes ready ones, and tells the crate where they are.

use recollex_guest_build::{SHIPPED, SOURCES, provide};

fn main() {
    if let Err(message) = provide(&SHIPPED, &SOURCES) {
        println!("cargo::error={message}");
    }
}
