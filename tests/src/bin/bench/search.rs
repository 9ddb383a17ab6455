//! Search, natively and through the component, over conversations of different lengths.
//!
//! What is said and asked comes from [`recollex_tests::corpus`]. Natively it is core's index, kept in files of its own;
//! in wasm the shipped component over a real directory, as any program would use it. Each side is asked in processes that
//! take turns and begin with what lies on the medium, and both must find the same.

use std::collections::BTreeMap;
use std::error::Error;
use std::fs::{self, File, OpenOptions as FileOptions};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io::{BufWriter, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use recollex::store::{Directory, UndoLimits};
use recollex::types::Tier;
use recollex::workspace::{Query, Turn};
use recollex::{OpenOptions, Runtime, Session};
use recollex_core::ids::Location;
use recollex_core::search::{
    CATALOG, Document, Index, Limits, Opening, Place, Query as NativeQuery, QueryRequest, Scratch, View, Wanted,
    Weights, Write,
};
use recollex_core::session::Settings;
use recollex_core::source::{Batch, FrameRef, Limits as SourceLimits, NewRecord, Record, Scanner, said};
use recollex_core::table::Stamp;
use recollex_tests::corpus::{Corpus, Message, THREAD};
use serde::{Deserialize, Serialize};

use crate::import::highest;
use crate::line::{Line, median, rounded};
use crate::store::{Done, runtime, time, walk};
use crate::{Benchmark, Measured};

/// Messages.
const SIZES: &[u64] = if cfg!(debug_assertions) { &[1_000, 2_000] } else { &[100_000, 1_000_000] };
/// The environment variables that leave smaller and larger sizes out.
const LEAST: &str = "BENCH_RECORDS_MIN";
const MOST: &str = "BENCH_RECORDS_MAX";
/// The environment variable that names a program which measures others on the same corpus: it is called with the file that
/// [`Corpus::write`] makes, and what it prints is printed.
const PEERS: &str = "BENCH_PEERS";
/// How often each side is asked everything, in a new process each time.
const ROUNDS: usize = 3;
/// Queries of a round; all of them are asked once more before, to warm up.
pub const QUERIES: u64 = if cfg!(debug_assertions) { 50 } else { 1_000 };
/// Turns that are added in each round, one at a time.
const ADDED: u64 = 20;
const HITS: u32 = 10;
/// Messages that are archived at a time.
const BATCH: u64 = 40 * THREAD;
/// A workspace is indexed in several calls if one has not enough time.
const CALLS: usize = 100;

/// Settings that leave nothing but plain BM25, as [`Weights::PLAIN`] has it.
const PLAIN: [(&str, &str); 16] = [
    ("search.weight.session", "0"),
    ("search.weight.before", "0"),
    ("search.weight.after", "0"),
    ("search.weight.decay", "0"),
    ("search.weight.question", "0"),
    ("search.weight.when", "0"),
    ("search.weight.answer", "0"),
    ("search.weight.assistant", "1000"),
    ("search.weight.named", "1000"),
    ("search.weight.inquiry", "1000"),
    ("search.weight.time", "1000"),
    ("search.weight.number", "1000"),
    ("search.weight.standing", "1000"),
    ("search.weight.adjacent", "0"),
    ("search.weight.weak", "1000"),
    ("search.weight.asking", "1000"),
];

/// `n`: messages. Seconds to index all of them (`NAME-build`: natively from records in memory, in wasm from the archives,
/// by the first search of a workspace), the MiB that the index takes as files (`NAME-size`), and those of a process that has
/// answered all queries from them (`NAME-memory`; `NAME-guest` of the component in it). Milliseconds from the start of a
/// process to its first answer (`NAME-first`; the system still has the files in its memory), of a query with all signals
/// (`NAME-full-p50`, `NAME-full-p99`) and of plain BM25 (`NAME-plain-p50`, `NAME-plain-p99`), and until a turn that is
/// added has been found (`NAME-append`; in wasm it is archived, with every sync), and of that the search which finds it
/// (`NAME-found`). `NAME-walk`: the walk over the workspace's files that the first search of the component begins with, and
/// each where the system does not tell what changes.
pub const BENCHMARKS: &[Benchmark] = &[("search", search)];

/// The argument that makes this program a process that searches.
pub const CHILD: &str = "--search-child";

/// What such a process tells.
#[derive(Debug, Deserialize, Serialize)]
struct Told {
    /// Milliseconds to the first answer.
    first: f64,
    full: Times,
    plain: Times,
    /// MiB of the process once all queries were answered.
    memory: f64,
    /// MiB of the component.
    guest: f64,
    /// Milliseconds for a turn, and of those the search that finds it.
    append: f64,
    again: f64,
    /// Of what was found, by query: of all with all signals, then of all by plain BM25.
    found: Vec<u64>,
}

#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
struct Times {
    p50: f64,
    p99: f64,
}

fn search(name: &'static str) -> Measured {
    let of = |name| std::env::var(name).ok().map(|size| size.parse::<u64>()).transpose();
    let asked = of(LEAST)?.unwrap_or(0)..=of(MOST)?.unwrap_or(u64::MAX);
    let mut lines = Vec::new();
    for &size in SIZES.iter().filter(|size| asked.contains(size)) {
        lines.extend(of_size(name, size)?);
    }
    Ok(lines)
}

fn of_size(name: &str, size: u64) -> Measured {
    let corpus = Corpus::new();
    let directory = tempfile::tempdir()?;
    let (native, wasm) = (directory.path().join("native"), directory.path().join("wasm"));
    let native_build = build_native(&corpus, size, &native)?;
    let (wasm_build, calls, build_guest) = build_wasm(&corpus, size, &wasm)?;
    let line = |what: &str, unit, native: Option<f64>, wasm: Option<f64>| Line {
        name: format!("{name}-{what}"),
        n: size,
        unit,
        native: native.map(rounded),
        wasm: wasm.map(rounded),
        ratio: native.zip(wasm).map(|(native, wasm)| rounded(wasm / native)),
        ..Line::default()
    };
    let mut build = line("build", "s", Some(native_build), Some(wasm_build));
    build.note = (calls > 1).then(|| format!("wasm: in {calls} calls"));
    let sizes = [mebibytes(&native)?, mebibytes(&wasm.join(".scriptorium-recollex/search"))?];
    let walked = median((0..5).map(|_| walk_of(&wasm)).collect::<Result<Vec<_>, _>>()?);

    let (mut natively, mut in_wasm) = (Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        let argument = (size, round as u64);
        natively.push(ask("native", &native, argument)?);
        in_wasm.push(ask("wasm", &wasm, argument)?);
        if let (Some(native), Some(wasm)) = (natively.last(), in_wasm.last())
            && let Some(at) = native.found.iter().zip(&wasm.found).position(|(native, wasm)| native != wasm)
        {
            // Those of full queries come first.
            return Err(format!("of {size} messages, native and wasm find others for query {at}").into());
        }
        // Between rounds, so that a slow minute slows all.
        if round == 0 {
            peers(&corpus, size, directory.path())?;
        }
    }
    let both = |what, unit, of: fn(&Told) -> f64| {
        let middle = |told: &[Told]| median(told.iter().map(of).collect());
        line(what, unit, middle(&natively), middle(&in_wasm))
    };
    Ok(vec![
        build,
        line("build-guest", "MiB", None, Some(build_guest)),
        line("size", "MiB", Some(sizes[0]), Some(sizes[1])),
        both("memory", "MiB", |told| told.memory),
        line("guest", "MiB", None, median(in_wasm.iter().map(|told| told.guest).collect())),
        both("first", "ms", |told| told.first),
        both("full-p50", "ms", |told| told.full.p50),
        both("full-p99", "ms", |told| told.full.p99),
        both("plain-p50", "ms", |told| told.plain.p50),
        both("plain-p99", "ms", |told| told.plain.p99),
        both("append", "ms", |told| told.append),
        both("found", "ms", |told| told.again),
        line("walk", "ms", walked, None),
    ])
}

/// Has the others measured, if the caller says who they are.
fn peers(corpus: &Corpus, size: u64, directory: &Path) -> Done<()> {
    let Some(peers) = std::env::var_os(PEERS) else { return Ok(()) };
    let file = directory.join("corpus.jsonl");
    let mut out = BufWriter::new(File::create(&file)?);
    corpus.write(size, QUERIES, &mut out)?;
    out.flush()?;
    let status = Command::new(&peers).arg(&file).status()?;
    if status.success() { Ok(()) } else { Err(format!("{}: {status}", Path::new(&peers).display()).into()) }
}

/// A round in a process of its own.
fn ask(side: &str, root: &Path, (size, round): (u64, u64)) -> Done<Told> {
    let output = Command::new(std::env::current_exe()?)
        .args([CHILD, side])
        .arg(root)
        .args([size.to_string(), round.to_string()])
        .output()?;
    if output.status.success() {
        return Ok(serde_json::from_slice(&output.stdout)?);
    }
    Err(format!("{side}: {}: {}", output.status, String::from_utf8_lossy(&output.stderr)).into())
}

/// Runs as the process: `CHILD native|wasm ROOT SIZE ROUND`.
pub fn child(arguments: &[String]) -> Done<()> {
    let start = Instant::now();
    let [side, root, size, round] = arguments else { return Err("see the head of bench/search.rs".into()) };
    let (root, size, round): (_, u64, u64) = (Path::new(root), size.parse()?, round.parse()?);
    let mut engine: Box<dyn Engine> = match side.as_str() {
        "native" => Box::new(Native::open(root)?),
        "wasm" => Box::new(Wasm::open(root)?),
        _ => return Err("no such side".into()),
    };
    let corpus = Corpus::new();
    // The corpus is none of the process's business: what its words take to make is left out.
    let opened = start.elapsed();
    let queries: Vec<String> = corpus.queries(size, QUERIES).collect();
    let mut first = time(|| engine.search(queries.first().ok_or("no queries")?).map(drop))?;
    first += opened.as_secs_f64() * 1e3;
    let mut found = Vec::new();
    let full = timed(engine.as_mut(), &queries, &mut found)?;
    let (memory, guest) = (highest(std::process::id()).unwrap_or_default(), engine.guest());
    let thread = size / THREAD / 2;
    let (mut added, mut again) = (Vec::new(), Vec::new());
    for number in (0..ADDED).map(|number| round * ADDED + number) {
        let marker = format!("added{number}");
        let message = Message {
            id: marker.clone(),
            ordinal: i64::try_from(THREAD + number)?,
            text: format!("{marker}, {}", corpus.message(size + number).text),
            ..corpus.message(thread * THREAD)
        };
        let mut ids = Vec::new();
        let add = time(|| engine.add(&message))?;
        let search = time(|| {
            ids = engine.search(&marker)?;
            Ok(())
        })?;
        added.push(add + search);
        again.push(search);
        if !ids.first().is_some_and(|id| id.ends_with(&marker)) {
            return Err(format!("{marker} is not found, but {ids:?}").into());
        }
    }
    let (append, again) = (median(added).unwrap_or_default(), median(again).unwrap_or_default());
    engine.be_plain()?;
    let plain = timed(engine.as_mut(), &queries, &mut found)?;
    let told = Told { first, full, plain, memory, guest, append, again, found };
    writeln!(std::io::stdout(), "{}", serde_json::to_string(&told)?)?;
    Ok(())
}

/// Asks everything twice, and times the second. The words of each query were said, so each finds something.
fn timed(engine: &mut dyn Engine, queries: &[String], found: &mut Vec<u64>) -> Done<Times> {
    let mut times = Vec::new();
    for is_warm in [false, true] {
        for query in queries {
            let mut ids = Vec::new();
            let time = time(|| {
                ids = engine.search(query)?;
                Ok(())
            })?;
            if is_warm {
                if ids.is_empty() {
                    return Err(format!("{query} finds nothing").into());
                }
                times.push(time);
                let mut hasher = DefaultHasher::new();
                ids.hash(&mut hasher);
                found.push(hasher.finish());
            }
        }
    }
    times.sort_by(f64::total_cmp);
    let at = |share: usize| times.get(times.len() * share / 100).copied().unwrap_or_default();
    Ok(Times { p50: at(50), p99: at(99) })
}

/// A side.
trait Engine {
    /// Ids of what is found, best first.
    fn search(&mut self, text: &str) -> Done<Vec<String>>;
    /// From now on by plain BM25.
    fn be_plain(&mut self) -> Done<()>;
    /// Adds a message to the end of its thread.
    fn add(&mut self, message: &Message) -> Done<()>;
    /// MiB of a component.
    fn guest(&mut self) -> f64;
}

/// Core's index, in files.
struct Native<'r> {
    root: &'r Path,
    index: Index,
    weights: Weights,
    view: View,
    scratch: Scratch,
}

impl<'r> Native<'r> {
    fn open(root: &'r Path) -> Done<Self> {
        let mut opening = Opening::new(Some(&fs::read(root.join(CATALOG))?), b"");
        while let Some(wanted) = opening.wanted().cloned() {
            opening.supply(read(root, &wanted).ok());
        }
        let (index, weights) = (opening.finish(), Weights::default());
        let view = index.view(&weights, |_| true);
        Ok(Self { root, index, weights, view, scratch: Scratch::default() })
    }
}

impl Engine for Native<'_> {
    fn search(&mut self, text: &str) -> Done<Vec<String>> {
        let limits = Limits { top_k_max: HITS, query_bytes: u64::MAX };
        let query = NativeQuery::parse(&QueryRequest { text, top_k: HITS, ..QueryRequest::default() }, &limits)?;
        if !self.index.is_current(&self.view) {
            self.view = self.index.view(&self.weights, |_| true);
        }
        loop {
            match self.index.search(&query, &self.view, &mut self.scratch) {
                Ok(ranking) => return Ok(ranking.hits.into_iter().map(|hit| hit.id).collect()),
                Err(missing) => {
                    for wanted in self.index.wanted(&missing) {
                        let bytes = read(self.root, &wanted)?;
                        if !self.index.supply(&wanted, Some(&bytes)) {
                            return Err(format!("{} is damaged", wanted.name).into());
                        }
                    }
                }
            }
        }
    }

    fn be_plain(&mut self) -> Done<()> {
        self.weights = Settings::parse(PLAIN)?.weights;
        self.view = self.index.view(&self.weights, |_| true);
        Ok(())
    }

    fn add(&mut self, message: &Message) -> Done<()> {
        index(&mut self.index, vec![record(message.clone())], &message.id)?;
        save(&mut self.index, self.root)
    }

    fn guest(&mut self) -> f64 {
        0.0
    }
}

/// The component over a workspace.
struct Wasm<'r> {
    root: &'r Path,
    runtime: Runtime,
    session: Session,
}

impl<'r> Wasm<'r> {
    fn open(root: &'r Path) -> Done<Self> {
        let runtime = runtime()?;
        let session = Session::open(&runtime, root, OpenOptions::new(Tier::Owner))?;
        Ok(Self { root, runtime, session })
    }
}

impl Engine for Wasm<'_> {
    fn search(&mut self, text: &str) -> Done<Vec<String>> {
        Ok(self.session.search(&Query::new(text, HITS))?.hits.into_iter().map(|hit| hit.id).collect())
    }

    fn be_plain(&mut self) -> Done<()> {
        let options = OpenOptions::new(Tier::Owner);
        let options = PLAIN.iter().fold(options, |options, (name, value)| options.setting(*name, *value));
        self.session = Session::open(&self.runtime, self.root, options)?;
        Ok(())
    }

    fn add(&mut self, message: &Message) -> Done<()> {
        self.session.archive(&[turn(message.clone())])?;
        Ok(())
    }

    fn guest(&mut self) -> f64 {
        as_mebibytes(self.session.memory_bytes().unwrap_or_default())
    }
}

/// Seconds that indexing takes; making the records is left out.
fn build_native(corpus: &Corpus, size: u64, root: &Path) -> Done<f64> {
    fs::create_dir_all(root.join("search"))?;
    let mut built = Index::new();
    let mut seconds = 0.0;
    for batch in batches(size) {
        seconds += index(&mut built, batch.map(|number| record(corpus.message(number))).collect(), "")?;
    }
    built.seal();
    let start = Instant::now();
    save(&mut built, root)?;
    Ok(seconds + start.elapsed().as_secs_f64())
}

/// Adds records, as they are read from the archive that they make, and says how long that took. `version` is what the
/// archives then are.
fn index(index: &mut Index, records: Vec<NewRecord>, version: &str) -> Done<f64> {
    let limits = SourceLimits::default();
    let batch = Batch::check(records, &limits).map_err(|error| format!("{error:?}"))?;
    let plan = batch.compare(BTreeMap::new()).map_err(|problems| format!("{problems:?}"))?.plan();
    let changes = plan.map_err(|range| format!("{range:?}"))?.changes;
    let start = Instant::now();
    for change in changes {
        let mut full = None;
        let mut add = |frame: &FrameRef<'_>| {
            let record = Record::new(&change.path, frame);
            let said = said(frame.record, frame.time, frame.label);
            let document = Document::of_record(&record, said, Place::of_frame(frame, said));
            full = index.add(&change.path, &document).err().or(full);
        };
        let mut scanner = Scanner::new(Some(Location::of_path(&change.path)), &limits).keep_records(usize::MAX);
        scanner.push_text(&change.text, &mut add);
        scanner.finish(&mut add);
        if let Some(full) = full {
            return Err(full.into());
        }
        index.finish(&change.path, &Stamp { size: 0, token: version, racy: false }, false);
    }
    Ok(start.elapsed().as_secs_f64())
}

/// Writes down what is new.
fn save(index: &mut Index, root: &Path) -> Done<()> {
    let writes = loop {
        match index.save() {
            Ok(writes) => break writes,
            Err(missing) => {
                for wanted in index.wanted(&missing) {
                    let bytes = read(root, &wanted)?;
                    index.supply(&wanted, Some(&bytes));
                }
            }
        }
    };
    for write in writes {
        match write {
            Write::Put { name, bytes } => fs::write(root.join(name), bytes)?,
            Write::Append { name, bytes, .. } => {
                FileOptions::new().append(true).create(true).open(root.join(name))?.write_all(&bytes)?;
            }
            // It may never have been written.
            Write::Drop { name } => drop(fs::remove_file(root.join(name))),
        }
    }
    Ok(())
}

/// As many of the bytes as there are.
fn read(root: &Path, wanted: &Wanted) -> Done<Vec<u8>> {
    let mut file = File::open(root.join(&wanted.name))?;
    file.seek(SeekFrom::Start(wanted.range.start))?;
    let mut bytes = Vec::new();
    file.take(wanted.range.end - wanted.range.start).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Seconds of the searches that index a workspace, how many those were, and the MiB of the component then.
fn build_wasm(corpus: &Corpus, size: u64, root: &Path) -> Done<(f64, usize, f64)> {
    fs::create_dir_all(root)?;
    let runtime = runtime()?;
    let mut session = Session::open(&runtime, root, OpenOptions::new(Tier::Owner))?;
    session.init()?;
    for batch in batches(size) {
        session.archive(&batch.map(|number| turn(corpus.message(number))).collect::<Vec<_>>())?;
    }
    let mut session = Session::open(&runtime, root, OpenOptions::new(Tier::Owner))?;
    let start = Instant::now();
    for call in 1..=CALLS {
        match session.search(&Query::new("nothing", HITS)) {
            Ok(_) => {
                let guest = as_mebibytes(session.memory_bytes().unwrap_or_default());
                return Ok((start.elapsed().as_secs_f64(), call, guest));
            }
            // What it has done stays.
            Err(recollex::Error::Limit { .. }) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Err(format!("it is not indexed after {CALLS} calls").into())
}

fn batches(size: u64) -> impl Iterator<Item = std::ops::Range<u64>> {
    (0..size.div_ceil(BATCH)).map(move |batch| batch * BATCH..size.min((batch + 1) * BATCH))
}

fn record(message: Message) -> NewRecord {
    NewRecord {
        provider: "bench".to_owned(),
        thread: message.thread,
        id: message.id,
        ordinal: message.ordinal,
        role: message.role.to_owned(),
        text: message.text,
        time: Some(message.time),
        speaker_display: message.speaker.map(str::to_owned),
        trust: "trusted".to_owned(),
        ..NewRecord::default()
    }
}

fn turn(message: Message) -> Turn {
    Turn {
        ordinal: message.ordinal,
        time: Some(message.time),
        speaker_display: message.speaker.map(str::to_owned),
        trust: "trusted".to_owned(),
        ..Turn::new("bench", message.thread, message.id, message.role, message.text)
    }
}

fn walk_of(root: &Path) -> Done<f64> {
    let store = Directory::new(root).with_undo(UndoLimits::default());
    time(|| walk(&store))
}

/// Of all files of a directory and those below.
fn mebibytes(directory: &Path) -> Result<f64, Box<dyn Error>> {
    fn bytes(directory: &Path) -> std::io::Result<u64> {
        let mut sum = 0;
        for entry in fs::read_dir(directory)? {
            let entry = entry?;
            sum += if entry.file_type()?.is_dir() { bytes(&entry.path())? } else { entry.metadata()?.len() };
        }
        Ok(sum)
    }
    Ok(as_mebibytes(bytes(directory)?))
}

#[allow(clippy::cast_precision_loss, reason = "byte counts are far below 2^52")]
fn as_mebibytes(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_is_plain() {
        assert_eq!(Settings::parse(PLAIN).unwrap().weights, Weights::PLAIN);
    }
}
