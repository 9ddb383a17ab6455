//! What somebody asks for: as they said it, and once it was checked.

use super::fault::{Fault, Reason};
use super::limits::Limits;
use super::observed_at;
use super::patch::Patch;
use crate::ids::{BlockId, EvidenceTime, TopicPath, TopicPathError};
use crate::text::{is_printable_writing, is_whitespace};
use crate::topic::{Citations, FaultCode, Item, Items, with_lf};
use std::collections::BTreeSet;

/// What is said of a commit whose author says nothing.
pub const DEFAULT_MESSAGE: &str = "Update memory";

/// Characters that a message keeps at most.
const MESSAGE_CHARS: usize = 500;

/// Levels that headings have.
const LEVELS: usize = 6;

/// A request as it was made. Nothing is checked yet; [`Request::new`] does that. [`Request::from_json`] reads one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proposal {
    /// The revision of the workspace that the edit was made for.
    pub base_revision: String,
    /// What to change.
    pub edit: ProposedEdit,
    /// What was said and is not archived yet, for the edit to rest on.
    pub sources: Vec<QuotedSource>,
    /// For the history; blank: [`DEFAULT_MESSAGE`].
    pub commit_message: Option<String>,
    /// Ids of blocks that are meant to disappear.
    pub removed_blocks: Vec<String>,
}

/// The three forms of an edit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProposedEdit {
    /// A unified diff of topics.
    Patch(String),
    /// Whole topics: path, and content or none if the topic shall go.
    Changes(Vec<(String, Option<String>)>),
    /// Operations on records.
    Records(Vec<ProposedOperation>),
}

/// What was said, word for word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuotedSource {
    /// What the edit calls it: `new-source-` and lower-case letters, digits, hyphens.
    pub label: String,
    /// Whose turn it was: `user`, `assistant`, ….
    pub role: String,
    /// The words.
    pub content: String,
    /// When, as ISO 8601.
    pub observed_at: Option<String>,
}

/// An operation on records.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProposedOperation {
    /// A new one.
    Create {
        /// What it says.
        record: ProposedRecord,
        /// Where.
        destination: ProposedDestination,
    },
    /// A record says something else from now on, and rests on something else.
    Update {
        /// Its id, or that of one merged into it.
        id: String,
        /// What it says.
        record: ProposedRecord,
    },
    /// A record goes.
    Delete {
        /// Its id. Of merged records, only this one goes.
        id: String,
    },
    /// Records stand somewhere else from now on.
    Move {
        /// Their ids, in the order in which they shall stand.
        ids: Vec<String>,
        /// Where.
        destination: ProposedDestination,
    },
}

/// What a record shall say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProposedRecord {
    /// One paragraph.
    pub content: String,
    /// When it was; none: undated.
    pub time: Option<String>,
    /// What it rests on: at least one.
    pub sources: Vec<Reference>,
}

/// A source of a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reference {
    /// A record's id, a turn (`D3:7`) or the name of a quoted source.
    pub source: String,
    /// How the footnote calls it; none: by its id.
    pub label: Option<String>,
}

/// Where records shall stand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProposedDestination {
    /// The topic's path.
    pub topic: String,
    /// The headings above, outermost first; those that are missing are made.
    pub headings: Vec<String>,
    /// Where under the last of them, above the headings below it.
    pub position: Position,
}

/// Where under a heading.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Position {
    /// Before everything.
    Start,
    /// Behind everything.
    End,
    /// Before the record with this id.
    Before(String),
    /// Behind it.
    After(String),
}

/// A request that is as requests have to be. Whether it can be done is not said yet.
#[derive(Clone, Debug)]
pub struct Request {
    pub(super) base_revision: String,
    pub(super) edit: CheckedEdit,
    pub(super) sources: Vec<QuotedSource>,
    pub(super) commit_message: String,
    pub(super) removed: BTreeSet<String>,
}

#[derive(Clone, Debug)]
pub(super) enum CheckedEdit {
    Patch(Patch),
    Changes(Vec<(TopicPath, Option<String>)>),
    Records(Vec<Operation>),
}

/// A checked operation.
#[derive(Clone, Debug)]
pub(super) enum Operation {
    Create { record: NewRecord, destination: Destination },
    Update { id: String, record: NewRecord },
    Delete { id: String },
    Move { ids: Vec<String>, destination: Destination },
}

impl Operation {
    /// The topic that it puts something in.
    pub(super) fn destination(&self) -> Option<&TopicPath> {
        match self {
            Self::Create { destination, .. } | Self::Move { destination, .. } => Some(&destination.topic),
            Self::Update { .. } | Self::Delete { .. } => None,
        }
    }
}

/// A paragraph and what it rests on.
#[derive(Clone, Debug)]
pub(super) struct NewRecord {
    pub(super) content: String,
    pub(super) time: EvidenceTime,
    pub(super) sources: Vec<Reference>,
    /// What the footnote is called that it rests on, until that gets a stable name.
    pub(super) label: String,
}

#[derive(Clone, Debug)]
pub(super) struct Destination {
    pub(super) topic: TopicPath,
    pub(super) headings: Vec<String>,
    pub(super) position: Position,
}

impl Request {
    /// Checks a request.
    ///
    /// # Errors
    /// Every fault of it, in the order in which it says things: revision, message, edit, sources.
    pub fn new(proposal: Proposal, limits: &Limits) -> Result<Self, Vec<Fault>> {
        let mut check = Checker { faults: Vec::new(), records: 0, limits };
        if is_blank(&proposal.base_revision) {
            check.add(Reason::BlankValue, "base_revision");
        }
        let edit = check.edit(proposal.edit);
        let sources = check.sources(proposal.sources);
        for (at, id) in proposal.removed_blocks.iter().enumerate().filter(|(_, id)| is_blank(id)) {
            check.faults.push(Fault::at(Reason::BlankValue, format!("removed_blocks[{at}]")).about(id.as_str()));
        }
        match edit {
            Some(edit) if check.faults.is_empty() => Ok(Self {
                base_revision: proposal.base_revision,
                edit,
                sources,
                commit_message: message(proposal.commit_message.as_deref().unwrap_or_default()),
                removed: proposal.removed_blocks.iter().map(|id| trim(id).to_owned()).collect(),
            }),
            _ => Err(check.faults),
        }
    }

    /// The revision of the workspace that the edit was made for.
    #[must_use]
    pub fn base_revision(&self) -> &str {
        &self.base_revision
    }

    /// What is said of it in the history: one line, printable.
    #[must_use]
    pub fn commit_message(&self) -> &str {
        &self.commit_message
    }

    /// The sources that it quotes.
    #[must_use]
    pub fn sources(&self) -> &[QuotedSource] {
        &self.sources
    }
}

pub(super) fn is_blank(text: &str) -> bool {
    text.chars().all(is_whitespace)
}

pub(super) fn trim(text: &str) -> &str {
    text.trim_matches(is_whitespace)
}

/// One line of printable characters, not too many.
fn message(text: &str) -> String {
    let printable = text.chars().map(|c| if c == '\n' { ' ' } else { c }).filter(|c| is_printable_writing(*c));
    let cut: String = printable.take(MESSAGE_CHARS).collect();
    if is_blank(&cut) { DEFAULT_MESSAGE.to_owned() } else { cut }
}

/// Whether a text is the name of a quoted source.
pub(super) fn is_source_label(text: &str) -> bool {
    text.strip_prefix("new-source-").is_some_and(|rest| {
        !rest.is_empty() && rest.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-'))
    })
}

/// Why a path is no topic's.
pub(super) fn path_reason(error: TopicPathError) -> Reason {
    match error {
        TopicPathError::Outside => Reason::PathOutside,
        TopicPathError::NotATopic => Reason::NotATopic,
    }
}

/// The label of the footnote that a request's record of this number, from 1, rests on.
pub(super) fn record_label(number: usize) -> String {
    format!("new-evidence-record-{number}")
}

struct Checker<'l> {
    faults: Vec<Fault>,
    /// Records met so far.
    records: usize,
    limits: &'l Limits,
}

impl Checker<'_> {
    fn add(&mut self, reason: Reason, field: impl Into<String>) {
        self.faults.push(Fault::at(reason, field));
    }

    fn within(&mut self, reason: Reason, field: &str, limit: &'static str, allowed: u64, asked: u64) -> bool {
        if asked > allowed {
            self.faults.push(Fault::over(reason, field, limit, allowed, asked));
        }
        asked <= allowed
    }

    /// The path of a topic that is to be edited.
    fn path(&mut self, path: &str, field: &str) -> Option<TopicPath> {
        if is_blank(path) {
            self.add(Reason::BlankValue, field);
            return None;
        }
        match TopicPath::parse(path) {
            Ok(path) => Some(path),
            Err(error) => {
                self.faults.push(Fault::of(path_reason(error), path).in_field(field));
                None
            }
        }
    }

    /// None only if there was a fault.
    fn edit(&mut self, edit: ProposedEdit) -> Option<CheckedEdit> {
        match edit {
            ProposedEdit::Patch(text) => self.patch(&text).map(CheckedEdit::Patch),
            ProposedEdit::Changes(changes) => self.changes(changes).map(CheckedEdit::Changes),
            ProposedEdit::Records(operations) => self.operations(operations).map(CheckedEdit::Records),
        }
    }

    fn size(&mut self, field: &str, changes: usize, bytes: u64) -> bool {
        if changes == 0 {
            self.add(Reason::NotOneEdit, field);
        }
        let Limits { changes: changes_max, change_bytes, .. } = *self.limits;
        let few = self.within(Reason::TooManyChanges, field, Limits::CHANGES, changes_max, changes as u64);
        let small = self.within(Reason::ChangesTooLarge, field, Limits::CHANGE_BYTES, change_bytes, bytes);
        changes > 0 && few && small
    }

    fn patch(&mut self, text: &str) -> Option<Patch> {
        if !self.size("patch", usize::from(!is_blank(text)), text.len() as u64) {
            return None;
        }
        match Patch::parse(text) {
            Ok(patch) => {
                let few = self.within(
                    Reason::TooManyChanges,
                    "patch",
                    Limits::CHANGES,
                    self.limits.changes,
                    patch.files().len() as u64,
                );
                few.then_some(patch)
            }
            Err(faults) => {
                self.faults.extend(faults);
                None
            }
        }
    }

    fn changes(&mut self, changes: Vec<(String, Option<String>)>) -> Option<Vec<(TopicPath, Option<String>)>> {
        let bytes = |(path, content): &(String, Option<String>)| {
            path.len() as u64 + content.as_ref().map_or(0, |content| content.len() as u64)
        };
        let fits = self.size("changes", changes.len(), changes.iter().map(bytes).sum());
        let before = self.faults.len();
        let mut seen = BTreeSet::new();
        let mut checked = Vec::with_capacity(changes.len());
        for (at, (path, content)) in changes.into_iter().enumerate() {
            let field = format!("changes[{at}].path");
            let Some(path) = self.path(&path, &field) else { continue };
            if !seen.insert(path.clone()) {
                self.faults.push(Fault::of(Reason::PathGivenTwice, path.as_str()).in_field(field));
            }
            checked.push((path, content));
        }
        (fits && self.faults.len() == before).then_some(checked)
    }

    fn operations(&mut self, operations: Vec<ProposedOperation>) -> Option<Vec<Operation>> {
        let fits = self.size("memory_changes", operations.len(), operations.iter().map(ProposedOperation::bytes).sum());
        let before = self.faults.len();
        let mut checked = Vec::with_capacity(operations.len());
        for (at, operation) in operations.into_iter().enumerate() {
            checked.extend(self.operation(operation, &format!("memory_changes[{at}]")));
        }
        (fits && self.faults.len() == before).then_some(checked)
    }

    fn operation(&mut self, operation: ProposedOperation, field: &str) -> Option<Operation> {
        match operation {
            ProposedOperation::Create { record, destination } => {
                let (record, destination) = (self.record(record, field), self.destination(destination, field));
                Some(Operation::Create { record: record?, destination: destination? })
            }
            ProposedOperation::Update { id, record } => {
                let (id, record) = (self.id(&id, &format!("{field}.memory_id")), self.record(record, field));
                Some(Operation::Update { id: id?, record: record? })
            }
            ProposedOperation::Delete { id } => {
                Some(Operation::Delete { id: self.id(&id, &format!("{field}.memory_id"))? })
            }
            ProposedOperation::Move { ids, destination } => {
                let list = format!("{field}.memory_ids");
                if ids.is_empty() {
                    self.add(Reason::MissingField, &*list);
                }
                let mut seen = BTreeSet::new();
                let mut checked = Vec::with_capacity(ids.len());
                for (at, id) in ids.iter().enumerate() {
                    let place = format!("{list}[{at}]");
                    let Some(id) = self.id(id, &place) else { continue };
                    if !seen.insert(id.clone()) {
                        self.faults.push(Fault::at(Reason::RecordNamedTwice, place).about(&*id));
                    }
                    checked.push(id);
                }
                let destination = self.destination(destination, field)?;
                Some(Operation::Move { ids: checked, destination })
            }
        }
    }

    fn id(&mut self, id: &str, field: &str) -> Option<String> {
        if is_blank(id) {
            self.add(Reason::BlankValue, field);
            return None;
        }
        Some(trim(id).to_owned())
    }

    fn record(&mut self, record: ProposedRecord, field: &str) -> Option<NewRecord> {
        self.records += 1;
        let before = self.faults.len();
        let content = trim(&with_lf(&record.content)).to_owned();
        self.content(&content, &format!("{field}.content"));
        let time = match record.time.as_deref() {
            None => EvidenceTime::Undated,
            Some(written) => EvidenceTime::parse(written).unwrap_or_else(|| {
                self.faults.push(Fault::at(Reason::InvalidTime, format!("{field}.time")).about(written));
                EvidenceTime::Undated
            }),
        };
        if record.sources.is_empty() {
            self.add(Reason::MissingField, format!("{field}.source_refs"));
        }
        let mut seen = BTreeSet::new();
        let mut sources = Vec::with_capacity(record.sources.len());
        for (at, Reference { source, label }) in record.sources.into_iter().enumerate() {
            let place = match label {
                Some(_) => format!("{field}.sources[{at}]"),
                None => format!("{field}.source_refs[{at}]"),
            };
            let source = trim(&source).to_owned();
            if source.is_empty() || label.as_deref().is_some_and(is_blank) {
                self.add(Reason::BlankValue, &*place);
            } else if !seen.insert(source.clone()) {
                self.faults.push(Fault::at(Reason::DuplicateReference, &*place).about(&*source));
            }
            // Neither may end the link that they are to stand in: what would follow is another footnote, or none.
            if label.as_deref().is_some_and(|label| label.contains([']', '\n', '\r'])) {
                let footnote = record_label(self.records);
                self.faults.push(Fault::of_record(FaultCode::UndefinedFootnote, &*place).about(footnote));
            }
            if source.contains([']', '\n', '\r']) {
                self.faults.push(Fault::of_record(FaultCode::UnresolvedSource, place).about(&*source));
            }
            sources.push(Reference { source, label });
        }
        (self.faults.len() == before).then_some(NewRecord { content, time, sources, label: record_label(self.records) })
    }

    /// What a record says is a paragraph without citations and ids.
    fn content(&mut self, content: &str, field: &str) {
        if content.is_empty() {
            self.add(Reason::BlankValue, field);
            return;
        }
        if content.split('\n').any(is_blank) {
            self.add(Reason::ContentWithBlankLine, field);
        }
        if content.split('\n').any(|line| line.starts_with('#')) {
            self.add(Reason::ContentWithHeading, field);
        }
        if cites(content) {
            self.add(Reason::ContentWithCitation, field);
        }
        if content.split('\n').any(ends_with_id) {
            self.add(Reason::ContentWithBlockId, field);
        }
    }

    fn destination(&mut self, destination: ProposedDestination, field: &str) -> Option<Destination> {
        let field = format!("{field}.destination");
        let before = self.faults.len();
        let topic = self.path(&destination.topic, &format!("{field}.topic_path"));
        if destination.headings.len() > LEVELS {
            self.add(Reason::TooManyHeadings, format!("{field}.headings"));
        }
        let mut headings = Vec::with_capacity(destination.headings.len());
        for (at, heading) in destination.headings.iter().enumerate() {
            let place = format!("{field}.headings[{at}]");
            let heading = trim(heading);
            if heading.is_empty() {
                self.add(Reason::BlankValue, place);
            } else if !is_heading(heading) {
                self.faults.push(Fault::at(Reason::InvalidHeading, place).about(heading));
            }
            headings.push(heading.to_owned());
        }
        let position = match destination.position {
            Position::Before(id) => self.id(&id, &format!("{field}.anchor_memory_id")).map(Position::Before),
            Position::After(id) => self.id(&id, &format!("{field}.anchor_memory_id")).map(Position::After),
            position => Some(position),
        };
        (self.faults.len() == before).then_some(())?;
        Some(Destination { topic: topic?, headings, position: position? })
    }

    fn sources(&mut self, sources: Vec<QuotedSource>) -> Vec<QuotedSource> {
        let Limits { sources: sources_max, source_bytes, .. } = *self.limits;
        self.within(Reason::TooManySources, "sources", Limits::SOURCES, sources_max, sources.len() as u64);
        let bytes = sources.iter().map(|source| source.content.len() as u64).sum();
        self.within(Reason::SourcesTooLarge, "sources", Limits::SOURCE_BYTES, source_bytes, bytes);
        let mut seen = BTreeSet::new();
        let mut checked = Vec::with_capacity(sources.len());
        for (at, source) in sources.into_iter().enumerate() {
            let field = |name: &str| format!("sources[{at}].{name}");
            if !is_source_label(&source.label) {
                self.faults.push(Fault::at(Reason::InvalidSourceLabel, field("label")).about(&*source.label));
            } else if !seen.insert(source.label.clone()) {
                self.faults.push(Fault::at(Reason::DuplicateSourceLabel, field("label")).about(&*source.label));
            }
            for (name, text) in [("role", &source.role), ("content", &source.content)] {
                if is_blank(text) {
                    self.add(Reason::BlankValue, field(name));
                }
            }
            let observed_at = match source.observed_at.as_deref() {
                None => None,
                Some(written) => {
                    let canonical = observed_at::canonical(written);
                    if canonical.is_none() {
                        self.faults.push(Fault::at(Reason::InvalidTime, field("observed_at")).about(written));
                    }
                    canonical
                }
            };
            checked.push(QuotedSource { observed_at, ..source });
        }
        checked
    }
}

impl ProposedOperation {
    /// Bytes of all that it says.
    fn bytes(&self) -> u64 {
        let record = |record: &ProposedRecord| {
            let sources = record.sources.iter();
            let sources = sources.map(|one| one.source.len() + one.label.as_ref().map_or(0, String::len));
            record.content.len() + record.time.as_ref().map_or(0, String::len) + sources.sum::<usize>()
        };
        let destination = |destination: &ProposedDestination| {
            destination.topic.len() + destination.headings.iter().map(String::len).sum::<usize>()
        };
        let bytes = match self {
            Self::Create { record: new, destination: to } => record(new) + destination(to),
            Self::Update { id, record: new } => id.len() + record(new),
            Self::Delete { id } => id.len(),
            Self::Move { ids, destination: to } => ids.iter().map(String::len).sum::<usize>() + destination(to),
        };
        bytes as u64
    }
}

/// Whether a text has a citation.
fn cites(text: &str) -> bool {
    // Whatever kind of line it would be, it is looked at as the text of a paragraph.
    Items::new(&format!("x{text}")).any(|item| match item {
        Item::Paragraph(paragraph) => Citations::new(paragraph.text()).next().is_some(),
        Item::Definition(_) => true,
        _ => item.lump().text().as_str().contains("[^") && Citations::new(item.lump().text()).next().is_some(),
    })
}

/// Whether a line ends with white space, `^` and an id.
fn ends_with_id(line: &str) -> bool {
    let line = line.trim_end_matches(is_whitespace);
    line.rfind(is_whitespace).is_some_and(|space| {
        let token = line.get(space..).unwrap_or_default().trim_start_matches(is_whitespace);
        token.strip_prefix('^').is_some_and(BlockId::is_written)
    })
}

/// Whether a text can be the text of a heading.
fn is_heading(text: &str) -> bool {
    let line = format!("# {text}\n");
    let mut items = Items::new(&line);
    matches!(items.next(), Some(Item::Heading(heading)) if heading.text().as_str() == text) && items.next().is_none()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages() {
        assert_eq!(message("  "), DEFAULT_MESSAGE);
        assert_eq!(message("a\nb\u{7}\u{200b}c"), "a bc");
        assert_eq!(message(&"x\ny".repeat(300)).chars().count(), MESSAGE_CHARS);
    }

    #[test]
    fn what_content_must_not_have() {
        for text in ["a [^x] b", "[^e1]: Time: `2026`; Sources: [a](D1:1)", "a\n```\n[^x]", "<!-- [^x] -->", "[^x]"] {
            assert!(cites(text), "{text}");
        }
        for text in ["a", "a [x] ^b", "[^x y]", "[^]", "^x"] {
            assert!(!cites(text), "{text}");
        }
        assert!(ends_with_id("a ^b") && ends_with_id("a\t^b-1  "));
        assert!(!ends_with_id("^b") && !ends_with_id("a ^") && !ends_with_id("a ^b_c") && !ends_with_id("a^b"));
    }

    #[test]
    fn headings() {
        assert!(is_heading("A") && is_heading("# A ##") && is_heading("你好 😀"));
        for text in ["", "a\nb", "a\rb"] {
            assert!(!is_heading(text), "{text:?}");
        }
    }
}
