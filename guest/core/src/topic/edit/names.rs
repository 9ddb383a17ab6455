//! What an edit's new footnotes and blocks are called.

use super::mint::Mint;
use super::{Committed, Edit};
use crate::ids::{BlockId, FootnoteLabel, SourceId, TopicPath};
use crate::text::is_whitespace;
use crate::topic::check::definition_head;
use crate::topic::item::DefinitionRef;
use crate::topic::line::Lines;
use crate::topic::paragraph::{Ending, ParagraphRef};
use crate::topic::view::TopicRef;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// The names of one topic.
#[derive(Debug, Default)]
pub(super) struct Names<'t> {
    /// Stable labels for the local ones that the topic defines.
    pub(super) labels: BTreeMap<&'t str, String>,
    /// For citations of local labels that it does not define, by where the label begins: the label that is meant.
    pub(super) rebound: BTreeMap<usize, &'t str>,
    /// Ids for blocks that have none, by the paragraph's number.
    pub(super) ids: BTreeMap<usize, String>,
}

impl<'t> Names<'t> {
    /// What a citation's label becomes.
    pub(super) fn label(&self, label: &'t str, start: usize) -> &str {
        let label = self.rebound.get(&start).copied().unwrap_or(label);
        self.labels.get(label).map_or(label, String::as_str)
    }
}

/// Names everything new in the topics of an edit, given in the order of their paths.
pub(super) fn name<'t>(
    topics: &'t [(TopicPath, TopicRef<'t>)],
    edit: &Edit<'_>,
    committed: &dyn Committed,
) -> Vec<Names<'t>> {
    let mut names: Vec<Names<'t>> =
        topics.iter().map(|(_, topic)| Names { rebound: rebind(topic), ..Names::default() }).collect();
    let mut labels: BTreeSet<String> = topics
        .iter()
        .flat_map(|(_, topic)| {
            topic.definitions().iter().copied().chain(topic.fences().iter().flat_map(|fence| fence.definitions()))
        })
        .map(|definition| definition.label().as_str())
        .filter(|label| !FootnoteLabel::is_local(label))
        .map(str::to_owned)
        .collect();
    let mut mint = Mint::default();
    let kept = |path: &TopicPath| !edit.topics.contains_key(path);
    for ((_, topic), names) in topics.iter().zip(&mut names) {
        for definition in topic.definitions() {
            let label = definition.label().as_str();
            if !FootnoteLabel::is_local(label) || names.labels.contains_key(label) {
                continue;
            }
            let targets = targets(definition, &edit.quoted);
            let used = |label: &str| labels.contains(label) || committed.topics_defining(label).iter().any(kept);
            let stable = mint.footnote(definition.time().as_str(), &targets, used);
            labels.insert(stable.clone());
            names.labels.insert(label, stable);
        }
    }
    let mut ids: BTreeSet<String> = BTreeSet::new();
    for (_, topic) in topics {
        for paragraph in topic.paragraphs() {
            if let Ending::Ids { ids: here, .. } = paragraph.ending() {
                ids.extend(here.iter().map(|id| id.as_str().to_owned()));
            }
        }
    }
    for ((path, topic), names) in topics.iter().zip(&mut names) {
        for (number, paragraph) in topic.paragraphs().enumerate().filter(|(_, paragraph)| wants_id(*paragraph)) {
            let used = |id: &str| ids.contains(id) || !committed.topics_of(id).is_empty();
            let id = mint.block(path.name(), paragraph.text().as_str(), used);
            ids.insert(id.clone());
            names.ids.insert(number, id);
        }
    }
    names
}

/// Whether a paragraph is to become a block: it cites something, has no id, is no claim of the older kind, and is not
/// made of lines that were meant to be definitions.
fn wants_id(paragraph: ParagraphRef<'_>) -> bool {
    let mut citations = paragraph.citations().peekable();
    let cites = citations.peek().is_some();
    let lines = Lines::new(paragraph.text().as_str()).map(|line| line.part);
    cites
        && !matches!(paragraph.ending(), Ending::Ids { .. })
        && !citations.all(|citation| BlockId::is_older(citation.label().as_str()))
        && !lines.into_iter().all(|line| definition_head(line).is_some())
}

/// What the definition's sources are named by: the targets of its links or, without links, what stands between commas
/// and middle dots; a quoted source by its id.
fn targets(definition: &DefinitionRef<'_>, quoted: &BTreeMap<String, SourceId>) -> Vec<String> {
    let named = |target: &str| {
        let target = target.trim_matches(is_whitespace);
        quoted.get(target).map_or(target, SourceId::as_str).to_owned()
    };
    let links: Vec<String> = definition.links().map(|link| named(link.target().as_str())).collect();
    if !links.is_empty() {
        return links;
    }
    definition.sources().as_str().split([',', '·']).map(named).filter(|item| !item.is_empty()).collect()
}

/// Citations of local labels that a topic does not define mean, in order, the definitions behind their paragraph that
/// nothing else cites: a writer has numbered anew what is still there.
fn rebind<'t>(topic: &TopicRef<'t>) -> BTreeMap<usize, &'t str> {
    let defined: BTreeSet<&str> = topic.definitions().iter().map(|one| one.label().as_str()).collect();
    let undefined = |label: &str| FootnoteLabel::is_local(label) && !defined.contains(label);
    let cited: BTreeSet<&str> =
        topic.paragraphs().flat_map(|paragraph| paragraph.citations()).map(|one| one.label().as_str()).collect();
    let mut free: VecDeque<DefinitionRef<'t>> = topic.definitions().iter().copied().collect();
    free.retain(|definition| !cited.contains(definition.label().as_str()));
    let mut rebound = BTreeMap::new();
    for paragraph in topic.paragraphs() {
        while free.front().is_some_and(|definition| definition.label().start() < paragraph.text().start()) {
            free.pop_front();
        }
        let mut here: BTreeMap<&str, &'t str> = BTreeMap::new();
        for label in paragraph.citations().map(|citation| citation.label()).filter(|label| undefined(label.as_str())) {
            let meant = match here.get(label.as_str()) {
                Some(meant) => Some(*meant),
                None => free.pop_front().map(|definition| definition.label().as_str()),
            };
            if let Some(meant) = meant {
                here.insert(label.as_str(), meant);
                rebound.insert(label.start(), meant);
            }
        }
    }
    rebound
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbered_anew() {
        let definition = |label: &str| format!("[^{label}]: Time: `2026`; Sources: [x](D1:1)\n");
        let text = format!(
            "{}A.[^e1][^e2][^e1] ^a\n\nB.[^e-b][^e3] ^b\n\nC.[^x][^e9] ^c\n\n{}{}{}{}",
            definition("e-before"),
            definition("e-one"),
            definition("e-b"),
            definition("e-two"),
            definition("e-three"),
        );
        let topic = TopicRef::parse(&text);
        let meant: Vec<(&str, &str)> =
            rebind(&topic).into_iter().map(|(start, meant)| (&text[start..start + 2], meant)).collect();
        assert_eq!(meant, [("e1", "e-one"), ("e2", "e-two"), ("e1", "e-one"), ("e3", "e-three")]);
    }

    #[test]
    fn what_becomes_a_block() {
        let wants = |text: &str| TopicRef::parse(text).paragraphs().next().is_some_and(wants_id);
        for text in ["A.[^e1]", "A.[^e1] more", "A.[^mem_a][^e1]", "A.[^e1] ^a_b", "[^e1]: x\nA"] {
            assert!(wants(text), "{text}");
        }
        for text in ["A.", "A.[^e1] ^a", "A.[^mem_a]", "A.[^mem_a] more", "[^e1]: x", " [^e1]: x\n[^e2]: y"] {
            assert!(!wants(text), "{text}");
        }
    }
}
