//! Tables: what was found out about files and records, kept so that nobody has to read them again.
//!
//! - [`FileTable`]: digest, records and soundness of every file, by path and stamp. One cache file.
//! - [`ArchiveHead`], [`RowLog`], [`IdIndex`]: the record table of one archive that is long enough to be worth it
//!   ([`ARCHIVE_BYTES_MIN`]): how it ends, a row a record, and a way to a row from an id that reads a page or two.
//!   [`read_chunks`]: the parts of its digest, for changes that are no additions.
//! - [`TopicTable`]: the blocks of every topic, their ids, links, labels, times, and what they rest on.
//!
//! All of it is a cache (FORMAT.md, "Caches"): it may be deleted at any time, and whatever is torn, damaged, of another
//! version or of other settings is noticed and made again. Every part that is read carries a check, and every statement
//! is about one version of one file, named by its stamp or digest; so a stale cache is useless, never wrong.
//!
//! Knows the layout of cache files. Must not know where they are kept: it makes bytes, and says which bytes it needs.

pub(crate) mod bytes;
mod chunks;
mod files;
mod head;
mod ids;
mod rows;
mod topics;

pub use chunks::{chunks_range, read_chunks, write_chunks};
pub use files::{FileState, FileTable, Save};
pub use head::ArchiveHead;
pub use ids::{IdIndex, Search, merge_keys};
pub use rows::{Key, ROWS_MAX, Row, RowLog, Rows, row_key, rows_length, rows_range};
pub use topics::{
    Answers, CommittedTopics, Differences, KnownBlock, KnownRow, TOPIC_TABLE, TopicEntry, TopicNote, TopicTable,
};

use crate::digest::Digest;

/// Version of all cache files. Any change of their layout, or of what a scan makes of a file, raises it.
const VERSION: u32 = 4;

/// Archives shorter than this have no record table: reading them takes less time than reading about them.
pub const ARCHIVE_BYTES_MIN: u64 = 64 * 1024;

/// So many rows may lie behind those that the id index covers before it is made anew. They are read at every append.
pub const REST_MAX: u64 = 1024;

/// Name of the file table in the cache area.
pub const FILE_TABLE: &str = "files";

/// A file's version, as a store tells it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp<'a> {
    /// Length in bytes.
    pub size: u64,
    /// Opaque.
    pub token: &'a str,
    /// A later change might show the same token. What was read under such a stamp is not kept. It says nothing against
    /// an equal stamp that was not racy when it was kept: from then on no change could show it again.
    pub racy: bool,
}

/// Names of an archive's cache files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArchiveFiles {
    /// An [`ArchiveHead`].
    pub head: String,
    /// What a [`RowLog`] wrote.
    pub rows: String,
    /// An [`IdIndex`], if there are more than [`REST_MAX`] rows.
    pub ids: String,
    /// What [`write_chunks`] wrote.
    pub chunks: String,
}

impl ArchiveFiles {
    /// Of the archive at `path`.
    pub fn of(path: &str) -> Self {
        let name = Digest::of(path.as_bytes()).hex_prefix(32);
        let file = |kind| format!("records/{name}.{kind}");
        Self { head: file("head"), rows: file("rows"), ids: file("ids"), chunks: file("chunks") }
    }
}
