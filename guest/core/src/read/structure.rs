//! What there is: a line for each block of each topic.

use super::first_chars;
use crate::ids::{EvidenceTime, TopicPath};
use crate::text::caseless;
use crate::topic::Check;

/// Characters of what a block says that are shown.
const PROSE_CHARS: usize = 90;
const CUT: &str = "...";

/// A block, as a list shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedBlock {
    /// Its own id; of older claims that share a paragraph, the first one's.
    pub id: String,
    /// The other ids of the paragraph: of blocks that were merged into it, or of older claims behind the first.
    pub others: Vec<String>,
    /// Its topic.
    pub topic: TopicPath,
    /// The line it begins with.
    pub line: usize,
    /// The headings it stands under, outermost first.
    pub headings: Vec<String>,
    /// What it says, without citations: of more than 90 characters the first 87 and `...`.
    pub text: String,
    /// The first time of its evidence.
    pub when: Option<EvidenceTime>,
    /// Nothing is wrong with it or its footnotes.
    pub is_sound: bool,
}

/// The blocks of a topic, sound or not, in order; those of which an id, the path or what they say contains `wanted` in whatever
/// letter case.
pub fn listed(topic: &Check<'_>, wanted: &str) -> Vec<ListedBlock> {
    let wanted = caseless(wanted);
    let mut listed: Vec<(usize, ListedBlock, String)> = Vec::new();
    for block in topic.all_blocks() {
        let ids = block.ids().iter().map(|id| id.as_str().to_owned());
        // Older claims share a paragraph.
        if let Some((_, first, _)) = listed.last_mut().filter(|(number, ..)| *number == block.number()) {
            first.others.extend(ids);
            continue;
        }
        let id = block.identity().as_str();
        let paragraph = block.paragraph();
        let prose = paragraph.prose();
        let one = ListedBlock {
            id: id.to_owned(),
            others: ids.filter(|other| other != id).collect(),
            topic: topic.path().clone(),
            line: paragraph.lump().line(),
            headings: block.headings().into_iter().map(str::to_owned).collect(),
            text: shown(&prose),
            when: block.when(),
            is_sound: topic.is_sound(block.number()),
        };
        listed.push((block.number(), one, prose));
    }
    let is_wanted = |one: &ListedBlock, prose: &str| {
        let ids = std::iter::once(&one.id).chain(&one.others).map(String::as_str);
        is_about(ids.chain([topic.path().below_topics(), prose]), &wanted)
    };
    listed.into_iter().filter(|(_, one, prose)| is_wanted(one, prose)).map(|(_, one, _)| one).collect()
}

/// Whether one of these texts contains `wanted`, which is in one letter case already.
pub(super) fn is_about<'t>(texts: impl IntoIterator<Item = &'t str>, wanted: &str) -> bool {
    wanted.is_empty() || texts.into_iter().any(|text| caseless(text).contains(wanted))
}

/// The blocks of these topics, in order: a line with the topic's path, and below it a line for each of its [`listed`] blocks, by
/// its own id, the headings it stands under, and the beginning of what it says.
pub fn structure(topics: &[Check<'_>]) -> String {
    let mut out = Vec::new();
    for topic in topics {
        out.push(topic.path().to_string());
        for ListedBlock { id, headings, text, .. } in listed(topic, "") {
            out.push(format!("    ^{id}  [{}]  {text}", headings.join(" / ")).trim_end().to_owned());
        }
    }
    if out.is_empty() {
        return "(empty workspace)".to_owned();
    }
    out.join("\n")
}

fn shown(prose: &str) -> String {
    match first_chars(prose, PROSE_CHARS) {
        (whole, false) => whole.to_owned(),
        _ => format!("{}{CUT}", first_chars(prose, PROSE_CHARS - CUT.len()).0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topic::TopicRef;

    #[test]
    fn a_line_a_block() {
        let text = "# A\n\nOne\nmore.[^a] ^x ^y\n\n## B\n\nloose\n\nOld[^mem_a] two[^mem_b]\n";
        let topic = Check::new(TopicPath::parse("topics/t.md").expect("a topic"), TopicRef::parse(text), &());
        assert_eq!(structure(&[topic]), "topics/t.md\n    ^y  [A]  One more.\n    ^mem_a  [A / B]  Old two");
    }
    #[test]
    fn what_is_wanted() {
        let text = "# A\n\nOne\nmore.[^a] ^x ^y\n\nTwo.[^b] ^z\n\nOld[^mem_a] two[^mem_b]\n\n[^b]: Time: `2026-05`; Sources: [l](p/t/1)\n";
        let topic = Check::new(TopicPath::parse("topics/Tea.md").expect("a topic"), TopicRef::parse(text), &());
        let ids = |wanted: &str| listed(&topic, wanted).into_iter().map(|one| one.id).collect::<Vec<_>>();
        assert_eq!(ids("one MORE"), ["y"]);
        assert_eq!(ids("x"), ["y"]);
        assert_eq!(ids("mem_b"), ["mem_a"]);
        assert_eq!(ids("tea"), ["y", "z", "mem_a"]);
        assert_eq!(ids("none"), [""; 0]);
        let told: Vec<_> = listed(&topic, "")
            .into_iter()
            .map(|one| (one.others, one.line, one.when.map(|when| when.to_string()), one.is_sound))
            .collect();
        let expected = [
            (vec!["x".to_owned()], 3, None, false),
            (vec![], 6, Some("2026-05".to_owned()), true),
            (vec!["mem_b".to_owned()], 8, None, false),
        ];
        assert_eq!(told, expected);
    }
}
