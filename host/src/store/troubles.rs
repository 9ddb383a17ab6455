//! What a directory's store tells its readers: a commit that is not in place, what was kept aside, another program's half
//! install, names that are one to some file systems.
//!
//! Knows the store's own directory, and asks the lock whether a writer is at work. Reads names, never a file's content.
//! Who else may read a workspace is not told here: another program makes its files as the user's mask says, and every
//! look at such a workspace would find it. Must not know what is worth a finding, or how to cure anything.

use std::collections::HashMap;
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::FileType;
use rustix::io::Errno;

use super::ground::{Way, descend};
use super::path::{self, fold, hidden};
use super::{Area, Directory, JournalState, KeptEdit, StoreError, Trouble, disk, journal, place};
use crate::lock::{FileLock, Lock as _};

/// What OpenProgram moves files to while it installs new ones, in the workspace's root.
const BLOCK_BACKUP: &str = ".scriptorium-block-backup";

impl Directory {
    /// Everything that is to be told, whoever is at work.
    pub(super) fn look_for_troubles(&self) -> Result<Vec<Trouble>, StoreError> {
        let is_held = FileLock::new(self.root()).current().is_ok_and(|holder| holder.is_some());
        self.troubles_beside(is_held)
    }

    /// The same. `is_held`: a writer is at work, so that what it has not finished is no trouble.
    pub(crate) fn troubles_beside(&self, is_held: bool) -> Result<Vec<Trouble>, StoreError> {
        let mut found = Vec::new();
        found.extend(self.journal_trouble(is_held)?);
        self.kept_troubles(&mut found)?;
        if !is_held && self.root().join(BLOCK_BACKUP).symlink_metadata().is_ok() {
            found.push(Trouble {
                code: "half-install",
                path: Some(BLOCK_BACKUP.to_owned()),
                message:
                    "another program stopped while it was installing new files; the ones it replaced lie here: start \
                          that program once, or compare and move them back"
                        .to_owned(),
            });
        }
        for (one, other) in self.path_twins()? {
            let message = format!("and {one} are one name to some file systems: rename one of them");
            found.push(Trouble { code: "path-twins", path: Some(other), message });
        }
        Ok(found)
    }

    fn journal_trouble(&self, is_held: bool) -> Result<Option<Trouble>, StoreError> {
        let (code, message) = match self.journal()? {
            JournalState::Absent | JournalState::Settled => return Ok(None),
            // Its writer is at work.
            JournalState::Pending { .. } if is_held => return Ok(None),
            JournalState::Pending { changes } => (
                "journal-pending",
                format!(
                    "a commit of {changes} changes is made and not yet in place: readers here see it, other programs do \
                     not; the next writer completes it"
                ),
            ),
            JournalState::Newer { version } => (
                "journal-newer",
                format!("a commit of a newer version (journal {version}) is unfinished: use that version once"),
            ),
            JournalState::Damaged => (
                "journal-damaged",
                "the medium damaged it, and what the last commit was to do is unknown; the next writer keeps it aside"
                    .to_owned(),
            ),
        };
        let path = Some(format!("{}/{}/{}", place::runtime_of(self.root()), path::OWN, journal::NAME));
        Ok(Some(Trouble { code, path, message }))
    }

    fn kept_troubles(&self, found: &mut Vec<Trouble>) -> Result<(), StoreError> {
        for kept in self.kept()? {
            // Within the workspace: who is told this need not know where on the machine it is.
            let place = kept.content.as_deref().unwrap_or(Path::new(""));
            let place = place.strip_prefix(self.root()).unwrap_or(place).display();
            let what = match &kept.edit {
                KeptEdit::Replace => {
                    format!("another program changed it before our version was in place, which lies in {place}")
                }
                KeptEdit::Append => {
                    format!("another program changed it before our addition was in place, which lies in {place}")
                }
                KeptEdit::Delete => "it was to be removed, and another program changed it first".to_owned(),
                KeptEdit::Move(to) => format!("it was to be moved to {to}, and another program came first"),
                KeptEdit::Journal => format!("a damaged journal, with the files it may have meant, lies in {place}"),
            };
            let erased = if kept.erases { "; what was to be erased there may still be in it" } else { "" };
            let message = format!("{what}{erased}; compare, take what is wanted, and delete what was kept aside");
            let path = Some(kept.path).filter(|path| !path.is_empty());
            found.push(Trouble { code: "recovery-conflict", path, message });
        }
        Ok(())
    }

    /// Paths of the tree that are one name to some file systems, in order, the one that sorts first first. Twins lie in one
    /// directory, so each is looked at by itself; only names are read.
    fn path_twins(&self) -> Result<Vec<(String, String)>, StoreError> {
        let Some(root) = self.place.open()? else { return Ok(Vec::new()) };
        let mut found = Vec::new();
        let mut ahead = vec![String::new()];
        while let Some(above) = ahead.pop() {
            let failed = |error| disk::store_error(error, &format!("looking through {above}"));
            let base = root.try_clone().map_err(|error| StoreError::Io(format!("opening the workspace: {error}")))?;
            let found_names = match descend(base, &above) {
                Ok(Way::Open(directory)) => disk::names(&directory).map(|names| Some((directory, names))),
                // Gone meanwhile.
                Ok(_) => Ok(None),
                Err(error) => Err(error),
            };
            let (directory, names) = match found_names {
                Ok(Some(found)) => found,
                // Not ours to look into: the listing tells.
                Ok(None) | Err(Errno::ACCESS | Errno::PERM) => continue,
                Err(error) => return Err(failed(error)),
            };
            let mut names = names
                .into_iter()
                // A name that is not UTF-8 is no path's, and no twin of one.
                .filter_map(|(name, file_type)| Some((String::from_utf8(name).ok()?, file_type)))
                .filter(|(name, _)| !(above.is_empty() && hidden(Area::Tree, name)))
                .collect::<Vec<_>>();
            names.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
            let mut spelled = HashMap::with_capacity(names.len());
            for (name, file_type) in &names {
                if let Some(known) = spelled.insert(fold(name), name) {
                    found.push((path::join(&above, known), path::join(&above, name)));
                }
                if is_directory(&directory, name, *file_type) {
                    ahead.push(path::join(&above, name));
                }
            }
        }
        found.sort();
        Ok(found)
    }
}

fn is_directory(parent: &OwnedFd, name: &str, file_type: FileType) -> bool {
    match file_type {
        FileType::Directory => true,
        // Some file systems do not say.
        FileType::Unknown => disk::look(parent, name)
            .is_ok_and(|stat| stat.is_some_and(|stat| disk::file_type(&stat) == FileType::Directory)),
        _ => false,
    }
}

/// Paths, by what some file systems take them for.
#[derive(Default)]
pub(crate) struct Twins {
    spelled: HashMap<String, String>,
}

impl Twins {
    /// Adds a path; its shortest prefix that has a twin, behind that twin, if the pair was not told yet.
    pub(crate) fn add(&mut self, path: &str) -> Option<(String, String)> {
        let mut key = String::with_capacity(path.len());
        let mut end = 0;
        for part in path.split('/') {
            if end > 0 {
                key.push('/');
                end += 1;
            }
            key.push_str(&fold(part));
            end += part.len();
            let prefix = path.get(..end).unwrap_or(path);
            match self.spelled.get(&key) {
                None => {
                    self.spelled.insert(key.clone(), prefix.to_owned());
                }
                Some(known) if known == prefix => {}
                Some(known) => {
                    let pair = (known.clone(), prefix.to_owned());
                    // The next file below the same prefix is no news.
                    self.spelled.insert(key, prefix.to_owned());
                    return Some(pair);
                }
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn twins_are_told_once_at_their_shortest_prefix() {
        let mut twins = Twins::default();
        assert_eq!(twins.add("sources/A/x.md"), None);
        assert_eq!(twins.add("sources/A/y.md"), None);
        assert_eq!(twins.add("sources/a/x.md"), Some(("sources/A".to_owned(), "sources/a".to_owned())));
        assert_eq!(twins.add("sources/a/z.md"), None);
        assert_eq!(twins.add("topics/cafe\u{301}.md"), None);
        assert_eq!(
            twins.add("topics/caf\u{e9}.md"),
            Some(("topics/cafe\u{301}.md".to_owned(), "topics/caf\u{e9}.md".to_owned()))
        );
    }

    #[test]
    fn twins_are_found_in_their_directories() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path();
        for path in ["sources/A/x.md", "sources/a/X.md", "sources/a/x.md", "b", "c", ".GIT/C", ".git/c"] {
            std::fs::create_dir_all(root.join(path).parent().unwrap()).unwrap();
            std::fs::write(root.join(path), "").unwrap();
        }
        let pair = |one: &str, other: &str| (one.to_owned(), other.to_owned());
        assert_eq!(
            Directory::new(root).path_twins(),
            Ok(vec![pair("sources/A", "sources/a"), pair("sources/a/X.md", "sources/a/x.md")])
        );
        assert_eq!(Directory::new(&root.join("none")).path_twins(), Ok(Vec::new()));
    }
}
