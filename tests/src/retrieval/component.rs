//! The shipped component over a real directory, as a program that embeds the host library would use it.

use recollex::types::Tier;
use recollex::workspace::{Query, Turn};
use recollex::{OpenOptions, Runtime, RuntimeOptions, Session};
use tempfile::TempDir;

use super::{Conversation, DEPTH, Ranker};

/// Ranks with `search` of a session.
pub struct Component {
    runtime: Runtime,
    settings: Vec<(String, String)>,
    open: Option<(Session, TempDir)>,
}

impl Component {
    /// Compiles the component.
    ///
    /// # Errors
    /// The host's.
    pub fn start(settings: &[(String, String)]) -> Result<Self, recollex::Error> {
        let runtime = Runtime::new(RuntimeOptions::default())?;
        Ok(Self { runtime, settings: settings.to_vec(), open: None })
    }
}

impl Ranker for Component {
    fn take(&mut self, conversation: &Conversation) -> Result<(), String> {
        let directory = tempfile::tempdir().map_err(|error| error.to_string())?;
        let options = OpenOptions::new(Tier::Owner);
        let options = self.settings.iter().fold(options, |options, (name, value)| options.setting(name, value));
        let mut session = Session::open(&self.runtime, directory.path(), options).map_err(|error| error.to_string())?;
        let turns = conversation.archived().map(|kept| Turn {
            ordinal: kept.ordinal,
            time: kept.turn.time.clone(),
            speaker_display: kept.display.map(str::to_owned),
            trust: "trusted".to_owned(),
            ..Turn::new(kept.provider, kept.thread, &kept.turn.id, &kept.turn.role, &kept.turn.text)
        });
        session.archive(&turns.collect::<Vec<_>>()).map_err(|error| error.to_string())?;
        self.open = Some((session, directory));
        Ok(())
    }

    fn rank(&mut self, text: &str) -> Result<Vec<String>, String> {
        let (session, _) = self.open.as_mut().ok_or("no conversation was taken in")?;
        match session.search(&Query::new(text, DEPTH)) {
            Ok(answer) => Ok(answer.hits.into_iter().map(|hit| hit.id).collect()),
            Err(error) if matches!(error.reason(), Some("nothing-searchable" | "only-function-words")) => {
                Ok(Vec::new())
            }
            Err(error) => Err(error.to_string()),
        }
    }
}
