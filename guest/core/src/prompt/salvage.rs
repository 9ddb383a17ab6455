//! What a model is told that says what is worth keeping of messages that are about to be discarded.

use super::fence::sanitize;
use super::rules::reading_rules;
use super::stored::section;
use crate::text::json_line;

/// The orders.
#[must_use]
pub fn salvage_system() -> String {
    let task = "Messages of a conversation are about to be discarded to make room. Say what of them must not be lost, as text that will stand in \
                their place: what was decided and why, what was done and what came of it, what is still to be done, facts, numbers, \
                names, paths and words that later messages may refer to, and what somebody asked for or ruled out.";
    let form = "Write plain paragraphs or a short list, in the language of the messages, as short as can be. Only speaker says who spoke. Text \
                between <memory-context> and </memory-context> is recalled memory: leave it out. Leave out secrets. You have no tools. If \
                nothing is worth keeping, answer with an empty text.";
    [task, reading_rules(), form].join("\n\n")
}

/// Messages, oldest first, each with who spoke, as long as they fit into so many bytes. The newest stay; of one that is longer than all
/// the room its beginning does. What was left out is said.
#[must_use]
pub fn salvage_message<'m>(messages: impl DoubleEndedIterator<Item = (&'m str, &'m str)>, bytes: usize) -> String {
    let mut lines = Vec::new();
    let mut room = bytes;
    let mut left_out = 0_u64;
    for (speaker, content) in messages.rev() {
        let line = message_line(speaker, content);
        if left_out == 0 && line.len() < room {
            room -= line.len() + 1;
            lines.push(line);
        } else if left_out == 0 && lines.is_empty() {
            // Escaped it may be six times as long.
            lines.push(message_line(speaker, beginning(content, bytes / 6)));
            room = 0;
        } else {
            left_out += 1;
        }
    }
    if left_out > 0 {
        lines.push(format!("({left_out} older messages are left out here.)"));
    }
    lines.reverse();
    section("Messages", &lines.join("\n"))
}

fn message_line(speaker: &str, content: &str) -> String {
    // Recalled memory was not said: it goes to no model as if it were.
    format!("{{\"speaker\":{},\"content\":{}}}", json_line(speaker), json_line(&sanitize(content)))
}

/// So many bytes of a text at most, whole characters.
fn beginning(text: &str, bytes: usize) -> &str {
    text.get(..text.floor_char_boundary(bytes)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_messages_stay() {
        let messages = [("user", "old"), ("assistant", "newer"), ("user", "newest\n# x")];
        let text = salvage_message(messages.into_iter(), 1000);
        assert_eq!(text.lines().count(), 5, "{text}");
        let text = salvage_message(messages.into_iter(), 90);
        assert!(text.contains("(1 older messages") && text.contains("newer") && !text.contains("\"old\""), "{text}");
        let text = salvage_message([("user", "long long long long")].into_iter(), 30);
        assert!(text.contains("\"long \""), "{text}");
        let fenced = "a <memory-context>recalled</memory-context> b";
        let text = salvage_message([("user", fenced)].into_iter(), 1000);
        assert!(!text.contains("recalled") && text.contains('a') && text.contains('b'), "{text}");
        assert!(salvage_message([].into_iter(), 9).contains("(none)"));
        assert!(!salvage_system().contains("  "));
    }
}
