//! `recollex update`: changes topics; and what `verify --fix` says of what it put in order.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::Path;

use recollex::workspace::{Draft, GivenId, Provenance, UpdateOptions, Updated};
use serde::Serialize;
use similar::TextDiff;

use super::args::Update;
use super::context::Context;
use super::failure::{Exit, Failure};
use super::input;
use super::terminal::{count, escape_line};

/// The longest request that is read, in bytes: far more than the component's own limits allow, so that those are what tells.
const REQUEST_BYTES_MAX: u64 = 64 << 20;

#[derive(Serialize)]
struct Document<'a> {
    revision: &'a str,
    committed: bool,
    dry_run: bool,
    changed_files: &'a [String],
    block_ids: BTreeMap<&'a str, &'a str>,
    evidence_ids: BTreeMap<&'a str, &'a str>,
    source_ids: BTreeMap<&'a str, &'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    diff: Option<String>,
}

/// Runs the verb.
pub fn run(args: &Update, context: &Context) -> Result<Exit, Failure> {
    let request = read(args.file.as_deref())?;
    let mut session = context.session()?;
    let options = UpdateOptions {
        provenance: Some(Provenance {
            speaker_kind: args.speaker_kind.clone(),
            speaker_id: args.speaker_id.clone(),
            speaker_display: args.speaker.clone(),
            origin: args.origin.clone(),
        }),
        dry_run: args.dry_run,
    };
    let updated = context.time("update", || session.update(&request, &options))?;
    show(context, &updated, args.dry_run);
    Ok(Exit::DONE)
}

/// Says what came of an update.
pub fn show(context: &Context, updated: &Updated, dry_run: bool) {
    if context.out.json {
        context.out.document(&Document {
            revision: &updated.revision,
            committed: updated.committed,
            dry_run,
            changed_files: &updated.changed_files,
            block_ids: ids(&updated.block_ids),
            evidence_ids: ids(&updated.evidence_ids),
            source_ids: ids(&updated.source_ids),
            diff: dry_run.then(|| diff(&updated.drafts)),
        });
        return;
    }
    if dry_run {
        context.out.text(&diff(&updated.drafts));
        let files = count(updated.changed_files.len() as u64, "file", "files");
        context.hint(&format!("{files} would change; nothing was changed."));
        return;
    }
    for path in &updated.changed_files {
        context.out.line(&escape_line(path));
    }
    for given in updated.block_ids.iter().chain(&updated.source_ids) {
        context.out.line(&format!("{} is {}", escape_line(&given.name), escape_line(&given.id)));
    }
    if !updated.committed {
        context.hint("There was nothing to change.");
    }
}

fn ids(given: &[GivenId]) -> BTreeMap<&str, &str> {
    given.iter().map(|given| (given.name.as_str(), given.id.as_str())).collect()
}

/// What would change, as a unified diff.
fn diff(drafts: &[Draft]) -> String {
    let mut text = String::new();
    for draft in drafts {
        let (before, after) = (draft.before.as_deref(), draft.after.as_deref());
        let name = |side: &str, content: Option<&str>| match content {
            Some(_) => format!("{side}/{}", draft.path),
            None => "/dev/null".to_owned(),
        };
        let diff = TextDiff::from_lines(before.unwrap_or_default(), after.unwrap_or_default());
        let (old, new) = (name("a", before), name("b", after));
        text.push_str(&diff.unified_diff().header(&old, &new).to_string());
    }
    text
}

/// The request, whole.
fn read(file: Option<&Path>) -> Result<String, Failure> {
    let name = file.filter(|path| *path != Path::new("-"));
    let path = name.map_or_else(|| "stdin".to_owned(), |path| path.display().to_string());
    let failed = |error: &std::io::Error| Failure::io("read the request", Path::new(&path), error);
    let mut bytes = Vec::new();
    let read = match name {
        Some(name) => File::open(name).and_then(|file| file.take(REQUEST_BYTES_MAX + 1).read_to_end(&mut bytes)),
        None => input::stdin()?.take(REQUEST_BYTES_MAX + 1).read_to_end(&mut bytes),
    };
    read.map_err(|error| failed(&error))?;
    if bytes.len() as u64 > REQUEST_BYTES_MAX {
        let message = format!("a request has at most {REQUEST_BYTES_MAX} bytes");
        return Err(Failure::usage("unreadable-input", message).at_path(path).next("make several requests of it"));
    }
    String::from_utf8(bytes).map_err(|error| {
        let line =
            error.as_bytes().iter().take(error.utf8_error().valid_up_to()).filter(|byte| **byte == b'\n').count();
        Failure::usage("invalid-utf8", "the request is not UTF-8").at_path(path.clone()).at_line(line as u64 + 1)
    })
}
