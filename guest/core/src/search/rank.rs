//! Answers.

use super::document::{Kind, Place};
use crate::ids::Span;

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
    /// Its id.
    pub id: String,
    /// Its file.
    pub path: String,
    /// Where it stands there.
    pub place: Place,
    /// What it is.
    pub kind: Kind,
    /// The days it is about, if any.
    pub days: Option<Span>,
    /// Millionths of a point; above 0. Comparable within one answer only.
    pub score: u64,
    /// What the score is the sum of, if the query asked for it.
    pub signals: Vec<Signal>,
}

/// A part of a score. Those of a record itself come first, then what stands around it, then what multiplies the sum, each
/// as what it added to or took from it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signal {
    /// `term:` and a word of the query; `adjacent:` and two of them; `before`, `after` and `session` for what stands around
    /// the record; `speaker-named`, `assistant` and `time` for what multiplies. Of a search by what is meant `meaning` alone; of one
    /// by both `words-rank` and `meaning-rank`.
    pub name: String,
    /// In the unit of the score.
    pub points: i64,
}
