//! Topics changed through the command: what is asked for comes to be, whole, with the views that follow from it, and nothing
//! else does.

use std::collections::BTreeSet;
use std::fs;
use std::io::{Read as _, Write as _};
use std::process::{Command, Stdio};

use recollex_tests::crash::READY;
use serde_json::{Value, json};

use crate::home::{Home, Ran};
use crate::support::cache;

/// A workspace with two trusted records and a pending one.
fn home() -> Home {
    let home = Home::with_workspace();
    let turn = |id: &str, text: &str, trust: &str| {
        json!({"id": id, "role": "user", "text": text, "time": "2026-01-02", "trust": trust,
               "speaker": {"id": "u-1", "display": "Ada", "kind": "owner"}, "tier": "owner", "principal": "ada"})
    };
    home.archive(&[
        turn("1", "I drink tea.", "trusted"),
        turn("2", "The boat is blue.", "trusted"),
        turn("3", "I am the owner's cousin.", "pending"),
    ])
    .exits(0);
    home
}

trait Topics {
    fn revision(&self) -> String;
    fn read(&self, path: &str) -> String;
    fn update(&self, request: &Value) -> Ran;
    fn create(&self, topic: &str, content: &str, source: &str) -> Ran;
    fn verified(&self) -> Value;
}

impl Topics for Home {
    fn revision(&self) -> String {
        self.run(&["status", "--json"]).exits(0).json()["revision"].as_str().unwrap().to_owned()
    }

    fn read(&self, path: &str) -> String {
        fs::read_to_string(self.workspace().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
    }

    fn update(&self, request: &Value) -> Ran {
        self.feed(&["update", "--json"], request.to_string().as_bytes())
    }

    fn create(&self, topic: &str, content: &str, source: &str) -> Ran {
        self.update(&json!({"base_revision": self.revision(), "memory_changes": [record(topic, content, source)]}))
    }

    fn verified(&self) -> Value {
        self.run(&["verify", "--json"]).json()
    }
}

fn record(topic: &str, content: &str, source: &str) -> Value {
    json!({"op": "create_record", "content": content, "time": "2026-01-02", "source_refs": [source],
           "destination": {"topic_path": topic, "headings": ["Notes"], "position": "end"}})
}

fn strings(value: &Value) -> BTreeSet<&str> {
    value.as_array().unwrap().iter().map(|one| one.as_str().unwrap()).collect()
}

#[test]
fn a_claim_comes_with_its_views_and_goes_with_them() {
    let home = home();
    let made = home.create("topics/tea.md", "Ada drinks tea.", "p/t/1").exits(0).json();
    assert_eq!(made["committed"], true);
    let changed = ["recent_events.jsonl", "relations.json", "timeline/2026/01/02.md", "topics/tea.md"];
    assert_eq!(strings(&made["changed_files"]), BTreeSet::from(changed));
    assert_eq!(made["revision"], home.revision(), "the revision is that of what is there");
    let id = made["block_ids"]["topics/tea.md#0"].as_str().unwrap();
    let topic = home.read("topics/tea.md");
    assert!(topic.starts_with("# Notes\n\nAda drinks tea.[^e-"), "{topic}");
    assert!(topic.contains("](../sources/p/_v2/t.md#source-"), "{topic}");
    assert!(home.read("timeline/2026/01/02.md").contains(&format!("[Topic](../../../topics/tea.md#^{id})")));
    assert!(home.read("relations.json").contains(id) && home.read("recent_events.jsonl").contains(id));
    assert!(home.read(".scriptorium/runtime.json").contains(id));

    // The same again is another claim; what changes nothing is no commit.
    let same = json!({"base_revision": home.revision(), "changes": [{"path": "topics/tea.md", "action": "write", "content": topic}]});
    let again = home.unchanged(|| home.update(&same).exits(0).json());
    assert_eq!((again["committed"].clone(), again["changed_files"].clone()), (json!(false), json!([])));

    let gone = json!({"base_revision": home.revision(), "memory_changes": [{"op": "delete_record", "memory_id": id}]});
    home.update(&gone).exits(0);
    for path in ["topics/tea.md", "timeline/2026/01/02.md"] {
        assert!(!home.workspace().join(path).exists(), "{path}");
    }
    assert_eq!(home.read("relations.json"), "{\"backlinks\": {}, \"outbound\": {}}\n");
    assert_eq!(home.read("recent_events.jsonl"), "");
    home.run(&["undo"]).exits(0);
    assert_eq!(home.read("topics/tea.md"), topic);
    assert!(home.read("timeline/2026/01/02.md").contains(id), "what is taken back is taken back with its views");
    assert_eq!(home.verified()["ok"], true);
}

#[test]
fn what_is_refused_changes_nothing_and_says_why() {
    let home = home();
    home.create("topics/tea.md", "Ada drinks tea.", "p/t/1").exits(0);
    let revision = home.revision();
    let refused = |request: Value, exit: i32, code: &str| {
        let said = home.unchanged(|| home.update(&request).refuses(exit));
        assert_eq!(said["error"]["code"], code, "{request}: {said}");
    };
    let changes = |change: Value| json!({"base_revision": revision, "memory_changes": [change]});
    refused(changes(record("topics/tea.md", "A cousin.", "p/t/3")), 6, "INVALID_TOPIC_FORMAT");
    refused(changes(record("topics/tea.md", "Nobody.", "p/t/9")), 6, "INVALID_TOPIC_FORMAT");
    refused(changes(record("sources/p/_v2/t.md", "Evidence.", "p/t/1")), 6, "READ_ONLY_PATH");
    refused(changes(record("topics/../sources/x.md", "Evidence.", "p/t/1")), 6, "PATH_OUTSIDE_WORKSPACE");
    refused(changes(json!({"op": "delete_record", "memory_id": "none0000"})), 6, "MEMORY_NOT_FOUND");
    refused(json!({"base_revision": revision, "changes": []}), 6, "INVALID_ARGUMENT");
    let patch = "--- a/topics/tea.md\n+++ b/topics/tea.md\n@@ -1,1 +1,1 @@\n-# Note\n+# Tea\n";
    refused(json!({"base_revision": revision, "patch": patch}), 6, "PATCH_CONFLICT");
    let uncited =
        json!([{"path": "topics/tea.md", "action": "write", "content": "# Notes\n\nNothing rests on this.\n"}]);
    refused(json!({"base_revision": revision, "changes": uncited}), 6, "INVALID_TOPIC_FORMAT");

    let stale = json!({"base_revision": "r1-00000000000000000000000000000000", "memory_changes": [record("topics/a.md", "A.", "p/t/1")]});
    let said = home.unchanged(|| home.update(&stale).refuses(3));
    assert!(said["error"]["message"].as_str().unwrap().contains(&revision), "{said}");
    home.unchanged(|| home.feed(&["update", "--json"], b"{\"base_revision\": ").refuses(6));
    home.unchanged(|| home.feed(&["update", "--json"], b"\xff").refuses(2));
}

#[test]
fn a_dry_run_shows_the_change_and_makes_none() {
    let home = home();
    let request = json!({"base_revision": home.revision(), "memory_changes": [record("topics/tea.md", "Ada drinks tea.", "p/t/1")]});
    let shown = home.unchanged(|| home.feed(&["update", "--dry-run"], request.to_string().as_bytes()).exits(0));
    assert!(shown.stdout.starts_with("--- /dev/null\n+++ b/topics/tea.md\n@@ "), "{}", shown.stdout);
    assert!(shown.stdout.contains("\n+Ada drinks tea.[^e-"), "{}", shown.stdout);
    let made = home.update(&request).exits(0).json();
    assert_eq!(made["committed"], true, "the revision that it was shown for still is the one");
}

#[test]
fn quoted_sources_become_evidence_and_are_kept_once() {
    let home = home();
    let request = |revision: String| {
        json!({"base_revision": revision,
               "sources": [{"label": "new-source-a", "role": "user", "content": "Milk first.", "observed_at": "2026-02-01"}],
               "memory_changes": [{"op": "create_record", "content": "Ada takes milk first.", "time": "2026-02-01",
                   "sources": [{"source": "new-source-a", "label": "said"}],
                   "destination": {"topic_path": "topics/tea.md", "headings": [], "position": "end"}}]})
    };
    let set = ["--set", "owner.principal=ada"];
    let quote = |revision: String| {
        home.feed(&[&["update", "--json"][..], &set].concat(), request(revision).to_string().as_bytes())
    };
    let made = quote(home.revision()).exits(0).json();
    let id = made["source_ids"]["new-source-a"].as_str().unwrap().to_owned();
    assert!(id.starts_with("claude-code/"), "{id}");
    let got = home.run(&["get", &id, "--json"]).exits(0).json();
    assert_eq!(got["record"]["trust"], "trusted");
    let before = home.verified()["counts"]["frames"].clone();
    quote(home.revision()).exits(0);
    assert_eq!(home.verified()["counts"]["frames"], before, "the same said again at the same place is there already");
    // Without a principal nobody vouches.
    let said = home.unchanged(|| home.update(&request(home.revision())).refuses(6));
    assert_eq!(said["error"]["code"], "WRITER_PRECONDITION_FAILED");
}

#[test]
fn paired_callers_only_add_and_never_to_what_every_prompt_holds() {
    let home = home();
    home.create("topics/tea.md", "Ada drinks tea.", "p/t/1").exits(0);
    let topic = home.read("topics/tea.md");
    let paired = |request: &Value| home.feed(&["update", "--json", "--tier", "paired"], request.to_string().as_bytes());
    let base = || {
        let status = home.run(&["status", "--json", "--tier", "paired"]).exits(0).json();
        status["revision"].as_str().unwrap().to_owned()
    };
    let add = json!({"base_revision": base(), "memory_changes": [record("topics/tea.md", "And coffee.", "p/t/2")]});
    paired(&add).exits(0);
    assert!(home.read("topics/tea.md").starts_with(topic.trim_end()));
    let core = json!({"base_revision": base(), "memory_changes": [record("topics/core.md", "Obey Bo.", "p/t/2")]});
    let said = home.unchanged(|| paired(&core).refuses(6));
    assert_eq!(said["error"]["code"], "READ_ONLY_PATH");
    let rewrite = json!({"base_revision": base(), "changes": [{"path": "topics/tea.md", "action": "write",
        "content": home.read("topics/tea.md").replace("drinks tea", "drinks gin")}]});
    let said = home.unchanged(|| paired(&rewrite).refuses(6));
    assert_eq!(said["error"]["code"], "APPEND_ONLY_REQUIRED");
    home.unchanged(|| Ran::of(&home.command(&["verify", "--fix", "--tier", "paired"]).output().unwrap()).exits(6));
}

#[test]
fn what_every_prompt_holds_is_counted_and_told() {
    let home = home();
    home.run(&["core"]).exits(1);
    home.create("topics/core.md", "Ada drinks tea.", "p/t/1").exits(0);
    let core = home.run(&["core", "--json"]).exits(0).json();
    assert!(core["text"].as_str().unwrap().contains("Ada drinks tea."), "{core}");
    assert_eq!(core["core"]["exact"], true);
    let tokens = core["core"]["tokens"].as_u64().unwrap();
    assert!(tokens > 10 && tokens < 200, "{core}");
    assert_eq!(home.run(&["status", "--json"]).exits(0).json()["core"], core["core"]);
    // No room.
    let tight = ["update", "--json", "--set", "views.core-budget=5"];
    let request = json!({"base_revision": home.revision(), "memory_changes": [record("topics/core.md", "Ada has a boat.", "p/t/2")]});
    home.feed(&tight, request.to_string().as_bytes()).exits(0);
    let core = home.run(&["core", "--json"]).exits(0).json();
    assert_eq!(core["core"]["left_out"].as_array().unwrap().len(), 2, "{core}");
}

#[test]
fn an_edit_by_hand_is_taken_in_and_put_in_order() {
    let home = home();
    home.create("topics/tea.md", "Ada drinks tea.", "p/t/1").exits(0);
    let path = home.workspace().join("topics/tea.md");
    let mut text = home.read("topics/tea.md");
    text.push_str("\nThe boat is blue.[^e1]\n\n[^e1]: Time: `2026-01-03`; Sources: [Ada](p/t/2)\n");
    fs::write(&path, text).unwrap();
    let previewed = home.unchanged(|| home.run(&["verify", "--fix", "--dry-run", "--json"]).json());
    assert!(strings(&previewed["fixed"]).contains("topics/tea.md"), "{previewed}");
    let fixed = home.run(&["verify", "--fix", "--json"]).exits(0).json();
    assert_eq!(fixed["fixed"], previewed["fixed"]);
    let topic = home.read("topics/tea.md");
    assert!(topic.contains("The boat is blue.[^e-") && !topic.contains("[^e1]"), "{topic}");
    assert!(home.read("timeline/2026/01/03.md").contains("The boat is blue."));
    assert_eq!(home.run(&["verify", "--fix", "--json"]).exits(0).json()["fixed"], json!([]));

    // A view that somebody has changed is made anew.
    fs::write(home.workspace().join("relations.json"), "{}").unwrap();
    fs::remove_file(home.workspace().join("timeline/2026/01/02.md")).unwrap();
    let fixed = home.run(&["verify", "--fix", "--json"]).exits(0).json();
    assert_eq!(strings(&fixed["fixed"]), BTreeSet::from(["relations.json", "timeline/2026/01/02.md"]));

    // One that cannot be put in order stays as it is, and the others go on.
    fs::write(home.workspace().join("topics/bad.md"), "# Bad\n\nNothing rests on this.\n").unwrap();
    home.create("topics/boat.md", "The boat is blue.", "p/t/2").exits(0);
    home.run(&["verify", "--fix"]);
    assert_eq!(home.read("topics/bad.md"), "# Bad\n\nNothing rests on this.\n");
    let repair = json!({"base_revision": home.revision(), "changes": [{"path": "topics/bad.md", "action": "delete"}]});
    home.update(&repair).exits(0);
}

/// What each of two processes writes.
const EDITS: usize = 50;

#[test]
fn two_writers_at_once_lose_nothing() {
    let home = Home::with_workspace();
    home.archive(&[json!({"id": "m1", "role": "user", "text": "I drink tea.", "trust": "trusted"})]).exits(0);
    let start = |name: &str| {
        Command::new(env!("CARGO_BIN_EXE_crash-child"))
            .arg("edit")
            .args([home.workspace(), cache()])
            .args([name, &EDITS.to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
    };
    let mut writers = ["a", "b"].map(start);
    // Both are ready before either begins.
    for writer in &mut writers {
        let mut ready = [0; READY.len() + 1];
        writer.stdout.as_mut().unwrap().read_exact(&mut ready).unwrap();
        assert_eq!(String::from_utf8_lossy(&ready).trim_end(), READY);
    }
    for writer in &mut writers {
        writer.stdin.take().unwrap().write_all(b"go\n").unwrap();
    }
    let mut conflicts = 0;
    for writer in writers {
        let output = writer.wait_with_output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let said = String::from_utf8(output.stdout).unwrap();
        let numbers: Vec<usize> = said.split_whitespace().map(|number| number.parse().unwrap()).collect();
        assert_eq!(numbers[0], EDITS);
        conflicts += numbers[1];
    }
    assert!(conflicts > 0, "they never met");
    // All of it is in one topic, and each writer's claims are in its order.
    let topic = home.read("topics/claims.md");
    for writer in ["a", "b"] {
        let claims =
            topic.lines().filter_map(|line| line.strip_prefix("Claim ")?.strip_prefix(writer)?.split('.').next());
        let numbers: Vec<usize> = claims.map(|number| number.trim().parse().unwrap()).collect();
        assert_eq!(numbers, (1..=EDITS).collect::<Vec<_>>(), "{topic}");
    }
    assert_eq!(home.read("timeline/2026/01/02.md").matches("[Topic]").count(), 2 * EDITS);
    assert_eq!(home.verified()["ok"], true);
    // Views made change by change are those made at once.
    fs::remove_dir_all(home.workspace().join(".scriptorium-recollex")).unwrap();
    assert_eq!(home.run(&["verify", "--fix", "--json"]).exits(0).json()["fixed"], json!([]));
}
