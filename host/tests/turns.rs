//! From conversations to memory by the program: the verbs over stores of real files, with a model that answers from a recording.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, SystemTime};

use recollex::turns::{Backend, Backends, DriveOptions, OpenProgramSessions, Recollex, SessionStore};
use recollex::{OpenOptions, Runtime, RuntimeOptions, Session, Tier};
use rustix::fs::FlockOperation;
use serde_json::{Value, json};
use tempfile::TempDir;

const SAID: [(&str, &str); 4] = [
    ("user", "The hall is free on the 7th."),
    ("llm", "Noted."),
    ("user", "The door is to be dark blue."),
    ("llm", "Dark blue it is."),
];

struct Home {
    directory: TempDir,
}

struct Ended {
    code: i32,
    stdout: String,
    stderr: String,
}

impl Ended {
    #[track_caller]
    fn expect(self, code: i32) -> Self {
        assert_eq!(self.code, code, "stdout {:?}, stderr {}", self.stdout, self.stderr);
        self
    }

    #[track_caller]
    fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {:?}, {}", self.stdout, self.stderr))
    }
}

impl Home {
    /// A workspace, sessions `s1` and `s2` of four turns each, and no model.
    fn new() -> Self {
        let home = Self { directory: TempDir::new().unwrap() };
        home.run(&["init"]).expect(0);
        for session in ["s1", "s2"] {
            let mut before = Value::Null;
            for (n, (role, text)) in SAID.iter().enumerate() {
                let id = format!("{session}n{n}");
                let node = json!({"id": id, "seq": n + 1, "created_at": 1_700_000_000.0 + n as f64, "role": role, "output": text,
                    "predecessor": before, "metadata": {}});
                home.put(
                    &format!("sessions/{session}/history/{:04}-{}-{id}.json", n + 1, &role[..1]),
                    &node.to_string(),
                );
                before = json!(id);
            }
        }
        home
    }

    /// With a model that cites all four turns of each of these sessions, one after the other.
    fn with_model(self, provider: &str, sessions: &[&str]) -> Self {
        let refs = |session: &str| (0..SAID.len()).map(|n| format!("{provider}/{session}/{session}n{n}")).collect();
        let answers: Vec<(&str, Vec<String>)> = sessions.iter().map(|session| (*session, refs(session))).collect();
        self.with_answers(&answers)
    }

    /// With a model that makes a claim in each of these topics, one after the other, which rests on these turns.
    fn with_answers(self, answers: &[(&str, Vec<String>)]) -> Self {
        let lines = answers.iter().map(|(topic, refs)| {
            let change = json!({"op": "create", "content": format!("In {topic} a hall and a colour were settled."),
                "time": null, "source_refs": refs,
                "destination": {"topic_path": format!("topics/{topic}.md"), "headings": ["Plans"], "position": "end"}});
            let call = json!({"id": "1", "name": "submit_changes", "arguments": {"changes": [change]}});
            format!("{}\n", json!({"reply": {"parts": [{"call": call}], "stop": "tools", "model": "recorded"}}))
        });
        self.put("recording.jsonl", &lines.collect::<String>());
        let path = self.path("recording.jsonl");
        self.put(
            ".config/recollex/config.toml",
            &format!("[models.writer]\nprovider = 'replay'\nrecording = '{}'\n", path.display()),
        );
        self
    }

    fn path(&self, rest: &str) -> PathBuf {
        self.directory.path().join(rest)
    }

    /// Writes a file as if it had been there for an hour.
    fn put(&self, name: &str, text: &str) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        let hour_ago = SystemTime::now() - Duration::from_secs(3600);
        fs::File::options().write(true).open(&path).unwrap().set_modified(hour_ago).unwrap();
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_recollex"));
        command.args(words).env_clear().env("HOME", self.directory.path()).env("PATH", "/usr/bin:/bin");
        command.env("XDG_CACHE_HOME", Path::new(env!("CARGO_TARGET_TMPDIR")).join("cli-cache"));
        command.env("RECOLLEX_SESSIONS", self.path("sessions")).current_dir(self.directory.path());
        command
    }

    fn run(&self, words: &[&str]) -> Ended {
        self.run_with(words, "")
    }

    fn run_with(&self, words: &[&str], stdin: &str) -> Ended {
        let mut command = self.command(words);
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
        // A program that does not read its input closes it: that is no fault of the test.
        let _ = child.stdin.take().unwrap().write_all(stdin.as_bytes());
        let output = child.wait_with_output().unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        let stderr = text(output.stderr);
        assert!(!stderr.contains("panicked"), "{stderr}");
        Ended { code: output.status.code().unwrap_or(-1), stdout: text(output.stdout), stderr }
    }

    /// Of each node's file of a session what it says, without its mark, and whether it has one.
    fn nodes(&self, session: &str) -> Vec<(Value, bool)> {
        let mut paths: Vec<PathBuf> = fs::read_dir(self.path(&format!("sessions/{session}/history")))
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .collect();
        paths.sort();
        let read = |path: PathBuf| {
            let mut node: Value = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
            let metadata = node["metadata"].as_object_mut().unwrap();
            let is_marked = metadata.remove("memory_written_scriptorium").is_some();
            (node, is_marked)
        };
        paths.into_iter().map(read).collect()
    }
}

#[test]
fn a_conversation_becomes_memory_once() {
    let home = Home::new().with_model("openprogram", &["s1"]);
    let file = home.path("sessions/s1/history/0001-u-s1n0.json");
    let (before, changed) = (home.nodes("s1"), fs::metadata(&file).unwrap().mtime_nsec());
    assert_eq!(home.run(&["turns", "pending", "--json"]).expect(0).json()["pending_turns"], 8);
    // Old enough to be due, though it is little.
    let wrote = home.run(&["write", "--session", "s1", "--json"]).expect(0).json();
    assert_eq!(
        (&wrote["ok"], &wrote["turns"], &wrote["cited"], &wrote["marked"]),
        (&json!(true), &json!(4), &json!(4), &json!(4))
    );
    let after = home.nodes("s1");
    assert!(after.iter().all(|(_, is_marked)| *is_marked));
    assert_eq!(
        after.iter().map(|(node, _)| node).collect::<Vec<_>>(),
        before.iter().map(|(node, _)| node).collect::<Vec<_>>()
    );
    assert_eq!(fs::metadata(&file).unwrap().mtime_nsec(), changed);
    assert!(
        fs::read_to_string(home.path(".local/share/recollex/default/topics/s1.md"))
            .unwrap()
            .contains("a hall and a colour")
    );
    // Nothing is left, so nobody asks the model, which would have no answer.
    let again = home.run(&["write", "--session", "s1", "--force"]).expect(0);
    assert_eq!((&*again.stdout, again.stderr.lines().count()), ("", 1));
    let pending = home.run(&["turns", "pending", "--json"]).expect(0).json();
    assert_eq!(pending["pending_turns"], 4);
    let owed = home.run(&["turns", "owed", "--session", "s1", "--json"]).expect(0).json();
    assert_eq!(owed["counts"], json!({"unmarked": 0, "marked_uncited": 0, "stranded": 0, "cited_unmarked": 0}));
    let status = home.run(&["status", "--json"]).expect(0).json();
    assert_eq!((&status["writer"]["last_outcome"], &status["writer"]["pending_turns"]), (&json!("success"), &json!(4)));
}

#[test]
fn a_file_of_lines_is_marked_by_a_line() {
    let home = Home::new().with_model("notes", &["talk"]);
    let lines: String = SAID
        .iter()
        .enumerate()
        .map(|(n, (role, text))| {
            let role = if *role == "llm" { "assistant" } else { role };
            let before = n.checked_sub(1).map(|n| format!("talkn{n}"));
            let node = json!({"id": format!("talkn{n}"), "timestamp": 1_700_000_000.0 + n as f64, "role": role, "content": text,
                "predecessor": before});
            format!("{node}\n")
        })
        .collect();
    home.put("talk.jsonl", &lines);
    let at = ["--sessions", "talk.jsonl"];
    let unnamed = home.run(&[&["write", "--session", "talk"], &at[..]].concat()).expect(2);
    assert!(unnamed.stderr.contains("--provider"), "{}", unnamed.stderr);
    let at = [&at[..], &["--provider", "notes"]].concat();
    home.run(&[&["write", "--session", "talk", "--force"], &at[..]].concat()).expect(0);
    let text = fs::read_to_string(home.path("talk.jsonl")).unwrap();
    let mark: Value = serde_json::from_str(text.strip_prefix(&lines).unwrap()).unwrap();
    assert_eq!(mark["nodes"], json!(["talkn0", "talkn1", "talkn2", "talkn3"]));
    assert_eq!(home.run(&[&["turns", "pending", "--json"], &at[..]].concat()).expect(0).json()["pending_turns"], 0);
}

#[test]
fn without_a_model_nothing_is_marked_and_it_is_said_why() {
    let home = Home::new();
    let failed = home.run(&["write", "--session", "s1", "--json"]).expect(2);
    let outcome = failed.json();
    assert_eq!(outcome["reason_code"], "MEMORY_PROVIDER_RESOLUTION_FAILED");
    assert!(failed.stderr.contains("models.writer.provider"), "{}", failed.stderr);
    assert!(home.nodes("s1").iter().all(|(_, is_marked)| !is_marked));
    let status = home.run(&["status", "--json"]).expect(0).json();
    assert_eq!(status["writer"]["last_failure"]["reason_code"], "MEMORY_PROVIDER_RESOLUTION_FAILED");
    assert_eq!(status["writer"]["pending_turns"], 8);
}

#[test]
fn a_hook_never_fails_and_has_nothing_to_say_where_nothing_is_due() {
    let home = Home::new().with_model("openprogram", &["s1"]);
    let hook = |stdin: &str, words: &[&str]| home.run_with(&[&["write", "--hook"], words].concat(), stdin).expect(0);
    let written = hook("{\"session_id\":\"s1\",\"other\":1}", &[]);
    assert_eq!((&*written.stdout, &*written.stderr), ("", ""));
    assert!(home.nodes("s1").iter().all(|(_, is_marked)| *is_marked));
    let silent = hook("{\"session_id\":\"s1\"}", &["--json"]);
    assert_eq!((&*silent.stdout, &*silent.stderr), ("", ""));
    for (stdin, words) in [("", &[][..]), ("{}", &[]), ("", &["--session", "none"]), ("", &["--no-such-option"])] {
        assert!(!hook(stdin, words).stderr.is_empty(), "{stdin} {words:?}");
    }
    assert!(hook("{}", &[]).stderr.contains("MISSING_SESSION_ID"));
}

#[test]
fn one_writer_of_turns_at_a_time() {
    let home = Home::new().with_model("openprogram", &["s1"]);
    home.run(&["turns", "mark", "--session", "s2", "s2n0", "--yes"]).expect(0);
    let lock = home.path(".local/share/recollex/default/.scriptorium/recollex-writer.lock");
    let held = fs::File::open(lock).unwrap();
    rustix::fs::flock(&held, FlockOperation::LockExclusive).unwrap();
    let now = ["--set", "lock.wait-ms=0"];
    let refused = home.run(&[&["write", "--session", "s1", "--json"], &now[..]].concat()).expect(4);
    assert_eq!(
        (&refused.json()["reason_code"], &refused.json()["retryable"]),
        (&json!("CONCURRENT_UPDATE"), &json!(true))
    );
    home.run(&[&["backfill"], &now[..]].concat()).expect(4);
    drop(held);
    home.run(&[&["write", "--session", "s1"], &now[..]].concat()).expect(0);
}

#[test]
fn what_is_written_and_could_not_be_marked_is_marked_and_not_written_again() {
    let home = Home::new().with_model("openprogram", &["s1"]);
    let marking = fs::File::open(home.path("sessions/s1/history")).unwrap();
    rustix::fs::flock(&marking, FlockOperation::LockExclusive).unwrap();
    let failed = home.run(&["write", "--session", "s1", "--json", "--set", "lock.wait-ms=0"]).expect(2).json();
    assert_eq!((&failed["reason_code"], &failed["retryable"]), (&json!("SESSION_NODES_UNAVAILABLE"), &json!(true)));
    assert_eq!((&failed["cited"], &failed["marked"]), (&json!(4), &json!(0)));
    drop(marking);
    let pending = home.run(&["turns", "pending", "--session", "s1", "--json"]).expect(0).json();
    assert_eq!((&pending["sessions"][0]["turns"], &pending["sessions"][0]["unmarked"]), (&json!(0), &json!(4)));
    // There is no model any more that could be asked.
    fs::remove_file(home.path(".config/recollex/config.toml")).unwrap();
    let marked = home.run(&["write", "--session", "s1", "--json"]).expect(0).json();
    assert_eq!((&marked["ok"], &marked["turns"], &marked["marked"]), (&json!(true), &json!(0), &json!(4)));
    assert!(home.nodes("s1").iter().all(|(_, is_marked)| *is_marked));
}

#[test]
fn what_marks_passed_over_is_written_on_request() {
    let home = Home::new().with_answers(&[("s1", vec!["openprogram/s1/s1n0".to_owned()])]);
    home.run(&["turns", "mark", "--session", "s1", "s1n1", "s1n3", "--yes"]).expect(0);
    assert_eq!(home.run(&["turns", "pending", "--session", "s1", "--json"]).expect(0).json()["pending_turns"], 0);
    let stranded = |home: &Home| {
        home.run(&["turns", "owed", "--session", "s1", "--json"]).expect(1).json()["counts"]["stranded"].clone()
    };
    assert_eq!(stranded(&home), 2);
    let wrote = home.run(&["turns", "write", "--session", "s1", "--stranded", "--json"]);
    // The model cites one of the two, and has no answer when it is offered the other once more. Neither is written again.
    let outcome = &wrote.json()["sessions"][0];
    assert_eq!((&outcome["turns"], &outcome["cited"]), (&json!(2), &json!(1)), "{outcome}");
    assert_eq!(stranded(&home), 0, "what was offered is marked");
}

#[test]
fn marks_by_hand_are_asked_for() {
    let home = Home::new();
    let refused = home.run(&["turns", "mark", "--session", "s1", "s1n0"]).expect(2);
    assert!(refused.stderr.contains("--yes"), "{}", refused.stderr);
    home.run(&["turns", "mark", "--session", "s1", "s1n0", "--dry-run"]).expect(0);
    assert!(home.nodes("s1").iter().all(|(_, is_marked)| !is_marked));
    let marked = home.run(&["turns", "mark", "--session", "s1", "s1n1", "none", "--yes", "--json"]).expect(1).json();
    assert_eq!((&marked["marked"], &marked["left"][0]["node"]), (&json!(["s1n1"]), &json!("none")));
    // What is older than a mark and rests on nothing is stranded.
    let owed = home.run(&["turns", "owed", "--session", "s1", "--json"]).expect(1).json();
    assert_eq!(owed["counts"], json!({"unmarked": 2, "marked_uncited": 1, "stranded": 1, "cited_unmarked": 0}));
}

#[test]
fn a_session_that_cannot_be_read_is_told_and_the_others_go_on() {
    let home = Home::new();
    std::os::unix::fs::symlink("0001-u-s1n0.json", home.path("sessions/s1/history/0005-u-s1n4.json")).unwrap();
    let pending = home.run(&["turns", "pending", "--json"]).expect(1);
    let document = pending.json();
    assert_eq!((&document["pending_turns"], &document["unavailable"][0]["session"]), (&json!(4), &json!("s1")));
    assert_eq!(document["unavailable"][0]["error"]["code"], "SESSION_NODES_UNAVAILABLE");
    assert!(document["unavailable"][0]["error"]["path"].as_str().unwrap().ends_with("0005-u-s1n4.json"));
    home.run(&["turns", "pending", "--session", "s1"]).expect(2);
    home.run(&["turns", "pending", "--session", "none"]).expect(2);
}

#[test]
fn the_watcher_writes_what_has_stopped_and_looks_once() {
    let home = Home::new().with_model("openprogram", &["s1", "s2"]);
    let rounds = |ended: &Ended| -> Vec<Value> {
        ended.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    };
    let first = rounds(&home.run(&["daemon", "--once", "--json"]).expect(0));
    assert_eq!(
        first.iter().map(|line| line["kind"].as_str().unwrap()).collect::<Vec<_>>(),
        ["conversation", "conversation", "round"]
    );
    assert_eq!((&first[2]["looked_at"], &first[2]["failed"]), (&json!(2), &json!(0)));
    let second = rounds(&home.run(&["daemon", "--once", "--json"]).expect(0));
    assert_eq!((second.len(), &second[0]["looked_at"]), (1, &json!(0)), "marks are no news");
    for session in ["s1", "s2"] {
        assert!(home.nodes(session).iter().all(|(_, is_marked)| *is_marked));
    }
}

#[test]
fn a_daemon_ends_when_it_is_told_to_and_is_the_only_one() {
    let home = Home::new();
    let mut child = home.command(&["daemon"]).stdin(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let mut stderr = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    stderr.read_line(&mut line).unwrap();
    assert!(line.starts_with("Watching"), "{line}");
    let second = home.run(&["daemon", "--once"]).expect(4);
    assert!(second.stderr.contains("watches"), "{}", second.stderr);
    let process = rustix::process::Pid::from_raw(child.id().try_into().unwrap()).unwrap();
    rustix::process::kill_process(process, rustix::process::Signal::TERM).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
    home.run(&["turns", "pending"]).expect(0);
}

#[test]
fn memory_that_is_off_is_left_alone() {
    let home = Home::new();
    for words in [
        &["write", "--session", "s1"][..],
        &["turns", "pending"],
        &["sleep"],
        &["backfill"],
        &["salvage"],
        &["daemon", "--once"],
    ] {
        let off = [words, &["--backend", "none", "--workspace", "nowhere"]].concat();
        home.run(&off).expect(5);
    }
    assert!(!home.path("nowhere").exists());
}

#[test]
fn an_agent_swaps_memories_by_a_word() {
    /// A memory that knows nothing of this crate's.
    struct Diary;
    impl Backend for Diary {
        fn name(&self) -> &str {
            "diary"
        }
        fn system_prompt(&mut self) -> Result<String, recollex::turns::BackendError> {
            Ok("Dear diary".to_owned())
        }
    }
    let home = Home::new();
    let cache = Some(Path::new(env!("CARGO_TARGET_TMPDIR")).join("compiled"));
    let runtime = Runtime::new(RuntimeOptions { cache, ..RuntimeOptions::default() }).unwrap();
    let (workspace, sessions) = (home.path(".local/share/recollex/default"), home.path("sessions"));
    let backends = Backends::default().with("diary", || Ok(Box::new(Diary))).with("files", move || {
        let session = Session::open(&runtime, &workspace, OpenOptions::new(Tier::Owner))?;
        let store: Box<dyn SessionStore> = Box::new(OpenProgramSessions::new(&sessions));
        Ok(Box::new(Recollex::new(session, Some(store), Some(workspace.clone()), DriveOptions::default())))
    });
    // What an agent does, whatever memory it has.
    let turn = |word: &str| {
        let mut memory = backends.open(word).unwrap();
        let wrote = memory.write("s1", false).map_err(|error| error.code);
        let found = memory.search("hall", 5).unwrap().len();
        (memory.name().to_owned(), memory.system_prompt().unwrap(), wrote.map(|it| it.turns), found)
    };
    assert_eq!(turn("none"), ("none".to_owned(), String::new(), Ok(0), 0));
    assert_eq!(turn("diary"), ("diary".to_owned(), "Dear diary".to_owned(), Ok(0), 0));
    // Without a model what was said is kept, found, and owed to topics still.
    let unwritten = Err("MEMORY_PROVIDER_RESOLUTION_FAILED".to_owned());
    assert_eq!(turn("files"), ("files".to_owned(), String::new(), unwritten, 1));
    assert!(backends.open("else").is_err());
}
