//! Two rankings made one.
//!
//! Reciprocal rank fusion: what stands at rank *r* of a ranking gets 1 / (60 + *r*), from each that it stands in (Cormack,
//! Clarke and Büttcher, SIGIR 2009, whose 60 this is). So scores that nothing makes comparable need not be compared.

use super::rank::{Ranked, Signal};
use std::collections::BTreeMap;

/// What is added to every rank.
const K: u64 = 60;

/// What a rank of 1 − 60 would be worth. So large that no two ranks up to ten thousand are worth the same.
const POINTS: u64 = 1_000_000_000;

/// How deep into each ranking a fusion looks at least: what stands high in one of them may stand low in the other.
pub const FUSED: u32 = 100;

/// What stands at this rank, from 1, is worth.
const fn worth(rank: u64) -> u64 {
    POINTS / K.saturating_add(rank)
}

/// One ranking of several, each of which is best first and has a document once. By what its ranks are worth together, then
/// by its best rank, path, line and id; the order of the rankings does not matter. `explain`: each says, as a signal named as
/// the ranking, what that one gave it.
#[must_use]
pub fn fuse<'n>(rankings: impl IntoIterator<Item = (&'n str, Vec<Ranked>)>, explain: bool) -> Vec<Ranked> {
    let mut fused: BTreeMap<(String, u64, String), (u64, Ranked)> = BTreeMap::new();
    for (name, ranking) in rankings {
        for (rank, hit) in (1_u64..).zip(ranking) {
            let points = worth(rank);
            let key = (hit.path.clone(), hit.place.line, hit.id.clone());
            let fresh = || (rank, Ranked { score: 0, signals: Vec::new(), ..hit });
            let (best, hit) = fused.entry(key).or_insert_with(fresh);
            *best = rank.min(*best);
            hit.score = hit.score.saturating_add(points);
            if explain {
                hit.signals.push(Signal { name: name.to_owned(), points: i64::try_from(points).unwrap_or(i64::MAX) });
                hit.signals.sort_by(|one, other| one.name.cmp(&other.name).reverse());
            }
        }
    }
    // The keys are in their order already, and the sort keeps it.
    let mut hits: Vec<(u64, Ranked)> = fused.into_values().collect();
    hits.sort_by_key(|(best, hit)| (core::cmp::Reverse(hit.score), *best));
    hits.into_iter().map(|(_, hit)| hit).collect()
}
