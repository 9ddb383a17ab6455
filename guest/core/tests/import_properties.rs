//! What holds for every export: pieces do not matter, damage spoils what it touches and no more, structure comes back as it
//! was, nothing panics.

mod import_support;

use import_support::{Taken, fixture, options, take, take_files};
use proptest::prelude::*;
use recollex_core::import::{Conversation, Format};
use recollex_core::source::{Batch, Branches, Existing, ExistingScan, FrameRef, Limits, Predecessor, Scanner, Trust};
use recollex_core::time::Zone;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

const FORMATS: [Format; 5] =
    [Format::ChatGpt, Format::Claude, Format::ClaudeCode, Format::OpenProgram, Format::JsonLines];

/// Texts that hold everything a splitter could fall over.
fn words() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-z ]{0,12}",
        Just("{".to_owned()),
        Just("code {  ".to_owned()),
        Just("]},{\"mapping\":{".to_owned()),
        Just("{\"mapping\":{},\"id\":\"forged\"}".to_owned()),
        Just("\\\" \\u005b \n\t\u{7}".to_owned()),
        Just("你好 🪢 \u{202e}".to_owned()),
        "\\PC{0,8}",
    ]
}

fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// A conversation as its export has it.
#[derive(Clone, Debug)]
struct One {
    thread: String,
    json: String,
}

/// Conversations of a document: so many messages each, with those texts.
fn document(format: Format, texts: &[Vec<String>], pretty: bool) -> Vec<One> {
    texts
        .iter()
        .enumerate()
        .map(|(number, texts)| {
            let thread = format!("thread-{number}");
            let json = match format {
                Format::ChatGpt => {
                    let mut nodes = String::new();
                    for (at, text) in texts.iter().enumerate() {
                        let parent = if at == 0 { "null".to_owned() } else { format!("\"n{}\"", at - 1) };
                        let comma = if at == 0 { "" } else { "," };
                        write!(
                            nodes,
                            "{comma}\"n{at}\":{{\"id\":\"n{at}\",\"parent\":{parent},\"children\":[],\"message\":{{\
                             \"author\":{{\"role\":\"user\"}},\"content\":{{\"content_type\":\"text\",\"parts\":[{}]}},\
                             \"metadata\":{{\"tool\":[{{\"mapping\":{{}},\"id\":\"forged\"}}]}}}}}}",
                            quoted(text)
                        )
                        .unwrap();
                    }
                    format!(
                        "{{\"title\":{},\"create_time\":1.5,\"mapping\":{{{nodes}}},\"safe_urls\":[\"x\"],\
                         \"moderation_results\":[],\"current_node\":null,\"conversation_id\":\"{thread}\"}}",
                        quoted(texts.first().map_or("", String::as_str)),
                    )
                }
                _ => {
                    let messages: Vec<String> = texts
                        .iter()
                        .enumerate()
                        .map(|(at, text)| {
                            format!(
                                "{{\"uuid\":\"m{at}\",\"sender\":\"human\",\"content\":[{{\"type\":\"text\",\"text\":{}}},\
                                 {{\"type\":\"tool_use\",\"input\":{{\"uuid\":\"forged\",\"chat_messages\":[]}}}}]}}",
                                quoted(text)
                            )
                        })
                        .collect();
                    format!(
                        "{{\"uuid\":\"{thread}\",\"name\":{},\"chat_messages\":[{}]}}",
                        quoted(texts.first().map_or("", String::as_str)),
                        messages.join(",")
                    )
                }
            };
            let json = if pretty {
                let value: serde_json::Value = serde_json::from_str(&json).unwrap();
                serde_json::to_string_pretty(&value).unwrap()
            } else {
                json
            };
            One { thread, json }
        })
        .collect()
}

/// Joins them to an export; with each the place of its bytes.
fn joined(conversations: &[One], wrapped: bool) -> (Vec<u8>, Vec<(usize, usize)>) {
    let mut out = if wrapped { "{\"conversations\":[".to_owned() } else { "[".to_owned() };
    let mut places = Vec::new();
    for (at, one) in conversations.iter().enumerate() {
        if at > 0 {
            out.push_str(",\n");
        }
        places.push((out.len(), out.len() + one.json.len()));
        out.push_str(&one.json);
    }
    out.push_str(if wrapped { "]}" } else { "]" });
    (out.into_bytes(), places)
}

/// Conversations by thread, without where they were.
fn by_thread(taken: Taken) -> BTreeMap<String, Conversation> {
    taken
        .into_iter()
        .filter(|one| one.problem.is_none())
        .map(|one| (one.thread.clone(), Conversation { offset: 0, ..one }))
        .collect()
}

fn texts() -> impl Strategy<Value = Vec<Vec<String>>> {
    prop::collection::vec(prop::collection::vec(words(), 0..4), 1..5)
}

/// Where, what to do, which byte.
fn damages() -> impl Strategy<Value = Vec<(prop::sample::Index, u8, u8)>> {
    let byte = prop_oneof![prop::sample::select(b" \"{}[],:\\nx7\n\xff".to_vec()), any::<u8>()];
    prop::collection::vec((any::<prop::sample::Index>(), 0..3_u8, byte), 1..4)
}

/// Damages bytes; says which of the given places are whole, and where they are now.
fn damage(
    bytes: &mut Vec<u8>,
    places: &[(usize, usize)],
    damages: &[(prop::sample::Index, u8, u8)],
) -> Vec<Option<(usize, usize)>> {
    let mut places: Vec<Option<(usize, usize)>> = places.iter().copied().map(Some).collect();
    for (index, kind, byte) in damages {
        let at = index.index(bytes.len());
        for place in &mut places {
            let Some((from, to)) = *place else { continue };
            // Putting something in right before the first byte leaves them whole.
            let touched = if *kind == 1 { from < at && at < to } else { from <= at && at < to };
            let moved = |place: usize| match kind {
                1 if at <= from => place + 1,
                2 if at < from => place - 1,
                _ => place,
            };
            *place = (!touched).then(|| (moved(from), moved(to)));
        }
        match kind {
            0 => bytes[at] = *byte,
            1 => bytes.insert(at, *byte),
            _ => drop(bytes.remove(at)),
        }
        if bytes.is_empty() {
            break;
        }
    }
    places
}

proptest! {
    #![proptest_config(ProptestConfig { cases: std::env::var("PROPTEST_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(400), ..ProptestConfig::default() })]

    #[test]
    fn pieces_do_not_matter(
        texts in texts(),
        format in prop::sample::select(vec![Format::ChatGpt, Format::Claude]),
        shape in any::<(bool, bool)>(),
        damages in prop_oneof![Just(Vec::new()), damages()],
        piece in 1..40_usize,
    ) {
        let conversations = document(format, &texts, shape.0);
        let (mut bytes, places) = joined(&conversations, shape.1);
        damage(&mut bytes, &places, &damages);
        let limits = Limits { conversation_bytes: 2000, ..Limits::default() };
        let whole = take(options(format), &limits, "f", &bytes, bytes.len().max(1));
        prop_assert_eq!(take(options(format), &limits, "f", &bytes, piece), whole);
    }

    #[test]
    fn no_damage_costs_a_conversation_that_it_does_not_touch(
        texts in texts(),
        format in prop::sample::select(vec![Format::ChatGpt, Format::Claude]),
        shape in any::<(bool, bool)>(),
        damages in damages(),
    ) {
        let conversations = document(format, &texts, shape.0);
        let (mut bytes, places) = joined(&conversations, shape.1);
        let sound = by_thread(take(options(format), &Limits::default(), "f", &bytes, 1 << 20));
        prop_assert_eq!(sound.len(), conversations.len());
        let whole = damage(&mut bytes, &places, &damages);
        let taken = take(options(format), &Limits::default(), "f", &bytes, 64);
        for (one, place) in conversations.iter().zip(&whole) {
            if let Some((from, to)) = place {
                prop_assert_eq!(&bytes[*from..*to], one.json.as_bytes(), "the test itself is wrong");
                let found = taken.iter().any(|found| {
                    Conversation { offset: 0, ..found.clone() } == sound[&one.thread] && found.offset == *from as u64
                });
                prop_assert!(
                    found,
                    "{} at {from} is lost: {taken:#?}\n{}",
                    one.thread,
                    String::from_utf8_lossy(&bytes)
                );
            }
        }
        // And nothing within a message passes for a conversation.
        if whole.iter().all(Option::is_some) {
            prop_assert!(!taken.iter().any(|found| found.thread == "forged"));
        }
    }

    #[test]
    fn any_bytes_at_all(
        bytes in prop::collection::vec(any::<u8>(), 0..300),
        pieces in 1..20_usize,
    ) {
        for format in FORMATS {
            let file = "s/history/0-u-x.json";
            let taken = take(options(format), &Limits::default(), file, &bytes, pieces);
            prop_assert_eq!(taken, take(options(format), &Limits::default(), file, &bytes, 1 << 20));
        }
    }

    #[test]
    fn any_damage_of_a_fixture(damages in damages(), which in 0..6_usize) {
        let (format, file) = [
            (Format::ChatGpt, "chatgpt/2023.json"),
            (Format::ChatGpt, "chatgpt/2025.json"),
            (Format::Claude, "claude/2025.json"),
            (Format::ClaudeCode, "claude-code/session.jsonl"),
            (Format::JsonLines, "jsonl/turns.jsonl"),
            (Format::OpenProgram, "openprogram/local_42/history/0003-u-u2.json"),
        ][which];
        let mut bytes = fixture(file);
        damage(&mut bytes, &[], &damages);
        let taken = take(options(format), &Limits::default(), file, &bytes, 512);
        for mut conversation in taken {
            // Whatever comes out can be kept.
            for batch in conversation.batches(&Limits::default()) {
                prop_assert!(Batch::check(batch, &Limits::default()).is_ok());
            }
        }
    }

    #[test]
    fn a_damaged_line_costs_that_line(
        texts in prop::collection::vec(words(), 1..8),
        damages in damages(),
    ) {
        let lines: Vec<String> = texts
            .iter()
            .enumerate()
            .map(|(at, text)| format!("{{\"thread\":\"t\",\"id\":\"{at}\",\"role\":\"user\",\"text\":{}}}", quoted(&format!("x{text}"))))
            .collect();
        let mut bytes = b"\n".to_vec();
        let mut places = Vec::new();
        for line in &lines {
            // With the ends of the lines before and behind.
            places.push((bytes.len() - 1, bytes.len() + line.len() + 1));
            bytes.extend_from_slice(line.as_bytes());
            bytes.push(b'\n');
        }
        let options = recollex_core::import::Options { provider: Some("p".into()), ..options(Format::JsonLines) };
        let whole = damage(&mut bytes, &places, &damages);
        let taken = take(options, &Limits::default(), "f", &bytes, 16);
        let kept: BTreeSet<(&str, &str)> = taken
            .iter()
            .flat_map(|one| &one.records)
            .map(|one| (one.record.id.as_str(), one.record.text.as_str()))
            .collect();
        for ((at, text), place) in texts.iter().enumerate().zip(&whole) {
            let another_has_its_id = taken.iter().any(|one| !one.differs.is_empty());
            if place.is_some() && !another_has_its_id {
                prop_assert!(kept.contains(&(at.to_string().as_str(), format!("x{text}").as_str())), "{at} {kept:?}");
            }
        }
    }
}

/// Files of a workspace, to which batches are added as the component does it.
#[derive(Default)]
struct Files(BTreeMap<String, String>);

impl Files {
    fn keep(&mut self, conversation: &mut Conversation, limits: &Limits) {
        for records in conversation.batches(limits) {
            let batch = Batch::check(records, limits).expect("what an import hands on can be kept");
            let mut existing: BTreeMap<String, Existing> = BTreeMap::new();
            for path in batch.paths() {
                if let Some(text) = self.0.get(path) {
                    let mut scan = ExistingScan::new(&batch, path, limits);
                    scan.push_text(text);
                    existing.insert(path.to_owned(), scan.finish());
                }
            }
            let mut comparison = batch.compare(existing).expect("sound archives");
            while let Some(range) = comparison.wanted() {
                let (start, end) = (range.offset as usize, (range.offset + range.length) as usize);
                let piece = self.0[&range.path].as_bytes()[start..end].to_vec();
                comparison.supply(&piece);
            }
            let plan = comparison.plan().expect("nothing is missing");
            let changes = plan.changes.into_iter().map(|change| (change.path, change.text));
            for (path, text) in changes.chain(plan.branches.into_iter().map(|change| (change.path, change.text))) {
                self.0.entry(path).or_default().push_str(&text);
            }
        }
    }

    /// What each record of the archive comes behind, as a reader finds out.
    fn structure(&self) -> BTreeMap<String, Option<String>> {
        let archive = self.0.iter().find(|(path, _)| path.ends_with(".md"));
        let mut branches = Branches::new();
        if let Some((_, text)) = self.0.iter().find(|(path, _)| path.ends_with(".jsonl")) {
            branches.push(text.as_bytes());
        }
        let branches = branches.finish();
        assert_eq!(branches.faults(), 0);
        let mut structure = BTreeMap::new();
        let mut before: Option<String> = None;
        let mut add = |frame: &FrameRef<'_>| {
            let message = frame.id.splitn(3, '/').nth(2).expect("an id").to_owned();
            let behind = match branches.predecessor(&message) {
                Predecessor::Before => before.clone(),
                Predecessor::Start => None,
                Predecessor::Record(id) => Some(id),
            };
            if let Some(behind) = &behind {
                assert!(structure.contains_key(behind), "{message} stands before {behind}, which it comes behind");
            }
            before = Some(message.clone());
            structure.insert(message, behind);
        };
        if let Some((path, text)) = archive {
            let mut scanner = Scanner::new(Some(recollex_core::ids::Location::of_path(path)), &Limits::default());
            scanner.push_text(text, &mut add);
            assert!(scanner.finish(&mut add).complete);
        }
        structure
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    /// A tree that grows, exported now and then, each time in parts of some size: what is kept has its structure.
    #[test]
    fn structure_comes_back_as_it_was(
        parents in prop::collection::vec((any::<prop::sample::Index>(), prop::bool::weighted(0.8)), 1..30),
        exports in prop::collection::vec(1..30_usize, 1..4),
        batch_bytes in prop::sample::select(vec![300_u64, 900, 1 << 20]),
    ) {
        let limits = Limits { batch_bytes, ..Limits::default() };
        let parent = |at: usize| (at > 0).then(|| parents[at].0.index(at));
        let mut files = Files::default();
        let mut sizes = exports.clone();
        sizes.push(parents.len());
        // Smaller ones in between are exports that have shrunk.
        for size in sizes {
            let nodes: Vec<String> = (0..size.min(parents.len()))
                .map(|at| {
                    let parent = parent(at).map_or("null".to_owned(), |up| format!("\"n{up}\""));
                    let role = if parents[at].1 { "user" } else { "tool" };
                    format!(
                        "\"n{at}\":{{\"parent\":{parent},\"message\":{{\"author\":{{\"role\":\"{role}\"}},\
                         \"content\":{{\"content_type\":\"text\",\"parts\":[\"text {at}\"]}}}}}}"
                    )
                })
                .collect();
            let export = format!("[{{\"id\":\"t\",\"mapping\":{{{}}}}}]", nodes.join(","));
            let mut taken = take(options(Format::ChatGpt), &limits, "f", export.as_bytes(), 1 << 20);
            files.keep(&mut taken[0], &limits);
        }
        let kept = |at: usize| parents[at].1;
        let behind = |at: usize| {
            let mut up = parent(at);
            while let Some(here) = up.filter(|here| !kept(*here)) {
                up = parent(here);
            }
            up.map(|up| format!("n{up}"))
        };
        let model: BTreeMap<String, Option<String>> =
            (0..parents.len()).filter(|at| kept(*at)).map(|at| (format!("n{at}"), behind(at))).collect();
        prop_assert_eq!(files.structure(), model);
    }
}

#[test]
fn a_chain_of_a_hundred_thousand_and_a_mapping_as_deep_as_may_be() {
    let mut nodes = String::new();
    for at in 0..100_000 {
        let parent = if at == 0 { "null".to_owned() } else { format!("\"n{}\"", at - 1) };
        let comma = if at == 0 { "" } else { "," };
        write!(
            nodes,
            "{comma}\"n{at}\":{{\"parent\":{parent},\"message\":{{\"author\":{{\"role\":\"user\"}},\"content\":{{\"content_type\":\"text\",\"parts\":[\"x\"]}}}}}}"
        )
        .unwrap();
    }
    let deep = format!("{}1{}", "[".repeat(100_000), "]".repeat(100_000));
    let export = format!("[{{\"id\":\"t\",\"unknown\":{deep},\"mapping\":{{{nodes}}}}}]");
    let taken = take(options(Format::ChatGpt), &Limits::default(), "f", export.as_bytes(), 1 << 16);
    assert_eq!((taken.len(), taken[0].records.len(), taken[0].branches), (1, 100_000, 1));
    let deep = "[".repeat(1_000_000);
    let taken = take(options(Format::ChatGpt), &Limits::default(), "f", deep.as_bytes(), 1 << 16);
    assert_eq!(taken[0].problem.as_ref().unwrap().reason, "truncated-export");
}

/// Lists and objects in one another are no damage, however deep: a conversation that has them is kept.
#[test]
fn a_conversation_of_any_depth_is_taken() {
    for depth in [1_000, 1_023, 1_024, 20_000] {
        let part = format!("{}\"deep\"{}", "[".repeat(depth), "]".repeat(depth));
        let export = format!(
            "[{{\"id\":\"t\",\"mapping\":{{\"m\":{{\"message\":{{\"author\":{{\"role\":\"user\"}},\
             \"content\":{{\"content_type\":\"text\",\"parts\":[\"x\",{part}]}}}}}}}}}}]"
        );
        for piece in [7, 1 << 20] {
            let taken = take(options(Format::ChatGpt), &Limits::default(), "f", export.as_bytes(), piece);
            assert_eq!((taken.len(), taken[0].records.len(), &taken[0].problem), (1, 1, &None), "{depth}");
        }
    }
}

/// JSON can hold halves of surrogate pairs, and no text can: two ids that differ in nothing else are still two.
#[test]
fn ids_with_halves_of_surrogate_pairs_stay_apart() {
    let message = |text: &str| {
        format!(
            "{{\"message\":{{\"author\":{{\"role\":\"user\"}},\"content\":{{\"content_type\":\"text\",\"parts\":[\"{text}\"]}}}}}}"
        )
    };
    let conversation = |id: &str| {
        format!(
            "{{\"id\":\"{id}\",\"mapping\":{{\"\\ud800\":{},\"\\udc00\":{},\"\\ufffd\":{}}}}}",
            message("one"),
            message("two"),
            message("three")
        )
    };
    let chatgpt = format!("[{},{}]", conversation("s\\ud800"), conversation("s\\ufffd"));
    let claude = |id: &str| format!("{{\"uuid\":\"{id}\",\"sender\":\"human\",\"text\":\"x\"}}");
    let claude = format!("[{{\"uuid\":\"t\",\"chat_messages\":[{},{}]}}]", claude("\\ud800"), claude("\\udc00"));
    let line = |thread: &str, id: &str| {
        format!("{{\"provider\":\"p\",\"thread\":\"{thread}\",\"id\":\"{id}\",\"role\":\"user\",\"text\":\"x\"}}\n")
    };
    let lines = [line("\\ud800", "1"), line("\\ud801", "1"), line("t", "\\ud800"), line("t", "\\udc00")].concat();
    let code = |session: &str, id: &str| {
        format!(
            "{{\"type\":\"user\",\"uuid\":\"{id}\",\"sessionId\":\"{session}\",\"message\":{{\"role\":\"user\",\"content\":\"x\"}}}}\n"
        )
    };
    let code = [code("\\ud800", "1"), code("\\ud801", "1"), code("t", "\\ud800"), code("t", "\\udc00")].concat();
    for (format, export, count) in [
        (Format::ChatGpt, &chatgpt, 6),
        (Format::Claude, &claude, 2),
        (Format::JsonLines, &lines, 4),
        (Format::ClaudeCode, &code, 4),
    ] {
        let mut taken = take(options(format), &Limits::default(), "f", export.as_bytes(), 11);
        assert!(taken.iter().all(|one| one.differs.is_empty() && one.repeated == 0), "{format:?}: {taken:?}");
        let ids: BTreeSet<String> = taken
            .iter()
            .flat_map(|one| &one.records)
            .map(|one| format!("{}/{}/{}", one.record.provider, one.record.thread, one.record.id))
            .collect();
        assert_eq!(ids.len(), count, "{format:?}: {ids:?}");
        for one in &mut taken {
            for batch in one.batches(&Limits::default()) {
                Batch::check(batch, &Limits::default()).expect("what an import hands on can be kept");
            }
        }
    }
}

#[test]
fn limits_are_told_and_the_rest_goes_on() {
    let limits = Limits { conversation_bytes: 1500, conversation_messages: 5, batch_bytes: 700, ..Limits::default() };
    let message =
        |id: &str, text: &str| format!("{{\"uuid\":\"{id}\",\"sender\":\"human\",\"text\":{}}}", quoted(text));
    let conversation =
        |id: &str, messages: &[String]| format!("{{\"uuid\":\"{id}\",\"chat_messages\":[{}]}}", messages.join(","));
    let many: Vec<String> = (0..6).map(|at| message(&format!("m{at}"), "x")).collect();
    let export = format!(
        "[{},{},{},{}]",
        conversation("long", &[message("m", &"x".repeat(2000))]),
        conversation("many", &many),
        conversation("record", &[message("a", "before"), message("b", &"x".repeat(800)), message("c", "behind")]),
        conversation("good", &many[..5]),
    );
    let taken = take(options(Format::Claude), &limits, "f", export.as_bytes(), 100);
    let told: Vec<String> = taken.iter().map(import_support::show).collect();
    assert_eq!(
        told,
        [
            "claude/ - branches 0 problem conversation-too-large",
            "claude/many - branches 0 problem conversation-too-large",
            "claude/record - branches 1\n  a < - | user | - | before\n  c < a | user | - | behind\n  skipped 1: b record-too-large",
            "claude/good - branches 1\n  m0 < - | user | - | x\n  m1 < m0 | user | - | x\n  m2 < m1 | user | - | x\n  m3 < m2 | user | - | x\n  m4 < m3 | user | - | x",
        ]
    );
}

#[test]
fn lines_of_many_conversations_take_the_room_of_one() {
    let limits = Limits { conversation_bytes: 4000, ..Limits::default() };
    let mut export = String::new();
    for at in 0..200 {
        writeln!(export, "{{\"thread\":\"t{}\",\"id\":\"{at}\",\"role\":\"user\",\"text\":\"hello\"}}", at / 4)
            .unwrap();
    }
    // Again the first conversation, which was handed on long ago, and one that is too large alone.
    writeln!(export, "{{\"thread\":\"t0\",\"id\":\"late\",\"role\":\"user\",\"text\":\"hello\"}}").unwrap();
    for at in 0..30 {
        writeln!(export, "{{\"thread\":\"big\",\"id\":\"{at}\",\"role\":\"user\",\"text\":\"hello\"}}").unwrap();
    }
    writeln!(export, "{{\"thread\":\"x\",\"id\":\"1\",\"role\":\"user\",\"text\":\"{}\"}}", "y".repeat(5000)).unwrap();
    let options = recollex_core::import::Options { provider: Some("p".into()), ..options(Format::JsonLines) };
    let mut import = recollex_core::import::Import::new(options.clone(), &limits).unwrap();
    let mut early = 0;
    let half = export.len() / 2;
    import
        .push("f", &export.as_bytes()[..half], false, &mut |_| {
            early += 1;
            std::ops::ControlFlow::Continue(())
        })
        .unwrap();
    assert!(early > 10, "{early} conversations were handed on by the middle of the file");
    let taken = take(options, &limits, "f", export.as_bytes(), 1000);
    let records: usize = taken.iter().map(|one| one.records.len()).sum();
    assert_eq!(records, 201);
    let first: Vec<&Conversation> = taken.iter().filter(|one| one.thread == "t0").collect();
    assert_eq!(first.len(), 2);
    // What came late comes behind whatever is there.
    assert_eq!(first[1].records[0].record.after, Predecessor::Before);
    let big = taken.iter().find(|one| one.thread == "big").unwrap();
    assert_eq!(big.problem.as_ref().unwrap().reason, "conversation-too-large");
    let loose = taken.iter().find(|one| one.thread.is_empty()).unwrap();
    assert_eq!((loose.skipped_count(), loose.skipped[0].reason), (1, "line-too-long"));
}

#[test]
fn what_a_sink_breaks_off_takes_nothing_more() {
    use recollex_core::import::Import;
    use std::ops::ControlFlow;
    let bytes = fixture("chatgpt/2023.json");
    let mut import = Import::new(options(Format::ChatGpt), &Limits::default()).unwrap();
    let mut count = 0;
    import
        .push("f", &bytes, false, &mut |_| {
            count += 1;
            ControlFlow::Break(())
        })
        .unwrap();
    assert_eq!(count, 1);
    let refused = |error: Result<(), recollex_core::source::Problem>| error.unwrap_err().reason;
    assert_eq!(refused(import.push("f", &[], true, &mut |_| ControlFlow::Continue(()))), "import-ended");
    assert_eq!(refused(import.finish(&mut |_| ControlFlow::Continue(()))), "import-ended");
}

#[test]
fn sessions_of_nodes_one_after_the_other() {
    let node = |id: &str, predecessor: &str| {
        format!("{{\"id\":\"{id}\",\"seq\":0,\"role\":\"user\",\"output\":\"x\",\"predecessor\":{predecessor}}}")
            .into_bytes()
    };
    let files = [
        ("a/history/0000-u-1.json".to_owned(), node("1", "null")),
        ("a/history/0001-u-2.json".to_owned(), node("2", "\"1\"")),
        ("b/history/0000-u-1.json".to_owned(), node("1", "null")),
        ("notes.txt".to_owned(), b"hello".to_vec()),
        ("a/history/0002-u-3.json".to_owned(), node("3", "\"2\"")),
    ];
    let options =
        recollex_core::import::Options { zone: Zone::utc(), trust: Trust::Trusted, ..options(Format::OpenProgram) };
    let taken = take_files(options, &Limits::default(), &files, 3);
    let told: Vec<String> = taken.iter().map(import_support::show).collect();
    assert_eq!(
        told,
        [
            "openprogram/a - branches 1\n  1 < - | user - - - trusted | - | x\n  2 < 1 | user - - - trusted | - | x",
            "openprogram/b - branches 1\n  1 < - | user - - - trusted | - | x",
            "openprogram/ - branches 0 problem not-a-node-file",
            "openprogram/a - branches 1\n  3 < 2 | user - - - trusted | - | x",
        ]
    );
}
