//! `conversations.json` of a ChatGPT export: a tree of messages for each conversation.
//!
//! ```text
//! [ { "conversation_id" (or "id"), "title", "current_node",
//!     "mapping": { ID: { "parent": ID, "message": null |
//!         { "author": {"role"}, "create_time", "recipient", "channel", "weight",
//!           "content": {"content_type", "parts" | "text"},
//!           "metadata": {"attachments": [{"id", "name"}], "is_visually_hidden_from_conversation"} } } } } ]
//! ```
//!
//! Taken from exports of 2023 to 2026: newer ones add fields, kinds of content and the object around the list, and split
//! the list over several files.

use super::draft::{Draft, Node, Parent, Turn, problem};
use super::elements::Shape;
use super::name::{id_part, part};
use super::said::{Said, attachments, instant};
use super::skip::SkipReason;
use super::value::{Raw, entries, fields, is_true, items, name, number, text};
use super::{NOT_A_CONVERSATION, Options, Part};
use crate::source::{Limits, Problem};
use std::borrow::Cow;
use std::collections::BTreeSet;

pub(super) const SHAPE: Shape = Shape { mark: "mapping", list: "conversations" };

/// Makes a draft of a conversation.
pub(super) fn conversation(
    raw: Raw<'_>,
    offset: u64,
    provider: &str,
    options: &Options,
    limits: &Limits,
) -> Result<Draft, Problem> {
    let keys = ["conversation_id", "id", "title", "current_node", SHAPE.mark];
    let Some([conversation_id, id, title, current, mapping]) = fields(raw, keys) else {
        return Err(problem(NOT_A_CONVERSATION, "this is no conversation: an object with a `mapping` is expected"));
    };
    let Some(mapping) = mapping.filter(|mapping| mapping.get().starts_with('{')) else {
        return Err(problem(NOT_A_CONVERSATION, "this is no conversation: it has no `mapping` of messages"));
    };
    let thread = id_part(conversation_id, Part::Thread).or_else(|| id_part(id, Part::Thread));
    let Some(thread) = thread else {
        return Err(problem("conversation-without-id", "the conversation has no id, so it could not be known again"));
    };
    let mut draft = Draft::new(offset, provider, &thread, options);
    draft.title = name(title).map(Cow::into_owned);
    draft.main = id_part(current, Part::Message);
    entries(mapping, &mut |id, node| {
        add(&mut draft, id.bytes(), node, limits);
        !draft.is_given_up()
    });
    Ok(draft)
}

fn add(draft: &mut Draft, id: &[u8], node: Raw<'_>, limits: &Limits) {
    let Some(id) = part(id, Part::Message).map(Cow::into_owned) else {
        return draft.skips.add(None, SkipReason::NoId);
    };
    let Some([parent, message]) = fields(node, ["parent", "message"]) else {
        return draft.skip(id, Parent::Start, SkipReason::Malformed, limits);
    };
    let parent = id_part(parent, Part::Message).map_or(Parent::Start, Parent::Node);
    // The root of a conversation, and what was never finished, has no message.
    let Some(message) = message.filter(|message| message.get() != "null") else {
        return draft.push(Node { id, parent, turn: None, rank: 0 }, limits);
    };
    match turn(message) {
        Ok(turn) => draft.push(Node { id, parent, turn: Some(turn), rank: 0 }, limits),
        Err(reason) => draft.skip(id, parent, reason, limits),
    }
}

fn turn(message: Raw<'_>) -> Result<Turn, SkipReason> {
    let keys = ["author", "create_time", "content", "weight", "recipient", "channel", "metadata"];
    let [author, time, content, weight, recipient, channel, metadata] =
        fields(message, keys).ok_or(SkipReason::Malformed)?;
    let [role] = author.and_then(|author| fields(author, ["role"])).ok_or(SkipReason::UnknownRole)?;
    let role = match name(role).as_deref() {
        Some("user") => "user",
        Some("assistant") => "assistant",
        Some("system") => return Err(SkipReason::SystemPrompt),
        Some("tool") => return Err(SkipReason::ToolResult),
        _ => return Err(SkipReason::UnknownRole),
    };
    let [kind, parts, plain] =
        content.and_then(|content| fields(content, ["content_type", "parts", "text"])).ok_or(SkipReason::Empty)?;
    let [hidden, attached] = metadata
        .and_then(|metadata| fields(metadata, ["is_visually_hidden_from_conversation", "attachments"]))
        .unwrap_or_default();
    let is_known = match name(kind).as_deref() {
        Some("text" | "multimodal_text") => true,
        Some("user_editable_context" | "model_editable_context") => return Err(SkipReason::SystemPrompt),
        Some("thoughts" | "reasoning_recap") => return Err(SkipReason::Thinking),
        Some("code") => return Err(SkipReason::ToolCall),
        Some(
            "execution_output"
            | "system_error"
            | "tether_browsing_display"
            | "tether_browsing_code"
            | "tether_quote"
            | "sonic_webpage",
        ) => return Err(SkipReason::ToolResult),
        _ => false,
    };
    if name(channel).as_deref() == Some("analysis") {
        return Err(SkipReason::Thinking);
    }
    if name(recipient).is_some_and(|recipient| recipient != "all") {
        return Err(SkipReason::ToolCall);
    }
    if is_true(hidden) || weight.and_then(number) == Some(0.0) {
        return Err(SkipReason::Hidden);
    }
    let mut said = Said::default();
    attachments(&mut said, attached, ["name", "id"]);
    match parts {
        Some(parts) => {
            let named = ids(attached);
            items(parts, &mut |part| {
                add_part(&mut said, part, &named);
                true
            });
        }
        None => plain.and_then(text).iter().for_each(|text| said.text(text)),
    }
    let text = said.whole().ok_or(if is_known { SkipReason::Empty } else { SkipReason::UnknownContent })?;
    Ok(Turn { role: Cow::Borrowed(role), text, time: instant(time), vouched: None })
}

/// A part is a text, or an object: a transcript of speech, or a pointer to something that was shown or heard. `named`: what has
/// a name among the attachments.
fn add_part(said: &mut Said, part: Raw<'_>, named: &BTreeSet<String>) {
    if let Some(text) = text(part) {
        return said.text(&text);
    }
    let Some([kind, text_, pointer]) = fields(part, ["content_type", "text", "asset_pointer"]) else { return };
    if let Some(text) = name(text_) {
        return said.text(&text);
    }
    let kind = name(kind).unwrap_or_default();
    let pointer = name(pointer).unwrap_or_default();
    // `sediment://file_0123`, or `file-service://…` before 2025.
    let id = pointer.rsplit_once("://").map_or(&*pointer, |(_, id)| id);
    if !kind.ends_with("asset_pointer") || named.contains(id) {
        return;
    }
    let what = ["image", "audio", "video"].into_iter().find(|what| kind.contains(what));
    said.attached(what.unwrap_or("file"));
}

/// The ids in a list of attachments.
fn ids(attached: Option<Raw<'_>>) -> BTreeSet<String> {
    let mut ids = BTreeSet::new();
    if let Some(attached) = attached {
        items(attached, &mut |item| {
            ids.extend(fields(item, ["id"]).and_then(|[id]| name(id)).map(Cow::into_owned));
            true
        });
    }
    ids
}
