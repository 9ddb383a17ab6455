//! Rows of `topics_validate.jsonl`: a workspace's files and an edit of them, and what is committed or why not.
//!
//! How an edit is made (through a request, by hand, by an agent) decides what a row notes down, not what is allowed.

use std::collections::{BTreeMap, BTreeSet};

use recollex_core::ids::{SourceRef, TopicPath, is_internal_path};
use recollex_core::topic::edit::{Edit, EditFault, EditReason, Snapshot, plan};
use serde_json::{Map, Value, json};

use crate::archives::Archives;
use crate::derived_files::after;
use crate::{Input, Malformed, Observed, Outcome};

/// How many ids it names when blocks would disappear.
const NAMED: usize = 5;

pub(crate) fn observe(input: &Input<'_>) -> Observed {
    let files = input
        .field("files")?
        .entries()?
        .map(|(path, content)| Ok((path, content.text()?)))
        .collect::<Result<BTreeMap<_, _>, Malformed>>()?;
    let given = input
        .field("edit")?
        .entries()?
        .map(|(path, content)| Ok((path, content.optional_text()?)))
        .collect::<Result<Vec<_>, Malformed>>()?;
    if given.iter().any(|(path, _)| TopicPath::parse(path).is_err()) {
        return Ok(Outcome::not_here("an edit of what is no topic is refused or ignored before topics are looked at"));
    }
    let mode = input.field("mode")?.text()?;
    let topics = || files.iter().filter_map(|(path, text)| Some((TopicPath::parse(path).ok()?, *text)));
    let archives = Archives::new(files.iter().map(|(path, text)| (*path, text.as_bytes())));
    let mut edit = Edit::default();
    edit.topics.extend(given.iter().filter_map(|(path, text)| Some((TopicPath::parse(path).ok()?, *text))));
    if let Some(offered) = input.maybe("allowed_new_source_refs") {
        let offered =
            offered.elements()?.map(|one| SourceRef::parse(one.text()?).map_err(|error| one.fault(error.to_string())));
        edit.offered = Some(offered.collect::<Result<BTreeSet<_>, Malformed>>()?);
    }
    let committed = Snapshot::new(topics());
    let same = given.iter().all(|(path, text)| files.get(path).copied() == *text);
    if mode == "agent" && same {
        return Ok(Outcome::Shown(json!({"ok": true, "dirty": false, "files": without_archives(&files)})));
    }
    let planned = match plan(&edit, &committed, &archives) {
        Ok(planned) => planned,
        Err(faults) => return Ok(Outcome::Shown(refused(mode, &faults))),
    };
    let after = after(&files, &planned.topics);
    let mut shown = Map::new();
    let changed = |path: &&String| files.get(path.as_str()).copied() != after.get(*path).map(String::as_str);
    match mode {
        "update" => {
            let mut paths: BTreeSet<&str> = given.iter().map(|(path, _)| *path).collect();
            paths.extend(after.keys().filter(changed).map(String::as_str).filter(|path| !is_internal_path(path)));
            paths.extend(files.keys().filter(|path| !after.contains_key(**path)));
            let blocks =
                planned.blocks.iter().map(|block| (format!("{}#{}", block.topic, block.number), json!(block.id)));
            let footnotes = planned.footnotes.iter().map(|one| (one.local.clone(), json!(one.label)));
            shown.insert("block_ids".to_owned(), blocks.collect::<Map<_, _>>().into());
            shown.insert("evidence_ids".to_owned(), footnotes.collect::<Map<_, _>>().into());
            shown.insert("changed_files".to_owned(), json!(paths));
        }
        "agent" => {
            let paths: Vec<&str> = planned.topics.keys().map(TopicPath::as_str).collect();
            shown.insert("changed_topics".to_owned(), json!(paths));
            shown.insert("created_blocks".to_owned(), planned.created.len().into());
        }
        _ => {}
    }
    shown.insert("ok".to_owned(), true.into());
    shown.insert("files".to_owned(), without_archives(&after));
    Ok(Outcome::Shown(shown.into()))
}

/// Rows leave archives out, which no edit changes.
fn without_archives<P: AsRef<str>, T: AsRef<str>>(files: &BTreeMap<P, T>) -> Value {
    let shown = files.iter().filter(|(path, _)| !path.as_ref().starts_with("sources/"));
    shown.map(|(path, text)| (path.as_ref().to_owned(), json!(text.as_ref()))).collect::<Map<_, _>>().into()
}

/// The first fault as the row shows it, and all of them.
fn refused(mode: &str, faults: &[EditFault]) -> Value {
    let mut error = Map::new();
    if let Some(first) = faults.first() {
        let gone = faults.iter().filter(|fault| fault.reason == EditReason::BlockIdRemoved).take(NAMED);
        let subject = match first.reason {
            EditReason::BlockIdRemoved => gone.map(|fault| fault.subject.as_str()).collect::<Vec<_>>().join(", "),
            _ => first.subject.clone(),
        };
        error.insert("subject".to_owned(), subject.into());
        if mode == "update" {
            error.insert("code".to_owned(), first.reason.code().into());
            error.insert("reason".to_owned(), first.reason.as_str().into());
        } else {
            error.insert("code".to_owned(), first.reason.as_str().into());
        }
    }
    let faults = faults.iter().map(|fault| {
        json!({
            "path": fault.path.as_str(),
            "code": fault.reason.as_str(),
            "line": fault.line,
            "column": fault.column,
            "subject": fault.subject,
        })
    });
    json!({"ok": false, "error": error, "unchanged": true, "faults": faults.collect::<Vec<_>>()})
}
