//! Reads a request from JSON: which fields there are, and of what kind their values have to be.
//!
//! ```text
//! {"base_revision": "r1-…", "changes": [{"path": "topics/a.md", "action": "write", "content": "# A\n\n…"}]}
//! ```
//!
//! `null` stands for a field that is not there, except for a record's time, which has to be said: there it is no time.

use super::fault::{Fault, Reason};
use super::limits::Limits;
use super::request::{
    Position, Proposal, ProposedDestination, ProposedEdit, ProposedOperation, ProposedRecord, QuotedSource, Reference,
    Request,
};
use serde_json::{Map, Value};

const PATCH: &str = "patch";
const CHANGES: &str = "changes";
const RECORDS: &str = "memory_changes";

impl Request {
    /// Reads a request and checks it.
    ///
    /// # Errors
    /// Every fault: of its shape or, if that is as it has to be, of what it says.
    pub fn from_json(text: &str, limits: &Limits) -> Result<Self, Vec<Fault>> {
        Self::new(Proposal::from_json(text)?, limits)
    }
}

impl Proposal {
    /// Reads a request. What it says is not checked.
    ///
    /// # Errors
    /// Every fault of its shape.
    pub fn from_json(text: &str) -> Result<Self, Vec<Fault>> {
        let value: Value = serde_json::from_str(text).map_err(|error| {
            let fault = Fault::new(Reason::MalformedRequest).in_line(error.line()).about(error.to_string());
            vec![Fault { column: Some(error.column() as u64), ..fault }]
        })?;
        Self::from_value(&value)
    }

    /// The same of a value.
    ///
    /// # Errors
    /// Every fault of its shape.
    pub fn from_value(value: &Value) -> Result<Self, Vec<Fault>> {
        let Value::Object(fields) = value else { return Err(vec![Fault::new(Reason::MalformedRequest)]) };
        let mut reader = Reader { faults: Vec::new() };
        match reader.request(&Fields { at: String::new(), fields }) {
            Some(proposal) if reader.faults.is_empty() => Ok(proposal),
            _ => Err(reader.faults),
        }
    }
}

/// The fields of an object, and where in the request it stands.
struct Fields<'v> {
    at: String,
    fields: &'v Map<String, Value>,
}

impl<'v> Fields<'v> {
    /// Where a field of this name stands.
    fn place(&self, name: &str) -> String {
        if self.at.is_empty() { name.to_owned() } else { format!("{}.{name}", self.at) }
    }

    /// What it says, unless that is nothing.
    fn get(&self, name: &str) -> Option<&'v Value> {
        self.fields.get(name).filter(|value| !value.is_null())
    }

    fn has(&self, name: &str) -> bool {
        self.get(name).is_some()
    }
}

/// Collects faults. What gives none has told at least one.
struct Reader {
    faults: Vec<Fault>,
}

impl Reader {
    fn add(&mut self, reason: Reason, field: impl Into<String>) {
        self.faults.push(Fault::at(reason, field));
    }

    fn wrong(&mut self, field: impl Into<String>, expected: &str) {
        let fault = Fault::at(Reason::WrongType, field);
        self.faults
            .push(Fault { message: format!("{}: {expected} is wanted here", Reason::WrongType.what()), ..fault });
    }

    /// Tells of every field that is none of these.
    fn only(&mut self, fields: &Fields<'_>, known: &[&str]) {
        for name in fields.fields.keys().filter(|name| !known.contains(&name.as_str())) {
            self.faults.push(Fault::at(Reason::UnknownField, fields.place(name)).about(name.as_str()));
        }
    }

    fn optional_text(&mut self, fields: &Fields<'_>, name: &str) -> Option<String> {
        match fields.get(name)? {
            Value::String(text) => Some(text.clone()),
            _ => {
                self.wrong(fields.place(name), "a text");
                None
            }
        }
    }

    fn text(&mut self, fields: &Fields<'_>, name: &str) -> Option<String> {
        if !fields.has(name) {
            self.add(Reason::MissingField, fields.place(name));
        }
        self.optional_text(fields, name)
    }

    fn optional_list<'v>(&mut self, fields: &Fields<'v>, name: &str) -> Option<&'v [Value]> {
        match fields.get(name)? {
            Value::Array(values) => Some(values),
            _ => {
                self.wrong(fields.place(name), "a list");
                None
            }
        }
    }

    fn list<'v>(&mut self, fields: &Fields<'v>, name: &str) -> Option<&'v [Value]> {
        if !fields.has(name) {
            self.add(Reason::MissingField, fields.place(name));
        }
        self.optional_list(fields, name)
    }

    fn texts(&mut self, values: &[Value], at: &str) -> Vec<String> {
        let mut texts = Vec::with_capacity(values.len());
        for (number, value) in values.iter().enumerate() {
            match value {
                Value::String(text) => texts.push(text.clone()),
                _ => self.wrong(format!("{at}[{number}]"), "a text"),
            }
        }
        texts
    }

    fn objects<'v>(&mut self, values: &'v [Value], at: &str) -> Vec<Fields<'v>> {
        let mut objects = Vec::with_capacity(values.len());
        for (number, value) in values.iter().enumerate() {
            let at = format!("{at}[{number}]");
            match value {
                Value::Object(fields) => objects.push(Fields { at, fields }),
                _ => self.wrong(at, "an object"),
            }
        }
        objects
    }

    fn request(&mut self, fields: &Fields<'_>) -> Option<Proposal> {
        let base_revision = self.text(fields, "base_revision");
        let commit_message = self.optional_text(fields, "commit_message");
        let edit = self.edit(fields);
        let sources = self.optional_list(fields, "sources").unwrap_or_default();
        let sources = self.objects(sources, "sources");
        let sources = sources.iter().filter_map(|source| self.source(source)).collect();
        let removed = self.optional_list(fields, "removed_blocks").unwrap_or_default();
        let removed_blocks = self.texts(removed, "removed_blocks");
        let known = ["base_revision", PATCH, CHANGES, RECORDS, "sources", "commit_message", "removed_blocks"];
        self.only(fields, &known);
        Some(Proposal { base_revision: base_revision?, edit: edit?, sources, commit_message, removed_blocks })
    }

    fn edit(&mut self, fields: &Fields<'_>) -> Option<ProposedEdit> {
        let forms: Vec<&str> = [PATCH, CHANGES, RECORDS].into_iter().filter(|name| fields.has(name)).collect();
        match forms[..] {
            [PATCH] => self.text(fields, PATCH).map(ProposedEdit::Patch),
            [CHANGES] => {
                let values = self.list(fields, CHANGES)?;
                let changes = self.objects(values, CHANGES);
                Some(ProposedEdit::Changes(changes.iter().filter_map(|change| self.change(change)).collect()))
            }
            [RECORDS] => {
                let values = self.list(fields, RECORDS)?;
                let operations = self.objects(values, RECORDS);
                Some(ProposedEdit::Records(operations.iter().filter_map(|one| self.operation(one)).collect()))
            }
            _ => {
                self.faults.push(Fault::new(Reason::NotOneEdit).about(forms.join(", ")));
                None
            }
        }
    }

    fn change(&mut self, fields: &Fields<'_>) -> Option<(String, Option<String>)> {
        self.only(fields, &["path", "action", "content"]);
        let path = self.text(fields, "path");
        let action = self.text(fields, "action")?;
        let content = match action.as_str() {
            "write" => Some(self.text(fields, "content")?),
            "delete" => {
                if fields.has("content") {
                    self.add(Reason::ContentWithDelete, fields.place("content"));
                }
                None
            }
            _ => {
                self.faults.push(Fault::at(Reason::UnknownAction, fields.place("action")).about(action));
                return None;
            }
        };
        Some((path?, content))
    }

    fn source(&mut self, fields: &Fields<'_>) -> Option<QuotedSource> {
        self.only(fields, &["label", "role", "content", "observed_at"]);
        let (label, role) = (self.text(fields, "label"), self.text(fields, "role"));
        let content = self.text(fields, "content");
        let observed_at = self.optional_text(fields, "observed_at");
        Some(QuotedSource { label: label?, role: role?, content: content?, observed_at })
    }

    fn operation(&mut self, fields: &Fields<'_>) -> Option<ProposedOperation> {
        const RECORD: [&str; 5] = ["op", "content", "time", "source_refs", "sources"];
        let op = self.text(fields, "op")?;
        match op.as_str() {
            "create_record" | "create" => {
                let mut known = RECORD.to_vec();
                // The headings may stand beside the record, in the place of a destination.
                let destination = if fields.has("topic_path") && !fields.has("destination") {
                    known.extend(["topic_path", "headings"]);
                    let topic = self.text(fields, "topic_path");
                    let headings = self.list(fields, "headings").unwrap_or_default();
                    let headings = self.texts(headings, &fields.place("headings"));
                    topic.map(|topic| ProposedDestination { topic, headings, position: Position::End })
                } else {
                    known.push("destination");
                    self.destination(fields)
                };
                self.only(fields, &known);
                let record = self.record(fields);
                Some(ProposedOperation::Create { record: record?, destination: destination? })
            }
            "update_record" | "update" => {
                let mut known = RECORD.to_vec();
                known.push("memory_id");
                self.only(fields, &known);
                let (id, record) = (self.text(fields, "memory_id"), self.record(fields));
                Some(ProposedOperation::Update { id: id?, record: record? })
            }
            "delete_record" | "delete" => {
                self.only(fields, &["op", "memory_id"]);
                Some(ProposedOperation::Delete { id: self.text(fields, "memory_id")? })
            }
            "move_records" => {
                self.only(fields, &["op", "memory_ids", "destination"]);
                let ids = self.list(fields, "memory_ids");
                let ids = ids.map(|ids| self.texts(ids, &fields.place("memory_ids")));
                let destination = self.destination(fields);
                Some(ProposedOperation::Move { ids: ids?, destination: destination? })
            }
            _ => {
                self.faults.push(Fault::at(Reason::UnknownOperation, fields.place("op")).about(op));
                None
            }
        }
    }

    fn record(&mut self, fields: &Fields<'_>) -> Option<ProposedRecord> {
        let content = self.text(fields, "content");
        if !fields.fields.contains_key("time") {
            self.add(Reason::MissingField, fields.place("time"));
        }
        let time = self.optional_text(fields, "time");
        let sources = match (fields.has("source_refs"), fields.has("sources")) {
            (true, true) => {
                self.add(Reason::DuplicateReference, fields.place("sources"));
                None
            }
            (false, true) => {
                let values = self.list(fields, "sources")?;
                let objects = self.objects(values, &fields.place("sources"));
                Some(objects.iter().filter_map(|object| self.reference(object)).collect())
            }
            _ => self.list(fields, "source_refs").map(|values| {
                let names = self.texts(values, &fields.place("source_refs"));
                names.into_iter().map(|source| Reference { source, label: None }).collect()
            }),
        };
        Some(ProposedRecord { content: content?, time, sources: sources? })
    }

    fn reference(&mut self, fields: &Fields<'_>) -> Option<Reference> {
        self.only(fields, &["source", "label"]);
        let (source, label) = (self.text(fields, "source"), self.text(fields, "label"));
        Some(Reference { source: source?, label: Some(label?) })
    }

    fn destination(&mut self, fields: &Fields<'_>) -> Option<ProposedDestination> {
        let place = fields.place("destination");
        let fields = match fields.get("destination") {
            Some(Value::Object(inner)) => Fields { at: place, fields: inner },
            Some(_) => {
                self.wrong(place, "an object");
                return None;
            }
            None => {
                self.add(Reason::MissingField, place);
                return None;
            }
        };
        self.only(&fields, &["topic_path", "headings", "position", "anchor_memory_id"]);
        let topic = self.text(&fields, "topic_path");
        let headings = self.list(&fields, "headings");
        let headings = headings.map(|headings| self.texts(headings, &fields.place("headings")));
        let position = self.text(&fields, "position");
        let anchor = self.optional_text(&fields, "anchor_memory_id");
        let position = match (position?.as_str(), anchor) {
            ("start", None) => Position::Start,
            ("end", None) => Position::End,
            ("before", Some(id)) => Position::Before(id),
            ("after", Some(id)) => Position::After(id),
            (position, _) => {
                self.faults.push(Fault::at(Reason::InvalidPosition, fields.place("position")).about(position));
                return None;
            }
        };
        Some(ProposedDestination { topic: topic?, headings: headings?, position })
    }
}
