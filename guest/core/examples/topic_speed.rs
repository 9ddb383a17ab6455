//! What a topic table costs: `cargo run --release -p recollex-core --example topic_speed [BLOCKS] [BLOCKS-IN-A-TOPIC]`.
//!
//! Blocks of about 120 bytes of text, each with a footnote; a link in every fourth; 1,000 days; so many conversations that
//! each has 200 records.

#![allow(clippy::print_stdout, reason = "it prints what it measured")]

use recollex_core::ids::{SourceId, TopicPath};
use recollex_core::source::Limits;
use recollex_core::table::{Save, TopicNote, TopicTable};
use recollex_core::topic::Sources;
use recollex_core::views::{Derivation, RuntimeState, ViewLimits};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::time::Instant;

/// Every record that is asked for by its own place.
struct Archives(BTreeMap<(String, String), SourceId>);

impl Sources for Archives {
    fn record_at(&self, path: &str, anchor: &str) -> Option<SourceId> {
        self.0.get(&(path.to_owned(), anchor.to_owned())).cloned()
    }
}

fn record(block: usize) -> SourceId {
    SourceId::parse(&format!("openprogram/local_{:08x}/msg_{:012x}", block / 200, block)).expect("an id")
}

fn path(topic: usize) -> TopicPath {
    TopicPath::parse(&format!("topics/area-{}/topic-{topic}.md", topic % 40)).expect("a topic")
}

fn text(topic: usize, size: usize, word: &str) -> String {
    let mut out = format!("# Topic {topic}\n");
    for block in topic * size..(topic + 1) * size {
        let link = if block % 4 == 0 { format!(", see [that](#^{:08x})", block / 2) } else { String::new() };
        let (year, month, day) = (2023 + block % 3, block / 7 % 12 + 1, block / 90 % 28 + 1);
        let id = record(block);
        out.push_str(&format!(
            "\nThe {word} number {block} was agreed on, after some talk about what it would cost and who pays{link}.\
             [^e-{block:010x}] ^{block:08x}\n\n[^e-{block:010x}]: Time: `{year}-{month:02}-{day:02}`; Sources: [Ada]({}#{})\n",
            path(topic).relative(&id.v2_path()),
            id.anchor(),
        ));
    }
    out
}

fn timed<T>(what: &str, act: impl FnOnce() -> T) -> T {
    let start = Instant::now();
    let result = act();
    println!("{what:<44} {:>9.2} ms", start.elapsed().as_secs_f64() * 1e3);
    result
}

fn main() {
    let number = |at: usize, or: usize| std::env::args().nth(at).and_then(|text| text.parse().ok()).unwrap_or(or);
    let (blocks, size): (usize, usize) = (number(1, 100_000), number(2, 20));
    let topics: BTreeMap<TopicPath, String> =
        (0..blocks / size).map(|topic| (path(topic), text(topic, size, "plan"))).collect();
    let places = (0..blocks).map(record).map(|id| ((id.v2_path(), id.anchor()), id));
    let archives = Archives(places.collect());
    let limits = Limits::default();

    println!("{blocks} blocks in {} topics, {} bytes", topics.len(), topics.values().map(String::len).sum::<usize>());
    let mut table = timed("table of all topics", || {
        let mut table = TopicTable::new(&limits);
        topics.iter().for_each(|(path, text)| table.apply(&TopicNote::read(path, text, &archives)));
        table
    });
    let Save::Replace(file) = timed("save", || table.save()) else { panic!("it is written whole") };
    table.saved();
    println!("{:<44} {:>9.1} bytes a block", "file", file.len() as f64 / blocks as f64);
    let mut table = timed("load", || TopicTable::load(file, &limits));
    timed("first question (names are sorted)", || assert_eq!(table.topics_of("00000007").len(), 1));
    timed("100,000 questions", || {
        assert!((0..100_000).all(|block| block >= blocks || table.topics_of(&format!("{block:08x}")).len() == 1));
    });
    let mut state = RuntimeState::default();
    let all = timed("all views", || {
        let derivation = Derivation::whole(&table, &state, ViewLimits::default());
        let mut text = |path: &TopicPath| topics.get(path).map(|text| Cow::Borrowed(text.as_str()));
        derivation.finish(&mut text, &|_| true).expect("all topics are there")
    });
    state.extend_ids(all.created.iter().map(String::as_str));
    let written = timed("runtime.json, written", || state.write());
    timed("runtime.json, read", || RuntimeState::read(&written));

    let edit = |table: &TopicTable, state: &RuntimeState, what: &str, text: &str| {
        timed(what, || {
            let path = path(blocks / size / 2);
            let changed = BTreeMap::from([(path, Some(text))]);
            let derivation = Derivation::of_change(table, changed, &archives, state, ViewLimits::default());
            let needs = derivation.needs().len();
            let mut text = |path: &TopicPath| topics.get(path).map(|text| Cow::Borrowed(text.as_str()));
            let derived = derivation.finish(&mut text, &|_| true).expect("nobody else changes topics");
            let bytes: usize = derived.files.values().flatten().map(String::len).sum();
            println!("  {needs} topics read, {} files, {bytes} bytes", derived.files.len());
            derived
        })
    };
    let topic = blocks / size / 2;
    let old = text(topic, size, "plan");
    let reworded = old.replacen("plan", "scheme", 1);
    let derived = edit(&table, &state, "edit: one block reworded", &reworded);
    derived.notes.iter().for_each(|note| table.apply(note));
    let added = format!("{old}\nNew.[^e-new] ^brand-new\n\n[^e-new]: Time: `2026-01-02`; Sources: [d](D1:2)\n");
    let derived = edit(&table, &state, "edit: a block added", &added);
    derived.notes.iter().for_each(|note| table.apply(note));
    let Save::Append { bytes, .. } = timed("save of two edits", || table.save()) else { panic!("it is added to") };
    println!("  {} bytes added", bytes.len());
}
