//! Which files a workspace has at one moment, with their versions and digests: what a change is planned against.
//!
//! Knows paths and digests, and which of them views are made of. How they are found out the survey knows.

use std::collections::{BTreeMap, BTreeSet};

use recollex_core::digest::Digest;
use recollex_core::ids::{Revision, RevisionBuilder, is_derived_path};
use recollex_core::table::FileTable;
use recollex_core::views::CORE_FILE;

use crate::bindings::recollex::memory::store::{Area, Entry, Stamp};
use crate::survey::RUNTIME_FILE;

/// Topics lie below this.
const TOPICS: &str = "topics/";

/// All files of a workspace.
pub(crate) struct State {
    /// Of the tree, by path.
    entries: BTreeMap<String, Entry>,
    /// The one file of the runtime directory that counts.
    runtime: Option<Entry>,
    /// By the names that revisions know them by. None: it was changed since, and nobody knows to what.
    digests: BTreeMap<String, Option<Digest>>,
    pub(crate) files: FileTable,
}

impl State {
    /// `entries` are those of the tree, `runtime` that of the runtime directory's file.
    pub(crate) fn new(entries: Vec<Entry>, runtime: Option<Entry>, digests: RevisionBuilder, files: FileTable) -> Self {
        Self {
            entries: entries.into_iter().map(|entry| (entry.path.clone(), entry)).collect(),
            runtime,
            digests: digests.into_files().map(|(path, digest)| (path, Some(digest))).collect(),
            files,
        }
    }

    /// The name that revisions know a file by. None: it counts for none.
    pub(crate) fn name<'p>(&self, area: Area, path: &'p str) -> Option<&'p str> {
        match area {
            Area::Tree => Some(path),
            Area::Runtime if path == RUNTIME_FILE.0 => Some(RUNTIME_FILE.1),
            Area::Runtime | Area::Cache => None,
        }
    }

    pub(crate) fn digest_of(&self, path: &str) -> Option<Digest> {
        self.digests.get(path).copied().flatten()
    }

    /// Whether the file has that content, or is not there if that is none.
    pub(crate) fn is(&self, area: Area, path: &str, content: Option<Digest>) -> bool {
        match content {
            Some(digest) => self.name(area, path).and_then(|name| self.digest_of(name)) == Some(digest),
            None => self.stamp(area, path).is_none(),
        }
    }

    /// The version of a file; none: there is none.
    pub(crate) fn stamp(&self, area: Area, path: &str) -> Option<&Stamp> {
        let entry = match area {
            Area::Tree => self.entries.get(path),
            Area::Runtime if path == RUNTIME_FILE.0 => self.runtime.as_ref(),
            Area::Runtime | Area::Cache => None,
        };
        entry.map(|entry| &entry.stamp)
    }

    /// The files of the tree, in order.
    pub(crate) fn paths(&self) -> impl Iterator<Item = &str> {
        self.entries.keys().map(String::as_str)
    }

    /// The topics, in order.
    pub(crate) fn topics(&self) -> impl Iterator<Item = Entry> {
        let below = self.entries.range(TOPICS.to_owned()..).take_while(|(path, _)| path.starts_with(TOPICS));
        below.map(|(_, entry)| entry.clone())
    }

    /// Everything that counts for a revision, by the name it has there.
    pub(crate) fn counted(&self) -> BTreeMap<&str, (Area, &Entry)> {
        let tree = self.digests.keys().filter_map(|path| Some((path.as_str(), (Area::Tree, self.entries.get(path)?))));
        let runtime = self.runtime.iter().filter(|_| self.digests.contains_key(RUNTIME_FILE.1));
        tree.chain(runtime.map(|entry| (RUNTIME_FILE.1, (Area::Runtime, entry)))).collect()
    }

    /// A file is something else from here on; none: it is gone.
    pub(crate) fn now(&mut self, name: &str, digest: Option<Digest>) {
        match digest {
            Some(digest) => drop(self.digests.insert(name.to_owned(), Some(digest))),
            None => drop(self.digests.remove(name)),
        }
    }

    /// A file is something else from here on, and nobody has looked.
    pub(crate) fn forget(&mut self, name: &str) {
        self.digests.insert(name.to_owned(), None);
    }

    /// The revision, of what `sees` lets through. None: somebody has to look first.
    pub(crate) fn revision(&self, sees: &dyn Fn(&str) -> bool) -> Option<Revision> {
        self.revision_of(|path| sees(path))
    }

    /// Names what views are made of, and the views: while it stays the same, they need not be made again.
    pub(crate) fn views_key(&self) -> Option<Revision> {
        self.revision_of(|path| path.starts_with(TOPICS) || is_view(path) || path == RUNTIME_FILE.1)
    }

    /// Names the views alone.
    pub(crate) fn derived_key(&self) -> Option<Revision> {
        self.revision_of(is_view)
    }

    /// Names these files as they are; where there is none, that.
    pub(crate) fn key_of(&self, paths: &BTreeSet<String>) -> Option<Revision> {
        self.revision_of(|path| paths.contains(path))
    }

    /// The revision of the files that count.
    fn revision_of(&self, counts: impl Fn(&str) -> bool) -> Option<Revision> {
        let counted = self.digests.iter().filter(|(path, _)| counts(path));
        let known: Option<Vec<(&str, Digest)>> =
            counted.map(|(path, digest)| Some((path.as_str(), (*digest)?))).collect();
        known.map(Revision::of)
    }
}

/// Whether a file is made of topics.
fn is_view(path: &str) -> bool {
    is_derived_path(path) || path == CORE_FILE
}
