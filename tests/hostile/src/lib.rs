//! Test-only component of world `memory` that misbehaves on purpose.
//!
//! How is chosen by the setting `hostile` passed to `open`; `status` then does it. `browse` always behaves, so that a
//! test can see whether the host recovered. `get` and `archive` pass raw paths to the store, to see what it lets through.
//!
//! It also stands for a newer component: its world is `memory` and more exports, which a host of today does not know.

#![cfg(target_arch = "wasm32")]

mod bindings {
    #![allow(missing_docs, reason = "the WIT files carry the documentation")]
    #![allow(unused_qualifications, reason = "generated")]

    wit_bindgen::generate!({
        inline: r#"
            package recollex:hostile;

            world hostile {
                include recollex:memory/memory@0.1.0;
                export later-function: func() -> u32;
                export later-interface: interface {
                    later: func(text: string) -> string;
                }
            }
        "#,
        path: "../../wit",
        world: "recollex:hostile/hostile",
        generate_all,
    });
}

use std::hint::black_box;
use std::mem;

use bindings::exports::later_interface;
use bindings::exports::recollex::memory::turns;
use bindings::exports::recollex::memory::workspace::{
    Account, Answer, Archived, Audience, AudienceChange, BlockReference, CoreView, Error, Excerpt, Finding, GrepQuery,
    Guest, GuestImporting, GuestSession, GuestVerification, ImportOptions, ImportedConversation, Importing,
    Initialised, Listing, LockState, Matches, NumberedLine, NumberedTurn, OpenOptions, Promotion, Query, RecallQuery,
    Recollection, ReferencedBlocks, Refreshed, Report, Session, SessionBorrow, Status, StructurePage, TimelinePage,
    Turn, UnpairedMessage, UpdateOptions, Updated, Verification,
};
use bindings::recollex::memory::log::{self, Level};
use bindings::recollex::memory::types::{Counts, Health, Problem};
use bindings::recollex::memory::{lock, store};
use bindings::wasi::random::random;

/// Everything in one export.
struct Hostile;

impl bindings::Guest for Hostile {
    fn later_function() -> u32 {
        7
    }
}

impl later_interface::Guest for Hostile {
    fn later(text: String) -> String {
        text
    }
}

impl Guest for Hostile {
    type Session = HostileSession;
    type Verification = Nothing;
    type Importing = Nothing;
}

/// Turns behave, and there is nothing to them.
impl turns::Guest for Hostile {
    type Conversation = Nothing;
    type Organising = Nothing;
    type Backfilling = Nothing;
    type Migration = Nothing;

    fn due(_: SessionBorrow<'_>, _: Vec<turns::ListedConversation>) -> Result<Vec<String>, Error> {
        Err(unknown("due"))
    }

    fn settle(_: SessionBorrow<'_>, _: String, _: Option<f64>, _: Option<turns::Failure>) -> Result<(), Error> {
        Err(unknown("settle"))
    }

    fn writer_status(_: SessionBorrow<'_>) -> Result<turns::WriterState, Error> {
        Err(unknown("writer-status"))
    }

    fn salvage(_: SessionBorrow<'_>, _: Vec<turns::Said>, _: Option<String>) -> Result<turns::Salvaged, Error> {
        Err(unknown("salvage"))
    }
}

impl turns::GuestConversation for Nothing {
    fn open(_: SessionBorrow<'_>, _: String, _: String) -> Result<turns::Conversation, Error> {
        Err(unknown("open"))
    }

    fn push_file(&self, _: String, _: String) -> Result<(), Error> {
        Err(unknown("push-file"))
    }

    fn push_file_bytes(&self, _: String, _: Vec<u8>) -> Result<(), Error> {
        Err(unknown("push-file-bytes"))
    }

    fn push_lines(&self, _: String) -> Result<(), Error> {
        Err(unknown("push-lines"))
    }

    fn push_lines_bytes(&self, _: Vec<u8>) -> Result<(), Error> {
        Err(unknown("push-lines-bytes"))
    }

    fn finish(&self, _: turns::Heads) -> Result<Vec<Finding>, Error> {
        Err(unknown("finish"))
    }

    fn pending(&self) -> Result<turns::Pending, Error> {
        Err(unknown("pending"))
    }

    fn ledger(&self) -> Result<turns::Ledger, Error> {
        Err(unknown("ledger"))
    }

    fn write(&self, _: turns::WriteOptions) -> Result<turns::Written, Error> {
        Err(unknown("write"))
    }

    fn plan_mark(&self, _: String, _: String) -> Result<Option<turns::Splice>, Error> {
        Err(unknown("plan-mark"))
    }

    fn mark_line(&self, _: Vec<String>, _: bool) -> Result<String, Error> {
        Err(unknown("mark-line"))
    }

    fn marked(&self, _: Vec<String>) -> Result<(), Error> {
        Err(unknown("marked"))
    }
}

impl turns::GuestOrganising for Nothing {
    fn start(_: SessionBorrow<'_>, _: turns::Upkeep, _: Option<String>) -> Result<turns::Organising, Error> {
        Err(unknown("start"))
    }

    fn step(&self) -> Result<turns::Organised, Error> {
        Err(unknown("step"))
    }
}

impl turns::GuestBackfilling for Nothing {
    fn start(_: SessionBorrow<'_>, _: Option<String>) -> Result<turns::Backfilling, Error> {
        Err(unknown("start"))
    }

    fn outlook(&self) -> Result<turns::Backfilled, Error> {
        Err(unknown("outlook"))
    }

    fn step(&self) -> Result<turns::Backfilled, Error> {
        Err(unknown("step"))
    }
}

impl turns::GuestMigration for Nothing {
    fn start(_: SessionBorrow<'_>) -> Result<Option<turns::Migration>, Error> {
        Err(unknown("start"))
    }

    fn nodes(&self, _: turns::ConversationBorrow<'_>) -> Result<Vec<String>, Error> {
        Err(unknown("nodes"))
    }

    fn finish(&self) -> Result<(), Error> {
        Err(unknown("finish"))
    }
}

/// A session and the misbehaviour it was opened with.
pub struct HostileSession {
    behaviour: String,
}

/// Never comes into being.
pub struct Nothing;

impl GuestVerification for Nothing {
    fn step(&self, _bytes: u64) -> Result<Option<Vec<Finding>>, Error> {
        Ok(None)
    }

    fn report(&self) -> Report {
        Report { ok: true, health: Health::Empty, revision: String::new(), counts: no_counts(), findings_dropped: 0 }
    }
}

impl GuestImporting for Nothing {
    fn push_text(&self, _file: String, _text: String, _last: bool) -> Result<Vec<ImportedConversation>, Error> {
        Ok(Vec::new())
    }

    fn push_bytes(&self, _file: String, _data: Vec<u8>, _last: bool) -> Result<Vec<ImportedConversation>, Error> {
        Ok(Vec::new())
    }

    fn keep(&self) -> Result<Vec<ImportedConversation>, Error> {
        Ok(Vec::new())
    }

    fn finish(&self) -> Result<Vec<ImportedConversation>, Error> {
        Ok(Vec::new())
    }
}

impl GuestSession for HostileSession {
    fn open(options: OpenOptions) -> Result<Session, Error> {
        let chosen = options.settings.into_iter().find(|setting| setting.name == "hostile");
        let behaviour = chosen.map_or_else(String::new, |setting| setting.value);
        if behaviour == "trap-in-open" {
            abort();
        }
        Ok(Session::new(Self { behaviour }))
    }

    fn init(&self) -> Result<Initialised, Error> {
        Err(unknown("init"))
    }

    fn status(&self) -> Result<Status, Error> {
        let mut text = String::new();
        match &*self.behaviour {
            "" => {}
            "spin" => spin(),
            "allocate" => allocate(),
            "recurse" => text = recurse(black_box(1)).to_string(),
            "recurse-in-memory" => text = recurse_in_memory(1).to_string(),
            "trap" => abort(),
            "trap-with-lock" => {
                let _guard = acquire()?;
                abort();
            }
            "spin-with-lock" => {
                let _guard = acquire()?;
                spin();
            }
            "keep-lock" => mem::forget(acquire()?),
            "flood-log" => loop {
                log::write(Level::Info, &"x".repeat(1 << 20));
            },
            "flood-cache" => {
                let data = vec![0_u8; 1 << 20];
                for number in 0_u32.. {
                    store::put_cache(&format!("flood-{number}"), &data).map_err(|error| refused(&error))?;
                }
            }
            "flood-calls" => loop {
                let _ = store::generation();
            },
            "flood-answer" => text = "x".repeat(300 << 20),
            "random" => text = random::get_random_bytes(1 << 40).len().to_string(),
            "no-text" => {
                // SAFETY: none: the host must notice by itself that this is no UTF-8.
                text = unsafe { String::from_utf8_unchecked(vec![0xFF, 0xFE]) };
            }
            _ => return Err(unknown(&self.behaviour)),
        }
        Ok(Status {
            health: Health::Ok,
            reasons: Vec::new(),
            workspace: None,
            revision: text,
            counts: no_counts(),
            core: None,
            lock: LockState { held: false, holder: None },
        })
    }

    /// Writes each turn's text to the raw path in its `thread`, in one commit.
    fn archive(&self, turns: Vec<Turn>) -> Result<Archived, Error> {
        let guard = acquire()?;
        let base = store::generation().map_err(|error| refused(&error))?;
        let changes: Vec<store::Change> = turns
            .into_iter()
            .map(|turn| store::Change {
                area: area(&turn.provider),
                path: turn.thread,
                expect: store::Expect::Any,
                edit: store::Edit::Put(turn.text),
            })
            .collect();
        let about = store::About { verb: "hostile".to_owned(), note: "\n".repeat(1000), erases: false };
        match store::commit(&guard, base, &changes, &about) {
            Ok(_) => Ok(Archived { turns: Vec::new(), revision: String::new() }),
            Err(store::CommitError::Failed((_, error))) => Err(refused(&error)),
            Err(other) => Err(Error::Store(problem(&format!("{other:?}")))),
        }
    }

    fn archive_numbered(&self, _turns: Vec<NumberedTurn>) -> Result<Archived, Error> {
        Err(unknown("archive-numbered"))
    }

    fn archive_unpaired(&self, _message: UnpairedMessage) -> Result<Archived, Error> {
        Err(unknown("archive-unpaired"))
    }

    fn promote(&self, _source_id: String) -> Result<Promotion, Error> {
        Err(unknown("promote"))
    }

    fn would_promote(&self, _source_id: String) -> Result<Promotion, Error> {
        Err(unknown("would-promote"))
    }

    fn start_import(&self, _options: ImportOptions) -> Result<Importing, Error> {
        Err(unknown("start-import"))
    }

    fn audience(&self) -> Result<Audience, Error> {
        Err(unknown("audience"))
    }

    fn narrow_audience(&self, _prefix: String) -> Result<AudienceChange, Error> {
        Err(unknown("narrow-audience"))
    }

    fn widen_audience(&self, _prefix: String) -> Result<AudienceChange, Error> {
        Err(unknown("widen-audience"))
    }

    fn update(&self, _request: String, _options: UpdateOptions) -> Result<Updated, Error> {
        Err(unknown("update"))
    }

    fn repair(&self, _dry_run: bool) -> Result<Updated, Error> {
        Err(unknown("repair"))
    }

    fn core(&self) -> Result<Option<CoreView>, Error> {
        Err(unknown("core"))
    }

    fn get_section(&self, _path: String, _heading: String) -> Result<Excerpt, Error> {
        Err(unknown("get-section"))
    }

    fn get_block(&self, _block: String) -> Result<Excerpt, Error> {
        Err(unknown("get-block"))
    }

    fn grep(&self, _query: GrepQuery) -> Result<Matches, Error> {
        Err(unknown("grep"))
    }

    fn timeline(&self, _from: Option<String>, _to: Option<String>, _max: u32) -> Result<TimelinePage, Error> {
        Err(unknown("timeline"))
    }

    fn why(&self, _block: String) -> Result<Account, Error> {
        Err(unknown("why"))
    }

    fn refresh(&self) -> Result<Refreshed, Error> {
        Err(unknown("refresh"))
    }

    fn structure(
        &self,
        _prefix: String,
        _matching: String,
        _cursor: Option<String>,
        _max: u32,
    ) -> Result<StructurePage, Error> {
        Err(unknown("structure"))
    }

    fn references(&self, _references: Vec<BlockReference>, _max_chars: u32) -> Result<ReferencedBlocks, Error> {
        Err(unknown("references"))
    }

    fn note_changes(&self, _: Option<Vec<String>>) {}

    fn search(&self, _query: Query) -> Result<Answer, Error> {
        Err(unknown("search"))
    }

    fn recall(&self, _query: RecallQuery) -> Result<Recollection, Error> {
        Err(unknown("recall"))
    }

    /// Reads the raw path `target`: `area:path`.
    fn get(&self, target: String, _from_line: Option<u64>, _max_lines: u32) -> Result<Excerpt, Error> {
        let (place, path) = target.split_once(':').ok_or_else(|| unknown(&target))?;
        let chunk = store::read_text(area(place), path, None, 0, 1 << 20).map_err(|error| refused(&error))?;
        let lines = vec![NumberedLine { number: 1, text: chunk.text, cut: false }];
        Ok(Excerpt { path: target, lines, record: None, next_line: None })
    }

    fn browse(&self, _prefix: String, _cursor: Option<String>, _max: u32) -> Result<Listing, Error> {
        Ok(Listing { files: Vec::new(), next: None })
    }

    fn verify(&self, _prefix: String) -> Result<Verification, Error> {
        Err(unknown("verify"))
    }
}

fn area(name: &str) -> store::Area {
    match name {
        "runtime" => store::Area::Runtime,
        "cache" => store::Area::Cache,
        _ => store::Area::Tree,
    }
}

fn acquire() -> Result<lock::Guard, Error> {
    lock::acquire(1_000, "being hostile").map_err(|error| Error::Store(problem(&format!("{error:?}"))))
}

fn abort() -> ! {
    core::arch::wasm32::unreachable()
}

fn spin() -> ! {
    let mut turns = 0_u64;
    loop {
        turns = black_box(turns.wrapping_add(1));
    }
}

fn allocate() -> ! {
    let mut kept = Vec::new();
    loop {
        kept.push(black_box(vec![1_u8; 16 << 20]));
    }
}

/// Goes down until the engine's stack ends: no frame of it needs memory.
#[inline(never)]
fn recurse(number: u64) -> u64 {
    // Never zero: the generator below leaves no odd number.
    if number == 0 { 0 } else { recurse(number.wrapping_mul(6_364_136_223_846_793_005) | 1).rotate_left(7) ^ number }
}

/// Goes down until the stack in memory ends.
fn recurse_in_memory(depth: u64) -> u64 {
    let frame = black_box([depth; 64]);
    if black_box(true) { recurse_in_memory(depth + 1) + frame[0] } else { depth }
}

fn no_counts() -> Counts {
    Counts { source_files: 0, frames: 0, legacy_records: None, topic_files: 0, blocks: None, bytes: 0 }
}

/// What the store said, its case as the reason.
fn refused(error: &store::StoreError) -> Error {
    use store::StoreError;
    let reason = match error {
        StoreError::NotFound => "not-found",
        StoreError::NotText(_) => "not-text",
        StoreError::Changed => "changed",
        StoreError::Denied(_) => "denied",
        StoreError::Limit(_) => "limit",
        StoreError::Full => "full",
        StoreError::Io(_) => "io",
    };
    Error::Store(Problem { message: format!("{error:?}"), ..problem(reason) })
}

fn unknown(what: &str) -> Error {
    Error::Invalid(problem(&format!("unknown: {what}")))
}

fn problem(reason: &str) -> Problem {
    Problem {
        code: "HOSTILE".to_owned(),
        reason: reason.to_owned(),
        path: None,
        line: None,
        subject: None,
        message: reason.to_owned(),
    }
}

bindings::export!(Hostile with_types_in bindings);
