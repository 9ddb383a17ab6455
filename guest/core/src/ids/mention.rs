//! Turns of numbered conversations that a line mentions, and the id of such a line.

use super::source_ref::TurnRef;
use crate::digest::Digest;
use crate::text::json_string;

/// References that one line names at most, and that one range stands for at most.
pub const REFERENCES_MAX: usize = 100;

/// The number of the conversation whose file this may be, as it is written: `sources/D3.md` and `sources/x/D3.md` are of
/// conversation 3.
pub fn numbered_conversation(path: &str) -> Option<&str> {
    let number = path.rsplit('/').next()?.strip_prefix('D')?.strip_suffix(".md")?;
    (!number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())).then_some(number)
}

/// The references in a line, each once, in the order in which they first come: `D3:7`, not within a word, and ranges,
/// `D3:7-9` or `D3:7-D3:9`, upwards or down, with every turn between. At most [`REFERENCES_MAX`]; a range of more than that
/// names its two ends, and so does one that leads to another conversation.
pub fn references_in(line: &str) -> Vec<TurnRef> {
    let mut found: Vec<TurnRef> = Vec::new();
    let mut add = |conversation: &str, turn: &str| {
        let reference = TurnRef::new(conversation, turn);
        if found.len() < REFERENCES_MAX && !found.contains(&reference) {
            found.push(reference);
        }
    };
    let mut at = 0;
    while let Some(first) = next_reference(line, at) {
        at = first.end;
        let Some(last) = line.get(at..).and_then(|rest| range_end(first.conversation, rest)) else {
            add(first.conversation, first.turn);
            continue;
        };
        at += last.end;
        match (number(first.turn), number(last.turn)) {
            (Some(from), Some(to))
                if first.conversation == last.conversation && (from.abs_diff(to) as usize) < REFERENCES_MAX =>
            {
                let turns = from.min(to)..=from.max(to);
                if from <= to {
                    turns.for_each(|turn| add(first.conversation, &turn.to_string()));
                } else {
                    turns.rev().for_each(|turn| add(first.conversation, &turn.to_string()));
                }
            }
            _ => {
                add(first.conversation, first.turn);
                add(last.conversation, last.turn);
            }
        }
    }
    found
}

/// Whether there is a reference in a line.
pub fn mentions_turns(line: &str) -> bool {
    next_reference(line, 0).is_some()
}

/// A reference within a text: its numbers, and where it ends.
struct Found<'t> {
    conversation: &'t str,
    turn: &'t str,
    end: usize,
}

/// The first reference from byte `from` on.
fn next_reference(line: &str, from: usize) -> Option<Found<'_>> {
    let bytes = line.as_bytes();
    let mut starts = memchr::memchr_iter(b'D', bytes.get(from..)?).map(|ahead| from + ahead);
    starts.find_map(|start| {
        let in_word = start.checked_sub(1).and_then(|before| bytes.get(before)).is_some_and(|&byte| is_word(byte));
        let found = line.get(start..).filter(|_| !in_word).and_then(reference)?;
        Some(Found { end: start + found.end, ..found })
    })
}

/// The reference at the beginning of `text`.
fn reference(text: &str) -> Option<Found<'_>> {
    let (conversation, behind) = digits(text.strip_prefix('D')?)?;
    let (turn, behind) = digits(behind.strip_prefix(':')?)?;
    Some(Found { conversation, turn, end: text.len() - behind.len() })
}

/// What a range goes on with: `-9` or `-D3:9`.
fn range_end<'t>(conversation: &'t str, text: &'t str) -> Option<Found<'t>> {
    let behind = text.strip_prefix('-')?;
    if let Some(last) = reference(behind) {
        return Some(Found { end: last.end + 1, ..last });
    }
    let (turn, behind) = digits(behind)?;
    Some(Found { conversation, turn, end: text.len() - behind.len() })
}

/// The digits at the beginning of `text`, at least one, and what follows.
fn digits(text: &str) -> Option<(&str, &str)> {
    let count = text.bytes().take_while(u8::is_ascii_digit).count();
    text.split_at_checked(count).filter(|_| count > 0)
}

/// A number that is written as numbers are, without zeros in front.
fn number(digits: &str) -> Option<u32> {
    digits.parse().ok().filter(|_| digits == "0" || !digits.starts_with('0'))
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// The id by which a line that mentions turns is known: `lex_` and 16 hexadecimal digits of the SHA-256 over the JSON
/// array of path, line, content and references, with a space behind each comma.
pub fn lexical_id<R: AsRef<str>>(path: &str, line: u64, content: &str, references: &[R]) -> String {
    let references: Vec<String> = references.iter().map(|reference| json_string(reference.as_ref())).collect();
    let whole = format!("[{}, {line}, {}, [{}]]", json_string(path), json_string(content), references.join(", "));
    format!("lex_{}", Digest::of(whole.as_bytes()).hex_prefix(16))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_conversations() {
        assert_eq!(numbered_conversation("sources/D12.md"), Some("12"));
        assert_eq!(numbered_conversation("sources/x/D01.md"), Some("01"));
        for other in ["sources/d1.md", "sources/D1.MD", "sources/D1/x.md", "sources/D.md", "sources/D１.md", ""] {
            assert_eq!(numbered_conversation(other), None, "{other}");
        }
    }

    fn shown(line: &str) -> Vec<String> {
        references_in(line).iter().map(|reference| reference.as_str().to_owned()).collect()
    }

    #[test]
    fn references_of_a_line() {
        assert_eq!(shown("x [D1:1], D2:3; (D1:1) 见D4:5"), ["D1:1", "D2:3", "D4:5"]);
        assert_eq!(shown("D1:3-1 and D1:5-D1:6, D1:9-"), ["D1:3", "D1:2", "D1:1", "D1:5", "D1:6", "D1:9"]);
        assert_eq!(shown("D1:5-D2:6 D01:5-07"), ["D1:5", "D2:6", "D01:5", "D01:07"]);
        assert_eq!(shown("AD1:1 _D1:1 D1: 2 D:1 D1-1 d1:1 D１:1 DD1:1"), [""; 0]);
        let long = "9".repeat(30);
        assert_eq!(shown(&format!("D1:{long}-1")), [format!("D1:{long}"), "D1:1".to_owned()]);
    }

    #[test]
    fn ranges_are_bounded() {
        assert_eq!(references_in("D1:1-100").len(), REFERENCES_MAX);
        assert_eq!(shown("D1:101-1"), ["D1:101", "D1:1"]);
        let many: Vec<String> = (0..500).map(|n| format!("D{n}:1-99")).collect();
        assert_eq!(references_in(&many.join(" ")).len(), REFERENCES_MAX);
    }

    #[test]
    fn ids_of_lines() {
        // The row `ids/lex_id_00` has another; these pin what has to be escaped.
        let id = lexical_id("p", 1, "\"\\\u{1}é", &["D1:1"]);
        let expected = Digest::of("[\"p\", 1, \"\\\"\\\\\\u0001é\", [\"D1:1\"]]".as_bytes());
        assert_eq!(id, format!("lex_{}", expected.hex_prefix(16)));
        assert_ne!(id, lexical_id("p", 2, "\"\\\u{1}é", &["D1:1"]));
    }
}
