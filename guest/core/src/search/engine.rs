//! How a query is answered.
//!
//! ```text
//! look up   each term of the query in each part: how many documents hold it, and its postings
//! add up    each impact to the document's sum; what sessions hold; what stands side by side ([`super::sums`])
//! select    the documents whose scores are the highest, by bounds: most are never scored ([`super::select`])
//! order     by score, then day, then id
//! ```
//!
//! A search is a function of what is at hand. If pages of segments are missing it says which, and is begun again once they
//! are there.

use super::document::id_of;
use super::filter::Filter;
use super::index::Index;
use super::part::{List, Missing, Part, Section};
use super::query::Query;
use super::rank::{Ranked, Ranking, Signal};
use super::score::{OCCURRENCE, SCORED_TERMS, Scale, rarity, share};
use super::select::{Scorer, multiplied};
use super::sums::{Found, Scratch, Sums, add_up};
use super::view::View;
use super::weights::FACTORS;
use super::words::Language;
use crate::ids::Day;
use core::cmp::Reverse;

/// A document, by part and number.
pub(super) type At = (u32, u32);

impl Index {
    /// The best documents for a query: those that hold any of its terms and pass its filters, by score (highest first),
    /// then day (earliest first, none last), then id.
    ///
    /// # Errors
    /// Pages that are not at hand: see [`Index::wanted`]. Nothing has happened.
    pub fn search(&self, query: &Query, view: &View, scratch: &mut Scratch) -> Result<Ranking, MissingPages> {
        let mut missing = Missing::default();
        let search = Search { index: self, query, view };
        match search.run(scratch, &mut missing) {
            Some(ranking) if missing.pages.is_empty() => Ok(ranking),
            _ => Err(MissingPages(missing)),
        }
    }
}

/// A search cannot go on without these.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MissingPages(pub(super) Missing);

pub(super) struct Search<'a> {
    pub(super) index: &'a Index,
    pub(super) query: &'a Query,
    pub(super) view: &'a View,
}

impl<'a> Search<'a> {
    fn run(&self, scratch: &mut Scratch, missing: &mut Missing) -> Option<Ranking> {
        let filter = Filter::new(&self.index.parts, &self.index.files, self.query);
        let mut sums = self.look_up(&filter, missing)?;
        add_up(self.index, self.view, &mut sums, scratch, missing)?;
        let scorer = Scorer::new(self, scratch);
        let selected = scorer.select(&filter, missing);
        let hits = self.order(selected.documents, missing)?;
        let mut ranked = Vec::with_capacity(hits.len());
        for (score, at) in hits {
            ranked.push(self.ranked(score, at, &sums, &scorer, missing)?);
        }
        Some(Ranking { hits: ranked, truncated: selected.truncated, terms_left_out: sums.left_out })
    }

    pub(super) fn parts(&self) -> impl Iterator<Item = (u32, &'a Part)> {
        (0..).zip(&self.index.parts)
    }

    /// The terms that occur, and how much each counts.
    fn look_up(&self, filter: &Filter, missing: &mut Missing) -> Option<Sums<'a>> {
        let mut found: Vec<Found<'a>> = Vec::new();
        // What languages there are decides which forms count; English is what a text without any signs is taken for.
        let languages = self.view.languages | Language::English.bit();
        let mut before = None;
        for (number, term) in self.query.terms.iter().enumerate() {
            let mut lists: Vec<Vec<(usize, List)>> = Vec::new();
            for (part_number, part) in self.parts() {
                missing.part = part_number;
                let mut here = Vec::new();
                for (number, (_, form)) in term.forms.iter().enumerate().filter(|(_, (of, _))| of & languages != 0) {
                    here.extend(part.list(form, missing).flatten().map(|list| (number, list)));
                }
                lists.push(here);
            }
            if lists.iter().any(|here| !here.is_empty()) {
                let follows = term.follows && before == number.checked_sub(1);
                found.push(Found { term, lists, documents: 0, forms: 0, rarity: 0, follows });
                before = Some(number);
            }
        }
        for (number, part) in self.parts() {
            missing.part = number;
            filter.need(part, missing);
        }
        self.need_names(missing);
        // All postings are asked for before anything is done with any.
        for found in &found {
            for ((number, part), lists) in self.parts().zip(&found.lists) {
                missing.part = number;
                for (_, list) in lists {
                    part.postings(*list, missing);
                }
            }
        }
        if !missing.pages.is_empty() {
            return None;
        }
        for found in &mut found {
            (found.documents, found.forms) = self.documents(found, missing)?;
        }
        // Terms that hidden documents alone hold do not occur.
        let mut gone = false;
        found.retain_mut(|found| {
            found.follows &= !gone;
            gone = found.documents == 0;
            !gone
        });
        let left_out = self.query.terms_left_out || found.len() > SCORED_TERMS;
        keep_rarest(&mut found);
        let documents = self.view.documents;
        let (mut total, mut most) = (0_u64, 0);
        for found in &mut found {
            found.rarity = share(rarity(documents, found.documents), self.view.weights.of_term(found.term.says));
            // A document may hold several forms of a term.
            total += u64::from(found.rarity) * found.forms as u64;
            most += found.forms;
        }
        let pairs =
            if self.view.weights.adjacent == 0 { 0 } else { found.iter().filter(|found| found.follows).count() };
        total += u64::from(share(rarity(documents, 1), self.view.weights.adjacent)) * pairs as u64;
        Some(Sums { found, adjacent: Vec::new(), scale: Scale::for_sum(total, most + pairs), left_out })
    }

    /// How many documents that count hold a term, and in how many forms. Neither depends on how documents are spread over
    /// parts, or on any that do not count.
    fn documents(&self, found: &Found<'_>, missing: &mut Missing) -> Option<(u32, usize)> {
        let mut documents = 0_u32;
        let mut forms: Vec<usize> = Vec::new();
        for (((number, part), lists), piece) in self.parts().zip(&found.lists).zip(&self.view.pieces) {
            missing.part = number;
            for (form, list) in lists {
                let hidden: u32 = if piece.hidden.is_empty() {
                    0
                } else {
                    let postings = part.postings(*list, missing)?;
                    piece.hidden.iter().map(|range| postings.before(range.end) - postings.before(range.start)).sum()
                };
                let here = list.count.saturating_sub(hidden);
                documents = documents.saturating_add(here);
                if here > 0 && !forms.contains(form) {
                    forms.push(*form);
                }
            }
        }
        Some((documents.min(self.view.documents), forms.len()))
    }

    pub(super) fn is_named(&self) -> bool {
        self.view.weights.named != 1000
    }

    /// Who spoke has to be known where the query may name somebody.
    fn need_names(&self, missing: &mut Missing) {
        if !self.is_named() {
            return;
        }
        for (number, part) in self.parts() {
            missing.part = number;
            if !part.speakers().mark_named(self.query.words()).is_empty() {
                part.need(Section::Spoken, missing);
            }
        }
    }

    fn saturation(&self, part: u32, document: u32, frequency: u8) -> u32 {
        let Some(part) = self.index.parts.get(part as usize) else { return 0 };
        let code = part.lengths().get(document as usize).copied().unwrap_or(0);
        self.view.saturation(part.traits_of(document).kind()).get(frequency, code)
    }

    /// The best `top_k` in their order.
    pub(super) fn order(&self, mut documents: Vec<(u64, At)>, missing: &mut Missing) -> Option<Vec<(u64, At)>> {
        documents.sort_unstable_by_key(|(score, _)| Reverse(*score));
        let top = self.query.top_k;
        // Those with the score of the last that is shown, and no other, decide by day and id.
        if let Some(worst) = top.checked_sub(1).and_then(|last| documents.get(last)).map(|(score, _)| *score) {
            documents.retain(|(score, _)| *score >= worst);
        }
        let mut whole = true;
        let mut keyed: Vec<(Reverse<u64>, DayOrder, String, At)> = Vec::with_capacity(documents.len());
        for (place, (score, at)) in documents.into_iter().enumerate() {
            let (part_number, document) = at;
            let Some(part) = self.index.parts.get(part_number as usize) else { continue };
            missing.part = part_number;
            let (days, id) = (part.days(document, missing), part.id(document, missing));
            if place < top {
                // It will be asked for next. The less often a search is begun again, the better.
                part.place(document, missing);
            }
            match (days, id) {
                (Some(days), Some(id)) => {
                    keyed.push((Reverse(score), DayOrder(days.map(|days| days.first())), id, at));
                }
                _ => whole = false,
            }
        }
        if !whole {
            return None;
        }
        keyed.sort_unstable();
        keyed.truncate(top);
        Some(keyed.into_iter().map(|(score, _, _, at)| (score.0, at)).collect())
    }

    fn ranked(
        &self,
        score: u64,
        at: At,
        sums: &Sums<'_>,
        scorer: &Scorer<'_>,
        missing: &mut Missing,
    ) -> Option<Ranked> {
        let (part_number, document) = at;
        let part = self.index.parts.get(part_number as usize)?;
        let piece = self.view.pieces.get(part_number as usize)?;
        missing.part = part_number;
        let file = View::file(piece, part, document).and_then(|file| self.index.files.get(file))?;
        let (place, days) = (part.place(document, missing), part.days(document, missing));
        let signals = if self.query.explain { self.explain(at, sums, scorer, missing) } else { Some(Vec::new()) };
        Some(Ranked {
            id: id_of(&part.id(document, missing)?).to_owned(),
            path: file.path.clone(),
            place: place?,
            kind: part.traits_of(document).kind(),
            days: days?,
            score: sums.scale.points(score),
            signals: signals?,
        })
    }

    /// What a score is made of. Each signal is the difference of two scores, so they add up exactly.
    fn explain(&self, at: At, sums: &Sums<'_>, scorer: &Scorer<'_>, missing: &mut Missing) -> Option<Vec<Signal>> {
        let (part_number, document) = at;
        let part = self.index.parts.get(part_number as usize)?;
        let mut steps: Vec<(String, u64)> = Vec::new();
        let mut total = 0_u64;
        for found in &sums.found {
            let mut impact = 0;
            for (_, list) in found.lists.get(part_number as usize)? {
                if let Some(posting) = part.postings(*list, missing)?.get(document) {
                    let saturation = self.saturation(part_number, document, posting.frequency());
                    impact += u64::from(sums.scale.impact(found.rarity, saturation));
                }
            }
            if impact > 0 {
                total += impact * 1000;
                steps.push((format!("term:{}", found.term.text), total));
            }
        }
        for pair in sums.adjacent.iter().filter(|pair| pair.documents.binary_search(&at).is_ok()) {
            let saturation = self.saturation(part_number, document, OCCURRENCE);
            total += u64::from(sums.scale.impact(pair.rarity, saturation)) * 1000;
            let text = |number: usize| sums.found.get(number).map(|found| &*found.term.text).unwrap_or_default();
            steps.push((format!("adjacent:{} {}", text(pair.second.wrapping_sub(1)), text(pair.second)), total));
        }
        let parts = scorer.parts(at, missing);
        for (name, value) in [("before", parts.before), ("after", parts.after), ("session", parts.session)] {
            if value > 0 {
                total += value;
                steps.push((name.to_owned(), total));
            }
        }
        for (name, factor) in [("speaker-named", parts.named)].into_iter().chain(FACTORS.into_iter().zip(parts.own)) {
            if factor != 1000 {
                total = multiplied(total, factor);
                steps.push((name.to_owned(), total));
            }
        }
        let mut before = 0;
        let signal = |(name, total): (String, u64)| {
            let points = sums.scale.points(total);
            let points = points as i64 - core::mem::replace(&mut before, points as i64);
            Signal { name, points }
        };
        Some(steps.into_iter().map(signal).collect())
    }
}

/// Days, and none after all of them.
#[derive(PartialEq, Eq)]
struct DayOrder(Option<Day>);

impl PartialOrd for DayOrder {
    fn partial_cmp(&self, other: &Self) -> Option<core::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for DayOrder {
    fn cmp(&self, other: &Self) -> core::cmp::Ordering {
        (self.0.is_none(), self.0).cmp(&(other.0.is_none(), other.0))
    }
}

/// Leaves the rarest terms, in their order. Terms that stood side by side with one that goes do not any more.
fn keep_rarest(found: &mut Vec<Found<'_>>) {
    if found.len() <= SCORED_TERMS {
        return;
    }
    let mut by_documents: Vec<(u32, usize)> =
        found.iter().enumerate().map(|(number, found)| (found.documents, number)).collect();
    by_documents.sort_unstable();
    let worst = SCORED_TERMS.checked_sub(1).and_then(|last| by_documents.get(last)).copied().unwrap_or_default();
    let (mut number, mut gone) = (0, false);
    found.retain_mut(|found| {
        let kept = (found.documents, number) <= worst;
        number += 1;
        found.follows &= !gone;
        gone = !kept;
        kept
    });
}
