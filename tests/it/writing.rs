//! From a conversation to memory, end to end: the command, a session of six branches, and a real server that speaks the protocol
//! of chat completions from a script, with everything that goes wrong with such servers. Whatever happens, each turn is in
//! memory once, or said to be left out.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::{Duration, Instant};

use recollex_test_model::{Received, Server, Step, openai};
use serde_json::{Value, json};

use crate::home::{Home, Ran};

pub(crate) const SESSION: &str = "local_7";

/// A conversation of six branches: a trunk of twelve turns, and five that leave it at different places.
pub(crate) struct Conversation {
    pub(crate) home: Home,
    turns: Vec<String>,
}

impl Conversation {
    /// Without a turn yet.
    pub(crate) fn empty() -> Self {
        let conversation = Self { home: Home::new(), turns: Vec::new() };
        fs::create_dir_all(conversation.history()).unwrap();
        conversation
    }

    fn new() -> Self {
        let mut conversation = Self::empty();
        let mut last: Option<String> = None;
        for place in 0..12 {
            last = Some(conversation.say("t", place, last.as_deref()));
        }
        for (branch, at) in [("b", 1), ("c", 3), ("d", 5), ("e", 5), ("f", 9)] {
            let mut last = Some(format!("t{at}"));
            for place in 0..4 {
                last = Some(conversation.say(branch, place, last.as_deref()));
            }
        }
        assert_eq!(conversation.turns.len(), 32);
        conversation
    }

    fn sessions(&self) -> PathBuf {
        self.home.path().join("sessions")
    }

    pub(crate) fn history(&self) -> PathBuf {
        self.sessions().join(SESSION).join("history")
    }

    fn say(&mut self, branch: &str, place: usize, after: Option<&str>) -> String {
        let text = format!("On branch {branch} the value number {place} is {}.", self.turns.len() * 7);
        self.say_text(&format!("{branch}{place}"), place.is_multiple_of(2), &text, after)
    }

    /// Writes a node as the other program does: what a person said, or the assistant.
    pub(crate) fn say_text(&mut self, id: &str, is_person: bool, text: &str, after: Option<&str>) -> String {
        let (id, seq) = (id.to_owned(), self.turns.len());
        let (role, letter) = if is_person { ("user", 'u') } else { ("llm", 'l') };
        let node = json!({
            "id": id, "created_at": 1_700_000_000 + seq, "seq": seq, "role": role, "name": "", "input": null,
            "output": text,
            "caller": null, "predecessor": after, "reads": [], "metadata": {"kept": [1, 2.50]},
        });
        fs::write(self.history().join(format!("{seq:04}-{letter}-{id}.json")), node.to_string()).unwrap();
        self.turns.push(id.clone());
        id
    }

    fn command(&self, server: &str, arguments: &[&str]) -> Command {
        let mut command = with_model(self.home.command(arguments), server);
        command.env("RECOLLEX_SESSIONS", self.sessions()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    pub(crate) fn run(&self, server: &str, arguments: &[&str]) -> Ran {
        Ran::of(&self.command(server, arguments).output().unwrap())
    }

    fn write(&self, server: &str) -> Ran {
        self.run(server, &FORCED)
    }

    /// What each block of memory cites, and that the ledger knows of nothing left.
    fn is_whole(&self, server: &str) {
        let owed = self.run(server, &["turns", "owed", "--session", SESSION, "--json"]);
        assert_eq!(owed.code, 0, "{}\n{}", owed.stdout, owed.stderr);
        let pending = self.run(server, &["turns", "pending", "--session", SESSION, "--json"]);
        assert_eq!(pending.code, 0, "{}\n{}", pending.stdout, pending.stderr);
        assert_eq!(self.cited(), self.expected(), "each turn once");
        for entry in fs::read_dir(self.history()).unwrap() {
            let path = entry.unwrap().path();
            assert_eq!(path.extension().and_then(|name| name.to_str()), Some("json"), "{}", path.display());
            let node: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
            assert!(node["metadata"]["memory_written_scriptorium"].is_string(), "{}: {node}", path.display());
            assert_eq!(node["metadata"]["kept"].to_string(), "[1,2.5]", "what else was there stays");
        }
        let receipts = self.home.workspace().join(".scriptorium/recollex-receipts.jsonl");
        assert!(!receipts.exists() || fs::read_to_string(receipts).unwrap().is_empty(), "receipts are left");
        self.home.run(&["verify", "--json"]).exits(0);
    }

    fn expected(&self) -> Vec<String> {
        let mut all: Vec<String> = self.turns.iter().map(|id| format!("openprogram/{SESSION}/{id}")).collect();
        all.sort();
        all
    }

    /// The evidence of all blocks, with repetitions.
    fn cited(&self) -> Vec<String> {
        let blocks = self.home.run(&["browse", "--blocks", "topics", "--json"]).exits(0).json();
        let ids: Vec<String> =
            blocks["blocks"].as_array().unwrap().iter().map(|block| block["id"].as_str().unwrap().to_owned()).collect();
        let mut cited: Vec<String> = ids
            .iter()
            .flat_map(|id| {
                let why = self.home.run(&["why", id, "--json"]).exits(0).json();
                let citations = why["citations"].as_array().unwrap().clone();
                let sources = citations.into_iter().flat_map(|one| one["sources"].as_array().unwrap().clone());
                sources.map(|one| one["id"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
            })
            .collect();
        cited.sort();
        cited
    }
}

/// A command whose writer is at this server.
pub(crate) fn with_model(mut command: Command, server: &str) -> Command {
    command
        .env("RECOLLEX_WRITER_PROVIDER", "openai")
        .env("RECOLLEX_WRITER_MODEL", "scripted-1")
        .env("RECOLLEX_WRITER_BASE_URL", format!("{server}/v1"));
    command
}

pub(crate) const FORCED: [&str; 6] = ["turns", "write", "--session", SESSION, "--force", "--json"];

/// What the first message of this author says in a request, or the last.
pub(crate) fn said(request: &Received, role: &str, is_last: bool) -> String {
    let body = request.json();
    let messages = body["messages"].as_array().cloned().unwrap_or_default();
    let mut of_role = messages.iter().filter(|message| message["role"] == role);
    let found = if is_last { of_role.next_back() } else { of_role.next() };
    match found.map(|message| &message["content"]) {
        Some(Value::Array(parts)) => parts.iter().filter_map(|part| part["text"].as_str()).collect(),
        Some(Value::String(text)) => text.clone(),
        _ => String::new(),
    }
}

/// The turns that a request is about, as they stand in it.
pub(crate) fn offered(request: &Received) -> Vec<(String, String)> {
    let text = said(request, "user", false);
    let turns = text.rsplit("# Turns to be written").next().unwrap_or_default().to_owned();
    turns
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
        .filter_map(|turn| Some((turn["ref"].as_str()?.to_owned(), turn["content"].as_str()?.to_owned())))
        .collect()
}

/// A record for each of these turns.
pub(crate) fn changes(turns: &[(String, String)]) -> Value {
    let create = |(reference, content): &(String, String)| {
        json!({"op": "create", "content": content, "time": null, "source_refs": [reference],
               "destination": {"topic_path": "topics/values.md", "headings": ["Values"], "position": "end"}})
    };
    json!({"changes": turns.iter().map(create).collect::<Vec<_>>()})
}

/// What a diligent model does: writes every turn it is offered.
pub(crate) fn diligent(request: &Received) -> Step {
    let turns = offered(request);
    openai::calls(&[("c1", "submit_changes", changes(&turns))])
}

/// A model that passes over every third turn as long as it is given many.
fn forgetful(request: &Received) -> Step {
    let turns = offered(request);
    let few = turns.len() < 6;
    let kept: Vec<_> =
        turns.into_iter().enumerate().filter(|(place, _)| few || place % 3 != 2).map(|(_, turn)| turn).collect();
    openai::calls(&[("c1", "submit_changes", changes(&kept))])
}

#[test]
fn every_branch_is_written_once_by_a_forgetful_model() {
    let conversation = Conversation::new();
    let server = Server::answering(forgetful).unwrap();
    let ran = conversation.write(&server.url()).exits(0);
    assert!(ran.stderr.is_empty() || !ran.stderr.contains("panicked"), "{}", ran.stderr);
    conversation.is_whole(&server.url());
    let asked = server.received().len();
    // What is written is not written again, and the model is not asked.
    conversation.write(&server.url()).exits(0);
    assert_eq!(server.received().len(), asked);
    conversation.is_whole(&server.url());
}

/// Everything that a server may do instead of answering, one after the other.
fn faults() -> Vec<Step> {
    vec![
        openai::error(429, "rate_limit_exceeded", "slow down").header("retry-after", "1"),
        Step::text(500, "text/html", "<h1>Oops</h1>"),
        Step::Close,
        Step::Cut(b"{\"choices\":[".to_vec()),
        Step::Raw(b"not http at all\r\n\r\n".to_vec()),
        Step::text(200, "application/json", "{\"choices\":"),
        Step::json(200, &json!({"choices": []})),
        openai::text("I shall write that down."),
        openai::calls(&[("c1", "submit_changes", json!("no object"))]),
        openai::calls(&[("c1", "delete_everything", json!({}))]),
        openai::calls(&[("c1", "submit_changes", json!({"changes": [{"op": "create"}]}))]),
        Step::text(503, "text/plain", "busy"),
    ]
}

#[test]
fn a_server_that_fails_in_every_way_costs_time_and_no_turn() {
    let conversation = Conversation::new();
    let mut script = faults().into_iter();
    // After each fault one good answer, so that each is met at another place.
    let mut good = true;
    let server = Server::answering(move |request| {
        good = !good;
        match script.next() {
            Some(step) if !good => step,
            _ => diligent(request),
        }
    })
    .unwrap();
    let mut failed = 0;
    for _ in 0..40 {
        let ran = conversation.write(&server.url());
        assert!(!ran.stderr.contains("panicked"), "{}", ran.stderr);
        if ran.code == 0 {
            break;
        }
        failed += 1;
    }
    assert!(failed > 0, "no fault was told");
    conversation.is_whole(&server.url());
}

/// A child that is killed and waited for when its time has come.
struct Killed(Child);

impl Killed {
    /// Whether it ended by itself, well.
    fn after(mut self, wait: Duration) -> bool {
        let end = Instant::now() + wait;
        while Instant::now() < end {
            if let Some(status) = self.0.try_wait().unwrap() {
                return status.success();
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        let _ = self.0.kill();
        let _ = self.0.wait();
        false
    }
}

#[test]
fn killed_at_every_stage_it_goes_on_where_it_was() {
    let conversation = Conversation::new();
    let stalled = Arc::new(AtomicBool::new(false));
    let (asked, requests) = mpsc::channel();
    let server = Server::answering({
        let stalled = Arc::clone(&stalled);
        move |request| {
            let _ = asked.send(());
            if stalled.load(Ordering::SeqCst) { Step::Stall } else { forgetful(request) }
        }
    })
    .unwrap();
    // While the model thinks: nothing is written yet but evidence.
    stalled.store(true, Ordering::SeqCst);
    let child = conversation.command(&server.url(), &FORCED).spawn().unwrap();
    requests.recv_timeout(Duration::from_secs(60)).expect("the model is asked");
    assert!(!Killed(child).after(Duration::ZERO));
    assert!(conversation.home.workspace().join("sources/openprogram/_v2").join(format!("{SESSION}.md")).exists());
    stalled.store(false, Ordering::SeqCst);
    // From then on at ever later moments: behind the answer, while topics are committed, while nodes are marked.
    let mut wait = Duration::from_millis(2);
    let mut killed = 0;
    let mut is_done = false;
    while !is_done && killed < 400 {
        while requests.try_recv().is_ok() {}
        let child = Killed(conversation.command(&server.url(), &FORCED).spawn().unwrap());
        // Counted from the first answer on, where there is one: the start is the same each time.
        let _ = requests.recv_timeout(Duration::from_millis(600));
        is_done = child.after(wait);
        killed += usize::from(!is_done);
        wait =
            if wait > Duration::from_millis(1500) { Duration::from_secs(60) } else { wait + Duration::from_millis(9) };
    }
    assert!(is_done && killed > 3, "killed {killed} times");
    conversation.write(&server.url()).exits(0);
    conversation.is_whole(&server.url());
}

#[test]
fn two_writers_at_once_write_each_turn_once() {
    let conversation = Conversation::new();
    let most = Arc::new(AtomicUsize::new(0));
    let server = Server::answering({
        let most = Arc::clone(&most);
        move |request| {
            most.fetch_add(1, Ordering::SeqCst);
            Step::After(Duration::from_millis(50), Box::new(forgetful(request)))
        }
    })
    .unwrap();
    let children: Vec<Child> = (0..3).map(|_| conversation.command(&server.url(), &FORCED).spawn().unwrap()).collect();
    for child in children {
        let ran = Ran::of(&child.wait_with_output().unwrap());
        assert!([0, 4].contains(&ran.code), "{}: {}\n{}", ran.code, ran.stdout, ran.stderr);
    }
    conversation.write(&server.url()).exits(0);
    conversation.is_whole(&server.url());
}

/// What each misbehaviour is told as, and that nothing is marked for it.
#[test]
fn failures_have_their_codes_and_mark_nothing() {
    let huge = "x".repeat(11 << 20);
    let cases: Vec<(&str, Step, &str)> = vec![
        ("rate", openai::error(429, "rate_limit_exceeded", "slow"), "MODEL_RATE_LIMIT"),
        ("key", openai::error(401, "invalid_api_key", "no"), "MODEL_AUTHENTICATION"),
        ("forbidden", openai::error(403, "forbidden", "no"), "MODEL_AUTHORIZATION"),
        ("provider", Step::text(500, "text/html", "<h1>Oops</h1>"), "MODEL_PROVIDER_INTERNAL"),
        ("garbage", Step::text(200, "application/json", "{\"choi"), "MODEL_PROVIDER_INTERNAL"),
        ("huge", Step::text(200, "application/json", huge), "MODEL_PROVIDER_INTERNAL"),
        ("gone", Step::Close, "MODEL_TRANSPORT"),
        ("prose", openai::text("Certainly! I have saved everything."), "WRITER_FAILURE_UNKNOWN"),
        (
            "sources",
            openai::calls(&[(
                "c1",
                "submit_changes",
                json!({"changes": [{"op": "create", "content": "x", "time": null, "source_refs": ["openprogram/other/1"],
                       "destination": {"topic_path": "sources/x.md", "headings": [], "position": "end"}}]}),
            )]),
            "COMMIT_REJECTED",
        ),
        ("nothing", openai::calls(&[("c1", "finish", json!({"reason": "small talk"}))]), "WRITER_NO_PROGRESS"),
    ];
    let conversation = Conversation::new();
    let step = Arc::new(Mutex::new(Step::Close));
    let server = Server::answering({
        let step = Arc::clone(&step);
        move |_| step.lock().unwrap().clone()
    })
    .unwrap();
    let before = nodes(&conversation.history());
    for (name, answer, code) in cases {
        *step.lock().unwrap() = answer;
        let ran = conversation.write(&server.url());
        assert_ne!(ran.code, 0, "{name}: {}", ran.stdout);
        assert!(ran.stdout.contains(code) || ran.stderr.contains(code), "{name}: {}\n{}", ran.stdout, ran.stderr);
        assert_eq!(nodes(&conversation.history()), before, "{name}: something is marked");
        assert!(!conversation.home.workspace().join("topics").exists(), "{name}: something is written");
    }
    // No server at all, and no model at all.
    let ran = conversation.write("http://127.0.0.1:9");
    assert!(ran.stdout.contains("MODEL_TRANSPORT"), "{}", ran.stdout);
    let mut bare = conversation.home.command(&FORCED);
    bare.env("RECOLLEX_SESSIONS", conversation.sessions());
    let ran = Ran::of(&bare.output().unwrap());
    assert!(ran.stdout.contains("MEMORY_PROVIDER_RESOLUTION_FAILED"), "{}\n{}", ran.stdout, ran.stderr);
    assert_eq!(nodes(&conversation.history()), before);
    // And then it is as if nothing had been.
    *step.lock().unwrap() = Step::Close;
    drop(server);
    let server = Server::answering(diligent).unwrap();
    conversation.write(&server.url()).exits(0);
    conversation.is_whole(&server.url());
}

pub(crate) fn nodes(history: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut all: Vec<(PathBuf, Vec<u8>)> = fs::read_dir(history)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .map(|path| (path.clone(), fs::read(path).unwrap()))
        .collect();
    all.sort();
    all
}
