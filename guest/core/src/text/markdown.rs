//! Markdown as it reads: for what is searched, without what only says how it looks.
//!
//! Topics have a grammar of their own (`topic`); this is for what stands within a paragraph of one.

use pulldown_cmark::{Event, Options, Parser};

/// Characters that Markdown may mean something by, within a paragraph or at the beginning of a line.
const MEANT: &[char] = &['[', ']', '*', '_', '`', '<', '&', '\\', '!', '>', '#', '~', '-', '+', '='];

/// The words of a text: of a link those that are shown and not where it leads, without marks of emphasis, with code as it
/// stands. HTML stays: whoever wrote it in a claim may look for it.
#[must_use]
pub fn plain(markdown: &str) -> String {
    if !markdown.contains(MEANT) {
        return markdown.to_owned();
    }
    let mut words = String::with_capacity(markdown.len());
    for event in Parser::new_ext(markdown, Options::empty()) {
        match event {
            Event::Text(text) | Event::Code(text) | Event::Html(text) | Event::InlineHtml(text) => {
                words.push_str(&text)
            }
            Event::SoftBreak | Event::HardBreak | Event::Rule => words.push(' '),
            // Where something begins or ends that is no part of a line, words do not run together.
            Event::End(end) if !is_inline(end) && !words.ends_with(' ') => words.push(' '),
            _ => {}
        }
    }
    let length = words.trim_end_matches(' ').len();
    words.truncate(length);
    words
}

const fn is_inline(end: pulldown_cmark::TagEnd) -> bool {
    use pulldown_cmark::TagEnd::{Emphasis, Image, Link, Strikethrough, Strong};
    matches!(end, Emphasis | Image | Link | Strikethrough | Strong)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn words_and_nothing_else() {
        for (markdown, words) in [
            ("Ada drinks tea.", "Ada drinks tea."),
            ("Ada **drinks** _tea_, see [hot](../tea.md#^ab12).", "Ada drinks tea, see hot."),
            ("Run `rm -rf` never.", "Run rm -rf never."),
            ("one\ntwo & three &amp; four", "one two & three & four"),
            ("![a *cup*](cup.png) of <b>tea</b>", "a cup of <b>tea</b>"),
            ("- a\n- b", "a b"),
            ("snake_case_name stays", "snake_case_name stays"),
            ("a\\*b 3 < 4 and [not a link]", "a*b 3 < 4 and [not a link]"),
            ("喝*茶*。", "喝茶。"),
            ("", ""),
        ] {
            assert_eq!(plain(markdown), words, "{markdown}");
        }
    }

    proptest! {
        #[test]
        fn any_text_has_words(text in "[\\PC\n`*_\\[\\]<>#&!-]{0,200}") {
            let words = plain(&text);
            prop_assert!(words.len() <= text.len() * 4 + 8);
        }

        #[test]
        fn letters_stay(words in prop::collection::vec("[a-zé你]{1,6}", 1..8)) {
            let text = words.join(" ");
            let emphasised = words.iter().map(|word| format!("*{word}*")).collect::<Vec<_>>().join(" ");
            prop_assert_eq!(plain(&text), text.clone());
            prop_assert_eq!(plain(&emphasised), text);
        }
    }
}
