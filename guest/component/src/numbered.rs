//! Keeping turns of numbered conversations: as `keep` does it for the other form.
//!
//! What may be written, and what is there already, core decides. Such a file has no table in the cache: it is read whole
//! each time.

use std::collections::BTreeMap;

use recollex_core::source::{
    Limits, NumberedBatch, NumberedChange, NumberedExisting, NumberedKept, NumberedPlan, NumberedScan, Outcome,
};

use crate::bindings::exports::recollex::memory::workspace as wit;
use crate::bindings::recollex::memory::store::{
    Addition, Area, Change as StoreChange, Edit, Expect, Stamp, StoreError,
};
use crate::change::{Planned, carry_out};
use crate::convert;
use crate::session::{Session, refused};
use crate::tree::{self, Piece, Reader};

/// Keeps a batch, all of it or nothing.
pub(crate) fn keep(session: &Session, batch: &NumberedBatch, verb: &str) -> Result<NumberedPlan, wit::Error> {
    let limits = session.settings.limits();
    let planned = || {
        let (plan, versions) = plan(batch, &limits)?;
        let changes = plan.changes.iter().map(|change| append(change, versions.get(&change.path))).collect();
        let note = format!("into {} numbered conversations", plan.changes.len());
        Ok(Planned { changes, note, basis: plan })
    };
    Ok(carry_out(session, verb, planned, |error| error)?.basis)
}

/// Finds out what the batch must know of its files, and plans. What must still be there comes with the plan, by path.
fn plan(batch: &NumberedBatch, limits: &Limits) -> Result<(NumberedPlan, BTreeMap<String, Expect>), wit::Error> {
    let mut versions = BTreeMap::new();
    let mut existing = BTreeMap::new();
    for path in batch.paths() {
        let (expect, found) = look(batch, path, limits).map_err(|error| convert::store_error(error, Some(path)))?;
        versions.insert(path.to_owned(), expect);
        existing.insert(path.to_owned(), found);
    }
    let mut comparison = batch.compare(existing).map_err(refused)?;
    while let Some(range) = comparison.wanted() {
        let path = range.path.clone();
        let at = versions.get(&path).and_then(stamp);
        let piece = tree::read_range(Area::Tree, &path, at, range.offset, range.length)
            .map_err(|error| convert::store_error(error, Some(&path)))?;
        if piece.is_empty() {
            return Err(convert::store_error(StoreError::Changed, Some(&path)));
        }
        comparison.supply(piece.as_bytes());
    }
    let plan = comparison.plan().map_err(|range| convert::store_error(StoreError::Changed, Some(&range.path)))?;
    Ok((plan, versions))
}

fn look(batch: &NumberedBatch, path: &str, limits: &Limits) -> Result<(Expect, NumberedExisting), StoreError> {
    let entry = match tree::find(Area::Tree, path) {
        Ok(Some(entry)) => entry,
        Ok(None) => return Ok((Expect::Absent, NumberedExisting::default())),
        // Something else lies where the file or its directory belongs: the commit says what.
        Err(StoreError::Denied(_)) => return Ok((Expect::Any, NumberedExisting::default())),
        Err(error) => return Err(error),
    };
    let mut scan = NumberedScan::new(batch, path, limits);
    let mut reader = Reader::new(Area::Tree, &entry);
    while let Some(piece) = reader.next()? {
        match piece {
            Piece::Text(text) => scan.push_text(&text),
            Piece::Bytes(bytes) => scan.push_bytes(&bytes),
        }
    }
    Ok((Expect::Same(entry.stamp), scan.finish()))
}

fn stamp(expect: &Expect) -> Option<&Stamp> {
    match expect {
        Expect::Same(stamp) => Some(stamp),
        Expect::Any | Expect::Absent => None,
    }
}

fn append(change: &NumberedChange, expect: Option<&Expect>) -> StoreChange {
    StoreChange {
        area: Area::Tree,
        path: change.path.clone(),
        expect: expect.cloned().unwrap_or(Expect::Any),
        edit: Edit::Append(Addition { length: change.length, text: change.text.clone() }),
    }
}

pub(crate) fn archived(kept: NumberedKept) -> wit::ArchivedTurn {
    let (outcome, digests) = match kept.outcome {
        Outcome::Archived => (wit::Outcome::Archived, None),
        Outcome::Already => (wit::Outcome::Already, None),
        Outcome::Differs { kept, offered } => (wit::Outcome::Differs, Some((kept.hex(), offered.hex()))),
    };
    wit::ArchivedTurn { id: kept.id.to_string(), anchor: kept.id.anchor(), path: kept.path, outcome, digests }
}
