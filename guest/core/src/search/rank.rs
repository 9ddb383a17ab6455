//! The best few of many sums.
//!
//! Knows sums and what ties are broken by; must not know how a sum came about.

use super::document::{DocId, Documents, Id};
use crate::ids::Day;
use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

/// An answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ranking {
    /// Best first.
    pub hits: Vec<Ranked>,
    /// More documents matched than were asked for.
    pub truncated: bool,
    /// The query has so many terms that its rarest ones only were looked for.
    pub terms_left_out: bool,
}

/// A document that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ranked {
    /// Which.
    pub document: DocId,
    /// Millionths of a point; above 0. Comparable within one answer only.
    pub score: u64,
    /// What the score is the sum of, if the query asked for it.
    pub signals: Vec<Signal>,
}

/// A part of a score.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signal {
    /// `term:` and the term for a word of the query; `speaker-named` for what a document gains because the query names
    /// its speaker.
    pub name: String,
    /// In the unit of the score.
    pub points: i64,
}

/// Documents compared at a time with the worst that is kept.
const BLOCK: usize = 64;

/// Keeps the best.
pub(super) struct Top<'a> {
    documents: &'a Documents,
    most: usize,
    /// The worst on top.
    kept: BinaryHeap<Candidate<'a>>,
    /// Something that matched was not kept.
    truncated: bool,
}

/// A match. The greater is the worse.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Candidate<'a> {
    score: Reverse<u64>,
    day: DayOrder,
    id: Option<Id<'a>>,
    document: DocId,
}

/// Days, and none after all of them.
#[derive(PartialEq, Eq)]
struct DayOrder(Option<Day>);

impl PartialOrd for DayOrder {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for DayOrder {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.0.is_none(), self.0).cmp(&(other.0.is_none(), other.0))
    }
}

impl<'a> Top<'a> {
    pub(super) fn new(documents: &'a Documents, most: usize) -> Top<'a> {
        Top { documents, most, kept: BinaryHeap::new(), truncated: false }
    }

    /// Looks at every document with a sum above 0. `score` makes the score of it, or none if the document does not count;
    /// `most` says how large a score can become of a sum, and the larger the sum the larger.
    pub(super) fn collect(
        &mut self,
        sums: &[u32],
        most: impl Fn(u32) -> u64,
        score: impl Fn(DocId, u32) -> Option<u64>,
    ) {
        let mut first = 0_u32;
        for block in sums.chunks(BLOCK) {
            // Most blocks hold nothing better than what is kept, and this loop runs many documents at once.
            let best = block.iter().copied().max().unwrap_or(0);
            if best > 0 && most(best) >= self.least() {
                for (document, sum) in (first..).zip(block) {
                    if *sum > 0
                        && most(*sum) >= self.least()
                        && let Some(score) = score(DocId(document), *sum)
                    {
                        self.offer(score, DocId(document));
                    }
                }
            }
            first += BLOCK as u32;
        }
    }

    /// The least score that can still change anything. While nothing has been left out, a worse one shows that there is
    /// more than was asked for.
    fn least(&self) -> u64 {
        match self.kept.peek() {
            Some(worst) if self.truncated => worst.score.0,
            _ => 1,
        }
    }

    fn offer(&mut self, score: u64, document: DocId) {
        if self.kept.len() >= self.most {
            self.truncated = true;
            if score < self.least() {
                return;
            }
        }
        let day = self.documents.entry(document).and_then(|entry| entry.days).map(|days| days.first());
        let id = self.documents.id(document);
        let candidate = Candidate { score: Reverse(score), day: DayOrder(day), id, document };
        if self.kept.len() < self.most {
            self.kept.push(candidate);
        } else if let Some(mut worst) = self.kept.peek_mut()
            && candidate < *worst
        {
            *worst = candidate;
        }
    }

    /// Best first, and whether something that matched is not among them.
    pub(super) fn finish(self) -> (Vec<Ranked>, bool) {
        let ranked = self.kept.into_sorted_vec().into_iter().map(|candidate| Ranked {
            document: candidate.document,
            score: candidate.score.0,
            signals: Vec::new(),
        });
        (ranked.collect(), self.truncated)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::search::document::{Document, Kind};
    use proptest::prelude::*;

    proptest! {
        /// The best of a full sort, and something left out exactly where more count than are kept.
        #[test]
        fn the_best_are_those_of_a_full_sort(
            rows in prop::collection::vec((0_u32..5, 0_u8..3, "[ab]{1,2}", any::<bool>()), 0..200),
            most in 1_usize..12,
            boosted in any::<bool>(),
        ) {
            let mut documents = Documents::default();
            for (_, day, id, _) in &rows {
                let time = if *day == 0 { String::new() } else { format!("2024-01-0{day}") };
                let document =
                    Document { id, path: "", kind: Kind::Source, time: &time, label: "", speaker: None, text: "" };
                documents.add(&document);
            }
            let sums: Vec<u32> = rows.iter().map(|row| row.0).collect();
            let raise = |sum: u32| if boosted { u64::from(sum) * 2 } else { u64::from(sum) };
            // Every third document is raised, where any is.
            let score = |document: DocId, sum: u32| {
                rows[document.get()].3.then(|| if document.0.is_multiple_of(3) { raise(sum) } else { u64::from(sum) })
            };
            let mut top = Top::new(&documents, most);
            top.collect(&sums, raise, score);
            let (hits, truncated) = top.finish();

            let mut all: Vec<_> = (0..).map(DocId).zip(&rows).filter_map(|(document, (sum, day, id, _))| {
                let score = score(document, *sum).filter(|_| *sum > 0)?;
                Some((Reverse(score), if *day == 0 { u8::MAX } else { *day }, id, document))
            }).collect();
            all.sort();
            prop_assert_eq!(truncated, all.len() > most);
            let expected: Vec<_> = all.iter().take(most).map(|(score, _, _, document)| (*document, score.0)).collect();
            let found: Vec<_> = hits.iter().map(|hit| (hit.document, hit.score)).collect();
            prop_assert_eq!(found, expected);
        }
    }
}
