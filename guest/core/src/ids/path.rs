//! Paths within a workspace: relative, parts joined by `/`, case-sensitive.

use super::mention::numbered_conversation;
use super::source_id::SourceId;
use super::source_ref::TurnRef;
use crate::text::{decode, encode_path_part};
use core::cmp::Ordering;

/// Whether a path belongs to the program or to version control and not to memory: its first part is `.git`,
/// `.scriptorium` or `.nativemem`, or one of the latter two followed by `-`.
pub fn is_internal_path(path: &str) -> bool {
    let first = path.split('/').next().unwrap_or_default();
    first == ".git"
        || [".scriptorium", ".nativemem"]
            .iter()
            .any(|name| first.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with('-')))
}

/// Whether a file is made from others, so that editing it is in vain: `timeline/`, `recent_events.jsonl`,
/// `relations.json`.
pub fn is_derived_path(path: &str) -> bool {
    path.starts_with("timeline/") || matches!(path, "recent_events.jsonl" | "relations.json")
}

/// Whether a path is a v2 archive's: behind an optional `sources` at least three parts, the file's directory named `_v2`.
pub fn is_v2_path(path: &str) -> bool {
    let path = path.strip_prefix("sources/").unwrap_or(path);
    let mut parts = path.rsplit('/');
    parts.next().is_some() && parts.next() == Some("_v2") && parts.next().is_some()
}

/// The v2 archive whose branches the file at `path` keeps: `sources/p/_v2/t.md` for `sources/p/_branches/t.jsonl`. None if
/// it is no such file.
pub fn archive_of_branches(path: &str) -> Option<String> {
    let (provider, file) = path.strip_prefix("sources/")?.split_once("/_branches/")?;
    let thread = file.strip_suffix(".jsonl")?;
    let plain = |part: &str| !part.is_empty() && !part.contains('/');
    (plain(provider) && plain(thread)).then(|| format!("sources/{provider}/_v2/{thread}.md"))
}

/// The order of files in a revision: part by part, each by code points. `a/z.md` comes before `a-b.md`.
pub fn path_order(a: &str, b: &str) -> Ordering {
    // Code points are in the order of their bytes. A part that ends comes before one that goes on, and a path that ends
    // before one that has a further part. Sorting paths is most of what a revision costs: so no part is looked for.
    let differ = a.bytes().zip(b.bytes()).find(|(a, b)| a != b);
    match differ {
        Some((b'/', _)) => Ordering::Less,
        Some((_, b'/')) => Ordering::Greater,
        Some((a, b)) => a.cmp(&b),
        None => a.len().cmp(&b.len()),
    }
}

/// The place of one v2 archive, and what the ids in it must begin with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Location {
    path: String,
    prefix: Option<String>,
}

impl Location {
    /// The location a path within a workspace stands for. Any path is accepted; to one that no source id maps to,
    /// no record belongs.
    pub fn of_path(path: &str) -> Self {
        Self { path: path.to_owned(), prefix: id_prefix(path) }
    }

    /// The location of a source id.
    pub fn of_id(id: &SourceId) -> Self {
        Self { path: id.v2_path(), prefix: Some(format!("{}/{}/", id.provider(), id.thread())) }
    }

    /// Finds the archive location in a path given from anywhere: `/x/y/sources/p/_v2/t.md` and `p/_v2/t.md` both name
    /// `sources/p/_v2/t.md`. None if the path does not end like an archive's.
    pub fn in_given_path(path: &str) -> Option<Self> {
        let mut parts = path.rsplit('/');
        let (file, directory, provider) = (parts.next()?, parts.next()?, parts.next()?);
        if directory != "_v2" || provider.is_empty() || !file.ends_with(".md") {
            return None;
        }
        Some(Self::of_path(&format!("sources/{provider}/_v2/{file}")))
    }

    /// Where it lies in a workspace.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// `provider/thread/`: what every id in this file begins with. None: no id maps here.
    pub fn id_prefix(&self) -> Option<&str> {
        self.prefix.as_deref()
    }

    /// Whether the record with this id belongs here.
    pub fn holds(&self, id: &str) -> bool {
        self.prefix.as_deref().and_then(|prefix| id.strip_prefix(prefix)).is_some_and(|message| !message.is_empty())
    }
}

/// What a file of the older form may name: the records of one conversation, the turns of one numbered conversation, or
/// both (`sources/x/D1.md`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LegacyLocation {
    prefix: Option<String>,
    conversation: Option<String>,
}

impl LegacyLocation {
    /// Of a path within a workspace. Any path is accepted; one that nothing maps to names nothing.
    pub fn of_path(path: &str) -> Self {
        Self { prefix: prefix_at(path, "/"), conversation: numbered_conversation(path).map(str::to_owned) }
    }

    /// Whether the record with this id belongs here.
    pub fn holds(&self, id: &str) -> bool {
        self.prefix.as_deref().and_then(|prefix| id.strip_prefix(prefix)).is_some_and(|message| !message.is_empty())
    }

    /// Whether the turn with this reference belongs here.
    pub fn holds_turn(&self, turn: &TurnRef) -> bool {
        self.conversation.as_deref() == Some(turn.conversation())
    }
}

/// The file of the older form that may hold records with the same ids as this v2 archive. None if the path is none of a
/// v2 archive.
pub fn legacy_twin(path: &str) -> Option<String> {
    let (directory, file) = path.rsplit_once('/').filter(|_| is_v2_path(path))?;
    Some(format!("{}{file}", directory.strip_suffix("_v2")?))
}

/// What ids at this path begin with, if the path is exactly what some id maps to.
fn id_prefix(path: &str) -> Option<String> {
    prefix_at(path, "/_v2/")
}

/// The same, where `between` stands between provider and thread.
fn prefix_at(path: &str, between: &str) -> Option<String> {
    let (provider, file) = path.strip_prefix("sources/")?.split_once(between)?;
    let thread = file.strip_suffix(".md")?;
    let prefix = format!("{}/{}/", decode(provider)?, decode(thread)?);
    let exact = SourceId::parse(&format!("{prefix}m")).is_ok_and(|id| {
        encode_path_part(id.provider()) == provider && encode_path_part(id.thread()) == thread && id.message() == "m"
    });
    exact.then_some(prefix)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn internal() {
        for path in [".git/x", ".scriptorium", ".scriptorium/runtime.json", ".scriptorium-bm25.json", ".nativemem-x/y"]
        {
            assert!(is_internal_path(path), "{path}");
        }
        for path in [".scriptoriumx", "topics/.git/x", ".gitignore", "a/.scriptorium", ".git-x"] {
            assert!(!is_internal_path(path), "{path}");
        }
    }

    #[test]
    fn v2_paths() {
        for path in ["sources/p/_v2/t.md", "p/_v2/t.md", "sources/a/b/_v2/t.md", "sources/_v2/_v2/t.md"] {
            assert!(is_v2_path(path), "{path}");
        }
        for path in ["sources/_v2/t.md", "_v2/t.md", "sources/p/_V2/t.md", "sources/p/t.md", "sources/p/_v2/x/t.md"] {
            assert!(!is_v2_path(path), "{path}");
        }
    }

    #[test]
    fn branches_and_their_archives() {
        let id = SourceId::parse("a b/你/m/1").expect("well formed");
        assert_eq!(archive_of_branches(&id.branches_path()), Some(id.v2_path()));
        for path in
            ["sources/p/_branches/t.md", "sources/_branches/t.jsonl", "p/_branches/t.jsonl", "sources/p/_v2/t.md"]
        {
            assert_eq!(archive_of_branches(path), None, "{path}");
        }
        assert_eq!(archive_of_branches("sources/a/b/_branches/t.jsonl"), None);
        assert_eq!(archive_of_branches("sources/p/_branches/t/u.jsonl"), None);
    }

    #[test]
    fn order_is_by_parts() {
        let mut paths = ["a.md", "a-b.md", "a/z.md", "B"];
        paths.sort_by(|a, b| path_order(a, b));
        assert_eq!(paths, ["B", "a/z.md", "a-b.md", "a.md"]);
        let paths = [
            "",
            "/",
            "a",
            "a/",
            "a//b",
            "a/b",
            "a\0",
            "a-b",
            "a/-",
            "ab",
            "a/b/c",
            "é",
            "é/x",
            "e\u{301}",
            "\u{10000}",
            "\u{ffff}/",
        ];
        for a in paths {
            for b in paths {
                assert_eq!(path_order(a, b), a.split('/').cmp(b.split('/')), "{a:?} {b:?}");
            }
        }
    }

    #[test]
    fn locations() {
        for (given, path) in [
            ("/x/y/sources/p/_v2/t.md", "sources/p/_v2/t.md"),
            ("p/_v2/t.md", "sources/p/_v2/t.md"),
            ("./a/sources/_v2/_v2/a%20b.md", "sources/_v2/_v2/a%20b.md"),
        ] {
            assert_eq!(Location::in_given_path(given).expect(given).path(), path);
        }
        for given in ["t.md", "_v2/t.md", "/_v2/t.md", "p/_v2/t.txt", "sources/p/t.md", ""] {
            assert_eq!(Location::in_given_path(given), None, "{given}");
        }
        assert!(Location::of_path("sources/a%20b/_v2/...md").holds("a b/../m/n"));
        for (path, id) in [
            ("sources/p/_v2/t.md", "p/t/"),
            ("sources/p/_v2/t.md", "p/t2/m"),
            ("sources/P/_v2/t.md", "p/t/m"),
            ("sources/%70/_v2/t.md", "p/t/m"),
            ("sources/a b/_v2/t.md", "a b/t/m"),
            ("sources/%e4%bd%a0/_v2/t.md", "你/t/m"),
            ("sources/a%2Fb/_v2/t.md", "a/b/t"),
            ("sources/../_v2/t.md", "../t/m"),
            ("sources/q/p/_v2/t.md", "p/t/m"),
        ] {
            assert!(!Location::of_path(path).holds(id), "{path} {id}");
        }
    }

    #[test]
    fn legacy_locations() {
        assert!(LegacyLocation::of_path("sources/a%20b/c.md").holds("a b/c/m/n"));
        assert!(LegacyLocation::of_path("sources/_v2/x.md").holds("_v2/x/y"));
        for (path, id) in [
            ("sources/p/t.md", "p/t/"),
            ("sources/p/t.md", "p/other/m"),
            ("sources/%70/t.md", "p/t/m"),
            ("sources/p/q/t.md", "p/q/t"),
            ("sources/t.md", "t/x/m"),
            ("sources/../t.md", "../t/m"),
        ] {
            assert!(!LegacyLocation::of_path(path).holds(id), "{path} {id}");
        }
        let turn = TurnRef::parse("D1:2").expect("a reference");
        assert!(LegacyLocation::of_path("sources/D1.md").holds_turn(&turn));
        assert!(LegacyLocation::of_path("sources/x/D1.md").holds_turn(&turn));
        assert!(!LegacyLocation::of_path("sources/D2.md").holds_turn(&turn));
        assert!(!LegacyLocation::of_path("sources/notes.md").holds_turn(&turn));
    }

    #[test]
    fn twins() {
        assert_eq!(legacy_twin("sources/p/_v2/t.md").as_deref(), Some("sources/p/t.md"));
        assert_eq!(legacy_twin("sources/_v2/_v2/t.md").as_deref(), Some("sources/_v2/t.md"));
        assert_eq!(legacy_twin("sources/p/t.md"), None);
        let id = SourceId::parse("a b/你/m").expect("well formed");
        assert_eq!(legacy_twin(&id.v2_path()), Some(id.legacy_path()));
    }

    #[test]
    fn location_of_an_id() {
        let id = SourceId::parse("a b/你/m/1").expect("well formed");
        assert_eq!(Location::of_id(&id), Location::of_path(&id.v2_path()));
        assert!(Location::of_id(&id).holds(id.as_str()));
    }
}
