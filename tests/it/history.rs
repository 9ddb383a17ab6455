//! Commits recorded with the git of whoever runs the program: what is recorded, what is left alone, and that memory does not
//! depend on it.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Command, Output};
use std::sync::Arc;

use recollex::history::{Recorded, Repository};
use recollex::lock::{FileLock, Lock as _};
use recollex::observer::Silent;
use recollex::store::{About, Area, Change, CommitError, Committed, Directory, Edit, Expect, Store as _, StoreError};
use serde_json::{Value, json};

use crate::home::{Home, Ran};

fn git(home: &Home, arguments: &[&str]) -> Output {
    let output = Command::new("git")
        .args(arguments)
        .current_dir(home.workspace())
        .env("HOME", home.path())
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .output()
        .unwrap();
    assert!(output.status.success(), "git {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    output
}

fn said(home: &Home, arguments: &[&str]) -> String {
    String::from_utf8(git(home, arguments).stdout).unwrap()
}

/// A workspace that is a repository.
fn repository() -> Home {
    let home = Home::with_workspace();
    git(&home, &["init", "--quiet"]);
    home
}

/// Without anybody whom git knows.
fn nameless(home: &Home, arguments: &[&str], input: &str) -> Ran {
    let mut command = home.command(arguments);
    command.env("GIT_CONFIG_NOSYSTEM", "1");
    for name in ["GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL", "EMAIL"] {
        command.env_remove(name);
    }
    fs::write(home.path().join("turns.jsonl"), input).unwrap();
    Ran::of(&command.stdin(fs::File::open(home.path().join("turns.jsonl")).unwrap()).output().unwrap())
}

fn turn(id: &str, text: &str) -> Value {
    json!({"id": id, "role": "user", "text": text, "time": "2026-01-02"})
}

fn files_of(home: &Home, commit: &str) -> BTreeSet<String> {
    let listed = said(home, &["show", "--name-only", "--format=", commit]);
    listed.lines().filter(|line| !line.is_empty()).map(str::to_owned).collect()
}

const ARCHIVE: &str = "sources/p/_v2/t.md";

#[test]
fn each_change_is_a_commit_of_what_it_changed() {
    let home = repository();
    fs::write(home.workspace().join("mine.txt"), "a person's own\n").unwrap();
    git(&home, &["add", "mine.txt"]);

    let lines = format!("{}\n", turn("1", "The kettle is blue."));
    nameless(&home, &["archive", "--provider", "p", "--thread", "t"], &lines).exits(0);
    home.archive(&[turn("2", "The cup is green.")]).exits(0);

    assert_eq!(said(&home, &["rev-list", "--count", "HEAD"]).trim(), "2");
    for commit in ["HEAD", "HEAD~1"] {
        assert_eq!(files_of(&home, commit), BTreeSet::from([ARCHIVE.to_owned()]), "{commit}");
        assert!(said(&home, &["log", "-1", "--format=%s", commit]).starts_with("archive: "));
    }
    let recorded = git(&home, &["show", &format!("HEAD:{ARCHIVE}")]).stdout;
    assert_eq!(recorded, fs::read(home.workspace().join(ARCHIVE)).unwrap());
    // What a person had staged is still only staged.
    assert_eq!(said(&home, &["diff", "--cached", "--name-only"]).trim(), "mine.txt");
    assert_eq!(home.run(&["status", "--json"]).exits(0).json()["history"], "git");

    // Nothing new: no commit.
    home.archive(&[turn("2", "The cup is green.")]).exits(0);
    assert_eq!(said(&home, &["rev-list", "--count", "HEAD"]).trim(), "2");

    home.run(&["undo"]).exits(0);
    assert_eq!(files_of(&home, "HEAD"), BTreeSet::from([ARCHIVE.to_owned()]));
    assert!(said(&home, &["log", "-1", "--format=%s"]).starts_with("undo: archive"));
    home.run(&["undo"]).exits(0);
    assert_eq!(said(&home, &["ls-files", "sources"]), "", "what is gone is gone from the newest commit");
}

#[test]
fn what_git_keeps_is_not_said_to_be_erased() {
    let home = repository();
    home.archive(&[turn("1", "The safe opens with 4711.")]).exits(0);
    let root = home.workspace();
    let store = Recorded::new(Arc::new(Directory::new(&root)), Repository::at(&root), Arc::new(Silent));
    let erase = |path: &str| -> Result<Committed, CommitError> {
        let guard = FileLock::new(&root).acquire(1000, "test").unwrap();
        let edit = Edit::Put("What stood here is gone.\n".to_owned());
        let change = Change { area: Area::Tree, path: path.to_owned(), expect: Expect::Any, edit };
        store.commit(&*guard, store.generation().unwrap(), &[change], &About::new("redact", "").erasing())
    };
    let is_refused = |result: Result<Committed, CommitError>| matches!(result, Err(CommitError::Failed { path, error: StoreError::Denied(_) }) if path == ARCHIVE);
    let before = fs::read(root.join(ARCHIVE)).unwrap();
    assert!(is_refused(erase(ARCHIVE)));
    assert_eq!(fs::read(root.join(ARCHIVE)).unwrap(), before);

    // Gone from the newest commit, and still in an older one.
    git(&home, &["rm", "--quiet", "--cached", ARCHIVE]);
    let identity = ["-c", "user.name=n", "-c", "user.email=n@localhost"];
    git(&home, &[&identity[..], &["commit", "--quiet", "-m", "gone"]].concat());
    assert!(is_refused(erase(ARCHIVE)));

    // What git never saw.
    fs::write(root.join("sources/p/_v2/other.md"), "secret\n").unwrap();
    erase("sources/p/_v2/other.md").unwrap();
    assert_eq!(fs::read_to_string(root.join("sources/p/_v2/other.md")).unwrap(), "What stood here is gone.\n");
}

#[test]
fn what_is_ignored_stays_out_and_memory_goes_on() {
    let home = repository();
    fs::write(home.workspace().join(".gitignore"), "sources/p/\n").unwrap();
    home.archive(&[turn("1", "Private.")]).exits(0);
    assert!(!home.workspace().join(".git/refs/heads").read_dir().unwrap().any(|_| true), "nothing is recorded");
    home.feed(
        &["archive", "--provider", "q", "--thread", "t"],
        format!("{}\n{}\n", turn("1", "Public."), turn("2", "[brackets] *stars* :colons")).as_bytes(),
    )
    .exits(0);
    assert_eq!(files_of(&home, "HEAD"), BTreeSet::from(["sources/q/_v2/t.md".to_owned()]));
}

#[test]
fn a_repository_that_refuses_or_would_run_programs_hurts_nobody() {
    let home = repository();
    let ran = home.path().join("ran");
    let program = format!("#!/bin/sh\ntouch '{}'\nexit 1\n", ran.display());
    for hook in ["pre-commit", "commit-msg", "post-commit", "post-index-change"] {
        let path = home.workspace().join(".git/hooks").join(hook);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, &program).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }
    let monitor = home.path().join("monitor");
    fs::write(&monitor, &program).unwrap();
    fs::set_permissions(&monitor, fs::Permissions::from_mode(0o755)).unwrap();
    git(&home, &["config", "core.fsmonitor", monitor.to_str().unwrap()]);
    git(&home, &["config", "commit.gpgSign", "true"]);
    home.archive(&[turn("1", "One.")]).exits(0);
    assert!(!ran.exists(), "a program of the repository was run");
    git(&home, &["config", "--unset", "core.fsmonitor"]);
    assert_eq!(said(&home, &["rev-list", "--count", "HEAD"]).trim(), "1");

    // Another git is at work.
    fs::write(home.workspace().join(".git/index.lock"), "").unwrap();
    let kept = home.archive(&[turn("2", "Two.")]).exits(0);
    assert_eq!(kept.json()["archived"], 1);
    assert!(kept.stderr.contains("not in the history"), "{}", kept.stderr);
    fs::remove_file(home.workspace().join(".git/index.lock")).unwrap();
    // The next commit of the same file takes it along.
    home.archive(&[turn("3", "Three.")]).exits(0);
    let recorded = git(&home, &["show", &format!("HEAD:{ARCHIVE}")]).stdout;
    assert_eq!(recorded, fs::read(home.workspace().join(ARCHIVE)).unwrap());
}

#[test]
fn without_git_or_a_repository_memory_works() {
    let home = Home::with_workspace();
    home.archive(&[turn("1", "One.")]).exits(0);
    assert_eq!(home.run(&["status", "--json"]).exits(0).json()["history"], "off");
    // A repository further up is somebody's project.
    let above = Command::new("git").args(["init", "--quiet"]).current_dir(home.path()).status().unwrap();
    assert!(above.success());
    home.archive(&[turn("2", "Two.")]).exits(0);
    let refs = home.path().join(".git/refs/heads");
    assert!(!refs.read_dir().unwrap().any(|_| true), "nothing is recorded there");

    let feed = |mode: &str, id: &str| {
        let line = format!("{}\n", turn(id, "Some."));
        home.feed(&["archive", "--history", mode, "--provider", "p", "--thread", "t"], line.as_bytes())
    };
    let told = feed("on", "3").exits(0);
    assert!(told.stderr.contains("no git repository"), "{}", told.stderr);
    feed("sometimes", "4").exits(2);

    let home = repository();
    let silent = feed_without_git(&home, "1");
    assert!(silent.stderr.contains("git cannot be run"), "{}", silent.stderr);
    assert_eq!(silent.code, 0);
    assert_eq!(home.run(&["verify", "--json"]).exits(0).json()["counts"]["frames"], 1);
}

fn feed_without_git(home: &Home, id: &str) -> Ran {
    let empty = home.path().join("empty");
    fs::create_dir_all(&empty).unwrap();
    let file = home.path().join("turns.jsonl");
    fs::write(&file, format!("{}\n", turn(id, "Some."))).unwrap();
    let mut command = home.command(&["archive", "--provider", "p", "--thread", "t", file.to_str().unwrap()]);
    Ran::of(&command.env("PATH", &empty).output().unwrap())
}

#[test]
fn two_writers_at_once_are_both_recorded() {
    let home = repository();
    std::thread::scope(|scope| {
        for thread in ["a", "b"] {
            let home = &home;
            scope.spawn(move || {
                for number in 0..5 {
                    let line = format!("{}\n", turn(&number.to_string(), "Some."));
                    let ran = home.feed(&["archive", "--provider", "p", "--thread", thread], line.as_bytes()).exits(0);
                    assert!(!ran.stderr.contains("history"), "{}", ran.stderr);
                }
            });
        }
    });
    assert_eq!(said(&home, &["rev-list", "--count", "HEAD"]).trim(), "10");
    assert_eq!(said(&home, &["status", "--porcelain", "sources"]), "");
}
