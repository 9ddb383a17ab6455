//! Updates of topics through the shipped component, against the blocks of the workspace.
//!
//! Topics of 20 blocks; a thousand records that they rest on; a link in every fourth block; a thousand days. The workspace lies on
//! the medium that tests are built on, with every sync.

use std::fs;
use std::path::Path;
use std::time::Duration;

use recollex::Session;
use recollex::lock::{FileLock, Lock as _};
use recollex::store::{About, Area, Change, Directory, Edit, Expect, Store as _, UndoLimits};
use recollex::workspace::{UpdateOptions, Updated};
use recollex_core::ids::{SourceId, TopicPath};
use serde_json::{Value, json};

use crate::line::{Line, Side};
use crate::store::{Done, middle, open, patient_runtime, time, turn};
use crate::{Benchmark, Measured};

/// Sizes of the workspace, in blocks.
const BLOCKS: &[u64] = if cfg!(debug_assertions) { &[200, 400] } else { &[1_000, 10_000, 100_000] };
const TOPIC_BLOCKS: u64 = 20;
const RECORDS: u64 = 1_000;
/// A prime that no number of topics is a multiple of.
const STRIDE: u64 = 797;
/// Rounds of one size, after some that only warm up.
const ROUNDS: usize = 15;
const WARM: usize = 3;
/// Of a call.
const DEADLINE: Duration = Duration::from_secs(600);

/// `n`: blocks of the workspace. Milliseconds of a call that rewords a block (`NAME-reword`), which writes neither
/// `relations.json` nor `runtime.json`, both of which name every block; of one that adds a block (`NAME-create`), which writes
/// both; and of a commit of nothing but those two (`NAME-whole-files`), whose megabytes are `NAME-whole-files-size`. Of a
/// session that begins (`NAME-first`), and of all views made anew (`NAME-repair`), each with what was found out before.
pub const BENCHMARKS: &[Benchmark] = &[("update", update)];

fn update(name: &'static str) -> Measured {
    // All topics being put in order at once takes what it takes.
    let runtime = patient_runtime(DEADLINE)?;
    let mut points: [Vec<(u64, f64)>; 6] = Default::default();
    for &blocks in BLOCKS {
        let directory = tempfile::tempdir()?;
        let root = directory.path();
        let mut session = open(&runtime, root)?;
        session.archive(
            &(0..RECORDS).map(|number| turn("long", usize::try_from(number).unwrap_or_default())).collect::<Vec<_>>(),
        )?;
        let topics = blocks / TOPIC_BLOCKS;
        for topic in 0..topics {
            let path = root.join(path(topic)?.as_str());
            fs::create_dir_all(path.parent().unwrap_or(root))?;
            fs::write(path, text(topic)?)?;
        }
        session.repair(false)?;
        let mut base = session.status()?.revision;

        // From all over the workspace, each topic once and none twice in a row.
        let mut round = 0;
        let mut reword = |session: &mut Session, base: &mut String| {
            round += 1;
            let block = round * STRIDE % topics * TOPIC_BLOCKS + 1;
            let record = json!({"op": "update_record", "memory_id": id(block), "content": format!("Reworded for the {round}th time."),
                "time": day(block), "source_refs": [source(block)?.as_str()]});
            call(session, base, &record, "relations.json", false)
        };
        points[0].push((blocks, middle(ROUNDS, WARM, |_| reword(&mut session, &mut base))?));
        let mut number = 0;
        let mut create = |session: &mut Session, base: &mut String| {
            number += 1;
            let topic = number * STRIDE % topics;
            let destination = json!({"topic_path": path(topic)?.as_str(), "headings": [], "position": "end"});
            let record = json!({"op": "create_record", "content": format!("Added as the {number}th."), "time": day(number),
                "source_refs": [source(number)?.as_str()], "destination": destination});
            call(session, base, &record, "relations.json", true)
        };
        points[1].push((blocks, middle(ROUNDS, WARM, |_| create(&mut session, &mut base))?));

        // A session that knows nothing but the cache.
        let first = middle(ROUNDS.min(5), 1, |_| {
            let mut session = open(&runtime, root)?;
            reword(&mut session, &mut base)
        })?;
        points[2].push((blocks, first));
        points[3].push((blocks, middle(3, 0, |_| time(|| Ok(session.repair(false).map(drop)?)))?));

        let (files, bytes) = whole_files(root)?;
        points[4].push((blocks, middle(ROUNDS, WARM, |round| commit(root, &files, round))?));
        #[allow(clippy::cast_precision_loss, reason = "byte counts are far below 2^52")]
        points[5].push((blocks, bytes as f64 / 1e6));
    }
    let [reword, create, first, repair, files, size] = points;
    let line = |what: &str, unit, side, points| Line::growth(&format!("{name}-{what}"), unit, side, points);
    Ok(vec![
        line("reword", "ms", Side::Wasm, reword),
        line("create", "ms", Side::Wasm, create),
        line("first", "ms", Side::Wasm, first),
        line("repair", "ms", Side::Wasm, repair),
        line("whole-files", "ms", Side::Native, files),
        line("whole-files-size", "MB", Side::Native, size),
    ])
}

/// Milliseconds of one operation, which must be carried out, and must or must not write a file.
fn call(session: &mut Session, base: &mut String, operation: &Value, file: &str, writes: bool) -> Done<f64> {
    let request = json!({"base_revision": base, "memory_changes": [operation]}).to_string();
    let mut updated: Option<Updated> = None;
    let options = UpdateOptions { provenance: None, dry_run: false };
    let figure = time(|| {
        updated = Some(session.update(&request, &options)?);
        Ok(())
    })?;
    let updated = updated.filter(|updated| updated.committed).ok_or("nothing was changed")?;
    if updated.changed_files.iter().any(|path| path == file) != writes {
        return Err(format!("it wrote {:?}", updated.changed_files).into());
    }
    *base = updated.revision;
    Ok(figure)
}

/// A file: where it is, and what it says.
type Content = (Area, &'static str, String);

/// The two files that name every block, and their bytes together.
fn whole_files(root: &Path) -> Done<([Content; 2], usize)> {
    let relations = fs::read_to_string(root.join("relations.json"))?;
    let runtime = fs::read_to_string(root.join(".scriptorium/runtime.json"))?;
    let bytes = relations.len() + runtime.len();
    Ok(([(Area::Tree, "relations.json", relations), (Area::Runtime, "runtime.json", runtime)], bytes))
}

/// Milliseconds of one commit of these files, each a byte longer than before.
fn commit(root: &Path, files: &[(Area, &'static str, String); 2], round: usize) -> Done<f64> {
    let put = |(area, path, text): &(Area, &'static str, String)| Change {
        area: *area,
        path: (*path).to_owned(),
        expect: Expect::Any,
        edit: Edit::Put(format!("{text}{}", " ".repeat(round))),
    };
    let changes: Vec<Change> = files.iter().map(put).collect();
    let store = Directory::new(root).with_undo(UndoLimits::default());
    time(|| {
        let guard = FileLock::new(root).acquire(1_000, "bench")?;
        store.commit(&*guard, store.generation()?, &changes, &About::new("bench", ""))?;
        Ok(())
    })
}

fn id(block: u64) -> String {
    format!("{block:08x}")
}

fn source(block: u64) -> Done<SourceId> {
    Ok(SourceId::parse(&format!("bench/long/m{}", block % RECORDS))?)
}

fn day(block: u64) -> String {
    let day = block % 1_000;
    format!("{}-{:02}-{:02}", 2023 + day / 336, day / 28 % 12 + 1, day % 28 + 1)
}

fn path(topic: u64) -> Done<TopicPath> {
    Ok(TopicPath::parse(&format!("topics/area-{}/topic-{topic}.md", topic % 40))?)
}

/// A topic, in order already.
fn text(topic: u64) -> Done<String> {
    let here = path(topic)?;
    let mut text = format!("# Topic {topic}\n");
    for block in topic * TOPIC_BLOCKS..(topic + 1) * TOPIC_BLOCKS {
        let source = source(block)?;
        let link = match block % 4 {
            0 => {
                format!(", see [that]({}#^{})", here.relative(path(block / 2 / TOPIC_BLOCKS)?.as_str()), id(block / 2))
            }
            _ => String::new(),
        };
        text.push_str(&format!(
            "\nThe plan number {block} was agreed on, after some talk about what it would cost and who pays{link}.\
             [^e-{block:010x}] ^{}\n\n[^e-{block:010x}]: Time: `{}`; Sources: [Ada]({}#{})\n",
            id(block),
            day(block),
            here.relative(&source.v2_path()),
            source.anchor(),
        ));
    }
    Ok(text)
}
