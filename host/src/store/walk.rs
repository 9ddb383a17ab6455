//! Listing what lies below a directory, in code-point order of the whole path, page by page.
//!
//! The order falls out of sorting each directory by name, if a directory's name counts with its slash: `a-b` < `a/x` <
//! `a0`. A walk holds the names that are still to come of the directories it is in, so that the next page goes on where
//! the last one ended; a walk can also begin behind any path, and then reads those directories only that lead there.
//! Must not open a file, and must not know journals.

use std::cmp::Ordering;
use std::collections::VecDeque;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::fs::FileType;
use rustix::io::Errno;

use super::disk::{self, Sys};
use super::ground::{Ground, Way, descend};
use super::path::{self, MAX_PATH, RelPath, hidden};
use super::view::kind_of;
use super::{Area, Entry, Kind, StoreError};

/// How long names that were read stand for what is there.
const FRESH: Duration = Duration::from_secs(10);

/// A listing under way.
#[derive(Debug)]
pub(super) struct Walk {
    area: Area,
    prefix: String,
    /// The directories it is in, the innermost last.
    levels: Vec<Level>,
    /// The path of the last entry, where the next page begins.
    last: Option<String>,
    begun: Instant,
}

#[derive(Debug)]
struct Level {
    /// The directory's path; empty: the area's own.
    directory: String,
    names: VecDeque<Name>,
    /// Open only while it is being read: a walk at rest holds no descriptors.
    open: Option<OwnedFd>,
}

#[derive(Debug)]
struct Name {
    /// As listed.
    shown: String,
    /// As it is, where that is not UTF-8.
    raw: Option<Vec<u8>>,
    is_directory: bool,
}

impl Walk {
    /// Begins a listing below `prefix` (checked, or empty), behind the path `after` (checked).
    ///
    /// # Errors
    /// `Denied` if the prefix is, or lies behind, a symbolic link, or if `after` lies behind one.
    pub(super) fn begin(ground: &Ground, area: Area, prefix: &str, after: Option<&str>) -> Result<Self, StoreError> {
        let failed = |error| disk::store_error(error, &format!("listing {prefix}"));
        let mut walk = Self {
            area,
            prefix: prefix.to_owned(),
            levels: Vec::new(),
            last: after.map(str::to_owned),
            begun: Instant::now(),
        };
        if let Some((above, _)) = after.and_then(|after| after.rsplit_once('/'))
            && let Some(base) = ground.base(area)?
            && let Ok(Way::Link(link)) = descend(base, above)
        {
            return Err(StoreError::Denied(format!("{link} is a symbolic link")));
        }
        let Some(base) = ground.base(area)? else { return Ok(walk) };
        match descend(base, prefix).map_err(failed)? {
            Way::Open(open) => walk.enter(prefix.to_owned(), open).map_err(failed)?,
            Way::Missing(..) | Way::File(_) => {}
            Way::Link(link) => return Err(StoreError::Denied(format!("{link} is a symbolic link"))),
        }
        Ok(walk)
    }

    /// Whether this walk, at rest, is the one that goes on behind `cursor`.
    pub(super) fn continues(&self, area: Area, prefix: &str, cursor: &str) -> bool {
        self.area == area
            && self.prefix == prefix
            && self.last.as_deref() == Some(cursor)
            && self.begun.elapsed() < FRESH
    }

    /// Whether nothing is left.
    pub(super) fn is_over(&self) -> bool {
        self.levels.iter().all(|level| level.names.is_empty())
    }

    /// Gives back its descriptors until the next page.
    pub(super) fn rest(&mut self) {
        for level in &mut self.levels {
            level.open = None;
        }
    }

    /// The next entry.
    pub(super) fn next(&mut self, ground: &Ground) -> Result<Option<Entry>, StoreError> {
        loop {
            let Some(level) = self.levels.last_mut() else { return Ok(None) };
            let Some(name) = level.names.pop_front() else {
                self.levels.pop();
                continue;
            };
            let path = path::join(&level.directory, &name.shown);
            let entry = self.visit(ground, &name, path).map_err(|error| match error {
                (Errno::NOENT, doing) => StoreError::Io(format!("{doing}: gone")),
                (error, doing) => disk::store_error(error, &doing),
            })?;
            if let Some(entry) = entry {
                self.last = Some(entry.path.clone());
                return Ok(Some(entry));
            }
        }
    }

    /// An entry for a file, a deeper level for a directory, nothing for what is gone by now.
    fn visit(&mut self, ground: &Ground, name: &Name, path: String) -> Result<Option<Entry>, (Errno, String)> {
        let area = self.area;
        let Some(level) = self.levels.last_mut() else { return Ok(None) };
        let failed = |error| (error, format!("listing {path}"));
        let Some(directory) = level.open(ground, area).map_err(failed)? else {
            // The directory itself is gone, or something else by now.
            level.names.clear();
            return Ok(None);
        };
        let looked = match &name.raw {
            Some(raw) => disk::look(directory, raw.as_slice()),
            None => disk::look(directory, name.shown.as_str()),
        };
        let Some(stat) = looked.map_err(failed)? else { return Ok(None) };
        let stamp = disk::stamp(&stat);
        if name.raw.is_some() {
            return Ok(Some(Entry { path, kind: Kind::Undecodable, stamp }));
        }
        if let Some(kind) = kind_of(&stat) {
            return Ok(Some(Entry { path, kind, stamp }));
        }
        // So deep that what is in it has no path: it is shown, and not what is in it.
        if path.len() + 1 >= MAX_PATH {
            return Ok(Some(Entry { path, kind: Kind::Special, stamp }));
        }
        let opened = disk::open_dir(directory, name.shown.as_str());
        if opened.is_ok() {
            // A walk of any depth holds one descriptor.
            level.open = None;
        }
        match opened.and_then(|open| self.enter(path.clone(), open)) {
            Ok(()) => Ok(None),
            Err(Errno::ACCESS | Errno::PERM) => Ok(Some(Entry { path, kind: Kind::Unreadable, stamp })),
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => Ok(None),
            Err(error) => Err(failed(error)),
        }
    }

    /// Reads a directory's names, those only that come behind the last entry or lead there.
    fn enter(&mut self, directory: String, open: OwnedFd) -> Sys<()> {
        let mut names = Vec::new();
        for (raw, file_type) in disk::names(&open)? {
            let (shown, raw) = match String::from_utf8(raw) {
                Ok(shown) => (shown, None),
                Err(error) => (String::from_utf8_lossy(error.as_bytes()).into_owned(), Some(error.into_bytes())),
            };
            if directory.is_empty() && hidden(self.area, &shown) {
                continue;
            }
            let is_directory = raw.is_none()
                && match file_type {
                    FileType::Directory => true,
                    // Some file systems do not say.
                    FileType::Unknown => disk::look(&open, shown.as_str())?
                        .is_some_and(|stat| disk::file_type(&stat) == FileType::Directory),
                    _ => false,
                };
            names.push(Name { shown, raw, is_directory });
        }
        if let Some(last) = &self.last {
            names.retain(|name| {
                let path = path::join(&directory, &name.shown);
                if name.is_directory {
                    let inside = path + "/";
                    inside.as_str() > last.as_str() || last.starts_with(&inside)
                } else {
                    path.as_str() > last.as_str()
                }
            });
        }
        names.sort_unstable_by(Name::order);
        self.levels.push(Level { directory, names: names.into(), open: Some(open) });
        Ok(())
    }
}

impl Name {
    /// By name, a directory's with its slash.
    fn order(&self, other: &Self) -> Ordering {
        let (left, right) = (self.shown.as_bytes(), other.shown.as_bytes());
        let common = left.len().min(right.len());
        let rest = |bytes: &[u8], name: &Self| {
            bytes.get(common..).and_then(|rest| rest.first().copied()).or(name.is_directory.then_some(b'/'))
        };
        left.get(..common).cmp(&right.get(..common)).then_with(|| rest(left, self).cmp(&rest(right, other)))
    }
}

impl Level {
    fn open(&mut self, ground: &Ground, area: Area) -> Sys<Option<&OwnedFd>> {
        if self.open.is_none() {
            let Ok(Some(base)) = ground.base(area) else { return Ok(None) };
            self.open = match descend(base, &self.directory)? {
                Way::Open(open) => Some(open),
                _ => None,
            };
        }
        Ok(self.open.as_ref())
    }
}

/// A listing's prefix: empty, or a checked path; and its cursor.
pub(super) fn check_listing(area: Area, prefix: &str, cursor: Option<&str>) -> Result<(), StoreError> {
    if !prefix.is_empty() {
        RelPath::parse(area, prefix)?;
    }
    cursor.map_or(Ok(()), |cursor| path::check_cursor(area, cursor))
}

/// Joins a walk with what a pending commit adds to it or takes from it.
pub(super) struct Listing<'a> {
    pub(super) walk: Walk,
    pub(super) ground: &'a Ground,
    /// In order of path; none: not there.
    pub(super) overlay: std::iter::Peekable<std::collections::btree_map::IntoIter<String, Option<Entry>>>,
    /// An entry of the walk that comes behind one of the overlay.
    pub(super) ahead: Option<Entry>,
}

impl Listing<'_> {
    /// The next entry.
    pub(super) fn next(&mut self) -> Result<Option<Entry>, StoreError> {
        loop {
            if self.ahead.is_none() {
                self.ahead = self.walk.next(self.ground)?;
            }
            let overlaid = match (&self.ahead, self.overlay.peek()) {
                (_, None) => return Ok(self.ahead.take()),
                (Some(walked), Some((path, _))) if walked.path < *path => return Ok(self.ahead.take()),
                _ => self.overlay.next(),
            };
            if let Some((path, entry)) = overlaid {
                if self.ahead.as_ref().is_some_and(|walked| walked.path == path) {
                    self.ahead = None;
                }
                if entry.is_some() {
                    return Ok(entry);
                }
            }
        }
    }
}
