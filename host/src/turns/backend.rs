//! Memory as an agent sees it, whoever keeps it.
//!
//! An agent that speaks to a [`Backend`] can be given another memory by a word in its configuration ([`Backends`]). Everything but
//! the name has a default that does nothing, so that a backend implements what it can.
//!
//! Knows what agents ask for. Must not know how it is done.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use super::drive::{failure_of, organise};
use super::store::{Listed, SessionStore};
use super::{Drive, DriveOptions, Failure, Said, Trigger, Upkeep};
use crate::bindings::workspace::Query;
use crate::error::Error;
use crate::session::Session;

/// Why a backend did not do what it was asked for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{code}: {message}")]
pub struct BackendError {
    /// A stable word, upper case; of a write one of FORMAT.md, "Codes of writers".
    pub code: String,
    /// Another try may help.
    pub retryable: bool,
    /// What is wrong and what to do, for people.
    pub message: String,
}

impl From<Failure> for BackendError {
    fn from(Failure { code, retryable, message }: Failure) -> Self {
        Self { code, retryable, message }
    }
}

impl From<Error> for BackendError {
    fn from(error: Error) -> Self {
        Self { code: error.code().to_owned(), retryable: failure_of(&error).retryable, message: error.to_string() }
    }
}

/// Something that was found in memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// By which the backend knows it.
    pub id: String,
    /// What it says.
    pub text: String,
}

/// What a write came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wrote {
    /// Turns that were given to the writer.
    pub turns: u64,
    /// Of those, what memory rests on now.
    pub kept: u64,
}

/// A memory that an agent can be given. Calls block.
pub trait Backend {
    /// What configurations call it.
    fn name(&self) -> &str;

    /// What every prompt of the agent holds of memory; empty: nothing.
    ///
    /// # Errors
    /// It cannot be told. The agent goes on without.
    fn system_prompt(&mut self) -> Result<String, BackendError> {
        Ok(String::new())
    }

    /// What memory has about `query`, best first, at most `most`.
    ///
    /// # Errors
    /// It cannot be looked up. An empty answer is none.
    fn search(&mut self, query: &str, most: u32) -> Result<Vec<Found>, BackendError> {
        let _ = (query, most);
        Ok(Vec::new())
    }

    /// A conversation has stopped for now: what is due of it becomes memory; with `force` all of it.
    ///
    /// # Errors
    /// It did not. That nothing was due is none.
    fn write(&mut self, session: &str, force: bool) -> Result<Wrote, BackendError> {
        let _ = (session, force);
        Ok(Wrote::default())
    }

    /// The text worth keeping in a summary of messages that are about to be discarded; empty: nothing. Stores nothing.
    ///
    /// # Errors
    /// It cannot be told.
    fn salvage(&mut self, messages: &[Said]) -> Result<String, BackendError> {
        let _ = messages;
        Ok(String::new())
    }

    /// Puts memory in order. Answers how many files changed.
    ///
    /// # Errors
    /// It did not come to its end. What was done stays.
    fn reorganise(&mut self) -> Result<u64, BackendError> {
        Ok(0)
    }
}

/// No memory: what `backend = "none"` chooses.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoMemory;

impl Backend for NoMemory {
    fn name(&self) -> &str {
        "none"
    }
}

/// The memory of this crate.
pub struct Recollex {
    session: Session,
    store: Option<Box<dyn SessionStore>>,
    workspace: Option<PathBuf>,
    options: DriveOptions,
}

impl Recollex {
    /// Over a session of the owner. `store` is where conversations are kept: without one nothing is written. `workspace` as for
    /// [`Drive::new`].
    #[must_use]
    pub fn new(
        session: Session,
        store: Option<Box<dyn SessionStore>>,
        workspace: Option<PathBuf>,
        options: DriveOptions,
    ) -> Self {
        Self { session, store, workspace, options }
    }

    /// The session, for what a backend does not offer.
    pub fn session(&mut self) -> &mut Session {
        &mut self.session
    }
}

impl fmt::Debug for Recollex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recollex")
            .field("session", &self.session)
            .field("workspace", &self.workspace)
            .finish_non_exhaustive()
    }
}

impl Backend for Recollex {
    fn name(&self) -> &str {
        "files"
    }

    fn system_prompt(&mut self) -> Result<String, BackendError> {
        Ok(self.session.core()?.map(|core| core.text).unwrap_or_default())
    }

    fn search(&mut self, query: &str, most: u32) -> Result<Vec<Found>, BackendError> {
        let answer = self.session.search(&Query::new(query, most))?;
        Ok(answer.hits.into_iter().map(|hit| Found { id: hit.id, text: hit.text }).collect())
    }

    fn write(&mut self, session: &str, force: bool) -> Result<Wrote, BackendError> {
        let Some(store) = self.store.as_deref() else { return Ok(Wrote::default()) };
        let listing = store.list().map_err(Failure::from)?;
        let fault = listing.faults.into_iter().find(|fault| fault.session.as_deref() == Some(session));
        if let Some(fault) = fault {
            return Err(Failure::from(fault).into());
        }
        let of = listing.conversations.into_iter().find(|it| it.id == session);
        let Some(of) = of.map(|of| Listed { told: true, ..of }) else {
            let message = format!("there is no conversation `{session}` in the store");
            return Err(Failure { code: super::SESSION_NODES_UNAVAILABLE.to_owned(), retryable: false, message }.into());
        };
        let trigger = if force { Trigger::Everything } else { Trigger::Due };
        let options = DriveOptions { trigger, ..self.options.clone() };
        let outcome = Drive::new(&mut self.session, store, self.workspace.as_deref()).write(&of, &options);
        match outcome.failure {
            Some(failure) => Err(failure.into()),
            None => Ok(Wrote {
                turns: outcome.batches.iter().map(|batch| batch.evidence.len() as u64).sum(),
                kept: outcome.batches.iter().map(|batch| batch.cited() as u64).sum(),
            }),
        }
    }

    fn salvage(&mut self, messages: &[Said]) -> Result<String, BackendError> {
        let salvaged = self.session.salvage(messages, self.options.model.as_deref())?;
        salvaged.failure.map_or(Ok(salvaged.text), |failure| Err(failure.into()))
    }

    fn reorganise(&mut self) -> Result<u64, BackendError> {
        let (mut files, mut failure) = (0, None);
        organise(&mut self.session, Upkeep::Whole, self.options.model.as_deref(), &|| false, &mut |step| {
            files += step.changed_files.len() as u64;
            failure = step.failure.clone();
        })?;
        failure.map_or(Ok(files), |failure| Err(failure.into()))
    }
}

type Make = Box<dyn Fn() -> Result<Box<dyn Backend>, BackendError>>;

/// Backends by the names that configurations call them by. [`NoMemory`] is `none` from the start.
pub struct Backends(BTreeMap<String, Make>);

impl Default for Backends {
    fn default() -> Self {
        Self(BTreeMap::new()).with("none", || Ok(Box::new(NoMemory)))
    }
}

impl Backends {
    /// With one more, or another in the place of one.
    #[must_use]
    pub fn with(
        mut self,
        name: impl Into<String>,
        make: impl Fn() -> Result<Box<dyn Backend>, BackendError> + 'static,
    ) -> Self {
        self.0.insert(name.into(), Box::new(make));
        self
    }

    /// The backend of this name.
    ///
    /// # Errors
    /// There is none of that name, which says which there are; or it cannot be made.
    pub fn open(&self, name: &str) -> Result<Box<dyn Backend>, BackendError> {
        match self.0.get(name) {
            Some(make) => make(),
            None => {
                let names: Vec<&str> = self.0.keys().map(String::as_str).collect();
                let message = format!("there is no backend `{name}`; there are {}", names.join(", "));
                Err(BackendError { code: "INVALID_ARGUMENT".to_owned(), retryable: false, message })
            }
        }
    }
}

impl fmt::Debug for Backends {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A memory that is a list of words, and knows nothing else of what a backend may do.
    struct Words(Vec<&'static str>);

    impl Backend for Words {
        fn name(&self) -> &str {
            "words"
        }

        fn search(&mut self, query: &str, most: u32) -> Result<Vec<Found>, BackendError> {
            let hits = self.0.iter().filter(|word| word.contains(query)).take(most as usize);
            Ok(hits.map(|word| Found { id: (*word).to_owned(), text: (*word).to_owned() }).collect())
        }
    }

    /// What an agent does, whatever memory it has.
    fn a_turn(memory: &mut dyn Backend) -> Vec<String> {
        let mut said = vec![memory.name().to_owned(), memory.system_prompt().unwrap()];
        said.extend(memory.search("bo", 1).unwrap().into_iter().map(|found| found.text));
        assert_eq!(memory.write("local_1", true).unwrap(), Wrote::default());
        assert_eq!(memory.salvage(&[]).unwrap(), "");
        assert_eq!(memory.reorganise().unwrap(), 0);
        said
    }

    #[test]
    fn a_word_of_the_configuration_swaps_the_memory() {
        let backends = Backends::default().with("words", || Ok(Box::new(Words(vec!["boat", "bolt"]))));
        assert_eq!(a_turn(&mut *backends.open("words").unwrap()), ["words", "", "boat"]);
        assert_eq!(a_turn(&mut *backends.open("none").unwrap()), ["none", ""]);
        let refused = backends.open("word").err().unwrap();
        assert_eq!(refused.message, "there is no backend `word`; there are none, words");
    }
}
