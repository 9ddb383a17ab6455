//! Reading everything once: for findings, figures and the revision.
//!
//! Knows which files there are and how far it has read. What is wrong with them core's `Verifier` says.

use std::cell::RefCell;

use recollex_core::digest::FileHasher;
use recollex_core::ids::{Revision, RevisionBuilder};
use recollex_core::source::{EntryKind, Finding, Given, Limits, Summary, Verifier};

use crate::bindings::exports::recollex::memory::workspace as wit;
use crate::bindings::recollex::memory::log;
use crate::bindings::recollex::memory::store::{Area, Entry, Kind, StoreError};
use crate::convert;
use crate::tree::{self, Reader};

/// The one file of the runtime directory that is part of a revision, and the path it has there.
const RUNTIME_FILE: (&str, &str) = ("runtime.json", ".scriptorium/runtime.json");

/// Progress is told this often at most in one survey.
const PROGRESS_STEPS: u64 = 100;

/// A workspace, or a part of it, being read.
pub(crate) struct Survey {
    verifier: Verifier,
    revision: RevisionBuilder,
    queue: std::vec::IntoIter<Entry>,
    open: Option<Open>,
    progress: Progress,
    ended: bool,
}

struct Open {
    reader: Reader,
    path: String,
    hasher: FileHasher,
}

impl Survey {
    /// Of everything below `prefix`; a listing that fails is the caller's to tell.
    pub(crate) fn start(prefix: &str, limits: &Limits) -> Result<Self, StoreError> {
        let entries = tree::list(Area::Tree, prefix)?;
        let total = entries.iter().map(|entry| entry.stamp.size).sum();
        Ok(Self {
            verifier: Verifier::new(Given::InWorkspace, limits),
            revision: RevisionBuilder::default(),
            queue: entries.into_iter(),
            open: None,
            progress: Progress { done: 0, total, told: 0 },
            ended: false,
        })
    }

    /// Reads on for about `bytes` bytes, at least one piece. False: everything was read.
    pub(crate) fn step(&mut self, bytes: u64) -> bool {
        let stop = self.progress.done.saturating_add(bytes.max(1));
        while self.progress.done < stop {
            if self.ended {
                return false;
            }
            if self.open.is_none() && !self.open_next() {
                self.end();
                return false;
            }
            self.read_piece();
        }
        true
    }

    /// Reads everything that is left.
    pub(crate) fn finish(mut self) -> (Summary, Vec<Finding>, Revision) {
        while self.step(u64::MAX) {}
        (self.verifier.summary(), self.verifier.take_findings(usize::MAX), self.revision.finish())
    }

    /// False: there is no further file.
    fn open_next(&mut self) -> bool {
        for entry in self.queue.by_ref() {
            let kind = match entry.kind {
                Kind::File => EntryKind::File,
                Kind::Symlink => EntryKind::Symlink,
                Kind::Special => EntryKind::Special,
                Kind::Undecodable => EntryKind::Undecodable,
            };
            self.verifier.file(&entry.path, kind);
            if tree::is_file(&entry) {
                let reader = Reader::new(Area::Tree, &entry);
                self.open = Some(Open { reader, path: entry.path, hasher: FileHasher::new() });
                return true;
            }
            self.verifier.end(&mut |_, _| {});
        }
        false
    }

    fn read_piece(&mut self) {
        let Some(open) = &mut self.open else { return };
        match open.reader.next() {
            Ok(Some(piece)) => {
                self.progress.add(piece.as_bytes().len() as u64);
                open.hasher.push(piece.as_bytes());
                match &piece {
                    tree::Piece::Text(text) => self.verifier.push_text(text, &mut |_, _| {}),
                    tree::Piece::Bytes(bytes) => self.verifier.push_bytes(bytes, &mut |_, _| {}),
                }
            }
            Ok(None) => {
                self.verifier.end(&mut |_, _| {});
                if let Some(Open { path, hasher, .. }) = self.open.take() {
                    self.revision.add(&path, hasher.finish().root);
                }
            }
            Err(error) => {
                self.verifier.unreadable(&convert::in_words(&error));
                self.open = None;
            }
        }
    }

    fn end(&mut self) {
        self.ended = true;
        let (file, path) = RUNTIME_FILE;
        if let Some(root) = digest(Area::Runtime, file) {
            self.revision.add(path, root);
        }
    }
}

/// The digest of one file; none if it cannot be read or is not there.
fn digest(area: Area, path: &str) -> Option<recollex_core::digest::Digest> {
    let entry = tree::find(area, path).ok()??;
    let mut reader = Reader::new(area, &entry);
    let mut hasher = FileHasher::new();
    while let Some(piece) = reader.next().ok()? {
        hasher.push(piece.as_bytes());
    }
    Some(hasher.finish().root)
}

/// Tells the host how far a survey is, now and then.
struct Progress {
    done: u64,
    total: u64,
    told: u64,
}

impl Progress {
    fn add(&mut self, bytes: u64) {
        self.done = self.done.saturating_add(bytes);
        let step = (self.total / PROGRESS_STEPS).max(1 << 20);
        if self.done - self.told >= step {
            self.told = self.done;
            log::progress("reading", self.done, self.total, "bytes");
        }
    }
}

/// The export: a survey whose findings are taken out as it goes.
pub(crate) struct Verification(RefCell<Survey>);

impl Verification {
    pub(crate) fn new(survey: Survey) -> Self {
        Self(RefCell::new(survey))
    }
}

impl wit::GuestVerification for Verification {
    fn step(&self, bytes: u64) -> Result<Option<Vec<wit::Finding>>, wit::Error> {
        let mut survey = self.0.borrow_mut();
        let more = survey.step(bytes);
        let findings: Vec<_> = survey.verifier.take_findings(usize::MAX).into_iter().map(convert::finding).collect();
        Ok((more || !findings.is_empty()).then_some(findings))
    }

    fn report(&self) -> wit::Report {
        let survey = self.0.borrow();
        let summary = survey.verifier.summary();
        wit::Report {
            ok: summary.ok,
            health: convert::health(summary.health),
            revision: survey.revision.clone().finish().to_string(),
            counts: convert::counts(&summary.counts),
        }
    }
}
