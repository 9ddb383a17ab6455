//! Text in JSON, for files and ids that are put together by hand because their spelling is fixed.

/// A text as a JSON string, in quotation marks. Escaped is what JSON asks for, and nothing else.
pub fn json_string(text: &str) -> String {
    // Only a writer that fails could make this fail, and memory does not.
    serde_json::to_string(text).unwrap_or_default()
}

/// The same where it must stay one line for every reader: U+2028 and U+2029 are escaped as well.
pub fn json_line(text: &str) -> String {
    json_string(text).replace('\u{2028}', "\\u2028").replace('\u{2029}', "\\u2029")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_json_lets_stand_stands() {
        assert_eq!(json_string("a\"\\\n\u{1}/é\u{2028}块"), "\"a\\\"\\\\\\n\\u0001/é\u{2028}块\"");
        assert_eq!(json_string(""), "\"\"");
    }
}
