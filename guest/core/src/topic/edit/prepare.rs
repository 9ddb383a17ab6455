//! Before anything is named: footnotes that were indented stand at their line's beginning, and ids that nobody gave are gone.

use super::rewrite::{Rewritten, Splices};
use crate::ids::BlockId;
use crate::text::is_whitespace;
use crate::topic::item::{Item, Items, is_definition};
use crate::topic::line::{Lines, Part};
use crate::topic::paragraph::Citations;

/// Prepares a text whose lines end with LF. `committed` says whether a block has the id before the edit.
pub(super) fn prepare(text: &str, committed: &dyn Fn(&str) -> bool) -> Rewritten {
    let mut splices = Splices::default();
    for item in Items::new(text) {
        let Item::Paragraph(paragraph) = item else { continue };
        let mut lines: Vec<Part<'_>> = Vec::new();
        for line in Lines::new(paragraph.text().as_str()) {
            let line = paragraph.text().slice(line.part.span());
            let rest = line.as_str().trim_start_matches(is_whitespace);
            if is_definition(rest) {
                splices.replace(line.start()..line.end() - rest.len(), "");
                drop_invented(&lines, committed, &mut splices);
                lines.clear();
            } else {
                lines.push(line);
            }
        }
        drop_invented(&lines, committed, &mut splices);
    }
    splices.apply(text)
}

/// Takes an id off the end of each line that has one which no block had: ids are given, not chosen. Of several, the last
/// goes. Text that cites nothing keeps its id, which its writer is told about.
fn drop_invented(lines: &[Part<'_>], committed: &dyn Fn(&str) -> bool, splices: &mut Splices) {
    if lines.iter().all(|line| Citations::new(*line).next().is_none()) {
        return;
    }
    for line in lines {
        let text = line.as_str().trim_end_matches(is_whitespace);
        let token = text.rsplit(is_whitespace).next().unwrap_or_default();
        let invented = token.strip_prefix('^').is_some_and(|id| BlockId::is_written(id) && !survives(id, committed));
        if invented {
            let before = text.len() - token.len();
            let before = text.get(..before).unwrap_or_default().trim_end_matches(is_whitespace);
            splices.replace(line.start() + before.len()..line.end(), "");
        }
    }
}

/// Whether an id stays: a block has it, or has what it begins with up to a hyphen or the end of a word.
fn survives(id: &str, committed: &dyn Fn(&str) -> bool) -> bool {
    let word = |at: usize| id.as_bytes().get(at).is_some_and(u8::is_ascii_alphanumeric);
    let ends = (1..id.len()).filter(|end| word(end - 1) != word(*end));
    committed(id) || ends.filter_map(|end| id.get(..end)).any(committed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prepared(text: &str) -> String {
        prepare(text, &|id| matches!(id, "known" | "base0001")).text
    }

    #[test]
    fn ids_nobody_gave() {
        for (text, without) in [
            ("A.[^e1] ^new", "A.[^e1]"),
            ("A.[^e1] ^new  \nB.\t^other", "A.[^e1]\nB."),
            ("A.[^e1]\n^new\n", "A.[^e1]\n\n"),
            ("A.[^e1] ^one ^two", "A.[^e1] ^one"),
            ("A.[^e1] ^known", "A.[^e1] ^known"),
            ("A.[^e1] ^known-x", "A.[^e1] ^known-x"),
            ("A.[^e1] ^knownx", "A.[^e1]"),
            ("A.[^e1] ^a_b", "A.[^e1] ^a_b"),
            ("A.[^e1]^new", "A.[^e1]^new"),
            ("No citation. ^new", "No citation. ^new"),
            ("# H ^new\n\n```\nA.[^e1] ^new\n```\n", "# H ^new\n\n```\nA.[^e1] ^new\n```\n"),
        ] {
            assert_eq!(prepared(text), without);
        }
    }

    #[test]
    fn indented_footnotes() {
        let definition = "[^e1]: Time: `2026`; Sources: [x](D1:1)";
        let text = format!("A.[^e1] ^new\n  {definition}\nB. ^uncited\n");
        assert_eq!(prepared(&text), format!("A.[^e1]\n{definition}\nB. ^uncited\n"));
    }
}
