//! How much each part of a score counts.

use super::document::Traits;
use super::query::{Query, Says};

/// Weights in thousandths. The defaults were tuned on three sets of conversations together (two people over months, chats
/// with an assistant, short utterances in Chinese), each on both halves of their questions; `tests/bench/README.md` has the
/// figures. Their names are those of the settings `search.weight.…`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Weights {
    /// `k1` of BM25: how much a word counts that stands in a record again.
    pub k1: u64,
    /// `b` of BM25: how much a record's length counts.
    pub b: u64,
    /// Of the session a record stands in.
    pub session: u64,
    /// `k1` for sessions.
    pub session_k1: u64,
    /// `b` for sessions.
    pub session_b: u64,
    /// Of the record before, for the one behind it.
    pub before: u64,
    /// Of the record behind, for the one before it.
    pub after: u64,
    /// What is left of `before` and `after` with each record further away.
    pub decay: u64,
    /// On `before`, if that record is a question: its answer comes next.
    pub question: u64,
    /// On `before`, if the query asks when: the record that tells of something says when it was, or its own day does. What
    /// comes behind speaks of it without.
    pub when: u64,
    /// On `after`, if that record is an assistant's: it repeats what it answers.
    pub answer: u64,
    /// On a whole score, if the record is an assistant's and the query asks neither for what it said nor for all that was.
    pub assistant: u64,
    /// On a whole score, if the query names who spoke.
    pub named: u64,
    /// On a whole score, if the record is a question that a person asks another, which the next record answers. An assistant
    /// is asked otherwise: what people tell it they tell in their questions.
    pub inquiry: u64,
    /// On a whole score, if the query asks when and the record says so.
    pub time: u64,
    /// On a whole score, if the query asks how many and the record has a number.
    pub number: u64,
    /// On a whole score, if the record is what a person said to an assistant about how something is to be from then on, or what
    /// they prefer, unless the query asks for what was said or done, or how many. It is to be kept in mind where little of it is said again.
    pub standing: u64,
    /// Of two words that stand side by side in the query and in the record.
    pub adjacent: u64,
    /// Of what says little in scripts without spaces: single characters, and pairs with one of grammar.
    pub weak: u64,
    /// Of words that ask, as `list`, `mention` and `summary` do, and do not say what about.
    pub asking: u64,
}

impl Weights {
    /// The greatest value of each; `b`, `decay` and `inquiry` are at most 1000, `standing` is no less.
    pub const MAX: u64 = 10_000;

    /// What counts unless a setting says otherwise.
    pub const DEFAULT: Weights = Weights {
        k1: 500,
        b: 800,
        session: 1300,
        session_k1: 700,
        session_b: 750,
        before: 500,
        after: 200,
        decay: 500,
        question: 2000,
        when: 500,
        answer: 1000,
        assistant: 300,
        named: 1500,
        inquiry: 900,
        time: 1500,
        number: 1500,
        standing: 2000,
        adjacent: 500,
        weak: 200,
        asking: 500,
    };

    /// Plain BM25: nothing but the words of a record counts.
    pub const PLAIN: Weights = Weights {
        k1: 500,
        b: 800,
        session: 0,
        session_k1: 700,
        session_b: 750,
        before: 0,
        after: 0,
        decay: 0,
        question: 0,
        when: 0,
        answer: 0,
        assistant: 1000,
        named: 1000,
        inquiry: 1000,
        time: 1000,
        number: 1000,
        standing: 1000,
        adjacent: 0,
        weak: 1000,
        asking: 1000,
    };
}

impl Weights {
    /// Of a term in a document, by what it says.
    pub(super) fn of_term(&self, says: Says) -> u64 {
        match says {
            Says::Little => self.weak,
            Says::Asking => self.asking,
            Says::What => WHOLE,
        }
    }

    /// Of the record before, by what is asked.
    pub(super) fn before(&self, query: &Query) -> u64 {
        if query.asks_when { self.before.saturating_mul(self.when) / WHOLE } else { self.before }
    }

    /// Of a term in a session. Characters of a script without spaces say little of a record, and enough of what a whole
    /// session is about.
    pub(super) fn of_session_term(&self, says: Says) -> u64 {
        match says {
            Says::Asking => self.asking,
            Says::Little | Says::What => WHOLE,
        }
    }
}

/// What a whole score is multiplied by for what a record is, one after the other, as explanations call it.
pub(super) const FACTORS: [&str; 5] = ["inquiry", "assistant", "time", "number", "standing"];

/// What each of them is for a query, where it applies.
#[derive(Clone, Copy, Debug)]
pub(super) struct Factors([u64; FACTORS.len()]);

impl Factors {
    pub(super) fn new(weights: &Weights, query: &Query) -> Factors {
        let factor = |applies: bool, weight: u64| if applies { weight } else { WHOLE };
        // What was done and said nobody does otherwise for an instruction; nor does counting.
        let is_task = !query.recalls && !query.asks_all && !query.asks_number;
        Factors([
            weights.inquiry.min(WHOLE),
            factor(!query.asks_all, weights.assistant),
            factor(query.asks_when, weights.time),
            factor(query.asks_number, weights.number),
            factor(is_task, weights.standing.max(WHOLE)),
        ])
    }

    /// Of a record. `to_machine`: an assistant's stands beside it; without that it has no more than with it.
    #[inline]
    pub(super) fn of(&self, traits: Traits, to_machine: bool) -> [u64; FACTORS.len()] {
        let [inquiry, assistant, time, number, standing] = self.0;
        let factor = |applies: bool, weight: u64| if applies { weight } else { WHOLE };
        let by_person = !traits.by_machine();
        [
            factor(traits.is_question() && by_person && !to_machine, inquiry),
            factor(!by_person, assistant),
            factor(traits.says_when(), time),
            factor(traits.has_number(), number),
            factor(traits.is_standing() && by_person && to_machine, standing),
        ]
    }

    /// Of each of [`FACTORS`] but the first, which makes nothing more: the trait without which it does not apply, and it.
    pub(super) fn by_trait(&self) -> [(u8, u64); FACTORS.len() - 1] {
        let [_, assistant, time, number, standing] = self.0;
        [(Traits::MACHINE, assistant), (Traits::TIME, time), (Traits::NUMBER, number), (Traits::STANDING, standing)]
    }
}

/// A whole weight.
const WHOLE: u64 = 1000;

impl Default for Weights {
    fn default() -> Self {
        Weights::DEFAULT
    }
}
