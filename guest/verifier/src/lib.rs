//! World `verifier`: checks archives that are handed to it and shows what is in them, and imports nothing.
//!
//! Every rule is in `recollex-core`; what is here keeps the files in order and converts types.

// Empty for any other target, so that `cargo check --workspace` works on the machine that builds it.
#![cfg(target_arch = "wasm32")]

mod bindings {
    //! What wit-bindgen makes of `wit/`.
    #![allow(missing_docs, unused_qualifications, clippy::all)]
    wit_bindgen::generate!({ world: "verifier", path: "../../wit", generate_all, pub_export_macro: true });
}

mod convert;
#[path = "../../shared/types.rs"]
mod shared;

use std::cell::RefCell;

use recollex_core::session::{HandedTopics, verifier_limits};
use recollex_core::source::{Catalogue, EntryKind, FileClass, FileOutcome, RecordRef, Standing, Verifier};

use bindings::exports::recollex::memory::archive_view as wit;

struct Component;

impl wit::Guest for Component {
    type Archive = Archive;
}

/// The files handed over so far.
struct Archive(RefCell<State>);

struct State {
    verifier: Verifier,
    catalogue: Catalogue,
    /// They wait until all files came; none: they came, and topics were checked.
    topics: Option<HandedTopics>,
    /// The file whose last piece has not come yet.
    open: Option<String>,
}

/// A piece of a file.
enum Piece<'a> {
    Text(&'a str),
    Bytes(&'a [u8]),
}

impl State {
    /// Whether the file at `path` may come now.
    fn check(&self, path: &str) -> Result<(), wit::Problem> {
        match &self.open {
            Some(open) if open == path => Ok(()),
            Some(open) => {
                let message = format!("`{open}` is still open: hand over its last piece before another file's first");
                Err(invalid("file-still-open", path, message))
            }
            None if self.topics.is_none() => {
                let message = "all files came, as `finish` said: begin another archive".to_owned();
                Err(invalid("archive-finished", path, message))
            }
            None if self.catalogue.has(path) => {
                let message = "this file was closed before: each file comes once".to_owned();
                Err(invalid("file-given-twice", path, message))
            }
            None => Ok(()),
        }
    }

    /// The file at `path` is the open one from now on, if it may come.
    fn open(&mut self, path: &str) -> Result<(), wit::Problem> {
        self.check(path)?;
        if self.open.is_none() {
            let class = self.verifier.file(path, EntryKind::File);
            self.catalogue.file(path, class);
            if let (FileClass::Topic, Some(topics)) = (class, &mut self.topics) {
                topics.open(path, self.verifier.within(path, class));
            }
            self.open = Some(path.to_owned());
        }
        Ok(())
    }

    fn push(&mut self, path: &str, piece: &Piece<'_>, last: bool) -> Result<(), wit::Problem> {
        self.open(path)?;
        let Self { verifier, catalogue, topics: Some(topics), .. } = self else { return Ok(()) };
        let bytes = match piece {
            Piece::Text(text) => text.as_bytes(),
            Piece::Bytes(bytes) => bytes,
        };
        topics.push(bytes);
        let mut keep = |path: &str, record: RecordRef<'_>| {
            catalogue.add(record);
            topics.record(path, record);
        };
        match piece {
            Piece::Text(text) => verifier.push_text(text, &mut keep),
            Piece::Bytes(bytes) => verifier.push_bytes(bytes, &mut keep),
        }
        if last {
            let outcome = verifier.end(&mut keep);
            self.close(outcome.as_ref());
        }
        Ok(())
    }

    fn close(&mut self, outcome: Option<&FileOutcome>) {
        if let Some(outcome) = outcome {
            self.catalogue.close(outcome);
        }
        if let Some(topics) = &mut self.topics {
            topics.close();
        }
        self.open = None;
    }

    fn break_off(&mut self, path: &str, why: &str) -> Result<(), wit::Problem> {
        self.open(path)?;
        if let Some(topics) = &mut self.topics {
            topics.drop_open();
        }
        let outcome = self.verifier.unreadable(why);
        self.close(outcome.as_ref());
        Ok(())
    }

    fn set_aside(&mut self, path: String, kind: EntryKind) -> Result<(), wit::Problem> {
        self.check(&path)?;
        if self.open.is_some() {
            let message = "this file is open: `break-off` closes it".to_owned();
            return Err(invalid("file-still-open", &path, message));
        }
        self.verifier.file(&path, kind);
        self.verifier.end(&mut |_, _| {});
        self.catalogue.set_aside(&path);
        Ok(())
    }

    fn finish(&mut self) -> Result<(), wit::Problem> {
        if let Some(open) = &self.open {
            let message = "this file is still open: hand over its last piece, or break it off".to_owned();
            return Err(invalid("file-still-open", open, message));
        }
        if let Some(topics) = self.topics.take() {
            topics.check(&self.catalogue, &mut self.verifier);
        }
        Ok(())
    }
}

fn invalid(reason: &str, path: &str, message: String) -> wit::Problem {
    shared::problem("INVALID_ARGUMENT", reason, Some(path), message)
}

impl wit::GuestArchive for Archive {
    fn open(origin: wit::Origin, settings: Vec<wit::ViewSetting>) -> Result<wit::Archive, wit::Problem> {
        let pairs = settings.iter().map(|setting| (setting.name.as_str(), setting.value.as_str()));
        let limits = verifier_limits(pairs).map_err(|error| shared::bad_setting(&error))?;
        Ok(wit::Archive::new(Self(RefCell::new(State {
            verifier: Verifier::new(convert::given(origin), &limits),
            catalogue: Catalogue::new(limits.records_max),
            topics: Some(HandedTopics::new(&limits)),
            open: None,
        }))))
    }

    fn classify(&self, paths: Vec<String>) -> Vec<wit::FileClass> {
        let state = self.0.borrow();
        paths.iter().map(|path| convert::class(state.verifier.class(path))).collect()
    }

    fn push_text(&self, path: String, text: String, last: bool) -> Result<(), wit::Problem> {
        self.0.borrow_mut().push(&path, &Piece::Text(&text), last)
    }

    fn push_bytes(&self, path: String, data: Vec<u8>, last: bool) -> Result<(), wit::Problem> {
        self.0.borrow_mut().push(&path, &Piece::Bytes(&data), last)
    }

    fn break_off(&self, path: String, why: String) -> Result<(), wit::Problem> {
        self.0.borrow_mut().break_off(&path, &why)
    }

    fn set_aside(&self, path: String, what: wit::Obstacle) -> Result<(), wit::Problem> {
        self.0.borrow_mut().set_aside(path, convert::entry_kind(what))
    }

    fn finish(&self) -> Result<(), wit::Problem> {
        self.0.borrow_mut().finish()
    }

    fn take_findings(&self, max: u32) -> Vec<wit::Finding> {
        let found = self.0.borrow_mut().verifier.take_findings(max as usize);
        found.into_iter().map(shared::finding).collect()
    }

    fn files(&self, from: u32, max: u32) -> Vec<wit::ViewedFile> {
        self.0.borrow().catalogue.files(from, max as usize).into_iter().map(convert::file).collect()
    }

    fn voices(&self, from: u32, max: u32) -> Vec<wit::Voice> {
        self.0.borrow().catalogue.voices(from, max as usize).into_iter().map(convert::voice).collect()
    }

    fn records(&self, of: wit::Selection, from: u64, max: u32) -> Vec<wit::ListedRecord> {
        let listed = self.0.borrow().catalogue.records(convert::selection(of), from, max as usize);
        listed.into_iter().map(convert::listed).collect()
    }

    fn summary(&self) -> wit::Summary {
        let state = self.0.borrow();
        let summary = state.verifier.summary();
        let tally = |standing| convert::tally(state.catalogue.tally(standing));
        wit::Summary {
            ok: summary.ok,
            health: shared::health(summary.health),
            counts: shared::counts(&summary.counts),
            findings_dropped: summary.findings_dropped,
            records_dropped: state.catalogue.dropped(),
            trusted: tally(Standing::Trusted),
            hints: tally(Standing::Hint),
            unnamed: tally(Standing::Unnamed),
        }
    }
}

bindings::export!(Component with_types_in bindings);
