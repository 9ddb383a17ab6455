//! Paths as the contract has them: checked once, before anything is opened.
//!
//! Knows what a path may look like, which first parts belong to the program itself, and which spellings some file
//! systems take for one name. Must not touch the disk.

use caseless::Caseless as _;
use unicode_normalization::UnicodeNormalization as _;

use super::{Area, StoreError};

/// The longest part of a path, in bytes, that common file systems can hold.
pub(crate) const MAX_PART: usize = 255;

/// The longest path, in bytes. What lies deeper is listed as [`Kind::Special`](super::Kind::Special) and never opened.
pub(crate) const MAX_PATH: usize = 4096;

/// The directory in the runtime directory that is the store's own: journal, staged files, the lock's holder.
pub(crate) const OWN: &str = "recollex";

/// The file in the runtime directory that every writer locks.
pub(crate) const LOCK: &str = "write.lock";

/// The directory of [`Area::Cache`], in the workspace's root.
pub(crate) const CACHE: &str = ".scriptorium-recollex";

/// How temporary files in the cache directory begin.
pub(crate) const TEMPORARY: &str = ".tmp-";

/// A relative path without `..`, empty parts or NUL, outside what its area hides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RelPath<'a>(&'a str);

impl<'a> RelPath<'a> {
    /// Checks `path` for use in `area`.
    ///
    /// # Errors
    /// [`StoreError::Denied`], saying what is wrong.
    pub(crate) fn parse(area: Area, path: &'a str) -> Result<Self, StoreError> {
        let denied = |what: &str| Err(StoreError::Denied(what.to_owned()));
        if path.is_empty() {
            return denied("the path is empty");
        }
        if path.len() > MAX_PATH {
            return denied("the path is longer than 4096 bytes");
        }
        if path.starts_with('/') {
            return denied("the path is absolute");
        }
        if path.contains('\0') {
            return denied("the path holds a NUL");
        }
        for part in path.split('/') {
            match part {
                "" => return denied("the path has an empty part"),
                "." | ".." => return denied("the path has a part . or .."),
                _ if part.len() > MAX_PART => return denied("a part of the path is longer than 255 bytes"),
                _ => {}
            }
        }
        let first = path.split('/').next().unwrap_or(path);
        if hidden(area, first) {
            return denied("the path is internal");
        }
        Ok(Self(path))
    }

    /// The whole path.
    pub(crate) fn as_str(self) -> &'a str {
        self.0
    }

    /// Its parts; at least one.
    pub(crate) fn parts(self) -> impl DoubleEndedIterator<Item = &'a str> {
        self.0.split('/')
    }

    /// The last part.
    pub(crate) fn name(self) -> &'a str {
        self.0.rsplit('/').next().unwrap_or(self.0)
    }

    /// All but the last part; empty: the area's own directory.
    pub(crate) fn parent(self) -> &'a str {
        self.0.rsplit_once('/').map_or("", |(parent, _)| parent)
    }
}

/// Checks where a listing is to go on: behind a path that need not exist, or could. Longer than a path may be it can be
/// too, since a listing shows names that nothing opens; with a slash at its end it is behind the directory's own name.
///
/// # Errors
/// [`StoreError::Denied`], saying what is wrong.
pub(crate) fn check_cursor(area: Area, cursor: &str) -> Result<(), StoreError> {
    let denied = |what: &str| Err(StoreError::Denied(format!("the cursor {what}")));
    if cursor.is_empty() {
        return Ok(());
    }
    if cursor.contains('\0') {
        return denied("holds a NUL");
    }
    let path = cursor.strip_suffix('/').unwrap_or(cursor);
    if path.split('/').any(|part| matches!(part, "" | "." | "..")) {
        return denied("is no path within the workspace");
    }
    if hidden(area, path.split('/').next().unwrap_or(path)) {
        return denied("is internal");
    }
    Ok(())
}

/// Joins a directory's path, empty for the area's own, and a name.
pub(crate) fn join(directory: &str, name: &str) -> String {
    if directory.is_empty() { name.to_owned() } else { format!("{directory}/{name}") }
}

/// Whether `first`, as the first part of a path, is hidden in `area`.
///
/// In the tree, `.git` and the directories that keep a program's state: observed names, and for safety every spelling
/// that some file system takes for one of them. In the other areas, the store's own files.
pub(crate) fn hidden(area: Area, first: &str) -> bool {
    match area {
        Area::Tree => {
            // Only names that begin with a full stop can be internal; all others need no folding.
            first.starts_with('.') && {
                let key = fold(first);
                key == ".git"
                    || [".scriptorium", ".nativemem"].iter().any(|internal| {
                        key.strip_prefix(internal).is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
                    })
            }
        }
        Area::Runtime => {
            let key = fold(first);
            key == OWN || key == LOCK
        }
        Area::Cache => first.starts_with(TEMPORARY),
    }
}

/// What two spellings have in common if a file system may take them for one name: NFC, full case folding, NFC.
pub(crate) fn fold(part: &str) -> String {
    if part.is_ascii() {
        return part.to_ascii_lowercase();
    }
    // Folding can undo the composition ("ΐ" folds to three characters), hence the second pass.
    part.nfc().default_case_fold().collect::<String>().nfc().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_plain_relative_paths_pass() {
        for good in ["a", "sources/p/_v2/t.md", "topics/.git/x.md", ".scriptoriumx", ".gitignore", "a b/ü\n.md", "..a"]
        {
            assert!(RelPath::parse(Area::Tree, good).is_ok(), "{good:?}");
        }
        let long = "a".repeat(256);
        let deep = "a/".repeat(2048) + "b";
        for bad in [
            "",
            "/",
            "/a",
            "a/",
            "a//b",
            ".",
            "..",
            "a/../b",
            "./a",
            "a/.",
            "a\0b",
            &long,
            &deep,
            ".git",
            ".git/config",
            ".GIT/config",
            ".scriptorium",
            ".scriptorium/x",
            ".scriptorium-bm25.json",
            ".Scriptorium/x",
            ".nativemem",
            ".nativemem-bm25.json",
            ".ſcriptorium/x",
        ] {
            assert!(matches!(RelPath::parse(Area::Tree, bad), Err(StoreError::Denied(_))), "{bad:?}");
        }
        assert!(RelPath::parse(Area::Tree, &"a".repeat(255)).is_ok());
    }

    #[test]
    fn the_stores_own_files_are_hidden_where_they_lie() {
        for bad in ["recollex", "recollex/journal", "Recollex/journal", "write.lock"] {
            assert!(RelPath::parse(Area::Runtime, bad).is_err(), "{bad:?}");
            assert!(RelPath::parse(Area::Tree, bad).is_ok(), "{bad:?}");
        }
        assert!(RelPath::parse(Area::Runtime, "recollex.json").is_ok());
        assert!(RelPath::parse(Area::Cache, ".tmp-1").is_err());
    }

    #[test]
    fn spellings_fold_together() {
        for (left, right) in [
            ("SESS-1.md", "sess-1.md"),
            ("caf\u{e9}", "cafe\u{301}"),
            ("CAFE\u{301}", "caf\u{e9}"),
            ("Stra\u{df}e", "STRASSE"),
            ("\u{212a}", "k"),
            ("\u{fb03}", "ffi"),
            ("\u{390}", "\u{3b9}\u{308}\u{301}"),
            ("\u{3a3}", "\u{3c2}"),
            ("\u{1fb4}", "\u{3b1}\u{345}\u{301}"),
        ] {
            assert_eq!(fold(left), fold(right), "{left} {right}");
        }
        for (left, right) in [("a", "b"), ("i", "\u{131}"), ("caf\u{e9}", "cafe"), ("_v2", "_v3")] {
            assert_ne!(fold(left), fold(right), "{left} {right}");
        }
    }

    #[test]
    fn a_path_comes_apart() {
        let path = RelPath::parse(Area::Tree, "sources/p/t.md").unwrap();
        assert_eq!((path.parent(), path.name()), ("sources/p", "t.md"));
        assert_eq!(path.parts().collect::<Vec<_>>(), ["sources", "p", "t.md"]);
        assert_eq!(RelPath::parse(Area::Tree, "core.md").unwrap().parent(), "");
    }
}
