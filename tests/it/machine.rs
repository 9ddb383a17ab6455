//! What a machine does to a workspace: paths of any kind, a medium that is full, or that may not be written.

use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStringExt as _;
use std::path::Path;

use serde_json::{Value, json};

use crate::home::{Home, Ran};

fn turn(id: &str, text: &str) -> Value {
    json!({"id": id, "role": "user", "text": text, "time": "2026-01-02T03:04:05+00:00"})
}

/// Runs a verb upon the workspace at `root`, wherever that is.
#[track_caller]
fn at(home: &Home, root: &Path, words: &[&str], input: Option<&Value>) -> Ran {
    use std::io::Write as _;
    use std::process::Stdio;
    let mut command = home.command(&[]);
    command.arg("--workspace").arg(root).args(words).stdin(Stdio::piped());
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    if let Some(input) = input {
        writeln!(stdin, "{input}").unwrap();
    }
    drop(stdin);
    Ran::of(&child.wait_with_output().unwrap())
}

/// Everything that this step owns, upon one workspace.
fn works_at(home: &Home, root: &Path) {
    let run = |words: &[&str], code| at(home, root, words, None).exits(code);
    let archive = |turn: Value| {
        let words = ["archive", "--json", "--provider", "p", "--thread", "t"];
        at(home, root, &words, Some(&turn)).exits(0).json()
    };
    run(&["init"], 0);
    archive(turn("m1", "The key is under the third pot."));
    let status = run(&["status", "--json"], 0).json();
    assert_eq!((&status["health"], &status["lock"]["held"]), (&json!("ok"), &json!(false)), "{status}");
    let backup = home.path().join("backup.tar");
    run(&["backup", "--force", backup.to_str().unwrap()], 0);
    archive(turn("m2", "No, under the second."));
    let found = run(&["search", "--json", "second"], 0).json();
    assert_eq!(found["results"].as_array().unwrap().len(), 1, "{found}");
    run(&["undo"], 0);
    run(&["search", "second"], 1);
    run(&["undo", "--redo"], 0);
    assert_eq!(run(&["undo", "--list", "--json"], 0).json()["commits"].as_array().unwrap().len(), 3);
    let safety = home.path().join("safety.tar");
    let _ = fs::remove_file(&safety);
    let words = ["restore", backup.to_str().unwrap(), "--replace", "--yes", "--safety", safety.to_str().unwrap()];
    run(&words, 0);
    run(&["search", "second"], 1);
    let verified = run(&["verify", "--json"], 0).json();
    assert_eq!(verified["findings"], json!([]), "{verified}");
    let doctor = run(&["doctor", "--json"], 0).json();
    assert_eq!(doctor["findings"], json!([]), "{doctor}");
}

#[test]
fn a_workspace_may_be_at_any_path() {
    let home = Home::new();
    let deep = ["d".repeat(200), "e".repeat(255), "f".repeat(255), "g".repeat(255)].join("/");
    let names = [
        "with space",
        "new\nline",
        "-dash",
        "tab\t\"quote'$HOME`x`",
        "u\u{308}n\u{ef} \u{55b7}\u{202e}",
        "...",
        ".git",
        ".scriptorium",
        "{}%s*?[x]\\",
        &deep,
    ];
    let not_text = OsString::from_vec(b"not \xff text".to_vec());
    let names = names.iter().map(OsString::from).chain(cfg!(target_os = "linux").then_some(not_text));
    for name in names {
        let root = home.path().join("at").join(&name);
        works_at(&home, &root);
        // One that lies beneath, or is spelled otherwise, is the same.
        let odd = home.path().join("at").join(".").join(&name).join("sources").join("..");
        at(&home, &odd, &["get", "p/t/m1"], None).exits(0);
        assert!(fs::read_dir(&root).unwrap().count() >= 4, "{name:?}");
    }
    let link = home.path().join("link");
    std::os::unix::fs::symlink("at/with space", &link).unwrap();
    at(&home, &link, &["get", "p/t/m1"], None).exits(0);
    at(&home, &link, &["archive", "--provider", "p", "--thread", "u"], Some(&turn("m1", "Through a link."))).exits(0);
    at(&home, &home.path().join("at/with space"), &["get", "p/u/m1"], None).exits(0);
}

/// What of a workspace cannot be read is told as what it is, at the place where it is, and what needs it says so.
#[test]
fn a_part_of_the_runtime_directory_that_cannot_be_read_is_told() {
    use std::os::unix::fs::PermissionsExt as _;
    const PLACE: &str = ".scriptorium/workspace-id";
    let export = r#"[{"id":"a","mapping":{"m":{"message":{"author":{"role":"user"},"content":{"content_type":"text","parts":["x"]}}}}},
                     {"id":"b","mapping":{"m":{"message":{"author":{"role":"user"},"content":{"content_type":"text","parts":["x"]}}}}}]"#;
    // A directory in its place is as good as a file that may not be read, also for those who may read everything.
    let displaced = |path: &Path| {
        fs::remove_file(path).unwrap();
        fs::create_dir(path).unwrap();
    };
    let forbidden = |path: &Path| fs::set_permissions(path, fs::Permissions::from_mode(0o000)).unwrap();
    let acts: [&dyn Fn(&Path); 2] = [&displaced, &forbidden];
    for (at, act) in acts.iter().enumerate() {
        let home = Home::with_workspace();
        home.archive(&[turn("m1", "The key is under the third pot.")]).exits(0);
        fs::write(home.path().join("conversations.json"), export).unwrap();
        let path = home.workspace().join(PLACE);
        act(&path);
        // Whoever may read everything is not kept from it by a mode.
        if fs::read(&path).is_ok() {
            continue;
        }
        let verified = home.run(&["verify", "--json"]).exits(1).json();
        let findings = verified["findings"].as_array().unwrap();
        assert_eq!((findings.len(), &findings[0]["code"]), (1, &json!("unreadable-file")), "case {at}: {verified}");
        assert_eq!(findings[0]["path"], PLACE, "case {at}: {verified}");
        let status = home.run(&["status", "--json"]).json();
        assert_eq!(status["health"], "degraded", "case {at}: {status}");
        assert!(status.to_string().contains(PLACE), "case {at}: {status}");
        // It ends the import, as whatever the store cannot do: no conversation is at fault.
        let words = ["import", "--json", "chatgpt", home.path().join("conversations.json").to_str().unwrap()]
            .map(str::to_owned);
        let ran = home.run(&words.each_ref().map(String::as_str)).exits(8);
        let summary: Value = serde_json::from_str(ran.stdout.lines().last().unwrap()).unwrap();
        assert_eq!((&summary["error"]["reason"], &summary["error"]["path"]), (&json!("denied"), &json!(PLACE)));
        assert_eq!(summary["conversations"]["left_out"], 0, "case {at}: {summary}");
        let told = home.run(&["import", "chatgpt", &words[3]]).exits(8);
        assert!(!told.stderr.contains("browse"), "case {at}: {}", told.stderr);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o700)).unwrap();
    }
}

/// An order of claims that cannot be read is not taken for none: it would be written over.
#[test]
fn an_order_of_claims_that_cannot_be_read_keeps_from_changes() {
    const PLACE: &str = ".scriptorium/runtime.json";
    let home = Home::with_workspace();
    home.archive(&[turn("m1", "The key is under the third pot.")]).exits(0);
    std::os::unix::fs::symlink("/dev/null", home.workspace().join(PLACE)).unwrap();
    let told = home.run(&["verify", "--fix"]).exits(8);
    assert!(told.stderr.contains(PLACE), "{}", told.stderr);
    let verified = home.run(&["verify", "--json"]).exits(1).json();
    let findings = verified["findings"].as_array().unwrap();
    assert_eq!((findings.len(), &findings[0]["path"]), (1, &json!(PLACE)), "{verified}");
    // What needs no order goes on.
    home.archive(&[turn("m2", "The other key is lost.")]).exits(0);
    home.run(&["search", "key"]).exits(0);
}

#[cfg(target_os = "linux")]
mod medium {
    use std::process::Command;

    use super::*;

    /// Where the medium is, for the process that has it.
    const MEDIUM: &str = "RECOLLEX_TEST_MEDIUM";

    fn free(root: &Path) -> u64 {
        let output = Command::new("stat").args(["-f", "-c", "%a %S"]).arg(root).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        text.split_whitespace().map(|number| number.parse::<u64>().unwrap()).product()
    }

    /// Leaves so many bytes free, as exactly as the medium can.
    fn leave(home: &Home, bytes: u64) {
        let ballast = home.path().join("ballast");
        let _ = fs::remove_file(&ballast);
        fs::write(&ballast, vec![1; usize::try_from(free(home.path()).saturating_sub(bytes)).unwrap()]).unwrap();
    }

    /// Not captured by the test harness: whoever reads the run must see that something was left out.
    fn say(line: &str) {
        use std::io::Write as _;
        let _ = writeln!(std::io::stderr(), "{line}");
    }

    fn mount(arguments: &[&str], at: &Path) -> bool {
        Command::new("mount").args(arguments).arg(at).status().is_ok_and(|status| status.success())
    }

    /// A process that may mount something of its own runs the two tests below on a medium of four mebibytes.
    #[test]
    fn a_full_or_protected_medium_costs_nothing_that_was_there() {
        let directory = tempfile::tempdir().unwrap();
        crate::support::recollex();
        let output = Command::new("unshare")
            .args(["--user", "--map-root-user", "--mount"])
            .arg(std::env::current_exe().unwrap())
            .args(["machine::medium::on_a_small_medium", "--exact", "--ignored", "--nocapture"])
            .env(MEDIUM, directory.path())
            .env("TMPDIR", directory.path())
            .output();
        let text = output.as_ref().map_or_else(ToString::to_string, |output| {
            String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
        });
        if output.as_ref().is_ok_and(|output| output.status.success()) {
            assert!(text.contains("1 passed"), "{text}");
            text.lines().filter(|line| line.contains("skipped: ")).for_each(say);
        } else if text.contains("panicked") || text.contains("test result") {
            panic!("{text}");
        } else {
            say(&format!("skipped: no mount of one's own here: {text}"));
        }
    }

    #[test]
    #[ignore = "a process of a_full_or_protected_medium_costs_nothing_that_was_there"]
    fn on_a_small_medium() {
        let medium = std::path::PathBuf::from(std::env::var_os(MEDIUM).unwrap());
        if !mount(&["-t", "tmpfs", "-o", "size=4m", "tmpfs"], &medium) {
            say("skipped: a medium of one's own cannot be mounted here");
            return;
        }
        let home = Home::with_conversation();
        full(&home);
        protected(&home, &medium);
    }

    fn full(home: &Home) {
        let tree = || {
            let mut kept = home.kept();
            kept.retain(|(path, ..)| !path.starts_with(".scriptorium/recollex"));
            kept
        };
        let text = "Four of the nine keel bolts are wasted. ".repeat(500);
        let (mut refused, mut made) = (0, 0);
        for kibibytes in (0..=96).step_by(4) {
            leave(home, kibibytes << 10);
            let before = tree();
            let ran = home.archive(&[turn(&format!("full-{kibibytes}"), &text)]);
            if ran.code == 0 {
                made += 1;
            } else {
                let document = ran.refuses(8);
                assert_eq!(document["error"]["reason"], "full", "{document}");
                assert!(tree() == before, "with {kibibytes} KiB left");
                refused += 1;
            }
            // Reading needs no room, and finds nothing wrong.
            let verified = home.run(&["verify", "--json"]).exits(0).json();
            assert_eq!(verified["findings"], json!([]), "with {kibibytes} KiB left: {verified}");
            home.run(&["search", "keel"]).exits(0);
        }
        assert!(refused > 2 && made > 2, "{refused} refused, {made} made");

        // Neither does a copy that finds no room leave anything.
        leave(home, 8 << 10);
        let names = || fs::read_dir(home.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect::<Vec<_>>();
        let before = names();
        home.run(&["backup", "--json", "b.tar"]).refuses(2);
        assert_eq!(names(), before);

        // With room again all goes on, and what was refused can be taken back no less than what was not.
        fs::remove_file(home.path().join("ballast")).unwrap();
        home.archive(&[turn("later", "It goes on.")]).exits(0);
        home.run(&["undo", "2"]).exits(0);
        home.run(&["undo", "--redo"]).exits(0);
        home.run(&["verify"]).exits(0);
        assert_eq!(home.run(&["doctor", "--json"]).exits(0).json()["findings"], json!([]));
    }

    fn protected(home: &Home, medium: &Path) {
        assert!(mount(&["-o", "remount,ro"], medium));
        home.unchanged(|| {
            for words in
                [&["status"][..], &["verify"], &["search", "keel"], &["browse"], &["undo", "--list"], &["doctor"]]
            {
                home.run(words).exits(0);
            }
            let document = home.archive(&[turn("never", "x")]).refuses(8);
            assert!(["read-only", "denied"].contains(&document["error"]["reason"].as_str().unwrap()), "{document}");
            home.run(&["undo", "--json"]).refuses(8);
        });
        assert!(mount(&["-o", "remount,rw"], medium));
        home.archive(&[turn("again", "It goes on.")]).exits(0);
    }
}
