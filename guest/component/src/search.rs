//! `search`: the index is made of the records as they stand, then asked.

use std::rc::Rc;

use recollex_core::ids::{TurnRef, is_v2_path, references_in};
use recollex_core::search::{
    Document, Index, Kind, Limits, Query, QueryError, QueryRequest, Ranked, Scratch, Speaker, Weights,
};
use recollex_core::session::Settings;
use recollex_core::source::{
    EntryKind, Finding, FindingCode, Given, LimitReached, NewerIds, Record, RecordRef, Verifier, said,
};

use crate::bindings::exports::recollex::memory::workspace as wit;
use crate::bindings::recollex::memory::store::{Area, Entry, Kind as FileKind, StoreError};
use crate::convert;
use crate::tree::{self, Piece, Reader};
use crate::view::View;

/// Looks words up in the records of the workspace that the caller sees; others count for nothing. A file that changes while it is read is an error, or on the `last` try
/// a finding.
pub(crate) fn search(
    settings: &Settings,
    view: &View,
    query: &wit::Query,
    last: bool,
) -> Result<wit::Answer, wit::Error> {
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
    };
    let parsed = Query::parse(&request, &limits).map_err(|error| invalid(&error))?;
    let corpus = Corpus::read(settings, view, last)?;
    let ranking = corpus.index.search(&parsed, &mut Scratch::default());
    let hits = ranking.hits.into_iter().map(|ranked| corpus.hit(ranked, settings));
    let hits = hits.collect::<Result<_, _>>()?;
    let mut findings = corpus.findings;
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
    Ok(wit::Answer { hits, truncated: ranking.truncated, findings })
}

fn invalid(error: &QueryError) -> wit::Error {
    wit::Error::Invalid(convert::problem("INVALID_ARGUMENT", error.reason(), None, error.to_string()))
}

/// Every record that can be found, and what is needed to show it.
struct Corpus {
    index: Index,
    /// By document number.
    records: Vec<Place>,
    /// The archives, by the number that a place names.
    files: Vec<Entry>,
    /// Which records of older archives have a frame in their place.
    newer: NewerIds,
    findings: Vec<wit::Finding>,
    /// Text that was indexed, and how much may be.
    bytes: u64,
    bytes_max: u64,
}

/// Where a record is. What else a hit shows is read again with its text.
struct Place {
    file: u32,
    record: Record,
    /// The headings above it; most records have none.
    headings: Rc<[String]>,
    /// What a line mentions that is no record itself.
    mentions: Option<Vec<TurnRef>>,
}

impl Corpus {
    /// Reads all archives. What cannot be read is a finding, not an error.
    fn read(settings: &Settings, view: &View, last: bool) -> Result<Self, wit::Error> {
        let mut entries = view.list("sources").map_err(|error| convert::store_error(error, Some("sources")))?;
        // v2 archives first: where one has a record, an older archive's with the same id is not found.
        entries.sort_by_key(|entry| !is_v2_path(&entry.path));
        let keep = usize::try_from(settings.record_bytes).unwrap_or(usize::MAX);
        let mut verifier = Verifier::new(Given::InWorkspace, &settings.limits()).keep_records(keep);
        let mut corpus = Self {
            index: Index::new(Weights::default()),
            records: Vec::new(),
            files: Vec::new(),
            newer: NewerIds::among(entries.iter().map(|entry| entry.path.as_str())),
            findings: Vec::new(),
            bytes: 0,
            bytes_max: settings.index_bytes,
        };
        let mut full = None;
        for entry in entries {
            corpus.read_file(entry, &mut verifier, &mut full, last)?;
        }
        if let Some(limit) = full {
            return Err(convert::limit(limit));
        }
        corpus.findings = verifier.take_findings(usize::MAX).into_iter().map(convert::finding).collect();
        Ok(corpus)
    }

    fn read_file(
        &mut self,
        entry: Entry,
        verifier: &mut Verifier,
        full: &mut Option<LimitReached>,
        last: bool,
    ) -> Result<(), wit::Error> {
        let kind = match entry.kind {
            FileKind::File => EntryKind::File,
            FileKind::Symlink => EntryKind::Symlink,
            FileKind::Special => EntryKind::Special,
            FileKind::Undecodable => EntryKind::Undecodable,
            FileKind::Unreadable => EntryKind::Unreadable,
        };
        let class = verifier.file(&entry.path, kind);
        if !class.wants_content() {
            verifier.end(&mut |_, _| {});
            return Ok(());
        }
        // At most as many files as documents matter, and documents are numbered by `u32`.
        let file = self.files.len() as u32;
        let mut reader = Reader::listed(&entry);
        let mut add = |path: &str, record: RecordRef<'_>| {
            if full.is_none() {
                *full = self.add(file, path, record).err();
            }
        };
        loop {
            match reader.next() {
                Ok(Some(Piece::Text(text))) => verifier.push_text(&text, &mut add),
                Ok(Some(Piece::Bytes(bytes))) => verifier.push_bytes(&bytes, &mut add),
                Ok(None) => {
                    verifier.end(&mut add);
                    break;
                }
                Err(StoreError::Changed) if !last => {
                    return Err(convert::store_error(StoreError::Changed, Some(&entry.path)));
                }
                Err(error) => {
                    verifier.unreadable(&convert::in_words(&error));
                    break;
                }
            }
        }
        self.files.push(entry);
        Ok(())
    }

    fn add(&mut self, file: u32, path: &str, found: RecordRef<'_>) -> Result<(), LimitReached> {
        self.newer.see(path, found);
        let (headings, mentions): (Rc<[String]>, _) = match found {
            RecordRef::Frame(_) => (Rc::default(), None),
            RecordRef::Legacy(legacy) if !legacy.stands_alone() || self.newer.supersedes(legacy) => return Ok(()),
            RecordRef::Legacy(legacy) => {
                let before = self.records.last().map(|place| &place.headings);
                let same = before.filter(|before| ***before == *legacy.headings).cloned();
                (same.unwrap_or_else(|| legacy.headings.into()), (!legacy.is_record()).then(|| legacy.references()))
            }
        };
        // What counts is text that can be found, and not what a damaged file holds.
        self.bytes = self.bytes.saturating_add(found.text().len() as u64);
        if self.bytes > self.bytes_max {
            let subject = Some("sources".to_owned());
            return Err(LimitReached {
                name: "limits.index-bytes",
                allowed: self.bytes_max,
                asked: self.bytes,
                subject,
            });
        }
        let record = match found {
            RecordRef::Frame(frame) => Record::new(path, frame),
            RecordRef::Legacy(legacy) if mentions.is_some() => Record::of_mention(path, legacy),
            RecordRef::Legacy(legacy) => Record::of_legacy(path, legacy),
        };
        let speaker = record.speaker.as_ref();
        let document = Document {
            id: &record.id,
            path,
            kind: Kind::Source,
            time: &record.time,
            label: &record.label,
            speaker: speaker.map(|speaker| Speaker {
                id: &speaker.id,
                display: &speaker.display,
                label: &speaker.label,
            }),
            text: match mentions {
                Some(_) => found.text(),
                None => said(found.text(), &record.time, &record.label),
            },
        };
        self.index.add(&document).map_err(|full| LimitReached {
            name: "search.documents",
            allowed: u64::from(full.documents),
            asked: u64::from(full.documents).saturating_add(1),
            subject: None,
        })?;
        self.records.push(Place { file, record, headings, mentions });
        Ok(())
    }

    fn hit(&self, ranked: Ranked, settings: &Settings) -> Result<wit::Hit, wit::Error> {
        let place = self.records.get(ranked.document.get());
        let found = place.and_then(|place| Some((place, self.files.get(place.file as usize)?)));
        // The index names only documents that were added, each with its place.
        let Some((Place { record, headings, mentions, .. }, entry)) = found else {
            let problem = convert::problem("WRITER_FAILURE_UNKNOWN", "index-out-of-step", None, "search again");
            return Err(wit::Error::Store(problem));
        };
        // Behind the brackets and the label comes what was said; both together are no longer than a header.
        let head = record.time.len() + record.label.len();
        let most = settings.hit_bytes.saturating_add(head as u64).saturating_add(64);
        let failed = |error| convert::store_error(error, Some(&entry.path));
        // Without a stamp: the archive may have grown, and the record is still where it was.
        let text =
            tree::read_range(Area::Tree, &entry.path, None, record.offset, record.length.min(most)).map_err(failed)?;
        let whole = text.len() as u64 >= record.length;
        let is_there = match mentions {
            Some(mentions) => !whole || references_in(&text) == *mentions,
            None => text.strip_prefix('[').is_some_and(|text| text.starts_with(record.time.as_str())),
        };
        if !is_there {
            return Err(failed(StoreError::Changed));
        }
        let said = if mentions.is_some() { text.as_str() } else { said(&text, &record.time, &record.label) };
        let shown = said.floor_char_boundary(usize::try_from(settings.hit_bytes).unwrap_or(usize::MAX));
        let record = record.clone();
        Ok(wit::Hit {
            kind: wit::HitKind::Source,
            evidence: match mentions {
                Some(mentions) => mentions.iter().map(ToString::to_string).collect(),
                None => vec![record.id.clone()],
            },
            id: record.id,
            path: record.path,
            anchor: record.anchor,
            line: record.line,
            text_cut: !whole || shown < said.len(),
            text: said.get(..shown).unwrap_or_default().to_owned(),
            time: record.time,
            score: ranked.score,
            speaker: record.speaker.map(convert::speaker),
            trust: convert::trust(record.trust),
            evidence_number: None,
            block: None,
            headings: headings.to_vec(),
            signals: ranked
                .signals
                .into_iter()
                .map(|signal| wit::Signal { name: signal.name, points: signal.points })
                .collect(),
        })
    }
}
