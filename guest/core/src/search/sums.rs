//! Adding up what a query's terms come to, for each document and each session.
//!
//! ```text
//! documents   part by part, so that the sums of one stay in a processor's cache: each term's impacts, by its postings
//! pairs       two terms side by side ([`super::pairs`])
//! sessions    term by term: how often each session holds it, and what that comes to
//! blocks      the greatest sum of each
//! ```
//!
//! A posting costs one look into a table of impacts. Memory is cleared only where the search before left something.
//!
//! Knows numbers of terms and of documents; must not know what a query asks for beside them.

use super::document::{Kind, Traits};
use super::index::Index;
use super::pairs::{Adjacent, Pairs};
use super::part::{List, Missing, Part, Postings};
use super::query::QueryTerm;
use super::score::{OCCURRENCE, Saturation, Scale, rarity, saturation, share};
use super::view::{BLOCK, Piece, View};
use core::ops::Range;

/// Memory that searches use again and again, so that one costs no allocation in proportion to the index. Holds nothing
/// between searches that a search depends on; one serves any number of indexes.
#[derive(Clone, Debug, Default)]
pub struct Scratch {
    /// Sum per document. All 0 but for those that are `used`.
    pub(super) sums: Vec<u16>,
    used: Vec<Range<usize>>,
    /// Sum per session.
    pub(super) sessions: Vec<u32>,
    /// Per session: how often it holds a term, in halves. All 0 between terms.
    held: Vec<u16>,
    touched: Vec<u32>,
    pairs: Pairs,
    /// Greatest sum of each block.
    pub(super) blocks: Vec<u16>,
    /// Greatest sum that counts for a block, by its own and the blocks around it.
    pub(super) around: Vec<u16>,
}

/// A term of the query that occurs.
pub(super) struct Found<'q> {
    pub(super) term: &'q QueryTerm,
    /// Its lists by part, one for each form, with the form's number.
    pub(super) lists: Vec<Vec<(usize, List)>>,
    /// How many documents hold it.
    pub(super) documents: u32,
    /// How many of its forms there are in documents that count, in whichever parts.
    pub(super) forms: usize,
    pub(super) rarity: u32,
    /// The term before it stands before it in the query and was found, too.
    pub(super) follows: bool,
}

/// What sums are made of.
pub(super) struct Sums<'q> {
    pub(super) found: Vec<Found<'q>>,
    pub(super) adjacent: Vec<Adjacent>,
    pub(super) scale: Scale,
    pub(super) left_out: bool,
}

/// Postings of a term in a part, one for each form.
type Forms<'p> = Vec<Postings<'p>>;

/// Adds up in `scratch`. None: pages are missing, and were noted.
pub(super) fn add_up(
    index: &Index,
    view: &View,
    sums: &mut Sums<'_>,
    scratch: &mut Scratch,
    missing: &mut Missing,
) -> Option<()> {
    // By part, then term.
    let mut postings: Vec<Vec<Forms<'_>>> = Vec::with_capacity(index.parts.len());
    for (number, part) in (0_u32..).zip(&index.parts) {
        missing.part = number;
        let of_term = |found: &Found<'_>| -> Option<Forms<'_>> {
            let lists = found.lists.get(number as usize).map(Vec::as_slice).unwrap_or_default();
            lists.iter().map(|(_, list)| part.postings(*list, missing)).collect()
        };
        postings.push(sums.found.iter().map(of_term).collect::<Option<_>>()?);
    }
    scratch.clear(view);
    scratch.add_documents(index, view, sums, &postings);
    scratch.add_pairs(index, view, sums, &postings);
    if view.weights.session > 0 {
        scratch.add_sessions(index, view, sums, &postings);
    }
    Some(())
}

impl Scratch {
    fn clear(&mut self, view: &View) {
        for range in self.used.drain(..) {
            if let Some(used) = self.sums.get_mut(range) {
                used.fill(0);
            }
        }
        self.sums.resize(view.room, 0);
        self.blocks.clear();
        self.blocks.resize(view.room / BLOCK, 0);
        self.sessions.clear();
        self.sessions.resize(view.session_k.len(), 0);
        self.held.resize(view.session_k.len(), 0);
    }

    fn add_documents(&mut self, index: &Index, view: &View, sums: &Sums<'_>, postings: &[Vec<Forms<'_>>]) {
        let impacts: Vec<[Impacts<'_>; 2]> = sums
            .found
            .iter()
            .map(|found| [Kind::Source, Kind::Topic].map(|kind| Impacts::new(found, sums.scale, view.saturation(kind))))
            .collect();
        for ((part, piece), of_terms) in index.parts.iter().zip(&view.pieces).zip(postings) {
            if of_terms.iter().all(Vec::is_empty) {
                continue;
            }
            let Some(here) = self.sums.get_mut(piece.places()) else { continue };
            self.used.push(piece.places());
            for (postings, [of_records, of_claims]) in of_terms.iter().zip(&impacts) {
                for postings in postings {
                    if piece.has_claims {
                        add_mixed(postings, part, here, of_records, of_claims);
                    } else {
                        add(postings, part.lengths(), here, of_records);
                    }
                }
            }
            // What does not count was added like the rest: that is quicker than to ask each time.
            for range in &piece.hidden {
                if let Some(hidden) = here.get_mut(range.start as usize..range.end as usize) {
                    hidden.fill(0);
                }
            }
            let blocks = self.blocks.get_mut(piece.blocks()).unwrap_or_default();
            let (whole, rest) = here.as_chunks::<BLOCK>();
            let greatest = whole.iter().map(greatest_of_block).chain([rest.iter().copied().max().unwrap_or(0)]);
            blocks.iter_mut().zip(greatest).for_each(|(block, greatest)| *block = greatest);
        }
    }

    fn add_pairs(&mut self, index: &Index, view: &View, sums: &mut Sums<'_>, postings: &[Vec<Forms<'_>>]) {
        if view.weights.adjacent == 0 {
            return;
        }
        let followers = sums.found.iter().enumerate().filter(|(_, found)| found.follows);
        for (second, first) in followers.filter_map(|(second, _)| Some((second, second.checked_sub(1)?))) {
            let mut pair = Adjacent { second, documents: Vec::new(), rarity: 0 };
            for (number, ((part, piece), of_terms)) in (0..).zip(index.parts.iter().zip(&view.pieces).zip(postings)) {
                let (Some(first), Some(second)) = (of_terms.get(first), of_terms.get(second)) else { continue };
                self.pairs.find(first, second, piece.documents, |document| {
                    if piece.session(part, document).is_some() {
                        pair.documents.push((number, document));
                    }
                });
            }
            let count = u32::try_from(pair.documents.len()).unwrap_or(u32::MAX);
            if count > 0 {
                pair.rarity = share(rarity(view.documents, count), view.weights.adjacent);
            }
            for (number, document) in &pair.documents {
                let (number, at) = (*number as usize, *document as usize);
                let (Some(part), Some(piece)) = (index.parts.get(number), view.pieces.get(number)) else { continue };
                let code = part.lengths().get(at).copied().unwrap_or(0);
                let saturation = view.saturation(part.traits_of(*document).kind()).get(OCCURRENCE, code);
                let place = piece.base + at;
                if let (Some(sum), Some(block)) = (self.sums.get_mut(place), self.blocks.get_mut(place / BLOCK)) {
                    *sum = sum.saturating_add(narrow(sums.scale.impact(pair.rarity, saturation)));
                    *block = (*block).max(*sum);
                }
            }
            sums.adjacent.push(pair);
        }
    }

    fn add_sessions(&mut self, index: &Index, view: &View, sums: &Sums<'_>, postings: &[Vec<Forms<'_>>]) {
        for (term, found) in sums.found.iter().enumerate() {
            let is_dense = found.documents as usize > self.held.len() / 4;
            for ((part, piece), of_terms) in index.parts.iter().zip(&view.pieces).zip(postings) {
                for postings in of_terms.get(term).into_iter().flatten() {
                    if is_dense {
                        hold(postings, part, piece, &mut self.held, |_| {});
                    } else {
                        hold(postings, part, piece, &mut self.held, |session| self.touched.push(session));
                    }
                }
            }
            let sessions = view.session_k.len() as u32;
            let weight = view.weights.of_session_term(found.term.says);
            let add = |rarity, held: &mut u16, sum: &mut u32, k: u64| {
                *sum = sum.saturating_add(sums.scale.rounded(rarity, saturation(core::mem::take(held), k)));
            };
            if is_dense {
                let held = self.held.iter().filter(|held| **held > 0).count() as u32;
                let rarity = share(rarity(sessions, held), weight);
                for ((held, sum), k) in self.held.iter_mut().zip(&mut self.sessions).zip(&view.session_k) {
                    if *held > 0 {
                        add(rarity, held, sum, *k);
                    }
                }
            } else {
                let rarity = share(rarity(sessions, self.touched.len() as u32), weight);
                for session in self.touched.drain(..).map(|session| session as usize) {
                    let held = self.held.get_mut(session).zip(self.sessions.get_mut(session));
                    if let Some(((held, sum), k)) = held.zip(view.session_k.get(session)) {
                        add(rarity, held, sum, *k);
                    }
                }
            }
        }
    }
}

/// Adds the impacts of records.
fn add(postings: &Postings<'_>, lengths: &[u8], sums: &mut [u16], impacts: &Impacts<'_>) {
    postings.for_each(|posting| {
        let document = posting.document() as usize;
        if let (Some(sum), Some(code)) = (sums.get_mut(document), lengths.get(document)) {
            *sum = sum.saturating_add(impacts.get(posting.frequency(), *code));
        }
    });
}

/// The same where there are claims among the documents.
fn add_mixed(postings: &Postings<'_>, part: &Part, sums: &mut [u16], records: &Impacts<'_>, claims: &Impacts<'_>) {
    let (lengths, traits) = (part.lengths(), part.traits());
    postings.for_each(|posting| {
        let document = posting.document() as usize;
        let found = (sums.get_mut(document), lengths.get(document), traits.get(document));
        if let (Some(sum), Some(code), Some(traits)) = found {
            let impacts = if Traits(*traits).kind() == Kind::Source { records } else { claims };
            *sum = sum.saturating_add(impacts.get(posting.frequency(), *code));
        }
    });
}

/// Counts for sessions how often they hold a term, and names those that did not before.
fn hold(postings: &Postings<'_>, part: &Part, piece: &Piece, held: &mut [u16], mut meet: impl FnMut(u32)) {
    let (stretches, sessions) = (part.stretches().of_documents(), piece.sessions.as_slice());
    postings.for_each(|posting| {
        let stretch = stretches.get(posting.document() as usize);
        let Some(session) = stretch.and_then(|stretch| sessions.get(usize::from(*stretch))) else { return };
        // What does not count has a session that there is not.
        if let Some(held) = held.get_mut(*session as usize) {
            if *held == 0 && posting.frequency() > 0 {
                meet(*session);
            }
            *held = held.saturating_add(posting.frequency().into());
        }
    });
}

fn greatest_of_block(block: &[u16; BLOCK]) -> u16 {
    block.iter().copied().fold(0, u16::max)
}

fn narrow(impact: u32) -> u16 {
    u16::try_from(impact).unwrap_or(u16::MAX)
}

/// The impacts of a term by frequency and length code.
struct Impacts<'v> {
    saturation: &'v Saturation,
    scale: Scale,
    rarity: u32,
    /// A row of 256 length codes for each frequency from 1 on; none for a term that is not worth it.
    rows: Vec<u16>,
}

/// Frequencies that have a row, from 1 on: up to two occurrences.
const ROWS: u8 = 4;

/// What a term has to occur in for the rows to be worth it.
const WORTH: u32 = 1024;

impl<'v> Impacts<'v> {
    fn new(found: &Found<'_>, scale: Scale, saturation: &'v Saturation) -> Impacts<'v> {
        let mut impacts = Impacts { saturation, scale, rarity: found.rarity, rows: Vec::new() };
        if found.documents >= WORTH && saturation.is_of_documents() {
            let rows = (1..=ROWS).flat_map(|frequency| (0..=u8::MAX).map(move |code| (frequency, code)));
            impacts.rows = rows.map(|(frequency, code)| impacts.make(frequency, code)).collect();
        }
        impacts
    }

    #[inline]
    fn get(&self, frequency: u8, code: u8) -> u16 {
        let at = (usize::from(frequency).wrapping_sub(1) << 8) | usize::from(code);
        match self.rows.get(at) {
            Some(impact) => *impact,
            None => self.make(frequency, code),
        }
    }

    fn make(&self, frequency: u8, code: u8) -> u16 {
        narrow(self.scale.impact(self.rarity, self.saturation.get(frequency, code)))
    }
}
