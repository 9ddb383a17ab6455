//! What a run that writes nothing would have kept by now, so that each of its batches is told what it would have met.
//!
//! Knows ids, digests and names. Must not know files or stores: what lies in the workspace it is told.

use super::compare::{Kept, Outcome, Plan};
use super::limits::LimitReached;
use crate::digest::Digest;
use std::collections::BTreeMap;

/// What lies at a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Occupant {
    /// A file that can be read and added to.
    File,
    /// A symbolic link: nothing is written through one.
    Link,
    /// Something that is neither.
    Other,
}

/// Why a file could not come into being.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Obstacle {
    /// Two names that differ only in letter case: `planned` is not there, and `existing` is, or would be.
    Collision {
        /// The path, or the beginning of it, that is not there.
        planned: String,
        /// The one that is.
        existing: String,
    },
    /// A file where a directory is needed, or the reverse.
    WrongKind(String),
    /// A link, or something that is neither file nor directory.
    Denied(String),
}

/// The records and names of a run that writes nothing.
///
/// It holds the digests of each record's id and content, about a hundred bytes, for at most so many records as it is made for,
/// and the names of archives.
#[derive(Clone, Debug)]
pub struct Preview {
    /// Content by id.
    records: BTreeMap<Digest, Digest>,
    records_max: u64,
    /// What there is at each path, by the path as a medium may take it; none: a directory.
    names: BTreeMap<String, (String, Option<Occupant>)>,
}

impl Preview {
    /// The setting's name of how many records it remembers.
    pub const RECORDS: &'static str = "import.preview-records";

    /// Nothing is there, and nothing would have been kept.
    #[must_use]
    pub fn new(records_max: u64) -> Self {
        Self { records: BTreeMap::new(), records_max, names: BTreeMap::new() }
    }

    /// Is told what lies in the workspace: at `path` this, and above it directories.
    pub fn lies(&mut self, path: &str, what: Occupant) {
        for (prefix, is_whole) in prefixes(path) {
            let there = (prefix.to_owned(), is_whole.then_some(what));
            self.names.entry(folded(prefix)).or_insert(there);
        }
    }

    /// Whether a file could be at `path`.
    ///
    /// # Errors
    /// What is in its way.
    pub fn check(&self, path: &str) -> Result<(), Obstacle> {
        for (prefix, is_whole) in prefixes(path) {
            let Some((there, what)) = self.names.get(&folded(prefix)) else { return Ok(()) };
            if there != prefix {
                return Err(Obstacle::Collision { planned: prefix.to_owned(), existing: there.clone() });
            }
            match (is_whole, what) {
                (true, Some(Occupant::File)) | (false, None) => {}
                (true, None) | (false, Some(Occupant::File | Occupant::Other)) => {
                    return Err(Obstacle::WrongKind(prefix.to_owned()));
                }
                (_, Some(Occupant::Link)) | (true, Some(Occupant::Other)) => {
                    return Err(Obstacle::Denied(prefix.to_owned()));
                }
            }
        }
        Ok(())
    }

    /// Takes a plan as carried out: what of it a batch before it would have kept is not new. Only what became of its records
    /// is put right, and not what it would have written.
    ///
    /// # Errors
    /// There are more records than can be remembered. Nothing of the plan counts.
    pub fn carry_out(&mut self, plan: &mut Plan) -> Result<(), LimitReached> {
        let is_new = |kept: &&Kept| kept.outcome == Outcome::Archived;
        let keys: Vec<Digest> = plan.records.iter().filter(is_new).map(key).collect();
        let added = keys.iter().filter(|key| !self.records.contains_key(*key)).count() as u64;
        let asked = (self.records.len() as u64).saturating_add(added);
        if asked > self.records_max {
            return Err(LimitReached { name: Self::RECORDS, allowed: self.records_max, asked, subject: None });
        }
        let new = plan.records.iter_mut().filter(|kept| kept.outcome == Outcome::Archived);
        for (kept, key) in new.zip(keys) {
            match self.records.get(&key) {
                None => drop(self.records.insert(key, kept.content)),
                Some(first) if *first == kept.content => kept.outcome = Outcome::Already,
                Some(first) => kept.outcome = Outcome::Differs { kept: *first, offered: kept.content },
            }
        }
        let branches = plan.branches.iter().map(|change| change.path.as_str());
        for path in plan.changes.iter().map(|change| change.path.as_str()).chain(branches) {
            self.lies(path, Occupant::File);
        }
        Ok(())
    }
}

fn key(kept: &Kept) -> Digest {
    Digest::of(kept.id.as_str().as_bytes())
}

/// Each beginning of a path that ends with a part, and whether it is the whole.
fn prefixes(path: &str) -> impl Iterator<Item = (&str, bool)> {
    let inner = path.match_indices('/').filter_map(|(at, _)| Some((path.get(..at)?, false)));
    inner.chain(core::iter::once((path, true)))
}

/// A path as a medium may take it that does not tell upper from lower case. Archives have names of ASCII only; of other
/// names only those matter that fold to such a one.
fn folded(path: &str) -> String {
    if path.is_ascii() {
        return path.to_ascii_lowercase();
    }
    path.chars().flat_map(char::to_uppercase).flat_map(char::to_lowercase).collect()
}
