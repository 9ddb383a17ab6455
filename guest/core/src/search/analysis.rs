//! Text into what an index holds and a query looks for.
//!
//! Documents and queries pass through the same [`Analyzer`], so that they meet: tokens, the language they are in, which
//! of them say something, and what the text says about time. What becomes of a word then differs: a document has its
//! stem in the language it is written in, a query its stems in every language.
//!
//! A text may change its language. It is looked at in stretches of at most [`STRETCH`] words; a stretch is in the language
//! most of whose function words it has, and in English unless at least two words say otherwise. A stretch without any is
//! in the language of the one before.

use super::token::{Token, Tokenizer};
use super::words::{
    Language, Nature, POLITE, STANDING, STANDING_FIRST, STANDING_UNSPACED, is_function_character, is_measure,
    is_number_character, is_telling, is_told, nature,
};

/// Most words whose language is found out together.
const STRETCH: usize = 256;

/// A part of a text that can be looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Found<'a> {
    /// A word, folded.
    Word {
        /// It.
        word: &'a str,
        /// Words before it that say something; one more for each stretch of another kind of script between them. So two
        /// words stand side by side exactly where this differs by one.
        place: u32,
        /// Of the stretch it stands in.
        language: Language,
    },
    /// Two neighbours in a script without spaces.
    Pair(&'a str),
    /// A character of such a script.
    Unit {
        /// It.
        character: char,
        /// It has no neighbour.
        alone: bool,
    },
}

/// Finds the words of texts; the buffers live on from text to text.
#[derive(Clone, Debug, Default)]
pub(super) struct Analyzer {
    tokenizer: Tokenizer,
    stretch: Stretch,
}

/// What a text says beside its words.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Cues {
    /// It says when something was or will be.
    pub time: bool,
    /// It asks when.
    pub asks_when: bool,
    /// It has a number.
    pub number: bool,
    /// It asks how many or how much.
    pub asks_number: bool,
    /// It asks for all that was said, or for what the one who is asked said: `summarise`, `what did you recommend`.
    pub asks_all: bool,
    /// It has a word of those that say how something is to be from then on ([`is_standing`]).
    pub standing: bool,
    /// It asks for what the one who asks did or said: `have I ever`, `I mentioned`.
    pub recalls: bool,
    /// It has function words.
    pub function_words: bool,
}

/// Words whose language is not known yet.
#[derive(Clone, Debug, Default)]
struct Stretch {
    text: String,
    words: Vec<StretchWord>,
}

#[derive(Clone, Copy, Debug)]
struct StretchWord {
    end: usize,
    nature: Nature,
    /// Something in another kind of script stands before it.
    apart: bool,
}

impl Analyzer {
    /// Gives what `text` is made of to `sink`: words in their order, units and pairs in theirs.
    pub(super) fn analyse(&mut self, text: &str, mut sink: impl FnMut(Found<'_>)) -> Cues {
        let Self { tokenizer, stretch } = self;
        let mut cues = Cues::default();
        let mut language = Language::English;
        let (mut place, mut apart) = (0, false);
        let mut before = Before::Nothing;
        tokenizer.tokenize(text, |token| match token {
            Token::Word(word) => {
                let nature = nature(word);
                cues.time |= nature.time;
                cues.asks_when |= nature.asks_when || before.asks_with(word);
                cues.number |= nature.number || word.bytes().next().is_some_and(|first| first.is_ascii_digit());
                cues.standing |= nature.standing;
                cues.asks_number |= nature.asks_number || matches!(before, Before::How) && is_measure(word);
                cues.asks_all |= nature.asks_summary || before.told_with(word);
                cues.function_words |= nature.function != 0;
                cues.recalls |= before.recalls_with(word);
                before = before.then(word);
                stretch.push(word, nature, core::mem::take(&mut apart));
                if stretch.words.len() == STRETCH {
                    stretch.end(&mut language, &mut place, &mut sink);
                }
            }
            Token::Pair(pair) => {
                let nature = nature(pair);
                cues.time |= nature.time;
                cues.asks_when |= nature.asks_when;
                cues.asks_number |= nature.asks_number;
                cues.asks_all |= nature.asks_summary;
                sink(Found::Pair(pair));
            }
            Token::Unit { character, alone } => {
                apart = true;
                if is_function_character(character) {
                    cues.function_words = true;
                } else {
                    cues.time |= is_time_character(character);
                    cues.number |= is_number_character(character);
                    sink(Found::Unit { character, alone });
                }
            }
        });
        stretch.end(&mut language, &mut place, &mut sink);
        cues
    }
}

impl Stretch {
    fn push(&mut self, word: &str, nature: Nature, apart: bool) {
        self.text.push_str(word);
        self.words.push(StretchWord { end: self.text.len(), nature, apart });
    }

    /// Hands the words on that say something, and is empty.
    fn end(&mut self, language: &mut Language, place: &mut u32, sink: &mut impl FnMut(Found<'_>)) {
        *language = self.language(*language);
        let mut start = 0;
        for StretchWord { end, nature, apart } in self.words.drain(..) {
            *place = place.saturating_add(u32::from(apart));
            let word = self.text.get(start..end).unwrap_or_default();
            start = end;
            if nature.function & language.bit() == 0 {
                sink(Found::Word { word, place: *place, language: *language });
                *place = place.saturating_add(1);
            }
        }
        self.text.clear();
    }

    fn language(&self, before: Language) -> Language {
        let mut counts = [0_u32; Language::ALL.len()];
        for word in self.words.iter().filter(|word| word.nature.function != 0) {
            for (count, language) in counts.iter_mut().zip(Language::ALL) {
                *count += u32::from(word.nature.function & language.bit() != 0);
            }
        }
        let mut best = (Language::English, counts.first().copied().unwrap_or(0));
        if counts.iter().all(|count| *count == 0) {
            return before;
        }
        for (count, language) in counts.into_iter().zip(Language::ALL) {
            if count > best.1.max(1) {
                best = (language, count);
            }
        }
        best.0
    }
}

/// The word before, as far as it makes a question of the next: `what year`, `how long`, `did you say`.
#[derive(Clone, Copy)]
enum Before {
    Nothing,
    Which,
    How,
    /// `did`, `have`.
    Past,
    /// `you`; `past`: behind one of those.
    You {
        past: bool,
    },
    /// `I`, `we`.
    I,
}

impl Before {
    fn then(self, word: &str) -> Before {
        match (word, self) {
            ("what" | "which", _) => Before::Which,
            ("how" | "wie" | "hoe", _) => Before::How,
            ("did" | "have" | "had" | "habe" | "haben" | "hatte" | "hatten", _) => Before::Past,
            ("you", before) => Before::You { past: matches!(before, Before::Past) },
            ("i" | "we" | "ich" | "wir", _) => Before::I,
            ("already" | "earlier" | "previously", Before::You { .. } | Before::I) => self,
            _ => Before::Nothing,
        }
    }

    fn asks_with(self, word: &str) -> bool {
        match self {
            Before::Which => matches!(word, "time" | "day" | "week" | "month" | "year"),
            Before::How => matches!(word, "long" | "lange" | "lang"),
            Before::Nothing | Before::Past | Before::You { .. } | Before::I => false,
        }
    }

    fn told_with(self, word: &str) -> bool {
        match self {
            Before::You { past } => past && is_telling(word) || is_told(word),
            Before::Nothing | Before::Which | Before::How | Before::Past | Before::I => false,
        }
    }

    fn recalls_with(self, word: &str) -> bool {
        match self {
            Before::Past => matches!(word, "i" | "we" | "ich" | "wir"),
            Before::I => is_told(word),
            Before::Nothing | Before::Which | Before::How | Before::You { .. } => false,
        }
    }
}

/// Year and month, in Chinese, Japanese and Korean.
fn is_time_character(c: char) -> bool {
    matches!(c, '年' | '月' | '년' | '월')
}

/// Whether a text ends by asking something. What stands in brackets behind that (a picture's description, say) does not
/// count.
pub(super) fn is_question(text: &str) -> bool {
    let mut rest = text.trim_end();
    while let Some(inside) = rest.strip_suffix(']') {
        match inside.rfind('[') {
            Some(open) => rest = inside.get(..open).unwrap_or_default().trim_end(),
            None => break,
        }
    }
    let ends = |c: char| rest.ends_with(c);
    ends('?') || ends('？') || ends('؟') || ends('吗') || ends('嗎') || ends('呢')
}

/// Whether a text says how something is to be from then on; `cues` are those of the text: a sentence of it begins with `always` or
/// `never`, or it has `from now on`, `I prefer` or the like. Whoever says that wants it kept in mind when something else is
/// talked about.
pub(super) fn is_standing(text: &str, cues: Cues) -> bool {
    let sentences = || text.split(['.', '!', '?', ':', ';', '\n', '。', '！', '？', '；']);
    sentences().any(begins_standing)
        || cues.standing && sentences().any(has_standing)
        || !text.is_ascii() && STANDING_UNSPACED.iter().any(|words| text.contains(words))
}

fn words_of(sentence: &str) -> impl Iterator<Item = &str> {
    sentence.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty())
}

fn is_word(word: &str, lower: &str) -> bool {
    word.chars().flat_map(char::to_lowercase).eq(lower.chars())
}

fn begins_standing(sentence: &str) -> bool {
    let is_polite = |word: &&str| POLITE.iter().any(|polite| is_word(word, polite));
    let first = words_of(sentence).find(|word| !is_polite(word));
    first.is_some_and(|first| STANDING_FIRST.iter().any(|word| is_word(first, word)))
}

fn has_standing(sentence: &str) -> bool {
    let mut last: [&str; LONGEST_STANDING] = Default::default();
    words_of(sentence).any(|word| {
        last.rotate_left(1);
        if let Some(now) = last.last_mut() {
            *now = word;
        }
        let stands =
            |words: &&[&str]| last.iter().rev().zip(words.iter().rev()).all(|(word, must)| is_word(word, must));
        STANDING.iter().any(stands)
    })
}

/// Words of the longest of [`STANDING`].
const LONGEST_STANDING: usize = 4;

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> (Vec<(String, u32)>, Cues) {
        let mut out = Vec::new();
        let cues = Analyzer::default().analyse(text, |found| match found {
            Found::Word { word, place, .. } => out.push((word.to_owned(), place)),
            Found::Pair(pair) => out.push((format!("+{pair}"), 0)),
            Found::Unit { character, .. } => out.push((format!("-{character}"), 0)),
        });
        (out, cues)
    }

    fn language_of(text: &str) -> Language {
        let mut last = Language::English;
        Analyzer::default().analyse(text, |found| {
            if let Found::Word { language, .. } = found {
                last = language;
            }
        });
        last
    }

    fn places(text: &str) -> Vec<(String, u32)> {
        words(text).0.into_iter().filter(|(word, _)| !word.starts_with(['+', '-'])).collect()
    }

    #[test]
    fn function_words_take_no_place() {
        let placed =
            |words: &[(&str, u32)]| words.iter().map(|(word, place)| ((*word).to_owned(), *place)).collect::<Vec<_>>();
        assert_eq!(places("The budget of the launch"), placed(&[("budget", 0), ("launch", 1)]));
        assert_eq!(places("budget 预算 launch"), placed(&[("budget", 0), ("launch", 2)]));
        assert!(places("to be or not to be").is_empty());
    }

    #[test]
    fn characters_of_grammar_stand_in_pairs_only() {
        let found: Vec<String> = words("你的预算").0.into_iter().map(|(word, _)| word).collect();
        assert_eq!(found, ["+你的", "-预", "+的预", "-算", "+预算"]);
    }

    #[test]
    fn a_text_is_in_the_language_of_its_function_words() {
        for (text, language) in [
            ("The house is in the garden", Language::English),
            ("Das Haus ist nicht im Garten", Language::German),
            ("La maison est dans le jardin", Language::French),
            ("La casa está en el jardín", Language::Spanish),
            ("La casa è nel giardino della zia", Language::Italian),
            ("A casa não fica no jardim do meu tio", Language::Portuguese),
            ("Het huis staat niet in de tuin van mijn oom", Language::Dutch),
            ("house garden", Language::English),
            ("die in a car crash", Language::English),
            ("", Language::English),
        ] {
            assert_eq!(language_of(text), language, "{text}");
        }
    }

    #[test]
    fn a_long_text_may_change_its_language() {
        let text = format!("{} {}", "das ist der Garten ".repeat(64), "this is the garden of my uncle ".repeat(20));
        let mut seen = Vec::new();
        Analyzer::default().analyse(&text, |found| {
            if let Found::Word { language, .. } = found {
                seen.push(language);
            }
        });
        assert_eq!((seen.first(), seen.last()), (Some(&Language::German), Some(&Language::English)));
    }

    #[test]
    fn time_is_said_and_asked_for() {
        for text in ["last Sunday", "gestern", "在2023年", "昨天", "いつも明日"] {
            assert!(words(text).1.time, "{text}");
        }
        for text in ["When was it?", "what year is it", "how long did it take", "什么时候", "出生日期", "Wann?"]
        {
            assert!(words(text).1.asks_when, "{text}");
        }
        for text in ["what a budget", "how about it", "预算"] {
            let cues = words(text).1;
            assert!(!cues.time && !cues.asks_when, "{text}");
        }
    }

    #[test]
    fn numbers_are_said_and_asked_for() {
        for text in ["two dogs", "50k", "in 2023", "zwanzig", "十二"] {
            assert!(words(text).1.number, "{text}");
        }
        for text in ["one dog", "a few", "一个", "v2"] {
            assert!(!words(text).1.number, "{text}");
        }
        for text in ["How many dogs?", "wie viele Hunde", "combien", "有几个房间", "how old is he"] {
            assert!(words(text).1.asks_number, "{text}");
        }
        for text in ["how is he", "many dogs", "预算"] {
            assert!(!words(text).1.asks_number, "{text}");
        }
    }

    #[test]
    fn what_is_to_be_so_from_then_on() {
        assert!(STANDING.iter().all(|words| words.len() <= LONGEST_STANDING));
        assert!(STANDING.iter().all(|words| words.iter().any(|word| nature(word).standing)));
        let is_standing = |text: &str| is_standing(text, words(text).1);
        for text in [
            "Always use tabs.",
            "Fine. Please never write to main!",
            "Use metric units from now on, will you",
            "WHENEVER I ask for code, comment it",
            "Bitte immer auf Deutsch",
            "For that I'd rather have a table",
            "I prefer trains",
            "以后都用中文",
        ] {
            assert!(is_standing(text), "{text}");
        }
        for text in [
            "I always use tabs",
            "it was never on",
            "when I came",
            "she prefers trains",
            "now on, from",
            "",
            "?!",
            "明天见",
        ] {
            assert!(!is_standing(text), "{text}");
        }
    }

    #[test]
    fn all_that_was_said_is_asked_for() {
        for text in [
            "Summarize the launch",
            "what did you recommend?",
            "the plan you gave me",
            "you previously said",
            "Gib eine Zusammenfassung",
            "总结一下",
        ] {
            assert!(words(text).1.asks_all, "{text}");
        }
        for text in ["what would you recommend", "did I say", "can you list the order", "did Ada tell you", "预算"] {
            assert!(!words(text).1.asks_all, "{text}");
        }
    }

    #[test]
    fn what_was_done_is_recalled() {
        for text in ["Have I ever sailed?", "the dates I mentioned", "what did we say", "Was habe ich gesagt?"] {
            assert!(words(text).1.recalls, "{text}");
        }
        for text in ["How do I sail?", "I have a boat", "did you sail", "what you mentioned", ""] {
            assert!(!words(text).1.recalls, "{text}");
        }
    }

    #[test]
    fn a_question_ends_with_its_mark() {
        for text in ["Did you?", "真的吗", "你呢？ ", "Well? [image: a boat]", "هل؟"] {
            assert!(is_question(text), "{text}");
        }
        for text in ["I did. Did you? Yes.", "", "[?]", "no ]", "[a] [b]"] {
            assert!(!is_question(text), "{text}");
        }
    }
}
