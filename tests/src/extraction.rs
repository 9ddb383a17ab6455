//! How well a model writes conversations into memory, by labelled ones (`tests/labelled/README.md`).
//!
//! Knows the labels and how they are counted. A conversation is written as in earnest: by the shipped component, into a workspace
//! of its own.

use std::collections::BTreeMap;
use std::sync::Arc;

use recollex::model::Models;
use recollex::turns::{Heads, Trigger, WriteOptions};
use recollex::types::Tier;
use recollex::{OpenOptions, Runtime, RuntimeOptions, Session};
use serde::{Deserialize, Serialize};
use serde_json::json;

/// Calls of `write` that a small conversation may take.
const CALLS_MAX: usize = 50;

/// A conversation with what should come of it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Labelled {
    id: String,
    language: String,
    turns: Vec<Turn>,
    facts: Vec<Fact>,
    noise: Vec<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Turn {
    id: String,
    role: String,
    speaker: String,
    text: String,
    /// ISO 8601 with an offset.
    time: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Fact {
    say: Vec<Vec<String>>,
    from: Vec<String>,
    not: Vec<String>,
}

/// A block as it came into memory.
#[derive(Debug)]
pub struct Block {
    /// What it says.
    pub text: String,
    /// The message parts of the records it rests on.
    pub from: Vec<String>,
}

/// Counts, over any number of conversations.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// Facts there are.
    pub facts: u64,
    /// Of them, those that a block says.
    pub extracted: u64,
    /// Of them, those whose block cites the right turn.
    pub sourced: u64,
    /// Facts that no block says.
    pub omitted: u64,
    /// Facts that a block says with a wrong word, or of the wrong turns.
    pub misattributed: u64,
    /// Blocks.
    pub blocks: u64,
    /// Blocks that say what nobody should keep.
    pub noise: u64,
    /// Conversations of which nothing was written, by the code of the failure.
    pub failed: BTreeMap<String, u64>,
    /// Requests to the model.
    pub requests: u64,
    /// Tokens, as the provider counts.
    pub tokens_in: u64,
    /// Likewise.
    pub tokens_out: u64,
}

impl Counts {
    fn add(&mut self, other: &Self) {
        for (sum, more) in [
            (&mut self.facts, other.facts),
            (&mut self.extracted, other.extracted),
            (&mut self.sourced, other.sourced),
            (&mut self.omitted, other.omitted),
            (&mut self.misattributed, other.misattributed),
            (&mut self.blocks, other.blocks),
            (&mut self.noise, other.noise),
            (&mut self.requests, other.requests),
            (&mut self.tokens_in, other.tokens_in),
            (&mut self.tokens_out, other.tokens_out),
        ] {
            *sum += more;
        }
        for (code, more) in &other.failed {
            *self.failed.entry(code.clone()).or_default() += more;
        }
    }
}

/// What came of all conversations.
#[derive(Debug, Default, Serialize)]
pub struct Report {
    /// The models that answered, each once.
    pub models: Vec<String>,
    /// All conversations.
    pub all: Counts,
    /// By language.
    pub languages: BTreeMap<String, Counts>,
    /// By conversation.
    pub conversations: BTreeMap<String, Counts>,
}

impl Labelled {
    /// The conversation as a store of lines has it.
    fn lines(&self) -> Result<String, String> {
        let mut before: Option<&str> = None;
        let mut lines = String::new();
        for turn in &self.turns {
            let time: jiff::Timestamp =
                turn.time.parse().map_err(|error| format!("{}, {}: {error}", self.id, turn.id))?;
            let mut line = json!({"id": turn.id, "role": turn.role, "content": turn.text,
                                  "timestamp": time.as_second(), "predecessor": before});
            if !turn.speaker.is_empty() {
                for (key, value) in [
                    ("speaker_kind", "owner"),
                    ("speaker_id", turn.speaker.as_str()),
                    ("speaker_display", turn.speaker.as_str()),
                    ("principal_id", "labelled"),
                    ("authority_tier", "owner"),
                    ("interaction", "interactive"),
                ] {
                    line[key] = json!(value);
                }
            }
            lines.push_str(&format!("{line}\n"));
            before = Some(&turn.id);
        }
        Ok(lines)
    }

    /// Holds memory against the labels.
    #[must_use]
    pub fn count(&self, blocks: &[Block]) -> Counts {
        let texts: Vec<String> = blocks.iter().map(|block| block.text.to_lowercase()).collect();
        let has = |text: &str, word: &String| text.contains(&word.to_lowercase());
        let mut counts = Counts { blocks: blocks.len() as u64, ..Counts::default() };
        for fact in &self.facts {
            counts.facts += 1;
            let says = |text: &str| fact.say.iter().any(|group| group.iter().all(|word| has(text, word)));
            let (mut is_said, mut is_sourced, mut is_wrong) = (false, false, false);
            for (text, block) in texts.iter().zip(blocks).filter(|(text, _)| says(text)) {
                let of_turn = block.from.iter().any(|turn| fact.from.contains(turn));
                is_said = true;
                is_sourced |= of_turn;
                is_wrong |= fact.not.iter().any(|word| has(text, word)) || (!block.from.is_empty() && !of_turn);
            }
            counts.extracted += u64::from(is_said);
            counts.sourced += u64::from(is_sourced);
            counts.omitted += u64::from(!is_said);
            counts.misattributed += u64::from(is_wrong);
        }
        counts.noise = texts.iter().filter(|text| self.noise.iter().any(|word| has(text, word))).count() as u64;
        counts
    }
}

/// Has the model of `models` write all conversations.
///
/// # Errors
/// The host's, or a workspace cannot be made. What a model does wrong is counted.
pub fn run(conversations: &[Labelled], models: Arc<dyn Models>) -> Result<Report, String> {
    let runtime = Runtime::new(RuntimeOptions { models, ..RuntimeOptions::default() }).map_err(in_words)?;
    let mut report = Report::default();
    for conversation in conversations {
        let counts = write(&runtime, conversation, &mut report.models)?;
        report.all.add(&counts);
        report.languages.entry(conversation.language.clone()).or_default().add(&counts);
        report.conversations.insert(conversation.id.clone(), counts);
    }
    Ok(report)
}

fn write(runtime: &Runtime, labelled: &Labelled, models: &mut Vec<String>) -> Result<Counts, String> {
    let directory = tempfile::tempdir().map_err(|error| error.to_string())?;
    let mut session = Session::open(runtime, directory.path(), OpenOptions::new(Tier::Owner)).map_err(in_words)?;
    let mut used = Counts::default();
    let mut conversation = session.open_conversation("labelled", &labelled.id).map_err(in_words)?;
    conversation.push_lines(&mut session, labelled.lines()?.as_bytes()).map_err(in_words)?;
    let heads = Heads { current: None, archived: Vec::new() };
    let findings = conversation.finish(&mut session, &heads).map_err(in_words)?;
    if let Some(finding) = findings.first() {
        return Err(format!("{}: {}", labelled.id, finding.message));
    }
    let options = WriteOptions { trigger: Trigger::Everything, only: Vec::new(), model: None };
    for _ in 0..CALLS_MAX {
        let written = conversation.write(&mut session, &options).map_err(in_words)?;
        if let Some(batch) = &written.batch {
            used.requests += u64::from(batch.requests);
            used.tokens_in += batch.tokens_in;
            used.tokens_out += batch.tokens_out;
            for model in &batch.models {
                if !models.contains(model) {
                    models.push(model.clone());
                }
            }
        }
        conversation.marked(&mut session, &written.to_mark).map_err(in_words)?;
        if let Some(failure) = written.failure {
            *used.failed.entry(failure.code).or_default() += 1;
            break;
        }
        if !written.more {
            break;
        }
    }
    let mut counts = labelled.count(&blocks(&mut session)?);
    counts.add(&used);
    Ok(counts)
}

/// All that is in memory.
fn blocks(session: &mut Session) -> Result<Vec<Block>, String> {
    let mut blocks = Vec::new();
    let mut cursor = None;
    loop {
        let page = session.structure("topics", "", cursor.as_deref(), 0).map_err(in_words)?;
        for listed in page.blocks {
            let account = session.why(&listed.id).map_err(in_words)?;
            let sources = account.citations.into_iter().flat_map(|citation| citation.sources);
            let from = sources.filter_map(|source| source.id?.rsplit('/').next().map(str::to_owned)).collect();
            blocks.push(Block { text: account.text, from });
        }
        match page.next {
            Some(next) => cursor = Some(next),
            None => return Ok(blocks),
        }
    }
}

fn in_words(error: recollex::Error) -> String {
    error.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(text: &str, from: &[&str]) -> Block {
        Block { text: text.to_owned(), from: from.iter().map(|&turn| turn.to_owned()).collect() }
    }

    #[test]
    fn what_is_counted() {
        let labelled: Labelled = serde_json::from_value(json!({
            "id": "x", "language": "en", "turns": [],
            "facts": [
                {"say": [["640", "bolt"]], "from": ["t1"], "not": ["Tom"]},
                {"say": [["Bornholm"], ["the island"]], "from": ["t2"], "not": []},
                {"say": [["mast"]], "from": ["t3"], "not": []},
            ],
            "noise": ["weather"],
        }))
        .unwrap();
        let counts = labelled.count(&[
            block("The BOLTS cost 640 euros.", &["t1"]),
            block("They sail to the island.", &["t9"]),
            block("The weather was fine.", &["t4"]),
        ]);
        let expected = Counts {
            facts: 3,
            extracted: 2,
            sourced: 1,
            omitted: 1,
            misattributed: 1,
            blocks: 3,
            noise: 1,
            ..Counts::default()
        };
        assert_eq!(counts, expected);
        assert_eq!(labelled.count(&[block("Tom says that bolts cost 640.", &["t1"])]).misattributed, 1);
        assert_eq!(labelled.count(&[]).omitted, 3);
    }
}
