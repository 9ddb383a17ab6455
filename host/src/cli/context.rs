//! What every verb is given: how the call is set up, and where to write.

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use recollex::history;
use recollex::lock::{FileLock, Lock as _};
use recollex::model;
use recollex::store::Guard;
use recollex::types;
use recollex::workspace::{Refreshed, Status};
use recollex::{Error, Medium, OpenOptions, Runtime, RuntimeOptions, Session};

use super::args::{Global, Tier};
use super::config::{Origin, Setup};
use super::failure::Failure;
use super::output::{Output, Remarks};
use super::status::place;
use super::terminal::count;

/// So many things that are wrong with edited topics are told before something else is answered.
const EDITS_TOLD: usize = 5;

/// The component's reason for a time zone that is none.
const UNKNOWN_ZONE: &str = "unknown-time-zone";

/// What every verb is given.
pub struct Context {
    /// Options that every verb takes.
    pub global: Global,
    /// Where everything is.
    pub setup: Setup,
    /// Results.
    pub out: Output,
    /// Everything else.
    pub remarks: Arc<Remarks>,
}

impl Context {
    /// The engine with both components. With memory off no directory may come into being: a cache is used where there is
    /// one.
    pub fn runtime(&self) -> Result<Runtime, Failure> {
        let since = Instant::now();
        let runtime = Runtime::new(RuntimeOptions {
            cache: self.setup.compiled.clone().filter(|cache| !self.setup.off() || cache.is_dir()),
            limits: self.setup.limits.clone(),
            observer: self.remarks.clone(),
            models: self.models(),
            ..RuntimeOptions::default()
        })?;
        self.remarks.timed("engine", since);
        Ok(runtime)
    }

    /// The models, as they are set whenever one is asked.
    fn models(&self) -> Arc<dyn model::Models> {
        let source = self.setup.models_from.clone();
        Arc::new(model::Live::new(move || source.read().map_err(|failure| failure.in_one_line())))
    }

    /// A session on the workspace in `root`.
    pub fn open(&self, runtime: &Runtime, root: &Path) -> Result<Session, Failure> {
        let since = Instant::now();
        let mut options = OpenOptions::new(match self.global.tier {
            Tier::Owner => types::Tier::Owner,
            Tier::Paired => types::Tier::Paired,
        })
        .observer(self.remarks.clone());
        for (name, value) in self.settings() {
            options = options.setting(name, value);
        }
        let zone = self.setup.time_zone.as_ref();
        options.time_zone = zone.map(|(name, _)| name.clone());
        let session = match (Session::over(runtime, self.medium(root), options.clone()), zone) {
            // The machine's own setting may be a rule rather than a name, and must not keep anybody from their memory.
            (Err(error), Some((name, Origin::Default))) if error.reason() == Some(UNKNOWN_ZONE) => {
                self.remarks.warn(&format!(
                    "this machine's time zone, `{name}`, is none that is known by name: UTC is used. Name one: --time-zone NAME"
                ));
                options.time_zone = None;
                Session::over(runtime, self.medium(root), options)
            }
            (opened, _) => opened,
        };
        let session = session.map_err(|error| self.who_set_it(error))?;
        self.remarks.timed("open", since);
        Ok(session)
    }

    /// What records commits to this call's workspace, as `status` calls it.
    pub fn history(&self) -> &'static str {
        match self.setup.history.repository(&self.setup.workspace) {
            Some(_) => "git",
            None => "off",
        }
    }

    /// The directory `root`, whose commits are recorded where that is wanted.
    fn medium(&self, root: &Path) -> Medium {
        let medium = Medium::directory(root);
        match self.setup.history.repository(root) {
            Some(repository) => {
                let store = history::Recorded::new(medium.store, repository, self.remarks.clone());
                Medium { store: Arc::new(store), ..medium }
            }
            None => medium,
        }
    }

    /// The component's settings, name and value.
    pub fn settings(&self) -> Vec<(&str, &str)> {
        self.setup.settings.iter().map(|(name, (value, _))| (name.as_str(), value.as_str())).collect()
    }

    /// A session on this call's workspace.
    pub fn session(&self) -> Result<Session, Failure> {
        let session = self.open(&self.runtime()?, &self.setup.workspace)?;
        // Second, because memory that is off is told before anything is looked at.
        self.setup.check_workspace()?;
        Ok(session)
    }

    /// The same for a verb that reads: what a person has edited by hand is noticed first, and what is wrong is told. Nothing
    /// about that keeps the verb from its answer.
    pub fn reading_session(&self) -> Result<Session, Failure> {
        let mut session = self.session()?;
        let findings = self.notice_edits(&mut session);
        for finding in findings.iter().take(EDITS_TOLD) {
            let place = place(finding.path.as_deref(), finding.line);
            self.remarks.warn(&format!("{place}{} [{}]", finding.message, finding.code));
        }
        if !findings.is_empty() {
            self.remarks.hint("All of it: recollex verify. What can be put in order safely: recollex verify --fix");
        }
        Ok(session)
    }

    /// If a person has edited topics by hand since this program made the views, makes them anew. What is wrong with topics then.
    pub fn notice_edits(&self, session: &mut Session) -> Vec<types::Finding> {
        if matches!(self.global.tier, Tier::Paired) || self.is_absent() {
            return Vec::new();
        }
        let Ok(Refreshed { edited, changed_files, findings }) = self.time("refresh", || session.refresh()) else {
            return Vec::new();
        };
        if edited {
            let views = match changed_files.len() as u64 {
                0 => String::new(),
                files => format!("; {} made anew", count(files, "file was", "files were")),
            };
            self.remarks.hint(&format!("Topics were edited by hand{views}."));
        }
        findings
    }

    /// Whether this call's workspace is not there at all.
    pub fn is_absent(&self) -> bool {
        matches!(self.setup.workspace.try_exists(), Ok(false))
    }

    /// In words, for who found nothing: that there is no workspace, or that its directory holds none. None where there
    /// is one.
    pub fn nothing_there(&self, status: &Status) -> Option<String> {
        let root = self.setup.workspace.display();
        if self.is_absent() {
            return Some(format!(
                "There is no workspace: {root} does not exist. Make it: recollex init; or name another: --workspace DIR"
            ));
        }
        (status.health == types::Health::Empty && status.workspace.is_none()).then(|| {
            format!("{root} holds nothing of a memory. Make a workspace there: recollex init; or name another: --workspace DIR")
        })
    }

    /// Refuses what only the owner may do, anything while memory is off, and a workspace that cannot be one: for verbs
    /// that reach a workspace without a session, which would answer the same.
    pub fn owner_only(&self, verb: &str) -> Result<(), Failure> {
        if self.setup.off() {
            return Err(Failure::disabled());
        }
        match self.global.tier {
            Tier::Owner => self.setup.check_workspace(),
            Tier::Paired => Err(Failure::owner_only(verb)),
        }
    }

    /// Takes the workspace's lock, for a verb that needs no session.
    pub fn lock(&self, purpose: &str) -> Result<Box<dyn Guard>, Failure> {
        self.acquire(&FileLock::new(&self.setup.workspace), purpose)
    }

    /// Takes it for a verb that only keeps writers away, on a medium that cannot be written too.
    pub fn lock_to_read(&self, purpose: &str) -> Result<Box<dyn Guard>, Failure> {
        self.acquire(&FileLock::new(&self.setup.workspace).to_read(), purpose)
    }

    fn acquire(&self, lock: &FileLock, purpose: &str) -> Result<Box<dyn Guard>, Failure> {
        Ok(lock.acquire(self.setup.lock_wait_ms()?, purpose)?)
    }

    /// What came out, or what to do next: behind the result, where both are read in one place.
    pub fn hint(&self, text: &str) {
        self.out.flush();
        self.remarks.hint(text);
    }

    /// Something the caller should know of, behind the result.
    pub fn warn(&self, text: &str) {
        self.out.flush();
        self.remarks.warn(text);
    }

    /// Times a call (`-v`).
    pub fn time<T>(&self, what: &str, call: impl FnOnce() -> T) -> T {
        let since = Instant::now();
        let result = call();
        self.remarks.timed(what, since);
        result
    }

    /// The component names the setting that it refuses; only here is known where it was set.
    pub fn who_set_it(&self, error: Error) -> Failure {
        let subject = match &error {
            Error::Memory(types::Error::Invalid(problem)) => problem.subject.clone(),
            _ => None,
        };
        let failure = Failure::from(error);
        if failure.reason == UNKNOWN_ZONE {
            return match (self.setup.time_zone.as_ref().map(|(_, origin)| *origin), &self.setup.config) {
                (Some(Origin::Configuration), Some(path)) => {
                    failure.at_path(path.display().to_string()).next("set `time_zone` right there")
                }
                (Some(Origin::Environment), _) => failure.next("it is set by RECOLLEX_TIME_ZONE"),
                _ => failure,
            };
        }
        let Some((_, origin)) = subject.and_then(|name| self.setup.settings.get(&name)) else { return failure };
        match (origin, &self.setup.config) {
            (Origin::Configuration, Some(path)) => {
                failure.at_path(path.display().to_string()).next("set it right there")
            }
            (Origin::Environment, _) => failure.next("it is set by RECOLLEX_BACKEND"),
            _ => failure,
        }
    }
}
