//! Terms and their numbers.
//!
//! Knows strings; must not know what they mean. Ordered rather than hashed, for two reasons: anybody can write a message,
//! and against an ordered tree no choice of words is worse than another; and a segment wants its terms in their order.
//!
//! A term of at most 16 bytes, which is nearly every term, is kept as the number its bytes make, highest first and filled
//! up with zeros: no allocation, one comparison, and the same order as the strings' (no term holds a NUL). Longer ones
//! have a tree of their own. In front lies a table of the terms last seen, because a few hundred words make up half of
//! any text; an unlucky or hostile choice of words only makes it useless, never slow.

use std::collections::BTreeMap;

/// Number of a term, from 0 in the order in which terms were first seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct TermId(pub u32);

/// Longest term, in bytes, that is kept as a number.
const SHORT: usize = 16;

/// Size of the table of the terms last seen: a power of two, and small enough for a processor's second cache.
const RECENT: usize = 1 << 12;

/// All terms, each with its number.
#[derive(Clone, Debug)]
pub(super) struct Dictionary {
    short: BTreeMap<u128, TermId>,
    long: BTreeMap<Box<str>, TermId>,
    recent: Vec<(u128, TermId)>,
    len: u32,
}

impl Default for Dictionary {
    fn default() -> Self {
        // No term is empty, so zero marks a place not yet used.
        Dictionary { short: BTreeMap::new(), long: BTreeMap::new(), recent: vec![(0, TermId(0)); RECENT], len: 0 }
    }
}

impl Dictionary {
    /// The number of `term`, a new one if it has none yet.
    pub(super) fn intern(&mut self, term: &str) -> TermId {
        let next = TermId(self.len);
        let id = match short_key(term) {
            Some(key) => {
                let recent = self.recent.get_mut(place(key));
                match recent {
                    Some((seen, id)) if *seen == key => return *id,
                    recent => {
                        let id = *self.short.entry(key).or_insert(next);
                        if let Some(recent) = recent {
                            *recent = (key, id);
                        }
                        id
                    }
                }
            }
            None => match self.long.get(term) {
                Some(id) => *id,
                None => {
                    self.long.insert(term.into(), next);
                    next
                }
            },
        };
        if id == next {
            self.len += 1;
        }
        id
    }

    /// The number of `term`, if it has one.
    pub(super) fn get(&self, term: &str) -> Option<TermId> {
        match short_key(term) {
            Some(key) => self.short.get(&key).copied(),
            None => self.long.get(term).copied(),
        }
    }

    /// All terms, ascending by their bytes.
    pub(super) fn sorted(&self) -> Vec<(String, TermId)> {
        let mut all: Vec<(String, TermId)> = Vec::with_capacity(self.len as usize);
        let mut long = self.long.iter().peekable();
        for (key, id) in &self.short {
            let bytes = key.to_be_bytes();
            let length = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
            let term = bytes.get(..length).and_then(|bytes| core::str::from_utf8(bytes).ok()).unwrap_or_default();
            while let Some((before, id)) = long.next_if(|(long, _)| ***long < *term) {
                all.push((before.to_string(), *id));
            }
            all.push((term.to_owned(), *id));
        }
        all.extend(long.map(|(term, id)| (term.to_string(), *id)));
        all
    }
}

/// The bytes of a short term as a number; none for a longer one.
fn short_key(term: &str) -> Option<u128> {
    let mut bytes = [0; SHORT];
    bytes.get_mut(..term.len())?.copy_from_slice(term.as_bytes());
    Some(u128::from_be_bytes(bytes))
}

/// Place of a term in the table of the terms last seen.
fn place(key: u128) -> usize {
    let mixed = ((key >> 64) as u64 ^ (key as u64).rotate_left(29)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed >> (64 - RECENT.trailing_zeros())) as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn numbers_are_given_in_order_of_appearance_and_kept() {
        let mut dictionary = Dictionary::default();
        let long = "a".repeat(SHORT + 1);
        let terms = ["b", "a", "exactly16bytes..", &long, "猫"];
        for _ in 0..2 {
            for (number, term) in (0..).zip(terms) {
                assert_eq!(dictionary.intern(term), TermId(number));
            }
        }
        assert_eq!(dictionary.get("猫"), Some(TermId(4)));
        assert_eq!(dictionary.get("犬"), None);
        assert_eq!(dictionary.get(&long[1..]), None);
    }

    proptest! {
        #[test]
        fn terms_come_back_in_the_order_of_their_bytes(terms in prop::collection::vec("[ab猫犬é]{1,12}", 0..60)) {
            let mut dictionary = Dictionary::default();
            let ids: Vec<TermId> = terms.iter().map(|term| dictionary.intern(term)).collect();
            let mut expected: Vec<(String, TermId)> = terms.iter().cloned().zip(ids).collect();
            expected.sort();
            expected.dedup();
            for (term, id) in &expected {
                prop_assert_eq!(dictionary.get(term), Some(*id));
            }
            prop_assert_eq!(dictionary.sorted(), expected);
        }
    }
}
