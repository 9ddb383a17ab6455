//! What memory says, as HTML: for viewers of it.
//!
//! Nothing that was ever stored becomes markup of its own: HTML in a text is shown as it stands there, and links lead to pages of
//! the web, to mail or within memory, never to a script.

use pulldown_cmark::{CowStr, Event, Options, Parser, Tag, html};
use recollex::workspace::Excerpt;

/// A part of a file as HTML.
pub fn of(excerpt: &Excerpt) -> String {
    let lines: Vec<&str> = excerpt.lines.iter().map(|line| line.text.as_str()).collect();
    let text = lines.join("\n");
    let is_record = excerpt.record.is_some() || excerpt.path.starts_with("sources/");
    if excerpt.path.ends_with(".md") && !is_record { document(&text) } else { preformatted(&text) }
}

/// Markdown.
fn document(text: &str) -> String {
    let options = Options::ENABLE_FOOTNOTES | Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH;
    let events = Parser::new_ext(text, options).map(|event| match event {
        Event::Html(text) | Event::InlineHtml(text) => Event::Text(text),
        Event::Start(Tag::Link { link_type, dest_url, title, id }) => {
            Event::Start(Tag::Link { link_type, dest_url: harmless(dest_url), title, id })
        }
        Event::Start(Tag::Image { link_type, dest_url, title, id }) => {
            Event::Start(Tag::Image { link_type, dest_url: harmless(dest_url), title, id })
        }
        event => event,
    });
    let mut out = String::with_capacity(text.len() * 2);
    html::push_html(&mut out, events);
    out
}

/// Text as it stands.
fn preformatted(text: &str) -> String {
    let mut out = "<pre>".to_owned();
    // Writing to a string cannot fail.
    let _ = pulldown_cmark_escape::escape_html(&mut out, text);
    out.push_str("</pre>");
    out
}

/// Where a link may lead.
fn harmless(url: CowStr<'_>) -> CowStr<'_> {
    let scheme = url.split_once(':').map(|(scheme, _)| scheme).filter(|scheme| !scheme.contains(['/', '#', '?']));
    match scheme.map(str::to_ascii_lowercase).as_deref() {
        None | Some("http" | "https" | "mailto") => url,
        Some(_) => CowStr::Borrowed("#"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_topic_reads_as_it_should() {
        let shown =
            document("# Tea\n\nAda drinks **tea**.[^e-1] ^ab12\n\n[^e-1]: Time: `2026-05`; Sources: [a](../x.md#y)\n");
        assert!(shown.contains("<h1>Tea</h1>") && shown.contains("<strong>tea</strong>"), "{shown}");
        assert!(shown.contains("href=\"../x.md#y\"") && shown.contains("2026-05"), "{shown}");
    }

    #[test]
    fn nothing_stored_becomes_markup() {
        for text in [
            "<script>alert(1)</script>",
            "a <img src=x onerror=alert(1)> b",
            "[x](javascript:alert(1))",
            "[x](JaVaScRiPt:alert(1))",
            "![x](data:text/html,<script>alert(1)</script>)",
            "<javascript:alert(1)>",
            "[x]: vbscript:alert(1)\n\n[x]",
            "<svg onload=alert(1)>\n\n</svg>",
        ] {
            let shown = document(text).to_lowercase();
            for bad in [
                "<script",
                "<img src=\"x",
                "onerror=alert(1)>\"",
                "href=\"javascript",
                "src=\"data",
                "href=\"vbscript",
                "<svg",
            ] {
                assert!(!shown.contains(bad), "{text}: {shown}");
            }
        }
        assert_eq!(preformatted("a < b & </pre><script>"), "<pre>a &lt; b &amp; &lt;/pre&gt;&lt;script&gt;</pre>");
    }
}
