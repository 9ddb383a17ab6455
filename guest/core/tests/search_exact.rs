//! The integer ranking against BM25 in floating point, and that against another implementation.

mod search_support;

use bm25::{Embedder, EmbedderBuilder, Scorer, Tokenizer};
use proptest::prelude::*;
use recollex_core::search::{QueryRequest, Weights};
use search_support::{Record, index, search_with};

const K1: f64 = Weights::PLAIN.k1 as f64 / 1000.0;
const B: f64 = Weights::PLAIN.b as f64 / 1000.0;

/// Words between spaces: on the texts below the same as the index's terms.
#[derive(Default)]
struct Spaces;

impl Tokenizer for Spaces {
    fn tokenize(&self, text: &str) -> Vec<String> {
        text.split(' ').filter(|word| !word.is_empty()).map(str::to_owned).collect()
    }
}

/// BM25 of each document, straight from the formula.
fn exact(corpus: &[String], query: &[String]) -> Vec<f64> {
    let documents: Vec<Vec<String>> = corpus.iter().map(|text| Spaces.tokenize(text)).collect();
    let n = documents.len() as f64;
    let mean = documents.iter().map(Vec::len).sum::<usize>() as f64 / n;
    let score = |document: &Vec<String>| {
        let term = |term: &String| {
            let df = documents.iter().filter(|document| document.contains(term)).count() as f64;
            let tf = document.iter().filter(|word| *word == term).count() as f64;
            let idf = (1.0 + (n - df + 0.5) / (df + 0.5)).ln();
            idf * tf / (tf + K1 * (1.0 - B + B * document.len() as f64 / mean))
        };
        query.iter().map(term).sum()
    };
    documents.iter().map(score).collect()
}

/// BM25 of each document by the `bm25` crate, without its constant factor.
fn other(corpus: &[String], query: &[String]) -> Vec<f64> {
    let texts: Vec<&str> = corpus.iter().map(String::as_str).collect();
    let embedder: Embedder<u64, Spaces> =
        EmbedderBuilder::with_tokenizer_and_fit_to_corpus(Spaces, &texts).k1(K1 as f32).b(B as f32).build();
    let mut scorer = Scorer::<usize, u64>::new();
    for (document, text) in corpus.iter().enumerate() {
        scorer.upsert(&document, embedder.embed(text));
    }
    let query = embedder.embed(&query.join(" "));
    let score = |document| f64::from(scorer.score(&document, &query).unwrap()) / (K1 + 1.0);
    (0..corpus.len()).map(score).collect()
}

/// What the index makes of it, in points; 0 where the document is no hit.
fn integer(corpus: &[String], query: &[String]) -> Vec<f64> {
    let records: Vec<Record> =
        corpus.iter().enumerate().map(|(number, text)| Record::new(&number.to_string(), text)).collect();
    let request = QueryRequest { text: &query.join(" "), top_k: 1000, ..QueryRequest::default() };
    let ranking = search_with(&index(&records), &request, &Weights::PLAIN);
    let mut scores = vec![0.0; corpus.len()];
    for hit in ranking.hits {
        scores[hit.id.parse::<usize>().unwrap()] = hit.score as f64 / 1e6;
    }
    scores
}

/// Kendall's tau over the pairs that `a` tells apart by more than `apart`: 1 if `b` orders them all alike.
fn agreement(a: &[f64], b: &[f64], apart: f64) -> f64 {
    let (mut alike, mut pairs) = (0.0, 0.0);
    for i in 0..a.len() {
        for j in 0..i {
            if (a[i] - a[j]).abs() > apart {
                pairs += 1.0;
                alike += ((a[i] - a[j]) * (b[i] - b[j])).signum();
            }
        }
    }
    if pairs == 0.0 { 1.0 } else { alike / pairs }
}

fn best(scores: &[f64]) -> usize {
    (0..scores.len()).max_by(|a, b| scores[*a].total_cmp(&scores[*b])).unwrap()
}

/// A word; low numbers come often, as in language.
fn word() -> impl Strategy<Value = String> {
    (1_u32..40, 1_u32..40).prop_map(|(a, b)| format!("w{}", a * b / 40))
}

fn corpus(words: std::ops::Range<usize>) -> impl Strategy<Value = Vec<String>> {
    prop::collection::vec(prop::collection::vec(word(), words).prop_map(|words| words.join(" ")), 1..60)
}

fn query() -> impl Strategy<Value = Vec<String>> {
    prop::collection::btree_set(word(), 1..6).prop_map(|words| words.into_iter().collect())
}

/// What sixteen bits for a sum leave of a point: each of five terms is rounded to a four-thousandth.
const ROUNDING: f64 = 5.0 / 4000.0;

proptest! {
    #[test]
    fn the_formula_and_the_other_implementation_agree(corpus in corpus(1..60), query in query()) {
        for (exact, other) in exact(&corpus, &query).iter().zip(other(&corpus, &query)) {
            prop_assert!((exact - other).abs() < 1e-5 * (1.0 + exact), "{exact} {other}");
        }
    }

    /// Lengths up to 31 are kept exactly, so only rounding is left.
    #[test]
    fn short_texts_rank_as_the_formula_says(corpus in corpus(1..32), query in query()) {
        let (exact, integer) = (exact(&corpus, &query), integer(&corpus, &query));
        for (exact, integer) in exact.iter().zip(&integer) {
            prop_assert!((exact - integer).abs() < ROUNDING, "{exact} {integer}");
            prop_assert_eq!(*exact > 0.0, *integer > 0.0);
        }
        prop_assert_eq!(agreement(&exact, &integer, 2.0 * ROUNDING), 1.0);
        let best = (exact[best(&exact)], exact[best(&integer)]);
        prop_assert!(best.0 - best.1 < 2.0 * ROUNDING, "{best:?}");
    }

    /// Longer ones are kept within a thirty-second: scores too, and the order of all but close ones.
    #[test]
    fn long_texts_rank_nearly_as_the_formula_says(corpus in corpus(1..400), query in query()) {
        let (exact, integer) = (exact(&corpus, &query), integer(&corpus, &query));
        for (exact, integer) in exact.iter().zip(&integer) {
            prop_assert!((exact - integer).abs() <= exact / 32.0 + ROUNDING, "{exact} {integer}");
            prop_assert_eq!(*exact > 0.0, *integer > 0.0);
        }
        let best = (exact[best(&exact)], exact[best(&integer)]);
        prop_assert!(best.1 >= best.0 * 15.0 / 16.0 - 2.0 * ROUNDING, "{best:?}");
        prop_assert_eq!(agreement(&exact, &integer, best.0 / 16.0 + 2.0 * ROUNDING), 1.0);
        // Of a handful, one close pair may be half of all pairs.
        if integer.iter().filter(|score| **score > 0.0).count() >= 20 {
            prop_assert!(agreement(&exact, &integer, ROUNDING) > 0.9);
        }
    }
}
