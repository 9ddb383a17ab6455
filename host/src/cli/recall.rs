//! `recollex recall`: what an agent's turn is told of memory.

use std::time::Duration;

use recollex::recaller::{self, RequestId};
use recollex::types::Health;
use recollex::workspace::{Omission, Omitted, RecallQuery, Recalled, Recollection};
use recollex::{Recaller, Session};
use serde::Serialize;

use super::args::Recall;
use super::context::Context;
use super::failure::{Exit, Failure};
use super::input;
use super::search::warn_of;
use super::terminal::count;
use super::views::{self, FindingView};

/// The longest text that is read, in bytes. Of a longer one the component looks at the beginning.
const TEXT_BYTES_MAX: u64 = 16 << 20;

/// What a turn is told.
#[derive(Serialize)]
#[cfg_attr(feature = "mcp", derive(schemars::JsonSchema))]
pub struct Document<'a> {
    /// `empty`, `ok`, `degraded`; null while the answer is pending
    health: Option<&'static str>,
    /// There is no answer yet: the request to ask for it by
    #[serde(skip_serializing_if = "Option::is_none")]
    pending: Option<String>,
    /// For the prompt, fenced; empty if there is nothing to tell
    text: &'a str,
    tokens: u64,
    /// An exact count; false: an estimate that is not too low
    exact: bool,
    max_tokens: u64,
    /// What is told, best first
    memories: Vec<Memory<'a>>,
    /// What was found and is not told, and why
    left_out: Vec<LeftOut<'a>>,
    /// What is wrong with memory, so that something may be missing
    findings: Vec<FindingView<'a>>,
}

/// A record or a claim that is told.
#[derive(Serialize)]
#[cfg_attr(feature = "mcp", derive(schemars::JsonSchema))]
struct Memory<'a> {
    kind: &'static str,
    id: &'a str,
    path: &'a str,
    time: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    evidence_number: Option<u32>,
    evidence: &'a [String],
    score: u64,
    tokens: u64,
}

/// A record or a claim that is not.
#[derive(Serialize)]
#[cfg_attr(feature = "mcp", derive(schemars::JsonSchema))]
struct LeftOut<'a> {
    kind: &'static str,
    id: &'a str,
    path: &'a str,
    why: &'static str,
}

impl<'a> From<&'a Recalled> for Memory<'a> {
    fn from(memory: &'a Recalled) -> Self {
        let Recalled { kind, id, path, time, evidence_number, evidence, score, tokens } = memory;
        Self {
            kind: views::kind(*kind),
            id,
            path,
            time,
            evidence_number: *evidence_number,
            evidence,
            score: *score,
            tokens: *tokens,
        }
    }
}

impl<'a> From<&'a Omitted> for LeftOut<'a> {
    fn from(omitted: &'a Omitted) -> Self {
        let Omitted { kind, id, path, why } = omitted;
        Self { kind: views::kind(*kind), id, path, why: omission(*why) }
    }
}

/// `pending`, `repeated`, `no-room`, `blank`
const fn omission(why: Omission) -> &'static str {
    match why {
        Omission::Pending => "pending",
        Omission::Repeated => "repeated",
        Omission::NoRoom => "no-room",
        Omission::Blank => "blank",
    }
}

/// Runs the verb.
pub fn run(args: &Recall, context: &Context) -> Result<Exit, Failure> {
    let text = match args.text.is_empty() {
        true => input::whole(None, "text", TEXT_BYTES_MAX)?.0,
        false => args.text.join(" "),
    };
    let query =
        RecallQuery { text, max_tokens: args.max_tokens.unwrap_or(0), max_memories: args.max_memories.unwrap_or(0) };
    let mut session = context.session()?;
    let recollection = match args.wait_ms {
        None => context.time("recall", || session.recall(&query))?,
        Some(wait) => {
            let recaller = recaller(session)?;
            match context.time("recall", || recaller.recall(query, Duration::from_millis(wait)))? {
                recaller::Recall::Told(recollection) => *recollection,
                recaller::Recall::Pending(id) => {
                    if context.out.json {
                        context.out.document(&pending(id));
                    }
                    context.hint(&format!("No answer within {wait} ms (--wait-ms); nothing is told."));
                    return Ok(Exit::DONE);
                }
            }
        }
    };
    if context.out.json {
        context.out.document(&document(&recollection));
    } else {
        // On a terminal harmless, elsewhere as it is: a prompt takes it.
        recollection.text.lines().for_each(|line| context.out.line(&context.out.look.foreign(line)));
    }
    warn_of(context, &recollection.findings);
    if let Some(hint) = hint(&recollection) {
        context.hint(&hint);
    }
    Ok(if recollection.memories.is_empty() { Exit::NOTHING } else { Exit::DONE })
}

/// Has a session recall on a thread of its own.
pub fn recaller(session: Session) -> Result<Recaller, Failure> {
    let failed = |error| Failure::usage("thread", format!("the system gives no thread: {error}"));
    Recaller::start(session).map_err(failed)
}

/// The JSON document.
pub fn document(recollection: &Recollection) -> Document<'_> {
    Document {
        health: Some(views::health(recollection.health)),
        pending: None,
        text: &recollection.text,
        tokens: recollection.tokens,
        exact: recollection.exact,
        max_tokens: recollection.max_tokens,
        memories: recollection.memories.iter().map(Memory::from).collect(),
        left_out: recollection.left_out.iter().map(LeftOut::from).collect(),
        findings: views::findings(&recollection.findings),
    }
}

/// The JSON document of an answer that is not there yet.
pub fn pending(id: RequestId) -> Document<'static> {
    Document {
        health: None,
        pending: Some(id.to_string()),
        text: "",
        tokens: 0,
        exact: true,
        max_tokens: 0,
        memories: Vec::new(),
        left_out: Vec::new(),
        findings: Vec::new(),
    }
}

/// Why there is nothing, or what is missing.
fn hint(recollection: &Recollection) -> Option<String> {
    let left_out = |why: Omission| recollection.left_out.iter().filter(|one| one.why == why).count() as u64;
    let (pending, no_room) = (left_out(Omission::Pending), left_out(Omission::NoRoom));
    let mut said = Vec::new();
    match (recollection.memories.is_empty(), recollection.health) {
        (true, Health::Empty) => return Some("Memory is empty: there is nothing to recall yet.".to_owned()),
        (true, _) if pending + no_room == 0 => {
            return Some("Nothing in memory has a word of it; memories are found by their words.".to_owned());
        }
        _ => {}
    }
    if pending > 0 {
        said.push(format!("{} not told: pending evidence", count(pending, "memory", "memories")));
    }
    if no_room > 0 {
        let memories = count(no_room, "memory", "memories");
        said.push(format!("{memories} did not fit into {} tokens (--max-tokens)", recollection.max_tokens));
    }
    (!said.is_empty()).then(|| said.join("; ") + ".")
}

#[cfg(test)]
mod tests {
    use recollex::workspace::HitKind;

    use super::*;

    fn recollection(health: Health, why: &[Omission]) -> Recollection {
        let omitted =
            |why: &Omission| Omitted { kind: HitKind::Source, id: "p/t/m".to_owned(), path: "p".to_owned(), why: *why };
        Recollection {
            health,
            text: String::new(),
            tokens: 0,
            exact: true,
            max_tokens: 9,
            memories: Vec::new(),
            left_out: why.iter().map(omitted).collect(),
            findings: Vec::new(),
        }
    }

    #[test]
    fn nothing_to_recall_is_told_apart() {
        let said = |health, why: &[Omission]| hint(&recollection(health, why)).unwrap_or_default();
        assert!(said(Health::Empty, &[]).starts_with("Memory is empty"));
        assert!(said(Health::Ok, &[]).contains("has a word of it"));
        assert_eq!(
            said(Health::Ok, &[Omission::Pending, Omission::NoRoom, Omission::NoRoom]),
            "1 memory not told: pending evidence; 2 memories did not fit into 9 tokens (--max-tokens)."
        );
    }

    #[test]
    fn the_document_has_the_stable_keys() {
        let value = serde_json::to_value(document(&recollection(Health::Degraded, &[Omission::Blank]))).unwrap();
        assert_eq!(value["health"], "degraded");
        assert_eq!(value["left_out"][0]["why"], "blank");
        assert!(value.get("pending").is_none());
        let waits = serde_json::to_value(pending("r-7".parse().unwrap())).unwrap();
        assert_eq!((&waits["pending"], &waits["health"]), (&serde_json::json!("r-7"), &serde_json::Value::Null));
        for key in ["text", "tokens", "exact", "max_tokens", "memories", "findings"] {
            assert!(!value[key].is_null(), "{key}");
        }
    }
}
