//! The program as a script sees it: arguments and stdin in; exit code, stdout and stderr out.
//!
//! Each test has a home of its own, so that nothing of the machine it runs on is read or written; compiled components are
//! shared between them.

use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::{Value, json};
use tempfile::TempDir;

struct Home {
    directory: TempDir,
}

struct Ended {
    code: i32,
    stdout: Vec<u8>,
    stderr: String,
}

impl Ended {
    fn text(&self) -> String {
        String::from_utf8(self.stdout.clone()).unwrap()
    }

    /// The one JSON document on stdout.
    #[track_caller]
    fn json(&self) -> Value {
        serde_json::from_slice(&self.stdout)
            .unwrap_or_else(|error| panic!("{error}: stdout {:?}, stderr {}", self.text(), self.stderr))
    }

    #[track_caller]
    fn expect(self, code: i32) -> Self {
        assert_eq!(self.code, code, "stdout {:?}, stderr {}", String::from_utf8_lossy(&self.stdout), self.stderr);
        self
    }
}

impl Home {
    fn new() -> Self {
        Self { directory: TempDir::new().unwrap() }
    }

    fn path(&self, rest: &str) -> PathBuf {
        self.directory.path().join(rest)
    }

    fn workspace(&self) -> PathBuf {
        self.path(".local/share/recollex/default")
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_recollex"));
        command.args(words).env_clear().env("HOME", self.directory.path()).env("PATH", "/usr/bin:/bin");
        command.env("XDG_CACHE_HOME", Path::new(env!("CARGO_TARGET_TMPDIR")).join("cli-cache"));
        command.current_dir(self.directory.path());
        command
    }

    fn run(&self, words: &[&str]) -> Ended {
        self.run_with(words, b"")
    }

    fn run_with(&self, words: &[&str], stdin: &[u8]) -> Ended {
        end(self.command(words), stdin)
    }

    /// Two conversations, four turns.
    fn with_conversation() -> Self {
        let home = Self::new();
        home.run(&["init"]).expect(0);
        let lines = [
            turn("m1", "Four of the nine keel bolts are wasted.", "Ada"),
            turn("m2", "发动机的喷油嘴漏油。", "林悦"),
            turn("m3", "We keep the boat.", "Ada"),
        ];
        home.run_with(&["archive", "--provider", "p", "--thread", "t"], lines.join("\n").as_bytes()).expect(0);
        home.run_with(&["archive", "--provider", "p", "--thread", "u"], turn("m1", "Sell the boat.", "Tom").as_bytes())
            .expect(0);
        home
    }

    /// Every file and directory, with the bytes of files.
    fn everything(&self) -> Vec<(PathBuf, Option<Vec<u8>>)> {
        let mut all = Vec::new();
        let mut open = vec![self.directory.path().to_owned()];
        while let Some(directory) = open.pop() {
            for entry in fs::read_dir(&directory).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    open.push(path.clone());
                }
                all.push((path.clone(), fs::read(&path).ok()));
            }
        }
        all.sort();
        all
    }
}

fn end(mut command: Command, stdin: &[u8]) -> Ended {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let mut input = child.stdin.take().unwrap();
    let stdin = stdin.to_owned();
    // A program that does not read its input closes it: that is no fault of the test.
    let writer = std::thread::spawn(move || drop(input.write_all(&stdin)));
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!stderr.contains("panicked"), "{stderr}");
    Ended { code: output.status.code().unwrap_or(-1), stdout: output.stdout, stderr }
}

fn turn(id: &str, text: &str, who: &str) -> String {
    json!({
        "id": id, "role": "user", "text": text, "time": "2026-05-04T18:00:00Z",
        "speaker": {"id": format!("u-{who}"), "display": who, "kind": "human"},
        "principal": "owner", "tier": "owner"
    })
    .to_string()
}

#[test]
fn the_demo_gives_what_it_must_and_leaves_nothing() {
    let home = Home::new();
    let mut command = home.command(&["demo"]);
    fs::create_dir(home.path("tmp")).unwrap();
    command.env("TMPDIR", home.path("tmp"));
    let ended = end(command, b"").expect(0);
    let text = ended.text();
    for shown in ["52 turns archived", "喷油嘴", "error:", "Every step gave what it must."] {
        assert!(text.contains(shown), "{shown} is missing in:\n{text}");
    }
    assert_eq!(fs::read_dir(home.path("tmp")).unwrap().count(), 0, "the temporary directory is gone");
    assert!(!home.path(".local").exists(), "no memory of the user's is touched");
}

#[test]
fn the_demo_in_json_is_one_document() {
    let home = Home::new();
    let mut command = home.command(&["demo", "--keep", "--json"]);
    command.env("TMPDIR", home.directory.path());
    let document = end(command, b"").expect(0).json();
    assert_eq!(document["ok"], true);
    let steps: Vec<&str> = document["steps"].as_array().unwrap().iter().map(|s| s["step"].as_str().unwrap()).collect();
    assert_eq!(steps, ["init", "archive", "repeat", "verify", "english", "chinese", "speaker", "damage"]);
    assert!(Path::new(document["directory"].as_str().unwrap()).join("memory/sources").is_dir());
}

#[test]
fn a_workspace_from_nothing_to_found() {
    let home = Home::new();
    let made = home.run(&["init", "--json"]).expect(0).json();
    assert_eq!(made["created"], true);
    assert!(made["workspace"].as_str().unwrap().starts_with("w-"));
    for directory in ["", "sources", "topics"] {
        let mode = home.workspace().join(directory).metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!(mode, 0o700, "{directory:?}");
    }
    assert_eq!(home.run(&["init", "--json"]).expect(0).json()["created"], false);

    let lines = format!("{}\r\n\r\n{}", turn("m1", "nine keel bolts", "Ada"), turn("m2", "喷油嘴漏油", "林悦"));
    let archived =
        home.run_with(&["archive", "--provider", "p", "--thread", "t", "--json"], lines.as_bytes()).expect(0).json();
    assert_eq!((&archived["archived"], &archived["already"], &archived["differs"]), (&json!(2), &json!(0), &json!([])));
    assert_eq!(archived["records"][0]["id"], "p/t/m1");
    assert_eq!(archived["records"][0]["path"], "sources/p/_v2/t.md");
    let revision = archived["revision"].as_str().unwrap();
    assert!(revision.starts_with("r1-"), "{revision}");

    let verified = home.run(&["verify", "--json"]).expect(0).json();
    assert_eq!((&verified["ok"], &verified["health"]), (&json!(true), &json!("ok")));
    assert_eq!(verified["counts"]["frames"], 2);
    assert_eq!(verified["counts"]["source_files"], 1);
    assert_eq!(verified["revision"], revision);
    assert_eq!(verified["findings"], json!([]));

    let found = home.run(&["search", "喷油嘴", "--json"]).expect(0).json();
    let first = &found["results"][0];
    assert_eq!((&found["query"], &first["id"], &first["kind"]), (&json!("喷油嘴"), &json!("p/t/m2"), &json!("source")));
    assert_eq!(first["speaker"]["display"], "林悦");
    assert_eq!(first["speaker"]["trusted"], true);
    assert_eq!(first["trust"], "trusted");

    let record = home.run(&["get", "p/t/m1", "--json"]).expect(0).json();
    assert_eq!(record["record"]["id"], "p/t/m1");
    assert!(record["lines"][0]["text"].as_str().unwrap().contains("nine keel bolts"), "{record}");

    let files = home.run(&["browse", "--json"]).expect(0).json();
    assert_eq!(files["files"][0]["path"], "sources/p/_v2/t.md");

    let status = home.run(&["status", "--json"]).expect(0).json();
    assert_eq!(
        (&status["health"], &status["history"], &status["lock"]["held"]),
        (&json!("ok"), &json!("off"), &json!(false))
    );
    assert_eq!((&status["workspace"], &status["revision"]), (&made["workspace"], &json!(revision)));
    assert_eq!(status["counts"]["frames"], 2);
}

#[test]
fn human_output_is_results_on_stdout_and_the_rest_on_stderr() {
    let home = Home::with_conversation();
    let found = home.run(&["search", "bolts"]).expect(0);
    assert!(found.text().contains("Ada (u-Ada)"), "{}", found.text());
    assert!(found.text().contains("p/t/m1"), "{}", found.text());
    assert!(!found.text().contains('\x1b'), "no colour in a pipe");
    let traced = home.run(&["-v", "status"]).expect(0);
    assert!(traced.stderr.contains("ms"), "{}", traced.stderr);
    assert!(traced.text().contains("2 files, 4 records"), "{}", traced.text());
    let text = home.run(&["get", "p/t/m3"]).expect(0).text();
    assert!(text.contains("We keep the boat."), "{text}");
}

#[test]
fn repeating_a_batch_changes_nothing_and_other_content_is_told() {
    let home = Home::with_conversation();
    let before = home.everything();
    let words = ["archive", "--provider", "p", "--thread", "u", "--json"];
    let again = home.run_with(&words, turn("m1", "Sell the boat.", "Tom").as_bytes()).expect(0).json();
    assert_eq!((&again["archived"], &again["already"]), (&json!(0), &json!(1)));
    let differs = home.run_with(&words, turn("m1", "Buy a boat.", "Tom").as_bytes()).expect(1);
    assert_eq!(differs.json()["differs"], json!(["p/u/m1"]));
    assert!(differs.stderr.contains("already-archived-differs"), "{}", differs.stderr);
    assert_eq!(home.everything(), before);
}

#[test]
fn a_bad_line_stops_the_whole_batch() {
    let home = Home::with_conversation();
    let before = home.everything();
    let good = turn("m9", "fine", "Ada");
    for (bad, reason) in [
        (r#"{"id":"x","role":"user"}"#.as_bytes(), "missing-field"),
        (br#"{"id":"x","role":"user","text":7}"#, "wrong-type"),
        (br#"{"id":"x","role":"user","text":"\ud800"}"#, "invalid-json"),
        (b"{\"id\":\"x\",\"role\":\"user\",\"text\":\"\xff\"}", "invalid-utf8"),
        (br#"{"id":"x","role":"user","te"#, "invalid-json"),
    ] {
        let input = [good.as_bytes(), b"\n", bad, b"\n", good.as_bytes(), b"\n"].concat();
        let ended = home.run_with(&["archive", "--provider", "p", "--thread", "t", "--json"], &input).expect(2);
        let error = &ended.json()["error"];
        assert_eq!((&error["reason"], &error["line"]), (&json!(reason), &json!(2)), "{}", ended.stderr);
        assert!(ended.stderr.contains("stdin:2"), "{}", ended.stderr);
    }
    assert_eq!(home.everything(), before);
}

#[test]
fn fields_that_mean_nothing_are_told_once_and_the_likely_one_is_named() {
    let home = Home::new();
    home.run(&["init"]).expect(0);
    let line = |id: &str| {
        json!({"id": id, "role": "user", "text": "x", "Trust": "pending", "speaker": {"id": "u", "disply": "U"}})
            .to_string()
    };
    let input = format!("{}\n{}\n", line("a"), line("b"));
    let words = ["archive", "--provider", "p", "--thread", "t"];
    let ended = home.run_with(&words, input.as_bytes()).expect(0);
    for said in ["line 1: the field `Trust`", "`trust`?", "`speaker.disply`", "`speaker.display`?"] {
        assert_eq!(ended.stderr.matches(said).count(), 1, "{said}: {}", ended.stderr);
    }
    assert_eq!(home.run_with(&[&words[..], &["--quiet"]].concat(), input.as_bytes()).expect(0).stderr, "");
    let ended = home.run_with(&words, br#"{"id":"c","role":"user","Text":"x"}"#).expect(2);
    assert!(ended.stderr.contains("`text` is missing") && ended.stderr.contains("`Text`"), "{}", ended.stderr);
}

#[test]
fn a_turn_that_is_too_large_is_named_with_the_setting() {
    let home = Home::with_conversation();
    let before = home.everything();
    let input = format!("{}\n{}\n", turn("m8", "small", "Ada"), turn("m9", &"x".repeat(2000), "Ada"));
    let words = ["archive", "--provider", "p", "--thread", "t", "--json", "--set", "limits.batch-bytes=1500"];
    let ended = home.run_with(&words, input.as_bytes()).expect(7);
    let error = &ended.json()["error"];
    assert_eq!((&error["reason"], &error["line"]), (&json!("limits.batch-bytes"), &json!(2)), "{}", ended.stderr);
    assert!(ended.stderr.contains("--set limits.batch-bytes="), "{}", ended.stderr);
    assert!(!ended.stderr.contains("--chunk"), "{}", ended.stderr);
    assert_eq!(home.everything(), before);

    let ended = home.run_with(&[&words[..], &["--chunk"]].concat(), input.as_bytes()).expect(7);
    let error = &ended.json()["error"];
    assert_eq!((&error["path"], &error["line"]), (&json!("stdin"), &json!(2)), "{}", ended.stderr);
    assert!(ended.stderr.contains("--set limits.batch-bytes="), "{}", ended.stderr);
    assert!(!ended.stderr.contains("--chunk"), "{}", ended.stderr);

    // What the advice says is enough.
    let advice = ended.stderr.split("--set ").nth(1).unwrap().split(';').next().unwrap();
    let words = ["archive", "--provider", "p", "--thread", "t", "--chunk", "--set", advice];
    home.run_with(&words, input.as_bytes()).expect(0);
}

#[test]
fn another_spelling_of_an_archive_names_the_line_and_both() {
    let home = Home::with_conversation();
    let other = json!({"thread": "T", "id": "m9", "role": "user", "text": "x"});
    let input = format!("{}\n{other}\n", turn("m8", "x", "Ada"));
    let ended = home.run_with(&["archive", "--provider", "p", "--thread", "t", "--json"], input.as_bytes()).expect(6);
    let error = &ended.json()["error"];
    assert_eq!((&error["reason"], &error["line"]), (&json!("path-collision"), &json!(2)), "{}", ended.stderr);
    for said in ["p/T/m9", "sources/p/_v2/T.md", "sources/p/_v2/t.md"] {
        assert!(error["message"].as_str().unwrap().contains(said), "{said}: {error}");
    }
}

#[test]
#[cfg(target_os = "linux")]
fn a_result_that_cannot_be_written_is_told_apart_from_work_not_done() {
    let home = Home::with_conversation();
    for json in [&[][..], &["--json"]] {
        let mut command = home.command(&["archive", "--provider", "p", "--thread", "t"]);
        command.args(json);
        fs::write(home.path("turns.jsonl"), turn("m4", "Dark blue it is.", "Ada")).unwrap();
        let output = command
            .arg("turns.jsonl")
            .stdout(fs::OpenOptions::new().write(true).open("/dev/full").unwrap())
            .output()
            .unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{stderr}");
        assert!(stderr.contains("could not be written") && stderr.contains("archived"), "{stderr}");
    }
    home.run(&["get", "p/t/m4"]).expect(0);
}

#[test]
fn a_stdin_that_is_closed_is_not_an_empty_one() {
    let home = Home::with_conversation();
    for words in [&["archive", "--provider", "p", "--thread", "t"][..], &["verify", "-"]] {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", r#"exec "$0" "$@" <&-"#, env!("CARGO_BIN_EXE_recollex")]).args(words);
        for (name, value) in home.command(&[]).get_envs() {
            command.env(name, value.unwrap());
        }
        let output = command.output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{words:?}: {stderr}");
        assert!(stderr.contains("closed"), "{words:?}: {stderr}");
    }
    home.run(&["archive", "--provider", "p", "--thread", "t"]).expect(0);
    home.run(&["archive", "--provider", "p", "--thread", "t", "/dev/null"]).expect(0);
}

#[test]
fn a_pipe_is_not_waited_for_by_its_name() {
    let home = Home::with_conversation();
    assert!(Command::new("mkfifo").arg(home.path("pipe")).status().unwrap().success());
    for words in
        [&["archive", "--provider", "p", "--thread", "t", "pipe"][..], &["update", "pipe"], &["verify", "pipe"]]
    {
        let error = home.run(&[words, &["--json"]].concat()).expect(2).json()["error"].clone();
        assert_eq!((&error["reason"], &error["path"]), (&json!("unreadable-input"), &json!("pipe")), "{words:?}");
        assert!(error["next"].as_str().unwrap().contains("stdin"), "{error}");
    }
    // What a shell puts in the place of a file is one with somebody at its other end.
    let mut command = Command::new("/bin/sh");
    let script = r#"printf '%s\n' "$2" | "$0" archive --provider p --thread t /dev/fd/0; exit $?"#;
    command.args(["-c", script, env!("CARGO_BIN_EXE_recollex"), "x", &turn("m7", "Through a pipe.", "Ada")]);
    for (name, value) in home.command(&[]).get_envs() {
        command.env(name, value.unwrap());
    }
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    home.run(&["get", "p/t/m7"]).expect(0);
}

#[test]
fn a_file_that_may_not_get_longer_is_a_limit() {
    let home = Home::with_conversation();
    let long = turn("m7", &"The keel bolts are wasted. ".repeat(400_000), "Ada");
    fs::write(home.path("turns.jsonl"), long).unwrap();
    let mut command = Command::new("/bin/sh");
    let script = r#"ulimit -f 16384; exec "$0" archive --provider p --thread t --json "$1""#;
    command.args(["-c", script, env!("CARGO_BIN_EXE_recollex")]).arg(home.path("turns.jsonl"));
    for (name, value) in home.command(&[]).get_envs() {
        command.env(name, value.unwrap());
    }
    let output = command.output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(7), "{stderr}");
    assert!(stderr.contains("file-size") && stderr.contains("ulimit -f"), "{stderr}");
    home.run(&["get", "p/t/m7"]).expect(1);
    home.run(&["verify"]).expect(0);
}

#[test]
fn what_is_only_worth_knowing_degrades_no_search() {
    let home = Home::with_conversation();
    // Text of an older archive that belongs to no record.
    let older = home.workspace().join("sources/notes");
    fs::create_dir_all(&older).unwrap();
    fs::write(older.join("boat.md"), "The keel was painted.\n").unwrap();
    home.run(&["verify"]).expect(0);
    for verb in ["search", "grep"] {
        let stderr = home.run(&[verb, "keel"]).expect(0).stderr;
        assert!(!stderr.contains("degraded"), "{verb}: {stderr}");
    }
}

#[test]
fn promote_names_what_it_is_about() {
    let home = Home::with_conversation();
    let ended = home.run(&["promote", "--dry-run", "p/t/m1", "p/t/nowhere"]).expect(1);
    assert!(ended.stderr.contains("p/t/nowhere: "), "{}", ended.stderr);
    let ended = home.run(&["promote", "--tier", "paired", "--dry-run", "p/t/m1"]).expect(6);
    assert!(ended.stderr.contains("`promote` is for the owner"), "{}", ended.stderr);
}

#[test]
fn a_lock_that_is_held_is_waited_for_as_the_setting_says() {
    use recollex::lock::{FileLock, Lock as _};

    let home = Home::with_conversation();
    fs::create_dir(home.workspace().join("journal")).unwrap();
    fs::write(home.workspace().join("journal/day.md"), "x").unwrap();
    let guard = FileLock::new(&home.workspace()).acquire(0, "test").unwrap();
    for words in [&["archive", "--provider", "p", "--thread", "t"][..], &["init"]] {
        let words = [words, &["--json", "--set", "lock.wait-ms=1"]].concat();
        let began = std::time::Instant::now();
        let error = home.run_with(&words, turn("m9", "x", "Ada").as_bytes()).expect(4).json();
        assert_eq!(error["error"]["reason"], "lock-held", "{words:?}");
        // The default is 10 s of waiting.
        assert!(began.elapsed() < std::time::Duration::from_secs(9), "{words:?}");
    }
    drop(guard);
    home.run(&["init"]).expect(0);
    assert!(!home.workspace().join("journal").exists());
}

#[test]
fn a_line_that_is_shown_in_part_is_said_to_be() {
    let home = Home::with_conversation();
    let ended = home.run(&["get", "p/t/m1", "--set", "get.bytes=20", "--json"]).expect(0);
    assert_eq!(ended.json()["lines"][0]["cut"], true);
    assert!(ended.stderr.contains("--set get.bytes=N"), "{}", ended.stderr);
    let whole = home.run(&["get", "p/t/m1", "--json"]).expect(0);
    assert_eq!(whole.json()["lines"][0].get("cut"), None);
    assert!(!whole.stderr.contains("get.bytes"), "{}", whole.stderr);
}

#[test]
fn refused_turns_are_named_by_line() {
    let home = Home::with_conversation();
    let before = home.everything();
    let bad = turn("a[b", "x", "Ada");
    let input = format!("{}\n\n{bad}\n{bad}\n", turn("m9", "fine", "Ada"));
    let ended = home.run_with(&["archive", "--provider", "p", "--thread", "t", "--json"], input.as_bytes());
    assert!([2, 6].contains(&ended.code), "{} {}", ended.code, ended.stderr);
    let error = &ended.json()["error"];
    assert_eq!((&error["line"], &error["problems"][1]["line"]), (&json!(3), &json!(4)));
    assert_eq!(home.everything(), before);
}

#[test]
fn chunks_follow_conversations_and_sizes() {
    let home = Home::new();
    home.run(&["init"]).expect(0);
    let lines: Vec<String> = (0..40)
        .map(|n| {
            let thread = ["a", "b", "c"][n % 3];
            let text = "x".repeat(300);
            json!({"provider": "p", "thread": thread, "id": format!("m{n}"), "role": "user", "text": text}).to_string()
        })
        .collect();
    let words = ["archive", "--chunk", "--json", "--set", "limits.batch-bytes=6000"];
    let ended = home.run_with(&words, lines.join("\n").as_bytes()).expect(0).json();
    assert_eq!(ended["archived"], 40);
    assert_eq!(ended["records"].as_array().unwrap().len(), 40);
    let verified = home.run(&["verify", "--json"]).expect(0).json();
    assert_eq!((&verified["counts"]["frames"], &verified["counts"]["source_files"]), (&json!(40), &json!(3)));
    let archive = fs::read_to_string(home.workspace().join("sources/p/_v2/a.md")).unwrap();
    let at = |id: &str| archive.find(&format!("source-id:p/a/{id} ")).unwrap();
    assert!(at("m0") < at("m3") && at("m3") < at("m39"), "the order of the lines is kept");
}

#[test]
fn damage_is_found_in_a_file_and_on_stdin() {
    let home = Home::with_conversation();
    let path = home.workspace().join("sources/p/_v2/t.md");
    let clean = fs::read(&path).unwrap();
    home.run(&["verify", path.to_str().unwrap()]).expect(0);
    let inside = home.run(&["verify", "sources/p/_v2/t.md", "--json"]).expect(0).json();
    assert_eq!(inside["counts"]["frames"], 3, "{inside}");
    home.run_with(&["verify", "-", "--as", "sources/p/_v2/t.md"], &clean).expect(0);

    let mut bytes = clean.clone();
    let at = clean.windows(6).position(|window| window == b"p/t/m2").unwrap() + 5;
    bytes[at] ^= 1;
    fs::write(home.path("copy.md"), &bytes).unwrap();
    for ended in [
        home.run(&["verify", "copy.md", "--json"]),
        home.run(&["verify", "copy.md", "--as", "sources/p/_v2/t.md", "--json"]),
        home.run_with(&["verify", "-", "--json"], &bytes),
    ] {
        let document = ended.expect(1).json();
        assert_eq!((&document["ok"], &document["health"]), (&json!(false), &json!("degraded")));
        let finding = &document["findings"][0];
        assert_eq!(finding["severity"], "error");
        assert!(finding["line"].as_u64().unwrap() > 1, "{finding}");
    }
    let text = home.run(&["verify", "copy.md"]).expect(1).text();
    assert!(text.starts_with("copy.md:"), "{text}");

    // In the workspace: degraded, and the rest goes on.
    fs::write(&path, &bytes).unwrap();
    home.run(&["verify"]).expect(1);
    home.run(&["verify", "sources/p/_v2/t.md"]).expect(1);
    let found = home.run(&["search", "boat", "--json"]).expect(0);
    assert_eq!(found.json()["results"][0]["id"], "p/u/m1");
    assert!(found.stderr.contains("degraded"), "{}", found.stderr);
    let status = home.run(&["status", "--json"]).expect(0);
    assert_eq!(status.json()["health"], "degraded");
    assert!(status.stderr.contains("sources/p/_v2/t.md"), "{}", status.stderr);
}

#[test]
fn nothing_found_is_told_apart_from_nothing_to_find() {
    let home = Home::with_conversation();
    let none = home.run(&["search", "zeppelin", "--json"]).expect(1);
    assert_eq!(none.json()["results"], json!([]));
    assert!(none.stderr.contains("Nothing found"), "{}", none.stderr);
    for query in ["", "  ", "?!"] {
        let ended = home.run(&["search", query, "--json"]).expect(1);
        assert_eq!(ended.json()["error"]["reason"], "nothing-searchable", "{query:?}");
    }
    let ended = home.run(&["search", "who is the", "--json"]).expect(1);
    assert_eq!(ended.json()["error"]["reason"], "only-function-words");
    home.run(&["search", "boat", "--top-k", "0"]).expect(2);
    home.run(&["search", "boat", "--from", "2026-13"]).expect(2);
    home.run(&["get", "p/t/none"]).expect(1);
    let elsewhere = home.run(&["browse", "sources/none"]).expect(1);
    assert!(elsewhere.stderr.contains("sources/none"), "{}", elsewhere.stderr);

    let empty = Home::new();
    empty.run(&["init"]).expect(0);
    let ended = empty.run(&["search", "boat"]).expect(1);
    assert!(ended.stderr.contains("empty"), "{}", ended.stderr);
}

#[test]
fn a_search_without_results_says_what_to_try() {
    let home = Home::with_conversation();
    let said = |words: &[&str]| home.run(&[&["search", "screw"][..], words].concat()).expect(1).stderr;
    assert!(said(&[]).contains("mean the same"), "{}", said(&[]));
    let filtered = said(&["--speaker", "Ada", "--to", "2026"]);
    for hint in ["without --speaker, --to", "mean the same", "no date"] {
        assert!(filtered.contains(hint), "{hint}: {filtered}");
    }
}

#[test]
fn a_place_in_a_file_can_be_read_as_it_is_named() {
    let home = Home::with_conversation();
    for place in ["sources/p/_v2/t.md:8", "sources/p/_v2/t.md:8:"] {
        let got = home.run(&["get", place, "--lines", "1", "--json"]).expect(0);
        assert_eq!(got.json()["lines"][0]["number"], 8, "{place}");
        // What to ask for next names the file, not the place.
        assert!(got.stderr.contains("get sources/p/_v2/t.md --from-line 9"), "{}", got.stderr);
    }
    home.run(&["get", "sources/p/_v2/none.md:3"]).expect(1);
    for behind in [&["get", "sources/p/_v2/t.md:5000"][..], &["get", "sources/p/_v2/t.md", "--from-line", "5000"]] {
        let ended = home.run(behind).expect(1);
        assert!(ended.stderr.contains("nothing from line 5000"), "{}", ended.stderr);
    }
    // What is damaged is not shown, and that is said.
    let path = home.workspace().join("sources/p/_v2/t.md");
    let mut bytes = fs::read(&path).unwrap();
    let at = bytes.windows(6).position(|window| window == b"p/t/m2").unwrap() + 5;
    bytes[at] ^= 1;
    fs::write(&path, bytes).unwrap();
    let text = home.run(&["verify"]).expect(1).text();
    let ended = home.run(&["get", text.split_once(": error").unwrap().0]).expect(1);
    assert!(ended.stderr.contains("recollex verify sources/p/_v2/t.md"), "{}", ended.stderr);
    home.run(&["get", "p/t/m1:0"]).expect(1);
}

#[test]
fn an_export_that_is_archived_by_mistake_is_told_how_to_import() {
    let home = Home::with_conversation();
    let before = home.everything();
    for (text, said) in [
        (&br#"[{"title":null,"mapping":{},"current_node":"x"}]"#[..], "recollex import chatgpt"),
        (br#"[{"uuid":"u","chat_messages":[]}]"#, "recollex import claude"),
        (br#"{"parentUuid":null,"sessionId":"s","type":"user"}"#, "recollex import claude-code"),
        (b"PK\x03\x04\xff\xff\xff", "recollex import"),
    ] {
        let ended = home.run_with(&["archive", "--provider", "p", "--thread", "t", "-"], text).expect(2);
        assert!(ended.stderr.contains(said), "{}", ended.stderr);
    }
    assert_eq!(home.everything(), before);
}

#[test]
fn a_workspace_that_is_not_there_is_not_made_by_reading() {
    let home = Home::new();
    let status = home.run(&["status", "--json"]).expect(0);
    assert_eq!((&status.json()["health"], &status.json()["workspace"]), (&json!("empty"), &Value::Null));
    let directory = home.workspace().display().to_string();
    for words in [&["search", "boat"][..], &["browse"], &["get", "p/t/m1"], &["verify"]] {
        let ended = home.run(words).expect(1);
        assert!(ended.stderr.contains(&directory), "{words:?}: {}", ended.stderr);
        assert!(ended.stderr.contains("recollex init"), "{words:?}: {}", ended.stderr);
    }
    assert!(status.stderr.contains(&directory) && status.stderr.contains("recollex init"), "{}", status.stderr);
    home.run(&["verify", "none.md"]).expect(2);
    assert_eq!(home.everything(), []);

    // A directory with nothing in it is no workspace either.
    fs::create_dir(home.path("empty")).unwrap();
    for words in [&["status", "--workspace", "empty"][..], &["verify", "--workspace", "empty"]] {
        let ended = home.run(words).expect(0);
        assert!(ended.stderr.contains("no workspace") || ended.stderr.contains("nothing of a memory"), "{words:?}");
    }
    // Whoever names it wants something checked.
    let ended = home.run(&["verify", "empty"]).expect(1);
    assert!(ended.stderr.contains("nothing to check"), "{}", ended.stderr);
    assert_eq!(fs::read_dir(home.path("empty")).unwrap().count(), 0);
}

#[test]
fn what_is_no_directory_is_no_workspace_for_any_verb() {
    let home = Home::new();
    fs::write(home.path("file"), "x").unwrap();
    for words in [&["init"][..], &["status"], &["search", "x"], &["get", "x"], &["browse"], &["verify"], &["doctor"]] {
        let ended = home.run(&[words, &["--workspace", "file", "--json"]].concat()).expect(2);
        let error = &ended.json()["error"];
        assert_eq!(error["reason"], "workspace-path", "{words:?}");
        assert_eq!(error["path"], home.path("file").to_str().unwrap(), "{words:?}");
    }
}

#[test]
fn a_search_is_kept_to_where_the_other_verbs_are() {
    let home = Home::with_conversation();
    for path in ["..", "sources/../..", ".git", ".scriptorium/x"] {
        let browse = home.run(&["browse", path, "--json"]).expect(6).json();
        let search = home.run(&["search", "boat", "--path-prefix", path, "--json"]).expect(6).json();
        for key in ["code", "reason"] {
            assert_eq!(browse["error"][key], search["error"][key], "{path}");
        }
    }
    home.run(&["search", "boat", "--path-prefix", "/sources/p/"]).expect(0);
}

#[test]
fn memory_off_leaves_no_trace() {
    let home = Home::new();
    let verbs: [&[&str]; 8] = [
        &["init"],
        &["archive", "--provider", "p", "--thread", "t"],
        &["verify"],
        &["search", "boat"],
        &["get", "x"],
        &["browse"],
        &["status"],
        &["demo"],
    ];
    for words in verbs {
        let mut command = home.command(words);
        command.args(["--json"]).env("RECOLLEX_BACKEND", "none");
        command.env("XDG_CACHE_HOME", home.path("cache")).env("TMPDIR", home.directory.path());
        let ended = end(command, turn("m", "x", "Ada").as_bytes()).expect(5);
        assert_eq!(ended.json()["error"]["code"], "MEMORY_DISABLED", "{words:?}");
        assert!(!ended.stderr.is_empty(), "{words:?}");
    }
    home.run(&["status", "--backend", "none"]).expect(5);
    home.run(&["paths", "--backend", "none"]).expect(0);
    home.run(&["completions", "bash", "--backend", "none"]).expect(0);
    home.run(&["help"]).expect(0);
    assert_eq!(home.everything(), []);
    fs::create_dir_all(home.path(".config/recollex")).unwrap();
    fs::write(home.path(".config/recollex/config.toml"), "backend = \"none\"\n").unwrap();
    home.run(&["init"]).expect(5);
    assert!(!home.path(".local").exists());
}

#[test]
fn configuration_faults_name_file_line_and_key() {
    let home = Home::new();
    fs::create_dir_all(home.path(".config/recollex")).unwrap();
    fs::write(home.path(".config/recollex/config.toml"), "\nworkspce = '/x'\n").unwrap();
    let ended = home.run(&["status", "--json"]).expect(2);
    let document = ended.json();
    assert_eq!((&document["ok"], &document["error"]["line"]), (&json!(false), &json!(2)));
    assert!(ended.stderr.contains("config.toml:2") && ended.stderr.contains("workspce"), "{}", ended.stderr);
    home.run(&["completions", "zsh"]).expect(0);
}

#[test]
fn settings_and_limits_reach_their_places() {
    let home = Home::with_conversation();
    let ended = home.run(&["status", "--set", "no.such=1", "--json"]).expect(2);
    assert_eq!(ended.json()["error"]["reason"], "unknown-setting");
    fs::write(home.path("other.toml"), "[settings]\nget.lines = 'many'\n").unwrap();
    let ended = home.run(&["status", "--config", "other.toml", "--json"]).expect(2);
    let error = &ended.json()["error"];
    assert_eq!((&error["reason"], &error["path"]), (&json!("invalid-setting"), &json!("other.toml")));
    let mut command = home.command(&["status"]);
    command.env("RECOLLEX_BACKEND", "tape");
    let ended = end(command, b"").expect(2);
    assert!(ended.stderr.contains("RECOLLEX_BACKEND"), "{}", ended.stderr);
    home.run(&["search", "boat", "--top-k", "9", "--set", "search.top-k-max=3"]).expect(2);
    let ended = home.run(&["search", "boat", "--limit", "memory_bytes=65536", "--json"]).expect(7);
    assert_eq!(ended.json()["error"]["reason"], "memory", "{}", ended.stderr);
    assert!(ended.stderr.contains("--limit memory_bytes"), "{}", ended.stderr);
    home.run(&["status"]).expect(0);
}

#[test]
fn paired_callers_may_not_make_a_workspace() {
    let home = Home::new();
    home.run(&["init", "--tier", "paired"]).expect(6);
    assert!(!home.path(".local").exists());
}

#[test]
fn older_layouts_are_put_aside() {
    let home = Home::new();
    fs::create_dir_all(home.path("memory/journal")).unwrap();
    fs::write(home.path("memory/journal/day.md"), "x").unwrap();
    fs::write(home.path("memory/index.sqlite"), "x").unwrap();
    home.run(&["init", "--workspace", "memory"]).expect(0);
    assert!(home.path("memory-superseded/journal/day.md").exists());
    assert!(home.path("memory-superseded/index.sqlite").exists());
    assert!(!home.path("memory/journal").exists());
    home.run(&["verify", "--workspace", "memory"]).expect(0);
}

#[test]
fn usage_errors_are_exit_2_with_and_without_json() {
    let home = Home::new();
    let ended = home.run(&["serch"]).expect(2);
    assert!(ended.stdout.is_empty());
    let ended = home.run(&["serch", "--json"]).expect(2);
    assert_eq!(ended.json()["error"]["code"], "INVALID_ARGUMENT");
    home.run(&[]).expect(2);
    home.run(&["--version"]).expect(0);
}

#[test]
fn a_broken_pipe_is_quiet() {
    let home = Home::new();
    for words in [&["completions", "bash"][..], &["help"], &["paths"], &["man"]] {
        let mut child =
            home.command(words).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{words:?}");
        assert_eq!(output.status.code(), Some(0), "{words:?}");
    }
}

#[test]
fn paths_name_every_place() {
    let home = Home::new();
    fs::create_dir_all(home.path(".openprogram-work/memory")).unwrap();
    let document = home.run(&["paths", "--json", "--profile", "boat"]).expect(0).json();
    let workspace = home.path(".local/share/recollex/boat");
    assert_eq!(document["workspace"], json!({"path": workspace.to_str().unwrap(), "exists": false}));
    assert_eq!(document["runtime"]["path"], workspace.join(".scriptorium").to_str().unwrap());
    assert_eq!(document["config"]["path"], home.path(".config/recollex/config.toml").to_str().unwrap());
    for place in ["cache", "compiled"] {
        assert_eq!(
            document[place]["exists"].as_bool(),
            Some(Path::new(document[place]["path"].as_str().unwrap()).exists())
        );
    }
    let found = document["openprogram"].as_array().unwrap();
    assert_eq!(found[0], json!({"path": home.path(".openprogram-work/memory").to_str().unwrap(), "exists": true}));
}

#[test]
fn completions_and_manual_pages_come_from_the_definitions() {
    let home = Home::new();
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        assert!(home.run(&["completions", shell]).expect(0).text().contains("archive"), "{shell}");
    }
    home.run(&["man", "--dir", "pages"]).expect(0);
    let page = fs::read_to_string(home.path("pages/recollex-search.1")).unwrap();
    assert!(page.contains("speaker"), "{page}");
}

#[test]
fn a_workspace_that_archive_makes_is_said() {
    let home = Home::new();
    let turn = br#"{"id":"m1","role":"user","text":"x"}"#;
    let words = ["archive", "--provider", "p", "--thread", "t"];
    let first = home.run_with(&words, turn).expect(0);
    assert!(first.stderr.contains("Made a workspace in"), "{}", first.stderr);
    let again = home.run_with(&words, turn).expect(0);
    assert!(!again.stderr.contains("Made a workspace"), "{}", again.stderr);
}
