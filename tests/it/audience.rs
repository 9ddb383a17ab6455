//! What the owner keeps to themselves is, to a paired caller, no more than what is not there.
//!
//! Two workspaces say the same of who sees what. In one of them there is something to hide, in the other there is not: no
//! call of a paired caller may tell which is which. A function of a session that is new in the contract fails here until
//! it has its row.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::sync::OnceLock;

use recollex::turns::{Said, Upkeep};
use recollex::types::Tier;
use recollex::workspace::{
    BlockReference, GrepQuery, ImportFormat, ImportOptions, NumberedTurn, Query, RecallQuery, Scope, Turn,
    UnpairedMessage, UpdateOptions,
};
use recollex::{Error, OpenOptions, Runtime, RuntimeOptions, Session};
use serde_json::json;
use tempfile::TempDir;

use crate::authority::session_functions;
use crate::support::cache;

/// Asks one function of a session in every way that could tell something, and writes down all answers.
type Ask = fn(&mut Session) -> Vec<String>;

/// Every function of a session, and how a paired caller could learn from it.
const ROWS: &[(&str, Ask)] = &[
    ("init", |session| vec![shown(session.init())]),
    ("status", |session| vec![shown(session.status())]),
    ("archive", archive),
    ("archive-numbered", |session| {
        let turn = NumberedTurn {
            reference: "D7:1".to_owned(),
            date: String::new(),
            label: "user".to_owned(),
            text: "kept".to_owned(),
        };
        vec![shown(session.archive_numbered(&[turn]))]
    }),
    ("archive-unpaired", |session| vec![shown(session.archive_unpaired(&unpaired()))]),
    ("promote", |session| IDS.iter().map(|id| shown(session.promote(id))).collect()),
    ("would-promote", |session| IDS.iter().map(|id| shown(session.would_promote(id))).collect()),
    ("start-import", |session| {
        let options = ImportOptions {
            format: ImportFormat::Jsonl,
            provider: None,
            thread: None,
            trust: recollex::types::Trust::Pending,
            dry_run: true,
        };
        vec![shown(session.start_import(&options).map(drop))]
    }),
    ("audience", |session| vec![shown(session.audience())]),
    ("narrow-audience", |session| vec![shown(session.narrow_audience("sources/open"))]),
    ("widen-audience", |session| vec![shown(session.widen_audience("sources/secret"))]),
    ("turns", turns),
    ("update", update),
    ("repair", |session| vec![shown(session.repair(true)), shown(session.repair(false))]),
    ("refresh", |session| vec![shown(session.refresh())]),
    ("core", |session| vec![shown(session.core())]),
    ("get-section", |session| {
        let asked = PATHS.iter().flat_map(|path| ["Plan", "Health"].map(|heading| (*path, heading)));
        asked.map(|(path, heading)| shown(session.get_section(path, heading))).collect()
    }),
    ("get-block", |session| BLOCKS.iter().map(|block| shown(session.get_block(block))).collect()),
    ("grep", grep),
    ("timeline", |session| {
        let asked = [(None, None), (Some("2026"), None), (None, Some("2026-12-31")), (Some("2027"), Some("2026"))];
        asked.map(|(from, to)| shown(session.timeline(from, to, 0))).to_vec()
    }),
    ("why", |session| BLOCKS.iter().map(|block| shown(session.why(block))).collect()),
    ("search", search),
    ("recall", recall),
    ("get", get),
    ("browse", browse),
    ("structure", structure),
    ("references", references),
    ("verify", verify),
];

/// What only the owner sees in both workspaces.
const SETTINGS: &str =
    r#"{"audience":{"owner":["sources/secret","sources/open/plan b","sources/D9","topics/private"]}}"#;

/// Records that a caller may guess.
const IDS: &[&str] = &[
    "secret/t/m1",
    "secret/broken/m1",
    "open/plan b/m1",
    "secret/nothing/m1",
    "Secret/t/m1",
    "secret/t/m9",
    "D9:1",
    "D9:99",
    "open/public/m1",
    "open/public/m99",
    "old/chat/m1",
];

/// Blocks that a caller may guess.
const BLOCKS: &[&str] = &["priv0001", "plan0001", "none0001", "", "^priv0001"];

/// Every form of edit, of what is hidden, of what is seen and of what is not there.
fn turns(session: &mut Session) -> Vec<String> {
    let said = Said { speaker: "user".to_owned(), text: "hello".to_owned() };
    vec![
        shown(session.open_conversation("open", "plan b").map(drop)),
        shown(session.due(&[])),
        shown(session.settle("plan b", Some(0.0), None)),
        shown(session.writer_status()),
        shown(session.salvage(&[said], None)),
        shown(session.organise(Upkeep::Whole, None).map(drop)),
        shown(session.backfill(None).map(drop)),
        shown(session.migrate().map(drop)),
    ]
}

fn update(session: &mut Session) -> Vec<String> {
    let revision = session.status().map(|status| status.revision).unwrap_or_default();
    let destination = |path: &str| json!({"topic_path": path, "headings": [], "position": "end"});
    let mut edits = Vec::new();
    for path in ["topics/plan.md", "topics/private/health.md", "topics/none.md", "topics/core.md"] {
        edits.push(json!({"changes": [{"path": path, "action": "write", "content": "# A\n\nB.[^e1]\n"}]}));
        edits.push(json!({"changes": [{"path": path, "action": "delete"}]}));
        let patch = format!("--- a/{path}\n+++ b/{path}\n@@ -1,1 +1,1 @@\n-# X\n+# Y\n");
        edits.push(json!({"patch": patch}));
        for id in IDS {
            let create = json!({"op": "create_record", "content": "B.", "time": "2026", "source_refs": [id],
                                "destination": destination(path)});
            edits.push(json!({"memory_changes": [create]}));
        }
    }
    for block in BLOCKS {
        edits.push(json!({"memory_changes": [{"op": "delete_record", "memory_id": block}]}));
        let to = destination("topics/plan.md");
        edits.push(json!({"memory_changes": [{"op": "move_records", "memory_ids": [block], "destination": to}]}));
    }
    let mut answers = Vec::new();
    for edit in edits {
        for base in [&*revision, "r1-00000000000000000000000000000000"] {
            let mut request = edit.clone();
            request["base_revision"] = json!(base);
            let options = UpdateOptions { provenance: None, dry_run: true };
            answers.push(shown(session.update(&request.to_string(), &options)));
        }
    }
    answers
}

/// Every word, below every prefix.
fn grep(session: &mut Session) -> Vec<String> {
    let mut answers = Vec::new();
    for path in PATHS {
        for pattern in ["submarine", "."] {
            let query = GrepQuery {
                pattern: pattern.to_owned(),
                regex: pattern == ".",
                case_sensitive: false,
                path_prefix: (*path).to_owned(),
                context: 2,
                max: 3,
            };
            answers.push(shown(session.grep(&query)));
        }
    }
    answers
}

/// Paths and prefixes that a caller may guess.
const PATHS: &[&str] = &[
    "",
    "sources",
    "sources/",
    "sources/open",
    "sources/open/_v2",
    "sources/open/_v2/public.md",
    "sources/open/_v2/plan%20b.md",
    "sources/open/_v2/plan%20b.md/x",
    "sources/open/_branches",
    "sources/open/_branches/plan%20b.jsonl",
    "sources/open/plan%20b.md",
    "sources/secret",
    "sources/SECRET",
    "sources/secret/_v2",
    "sources/secret/_v2/t.md",
    "sources/secret/_v2/t.md/x",
    "sources/secret/_v2/T.md",
    "sources/secret/_v2/none.md",
    "sources/secret/_v2/broken.md",
    "sources/secret/_v2/link.md",
    "sources/secret/link/x.md",
    "sources/secret/../open",
    "sources/D9.md",
    "sources/D8.md",
    "topics",
    "topics/plan.md",
    "topics/private/health.md",
    "core.md",
    "timeline",
    "relations.json",
    "notes.txt",
    "wiki",
    ".scriptorium",
    ".scriptorium/recollex.json",
];

fn shown<T: std::fmt::Debug>(answer: Result<T, Error>) -> String {
    match answer {
        Ok(answer) => format!("{answer:?}"),
        Err(Error::Memory(error)) => format!("{error:?}"),
        Err(error) => panic!("{error}"),
    }
}

fn query(text: &str) -> Query {
    Query { explain: true, ..Query::new(text, 50) }
}

fn search(session: &mut Session) -> Vec<String> {
    let mut queries = Vec::new();
    for text in ["keel", "submarine", "keel submarine", "plan", "Ada", "潜水艇", "common"] {
        queries.push(query(text));
        queries.push(Query { top_k: 1, ..query(text) });
    }
    for path in PATHS {
        queries.push(Query { path_prefix: Some((*path).to_owned()), ..query("keel submarine") });
    }
    for speaker in ["Ada", "Mole", "u-mole", "Mole (u-mole)"] {
        queries.push(Query { speaker: Some(speaker.to_owned()), ..query("keel submarine") });
    }
    for scope in [Scope::Source, Scope::Topic] {
        queries.push(Query { scope, ..query("submarine keel") });
    }
    queries.push(Query { from: Some("2031".to_owned()), ..query("keel submarine") });
    queries.iter().map(|query| shown(session.search(query))).collect()
}

fn recall(session: &mut Session) -> Vec<String> {
    let mut queries = Vec::new();
    for text in ["keel", "submarine", "keel submarine", "潜水艇", "common", "the"] {
        for max_memories in [1, 50] {
            queries.push(RecallQuery { text: text.to_owned(), max_tokens: 10_000, max_memories });
        }
        queries.push(RecallQuery { text: text.to_owned(), max_tokens: 40, max_memories: 0 });
    }
    queries.iter().map(|query| shown(session.recall(query))).collect()
}

fn get(session: &mut Session) -> Vec<String> {
    let anchored = ["sources/secret/_v2/t.md", "sources/open/_v2/public.md", "sources/D9.md"].iter().flat_map(|path| {
        ["source-0123456789abcdef", "source-9d9d5ba1d7a2e8fb", "d9-1"].map(|at| format!("{path}#{at}"))
    });
    let targets = IDS.iter().chain(PATHS).map(|target| (*target).to_owned()).chain(anchored);
    targets.map(|target| shown(session.get(&target, None, 0))).collect()
}

fn browse(session: &mut Session) -> Vec<String> {
    let mut answers: Vec<String> = Vec::new();
    for path in PATHS {
        answers.push(shown(session.browse(path, None, 0)));
        answers.push(shown(session.browse("", Some(path).filter(|path| !path.is_empty()).copied(), 0)));
        // Page by page: where the next one begins is told too.
        let mut cursor: Option<String> = None;
        for _ in 0..100 {
            let page = session.browse(path, cursor.as_deref(), 1);
            let next = page.as_ref().ok().and_then(|page| page.next.clone());
            answers.push(shown(page));
            match next {
                Some(next) => cursor = Some(next),
                None => break,
            }
        }
    }
    answers
}

/// Below every prefix, by every word, and page by page.
fn structure(session: &mut Session) -> Vec<String> {
    let mut answers = Vec::new();
    for path in PATHS {
        answers.push(shown(session.structure(path, "", None, 0)));
        answers.push(shown(session.structure("", "", Some(&format!("{path}:1")), 1)));
    }
    for word in ["submarine", "plan", "health", "0001"] {
        answers.push(shown(session.structure("", word, None, 0)));
    }
    answers
}

fn references(session: &mut Session) -> Vec<String> {
    let workspace = session.status().ok().and_then(|status| status.workspace).unwrap_or_default();
    let asked = BLOCKS.iter().flat_map(|block| [(workspace.clone(), *block), ("w-00000000".to_owned(), *block)]);
    let reference = |(workspace, block): (String, &str)| BlockReference { workspace, block: block.to_owned() };
    asked.map(|pair| shown(session.references(&[reference(pair)], 0))).collect()
}

fn verify(session: &mut Session) -> Vec<String> {
    let mut answers = Vec::new();
    for path in PATHS {
        match session.verify(path) {
            Ok(mut verification) => {
                while let Some(findings) = verification.step(session, u64::MAX).unwrap() {
                    answers.push(format!("{findings:?}"));
                }
                answers.push(format!("{:?}", verification.report(session).unwrap()));
            }
            Err(error) => answers.push(shown::<()>(Err(error))),
        }
    }
    answers
}

/// Turns that are there and that are not, in places that are hidden and that are not. They go into a copy.
fn archive(session: &mut Session) -> Vec<String> {
    let mut answers = Vec::new();
    for (provider, thread) in [
        ("secret", "t"),
        ("secret", "new"),
        ("SECRET", "t"),
        ("open", "plan b"),
        ("open", "Plan B"),
        ("open", "public"),
    ] {
        for text in ["The submarine is yellow.", "Something else."] {
            answers.push(shown(session.archive(&[turn(provider, thread, "m1", text)])));
        }
    }
    answers
}

fn turn(provider: &str, thread: &str, id: &str, text: &str) -> Turn {
    Turn { trust: "trusted".to_owned(), ..Turn::new(provider, thread, id, "user", text) }
}

fn spoken(turn: Turn, id: &str, name: &str) -> Turn {
    Turn { speaker_id: Some(id.to_owned()), speaker_display: Some(name.to_owned()), ..turn }
}

fn unpaired() -> UnpairedMessage {
    UnpairedMessage {
        channel: "secret".to_owned(),
        account: "a".to_owned(),
        chat: "c".to_owned(),
        message: "1".to_owned(),
        user: "u".to_owned(),
        user_display: "U".to_owned(),
        text: "hello".to_owned(),
        time: 1.8e9,
    }
}

fn runtime() -> &'static Runtime {
    static RUNTIME: OnceLock<Runtime> = OnceLock::new();
    RUNTIME.get_or_init(|| Runtime::new(RuntimeOptions { cache: Some(cache()), ..RuntimeOptions::default() }).unwrap())
}

fn open(root: &Path, tier: Tier) -> Session {
    Session::open(runtime(), root, OpenOptions::new(tier).principal("somebody")).unwrap()
}

fn write(root: &Path, path: &str, content: impl AsRef<[u8]>) {
    let target = root.join(path);
    fs::create_dir_all(target.parent().unwrap()).unwrap();
    fs::write(target, content).unwrap();
}

/// What both workspaces have.
fn plain(settings: Option<&str>) -> TempDir {
    let directory = TempDir::new().unwrap();
    let root = directory.path();
    write(root, ".scriptorium/workspace-id", "w-0a1b2c3d\n");
    if let Some(settings) = settings {
        write(root, ".scriptorium/recollex.json", settings);
    }
    let turns: Vec<Turn> = (1..=5)
        .map(|n| {
            spoken(turn("open", "public", &format!("m{n}"), &format!("keel bolt {n}, a common plan")), "u-ada", "Ada")
        })
        .collect();
    open(root, Tier::Owner).archive(&turns).unwrap();
    write(root, "sources/D8.md", "# D8\n\n<a id=\"d8-1\"></a>\n[2030-01-01] user: an old keel [D8:1]\n");
    directory
}

/// The one with something to hide.
fn with_secrets(settings: Option<&str>) -> TempDir {
    let directory = plain(settings);
    let root = directory.path();
    let mole = |turn: Turn| spoken(turn, "u-mole", "Mole");
    let secrets = [
        mole(turn("secret", "t", "m1", "The submarine is yellow.")),
        mole(turn("secret", "t", "m2", "common keel, common keel, common keel 潜水艇 2031-05-05")),
        mole(turn("open", "plan b", "m1", "keel of the submarine")),
    ];
    open(root, Tier::Owner).archive(&secrets).unwrap();
    write(root, "sources/secret/_v2/broken.md", "<!-- openprogram-source-archive:v2 -->\n\n<a id=\"x");
    write(root, "sources/secret/_v2/bytes.md", b"\xff\xfe");
    write(root, "sources/secret/_v2/_link.md", "");
    std::os::unix::fs::symlink("t.md", root.join("sources/secret/_v2/link.md")).unwrap();
    std::os::unix::fs::symlink("_v2", root.join("sources/secret/link")).unwrap();
    write(root, "sources/open/_branches/plan%20b.jsonl", "{\"id\":\"m1\",\"after\":\"nobody\"}\n");
    write(root, "sources/open/plan%20b.md", "# plan b\n\n[2031-01-01] user: submarine D9:1\n");
    write(root, "sources/D9.md", "# D9\n\n<a id=\"d9-1\"></a>\n[2031-01-01] user: the submarine [D9:1]\n");
    write(
        root,
        "topics/plan.md",
        "# Plan\n\nThe keel. ^t1 [^e1]\n\n[^e1]: [x](../sources/open/_v2/public.md#source-1) undated\n",
    );
    write(root, "topics/private/health.md", "not a topic \u{0}");
    let claim = |id: &str, source: &str| {
        format!("# Plan\n\nA submarine.[^e-1] ^{id}\n\n[^e-1]: Time: `2031-05-05`; Sources: [x]({source})\n")
    };
    write(root, "topics/private/sub.md", claim("priv0001", "secret/t/m1"));
    write(root, "topics/keel.md", claim("plan0001", "open/public/m1"));
    write(root, "core.md", "# Core\n\nThe submarine is yellow.\n");
    write(root, "timeline/2031.md", "submarine\n");
    write(root, "relations.json", "{}");
    write(root, "notes.txt", "submarine");
    write(root, "wiki/page.md", "submarine");
    directory
}

#[test]
fn every_function_of_a_session_has_its_row() {
    let rows: BTreeSet<String> = ROWS.iter().map(|(name, _)| (*name).to_owned()).collect();
    assert_eq!(rows.len(), ROWS.len());
    assert_eq!(rows, session_functions(), "rows of this test (left) and wit/workspace.wit (right)");
}

#[test]
fn a_paired_caller_cannot_tell_what_is_hidden_from_what_is_not_there() {
    let (hiding, empty) = (with_secrets(Some(SETTINGS)), plain(Some(SETTINGS)));
    let answers = |root: &TempDir, tier| -> BTreeMap<&str, Vec<String>> {
        ROWS.iter().map(|(name, ask)| (*name, ask(&mut open(root.path(), tier)))).collect()
    };
    let (seen, expected) = (answers(&hiding, Tier::Paired), answers(&empty, Tier::Paired));
    let mut compared = 0;
    for (name, expected) in expected {
        for (number, (seen, expected)) in seen[name].iter().zip(&expected).enumerate() {
            assert_eq!(seen, expected, "{name}, question {number}");
            compared += 1;
        }
        assert_eq!(seen[name].len(), expected.len(), "{name}");
    }
    assert!(compared > 250, "{compared} answers");

    // The test can fail: whoever may see it sees the difference in each verb that reads, and so does a paired caller where
    // nothing is narrowed.
    for (tier, settings) in [(Tier::Owner, Some(SETTINGS)), (Tier::Paired, None)] {
        let (hiding, empty) = (with_secrets(settings), plain(settings));
        for (name, ask) in
            ROWS.iter().filter(|(name, _)| ["status", "search", "get", "browse", "verify"].contains(name))
        {
            let ask = |root: &TempDir| ask(&mut open(root.path(), tier));
            assert_ne!(ask(&hiding), ask(&empty), "{name} as {tier:?}");
        }
    }
}

/// What is left to see is found and read as ever.
#[test]
fn what_is_not_narrowed_is_there() {
    let hiding = with_secrets(Some(SETTINGS));
    let mut session = open(hiding.path(), Tier::Paired);
    let hits = session.search(&query("keel")).unwrap().hits;
    assert_eq!(hits.iter().filter(|hit| hit.id.starts_with("open/public/")).count(), 5);
    assert!(session.get("open/public/m1", None, 0).is_ok());
    let listed = session.browse("", None, 0).unwrap();
    let paths: Vec<&str> = listed.files.iter().map(|file| file.path.as_str()).collect();
    assert_eq!(paths, ["sources/D8.md", "sources/open/_v2/public.md"]);
    assert_eq!(session.status().unwrap().counts.frames, 5);
}

#[test]
fn settings_that_cannot_be_read_shut_paired_callers_out_and_the_owner_is_told() {
    for settings in [
        "",
        "{",
        "[]",
        "[{}]",
        "{\"audience\":[]}",
        "{\"audience\":{\"owner\":[\"sources/secret\"],\"paired\":[]}}",
        "{\"audience\":{\"owner\":[\"..\"]}}",
        "{\"more\":1}",
    ] {
        let directory = with_secrets(Some(settings));
        let root = directory.path();
        let mut paired = open(root, Tier::Paired);
        for (name, ask) in
            ROWS.iter().filter(|(name, _)| ["status", "search", "get", "browse", "verify", "archive"].contains(name))
        {
            let answers = ask(&mut paired);
            // Questions that make no sense are answered as ever.
            let told: Vec<&String> = answers
                .iter()
                .filter(|answer| {
                    !answer.contains("audience-unreadable")
                        && !answer.contains("internal-path")
                        && !answer.contains("PATH_OUTSIDE_WORKSPACE")
                })
                .collect();
            assert_eq!(told, [""; 0], "{settings}: {name}");
        }
        let mut owner = open(root, Tier::Owner);
        let status = owner.status().unwrap();
        let told = status.reasons.iter().find(|finding| finding.code == "bad-settings-file").expect("a finding");
        assert_eq!(told.path.as_deref(), Some(".scriptorium/recollex.json"));
        assert_eq!(status.health, recollex::types::Health::Degraded);
        let mut verification = owner.verify("").unwrap();
        let mut codes = Vec::new();
        while let Some(findings) = verification.step(&mut owner, u64::MAX).unwrap() {
            codes.extend(findings.into_iter().map(|finding| finding.code));
        }
        assert!(codes.iter().any(|code| code == "bad-settings-file"), "{settings}");
        assert!(!verification.report(&mut owner).unwrap().ok);
        // And nothing is written over what nobody could read.
        let error = owner.narrow_audience("topics/private").unwrap_err();
        assert_eq!(error.reason(), Some("audience-unreadable"));
        assert_eq!(fs::read_to_string(root.join(".scriptorium/recollex.json")).unwrap(), settings);
    }
    // A link is no file, wherever it leads.
    let directory = plain(None);
    let link = directory.path().join(".scriptorium/recollex.json");
    write(directory.path(), "elsewhere.json", "{}");
    std::os::unix::fs::symlink("../elsewhere.json", link).unwrap();
    let error = open(directory.path(), Tier::Paired).status().unwrap_err();
    assert_eq!(error.reason(), Some("audience-unreadable"));
}

#[test]
fn the_owner_narrows_and_widens() {
    let directory = with_secrets(None);
    let root = directory.path();
    let mut owner = open(root, Tier::Owner);
    assert_eq!(owner.audience().unwrap().owner_only, [""; 0]);
    let change = owner.narrow_audience("/sources/Secret/").unwrap();
    assert_eq!((change.prefix.as_str(), change.changed), ("sources/Secret", true));
    assert!(change.files >= 3, "{change:?}");
    assert!(!owner.narrow_audience("sources/secret/_v2/t.md").unwrap().changed);
    assert_eq!(owner.audience().unwrap().owner_only, ["sources/Secret"]);
    assert_eq!(owner.narrow_audience("nowhere").unwrap().files, 0);
    let file = fs::read_to_string(root.join(".scriptorium/recollex.json")).unwrap();
    assert_eq!(
        file,
        "{\n  \"audience\": {\n    \"owner\": [\n      \"nowhere\",\n      \"sources/Secret\"\n    ]\n  }\n}\n"
    );
    assert!(open(root, Tier::Paired).get("secret/t/m1", None, 0).is_err());

    let error = owner.widen_audience("sources/secret/_v2/t.md").unwrap_err();
    assert_eq!(error.reason(), Some("narrowed-above"));
    assert!(owner.widen_audience("sources/secret").unwrap().changed);
    assert!(!owner.widen_audience("sources/secret").unwrap().changed);
    assert!(owner.widen_audience("nowhere").unwrap().changed);
    assert!(open(root, Tier::Paired).get("secret/t/m1", None, 0).is_ok());
    for prefix in ["", "/", "a/../b", ".git/x", ".scriptorium"] {
        assert_eq!(owner.narrow_audience(prefix).unwrap_err().reason(), Some("invalid-prefix"), "{prefix:?}");
    }
}

/// One session without a tier may do nothing at all.
#[test]
fn without_a_tier_every_function_is_refused() {
    let directory = plain(None);
    let nobody = OpenOptions { tier: None, ..OpenOptions::new(Tier::Owner) };
    for (name, ask) in ROWS {
        let mut session = Session::open(runtime(), directory.path(), nobody.clone()).unwrap();
        for answer in ask(&mut session) {
            assert!(answer.contains("AUTHORITY_TIER_MISSING"), "{name}: {answer}");
        }
    }
}
