//! `recollex archive`: keeps turns as evidence.
//!
//! Without `--chunk` the whole input is one batch, so that nothing is archived if any line is bad. With it the input is
//! read once, whatever its size: turns are gathered by conversation and handed over whenever a batch's worth is there.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, BufRead, BufReader, IsTerminal};
use std::path::Path;

use recollex::workspace::{Archived, ImportFormat, Outcome, Turn};
use recollex::{Error, Session};
use serde::Serialize;

use super::args::Archive;
use super::context::Context;
use super::failure::{Exit, Failure, NOT_A_DIRECTORY, PATH_COLLISION};
use super::import::{self, Looks, looks};
use super::input;
use super::output::{Listing, Progress, Unit};
use super::terminal::{count, escape_line};
use super::turns::{Defaults, Turns, meant};
use super::views::TurnView;

/// What came of all batches.
#[derive(Debug, Default, Serialize)]
pub struct Totals {
    /// New records.
    pub archived: u64,
    /// Records that were there.
    pub already: u64,
    /// Ids that were there with other content.
    pub differs: Vec<String>,
    /// Of the workspace afterwards; none if nothing was handed over.
    pub revision: Option<String>,
}

/// A chunked call that stopped: what was done, and why no more.
#[derive(Serialize)]
struct Stopped<'a> {
    #[serde(flatten)]
    totals: &'a Totals,
    #[serde(flatten)]
    failure: super::failure::FailureDocument<'a>,
}

/// Text that one batch may hold where the setting `limits.batch-bytes` does not say otherwise (decision of the format: a
/// batch is at most 64 MiB). The component enforces it; here it only decides where a chunk ends.
const BATCH_BYTES: u64 = 64 << 20;
/// What a record takes at most beside what its turn says, and at least.
const RECORD_BYTES: u64 = 512;
const RECORD_BYTES_MIN: u64 = 128;
/// The setting for it.
const BATCH_SETTING: &str = "limits.batch-bytes";
/// So many unknown keys are named, and so much of each: they come from the input.
const UNKNOWN_MAX: usize = 20;
const KEY_CHARS_MAX: usize = 60;
/// Of a call that was stopped.
const STAYS: &str = "what was committed stays, and repeating the call is safe";
/// For input that is too much at a time.
const CHUNK: &str = "archive in several batches: --chunk";

/// Runs the verb.
pub fn run(args: &Archive, context: &Context) -> Result<Exit, Failure> {
    // Memory that is off, or a setting that is wrong, is told before a byte of input is read.
    let mut session = context.session()?;
    let is_new = context.is_absent();
    let (result, totals, listing) = keep(args, context, &mut session)?;
    if is_new && totals.archived > 0 {
        // A mistyped directory must not go unnoticed.
        context.hint(&format!("Made a workspace in {}", context.setup.workspace.display()));
    }
    match (result, listing) {
        (Ok(()), listing) => {
            if context.out.json {
                listing.unwrap_or_else(|| context.out.listing("records")).finish(&totals);
            } else {
                context.out.line(&summary(&totals));
            }
            Ok(if totals.differs.is_empty() { Exit::DONE } else { Exit::NOTHING })
        }
        (Err(failure), listing) => {
            if totals.revision.is_some() {
                let before = summary(&totals);
                context.hint(&format!("Before that: {before}. Repeating the call skips what is there."));
            }
            // A document that has begun ends with the error in it.
            let Some(listing) = listing else { return Err(failure) };
            listing.finish(&Stopped { totals: &totals, failure: failure.document() });
            context.remarks.failure(&failure);
            Ok(failure.exit)
        }
    }
}

/// Reads the turns and keeps them. Beside how it ended: what was kept until then, and the JSON document that was begun.
///
/// # Errors
/// The input cannot be opened.
#[allow(clippy::type_complexity, reason = "three parts that only the caller above takes apart")]
pub fn keep<'a>(
    args: &Archive,
    context: &'a Context,
    session: &mut Session,
) -> Result<(Result<(), Failure>, Totals, Option<Listing<'a>>), Failure> {
    let mut input = Input::open(args.file.as_deref(), context)?;
    // What cannot be read shows when it is read.
    let export = input.stream.fill_buf().ok().and_then(looks);
    let progress = context.remarks.progress("archive", input.size, Unit::Bytes);
    let defaults = Defaults { provider: args.provider.clone(), thread: args.thread.clone() };
    let mut keeper = Keeper {
        context,
        session,
        name: &input.name,
        chunked: args.chunk,
        listing: None,
        totals: Totals::default(),
        unknown: Unknown::default(),
    };
    let turns = Turns::new(input.stream, defaults);
    let result =
        if args.chunk { in_chunks(turns, &progress, &mut keeper) } else { at_once(turns, &progress, &mut keeper) };
    let Keeper { listing, totals, .. } = keeper;
    let result = result.map_err(|failure| match export {
        Some(Looks::Export(format)) if failure.exit == Exit::USAGE && format != ImportFormat::Jsonl => {
            let (title, name) = (import::title(format), import::name(format));
            failure.next(format!("this looks like {title}: take it in with `recollex import {name}`"))
        }
        Some(Looks::Zip) if failure.exit == Exit::USAGE => {
            failure.next("this is a zip archive: `recollex import` takes in those that other programs export")
        }
        _ => failure,
    });
    Ok((result, totals, listing))
}

/// `3 turns archived, 2 there already`
pub fn summary(totals: &Totals) -> String {
    let mut text = format!("{} archived", count(totals.archived, "turn", "turns"));
    if totals.already > 0 {
        text.push_str(&format!(", {} there already", totals.already));
    }
    if !totals.differs.is_empty() {
        text.push_str(&format!(", {} not: the id is there with other content", totals.differs.len()));
    }
    text
}

/// Where turns come from.
struct Input {
    name: String,
    stream: Box<dyn BufRead>,
    /// Bytes; 0: not known.
    size: u64,
}

impl Input {
    fn open(file: Option<&Path>, context: &Context) -> Result<Self, Failure> {
        match file.filter(|path| *path != Path::new("-")) {
            None => {
                let stdin = input::stdin()?;
                if stdin.is_terminal() {
                    context.hint("Reading turns from the terminal, one JSON object a line; end with Ctrl-D.");
                }
                Ok(Self {
                    name: "stdin".to_owned(),
                    stream: Box::new(BufReader::with_capacity(256 << 10, stdin)),
                    size: 0,
                })
            }
            Some(path) => {
                let fail = |error: io::Error| Failure::io("read the turns", path, &error);
                let file = input::open(path, "turns")?;
                let metadata = file.metadata().map_err(fail)?;
                let stream = Box::new(BufReader::with_capacity(256 << 10, file));
                Ok(Self { name: path.display().to_string(), stream, size: metadata.len() })
            }
        }
    }
}

/// Hands batches over and keeps account.
struct Keeper<'c, 's> {
    context: &'c Context,
    session: &'s mut Session,
    name: &'s str,
    chunked: bool,
    listing: Option<Listing<'c>>,
    totals: Totals,
    unknown: Unknown,
}

impl Keeper<'_, '_> {
    fn batch_bytes(&self) -> u64 {
        let set = self.context.setup.settings.get(BATCH_SETTING);
        set.and_then(|(value, _)| value.parse().ok()).unwrap_or(BATCH_BYTES)
    }

    /// One batch. `lines` are those of the turns, in the same order.
    fn keep(&mut self, turns: &[Turn], lines: &[u64]) -> Result<(), Failure> {
        let what = format!("archive ({})", count(turns.len() as u64, "turn", "turns"));
        let archived = self
            .context
            .time(&what, || self.session.archive(turns))
            .map_err(|error| advised(located(error, lines, self.name), turns, lines, self.name, self.chunked))?;
        self.account(&archived);
        self.context.out.stands(format!("{} for good", summary(&self.totals)));
        Ok(())
    }

    /// Says of keys that mean nothing. What a misspelt one was to say is taken for not said, and an unsaid trust is the
    /// greater one: that must be seen.
    fn note(&mut self, keys: &[String], line: u64) {
        for key in keys {
            if let Some(text) = self.unknown.note(key, line) {
                self.context.warn(&text);
            }
        }
    }

    fn account(&mut self, archived: &Archived) {
        for turn in &archived.turns {
            match turn.outcome {
                Outcome::Archived => self.totals.archived += 1,
                Outcome::Already => self.totals.already += 1,
                Outcome::Differs => {
                    self.totals.differs.push(turn.id.clone());
                    let digests = turn.digests.as_ref().map_or_else(String::new, |(kept, offered)| {
                        format!(" (kept {}, offered {})", short(kept), short(offered))
                    });
                    self.context.warn(&format!(
                        "{} is archived with other content{digests}; the first stays. Give the new one an id of its own. [already-archived-differs]",
                        turn.id
                    ));
                }
            }
            if self.context.out.json {
                self.listing.get_or_insert_with(|| self.context.out.listing("records")).item(&TurnView::from(turn));
            }
        }
        self.totals.revision = Some(archived.revision.clone());
    }
}

/// Keys that mean nothing and were seen.
#[derive(Default)]
struct Unknown(BTreeSet<String>);

impl Unknown {
    /// What to say of a key, the first time.
    fn note(&mut self, key: &str, line: u64) -> Option<String> {
        if self.0.len() > UNKNOWN_MAX || self.0.contains(key) {
            return None;
        }
        self.0.insert(key.to_owned());
        if self.0.len() > UNKNOWN_MAX {
            return Some(format!("line {line} and others have further fields that mean nothing; they are ignored"));
        }
        let mut shown: String = key.chars().take(KEY_CHARS_MAX).collect();
        if shown.len() < key.len() {
            shown.push('…');
        }
        let mut text = format!("line {line}: the field `{}` means nothing and is ignored", escape_line(&shown));
        if let Some(known) = meant(key) {
            text.push_str(&format!(": did you mean `{known}`?"));
        }
        Some(text)
    }
}

fn short(digest: &str) -> &str {
    digest.get(..12).unwrap_or(digest)
}

fn at_once(
    mut turns: Turns<Box<dyn BufRead>>,
    progress: &Progress<'_>,
    keeper: &mut Keeper<'_, '_>,
) -> Result<(), Failure> {
    let limit = keeper.batch_bytes();
    let (mut batch, mut lines, mut bytes) = (Vec::new(), Vec::new(), 0_u64);
    while let Some(mut next) = turns.next().map_err(|failure| failure.at_path(keeper.name))? {
        next.turn.ordinal = ordinal(lines.len());
        let least = next.turn.text.len() as u64 + RECORD_BYTES_MIN;
        bytes += least;
        // The component would say the same, but only after all of it was read, however long it is.
        if least > limit {
            let failure = Failure::limit(
                BATCH_SETTING,
                format!("this turn alone holds more than the {limit} bytes that one batch may; nothing was archived"),
            );
            return Err(failure.at_path(keeper.name).at_line(next.line).next(raise(&next.turn)));
        }
        if bytes > limit {
            let failure = Failure::limit(
                BATCH_SETTING,
                format!(
                    "the turns up to here hold more than the {limit} bytes that one batch may; nothing was archived"
                ),
            );
            return Err(failure.at_path(keeper.name).at_line(next.line).next(CHUNK));
        }
        keeper.note(&next.unknown, next.line);
        batch.push(next.turn);
        lines.push(next.line);
        progress.set(turns.bytes());
    }
    keeper.keep(&batch, &lines)
}

/// Turns that wait, by conversation.
type Waiting = BTreeMap<(String, String), (Vec<Turn>, Vec<u64>)>;

fn in_chunks(
    mut turns: Turns<Box<dyn BufRead>>,
    progress: &Progress<'_>,
    keeper: &mut Keeper<'_, '_>,
) -> Result<(), Failure> {
    let limit = keeper.batch_bytes();
    let mut waiting = Waiting::new();
    let (mut bytes, mut number) = (0_u64, 0_usize);
    while let Some(mut next) = turns.next().map_err(|failure| failure.at_path(keeper.name))? {
        next.turn.ordinal = ordinal(number);
        number += 1;
        let cost = cost(&next.turn);
        if bytes + cost > limit && bytes > 0 {
            flush(&mut waiting, keeper)?;
            bytes = 0;
        }
        bytes += cost;
        keeper.note(&next.unknown, next.line);
        let key = (next.turn.provider.clone(), next.turn.thread.clone());
        let (batch, lines) = waiting.entry(key).or_default();
        batch.push(next.turn);
        lines.push(next.line);
        progress.set(turns.bytes());
    }
    flush(&mut waiting, keeper)
}

fn flush(waiting: &mut Waiting, keeper: &mut Keeper<'_, '_>) -> Result<(), Failure> {
    for (batch, lines) in std::mem::take(waiting).into_values() {
        keeper.keep(&batch, &lines)?;
    }
    Ok(())
}

/// What a turn may take in a batch, never too low, so that a chunk is never refused for its size unless one turn alone
/// is too large. Names may be written in a longer form than they came in: percent-encoded, or escaped and in base64.
fn cost(turn: &Turn) -> u64 {
    let length = |text: &Option<String>| text.as_ref().map_or(0, String::len);
    let plain = turn.provider.len() + turn.thread.len() + turn.id.len() + 3 * turn.role.len() + length(&turn.time);
    let speaker = 6 * length(&turn.speaker_id) + 3 * length(&turn.speaker_display);
    let metadata = 8 * (length(&turn.speaker_kind) + length(&turn.principal));
    (turn.text.len() + plain + speaker + metadata) as u64 + RECORD_BYTES
}

/// A turn's place in the input.
fn ordinal(at: usize) -> i64 {
    i64::try_from(at).unwrap_or(i64::MAX)
}

/// How to let a turn in that is too large for a batch.
fn raise(turn: &Turn) -> String {
    format!("raise the limit: --set {BATCH_SETTING}={}; or split the turn", cost(turn))
}

/// What helps against a limit, by what was asked for: fewer turns at a time cost less of anything, but one turn cannot be
/// divided.
fn advised(mut failure: Failure, turns: &[Turn], lines: &[u64], input: &str, chunked: bool) -> Failure {
    let divisible = turns.len() > 1 && !chunked;
    if failure.code == "LIMIT_REACHED" && failure.reason == BATCH_SETTING {
        return match (turns, lines) {
            ([turn], [line]) => failure.at_path(input).at_line(*line).next(raise(turn)),
            _ if divisible => failure.next(CHUNK),
            _ => failure,
        };
    }
    if failure.exit != Exit::LIMIT {
        return failure;
    }
    // The component was stopped, perhaps behind a commit.
    let mut next = STAYS.to_owned();
    if let Some(advice) = failure.next.take() {
        next.push_str(&format!("; {advice}"));
    }
    if divisible && failure.code == "HOST_LIMIT_REACHED" {
        next.push_str(&format!(", or {CHUNK}"));
    }
    if let ([_], [line]) = (turns, lines) {
        failure = failure.at_path(input).at_line(*line);
    }
    failure.next(next)
}

/// Names the lines of the turns that were refused: the component counts turns, the caller lines. What is about a file of
/// the workspace keeps that file's path and line, unless a turn is named that would have made it.
fn located(error: Error, lines: &[u64], input: &str) -> Failure {
    let place = |reason: &str, path: &mut Option<String>, line: &mut Option<u64>| {
        if (path.is_none() || [PATH_COLLISION, NOT_A_DIRECTORY].contains(&reason))
            && let Some(number) = *line
        {
            let at = usize::try_from(number).ok().and_then(|number| number.checked_sub(1));
            *line = at.and_then(|at| lines.get(at).copied());
            *path = line.is_some().then(|| input.to_owned());
        }
    };
    let mut failure = Failure::from(error);
    place(&failure.reason, &mut failure.path, &mut failure.line);
    for problem in &mut failure.problems {
        place(&problem.reason, &mut problem.path, &mut problem.line);
    }
    failure
}

#[cfg(test)]
mod tests {
    use recollex::types::{self, Problem};

    use super::*;

    fn problem(path: Option<&str>, line: Option<u64>) -> Problem {
        Problem {
            code: "INVALID_ARGUMENT".to_owned(),
            reason: "unsafe-source-id".to_owned(),
            path: path.map(str::to_owned),
            line,
            subject: None,
            message: "no".to_owned(),
        }
    }

    fn turn(provider: &str, thread: &str, id: &str) -> Turn {
        Turn {
            provider: provider.to_owned(),
            thread: thread.to_owned(),
            id: id.to_owned(),
            ordinal: 0,
            role: "user".to_owned(),
            text: "x".repeat(100),
            time: None,
            speaker_id: None,
            speaker_display: None,
            speaker_kind: None,
            principal: None,
            tier: None,
            trust: "trusted".to_owned(),
        }
    }

    #[test]
    fn a_deadline_says_what_stays_and_divides_only_what_can_be_divided() {
        let stopped = || Failure::from(Error::Limit { name: "deadline", allowed: 5, unit: "ms" });
        let (one, two) = ([turn("p", "t", "a")], [turn("p", "t", "a"), turn("p", "t", "b")]);
        for (turns, lines, chunked, divides) in
            [(&one[..], &[7][..], false, false), (&two, &[7, 8], false, true), (&two, &[7, 8], true, false)]
        {
            let failure = advised(stopped(), turns, lines, "stdin", chunked);
            let next = failure.next.unwrap();
            assert!(next.contains("stays") && next.contains("repeating the call is safe"), "{next}");
            assert!(next.contains("--limit deadline_ms=N"), "{next}");
            assert_eq!(next.contains("--chunk"), divides, "{next}");
            assert_eq!(failure.line.is_some(), turns.len() == 1);
        }
    }

    #[test]
    fn a_component_that_fails_is_reported_whatever_the_size() {
        let trap = Error::Trap { message: "x".to_owned(), said: None, backtrace: String::new() };
        let next = advised(trap.into(), &[turn("p", "t", "a"), turn("p", "t", "b")], &[1, 2], "stdin", false).next;
        let next = next.unwrap();
        assert!(next.contains("report") && !next.contains("--chunk"), "{next}");
    }

    #[test]
    fn a_turn_that_is_too_large_is_named_and_never_told_to_be_divided() {
        let limit = types::LimitReached { name: BATCH_SETTING.to_owned(), allowed: 9, asked: 10, subject: None };
        let error = || Failure::from(Error::from(types::Error::Limit(limit.clone())));
        for chunked in [false, true] {
            let failure = advised(error(), &[turn("p", "t", "a")], &[7], "stdin", chunked);
            assert_eq!((failure.path.as_deref(), failure.line), (Some("stdin"), Some(7)));
            let next = failure.next.unwrap();
            assert!(next.contains("--set limits.batch-bytes=") && !next.contains("--chunk"), "{next}");
        }
        let many = advised(error(), &[turn("p", "t", "a"), turn("p", "t", "b")], &[7, 8], "stdin", false);
        assert_eq!(many.next.as_deref(), Some(CHUNK));
    }

    #[test]
    fn a_collision_names_the_turn_that_needs_the_name() {
        let refused = |reason: &str, line| {
            let subject = Some("sources/p/_v2/Boat.md and other".to_owned());
            let problem =
                Problem { reason: reason.to_owned(), subject, ..problem(Some("sources/p/_v2/Boat.md"), line) };
            located(types::Error::Refused(vec![problem]).into(), &[1, 5, 9], "turns.jsonl")
        };
        for reason in [PATH_COLLISION, NOT_A_DIRECTORY] {
            let failure = refused(reason, Some(2));
            assert_eq!((failure.path.as_deref(), failure.line), (Some("turns.jsonl"), Some(5)), "{reason}");
            let failure = refused(reason, None);
            assert_eq!((failure.path.as_deref(), failure.line), (Some("sources/p/_v2/Boat.md"), None), "{reason}");
        }
        assert!(refused(PATH_COLLISION, Some(2)).message.contains("Boat.md and other"));
    }

    #[test]
    fn unknown_fields_are_said_once_and_not_without_end() {
        let mut unknown = Unknown::default();
        let said = unknown.note("Trust", 3).unwrap();
        assert!(said.starts_with("line 3: ") && said.contains("did you mean `trust`?"), "{said}");
        assert_eq!(unknown.note("Trust", 4), None);
        let said = unknown.note(&format!("a\nb{}", "x".repeat(1000)), 4).unwrap();
        assert!(!said.contains('\n') && said.len() < 200, "{said}");
        let said = (0..1000).filter_map(|n| unknown.note(&format!("key {n}"), 5)).count();
        assert_eq!(said, UNKNOWN_MAX - 2 + 1);
    }

    #[test]
    fn refused_turns_are_named_by_their_lines() {
        let refused = types::Error::Refused(vec![problem(None, Some(2)), problem(None, Some(3))]);
        let failure = located(refused.into(), &[1, 5, 9], "turns.jsonl");
        assert_eq!((failure.path.as_deref(), failure.line), (Some("turns.jsonl"), Some(5)));
        assert_eq!(failure.problems[1].line, Some(9));
    }

    #[test]
    fn faults_of_the_archive_keep_their_place() {
        let refused = types::Error::Refused(vec![problem(Some("sources/p/_v2/t.md"), Some(2))]);
        let failure = located(refused.into(), &[1, 5, 9], "turns.jsonl");
        assert_eq!((failure.path.as_deref(), failure.line), (Some("sources/p/_v2/t.md"), Some(2)));
    }

    #[test]
    fn a_turn_is_never_thought_smaller_than_its_record() {
        let turn = Turn { speaker_id: Some("算".repeat(10)), ..turn(&"预".repeat(10), "t", "m") };
        // The longest forms: `%E9%A2%84` for three bytes, base64 of JSON escapes for others.
        assert!(cost(&turn) > 100 + 3 * 60 + 500);
    }
}
