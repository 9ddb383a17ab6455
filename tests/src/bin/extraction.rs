//! Measures writers: `extraction --models FILE.toml FILE.jsonl…`.

use std::error::Error;
use std::fs;
use std::io::{self, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use clap::Parser;
use recollex::model::{Live, RolesSettings};
use recollex_tests::extraction::{Labelled, run};

/// Has a model write labelled conversations into memory, and prints one JSON document of what it extracted, with which
/// source, what it left out, and what it said of the wrong people or turns. `tests/labelled/README.md` says how it counts.
#[derive(Parser)]
struct Arguments {
    /// Which model: `[writer]` and the other roles of `host/MODELS.md`. Paths in it are beside it.
    #[arg(long, value_name = "FILE")]
    models: PathBuf,
    /// The conversations.
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
}

fn main() -> ExitCode {
    match measure(&Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Nothing is left to do if stderr is gone.
            let _ = writeln!(io::stderr(), "extraction: {error}");
            ExitCode::FAILURE
        }
    }
}

fn measure(arguments: &Arguments) -> Result<(), Box<dyn Error>> {
    let path = &arguments.models;
    let mut settings: RolesSettings =
        toml::from_str(&fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?)?;
    let beside = fs::canonicalize(path)?.parent().map(PathBuf::from).unwrap_or_default();
    settings.paths_mut().for_each(|path| *path = beside.join(&*path));
    for role in [&mut settings.writer, &mut settings.organiser, &mut settings.observer].into_iter().flatten() {
        // A command runs in a directory of its own: what it names of those here is made absolute.
        for word in role.command.iter_mut().flatten() {
            let file = beside.join(&*word);
            if file.is_file() {
                *word = file.to_string_lossy().into_owned();
            }
        }
    }
    let mut conversations: Vec<Labelled> = Vec::new();
    for file in &arguments.files {
        let text = fs::read_to_string(file).map_err(|error| format!("{}: {error}", file.display()))?;
        for (line, number) in text.lines().zip(1..).filter(|(line, _)| !line.trim().is_empty()) {
            let parsed =
                serde_json::from_str(line).map_err(|error| format!("{}, line {number}: {error}", file.display()));
            conversations.push(parsed?);
        }
    }
    let report = run(&conversations, Arc::new(Live::new(move || Ok(settings.clone()))))?;
    serde_json::to_writer_pretty(io::stdout().lock(), &report)?;
    writeln!(io::stdout())?;
    Ok(())
}
