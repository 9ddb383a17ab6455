//! Putting a workspace into the state of a backup, by one commit.
//!
//! There is one way, for an empty workspace and for a full one, for a small backup and for a large one. The backup is
//! checked whole. Then, under the lock, it is compared with what is there; what differs is staged beside the journal,
//! streamed from the backup and checked again as it goes; and one commit renames it into place and removes what the backup
//! does not have. Dying at any point leaves the old state or the new one, by the same journal as for any commit. What the
//! backup cannot hold (version control, links) stays as it is.
//!
//! It needs room for what differs, beside what is there.

use std::io::{Read, Seek, SeekFrom};

use sha2::{Digest as _, Sha256};

use super::bundle::{BackupError, Manifest, Members, Open, PIECE, Progress, RUNTIME_FILES, each_piece, hex};
use super::doctor::each_entry;
use crate::store::{
    About, Area, Change, Committed, Directory, Edit, Expect, Feed, Guard, Kind, Stamp, Store as _, StoreError,
};

/// What restoring would do, or did.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Files that are not there.
    pub added: u64,
    /// Files that are otherwise than in the backup.
    pub replaced: u64,
    /// Files that are as in the backup already.
    pub unchanged: u64,
    /// Files that the backup does not have.
    pub deleted: u64,
    /// The bytes that are written.
    pub bytes: u64,
    /// There is no file in the tree: nothing can be lost.
    pub is_empty: bool,
    /// What lies in the tree and is no regular file: it stays.
    pub stays: Vec<String>,
    changes: Vec<Change>,
    /// For each put among the changes, which come first, the backup's file.
    members: Vec<usize>,
}

impl Plan {
    /// The workspace is as the backup is.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.changes.is_empty()
    }
}

/// Compares a workspace with a backup. Changes nothing; with the lock taken, what it says stays true.
///
/// # Errors
/// As the workspace cannot be read.
pub fn plan(store: &Directory, manifest: &Manifest, progress: Progress<'_>) -> Result<Plan, BackupError> {
    let mut there = std::collections::BTreeMap::new();
    let mut stays = Vec::new();
    each_entry(store, Area::Tree, &mut |entry| {
        if entry.kind == Kind::File {
            there.insert((Area::Tree, entry.path), entry.stamp);
        } else {
            stays.push(entry.path);
        }
        Ok(())
    })
    .map_err(BackupError::store(""))?;
    let is_empty = there.is_empty() && stays.is_empty();
    for path in RUNTIME_FILES {
        match store.stat(Area::Runtime, path) {
            Ok(entry) if entry.kind == Kind::File => {
                there.insert((Area::Runtime, path.to_owned()), entry.stamp);
            }
            Ok(_) | Err(StoreError::NotFound) => {}
            Err(error) => return Err(BackupError::Store { path: path.to_owned(), error }),
        }
    }

    let mut plan = Plan {
        added: 0,
        replaced: 0,
        unchanged: 0,
        deleted: 0,
        bytes: 0,
        is_empty,
        stays,
        changes: Vec::new(),
        members: Vec::new(),
    };
    let total = manifest.bytes();
    let mut done = 0;
    for (index, member) in manifest.files.iter().enumerate() {
        let (area, path) = member.place().ok_or_else(|| BackupError::Damaged(member.path.clone()))?;
        let expect = match there.remove(&(area, path.to_owned())) {
            None => {
                plan.added += 1;
                Expect::Absent
            }
            Some(stamp) if stamp.size == member.size && digest(store, area, path, &stamp)? == member.sha256 => {
                plan.unchanged += 1;
                done += member.size;
                progress(done, total);
                continue;
            }
            Some(stamp) => {
                plan.replaced += 1;
                Expect::Same(stamp)
            }
        };
        plan.bytes += member.size;
        done += member.size;
        progress(done, total);
        plan.members.push(index);
        plan.changes.push(Change { area, path: path.to_owned(), expect, edit: Edit::Put(String::new()) });
    }
    for ((area, path), stamp) in there {
        plan.deleted += 1;
        plan.changes.push(Change { area, path, expect: Expect::Same(stamp), edit: Edit::Delete });
    }
    Ok(plan)
}

fn digest(store: &Directory, area: Area, path: &str, stamp: &Stamp) -> Result<String, BackupError> {
    let mut digest = Sha256::new();
    let mut offset = 0;
    loop {
        let chunk =
            store.read_bytes(area, path, Some(stamp), offset, PIECE as u32).map_err(BackupError::store(path))?;
        digest.update(&chunk.data);
        offset += chunk.data.len() as u64;
        if chunk.eof {
            return Ok(hex(&digest.finalize()));
        }
    }
}

/// Makes the workspace what the backup is, under the lock under which `plan` was made.
///
/// # Errors
/// Each leaves the workspace as it was: `Commit` with a collision where a file to be restored and one that is there are
/// one name to some file systems, or one is a file and the other a directory; `Damaged` if the backup changed since it was
/// checked; `Store`, `Io`.
pub fn restore(
    store: &Directory,
    guard: &dyn Guard,
    backup: &mut (impl Read + Seek),
    manifest: &Manifest,
    plan: &Plan,
    progress: Progress<'_>,
) -> Result<Committed, BackupError> {
    // What a writer that died left may raise the generation.
    store.complete(guard).map_err(BackupError::store(""))?;
    let base = store.generation().map_err(BackupError::store(""))?;
    backup.seek(SeekFrom::Start(0))?;
    let mut archive = tar::Archive::new(std::io::BufReader::with_capacity(PIECE, backup));
    let members = Members::new(&mut archive)?;
    let mut feed = FromBackup { members, manifest, plan, done: 0, progress, error: None };
    match store.commit_fed(guard, base, &plan.changes, &mut feed, &About::new("restore", "")) {
        Ok(committed) => Ok(committed),
        Err(error) => Err(feed.error.unwrap_or(BackupError::Commit(error))),
    }
}

struct FromBackup<'a, R: Read> {
    members: Members<'a, R>,
    manifest: &'a Manifest,
    plan: &'a Plan,
    done: u64,
    progress: Progress<'a>,
    error: Option<BackupError>,
}

impl<R: Read> FromBackup<'_, R> {
    fn try_feed(
        &mut self,
        index: usize,
        write: &mut dyn FnMut(&[u8]) -> Result<(), StoreError>,
    ) -> Result<(), BackupError> {
        let changed = || BackupError::Damaged("it changed while it was read".to_owned());
        let member =
            self.plan.members.get(index).and_then(|index| self.manifest.files.get(*index)).ok_or_else(changed)?;
        // The members come in the order of the changes.
        let Open { mut data, .. } = loop {
            match self.members.next()? {
                Some(open) if open.name == member.path && open.size == member.size => break open,
                Some(_) => {}
                None => return Err(changed()),
            }
        };
        let mut digest = Sha256::new();
        each_piece(&mut data, &mut |piece| {
            digest.update(piece);
            write(piece).map_err(BackupError::store(&member.path))?;
            self.done += piece.len() as u64;
            (self.progress)(self.done, self.plan.bytes);
            Ok(())
        })?;
        if hex(&digest.finalize()) == member.sha256 { Ok(()) } else { Err(changed()) }
    }
}

impl<R: Read> Feed for FromBackup<'_, R> {
    fn feed(&mut self, index: usize, write: &mut dyn FnMut(&[u8]) -> Result<(), StoreError>) -> Result<(), StoreError> {
        self.try_feed(index, write).map_err(|error| match error {
            BackupError::Store { error, .. } => error,
            error => {
                let text = error.to_string();
                self.error = Some(error);
                StoreError::Io(text)
            }
        })
    }
}
