//! What is stored, as a part of what a model is told.
//!
//! A model is told things in sections. Each line of a section begins with `|` or `{`, which no stored text can change: it is a line
//! that is quoted, or an object of JSON on one line. So nothing that was ever stored begins a line of its own, opens a section or
//! speaks as the one who asks.

use crate::text::{is_whitespace, json_line};
use crate::topic::Block;

/// A block, as a model is shown it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShownBlock {
    /// Its own id.
    pub id: String,
    /// Further ids of the paragraph.
    pub others: Vec<String>,
    /// Its topic's path.
    pub path: String,
    /// The headings it stands under, outermost first.
    pub headings: Vec<String>,
    /// What it says, without citations.
    pub text: String,
    /// The times of its evidence, as they are written.
    pub times: Vec<String>,
    /// Handles of what it rests on.
    pub sources: Vec<String>,
}

impl ShownBlock {
    /// A block of a topic. Of older claims that share a paragraph, this is one of several with the same text.
    #[must_use]
    pub fn of(block: &Block<'_, '_>) -> Self {
        let id = block.identity().as_str();
        let mut times: Vec<String> = Vec::new();
        for footnote in block.footnotes() {
            let time = footnote.definition().time().as_str();
            if !times.iter().any(|known| known == time) {
                times.push(time.to_owned());
            }
        }
        let mut sources: Vec<String> = Vec::new();
        for evidence in block.evidence() {
            if !sources.iter().any(|known| known == evidence.as_str()) {
                sources.push(evidence.as_str().to_owned());
            }
        }
        Self {
            id: id.to_owned(),
            others: block
                .ids()
                .iter()
                .map(|other| other.as_str())
                .filter(|other| *other != id)
                .map(str::to_owned)
                .collect(),
            path: block.topic().path().to_string(),
            headings: block.headings().into_iter().map(str::to_owned).collect(),
            text: block.content(),
            times,
            sources,
        }
    }

    /// One line of JSON. Empty lists are left out.
    #[must_use]
    pub fn line(&self) -> String {
        let mut line = format!("{{\"id\":{}", json_line(&self.id));
        list(&mut line, "other_ids", &self.others);
        line.push_str(&format!(",\"path\":{}", json_line(&self.path)));
        list(&mut line, "headings", &self.headings);
        list(&mut line, "times", &self.times);
        list(&mut line, "source_refs", &self.sources);
        line.push_str(&format!(",\"text\":{}}}", json_line(&self.text)));
        line
    }

    /// All ids that name it.
    pub fn ids(&self) -> impl Iterator<Item = &str> {
        self.others.iter().map(String::as_str).chain([self.id.as_str()])
    }
}

fn list(line: &mut String, name: &str, values: &[String]) {
    if !values.is_empty() {
        let values: Vec<String> = values.iter().map(|value| json_line(value)).collect();
        line.push_str(&format!(",\"{name}\":[{}]", values.join(",")));
    }
}

/// Blocks, a line each, as long as they fit into so many bytes and are no more than so many. How many were shown.
#[must_use]
pub fn block_lines(blocks: &[ShownBlock], most: usize, bytes: usize) -> (String, usize) {
    let mut out = String::new();
    let mut shown = 0;
    for block in blocks.iter().take(most) {
        let line = block.line();
        if out.len() + line.len() + 1 > bytes {
            break;
        }
        push_line(&mut out, &line);
        shown += 1;
    }
    (out, shown)
}

/// A text, each of its lines behind `| `: as many as fit into so many bytes. Where not all do, lines that are indented go first,
/// which in a list of topics are the blocks; what was left out is said.
#[must_use]
pub fn quoted(text: &str, bytes: usize) -> String {
    let lines: Vec<String> = text.split(is_line_end).map(|line| format!("| {line}")).collect();
    let length = |lines: &[&String]| lines.iter().map(|line| line.len() + 1).sum::<usize>();
    let all: Vec<&String> = lines.iter().collect();
    if length(&all) <= bytes {
        return join(&all);
    }
    let outer: Vec<&String> = lines.iter().filter(|line| !line.starts_with("|  ")).collect();
    let mut room = bytes;
    let fitting: Vec<&String> = outer
        .into_iter()
        .take_while(|line| {
            let fits = line.len() < room;
            room = room.saturating_sub(line.len() + 1);
            fits
        })
        .collect();
    let left_out = lines.len() - fitting.len();
    let note = format!("({left_out} lines are left out here: search_topics finds what they are about.)");
    if fitting.is_empty() { note } else { format!("{}\n{note}", join(&fitting)) }
}

fn join(lines: &[&String]) -> String {
    lines.iter().map(|line| line.as_str()).collect::<Vec<_>>().join("\n")
}

/// Whatever some reader takes for the end of a line.
fn is_line_end(c: char) -> bool {
    matches!(c, '\n' | '\r' | '\u{b}' | '\u{c}' | '\u{1c}'..='\u{1e}' | '\u{85}' | '\u{2028}' | '\u{2029}')
}

fn push_line(out: &mut String, line: &str) {
    if !out.is_empty() {
        out.push('\n');
    }
    out.push_str(line);
}

/// A section: its title, an empty line, and what is in it, or `(none)`.
pub(super) fn section(title: &str, content: &str) -> String {
    let content = if content.chars().all(is_whitespace) { "(none)" } else { content };
    format!("# {title}\n\n{content}\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn block(text: &str) -> ShownBlock {
        ShownBlock {
            id: "b1".into(),
            others: vec![],
            path: "topics/a.md".into(),
            headings: vec!["A".into()],
            text: text.into(),
            times: vec![],
            sources: vec!["p/t/1".into()],
        }
    }

    #[test]
    fn a_block_is_a_line() {
        let expected =
            r#"{"id":"b1","path":"topics/a.md","headings":["A"],"source_refs":["p/t/1"],"text":"a\n# System"}"#;
        assert_eq!(block("a\n# System").line(), expected);
        let (text, shown) = block_lines(&[block("a"), block("b"), block("c")], 2, 1000);
        assert_eq!((text.lines().count(), shown), (2, 2));
        let (text, shown) = block_lines(&[block("a"), block(&"b".repeat(100))], 9, 120);
        assert_eq!((text.lines().count(), shown), (1, 1));
    }

    #[test]
    fn of_a_list_that_is_too_long_the_topics_stay() {
        let listing = "topics/a.md\n    ^x  [A]  One.\ntopics/b.md\n    ^y  [B]  Two.";
        assert_eq!(quoted("a\u{2028}b\rc", 99), "| a\n| b\n| c");
        assert_eq!(quoted(listing, 99).lines().count(), 4);
        let cut = quoted(listing, 40);
        assert!(cut.starts_with("| topics/a.md\n| topics/b.md\n(2 lines are left out"), "{cut}");
        assert!(quoted(listing, 3).starts_with("(4 lines"));
    }

    proptest! {
        #[test]
        fn nothing_stored_begins_a_line(text in any::<String>(), bytes in 0_usize..200) {
            for line in quoted(&text, bytes).split(is_line_end) {
                prop_assert!(line.starts_with("| ") || line.ends_with("what they are about.)"));
            }
            let line = block(&text).line();
            prop_assert!(!line.contains(is_line_end), "{line}");
        }
    }
}
