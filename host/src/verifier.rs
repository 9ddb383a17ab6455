//! An archive in memory, checked by the component that imports nothing.

use std::fmt;

use wasmtime::Store;
use wasmtime::component::ResourceAny;

use crate::bindings::archive_view::{GuestArchive, Summary};
use crate::bindings::types::{Finding, SourceRecord};
use crate::bindings::verifier::Verifier;
use crate::call::{self, Metered};
use crate::error::Error;
use crate::limits::Meter;
use crate::runtime::Runtime;

/// What stands behind the verifier: only the meter of its calls.
pub(crate) struct Alone {
    meter: Meter,
}

impl Metered for Alone {
    fn meter(&mut self) -> &mut Meter {
        &mut self.meter
    }
}

/// An archive that is handed over piece by piece and checked as it comes. Nothing of it reaches a file, a clock or a
/// network: the component has no import. After a trap or a limit what was pushed is lost, and every call answers
/// [`Error::Gone`].
pub struct Archive {
    runtime: Runtime,
    live: Option<Live>,
}

struct Live {
    store: Store<Alone>,
    world: Verifier,
    archive: ResourceAny,
}

impl Archive {
    /// An empty archive.
    ///
    /// # Errors
    /// As [`Runtime::new`], for the verifier; [`Error::Limit`] and [`Error::Trap`] as any call.
    pub fn new(runtime: &Runtime) -> Result<Self, Error> {
        let component = runtime.verifier()?;
        let alone = Alone { meter: Meter::new(runtime.limits().clone()) };
        let mut store = call::store(runtime.engine(), alone);
        let (world, archive) = call::call(runtime.ticker(), &mut store, |store| {
            let world = component.instantiate(&mut *store)?;
            let archive = world.recollex_memory_archive_view().archive().call_constructor(store)?;
            Ok((world, archive))
        })?;
        Ok(Self { runtime: runtime.clone(), live: Some(Live { store, world, archive }) })
    }

    /// Hands over the next piece of a file as text; `last` closes the file. `path` is as in a workspace.
    ///
    /// # Errors
    /// [`Error::Memory`] with `invalid` if another file is still open or this one was closed before; [`Error::Limit`],
    /// [`Error::Trap`], [`Error::Gone`].
    pub fn push_text(&mut self, path: &str, text: &str, last: bool) -> Result<(), Error> {
        self.call(|guest, store, archive| guest.call_push_text(store, archive, path, text, last))?.map_err(Error::from)
    }

    /// The same for bytes that may not be text. Pieces may end inside a character.
    ///
    /// # Errors
    /// As [`Archive::push_text`].
    pub fn push_bytes(&mut self, path: &str, data: &[u8], last: bool) -> Result<(), Error> {
        self.call(|guest, store, archive| guest.call_push_bytes(store, archive, path, data, last))?.map_err(Error::from)
    }

    /// Takes the findings so far out, at most `max`.
    ///
    /// # Errors
    /// As [`Archive::push_text`], but never [`Error::Memory`].
    pub fn take_findings(&mut self, max: u32) -> Result<Vec<Finding>, Error> {
        self.call(|guest, store, archive| guest.call_take_findings(store, archive, max))
    }

    /// Records in the order read, from number `from` on (from 0), at most `max`.
    ///
    /// # Errors
    /// As [`Archive::take_findings`].
    pub fn records(&mut self, from: u64, max: u32) -> Result<Vec<SourceRecord>, Error> {
        self.call(|guest, store, archive| guest.call_records(store, archive, from, max))
    }

    /// How the archive stands.
    ///
    /// # Errors
    /// As [`Archive::take_findings`].
    pub fn summary(&mut self) -> Result<Summary, Error> {
        self.call(|guest, store, archive| guest.call_summary(store, archive))
    }

    /// Makes a call. The instance is put back only after it went well: whatever else happens in it, a panic of the host
    /// included, it is not used again.
    fn call<T>(
        &mut self,
        f: impl FnOnce(GuestArchive<'_>, &mut Store<Alone>, ResourceAny) -> wasmtime::Result<T>,
    ) -> Result<T, Error> {
        let Some(mut live) = self.live.take() else { return Err(Error::Gone) };
        let Live { store, world, archive } = &mut live;
        let guest = world.recollex_memory_archive_view();
        let answer = call::call(self.runtime.ticker(), store, |store| f(guest.archive(), store, *archive))?;
        self.live = Some(live);
        Ok(answer)
    }
}

impl fmt::Debug for Archive {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Archive").field("live", &self.live.is_some()).finish_non_exhaustive()
    }
}
