//! An edit of topics, judged whole: what was written becomes what is committed, or every reason why not.
//!
//! From the outside in:
//!
//! - [`plan`] takes an [`Edit`] and gives a [`Planned`], or [`EditFault`]s: all of them, in the order in which a program
//!   that stops at the first would meet them.
//! - [`Committed`] is what it asks about the topics as they are, [`Evidence`] what it asks about the archives.
//! - [`Snapshot`] answers the first for topics that are all in memory.
//!
//! What a writer need not know is done for them: local labels become stable ones, new blocks get ids, footnotes are written
//! in one form, links lead where things now are, headings over nothing go. Nothing else is changed, nothing within a code
//! fence, and nothing is dropped: prose that cites nothing is refused. An edit answers for what it changes and for links
//! that it breaks, not for what was wrong before. The rules are in FORMAT.md, "Edits of topics".
//!
//! Pure: topics in, topics out. Costs time in proportion to the topics an edit gives, those that link to what it moves,
//! and those that its blocks come from.

mod committed;
mod fault;
mod judge;
mod mint;
mod names;
mod prepare;
mod render;
mod rewrite;

use super::check::{BYTE_ORDER_MARK, is_older};
use super::paragraph::{Ending, with_lf};
use super::resolve::Sources;
use super::view::TopicRef;
use crate::ids::{SourceId, SourceRef, TopicPath};
use crate::text::is_whitespace;
pub use committed::{Committed, Snapshot};
pub use fault::{EditFault, EditReason};
use judge::{Judge, Old, Outcome, Scene};
pub use mint::Mint;
use names::Names;
use prepare::prepare;
use render::{Renderer, relink};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

/// What an edit must know of the archives.
pub trait Evidence: Sources {
    /// Whether there is such a record or turn, and what is known of it. Records that the same commit archives count.
    fn look_up(&self, evidence: &SourceRef) -> Option<Kept>;
}

/// A record or turn that there is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kept {
    /// The file within the workspace that a link to it names: of a record in both kinds of archive, the v2 one.
    pub path: String,
    /// Whether something may be built on it.
    pub trusted: bool,
}

/// What somebody wants of the topics.
#[derive(Clone, Debug, Default)]
pub struct Edit<'a> {
    /// Topics as they shall be; none: gone. A topic may be given as it is, to have it put in order.
    pub topics: BTreeMap<TopicPath, Option<&'a str>>,
    /// Ids of blocks that are meant to disappear.
    pub removed: BTreeSet<String>,
    /// The only evidence that blocks may newly rest on; none: whatever is trusted.
    pub offered: Option<BTreeSet<SourceRef>>,
    /// Sources that the request quotes, by the names it gives them (`new-source-…`). Where a source is named, the name
    /// stands for the record; in prose it is prose.
    pub quoted: BTreeMap<String, SourceId>,
    /// Topics that somebody has edited by hand are put in order, as far as that is safe: a link to evidence that leads nowhere
    /// from here is followed by its path from `sources/` on, a byte order mark goes, and nothing else does, empty sections
    /// included. A link to a block that there is not is no reason to refuse.
    pub mend: bool,
}

/// What an edit comes to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Planned {
    /// The topics that change, as they shall be; none: gone. Also those that only link to what has moved.
    pub topics: BTreeMap<TopicPath, Option<String>>,
    /// Ids that were given, by topic and in order.
    pub blocks: Vec<NewBlock>,
    /// Labels that were given, by topic and in order.
    pub footnotes: Vec<NewFootnote>,
    /// Every id that no topic had before, in order.
    pub created: Vec<String>,
}

/// A block that got an id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewBlock {
    /// Its topic.
    pub topic: TopicPath,
    /// Which of the topic's new blocks it is, from 0.
    pub number: usize,
    /// Its id.
    pub id: String,
}

/// A footnote that got a stable label.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewFootnote {
    /// Its topic: a local label means something there only.
    pub topic: TopicPath,
    /// The label its writer gave it.
    pub local: String,
    /// The label it has now.
    pub label: String,
}

/// Plans an edit.
///
/// # Errors
/// Every reason why it is refused, at least one; then nothing is to be changed. The first is the one that a program which
/// stops at the first would tell.
pub fn plan(edit: &Edit<'_>, committed: &dyn Committed, evidence: &dyn Evidence) -> Result<Planned, Vec<EditFault>> {
    let given = edit.topics.iter().filter_map(|(path, text)| {
        let text = (*text)?;
        if !edit.mend {
            return Some((path, with_lf(text)));
        }
        let text = text.trim_start_matches(BYTE_ORDER_MARK);
        // A file without a word is in order.
        (!text.trim_matches(is_whitespace).is_empty()).then(|| (path, with_lf(text)))
    });
    let given: Vec<(&TopicPath, Cow<'_, str>)> = given.collect();
    let known = |id: &str| !committed.topics_of(id).is_empty();
    let prepared: Vec<_> = given.iter().map(|(_, text)| prepare(text, &known)).collect();
    let topics: Vec<(TopicPath, TopicRef<'_>)> =
        given.iter().zip(&prepared).map(|((path, _), text)| ((*path).clone(), TopicRef::parse(&text.text))).collect();
    let names = names::name(&topics, edit, committed);

    let ids = ids_of(&topics, &names);
    let mut placed: BTreeMap<&str, &TopicPath> = BTreeMap::new();
    for (id, path) in &ids {
        placed.entry(id).or_insert(path);
    }
    let untouched = |id: &str| committed.topics_of(id).into_iter().find(|path| !edit.topics.contains_key(path));
    let place = |id: &str| placed.get(id).map(|path| (*path).clone()).or_else(|| untouched(id));

    let old = Old::new(edit, placed.keys(), committed, evidence);
    let mut judge = Judge::new(Scene { edit, committed, evidence, old: &old, place: &place });
    let mut planned = Planned::default();
    for (index, (path, _)) in given.iter().enumerate() {
        let (Some((_, topic)), Some(names), Some(prepared)) =
            (topics.get(index), names.get(index), prepared.get(index))
        else {
            continue;
        };
        let recovered = old.recovered(path, topic, evidence);
        let renderer = Renderer { path, edit, evidence, place: &place, recovered: &recovered };
        let new = renderer.render(topic, names);
        for span in new.unquoted {
            judge.unquoted(path, prepared.origin(span.start), topic.part(span).as_str());
        }
        if !new.empty {
            let origin = |offset: usize| prepared.origin(new.text.origin(offset));
            judge.topic(&Outcome { path, text: &new.text.text, origin: &origin });
        }
        let text = (!new.empty).then_some(new.text.text);
        // Where only line ends would differ, it keeps its bytes.
        if committed.text(path).map(with_lf).as_deref() != text.as_deref() {
            planned.topics.insert((*path).clone(), text);
        }
    }
    judge.gone();
    let faults = judge.finish(&given.iter().map(|(path, text)| (*path, text.as_ref())).collect());
    if !faults.is_empty() {
        return Err(faults);
    }

    for (path, _) in edit.topics.iter().filter(|(path, text)| text.is_none() && committed.is_there(path)) {
        planned.topics.insert(path.clone(), None);
    }
    planned.topics.extend(relinked(edit, &placed, committed));
    for ((path, topic), names) in topics.iter().zip(&names) {
        let block = |(number, id): (usize, &String)| NewBlock { topic: path.clone(), number, id: id.clone() };
        planned.blocks.extend(names.ids.values().enumerate().map(block));
        let locals: Vec<&str> = topic.definitions().iter().map(|definition| definition.label().as_str()).collect();
        let footnote = |local: &str| {
            let label = names.labels.get(local)?.clone();
            Some(NewFootnote { topic: path.clone(), local: local.to_owned(), label })
        };
        planned.footnotes.extend(locals.into_iter().filter_map(footnote));
    }
    planned.created = ids.iter().map(|(id, _)| *id).filter(|id| !known(id)).map(str::to_owned).collect();
    Ok(planned)
}

/// Every id that the topics of an edit will have, in order.
fn ids_of<'t>(topics: &'t [(TopicPath, TopicRef<'t>)], names: &'t [Names<'t>]) -> Vec<(&'t str, &'t TopicPath)> {
    let mut ids = Vec::new();
    for ((path, topic), names) in topics.iter().zip(names) {
        for (number, paragraph) in topic.paragraphs().enumerate() {
            match paragraph.ending() {
                Ending::Ids { ids: here, .. } => ids.extend(here.iter().map(|id| (id.as_str(), path))),
                Ending::Plain if is_older(paragraph) => {
                    ids.extend(paragraph.citations().map(|citation| (citation.label().as_str(), path)));
                }
                Ending::Unfit(_) | Ending::Plain => ids.extend(names.ids.get(&number).map(|id| (id.as_str(), path))),
            }
        }
    }
    ids
}

/// Topics that the edit does not give and that link to blocks which it moves.
fn relinked(
    edit: &Edit<'_>,
    placed: &BTreeMap<&str, &TopicPath>,
    committed: &dyn Committed,
) -> BTreeMap<TopicPath, Option<String>> {
    let mut linking: BTreeMap<TopicPath, BTreeMap<&str, TopicPath>> = BTreeMap::new();
    for (id, to) in placed {
        let before = committed.topics_of(id);
        if before.is_empty() || before.contains(to) {
            continue;
        }
        for path in committed.linking_to(id).into_iter().filter(|path| !edit.topics.contains_key(path)) {
            linking.entry(path).or_default().insert(id, (*to).clone());
        }
    }
    let mut topics = BTreeMap::new();
    for (path, moved) in linking {
        let Some(text) = committed.text(&path) else { continue };
        let new = relink(&path, text, &moved);
        if new != text {
            topics.insert(path, Some(new));
        }
    }
    topics
}
