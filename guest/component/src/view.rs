//! What one caller sees of the tree. Every look and every listing of a verb that reads goes through here, so that what is
//! hidden is no more than what is not there: no path, no figure, no finding and no error tells of it.
//!
//! Knows how to ask the store. What is hidden from whom core's `trust` decides.

use recollex_core::source::Tier;
use recollex_core::trust::Audience;

use crate::audience;
use crate::bindings::exports::recollex::memory::workspace as wit;
use crate::bindings::recollex::memory::store::{self, Area, Entry, StoreError};
use crate::convert;
use crate::tree;

/// What a caller sees, at the time they asked.
#[derive(Clone)]
pub(crate) struct View {
    audience: Audience,
}

/// A part of a listing, without what is no file.
pub(crate) struct Page {
    pub(crate) files: Vec<Entry>,
    /// What to pass as `cursor` for the next part.
    pub(crate) next: Option<String>,
}

impl View {
    /// Of a caller of that tier. Where the settings of the workspace cannot be read, nobody but the owner sees anything.
    pub(crate) fn of(tier: Tier) -> Result<Self, wit::Error> {
        if tier == Tier::Owner {
            return Ok(Self { audience: Audience::owner() });
        }
        let settings =
            audience::read().map_err(|fault| wit::Error::Refused(vec![convert::problem_of(fault.problem())]))?;
        Ok(Self { audience: Audience::of(tier, settings.narrowing) })
    }

    /// Nothing is hidden from them.
    pub(crate) fn is_everything(&self) -> bool {
        self.audience.is_everything()
    }

    /// Who of them sees what.
    pub(crate) fn audience(&self) -> &Audience {
        &self.audience
    }

    /// Everything below `prefix` that they see, of one generation.
    pub(crate) fn list(&self, prefix: &str) -> Result<Vec<Entry>, StoreError> {
        Ok(self.split(prefix)?.0)
    }

    /// The same, and what is there beside it.
    pub(crate) fn split(&self, prefix: &str) -> Result<(Vec<Entry>, Vec<Entry>), StoreError> {
        // Behind a hidden prefix not even the store's own refusals may show.
        if !self.may_ask(prefix) {
            return Ok((Vec::new(), Vec::new()));
        }
        let entries = tree::list(Area::Tree, prefix)?;
        Ok(entries.into_iter().partition(|entry| self.audience.sees(&entry.path)))
    }

    /// The entry at `path`; none if nothing is there for them.
    pub(crate) fn find(&self, path: &str) -> Result<Option<Entry>, StoreError> {
        if self.may_ask(path) { tree::find(Area::Tree, path) } else { Ok(None) }
    }

    /// Files below `prefix` behind `cursor`, at most `max` entries of the store (0: the store's own measure).
    pub(crate) fn page(&self, prefix: &str, cursor: Option<&str>, max: u32) -> Result<Page, StoreError> {
        if self.is_everything() {
            let page = store::entries(Area::Tree, prefix, cursor, max)?;
            let files = page.entries.into_iter().filter(tree::is_file).collect();
            return Ok(Page { files, next: page.next });
        }
        let mut files: Vec<Entry> = Vec::new();
        if !self.may_ask(prefix) {
            return Ok(Page { files, next: None });
        }
        let most = usize::try_from(max).unwrap_or(usize::MAX).max(1);
        // The store would say what is wrong with a place that is hidden: begin before it instead, and leave out.
        let (mut cursor, behind) = match cursor {
            Some(cursor) if !self.audience.sees(cursor) => (None, cursor),
            cursor => (cursor.map(str::to_owned), ""),
        };
        loop {
            let page = store::entries(Area::Tree, prefix, cursor.as_deref(), 0)?;
            let seen = page.entries.into_iter().filter(|entry| {
                tree::is_file(entry) && self.audience.sees(&entry.path) && entry.path.as_str() > behind
            });
            for entry in seen {
                if files.len() == most {
                    // The store's own place to go on could name what is hidden, and be one where nothing more is shown.
                    return Ok(Page { next: files.last().map(|last| last.path.clone()), files });
                }
                files.push(entry);
            }
            match page.next {
                Some(next) => cursor = Some(next),
                None => return Ok(Page { files, next: None }),
            }
        }
    }

    fn may_ask(&self, path: &str) -> bool {
        path.is_empty() || self.audience.sees(path)
    }
}
