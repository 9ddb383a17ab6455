//! Core's values as WIT values, and the imports' failures as the errors a caller sees.
//!
//! Knows both sides' types. Must not decide anything but which code a failure of the store carries.

use recollex_core::source;
use recollex_core::trust::Denied;

use crate::bindings::exports::recollex::memory::workspace as wit;
use crate::bindings::recollex::memory::lock::{Holder, LockError};
use crate::bindings::recollex::memory::store::{CommitError, StoreError};
use crate::bindings::recollex::memory::types as shared;

pub(crate) use crate::shared::{bad_setting, counts, finding, health, problem, record, speaker, trust};

/// The reason when something changed while it was read: worth another try.
const CHANGED: &str = "changed-while-reading";

/// The closed list's code for what the store or the medium could not do.
const STORE_FAILED: &str = "TRANSACTION_FAILURE_UNKNOWN";

pub(crate) fn problem_of(problem: source::Problem) -> shared::Problem {
    shared::Problem {
        code: problem.code.to_owned(),
        reason: problem.reason.to_owned(),
        path: problem.path,
        line: problem.line,
        subject: problem.subject,
        message: problem.message,
    }
}

pub(crate) fn denied(denied: Denied) -> shared::Error {
    shared::Error::Refused(vec![problem(denied.code(), denied.reason(), None, denied.to_string())])
}

pub(crate) fn limit(limit: source::LimitReached) -> shared::Error {
    shared::Error::Limit(shared::LimitReached {
        name: limit.name.to_owned(),
        allowed: limit.allowed,
        asked: limit.asked,
        subject: limit.subject,
    })
}

/// A read or a listing that failed, at `path`.
pub(crate) fn store_error(error: StoreError, path: Option<&str>) -> shared::Error {
    let failed = |reason, message: String| shared::Error::Store(problem(STORE_FAILED, reason, path, message));
    match error {
        StoreError::NotFound => shared::Error::NotFound(problem(
            "MEMORY_NOT_FOUND",
            "no-such-file",
            path,
            "nothing is there; `browse` lists what is",
        )),
        StoreError::NotText(offset) => {
            failed("invalid-utf8", format!("byte {offset} is not UTF-8; `verify` shows the line"))
        }
        StoreError::Changed => failed(CHANGED, "another program keeps changing it; try again".to_owned()),
        StoreError::Denied(why) => shared::Error::Refused(vec![problem(
            "PATH_OUTSIDE_WORKSPACE",
            "denied",
            path,
            format!("the store does not open it: {why}"),
        )]),
        StoreError::Limit((name, allowed)) => {
            shared::Error::Limit(shared::LimitReached { name, allowed, asked: 0, subject: path.map(str::to_owned) })
        }
        StoreError::Full => failed("full", "no space is left; nothing was changed".to_owned()),
        StoreError::Io(why) => failed("io", format!("the store failed: {why}")),
    }
}

/// A read that failed of a file of the runtime directory. No caller named it, so a denial is the store's failure: whatever needs
/// the file cannot be done at all.
pub(crate) fn runtime_error(error: StoreError, file: &str) -> shared::Error {
    let path = runtime_path(file);
    match error {
        StoreError::Denied(why) => shared::Error::Store(problem(
            STORE_FAILED,
            "denied",
            Some(&path),
            format!("the store does not open it: {why}"),
        )),
        error => store_error(error, Some(&path)),
    }
}

/// Where people find a file of the runtime directory.
pub(crate) fn runtime_path(file: &str) -> String {
    if file.is_empty() { ".scriptorium".to_owned() } else { format!(".scriptorium/{file}") }
}

/// Whether something changed while it was read.
pub(crate) fn is_changed(error: &shared::Error) -> bool {
    matches!(error, shared::Error::Store(problem) if problem.reason == CHANGED)
}

/// Why a file could not be read, as part of a finding.
pub(crate) fn in_words(error: &StoreError) -> String {
    match error {
        StoreError::NotFound => "it was there a moment ago and is gone".to_owned(),
        StoreError::Changed => "another program changed it while it was read".to_owned(),
        StoreError::NotText(offset) => format!("byte {offset} is not UTF-8"),
        StoreError::Denied(why) => format!("it may not be read: {why}"),
        StoreError::Limit((name, allowed)) => format!("the host's limit {name} ({allowed}) was reached"),
        StoreError::Full => "the store is full".to_owned(),
        StoreError::Io(why) => format!("the store failed: {why}"),
    }
}

/// What went wrong, as part of a finding: where, as far as that is known, and in words.
pub(crate) fn told(error: shared::Error) -> (Option<String>, String) {
    match error {
        shared::Error::Invalid(problem)
        | shared::Error::NotFound(problem)
        | shared::Error::Store(problem)
        | shared::Error::Unavailable((_, problem))
        | shared::Error::Model((problem, _)) => (problem.path, problem.message),
        shared::Error::Refused(problems) => {
            let path = problems.first().and_then(|problem| problem.path.clone());
            let messages: Vec<String> = problems.into_iter().map(|problem| problem.message).collect();
            (path, messages.join("; "))
        }
        shared::Error::Limit(reached) => {
            (reached.subject, format!("the limit {} ({}) was reached", reached.name, reached.allowed))
        }
        shared::Error::Conflict(_) => (None, "another program keeps changing the workspace".to_owned()),
        shared::Error::Locked(_) => (None, "another program is writing".to_owned()),
    }
}

/// A commit that did not happen, for a reason of its own.
pub(crate) fn commit_error(error: CommitError) -> shared::Error {
    let refused = |reason, path: Option<&str>, subject: Option<String>, message: &str| {
        let problem = problem("INVALID_ARGUMENT", reason, path, message);
        shared::Error::Refused(vec![shared::Problem { subject, ..problem }])
    };
    match error {
        CommitError::Stale(_) | CommitError::Changed(_) => store_error(StoreError::Changed, None),
        CommitError::Collision((wanted, there)) => refused(
            "path-collision",
            Some(&wanted),
            Some(format!("{wanted} and {there}")),
            "two names that differ only in case or Unicode form would be one file on some systems; use the existing spelling",
        ),
        CommitError::WrongKind(path) => refused(
            "not-a-directory",
            Some(&path),
            Some(path.clone()),
            "a file is where a directory is needed, or the reverse; move it away first",
        ),
        CommitError::LockLost => shared::Error::Store(problem(
            STORE_FAILED,
            "lock-lost",
            None,
            "the lock was lost before anything was changed; try again",
        )),
        CommitError::Failed((path, StoreError::Denied(why))) => shared::Error::Store(problem(
            STORE_FAILED,
            "denied",
            Some(&path),
            format!("the store may not write: {why}"),
        )),
        CommitError::Failed((path, error)) => store_error(error, Some(&path)),
    }
}

pub(crate) fn lock_error(error: LockError) -> shared::Error {
    let failed = |reason, message: String| shared::Error::Store(problem(STORE_FAILED, reason, None, message));
    match error {
        LockError::Held(holder) => shared::Error::Locked(holder.as_ref().map(holder_in_words)),
        LockError::Denied(why) => failed("read-only", format!("the lock may not be taken here: {why}")),
        LockError::Io(why) => failed("io", format!("the lock failed: {why}")),
    }
}

pub(crate) fn holder_in_words(holder: &Holder) -> String {
    match (holder.process, &holder.purpose) {
        (Some(process), Some(purpose)) => format!("process {process} ({purpose})"),
        (Some(process), None) => format!("process {process}"),
        (None, Some(purpose)) => format!("another process ({purpose})"),
        (None, None) => "another process".to_owned(),
    }
}

pub(crate) fn core_tier(tier: shared::Tier) -> source::Tier {
    match tier {
        shared::Tier::Owner => source::Tier::Owner,
        shared::Tier::Paired => source::Tier::Paired,
    }
}

pub(crate) fn new_numbered(turn: wit::NumberedTurn) -> source::NewNumbered {
    source::NewNumbered { reference: turn.reference, date: turn.date, label: turn.label, text: turn.text }
}

pub(crate) fn new_record(turn: wit::Turn) -> source::NewRecord {
    source::NewRecord {
        provider: turn.provider,
        thread: turn.thread,
        id: turn.id,
        ordinal: turn.ordinal,
        role: turn.role,
        text: turn.text,
        time: turn.time,
        speaker_id: turn.speaker_id,
        speaker_display: turn.speaker_display,
        speaker_kind: turn.speaker_kind,
        principal: turn.principal,
        tier: turn.tier,
        trust: turn.trust,
        after: source::Predecessor::Before,
    }
}
