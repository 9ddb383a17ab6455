//! What came of an import: told conversation by conversation as it comes (`--json`), or counted for people at the end.
//!
//! Knows what the component answers. What it holds does not grow with the export: reasons are a closed list, and of each
//! only a few messages and the first few cases are named.

use std::collections::BTreeMap;

use recollex::types::{Problem, Trust};
use recollex::workspace::{ImportOptions, ImportedConversation, Skipped};
use serde::Serialize;

use super::source::LeftOut;
use super::{is_empty, looks};
use crate::cli::context::Context;
use crate::cli::failure::{Exit, Failure, FailureBody, Reason};
use crate::cli::terminal::{Look, bytes, columns, count, one_line};

/// Messages of a reason that are told.
const KINDS_MAX: usize = 3;
/// Cases that are named, of each message of a reason.
const NAMED_MAX: usize = 3;
/// Reasons that are not about a conversation but about a place in a file that holds none.
const DAMAGE: [&str; 5] =
    ["damaged-export", "truncated-export", "no-conversation", "unreadable-lines", "not-a-node-file"];
/// Characters of a title that are shown.
const TITLE_CHARS: usize = 40;
/// Ids of a conversation whose content differs that are named to people.
const DIFFERS_NAMED_MAX: usize = 2;

/// How it ended.
pub enum End {
    /// Everything was read.
    Done,
    /// Somebody asked to stop, and the process ends so.
    Stopped(Exit),
    /// It could not go on.
    Failed(Failure),
}

/// What came of an import.
pub struct Ledger<'c> {
    context: &'c Context,
    format: &'static str,
    trust: Trust,
    dry_run: bool,
    files: u64,
    bytes: u64,
    conversations: Conversations,
    records: Records,
    branched: u64,
    reasons: BTreeMap<(What, String), Cases>,
    /// A record was left out that is missed.
    is_missing: bool,
}

/// Conversations by what became of them; each counts once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
struct Conversations {
    /// With something new in them.
    kept: u64,
    /// All of it was there.
    already: u64,
    /// Something was there with other content.
    differs: u64,
    /// With nothing to keep in them.
    empty: u64,
    /// Nothing of it could be kept.
    left_out: u64,
}

/// Records by what became of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
struct Records {
    archived: u64,
    already: u64,
    differs: u64,
    /// Left out: see the reasons.
    skipped: u64,
}

/// What a reason is about. In the order in which they are told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
enum What {
    File,
    /// A place in a file that holds no conversation.
    Damage,
    Conversation,
    Differs,
    Record,
}

/// How often a reason came, and what was said of it.
#[derive(Debug, Default)]
struct Cases {
    count: u64,
    /// The first messages, each once.
    kinds: Vec<Kind>,
    /// There were more messages than are told.
    more: bool,
}

/// A message of a reason, how often it came, and the first cases.
#[derive(Debug, Default)]
struct Kind {
    message: String,
    count: u64,
    named: Vec<String>,
}

impl Kind {
    /// The first cases as people read them.
    fn cases(&self, look: Look) -> String {
        let mut named: Vec<String> = self.named.iter().map(|name| look.foreign(&one_line(name))).collect();
        if self.count > named.len() as u64 {
            named.push("…".to_owned());
        }
        look.faint(&named.join(", "))
    }
}

impl Cases {
    /// What was said, in one text.
    fn messages(&self) -> String {
        let all: Vec<&str> = self.kinds.iter().map(|kind| kind.message.as_str()).collect();
        all.join("; or: ") + if self.more { "; or …" } else { "" }
    }
}

impl<'c> Ledger<'c> {
    /// Nothing has come yet.
    pub fn new(context: &'c Context, options: &ImportOptions) -> Self {
        Self {
            context,
            format: looks::name(options.format),
            trust: options.trust,
            dry_run: options.dry_run,
            files: 0,
            bytes: 0,
            conversations: Conversations::default(),
            records: Records::default(),
            branched: 0,
            reasons: BTreeMap::new(),
            is_missing: false,
        }
    }

    /// A file is being read.
    pub fn file(&mut self) {
        self.files += 1;
    }

    /// So much of it was read.
    pub fn bytes(&mut self, bytes: u64) {
        self.bytes += bytes;
    }

    /// Whether anything is there now that was not before.
    pub fn has_kept(&self) -> bool {
        self.records.archived > 0
    }

    /// A file could not be read.
    pub fn left_out(&mut self, left_out: &LeftOut) {
        self.note(What::File, left_out.reason, &left_out.message, 1, || Some(left_out.file.clone()));
        if self.context.out.json {
            self.context.out.document(&FileLine {
                kind: "file",
                file: &left_out.file,
                reason: left_out.reason,
                message: &left_out.message,
            });
        }
    }

    /// These came out of the component.
    pub fn conversations(&mut self, all: &[ImportedConversation]) {
        for it in all {
            self.count(it);
            if self.context.out.json {
                self.context.out.document(&ConversationLine::from(it));
            }
        }
        if !all.is_empty() && !self.dry_run {
            self.context.out.stands(format!("{} for good", kept(&self.records)));
        }
        if self.context.out.json && !all.is_empty() {
            self.context.out.flush();
        }
    }

    fn count(&mut self, it: &ImportedConversation) {
        if !is_damage(it) {
            let tally = &mut self.conversations;
            let of = if it.problem.is_some() {
                &mut tally.left_out
            } else if !it.differs.is_empty() {
                &mut tally.differs
            } else if it.archived > 0 {
                &mut tally.kept
            } else if is_empty(it) {
                &mut tally.empty
            } else {
                &mut tally.already
            };
            *of += 1;
        }
        self.branched += u64::from(it.branches > 1);
        self.records.archived += it.archived;
        self.records.already += it.already;
        self.records.differs += it.differs.len() as u64;
        self.records.skipped += it.left_out.iter().map(|one| one.count).sum::<u64>();
        if let Some(problem) = &it.problem {
            let what = if is_damage(it) { What::Damage } else { What::Conversation };
            self.note(what, &problem.reason, &problem.message, 1, || Some(with_place(name(it), problem)));
        }
        if !it.differs.is_empty() {
            let message = "the id is there with other content; the first stays";
            let named = it.differs.iter().take(DIFFERS_NAMED_MAX).cloned().collect::<Vec<_>>().join(", ");
            self.note(What::Differs, "already-archived-differs", message, it.differs.len() as u64, || Some(named));
        }
        for left_out in &it.left_out {
            self.is_missing |= left_out.missing;
            let mut rest = left_out.count;
            for skipped in it.skipped.iter().filter(|skipped| skipped.reason == left_out.reason) {
                let named =
                    || Some(skipped.item.as_ref().map_or_else(|| name(it), |item| format!("{item} of {}", name(it))));
                self.note(What::Record, &left_out.reason, &skipped.message, 1, named);
                rest = rest.saturating_sub(1);
            }
            if rest > 0 {
                // Of those that are not named it is known what was said of all.
                let is_first = rest == left_out.count;
                self.note(What::Record, &left_out.reason, &left_out.message, rest, || is_first.then(|| name(it)));
            }
        }
    }

    fn note(&mut self, what: What, reason: &str, message: &str, count: u64, named: impl FnOnce() -> Option<String>) {
        let cases = self.reasons.entry((what, reason.to_owned())).or_default();
        cases.count += count;
        let at = cases.kinds.iter().position(|kind| kind.message == message);
        if at.is_none() && cases.kinds.len() < KINDS_MAX {
            cases.kinds.push(Kind { message: message.to_owned(), ..Kind::default() });
        }
        let last = cases.kinds.len().saturating_sub(1);
        let known = cases.kinds.get_mut(at.unwrap_or(last)).filter(|kind| kind.message == message);
        let Some(kind) = known else {
            cases.more = true;
            return;
        };
        kind.count += count;
        if kind.named.len() < NAMED_MAX {
            kind.named.extend(named());
        }
    }

    /// Tells the end, and how the process ends.
    pub fn finish(self, end: &End) -> Exit {
        let exit = match end {
            End::Stopped(exit) => *exit,
            End::Failed(failure) => failure.exit,
            End::Done if self.files == 0 && self.conversations == Conversations::default() => {
                super::source::NOTHING_READ
            }
            End::Done if self.is_incomplete() => Exit::NOTHING,
            End::Done => Exit::DONE,
        };
        let out = &self.context.out;
        if out.json {
            out.document(&self.summary(exit, end));
        } else {
            self.lines(end).iter().for_each(|line| out.line(line));
        }
        match end {
            End::Stopped(_) => {
                self.context.hint("Stopped. What was kept stays; the same call again goes on from there.")
            }
            End::Failed(failure) => {
                out.flush();
                self.context.remarks.failure(failure);
            }
            End::Done if self.trust == Trust::Pending && self.has_kept() && !self.dry_run => {
                self.context.hint("What was kept now is pending: it is found, but nothing is built on it yet.");
            }
            End::Done => {}
        }
        exit
    }

    /// Whether something is not there that was to be kept.
    fn is_incomplete(&self) -> bool {
        self.is_missing || self.reasons.keys().any(|(what, _)| *what != What::Record)
    }

    fn summary<'a>(&'a self, exit: Exit, end: &'a End) -> Summary<'a> {
        Summary {
            kind: "summary",
            ok: exit == Exit::DONE,
            format: self.format,
            dry_run: self.dry_run,
            stopped: matches!(end, End::Stopped(_)),
            files: self.files,
            bytes: self.bytes,
            conversations: self.conversations,
            branched: self.branched,
            records: self.records,
            reasons: self
                .reasons
                .iter()
                .map(|((what, reason), cases)| ReasonLine {
                    what: *what,
                    reason,
                    count: cases.count,
                    message: cases.messages(),
                    first: cases.kinds.iter().flat_map(|kind| &kind.named).take(NAMED_MAX).map(|it| &**it).collect(),
                })
                .collect(),
            error: match end {
                End::Failed(failure) => Some(failure.body()),
                _ => None,
            },
        }
    }

    /// For people: what was read, what became of it, and why not of all.
    fn lines(&self, end: &End) -> Vec<String> {
        let look = self.context.out.look;
        let tally = &self.conversations;
        let all = tally.kept + tally.already + tally.differs + tally.empty + tally.left_out;
        let head = format!(
            "{}: {}, {}, {}",
            self.format,
            count(self.files, "file", "files"),
            bytes(self.bytes),
            count(all, "conversation", "conversations"),
        );
        let mut lines = vec![head];
        let kept = if self.dry_run { "would be kept" } else { "kept" };
        let rows = [
            (kept, tally.kept, self.records.archived),
            ("there already", tally.already, self.records.already),
            ("with other content", tally.differs, self.records.differs),
            ("with nothing to keep", tally.empty, 0),
            ("left out", tally.left_out, self.records.skipped),
        ];
        let rows: Vec<[String; 3]> = rows
            .into_iter()
            .filter(|(_, conversations, records)| conversations + records > 0)
            .map(|(name, conversations, records)| {
                let records = if records > 0 { count(records, "record", "records") } else { String::new() };
                let conversations = if conversations > 0 {
                    count(conversations, "conversation", "conversations")
                } else {
                    String::new()
                };
                [name.to_owned(), conversations, records]
            })
            .collect();
        lines.extend(table(&rows));
        if self.branched > 0 {
            let many = count(self.branched, "conversation has", "conversations have");
            lines.push(format!("  {many} branches; all of them count"));
        }
        let mut last = None;
        for ((what, reason), cases) in &self.reasons {
            if last.replace(*what) != Some(*what) {
                lines.push(String::new());
                lines.push(look.strong(match what {
                    What::File => "Files left out:",
                    What::Damage => "Places in files that hold no conversation:",
                    What::Conversation => "Conversations left out:",
                    What::Differs => "There with other content:",
                    What::Record => "Records left out:",
                }));
            }
            let tag = look.faint(&format!("[{reason}]"));
            let message = |kind: &Kind| look.foreign(&one_line(&kind.message));
            match &*cases.kinds {
                [kind] if !cases.more => {
                    lines.push(format!("  {}  {} {tag}", grouped(cases.count), message(kind)));
                    lines.push(format!("      {}", kind.cases(look)));
                }
                kinds => {
                    lines.push(format!("  {}  {tag}", grouped(cases.count)));
                    lines.extend(kinds.iter().map(|kind| format!("      {}: {}", message(kind), kind.cases(look))));
                    lines.extend(cases.more.then(|| "      …".to_owned()));
                }
            }
        }
        if self.dry_run && !matches!(end, End::Failed(_)) {
            lines.push(String::new());
            lines.push("Nothing was written (--dry-run).".to_owned());
        }
        lines
    }
}

/// `41 records kept`
fn kept(records: &Records) -> String {
    format!("{} kept", count(records.archived, "record", "records"))
}

/// A count without a noun.
fn grouped(n: u64) -> String {
    count(n, "", "").trim_end().to_owned()
}

/// Rows of which the first column is words and the others are figures.
fn table(rows: &[[String; 3]]) -> Vec<String> {
    let width = |column: usize| {
        rows.iter().filter_map(|row| row.get(column)).map(|cell| columns(cell)).max().unwrap_or_default()
    };
    let widths = [width(0), width(1), width(2)];
    rows.iter()
        .map(|[name, conversations, records]| {
            let [a, b, c] = widths;
            format!("  {name:<a$}  {conversations:>b$}  {records:>c$}").trim_end().to_owned()
        })
        .collect()
}

/// Whether it is no conversation but a place in a file that holds none.
fn is_damage(it: &ImportedConversation) -> bool {
    it.problem.as_ref().is_some_and(|problem| DAMAGE.contains(&&*problem.reason))
}

/// A case with what is in its way, if something is that has a name.
fn with_place(case: String, problem: &Problem) -> String {
    match problem.subject.as_ref().filter(|_| problem.path.is_some()).or(problem.path.as_ref()) {
        Some(place) => format!("{case} ({place})"),
        None => case,
    }
}

/// A conversation for people: its title, and what finds it.
fn name(it: &ImportedConversation) -> String {
    let place = match (it.thread.is_empty(), it.offset) {
        (true, 0) => it.file.clone(),
        (true, offset) => format!("{} at byte {offset}", it.file),
        (false, _) => format!("{}/{}", it.provider, it.thread),
    };
    match it.title.as_deref().map(one_line).filter(|title| !title.is_empty()) {
        Some(title) => {
            let mut short: String = title.chars().take(TITLE_CHARS).collect();
            if short.len() < title.len() {
                short.push('…');
            }
            format!("“{short}” ({place})")
        }
        None => place,
    }
}

/// A conversation in `--json`, or a place in a file that holds none.
#[derive(Serialize)]
struct ConversationLine<'a> {
    kind: &'static str,
    file: &'a str,
    offset: u64,
    provider: &'a str,
    thread: &'a str,
    title: Option<&'a str>,
    archived: u64,
    already: u64,
    differs: &'a [String],
    branches: u64,
    skipped: Vec<SkippedView<'a>>,
    skipped_count: u64,
    left_out: Vec<LeftOutView<'a>>,
    problem: Option<Reason>,
}

/// How much was left out for one reason.
#[derive(Serialize)]
struct LeftOutView<'a> {
    reason: &'a str,
    count: u64,
    missing: bool,
}

#[derive(Serialize)]
struct SkippedView<'a> {
    item: Option<&'a str>,
    reason: &'a str,
    message: &'a str,
}

impl<'a> From<&'a ImportedConversation> for ConversationLine<'a> {
    fn from(it: &'a ImportedConversation) -> Self {
        let skipped =
            |it: &'a Skipped| SkippedView { item: it.item.as_deref(), reason: &it.reason, message: &it.message };
        Self {
            kind: if is_damage(it) { "damage" } else { "conversation" },
            file: &it.file,
            offset: it.offset,
            provider: &it.provider,
            thread: &it.thread,
            title: it.title.as_deref(),
            archived: it.archived,
            already: it.already,
            differs: &it.differs,
            branches: it.branches,
            skipped: it.skipped.iter().map(skipped).collect(),
            skipped_count: it.left_out.iter().map(|one| one.count).sum(),
            left_out: it
                .left_out
                .iter()
                .map(|one| LeftOutView { reason: &one.reason, count: one.count, missing: one.missing })
                .collect(),
            problem: it.problem.as_ref().map(|problem: &Problem| Reason::from(problem)),
        }
    }
}

/// A file that was left out, in `--json`.
#[derive(Serialize)]
struct FileLine<'a> {
    kind: &'static str,
    file: &'a str,
    reason: &'a str,
    message: &'a str,
}

/// The last line of `--json`.
#[derive(Serialize)]
struct Summary<'a> {
    kind: &'static str,
    ok: bool,
    format: &'static str,
    dry_run: bool,
    stopped: bool,
    files: u64,
    bytes: u64,
    conversations: Conversations,
    /// Conversations with more than one branch.
    branched: u64,
    records: Records,
    reasons: Vec<ReasonLine<'a>>,
    /// Why it could not go on.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<FailureBody<'a>>,
}

/// A reason, how often it came, and the first cases.
#[derive(Serialize)]
struct ReasonLine<'a> {
    what: What,
    reason: &'a str,
    count: u64,
    /// Of several messages the first few.
    message: String,
    first: Vec<&'a str>,
}
