//! What can be wrong with a workspace besides its content, and what of it can be put right without a doubt.
//!
//! [`glance`] looks at what would make a reader or writer wonder, at the cost of a listing; [`examine`] at everything.
//! Neither changes anything. A [`Cure`] does what the next writer would do anyway, or narrows permissions, or removes
//! what can be made again.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use crate::lock::{FileLock, Holder, Lock as _, LockError};
use crate::store::{
    Area, Directory, Guard, JournalState, KeptEdit, Kind, RuntimeKind, Store as _, StoreError, WideMode, path, place,
};
use crate::types::{Finding, Severity};

/// What OpenProgram moves files to while it installs new ones, in the workspace's root.
const BLOCK_BACKUP: &str = ".scriptorium-block-backup";

/// How every cache file of this program begins.
const CACHE_MAGIC: &[u8] = b"RCLX";

/// Something that is not as it should be.
#[derive(Clone, Debug)]
pub struct Ailment {
    /// What it is.
    pub finding: Finding,
    /// What can be done about it without a doubt; none if a person must decide.
    pub cure: Option<Cure>,
}

/// What can be done without a doubt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cure {
    /// Complete a commit whose writer died, and keep aside what cannot be.
    Recover,
    /// Remove what writers that died left.
    Sweep,
    /// Take others' permissions away.
    Narrow(WideMode),
    /// Remove a file of the cache.
    DropCache(String),
}

/// The machine's side in figures.
#[derive(Clone, Debug)]
pub struct Machine {
    /// Who has the lock; none: nobody.
    pub holder: Option<Holder>,
    /// The runtime directory.
    pub runtime: RuntimeKind,
    /// The journal.
    pub journal: JournalState,
    /// What was kept aside after conflicts.
    pub kept: usize,
    /// A git repository is there.
    pub git: bool,
    /// Files of the cache,
    pub cache_files: u64,
    /// and their bytes.
    pub cache_bytes: u64,
}

/// What an examination found.
#[derive(Clone, Debug)]
pub struct Examination {
    /// What is not as it should be.
    pub ailments: Vec<Ailment>,
    /// The machine's side in figures.
    pub machine: Machine,
}

impl Cure {
    /// Does it. Repeating it does nothing.
    ///
    /// # Errors
    /// As the medium fails.
    pub fn apply(&self, store: &Directory, guard: &dyn Guard) -> Result<(), StoreError> {
        match self {
            Self::Recover => store.recover(guard).map(drop),
            Self::Sweep => store.sweep(guard),
            Self::Narrow(wide) => store.narrow(wide),
            Self::DropCache(name) => store.drop_cache(name),
        }
    }

    /// What it does, in a few words.
    #[must_use]
    pub fn describe(&self) -> String {
        match self {
            Self::Recover => "complete the commit".to_owned(),
            Self::Sweep => "remove it".to_owned(),
            Self::Narrow(wide) => format!("mode {:04o} instead of {:04o}", wide.mode & !0o077, wide.mode),
            Self::DropCache(_) => "remove it from the cache".to_owned(),
        }
    }
}

fn finding(code: &str, severity: Severity, path: Option<String>, message: impl Into<String>) -> Finding {
    Finding { code: code.to_owned(), severity, path, line: None, subject: None, excerpt: None, message: message.into() }
}

fn incurable(finding: Finding) -> Ailment {
    Ailment { finding, cure: None }
}

/// What every check of a workspace should tell besides what the component finds: a commit that is not in place, what was
/// kept aside, another program's half install, names that are one to some file systems.
///
/// # Errors
/// As the medium fails.
pub fn glance(root: &Path) -> Result<Vec<Ailment>, StoreError> {
    let store = Directory::new(root);
    let is_held = FileLock::new(root).current().is_ok_and(|holder| holder.is_some());
    glance_at(&store, is_held)
}

fn glance_at(store: &Directory, is_held: bool) -> Result<Vec<Ailment>, StoreError> {
    let root = store.root();
    let mut found = Vec::new();
    found.extend(journal(store, is_held)?);
    if is_unreadable(store)? {
        return Ok(found);
    }
    kept(store, &mut found)?;
    if !is_held && root.join(BLOCK_BACKUP).symlink_metadata().is_ok() {
        found.push(incurable(finding(
            "half-install",
            Severity::Error,
            Some(BLOCK_BACKUP.to_owned()),
            "another program stopped while it was installing new files; the ones it replaced lie here: start that \
             program once, or compare and move them back",
        )));
    }
    twins(store, &mut found)?;
    Ok(found)
}

/// Whether a newer version left something that nobody else can read past.
fn is_unreadable(store: &Directory) -> Result<bool, StoreError> {
    Ok(matches!(store.journal()?, JournalState::Newer { .. }))
}

/// Looks at everything. `locked`: the caller has the lock itself.
///
/// # Errors
/// As the medium fails.
pub fn examine(root: &Path, locked: bool) -> Result<Examination, StoreError> {
    let store = Directory::new(root);
    let mut found = Vec::new();
    let holder = if locked { None } else { lock(root, &mut found)? };
    let is_held = holder.is_some();
    found.extend(glance_at(&store, is_held)?);

    let runtime = store.runtime_kind()?;
    if runtime == RuntimeKind::Unusable {
        found.push(incurable(finding(
            "runtime-unusable",
            Severity::Error,
            Some(place::runtime_of(root).to_owned()),
            "a symbolic link or no directory: it is not opened, and nothing can be written; put a directory there",
        )));
    }
    if !is_held {
        for path in store.leftovers()? {
            let message = "left by a writer that did not finish; it is of no use";
            let finding = finding("leftover-file", Severity::Info, Some(path), message);
            found.push(Ailment { finding, cure: Some(Cure::Sweep) });
        }
    }
    for wide in store.wide_modes()? {
        let shown = if wide.path.is_empty() { ".".to_owned() } else { wide.path.clone() };
        let what = if wide.is_directory { "0700" } else { "0600" };
        let message = format!("mode {:04o}: others than the owner may use it; {what} is enough", wide.mode);
        let finding = finding("wide-mode", Severity::Warning, Some(shown), message);
        found.push(Ailment { finding, cure: Some(Cure::Narrow(wide)) });
    }
    let (cache_files, cache_bytes) = if is_unreadable(&store)? { (0, 0) } else { cache(&store, &mut found)? };
    let machine = Machine {
        holder,
        runtime,
        journal: store.journal()?,
        kept: store.kept().map(|kept| kept.len()).unwrap_or_default(),
        git: root.join(".git").symlink_metadata().is_ok(),
        cache_files,
        cache_bytes,
    };
    Ok(Examination { ailments: found, machine })
}

fn journal(store: &Directory, is_held: bool) -> Result<Option<Ailment>, StoreError> {
    let path = || Some(format!("{}/recollex/journal", place::runtime_of(store.root())));
    Ok(match store.journal()? {
        JournalState::Absent | JournalState::Settled => None,
        // Its writer is at work.
        JournalState::Pending { .. } if is_held => None,
        JournalState::Pending { changes } => Some(Ailment {
            finding: finding(
                "journal-pending",
                Severity::Warning,
                path(),
                format!(
                    "a commit of {changes} changes is made and not yet in place: readers here see it, other programs do \
                     not; the next writer completes it"
                ),
            ),
            cure: Some(Cure::Recover),
        }),
        JournalState::Newer { version } => Some(incurable(finding(
            "journal-newer",
            Severity::Error,
            path(),
            format!("a commit of a newer version (journal {version}) is unfinished: use that version once"),
        ))),
        JournalState::Damaged => Some(Ailment {
            finding: finding(
                "journal-damaged",
                Severity::Error,
                path(),
                "the medium damaged it, and what the last commit was to do is unknown; the next writer keeps it aside",
            ),
            cure: Some(Cure::Recover),
        }),
    })
}

fn kept(store: &Directory, found: &mut Vec<Ailment>) -> Result<(), StoreError> {
    for kept in store.kept()? {
        let place = kept.content.as_deref().unwrap_or(Path::new("")).display();
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
        let message = format!("{what}; compare, take what is wanted, and delete what was kept aside");
        let path = Some(kept.path).filter(|path| !path.is_empty());
        found.push(incurable(finding("recovery-conflict", Severity::Warning, path, message)));
    }
    Ok(())
}

/// Names that some file systems take for one: a copy of the workspace to such a one would lose a file.
fn twins(store: &Directory, found: &mut Vec<Ailment>) -> Result<(), StoreError> {
    for (one, other) in path_twins(store)? {
        let message = format!("and {one} are one name to some file systems: rename one of them");
        found.push(incurable(finding("path-twins", Severity::Warning, Some(other), message)));
    }
    Ok(())
}

/// The shortest prefixes that are one name to some file systems, the one that sorts first first.
pub(super) fn path_twins(store: &Directory) -> Result<Vec<(String, String)>, StoreError> {
    let mut seen = Twins::default();
    let mut found = Vec::new();
    each_entry(store, Area::Tree, &mut |entry| {
        found.extend(seen.add(&entry.path));
        Ok(())
    })?;
    Ok(found)
}

/// Paths, by what some file systems take them for.
#[derive(Default)]
pub(super) struct Twins {
    spelled: HashMap<String, String>,
}

impl Twins {
    /// Adds a path; its shortest prefix that has a twin, behind that twin, if the pair was not told yet.
    pub(super) fn add(&mut self, path: &str) -> Option<(String, String)> {
        let mut key = String::with_capacity(path.len());
        let mut end = 0;
        for part in path.split('/') {
            if end > 0 {
                key.push('/');
                end += 1;
            }
            key.push_str(&path::fold(part));
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

/// Visits an area's entries in order.
pub(super) fn each_entry(
    store: &Directory,
    area: Area,
    visit: &mut dyn FnMut(crate::store::Entry) -> Result<(), StoreError>,
) -> Result<(), StoreError> {
    let mut cursor = None;
    loop {
        let page = store.entries(area, "", cursor.as_deref(), 0)?;
        for entry in page.entries {
            visit(entry)?;
        }
        match page.next {
            Some(next) => cursor = Some(next),
            None => return Ok(()),
        }
    }
}

/// Who has the lock, and what is odd about its file.
fn lock(root: &Path, found: &mut Vec<Ailment>) -> Result<Option<Holder>, StoreError> {
    let path = PathBuf::from(place::runtime_of(root)).join(path::LOCK);
    let shown = Some(path.display().to_string());
    let metadata = root.join(&path).symlink_metadata();
    if metadata.as_ref().is_ok_and(|metadata| !metadata.is_file()) {
        let message = "not a regular file: nobody can take the lock, and nothing can be written; remove it";
        found.push(incurable(finding("lock-unusable", Severity::Error, shown, message)));
        return Ok(None);
    }
    let holder = match FileLock::new(root).current() {
        Ok(holder) => holder,
        Err(LockError::Denied(_) | LockError::Held(_)) => None,
        Err(LockError::Io(text)) => return Err(StoreError::Io(text)),
    };
    if let Some(holder) = &holder {
        let who = holder.process.map_or_else(|| "another process".to_owned(), |process| format!("process {process}"));
        let why = holder.purpose.as_ref().map(|purpose| format!(" ({purpose})")).unwrap_or_default();
        let message = format!("{who}{why} is writing; it gives the lock back when it ends, in whatever way");
        found.push(incurable(finding("lock-held", Severity::Info, shown, message)));
    } else if metadata.is_ok_and(|metadata| metadata.len() > 0) {
        let message = "the lock's file holds something; it means nothing and does no harm";
        found.push(incurable(finding("lock-content", Severity::Info, shown, message)));
    }
    Ok(holder)
}

/// Looks at the cache files' first bytes: what they say further on is the component's to judge.
fn cache(store: &Directory, found: &mut Vec<Ailment>) -> Result<(u64, u64), StoreError> {
    let (mut files, mut bytes) = (0, 0);
    each_entry(store, Area::Cache, &mut |entry| {
        if entry.kind != Kind::File {
            return Ok(());
        }
        files += 1;
        bytes += entry.stamp.size;
        let begin = match store.read_bytes(Area::Cache, &entry.path, None, 0, CACHE_MAGIC.len() as u32) {
            Ok(chunk) => chunk.data,
            // Gone, or replaced meanwhile: others may be at work.
            Err(StoreError::NotFound | StoreError::Changed) => return Ok(()),
            Err(error) => return Err(error),
        };
        if begin != CACHE_MAGIC {
            let shown = format!("{}/{}", path::CACHE, entry.path);
            let message = "no cache of this program, or a damaged one; it is of no use";
            let finding = finding("damaged-cache", Severity::Warning, Some(shown), message);
            found.push(Ailment { finding, cure: Some(Cure::DropCache(entry.path)) });
        }
        Ok(())
    })?;
    Ok((files, bytes))
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
}
