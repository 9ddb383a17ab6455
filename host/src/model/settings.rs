//! Which model serves which role, as a person sets it, and providers made of that.
//!
//! Knows names of settings and what each provider needs. Must not know where settings are kept: a program reads them
//! ([`RolesSettings`] is `serde`'s), and [`Live`] asks it again with every call.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use serde::{Deserialize, Serialize};

use super::secret::KeySource;
#[cfg(feature = "http")]
use super::{Anthropic, OpenAi, anthropic, openai};
use super::{
    Command, EMBED, ModelError, Models, OBSERVER, ORGANISER, Provider, REPLY_BYTES, Recorder, Replay, WRITER,
    unknown_purpose,
};

/// The variable that the service's own programs read, for a role that names no key and no other server.
const OPENAI_KEY: &str = "OPENAI_API_KEY";
const ANTHROPIC_KEY: &str = "ANTHROPIC_API_KEY";

/// Who answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// A server of chat completions.
    Openai,
    /// The service of messages.
    Anthropic,
    /// A program.
    Command,
    /// A recording.
    Replay,
    /// Nobody.
    None,
}

impl Kind {
    /// As settings name it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Openai => "openai",
            Self::Anthropic => "anthropic",
            Self::Command => "command",
            Self::Replay => "replay",
            Self::None => "none",
        }
    }
}

/// What one role is set to. What is none takes the provider's own measure.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RoleSettings {
    /// Who answers. None: as `writer`, with what is set here instead of what is set there.
    pub provider: Option<Kind>,
    /// The model, as the provider names it.
    pub model: Option<String>,
    /// Where the server is: for `openai` up to `/v1`, for `anthropic` up to where `/v1/messages` begins.
    pub base_url: Option<String>,
    /// The environment variable that holds the key.
    pub key_env: Option<String>,
    /// The file that holds the key.
    pub key_file: Option<PathBuf>,
    /// Tokens that a reply may have.
    pub max_output: Option<u32>,
    /// The field that tells an `openai` server so.
    pub max_output_field: Option<String>,
    /// Tokens that request and reply may have together.
    pub context: Option<u32>,
    /// How hard the model shall think, in the provider's words.
    pub effort: Option<String>,
    /// Tokens for thinking, for older models of `anthropic`.
    pub thinking_budget: Option<u32>,
    /// The model can call tools; it can if nothing is said.
    pub tools: Option<bool>,
    /// The program and its arguments, for `command`.
    pub command: Option<Vec<String>>,
    /// Variables that the program gets.
    pub pass_env: Option<Vec<String>>,
    /// The recording that `replay` answers from.
    pub recording: Option<PathBuf>,
    /// A file in which every answer is recorded.
    pub record: Option<PathBuf>,
    /// The length of vectors.
    pub dimensions: Option<u32>,
    /// Bytes that an answer may have.
    pub reply_bytes: Option<u64>,
}

impl RoleSettings {
    /// What is not set here is as it is there.
    #[must_use]
    pub fn or(self, other: &Self) -> Self {
        let other = other.clone();
        // A key is one setting in two spellings.
        let has_key = self.key_env.is_some() || self.key_file.is_some();
        let (key_env, key_file) = if has_key { (None, None) } else { (other.key_env, other.key_file) };
        Self {
            provider: self.provider.or(other.provider),
            model: self.model.or(other.model),
            base_url: self.base_url.or(other.base_url),
            key_env: self.key_env.or(key_env),
            key_file: self.key_file.or(key_file),
            max_output: self.max_output.or(other.max_output),
            max_output_field: self.max_output_field.or(other.max_output_field),
            context: self.context.or(other.context),
            effort: self.effort.or(other.effort),
            thinking_budget: self.thinking_budget.or(other.thinking_budget),
            tools: self.tools.or(other.tools),
            command: self.command.or(other.command),
            pass_env: self.pass_env.or(other.pass_env),
            recording: self.recording.or(other.recording),
            record: self.record.or(other.record),
            dimensions: self.dimensions.or(other.dimensions),
            reply_bytes: self.reply_bytes.or(other.reply_bytes),
        }
    }

    /// Where the key is: as set; otherwise, for the services themselves and nowhere else, in the variable that their own
    /// programs read.
    #[must_use]
    pub fn key(&self) -> KeySource {
        match (&self.key_env, &self.key_file, self.provider) {
            (Some(name), _, _) => KeySource::Environment(name.clone()),
            (None, Some(path), _) => KeySource::File(path.clone()),
            (None, None, Some(Kind::Openai)) if self.base_url.is_none() => {
                KeySource::Environment(OPENAI_KEY.to_owned())
            }
            (None, None, Some(Kind::Anthropic)) if self.base_url.is_none() => {
                KeySource::Environment(ANTHROPIC_KEY.to_owned())
            }
            _ => KeySource::Nowhere,
        }
    }

    /// Every path in it, to be made absolute by whoever knows what it is relative to.
    pub fn paths_mut(&mut self) -> impl Iterator<Item = &mut PathBuf> {
        [&mut self.key_file, &mut self.recording, &mut self.record].into_iter().flatten()
    }

    /// The provider that it means.
    ///
    /// # Errors
    /// `unconfigured`: what is missing or cannot be.
    pub fn build(&self) -> Result<Arc<dyn Provider>, ModelError> {
        let inner = self.build_inner()?;
        Ok(match &self.record {
            Some(path) => Arc::new(Recorder::new(inner, path)),
            None => inner,
        })
    }

    fn build_inner(&self) -> Result<Arc<dyn Provider>, ModelError> {
        let missing = |what: &str| ModelError::unconfigured(format!("`{what}` is not set"));
        if self.key_env.is_some() && self.key_file.is_some() {
            return Err(ModelError::unconfigured("`key_env` and `key_file` are both set: which one holds the key?"));
        }
        let reply_bytes = self.reply_bytes.unwrap_or(REPLY_BYTES);
        let tools = self.tools.unwrap_or(true);
        match self.provider {
            None => Err(missing("provider")),
            Some(Kind::None) => Err(ModelError::unconfigured("`provider` is `none`: there is no model")),
            Some(Kind::Replay) => {
                let path = self.recording.as_ref().ok_or_else(|| missing("recording"))?;
                Ok(Arc::new(Replay::new(path)))
            }
            Some(Kind::Command) => {
                let command = self.command.as_ref().filter(|command| !command.is_empty());
                Ok(Arc::new(Command {
                    command: command.ok_or_else(|| missing("command"))?.iter().map(Into::into).collect(),
                    pass_env: self.pass_env.clone().unwrap_or_default(),
                    model: self.model.clone(),
                    effort: self.effort.clone(),
                    context: self.context,
                    max_output: self.max_output,
                    tools,
                    reply_bytes,
                }))
            }
            #[cfg(feature = "http")]
            Some(Kind::Openai) => {
                let base_url = base_url(self.base_url.as_deref(), openai::BASE_URL)?;
                let mut provider = OpenAi::new(base_url, "").key(self.key());
                provider.model.clone_from(&self.model);
                provider.context = self.context;
                provider.max_output = self.max_output;
                provider.effort.clone_from(&self.effort);
                provider.dimensions = self.dimensions;
                if let Some(field) = &self.max_output_field {
                    provider.max_output_field.clone_from(field);
                }
                Ok(Arc::new(OpenAi { tools, reply_bytes, ..provider }))
            }
            #[cfg(feature = "http")]
            Some(Kind::Anthropic) => {
                let base_url = base_url(self.base_url.as_deref(), anthropic::BASE_URL)?;
                let mut provider = Anthropic::new(base_url, "").key(self.key());
                provider.model.clone_from(&self.model);
                provider.context = self.context;
                provider.max_output = self.max_output;
                provider.effort.clone_from(&self.effort);
                provider.thinking_budget = self.thinking_budget;
                Ok(Arc::new(Anthropic { tools, reply_bytes, ..provider }))
            }
            #[cfg(not(feature = "http"))]
            Some(Kind::Openai | Kind::Anthropic) => {
                Err(ModelError::unconfigured("this program was built without HTTP (feature `http`)"))
            }
        }
    }
}

/// The URL that requests are built on. It is shown, and so must hold nothing secret.
#[cfg(feature = "http")]
fn base_url<'a>(set: Option<&'a str>, default: &'a str) -> Result<&'a str, ModelError> {
    let Some(url) = set else { return Ok(default) };
    let refused = |why: &str| Err(ModelError::unconfigured(format!("`base_url` {why}")));
    let Some(rest) = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://")) else {
        return refused("must begin with https:// or http://");
    };
    if rest.contains(['@', '?', '#']) {
        return refused("names a host and a path, no user, query or fragment: keys have settings of their own");
    }
    if rest.is_empty() || rest.starts_with(['/', ':']) || rest.contains(char::is_whitespace) {
        return refused("names no host");
    }
    Ok(url)
}

/// What every role is set to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RolesSettings {
    /// Turns conversations into topics.
    pub writer: Option<RoleSettings>,
    /// Puts topics in order. None: the writer does.
    pub organiser: Option<RoleSettings>,
    /// Continuous memory. None: the writer does.
    pub observer: Option<RoleSettings>,
    /// Embeds.
    pub embedding: Option<RoleSettings>,
}

impl RolesSettings {
    /// The roles by name, with the purpose that each serves.
    pub const ROLES: [(&'static str, &'static str); 4] =
        [("writer", WRITER), ("organiser", ORGANISER), ("observer", OBSERVER), ("embedding", EMBED)];

    /// What serves a purpose, with what it takes from the writer; none if nothing is set.
    #[must_use]
    pub fn of(&self, purpose: &str) -> Option<RoleSettings> {
        let (own, fallback) = match purpose {
            WRITER => (&self.writer, None),
            ORGANISER => (&self.organiser, self.writer.as_ref()),
            OBSERVER => (&self.observer, self.writer.as_ref()),
            EMBED => (&self.embedding, None),
            _ => return None,
        };
        match (own, fallback) {
            (Some(own), Some(writer)) if own.provider.is_none() => Some(own.clone().or(writer)),
            (Some(own), _) => Some(own.clone()),
            (None, fallback) => fallback.cloned(),
        }
    }

    /// What is not set here is as it is there, role by role.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        let role = |own: Option<RoleSettings>, other: Option<RoleSettings>| match (own, other) {
            (Some(own), Some(other)) => Some(own.or(&other)),
            (own, other) => own.or(other),
        };
        Self {
            writer: role(self.writer, other.writer),
            organiser: role(self.organiser, other.organiser),
            observer: role(self.observer, other.observer),
            embedding: role(self.embedding, other.embedding),
        }
    }

    /// Every path in it, to be made absolute by whoever knows what it is relative to.
    pub fn paths_mut(&mut self) -> impl Iterator<Item = &mut PathBuf> {
        [&mut self.writer, &mut self.organiser, &mut self.observer, &mut self.embedding]
            .into_iter()
            .flatten()
            .flat_map(RoleSettings::paths_mut)
    }
}

/// Reads the settings; in words for people what keeps it from that.
type Source = dyn Fn() -> Result<RolesSettings, String> + Send + Sync;

/// A provider, and what it was made of.
type Built = (RoleSettings, Arc<dyn Provider>);

/// Models by settings that are read again with every call, so that a change counts for the next one. A provider lives as
/// long as what it is set to stays the same.
pub struct Live {
    source: Box<Source>,
    /// By purpose.
    built: Mutex<BTreeMap<String, Built>>,
}

impl Live {
    /// By what `source` reads.
    #[must_use]
    pub fn new(source: impl Fn() -> Result<RolesSettings, String> + Send + Sync + 'static) -> Self {
        Self { source: Box::new(source), built: Mutex::default() }
    }
}

impl Models for Live {
    fn provider(&self, purpose: &str) -> Result<Arc<dyn Provider>, ModelError> {
        if !RolesSettings::ROLES.iter().any(|(_, known)| *known == purpose) {
            return Err(unknown_purpose(purpose));
        }
        let settings = (self.source)().map_err(ModelError::unconfigured)?.of(purpose).ok_or_else(|| {
            ModelError::unconfigured(format!("no model is configured for `{purpose}`: set models.{WRITER}.provider"))
        })?;
        let mut built = self.built.lock().unwrap_or_else(PoisonError::into_inner);
        match built.get(purpose) {
            Some((of, provider)) if *of == settings => Ok(Arc::clone(provider)),
            _ => {
                let provider = settings.build().map_err(|error| ModelError {
                    message: format!("the model for `{purpose}`: {}", error.message),
                    ..error
                })?;
                built.insert(purpose.to_owned(), (settings, Arc::clone(&provider)));
                Ok(provider)
            }
        }
    }
}

impl fmt::Debug for Live {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Live").finish_non_exhaustive()
    }
}
