//! Benchmarks: `bench [NAME…]` prints one JSON line a benchmark.
//!
//! Native and wasm take turns within one run, so that a slow minute of the machine slows both; each figure is the median
//! of its rounds. Use `--release`: the figures of a debug build say nothing, and the line then says so.

use std::error::Error;
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::Instant;

use clap::Parser;
use recollex::types::Tier;
use recollex::workspace::Turn;
use recollex::{OpenOptions, Runtime, RuntimeOptions, Session};
use recollex_test_rows::workload;
use recollex_tests::built;
use recollex_tests::engine::Wasm;
use recollex_tests::turns;
use serde::Serialize;

/// Data that one round of a throughput benchmark goes through.
const DATA_BYTES: usize = 64 << 20;
/// Rounds of a throughput benchmark, natively and in wasm each; the first of each only warms up.
const ROUNDS: usize = 8;
/// Runs of a whole process; the first fills the caches.
const PROCESS_RUNS: usize = 31;
const STATUS_FILES: u32 = 100;
const STATUS_TURNS_PER_FILE: u32 = 20;

/// Measures and prints one JSON line a benchmark: name, n, unit, native, wasm, ratio.
///
/// `n` counts what a round goes through: records, files, components. `native` and `wasm` are in `unit`, null where there
/// is nothing of the kind. `ratio` says how many times longer wasm takes.
#[derive(Parser)]
struct Arguments {
    /// Only benchmarks whose names begin so.
    #[arg(value_name = "NAME")]
    names: Vec<String>,
}

/// One line of output.
#[derive(Debug, Default, Serialize)]
struct Line {
    name: String,
    n: u64,
    unit: &'static str,
    native: Option<f64>,
    wasm: Option<f64>,
    ratio: Option<f64>,
    /// Why there is no figure, or why it should not be trusted.
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<String>,
}

/// A benchmark and how it is measured.
type Benchmark = (&'static str, fn(&'static str) -> Result<Line, Box<dyn Error>>);

const BENCHMARKS: &[Benchmark] = &[
    ("frame-scan-ascii", throughput),
    ("frame-scan-chinese", throughput),
    ("frame-write-ascii", throughput),
    ("frame-write-chinese", throughput),
    ("status-100-files", status),
    ("component-size-memory", |name| size(name, built::memory())),
    ("component-size-verifier", |name| size(name, built::verifier())),
];

fn main() -> ExitCode {
    match run(&Arguments::parse().names) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Nothing is left to do if stderr is gone.
            let _ = writeln!(io::stderr(), "bench: {error}");
            ExitCode::from(2)
        }
    }
}

fn run(names: &[String]) -> Result<(), Box<dyn Error>> {
    let wanted = |benchmark: &str| names.is_empty() || names.iter().any(|name| benchmark.starts_with(name.as_str()));
    let chosen: Vec<&Benchmark> = BENCHMARKS.iter().filter(|(name, _)| wanted(name)).collect();
    if chosen.is_empty() {
        let known: Vec<&str> = BENCHMARKS.iter().map(|(name, _)| *name).collect();
        return Err(format!("no such benchmark; there are: {}", known.join(", ")).into());
    }
    for (name, measure) in chosen {
        let mut line = measure(name).map_err(|error| format!("{name}: {error}"))?;
        if cfg!(debug_assertions) {
            line.note.get_or_insert_with(|| "debug build".to_owned());
        }
        writeln!(io::stdout(), "{}", serde_json::to_string(&line)?)?;
    }
    Ok(())
}

/// Megabytes a second of a workload, natively and in wasm.
fn throughput(name: &'static str) -> Result<Line, Box<dyn Error>> {
    let mut prepared = workload::prepare(name, DATA_BYTES)?;
    let mut engine = Wasm::start()?;
    let inside = engine.prepare(name, DATA_BYTES as u64)?;
    let mut native = Vec::new();
    let mut wasm = Vec::new();
    let mut records = 0;
    for _ in 0..ROUNDS {
        prepared.rewind();
        engine.rewind(inside)?;
        let start = Instant::now();
        let done = prepared.run()?;
        native.push(rate(done.bytes, start));
        records = done.items;

        let start = Instant::now();
        let same = engine.run(inside)?;
        wasm.push(rate(same.bytes, start));
        if (same.bytes, same.items) != (done.bytes, done.items) {
            return Err(format!("native did {done:?}, wasm {same:?}").into());
        }
    }
    let (native, wasm) = (median(native.split_off(1)), median(wasm.split_off(1)));
    Ok(Line {
        name: name.to_owned(),
        n: records,
        unit: "MB/s",
        native: native.map(rounded),
        wasm: wasm.map(rounded),
        ratio: native.zip(wasm).map(|(native, wasm)| rounded(native / wasm)),
        note: None,
    })
}

/// Milliseconds that `recollex status` takes as a process, on a workspace of some files, with everything cached.
fn status(name: &'static str) -> Result<Line, Box<dyn Error>> {
    let line = Line { name: name.to_owned(), n: STATUS_FILES.into(), unit: "ms", ..Line::default() };
    let Some(binary) = release_binary() else {
        let note = "not measured: build it first with cargo build --release --bin recollex".to_owned();
        return Ok(Line { note: Some(note), ..line });
    };
    let directory = tempfile::tempdir()?;
    let workspace = directory.path().join("workspace");
    fill(&workspace)?;
    let mut times = Vec::new();
    for _ in 0..PROCESS_RUNS {
        let start = Instant::now();
        let output = Command::new(&binary)
            .args(["status", "--json", "--workspace"])
            .arg(&workspace)
            .env("XDG_CACHE_HOME", directory.path().join("cache"))
            .env("XDG_CONFIG_HOME", directory.path().join("config"))
            .env("XDG_DATA_HOME", directory.path().join("data"))
            .stdin(Stdio::null())
            .output()?;
        times.push(start.elapsed().as_secs_f64() * 1e3);
        if !output.status.success() {
            return Err(format!("{}: {}", output.status, String::from_utf8_lossy(&output.stderr)).into());
        }
    }
    Ok(Line { wasm: median(times.split_off(1)).map(rounded), ..line })
}

/// The `recollex` beside this program, if this is a release build and it is there.
fn release_binary() -> Option<PathBuf> {
    let binary = std::env::current_exe().ok()?.with_file_name("recollex");
    (!cfg!(debug_assertions) && binary.is_file()).then_some(binary)
}

/// Archives some turns in each of some threads.
fn fill(workspace: &Path) -> Result<(), Box<dyn Error>> {
    fs::create_dir_all(workspace)?;
    let runtime = Runtime::new(RuntimeOptions::default())?;
    let mut session = Session::open(&runtime, workspace, OpenOptions::new(Tier::Owner))?;
    session.init()?;
    let turns: Vec<Turn> = (0..STATUS_FILES)
        .flat_map(|thread| (0..STATUS_TURNS_PER_FILE).map(move |number| turn(thread, number)))
        .collect();
    session.archive(&turns)?;
    Ok(())
}

fn turn(thread: u32, number: u32) -> Turn {
    let text = workload::sentence(u64::from(thread * STATUS_TURNS_PER_FILE + number), false);
    turns::plain("bench", &format!("thread-{thread:03}"), number.into(), &text)
}

/// Bytes of a component as it is shipped.
#[allow(clippy::cast_precision_loss, reason = "sizes are far below 2^52")]
fn size(name: &'static str, path: &Path) -> Result<Line, Box<dyn Error>> {
    let bytes = fs::metadata(path)?.len();
    Ok(Line { name: name.to_owned(), n: 1, unit: "bytes", wasm: Some(bytes as f64), ..Line::default() })
}

#[allow(clippy::cast_precision_loss, reason = "byte counts are far below 2^52")]
fn rate(bytes: u64, start: Instant) -> f64 {
    bytes as f64 / 1e6 / start.elapsed().as_secs_f64()
}

fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}

/// To two decimals: more would be noise.
fn rounded(value: f64) -> f64 {
    (value * 100.0).round() / 100.0
}
