//! Which ids a file has shown so far.
//!
//! Knows hashes only. It must stay fast for ids that somebody made so that they collide.

use crate::digest::Digest;
use std::collections::BTreeSet;

/// How many neighbours of its place an entry may lie away. Honest input stays far below; ids ground out so that their
/// hashes crowd together fill a place quickly and go to the tree, which has no bad case.
const REACH: usize = 64;

/// A set of SHA-256 values, 16 bytes each. The hash is the place, so inserting hashes nothing; half of a SHA-256 is
/// enough, since two ids that agree in it are as far out of reach as any collision of 128 bits.
#[derive(Clone, Debug, Default)]
pub(super) struct IdsSeen {
    /// A power of two long; 0 is a free place.
    places: Vec<u128>,
    used: usize,
    crowded: BTreeSet<u128>,
}

impl IdsSeen {
    /// Adds one; false if it was there.
    pub(super) fn insert(&mut self, id: &Digest) -> bool {
        let (half, _) = id.0.split_at(16);
        // Of 2^128 values the one that means "free" is given up: it lives in the tree.
        let key = u128::from_le_bytes(half.try_into().unwrap_or_default());
        if key == 0 {
            return self.crowded.insert(key);
        }
        if self.used * 4 >= self.places.len() * 3 {
            self.grow();
        }
        if !self.crowded.is_empty() && self.crowded.contains(&key) {
            return false;
        }
        match place(&mut self.places, key) {
            Place::Free(free) => {
                *free = key;
                self.used += 1;
                true
            }
            Place::Taken => false,
            Place::Crowded => self.crowded.insert(key),
        }
    }

    fn grow(&mut self) {
        let mut places = vec![0; (self.places.len() * 2).max(64)];
        for key in self.places.drain(..).filter(|&key| key != 0) {
            match place(&mut places, key) {
                Place::Free(free) => *free = key,
                Place::Taken => {}
                Place::Crowded => {
                    self.crowded.insert(key);
                    self.used -= 1;
                }
            }
        }
        self.places = places;
    }
}

enum Place<'a> {
    Free(&'a mut u128),
    Taken,
    Crowded,
}

fn place(places: &mut [u128], key: u128) -> Place<'_> {
    let mask = places.len().wrapping_sub(1);
    let start = (key as usize) & mask;
    let mut found = None;
    for step in 0..REACH {
        let at = (start + step) & mask;
        match places.get(at) {
            Some(0) => {
                found = Some(at);
                break;
            }
            Some(&other) if other == key => return Place::Taken,
            _ => {}
        }
    }
    match found.and_then(|at| places.get_mut(at)) {
        Some(free) => Place::Free(free),
        None => Place::Crowded,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_once() {
        let mut seen = IdsSeen::default();
        let ids: Vec<Digest> = (0..5000_u32).map(|n| Digest::of(&n.to_le_bytes())).collect();
        assert!(ids.iter().all(|id| seen.insert(id)));
        assert!(ids.iter().all(|id| !seen.insert(id)));
        assert!(seen.crowded.len() < 50, "honest ids hardly ever crowd: {}", seen.crowded.len());
    }

    #[test]
    fn crowding_costs_a_tree_and_not_a_search() {
        let mut seen = IdsSeen::default();
        // The low 64 bits all alike: every id wants the same place, at every size of the table.
        let ids: Vec<Digest> = (0..3000_u128)
            .map(|n| {
                let mut bytes = [0; 32];
                bytes[..16].copy_from_slice(&((n << 64) | 7).to_le_bytes());
                Digest(bytes)
            })
            .collect();
        assert!(ids.iter().all(|id| seen.insert(id)));
        assert!(ids.iter().all(|id| !seen.insert(id)));
        assert!(seen.crowded.len() >= 3000 - REACH - 1);
        assert!(seen.places.len() <= 128);
        assert!(seen.insert(&Digest([0; 32])) && !seen.insert(&Digest([0; 32])));
    }
}
