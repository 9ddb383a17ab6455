//! Which store of conversations is meant: option, environment, configuration; and how it keeps them, by what is there.
//!
//! Knows names of files. Must not know what conversations say.

use std::fs;
use std::path::{Path, PathBuf};

use clap::ValueEnum;
use recollex::Session;
use recollex::turns::{
    Conversation, DriveOptions, Heads, JsonlSessions, Listed, Listing, OpenProgramSessions, SessionStore, StoreError,
    StoreFault, StoreLimits, open,
};
use recollex::types::Finding;
use serde::Deserialize;

use super::args;
use crate::cli::context::Context;
use crate::cli::failure::Failure;

/// How conversations are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Format {
    /// `<session>/history/<number>-<role>-<id>.json`
    Openprogram,
    /// `<id>.jsonl`, a node a line
    Jsonl,
}

/// Under which turns of OpenProgram are archived where nobody says otherwise.
const OPENPROGRAM: &str = "openprogram";
/// Entries of a directory that are looked at to see how it keeps conversations.
const LOOKED_AT: usize = 1000;

/// A store of conversations, and how its turns are archived.
pub struct Sessions {
    /// The store.
    pub store: Box<dyn SessionStore>,
    /// Where it is, for messages.
    pub path: PathBuf,
    /// Under which its turns are archived.
    pub provider: String,
}

impl Sessions {
    /// What this call's options, the environment and the configuration name.
    ///
    /// # Errors
    /// Nobody named one, it is not there, or what is there says not how it is kept.
    pub fn of(args: &args::Sessions, context: &Context) -> Result<Self, Failure> {
        Self::named(args, context)?.ok_or_else(|| {
            Failure::usage("no-sessions", "nobody said where conversations are kept")
                .next("name it: --sessions DIR|FILE, RECOLLEX_SESSIONS, or `path` in [sessions] of the configuration")
        })
    }

    /// The same; none: nobody named one.
    pub fn named(args: &args::Sessions, context: &Context) -> Result<Option<Self>, Failure> {
        let setup = &context.setup.sessions;
        let Some(path) = args.path.clone().or_else(|| setup.path.clone()) else { return Ok(None) };
        let format = match args.format.or(setup.format) {
            Some(format) => format,
            None => guess(&path)?,
        };
        let limits = StoreLimits { wait_ms: context.setup.lock_wait_ms()?, ..StoreLimits::default() };
        let store: Box<dyn SessionStore> = match format {
            Format::Openprogram => Box::new(OpenProgramSessions::new(&path).limits(limits)),
            Format::Jsonl if path.is_dir() => Box::new(JsonlSessions::directory(&path).limits(limits)),
            Format::Jsonl => match JsonlSessions::file(&path) {
                Some(file) => Box::new(file.limits(limits)),
                None => {
                    return Err(Failure::usage("sessions-path", "this names no file of conversations")
                        .at_path(path.display().to_string()));
                }
            },
        };
        let provider = args.provider.clone().or_else(|| setup.provider.clone());
        let provider = match (provider, format) {
            (Some(provider), _) => provider,
            (None, Format::Openprogram) => OPENPROGRAM.to_owned(),
            (None, Format::Jsonl) => {
                return Err(Failure::usage("no-provider", "nobody said where these conversations come from")
                    .next("it becomes a part of their turns' ids: --provider NAME, or `provider` in [sessions] of the configuration"));
            }
        };
        Ok(Some(Self { store, path, provider }))
    }

    /// What is there; conversations that cannot be told apart from trouble are told on stderr.
    ///
    /// # Errors
    /// The store cannot be listed.
    pub fn list(&self) -> Result<Listing, Failure> {
        self.store.list().map_err(|fault| unavailable(&fault))
    }

    /// The conversations that are meant: one by its id, or all. What is wrong with others is left in the listing.
    ///
    /// # Errors
    /// The one is not there, or cannot be read.
    pub fn chosen(&self, session: Option<&str>) -> Result<Listing, Failure> {
        let mut listing = self.list()?;
        let Some(id) = session else { return Ok(listing) };
        if let Some(fault) = listing.faults.iter().find(|fault| fault.session.as_deref() == Some(id)) {
            return Err(unavailable(fault));
        }
        listing.faults.clear();
        listing.conversations.retain(|it| it.id == id);
        if listing.conversations.is_empty() {
            return Err(Failure::writer("SESSION_NODES_UNAVAILABLE", format!("there is no conversation `{id}`"))
                .at_path(self.path.display().to_string())
                .next("`recollex turns pending` lists what there is"));
        }
        Ok(listing)
    }

    /// How conversations are handed over and written, as far as it is said for all of them.
    ///
    /// # Errors
    /// A wait that the component would refuse.
    pub fn options(
        &self,
        heads: &args::Heads,
        model: Option<&str>,
        context: &Context,
    ) -> Result<DriveOptions, Failure> {
        Ok(DriveOptions {
            provider: self.provider.clone(),
            model: model.map(str::to_owned),
            heads: Heads { current: heads.head.clone(), archived: heads.archived.clone() },
            wait_ms: context.setup.lock_wait_ms()?,
            ..DriveOptions::default()
        })
    }

    /// Hands a conversation over to the component.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn open(
        &self,
        session: &mut Session,
        of: &Listed,
        options: &DriveOptions,
    ) -> Result<(Conversation, Vec<Finding>), StoreError> {
        open(session, &*self.store, &of.id, options)
    }
}

/// How many turns are pending in all conversations that can be read; none: nobody said where they are.
///
/// # Errors
/// The store is not as it is said to be.
pub fn pending_turns(context: &Context, session: &mut Session) -> Result<Option<u64>, Failure> {
    let Some(sessions) = Sessions::named(&args::Sessions::default(), context)? else { return Ok(None) };
    let listing = sessions.list()?;
    let options = sessions.options(&args::Heads::default(), None, context)?;
    for fault in &listing.faults {
        context.remarks.warn(&format!("a conversation is not counted: {fault}"));
    }
    let mut turns = 0;
    for of in &listing.conversations {
        let pending = sessions
            .open(session, of, &options)
            .and_then(|(mut conversation, _)| Ok(conversation.pending(session)?.turns));
        match pending {
            Ok(some) => turns += some,
            Err(StoreError::Store(fault)) => {
                context.remarks.warn(&format!("a conversation is not counted: {fault}"));
            }
            Err(StoreError::Session(error)) => return Err(error.into()),
        }
    }
    Ok(Some(turns))
}

/// A conversation, or a store of them, that cannot be read.
pub fn unavailable(fault: &StoreFault) -> Failure {
    let failure = Failure::writer("SESSION_NODES_UNAVAILABLE", fault.message.clone());
    match &fault.path {
        Some(path) => failure.at_path(path.display().to_string()),
        None => failure,
    }
}

/// Either of a store's errors.
pub fn failed(error: StoreError) -> Failure {
    match error {
        StoreError::Store(fault) => unavailable(&fault),
        StoreError::Session(error) => error.into(),
    }
}

/// How a path keeps conversations, by what is there.
fn guess(path: &Path) -> Result<Format, Failure> {
    let shown = path.display().to_string();
    let metadata = fs::metadata(path).map_err(|error| Failure::io("look at the conversations", path, &error))?;
    if !metadata.is_dir() {
        return Ok(Format::Jsonl);
    }
    let entries = fs::read_dir(path).map_err(|error| Failure::io("look at the conversations", path, &error))?;
    let (mut directories, mut files) = (false, false);
    for entry in entries.flatten().take(LOOKED_AT) {
        directories |= entry.path().join("history").is_dir();
        files |= entry.file_name().to_string_lossy().ends_with(".jsonl");
    }
    match (directories, files) {
        (true, true) => Err(Failure::usage("sessions-format", "there are session directories and files of lines here")
            .at_path(shown)
            .next("say which are meant: --sessions-format openprogram|jsonl")),
        (false, true) => Ok(Format::Jsonl),
        // Where nothing is yet, the next conversation is to be found.
        (_, false) => Ok(Format::Openprogram),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_there_says_how_it_is_kept() {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        assert_eq!(guess(directory.path()).unwrap(), Format::Openprogram);
        fs::write(path("a.jsonl"), "").unwrap();
        assert_eq!(guess(directory.path()).unwrap(), Format::Jsonl);
        assert_eq!(guess(&path("a.jsonl")).unwrap(), Format::Jsonl);
        fs::create_dir_all(path("s/history")).unwrap();
        assert_eq!(guess(directory.path()).unwrap_err().reason, "sessions-format");
        fs::remove_file(path("a.jsonl")).unwrap();
        assert_eq!(guess(directory.path()).unwrap(), Format::Openprogram);
        assert_eq!(guess(&path("none")).unwrap_err().code, "IO");
    }
}
