//! BM25 in integers, for documents and for the sessions they stand in.
//!
//! Robertson and Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond" (2009), without the constant factor
//! `k1 + 1`, which changes no order:
//!
//! ```text
//! score(d, q) = sum over terms t of q:  ln(1 + (N - df + 0.5) / (df + 0.5))  *  tf / (tf + K)
//! K           = k1 * (1 - b + b * length(d) / mean length)
//! ```
//!
//! The first factor is a term's *rarity*, the second its *saturation*; their product is an *impact*. A query's impacts are
//! added up in 16 bits: [`Scale`] cuts off as many low bits as it takes for no sum to overflow. The logarithm is `libm`'s;
//! all else is integer arithmetic. So a score is the same number on every machine.
//!
//! Knows numbers only; must not know terms, documents or where postings are kept.

/// Millionths of a point.
pub(super) const POINT: u32 = 1_000_000;

/// Most terms of one query that are scored.
pub(super) const SCORED_TERMS: usize = 128;

/// What one occurrence in what was said adds to a term's frequency, which is counted in halves: a record's label and its
/// date count half.
pub(super) const OCCURRENCE: u8 = 2;

/// Fraction bits of a saturation, and of `K`.
const BITS: u32 = 24;

/// What all scores of a kind of document depend on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Corpus {
    /// How much repetition counts, in thousandths.
    pub k1: u64,
    /// How much length counts, in thousandths, at most 1000.
    pub b: u64,
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

/// A part of a rarity, in thousandths; at least 1.
pub(super) fn share(rarity: u32, thousandths: u64) -> u32 {
    u32::try_from(u64::from(rarity).saturating_mul(thousandths) / 1000).unwrap_or(u32::MAX).max(1)
}

/// How many low bits of an impact are cut off.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Scale {
    shift: u32,
}

impl Scale {
    /// For impacts that add up to less than the sum of these rarities, `most` of them: each may be rounded up by one.
    pub(super) fn for_sum(rarities: u64, most: usize) -> Scale {
        let room = u64::from(u16::MAX).saturating_sub(most as u64);
        // More than 2^48 is no sum of rarities.
        let shift = (0..u32::BITS).find(|shift| rarities >> shift <= room).unwrap_or(u32::BITS);
        Scale { shift }
    }

    /// What a rarity and a saturation come to; at least 1, so that a document which matches never has a score of 0.
    #[inline]
    pub(super) fn impact(self, rarity: u32, saturation: u32) -> u32 {
        (self.rounded(rarity, saturation)).max(1)
    }

    /// The same, of something that may count for nothing.
    #[inline]
    pub(super) fn rounded(self, rarity: u32, saturation: u32) -> u32 {
        let cut = BITS + self.shift;
        // A factor below one of a `u32` is a `u32`.
        ((u64::from(rarity) * u64::from(saturation) + (1 << (cut - 1))) >> cut) as u32
    }

    /// Thousandths of an impact in millionths of a point.
    pub(super) fn points(self, thousandths: u64) -> u64 {
        let points = (u128::from(thousandths) << self.shift) / 1000;
        u64::try_from(points).unwrap_or(u64::MAX)
    }
}

/// Frequencies that the table has a row for, from 1 on; hardly any are greater.
const ROWS: u8 = 8;

/// The second factor for every frequency and length in use.
#[derive(Clone, Debug, Default)]
pub(super) struct Saturation {
    made_for: Option<Corpus>,
    /// `K` per length code.
    k: Vec<u64>,
    /// One row of 256 length codes for each frequency from 1 to [`ROWS`].
    rows: Vec<u32>,
}

impl Saturation {
    /// Makes the table ready for `corpus`. Costs nothing if it is.
    pub(super) fn prepare(&mut self, corpus: Corpus) {
        if self.made_for == Some(corpus) {
            return;
        }
        self.made_for = Some(corpus);
        self.rows.clear();
        self.k.clear();
        self.k.extend((0..=u8::MAX).map(|code| k(corpus, length(code).into())));
        for frequency in 1..=ROWS {
            let row = self.k.iter().map(|k| saturation(frequency.into(), *k));
            self.rows.extend(row);
        }
    }

    /// Whether there are any documents that it is for.
    pub(super) fn is_of_documents(&self) -> bool {
        self.made_for.is_some_and(|corpus| corpus.documents > 0)
    }

    /// Of a term that a document of that length code holds so often, in halves.
    #[inline]
    pub(super) fn get(&self, frequency: u8, length_code: u8) -> u32 {
        let at = (usize::from(frequency).wrapping_sub(1) << 8) | usize::from(length_code);
        match self.rows.get(at) {
            Some(saturation) => *saturation,
            None => saturation(frequency.into(), self.k.get(usize::from(length_code)).copied().unwrap_or(0)),
        }
    }
}

/// `tf / (tf + K)`, of a frequency in halves.
pub(super) fn saturation(frequency: u16, k: u64) -> u32 {
    // 16 bits of frequency and 47 of fraction fit 64, and `K` is cut at 62.
    let tf = u64::from(frequency) << (BITS - 1);
    ((tf << BITS) / (tf + k).max(1)) as u32
}

/// `K` of a document of this length, with [`BITS`] fraction bits.
pub(super) fn k(corpus: Corpus, length: u64) -> u64 {
    let Corpus { k1, b, documents, length: total } = corpus;
    let (k1, b, total) = (u128::from(k1), u128::from(b.min(1000)), u128::from(total.max(1)));
    let relative = (1000 - b) * total + b * u128::from(length) * u128::from(documents);
    let (above, below) = (k1 * relative, 1_000_000 * total);
    let k = match (u64::try_from(above), u64::try_from(below)) {
        // A processor without 128 bits is ten times quicker by two steps of 64: what is left by the first is below 2^48.
        (Ok(above), Ok(below)) if above < below << 14 && below < 1 << 48 => {
            let (whole, left) = (above / below, above % below);
            let (high, left) = ((left << 16) / below, (left << 16) % below);
            (whole << BITS) + (high << (BITS - 16)) + (left << (BITS - 16)) / below
        }
        _ => u64::try_from((above << BITS) / below).unwrap_or(u64::MAX),
    };
    // Beyond this the saturation is 0 whatever the frequency.
    k.min(1 << 62)
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
pub(super) fn length(code: u8) -> u32 {
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
        Corpus { k1: 500, b: 800, documents, length }
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
        table.prepare(corpus);
        for df in [1, 3, 50, 999, 1000] {
            for frequency in [1, 2, 4, 8, 9, 255_u8] {
                for len in [0_u32, 1, 12, 31] {
                    let idf = (1.0 + (1000.0 - f64::from(df) + 0.5) / (f64::from(df) + 0.5)).ln();
                    let tf = f64::from(frequency) / 2.0;
                    let k = 0.5 * (0.2 + 0.8 * f64::from(len) / 12.345);
                    let exact = idf * tf / (tf + k) * 1e6;
                    let saturation = table.get(frequency, length_code(len));
                    let found = f64::from(Scale::default().impact(rarity(1000, df), saturation));
                    assert!((exact - found).abs() < 2.0 + exact * 1e-4, "{df} {frequency} {len}: {exact} {found}");
                }
            }
        }
    }

    #[test]
    fn no_sum_leaves_its_sixteen_bits() {
        for (terms, documents) in [(1, 1), (8, 1_000_000), (SCORED_TERMS * 2, u32::MAX)] {
            let rarity = rarity(documents, 0);
            let scale = Scale::for_sum(u64::from(rarity) * terms as u64, terms);
            let most = u64::from(scale.impact(rarity, u32::MAX >> (32 - BITS))) * terms as u64;
            assert!(most <= u64::from(u16::MAX), "{terms} {documents}: {most}");
            // And hardly more is cut off than has to be.
            assert!(scale.shift == 0 || most * 4 > u64::from(u16::MAX), "{terms} {documents}: {most}");
        }
        assert_eq!(Scale::for_sum(u64::MAX, 1).impact(1, 0), 1);
        assert_eq!(Scale { shift: 3 }.points(1500), 12);
    }

    #[test]
    fn extremes_stay_in_range() {
        let mut table = Saturation::default();
        for corpus in [corpus(0, 0), corpus(u32::MAX, 1), corpus(1, u64::MAX), corpus(u32::MAX, u64::MAX)] {
            table.prepare(corpus);
            for code in [0, 31, 255] {
                assert!(table.get(255, code) <= 1 << BITS);
            }
            assert!(saturation(u16::MAX, k(corpus, u64::MAX)) <= 1 << BITS);
        }
        assert_eq!(share(POINT, 200), 200_000);
        assert_eq!((share(1, 1), share(u32::MAX, u64::MAX)), (1, u32::MAX));
    }

    #[test]
    fn k_is_the_same_in_steps() {
        let totals = [1, 999, 22_000_000, (1 << 48) / 1_000_000, (1 << 48) / 1_000_000 + 1, 1 << 40];
        for (total, documents) in
            totals.into_iter().flat_map(|total| [1, 20_000, 1_000_000].map(|count| (total, count)))
        {
            for length in [0, 1, 22, 1600, 1 << 20, 1 << 40] {
                let corpus = corpus(documents, total);
                let relative = 200 * u128::from(total) + 800 * u128::from(length) * u128::from(documents);
                let exact = ((500 * relative) << BITS) / (1_000_000 * u128::from(total));
                assert_eq!(u128::from(k(corpus, length)), exact.min(1 << 62), "{total} {documents} {length}");
            }
        }
    }

    #[test]
    fn a_table_for_another_corpus_is_made_anew() {
        let (mut one, mut other) = (Saturation::default(), Saturation::default());
        one.prepare(corpus(10, 1000));
        one.prepare(corpus(10, 50));
        other.prepare(corpus(10, 50));
        assert_eq!(one.get(2, 9), other.get(2, 9));
    }
}
