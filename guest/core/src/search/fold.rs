//! Characters as search compares them.
//!
//! Two spellings that a reader takes for the same word give the same characters here: composed and decomposed
//! (NFC, NFD), full-width and half-width, ligatures and their letters (all by NFKC, Unicode Standard Annex 15), upper and
//! lower case. Knows nothing of words, documents or queries.
//!
//! Where case differs from plain lowercasing: `ß` is `ss`, final `ς` is `σ`, and the Turkish `İ` and `ı` are `i`, so that
//! a word in capitals is found whatever the language of the one who typed it. A lowercased character followed by a
//! combining mark may compose again; that is for [`recompose`], because only whoever assembles a word knows its marks.

use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::canonical_combining_class;

/// Most combining marks in a row that count; further ones are left out. Twice what the Stream-Safe Text Format of Unicode
/// Standard Annex 15 allows, and no language needs a tenth of it: ordering the marks of a longer row would need memory in
/// proportion to it.
const MARKS: u32 = 60;

/// Gives the folded characters of `text` to `sink`, in order. Takes time in proportion to `text`, and no memory that
/// depends on it.
pub(super) fn fold(text: &str, mut sink: impl FnMut(char)) {
    let mut rest = text;
    let mut chars = rest.chars();
    while let Some(first) = chars.next() {
        let after = chars.as_str();
        // `first` stands alone when what follows can neither compose with it nor be reordered before it.
        let alone = plain(first) && after.chars().next().is_none_or(plain);
        if alone {
            fold_case(first, &mut sink);
            rest = after;
        } else {
            let end = after.char_indices().find(|(_, c)| plain(*c)).map_or(after.len(), |(at, _)| at);
            let end = first.len_utf8() + end;
            let (segment, next) = rest.split_at_checked(end).unwrap_or((rest, ""));
            let mut marks = 0;
            let bounded = segment.chars().filter(|c| {
                marks = if canonical_combining_class(*c) == 0 { 0 } else { marks + 1 };
                marks <= MARKS
            });
            bounded.nfkc().for_each(|c| fold_case(c, &mut sink));
            rest = next;
        }
        chars = rest.chars();
    }
}

/// Composes what case folding left decomposed. Only a word that holds a combining mark can need it.
pub(super) fn recompose(word: &mut String) {
    *word = word.nfc().collect();
}

/// The folded form of a name, for comparing names: folded characters, white space trimmed and runs of it as one space,
/// square brackets as round ones (a label is written with round ones).
pub(super) fn fold_name(name: &str) -> String {
    let mut folded = String::with_capacity(name.len());
    fold(name, |c| match c {
        c if c.is_whitespace() => {
            if !folded.is_empty() && !folded.ends_with(' ') {
                folded.push(' ');
            }
        }
        '[' => folded.push('('),
        ']' => folded.push(')'),
        c => folded.push(c),
    });
    recompose(&mut folded);
    folded.truncate(folded.trim_end().len());
    folded
}

fn fold_case(c: char, sink: &mut impl FnMut(char)) {
    match c {
        '\0'..='\x7f' => sink(c.to_ascii_lowercase()),
        'ß' | 'ẞ' => {
            sink('s');
            sink('s');
        }
        // No script in these blocks has two cases, and the table behind `to_lowercase` is long.
        '\u{590}'..='\u{109f}' | '\u{2e80}'..='\u{a63f}' | '\u{ac00}'..='\u{d7ff}' => sink(c),
        'ς' => sink('σ'),
        'İ' | 'ı' => sink('i'),
        _ => c.to_lowercase().for_each(sink),
    }
}

/// Whether NFKC leaves `c` as it is, and `c` never joins or passes what stands before it: a place to cut the text into
/// pieces that can be normalised one by one. True of most letters of most texts, and false where in doubt.
fn plain(c: char) -> bool {
    matches!(
        c,
        '\0'..='\x7f'
            | 'À'..='ı'
            | 'Ĵ'..='ľ'
            | 'Ł'..='ň'
            | 'Ŋ'..='ž'
            | 'Έ'..='ώ'
            | 'Ѐ'..='ҁ'
            | 'א'..='ת'
            | 'ء'..='ي'
            | 'ऄ'..='ह'
            | 'ก'..='\u{e32}'
            | '\u{e34}'..='\u{e37}'
            | 'เ'..='\u{e47}'
            | '\u{e4c}'..='\u{e4e}'
            | '、'..='〄'
            | 'ぁ'..='ゖ'
            | 'ァ'..='ー'
            | '一'..='\u{9fff}'
            | '가'..='힣'
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use unicode_normalization::{IsNormalized, is_nfkc_quick};

    fn folded(text: &str) -> String {
        let mut out = String::new();
        fold(text, |c| out.push(c));
        recompose(&mut out);
        out
    }

    #[test]
    fn a_plain_character_is_stable_and_joins_nothing() {
        let wrong: Vec<char> = ('\0'..=char::MAX)
            .filter(|c| plain(*c))
            .filter(|c| canonical_combining_class(*c) != 0 || is_nfkc_quick(std::iter::once(*c)) != IsNormalized::Yes)
            .collect();
        assert!(wrong.is_empty(), "{wrong:?}");
    }

    #[test]
    fn blocks_without_case_have_none() {
        for c in ('\u{590}'..='\u{109f}').chain('\u{2e80}'..='\u{a63f}').chain('\u{ac00}'..='\u{d7ff}') {
            assert!(c.to_lowercase().eq([c]) && c.to_uppercase().eq([c]), "{c:?}");
        }
    }

    #[test]
    fn cutting_into_pieces_changes_nothing() {
        for text in
            ["Cafe\u{301} ＦＵＬＬ ｶﾞｷﾞ ﬁn", "한\u{1112}\u{1161}\u{11ab}글", "е\u{306}и\u{306}", "가\u{11a8}", "ก\u{e33}"]
        {
            let whole: String = text.nfkc().collect::<String>().to_lowercase().nfc().collect();
            assert_eq!(folded(text), whole, "{text}");
        }
    }

    #[test]
    fn spellings_of_the_same_are_alike() {
        for (a, b) in [
            ("Café", "CAFE\u{301}"),
            ("ｆｕｌｌ　ｗｉｄｔｈ", "FULL width"),
            ("ﬁne", "FINE"),
            ("Straße", "STRASSE"),
            ("ΟΔΟΣ", "οδος"),
            ("ΐ", "Ϊ\u{301}"),
            ("ǰ", "J\u{30c}"),
            ("İSTANBUL", "istanbul"),
            ("ISPARTA", "ısparta"),
            ("ｶﾞ", "ガ"),
            ("한글", "\u{1112}\u{1161}\u{11ab}\u{1100}\u{1173}\u{11af}"),
        ] {
            assert_eq!(folded(a), folded(b), "{a} {b}");
        }
        assert_ne!(folded("cafe"), folded("café"));
    }

    #[test]
    fn a_flood_of_marks_is_cut() {
        let flood = format!("a{}b", "\u{301}".repeat(1_000_000));
        assert_eq!(folded(&flood).chars().count(), MARKS as usize + 1);
    }

    #[test]
    fn names_compare_without_case_spacing_and_bracket_shape() {
        assert_eq!(fold_name("  Ada\u{a0}\n [7391] "), "ada (7391)");
        assert_eq!(fold_name(" \t"), "");
    }
}
