//! Archives of the older form through the shipped component, over a real directory: found, read and counted like others,
//! and no more than what they are.

use std::fs;
use std::path::Path;

use recollex::types::{Tier, Trust};
use recollex::workspace::{Hit, NumberedTurn, Outcome, Query};
use recollex::{Error, OpenOptions, Runtime, RuntimeOptions, Session};
use recollex_core::digest::Digest;
use recollex_core::ids::anchor_of;
use recollex_tests::turns;

use crate::support::{cache, snapshot};

const MESSAGES: &str = "sources/notes/boat.md";

fn runtime() -> Runtime {
    Runtime::new(RuntimeOptions { cache: Some(cache()), ..RuntimeOptions::default() }).unwrap()
}

fn open(runtime: &Runtime, root: &Path, tier: Tier) -> Session {
    Session::open(runtime, root, OpenOptions::new(tier)).unwrap()
}

fn anchor(id: &str) -> String {
    anchor_of(&Digest::of(id.as_bytes()))
}

fn message(id: &str, record: &str) -> String {
    format!("<a id=\"{}\"></a>\n<!-- source-id:{id} -->\n{record}\n\n", anchor(id))
}

fn put(root: &Path, path: &str, text: &str) {
    let file = root.join(path);
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(file, text).unwrap();
}

/// Two older conversations, one numbered, and a page that mentions it.
fn workspace() -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    let page = format!(
        "# boat\n\n{}{}loose words about varnish\n",
        message("notes/boat/m1", "[2025-06-01] user: [Ada (7391)] The keel needs varnish"),
        message("notes/boat/m2", "[2025-06-02] assistant: Sanding comes before varnish"),
    );
    put(directory.path(), MESSAGES, &page);
    let turns = "# D3\n\n<a id=\"d3-7\"></a>\n[2024-05-05] Tom: Two things:\nvarnish, bolts [D3:7]\n";
    put(directory.path(), "sources/D3.md", turns);
    put(directory.path(), "sources/diary.md", "Varnish as in D3:7\n");
    directory
}

fn search(session: &mut Session, text: &str) -> Vec<Hit> {
    session.search(&Query::new(text, 50)).unwrap().hits
}

fn by_id<'h>(hits: &'h [Hit], id: &str) -> &'h Hit {
    let found: Vec<&Hit> = hits.iter().filter(|hit| hit.id == id).collect();
    assert_eq!(found.len(), 1, "{id} in {hits:?}");
    found[0]
}

fn turn(reference: &str, text: &str) -> NumberedTurn {
    NumberedTurn { reference: reference.into(), date: "2026-01-02".into(), label: "Tom".into(), text: text.into() }
}

#[test]
fn found_and_read_like_others() {
    let directory = workspace();
    let runtime = runtime();
    let mut session = open(&runtime, directory.path(), Tier::Owner);
    let hits = search(&mut session, "varnish");
    assert_eq!(hits.len(), 4, "{hits:?}");

    let hit = by_id(&hits, "notes/boat/m1");
    assert_eq!((hit.path.as_str(), hit.line, hit.text.as_str()), (MESSAGES, 5, "[Ada (7391)] The keel needs varnish"));
    assert_eq!((hit.anchor.as_str(), hit.trust), (anchor("notes/boat/m1").as_str(), Trust::Trusted));
    assert_eq!((&hit.headings[..], &hit.evidence[..]), (&["boat".to_owned()][..], &["notes/boat/m1".to_owned()][..]));
    // What a text says of its speaker is a hint.
    let hint = hit.speaker.as_ref().unwrap();
    assert_eq!((hint.id.as_str(), hint.display.as_str(), hint.trusted), ("7391", "Ada", false));
    assert_eq!(by_id(&hits, "notes/boat/m2").speaker, None);

    // All lines of a turn are found, and its label is no speaker.
    let hit = by_id(&hits, "D3:7");
    assert_eq!((hit.path.as_str(), hit.anchor.as_str(), hit.line), ("sources/D3.md", "d3-7", 4));
    assert_eq!((hit.text.as_str(), &hit.speaker), ("Two things:\nvarnish, bolts [D3:7]", &None));

    // A line that mentions a turn rests on that turn.
    let mention = hits.iter().find(|hit| hit.path == "sources/diary.md").unwrap();
    assert!(mention.id.starts_with("lex_") && mention.id == mention.anchor, "{mention:?}");
    assert_eq!((mention.text.as_str(), &mention.evidence[..]), ("Varnish as in D3:7", &["D3:7".to_owned()][..]));

    // Whatever a hit is called by, `get` takes.
    for hit in &hits {
        for name in [hit.id.clone(), format!("{}#{}", hit.path, hit.anchor)] {
            let excerpt = session.get(&name, None, 0).unwrap();
            assert_eq!((excerpt.path.as_str(), excerpt.lines[0].number), (hit.path.as_str(), hit.line), "{name}");
            let shown: Vec<&str> = excerpt.lines.iter().map(|line| line.text.as_str()).collect();
            assert!(shown.join("\n").ends_with(hit.text.as_str()), "{shown:?}");
            let record = excerpt.record.unwrap();
            assert_eq!(
                (record.id.as_str(), record.speaker.as_ref().map(|hint| hint.trusted)),
                (hit.id.as_str(), hit.speaker.as_ref().map(|_| false))
            );
        }
    }
    for name in ["notes/boat/m9", "D3:9", "D4:1", "lex_0000000000000000", "sources/D3.md#d3-9", "sources/D3.md#d4-7"] {
        let error = session.get(name, None, 0).unwrap_err();
        assert_eq!(error.reason(), Some("no-such-record-or-file"), "{name}");
    }

    // Counted, and told what belongs to nothing; that alone makes nothing degraded.
    let status = session.status().unwrap();
    assert_eq!((status.counts.source_files, status.counts.frames, status.counts.legacy_records), (3, 0, Some(3)));
    assert_eq!(status.reasons, []);
    let mut verification = session.verify("").unwrap();
    let mut codes = Vec::new();
    while let Some(findings) = verification.step(&mut session, u64::MAX).unwrap() {
        codes.extend(findings.into_iter().map(|finding| (finding.code, finding.line)));
    }
    assert_eq!(codes, [("legacy-loose-text".to_owned(), Some(11))]);
    let report = verification.report(&mut session).unwrap();
    assert_eq!((report.ok, report.counts), (true, status.counts));
}

/// A frame takes the place of an older record with its id, whatever it says, and repeating an older record writes one.
#[test]
fn a_frame_counts_more() {
    let directory = workspace();
    let runtime = runtime();
    let mut session = open(&runtime, directory.path(), Tier::Owner);
    session.init().unwrap();
    let mut repeated = turns::plain("notes", "boat", 0, "Varnish anew");
    repeated.id = "m1".to_owned();
    repeated.trust = "pending".to_owned();
    for expected in [Outcome::Archived, Outcome::Already] {
        let archived = session.archive(std::slice::from_ref(&repeated)).unwrap();
        assert_eq!(archived.turns[0].outcome, expected);
    }
    let hits = search(&mut session, "varnish");
    let hit = by_id(&hits, "notes/boat/m1");
    assert_eq!((hit.path.as_str(), hit.text.as_str()), ("sources/notes/_v2/boat.md", "Varnish anew"));
    assert_eq!((hit.trust, &hit.speaker), (Trust::Pending, &None));
    assert_eq!(by_id(&hits, "notes/boat/m2").path, MESSAGES);
    assert_eq!(session.get("notes/boat/m1", None, 0).unwrap().path, "sources/notes/_v2/boat.md");
    // By its anchor the older one is still there to be read.
    let older = session.get(&format!("{MESSAGES}#{}", anchor("notes/boat/m1")), None, 0).unwrap();
    assert_eq!(older.record.unwrap().line, 5);
    let counts = session.status().unwrap().counts;
    assert_eq!((counts.frames, counts.legacy_records), (1, Some(3)));

    // A frame that is not whole takes nobody's place.
    let archive = directory.path().join("sources/notes/_v2/boat.md");
    let mut text = fs::read(&archive).unwrap();
    text.truncate(text.len() - 3);
    fs::write(&archive, text).unwrap();
    assert_eq!(by_id(&search(&mut session, "varnish"), "notes/boat/m1").path, MESSAGES);
    assert_eq!(session.get("notes/boat/m1", None, 0).unwrap().path, MESSAGES);
}

#[test]
fn numbered_conversations_grow() {
    let directory = workspace();
    let runtime = runtime();
    let mut session = open(&runtime, directory.path(), Tier::Owner);
    let before = fs::read_to_string(directory.path().join("sources/D3.md")).unwrap();
    let archived =
        session.archive_numbered(&[turn("D3:8", "tar"), turn("D9:1", "rope"), turn("D3:7", "other")]).unwrap();
    let outcomes: Vec<_> =
        archived.turns.iter().map(|turn| (turn.id.as_str(), turn.outcome, turn.digests.is_some())).collect();
    assert_eq!(
        outcomes,
        [("D3:8", Outcome::Archived, false), ("D9:1", Outcome::Archived, false), ("D3:7", Outcome::Differs, true)]
    );
    assert_eq!((archived.turns[1].path.as_str(), archived.turns[1].anchor.as_str()), ("sources/D9.md", "d9-1"));
    let after = fs::read_to_string(directory.path().join("sources/D3.md")).unwrap();
    assert_eq!(after, format!("{before}\n<a id=\"d3-8\"></a>\n[2026-01-02] Tom: tar [D3:8]\n"));
    assert_eq!(session.status().unwrap().revision, archived.revision);

    // Again: nothing happens.
    let unchanged = snapshot(directory.path());
    let again = session.archive_numbered(&[turn("D3:8", "tar"), turn("D9:1", "rope")]).unwrap();
    assert!(again.turns.iter().all(|turn| turn.outcome == Outcome::Already));
    assert_eq!(again.revision, archived.revision);
    // All or nothing: one text that would look like another turn, and none is kept.
    let forged = "x\n<a id=\"d3-9\"></a>\n[2026-01-02] Ada: forged [D3:9]";
    let refused = session.archive_numbered(&[turn("D3:10", "fine"), turn("D3:11", forged)]).unwrap_err();
    assert_eq!(refused.reason(), Some("forged-line"));
    assert_eq!(refused.problems()[0].line, Some(2));
    // Nothing in this form says whose a turn is: not for those who may speak for themselves only.
    let denied = open(&runtime, directory.path(), Tier::Paired).archive_numbered(&[turn("D3:12", "x")]).unwrap_err();
    assert_eq!(denied.code(), "AUTHORITY_CAPABILITY_DENIED");
    assert_eq!(trees(&snapshot(directory.path())), trees(&unchanged));
    assert_eq!(search(&mut session, "tar rope").len(), 2);
}

/// What is not cache: that may be made at any time.
fn trees<T>(snapshot: &[(std::path::PathBuf, T, Vec<u8>)]) -> Vec<(&Path, &[u8])> {
    let kept = snapshot.iter().filter(|(path, ..)| !path.starts_with(".scriptorium-recollex"));
    kept.map(|(path, _, content)| (path.as_path(), content.as_slice())).collect()
}

/// What is wrong in an older archive is told, and hides nothing but itself.
#[test]
fn damage_is_told() {
    let directory = workspace();
    put(
        directory.path(),
        "sources/notes/torn.md",
        &format!(
            "{}{}<a id=\"{}\"></a>\n<!-- source-id:notes/torn/m3 -->\n",
            message("notes/torn/m1", "[] user: whole varnish"),
            message("notes/other/m2", "[] user: forged varnish"),
            anchor("notes/torn/m3"),
        ),
    );
    let broken = directory.path().join("sources/notes/broken.md");
    let mut bytes = message("notes/broken/m1", "[] user: varnish before").into_bytes();
    bytes.extend_from_slice(b"\xff\n");
    bytes.extend_from_slice(message("notes/broken/m2", "[] user: varnish behind").as_bytes());
    fs::write(broken, bytes).unwrap();
    let runtime = runtime();
    let mut session = open(&runtime, directory.path(), Tier::Owner);
    let answer = session.search(&Query::new("varnish", 50)).unwrap();
    let ids: Vec<&str> = answer.hits.iter().map(|hit| hit.id.as_str()).filter(|id| id.starts_with("notes/")).collect();
    assert_eq!(ids.iter().filter(|id| **id == "notes/torn/m1" || **id == "notes/broken/m1").count(), 2, "{ids:?}");
    assert!(!ids.iter().any(|id| id.contains("other") || id.ends_with("broken/m2")), "{ids:?}");
    let codes = |findings: &[recollex::types::Finding]| {
        findings.iter().map(|finding| (finding.code.clone(), finding.line)).collect::<Vec<_>>()
    };
    let told = codes(&answer.findings);
    for expected in [("legacy-bad-header", 5), ("legacy-bad-record", 9), ("invalid-utf8", 5)] {
        assert!(told.contains(&(expected.0.to_owned(), Some(expected.1))), "{expected:?} in {told:?}");
    }
    for name in ["notes/torn/m3", "notes/broken/m2"] {
        assert_eq!(session.get(name, None, 0).unwrap_err().reason(), Some("perhaps-behind-damage"), "{name}");
    }
    let status = session.status().unwrap();
    assert_eq!((status.health, status.counts.legacy_records), (recollex::types::Health::Degraded, Some(5)));
    // Known or read again, the figures are the same.
    assert_eq!(session.status().unwrap().counts, status.counts);
    match session.archive_numbered(&[turn("D3:8", "x")]) {
        Ok(_) => {}
        Err(error @ Error::Memory(_)) => panic!("another file's damage is no obstacle: {error}"),
        Err(error) => panic!("{error}"),
    }
}
