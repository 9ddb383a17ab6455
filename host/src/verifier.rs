//! An archive in memory, checked by the component that imports nothing.

use std::fmt;

use wasmtime::Store;
use wasmtime::component::ResourceAny;

use crate::bindings::archive_view::{
    FileClass, GuestArchive, ListedRecord, Obstacle, Origin, Selection, Summary, ViewSetting, ViewedFile, Voice,
};
use crate::bindings::types::{self, Finding, Problem};
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
    /// Settings that an archive can be opened with.
    pub const SETTINGS: [&'static str; 4] =
        ["limits.header-bytes", "limits.findings-max", "limits.records-max", "limits.topics-bytes"];

    /// An empty archive for files that someone named one by one, with the default settings.
    ///
    /// # Errors
    /// As [`Archive::open`].
    pub fn new(runtime: &Runtime) -> Result<Self, Error> {
        Self::open(runtime, Origin::Named, std::iter::empty::<(&str, &str)>())
    }

    /// An empty archive for files with paths of that kind. Settings are pairs of name and value, of those that
    /// [`Archive::SETTINGS`] names.
    ///
    /// # Errors
    /// [`Error::Memory`] with `invalid` if a setting is none of them or its value not allowed; as [`Runtime::new`], for the
    /// verifier; [`Error::Limit`] and [`Error::Trap`] as any call.
    pub fn open<N: Into<String>, V: Into<String>>(
        runtime: &Runtime,
        origin: Origin,
        settings: impl IntoIterator<Item = (N, V)>,
    ) -> Result<Self, Error> {
        let setting = |(name, value): (N, V)| ViewSetting { name: name.into(), value: value.into() };
        let settings: Vec<ViewSetting> = settings.into_iter().map(setting).collect();
        let component = runtime.verifier()?;
        let alone = Alone { meter: Meter::new(runtime.limits().clone()) };
        let mut store = call::store(runtime.engine(), alone);
        let (world, opened) = call::call(runtime.ticker(), &mut store, |store| {
            let world = component.instantiate(&mut *store)?;
            let opened = world.recollex_memory_archive_view().archive().call_open(store, origin, &settings)?;
            Ok((world, opened))
        })?;
        let archive = opened.map_err(refused)?;
        Ok(Self { runtime: runtime.clone(), live: Some(Live { store, world, archive }) })
    }

    /// What the file at each of these paths would be taken for. Changes nothing.
    ///
    /// # Errors
    /// As [`Archive::take_findings`].
    pub fn classify(&mut self, paths: &[String]) -> Result<Vec<FileClass>, Error> {
        self.call(|guest, store, archive| guest.call_classify(store, archive, paths))
    }

    /// Hands over the next piece of a file as text; `last` closes the file.
    ///
    /// # Errors
    /// [`Error::Memory`] with `invalid` if another file is still open or this one came before; [`Error::Limit`],
    /// [`Error::Trap`], [`Error::Gone`].
    pub fn push_text(&mut self, path: &str, text: &str, last: bool) -> Result<(), Error> {
        self.call(|guest, store, archive| guest.call_push_text(store, archive, path, text, last))?.map_err(refused)
    }

    /// The same for bytes that may not be text. Pieces may end inside a character.
    ///
    /// # Errors
    /// As [`Archive::push_text`].
    pub fn push_bytes(&mut self, path: &str, data: &[u8], last: bool) -> Result<(), Error> {
        self.call(|guest, store, archive| guest.call_push_bytes(store, archive, path, data, last))?.map_err(refused)
    }

    /// The open file, or the one at `path` if none is, cannot be read to its end, and why. Closes it with a finding.
    ///
    /// # Errors
    /// As [`Archive::push_text`].
    pub fn break_off(&mut self, path: &str, why: &str) -> Result<(), Error> {
        self.call(|guest, store, archive| guest.call_break_off(store, archive, path, why))?.map_err(refused)
    }

    /// Notes what lies at a path in place of a file, as a finding.
    ///
    /// # Errors
    /// As [`Archive::push_text`], also if the file at `path` is open.
    pub fn set_aside(&mut self, path: &str, what: Obstacle) -> Result<(), Error> {
        self.call(|guest, store, archive| guest.call_set_aside(store, archive, path, what))?.map_err(refused)
    }

    /// All files came: topics are checked now. No file can be handed over from here on.
    ///
    /// # Errors
    /// As [`Archive::push_text`].
    pub fn finish(&mut self) -> Result<(), Error> {
        self.call(|guest, store, archive| guest.call_finish(store, archive))?.map_err(refused)
    }

    /// Takes the findings so far out, at most `max`.
    ///
    /// # Errors
    /// As [`Archive::push_text`], but never [`Error::Memory`].
    pub fn take_findings(&mut self, max: u32) -> Result<Vec<Finding>, Error> {
        self.call(|guest, store, archive| guest.call_take_findings(store, archive, max))
    }

    /// Files from number `from` (from 0) on, at most `max`.
    ///
    /// # Errors
    /// As [`Archive::take_findings`].
    pub fn files(&mut self, from: u32, max: u32) -> Result<Vec<ViewedFile>, Error> {
        self.call(|guest, store, archive| guest.call_files(store, archive, from, max))
    }

    /// Voices from place `from` (from 0) on, at most `max`: trusted ones, hints, those without a speaker; most records first.
    ///
    /// # Errors
    /// As [`Archive::take_findings`].
    pub fn voices(&mut self, from: u32, max: u32) -> Result<Vec<Voice>, Error> {
        self.call(|guest, store, archive| guest.call_voices(store, archive, from, max))
    }

    /// Records of a selection in the order read, from number `from` (from 0) on, at most `max`. For more, ask from the
    /// number behind the last one.
    ///
    /// # Errors
    /// As [`Archive::take_findings`].
    pub fn records(&mut self, of: Selection, from: u64, max: u32) -> Result<Vec<ListedRecord>, Error> {
        self.call(|guest, store, archive| guest.call_records(store, archive, of, from, max))
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

/// The component refuses nothing but arguments.
fn refused(problem: Problem) -> Error {
    Error::Memory(types::Error::Invalid(problem))
}

impl fmt::Debug for Archive {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Archive").field("live", &self.live.is_some()).finish_non_exhaustive()
    }
}
