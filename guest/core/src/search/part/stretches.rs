//! How the documents of a part fall into sessions, and what they come to there.
//!
//! A **session** is at most [`SESSION`] documents of a file, one after the other; it may go on in another run of the file,
//! also of another part. Documents of one run and one session are a **stretch**. Which stretches there are does not depend
//! on who looks, so a view's sessions are made of them without going through documents.

use crate::search::document::{Kind, Traits};
use crate::search::score::length;

/// Most documents of a session.
pub(in crate::search) const SESSION: u32 = 64;

/// How many classes of kinds there are: lengths are compared within one.
pub(in crate::search) const CLASSES: usize = 2;

/// The class of a kind.
#[inline]
pub(in crate::search) fn class(kind: Kind) -> usize {
    match kind {
        Kind::Source => 0,
        Kind::Topic | Kind::Experience => 1,
    }
}

/// What documents come to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::search) struct Tally {
    pub(in crate::search) documents: u32,
    /// In tokens. At most half a million each.
    pub(in crate::search) length: u32,
}

/// Documents of one run and one session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::search) struct Stretch {
    /// Its first document.
    pub(in crate::search) first: u32,
    /// The class of that one.
    pub(in crate::search) class: usize,
    /// By class.
    pub(in crate::search) tallies: [Tally; CLASSES],
}

impl Stretch {
    /// The length of all of it.
    pub(in crate::search) fn length(&self) -> u64 {
        self.tallies.iter().map(|tally| u64::from(tally.length)).sum()
    }

    /// How many documents it has.
    pub(in crate::search) fn documents(&self) -> u32 {
        self.tallies.iter().map(|tally| tally.documents).sum()
    }
}

/// All stretches of a part, in the order of its documents.
#[derive(Clone, Debug)]
pub(in crate::search) struct Stretches {
    all: Vec<Stretch>,
    /// By document. A part has no more stretches than documents.
    of: Vec<u16>,
    /// The first of each run.
    runs: Vec<u32>,
    /// The length that each code stands for.
    lengths: [u32; 256],
}

impl Default for Stretches {
    fn default() -> Self {
        let lengths = core::array::from_fn(|code| length(code as u8));
        Stretches { all: Vec::new(), of: Vec::new(), runs: Vec::new(), lengths }
    }
}

impl Stretches {
    /// Begins a run.
    pub(super) fn begin(&mut self) {
        self.runs.push(self.all.len() as u32);
    }

    /// Adds documents to the run that was begun last, with the codes of their lengths. `ordinal`: how many of their file come
    /// before them.
    pub(super) fn extend(&mut self, mut ordinal: u32, mut lengths: &[u8], mut traits: &[u8]) {
        while !lengths.is_empty() {
            let count = (SESSION - ordinal % SESSION) as usize;
            let (Some(codes), Some(here)) = (split(&mut lengths, count), split(&mut traits, count)) else { return };
            let is_begun = self.runs.last().is_some_and(|first| (*first as usize) < self.all.len());
            if ordinal.is_multiple_of(SESSION) || !is_begun {
                let class = here.first().map_or(0, |traits| class(Traits(*traits).kind()));
                self.all.push(Stretch { first: self.of.len() as u32, class, tallies: Default::default() });
            }
            let number = self.all.len().saturating_sub(1) as u16;
            self.of.resize(self.of.len() + codes.len(), number);
            ordinal = ordinal.saturating_add(codes.len() as u32);
            let Some(stretch) = self.all.last_mut() else { return };
            let length = |code: &u8| self.lengths.get(usize::from(*code)).copied().unwrap_or(0);
            let of_claim = |traits: &u8| class(Traits(*traits).kind()) > 0;
            let [records, claims] = &mut stretch.tallies;
            // Mostly there are only records.
            let has_claims = here.iter().fold(false, |has, traits| has | of_claim(traits));
            for (tally, are_claims) in [(records, false), (claims, true)] {
                if has_claims {
                    let counted = codes.iter().zip(here).filter(|(_, traits)| of_claim(traits) == are_claims);
                    tally.documents += counted.clone().count() as u32;
                    tally.length += counted.map(|(code, _)| length(code)).sum::<u32>();
                } else if !are_claims {
                    tally.documents += codes.len() as u32;
                    tally.length += codes.iter().map(length).sum::<u32>();
                }
            }
        }
    }

    pub(in crate::search) fn all(&self) -> &[Stretch] {
        &self.all
    }

    /// The number of each document's.
    pub(in crate::search) fn of_documents(&self) -> &[u16] {
        &self.of
    }

    /// Numbers of those of a run.
    pub(in crate::search) fn of_run(&self, run: usize) -> core::ops::Range<usize> {
        let first = |run: usize| self.runs.get(run).map_or(self.all.len(), |first| *first as usize);
        first(run)..first(run + 1)
    }
}

/// The first of these, or all if they are fewer.
fn split<'b>(bytes: &mut &'b [u8], count: usize) -> Option<&'b [u8]> {
    let (first, rest) = bytes.split_at_checked(count.min(bytes.len()))?;
    *bytes = rest;
    Some(first)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stretch_is_of_one_run_and_one_session() {
        let lengths: Vec<u8> = (0..200).map(|n| n % 40).collect();
        let traits: Vec<u8> = (0..200).map(|n| u8::from(n == 150)).collect();
        let mut at_once = Stretches::default();
        at_once.begin();
        at_once.extend(60, &lengths[..130], &traits[..130]);
        at_once.begin();
        at_once.begin();
        at_once.extend(190, &lengths[130..], &traits[130..]);
        let firsts: Vec<u32> = at_once.all().iter().map(|stretch| stretch.first).collect();
        assert_eq!(firsts, [0, 4, 68, 130, 132, 196]);
        assert_eq!((at_once.of_run(0), at_once.of_run(1), at_once.of_run(2)), (0..3, 3..3, 3..6));
        assert_eq!(at_once.of_documents().len(), 200);
        assert_eq!((at_once.of_documents()[67], at_once.of_documents()[68]), (1, 2));
        let [records, claims] = at_once.all()[4].tallies;
        assert_eq!((records.documents, claims.documents, claims.length), (63, 1, 30));
        assert_eq!(at_once.all().iter().map(Stretch::documents).sum::<u32>(), 200);

        let mut one_by_one = Stretches::default();
        one_by_one.begin();
        for document in 0..130 {
            one_by_one.extend(60 + document as u32, &lengths[document..=document], &traits[document..=document]);
        }
        assert_eq!(one_by_one.all(), &at_once.all()[..3]);
    }
}
