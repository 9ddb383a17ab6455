//! Words that say how other words belong together, and nothing about what a text is about.
//!
//! English only, and a closed class: pronouns, articles, prepositions, conjunctions, auxiliaries, question words, and what
//! an apostrophe leaves of `isn't` or `they'll`. Left out on purpose: `may`, `will`, `don`, `us` and `won`, which are also
//! a month, names, a country and a deed.
//!
//! Only queries look here. The index holds these words like any other, so that a query of nothing else still finds
//! something, and so that a change of the list needs no new index.

/// Whether a folded word is one of them.
pub(super) fn is_function_word(word: &str) -> bool {
    FUNCTION_WORDS.binary_search(&word).is_ok()
}

#[rustfmt::skip]
const FUNCTION_WORDS: &[&str] = &[
    "a", "about", "after", "against", "ain", "all", "also", "am", "among", "an", "and", "any", "are", "aren", "as", "at",
    "be", "because", "been", "before", "being", "between", "both", "but", "by", "can", "could", "couldn", "d", "did",
    "didn", "do", "does", "doesn", "doing", "done", "during", "each", "either", "else", "ever", "every", "for", "from",
    "had", "hadn", "has", "hasn", "have", "haven", "having", "he", "her", "here", "hers", "herself", "him", "himself",
    "his", "how", "i", "if", "in", "into", "is", "isn", "it", "its", "itself", "just", "ll", "m", "me", "might", "mine",
    "must", "mustn", "my", "myself", "neither", "no", "nor", "not", "of", "on", "once", "only", "onto", "or", "our",
    "ours", "ourselves", "own", "re", "s", "same", "shall", "she", "should", "shouldn", "since", "so", "some", "such",
    "t", "than", "that", "the", "their", "theirs", "them", "themselves", "then", "there", "these", "they", "this",
    "those", "though", "through", "to", "too", "until", "upon", "ve", "very", "was", "wasn", "we", "were", "weren",
    "what", "when", "where", "whether", "which", "while", "who", "whom", "whose", "why", "with", "within", "without",
    "would", "wouldn", "yet", "you", "your", "yours", "yourself", "yourselves",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_is_sorted_and_found() {
        assert!(FUNCTION_WORDS.is_sorted_by(|a, b| a < b));
        assert!(FUNCTION_WORDS.iter().all(|word| is_function_word(word)));
        assert!(["may", "will", "don", "us", "won", "", "budget", "猫"].iter().all(|word| !is_function_word(word)));
    }
}
