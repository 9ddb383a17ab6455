//! Runs vector files on an engine: `vectors [--engine ENGINE] [--only FILE]… [--deviations FILE] DIR…`.

use std::error::Error;
use std::io::{self, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use recollex_tests::deviations::Deviations;
use recollex_tests::engine::EngineName;
use recollex_tests::vectors::{self, Totals, VectorFile};

/// Runs vector files and holds what comes out against what was observed.
///
/// Prints one line a file, and last the sum, where rows that deviate as a decision demands count as passed. Failures go
/// to stderr. Exit code 1 when a row failed, nothing ran, or the vectors cannot be read.
#[derive(Parser)]
struct Arguments {
    /// What runs the rows.
    #[arg(long, value_enum, default_value_t = EngineName::Native)]
    engine: EngineName,
    /// Only this vector file, by name; may be repeated.
    #[arg(long, value_name = "FILE")]
    only: Vec<String>,
    /// Another list of deviations than tests/vectors/deviations.toml.
    #[arg(long, value_name = "FILE")]
    deviations: Option<PathBuf>,
    /// Directories whose *.jsonl are run.
    #[arg(required = true, value_name = "DIR")]
    directories: Vec<PathBuf>,
}

fn main() -> ExitCode {
    match run(&Arguments::parse()) {
        Ok(totals) if totals.is_success() => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(error) => {
            let mut message = error.to_string();
            let mut cause = error.source();
            while let Some(below) = cause {
                message = format!("{message}: {below}");
                cause = below.source();
            }
            // Nothing is left to do if stderr is gone.
            let _ = writeln!(io::stderr(), "vectors: {message}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &Arguments) -> Result<Totals, Box<dyn Error>> {
    let deviations = match &arguments.deviations {
        Some(path) => Deviations::read(path)?,
        None => Deviations::shipped()?,
    };
    let files = VectorFile::find(&arguments.directories, &arguments.only)?;
    let mut engine = arguments.engine.start()?;
    let mut totals = Totals::default();
    let mut out = io::stdout().lock();
    for file in &files {
        let report = vectors::run(engine.as_mut(), file, &deviations);
        for failure in &report.failures {
            writeln!(io::stderr(), "{failure}")?;
        }
        writeln!(out, "{report}")?;
        totals.add(&report);
    }
    writeln!(out, "{totals}")?;
    Ok(totals)
}
