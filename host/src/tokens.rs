//! Counting tokens by the vocabularies that this crate ships, where it was built with any (feature `tokens`).
//!
//! Knows names of vocabularies. A vocabulary is unpacked by the first count that asks for it, and no other call.

/// Tokens of each text by the vocabulary of that name; none if it is not at hand. Text that looks like a special token is
/// text.
#[cfg(feature = "tokens")]
pub(crate) fn count(vocabulary: &str, texts: &[String]) -> Option<Vec<u32>> {
    let tokenizer = match vocabulary {
        "o200k_base" => bpe_openai::o200k_base(),
        _ => return None,
    };
    Some(texts.iter().map(|text| u32::try_from(tokenizer.count(text.as_str())).unwrap_or(u32::MAX)).collect())
}

/// The same where there is none.
#[cfg(not(feature = "tokens"))]
pub(crate) fn count(_: &str, _: &[String]) -> Option<Vec<u32>> {
    None
}

/// The tokens that a text has at most, by any vocabulary that covers all text: each falls back to single bytes, and none
/// spends more than a token on one.
pub(crate) fn at_most(text: &str) -> u32 {
    u32::try_from(text.len()).unwrap_or(u32::MAX)
}

#[cfg(all(test, feature = "tokens"))]
mod tests {
    use super::*;

    #[test]
    fn counts_as_the_vocabulary_does() {
        // Known of o200k_base: `tiktoken` gives the same.
        let texts = ["", "hello world", "喷油嘴", "<|endoftext|>"].map(str::to_owned);
        let counted = count("o200k_base", &texts).expect("shipped");
        assert_eq!(counted[..2], [0, 2]);
        assert!(counted[3] > 1, "no special token, but text: {counted:?}");
        for (text, tokens) in texts.iter().zip(&counted) {
            assert!(*tokens <= at_most(text), "{text}");
        }
        assert_eq!(count("none_base", &texts), None);
    }
}
