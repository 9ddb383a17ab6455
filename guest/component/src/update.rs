//! Changing topics: read under the lock, planned by core with the views that follow from it, and committed as one.
//!
//! Knows the order of things: what is read, what is written with what, and what is remembered of it. What an edit comes to and
//! why one is refused core's `update` says, what is derived from it core's `views`.

use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use recollex_core::digest::{Digest, FileHasher};
use recollex_core::ids::{FlatRevision, Revision, SourceRef, TopicPath, is_derived_path, path_order};
use recollex_core::session::Settings;
use recollex_core::source::{Batch, NewRecord, Plan as ArchivePlan, Tier};
use recollex_core::table::{FileState, TopicEntry, TopicNote, TopicTable};
use recollex_core::topic::edit::{Edit as TopicEdit, EditFault, Evidence as _, Planned};
use recollex_core::trust::{Verb, keep_to_caller};
use recollex_core::turns::{Upkeep, after_batch};
use recollex_core::update::{Caller, Draft, Fault, Plan, Provenance, Rejection, Request, WithQuoted, Workspace};
use recollex_core::views::{
    CORE_FILE, CORE_STATE, CORE_TOPIC, ChangedTopic, Derivation, Derived, HandCore, RuntimeState, hand_written_core,
};

use crate::bindings::exports::recollex::memory::workspace as wit;
use crate::bindings::recollex::memory::store::{Area, Change, Committed, Edit, Expect, StoreError};
use crate::bindings::recollex::memory::types::Problem;
use crate::cache;
use crate::change::{self, carry_out};
use crate::clock;
use crate::convert;
use crate::core_view;
use crate::evidence::Archives;
use crate::index::IndexLog;
use crate::keep;
use crate::records::Archive;
use crate::session::{Session, refused, settled, unfit, workspace_id};
use crate::state::State;
use crate::survey::RUNTIME_FILE;
use crate::topics::Topics;
use crate::tree::{self, Reader};
use crate::view::View;

/// Name of the cache file that says of which state the views were made.
const VIEWS: &str = "views";

/// Makes an update, or says what it would come to.
pub(crate) fn update(
    session: &Session,
    request: &str,
    options: wit::UpdateOptions,
) -> Result<wit::Updated, wit::Error> {
    session.allow(Verb::Update)?;
    // Before anything is compared: from whom topics are hidden, no answer tells of one.
    session.view()?.audience().check_paths(["topics"]).map_err(refused)?;
    let settings = &session.settings;
    let request =
        Request::from_json(request, &settings.update).map_err(|faults| rejected(Rejection::Refused(faults)))?;
    let quoted = options.provenance.filter(|_| !request.sources().is_empty());
    let caller = Caller { tier: session.tier, provenance: provenance(session, quoted)?, offered: None };
    let draft = Draft::new(request, caller, &settings.update_provider, &settings.limits()).map_err(rejected)?;
    let want = |ground: &mut Ground<'_>| ground.plan(&draft)?.map_err(rejected);
    transact(session, "update", draft.request().commit_message(), options.dry_run, want)
}

/// What changes beside topics, by what is known of them.
pub(crate) type Beside<'t> = &'t dyn Fn(&TopicTable) -> Result<Vec<Change>, wit::Error>;

/// What turns have to do with an update that a writer makes of them.
pub(crate) struct OfTurns<'t> {
    /// The only evidence that blocks may newly rest on (D20).
    pub(crate) offered: BTreeSet<SourceRef>,
    /// What has to change in the same commit: receipts. Asked for each try, and shown what topics cite; an error is the update's.
    pub(crate) beside: Beside<'t>,
    /// Tokens of the turns: what upkeep counts. None: it counts nothing.
    pub(crate) tokens: Option<u64>,
    /// Which verb it is told as.
    pub(crate) verb: &'t str,
}

/// Makes an update that a writer asked for, and says what is to be put in order after it. A rejection is the writer's to know;
/// an error ends its run.
pub(crate) fn of_turns(
    session: &Session,
    request: Request,
    turns: &OfTurns<'_>,
) -> Result<Result<(wit::Updated, Vec<Upkeep>), Rejection>, wit::Error> {
    session.allow(Verb::Turns)?;
    let settings = &session.settings;
    let caller = Caller { tier: session.tier, provenance: None, offered: Some(turns.offered.clone()) };
    let draft = match Draft::new(request, caller, &settings.update_provider, &settings.limits()) {
        Ok(draft) => draft,
        Err(rejection) => return Ok(Err(rejection)),
    };
    let (rejection, upkeep) = (RefCell::new(None), RefCell::default());
    let want = |ground: &mut Ground<'_>| {
        let mut wanted = ground.plan(&draft)?.map_err(|why| {
            let error = rejected(why.clone());
            rejection.replace(Some(why));
            error
        })?;
        if !wanted.topics.is_empty() {
            wanted.beside = (turns.beside)(&ground.topics.table)?;
            ground.counts = turns.tokens;
        }
        Ok(wanted)
    };
    let keep = |ground: &Ground<'_>| drop(upkeep.replace(ground.upkeep.take()));
    let updated = transact_and(session, turns.verb, draft.request().commit_message(), false, want, keep);
    match (updated, rejection.into_inner()) {
        (Ok(updated), _) => Ok(Ok((updated, upkeep.into_inner()))),
        (Err(_), Some(rejection)) => Ok(Err(rejection)),
        (Err(error), None) => Err(error),
    }
}

/// Puts topics that people have edited in order, as far as that is safe, and makes the views anew.
pub(crate) fn repair(session: &Session, dry_run: bool) -> Result<wit::Updated, wit::Error> {
    session.allow(Verb::Repair)?;
    transact(session, "repair", "topics in order, views anew", dry_run, |ground| ground.plan_repair())
}

/// The views that are not what the topics make of them.
pub(crate) fn stale_views(session: &Session) -> Result<Vec<String>, wit::Error> {
    let mut ground = Ground::read(session)?;
    if ground.topics.is_empty() && !ground.state.paths().any(is_derived_path) {
        return Ok(Vec::new());
    }
    let (_, mut writes) = ground.derive_anew(&BTreeMap::new(), &ArchivePlan::default())?;
    writes.retain(|write| !matches!(write.area, Area::Runtime) && ground.is_changed(write));
    Ok(writes.into_iter().map(|write| write.path).collect())
}

/// Why topics that somebody has edited cannot be put in order.
pub(crate) fn unmended_topics(session: &Session) -> Result<Vec<EditFault>, wit::Error> {
    let ground = Ground::read(session)?;
    let is_faulty = |path: &&TopicPath| ground.topics.table.entry(path).is_some_and(|entry| !entry.is_sound());
    let mut left: BTreeSet<TopicPath> = ground.topics.paths().filter(is_faulty).cloned().collect();
    let (_, faults) = ground.mend(&mut left)?;
    Ok(faults)
}

/// Makes views anew if somebody has edited topics by hand since, and says what is wrong with topics.
pub(crate) fn refresh(session: &Session) -> Result<wit::Refreshed, wit::Error> {
    session.allow(Verb::Refresh)?;
    let mut refreshed = wit::Refreshed { edited: false, changed_files: Vec::new(), findings: Vec::new() };
    let state = session.state()?;
    // Where nobody knows of which topics the views are, they may be another program's: no reader changes them.
    let Some(made) = Made::read() else { return Ok(refreshed) };
    if Some(made.of) == state.views_key() || Some(made.views) != state.derived_key() {
        return Ok(refreshed);
    }
    refreshed.edited = true;
    let hurried = Session { settings: Settings { lock_wait_ms: 0, ..session.settings.clone() }, ..session.clone() };
    let nothing = |ground: &mut Ground<'_>| Ok(Wanted::nothing(ground.revision()?));
    // Views that cannot be made now are made the next time; the faults of topics are told all the same.
    if let Ok(updated) = transact(&hurried, "refresh", "views anew", false, nothing) {
        refreshed.changed_files = updated.changed_files;
    }
    refreshed.findings = session.topic_findings()?;
    Ok(refreshed)
}

/// A `core.md` that somebody wrote by hand and that is no topic is kept as evidence, before its place is needed (D28).
fn keep_hand_core(session: &Session) -> Result<(), wit::Error> {
    let is_there = |path| tree::find(Area::Tree, path).map_err(|error| convert::store_error(error, Some(path)));
    if is_there(CORE_FILE)?.is_none() || is_there(CORE_TOPIC)?.is_some() {
        return Ok(());
    }
    let HandCore::Archive { record, .. } = Ground::read(session)?.hand_core()? else { return Ok(()) };
    let batch = Batch::check(vec![*record], &session.settings.limits()).map_err(unfit)?;
    let mut files = session.files();
    keep::keep(session, &batch, "migrate", &mut files, |_| Ok(Vec::new()))?;
    cache::save_file_table(&files, false, &session.settings.limits());
    Ok(())
}

/// On whose authority a request quotes sources. None: on nobody's.
fn provenance(session: &Session, given: Option<wit::Provenance>) -> Result<Option<Provenance>, wit::Error> {
    let Some(given) = given else { return Ok(None) };
    let owner = session.settings.owner_principal.as_deref();
    let is_owner = session.tier == Some(Tier::Owner);
    let principal = session.principal.as_deref().or(owner.filter(|_| is_owner));
    // What they say of the speaker is what they could say of one when they archive.
    let mut claims = [NewRecord {
        speaker_kind: Some(given.speaker_kind.clone()),
        principal: principal.map(str::to_owned),
        ..NewRecord::default()
    }];
    keep_to_caller(session.tier, session.principal.as_deref(), owner, &mut claims).map_err(refused)?;
    let display = given.speaker_display.as_deref().unwrap_or(&given.speaker_id);
    let speaker = [given.speaker_kind.as_str(), given.speaker_id.as_str(), display];
    Ok(Provenance::of_speaker(speaker, principal, session.tier, &given.origin))
}

/// What is wanted of a workspace.
struct Wanted {
    /// Topics as they shall be; none: gone.
    topics: BTreeMap<TopicPath, Option<String>>,
    /// What is appended to archives, with what is known of them.
    archive: ArchivePlan,
    archives: BTreeMap<String, Archive>,
    /// All views are to be made anew, whatever is known of them.
    views_anew: bool,
    /// What else changes in the same commit, if anything does.
    beside: Vec<Change>,
    answer: wit::Updated,
}

impl Wanted {
    /// Nothing but that views are right.
    fn nothing(revision: String) -> Self {
        Self {
            topics: BTreeMap::new(),
            archive: ArchivePlan::default(),
            archives: BTreeMap::new(),
            views_anew: false,
            beside: Vec::new(),
            answer: empty_answer(revision),
        }
    }
}

/// Of what this program made the views last.
struct Made {
    /// Topics, views and order, as they were then.
    of: Revision,
    /// The views.
    views: Revision,
    /// The archives that `topics/core.md` cites: what of them may be built on decides what is in `core.md`.
    evidence: String,
}

impl Made {
    /// None: nobody knows.
    fn read() -> Option<Self> {
        let text = String::from_utf8(cache::read_all(VIEWS)?).ok()?;
        let mut lines = text.lines();
        let mut revision = || Revision::parse(lines.next()?);
        let (of, views) = (revision()?, revision()?);
        Some(Self { of, views, evidence: lines.next()?.to_owned() })
    }

    fn write(&self) -> String {
        format!("{}\n{}\n{}\n", self.of, self.views, self.evidence)
    }
}

/// A workspace as it is read for one try.
struct Ground<'s> {
    session: &'s Session,
    state: State,
    topics: Topics,
    archives: Archives,
    /// What somebody wrote by hand becomes this topic, with whatever else is changed (D28).
    promoted: Option<(TopicPath, String)>,
    /// So many tokens of turns are written with the change.
    counts: Option<u64>,
    /// What is to be put in order then.
    upkeep: RefCell<Vec<Upkeep>>,
}

/// A change of the tree or the runtime directory, as it will be committed.
struct Write {
    area: Area,
    path: String,
    expect: Expect,
    /// None: the file goes.
    content: Option<String>,
    /// Of the content.
    digest: Option<Digest>,
}

/// A change, ready to be committed.
struct Prepared<'s> {
    ground: Ground<'s>,
    topics: BTreeMap<TopicPath, Option<String>>,
    /// What the table of topics is to know then.
    notes: Vec<TopicNote>,
    writes: Vec<Write>,
    archive: ArchivePlan,
    archives: BTreeMap<String, Archive>,
    beside: Vec<Change>,
    answer: wit::Updated,
}

/// Reads, has `want` plan, and commits.
fn transact(
    session: &Session,
    verb: &str,
    note: &str,
    dry_run: bool,
    want: impl for<'g> Fn(&mut Ground<'g>) -> Result<Wanted, wit::Error>,
) -> Result<wit::Updated, wit::Error> {
    transact_and(session, verb, note, dry_run, want, |_| ())
}

/// The same; `committed` is shown what it was made of once it is done.
fn transact_and(
    session: &Session,
    verb: &str,
    note: &str,
    dry_run: bool,
    want: impl for<'g> Fn(&mut Ground<'g>) -> Result<Wanted, wit::Error>,
    committed: impl for<'g> FnOnce(&Ground<'g>),
) -> Result<wit::Updated, wit::Error> {
    let prepare = || {
        let mut ground = Ground::read(session)?;
        let wanted = want(&mut ground)?;
        ground.prepare(wanted)
    };
    if dry_run {
        // Who only looks needs no lock: what they see is told with the revision that it is true of.
        return settled(|_| prepare()?.shown());
    }
    keep_hand_core(session)?;
    let planned = || {
        let prepared = prepare()?;
        Ok(change::Planned { changes: prepared.changes(), note: note.to_owned(), basis: prepared })
    };
    let done = carry_out(session, verb, planned, |error| error)?;
    committed(&done.basis.ground);
    done.basis.keep(done.committed)
}

impl<'s> Ground<'s> {
    fn read(session: &'s Session) -> Result<Self, wit::Error> {
        let view = session.view()?;
        let state = session.state()?;
        // Everything counts for what is unique and for what the views say, whoever asks.
        let archives = Archives::of(&View::of(Tier::Owner)?, &session.settings.limits());
        let digest_of = |path: &str| state.digest_of(path);
        let mut topics =
            Topics::load(state.topics(), &digest_of, &archives, &session.kept, &session.settings.limits())?;
        topics.save();
        // What the caller may rest something on is what they see.
        let archives = if view.is_everything() { archives } else { Archives::of(&view, &session.settings.limits()) };
        let mut ground =
            Self { session, state, topics, archives, promoted: None, counts: None, upkeep: RefCell::default() };
        if let HandCore::Promote(text) = ground.hand_core()?
            && let Ok(path) = TopicPath::parse(CORE_TOPIC)
        {
            ground.topics.suppose(&path, &text, &ground.archives);
            ground.archives.check()?;
            ground.promoted = Some((path, text));
        }
        Ok(ground)
    }

    /// What is to be done about a `core.md` that no topic made.
    fn hand_core(&self) -> Result<HandCore, wit::Error> {
        if self.topics.paths().any(|path| path.as_str() == CORE_TOPIC) {
            return Ok(HandCore::Leave);
        }
        let everything = View::of(Tier::Owner)?;
        let Some(text) = core_view::text(&everything, &self.session.settings.limits())? else {
            return Ok(HandCore::Leave);
        };
        let taken = |id: &str| !self.topics.table.topics_of(id).is_empty();
        let archived = |source: &SourceRef| self.archives.look_up(source).is_some();
        let principal = self.session.settings.owner_principal.as_deref();
        let state = core_view::state()?;
        let decision = hand_written_core(text.as_bytes(), state.as_ref(), &taken, &self.archives, &archived, principal);
        self.archives.check()?;
        Ok(decision)
    }

    /// What a request comes to, or why it is rejected.
    fn plan(&mut self, draft: &Draft) -> Result<Result<Wanted, Rejection>, wit::Error> {
        let base = draft.request().base_revision();
        let flat = if FlatRevision::is_token(base) { Some(self.flat_revision()?) } else { None };
        let revision = self.revision()?;
        let revisions: Vec<&str> = std::iter::once(revision.as_str()).chain(flat.as_deref()).collect();
        if let Err(rejection) = draft.check_revision(&revisions) {
            return Ok(Err(rejection));
        }
        let limits = self.session.settings.limits();
        let (archive, archives) = keep::plan(draft.batch(), &limits, &mut self.state.files)?;
        let text = |path: &TopicPath| self.topics.text(path);
        let workspace =
            Workspace { revisions: &revisions, committed: &self.topics.committed(&text), evidence: &self.archives };
        let plan = draft.plan(workspace, archive.clone());
        // What was decided by answers that could not be had is no answer.
        self.topics.check()?;
        self.archives.check()?;
        let plan = match plan {
            Ok(plan) => plan,
            Err(rejection) => return Ok(Err(rejection)),
        };
        self.keep_hidden(&plan)?;
        let answer = answer(&plan, revision);
        Ok(Ok(Wanted {
            topics: plan.topics().clone(),
            archive,
            archives,
            views_anew: false,
            beside: Vec::new(),
            answer,
        }))
    }

    /// Topics that this caller does not see are not theirs to change, whatever they say of them.
    fn keep_hidden(&self, plan: &Plan) -> Result<(), wit::Error> {
        let view = self.session.view()?;
        let archives = plan.archive().changes.iter().map(|change| change.path.as_str());
        let paths: Vec<&str> = plan.topics().keys().map(TopicPath::as_str).chain(archives).collect();
        view.audience().check_paths(paths).map_err(refused)
    }

    /// All topics in order, as far as they can be: what has faults is left as it is.
    fn plan_repair(&mut self) -> Result<Wanted, wit::Error> {
        let mut left: BTreeSet<TopicPath> = self.topics.paths().cloned().collect();
        let (planned, _) = self.mend(&mut left)?;
        let mut wanted = Wanted::nothing(self.revision()?);
        wanted.answer.block_ids = planned.blocks.iter().map(block_id).collect();
        wanted.answer.evidence_ids = planned.footnotes.iter().map(evidence_id).collect();
        wanted.topics = planned.topics;
        wanted.views_anew = true;
        Ok(wanted)
    }

    /// These topics in order, and why others of them cannot be: those are taken out of `left`.
    fn mend(&self, left: &mut BTreeSet<TopicPath>) -> Result<(Planned, Vec<EditFault>), wit::Error> {
        let mut told = Vec::new();
        loop {
            let mut edit = TopicEdit { mend: true, ..TopicEdit::default() };
            for path in left.iter() {
                if let Some(text) = self.topics.read(path)? {
                    edit.topics.insert(path.clone(), Some(text));
                }
            }
            let text = |path: &TopicPath| self.topics.text(path);
            let planned = recollex_core::topic::edit::plan(&edit, &self.topics.committed(&text), &self.archives);
            self.topics.check()?;
            self.archives.check()?;
            let faults = match planned {
                Ok(planned) => return Ok((planned, told)),
                Err(faults) => faults,
            };
            let before = left.len();
            for fault in &faults {
                left.remove(&fault.path);
            }
            told.extend(faults);
            if left.len() == before {
                return Ok((Planned::default(), told));
            }
        }
    }

    /// What the caller calls this state.
    fn revision(&self) -> Result<String, wit::Error> {
        match self.known_revision()? {
            Some(revision) => Ok(revision),
            None => self.session.revision(self.session.files()),
        }
    }

    /// The same, unless somebody has to look first.
    fn known_revision(&self) -> Result<Option<String>, wit::Error> {
        let view = self.session.view()?;
        let sees = |path: &str| if path == RUNTIME_FILE.1 { view.is_everything() } else { view.audience().sees(path) };
        Ok(self.state.revision(&sees).map(|revision| revision.to_string()))
    }

    /// The other program's name for this state. Costs a read of everything.
    fn flat_revision(&self) -> Result<String, wit::Error> {
        let mut flat = FlatRevision::new();
        let mut counted: Vec<_> = self.state.counted().into_iter().collect();
        counted.sort_by(|(a, _), (b, _)| path_order(a, b));
        for (path, (area, entry)) in counted {
            flat.file(path);
            let mut reader = Reader::new(area, entry);
            while let Some(piece) = reader.next().map_err(|error| convert::store_error(error, Some(path)))? {
                flat.push(piece.as_bytes());
            }
        }
        Ok(flat.finish())
    }

    /// Adds the views that follow from what is wanted.
    fn prepare(mut self, wanted: Wanted) -> Result<Prepared<'s>, wit::Error> {
        let Wanted { mut topics, archive, archives, views_anew, beside, mut answer } = wanted;
        // No view knows of a topic that was only supposed to be there.
        let made = Made::read().filter(|made| !views_anew && self.promoted.is_none() && self.is_now(&made.of));
        if let Some((path, text)) = self.promoted.take() {
            topics.entry(path).or_insert(Some(text));
        }
        let (notes, mut writes) = match made {
            Some(made) => self.derive(&topics, &archive, &made)?,
            None => self.derive_anew(&topics, &archive)?,
        };
        for (path, content) in &topics {
            writes.push(self.write(Area::Tree, path.as_str(), content.clone()));
        }
        writes.retain(|write| self.is_changed(write));
        let in_tree = writes.iter().filter(|write| matches!(write.area, Area::Tree));
        answer.changed_files = in_tree.map(|write| write.path.clone()).collect();
        answer.changed_files.extend(archive.changes.iter().map(|change| change.path.clone()));
        answer.changed_files.sort();
        Ok(Prepared { ground: self, topics, notes, writes, archive, archives, beside, answer })
    }

    /// Whether nobody has changed topics or views since.
    fn is_now(&self, of: &Revision) -> bool {
        self.state.views_key().as_ref() == Some(of)
    }

    /// Names the archives that `topics/core.md` cites, as they are.
    fn core_evidence(&self) -> String {
        let entry = TopicPath::parse(CORE_TOPIC).ok().and_then(|path| self.topics.table.entry(&path));
        let archives: BTreeSet<String> = entry.iter().flat_map(TopicEntry::archives).collect();
        self.state.key_of(&archives).map(|key| key.to_string()).unwrap_or_default()
    }

    /// What follows from topics as they shall be, where the views are those of the topics as they are.
    fn derive(
        &mut self,
        topics: &BTreeMap<TopicPath, Option<String>>,
        archive: &ArchivePlan,
        made: &Made,
    ) -> Result<(Vec<TopicNote>, Vec<Write>), wit::Error> {
        let evidence = WithQuoted::new(&archive.records, &self.archives);
        // The views are of these topics, so that each of their units has a number.
        let order = self.order()?;
        let changed = topics.iter().map(|(path, text)| (path.clone(), text.as_deref())).collect();
        let limits = self.session.settings.views;
        let mut derivation = Derivation::of_change(&self.topics.table, changed, &evidence, &order, limits);
        if !archive.changes.is_empty() || made.evidence.is_empty() || made.evidence != self.core_evidence() {
            derivation = derivation.with_core();
        }
        let mut text = |path: &TopicPath| self.topics.text(path).map(Cow::Borrowed);
        let trusted = |source: &SourceRef| evidence.is_trusted(source);
        let derived = derivation.finish_over(&mut text, &trusted, &|path| self.view_file(path));
        let derived = self.derived(derived)?;
        let derived = self.with_counts(derived, &order);
        let writes = self.writes(&derived)?;
        self.keep_order(order, &derived, &writes);
        Ok((derived.notes, writes))
    }

    /// The same, with all views made anew.
    fn derive_anew(
        &mut self,
        topics: &BTreeMap<TopicPath, Option<String>>,
        archive: &ArchivePlan,
    ) -> Result<(Vec<TopicNote>, Vec<Write>), wit::Error> {
        let evidence = WithQuoted::new(&archive.records, &self.archives);
        let mut order = self.order()?;
        if !topics.is_empty() {
            // What is there already comes before what is added, whatever their paths.
            order.cover(&self.topics.table);
        }
        let mut table = self.topics.table.clone();
        let note = |(path, text): (&TopicPath, &Option<String>)| match text {
            Some(text) => TopicNote::read(path, text, &evidence),
            None => TopicNote::gone(path),
        };
        let notes: Vec<TopicNote> = topics.iter().map(note).collect();
        notes.iter().for_each(|note| table.apply(note));
        let mut text = |path: &TopicPath| match topics.get(path) {
            Some(text) => text.as_deref().map(Cow::Borrowed),
            None => self.topics.text(path).map(Cow::Borrowed),
        };
        let derivation = Derivation::whole(&table, &order, self.session.settings.views);
        let derived = derivation.finish(&mut text, &|source| evidence.is_trusted(source));
        let derived = self.derived(derived)?;
        let derived = self.with_counts(derived, &order);
        let writes = self.writes(&derived)?;
        self.keep_order(order, &derived, &writes);
        Ok((notes, writes))
    }

    /// A view as it is; none if it cannot be read: then it is made of topics.
    fn view_file(&self, path: &str) -> Option<String> {
        let stamp = self.state.stamp(Area::Tree, path)?;
        tree::read_range(Area::Tree, path, Some(stamp), 0, stamp.size).ok()
    }

    /// What was derived, if everything that it was derived from could be read.
    fn derived(&self, derived: Result<Derived, ChangedTopic>) -> Result<Derived, wit::Error> {
        self.topics.check()?;
        self.archives.check()?;
        derived.map_err(|changed| convert::store_error(StoreError::Changed, Some(changed.path.as_str())))
    }

    /// With what upkeep counts, which stands in the same file as the order.
    fn with_counts(&self, mut derived: Derived, order: &RuntimeState) -> Derived {
        if self.counts.is_some() && derived.runtime.is_none() {
            derived.runtime = Some(order.write());
        }
        derived
    }

    /// In which order claims were made, as far as that is written down.
    fn order(&self) -> Result<RuntimeState, wit::Error> {
        let digest = self.state.digest_of(RUNTIME_FILE.1);
        let mut order = match digest.and_then(|digest| self.session.kept.take_order(digest)) {
            Some(order) => order,
            None => RuntimeState::read(&self.runtime_state()?.unwrap_or_default()),
        };
        if let Some(tokens) = self.counts {
            self.upkeep.replace(after_batch(&mut order, tokens, clock::now(), &self.session.settings.upkeep));
        }
        Ok(order)
    }

    /// Keeps what the file says, or will say once this is committed.
    fn keep_order(&self, mut order: RuntimeState, derived: &Derived, writes: &[Write]) {
        order.extend_ids(derived.created.iter().map(String::as_str));
        let is_file = |write: &&Write| matches!(write.area, Area::Runtime) && write.path == RUNTIME_FILE.0;
        let written = writes.iter().find(is_file).map(|write| write.digest);
        if let Some(digest) = written.unwrap_or_else(|| self.state.digest_of(RUNTIME_FILE.1)) {
            self.session.kept.keep_order(digest, order);
        }
    }

    /// What derived files come to be. Some of them may be so already.
    fn writes(&self, derived: &Derived) -> Result<Vec<Write>, wit::Error> {
        let files = derived.files.iter().map(|(path, content)| self.write(Area::Tree, path, content.clone()));
        let mut writes: Vec<Write> = files.collect();
        let stale = derived.stale(self.state.paths());
        writes.extend(stale.into_iter().map(|path| self.write(Area::Tree, path, None)));
        if let Some(content) = &derived.runtime {
            writes.push(self.write(Area::Runtime, RUNTIME_FILE.0, Some(content.clone())));
        }
        if let Some(draft) = &derived.core {
            let rendered = core_view::render(draft.clone())?.into_iter();
            writes.extend(rendered.map(|(area, path, content)| self.write(area, path, Some(content))));
        }
        Ok(writes)
    }

    /// Whether a file is something else than it shall be.
    fn is_changed(&self, write: &Write) -> bool {
        !self.state.is(write.area, &write.path, write.digest)
    }

    /// Content of the runtime directory's file; none if there is none, or nobody can read it.
    fn runtime_state(&self) -> Result<Option<String>, wit::Error> {
        let failed = |error| convert::runtime_error(error, RUNTIME_FILE.0);
        let Some(entry) = tree::find(Area::Runtime, RUNTIME_FILE.0).map_err(failed)? else { return Ok(None) };
        match tree::read_range(Area::Runtime, RUNTIME_FILE.0, Some(&entry.stamp), 0, entry.stamp.size) {
            Ok(text) => Ok(Some(text)),
            Err(StoreError::NotText(_)) => Ok(None),
            Err(error) => Err(failed(error)),
        }
    }

    /// That file with that content, if nobody has changed it meanwhile.
    fn write(&self, area: Area, path: &str, content: Option<String>) -> Write {
        let expect = match self.state.stamp(area, path) {
            // Nobody else writes it, and what it says is worth no conflict.
            _ if path == CORE_STATE => Expect::Any,
            Some(stamp) => Expect::Same(stamp.clone()),
            None => Expect::Absent,
        };
        let digest = content.as_deref().map(digest_of);
        Write { area, path: path.to_owned(), expect, content, digest }
    }

    /// Remembers of which state the views are.
    fn keep_views_key(&self) {
        if let (Some(of), Some(views)) = (self.state.views_key(), self.state.derived_key())
            && workspace_id().is_ok_and(|id| id.is_some())
        {
            cache::put(VIEWS, Made { of, views, evidence: self.core_evidence() }.write().as_bytes());
        }
    }
}

impl Prepared<'_> {
    /// What a commit has to do.
    fn changes(&self) -> Vec<Change> {
        let added = self.archive.changes.iter();
        let added = added.map(|change| keep::append(change, self.archives.get(change.path.as_str())));
        let mut changes: Vec<Change> = self.writes.iter().map(Write::change).chain(added).collect();
        if !changes.is_empty() {
            changes.extend(self.beside.iter().cloned());
        }
        changes
    }

    /// What would change.
    fn shown(self) -> Result<wit::Updated, wit::Error> {
        let Self { ground, topics, mut answer, .. } = self;
        for (path, after) in topics {
            // A topic that was only supposed to be there comes into being.
            let is_there = ground.state.stamp(Area::Tree, path.as_str()).is_some();
            let before = ground.topics.read(&path)?.filter(|_| is_there).map(str::to_owned);
            answer.drafts.push(wit::Draft { path: path.to_string(), before, after });
        }
        Ok(answer)
    }

    /// It is committed, or there was nothing to do: keeps what is known now. What fails from here on costs time the next time,
    /// and nothing else.
    fn keep(self, committed: Option<Committed>) -> Result<wit::Updated, wit::Error> {
        let Self { mut ground, notes, writes, archive, mut archives, mut answer, .. } = self;
        let Some(committed) = committed else {
            ground.keep_views_key();
            return Ok(answer);
        };
        let limits = ground.session.settings.limits();
        let mut stamps = committed.stamps.into_iter();
        for (write, stamp) in writes.iter().zip(stamps.by_ref().take(writes.len())) {
            let Some(name) = ground.state.name(write.area, &write.path) else { continue };
            ground.state.now(name, write.digest);
            if let (Some(root), Some(stamp)) = (write.digest, stamp) {
                let state = FileState { root, frames: 0, legacy_records: 0, clean: true };
                ground.state.files.note(name, &tree::version(&stamp), state);
            }
        }
        let added = keep::added(&archive);
        let contents = archive.records.iter().map(|kept| (kept.id.as_str(), kept.content)).collect::<BTreeMap<_, _>>();
        let settings = &ground.session.settings;
        let mut log = if archive.changes.is_empty() { None } else { IndexLog::open(settings) };
        for (change, stamp) in archive.changes.iter().zip(stamps) {
            ground.state.forget(&change.path);
            if let (Some(archive), Some(stamp)) = (archives.remove(&change.path), stamp) {
                let records = added.get(change.path.as_str()).copied().unwrap_or_default();
                if let Some(log) = &mut log {
                    log.added(change, archive.records(), archive.stamp(), &stamp);
                }
                archive.keep_added(change, &stamp, records, &contents, &limits, &mut ground.state.files);
                if let Some(known) = ground.state.files.known(&change.path, &tree::version(&stamp)) {
                    ground.state.now(&change.path, Some(known.root));
                }
            }
        }
        for note in &notes {
            ground.topics.table.apply(note);
        }
        ground.topics.save();
        ground.keep_views_key();
        cache::save_file_table(&ground.state.files, false, &limits);
        answer.committed = true;
        answer.revision = ground.revision()?;
        Ok(answer)
    }
}

impl Write {
    fn change(&self) -> Change {
        let edit = self.content.clone().map_or(Edit::Delete, Edit::Put);
        Change { area: self.area, path: self.path.clone(), expect: self.expect.clone(), edit }
    }
}

fn digest_of(text: &str) -> Digest {
    let mut hasher = FileHasher::new();
    hasher.push(text.as_bytes());
    hasher.finish().root
}

fn block_id(block: &recollex_core::topic::edit::NewBlock) -> wit::GivenId {
    wit::GivenId { name: format!("{}#{}", block.topic, block.number), id: block.id.clone() }
}

fn evidence_id(footnote: &recollex_core::topic::edit::NewFootnote) -> wit::GivenId {
    wit::GivenId { name: footnote.local.clone(), id: footnote.label.clone() }
}

fn empty_answer(revision: String) -> wit::Updated {
    wit::Updated {
        revision,
        committed: false,
        changed_files: Vec::new(),
        block_ids: Vec::new(),
        evidence_ids: Vec::new(),
        source_ids: Vec::new(),
        drafts: Vec::new(),
    }
}

fn answer(plan: &Plan, revision: String) -> wit::Updated {
    let source_id =
        |(name, id): (&String, &recollex_core::ids::SourceId)| wit::GivenId { name: name.clone(), id: id.to_string() };
    wit::Updated {
        block_ids: plan.block_ids().iter().map(block_id).collect(),
        evidence_ids: plan.evidence_ids().iter().map(evidence_id).collect(),
        source_ids: plan.source_ids().iter().map(source_id).collect(),
        ..empty_answer(revision)
    }
}

/// A rejection as callers see it.
fn rejected(rejection: Rejection) -> wit::Error {
    match rejection {
        Rejection::Stale { revision, .. } => wit::Error::Conflict(revision),
        Rejection::Refused(faults) => wit::Error::Refused(faults.into_iter().map(problem).collect()),
    }
}

fn problem(fault: Fault) -> Problem {
    Problem {
        code: fault.why.code().as_str().to_owned(),
        reason: fault.why.as_str().to_owned(),
        path: fault.path,
        line: fault.line,
        subject: fault.subject.or(fault.field),
        message: fault.message,
    }
}
