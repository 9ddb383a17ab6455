//! What one caller may see of an index, and what scores depend on there.
//!
//! A file that a caller may not see is as good as absent: it takes no part in how rare a word is, in mean lengths, in
//! anything. So a ranking says nothing about what is hidden, and is the one that a workspace without those files gives.
//!
//! Lengths are compared within a kind: claims are short, and are not ranked before records for that, nor do they make records
//! long. How rare a word is all documents decide together, so that the scores of one list are of one measure.
//!
//! A **session** is at most [`SESSION`] documents of a file, one after the other. Sessions are numbered over all parts.

use super::document::{Kind, Traits};
use super::files::{Files, RunAt};
use super::part::{Part, Run};
use super::score::{Corpus, Saturation, k, length};
use super::weights::Weights;
use super::words::Languages;
use core::ops::Range;

/// Most documents of a session.
pub(super) const SESSION: u32 = 64;

/// How many documents before and behind it count for a document.
pub(super) const REACH: u32 = 4;

/// Documents compared at a time with the worst that is kept. Each part begins with a block of its own.
pub(super) const BLOCK: usize = 64;

/// Of a document that does not count.
pub(super) const HIDDEN: u32 = u32::MAX;

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
    /// Of records, and of claims.
    saturations: [Saturation; KINDS],
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
    /// The session of each document, or [`HIDDEN`].
    pub(super) sessions: Vec<u32>,
    /// Documents that do not count, ascending.
    pub(super) hidden: Vec<Range<u32>>,
    /// Number of the file of each run that counts.
    pub(super) files: Vec<Option<u32>>,
    /// Some of its documents are claims.
    pub(super) has_claims: bool,
    /// Of each block, sessions among which those of its documents are.
    pub(super) spans: Vec<Range<u32>>,
}

/// How many kinds of documents are compared with their own kind's mean length.
const KINDS: usize = 2;

/// Which of them a document is of.
fn class(kind: Kind) -> usize {
    match kind {
        Kind::Source => 0,
        Kind::Topic | Kind::Experience => 1,
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
            let base = room;
            room += (part.documents() as usize).next_multiple_of(BLOCK);
            Piece {
                base,
                sessions: vec![HIDDEN; part.documents() as usize],
                hidden: Vec::new(),
                files: vec![None; part.runs().len()],
                has_claims: false,
                spans: Vec::new(),
            }
        };
        let mut pieces: Vec<Piece> = parts.iter().map(empty).collect();
        let mut corpora = [Corpus { k1: weights.k1, b: weights.b, documents: 0, length: 0 }; KINDS];
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
                let range = run.range();
                let columns = (
                    piece.sessions.get_mut(range.start as usize..range.end as usize),
                    part.lengths().get(range.start as usize..range.end as usize),
                    part.traits().get(range.start as usize..range.end as usize),
                );
                let (Some(sessions), Some(codes), Some(traits)) = columns else { continue };
                for (((session, code), traits), ordinal) in
                    sessions.iter_mut().zip(codes).zip(traits).zip(run.ordinal..)
                {
                    let class = class(Traits(*traits).kind());
                    piece.has_claims |= class > 0;
                    if ordinal.is_multiple_of(SESSION) || session_lengths.is_empty() {
                        session_lengths.push((0, class));
                    }
                    let length = u64::from(length(*code));
                    if let Some(corpus) = corpora.get_mut(class) {
                        corpus.documents = corpus.documents.saturating_add(1);
                        corpus.length += length;
                    }
                    // As many sessions as documents at most.
                    *session = session_lengths.len().saturating_sub(1) as u32;
                    if let Some((sum, _)) = session_lengths.last_mut() {
                        *sum += length;
                    }
                }
            }
        }
        for piece in &mut pieces {
            piece.hidden = hidden(&piece.sessions);
            piece.spans = piece.sessions.chunks(BLOCK).map(span).collect();
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

/// From the lowest to the highest session of these.
fn span(sessions: &[u32]) -> Range<u32> {
    let seen = || sessions.iter().copied().filter(|session| *session != HIDDEN);
    let lowest = seen().min().unwrap_or(0);
    lowest..seen().max().map_or(lowest, |highest| highest + 1)
}

fn hidden(sessions: &[u32]) -> Vec<Range<u32>> {
    let mut ranges: Vec<Range<u32>> = Vec::new();
    for (document, _) in (0..).zip(sessions).filter(|(_, session)| **session == HIDDEN) {
        match ranges.last_mut() {
            Some(last) if last.end == document => last.end += 1,
            _ => ranges.push(document..document + 1),
        }
    }
    ranges
}
