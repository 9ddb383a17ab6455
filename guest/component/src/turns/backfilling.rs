//! Catching up: trusted evidence that no topic cites, written batch by batch.
//!
//! Knows how archives are read, and how far a backfill is. What is offered, and together with what, core's `turns` says.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU64;

use recollex_core::ids::is_v2_path;
use recollex_core::prompt::Origin;
use recollex_core::source::{EntryKind, Event, Given, NewerIds, RecordRef, Tier, Verifier};
use recollex_core::turns::Citations;
use recollex_core::turns::backfill::{Candidate, Candidates, next_batch, parts};
use recollex_core::views::VOCABULARY;
use recollex_core::writer::Evidence;

use super::writing::{Done, Writing};
use crate::bindings::exports::recollex::memory::turns as wit;
use crate::bindings::exports::recollex::memory::workspace::SessionBorrow;
use crate::bindings::recollex::memory::model;
use crate::bindings::recollex::memory::store::{Entry, StoreError};
use crate::convert;
use crate::reading;
use crate::session::{Session, settled};
use crate::tree::{self, Piece, Reader};
use crate::view::View;

/// So many candidates are read and counted at a time.
const COUNTED_TOGETHER: usize = 64;

/// A text, and its tokens.
type Counted = (String, u64);

/// A backfill.
pub(crate) struct Backfilling {
    session: Session,
    model: Option<String>,
    state: RefCell<State>,
}

struct State {
    candidates: Vec<Candidate>,
    /// The first that was not offered yet.
    next: usize,
    /// Of those that were offered, what is uncited.
    uncited: u64,
}

impl wit::GuestBackfilling for Backfilling {
    fn start(of: SessionBorrow<'_>, model: Option<String>) -> Result<wit::Backfilling, wit::Error> {
        let session = super::of(&of)?;
        let candidates = settled(|_| candidates(&session))?;
        let state = RefCell::new(State { candidates, next: 0, uncited: 0 });
        Ok(wit::Backfilling::new(Self { session, model, state }))
    }

    fn outlook(&self) -> Result<wit::Backfilled, wit::Error> {
        Ok(self.told(None, None))
    }

    fn step(&self) -> Result<wit::Backfilled, wit::Error> {
        let (batch, texts) = {
            let state = self.state.borrow();
            let rest = state.candidates.get(state.next..).unwrap_or_default();
            self.batch(rest)?
        };
        if batch.is_empty() {
            return Ok(self.told(None, None));
        }
        let counted: BTreeMap<&str, u64> =
            batch.iter().zip(&texts).map(|(one, (_, tokens))| (one.reference.as_str(), *tokens)).collect();
        let sources: Vec<String> = batch.iter().map(|one| one.reference.clone()).collect();
        let evidence = |places: Option<&[usize]>| {
            let all = batch.iter().zip(&texts).map(|(one, (text, _))| (one, text.as_str()));
            let chosen: Vec<(&Candidate, &str)> = match places {
                None => all.collect(),
                Some(places) => all.enumerate().filter(|(at, _)| places.contains(at)).map(|(_, one)| one).collect(),
            };
            let tokens: Vec<u64> = chosen
                .iter()
                .map(|(one, _)| counted.get(one.reference.as_str()).copied().unwrap_or_default())
                .collect();
            let mut tokens = tokens.into_iter();
            Evidence::of_parts(&parts(chosen), |_| tokens.next().unwrap_or_default(), &self.session.settings.writer)
        };
        let writing = Writing {
            session: &self.session,
            origin: Origin::Backfill,
            model: self.model.clone(),
            verb: "backfill",
            receipt: None,
            tokens: None,
        };
        let Done { report, has_changed_memory, failure, .. } = writing.all(&sources, &evidence)?;
        if failure.is_some() && !has_changed_memory {
            return Ok(self.told(Some(report), failure));
        }
        {
            let mut state = self.state.borrow_mut();
            state.next = state.next.saturating_add(batch.len());
            state.uncited = state.uncited.saturating_add(report.uncited.len() as u64);
        }
        Ok(self.told(Some(report), failure))
    }
}

impl Backfilling {
    fn told(&self, batch: Option<wit::BatchReport>, failure: Option<wit::Failure>) -> wit::Backfilled {
        let state = self.state.borrow();
        let (candidates, processed) = (state.candidates.len() as u64, state.next as u64);
        let open = candidates.saturating_sub(processed);
        wit::Backfilled {
            candidates,
            processed,
            remaining: open.saturating_add(state.uncited),
            batch,
            more: open > 0 && failure.is_none(),
            failure,
        }
    }

    /// The next batch, with the text of each and its tokens.
    fn batch(&self, rest: &[Candidate]) -> Result<(Vec<Candidate>, Vec<Counted>), wit::Error> {
        let budget = NonZeroU64::new(self.session.settings.turns.batch_tokens).unwrap_or(NonZeroU64::MIN);
        let mut read: Vec<Counted> = Vec::new();
        for group in rest.chunks(COUNTED_TOGETHER) {
            let texts = settled(|_| texts(&self.session, group))?;
            let tokens = model::count_tokens(VOCABULARY, &texts).tokens;
            read.extend(texts.into_iter().zip(tokens.into_iter().map(u64::from)));
            let sum: u64 = read.iter().map(|(_, tokens)| tokens).sum();
            if sum > budget.get() {
                break;
            }
        }
        let count = next_batch(read.iter().map(|(_, tokens)| *tokens), budget);
        read.truncate(count);
        Ok((rest.iter().take(count).cloned().collect(), read))
    }
}

/// What there is to write of.
fn candidates(session: &Session) -> Result<Vec<Candidate>, wit::Error> {
    let view = View::of(Tier::Owner)?;
    let citations = Citations::of(&reading::known(session, &view)?.table);
    let mut candidates = Candidates::default();
    let mut entries = archives(&view)?;
    // v2 archives first: where one has a record, an older archive's with the same id does not count.
    entries.sort_by_key(|entry| !is_v2_path(&entry.path));
    each_event(session, &entries, &mut |event| candidates.see(&event, &citations))?;
    Ok(candidates.finish())
}

/// The texts of these candidates.
fn texts(session: &Session, candidates: &[Candidate]) -> Result<Vec<String>, wit::Error> {
    let paths: BTreeSet<&str> = candidates.iter().map(|one| one.path.as_str()).collect();
    let places: BTreeSet<(&str, u64)> = candidates.iter().map(|one| (one.path.as_str(), one.line)).collect();
    let mut entries = archives(&View::of(Tier::Owner)?)?;
    entries.retain(|entry| paths.contains(entry.path.as_str()));
    let mut found: BTreeMap<(String, u64), String> = BTreeMap::new();
    each_event(session, &entries, &mut |event| {
        if places.contains(&(event.record.path.as_str(), event.record.line)) {
            found.entry((event.record.path, event.record.line)).or_insert(event.content);
        }
    })?;
    let text = |one: &Candidate| {
        let text = found.get(&(one.path.clone(), one.line)).cloned();
        text.ok_or_else(|| convert::store_error(StoreError::Changed, Some(&one.path)))
    };
    candidates.iter().map(text).collect()
}

fn archives(view: &View) -> Result<Vec<Entry>, wit::Error> {
    match view.list("sources") {
        Ok(entries) => Ok(entries.into_iter().filter(tree::is_file).collect()),
        Err(StoreError::NotFound) => Ok(Vec::new()),
        Err(error) => Err(convert::store_error(error, Some("sources"))),
    }
}

/// Hands on all evidence of these archives, but older records that also have a frame. What is damaged has none.
fn each_event(session: &Session, entries: &[Entry], see: &mut dyn FnMut(Event)) -> Result<(), wit::Error> {
    let limits = session.settings.limits();
    let keep = usize::try_from(session.settings.batch_bytes).unwrap_or(usize::MAX);
    let mut verifier = Verifier::new(Given::InWorkspace, &limits).keep_records(keep);
    let mut newer = NewerIds::among(entries.iter().map(|entry| entry.path.as_str()));
    for entry in entries {
        let failed = |error| convert::store_error(error, Some(&entry.path));
        let path = entry.path.as_str();
        let mut take = |path: &str, record: RecordRef<'_>| {
            newer.see(path, record);
            match record {
                RecordRef::Frame(frame) => see(Event::new(path, frame, frame.record)),
                RecordRef::Legacy(legacy) if newer.supersedes(legacy) => {}
                RecordRef::Legacy(legacy) => Event::of_legacy(path, legacy).into_iter().for_each(&mut *see),
            }
        };
        verifier.file(path, EntryKind::File);
        let mut reader = Reader::listed(entry);
        while let Some(piece) = reader.next().map_err(failed)? {
            match piece {
                Piece::Text(text) => verifier.push_text(&text, &mut take),
                Piece::Bytes(bytes) => verifier.push_bytes(&bytes, &mut take),
            }
        }
        verifier.end(&mut take);
        drop(verifier.take_findings(usize::MAX));
    }
    Ok(())
}
