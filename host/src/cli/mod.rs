//! The program `recollex`: options in, library calls, results out.
//!
//! One module a verb, each thin. Rules and formats are the component's: nothing here parses an archive, ranks a result or
//! decides what is allowed. What a caller may rely on is the shape of `--json`, the exit codes ([`failure::Exit`]), and
//! that stdout carries results only.

mod archive;
mod args;
mod audience;
mod backup;
mod browse;
mod completions;
mod config;
mod context;
mod core;
mod demo;
mod doctor;
mod failure;
mod get;
mod grep;
mod html;
mod import;
mod init;
mod input;
#[cfg(feature = "mcp")]
mod mcp;
mod output;
mod paths;
mod promote;
mod recall;
mod references;
mod restore;
mod search;
mod settings;
mod status;
mod structure;
mod terminal;
mod timeline;
mod turns;
mod undo;
mod update;
mod verify;
mod views;
mod why;
mod writing;
mod zone;

use std::ffi::OsString;
use std::process::ExitCode;
use std::sync::Arc;

use clap::Parser;

use args::{Cli, Verb};
use config::{Environment, Setup};
use context::Context;
use failure::{Exit, Failure};
use output::{Output, Remarks};

/// Runs the program on this process's arguments, environment and streams.
pub fn run() -> ExitCode {
    // Where a file may not get any longer (`ulimit -f`), the write is to fail, and not to end the process without a word. That
    // it was noted is of no use to anybody.
    let _ = signal_hook::flag::register(signal_hook::consts::SIGXFSZ, Arc::default());
    let words: Vec<OsString> = std::env::args_os().collect();
    let cli = match Cli::try_parse_from(&words) {
        Ok(cli) => cli,
        Err(error) => return ExitCode::from(misused(&error, &words).0),
    };
    let out = Output::stdout(cli.global.json);
    let remarks = Arc::new(Remarks::stderr(cli.global.verbose, cli.global.quiet));
    let is_hook = writing::hook(&cli.verb);
    let exit = dispatch(cli, out, remarks);
    // An agent must not stumble over its memory.
    ExitCode::from(if is_hook { Exit::DONE.0 } else { exit.0 })
}

fn dispatch(cli: Cli, out: Output, remarks: Arc<Remarks>) -> Exit {
    // What needs no configuration works even where that is broken.
    let (out, result) = match &cli.verb {
        Verb::Completions(args) => {
            let result = completions::run(args, &out);
            (out, result)
        }
        Verb::Man(args) => {
            let result = completions::man(args, &out);
            (out, result)
        }
        _ => match Setup::resolve(&cli.global, &Environment::read()) {
            Err(failure) => (out, Err(failure)),
            Ok(setup) => {
                let context = Context { global: cli.global, setup, out, remarks: remarks.clone() };
                let result = verb(&cli.verb, &context);
                (context.out, result)
            }
        },
    };
    let exit = result.unwrap_or_else(|failure| {
        if out.json {
            out.document(&failure.document());
        }
        out.flush();
        remarks.failure(&failure);
        failure.exit
    });
    match out.finish() {
        Ok(()) => exit,
        Err(error) => {
            let failure = Failure::output(&error);
            let failure = match out.standing() {
                Some(done) => failure.next(format!("{done}; only the result is lost, and repeating the call is safe")),
                None => failure,
            };
            remarks.failure(&failure);
            failure.exit
        }
    }
}

fn verb(verb: &Verb, context: &Context) -> Result<Exit, Failure> {
    context.remarks.trace(&format!(
        "workspace {} ({})",
        context.setup.workspace.display(),
        context.setup.workspace_from
    ));
    match verb {
        Verb::Demo(args) => demo::run(args, context),
        Verb::Init => init::run(context),
        Verb::Archive(args) => archive::run(args, context),
        Verb::Import(args) => import::run(args, context),
        Verb::Verify(args) => verify::run(args, context),
        Verb::Doctor(args) => doctor::run(args, context),
        Verb::Search(args) => search::run(args, context),
        Verb::Recall(args) => recall::run(args, context),
        Verb::Get(args) => get::run(args, context),
        Verb::Grep(args) => grep::run(args, context),
        Verb::Timeline(args) => timeline::run(args, context),
        Verb::Why(args) => why::run(args, context),
        Verb::Browse(args) if args.blocks => structure::run(args, context),
        Verb::Browse(args) => browse::run(args, context),
        Verb::References(args) => references::run(args, context),
        Verb::Core => core::run(context),
        #[cfg(feature = "mcp")]
        Verb::Mcp => mcp::run(context),
        Verb::Update(args) => update::run(args, context),
        Verb::Promote(args) => promote::run(args, context),
        Verb::Audience(args) => audience::run(args, context),
        Verb::Status => status::run(context),
        Verb::Turns(args) => writing::turns(args, context),
        Verb::Write(args) => writing::write(args, context),
        Verb::Sleep(args) => writing::sleep(args, context),
        Verb::Backfill(args) => writing::backfill(args, context),
        Verb::Salvage(args) => writing::salvage(args, context),
        Verb::Daemon(args) => writing::daemon(args, context),
        Verb::Backup(args) => backup::run(args, context),
        Verb::Restore(args) => restore::run(args, context),
        Verb::Undo(args) => undo::run(args, context),
        Verb::Paths => paths::run(context),
        Verb::Config => settings::run(context),
        Verb::Completions(args) => completions::run(args, &context.out),
        Verb::Man(args) => completions::man(args, &context.out),
    }
}

/// Help, the version, or a command line that makes no sense.
fn misused(error: &clap::Error, words: &[OsString]) -> Exit {
    let printed = error.print();
    if !error.use_stderr() {
        return match printed {
            Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => Exit::USAGE,
            _ => Exit::DONE,
        };
    }
    // Nothing was parsed, so what was meant can only be looked for.
    if words.iter().any(|word| word == "write") && words.iter().any(|word| word == "--hook") {
        return Exit::DONE;
    }
    if words.iter().any(|word| word == "--json") {
        let text = error.render().to_string();
        let first = text.lines().next().unwrap_or_default();
        let message = first.strip_prefix("error: ").unwrap_or(first);
        let out = Output::stdout(true);
        out.document(&Failure::usage("usage", message).document());
        let _ = out.finish();
    }
    Exit::USAGE
}
