//! What turns cost: `cargo run --release -p recollex-core --example turn_speed`.
//!
//! Sessions of growing size with a hundredth as many branches as nodes, in two shapes: `comb`, whose branches leave one line at
//! even distances, and `late`, whose branches leave it near its end, so that each has almost all of it. Nothing is marked,
//! which is the worst case: every branch owes everything. Each step should take as long a node whatever the size.

#![allow(clippy::print_stdout, reason = "it prints what it measured")]

use recollex_core::ids::WorkspaceId;
use recollex_core::source::Limits;
use recollex_core::time::Zone;
use recollex_core::turns::{
    Citations, CursorCandidates, Heads, Lineage, Session, SessionReader, TurnLimits, mark_line, mark_node,
};
use std::hint::black_box;
use std::time::Instant;

/// The best of so many rounds counts: the others were disturbed.
const ROUNDS: usize = 5;

/// Nodes of a session.
const SIZES: [usize; 4] = [12_500, 25_000, 50_000, 100_000];

/// A branch for so many nodes.
const NODES_PER_TIP: usize = 100;

#[derive(Clone, Copy, Debug)]
enum Shape {
    Comb,
    Late,
}

/// What each node comes behind: a line, and branches of one node that leave it.
fn parents(shape: Shape, nodes: usize) -> Vec<Option<usize>> {
    let tips = nodes / NODES_PER_TIP;
    let line = nodes - tips;
    let leaf = |number: usize| match shape {
        Shape::Comb => number * (line / tips),
        Shape::Late => line - tips + number,
    };
    (0..line).map(|place| place.checked_sub(1)).chain((0..tips).map(|number| Some(leaf(number)))).collect()
}

/// A node as a program keeps it in a file.
fn node(place: usize, parent: Option<usize>) -> String {
    let parent = parent.map_or_else(|| "null".to_owned(), |parent| format!("\"msg_{parent:08x}\""));
    format!(
        "{{\n  \"id\": \"msg_{place:08x}\",\n  \"created_at\": {}.5,\n  \"seq\": {place},\n  \"role\": \"{}\",\n  \"name\": \"\",\n  \
         \"input\": null,\n  \"output\": \"Turn {place}: the kettle is descaled every second month, and the filter with it; \
         whoever uses the last one orders the next.\",\n  \"caller\": \"\",\n  \"predecessor\": {parent},\n  \"reads\": [],\n  \
         \"metadata\": {{\n    \"speaker_kind\": \"owner\",\n    \"speaker_id\": \"owner/local\",\n    \
         \"speaker_display\": \"Owner\",\n    \"principal_id\": \"owner/install/0123456789abcdef\",\n    \
         \"authority_tier\": \"owner\",\n    \"interaction\": \"interactive\"\n  }}\n}}\n",
        1_700_000_000 + place,
        if place.is_multiple_of(2) { "user" } else { "llm" },
    )
}

fn read(files: &[(String, String)]) -> Session {
    let mut reader = SessionReader::new("openprogram", "local_42", &Zone::utc(), &Limits::default());
    files.iter().for_each(|(name, text)| reader.file(name, text.as_bytes()));
    reader.finish(&Heads::default())
}

/// Seconds of the best round.
fn best<T>(mut work: impl FnMut() -> T) -> f64 {
    let rounds = (0..ROUNDS).map(|_| {
        let start = Instant::now();
        black_box(work());
        start.elapsed().as_secs_f64()
    });
    rounds.fold(f64::INFINITY, f64::min)
}

fn line(name: &str, nodes: usize, seconds: f64) {
    println!("  {name:28} {:9.2} ms  {:7.0} ns a node", seconds * 1e3, seconds / nodes as f64 * 1e9);
}

fn main() {
    let workspace = WorkspaceId::new([1, 2, 3, 4]);
    let limits = TurnLimits::default();
    let tokens = |turn: &recollex_core::turns::Turn<'_>| turn.record.text.len() as u64 / 4;
    for shape in [Shape::Comb, Shape::Late] {
        for nodes in SIZES {
            let files: Vec<(String, String)> = parents(shape, nodes)
                .into_iter()
                .enumerate()
                .map(|(place, parent)| (format!("{place:06}.json"), node(place, parent)))
                .collect();
            let session = read(&files);
            assert!(session.faults().is_empty() && session.nodes().len() == nodes);
            println!("{shape:?}, {nodes} nodes, {} branches", session.branches().len());
            line("read files", nodes, best(|| read(&files)));
            line("owed on all branches", nodes, best(|| session.owed(workspace)));
            let owed = session.owed(workspace);
            assert_eq!(owed.count(), nodes as u64);
            line("cut into batches", nodes, best(|| owed.batches(&limits, tokens).count()));
            let citations: Citations = session.turns().step_by(2).map(|turn| turn.source_id()).collect();
            line("ledger, half cited", nodes, best(|| session.ledger(workspace, &citations, &|_| true).owed()));
            line("lines from the head", nodes, best(|| Lineage::of_session(&session)));
            line("marks of cursors", nodes, best(|| session.migrated(&CursorCandidates::default()).len()));
            let batch = owed.batches(&limits, tokens).next().expect("a batch");
            let ids = batch.nodes();
            let marked: Vec<&(String, String)> = files.iter().take(ids.len()).collect();
            let seconds = best(|| {
                ids.iter()
                    .zip(&marked)
                    .filter_map(|(id, (_, text))| mark_node(text.as_bytes(), id, workspace).ok()?)
                    .count()
            });
            println!("  {:28} {:9.2} ms  for {} nodes in files", "mark one batch", seconds * 1e3, ids.len());
            let seconds = best(|| mark_line(ids.iter().copied(), workspace, true).len());
            println!("  {:28} {:9.2} ms  as one line", "mark one batch", seconds * 1e3);
        }
    }
}
