//! What a query asks of a document beside its words.

use super::document::{Kind, other_days};
use super::files::Files;
use super::part::{Missing, Part, Section};
use super::query::Query;
use super::view::{Piece, View};
use crate::ids::Period;

/// A query's filters, worked out once for the files and speakers there are. By default everything passes.
#[derive(Default)]
pub(super) struct Filter {
    scope: Option<Kind>,
    period: Option<Period>,
    /// By number of the file.
    files: Option<Vec<bool>>,
    /// By part, then number of the speaker.
    speakers: Option<Vec<Vec<bool>>>,
}

impl Filter {
    pub(super) fn new(parts: &[Part], files: &Files, query: &Query) -> Filter {
        let paths = |filter: &super::query::PathFilter| files.iter().map(|file| filter.matches(&file.path)).collect();
        let speakers = |filter: &super::query::SpeakerFilter| {
            parts.iter().map(|part| part.speakers().mark(|name| filter.matches(name))).collect()
        };
        Filter {
            scope: query.scope,
            period: query.period,
            files: query.path.as_ref().map(paths),
            speakers: query.speaker.as_ref().map(speakers),
        }
    }

    /// Notes what it will look at, if that is not at hand.
    pub(super) fn need(&self, part: &Part, missing: &mut Missing) {
        if self.speakers.is_some() {
            part.need(Section::Spoken, missing);
        }
        if self.period.is_some() {
            part.need(Section::Days, missing);
        }
    }

    /// Whether a document of a part passes; one of which something is not at hand does not.
    pub(super) fn passes(
        &self,
        part: &Part,
        number: usize,
        piece: &Piece,
        document: u32,
        missing: &mut Missing,
    ) -> bool {
        self.scope.is_none_or(|scope| part.traits_of(document).kind() == scope)
            && self.files.as_ref().is_none_or(|files| {
                let file = View::file(piece, part, document);
                file.and_then(|file| files.get(file as usize)).copied().unwrap_or(false)
            })
            && self.speakers.as_ref().is_none_or(|speakers| {
                let mut spoken = || {
                    let speaker = part.speaker(document, missing)??;
                    speakers.get(number)?.get(usize::from(speaker.0)).copied()
                };
                part.traits_of(document).kind() == Kind::Source && spoken().unwrap_or(false)
            })
            && self.period.is_none_or(|period| {
                // The outer none: it is not at hand. The inner: it has no day.
                part.days(document, missing).flatten().is_some_and(|days| {
                    let mut other = || {
                        part.id(document, missing).is_some_and(|key| other_days(&key).any(|days| period.meets(days)))
                    };
                    period.meets(days) || part.traits_of(document).kind() != Kind::Source && other()
                })
            })
    }
}
