//! An import under way: conversations as core finds them in an export, kept whole or not at all, several by one commit.
//!
//! Knows what ends an import, what only ends a conversation, and how many conversations wait for each other. What an export
//! says, and what of it is new, core knows.

use std::cell::RefCell;
use std::collections::{BTreeSet, VecDeque};
use std::ops::ControlFlow;

use recollex_core::import::{Conversation, Format, Import, Options, Sink};
use recollex_core::source::{Batch, NewRecord, Obstacle, Occupant, Outcome, Plan, Preview, Problem, Trust};
use recollex_core::table::FileTable;

use crate::bindings::exports::recollex::memory::workspace as wit;
use crate::bindings::recollex::memory::store::{Area, CommitError, Kind, StoreError};
use crate::cache;
use crate::convert;
use crate::keep;
use crate::session::{Session, broken, settled, unfit, workspace_id};
use crate::tree;

/// What a conversation takes in memory beside its records, roughly.
const QUEUED_BYTES: u64 = 512;

/// An import under way.
pub(crate) struct Importing(RefCell<State>);

struct State {
    import: Import,
    keeper: Keeper,
    /// Everything was kept, and nothing is owed.
    finished: bool,
}

impl Importing {
    /// Starts one for a session.
    pub(crate) fn start(session: Session, options: wit::ImportOptions) -> Result<Self, wit::Error> {
        let wit::ImportOptions { format, provider, thread, trust, dry_run } = options;
        let options = Options {
            format: match format {
                wit::ImportFormat::Chatgpt => Format::ChatGpt,
                wit::ImportFormat::Claude => Format::Claude,
                wit::ImportFormat::ClaudeCode => Format::ClaudeCode,
                wit::ImportFormat::Openprogram => Format::OpenProgram,
                wit::ImportFormat::Jsonl => Format::JsonLines,
            },
            provider,
            thread,
            trust: match trust {
                wit::Trust::Trusted => Trust::Trusted,
                wit::Trust::Pending => Trust::Pending,
            },
            zone: session.zone.clone(),
            skipped_max: usize::try_from(session.settings.import_skipped).unwrap_or(usize::MAX),
        };
        let import = Import::new(options, &session.settings.limits()).map_err(invalid)?;
        let files = session.files();
        let keeper = Keeper {
            session,
            files,
            dry_run,
            preview: None,
            queue: VecDeque::new(),
            queue_bytes: 0,
            waiting: Vec::new(),
            bytes: 0,
            paths: BTreeSet::new(),
            owed: None,
            is_unsaved: false,
        };
        Ok(Self(RefCell::new(State { import, keeper, finished: false })))
    }

    fn push(&self, file: &str, data: &[u8], last: bool) -> Result<Vec<wit::ImportedConversation>, wit::Error> {
        self.0.borrow_mut().run(|import, sink| import.push(file, data, last, sink), false)
    }
}

impl wit::GuestImporting for Importing {
    fn push_text(&self, file: String, text: String, last: bool) -> Result<Vec<wit::ImportedConversation>, wit::Error> {
        self.push(&file, text.as_bytes(), last)
    }

    fn push_bytes(
        &self,
        file: String,
        data: Vec<u8>,
        last: bool,
    ) -> Result<Vec<wit::ImportedConversation>, wit::Error> {
        self.push(&file, &data, last)
    }

    fn keep(&self) -> Result<Vec<wit::ImportedConversation>, wit::Error> {
        let mut state = self.0.borrow_mut();
        let taken = state.run(|_, _| Ok(()), true);
        state.keeper.save();
        taken
    }

    fn finish(&self) -> Result<Vec<wit::ImportedConversation>, wit::Error> {
        let mut state = self.0.borrow_mut();
        let is_over = state.finished;
        let taken = state.run(|import, sink| if is_over { Ok(()) } else { import.finish(sink) }, true);
        state.finished = taken.is_ok() && state.keeper.owed.is_none();
        state.keeper.save();
        taken
    }
}

impl State {
    /// Feeds the import, and then makes a commit if there is enough for one; `all`: or less. What is kept is always answered:
    /// if an error comes behind something that was kept, the next call answers the error.
    fn run(
        &mut self,
        feed: impl FnOnce(&mut Import, Sink<'_>) -> Result<(), Problem>,
        all: bool,
    ) -> Result<Vec<wit::ImportedConversation>, wit::Error> {
        let Self { import, keeper, .. } = self;
        if let Some(error) = keeper.owed.take() {
            return Err(error);
        }
        let mut taken = Vec::new();
        let fed = feed(import, &mut |conversation| keeper.take(conversation, &mut taken)).map_err(invalid);
        if keeper.owed.is_none() && keeper.proceed(all, &mut taken).is_break() {
            import.abandon();
        }
        // What broke off says more than that it is over.
        if let (Err(error), None) = (fed, &keeper.owed) {
            keeper.owed = Some(error);
        }
        match keeper.owed.take() {
            Some(error) if taken.is_empty() => Err(error),
            owed => {
                keeper.owed = owed;
                Ok(taken)
            }
        }
    }
}

/// Keeps conversations, in the order in which they come.
struct Keeper {
    session: Session,
    /// What is known of files; kept when the import is over, or stops.
    files: FileTable,
    dry_run: bool,
    /// Of a dry run, as soon as there was something to keep.
    preview: Option<Preview>,
    /// Complete, and not looked at yet.
    queue: VecDeque<Conversation>,
    /// What they take in memory, roughly.
    queue_bytes: u64,
    /// To be kept by one commit.
    waiting: Vec<Waiting>,
    /// What those that wait take in archives.
    bytes: u64,
    /// Their archives.
    paths: BTreeSet<String>,
    /// What ended the import, until it is answered.
    owed: Option<wit::Error>,
    /// More is known of files than was saved.
    is_unsaved: bool,
}

/// A conversation that waits for others to be kept with.
struct Waiting {
    conversation: Conversation,
    /// What there is to keep.
    batch: Option<Batch>,
    problem: Option<wit::Problem>,
}

impl Keeper {
    /// Takes a conversation, to be kept when its turn comes: a file may complete any number at once, and a call that kept
    /// all of them would have no bound in time. Break: what ended the import is owed.
    fn take(&mut self, conversation: Conversation, taken: &mut Vec<wit::ImportedConversation>) -> ControlFlow<()> {
        self.queue_bytes = self.queue_bytes.saturating_add(size(&conversation) + QUEUED_BYTES);
        self.queue.push_back(conversation);
        // Memory has a bound in any case.
        while self.queue_bytes > self.session.settings.limits().conversation_bytes {
            self.proceed(false, taken)?;
        }
        ControlFlow::Continue(())
    }

    /// Goes on until something was kept, by one commit, or there is not enough for one; `all`: or there is nothing. A dry run
    /// goes on as long as a commit would.
    fn proceed(&mut self, all: bool, taken: &mut Vec<wit::ImportedConversation>) -> ControlFlow<()> {
        let before = taken.len();
        let enough = if self.dry_run { self.session.settings.import_commit_conversations } else { 1 };
        while ((taken.len() - before) as u64) < enough {
            let Some(conversation) = self.queue.pop_front() else {
                return if all { self.commit(taken) } else { ControlFlow::Continue(()) };
            };
            self.queue_bytes = self.queue_bytes.saturating_sub(size(&conversation) + QUEUED_BYTES);
            self.gather(conversation, taken)?;
        }
        ControlFlow::Continue(())
    }

    /// Lets a conversation wait for others, and keeps those that wait if they are enough.
    fn gather(
        &mut self,
        mut conversation: Conversation,
        taken: &mut Vec<wit::ImportedConversation>,
    ) -> ControlFlow<()> {
        let limits = self.session.settings.limits();
        let bytes = size(&conversation);
        let mut batches = conversation.batches(&limits);
        if batches.len() > 1 {
            self.commit(taken)?;
            return self.keep_parts(conversation, batches, taken);
        }
        let checked = batches.pop().map(|records| Batch::check(records, &limits)).transpose().map_err(unfit);
        let (batch, problem) = match checked {
            Ok(batch) => (batch, None),
            Err(wit::Error::Refused(problems)) => (None, problems.into_iter().next()),
            Err(error) => {
                // Those before it are kept first.
                self.commit(taken)?;
                return self.end(error);
            }
        };
        let paths: Vec<String> = batch.iter().flat_map(Batch::paths).map(str::to_owned).collect();
        // The same conversation once more: what is new of it then, only its archive can tell.
        if paths.iter().any(|path| self.paths.contains(path)) {
            self.commit(taken)?;
        }
        self.paths.extend(paths);
        self.bytes = self.bytes.saturating_add(bytes);
        self.waiting.push(Waiting { conversation, batch, problem });
        let settings = &self.session.settings;
        // In a dry run none waits: each is held against those before it.
        let is_full = self.dry_run
            || self.bytes >= settings.import_commit_bytes
            || self.waiting.len() as u64 >= settings.import_commit_conversations;
        if is_full { self.commit(taken) } else { ControlFlow::Continue(()) }
    }

    /// Keeps all that wait.
    fn commit(&mut self, taken: &mut Vec<wit::ImportedConversation>) -> ControlFlow<()> {
        self.bytes = 0;
        self.paths.clear();
        let waiting = core::mem::take(&mut self.waiting);
        self.keep_all(waiting, taken)
    }

    /// Keeps these by one commit. What speaks against that may be about one of them: then each half is tried by itself, so
    /// that in the end nothing is left out but what cannot be kept, and what ends the import ends it behind all that can.
    fn keep_all(&mut self, mut waiting: Vec<Waiting>, taken: &mut Vec<wit::ImportedConversation>) -> ControlFlow<()> {
        let batches: Vec<&Batch> = waiting.iter().filter_map(|one| one.batch.as_ref()).collect();
        let (count, kept) = (batches.len(), self.keep(&batches));
        let error = match kept {
            Ok(plans) => {
                let mut plans = plans.into_iter();
                taken.extend(waiting.into_iter().map(|Waiting { conversation, batch, problem }| {
                    let mut tally = Tally::default();
                    batch.and_then(|_| plans.next()).into_iter().for_each(|plan| tally.add(plan));
                    told(conversation, tally, problem)
                }));
                return ControlFlow::Continue(());
            }
            Err(error) => error,
        };
        // Whoever holds the lock holds it for each of them.
        if count > 1 && !matches!(error, wit::Error::Locked(_)) {
            let rest = waiting.split_off(waiting.len() / 2);
            self.keep_all(waiting, taken)?;
            return self.keep_all(rest, taken);
        }
        let mut error = Some(error);
        for Waiting { conversation, batch, mut problem } in waiting {
            if batch.is_some()
                && let Some(error) = error.take()
            {
                match of_conversation(error) {
                    Ok(found) => problem = found,
                    Err(error) => return self.end(error),
                }
            }
            taken.push(told(conversation, Tally::default(), problem));
        }
        ControlFlow::Continue(())
    }

    fn keep(&mut self, batches: &[&Batch]) -> Result<Vec<Plan>, wit::Error> {
        let Self { session, files, dry_run, .. } = self;
        if batches.is_empty() {
            return Ok(Vec::new());
        }
        self.is_unsaved = true;
        if !*dry_run {
            return keep::keep_together(session, batches, "import", files, |_| Ok(Vec::new()));
        }
        let limits = session.settings.limits();
        let preview = match &mut self.preview {
            Some(preview) => preview,
            none => none.insert(preview_of(session.settings.import_preview_records)?),
        };
        let mut plans = Vec::with_capacity(batches.len());
        for batch in batches {
            let mut plan = settled(|_| keep::plan(batch, &limits, files).map(|(plan, _)| plan))?;
            if !plan.changes.is_empty() {
                let branches = plan.branches.iter().map(|change| &change.path);
                let checked = plan.changes.iter().map(|change| &change.path).chain(branches);
                for path in checked {
                    preview.check(path).map_err(|obstacle| keep::of_record(&[batch], in_the_way(obstacle)))?;
                }
            }
            preview.carry_out(&mut plan).map_err(convert::limit)?;
            plans.push(plan);
        }
        Ok(plans)
    }

    /// Keeps a conversation that is longer than a commit may be, part behind part. An error comes behind what was kept
    /// before it.
    fn keep_parts(
        &mut self,
        conversation: Conversation,
        parts: Vec<Vec<NewRecord>>,
        taken: &mut Vec<wit::ImportedConversation>,
    ) -> ControlFlow<()> {
        let limits = self.session.settings.limits();
        let mut tally = Tally::default();
        let (mut problem, mut ended) = (None, None);
        for records in parts {
            let kept = Batch::check(records, &limits).map_err(unfit).and_then(|batch| self.keep(&[&batch]));
            match kept {
                Ok(plans) => plans.into_iter().for_each(|plan| tally.add(plan)),
                Err(error) => {
                    match of_conversation(error) {
                        Ok(found) => problem = found,
                        Err(error) => ended = Some(error),
                    }
                    break;
                }
            }
        }
        if ended.is_none() || tally.archived > 0 {
            taken.push(told(conversation, tally, problem));
        }
        ended.map_or(ControlFlow::Continue(()), |error| self.end(error))
    }

    /// Nothing more is kept: what waits is found again by the next import.
    fn end(&mut self, error: wit::Error) -> ControlFlow<()> {
        self.queue.clear();
        self.queue_bytes = 0;
        self.waiting.clear();
        self.owed = Some(error);
        ControlFlow::Break(())
    }

    /// Keeps what is known of files, if nothing is left to do. Where there is no workspace, looking does not leave anything
    /// behind.
    fn save(&mut self) {
        if !self.queue.is_empty() || !core::mem::take(&mut self.is_unsaved) {
            return;
        }
        if !self.dry_run && workspace_id().is_ok_and(|id| id.is_some()) {
            cache::save_file_table(&self.files, false, &self.session.settings.limits());
        }
    }
}

/// The error as the problem of the conversation that was to be kept, if it is about that and no other; otherwise itself.
///
/// What the store denies is, where something lies at the conversation's own place: a link, or a file that may not be written.
/// Where nothing does, nothing could come into being there either, and the next conversation would fare no better.
fn of_conversation(error: wit::Error) -> Result<Option<wit::Problem>, wit::Error> {
    let is_taken =
        |path: &str| path.split('/').next() == Some("sources") && !matches!(tree::find(Area::Tree, path), Ok(None));
    match error {
        wit::Error::Refused(problems) => Ok(problems.into_iter().next()),
        wit::Error::Store(problem) if problem.reason == "denied" && problem.path.as_deref().is_some_and(is_taken) => {
            Ok(Some(problem))
        }
        error => Err(error),
    }
}

/// What a conversation takes in archives.
fn size(conversation: &Conversation) -> u64 {
    conversation.records.iter().map(|one| one.bytes).sum()
}

/// A preview of a run that finds the workspace as it is now.
fn preview_of(records_max: u64) -> Result<Preview, wit::Error> {
    let mut preview = Preview::new(records_max);
    for entry in tree::list(Area::Tree, "").map_err(broken)? {
        let what = match entry.kind {
            Kind::File => Occupant::File,
            Kind::Symlink => Occupant::Link,
            Kind::Special => Occupant::Other,
            // Of what cannot be read nobody knows what it is in the way of.
            Kind::Undecodable | Kind::Unreadable => continue,
        };
        preview.lies(&entry.path, what);
    }
    Ok(preview)
}

/// The error that a commit would give.
fn in_the_way(obstacle: Obstacle) -> wit::Error {
    convert::commit_error(match obstacle {
        Obstacle::Collision { planned, existing } => CommitError::Collision((planned, existing)),
        Obstacle::WrongKind(path) => CommitError::WrongKind(path),
        Obstacle::Denied(path) => {
            let why = format!("{path} is a symbolic link, or neither file nor directory");
            CommitError::Failed((path, StoreError::Denied(why)))
        }
    })
}

/// What a caller is told of a conversation.
fn told(conversation: Conversation, mut tally: Tally, problem: Option<wit::Problem>) -> wit::ImportedConversation {
    let Conversation { file, offset, provider, thread, title, branches, skipped, left_out, .. } = conversation;
    tally.differs.extend(conversation.differs);
    wit::ImportedConversation {
        file,
        offset,
        provider,
        thread,
        title,
        archived: tally.archived,
        already: tally.already.saturating_add(conversation.repeated),
        differs: tally.differs.into_iter().collect(),
        branches,
        skipped: skipped
            .into_iter()
            .map(|one| wit::Skipped { item: one.item, reason: one.reason.to_owned(), message: one.message })
            .collect(),
        left_out: left_out
            .into_iter()
            .map(|(reason, one)| wit::LeftOut {
                reason: reason.to_owned(),
                message: one.message,
                count: one.count,
                missing: one.missing,
            })
            .collect(),
        problem: problem.or(conversation.problem.map(convert::problem_of)),
    }
}

/// What became of a conversation's records.
#[derive(Default)]
struct Tally {
    archived: u64,
    already: u64,
    differs: BTreeSet<String>,
}

impl Tally {
    fn add(&mut self, plan: Plan) {
        for kept in plan.records {
            match kept.outcome {
                Outcome::Archived => self.archived += 1,
                Outcome::Already => self.already += 1,
                Outcome::Differs { .. } => drop(self.differs.insert(kept.id.to_string())),
            }
        }
    }
}

fn invalid(problem: Problem) -> wit::Error {
    wit::Error::Invalid(convert::problem_of(problem))
}
