//! `search`: what is asked, what is shown.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

use recollex_core::ids::{TopicPath, is_v2_path};
use recollex_core::read::Records;
use recollex_core::search::{
    Claim, Grounds, Kind, Limits, Method, Query, QueryError, QueryRequest, Ranked as RankedDocument, Signal,
};
use recollex_core::session::Settings;
use recollex_core::source::{Finding, FindingCode, FramePlace, LegacyRef, Record, RecordRef, Trust, glance, said};

use crate::bindings::exports::recollex::memory::workspace as wit;
use crate::bindings::recollex::memory::store::{Area, StoreError};
use crate::branches::Place;
use crate::convert;
use crate::evidence::Archives;
use crate::index::{Ranked, Shelf, said_in};
use crate::meaning;
use crate::read;
use crate::reading;
use crate::session::Session;
use crate::tree;
use crate::view::View;

/// So many times more hits are looked at for a reader on a branch.
const READER_FACTOR: u32 = 3;

/// Looks words up in the records and claims of the workspace that the caller sees; others count for nothing. A file that changes while
/// it is read is an error, or on the `last` try a finding.
pub(crate) fn search(
    session: &Session,
    view: &View,
    query: &wit::Query,
    last: bool,
) -> Result<wit::Answer, wit::Error> {
    let Session { settings, remembered, .. } = session;
    let limits =
        Limits { top_k_max: u32::try_from(settings.top_k_max).unwrap_or(u32::MAX), query_bytes: settings.query_bytes };
    let request = QueryRequest {
        text: &query.text,
        top_k: query.top_k,
        scope: match query.scope {
            wit::Scope::Any => None,
            wit::Scope::Source => Some(Kind::Source),
            wit::Scope::Topic => Some(Kind::Topic),
        },
        speaker: query.speaker.as_deref(),
        path_prefix: query.path_prefix.as_deref(),
        from: query.from.as_deref(),
        to: query.to.as_deref(),
        explain: query.explain,
        method: match query.method {
            wit::Method::Words => Method::Words,
            wit::Method::Embedding => Method::Embedding,
            wit::Method::Hybrid => Method::Hybrid,
        },
    };
    let parsed = Query::parse(&request, &limits).map_err(|error| invalid(&error))?;
    let Some(reader) = &query.reader else {
        let Answered { hits, truncated, findings, .. } = by_method(session, view, &parsed, &query.text, last)?;
        return Ok(wit::Answer { hits: hits.into_iter().map(|found| found.hit).collect(), truncated, findings });
    };
    let place = Place::find(remembered, settings, view, reader)?;
    // What is on other branches gives way to some that ranks behind it.
    let wider = query.top_k.saturating_mul(READER_FACTOR).min(limits.top_k_max.max(query.top_k));
    let Answered { hits, truncated, findings, .. } =
        by_method(session, view, &parsed.with_top_k(wider), &query.text, last)?;
    let truncated = truncated || hits.len() as u64 > u64::from(query.top_k);
    let hits = place.order(settings, hits, query.top_k);
    Ok(wit::Answer { hits: hits.into_iter().map(|found| found.hit).collect(), truncated, findings })
}

/// Something that was found.
pub(crate) struct Found {
    pub(crate) hit: wit::Hit,
    /// What stands before the text of a record: speaker or role. Empty for a claim.
    pub(crate) label: String,
}

/// What was found.
pub(crate) struct Answered {
    /// Best first.
    pub(crate) hits: Vec<Found>,
    pub(crate) truncated: bool,
    pub(crate) findings: Vec<wit::Finding>,
    /// How many documents there are that could have been found.
    pub(crate) documents: u32,
}

fn by_method(session: &Session, view: &View, query: &Query, text: &str, last: bool) -> Result<Answered, wit::Error> {
    match query.method() {
        Method::Words => answer(&session.index, &session.settings, view, query, last),
        Method::Embedding | Method::Hybrid => meaning::answer(session, view, query, text, last),
    }
}

/// Answers a query that was checked by its words.
pub(crate) fn answer(
    shelf: &Shelf,
    settings: &Settings,
    view: &View,
    query: &Query,
    last: bool,
) -> Result<Answered, wit::Error> {
    shown(shelf.search(settings, view.audience(), query, last)?, settings, view)
}

/// What a caller is shown of what was found.
pub(crate) fn shown(found: Ranked, settings: &Settings, view: &View) -> Result<Answered, wit::Error> {
    let Ranked { ranking, findings, documents } = found;
    let mut findings: Vec<wit::Finding> = findings.into_iter().map(convert::finding).collect();
    let older = Older::read(&ranking.hits, settings, view)?;
    let claims = Claims::read(&ranking.hits, settings, view)?;
    let hits = ranking.hits.into_iter().map(|ranked| match ranked.kind {
        Kind::Source => hit(ranked, &older, settings),
        Kind::Topic | Kind::Experience => claims.hit(ranked, settings),
    });
    let hits = hits.collect::<Result<Vec<Found>, _>>()?;
    if ranking.terms_left_out {
        let code = FindingCode::QueryTermsLeftOut;
        findings.push(convert::finding(Finding {
            code: code.as_str(),
            severity: code.severity(),
            path: None,
            line: None,
            subject: None,
            excerpt: None,
            message: "the query has so many words that only its rarest were looked for; ask for fewer".to_owned(),
        }));
    }
    Ok(Answered { hits, truncated: ranking.truncated, findings, documents })
}

pub(crate) fn invalid(error: &QueryError) -> wit::Error {
    wit::Error::Invalid(convert::problem("INVALID_ARGUMENT", error.reason(), None, error.to_string()))
}

/// What a hit shows of a record.
struct Shown {
    record: Record,
    /// The headings above it; most records have none.
    headings: Vec<String>,
    /// What a line mentions that is no record itself.
    mentions: Option<Vec<String>>,
    /// Cut to the setting `search.hit-bytes`.
    text: String,
    is_cut: bool,
}

impl Shown {
    /// Of a record in which `text` was said, or more: `length` bytes.
    fn new(record: Record, text: &str, length: u64, settings: &Settings) -> Self {
        let text = beginning(text, settings).to_owned();
        Self { is_cut: (text.len() as u64) < length, record, headings: Vec::new(), mentions: None, text }
    }
}

/// Hits in archives of the older form, by path and offset: a file is read once for all of them.
struct Older(BTreeMap<(String, u64), Shown>);

impl Older {
    fn read(hits: &[RankedDocument], settings: &Settings, view: &View) -> Result<Self, wit::Error> {
        let older = hits.iter().filter(|hit| hit.kind == Kind::Source && !is_v2_path(&hit.path));
        let wanted: BTreeSet<(&str, u64)> = older.map(|hit| (hit.path.as_str(), hit.place.offset)).collect();
        let paths: BTreeSet<&str> = wanted.iter().map(|(path, _)| *path).collect();
        let mut found = BTreeMap::new();
        for path in paths {
            let failed = |error| convert::store_error(error, Some(path));
            let entry = view.find(path).map_err(failed)?.ok_or_else(|| failed(StoreError::Changed))?;
            let mut left = wanted.range((path, 0)..=(path, u64::MAX)).count();
            // What is shown, and the label and time before it.
            let text_bytes = settings.hit_bytes.saturating_add(settings.header_bytes);
            read::scan_legacy(&entry, &settings.limits(), text_bytes, |legacy| {
                let record = of_older(path, legacy).filter(|record| wanted.contains(&(path, record.offset)));
                if let Some(record) = record {
                    let at = (path.to_owned(), record.offset);
                    found.insert(at, shown_of_older(record, legacy, settings));
                    left = left.saturating_sub(1);
                }
                left > 0
            })?;
        }
        Ok(Self(found))
    }
}

fn of_older(path: &str, legacy: &LegacyRef<'_>) -> Option<Record> {
    match (legacy.stands_alone(), legacy.is_record()) {
        (false, _) => None,
        (true, true) => Some(Record::of_legacy(path, legacy)),
        (true, false) => Some(Record::of_mention(path, legacy)),
    }
}

fn shown_of_older(record: Record, legacy: &LegacyRef<'_>, settings: &Settings) -> Shown {
    let text = said_in(RecordRef::Legacy(legacy), &record);
    let before = (legacy.text.len() - text.len()) as u64;
    let length = record.length.saturating_sub(before);
    let mentions = (!legacy.is_record()).then(|| legacy.references().iter().map(ToString::to_string).collect());
    Shown { headings: legacy.headings.to_vec(), mentions, ..Shown::new(record, text, length, settings) }
}

/// Reads what a hit shows. What is no longer where it was is an error.
fn hit(ranked: RankedDocument, older: &Older, settings: &Settings) -> Result<Found, wit::Error> {
    let path = ranked.path.as_str();
    let changed = || convert::store_error(StoreError::Changed, Some(path));
    let read;
    let shown = if is_v2_path(path) {
        read = frame(&ranked, settings)?.filter(|shown| shown.record.id == ranked.id).ok_or_else(changed)?;
        &read
    } else {
        older.0.get(&(ranked.path.clone(), ranked.place.offset)).ok_or_else(changed)?
    };
    let Shown { record, headings, mentions, text, is_cut } = shown;
    let record = record.clone();
    let hit = wit::Hit {
        kind: wit::HitKind::Source,
        evidence: mentions.clone().unwrap_or_else(|| vec![record.id.clone()]),
        id: record.id,
        path: record.path,
        anchor: record.anchor,
        line: record.line,
        text_cut: *is_cut,
        text: text.clone(),
        time: record.time,
        score: ranked.score,
        speaker: record.speaker.map(convert::speaker),
        trust: convert::trust(record.trust),
        evidence_number: None,
        block: None,
        headings: headings.clone(),
        branch: None,
        signals: signals(ranked.signals),
    };
    Ok(Found { hit, label: record.label })
}

fn signals(signals: Vec<Signal>) -> Vec<wit::Signal> {
    signals.into_iter().map(|signal| wit::Signal { name: signal.name, points: signal.points }).collect()
}

/// As much of a text as is shown.
fn beginning<'t>(text: &'t str, settings: &Settings) -> &'t str {
    let shown = text.floor_char_boundary(usize::try_from(settings.hit_bytes).unwrap_or(usize::MAX));
    text.get(..shown).unwrap_or_default()
}

/// Hits in topics, by path and the claim's id: a topic is read once for all of them.
struct Claims(BTreeMap<(String, String), (Claim, Grounds, wit::Trust)>);

impl Claims {
    fn read(hits: &[RankedDocument], settings: &Settings, view: &View) -> Result<Self, wit::Error> {
        let claimed = hits.iter().filter(|hit| hit.kind == Kind::Topic);
        let wanted: BTreeSet<(&str, &str)> = claimed.map(|hit| (hit.path.as_str(), hit.id.as_str())).collect();
        let paths: BTreeSet<&str> = wanted.iter().map(|(path, _)| *path).collect();
        let mut found = BTreeMap::new();
        let archives = Archives::of(view, &settings.limits());
        for path in paths {
            let failed = |error| convert::store_error(error, Some(path));
            let entry = view.find(path).map_err(failed)?.ok_or_else(|| failed(StoreError::Changed))?;
            let topic = TopicPath::parse(path).map_err(|_| failed(StoreError::Changed))?;
            let text = reading::text_of(&entry)?;
            let mut grounds: BTreeMap<String, Grounds> = BTreeMap::new();
            for (id, found) in Claim::grounds(&topic, &text, &archives) {
                // Of two with one id the first is shown.
                grounds.entry(id).or_insert(found);
            }
            for claim in Claim::all(&topic, &text).into_iter().filter(|claim| wanted.contains(&(path, claim.id()))) {
                let grounds = grounds.remove(claim.id()).unwrap_or_default();
                let trust =
                    convert::trust(match grounds.complete && grounds.refs.iter().all(|one| archives.is_trusted(one)) {
                        true => Trust::Trusted,
                        false => Trust::Pending,
                    });
                found.entry((path.to_owned(), claim.id().to_owned())).or_insert((claim, grounds, trust));
            }
        }
        archives.check()?;
        Ok(Self(found))
    }

    fn hit(&self, ranked: RankedDocument, settings: &Settings) -> Result<Found, wit::Error> {
        let changed = || convert::store_error(StoreError::Changed, Some(&ranked.path));
        let (claim, grounds, trust) = self.0.get(&(ranked.path.clone(), ranked.id.clone())).ok_or_else(changed)?;
        let block = claim.event.block.as_str();
        let text = beginning(claim.text(), settings);
        let hit = wit::Hit {
            kind: wit::HitKind::Topic,
            id: block.to_owned(),
            anchor: format!("^{block}"),
            line: claim.event.line as u64,
            text_cut: text.len() < claim.text().len(),
            text: text.to_owned(),
            time: claim.time().to_owned(),
            score: ranked.score,
            speaker: None,
            trust: *trust,
            evidence_number: u32::try_from(claim.event.number).ok(),
            block: Some(block.to_owned()),
            evidence: grounds.refs.iter().map(ToString::to_string).collect(),
            headings: claim.headings.clone(),
            branch: None,
            signals: signals(ranked.signals),
            path: ranked.path,
        };
        Ok(Found { hit, label: String::new() })
    }
}

/// What is embedded of each of these documents, in their order: what was said in a record; of a claim, the words of its topic
/// and headings, and what it says. What is no longer where it was is an error.
pub(crate) fn texts(documents: &[RankedDocument], settings: &Settings, view: &View) -> Result<Vec<String>, wit::Error> {
    // As much as is embedded is read, not as much as is shown.
    let settings = &Settings { hit_bytes: settings.embed_bytes, ..settings.clone() };
    let older = Older::read(documents, settings, view)?;
    let mut topics: BTreeMap<&str, BTreeMap<String, String>> = BTreeMap::new();
    let mut text = |document: &RankedDocument, path| {
        let changed = || convert::store_error(StoreError::Changed, Some(path));
        if document.kind == Kind::Source {
            return match is_v2_path(path) {
                true => {
                    let shown = frame(document, settings)?.filter(|shown| shown.record.id == document.id);
                    shown.map(|shown| shown.text).ok_or_else(changed)
                }
                false => {
                    let shown = older.0.get(&(document.path.clone(), document.place.offset));
                    shown.map(|shown| shown.text.clone()).ok_or_else(changed)
                }
            };
        }
        let claims = match topics.entry(path) {
            Entry::Occupied(claims) => claims.into_mut(),
            Entry::Vacant(place) => place.insert(claims_in(path, view)?),
        };
        claims.get(&document.id).cloned().ok_or_else(changed)
    };
    documents.iter().map(|document| text(document, document.path.as_str())).collect()
}

/// What is embedded of the claims of a topic, by id. Of two with one id the first counts.
fn claims_in(path: &str, view: &View) -> Result<BTreeMap<String, String>, wit::Error> {
    let failed = |error| convert::store_error(error, Some(path));
    let entry = view.find(path).map_err(failed)?.ok_or_else(|| failed(StoreError::Changed))?;
    let topic = TopicPath::parse(path).map_err(|_| failed(StoreError::Changed))?;
    let mut texts = BTreeMap::new();
    for claim in Claim::all(&topic, &reading::text_of(&entry)?) {
        let text = format!("{}\n{}", claim.document().label, claim.text());
        texts.entry(claim.id().to_owned()).or_insert(text);
    }
    Ok(texts)
}

/// The frame of a hit, and as much of its text as is shown. None: it is not there any more.
fn frame(ranked: &RankedDocument, settings: &Settings) -> Result<Option<Shown>, wit::Error> {
    let place = &ranked.place;
    let wanted = place.header.saturating_add(place.length.min(settings.hit_bytes));
    // Without a stamp: the archive may have grown, and the record is still where it was.
    let text = tree::read_range(Area::Tree, &ranked.path, None, place.offset, wanted).map_err(|error| match error {
        // The index has it from a moment ago.
        StoreError::NotFound => convert::store_error(StoreError::Changed, Some(&ranked.path)),
        error => convert::store_error(error, Some(&ranked.path)),
    })?;
    let length = place.header.saturating_add(place.length);
    let at = FramePlace { offset: place.offset, line: place.line, length };
    Ok(glance(&ranked.path, &text, at, |frame| {
        let said = said(frame.record, frame.time, frame.label);
        Shown::new(Record::new(&ranked.path, frame), said, place.length, settings)
    }))
}
