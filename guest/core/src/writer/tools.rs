//! The tools of a writer: their schemas, and what a call of one asks for.
//!
//! Arguments are read strictly, and every mistake is told in words that a model can act on. Must not know what comes of a call.

use super::limits::WriterLimits;
use super::model::{Tool, ToolCall};
use super::outcome::Refusal;
use super::step::{Read, Search};
use crate::ids::TopicPath;
use crate::text::is_whitespace;
use crate::update::{Proposal, ProposedEdit, ProposedOperation};
use serde_json::{Map, Value, json};

const READ: &str = "read_topic";
const SEARCH: &str = "search_topics";
const SUBMIT: &str = "submit_changes";
const FINISH: &str = "finish";

/// Hits of a search, where the model does not say, and at most.
const TOP_K: (u64, u64) = (5, 10);
/// Bytes of a query, of a heading and of an id.
const WORDS_BYTES: usize = 2000;
/// Bytes of a reason that are kept.
const REASON_BYTES: usize = 2000;
/// What an operation on records is called here and in an update, where the two differ.
const MOVE: (&str, &str) = ("move", "move_records");

/// What a call asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Action {
    Read(Read),
    Search(Search),
    Submit { operations: Vec<ProposedOperation>, more: bool },
    Finish { reason: String },
}

/// The tools, for a writer that may do everything or only add.
pub(super) fn tools(may_only_add: bool) -> Vec<Tool> {
    let mut all = vec![
        Tool {
            name: READ,
            description: "Reads a topic, a section of it, or one block. Give either path or block.",
            schema: object(
                json!({
                    "path": text("The topic's path: topics/name.md"),
                    "heading": text("With path: the text of a heading; only the section under it is read"),
                    "block": text("The id of a block"),
                }),
                &[],
            )
            .to_string(),
        },
        Tool {
            name: SEARCH,
            description: "Finds blocks of topics by words. Use it before writing a fact that may be there already.",
            schema: object(
                json!({
                    "query": text("Words that such a block would have"),
                    "top_k": {"type": "integer", "minimum": 1, "maximum": TOP_K.1, "description": "Blocks at most"},
                }),
                &["query"],
            )
            .to_string(),
        },
    ];
    all.extend(last_tools(may_only_add));
    all
}

/// The tools that end a run.
pub(super) fn last_tools(may_only_add: bool) -> Vec<Tool> {
    vec![
        Tool {
            name: SUBMIT,
            description: "Gives changes of memory. All that were given are committed together with the first call that does not say \
                          that more will follow.",
            schema: submit_schema(may_only_add).to_string(),
        },
        Tool {
            name: FINISH,
            description: "Ends the work: commits what was given and not committed yet, or nothing. Call it also if nothing is worth \
                          keeping.",
            schema: object(json!({"reason": text("Why nothing, or nothing more, is to be changed")}), &["reason"])
                .to_string(),
        },
    ]
}

fn text(description: &str) -> Value {
    json!({"type": "string", "description": description})
}

fn object(properties: Value, required: &[&str]) -> Value {
    json!({"type": "object", "properties": properties, "required": required, "additionalProperties": false})
}

fn submit_schema(may_only_add: bool) -> Value {
    let op = |name: &str| json!({"type": "string", "enum": [name]});
    let id = text("The block's id");
    let ids = json!({"type": "array", "items": {"type": "string"}, "minItems": 1});
    let content = text("One paragraph, without citations and ids");
    let time = json!({"type": ["string", "null"], "description": "YYYY, YYYY-MM, YYYY-MM-DD, or null"});
    let sources = json!({"type": "array", "items": {"type": "string"}, "minItems": 1, "description": "ref of each turn it rests on"});
    let destination = object(
        json!({
            "topic_path": text("topics/name.md; it is made if it is not there"),
            "headings": {"type": "array", "items": {"type": "string"}, "maxItems": 6,
                "description": "Outermost first; those that are missing are made"},
            "position": {"type": "string", "enum": ["start", "end", "before", "after"]},
            "anchor_memory_id": text("With before and after: the id of a block under the same headings"),
        }),
        &["topic_path", "headings", "position"],
    );
    let create = object(
        json!({"op": op("create"), "content": content, "time": time, "source_refs": sources, "destination": destination}),
        &["op", "content", "time", "source_refs", "destination"],
    );
    let mut operations = vec![create];
    if !may_only_add {
        operations.push(object(
            json!({"op": op("update"), "memory_id": id, "content": content, "time": time, "source_refs": sources}),
            &["op", "memory_id", "content", "time", "source_refs"],
        ));
        operations.push(object(json!({"op": op("delete"), "memory_id": id}), &["op", "memory_id"]));
        operations.push(object(
            json!({"op": op("move"), "memory_ids": ids, "destination": destination}),
            &["op", "memory_ids", "destination"],
        ));
    }
    object(
        json!({
            "changes": {"type": "array", "minItems": 1, "items": {"anyOf": operations}},
            "more": {"type": "boolean", "description": "true: further calls follow before anything is committed"},
        }),
        &["changes"],
    )
}

/// What a call asks for.
///
/// # Errors
/// What is wrong with it, for the model.
pub(super) fn action(call: &ToolCall, may_only_add: bool, limits: &WriterLimits) -> Result<Action, String> {
    let known = [READ, SEARCH, SUBMIT, FINISH];
    if !known.contains(&call.name.as_str()) {
        return Err(format!("There is no tool of this name. There are {}.", known.join(", ")));
    }
    if call.arguments.len() as u64 > limits.reply_bytes {
        return Err("The arguments are too long. Give less at a time.".to_owned());
    }
    let fields = arguments(&call.arguments)?;
    match call.name.as_str() {
        READ => read(&fields).map(Action::Read),
        SEARCH => search(&fields).map(Action::Search),
        SUBMIT => submit(&fields, may_only_add),
        _ => {
            only(&fields, &["reason"])?;
            let reason = string(&fields, "reason")?.unwrap_or_default();
            let kept = reason.get(..reason.floor_char_boundary(REASON_BYTES)).unwrap_or_default();
            Ok(Action::Finish { reason: kept.to_owned() })
        }
    }
}

/// Arguments as an object. Nothing at all is one without members, as some models spell it.
fn arguments(text: &str) -> Result<Map<String, Value>, String> {
    if text.chars().all(is_whitespace) {
        return Ok(Map::new());
    }
    match serde_json::from_str(text) {
        Ok(Value::Object(fields)) => Ok(fields),
        Ok(_) => Err("The arguments are no JSON object. Give one, as the tool's schema says.".to_owned()),
        Err(error) => Err(format!("The arguments are no JSON: {error}. Give one object, as the tool's schema says.")),
    }
}

/// Whether arguments can go back to a provider, of which some take objects only.
pub(super) fn is_object(arguments: &str) -> bool {
    matches!(serde_json::from_str(arguments), Ok(Value::Object(_)))
}

fn only(fields: &Map<String, Value>, known: &[&str]) -> Result<(), String> {
    match fields.keys().find(|name| !known.contains(&name.as_str())) {
        None => Ok(()),
        Some(name) => {
            let name: String = name.chars().take(64).collect();
            Err(format!("There is no argument {name:?}. There are {}.", known.join(", ")))
        }
    }
}

fn string<'v>(fields: &'v Map<String, Value>, name: &str) -> Result<Option<&'v str>, String> {
    match fields.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(_) => Err(format!("{name} has to be a text.")),
    }
}

/// A text that says something and is not too long.
fn words<'v>(fields: &'v Map<String, Value>, name: &str) -> Result<Option<&'v str>, String> {
    match string(fields, name)? {
        Some(text) if text.chars().all(is_whitespace) => Err(format!("{name} is blank.")),
        Some(text) if text.len() > WORDS_BYTES => Err(format!("{name} is longer than {WORDS_BYTES} bytes.")),
        found => Ok(found),
    }
}

fn read(fields: &Map<String, Value>) -> Result<Read, String> {
    only(fields, &["path", "heading", "block"])?;
    let (path, heading, block) = (words(fields, "path")?, words(fields, "heading")?, words(fields, "block")?);
    match (path, heading, block) {
        (Some(path), heading, None) => match TopicPath::parse(path) {
            Ok(path) => Ok(Read::Topic { path, heading: heading.map(str::to_owned) }),
            Err(_) => Err("Only topics can be read here: path is topics/name.md.".to_owned()),
        },
        (None, None, Some(block)) => Ok(Read::Block(block.trim_start_matches('^').to_owned())),
        _ => Err("Give either path, perhaps with heading, or block.".to_owned()),
    }
}

fn search(fields: &Map<String, Value>) -> Result<Search, String> {
    only(fields, &["query", "top_k"])?;
    let Some(query) = words(fields, "query")? else { return Err("query is missing.".to_owned()) };
    let top_k = match fields.get("top_k") {
        None | Some(Value::Null) => TOP_K.0,
        Some(value) => value
            .as_u64()
            .filter(|top_k| (1..=TOP_K.1).contains(top_k))
            .ok_or_else(|| format!("top_k has to be a whole number from 1 to {}.", TOP_K.1))?,
    };
    Ok(Search { query: query.to_owned(), top_k })
}

fn submit(fields: &Map<String, Value>, may_only_add: bool) -> Result<Action, String> {
    only(fields, &["changes", "more"])?;
    let more = match fields.get("more") {
        None | Some(Value::Null) => false,
        Some(Value::Bool(more)) => *more,
        Some(_) => return Err("more has to be true or false.".to_owned()),
    };
    let changes = match fields.get("changes") {
        Some(Value::Array(changes)) if !changes.is_empty() => changes,
        Some(Value::Array(_)) => return Err("changes is empty. To change nothing, call finish.".to_owned()),
        _ => return Err("changes is missing, or is no list.".to_owned()),
    };
    let changes: Vec<Value> = changes.iter().map(as_in_updates).collect();
    let operations = match Proposal::from_value(&json!({"base_revision": "-", "memory_changes": changes})) {
        Ok(Proposal { edit: ProposedEdit::Records(operations), .. }) => operations,
        Ok(_) => return Err("changes is no list of operations.".to_owned()),
        Err(faults) => {
            let lines: Vec<String> = faults.iter().map(|fault| Refusal::from(fault).to_string()).collect();
            return Err(format!("Nothing of this call is kept. What is wrong with it:\n{}", lines.join("\n")));
        }
    };
    if may_only_add && operations.iter().any(|one| !matches!(one, ProposedOperation::Create { .. })) {
        return Err("Nothing of this call is kept: you may only create blocks.".to_owned());
    }
    Ok(Action::Submit { operations, more })
}

/// An operation as an update spells it.
fn as_in_updates(change: &Value) -> Value {
    let mut change = change.clone();
    if let Some(op) = change.get_mut("op").filter(|op| op.as_str() == Some(MOVE.0)) {
        *op = MOVE.1.into();
    }
    change
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(name: &str, arguments: &str) -> Result<Action, String> {
        let call = ToolCall { id: "1".into(), name: name.into(), arguments: arguments.into() };
        action(&call, false, &WriterLimits::default())
    }

    #[test]
    fn every_schema_is_an_object_that_names_what_it_requires() {
        for tool in tools(false).into_iter().chain(tools(true)) {
            let schema: Value = serde_json::from_str(&tool.schema).expect("JSON");
            assert_eq!(schema["type"], "object");
            for required in schema["required"].as_array().expect("a list") {
                assert!(schema["properties"].get(required.as_str().expect("a text")).is_some(), "{}", tool.name);
            }
        }
        let kinds = |may_only_add| {
            let schema: Value = serde_json::from_str(&last_tools(may_only_add)[0].schema).expect("JSON");
            schema["properties"]["changes"]["items"]["anyOf"].as_array().expect("a list").len()
        };
        assert_eq!((kinds(false), kinds(true)), (4, 1));
    }

    #[test]
    fn what_is_asked_for() {
        let read = call(READ, r#"{"path":"topics/a.md","heading":"A","block":null}"#);
        let path = TopicPath::parse("topics/a.md").expect("a topic");
        assert_eq!(read, Ok(Action::Read(Read::Topic { path, heading: Some("A".into()) })));
        assert_eq!(call(READ, r#"{"block":"^b1"}"#), Ok(Action::Read(Read::Block("b1".into()))));
        assert_eq!(
            call(SEARCH, r#"{"query":"tea"}"#),
            Ok(Action::Search(Search { query: "tea".into(), top_k: TOP_K.0 }))
        );
        assert_eq!(call(FINISH, ""), Ok(Action::Finish { reason: String::new() }));
        let moved = r#"{"changes":[{"op":"move","memory_ids":["b1"],"destination":{"topic_path":"topics/a.md","headings":[],"position":"end"}}],"more":true}"#;
        let Ok(Action::Submit { operations, more: true }) = call(SUBMIT, moved) else { panic!("not read") };
        assert!(matches!(&operations[..], [ProposedOperation::Move { ids, .. }] if *ids == ["b1"]));
    }

    #[test]
    fn mistakes_are_told() {
        for (name, arguments, told) in [
            ("rm", "{}", "There are read_topic"),
            (READ, "{", "no JSON"),
            (READ, "[]", "no JSON object"),
            (READ, r#"{"path":"sources/a.md"}"#, "Only topics"),
            (READ, r#"{"path":"topics/../core.md"}"#, "Only topics"),
            (READ, r#"{"path":"topics/a.md","block":"b"}"#, "either"),
            (READ, "{}", "either"),
            (READ, r#"{"file":"topics/a.md"}"#, "no argument \"file\""),
            (READ, r#"{"path":7}"#, "has to be a text"),
            (SEARCH, r#"{"query":" "}"#, "blank"),
            (SEARCH, "{}", "missing"),
            (SEARCH, r#"{"query":"a","top_k":11}"#, "1 to 10"),
            (SUBMIT, r#"{"changes":[]}"#, "call finish"),
            (SUBMIT, r#"{"changes":{}}"#, "no list"),
            (SUBMIT, r#"{"changes":[{"op":"create"}],"more":1}"#, "true or false"),
            (SUBMIT, r#"{"changes":[{"op":"drop"}]}"#, "unknown-operation: changes[0].op"),
            (SUBMIT, r#"{"changes":[7]}"#, "wrong-type: changes[0]"),
            (SUBMIT, r#"{"changes":[{"op":"delete"}],"path":"x"}"#, "no argument"),
        ] {
            let error = call(name, arguments).expect_err(arguments);
            assert!(error.contains(told), "{arguments}: {error}");
        }
        let long = format!(r#"{{"query":"{}"}}"#, "x".repeat(WORDS_BYTES + 1));
        assert!(call(SEARCH, &long).expect_err("too long").contains("longer"));
        let delete = ToolCall {
            id: "1".into(),
            name: SUBMIT.into(),
            arguments: r#"{"changes":[{"op":"delete","memory_id":"x"}]}"#.into(),
        };
        assert!(action(&delete, true, &WriterLimits::default()).expect_err("adds only").contains("only create"));
    }
}
