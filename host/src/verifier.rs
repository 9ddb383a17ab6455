//! An archive in memory, checked by the component that imports nothing.

use crate::bindings::archive_view::Summary;
use crate::bindings::types::{Finding, SourceRecord};
use crate::error::Error;
use crate::runtime::Runtime;

/// An archive that is handed over piece by piece and checked as it comes. Nothing of it reaches a file, a clock or a
/// network: the component has no import. After a trap or a limit what was pushed is lost, and every call answers
/// [`Error::Gone`].
#[derive(Debug)]
pub struct Archive {}

impl Archive {
    /// An empty archive.
    ///
    /// # Errors
    /// As [`Runtime::new`], for the verifier; [`Error::Limit`] and [`Error::Trap`] as any call.
    pub fn new(runtime: &Runtime) -> Result<Self, Error> {
        let _ = runtime;
        Ok(Self {})
    }

    /// Hands over the next piece of a file as text; `last` closes the file. `path` is as in a workspace.
    ///
    /// # Errors
    /// [`Error::Memory`] with `invalid` if another file is still open or this one was closed before; [`Error::Limit`],
    /// [`Error::Trap`], [`Error::Gone`].
    pub fn push_text(&mut self, path: &str, text: &str, last: bool) -> Result<(), Error> {
        let _ = (path, text, last);
        Err(Error::Gone)
    }

    /// The same for bytes that may not be text. Pieces may end inside a character.
    ///
    /// # Errors
    /// As [`Archive::push_text`].
    pub fn push_bytes(&mut self, path: &str, data: &[u8], last: bool) -> Result<(), Error> {
        let _ = (path, data, last);
        Err(Error::Gone)
    }

    /// Takes the findings so far out, at most `max`.
    ///
    /// # Errors
    /// As [`Archive::push_text`], but never [`Error::Memory`].
    pub fn take_findings(&mut self, max: u32) -> Result<Vec<Finding>, Error> {
        let _ = max;
        Err(Error::Gone)
    }

    /// Records in the order read, from number `from` on (from 0), at most `max`.
    ///
    /// # Errors
    /// As [`Archive::take_findings`].
    pub fn records(&mut self, from: u64, max: u32) -> Result<Vec<SourceRecord>, Error> {
        let _ = (from, max);
        Err(Error::Gone)
    }

    /// How the archive stands.
    ///
    /// # Errors
    /// As [`Archive::take_findings`].
    pub fn summary(&mut self) -> Result<Summary, Error> {
        Err(Error::Gone)
    }
}
