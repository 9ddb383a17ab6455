//! An import under way: conversations as core finds them in an export, each kept by a commit of its own.
//!
//! Knows what ends an import and what only ends a conversation. What an export says, and what of it is new, core knows.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::ops::ControlFlow;

use recollex_core::import::{Conversation, Format, Import, Options, Sink};
use recollex_core::source::{Batch, BatchError, Outcome, Plan, Problem, Trust};
use recollex_core::table::FileTable;

use crate::bindings::exports::recollex::memory::workspace as wit;
use crate::cache;
use crate::convert;
use crate::keep;
use crate::session::{Session, settled, workspace_id};

/// An import under way.
pub(crate) struct Importing(RefCell<State>);

struct State {
    session: Session,
    import: Import,
    /// What is known of files; kept at the end.
    files: FileTable,
    dry_run: bool,
    /// What ended the import, until it is answered.
    owed: Option<wit::Error>,
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
        Ok(Self(RefCell::new(State { session, import, files, dry_run, owed: None })))
    }

    fn push(&self, file: &str, data: &[u8], last: bool) -> Result<Vec<wit::ImportedConversation>, wit::Error> {
        self.0.borrow_mut().run(|import, sink| import.push(file, data, last, sink))
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

    fn finish(&self) -> Result<Vec<wit::ImportedConversation>, wit::Error> {
        let mut state = self.0.borrow_mut();
        let taken = state.run(|import, sink| import.finish(sink))?;
        // No call comes behind this one.
        if let Some(error) = state.owed.take() {
            return Err(error);
        }
        // Where there is no workspace, looking does not leave anything behind.
        if !state.dry_run && workspace_id().is_ok_and(|id| id.is_some()) {
            cache::save_file_table(&state.files, false, &state.session.settings.limits());
        }
        Ok(taken)
    }
}

impl State {
    /// Feeds the import. What is kept is always answered: if an error comes behind something that was kept, the next call
    /// answers the error.
    fn run(
        &mut self,
        feed: impl FnOnce(&mut Import, Sink<'_>) -> Result<(), Problem>,
    ) -> Result<Vec<wit::ImportedConversation>, wit::Error> {
        let Self { session, import, files, dry_run, owed } = self;
        if let Some(error) = owed.take() {
            return Err(error);
        }
        let mut taken = Vec::new();
        let mut sink = |conversation: Conversation| {
            let (conversation, error) = keep(session, conversation, files, *dry_run);
            let Some(error) = error else {
                taken.push(conversation);
                return ControlFlow::Continue(());
            };
            *owed = Some(error);
            // Some of it may have been kept before.
            if conversation.archived > 0 {
                taken.push(conversation);
            }
            ControlFlow::Break(())
        };
        feed(import, &mut sink).map_err(invalid)?;
        if taken.is_empty()
            && let Some(error) = owed.take()
        {
            return Err(error);
        }
        Ok(taken)
    }
}

/// Keeps what of a conversation is new. A refusal is told of the conversation; any other error ends the import, and comes
/// with what was kept before it.
fn keep(
    session: &Session,
    mut conversation: Conversation,
    files: &mut FileTable,
    dry_run: bool,
) -> (wit::ImportedConversation, Option<wit::Error>) {
    let limits = session.settings.limits();
    let mut count = Count::default();
    let mut problem = None;
    let mut ended = None;
    for records in conversation.batches(&limits) {
        let planned = match Batch::check(records, &limits) {
            Err(BatchError::Refused(problems)) => Err(crate::session::refused(problems)),
            Err(BatchError::Limit(limit)) => Err(convert::limit(limit)),
            Ok(batch) if dry_run => settled(|_| keep::plan(&batch, &limits, files).map(|(plan, _)| plan)),
            Ok(batch) => keep::keep(session, &batch, "import", files, |_| Ok(Vec::new())),
        };
        match planned {
            Ok(plan) => count.add(plan),
            Err(wit::Error::Refused(problems)) => {
                problem = problems.into_iter().next();
                break;
            }
            Err(error) => {
                ended = Some(error);
                break;
            }
        }
    }
    let Conversation { file, offset, provider, thread, title, branches, skipped, skipped_count, .. } = conversation;
    count.differs.extend(conversation.differs);
    let taken = wit::ImportedConversation {
        file,
        offset,
        provider,
        thread,
        title,
        archived: count.archived,
        already: count.already.saturating_add(conversation.repeated),
        differs: count.differs.into_iter().collect(),
        branches,
        skipped: skipped
            .into_iter()
            .map(|one| wit::Skipped { item: one.item, reason: one.reason.to_owned(), message: one.message })
            .collect(),
        skipped_count,
        problem: problem.or(conversation.problem.map(convert::problem_of)),
    };
    (taken, ended)
}

#[derive(Default)]
struct Count {
    archived: u64,
    already: u64,
    differs: BTreeSet<String>,
}

impl Count {
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
