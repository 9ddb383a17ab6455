//! A workspace open for one caller.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use crate::bindings::types::{Finding, Tier};
use crate::bindings::workspace::{
    Answer, Archived, Excerpt, Initialised, Listing, Query, Report, Setting, Status, Turn,
};
use crate::error::Error;
use crate::observer::{Observer, Silent};
use crate::runtime::Runtime;

/// Who opens a workspace, and how.
#[derive(Clone)]
pub struct OpenOptions {
    /// Who calls. None is refused by the component with `AUTHORITY_TIER_MISSING`: a program must say it.
    pub tier: Option<Tier>,
    /// On whose behalf, as the program names people.
    pub principal: Option<String>,
    /// IANA name of the time zone for days and "yesterday"; none: UTC.
    pub time_zone: Option<String>,
    /// Settings by name, as FORMAT.md lists them: `backend`, `limits.batch-bytes`, `search.top-k-max`.
    pub settings: Vec<Setting>,
    /// Hears the component's log lines, events and progress.
    pub observer: Arc<dyn Observer>,
}

impl OpenOptions {
    /// For a caller of this tier, with no settings, in UTC, with no observer.
    #[must_use]
    pub fn new(tier: Tier) -> Self {
        Self { tier: Some(tier), principal: None, time_zone: None, settings: Vec::new(), observer: Arc::new(Silent) }
    }

    /// With one more setting.
    #[must_use]
    pub fn setting(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.settings.push(Setting { name: name.into(), value: value.into() });
        self
    }

    /// With this observer.
    #[must_use]
    pub fn observer(mut self, observer: Arc<dyn Observer>) -> Self {
        self.observer = observer;
        self
    }
}

impl fmt::Debug for OpenOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpenOptions")
            .field("tier", &self.tier)
            .field("principal", &self.principal)
            .field("time_zone", &self.time_zone)
            .field("settings", &self.settings)
            .finish_non_exhaustive()
    }
}

/// A workspace open for one caller.
///
/// Errors of the component leave the session as it was. A trap or a limit of the host ends the component's instance, and
/// with it a lock that it held; the next call starts a new one and opens it with the same options.
#[derive(Debug)]
pub struct Session {
    runtime: Runtime,
    options: OpenOptions,
}

impl Session {
    /// Opens the workspace in the directory `root`. Reads nothing of it yet: it may be damaged, empty or not there.
    ///
    /// # Errors
    /// [`Error::Memory`] when the component refuses the options, `unavailable` with `off` for `backend=none`;
    /// [`Error::Io`] when `root` cannot be a workspace; [`Error::Limit`] and [`Error::Trap`] as any call.
    pub fn open(runtime: &Runtime, root: &Path, options: OpenOptions) -> Result<Self, Error> {
        let _ = root;
        Ok(Self { runtime: runtime.clone(), options })
    }

    /// Makes a workspace where there is none.
    ///
    /// # Errors
    /// As every call: [`Error::Memory`] as `wit/workspace.wit` says, [`Error::Limit`], [`Error::Trap`].
    pub fn init(&mut self) -> Result<Initialised, Error> {
        Err(Error::Gone)
    }

    /// Figures and health.
    ///
    /// # Errors
    /// As [`Session::init`].
    pub fn status(&mut self) -> Result<Status, Error> {
        Err(Error::Gone)
    }

    /// Keeps turns as evidence, all of them or none.
    ///
    /// # Errors
    /// As [`Session::init`].
    pub fn archive(&mut self, turns: &[Turn]) -> Result<Archived, Error> {
        let _ = turns;
        Err(Error::Gone)
    }

    /// Looks words up.
    ///
    /// # Errors
    /// As [`Session::init`].
    pub fn search(&mut self, query: &Query) -> Result<Answer, Error> {
        let _ = query;
        Err(Error::Gone)
    }

    /// Reads a file (its path) or a record (its id, or `path#anchor`) from line `from_line` on, at most `max_lines` (0:
    /// the setting `get.lines`).
    ///
    /// # Errors
    /// As [`Session::init`].
    pub fn get(&mut self, target: &str, from_line: Option<u64>, max_lines: u32) -> Result<Excerpt, Error> {
        let _ = (target, from_line, max_lines);
        Err(Error::Gone)
    }

    /// Files below a prefix, in code-point order, at most `max` (0: the setting `browse.files`).
    ///
    /// # Errors
    /// As [`Session::init`].
    pub fn browse(&mut self, prefix: &str, cursor: Option<&str>, max: u32) -> Result<Listing, Error> {
        let _ = (prefix, cursor, max);
        Err(Error::Gone)
    }

    /// Starts checking all files below a prefix (empty: everything).
    ///
    /// # Errors
    /// As [`Session::init`].
    pub fn verify(&mut self, prefix: &str) -> Result<Verification, Error> {
        let _ = prefix;
        Err(Error::Gone)
    }
}

/// A verification under way. It belongs to the session that began it and is gone with that session's instance: after a
/// trap or a limit its calls answer [`Error::Gone`].
#[derive(Debug)]
pub struct Verification {}

impl Verification {
    /// Reads on for about `bytes` bytes and returns what it found; none: everything was read.
    ///
    /// # Errors
    /// As [`Session::init`], and [`Error::Gone`].
    pub fn step(&mut self, session: &mut Session, bytes: u64) -> Result<Option<Vec<Finding>>, Error> {
        let _ = (session, bytes);
        Err(Error::Gone)
    }

    /// The outcome so far; final once [`Verification::step`] answered none.
    ///
    /// # Errors
    /// As [`Verification::step`].
    pub fn report(&mut self, session: &mut Session) -> Result<Report, Error> {
        let _ = session;
        Err(Error::Gone)
    }
}
