//! How much each part of a score counts.

/// Weights in thousandths. The defaults were tuned on three sets of conversations together (two people over months, chats
/// with an assistant, short utterances in Chinese) and checked on halves of them that were left out;
/// `tests/bench/README.md` has the figures. Their names are those of the settings `search.weight.…`.
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
    /// On `after`, if that record is an assistant's: it repeats what it answers.
    pub answer: u64,
    /// On a whole score, if the record is an assistant's.
    pub assistant: u64,
    /// On a whole score, if the query names who spoke.
    pub named: u64,
    /// On a whole score, if the query asks when and the record says so.
    pub time: u64,
    /// Of two words that stand side by side in the query and in the record.
    pub adjacent: u64,
    /// Of what says little in scripts without spaces: single characters, and pairs with one of grammar.
    pub weak: u64,
}

impl Weights {
    /// The greatest value of each; `b` and `decay` are at most 1000.
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
        answer: 1000,
        assistant: 300,
        named: 1500,
        time: 1500,
        adjacent: 500,
        weak: 200,
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
        answer: 0,
        assistant: 1000,
        named: 1000,
        time: 1000,
        adjacent: 0,
        weak: 1000,
    };
}

impl Default for Weights {
    fn default() -> Self {
        Weights::DEFAULT
    }
}
