//! Commits whose contents come in pieces: what is put may be larger than memory, and need not be text.
//!
//! The commit is the same as any other, with the same checks, and as whole. Must not know where the pieces come from.

use super::commit::{self, Contents, Staged, Staging};
use super::{About, Change, CommitError, Committed, Directory, Edit, Guard, StoreError, disk};

/// Where a commit's contents come from.
pub(crate) trait Feed {
    /// Hands the content of the change at `index`, a put, to `write`, piece by piece. Called once for each put, in the
    /// order of the changes.
    ///
    /// # Errors
    /// Any ends the commit, with nothing changed; those of `write` are to be handed on.
    fn feed(&mut self, index: usize, write: &mut dyn FnMut(&[u8]) -> Result<(), StoreError>) -> Result<(), StoreError>;
}

struct Fed<'a> {
    changes: &'a [Change],
    feed: &'a mut dyn Feed,
}

impl Contents for Fed<'_> {
    fn stage(&mut self, index: usize, staging: &mut Staging<'_>) -> Result<Option<Staged>, StoreError> {
        if !self.changes.get(index).is_some_and(|change| matches!(change.edit, Edit::Put(_))) {
            return Ok(None);
        }
        let failed = |error| disk::store_error(error, "staging the file");
        let (name, file) = staging.create().map_err(failed)?;
        let mut size = 0;
        self.feed.feed(index, &mut |piece| {
            disk::write_at(&file, piece, size).map_err(failed)?;
            size += piece.len() as u64;
            Ok(())
        })?;
        let sealed = disk::seal(&file).map_err(failed)?;
        staging.written(&name, file);
        Ok(Some(Staged { name, size, sealed }))
    }
}

impl Directory {
    /// Makes all changes, or none, as [`commit`](super::Store::commit) does; what puts put comes from `feed`, whatever
    /// their text says.
    ///
    /// # Errors
    /// As of `commit`, and what `feed` answers.
    pub(crate) fn commit_fed(
        &self,
        guard: &dyn Guard,
        base: u64,
        changes: &[Change],
        feed: &mut dyn Feed,
        about: &About,
    ) -> Result<Committed, CommitError> {
        commit::commit(self, guard, base, changes, &mut Fed { changes, feed }, about)
    }
}
