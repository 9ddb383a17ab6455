//! Looking after a workspace, as a script does it: what `doctor` finds on this machine, `backup`,
//! `restore` and `undo`.
//!
//! Each test has a home of its own; compiled components are shared between them.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;
use tempfile::TempDir;

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
        assert_eq!(self.code, code, "stdout {}, stderr {}", self.stdout, self.stderr);
        self
    }

    #[track_caller]
    fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {} {}", self.stdout, self.stderr))
    }

    /// Codes of the findings, with their paths.
    fn findings(&self) -> Vec<(String, String)> {
        let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let document = self.json();
        document["findings"].as_array().unwrap().iter().map(|f| (word(&f["code"]), word(&f["path"]))).collect()
    }

    #[track_caller]
    fn finds(&self, code: &str, path: &str) {
        let found = self.findings();
        assert!(found.contains(&(code.to_owned(), path.to_owned())), "no {code} at {path}: {found:?}");
    }

    #[track_caller]
    fn does_not_find(&self, code: &str) {
        let found = self.findings();
        assert!(found.iter().all(|(found, _)| found != code), "{found:?}");
    }
}

fn turn(id: &str, text: &str) -> String {
    serde_json::json!({"id": id, "role": "user", "text": text}).to_string()
}

impl Home {
    fn empty() -> Self {
        Self { directory: TempDir::new().unwrap() }
    }

    /// A workspace with one conversation.
    fn new() -> Self {
        let home = Self::empty();
        home.run(&["init"]).expect(0);
        home.archive("t", "m1", "Four of the nine keel bolts are wasted.");
        home
    }

    fn path(&self, rest: &str) -> PathBuf {
        self.directory.path().join(rest)
    }

    fn memory(&self, rest: &str) -> PathBuf {
        self.path("memory").join(rest)
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_recollex"));
        command.args(words).env_clear().env("HOME", self.directory.path()).env("PATH", "/usr/bin:/bin");
        command.env("XDG_CACHE_HOME", Path::new(env!("CARGO_TARGET_TMPDIR")).join("cli-cache"));
        command.env("RECOLLEX_WORKSPACE", self.path("memory")).current_dir(self.directory.path());
        command
    }

    fn run(&self, words: &[&str]) -> Ended {
        end(self.command(words), "")
    }

    fn archive(&self, thread: &str, id: &str, text: &str) {
        let words = ["archive", "--provider", "p", "--thread", thread];
        end(self.command(&words), &turn(id, text)).expect(0);
    }

    fn doctor(&self) -> Ended {
        self.run(&["doctor", "--json"])
    }

    /// Each regular file of the tree, without what belongs to programs.
    fn tree(&self) -> BTreeMap<String, Vec<u8>> {
        tree(&self.path("memory"))
    }
}

fn tree(root: &Path) -> BTreeMap<String, Vec<u8>> {
    let (mut found, mut open) = (BTreeMap::new(), vec![root.to_owned()]);
    while let Some(directory) = open.pop() {
        let Ok(entries) = fs::read_dir(&directory) else { continue };
        for entry in entries {
            let path = entry.unwrap().path();
            let name = path.strip_prefix(root).unwrap().to_str().unwrap().to_owned();
            if name.starts_with(".scriptorium") {
                continue;
            }
            if path.is_dir() {
                open.push(path);
            } else if let Ok(data) = fs::read(&path) {
                found.insert(name, data);
            }
        }
    }
    found
}

fn end(mut command: Command, stdin: &str) -> Ended {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    // A program that does not read its input closes it: that is no fault of the test.
    let _ = child.stdin.take().unwrap().write_all(stdin.as_bytes());
    let output = child.wait_with_output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let stderr = text(&output.stderr);
    assert!(!stderr.contains("panicked"), "{stderr}");
    Ended { code: output.status.code().unwrap_or(-1), stdout: text(&output.stdout), stderr }
}

fn mode(path: &Path) -> u32 {
    path.symlink_metadata().unwrap().permissions().mode() & 0o7777
}

#[test]
fn a_sound_workspace_has_no_findings() {
    let home = Home::new();
    let ended = home.doctor().expect(0);
    assert_eq!(ended.findings(), []);
    let machine = &ended.json()["machine"];
    assert_eq!(machine["journal"], "settled");
    assert_eq!(machine["runtime"], ".scriptorium");
    assert_eq!(machine["history"], "off");
    assert_eq!(machine["lock"]["held"], false);
    assert_eq!(machine["workspace_from"], "environment");
    assert!(home.run(&["doctor"]).expect(0).stdout.contains("clean"));

    // A conversation of several chunks, of which the cache keeps what it can.
    let text = "Four of the nine keel bolts are wasted. ".repeat(800);
    for number in 0..6 {
        home.archive("long", &format!("m{number}"), &text);
    }
    let records = fs::read_dir(home.memory(".scriptorium-recollex/records")).unwrap();
    let is_sums = |path: PathBuf| path.extension().is_some_and(|end| end == "chunks") && mode(&path) == 0o600;
    assert!(records.into_iter().any(|entry| is_sums(entry.unwrap().path())));
    assert_eq!(home.doctor().expect(0).findings(), []);

    fs::create_dir(home.memory(".git")).unwrap();
    assert_eq!(home.doctor().expect(0).json()["machine"]["history"], "git");
}

#[test]
fn how_models_are_set_is_shown_and_their_keys_are_not() {
    let home = Home::new();
    home.run(&["init"]).expect(0);
    let key = home.directory.path().join("key");
    fs::write(&key, "sk-never-to-be-seen\n").unwrap();
    fs::set_permissions(&key, fs::Permissions::from_mode(0o600)).unwrap();
    let config = home.directory.path().join("models.toml");
    let writer = "[models.writer]\nprovider = 'openai'\nmodel = 'small'\nkey_file = 'key'\n";
    let organiser = "[models.organiser]\nprovider = 'anthropic'\nmodel = 'large'\nkey_env = 'RECOLLEX_NO_SUCH_KEY'\n";
    fs::write(&config, format!("{writer}{organiser}")).unwrap();
    let config = config.to_str().unwrap();
    for mode in [0o600, 0o644] {
        fs::set_permissions(&key, fs::Permissions::from_mode(mode)).unwrap();
        for (verb, at) in [("config", "/models"), ("doctor", "/machine/models")] {
            let shown = home.run(&[verb, "--config", config, "--json"]).expect(0);
            let models = shown.json().pointer(at).cloned().unwrap();
            let state = if mode == 0o600 { "present" } else { "exposed" };
            assert_eq!(models["writer"]["key"]["state"], state, "{models}");
            assert_eq!(models["observer"]["settings"]["model"], "small", "{models}");
            assert_eq!(models["organiser"]["key"]["state"], "missing", "{models}");
            assert_eq!(models["embedding"]["configured"], false, "{models}");
            assert!(!shown.stdout.contains("never-to-be-seen"));
            let shown = home.run(&[verb, "--config", config, "-vv"]).expect(0);
            assert!(shown.stdout.contains("openai small") && shown.stdout.contains("RECOLLEX_NO_SUCH_KEY is not set"));
            assert!(!shown.stdout.contains("never-to-be-seen") && !shown.stderr.contains("never-to-be-seen"));
        }
    }
    let shown = home.run(&["config", "--config", config, "--role", "writer.provider=none", "--json"]).expect(0);
    assert_eq!(shown.json()["models"]["observer"]["configured"], false);
    home.run(&["config", "--role", "writer.speed=1"]).expect(2);
}

#[test]
fn without_a_workspace_or_the_right_to_it_doctor_makes_nothing() {
    let home = Home::empty();
    home.run(&["doctor", "--fix"]).expect(1);
    assert!(!home.path("memory").exists());
    let home = Home::new();
    home.run(&["doctor", "--tier", "paired"]).expect(6);
    home.run(&["doctor", "--backend", "none"]).expect(5);
    home.run(&["doctor", "--dry-run"]).expect(2);
}

#[test]
fn permissions_are_narrowed_and_links_left_alone() {
    let home = Home::new();
    let archive = home.memory("sources/p/_v2/t.md");
    let outside = home.path("outside");
    fs::write(&outside, "x").unwrap();
    symlink(&outside, home.memory("link")).unwrap();
    for (path, wide) in [(&archive, 0o644), (&home.memory("sources"), 0o755), (&outside, 0o644)] {
        fs::set_permissions(path, fs::Permissions::from_mode(wide)).unwrap();
    }
    let found = home.doctor().expect(1);
    found.finds("wide-mode", "sources/p/_v2/t.md");
    found.finds("wide-mode", "sources");

    let dry = home.run(&["doctor", "--fix", "--dry-run"]).expect(1);
    assert!(dry.stdout.contains("would fix: sources: wide-mode: mode 0700 instead of 0755"), "{}", dry.stdout);
    assert_eq!(mode(&archive), 0o644);

    let fixed = home.run(&["doctor", "--fix", "--json"]).expect(1);
    fixed.does_not_find("wide-mode");
    fixed.finds("symlink-ignored", "link");
    assert_eq!(fixed.json()["fixed"].as_array().unwrap().len(), 2);
    assert_eq!((mode(&archive), mode(&home.memory("sources")), mode(&outside)), (0o600, 0o700, 0o644));
    assert!(home.run(&["doctor", "--fix", "--json"]).json()["fixed"].as_array().unwrap().is_empty());
}

#[test]
fn permissions_that_the_owner_lacks_are_told() {
    let home = Home::new();
    let (sources, id) = (home.memory("sources"), home.memory(".scriptorium/workspace-id"));
    fs::set_permissions(&sources, fs::Permissions::from_mode(0o500)).unwrap();
    fs::set_permissions(&id, fs::Permissions::from_mode(0o000)).unwrap();
    let found = home.doctor().expect(1);
    found.finds("tight-mode", "sources");
    found.finds("tight-mode", ".scriptorium/workspace-id");
    fs::set_permissions(&sources, fs::Permissions::from_mode(0o700)).unwrap();
    fs::set_permissions(&id, fs::Permissions::from_mode(0o600)).unwrap();
    home.doctor().does_not_find("tight-mode");
}

#[test]
fn a_journal_that_is_no_file_is_named() {
    let home = Home::new();
    let journal = home.memory(".scriptorium/recollex/journal");
    let aside = home.path("aside");
    for is_directory in [true, false] {
        fs::remove_file(&journal).unwrap();
        if is_directory {
            fs::create_dir(&journal).unwrap()
        } else {
            symlink("/dev/null", &journal).unwrap()
        }
        for words in [&["search", "keel"][..], &["doctor", "--fix"], &["undo"]] {
            let ended = home.run(words);
            assert!(ended.code != 0 && ended.stderr.contains("recollex/journal"), "{words:?}: {}", ended.stderr);
            assert!(ended.stderr.contains("move it aside"), "{words:?}: {}", ended.stderr);
        }
        fs::rename(&journal, &aside).unwrap();
        home.archive("t", "m9", "The others are sound.");
        home.run(&["verify"]).expect(0);
        home.run(&["undo"]).expect(0);
        if is_directory { fs::remove_dir(&aside).unwrap() } else { fs::remove_file(&aside).unwrap() }
    }
}

#[test]
fn twins_are_found_by_verify_too() {
    let home = Home::new();
    for name in ["Boat.md", "boat.md"] {
        fs::write(home.memory(name), "x").unwrap();
        fs::set_permissions(home.memory(name), fs::Permissions::from_mode(0o600)).unwrap();
    }
    if tree(&home.path("memory")).len() < 3 {
        return; // This file system took them for one: there is nothing to find.
    }
    home.doctor().expect(1).finds("path-twins", "boat.md");
    home.run(&["verify", "--json"]).expect(1).finds("path-twins", "boat.md");
    home.run(&["verify", "--json", "sources"]).expect(0).does_not_find("path-twins");
    // Which of them is meant, a person must say.
    home.run(&["doctor", "--fix", "--json"]).expect(1).finds("path-twins", "boat.md");
}

#[test]
fn a_half_install_of_the_other_program_is_told() {
    let home = Home::new();
    fs::create_dir(home.memory(".scriptorium-block-backup")).unwrap();
    let before = home.tree();
    for ended in [home.run(&["verify", "--json"]), home.run(&["doctor", "--fix", "--json"])] {
        let ended = ended.expect(1);
        ended.finds("half-install", ".scriptorium-block-backup");
        let told = ended.findings().into_iter().filter(|(code, _)| code == "half-install").count();
        assert_eq!(told, 1, "{:?}", ended.findings());
    }
    let status = home.run(&["status", "--json"]).json();
    assert_eq!((&status["health"], &status["reasons"][0]["code"]), (&"degraded".into(), &"half-install".into()));
    assert!(home.memory(".scriptorium-block-backup").exists());
    assert_eq!(home.tree(), before);
}

#[test]
fn leftovers_and_damaged_caches_are_removed() {
    let home = Home::new();
    let own = home.memory(".scriptorium/recollex");
    let cache = home.memory(".scriptorium-recollex");
    fs::create_dir_all(cache.join("records")).unwrap();
    let (leftover, sound) = (
        [
            own.join("stage-9-0"),
            own.join("journal.new"),
            own.join("room"),
            cache.join(".tmp-1-1"),
            home.memory("sources/.recollex-stage-9-0"),
        ],
        cache.join("records/sound"),
    );
    for path in &leftover {
        fs::write(path, "x").unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(0o600)).unwrap();
    }
    fs::write(&sound, "RCLX").unwrap();
    fs::write(cache.join("records/foreign"), "{}").unwrap();
    // Not a whole number of hash values.
    fs::write(cache.join("records/torn.chunks"), "x").unwrap();
    for path in
        [&sound, &cache.join("records/foreign"), &cache.join("records/torn.chunks"), &cache.join("records"), &cache]
    {
        let mode = if path.is_dir() { 0o700 } else { 0o600 };
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }
    let found = home.doctor().expect(1);
    found.finds("leftover-file", ".scriptorium/recollex/stage-9-0");
    found.finds("leftover-file", ".scriptorium/recollex/journal.new");
    found.finds("leftover-file", ".scriptorium/recollex/room");
    found.finds("leftover-file", ".scriptorium-recollex/.tmp-1-1");
    found.finds("leftover-file", "sources/.recollex-stage-9-0");
    found.finds("damaged-cache", ".scriptorium-recollex/records/foreign");
    found.finds("damaged-cache", ".scriptorium-recollex/records/torn.chunks");

    assert_eq!(home.run(&["doctor", "--fix", "--json"]).expect(0).findings(), []);
    assert!(leftover.iter().all(|path| !path.exists()));
    assert!(sound.exists() && !cache.join("records/foreign").exists());
    assert!(home.run(&["doctor", "--fix", "--json"]).expect(0).json()["fixed"].as_array().unwrap().is_empty());
}

#[test]
fn what_is_in_the_locks_file_means_nothing() {
    let home = Home::new();
    let lock = home.memory(".scriptorium/write.lock");
    fs::write(&lock, "12345 garbage").unwrap();
    home.doctor().expect(0).finds("lock-content", ".scriptorium/write.lock");
    fs::remove_file(&lock).unwrap();
    fs::create_dir(&lock).unwrap();
    fs::set_permissions(&lock, fs::Permissions::from_mode(0o700)).unwrap();
    home.doctor().expect(1).finds("lock-unusable", ".scriptorium/write.lock");
}

#[test]
fn a_runtime_directory_that_is_a_link_is_an_error() {
    let home = Home::new();
    fs::rename(home.memory(".scriptorium"), home.path("elsewhere")).unwrap();
    symlink(home.path("elsewhere"), home.memory(".scriptorium")).unwrap();
    let ended = home.doctor();
    assert!(ended.code != 0, "{}", ended.stdout);
    ended.finds("runtime-unusable", ".scriptorium");
    assert!(home.run(&["doctor", "--fix"]).code != 0);
    assert!(home.path("elsewhere/workspace-id").exists());
}

#[test]
fn a_journal_of_a_newer_version_is_left_alone() {
    let home = Home::new();
    let journal = home.memory(".scriptorium/recollex/journal");
    let mut bytes = pending_journal(99, "[]");
    bytes[16] = 2;
    let sum = <sha2::Sha256 as sha2::Digest>::digest(&bytes[..72]);
    bytes[72..80].copy_from_slice(&sum[..8]);
    fs::write(&journal, &bytes).unwrap();
    let ended = home.doctor();
    assert!(ended.code != 0, "{}", ended.stdout);
    ended.finds("journal-newer", ".scriptorium/recollex/journal");
    home.run(&["doctor", "--fix"]);
    assert_eq!(fs::read(&journal).unwrap(), bytes);
}

#[test]
fn a_live_holder_is_named() {
    use recollex::lock::{FileLock, Lock as _};
    let home = Home::new();
    let guard = FileLock::new(&home.path("memory")).acquire(0, "a long import").unwrap();
    let ended = home.doctor().expect(0);
    ended.finds("lock-held", ".scriptorium/write.lock");
    let machine = &ended.json()["machine"]["lock"];
    assert_eq!((&machine["process"], &machine["purpose"]), (&std::process::id().into(), &"a long import".into()));
    drop(guard);
    home.doctor().expect(0).does_not_find("lock-held");
}

#[test]
fn a_damaged_journal_is_kept_aside_by_fix() {
    let home = Home::new();
    let journal = home.memory(".scriptorium/recollex/journal");
    fs::write(&journal, "not a journal").unwrap();
    for ended in [home.run(&["verify", "--json"]), home.doctor()] {
        ended.expect(1).finds("journal-damaged", ".scriptorium/recollex/journal");
    }
    let fixed = home.run(&["doctor", "--fix", "--json"]).expect(1);
    fixed.does_not_find("journal-damaged");
    // That it happened stays a finding until a person has looked.
    assert!(fixed.findings().iter().any(|(code, _)| code == "recovery-conflict"), "{:?}", fixed.findings());
    assert_eq!(fixed.json()["machine"]["kept"], 1);
    fs::remove_dir_all(home.memory(".scriptorium/recollex/kept")).unwrap();
    assert_eq!(home.doctor().expect(0).findings(), []);
    home.archive("t", "m2", "It goes on.");
}

/// A pending commit, as a writer leaves it that dies behind the commit point: header, sums and body as documented in
/// `store::journal`.
fn pending_journal(generation: u64, body: &str) -> Vec<u8> {
    use sha2::{Digest as _, Sha256};
    let mut bytes = b"recollex-journal".to_vec();
    bytes.extend_from_slice(&1_u32.to_le_bytes());
    bytes.extend_from_slice(&[0; 4]);
    bytes.extend_from_slice(&generation.to_le_bytes());
    bytes.extend_from_slice(&(body.len() as u64).to_le_bytes());
    bytes.extend_from_slice(&Sha256::digest(body));
    let sum = Sha256::digest(&bytes);
    bytes.extend_from_slice(&sum[..8]);
    bytes.extend_from_slice(body.as_bytes());
    bytes
}

#[test]
fn a_commit_whose_writer_died_is_completed_and_a_conflict_is_told() {
    let home = Home::new();
    let own = home.memory(".scriptorium/recollex");
    let generation = u64::from_le_bytes(fs::read(own.join("journal")).unwrap()[24..32].try_into().unwrap());
    let step = |path: &str, stage: &str| {
        format!(
            r#"{{"area":"tree","path":"{path}","step":{{"replace":{{"stage":"{stage}","size":4,"before":null}}}}}}"#
        )
    };
    let body = format!("[{},{}]", step("topics/ours.md", "stage-9-0"), step("topics/theirs.md", "stage-9-1"));
    for stage in ["stage-9-0", "stage-9-1"] {
        fs::write(own.join(stage), "ours").unwrap();
        fs::set_permissions(own.join(stage), fs::Permissions::from_mode(0o600)).unwrap();
    }
    fs::write(own.join("journal"), pending_journal(generation + 1, &body)).unwrap();
    fs::write(home.memory("topics/theirs.md"), "theirs").unwrap();
    fs::set_permissions(home.memory("topics/theirs.md"), fs::Permissions::from_mode(0o600)).unwrap();

    home.run(&["verify", "--json"]).expect(1).finds("journal-pending", ".scriptorium/recollex/journal");
    let dry = home.run(&["doctor", "--fix", "--dry-run", "--json"]).expect(1);
    dry.finds("journal-pending", ".scriptorium/recollex/journal");
    assert!(!home.memory("topics/ours.md").exists());

    let fixed = home.run(&["doctor", "--fix", "--json"]).expect(1);
    fixed.does_not_find("journal-pending");
    fixed.finds("recovery-conflict", "topics/theirs.md");
    let message = fixed.json()["findings"][0]["message"].as_str().unwrap().to_owned();
    assert!(message.contains(".scriptorium/recollex/kept/"), "{message}");
    assert_eq!(fs::read_to_string(home.memory("topics/ours.md")).unwrap(), "ours");
    assert_eq!(fs::read_to_string(home.memory("topics/theirs.md")).unwrap(), "theirs");
    home.run(&["verify", "--json"]).expect(1).finds("recovery-conflict", "topics/theirs.md");
}

#[test]
fn a_backup_comes_back_elsewhere() {
    let home = Home::new();
    fs::create_dir(home.path("backups")).unwrap();
    let made = home.run(&["backup", "backups", "--json"]).expect(0).json();
    let file = made["path"].as_str().unwrap().to_owned();
    let name = Path::new(&file).file_name().unwrap().to_str().unwrap();
    assert!(name.starts_with("recollex-") && name.ends_with("Z.tar"), "{name}");
    assert_eq!(mode(Path::new(&file)), 0o600);

    let copy = home.path("copy");
    let words = ["restore", &file, "--workspace", copy.to_str().unwrap(), "--json"];
    let dry = home.run(&[&words[..], &["--dry-run"]].concat()).expect(0).json();
    assert_eq!((&dry["restored"], dry["added"].as_u64()), (&Value::Bool(false), made["files"].as_u64()));
    assert!(!copy.exists());
    assert_eq!(home.run(&words).expect(0).json()["safety_backup"], Value::Null);
    assert_eq!(tree(&copy), home.tree());
    home.run(&["doctor", "--workspace", copy.to_str().unwrap()]).expect(0);
    let id = |root: &Path| fs::read_to_string(root.join(".scriptorium/workspace-id")).unwrap();
    assert_eq!(id(&copy), id(&home.path("memory")));
}

#[test]
fn a_backup_that_is_verified_is_told_from_an_archive() {
    let home = Home::new();
    home.run(&["backup", "b.tar"]).expect(0);
    let ended = home.run(&["verify", "b.tar", "--json"]).expect(2);
    assert_eq!(ended.json()["error"]["reason"], "backup");
    assert!(ended.stderr.contains("recollex restore"), "{}", ended.stderr);
}

#[test]
fn a_backup_replaces_no_file_and_lies_in_no_workspace() {
    let home = Home::new();
    fs::write(home.path("b.tar"), "precious").unwrap();
    home.run(&["backup", "b.tar"]).expect(2);
    assert_eq!(fs::read_to_string(home.path("b.tar")).unwrap(), "precious");
    home.run(&["backup", "b.tar", "--force"]).expect(0);
    for inside in [home.memory(""), home.memory("topics/b.tar"), home.memory("../memory/b.tar")] {
        let ended = home.run(&["backup", inside.to_str().unwrap(), "--json"]).expect(2);
        assert_eq!(ended.json()["error"]["reason"], "inside-workspace");
    }
    symlink(home.memory(""), home.path("way")).unwrap();
    home.run(&["backup", "way/b.tar"]).expect(2);
    home.run(&["backup", "nowhere/b.tar"]).expect(2);
    home.run(&["backup", "c.tar", "--tier", "paired"]).expect(6);
    home.run(&["backup", "c.tar", "--backend", "none"]).expect(5);
    home.run(&["backup", "c.tar", "--workspace", "nothing"]).expect(1);
    assert!(!home.path("nothing").exists() && !home.path("c.tar").exists());
}

#[test]
fn a_restore_over_something_is_asked_for_twice_and_keeps_it() {
    let home = Home::new();
    home.run(&["backup", "b.tar"]).expect(0);
    let then = home.tree();
    home.archive("t", "m2", "Later.");
    home.archive("u", "m1", "Another one.");
    let now = home.tree();
    let reason = |ended: &Ended| ended.json()["error"]["reason"].clone();
    assert_eq!(reason(&home.run(&["restore", "b.tar", "--json"]).expect(6)), "not-empty");
    assert_eq!(reason(&home.run(&["restore", "b.tar", "--replace", "--json"]).expect(2)), "unconfirmed");
    home.run(&["restore", "b.tar", "--replace", "--dry-run"]).expect(0);
    assert_eq!(home.tree(), now);

    let done = home.run(&["restore", "b.tar", "--replace", "--yes", "--json"]).expect(0).json();
    assert_eq!((done["replaced"].as_u64(), done["deleted"].as_u64()), (Some(1), Some(1)));
    assert_eq!(home.tree(), then);
    home.run(&["doctor"]).expect(0);
    // And back again, by the backup that was made of it.
    let safety = done["safety_backup"].as_str().unwrap();
    assert_eq!(Path::new(safety).parent(), Some(home.directory.path()));
    fs::create_dir(home.path("kept")).unwrap();
    let words = ["restore", safety, "--replace", "--yes", "--safety", "kept"];
    home.run(&words).expect(0);
    assert_eq!(home.tree(), now);
    // Nothing to do, and nothing done: no further backup either.
    home.run(&words).expect(0);
    assert_eq!(fs::read_dir(home.path("kept")).unwrap().count(), 1);
}

#[test]
fn a_damaged_backup_changes_nothing() {
    let home = Home::new();
    home.run(&["backup", "b.tar"]).expect(0);
    let bytes = fs::read(home.path("b.tar")).unwrap();
    home.archive("t", "m2", "Later.");
    let before = home.tree();
    let text = bytes.windows(4).rposition(|window| window == b"keel").unwrap();
    let mut altered = bytes.clone();
    altered[text] = b'K';
    for (name, bytes) in [("cut.tar", &bytes[..bytes.len() / 2]), ("altered.tar", &altered), ("empty.tar", b"")] {
        fs::write(home.path(name), bytes).unwrap();
        let ended = home.run(&["restore", name, "--replace", "--yes", "--json"]).expect(2);
        assert_eq!(ended.json()["error"]["code"], "BACKUP_UNREADABLE");
        home.run(&["restore", name, "--workspace", "new"]).expect(2);
    }
    home.run(&["restore", "missing.tar", "--replace", "--yes"]).expect(2);
    assert_eq!(home.tree(), before);
    assert!(!home.path("new").exists());
}

#[test]
fn a_backup_among_writers_is_one_state() {
    use recollex::lock::{FileLock, Lock as _};
    use recollex::store::{About, Area, Change, Directory, Edit, Expect, Store as _};
    let home = Home::new();
    let root = home.path("memory");
    // Each commit writes its number to two files, so that a copy with two numbers is no state.
    let writers: Vec<_> = (0..2)
        .map(|writer| {
            let root = root.clone();
            std::thread::spawn(move || {
                let (store, lock) = (Directory::new(&root), FileLock::new(&root));
                for number in 0..60 {
                    let guard = lock.acquire(60_000, "test").unwrap();
                    let put = |name: &str| Change {
                        area: Area::Tree,
                        path: format!("topics/{name}.md"),
                        expect: Expect::Any,
                        edit: Edit::Put(format!("{writer} {number}")),
                    };
                    let base = store.generation().unwrap();
                    store.commit(&*guard, base, &[put("one"), put("two")], &About::default()).unwrap();
                    drop(guard);
                    std::thread::sleep(std::time::Duration::from_millis(3));
                }
            })
        })
        .collect();
    let mut seen = std::collections::BTreeSet::new();
    for number in 0..8 {
        let (file, copy) = (format!("{number}.tar"), format!("copy-{number}"));
        home.run(&["backup", &file]).expect(0);
        home.run(&["restore", &file, "--workspace", &copy]).expect(0);
        let text = |name: &str| fs::read_to_string(home.path(&format!("{copy}/topics/{name}.md"))).ok();
        assert_eq!(text("one"), text("two"));
        seen.insert(text("one"));
    }
    writers.into_iter().for_each(|writer| writer.join().unwrap());
    assert!(seen.len() > 1, "no writer was at work: {seen:?}");
}

#[test]
fn a_restore_that_is_killed_leaves_the_old_state_or_the_new_one() {
    let home = Home::new();
    for number in 0..40 {
        fs::write(home.memory(&format!("topics/{number}.md")), "then").unwrap();
    }
    home.run(&["backup", "then.tar"]).expect(0);
    let then = home.tree();
    for number in 0..40 {
        fs::write(home.memory(&format!("topics/{number}.md")), "now, and longer").unwrap();
    }
    home.run(&["backup", "now.tar"]).expect(0);
    let now = home.tree();
    fs::create_dir(home.path("kept")).unwrap();
    let (mut killed, mut changed) = (0, 0);
    for round in 0..24 {
        let file = if home.tree() == now { "then.tar" } else { "now.tar" };
        let before = home.tree();
        let words = ["restore", file, "--replace", "--yes", "--safety", "kept"];
        let mut child = home.command(&words).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        std::thread::sleep(std::time::Duration::from_millis(4 * round));
        let _ = child.kill();
        killed += u32::from(!child.wait().unwrap().success());
        // What the dead one left is completed under the lock, as any writer does first.
        home.run(&["doctor", "--fix", "--json"]);
        let after = home.tree();
        assert!(after == then || after == now, "round {round}");
        changed += u32::from(after != before);
        fs::remove_dir_all(home.path("kept")).unwrap();
        fs::create_dir(home.path("kept")).unwrap();
    }
    assert!(killed > 0, "none was killed in time");
    assert!(changed < 24 || killed < 24);
}

#[test]
fn the_last_commits_are_taken_back_and_brought_back() {
    let home = Home::empty();
    home.run(&["undo"]).expect(1);
    assert!(!home.path("memory").exists());
    home.run(&["init"]).expect(0);
    let mut states = vec![home.tree()];
    for (thread, id) in [("t", "m1"), ("t", "m2"), ("u", "m1")] {
        home.archive(thread, id, "Four of the nine keel bolts are wasted.");
        states.push(home.tree());
    }
    let listed = home.run(&["undo", "--list", "--json"]).expect(0).json();
    let changes = listed["commits"][1]["changes"].as_array().unwrap();
    assert_eq!((&changes[0]["path"], &changes[0]["what"]), (&"sources/p/_v2/t.md".into(), &"appended".into()));
    let said = |at: usize| (&listed["commits"][at]["verb"], listed["commits"][at]["note"].as_str().unwrap());
    assert_eq!((said(1), said(3).0), ((&"archive".into(), "into 1 conversation"), &"init".into()));
    let time = listed["commits"][1]["time"].as_str().unwrap();
    assert!(time.len() == 20 && time.ends_with('Z') && time.as_bytes()[10] == b'T', "{time}");
    let lines = home.run(&["undo", "--list"]).expect(0).stdout;
    let line = lines.lines().find(|line| line.starts_with("commit 3")).unwrap();
    assert_eq!(line, format!("commit 3  {time}  archive: into 1 conversation"));
    let dry = home.run(&["undo", "--dry-run", "2", "--json"]).expect(0).json();
    assert_eq!((&dry["undone"], dry["commits"].as_array().unwrap().len()), (&Value::Bool(false), 2));
    assert_eq!(home.tree(), states[3]);

    let done = home.run(&["undo", "2", "--json"]).expect(0).json();
    assert_eq!(done["commits"].as_array().unwrap().len(), 2);
    assert_eq!(home.tree(), states[1]);
    home.run(&["verify"]).expect(0);
    home.run(&["get", "p/t/m2"]).expect(1);
    home.run(&["undo", "--redo"]).expect(0);
    assert_eq!(home.tree(), states[2]);
    home.run(&["get", "p/t/m2"]).expect(0);
    home.run(&["doctor"]).expect(0);

    // What was taken back can be archived again, and goes on from there.
    home.run(&["undo"]).expect(0);
    home.archive("t", "m2", "Another text, because the first one is gone.");
    home.run(&["verify"]).expect(0);
    home.run(&["undo", "--redo"]).expect(1);
}

#[test]
fn undo_never_costs_newer_work() {
    let home = Home::new();
    home.archive("t", "m2", "Later.");
    let archive = home.memory("sources/p/_v2/t.md");
    let mut text = fs::read(&archive).unwrap();
    text.extend_from_slice(b"by another program\n");
    fs::write(&archive, &text).unwrap();
    home.run(&["undo", "--dry-run"]).expect(3);
    let ended = home.run(&["undo", "--json"]).expect(3);
    assert_eq!(ended.json()["error"]["path"], "sources/p/_v2/t.md");
    assert_eq!(ended.json()["error"]["reason"], "newer-work");
    assert_eq!(fs::read(&archive).unwrap(), text);
    home.run(&["undo", "--tier", "paired"]).expect(6);
    home.run(&["undo", "--backend", "none"]).expect(5);
    home.run(&["undo", "0"]).expect(2);
}

#[test]
fn undo_stops_where_it_must() {
    let home = Home::new();
    home.archive("u", "m1", "One.");
    home.archive("v", "m1", "Two.");
    fs::write(home.memory("sources/p/_v2/u.md"), "rewritten").unwrap();
    let ended = home.run(&["undo", "2", "--json"]).expect(3);
    assert_eq!(ended.json()["commits"].as_array().unwrap().len(), 1);
    assert!(!home.memory("sources/p/_v2/v.md").exists());
    assert_eq!(fs::read_to_string(home.memory("sources/p/_v2/u.md")).unwrap(), "rewritten");
}

#[test]
fn undo_says_that_something_was_erased_for_good() {
    use recollex::lock::{FileLock, Lock as _};
    use recollex::store::{About, Area, Change, Directory, Edit, Expect, Store as _, UndoLimits};
    let home = Home::new();
    home.archive("u", "m1", "One.");
    let store = Directory::new(&home.path("memory")).with_undo(UndoLimits::default());
    let guard = FileLock::new(&home.path("memory")).acquire(1_000, "test").unwrap();
    let path = "sources/p/_v2/u.md".to_owned();
    let changes = [Change { area: Area::Tree, path, expect: Expect::Any, edit: Edit::Delete }];
    let about = About::new("redact", "one record").erasing();
    store.commit(&*guard, store.generation().unwrap(), &changes, &about).unwrap();
    drop(guard);

    let listed = home.run(&["undo", "--list", "--json"]).expect(1).json();
    assert_eq!((&listed["commits"], &listed["redo"]), (&Value::Array(Vec::new()), &Value::Null));
    assert_eq!((&listed["erased"]["verb"], &listed["erased"]["generation"]), (&"redact".into(), &4.into()));
    let ended = home.run(&["undo", "--json"]).expect(6).json();
    assert_eq!(ended["error"]["reason"], "erased");
    home.archive("v", "m1", "Two.");
    let ended = home.run(&["undo", "5"]).expect(6);
    assert!(ended.stdout.contains("took back commit 5") && ended.stderr.contains("only 1 of 5"), "{}", ended.stderr);
    assert!(ended.stderr.contains("erased something for good"), "{}", ended.stderr);
    let list = home.run(&["undo", "--list"]).expect(1);
    assert!(list.stderr.contains("erased something for good"), "{}", list.stderr);
}

/// Each verb that takes the lock by itself waits as long as who calls it may.
#[test]
fn who_calls_decides_how_long_the_lock_is_waited_for() {
    use recollex::lock::{FileLock, Lock as _};
    use std::time::{Duration, Instant};
    let home = Home::new();
    fs::create_dir(home.memory("wiki")).unwrap();
    fs::write(home.memory(".scriptorium/recollex/stage-1-0"), "left").unwrap();
    let backup = home.path("b.tar");
    home.run(&["backup", backup.to_str().unwrap()]).expect(0);
    home.archive("u", "m1", "One.");
    let guard = FileLock::new(&home.path("memory")).acquire(1_000, "a long import").unwrap();
    let backup = backup.to_str().unwrap();
    for words in [
        &["backup", "elsewhere.tar"][..],
        &["restore", backup, "--replace", "--yes"],
        &["undo"],
        &["doctor", "--fix"],
        &["init"],
    ] {
        for (set, least) in [("caller=background", 1_000), ("lock.wait-ms=50", 50)] {
            let since = Instant::now();
            let ended = home.run(&[words, &["--set", set]].concat()).expect(4);
            let took = since.elapsed();
            assert!(took >= Duration::from_millis(least), "{words:?} {set}: {took:?}");
            assert!(took < Duration::from_millis(least + 5_000), "{words:?} {set}: {took:?}");
            assert!(ended.stderr.contains(&std::process::id().to_string()), "{}", ended.stderr);
        }
        let refused = home.run(&[words, &["--set", "caller=me"]].concat()).expect(2);
        assert!(refused.stderr.contains("caller"), "{}", refused.stderr);
    }
    drop(guard);
    home.run(&["undo", "--set", "caller=background"]).expect(0);
}

#[test]
fn what_older_programs_left_is_moved_aside_with_or_without_files() {
    let home = Home::new();
    for directory in ["journal", "wiki/a", ".state"] {
        fs::create_dir_all(home.memory(directory)).unwrap();
    }
    fs::write(home.memory("wiki/a/page.md"), "kept").unwrap();
    fs::write(home.memory("index.sqlite"), "SQLite").unwrap();
    let moved = home.run(&["init", "--json"]).expect(0).json();
    let names: Vec<&str> = moved["moved"]
        .as_array()
        .unwrap()
        .iter()
        .map(|m| m["from"].as_str().unwrap().rsplit('/').next().unwrap())
        .collect();
    assert_eq!(names.len(), 4, "{names:?}");
    for name in ["journal", "wiki", ".state", "index.sqlite"] {
        assert!(names.contains(&name) && !home.memory(name).exists(), "{name}");
        assert!(home.path("memory-superseded").join(name).exists(), "{name}");
    }
    assert_eq!(fs::read_to_string(home.path("memory-superseded/wiki/a/page.md")).unwrap(), "kept");
    // What is there already is not written over, and stays.
    fs::create_dir(home.memory("journal")).unwrap();
    let again = home.run(&["init", "--json"]).expect(0).json();
    assert_eq!(again["kept"].as_array().unwrap().len(), 1);
    assert!(home.memory("journal").exists());
}
