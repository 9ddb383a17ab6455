//! Vouching for a record, through the component and at the shell: what is asked, what changes, what is refused, and that a
//! refusal and a preview change nothing.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::SystemTime;

use recollex::types::{Problem, SourceRecord, Speaker, Tier, Trust};
use recollex::workspace::Turn;
use recollex::{Error, OpenOptions, Runtime, RuntimeOptions, Session};
use serde_json::{Value, json};

use crate::home::{Home, Ran};
use crate::support::{cache, snapshot, walk};

const ARCHIVE: &str = "sources/slack/_v2/general.md";
const LOG: &str = ".scriptorium/trust-audit.jsonl";

fn options() -> OpenOptions {
    OpenOptions::new(Tier::Owner).principal("owner/ada").setting("owner.principal", "owner/ada")
}

fn open(root: &Path, options: OpenOptions) -> Session {
    static RUNTIME: OnceLock<Runtime> = OnceLock::new();
    let runtime = RUNTIME.get_or_init(|| {
        Runtime::new(RuntimeOptions { cache: Some(cache()), ..RuntimeOptions::default() }).expect("a runtime")
    });
    Session::open(runtime, root, options).unwrap()
}

/// What others said, pending, in one conversation.
fn turns() -> Vec<Turn> {
    (1..=3)
        .map(|number| Turn {
            speaker_id: Some(format!("u-{number}")),
            speaker_display: Some("Bo".to_owned()),
            speaker_kind: Some("human".to_owned()),
            trust: "pending".to_owned(),
            ..Turn::new("slack", "general", format!("m{number}"), "user", format!("text {number}"))
        })
        .collect()
}

/// A workspace with those.
fn workspace() -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    open(directory.path(), options()).archive(&turns()).unwrap();
    directory
}

/// Files with their bytes, and when each was written last; without the cache, which can be made again.
fn stamped(root: &Path) -> Vec<(PathBuf, Vec<u8>, SystemTime)> {
    let mut found = Vec::new();
    walk(root, &mut |path| {
        if path.is_file() {
            found.push((path.to_owned(), fs::read(path).unwrap(), fs::metadata(path).unwrap().modified().unwrap()));
        }
        !path.ends_with(".scriptorium-recollex")
    });
    found
}

/// The first problem of a call that was refused, and that it wrote nothing.
#[track_caller]
fn refused<T: std::fmt::Debug>(root: &Path, call: impl FnOnce() -> Result<T, Error>) -> Problem {
    use recollex::types::Error::{Invalid, NotFound, Refused, Store};

    let before = stamped(root);
    let problem = match call().expect_err("it is refused") {
        Error::Memory(Refused(mut problems)) => problems.remove(0),
        Error::Memory(Invalid(problem) | NotFound(problem) | Store(problem)) => problem,
        other => panic!("{other:?}"),
    };
    assert_eq!(stamped(root), before, "{problem:?}");
    problem
}

fn log(root: &Path) -> String {
    fs::read_to_string(root.join(LOG)).unwrap_or_default()
}

#[test]
fn one_word_and_one_line_change() {
    let directory = workspace();
    let root = directory.path();
    let before = fs::read_to_string(root.join(ARCHIVE)).unwrap();
    let mut session = open(root, options());
    let kept = stamped(root);
    assert!(session.would_promote("slack/general/m2").unwrap().promoted);
    assert_eq!(stamped(root), kept, "it only says so");

    let promotion = session.promote("slack/general/m2").unwrap();
    assert!(promotion.promoted);
    assert_eq!(promotion.revision, session.status().unwrap().revision);
    let after = fs::read_to_string(root.join(ARCHIVE)).unwrap();
    let changed: Vec<(&str, &str)> = before.lines().zip(after.lines()).filter(|(old, new)| old != new).collect();
    assert_eq!((before.len(), changed.len()), (after.len(), 1), "{changed:?}");
    assert!(changed[0].1.starts_with("<!-- source-meta:"), "{changed:?}");
    let mut trust = |id: &str| session.get(id, None, 0).unwrap().record.unwrap().trust;
    assert_eq!(
        ["slack/general/m1", "slack/general/m2", "slack/general/m3"].map(&mut trust),
        [Trust::Pending, Trust::Trusted, Trust::Pending]
    );
    let line: Value = serde_json::from_str(log(root).strip_suffix('\n').unwrap()).unwrap();
    assert_eq!(
        (&line["action"], &line["source_id"], &line["principal_id"], &line["speaker_id"], &line["authority_tier"]),
        (&json!("promote"), &json!("slack/general/m2"), &json!("owner/ada"), &json!("u-2"), &json!("owner"))
    );

    // Once more changes nothing and is not logged.
    let kept = stamped(root);
    assert!(!session.would_promote("slack/general/m2").unwrap().promoted);
    let again = session.promote("slack/general/m2").unwrap();
    assert_eq!((again.promoted, again.revision), (false, promotion.revision));
    assert_eq!(stamped(root), kept);
    // Neither does the same turn, still pending where it comes from.
    session.archive(&turns()).unwrap();
    assert_eq!(fs::read_to_string(root.join(ARCHIVE)).unwrap(), after);
}

#[test]
fn only_the_owner_in_person_vouches() {
    let directory = workspace();
    let root = directory.path();
    let owner = || OpenOptions::new(Tier::Owner).setting("owner.principal", "owner/ada");
    for (options, reason) in [
        (owner().principal("owner/bo"), "other-principal"),
        (owner(), "other-principal"),
        (owner().principal("owner/Ada"), "other-principal"),
        (owner().principal("owner/ada\n"), "other-principal"),
        (options().setting("caller", "background"), "not-interactive"),
        (OpenOptions::new(Tier::Paired).principal("owner/ada"), "owner-only"),
    ] {
        let mut session = open(root, options);
        for id in ["slack/general/m1", "slack/general/none", "no id"] {
            assert_eq!(refused(root, || session.promote(id)).reason, reason);
            assert_eq!(refused(root, || session.would_promote(id)).reason, reason);
        }
    }
    assert_eq!(log(root), "");
}

#[test]
fn what_is_not_there_or_no_id_is_refused() {
    let directory = workspace();
    let root = directory.path();
    let mut session = open(root, options());
    for (id, reason) in [
        ("slack/general/m9", "no-such-record"),
        ("slack/none/m1", "no-such-record"),
        ("slack/general/M1", "no-such-record"),
        ("slack/../general/m1", "no-such-record"),
        ("slack/general/m1\n", "unsafe-source-id"),
        ("", "malformed-source-id"),
        ("m1", "malformed-source-id"),
        ("slack/general/", "malformed-source-id"),
        ("D7:1", "malformed-source-id"),
        (ARCHIVE, "no-such-record"),
    ] {
        let told = refused(root, || session.promote(id));
        let would = refused(root, || session.would_promote(id));
        assert_eq!((told.reason.as_str(), &told), (reason, &would), "{id:?}");
    }
}

/// The older shape of metadata says the same with other keys, and keeps them.
#[test]
fn metadata_of_the_older_shape_keeps_its_shape() {
    let directory = workspace();
    let root = directory.path();
    let path = root.join(ARCHIVE);
    let text = fs::read_to_string(&path).unwrap();
    let token = |trust: &str| {
        base64(&format!(
            "{{\"origin_scope\":{{\"capabilities\":[\"reply\"],\"origin\":\"legacy-unknown\"}},\"principal_id\":\"\",\
             \"speaker_kind\":null,\"trust_state\":\"{trust}\",\"version\":1}}"
        ))
    };
    let line = text.lines().find(|line| line.starts_with("<!-- source-meta:")).unwrap().to_owned();
    let older = |trust: &str| text.replacen(&line, &format!("<!-- source-meta:{} -->", token(trust)), 1);
    fs::write(&path, older("pending")).unwrap();
    let mut session = open(root, options());
    let before = session.get("slack/general/m1", None, 0).unwrap().record.unwrap();
    assert_eq!(before.trust, Trust::Pending);
    assert!(session.promote("slack/general/m1").unwrap().promoted);
    assert_eq!(fs::read_to_string(&path).unwrap(), older("trusted"));
    let after = session.get("slack/general/m1", None, 0).unwrap().record.unwrap();
    let speaker = before.speaker.clone().map(|speaker| Speaker { trusted: true, ..speaker });
    assert_eq!(after, SourceRecord { trust: Trust::Trusted, speaker, ..before });
}

/// As metadata is encoded: for URLs, without padding.
fn base64(text: &str) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    text.as_bytes()
        .chunks(3)
        .flat_map(|three| {
            let bits = three.iter().fold(0, |bits, byte| bits << 8 | u32::from(*byte)) << (8 * (3 - three.len()));
            (0..=three.len()).map(move |at| char::from(LETTERS[(bits >> (18 - 6 * at) & 63) as usize]))
        })
        .collect()
}

#[test]
fn what_nothing_says_is_pending_cannot_be_vouched_for() {
    let directory = workspace();
    let root = directory.path();
    let path = root.join(ARCHIVE);
    let text = fs::read_to_string(&path).unwrap();
    let line = text.lines().find(|line| line.starts_with("<!-- source-meta:")).unwrap();
    fs::write(&path, text.replacen(&format!("{line}\n"), "", 1)).unwrap();
    let mut session = open(root, options());
    assert_eq!(refused(root, || session.promote("slack/general/m1")).reason, "no-metadata");
    assert_eq!(refused(root, || session.would_promote("slack/general/m1")).reason, "no-metadata");
    assert!(session.promote("slack/general/m2").unwrap().promoted, "the others can");
}

#[test]
fn nothing_in_a_damaged_archive_is_vouched_for() {
    let directory = workspace();
    let root = directory.path();
    let path = root.join(ARCHIVE);
    let whole = fs::read(&path).unwrap();
    let text = String::from_utf8(whole.clone()).unwrap();
    let mut not_text = whole.clone();
    not_text.extend(b"\n\xff\n");
    let damaged: [(&str, Vec<u8>); 5] = [
        ("damaged-archive", whole[..whole.len() - 3].to_vec()),
        ("damaged-archive", [&whole[..], b"\nmore\n"].concat()),
        ("damaged-archive", text.replacen("source-id:slack/general/m3", "source-id:slack/other/m3", 1).into()),
        ("damaged-archive", text.replacen("<!-- openprogram", "<!-- openProgram", 1).into()),
        ("invalid-utf8", not_text),
    ];
    for (reason, bytes) in damaged {
        fs::write(&path, bytes).unwrap();
        let mut session = open(root, options());
        // The record itself is whole.
        for id in ["slack/general/m1", "slack/general/m3"] {
            let problem = refused(root, || session.promote(id));
            assert_eq!((problem.reason.as_str(), problem.path.as_deref()), (reason, Some(ARCHIVE)), "{problem:?}");
            assert!(problem.line.is_some(), "{problem:?}");
            assert_eq!(refused(root, || session.would_promote(id)), problem);
        }
    }
    assert_eq!(log(root), "");
    fs::write(&path, whole).unwrap();
    assert!(open(root, options()).promote("slack/general/m1").unwrap().promoted);
}

#[test]
fn a_torn_line_of_the_log_stays_and_the_next_is_whole() {
    let directory = workspace();
    let root = directory.path();
    let torn = "{\"timestamp\":\"2026-01-02T03:04:05+00:00\",\"action\":\"prom";
    fs::write(root.join(LOG), torn).unwrap();
    let mut session = open(root, options());
    session.promote("slack/general/m1").unwrap();
    session.promote("slack/general/m2").unwrap();
    let log = log(root);
    let lines: Vec<&str> = log.split_terminator('\n').collect();
    assert_eq!((lines.len(), lines[0]), (3, torn));
    assert!(log.ends_with('\n'));
    for (line, id) in lines[1..].iter().zip(["slack/general/m1", "slack/general/m2"]) {
        assert_eq!(serde_json::from_str::<Value>(line).unwrap()["source_id"], id);
    }
}

/// The mark is not set where it cannot be logged.
#[test]
fn without_a_log_nothing_is_vouched_for() {
    let directory = workspace();
    let root = directory.path();
    let mut session = open(root, options());
    fs::create_dir(root.join(LOG)).unwrap();
    refused(root, || session.promote("slack/general/m1"));
    fs::remove_dir(root.join(LOG)).unwrap();
    std::os::unix::fs::symlink("/dev/null", root.join(LOG)).unwrap();
    refused(root, || session.promote("slack/general/m1"));
    fs::remove_file(root.join(LOG)).unwrap();
    assert!(session.promote("slack/general/m1").unwrap().promoted);
}

impl Home {
    /// With three records pending, of which somebody may be told.
    fn with_pending() -> Self {
        let home = Self::with_workspace();
        let lines: String = (1..=3)
            .map(|number| {
                let speaker = json!({"id": format!("u-{number}"), "display": "Bo\u{1b}[2J"});
                json!({"id": format!("m{number}"), "role": "user", "text": format!("text {number}\u{202e}"),
                       "speaker": speaker, "trust": "pending"})
            })
            .map(|turn| format!("{turn}\n"))
            .collect();
        home.feed(&["archive", "--provider", "slack", "--thread", "general"], lines.as_bytes()).exits(0);
        home
    }

    fn log(&self) -> String {
        log(&self.workspace())
    }
}

#[test]
fn a_script_must_say_yes() {
    let home = Home::with_pending();
    let document = home.unchanged(|| home.run(&["promote", "slack/general/m1", "--json"])).refuses(2);
    assert_eq!(document["error"]["reason"], "unconfirmed", "{document}");
    let said = home.run(&["promote", "slack/general/m1", "slack/general/m2", "--yes", "--json"]).exits(0).json();
    let promoted =
        |said: &Value| said["records"].as_array().unwrap().iter().map(|row| row["promoted"].clone()).collect();
    assert_eq!((&said["dry_run"], promoted(&said)), (&json!(false), vec![json!(true), json!(true)]), "{said}");
    assert_eq!(home.log().lines().count(), 2);
    // What is trusted is not asked about.
    let said = home.unchanged(|| home.run(&["promote", "slack/general/m1", "--json"])).exits(0).json();
    assert_eq!(promoted(&said), [json!(false)]);
}

#[test]
fn a_preview_changes_nothing_and_refuses_what_would_be_refused() {
    let home = Home::with_pending();
    let preview = |ids: &[&str]| home.run(&[&["promote", "--dry-run", "--json"][..], ids].concat());
    let before = stamped(&home.workspace());
    let said = preview(&["slack/general/m1", "slack/general/m2"]).exits(0).json();
    assert_eq!(said["dry_run"], json!(true));
    assert!(said["records"].as_array().unwrap().iter().all(|row| row["promoted"] == true), "{said}");
    assert_eq!(stamped(&home.workspace()), before);

    let reason = |ran: Ran, code| ran.refuses(code)["error"]["reason"].as_str().unwrap().to_owned();
    assert_eq!(reason(preview(&["slack/general/m9"]), 1), "no-such-record-or-file");
    for more in [&["--set", "owner.principal=owner/ada"][..], &["--set", "caller=background"], &["--tier", "paired"]] {
        let ids = [&["slack/general/m1"], more].concat();
        let would = reason(preview(&ids), 6);
        let is = home.unchanged(|| home.run(&[&["promote", "--yes", "--json"][..], &ids].concat()));
        assert_eq!(reason(is, 6), would);
    }
    assert_eq!(stamped(&home.workspace()), before);

    // Damage behind the record: nothing is vouched for, and of several nothing at all.
    let path = home.workspace().join(ARCHIVE);
    let other = r#"{"id":"m1","role":"user","text":"other","trust":"pending"}"#;
    home.feed(&["archive", "--provider", "slack", "--thread", "other"], other.as_bytes()).exits(0);
    fs::write(&path, [&fs::read(&path).unwrap()[..], b"more"].concat()).unwrap();
    let ids = ["slack/other/m1", "slack/general/m1"];
    assert_eq!(reason(home.unchanged(|| preview(&ids)), 6), "damaged-archive");
    let ran = home.unchanged(|| home.run(&[&["promote", "--yes", "--json"][..], &ids].concat()));
    assert_eq!(reason(ran, 6), "damaged-archive");
}

/// At a terminal it shows who said what, with nothing in it that a terminal obeys, and asks.
#[cfg(target_os = "linux")]
#[test]
fn at_a_terminal_it_asks() {
    use std::io::{Read as _, Write as _};
    use std::process::Stdio;

    let home = Home::with_pending();
    let ask = |answer: &str| {
        let pair = nix::pty::openpty(None, None).unwrap();
        let (mut ours, theirs) = (fs::File::from(pair.master), fs::File::from(pair.slave));
        let mut child = home
            .command(&["promote", "slack/general/m1"])
            .stdin(theirs.try_clone().unwrap())
            .stderr(theirs)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (mut shown, mut piece) = (String::new(), [0; 4096]);
        while !shown.contains("[y/N]") {
            let length = ours.read(&mut piece).unwrap();
            shown.push_str(&String::from_utf8_lossy(&piece[..length]));
        }
        ours.write_all(answer.as_bytes()).unwrap();
        (child.wait().unwrap().code(), shown)
    };
    let before = snapshot(&home.workspace().join("sources"));
    for no in ["\n", "n\n", "yess\n", "\u{4}"] {
        let (code, shown) = ask(no);
        assert_eq!(code, Some(6), "{no:?}: {shown}");
        assert!(shown.contains("slack/general/m1") && shown.contains("u-1") && shown.contains("text 1"), "{shown:?}");
        assert!(!shown.contains("\u{1b}[2J") && !shown.contains('\u{202e}'), "{shown:?}");
    }
    assert_eq!((snapshot(&home.workspace().join("sources")), home.log()), (before, String::new()));
    assert_eq!(ask("y\n").0, Some(0));
    assert_eq!(home.log().lines().count(), 1);
}
