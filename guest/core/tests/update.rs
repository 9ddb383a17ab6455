//! Updates: what requests come to, and every way in which they are refused.

mod update_support;

use recollex_core::ids::TopicPath;
use recollex_core::source::Tier;
use recollex_core::topic::edit::Committed;
use recollex_core::update::{
    Caller, Code, DEFAULT_PROVIDER, Draft, Limits, Plan, Position, Proposal, ProposedDestination, ProposedEdit,
    ProposedOperation, ProposedRecord, QuotedSource, Reason, Reference, Rejection, Request, Why, Workspace,
};
use serde_json::json;
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::sync::OnceLock;
use update_support::{Memory, REVISION, request, told, with_revision};

const NOTE: &str = "# Note\n\nA fact.[^e-0000000001] ^note0001\n\n[^e-0000000001]: Time: `2026-01-01`; Sources: [one](../sources/D1.md#d1-1)\n";

fn note() -> Memory {
    Memory::new(&[("topics/note.md", NOTE)])
}

fn refused(memory: &mut Memory, fields: &str) -> Vec<String> {
    let before = memory.topics.clone();
    let rejection = memory.ask(fields).expect_err(fields);
    assert_eq!(memory.topics, before);
    told(&rejection)
}

fn malformed(fields: &str) -> Vec<String> {
    let faults = Request::from_json(fields, &Limits::default()).expect_err(fields);
    assert!(faults.iter().all(|fault| !fault.message.is_empty() && !fault.to_string().is_empty()));
    told(&Rejection::Refused(faults))
}

fn create(topic: &str, headings: &[&str], content: &str) -> String {
    let destination = json!({"topic_path": topic, "headings": headings, "position": "end"});
    let record = json!({"op": "create_record", "content": content, "time": "2026-03-01", "source_refs": ["D1:1"]});
    let mut record = record;
    record["destination"] = destination;
    json!({"memory_changes": [record]}).to_string()
}

fn ids(plan: &Plan) -> Vec<&str> {
    plan.block_ids().iter().map(|block| block.id.as_str()).collect()
}

#[test]
fn a_request_tells_all_that_is_wrong_with_it() {
    assert_eq!(malformed("[]"), ["malformed-request"]);
    assert!(malformed("{\"base_revision\": \"\n").first().is_some_and(|told| told.starts_with("malformed-request")));
    assert_eq!(
        malformed(
            "{\"changes\": [{\"path\": 1, \"action\": \"write\"}, 7, {\"action\": \"move\", \"path\": \"p\"}], \"sources\": {}, \"x\": 1, \"removed_blocks\": [1], \"commit_message\": 2}"
        ),
        [
            "base_revision missing-field",
            "commit_message wrong-type",
            "changes[1] wrong-type",
            "changes[0].path wrong-type",
            "changes[0].content missing-field",
            "changes[2].action unknown-action move",
            "sources wrong-type",
            "removed_blocks[0] wrong-type",
            "x unknown-field x",
        ]
    );
    assert_eq!(malformed(&with_revision("{\"patch\": \"x\", \"changes\": []}")), ["not-one-edit patch, changes"]);
    assert_eq!(malformed(&with_revision("{\"patch\": null}")), ["not-one-edit "]);
    assert_eq!(
        malformed(&with_revision(
            "{\"changes\": [{\"path\": \"core.md\", \"action\": \"write\", \"content\": \"\"}, {\"path\": \"../x\", \"action\": \"delete\"}, {\"path\": \".git/config\", \"action\": \"delete\"}, {\"path\": \"topics/a.md\", \"action\": \"delete\"}, {\"path\": \"./topics//a.md\", \"action\": \"delete\"}], \"sources\": [{\"label\": \"a\", \"role\": \"\", \"content\": \" \", \"observed_at\": \"now\"}]}"
        )),
        [
            "core.md changes[0].path not-a-topic",
            "../x changes[1].path path-outside",
            ".git/config changes[2].path not-a-topic",
            "topics/a.md changes[4].path path-given-twice",
            "sources[0].label invalid-source-label a",
            "sources[0].role blank-value",
            "sources[0].content blank-value",
            "sources[0].observed_at invalid-time now",
        ]
    );
}

#[test]
fn operations_tell_all_that_is_wrong_with_them() {
    let operations = json!({"base_revision": REVISION, "memory_changes": [
        {"op": "merge"},
        {"op": "create_record", "content": "a\n\n# b [^x] ^id", "time": "2026-13", "source_refs": ["D1:1", " D1:1"],
         "destination": {"topic_path": "topics/a.md", "headings": ["", "a\nb"], "position": "end"}},
        {"op": "update_record", "memory_id": " ", "content": "x", "time": null, "source_refs": []},
        {"op": "move_records", "memory_ids": ["a", "a"], "destination": {"topic_path": "sources/a.md", "headings": ["1", "2", "3", "4", "5", "6", "7"], "position": "start"}},
        {"op": "create", "topic_path": "topics/a.md", "headings": [], "content": "x", "time": null, "sources": [{"source": "D1:1", "label": "a]b"}]},
    ]});
    assert_eq!(malformed(&operations.to_string()), ["memory_changes[0].op unknown-operation merge"]);
    let mut shaped = operations;
    shaped["memory_changes"].as_array_mut().expect("a list").remove(0);
    assert_eq!(
        malformed(&shaped.to_string()),
        [
            "memory_changes[0].content content-with-blank-line",
            "memory_changes[0].content content-with-heading",
            "memory_changes[0].content content-with-citation",
            "memory_changes[0].content content-with-block-id",
            "memory_changes[0].time invalid-time 2026-13",
            "memory_changes[0].source_refs[1] duplicate-reference D1:1",
            "memory_changes[0].destination.headings[0] blank-value",
            "memory_changes[0].destination.headings[1] invalid-heading a\nb",
            "memory_changes[1].memory_id blank-value",
            "memory_changes[1].source_refs missing-field",
            "memory_changes[2].memory_ids[1] record-named-twice a",
            "sources/a.md memory_changes[2].destination.topic_path not-a-topic",
            "memory_changes[2].destination.headings too-many-headings",
            "memory_changes[3].sources[0] undefined-footnote new-evidence-record-3",
        ]
    );
}

#[test]
fn limits_are_told_by_name() {
    let limits = Limits { sources: 1, source_bytes: 5, changes: 1, change_bytes: 30 };
    let fields = with_revision(
        "{\"changes\": [{\"path\": \"topics/a.md\", \"action\": \"write\", \"content\": \"1234567890\"}, {\"path\": \"topics/b.md\", \"action\": \"delete\"}], \"sources\": [{\"label\": \"new-source-a\", \"role\": \"user\", \"content\": \"123\"}, {\"label\": \"new-source-a\", \"role\": \"user\", \"content\": \"123\"}]}",
    );
    let faults = Request::from_json(&fields, &limits).expect_err("too much");
    assert_eq!(
        told(&Rejection::Refused(faults.clone())),
        [
            "changes too-many-changes update.changes-max",
            "changes changes-too-large update.change-bytes",
            "sources too-many-sources update.sources-max",
            "sources sources-too-large update.source-bytes",
            "sources[1].label duplicate-source-label new-source-a",
        ]
    );
    assert!(faults[1].message.contains("32; update.change-bytes allows 30"), "{}", faults[1].message);
    let patch = "--- a/topics/a.md\n+++ /dev/null\n--- a/topics/b.md\n+++ /dev/null\n";
    let fields = json!({"base_revision": REVISION, "patch": patch}).to_string();
    let faults = Request::from_json(&fields, &Limits { changes: 1, ..Limits::default() }).expect_err("two topics");
    assert_eq!(told(&Rejection::Refused(faults)), ["patch too-many-changes update.changes-max"]);
}

#[test]
fn made_in_rust() {
    let record = ProposedRecord {
        content: "New.".to_owned(),
        time: None,
        sources: vec![Reference { source: "p/t/(2)".to_owned(), label: None }],
    };
    let destination = ProposedDestination {
        topic: "topics/note.md".to_owned(),
        headings: vec!["Note".to_owned()],
        position: Position::Before("note0001".to_owned()),
    };
    let proposal = Proposal {
        base_revision: "flat".to_owned(),
        edit: ProposedEdit::Records(vec![ProposedOperation::Create { record, destination }]),
        sources: Vec::new(),
        commit_message: Some("One\nmore \u{200b}".to_owned()),
        removed_blocks: Vec::new(),
    };
    let mut memory = note();
    let plan = memory.update(request(proposal), Memory::owner()).expect("done");
    assert_eq!(plan.commit_message(), "One more ");
    let [id] = ids(&plan)[..] else { panic!("one block") };
    assert_eq!((plan.created(), plan.changed(), plan.removed()), (&[id.to_owned()][..], &[][..], &[][..]));
    // A parenthesis in an id ends no link.
    let text = &memory.topics["topics/note.md"];
    assert!(text.contains("; Sources: [p/t/(2)](../sources/p/_v2/t.md#source-"), "{text}");
    assert!(text.starts_with("# Note\n\nNew.[^e-"), "{text}");
    assert_eq!(memory.faults(), [""; 0]);
}

#[test]
fn a_stale_revision_is_a_conflict() {
    let request = Request::from_json(
        "{\"base_revision\": \"r1-old\", \"changes\": [{\"path\": \"topics/note.md\", \"action\": \"delete\"}]}",
        &Limits::default(),
    );
    let rejection = note().plan(request.expect("a request"), Memory::owner()).expect_err("stale");
    assert_eq!(rejection.code(), Code::ConcurrentUpdate);
    assert_eq!(told(&rejection), ["stale r1-old r1-now"]);
}

#[test]
fn quoted_sources_are_archived_with_the_edit() {
    let fields = "{\"changes\": [{\"path\": \"topics/tea.md\", \"action\": \"write\", \"content\": \"# Tea\\n\\nTea.[^e1]\\n\\n[^e1]: Time: 2026; Sources: new-source-a\\n\"}], \"sources\": [{\"label\": \"new-source-a\", \"role\": \"user\", \"content\": \"tea\", \"observed_at\": \"20260201\"}, {\"label\": \"new-source-b\", \"role\": \"assistant\", \"content\": \"ok\"}]}";
    let mut memory = note();
    let plan = memory.ask(fields).expect("done");
    let archived: Vec<&str> = plan.source_ids().values().map(|id| id.as_str()).collect();
    assert_eq!(plan.archive().records.iter().map(|record| record.id.as_str()).collect::<Vec<_>>(), archived);
    let [(path, text)] = &memory.archive.files.iter().collect::<Vec<_>>()[..] else { panic!("one archive") };
    assert!(text.contains("[2026-02-01T00:00:00] Ada (ada): tea\n") && text.contains("[] Ada (ada): ok\n"), "{text}");
    assert!(memory.topics["topics/tea.md"].contains(&format!("](../{path}#source-")));
    // Asked again, nothing is archived twice.
    let archives = memory.archive.files.clone();
    let again = memory.ask(fields.replace("Tea.[", "Green tea.[").as_str()).expect_err("the block would go");
    assert_eq!(again.code(), Code::InvalidTopicFormat);
    let other = fields.replace("topics/tea.md", "topics/other.md");
    let plan = memory.ask(&other).expect("done");
    assert!(plan.archive().changes.is_empty());
    assert_eq!(memory.archive.files, archives);
    // Without anybody who vouches for them.
    let caller = Caller { provenance: None, ..Memory::owner() };
    let rejection = note().ask_as(caller, fields).expect_err("nobody's");
    assert_eq!(rejection.code(), Code::WriterPreconditionFailed);
    assert_eq!(told(&rejection), ["sources authority-incomplete"]);
    // Whose tier is none that records have.
    let mut caller = Memory::owner();
    caller.provenance.as_mut().expect("somebody").authority_tier = "mcp_browser".to_owned();
    let rejection = note().ask_as(caller, fields).expect_err("no tier");
    assert_eq!((rejection.code(), told(&rejection).len()), (Code::InvalidArgument, 2));
    assert!(told(&rejection)[0].starts_with("sources[0] invalid-metadata"));
}

#[test]
fn another_record_under_the_id_of_a_quoted_source_is_not_cited() {
    let fields = "{\"changes\": [{\"path\": \"topics/tea.md\", \"action\": \"write\", \"content\": \"Tea.[^e1]\\n\\n[^e1]: Time: 2026; Sources: new-source-a\\n\"}], \"sources\": [{\"label\": \"new-source-a\", \"role\": \"user\", \"content\": \"tea\"}]}";
    let mut memory = note();
    let plan = memory.ask(fields).expect("done");
    let mut forged = note();
    for change in &plan.archive().changes {
        forged.archive.files.insert(change.path.clone(), change.text.replace(": tea\n", ": coffee\n"));
    }
    let rejection = forged.ask(fields).expect_err("another record");
    assert_eq!(rejection.code(), Code::CommitRejected);
    assert!(told(&rejection)[0].contains("quoted-source-differs claude-code/"), "{:?}", told(&rejection));
}

#[test]
fn where_records_stand() {
    let mut memory = Memory::new(&[]);
    let mut put = |headings: &[&str], content: &str, position: &str, anchor: Option<&str>| {
        let mut destination = json!({"topic_path": "topics/a.md", "headings": headings, "position": position});
        if let Some(anchor) = anchor {
            destination["anchor_memory_id"] = anchor.into();
        }
        let operation = json!({"op": "create", "content": content, "time": null, "source_refs": ["D1:1"], "destination": destination});
        let plan = memory
            .ask(&json!({"memory_changes": [operation]}).to_string())
            .unwrap_or_else(|e| panic!("{:?}", told(&e)));
        assert_eq!(memory.faults(), [""; 0]);
        ids(&plan)[0].to_owned()
    };
    let deep = put(&["A", "B"], "deep", "end", None);
    let own = put(&["A"], "own", "end", None);
    put(&["A"], "first", "start", None);
    put(&["A"], "before", "before", Some(&own));
    put(&["A"], "after", "after", Some(&own));
    put(&[], "root", "end", None);
    put(&["A", "C", "D"], "new", "start", None);
    put(&["Z"], "last", "end", None);
    put(&["A", "B"], "deeper", "after", Some(&deep));
    let shown: Vec<String> = memory
        .blocks()
        .into_iter()
        .map(|(_, headings, _, content)| format!("{} {content}", headings.join("/")))
        .collect();
    assert_eq!(
        shown,
        [" root", "A first", "A before", "A own", "A after", "A/B deep", "A/B deeper", "A/C/D new", "Z last"]
    );
    for (headings, id, reason) in [
        (vec!["A", "B"], own.as_str(), "memory_changes[0].destination.anchor_memory_id anchor-elsewhere"),
        (vec!["None"], own.as_str(), "memory_changes[0].destination.anchor_memory_id anchor-elsewhere"),
        (vec!["A"], "nobody", "memory_changes[0].destination.anchor_memory_id no-such-record"),
    ] {
        let fields = json!({"memory_changes": [{"op": "create", "content": "x", "time": null, "source_refs": ["D1:1"],
            "destination": {"topic_path": "topics/a.md", "headings": headings, "position": "after", "anchor_memory_id": id}}]});
        assert_eq!(refused(&mut memory, &fields.to_string()), [format!("{reason} {id}")]);
    }
}

#[test]
fn merged_and_older_records() {
    let merged = NOTE.replace(" ^note0001", " ^aa ^bb ^cc");
    let older = "# Old\n\nOne.[^mem_1] Two.[^mem_2][^mem_3]\n\n[^mem_1]: Time: `2026`; Sources: [x](../sources/D1.md#d1-1)\n[^mem_2]: Time: `2026`; Sources: [x](../sources/D1.md#d1-1)\n[^mem_3]: Time: `2026`; Sources: [x](../sources/D1.md#d1-2)\n";
    let memory = Memory::new(&[("topics/m.md", merged.as_str()), ("topics/o.md", older)]);
    let delete = |ids: &[&str]| {
        let operations: Vec<_> = ids.iter().map(|id| json!({"op": "delete", "memory_id": id})).collect();
        json!({"memory_changes": operations}).to_string()
    };
    let after = |fields: &str| {
        let mut memory = memory.clone();
        let plan = memory.ask(fields).unwrap_or_else(|error| panic!("{fields}: {:?}", told(&error)));
        assert_eq!(memory.faults(), [""; 0]);
        (memory, plan)
    };
    let (one, plan) = after(&delete(&["cc"]));
    assert!(one.topics["topics/m.md"].contains("A fact.[^e-0000000001] ^aa ^bb\n"));
    assert_eq!((plan.removed(), plan.changed()), (&["cc".to_owned()][..], &[][..]));
    let (none, plan) = after(&delete(&["cc", "aa", "bb"]));
    assert_eq!(none.topics.get("topics/m.md"), None);
    assert_eq!(plan.removed(), ["aa", "bb", "cc"]);
    let (one, _) = after(&delete(&["mem_1"]));
    assert!(
        one.topics["topics/o.md"].starts_with("# Old\n\nTwo.[^mem_2][^mem_3]\n\n[^mem_2]"),
        "{}",
        one.topics["topics/o.md"]
    );
    let (one, _) = after(&delete(&["mem_3"]));
    assert!(
        one.topics["topics/o.md"].contains("\nOne.[^mem_1] Two.[^mem_2]\n")
            && !one.topics["topics/o.md"].contains("mem_3")
    );
    let update = json!({"memory_changes": [{"op": "update", "memory_id": "mem_2", "content": "2", "time": "2027", "source_refs": ["D1:2"]}]});
    let (one, plan) = after(&update.to_string());
    assert!(one.topics["topics/o.md"].contains("\nOne.[^mem_1] 2[^mem_2][^mem_3]\n"), "{}", one.topics["topics/o.md"]);
    assert!(one.topics["topics/o.md"].contains("[^mem_3]: Time: `2027`; Sources: [D1:2](../sources/D1.md#d1-2)\n"));
    assert_eq!(plan.changed(), ["mem_2", "mem_3"]);
    let to = json!({"topic_path": "topics/x/n.md", "headings": ["N"], "position": "end"});
    let shift = |ids: &[&str]| {
        json!({"memory_changes": [{"op": "move_records", "memory_ids": ids, "destination": to}]}).to_string()
    };
    let (one, plan) = after(&shift(&["mem_3", "mem_2", "cc", "bb", "aa"]));
    let text = &one.topics["topics/x/n.md"];
    assert!(
        text.starts_with(
            "# N\n\nTwo.[^mem_2][^mem_3]\n\n[^mem_2]: Time: `2026`; Sources: [x](../../sources/D1.md#d1-1)\n"
        ),
        "{text}"
    );
    assert!(text.contains("\nA fact.[^e-0000000001] ^aa ^bb ^cc\n"));
    assert!(one.topics["topics/o.md"].contains("\nOne.[^mem_1]\n") && !one.topics.contains_key("topics/m.md"));
    assert_eq!(plan.changed(), ["mem_2", "mem_3", "aa", "bb", "cc"]);
    let mut memory = memory.clone();
    for (fields, first) in [
        (shift(&["aa", "bb"]), "memory_changes[0].memory_ids[0] merged-records-apart aa, bb, cc"),
        (shift(&["mem_2"]), "memory_changes[0].memory_ids[0] merged-records-apart mem_2, mem_3"),
        (shift(&["zz"]), "memory_changes[0].memory_ids[0] no-such-record zz"),
        (delete(&["aa", "aa"]), "memory_changes[1].memory_id record-named-twice aa"),
    ] {
        assert_eq!(refused(&mut memory, &fields)[0], first);
    }
}

#[test]
fn what_moves_takes_its_evidence_along() {
    // The label is in both topics and means something else in each; the third means the same.
    let other = NOTE.replace("note0001", "other001").replace("d1-1", "d1-2").replace("A fact.", "Another.");
    let same =
        NOTE.replace("note0001", "same0001").replace("A fact.", "The same.").replace("../sources", "../../sources");
    let mut memory = Memory::new(&[
        ("topics/note.md", NOTE),
        ("topics/other.md", other.as_str()),
        ("topics/x/same.md", same.as_str()),
    ]);
    let shift = |id: &str, to: &str, headings: &[&str]| {
        let destination = json!({"topic_path": to, "headings": headings, "position": "end"});
        json!({"memory_changes": [{"op": "move_records", "memory_ids": [id], "destination": destination}]}).to_string()
    };
    let plan = memory.ask(&shift("other001", "topics/note.md", &["Note"])).expect("done");
    let [footnote] = plan.evidence_ids() else { panic!("one new label") };
    assert!(memory.topics["topics/note.md"].contains(&format!("Another.[^{}] ^other001\n", footnote.label)));
    assert!(!memory.topics.contains_key("topics/other.md"));
    memory.ask(&shift("note0001", "topics/x/same.md", &["Note"])).expect("done");
    let text = &memory.topics["topics/x/same.md"];
    assert_eq!(text.matches("[^e-0000000001]: ").count(), 1, "{text}");
    assert_eq!(memory.faults(), [""; 0]);
}

#[test]
fn who_may_only_add() {
    let mut memory = note();
    let append = |more: &str| {
        json!({"changes": [{"path": "topics/note.md", "action": "write", "content": format!("{NOTE}{more}")}]})
            .to_string()
    };
    let paired = |memory: &mut Memory, fields: &str| {
        memory.ask_as(Memory::paired(), fields).map_err(|error| (error.code(), told(&error)))
    };
    paired(&mut memory, &append("\nMore.[^e1]\n\n[^e1]: Time: 2026; Sources: D1:2\n")).expect("added");
    // Without a tier nobody is the owner.
    let before = memory.topics.clone();
    for caller in [Memory::paired(), Caller { tier: None, ..Memory::paired() }] {
        for fields in [
            json!({"changes": [{"path": "topics/note.md", "action": "delete"}], "removed_blocks": ["note0001"]}),
            json!({"changes": [{"path": "topics/note.md", "action": "write", "content": NOTE.replace("fact", "lie")}]}),
            json!({"patch": "--- a/topics/note.md\n+++ b/topics/note.md\n@@ -3 +3 @@\n-A fact.[^e-0000000001] ^note0001\n+A lie.[^e-0000000001] ^note0001\n"}),
            json!({"memory_changes": [{"op": "delete", "memory_id": "note0001"}]}),
            json!({"memory_changes": [{"op": "update", "memory_id": "note0001", "content": "A lie", "time": null, "source_refs": ["D1:1"]}]}),
            json!({"memory_changes": [{"op": "create", "content": "First", "time": null, "source_refs": ["D1:1"], "destination": {"topic_path": "topics/note.md", "headings": ["Note"], "position": "start"}}]}),
        ] {
            let rejection = memory.ask_as(caller.clone(), &fields.to_string()).expect_err("refused");
            assert_eq!(rejection.code(), Code::AppendOnlyRequired, "{fields}: {:?}", told(&rejection));
        }
        for path in ["topics/core.md", "topics/CORE.md", "./topics//core.md", "topics/cøre.md"] {
            let allowed = path.contains('ø');
            for fields in [
                json!({"changes": [{"path": path, "action": "write", "content": "Me.[^e1]\n\n[^e1]: Time: 2026; Sources: D1:2\n"}]}).to_string(),
                create(path, &["C"], "Me."),
                json!({"patch": format!("--- /dev/null\n+++ b/{path}\n@@ -0,0 +1 @@\n+x\n")}).to_string(),
            ] {
                match memory.plan(Request::from_json(&with_revision(&fields), &Limits::default()).expect("a request"), caller.clone()) {
                    Err(rejection) if !allowed => assert_eq!((rejection.code(), rejection.faults()[0].why), (Code::ReadOnlyPath, Why::Update(Reason::CoreOwnerOnly))),
                    Err(rejection) => assert_eq!(rejection.code(), Code::InvalidTopicFormat, "{:?}", told(&rejection)),
                    Ok(_) => assert!(allowed, "{path}"),
                }
            }
        }
    }
    assert_eq!(memory.topics, before);
    memory.ask(&create("topics/core.md", &["C"], "The owner's.")).expect("the owner may");
}

#[test]
fn nothing_is_added_to_what_is_there_from_behind() {
    // A footnote that was missing, a local label that was left, a last paragraph that goes on.
    for (before, more) in [
        ("A.[^x] ^aa\n", "\n[^x]: Time: 2026; Sources: D1:1\n"),
        ("A.[^e1] ^aa\n", "\nB.[^e1]\n\n[^e1]: Time: 2026; Sources: D1:1\n"),
        ("A.[^e1] ^aa\n", "\n[^e-12]: Time: 2026; Sources: D1:1\n"),
        ("A.[^e-1] ^aa\n\n[^e-1]: Time: `2026`; Sources: [x](D1:1)\n\nB.[^e-1] ^bb", " and more[^e-1] ^bb\n"),
    ] {
        let mut memory = Memory::new(&[("topics/a.md", before)]);
        let fields =
            json!({"changes": [{"path": "topics/a.md", "action": "write", "content": format!("{before}{more}")}]});
        let rejection = memory.ask_as(Memory::paired(), &fields.to_string()).expect_err(more);
        assert!(
            rejection.code() == Code::AppendOnlyRequired || rejection.code() == Code::InvalidTopicFormat,
            "{:?}",
            told(&rejection)
        );
    }
}

#[test]
fn damaged_topics_stand_in_nobodys_way() {
    let damaged = "# D\n\nprose\n\nOne.[^nobody] ^dam00001\n";
    let mut memory = Memory::new(&[("topics/damaged.md", damaged), ("topics/note.md", NOTE)]);
    memory.unreadable.push("topics/bytes.md".to_owned());
    memory.ask(&create("topics/note.md", &["Note"], "Others go on.")).expect("done");
    memory.ask(&create("topics/damaged.md", &["D"], "So does this.")).expect("done");
    assert!(memory.topics["topics/damaged.md"].starts_with(damaged));
    assert_eq!(
        refused(&mut memory, &create("topics/bytes.md", &["B"], "No.")),
        ["topics/bytes.md memory_changes[0].destination.topic_path unreadable-topic"]
    );
    let patch = json!({"patch": "--- a/topics/bytes.md\n+++ b/topics/bytes.md\n@@ -1 +1 @@\n-a\n+b\n"});
    assert_eq!(refused(&mut memory, &patch.to_string()), ["topics/bytes.md patch unreadable-topic"]);
    let repair =
        json!({"changes": [{"path": "topics/bytes.md", "action": "write", "content": NOTE.replace(" ^note0001", "")}]});
    let rejection = memory.ask_as(Memory::paired(), &repair.to_string()).expect_err("not theirs to overwrite");
    assert_eq!(rejection.code(), Code::AppendOnlyRequired);
    let mut repaired = memory.clone();
    repaired.ask(&repair.to_string()).expect("given anew");
    assert!(repaired.unreadable.is_empty());
    let plan = memory.ask("{\"changes\": [{\"path\": \"topics/bytes.md\", \"action\": \"delete\"}, {\"path\": \"topics/damaged.md\", \"action\": \"write\", \"content\": \"# D\\n\\nOne.[^e1] ^dam00001\\n\\n[^e1]: Time: 2026; Sources: D1:1\\n\"}]}");
    let rejection = plan.expect_err("the block that was added would go");
    assert!(told(&rejection)[0].contains("block-id-removed"));
    let plan = memory.ask("{\"changes\": [{\"path\": \"topics/bytes.md\", \"action\": \"delete\"}]}").expect("deleted");
    assert_eq!(plan.topics().values().collect::<Vec<_>>(), [&None]);
}

#[test]
fn blocks_go_on_purpose_only() {
    let mut memory = note();
    assert_eq!(
        refused(&mut memory, "{\"changes\": [{\"path\": \"topics/note.md\", \"action\": \"delete\"}]}"),
        ["topics/note.md:3 block-id-removed note0001"]
    );
    assert_eq!(
        refused(
            &mut memory,
            "{\"changes\": [{\"path\": \"topics/none.md\", \"action\": \"delete\"}], \"removed_blocks\": [\"gone\"]}"
        ),
        ["removed_blocks no-such-record gone", "topics/none.md changes[0].path no-such-topic"]
    );
    let plan = memory.ask("{\"changes\": [{\"path\": \"topics/note.md\", \"action\": \"delete\"}], \"removed_blocks\": [\"note0001\"]}").expect("done");
    assert_eq!(plan.removed(), ["note0001"]);
    assert!(memory.topics.is_empty());
}

#[test]
fn all_faults_of_the_topics_are_told() {
    let fields = json!({"changes": [{"path": "topics/a.md", "action": "write", "content": "prose\n\nA.[^e1] [x](gone.md#^gone)[^e2]\n\n[^e1]: Time: 2026; Sources: p/t/pending\n[^e2]: Time: 2026-13; Sources: new-source-x\n"}]});
    let told = refused(&mut note(), &fields.to_string());
    let reasons: Vec<&str> = told.iter().filter_map(|told| told.split(' ').nth(1)).collect();
    assert_eq!(reasons[0], "missing-source", "{told:?}");
    for reason in ["missing-block-id", "invalid-time", "dangling-block-link", "untrusted-source"] {
        assert!(reasons.contains(&reason), "{reason}: {told:?}");
    }
}

#[test]
fn names_that_look_alike_are_topics_of_their_own() {
    let mut memory = Memory::new(&[]);
    for (number, name) in ["My plan", "My%20plan", "我的 计划 😀"].into_iter().enumerate() {
        memory.ask(&create(&format!("topics/{name}.md"), &[name], &format!("Number {number}."))).expect(name);
    }
    assert_eq!(memory.topics.len(), 3);
    let ids: Vec<String> = memory.blocks().into_iter().flat_map(|(_, _, ids, _)| ids).collect();
    // Links between them lead where they should.
    let content = ids.iter().map(|id| format!("[x](somewhere.md#^{id})")).collect::<Vec<_>>().join(" ");
    memory.ask(&create("topics/links.md", &[], &content)).expect("linked");
    let text = &memory.topics["topics/links.md"];
    assert!(
        text.contains("](My%20plan.md#^") && text.contains("](My%2520plan.md#^") && text.contains(".md#^"),
        "{text}"
    );
    assert_eq!(memory.faults(), [""; 0]);
}

#[test]
fn line_ends_marks_and_controls() {
    let crlf = NOTE.replace('\n', "\r\n");
    let mut memory = Memory::new(&[
        ("topics/crlf.md", crlf.as_str()),
        ("topics/bom.md", "\u{feff}# B\n\nX\u{85}Y.[^e-2] ^bom00001\n\n[^e-2]: Time: `2026`; Sources: [x](D1:1)\n"),
    ]);
    let untouched = memory.topics["topics/bom.md"].clone();
    let plan = memory.ask(&create("topics/crlf.md", &["Note"], "More\r\nand more")).expect("done");
    assert!(!memory.topics["topics/crlf.md"].contains('\r'));
    assert_eq!(plan.changed(), [""; 0], "only line ends");
    assert_eq!(memory.topics["topics/bom.md"], untouched);
    memory.ask(&create("topics/bom.md", &["C"], "NEL\u{85}and \u{2028} stay")).expect("done");
    assert!(
        memory.topics["topics/bom.md"].starts_with("\u{feff}# B\n\nX\u{85}Y.")
            && memory.topics["topics/bom.md"].contains("NEL\u{85}and \u{2028} stay[^")
    );
    let paired = json!({"changes": [{"path": "topics/crlf.md", "action": "write", "content": memory.topics["topics/crlf.md"].replace('\n', "\r\n") + "\r\n## More\r\n"}]});
    assert!(memory.ask_as(Memory::paired(), &paired.to_string()).expect("added nothing").topics().is_empty());
}

/// Very many topics that are only made when somebody asks, and a note of which.
struct Many {
    asked: RefCell<BTreeSet<usize>>,
    texts: Vec<OnceLock<String>>,
}

const PER_TOPIC: usize = 100;

impl Many {
    fn new(topics: usize) -> Self {
        Self { asked: RefCell::default(), texts: (0..topics).map(|_| OnceLock::new()).collect() }
    }

    fn number(path: &TopicPath) -> Option<usize> {
        path.name().strip_prefix('t')?.strip_suffix(".md")?.parse().ok()
    }

    fn path(&self, number: usize) -> Vec<TopicPath> {
        let path = TopicPath::parse(&format!("topics/t{number}.md")).expect("a topic");
        if number < self.texts.len() { vec![path] } else { Vec::new() }
    }
}

impl Committed for Many {
    fn text(&self, path: &TopicPath) -> Option<&str> {
        let number = Self::number(path)?;
        self.asked.borrow_mut().insert(number);
        let make = || {
            let block = |at: usize| format!("Fact {at}.[^e-{number}] ^b{number}-{at}\n\n");
            let blocks: String = (0..PER_TOPIC).map(block).collect();
            format!("# T\n\n{blocks}[^e-{number}]: Time: `2026`; Sources: [x](D1:1)\n")
        };
        self.texts.get(number).map(|text| text.get_or_init(make).as_str())
    }

    fn topics_of(&self, id: &str) -> Vec<TopicPath> {
        let number = id.strip_prefix('b').and_then(|rest| rest.split_once('-')?.0.parse().ok());
        number.map(|number| self.path(number)).unwrap_or_default()
    }

    fn topics_defining(&self, label: &str) -> Vec<TopicPath> {
        label.strip_prefix("e-").and_then(|rest| rest.parse().ok()).map(|number| self.path(number)).unwrap_or_default()
    }

    fn linking_to(&self, _: &str) -> Vec<TopicPath> {
        Vec::new()
    }
}

#[test]
fn an_update_asks_only_about_what_it_touches() {
    let many = Many::new(1000);
    let fields = json!({"base_revision": REVISION, "memory_changes": [
        {"op": "update", "memory_id": "b7-3", "content": "New", "time": null, "source_refs": ["D1:2"]},
        {"op": "delete", "memory_id": "b7-4"},
        {"op": "move_records", "memory_ids": ["b9-1"], "destination": {"topic_path": "topics/t11.md", "headings": ["T"], "position": "end"}},
    ]});
    let request = Request::from_json(&fields.to_string(), &Limits::default()).expect("a request");
    let draft = Draft::new(request, Memory::owner(), DEFAULT_PROVIDER, &recollex_core::source::Limits::default())
        .expect("a draft");
    let memory = note();
    let nothing = recollex_core::source::Plan { changes: Vec::new(), branches: Vec::new(), records: Vec::new() };
    let workspace = Workspace { revisions: &[REVISION], committed: &many, evidence: &memory.archive };
    let plan = draft.plan(workspace, nothing).unwrap_or_else(|error| panic!("{:?}", told(&error)));
    assert_eq!(*many.asked.borrow(), BTreeSet::from([7, 9, 11]));
    assert_eq!(
        (plan.changed(), plan.removed()),
        (&["b9-1".to_owned(), "b7-3".to_owned()][..], &["b7-4".to_owned()][..])
    );
}

#[test]
fn a_block_that_a_thousand_link_to() {
    let linking: String =
        (0..1000).map(|at| format!("See [it](note.md#^note0001) {at}.[^e-2] ^link{at:04}\n\n")).collect();
    let linking = format!("{linking}[^e-2]: Time: `2026`; Sources: [x](D1:1)\n");
    let mut memory = Memory::new(&[("topics/note.md", NOTE), ("topics/links.md", linking.as_str())]);
    let told = refused(&mut memory, "{\"memory_changes\": [{\"op\": \"delete\", \"memory_id\": \"note0001\"}]}");
    assert_eq!(told.len(), 1000);
    assert_eq!(told[999], "topics/links.md:1999 dangling-block-link note0001");
    let shift = json!({"memory_changes": [{"op": "move_records", "memory_ids": ["note0001"], "destination": {"topic_path": "topics/x/new.md", "headings": [], "position": "end"}}]});
    let plan = memory.ask(&shift.to_string()).expect("moved");
    assert_eq!(memory.topics["topics/links.md"].matches("](x/new.md#^note0001)").count(), 1000);
    assert_eq!(plan.changed().len(), 1001);
}

#[test]
fn a_paragraph_of_ten_megabytes() {
    let long = "word ".repeat(2 << 20);
    let text = format!(
        "# T\n\n{long}end.[^e-1] ^long0001\n\nShort.[^e-1] ^shrt0001\n\n[^e-1]: Time: `2026`; Sources: [x](D1:1)\n"
    );
    let mut memory = Memory::new(&[("topics/t.md", text.as_str())]);
    let fields = json!({"memory_changes": [
        {"op": "update", "memory_id": "shrt0001", "content": "New", "time": null, "source_refs": ["D1:2"]},
        {"op": "move_records", "memory_ids": ["long0001"], "destination": {"topic_path": "topics/u.md", "headings": [], "position": "end"}},
    ]});
    let plan = memory.ask(&fields.to_string()).expect("done");
    assert_eq!(plan.topics().len(), 2);
    assert!(memory.topics["topics/u.md"].len() > 10 << 20 && memory.topics["topics/t.md"].len() < 300);
}

#[test]
fn whoever_is_restricted_to_a_batch_cites_that() {
    let offered = Some([recollex_core::ids::SourceRef::parse("D1:2").expect("a turn")].into());
    let caller = Caller { offered, ..Memory::owner() };
    assert_eq!(caller.tier, Some(Tier::Owner));
    let mut memory = note();
    let rejection = memory.ask_as(caller.clone(), &create("topics/a.md", &[], "A.")).expect_err("not offered");
    assert!(told(&rejection)[0].contains("source-not-offered D1:1"));
    memory.ask_as(caller.clone(), &create("topics/a.md", &[], "A.").replace("D1:1", "D1:2")).expect("offered");
    let mut quoting: serde_json::Value =
        serde_json::from_str(&create("topics/b.md", &[], "B.").replace("D1:1", "new-source-a")).expect("JSON");
    quoting["sources"] = json!([{"label": "new-source-a", "role": "user", "content": "b"}]);
    memory.ask_as(caller, &quoting.to_string()).expect("what is quoted is offered");
}

#[test]
fn quoted_names_are_for_where_sources_are_named() {
    let source = QuotedSource {
        label: "new-source-a".to_owned(),
        role: "user".to_owned(),
        content: "x".to_owned(),
        observed_at: None,
    };
    let proposal = Proposal {
        base_revision: REVISION.to_owned(),
        edit: ProposedEdit::Changes(vec![("topics/a.md".to_owned(), Some("About new-source-a and new-source-zz.[^e1]\n\n[^e1]: Time: 2026; Sources: [new-source-a](new-source-a)\n".to_owned()))]),
        sources: vec![source],
        commit_message: None,
        removed_blocks: Vec::new(),
    };
    let mut memory = note();
    memory.update(request(proposal), Memory::owner()).expect("done");
    assert!(memory.topics["topics/a.md"].starts_with("About new-source-a and new-source-zz.["));
}
