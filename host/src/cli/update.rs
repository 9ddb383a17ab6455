//! `recollex update`: changes topics; and what `verify --fix` says of what it put in order.

use std::collections::BTreeMap;

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
    let (request, _) = input::whole(args.file.as_deref(), "request", REQUEST_BYTES_MAX)?;
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
