//! The shipped component `memory`, over a real directory, through the host library.

mod files;
mod reads;
mod topics;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::Path;
use std::time::{Duration, SystemTime};

use recollex::types::Tier;
use recollex::workspace::{NumberedTurn, Turn, UnpairedMessage};
use recollex::{OpenOptions, Runtime, RuntimeOptions, Session};
use recollex_core::source::NewNumbered;
use recollex_test_rows::unpaired::{self, Given};
use recollex_test_rows::{Input, Malformed, Outcome, is_archive_path, numbered_turns, promote, timestamp};
use serde_json::{Map, Value, json};

use super::Engine;
use files::{Snapshot, changed, files, modes, scratch, snapshot, write};

/// Runs behaviour rows as a program that embeds the host library would: one directory, one session a call.
pub struct Component {
    runtime: Runtime,
}

/// Why a row could not be run.
#[derive(Debug, thiserror::Error)]
enum RowError {
    #[error(transparent)]
    Row(#[from] Malformed),
    #[error("temporary workspace: {0}")]
    Io(#[from] io::Error),
    #[error("{doing}: {} {error}", error.code())]
    Host { doing: &'static str, error: recollex::Error },
    #[error("no refusal of the component's: {0}")]
    Unexpected(String),
    #[error("says that it changed {said:?}, and changed {real:?}")]
    Said { said: BTreeSet<String>, real: BTreeSet<String> },
    #[error("edited by hand and put in order {path} is {by_hand}, not {requested}")]
    ByHand { path: String, requested: String, by_hand: String },
}

impl Component {
    /// Compiles the component.
    ///
    /// # Errors
    /// The host's.
    pub fn start() -> Result<Self, recollex::Error> {
        Ok(Self { runtime: Runtime::new(RuntimeOptions::default())? })
    }

    fn open(&self, root: &Path) -> Result<Session, RowError> {
        Session::open(&self.runtime, root, OpenOptions::new(Tier::Owner))
            .map_err(|error| RowError::Host { doing: "open", error })
    }

    fn write_frames(&self, input: &Input<'_>) -> Result<Outcome, RowError> {
        let calls: Vec<Input<'_>> = input.field("calls")?.elements()?.collect();
        let directory = scratch()?;
        let root = directory.path().join("workspace");
        write(&root, &input.field("existing")?)?;
        self.open(&root)?.init().map_err(|error| RowError::Host { doing: "init", error })?;

        let mut shown = Vec::new();
        for call in calls {
            let before = snapshot(&root)?;
            let result = match call.maybe("records") {
                Some(records) => {
                    let turns = records.elements()?.map(|record| turn(&record)).collect::<Result<Vec<_>, _>>()?;
                    self.open(&root)?.archive(&turns).map(Some)
                }
                // Rows say nothing of what became of the turns of sessions.
                None => self.open(&root)?.archive_numbered(&sessions(&call)?).map(|_| None),
            };
            shown.push(match result {
                Ok(Some(archived)) => {
                    json!({"ok": true, "refs": archived.turns.iter().map(|turn| &turn.id).collect::<Vec<_>>()})
                }
                Ok(None) => json!({"ok": true}),
                Err(error @ recollex::Error::Memory(_)) => {
                    let mut fault = Map::new();
                    fault.insert("code".to_owned(), error.reason().unwrap_or(error.code()).into());
                    fault.insert("subject".to_owned(), subject(&error).into());
                    json!({"ok": false, "error": fault, "unchanged": snapshot(&root)? == before})
                }
                Err(error) => return Err(RowError::Host { doing: "archive", error }),
            });
        }
        Ok(Outcome::Shown(json!({
            "calls": shown,
            "files": files(&root)?,
            "rescan": self.rescan(&root)?,
            "modes": modes(&root)?,
        })))
    }

    /// Vouches for a record, as the caller that the row describes.
    fn promote(&self, input: &Input<'_>) -> Result<Outcome, RowError> {
        let directory = scratch()?;
        let root = directory.path().join("workspace");
        write(&root, &input.field("files")?)?;
        self.open(&root)?.init().map_err(|error| RowError::Host { doing: "init", error })?;
        let authority = input.field("authority")?;
        let said = |name: &str| authority.maybe(name).and_then(|field| field.value().as_str().map(str::to_owned));
        let mut options = OpenOptions::new(Tier::Owner).setting("owner.principal", promote::OWNER).setting(
            "caller",
            if said("interaction").as_deref() == Some("interactive") { "interactive" } else { "background" },
        );
        options.tier = match said("authority_tier").as_deref() {
            Some("owner") => Some(Tier::Owner),
            Some("paired") => Some(Tier::Paired),
            _ => None,
        };
        options.principal = said("principal_id");
        let mut session =
            Session::open(&self.runtime, &root, options).map_err(|error| RowError::Host { doing: "open", error })?;
        let before = snapshot(&root)?;
        match session.promote(input.field("source_id")?.text()?) {
            Ok(promotion) => {
                let changed = changed(&before, &snapshot(&root)?);
                Ok(Outcome::Shown(json!({
                    "result": {
                        "source_id": promotion.source_id,
                        "promoted": promotion.promoted,
                        "trust_state": "trusted",
                    },
                    "changed": changed,
                })))
            }
            Err(error @ recollex::Error::Memory(_)) if error.reason().is_some() => {
                let unchanged = snapshot(&root)? == before;
                Ok(if unchanged {
                    Outcome::Shown(promote::refused())
                } else {
                    Outcome::Shown(json!({"unchanged": false}))
                })
            }
            Err(error) => Err(RowError::Host { doing: "promote", error }),
        }
    }

    /// Keeps what somebody unpaired said, at the row's time.
    fn unpaired(&self, input: &Input<'_>) -> Result<Outcome, RowError> {
        let given = Given::read(input)?;
        let directory = scratch()?;
        let root = directory.path().join("workspace");
        if let Some(quota) = &given.quota {
            fs::create_dir_all(root.join(".scriptorium"))?;
            fs::write(root.join(unpaired::QUOTA), quota)?;
        }
        let clock = SystemTime::UNIX_EPOCH + Duration::from_secs_f64(given.now);
        let backend = if given.disabled { "none" } else { "files" };
        let options = OpenOptions::new(Tier::Owner).setting("backend", backend).clock(clock);
        let message = &given.message;
        let message = UnpairedMessage {
            channel: message.channel.clone(),
            account: message.account.clone(),
            chat: message.chat.clone(),
            message: message.message.clone(),
            user: message.user.clone(),
            user_display: message.user_display.clone(),
            text: message.text.clone(),
            time: message.time,
        };
        let kept =
            Session::open(&self.runtime, &root, options).and_then(|mut session| session.archive_unpaired(&message));
        let result = match kept {
            Ok(archived) => archived.turns.first().map(|turn| turn.id.clone()).unwrap_or_default(),
            Err(error @ recollex::Error::Memory(_)) if error.reason().is_some() => String::new(),
            Err(error) => return Err(RowError::Host { doing: "archive unpaired", error }),
        };
        let mut files = changed(&Snapshot::new(), &snapshot(&root)?);
        if let Some(quota) = files.get_mut(unpaired::QUOTA)
            && let Some(text) = quota.as_str()
        {
            *quota = unpaired::shown_quota(input, text);
        }
        Ok(Outcome::Shown(json!({"result": result, "files": files})))
    }

    /// Which archives are whole, by what verification finds; archives that are no text are left out, as rows do.
    fn rescan(&self, root: &Path) -> Result<Map<String, Value>, RowError> {
        let mut faulty: BTreeMap<String, bool> = BTreeMap::new();
        let host = |doing| move |error| RowError::Host { doing, error };
        let mut session = self.open(root)?;
        let mut verification = session.verify("").map_err(host("verify"))?;
        while let Some(findings) = verification.step(&mut session, u64::MAX).map_err(host("verify"))? {
            for finding in findings.into_iter().filter(|finding| finding.severity == recollex::types::Severity::Error) {
                *faulty.entry(finding.path.unwrap_or_default()).or_default() |= finding.code == "invalid-utf8";
            }
        }
        let mut whole = Map::new();
        for path in files(root)?.keys().filter(|path| is_archive_path(path)) {
            match faulty.get(path) {
                Some(true) => {}
                found => drop(whole.insert(path.clone(), found.is_none().into())),
            }
        }
        Ok(whole)
    }
}

impl Engine for Component {
    fn observe(&mut self, file: &str, input: &Value) -> Result<Outcome, String> {
        match file {
            "frames_write" => self.write_frames(&Input::new(input)).map_err(|error| error.to_string()),
            "promote" => self.promote(&Input::new(input)).map_err(|error| error.to_string()),
            "unpaired_archive" => self.unpaired(&Input::new(input)).map_err(|error| error.to_string()),
            "update" => self.update(&Input::new(input)).map_err(|error| error.to_string()),
            "topics_validate" => self.validate(&Input::new(input)).map_err(|error| error.to_string()),
            "derived" => self.derive(&Input::new(input)).map_err(|error| error.to_string()),
            "inspect" => self.inspect(&Input::new(input)).map_err(|error| error.to_string()),
            "structure" => self.list_blocks(&Input::new(input)).map_err(|error| error.to_string()),
            "references" => self.refer(&Input::new(input)).map_err(|error| error.to_string()),
            _ => Ok(Outcome::not_here("no behaviour of the component, or not yet")),
        }
    }

    fn view(&self, file: &str, _input: &Value, expected: &Value) -> Value {
        topics::visible(file, expected)
    }
}

/// What a refusal is about; a collision's two paths as rows write them.
fn subject(error: &recollex::Error) -> Option<String> {
    let problem = error.problems().first()?;
    problem.subject.clone().or_else(|| problem.path.clone())
}

/// The turns of a row's sessions.
fn sessions(call: &Input<'_>) -> Result<Vec<NumberedTurn>, Malformed> {
    let turns = numbered_turns(call)?.into_iter();
    Ok(turns
        .map(|NewNumbered { reference, date, label, text }| NumberedTurn { reference, date, label, text })
        .collect())
}

/// A row's record as a runtime would hand it over.
fn turn(record: &Input<'_>) -> Result<Turn, Malformed> {
    let optional = |name: &str| Ok::<_, Malformed>(record.field(name)?.optional_text()?.map(str::to_owned));
    let text = |name: &str| Ok::<_, Malformed>(record.field(name)?.text()?.to_owned());
    Ok(Turn {
        provider: text("provider")?,
        thread: text("thread_id")?,
        id: text("message_id")?,
        ordinal: record.field("ordinal")?.integer()?,
        role: text("role")?,
        text: text("content")?,
        time: timestamp(&record.field("timestamp")?)?,
        speaker_id: optional("speaker_id")?,
        speaker_display: optional("speaker_display")?,
        speaker_kind: optional("speaker_kind")?,
        principal: optional("principal_id")?,
        tier: optional("authority_tier")?,
        trust: text("trust_state")?,
    })
}
