//! Keeping a batch of turns.
//!
//! Knows how to ask and what to hand over, for one batch or several in one commit. What belongs where, and what is there already,
//! core decides.

use std::collections::BTreeMap;

use recollex_core::session::Settings;
use recollex_core::source::{Batch, BranchChange, Change, Kept, Limits, Outcome, Plan};
use recollex_core::table::FileTable;

use crate::bindings::exports::recollex::memory::workspace as wit;
use crate::bindings::recollex::memory::store::{
    self, Addition, Area, Change as StoreChange, Edit, Expect, Stamp, StoreError,
};
use crate::change::{self, carry_out};
use crate::convert;
use crate::index::IndexLog;
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
    beside: impl FnMut(&Plan) -> Result<Vec<StoreChange>, wit::Error>,
) -> Result<Plan, wit::Error> {
    let plan = keep_together(session, &[batch], verb, files, beside)?.pop();
    // One batch, one plan.
    Ok(plan.unwrap_or(Plan { changes: Vec::new(), branches: Vec::new(), records: Vec::new() }))
}

/// Keeps batches that have no archive in common by one commit: all of them or none. A plan for each, in their order.
/// Otherwise as [`keep`].
pub(crate) fn keep_together(
    session: &Session,
    batches: &[&Batch],
    verb: &str,
    files: &mut FileTable,
    mut beside: impl FnMut(&Plan) -> Result<Vec<StoreChange>, wit::Error>,
) -> Result<Vec<Plan>, wit::Error> {
    let limits = session.settings.limits();
    let planned = || {
        let (planned, changes) = plan_all(batches, &limits, files, &mut beside)?;
        let conversations = planned.iter().map(|(plan, _)| plan.changes.len()).sum();
        Ok(change::Planned { changes, note: into(conversations), basis: planned })
    };
    let done = carry_out(session, verb, planned, |error| of_record(batches, error))?;
    let stamps = done.committed.map(|committed| committed.stamps).unwrap_or_default();
    let plans = kept(done.basis, &stamps, &session.settings, files);
    drop(done.guard);
    Ok(plans)
}

/// A batch's plan, and its archives by path.
type Planned = (Plan, BTreeMap<String, Archive>);

/// Plans each batch, and says what is to change for all: first what is added to archives, in the order of the plans.
fn plan_all(
    batches: &[&Batch],
    limits: &Limits,
    files: &mut FileTable,
    beside: &mut impl FnMut(&Plan) -> Result<Vec<StoreChange>, wit::Error>,
) -> Result<(Vec<Planned>, Vec<StoreChange>), wit::Error> {
    let mut planned = Vec::with_capacity(batches.len());
    let (mut changes, mut also) = (Vec::new(), Vec::new());
    for batch in batches {
        let (plan, archives) = plan(batch, limits, files)?;
        changes.extend(plan.changes.iter().map(|change| append(change, archives.get(change.path.as_str()))));
        if !plan.changes.is_empty() {
            for branch in &plan.branches {
                also.push(append_lines(branch).map_err(|error| convert::store_error(error, Some(&branch.path)))?);
            }
            also.append(&mut beside(&plan)?);
        }
        planned.push((plan, archives));
    }
    changes.append(&mut also);
    Ok((planned, changes))
}

/// What was planned is so: keeps what is known of the archives now. `stamps`: of what was added to archives, in the order
/// of the plans.
fn kept(planned: Vec<Planned>, stamps: &[Option<Stamp>], settings: &Settings, files: &mut FileTable) -> Vec<Plan> {
    let limits = settings.limits();
    let mut log = if stamps.is_empty() { None } else { IndexLog::open(settings) };
    let mut stamps = stamps.iter();
    let mut plans = Vec::with_capacity(planned.len());
    for (plan, mut archives) in planned {
        let added = added(&plan);
        let contents = match plan.changes.iter().any(Archive::is_long) {
            true => plan.records.iter().map(|kept| (kept.id.as_str(), kept.content)).collect(),
            false => BTreeMap::new(),
        };
        for (change, stamp) in plan.changes.iter().zip(&mut stamps) {
            if let (Some(archive), Some(stamp)) = (archives.remove(&change.path), stamp) {
                let records = added.get(change.path.as_str()).copied().unwrap_or_default();
                if let Some(log) = &mut log {
                    log.added(change, archive.records(), archive.stamp(), stamp);
                }
                archive.keep_added(change, stamp, records, &contents, &limits, files);
            }
        }
        // To those that are left nothing was added.
        archives.values().for_each(|archive| archive.keep_unchanged(&limits, files));
        plans.push(plan);
    }
    plans
}

/// How many records each archive gains.
pub(crate) fn added(plan: &Plan) -> BTreeMap<&str, u64> {
    let mut added = BTreeMap::new();
    for record in plan.records.iter().filter(|record| record.outcome == Outcome::Archived) {
        *added.entry(record.path.as_str()).or_default() += 1;
    }
    added
}

/// Names the record for which a name was to come into being that may not.
pub(crate) fn of_record(batches: &[&Batch], mut error: wit::Error) -> wit::Error {
    let first_at = |path: &str| batches.iter().find_map(|batch| batch.first_at(path));
    if let wit::Error::Refused(problems) = &mut error {
        for problem in problems.iter_mut().filter(|problem| problem.line.is_none()) {
            if let Some((number, id)) = problem.path.as_deref().and_then(&first_at) {
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

/// What a commit does to an archive that gains something: it must be the version that was looked at.
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

/// The commit's line for people.
fn into(conversations: usize) -> String {
    format!("into {conversations} {}", if conversations == 1 { "conversation" } else { "conversations" })
}

/// What a caller is told of a turn.
pub(crate) fn archived(kept: Kept) -> wit::ArchivedTurn {
    let (outcome, digests) = match kept.outcome {
        Outcome::Archived => (wit::Outcome::Archived, None),
        Outcome::Already => (wit::Outcome::Already, None),
        Outcome::Differs { kept, offered } => (wit::Outcome::Differs, Some((kept.hex(), offered.hex()))),
    };
    wit::ArchivedTurn { id: kept.id.to_string(), path: kept.path, anchor: kept.anchor, outcome, digests }
}
