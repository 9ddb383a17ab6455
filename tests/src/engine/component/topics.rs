//! Rows about topics: what is asked for, edits of any kind, and the views that follow.
//!
//! A row's edit goes to `update` as whole files, whoever made it in the observed program; what a person made by hand is
//! laid into the directory as well and put in order by `repair`, which must come to the same.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use recollex::types::Tier;
use recollex::workspace::{GivenId, Provenance, UpdateOptions, Updated};
use recollex::{OpenOptions, Session};
use recollex_core::ids::{TopicPath, is_internal_path};
use recollex_test_rows::update::{flat_revision, given_provenance, request};
use recollex_test_rows::{Input, Malformed, Outcome, derived};
use serde_json::{Map, Value, json};

use super::files::{Snapshot, changed, is_own, scratch, snapshot, write};
use super::{Component, RowError};

/// How many ids a row names when blocks would disappear.
const NAMED: usize = 5;
const NO_OPTIONS: UpdateOptions = UpdateOptions { provenance: None, dry_run: false };

/// What of an expected outcome the component can show.
pub(super) fn visible(file: &str, expected: &Value) -> Value {
    let mut expected = expected.clone();
    let Some(fields) = expected.as_object_mut() else { return expected };
    match file {
        // Whether a commit is recorded with git is the host's to decide.
        "update" => drop(fields.remove("git_committed")),
        // How many blocks came to be is told of those that were given an id.
        "topics_validate" => drop(fields.remove("created_blocks")),
        "derived" => {
            // A sentence of the observed program's.
            fields.remove("message");
            if let Some(Value::Object(files)) = fields.remove("files") {
                fields.insert("files".to_owned(), unspaced(files).into());
            }
        }
        // That nothing is there has a code of its own.
        "inspect" => {
            if let Some(code) = fields
                .get_mut("error")
                .and_then(|error| error.get_mut("code"))
                .filter(|code| *code == "INVALID_ARGUMENT")
            {
                *code = "MEMORY_NOT_FOUND".into();
            }
        }
        _ => {}
    }
    // A problem has neither a column nor what a patch found instead, but in words.
    if let Some(error) = fields.get_mut("error").and_then(Value::as_object_mut) {
        error.remove("details");
    }
    for fault in fields.get_mut("faults").and_then(Value::as_array_mut).into_iter().flatten() {
        fault.as_object_mut().map(|fault| fault.remove("column"));
    }
    expected
}

/// Names of a refusal in a row: a row of `update` has a code and a finer reason, others have the reason as their code.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Words {
    Codes,
    Reasons,
}

impl Component {
    fn session(&self, root: &Path, options: OpenOptions) -> Result<Session, RowError> {
        Session::open(&self.runtime, root, options).map_err(|error| RowError::Host { doing: "open", error })
    }

    /// A request, as the caller that the row describes.
    pub(super) fn update(&self, input: &Input<'_>) -> Result<Outcome, RowError> {
        if !matches!(input.field("git_commit")?.text()?, "off" | "auto") {
            return Ok(Outcome::not_here("whether a commit is recorded is the host's to decide"));
        }
        let directory = scratch()?;
        let root = directory.path().join("workspace");
        write(&root, &input.field("files")?)?;
        let before = snapshot(&root)?;
        let request = request(input, &revision(&before))?;

        let is_paired = input.field("append_only")?.value() == &Value::Bool(true);
        let mut options = OpenOptions::new(if is_paired { Tier::Paired } else { Tier::Owner });
        if let Some(limits) = input.maybe("limits") {
            for (name, value) in limits.entries()? {
                let name = match name {
                    "max_source_bytes" => "update.source-bytes",
                    "max_patch_bytes" => "update.change-bytes",
                    _ => return Err(value.fault("no limit of that name").into()),
                };
                options = options.setting(name, value.integer()?.to_string());
            }
        }
        let provenance = given_provenance(&input.field("provenance")?)?.map(|given| {
            options.principal = Some(given.principal_id);
            Provenance {
                speaker_kind: given.speaker_kind,
                speaker_id: given.speaker_id,
                speaker_display: Some(given.speaker_display),
                origin: given.origin_id,
            }
        });
        let mut session = self.session(&root, options)?;
        match session.update(&request.to_string(), &UpdateOptions { provenance, dry_run: false }) {
            Ok(updated) => {
                let after = snapshot(&root)?;
                honest(&updated, &before, &after)?;
                let named = named(&request);
                Ok(Outcome::Shown(json!({
                    "ok": true,
                    "revision": revision(&after),
                    "source_ids": ids(&updated.source_ids),
                    "block_ids": ids(&updated.block_ids),
                    "evidence_ids": ids(&updated.evidence_ids),
                    "changed_files": visible_changes(&before, &after, &named),
                    // Of a request that finds everything as it should be the observed program says that it committed.
                    "memory_committed": updated.committed || before == after,
                    "files": changed(&before, &after),
                    "removed": removed(&before, &after).collect::<Vec<_>>(),
                })))
            }
            Err(error) => refused(&error, Words::Codes, unchanged(&before, &snapshot(&root)?)),
        }
    }

    /// An edit, given as whole files.
    pub(super) fn validate(&self, input: &Input<'_>) -> Result<Outcome, RowError> {
        if input.maybe("allowed_new_source_refs").is_some() {
            return Ok(Outcome::not_here("what a run may newly cite is not for callers to say"));
        }
        let edit = input
            .field("edit")?
            .entries()?
            .map(|(path, content)| Ok((path, content.optional_text()?)))
            .collect::<Result<BTreeMap<_, _>, Malformed>>()?;
        let mode = input.field("mode")?.text()?;
        if mode != "update" && edit.keys().any(|path| TopicPath::parse(path).is_err()) {
            return Ok(Outcome::not_here("an edit of what is no topic is no edit of a topic"));
        }
        let directory = scratch()?;
        let root = directory.path().join("workspace");
        write(&root, &input.field("files")?)?;
        let before = snapshot(&root)?;
        let is_there = |(path, text): (&&str, &Option<&str>)| {
            before.get(*path).and_then(Option::as_deref) == text.map(str::as_bytes)
        };
        if mode == "agent" && edit.iter().all(is_there) {
            return Ok(Outcome::not_here("views that are missing are made, whatever the edit"));
        }
        let changes: Vec<Value> = edit
            .iter()
            .map(|(path, text)| match text {
                Some(text) => json!({"path": path, "action": "write", "content": text}),
                None => json!({"path": path, "action": "delete"}),
            })
            .collect();
        let request = json!({"base_revision": revision(&before), "changes": changes});
        let words = if mode == "update" { Words::Codes } else { Words::Reasons };
        let updated = match self.open(&root)?.update(&request.to_string(), &NO_OPTIONS) {
            Ok(updated) => updated,
            Err(error) => return refused(&error, words, unchanged(&before, &snapshot(&root)?)),
        };
        let after = snapshot(&root)?;
        honest(&updated, &before, &after)?;
        let files = without_sources(&after);
        // What is laid into the directory is there: an id that nobody had given stays, which a request is given another for.
        if mode == "hand_edit" && names_nothing_new(&edit, &before) {
            self.same_by_hand(input, &edit, &files)?;
        }
        let topics = changed(&before, &after).into_iter().map(|(path, _)| path).chain(removed(&before, &after));
        let topics: BTreeSet<String> = topics.filter(|path| TopicPath::parse(path).is_ok()).collect();
        let named: BTreeSet<&str> = edit.keys().copied().collect();
        Ok(Outcome::Shown(json!({
            "ok": true,
            "dirty": !topics.is_empty(),
            "block_ids": ids(&updated.block_ids),
            "evidence_ids": ids(&updated.evidence_ids),
            "changed_files": visible_changes(&before, &after, &named),
            "changed_topics": topics,
            "files": files,
        })))
    }

    /// The same edit, laid into the directory by somebody else and put in order afterwards, comes to the same. But what a request
    /// takes away because nothing is in it, stays as a person wrote it.
    fn same_by_hand(
        &self,
        input: &Input<'_>,
        edit: &BTreeMap<&str, Option<&str>>,
        expected: &Map<String, Value>,
    ) -> Result<(), RowError> {
        let directory = scratch()?;
        let root = directory.path().join("workspace");
        write(&root, &input.field("files")?)?;
        // Views of the state before, as there would be in a workspace that is in use.
        repair(&mut self.open(&root)?)?;
        for (path, text) in edit {
            let path = root.join(path);
            match text {
                Some(text) => {
                    fs::create_dir_all(path.parent().unwrap_or(&root))?;
                    fs::write(path, text)?;
                }
                None => fs::remove_file(path)?,
            }
        }
        repair(&mut self.open(&root)?)?;
        let mut files = without_sources(&snapshot(&root)?);
        for (path, text) in edit {
            if !expected.contains_key(*path) && files.get(*path).and_then(Value::as_str) == *text {
                files.remove(*path);
            }
        }
        if files == *expected {
            return Ok(());
        }
        let paths: BTreeSet<&String> = files.keys().chain(expected.keys()).collect();
        let differs = |path: &&&String| files.get(**path) != expected.get(**path);
        let path = paths.iter().find(differs).map(ToString::to_string).unwrap_or_default();
        let shown =
            |files: &Map<String, Value>| files.get(&path).map_or_else(|| "nothing".to_owned(), Value::to_string);
        Err(RowError::ByHand { requested: shown(expected), by_hand: shown(&files), path })
    }

    /// Views made anew, and what of topics has to be put right for them.
    pub(super) fn derive(&self, input: &Input<'_>) -> Result<Outcome, RowError> {
        if input.field("tokenizer")?.text()? == "unavailable" {
            return Ok(Outcome::not_here("this host has a vocabulary"));
        }
        let directory = scratch()?;
        let root = directory.path().join("workspace");
        write(&root, &input.field("files")?)?;
        let before = snapshot(&root)?;
        let number = |name: &str| Ok::<_, Malformed>(input.field(name)?.integer()?.to_string());
        let options = OpenOptions::new(Tier::Owner)
            .setting("views.core-budget", number("core_budget_tokens")?)
            .setting("views.recent", number("recent_limit")?);
        let mut session = self.session(&root, options)?;
        let repaired = repair(&mut session)?;
        let after = snapshot(&root)?;
        // A core.md of hand is kept as evidence before anything else, by a commit of its own.
        let after_that = |(path, _): &(&String, &Option<Vec<u8>>)| !path.starts_with("sources/openprogram-migration/");
        honest(
            &repaired,
            &before,
            &after.iter().filter(after_that).map(|(path, text)| (path.clone(), text.clone())).collect(),
        )?;
        let core = session.core().map_err(|error| RowError::Host { doing: "core", error })?;
        let state = core.and_then(|core| core.state);
        let sources = |files: &Snapshot| -> Snapshot {
            let is_source = |(path, _): &(&String, &Option<Vec<u8>>)| path.starts_with("sources/");
            files.iter().filter(is_source).map(|(path, content)| (path.clone(), content.clone())).collect()
        };
        Ok(Outcome::Shown(json!({
            "ok": true,
            "core_tokens": state.as_ref().map_or(0, |state| state.tokens),
            "core_dropped": state.as_ref().map_or(&[][..], |state| &state.left_out),
            "sources_unchanged": sources(&before) == sources(&after),
            "files": unspaced(without_sources(&after)),
        })))
    }
}

fn repair(session: &mut Session) -> Result<Updated, RowError> {
    session.repair(false).map_err(|error| RowError::Host { doing: "repair", error })
}

/// What is said to have changed is what has changed.
fn honest(updated: &Updated, before: &Snapshot, after: &Snapshot) -> Result<(), RowError> {
    let real = visible_changes(before, after, &BTreeSet::new());
    let said: BTreeSet<String> = updated.changed_files.iter().cloned().collect();
    if said == real { Ok(()) } else { Err(RowError::Said { said, real }) }
}

/// What a refusal shows.
fn refused(error: &recollex::Error, words: Words, unchanged: Value) -> Result<Outcome, RowError> {
    let recollex::Error::Memory(_) = error else {
        return Err(RowError::Unexpected(format!("{}: {error}", error.code())));
    };
    let mut shown = Map::new();
    let problems = error.problems();
    shown.insert(
        "code".to_owned(),
        if words == Words::Codes { error.code() } else { error.reason().unwrap_or_default() }.into(),
    );
    if words == Words::Codes {
        shown.insert("reason".to_owned(), error.reason().into());
    }
    if let Some(first) = problems.first() {
        let gone = problems.iter().filter(|problem| problem.reason == "block-id-removed").take(NAMED);
        let subject = match &*first.reason {
            "block-id-removed" => {
                Some(gone.filter_map(|problem| problem.subject.as_deref()).collect::<Vec<_>>().join(", "))
            }
            _ => first.subject.clone(),
        };
        shown.insert("subject".to_owned(), subject.into());
    }
    let faults = problems.iter().map(|problem| {
        json!({"path": problem.path, "code": problem.reason, "line": problem.line, "subject": problem.subject})
    });
    let faults: Vec<Value> = faults.collect();
    Ok(Outcome::Shown(json!({"ok": false, "error": shown, "unchanged": unchanged, "faults": faults})))
}

/// `true`, or the paths that are not as before.
fn unchanged(before: &Snapshot, after: &Snapshot) -> Value {
    let paths: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    let other: Vec<&String> = paths.into_iter().filter(|path| before.get(*path) != after.get(*path)).collect();
    if other.is_empty() { true.into() } else { json!(other) }
}

fn ids(given: &[GivenId]) -> Map<String, Value> {
    given.iter().map(|given| (given.name.clone(), given.id.clone().into())).collect()
}

/// The other program's name for what there is.
fn revision(files: &Snapshot) -> String {
    let texts = files.iter().filter_map(|(path, content)| Some((path, str::from_utf8(content.as_deref()?).ok()?)));
    flat_revision(&texts.collect::<BTreeMap<_, _>>())
}

/// The topics that a request has as whole files or in a patch.
fn named(request: &Value) -> BTreeSet<&str> {
    let changes = request["changes"].as_array().into_iter().flatten().filter_map(|change| change["path"].as_str());
    let patched = request["patch"].as_str().into_iter().flat_map(str::lines);
    let patched = patched.filter_map(|line| line.strip_prefix("+++ b/").or_else(|| line.strip_prefix("--- a/")));
    let patched = patched.filter_map(|path| path.split('\t').next());
    changes.chain(patched).collect()
}

/// Whether all ids that an edit gives to blocks are there already.
fn names_nothing_new(edit: &BTreeMap<&str, Option<&str>>, files: &Snapshot) -> bool {
    let ids = |text: &str| -> BTreeSet<String> {
        // A label's caret stands behind a bracket, and that of a link behind #.
        let carets = text.match_indices('^').filter(|(at, _)| !text[..*at].ends_with(['[', '#']));
        let id =
            |(at, _)| text[at + 1..].chars().take_while(|char| char.is_ascii_alphanumeric() || *char == '-').collect();
        carets.map(id).collect()
    };
    let there = files.values().flatten().filter_map(|text| str::from_utf8(text).ok()).flat_map(ids);
    let there: BTreeSet<String> = there.collect();
    edit.values().flatten().all(|text| ids(text).is_subset(&there))
}

/// Topics without the white space before citations: when views are made anew the observed program leaves it, and `repair`,
/// which puts topics in order, does not.
fn unspaced(mut files: Map<String, Value>) -> Map<String, Value> {
    for (_, content) in files.iter_mut().filter(|(path, _)| path.starts_with("topics/")) {
        if let Some(text) = content.as_str().map(derived::unspaced) {
            *content = text.into();
        }
    }
    files
}

fn removed(before: &Snapshot, after: &Snapshot) -> impl Iterator<Item = String> {
    let gone = before.iter().filter(|(path, content)| content.is_some() && !after.contains_key(*path));
    gone.map(|(path, _)| path.clone())
}

/// The files that readers see and that are other than before, and those that were `named` whether or not they are.
fn visible_changes(before: &Snapshot, after: &Snapshot, named: &BTreeSet<&str>) -> BTreeSet<String> {
    let changed = changed(before, after).into_iter().map(|(path, _)| path);
    let paths = changed.chain(removed(before, after)).filter(|path| !is_internal_path(path));
    paths.chain(named.iter().map(|path| (*path).to_owned())).collect()
}

/// What is there besides archives and what is this program's own.
fn without_sources(files: &Snapshot) -> Map<String, Value> {
    let is_shown = |path: &str| {
        let is_kept = !is_internal_path(path) || path.ends_with("/runtime.json");
        is_kept && !path.starts_with("sources/") && !is_own(path)
    };
    let shown = changed(&Snapshot::new(), files);
    shown.into_iter().filter(|(path, _)| is_shown(path)).collect()
}
