//! The archives of a row's workspace, as a topic sees them.

use std::collections::BTreeMap;

use recollex_core::ids::{Location, SourceId, SourceRef, TurnRef, is_v2_path};
use recollex_core::source::{Limits, Scanner, Trust};
use recollex_core::topic::Sources;
use recollex_core::topic::edit::{Evidence, Kept};

/// Which record has which anchor in which file, and what may be built on.
#[derive(Debug, Default)]
pub(crate) struct Archives {
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
            } else if let Ok(text) = core::str::from_utf8(bytes) {
                archives.scan_older(path, text);
            }
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
        let mut sink = |frame: &recollex_core::source::FrameRef<'_>| {
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

    /// An anchor line directly followed by its source id, and anchors of turns.
    fn scan_older(&mut self, path: &str, text: &str) {
        let lines: Vec<&str> = text.split('\n').map(str::trim).collect();
        let anchors: Vec<Option<&str>> = lines
            .iter()
            .map(|line| line.strip_prefix("<a id=\"").and_then(|rest| rest.strip_suffix("\"></a>")))
            .collect();
        for anchor in anchors.iter().flatten() {
            if let Some(turn) = TurnRef::in_fragment(anchor).filter(|turn| turn.path() == path) {
                self.kept.insert(turn.as_str().to_owned(), Kept { path: path.to_owned(), trusted: true });
            }
        }
        for (anchor, line) in anchors.iter().zip(lines.iter().skip(1)) {
            let id = line.strip_prefix("<!-- source-id:").and_then(|rest| rest.strip_suffix("-->"));
            let id = id.and_then(|id| SourceId::parse(id.trim()).ok());
            if let Some(id) = id.filter(|id| id.legacy_path() == path && *anchor == Some(&id.anchor())) {
                self.add(path, id, true);
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
