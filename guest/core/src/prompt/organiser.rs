//! What a model is told that puts memory in order.

use super::rules::{bounds, reading_rules, tool_rules, topic_contract};
use super::stored::section;

/// The organiser's orders.
#[must_use]
pub fn organiser_system() -> String {
    let task = "You keep the long-term memory of an agent in order. You are given topics that need it, why they do, and their blocks. Change \
                where things stand and how they are put, never what is known.";
    let rules = "What to do:\n\
                 - A topic about several subjects, or one that has outgrown its size: move blocks that belong together into a topic of their own, \
                 or under headings of their own. Move all that belongs there.\n\
                 - Blocks that say the same: update one so that it says all of it and has the source_refs of all of them, and delete the others in \
                 the same submission.\n\
                 - Blocks that are alike and differ in a fact (a number, a name, a day, a not) do not say the same: leave both.\n\
                 - Blocks of sibling branches of a conversation are never merged, however alike they are: each was said where the \
                 other was not.\n\
                 - A link that leads nowhere: update the block so that it names the block that is meant, as [text](topics/name.md#^id), or says it \
                 in words.\n\
                 - topics/core.md is always shown to the agent, from its beginning on, as far as there is room: who the people are, \
                 what is going on now, what must never be forgotten. You are told what did not fit. Move what matters least out of it into \
                 the topic it belongs to, and what must be seen further up.\n\
                 Every update keeps the source_refs of what it rewrites. Create nothing that is not made of blocks you delete. If a topic is fine \
                 as it is, leave it: finish, and say why.";
    [task, reading_rules(), rules, topic_contract(), bounds(), tool_rules()].join("\n\n")
}

/// What the organiser is given: the topics there are, why some of them need it (a line each), and their blocks.
#[must_use]
pub fn organiser_message(listing: &str, needs: &str, blocks: &str) -> String {
    [
        section("Topics, and the beginnings of their blocks", listing),
        section("What needs to be put in order, and why", needs),
        section("Its blocks", blocks),
        "Look up what you need, then submit your changes, or finish.".to_owned(),
    ]
    .join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_organiser_is_told_what_must_not_be_merged() {
        let text = organiser_system();
        for word in ["sibling branches", "leave both", "did not fit", "source_refs of all"] {
            assert!(text.contains(word), "{word}");
        }
        assert!(!text.contains("  "), "{text}");
        assert!(organiser_message("", "| x", "").contains("why\n\n| x\n"));
    }
}
