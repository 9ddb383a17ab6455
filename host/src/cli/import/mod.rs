//! `recollex import`: takes in conversations that other programs exported.
//!
//! Reads files in pieces and hands them to the component, which finds the conversations in them and keeps each whole or not at
//! all. So memory does not follow the size of an export, whatever came before a stop, a crash or a damaged file
//! stays, and to begin again from the start repeats nothing.

mod interrupt;
mod ledger;
mod looks;
mod pieces;
mod source;
mod zip;

use std::cell::Cell;

use recollex::types::Trust;
use recollex::workspace::{ImportFormat, ImportOptions, ImportedConversation};
use recollex::{Error, Importing, Session};

use super::args::{ExportFormat, GivenTrust, Import};
use super::context::Context;
use super::failure::{Exit, Failure};
use super::output::{Progress, Unit};
pub use interrupt::Interrupt;
use ledger::{End, Ledger};
use pieces::{Piece, Pieces};
use source::{Input, LeftOut, Operand};

pub use looks::{Looks, looks, name, title};

/// Runs the verb.
pub fn run(args: &Import, context: &Context) -> Result<Exit, Failure> {
    let options = options(args)?;
    // Memory that is off, or a setting that is wrong, is told before a byte of input is read.
    let mut session = context.session()?;
    let is_new = context.is_absent();
    let operands = Operand::all(&args.files, options.format, context.setup.unpacked_bytes)?;
    let importing = session.start_import(&options)?;
    let interrupt = Interrupt::listen()
        .map_err(|error| Failure::usage("signals", format!("the system does not let signals be heard: {error}")))?;

    let work = Work {
        context,
        session: &mut session,
        importing,
        format: options.format,
        interrupt: interrupt.clone(),
        ledger: Ledger::new(context, &options),
    };
    let (ledger, result) = work.all(&operands);
    if let Some(bytes) = session.memory_bytes() {
        context.remarks.trace(&format!("memory of the component: {bytes} bytes"));
    }
    if is_new && !options.dry_run && ledger.has_kept() {
        // A mistyped directory must not go unnoticed.
        context.hint(&format!("Made a workspace in {}", context.setup.workspace.display()));
    }
    Ok(match result {
        Ok(Flow::Done) => ledger.finish(&End::Done),
        Ok(Flow::Stop) => ledger.finish(&End::Stopped(interrupt.exit())),
        Err(failure) => ledger.finish(&End::Failed(failure)),
    })
}

/// What the options say, in the contract's words.
fn options(args: &Import) -> Result<ImportOptions, Failure> {
    let format = match args.format {
        ExportFormat::Chatgpt => ImportFormat::Chatgpt,
        ExportFormat::Claude => ImportFormat::Claude,
        ExportFormat::ClaudeCode => ImportFormat::ClaudeCode,
        ExportFormat::Openprogram => ImportFormat::Openprogram,
        ExportFormat::Jsonl => ImportFormat::Jsonl,
    };
    if args.thread.is_some() && format != ImportFormat::Jsonl {
        return Err(Failure::usage(
            "thread",
            "--thread is for `jsonl` only: the other formats name their conversations",
        ));
    }
    let trust = match args.trust {
        GivenTrust::Trusted => Trust::Trusted,
        GivenTrust::Pending => Trust::Pending,
    };
    let (provider, thread) = (args.provider.clone(), args.thread.clone());
    Ok(ImportOptions { format, provider, thread, trust, dry_run: args.dry_run })
}

/// Whether to go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Flow {
    Done,
    /// Somebody asked to stop.
    Stop,
}

/// An import under way.
struct Work<'c, 's> {
    context: &'c Context,
    session: &'s mut Session,
    importing: Importing,
    format: ImportFormat,
    interrupt: Interrupt,
    ledger: Ledger<'c>,
}

impl<'c> Work<'c, '_> {
    fn all(mut self, operands: &[Operand]) -> (Ledger<'c>, Result<Flow, Failure>) {
        let read = self.read(operands);
        let Self { session, mut importing, mut ledger, interrupt, .. } = self;
        if !matches!(read, Ok(Flow::Done)) {
            // What was read to its end is kept; what else is held back belongs to a conversation that was not. Whoever asked to
            // stop waits for one more commit, and the rest is found again.
            let is_stopped = matches!(read, Ok(Flow::Stop));
            let result = loop {
                match importing.keep(session) {
                    Ok(kept) => {
                        ledger.conversations(&kept);
                        if kept.is_empty() || is_stopped {
                            break read;
                        }
                    }
                    // The first error says why.
                    Err(error) => break read.and(Err(failed(error, None))),
                }
            };
            return (ledger, result);
        }
        let result = loop {
            match importing.finish(session) {
                Ok(rest) if rest.is_empty() => break Ok(Flow::Done),
                Ok(rest) => {
                    ledger.conversations(&rest);
                    if interrupt.asked() {
                        break Ok(Flow::Stop);
                    }
                }
                Err(error) => break Err(failed(error, None)),
            }
        };
        (ledger, result)
    }

    fn read(&mut self, operands: &[Operand]) -> Result<Flow, Failure> {
        let context = self.context;
        // Only a bar is worth asking the size of every file.
        let size = match context.remarks.shows_progress() {
            true => operands.iter().map(|operand| operand.size(self.format)).sum::<Option<u64>>().unwrap_or(0),
            false => 0,
        };
        let progress = Meter { progress: context.remarks.progress("import", size, Unit::Bytes), done: Cell::new(0) };
        for operand in operands {
            for left_out in operand.left_out() {
                self.ledger.left_out(&left_out);
            }
            let mut found = 0_u64;
            for file in operand.files(self.format) {
                found += 1;
                if self.interrupt.asked() {
                    return Ok(Flow::Stop);
                }
                let flow = match file {
                    Ok(input) => self.file(&input, &progress)?,
                    Err(left_out) => {
                        self.ledger.left_out(&left_out);
                        Flow::Done
                    }
                };
                if flow == Flow::Stop {
                    return Ok(flow);
                }
            }
            if found == 0 && operand.left_out().is_empty() {
                return Err(operand.nothing(self.format));
            }
        }
        Ok(Flow::Done)
    }

    /// One file. What is wrong with it is the call's fault if it was named itself, and else one more to be left out.
    fn file(&mut self, input: &Input, progress: &Meter<'_>) -> Result<Flow, Failure> {
        let opened = match input.open(&self.interrupt, &|bytes| progress.add(bytes)) {
            Ok(opened) => opened,
            Err(_) if self.interrupt.asked() => return Ok(Flow::Stop),
            Err(left_out) => return self.without(input, left_out),
        };
        if let Some(unfit) = input.unfit(opened.looks, self.format) {
            self.ledger.left_out(&unfit?);
            return Ok(Flow::Done);
        }
        self.ledger.file();
        let mut pieces = Pieces::new(opened.stream);
        loop {
            // Between pieces, and so between commits.
            if self.interrupt.asked() {
                return Ok(Flow::Stop);
            }
            let piece = match pieces.next() {
                Ok(piece) => piece,
                Err(_) if self.interrupt.asked() => return Ok(Flow::Stop),
                Err(error) => {
                    // What came before the fault is whole, as far as it goes.
                    self.push(input, Piece::Text(""), true)?;
                    return self.without(input, LeftOut::io(&input.shown, &error));
                }
            };
            let Some(piece) = piece else { break };
            let bytes = match piece {
                Piece::Text(text) => text.len(),
                Piece::Bytes(bytes) => bytes.len(),
            };
            self.push(input, piece, false)?;
            self.ledger.bytes(bytes as u64);
            progress.add(bytes as u64);
        }
        self.push(input, Piece::Text(""), true)?;
        Ok(Flow::Done)
    }

    /// Hands a piece over, and has kept all that is enough for a commit with it: each commit is a call, so that it is told as
    /// it is made, and no call takes as long as a file is large.
    fn push(&mut self, input: &Input, piece: Piece<'_>, last: bool) -> Result<(), Failure> {
        let mut kept = match piece {
            Piece::Text(text) => self.importing.push_text(self.session, &input.name, text, last),
            Piece::Bytes(bytes) => self.importing.push_bytes(self.session, &input.name, bytes, last),
        };
        loop {
            let mut told = kept.map_err(|error| failed(error, Some(input)))?;
            if input.name != input.shown {
                told.iter_mut().filter(|it| it.file == input.name).for_each(|it| it.file.clone_from(&input.shown));
            }
            self.ledger.conversations(&told);
            if told.is_empty() || self.interrupt.asked() {
                return Ok(());
            }
            kept = if last {
                self.importing.keep(self.session)
            } else {
                self.importing.push_text(self.session, &input.name, "", false)
            };
        }
    }

    fn without(&mut self, input: &Input, left_out: LeftOut) -> Result<Flow, Failure> {
        if input.is_named {
            let message = format!("{} {}", input.shown, left_out.message);
            return Err(Failure::usage(left_out.reason, message).at_path(left_out.file));
        }
        self.ledger.left_out(&left_out);
        Ok(Flow::Done)
    }
}

/// A bar that counts.
struct Meter<'a> {
    progress: Progress<'a>,
    done: Cell<u64>,
}

impl Meter<'_> {
    fn add(&self, bytes: u64) {
        self.done.set(self.done.get() + bytes);
        self.progress.set(self.done.get());
    }
}

/// An import that broke off: where it was, and that beginning again is safe.
fn failed(error: Error, input: Option<&Input>) -> Failure {
    let mut failure = Failure::from(error);
    if failure.exit == Exit::LIMIT || failure.path.as_ref().is_none_or(|path| input.is_some_and(|i| *path == i.name)) {
        failure.path = input.map(|input| input.shown.clone()).or(failure.path);
    }
    let stays = "what was kept stays, and repeating the call is safe";
    let next = failure.next.take().map_or_else(|| stays.to_owned(), |next| format!("{next}; {stays}"));
    failure.next(next)
}

/// Whether a conversation had nothing to keep in it.
fn is_empty(it: &ImportedConversation) -> bool {
    it.archived == 0 && it.already == 0 && it.differs.is_empty()
}
