//! `recollex salvage`: what is worth keeping of messages that are about to be discarded.

use recollex::turns::Said;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::args::Salvage;
use super::report::failure;
use super::stopping::Stopping;
use crate::cli::context::Context;
use crate::cli::failure::{Exit, Failure};
use crate::cli::input;

/// The longest input, in bytes.
const BYTES_MAX: u64 = 64 << 20;
/// Who speaks in plain text.
const NOBODY: &str = "unknown";

#[derive(Serialize)]
struct Document<'a> {
    text: &'a str,
}

/// Runs the verb.
pub fn run(args: &Salvage, context: &Context) -> Result<Exit, Failure> {
    let mut session = context.session()?;
    let (text, name) = input::whole(args.file.as_deref(), "messages", BYTES_MAX)?;
    let messages = messages(&text).map_err(|failure| failure.at_path(name))?;
    let stopping = Stopping::listen(&session)?;
    let salvaged = match context.time("salvage", || session.salvage(&messages, args.model.as_deref())) {
        Err(recollex::Error::Cancelled) => return Ok(stopping.exit()),
        salvaged => salvaged?,
    };
    if let Some(failed) = &salvaged.failure {
        return Err(failure(failed));
    }
    if context.out.json {
        context.out.document(&Document { text: &salvaged.text });
    } else if !salvaged.text.is_empty() {
        context.out.line(salvaged.text.trim_end_matches('\n'));
    }
    match salvaged.text.is_empty() {
        true => {
            context.hint("Nothing of it is worth keeping.");
            Ok(Exit::NOTHING)
        }
        false => Ok(Exit::DONE),
    }
}

/// JSON Lines if the first line with something on it is a JSON object, and otherwise one message.
fn messages(text: &str) -> Result<Vec<Said>, Failure> {
    #[derive(Deserialize)]
    struct Line {
        #[serde(alias = "role")]
        speaker: Option<String>,
        #[serde(alias = "content", alias = "output")]
        text: Value,
    }
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()).peekable();
    let is_json = lines.peek().is_some_and(|(_, line)| {
        line.trim_start().starts_with('{') && serde_json::from_str::<serde::de::IgnoredAny>(line).is_ok()
    });
    if !is_json {
        let said = (!text.trim().is_empty()).then(|| Said { speaker: NOBODY.to_owned(), text: text.to_owned() });
        return Ok(said.into_iter().collect());
    }
    let mut messages = Vec::new();
    for (at, line) in lines {
        let bad = |why: String| {
            Failure::usage("invalid-json", format!("not a message: {why}"))
                .at_line(at as u64 + 1)
                .next("each line is {\"speaker\",\"text\"}")
        };
        let Line { speaker, text } = serde_json::from_str(line).map_err(|error| bad(error.to_string()))?;
        let Some(text) = said(&text) else { return Err(bad("`text` is neither text nor a list of blocks".to_owned())) };
        if !text.trim().is_empty() {
            messages.push(Said { speaker: speaker.unwrap_or_else(|| NOBODY.to_owned()), text });
        }
    }
    Ok(messages)
}

/// A text, or the texts of a list of blocks.
fn said(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Null => Some(String::new()),
        Value::Array(blocks) => {
            let texts = blocks.iter().filter_map(|block| block.get("text").and_then(Value::as_str));
            Some(texts.collect::<Vec<_>>().join("\n"))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Vec<(String, String)> {
        messages(text).unwrap().into_iter().map(|said| (said.speaker, said.text)).collect()
    }

    #[test]
    fn lines_or_text() {
        let said = |speaker: &str, text: &str| (speaker.to_owned(), text.to_owned());
        assert_eq!(read("plain\n{not json\n"), [said("unknown", "plain\n{not json\n")]);
        assert_eq!(read("{braces} in a sentence"), [said("unknown", "{braces} in a sentence")]);
        assert_eq!(
            read(
                "\n{\"speaker\":\"Ada\",\"text\":\"a\"}\n\n{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"b\"},{\"type\":\"image\"},{\"text\":\"c\"}]}"
            ),
            [said("Ada", "a"), said("user", "b\nc")]
        );
        assert_eq!(read("{\"text\":\"a\"}\n{\"text\":\" \"}\n{\"text\":null}"), [said("unknown", "a")]);
        assert!(read(" \n").is_empty());
        assert_eq!(messages("{\"text\":\"a\"}\nnot json").unwrap_err().line, Some(2));
        assert_eq!(messages("{\"text\":7}").unwrap_err().line, Some(1));
    }
}
