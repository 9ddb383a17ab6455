//! What can be told of two paragraphs without understanding them: whether they are alike, and which numbers are in them.

use crate::text::{Links, caseless};
use crate::topic::linked_block;
use std::borrow::Cow;
use std::collections::BTreeSet;

/// How much of what either has both must have to be alike, in hundredths.
const ALIKE: usize = 60;

/// Every three letters or digits that follow each other, whatever stands between them: what is compared, in any script.
pub(super) fn grams(text: &str) -> BTreeSet<[char; 3]> {
    let letters: Vec<char> = caseless(text).chars().filter(|c| c.is_alphanumeric()).collect();
    letters.windows(3).filter_map(|window| <[char; 3]>::try_from(window).ok()).collect()
}

/// Whether two texts, by their [`grams`], are alike enough to be looked at.
pub(super) fn are_alike(a: &BTreeSet<[char; 3]>, b: &BTreeSet<[char; 3]>) -> bool {
    let both = a.intersection(b).count();
    let either = a.len() + b.len() - both;
    both > 0 && both * 100 >= either * ALIKE
}

/// What is written with digits: amounts, days, times, names like `B2`. What a paragraph must not lose when it is put otherwise.
/// Where a link to a block leads is no part of that: ids have digits, and a link that leads nowhere is to be put right.
pub(super) fn numbers(text: &str) -> BTreeSet<String> {
    let text = without_targets(text);
    let words = text.split(|c: char| !(c.is_alphanumeric() || matches!(c, '.' | ',' | ':' | '-' | '/')));
    let parts = words.flat_map(|word| word.split(['-', '/', ':']));
    let digits = |part: &&str| part.chars().any(char::is_numeric);
    parts.filter(digits).map(|part| caseless(part.trim_matches(['.', ',']))).collect()
}

/// A text without the targets of its links to blocks.
fn without_targets(text: &str) -> Cow<'_, str> {
    let mut kept = String::new();
    let mut at = 0;
    for link in Links::new(text) {
        if text.get(link.target.clone()).and_then(linked_block).is_some() {
            kept.push_str(text.get(at..link.target.start).unwrap_or_default());
            at = link.target.end;
        }
    }
    if at == 0 {
        return Cow::Borrowed(text);
    }
    kept.push_str(text.get(at..).unwrap_or_default());
    Cow::Owned(kept)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn alike() {
        let alike = |a: &str, b: &str| are_alike(&grams(a), &grams(b));
        assert!(alike("The hall is free on the 7th.", "the hall is free on the 8th"));
        assert!(alike("音乐厅七号有空，可以订。", "音乐厅七号有空可以订"));
        assert!(!alike("The hall is free on the 7th.", "Ada likes tea."));
        assert!(!alike("", "") && !alike("a", "a"));
    }

    #[test]
    fn what_is_written_with_digits() {
        let found = |text: &str| numbers(text).into_iter().collect::<Vec<_>>();
        assert_eq!(found("On 2026-05-07, room B2: 1,200.50 euros (3x)."), ["05", "07", "1,200.50", "2026", "3x", "b2"]);
        assert_eq!(found("seven"), [""; 0]);
        assert_eq!(found("[the 9 bolts](boat2.md#^b1) and [a page](https://x/7)"), ["7", "9"]);
    }
}
