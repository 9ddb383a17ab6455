//! Speakers, each kept once, with what filters and queries compare.

use super::document::Speaker;
use super::fold::fold_name;
use super::token::{Token, Tokenizer};
use super::words::nature;
use std::collections::BTreeMap;

/// Most speakers of one part of an index.
pub(super) const SPEAKERS: usize = u16::MAX as usize;

/// Number of a speaker within a part; a speaker is the three names together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct SpeakerId(pub(super) u16);

/// The names of a speaker, folded for comparison.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Names {
    pub(super) id: String,
    pub(super) display: String,
    pub(super) label: String,
}

impl Names {
    pub(super) fn of(speaker: Speaker<'_>) -> Names {
        Names { id: fold_name(speaker.id), display: fold_name(speaker.display), label: fold_name(speaker.label) }
    }

    /// The words of the display name that a query may name them by. One character is too little to be taken for a name.
    fn words(&self, mut sink: impl FnMut(&str)) {
        Tokenizer::default().tokenize(&self.display, |token| match token {
            Token::Word(word) if nature(word).function == 0 => sink(word),
            Token::Pair(pair) => sink(pair),
            Token::Word(_) | Token::Unit { .. } => {}
        });
    }
}

/// The speakers of a part, by number.
#[derive(Clone, Debug, Default)]
pub(super) struct Speakers {
    names: Vec<Names>,
    numbers: BTreeMap<Names, SpeakerId>,
    /// Who goes by a word.
    words: BTreeMap<String, Vec<SpeakerId>>,
}

impl Speakers {
    /// The number of a speaker, a new one if there is none yet; none if there are too many.
    pub(super) fn intern(&mut self, names: Names) -> Option<SpeakerId> {
        if let Some(number) = self.numbers.get(&names) {
            return Some(*number);
        }
        let number = SpeakerId(u16::try_from(self.names.len()).ok().filter(|number| *number < u16::MAX)?);
        names.words(|word| {
            let known = self.words.entry(word.to_owned()).or_default();
            if known.last() != Some(&number) {
                known.push(number);
            }
        });
        self.numbers.insert(names.clone(), number);
        self.names.push(names);
        Some(number)
    }

    pub(super) fn len(&self) -> usize {
        self.names.len()
    }

    pub(super) fn get(&self, number: SpeakerId) -> Option<&Names> {
        self.names.get(usize::from(number.0))
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Names> {
        self.names.iter()
    }

    /// Whether there is room for one more.
    pub(super) fn has_room(&self) -> bool {
        self.names.len() < SPEAKERS
    }

    /// Marks who has a word in their display name among these.
    pub(super) fn mark_named<'w>(&self, words: impl Iterator<Item = &'w str>) -> Vec<bool> {
        let mut marked = Vec::new();
        for number in words.filter_map(|word| self.words.get(word)).flatten() {
            marked.resize(self.names.len(), false);
            if let Some(mark) = marked.get_mut(usize::from(number.0)) {
                *mark = true;
            }
        }
        marked
    }

    /// Marks who has a name, folded, that satisfies a test.
    pub(super) fn mark(&self, test: impl Fn(&str) -> bool) -> Vec<bool> {
        self.names.iter().map(|names| test(&names.id) || test(&names.display) || test(&names.label)).collect()
    }
}
