//! `recollex doctor`: what `verify` finds, and this machine's side of a workspace.
//!
//! With `--fix`, what is safe is done first, under the lock, and what is left is told.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use recollex::maintenance::{self, Ailment, Cure, Machine};
use recollex::store::{Directory, JournalState, RuntimeKind};
use recollex::types::Finding;
use serde::Serialize;

use super::args::Doctor;
use super::context::Context;
use super::failure::{Exit, Failure};
use super::settings::{self, Role};
use super::terminal::{bytes, count};
use super::verify::{Report, is_remark, verify_workspace};

#[derive(Serialize)]
struct More<'a> {
    fixed: &'a [Done],
    dry_run: bool,
    machine: MachineView<'a>,
}

/// Something that was done, or would be.
#[derive(Serialize)]
struct Done {
    code: String,
    path: Option<String>,
    done: String,
}

#[derive(Serialize)]
struct MachineView<'a> {
    lock: Lock<'a>,
    runtime: &'static str,
    journal: &'static str,
    kept: usize,
    history: &'static str,
    cache: Cache,
    workspace_from: String,
    config: Option<Place>,
    compiled: Option<Place>,
    /// What is set for each role, and whether its key is there.
    models: BTreeMap<&'static str, Role>,
}

/// The lock; process and purpose as far as they are known.
#[derive(Serialize)]
struct Lock<'a> {
    held: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    process: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    purpose: Option<&'a str>,
}

#[derive(Serialize)]
struct Cache {
    files: u64,
    bytes: u64,
}

#[derive(Serialize)]
struct Place {
    path: String,
    state: &'static str,
}

/// Runs the verb.
pub fn run(args: &Doctor, context: &Context) -> Result<Exit, Failure> {
    context.owner_only("doctor")?;
    let root = &context.setup.workspace;
    if !root.is_dir() {
        return Err(Failure::not_found("no-workspace", "there is no workspace to examine")
            .at_path(root.display().to_string())
            .next("make one: recollex init; or name another: --workspace DIR"));
    }
    let failed = |error| Failure::store("examine the workspace", &error);
    let mut fixed = Vec::new();
    if args.fix {
        let guard = if args.dry_run { None } else { Some(context.lock("doctor")?) };
        let store = Directory::new(root);
        // Completing a commit is itself what may leave something to see to: one more look, under the same lock.
        for _ in 0..2 {
            for Ailment { finding, cure, .. } in maintenance::examine(root, guard.is_some()).map_err(failed)?.ailments {
                let Some(cure) = cure else { continue };
                if let Some(guard) = &guard {
                    cure.apply(&store, &**guard)
                        .map_err(|error| Failure::store(&format!("fix `{}`", finding.code), &error))?;
                }
                fixed.push(done(context, finding, &cure, args.dry_run));
            }
            if args.dry_run {
                break;
            }
        }
    }

    let mut session = context.session()?;
    // This machine first: what is wrong with it may keep the component from looking any further.
    let examination = maintenance::examine(root, false).map_err(failed)?;
    let (by_store, more): (Vec<_>, Vec<_>) = examination.ailments.iter().partition(|ailment| ailment.by_store);
    let findings = |ailments: Vec<&Ailment>| ailments.iter().map(|ailment| ailment.finding.clone()).collect::<Vec<_>>();
    let (by_store, more): (Vec<Finding>, Vec<Finding>) = (findings(by_store), findings(more));
    let mut report = Report::new(&context.out);
    report.findings(&more);
    let mut outcome = match verify_workspace(context, &mut session, "", &mut report) {
        Ok(outcome) => outcome,
        Err(failure) => {
            // What the component would have told of the store.
            report.findings(&by_store);
            return report.broken_off(context, failure);
        }
    };
    outcome.ok &= more.iter().all(is_remark);
    let is_curable = examination.ailments.iter().any(|ailment| ailment.cure.is_some());

    let machine = view(context, &examination.machine);
    render(context, &machine);
    report.finish_with(&outcome, &More { fixed: &fixed, dry_run: args.dry_run, machine });
    if is_curable && !args.fix {
        context.hint("Some of it can be put right safely: recollex doctor --fix");
    }
    Ok(if outcome.ok { Exit::DONE } else { Exit::NOTHING })
}

fn done(context: &Context, finding: Finding, cure: &Cure, dry_run: bool) -> Done {
    let done = cure.describe();
    if !context.out.json {
        let word = if dry_run { "would fix" } else { "fixed" };
        let path = context.out.look.foreign(finding.path.as_deref().unwrap_or_default());
        context.out.line(&format!("{word}: {path}: {}: {done}", finding.code));
    }
    Done { code: finding.code, path: finding.path, done }
}

fn view<'a>(context: &Context, machine: &'a Machine) -> MachineView<'a> {
    let setup = &context.setup;
    MachineView {
        lock: Lock {
            held: machine.holder.is_some(),
            process: machine.holder.as_ref().and_then(|holder| holder.process),
            purpose: machine.holder.as_ref().and_then(|holder| holder.purpose.as_deref()),
        },
        runtime: match machine.runtime {
            RuntimeKind::Absent => "absent",
            RuntimeKind::Scriptorium => ".scriptorium",
            RuntimeKind::Nativemem => ".nativemem",
            RuntimeKind::Unusable => "unusable",
        },
        journal: match machine.journal {
            JournalState::Absent => "absent",
            JournalState::Settled => "settled",
            JournalState::Pending { .. } => "pending",
            JournalState::Newer { .. } => "newer",
            JournalState::Damaged => "damaged",
        },
        kept: machine.kept,
        history: context.history(),
        cache: Cache { files: machine.cache_files, bytes: machine.cache_bytes },
        workspace_from: setup.workspace_from.to_string(),
        config: setup.config.as_deref().map(|path| Place {
            path: path.display().to_string(),
            state: if path.exists() { "read" } else { "absent" },
        }),
        compiled: setup.compiled.as_deref().map(|path| Place {
            path: path.display().to_string(),
            state: match fs::symlink_metadata(path) {
                Err(_) => "absent",
                Ok(metadata) if !metadata.is_dir() => "not-a-directory",
                // Whoever can put a file there can have this program run it.
                Ok(metadata) if metadata.permissions().mode() & 0o022 != 0 => "writable-by-others",
                Ok(_) => "private",
            },
        }),
        models: settings::roles(setup),
    }
}

fn render(context: &Context, machine: &MachineView<'_>) {
    if context.out.json {
        return;
    }
    let look = context.out.look;
    let line = |name: &str, value: &str| context.out.line(&format!("{} {value}", look.faint(&format!("{name:<10}"))));
    line("runtime", machine.runtime);
    line("journal", machine.journal);
    line("history", machine.history);
    line("cache", &format!("{}, {}", count(machine.cache.files, "file", "files"), bytes(machine.cache.bytes)));
    for (name, place) in [("config", &machine.config), ("compiled", &machine.compiled)] {
        if let Some(place) = place {
            line(name, &format!("{} ({})", look.foreign(&place.path), place.state));
        }
    }
    for (name, role) in &machine.models {
        line(name, &look.foreign(&role.line()));
    }
}
