//! Files of the runtime directory that turns leave behind: receipts, what was handled, how writes went.
//!
//! Knows where they are and how they are replaced. What they say core's `turns` says.

use recollex_core::ids::WorkspaceId;
use recollex_core::turns::{Handled, HandledError, Receipts, WriterStatus};

use crate::bindings::exports::recollex::memory::workspace as wit;
use crate::bindings::recollex::memory::store::{Area, Change, Edit, Expect, StoreError};
use crate::convert;
use crate::session::{refused, workspace_id};
use crate::tree;

/// A longer file is none of ours.
const BYTES_MAX: u64 = 64 << 20;

/// A file of the runtime directory as it is.
pub(super) struct Found {
    /// None: there is none, or it is no text.
    pub(super) text: Option<String>,
    /// What must still be so when it is replaced.
    pub(super) expect: Expect,
}

impl Found {
    /// Reads it.
    pub(super) fn read(path: &str) -> Result<Self, wit::Error> {
        let failed = |error| convert::runtime_error(error, path);
        let Some(entry) = tree::find(Area::Runtime, path).map_err(failed)? else {
            return Ok(Self { text: None, expect: Expect::Absent });
        };
        let text = match entry.stamp.size <= BYTES_MAX && tree::is_file(&entry) {
            true => match tree::read_range(Area::Runtime, path, Some(&entry.stamp), 0, entry.stamp.size) {
                Ok(text) => Some(text),
                Err(StoreError::NotText(_)) => None,
                Err(error) => return Err(failed(error)),
            },
            false => None,
        };
        Ok(Self { text, expect: Expect::Same(entry.stamp) })
    }

    /// The change that replaces it, or removes it if there is nothing to say.
    pub(super) fn change(self, path: &str, content: String) -> Option<Change> {
        let edit = match (content.is_empty(), &self.expect) {
            (true, Expect::Absent) => return None,
            (true, _) => Edit::Delete,
            (false, _) => Edit::Put(content),
        };
        Some(Change { area: Area::Runtime, path: path.to_owned(), expect: self.expect, edit })
    }
}

/// The receipts there are, and their file.
pub(super) fn receipts() -> Result<(Receipts, Found), wit::Error> {
    let found = Found::read(Receipts::PATH)?;
    let receipts = Receipts::parse(found.text.as_deref().unwrap_or_default());
    Ok((receipts, found))
}

/// What was handled, and its file. One that is something else stops everything that depends on it.
pub(super) fn handled() -> Result<(Handled, Found), wit::Error> {
    let found = Found::read(Handled::PATH)?;
    let unreadable = |error: HandledError| refused(vec![error.problem(convert::runtime_path(Handled::PATH))]);
    let handled = match (&found.text, &found.expect) {
        (Some(text), _) => Handled::parse(text).map_err(unreadable)?,
        (None, Expect::Absent) => Handled::default(),
        (None, _) => return Err(unreadable(HandledError)),
    };
    Ok((handled, found))
}

/// Name of the file that says how writes went.
pub(super) const STATUS: &str = WriterStatus::PATH;

/// How writes went. Best effort: what cannot be read says nothing.
pub(super) fn status() -> (WriterStatus, Option<Found>) {
    match Found::read(STATUS) {
        Ok(found) => (WriterStatus::read(found.text.as_deref().unwrap_or_default()), Some(found)),
        Err(_) => (WriterStatus::default(), None),
    }
}

/// The workspace's id; one that nobody has if there is no workspace yet: nothing is marked by it.
pub(super) fn workspace() -> Result<WorkspaceId, wit::Error> {
    Ok(workspace_id()?.unwrap_or_else(|| crate::session::new_workspace_id().0))
}
