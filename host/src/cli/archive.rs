//! `recollex archive`: keeps turns as evidence.
//!
//! Without `--chunk` the whole input is one batch, so that nothing is archived if any line is bad. With it the input is
//! read once, whatever its size: turns are gathered by conversation and handed over whenever a batch's worth is there.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader, IsTerminal};
use std::path::Path;

use recollex::workspace::{Archived, Outcome, Turn};
use recollex::{Error, Session};
use serde::Serialize;

use super::args::Archive;
use super::context::Context;
use super::failure::{Exit, Failure};
use super::output::{Listing, Progress, Unit};
use super::terminal::count;
use super::turns::{Defaults, Turns};
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

/// Runs the verb.
pub fn run(args: &Archive, context: &Context) -> Result<Exit, Failure> {
    // Memory that is off, or a setting that is wrong, is told before a byte of input is read.
    let mut session = context.session()?;
    let (result, totals, listing) = keep(args, context, &mut session)?;
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
    let input = Input::open(args.file.as_deref(), context)?;
    let progress = context.remarks.progress("archive", input.size, Unit::Bytes);
    let defaults = Defaults { provider: args.provider.clone(), thread: args.thread.clone() };
    let mut keeper = Keeper { context, session, name: &input.name, listing: None, totals: Totals::default() };
    let turns = Turns::new(input.stream, defaults);
    let result =
        if args.chunk { in_chunks(turns, &progress, &mut keeper) } else { at_once(turns, &progress, &mut keeper) };
    let Keeper { listing, totals, .. } = keeper;
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
                if io::stdin().is_terminal() {
                    context.hint("Reading turns from the terminal, one JSON object a line; end with Ctrl-D.");
                }
                Ok(Self {
                    name: "stdin".to_owned(),
                    stream: Box::new(BufReader::with_capacity(256 << 10, io::stdin())),
                    size: 0,
                })
            }
            Some(path) => {
                let fail = |error: io::Error| Failure::io("read the turns", path, &error);
                let file = File::open(path).map_err(fail)?;
                let metadata = file.metadata().map_err(fail)?;
                if metadata.is_dir() {
                    return Err(fail(io::ErrorKind::IsADirectory.into()));
                }
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
    listing: Option<Listing<'c>>,
    totals: Totals,
}

impl Keeper<'_, '_> {
    fn batch_bytes(&self) -> u64 {
        let set = self.context.setup.settings.get("limits.batch-bytes");
        set.and_then(|(value, _)| value.parse().ok()).unwrap_or(BATCH_BYTES)
    }

    /// One batch. `lines` are those of the turns, in the same order.
    fn keep(&mut self, turns: &[Turn], lines: &[u64]) -> Result<(), Failure> {
        let what = format!("archive ({})", count(turns.len() as u64, "turn", "turns"));
        let archived = self
            .context
            .time(&what, || self.session.archive(turns))
            .map_err(|error| located(error, lines, self.name))?;
        self.account(&archived);
        Ok(())
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

/// Keys that mean nothing: for each name, how often and where first.
#[derive(Default)]
struct Unknown(BTreeMap<String, (u64, u64)>);

impl Unknown {
    fn note(&mut self, keys: Vec<String>, line: u64) {
        for key in keys {
            self.0.entry(key).or_insert((0, line)).0 += 1;
        }
    }

    /// Said with `-v` only: an exporter that knows more than we do is no fault.
    fn tell(&self, context: &Context) {
        for (key, (times, line)) in &self.0 {
            let times = count(*times, "time", "times");
            context.remarks.trace(&format!("unknown field `{key}` ignored ({times}, first in line {line})"));
        }
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
    let mut unknown = Unknown::default();
    while let Some(mut next) = turns.next().map_err(|failure| failure.at_path(keeper.name))? {
        next.turn.ordinal = ordinal(lines.len());
        bytes += next.turn.text.len() as u64 + RECORD_BYTES_MIN;
        if bytes > limit {
            // The component would say the same, but only after all of it was read, however long it is.
            return Err(Failure::limit(
                "limits.batch-bytes",
                format!(
                    "the turns up to here hold more than the {limit} bytes that one batch may; nothing was archived"
                ),
            )
            .at_path(keeper.name)
            .at_line(next.line)
            .next("archive in several batches: --chunk"));
        }
        unknown.note(next.unknown, next.line);
        batch.push(next.turn);
        lines.push(next.line);
        progress.set(turns.bytes());
    }
    unknown.tell(keeper.context);
    keeper.keep(&batch, &lines).map_err(|failure| {
        // Fewer turns at a time cost less of anything.
        if failure.exit == Exit::LIMIT { failure.next("archive in several batches: --chunk") } else { failure }
    })
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
    let mut unknown = Unknown::default();
    while let Some(mut next) = turns.next().map_err(|failure| failure.at_path(keeper.name))? {
        next.turn.ordinal = ordinal(number);
        number += 1;
        let cost = cost(&next.turn);
        if bytes + cost > limit && bytes > 0 {
            flush(&mut waiting, keeper)?;
            bytes = 0;
        }
        bytes += cost;
        unknown.note(next.unknown, next.line);
        let key = (next.turn.provider.clone(), next.turn.thread.clone());
        let (batch, lines) = waiting.entry(key).or_default();
        batch.push(next.turn);
        lines.push(next.line);
        progress.set(turns.bytes());
    }
    unknown.tell(keeper.context);
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

/// Names the lines of the turns that were refused: the component counts turns, the caller lines. What is about a file of
/// the workspace keeps that file's path and line.
fn located(error: Error, lines: &[u64], input: &str) -> Failure {
    let place = |path: &mut Option<String>, line: &mut Option<u64>| {
        if path.is_none()
            && let Some(number) = *line
        {
            let at = usize::try_from(number).ok().and_then(|number| number.checked_sub(1));
            *line = at.and_then(|at| lines.get(at).copied());
            *path = line.is_some().then(|| input.to_owned());
        }
    };
    let mut failure = Failure::from(error);
    place(&mut failure.path, &mut failure.line);
    for problem in &mut failure.problems {
        place(&mut problem.path, &mut problem.line);
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
        let turn = Turn {
            provider: "预".repeat(10),
            thread: "t".to_owned(),
            id: "m".to_owned(),
            ordinal: 0,
            role: "user".to_owned(),
            text: "x".repeat(100),
            time: None,
            speaker_id: Some("算".repeat(10)),
            speaker_display: None,
            speaker_kind: None,
            principal: None,
            tier: None,
            trust: "trusted".to_owned(),
        };
        // The longest forms: `%E9%A2%84` for three bytes, base64 of JSON escapes for others.
        assert!(cost(&turn) > 100 + 3 * 60 + 500);
    }
}
