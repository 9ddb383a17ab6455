//! Two terms side by side in documents.
//!
//! A term stands directly behind another where its first place in a document is the one behind the other's first place. Of
//! a term with several forms there, the last form of the first term counts and the first of the second.

use super::part::{NO_PLACE, Posting, Postings};

/// Two terms side by side: the documents where they are.
#[derive(Clone, Debug)]
pub(super) struct Adjacent {
    /// Number of the second term among those found.
    pub(super) second: usize,
    /// By part and number, ascending.
    pub(super) documents: Vec<(u32, u32)>,
    pub(super) rarity: u32,
}

/// Postings of which there are so many times more are looked up, not gone through.
const SKEW: usize = 16;

/// Memory for finding pairs.
#[derive(Clone, Debug, Default)]
pub(super) struct Pairs {
    /// By document of a part: the place behind the first term. All 0 between pairs.
    behind: Vec<u8>,
}

impl Pairs {
    /// Names the documents, below `documents` and ascending, in which the second term stands behind the first. Both are
    /// given in one list for each form.
    pub(super) fn find(
        &mut self,
        first: &[Postings<'_>],
        second: &[Postings<'_>],
        documents: usize,
        mut meet: impl FnMut(u32),
    ) {
        if let ([first], [second]) = (first, second) {
            if first.len() > SKEW * second.len() {
                return look_up(first, second, |rare, common| stands_behind(common, rare), meet);
            }
            if second.len() > SKEW * first.len() {
                return look_up(second, first, stands_behind, meet);
            }
        }
        if first.is_empty() || second.is_empty() {
            return;
        }
        if self.behind.len() < documents {
            self.behind.resize(documents, 0);
        }
        for postings in first {
            postings.for_each(|posting| {
                // The place behind that of no place is 0.
                let behind = self.behind.get_mut(posting.document() as usize);
                if let Some(behind) = behind.filter(|_| posting.place() != NO_PLACE) {
                    *behind = posting.place() + 1;
                }
            });
        }
        let several = second.len() > 1;
        let mut found: Vec<u32> = Vec::new();
        for postings in second {
            postings.for_each(|posting| {
                let place = posting.place();
                let Some(behind) = self.behind.get_mut(posting.document() as usize) else { return };
                if *behind == place && place != 0 && place != NO_PLACE {
                    found.push(posting.document());
                }
                // It has its place by its first form that has any.
                if several && place != NO_PLACE {
                    *behind = 0;
                }
            });
        }
        for postings in first {
            postings.for_each(|posting| {
                if let Some(behind) = self.behind.get_mut(posting.document() as usize) {
                    *behind = 0;
                }
            });
        }
        if several {
            found.sort_unstable();
        }
        found.into_iter().for_each(&mut meet);
    }
}

fn stands_behind(first: Posting, second: Posting) -> bool {
    first.place() != NO_PLACE && second.place() != NO_PLACE && second.place() == first.place() + 1
}

/// Goes through the rare postings and looks each up among the common ones.
fn look_up(
    common: &Postings<'_>,
    rare: &Postings<'_>,
    is_pair: impl Fn(Posting, Posting) -> bool,
    mut meet: impl FnMut(u32),
) {
    rare.for_each(|rare| {
        if common.get(rare.document()).is_some_and(|common| is_pair(rare, common)) {
            meet(rare.document());
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    /// Document and place of each posting of a form.
    type Form = BTreeMap<u16, u8>;

    fn form(sizes: core::ops::Range<usize>) -> impl Strategy<Value = Form> {
        prop::collection::btree_map(0_u16..90, prop_oneof![0_u8..4, 250..=u8::MAX], sizes)
    }

    fn words(form: &Form) -> Vec<u32> {
        form.iter().map(|(document, place)| Posting::new(*document, 2, *place).0).collect()
    }

    fn find(pairs: &mut Pairs, first: &[Form], second: &[Form]) -> Vec<u32> {
        fn postings(forms: &[Vec<u32>]) -> Vec<Postings<'_>> {
            forms.iter().map(|form| Postings::Words(form)).collect()
        }
        let (first, second): (Vec<_>, Vec<_>) = (first.iter().map(words).collect(), second.iter().map(words).collect());
        let mut found = Vec::new();
        pairs.find(&postings(&first), &postings(&second), 90, |document| found.push(document));
        found
    }

    #[test]
    fn a_place_that_is_not_known_is_beside_none() {
        let all = |place: u8| vec![Form::from([(7, place)])];
        let mut pairs = Pairs::default();
        assert_eq!(find(&mut pairs, &all(3), &all(4)), [7]);
        for (first, second) in [(3, 3), (4, 3), (NO_PLACE - 1, NO_PLACE), (NO_PLACE, 0), (NO_PLACE, NO_PLACE)] {
            assert_eq!(find(&mut pairs, &all(first), &all(second)), [0_u32; 0], "{first} {second}");
        }
    }

    proptest! {
        #[test]
        fn all_ways_find_the_same(
            first in prop_oneof![prop::collection::vec(form(0..60), 1..3), prop::collection::vec(form(0..3), 1..2)],
            second in prop_oneof![prop::collection::vec(form(0..60), 1..3), prop::collection::vec(form(0..3), 1..2)],
        ) {
            let known = |place: &u8| *place != NO_PLACE;
            let place = |document: u16, mut forms: Vec<&Form>, last: bool| {
                if last {
                    forms.reverse();
                }
                forms.into_iter().filter_map(|form| form.get(&document).copied()).find(known)
            };
            let expected: Vec<u32> = (0..90)
                .filter(|document| {
                    let first = place(*document, first.iter().collect(), true);
                    first.zip(place(*document, second.iter().collect(), false)).is_some_and(|(a, b)| a + 1 == b)
                })
                .map(u32::from)
                .collect();
            let mut pairs = Pairs::default();
            prop_assert_eq!(find(&mut pairs, &first, &second), expected);
            prop_assert!(pairs.behind.iter().all(|behind| *behind == 0));
        }
    }
}
