//! Going through all files once, for findings, figures and the revision. Files that have not changed are not read again.
//!
//! Knows which files there are and how far it has read. What is wrong with them core's `Verifier` says.

use std::cell::RefCell;

use recollex_core::digest::{Digest, FileHasher};
use recollex_core::ids::{Revision, RevisionBuilder};
use recollex_core::source::{EntryKind, FileOutcome, Finding, Given, Limits, Severity, Summary, Verifier};
use recollex_core::table::{FILE_TABLE, FileState, FileTable};

use crate::bindings::exports::recollex::memory::workspace as wit;
use crate::bindings::recollex::memory::log;
use crate::bindings::recollex::memory::store::{Area, Entry, Kind, Stamp, StoreError};
use crate::cache;
use crate::convert;
use crate::session;
use crate::tree::{self, Reader};
use crate::troubles;
use crate::view::View;

/// The one file of the runtime directory that is part of a revision, and the path it has there.
const RUNTIME_FILE: (&str, &str) = ("runtime.json", ".scriptorium/runtime.json");

/// How often something is begun again because another program changes what is read, before that is a finding.
const TRIES: u32 = 16;

/// Progress is told this often at most in one survey.
const PROGRESS_STEPS: u64 = 100;

/// What is read although nothing has changed since it was read last.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Depth {
    /// Nothing: only the revision is wanted.
    Revision,
    /// Files with something wrong in them, to say what.
    Findings,
    /// Everything, to find out whether what is known is so.
    Everything,
}

/// A workspace, or a part of it, being gone through.
pub(crate) struct Survey {
    limits: Limits,
    depth: Depth,
    view: View,
    prefix: String,
    /// All files that are there were met, so that others are gone.
    whole: bool,
    tries: u32,
    files: FileTable,
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
    stamp: Stamp,
    /// What the table says.
    known: Option<FileState>,
    hasher: FileHasher,
}

impl Survey {
    /// Of everything below `prefix` that the caller sees; a listing that fails is the caller's to tell. `files`: what is
    /// known.
    pub(crate) fn start(
        prefix: &str,
        view: &View,
        limits: &Limits,
        depth: Depth,
        mut files: FileTable,
    ) -> Result<Self, StoreError> {
        let (mut entries, hidden) = view.split(prefix)?;
        if entries.is_empty() && !prefix.is_empty() {
            // A file is its own prefix. Nothing there is an error, not a clean part.
            entries.push(view.find(prefix)?.ok_or(StoreError::NotFound)?);
        }
        // What is known of them stays known.
        for entry in &hidden {
            files.known(&entry.path, &tree::version(&entry.stamp));
        }
        let total = entries.iter().map(|entry| entry.stamp.size).sum();
        Ok(Self {
            limits: *limits,
            depth,
            view: view.clone(),
            prefix: prefix.to_owned(),
            whole: prefix.is_empty(),
            tries: TRIES,
            files,
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

    /// Reads everything that is left. Of findings come those that make health what it is: what is only worth knowing of a
    /// file is not found again while it does not change.
    pub(crate) fn finish(mut self) -> (Summary, Vec<Finding>, Revision) {
        while self.step(u64::MAX) {}
        let mut findings = self.verifier.take_findings(usize::MAX);
        findings.retain(|finding| finding.severity > Severity::Info);
        (self.verifier.summary(), findings, self.revision.finish())
    }

    /// False: there is no further file.
    fn open_next(&mut self) -> bool {
        while let Some(entry) = self.queue.next() {
            let kind = match entry.kind {
                Kind::File => EntryKind::File,
                Kind::Symlink => EntryKind::Symlink,
                Kind::Special => EntryKind::Special,
                Kind::Undecodable => EntryKind::Undecodable,
                Kind::Unreadable => EntryKind::Unreadable,
            };
            self.verifier.file(&entry.path, kind);
            if !tree::is_file(&entry) {
                self.verifier.end(&mut |_, _| {});
                continue;
            }
            if self.open_file(entry) {
                return true;
            }
        }
        false
    }

    /// Opens a file to be read, unless enough is known of it; then it is closed already.
    fn open_file(&mut self, entry: Entry) -> bool {
        let known = self.files.known(&entry.path, &tree::version(&entry.stamp));
        let enough = |state: &FileState| match self.depth {
            Depth::Revision => true,
            Depth::Findings => state.clean,
            Depth::Everything => false,
        };
        if let Some(state) = known.filter(enough) {
            self.verifier.known(entry.stamp.size, state.frames, state.legacy_records);
            self.revision.add(&entry.path, state.root);
            self.progress.add(entry.stamp.size);
            return false;
        }
        let reader = Reader::listed(&entry);
        let Entry { path, stamp, .. } = entry;
        self.open = Some(Open { reader, path, stamp, known, hasher: FileHasher::new() });
        true
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
                let outcome = self.verifier.end(&mut |_, _| {});
                if let (Some(open), Some(outcome)) = (self.open.take(), outcome) {
                    self.keep(open, &outcome);
                }
            }
            Err(error) => {
                if matches!(error, StoreError::Changed) && self.tries > 0 {
                    self.tries -= 1;
                    if self.begin_again() {
                        return;
                    }
                }
                self.verifier.unreadable(&convert::in_words(&error));
                self.open = None;
            }
        }
    }

    /// Another program changed the open file while it was read. False: there is nothing to begin again with.
    fn begin_again(&mut self) -> bool {
        // If it was one of us, it has kept what it knows of the file now.
        let files = self.files.over(cache::read_all(FILE_TABLE).unwrap_or_default(), &self.limits);
        if self.depth != Depth::Everything {
            // From a new listing, so that the revision is that of one state. What was read by now is known.
            let Ok(again) = Self::start(&self.prefix, &self.view, &self.limits, self.depth, files) else {
                return false;
            };
            *self = Self { tries: self.tries, ..again };
            return true;
        }
        // Findings are told already: only this file can be read anew.
        let Some(path) = self.open.as_ref().map(|open| open.path.clone()) else { return false };
        let Ok(Some(entry)) = self.view.find(&path) else { return false };
        if !tree::is_file(&entry) {
            return false;
        }
        self.files = files;
        // Which files were met is forgotten with that.
        self.whole = false;
        self.verifier.again();
        self.open_file(entry)
    }

    /// A file was read to its end.
    fn keep(&mut self, open: Open, outcome: &FileOutcome) {
        let Open { path, stamp, known, hasher, .. } = open;
        let root = hasher.finish().root;
        let frames = outcome.scan.as_ref().map_or(0, |scan| scan.frames);
        let state = FileState { root, frames, legacy_records: outcome.legacy_records, clean: outcome.clean };
        if known.is_some_and(|known| known != state) {
            self.verifier.stale_index(&path);
            cache::forget_archive(&path);
        }
        self.revision.add(&path, root);
        self.files.note(&path, &tree::version(&stamp), state);
    }

    fn end(&mut self) {
        self.ended = true;
        // It is made of everything, so it is part of what those see who see everything.
        if self.view.is_everything()
            && let Some(root) = self.runtime_file()
        {
            self.revision.add(RUNTIME_FILE.1, root);
        }
        // Where there is no workspace, looking does not leave anything behind.
        if session::workspace_id().is_ok_and(|id| id.is_some()) {
            if self.whole {
                self.files.unseen().for_each(cache::forget_archive);
            }
            cache::save_file_table(&self.files, self.whole, &self.limits);
        }
    }

    /// The digest of the runtime directory's file; none if it cannot be read or is not there.
    fn runtime_file(&mut self) -> Option<Digest> {
        let (file, path) = RUNTIME_FILE;
        let entry = tree::find(Area::Runtime, file).ok()??;
        let known = self.files.known(path, &tree::version(&entry.stamp));
        if let Some(state) = known.filter(|_| self.depth != Depth::Everything) {
            return Some(state.root);
        }
        let mut reader = Reader::new(Area::Runtime, &entry);
        let mut hasher = FileHasher::new();
        while let Some(piece) = reader.next().ok()? {
            hasher.push(piece.as_bytes());
        }
        let root = hasher.finish().root;
        self.files.note(
            path,
            &tree::version(&entry.stamp),
            FileState { root, frames: 0, legacy_records: 0, clean: true },
        );
        Some(root)
    }
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
pub(crate) struct Verification {
    survey: RefCell<Survey>,
    /// What the store told, until it is handed out.
    troubles: RefCell<Vec<wit::Finding>>,
    is_troubled: bool,
}

impl Verification {
    pub(crate) fn new(survey: Survey, troubles: Vec<wit::Finding>) -> Self {
        let is_troubled = !troubles.is_empty();
        Self { survey: RefCell::new(survey), troubles: RefCell::new(troubles), is_troubled }
    }
}

impl wit::GuestVerification for Verification {
    fn step(&self, bytes: u64) -> Result<Option<Vec<wit::Finding>>, wit::Error> {
        let mut survey = self.survey.borrow_mut();
        let more = survey.step(bytes);
        let mut findings = self.troubles.take();
        findings.extend(survey.verifier.take_findings(usize::MAX).into_iter().map(convert::finding));
        Ok((more || !findings.is_empty()).then_some(findings))
    }

    fn report(&self) -> wit::Report {
        let survey = self.survey.borrow();
        let summary = survey.verifier.summary();
        wit::Report {
            ok: summary.ok && !self.is_troubled,
            health: troubles::worsen(convert::health(summary.health), self.is_troubled),
            revision: survey.revision.clone().finish().to_string(),
            counts: convert::counts(&summary.counts),
            findings_dropped: summary.findings_dropped,
        }
    }
}
