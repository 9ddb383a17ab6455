//! The way of every change: under the lock, planned against what is there, committed, and planned again when another
//! program came between.
//!
//! Knows the loop. What is to change, and what must still be there, the plan says.

use crate::bindings::exports::recollex::memory::workspace as wit;
use crate::bindings::recollex::memory::lock::Guard;
use crate::bindings::recollex::memory::store::{self, Change, CommitError, Committed};
use crate::convert;
use crate::session::{Session, about, generation, new_workspace_id, workspace_id};

/// How often a change is planned again because another program came in between.
const PLAN_TRIES: u32 = 4;

/// What is to change.
pub(crate) struct Planned<T> {
    /// None: there is nothing to do.
    pub(crate) changes: Vec<Change>,
    /// What it is, for people.
    pub(crate) note: String,
    /// What the plan was made of, for whoever asked.
    pub(crate) basis: T,
}

/// What became of it.
pub(crate) struct Done<T> {
    /// Of the plan that was carried out.
    pub(crate) basis: T,
    /// None: there was nothing to do.
    pub(crate) committed: Option<Committed>,
    /// The lock is held until this is dropped: what is known of the change is kept under it.
    pub(crate) guard: Guard,
}

/// Carries a plan out, all of it or nothing, and makes the workspace where there is none. `plan` is asked anew for each try;
/// `explain` adds to the error of a commit what the plan knows of it.
pub(crate) fn carry_out<T>(
    session: &Session,
    verb: &str,
    mut plan: impl FnMut() -> Result<Planned<T>, wit::Error>,
    explain: impl FnOnce(wit::Error) -> wit::Error,
) -> Result<Done<T>, wit::Error> {
    let guard = session.lock(verb)?;
    let mut tries = PLAN_TRIES;
    loop {
        let base = generation()?;
        let Planned { mut changes, note, basis } = match plan() {
            Err(error) if tries > 1 && convert::is_changed(&error) => {
                tries -= 1;
                continue;
            }
            planned => planned?,
        };
        if changes.is_empty() {
            return Ok(Done { basis, committed: None, guard });
        }
        if workspace_id()?.is_none() {
            changes.push(new_workspace_id().1);
        }
        match store::commit(&guard, base, &changes, &about(verb, note)) {
            Ok(committed) => return Ok(Done { basis, committed: Some(committed), guard }),
            Err(CommitError::Stale(_) | CommitError::Changed(_)) if tries > 1 => tries -= 1,
            Err(error) => return Err(explain(session.not_committed(error))),
        }
    }
}
