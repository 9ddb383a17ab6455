//! What one caller may see of an index, and what scores depend on there.
//!
//! A file that a caller may not see is as good as absent: it takes no part in how rare a word is, in mean lengths, in
//! anything. So a ranking says nothing about what is hidden, and is the one that a workspace without those files gives.
//!
//! Lengths are compared within a kind: claims are short, and are not ranked before records for that, nor do they make records
//! long. How rare a word is all documents decide together, so that the scores of one list are of one measure.
//!
//! Sessions are numbered over all parts. A view is made of what parts know of their stretches ([`super::part`]), and so costs
//! time in proportion to files and sessions, beside one pass over a byte of each document.

use super::document::{Kind, Traits};
use super::files::{Files, RunAt};
use super::part::{CLASSES, Part, Run, SESSION, class};
use super::score::{Corpus, Saturation, k};
use super::weights::Weights;
use super::words::Languages;
use core::ops::Range;

/// How many documents before and behind it count for a document.
pub(super) const REACH: u32 = 4;

/// Documents compared at a time with the worst that is kept. Each part begins with a block of its own.
pub(super) const BLOCK: usize = 64;

/// The session of what does not count.
const HIDDEN: u32 = u32::MAX;

/// An index as one caller sees it, with the weights that count for them. Made by [`super::Index::view`], and of use as long
/// as the index does not change.
#[derive(Clone, Debug)]
pub struct View {
    pub(super) weights: Weights,
    /// Of the index.
    pub(super) revision: u64,
    pub(super) pieces: Vec<Piece>,
    /// Places for documents in all parts, blocks filled up.
    pub(super) room: usize,
    /// How many documents count.
    pub(super) documents: u32,
    /// By class.
    saturations: [Saturation; CLASSES],
    /// `K` of each session.
    pub(super) session_k: Vec<u64>,
    /// Languages of what can be seen.
    pub(super) languages: Languages,
    /// Where documents of a file follow each other that do not stand side by side.
    pub(super) joints: Vec<RunAt>,
}

/// A part in a view.
#[derive(Clone, Debug)]
pub(super) struct Piece {
    /// Place of its first document.
    pub(super) base: usize,
    /// How many documents the part has.
    pub(super) documents: usize,
    /// The session of each stretch of the part, or [`HIDDEN`].
    pub(super) sessions: Vec<u32>,
    /// Documents that do not count, ascending.
    pub(super) hidden: Vec<Range<u32>>,
    /// Number of the file of each run that counts.
    pub(super) files: Vec<Option<u32>>,
    /// Some of its documents are claims.
    pub(super) has_claims: bool,
    /// Of each block, what any of its documents is.
    pub(super) traits: Vec<Traits>,
}

impl Piece {
    /// Places of its documents.
    pub(super) fn places(&self) -> Range<usize> {
        self.base..self.base + self.documents
    }

    /// Its blocks.
    pub(super) fn blocks(&self) -> Range<usize> {
        self.base / BLOCK..self.places().end.div_ceil(BLOCK)
    }

    /// The session of a document; none of one that does not count.
    #[inline]
    pub(super) fn session(&self, part: &Part, document: u32) -> Option<u32> {
        let stretch = *part.stretches().of_documents().get(document as usize)?;
        self.sessions.get(usize::from(stretch)).copied().filter(|session| *session != HIDDEN)
    }
}

impl View {
    pub(super) fn new(
        parts: &[Part],
        files: &Files,
        revision: u64,
        weights: Weights,
        visible: impl Fn(&str) -> bool,
    ) -> View {
        let mut room = 0;
        let empty = |part: &Part| {
            let (base, documents) = (room, part.documents() as usize);
            room += documents.next_multiple_of(BLOCK);
            Piece {
                base,
                documents,
                sessions: vec![HIDDEN; part.stretches().all().len()],
                hidden: Vec::new(),
                files: vec![None; part.runs().len()],
                has_claims: false,
                traits: part.traits().chunks(BLOCK).map(any_of).collect(),
            }
        };
        let mut pieces: Vec<Piece> = parts.iter().map(empty).collect();
        let mut corpora = [Corpus { k1: weights.k1, b: weights.b, documents: 0, length: 0 }; CLASSES];
        // With the class of the document that each begins with.
        let mut session_lengths: Vec<(u64, usize)> = Vec::new();
        let (mut languages, mut joints) = (0, Vec::new());
        for (number, file) in (0..).zip(files.iter()).filter(|(_, file)| visible(&file.path)) {
            let mut before: Option<&RunAt> = None;
            for at in &file.runs {
                let Some((part, run)) = run_at(parts, *at) else { continue };
                let Some(piece) = pieces.get_mut(at.part as usize) else { continue };
                if let Some(place) = piece.files.get_mut(at.run as usize) {
                    *place = Some(number);
                }
                let side_by_side = before.and_then(|before| Some((before.part, run_at(parts, *before)?.1)));
                if side_by_side
                    .is_some_and(|(before_part, before)| before_part != at.part || before.range().end != run.first)
                {
                    joints.push(*at);
                }
                before = Some(at);
                languages |= run.languages;
                let numbers = part.stretches().of_run(at.run as usize);
                let stretches = part.stretches().all().get(numbers.clone()).unwrap_or_default();
                let sessions = piece.sessions.get_mut(numbers).unwrap_or_default();
                let mut ordinal = run.ordinal;
                for (stretch, session) in stretches.iter().zip(sessions) {
                    if ordinal.is_multiple_of(SESSION) || session_lengths.is_empty() {
                        session_lengths.push((0, stretch.class));
                    }
                    ordinal += stretch.documents();
                    for (corpus, tally) in corpora.iter_mut().zip(stretch.tallies) {
                        corpus.documents = corpus.documents.saturating_add(tally.documents);
                        corpus.length += u64::from(tally.length);
                    }
                    let [_, claims] = stretch.tallies;
                    piece.has_claims |= claims.documents > 0;
                    // As many sessions as documents at most.
                    *session = session_lengths.len().saturating_sub(1) as u32;
                    if let Some((sum, _)) = session_lengths.last_mut() {
                        *sum += stretch.length();
                    }
                }
            }
        }
        for (piece, part) in pieces.iter_mut().zip(parts) {
            piece.hidden = hidden(part, &piece.sessions);
        }
        let sessions = [0, 1].map(|class| {
            let lengths = session_lengths.iter().filter(|(_, of)| *of == class).map(|(length, _)| length);
            Corpus {
                k1: weights.session_k1,
                b: weights.session_b,
                documents: lengths.clone().count() as u32,
                length: lengths.sum(),
            }
        });
        let saturations = corpora.map(|corpus| {
            let mut saturation = Saturation::default();
            saturation.prepare(corpus);
            saturation
        });
        let session_k = |(length, class): (u64, usize)| sessions.get(class).map_or(0, |sessions| k(*sessions, length));
        View {
            weights,
            revision,
            pieces,
            room,
            documents: corpora.iter().map(|corpus| corpus.documents).fold(0, u32::saturating_add),
            saturations,
            session_k: session_lengths.into_iter().map(session_k).collect(),
            languages,
            joints,
        }
    }

    /// What occurrences in documents of a kind come to.
    #[inline]
    pub(super) fn saturation(&self, kind: Kind) -> &Saturation {
        let [records, claims] = &self.saturations;
        if class(kind) == 0 { records } else { claims }
    }

    /// Number of the file that a document stands in.
    pub(super) fn file(piece: &Piece, part: &Part, document: u32) -> Option<u32> {
        *piece.files.get(run_of(part, document)?)?
    }

    /// How many documents can be found.
    pub fn documents(&self) -> u32 {
        self.documents
    }
}

/// Number of the run that a document stands in.
pub(super) fn run_of(part: &Part, document: u32) -> Option<usize> {
    // Runs without documents begin where the next one does; the last that begins there has it.
    part.runs().partition_point(|run| run.first <= document).checked_sub(1)
}

fn run_at(parts: &[Part], at: RunAt) -> Option<(&Part, &Run)> {
    let part = parts.get(at.part as usize)?;
    Some((part, part.runs().get(at.run as usize)?))
}

/// Every trait that any document has.
fn any_of(traits: &[u8]) -> Traits {
    Traits(traits.iter().fold(0, |all, traits| all | traits))
}

/// Documents of stretches that do not count.
fn hidden(part: &Part, sessions: &[u32]) -> Vec<Range<u32>> {
    let mut ranges: Vec<Range<u32>> = Vec::new();
    let stretches = part.stretches().all().iter().zip(sessions);
    for (stretch, _) in stretches.filter(|(_, session)| **session == HIDDEN) {
        let end = stretch.first.saturating_add(stretch.documents());
        match ranges.last_mut() {
            Some(last) if last.end == stretch.first => last.end = end,
            _ => ranges.push(stretch.first..end),
        }
    }
    ranges
}
