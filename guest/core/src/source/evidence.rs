//! What counts over all files: which of two records with one id, and what may be built on.
//!
//! Knows records as scanners hand them on. Must not know which files there are or how they are read; callers go through
//! them in any order and tell what they met.

use super::legacy::{LegacyKind, LegacyRef};
use super::metadata::Trust;
use super::record::RecordRef;
use crate::digest::Digest;
use crate::ids::{SourceId, TurnRef, is_v2_path, legacy_twin, numbered_conversation};
use std::collections::{BTreeMap, BTreeSet};

/// Which records of older archives have a frame of the same id, and count no more: the v2 archive wins.
///
/// Only conversations that have both forms cost memory. v2 archives have to be gone through first
/// ([`NewerIds::see`]), older ones then ([`NewerIds::supersedes`]).
#[derive(Clone, Debug, Default)]
pub struct NewerIds {
    /// v2 archives with a file of the older form beside them.
    archives: BTreeSet<String>,
    ids: BTreeSet<Digest>,
}

impl NewerIds {
    /// For the files at these paths.
    pub fn among<'p>(paths: impl Iterator<Item = &'p str> + Clone) -> Self {
        if paths.clone().all(is_v2_path) {
            return Self::default();
        }
        let mut twins: BTreeMap<String, &str> =
            paths.clone().filter_map(|path| Some((legacy_twin(path)?, path))).collect();
        let archives = paths.filter_map(|path| twins.remove(path)).map(str::to_owned).collect();
        Self { archives, ids: BTreeSet::new() }
    }

    /// Takes note of what was met in the file at `path`.
    pub fn see(&mut self, path: &str, record: RecordRef<'_>) {
        if let RecordRef::Frame(frame) = record
            && self.archives.contains(path)
        {
            self.ids.insert(frame.id_digest);
        }
    }

    /// Whether a frame has this id.
    pub fn supersedes(&self, legacy: &LegacyRef<'_>) -> bool {
        legacy.kind == LegacyKind::Message
            && !self.ids.is_empty()
            && self.ids.contains(&Digest::of(legacy.id.as_bytes()))
    }
}

/// Whether references are to trusted evidence, all of them or not at all.
///
/// A reference is a source id or `D3:7`. It is trusted evidence if a frame with the id is trusted or has no metadata
/// (D17); or, where no frame has it, if a header of an older archive names it (D08); or if the anchor of a numbered turn
/// does (D16). What a text says changes nothing.
///
/// Made for the references at hand, then told of what is met in files, in any order; memory follows the references.
#[derive(Clone, Debug)]
pub struct Resolution {
    wanted: BTreeMap<String, Met>,
    /// Files that may hold one of them: by path, and numbered conversations wherever they lie.
    paths: BTreeSet<String>,
    conversations: BTreeSet<String>,
}

/// Where a reference was met. A frame says more than an older archive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Met {
    Nowhere,
    Legacy,
    Frame(Trust),
}

/// References that are not all trusted evidence.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unresolved {
    /// Evidence that nobody has vouched for yet, ascending.
    pub pending: Vec<String>,
    /// What was met nowhere, ascending.
    pub missing: Vec<String>,
}

impl Resolution {
    /// Of these references. What has no form of a reference will be missing.
    pub fn of<R: AsRef<str>>(references: impl IntoIterator<Item = R>) -> Self {
        let mut resolution = Self { wanted: BTreeMap::new(), paths: BTreeSet::new(), conversations: BTreeSet::new() };
        for reference in references {
            let reference = reference.as_ref();
            if let Some(id) = TurnRef::parse(reference) {
                resolution.conversations.insert(id.conversation().to_owned());
            } else if let Ok(id) = SourceId::parse(reference) {
                resolution.paths.extend([id.v2_path(), id.legacy_path()]);
            }
            resolution.wanted.insert(reference.to_owned(), Met::Nowhere);
        }
        resolution
    }

    /// Whether the file at this path of a workspace may hold one of the references. No other has to be read.
    pub fn wants(&self, path: &str) -> bool {
        let numbered = || numbered_conversation(path).is_some_and(|number| self.conversations.contains(number));
        self.paths.contains(path) || (path.starts_with("sources/") && !is_v2_path(path) && numbered())
    }

    /// Takes note of what was met in a file of the workspace, as scanners that know the file's place hand it on.
    pub fn see(&mut self, record: RecordRef<'_>) {
        let (id, now) = match record {
            RecordRef::Frame(frame) => (frame.id, Met::Frame(frame.trust())),
            RecordRef::Legacy(legacy) if legacy.kind != LegacyKind::Mention => (legacy.id, Met::Legacy),
            RecordRef::Legacy(_) => return,
        };
        if let Some(met) = self.wanted.get_mut(id)
            && !matches!((*met, now), (Met::Frame(_), Met::Legacy))
        {
            *met = now;
        }
    }

    /// How the evidence stands that this reference is to. None: nothing was met.
    pub fn trust_of(&self, reference: &str) -> Option<Trust> {
        match self.wanted.get(reference)? {
            Met::Nowhere => None,
            Met::Legacy => Some(Trust::Trusted),
            Met::Frame(trust) => Some(*trust),
        }
    }

    /// What all of them come to.
    ///
    /// # Errors
    /// One is pending or missing: then nothing may be built on them together.
    pub fn all_trusted(&self) -> Result<(), Unresolved> {
        let mut unresolved = Unresolved::default();
        for reference in self.wanted.keys() {
            match self.trust_of(reference) {
                Some(Trust::Trusted) => {}
                Some(Trust::Pending) => unresolved.pending.push(reference.clone()),
                None => unresolved.missing.push(reference.clone()),
            }
        }
        if unresolved == Unresolved::default() { Ok(()) } else { Err(unresolved) }
    }
}
