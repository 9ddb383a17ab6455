//! What planning an update costs: `cargo run --release -p recollex-core --example update_speed [BLOCKS] [BLOCKS-IN-A-TOPIC]`.
//!
//! Blocks of about 100 bytes of text, each with a footnote. Views and commits are not counted.

#![allow(clippy::print_stdout, reason = "it prints what it measured")]

use recollex_core::ids::{SourceId, SourceRef, TopicPath};
use recollex_core::source::{self, Tier};
use recollex_core::table::{CommittedTopics, TopicNote, TopicTable};
use recollex_core::topic::Sources;
use recollex_core::topic::edit::{Evidence, Kept};
use recollex_core::update::{Caller, DEFAULT_PROVIDER, Draft, Limits, Request, Workspace};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::Instant;

/// Nothing but turns of one numbered conversation.
struct Turns;

impl Sources for Turns {
    fn record_at(&self, _: &str, _: &str) -> Option<SourceId> {
        None
    }
}

impl Evidence for Turns {
    fn look_up(&self, evidence: &SourceRef) -> Option<Kept> {
        matches!(evidence, SourceRef::Turn(_)).then(|| Kept { path: "sources/D1.md".to_owned(), trusted: true })
    }
}

fn path(topic: usize) -> TopicPath {
    TopicPath::parse(&format!("topics/area-{}/topic-{topic}.md", topic % 40)).expect("a topic")
}

fn text(topic: usize, size: usize) -> String {
    let mut out = format!("# Topic {topic}\n");
    for block in topic * size..(topic + 1) * size {
        out.push_str(&format!(
            "\nThe plan number {block} was agreed on, after some talk about what it would cost and who pays.\
             [^e-{block:010x}] ^{block:08x}\n\n[^e-{block:010x}]: Time: `2026-01-02`; Sources: [Ada](../../sources/D1.md#d1-{block})\n"
        ));
    }
    out
}

fn main() {
    let number = |at: usize, or: usize| std::env::args().nth(at).and_then(|text| text.parse().ok()).unwrap_or(or);
    let (blocks, size): (usize, usize) = (number(1, 100_000), number(2, 20));
    let topics: BTreeMap<TopicPath, String> =
        (0..blocks / size).map(|topic| (path(topic), text(topic, size))).collect();
    println!("{blocks} blocks in {} topics, {} bytes", topics.len(), topics.values().map(String::len).sum::<usize>());
    let mut table = TopicTable::new(&source::Limits::default());
    topics.iter().for_each(|(path, text)| table.apply(&TopicNote::read(path, text, &Turns)));
    let committed = CommittedTopics { table: &table, text: &|path| topics.get(path).map(String::as_str) };
    table.topics_of("the first question sorts the names");

    let here = topics.len() / 2;
    let block = |at: usize| format!("{:08x}", here * size + at);
    let record = |op: &str| json!({"op": op, "content": "Something else was agreed on.", "time": "2026-02", "source_refs": ["D1:7"]});
    let destination = |topic: usize| json!({"topic_path": path(topic).as_str(), "headings": [format!("Topic {topic}")], "position": "end"});
    let mut create = record("create");
    create["destination"] = destination(here);
    let mut update = record("update");
    update["memory_id"] = block(1).into();
    let shift = json!({"op": "move_records", "memory_ids": [block(2)], "destination": destination(0)});
    let hunk = format!(
        "@@ -3 +3 @@\n-{}\n+Reworded.[^e-{1:010x}] ^{1:08x}\n",
        text(here, size).lines().nth(2).unwrap_or_default(),
        here * size
    );
    let patch = format!("--- a/{0}\n+++ b/{0}\n{hunk}", path(here));
    let many = vec![create.clone(); 64];
    let run = |what: &str, edit: Value| {
        let mut fields = edit;
        fields["base_revision"] = "r".into();
        let fields = fields.to_string();
        let mut best = f64::MAX;
        for _ in 0..7 {
            let start = Instant::now();
            let request = Request::from_json(&fields, &Limits::default()).expect("a request");
            let caller = Caller { tier: Some(Tier::Owner), ..Caller::default() };
            let draft = Draft::new(request, caller, DEFAULT_PROVIDER, &source::Limits::default()).expect("a draft");
            let nothing = source::Plan { changes: Vec::new(), branches: Vec::new(), records: Vec::new() };
            let workspace = Workspace { revisions: &["r"], committed: &committed, evidence: &Turns };
            let plan = draft.plan(workspace, nothing).expect("a plan");
            best = best.min(start.elapsed().as_secs_f64() * 1e3);
            assert!(!plan.is_empty());
        }
        println!("{what:<32} {best:>9.3} ms");
    };
    run("a record created", json!({"memory_changes": [create]}));
    run("a record updated", json!({"memory_changes": [update]}));
    run("a record moved", json!({"memory_changes": [shift]}));
    run("a patch of one line", json!({"patch": patch}));
    run("64 records created", json!({"memory_changes": many}));
}
