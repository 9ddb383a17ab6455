//! What a person does to topics with an editor: the next command notices, makes views anew and says what is wrong; what is
//! safe is put in order on request, and the rest is told. And what lists of blocks and references to them show.

use std::fs;

use serde_json::{Value, json};

use crate::home::{Home, Ran};

/// A workspace with a topic of two claims, one of them in every prompt.
fn home() -> Home {
    let home = Home::with_workspace();
    let turn = |id: &str, text: &str, trust: &str| {
        json!({"id": id, "role": "user", "text": text, "time": "2026-01-02", "trust": trust,
               "speaker": {"id": "u-1", "display": "Ada", "kind": "owner"}, "tier": "owner", "principal": "ada"})
    };
    home.archive(&[turn("1", "I drink tea.", "trusted"), turn("2", "No, coffee.", "pending")]).exits(0);
    let topic = |name: &str, claim: &str| {
        let content = format!("# Drinks\n\n{claim}[^e1]\n\n[^e1]: Time: `2026-01-02`; Sources: [said](p/t/1)\n");
        json!({"path": name, "action": "write", "content": content})
    };
    let changes = [topic("topics/tea.md", "Ada drinks tea."), topic("topics/core.md", "This is claim 0.")];
    update(&home, &json!({"changes": changes})).exits(0);
    home
}

fn update(home: &Home, edit: &Value) -> Ran {
    let mut request = edit.clone();
    request["base_revision"] = home.run(&["status", "--json"]).exits(0).json()["revision"].clone();
    home.feed(&["update", "--json"], request.to_string().as_bytes())
}

fn read(home: &Home, path: &str) -> String {
    fs::read_to_string(home.workspace().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Changes a file as an editor would.
fn edit(home: &Home, path: &str, with: impl FnOnce(String) -> String) {
    let text = read(home, path);
    fs::write(home.workspace().join(path), with(text)).unwrap();
}

fn codes(home: &Home, arguments: &[&str]) -> Vec<(String, String)> {
    let report = home.run(arguments).json();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    report["findings"].as_array().unwrap().iter().map(|one| (text(&one["code"]), text(&one["path"]))).collect()
}

#[test]
fn the_next_command_makes_views_anew_and_says_what_is_wrong() {
    let home = home();
    for (number, verb) in
        [&["core"][..], &["timeline"], &["status"], &["browse", "--blocks"], &["get", "core.md"]].iter().enumerate()
    {
        let (before, after) = (format!("claim {number}"), format!("claim {}", number + 1));
        edit(&home, "topics/core.md", |text| text.replace(&before, &after));
        let ran = home.run(verb).exits(0);
        assert!(ran.stderr.contains("edited by hand"), "{verb:?}: {}", ran.stderr);
        assert!(read(&home, "core.md").contains(&after), "{verb:?}: {}", read(&home, "core.md"));
        assert!(read(&home, "recent_events.jsonl").contains(&after), "{verb:?}");
        // Said once: nothing was edited since.
        let again = home.unchanged(|| home.run(verb)).exits(0);
        assert!(!again.stderr.contains("edited by hand"), "{verb:?}: {}", again.stderr);
    }
    // What is wrong is told with its line; claims that are sound stay in the views.
    edit(&home, "topics/tea.md", |text| format!("{text}\nNothing rests on this.\n"));
    let ran = home.run(&["timeline"]).exits(0);
    assert!(ran.stderr.contains("topics/tea.md:7:") && ran.stderr.contains("verify --fix"), "{}", ran.stderr);
    assert!(ran.stdout.contains("Ada drinks tea."), "{}", ran.stdout);
    // A caller who may not change anything changes nothing.
    edit(&home, "topics/core.md", |text| text.replace("This is", "That is"));
    home.unchanged(|| home.run(&["--tier", "paired", "core"]).exits(0));
}

#[test]
fn views_of_another_program_stay_as_it_made_them() {
    let home = home();
    edit(&home, "topics/tea.md", |text| text.replace("drinks tea", "drinks coffee"));
    edit(&home, "relations.json", |text| text.replace(": ", ":"));
    let ran = home.unchanged(|| home.run(&["timeline"])).exits(0);
    assert!(!ran.stderr.contains("edited by hand"), "{}", ran.stderr);
    // Where nobody knows of which topics the views are, no reader changes them either.
    let other = self::home();
    fs::remove_file(other.workspace().join(".scriptorium-recollex/views")).unwrap();
    edit(&other, "topics/tea.md", |text| text.replace("drinks tea", "drinks coffee"));
    other.unchanged(|| other.run(&["timeline"]).exits(0));
}

#[test]
fn what_is_safe_is_put_in_order_and_the_rest_is_told() {
    let home = home();
    let at = |path: &str| home.workspace().join(path);
    // Moved to another directory; a claim without id or stable label; a stub; one on pending evidence.
    fs::create_dir(at("topics/kitchen")).unwrap();
    fs::rename(at("topics/tea.md"), at("topics/kitchen/tea.md")).unwrap();
    let claim = |claim: &str, id: &str| format!("# New\n\n{claim}[^e1]\n\n[^e1]: Time: `2026-01-03`; Sources: {id}\n");
    fs::write(at("topics/new.md"), format!("\u{feff}{}", claim("She likes [it](gone.md#^gone0000).", "p/t/1")))
        .unwrap();
    fs::write(at("topics/stub.md"), "# Ideas\n").unwrap();
    fs::write(at("topics/pending.md"), claim("She drinks coffee.", "p/t/2")).unwrap();

    let wanted = home.unchanged(|| home.run(&["verify", "--fix", "--dry-run", "--json"])).json()["fixed"].clone();
    let fixed = home.run(&["verify", "--fix", "--json"]).exits(1).json();
    assert_eq!(fixed["fixed"], wanted, "a dry run says what is done");
    assert!(
        read(&home, "topics/kitchen/tea.md").contains("](../../sources/p/_v2/t.md#source-"),
        "{}",
        read(&home, "topics/kitchen/tea.md")
    );
    let new = read(&home, "topics/new.md");
    assert!(new.starts_with("# New\n") && new.contains("[^e-") && new.contains("] ^"), "{new}");
    assert_eq!(read(&home, "topics/stub.md"), "# Ideas\n");
    assert!(read(&home, "timeline/2026/01/02.md").contains("topics/kitchen/tea.md#^"));
    let told = codes(&home, &["verify", "--json"]);
    let expected = [
        ("dangling-block-link", "topics/new.md"),
        ("missing-block-id", "topics/pending.md"),
        ("missing-source-link", "topics/pending.md"),
        ("untrusted-source", "topics/pending.md"),
    ];
    for (code, path) in expected {
        assert!(told.contains(&(code.to_owned(), path.to_owned())), "{code} of {path} in {told:?}");
    }
    assert_eq!(told.len(), expected.len(), "{told:?}");
}

#[test]
fn a_core_of_hand_that_is_no_topic_is_a_finding_until_it_is_one() {
    let home = Home::with_workspace();
    fs::write(home.workspace().join("core.md"), "# Me\n\nI like tea.\n").unwrap();
    let told = [("core-not-a-topic".to_owned(), "core.md".to_owned())];
    assert_eq!(codes(&home, &["verify", "--json"]), told);
    assert_eq!(home.run(&["status", "--json"]).json()["health"], "degraded");
    home.run(&["verify", "--fix"]).exits(1);
    assert_eq!(read(&home, "core.md"), "# Me\n\nI like tea.\n");
    assert!(home.workspace().join("sources/openprogram-migration/_v2/legacy-core.md").exists());
    assert_eq!(codes(&home, &["verify", "--json"]), told, "kept as evidence, it still is no topic");
    fs::write(home.workspace().join("core.md"), "# Me\n").unwrap();
    assert_eq!(codes(&home, &["verify", "--json"]), []);
}

#[test]
fn one_topic_is_verified_among_the_others() {
    let home = home();
    edit(&home, "topics/tea.md", |text| {
        text.replace("Ada drinks tea.", "See [x](core.md#^gone0000).").replace("[^e-", "[^x-")
    });
    let path = home.workspace().join("topics/tea.md");
    let told = codes(&home, &["verify", path.to_str().unwrap(), "--json"]);
    assert_eq!(told, [("dangling-block-link".to_owned(), "topics/tea.md".to_owned())]);
    assert_eq!(codes(&home, &["verify", "topics/tea.md", "--json"]), told);
    assert_eq!(codes(&home, &["verify", "topics/core.md", "--json"]), []);
}

#[test]
fn blocks_are_listed_and_referred_to() {
    let home = home();
    let listed = home.run(&["browse", "--blocks", "--json"]).exits(0).json();
    let blocks = listed["blocks"].as_array().unwrap();
    let of = |name: &str| {
        let block = blocks.iter().find(|block| block["path"] == name).unwrap_or_else(|| panic!("{name} in {listed}"));
        (block["id"].as_str().unwrap().to_owned(), block.clone())
    };
    let (tea, block) = of("topics/tea.md");
    assert_eq!(
        block,
        json!({"id": tea, "others": [], "path": "topics/tea.md", "line": 3, "headings": ["Drinks"],
                             "text": "Ada drinks tea.", "time": "2026-01-02", "sound": true})
    );
    assert_eq!((blocks.len(), &listed["truncated"]), (2, &json!(false)));
    // Page by page the same.
    let paged = home.run(&["browse", "--blocks", "--json", "--set", "browse.blocks=1"]).exits(0).json();
    assert_eq!(paged["blocks"], listed["blocks"]);
    let one = home.run(&["browse", "--blocks", "--json", "--max", "1"]).exits(0).json();
    assert_eq!((one["blocks"].as_array().unwrap().len(), &one["truncated"]), (1, &json!(true)));
    let matching = home.run(&["browse", "topics", "--blocks", "--match", "DRINKS TEA"]).exits(0).stdout;
    assert_eq!(matching, format!("topics/tea.md\n    ^{tea}  [Drinks]  Ada drinks tea.\n"));
    home.run(&["browse", "--blocks", "--match", "nowhere"]).exits(1);

    let workspace = listed["workspace_id"].clone();
    let refer = |references: Value, more: &[&str]| {
        home.feed(&[&["references", "--json"], more].concat(), references.to_string().as_bytes())
    };
    let reference = json!({"workspace_id": workspace, "memory_id": tea});
    let shown = refer(json!([reference, reference]), &[]).exits(0).json();
    assert_eq!(
        shown["blocks"],
        json!([{"memory_id": tea, "path": "topics/tea.md", "text": "Ada drinks tea.", "time": "2026-01-02"}])
    );
    assert!(
        shown["prompt"].as_str().unwrap().ends_with(&format!("\n- [{tea}] topics/tea.md: Ada drinks tea.")),
        "{shown}"
    );
    assert_eq!(refer(json!([]), &[]).exits(1).json()["blocks"], json!([]));
    let reason = |ran: Ran| ran.json()["error"]["reason"].as_str().unwrap_or_default().to_owned();
    let foreign = json!({"workspace_id": "w-00000000", "memory_id": tea});
    assert_eq!(reason(refer(json!([reference, foreign]), &[]).exits(2)), "foreign-workspace");
    let gone = json!({"workspace_id": workspace, "memory_id": "gone0000"});
    assert_eq!(reason(refer(json!([gone]), &[]).exits(1)), "no-such-block");
    assert_eq!(reason(refer(json!([reference]), &["--max-chars", "10"]).exits(2)), "too-few-characters");
    assert_eq!(reason(refer(vec![reference.clone(); 17].into(), &[]).exits(2)), "too-many-references");
    assert_eq!(reason(refer(json!({"not": "a list"}), &[]).exits(2)), "malformed-references");
}
