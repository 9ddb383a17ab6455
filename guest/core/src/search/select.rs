//! Selecting the documents of the highest scores.
//!
//! A document's **sum** is its own BM25, in 16 bits. Its **score** is made of its sum, those of its neighbours and its
//! session's, and of what multiplies ([`Weights`](super::weights::Weights)). No score is greater than what the greatest
//! sums of its block and of the blocks beside it allow, so a block whose bound is below the worst score that is kept can be
//! passed over and changes nothing; a test holds the answer against one that scores everything. A few blocks of high bounds
//! come first, so that nearly all others need no more than a look.

use super::document::Traits;
use super::engine::{At, Search};
use super::files::{File, RunAt};
use super::filter::Filter;
use super::part::{Missing, Part, Run};
use super::sums::Scratch;
use super::view::{BLOCK, Piece, REACH, run_of};
use super::weights::{FACTORS, Factors};
use core::cmp::Reverse;
use core::ops::Range;
use std::collections::BinaryHeap;

/// As `saturating_mul`, without its multiplication in 128 bits where both numbers are below 2^32.
#[inline]
fn product(one: u64, other: u64) -> u64 {
    if (one | other) >> u32::BITS == 0 { one * other } else { one.saturating_mul(other) }
}

/// A score with a factor in thousandths.
#[inline]
pub(super) fn multiplied(score: u64, factor: u64) -> u64 {
    // Most factors are of no effect, and most scores far from where they would overflow.
    match (factor, score >> 48, factor >> 15) {
        (1000, 0, _) => score,
        (_, 0, 0) => score * factor / 1000,
        _ => score.saturating_mul(factor) / 1000,
    }
}

/// How many blocks come first for each document that is asked for.
const FIRST: usize = 4;
/// How many at least.
const FIRST_LEAST: usize = 16;

/// Makes scores of sums.
pub(super) struct Scorer<'s> {
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
    /// The greatest sum of a session.
    best_session: u64,
    /// What multiplies for what a document is.
    factors: Factors,
}

/// Weights by what is known of a document.
struct ByTraits([u64; Traits::NEAR]);

impl ByTraits {
    fn new(weight: impl Fn(Traits) -> u64) -> ByTraits {
        ByTraits(core::array::from_fn(|bits| weight(Traits(bits as u8))))
    }

    #[inline]
    fn of(&self, traits: Traits) -> u64 {
        self.0.get(traits.near()).copied().unwrap_or(0)
    }

    fn most(&self) -> u64 {
        self.0.iter().copied().max().unwrap_or(0)
    }
}

/// What a document's score is made of beside its own sum.
pub(super) struct Parts {
    pub(super) before: u64,
    pub(super) after: u64,
    pub(super) session: u64,
    pub(super) named: u64,
    /// As [`FACTORS`].
    pub(super) own: [u64; FACTORS.len()],
}

/// The best documents.
pub(super) struct Selected {
    pub(super) documents: Vec<(u64, At)>,
    pub(super) truncated: bool,
}

impl<'s> Scorer<'s> {
    pub(super) fn new(search: &'s Search<'s>, scratch: &'s mut Scratch) -> Scorer<'s> {
        let view = search.view;
        let weights = view.weights;
        let Scratch { sums: own, sessions, blocks, around, .. } = scratch;
        around.clear();
        for piece in &view.pieces {
            let here = blocks.get(piece.blocks()).unwrap_or_default();
            let mut before = 0;
            for (own, behind) in here.iter().zip(here.iter().skip(1).chain(&[0])) {
                around.push((*own).max(before).max(*behind));
                before = *own;
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
        let (before, after) = (falling(weights.before(search.query)), falling(weights.after));
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
        let mut scorer = Scorer {
            search,
            sums: own,
            factors: Factors::new(&weights, search.query),
            best_session: sessions.iter().copied().max().unwrap_or(0).into(),
            sessions,
            blocks,
            around: &[],
            named,
            before,
            after,
            most_around,
            most_beyond,
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
                let Some(block) = self.place(part, document).map(|place| place / BLOCK) else { continue };
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

    /// Place of a document among all.
    fn place(&self, part: u32, document: u32) -> Option<usize> {
        Some(self.search.view.pieces.get(part as usize)?.base + document as usize)
    }

    fn sum(&self, (part, document): At) -> u16 {
        self.place(part, document).and_then(|place| self.sums.get(place)).copied().unwrap_or(0)
    }

    fn weighted(&self, at: At, weights: &ByTraits) -> u64 {
        let part = self.search.index.parts.get(at.0 as usize);
        part.map_or(0, |part| u64::from(self.sum(at)) * weights.of(part.traits_of(at.1)))
    }

    /// What a document's score is made of beside its sum.
    pub(super) fn parts(&self, at: At, missing: &mut Missing) -> Parts {
        let Search { index, view, .. } = self.search;
        let weights = &view.weights;
        let mut found = Parts { before: 0, after: 0, session: 0, named: 1000, own: [1000; FACTORS.len()] };
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
        let session = piece.session(part, document).and_then(|session| self.sessions.get(session as usize));
        found.session = u64::from(session.copied().unwrap_or(0)) * weights.session;
        if self.names_speaker(part, part_number, document, missing) == Some(true) {
            found.named = weights.named;
        }
        let traits = part.traits_of(document);
        let matters = !traits.by_machine() && (traits.is_question() || traits.is_standing());
        let is_machine = |(part, document): At| {
            index.parts.get(part as usize).is_some_and(|part| part.traits_of(document).by_machine())
        };
        let beside = [ordinal.checked_sub(1), ordinal.checked_add(1)];
        let to_machine = matters && beside.into_iter().flatten().filter_map(neighbour).any(is_machine);
        found.own = self.factors.of(traits, to_machine);
        found
    }

    fn score(&self, at: At, missing: &mut Missing) -> u64 {
        let parts = self.parts(at, missing);
        let total = u64::from(self.sum(at)) * 1000 + parts.before + parts.after + parts.session;
        parts.own.into_iter().fold(multiplied(total, parts.named), multiplied)
    }

    /// Whether a document whose neighbours stand beside it in its part may have a total of `bar`, where no sum around it is
    /// greater than `around`. Some of those that stand there may be another file's; they only make it more.
    fn may_reach(&self, bar: u64, sums: &[u16], traits: &[u8], document: u32, session: u64, around: u16) -> bool {
        let at = document as usize;
        let mut total = u64::from(sums.get(at).copied().unwrap_or(0)) * 1000 + session;
        // Nothing is asked of a sum first: most have none, but which do cannot be foreseen.
        let weighted = |at: Option<usize>, weights: &ByTraits| {
            let found = at.and_then(|at| Some((sums.get(at)?, traits.get(at)?)));
            found.map_or(0, |(sum, traits)| u64::from(*sum) * weights.of(Traits(*traits)))
        };
        for (((distance, before), after), beyond) in (1..).zip(&self.before).zip(&self.after).zip(self.most_beyond) {
            total += weighted(at.checked_sub(distance), before) + weighted(at.checked_add(distance), after);
            // The nearest count most: what is left seldom makes up for them.
            if total + u64::from(around) * beyond < bar {
                return false;
            }
        }
        total >= bar
    }

    /// Whether the query names who spoke. None: it is not at hand.
    fn names_speaker(&self, part: &Part, number: u32, document: u32, missing: &mut Missing) -> Option<bool> {
        let Some(marked) = self.named.get(number as usize).filter(|marked| !marked.is_empty()) else {
            return Some(false);
        };
        missing.part = number;
        let speaker = part.speaker(document, missing)?;
        Some(speaker.and_then(|speaker| marked.get(usize::from(speaker.0))).copied().unwrap_or(false))
    }

    /// What it takes to have this score.
    fn bar(&self, score: u64) -> Bar {
        let factors = self.factors.by_trait();
        let mut unnamed = [0; Bar::COUNT];
        for kind in 0..Bar::COUNT {
            // The first of the traits that change anything; without it, the total is known already.
            let first = (0..).zip(factors).find(|(number, (_, factor))| kind >> number & 1 > 0 && *factor != 1000);
            let total = match first {
                Some((number, (_, factor))) => {
                    before_factor(unnamed.get(kind & !(1 << number)).copied().unwrap_or(0), factor)
                }
                None => score,
            };
            if let Some(place) = unnamed.get_mut(kind) {
                *place = total;
            }
        }
        let weight = if self.named.is_empty() { 1000 } else { self.search.view.weights.named };
        let totals = [unnamed, unnamed.map(|total| before_factor(total, weight))];
        let [unnamed, named] = totals;
        let mut least = [0; Bar::COUNT];
        for (kind, (unnamed, named)) in unnamed.into_iter().zip(named).enumerate() {
            let fewer = (0..factors.len()).filter(|number| kind >> number & 1 > 0);
            let fewer = fewer.filter_map(|number| least.get(kind & !(1 << number))).copied().min();
            let most = unnamed.min(named).min(fewer.unwrap_or(u64::MAX));
            if let Some(place) = least.get_mut(kind) {
                *place = most;
            }
        }
        Bar { score, totals, least }
    }

    /// The documents that have the best `top_k` scores, in no order, and those that are as good as the last of them.
    pub(super) fn select(&self, filter: &Filter, missing: &mut Missing) -> Selected {
        let mut best = Best::new(self.search.query.top_k);
        let high = self.high_bound();
        let mut first: Vec<(u64, usize, usize)> = Vec::new();
        for (number, piece) in self.search.view.pieces.iter().enumerate() {
            let bounds = self.bounds(piece).filter(|(_, bound)| *bound >= high);
            first.extend(bounds.map(|(block, bound)| (bound, number, block)));
        }
        first.sort_unstable_by_key(|(bound, ..)| Reverse(*bound));
        for (bound, number, block) in first {
            self.look_in(number, block, bound, filter, &mut best, missing);
        }
        let best_session = product(self.best_session, self.search.view.weights.session);
        for (number, piece) in self.search.view.pieces.iter().enumerate() {
            for (block, bound) in self.bounds(piece).filter(|(_, bound)| *bound < high) {
                let any = piece.traits.get(block - piece.blocks().start).copied().unwrap_or(Traits::ANY);
                if bound + best_session >= best.bar.least(any) {
                    self.look_in(number, block, bound, filter, &mut best, missing);
                }
            }
        }
        best.finish()
    }

    /// Blocks of a piece in which something matched, with the most that a document's sum and those around it come to.
    fn bounds(&self, piece: &Piece) -> impl Iterator<Item = (usize, u64)> {
        let blocks = piece.blocks();
        let greatest = self.blocks.get(blocks.clone()).unwrap_or_default();
        let around = self.around.get(blocks.clone()).unwrap_or_default();
        let found = blocks.zip(greatest.iter().zip(around)).filter(|(_, (most, _))| **most > 0);
        found.map(|(block, (most, around))| (block, u64::from(*most) * 1000 + u64::from(*around) * self.most_around))
    }

    /// A bound that not many blocks have, but some.
    fn high_bound(&self) -> u64 {
        const BUCKETS: usize = 1024;
        let pieces = &self.search.view.pieces;
        let highest = pieces.iter().flat_map(|piece| self.bounds(piece)).map(|(_, bound)| bound).max().unwrap_or(0);
        let shift = (u64::BITS - highest.leading_zeros()).saturating_sub(BUCKETS.trailing_zeros());
        let mut counts = [0_usize; BUCKETS];
        for (_, bound) in pieces.iter().flat_map(|piece| self.bounds(piece)) {
            if let Some(count) = counts.get_mut((bound >> shift) as usize) {
                *count += 1;
            }
        }
        let wanted = FIRST.saturating_mul(self.search.query.top_k).max(FIRST_LEAST);
        let mut found = 0;
        let bucket = counts.iter().rposition(|count| {
            found += count;
            found >= wanted
        });
        (bucket.unwrap_or(0) as u64) << shift
    }

    /// The greatest sum of the sessions in a block; where there are many, of all.
    fn best_session_in(&self, piece: &Piece, part: &Part, block: usize) -> u64 {
        const MANY: usize = 16;
        let documents = part.stretches().of_documents();
        let from = block * BLOCK - piece.base;
        let documents = documents.get(from..(from + BLOCK).min(documents.len())).unwrap_or_default();
        let (Some(first), Some(last)) = (documents.first(), documents.last()) else { return self.best_session };
        let sessions = piece.sessions.get(usize::from(*first)..=usize::from(*last)).filter(|all| all.len() <= MANY);
        let sum = |session: &u32| self.sessions.get(*session as usize).copied();
        sessions.map_or(self.best_session, |sessions| sessions.iter().filter_map(sum).max().unwrap_or(0).into())
    }

    /// Offers what a block has, if it may have something: it has matches, and `bound` is the most that sums come to in it.
    fn look_in(
        &self,
        number: usize,
        block: usize,
        bound: u64,
        filter: &Filter,
        best: &mut Best,
        missing: &mut Missing,
    ) {
        let Search { index, view, .. } = self.search;
        let (Some(piece), Some(part)) = (view.pieces.get(number), index.parts.get(number)) else { return };
        best.raise(self);
        let most_session = product(self.best_session_in(piece, part, block), view.weights.session);
        let from = block * BLOCK - piece.base;
        let least = best.bar.least(piece.traits.get(from / BLOCK).copied().unwrap_or(Traits::ANY));
        if bound + most_session < least {
            return;
        }
        let mut around = None;
        let mut most_around = u64::from(self.around.get(block).copied().unwrap_or(0)) * self.most_around;
        // Else neighbours may stand elsewhere.
        if self.parted.binary_search(&block).is_err() {
            let greatest = self.blocks.get(block).copied().unwrap_or(0);
            let known = Around::new(self.sums.get(piece.places()).unwrap_or_default(), from, greatest);
            if known.bound(self.most_around) + most_session < least {
                return;
            }
            most_around = u64::from(known.most()) * self.most_around;
            around = Some(known);
        }
        // What a sum is at least that is worth a look.
        let sum = least.saturating_sub(most_around + most_session).div_ceil(1000).max(1);
        self.look_at(number, from..from + BLOCK, sum, around, filter, best, missing);
    }

    /// Offers those of a block that have no less than a sum. `around` is none where neighbours may stand elsewhere.
    #[expect(clippy::too_many_arguments, reason = "half of them are what a whole selection has")]
    fn look_at(
        &self,
        number: usize,
        block: Range<usize>,
        least: u64,
        around: Option<Around>,
        filter: &Filter,
        best: &mut Best,
        missing: &mut Missing,
    ) {
        let Search { index, view, .. } = self.search;
        let (Some(piece), Some(part)) = (view.pieces.get(number), index.parts.get(number)) else { return };
        let all = self.sums.get(piece.places()).unwrap_or_default();
        let around_block = self.around.get((piece.base + block.start) / BLOCK).copied().unwrap_or(0);
        let (stretches, traits) = (part.stretches().of_documents(), part.traits());
        let block = block.start..block.end.min(all.len());
        for (at, sum) in block.clone().zip(all.get(block).unwrap_or_default()) {
            if u64::from(*sum) < least {
                continue;
            }
            let Some(own) = traits.get(at) else { continue };
            let own = Traits(*own);
            let session = stretches.get(at).and_then(|stretch| piece.sessions.get(usize::from(*stretch)));
            let session = session.and_then(|session| self.sessions.get(*session as usize)).copied().unwrap_or(0);
            let session = product(session.into(), view.weights.session);
            let around_own = around.map_or(around_block, |around| around.of(*sum));
            let most = u64::from(*sum) * 1000 + u64::from(around_own) * self.most_around + session;
            let [unnamed, named] = [false, true].map(|is_named| best.bar.total(own, is_named));
            if most < unnamed.min(named) {
                continue;
            }
            // A document of a part, and a part of an index.
            let (document, number) = (at as u32, number as u32);
            let bar = match named < unnamed && most < unnamed {
                true if self.names_speaker(part, number, document, missing) == Some(false) => continue,
                _ => unnamed.min(named),
            };
            missing.part = number;
            if around.is_some() && !self.may_reach(bar, all, traits, document, session, around_own)
                || !filter.passes(part, number as usize, piece, document, missing)
            {
                continue;
            }
            best.offer(self.score((number, document), missing), (number, document));
            best.raise(self);
        }
    }
}

/// What stands in a block, and within reach of it in its part.
#[derive(Clone, Copy)]
struct Around {
    /// The greatest sum in the block, and the one after it, which may be as great.
    greatest: [u16; 2],
    /// The greatest sum within reach before and behind.
    beside: u16,
}

impl Around {
    /// Of the block that begins at `from` among the sums of a part, with its greatest sum.
    fn new(sums: &[u16], from: usize, greatest: u16) -> Around {
        let within =
            |range: Range<usize>| sums.get(range.start.min(sums.len())..range.end.min(sums.len())).unwrap_or_default();
        let most = |sums: &[u16]| sums.iter().copied().fold(0, u16::max);
        let reach = REACH as usize;
        let before = most(within(from.saturating_sub(reach)..from));
        let behind = most(within(from + BLOCK..from + BLOCK + reach));
        let next = |block: &[u16]| {
            let is_once = block.iter().filter(|sum| **sum == greatest).count() < 2;
            let next = block.iter().fold(0, |next, sum| next.max(if *sum == greatest { 0 } else { *sum }));
            if is_once { next } else { greatest }
        };
        let block = within(from..from + BLOCK);
        // Whole blocks are of a length that is known beforehand, and gone through several sums at a time.
        let next = block.first_chunk::<BLOCK>().map_or_else(|| next(block), |block| next(block));
        Around { greatest: [greatest, next], beside: before.max(behind) }
    }

    /// The greatest sum around a document of this sum.
    #[inline]
    fn of(&self, sum: u16) -> u16 {
        let [greatest, next] = self.greatest;
        (if sum == greatest { next } else { greatest }).max(self.beside)
    }

    /// The greatest of all.
    fn most(&self) -> u16 {
        let [greatest, _] = self.greatest;
        greatest.max(self.beside)
    }

    /// The most that a document's sum and those around it come to.
    fn bound(&self, most_around: u64) -> u64 {
        let [greatest, next] = self.greatest;
        let bound = |sum: u16, around: u16| u64::from(sum) * 1000 + u64::from(around.max(self.beside)) * most_around;
        bound(greatest, next).max(bound(next, greatest))
    }
}

/// What it takes to be among the best: a score, and the least total that factors could make it of.
#[derive(Clone, Copy, Default)]
struct Bar {
    score: u64,
    /// By whether the speaker is named, then by [`Bar::kind`].
    totals: [[u64; Bar::COUNT]; 2],
    /// Of all documents that have no other traits.
    least: [u64; Bar::COUNT],
}

impl Bar {
    /// How many kinds of documents there are for what multiplies: a bit for each of [`Factors::by_trait`].
    const COUNT: usize = 16;

    #[inline]
    fn kind(traits: Traits) -> usize {
        usize::from(traits.by_machine())
            | usize::from(traits.says_when()) << 1
            | usize::from(traits.has_number()) << 2
            | usize::from(traits.is_standing()) << 3
    }

    #[inline]
    fn total(&self, traits: Traits, is_named: bool) -> u64 {
        let [unnamed, named] = &self.totals;
        (if is_named { named } else { unnamed }).get(Bar::kind(traits)).copied().unwrap_or(0)
    }

    /// The least total that does for a document whose traits are among these.
    fn least(&self, any: Traits) -> u64 {
        self.least.get(Bar::kind(any)).copied().unwrap_or(0)
    }
}

/// The least number that a factor, in thousandths and rounded down, makes this of.
fn before_factor(score: u64, factor: u64) -> u64 {
    match (factor, score.checked_mul(1000)) {
        (1000, _) => score,
        (_, Some(score)) => score.div_ceil(factor.max(1)),
        (_, None) => u64::MAX / factor.max(1),
    }
}

/// Keeps the best, and whatever ties with the worst of them.
struct Best {
    top: usize,
    /// The best `top` scores, the worst on top.
    scores: BinaryHeap<Reverse<u64>>,
    documents: Vec<(u64, At)>,
    truncated: bool,
    /// What it takes to change anything.
    bar: Bar,
}

impl Best {
    fn new(top: usize) -> Best {
        Best { top, scores: BinaryHeap::new(), documents: Vec::new(), truncated: false, bar: Bar::default() }
    }

    /// The least score that can still change anything. While nothing has been left out, a worse one shows that there is
    /// more than was asked for.
    fn least(&self) -> u64 {
        match self.scores.peek() {
            Some(worst) if self.truncated => worst.0,
            _ => 0,
        }
    }

    /// Puts the bar where it has to be by now.
    fn raise(&mut self, scorer: &Scorer<'_>) {
        if self.bar.score != self.least() {
            self.bar = scorer.bar(self.least());
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
