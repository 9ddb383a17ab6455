//! The exports of a session: one function a verb.
//!
//! Each asks core whether the caller may, reads what core needs to decide, and carries the decision out.

use recollex_core::ids::is_internal_path;
use recollex_core::session::{Backend, LineWindow, Settings, WorkspaceId};
use recollex_core::source::{Batch, BatchError, NumberedBatch, Plan, Tier};
use recollex_core::table::FileTable;
use recollex_core::time::Zone;
use recollex_core::trust::{Verb, authorise, keep_to_caller};
use recollex_core::views::CORE_FILE;

use crate::audience;
use crate::bindings::exports::recollex::memory::workspace as wit;
use crate::bindings::recollex::memory::lock;
use crate::bindings::recollex::memory::store::{self, About, Area, Change as StoreChange, Edit, Expect, StoreError};
use crate::branches::Remembered;
use crate::cache;
use crate::convert;
use crate::core_view;
use crate::import::Importing;
use crate::index::Shelf;
use crate::keep;
use crate::meaning::Meanings;
use crate::numbered;
use crate::panic;
use crate::promote;
use crate::read::{self, Target};
use crate::reading;
use crate::recall;
use crate::search;
use crate::state::State;
use crate::survey::{Depth, Survey, Verification};
use crate::topics::Kept;
use crate::troubles;
use crate::unpaired;
use crate::update;
use crate::view::View;

/// How often a read is begun again for the same reason.
const READ_TRIES: u32 = 16;

/// A workspace open for one caller.
#[derive(Clone)]
pub(crate) struct Session {
    pub(crate) tier: Option<Tier>,
    pub(crate) principal: Option<String>,
    pub(crate) settings: Settings,
    pub(crate) zone: Zone,
    pub(crate) index: Shelf,
    pub(crate) meanings: Meanings,
    /// What earlier calls found out.
    pub(crate) kept: Kept,
    /// What was found out of branches last.
    pub(crate) remembered: Remembered,
}

impl Session {
    pub(crate) fn allow(&self, verb: Verb) -> Result<(), wit::Error> {
        authorise(self.tier, verb).map_err(convert::denied)
    }

    /// What this caller sees.
    pub(crate) fn view(&self) -> Result<View, wit::Error> {
        View::of(self.tier.unwrap_or(Tier::Paired))
    }

    /// A survey of everything. A root that cannot be listed means that memory is broken.
    fn survey(&self, view: &View, depth: Depth, files: FileTable) -> Result<Survey, wit::Error> {
        Survey::start("", view, &self.settings.limits(), depth, files, &self.kept).map_err(broken)
    }

    pub(crate) fn files(&self) -> FileTable {
        cache::file_table(&self.settings.limits())
    }

    pub(crate) fn revision(&self, files: FileTable) -> Result<String, wit::Error> {
        let (_, _, revision) = self.survey(&self.view()?, Depth::Revision, files)?.finish();
        Ok(revision.to_string())
    }

    /// All files there are, hidden ones too, with what is known of them.
    pub(crate) fn state(&self) -> Result<State, wit::Error> {
        self.survey(&View::of(Tier::Owner)?, Depth::Revision, self.files())?.state()
    }

    /// What is wrong with topics, and with a `core.md` of hand.
    pub(crate) fn topic_findings(&self) -> Result<Vec<wit::Finding>, wit::Error> {
        let (_, findings, _) = self.survey(&self.view()?, Depth::Findings, self.files())?.finish();
        let is_of_topics = |path: &str| path.starts_with("topics/") || path == CORE_FILE;
        let findings = findings.into_iter().filter(|finding| finding.path.as_deref().is_some_and(is_of_topics));
        Ok(findings.map(convert::finding).collect())
    }

    /// The error for a commit that did not happen; a conflict carries the fresh revision.
    pub(crate) fn not_committed(&self, error: store::CommitError) -> wit::Error {
        match error {
            store::CommitError::Stale(_) | store::CommitError::Changed(_) => {
                self.revision(self.files()).map_or_else(|error| error, wit::Error::Conflict)
            }
            error => convert::commit_error(error),
        }
    }

    /// What is to be told beside what files say. Where something is hidden from a caller, none of it: it may be about that.
    fn troubles(&self, prefix: &str, view: &View) -> Vec<wit::Finding> {
        if !view.is_everything() {
            return Vec::new();
        }
        let mut troubles = troubles::below(prefix);
        if prefix.is_empty() && self.tier == Some(Tier::Owner) {
            troubles.extend(audience::finding());
        }
        if prefix.is_empty() {
            troubles.extend(troubles::runtime());
        }
        troubles
    }

    /// What a caller is told of a batch that was kept.
    pub(crate) fn archived(&self, plan: Plan, files: FileTable) -> Result<wit::Archived, wit::Error> {
        let turns = plan.records.into_iter().map(keep::archived).collect();
        Ok(wit::Archived { turns, revision: self.revision(files)? })
    }

    /// The workspace's id, and whether it was made for that.
    pub(crate) fn ensure(&self) -> Result<(WorkspaceId, bool), wit::Error> {
        if let Some(id) = workspace_id()? {
            return Ok((id, false));
        }
        let guard = self.lock("init")?;
        let base = generation()?;
        // Somebody may have been faster while we waited.
        if let Some(id) = workspace_id()? {
            return Ok((id, false));
        }
        let (id, change) = new_workspace_id();
        store::commit(&guard, base, &[change], &about("init", "a new workspace"))
            .map_err(|error| self.not_committed(error))?;
        Ok((id, true))
    }

    /// Reads by what the host has said of changes, and once that has led to an error by what files say themselves.
    pub(crate) fn by_note<T>(&self, read: impl Fn(bool) -> Result<T, wit::Error>) -> Result<T, wit::Error> {
        settled(|last| {
            let answer = read(last);
            if answer.is_err() {
                self.index.end_note();
            }
            answer
        })
    }

    /// What was said of changes counts for one call, however it ends.
    fn last_of_note<T>(&self, answer: T) -> T {
        self.index.end_note();
        answer
    }

    fn search_by_note(&self, query: &wit::Query) -> Result<wit::Answer, wit::Error> {
        self.allow(Verb::Search)?;
        query.path_prefix.as_deref().map(visible_prefix).transpose()?;
        let view = self.view()?;
        self.by_note(|last| search::search(self, &view, query, last))
    }

    pub(crate) fn lock(&self, purpose: &str) -> Result<lock::Guard, wit::Error> {
        let wait = u32::try_from(self.settings.lock_wait_ms).unwrap_or(u32::MAX);
        lock::acquire(wait, purpose).map_err(convert::lock_error)
    }
}

impl wit::GuestSession for Session {
    fn open(options: wit::OpenOptions) -> Result<wit::Session, wit::Error> {
        let pairs = options.settings.iter().map(|setting| (setting.name.as_str(), setting.value.as_str()));
        let settings = Settings::parse(pairs).map_err(|error| wit::Error::Invalid(convert::bad_setting(&error)))?;
        if settings.backend == Backend::None {
            let problem = convert::problem(
                "MEMORY_DISABLED",
                "backend-none",
                None,
                "memory is switched off (`backend` is `none`); nothing was read or written",
            );
            return Err(wit::Error::Unavailable((wit::Health::Off, problem)));
        }
        let zone = options.time_zone.as_deref().map_or(Ok(Zone::utc()), Zone::named);
        let zone = zone.map_err(|unknown| {
            let problem = convert::problem("INVALID_ARGUMENT", "unknown-time-zone", None, unknown.to_string());
            wit::Error::Invalid(wit::Problem { subject: Some(unknown.name), ..problem })
        })?;
        panic::report_to_log();
        Ok(wit::Session::new(Self {
            tier: options.tier.map(convert::core_tier),
            principal: options.principal,
            settings,
            zone,
            index: Shelf::default(),
            kept: Kept::default(),
            meanings: Meanings::default(),
            remembered: Remembered::default(),
        }))
    }

    fn init(&self) -> Result<wit::Initialised, wit::Error> {
        self.allow(Verb::Init)?;
        let (id, created) = self.ensure()?;
        Ok(wit::Initialised { workspace: id.to_string(), created, revision: self.revision(self.files())? })
    }

    fn status(&self) -> Result<wit::Status, wit::Error> {
        self.allow(Verb::Status)?;
        let view = self.view()?;
        let (summary, findings, revision) = self.survey(&view, Depth::Findings, self.files())?.finish();
        let lock = lock::current().unwrap_or(lock::LockState { held: false, holder: None });
        let troubles = self.troubles("", &view);
        Ok(wit::Status {
            health: troubles::worsen(convert::health(summary.health), !troubles.is_empty()),
            reasons: findings.into_iter().map(convert::finding).chain(troubles).collect(),
            // That it cannot be read is one of the reasons.
            workspace: workspace_id().ok().flatten().map(|id| id.to_string()),
            revision: revision.to_string(),
            counts: convert::counts(&summary.counts),
            core: core_view::shown(&view, &self.settings.limits()).unwrap_or_default(),
            lock: wit::LockState { held: lock.held, holder: lock.holder.as_ref().map(convert::holder_in_words) },
        })
    }

    fn archive(&self, turns: Vec<wit::Turn>) -> Result<wit::Archived, wit::Error> {
        self.allow(Verb::Archive)?;
        let limits = self.settings.limits();
        let mut records: Vec<_> = turns.into_iter().map(convert::new_record).collect();
        keep_to_caller(self.tier, self.principal.as_deref(), self.settings.owner_principal.as_deref(), &mut records)
            .map_err(refused)?;
        let batch = Batch::check(records, &limits).map_err(unfit)?;
        self.view()?.audience().check_paths(batch.paths()).map_err(refused)?;
        let mut files = self.files();
        let plan = keep::keep(self, &batch, "archive", &mut files, |_| Ok(Vec::new()))?;
        self.archived(plan, files)
    }

    fn archive_numbered(&self, turns: Vec<wit::NumberedTurn>) -> Result<wit::Archived, wit::Error> {
        self.allow(Verb::ArchiveNumbered)?;
        let turns = turns.into_iter().map(convert::new_numbered).collect();
        let batch = NumberedBatch::check(turns, &self.settings.limits()).map_err(unfit)?;
        let plan = numbered::keep(self, &batch, "archive")?;
        Ok(wit::Archived {
            turns: plan.turns.into_iter().map(numbered::archived).collect(),
            revision: self.revision(self.files())?,
        })
    }

    fn archive_unpaired(&self, message: wit::UnpairedMessage) -> Result<wit::Archived, wit::Error> {
        unpaired::archive(self, message)
    }

    fn promote(&self, source_id: String) -> Result<wit::Promotion, wit::Error> {
        promote::promote(self, &source_id)
    }

    fn would_promote(&self, source_id: String) -> Result<wit::Promotion, wit::Error> {
        promote::would_promote(self, &source_id)
    }

    fn start_import(&self, options: wit::ImportOptions) -> Result<wit::Importing, wit::Error> {
        self.allow(Verb::StartImport)?;
        Importing::start(self.clone(), options).map(wit::Importing::new)
    }

    fn audience(&self) -> Result<wit::Audience, wit::Error> {
        audience::list(self)
    }

    fn narrow_audience(&self, prefix: String) -> Result<wit::AudienceChange, wit::Error> {
        audience::narrow(self, &prefix)
    }

    fn widen_audience(&self, prefix: String) -> Result<wit::AudienceChange, wit::Error> {
        audience::widen(self, &prefix)
    }

    fn update(&self, request: String, options: wit::UpdateOptions) -> Result<wit::Updated, wit::Error> {
        update::update(self, &request, options)
    }

    fn repair(&self, dry_run: bool) -> Result<wit::Updated, wit::Error> {
        update::repair(self, dry_run)
    }

    fn refresh(&self) -> Result<wit::Refreshed, wit::Error> {
        update::refresh(self)
    }

    fn core(&self) -> Result<Option<wit::CoreView>, wit::Error> {
        self.allow(Verb::Core)?;
        let view = self.view()?;
        settled(|_| core_view::read(&view, &self.settings.limits()))
    }

    fn search(&self, query: wit::Query) -> Result<wit::Answer, wit::Error> {
        self.last_of_note(self.search_by_note(&query))
    }

    fn note_changes(&self, paths: Option<Vec<String>>) {
        self.index.note(paths);
    }

    fn recall(&self, query: wit::RecallQuery) -> Result<wit::Recollection, wit::Error> {
        self.last_of_note(recall::recall(self, &query))
    }

    fn get(&self, target: String, from_line: Option<u64>, max_lines: u32) -> Result<wit::Excerpt, wit::Error> {
        self.allow(Verb::Get)?;
        let lines = if max_lines == 0 { self.settings.get_lines } else { u64::from(max_lines) };
        let window = |from| LineWindow::new(from, lines, self.settings.get_bytes);
        let view = self.view()?;
        settled(|_| match Target::find(&target, &view)? {
            Target::File(entry) => read::file(&entry, window(from_line.unwrap_or(1)), &self.settings.limits()),
            Target::Record { files, id } => {
                read::record(&files, &id, |first| window(from_line.unwrap_or(first)), &self.settings.limits())
            }
        })
    }

    fn get_section(&self, path: String, heading: String) -> Result<wit::Excerpt, wit::Error> {
        reading::section(self, &path, &heading)
    }

    fn get_block(&self, block: String) -> Result<wit::Excerpt, wit::Error> {
        reading::block(self, &block)
    }

    fn grep(&self, query: wit::GrepQuery) -> Result<wit::Matches, wit::Error> {
        reading::grep(self, &query)
    }

    fn timeline(&self, from: Option<String>, to: Option<String>, max: u32) -> Result<wit::TimelinePage, wit::Error> {
        reading::timeline(self, from.as_deref(), to.as_deref(), max)
    }

    fn why(&self, block: String) -> Result<wit::Account, wit::Error> {
        reading::why(self, &block)
    }

    fn browse(&self, prefix: String, cursor: Option<String>, max: u32) -> Result<wit::Listing, wit::Error> {
        self.allow(Verb::Browse)?;
        let prefix = visible_prefix(&prefix)?;
        let most = u32::try_from(self.settings.browse_files).unwrap_or(u32::MAX);
        let max = if max == 0 { most } else { max };
        let page = self.view()?.page(prefix, cursor.as_deref(), max).map_err(|error| at_prefix(error, prefix))?;
        Ok(wit::Listing { files: page.files.iter().map(read::listed).collect(), next: page.next })
    }

    fn structure(
        &self,
        prefix: String,
        matching: String,
        cursor: Option<String>,
        max: u32,
    ) -> Result<wit::StructurePage, wit::Error> {
        reading::structure(self, &prefix, &matching, cursor.as_deref(), max)
    }

    fn references(
        &self,
        references: Vec<wit::BlockReference>,
        max_chars: u32,
    ) -> Result<wit::ReferencedBlocks, wit::Error> {
        reading::references(self, references, max_chars)
    }

    fn verify(&self, prefix: String) -> Result<wit::Verification, wit::Error> {
        self.allow(Verb::Verify)?;
        let prefix = visible_prefix(&prefix)?;
        let view = self.view()?;
        let limits = self.settings.limits();
        let survey = Survey::start(prefix, &view, &limits, Depth::Everything, self.files(), &self.kept)
            .map_err(|error| at_prefix(error, prefix))?;
        Ok(wit::Verification::new(Verification::new(self.clone(), survey, self.troubles(prefix, &view))))
    }
}

/// Reads, and again as long as another program changes what is being read. `last`: there will be no further try.
pub(crate) fn settled<T>(mut read: impl FnMut(bool) -> Result<T, wit::Error>) -> Result<T, wit::Error> {
    for _ in 1..READ_TRIES {
        match read(false) {
            Err(error) if convert::is_changed(&error) => {}
            result => return result,
        }
    }
    read(true)
}

pub(crate) fn refused(problems: Vec<recollex_core::source::Problem>) -> wit::Error {
    wit::Error::Refused(problems.into_iter().map(convert::problem_of).collect())
}

/// A batch that cannot be kept.
pub(crate) fn unfit(error: BatchError) -> wit::Error {
    match error {
        BatchError::Refused(problems) => refused(problems),
        BatchError::Limit(limit) => convert::limit(limit),
    }
}

/// A listing of the whole workspace failed.
pub(crate) fn broken(error: StoreError) -> wit::Error {
    match convert::store_error(error, None) {
        wit::Error::Store(problem) => wit::Error::Unavailable((wit::Health::Broken, problem)),
        wit::Error::Refused(problems) => {
            let first = problems.into_iter().next();
            let problem = first.unwrap_or_else(|| convert::problem("MEMORY_NOT_FOUND", "unreadable", None, ""));
            wit::Error::Unavailable((wit::Health::Broken, problem))
        }
        other => other,
    }
}

fn at_prefix(error: StoreError, prefix: &str) -> wit::Error {
    if prefix.is_empty() { broken(error) } else { convert::store_error(error, Some(prefix)) }
}

/// A prefix without slashes at its ends, unless it leads where no read verb shows anything (D11), or up.
pub(crate) fn visible_prefix(prefix: &str) -> Result<&str, wit::Error> {
    let prefix = prefix.trim_matches('/');
    if is_internal_path(prefix) {
        return Err(read::internal(prefix));
    }
    // The store refuses these too, but is not asked where a prefix only filters.
    if prefix.split('/').any(|part| part == "." || part == "..") {
        let why = "the path has a part . or ..".to_owned();
        return Err(convert::store_error(StoreError::Denied(why), Some(prefix)));
    }
    Ok(prefix)
}

pub(crate) fn generation() -> Result<u64, wit::Error> {
    store::generation().map_err(broken)
}

/// The workspace's id, if it has a sound one.
pub(crate) fn workspace_id() -> Result<Option<WorkspaceId>, wit::Error> {
    let path = WorkspaceId::PATH;
    match store::read_text(Area::Runtime, path, None, 0, 1024) {
        Ok(chunk) => Ok(if chunk.eof { WorkspaceId::parse(&chunk.text) } else { None }),
        Err(StoreError::NotFound | StoreError::NotText(_)) => Ok(None),
        Err(error) => Err(convert::runtime_error(error, path)),
    }
}

/// What a commit is, for people. Nothing here removes anything.
pub(crate) fn about(verb: &str, note: impl Into<String>) -> About {
    About { verb: verb.to_owned(), note: note.into(), erases: false }
}

pub(crate) fn new_workspace_id() -> (WorkspaceId, StoreChange) {
    let random = wasi::random::random::get_random_bytes(4);
    let mut four = [0; 4];
    // A host that gives fewer bytes than asked for gives a weaker name, not a trap.
    for (to, from) in four.iter_mut().zip(random) {
        *to = from;
    }
    let id = WorkspaceId::new(four);
    let change = StoreChange {
        area: Area::Runtime,
        path: WorkspaceId::PATH.to_owned(),
        expect: Expect::Any,
        edit: Edit::Put(id.file()),
    };
    (id, change)
}
