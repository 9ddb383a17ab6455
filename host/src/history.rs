//! History: each commit of a store recorded in the git repository that the workspace is, by the git of whoever runs this.
//!
//! Knows git's command line and the paths of a commit. Must not know what the files mean, and decides nothing about whether
//! a commit happens: it is made first, and stays whatever git says. Without git, or without a repository, nothing changes.
//!
//! Only files of the workspace's tree are recorded, only those that the commit changed, and nothing that the repository
//! ignores. What a person has staged beside them stays staged and is not taken along.

use std::collections::BTreeSet;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Arc, OnceLock};
use std::thread;

use crate::observer::{Level, Observer};
use crate::store::{
    About, Area, ByteChunk, Change, CommitError, Committed, Edit, Entry, Guard, Page, Stamp, Store, StoreError,
    TextChunk, Trouble, Watch,
};

/// Who commits where git knows nobody.
const NAME: &str = "Recollex";
const MAIL: &str = "recollex@localhost";

/// Settings that a repository or a user may have and that must not matter here: programs that git would start, and
/// signatures that somebody would have to type something for.
const PLAIN: [&str; 6] = ["-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false", "-c", "commit.gpgSign=false"];

/// Paths that are named in one call: with 4,096 bytes each they are less than Linux and macOS take as arguments.
const ARGUMENTS_MAX: usize = 200;

/// Variables that would lead git to another repository.
const ELSEWHERE: [&str; 6] = [
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_OBJECT_DIRECTORY",
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_NAMESPACE",
];

/// Whether commits are recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// Where the workspace is a repository.
    #[default]
    Auto,
    /// Always; where that cannot be, each commit says so.
    On,
    /// Never.
    Off,
}

impl Mode {
    /// The words that name one, for people.
    pub const WORDS: &'static str = "`auto`, `on` or `off`";

    /// By its name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "auto" => Some(Self::Auto),
            "on" => Some(Self::On),
            "off" => Some(Self::Off),
            _ => None,
        }
    }

    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::On => "on",
            Self::Off => "off",
        }
    }

    /// The repository in which commits to the workspace `root` are recorded; none: in none.
    #[must_use]
    pub fn repository(self, root: &Path) -> Option<Repository> {
        let repository = Repository::at(root);
        match self {
            Self::Off => None,
            Self::On => Some(repository),
            Self::Auto => repository.exists().then_some(repository),
        }
    }
}

/// Why a commit was not recorded. The commit itself stands.
#[derive(Debug, thiserror::Error)]
pub enum HistoryError {
    /// There is no git to be run.
    #[error("git cannot be run: {0}")]
    Unavailable(#[source] io::Error),
    /// The workspace's directory is no repository.
    #[error("{} is no git repository: make it one (git init), or switch history off", .0.display())]
    NoRepository(PathBuf),
    /// Git refused.
    #[error("git {doing} failed: {said}")]
    Failed {
        /// Which of its commands.
        doing: &'static str,
        /// What it said, the first line.
        said: String,
    },
}

impl HistoryError {
    /// Code of the closed list (FORMAT.md, "Refusals").
    #[must_use]
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Unavailable(_) => "GIT_UNAVAILABLE",
            Self::NoRepository(_) | Self::Failed { .. } => "GIT_COMMIT_FAILED",
        }
    }
}

/// The repository that a workspace is.
#[derive(Debug)]
pub struct Repository {
    root: PathBuf,
    /// Arguments that name somebody where git knows nobody.
    identity: OnceLock<Vec<String>>,
}

impl Repository {
    /// The repository whose top is the directory `root`, whether it is there or not. A relative path counts from the current
    /// directory of this moment.
    #[must_use]
    pub fn at(root: &Path) -> Self {
        // Git is run in that directory, where a relative path would lead elsewhere.
        let root = std::path::absolute(root).unwrap_or_else(|_| root.to_owned());
        Self { root, identity: OnceLock::new() }
    }

    /// Whether there is one. A workspace somewhere within a repository is not recorded in it: that is somebody's project.
    #[must_use]
    pub fn exists(&self) -> bool {
        self.root.join(".git").exists()
    }

    /// Records these files as they are now, or that they are gone. False: there was nothing to record.
    ///
    /// # Errors
    /// [`HistoryError`]; then the files are recorded with the next commit that changes them.
    pub fn record(&self, paths: &BTreeSet<&str>, message: &str) -> Result<bool, HistoryError> {
        if !self.exists() {
            return Err(HistoryError::NoRepository(self.root.clone()));
        }
        let (there, gone): (Vec<&str>, Vec<&str>) =
            paths.iter().copied().partition(|path| self.root.join(path).symlink_metadata().is_ok());
        let ignored = self.ignored(&there)?;
        let mut recorded: Vec<&str> = there.into_iter().filter(|path| !ignored.contains(*path)).collect();
        let tracked = self.tracked(&gone)?;
        recorded.extend(gone.into_iter().filter(|path| tracked.contains(*path)));
        if recorded.is_empty() {
            return Ok(false);
        }
        let listed = joined(&recorded);
        self.run("add", &["add", "--all", "--pathspec-from-file=-", "--pathspec-file-nul"], &listed)?;
        let commit = [
            "commit",
            "--quiet",
            "--only",
            "--allow-empty",
            "--no-verify",
            "--cleanup=verbatim",
            "--message",
            message,
            "--pathspec-from-file=-",
            "--pathspec-file-nul",
        ];
        self.run("commit", &commit, &listed)?;
        Ok(true)
    }

    /// Those of the files that the repository ignores and does not have already.
    fn ignored(&self, paths: &[&str]) -> Result<BTreeSet<String>, HistoryError> {
        if paths.is_empty() {
            return Ok(BTreeSet::new());
        }
        // This one knows no literal patterns. Paths of a tree begin with none of the characters that would make one.
        let arguments = ["check-ignore", "-z", "--stdin"];
        let output = self.start(false, &arguments, &joined(paths))?;
        match output.status.code() {
            // 1: none is ignored.
            Some(0 | 1) => Ok(split(&output.stdout)),
            _ => Err(failed("check-ignore", &output.stderr)),
        }
    }

    /// Those of the files that the repository has.
    fn tracked(&self, paths: &[&str]) -> Result<BTreeSet<String>, HistoryError> {
        let mut tracked = BTreeSet::new();
        // This one takes no paths from stdin, and a system takes only so many as arguments.
        for some in paths.chunks(ARGUMENTS_MAX) {
            let mut arguments = vec!["ls-files", "-z", "--"];
            arguments.extend(some);
            tracked.append(&mut split(&self.run("ls-files", &arguments, b"")?));
        }
        Ok(tracked)
    }

    /// One of the files that the repository has, or has had in whatever branch; none: it keeps no version of any.
    fn keeps(&self, paths: &BTreeSet<&str>) -> Result<Option<String>, HistoryError> {
        if !self.exists() {
            return Ok(None);
        }
        let paths: Vec<&str> = paths.iter().copied().collect();
        if let Some(path) = self.tracked(&paths)?.pop_first() {
            return Ok(Some(path));
        }
        let has_had = |some: &[&str]| -> Result<bool, HistoryError> {
            let mut arguments = vec!["rev-list", "--all", "--max-count=1", "--"];
            arguments.extend(some);
            Ok(!self.run("rev-list", &arguments, b"")?.is_empty())
        };
        for some in paths.chunks(ARGUMENTS_MAX) {
            if !has_had(some)? {
                continue;
            }
            for path in some {
                if has_had(&[*path])? {
                    return Ok(Some((*path).to_owned()));
                }
            }
        }
        Ok(None)
    }

    fn run(&self, doing: &'static str, arguments: &[&str], input: &[u8]) -> Result<Vec<u8>, HistoryError> {
        let output = self.start(true, arguments, input)?;
        if output.status.success() { Ok(output.stdout) } else { Err(failed(doing, &output.stderr)) }
    }

    /// Runs git. `literal`: what looks like a pattern in a path is none.
    fn start(&self, literal: bool, arguments: &[&str], input: &[u8]) -> Result<Output, HistoryError> {
        let identity = self.identity.get_or_init(|| self.find_identity());
        let mut command = self.git();
        command.env("GIT_LITERAL_PATHSPECS", if literal { "1" } else { "0" });
        command.args(identity).args(arguments);
        let mut child = command.stdin(Stdio::piped()).spawn().map_err(HistoryError::Unavailable)?;
        let writer = feed(&mut child, input);
        let output = child.wait_with_output().map_err(HistoryError::Unavailable)?;
        if let Some(writer) = writer {
            // Git may end before it has read everything; its exit status says what that means.
            let _ = writer.join();
        }
        Ok(output)
    }

    /// Git asks for a name before it commits. Where nobody gave one, it gets one.
    fn find_identity(&self) -> Vec<String> {
        let known = self.git().args(["var", "GIT_COMMITTER_IDENT"]).stdin(Stdio::null()).output();
        match known {
            Ok(output) if !output.status.success() => {
                ["-c", &format!("user.name={NAME}"), "-c", &format!("user.email={MAIL}")].map(str::to_owned).to_vec()
            }
            _ => Vec::new(),
        }
    }

    fn git(&self) -> Command {
        let mut command = Command::new("git");
        for variable in ELSEWHERE {
            command.env_remove(variable);
        }
        command
            .current_dir(&self.root)
            .env("GIT_TERMINAL_PROMPT", "0")
            // A look at the repository must not wait for, or take, a lock that a commit does not need.
            .env("GIT_OPTIONAL_LOCKS", "0")
            .env("LC_ALL", "C")
            .arg("--git-dir")
            .arg(self.root.join(".git"))
            .arg("--work-tree")
            .arg(&self.root)
            .args(PLAIN)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }
}

/// Writes from a thread of its own: git may begin to answer before it has read everything.
fn feed(child: &mut Child, input: &[u8]) -> Option<thread::JoinHandle<()>> {
    let mut stdin = child.stdin.take()?;
    let input = input.to_vec();
    Some(thread::spawn(move || {
        let _ = stdin.write_all(&input);
    }))
}

fn failed(doing: &'static str, said: &[u8]) -> HistoryError {
    let said = String::from_utf8_lossy(said);
    let line = said.lines().find(|line| !line.trim().is_empty()).unwrap_or("it did not say why");
    HistoryError::Failed { doing, said: line.to_owned() }
}

fn joined(paths: &[&str]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for path in paths {
        bytes.extend_from_slice(path.as_bytes());
        bytes.push(0);
    }
    bytes
}

fn split(bytes: &[u8]) -> BTreeSet<String> {
    let parts = bytes.split(|byte| *byte == 0).filter(|part| !part.is_empty());
    parts.map(|part| String::from_utf8_lossy(part).into_owned()).collect()
}

/// A store whose commits are recorded.
pub struct Recorded {
    store: Arc<dyn Store>,
    repository: Repository,
    observer: Arc<dyn Observer>,
}

impl Recorded {
    /// The store of the workspace that `repository` is. What git refuses is told to `observer`: a warning, and the event
    /// `history-failed` with `code` and `message`.
    #[must_use]
    pub fn new(store: Arc<dyn Store>, repository: Repository, observer: Arc<dyn Observer>) -> Self {
        Self { store, repository, observer }
    }

    /// What a commit removes for good must not be in the history, which nobody rewrites here.
    fn check_erasable(&self, changes: &[Change]) -> Result<(), CommitError> {
        let refused = |path: String, why: String| Err(CommitError::Failed { path, error: StoreError::Denied(why) });
        match self.repository.keeps(&changed(changes)) {
            Ok(None) => Ok(()),
            Ok(Some(path)) => refused(
                path,
                "git keeps older versions of this file, so that nothing of it can be erased: take it out of the \
                 repository's history first"
                    .to_owned(),
            ),
            Err(error) => {
                refused(String::new(), format!("whether git keeps what is to be erased is not known: {error}"))
            }
        }
    }

    fn record(&self, changes: &[Change], about: &About) {
        let paths = changed(changes);
        if paths.is_empty() {
            return;
        }
        if let Err(error) = self.repository.record(&paths, &message(about)) {
            self.observer.log(Level::Warn, &format!("the commit stands, but is not in the history: {error}"));
            let fields = [("code".to_owned(), error.code().to_owned()), ("message".to_owned(), error.to_string())];
            self.observer.event("history-failed", &fields);
        }
    }
}

/// The files of the tree that a commit changes, moves' targets too.
fn changed(changes: &[Change]) -> BTreeSet<&str> {
    let mut paths = BTreeSet::new();
    for change in changes.iter().filter(|change| change.area == Area::Tree) {
        match &change.edit {
            Edit::Keep => continue,
            Edit::MoveTo(target) => paths.insert(target.as_str()),
            Edit::Put(_) | Edit::Append { .. } | Edit::Splice(_) | Edit::Delete => true,
        };
        paths.insert(change.path.as_str());
    }
    paths
}

/// What a commit says in git: the caller's note, and which verb it was.
fn message(about: &About) -> String {
    match (about.verb(), about.note()) {
        ("", "") => "memory".to_owned(),
        (verb, "") => verb.to_owned(),
        ("", note) => note.to_owned(),
        (verb, note) => format!("{verb}: {note}"),
    }
}

impl Store for Recorded {
    fn watch(&self) -> Option<Box<dyn Watch>> {
        self.store.watch()
    }

    fn generation(&self) -> Result<u64, StoreError> {
        self.store.generation()
    }

    fn entries(&self, area: Area, prefix: &str, cursor: Option<&str>, max: u32) -> Result<Page, StoreError> {
        self.store.entries(area, prefix, cursor, max)
    }

    fn stat(&self, area: Area, path: &str) -> Result<Entry, StoreError> {
        self.store.stat(area, path)
    }

    fn read_text(
        &self,
        area: Area,
        path: &str,
        at: Option<&Stamp>,
        offset: u64,
        max: u32,
    ) -> Result<TextChunk, StoreError> {
        self.store.read_text(area, path, at, offset, max)
    }

    fn read_bytes(
        &self,
        area: Area,
        path: &str,
        at: Option<&Stamp>,
        offset: u64,
        max: u32,
    ) -> Result<ByteChunk, StoreError> {
        self.store.read_bytes(area, path, at, offset, max)
    }

    fn commit(
        &self,
        guard: &dyn Guard,
        base: u64,
        changes: &[Change],
        about: &About,
    ) -> Result<Committed, CommitError> {
        if about.erases() {
            self.check_erasable(changes)?;
        }
        let committed = self.store.commit(guard, base, changes, about)?;
        // Still under the lock: nobody changes the files while git reads them.
        self.record(changes, about);
        Ok(committed)
    }

    fn troubles(&self) -> Result<Vec<Trouble>, StoreError> {
        self.store.troubles()
    }

    fn complete(&self, guard: &dyn Guard) -> Result<(), StoreError> {
        self.store.complete(guard)
    }

    fn put_cache(&self, name: &str, data: &[u8]) -> Result<Stamp, StoreError> {
        self.store.put_cache(name, data)
    }

    fn append_cache(&self, name: &str, length: u64, data: &[u8]) -> Result<Stamp, StoreError> {
        self.store.append_cache(name, length, data)
    }

    fn drop_cache(&self, name: &str) -> Result<(), StoreError> {
        self.store.drop_cache(name)
    }
}
