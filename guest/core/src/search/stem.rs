//! Words to stems, so that `houses` and `house` are one term.
//!
//! Snowball's stemmers (snowballstem.org) for the languages of [`Language`] and for Russian; before them irregular forms of
//! English, and one spelling of what has two.
//! A word is stemmed only if it is letters of one script throughout: `50k`, `v2` and names in other scripts stay as they
//! are. Knows words and languages; must not know texts.

use super::words::{Language, Languages, american, regular};
use rust_stemmers::{Algorithm, Stemmer};
use std::borrow::Cow;

/// The stem of a folded word in a text of that language.
pub(super) fn stem(word: &str, language: Language) -> Cow<'_, str> {
    match script(word) {
        Script::Latin => stem_latin(word, language),
        Script::Cyrillic => Stemmer::create(Algorithm::Russian).stem(word),
        Script::Other => Cow::Borrowed(word),
    }
}

/// Every stem that a word has in some language, each once, with the languages it has it in. English first.
pub(super) fn stems(word: &str) -> Vec<(Languages, Box<str>)> {
    let mut found: Vec<(Languages, Box<str>)> = Vec::new();
    match script(word) {
        Script::Latin => {
            for language in Language::ALL {
                let stem = stem_latin(word, language);
                match found.iter_mut().find(|(_, known)| **known == *stem) {
                    Some((languages, _)) => *languages |= language.bit(),
                    None => found.push((language.bit(), stem.into())),
                }
            }
        }
        Script::Cyrillic | Script::Other => found.push((Languages::MAX, stem(word, Language::English).into())),
    }
    found
}

fn stem_latin(word: &str, language: Language) -> Cow<'_, str> {
    let algorithm = match language {
        Language::English => {
            return match regular(word) {
                // One of ours: its stem is as constant as it is.
                Some(regular) => Stemmer::create(Algorithm::English).stem(regular),
                None => match american(word) {
                    Some(american) => Cow::Owned(Stemmer::create(Algorithm::English).stem(&american).into_owned()),
                    None => Stemmer::create(Algorithm::English).stem(word),
                },
            };
        }
        Language::German => Algorithm::German,
        Language::French => Algorithm::French,
        Language::Spanish => Algorithm::Spanish,
        Language::Italian => Algorithm::Italian,
        Language::Portuguese => Algorithm::Portuguese,
        Language::Dutch => Algorithm::Dutch,
    };
    Stemmer::create(algorithm).stem(word)
}

enum Script {
    Latin,
    Cyrillic,
    Other,
}

fn script(word: &str) -> Script {
    if word.bytes().all(|byte| byte.is_ascii_lowercase()) {
        return Script::Latin;
    }
    let latin = |c: char| matches!(c, 'a'..='z' | 'ß'..='ö' | 'ø'..='ɏ');
    let cyrillic = |c: char| matches!(c, 'а'..='ё');
    if word.chars().all(latin) {
        Script::Latin
    } else if word.chars().all(cyrillic) {
        Script::Cyrillic
    } else {
        Script::Other
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_of_a_word_have_one_stem() {
        for (language, forms) in [
            (Language::English, &["house", "houses", "housing"][..]),
            (Language::English, &["go", "goes", "went", "gone", "going"]),
            (Language::English, &["child", "children"]),
            (Language::English, &["color", "colour", "colours", "coloured"]),
            (Language::English, &["organize", "organising", "organised", "organization", "organisation"]),
            (Language::English, &["travel", "traveled", "travelling"]),
            (Language::German, &["haus", "häuser", "hauses"]),
            (Language::French, &["maison", "maisons"]),
            (Language::Spanish, &["casa", "casas"]),
            (Language::Italian, &["gatto", "gatti"]),
            (Language::Portuguese, &["livro", "livros"]),
            (Language::Dutch, &["boek", "boeken"]),
            (Language::English, &["книга", "книги", "книгу"]),
        ] {
            let stems: Vec<_> = forms.iter().map(|form| stem(form, language)).collect();
            assert!(stems.iter().all(|stem| *stem == stems[0]), "{stems:?}");
        }
    }

    #[test]
    fn what_is_no_word_of_one_script_stays() {
        for word in ["50k", "v2s", "猫s", "домs", "naïveж", "नमस्ते"] {
            assert_eq!(stem(word, Language::German), word);
            assert_eq!(stems(word), [(Languages::MAX, word.into())]);
        }
    }

    #[test]
    fn stems_are_told_with_their_languages() {
        let found = stems("häuser");
        assert!(found.iter().any(|(languages, stem)| **stem == *"haus" && languages & Language::German.bit() != 0));
        let all = found.iter().fold(0, |all, (languages, _)| all | languages);
        assert_eq!(all, Language::ALL.iter().fold(0, |all, language| all | language.bit()));
        assert_eq!(found.iter().map(|(languages, _)| languages.count_ones()).sum::<u32>(), 7);
    }
}
