//! How a query is answered.
//!
//! ```text
//! look up   each term of the query in each part: how many documents hold it, and its postings
//! add up    term by term, each impact to the document's sum; what sessions hold; what stands side by side
//! select    the documents whose scores are the highest, by bounds: most are never scored
//! order     by score, then day, then id
//! ```
//!
//! A document's **sum** is its own BM25, in 16 bits. Its **score** is made of its sum, those of its neighbours and its
//! session's, and of what multiplies ([`Weights`](super::weights::Weights)). No score is greater than what the greatest
//! sums of its block and of the blocks beside it allow, so a block whose bound is below the worst score that is kept can be
//! passed over and changes nothing; a test holds the answer against one that scores everything.
//!
//! A search is a function of what is at hand. If pages of segments are missing it says which, and is begun again once they
//! are there.

use super::document::{Kind, Traits, id_of};
use super::files::{File, RunAt};
use super::filter::Filter;
use super::index::Index;
use super::part::{List, Missing, NO_PLACE, Part, Posting, Run, Section};
use super::query::{Query, QueryTerm};
use super::rank::{Ranked, Ranking, Signal};
use super::score::{OCCURRENCE, SCORED_TERMS, Scale, rarity, saturation, share};
use super::view::{BLOCK, HIDDEN, REACH, View, run_of};
use super::words::Language;
use crate::ids::Day;
use core::cmp::Reverse;
use core::ops::Range;
use std::collections::BinaryHeap;

/// Memory that searches use again and again, so that one costs no allocation in proportion to the index. Holds nothing
/// between searches that a search depends on; one serves any number of indexes.
#[derive(Clone, Debug, Default)]
pub struct Scratch {
    /// Sum per document.
    sums: Vec<u16>,
    /// Per document of one part: which term was seen there last, and its place.
    last: Vec<u16>,
    /// Sum per session.
    sessions: Vec<u32>,
    /// Per session: how often it holds a term, in halves. All 0 between terms.
    held: Vec<u16>,
    /// Greatest sum of each block.
    blocks: Vec<u16>,
    /// Greatest sum that counts for a block, by its own and the blocks around it.
    around: Vec<u16>,
}

/// A term of the query that occurs.
struct Found<'q> {
    term: &'q QueryTerm,
    /// Its lists by part, one for each form, with the form's number.
    lists: Vec<Vec<(usize, List)>>,
    /// How many documents hold it.
    documents: u32,
    /// How many of its forms there are in documents that count, in whichever parts.
    forms: usize,
    rarity: u32,
    /// The term before it stands before it in the query and was found, too.
    follows: bool,
}

/// Two terms side by side: the documents, by part, where they are.
struct Adjacent {
    /// Number of the second term among those found.
    second: usize,
    documents: Vec<(u32, u32)>,
    rarity: u32,
}

/// What sums are made of.
struct Sums<'q> {
    found: Vec<Found<'q>>,
    adjacent: Vec<Adjacent>,
    scale: Scale,
    left_out: bool,
}

/// A document, by part and number.
type At = (u32, u32);

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
        self.add_up(&mut sums, scratch, missing)?;
        let scorer = Scorer::new(self, scratch);
        let selected = scorer.select(&filter, missing);
        let hits = self.order(selected.documents, missing)?;
        let mut ranked = Vec::with_capacity(hits.len());
        for (score, at) in hits {
            ranked.push(self.ranked(score, at, &sums, &scorer, missing)?);
        }
        Some(Ranking { hits: ranked, truncated: selected.truncated, terms_left_out: sums.left_out })
    }

    fn parts(&self) -> impl Iterator<Item = (u32, &'a Part)> {
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
            let thousandths = if found.term.weak { self.view.weights.weak } else { 1000 };
            found.rarity = share(rarity(documents, found.documents), thousandths);
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

    fn is_named(&self) -> bool {
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

    /// Adds every impact to its document's sum, and what sessions hold to theirs.
    fn add_up(&self, sums: &mut Sums<'_>, scratch: &mut Scratch, missing: &mut Missing) -> Option<()> {
        let view = self.view;
        scratch.sums.clear();
        scratch.sums.resize(view.room, 0);
        let with_pairs = view.weights.adjacent > 0 && sums.found.iter().any(|found| found.follows);
        let mut adjacent: Vec<Adjacent> = Vec::new();
        for (second, _) in sums.found.iter().enumerate().filter(|(_, found)| with_pairs && found.follows) {
            adjacent.push(Adjacent { second, documents: Vec::new(), rarity: 0 });
        }
        let mut sessions: Vec<Vec<(u32, u16)>> = vec![Vec::new(); sums.found.len()];
        for ((part_number, part), piece) in self.parts().zip(&view.pieces) {
            missing.part = part_number;
            if with_pairs {
                scratch.last.clear();
                scratch.last.resize(part.documents() as usize, 0);
            }
            let Some(here) = scratch.sums.get_mut(piece.base..piece.base + piece.sessions.len()) else { continue };
            for (number, (found, held)) in sums.found.iter().zip(&mut sessions).enumerate() {
                let Some(lists) = found.lists.get(part_number as usize) else { continue };
                for (_, list) in lists {
                    let postings = part.postings(*list, missing)?;
                    let mut adder = Adder {
                        sessions: &piece.sessions,
                        lengths: part.lengths(),
                        traits: if piece.has_claims { part.traits() } else { &[] },
                        sums: here,
                        view,
                        scale: sums.scale,
                        rarity: found.rarity,
                        held,
                        now: (HIDDEN, 0),
                    };
                    if with_pairs {
                        let pair = adjacent.iter_mut().find(|pair| pair.second == number);
                        let mut pairs =
                            Pairs { last: &mut scratch.last, tag: number as u16 + 1, pair, part: part_number };
                        postings.for_each(|posting| {
                            if adder.add(posting) {
                                pairs.see(posting);
                            }
                        });
                    } else {
                        postings.for_each(|posting| {
                            adder.add(posting);
                        });
                    }
                    adder.end();
                }
            }
        }
        for pair in &mut adjacent {
            self.add_pair(pair, sums.scale, scratch);
        }
        sums.adjacent = adjacent;
        self.add_sessions(sums, &sessions, scratch);
        Some(())
    }

    fn add_pair(&self, pair: &mut Adjacent, scale: Scale, scratch: &mut Scratch) {
        // Forms of a term may stand in one document.
        pair.documents.sort_unstable();
        pair.documents.dedup();
        let count = u32::try_from(pair.documents.len()).unwrap_or(u32::MAX);
        if count == 0 {
            return;
        }
        pair.rarity = share(rarity(self.view.documents, count), self.view.weights.adjacent);
        for (part, document) in &pair.documents {
            let saturation = self.saturation(*part, *document, OCCURRENCE);
            if let Some(sum) = self.place(*part, *document).and_then(|place| scratch.sums.get_mut(place)) {
                *sum = sum.saturating_add(narrow(scale.impact(pair.rarity, saturation)));
            }
        }
    }

    fn add_sessions(&self, sums: &Sums<'_>, held: &[Vec<(u32, u16)>], scratch: &mut Scratch) {
        let view = self.view;
        scratch.sessions.clear();
        scratch.sessions.resize(view.session_k.len(), 0);
        if view.weights.session == 0 {
            return;
        }
        scratch.held.resize(view.session_k.len(), 0);
        let count = view.session_k.len() as u32;
        let mut touched: Vec<u32> = Vec::new();
        for held in held {
            touched.clear();
            for (session, times) in held {
                if let Some(sum) = scratch.held.get_mut(*session as usize) {
                    if *sum == 0 {
                        touched.push(*session);
                    }
                    *sum = sum.saturating_add(*times);
                }
            }
            let rarity = rarity(count, touched.len() as u32);
            for session in &touched {
                let at = *session as usize;
                let places = (scratch.held.get_mut(at), scratch.sessions.get_mut(at), view.session_k.get(at));
                if let (Some(times), Some(sum), Some(k)) = places {
                    *sum = sum.saturating_add(sums.scale.rounded(rarity, saturation(*times, *k)));
                    *times = 0;
                }
            }
        }
    }

    fn saturation(&self, part: u32, document: u32, frequency: u8) -> u32 {
        let Some(part) = self.index.parts.get(part as usize) else { return 0 };
        let code = part.lengths().get(document as usize).copied().unwrap_or(0);
        self.view.saturation(part.traits_of(document).kind()).get(frequency, code)
    }

    /// Place of a document among all.
    fn place(&self, part: u32, document: u32) -> Option<usize> {
        Some(self.view.pieces.get(part as usize)?.base + document as usize)
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
        for (score, at) in documents {
            let (part_number, document) = at;
            let Some(part) = self.index.parts.get(part_number as usize) else { continue };
            missing.part = part_number;
            let (days, id) = (part.days(document, missing), part.id(document, missing));
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
        for (name, factor) in [("speaker-named", parts.named), ("assistant", parts.assistant), ("time", parts.time)] {
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

fn narrow(impact: u32) -> u16 {
    u16::try_from(impact).unwrap_or(u16::MAX)
}

/// A score with a factor in thousandths.
fn multiplied(score: u64, factor: u64) -> u64 {
    score.saturating_mul(factor) / 1000
}

/// Adds the postings of one list.
struct Adder<'s> {
    sessions: &'s [u32],
    lengths: &'s [u8],
    /// Empty where there are only records.
    traits: &'s [u8],
    sums: &'s mut [u16],
    view: &'s View,
    scale: Scale,
    rarity: u32,
    held: &'s mut Vec<(u32, u16)>,
    /// The session of the posting before, and how often it holds the term so far.
    now: (u32, u16),
}

impl Adder<'_> {
    /// False: the document does not count.
    #[inline]
    fn add(&mut self, posting: Posting) -> bool {
        let document = posting.document() as usize;
        let places = (self.sessions.get(document), self.lengths.get(document), self.sums.get_mut(document));
        let (Some(session), Some(code), Some(sum)) = places else { return false };
        if *session == HIDDEN {
            return false;
        }
        // No traits: records only.
        let kind = self.traits.get(document).map_or(Kind::Source, |traits| Traits(*traits).kind());
        let saturation = self.view.saturation(kind).get(posting.frequency(), *code);
        *sum = sum.saturating_add(narrow(self.scale.impact(self.rarity, saturation)));
        if *session != self.now.0 {
            self.end();
            self.now = (*session, 0);
        }
        self.now.1 = self.now.1.saturating_add(posting.frequency().into());
        true
    }

    fn end(&mut self) {
        if self.now.1 > 0 {
            self.held.push(self.now);
            self.now.1 = 0;
        }
    }
}

/// Notices where a term stands directly behind the one before it.
struct Pairs<'s> {
    last: &'s mut [u16],
    /// Of the term; that of the one before is one less.
    tag: u16,
    pair: Option<&'s mut Adjacent>,
    part: u32,
}

impl Pairs<'_> {
    #[inline]
    fn see(&mut self, posting: Posting) {
        let Some(last) = self.last.get_mut(posting.document() as usize) else { return };
        let place = posting.place();
        if let Some(pair) = &mut self.pair
            && place != NO_PLACE
            && place > 0
            && *last == (self.tag - 1) << 8 | u16::from(place - 1)
            && self.tag > 1
        {
            pair.documents.push((self.part, posting.document()));
        }
        if place != NO_PLACE {
            *last = self.tag << 8 | u16::from(place);
        }
    }
}

/// Makes scores of sums.
struct Scorer<'s> {
    search: &'s Search<'s>,
    sums: &'s [u16],
    sessions: &'s [u32],
    blocks: &'s [u16],
    around: &'s [u16],
    /// Blocks with documents whose neighbours stand elsewhere, ascending.
    parted: Vec<usize>,
    /// Who is named by the query: by part, then number of the speaker. Empty where nobody is.
    named: Vec<Vec<bool>>,
    /// What the documents before count, by distance from 1.
    before: [ByTraits; REACH as usize],
    /// What those behind count.
    after: [ByTraits; REACH as usize],
    /// The most that all neighbours together can count, in thousandths of the greatest sum around.
    most_around: u64,
    /// The same of those further away than each distance from 1.
    most_beyond: [u64; REACH as usize],
    /// The most by which a sum can be multiplied, each factor in thousandths.
    most_factors: [u64; 3],
    /// The greatest sum of a session.
    best_session: u64,
}

/// Weights by what is known of a document.
struct ByTraits([u64; Traits::COUNT]);

impl ByTraits {
    fn new(weight: impl Fn(Traits) -> u64) -> ByTraits {
        ByTraits(core::array::from_fn(|bits| weight(Traits(bits as u8))))
    }

    #[inline]
    fn of(&self, traits: Traits) -> u64 {
        // A segment that says more of a document than there is to know is none of ours.
        self.0.get(usize::from(traits.0)).copied().unwrap_or(0)
    }

    fn most(&self) -> u64 {
        self.0.iter().copied().max().unwrap_or(0)
    }
}

/// What a document's score is made of beside its own sum.
struct Parts {
    before: u64,
    after: u64,
    session: u64,
    named: u64,
    assistant: u64,
    time: u64,
}

/// The best documents.
struct Selected {
    documents: Vec<(u64, At)>,
    truncated: bool,
}

impl<'s> Scorer<'s> {
    fn new(search: &'s Search<'s>, scratch: &'s mut Scratch) -> Scorer<'s> {
        let view = search.view;
        let weights = view.weights;
        let Scratch { sums: own, sessions, blocks, around, .. } = scratch;
        blocks.clear();
        blocks.extend(own.chunks(BLOCK).map(|block| block.iter().copied().max().unwrap_or(0)));
        around.clear();
        for (number, piece) in view.pieces.iter().enumerate() {
            let end = view.pieces.get(number + 1).map_or(view.room, |next| next.base);
            let here = blocks.get(piece.base / BLOCK..end / BLOCK).unwrap_or_default();
            for at in 0..here.len() {
                let beside = here.get(at.saturating_sub(1)..(at + 2).min(here.len())).unwrap_or_default();
                around.push(beside.iter().copied().max().unwrap_or(0));
            }
        }
        let mut named: Vec<Vec<bool>> = Vec::new();
        if search.is_named() {
            let by_part = search.parts().map(|(_, part)| part.speakers().mark_named(search.query.words()));
            named.extend(by_part);
            if named.iter().all(Vec::is_empty) {
                named.clear();
            }
        }
        let falling = |first: u64| -> [u64; REACH as usize] {
            let mut weight = first;
            core::array::from_fn(|_| {
                let next = multiplied(weight, weights.decay);
                core::mem::replace(&mut weight, next)
            })
        };
        let (before, after) = (falling(weights.before), falling(weights.after));
        let mut distance = 0;
        let before: [ByTraits; REACH as usize] = before.map(|weight| {
            distance += 1;
            ByTraits::new(|traits| match (traits.by_machine(), traits.is_question(), distance) {
                // What an assistant said last belongs to what it answered.
                (true, _, _) => 0,
                (false, true, 1) => multiplied(weight, weights.question),
                _ => weight,
            })
        });
        let after: [ByTraits; REACH as usize] = after.map(|weight| {
            ByTraits::new(|traits| if traits.by_machine() { multiplied(weight, weights.answer) } else { weight })
        });
        let most_around = before.iter().chain(&after).map(ByTraits::most).sum();
        let mut left = most_around;
        let most_beyond = core::array::from_fn(|at| {
            let here = [before.get(at), after.get(at)].into_iter().flatten().map(ByTraits::most).sum::<u64>();
            left -= here;
            left
        });
        let most_named = if named.is_empty() { 1000 } else { weights.named.max(1000) };
        let most_time = if search.query.asks_when { weights.time.max(1000) } else { 1000 };
        let mut scorer = Scorer {
            search,
            sums: own,
            best_session: sessions.iter().copied().max().unwrap_or(0).into(),
            sessions,
            blocks,
            around: &[],
            named,
            before,
            after,
            most_around,
            most_beyond,
            most_factors: [most_named, weights.assistant.max(1000), most_time],
            parted: Vec::new(),
        };
        scorer.parted = scorer.see_over_joints(around);
        scorer.around = around;
        scorer
    }

    /// Where the documents of a file do not stand side by side, their blocks count for each other. Tells which blocks those
    /// are.
    fn see_over_joints(&self, around: &mut [u16]) -> Vec<usize> {
        let mut parted = Vec::new();
        for joint in &self.search.view.joints {
            let Some((file, run)) = self.file_and_run(*joint) else { continue };
            let near: Vec<At> = (run.ordinal.saturating_sub(REACH)..run.ordinal.saturating_add(REACH))
                .filter_map(|ordinal| self.at_ordinal(file, ordinal))
                .collect();
            let most = near.iter().map(|at| self.sum(*at)).max().unwrap_or(0);
            for (part, document) in near {
                let Some(block) = self.search.place(part, document).map(|place| place / BLOCK) else { continue };
                if let Some(around) = around.get_mut(block) {
                    *around = (*around).max(most);
                    parted.push(block);
                }
            }
        }
        parted.sort_unstable();
        parted.dedup();
        parted
    }

    fn file_and_run(&self, at: RunAt) -> Option<(&'s File, &'s Run)> {
        let Search { index, view, .. } = self.search;
        let file = (*view.pieces.get(at.part as usize)?.files.get(at.run as usize)?)?;
        Some((index.files.get(file)?, index.parts.get(at.part as usize)?.runs().get(at.run as usize)?))
    }

    fn run(&self, at: &RunAt) -> Option<&'s Run> {
        self.search.index.parts.get(at.part as usize)?.runs().get(at.run as usize)
    }

    /// Where the document stands that has so many of its file before it.
    fn at_ordinal(&self, file: &File, ordinal: u32) -> Option<At> {
        let behind = file.runs.partition_point(|at| self.run(at).is_some_and(|run| run.ordinal <= ordinal));
        let at = file.runs.get(behind.checked_sub(1)?)?;
        let run = self.run(at)?;
        let document = run.first.checked_add(ordinal - run.ordinal)?;
        (document < run.range().end).then_some((at.part, document))
    }

    fn sum(&self, (part, document): At) -> u16 {
        self.search.place(part, document).and_then(|place| self.sums.get(place)).copied().unwrap_or(0)
    }

    fn weighted(&self, at: At, weights: &ByTraits) -> u64 {
        let part = self.search.index.parts.get(at.0 as usize);
        part.map_or(0, |part| u64::from(self.sum(at)) * weights.of(part.traits_of(at.1)))
    }

    /// What a document's score is made of beside its sum.
    fn parts(&self, at: At, missing: &mut Missing) -> Parts {
        let Search { index, query, view } = self.search;
        let weights = &view.weights;
        let mut found = Parts { before: 0, after: 0, session: 0, named: 1000, assistant: 1000, time: 1000 };
        let (part_number, document) = at;
        let (part, piece) = match (index.parts.get(part_number as usize), view.pieces.get(part_number as usize)) {
            (Some(part), Some(piece)) => (part, piece),
            _ => return found,
        };
        let run_at = run_of(part, document).map(|run| RunAt { part: part_number, run: run as u32 });
        let Some((file, run)) = run_at.and_then(|at| self.file_and_run(at)) else { return found };
        let into = document - run.first;
        let ordinal = run.ordinal + into;
        let neighbour = |ordinal: u32| match ordinal.checked_sub(run.ordinal) {
            Some(into) if into < run.documents => Some((part_number, run.first + into)),
            _ => self.at_ordinal(file, ordinal),
        };
        for (distance, weights) in (1..).zip(&self.before) {
            let Some(at) = ordinal.checked_sub(distance).and_then(neighbour) else { break };
            found.before += self.weighted(at, weights);
        }
        for (distance, weights) in (1..).zip(&self.after) {
            let Some(at) = ordinal.checked_add(distance).and_then(neighbour) else { break };
            found.after += self.weighted(at, weights);
        }
        let session = piece.sessions.get(document as usize).and_then(|session| self.sessions.get(*session as usize));
        found.session = u64::from(session.copied().unwrap_or(0)) * weights.session;
        let traits = part.traits_of(document);
        if let Some(marked) = self.named.get(part_number as usize).filter(|marked| !marked.is_empty()) {
            missing.part = part_number;
            let speaker = part.speaker(document, missing).flatten();
            if speaker.and_then(|speaker| marked.get(usize::from(speaker.0))).copied().unwrap_or(false) {
                found.named = weights.named;
            }
        }
        if traits.by_machine() {
            found.assistant = weights.assistant;
        }
        if query.asks_when && traits.says_when() {
            found.time = weights.time;
        }
        found
    }

    fn score(&self, at: At, missing: &mut Missing) -> u64 {
        let parts = self.parts(at, missing);
        let total = u64::from(self.sum(at)) * 1000 + parts.before + parts.after + parts.session;
        [parts.named, parts.assistant, parts.time].into_iter().fold(total, multiplied)
    }

    /// The most that a document of such a sum can have.
    fn bound(&self, sum: u16, around: u16, session: u64) -> u64 {
        let most = u64::from(sum) * 1000
            + u64::from(around) * self.most_around
            + session.saturating_mul(self.search.view.weights.session);
        self.most_factors.into_iter().fold(most, multiplied)
    }

    /// Whether a document whose neighbours stand beside it in its part may have the score that `bar` asks for. Some of those
    /// that stand there may be another file's; they only make it more.
    fn may_reach(&self, bar: Bar, sums: &[u16], part: &Part, document: u32, session: u64, around: u16) -> bool {
        let weights = &self.search.view.weights;
        let (at, traits) = (document as usize, part.traits());
        let mut total = u64::from(sums.get(at).copied().unwrap_or(0)) * 1000 + session.saturating_mul(weights.session);
        // Nothing is asked of a sum first: most have none, but which do cannot be foreseen.
        let weighted = |at: Option<usize>, weights: &ByTraits| {
            let found = at.and_then(|at| Some((sums.get(at)?, traits.get(at)?)));
            found.map_or(0, |(sum, traits)| u64::from(*sum) * weights.of(Traits(*traits)))
        };
        for (((distance, before), after), beyond) in (1..).zip(&self.before).zip(&self.after).zip(self.most_beyond) {
            total += weighted(at.checked_sub(distance), before) + weighted(at.checked_add(distance), after);
            // The nearest count most: what is left seldom makes up for them.
            if total + u64::from(around) * beyond < bar.total {
                return false;
            }
        }
        let own = Traits(traits.get(at).copied().unwrap_or(0));
        let [most_named, ..] = self.most_factors;
        let assistant = if own.by_machine() { weights.assistant } else { 1000 };
        let time = if self.search.query.asks_when && own.says_when() { weights.time } else { 1000 };
        [most_named, assistant, time].into_iter().fold(total, multiplied) >= bar.score
    }

    /// What it takes to have this score.
    fn bar(&self, score: u64) -> Bar {
        // Each factor is rounded down, so that no total has more than their product makes of it.
        let product: u128 = self.most_factors.into_iter().map(u128::from).product();
        let total = (u128::from(score) * 1_000_000_000).div_ceil(product.max(1));
        Bar { score, total: u64::try_from(total).unwrap_or(u64::MAX) }
    }

    /// The documents that have the best `top_k` scores, in no order, and those that are as good as the last of them.
    fn select(&self, filter: &Filter, missing: &mut Missing) -> Selected {
        let mut best = Best::new(self.search.query.top_k);
        for (block, bound) in self.by_bound() {
            if bound >= best.least() {
                let around = self.around.get(block).copied().unwrap_or(0);
                self.select_in(block, around, filter, &mut best, missing);
            }
        }
        best.finish()
    }

    fn select_in(&self, block: usize, around: u16, filter: &Filter, best: &mut Best, missing: &mut Missing) {
        let Search { index, view, .. } = self.search;
        let first = block * BLOCK;
        let Some(number) = view.pieces.partition_point(|piece| piece.base <= first).checked_sub(1) else { return };
        let (Some(piece), Some(part)) = (view.pieces.get(number), index.parts.get(number)) else { return };
        let from = first - piece.base;
        let all = self.sums.get(piece.base..piece.base + piece.sessions.len()).unwrap_or_default();
        let sums = all.get(from..(from + BLOCK).min(all.len())).unwrap_or_default();
        let sessions = piece.sessions.get(from..).unwrap_or_default();
        let is_parted = self.parted.binary_search(&block).is_ok();
        let (most_around, weight) = (u64::from(around) * self.most_around, view.weights.session);
        let mut bar = self.bar(best.least());
        for ((sum, session), document) in sums.iter().zip(sessions).zip(from as u32..) {
            if *sum == 0 {
                continue;
            }
            let session = u64::from(self.sessions.get(*session as usize).copied().unwrap_or(0));
            // As `bound` has it.
            let most = u64::from(*sum) * 1000 + most_around + session.saturating_mul(weight);
            missing.part = number as u32;
            if most < bar.total
                || !is_parted && !self.may_reach(bar, all, part, document, session, around)
                || !filter.passes(part, number, piece, document, missing)
            {
                continue;
            }
            let at = (number as u32, document);
            best.offer(self.score(at, missing), at);
            if bar.score != best.least() {
                bar = self.bar(best.least());
            }
        }
    }

    /// The greatest sum of the sessions in a span; of a long one, of all.
    fn best_session_in(&self, span: &Range<u32>) -> u64 {
        const SPAN: usize = 16;
        let sessions = self.sessions.get(span.start as usize..span.end as usize).filter(|span| span.len() <= SPAN);
        sessions.map_or(self.best_session, |sessions| sessions.iter().copied().max().unwrap_or(0).into())
    }

    /// Blocks in which something matched, with the most that a document of theirs can have: those of the highest bounds first,
    /// as far as a coarse look can tell.
    fn by_bound(&self) -> Vec<(usize, u64)> {
        const BUCKETS: usize = 1024;
        let mut bounds: Vec<(usize, u64)> = Vec::with_capacity(self.blocks.len());
        for piece in &self.search.view.pieces {
            let blocks = (piece.base / BLOCK..).zip(&piece.spans);
            bounds.extend(blocks.filter_map(|(block, span)| {
                let most = self.blocks.get(block).copied().filter(|most| *most > 0)?;
                let around = self.around.get(block).copied().unwrap_or(most);
                Some((block, self.bound(most, around, self.best_session_in(span))))
            }));
        }
        let highest = bounds.iter().map(|(_, bound)| *bound).max().unwrap_or(0).max(1);
        let bucket = |bound: u64| BUCKETS - 1 - (bound.saturating_mul(BUCKETS as u64 - 1) / highest) as usize;
        let mut starts = vec![0_usize; BUCKETS + 1];
        for (_, bound) in &bounds {
            if let Some(count) = starts.get_mut(bucket(*bound) + 1) {
                *count += 1;
            }
        }
        let mut total = 0;
        for start in &mut starts {
            total += *start;
            *start = total;
        }
        let mut order = vec![(0, 0); total];
        for found in bounds {
            if let Some(start) = starts.get_mut(bucket(found.1)) {
                if let Some(place) = order.get_mut(*start) {
                    *place = found;
                }
                *start += 1;
            }
        }
        order
    }
}

/// What it takes to be among the best: a score, and the least total that the greatest factors could make it of.
#[derive(Clone, Copy)]
struct Bar {
    score: u64,
    total: u64,
}

/// Keeps the best, and whatever ties with the worst of them.
struct Best {
    top: usize,
    /// The best `top` scores, the worst on top.
    scores: BinaryHeap<Reverse<u64>>,
    documents: Vec<(u64, At)>,
    truncated: bool,
}

impl Best {
    fn new(top: usize) -> Best {
        Best { top, scores: BinaryHeap::new(), documents: Vec::new(), truncated: false }
    }

    /// The least score that can still change anything. While nothing has been left out, a worse one shows that there is
    /// more than was asked for.
    fn least(&self) -> u64 {
        match self.scores.peek() {
            Some(worst) if self.truncated => worst.0,
            _ => 0,
        }
    }

    fn offer(&mut self, score: u64, at: At) {
        if self.scores.len() >= self.top {
            self.truncated = true;
            if score < self.least() {
                return;
            }
            if let Some(mut worst) = self.scores.peek_mut()
                && score > worst.0
            {
                *worst = Reverse(score);
            }
        } else {
            self.scores.push(Reverse(score));
        }
        self.documents.push((score, at));
        if self.documents.len() > 4 * self.top + 1024 {
            self.forget();
        }
    }

    fn forget(&mut self) {
        let least = self.least();
        self.documents.retain(|(score, _)| *score >= least);
    }

    fn finish(mut self) -> Selected {
        self.forget();
        Selected { documents: self.documents, truncated: self.truncated }
    }
}
