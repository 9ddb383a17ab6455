//! `recollex undo`: takes the last commits back, or lists them, or brings back what was taken back.

use std::collections::BTreeSet;

use recollex::maintenance;
use recollex::store::{Area, Directory, PastCommit, PastEdit, UndoError, UndoLimits};
use serde::Serialize;

use super::args::Undo;
use super::context::Context;
use super::failure::{Exit, Failure};

#[derive(Serialize)]
struct Listed<'a> {
    commits: Vec<CommitView<'a>>,
    redo: Option<CommitView<'a>>,
    /// The commit at which it ends, because it erased something for good.
    erased: Option<CommitView<'a>>,
}

#[derive(Serialize)]
struct Document<'a> {
    undone: bool,
    redo: bool,
    commits: Vec<CommitView<'a>>,
}

#[derive(Serialize)]
struct CommitView<'a> {
    generation: u64,
    time: String,
    verb: &'a str,
    note: &'a str,
    changes: Vec<ChangeView<'a>>,
}

#[derive(Serialize)]
struct ChangeView<'a> {
    area: Area,
    path: &'a str,
    what: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    to: Option<&'a str>,
}

impl<'a> From<&'a PastCommit> for CommitView<'a> {
    fn from(commit: &'a PastCommit) -> Self {
        let change = |change: &'a recollex::store::PastChange| {
            let (what, bytes, to) = match &change.what {
                PastEdit::Created => ("created", None, None),
                PastEdit::Replaced => ("replaced", None, None),
                PastEdit::Appended(bytes) => ("appended", Some(*bytes), None),
                PastEdit::Deleted => ("deleted", None, None),
                PastEdit::Moved(to) => ("moved", None, Some(to.as_str())),
            };
            ChangeView { area: change.area, path: &change.path, what, bytes, to }
        };
        Self {
            generation: commit.generation,
            time: maintenance::utc(commit.time),
            verb: &commit.verb,
            note: &commit.note,
            changes: commit.changes.iter().map(change).collect(),
        }
    }
}

/// Runs the verb.
pub fn run(args: &Undo, context: &Context) -> Result<Exit, Failure> {
    context.owner_only("undo")?;
    let root = &context.setup.workspace;
    if !root.is_dir() {
        return Err(Failure::not_found("no-workspace", "there is no workspace there")
            .at_path(root.display().to_string())
            .next("name another: --workspace DIR"));
    }
    let store = Directory::new(root).with_undo(UndoLimits::default());
    let failed = |error| Failure::store("read what commits left", &error);
    if args.list {
        let commits = store.past().map_err(failed)?;
        let (redo, erased) = (store.undone().map_err(failed)?, store.erased().map_err(failed)?);
        return Ok(list(context, &commits, redo.as_ref(), erased.as_ref()));
    }
    let mut done = Vec::new();
    let mut failure = None;
    if args.dry_run {
        // Only the first can be tried: the state that the next one would meet is not there yet.
        match store.would_undo(args.redo) {
            Ok(first) => {
                done.push(first);
                if !args.redo {
                    done.extend(store.past().map_err(failed)?.into_iter().skip(1).take(args.count as usize - 1));
                }
            }
            Err(error) => failure = Some(not_taken(args, error)),
        }
    } else {
        let guard = context.lock("undo")?;
        for _ in 0..args.count {
            let taken = if args.redo { store.redo(&*guard) } else { store.undo(&*guard) };
            match taken {
                Ok((commit, _)) => {
                    record(context, if args.redo { "redo" } else { "undo" }, &commit);
                    done.push(commit);
                }
                Err(error) => {
                    failure = Some(not_taken(args, error));
                    break;
                }
            }
        }
    }
    match failure {
        Some(failure) if done.is_empty() => return Err(failure),
        _ => {}
    }
    report(context, args, &done);
    match failure {
        // Each is a commit of its own: those before stand, and the exit code tells that not all were.
        Some(failure) => {
            context.warn(&format!("only {} of {}: {}", done.len(), args.count, failure.message));
            Ok(failure.exit)
        }
        None => Ok(Exit::DONE),
    }
}

/// Why nothing was taken back, or brought back.
fn not_taken(args: &Undo, error: UndoError) -> Failure {
    match error {
        UndoError::Nothing if args.redo => {
            Failure::not_found("no-commit", "nothing was taken back last that can be brought back")
        }
        error => error.into(),
    }
}

/// Records in the history that a commit was taken back, or brought back.
fn record(context: &Context, what: &str, commit: &PastCommit) {
    let Some(repository) = context.setup.history.repository(&context.setup.workspace) else { return };
    let mut paths = BTreeSet::new();
    for change in commit.changes.iter().filter(|change| change.area == Area::Tree) {
        paths.insert(change.path.as_str());
        if let PastEdit::Moved(to) = &change.what {
            paths.insert(to);
        }
    }
    let message = format!("{what}: {} of {}", commit.verb, maintenance::utc(commit.time));
    if let Err(error) = repository.record(&paths, &message) {
        context.warn(&format!("this is not in the history: {error}"));
    }
}

fn list(context: &Context, commits: &[PastCommit], redo: Option<&PastCommit>, erased: Option<&PastCommit>) -> Exit {
    if context.out.json {
        context.out.document(&Listed {
            commits: commits.iter().map(CommitView::from).collect(),
            redo: redo.map(CommitView::from),
            erased: erased.map(CommitView::from),
        });
    } else {
        commits.iter().for_each(|commit| lines(context, "", commit));
        if let Some(erased) = erased {
            context.hint(&format!(
                "Commit {} of {} erased something for good: neither it nor what came before it can be taken back.",
                erased.generation,
                maintenance::utc(erased.time)
            ));
        }
        if redo.is_some() {
            context.hint("What was taken back last can be brought back: recollex undo --redo");
        }
    }
    if commits.is_empty() { Exit::NOTHING } else { Exit::DONE }
}

fn report(context: &Context, args: &Undo, done: &[PastCommit]) {
    if context.out.json {
        context.out.document(&Document {
            undone: !args.dry_run,
            redo: args.redo,
            commits: done.iter().map(CommitView::from).collect(),
        });
        return;
    }
    let word = match (args.redo, args.dry_run) {
        (false, false) => "took back ",
        (false, true) => "would take back ",
        (true, false) => "undid the undoing: ",
        (true, true) => "would undo the undoing: ",
    };
    for commit in done {
        lines(context, word, commit);
    }
}

fn lines(context: &Context, word: &str, commit: &PastCommit) {
    let look = context.out.look;
    let view = CommitView::from(commit);
    let said = [view.verb, view.note].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(": ");
    let said = if said.is_empty() { said } else { format!("  {}", look.foreign(&said)) };
    context.out.line(&format!("{word}{}  {}{said}", look.strong(&format!("commit {}", commit.generation)), view.time));
    for change in &view.changes {
        let path = look.foreign(change.path);
        let more = match (change.bytes, change.to) {
            (Some(bytes), _) => format!(", {bytes} bytes"),
            (_, Some(to)) => format!(" to {}", look.foreign(to)),
            _ => String::new(),
        };
        context.out.line(&format!("    {} {path}{more}", change.what));
    }
}
