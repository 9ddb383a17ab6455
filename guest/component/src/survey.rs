//! Going through all files once, for findings, figures and the revision. Files that have not changed are not read again.
//!
//! Knows which files there are and how far it has read. What is wrong with them core's `Verifier` says.

use std::cell::RefCell;
use std::collections::BTreeMap;

use recollex_core::digest::{Digest, FileHasher};
use recollex_core::ids::{Revision, RevisionBuilder, TopicPath};
use recollex_core::session::{core_not_a_topic, stale_view, topic_findings, unmended};
use recollex_core::source::{EntryKind, FileOutcome, Finding, Given, Limits, Severity, Summary, Verifier};
use recollex_core::table::{FILE_TABLE, FileState, FileTable, KnownBlock};
use recollex_core::topic::{Check, TopicRef};
use recollex_core::views::{CORE_FILE, CORE_TOPIC, hand_core_fault};

use crate::bindings::exports::recollex::memory::workspace as wit;
use crate::bindings::recollex::memory::log;
use crate::bindings::recollex::memory::store::{Area, Entry, Kind, Stamp, StoreError};
use crate::cache;
use crate::convert;
use crate::core_view;
use crate::evidence::Archives;
use crate::session::{self, Session};
use crate::state::State;
use crate::topics::{Kept, Topics};
use crate::tree::{self, Reader};
use crate::troubles;
use crate::update;
use crate::view::View;

/// The one file of the runtime directory that is part of a revision, and the path it has there.
pub(crate) const RUNTIME_FILE: (&str, &str) = ("runtime.json", ".scriptorium/runtime.json");

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
    kept: Kept,
    prefix: String,
    /// It is of everything.
    whole: bool,
    /// Some file is another version than it was listed as, so that what was read is of no one state.
    is_mixed: bool,
    tries: u32,
    files: FileTable,
    verifier: Verifier,
    revision: RevisionBuilder,
    /// The one file of the runtime directory that counts, once everything was read.
    runtime: Result<Option<Entry>, StoreError>,
    entries: Vec<Entry>,
    /// Of the entry to be looked at next.
    next: usize,
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
        kept: &Kept,
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
            // What a narrowed caller sees of archives is not what topics are held against: what is kept is the owner's.
            kept: if view.is_everything() { kept.clone() } else { Kept::default() },
            prefix: prefix.to_owned(),
            whole: prefix.is_empty(),
            is_mixed: false,
            tries: TRIES,
            files,
            verifier: Verifier::new(Given::InWorkspace, limits),
            revision: RevisionBuilder::default(),
            runtime: Ok(None),
            entries,
            next: 0,
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

    /// Reads everything that is left, and says what there is. Fails if the runtime directory's file cannot be read: taken as
    /// not there, it would be written over.
    pub(crate) fn state(mut self) -> Result<State, wit::Error> {
        while self.step(u64::MAX) {}
        let runtime = self.runtime.map_err(|error| convert::runtime_error(error, RUNTIME_FILE.0))?;
        Ok(State::new(self.entries, runtime, self.revision, self.files))
    }

    /// False: there is no further file.
    fn open_next(&mut self) -> bool {
        while let Some(entry) = self.entries.get(self.next) {
            self.next += 1;
            let entry = entry.clone();
            if self.meet(entry) {
                return true;
            }
        }
        false
    }

    /// Tells the verifier what lies at a path, and opens a file that is to be read. False: nothing is to be read.
    fn meet(&mut self, entry: Entry) -> bool {
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
            return false;
        }
        self.open_file(entry)
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
            let Ok(again) = Self::start(&self.prefix, &self.view, &self.limits, self.depth, files, &self.kept) else {
                return false;
            };
            *self = Self { tries: self.tries, ..again };
            return true;
        }
        // Findings are told already: only this file can be looked at anew.
        let Some(path) = self.open.as_ref().map(|open| open.path.clone()) else { return false };
        let Ok(now) = self.view.find(&path) else { return false };
        self.open = None;
        self.files = files;
        self.is_mixed = true;
        match now {
            Some(entry) if tree::is_file(&entry) => {
                self.verifier.again();
                self.open_file(entry);
            }
            now => {
                self.verifier.gone();
                if let Some(entry) = now {
                    self.meet(entry);
                }
            }
        }
        true
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
        if self.depth == Depth::Everything {
            // It has come a file further.
            self.tries = TRIES;
        }
    }

    fn end(&mut self) {
        self.ended = true;
        if self.is_mixed {
            self.settle();
        }
        self.look_at_topics();
        // It is made of everything, so it is part of what those see who see everything.
        if self.view.is_everything() {
            // That it cannot be read is told with what else cannot be in that directory.
            let found = settled_read(|| self.runtime_file());
            if let Ok(Some((_, root))) = &found {
                self.revision.add(RUNTIME_FILE.1, *root);
            }
            self.runtime = found.map(|found| found.map(|(entry, _)| entry));
        }
        // Where there is no workspace, looking does not leave anything behind.
        if session::workspace_id().is_ok_and(|id| id.is_some()) {
            // Of files that were looked at anew it is not known which others are still there.
            let all_seen = self.whole && !self.is_mixed;
            if all_seen {
                self.files.unseen().for_each(cache::forget_archive);
            }
            cache::save_file_table(&self.files, all_seen, &self.limits);
        }
    }

    /// Files changed while they were read. What was found in each of them is so; the revision has to be of one state, and
    /// what was read by now is known. If that state cannot be listed, the revision stays that of what was read.
    fn settle(&mut self) {
        let Ok(mut again) =
            Self::start(&self.prefix, &self.view, &self.limits, Depth::Revision, self.files.clone(), &self.kept)
        else {
            return;
        };
        while again.open.is_some() || again.open_next() {
            again.read_piece();
        }
        self.revision = again.revision;
        self.entries = again.entries;
        self.files = again.files;
    }

    /// What is wrong with topics depends on all of them, and on archives: it is found out from the table of what is known.
    fn look_at_topics(&mut self) {
        let is_wanted = self.whole || matches!(self.prefix.split('/').next(), Some("topics" | CORE_FILE));
        if self.depth == Depth::Revision || !is_wanted {
            return;
        }
        match session::settled(|_| self.try_topics()) {
            Ok((blocks, findings)) => {
                self.verifier.count_blocks(blocks);
                findings.into_iter().for_each(|finding| self.verifier.tell(finding));
            }
            Err(error) => unchecked(&mut self.verifier, error),
        }
    }

    /// How many sound blocks there are, and what is wrong with topics.
    fn try_topics(&mut self) -> Result<(u64, Vec<Finding>), wit::Error> {
        let entries = self.view.list("topics").map_err(|error| convert::store_error(error, Some("topics")))?;
        let digests: BTreeMap<String, Digest> = self.revision.clone().into_files().collect();
        let files = RefCell::new(&mut self.files);
        let view = &self.view;
        let digest_of = |path: &str| {
            digests.get(path).copied().or_else(|| {
                let entry = view.find(path).ok().flatten()?;
                let state = files.borrow_mut().known(path, &tree::version(&entry.stamp))?;
                Some(state.root)
            })
        };
        let archives = Archives::of(&self.view, &self.limits);
        let mut topics = Topics::load(entries, &digest_of, &archives, &self.kept, &self.limits)?;
        if self.view.is_everything() {
            topics.save();
        }
        let shared = topics.table.shared_ids();
        let is_below = |path: &TopicPath| {
            let rest = path.as_str().strip_prefix(self.prefix.as_str());
            self.prefix.is_empty() || rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        let (mut blocks, mut findings) = (0, Vec::new());
        for path in topics.paths().filter(|path| is_below(path)) {
            let loses = |id: &str| shared.get(id).is_some_and(|first| first < path);
            let entry = topics.table.entry(path);
            let counts = |block: &KnownBlock<'_, '_>| block.is_sound() && !block.ids().any(loses);
            blocks += entry.as_ref().map_or(0, |entry| entry.blocks().filter(counts).count() as u64);
            let is_sound = entry.is_some_and(|entry| entry.is_sound() && !entry.ids().any(loses));
            if is_sound && self.depth != Depth::Everything {
                continue;
            }
            // One that is not UTF-8 was told of as a file.
            let Some(text) = topics.read(path)? else { continue };
            let mut check = Check::new(path.clone(), TopicRef::parse(text), &archives);
            archives.check()?;
            let is_block = |id: &str| !topics.table.topics_of(id).is_empty();
            findings.extend(topic_findings(&mut check, &is_block, &loses));
        }
        let is_core_wanted = self.prefix.is_empty() || self.prefix == CORE_FILE;
        let has_topic = topics.paths().any(|path| path.as_str() == CORE_TOPIC);
        if is_core_wanted
            && !has_topic
            && let Some(text) = core_view::text(&self.view, &self.limits)?
        {
            let taken = |id: &str| !topics.table.topics_of(id).is_empty();
            let state = core_view::state()?;
            let fault = hand_core_fault(text.as_bytes(), state.as_ref(), &taken, &archives);
            archives.check()?;
            findings.extend(fault.iter().map(|fault| core_not_a_topic(&text, fault)));
        }
        Ok((blocks, findings))
    }

    /// The runtime directory's file and its digest; none if there is none.
    fn runtime_file(&mut self) -> Result<Option<(Entry, Digest)>, StoreError> {
        let (file, path) = RUNTIME_FILE;
        let Some(entry) = tree::find(Area::Runtime, file)? else { return Ok(None) };
        let known = self.files.known(path, &tree::version(&entry.stamp));
        if let Some(state) = known.filter(|_| self.depth != Depth::Everything) {
            return Ok(Some((entry, state.root)));
        }
        let mut reader = Reader::new(Area::Runtime, &entry);
        let mut hasher = FileHasher::new();
        while let Some(piece) = reader.next()? {
            hasher.push(piece.as_bytes());
        }
        let root = hasher.finish().root;
        let state = FileState { root, frames: 0, legacy_records: 0, clean: true };
        self.files.note(path, &tree::version(&entry.stamp), state);
        Ok(Some((entry, root)))
    }
}

/// Reads, and again as long as another program changes what is being read.
fn settled_read<T>(mut read: impl FnMut() -> Result<T, StoreError>) -> Result<T, StoreError> {
    for _ in 1..TRIES {
        match read() {
            Err(StoreError::Changed) => {}
            result => return result,
        }
    }
    read()
}

/// Says that topics or views could not be checked, whatever the reason.
fn unchecked(verifier: &mut Verifier, error: wit::Error) {
    let (path, why) = convert::told(error);
    verifier.unread(path.as_deref().unwrap_or("topics"), &why);
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
    /// Who asked.
    session: Session,
    survey: RefCell<Survey>,
    /// What the store told, until it is handed out.
    troubles: RefCell<Vec<wit::Finding>>,
    is_troubled: bool,
}

impl Verification {
    pub(crate) fn new(session: Session, survey: Survey, troubles: Vec<wit::Finding>) -> Self {
        let is_troubled = !troubles.is_empty();
        Self { session, survey: RefCell::new(survey), troubles: RefCell::new(troubles), is_troubled }
    }

    /// Holds the views against the topics, and looks what of these cannot be put in order, once all was read.
    fn look_at_views(&self, survey: &mut Survey) {
        // Without the order of claims nobody knows what views would say.
        if !survey.whole || !survey.view.is_everything() || survey.runtime.is_err() {
            return;
        }
        let found = session::settled(|_| {
            let mut findings: Vec<Finding> =
                update::stale_views(&self.session)?.iter().map(|path| stale_view(path)).collect();
            findings.extend(update::unmended_topics(&self.session)?.iter().filter_map(unmended));
            Ok(findings)
        });
        match found {
            Ok(findings) => findings.into_iter().for_each(|finding| survey.verifier.tell(finding)),
            Err(error) => unchecked(&mut survey.verifier, error),
        }
    }
}

impl wit::GuestVerification for Verification {
    fn step(&self, bytes: u64) -> Result<Option<Vec<wit::Finding>>, wit::Error> {
        let mut survey = self.survey.borrow_mut();
        let was_ended = survey.ended;
        let more = survey.step(bytes);
        if survey.ended && !was_ended {
            self.look_at_views(&mut survey);
        }
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
