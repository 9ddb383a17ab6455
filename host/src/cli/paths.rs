//! `recollex paths`: every place in use. Works without a workspace, and with memory switched off; makes nothing.

use std::path::{Path, PathBuf};

use serde::Serialize;

use super::context::Context;
use super::failure::{Exit, Failure};

#[derive(Serialize)]
struct Document {
    profile: Option<String>,
    workspace: Place,
    /// Who named the workspace: `option`, `environment`, `configuration`, `default`.
    workspace_from: String,
    runtime: Place,
    /// What the workspace can make again.
    cache: Place,
    config: Option<Place>,
    /// Compiled components.
    compiled: Option<Place>,
    /// Where conversations are kept.
    sessions: Option<Place>,
    openprogram: Vec<Place>,
}

#[derive(Serialize)]
struct Place {
    path: String,
    exists: bool,
}

impl Place {
    fn of(path: &Path) -> Self {
        Self { path: path.display().to_string(), exists: path.symlink_metadata().is_ok() }
    }
}

/// Runs the verb.
pub fn run(context: &Context) -> Result<Exit, Failure> {
    let setup = &context.setup;
    let document = Document {
        profile: setup.profile.clone(),
        workspace: Place::of(&setup.workspace),
        workspace_from: setup.workspace_from.to_string(),
        runtime: Place::of(&runtime_directory(&setup.workspace)),
        cache: Place::of(&setup.workspace.join(".scriptorium-recollex")),
        config: setup.config.as_deref().map(Place::of),
        compiled: setup.compiled.as_deref().map(Place::of),
        sessions: setup.sessions.path.as_deref().map(Place::of),
        openprogram: setup.openprogram().iter().map(|path| Place::of(path)).collect(),
    };
    if context.out.json {
        context.out.document(&document);
        return Ok(Exit::DONE);
    }
    let look = context.out.look;
    let line = |name: &str, place: Option<&Place>, note: &str| {
        let (path, state) = match place {
            Some(place) if place.exists => (look.foreign(&place.path), ""),
            Some(place) => (look.foreign(&place.path), "  (not there)"),
            None => ("unknown: there is no home directory".to_owned(), ""),
        };
        context.out.line(&format!(
            "{} {path}{}",
            look.faint(&format!("{name:<12}")),
            look.faint(&format!("{state}{note}"))
        ));
    };
    let from = match &document.profile {
        Some(profile) => format!("  (profile {profile}, by {})", document.workspace_from),
        None => format!("  (by {})", document.workspace_from),
    };
    line("workspace", Some(&document.workspace), &from);
    line("runtime", Some(&document.runtime), "");
    line("cache", Some(&document.cache), "  (may be deleted)");
    line("config", document.config.as_ref(), "");
    line("compiled", document.compiled.as_ref(), "  (compiled components; may be deleted)");
    if let Some(place) = &document.sessions {
        line("sessions", Some(place), "  (conversations)");
    }
    for place in &document.openprogram {
        line("openprogram", Some(place), "  (use it: --workspace)");
    }
    Ok(Exit::DONE)
}

/// Where a workspace's own state is, as [`recollex::store::Directory`] documents it: older workspaces keep their name.
fn runtime_directory(workspace: &Path) -> PathBuf {
    let old = workspace.join(".nativemem");
    if old.is_dir() { old } else { workspace.join(".scriptorium") }
}
