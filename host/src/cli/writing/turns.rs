//! `recollex turns`: what is owed, what was written, what is marked.

use std::io::{IsTerminal as _, Write as _};

use recollex::Session;
use recollex::turns::{
    Drive, DriveOptions, Ended, LedgerClass, LedgerEntry, Listed, OwingBranch, StoreFault, Trigger, WRITER_LOCK,
    WriterLock,
};
use recollex::types::Finding;
use serde::Serialize;

use super::args::{Looked, Mark, Migrate, Turns, TurnsAction, TurnsWrite};
use super::report::{OutcomeView, failure_of};
use super::sessions::{Sessions, failed, unavailable};
use super::stopping::Stopping;
use crate::cli::context::Context;
use crate::cli::failure::{Exit, Failure, FailureBody};
use crate::cli::terminal::{count, escape_line};
use crate::cli::views::{self, FindingView};

/// The classes of the ledger, in the order in which they are told, with what each means.
const CLASSES: [(LedgerClass, &str, &str); 4] = [
    (LedgerClass::Unmarked, "unmarked", "neither marked nor cited, and owed"),
    (LedgerClass::MarkedUncited, "marked_uncited", "marked, and nothing rests on them"),
    (LedgerClass::Stranded, "stranded", "neither marked nor cited, and no branch owes them: turns write --stranded"),
    (LedgerClass::CitedUnmarked, "cited_unmarked", "cited, and not marked"),
];

/// Runs the verb.
pub fn run(args: &Turns, context: &Context) -> Result<Exit, Failure> {
    match &args.action {
        TurnsAction::Pending(args) => pending(args, context),
        TurnsAction::Owed(args) => owed(args, context),
        TurnsAction::Write(args) => write(args, context),
        TurnsAction::Mark(args) => mark(args, context),
        TurnsAction::Migrate(args) => migrate(args, context),
    }
}

/// A conversation that cannot be read.
#[derive(Serialize)]
struct UnavailableView<'a> {
    session: Option<&'a str>,
    error: FailureBody<'a>,
}

/// Conversations that cannot be read, as failures: told on stderr, and listed in the document.
#[derive(Default)]
struct Unavailable(Vec<(Option<String>, Failure)>);

impl Unavailable {
    fn of(faults: &[StoreFault]) -> Self {
        Self(faults.iter().map(|fault| (fault.session.clone(), unavailable(fault))).collect())
    }

    fn views(&self) -> Vec<UnavailableView<'_>> {
        self.0.iter().map(|(id, failure)| UnavailableView { session: id.as_deref(), error: failure.body() }).collect()
    }

    fn tell(&self, context: &Context) {
        context.out.flush();
        self.0.iter().for_each(|(_, failure)| context.remarks.failure(failure));
    }

    /// A conversation that could not be opened: one of all is left out, the only one that was asked for is the call's failure.
    fn add(&mut self, of: &Listed, error: recollex::turns::StoreError, is_only: bool) -> Result<(), Failure> {
        match error {
            recollex::turns::StoreError::Store(fault) if !is_only => {
                self.0.push((Some(of.id.clone()), unavailable(&fault)));
                Ok(())
            }
            error => Err(failed(error)),
        }
    }

    fn exit(&self, findings: bool) -> Exit {
        if self.0.is_empty() && !findings { Exit::DONE } else { Exit::NOTHING }
    }
}

#[derive(Serialize)]
struct BranchView<'a> {
    tip: &'a str,
    current: bool,
    turns: u64,
}

impl<'a> From<&'a OwingBranch> for BranchView<'a> {
    fn from(branch: &'a OwingBranch) -> Self {
        Self { tip: &branch.tip, current: branch.current, turns: branch.turns }
    }
}

#[derive(Serialize)]
struct PendingView<'a> {
    session: &'a str,
    updated_at: f64,
    turns: u64,
    /// Written, and only without their marks
    unmarked: u64,
    branches: Vec<BranchView<'a>>,
    findings: Vec<FindingView<'a>>,
}

#[derive(Serialize)]
struct PendingTotals<'a> {
    pending_turns: u64,
    unavailable: Vec<UnavailableView<'a>>,
}

fn pending(args: &Looked, context: &Context) -> Result<Exit, Failure> {
    let mut session = context.session()?;
    let sessions = Sessions::of(&args.sessions, context)?;
    let listing = sessions.chosen(args.session.as_deref())?;
    let options = sessions.options(&args.heads, None, context)?;
    let mut unavailable = Unavailable::of(&listing.faults);
    let (mut total, mut has_findings) = (0, false);
    let mut views = context.out.json.then(|| context.out.listing("sessions"));
    for of in &listing.conversations {
        let opened = sessions
            .open(&mut session, of, &options)
            .and_then(|(mut conversation, findings)| Ok((conversation.pending(&mut session)?, findings)));
        let (pending, findings) = match opened {
            Ok(opened) => opened,
            Err(error) => {
                unavailable.add(of, error, args.session.is_some())?;
                continue;
            }
        };
        total += pending.turns;
        has_findings |= !findings.is_empty();
        match &mut views {
            Some(views) => views.item(&PendingView {
                session: &of.id,
                updated_at: of.updated_at,
                turns: pending.turns,
                unmarked: pending.unmarked,
                branches: pending.branches.iter().map(BranchView::from).collect(),
                findings: views::findings(&findings),
            }),
            None if pending.turns > 0 || pending.unmarked > 0 => {
                let look = context.out.look;
                let unmarked = match pending.unmarked {
                    0 => String::new(),
                    n => format!(", {} only to be marked", count(n, "node", "nodes")),
                };
                let line = format!("{}: {}{unmarked}", look.foreign(&of.id), count(pending.turns, "turn", "turns"));
                context.out.line(&line);
                for branch in pending.branches.iter().filter(|_| pending.branches.len() > 1) {
                    let current = if branch.current { ", the current one" } else { "" };
                    let tip = look.foreign(&branch.tip);
                    context
                        .out
                        .line(&format!("  {} on the branch to {tip}{current}", count(branch.turns, "turn", "turns")));
                }
            }
            None => {}
        }
        if !context.out.json {
            warn(context, &of.id, &findings);
        }
    }
    match views {
        Some(views) => views.finish(&PendingTotals { pending_turns: total, unavailable: unavailable.views() }),
        None if total == 0 && unavailable.0.is_empty() => context.hint("Nothing is owed."),
        None => {}
    }
    unavailable.tell(context);
    Ok(unavailable.exit(has_findings))
}

#[derive(Serialize)]
struct EntryView<'a> {
    class: &'static str,
    node: &'a str,
    source_id: &'a str,
    archived: bool,
}

impl<'a> From<&'a LedgerEntry> for EntryView<'a> {
    fn from(entry: &'a LedgerEntry) -> Self {
        let LedgerEntry { class, node, source_id, archived } = entry;
        Self { class: name(*class), node, source_id, archived: *archived }
    }
}

#[derive(Serialize)]
struct LedgerView<'a> {
    session: &'a str,
    entries: Vec<EntryView<'a>>,
    faulty_topics: &'a [String],
    findings: Vec<FindingView<'a>>,
}

#[derive(Serialize)]
struct LedgerTotals<'a> {
    counts: Counts,
    unavailable: Vec<UnavailableView<'a>>,
}

#[derive(Clone, Copy, Default, Serialize)]
struct Counts {
    unmarked: u64,
    marked_uncited: u64,
    stranded: u64,
    cited_unmarked: u64,
}

impl Counts {
    fn add(&mut self, class: LedgerClass) {
        *match class {
            LedgerClass::Unmarked => &mut self.unmarked,
            LedgerClass::MarkedUncited => &mut self.marked_uncited,
            LedgerClass::Stranded => &mut self.stranded,
            LedgerClass::CitedUnmarked => &mut self.cited_unmarked,
        } += 1;
    }
}

fn name(class: LedgerClass) -> &'static str {
    CLASSES.iter().find(|(it, ..)| *it == class).map_or("", |(_, name, _)| name)
}

fn owed(args: &Looked, context: &Context) -> Result<Exit, Failure> {
    let mut session = context.reading_session()?;
    let sessions = Sessions::of(&args.sessions, context)?;
    let listing = sessions.chosen(args.session.as_deref())?;
    let options = sessions.options(&args.heads, None, context)?;
    let mut unavailable = Unavailable::of(&listing.faults);
    let (mut counts, mut has_findings) = (Counts::default(), false);
    let mut views = context.out.json.then(|| context.out.listing("sessions"));
    for of in &listing.conversations {
        let opened = sessions
            .open(&mut session, of, &options)
            .and_then(|(mut conversation, findings)| Ok((conversation.ledger(&mut session)?, findings)));
        let (ledger, findings) = match opened {
            Ok(opened) => opened,
            Err(error) => {
                unavailable.add(of, error, args.session.is_some())?;
                continue;
            }
        };
        ledger.entries.iter().for_each(|entry| counts.add(entry.class));
        has_findings |= !findings.is_empty();
        match &mut views {
            Some(views) => views.item(&LedgerView {
                session: &of.id,
                entries: ledger.entries.iter().map(EntryView::from).collect(),
                faulty_topics: &ledger.faulty_topics,
                findings: views::findings(&findings),
            }),
            None => {
                render(&of.id, &ledger.entries, context);
                for topic in &ledger.faulty_topics {
                    context.warn(&format!("{topic} has faults: of what it cites only sound blocks count"));
                }
                warn(context, &of.id, &findings);
            }
        }
    }
    let owed = counts.unmarked + counts.marked_uncited + counts.stranded + counts.cited_unmarked;
    match views {
        Some(views) => views.finish(&LedgerTotals { counts, unavailable: unavailable.views() }),
        None if owed == 0 && unavailable.0.is_empty() => context.hint("Every turn is marked and cited."),
        None => {}
    }
    unavailable.tell(context);
    Ok(unavailable.exit(has_findings || owed > 0))
}

fn render(session: &str, entries: &[LedgerEntry], context: &Context) {
    let look = context.out.look;
    for (class, name, what) in CLASSES {
        let of_class: Vec<&LedgerEntry> = entries.iter().filter(|entry| entry.class == class).collect();
        if of_class.is_empty() {
            continue;
        }
        let title = format!("{}: {} {}", look.foreign(session), of_class.len(), name.replace('_', ", "));
        context.out.line(&format!("{} {}", look.strong(&title), look.faint(&format!("({what})"))));
        for entry in of_class {
            let archived = if entry.archived { "" } else { "  (not archived)" };
            context.out.line(&format!("  {}{archived}", look.foreign(&entry.source_id)));
        }
    }
}

#[derive(Serialize)]
struct WriteTotals<'a> {
    ok: bool,
    stopped: bool,
    unavailable: Vec<UnavailableView<'a>>,
}

fn write(args: &TurnsWrite, context: &Context) -> Result<Exit, Failure> {
    let mut session = context.session()?;
    let sessions = Sessions::of(&args.sessions, context)?;
    let listing = sessions.chosen(args.session.as_deref())?;
    let trigger = if args.force || args.stranded { Trigger::Everything } else { Trigger::Due };
    let options = DriveOptions { trigger, ..sessions.options(&args.heads, args.model.as_deref(), context)? };
    let stopping = Stopping::listen(&session)?;
    let stop = || stopping.asked();
    let workspace = Some(context.setup.workspace.as_path());
    let mut unavailable = Unavailable::of(&listing.faults);
    let (mut failures, mut is_silent, mut stopped) = (Vec::new(), true, false);
    let mut views = context.out.json.then(|| context.out.listing("sessions"));
    for of in &listing.conversations {
        if stopping.asked() {
            stopped = true;
            break;
        }
        let options = match args.stranded {
            false => options.clone(),
            true => match stranded(&mut session, &sessions, of, &options) {
                Ok(only) if only.is_empty() => continue,
                Ok(only) => DriveOptions { only, ..options.clone() },
                Err(error) => {
                    unavailable.add(of, error, args.session.is_some())?;
                    continue;
                }
            },
        };
        let outcome = Drive::new(&mut session, &*sessions.store, workspace).stop(&stop).write(of, &options);
        is_silent &= outcome.is_silent();
        stopped |= outcome.ended == Ended::Stopped;
        if !outcome.batches.is_empty() {
            context.out.stands("what was written stays");
        }
        match &mut views {
            Some(views) => views.item(&OutcomeView::from(&outcome)),
            None if !outcome.is_silent() && outcome.failure.is_none() => context.out.line(&outcome.to_string()),
            None => {}
        }
        if !context.out.json {
            warn(context, &of.id, &outcome.findings);
        }
        failures.extend(failure_of(&outcome));
    }
    match views {
        Some(views) => {
            views.finish(&WriteTotals { ok: failures.is_empty(), stopped, unavailable: unavailable.views() });
        }
        None if is_silent && unavailable.0.is_empty() && !stopped => {
            context.hint(if args.stranded {
                "Nothing is stranded."
            } else {
                "Nothing is due. To write all that is owed: --force"
            });
        }
        None => {}
    }
    unavailable.tell(context);
    failures.iter().for_each(|failure| context.remarks.failure(failure));
    Ok(match failures.first() {
        _ if stopped => stopping.exit(),
        Some(failure) => failure.exit,
        None => unavailable.exit(false),
    })
}

/// The nodes of a conversation whose turns are stranded.
fn stranded(
    session: &mut Session,
    sessions: &Sessions,
    of: &Listed,
    options: &DriveOptions,
) -> Result<Vec<String>, recollex::turns::StoreError> {
    let (mut conversation, _) = sessions.open(session, of, options)?;
    let ledger = conversation.ledger(session)?;
    let stranded = ledger.entries.into_iter().filter(|entry| entry.class == LedgerClass::Stranded);
    Ok(stranded.map(|entry| entry.node).collect())
}

#[derive(Serialize)]
struct MarkDocument<'a> {
    session: &'a str,
    dry_run: bool,
    marked: &'a [String],
    left: Vec<LeftView<'a>>,
}

#[derive(Serialize)]
struct LeftView<'a> {
    node: &'a str,
    message: String,
}

fn mark(args: &Mark, context: &Context) -> Result<Exit, Failure> {
    let mut session = context.session()?;
    let sessions = Sessions::of(&args.sessions, context)?;
    let listing = sessions.chosen(Some(&args.session))?;
    let options = sessions.options(&super::args::Heads::default(), None, context)?;
    let Some(of) = listing.conversations.first() else { return Ok(Exit::NOTHING) };
    if !args.dry_run && !args.yes {
        let what = format!(
            "{} of `{}` will count as written, though nothing of them need be in memory.",
            count(args.nodes.len() as u64, "node", "nodes"),
            args.session
        );
        confirmed(context, &what)?;
    }
    let _lock = (!args.dry_run).then(|| lock(context)).transpose()?;
    let (mut conversation, _) = sessions.open(&mut session, of, &options).map_err(failed)?;
    if args.dry_run {
        // Whether each can be marked shows when it is.
        let document = MarkDocument { session: &of.id, dry_run: true, marked: &args.nodes, left: Vec::new() };
        let text = format!("{} would be marked", count(args.nodes.len() as u64, "node", "nodes"));
        show(context, &document, &text);
        return Ok(Exit::DONE);
    }
    let marked = conversation.mark(&mut session, &*sessions.store, &of.id, &args.nodes).map_err(failed)?;
    let left = marked.left.iter().map(|(node, fault)| LeftView { node, message: fault.to_string() }).collect();
    let document = MarkDocument { session: &of.id, dry_run: false, marked: &marked.done, left };
    show(context, &document, &format!("{} marked", count(marked.done.len() as u64, "node is", "nodes are")));
    for (node, fault) in &marked.left {
        context.warn(&format!("`{node}` is not marked: {fault}"));
    }
    Ok(if marked.left.is_empty() { Exit::DONE } else { Exit::NOTHING })
}

#[derive(Serialize)]
struct MigratedView<'a> {
    session: &'a str,
    nodes: u64,
    marked: u64,
}

#[derive(Serialize)]
struct MigrateTotals<'a> {
    /// There was something to do
    cursors: bool,
    dry_run: bool,
    /// All marks are made, and the cursors are gone
    finished: bool,
    unavailable: Vec<UnavailableView<'a>>,
}

fn migrate(args: &Migrate, context: &Context) -> Result<Exit, Failure> {
    let mut session = context.session()?;
    let sessions = Sessions::of(&args.sessions, context)?;
    let listing = sessions.list()?;
    let options = sessions.options(&super::args::Heads::default(), None, context)?;
    let _lock = (!args.dry_run && !context.is_absent()).then(|| lock(context)).transpose()?;
    let mut views = context.out.json.then(|| context.out.listing("sessions"));
    let mut unavailable = Unavailable::of(&listing.faults);
    let Some(mut migration) = session.migrate()? else {
        match views {
            Some(views) => views.finish(&MigrateTotals {
                cursors: false,
                dry_run: args.dry_run,
                finished: false,
                unavailable: unavailable.views(),
            }),
            None => context.hint("There are no cursors: nothing is to be done."),
        }
        return Ok(Exit::DONE);
    };
    let (mut complete, mut total) = (listing.faults.is_empty(), 0);
    for of in &listing.conversations {
        let opened = sessions.open(&mut session, of, &options);
        let mut conversation = match opened {
            Ok((conversation, _)) => conversation,
            Err(error) => {
                unavailable.add(of, error, false)?;
                complete = false;
                continue;
            }
        };
        let nodes = migration.nodes(&mut session, &conversation)?;
        let mut done = 0;
        if !args.dry_run && !nodes.is_empty() {
            let marked = conversation.mark(&mut session, &*sessions.store, &of.id, &nodes).map_err(failed)?;
            done = marked.done.len() as u64;
            complete &= marked.left.is_empty();
            for (node, fault) in &marked.left {
                context.warn(&format!("{}: `{node}` is not marked: {fault}", of.id));
            }
        }
        total += nodes.len() as u64;
        match &mut views {
            Some(views) => views.item(&MigratedView { session: &of.id, nodes: nodes.len() as u64, marked: done }),
            None if !nodes.is_empty() => {
                let verb = if args.dry_run { "to be marked" } else { "marked" };
                let id = context.out.look.foreign(&of.id);
                context.out.line(&format!("{id}: {} {verb}", count(nodes.len() as u64, "node", "nodes")));
            }
            None => {}
        }
    }
    let finished = complete && !args.dry_run;
    if finished {
        migration.finish(&mut session)?;
    }
    match views {
        Some(views) => views.finish(&MigrateTotals {
            cursors: true,
            dry_run: args.dry_run,
            finished,
            unavailable: unavailable.views(),
        }),
        None if args.dry_run => context.hint(&format!("{} would be marked.", count(total, "node", "nodes"))),
        None if finished => context.hint("All marks are made; the cursors are gone."),
        None => context.warn("not every conversation is marked: the cursors stay, and repeating the call goes on"),
    }
    unavailable.tell(context);
    Ok(if complete { Exit::DONE } else { Exit::NOTHING })
}

/// Keeps other writers of turns away.
fn lock(context: &Context) -> Result<WriterLock, Failure> {
    WriterLock::acquire(&context.setup.workspace, WRITER_LOCK, context.setup.lock_wait_ms()?).map_err(|error| {
        match error {
            recollex::lock::LockError::Held(_) => Failure::locked("another program is writing turns into this memory"),
            error => error.into(),
        }
    })
}

/// Asks, or refuses where nobody can be asked.
fn confirmed(context: &Context, what: &str) -> Result<(), Failure> {
    if !std::io::stdin().is_terminal() || !std::io::stderr().is_terminal() {
        return Err(Failure::usage("unconfirmed", what).next("if that is meant: --yes"));
    }
    context.out.flush();
    let mut stderr = std::io::stderr().lock();
    let mut answer = String::new();
    // An answer that cannot be asked for is no.
    let asked = write!(stderr, "{} Go on? [y/N] ", escape_line(what)).and_then(|()| stderr.flush());
    let answered = asked.and_then(|()| std::io::stdin().read_line(&mut answer));
    match answered.is_ok() && matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes") {
        true => Ok(()),
        false => Err(Failure::usage("unconfirmed", "nothing was done").exit(Exit::REFUSED)),
    }
}

fn show(context: &Context, document: &impl Serialize, text: &str) {
    match context.out.json {
        true => context.out.document(document),
        false => context.out.line(text),
    }
}

fn warn(context: &Context, session: &str, findings: &[Finding]) {
    for finding in findings {
        let place = crate::cli::status::place(finding.path.as_deref(), finding.line);
        context.warn(&format!("{session}: {place}{} [{}]", finding.message, finding.code));
    }
}
