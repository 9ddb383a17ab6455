//! The index: documents in, rankings out.
//!
//! Per term a list of postings (document, term frequency), per document a byte for its length. Neither changes when
//! documents are added, so an index grown one document at a time is the index of all of them; how rare a term is and how
//! long the mean document are looked at only when a query is scored. Scoring goes term by term through its postings and
//! adds each impact to the document's sum; documents that no posting touched keep 0 and are no hits (decision D18).
//!
//! Filters choose among the hits. They do not change scores: a word is as rare as it is in the whole index.

use super::dictionary::{Dictionary, TermId};
use super::document::{DocId, Document, Documents, Kind, Stored};
use super::query::{DateFilter, Query, QueryTerm};
use super::rank::{Ranked, Ranking, Signal, Top};
use super::score::{Corpus, SCORED_TERMS, Saturation, Weights, length_code, rarity};
use super::token::{Token, Tokenizer};
use thiserror::Error;

/// Most documents of one index, unless [`Index::with_room_for`] says less.
pub const DOCUMENTS: u32 = 1 << 24;

/// No document can be added any more. The index is as it was, and answers as before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("the index is full with {documents} documents")]
pub struct IndexFull {
    /// How many it holds.
    pub documents: u32,
}

/// A full-text index over documents.
#[derive(Clone, Debug)]
pub struct Index {
    weights: Weights,
    room: u32,
    documents: Documents,
    /// Length code per document.
    lengths: Vec<u8>,
    /// Sum of the documents' lengths, in tokens.
    length: u64,
    dictionary: Dictionary,
    /// Per term.
    postings: Vec<Postings>,
    tokenizer: Tokenizer,
}

/// Where a term occurs: two columns, documents ascending.
#[derive(Clone, Debug, Default)]
struct Postings {
    documents: Vec<u32>,
    /// How often, at most 255.
    frequencies: Vec<u8>,
    /// The largest of them.
    most: u8,
}

impl Postings {
    /// Counts one occurrence more; `document` is the last one or a later one.
    fn count(&mut self, document: u32) {
        let frequency = match self.frequencies.last_mut() {
            Some(frequency) if self.documents.last() == Some(&document) => {
                *frequency = frequency.saturating_add(1);
                *frequency
            }
            _ => {
                if self.documents.is_empty() {
                    // Most terms occur once and never again: no room for more.
                    self.documents.reserve_exact(1);
                    self.frequencies.reserve_exact(1);
                }
                self.documents.push(document);
                self.frequencies.push(1);
                1
            }
        };
        self.most = self.most.max(frequency);
    }

    fn len(&self) -> u32 {
        // At most one posting a document.
        self.documents.len() as u32
    }

    /// How often a document holds the term.
    fn frequency(&self, document: DocId) -> u8 {
        let found = self.documents.binary_search(&document.0).ok();
        found.and_then(|at| self.frequencies.get(at)).copied().unwrap_or(0)
    }

    fn iter(&self) -> impl Iterator<Item = (u32, u8)> {
        self.documents.iter().copied().zip(self.frequencies.iter().copied())
    }
}

/// Memory that searches use again and again, so that one costs no allocation in proportion to the index. Holds nothing
/// between searches that a search depends on; one serves any number of indexes.
#[derive(Debug, Default)]
pub struct Scratch {
    /// Sum per document, all 0 between searches.
    sums: Vec<u32>,
    /// Frequency per document of terms taken together, all 0 between searches.
    frequencies: Vec<u8>,
    merged: Postings,
    saturation: Saturation,
}

/// A term of the query that occurs, with its postings.
struct Found<'a> {
    term: &'a QueryTerm,
    /// One list, or those of every term that begins with the unit.
    lists: Vec<&'a Postings>,
    /// In how many documents, those in several lists counted several times.
    documents: u32,
    /// Worked out when the term is scored.
    rarity: u32,
}

impl Found<'_> {
    fn frequency(&self, document: DocId) -> u8 {
        self.lists.iter().fold(0_u8, |sum, list| sum.saturating_add(list.frequency(document)))
    }
}

impl Index {
    /// An index without documents.
    pub fn new(weights: Weights) -> Index {
        Index::with_room_for(weights, DOCUMENTS)
    }

    /// An index that takes at most so many documents.
    pub fn with_room_for(weights: Weights, documents: u32) -> Index {
        Index {
            weights,
            room: documents.min(DOCUMENTS),
            documents: Documents::default(),
            lengths: Vec::new(),
            length: 0,
            dictionary: Dictionary::default(),
            postings: Vec::new(),
            tokenizer: Tokenizer::default(),
        }
    }

    /// How many documents there are.
    pub fn len(&self) -> u32 {
        // At most `room`.
        self.documents.len() as u32
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// What is kept of a document; none for a number of another index.
    pub fn document(&self, document: DocId) -> Option<Stored<'_>> {
        self.documents.get(document)
    }

    /// Adds a document and gives it the next number. Costs time in proportion to its text, and memory for its distinct
    /// terms only.
    pub fn add(&mut self, document: &Document<'_>) -> Result<DocId, IndexFull> {
        let number = self.len();
        if number >= self.room {
            return Err(IndexFull { documents: number });
        }
        let mut length = 0_u32;
        for text in [document.label, document.text] {
            let (dictionary, postings) = (&mut self.dictionary, &mut self.postings);
            self.tokenizer.tokenize(text, |token| {
                // The unit that ends a run is in a pair already: it makes the run no longer.
                length = length.saturating_add(u32::from(!matches!(token, Token::Last(_))));
                let TermId(term) = dictionary.intern(token.text());
                if postings.len() <= term as usize {
                    postings.push(Postings::default());
                }
                if let Some(postings) = postings.get_mut(term as usize) {
                    postings.count(number);
                }
            });
        }
        self.lengths.push(length_code(length));
        self.length += u64::from(length);
        self.documents.add(document);
        Ok(DocId(number))
    }

    /// The best documents for a query: those that hold any of its terms and pass its filters, by score (highest first),
    /// then day (earliest first, none last), then id.
    pub fn search(&self, query: &Query, scratch: &mut Scratch) -> Ranking {
        let mut found = self.look_up(query);
        let left_out = query.terms_left_out || found.len() > SCORED_TERMS;
        if found.len() > SCORED_TERMS {
            found.sort_by_key(|found| found.documents);
            found.truncate(SCORED_TERMS);
        }
        let corpus = Corpus { weights: self.weights, documents: self.len(), length: self.length };
        scratch.sums.resize(self.documents.len(), 0);
        scratch.frequencies.resize(self.documents.len(), 0);
        for found in &mut found {
            let list = match found.lists.as_slice() {
                [list] => *list,
                lists => {
                    merge(lists, &mut scratch.frequencies, &mut scratch.merged);
                    &scratch.merged
                }
            };
            scratch.saturation.prepare(corpus, list.most);
            found.rarity = rarity(self.len(), list.len());
            for (document, frequency) in list.iter() {
                let sum = scratch.sums.get_mut(document as usize);
                if let (Some(sum), Some(length)) = (sum, self.lengths.get(document as usize)) {
                    *sum += scratch.saturation.impact(found.rarity, frequency, *length);
                }
            }
        }
        let filter = Filter::new(&self.documents, query);
        let named = Named::new(&self.documents, query);
        let mut top = Top::new(&self.documents, query.top_k);
        top.collect(
            &scratch.sums,
            |best| named.most(best),
            |document, sum| filter.passes(document).then(|| named.score(document, sum)),
        );
        scratch.sums.clear();
        let (mut hits, truncated) = top.finish();
        if query.explain {
            for hit in &mut hits {
                hit.signals = self.explain(hit, &found, &scratch.saturation);
            }
        }
        Ranking { hits, truncated, terms_left_out: left_out }
    }

    /// The terms of a query that occur.
    fn look_up<'a>(&'a self, query: &'a Query) -> Vec<Found<'a>> {
        let list = |TermId(term): TermId| self.postings.get(term as usize);
        let found = query.terms.iter().map(|term| {
            let lists: Vec<&Postings> = match term {
                QueryTerm::Exact(text) => self.dictionary.get(text).and_then(list).into_iter().collect(),
                QueryTerm::Containing(unit) => self.dictionary.starting_with(unit).filter_map(list).collect(),
            };
            let documents = lists.iter().fold(0_u32, |sum, list| sum.saturating_add(list.len()));
            Found { term, lists, documents, rarity: 0 }
        });
        found.filter(|found| !found.lists.is_empty()).collect()
    }

    /// What a hit's score is the sum of: each term's impact, then what [`Named`] added.
    fn explain(&self, hit: &Ranked, found: &[Found<'_>], saturation: &Saturation) -> Vec<Signal> {
        let length = self.lengths.get(hit.document.get()).copied().unwrap_or(0);
        let terms = found.iter().filter_map(|found| match found.frequency(hit.document) {
            0 => None,
            frequency => Some((found.term.text(), saturation.impact(found.rarity, frequency, length))),
        });
        let mut rest = hit.score;
        let mut signals = Vec::new();
        for (term, points) in terms {
            rest = rest.saturating_sub(u64::from(points));
            signals.push(Signal { name: format!("term:{term}"), points: i64::from(points) });
        }
        if rest > 0 {
            signals.push(Signal { name: SPEAKER_SIGNAL.to_owned(), points: i64::try_from(rest).unwrap_or(i64::MAX) });
        }
        signals
    }
}

/// Takes several terms as one: a document's frequency is the sum of theirs. `frequencies` has a place for each document,
/// and is all 0 before and after.
fn merge(lists: &[&Postings], frequencies: &mut [u8], merged: &mut Postings) {
    for (document, frequency) in lists.iter().flat_map(|list| list.iter()) {
        if let Some(sum) = frequencies.get_mut(document as usize) {
            *sum = sum.saturating_add(frequency);
        }
    }
    merged.documents.clear();
    merged.frequencies.clear();
    merged.most = 0;
    for (document, sum) in (0..).zip(frequencies) {
        if *sum > 0 {
            merged.documents.push(document);
            merged.frequencies.push(*sum);
            merged.most = merged.most.max(*sum);
            *sum = 0;
        }
    }
}

/// Name of the signal that [`Named`] adds.
const SPEAKER_SIGNAL: &str = "speaker-named";

/// The speakers whom the query names in its text. What they said counts half as much again: who asks what Ada thinks of
/// something mostly means what Ada said.
struct Named<'a> {
    documents: &'a Documents,
    /// By number of the speaker; none if the query names nobody.
    speakers: Option<Vec<bool>>,
}

impl<'a> Named<'a> {
    fn new(documents: &'a Documents, query: &Query) -> Named<'a> {
        let speakers = documents.speakers.select_by_word(|word| query.names(word));
        Named { documents, speakers: speakers.contains(&true).then_some(speakers) }
    }

    /// The score of a document whose terms add up to `sum`.
    fn score(&self, document: DocId, sum: u32) -> u64 {
        let speaker = || self.documents.entry(document)?.speaker;
        let named = |speakers: &Vec<bool>| speakers.get(speaker()?.get()).copied();
        if self.speakers.as_ref().and_then(named).unwrap_or(false) { self.most(sum) } else { u64::from(sum) }
    }

    /// The score of such a document if it were by a speaker who is named: none has more.
    fn most(&self, sum: u32) -> u64 {
        let sum = u64::from(sum);
        if self.speakers.is_some() { sum + sum / 2 } else { sum }
    }
}

/// What a query asks of a document beside its words, worked out once for the files and speakers there are.
struct Filter<'a> {
    documents: &'a Documents,
    scope: Option<Kind>,
    dates: Option<DateFilter>,
    /// By number of the file.
    paths: Option<Vec<bool>>,
    /// By number of the speaker.
    speakers: Option<Vec<bool>>,
}

impl<'a> Filter<'a> {
    fn new(documents: &'a Documents, query: &Query) -> Filter<'a> {
        Filter {
            documents,
            scope: query.scope,
            dates: query.dates,
            paths: query.path.as_ref().map(|filter| documents.paths.select(|path| filter.matches(path))),
            speakers: query.speaker.as_ref().map(|filter| documents.speakers.select(|name| filter.matches(name))),
        }
    }

    fn passes(&self, document: DocId) -> bool {
        let Some(entry) = self.documents.entry(document) else { return false };
        let path = |paths: &Vec<bool>| paths.get(entry.path as usize).copied().unwrap_or(false);
        let spoken = |speakers: &Vec<bool>| {
            entry.kind == Kind::Source
                && entry.speaker.and_then(|speaker| speakers.get(speaker.get())).copied().unwrap_or(false)
        };
        self.scope.is_none_or(|kind| kind == entry.kind)
            && self.paths.as_ref().is_none_or(path)
            && self.speakers.as_ref().is_none_or(spoken)
            && self.dates.is_none_or(|dates| dates.matches(entry.days))
    }
}
