//! `recollex restore`: makes the workspace what a backup is.

use std::io::{IsTerminal as _, Write as _};
use std::path::Path;

use recollex::maintenance::{self, Manifest, Plan};
use recollex::store::{Directory, Store as _, UndoLimits};
use serde::Serialize;

use super::args::Restore;
use super::backup::{left_out, target};
use super::context::Context;
use super::failure::{Exit, Failure};
use super::input;
use super::output::Unit;
use super::terminal::{bytes, count};

#[derive(Serialize)]
struct Document<'a> {
    restored: bool,
    backup: Backup<'a>,
    added: u64,
    replaced: u64,
    unchanged: u64,
    deleted: u64,
    bytes: u64,
    safety_backup: Option<String>,
    generation: u64,
    /// What lies in the tree and is no regular file: it stayed.
    stays: &'a [String],
}

#[derive(Serialize)]
struct Backup<'a> {
    workspace: Option<&'a str>,
    generation: u64,
    time: &'a str,
    files: usize,
}

/// Runs the verb.
pub fn run(args: &Restore, context: &Context) -> Result<Exit, Failure> {
    context.owner_only("restore")?;
    let failed = |error| Failure::backup(error, &args.file);
    let mut file = input::open(&args.file, "backup")?;
    let manifest = {
        let progress = context.remarks.progress("check", 1, Unit::Bytes);
        maintenance::check(&mut file, &mut |done, total| progress.at(done, total)).map_err(failed)?
    };
    let store = Directory::new(&context.setup.workspace).with_undo(UndoLimits::default());
    let compare = || {
        let progress = context.remarks.progress("compare", 1, Unit::Bytes);
        maintenance::plan(&store, &manifest, &mut |done, total| progress.at(done, total)).map_err(failed)
    };

    // What would be done is said before the lock is taken, which makes a workspace where there is none.
    let plan = compare()?;
    if args.dry_run {
        render(context, &manifest, &plan, None, generation(&store)?, true);
        return Ok(Exit::DONE);
    }
    confirm(args, context, &plan)?;

    let guard = context.lock("restore")?;
    store.recover(&*guard).map_err(|error| Failure::store("complete the last commit", &error))?;
    let plan = compare()?;
    if !plan.is_empty && !args.replace {
        return Err(occupied(context));
    }
    let safety = if plan.is_empty || plan.is_done() { None } else { Some(keep(args, context, &store, &*guard)?) };
    let generation = if plan.is_done() {
        generation(&store)?
    } else {
        let progress = context.remarks.progress("restore", 1, Unit::Bytes);
        maintenance::restore(&store, &*guard, &mut file, &manifest, &plan, &mut |done, total| progress.at(done, total))
            .map_err(failed)?
            .generation
    };
    drop(guard);
    render(context, &manifest, &plan, safety.as_deref(), generation, false);
    Ok(Exit::DONE)
}

fn generation(store: &Directory) -> Result<u64, Failure> {
    store.generation().map_err(|error| Failure::store("read the workspace", &error))
}

fn occupied(context: &Context) -> Failure {
    Failure::usage("not-empty", "there is a workspace with files already")
        .at_path(context.setup.workspace.display().to_string())
        .next("put the backup in its place, after a backup of what is there: --replace")
        .exit(Exit::REFUSED)
}

/// Replacing something is agreed to beforehand.
fn confirm(args: &Restore, context: &Context, plan: &Plan) -> Result<(), Failure> {
    if plan.is_empty || plan.is_done() {
        return Ok(());
    }
    if !args.replace {
        return Err(occupied(context));
    }
    if args.yes {
        return Ok(());
    }
    let what = format!(
        "{} would be replaced and {} removed in {}",
        count(plan.replaced, "file", "files"),
        plan.deleted,
        context.setup.workspace.display()
    );
    if !std::io::stdin().is_terminal() || !std::io::stderr().is_terminal() {
        return Err(Failure::usage("unconfirmed", what).next("if that is meant: --yes"));
    }
    let mut stderr = std::io::stderr().lock();
    let mut answer = String::new();
    // An answer that cannot be asked for is no.
    let asked = write!(stderr, "{}. Go on? [y/N] ", super::terminal::escape_line(&what)).and_then(|()| stderr.flush());
    if asked.and_then(|()| std::io::stdin().read_line(&mut answer)).is_ok()
        && matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes")
    {
        return Ok(());
    }
    Err(Failure::usage("unconfirmed", "nothing was done").exit(Exit::REFUSED))
}

/// Backs up what is about to be replaced.
fn keep(
    args: &Restore,
    context: &Context,
    store: &Directory,
    guard: &dyn recollex::store::Guard,
) -> Result<String, Failure> {
    let beside = store.root().parent().unwrap_or(Path::new("/"));
    let target = target(args.safety.as_deref().unwrap_or(beside), store)?;
    let progress = context.remarks.progress("safety backup", 1, Unit::Bytes);
    let mut show = |done, total| progress.at(done, total);
    let backup = maintenance::backup(store, guard, &target, false, &mut show).map_err(|error| {
        Failure::backup(error, &target).next("nothing was changed; name another place: --safety DIR")
    })?;
    drop(progress);
    left_out(context, &backup.left_out);
    Ok(backup.path.display().to_string())
}

fn render(context: &Context, manifest: &Manifest, plan: &Plan, safety: Option<&str>, generation: u64, dry_run: bool) {
    let out = &context.out;
    if out.json {
        out.document(&Document {
            restored: !dry_run,
            backup: Backup {
                workspace: manifest.workspace.as_deref(),
                generation: manifest.generation,
                time: &manifest.time,
                files: manifest.files.len(),
            },
            added: plan.added,
            replaced: plan.replaced,
            unchanged: plan.unchanged,
            deleted: plan.deleted,
            bytes: plan.bytes,
            safety_backup: safety.map(str::to_owned),
            generation,
            stays: &plan.stays,
        });
        return;
    }
    let word = if dry_run { "Would restore" } else { "Restored" };
    out.line(&format!(
        "{word} the state of {}: {} added, {} replaced, {} removed, {} as they are; {} written",
        out.look.foreign(&manifest.time),
        plan.added,
        plan.replaced,
        plan.deleted,
        plan.unchanged,
        bytes(plan.bytes)
    ));
    if let Some(path) = safety {
        out.line(&format!("What was there before: {}", out.look.foreign(path)));
    }
    for path in &plan.stays {
        context.warn(&format!("{path} is no regular file: no backup holds it, and it stays as it is"));
    }
}
