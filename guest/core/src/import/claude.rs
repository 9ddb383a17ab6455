//! `conversations.json` of a Claude export: a list of messages for each conversation.
//!
//! ```text
//! [ { "uuid", "name", "current_leaf_message_uuid",
//!     "chat_messages": [ { "uuid", "sender": "human" | "assistant", "created_at", "parent_message_uuid",
//!         "content": [ {"type": "text", "text"} | {"type": "thinking" | "tool_use" | "tool_result" | …} ],
//!         "text", "attachments": [{"file_name"}], "files": [{"file_name"}] } ] } ]
//! ```
//!
//! Older exports have `text` only; newer ones have `content`, and then `text` is a rendering of it with words of the
//! program's own. Messages say what they come behind since branches are exported; where none of a conversation does, each
//! comes behind the one before it.

use super::draft::{Draft, Node, Parent, Turn, problem};
use super::elements::Shape;
use super::name::id_part;
use super::said::{Said, attachments, instant};
use super::skip::SkipReason;
use super::value::{Raw, fields, items, name, text};
use super::{NOT_A_CONVERSATION, Options, Part};
use crate::source::{Limits, Problem};
use std::borrow::Cow;

pub(super) const SHAPE: Shape = Shape { mark: "chat_messages", list: "conversations" };

/// What the first message of a conversation comes behind, where messages say such a thing.
const ROOT: &str = "00000000-0000-4000-8000-000000000000";

/// Makes a draft of a conversation.
pub(super) fn conversation(
    raw: Raw<'_>,
    offset: u64,
    provider: &str,
    options: &Options,
    limits: &Limits,
) -> Result<Draft, Problem> {
    let keys = ["uuid", "name", "current_leaf_message_uuid", SHAPE.mark];
    let Some([id, title, current, messages]) = fields(raw, keys) else {
        return Err(problem(NOT_A_CONVERSATION, "this is no conversation: an object with `chat_messages` is expected"));
    };
    let Some(messages) = messages.filter(|messages| messages.get().starts_with('[')) else {
        return Err(problem(NOT_A_CONVERSATION, "this is no conversation: it has no list `chat_messages`"));
    };
    let Some(thread) = id_part(id, Part::Thread) else {
        return Err(problem(
            "conversation-without-id",
            "the conversation has no `uuid`, so it could not be known again",
        ));
    };
    let mut draft = Draft::new(offset, provider, &thread, options);
    draft.title = name(title).map(Cow::into_owned);
    draft.main = id_part(current, Part::Message);
    let mut any_parent = false;
    items(messages, &mut |message| {
        any_parent |= add(&mut draft, message, limits);
        !draft.is_given_up()
    });
    if !any_parent {
        draft.chain();
    }
    Ok(draft)
}

/// Adds a message; says whether it says what it comes behind.
fn add(draft: &mut Draft, message: Raw<'_>, limits: &Limits) -> bool {
    let keys = ["uuid", "parent_message_uuid"];
    let Some([id, parent]) = fields(message, keys) else {
        draft.skips.add(None, SkipReason::Malformed);
        return false;
    };
    let Some(id) = id_part(id, Part::Message) else {
        draft.skips.add(None, SkipReason::NoId);
        return false;
    };
    let said_parent = id_part(parent, Part::Message);
    let any_parent = said_parent.is_some();
    let parent = match said_parent {
        Some(parent) if parent != ROOT => Parent::Node(parent),
        _ => Parent::Start,
    };
    match turn(message) {
        Ok(turn) => draft.push(Node { id, parent, turn: Some(turn), rank: 0 }, limits),
        Err(reason) => draft.skip(id, parent, reason, limits),
    }
    any_parent
}

fn turn(message: Raw<'_>) -> Result<Turn, SkipReason> {
    let keys = ["sender", "created_at", "content", "text", "attachments", "files", "files_v2"];
    let [sender, time, content, plain, attached, files, files_v2] =
        fields(message, keys).ok_or(SkipReason::Malformed)?;
    let role = match name(sender).as_deref() {
        Some("human" | "user") => "user",
        Some("assistant") => "assistant",
        Some("system") => return Err(SkipReason::SystemPrompt),
        _ => return Err(SkipReason::UnknownRole),
    };
    let mut said = Said::default();
    let mut blocks = Blocks::default();
    if let Some(content) = content {
        items(content, &mut |block| {
            blocks.add(&mut said, block);
            true
        });
    }
    if !blocks.any_text && blocks.other.is_none() {
        plain.and_then(text).iter().for_each(|text| said.text(text));
    }
    for list in [attached, files, files_v2] {
        attachments(&mut said, list, ["file_name", "name"]);
    }
    let text = said.whole().ok_or(blocks.other.unwrap_or(SkipReason::Empty))?;
    Ok(Turn { role: Cow::Borrowed(role), text, time: instant(time), vouched: None })
}

/// What the blocks of a message are. Claude Code writes the same ones.
#[derive(Default)]
pub(super) struct Blocks {
    pub(super) any_text: bool,
    /// Why there is no text, where there is none.
    pub(super) other: Option<SkipReason>,
}

impl Blocks {
    /// Adds what a block says.
    pub(super) fn add(&mut self, said: &mut Said, block: Raw<'_>) {
        let Some([kind, plain, title, file]) = fields(block, ["type", "text", "title", "file_name"]) else {
            // A list of plain texts.
            if let Some(text) = text(block) {
                self.any_text |= !text.is_empty();
                said.text(&text);
            }
            return;
        };
        match name(kind).as_deref() {
            Some("thinking" | "redacted_thinking") => self.note(SkipReason::Thinking),
            Some("tool_use" | "server_tool_use" | "mcp_tool_use") => self.note(SkipReason::ToolCall),
            Some("image") => said.attached(name(file).as_deref().unwrap_or("image")),
            Some("document") => said.attached(name(title).or_else(|| name(file)).as_deref().unwrap_or("document")),
            Some(kind) if kind.ends_with("tool_result") => self.note(SkipReason::ToolResult),
            _ => {
                if let Some(text) = name(plain) {
                    self.any_text = true;
                    said.text(&text);
                }
            }
        }
    }

    /// Of several reasons the first is told.
    fn note(&mut self, reason: SkipReason) {
        self.other.get_or_insert(reason);
    }
}
