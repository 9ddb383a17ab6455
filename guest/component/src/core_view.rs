//! `core.md`: counted by the host, remembered beside it.
//!
//! Knows how to ask for tokens and where files are. What the view is made of and what fits core's `views` says.

use recollex_core::source::{LimitReached, Limits};
use recollex_core::views::{CORE_FILE, CORE_STATE, CoreCount, CoreDraft, CoreMade, CoreState, VOCABULARY};

use crate::bindings::exports::recollex::memory::workspace as wit;
use crate::bindings::recollex::memory::model;
use crate::bindings::recollex::memory::store::{Area, Entry, StoreError};
use crate::convert;
use crate::tree;
use crate::view::View;

/// The longest state that is read, in bytes. There is a line of an id for each block that is left out.
const STATE_BYTES_MAX: u64 = 16 << 20;

/// A file, and what it shall say.
pub(crate) type Rendered = (Area, &'static str, String);

/// The view that a draft comes to, and what is to be remembered of it. What somebody has counted before, nobody counts again,
/// and no estimate takes its place (D22).
pub(crate) fn render(draft: CoreDraft) -> Result<Vec<Rendered>, wit::Error> {
    let before = state()?;
    let count = CoreCount::new(draft, before.as_ref());
    let texts = count.texts();
    let (tokens, exact) = if texts.is_empty() {
        (Vec::new(), true)
    } else {
        let counts = model::count_tokens(VOCABULARY, &texts);
        (counts.tokens.into_iter().map(u64::from).collect(), counts.exact)
    };
    let CoreMade { view, state } = count.make(&tokens, exact);
    let mut rendered = vec![(Area::Tree, CORE_FILE, view.text)];
    if before.as_ref() != Some(&state) {
        rendered.push((Area::Runtime, CORE_STATE, state.write()));
    }
    Ok(rendered)
}

/// What is remembered of the view; none if there is nothing, or it cannot be read.
pub(crate) fn state() -> Result<Option<CoreState>, wit::Error> {
    let failed = |error| convert::runtime_error(error, CORE_STATE);
    let Some(entry) = tree::find(Area::Runtime, CORE_STATE).map_err(failed)? else { return Ok(None) };
    if entry.stamp.size > STATE_BYTES_MAX {
        return Ok(None);
    }
    match tree::read_range(Area::Runtime, CORE_STATE, Some(&entry.stamp), 0, entry.stamp.size) {
        Ok(text) => Ok(CoreState::read(&text)),
        Err(StoreError::NotText(_)) => Ok(None),
        Err(error) => Err(failed(error)),
    }
}

/// The view as a caller sees it; none if there is none.
pub(crate) fn read(view: &View, limits: &Limits) -> Result<Option<wit::CoreView>, wit::Error> {
    let Some(entry) = find(view)? else { return Ok(None) };
    let text = text_of(&entry, limits)?.map_err(|error| convert::store_error(error, Some(CORE_FILE)))?;
    Ok(Some(wit::CoreView { state: known(&text)?, text }))
}

/// What is known of the view that a caller sees; none if there is none, or nobody knows.
pub(crate) fn shown(view: &View, limits: &Limits) -> Result<Option<wit::CoreState>, wit::Error> {
    // What is longer nobody counted.
    let Some(entry) = find(view)?.filter(|entry| entry.stamp.size <= limits.batch_bytes) else { return Ok(None) };
    text_of(&entry, limits)?.map_or(Ok(None), |text| known(&text))
}

/// What a caller sees of the file that somebody may have written by hand; none if there is none, or it is not UTF-8.
pub(crate) fn text(view: &View, limits: &Limits) -> Result<Option<String>, wit::Error> {
    find(view)?.map_or(Ok(None), |entry| Ok(text_of(&entry, limits)?.ok()))
}

fn find(view: &View) -> Result<Option<Entry>, wit::Error> {
    let entry = view.find(CORE_FILE).map_err(|error| convert::store_error(error, Some(CORE_FILE)))?;
    Ok(entry.filter(tree::is_file))
}

/// The file's text; the inner error: it is not UTF-8. What is longer than a batch could neither be kept nor shown.
fn text_of(entry: &Entry, limits: &Limits) -> Result<Result<String, StoreError>, wit::Error> {
    let (size, allowed) = (entry.stamp.size, limits.batch_bytes);
    if size > allowed {
        let subject = Some(CORE_FILE.to_owned());
        return Err(convert::limit(LimitReached { name: Limits::BATCH_BYTES, allowed, asked: size, subject }));
    }
    match tree::read_range(Area::Tree, CORE_FILE, Some(&entry.stamp), 0, size) {
        Err(error @ StoreError::NotText(_)) => Ok(Err(error)),
        read => read.map(Ok).map_err(|error| convert::store_error(error, Some(CORE_FILE))),
    }
}

/// What is remembered of the file with this text.
fn known(text: &str) -> Result<Option<wit::CoreState>, wit::Error> {
    let state = state()?.filter(|state| state.is_of(text.as_bytes()));
    Ok(state.map(|state| wit::CoreState {
        tokens: state.tokens,
        exact: state.exact,
        budget: state.budget,
        blocks: state.blocks,
        left_out: state.left_out.iter().map(|id| id.as_str().to_owned()).collect(),
    }))
}
