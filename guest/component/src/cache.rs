//! The cache area: bytes that were kept for the next time, and may be missing.
//!
//! Nothing here fails. What cannot be read is not there, and what cannot be written is made again next time. Knows names
//! and ranges; what the bytes say, and whether they are sound, core's `table` knows.

use core::ops::Range;

use recollex_core::source::Limits;
use recollex_core::table::{ArchiveFiles, FILE_TABLE, FileTable, Save};

use crate::bindings::recollex::memory::log::{Level, write};
use crate::bindings::recollex::memory::store::{self, Area, StoreError};

/// Bytes asked for at a time.
const PIECE: u32 = 4 << 20;

/// A cache file longer than this is none of ours.
const BYTES_MAX: u64 = 256 << 20;

/// How often an addition is tried again because another process has changed the file.
const TRIES: u32 = 3;

/// These bytes of a cache file, all of them.
pub(crate) fn read(name: &str, range: Range<u64>) -> Option<Vec<u8>> {
    let bytes = read_up_to(name, range.clone())?;
    (bytes.len() as u64 == range.end.saturating_sub(range.start)).then_some(bytes)
}

/// A whole cache file.
pub(crate) fn read_all(name: &str) -> Option<Vec<u8>> {
    read_up_to(name, 0..BYTES_MAX)
}

/// These bytes of a cache file, or those of them that it has, of one version.
pub(crate) fn read_up_to(name: &str, range: Range<u64>) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    let mut at = None;
    let mut offset = range.start;
    while offset < range.end {
        let want = u32::try_from(range.end - offset).unwrap_or(PIECE).min(PIECE);
        let chunk = store::read_bytes(Area::Cache, name, at.as_ref(), offset, want).ok()?;
        offset = offset.saturating_add(chunk.data.len() as u64);
        let eof = chunk.eof || chunk.data.is_empty();
        if bytes.is_empty() {
            // The usual case, one piece: nothing is copied.
            bytes = chunk.data;
            if !eof {
                let whole = chunk.stamp.size.min(range.end).saturating_sub(range.start);
                bytes.reserve_exact(usize::try_from(whole).ok()?.saturating_sub(bytes.len()));
            }
        } else {
            bytes.extend_from_slice(&chunk.data);
        }
        if eof {
            break;
        }
        at = Some(chunk.stamp);
    }
    Some(bytes)
}

/// Replaces a cache file. False: it could not be.
pub(crate) fn put(name: &str, data: &[u8]) -> bool {
    done(name, store::put_cache(name, data).map(core::mem::drop)).is_ok()
}

/// Adds to a cache file of that length. False: it could not be, or the file is not that long any more.
pub(crate) fn append(name: &str, length: u64, data: &[u8]) -> bool {
    done(name, store::append_cache(name, length, data).map(core::mem::drop)).is_ok()
}

/// Removes a cache file.
pub(crate) fn drop(name: &str) {
    let _ = done(name, store::drop_cache(name));
}

/// Forgets what is known of the records of the archive at `path`.
pub(crate) fn forget_archive(path: &str) {
    let ArchiveFiles { head, rows, ids, chunks } = ArchiveFiles::of(path);
    // The head first: without it the others say nothing.
    for name in [head, rows, ids, chunks] {
        let _ = done(&name, store::drop_cache(&name));
    }
}

/// What is known of all files.
pub(crate) fn file_table(limits: &Limits) -> FileTable {
    FileTable::load(read_all(FILE_TABLE).unwrap_or_default(), limits)
}

/// Keeps what was found out. `all_seen`: of every file that is there, so that the others are gone.
pub(crate) fn save_file_table(table: &FileTable, all_seen: bool, limits: &Limits) {
    let mut save = table.save(all_seen);
    for _ in 0..TRIES {
        match save {
            Save::Nothing => return,
            Save::Replace(bytes) => {
                put(FILE_TABLE, &bytes);
                return;
            }
            Save::Append { length, bytes } => match store::append_cache(FILE_TABLE, length, &bytes) {
                // Another process kept something meanwhile. Both are true.
                Err(StoreError::Changed) => {
                    save = table.over(read_all(FILE_TABLE).unwrap_or_default(), limits).save(false);
                }
                result => {
                    let _ = done(FILE_TABLE, result.map(core::mem::drop));
                    return;
                }
            },
        }
    }
}

/// A failure is worth a line to people who wonder why things take long, and nothing else.
fn done(name: &str, result: Result<(), StoreError>) -> Result<(), StoreError> {
    if let Err(error) = &result {
        write(Level::Debug, &format!("the cache file {name} was not written: {error:?}"));
    }
    result
}
