//! The archives of a row's workspace, as a topic sees them.

use std::collections::BTreeMap;

use recollex_core::ids::{Location, SourceId, SourceRef, is_v2_path};
use recollex_core::source::{FrameRef, LegacyItem, LegacyKind, LegacyScanner, Limits, Scanner, Trust};
use recollex_core::topic::Sources;
use recollex_core::topic::edit::{Evidence, Kept};

/// Which record has which anchor in which file, and what may be built on.
#[derive(Debug, Default)]
pub struct Archives {
    records: BTreeMap<(String, String), SourceId>,
    /// The v2 archive of a record is kept where both kinds have it.
    kept: BTreeMap<String, Kept>,
}

impl Archives {
    /// Of these files; those that are no archives do not matter.
    pub(crate) fn new<'a>(files: impl Iterator<Item = (&'a str, &'a [u8])>) -> Self {
        let mut archives = Self::default();
        for (path, bytes) in files.filter(|(path, _)| path.starts_with("sources/") && path.ends_with(".md")) {
            if is_v2_path(path) {
                archives.scan(path, bytes);
            } else {
                archives.scan_older(path, bytes);
            }
        }
        archives
    }

    /// With these records, of which nobody has read the archives.
    pub(crate) fn trusted(ids: impl IntoIterator<Item = SourceId>) -> Self {
        let mut archives = Self::default();
        for id in ids {
            archives.add(&id.v2_path(), id.clone(), true);
        }
        archives
    }

    fn add(&mut self, path: &str, id: SourceId, trusted: bool) {
        let kept = Kept { path: path.to_owned(), trusted };
        if is_v2_path(path) || !self.kept.contains_key(id.as_str()) {
            self.kept.insert(id.as_str().to_owned(), kept);
        }
        self.records.insert((path.to_owned(), id.anchor()), id);
    }

    fn scan(&mut self, path: &str, bytes: &[u8]) {
        let mut found = Vec::new();
        let mut scanner = Scanner::new(Some(Location::of_path(path)), &Limits::default());
        let mut sink = |frame: &FrameRef<'_>| {
            found.push((frame.id.to_owned(), frame.trust() == Trust::Trusted));
        };
        scanner.push_bytes(bytes, &mut sink);
        scanner.finish(&mut sink);
        for (id, trusted) in found {
            if let Ok(id) = SourceId::parse(&id) {
                self.add(path, id, trusted);
            }
        }
    }

    fn scan_older(&mut self, path: &str, bytes: &[u8]) {
        let mut found = Vec::new();
        let mut scanner = LegacyScanner::new(path, &Limits::default());
        let mut sink = |item: LegacyItem<'_>| match item {
            LegacyItem::Found(legacy) if legacy.kind != LegacyKind::Mention => found.push(legacy.id.to_owned()),
            LegacyItem::Found(_) | LegacyItem::Wrong(..) => {}
        };
        scanner.push_bytes(bytes, &mut sink);
        scanner.finish(&mut sink);
        for id in found {
            match SourceId::parse(&id) {
                Ok(id) => self.add(path, id, true),
                Err(_) => drop(self.kept.insert(id, Kept { path: path.to_owned(), trusted: true })),
            }
        }
    }
}

impl Evidence for Archives {
    fn look_up(&self, evidence: &SourceRef) -> Option<Kept> {
        self.kept.get(evidence.as_str()).cloned()
    }
}

impl Sources for Archives {
    fn record_at(&self, path: &str, anchor: &str) -> Option<SourceId> {
        self.records.get(&(path.to_owned(), anchor.to_owned())).cloned()
    }
}
