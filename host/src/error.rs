//! Why a call into Recollex failed.
//!
//! Three kinds meet here and stay apart: what the component answered ([`Error::Memory`]; nothing was done and the session
//! goes on), what stopped the component ([`Error::Limit`], [`Error::Cancelled`], [`Error::Trap`]; the session starts
//! afresh by itself), and what kept it from starting (versions, files, the engine).

use std::fmt::Write as _;
use std::io;
use std::path::{Path, PathBuf};

use crate::bindings::types::{self, Health, Problem};

/// Why a call failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The component answered with an error of the contract. Nothing was done; the session can be used on.
    #[error("{}", describe(.0))]
    Memory(types::Error),

    /// The component reached a limit of this host ([`Limits`](crate::Limits)) and was stopped. What it had committed
    /// stays, what it had not is gone; the next call starts it afresh.
    #[error(
        "the component reached the host's limit `{name}` of {allowed} {unit}; a smaller request may succeed, or raise the limit"
    )]
    Limit {
        /// The limit: `deadline`, `model-time`, `memory`, `output`, `stack`, `table`, `handles`, `host-calls` or `random`; or
        /// `machine-memory`: the system gave no more, to this process or to any.
        name: &'static str,
        /// What it is set to, in `unit`.
        allowed: u64,
        /// `ms`, `bytes`, `elements` or `handles`.
        unit: &'static str,
    },

    /// Somebody ended the call ([`Canceller`](crate::Canceller)). What it had committed stays, what it had not is gone; the
    /// next call starts the component afresh.
    #[error("the call was cancelled")]
    Cancelled,

    /// The component failed in a way that it should not: a fault in it, not in the caller's input. The next call starts
    /// it afresh.
    #[error("the component failed: {}{message}", said.as_ref().map(|said| format!("{said}; ")).unwrap_or_default())]
    Trap {
        /// What the engine says of it.
        message: String,
        /// What the component logged last as an error in this call: its own words on why, if it had any.
        said: Option<String>,
        /// The component's functions that were running, innermost first, one a line; empty if unknown.
        backtrace: String,
    },

    /// The component asks for another version of the contract than this host has.
    #[error("component and host do not fit: the component {wanted}, and the host {offered}")]
    Version {
        /// What the component imports or exports, or should.
        wanted: String,
        /// What this host offers or needs.
        offered: String,
    },

    /// The bytes are no component, or one that this engine does not run.
    #[error("not a component that can be run: {message}")]
    Component {
        /// What the engine says of it.
        message: String,
    },

    /// The engine could not be set up on this machine.
    #[error("the WebAssembly engine could not be set up: {message}")]
    Engine {
        /// What the engine says.
        message: String,
    },

    /// A verification or an archive whose instance has ended since, by a trap or a limit; or a verification of another
    /// session. Begin it again.
    #[error("what this check had read is gone, because the component was stopped; start it again")]
    Gone,

    /// A file that the host itself needs could not be used.
    #[error("{}: {source}", path.display())]
    Io {
        /// Which file or directory.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

impl Error {
    /// A stable word for programs, upper case. For [`Error::Memory`] the component's own (FORMAT.md lists them).
    #[must_use]
    pub fn code(&self) -> &str {
        match self {
            Self::Memory(error) => match error {
                types::Error::Conflict(_) => "CONCURRENT_UPDATE",
                types::Error::Locked(_) => "LOCKED",
                types::Error::Limit(_) => "LIMIT_REACHED",
                _ => problem(error).map_or("REFUSED", |problem| &problem.code),
            },
            Self::Limit { .. } => "HOST_LIMIT_REACHED",
            Self::Cancelled => "CANCELLED",
            Self::Trap { .. } => "COMPONENT_FAILED",
            Self::Version { .. } => "COMPONENT_VERSION",
            Self::Component { .. } => "COMPONENT_INVALID",
            Self::Engine { .. } => "ENGINE_UNAVAILABLE",
            Self::Gone => "VERIFICATION_GONE",
            Self::Io { .. } => "IO",
        }
    }

    /// Finer than the code, kebab-case, where there is more to say: the component's reason (FORMAT.md lists them), or the
    /// limit's name. A conflict is `stale`, a lock that another holds `lock-held`.
    #[must_use]
    pub fn reason(&self) -> Option<&str> {
        match self {
            Self::Memory(error) => match error {
                types::Error::Limit(limit) => Some(&limit.name),
                types::Error::Conflict(_) => Some("stale"),
                types::Error::Locked(_) => Some("lock-held"),
                _ => problem(error).map(|problem| &*problem.reason),
            },
            Self::Limit { name, .. } => Some(name),
            _ => None,
        }
    }

    /// The path it is about, in the workspace or on this machine.
    #[must_use]
    pub fn path(&self) -> Option<&Path> {
        match self {
            Self::Memory(error) => problem(error)?.path.as_deref().map(Path::new),
            Self::Io { path, .. } => Some(path),
            _ => None,
        }
    }

    /// The line it is about, from 1.
    #[must_use]
    pub fn line(&self) -> Option<u64> {
        match self {
            Self::Memory(error) => problem(error)?.line,
            _ => None,
        }
    }

    /// Every reason of a refusal, in the component's order; one or none for other errors.
    #[must_use]
    pub fn problems(&self) -> &[Problem] {
        match self {
            Self::Memory(error) => match error {
                types::Error::Refused(problems) => problems,
                _ => problem(error).map_or(&[], std::slice::from_ref),
            },
            _ => &[],
        }
    }

    /// The exit code that stands for it: 1 nothing found or memory empty, 2 unreadable input, 3 conflict, 4 locked,
    /// 5 memory off, 6 refused, 7 a limit or a failing component, 8 memory broken.
    #[must_use]
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Memory(error) => match error {
                types::Error::NotFound(_) => 1,
                types::Error::Invalid(_) | types::Error::Model(_) => 2,
                types::Error::Conflict(_) => 3,
                types::Error::Locked(_) => 4,
                types::Error::Refused(_) => 6,
                types::Error::Limit(_) => 7,
                types::Error::Store(_) => 8,
                types::Error::Unavailable((health, _)) => match health {
                    Health::Off => 5,
                    Health::Empty => 1,
                    Health::Ok | Health::Degraded | Health::Broken => 8,
                },
            },
            Self::Limit { .. } | Self::Cancelled | Self::Trap { .. } | Self::Gone => 7,
            Self::Version { .. } | Self::Component { .. } | Self::Engine { .. } | Self::Io { .. } => 2,
        }
    }
}

impl From<types::Error> for Error {
    fn from(error: types::Error) -> Self {
        Self::Memory(error)
    }
}

/// The problem that an error of the contract carries, the first if there are several.
fn problem(error: &types::Error) -> Option<&Problem> {
    match error {
        types::Error::Invalid(problem)
        | types::Error::NotFound(problem)
        | types::Error::Unavailable((_, problem))
        | types::Error::Store(problem)
        | types::Error::Model((problem, _)) => Some(problem),
        types::Error::Refused(problems) => problems.first(),
        types::Error::Conflict(_) | types::Error::Locked(_) | types::Error::Limit(_) => None,
    }
}

/// An error of the contract in words. `{:?}` would show the variants' shape instead.
fn describe(error: &types::Error) -> String {
    match error {
        types::Error::Conflict(revision) => {
            format!("the workspace has changed meanwhile; it is now at {revision}: read again and repeat")
        }
        types::Error::Locked(holder) => match holder {
            Some(holder) => format!("someone else is writing ({holder}); try again when they are done"),
            None => "someone else is writing; try again when they are done".to_owned(),
        },
        types::Error::Limit(limit) => {
            let mut text = format!("`{}` allows {}", limit.name, limit.allowed);
            if limit.asked > 0 {
                let _ = write!(text, ", and {} were asked for", limit.asked);
            }
            if let Some(subject) = &limit.subject {
                let _ = write!(text, " ({subject})");
            }
            text
        }
        types::Error::Refused(problems) => {
            let lines: Vec<String> = problems.iter().map(|problem| problem.message.clone()).collect();
            if lines.is_empty() { "refused".to_owned() } else { lines.join("\n") }
        }
        _ => problem(error).map_or_else(String::new, |problem| problem.message.clone()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn a_problem(code: &str, message: &str) -> Problem {
        Problem {
            code: code.to_owned(),
            reason: "some-reason".to_owned(),
            path: Some("topics/a.md".to_owned()),
            line: Some(3),
            subject: None,
            message: message.to_owned(),
        }
    }

    #[test]
    fn errors_of_the_contract_keep_their_codes_and_places() {
        let said = |error: types::Error| {
            let error = Error::from(error);
            (error.code().to_owned(), error.reason().map(str::to_owned))
        };
        let word = |code: &str, reason: &str| (code.to_owned(), Some(reason.to_owned()));
        assert_eq!(said(types::Error::Conflict("r1-0".to_owned())), word("CONCURRENT_UPDATE", "stale"));
        assert_eq!(said(types::Error::Locked(None)), word("LOCKED", "lock-held"));
        let error = Error::from(types::Error::NotFound(a_problem("MEMORY_NOT_FOUND", "no such record")));
        assert_eq!((error.code(), error.reason()), ("MEMORY_NOT_FOUND", Some("some-reason")));
        assert_eq!((error.path(), error.line()), (Some(Path::new("topics/a.md")), Some(3)));
        assert_eq!((error.to_string(), error.exit_code()), ("no such record".to_owned(), 1));
    }

    #[test]
    fn a_refusal_shows_every_reason() {
        let problems = vec![a_problem("READ_ONLY_PATH", "first"), a_problem("MISSING_SOURCE", "second")];
        let error = Error::from(types::Error::Refused(problems));
        assert_eq!((error.code(), error.exit_code(), error.problems().len()), ("READ_ONLY_PATH", 6, 2));
        assert_eq!(error.to_string(), "first\nsecond");
        let error = Error::from(types::Error::Refused(Vec::new()));
        assert_eq!((error.code(), error.to_string()), ("REFUSED", "refused".to_owned()));
    }

    #[test]
    fn exit_codes_are_those_of_the_command_line() {
        let problem = || a_problem("X", "x");
        let unavailable = |health| types::Error::Unavailable((health, problem()));
        let limit =
            types::LimitReached { name: "limits.batch-bytes".to_owned(), allowed: 10, asked: 11, subject: None };
        for (error, code) in [
            (types::Error::Invalid(problem()), 2),
            (types::Error::Conflict("r1-0".to_owned()), 3),
            (types::Error::Locked(None), 4),
            (unavailable(Health::Off), 5),
            (unavailable(Health::Empty), 1),
            (unavailable(Health::Broken), 8),
            (types::Error::Limit(limit), 7),
            (types::Error::Store(problem()), 8),
            (types::Error::Model((problem(), true)), 2),
        ] {
            let text = format!("{error:?}");
            assert_eq!(Error::from(error).exit_code(), code, "{text}");
        }
    }

    #[test]
    fn every_error_says_something_in_words() {
        let limit = types::LimitReached {
            name: "limits.batch-bytes".to_owned(),
            allowed: 10,
            asked: 11,
            subject: Some("the batch".to_owned()),
        };
        for (error, text) in [
            (types::Error::Limit(limit).into(), "`limits.batch-bytes` allows 10, and 11 were asked for (the batch)"),
            (
                types::Error::Conflict("r1-0".to_owned()).into(),
                "the workspace has changed meanwhile; it is now at r1-0: read again and repeat",
            ),
            (
                types::Error::Locked(Some("process 7".to_owned())).into(),
                "someone else is writing (process 7); try again when they are done",
            ),
            (
                Error::Limit { name: "memory", allowed: 5, unit: "bytes" },
                "the component reached the host's limit `memory` of 5 bytes; a smaller request may succeed, or raise the \
                 limit",
            ),
            (
                Error::Trap {
                    message: "unreachable".to_owned(),
                    said: Some("panicked at a.rs".to_owned()),
                    backtrace: "0: f".to_owned(),
                },
                "the component failed: panicked at a.rs; unreachable",
            ),
        ] {
            assert_eq!(Error::to_string(&error), text);
        }
    }
}
