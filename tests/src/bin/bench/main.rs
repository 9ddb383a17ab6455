//! Benchmarks: `bench [NAME…]` prints one JSON line a figure.
//!
//! Native and wasm take turns within one run, so that a slow minute of the machine slows both; each figure is the median
//! of its rounds. Use `--release`: the figures of a debug build say nothing, and the line then says so.
//!
//! | module | what it measures |
//! |---|---|
//! | `frames` | reading and writing frames and topics, natively and in wasm |
//! | `store` | turns and commits, against the size of what is there |
//! | `medium` | syncs of a commit, recovery after a death |
//! | `import` | exports taken in: speed and memory, against their size |
//! | `promote` | vouching for a record, against the length of its archive |
//! | `update` | updates of topics, against the blocks of the workspace |
//! | `search` | queries and what they need, beside other programs, against the messages there are |
//! | `shipped` | sizes of the components, the command as a process |
//!
//! A further module has its `BENCHMARKS` and a line in [`AREAS`].

mod frames;
mod import;
mod line;
#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
mod medium;
mod promote;
mod search;
mod shipped;
mod store;
mod update;

use std::error::Error;
use std::io::{self, Write as _};
use std::process::ExitCode;

use clap::Parser;
use recollex_tests::corpus::Corpus;

use line::Line;

/// Measures and prints one JSON line a figure: name, n, unit, native, wasm, ratio, and the slope where it is of growth.
///
/// `n` counts what a round goes through: records, files, components; where growth is measured it is the largest size.
/// `native` and `wasm` are in `unit`, null where there is nothing of the kind. `ratio` says how many times longer wasm
/// takes, `slope` with which power of the size the figure grows (0: not at all), from `points`.
#[derive(Parser)]
struct Arguments {
    /// Only benchmarks whose names begin so.
    #[arg(value_name = "NAME")]
    names: Vec<String>,
    /// Print so many messages of the corpus of `search` instead, and its queries, as JSON Lines.
    #[arg(long, value_name = "MESSAGES", conflicts_with = "names")]
    corpus: Option<u64>,
}

/// The lines of a benchmark: one, or several that one preparation serves, whose names begin with the benchmark's.
type Measured = Result<Vec<Line>, Box<dyn Error>>;

/// A benchmark and how it is measured.
type Benchmark = (&'static str, fn(&'static str) -> Measured);

/// All benchmarks, by module.
const AREAS: &[&[Benchmark]] = &[
    frames::BENCHMARKS,
    store::BENCHMARKS,
    // These trace a process, as Linux can.
    #[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
    medium::BENCHMARKS,
    import::BENCHMARKS,
    promote::BENCHMARKS,
    update::BENCHMARKS,
    search::BENCHMARKS,
    shipped::BENCHMARKS,
];

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let first = arguments.next();
    let rest: Vec<String> = arguments.collect();
    end(match first.as_deref() {
        #[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
        Some(medium::CHILD) => medium::child(&rest),
        Some(search::CHILD) => search::child(&rest),
        _ => run(&Arguments::parse()),
    })
}

fn end(result: Result<(), Box<dyn Error>>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Nothing is left to do if stderr is gone.
            let _ = writeln!(io::stderr(), "bench: {error}");
            ExitCode::from(2)
        }
    }
}

fn run(Arguments { names, corpus }: &Arguments) -> Result<(), Box<dyn Error>> {
    if let Some(messages) = corpus {
        let mut out = io::BufWriter::new(io::stdout().lock());
        Corpus::new().write(*messages, search::QUERIES, &mut out)?;
        return Ok(out.flush()?);
    }
    let all = || AREAS.iter().flat_map(|area| area.iter());
    let wanted = |benchmark: &str| names.is_empty() || names.iter().any(|name| benchmark.starts_with(name.as_str()));
    let chosen: Vec<&Benchmark> = all().filter(|(name, _)| wanted(name)).collect();
    if chosen.is_empty() {
        let known: Vec<&str> = all().map(|(name, _)| *name).collect();
        return Err(format!("no such benchmark; there are: {}", known.join(", ")).into());
    }
    for (name, measure) in chosen {
        for mut line in measure(name).map_err(|error| format!("{name}: {error}"))? {
            if cfg!(debug_assertions) {
                line.note.get_or_insert_with(|| "debug build".to_owned());
            }
            writeln!(io::stdout(), "{}", serde_json::to_string(&line)?)?;
        }
    }
    Ok(())
}
