//! The providers against real servers, real programs and real files, well and badly behaved.

#[cfg(feature = "http")]
mod over_http;

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use super::*;
use crate::observer::Level;

/// Long, for a machine that is busy otherwise.
const LONG: Duration = Duration::from_secs(60);

#[derive(Default)]
struct Lines(Mutex<Vec<(Level, String)>>);

impl Observer for Lines {
    fn log(&self, level: Level, message: &str) {
        self.0.lock().unwrap().push((level, message.to_owned()));
    }
}

impl Lines {
    fn all(&self) -> String {
        self.0.lock().unwrap().iter().map(|(level, line)| format!("{level}: {line}\n")).collect()
    }
}

fn says(author: Author, text: &str) -> Message {
    Message { author, parts: vec![Part::Text(text.to_owned())] }
}

fn request() -> Request {
    Request {
        purpose: WRITER.to_owned(),
        model: None,
        messages: vec![says(Author::System, "You write."), says(Author::User, "Write.")],
        tools: vec![Tool {
            name: "submit".to_owned(),
            description: "Submits.".to_owned(),
            schema: r#"{"type":"object","properties":{"b":{},"a":{}}}"#.to_owned(),
        }],
        must_call: false,
        max_output: 1000,
    }
}

fn ask_within(time: Duration, provider: &dyn Provider, request: &Request) -> Result<Reply, ModelError> {
    provider.complete(request, &Attempt::new(time, &|| false, &crate::observer::Silent))
}

fn ask(provider: &dyn Provider) -> Result<Reply, ModelError> {
    ask_within(LONG, provider, &request())
}

fn kind(outcome: &Result<Reply, ModelError>) -> ModelErrorKind {
    outcome.as_ref().expect_err("an error").kind
}

/// Cancels after a tenth of a second; answers with what came, and after which time.
fn ask_and_cancel(provider: &dyn Provider) -> (Result<Reply, ModelError>, Duration) {
    let cancelled = AtomicBool::new(false);
    let begun = Instant::now();
    let outcome = std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(Duration::from_millis(100));
            cancelled.store(true, Ordering::SeqCst);
        });
        let is_cancelled = || cancelled.load(Ordering::SeqCst);
        provider.complete(&request(), &Attempt::new(LONG, &is_cancelled, &crate::observer::Silent))
    });
    (outcome, begun.elapsed())
}

fn eventually(what: impl Fn() -> bool) -> bool {
    (0..500).any(|_| {
        std::thread::sleep(Duration::from_millis(10));
        what()
    })
}

/// A provider that is a shell script.
fn shell(script: &str) -> Command {
    Command::new(["/bin/sh", "-c", script])
}

const ANSWER: &str = r#"{"reply":{"parts":[{"text":"well"},{"call":{"id":"1","name":"submit","arguments":{"b":1, "a":2}}}],"stop":"tools","tokens_in":3,"model":"m"}}"#;

#[test]
fn a_command_answers_in_json() {
    let directory = tempfile::tempdir().unwrap();
    let seen = directory.path().join("request");
    let provider = shell(&format!("cat > {}; echo '{ANSWER}'", seen.display()));
    let mut asked = request();
    asked.model = Some("large".to_owned());
    let reply = ask_within(LONG, &provider, &asked).unwrap();
    let call = ToolCall { id: "1".to_owned(), name: "submit".to_owned(), arguments: r#"{"b":1, "a":2}"#.to_owned() };
    assert_eq!(reply.parts, [Part::Text("well".to_owned()), Part::Call(call)]);
    assert_eq!((reply.stop, reply.tokens_in, reply.tokens_out, &*reply.model), (StopReason::Tools, Some(3), None, "m"));

    let document: serde_json::Value = serde_json::from_slice(&fs::read(seen).unwrap()).unwrap();
    assert_eq!(
        (&document["version"], &document["purpose"], &document["model"]),
        (&1.into(), &"writer".into(), &"large".into())
    );
    assert_eq!(document["messages"][1], serde_json::json!({"author": "user", "parts": [{"text": "Write."}]}));
    assert_eq!(document["tools"][0]["schema"]["type"], "object");
    assert!(document["deadline_ms"].as_u64().unwrap() <= 60_000, "{document}");
}

#[test]
fn a_command_finds_an_empty_place_of_its_own() {
    let directory = tempfile::tempdir().unwrap();
    let seen = directory.path().join("seen");
    let script = format!("{{ pwd; ls -A | wc -l; env; }} > {}; touch left-behind; echo '{ANSWER}'", seen.display());
    // Every test has it, and a command is not to.
    assert!(std::env::var_os("CARGO_MANIFEST_DIR").is_some());
    ask(&shell(&script)).unwrap();
    let text = fs::read_to_string(&seen).unwrap();
    let mut lines = text.lines();
    let place = lines.next().unwrap().to_owned();
    assert_eq!(lines.next().unwrap().trim(), "0", "{text}");
    assert!(!Path::new(&place).exists(), "it is removed");
    for line in lines {
        let name = line.split('=').next().unwrap();
        let known = ["PATH", "LANG", "LC_ALL", "TZ", "TMPDIR", "PWD", "OLDPWD", "SHLVL", "_"];
        assert!(known.contains(&name), "{line}");
    }
    ask(&Command { pass_env: vec!["CARGO_MANIFEST_DIR".to_owned()], ..shell(&script) }).unwrap();
    assert!(fs::read_to_string(&seen).unwrap().contains("CARGO_MANIFEST_DIR="));
}

/// Whether the process whose number a script wrote is there and no corpse.
fn is_alive(file: &Path) -> bool {
    let Ok(number) = fs::read_to_string(file) else { return true };
    let stat = fs::read_to_string(format!("/proc/{}/stat", number.trim())).unwrap_or_default();
    !stat.is_empty() && !stat.contains(") Z ")
}

#[test]
#[cfg(target_os = "linux")]
fn a_command_ends_with_all_that_it_started() {
    let directory = tempfile::tempdir().unwrap();
    for (number, late) in [(1, "wait"), (2, ""), (3, "exec sleep 100")] {
        let child = directory.path().join(format!("child-{number}"));
        // The child keeps the pipes open too.
        let script = format!("sleep 100 & echo $! > {}; echo '{ANSWER}'; {late}", child.display());
        let begun = Instant::now();
        let outcome = ask_within(Duration::from_secs(1), &shell(&script), &request());
        assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
        match late {
            "" => drop(outcome.unwrap()),
            _ => assert_eq!(kind(&outcome), ModelErrorKind::Timeout),
        }
        assert!(eventually(|| !is_alive(&child)), "{late}");
    }
    let child = directory.path().join("child");
    let (outcome, took) = ask_and_cancel(&shell(&format!("sleep 100 & echo $! > {}; wait", child.display())));
    assert_eq!(kind(&outcome), ModelErrorKind::Cancelled);
    assert!(took < Duration::from_secs(20), "{took:?}");
    assert!(!child.exists() || eventually(|| !is_alive(&child)));
}

#[test]
fn a_command_that_misbehaves_is_a_provider_error() {
    use ModelErrorKind::{Provider as Failed, RateLimit, Unconfigured};
    let small = |script: &str| Command { reply_bytes: 1000, ..shell(script) };
    for (provider, expected) in [
        (shell("exit 3"), Failed),
        (shell(&format!("echo '{ANSWER}'; exit 3")), Failed),
        (shell("kill -9 $$"), Failed),
        (shell("echo '{\"reply\":{}}'"), Failed),
        (shell("echo '{\"reply\":'"), Failed),
        (shell("printf '\\377\\376'"), Failed),
        (shell("true"), Failed),
        (small("yes"), Failed),
        (small("yes | head -c 300000 1>&2; echo nothing"), Failed),
        (
            shell(r#"echo '{"error":{"kind":"rate-limit","retry_after_ms":70,"message":"slow down"}}'; exit 1"#),
            RateLimit,
        ),
        (Command::new(["/nowhere/at-all"]), Failed),
        (Command::default(), Unconfigured),
    ] {
        let provider = Command { reply_bytes: provider.reply_bytes.max(1000), ..provider };
        let outcome = ask_within(Duration::from_secs(20), &provider, &request());
        assert_eq!(kind(&outcome), expected, "{provider:?} {outcome:?}");
        let error = outcome.unwrap_err();
        assert_eq!(error.retry_after, (expected == RateLimit).then_some(Duration::from_millis(70)));
    }
}

#[test]
fn a_command_need_not_read_what_it_is_asked() {
    let mut asked = request();
    asked.messages.push(says(Author::User, &"long ".repeat(1 << 20)));
    assert!(ask_within(LONG, &shell(&format!("echo '{ANSWER}'")), &asked).is_ok());
}

#[test]
fn what_a_command_says_on_stderr_is_logged_and_bounded() {
    for (end, level) in [(format!("echo '{ANSWER}'"), Level::Debug), ("exit 1".to_owned(), Level::Warn)] {
        let lines = Lines::default();
        let provider = shell(&format!("printf 'a \\033[1mword\\n' 1>&2; yes more | head -c 1000000 1>&2; {end}"));
        let _ = provider.complete(&request(), &Attempt::new(LONG, &|| false, &lines));
        let lines = lines.0.into_inner().unwrap();
        assert_eq!(lines[0], (level, "the model's command: a  [1mword".to_owned()));
        assert!(lines.iter().map(|(_, line)| line.len()).sum::<usize>() < 500_000);
    }
}

#[test]
fn what_was_recorded_is_replayed() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("exchange.jsonl");
    let counter = directory.path().join("count");
    // Refuses at first, and then answers.
    let script = format!(
        r#"cd {0}; if [ -e count ]; then echo '{ANSWER}'; else touch count; echo '{{"error":{{"kind":"rate-limit","message":"slow"}}}}'; fi"#,
        directory.path().display()
    );
    let recorder = Recorder::new(Arc::new(shell(&script)), &path);
    let recorded = [ask(&recorder), ask(&recorder)];
    assert!(counter.exists() && recorded[0].is_err() && recorded[1].is_ok());
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    let text = fs::read_to_string(&path).unwrap();
    assert!(text.lines().count() == 2 && !text.contains("You write"), "{text}");

    let replay = Replay::new(&path);
    let mut other = request();
    other.max_output = 7;
    assert_eq!(kind(&ask_within(LONG, &replay, &other)), ModelErrorKind::Provider, "another request");
    assert_eq!([ask(&replay), ask(&replay)], recorded);
    let spent = ask(&replay).unwrap_err();
    assert_eq!((spent.kind, spent.retryable), (ModelErrorKind::Provider, false));

    // By hand: whatever is asked.
    fs::write(&path, format!("\n{ANSWER}\n{{\"error\":{{\"kind\":\"timeout\"}}}}\n")).unwrap();
    let replay = Replay::new(&path);
    assert!(ask_within(LONG, &replay, &other).is_ok());
    assert_eq!(kind(&ask(&replay)), ModelErrorKind::Timeout);
}

#[test]
fn a_recording_that_is_none_is_told_with_its_line() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("exchange.jsonl");
    let missing = ask(&Replay::new(&path)).unwrap_err();
    assert_eq!((missing.kind, missing.retryable), (ModelErrorKind::Provider, false));
    for text in ["{}", "no", "{\"reply\":{}}", "\u{0}", "{\"error\":{\"kind\":\"odd\"}}"] {
        fs::write(&path, format!("{ANSWER}\n{text}\n")).unwrap();
        let error = ask(&Replay::new(&path)).unwrap_err();
        assert!(error.message.contains("exchange.jsonl:2"), "{error:?}");
    }
}

#[test]
fn an_answer_that_cannot_be_recorded_is_still_an_answer() {
    let lines = Lines::default();
    let recorder = Recorder::new(Arc::new(shell(&format!("echo '{ANSWER}'"))), "/nowhere/at-all");
    assert!(recorder.complete(&request(), &Attempt::new(LONG, &|| false, &lines)).is_ok());
    assert!(lines.all().starts_with("warn: the model's answer was not recorded"), "{}", lines.all());
}

#[test]
fn roles_fall_back_to_the_writer() {
    let roles = Roles { writer: Some(Arc::new(shell("exit 1"))), ..Roles::default() };
    for purpose in [WRITER, ORGANISER, OBSERVER] {
        assert!(roles.provider(purpose).is_ok());
    }
    for purpose in [EMBED, "editor", ""] {
        let error = roles.provider(purpose).err().unwrap();
        assert_eq!((error.kind, error.retryable), (ModelErrorKind::Unconfigured, false), "{purpose}");
    }
    assert!(Roles::default().provider(WRITER).is_err() && NoModels.provider(WRITER).is_err());
}

#[test]
fn settings_count_with_the_next_call() {
    let settings = Arc::new(Mutex::new(Ok(RolesSettings::default())));
    let live = Live::new({
        let settings = Arc::clone(&settings);
        move || settings.lock().unwrap().clone()
    });
    assert_eq!(live.provider(WRITER).err().unwrap().kind, ModelErrorKind::Unconfigured);
    let command = |word: &str| RoleSettings {
        provider: Some(Kind::Command),
        command: Some(vec!["/bin/echo".to_owned(), word.to_owned()]),
        model: Some(word.to_owned()),
        ..RoleSettings::default()
    };
    let observer = RoleSettings { effort: Some("low".to_owned()), ..RoleSettings::default() };
    *settings.lock().unwrap() =
        Ok(RolesSettings { writer: Some(command("a")), observer: Some(observer), ..RolesSettings::default() });
    let model = |purpose| live.provider(purpose).unwrap().describe().model;
    assert_eq!((model(WRITER).as_deref(), model(OBSERVER).as_deref()), (Some("a"), Some("a")));
    let first = live.provider(WRITER).unwrap();
    assert!(Arc::ptr_eq(&first, &live.provider(WRITER).unwrap()), "the same as long as it is set so");
    settings.lock().unwrap().as_mut().unwrap().writer = Some(command("b"));
    assert_eq!(model(WRITER).as_deref(), Some("b"));
    *settings.lock().unwrap() = Err("a fault in line 3".to_owned());
    assert_eq!(live.provider(WRITER).err().unwrap().message, "a fault in line 3");
    let none = RoleSettings { provider: Some(Kind::None), ..RoleSettings::default() };
    *settings.lock().unwrap() =
        Ok(RolesSettings { writer: Some(command("a")), organiser: Some(none), ..RolesSettings::default() });
    assert_eq!(live.provider(ORGANISER).err().unwrap().kind, ModelErrorKind::Unconfigured, "none is none");
}

#[test]
fn requests_that_nobody_can_answer_are_not_asked() {
    let roles = Roles { writer: Some(Arc::new(shell("exit 1"))), ..Roles::default() };
    let outcome = |change: &dyn Fn(&mut Request)| {
        let mut request = request();
        change(&mut request);
        kind(&complete(&roles, &request, &Attempt::new(LONG, &|| false, &crate::observer::Silent)))
    };
    let invalid = ModelErrorKind::InvalidRequest;
    assert_eq!(outcome(&|_| ()), ModelErrorKind::Provider);
    assert_eq!(outcome(&|request| (request.tools.clear(), request.must_call = true).0), invalid);
    assert_eq!(outcome(&|request| request.max_output = 0), invalid);
    assert_eq!(outcome(&|request| request.messages.truncate(1)), invalid);
    assert_eq!(outcome(&|request| request.tools[0].schema = "{".to_owned()), invalid);
    assert_eq!(outcome(&|request| request.messages[1].parts = vec![Part::Opaque("{".to_owned())]), invalid);
    assert_eq!(outcome(&|request| request.purpose = "editor".to_owned()), ModelErrorKind::Unconfigured);
    let toolless = Command { tools: false, ..shell("exit 1") };
    let roles = Roles { writer: Some(Arc::new(toolless)), ..Roles::default() };
    let attempt = Attempt::new(LONG, &|| false, &crate::observer::Silent);
    assert_eq!(kind(&complete(&roles, &request(), &attempt)), ModelErrorKind::Unsupported);
}

#[test]
fn a_model_that_only_talks_is_handed_on() {
    let talk = r#"{"reply":{"parts":[{"text":"no"}],"stop":"done","model":"m"}}"#;
    for (answer, parts) in [(ANSWER, 2), (talk, 1)] {
        let roles = Roles { writer: Some(Arc::new(shell(&format!("echo '{answer}'")))), ..Roles::default() };
        let request = Request { must_call: true, ..request() };
        let attempt = Attempt::new(LONG, &|| false, &crate::observer::Silent);
        assert_eq!(complete(&roles, &request, &attempt).map(|reply| reply.parts.len()), Ok(parts));
    }
}

#[test]
fn keys_are_read_where_they_are_and_never_shown() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("key");
    let file = KeySource::File(path.clone());
    assert!(matches!(file.state(), KeyState::Missing(_)));
    fs::write(&path, "  sk-very-secret\n").unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    let lines = Lines::default();
    let secret = file.read(&lines).unwrap().unwrap();
    assert_eq!((secret.expose(), file.state()), ("sk-very-secret", KeyState::Present));
    assert_eq!(format!("{secret:?} {:?}", KeySource::Given(secret.clone())), "Secret Given(Secret)");
    assert_eq!(secret.scrub("it is sk-very-secret.".to_owned()), "it is [key].");
    assert_eq!(lines.all(), "");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
    file.read(&lines).unwrap();
    assert_eq!(file.state(), KeyState::Exposed);
    assert!(
        lines.all().starts_with("warn: others may read the key") && !lines.all().contains("very"),
        "{}",
        lines.all()
    );
    for bad in ["", " \n", "two words", "k\u{e9}y", "a\nb", &"x".repeat(20_000)] {
        fs::write(&path, bad).unwrap();
        let error = file.read(&lines).unwrap_err();
        assert_eq!((error.kind, error.retryable), (ModelErrorKind::Authentication, false), "{bad:?}");
    }
    assert!(KeySource::File(directory.path().to_owned()).read(&lines).is_err());
    let unset = KeySource::Environment("RECOLLEX_NO_SUCH_VARIABLE".to_owned());
    let error = unset.read(&lines).unwrap_err();
    assert!(error.kind == ModelErrorKind::Authentication && error.message.contains("RECOLLEX_NO_SUCH_VARIABLE"));
    let set = KeySource::Environment("CARGO_MANIFEST_DIR".to_owned());
    assert_eq!(set.read(&lines).unwrap().unwrap().expose(), env!("CARGO_MANIFEST_DIR"));
    assert_eq!(KeySource::Nowhere.read(&lines).unwrap(), None);
}

#[test]
fn messages_are_one_line_of_bounded_length() {
    let error = ModelError::new(ModelErrorKind::Provider, format!("a\nb\u{1b}{}", "\u{e9}".repeat(5000)));
    assert!(error.message.starts_with("a b ") && error.message.chars().count() <= MESSAGE_CHARS);
    let error = error.after(Some(LONG));
    assert_eq!(error.retry_after, Some(LONG));
    assert_eq!(error.lasting().retry_after, None);
}
