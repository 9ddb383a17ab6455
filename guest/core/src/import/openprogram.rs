//! Sessions of OpenProgram: a file a node, `<session>/history/<seq>-<role>-<id>.json`.
//!
//! ```text
//! {"id", "created_at": SECONDS, "seq", "role": "user" | "llm" | "code", "output": TEXT | [{"type": "text", "text"}],
//!  "predecessor": ID, "metadata": {"speaker_kind", "speaker_id", "speaker_display", "principal_id", "authority_tier",
//!  "interaction", "authority_schema", "display", "source", "rewound"}}
//! ```
//!
//! What is eligible, and what it becomes, is as the program itself archives it, so that what it has archived is the same
//! record (decision D05). One node without authority is left out, and the rest goes on (D25).

use super::draft::{Node, Parent, Turn, Vouched, fill};
use super::name::{id_part, message_part};
use super::said::{Said, written};
use super::skip::SkipReason;
use super::value::{Raw, fields, is_absent, is_true, items, name, number, text};
use super::{Options, Part};
use crate::source::{NewRecord, Trust};
use crate::text::{identity_part, is_whitespace};
use crate::time::Zone;
use std::borrow::Cow;

/// The session that a node file belongs to, from its path. None if it is no node file's.
pub(super) fn session(path: &str) -> Option<&str> {
    let mut parts = path.rsplit('/');
    let (file, directory, session) = (parts.next()?, parts.next()?, parts.next()?);
    (file.ends_with(".json") && directory == "history" && !session.is_empty()).then_some(session)
}

/// Reads a node. With it, why it is left out, if it is.
pub(super) fn node(raw: Raw<'_>, options: &Options) -> Result<(Node, Option<SkipReason>), SkipReason> {
    let keys = ["id", "created_at", "seq", "role", "output", "predecessor", "metadata"];
    let [id, time, seq, role, output, predecessor, metadata] = fields(raw, keys).ok_or(SkipReason::Malformed)?;
    let id = id_part(id, Part::Message).ok_or(SkipReason::NoId)?;
    let parent = id_part(predecessor, Part::Message).map_or(Parent::Start, Parent::Node);
    let (turn, skipped) = match turn(Utterance { time, role, content: output, about: metadata }, &options.zone) {
        Ok(turn) => (Some(turn), None),
        Err(reason) => (None, Some(reason)),
    };
    // The cast saturates.
    let rank = seq.and_then(number).unwrap_or(f64::MAX) as i64;
    Ok((Node { id, parent, turn, rank }, skipped))
}

/// Where a node says what was said, when, by whom.
pub(crate) struct Utterance<'a> {
    pub(crate) time: Option<Raw<'a>>,
    pub(crate) role: Option<Raw<'a>>,
    /// A text, or blocks of which those of the type `text` are texts.
    pub(crate) content: Option<Raw<'a>>,
    /// The object with the fields of authority, `display`, `source` and `rewound`.
    pub(crate) about: Option<Raw<'a>>,
}

/// What a person said or the assistant answered, as the record it becomes: all but provider, thread and place. Or why it is
/// none of that. `id` is the node's; the record's is the part that an import makes of it.
pub(crate) fn spoken(id: &str, utterance: Utterance<'_>, zone: &Zone) -> Result<NewRecord, SkipReason> {
    let mut record = NewRecord::default();
    fill(&mut record, turn(utterance, zone)?, &message_part(id).unwrap_or_default(), Trust::Trusted);
    Ok(record)
}

fn turn(utterance: Utterance<'_>, zone: &Zone) -> Result<Turn, SkipReason> {
    let Utterance { time, role, content, about } = utterance;
    let role = match name(role).as_deref() {
        Some("user") => "user",
        Some("llm" | "assistant") => "assistant",
        Some("code" | "tool") => return Err(SkipReason::ToolCall),
        _ => return Err(SkipReason::UnknownRole),
    };
    let about = about.filter(|about| about.get().starts_with('{'));
    let [display, source, rewound, schema] = match about {
        Some(about) => {
            fields(about, ["display", "source", "rewound", "authority_schema"]).ok_or(SkipReason::Malformed)?
        }
        None => [None; 4],
    };
    if name(display).as_deref() == Some("runtime")
        || matches!(name(source).as_deref(), Some("job_followup" | "merge_turn"))
    {
        return Err(SkipReason::ProgramMessage);
    }
    if is_true(rewound) {
        return Err(SkipReason::Rewound);
    }
    let mut said = Said::default();
    if let Some(content) = content {
        match text(content) {
            Some(text) => said.text(&text),
            None => drop(items(content, &mut |block| {
                let [kind, text] = fields(block, ["type", "text"]).unwrap_or_default();
                if name(kind).as_deref() == Some("text") {
                    name(text).iter().for_each(|text| said.text(text));
                }
                true
            })),
        }
    }
    let text = said.whole().ok_or(SkipReason::Empty)?;
    let vouched = vouched(about, is_absent(schema))?;
    let time = written(time, zone);
    Ok(Turn { role: Cow::Borrowed(role), text, time, vouched: Some(Box::new(vouched)) })
}

/// Who said it on whose authority: all six fields, or none of them where the node does not say that it has them.
fn vouched(about: Option<Raw<'_>>, is_older: bool) -> Result<Vouched, SkipReason> {
    let keys = ["speaker_kind", "speaker_id", "speaker_display", "principal_id", "authority_tier", "interaction"];
    let found = about.and_then(|about| fields(about, keys)).unwrap_or_default();
    let given = found.map(|field| field.and_then(text).filter(|text| !text.chars().all(is_whitespace)));
    let owned = |text: &Option<Cow<'_, str>>| text.as_deref().map(str::to_owned);
    let [kind, id, display, principal, tier, interaction] = &given;
    match tier.as_deref() {
        Some(word @ ("owner" | "paired" | "mcp_browser"))
            if [kind, id, display, principal, interaction].into_iter().all(Option::is_some) =>
        {
            if word == "mcp_browser" {
                return Err(SkipReason::NotPermitted);
            }
            // The program calls a name without a visible character unknown.
            let display = owned(display).filter(|display| !identity_part(display).is_empty());
            Ok(Vouched {
                speaker_id: owned(id),
                speaker_display: Some(display.unwrap_or_else(|| crate::source::UNKNOWN.to_owned())),
                kind: owned(kind),
                principal: owned(principal),
                tier: Some(word.to_owned()),
                trust: Some(Trust::Trusted.as_str().to_owned()),
            })
        }
        _ if is_older => Ok(Vouched { speaker_id: owned(id), speaker_display: owned(display), ..Vouched::default() }),
        _ => Err(SkipReason::NoAuthority),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::import::value::document;

    #[test]
    fn a_turn_and_an_import_of_it_are_one_record() {
        for id in ["m 1", "[a]", "%b", "\u{202e}"] {
            let json = format!(r#"{{"id":"{id}","role":"user","output":"x"}}"#);
            let raw = document(&json).unwrap();
            let [role, content] = fields(raw, ["role", "output"]).unwrap();
            let utterance = Utterance { time: None, role, content, about: None };
            let record = spoken(id, utterance, &Zone::utc()).unwrap();
            assert_eq!(Some(record.id), id_part(fields(raw, ["id"]).unwrap()[0], Part::Message), "{id}");
        }
    }
}
