//! `recollex config`: how this call is set up, and by whom. Works without a workspace; makes nothing.
//!
//! Of a key it knows where it is read and whether it is there.

use std::collections::BTreeMap;

use recollex::model::{KeySource, KeyState, RolesSettings};
use serde::Serialize;
use serde_json::Value;

use super::config::{Origin, Setup};
use super::context::Context;
use super::failure::{Exit, Failure};

#[derive(Serialize)]
struct Document {
    config: Option<String>,
    profile: Option<String>,
    workspace: String,
    workspace_from: String,
    time_zone: Option<Said>,
    history: &'static str,
    /// The component's, those that somebody set.
    settings: BTreeMap<String, Said>,
    limits: BTreeMap<&'static str, u64>,
    models: BTreeMap<&'static str, Role>,
}

#[derive(Serialize)]
struct Said {
    value: String,
    from: String,
}

impl Said {
    fn of((value, origin): &(String, Origin)) -> Self {
        Self { value: value.clone(), from: origin.to_string() }
    }
}

/// A role, without its key.
#[derive(Serialize)]
pub struct Role {
    /// There is a model for it, as far as that can be known without asking it.
    configured: bool,
    /// Why not; none if it is.
    problem: Option<String>,
    /// As it is set; a role without settings of its own is as the writer.
    settings: BTreeMap<String, Value>,
    key: Option<Key>,
}

#[derive(Serialize)]
struct Key {
    /// `environment NAME` or `file PATH`
    from: String,
    /// `present`, `exposed` (others may read its file) or `missing`.
    state: &'static str,
    /// Why it is missing.
    why: Option<String>,
}

/// The roles, by name.
pub fn roles(setup: &Setup) -> BTreeMap<&'static str, Role> {
    RolesSettings::ROLES.into_iter().map(|(name, purpose)| (name, role(&setup.models, purpose))).collect()
}

fn role(models: &RolesSettings, purpose: &str) -> Role {
    let Some(role) = models.of(purpose) else {
        return Role { configured: false, problem: None, settings: BTreeMap::new(), key: None };
    };
    let key = role.key();
    let from = match &key {
        KeySource::Environment(name) => Some(format!("environment {name}")),
        KeySource::File(path) => Some(format!("file {}", path.display())),
        KeySource::Nowhere | KeySource::Given(_) => None,
    };
    let key = from.map(|from| {
        let (state, why) = match key.state() {
            KeyState::Missing(why) => ("missing", Some(why)),
            KeyState::Exposed => ("exposed", None),
            KeyState::Unneeded | KeyState::Present => ("present", None),
        };
        Key { from, state, why }
    });
    let built = role.build();
    let settings = match serde_json::to_value(&role) {
        Ok(Value::Object(settings)) => settings.into_iter().filter(|(_, value)| !value.is_null()).collect(),
        _ => BTreeMap::new(),
    };
    Role { configured: built.is_ok(), problem: built.err().map(|error| error.message), settings, key }
}

impl Role {
    /// In a line, for people.
    pub fn line(&self) -> String {
        let text = |name: &str| self.settings.get(name).and_then(Value::as_str);
        let mut line = match (text("provider"), &self.problem) {
            (None, None) => return "not configured".to_owned(),
            (Some("none"), _) => return "none".to_owned(),
            (_, Some(problem)) => return format!("not configured: {problem}"),
            (Some(provider), None) => provider.to_owned(),
        };
        if let Some(model) = text("model") {
            line.push_str(&format!(" {model}"));
        }
        if let Some(key) = &self.key {
            line.push_str(&match (&key.why, key.state) {
                (Some(why), _) => format!("; {why}"),
                (None, "exposed") => format!("; key in {}, which others may read (chmod 600)", key.from),
                (None, _) => format!("; key in {}", key.from),
            });
        }
        line
    }
}

/// Runs the verb.
pub fn run(context: &Context) -> Result<Exit, Failure> {
    let setup = &context.setup;
    let limits = &setup.limits;
    let millis = |time: std::time::Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
    let document = Document {
        config: setup.config.as_deref().map(|path| path.display().to_string()),
        profile: setup.profile.clone(),
        workspace: setup.workspace.display().to_string(),
        workspace_from: setup.workspace_from.to_string(),
        time_zone: setup.time_zone.as_ref().map(Said::of),
        history: setup.history.name(),
        settings: setup.settings.iter().map(|(name, said)| (name.clone(), Said::of(said))).collect(),
        limits: BTreeMap::from([
            ("deadline_ms", millis(limits.deadline)),
            ("model_time_ms", millis(limits.model_time)),
            ("memory_bytes", limits.memory_bytes),
            ("output_bytes", limits.output_bytes),
            ("host_calls", limits.host_calls),
            ("unpacked_bytes", setup.unpacked_bytes),
        ]),
        models: roles(setup),
    };
    if context.out.json {
        context.out.document(&document);
        return Ok(Exit::DONE);
    }
    let look = context.out.look;
    let line = |name: &str, value: &str, from: &str| {
        let from = if from.is_empty() { String::new() } else { look.faint(&format!("  (by {from})")) };
        context.out.line(&format!("{} {}{from}", look.faint(&format!("{name:<14}")), look.foreign(value)));
    };
    line("config", document.config.as_deref().unwrap_or("unknown: there is no home directory"), "");
    line("workspace", &document.workspace, &document.workspace_from);
    if let Some(Said { value, from }) = &document.time_zone {
        line("time_zone", value, from);
    }
    line("history", document.history, "");
    for (name, Said { value, from }) in &document.settings {
        line(name, value, from);
    }
    for (name, value) in &document.limits {
        line(name, &value.to_string(), "");
    }
    for (name, role) in &document.models {
        line(name, &role.line(), "");
        for (key, value) in role.settings.iter().filter(|(key, _)| !matches!(key.as_str(), "provider" | "model")) {
            let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            line(&format!("  {key}"), &text, "");
        }
    }
    Ok(Exit::DONE)
}
