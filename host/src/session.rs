//! A workspace open for one caller.
//!
//! Knows the life of an instance: when it starts, what ends it, what of it outlives a call. What the calls mean is the
//! component's, and what they touch the store's.

use std::fmt;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use wasmtime::Store;
use wasmtime::component::ResourceAny;

use crate::bindings::memory::Memory;
use crate::bindings::turns;
use crate::bindings::types::{self, Finding, Tier};
use crate::bindings::workspace::{
    self, Account, Answer, Archived, Audience, AudienceChange, BlockReference, CoreView, Excerpt, GrepQuery,
    GuestSession, ImportOptions, ImportedConversation, Initialised, Listing, Matches, Method, NumberedTurn, Promotion,
    Query, RecallQuery, Recollection, ReferencedBlocks, Refreshed, Report, Scope, Setting, Status, StructurePage,
    TimelinePage, Turn, UnpairedMessage, UpdateOptions, Updated,
};
use crate::call::{self, Metered as _};
use crate::cancel::Canceller;
use crate::clock::{Clock, SystemClock};
use crate::error::Error;
use crate::imports::Host;
use crate::lock::{FileLock, Lock};
use crate::observer::{Observer, Silent};
use crate::runtime::Runtime;
use crate::store;

/// Who opens a workspace, and how.
#[derive(Clone)]
pub struct OpenOptions {
    /// Who calls. None is refused by the component with `AUTHORITY_TIER_MISSING`: a program must say it.
    pub tier: Option<Tier>,
    /// On whose behalf, as the program names people.
    pub principal: Option<String>,
    /// IANA name of the time zone for days and "yesterday"; none: UTC.
    pub time_zone: Option<String>,
    /// Settings by name, as FORMAT.md lists them: `backend`, `limits.batch-bytes`, `search.top-k-max`.
    pub settings: Vec<Setting>,
    /// Hears the component's log lines, events and progress.
    pub observer: Arc<dyn Observer>,
    /// Tells the component the time.
    pub clock: Arc<dyn Clock>,
}

impl OpenOptions {
    /// For a caller of this tier, with no settings, in UTC, with no observer, by the machine's clock.
    #[must_use]
    pub fn new(tier: Tier) -> Self {
        Self {
            tier: Some(tier),
            principal: None,
            time_zone: None,
            settings: Vec::new(),
            observer: Arc::new(Silent),
            clock: Arc::new(SystemClock),
        }
    }

    /// On behalf of this principal.
    #[must_use]
    pub fn principal(mut self, principal: impl Into<String>) -> Self {
        self.principal = Some(principal.into());
        self
    }

    /// With one more setting.
    #[must_use]
    pub fn setting(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.settings.push(Setting { name: name.into(), value: value.into() });
        self
    }

    /// With this observer.
    #[must_use]
    pub fn observer(mut self, observer: Arc<dyn Observer>) -> Self {
        self.observer = observer;
        self
    }

    /// By this clock.
    #[must_use]
    pub fn clock(mut self, clock: impl Clock + 'static) -> Self {
        self.clock = Arc::new(clock);
        self
    }
}

impl fmt::Debug for OpenOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpenOptions")
            .field("tier", &self.tier)
            .field("principal", &self.principal)
            .field("time_zone", &self.time_zone)
            .field("settings", &self.settings)
            .finish_non_exhaustive()
    }
}

/// What a session works on: where the bytes are and what keeps writers apart. [`Session::open`] takes a directory;
/// this is for programs that keep workspaces elsewhere.
#[derive(Clone)]
pub struct Medium {
    /// Where the bytes are.
    pub store: Arc<dyn store::Store>,
    /// What keeps writers apart.
    pub lock: Arc<dyn Lock>,
}

impl Medium {
    /// The directory `root`, with the lock that other programs on it take too. Touches nothing.
    #[must_use]
    pub fn directory(root: &Path) -> Self {
        let store = store::Directory::new(root).with_undo(store::UndoLimits::default());
        Self { store: Arc::new(store), lock: Arc::new(FileLock::new(root)) }
    }
}

impl fmt::Debug for Medium {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Medium").finish_non_exhaustive()
    }
}

/// A workspace open for one caller.
///
/// Errors of the component leave the session as it was. A trap or a limit of the host ends the component's instance, and
/// with it a lock that it held; the next call starts a new one and opens it with the same options.
pub struct Session {
    runtime: Runtime,
    medium: Medium,
    options: OpenOptions,
    canceller: Canceller,
    live: Option<Live>,
    watched: Watched,
}

/// What a session knows of changes to the files. The first search looks at all of them in any case, and may be the only one.
enum Watched {
    /// Nothing was searched yet.
    NotYet,
    /// The next search begins to watch.
    Next,
    By(Box<dyn store::Watch>),
    /// The store cannot tell.
    Never,
}

/// Where files may have changed since this was told last.
enum Changes {
    /// Nothing is told.
    Unsaid,
    Anywhere,
    /// At or below these paths.
    At(Vec<String>),
}

/// An instance of the component with the workspace open in it.
struct Live {
    store: Store<Host>,
    world: Memory,
    session: ResourceAny,
    /// Verifications and imports that their owners dropped. Their ends in the component wait here for the next call, because only a
    /// call can reach it. It also tells one instance from another.
    dropped: Dropped,
}

type Dropped = Arc<Mutex<Vec<ResourceAny>>>;

impl Session {
    /// Opens the workspace in the directory `root`. Reads nothing of it yet: it may be damaged, empty or not there.
    ///
    /// # Errors
    /// [`Error::Memory`] when the component refuses the options, `unavailable` with `off` for `backend=none`;
    /// [`Error::Limit`] and [`Error::Trap`] as any call.
    pub fn open(runtime: &Runtime, root: &Path, options: OpenOptions) -> Result<Self, Error> {
        Self::over(runtime, Medium::directory(root), options)
    }

    /// Opens the workspace on a medium of the program's own.
    ///
    /// # Errors
    /// As [`Session::open`].
    pub fn over(runtime: &Runtime, medium: Medium, options: OpenOptions) -> Result<Self, Error> {
        let canceller = Canceller::default();
        let mut session =
            Self { runtime: runtime.clone(), medium, options, canceller, live: None, watched: Watched::NotYet };
        session.live = Some(session.start()?);
        Ok(session)
    }

    /// What ends the call that this session is making, from another thread: to be asked for before the call.
    #[must_use]
    pub fn canceller(&self) -> Canceller {
        self.canceller.clone()
    }

    /// Makes a workspace where there is none.
    ///
    /// # Errors
    /// As every call: [`Error::Memory`] as `wit/workspace.wit` says, [`Error::Limit`], [`Error::Trap`].
    pub fn init(&mut self) -> Result<Initialised, Error> {
        self.call(|guest, store, session| guest.call_init(store, session))
    }

    /// Figures and health.
    ///
    /// # Errors
    /// As [`Session::init`].
    pub fn status(&mut self) -> Result<Status, Error> {
        self.call(|guest, store, session| guest.call_status(store, session))
    }

    /// Keeps turns as evidence, all of them or none.
    ///
    /// # Errors
    /// As [`Session::init`].
    pub fn archive(&mut self, turns: &[Turn]) -> Result<Archived, Error> {
        self.call(|guest, store, session| guest.call_archive(store, session, turns))
    }

    /// Keeps turns of numbered conversations (`sources/D3.md`), all of them or none.
    ///
    /// # Errors
    /// As [`Session::init`].
    pub fn archive_numbered(&mut self, turns: &[NumberedTurn]) -> Result<Archived, Error> {
        self.call(|guest, store, session| guest.call_archive_numbered(store, session, turns))
    }

    /// Keeps what somebody unpaired said in a group, as pending evidence, within a quota.
    ///
    /// # Errors
    /// As [`Session::init`].
    pub fn archive_unpaired(&mut self, message: &UnpairedMessage) -> Result<Archived, Error> {
        self.call(|guest, store, session| guest.call_archive_unpaired(store, session, message))
    }

    /// Vouches for a pending record. Only for the owner in person.
    ///
    /// # Errors
    /// As [`Session::init`].
    pub fn promote(&mut self, source_id: &str) -> Result<Promotion, Error> {
        self.call(|guest, store, session| guest.call_promote(store, session, source_id))
    }

    /// What [`Session::promote`] would do now. Writes nothing and fails as that does.
    ///
    /// # Errors
    /// As [`Session::init`].
    pub fn would_promote(&mut self, source_id: &str) -> Result<Promotion, Error> {
        self.call(|guest, store, session| guest.call_would_promote(store, session, source_id))
    }

    /// Starts to take in an export.
    ///
    /// # Errors
    /// As [`Session::init`].
    pub fn start_import(&mut self, options: &ImportOptions) -> Result<Importing, Error> {
        let handle = self.call(|guest, store, session| guest.call_start_import(store, session, options))?;
        self.underway(handle).map(Importing)
    }

    /// What only the owner sees.
    ///
    /// # Errors
    /// As [`Session::init`].
    pub fn audience(&mut self) -> Result<Audience, Error> {
        self.call(|guest, store, session| guest.call_audience(store, session))
    }

    /// From now on only the owner sees what lies at or below `prefix`.
    ///
    /// # Errors
    /// As [`Session::init`].
    pub fn narrow_audience(&mut self, prefix: &str) -> Result<AudienceChange, Error> {
        self.call(|guest, store, session| guest.call_narrow_audience(store, session, prefix))
    }

    /// Takes such a prefix back.
    ///
    /// # Errors
    /// As [`Session::init`].
    pub fn widen_audience(&mut self, prefix: &str) -> Result<AudienceChange, Error> {
        self.call(|guest, store, session| guest.call_widen_audience(store, session, prefix))
    }

    /// Changes topics by the rules, all of the request or nothing. `request` is JSON (FORMAT.md, "Updates").
    ///
    /// # Errors
    /// As [`Session::init`].
    pub fn update(&mut self, request: &str, options: &UpdateOptions) -> Result<Updated, Error> {
        self.call(|guest, store, session| guest.call_update(store, session, request, options))
    }

    /// Puts topics that somebody has edited by hand in order, as far as that is safe, and makes the views anew.
    ///
    /// # Errors
    /// As [`Session::init`].
    pub fn repair(&mut self, dry_run: bool) -> Result<Updated, Error> {
        self.call(|guest, store, session| guest.call_repair(store, session, dry_run))
    }

    /// Notices that somebody has edited topics by hand: makes views anew, and tells what is wrong. Waits for nobody.
    ///
    /// # Errors
    /// As [`Session::init`].
    pub fn refresh(&mut self) -> Result<Refreshed, Error> {
        self.call(|guest, store, session| guest.call_refresh(store, session))
    }

    /// The view that every prompt holds; none if there is none.
    ///
    /// # Errors
    /// As [`Session::init`].
    pub fn core(&mut self) -> Result<Option<CoreView>, Error> {
        self.call(|guest, store, session| guest.call_core(store, session))
    }

    /// Looks words up.
    ///
    /// # Errors
    /// As [`Session::init`].
    pub fn search(&mut self, query: &Query) -> Result<Answer, Error> {
        let changes = self.look_for_changes();
        self.call(|guest, store, session| {
            note(&guest, store, session, &changes)?;
            guest.call_search(store, session, query)
        })
    }

    /// What a turn is told of memory, in a fence for its prompt. Memory that is off or broken is an error, one that is empty
    /// or has nothing to do with the turn an empty text.
    ///
    /// # Errors
    /// As [`Session::init`].
    pub fn recall(&mut self, query: &RecallQuery) -> Result<Recollection, Error> {
        let changes = self.look_for_changes();
        self.call(|guest, store, session| {
            note(&guest, store, session, &changes)?;
            guest.call_recall(store, session, query)
        })
    }

    /// Reads a file (its path) or a record (its id, or `path#anchor`) from line `from_line` on, at most `max_lines` (0:
    /// the setting `get.lines`).
    ///
    /// # Errors
    /// As [`Session::init`].
    pub fn get(&mut self, target: &str, from_line: Option<u64>, max_lines: u32) -> Result<Excerpt, Error> {
        self.call(|guest, store, session| guest.call_get(store, session, target, from_line, max_lines))
    }

    /// The part of a file under a heading.
    ///
    /// # Errors
    /// As [`Session::init`].
    pub fn get_section(&mut self, path: &str, heading: &str) -> Result<Excerpt, Error> {
        self.call(|guest, store, session| guest.call_get_section(store, session, path, heading))
    }

    /// A block of a topic, with the footnotes it cites.
    ///
    /// # Errors
    /// As [`Session::init`].
    pub fn get_block(&mut self, block: &str) -> Result<Excerpt, Error> {
        self.call(|guest, store, session| guest.call_get_block(store, session, block))
    }

    /// Lines that match.
    ///
    /// # Errors
    /// As [`Session::init`].
    pub fn grep(&mut self, query: &GrepQuery) -> Result<Matches, Error> {
        self.call(|guest, store, session| guest.call_grep(store, session, query))
    }

    /// Claims by the time of their evidence, from one day to another, at most `max` (0: the setting `timeline.entries`).
    ///
    /// # Errors
    /// As [`Session::init`].
    pub fn timeline(&mut self, from: Option<&str>, to: Option<&str>, max: u32) -> Result<TimelinePage, Error> {
        self.call(|guest, store, session| guest.call_timeline(store, session, from, to, max))
    }

    /// What a claim rests on, by its block's id.
    ///
    /// # Errors
    /// As [`Session::init`].
    pub fn why(&mut self, block: &str) -> Result<Account, Error> {
        self.call(|guest, store, session| guest.call_why(store, session, block))
    }

    /// Files below a prefix, in code-point order, at most `max` (0: the setting `browse.files`).
    ///
    /// # Errors
    /// As [`Session::init`].
    pub fn browse(&mut self, prefix: &str, cursor: Option<&str>, max: u32) -> Result<Listing, Error> {
        self.call(|guest, store, session| guest.call_browse(store, session, prefix, cursor, max))
    }

    /// Blocks of the topics below a prefix which `matching` is about, at most `max` (0: the setting `browse.blocks`).
    ///
    /// # Errors
    /// As [`Session::init`].
    pub fn structure(
        &mut self,
        prefix: &str,
        matching: &str,
        cursor: Option<&str>,
        max: u32,
    ) -> Result<StructurePage, Error> {
        self.call(|guest, store, session| guest.call_structure(store, session, prefix, matching, cursor, max))
    }

    /// Blocks that another program keeps references to, and a prompt of at most `max_chars` characters that shows them (0: the
    /// setting `references.chars`).
    ///
    /// # Errors
    /// As [`Session::init`].
    pub fn references(&mut self, references: &[BlockReference], max_chars: u32) -> Result<ReferencedBlocks, Error> {
        self.call(|guest, store, session| guest.call_references(store, session, references, max_chars))
    }

    /// Starts checking all files below a prefix (empty: everything).
    ///
    /// # Errors
    /// As [`Session::init`].
    pub fn verify(&mut self, prefix: &str) -> Result<Verification, Error> {
        let handle = self.call(|guest, store, session| guest.call_verify(store, session, prefix))?;
        self.underway(handle).map(Verification)
    }

    /// Bytes of linear memory that the component has now: it grows as calls need it and never shrinks, so that this is also
    /// the most that it had since its instance began. None while there is no instance.
    pub fn memory_bytes(&mut self) -> Option<u64> {
        self.live.as_mut().map(|live| live.store.data_mut().meter().memory())
    }

    /// Makes a call of the interface `turns` on the workspace, as [`Session::call`] makes one of `workspace`.
    pub(crate) fn call_turns<T>(
        &mut self,
        f: impl FnOnce(&turns::Guest, &mut Store<Host>, ResourceAny) -> wasmtime::Result<Result<T, types::Error>>,
    ) -> Result<T, Error> {
        let live = match self.live.take() {
            Some(live) => live,
            None => self.start()?,
        };
        let session = live.session;
        self.call_world(live, |world, store| f(world.recollex_memory_turns(), store, session))?.map_err(Error::from)
    }

    /// Makes such a call on something that an earlier one handed out.
    pub(crate) fn call_turns_on<T>(
        &mut self,
        underway: &Underway,
        f: impl FnOnce(&turns::Guest, &mut Store<Host>, ResourceAny) -> wasmtime::Result<Result<T, types::Error>>,
    ) -> Result<T, Error> {
        let live = underway.instance(self)?;
        self.call_world(live, |world, store| f(world.recollex_memory_turns(), store, underway.handle))?
            .map_err(Error::from)
    }

    /// The program's listener.
    pub(crate) fn observer(&self) -> Arc<dyn Observer> {
        Arc::clone(&self.options.observer)
    }

    /// What there is to say of changes before a search. The second search begins to watch.
    fn look_for_changes(&mut self) -> Changes {
        match &mut self.watched {
            Watched::By(watch) => return watch.changes().map_or(Changes::Anywhere, Changes::At),
            Watched::NotYet => self.watched = Watched::Next,
            Watched::Next => match self.medium.store.watch() {
                Some(mut watch) => {
                    // From here on changes are seen, so that the listing which this search makes is one to go on from.
                    let changes = watch.changes().map_or(Changes::Anywhere, Changes::At);
                    self.watched = Watched::By(watch);
                    return changes;
                }
                None => self.watched = Watched::Never,
            },
            Watched::Never => {}
        }
        Changes::Unsaid
    }

    /// Something of the component's that a call has just handed out.
    pub(crate) fn underway(&self, handle: ResourceAny) -> Result<Underway, Error> {
        // The call went well, so the instance is there.
        let live = self.live.as_ref().ok_or(Error::Gone)?;
        Ok(Underway { handle, dropped: Arc::clone(&live.dropped) })
    }

    /// Makes a call on the workspace, starting an instance if the last one has ended.
    fn call<T>(
        &mut self,
        f: impl FnOnce(GuestSession<'_>, &mut Store<Host>, ResourceAny) -> wasmtime::Result<Result<T, types::Error>>,
    ) -> Result<T, Error> {
        let live = match self.live.take() {
            Some(live) => live,
            None => self.start()?,
        };
        let session = live.session;
        self.call_in(live, |guest, store| f(guest.session(), store, session))?.map_err(Error::from)
    }

    /// Makes a call in this instance and puts it back only after it went well: whatever else happens, a panic of the
    /// host included, it is dropped, and with it everything that it held.
    fn call_in<T>(
        &mut self,
        live: Live,
        f: impl FnOnce(&workspace::Guest, &mut Store<Host>) -> wasmtime::Result<T>,
    ) -> Result<T, Error> {
        self.call_world(live, |world, store| f(world.recollex_memory_workspace(), store))
    }

    /// The same for any interface of the component's world.
    fn call_world<T>(
        &mut self,
        mut live: Live,
        f: impl FnOnce(&Memory, &mut Store<Host>) -> wasmtime::Result<T>,
    ) -> Result<T, Error> {
        let Live { store, world, dropped, .. } = &mut live;
        let dropped = std::mem::take(&mut *dropped.lock().unwrap_or_else(PoisonError::into_inner));
        let answer = call::call(self.runtime.ticker(), store, |store| {
            for handle in dropped {
                handle.resource_drop(&mut *store)?;
            }
            f(world, store)
        })?;
        self.live = Some(live);
        Ok(answer)
    }

    /// Starts an instance and opens the workspace in it.
    fn start(&self) -> Result<Live, Error> {
        let Medium { store, lock } = self.medium.clone();
        let OpenOptions { observer, clock, .. } = self.options.clone();
        let models = Arc::clone(self.runtime.models());
        let limits = self.runtime.limits().clone();
        let host = Host::new(store, lock, models, observer, clock, self.canceller.clone(), limits);
        let options = workspace::OpenOptions {
            tier: self.options.tier,
            principal: self.options.principal.clone(),
            time_zone: self.options.time_zone.clone(),
            settings: self.options.settings.clone(),
        };
        let mut store = call::store(self.runtime.engine(), host);
        let (world, session) = call::call(self.runtime.ticker(), &mut store, |store| {
            let world = self.runtime.memory().instantiate(&mut *store)?;
            let session = world.recollex_memory_workspace().session().call_open(store, &options)?;
            Ok((world, session))
        })?;
        Ok(Live { store, world, session: session?, dropped: Dropped::default() })
    }
}

/// Says what may have changed, right before a search.
fn note(
    guest: &GuestSession<'_>,
    store: &mut Store<Host>,
    session: ResourceAny,
    changes: &Changes,
) -> wasmtime::Result<()> {
    match changes {
        Changes::Unsaid => Ok(()),
        Changes::Anywhere => guest.call_note_changes(store, session, None),
        Changes::At(paths) => guest.call_note_changes(store, session, Some(paths)),
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session")
            .field("options", &self.options)
            .field("live", &self.live.is_some())
            .finish_non_exhaustive()
    }
}

impl Turn {
    /// A turn of which no more is known than who said what where. It is `pending`: evidence becomes trusted by the word
    /// of the runtime that saw it, which says so in [`trust`](Turn::trust).
    #[must_use]
    pub fn new(
        provider: impl Into<String>,
        thread: impl Into<String>,
        id: impl Into<String>,
        role: impl Into<String>,
        text: impl Into<String>,
    ) -> Self {
        Self {
            provider: provider.into(),
            thread: thread.into(),
            id: id.into(),
            ordinal: 0,
            role: role.into(),
            text: text.into(),
            time: None,
            speaker_id: None,
            speaker_display: None,
            speaker_kind: None,
            principal: None,
            tier: None,
            trust: "pending".to_owned(),
        }
    }
}

impl Query {
    /// A search for these words everywhere, for at most `top_k` hits.
    #[must_use]
    pub fn new(text: impl Into<String>, top_k: u32) -> Self {
        Self {
            text: text.into(),
            top_k,
            scope: Scope::Any,
            speaker: None,
            path_prefix: None,
            from: None,
            to: None,
            reader: None,
            explain: false,
            method: Method::Words,
        }
    }
}

/// Something in an instance that outlives the call which made it.
pub(crate) struct Underway {
    pub(crate) handle: ResourceAny,
    dropped: Dropped,
}

impl Underway {
    /// Whether both belong to one instance.
    pub(crate) fn is_beside(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.dropped, &other.dropped)
    }

    /// Takes the instance that this belongs to, if it is still this session's.
    fn instance(&self, session: &mut Session) -> Result<Live, Error> {
        session.live.take_if(|live| Arc::ptr_eq(&live.dropped, &self.dropped)).ok_or(Error::Gone)
    }
}

impl Drop for Underway {
    fn drop(&mut self) {
        self.dropped.lock().unwrap_or_else(PoisonError::into_inner).push(self.handle);
    }
}

/// A verification under way. It belongs to the session that began it and ends with that session's instance: after a
/// trap or a limit its calls answer [`Error::Gone`].
pub struct Verification(Underway);

impl Verification {
    /// Reads on for about `bytes` bytes and returns what it found; none: everything was read.
    ///
    /// # Errors
    /// As [`Session::init`], and [`Error::Gone`].
    pub fn step(&mut self, session: &mut Session, bytes: u64) -> Result<Option<Vec<Finding>>, Error> {
        let live = self.0.instance(session)?;
        session
            .call_in(live, |guest, store| guest.verification().call_step(store, self.0.handle, bytes))?
            .map_err(Error::from)
    }

    /// The outcome so far; final once [`Verification::step`] answered none.
    ///
    /// # Errors
    /// [`Error::Limit`], [`Error::Trap`] and [`Error::Gone`].
    pub fn report(&mut self, session: &mut Session) -> Result<Report, Error> {
        let live = self.0.instance(session)?;
        session.call_in(live, |guest, store| guest.verification().call_report(store, self.0.handle))
    }
}

impl fmt::Debug for Verification {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Verification").finish_non_exhaustive()
    }
}

/// An import under way. It belongs to its session's instance as a [`Verification`] does. What it answered is kept.
pub struct Importing(Underway);

impl Importing {
    /// Hands over the next piece of `file`; `last` closes it. Returns the conversations that were kept with it: those that
    /// are complete wait until they are enough for a commit, and a call makes one. If it returns something, there may be more:
    /// an empty piece of the same file goes on, or [`Importing::keep`].
    ///
    /// # Errors
    /// As [`Session::init`], and [`Error::Gone`]. After an error the import takes nothing more; beginning again from the
    /// start repeats nothing.
    pub fn push_text(
        &mut self,
        session: &mut Session,
        file: &str,
        text: &str,
        last: bool,
    ) -> Result<Vec<ImportedConversation>, Error> {
        let live = self.0.instance(session)?;
        session
            .call_in(live, |guest, store| guest.importing().call_push_text(store, self.0.handle, file, text, last))?
            .map_err(Error::from)
    }

    /// The same for bytes that may not be text.
    ///
    /// # Errors
    /// As [`Importing::push_text`].
    pub fn push_bytes(
        &mut self,
        session: &mut Session,
        file: &str,
        data: &[u8],
        last: bool,
    ) -> Result<Vec<ImportedConversation>, Error> {
        let live = self.0.instance(session)?;
        session
            .call_in(live, |guest, store| guest.importing().call_push_bytes(store, self.0.handle, file, data, last))?
            .map_err(Error::from)
    }

    /// Keeps now what is complete and waits, by one commit: to be called until it answers nothing. For whoever stops before the
    /// end, and between files.
    ///
    /// # Errors
    /// As [`Importing::push_text`].
    pub fn keep(&mut self, session: &mut Session) -> Result<Vec<ImportedConversation>, Error> {
        let live = self.0.instance(session)?;
        session.call_in(live, |guest, store| guest.importing().call_keep(store, self.0.handle))?.map_err(Error::from)
    }

    /// There is no more: what was still held back is kept now. To be called until it answers nothing: each call makes one
    /// commit, and an error may come behind what was kept.
    ///
    /// # Errors
    /// As [`Importing::push_text`].
    pub fn finish(&mut self, session: &mut Session) -> Result<Vec<ImportedConversation>, Error> {
        let live = self.0.instance(session)?;
        session.call_in(live, |guest, store| guest.importing().call_finish(store, self.0.handle))?.map_err(Error::from)
    }
}

impl fmt::Debug for Importing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Importing").finish_non_exhaustive()
    }
}
