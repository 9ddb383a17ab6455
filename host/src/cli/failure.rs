//! Why a verb did not do its work, as a value: what, where, what to do next, and how the process ends.
//!
//! Knows the library's errors and the documented exit codes. Nothing is printed here.

use std::io;
use std::path::Path;

use recollex::Error;
use recollex::lock::LockError;
use recollex::maintenance::BackupError;
use recollex::store::{CommitError, StoreError, UndoError};
use recollex::types::Problem;
use serde::Serialize;

/// How the process ends. The numbers are a contract with scripts (see `recollex --help`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exit(pub u8);

impl Exit {
    /// Done, found, clean.
    pub const DONE: Self = Self(0);
    /// Nothing found, memory empty, or findings.
    pub const NOTHING: Self = Self(1);
    /// Usage, or input that cannot be read.
    pub const USAGE: Self = Self(2);
    /// The workspace has moved on.
    pub const CONFLICT: Self = Self(3);
    /// Another writer has the lock.
    pub const LOCKED: Self = Self(4);
    /// Memory is switched off.
    pub const OFF: Self = Self(5);
    /// Against a rule, or not allowed.
    pub const REFUSED: Self = Self(6);
    /// A limit was reached, or the component failed.
    pub const LIMIT: Self = Self(7);
    /// Memory is broken.
    pub const BROKEN: Self = Self(8);
}

/// Why a verb did not do its work.
#[derive(Debug)]
pub struct Failure {
    /// Stable, upper case.
    pub code: String,
    /// Finer, kebab-case.
    pub reason: String,
    /// For people: what is wrong.
    pub message: String,
    /// The file it is about.
    pub path: Option<String>,
    /// Its line, from 1.
    pub line: Option<u64>,
    /// What to do next, where the message does not say it.
    pub next: Option<String>,
    /// Where a component that failed was: for reports of faults.
    pub backtrace: Option<String>,
    /// All reasons, where there are several.
    pub problems: Vec<Reason>,
    /// How the process ends.
    pub exit: Exit,
}

/// One of several reasons.
#[derive(Clone, Debug, Serialize)]
pub struct Reason {
    /// Stable, upper case.
    pub code: String,
    /// Finer, kebab-case.
    pub reason: String,
    /// For people.
    pub message: String,
    /// The file it is about.
    pub path: Option<String>,
    /// Its line, from 1.
    pub line: Option<u64>,
    /// What it is about: an id, a name.
    pub subject: Option<String>,
}

/// The form of a failure in `--json`: stable keys.
#[derive(Serialize)]
pub struct FailureDocument<'a> {
    ok: bool,
    error: FailureBody<'a>,
}

/// What went wrong, within a document.
#[derive(Serialize)]
pub struct FailureBody<'a> {
    code: &'a str,
    reason: &'a str,
    message: &'a str,
    path: Option<&'a str>,
    line: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<&'a str>,
    #[serde(skip_serializing_if = "<[Reason]>::is_empty")]
    problems: &'a [Reason],
}

impl Failure {
    fn new(code: &str, reason: &str, message: impl Into<String>, exit: Exit) -> Self {
        Self {
            code: code.to_owned(),
            reason: reason.to_owned(),
            message: message.into(),
            path: None,
            line: None,
            next: None,
            backtrace: None,
            problems: Vec::new(),
            exit,
        }
    }

    /// What and where, for a place that has one line for it.
    pub fn in_one_line(&self) -> String {
        let line = self.line.map(|line| format!(":{line}")).unwrap_or_default();
        match &self.path {
            Some(path) => format!("{path}{line}: {}", self.message),
            None => self.message.clone(),
        }
    }

    /// The call makes no sense: an option, a configuration, a line of input.
    pub fn usage(reason: &str, message: impl Into<String>) -> Self {
        Self::new("INVALID_ARGUMENT", reason, message, Exit::USAGE)
    }

    /// A file could not be read or written by this program itself.
    pub fn io(doing: &str, path: &Path, error: &io::Error) -> Self {
        Self::new("IO", "io", format!("cannot {doing}: {error}"), Exit::USAGE)
            .at_path(path.display().to_string())
            .next(about_io(error))
    }

    /// Stdout cannot be written.
    pub fn output(error: &io::Error) -> Self {
        Self::new("IO", "output", format!("the result could not be written: {error}"), Exit::USAGE)
            .next("send it elsewhere")
    }

    /// Nothing has that name.
    pub fn not_found(reason: &str, message: impl Into<String>) -> Self {
        Self::new("MEMORY_NOT_FOUND", reason, message, Exit::NOTHING)
    }

    /// There is no directory to do it in: `to` says what.
    pub fn no_workspace(to: &str, root: &Path) -> Self {
        Self::not_found("no-workspace", format!("there is no workspace to {to}"))
            .at_path(root.display().to_string())
            .next("make one: recollex init; or name another: --workspace DIR")
    }

    /// Somebody else is writing.
    pub fn locked(message: impl Into<String>) -> Self {
        Self::new("LOCKED", LOCK_HELD, message, Exit::LOCKED).next("try again when they are done")
    }

    /// A writer's failure, by its code (FORMAT.md, "Codes of writers").
    pub fn writer(code: &str, message: impl Into<String>) -> Self {
        let exit = match code {
            "WRITER_NO_PROGRESS" => Exit::NOTHING,
            "CONCURRENT_UPDATE" => Exit::CONFLICT,
            "WRITER_FAILURE_UNKNOWN" => Exit::LIMIT,
            "TRANSACTION_FAILURE_UNKNOWN" | "GIT_COMMIT_FAILED" => Exit::BROKEN,
            "APPEND_ONLY_REQUIRED"
            | "COMMIT_REJECTED"
            | "INVALID_ARGUMENT"
            | "INVALID_TOPIC_FORMAT"
            | "MISSING_SOURCE"
            | "PATCH_CONFLICT"
            | "PATH_OUTSIDE_WORKSPACE"
            | "READ_ONLY_PATH" => Exit::REFUSED,
            // What it would have read, or the model that would have read it, is not there or not set up.
            _ => Exit::USAGE,
        };
        let reason = code.to_ascii_lowercase().replace('_', "-");
        Self::new(code, &reason, message, exit)
    }

    /// This caller may not.
    pub fn owner_only(verb: &str) -> Self {
        let message = format!("`{verb}` is for the owner");
        Self::new("AUTHORITY_CAPABILITY_DENIED", "owner-only", message, Exit::REFUSED).next("ask them")
    }
    /// Memory is switched off.
    pub fn disabled() -> Self {
        Self::new("MEMORY_DISABLED", "backend-none", "memory is switched off", Exit::OFF)
            .next("switch it on: take `backend = \"none\"` out of the configuration, RECOLLEX_BACKEND or --backend")
    }

    /// The store or the lock failed, where this program uses them itself.
    pub fn store(doing: &str, error: &StoreError) -> Self {
        let (reason, exit) = match error {
            StoreError::Denied(_) => ("denied", Exit::BROKEN),
            StoreError::Full => ("full", Exit::BROKEN),
            StoreError::Changed => ("changed-while-reading", Exit::CONFLICT),
            StoreError::Limit { name, .. } if name == FILE_SIZE => (FILE_SIZE, Exit::LIMIT),
            _ => ("io", Exit::BROKEN),
        };
        let failure = Self::new("TRANSACTION_FAILURE_UNKNOWN", reason, format!("cannot {doing}: {error}"), exit);
        match about_store(reason) {
            Some(next) => failure.next(next),
            None => failure,
        }
    }

    /// A limit of this program, not of the component.
    pub fn limit(name: &str, message: impl Into<String>) -> Self {
        Self::new("LIMIT_REACHED", name, message, Exit::LIMIT)
    }

    /// The demonstration did not give what it must.
    pub fn demo(step: &str, message: impl Into<String>) -> Self {
        Self::new("DEMO_FAILED", step, message, Exit::BROKEN)
    }

    /// With the file it is about; an empty path is none.
    pub fn at_path(mut self, path: impl Into<String>) -> Self {
        self.path = Some(path.into()).filter(|path| !path.is_empty());
        self
    }

    /// With words before its message: which of several things it is about.
    pub fn prefixed(mut self, words: &str) -> Self {
        self.message.insert_str(0, words);
        self
    }

    /// With the line it is about.
    pub fn at_line(mut self, line: u64) -> Self {
        self.line = Some(line);
        self
    }

    /// With what to do next.
    pub fn next(mut self, next: impl Into<String>) -> Self {
        self.next = Some(next.into());
        self
    }

    /// With another exit code, where a verb's contract says so.
    pub fn exit(mut self, exit: Exit) -> Self {
        self.exit = exit;
        self
    }

    /// As one JSON document.
    pub fn document(&self) -> FailureDocument<'_> {
        FailureDocument { ok: false, error: self.body() }
    }

    /// The same as a part of a document that has more to say.
    pub fn body(&self) -> FailureBody<'_> {
        FailureBody {
            code: &self.code,
            reason: &self.reason,
            message: &self.message,
            path: self.path.as_deref(),
            line: self.line,
            next: self.next.as_deref(),
            problems: &self.problems,
        }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let problems = error.problems();
        let mut failure = Self::new(error.code(), reason(&error), error.to_string(), Exit(error.exit_code()));
        if let Error::Io { source, .. } = &error {
            // The path has a place of its own.
            failure.message = source.to_string();
        }
        failure.path = error.path().map(|path| path.display().to_string()).filter(|path| !path.is_empty());
        failure.line = error.line();
        if let [problem] = problems {
            failure.message = said(problem);
        } else if let [first, ..] = problems {
            failure.message = format!("{} reasons, the first: {}", problems.len(), said(first));
            failure.problems = problems.iter().map(Reason::from).collect();
        }
        failure.next = advice(&error);
        if let Error::Trap { backtrace, .. } = &error {
            failure.backtrace = Some(backtrace.clone()).filter(|text| !text.is_empty());
        }
        failure
    }
}

impl From<LockError> for Failure {
    fn from(error: LockError) -> Self {
        match error {
            LockError::Held(holder) => {
                let who = holder.and_then(|holder| holder.process).map(|process| format!(" (process {process})"));
                Self::locked(format!("someone else is writing{}", who.unwrap_or_default()))
            }
            LockError::Denied(why) => {
                // The component's word for the same.
                let failure = Self::store("lock the workspace", &StoreError::Denied(why));
                Self { reason: "read-only".to_owned(), ..failure }
            }
            LockError::Io(why) => Self::store("lock the workspace", &StoreError::Io(why)),
        }
    }
}

impl From<CommitError> for Failure {
    fn from(error: CommitError) -> Self {
        let message = error.to_string();
        match error {
            CommitError::Stale(_) => Self::new("CONCURRENT_UPDATE", "stale", message, Exit::CONFLICT),
            CommitError::Changed(path) => {
                Self::new("CONCURRENT_UPDATE", "changed", message, Exit::CONFLICT).at_path(path)
            }
            CommitError::Collision { planned, .. } => {
                Self::new("INVALID_ARGUMENT", PATH_COLLISION, message, Exit::REFUSED)
                    .at_path(planned)
                    .next("use the spelling that is there")
            }
            CommitError::LockLost => Self::new("TRANSACTION_FAILURE_UNKNOWN", "lock-lost", message, Exit::LOCKED)
                .next("nothing was changed; try again"),
            CommitError::WrongKind(path) => Self::new("INVALID_ARGUMENT", NOT_A_DIRECTORY, message, Exit::REFUSED)
                .at_path(path)
                .next("move what is in the way aside"),
            CommitError::Failed { path, error } => Self::store("commit", &error).at_path(path),
        }
    }
}

impl From<UndoError> for Failure {
    fn from(error: UndoError) -> Self {
        let message = error.to_string();
        match error {
            UndoError::Nothing => Self::not_found("no-commit", message),
            UndoError::Changed(path) => Self::new("CONCURRENT_UPDATE", "newer-work", message, Exit::CONFLICT)
                .at_path(path)
                .next("nothing was done to it; what is newer would be lost"),
            UndoError::Erased(_) => Self::new("COMMIT_REJECTED", "erased", message, Exit::REFUSED)
                .next("`recollex undo --list` shows what can be taken back"),
            UndoError::Commit(error) => error.into(),
            UndoError::Store(error) => Self::store("take the commit back", &error),
        }
    }
}

impl Failure {
    /// A backup could not be made, read or restored. `file` is where it is, or was to be.
    pub fn backup(error: BackupError, file: &Path) -> Self {
        let message = error.to_string();
        let shown = file.display().to_string();
        let unreadable =
            |reason: &str| Self::new("BACKUP_UNREADABLE", reason, message.clone(), Exit::USAGE).at_path(shown.clone());
        match error {
            BackupError::Store { path, error } => {
                let failure = Self::store("read the workspace", &error);
                if path.is_empty() { failure } else { failure.at_path(path) }
            }
            BackupError::Twins { other, .. } => Self::new("INVALID_ARGUMENT", "path-twins", message, Exit::REFUSED)
                .at_path(other)
                .next("rename one of them: they cannot both be restored everywhere"),
            BackupError::TooMany => Self::limit("backup.files", message),
            BackupError::Foreign(_) => unreadable("not-a-backup"),
            BackupError::Newer(_) => unreadable("newer-format"),
            BackupError::Damaged(_) => unreadable("damaged").next("nothing was changed; take another backup"),
            BackupError::Commit(error) => Self::from(error),
            BackupError::Io(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                Self::usage("exists", "there is a file already").at_path(shown).next("replace it: --force")
            }
            BackupError::Io(error) => Self::io("use the backup", file, &error),
            _ => Self::usage("backup", message),
        }
    }
}

impl From<&Problem> for Reason {
    fn from(problem: &Problem) -> Self {
        Self {
            code: problem.code.clone(),
            reason: problem.reason.clone(),
            message: said(problem),
            path: problem.path.clone().filter(|path| !path.is_empty()),
            line: problem.line,
            subject: problem.subject.clone(),
        }
    }
}

/// Two names that are one to some media: the component's reason for a refusal.
pub const PATH_COLLISION: &str = "path-collision";
/// A file where a directory is needed, or the reverse.
pub const NOT_A_DIRECTORY: &str = "not-a-directory";
/// A file may not get as long as it would have to: the store's name of that limit.
const FILE_SIZE: &str = "file-size";
const LONGER_FILES: &str =
    "let this process write longer files (ulimit -f); if it may, the file system takes none so long";
/// Somebody has the lock.
const LOCK_HELD: &str = "lock-held";

/// A component's reason in its words. Which two names collide is only in the subject.
fn said(problem: &Problem) -> String {
    match &problem.subject {
        Some(names) if problem.reason == PATH_COLLISION => format!("{} ({names})", problem.message),
        _ => problem.message.clone(),
    }
}

/// The finer word, which is never empty: where the library has none, one for the kind of error.
fn reason(error: &Error) -> &str {
    error.reason().filter(|reason| !reason.is_empty()).unwrap_or(match error {
        Error::Trap { .. } => "trap",
        Error::Version { .. } => "version",
        Error::Component { .. } => "component",
        Error::Engine { .. } => "engine",
        Error::Gone => "gone",
        Error::Io { .. } => "io",
        _ => "unknown",
    })
}

/// What helps against a fault of the system, told by its kind.
fn about_io(error: &io::Error) -> &'static str {
    use io::ErrorKind as Kind;
    match error.kind() {
        Kind::NotFound => "check the path: nothing is there",
        Kind::PermissionDenied => "see to the permissions, or name another place",
        Kind::IsADirectory => "name a file: this is a directory",
        Kind::NotADirectory => "check the path: a part of it is no directory",
        Kind::StorageFull | Kind::QuotaExceeded => "make room there, then repeat the call",
        Kind::ReadOnlyFilesystem => "name a place that can be written",
        Kind::InvalidInput | Kind::InvalidFilename => "check the path: it cannot be used",
        _ => "if it happens again, the medium or the system's log says why",
    }
}

/// What helps where the workspace's directory fails, by the reason that the component and this program give alike.
fn about_store(reason: &str) -> Option<&'static str> {
    match reason {
        "full" => Some("make room where the workspace is, then repeat the call"),
        "denied" | "read-only" => Some("`recollex doctor` tells of permissions; or name another: --workspace DIR"),
        "io" => Some("`recollex doctor` looks at the workspace; the system's log may say more"),
        "changed-while-reading" => Some("repeat the call"),
        FILE_SIZE => Some(LONGER_FILES),
        _ => None,
    }
}

/// What a person at a shell does about it. The component's own messages say it in general; only what this program's
/// options can do is added.
fn advice(error: &Error) -> Option<String> {
    match error {
        Error::Limit { name: "deadline", .. } => Some("raise it: --limit deadline_ms=N".to_owned()),
        Error::Limit { name: "memory", .. } => Some("raise it: --limit memory_bytes=N".to_owned()),
        Error::Limit { name: "host-calls", .. } => Some("raise it: --limit host_calls=N".to_owned()),
        Error::Limit { name: "output", .. } => Some("raise it: --limit output_bytes=N".to_owned()),
        Error::Limit { name: "machine-memory", .. } => {
            Some("free memory on this machine, or let this process have more: ulimit -v".to_owned())
        }
        Error::Memory(recollex::types::Error::Limit(limit)) if limit.name == FILE_SIZE => Some(LONGER_FILES.to_owned()),
        Error::Memory(recollex::types::Error::Limit(limit)) => Some(format!("raise it: --set {}=N", limit.name)),
        Error::Memory(recollex::types::Error::Store(problem)) => about_store(&problem.reason).map(str::to_owned),
        Error::Memory(recollex::types::Error::Unavailable((recollex::types::Health::Broken, problem))) => {
            about_store(&problem.reason).map(str::to_owned)
        }
        Error::Memory(recollex::types::Error::Refused(problems)) => {
            let code = problems.first().map(|problem| &*problem.code);
            (code == Some("PATH_OUTSIDE_WORKSPACE"))
                .then(|| "name a path in the workspace: `recollex browse` lists them".to_owned())
        }
        Error::Memory(recollex::types::Error::Conflict(_)) => Some("repeat the call".to_owned()),
        Error::Io { source, .. } => Some(about_io(source).to_owned()),
        Error::Memory(recollex::types::Error::Unavailable((recollex::types::Health::Off, _))) => Some(
            "switch it on: take `backend = \"none\"` out of the configuration, RECOLLEX_BACKEND or --backend"
                .to_owned(),
        ),
        Error::Trap { .. } => Some("please report it, with the output of the same command and -vv".to_owned()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use recollex::types::{self, Health};

    use super::*;

    fn problem(message: &str) -> Problem {
        Problem {
            code: "INVALID_ARGUMENT".to_owned(),
            reason: "unsafe-source-id".to_owned(),
            path: None,
            line: None,
            subject: Some("p/t/m".to_owned()),
            message: message.to_owned(),
        }
    }

    #[test]
    fn documents_have_all_stable_keys() {
        let failure = Failure::usage("missing-field", "`text` is missing").at_line(3);
        assert_eq!(
            serde_json::to_string(&failure.document()).unwrap(),
            r#"{"ok":false,"error":{"code":"INVALID_ARGUMENT","reason":"missing-field","message":"`text` is missing","path":null,"line":3}}"#
        );
    }

    #[test]
    fn exit_codes_follow_the_contract() {
        let exit = |error: types::Error| Failure::from(Error::from(error)).exit.0;
        assert_eq!(exit(types::Error::NotFound(problem("x"))), 1);
        assert_eq!(exit(types::Error::Invalid(problem("x"))), 2);
        assert_eq!(exit(types::Error::Conflict("r1-0".to_owned())), 3);
        assert_eq!(exit(types::Error::Locked(None)), 4);
        assert_eq!(exit(types::Error::Unavailable((Health::Off, problem("x")))), 5);
        assert_eq!(exit(types::Error::Refused(vec![problem("x")])), 6);
        assert_eq!(exit(types::Error::Unavailable((Health::Broken, problem("x")))), 8);
    }

    #[test]
    fn a_reason_is_never_empty_and_a_path_never_is_either() {
        let failure = Failure::from(Error::from(types::Error::Locked(None)));
        assert_eq!((&*failure.code, &*failure.reason), ("LOCKED", "lock-held"));
        assert_eq!(Failure::from(Error::from(types::Error::Conflict("r1-0".to_owned()))).reason, "stale");
        assert_eq!(Failure::from(Error::Gone).reason, "gone");
        let nowhere = Problem { path: Some(String::new()), ..problem("x") };
        let failure = Failure::from(Error::from(types::Error::Refused(vec![nowhere.clone(), nowhere])));
        let json = serde_json::to_value(failure.document()).unwrap();
        assert_eq!(json["error"]["path"], serde_json::Value::Null);
        assert_eq!(json["error"]["problems"][0]["path"], serde_json::Value::Null);
        let failed = CommitError::Failed { path: String::new(), error: StoreError::Full };
        assert_eq!(Failure::from(failed).path, None);
    }

    #[test]
    fn faults_of_the_medium_say_what_to_do() {
        for reason in ["full", "denied", "read-only", "io"] {
            let problem = Problem { reason: reason.to_owned(), ..problem("x") };
            let failure = Failure::from(Error::from(types::Error::Store(problem)));
            assert!(failure.next.is_some(), "{reason}");
        }
        for error in [StoreError::Full, StoreError::Denied("x".to_owned()), StoreError::Io("x".to_owned())] {
            assert!(Failure::store("commit", &error).next.is_some(), "{error}");
        }
        let missing = Failure::io("read it", Path::new("/x"), &io::ErrorKind::NotFound.into());
        assert!(missing.next.unwrap().contains("path"));
    }

    #[test]
    fn a_collision_names_both_spellings() {
        let problem = Problem {
            reason: PATH_COLLISION.to_owned(),
            subject: Some("sources/p/_v2/T.md and sources/p/_v2/t.md".to_owned()),
            ..problem("two names")
        };
        let failure = Failure::from(Error::from(types::Error::Refused(vec![problem])));
        assert_eq!(failure.message, "two names (sources/p/_v2/T.md and sources/p/_v2/t.md)");
    }

    #[test]
    fn every_reason_of_a_refusal_is_kept() {
        let failure = Failure::from(Error::from(types::Error::Refused(vec![problem("one"), problem("two")])));
        assert_eq!(failure.problems.len(), 2);
        assert_eq!(failure.message, "2 reasons, the first: one");
        let json = serde_json::to_value(failure.document()).unwrap();
        assert_eq!(json["error"]["problems"][1]["message"], "two");
    }
}
