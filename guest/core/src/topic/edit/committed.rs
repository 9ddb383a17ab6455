//! The topics as they are before an edit.

use super::super::check::is_older;
use super::super::item::{DefinitionRef, Item, Items};
use super::super::paragraph::Ending;
use crate::ids::TopicPath;
use std::collections::{BTreeMap, BTreeSet};

/// What an edit must know of the topics it is made in. An edit asks about what it touches, so that whoever keeps tables of
/// blocks, labels and links need not read every topic for it.
pub trait Committed {
    /// A topic's text; none if there is no such topic, or it is not UTF-8.
    fn text(&self, path: &TopicPath) -> Option<&str>;

    /// Whether there is such a topic, UTF-8 or not.
    fn is_there(&self, path: &TopicPath) -> bool {
        self.text(path).is_some()
    }

    /// The topics in which a block has the id, sound or not; in the order of their paths. More than one is a fault that
    /// was there before.
    fn topics_of(&self, id: &str) -> Vec<TopicPath>;

    /// The topics in which a definition has the label, inside a fence or not; in the order of their paths.
    fn topics_defining(&self, label: &str) -> Vec<TopicPath>;

    /// The topics in which a paragraph links to the block, in the order of their paths.
    fn linking_to(&self, id: &str) -> Vec<TopicPath>;
}

/// Committed topics that are all in memory.
#[derive(Clone, Debug, Default)]
pub struct Snapshot<'a> {
    topics: BTreeMap<TopicPath, &'a str>,
    unreadable: BTreeSet<TopicPath>,
    ids: BTreeMap<&'a str, BTreeSet<TopicPath>>,
    labels: BTreeMap<&'a str, BTreeSet<TopicPath>>,
    links: BTreeMap<&'a str, BTreeSet<TopicPath>>,
}

impl<'a> Snapshot<'a> {
    /// Of these topics.
    pub fn new(topics: impl IntoIterator<Item = (TopicPath, &'a str)>) -> Self {
        let mut snapshot = Self::default();
        for (path, text) in topics {
            snapshot.add(&path, text);
            snapshot.topics.insert(path, text);
        }
        snapshot
    }

    /// The same, and topics that are not UTF-8.
    #[must_use]
    pub fn with_unreadable(mut self, paths: impl IntoIterator<Item = TopicPath>) -> Self {
        self.unreadable.extend(paths);
        self
    }

    /// The topics, in order.
    pub fn topics(&self) -> impl Iterator<Item = (&TopicPath, &'a str)> {
        self.topics.iter().map(|(path, text)| (path, *text))
    }

    fn define(&mut self, path: &TopicPath, definition: DefinitionRef<'a>) {
        self.labels.entry(definition.label().as_str()).or_default().insert(path.clone());
    }

    fn add(&mut self, path: &TopicPath, text: &'a str) {
        for item in Items::new(text) {
            match item {
                Item::Paragraph(paragraph) => {
                    let ids: Vec<&str> = match paragraph.ending() {
                        Ending::Ids { ids, .. } => ids.iter().map(|id| id.as_str()).collect(),
                        Ending::Plain if is_older(paragraph) => {
                            paragraph.citations().map(|citation| citation.label().as_str()).collect()
                        }
                        Ending::Unfit(_) | Ending::Plain => Vec::new(),
                    };
                    for id in ids {
                        self.ids.entry(id).or_default().insert(path.clone());
                    }
                    for id in paragraph.linked_blocks() {
                        self.links.entry(id).or_default().insert(path.clone());
                    }
                }
                Item::Definition(definition) => self.define(path, definition),
                Item::Fence(fence) => fence.definitions().for_each(|definition| self.define(path, definition)),
                Item::Blank(_) | Item::Heading(_) | Item::Comment(_) => {}
            }
        }
    }
}

impl Committed for Snapshot<'_> {
    fn text(&self, path: &TopicPath) -> Option<&str> {
        self.topics.get(path).copied()
    }

    fn is_there(&self, path: &TopicPath) -> bool {
        self.topics.contains_key(path) || self.unreadable.contains(path)
    }

    fn topics_of(&self, id: &str) -> Vec<TopicPath> {
        self.ids.get(id).into_iter().flatten().cloned().collect()
    }

    fn topics_defining(&self, label: &str) -> Vec<TopicPath> {
        self.labels.get(label).into_iter().flatten().cloned().collect()
    }

    fn linking_to(&self, id: &str) -> Vec<TopicPath> {
        self.links.get(id).into_iter().flatten().cloned().collect()
    }
}
