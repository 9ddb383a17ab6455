//! Where a workspace's bytes live, as Rust sees it: the trait behind the WIT interface `store` (`wit/store.wit`, the
//! contract), its values, and the directory that keeps them.
//!
//! Knows files, names, stamps and commits. Must not know what the files mean: no format, no `sources/`, no `topics/`.
//! It knows no engine either; the runtime maps these values to those of the bindings.
//!
//! The values mirror the contract one to one, so their documentation is short here and whole there.

mod cache;
mod commit;
mod directory;
pub(crate) mod disk;
mod ground;
mod inspect;
mod journal;
pub(crate) mod path;
pub(crate) mod place;
mod redo;
mod stream;
mod troubles;
mod undo;
mod view;
mod walk;
#[cfg(target_os = "linux")]
mod watch;

use std::fmt;

pub use directory::{Directory, Recovery};
pub use inspect::{JournalState, RuntimeKind, TightMode, WideMode};
pub use redo::{Kept, KeptEdit};
pub(crate) use stream::Feed;
pub(crate) use troubles::Twins;
pub use undo::{PastChange, PastCommit, PastEdit, UndoError, UndoLimits};

/// The three places of a workspace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Area {
    /// What the person sees. Never shows the other two, or version control.
    Tree,
    /// The program's own state beside it.
    Runtime,
    /// What can be made again.
    Cache,
}

/// What lies at a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// A regular file: the only kind that opens.
    File,
    /// A symbolic link; never followed.
    Symlink,
    /// Neither file nor directory nor link; or a directory so deep that no path names what is in it.
    Special,
    /// A name that is not UTF-8; the path has replacement characters and opens nothing.
    Undecodable,
    /// There, but not to be looked into; nothing below it is listed.
    Unreadable,
}

/// A file's version: equal stamps mean equal bytes, unless `racy`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Stamp {
    /// Length in bytes.
    pub size: u64,
    /// Opaque; compare only.
    pub token: String,
    /// So fresh that a further change might show the same token.
    pub racy: bool,
}

impl Stamp {
    /// Whether both name one version. `racy` says how far to trust that, and is no part of the version.
    #[must_use]
    pub fn same_version(&self, other: &Self) -> bool {
        self.size == other.size && self.token == other.token
    }
}

/// One line of a listing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Within its area; parts joined by `/`.
    pub path: String,
    /// What lies there.
    pub kind: Kind,
    /// Its version; of a link, that of the link itself.
    pub stamp: Stamp,
}

/// A part of a listing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    /// In code-point order of their paths.
    pub entries: Vec<Entry>,
    /// What to pass as cursor for the next page; none: this was the last.
    pub next: Option<String>,
    /// The generation when this page was read.
    pub generation: u64,
}

/// A piece of a file as text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextChunk {
    /// Ends between characters.
    pub text: String,
    /// Byte offset behind it.
    pub next: u64,
    /// Nothing follows.
    pub eof: bool,
    /// The file's stamp while this was read.
    pub stamp: Stamp,
}

/// A piece of a file as bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ByteChunk {
    /// At most as many as were asked for.
    pub data: Vec<u8>,
    /// Nothing follows.
    pub eof: bool,
    /// The file's stamp while this was read.
    pub stamp: Stamp,
}

/// Why a read, a listing or a cache write failed. Nothing was changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// Nothing at that path.
    #[error("nothing is there")]
    NotFound,
    /// The bytes are not UTF-8: the offset, from the start of the file, of the first that is not.
    #[error("not UTF-8 at byte {0}")]
    NotText(u64),
    /// The file is another version than was named.
    #[error("the file has changed")]
    Changed,
    /// Outside the workspace, behind a link, not a regular file, or no permission. The text says which.
    #[error("denied: {0}")]
    Denied(String),
    /// A limit of the host.
    #[error("limit {name} ({value}) reached")]
    Limit {
        /// The setting's name.
        name: String,
        /// What it is set to.
        value: u64,
    },
    /// No space left, or a quota is used up.
    #[error("no space left")]
    Full,
    /// The medium failed; the text is for people.
    #[error("{0}")]
    Io(String),
}

/// What a change expects to find.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Expect {
    /// Whatever is there.
    Any,
    /// Nothing.
    Absent,
    /// Exactly this version.
    Same(Stamp),
}

/// Replaces `remove` bytes at `offset` with `insert`. Both ends must lie between characters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Splice {
    /// In the old content.
    pub offset: u64,
    /// Bytes to drop.
    pub remove: u64,
    /// What comes in their place.
    pub insert: String,
}

/// What to do to one path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Edit {
    /// The whole content, replacing what is there.
    Put(String),
    /// An addition at the end, at the cost of what it adds.
    Append {
        /// The length the file has now; 0 also stands for a file that does not exist.
        length: u64,
        /// What to add.
        text: String,
    },
    /// Several replacements; offsets count in the old content, ascending, without overlap.
    Splice(Vec<Splice>),
    /// Removes the file.
    Delete,
    /// Renames to that path of the same area, where nothing may be.
    MoveTo(String),
    /// Changes nothing: the commit depends on the file being as expected.
    Keep,
}

/// One path's change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// [`Area::Tree`] or [`Area::Runtime`].
    pub area: Area,
    /// Named at most once in a commit, as source or as target of a move.
    pub path: String,
    /// What must be there.
    pub expect: Expect,
    /// What is done.
    pub edit: Edit,
}

/// What a commit is, for people and for what is kept of it. Decides nothing about whether it happens.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct About {
    verb: String,
    note: String,
    erases: bool,
}

impl About {
    /// The longest verb and the longest note, in bytes.
    const VERB_BYTES: usize = 32;
    const NOTE_BYTES: usize = 256;

    /// The verb is cut to 32 bytes; of the note the first line is taken, and cut to 256 bytes.
    #[must_use]
    pub fn new(verb: &str, note: &str) -> Self {
        let cut = |text: &str, bytes| text.get(..text.floor_char_boundary(bytes)).unwrap_or_default().to_owned();
        let line = note.lines().next().unwrap_or_default();
        Self { verb: cut(verb, Self::VERB_BYTES), note: cut(line, Self::NOTE_BYTES), erases: false }
    }

    /// The same, of a commit whose removed text must not be kept anywhere: not for undo, not aside, not in history.
    #[must_use]
    pub fn erasing(self) -> Self {
        Self { erases: true, ..self }
    }

    /// What the caller did: `init`, `archive`, `update`, `redact`.
    #[must_use]
    pub fn verb(&self) -> &str {
        &self.verb
    }

    /// One line for people; may be empty.
    #[must_use]
    pub fn note(&self) -> &str {
        &self.note
    }

    /// Whether what the commit removes must not be kept anywhere.
    #[must_use]
    pub fn erases(&self) -> bool {
        self.erases
    }
}

/// Why a commit did not happen. Nothing was changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CommitError {
    /// The workspace is at this generation, not at the base.
    #[error("the workspace has moved on to generation {0}")]
    Stale(u64),
    /// This path is not as its change expects.
    #[error("{0} has changed")]
    Changed(String),
    /// Two paths that are one name to some media; the shortest prefixes that collide.
    #[error("{planned} and {existing} are one name to some file systems")]
    Collision {
        /// Would be created.
        planned: String,
        /// Exists, or would be created by the same commit.
        existing: String,
    },
    /// A file where the commit needs a directory, or the reverse.
    #[error("{0} is a file where a directory is needed, or the reverse")]
    WrongKind(String),
    /// The guard no longer holds the lock: take it again, and plan anew.
    #[error("the lock of this workspace is not held")]
    LockLost,
    /// The store itself failed.
    #[error("{path}: {error}")]
    Failed {
        /// At which path; empty: at none in particular.
        path: String,
        /// And why.
        #[source]
        error: StoreError,
    },
}

/// What a commit made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Committed {
    /// The workspace's generation from here on.
    pub generation: u64,
    /// The stamp after the commit for each change, in its order; none where nothing is (a move: the target's).
    pub stamps: Vec<Option<Stamp>>,
}

/// Something that only the store can know and a reader of the workspace should be told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trouble {
    /// What it is, for programs: lower case and hyphens.
    pub code: &'static str,
    /// Where, within the workspace; none: nowhere in particular.
    pub path: Option<String>,
    /// What it means and what to do next, for people.
    pub message: String,
}

/// The proof that a workspace's lock is held. Dropping it gives the lock back.
///
/// Not to be shared between threads while a commit runs: whoever has it is the only writer.
pub trait Guard: Send + fmt::Debug {
    /// The file that is locked, for a lock that is one. A store that lives beside a lock file compares it with the file
    /// that now has that name, and so notices a guard of another workspace, or one whose lock file was replaced.
    fn file(&self) -> Option<FileId>;
}

/// A file's identity on this machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FileId {
    /// The device.
    pub device: u64,
    /// The inode on it.
    pub inode: u64,
}

/// Knows what changes in a workspace's tree.
pub trait Watch: fmt::Debug + Send {
    /// Paths of files and directories at or below which something may have changed since it was asked last; none: anywhere.
    ///
    /// What any program had done before the question is in the answer, as far as the system tells of it; what it does not tell of
    /// is covered by an answer of none, some seconds later at most. What was done meanwhile may be in this one or the next.
    fn changes(&mut self) -> Option<Vec<String>>;
}

/// A workspace's bytes. The contract, with all failure behaviour, is `wit/store.wit`.
///
/// Implementations may be called from several threads. Reading never creates anything.
pub trait Store: Send + Sync {
    /// A number that every commit raises that changes anything. It never goes back.
    ///
    /// # Errors
    /// As the medium fails.
    fn generation(&self) -> Result<u64, StoreError>;

    /// At most `max` files (0: the store's own measure) below `prefix` (empty: all), behind `cursor`.
    ///
    /// # Errors
    /// `Denied` for a prefix or cursor that is not within the area; as the medium fails.
    fn entries(&self, area: Area, prefix: &str, cursor: Option<&str>, max: u32) -> Result<Page, StoreError>;

    /// One path's entry. A directory is `NotFound`: it is no entry.
    ///
    /// # Errors
    /// `NotFound`, `Denied`; as the medium fails.
    fn stat(&self, area: Area, path: &str) -> Result<Entry, StoreError>;

    /// At most `max` bytes of text from `offset` on, ending between characters; at least one character unless at the
    /// end. A chunk ends before the first invalid byte; the read that starts there is `NotText`.
    ///
    /// # Errors
    /// `NotFound`, `NotText`, `Changed`, `Denied`; as the medium fails.
    fn read_text(
        &self,
        area: Area,
        path: &str,
        at: Option<&Stamp>,
        offset: u64,
        max: u32,
    ) -> Result<TextChunk, StoreError>;

    /// The same for bytes.
    ///
    /// # Errors
    /// `NotFound`, `Changed`, `Denied`; as the medium fails.
    fn read_bytes(
        &self,
        area: Area,
        path: &str,
        at: Option<&Stamp>,
        offset: u64,
        max: u32,
    ) -> Result<ByteChunk, StoreError>;

    /// Makes all changes, or none. Every expectation is checked under the lock, before anything is changed. With nothing to
    /// change the generation stays.
    ///
    /// # Errors
    /// Each leaves everything as it was.
    fn commit(&self, guard: &dyn Guard, base: u64, changes: &[Change], about: &About)
    -> Result<Committed, CommitError>;

    /// What only the store can know and a reader should be told, cheap enough for every look at the workspace. Takes no
    /// lock, changes nothing. A store that has nothing to tell answers nothing.
    ///
    /// # Errors
    /// As the medium fails.
    fn troubles(&self) -> Result<Vec<Trouble>, StoreError> {
        Ok(Vec::new())
    }

    /// Completes what a writer that died left half in place, for those who look at the medium itself. A commit does the
    /// same by itself; this is for whoever takes the lock and may find nothing to commit. A store whose commits are
    /// never half in place has nothing to do.
    ///
    /// # Errors
    /// `Denied` without the lock; as the medium fails. Then the next commit tries again.
    fn complete(&self, guard: &dyn Guard) -> Result<(), StoreError> {
        let _ = guard;
        Ok(())
    }

    /// Begins to watch the tree; none: this store cannot tell what changes, and who wants to know looks at the files.
    fn watch(&self) -> Option<Box<dyn Watch>> {
        None
    }

    /// Replaces a cache file, whole or not at all.
    ///
    /// # Errors
    /// `Denied` where nothing may be written; `Full`; as the medium fails.
    fn put_cache(&self, name: &str, data: &[u8]) -> Result<Stamp, StoreError>;

    /// Adds to a cache file that has `length` bytes now. 0: it is made if there is none.
    ///
    /// # Errors
    /// `Changed` at another length; otherwise as [`put_cache`](Self::put_cache).
    fn append_cache(&self, name: &str, length: u64, data: &[u8]) -> Result<Stamp, StoreError>;

    /// Removes a cache file; fine if there is none.
    ///
    /// # Errors
    /// As [`put_cache`](Self::put_cache).
    fn drop_cache(&self, name: &str) -> Result<(), StoreError>;
}

#[cfg(test)]
pub(crate) mod tests;
