//! What can be wrong with a workspace besides its content, and what of it can be put right without a doubt.
//!
//! [`glance`] looks at what would make a reader or writer wonder, at the cost of a listing; [`examine`] at everything.
//! Neither changes anything. A [`Cure`] does what the next writer would do anyway, or narrows permissions, or removes
//! what can be made again.

use std::path::{Path, PathBuf};

use crate::lock::{FileLock, Holder, Lock as _, LockError};
use crate::store::{
    Area, Directory, Guard, JournalState, Kind, RuntimeKind, Store as _, StoreError, Trouble, WideMode, path, place,
};
use crate::types::{Finding, Severity};

/// How cache files of this program begin, but for [`SUMS`].
const CACHE_MAGIC: &[u8] = b"RCLX";
/// Files that hold hash values, so many bytes each, and nothing else.
const SUMS: &str = ".chunks";
const SUM_BYTES: u64 = 32;

/// Something that is not as it should be.
#[derive(Clone, Debug)]
pub struct Ailment {
    /// What it is.
    pub finding: Finding,
    /// What can be done about it without a doubt; none if a person must decide.
    pub cure: Option<Cure>,
    /// The store tells it to everyone ([`Store::troubles`](crate::store::Store::troubles)): `verify` finds it too.
    pub by_store: bool,
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
    Ailment { finding, cure: None, by_store: false }
}

/// What the store tells, and what can be done about it.
fn told_by_store(store: &Directory, is_held: bool) -> Result<Vec<Ailment>, StoreError> {
    let ailment = |Trouble { code, path, message }| {
        let cure = matches!(code, "journal-pending" | "journal-damaged").then_some(Cure::Recover);
        Ailment { finding: finding(code, Severity::Warning, path, message), cure, by_store: true }
    };
    Ok(store.troubles_beside(is_held)?.into_iter().map(ailment).collect())
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
    found.extend(told_by_store(&store, is_held)?);

    let runtime = store.runtime_kind()?;
    if runtime == RuntimeKind::Unusable {
        found.push(incurable(finding(
            "runtime-unusable",
            Severity::Error,
            Some(place::runtime_of(root).to_owned()),
            "a symbolic link, no directory, or one that may not be opened: nothing can be written; put a directory there \
             that you may open",
        )));
    }
    if !is_held {
        for path in store.leftovers()? {
            let message = "left by a writer that did not finish; it is of no use";
            let finding = finding("leftover-file", Severity::Info, Some(path), message);
            found.push(Ailment { finding, cure: Some(Cure::Sweep), by_store: false });
        }
    }
    for wide in store.wide_modes()? {
        let shown = if wide.path.is_empty() { ".".to_owned() } else { wide.path.clone() };
        let what = if wide.is_directory { "0700" } else { "0600" };
        let message = format!("mode {:04o}: others than the owner may use it; {what} is enough", wide.mode);
        let finding = finding("wide-mode", Severity::Warning, Some(shown), message);
        found.push(Ailment { finding, cure: Some(Cure::Narrow(wide)), by_store: false });
    }
    for tight in store.tight_modes()? {
        let shown = if tight.path.is_empty() { ".".to_owned() } else { tight.path };
        let (what, needed) = if tight.is_directory { ("rwx", "0700") } else { ("rw", "0600") };
        let message = format!("mode {:04o}: its owner needs {needed} to use it; chmod u+{what} gives that", tight.mode);
        found.push(incurable(finding("tight-mode", Severity::Warning, Some(shown), message)));
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
        if entry.stamp.size == 0 {
            // Made by a writer that died before it wrote: as good as none, and the next one goes on with it.
            return Ok(());
        }
        let begin = match store.read_bytes(Area::Cache, &entry.path, None, 0, CACHE_MAGIC.len() as u32) {
            Ok(chunk) => chunk.data,
            // Gone, or replaced meanwhile: others may be at work.
            Err(StoreError::NotFound | StoreError::Changed) => return Ok(()),
            Err(error) => return Err(error),
        };
        let is_sums = entry.path.ends_with(SUMS) && entry.stamp.size.is_multiple_of(SUM_BYTES);
        if begin != CACHE_MAGIC && !is_sums {
            let shown = format!("{}/{}", path::CACHE, entry.path);
            let message = "no cache of this program, or a damaged one; it is of no use";
            let finding = finding("damaged-cache", Severity::Warning, Some(shown), message);
            found.push(Ailment { finding, cure: Some(Cure::DropCache(entry.path)), by_store: false });
        }
        Ok(())
    })?;
    Ok((files, bytes))
}
