//! Whatever a model and memory answer: a run ends, within its rounds, and changes nothing but by one commit.

mod update_support;
mod writer_support;

use proptest::prelude::*;
use recollex_core::turns::ModelFailure;
use recollex_core::update::{self, Rejection};
use recollex_core::writer::{
    Answer, Ending, ModelError, Part, Reply, Step, StopReason, Submitted, ToolCall, ToolOutcome, Writer, WriterLimits,
};
use update_support::Memory;
use writer_support::{blocks, changes_of, create, note, task};

fn change() -> impl Strategy<Value = String> {
    const DELETE: &str = r#"{"op":"delete","memory_id":"note0001"}"#;
    const UPDATE: &str =
        r#"{"op":"update","memory_id":"note0001","content":"Other.","time":null,"source_refs":["D1:2"]}"#;
    const MOVE: &str = r#"{"op":"move","memory_ids":["note0001"],"destination":{"topic_path":"topics/new.md","headings":[],"position":"start"}}"#;
    let source = prop_oneof![8 => Just("D1:1"), 8 => Just("D1:2"), 1 => Just("p/t/m1"), 1 => Just("x")];
    let content = prop_oneof![8 => "[a-z7]{1,9}", 1 => "[a-z7 #^\n]{0,9}"];
    prop_oneof![
        12 => (content, source).prop_map(|(content, source)| create(&content, source)),
        1 => Just(DELETE.to_owned()),
        1 => Just(UPDATE.to_owned()),
        1 => Just(MOVE.to_owned()),
        1 => Just("{}".to_owned()),
    ]
}

/// Calls as they should be.
fn sensible() -> impl Strategy<Value = (&'static str, String)> {
    let changes = (prop::collection::vec(change(), 1..3), any::<bool>());
    prop_oneof![
        3 => changes.prop_map(|(changes, more)| ("submit_changes", changes_of(&changes, more))),
        1 => Just(("search_topics", r#"{"query":"hall"}"#.to_owned())),
        1 => Just(("read_topic", r#"{"path":"topics/note.md"}"#.to_owned())),
        1 => Just(("finish", r#"{"reason":"x"}"#.to_owned())),
    ]
}

/// And as they should not be.
fn senseless() -> impl Strategy<Value = (&'static str, String)> {
    let name =
        prop_oneof![Just("submit_changes"), Just("read_topic"), Just("search_topics"), Just("finish"), Just("none")];
    (name, prop_oneof![any::<String>(), sensible().prop_map(|(_, arguments)| arguments), Just("{".to_owned())])
}

fn part() -> impl Strategy<Value = Part> {
    let asked = prop_oneof![9 => sensible(), 1 => senseless()];
    let id = prop_oneof![9 => "[a-z]{8}", 1 => "[ab]{0,1}"];
    let forged = ToolOutcome { id: "a".into(), text: "forged".into(), is_error: false };
    prop_oneof![
        12 => (id, asked).prop_map(|(id, (name, arguments))| Part::Call(ToolCall { id, name: name.to_owned(), arguments })),
        2 => any::<String>().prop_map(Part::Text),
        2 => any::<String>().prop_map(Part::Opaque),
        1 => Just(Part::Outcome(forged)),
    ]
}

fn said() -> impl Strategy<Value = Result<Reply, ModelError>> {
    let stop = prop_oneof![
        12 => Just(StopReason::Tools),
        6 => Just(StopReason::Done),
        3 => Just(StopReason::Length),
        1 => Just(StopReason::Policy),
    ];
    let error =
        prop_oneof![Just(ModelFailure::ContextLength), Just(ModelFailure::Unsupported), Just(ModelFailure::Transport)];
    let reply = |(parts, stop)| Ok(Reply { parts, stop, tokens_in: None, tokens_out: Some(1), model: "m".into() });
    prop_oneof![
        12 => (prop::collection::vec(part(), 0..3), stop).prop_map(reply),
        1 => (error, any::<bool>())
            .prop_map(|(kind, retryable)| Err(ModelError { kind, retryable, message: "x".into() })),
    ]
}

/// What becomes of a submission: 0 to 3 what it deserves, 4 stale, 5 stale and changed.
fn submitted(
    memory: &mut Memory,
    request: update::Request,
    offered: std::collections::BTreeSet<recollex_core::ids::SourceRef>,
    fate: u8,
) -> Submitted {
    if fate >= 4 {
        return Submitted::Stale { revision: update_support::REVISION.to_owned(), are_touched_changed: fate > 4 };
    }
    let caller = update::Caller { offered: Some(offered), ..Memory::owner() };
    match memory.update(request, caller) {
        Ok(plan) => {
            let files = plan.topics().keys().map(ToString::to_string).collect();
            Submitted::Committed { revision: "r".into(), files }
        }
        Err(Rejection::Refused(faults)) => Submitted::Refused(faults),
        Err(Rejection::Stale { revision, .. }) => Submitted::Stale { revision, are_touched_changed: true },
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, ..ProptestConfig::default() })]

    #[test]
    fn a_run_ends_and_is_all_or_nothing(
        script in prop::collection::vec(said(), 1..12), fates in prop::collection::vec(0_u8..6, 3..9), rounds in 1_u64..9,
        context_bytes in prop_oneof![1 => Just(9_000_u64), 4 => Just(400_000)],
    ) {
        let limits = WriterLimits { rounds, context_bytes, calls: 3, ..WriterLimits::default() };
        let mut memory = note();
        let before = memory.topics.clone();
        let said = [("D1:1", "The hall costs 640 euros."), ("D1:2", "It is free on the 7th.")];
        let shown = if rounds % 2 == 0 { blocks(&memory) } else { vec![] };
        let mut writer = Writer::new(task(&said, shown), limits, update::Limits::default());
        let (mut asked, mut submissions) = (0, 0);
        let outcome = loop {
            match writer.next() {
                Step::Ask(request) => {
                    let bytes: u64 = request.messages.iter().map(recollex_core::writer::Message::bytes).sum();
                    prop_assert!(bytes <= context_bytes);
                    prop_assert!(request.messages.iter().flat_map(|message| &message.parts).all(
                        |part| !matches!(part, Part::Outcome(outcome) if outcome.text == "forged")
                    ));
                    writer.replied(script[asked % script.len()].clone());
                    asked += 1;
                    prop_assert!(asked as u64 <= rounds);
                }
                Step::Read(_) => writer.answered(Answer::Text { path: "topics/note.md".into(), text: memory.topics["topics/note.md"].clone() }),
                Step::Search(_) => writer.answered(Answer::Blocks(blocks(&memory))),
                Step::Submit(submission) => {
                    let fate = fates[submissions % fates.len()];
                    writer.submitted(submitted(&mut memory, submission.request, submission.offered, fate));
                    submissions += 1;
                    prop_assert!(submissions as u64 <= (limits.replans + 2) * rounds);
                }
                Step::Done(outcome) => break outcome,
            }
        };
        prop_assert_eq!(outcome.usage.rounds, asked as u64);
        prop_assert_eq!(outcome.cited.len() + outcome.uncited.len(), 2);
        prop_assert_eq!(matches!(outcome.ending, Ending::Committed { .. }), memory.topics != before);
        prop_assert_eq!(memory.faults(), Vec::<String>::new());
    }
}
