//! What the component imports, as this host gives it.
//!
//! Each `impl` below is one interface of `wit/`, in the order of `wit/worlds.wit`. They pass on: the store and the lock
//! to their traits, the log to the session's observer, the clock and randomness to the system. What is decided here is
//! only how much of each a component may have. The errors that the contract names are answers; an `Err` of wasmtime's
//! stops the component.

mod convert;

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use wasmtime::component::{Resource, ResourceTable};

use crate::bindings::memory::recollex::memory as wit;
use crate::bindings::memory::wasi;
use crate::call::Metered;
use crate::limits::{Limits, Meter, RANDOM_BYTES};
use crate::lock::Lock;
use crate::observer::Observer;
use crate::store::{self, Guard, Store};

/// Bytes at most that one read of a file answers, whatever is asked for: the answer is the host's memory first.
const READ_BYTES: u32 = 8 << 20;
/// Entries at most in one page of a listing.
const PAGE_ENTRIES: u32 = 10_000;
/// What a log line, event or step of progress counts for beside its text, so that empty ones count too.
const LINE: usize = 64;
/// So much of the component's last error line is kept for the message of a trap.
const SAID_BYTES: usize = 4096;
/// Locks that one session can hold at a time. The lock is not re-entrant, so one is all that it gets.
const GUARDS: usize = 4;

/// The lock as a component holds it. Its end, by the component or with the store, gives the lock back.
#[derive(Debug)]
pub struct HeldGuard(Box<dyn Guard>);

/// What stands behind the imports of one session's component.
pub(crate) struct Host {
    store: Arc<dyn Store>,
    lock: Arc<dyn Lock>,
    observer: Arc<dyn Observer>,
    guards: ResourceTable,
    meter: Meter,
}

impl Host {
    pub fn new(store: Arc<dyn Store>, lock: Arc<dyn Lock>, observer: Arc<dyn Observer>, limits: Limits) -> Self {
        let mut guards = ResourceTable::new();
        guards.set_max_capacity(GUARDS);
        Self { store, lock, observer, guards, meter: Meter::new(limits) }
    }
}

impl Metered for Host {
    fn meter(&mut self) -> &mut Meter {
        &mut self.meter
    }
}

impl wasi::clocks::wall_clock::Host for Host {
    fn now(&mut self) -> wasmtime::Result<wasi::clocks::wall_clock::Datetime> {
        // A clock before 1970 is a clock that is not set.
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        Ok(wasi::clocks::wall_clock::Datetime { seconds: now.as_secs(), nanoseconds: now.subsec_nanos() })
    }
}

impl wasi::random::random::Host for Host {
    fn get_random_bytes(&mut self, len: u64) -> wasmtime::Result<Vec<u8>> {
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
        // A wait as long as the call may last would end in the call's own limit. "Locked" says more, so a little of the
        // call's time is kept for saying it.
        let left = self.meter.time_left();
        let longest = left.saturating_sub((left / 10).min(Duration::from_secs(1))).as_millis();
        let wait_ms = wait_ms.min(u32::try_from(longest).unwrap_or(u32::MAX));
        match self.lock.acquire(wait_ms, &purpose) {
            Ok(guard) => Ok(Ok(self.guards.push(HeldGuard(guard))?)),
            Err(error) => Ok(Err(error.into())),
        }
    }

    fn current(&mut self) -> wasmtime::Result<Result<Option<wit::lock::Holder>, wit::lock::LockError>> {
        Ok(self.lock.current().map(|holder| holder.map(Into::into)).map_err(Into::into))
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
        Ok(self.store.generation().map_err(Into::into))
    }

    fn entries(
        &mut self,
        area: wit::store::Area,
        prefix: String,
        cursor: Option<String>,
        max: u32,
    ) -> wasmtime::Result<Result<wit::store::Page, wit::store::StoreError>> {
        let page = self.store.entries(area.into(), &prefix, cursor.as_deref(), max.min(PAGE_ENTRIES));
        Ok(page.map(Into::into).map_err(Into::into))
    }

    fn stat(
        &mut self,
        area: wit::store::Area,
        path: String,
    ) -> wasmtime::Result<Result<wit::store::Entry, wit::store::StoreError>> {
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
        let at = at.map(Into::into);
        let chunk = self.store.read_bytes(area.into(), &path, at.as_ref(), offset, max.min(READ_BYTES));
        Ok(chunk.map(Into::into).map_err(Into::into))
    }

    fn commit(
        &mut self,
        guard: Resource<HeldGuard>,
        base: u64,
        changes: Vec<wit::store::Change>,
    ) -> wasmtime::Result<Result<wit::store::Committed, wit::store::CommitError>> {
        let changes: Vec<store::Change> = changes.into_iter().map(Into::into).collect();
        // All or nothing begins here: the call is stopped before the commit or after it.
        self.meter.check_time()?;
        self.meter.charge(changes.iter().map(size).sum())?;
        let guard = self.guards.get(&guard)?;
        Ok(self.store.commit(&*guard.0, base, &changes).map(Into::into).map_err(Into::into))
    }

    fn put_cache(
        &mut self,
        name: String,
        data: Vec<u8>,
    ) -> wasmtime::Result<Result<wit::store::Stamp, wit::store::StoreError>> {
        self.meter.charge(name.len().saturating_add(data.len()))?;
        Ok(self.store.put_cache(&name, &data).map(Into::into).map_err(Into::into))
    }

    fn append_cache(
        &mut self,
        name: String,
        length: u64,
        data: Vec<u8>,
    ) -> wasmtime::Result<Result<wit::store::Stamp, wit::store::StoreError>> {
        self.meter.charge(name.len().saturating_add(data.len()))?;
        Ok(self.store.append_cache(&name, length, &data).map(Into::into).map_err(Into::into))
    }

    fn drop_cache(&mut self, name: String) -> wasmtime::Result<Result<(), wit::store::StoreError>> {
        Ok(self.store.drop_cache(&name).map_err(Into::into))
    }
}

/// What a change counts for: the bytes that it brings into the workspace.
fn size(change: &store::Change) -> usize {
    let edit = match &change.edit {
        store::Edit::Put(text) | store::Edit::Append { text, .. } | store::Edit::MoveTo(text) => text.len(),
        store::Edit::Splice(splices) => splices.iter().map(|splice| splice.insert.len()).sum(),
        store::Edit::Delete => 0,
    };
    change.path.len().saturating_add(edit)
}

/// This host has no model: the contract lets it say so, and everything that needs none works.
impl wit::model::Host for Host {
    fn complete(
        &mut self,
        _request: wit::model::Request,
    ) -> wasmtime::Result<Result<wit::model::Reply, wit::model::ModelError>> {
        Ok(Err(unconfigured("no language model is configured in this host")))
    }

    fn count_tokens(&mut self, texts: Vec<String>) -> wasmtime::Result<wit::model::TokenCounts> {
        // Without a vocabulary the only number that is never too low is the number of bytes: every vocabulary that
        // covers all text falls back to single bytes, and none spends more than a token on one.
        let tokens = texts.iter().map(|text| u32::try_from(text.len()).unwrap_or(u32::MAX)).collect();
        Ok(wit::model::TokenCounts { tokens, exact: false })
    }

    fn embed(
        &mut self,
        _texts: Vec<String>,
        _role: wit::model::EmbeddingRole,
    ) -> wasmtime::Result<Result<wit::model::Embeddings, wit::model::ModelError>> {
        Ok(Err(unconfigured("no embedding model is configured in this host")))
    }
}

fn unconfigured(message: &str) -> wit::model::ModelError {
    wit::model::ModelError {
        kind: wit::model::ModelErrorKind::Unconfigured,
        retryable: false,
        message: message.to_owned(),
    }
}

impl wit::log::Host for Host {
    fn write(&mut self, level: wit::log::Level, mut message: String) -> wasmtime::Result<()> {
        self.meter.charge(message.len().saturating_add(LINE))?;
        self.observer.log(level.into(), &message);
        if level == wit::log::Level::Error {
            message.truncate(message.floor_char_boundary(SAID_BYTES));
            self.meter.said = Some(message);
        }
        Ok(())
    }

    fn event(&mut self, name: String, fields: Vec<(String, String)>) -> wasmtime::Result<()> {
        let text: usize = fields.iter().map(|(name, value)| name.len() + value.len()).sum();
        self.meter.charge(name.len().saturating_add(text).saturating_add(LINE))?;
        self.observer.event(&name, &fields);
        Ok(())
    }

    fn progress(&mut self, task: String, done: u64, total: u64, unit: String) -> wasmtime::Result<()> {
        self.meter.charge(task.len().saturating_add(unit.len()).saturating_add(LINE))?;
        self.observer.progress(&task, done, total, &unit);
        Ok(())
    }
}

/// Types only.
impl wit::types::Host for Host {}
