//! Backfill: evidence that no topic cites, wherever it came from, in pieces for a writer.
//!
//! Marks play no part: what is cited is done, and what is not is offered again, so that a pass that was broken off goes on by
//! itself. Knows evidence as it is read and what is cited. Must not know files: a candidate says where its text is.

use super::ledger::Citations;
use super::lines::turn_line;
use super::owed::{UNDATED, observed_text};
use crate::source::{Event, Trust};
use core::num::NonZeroU64;
use std::collections::BTreeMap;

/// Evidence to be written of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// A source id, or `D3:7`.
    pub reference: String,
    /// Its archive.
    pub path: String,
    /// Of its first line, from 1.
    pub line: u64,
    /// Of its first byte in the archive.
    pub offset: u64,
    /// In bytes.
    pub length: u64,
    /// The first day it names, `YYYY-MM-DD`.
    pub date: Option<String>,
    /// Who spoke, as far as its frame says.
    pub speaker: String,
}

/// Who spoke where no speaker was noted. What stands before the colon in a record is its text's word only.
const NOBODY_NOTED: &str = "user";

/// Collects candidates.
#[derive(Clone, Debug, Default)]
pub struct Candidates {
    found: BTreeMap<String, Candidate>,
}

impl Candidates {
    /// Takes note of evidence. Of an older record that also has a frame, only the frame is to be told.
    pub fn see(&mut self, event: &Event, citations: &Citations) {
        let record = &event.record;
        if record.trust != Trust::Trusted {
            return;
        }
        for reference in event.references.iter().filter(|reference| !citations.is_cited(reference)) {
            let place = (record.path.as_str(), record.line);
            // A turn that several lines mention stands where it is mentioned first.
            if self.found.get(reference).is_some_and(|known| (known.path.as_str(), known.line) <= place) {
                continue;
            }
            let speaker = record.speaker.as_ref().map(|speaker| speaker.label.clone());
            let candidate = Candidate {
                reference: reference.clone(),
                path: record.path.clone(),
                line: record.line,
                offset: record.offset,
                length: record.length,
                date: event.date.clone(),
                speaker: speaker.filter(|speaker| !speaker.is_empty()).unwrap_or_else(|| NOBODY_NOTED.to_owned()),
            };
            self.found.insert(reference.clone(), candidate);
        }
    }

    /// All of them: by path, line and reference, each by code points.
    #[must_use]
    pub fn finish(self) -> Vec<Candidate> {
        let mut found: Vec<Candidate> = self.found.into_values().collect();
        found.sort_by(|a, b| (&a.path, a.line, &a.reference).cmp(&(&b.path, b.line, &b.reference)));
        found
    }
}

/// How many of the next candidates make a batch: as many as do not go beyond the budget, and at least one. Asks for one count
/// more than it needs.
pub fn next_batch(tokens: impl IntoIterator<Item = u64>, budget: NonZeroU64) -> usize {
    let mut sum = 0_u64;
    let fits = tokens.into_iter().enumerate().take_while(|(place, more)| {
        sum = sum.saturating_add(*more);
        *place == 0 || sum <= budget.get()
    });
    fits.count()
}

/// Candidates of one day that come one behind the other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part<'c> {
    /// `YYYY-MM-DD`, or `undated`.
    pub day: &'c str,
    /// Each with its text.
    pub turns: Vec<(&'c Candidate, &'c str)>,
}

impl Part<'_> {
    /// What the writer is given to read: the day, an empty line, and a line a candidate ([`turn_line`]).
    #[must_use]
    pub fn text(&self) -> String {
        let line = |(candidate, text): &(&Candidate, &str)| turn_line(&candidate.reference, &candidate.speaker, text);
        observed_text(self.day, &self.turns.iter().map(line).collect::<Vec<_>>())
    }
}

/// A batch, each candidate with its text, in parts of one day.
#[must_use]
pub fn parts<'c>(batch: impl IntoIterator<Item = (&'c Candidate, &'c str)>) -> Vec<Part<'c>> {
    let mut parts: Vec<Part<'c>> = Vec::new();
    for (candidate, text) in batch {
        let day = candidate.date.as_deref().unwrap_or(UNDATED);
        match parts.last_mut().filter(|part| part.day == day) {
            Some(part) => part.turns.push((candidate, text)),
            None => parts.push(Part { day, turns: vec![(candidate, text)] }),
        }
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_keep_to_the_budget_and_have_at_least_one() {
        let of = |tokens: &[u64], budget| next_batch(tokens.iter().copied(), NonZeroU64::new(budget).expect("not 0"));
        assert_eq!(of(&[], 5), 0);
        assert_eq!(of(&[9, 1], 5), 1);
        assert_eq!(of(&[2, 3, 1], 5), 2);
        assert_eq!(of(&[2, 4], 5), 1);
        assert_eq!(of(&[u64::MAX, u64::MAX], 5), 1);
        assert_eq!(of(&[0, 0, 0], 1), 3);
    }
}
