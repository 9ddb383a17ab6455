//! Postings: which documents hold a term, how often, and where first.

/// What stands for a place that is not known, or too far behind to be told.
pub(in crate::search) const NO_PLACE: u8 = u8::MAX;

/// A document that holds a term: its number in 16 bits, how often in 8 (halves), and in 8 the place of the first
/// occurrence among the words that say something. Of one term they ascend.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::search) struct Posting(pub(in crate::search) u32);

impl Posting {
    pub(in crate::search) fn new(document: u16, frequency: u8, place: u8) -> Posting {
        Posting(u32::from(document) << 16 | u32::from(frequency) << 8 | u32::from(place))
    }

    #[inline]
    pub(in crate::search) fn document(self) -> u32 {
        self.0 >> 16
    }

    #[inline]
    pub(in crate::search) fn frequency(self) -> u8 {
        (self.0 >> 8) as u8
    }

    #[inline]
    pub(in crate::search) fn place(self) -> u8 {
        self.0 as u8
    }

    /// The same of another document.
    pub(in crate::search) fn of(self, document: u32) -> Posting {
        Posting(document << 16 | (self.0 & 0xffff))
    }
}

/// The postings of a term, documents ascending.
#[derive(Clone, Debug)]
pub(in crate::search) enum Postings<'a> {
    Words(&'a [u32]),
    /// Little-endian, four bytes each, in pieces of whole postings.
    Bytes(Vec<&'a [u8]>),
}

impl Postings<'_> {
    /// How many.
    pub(in crate::search) fn len(&self) -> usize {
        match self {
            Postings::Words(words) => words.len(),
            Postings::Bytes(pieces) => pieces.iter().map(|piece| piece.len() / 4).sum(),
        }
    }

    #[inline]
    pub(in crate::search) fn for_each(&self, mut visit: impl FnMut(Posting)) {
        match self {
            Postings::Words(words) => words.iter().for_each(|word| visit(Posting(*word))),
            Postings::Bytes(pieces) => {
                for piece in pieces {
                    let (words, _) = piece.as_chunks::<4>();
                    words.iter().for_each(|word| visit(Posting(u32::from_le_bytes(*word))));
                }
            }
        }
    }

    /// How many of its documents come before that one.
    pub(in crate::search) fn before(&self, document: u32) -> u32 {
        let count = match self {
            Postings::Words(words) => words.partition_point(|word| Posting(*word).document() < document),
            Postings::Bytes(pieces) => {
                let mut count = 0;
                for piece in pieces {
                    let (words, _) = piece.as_chunks::<4>();
                    let here = words.partition_point(|word| Posting(u32::from_le_bytes(*word)).document() < document);
                    count += here;
                    if here < words.len() {
                        break;
                    }
                }
                count
            }
        };
        // At most one a document of a part.
        count as u32
    }

    /// That of a document, if it holds the term.
    pub(in crate::search) fn get(&self, document: u32) -> Option<Posting> {
        let before = self.before(document) as usize;
        let found = match self {
            Postings::Words(words) => words.get(before).copied(),
            Postings::Bytes(pieces) => {
                let mut skip = before;
                pieces.iter().find_map(|piece| {
                    let (words, _) = piece.as_chunks::<4>();
                    let found = words.get(skip).map(|word| u32::from_le_bytes(*word));
                    skip = skip.saturating_sub(words.len());
                    found
                })
            }
        };
        found.map(Posting).filter(|posting| posting.document() == document)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_posting_is_four_bytes() {
        let posting = Posting::new(65_535, 2, 254);
        assert_eq!((posting.document(), posting.frequency(), posting.place()), (65_535, 2, 254));
        assert_eq!(posting.of(7), Posting::new(7, 2, 254));
        assert!(Posting::new(1, 255, 255) < Posting::new(2, 0, 0));
    }

    proptest! {
        #[test]
        fn both_forms_say_the_same(
            documents in prop::collection::btree_set(0_u16..300, 0..80), cut in 1_usize..9, asked in 0_u32..310,
        ) {
            let words: Vec<u32> = documents.iter().map(|document| Posting::new(*document, 2, 3).0).collect();
            let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
            let in_words = Postings::Words(&words);
            let in_bytes = Postings::Bytes(bytes.chunks(cut * 4).collect());
            let all = |postings: &Postings<'_>| {
                let mut all = Vec::new();
                postings.for_each(|posting| all.push(posting.0));
                all
            };
            prop_assert_eq!(&all(&in_words), &words);
            prop_assert_eq!(&all(&in_bytes), &words);
            let before = documents.iter().filter(|document| u32::from(**document) < asked).count() as u32;
            prop_assert_eq!((in_words.before(asked), in_bytes.before(asked)), (before, before));
            let held = documents.iter().any(|document| u32::from(*document) == asked);
            prop_assert_eq!(in_words.get(asked).is_some(), held);
            prop_assert_eq!(in_words.get(asked), in_bytes.get(asked));
        }
    }
}
