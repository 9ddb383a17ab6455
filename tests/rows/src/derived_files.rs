//! A row's workspace behind an edit: topics as they are now, and everything that is derived from them.

use std::collections::BTreeMap;

use recollex_core::ids::TopicPath;
use recollex_core::topic::edit::Evidence as _;
use recollex_core::topic::{Check, TopicRef, Tree, Unit};
use recollex_core::views::{CORE_FILE, CORE_TOPIC, CoreDraft, RuntimeState, Timeline, recent_events, relations};

use crate::archives::Archives;

const RUNTIME_FILE: &str = ".scriptorium/runtime.json";
/// How many claims the observed program lists as recent.
const RECENT: usize = 50;
/// How many tokens its `core.md` may have.
const BUDGET: u64 = 2000;

/// The workspace's files with these topics changed and everything derived from topics made anew.
pub(crate) fn after<T: AsRef<str>>(
    files: &BTreeMap<&str, T>,
    topics: &BTreeMap<TopicPath, Option<String>>,
) -> BTreeMap<String, String> {
    let mut after: BTreeMap<String, String> = files
        .iter()
        .filter(|(path, _)| !path.starts_with("timeline/"))
        .map(|(path, text)| ((*path).to_owned(), text.as_ref().to_owned()))
        .collect();
    let before = units(&after);
    for (path, text) in topics {
        match text {
            Some(text) => drop(after.insert(path.to_string(), text.clone())),
            None => drop(after.remove(path.as_str())),
        }
    }
    let now = units(&after);
    let state = files.get(RUNTIME_FILE).map_or("", AsRef::as_ref);
    let mut state = RuntimeState::read(state);
    state.seed(&before);
    state.extend(&before);
    state.extend(&now);
    after.insert(RUNTIME_FILE.to_owned(), state.write());
    after.insert("relations.json".to_owned(), relations(&now));
    after.insert("recent_events.jsonl".to_owned(), recent_events(&now, &state, RECENT));
    after.extend(Timeline::of(&now).files());
    if let Some(core) = core(&after) {
        after.insert(CORE_FILE.to_owned(), core);
    }
    after
}

fn archives(files: &BTreeMap<String, String>) -> Archives {
    Archives::new(files.iter().map(|(path, text)| (path.as_str(), text.as_bytes())))
}

fn units(files: &BTreeMap<String, String>) -> Vec<Unit> {
    let archives = archives(files);
    let topics = files
        .iter()
        .filter_map(|(path, text)| Some(Check::new(TopicPath::parse(path).ok()?, TopicRef::parse(text), &archives)));
    Tree::new(topics.collect()).units()
}

/// `core.md`. A byte counts as a token: the topics of rows that come here fit by far.
fn core(files: &BTreeMap<String, String>) -> Option<String> {
    let archives = archives(files);
    let text = files.get(CORE_TOPIC)?;
    let check = Check::new(TopicPath::parse(CORE_TOPIC).ok()?, TopicRef::parse(text), &archives);
    let draft = CoreDraft::new(&check, &|evidence| archives.look_up(evidence).is_some_and(|kept| kept.trusted), BUDGET);
    let tokens: Vec<u64> = draft.texts().iter().map(|text| text.len() as u64).collect();
    Some(draft.render(&tokens).text)
}
