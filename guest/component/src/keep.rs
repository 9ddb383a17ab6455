//! Keeping a batch of turns.
//!
//! Knows how to ask and what to hand over. What belongs where, and what is there already, core decides.

use std::collections::BTreeMap;

use recollex_core::source::{Batch, BranchChange, Change, Kept, Limits, Outcome, Plan};
use recollex_core::table::FileTable;

use crate::bindings::exports::recollex::memory::workspace as wit;
use crate::bindings::recollex::memory::store::{self, Addition, Area, Change as StoreChange, Edit, Expect, StoreError};
use crate::change::{Planned, carry_out};
use crate::convert;
use crate::records::Archive;
use crate::session::{Session, refused};
use crate::tree;

/// Keeps a batch, all of it or nothing, with what it says of branches. `beside` says what else has to change with it, in the
/// same commit; it is asked anew for each try, and only if something of the batch is new.
pub(crate) fn keep(
    session: &Session,
    batch: &Batch,
    verb: &str,
    files: &mut FileTable,
    mut beside: impl FnMut(&Plan) -> Result<Vec<StoreChange>, wit::Error>,
) -> Result<Plan, wit::Error> {
    let limits = session.settings.limits();
    let planned = || {
        let (plan, archives) = plan(batch, &limits, files)?;
        let mut changes: Vec<StoreChange> =
            plan.changes.iter().map(|change| append(change, archives.get(change.path.as_str()))).collect();
        if !plan.changes.is_empty() {
            for branch in &plan.branches {
                changes.push(append_lines(branch).map_err(|error| convert::store_error(error, Some(&branch.path)))?);
            }
            changes.append(&mut beside(&plan)?);
        }
        Ok(Planned { changes, note: into(plan.changes.len()), basis: (plan, archives) })
    };
    let done = carry_out(session, verb, planned, |error| of_record(batch, error))?;
    let (plan, mut archives) = done.basis;
    let Some(committed) = done.committed else {
        archives.values().for_each(|archive| archive.keep_unchanged(&limits, files));
        return Ok(plan);
    };
    let contents = plan.records.iter().map(|kept| (kept.id.as_str(), kept.content)).collect::<BTreeMap<_, _>>();
    for (change, stamp) in plan.changes.iter().zip(committed.stamps) {
        if let (Some(archive), Some(stamp)) = (archives.remove(&change.path), stamp) {
            archive.keep_added(change, &stamp, &contents, &limits, files);
        }
    }
    drop(done.guard);
    Ok(plan)
}

/// Names the record of the batch for which a name was to come into being that may not.
fn of_record(batch: &Batch, mut error: wit::Error) -> wit::Error {
    if let wit::Error::Refused(problems) = &mut error {
        for problem in problems.iter_mut().filter(|problem| problem.line.is_none()) {
            if let Some((number, id)) = problem.path.as_deref().and_then(|path| batch.first_at(path)) {
                problem.line = Some(number);
                problem.message = format!("{id}: {}", problem.message);
            }
        }
    }
    error
}

/// Finds out what the batch must know of its archives, and plans. The archives come with the plan, by path.
pub(crate) fn plan(
    batch: &Batch,
    limits: &Limits,
    files: &mut FileTable,
) -> Result<(Plan, BTreeMap<String, Archive>), wit::Error> {
    let mut archives = BTreeMap::new();
    let mut existing = BTreeMap::new();
    for path in batch.paths() {
        let (archive, found) =
            Archive::look(batch, path, limits, files).map_err(|error| convert::store_error(error, Some(path)))?;
        archives.insert(path.to_owned(), archive);
        existing.insert(path.to_owned(), found);
    }
    let mut comparison = batch.compare(existing).map_err(refused)?;
    while let Some(range) = comparison.wanted() {
        let path = range.path.clone();
        let at = archives.get(&path).and_then(Archive::stamp);
        let piece = tree::read_range(Area::Tree, &path, at, range.offset, range.length)
            .map_err(|error| convert::store_error(error, Some(&path)))?;
        if piece.is_empty() {
            return Err(convert::store_error(StoreError::Changed, Some(&path)));
        }
        comparison.supply(piece.as_bytes());
    }
    let plan = comparison.plan().map_err(|range| convert::store_error(StoreError::Changed, Some(&range.path)))?;
    Ok((plan, archives))
}

pub(crate) fn append(change: &Change, archive: Option<&Archive>) -> StoreChange {
    StoreChange {
        area: Area::Tree,
        path: change.path.clone(),
        expect: archive.map_or(Expect::Any, |archive| archive.expect.clone()),
        edit: Edit::Append(Addition { length: change.from.bytes, text: change.text.clone() }),
    }
}

/// Adds whole lines to a file, whatever it ends with now.
fn append_lines(change: &BranchChange) -> Result<StoreChange, StoreError> {
    let path = change.path.as_str();
    let mut text = change.text.clone();
    let (expect, length) = match tree::find(Area::Tree, path) {
        Ok(Some(entry)) => {
            let size = entry.stamp.size;
            if size > 0 && tree::is_file(&entry) {
                let last = store::read_bytes(Area::Tree, path, Some(&entry.stamp), size - 1, 1)?;
                if last.data != b"\n" {
                    text.insert(0, '\n');
                }
            }
            (Expect::Same(entry.stamp), size)
        }
        Ok(None) => (Expect::Absent, 0),
        // Something else lies where the file or one of its directories belongs: the commit says what.
        Err(StoreError::Denied(_)) => (Expect::Any, 0),
        Err(error) => return Err(error),
    };
    let edit = Edit::Append(Addition { length, text });
    Ok(StoreChange { area: Area::Tree, path: change.path.clone(), expect, edit })
}

fn into(conversations: usize) -> String {
    format!("into {conversations} {}", if conversations == 1 { "conversation" } else { "conversations" })
}

pub(crate) fn archived(kept: Kept) -> wit::ArchivedTurn {
    let (outcome, digests) = match kept.outcome {
        Outcome::Archived => (wit::Outcome::Archived, None),
        Outcome::Already => (wit::Outcome::Already, None),
        Outcome::Differs { kept, offered } => (wit::Outcome::Differs, Some((kept.hex(), offered.hex()))),
    };
    wit::ArchivedTurn { id: kept.id.to_string(), path: kept.path, anchor: kept.anchor, outcome, digests }
}
