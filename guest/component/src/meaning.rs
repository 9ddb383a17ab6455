//! Search by what a text means: the model that embeds, the vectors in the cache, and what has none yet.
//!
//! Knows the import, the cache file and how texts are read. What a vector is, which are alike and how two rankings become
//! one, core's `search` knows. Only texts that the caller sees, and that pass the query's filters, go to the model; each
//! once, as long as the cache has its vector.

use std::cell::RefCell;
use std::rc::Rc;

use recollex_core::search::{
    Candidate, EmbeddingUnavailable, FUSED, Key, Kind, Method, Query, Space, VECTORS, Vector, Vectors, Write, fuse,
};
use recollex_core::session::Settings;
use recollex_core::source::{Finding, FindingCode};
use recollex_core::turns::WriterFailure;

use crate::bindings::exports::recollex::memory::workspace as wit;
use crate::bindings::recollex::memory::model::{self, EmbeddingRole};
use crate::bindings::recollex::memory::store::Area;
use crate::cache;
use crate::convert;
use crate::index::{Ranked, Shelf};
use crate::search::{self, Answered};
use crate::session::{self, Session};
use crate::tree;
use crate::turns::model_failed;
use crate::view::View;

/// Texts that the model is given at a time.
const BATCH: usize = 128;

/// So many times more texts are read than may be embedded: what is read may turn out to have a vector.
const READS_FACTOR: usize = 16;

/// Documents that may be named beyond twice as many as there are, before those that are gone are let go of.
const GONE: usize = 1024;

/// How often vectors are written again because another process has changed the file.
const TRIES: u32 = 3;

/// The vectors of a session, once they have been needed.
#[derive(Clone, Default)]
pub(crate) struct Meanings(Rc<RefCell<Held>>);

#[derive(Default)]
struct Held {
    vectors: Option<Vectors>,
    /// What the last query was, and by which model, as far as that is known beforehand.
    asked: Option<(Option<String>, String, Space, Vector)>,
}

/// Why nothing came of a model: the error, and whether another try may help.
type Failed = (wit::Problem, bool);

/// Answers a query by what it means, or by that and its words.
pub(crate) fn answer(
    session: &Session,
    view: &View,
    query: &Query,
    text: &str,
    last: bool,
) -> Result<Answered, wit::Error> {
    let described = model::describe("embed");
    if !described.configured {
        let why = EmbeddingUnavailable::NoModel;
        return Err(wit::Error::Model((convert::problem(why.code(), why.reason(), None, why.to_string()), false)));
    }
    let Session { index, settings, meanings, .. } = session;
    let held = &mut *meanings.0.borrow_mut();
    let (space, meant) = match (held.meant(described.model, text, settings), query.method()) {
        (Ok(meant), _) => meant,
        (Err((problem, _)), Method::Hybrid) => {
            let mut answered = search::answer(index, settings, view, query, last)?;
            let message = format!("nothing was looked for by what it means: {}", problem.message);
            answered.findings.push(finding(FindingCode::MeaningUnavailable, message));
            return Ok(answered);
        }
        (Err(failed), _) => return Err(wit::Error::Model(failed)),
    };
    let manner = settings.embed_bytes.to_string();
    let found = index.candidates(settings, view.audience(), query, manner.as_bytes(), last)?;
    let mut search =
        Meant { index, settings, view, manner: manner.as_bytes(), vectors: held.take(space), left: Left::default() };
    let scored = search.scored(found.candidates, &meant);
    // What the model was paid for is kept, whatever became of the rest.
    let (vectors, left) = (search.vectors, search.left);
    held.keep(vectors);
    let scored = scored?;
    let mut findings = found.findings;
    let hybrid = query.method() == Method::Hybrid;
    if let (Some(failed), false) = (&left.failed, hybrid) {
        return Err(wit::Error::Model(failed.clone()));
    }
    findings.extend(left.told(settings));
    let deep = query.clone().with_top_k(if hybrid { query.top_k().max(FUSED) } else { query.top_k() });
    let mut ranking = index.rank_by(&deep, &scored, "meaning")?;
    if hybrid {
        // The index is up to date: what it finds out again it has told already.
        let words = index.search(settings, view.audience(), &deep, last)?.ranking;
        let is_more = words.truncated || ranking.truncated;
        let rankings = [("words-rank", words.hits), ("meaning-rank", ranking.hits)];
        ranking.hits = fuse(rankings, query.explain());
        let most = usize::try_from(query.top_k()).unwrap_or(usize::MAX);
        ranking.truncated = is_more || ranking.hits.len() > most;
        ranking.terms_left_out = words.terms_left_out;
        ranking.hits.truncate(most);
    }
    search::shown(Ranked { ranking, findings, documents: found.documents }, settings, view)
}

fn finding(code: FindingCode, message: String) -> wit::Finding {
    convert::finding(core_finding(code, message))
}

fn core_finding(code: FindingCode, message: String) -> Finding {
    Finding {
        code: code.as_str(),
        severity: code.severity(),
        path: None,
        line: None,
        subject: None,
        excerpt: None,
        message,
    }
}

/// Asks the model for vectors: one for each text, all of one length.
fn embed(texts: &[String], role: EmbeddingRole, settings: &Settings) -> Result<(Space, Vec<Vector>), Failed> {
    let deadline = u32::try_from(settings.embed_ms).unwrap_or(u32::MAX);
    let answer = model::embed(texts, role, deadline).map_err(|error| {
        let error = model_failed(error);
        let failure = WriterFailure::of_model(error.kind, error.retryable);
        (convert::problem(failure.code.as_str(), "embedding-failed", None, error.message), failure.retryable)
    })?;
    // The host has promised all this; what breaks the promise must not be kept.
    let vectors: Vec<Vector> = answer.vectors.iter().filter_map(|numbers| Vector::new(numbers)).collect();
    let dimensions = vectors.first().map_or(0, Vector::dimensions);
    match vectors.len() == texts.len() && vectors.iter().all(|vector| vector.dimensions() == dimensions) {
        true => Ok((Space { model: answer.model, dimensions }, vectors)),
        false => Err(unusable("the vectors that came are not one finite vector for each text, all of one length")),
    }
}

fn unusable(message: &str) -> Failed {
    let failure = WriterFailure::of_model(recollex_core::turns::ModelFailure::Provider, false);
    (convert::problem(failure.code.as_str(), "unusable-vectors", None, message), failure.retryable)
}

impl Held {
    /// What a query means. A search that is begun again does not ask again.
    fn meant(&mut self, model: Option<String>, text: &str, settings: &Settings) -> Result<(Space, Vector), Failed> {
        if let Some((of, asked, space, vector)) = &self.asked
            && *of == model
            && asked == text
        {
            return Ok((space.clone(), vector.clone()));
        }
        let (space, vectors) = embed(&[beginning(text, settings).to_owned()], EmbeddingRole::Query, settings)?;
        let vector = vectors.into_iter().next().ok_or_else(|| unusable("no vector came for the query"))?;
        self.asked = Some((model, text.to_owned(), space.clone(), vector.clone()));
        Ok((space, vector))
    }

    /// The vectors of a space, as the cache has them.
    fn take(&mut self, space: Space) -> Vectors {
        let is_current = |vectors: &Vectors| {
            let stamp = tree::find(Area::Cache, &space.file()).ok().flatten().map(|entry| entry.stamp.size);
            *vectors.space() == space && vectors.file_bytes().is_some() && vectors.file_bytes() == stamp
        };
        match self.vectors.take() {
            Some(vectors) if is_current(&vectors) => vectors,
            _ => open(space),
        }
    }

    /// Writes down what is new.
    fn keep(&mut self, mut vectors: Vectors) {
        // Where there is no workspace nothing is written.
        let tries = if session::workspace_id().is_ok_and(|id| id.is_some()) { TRIES } else { 0 };
        for _ in 0..tries {
            let is_kept = match vectors.save() {
                None => true,
                Some(Write::Put { name, bytes }) => {
                    clear_away(&name);
                    cache::put(&name, &bytes)
                }
                Some(Write::Append { name, length, bytes }) => cache::append(&name, length, &bytes),
                Some(Write::Drop { .. }) => false,
            };
            if is_kept {
                vectors.saved();
                break;
            }
            // Another process has kept something meanwhile. Both are true.
            let mut fresh = open(vectors.space().clone());
            fresh.take_in(&vectors);
            vectors = fresh;
        }
        self.vectors = Some(vectors);
    }
}

fn open(space: Space) -> Vectors {
    let bytes = cache::read_all(&space.file());
    Vectors::open(space, bytes.as_deref())
}

/// Vectors of other models are of no use to this one.
fn clear_away(but: &str) {
    for entry in tree::list(Area::Cache, VECTORS).unwrap_or_default() {
        if entry.path != but {
            cache::drop(&entry.path);
        }
    }
}

/// As much of a text as is embedded.
fn beginning<'t>(text: &'t str, settings: &Settings) -> &'t str {
    let most = text.floor_char_boundary(usize::try_from(settings.embed_bytes).unwrap_or(usize::MAX));
    text.get(..most).unwrap_or_default()
}

/// What was not found because it has no vector.
#[derive(Default)]
struct Left {
    documents: usize,
    /// There is no room for more vectors.
    full: bool,
    failed: Option<Failed>,
}

impl Left {
    fn told(&self, settings: &Settings) -> Option<Finding> {
        let why = match (&self.failed, self.full) {
            _ if self.documents == 0 => return None,
            (Some((problem, _)), _) => format!("the model gave none: {}", problem.message),
            (None, true) => {
                format!("the setting search.vectors-bytes ({}) leaves no room; raise it", settings.vectors_bytes)
            }
            (None, false) => format!(
                "one search has {} texts embedded at most (search.embed-texts); search again to go on",
                settings.embed_texts
            ),
        };
        let message = format!("{} records and claims have no vector yet: {why}", self.documents);
        Some(core_finding(FindingCode::VectorsIncomplete, message))
    }
}

/// A search by what a query means.
struct Meant<'a> {
    index: &'a Shelf,
    settings: &'a Settings,
    view: &'a View,
    manner: &'a [u8],
    vectors: Vectors,
    left: Left,
}

impl Meant<'_> {
    /// How much each candidate has in common with the query, those that have no vector left out.
    fn scored(&mut self, candidates: Vec<Candidate>, meant: &Vector) -> Result<Vec<(u64, Candidate)>, wit::Error> {
        self.forget_gone()?;
        let mut texts: Vec<(Key, Candidate)> = Vec::with_capacity(candidates.len());
        let mut unread = Vec::new();
        for candidate in candidates {
            match candidate.key.and_then(|key| self.vectors.text_of(key)).filter(|text| self.vectors.has(*text)) {
                Some(text) => texts.push((text, candidate)),
                None => unread.push(candidate),
            }
        }
        // Topics first: there are fewer of them, and they say more.
        unread.sort_by_key(|candidate| candidate.kind == Kind::Source);
        texts.extend(self.read(unread)?);
        Ok(texts.into_iter().map(|(text, candidate)| (self.vectors.cosine(text, meant), candidate)).collect())
    }

    /// Makes room, where much of what is kept is of documents that are gone.
    fn forget_gone(&mut self) -> Result<(), wit::Error> {
        let documents = self.vectors.documents();
        let is_full = self.vectors.room(self.settings.vectors_bytes) == 0;
        if documents <= GONE && !is_full {
            return Ok(());
        }
        let live = self.index.keys(self.settings, self.manner)?;
        // A file that is full of what is there is not written again and again for the little that is not.
        let is_worth_it = self.vectors.gone(&live) > documents / 8;
        if is_full && is_worth_it || documents > live.len().saturating_mul(2).saturating_add(GONE) {
            self.vectors.keep_only(&live);
        }
        Ok(())
    }

    /// Reads what has no vector, as far as it is known, and has it embedded. Those that have one then.
    fn read(&mut self, unread: Vec<Candidate>) -> Result<Vec<(Key, Candidate)>, wit::Error> {
        let most = usize::try_from(self.settings.embed_texts).unwrap_or(usize::MAX);
        let room = usize::try_from(self.vectors.room(self.settings.vectors_bytes)).unwrap_or(usize::MAX);
        let mut allowed = most.min(room);
        let reads = most.max(1).saturating_mul(READS_FACTOR);
        self.left.full = room < most;
        self.left.documents = unread.len().saturating_sub(reads);
        let mut known = Vec::new();
        let readable = unread.get(..unread.len().min(reads)).unwrap_or_default();
        for piece in readable.chunks(BATCH) {
            let mut wanted: Vec<(Key, String)> = Vec::new();
            let mut here: Vec<(Key, Candidate)> = Vec::new();
            let read = search::texts(&self.index.placed(piece)?, self.settings, self.view)?;
            for (text, candidate) in read.into_iter().zip(piece) {
                let text = beginning(&text, self.settings);
                let key = Key::of_text(text);
                if !self.vectors.has(key) && !wanted.iter().any(|(wanted, _)| *wanted == key) {
                    if allowed == 0 || self.left.failed.is_some() {
                        self.left.documents = self.left.documents.saturating_add(1);
                        continue;
                    }
                    allowed = allowed.saturating_sub(1);
                    wanted.push((key, text.to_owned()));
                }
                here.push((key, *candidate));
            }
            if let Err(failed) = self.embed(wanted) {
                self.left.failed = Some(failed);
            }
            for (text, candidate) in here {
                if !self.vectors.has(text) {
                    self.left.documents = self.left.documents.saturating_add(1);
                    continue;
                }
                if let Some(document) = candidate.key {
                    self.vectors.note(document, text);
                }
                known.push((text, candidate));
            }
        }
        Ok(known)
    }

    /// Has these texts embedded, all or none.
    fn embed(&mut self, wanted: Vec<(Key, String)>) -> Result<(), Failed> {
        if wanted.is_empty() {
            return Ok(());
        }
        let (keys, texts): (Vec<Key>, Vec<String>) = wanted.into_iter().unzip();
        let (space, vectors) = embed(&texts, EmbeddingRole::Passage, self.settings)?;
        if space != *self.vectors.space() {
            let before = self.vectors.space();
            return Err(unusable(&format!(
                "the query's vector is of {} with {} numbers, the texts' of {} with {}: they cannot be compared",
                before.model, before.dimensions, space.model, space.dimensions
            )));
        }
        for (key, vector) in keys.into_iter().zip(&vectors) {
            self.vectors.add(key, vector);
        }
        Ok(())
    }
}
