//! World `verifier`: checks archives that are handed to it, and imports nothing.
//!
//! Every rule is in `recollex-core`; what is here keeps the files in order and converts types.

// Empty for any other target, so that `cargo check --workspace` works on the machine that builds it.
#![cfg(target_arch = "wasm32")]

mod bindings {
    //! What wit-bindgen makes of `wit/`.
    #![allow(missing_docs, unused_qualifications, clippy::all)]
    wit_bindgen::generate!({ world: "verifier", path: "../../wit", generate_all, pub_export_macro: true });
}

#[path = "../../shared/types.rs"]
mod shared;

use std::cell::RefCell;
use std::collections::BTreeSet;

use recollex_core::source::{EntryKind, FrameRef, Given, Limits, Record, Verifier};

use bindings::exports::recollex::memory::archive_view as wit;

struct Component;

impl wit::Guest for Component {
    type Archive = Archive;
}

/// The files handed over so far.
struct Archive(RefCell<State>);

struct State {
    verifier: Verifier,
    records: Vec<Record>,
    /// The file whose last piece has not come yet.
    open: Option<String>,
    closed: BTreeSet<String>,
}

/// A piece of a file.
enum Piece<'a> {
    Text(&'a str),
    Bytes(&'a [u8]),
}

impl State {
    fn push(&mut self, path: String, piece: &Piece<'_>, last: bool) -> Result<(), wit::Error> {
        match &self.open {
            Some(open) if *open == path => {}
            Some(open) => {
                let message = format!("`{open}` is still open: hand over its last piece before another file's first");
                return Err(invalid("file-still-open", path, &message));
            }
            None if self.closed.contains(&path) => {
                return Err(invalid("file-given-twice", path, "this file was closed before: each file comes once"));
            }
            None => {
                self.verifier.file(&path, EntryKind::File);
                self.open = Some(path.clone());
            }
        }
        let Self { verifier, records, .. } = self;
        let mut keep = |path: &str, frame: &FrameRef<'_>| records.push(Record::new(path, frame));
        match piece {
            Piece::Text(text) => verifier.push_text(text, &mut keep),
            Piece::Bytes(bytes) => verifier.push_bytes(bytes, &mut keep),
        }
        if last {
            verifier.end(&mut keep);
            self.open = None;
            self.closed.insert(path);
        }
        Ok(())
    }
}

fn invalid(reason: &str, path: String, message: &str) -> wit::Error {
    wit::Error::Invalid(bindings::recollex::memory::types::Problem {
        code: "INVALID_ARGUMENT".to_owned(),
        reason: reason.to_owned(),
        path: Some(path),
        line: None,
        subject: None,
        message: message.to_owned(),
    })
}

impl wit::GuestArchive for Archive {
    fn new() -> Self {
        Self(RefCell::new(State {
            verifier: Verifier::new(Given::AnyPath, &Limits::default()),
            records: Vec::new(),
            open: None,
            closed: BTreeSet::new(),
        }))
    }

    fn push_text(&self, path: String, text: String, last: bool) -> Result<(), wit::Error> {
        self.0.borrow_mut().push(path, &Piece::Text(&text), last)
    }

    fn push_bytes(&self, path: String, data: Vec<u8>, last: bool) -> Result<(), wit::Error> {
        self.0.borrow_mut().push(path, &Piece::Bytes(&data), last)
    }

    fn take_findings(&self, max: u32) -> Vec<wit::Finding> {
        let found = self.0.borrow_mut().verifier.take_findings(max as usize);
        found.into_iter().map(shared::finding).collect()
    }

    fn records(&self, from: u64, max: u32) -> Vec<wit::SourceRecord> {
        let state = self.0.borrow();
        let from = usize::try_from(from).unwrap_or(usize::MAX);
        state.records.iter().skip(from).take(max as usize).cloned().map(shared::record).collect()
    }

    fn summary(&self) -> wit::Summary {
        let summary = self.0.borrow().verifier.summary();
        wit::Summary {
            ok: summary.ok,
            health: shared::health(summary.health),
            counts: shared::counts(&summary.counts),
            findings_dropped: summary.findings_dropped,
        }
    }
}

bindings::export!(Component with_types_in bindings);
