//! A session of Claude Code: JSON Lines, a line for everything that happened.
//!
//! ```text
//! {"type": "user" | "assistant" | "system" | "attachment" | …, "uuid", "parentUuid", "sessionId", "timestamp",
//!  "isSidechain", "isMeta", "isCompactSummary", "isVisibleInTranscriptOnly", "isApiErrorMessage", "logicalParentUuid",
//!  "origin": {"kind"}, "message": {"role", "model", "content": TEXT | [BLOCK]}}
//! {"type": "summary", "summary", "leafUuid"}      {"type": "custom-title", "customTitle", "sessionId"}
//! ```
//!
//! A conversation is a session id: a file that goes on with another session holds both. Lines hang together by
//! `parentUuid`, those that are not kept included; a new beginning after the context was made smaller says in
//! `logicalParentUuid` what it goes on from. Nobody documents the form: it is taken from sessions of 2025 and 2026.

use super::Part;
use super::claude::Blocks;
use super::draft::{Node, Parent, Turn};
use super::name::id_part;
use super::said::{Said, instant};
use super::skip::SkipReason;
use super::value::{Raw, fields, is_true, items, name, text};
use std::borrow::Cow;

/// How lines of the program's own begin that stand as if the person had written them: what a command of theirs printed,
/// and notices.
const PROGRAM_TEXTS: &[&str] = &[
    "<local-command-stdout>",
    "<local-command-stderr>",
    "<local-command-caveat>",
    "<bash-stdout>",
    "<bash-stderr>",
    "<task-notification>",
    "[Request interrupted by user",
];

/// What a line says.
pub(super) enum Line {
    /// Somebody may have said something in this session.
    Node { session: String, node: Node, skipped: Option<SkipReason> },
    /// What the conversation that ends with this message is called.
    Summary { leaf: String, title: String },
    /// What this session is called.
    Title { session: String, title: String },
    /// Nothing of a conversation.
    Nothing,
    /// Something that should be told.
    Bad(SkipReason),
}

/// Reads a line.
pub(super) fn line(raw: Raw<'_>) -> Line {
    let keys = ["type", "uuid", "parentUuid", "logicalParentUuid", "sessionId", "message"];
    let Some([kind, id, parent, logical, session, message]) = fields(raw, keys) else {
        return Line::Bad(SkipReason::Malformed);
    };
    let kind = name(kind).unwrap_or_default();
    if let Some(titled) = title(raw, &kind, session) {
        return titled;
    }
    let is_message = message.is_some_and(|message| message.get() != "null");
    let (Some(id), Some(session)) = (id_part(id, Part::Message), id_part(session, Part::Thread)) else {
        return if is_message { Line::Bad(SkipReason::NoId) } else { Line::Nothing };
    };
    let parent = id_part(parent, Part::Message).or_else(|| id_part(logical, Part::Message));
    let parent = parent.map_or(Parent::Start, Parent::Node);
    let turn = turn(raw, &kind, message);
    let (turn, skipped) = match turn {
        Ok(turn) => (turn, None),
        Err(reason) => (None, Some(reason)),
    };
    Line::Node { session, node: Node { id, parent, turn, rank: 0 }, skipped }
}

fn title(raw: Raw<'_>, kind: &str, session: Option<Raw<'_>>) -> Option<Line> {
    if !matches!(kind, "summary" | "custom-title" | "ai-title") {
        return None;
    }
    let [summary, leaf, custom, made] = fields(raw, ["summary", "leafUuid", "customTitle", "aiTitle"])?;
    let line = match kind {
        "summary" => match (id_part(leaf, Part::Message), name(summary)) {
            (Some(leaf), Some(title)) => Line::Summary { leaf, title: title.into_owned() },
            _ => Line::Nothing,
        },
        _ => match (id_part(session, Part::Thread), name(custom).or_else(|| name(made))) {
            (Some(session), Some(title)) => Line::Title { session, title: title.into_owned() },
            _ => Line::Nothing,
        },
    };
    Some(line)
}

/// What was said; none if the line only holds others together.
fn turn(raw: Raw<'_>, kind: &str, message: Option<Raw<'_>>) -> Result<Option<Turn>, SkipReason> {
    let keys = [
        "timestamp",
        "isSidechain",
        "isMeta",
        "isCompactSummary",
        "isVisibleInTranscriptOnly",
        "isApiErrorMessage",
        "origin",
        "attachment",
    ];
    let [time, sidechain, meta, compact, transcript, failed, origin, attachment] =
        fields(raw, keys).ok_or(SkipReason::Malformed)?;
    let (role, content) = match (kind, message) {
        ("user", Some(message)) => ("user", message),
        ("assistant", Some(message)) => ("assistant", message),
        // What the person typed while the model was at work.
        ("attachment", _) => match attachment.and_then(queued) {
            Some(prompt) => ("user", prompt),
            None => return Ok(None),
        },
        ("system", _) => return Err(SkipReason::ProgramMessage),
        (_, Some(_)) => return Err(SkipReason::UnknownRole),
        _ => return Ok(None),
    };
    if is_true(sidechain) {
        return Err(SkipReason::Sidechain);
    }
    if is_true(compact) || is_true(transcript) {
        return Err(SkipReason::Summary);
    }
    let kind_of_origin = origin.and_then(|origin| fields(origin, ["kind"])).and_then(|[kind]| name(kind));
    let is_from_elsewhere = role == "user" && kind_of_origin.is_some_and(|kind| kind != "human");
    if is_true(meta) || is_true(failed) || is_from_elsewhere {
        return Err(SkipReason::ProgramMessage);
    }
    let (said, blocks, model) = read(content);
    if model.as_deref() == Some("<synthetic>") {
        return Err(SkipReason::ProgramMessage);
    }
    let text = said.whole().ok_or(blocks.other.unwrap_or(SkipReason::Empty))?;
    if role == "user" && PROGRAM_TEXTS.iter().any(|start| text.trim_start().starts_with(start)) {
        return Err(SkipReason::ProgramMessage);
    }
    Ok(Some(Turn { role: Cow::Borrowed(role), text, time: instant(time), vouched: None }))
}

/// The prompt of an attachment that is one.
fn queued(attachment: Raw<'_>) -> Option<Raw<'_>> {
    let [kind, prompt, mode, origin] = fields(attachment, ["type", "prompt", "commandMode", "origin"])?;
    let is_person = origin
        .and_then(|origin| fields(origin, ["kind"]))
        .and_then(|[kind]| name(kind))
        .is_none_or(|kind| kind == "human");
    let is_prompt = name(mode).is_none_or(|mode| mode == "prompt");
    (name(kind).as_deref() == Some("queued_command") && is_prompt && is_person).then_some(prompt)?
}

/// What a message says: an object with `content`, or the content itself.
fn read(message: Raw<'_>) -> (Said, Blocks, Option<Cow<'_, str>>) {
    let (content, model) = match fields(message, ["content", "model"]) {
        Some([content, model]) => (content, name(model)),
        None => (Some(message), None),
    };
    let (mut said, mut blocks) = (Said::default(), Blocks::default());
    if let Some(content) = content {
        match text(content) {
            Some(text) => said.text(&text),
            None => drop(items(content, &mut |block| {
                blocks.add(&mut said, block);
                true
            })),
        }
    }
    (said, blocks, model)
}
