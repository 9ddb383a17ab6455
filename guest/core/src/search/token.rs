//! Text into terms: what an index holds and a query looks up.
//!
//! Documents and queries pass through the same [`Tokenizer`], so that they meet. Knows characters and scripts; must not
//! know what words mean, documents, queries or the index.
//!
//! - Scripts with words between spaces: a word is a run of letters and digits with their marks. `'s` is dropped, any
//!   other apostrophe parts words (`l'avion` is `l`, `avion`).
//! - Scripts without: Han, kana and Hangul as one family, Thai, Lao, Khmer and Burmese as another. A character with its
//!   marks is a unit; a run of units gives every unit, and every pair of neighbours. A family border, and the border to
//!   the other scripts, ends a run.
//! - Marks that are optional in writing (Hebrew points, Arabic vowel signs and tatweel), characters that direct or join
//!   text without being text (soft hyphen, joiners, direction marks, variation selectors) and marks without a letter are
//!   left out. U+200B parts words: that is its meaning.

use super::fold::{fold, recompose};
use unicode_normalization::char::is_combining_mark;

/// Longest word in bytes of its folded form; the rest of a longer one does not count. Longer than any word of a language
/// and any hash in hex; without a limit one line of base64 would be a dictionary entry of its own size.
pub const WORD_BYTES: usize = 128;

/// Longest unit in bytes, with its marks.
const UNIT_BYTES: usize = 16;

/// What a text is made of, as far as search is concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Token<'a> {
    /// A word.
    Word(&'a str),
    /// Two neighbouring units.
    Pair(&'a str),
    /// A unit, without its marks; it comes before the pair it ends.
    Unit {
        /// Its character.
        character: char,
        /// Its run is no longer. A query that says so little means every text that contains it.
        alone: bool,
    },
}

/// A kind of character.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Class {
    Word,
    Unit(Family),
    Mark,
    Apostrophe,
    Skipped,
    Break,
}

/// Scripts whose words no space parts, and that are written together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Family {
    EastAsian,
    SoutheastAsian,
}

/// Cuts text into tokens; the buffers live on from text to text.
#[derive(Clone, Debug, Default)]
pub(super) struct Tokenizer {
    word: String,
    /// The word holds a mark, so that its folded form may compose.
    marked: bool,
    /// An apostrophe stands directly before the word, and a word before that.
    possessive: bool,
    /// The unit before the last, if any, and the last.
    units: String,
    /// Where the last unit begins in `units`.
    last: usize,
    /// The run of units that is open.
    family: Option<Family>,
}

impl Tokenizer {
    /// Gives the tokens of `text` to `sink`, in order.
    pub(super) fn tokenize(&mut self, text: &str, mut sink: impl FnMut(Token<'_>)) {
        fold(text, |c| self.push(c, &mut sink));
        self.end_run(&mut sink);
        self.end_word(&mut sink);
        self.possessive = false;
    }

    fn push(&mut self, c: char, sink: &mut impl FnMut(Token<'_>)) {
        match class(c) {
            Class::Word => {
                self.end_run(sink);
                if self.word.len() + c.len_utf8() <= WORD_BYTES {
                    self.word.push(c);
                }
            }
            Class::Unit(family) => {
                self.end_word(sink);
                self.possessive = false;
                self.push_unit(c, family, sink);
            }
            Class::Mark => {
                if self.family.is_some() {
                    if self.units.len() + c.len_utf8() - self.last <= UNIT_BYTES {
                        self.units.push(c);
                    }
                } else if !self.word.is_empty() && self.word.len() + c.len_utf8() <= WORD_BYTES {
                    self.word.push(c);
                    self.marked = true;
                }
            }
            Class::Apostrophe => {
                self.end_run(sink);
                self.possessive = self.end_word(sink);
            }
            Class::Skipped => {}
            Class::Break => {
                self.end_run(sink);
                self.end_word(sink);
                self.possessive = false;
            }
        }
    }

    /// True if there was a word.
    fn end_word(&mut self, sink: &mut impl FnMut(Token<'_>)) -> bool {
        if self.word.is_empty() {
            return false;
        }
        if self.marked {
            recompose(&mut self.word);
            self.marked = false;
        }
        let dropped = self.possessive && self.word == "s";
        if !dropped {
            sink(Token::Word(&self.word));
        }
        self.word.clear();
        !dropped
    }

    fn push_unit(&mut self, c: char, family: Family, sink: &mut impl FnMut(Token<'_>)) {
        if self.family != Some(family) {
            self.end_run(sink);
            self.family = Some(family);
        } else {
            self.end_unit(false, sink);
            self.last = self.units.len();
        }
        self.units.push(c);
    }

    /// The last unit is complete, and with it a pair if one stands before it.
    fn end_unit(&mut self, alone: bool, sink: &mut impl FnMut(Token<'_>)) {
        if let Some(character) = self.units.get(self.last..).and_then(|unit| unit.chars().next()) {
            sink(Token::Unit { character, alone });
        }
        if self.last > 0 {
            sink(Token::Pair(&self.units));
            self.units.drain(..self.last);
            self.last = 0;
        }
    }

    fn end_run(&mut self, sink: &mut impl FnMut(Token<'_>)) {
        if self.family.take().is_some() {
            self.end_unit(self.last == 0, sink);
            self.units.clear();
            self.last = 0;
        }
    }
}

/// Folded letters of Latin, Greek, Cyrillic, Hebrew, Arabic and Devanagari, so that most texts need no look-up in the
/// long tables behind [`char::is_alphanumeric`] and [`is_combining_mark`].
fn is_common_letter(c: char) -> bool {
    matches!(c, 'à'..='ö' | 'ø'..='ɏ' | 'ά'..='ώ' | 'а'..='ҁ' | 'א'..='ת' | 'ء'..='ؿ' | 'ف'..='ي' | 'ऄ'..='ह')
}

/// The same for Han, kana and Hangul.
fn is_common_unit(c: char) -> bool {
    matches!(c, 'ぁ'..='ゖ' | 'ァ'..='ヺ' | '一'..='\u{9fff}' | '가'..='힣')
}

/// Of a folded character.
fn class(c: char) -> Class {
    match c {
        'a'..='z' | '0'..='9' => Class::Word,
        '\'' | '’' | 'ʼ' => Class::Apostrophe,
        '\0'..='\x7f' => Class::Break,
        c if is_common_letter(c) => Class::Word,
        c if is_common_unit(c) => Class::Unit(Family::EastAsian),
        'ก'..='ะ' | 'า' | 'เ'..='ๆ' => Class::Unit(Family::SoutheastAsian),
        // Directs or joins text; U+FE0F and its like choose a glyph.
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{200c}'..='\u{200f}' | '\u{202a}'..='\u{202e}' => Class::Skipped,
        '\u{2060}'..='\u{206f}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{e0000}'..='\u{e0fff}' => Class::Skipped,
        // Hebrew points; Arabic vowel signs, tatweel and marks of recitation; enclosing marks.
        '\u{591}'..='\u{5bd}' | '\u{5bf}' | '\u{5c1}'..='\u{5c2}' | '\u{5c4}'..='\u{5c5}' | '\u{5c7}' => Class::Skipped,
        '\u{640}' | '\u{64b}'..='\u{65f}' | '\u{670}' | '\u{6d6}'..='\u{6dc}' | '\u{6df}'..='\u{6e4}' => Class::Skipped,
        '\u{6e7}'..='\u{6e8}' | '\u{6ea}'..='\u{6ed}' | '\u{20dd}'..='\u{20e0}' | '\u{20e2}'..='\u{20e4}' => {
            Class::Skipped
        }
        c if is_combining_mark(c) => Class::Mark,
        c if !c.is_alphanumeric() => Class::Break,
        // Han, kana, bopomofo and Hangul, each with its supplements; their radicals and half-width forms fold to these.
        '\u{3005}'..='\u{3007}' | '\u{3021}'..='\u{3029}' | '\u{3031}'..='\u{3035}' | '\u{3038}'..='\u{303c}' => {
            Class::Unit(Family::EastAsian)
        }
        '\u{3041}'..='\u{31ff}' | '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' => {
            Class::Unit(Family::EastAsian)
        }
        '\u{1100}'..='\u{11ff}' | '\u{a960}'..='\u{a97f}' | '\u{ac00}'..='\u{d7ff}' => Class::Unit(Family::EastAsian),
        '\u{1aff0}'..='\u{1b16f}' | '\u{20000}'..='\u{3ffff}' => Class::Unit(Family::EastAsian),
        // Thai and Lao; Burmese with its extensions; Khmer.
        '\u{e00}'..='\u{eff}' | '\u{1000}'..='\u{109f}' | '\u{a9e0}'..='\u{a9ff}' | '\u{aa60}'..='\u{aa7f}' => {
            Class::Unit(Family::SoutheastAsian)
        }
        '\u{1780}'..='\u{17ff}' => Class::Unit(Family::SoutheastAsian),
        _ => Class::Word,
    }
}

#[cfg(test)]
mod tests {
    use super::Token::{Pair, Unit, Word};
    use super::*;

    /// Tokens of a text: words as they are, pairs with `+`, a unit that is alone with `=`, others with `-`.
    fn tokens(text: &str) -> Vec<String> {
        let mut out = Vec::new();
        Tokenizer::default().tokenize(text, |token| {
            out.push(match token {
                Word(t) => t.to_owned(),
                Pair(t) => format!("+{t}"),
                Unit { character, alone: true } => format!("={character}"),
                Unit { character, alone: false } => format!("-{character}"),
            });
        });
        out
    }

    #[test]
    fn common_characters_are_letters() {
        let wrong = |c: &char| !c.is_alphanumeric() || is_combining_mark(*c);
        let common = ('\0'..=char::MAX).filter(|c| is_common_letter(*c) || is_common_unit(*c));
        assert_eq!(common.filter(wrong).collect::<String>(), "");
    }

    #[test]
    fn words_are_runs_of_letters_and_digits() {
        assert_eq!(tokens("Hello, World_2: 50k a-b U+1F600"), ["hello", "world", "2", "50k", "a", "b", "u", "1f600"]);
        assert_eq!(tokens("naïve Cafe\u{301} x²"), ["naïve", "café", "x2"]);
        assert_eq!(tokens("नमस्ते दुनिया"), ["नमस्ते", "दुनिया"]);
        assert_eq!(tokens("ΑΣ ας"), ["ασ", "ασ"]);
        assert!(tokens("… !? 😀 \u{301} \u{200d}").is_empty());
    }

    #[test]
    fn apostrophes_part_words_and_take_a_possessive_s_with_them() {
        assert_eq!(tokens("Ada's dog’s Jones' it's"), ["ada", "dog", "jones", "it"]);
        assert_eq!(tokens("don't l'avion O'Brien 's s"), ["don", "t", "l", "avion", "o", "brien", "s", "s"]);
        assert_eq!(tokens("ada'sister ada' s ada's's"), ["ada", "sister", "ada", "s", "ada", "s"]);
        assert_eq!(tokens("пʼять п'ять"), ["п", "ять", "п", "ять"]);
    }

    #[test]
    fn scripts_without_spaces_give_units_and_pairs() {
        assert_eq!(tokens("预算很大"), ["-预", "-算", "+预算", "-很", "+算很", "-大", "+很大"]);
        assert_eq!(tokens("猫"), ["=猫"]);
        assert_eq!(tokens("猫, 犬"), ["=猫", "=犬"]);
        assert_eq!(tokens("食べる"), ["-食", "-べ", "+食べ", "-る", "+べる"]);
        assert_eq!(tokens("ﾃﾞｰﾀ"), ["-デ", "-ー", "+デー", "-タ", "+ータ"]);
        assert_eq!(tokens("한국"), ["-한", "-국", "+한국"]);
        assert_eq!(tokens("𠀀𠀁"), ["-𠀀", "-𠀁", "+𠀀𠀁"]);
    }

    #[test]
    fn a_run_ends_at_the_border_of_its_scripts() {
        assert_eq!(tokens("2023年预算v2版"), ["2023", "-年", "-预", "+年预", "-算", "+预算", "v2", "=版"]);
        assert_eq!(tokens("猫กข犬"), ["=猫", "-ก", "-ข", "+กข", "=犬"]);
        assert_eq!(tokens("Ada's猫"), ["ada", "=猫"]);
        assert_eq!(tokens("猫's"), ["=猫", "s"]);
    }

    #[test]
    fn marks_stay_with_their_pair() {
        assert_eq!(tokens("ที่นี่"), ["-ท", "-น", "+ที่นี่"]);
        assert_eq!(tokens("ที่"), ["=ท"]);
        assert_eq!(tokens("か\u{3099}き"), tokens("がき"));
    }

    #[test]
    fn optional_marks_and_invisible_characters_do_not_count() {
        assert_eq!(tokens("مُحَمَّد مـحمد"), ["محمد", "محمد"]);
        assert_eq!(tokens("שָׁלוֹם"), tokens("שלום"));
        assert_eq!(tokens("bud\u{ad}get \u{202e}bud\u{200d}get\u{feff}"), ["budget", "budget"]);
        assert_eq!(tokens("one\u{200b}two"), ["one", "two"]);
        assert_eq!(tokens("1\u{fe0f}\u{20e3}"), ["1"]);
    }

    #[test]
    fn long_words_are_cut_and_the_next_is_whole() {
        let long = format!("{} next", "ab".repeat(500_000));
        assert_eq!(tokens(&long), ["ab".repeat(WORD_BYTES / 2), "next".to_owned()]);
        let marks = format!("a{} ก{}ข", "\u{302}\u{323}".repeat(500_000), "\u{e34}".repeat(1000));
        assert!(tokens(&marks).iter().all(|t| t.len() <= WORD_BYTES + 1), "{:?}", tokens(&marks));
        assert_eq!(tokens(&"é".repeat(1000)), tokens(&"e\u{301}".repeat(1000)));
    }

    #[test]
    fn nothing_is_carried_over_to_the_next_text() {
        let mut tokenizer = Tokenizer::default();
        let mut words = 0;
        tokenizer.tokenize("ada'", |_| words += 1);
        tokenizer.tokenize("s", |t| {
            assert_eq!(t, Word("s"));
            words += 1;
        });
        assert_eq!(words, 2);
    }
}
