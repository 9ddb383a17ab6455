//! The archives of a row's workspace, as a topic sees them.

use std::collections::BTreeMap;

use recollex_core::ids::{Location, SourceId, is_v2_path};
use recollex_core::source::{Limits, Scanner};
use recollex_core::topic::Sources;

/// Which record has which anchor in which file.
#[derive(Debug, Default)]
pub(crate) struct Archives {
    records: BTreeMap<(String, String), SourceId>,
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

    fn add(&mut self, path: &str, id: SourceId) {
        self.records.insert((path.to_owned(), id.anchor()), id);
    }

    fn scan(&mut self, path: &str, bytes: &[u8]) {
        let mut ids = Vec::new();
        let mut scanner = Scanner::new(Some(Location::of_path(path)), &Limits::default());
        scanner.push_bytes(bytes, &mut |frame| ids.push(frame.id.to_owned()));
        scanner.finish(&mut |frame| ids.push(frame.id.to_owned()));
        ids.iter().filter_map(|id| SourceId::parse(id).ok()).for_each(|id| self.add(path, id));
    }

    /// An anchor line directly followed by its source id.
    fn scan_older(&mut self, path: &str, text: &str) {
        let lines: Vec<&str> = text.split('\n').map(str::trim).collect();
        for pair in lines.windows(2) {
            let anchor = pair[0].strip_prefix("<a id=\"").and_then(|rest| rest.strip_suffix("\"></a>"));
            let id = pair[1].strip_prefix("<!-- source-id:").and_then(|rest| rest.strip_suffix("-->"));
            let id = id.and_then(|id| SourceId::parse(id.trim()).ok());
            if let Some(id) = id.filter(|id| id.legacy_path() == path && anchor == Some(&id.anchor())) {
                self.add(path, id);
            }
        }
    }
}

impl Sources for Archives {
    fn record_at(&self, path: &str, anchor: &str) -> Option<SourceId> {
        self.records.get(&(path.to_owned(), anchor.to_owned())).cloned()
    }
}
