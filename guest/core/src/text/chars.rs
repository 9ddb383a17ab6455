//! Classes of characters.

use super::unicode14::{HIDDEN, UNASSIGNED};
use unicode_normalization::UnicodeNormalization as _;

/// White space as the format means it: Unicode's, and the separators FS, GS, RS and US.
pub fn is_whitespace(c: char) -> bool {
    c.is_whitespace() || matches!(c, '\u{1c}'..='\u{1f}')
}

/// What may be *written* in an id or a time: printable in Unicode 14. Programs with that version of the tables must be
/// able to read it back.
pub fn is_printable_writing(c: char) -> bool {
    match c {
        ' '..='~' => true,
        '\0'..='\u{a0}' => false,
        _ => !within(&HIDDEN, c) && !within(&UNASSIGNED, c),
    }
}

/// What is accepted when *reading*: also characters that Unicode 14 had not assigned, because a later version may have.
pub fn is_printable_reading(c: char) -> bool {
    match c {
        ' '..='~' => true,
        '\0'..='\u{a0}' => false,
        _ => !within(&HIDDEN, c),
    }
}

fn within(table: &[(u32, u32)], c: char) -> bool {
    let point = u32::from(c);
    let at = table.partition_point(|&(_, high)| high < point);
    table.get(at).is_some_and(|&(low, _)| low <= point)
}

/// Every run of white space becomes one space; none at the ends.
pub fn collapse_whitespace(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for word in text.split(is_whitespace).filter(|word| !word.is_empty()) {
        if !out.is_empty() {
            out.push(' ');
        }
        out.push_str(word);
    }
    out
}

/// What two names have in common that differ only in case or in how their characters are composed, or that some media
/// take for one: comparing these compares the names. Never to be shown or kept.
pub fn caseless(name: &str) -> String {
    // Upper case first: `ß` and `ſ` have their small forms only there. Twice composed, because case can undo it.
    let small = name.nfkc().flat_map(char::to_uppercase).flat_map(char::to_lowercase);
    small.nfkc().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whitespace_is_the_format_s() {
        let expected =
            "\t\n\u{b}\u{c}\r\u{1c}\u{1d}\u{1e}\u{1f} \u{85}\u{a0}\u{1680}\u{2028}\u{2029}\u{202f}\u{205f}\u{3000}";
        let found: Vec<char> =
            ('\0'..=char::MAX).filter(|&c| is_whitespace(c) && !('\u{2000}'..='\u{200a}').contains(&c)).collect();
        assert_eq!(found.into_iter().collect::<String>(), expected);
        assert!(('\u{2000}'..='\u{200a}').all(is_whitespace));
    }

    #[test]
    fn tables_are_sorted_and_apart() {
        for table in [&HIDDEN[..], &UNASSIGNED[..]] {
            assert!(table.iter().all(|(low, high)| low <= high));
            assert!(table.windows(2).all(|pair| pair[0].1 + 1 < pair[1].0));
        }
    }

    #[test]
    fn printable() {
        for c in "a~ é：你😀\u{301}".chars() {
            assert!(is_printable_writing(c) && is_printable_reading(c), "{c:?}");
        }
        for c in "\0\n\u{7f}\u{85}\u{a0}\u{ad}\u{200b}\u{2028}\u{202e}\u{3000}\u{e000}\u{feff}".chars() {
            assert!(!is_printable_writing(c) && !is_printable_reading(c), "{c:?}");
        }
        // Assigned after Unicode 14: U+1FAE8 SHAKING FACE (15.0), U+0897 ARABIC PEPET (16.0).
        for c in "\u{1fae8}\u{897}\u{378}\u{e0fff}".chars() {
            assert!(!is_printable_writing(c) && is_printable_reading(c), "{c:?}");
        }
    }

    /// How many code points are printable in Unicode 14: the same count as the tables' generator sees.
    #[test]
    fn printable_count() {
        assert_eq!(('\0'..=char::MAX).filter(|&c| is_printable_writing(c)).count(), PRINTABLE_IN_14);
    }

    const PRINTABLE_IN_14: usize = 144516;

    #[test]
    fn collapse() {
        assert_eq!(collapse_whitespace("  a \t\u{3000}b\u{1c}"), "a b");
        assert_eq!(collapse_whitespace(" \u{2028} "), "");
    }

    #[test]
    fn names_that_are_one_to_some_media() {
        for (one, other) in [
            ("README", "readme"),
            ("\u{e9}", "E\u{301}"),
            ("Stra\u{df}e", "STRASSE"),
            ("\u{3c2}", "\u{3a3}"),
            ("ａ", "A"),
        ] {
            assert_eq!(caseless(one), caseless(other), "{one} {other}");
        }
        assert_ne!(caseless("a"), caseless("\u{430}"), "letters of two scripts are two letters");
    }
}
