//! What single lines of older archives are.
//!
//! Knows one line at a time; what lines come to together is for [`super::legacy`].

use super::frame::{ANCHOR_CLOSE, ANCHOR_OPEN};
use super::record::Speaker;
use crate::text::{identity_part, is_whitespace};

/// Anchors of records are shorter; a line with a longer name is markup like any other.
const ANCHOR_BYTES_MAX: usize = 64;

/// Greatest level of a heading.
const LEVELS: usize = 6;

fn trim(line: &str) -> &str {
    line.trim_matches(is_whitespace)
}

/// Whether there is nothing but white space.
pub(super) fn is_blank(line: &str) -> bool {
    line.chars().all(is_whitespace)
}

/// The name of an anchor that is the whole line, white space aside.
pub(super) fn anchor_name(line: &str) -> Option<&str> {
    let name = trim(line).strip_prefix(ANCHOR_OPEN)?.strip_suffix(ANCHOR_CLOSE)?;
    (!name.is_empty() && name.len() <= ANCHOR_BYTES_MAX && !name.contains('"')).then_some(name)
}

/// The value of a comment `<!-- word:value -->` that is the whole line, white space aside. It may be empty.
pub(super) fn comment<'a>(line: &'a str, word: &str) -> Option<&'a str> {
    let inside = trim(line).strip_prefix("<!--")?.strip_suffix("-->")?;
    let value = inside.trim_start_matches(is_whitespace).strip_prefix(word)?.strip_prefix(':')?;
    let value = value.trim_end_matches(is_whitespace);
    (!value.contains('>')).then_some(value)
}

/// Level and text of a Markdown heading.
pub(super) fn heading(line: &str) -> Option<(usize, &str)> {
    let level = line.bytes().take_while(|byte| *byte == b'#').count();
    let text = line.get(level..).filter(|text| (1..=LEVELS).contains(&level) && text.starts_with(is_whitespace))?;
    let text = trim(text);
    (!text.is_empty()).then_some((level, text))
}

/// Whether a line is an anchor, a comment or some other markup that says nothing by itself.
pub(super) fn is_markup(line: &str) -> bool {
    let line = line.trim_start_matches(is_whitespace);
    line.starts_with("<a ") || line.starts_with("<!--")
}

/// Whether a record's label is the word `user`, in any case. `ſ` is an `s` to case folding; no other letter outside
/// ASCII folds to one of these.
pub(super) fn is_user(label: &str) -> bool {
    let label = identity_part(label);
    let mut letters = label.chars().map(|c| if c == 'ſ' { 's' } else { c.to_ascii_lowercase() });
    let same = "user".chars().all(|letter| letters.next() == Some(letter));
    same && letters.next().is_none()
}

/// Who a text says it is from, where a runtime put `[name (id)]` in front of what a user said. Anyone can write that: it is
/// a hint and never trusted.
pub(super) fn hint(said: &str) -> Option<Speaker> {
    let (name, _) = said.strip_prefix('[')?.split_once(']')?;
    if name.contains(['\r', '\n']) {
        return None;
    }
    let label = identity_part(name);
    if label.is_empty() {
        return None;
    }
    let apart = label
        .strip_suffix(')')
        .and_then(|rest| rest.rsplit_once('('))
        .and_then(|(before, id)| Some((before.strip_suffix(' ')?, id)))
        .filter(|(display, id)| !display.is_empty() && !id.contains(')'));
    let (display, id) = apart.unwrap_or((&label, ""));
    Some(Speaker { id: id.to_owned(), display: display.to_owned(), trusted: false, label })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn anchors_and_comments() {
        assert_eq!(anchor_name("  <a id=\"x\"></a>\r"), Some("x"));
        for line in [
            "<a id=\"\"></a>",
            "x <a id=\"x\"></a>",
            "<a id=\"x\"></a> y",
            "<a id=\"x\" y=\"\"></a>",
            "<A id=\"x\"></a>",
        ] {
            assert_eq!(anchor_name(line), None, "{line}");
        }
        assert_eq!(anchor_name(&format!("<a id=\"{}\"></a>", "x".repeat(65))), None);
        for line in ["<!-- source-id:a/b/c -->", " <!--source-id:a/b/c-->\r", "<!--\u{3000}source-id:a/b/c  -->"] {
            assert_eq!(comment(line, "source-id"), Some("a/b/c"), "{line}");
        }
        assert_eq!(comment("<!-- speaker-id: -->", "speaker-id"), Some(""));
        for line in [
            "<!-- source-id:a>b -->",
            "x <!-- source-id:a/b/c -->",
            "<!-- source-id:a/b/c",
            "<!-- source-ids:a -->",
            "<!-->",
        ] {
            assert_eq!(comment(line, "source-id"), None, "{line}");
        }
    }

    #[test]
    fn headings() {
        assert_eq!(heading("# a b  "), Some((1, "a b")));
        assert_eq!(heading("######\tx ##"), Some((6, "x ##")));
        for line in ["#", "# ", "#x", "####### x", " # x", ""] {
            assert_eq!(heading(line), None, "{line}");
        }
    }

    #[test]
    fn users() {
        for label in ["user", "User", " USER ", "uſer", "us\u{200b}er"] {
            assert!(is_user(label), "{label}");
        }
        for label in ["users", "use r", "uѕer", "userx", "", "assistant", "u\u{ff53}er"] {
            assert!(!is_user(label), "{label}");
        }
    }

    #[test]
    fn hints() {
        let shown = |said| hint(said).map(|hint| (hint.id, hint.display, hint.label, hint.trusted));
        let made = |id: &str, display: &str, label: &str| Some((id.into(), display.into(), label.into(), false));
        assert_eq!(shown("[Ada (7391)] x"), made("7391", "Ada", "Ada (7391)"));
        assert_eq!(shown("[A (b) (c)]"), made("c", "A (b)", "A (b) (c)"));
        assert_eq!(shown("[A ((c))]"), made("", "A ((c))", "A ((c))"));
        assert_eq!(shown("[Ada(7)]"), made("", "Ada(7)", "Ada(7)"));
        assert_eq!(shown("[\u{202e}Ada (7\u{200f})]"), made("7", "Ada", "Ada (7)"));
        for none in ["", "[Ada", "[] x", "[\u{200b}]", " [Ada]", "[A\nB]", "[A\r]"] {
            assert_eq!(shown(none), None, "{none:?}");
        }
    }
}
