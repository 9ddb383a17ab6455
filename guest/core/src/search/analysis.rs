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
use super::words::{Language, Nature, is_function_character, nature};

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
                cues.function_words |= nature.function != 0;
                before = Before::of(word);
                stretch.push(word, nature, core::mem::take(&mut apart));
                if stretch.words.len() == STRETCH {
                    stretch.end(&mut language, &mut place, &mut sink);
                }
            }
            Token::Pair(pair) => {
                let nature = nature(pair);
                cues.time |= nature.time;
                cues.asks_when |= nature.asks_when;
                sink(Found::Pair(pair));
            }
            Token::Unit { character, alone } => {
                apart = true;
                if is_function_character(character) {
                    cues.function_words = true;
                } else {
                    cues.time |= is_time_character(character);
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

/// The word before, as far as it makes a question of the next: `what year`, `how long`.
#[derive(Clone, Copy)]
enum Before {
    Nothing,
    Which,
    How,
}

impl Before {
    fn of(word: &str) -> Before {
        match word {
            "what" | "which" => Before::Which,
            "how" => Before::How,
            _ => Before::Nothing,
        }
    }

    fn asks_with(self, word: &str) -> bool {
        match self {
            Before::Which => matches!(word, "time" | "day" | "week" | "month" | "year"),
            Before::How => word == "long",
            Before::Nothing => false,
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
    fn a_question_ends_with_its_mark() {
        for text in ["Did you?", "真的吗", "你呢？ ", "Well? [image: a boat]", "هل؟"] {
            assert!(is_question(text), "{text}");
        }
        for text in ["I did. Did you? Yes.", "", "[?]", "no ]", "[a] [b]"] {
            assert!(!is_question(text), "{text}");
        }
    }
}
