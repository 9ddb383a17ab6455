//! Which files there were when the index was last brought up to date, and which of them have to be looked at again.
//!
//! Mostly that is told by a comparison of two listings. A host that watches the workspace can say it, and then no listing is
//! needed. Knows paths and stamps; must not know what becomes of a file.

use std::collections::BTreeSet;

use recollex_core::ids::{is_v2_path, legacy_twin};
use recollex_core::source::Finding;

use crate::bindings::exports::recollex::memory::workspace as wit;
use crate::bindings::recollex::memory::store::{Area, Entry, StoreError};
use crate::convert;
use crate::tree;

/// Where everything lies that can be found.
const AREAS: [&str; 2] = ["sources", "topics"];

/// More paths than these are not asked for one by one: a listing is cheaper.
const MOST_NOTED: usize = 4096;

/// What the host has said of changes, between two looks at the files.
#[derive(Debug, Default)]
pub(crate) struct Noted {
    /// At or below these paths something may have changed since the last look; none: anywhere.
    since: Option<BTreeSet<String>>,
    /// The host has begun to say it.
    has_begun: bool,
    /// It was said for the call under way.
    holds: bool,
}

impl Noted {
    /// The host says where changes may have been since it said so last.
    pub(crate) fn note(&mut self, paths: Option<Vec<String>>) {
        // What was before the first time nobody has said.
        let said = paths.filter(|paths| self.has_begun && !paths.iter().any(|path| is_around(path)));
        let said = said.map(|paths| paths.into_iter().filter(|path| is_within(path)).collect::<Vec<_>>());
        (self.has_begun, self.holds) = (true, true);
        match (said, &mut self.since) {
            (Some(paths), Some(since)) if since.len().saturating_add(paths.len()) <= MOST_NOTED => since.extend(paths),
            _ => self.since = None,
        }
    }

    /// From now on the files are looked at, until something is said again.
    pub(crate) fn end(&mut self) {
        self.holds = false;
    }

    /// Where to look; none: everywhere. Until [`Noted::looked`] it is everywhere.
    fn take(&mut self) -> Option<BTreeSet<String>> {
        self.since.take().filter(|_| self.holds)
    }

    /// Somebody has looked, after all that was said.
    fn looked(&mut self) {
        self.since = Some(BTreeSet::new());
    }
}

/// Files as they were listed.
pub(crate) struct Listing {
    /// By path.
    entries: Vec<Entry>,
    /// What is wrong with them, with the path of the entry.
    findings: Vec<(String, Finding)>,
    /// Files that have to be looked at again, however they are listed: they were read when this was made, or may change without a
    /// trace.
    unsettled: BTreeSet<String>,
}

/// Files to be looked at.
pub(crate) enum Look {
    /// All of them.
    Everything,
    /// Those at these paths, whether they are there or not.
    At(BTreeSet<String>),
}

impl Listing {
    /// The files of now, and which have to be looked at since `before`.
    pub(crate) fn of_now(before: Option<Self>, noted: &mut Noted) -> Result<(Self, Look), wit::Error> {
        let said = noted.take();
        let Some(mut listing) = before else {
            let listing = Self { entries: list_all()?, findings: Vec::new(), unsettled: BTreeSet::new() };
            noted.looked();
            return Ok((listing, Look::Everything));
        };
        let mut again = core::mem::take(&mut listing.unsettled);
        let asked = said.map(|said| said.union(&again).cloned().collect::<BTreeSet<String>>());
        let changed = match asked.filter(|asked| asked.len() <= MOST_NOTED) {
            Some(asked) => listing.ask_at(&asked),
            None => Some(listing.replace(list_all()?)),
        };
        let Some(changed) = changed else { return Self::of_now(None, noted) };
        noted.looked();
        again.extend(changed);
        let look = if listing.can_be_parted(&again) { Look::At(again) } else { Look::Everything };
        Ok((listing, look))
    }

    /// Whether every file is known to be as it was.
    pub(crate) fn is_settled(&self, noted: &Noted) -> bool {
        noted.holds && self.unsettled.is_empty() && noted.since.as_ref().is_some_and(BTreeSet::is_empty)
    }

    /// By path.
    pub(crate) fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// That at a path.
    pub(crate) fn get(&self, path: &str) -> Option<&Entry> {
        self.entries.get(self.place(path).ok()?)
    }

    /// Has to be looked at again next time.
    pub(crate) fn unsettle(&mut self, path: &str) {
        self.unsettled.insert(path.to_owned());
    }

    /// Files that were looked at have these findings now, and the others those that they had.
    pub(crate) fn found(&mut self, looked: &Look, found: Vec<(String, Finding)>) {
        match looked {
            Look::Everything => self.findings = found,
            Look::At(paths) => {
                self.findings.retain(|(path, _)| !paths.contains(path));
                self.findings.extend(found);
                self.findings.sort_by(|(left, _), (right, _)| (order(left), left).cmp(&(order(right), right)));
            }
        }
    }

    pub(crate) fn findings(&self) -> impl Iterator<Item = &(String, Finding)> {
        self.findings.iter()
    }

    /// Whether a file is listed at the path, and none below it.
    fn is_leaf(&self, path: &str, below: &str) -> bool {
        let next = self.entries.partition_point(|entry| entry.path.as_str() < below);
        self.place(path).is_ok() && self.entries.get(next).is_none_or(|entry| !entry.path.starts_with(below))
    }

    fn place(&self, path: &str) -> Result<usize, usize> {
        self.entries.binary_search_by(|entry| entry.path.as_str().cmp(path))
    }

    /// Takes a newer listing. The paths at which it says something else.
    fn replace(&mut self, now: Vec<Entry>) -> BTreeSet<String> {
        let before = core::mem::replace(&mut self.entries, now);
        let mut changed = BTreeSet::new();
        let (mut old, mut new) = (before.iter().peekable(), self.entries.iter().peekable());
        loop {
            let order = match (old.peek(), new.peek()) {
                (None, None) => return changed,
                (Some(_), None) => core::cmp::Ordering::Less,
                (None, Some(_)) => core::cmp::Ordering::Greater,
                (Some(old), Some(new)) => old.path.cmp(&new.path),
            };
            let old = old.next_if(|_| order.is_le());
            let new = new.next_if(|_| order.is_ge());
            match (old, new) {
                (Some(old), Some(new)) if is_same(old, new) => {}
                (old, new) => changed.extend(old.or(new).map(|entry| entry.path.clone())),
            }
        }
    }

    /// Asks the store of these paths alone, and of what is below them. The paths at which something else is now; none: that
    /// takes a whole listing.
    fn ask_at(&mut self, paths: &BTreeSet<String>) -> Option<BTreeSet<String>> {
        let mut changed = BTreeSet::new();
        for path in paths {
            let below = format!("{path}/");
            // Refusals are for a listing to tell.
            let now = match tree::find(Area::Tree, path).ok()? {
                // Mostly it is the same file in another version: nothing has to make room.
                Some(entry) if self.is_leaf(path, &below) => {
                    if let Some(known) = self.place(path).ok().and_then(|at| self.entries.get_mut(at)) {
                        if !is_same(known, &entry) {
                            changed.insert(path.clone());
                        }
                        *known = entry;
                    }
                    continue;
                }
                Some(entry) => vec![entry],
                None => tree::list(Area::Tree, path).ok()?,
            };
            let is_part = |entry: &&Entry| entry.path == *path || entry.path.starts_with(&below);
            // Between a path and what is below it others may stand: `a`, `a-b`, `a/x`.
            let mut before = Vec::new();
            let mut at = self.entries.partition_point(|entry| entry.path < *path);
            while let Some(entry) = self.entries.get(at)
                && entry.path.starts_with(path.as_str())
            {
                if is_part(&entry) {
                    before.push(self.entries.remove(at));
                } else {
                    at += 1;
                }
            }
            let mut part = Self { entries: before, findings: Vec::new(), unsettled: BTreeSet::new() };
            changed.extend(part.replace(now));
            for entry in part.entries {
                let (Ok(place) | Err(place)) = self.place(&entry.path);
                self.entries.insert(place, entry);
            }
        }
        Some(changed)
    }

    /// Whether these can be looked at by themselves. Records of an older archive depend on the newer one beside it, so where
    /// there are such, everything is looked at; and paths have to name one file each.
    fn can_be_parted(&self, paths: &BTreeSet<String>) -> bool {
        let is_alone = |path: &String| {
            path.starts_with("topics/")
                || is_v2_path(path) && legacy_twin(path).is_none_or(|older| self.place(&older).is_err())
        };
        paths.iter().all(is_alone) && self.entries.is_sorted_by(|left, right| left.path < right.path)
    }
}

/// Whether something that can be found may lie at the path or below it.
fn is_within(path: &str) -> bool {
    AREAS.iter().any(|area| path.strip_prefix(area).is_some_and(|rest| rest.starts_with('/')))
}

/// Whether all of it may lie below the path.
fn is_around(path: &str) -> bool {
    path.is_empty() || AREAS.contains(&path)
}

/// The order in which files are looked at, and in order of path where it is the same. Archives before topics. v2 archives
/// first: where one has a record, an older archive's with the same id is not found.
pub(crate) fn order(path: &str) -> (bool, bool) {
    (path.starts_with("topics/"), !is_v2_path(path))
}

/// Whether two entries are of one version of a file, as far as stamps can tell.
fn is_same(before: &Entry, now: &Entry) -> bool {
    before.stamp.token == now.stamp.token
        && before.stamp.size == now.stamp.size
        && !now.stamp.racy
        && before.kind == now.kind
}

fn list_all() -> Result<Vec<Entry>, wit::Error> {
    let mut entries = Vec::new();
    for area in AREAS {
        match tree::list(Area::Tree, area) {
            Ok(mut listed) => entries.append(&mut listed),
            Err(StoreError::NotFound) => {}
            Err(error) => return Err(convert::store_error(error, Some(area))),
        }
    }
    Ok(entries)
}
