//! The long-term memory of AI agents, kept as files a person can read: the host.
//!
//! The logic is in two WebAssembly components whose contract is `wit/`. This crate runs them with wasmtime and gives
//! them what they import: a store over one directory, a lock, a clock, randomness, a log, language models. What a component
//! cannot do is as much part of it as what it can: it touches one workspace and nothing else, within [`Limits`] of time,
//! memory and output, and a fault in it is an [`Error`] with a name, after which the next call works.
//!
//! ```no_run
//! use std::path::Path;
//!
//! use recollex::workspace::{Query, Turn};
//! use recollex::{Error, OpenOptions, Runtime, RuntimeOptions, Session, Tier};
//!
//! fn main() -> Result<(), Error> {
//!     let runtime = Runtime::new(RuntimeOptions::default())?;
//!     let mut session = Session::open(&runtime, Path::new("memory"), OpenOptions::new(Tier::Owner))?;
//!     session.init()?;
//!     session.archive(&[Turn::new("my-agent", "monday", "1", "user", "The key is under the third pot.")])?;
//!     for hit in session.search(&Query::new("key", 5))?.hits {
//!         println!("{}: {}", hit.path, hit.text);
//!     }
//!     Ok(())
//! }
//! ```
//!
//! A call that is wanted no more can be ended from another thread ([`Session::canceller`]): it fails with
//! [`Error::Cancelled`], the lock is free, the workspace is as before or as the call's commit made it, and the next call
//! works.
//!
//! ```no_run
//! # use std::path::Path;
//! # use recollex::{Error, OpenOptions, Runtime, RuntimeOptions, Session, Tier, workspace::Query};
//! # fn example(runtime: &Runtime) -> Result<(), Error> {
//! let mut session = Session::open(runtime, Path::new("memory"), OpenOptions::new(Tier::Owner))?;
//! let canceller = session.canceller();
//! std::thread::spawn(move || {
//!     std::thread::sleep(std::time::Duration::from_millis(200));
//!     canceller.cancel()
//! });
//! match session.search(&Query::new("key", 5)) {
//!     Err(Error::Cancelled) => println!("that took too long"),
//!     outcome => println!("{} hits", outcome?.hits.len()),
//! }
//! # Ok(())
//! # }
//! ```
//!
//! One [`Runtime`] serves a whole program; a [`Session`] is one caller on one workspace, an [`Archive`] one archive that
//! is checked in memory. Calls are synchronous and belong on a thread that may block. A program with bytes elsewhere than
//! in a directory implements [`store::Store`] and [`lock::Lock`] and opens sessions over its own [`Medium`].
//!
//! Where things are: `runtime` sets the engine up; `call` makes one call and tells its failure apart; `session` and
//! `verifier` are the two worlds' exports; `imports` is what the component gets, and [`store`] and [`lock`] what is
//! behind that; [`model`] asks language models; [`turns`] brings conversations into memory; [`recaller`] recalls for those who
//! cannot wait; [`history`] records commits with git; [`maintenance`] looks after a workspace from outside; `versions` refuses
//! components that do not fit.

#![forbid(unsafe_code)]

pub mod bindings;
mod call;
mod cancel;
mod clock;
mod error;
pub mod history;
mod imports;
mod limits;
pub mod lock;
pub mod maintenance;
pub mod model;
pub mod observer;
pub mod recaller;
mod runtime;
mod session;
pub mod store;
mod ticker;
mod tokens;
pub mod turns;
mod verifier;
mod versions;

pub use bindings::archive_view;
pub use bindings::types::{self, Tier};
pub use bindings::workspace;
pub use cancel::Canceller;
pub use clock::{Clock, SystemClock};
pub use error::Error;
pub use limits::Limits;
pub use observer::Observer;
pub use recaller::Recaller;
pub use runtime::{Runtime, RuntimeOptions};
pub use session::{Importing, Medium, OpenOptions, Session, Verification};
pub use verifier::Archive;
