//! What there is: a line for each block of each topic.

use super::first_chars;
use crate::topic::{Check, ParagraphRef};

/// Characters of what a block says that are shown.
const PROSE_CHARS: usize = 90;
const CUT: &str = "...";

/// The blocks of these topics, sound or not, in order: a line with the topic's path, and below it a line for each block, by its
/// own id, the headings it stands under, and the beginning of what it says.
pub fn structure(topics: &[Check<'_>]) -> String {
    let mut out = Vec::new();
    for topic in topics {
        out.push(topic.path().to_string());
        let mut last = None;
        for block in topic.all_blocks() {
            // Older claims share a paragraph.
            if last.replace(block.number()) == Some(block.number()) {
                continue;
            }
            let headings = block.headings().join(" / ");
            let prose = shown(&block.paragraph());
            out.push(format!("    ^{}  [{headings}]  {prose}", block.identity().as_str()).trim_end().to_owned());
        }
    }
    if out.is_empty() {
        return "(empty workspace)".to_owned();
    }
    out.join("\n")
}

fn shown(paragraph: &ParagraphRef<'_>) -> String {
    let prose = paragraph.prose();
    match first_chars(&prose, PROSE_CHARS) {
        (_, false) => prose,
        _ => format!("{}{CUT}", first_chars(&prose, PROSE_CHARS - CUT.len()).0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::TopicPath;
    use crate::topic::TopicRef;

    #[test]
    fn a_line_a_block() {
        let text = "# A\n\nOne\nmore.[^a] ^x ^y\n\n## B\n\nloose\n\nOld[^mem_a] two[^mem_b]\n";
        let topic = Check::new(TopicPath::parse("topics/t.md").expect("a topic"), TopicRef::parse(text), &());
        assert_eq!(structure(&[topic]), "topics/t.md\n    ^y  [A]  One more.\n    ^mem_a  [A / B]  Old two");
    }
}
