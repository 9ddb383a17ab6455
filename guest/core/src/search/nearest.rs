//! Documents that are found by something else than their words.
//!
//! The index says which documents a caller sees that pass a query's filters, and puts them in order once somebody has
//! scored them. Knows nothing of what scores them.

use super::document::{Kind, id_of};
use super::engine::{MissingPages, Search};
use super::filter::Filter;
use super::index::Index;
use super::part::{Missing, Section, Version};
use super::query::Query;
use super::rank::{Ranked, Ranking, Signal};
use super::vectors::Key;
use super::view::{View, run_of};
use std::collections::BTreeMap;

/// A document that can be found. Of use as long as the index does not change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// By which what is known of it is found again: another one as soon as its file may say something else in its place. None:
    /// what its file says now may change unnoticed.
    pub key: Option<Key>,
    /// What it is.
    pub kind: Kind,
    at: (u32, u32),
}

impl Index {
    /// Documents of a view, in the order of the index: those that pass the filters of a query, or all. `manner` is what else
    /// decides what their keys stand for.
    ///
    /// # Errors
    /// Pages that are not at hand, as with [`Index::search`].
    pub fn candidates(
        &self,
        query: Option<&Query>,
        view: &View,
        manner: &[u8],
    ) -> Result<Vec<Candidate>, MissingPages> {
        let filter = query.map_or_else(Filter::default, |query| Filter::new(&self.parts, &self.files, query));
        let versions = self.versions();
        let mut missing = Missing::default();
        for (number, part) in (0_u32..).zip(&self.parts) {
            missing.part = number;
            filter.need(part, &mut missing);
            part.need(Section::Days, &mut missing);
        }
        let mut found = Vec::new();
        for ((number, part), piece) in (0_u32..).zip(&self.parts).zip(&view.pieces) {
            missing.part = number;
            for document in (0..part.documents()).filter(|document| piece.session(part, *document).is_some()) {
                if !filter.passes(part, number as usize, piece, document, &mut missing) {
                    continue;
                }
                let (id, place) = (part.id(document, &mut missing), part.place(document, &mut missing));
                let (Some(id), Some(place)) = (id, place) else { continue };
                let kind = part.traits_of(document).kind();
                let path = View::file(piece, part, document).and_then(|file| self.files.get(file));
                let run = run_of(part, document).and_then(|run| u32::try_from(run).ok());
                let key = path.zip(run.and_then(|run| versions.get(&(number, run)))).map(|(file, version)| {
                    let place = [place.offset, place.header, place.length].map(u64::to_le_bytes);
                    let kind = [u8::from(kind == Kind::Source)];
                    Key::of(&[
                        manner,
                        file.path.as_bytes(),
                        &version.size.to_le_bytes(),
                        version.token.as_bytes(),
                        &kind,
                        id_of(&id).as_bytes(),
                        place.as_flattened(),
                    ])
                });
                found.push(Candidate { key, kind, at: (number, document) });
            }
        }
        if missing.pages.is_empty() { Ok(found) } else { Err(MissingPages(missing)) }
    }

    /// The version of its file that each run was indexed of, by part and run.
    fn versions(&self) -> BTreeMap<(u32, u32), &Version> {
        let mut versions = BTreeMap::new();
        for file in self.files.iter() {
            // Of what was indexed in one go only the last run says of which version.
            let mut version = None;
            for at in file.runs.iter().rev() {
                let run = self.parts.get(at.part as usize).and_then(|part| part.runs().get(at.run as usize));
                version = run.and_then(|run| run.version.as_ref()).or(version);
                if let Some(version) = version {
                    versions.insert((at.part, at.run), version);
                }
            }
        }
        versions
    }

    /// Where these are, without scores, in their order.
    ///
    /// # Errors
    /// As [`Index::candidates`].
    pub fn placed(&self, candidates: &[Candidate], view: &View) -> Result<Vec<Ranked>, MissingPages> {
        let mut missing = Missing::default();
        let placed = candidates.iter().filter_map(|one| self.place(0, one.at, view, &mut missing)).collect();
        if missing.pages.is_empty() { Ok(placed) } else { Err(MissingPages(missing)) }
    }

    /// The best for a query among these, each with its score in millionths of a point: by score, then day, then id, as
    /// [`Index::search`] has it. `signal` is what a score is called where the query asks how it came about.
    ///
    /// # Errors
    /// As [`Index::candidates`].
    pub fn rank_by(
        &self,
        query: &Query,
        view: &View,
        scored: &[(u64, Candidate)],
        signal: &str,
    ) -> Result<Ranking, MissingPages> {
        let mut missing = Missing::default();
        let search = Search { index: self, query, view };
        let found = scored.iter().filter(|(score, _)| *score > 0).map(|(score, one)| (*score, one.at)).collect();
        let best = search.order(found, &mut missing).unwrap_or_default();
        let place = |(score, at)| {
            let mut hit = self.place(score, at, view, &mut missing)?;
            if query.explain {
                let points = i64::try_from(score).unwrap_or(i64::MAX);
                hit.signals.push(Signal { name: signal.to_owned(), points });
            }
            Some(hit)
        };
        let hits: Vec<Ranked> = best.into_iter().filter_map(place).collect();
        if !missing.pages.is_empty() {
            return Err(MissingPages(missing));
        }
        let truncated = scored.iter().filter(|(score, _)| *score > 0).count() > hits.len();
        Ok(Ranking { hits, truncated, terms_left_out: false })
    }

    fn place(&self, score: u64, (number, document): (u32, u32), view: &View, missing: &mut Missing) -> Option<Ranked> {
        let (part, piece) = (self.parts.get(number as usize)?, view.pieces.get(number as usize)?);
        missing.part = number;
        let file = View::file(piece, part, document).and_then(|file| self.files.get(file))?;
        let (id, place, days) =
            (part.id(document, missing), part.place(document, missing), part.days(document, missing));
        Some(Ranked {
            id: id_of(&id?).to_owned(),
            path: file.path.clone(),
            place: place?,
            kind: part.traits_of(document).kind(),
            days: days?,
            score,
            signals: Vec::new(),
        })
    }
}
