//! Operations on records, made on the topics that they are about.
//!
//! Records are created, updated and deleted in the order of the request, and moved last. What an operation asks for is
//! looked at before the first is made, so that every fault is told.
//!
//! Knows topics by what [`Committed`] answers. Must not know how what comes out is judged: that is the edit's.

use super::document::{Document, Entry, Found, Spot};
use super::fault::{Fault, Reason};
use super::request::{Destination, NewRecord, Operation, Position, Reference, is_source_label};
use crate::ids::{SourceId, SourceRef, TopicPath};
use crate::topic::edit::{Committed, Evidence};
use crate::topic::{Item, Items, SourceTarget};
use std::collections::{BTreeMap, BTreeSet};

/// What operations come to: topics as they would be, and ids that are meant to disappear.
#[derive(Debug, Default)]
pub(super) struct Edited {
    pub(super) topics: BTreeMap<TopicPath, String>,
    pub(super) removed: BTreeSet<String>,
}

/// What operations are made on.
#[derive(Clone, Copy)]
pub(super) struct Ground<'w> {
    pub(super) committed: &'w dyn Committed,
    pub(super) evidence: &'w dyn Evidence,
    pub(super) quoted: &'w BTreeMap<String, SourceId>,
}

/// Makes the operations.
///
/// # Errors
/// Every fault.
pub(super) fn edit(operations: &[Operation], ground: Ground<'_>) -> Result<Edited, Vec<Fault>> {
    let mut editor = Editor { ground, documents: BTreeMap::new(), before: BTreeMap::new(), faults: Vec::new() };
    let mut removed = BTreeSet::new();
    editor.look(operations);
    let (moves, others): (Vec<_>, Vec<_>) =
        operations.iter().enumerate().partition(|(_, operation)| matches!(operation, Operation::Move { .. }));
    if editor.faults.is_empty() {
        for (at, operation) in others.into_iter().chain(moves) {
            if let Operation::Delete { id } = operation {
                removed.insert(id.clone());
            }
            editor.make(at, operation);
        }
    }
    if !editor.faults.is_empty() {
        return Err(editor.faults);
    }
    let topics = editor.documents.into_iter().map(|(path, document)| (path, document.text())).collect();
    Ok(Edited { topics, removed })
}

/// What one operation does to a record.
#[derive(Clone, Copy, Debug, Default)]
struct Done {
    updated: bool,
    moved: bool,
    deleted: bool,
}

struct Editor<'w> {
    ground: Ground<'w>,
    documents: BTreeMap<TopicPath, Document<'w>>,
    /// Where records were before the request, by id: which topic, and all ids of the record.
    before: BTreeMap<String, (TopicPath, Vec<String>)>,
    faults: Vec<Fault>,
}

impl<'w> Editor<'w> {
    /// Looks at every operation before any is made.
    fn look(&mut self, operations: &[Operation]) {
        let mut done: BTreeMap<(TopicPath, String), Done> = BTreeMap::new();
        let mut deleted: BTreeSet<&str> = BTreeSet::new();
        for (at, operation) in operations.iter().enumerate() {
            let field = format!("memory_changes[{at}]");
            match operation {
                Operation::Create { destination, .. } => self.look_at_destination(destination, &field),
                Operation::Update { id, .. } => {
                    let field = format!("{field}.memory_id");
                    let Some(key) = self.record(id, &field) else { continue };
                    let done = done.entry(key).or_default();
                    if done.updated || done.deleted {
                        self.faults.push(Fault::at(Reason::RecordNamedTwice, field).about(id.as_str()));
                    }
                    done.updated = true;
                }
                Operation::Delete { id } => {
                    let field = format!("{field}.memory_id");
                    let Some(key) = self.record(id, &field) else { continue };
                    let done = done.entry(key).or_default();
                    if done.updated || done.moved || !deleted.insert(id) {
                        self.faults.push(Fault::at(Reason::RecordNamedTwice, field).about(id.as_str()));
                    }
                    done.deleted = true;
                }
                Operation::Move { ids, destination } => {
                    let named: BTreeSet<&str> = ids.iter().map(String::as_str).collect();
                    let mut here: BTreeSet<(TopicPath, String)> = BTreeSet::new();
                    for (number, id) in ids.iter().enumerate() {
                        let field = format!("{field}.memory_ids[{number}]");
                        let Some(key) = self.record(id, &field) else { continue };
                        let all = self.before.get(id).map(|(_, ids)| ids.as_slice()).unwrap_or_default();
                        if all.iter().any(|one| !named.contains(one.as_str())) {
                            let fault = Fault::at(Reason::MergedRecordsApart, field.clone()).about(all.join(", "));
                            self.faults.push(fault);
                        }
                        let record = done.entry(key.clone()).or_default();
                        // The other ids of a record that moves are no second move.
                        if record.deleted || (record.moved && !here.contains(&key)) {
                            self.faults.push(Fault::at(Reason::RecordNamedTwice, field).about(id.as_str()));
                        }
                        record.moved = true;
                        here.insert(key);
                    }
                    self.look_at_destination(destination, &field);
                    if let Position::Before(anchor) | Position::After(anchor) = &destination.position
                        && named.contains(anchor.as_str())
                    {
                        let field = format!("{field}.destination.anchor_memory_id");
                        self.faults.push(Fault::at(Reason::AnchorElsewhere, field).about(anchor.as_str()));
                    }
                }
            }
        }
    }

    /// The record of an id, as its topic and its own id.
    fn record(&mut self, id: &str, field: &str) -> Option<(TopicPath, String)> {
        if !self.before.contains_key(id) {
            for path in self.ground.committed.topics_of(id) {
                if let Some(found) = self.document(&path).and_then(|document| document.find(id)) {
                    self.before.insert(id.to_owned(), (path, found.ids));
                    break;
                }
            }
        }
        match self.before.get(id) {
            Some((path, ids)) => Some((path.clone(), ids.last().cloned().unwrap_or_default())),
            None => {
                self.faults.push(Fault::at(Reason::NoSuchRecord, field).about(id));
                None
            }
        }
    }

    fn look_at_destination(&mut self, destination: &Destination, field: &str) {
        let path = &destination.topic;
        if self.ground.committed.is_there(path) && self.ground.committed.text(path).is_none() {
            let field = format!("{field}.destination.topic_path");
            self.faults.push(Fault::of(Reason::UnreadableTopic, path.as_str()).in_field(field));
        }
        if let Position::Before(id) | Position::After(id) = &destination.position {
            self.record(id, &format!("{field}.destination.anchor_memory_id"));
        }
    }

    /// The topic, taken apart; none if there is none.
    fn document(&mut self, path: &TopicPath) -> Option<&mut Document<'w>> {
        if !self.documents.contains_key(path) {
            self.documents.insert(path.clone(), Document::parse(self.ground.committed.text(path)?));
        }
        self.documents.get_mut(path)
    }

    /// Where the record of an id is now.
    fn find(&mut self, id: &str) -> Option<(TopicPath, Found)> {
        let (path, _) = self.before.get(id)?.clone();
        let found = self.document(&path)?.find(id)?;
        Some((path, found))
    }

    fn make(&mut self, at: usize, operation: &Operation) {
        match operation {
            Operation::Create { record, destination } => {
                let entry = self.entry(record, &destination.topic);
                self.put(destination, vec![entry], at);
            }
            Operation::Update { id, record } => {
                let Some((path, found)) = self.find(id) else { return };
                let label = self.label(record, &path);
                let sources = self.sources(record, &path);
                let line = |label: &str| format!("[^{label}]: Time: `{}`; Sources: {sources}", record.time);
                if let Some(document) = self.document(&path) {
                    document.rewrite(&found, &record.content, &line, &label);
                }
            }
            Operation::Delete { id } => {
                let Some((path, _)) = self.find(id) else { return };
                if let Some(document) = self.document(&path) {
                    document.drop_id(id);
                }
            }
            Operation::Move { ids, destination } => {
                let named: BTreeSet<&str> = ids.iter().map(String::as_str).collect();
                let mut entries = Vec::with_capacity(ids.len());
                for id in ids {
                    // Of merged records, the first takes the others along.
                    let Some((path, found)) = self.find(id) else { continue };
                    let take = |document: &mut Document<'_>| document.take(&document.with_neighbours(found, &named));
                    entries.extend(self.document(&path).map(take).map(|entry| (path, entry)));
                }
                let mut arrived = BTreeMap::new();
                let to = &destination.topic;
                let entries = entries.into_iter().map(|(from, entry)| self.arriving(entry, &from, to, &mut arrived));
                let entries = entries.collect();
                self.put(destination, entries, at);
            }
        }
    }

    fn put(&mut self, destination: &Destination, entries: Vec<Entry>, at: usize) {
        let spot = match &destination.position {
            Position::Start => Spot::Start,
            Position::End => Spot::End,
            Position::Before(id) => Spot::Before(id),
            Position::After(id) => Spot::After(id),
        };
        let document = self
            .documents
            .entry(destination.topic.clone())
            .or_insert_with(|| Document::parse(self.ground.committed.text(&destination.topic).unwrap_or_default()));
        match document.place(&destination.headings, spot) {
            Some(place) => document.insert(place, entries),
            None => {
                let anchor = match spot {
                    Spot::Before(id) | Spot::After(id) => id,
                    Spot::Start | Spot::End => "",
                };
                let field = format!("memory_changes[{at}].destination.anchor_memory_id");
                self.faults.push(Fault::at(Reason::AnchorElsewhere, field).about(anchor));
            }
        }
    }

    fn entry(&mut self, record: &NewRecord, path: &TopicPath) -> Entry {
        let label = self.label(record, path);
        let definition = format!("[^{label}]: Time: `{}`; Sources: {}", record.time, self.sources(record, path));
        Entry { text: format!("{}[^{label}]", record.content), definitions: vec![definition] }
    }

    /// The label of a record's footnote, and another one where the topic has that.
    fn label(&mut self, record: &NewRecord, path: &TopicPath) -> String {
        let Some(document) = self.document(path) else { return record.label.clone() };
        free_label(&record.label, |label| document.knows(label))
    }

    /// A record's sources as links.
    fn sources(&self, record: &NewRecord, path: &TopicPath) -> String {
        let links: Vec<String> = record.sources.iter().map(|source| self.link(source, path)).collect();
        links.join(", ")
    }

    fn link(&self, Reference { source, label }: &Reference, path: &TopicPath) -> String {
        let handle = self.ground.quoted.get(source).map_or(source.as_str(), SourceId::as_str);
        let label = label.as_deref().unwrap_or(handle);
        // A parenthesis would end the link; where the record is has none.
        let target = match SourceRef::parse(source) {
            Ok(SourceRef::Record(id)) if source.contains(['(', ')']) && !is_source_label(source) => {
                let kept = self.ground.evidence.look_up(&SourceRef::Record(id.clone()));
                let file = kept.map_or_else(|| id.v2_path(), |kept| kept.path);
                format!("{}#{}", path.relative(&file), id.anchor())
            }
            _ => source.clone(),
        };
        format!("[{label}]({target})")
    }

    /// A record that comes from elsewhere, with those definitions that are not there already, and under other labels where
    /// those mean something else there. `arrived`: what the definitions mean that came with records before it.
    fn arriving(
        &mut self,
        entry: Entry,
        from: &TopicPath,
        to: &TopicPath,
        arrived: &mut BTreeMap<String, Option<Meaning>>,
    ) -> Entry {
        let evidence = self.ground.evidence;
        let empty = Document::default();
        let document = match self.document(to) {
            Some(document) => &*document,
            None => &empty,
        };
        let mut arriving = Entry { text: entry.text, definitions: Vec::with_capacity(entry.definitions.len()) };
        for line in entry.definitions {
            let Some(Item::Definition(definition)) = Items::new(&line).next() else { continue };
            let label = definition.label().as_str();
            let meant = meaning(&line, from, evidence);
            let there = |label: &str| match document.definition(label) {
                Some(there) => Some(meaning(&there, to, evidence)),
                None => arrived.get(label).cloned(),
            };
            match there(label) {
                None => {
                    arrived.insert(label.to_owned(), meant);
                    arriving.definitions.push(line);
                }
                Some(there) if there == meant => {}
                Some(_) => {
                    // Another record may have brought it, under another label too.
                    let brought = arrived.iter().find(|(_, other)| **other == meant).map(|(label, _)| label.clone());
                    let is_new = brought.is_none();
                    let other = brought.unwrap_or_else(|| {
                        free_label("new-evidence-moved-1", |label| document.knows(label) || arrived.contains_key(label))
                    });
                    let (old, new) = (format!("[^{label}]"), format!("[^{other}]"));
                    arriving.text = arriving.text.replace(&old, &new);
                    if is_new {
                        arriving.definitions.push(line.replacen(&old, &new, 1));
                        arrived.insert(other, meant);
                    }
                }
            }
        }
        arriving
    }
}

/// What a definition says: its time as it is written, and its links' labels with what they lead to.
type Meaning = (String, Vec<(String, String)>);

/// The label, or the first free one of those with a further number.
fn free_label(label: &str, taken: impl Fn(&str) -> bool) -> String {
    let numbered = (2..).map(|number: u64| format!("{label}-{number}"));
    std::iter::once(label.to_owned()).chain(numbered).find(|label| !taken(label)).unwrap_or_default()
}

/// What a definition in a topic says; none if it is none.
fn meaning(line: &str, path: &TopicPath, evidence: &dyn Evidence) -> Option<Meaning> {
    let Some(Item::Definition(definition)) = Items::new(line).next() else { return None };
    let target = |target: &str| {
        let found = SourceTarget::parse(target).resolve(path, evidence);
        found.map_or_else(|| target.to_owned(), |found| found.to_string())
    };
    let links = definition.links().map(|link| (link.label().as_str().to_owned(), target(link.target().as_str())));
    Some((definition.time().as_str().to_owned(), links.collect()))
}
