//! What the component imports, as this host gives it.
//!
//! Each `impl` below is one interface of `wit/`, in the order of `wit/worlds.wit`. They pass on: the store and the lock
//! to their traits, requests to a model to the providers, log and time to the session's observer and clock, randomness to the system. What is decided here is
//! only how much of each a component may have. The errors that the contract names are answers; an `Err` of wasmtime's
//! stops the component.

mod convert;

use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use wasmtime::component::{Resource, ResourceTable};

use crate::bindings::memory::recollex::memory as wit;
use crate::bindings::memory::wasi;
use crate::call::Metered;
use crate::cancel::Canceller;
use crate::clock::Clock;
use crate::limits::{Limits, Meter, RANDOM_BYTES};
use crate::lock::{Lock, LockError};
use crate::model::{self, Attempt, Models};
use crate::observer::Observer;
use crate::store::{self, Guard, Store};
use crate::tokens;

/// Bytes at most that one read of a file answers, whatever is asked for: the answer is the host's memory first.
const READ_BYTES: u32 = 8 << 20;
/// Entries at most in one page of a listing.
const PAGE_ENTRIES: u32 = 10_000;
/// Troubles at most that a component is told: the first ones are what a person reads.
const TROUBLES: usize = 1000;
/// What a log line, event or step of progress counts for beside its text, so that empty ones count too.
const LINE: usize = 64;
/// So much of the component's last error line is kept for the message of a trap.
const SAID_BYTES: usize = 4096;
/// Milliseconds after which a wait for the lock looks whether the call was cancelled.
const LOCK_WAIT_PART_MS: u32 = 200;
/// Locks that one session can hold at a time. The lock is not re-entrant, so one is all that it gets.
const GUARDS: usize = 4;

/// The lock as a component holds it. Its end, by the component or with the store, gives the lock back.
#[derive(Debug)]
pub struct HeldGuard(Box<dyn Guard>);

/// What stands behind the imports of one session's component.
pub(crate) struct Host {
    store: Arc<dyn Store>,
    lock: Arc<dyn Lock>,
    models: Arc<dyn Models>,
    observer: Arc<dyn Observer>,
    clock: Arc<dyn Clock>,
    guards: ResourceTable,
    meter: Meter,
}

impl Host {
    /// `canceller` may end its calls.
    pub fn new(
        store: Arc<dyn Store>,
        lock: Arc<dyn Lock>,
        models: Arc<dyn Models>,
        observer: Arc<dyn Observer>,
        clock: Arc<dyn Clock>,
        canceller: Canceller,
        limits: Limits,
    ) -> Self {
        let mut guards = ResourceTable::new();
        guards.set_max_capacity(GUARDS);
        Self { store, lock, models, observer, clock, guards, meter: Meter::new(limits).cancelled_by(canceller) }
    }
}

impl Metered for Host {
    fn meter(&mut self) -> &mut Meter {
        &mut self.meter
    }
}

impl wasi::clocks::wall_clock::Host for Host {
    fn now(&mut self) -> wasmtime::Result<wasi::clocks::wall_clock::Datetime> {
        self.meter.count_call()?;
        // A clock before 1970 is a clock that is not set.
        let now = self.clock.now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        Ok(wasi::clocks::wall_clock::Datetime { seconds: now.as_secs(), nanoseconds: now.subsec_nanos() })
    }
}

impl wasi::random::random::Host for Host {
    fn get_random_bytes(&mut self, len: u64) -> wasmtime::Result<Vec<u8>> {
        self.meter.count_call()?;
        if len > RANDOM_BYTES {
            return Err(Limits::random_reached().into());
        }
        let mut bytes = vec![0; usize::try_from(len)?];
        getrandom::fill(&mut bytes)?;
        Ok(bytes)
    }
}

impl wit::lock::Host for Host {
    fn acquire(
        &mut self,
        wait_ms: u32,
        purpose: String,
    ) -> wasmtime::Result<Result<Resource<HeldGuard>, wit::lock::LockError>> {
        self.meter.count_call()?;
        // A wait as long as the call may last would end in the call's own limit. "Locked" says more, so a little of the
        // call's time is kept for saying it.
        let left = self.meter.time_left();
        let longest = left.saturating_sub((left / 10).min(Duration::from_secs(1))).as_millis();
        let mut wait_ms = wait_ms.min(u32::try_from(longest).unwrap_or(u32::MAX));
        // In parts, so that whoever cancels the call does not wait for the end of this.
        loop {
            let part = wait_ms.min(LOCK_WAIT_PART_MS);
            let begun = Instant::now();
            match self.lock.acquire(part, &purpose) {
                Ok(guard) => {
                    // A writer that died may have left a commit that only readers here see. Whoever has the lock completes
                    // it, also if it then finds nothing to change. Should that fail, its commit will say so.
                    let _ = self.store.complete(&*guard);
                    // It waited for this, and may be wanted no more.
                    self.meter.check_cancelled()?;
                    return Ok(Ok(self.guards.push(HeldGuard(guard))?));
                }
                // A lock that answers before its time knows that waiting is of no use.
                Err(LockError::Held(_)) if part < wait_ms && begun.elapsed() >= Duration::from_millis(part.into()) => {
                    self.meter.check_time()?;
                    wait_ms -= part;
                }
                Err(error) => return Ok(Err(error.into())),
            }
        }
    }

    fn current(&mut self) -> wasmtime::Result<Result<wit::lock::LockState, wit::lock::LockError>> {
        self.meter.count_call()?;
        Ok(self.lock.current().map(Into::into).map_err(Into::into))
    }
}

impl wit::lock::HostGuard for Host {
    fn drop(&mut self, guard: Resource<HeldGuard>) -> wasmtime::Result<()> {
        self.guards.delete(guard)?;
        Ok(())
    }
}

impl wit::store::Host for Host {
    fn generation(&mut self) -> wasmtime::Result<Result<u64, wit::store::StoreError>> {
        self.meter.count_call()?;
        Ok(self.store.generation().map_err(Into::into))
    }

    fn entries(
        &mut self,
        area: wit::store::Area,
        prefix: String,
        cursor: Option<String>,
        max: u32,
    ) -> wasmtime::Result<Result<wit::store::Page, wit::store::StoreError>> {
        self.meter.count_call()?;
        let page = self.store.entries(area.into(), &prefix, cursor.as_deref(), max.min(PAGE_ENTRIES));
        Ok(page.map(Into::into).map_err(Into::into))
    }

    fn stat(
        &mut self,
        area: wit::store::Area,
        path: String,
    ) -> wasmtime::Result<Result<wit::store::Entry, wit::store::StoreError>> {
        self.meter.count_call()?;
        Ok(self.store.stat(area.into(), &path).map(Into::into).map_err(Into::into))
    }

    fn read_text(
        &mut self,
        area: wit::store::Area,
        path: String,
        at: Option<wit::store::Stamp>,
        offset: u64,
        max: u32,
    ) -> wasmtime::Result<Result<wit::store::TextChunk, wit::store::StoreError>> {
        self.meter.count_call()?;
        let at = at.map(Into::into);
        let chunk = self.store.read_text(area.into(), &path, at.as_ref(), offset, max.min(READ_BYTES));
        Ok(chunk.map(Into::into).map_err(Into::into))
    }

    fn read_bytes(
        &mut self,
        area: wit::store::Area,
        path: String,
        at: Option<wit::store::Stamp>,
        offset: u64,
        max: u32,
    ) -> wasmtime::Result<Result<wit::store::ByteChunk, wit::store::StoreError>> {
        self.meter.count_call()?;
        let at = at.map(Into::into);
        let chunk = self.store.read_bytes(area.into(), &path, at.as_ref(), offset, max.min(READ_BYTES));
        Ok(chunk.map(Into::into).map_err(Into::into))
    }

    fn commit(
        &mut self,
        guard: Resource<HeldGuard>,
        base: u64,
        changes: Vec<wit::store::Change>,
        about: wit::store::About,
    ) -> wasmtime::Result<Result<wit::store::Committed, wit::store::CommitError>> {
        self.meter.count_call()?;
        let changes: Vec<store::Change> = changes.into_iter().map(Into::into).collect();
        // All or nothing begins here: the call is stopped before the commit or after it.
        self.meter.check_time()?;
        self.meter.charge(changes.iter().map(size).sum())?;
        self.meter.charge(about.verb.len().saturating_add(about.note.len()))?;
        let guard = self.guards.get(&guard)?;
        Ok(self.store.commit(&*guard.0, base, &changes, &about.into()).map(Into::into).map_err(Into::into))
    }

    fn troubles(&mut self) -> wasmtime::Result<Result<Vec<wit::store::Trouble>, wit::store::StoreError>> {
        self.meter.count_call()?;
        Ok(match self.store.troubles() {
            Ok(troubles) => Ok(troubles.into_iter().take(TROUBLES).map(Into::into).collect()),
            Err(error) => Err(error.into()),
        })
    }

    fn put_cache(
        &mut self,
        name: String,
        data: Vec<u8>,
    ) -> wasmtime::Result<Result<wit::store::Stamp, wit::store::StoreError>> {
        self.meter.count_call()?;
        // The cache can be done without: that there is no room for it must not undo what was committed.
        if let Err(reached) = self.meter.charge(name.len().saturating_add(data.len())) {
            return Ok(Err(wit::store::StoreError::Limit((reached.name.to_owned(), reached.allowed))));
        }
        Ok(self.store.put_cache(&name, &data).map(Into::into).map_err(Into::into))
    }

    fn append_cache(
        &mut self,
        name: String,
        length: u64,
        data: Vec<u8>,
    ) -> wasmtime::Result<Result<wit::store::Stamp, wit::store::StoreError>> {
        self.meter.count_call()?;
        if let Err(reached) = self.meter.charge(name.len().saturating_add(data.len())) {
            return Ok(Err(wit::store::StoreError::Limit((reached.name.to_owned(), reached.allowed))));
        }
        Ok(self.store.append_cache(&name, length, &data).map(Into::into).map_err(Into::into))
    }

    fn drop_cache(&mut self, name: String) -> wasmtime::Result<Result<(), wit::store::StoreError>> {
        self.meter.count_call()?;
        Ok(self.store.drop_cache(&name).map_err(Into::into))
    }
}

/// What a change counts for: the bytes that it brings into the workspace.
fn size(change: &store::Change) -> usize {
    let edit = match &change.edit {
        store::Edit::Put(text) | store::Edit::Append { text, .. } | store::Edit::MoveTo(text) => text.len(),
        store::Edit::Splice(splices) => splices.iter().map(|splice| splice.insert.len()).sum(),
        store::Edit::Delete | store::Edit::Keep => 0,
    };
    change.path.len().saturating_add(edit)
}

impl Host {
    /// Asks a model. What it takes is not taken from the call's own time, and a call that is cancelled meanwhile ends.
    fn ask<T>(
        &mut self,
        deadline_ms: u32,
        ask: impl FnOnce(&dyn Models, &Attempt<'_>) -> Result<T, model::ModelError>,
    ) -> wasmtime::Result<Result<T, model::ModelError>> {
        self.meter.check_time()?;
        let time = self.meter.model_time(Duration::from_millis(deadline_ms.into()))?;
        let begun = Instant::now();
        let is_cancelled = || self.meter.check_cancelled().is_err();
        let outcome = ask(&*self.models, &Attempt::new(time, &is_cancelled, &*self.observer));
        self.meter.spent_on_model(begun.elapsed());
        self.meter.check_cancelled()?;
        Ok(outcome)
    }
}

/// What a request counts for: the bytes that leave with it.
fn request_size(request: &model::Request) -> usize {
    let part = |part: &model::Part| match part {
        model::Part::Text(text) | model::Part::Opaque(text) => text.len(),
        model::Part::Call(call) => call.id.len() + call.name.len() + call.arguments.len(),
        model::Part::Outcome(outcome) => outcome.id.len() + outcome.text.len(),
    };
    let parts = request.messages.iter().flat_map(|message| &message.parts);
    let tools = request.tools.iter().map(|tool| tool.name.len() + tool.description.len() + tool.schema.len());
    parts.map(|one| part(one).saturating_add(LINE)).chain(tools).fold(LINE, usize::saturating_add)
}

impl wit::model::Host for Host {
    fn describe(&mut self, purpose: String) -> wasmtime::Result<wit::model::ModelInfo> {
        self.meter.count_call()?;
        // Why there is none, a request is told.
        Ok(self.models.provider(&purpose).ok().map(|provider| provider.describe()).into())
    }

    fn complete(
        &mut self,
        request: wit::model::Request,
    ) -> wasmtime::Result<Result<wit::model::Reply, wit::model::ModelError>> {
        self.meter.count_call()?;
        let deadline_ms = request.deadline_ms;
        let request = model::Request::from(request);
        self.meter.charge(request_size(&request))?;
        let reply = self.ask(deadline_ms, |models, attempt| model::complete(models, &request, attempt))?;
        Ok(reply.map(Into::into).map_err(Into::into))
    }

    fn count_tokens(&mut self, vocabulary: String, texts: Vec<String>) -> wasmtime::Result<wit::model::TokenCounts> {
        self.meter.count_call()?;
        let counted = tokens::count(&vocabulary, &texts);
        let exact = counted.is_some();
        let tokens = counted.unwrap_or_else(|| texts.iter().map(|text| tokens::at_most(text)).collect());
        Ok(wit::model::TokenCounts { tokens, exact })
    }

    fn embed(
        &mut self,
        texts: Vec<String>,
        role: wit::model::EmbeddingRole,
        deadline_ms: u32,
    ) -> wasmtime::Result<Result<wit::model::Embeddings, wit::model::ModelError>> {
        self.meter.count_call()?;
        self.meter.charge(texts.iter().map(String::len).sum())?;
        let vectors = self.ask(deadline_ms, |models, attempt| model::embed(models, &texts, role.into(), attempt))?;
        Ok(vectors.map(Into::into).map_err(Into::into))
    }
}

impl wit::log::Host for Host {
    fn write(&mut self, level: wit::log::Level, mut message: String) -> wasmtime::Result<()> {
        self.meter.count_call()?;
        self.meter.charge(message.len().saturating_add(LINE))?;
        self.observer.log(level.into(), &message);
        if level == wit::log::Level::Error {
            message.truncate(message.floor_char_boundary(SAID_BYTES));
            self.meter.said = Some(message);
        }
        Ok(())
    }

    fn event(&mut self, name: String, fields: Vec<(String, String)>) -> wasmtime::Result<()> {
        self.meter.count_call()?;
        let text: usize = fields.iter().map(|(name, value)| name.len() + value.len()).sum();
        self.meter.charge(name.len().saturating_add(text).saturating_add(LINE))?;
        self.observer.event(&name, &fields);
        Ok(())
    }

    fn progress(&mut self, task: String, done: u64, total: u64, unit: String) -> wasmtime::Result<()> {
        self.meter.count_call()?;
        self.meter.charge(task.len().saturating_add(unit.len()).saturating_add(LINE))?;
        self.observer.progress(&task, done, total, &unit);
        Ok(())
    }
}

/// Types only.
impl wit::types::Host for Host {}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

    use super::*;
    use crate::limits::Reached;
    use crate::lock::Holder;
    use crate::observer::Level;
    use crate::store::{
        About, Area, ByteChunk, Change, CommitError, Committed, Entry, FileId, Page, Stamp, StoreError, TextChunk,
        Trouble,
    };
    use wit::lock::{Host as _, HostGuard as _};
    use wit::log::Host as _;
    use wit::model::Host as _;
    use wit::store::Host as _;

    /// A medium that keeps nothing and remembers what it was asked.
    #[derive(Default)]
    struct Probe {
        guards: Arc<AtomicUsize>,
        waits: Mutex<Vec<u32>>,
        asked: Mutex<Vec<u32>>,
        commits: AtomicUsize,
        abouts: Mutex<Vec<About>>,
        is_lost: AtomicBool,
        lines: Mutex<Vec<String>>,
    }

    #[derive(Debug)]
    struct ProbeGuard(Arc<AtomicUsize>);

    impl Drop for ProbeGuard {
        fn drop(&mut self) {
            self.0.fetch_sub(1, Ordering::Relaxed);
        }
    }

    impl Guard for ProbeGuard {
        fn file(&self) -> Option<FileId> {
            None
        }
    }

    impl Lock for Probe {
        fn acquire(&self, wait_ms: u32, _purpose: &str) -> Result<Box<dyn Guard>, LockError> {
            self.waits.lock().unwrap().push(wait_ms);
            if self.guards.fetch_add(1, Ordering::Relaxed) > 0 {
                self.guards.fetch_sub(1, Ordering::Relaxed);
                std::thread::sleep(Duration::from_millis(wait_ms.into()));
                return Err(LockError::Held(None));
            }
            Ok(Box::new(ProbeGuard(Arc::clone(&self.guards))))
        }

        fn current(&self) -> Result<Option<Holder>, LockError> {
            let is_held = self.guards.load(Ordering::Relaxed) > 0;
            Ok(is_held.then_some(Holder { process: Some(7), purpose: None }))
        }
    }

    impl Store for Probe {
        fn generation(&self) -> Result<u64, StoreError> {
            Ok(7)
        }

        fn entries(&self, _: Area, _: &str, _: Option<&str>, max: u32) -> Result<Page, StoreError> {
            self.asked.lock().unwrap().push(max);
            Ok(Page { entries: Vec::new(), next: None, generation: 7 })
        }

        fn stat(&self, _: Area, _: &str) -> Result<Entry, StoreError> {
            Err(StoreError::NotFound)
        }

        fn read_text(&self, _: Area, _: &str, _: Option<&Stamp>, _: u64, max: u32) -> Result<TextChunk, StoreError> {
            self.asked.lock().unwrap().push(max);
            Err(StoreError::NotFound)
        }

        fn read_bytes(&self, _: Area, _: &str, _: Option<&Stamp>, _: u64, max: u32) -> Result<ByteChunk, StoreError> {
            self.asked.lock().unwrap().push(max);
            Err(StoreError::NotFound)
        }

        fn commit(&self, _: &dyn Guard, _: u64, _: &[Change], about: &About) -> Result<Committed, CommitError> {
            if self.is_lost.load(Ordering::Relaxed) {
                return Err(CommitError::LockLost);
            }
            self.commits.fetch_add(1, Ordering::Relaxed);
            self.abouts.lock().unwrap().push(about.clone());
            Ok(Committed { generation: 8, stamps: Vec::new() })
        }

        fn troubles(&self) -> Result<Vec<Trouble>, StoreError> {
            let trouble = Trouble { code: "odd", path: None, message: "it is odd".to_owned() };
            Ok(vec![trouble; TROUBLES + 1])
        }

        fn put_cache(&self, _: &str, _: &[u8]) -> Result<Stamp, StoreError> {
            Err(StoreError::Full)
        }

        fn append_cache(&self, _: &str, _: u64, _: &[u8]) -> Result<Stamp, StoreError> {
            Err(StoreError::Full)
        }

        fn drop_cache(&self, _: &str) -> Result<(), StoreError> {
            Ok(())
        }
    }

    impl Observer for Probe {
        fn log(&self, level: Level, message: &str) {
            self.lines.lock().unwrap().push(format!("{level}: {message}"));
        }
    }

    /// A moment at which the clock stands.
    struct At;

    impl Clock for At {
        fn now(&self) -> SystemTime {
            SystemTime::UNIX_EPOCH + Duration::from_millis(1_800_000_000_500)
        }
    }

    fn host(limits: Limits) -> (Arc<Probe>, Host) {
        let probe = Arc::new(Probe::default());
        let models = Arc::new(model::NoModels);
        let mut host =
            Host::new(probe.clone(), probe.clone(), models, probe.clone(), Arc::new(At), Canceller::default(), limits);
        let _ = host.meter.begin();
        (probe, host)
    }

    fn put(text: &str) -> wit::store::Change {
        wit::store::Change {
            area: wit::store::Area::Tree,
            path: "a".to_owned(),
            expect: wit::store::Expect::Any,
            edit: wit::store::Edit::Put(text.to_owned()),
        }
    }

    fn about() -> wit::store::About {
        wit::store::About { verb: String::new(), note: String::new(), erases: false }
    }

    #[test]
    fn what_a_commit_is_comes_to_the_store_cut_to_a_line() {
        let (probe, mut host) = host(Limits::default());
        let guard = host.acquire(0, String::new()).expect("no trap").expect("a guard");
        let verb = "\u{e9}".repeat(20);
        let about = wit::store::About { verb, note: format!("{}\nmore", "x".repeat(255)), erases: true };
        let committed = host.commit(Resource::new_borrow(guard.rep()), 7, Vec::new(), about).expect("no trap");
        assert_eq!(committed.map(|committed| committed.generation), Ok(8));
        let expected = About::new(&"\u{e9}".repeat(16), &"x".repeat(255)).erasing();
        assert_eq!(*probe.abouts.lock().unwrap(), [expected]);

        probe.is_lost.store(true, Ordering::Relaxed);
        let refused = host.commit(Resource::new_borrow(guard.rep()), 7, Vec::new(), self::about()).expect("no trap");
        assert!(matches!(refused, Err(wit::store::CommitError::LockLost)), "{refused:?}");
    }

    #[test]
    fn whether_the_lock_is_held_is_said_beside_who_holds_it() {
        let (_, mut host) = host(Limits::default());
        let free = wit::lock::LockState { held: false, holder: None };
        assert_eq!(host.current().expect("no trap"), Ok(free));
        let _guard = host.acquire(0, String::new()).expect("no trap").expect("a guard");
        let holder = wit::lock::Holder { process: Some(7), purpose: None };
        let held = wit::lock::LockState { held: true, holder: Some(holder) };
        assert_eq!(host.current().expect("no trap"), Ok(held));
    }

    #[test]
    fn troubles_come_in_a_bounded_number() {
        let (_, mut host) = host(Limits::default());
        let troubles = host.troubles().expect("no trap").expect("troubles");
        assert_eq!((troubles.len(), &*troubles[0].code, &troubles[0].path), (TROUBLES, "odd", &None));
    }

    #[test]
    fn a_host_without_models_says_so() {
        let (_, mut host) = host(Limits::default());
        for purpose in ["writer", "embed", ""] {
            let info = host.describe(purpose.to_owned()).expect("no trap");
            assert_eq!((info.configured, info.model, info.tools, info.dimensions), (false, None, false, None));
        }
        let error = host.embed(Vec::new(), wit::model::EmbeddingRole::Query, 0).expect("no trap").expect_err("none");
        assert_eq!((error.kind, error.retry_after_ms), (wit::model::ModelErrorKind::Unconfigured, None));
    }

    #[test]
    fn the_end_of_the_host_gives_the_lock_back() {
        let (probe, mut host) = host(Limits::default());
        let guard = host.acquire(0, "test".to_owned()).expect("no trap").expect("a guard");
        assert_eq!(probe.guards.load(Ordering::Relaxed), 1);
        assert!(matches!(host.acquire(0, String::new()), Ok(Err(wit::lock::LockError::Held(None)))));
        host.drop(guard).expect("no trap");
        assert_eq!(probe.guards.load(Ordering::Relaxed), 0, "dropped by the component");

        let _kept = host.acquire(0, String::new()).expect("no trap").expect("a guard");
        assert_eq!(probe.guards.load(Ordering::Relaxed), 1);
        drop(host);
        assert_eq!(probe.guards.load(Ordering::Relaxed), 0, "dropped with the host");
    }

    #[test]
    fn a_wait_for_the_lock_ends_before_the_call_does() {
        let (probe, mut host) = host(Limits { deadline: Duration::from_secs(2), ..Limits::default() });
        let _held = host.acquire(0, String::new());
        for (wait, most) in [(u32::MAX, 1800), (100, 100), (LOCK_WAIT_PART_MS * 2 + 1, 401)] {
            probe.waits.lock().unwrap().clear();
            let _ = host.meter.begin();
            assert!(matches!(host.acquire(wait, String::new()), Ok(Err(wit::lock::LockError::Held(_)))));
            let waits = probe.waits.lock().unwrap().clone();
            let waited: u32 = waits.iter().sum();
            assert!(waited <= most && waited >= most / 2, "{waits:?}");
            assert!(waits.iter().all(|part| *part <= LOCK_WAIT_PART_MS), "{waits:?}");
        }
    }

    #[test]
    fn a_commit_counts_as_output_before_it_is_made() {
        let (probe, mut host) = host(Limits { output_bytes: 100, ..Limits::default() });
        let commit = |host: &mut Host, text: &str| {
            let guard = host.acquire(0, String::new()).expect("no trap").expect("a guard");
            let borrowed = Resource::new_borrow(guard.rep());
            let outcome = host.commit(borrowed, 7, vec![put(text)], about());
            host.drop(guard).expect("no trap");
            outcome
        };
        // One byte is the path.
        assert!(commit(&mut host, &"x".repeat(60)).is_ok());
        let error = commit(&mut host, &"x".repeat(60)).expect_err("a trap");
        let reached = error.downcast_ref::<Reached>().expect("a limit");
        assert_eq!((reached.name, reached.allowed), ("output", 100));
        assert_eq!(probe.commits.load(Ordering::Relaxed), 1);
        // The next call has the whole again.
        let _ = host.meter.begin();
        assert!(commit(&mut host, &"x".repeat(99)).is_ok());
    }

    #[test]
    fn a_commit_needs_a_guard_that_lives() {
        let (probe, mut host) = host(Limits::default());
        let guard = host.acquire(0, String::new()).expect("no trap").expect("a guard");
        let borrowed = Resource::new_borrow(guard.rep());
        host.drop(guard).expect("no trap");
        assert!(host.commit(borrowed, 7, Vec::new(), about()).is_err());
        assert_eq!(probe.commits.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn a_commit_after_the_deadline_is_not_begun() {
        let (probe, mut host) = host(Limits { deadline: Duration::ZERO, ..Limits::default() });
        let guard = host.acquire(0, String::new()).expect("no trap").expect("a guard");
        assert!(host.commit(Resource::new_borrow(guard.rep()), 7, vec![put("")], about()).is_err());
        assert_eq!(probe.commits.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn reads_are_of_a_bounded_size() {
        let (probe, mut host) = host(Limits::default());
        let area = wit::store::Area::Tree;
        let _ = host.read_text(area, String::new(), None, 0, u32::MAX);
        let _ = host.read_bytes(area, String::new(), None, 0, 17);
        let _ = host.entries(area, String::new(), None, u32::MAX);
        let _ = host.entries(area, String::new(), None, 0);
        assert_eq!(*probe.asked.lock().unwrap(), [READ_BYTES, 17, PAGE_ENTRIES, 0]);
    }

    #[test]
    fn log_lines_are_passed_on_and_the_last_error_kept() {
        let (probe, mut host) = host(Limits { output_bytes: 1 << 20, ..Limits::default() });
        host.write(wit::log::Level::Error, "first".to_owned()).expect("no trap");
        host.write(wit::log::Level::Error, "\u{20ac}".repeat(SAID_BYTES)).expect("no trap");
        host.write(wit::log::Level::Info, "later".to_owned()).expect("no trap");
        let said = host.meter.said.clone().expect("the last error");
        assert!(said.len() <= SAID_BYTES && said.len() > SAID_BYTES - 3, "{}", said.len());
        let lines = probe.lines.lock().unwrap().clone();
        assert_eq!((lines.len(), &*lines[0], &*lines[2]), (3, "error: first", "info: later"));
        let _ = host.meter.begin();
        assert_eq!(host.meter.said, None, "of this call only");
    }

    #[test]
    fn empty_log_lines_come_to_an_end_too() {
        let (_, mut host) = host(Limits { output_bytes: 10 * LINE as u64, ..Limits::default() });
        let written = (0..100).take_while(|_| host.write(wit::log::Level::Debug, String::new()).is_ok()).count();
        assert_eq!(written, 10);
    }

    #[test]
    fn time_is_what_the_clock_says() {
        use wasi::clocks::wall_clock::Host as _;
        let (_, mut host) = host(Limits::default());
        let now = host.now().expect("no trap");
        assert_eq!((now.seconds, now.nanoseconds), (1_800_000_000, 500_000_000));
        host.clock = Arc::new(SystemTime::UNIX_EPOCH - Duration::from_secs(1));
        assert_eq!(host.now().expect("no trap").seconds, 0);
    }

    #[test]
    fn randomness_is_random_and_limited() {
        use wasi::random::random::Host as _;
        let (_, mut host) = host(Limits::default());
        let first = host.get_random_bytes(32).expect("bytes");
        assert_eq!(first.len(), 32);
        assert_ne!(first, host.get_random_bytes(32).expect("bytes"));
        let error = host.get_random_bytes(RANDOM_BYTES + 1).expect_err("a trap");
        assert_eq!(error.downcast_ref::<Reached>().map(|reached| reached.name), Some("random"));
    }

    #[test]
    fn tokens_are_never_counted_too_low() {
        let (_, mut host) = host(Limits::default());
        let texts = || vec![String::new(), "a\u{20ac}".to_owned()];
        let counts = host.count_tokens("unknown_base".to_owned(), texts()).expect("no trap");
        assert_eq!((counts.tokens, counts.exact), (vec![0, 4], false));
        let counts = host.count_tokens("o200k_base".to_owned(), texts()).expect("no trap");
        assert_eq!(counts.exact, cfg!(feature = "tokens"));
        assert!(counts.tokens[0] == 0 && counts.tokens[1] <= 4, "{:?}", counts.tokens);
    }

    fn a_request(deadline_ms: u32) -> wit::model::Request {
        let text = wit::model::Part::Text("Write.".to_owned());
        wit::model::Request {
            purpose: "writer".to_owned(),
            model: None,
            messages: vec![wit::model::Message { author: wit::model::Author::User, parts: vec![text] }],
            tools: Vec::new(),
            must_call: false,
            max_output: 100,
            deadline_ms,
        }
    }

    #[test]
    fn without_a_model_everything_says_so() {
        let (_, mut host) = host(Limits::default());
        assert!(!host.describe("writer".to_owned()).expect("no trap").configured);
        let error = host.complete(a_request(1000)).expect("no trap").expect_err("no model");
        assert_eq!(error.kind, wit::model::ModelErrorKind::Unconfigured);
        let role = wit::model::EmbeddingRole::Query;
        let error = host.embed(vec!["a".to_owned()], role, 1000).expect("no trap").expect_err("no model");
        assert_eq!((error.kind, error.retryable), (wit::model::ModelErrorKind::Unconfigured, false));
    }

    /// A model that is a program of this many seconds, for the writer.
    fn with_model(seconds: &str, limits: Limits) -> Host {
        let reply = r#"{"reply":{"parts":[{"text":"well"}],"stop":"done","model":"m"}}"#;
        let script = format!("sleep {seconds}; echo '{reply}'");
        let writer = Arc::new(model::Command::new(["/bin/sh", "-c", &script]));
        let (_, mut host) = host(limits);
        host.models = Arc::new(model::Roles { writer: Some(writer), ..model::Roles::default() });
        host
    }

    #[test]
    fn what_a_model_takes_is_not_the_calls_own_time() {
        let limits = Limits { deadline: Duration::from_secs(20), ..Limits::default() };
        let mut host = with_model("1", limits);
        assert!(host.describe("observer".to_owned()).expect("no trap").configured);
        let before = host.meter.time_left();
        let reply = host.complete(a_request(60_000)).expect("no trap").expect("a reply");
        assert_eq!((reply.stop, &*reply.model), (wit::model::StopReason::Done, "m"));
        let lost = before - host.meter.time_left();
        assert!(lost < Duration::from_millis(900), "{lost:?}");
    }

    #[test]
    fn all_that_models_take_in_a_call_is_bounded() {
        let mut host = with_model("30", Limits { model_time: Duration::from_millis(300), ..Limits::default() });
        let error = host.complete(a_request(60_000)).expect("no trap").expect_err("too slow");
        assert_eq!(error.kind, wit::model::ModelErrorKind::Timeout);
        let error = host.complete(a_request(60_000)).expect_err("a trap");
        assert_eq!(error.downcast_ref::<Reached>().map(|reached| reached.name), Some("model-time"));
        let _ = host.meter.begin();
        assert!(host.complete(a_request(1)).expect("no trap").is_err(), "each call of the component counts anew");
    }

    #[test]
    fn a_call_that_waits_for_a_model_can_be_cancelled() {
        let mut host = with_model("30", Limits::default());
        let canceller = Canceller::default();
        host.meter = Meter::new(Limits::default()).cancelled_by(canceller.clone());
        let _running = host.meter.begin();
        let begun = Instant::now();
        let error = std::thread::scope(|scope| {
            scope.spawn(|| {
                std::thread::sleep(Duration::from_millis(100));
                canceller.cancel()
            });
            host.complete(a_request(60_000)).expect_err("a trap")
        });
        assert!(error.downcast_ref::<crate::cancel::Cancelled>().is_some(), "{error:?}");
        assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
    }

    #[test]
    fn calls_are_counted_whatever_they_answer() {
        let (_, mut host) = host(Limits { host_calls: 3, ..Limits::default() });
        assert_eq!(host.generation().unwrap().unwrap(), 7);
        assert!(host.stat(wit::store::Area::Tree, "t".to_owned()).unwrap().is_err());
        host.current().unwrap().unwrap();
        let error = host.generation().unwrap_err();
        assert_eq!(error.downcast_ref::<Reached>().unwrap().name, "host-calls");
        let _ = host.meter.begin();
        assert!(host.generation().is_ok(), "each call of the component counts anew");
    }
}
