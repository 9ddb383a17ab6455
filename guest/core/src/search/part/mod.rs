//! Parts of an index: what was indexed together.
//!
//! An index is a list of parts. All but the last are [`Segment`]s, which never change and may lie in a file of which only
//! some pages are at hand; the last is [`Memory`], which documents are added to. [`merge`] makes one segment of several
//! parts, and so also seals a `Memory`.
//!
//! A part numbers its documents from 0. The documents of one file that stand in one row in it are a [`Run`]; what a file
//! is made of is the runs that the index counts as its own, in all parts together.

mod dictionary;
mod layout;
mod memory;
mod merge;
mod pages;
mod posting;
mod segment;
mod stretches;

pub(super) use layout::{Section, Version};
pub(super) use memory::Memory;
pub(super) use merge::{Live, merge};
pub(super) use pages::{Missing, PAGE_BYTES};
pub(super) use posting::{NO_PLACE, Posting, Postings};
pub(super) use segment::Segment;
pub(super) use stretches::{CLASSES, SESSION, Stretches, class};

use super::document::{Place, Traits};
use super::names::{Names, SpeakerId, Speakers};
use super::words::Languages;
use crate::ids::Span;

/// Most documents of a part: a posting has 16 bits for one.
pub(super) const PART_DOCUMENTS: u32 = 1 << 16;

/// A part that has more postings is full, so that merging it stays within bounds.
pub(super) const PART_POSTINGS: u64 = 1 << 24;

/// Documents of one file, one after the other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Run {
    /// Number of the file within the part.
    pub(super) file: u32,
    /// How many documents of the file come before them.
    pub(super) ordinal: u32,
    /// Number of the first within the part.
    pub(super) first: u32,
    /// How many.
    pub(super) documents: u32,
    /// Languages their texts are in.
    pub(super) languages: Languages,
    /// Of the file once they were indexed; none if nobody said.
    pub(super) version: Option<Version>,
}

impl Run {
    /// The numbers of its documents.
    pub(super) fn range(&self) -> core::ops::Range<u32> {
        self.first..self.first.saturating_add(self.documents)
    }
}

/// A document with everything that is known of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) id: String,
    pub(super) place: Place,
    pub(super) days: Option<Span>,
    /// See [`Traits`].
    pub(super) traits: u8,
    /// Code of its length.
    pub(super) length: u8,
    pub(super) speaker: Option<Names>,
    pub(super) terms: Vec<Term>,
}

/// A term of a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Term {
    pub(super) text: String,
    /// In halves.
    pub(super) frequency: u8,
    pub(super) place: u8,
}

/// Where the postings of a term are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct List {
    pub(super) start: u32,
    /// At least 1.
    pub(super) count: u32,
}

/// A part, whichever way it is kept.
///
/// What may not be at hand is an `Option`: none means that pages are missing, and they were noted in the [`Missing`].
#[derive(Clone, Debug)]
pub(super) enum Part {
    Segment(Segment),
    Memory(Memory),
}

impl Part {
    pub(super) fn documents(&self) -> u32 {
        match self {
            Part::Segment(segment) => segment.documents(),
            Part::Memory(memory) => memory.documents(),
        }
    }

    pub(super) fn postings_held(&self) -> u64 {
        match self {
            Part::Segment(segment) => segment.postings_held(),
            Part::Memory(memory) => memory.postings_held(),
        }
    }

    pub(super) fn files(&self) -> &[String] {
        match self {
            Part::Segment(segment) => segment.files(),
            Part::Memory(memory) => memory.files(),
        }
    }

    pub(super) fn runs(&self) -> &[Run] {
        match self {
            Part::Segment(segment) => segment.runs(),
            Part::Memory(memory) => memory.runs(),
        }
    }

    /// Length codes of all documents.
    pub(super) fn lengths(&self) -> &[u8] {
        match self {
            Part::Segment(segment) => segment.lengths(),
            Part::Memory(memory) => memory.lengths(),
        }
    }

    /// Traits of all documents, a byte each.
    pub(super) fn traits(&self) -> &[u8] {
        match self {
            Part::Segment(segment) => segment.traits(),
            Part::Memory(memory) => memory.traits(),
        }
    }

    pub(super) fn traits_of(&self, document: u32) -> Traits {
        Traits(self.traits().get(document as usize).copied().unwrap_or(0))
    }

    pub(super) fn stretches(&self) -> &Stretches {
        match self {
            Part::Segment(segment) => segment.stretches(),
            Part::Memory(memory) => memory.stretches(),
        }
    }

    pub(super) fn speakers(&self) -> &Speakers {
        match self {
            Part::Segment(segment) => segment.speakers(),
            Part::Memory(memory) => memory.speakers(),
        }
    }

    /// Looks a term up; the inner none: no document holds it.
    pub(super) fn list(&self, term: &str, missing: &mut Missing) -> Option<Option<List>> {
        match self {
            Part::Segment(segment) => segment.list(term, missing),
            Part::Memory(memory) => Some(memory.list(term)),
        }
    }

    pub(super) fn postings(&self, list: List, missing: &mut Missing) -> Option<Postings<'_>> {
        match self {
            Part::Segment(segment) => segment.postings(list, missing),
            Part::Memory(memory) => Some(memory.postings(list)),
        }
    }

    /// Notes the pages of a whole column, if they are not at hand.
    pub(super) fn need(&self, section: Section, missing: &mut Missing) {
        if let Part::Segment(segment) = self {
            segment.need(section, missing);
        }
    }

    pub(super) fn speaker(&self, document: u32, missing: &mut Missing) -> Option<Option<SpeakerId>> {
        match self {
            Part::Segment(segment) => segment.speaker(document, missing),
            Part::Memory(memory) => Some(memory.speaker(document)),
        }
    }

    pub(super) fn days(&self, document: u32, missing: &mut Missing) -> Option<Option<Span>> {
        match self {
            Part::Segment(segment) => segment.days(document, missing),
            Part::Memory(memory) => Some(memory.days(document)),
        }
    }

    pub(super) fn place(&self, document: u32, missing: &mut Missing) -> Option<Place> {
        match self {
            Part::Segment(segment) => segment.place(document, missing),
            Part::Memory(memory) => Some(memory.place(document)),
        }
    }

    pub(super) fn id(&self, document: u32, missing: &mut Missing) -> Option<String> {
        match self {
            Part::Segment(segment) => segment.id(document, missing),
            Part::Memory(memory) => Some(memory.id(document).to_owned()),
        }
    }
}
