//! What is shipped: the size of the components, and how long the command takes as a process.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use recollex::types::Tier;
use recollex::workspace::Turn;
use recollex::{OpenOptions, Runtime, RuntimeOptions, Session};
use recollex_test_rows::workload;
use recollex_tests::{built, turns};

use crate::line::{Line, Side, median, rounded};
use crate::{Benchmark, Measured};

/// Runs of a whole process; the first fills the caches.
const PROCESS_RUNS: usize = 31;
const STATUS_FILES: u32 = 100;
const STATUS_TURNS_PER_FILE: u32 = 20;

/// `n`: files of the workspace, and components.
pub const BENCHMARKS: &[Benchmark] = &[
    ("status-100-files", status),
    ("component-size-memory", |name| size(name, built::memory())),
    ("component-size-verifier", |name| size(name, built::verifier())),
];

/// Milliseconds that `recollex status` takes as a process, on a workspace of some files, with everything cached.
fn status(name: &'static str) -> Measured {
    let line = Line { name: name.to_owned(), n: STATUS_FILES.into(), unit: "ms", ..Line::default() };
    let Some(binary) = release_binary() else {
        let note = "not measured: build it first with cargo build --release --bin recollex".to_owned();
        return Ok(vec![Line { note: Some(note), ..line }]);
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
    Ok(vec![Line { wasm: median(times.split_off(1)).map(rounded), ..line }])
}

/// The `recollex` beside this program, if this is a release build and it is there.
pub fn release_binary() -> Option<PathBuf> {
    let binary = std::env::current_exe().ok()?.with_file_name("recollex");
    (!cfg!(debug_assertions) && binary.is_file()).then_some(binary)
}

/// Archives some turns in each of some threads.
fn fill(workspace: &Path) -> Result<(), Box<dyn std::error::Error>> {
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
fn size(name: &'static str, path: &Path) -> Measured {
    Ok(vec![Line::figure(name, 1, "bytes", Side::Wasm, fs::metadata(path)?.len() as f64)])
}
