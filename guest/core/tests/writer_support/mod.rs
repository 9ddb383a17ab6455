//! Runs of a writer over a workspace in memory, with a model that answers from a script.

#![allow(dead_code, reason = "each test program uses a part of it")]

use crate::update_support::{Memory, REVISION};
use recollex_core::ids::TopicPath;
use recollex_core::prompt::{Origin, ShownBlock};
use recollex_core::topic::{Check, TopicRef};
use recollex_core::turns::backfill::{Candidate, Part as EvidencePart};
use recollex_core::update::{self, Caller, Rejection};
use recollex_core::writer::{
    Answer, Evidence, Ground, Message, ModelError, Outcome, Part, Read, Reply, Request, Step, StopReason, Submitted,
    Task, ToolCall, Writer, WriterLimits,
};
use std::collections::VecDeque;

pub const NOTE: &str = "# Note\n\nThe hall costs 640 euros.[^e-0000000001] ^note0001\n\n[^e-0000000001]: Time: `2026-01-01`; Sources: [one](../sources/D1.md#d1-1)\n";

pub fn note() -> Memory {
    Memory::new(&[("topics/note.md", NOTE)])
}

/// Evidence under these handles, said by Ada on one day.
pub fn evidence(turns: &[(&str, &str)], limits: &WriterLimits) -> Evidence {
    let candidates: Vec<Candidate> = turns
        .iter()
        .map(|(reference, text)| Candidate {
            reference: (*reference).to_owned(),
            path: "sources/D1.md".to_owned(),
            line: 1,
            offset: 0,
            length: text.len() as u64,
            date: Some("2026-03-01".to_owned()),
            speaker: "Ada".to_owned(),
        })
        .collect();
    let turns = candidates.iter().zip(turns).map(|(candidate, (_, text))| (candidate, *text)).collect();
    Evidence::of_parts(&[EvidencePart { day: "2026-03-01", turns }], |text| text.len() as u64 / 4, limits)
}

pub fn blocks(memory: &Memory) -> Vec<ShownBlock> {
    let of = |(path, text): (&String, &String)| {
        let path = TopicPath::parse(path).expect("a topic");
        Check::new(path, TopicRef::parse(text), &memory.archive)
            .blocks()
            .map(|block| ShownBlock::of(&block))
            .collect::<Vec<_>>()
    };
    memory.topics.iter().flat_map(of).collect()
}

pub fn ground(blocks: Vec<ShownBlock>) -> Ground {
    Ground { revision: REVISION.to_owned(), listing: "topics/note.md".to_owned(), blocks, ..Ground::default() }
}

pub fn task(turns: &[(&str, &str)], blocks: Vec<ShownBlock>) -> Task<'static> {
    let limits = WriterLimits::default();
    Task::write(Origin::Conversation, evidence(turns, &limits), ground(blocks), &limits)
}

pub fn reply(parts: Vec<Part>) -> Result<Reply, ModelError> {
    let stop =
        if parts.iter().any(|part| matches!(part, Part::Call(_))) { StopReason::Tools } else { StopReason::Done };
    Ok(Reply { parts, stop, tokens_in: Some(100), tokens_out: Some(10), model: "scripted".to_owned() })
}

pub fn call(id: &str, name: &str, arguments: &str) -> Part {
    Part::Call(ToolCall { id: id.to_owned(), name: name.to_owned(), arguments: arguments.to_owned() })
}

pub fn calls(name: &str, arguments: &str) -> Result<Reply, ModelError> {
    reply(vec![call("c", name, arguments)])
}

pub fn create(content: &str, source: &str) -> String {
    format!(
        r#"{{"op":"create","content":{},"time":"2026-03-01","source_refs":["{source}"],"destination":{{"topic_path":"topics/new.md","headings":["New"],"position":"end"}}}}"#,
        serde_json::Value::from(content)
    )
}

pub fn submit(changes: &[String]) -> Result<Reply, ModelError> {
    calls("submit_changes", &changes_of(changes, false))
}

pub fn changes_of(changes: &[String], more: bool) -> String {
    format!(r#"{{"changes":[{}],"more":{more}}}"#, changes.join(","))
}

/// What came of a run: its outcome, what the model was asked, and how many commits there were.
pub struct Ran {
    pub outcome: Outcome,
    pub asked: Vec<Request>,
    pub commits: usize,
}

impl Ran {
    /// The last thing that the model was told.
    pub fn last_told(&self) -> String {
        told(self.asked.last().expect("a request").messages.last().expect("a message"))
    }
}

pub fn told(message: &Message) -> String {
    let parts = message.parts.iter().map(|part| match part {
        Part::Text(text) | Part::Opaque(text) => text.clone(),
        Part::Outcome(outcome) => outcome.text.clone(),
        Part::Call(call) => call.arguments.clone(),
    });
    parts.collect::<Vec<_>>().join("\n")
}

/// Runs a task: the model answers from the script and then calls `finish`; memory answers as it is.
pub fn run(memory: &mut Memory, task: Task<'_>, limits: WriterLimits, script: Vec<Result<Reply, ModelError>>) -> Ran {
    run_over(memory, task, limits, script, &mut |memory, request, caller| match memory.update(request, caller) {
        Ok(plan) => {
            let files = plan.topics().keys().map(ToString::to_string).collect();
            Submitted::Committed { revision: "r1-then".to_owned(), files }
        }
        Err(Rejection::Refused(faults)) => Submitted::Refused(faults),
        Err(Rejection::Stale { revision, .. }) => Submitted::Stale { revision, are_touched_changed: true },
    })
}

pub type Commit<'c> = &'c mut dyn FnMut(&mut Memory, update::Request, Caller) -> Submitted;

pub fn run_over(
    memory: &mut Memory,
    task: Task<'_>,
    limits: WriterLimits,
    script: Vec<Result<Reply, ModelError>>,
    commit: Commit<'_>,
) -> Ran {
    let mut script = VecDeque::from(script);
    let mut writer = Writer::new(task, limits, update::Limits::default());
    let (mut asked, mut commits) = (Vec::new(), 0);
    loop {
        match writer.next() {
            Step::Ask(request) => {
                asked.push(request);
                writer.replied(script.pop_front().unwrap_or_else(|| calls("finish", r#"{"reason":"done"}"#)));
            }
            Step::Read(Read::Topic { path, .. }) => writer.answered(match memory.topics.get(path.as_str()) {
                Some(text) => Answer::Text { path: path.to_string(), text: text.clone() },
                None => Answer::Nothing("There is no such topic.".to_owned()),
            }),
            Step::Read(Read::Block(id)) => {
                let found: Vec<ShownBlock> =
                    blocks(memory).into_iter().filter(|block| block.ids().any(|one| one == id)).collect();
                writer.answered(if found.is_empty() {
                    Answer::Nothing("There is no such block.".to_owned())
                } else {
                    Answer::Blocks(found)
                });
            }
            Step::Search(_) => writer.answered(Answer::Blocks(blocks(memory))),
            Step::Submit(submission) => {
                let caller = Caller { offered: Some(submission.offered), ..Memory::owner() };
                let submitted = commit(memory, submission.request, caller);
                commits += usize::from(matches!(submitted, Submitted::Committed { .. }));
                writer.submitted(submitted);
            }
            Step::Done(outcome) => return Ran { outcome, asked, commits },
        }
    }
}
