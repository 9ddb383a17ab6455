//! Rows of `derived.jsonl`: a workspace's files, and all of them after topics were put in order and views made anew.

use std::borrow::Cow;
use std::collections::BTreeMap;

use recollex_core::ids::{BlockId, SourceRef, TopicPath, is_internal_path};
use recollex_core::source::Limits;
use recollex_core::table::{TopicEntry, TopicNote, TopicTable};
use recollex_core::topic::edit::{Edit, Evidence, Snapshot, plan};
use recollex_core::views::{
    CORE_FILE, CORE_TOPIC, CoreCount, Derivation, HandCore, RuntimeState, ViewLimits, hand_written_core,
};
use serde_json::{Value, json};

use crate::archives::Archives;
use crate::{Counter, Input, Malformed, Observed, Outcome};

/// Rows about tokens run where there is a vocabulary.
pub const NO_VOCABULARY: &str = "there is no vocabulary here to count tokens by";

type Files = BTreeMap<String, String>;

pub(crate) fn observe(input: &Input<'_>, counter: Option<Counter>) -> Observed {
    let files = input
        .field("files")?
        .entries()?
        .map(|(path, content)| Ok((path.to_owned(), content.text()?.to_owned())))
        .collect::<Result<Files, Malformed>>()?;
    let number = |name: &str| -> Result<u64, Malformed> {
        let field = input.field(name)?;
        u64::try_from(field.integer()?).map_err(|error| field.fault(error.to_string()))
    };
    let limits = ViewLimits { core_budget: number("core_budget_tokens")?, recent: number("recent_limit")? };
    let has_vocabulary = input.field("tokenizer")?.text()? != "unavailable";
    // Whoever has none estimates; a token has at least a byte.
    let estimate: Counter = |text| text.len() as u64;
    let counter = if has_vocabulary { counter } else { Some(estimate) };

    let before = without_sources(&files);
    let (files, is_archived) = by_hand(files);
    let topics = || files.iter().filter_map(|(path, text)| Some((TopicPath::parse(path).ok()?, text.as_str())));
    let archives = archives(&files);
    let edit = Edit { topics: topics().map(|(path, text)| (path, Some(text))).collect(), ..Edit::default() };
    let planned = match plan(&edit, &Snapshot::new(topics()), &archives) {
        Ok(planned) => planned,
        Err(faults) => {
            let error = faults.first().map(|fault| json!({"subject": fault.subject, "code": fault.reason.as_str()}));
            let topics: Files = before.into_iter().filter(|(path, _)| path.starts_with("topics/")).collect();
            return Ok(Outcome::Shown(
                json!({"ok": false, "error": error, "sources_unchanged": true, "files": topics}),
            ));
        }
    };
    let mut after = files.clone();
    for (path, text) in planned.topics {
        match text {
            // Views are no reason to change how a topic is spaced: only links and sources are put right for them.
            Some(text) if files.get(path.as_str()).is_some_and(|old| unspaced(old) == text) => {}
            Some(text) => drop(after.insert(path.to_string(), text)),
            None => drop(after.remove(path.as_str())),
        }
    }
    Ok(match derive(after, limits, counter) {
        Some(made) => Outcome::Shown(shown(&made, !is_archived)),
        None => Outcome::not_here(NO_VOCABULARY),
    })
}

/// Without white space before citations.
#[must_use]
pub fn unspaced(text: &str) -> String {
    let mut out = String::new();
    for (number, piece) in text.split("[^").enumerate() {
        if number > 0 {
            out.truncate(out.trim_end_matches(' ').len());
            out.push_str("[^");
        }
        out.push_str(piece);
    }
    out
}

fn archives(files: &Files) -> Archives {
    Archives::new(files.iter().map(|(path, text)| (path.as_str(), text.as_bytes())))
}

/// What becomes of a `core.md` without a topic, and whether it became evidence.
fn by_hand(mut files: Files) -> (Files, bool) {
    let Some(core) = files.get(CORE_FILE).filter(|_| !files.contains_key(CORE_TOPIC)) else { return (files, false) };
    let archives = archives(&files);
    let topics: Vec<_> =
        files.iter().filter_map(|(path, text)| Some((TopicPath::parse(path).ok()?, text.as_str()))).collect();
    let snapshot = Snapshot::new(topics);
    let taken = |id: &str| !recollex_core::topic::edit::Committed::topics_of(&snapshot, id).is_empty();
    let archived = |source: &SourceRef| archives.look_up(source).is_some();
    match hand_written_core(core.as_bytes(), None, &taken, &archives, &archived, None) {
        HandCore::Leave => (files, false),
        HandCore::Promote(topic) => {
            files.insert(CORE_TOPIC.to_owned(), topic);
            (files, false)
        }
        HandCore::Archive { .. } => (files, true),
    }
}

struct Made {
    files: Files,
    units: usize,
    core_tokens: u64,
    left_out: Vec<BlockId>,
}

/// The workspace with every view made anew. None: tokens must be counted, and nobody can.
fn derive(mut files: Files, limits: ViewLimits, counter: Option<Counter>) -> Option<Made> {
    let archives = archives(&files);
    let mut table = TopicTable::new(&Limits::default());
    for (path, text) in &files {
        if let Ok(path) = TopicPath::parse(path) {
            table.apply(&TopicNote::read(&path, text, &archives));
        }
    }
    let runtime = if files.keys().any(|path| path.starts_with(".nativemem/")) { ".nativemem" } else { ".scriptorium" };
    let runtime = format!("{runtime}/runtime.json");
    let state = RuntimeState::read(files.get(&runtime).map_or("", String::as_str));
    let derivation = Derivation::whole(&table, &state, limits);
    let units = table.entries().flat_map(|(_, entry)| count(&entry)).sum();
    let mut text = |path: &TopicPath| files.get(path.as_str()).map(|text| Cow::Borrowed(text.as_str()));
    let trusted = |source: &SourceRef| archives.look_up(source).is_some_and(|kept| kept.trusted);
    let derived = derivation.finish(&mut text, &trusted).ok()?;
    let stale: Vec<String> = derived.stale(files.keys().map(String::as_str)).into_iter().map(str::to_owned).collect();
    stale.iter().for_each(|path| drop(files.remove(path)));
    let (mut core_tokens, mut left_out) = (0, Vec::new());
    if let Some(draft) = derived.core {
        let count = CoreCount::new(draft, None);
        let counter = counter?;
        let tokens: Vec<u64> = count.texts().iter().map(|text| counter(text)).collect();
        let made = count.make(&tokens, true);
        files.insert(CORE_FILE.to_owned(), made.view.text);
        (core_tokens, left_out) = (made.view.tokens, made.view.left_out);
    }
    for (path, content) in derived.files {
        match content {
            Some(content) => drop(files.insert(path, content)),
            None => drop(files.remove(&path)),
        }
    }
    files.insert(runtime, derived.runtime?);
    Some(Made { files, units, core_tokens, left_out })
}

/// How many units each block of a topic is; no row has an id in two topics.
fn count(entry: &TopicEntry<'_>) -> Vec<usize> {
    entry.blocks().filter(|block| block.is_sound()).map(|block| block.ids().count()).collect()
}

fn without_sources(files: &Files) -> Files {
    let is_shown =
        |path: &&String| !path.starts_with("sources/") && (!is_internal_path(path) || path.ends_with("/runtime.json"));
    files.iter().filter(|(path, _)| is_shown(path)).map(|(path, text)| (path.clone(), text.clone())).collect()
}

fn shown(made: &Made, sources_unchanged: bool) -> Value {
    let left_out: Vec<&str> = made.left_out.iter().map(BlockId::as_str).collect();
    json!({
        "ok": true,
        "message": format!("committed {} blocks", made.units),
        "core_tokens": made.core_tokens,
        "core_dropped": left_out,
        "sources_unchanged": sources_unchanged,
        "files": without_sources(&made.files),
    })
}
