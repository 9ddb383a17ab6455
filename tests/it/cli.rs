//! The command line as scripts and acceptance checks rely on it: shapes, exit codes, bad input, quiet pipes.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Command, Stdio};

use serde_json::{Value, json};

#[cfg(target_os = "linux")]
use crate::home::peak_while_running;
use crate::home::{Home, Ran};
use crate::support::snapshot;

fn turn(id: &str, text: &str) -> Value {
    json!({"id": id, "role": "user", "text": text, "time": "2026-01-02T03:04:05+00:00"})
}

fn keys(value: &Value) -> Vec<&str> {
    value.as_object().unwrap_or_else(|| panic!("no object: {value}")).keys().map(String::as_str).collect()
}

#[track_caller]
fn has_keys(value: &Value, expected: &[&str]) {
    for key in expected {
        assert!(value.get(key).is_some(), "no {key} in {value}");
    }
}

// Shapes

#[test]
fn archive_says_what_became_of_each_turn() {
    let home = Home::with_workspace();
    let first = home.archive(&[turn("m1", "one"), turn("m2", "two")]).exits(0).json();
    has_keys(&first, &["archived", "already", "differs", "records", "revision"]);
    assert_eq!((&first["archived"], &first["already"], &first["differs"]), (&json!(2), &json!(0), &json!([])));
    assert_eq!(first["records"][0]["id"], "p/t/m1");
    assert_eq!(first["records"][0]["path"], "sources/p/_v2/t.md");
    assert!(first["records"][0]["anchor"].as_str().unwrap().starts_with("source-"));
    assert!(first["revision"].as_str().unwrap().starts_with("r1-"));

    // The same again changes nothing, also when another one comes along; other content is told.
    let again = home.unchanged(|| home.archive(&[turn("m1", "one"), turn("m2", "two")])).exits(0).json();
    assert_eq!((&again["archived"], &again["already"]), (&json!(0), &json!(2)));
    assert_eq!(again["revision"], first["revision"]);
    let differs = home.archive(&[turn("m1", "other"), turn("m3", "three")]).exits(1);
    let document = differs.json();
    assert_eq!((&document["archived"], &document["differs"]), (&json!(1), &json!(["p/t/m1"])));
    assert!(differs.stderr.contains("p/t/m1"), "said nothing of it: {}", differs.stderr);
    assert_ne!(document["revision"], first["revision"]);
    let text = fs::read_to_string(home.workspace().join("sources/p/_v2/t.md")).unwrap();
    assert!(text.contains(": one\n") && !text.contains("other"), "{text}");
}

#[test]
fn a_turn_may_name_its_conversation_and_its_speaker() {
    let home = Home::with_workspace();
    let turn = json!({
        "provider": "slack", "thread": "general", "id": "x", "role": "user", "text": "hi",
        "speaker": {"id": "u-7", "display": "Ada", "kind": "human"},
        "principal": "paired/ada", "tier": "paired", "trust": "pending",
    });
    let document = home.feed(&["archive", "--json"], format!("{turn}\n").as_bytes()).exits(0).json();
    assert_eq!(document["records"][0]["id"], "slack/general/x");
    let hit = &home.run(&["search", "--json", "hi"]).exits(0).json()["results"][0];
    assert_eq!(hit["speaker"], json!({"id": "u-7", "display": "Ada", "label": "Ada (u-7)", "trusted": false}));
    assert_eq!(hit["trust"], "pending");
}

#[test]
fn verify_reports_a_clean_workspace_and_a_damaged_one() {
    let home = Home::with_conversation();
    let clean = home.unchanged(|| home.run(&["verify", "--json"])).exits(0).json();
    has_keys(&clean, &["ok", "health", "revision", "counts", "findings"]);
    has_keys(&clean["counts"], &["source_files", "frames", "legacy_records", "topic_files", "blocks"]);
    assert_eq!((&clean["ok"], &clean["health"]), (&json!(true), &json!("ok")));
    assert_eq!((&clean["counts"]["source_files"], &clean["counts"]["frames"]), (&json!(3), &json!(52)));

    let file = home.workspace().join("sources/openprogram/_v2/repair.md");
    let mut bytes = fs::read(&file).unwrap();
    let at = bytes.windows(9).position(|bytes| bytes == b"<a id=\"so").unwrap() + 15;
    bytes[at] = if bytes[at] == b'0' { b'1' } else { b'0' };
    fs::write(&file, bytes).unwrap();
    let damaged = home.unchanged(|| home.run(&["verify", "--json"])).exits(1).json();
    assert_eq!((&damaged["ok"], &damaged["health"]), (&json!(false), &json!("degraded")));
    let finding = &damaged["findings"][0];
    has_keys(finding, &["code", "severity", "path", "line", "message"]);
    assert_eq!(finding["path"], "sources/openprogram/_v2/repair.md");
    assert_eq!((&finding["severity"], &finding["line"]), (&json!("error"), &json!(3)));
    // One bad file stays one bad file: the others can still be searched, and it is said.
    let search = home.run(&["search", "--json", "crane"]).exits(0);
    assert!(!search.json()["results"].as_array().unwrap().is_empty());
    assert!(search.stderr.contains("repair.md"), "the damage is not mentioned: {}", search.stderr);
    assert_eq!(home.run(&["status", "--json"]).exits(0).json()["health"], "degraded");
}

#[test]
fn verify_takes_one_file_and_a_stream() {
    let home = Home::with_conversation();
    let file = home.workspace().join("sources/openprogram/_v2/repair.md");
    let document = home.run(&["verify", "--json", file.to_str().unwrap()]).exits(0).json();
    assert_eq!(document["counts"]["frames"], 37);
    let bytes = fs::read(&file).unwrap();
    let path = "sources/openprogram/_v2/repair.md";
    let document = home.feed(&["verify", "--json", "-", "--as", path], &bytes).exits(0).json();
    assert_eq!(document["counts"]["frames"], 37);
    home.feed(&["verify", "-", "--as", "sources/openprogram/_v2/other.md"], &bytes).exits(1);
    home.run(&["verify", "nowhere.md"]).exits(2);

    // A setting holds for a file as it does for a workspace.
    let label = "x".repeat(2000);
    let long = format!(
        "<!-- openprogram-source-archive:v2 -->\n\n<a id=\"source-629c3f3c05d0555b\"></a>\n<!-- source-id:p/t/m -->\n\
         <!-- record-lines:1 -->\n[] {label}: said\n"
    );
    let file = home.workspace().join("long.md");
    fs::write(&file, long).unwrap();
    let verify = ["verify", "--json", file.to_str().unwrap()];
    home.run(&verify).exits(0);
    let document = home.run(&[&verify[..], &["--set", "limits.header-bytes=1024"]].concat()).exits(1).json();
    assert_eq!(document["findings"][0]["code"], "header-too-long");
}

#[test]
fn search_returns_hits_that_can_be_used() {
    let home = Home::with_conversation();
    let document =
        home.unchanged(|| home.run(&["search", "--json", "--top-k", "8", "keel bolts euros"])).exits(0).json();
    has_keys(&document, &["query", "results", "truncated"]);
    let results = document["results"].as_array().unwrap();
    assert!(!results.is_empty() && results.len() <= 8);
    for hit in results {
        has_keys(
            hit,
            &[
                "kind", "id", "path", "anchor", "line", "text", "time", "score", "speaker", "trust", "evidence",
                "headings",
            ],
        );
        assert_eq!(hit["kind"], "source");
        // What a hit names can be fetched.
        let id = hit["id"].as_str().unwrap();
        assert!(home.run(&["get", id]).exits(0).stdout.contains(hit["text"].as_str().unwrap().lines().next().unwrap()));
        let anchored = format!("{}#{}", hit["path"].as_str().unwrap(), hit["anchor"].as_str().unwrap());
        home.run(&["get", &anchored]).exits(0);
    }
    let ids: Vec<&str> = results.iter().map(|hit| hit["id"].as_str().unwrap()).collect();
    assert!(ids.contains(&"openprogram/repair/r-008") || ids.contains(&"openprogram/repair/r-030"), "{ids:?}");

    let chinese = home.run(&["search", "--json", "喷油嘴"]).exits(0).json();
    let ids: Vec<&str> = chinese["results"].as_array().unwrap().iter().map(|hit| hit["id"].as_str().unwrap()).collect();
    assert!(ids.contains(&"openprogram/repair/r-017"), "{ids:?}");

    // A label that only a body claims is not a speaker's.
    let ada = home.run(&["search", "--json", "--speaker", "Ada", "--top-k", "50", "boat"]).exits(0).json();
    for hit in ada["results"].as_array().unwrap() {
        assert_ne!(hit["id"], "openprogram/repair/r-027");
        assert_eq!(hit["speaker"]["id"], "u-1");
    }
}

#[test]
fn status_is_in_figures() {
    let home = Home::with_conversation();
    let document = home.unchanged(|| home.run(&["status", "--json"])).exits(0).json();
    has_keys(&document, &["health", "workspace", "revision", "counts", "core", "writer", "history", "lock"]);
    has_keys(&document["counts"], &["source_files", "frames", "legacy_records", "topic_files", "blocks"]);
    assert_eq!(document["lock"]["held"], json!(false));
    assert_eq!(document["health"], "ok");
    let verified = home.run(&["verify", "--json"]).exits(0).json();
    assert_eq!(document["revision"], verified["revision"]);
    assert_eq!(document["counts"]["frames"], 52);
}

#[test]
fn browse_and_get_show_what_is_there() {
    let home = Home::with_conversation();
    let listed = home.run(&["browse", "--json"]).exits(0).stdout;
    assert!(listed.contains("sources/openprogram/_v2/repair.md") && !listed.contains(".scriptorium"), "{listed}");
    let text = home.run(&["get", "sources/openprogram/_v2/repair.md", "--lines", "1000"]).exits(0).stdout;
    assert!(text.contains("Kittiwake"), "{text}");
    // A frame that somebody pasted is text like any other; the metadata of the records themselves is not shown.
    assert_eq!(text.matches("<!-- source-meta:").count(), 1, "{text}");
    home.run(&["get", "openprogram/repair/nowhere"]).exits(1);
    home.run(&["get", "sources/nowhere.md"]).exits(1);
    for internal in
        [".scriptorium/workspace-id", ".git/config", "../secret", "/etc/passwd", "sources/../.scriptorium/x"]
    {
        let ran = home.run(&["get", "--json", internal]);
        assert!([2, 6].contains(&ran.code), "{internal}: {} {}", ran.code, ran.stdout);
    }
}

#[test]
fn demo_shows_the_main_job() {
    let home = Home::new();
    let ran = home.run(&["demo"]).exits(0);
    assert!(!ran.stdout.is_empty());
    assert!(!home.workspace().exists() && !home.path().join("data").exists(), "it left something behind");
}

#[test]
fn the_usual_verbs() {
    let home = Home::new();
    let paths = home.run(&["paths", "--json"]).exits(0).json();
    assert!(paths.to_string().contains(home.workspace().to_str().unwrap()), "{paths}");
    for shell in ["bash", "zsh", "fish"] {
        assert!(home.run(&["completions", shell]).exits(0).stdout.contains("recollex"));
    }
    for verb in ["init", "archive", "verify", "search", "get", "browse", "status", "paths", "demo", "completions"] {
        assert!(home.run(&["help", verb]).exits(0).stdout.contains("Usage"), "{verb}");
    }
    home.run(&["--version"]).exits(0);
    assert!(!home.workspace().exists());
}

// Exit codes

#[test]
fn usage_errors_are_2() {
    let home = Home::with_workspace();
    for arguments in [&["fly"][..], &["status", "--fast"], &["search"], &["archive", "--tier", "king"], &[]] {
        let ran = home.unchanged(|| home.run(arguments)).exits(2);
        assert!(ran.stdout.is_empty() && !ran.stderr.is_empty(), "{arguments:?}");
    }
    home.run(&["status", "--set", "no.such=1", "--json"]).refuses(2);
    home.run(&["search", "--json", "--top-k", "0", "x"]).refuses(2);
    home.run(&["search", "--json", "--from", "soon", "x"]).refuses(2);
}

#[test]
fn nothing_there_is_1() {
    let home = Home::new();
    assert_eq!(home.run(&["status", "--json"]).exits(0).json()["health"], "empty");
    let home = Home::with_workspace();
    let document = home.run(&["search", "--json", "anything"]).exits(1).json();
    assert_eq!(document["results"], json!([]));
    let home = Home::with_conversation();
    let document = home.run(&["search", "--json", "zeppelin"]).exits(1).json();
    assert_eq!(document["results"], json!([]));
}

#[test]
fn a_locked_workspace_is_4_and_reading_needs_no_lock() {
    let home = Home::with_conversation();
    let lock = fs::File::options()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .open(home.workspace().join(".scriptorium/write.lock"))
        .unwrap();
    lock.lock().unwrap();
    let turn = turn("m1", "one");
    let arguments = ["archive", "--json", "--provider", "p", "--thread", "t", "--set", "lock.wait-ms=100"];
    home.unchanged(|| home.feed(&arguments, turn.to_string().as_bytes())).refuses(4);
    assert_eq!(home.run(&["status", "--json"]).exits(0).json()["lock"]["held"], json!(true));
    home.run(&["search", "crane"]).exits(0);
    home.run(&["verify"]).exits(0);
    drop(lock);
    home.feed(&arguments, turn.to_string().as_bytes()).exits(0);
}

#[test]
fn a_lock_file_that_nobody_holds_does_not_block() {
    let home = Home::with_workspace();
    fs::write(home.workspace().join(".scriptorium/write.lock"), "pid 1 since yesterday\n").unwrap();
    home.archive(&[turn("m1", "one")]).exits(0);
}

#[test]
fn memory_off_is_5_and_creates_nothing() {
    let home = Home::new();
    let before = snapshot(home.path());
    let verbs: [&[&str]; 7] =
        [&["init"], &["archive"], &["verify"], &["search", "x"], &["get", "x"], &["browse"], &["status"]];
    for verb in verbs {
        let arguments = [verb, &["--json", "--backend", "none"]].concat();
        let ran = home.feed(&arguments, turn("m1", "one").to_string().as_bytes()).exits(5);
        assert_eq!(ran.json()["error"]["code"], "MEMORY_DISABLED", "{verb:?}");
    }
    assert_eq!(before, snapshot(home.path()));
    assert!(!home.workspace().exists());
    // And through the environment.
    let ran = Ran::of(&home.command(&["init"]).env("RECOLLEX_BACKEND", "none").output().unwrap());
    ran.exits(5);
    assert!(!home.workspace().exists());
}

#[test]
fn what_may_not_be_done_is_6() {
    let home = Home::with_conversation();
    let document = home.unchanged(|| home.archive(&[turn("fine", "x"), turn("a]b", "x")])).refuses(6);
    assert_eq!(document["error"]["reason"], "unsafe-source-id", "{document}");
    // Every fault is named, not only the first.
    let ran = home.unchanged(|| home.archive(&[turn("a]b", "x"), turn("c>d", "x")])).exits(6);
    assert!(ran.stderr.contains("stdin:1") && ran.stderr.contains("line 2"), "{}", ran.stderr);
    let mut turn = turn("m1", "x");
    turn["trust"] = json!("maybe");
    home.unchanged(|| home.archive(&[turn])).refuses(6);
    home.unchanged(|| home.run(&["init", "--tier", "paired", "--json"])).refuses(6);
}

#[test]
fn a_limit_is_7_and_nothing_is_done() {
    let home = Home::with_workspace();
    let big = turn("m1", &"x".repeat(10_000));
    let arguments = ["archive", "--json", "--provider", "p", "--thread", "t", "--set", "limits.batch-bytes=5000"];
    home.unchanged(|| home.feed(&arguments, big.to_string().as_bytes())).refuses(7);
    let arguments = ["verify", "--json", "--limit", "memory_bytes=65536"];
    home.unchanged(|| home.run(&arguments)).refuses(7);
}

// Bad input

#[test]
fn turns_that_are_no_text_or_no_turns_are_2() {
    let home = Home::with_conversation();
    let good = turn("m1", "one").to_string();
    let cases: Vec<(&str, Vec<u8>)> = vec![
        ("not UTF-8", [good.as_bytes(), b"\n{\"id\":\"m2\",\"role\":\"user\",\"text\":\"\xff\xfe\"}\n"].concat()),
        ("binary", (0..=255_u8).cycle().take(5000).collect()),
        ("no JSON", format!("{good}\nhello\n").into_bytes()),
        ("no object", format!("{good}\n[1,2]\n").into_bytes()),
        ("no id", format!("{good}\n{{\"role\":\"user\",\"text\":\"x\"}}\n").into_bytes()),
        ("wrong type", format!("{good}\n{{\"id\":7,\"role\":\"user\",\"text\":\"x\"}}\n").into_bytes()),
        (
            "half a surrogate",
            format!("{good}\n{{\"id\":\"m2\",\"role\":\"user\",\"text\":\"\\ud83d\"}}\n").into_bytes(),
        ),
        ("deep nesting", format!("{good}\n{}\n", "[".repeat(200_000)).into_bytes()),
    ];
    for (what, input) in cases {
        let arguments = ["archive", "--json", "--provider", "p", "--thread", "t"];
        let ran = home.unchanged(|| home.feed(&arguments, &input));
        assert_eq!(ran.code, 2, "{what}: {} {}", ran.stdout, ran.stderr);
        let document = ran.refuses(2);
        let line = document["error"]["line"].as_u64();
        assert_eq!(line, Some(if what == "binary" { 1 } else { 2 }), "{what}: {document}");
    }
    home.unchanged(|| home.run(&["archive", "--json", "--provider", "p", "--thread", "t", "/nowhere/turns.jsonl"]))
        .refuses(2);
}

#[test]
fn a_turn_cut_anywhere_is_2_and_nothing_is_kept() {
    let home = Home::with_workspace();
    let line = json!({"id": "m2", "role": "user", "text": "你好 é", "speaker": {"id": "u"}}).to_string();
    let bytes = line.as_bytes();
    for end in (1..bytes.len()).step_by(if cfg!(debug_assertions) { 7 } else { 1 }) {
        let input = [turn("m1", "one").to_string().as_bytes(), b"\n", &bytes[..end]].concat();
        let arguments = ["archive", "--json", "--provider", "p", "--thread", "t"];
        home.unchanged(|| home.feed(&arguments, &input)).refuses(2);
    }
}

#[test]
fn an_archive_cut_anywhere_is_a_finding() {
    let home = Home::with_conversation();
    let bytes = fs::read(home.workspace().join("sources/openprogram/_v2/%E9%A2%84%E7%AE%97.md")).unwrap();
    let copy = home.path().join("%E9%A2%84%E7%AE%97.md");
    let whole = |end: usize| bytes[..end].ends_with(b"\n\n") || (end == bytes.len());
    for end in (0..=bytes.len()).step_by(bytes.len() / 23) {
        fs::write(&copy, &bytes[..end]).unwrap();
        let ran = home.run(&[
            "verify",
            "--json",
            "--as",
            "sources/openprogram/_v2/%E9%A2%84%E7%AE%97.md",
            copy.to_str().unwrap(),
        ]);
        assert!(ran.code == 1 || (ran.code == 0 && whole(end)), "cut at {end}: {} {}", ran.code, ran.stdout);
        assert!(
            ran.json()["findings"].as_array().is_some_and(|found| ran.code == 0 || !found.is_empty()),
            "{}",
            ran.stdout
        );
    }
}

#[test]
fn strange_names_are_refused_or_escaped() {
    let home = Home::with_workspace();
    let named = |provider: &str, thread: &str, id: &str| {
        let turn = json!({"provider": provider, "thread": thread, "id": id, "role": "user", "text": "x"});
        home.feed(&["archive", "--json"], turn.to_string().as_bytes())
    };
    for (provider, thread, id) in [
        ("..", "t", "m"),
        (".", "t", "m"),
        ("", "t", "m"),
        ("p", "", "m"),
        ("p", "t", ""),
        ("p\0", "t", "m"),
        ("p", "t\0", "m"),
        ("p", "t", "m\0"),
        ("p", "t", "m\n<!-- source-id:p/t/n -->"),
        ("p", "t<", "m"),
        ("p", "t", "\u{202e}m"),
    ] {
        let document = home.unchanged(|| named(provider, thread, id)).refuses(6);
        let reason = document["error"]["reason"].as_str().unwrap();
        assert!(["malformed-source-id", "unsafe-source-id"].contains(&reason), "{document}");
    }
    // A file name of 300 bytes is more than a directory takes.
    let ran = home.unchanged(|| named("p", &"t".repeat(300), "m"));
    assert!([2, 6, 7].contains(&ran.code), "{} {}", ran.code, ran.stdout);
    ran.refuses_any();
    let ran = home.unchanged(|| named(&"p".repeat(300), "t", "m"));
    assert!([2, 6, 7].contains(&ran.code), "{} {}", ran.code, ran.stdout);
    // A long message id is only text.
    named("p", "t", &"m".repeat(300)).exits(0);
    // `..` as a thread is a file name of two dots and `.md`.
    assert_eq!(named("p", "..", "m").exits(0).json()["records"][0]["path"], "sources/p/_v2/...md");
    // NFD is escaped byte by byte; NFC of the same would be another file of one name to some media.
    assert_eq!(named("p", "e\u{301}", "m").exits(0).json()["records"][0]["path"], "sources/p/_v2/e%CC%81.md");
    named("p", "../../../x", "m").exits(0);
    assert!(!home.path().join("x.md").exists());
    // Case: one name to some media.
    named("p", "Boat", "m").exits(0);
    let document = home.unchanged(|| named("p", "boat", "m")).refuses(6);
    assert_eq!(document["error"]["reason"], "path-collision", "{document}");
    home.run(&["verify"]).exits(0);
}

impl Ran {
    /// The error document, whatever the exit code.
    #[track_caller]
    fn refuses_any(self) -> Value {
        let code = self.code;
        assert_ne!(code, 0);
        self.refuses(code)
    }
}

#[test]
fn millions_of_tiny_lines_are_a_finding_and_not_a_flood() {
    let home = Home::with_workspace();
    let lines = if cfg!(debug_assertions) { 1_000_000 } else { 10_000_000 };
    let input = b"x\n".repeat(lines);
    let file = home.path().join("lines.md");
    fs::write(&file, &input).unwrap();
    let ran = home.run(&["verify", "--json", file.to_str().unwrap()]).exits(1);
    assert!(ran.stdout.len() < 100_000, "{} bytes of output", ran.stdout.len());
    let archive = ["archive", "--json", "--provider", "p", "--thread", "t"];
    let ran = home.unchanged(|| home.feed(&archive, &input)).exits(2);
    assert!(ran.stderr.len() < 100_000, "{} bytes on stderr", ran.stderr.len());
    let input = b"{}\n".repeat(lines);
    let ran = home.unchanged(|| home.feed(&archive, &input)).exits(2);
    assert!(ran.stderr.len() < 100_000, "{} bytes on stderr", ran.stderr.len());
    // As one record they are an honest text.
    let text = "x\n".repeat(lines / 10);
    home.archive(&[turn("m1", &text)]).exits(0);
    assert_eq!(home.run(&["verify", "--json"]).exits(0).json()["counts"]["frames"], 1);
    // And in the workspace the file is one bad file.
    fs::rename(&file, home.workspace().join("sources/p/_v2/lines.md")).unwrap();
    home.unchanged(|| home.run(&["verify"])).exits(1);
    assert_eq!(home.run(&["status", "--json"]).exits(0).json()["health"], "degraded");
}

#[test]
#[cfg(target_os = "linux")]
fn a_file_of_two_gibibytes_is_a_finding_in_bounded_memory() {
    let home = Home::with_conversation();
    let file = home.path().join("huge.md");
    fs::File::create(&file).unwrap().set_len(2 << 30).unwrap();
    let mut child = home
        .command(&["verify", "--json", file.to_str().unwrap()])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let peak = peak_while_running(&mut child);
    let ran = Ran::of(&child.wait_with_output().unwrap()).exits(1);
    assert!(peak < 300 << 20, "{} MiB in use", peak >> 20);
    assert!(!ran.json()["findings"].as_array().unwrap().is_empty());
}

#[test]
fn a_huge_file_in_a_workspace_spoils_nothing_but_itself() {
    let home = Home::with_conversation();
    let file = home.workspace().join("sources/openprogram/_v2/huge.md");
    fs::File::create(&file).unwrap().set_len(2 << 30).unwrap();
    let ran = home.run(&["search", "--json", "crane"]).exits(0);
    assert!(!ran.json()["results"].as_array().unwrap().is_empty());
    assert!(ran.stderr.contains("huge.md"), "{}", ran.stderr);
    home.archive(&[turn("m1", "one")]).exits(0);
}

#[test]
fn odd_files_in_a_workspace_are_findings() {
    let home = Home::with_conversation();
    let sources = home.workspace().join("sources");
    fs::write(home.path().join("outside.md"), "secret").unwrap();
    std::os::unix::fs::symlink(home.path().join("outside.md"), sources.join("openprogram/_v2/linked.md")).unwrap();
    std::os::unix::fs::symlink("/", sources.join("openprogram/root")).unwrap();
    let made = Command::new("mkfifo").arg(sources.join("openprogram/_v2/pipe.md")).status();
    let name = std::os::unix::ffi::OsStrExt::from_bytes(b"openprogram/_v2/\xff.md");
    fs::write(sources.join::<&std::ffi::OsStr>(name), "x").unwrap();
    fs::write(sources.join("openprogram/_v2/latin.md"), b"caf\xe9").unwrap();
    let document = home.run(&["verify", "--json"]).exits(1).json();
    let codes: Vec<&str> =
        document["findings"].as_array().unwrap().iter().map(|f| f["code"].as_str().unwrap()).collect();
    for code in ["symlink-ignored", "undecodable-name", "invalid-utf8"] {
        assert!(codes.contains(&code), "no {code} in {codes:?}");
    }
    if made.is_ok_and(|status| status.success()) {
        assert!(codes.contains(&"special-file"), "{codes:?}");
    }
    home.run(&["search", "crane"]).exits(0);
    let listed = home.run(&["browse", "--json"]).exits(0).stdout;
    assert!(!listed.contains("etc/passwd") && !listed.contains("secret"), "{listed}");
}

#[test]
fn archiving_into_a_damaged_file_is_refused_and_elsewhere_goes_on() {
    let home = Home::with_workspace();
    home.archive(&[turn("m1", "one")]).exits(0);
    let file = home.workspace().join("sources/p/_v2/t.md");
    let whole = fs::read(&file).unwrap();
    for (bytes, reason) in
        [(&whole[..whole.len() - 1], "damaged-archive"), (&[&whole[..], b"\xff\n"].concat()[..], "invalid-utf8")]
    {
        fs::write(&file, bytes).unwrap();
        let document = home.unchanged(|| home.archive(&[turn("m2", "two")])).refuses(6);
        assert_eq!(document["error"]["reason"], reason, "{document}");
        assert_eq!(document["error"]["path"], "sources/p/_v2/t.md", "{document}");
        let other = json!({"provider": "p", "thread": "u", "id": "m2", "role": "user", "text": "two"});
        home.feed(&["archive"], other.to_string().as_bytes()).exits(0);
    }
}

// Streams

#[test]
fn stdout_carries_the_result_only() {
    let home = Home::with_conversation();
    for arguments in
        [&["status", "--json", "-vv"][..], &["search", "--json", "-vv", "crane"], &["verify", "--json", "-v"]]
    {
        let ran = home.run(arguments).exits(0);
        ran.json();
        assert!(!ran.stderr.is_empty(), "-v says nothing");
    }
    let ran = home.run(&["search", "crane"]).exits(0);
    assert!(!ran.stdout.contains('\u{1b}') && ran.stderr.is_empty(), "{:?} {:?}", ran.stdout, ran.stderr);
}

#[test]
fn a_broken_pipe_is_quiet() {
    let home = Home::with_workspace();
    // More than a pipe holds.
    let text = "line of text\n".repeat(30_000);
    home.archive(&[turn("m1", &text)]).exits(0);
    let arguments = ["get", "p/t/m1", "--lines", "100000", "--set", "get.bytes=4000000"];
    let mut child = home.command(&arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut first = String::new();
    BufReader::with_capacity(16, child.stdout.take().unwrap()).read_line(&mut first).unwrap();
    assert!(!first.is_empty());
    let mut said = String::new();
    child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    let status = child.wait().unwrap();
    assert_eq!(said, "", "{status}");
    assert!(status.code().is_none_or(|code| code == 0), "{status}");
}

#[test]
fn errors_say_what_where_and_what_next() {
    let home = Home::with_workspace();
    let ran = home.feed(&["archive", "--provider", "p", "--thread", "t"], b"{\"id\":\"m1\"\n").exits(2);
    assert!(ran.stdout.is_empty());
    assert!(ran.stderr.contains('1'), "the line is not named: {}", ran.stderr);
    assert!(ran.stderr.lines().count() >= 1 && !ran.stderr.contains("Error {"), "{}", ran.stderr);
    assert!(keys(&home.run(&["get", "--json", "p/t/none"]).refuses(1)["error"]).contains(&"message"));
}
