//! BM25 in integers.
//!
//! Robertson and Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond" (2009), without the constant factor
//! `k1 + 1`, which changes no order:
//!
//! ```text
//! score(d, q) = sum over terms t of q:  ln(1 + (N - df + 0.5) / (df + 0.5))  *  tf / (tf + K)
//! K           = k1 * (1 - b + b * length(d) / mean length)
//! ```
//!
//! A term's first factor is at most ln(2^33), its second below one, so [`SCORED_TERMS`] terms fit a `u32` of millionths.
//! The logarithm is `libm`'s; all else is integer arithmetic. So a score is the same number on every machine.
//!
//! Knows numbers only; must not know terms, documents or where postings are kept.

/// Millionths of a point.
pub(super) const POINT: u32 = 1_000_000;

/// Most terms of one query that are scored: the sum of more could exceed a `u32`.
pub(super) const SCORED_TERMS: usize = 128;

/// Fraction bits of a saturation.
const SATURATION_BITS: u32 = 24;

/// Fraction bits of `K`.
const K_BITS: u32 = 24;

/// How much repetition and length count, in thousandths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Weights {
    k1: u16,
    b: u16,
}

impl Weights {
    /// Weights in thousandths: `k1` from 0 (a term counts once) to 10,000, `b` from 0 (length does not count) to 1,000.
    /// None outside.
    pub const fn new(k1: u16, b: u16) -> Option<Weights> {
        if k1 <= 10_000 && b <= 1_000 { Some(Weights { k1, b }) } else { None }
    }
}

impl Default for Weights {
    /// `k1` 0.6 and `b` 0.9: short messages seldom repeat a word that matters, and long ones hold many that do not.
    fn default() -> Self {
        Weights { k1: 600, b: 900 }
    }
}

/// What all scores of a corpus depend on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Corpus {
    /// How much repetition and length count.
    pub weights: Weights,
    /// Number of documents.
    pub documents: u32,
    /// Sum of their lengths, in tokens.
    pub length: u64,
}

/// How rare a term is that `df` of `documents` documents hold, in millionths of a point; at least 1.
pub(super) fn rarity(documents: u32, df: u32) -> u32 {
    let (n, df) = (f64::from(documents.max(df)), f64::from(df));
    let idf = libm::log(1.0 + (n - df + 0.5) / (df + 0.5));
    // At most 23 million: a positive number far inside both types' range.
    (libm::round(idf * f64::from(POINT)) as u32).max(1)
}

/// The second factor for every term frequency and length in use.
#[derive(Clone, Debug, Default)]
pub(super) struct Saturation {
    made_for: Option<Corpus>,
    /// `K` per length code.
    k: Vec<u64>,
    /// One row of 256 length codes for each term frequency from 1 on.
    rows: Vec<u32>,
}

impl Saturation {
    /// Makes the table ready for `corpus` and term frequencies up to `tf`. Costs nothing if it is.
    pub(super) fn prepare(&mut self, corpus: Corpus, tf: u8) {
        if self.made_for != Some(corpus) {
            self.made_for = Some(corpus);
            self.rows.clear();
            self.k.clear();
            self.k.extend((0..=u8::MAX).map(|code| k(corpus, length(code))));
        }
        for tf in (self.rows.len() / 256) as u64 + 1..=u64::from(tf) {
            let row = self.k.iter().map(|k| ((tf << (K_BITS + SATURATION_BITS)) / ((tf << K_BITS) + k)) as u32);
            self.rows.extend(row);
        }
    }

    /// What a term of this rarity adds to a document that holds it `tf` times, in millionths of a point; at least 1, so
    /// that a document which matches never has a score of 0. `tf` must have been prepared.
    #[inline]
    pub(super) fn impact(&self, rarity: u32, tf: u8, length_code: u8) -> u32 {
        let at = (usize::from(tf).saturating_sub(1) << 8) | usize::from(length_code);
        let saturation = self.rows.get(at).copied().unwrap_or(0);
        let half = 1_u64 << (SATURATION_BITS - 1);
        // A factor below one of a `u32` is a `u32`.
        (((u64::from(rarity) * u64::from(saturation) + half) >> SATURATION_BITS) as u32).max(1)
    }
}

/// `K` of a document of this length, with [`K_BITS`] fraction bits.
fn k(corpus: Corpus, length: u32) -> u64 {
    let Corpus { weights: Weights { k1, b }, documents, length: total } = corpus;
    let (k1, b, total) = (u128::from(k1), u128::from(b), u128::from(total.max(1)));
    let relative = (1000 - b) * total + b * u128::from(length) * u128::from(documents);
    let k = ((k1 * relative) << K_BITS) / (1_000_000 * total);
    // Beyond this the saturation is 0 whatever the term frequency.
    u64::try_from(k).unwrap_or(u64::MAX).min(1 << 62)
}

/// The byte that stands for a document length: exact up to 31, then sixteen steps for each doubling, up to half a
/// million.
pub(super) fn length_code(length: u32) -> u8 {
    if length < 32 {
        return length as u8;
    }
    let octave = length.ilog2() - 5;
    let step = (length >> (octave + 1)) & 15;
    u8::try_from(32 + 16 * octave + step).unwrap_or(u8::MAX)
}

/// The length a byte stands for: the middle of those that have it.
fn length(code: u8) -> u32 {
    let code = u32::from(code);
    if code < 32 {
        return code;
    }
    let (octave, step) = ((code - 32) / 16, (code - 32) % 16);
    (32 + 2 * step + 1) << octave
}

#[cfg(test)]
mod tests {
    use super::*;

    fn corpus(documents: u32, length: u64) -> Corpus {
        Corpus { weights: Weights::default(), documents, length }
    }

    #[test]
    fn length_codes_rise_with_length_and_are_close() {
        let mut last = 0;
        for length_ in (0..100_000).chain((17..32).map(|bit| 1 << bit)).chain([u32::MAX]) {
            let code = length_code(length_);
            assert!(code >= last, "{length_}");
            last = code;
            if length_ < 524_288 {
                assert!(length(code).abs_diff(length_) <= length_ / 32, "{length_} as {}", length(code));
            }
        }
        assert_eq!(last, u8::MAX);
    }

    #[test]
    fn impacts_follow_the_formula() {
        let corpus = corpus(1000, 12_345);
        let mut table = Saturation::default();
        table.prepare(corpus, 255);
        for df in [1, 3, 50, 999, 1000] {
            for tf in [1, 2, 7, 255] {
                for len in [0_u32, 1, 12, 31] {
                    let idf = (1.0 + (1000.0 - f64::from(df) + 0.5) / (f64::from(df) + 0.5)).ln();
                    let k = 0.6 * (0.1 + 0.9 * f64::from(len) / 12.345);
                    let exact = idf * f64::from(tf) / (f64::from(tf) + k) * 1e6;
                    let found = f64::from(table.impact(rarity(1000, df), tf as u8, length_code(len)));
                    assert!((exact - found).abs() < 2.0 + exact * 1e-4, "{df} {tf} {len}: {exact} {found}");
                }
            }
        }
    }

    #[test]
    fn the_largest_sum_fits() {
        let most = u64::from(rarity(u32::MAX, 0)) * SCORED_TERMS as u64;
        assert!(most < u64::from(u32::MAX), "{most}");
    }

    #[test]
    fn extremes_stay_in_range() {
        let mut table = Saturation::default();
        for corpus in [corpus(0, 0), corpus(u32::MAX, 1), corpus(1, u64::MAX), corpus(u32::MAX, u64::MAX)] {
            table.prepare(corpus, 255);
            for code in [0, 31, 255] {
                let impact = table.impact(rarity(corpus.documents, 1), 255, code);
                assert!((1..=rarity(corpus.documents, 1)).contains(&impact));
            }
        }
    }

    #[test]
    fn a_table_for_another_corpus_is_made_anew() {
        let (mut one, mut other) = (Saturation::default(), Saturation::default());
        one.prepare(corpus(10, 1000), 3);
        one.prepare(corpus(10, 50), 2);
        other.prepare(corpus(10, 50), 2);
        assert_eq!(one.impact(POINT, 2, 9), other.impact(POINT, 2, 9));
    }
}
