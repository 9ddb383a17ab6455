//! Imports through the built component, over a real directory: what is kept, what repeating it does, what ends it.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use recollex::lock::{FileLock, Lock as _};
use recollex::store::{Directory, Store as _};
use recollex::types::{self, Severity, Tier, Trust};
use recollex::workspace::{ImportFormat, ImportOptions, ImportedConversation};
use recollex::{Error, Importing, OpenOptions, Runtime, RuntimeOptions, Session};
use recollex_tests::built;

use crate::support;

fn runtime() -> Runtime {
    Runtime::new(RuntimeOptions { cache: Some(support::cache()), ..RuntimeOptions::default() }).unwrap()
}

fn open(root: &Path) -> Session {
    open_with(root, OpenOptions::new(Tier::Owner))
}

fn open_with(root: &Path, options: OpenOptions) -> Session {
    Session::open(&runtime(), root, options).unwrap()
}

fn options(format: ImportFormat) -> ImportOptions {
    ImportOptions { format, provider: None, thread: None, trust: Trust::Pending, dry_run: false }
}

fn fixture(path: &str) -> String {
    fs::read_to_string(built::repository().join("tests/fixtures/import").join(path)).unwrap()
}

/// Takes one file in, in two pieces.
fn import(session: &mut Session, options: &ImportOptions, file: &str, text: &str) -> Vec<ImportedConversation> {
    try_import(session, options, file, text).unwrap()
}

fn try_import(
    session: &mut Session,
    options: &ImportOptions,
    file: &str,
    text: &str,
) -> Result<Vec<ImportedConversation>, Error> {
    let mut importing = session.start_import(options)?;
    let half = text.floor_char_boundary(text.len() / 2);
    let mut taken = importing.push_text(session, file, &text[..half], false)?;
    taken.append(&mut importing.push_bytes(session, file, &text.as_bytes()[half..], true)?);
    taken.append(&mut finish(&mut importing, session)?);
    Ok(taken)
}

/// All that is left. Of an error, what came before it is lost to the caller.
fn finish(importing: &mut Importing, session: &mut Session) -> Result<Vec<ImportedConversation>, Error> {
    let mut taken = Vec::new();
    loop {
        let mut more = importing.finish(session)?;
        if more.is_empty() {
            return Ok(taken);
        }
        taken.append(&mut more);
    }
}

fn left_out(one: &ImportedConversation) -> u64 {
    one.left_out.iter().map(|one| one.count).sum()
}

/// Archived, already there, differing.
fn counts(taken: &[ImportedConversation]) -> (u64, u64, Vec<&str>) {
    let differs = taken.iter().flat_map(|one| one.differs.iter().map(String::as_str)).collect();
    (taken.iter().map(|one| one.archived).sum(), taken.iter().map(|one| one.already).sum(), differs)
}

fn findings(session: &mut Session) -> Vec<String> {
    let mut verification = session.verify("").unwrap();
    let mut codes = Vec::new();
    while let Some(found) = verification.step(session, u64::MAX).unwrap() {
        codes.extend(found.into_iter().filter(|one| one.severity != Severity::Info).map(|one| one.code));
    }
    codes
}

/// `id after` lines of a thread's branches.
fn branches(root: &Path, provider: &str, thread: &str) -> String {
    let path = root.join(format!("sources/{provider}/_branches/{thread}.jsonl"));
    fs::read_to_string(path).unwrap_or_default()
}

/// A ChatGPT export of one conversation: nodes as `id<parent`, each saying its id.
fn chatgpt(thread: &str, nodes: &str) -> String {
    let nodes: Vec<String> = nodes
        .split_whitespace()
        .map(|node| {
            let (id, parent) = node.split_once('<').unwrap();
            let (id, text) = id.split_once('=').unwrap_or((id, id));
            let parent = if parent == "-" { "null".to_owned() } else { format!("{parent:?}") };
            format!(
                r#""{id}":{{"parent":{parent},"children":[],"message":{{"author":{{"role":"user"}},"create_time":1700000000.0,"content":{{"content_type":"text","parts":["I am {text}."]}},"recipient":"all","metadata":{{}}}}}}"#
            )
        })
        .collect();
    format!(r#"{{"title":"T","conversation_id":"{thread}","mapping":{{{}}}}}"#, nodes.join(","))
}

#[test]
fn every_format_is_kept_whole_and_repeating_it_changes_nothing() {
    let place = tempfile::tempdir().unwrap();
    let mut session = open_with(
        place.path(),
        OpenOptions { time_zone: Some("Europe/Berlin".into()), ..OpenOptions::new(Tier::Owner) },
    );
    let cases = [
        (ImportFormat::Chatgpt, "chatgpt/2023.json", 9, 2),
        (ImportFormat::Chatgpt, "chatgpt/2025.json", 4, 1),
        (ImportFormat::Claude, "claude/2023.json", 3, 2),
        (ImportFormat::Claude, "claude/2025.json", 6, 1),
        (ImportFormat::ClaudeCode, "claude-code/session.jsonl", 10, 2),
    ];
    for (format, file, records, conversations) in cases {
        let text = fixture(file);
        let taken = import(&mut session, &options(format), file, &text);
        assert_eq!((taken.len(), counts(&taken)), (conversations, (records, 0, vec![])), "{file}");
        assert!(taken.iter().all(|one| one.problem.is_none() && one.file == file), "{taken:?}");
        assert_eq!(text.as_bytes()[taken[0].offset as usize], b'{');
        let before = support::snapshot(&place.path().join("sources"));
        let again = import(&mut session, &options(format), file, &text);
        assert_eq!(counts(&again), (0, records, vec![]), "{file}");
        assert_eq!(support::snapshot(&place.path().join("sources")), before, "{file}");
    }
    let mut importing = session.start_import(&options(ImportFormat::Openprogram)).unwrap();
    let directory = built::repository().join("tests/fixtures/import/openprogram/local_42/history");
    let mut files: Vec<_> = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    for path in files {
        let file = format!("local_42/history/{}", path.file_name().unwrap().to_str().unwrap());
        let taken = importing.push_bytes(&mut session, &file, &fs::read(&path).unwrap(), true).unwrap();
        assert!(taken.is_empty(), "a session is complete when another begins");
    }
    let taken = finish(&mut importing, &mut session).unwrap();
    assert_eq!(counts(&taken), (6, 0, vec![]));
    assert_eq!((taken[0].branches, left_out(&taken[0])), (2, 7));
    let archive = fs::read_to_string(place.path().join("sources/openprogram/_v2/local_42.md")).unwrap();
    assert!(archive.contains("[2023-11-14T23:13:20+01:00] Owner (owner/local): Remind me to descale the kettle."));
    assert_eq!(findings(&mut session), [""; 0]);
    assert_eq!(
        branches(place.path(), "chatgpt", "c0ffee00-0000-4000-8000-000000000001"),
        "{\"id\":\"a7\",\"after\":\"a6\"}\n{\"id\":\"a5\",\"after\":\"a2\"}\n"
    );
    for (path, mode, _) in support::snapshot(&place.path().join("sources")) {
        let expected = if path.extension().is_some() { 0o600 } else { 0o700 };
        assert_eq!(mode & 0o777, expected, "{}", path.display());
    }
}

#[test]
fn an_export_that_grows_shrinks_or_is_edited() {
    let place = tempfile::tempdir().unwrap();
    let mut session = open(place.path());
    let chat = options(ImportFormat::Chatgpt);
    let import = |session: &mut Session, nodes: &str| {
        let taken = import(session, &chat, "c.json", &chatgpt("t", nodes));
        let (archived, already, differs) = counts(&taken);
        (archived, already, differs.join(" "), taken[0].branches)
    };
    assert_eq!(import(&mut session, "a<- b<a c<b"), (3, 0, String::new(), 1));
    // On, and on an old branch.
    assert_eq!(import(&mut session, "a<- b<a c<b d<c x<a"), (2, 3, String::new(), 2));
    // Shrunk: what is gone stays, and what comes behind it still does.
    assert_eq!(import(&mut session, "c<b d<c e<d"), (1, 2, String::new(), 1));
    assert_eq!(import(&mut session, "y<b"), (1, 0, String::new(), 1));
    // Edited under its id.
    assert_eq!(import(&mut session, "a<- b=other<a c<b f<b"), (1, 2, "chatgpt/t/b".into(), 2));
    assert_eq!(
        branches(place.path(), "chatgpt", "t"),
        "{\"id\":\"x\",\"after\":\"a\"}\n{\"id\":\"d\",\"after\":\"c\"}\n{\"id\":\"e\",\"after\":\"d\"}\n\
         {\"id\":\"y\",\"after\":\"b\"}\n{\"id\":\"f\",\"after\":\"b\"}\n"
    );
    let archive = fs::read_to_string(place.path().join("sources/chatgpt/_v2/t.md")).unwrap();
    assert_eq!(archive.matches("<a id=").count(), 8);
    assert!(archive.contains("I am b.") && !archive.contains("other"));
    assert_eq!(findings(&mut session), [""; 0]);
    // A line that lost its end, as after a crash of another program, does not swallow the next.
    let path = place.path().join("sources/chatgpt/_branches/t.jsonl");
    let lines = fs::read_to_string(&path).unwrap();
    fs::write(&path, lines.trim_end()).unwrap();
    assert_eq!(import(&mut session, "a<- g<a").0, 1);
    assert_eq!(branches(place.path(), "chatgpt", "t"), format!("{lines}{{\"id\":\"g\",\"after\":\"a\"}}\n"));
    assert_eq!(findings(&mut session), [""; 0]);
    fs::write(&path, format!("{lines}nonsense\n{{\"id\":\"nobody\",\"after\":null}}\n")).unwrap();
    assert_eq!(findings(&mut session), ["bad-branch-line", "unknown-branch-record"]);
}

#[test]
fn one_bad_conversation_never_loses_the_rest() {
    let place = tempfile::tempdir().unwrap();
    let mut session = open(place.path());
    let chat = options(ImportFormat::Chatgpt);
    fs::create_dir_all(place.path().join("sources/chatgpt/_v2")).unwrap();
    fs::write(place.path().join("sources/chatgpt/_v2/damaged.md"), "not an archive\n").unwrap();
    let good = |thread: &str| chatgpt(thread, "a<- b<a");
    let export = format!(
        "[{},{},{},{},{{\"mapping\":{{}}}},{},!{},{},{}",
        good("Case"),
        good("case"),
        good("ca\u{301}fe"),
        good("damaged"),
        good("c\u{e1}fe"),
        good("spoilt").replace("\"parent\":null", "\"parent\":nul"),
        good("last"),
        &good("cut")[..40],
    );
    let taken = import(&mut session, &chat, "c.json", &export);
    let told: Vec<(&str, u64, &str)> = taken
        .iter()
        .map(|one| (&*one.thread, one.archived, one.problem.as_ref().map_or("", |problem| &*problem.reason)))
        .collect();
    let expected = [
        ("Case", 2, ""),
        ("case", 0, "path-collision"),
        ("ca\u{301}fe", 2, ""),
        ("damaged", 0, "damaged-archive"),
        ("", 0, "conversation-without-id"),
        // Encoded in a path, normal forms are two names.
        ("c\u{e1}fe", 2, ""),
        ("", 0, "damaged-export"),
        ("last", 2, ""),
    ];
    for one in expected {
        assert!(told.contains(&one), "{one:?} is not in {told:?}");
    }
    assert!(
        told.iter().all(|(thread, archived, reason)| *archived == 2 || !reason.is_empty() && *thread != "last"),
        "{told:?}"
    );
    let problem = taken.iter().find(|one| one.thread == "damaged").unwrap().problem.as_ref().unwrap();
    assert_eq!(problem.path.as_deref(), Some("sources/chatgpt/_v2/damaged.md"));
    assert_eq!(findings(&mut session), ["missing-marker"]);
}

#[test]
fn a_large_conversation_is_kept_in_parts_that_are_one_conversation() {
    let place = tempfile::tempdir().unwrap();
    let mut session = open_with(place.path(), OpenOptions::new(Tier::Owner).setting("limits.batch-bytes", "1000"));
    let nodes: Vec<String> =
        (0..20).map(|at| if at == 0 { "n0<-".into() } else { format!("n{at}<n{}", at - 1) }).collect();
    let taken = import(&mut session, &options(ImportFormat::Chatgpt), "c.json", &chatgpt("t", &nodes.join(" ")));
    assert_eq!((taken.len(), counts(&taken)), (1, (20, 0, vec![])));
    let lines = branches(place.path(), "chatgpt", "t");
    assert!(lines.lines().count() > 4, "each part but the first says where it goes on:\n{lines}");
    // The same records as in one commit.
    let other = tempfile::tempdir().unwrap();
    let mut whole = open(other.path());
    import(&mut whole, &options(ImportFormat::Chatgpt), "c.json", &chatgpt("t", &nodes.join(" ")));
    let archive = |root: &Path| fs::read(root.join("sources/chatgpt/_v2/t.md")).unwrap();
    assert_eq!(archive(place.path()), archive(other.path()));
    assert_eq!(branches(other.path(), "chatgpt", "t"), "");
    assert_eq!(findings(&mut session), [""; 0]);
}

/// Lines of `archive`'s shape, each a conversation of its own: `provider/thread`.
fn lines(threads: &[&str]) -> String {
    let line = |thread: &&str| {
        let (provider, thread) = thread.split_once('/').unwrap();
        format!(
            "{{\"provider\":\"{provider}\",\"thread\":\"{thread}\",\"id\":\"1\",\"role\":\"user\",\"text\":\"x\"}}\n"
        )
    };
    threads.iter().map(line).collect()
}

#[test]
fn conversations_share_commits_and_are_kept_each_by_itself() {
    let threads: Vec<String> = (0..10).map(|at| format!("p/t{at}")).collect();
    let text = lines(&threads.iter().map(String::as_str).collect::<Vec<_>>());
    let generation = |root: &Path| Directory::new(root).generation().unwrap();
    let settings = [("import.commit-conversations", "3", 4), ("import.commit-bytes", "1", 10), ("get.lines", "7", 1)];
    let mut trees = Vec::new();
    for (name, value, commits) in settings {
        let place = tempfile::tempdir().unwrap();
        let mut session = open_with(place.path(), OpenOptions::new(Tier::Owner).setting(name, value));
        let taken = import(&mut session, &options(ImportFormat::Jsonl), "a", &text);
        assert_eq!((taken.len(), counts(&taken)), (10, (10, 0, vec![])));
        assert!(taken.iter().zip(&threads).all(|(one, thread)| format!("p/{}", one.thread) == *thread), "{taken:?}");
        assert_eq!(generation(place.path()), commits, "{name}");
        // Again, and nothing is committed.
        assert_eq!(counts(&import(&mut session, &options(ImportFormat::Jsonl), "a", &text)), (0, 10, vec![]));
        assert_eq!(generation(place.path()), commits, "{name}");
        assert_eq!(findings(&mut session), [""; 0]);
        let archives = |thread: &String| fs::read(place.path().join(format!("sources/p/_v2/{}.md", &thread[2..])));
        trees.push(threads.iter().map(|thread| archives(thread).unwrap()).collect::<Vec<_>>());
    }
    assert!(trees.iter().all(|tree| *tree == trees[0]));
}

/// However many conversations one piece completes, a call keeps what one commit takes: so it has a bound in time, and what
/// was kept is told before the next is.
#[test]
fn a_call_makes_one_commit() {
    let threads: Vec<String> = (0..95).map(|at| format!("p/t{at}")).collect();
    let text = lines(&threads.iter().map(String::as_str).collect::<Vec<_>>());
    for dry_run in [true, false] {
        let place = tempfile::tempdir().unwrap();
        let settings = OpenOptions::new(Tier::Owner).setting("import.commit-conversations", "10");
        let mut session = open_with(place.path(), settings);
        let options = ImportOptions { dry_run, ..options(ImportFormat::Jsonl) };
        let mut importing = session.start_import(&options).unwrap();
        assert_eq!(importing.push_text(&mut session, "a", &text, false).unwrap().len(), 0);
        let mut told = vec![importing.push_text(&mut session, "a", "", true).unwrap()];
        // On with the next file, and then to the end.
        told.push(importing.push_text(&mut session, "b", "", false).unwrap());
        told.push(importing.push_text(&mut session, "b", &lines(&["p/other"]), true).unwrap());
        told.push(importing.keep(&mut session).unwrap());
        while told.last().is_some_and(|last| !last.is_empty()) {
            told.push(importing.finish(&mut session).unwrap());
        }
        let sizes: Vec<usize> = told.iter().map(Vec::len).collect();
        assert_eq!(sizes, [10, 10, 10, 10, 10, 10, 10, 10, 10, 6, 0], "dry run {dry_run}");
        let all: Vec<ImportedConversation> = told.into_iter().flatten().collect();
        let expected = threads.iter().map(|thread| &thread[2..]).chain(["other"]);
        assert!(all.iter().map(|one| one.thread.as_str()).eq(expected), "{all:?}");
        assert_eq!(counts(&all), (96, 0, vec![]));
        let generation = if dry_run { 0 } else { 10 };
        assert_eq!(Directory::new(place.path()).generation().unwrap(), generation);
    }
}

#[test]
fn what_cannot_be_kept_costs_no_other_conversation_of_its_commit() {
    let place = tempfile::tempdir().unwrap();
    let mut session = open(place.path());
    let threads = ["p/a", "p/b", "p/B", "p/c", "p/d", "p/A", "p/e"];
    let taken = import(&mut session, &options(ImportFormat::Jsonl), "a", &lines(&threads));
    let told: Vec<_> = taken
        .iter()
        .map(|one| (one.thread.as_str(), one.archived, one.problem.as_ref().map(|problem| problem.reason.as_str())))
        .collect();
    let collides = Some("path-collision");
    let expected = [
        ("a", 1, None),
        ("b", 1, None),
        ("B", 0, collides),
        ("c", 1, None),
        ("d", 1, None),
        ("A", 0, collides),
        ("e", 1, None),
    ];
    assert_eq!(told, expected);
    assert_eq!(findings(&mut session), [""; 0]);
}

#[test]
fn who_stops_keeps_what_is_complete() {
    let place = tempfile::tempdir().unwrap();
    let mut session = open(place.path());
    let text = format!("[{},{}", chatgpt("one", "m1<-"), chatgpt("two", "m1<-"));
    let cut = &text[..text.len() - 9];
    let mut importing = session.start_import(&options(ImportFormat::Chatgpt)).unwrap();
    assert_eq!(importing.push_text(&mut session, "c.json", cut, false).unwrap().len(), 0, "it waits for others");
    assert_eq!(support::snapshot(place.path()), []);
    let kept = importing.keep(&mut session).unwrap();
    assert_eq!((kept.len(), kept[0].thread.as_str(), kept[0].archived), (1, "one", 1));
    assert_eq!(importing.keep(&mut session).unwrap().len(), 0);
    // And goes on, if that is wanted.
    importing.push_text(&mut session, "c.json", &text[cut.len()..], true).unwrap();
    let rest = finish(&mut importing, &mut session).unwrap();
    assert_eq!(rest.iter().map(|one| one.archived).sum::<u64>(), 1);
}

#[test]
fn what_was_kept_is_told_before_the_error_behind_it_also_at_the_end() {
    let place = tempfile::tempdir().unwrap();
    let mut session = open_with(place.path(), OpenOptions::new(Tier::Owner).setting("import.preview-records", "2"));
    let dry = ImportOptions { dry_run: true, ..options(ImportFormat::Jsonl) };
    let mut importing = session.start_import(&dry).unwrap();
    let text = lines(&["p/a", "p/b", "q/c", "p/d"]);
    assert_eq!(importing.push_text(&mut session, "a", &text, false).unwrap().len(), 0);
    let kept = importing.finish(&mut session).unwrap();
    assert_eq!(kept.iter().map(|one| (one.thread.as_str(), one.archived)).collect::<Vec<_>>(), [("a", 1), ("b", 1)]);
    match importing.finish(&mut session).unwrap_err() {
        Error::Memory(types::Error::Limit(limit)) => {
            assert_eq!((limit.name.as_str(), limit.allowed, limit.asked), ("import.preview-records", 2, 3));
        }
        error => panic!("{error:?}"),
    }
    importing.finish(&mut session).unwrap_err();
    assert_eq!(support::snapshot(place.path()), []);
}

/// A link, a pipe or a directory at the place of one conversation, or of one provider, costs that one and no other.
#[test]
fn what_lies_in_the_way_of_one_conversation_costs_no_other() {
    let place = tempfile::tempdir().unwrap();
    let outside = tempfile::tempdir().unwrap();
    fs::create_dir_all(place.path().join("sources/p/_v2")).unwrap();
    std::os::unix::fs::symlink(outside.path(), place.path().join("sources/q")).unwrap();
    std::os::unix::fs::symlink(outside.path().join("x.md"), place.path().join("sources/p/_v2/b.md")).unwrap();
    fs::create_dir_all(place.path().join("sources/p/_v2/e.md/inside")).unwrap();
    fs::write(place.path().join("sources/p/_v2/e.md/inside/x.md"), "x").unwrap();
    let mut session = open(place.path());
    let text = lines(&["p/a", "p/b", "q/c", "p/d", "p/e", "p/f"]);
    let told = |taken: &[ImportedConversation]| -> Vec<(String, u64, Option<String>)> {
        let reason = |one: &ImportedConversation| one.problem.as_ref().map(|problem| problem.reason.clone());
        taken.iter().map(|one| (one.thread.clone(), one.archived, reason(one))).collect()
    };
    let dry = ImportOptions { dry_run: true, ..options(ImportFormat::Jsonl) };
    let preview = told(&import(&mut session, &dry, "a", &text));
    let done = told(&import(&mut session, &options(ImportFormat::Jsonl), "a", &text));
    let expected = [
        ("a", 1, None),
        ("b", 0, Some("denied")),
        ("c", 0, Some("denied")),
        ("d", 1, None),
        ("e", 0, Some("not-a-directory")),
        ("f", 1, None),
    ];
    let expected = expected.map(|(thread, archived, reason)| (thread.to_owned(), archived, reason.map(str::to_owned)));
    assert_eq!(done, expected);
    assert_eq!(preview, expected);
    assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 0);
}

#[test]
fn a_dry_run_writes_nothing_and_takes_no_lock() {
    let place = tempfile::tempdir().unwrap();
    let mut session = open_with(place.path(), OpenOptions::new(Tier::Owner).setting("lock.wait-ms", "0"));
    let dry = ImportOptions { dry_run: true, ..options(ImportFormat::Claude) };
    let text = fixture("claude/2025.json");
    assert_eq!(counts(&import(&mut session, &dry, "c.json", &text)), (6, 0, vec![]));
    assert_eq!(support::snapshot(place.path()), []);
    import(&mut session, &options(ImportFormat::Claude), "c.json", &text);
    let held = FileLock::new(place.path()).acquire(0, "a test").unwrap();
    let before = support::snapshot(place.path());
    assert_eq!(counts(&import(&mut session, &dry, "c.json", &text)), (0, 6, vec![]));
    assert_eq!(support::snapshot(place.path()), before);
    // In earnest it needs the lock, and after that error it takes nothing more.
    let mut importing = session.start_import(&options(ImportFormat::Claude)).unwrap();
    assert_eq!(importing.push_text(&mut session, "c.json", &text, true).unwrap().len(), 0);
    let error = importing.keep(&mut session).unwrap_err();
    assert!(matches!(&error, Error::Memory(types::Error::Locked(_))), "{error:?}");
    let error = importing.push_text(&mut session, "d.json", &text, true).unwrap_err();
    assert!(
        matches!(&error, Error::Memory(types::Error::Invalid(problem)) if problem.reason == "import-ended"),
        "{error:?}"
    );
    drop(held);
    // Beginning again repeats nothing.
    assert_eq!(counts(&import(&mut session, &options(ImportFormat::Claude), "c.json", &text)), (0, 6, vec![]));
}

#[test]
fn what_the_medium_cannot_do_ends_the_import() {
    let text = fixture("chatgpt/2023.json");
    let reason = |error: Error| match error {
        Error::Memory(types::Error::Store(problem)) => problem.reason,
        Error::Memory(types::Error::Refused(problems)) => problems[0].reason.clone(),
        error => panic!("{error:?}"),
    };
    // A file where a directory should be is the conversations' problem: another provider's could be kept.
    let place = tempfile::tempdir().unwrap();
    fs::create_dir_all(place.path().join("sources")).unwrap();
    fs::write(place.path().join("sources/chatgpt"), "a file").unwrap();
    let taken = import(&mut open(place.path()), &options(ImportFormat::Chatgpt), "c.json", &text);
    assert!(taken.iter().all(|one| one.archived == 0 && one.problem.as_ref().unwrap().reason == "not-a-directory"));
    // A link out of the workspace.
    let place = tempfile::tempdir().unwrap();
    let outside = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink(outside.path(), place.path().join("sources")).unwrap();
    match try_import(&mut open(place.path()), &options(ImportFormat::Chatgpt), "c.json", &text) {
        Ok(taken) => assert!(taken.iter().all(|one| one.archived == 0 && one.problem.is_some()), "{taken:?}"),
        Err(error) => drop(reason(error)),
    }
    assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 0);
    // A directory that may not be written, unless whoever runs this may write everything.
    let place = tempfile::tempdir().unwrap();
    let mut session = open(place.path());
    session.init().unwrap();
    fs::set_permissions(place.path(), fs::Permissions::from_mode(0o500)).unwrap();
    if fs::write(place.path().join("probe"), "").is_err() {
        let error = try_import(&mut session, &options(ImportFormat::Chatgpt), "c.json", &text).unwrap_err();
        assert_eq!(reason(error), "denied");
        assert!(!place.path().join("sources").exists());
    }
    fs::set_permissions(place.path(), fs::Permissions::from_mode(0o700)).unwrap();
}

#[test]
fn misuse_is_told() {
    let place = tempfile::tempdir().unwrap();
    let reason = |error: Error| match error {
        Error::Memory(types::Error::Invalid(problem)) => problem.reason,
        Error::Memory(types::Error::Refused(problems)) => problems[0].reason.clone(),
        error => panic!("{error:?}"),
    };
    let mut session = open(place.path());
    let mut importing = session.start_import(&options(ImportFormat::Jsonl)).unwrap();
    importing.push_text(&mut session, "a", "", false).unwrap();
    assert_eq!(reason(importing.push_text(&mut session, "b", "", false).unwrap_err()), "file-still-open");
    importing.push_text(&mut session, "a", "", true).unwrap();
    importing.push_text(&mut session, "b", "", true).unwrap();
    importing.finish(&mut session).unwrap();
    for provider in ["..", "a/b", "", "a]"] {
        let options = ImportOptions { provider: Some(provider.into()), ..options(ImportFormat::Claude) };
        assert_eq!(reason(session.start_import(&options).err().unwrap()), "invalid-provider", "{provider:?}");
    }
    let mut paired = open_with(place.path(), OpenOptions::new(Tier::Paired));
    assert_eq!(reason(paired.start_import(&options(ImportFormat::Jsonl)).err().unwrap()), "owner-only");
    let zone = OpenOptions { time_zone: Some("Mars/Olympus".into()), ..OpenOptions::new(Tier::Owner) };
    assert_eq!(reason(Session::open(&runtime(), place.path(), zone).unwrap_err()), "unknown-time-zone");
    assert_eq!(support::snapshot(place.path()), []);
}
