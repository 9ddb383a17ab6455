//! Topics as nobody should write them, and as much as nobody would: each is answered, nothing of it spoils anything else.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use recollex::{OpenOptions, Tier};
use serde_json::{Value, json};

use crate::ground::{Ground, RECORD, claims, create, whole, written};

const BAD: &str = "# Bad\n\nNothing rests on this.\n";

/// A claim in a topic of its own, and its id.
fn claim(ground: &mut Ground, topic: &str, content: &str) -> String {
    let made = ground.updated(&json!({"memory_changes": [create(topic, content)]}));
    made.block_ids[0].id.clone()
}

/// Somebody edits another topic, and that works.
#[track_caller]
fn others_go_on(ground: &mut Ground) {
    let id = claim(ground, "topics/other.md", "Others go on.");
    let edit = json!({"memory_changes": [{"op": "delete_record", "memory_id": id}]});
    ground.updated(&edit);
}

#[test]
fn ten_megabytes_of_one_paragraph() {
    let text = "tea and milk and honey ".repeat(10_000_000 / 23);
    let content = format!("# Big\n\n{}", written(&text, "2026-01-02", "e1"));
    let mut ground = Ground::new();
    assert_eq!(ground.refused(&json!({"changes": [whole("topics/big.md", &content)]})), ["changes-too-large"]);
    assert_eq!(ground.refused(&json!({"memory_changes": [create("topics/big.md", &text)]})), ["changes-too-large"]);
    // By hand there is no such limit.
    ground.write("topics/big.md", &content);
    let repaired = ground.session.repair(false).unwrap();
    assert_eq!(repaired.block_ids.len(), 1);
    assert!(ground.read("topics/big.md").contains(text.trim_end()));
    assert!(ground.read("timeline/2026/01/02.md").contains(text.trim_end()));
    others_go_on(&mut ground);
    let delete = json!({"memory_changes": [{"op": "delete_record", "memory_id": repaired.block_ids[0].id}]});
    ground.updated(&delete);
    assert!(!ground.root().join("topics/big.md").exists());

    let mut roomy = Ground::with(OpenOptions::new(Tier::Owner).setting("update.change-bytes", "16777216"));
    roomy.updated(&json!({"changes": [whole("topics/big.md", &content)]}));
    assert!(roomy.read("topics/big.md").contains(text.trim_end()));
}

#[test]
fn a_hundred_thousand_blocks() {
    let mut ground = Ground::new();
    let mut content = String::from("# Many\n\n");
    for number in 0..100_000 {
        write!(content, "Claim {number}.[^e1]\n\n").unwrap();
    }
    writeln!(content, "[^e1]: Time: `2026-01-02`; Sources: [it]({RECORD})").unwrap();
    ground.write("topics/many.md", &content);
    let repaired = ground.session.repair(false).unwrap();
    assert_eq!(repaired.block_ids.len(), 100_000);
    let ids: BTreeSet<&str> = repaired.block_ids.iter().map(|given| given.id.as_str()).collect();
    assert_eq!(ids.len(), 100_000);
    assert_eq!(ground.session.status().unwrap().counts.blocks, Some(100_000));
    others_go_on(&mut ground);
    let last = &repaired.block_ids[99_999].id;
    assert_eq!(ground.session.why(last).unwrap().text, "Claim 99999.");
}

#[test]
fn links_in_circles() {
    let mut ground = Ground::new();
    let a = claim(&mut ground, "topics/a.md", "A.");
    let b = claim(&mut ground, "topics/b.md", &format!("B, see [A](a.md#^{a})."));
    let to = |id: &str, other: &str| {
        json!({"op": "update_record", "memory_id": id, "content": format!("See [it](x.md#^{other})."), "time": "2026-01-02",
               "source_refs": [RECORD]})
    };
    // To each other, and to oneself.
    ground.updated(&json!({"memory_changes": [to(&a, &b)]}));
    let c = claim(&mut ground, "topics/c.md", "C.");
    ground.updated(&json!({"memory_changes": [to(&c, &c)]}));
    let relations: Value = serde_json::from_str(&ground.read("relations.json")).unwrap();
    let links = json!({&a: [&b], &b: [&a], &c: [&c]});
    assert_eq!(relations, json!({"backlinks": links, "outbound": links}));
    let away = json!({"op": "move_records", "memory_ids": [a], "destination":
        {"topic_path": "topics/far/away.md", "headings": [], "position": "end"}});
    ground.updated(&json!({"memory_changes": [away]}));
    assert!(ground.read("topics/b.md").contains(&format!("(far/away.md#^{a})")));
    assert!(ground.read("topics/far/away.md").contains(&format!("(../b.md#^{b})")));

    let delete = |id: &str| json!({"op": "delete_record", "memory_id": id});
    assert_eq!(ground.refused(&json!({"memory_changes": [delete(&a)]})), ["dangling-block-link"]);
    ground.updated(&json!({"memory_changes": [delete(&c)]}));
    ground.updated(&json!({"memory_changes": [delete(&a), delete(&b)]}));
    assert_eq!(ground.read("relations.json"), "{\"backlinks\": {}, \"outbound\": {}}\n");
    ground.assert_views_are_whole("after the circles");
}

#[test]
fn what_a_thousand_others_link_to() {
    let mut ground = Ground::new();
    let id = claim(&mut ground, "topics/hub.md", "The hub.");
    let spokes: String = (0..1000).map(|number| format!("Spoke {number} of [it](hub.md#^{id}).[^e1]\n\n")).collect();
    let content = |spokes: &str| format!("# Spokes\n\n{spokes}[^e1]: Time: `2026-01-02`; Sources: [it]({RECORD})\n");
    ground.updated(&json!({"changes": [whole("topics/spokes.md", &content(&spokes))]}));

    let delete = json!({"op": "delete_record", "memory_id": id});
    let reasons = ground.refused(&json!({"memory_changes": [delete]}));
    assert_eq!(reasons, vec!["dangling-block-link"; 1000], "all of them are told");
    let whole_topic = json!({"changes": [{"path": "topics/hub.md", "action": "delete"}], "removed_blocks": [id]});
    assert_eq!(ground.refused(&whole_topic), vec!["dangling-block-link"; 1000]);

    // Moved, a thousand links follow.
    let away = json!({"op": "move_records", "memory_ids": [id], "destination":
        {"topic_path": "topics/far/away.md", "headings": [], "position": "end"}});
    ground.updated(&json!({"memory_changes": [away]}));
    assert_eq!(ground.read("topics/spokes.md").matches(&format!("(far/away.md#^{id})")).count(), 1000);

    // With the links it may go.
    let unlinked = ground.read("topics/spokes.md").replace(&format!("[it](far/away.md#^{id})"), "it");
    let edit = json!({"changes": [whole("topics/spokes.md", &unlinked), {"path": "topics/far/away.md", "action": "delete"}],
                      "removed_blocks": [id]});
    ground.updated(&edit);
    let relations: Value = serde_json::from_str(&ground.read("relations.json")).unwrap();
    assert_eq!(relations["backlinks"], json!({}));
    ground.assert_views_are_whole("without the hub");
}

#[test]
fn headings_past_six() {
    let mut ground = Ground::new();
    let mut record = create("topics/deep.md", "Deep.");
    record["destination"]["headings"] = json!(["1", "2", "3", "4", "5", "6", "7"]);
    assert_eq!(ground.refused(&json!({"memory_changes": [record]})), ["too-many-headings"]);
    record["destination"]["headings"] = json!(["1", "2", "3", "4", "5", "6"]);
    ground.updated(&json!({"memory_changes": [record]}));
    assert!(
        ground.read("topics/deep.md").starts_with("# 1\n\n## 2\n\n### 3\n\n#### 4\n\n##### 5\n\n###### 6\n\nDeep.")
    );
    // Seven of them are no heading but words that rest on nothing.
    let seven = format!("# 1\n\n####### 7\n\n{}", written("Deeper.", "2026-01-02", "e1"));
    assert_eq!(ground.refused(&json!({"changes": [whole("topics/seven.md", &seven)]})), ["missing-block-id"]);
    ground.write("topics/seven.md", &seven);
    ground.session.repair(false).unwrap();
    assert!(ground.read("topics/seven.md").contains("####### 7"));
    assert_eq!(ground.findings(), [("topics/seven.md".to_owned(), 3, "missing-block-id".to_owned())]);
}

#[test]
fn patches_that_do_not_fit() {
    let mut ground = Ground::new();
    claim(&mut ground, "topics/a.md", "First.");
    claim(&mut ground, "topics/a.md", "Second.");
    let topic = ground.read("topics/a.md");
    let at = topic.lines().position(|line| line.starts_with("Second.")).unwrap();
    let line = topic.lines().nth(at).unwrap();
    let hunk = |number: usize, old: &str| {
        let new = old.replace("Second", "2nd");
        json!({"patch": format!("--- a/topics/a.md\n+++ b/topics/a.md\n@@ -{number},1 +{number},1 @@\n-{old}\n+{new}\n")})
    };
    // One line above and below where it is, far behind the end, and other words.
    assert_eq!(ground.refused(&hunk(at, line)), ["context-mismatch"]);
    assert_eq!(ground.refused(&hunk(at + 2, line)), ["context-mismatch"]);
    assert_eq!(ground.refused(&hunk(at + 500, line)), ["past-end"]);
    ground.refused(&hunk(usize::MAX, line));
    assert_eq!(ground.refused(&hunk(at + 1, &line.replace("Second", "Third"))), ["context-mismatch"]);
    ground.updated(&hunk(at + 1, line));
    assert_eq!(ground.read("topics/a.md"), topic.replace("Second.", "2nd."));
}

#[test]
fn line_ends_of_any_kind_and_marks_before_the_text() {
    let mut ground = Ground::new();
    let text = format!("# Notes\n\n{}", written("One.", "2026-01-02", "e1"));
    ground.write("topics/crlf.md", text.replace('\n', "\r\n"));
    ground.write("topics/cr.md", text.replace('\n', "\r"));
    ground.session.repair(false).unwrap();
    for topic in ["topics/crlf.md", "topics/cr.md"] {
        let text = ground.read(topic);
        assert!(!text.contains('\r'), "{text:?}");
        assert_eq!(claims(&text).len(), 1, "{text}");
    }
    // In order but for its line ends: nobody touches it, whatever else is edited, and what it says counts.
    let crlf = ground.read("topics/crlf.md").replace('\n', "\r\n");
    ground.write("topics/crlf.md", &crlf);
    others_go_on(&mut ground);
    let id = claims(&ground.read("topics/cr.md"))[0].id.clone();
    ground.updated(&json!({"memory_changes": [{"op": "delete_record", "memory_id": id}]}));
    assert_eq!(ground.read("topics/crlf.md"), crlf);
    assert_eq!(ground.findings(), []);

    // NEL, a line separator, a form feed: characters like others, within one claim.
    let odd = "One\u{85}line,\u{2028}no\u{c}matter.";
    ground.write("topics/nel.md", format!("# Notes\n\n{}", written(odd, "2026-01-02", "e1")));
    let repaired = ground.session.repair(false).unwrap();
    assert_eq!(repaired.block_ids.len(), 1);
    let why = ground.session.why(&repaired.block_ids[0].id).unwrap();
    assert_eq!(why.text, odd);

    // A mark of the byte order makes words of the heading behind it; it goes.
    ground.write("topics/bom.md", format!("\u{feff}# Notes\n\n{}", written("Marked.", "2026-01-02", "e1")));
    assert!(ground.findings().contains(&("topics/bom.md".to_owned(), 1, "byte-order-mark".to_owned())));
    let repaired = ground.session.repair(false).unwrap();
    assert!(ground.read("topics/bom.md").starts_with("# Notes\n\nMarked.[^e-"));
    assert_eq!(ground.session.why(&repaired.block_ids[0].id).unwrap().text, "Marked.");
    assert_eq!(ground.session.why(&repaired.block_ids[0].id).unwrap().headings, ["Notes"]);
    assert_eq!(ground.findings(), []);
    others_go_on(&mut ground);
    ground.assert_views_are_whole("with a mark");
}

#[test]
fn titles_that_look_alike_are_files_of_their_own() {
    let mut ground = Ground::new();
    let topics = [
        "topics/a b.md",
        "topics/a%20b.md",
        "topics/a+b.md",
        "topics/100%.md",
        "topics/茶.md",
        "topics/🍵.md",
        "topics/人/茶 🍵 %.md",
    ];
    let ids: Vec<String> = topics.iter().map(|topic| claim(&mut ground, topic, &format!("In {topic}."))).collect();
    for (topic, id) in topics.iter().zip(&ids) {
        let said = claims(&ground.read(topic));
        assert_eq!((&said[0].id, &*said[0].text), (id, &*format!("In {topic}.")));
        assert_eq!(ground.session.get_block(id).unwrap().path, *topic);
    }
    // Links lead to each of them, from each of them.
    let all: String = ids.iter().map(|id| format!("[x](x.md#^{id}) ")).collect();
    for topic in topics {
        claim(&mut ground, topic, &format!("See {}.", all.trim_end()));
    }
    assert!(
        ground.read("topics/a b.md").contains(&format!("(a%2520b.md#^{})", ids[1])),
        "{}",
        ground.read("topics/a b.md")
    );
    assert_eq!(ground.findings(), []);
    for (id, topic) in ids.iter().zip(topics) {
        let why = ground.session.why(id).unwrap();
        assert_eq!((why.path.as_str(), why.linked_from.len()), (topic, topics.len()));
    }
    ground.assert_views_are_whole("with odd titles");
}

#[test]
fn a_topic_that_cannot_be_read_stands_in_nobodys_way() {
    let mut ground = Ground::new();
    let id = claim(&mut ground, "topics/bad.md", "It was fine.");
    let fine = ground.read("topics/bad.md");
    // A good claim among words that rest on nothing.
    ground.write("topics/bad.md", format!("{fine}\n{BAD}"));
    assert!(
        ground.findings().iter().any(|(path, line, code)| {
            (path.as_str(), *line, code.as_str())
                == ("topics/bad.md", fine.lines().count() as u64 + 4, "missing-block-id")
        }),
        "{:?}",
        ground.findings()
    );
    others_go_on(&mut ground);
    assert!(ground.read("timeline/2026/01/02.md").contains(&id), "what is sound in it counts");
    // Even in that topic a claim may come; and it can be put right as a whole.
    claim(&mut ground, "topics/bad.md", "It goes on.");
    assert!(ground.read("topics/bad.md").contains("Nothing rests on this."));
    let repaired = ground.read("topics/bad.md").replace("Nothing rests on this.\n", "");
    ground.updated(&json!({"changes": [whole("topics/bad.md", &repaired)]}));
    assert_eq!(ground.findings(), []);

    // The same for what is no text at all.
    let mut bytes = fine.into_bytes();
    bytes.extend_from_slice(b"\xff\xfe\n");
    ground.write("topics/bytes.md", &bytes);
    others_go_on(&mut ground);
    let findings = ground.findings();
    assert!(findings.iter().any(|(path, _, code)| path == "topics/bytes.md" && code == "invalid-utf8"), "{findings:?}");
    assert_eq!(ground.refused(&json!({"memory_changes": [create("topics/bytes.md", "More.")]})), ["unreadable-topic"]);
    ground.updated(&json!({"changes": [{"path": "topics/bytes.md", "action": "delete"}]}));
    assert!(!ground.root().join("topics/bytes.md").exists());
    assert_eq!(ground.findings(), []);
    ground.assert_views_are_whole("when all is well again");
}
