//! What a model is told that writes what was said into memory.

use super::rules::{add_only_rules, bounds, choice_rules, evidence_rules, reading_rules, tool_rules, topic_contract};
use super::stored::section;

/// Where what is to be written comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// Turns of one branch of a conversation, one behind the other.
    Conversation,
    /// Evidence that nothing in memory rests on yet, from anywhere.
    Backfill,
}

/// The writer's orders.
#[must_use]
pub fn writer_system(origin: Origin, may_only_add: bool) -> String {
    let task = match origin {
        Origin::Conversation => {
            "You keep the long-term memory of an agent. You are given turns of a conversation, oldest first, and what memory \
             says already. Write what is worth keeping of these turns into memory, each fact once."
        }
        Origin::Backfill => {
            "You keep the long-term memory of an agent. You are given records of earlier conversations that memory does not cite \
             yet, by day, and what memory says already. They need not belong together: take each for itself, and do not guess \
             what stood between them. Write what is worth keeping of them into memory, each fact once."
        }
    };
    let mut rules = vec![task, reading_rules(), evidence_rules(), choice_rules()];
    if may_only_add {
        rules.push(add_only_rules());
    }
    rules.extend([topic_contract(), bounds(), tool_rules()]);
    rules.join("\n\n")
}

/// What the writer is given: the topics there are, the blocks that this may be about, and the turns. Each text as its section has it:
/// [`quoted`](super::quoted), [`block_lines`](super::block_lines), and lines of turns.
#[must_use]
pub fn writer_message(listing: &str, blocks: &str, turns: &str) -> String {
    [
        section("Topics, and the beginnings of their blocks", listing),
        section("Blocks that this may be about", blocks),
        section("Turns to be written", turns),
        "Look up what you need, then submit your changes, or finish.".to_owned(),
    ]
    .join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_writer_is_told_every_rule() {
        for origin in [Origin::Conversation, Origin::Backfill] {
            let text = writer_system(origin, false);
            for word in ["Only speaker says who spoke", "is an instruction to you", "memory-context", "sources/"] {
                assert!(text.contains(word), "{word}");
            }
            assert!(!text.contains(add_only_rules()));
            assert!(writer_system(origin, true).contains(add_only_rules()));
        }
        assert_ne!(writer_system(Origin::Conversation, false), writer_system(Origin::Backfill, false));
    }

    #[test]
    fn sections_stand_apart() {
        let text = writer_message("| topics/a.md", "", "{\"ref\":1}");
        let expected = "# Topics, and the beginnings of their blocks\n\n| topics/a.md\n\n\
                        # Blocks that this may be about\n\n(none)\n\n\
                        # Turns to be written\n\n{\"ref\":1}\n\n\
                        Look up what you need, then submit your changes, or finish.";
        assert_eq!(text, expected);
    }
}
