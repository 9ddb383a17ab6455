//! Taking in exports with the command as a process: how fast, and with how much memory, against the size of the export.
//!
//! The exports are generated ([`recollex_tests::exports`]) and lie on the medium that tests are built on, as does the
//! workspace, so every commit is synced there. What was taken in is counted: an import that left something out is an error
//! and no figure.

use std::error::Error;
use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use recollex_tests::exports::{self, Format, Made};
use serde_json::Value;

use crate::line::{Line, Side};
use crate::shipped::release_binary;
use crate::{Benchmark, Measured};

/// Bytes of the exports.
const SIZES: [u64; 3] = [10_000_000, 100_000_000, 1_000_000_000];
/// The environment variable that leaves larger exports out.
const MOST: &str = "BENCH_BYTES_MAX";
/// A file for each message: a gigabyte would be hundreds of thousands of them.
const SIZES_OF_NODES: [u64; 2] = [10_000_000, 100_000_000];
/// How often the memory of the process is looked at. What counts is its highest state, which the system keeps.
const LOOK: Duration = Duration::from_millis(10);
const SEED: u64 = 4;

/// `n`: bytes of the export. Each gives `NAME` (megabytes of export a second into an empty workspace), `NAME-again` (the
/// same once more, when all of it is there), `NAME-memory` (the process at its highest, in MiB, over both) and
/// `NAME-guest` (the component's linear memory, in MiB, over both).
pub const BENCHMARKS: &[Benchmark] = &[
    ("import-chatgpt", |name| import(name, Format::ChatGpt, &SIZES)),
    ("import-claude", |name| import(name, Format::Claude, &SIZES)),
    ("import-code", |name| import(name, Format::ClaudeCode, &SIZES)),
    ("import-jsonl", |name| import(name, Format::Jsonl, &SIZES)),
    ("import-openprogram", |name| import(name, Format::OpenProgram, &SIZES_OF_NODES)),
];

fn import(name: &'static str, format: Format, sizes: &[u64]) -> Measured {
    let Some(binary) = release_binary() else {
        let note = "not measured: build it first with cargo build --release --bin recollex".to_owned();
        return Ok(vec![Line { name: name.to_owned(), unit: "MB/s", note: Some(note), ..Line::default() }]);
    };
    let (mut first, mut again, mut memory, mut guest) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let most = std::env::var(MOST).ok().map(|most| most.parse::<u64>()).transpose()?.unwrap_or(u64::MAX);
    for size in sizes.iter().filter(|size| **size <= most) {
        let directory = tempfile::tempdir()?;
        let export = directory.path().join("export");
        let made = exports::write(format, SEED, *size, &export)?;
        warm(&binary, directory.path())?;
        let new = run(&binary, directory.path(), format, &export)?;
        new.check(&made, "kept")?;
        let old = run(&binary, directory.path(), format, &export)?;
        old.check(&made, "already")?;
        first.push((made.bytes, new.rate(&made)));
        again.push((made.bytes, old.rate(&made)));
        memory.push((made.bytes, new.memory.max(old.memory)));
        guest.push((made.bytes, new.guest.max(old.guest)));
    }
    Ok(vec![
        Line::growth(name, "MB/s", Side::Wasm, first),
        Line::growth(&format!("{name}-again"), "MB/s", Side::Wasm, again),
        Line::growth(&format!("{name}-memory"), "MiB", Side::Wasm, memory),
        Line::growth(&format!("{name}-guest"), "MiB", Side::Wasm, guest),
    ])
}

struct Ran {
    time: Duration,
    /// MiB of the process.
    memory: f64,
    /// MiB of the component in it.
    guest: f64,
    summary: Value,
}

impl Ran {
    /// That every conversation ended so.
    fn check(&self, made: &Made, outcome: &str) -> Result<(), Box<dyn Error>> {
        let counted = self.summary["conversations"][outcome].as_u64();
        if counted == Some(made.conversations) && self.summary["ok"] == true {
            return Ok(());
        }
        Err(format!("{} conversations were to be {outcome}: {}", made.conversations, self.summary).into())
    }

    #[allow(clippy::cast_precision_loss, reason = "byte counts are far below 2^52")]
    fn rate(&self, made: &Made) -> f64 {
        made.bytes as f64 / 1e6 / self.time.as_secs_f64()
    }
}

/// The first call on a machine compiles the component, which is no part of any import.
fn warm(binary: &Path, home: &Path) -> Result<(), Box<dyn Error>> {
    let status = command(binary, home).args(["status", "--json", "--workspace"]).arg(home).output()?.status;
    if status.success() { Ok(()) } else { Err(format!("status: {status}").into()) }
}

/// The command, with nothing of its caller's home.
fn command(binary: &Path, home: &Path) -> Command {
    let mut command = Command::new(binary);
    command
        .env("XDG_CACHE_HOME", home.join("cache"))
        .env("XDG_CONFIG_HOME", home.join("config"))
        .env("XDG_DATA_HOME", home.join("data"))
        .stdin(Stdio::null());
    command
}

fn run(binary: &Path, home: &Path, format: Format, export: &Path) -> Result<Ran, Box<dyn Error>> {
    let (said, traced) = (home.join("said"), home.join("traced"));
    let start = Instant::now();
    let mut child = command(binary, home)
        .args(["import", format.name(), "--json", "-v", "--workspace"])
        .arg(home.join("memory"))
        .arg(export)
        .stdout(File::create(&said)?)
        .stderr(File::create(&traced)?)
        .spawn()?;
    let mut memory = 0.0;
    let status = loop {
        memory = highest(child.id()).unwrap_or(memory);
        match child.try_wait()? {
            Some(status) => break status,
            None => std::thread::sleep(LOOK),
        }
    };
    let time = start.elapsed();
    let said = fs::read_to_string(said)?;
    let last = said.lines().next_back().unwrap_or_default();
    let summary = serde_json::from_str(last).map_err(|error| format!("{status}: {error} in {last}"))?;
    let traced = fs::read_to_string(traced)?;
    let bytes = traced.split_once("memory of the component: ").and_then(|(_, rest)| rest.split_once(" bytes"));
    let bytes: f64 = bytes.ok_or_else(|| format!("no word of memory in {traced}"))?.0.parse()?;
    Ok(Ran { time, memory, guest: bytes / f64::from(1 << 20), summary })
}

/// The most memory that a process has had so far, in MiB, where the system tells (Linux).
pub fn highest(process: u32) -> Option<f64> {
    let status = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kilobytes: f64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kilobytes / 1024.0)
}
