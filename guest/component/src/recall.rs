//! `recall`: what an agent's turn is told of memory.
//!
//! Knows how to search, how to have tokens counted and what to hand over. Which memories are told, and how they stand in the
//! prompt, core's `prompt` decides.

use recollex_core::prompt::{Omission, Recall, memory_of_claim, memory_of_record};
use recollex_core::search::{Limits, Method, Query, QueryError, QueryRequest};
use recollex_core::session::Settings;
use recollex_core::trust::Verb;
use recollex_core::views::VOCABULARY;

use crate::bindings::exports::recollex::memory::workspace as wit;
use crate::bindings::recollex::memory::model;
use crate::convert;
use crate::search::{self, Answered, Found};
use crate::session::{Session, generation};
use crate::view::View;

/// So many times more hits than memories are looked at in one search: what is pending, too long or there already is passed over.
const HITS_FACTOR: u32 = 2;

/// So many times more are looked at in the next, if too many were pending.
const NEXT_FACTOR: u32 = 8;

/// What a turn is told.
pub(crate) fn recall(session: &Session, query: &wit::RecallQuery) -> Result<wit::Recollection, wit::Error> {
    session.allow(Verb::Recall)?;
    // Memory that cannot be read at all is no memory without anything in it.
    generation()?;
    let view = session.view()?;
    session.by_note(|last| attempt(session, &view, query, last)).map_err(|error| match error {
        wit::Error::Store(problem) => wit::Error::Unavailable((wit::Health::Broken, problem)),
        error => error,
    })
}

fn attempt(
    session: &Session,
    view: &View,
    asked: &wit::RecallQuery,
    last: bool,
) -> Result<wit::Recollection, wit::Error> {
    let settings = &session.settings;
    let or = |asked: u64, setting: u64| if asked == 0 { setting } else { asked };
    let max_tokens = or(asked.max_tokens, settings.recall_tokens);
    let memories = or(asked.max_memories.into(), settings.recall_memories).min(settings.top_k_max);
    let memories = u32::try_from(memories).unwrap_or(u32::MAX);
    let Some(query) = query(&asked.text, settings)? else {
        let (documents, findings) = session.index.documents(settings, view.audience(), last)?;
        let findings = findings.into_iter().map(convert::finding).collect();
        return Ok(nothing(documents, findings, max_tokens));
    };
    let mut choice = Choice::new(max_tokens, memories);
    let most = u32::try_from(settings.top_k_max).unwrap_or(u32::MAX);
    let mut hits = memories.saturating_mul(HITS_FACTOR).min(most);
    loop {
        let answer = search::answer(&session.index, settings, view, &query.clone().with_top_k(hits), last)?;
        choice.offer(&answer);
        if choice.is_enough(hits) || !answer.truncated || hits == most {
            return Ok(choice.told(answer));
        }
        hits = hits.saturating_mul(NEXT_FACTOR).min(most);
    }
}

/// The query that a turn's text is; none: there is no word in it to look for.
fn query(text: &str, settings: &Settings) -> Result<Option<Query>, wit::Error> {
    let cut = text.floor_char_boundary(usize::try_from(settings.query_bytes).unwrap_or(usize::MAX));
    let request = QueryRequest {
        text: text.get(..cut).unwrap_or_default(),
        top_k: 1,
        scope: None,
        speaker: None,
        path_prefix: None,
        from: None,
        to: None,
        explain: false,
        method: Method::Words,
    };
    match Query::parse(&request, &Limits { top_k_max: 1, query_bytes: settings.query_bytes }) {
        Ok(query) => Ok(Some(query)),
        Err(QueryError::NothingSearchable | QueryError::OnlyFunctionWords) => Ok(None),
        Err(error) => Err(search::invalid(&error)),
    }
}

fn nothing(documents: u32, findings: Vec<wit::Finding>, max_tokens: u64) -> wit::Recollection {
    wit::Recollection {
        health: health(documents, &findings),
        text: String::new(),
        tokens: 0,
        exact: true,
        max_tokens,
        memories: Vec::new(),
        left_out: Vec::new(),
        findings,
    }
}

fn health(documents: u32, findings: &[wit::Finding]) -> wit::Health {
    match findings.iter().any(|finding| finding.severity != wit::Severity::Info) {
        true => wit::Health::Degraded,
        false if documents == 0 => wit::Health::Empty,
        false => wit::Health::Ok,
    }
}

/// Counts tokens: those of each text, and whether that is exact.
fn count(texts: &[String]) -> (Vec<u64>, bool) {
    if texts.is_empty() {
        return (Vec::new(), true);
    }
    let counts = model::count_tokens(VOCABULARY, texts);
    (counts.tokens.into_iter().map(u64::from).collect(), counts.exact)
}

/// Memories being chosen of what one search after the other has found.
struct Choice {
    recall: Recall,
    max_tokens: u64,
    memories: u32,
    exact: bool,
    told: Vec<wit::Recalled>,
    left_out: Vec<wit::Omitted>,
    /// Hits that were offered.
    seen: usize,
    pending: u32,
}

impl Choice {
    fn new(max_tokens: u64, memories: u32) -> Self {
        let (fence, exact) = count(&[Recall::counted_fence()]);
        let room = max_tokens.saturating_sub(fence.first().copied().unwrap_or(0));
        Self {
            recall: Recall::new(room, usize::try_from(memories).unwrap_or(usize::MAX)),
            max_tokens,
            memories,
            exact,
            told: Vec::new(),
            left_out: Vec::new(),
            seen: 0,
            pending: 0,
        }
    }

    /// Offers what was not offered before.
    fn offer(&mut self, answer: &Answered) {
        let hits = answer.hits.get(self.seen..).unwrap_or_default();
        self.seen = answer.hits.len().max(self.seen);
        let memories: Vec<String> = hits.iter().map(memory).collect();
        let counted: Vec<String> = memories.iter().map(|memory| Recall::counted(memory)).collect();
        let (tokens, exact) = count(&counted);
        self.exact &= exact;
        for ((found, memory), tokens) in hits.iter().zip(&memories).zip(tokens) {
            if self.recall.is_full() {
                return;
            }
            let wit::Hit { kind, id, path, .. } = &found.hit;
            match self.recall.offer(memory, tokens, found.hit.trust == wit::Trust::Trusted) {
                Ok(()) => self.told.push(recalled(&found.hit, tokens)),
                Err(why) => {
                    self.pending += u32::from(why == Omission::Pending);
                    self.left_out.push(wit::Omitted {
                        kind: *kind,
                        id: id.clone(),
                        path: path.clone(),
                        why: omission(why),
                    });
                }
            }
        }
    }

    /// Whether so many hits were enough: what was pending among them took no place.
    fn is_enough(&self, hits: u32) -> bool {
        self.recall.is_full() || hits.saturating_sub(self.pending) >= self.memories.saturating_mul(HITS_FACTOR)
    }

    /// What was chosen, in its fence.
    fn told(mut self, answer: Answered) -> wit::Recollection {
        loop {
            let text = self.recall.fenced();
            let (tokens, exact) = if text.is_empty() { (0, true) } else { whole(&text) };
            // Pieces of a text may come to fewer tokens than the whole.
            if tokens > self.max_tokens && self.recall.take_back() {
                if let Some(wit::Recalled { kind, id, path, .. }) = self.told.pop() {
                    self.left_out.push(wit::Omitted { kind, id, path, why: wit::Omission::NoRoom });
                }
                continue;
            }
            return wit::Recollection {
                health: health(answer.documents, &answer.findings),
                text,
                tokens,
                exact: exact && self.exact,
                max_tokens: self.max_tokens,
                memories: self.told,
                left_out: self.left_out,
                findings: answer.findings,
            };
        }
    }
}

fn whole(text: &str) -> (u64, bool) {
    let (tokens, exact) = count(&[text.to_owned()]);
    (tokens.first().copied().unwrap_or(u64::MAX), exact)
}

fn memory(found: &Found) -> String {
    let wit::Hit { kind, time, text, text_cut, .. } = &found.hit;
    let text = if *text_cut { format!("{text}…") } else { text.clone() };
    match kind {
        wit::HitKind::Source => memory_of_record(time, &found.label, &text),
        wit::HitKind::Topic | wit::HitKind::Experience => memory_of_claim(time, &text),
    }
}

fn recalled(hit: &wit::Hit, tokens: u64) -> wit::Recalled {
    wit::Recalled {
        kind: hit.kind,
        id: hit.id.clone(),
        path: hit.path.clone(),
        time: hit.time.clone(),
        evidence_number: hit.evidence_number,
        evidence: hit.evidence.clone(),
        score: hit.score,
        tokens,
    }
}

const fn omission(why: Omission) -> wit::Omission {
    match why {
        Omission::Pending => wit::Omission::Pending,
        Omission::Repeated => wit::Omission::Repeated,
        Omission::NoRoom => wit::Omission::NoRoom,
        Omission::Blank => wit::Omission::Blank,
    }
}
