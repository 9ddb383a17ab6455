//! What the target of a footnote's link names.

use crate::ids::{SourceId, SourceRef, TopicPath, TurnRef};
use crate::text::{decode, is_whitespace};
use memchr::memchr;

/// What a topic must know of the archives beside it. Whoever has the archives implements it.
pub trait Sources {
    /// The record that has this anchor in the archive at this path within the workspace: of a v2 archive a whole frame, of
    /// an older one a line that is the anchor alone, directly followed by the source id whose anchor and path those are.
    /// None also if there is no such file, or it is not a regular one.
    fn record_at(&self, path: &str, anchor: &str) -> Option<SourceId>;
}

/// No archive.
impl Sources for () {
    fn record_at(&self, _: &str, _: &str) -> Option<SourceId> {
        None
    }
}

/// Says of every place that a record is there: for whoever has to do without the archives. Which record it is remains unknown.
#[derive(Clone, Copy, Debug)]
pub struct Anything;

impl Sources for Anything {
    fn record_at(&self, _: &str, anchor: &str) -> Option<SourceId> {
        // Which record is not asked; that one is meant, the anchor's form says.
        let digits = anchor.strip_prefix("source-")?;
        let is_anchor = digits.len() == 16 && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
        is_anchor.then(|| SourceId::parse("any/any/any").ok())?
    }
}

/// What a link's target says, white space at its ends left out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SourceTarget<'a> {
    /// A record's id or a turn: `openprogram/s/m1`, `D3:7`.
    Handle(SourceRef),
    /// A place in a file: `../sources/openprogram/_v2/s.md#source-0123456789abcdef`.
    Place {
        /// Relative to the topic, as it is written.
        path: &'a str,
        /// Behind the first `#`.
        fragment: &'a str,
    },
    /// Anything else. It names no source.
    Other,
}

impl<'a> SourceTarget<'a> {
    /// Reads a target.
    pub fn parse(target: &'a str) -> Self {
        let target = target.trim_matches(is_whitespace);
        // No handle has a `#`.
        if let Some(hash) = memchr(b'#', target.as_bytes()) {
            let fragment = target.get(hash + 1..).unwrap_or_default();
            return Self::Place { path: target.get(..hash).unwrap_or_default(), fragment };
        }
        SourceRef::parse(target).map_or(Self::Other, Self::Handle)
    }

    /// The evidence it names, for a topic at this path. Of a handle and of a turn's anchor, only the form is looked at:
    /// whether there is such a record is a question of whoever adds one.
    pub fn resolve(self, topic: &TopicPath, sources: &(impl Sources + ?Sized)) -> Option<SourceRef> {
        self.locate(topic, sources).map(|(evidence, _)| evidence)
    }

    /// The same, and the path within the workspace of the archive that a place leads to.
    pub(super) fn locate(
        &self,
        topic: &TopicPath,
        sources: &(impl Sources + ?Sized),
    ) -> Option<(SourceRef, Option<String>)> {
        match self {
            Self::Handle(handle) => Some((handle.clone(), None)),
            Self::Place { path, fragment } => {
                let find = |archive: &str| Some((sources.record_at(archive, fragment)?, Some(archive.to_owned())));
                let record = Self::archive(path, topic, find);
                let turn = || TurnRef::in_fragment(fragment).map(|turn| (SourceRef::Turn(turn), None));
                record.map(|(id, path)| (SourceRef::Record(id), path)).or_else(turn)
            }
            Self::Other => None,
        }
    }

    /// What a place named before its file was moved: the record with that anchor in the archive which the path names from
    /// `sources/` on, wherever it led.
    pub(super) fn locate_moved(&self, sources: &(impl Sources + ?Sized)) -> Option<(SourceRef, Option<String>)> {
        let Self::Place { path, fragment } = self else { return None };
        let find = |path: &str| {
            let starts = path.match_indices("sources/").map(|(at, _)| at);
            let mut parts = starts.filter(|at| *at == 0 || path.as_bytes().get(at - 1) == Some(&b'/'));
            parts.find_map(|at| {
                let archive = path.get(at..)?;
                Some((SourceRef::Record(sources.record_at(archive, fragment)?), Some(archive.to_owned())))
            })
        };
        find(path).or_else(|| find(&decode(path)?))
    }

    /// What `find` makes of the path within the workspace that `path` leads to, as it is written and, failing that, percent
    /// decoded: names of archives hold percent signs, which links of some programs encode once more.
    fn archive<T>(path: &str, topic: &TopicPath, find: impl Fn(&str) -> Option<T>) -> Option<T> {
        let within = |path: &str| topic.join(path).filter(|path| path.starts_with("sources/"));
        within(path).and_then(|path| find(&path)).or_else(|| {
            let decoded = decode(path).filter(|decoded| decoded != path)?;
            within(&decoded).and_then(|path| find(&path))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Archive;

    impl Sources for Archive {
        fn record_at(&self, path: &str, anchor: &str) -> Option<SourceId> {
            let id = match (path, anchor) {
                ("sources/p/_v2/t.md", "source-1") => "p/t/m",
                ("sources/p/_v2/a%20b.md", "source-2") => "p/a b/m",
                ("topics/a.md", "source-3") => "no/archive/here",
                _ => return None,
            };
            SourceId::parse(id).ok()
        }
    }

    fn resolve(target: &str) -> Option<String> {
        let topic = TopicPath::parse("topics/x/a.md").expect("a topic");
        SourceTarget::parse(target).resolve(&topic, &Archive).map(|found| found.to_string())
    }

    #[test]
    fn places_of_files_that_moved() {
        let moved =
            |target: &str| SourceTarget::parse(target).locate_moved(&Archive).map(|(found, _)| found.to_string());
        for target in
            ["sources/p/_v2/t.md#source-1", "../sources/p/_v2/t.md#source-1", "x/../../../sources/p/_v2/t.md#source-1"]
        {
            assert_eq!(moved(target).as_deref(), Some("p/t/m"), "{target}");
        }
        assert_eq!(moved("../sources/p/_v2/a%2520b.md#source-2").as_deref(), Some("p/a b/m"));
        for target in ["../resources/p/_v2/t.md#source-1", "../sources/p/_v2/t.md#source-9", "p/t/m", "D1:2"] {
            assert_eq!(moved(target), None, "{target}");
        }
    }

    #[test]
    fn targets() {
        for (target, found) in [
            (" p/none/m ", "p/none/m"),
            ("D9:9", "D9:9"),
            ("../../sources/p/_v2/t.md#source-1", "p/t/m"),
            ("./../.././sources//p/_v2/t.md#source-1", "p/t/m"),
            ("../../sources/p/_v2/a%20b.md#source-2", "p/a b/m"),
            ("../../sources/p/_v2/a%2520b.md#source-2", "p/a b/m"),
            ("../../sources/D1.md#d1-2", "D1:2"),
            ("http://evil/#D1-2", "D1:2"),
            ("#d1-2", "D1:2"),
            ("x#y#d1-2", "D1:2"),
        ] {
            assert_eq!(resolve(target).as_deref(), Some(found), "{target}");
        }
        for target in [
            "",
            "p/t",
            "p/t/m#x",
            "../../sources/p/_v2/t.md",
            "../../sources/p/_v2/t.md#source-2",
            "../../sources/p/_v2/t.md#source-1#",
            "../sources/p/_v2/t.md#source-1",
            "../../../sources/p/_v2/t.md#source-1",
            "/sources/p/_v2/t.md#source-1",
            "..%2F..%2F..%2Fsources/p/_v2/t.md#source-1",
            "../a.md#source-3",
            "http://example.com/a",
        ] {
            assert_eq!(resolve(target), None, "{target}");
        }
    }
}
