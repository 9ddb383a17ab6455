//! A home of its own for the command `recollex`, and what a run of it came to.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use serde_json::{Value, json};

use crate::support::{cache, recollex, snapshot};

/// A home of its own with a workspace in it.
pub struct Home {
    directory: tempfile::TempDir,
}

/// What a run came to.
pub struct Ran {
    /// Of exit.
    pub code: i32,
    /// The result.
    pub stdout: String,
    /// Everything else.
    pub stderr: String,
}

impl Ran {
    pub fn of(output: &Output) -> Self {
        Self {
            code: output.status.code().unwrap_or_else(|| panic!("killed: {output:?}")),
            stdout: String::from_utf8(output.stdout.clone()).expect("stdout is text"),
            stderr: String::from_utf8(output.stderr.clone()).expect("stderr is text"),
        }
    }

    #[track_caller]
    pub fn exits(self, code: i32) -> Self {
        assert_eq!(self.code, code, "stdout: {}\nstderr: {}", self.stdout, self.stderr);
        assert!(!self.stderr.contains("panicked"), "{}", self.stderr);
        self
    }

    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error} in {}", self.stdout))
    }

    /// The error document on stdout of a run with `--json`, which has this code of exit.
    #[track_caller]
    pub fn refuses(self, code: i32) -> Value {
        let ran = self.exits(code);
        let document = ran.json();
        assert_eq!(document["ok"], json!(false), "{document}");
        let error = &document["error"];
        for key in ["code", "reason", "message"] {
            assert!(error.get(key).is_some(), "no {key} in {document}");
        }
        assert!(error.get("path").is_some() && error.get("line").is_some(), "no path or line in {document}");
        assert!(!ran.stderr.is_empty(), "nothing said on stderr for {document}");
        document
    }
}

impl Home {
    /// Without a workspace in it yet.
    pub fn new() -> Self {
        Self { directory: tempfile::tempdir().unwrap() }
    }

    pub fn with_workspace() -> Self {
        let home = Self::new();
        home.run(&["init"]).exits(0);
        home
    }

    /// With the sample conversation.
    pub fn with_conversation() -> Self {
        let home = Self::with_workspace();
        let file = recollex_tests::built::repository().join("examples/data/conversation.jsonl");
        home.run(&["archive", "--chunk", file.to_str().unwrap()]).exits(0);
        home
    }

    pub fn path(&self) -> &Path {
        self.directory.path()
    }

    pub fn workspace(&self) -> PathBuf {
        self.path().join("memory")
    }

    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(recollex());
        for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("RECOLLEX_")) {
            command.env_remove(name);
        }
        command
            .env("HOME", self.path())
            .env("XDG_CONFIG_HOME", self.path().join("config"))
            .env("XDG_DATA_HOME", self.path().join("data"))
            .env("XDG_STATE_HOME", self.path().join("state"))
            .env("XDG_CACHE_HOME", cache())
            .env("RECOLLEX_WORKSPACE", self.workspace())
            .args(arguments)
            .stdin(Stdio::null())
            .current_dir(self.path());
        command
    }

    pub fn run(&self, arguments: &[&str]) -> Ran {
        Ran::of(&self.command(arguments).output().unwrap())
    }

    /// With bytes on stdin. Writing them is not waited for: who refuses early may stop reading.
    pub fn feed(&self, arguments: &[&str], input: &[u8]) -> Ran {
        let mut child = self
            .command(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdin = child.stdin.take().unwrap();
        let output = std::thread::scope(|scope| {
            scope.spawn(move || {
                // A closed pipe is an answer too.
                let _ = stdin.write_all(input);
            });
            child.wait_with_output().unwrap()
        });
        Ran::of(&output)
    }

    pub fn archive(&self, turns: &[Value]) -> Ran {
        let lines: String = turns.iter().map(|turn| format!("{turn}\n")).collect();
        self.feed(&["archive", "--json", "--provider", "p", "--thread", "t"], lines.as_bytes())
    }

    /// Everything in the workspace but the cache, which can be made again and which reading may write.
    pub fn kept(&self) -> Vec<(PathBuf, u32, Vec<u8>)> {
        let mut found = snapshot(&self.workspace());
        found.retain(|(path, ..)| !path.starts_with(".scriptorium-recollex"));
        found
    }

    /// Runs something that must leave the workspace as it is.
    #[track_caller]
    pub fn unchanged<T>(&self, act: impl FnOnce() -> T) -> T {
        let before = self.kept();
        let result = act();
        let after = self.kept();
        let names = |tree: &[(PathBuf, u32, Vec<u8>)]| tree.iter().map(|(path, ..)| path.clone()).collect::<Vec<_>>();
        assert_eq!(names(&before), names(&after), "the files are not those of before");
        if let Some((old, new)) = before.iter().zip(&after).find(|(old, new)| old != new) {
            panic!(
                "{} is not as before: mode {:o}, now {:o}; {} bytes, now {}",
                old.0.display(),
                old.1,
                new.1,
                old.2.len(),
                new.2.len()
            );
        }
        result
    }
}

/// The most memory a process had in use, in bytes, as Linux counts it while it runs.
#[cfg(target_os = "linux")]
pub fn peak_while_running(child: &mut Child) -> u64 {
    let status = format!("/proc/{}/status", child.id());
    let mut peak = 0;
    while child.try_wait().unwrap().is_none() {
        let text = fs::read_to_string(&status).unwrap_or_default();
        let kib = text.lines().find_map(|line| line.strip_prefix("VmHWM:")?.trim().strip_suffix(" kB"));
        peak = peak.max(kib.and_then(|kib| kib.parse::<u64>().ok()).unwrap_or(0) * 1024);
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    peak
}
