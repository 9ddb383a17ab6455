//! A row's workspace behind an edit: topics as they are now, and everything that is derived from them.

use std::borrow::Cow;
use std::collections::BTreeMap;

use recollex_core::ids::{SourceRef, TopicPath};
use recollex_core::source::Limits;
use recollex_core::table::{TopicNote, TopicTable};
use recollex_core::topic::edit::Evidence as _;
use recollex_core::views::{CORE_FILE, CORE_TOPIC, Derivation, RuntimeState, ViewLimits};

use crate::archives::Archives;

const RUNTIME_FILE: &str = ".scriptorium/runtime.json";

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
    let archives = Archives::new(after.iter().map(|(path, text)| (path.as_str(), text.as_bytes())));
    let mut table = TopicTable::new(&Limits::default());
    for (path, text) in &after {
        if let Ok(path) = TopicPath::parse(path) {
            table.apply(&TopicNote::read(&path, text, &archives));
        }
    }
    let mut state = RuntimeState::read(files.get(RUNTIME_FILE).map_or("", AsRef::as_ref));
    state.cover(&table);
    for (path, text) in topics {
        match text {
            Some(text) => {
                table.apply(&TopicNote::read(path, text, &archives));
                after.insert(path.to_string(), text.clone());
            }
            None => {
                table.apply(&TopicNote::gone(path));
                after.remove(path.as_str());
            }
        }
    }
    let derivation = Derivation::whole(&table, &state, ViewLimits::default());
    let trusted = |source: &SourceRef| archives.look_up(source).is_some_and(|kept| kept.trusted);
    let derived =
        derivation.finish(&mut |path| after.get(path.as_str()).map(|text| Cow::Owned(text.clone())), &trusted);
    // Nobody else changes a row's topics.
    let Ok(derived) = derived else { return after };
    for (path, content) in derived.files {
        match content {
            Some(content) => drop(after.insert(path, content)),
            None => drop(after.remove(&path)),
        }
    }
    after.extend(derived.runtime.map(|content| (RUNTIME_FILE.to_owned(), content)));
    if let Some(core) = derived.core {
        // A byte counts as a token: the topics of rows that come here fit by far.
        let tokens: Vec<u64> = core.texts().iter().map(|text| text.len() as u64).collect();
        after.insert(CORE_FILE.to_owned(), core.render(&tokens).text);
    }
    if files.contains_key(CORE_TOPIC) && !after.contains_key(CORE_TOPIC) {
        after.remove(CORE_FILE);
    }
    after
}
