//! Measures retrieval: `retrieval [--engine ENGINE] [--setting NAME=VALUE]… FILE.jsonl…`.

use std::error::Error;
use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Parser;
use recollex_tests::retrieval::{Conversation, RankerName, Report};

/// Asks the questions of evaluation sets, and prints one JSON document of how well their evidence was found: recall at 1,
/// 5 and 10 (the share of the evidence among so many hits), the reciprocal rank of the first evidence, and nDCG at 10 with
/// a gain of one, each as the mean over the questions of a set and of its categories.
///
/// A file has a conversation a line: `{"set","id","turns":[{"id","session","speaker","role","time","text"}],
/// "queries":[{"text","category","evidence":[turn]}]}`. Exit code 1 when a file cannot be read or the engine fails.
#[derive(Parser)]
struct Arguments {
    /// What ranks.
    #[arg(long, value_enum, default_value_t = RankerName::Native)]
    engine: RankerName,
    /// A setting of search in place of its default; may be repeated.
    #[arg(long, value_name = "NAME=VALUE", value_parser = pair)]
    setting: Vec<(String, String)>,
    /// The sets.
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
}

fn pair(argument: &str) -> Result<(String, String), String> {
    let (name, value) = argument.split_once('=').ok_or("write NAME=VALUE")?;
    Ok((name.to_owned(), value.to_owned()))
}

fn main() -> ExitCode {
    match run(&Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Nothing is left to do if stderr is gone.
            let _ = writeln!(io::stderr(), "retrieval: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &Arguments) -> Result<(), Box<dyn Error>> {
    let mut ranker = arguments.engine.start(&arguments.setting)?;
    let mut report = Report::default();
    for file in &arguments.files {
        for conversation in conversations(file)? {
            report.run(ranker.as_mut(), &conversation?)?;
        }
    }
    serde_json::to_writer_pretty(io::stdout().lock(), &report.shown())?;
    writeln!(io::stdout())?;
    Ok(())
}

/// Line by line: a set need not fit into memory twice.
fn conversations(file: &Path) -> Result<impl Iterator<Item = Result<Conversation, Box<dyn Error>>>, Box<dyn Error>> {
    let place = file.display().to_string();
    let lines = BufReader::new(File::open(file).map_err(|error| format!("{place}: {error}"))?).lines();
    Ok(lines.zip(1..).filter(|(line, _)| line.as_ref().is_ok_and(|line| !line.trim().is_empty()) || line.is_err()).map(
        move |(line, number)| {
            let parsed = line.map_err(Box::<dyn Error>::from).and_then(|line| Ok(serde_json::from_str(&line)?));
            parsed.map_err(|error| format!("{place}, line {number}: {error}").into())
        },
    ))
}
