//! Rows of `markers.jsonl`: sessions, what is owed on their branches, what writes make of it, and marks made of cursors.
//!
//! The nodes of a row are stored as the observed program stores them, a file a node, and read from there; what is owed must be
//! the same when they are lines of one file. A writer is played: it changes memory, or it is refused.

use std::collections::BTreeMap;

use recollex_core::ids::{Location, WorkspaceId, is_v2_path, label};
use recollex_core::source::{FrameRef, Limits, NewRecord, Scanner};
use recollex_core::time::{Instant, Zone};
use recollex_core::turns::{
    Batch, CursorCandidates, Heads, Node, Session, SessionReader, Turn, TurnLimits, UpkeepLimits, WriterFailure,
    after_batch, has_cursors, leading, mark_line, mark_node, without_cursors,
};
use recollex_core::views::RuntimeState;
use serde_json::{Map, Value, json};

use crate::frames_write::{Files, is_archived};
use crate::{Input, Malformed, Observed, Outcome};

const PROVIDER: &str = "openprogram";
const RUNTIME: &str = ".scriptorium/runtime.json";

/// Rows were observed long after their turns were said.
const NOW: f64 = 1_790_000_000.0;

/// Keys that the observed program keeps in a node's metadata.
const METADATA: &[&str] = &[
    "speaker_kind",
    "speaker_id",
    "speaker_display",
    "principal_id",
    "authority_tier",
    "interaction",
    "authority_schema",
    "display",
    "source",
    "rewound",
];

pub(crate) fn observe(input: &Input<'_>) -> Observed {
    if input.maybe("sessions").is_some() {
        return migrate(input);
    }
    let messages = input.field("messages")?;
    if messages.elements()?.any(|message| message.value().get("content").is_some_and(Value::is_array)) {
        return Ok(Outcome::not_here("the observed program could not store such a message"));
    }
    let Some(id) = input.maybe("session_id") else {
        let files = stored(&messages, &input.field("marks")?)?;
        let files = files.iter().map(|(name, bytes)| Ok((name.clone(), json_of(bytes)?)));
        return Ok(Outcome::Shown(Value::Object(files.collect::<Result<_, Malformed>>()?)));
    };
    let store = Store {
        id: id.text()?.to_owned(),
        nodes: stored(&messages, &input.field("marks")?)?,
        head: input.field("head")?.optional_text()?.map(str::to_owned),
        archived: input
            .field("archived_branches")?
            .elements()?
            .map(|id| Ok(id.text()?.to_owned()))
            .collect::<Result<_, Malformed>>()?,
    };
    let workspace = workspace_of(input)?;
    let threshold = input.field("threshold")?;
    let threshold = u64::try_from(threshold.integer()?).map_err(|error| threshold.fault(error.to_string()))?;
    let limits = TurnLimits { batch_tokens: threshold, ..TurnLimits::default() };

    let session = store.session();
    let lines = in_lines(&store, &messages, &input.field("marks")?)?;
    if owed(&lines, workspace, threshold) != owed(&session, workspace, threshold) {
        return Err(input.fault("as lines of one file something else is owed"));
    }
    let mut shown = owed(&session, workspace, threshold);
    for (name, is_forced) in [("unforced", false), ("force", true)] {
        let write = Write { store: store.clone(), ..Write::new(input)? };
        shown.insert(name.to_owned(), write.run(workspace, &limits, is_forced)?);
    }
    Ok(Outcome::Shown(Value::Object(shown)))
}

fn workspace_of(input: &Input<'_>) -> Result<WorkspaceId, Malformed> {
    let id = input.field("workspace_id")?;
    WorkspaceId::parse(id.text()?).ok_or_else(|| id.fault("no id of a workspace"))
}

fn json_of(bytes: &[u8]) -> Result<Value, Malformed> {
    serde_json::from_slice(bytes).map_err(|error| Malformed::new("a node's file", error.to_string()))
}

/// A session in its store.
#[derive(Clone)]
struct Store {
    id: String,
    nodes: Files,
    head: Option<String>,
    archived: Vec<String>,
}

impl Store {
    fn session(&self) -> Session {
        let mut reader = SessionReader::new(PROVIDER, &self.id, &Zone::utc(), &Limits::default());
        self.nodes.iter().for_each(|(name, bytes)| reader.file(name, bytes));
        self.finish(reader)
    }

    fn finish(&self, reader: SessionReader) -> Session {
        let archived: Vec<&str> = self.archived.iter().map(String::as_str).collect();
        reader.finish(&Heads { current: self.head.as_deref(), archived: &archived })
    }

    /// Marks a node in its file. Everything else of it stays: what JSON says besides the mark is compared.
    fn mark(&mut self, id: &str, workspace: WorkspaceId) -> Result<(), Malformed> {
        let fault = |what: &str| Malformed::new(format!("marking {id}"), what);
        let bytes = self.nodes.iter_mut().find(|(name, _)| name.ends_with(&format!("-{id}.json")));
        let bytes = bytes.map(|(_, bytes)| bytes).ok_or_else(|| fault("no file"))?;
        let splice = mark_node(bytes, id, workspace).map_err(|error| fault(&error.to_string()))?;
        if let Some(splice) = splice {
            *bytes = splice.apply(bytes).ok_or_else(|| fault("the file is another"))?;
        }
        Ok(())
    }
}

/// The nodes of a row in files, as the observed program stores them, and marked.
fn stored(messages: &Input<'_>, marks: &Input<'_>) -> Result<Files, Malformed> {
    let mut store = Store { id: String::new(), nodes: Files::new(), head: None, archived: Vec::new() };
    for (seq, message) in messages.elements()?.enumerate() {
        let (name, node) = node_file(&message, seq)?;
        let text = serde_json::to_string_pretty(&node).unwrap_or_default();
        store.nodes.insert(name, text.into_bytes());
    }
    for (id, workspace) in marks.entries()? {
        let workspace = WorkspaceId::parse(workspace.text()?).ok_or_else(|| workspace.fault("no id of a workspace"))?;
        store.mark(id, workspace)?;
    }
    Ok(store.nodes)
}

/// A node's file: its name and what it holds.
fn node_file(message: &Input<'_>, seq: usize) -> Result<(String, Value), Malformed> {
    let get = |name: &str| message.value().get(name).cloned();
    let id = message.field("id")?.text()?;
    let (letter, role) = match message.field("role")?.text()? {
        "assistant" => ('l', "llm"),
        "tool" => ('c', "code"),
        role => ('u', role),
    };
    let metadata: Map<String, Value> = METADATA.iter().filter_map(|key| Some(((*key).to_owned(), get(key)?))).collect();
    let node = json!({
        "id": id,
        "created_at": get("timestamp"),
        "seq": seq,
        "role": role,
        "name": get("token_model").or_else(|| get("function")).unwrap_or_else(|| "".into()),
        "input": null,
        "output": get("content"),
        "caller": "",
        "predecessor": get("predecessor"),
        "reads": [],
        "metadata": metadata,
    });
    Ok((format!("{seq:04}-{letter}-{id}.json"), node))
}

/// The same session as lines of one file.
fn in_lines(store: &Store, messages: &Input<'_>, marks: &Input<'_>) -> Result<Session, Malformed> {
    let mut reader = SessionReader::new(PROVIDER, &store.id, &Zone::utc(), &Limits::default());
    let mut text = String::new();
    for message in messages.elements()? {
        text.push_str(&format!("{}\n", message.value()));
    }
    for (id, workspace) in marks.entries()? {
        let workspace = WorkspaceId::parse(workspace.text()?).ok_or_else(|| workspace.fault("no id of a workspace"))?;
        text.push_str(&mark_line([id], workspace, true));
    }
    text.as_bytes().chunks(7).for_each(|piece| reader.lines(piece));
    Ok(store.finish(reader))
}

fn characters(turn: &Turn<'_>) -> u64 {
    turn.record.text.chars().count() as u64
}

fn ids(turns: &[Turn<'_>]) -> Vec<String> {
    turns.iter().map(|turn| turn.node.id.clone()).collect()
}

/// Branches, their records, and what is owed on each and on all.
fn owed(session: &Session, workspace: WorkspaceId, threshold: u64) -> Map<String, Value> {
    let (mut branches, mut records, mut pending) = (Vec::new(), Map::new(), Map::new());
    for &branch in session.branches() {
        let Some(tip) = session.tip(branch).map(|tip| tip.id.clone()) else { continue };
        let rows = session.rows(branch);
        branches.push(json!([tip, rows.iter().map(|row| &row.id).collect::<Vec<_>>()]));
        let turns = rows.into_iter().filter_map(|row| Some((row, row.turn.as_deref().ok()?)));
        records.insert(tip.clone(), turns.map(|(row, record)| shown_record(row, record)).collect());
        let owed = session.owed_on(branch, workspace);
        let (count, _) = leading(owed.iter().map(characters), threshold);
        pending.insert(tip, json!({"pending": ids(&owed), "first_batch": ids(&owed[..count])}));
    }
    let count = session.owed(workspace).count();
    let all = [
        ("branches", branches.into()),
        ("records", records.into()),
        ("pending", pending.into()),
        ("pending_turn_count", count.into()),
    ];
    all.into_iter().map(|(name, value): (&str, Value)| (name.to_owned(), value)).collect()
}

fn shown_record(row: &Node, record: &NewRecord) -> Value {
    let text = |part: &Option<String>| part.clone().unwrap_or_default();
    let or_unknown = |part: &Option<String>| part.clone().unwrap_or_else(|| "unknown".to_owned());
    json!({
        "provider": record.provider,
        "thread_id": record.thread,
        "message_id": row.id,
        "ordinal": record.ordinal,
        "role": record.role,
        "content": record.text,
        "timestamp": record.time,
        "speaker_id": record.speaker_id,
        "speaker_display": record.speaker_display,
        "speaker_kind": or_unknown(&record.speaker_kind),
        "principal_id": or_unknown(&record.principal),
        "authority_tier": record.tier,
        "trust_state": record.trust,
        "source_id": Turn { node: row, record }.source_id(),
        "speaker_label": label(&text(&record.speaker_display), &text(&record.speaker_id), &record.role),
    })
}

/// A write of a session by a writer that is played.
struct Write {
    store: Store,
    files: Files,
    runtime: Option<RuntimeState>,
    is_refused: bool,
    calls: Vec<Value>,
    upkeep: usize,
}

impl Write {
    fn new(input: &Input<'_>) -> Result<Self, Malformed> {
        let runtime = input.field("runtime")?;
        let runtime = if runtime.value().is_null() { None } else { Some(runtime.value().to_string()) };
        let writer = input.field("writer")?;
        Ok(Self {
            store: Store { id: String::new(), nodes: Files::new(), head: None, archived: Vec::new() },
            files: Files::new(),
            runtime: runtime.map(|text| RuntimeState::read(&text)),
            is_refused: match writer.text()? {
                "ok" => false,
                "reject" => true,
                _ => return Err(writer.fault("no such writer")),
            },
            calls: Vec::new(),
            upkeep: 0,
        })
    }

    fn run(mut self, workspace: WorkspaceId, limits: &TurnLimits, is_forced: bool) -> Result<Value, Malformed> {
        let now = Instant::from_seconds(NOW).ok_or_else(|| Malformed::new("now", "no instant"))?;
        let session = self.store.session();
        let owed = session.owed(workspace);
        let batches: Vec<Batch<'_>> = if is_forced {
            owed.batches(limits, characters).collect()
        } else {
            owed.unforced(limits, now, characters).into_iter().collect()
        };
        let mut result = Value::Null;
        for batch in &batches {
            if !is_archived(batch.records(), &mut self.files) {
                return Err(Malformed::new("a batch", "its records were refused"));
            }
            self.calls.push(call(batch));
            if self.is_refused {
                let failure = WriterFailure::of_transaction("COMMIT_REJECTED");
                result = json!({"raised": {"code": failure.code.as_str()}});
                break;
            }
            for id in batch.nodes() {
                self.store.mark(id, workspace)?;
            }
            let state = self.runtime.get_or_insert_default();
            self.upkeep += after_batch(state, batch.tokens, now, &UpkeepLimits::default()).len();
        }
        Ok(self.shown(result, workspace))
    }

    fn shown(&self, result: Value, workspace: WorkspaceId) -> Value {
        let (mut marked, mut foreign) = (Vec::new(), Map::new());
        for node in self.store.session().nodes() {
            for mark in &node.marks {
                if *mark == workspace.to_string() {
                    marked.push(node.id.clone());
                } else {
                    foreign.insert(node.id.clone(), mark.as_str().into());
                }
            }
        }
        marked.sort();
        // What lies beside archives the observed program does not know.
        let archives = self.files.iter().filter(|(path, _)| is_v2_path(path));
        let archives: Map<String, Value> =
            archives.map(|(path, bytes)| (path.clone(), String::from_utf8_lossy(bytes).into())).collect();
        let runtime = self.runtime.as_ref().map(|state| {
            let mut runtime: Value = serde_json::from_str(&state.write()).unwrap_or_default();
            if let Some(time) = runtime.get_mut("last_global_at").filter(|time| time.is_string()) {
                *time = "<now>".into();
            }
            runtime
        });
        json!({
            "result": result,
            "calls": self.calls,
            "organize_calls": self.upkeep,
            "marked_after": marked,
            "foreign_marks": foreign,
            "runtime": runtime,
            "archived": archives,
        })
    }
}

/// What the writer is called with, as it reads it.
fn call(batch: &Batch<'_>) -> Value {
    let text = batch.text();
    let observed: Vec<&str> = text.lines().filter(|line| line.starts_with("## Observed ")).collect();
    let turns = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let refs: Vec<Value> = turns.filter_map(|turn| turn.get("ref").cloned()).collect();
    json!({"stage": "write", "refs": refs, "observed": observed, "allowed": batch.source_ids()})
}

/// Marks made of cursors.
fn migrate(input: &Input<'_>) -> Observed {
    let workspace = workspace_of(input)?;
    let mut files: BTreeMap<&str, Vec<u8>> = BTreeMap::new();
    for (path, content) in input.field("files")?.entries()? {
        files.insert(path, content.bytes()?);
    }
    let runtime = files.get(RUNTIME).map(|bytes| String::from_utf8_lossy(bytes).into_owned());
    let is_needed = runtime.as_deref().is_some_and(has_cursors);
    let candidates = if is_needed { candidates(&files) } else { CursorCandidates::default() };
    let (mut marked, mut pending) = (Map::new(), Map::new());
    for (id, messages) in input.field("sessions")?.entries()? {
        let mut store = Store {
            id: id.to_owned(),
            nodes: stored(&messages, &Input::new(&json!({})))?,
            head: input.field("heads")?.maybe(id).map(|head| head.text().map(str::to_owned)).transpose()?,
            archived: Vec::new(),
        };
        let session = store.session();
        for node in session.migrated(&candidates) {
            store.mark(node, workspace)?;
        }
        let session = store.session();
        let is_marked = |node: &&Node| node.marks.contains(&workspace.to_string());
        marked.insert(id.to_owned(), session.nodes().iter().filter(is_marked).map(|node| node.id.as_str()).collect());
        let owed: Map<String, Value> = session
            .branches()
            .iter()
            .filter_map(|branch| {
                let tip = session.tip(*branch)?.id.clone();
                Some((tip, ids(&session.owed_on(*branch, workspace)).into()))
            })
            .collect();
        pending.insert(id.to_owned(), owed.into());
    }
    let after = if is_needed { runtime.as_deref().map(without_cursors) } else { runtime };
    Ok(Outcome::Shown(json!({
        "migrated": is_needed,
        "marked": marked,
        "pending": pending,
        "runtime_after": after,
        "second_call": after.as_deref().is_some_and(has_cursors),
    })))
}

fn candidates(files: &BTreeMap<&str, Vec<u8>>) -> CursorCandidates {
    let mut candidates = CursorCandidates::default();
    for (path, bytes) in files.iter().filter(|(path, _)| path.starts_with("sources/")) {
        if is_v2_path(path) {
            let mut scanner = Scanner::new(Some(Location::of_path(path)), &Limits::default());
            let mut see = |frame: &FrameRef<'_>| candidates.see_frame(frame);
            scanner.push_bytes(bytes, &mut see);
            scanner.finish(&mut see);
        } else {
            candidates.see_older(path, bytes.get(..CursorCandidates::OLDER_BYTES).unwrap_or(bytes));
        }
    }
    candidates
}
