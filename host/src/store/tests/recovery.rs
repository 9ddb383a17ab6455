//! Faults and deaths at every step of a commit and of its recovery; and other programs that come between.

use rustix::io::Errno;

use super::disk::fault;
use super::*;

/// Files of every edit kind, before and after one commit over all of them.
const BEFORE: &[(&str, &str)] = &[
    ("append", "one\n"),
    ("deep/gone/file", "gone"),
    ("empty", ""),
    ("moved", "moved"),
    ("put", "old"),
    ("splice", "a\u{6c49}c"),
    ("untouched", "u"),
];
const AFTER: &[(&str, &str)] = &[
    ("append", "one\ntwo\n\u{6c49}"),
    ("empty", "begun"),
    ("fresh/dir/file", "fresh"),
    ("put", "new"),
    ("splice", "A\u{6c49}"),
    ("to/here", "moved"),
    ("untouched", "u"),
];

fn changes() -> Vec<Change> {
    vec![
        put("put", "new"),
        append("append", 4, "two\n\u{6c49}"),
        append("empty", 0, "begun"),
        put("fresh/dir/file", "fresh"),
        splice("splice", &[(0, 1, "A"), (4, 1, "")]),
        delete("deep/gone/file"),
        rename("moved", "to/here"),
        Change { area: Area::Runtime, ..put("state.json", "{}") },
    ]
}

fn state(files: &[(&str, &str)]) -> BTreeMap<String, String> {
    files.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())).collect()
}

/// What other programs see: the files themselves.
fn raw(space: &Space) -> BTreeMap<String, String> {
    let root = space.root();
    snapshot(root)
        .into_iter()
        .filter(|(path, _)| path.is_file() && !path.starts_with(root.join(".scriptorium")))
        .map(|(path, (_, content))| {
            let path = path.strip_prefix(root).unwrap().to_str().unwrap().to_owned();
            (path, String::from_utf8(content).unwrap())
        })
        .collect()
}

fn runtime(space: &Space) -> Option<String> {
    text(&space.another(), Area::Runtime, "state.json", 9).ok()
}

/// Commits with a guard that outlives the fault, as a process that dies does not give its lock back in order.
fn faulty(space: &Space, run: impl FnOnce(&dyn FnOnceCommit) -> (Result<Committed, CommitError>, bool)) -> Faulty {
    let guard = space.guard();
    let base = space.store.generation().unwrap();
    let (result, happened) = run(&|| space.store.commit(&*guard, base, &changes(), &About::default()));
    Faulty { result, happened }
}

struct Faulty {
    result: Result<Committed, CommitError>,
    happened: bool,
}

trait FnOnceCommit: Fn() -> Result<Committed, CommitError> {}
impl<T: Fn() -> Result<Committed, CommitError>> FnOnceCommit for T {}

/// Whole, and the same for every reader: through the journal, after recovery, and to other programs then.
fn check_whole(space: &Space, is_committed: bool, tidies: bool, at: &str) -> bool {
    let seen = contents(&space.another());
    let committed = seen == state(AFTER);
    assert!(committed || seen == state(BEFORE), "{at}: half a commit: {seen:?}");
    assert_eq!(committed, is_committed, "{at}");
    assert_eq!(runtime(space).is_some(), committed, "{at}");
    // No directory for nothing, in particular none that an unfinished run made or emptied. Only where tidying up itself
    // failed, one stays.
    let directories = |space: &Space, committed: bool| {
        assert!(space.root().join("deep/gone").exists() != committed || !tidies, "{at}");
        assert_eq!(space.root().join("fresh").exists(), committed, "{at}");
    };
    if space.store.is_unfinished() == Ok(false) {
        directories(space, committed);
    }
    let recovery = space.store.recover(&*space.guard()).unwrap_or_else(|error| panic!("{at}: {error}"));
    assert_eq!((recovery.kept, recovery.damaged), (0, false), "{at}");
    assert_eq!(contents(&space.store), seen, "{at}: after recovery");
    assert_eq!(raw(space), seen, "{at}: for others");
    assert_eq!(space.store.is_unfinished(), Ok(false));
    directories(space, committed);
    committed
}

#[test]
fn a_death_at_any_step_leaves_the_old_or_the_new() {
    let (mut old, mut new) = (0, 0);
    for step in 0.. {
        for torn in [0, 7] {
            let space = Space::with(BEFORE);
            space.commit(&[put("untouched", "u")]).unwrap();
            let run = faulty(&space, |commit| fault::crashing(step, torn, commit));
            if !run.happened {
                assert!(run.result.is_ok());
                assert!(old > 20 && new > 20, "{old} old, {new} new");
                return;
            }
            // Whoever was told that it is made can rely on it, and so can whoever was told that it is not.
            let committed =
                check_whole(&space, run.result.is_ok(), true, &format!("death at step {step}, torn {torn}"));
            *if committed { &mut new } else { &mut old } += 1;
            // The next commit works, and nothing stays of the dead one.
            space.commit(&[put("next", "n")]).unwrap();
            assert_eq!(std::fs::read_dir(space.root().join(".scriptorium/recollex")).unwrap().count(), 1);
        }
    }
}

#[test]
fn a_fault_at_any_step_is_an_error_that_changed_nothing_or_a_commit() {
    for (errno, every) in [(Errno::NOSPC, 1), (Errno::ACCESS, 4), (Errno::IO, 3)] {
        let mut errors = 0;
        for step in (0..).step_by(every) {
            let space = Space::with(BEFORE);
            space.commit(&[put("untouched", "u")]).unwrap();
            let before = snapshot(space.root());
            let generation = space.store.generation().unwrap();
            let run = faulty(&space, |commit| fault::failing(step, errno, commit));
            let at = format!("{errno} at step {step}");
            if let Err(error) = &run.result {
                errors += 1;
                let CommitError::Failed { error, .. } = error else { panic!("{at}: {error}") };
                match errno {
                    Errno::NOSPC => assert_eq!(*error, StoreError::Full, "{at}"),
                    Errno::ACCESS => assert!(matches!(error, StoreError::Denied(_)), "{at}"),
                    _ => assert!(matches!(error, StoreError::Io(_)), "{at}"),
                }
                let after = snapshot(space.root());
                assert_eq!(visible(&after), visible(&before), "{at}");
                let own = space.root().join(".scriptorium/recollex");
                assert_eq!(std::fs::read_dir(own).unwrap().count(), 1, "{at}: something staged stays");
                assert_eq!(space.store.is_unfinished(), Ok(false), "{at}");
            }
            check_whole(&space, run.result.is_ok(), false, &at);
            let now = space.store.generation().unwrap();
            // A commit that readers may have seen is not taken back under their generation.
            assert!(if run.result.is_ok() { now == generation + 1 } else { now != generation + 1 }, "{at}: {now}");
            if !run.happened {
                assert!(errors > 20 / every, "{errors}");
                break;
            }
        }
    }
}

/// What a commit of one change can still be taken back from: everything but the last steps, which only wait for the
/// medium or tidy up.
#[test]
fn a_fault_at_any_step_of_one_change_is_an_error() {
    let cases = [
        (put("fresh/dir/file", "x"), 2),
        (append("append", 4, "two\n"), 2),
        (rename("moved", "to/here"), 3),
        (delete("put"), 2),
    ];
    for (change, late) in cases {
        let mut stood = 0;
        for step in 0.. {
            let space = Space::with(BEFORE);
            space.commit(&[put("untouched", "u")]).unwrap();
            let before = snapshot(space.root());
            let guard = space.guard();
            let (result, failed) = fault::failing(step, Errno::NOSPC, || {
                space.store.commit(&*guard, 1, std::slice::from_ref(&change), &About::default())
            });
            drop(guard);
            if !failed {
                result.unwrap();
                break;
            }
            if let Err(error) = result {
                assert!(matches!(error, CommitError::Failed { error: StoreError::Full, .. }), "{error}");
                assert_eq!(visible(&snapshot(space.root())), visible(&before), "{change:?} at step {step}");
            } else {
                stood += 1;
            }
        }
        assert_eq!(stood, late, "{change:?}");
    }
}

#[test]
fn a_death_at_any_step_of_a_recovery_is_recovered_from() {
    // The first step after the journal is in place, and some steps on the way.
    let mut recovered = 0;
    for step in (0..).step_by(3) {
        let space = Space::with(BEFORE);
        let run = faulty(&space, |commit| fault::crashing(step, 3, commit));
        if !run.happened {
            break;
        }
        if run.result.is_err() {
            continue;
        }
        for again in 0.. {
            let (result, died) = {
                let guard = space.guard();
                fault::crashing(again, 2, || space.store.recover(&*guard))
            };
            assert_eq!(contents(&space.another()), state(AFTER), "death at {step}, then at {again}");
            if !died {
                result.unwrap();
                break;
            }
            recovered += 1;
        }
        check_whole(&space, true, true, &format!("death at {step}, and in recovery"));
    }
    assert!(recovered > 20, "{recovered}");
}

/// A workspace whose commit is made, and of which nothing is in place yet.
pub(super) fn unfinished(files: &[(&str, &str)], changes: &[Change]) -> Space {
    let space = Space::with(files);
    let before = raw(&space);
    for step in 0.. {
        let guard = space.guard();
        let base = space.store.generation().unwrap();
        let (result, died) = fault::crashing(step, 0, || space.store.commit(&*guard, base, changes, &About::default()));
        assert!(died, "no such step");
        if result.is_ok() {
            break;
        }
    }
    assert_eq!(raw(&space), before);
    assert_eq!(space.store.is_unfinished(), Ok(true));
    space
}

#[test]
fn an_addition_torn_at_any_byte_is_completed() {
    let text = "\nzwei \u{6c49}\u{0}drei\n";
    for torn in 0..=text.len() {
        // What the medium had of it, then nothing, or zeros up to the whole length.
        for zeros in [0, text.len() - torn] {
            let space = unfinished(&[("t", "eins")], &[append("t", 4, text)]);
            let mut bytes = format!("eins{text}").into_bytes();
            bytes.truncate(4 + torn);
            bytes.resize(4 + torn + zeros, 0);
            space.write("t", &bytes);
            let whole = format!("eins{text}");
            assert_eq!(super::text(&space.store, Area::Tree, "t", 3).as_deref(), Ok(whole.as_str()));
            let recovery = space.store.recover(&*space.guard()).unwrap();
            assert_eq!(recovery.kept, 0);
            assert_eq!(space.raw("t"), Some(whole), "torn at {torn}, {zeros} zeros");
        }
    }
}

#[test]
fn a_pending_commit_is_read_as_made() {
    let space = unfinished(BEFORE, &changes());
    let before = snapshot(space.root());
    let store = space.another();
    assert_eq!(store.generation(), Ok(1));
    assert_eq!(contents(&store), state(AFTER));
    for max in 1..9 {
        let paths: Vec<_> = list(&store, Area::Tree, "", max).into_iter().map(|entry| entry.path).collect();
        assert_eq!(paths, AFTER.iter().map(|(path, _)| *path).collect::<Vec<_>>(), "pages of {max}");
    }
    assert_eq!(list(&store, Area::Tree, "fresh", 0).len(), 1);
    assert_eq!(list(&store, Area::Tree, "fresh/dir", 0).len(), 1);
    assert_eq!(list(&store, Area::Tree, "fresh/dir/file", 0), []);
    assert_eq!(list(&store, Area::Tree, "deep", 0), []);
    assert_eq!(list(&store, Area::Runtime, "", 0).len(), 1);
    for gone in ["deep/gone/file", "moved"] {
        assert_eq!(store.stat(Area::Tree, gone), Err(StoreError::NotFound));
        assert_eq!(store.read_text(Area::Tree, gone, None, 0, 9), Err(StoreError::NotFound));
    }
    for (path, text) in AFTER {
        let stamp = store.stat(Area::Tree, path).unwrap().stamp;
        let read = store.read_bytes(Area::Tree, path, Some(&stamp), 1, 5).unwrap();
        let end = text.len().min(6);
        assert_eq!((&read.data[..], read.eof), (text.as_bytes().get(1..end).unwrap_or_default(), end == text.len()));
    }
    assert_eq!(snapshot(space.root()), before, "reading changed something");
    // A commit on top begins with what is pending.
    space.commit(&[append("append", 11, "!"), put("moved", "again")]).unwrap();
    assert_eq!(space.raw("append").as_deref(), Some("one\ntwo\n\u{6c49}!"));
    assert_eq!(raw(&space).len(), AFTER.len() + 1);
}

#[test]
fn what_another_program_did_in_between_stays() {
    type Deed = fn(&Space);
    let cases: &[(Change, Deed, KeptEdit, Option<&str>)] = &[
        (put("f", "ours"), |space| space.write("f", "theirs!"), KeptEdit::Replace, Some("ours")),
        (
            put("f", "ours"),
            |space| std::fs::remove_file(space.root().join("f")).unwrap(),
            KeptEdit::Replace,
            Some("ours"),
        ),
        (put("new", "ours"), |space| space.write("new", "theirs"), KeptEdit::Replace, Some("ours")),
        (put("new", "ours"), |space| space.write("new/file", "theirs"), KeptEdit::Replace, Some("ours")),
        (put("new/file", "ours"), |space| space.write("new", "theirs"), KeptEdit::Replace, Some("ours")),
        (splice("f", &[(0, 1, "o")]), |space| space.write("f", "theirs!"), KeptEdit::Replace, Some("oefore")),
        (append("f", 6, "ours"), |space| space.write("f", "before+theirs"), KeptEdit::Append, Some("ours")),
        (append("f", 6, "ours"), |space| space.write("f", "beforex"), KeptEdit::Append, Some("ours")),
        (append("f", 6, "ours"), |space| space.write("f", "short"), KeptEdit::Append, Some("ours")),
        (append("f", 6, "ours"), |space| space.write("f", "Before"), KeptEdit::Append, Some("ours")),
        (
            append("f", 6, "ours"),
            |space| std::fs::remove_file(space.root().join("f")).unwrap(),
            KeptEdit::Append,
            Some("ours"),
        ),
        (delete("f"), |space| space.write("f", "theirs!"), KeptEdit::Delete, None),
        (rename("f", "g"), |space| space.write("g", "theirs"), KeptEdit::Move("g".to_owned()), None),
        (
            rename("f", "g"),
            |space| std::fs::remove_file(space.root().join("f")).unwrap(),
            KeptEdit::Move("g".to_owned()),
            None,
        ),
        (rename("f", "g"), |space| space.write("f", "theirs!"), KeptEdit::Move("g".to_owned()), None),
    ];
    for (ours, theirs, edit, content) in cases {
        let at = format!("{ours:?}");
        let space = unfinished(&[("f", "before"), ("other", "x")], &[ours.clone(), append("other", 1, "y")]);
        theirs(&space);
        let mut expected = raw(&space);
        // Readers see theirs at once, and the rest of ours.
        expected.insert("other".to_owned(), "xy".to_owned());
        assert_eq!(contents(&space.another()), expected, "{at}");
        let recovery = space.store.recover(&*space.guard()).unwrap();
        assert_eq!((recovery.applied, recovery.kept), (1, 1), "{at}");
        assert_eq!(raw(&space), expected, "{at}");
        let kept = space.store.kept().unwrap();
        assert_eq!(kept.len(), 1, "{at}");
        assert_eq!((kept[0].path.as_str(), kept[0].area, &kept[0].edit), (ours.path.as_str(), Area::Tree, edit));
        assert_eq!(kept[0].generation, 1);
        let text = kept[0].content.as_ref().map(|path| std::fs::read_to_string(path).unwrap());
        assert_eq!(text.as_deref(), *content, "{at}");
        // It is kept, not met again.
        assert_eq!(space.store.recover(&*space.guard()), Ok(Recovery::default()));
        space.commit(&[put("other", "z")]).unwrap();
        assert_eq!(space.store.kept().unwrap(), kept);
        let modes = snapshot(&space.root().join(".scriptorium/recollex"));
        assert!(modes.values().all(|(mode, _)| mode & 0o077 == 0), "{modes:?}");
    }
}

#[test]
fn keeping_something_aside_survives_a_death_at_any_step() {
    for step in 0.. {
        let space = unfinished(&[("f", "before"), ("g", "before")], &[put("f", "ours"), append("g", 6, "ours")]);
        space.write("f", "theirs!");
        space.write("g", "theirs");
        let guard = space.guard();
        let (_, died) = fault::crashing(step, 4, || space.store.recover(&*guard));
        drop(guard);
        space.store.recover(&*space.guard()).unwrap();
        let kept = space.store.kept().unwrap();
        let texts: Vec<_> =
            kept.iter().map(|kept| std::fs::read_to_string(kept.content.as_ref().unwrap()).unwrap()).collect();
        assert_eq!(texts, ["ours", "ours"], "death at step {step}");
        assert_eq!(raw(&space), state(&[("f", "theirs!"), ("g", "theirs")]));
        if !died {
            assert!(step > 10);
            break;
        }
    }
}

#[test]
fn a_change_further_up_does_not_lose_an_addition() {
    let long = "x".repeat(9000);
    let space = unfinished(&[("f", &long)], &[append("f", 9000, "ours")]);
    // What a promotion does: another file of the same length, in place of the old one.
    let promoted = format!("y{}", &long[1..]);
    space.write("new", &promoted);
    std::fs::rename(space.root().join("new"), space.root().join("f")).unwrap();
    let recovery = space.store.recover(&*space.guard()).unwrap();
    assert_eq!((recovery.applied, recovery.kept), (1, 0));
    assert_eq!(space.raw("f"), Some(promoted + "ours"));
}

#[test]
fn a_workspace_copied_with_a_pending_commit_recovers_too() {
    let space = unfinished(BEFORE, &changes());
    let copies = tempfile::tempdir().unwrap();
    let copy = copies.path().join("copy");
    // With other inodes and other times of change of the inode, as any backup has them.
    let status = Command::new("cp").arg("-a").args([space.root(), &copy]).status().unwrap();
    assert!(status.success());
    let store = Directory::new(&copy);
    assert_eq!(contents(&store), state(AFTER));
    let guard = FileLock::new(&copy).acquire(0, "").unwrap();
    assert_eq!(store.recover(&*guard).unwrap().kept, 0);
    assert_eq!(std::fs::read_to_string(copy.join("append")).unwrap(), "one\ntwo\n\u{6c49}");
}

#[test]
fn modes_that_changed_are_no_conflict() {
    let space = unfinished(BEFORE, &changes());
    for path in ["put", "append", "moved", "deep/gone/file", "splice"] {
        std::fs::set_permissions(space.root().join(path), std::fs::Permissions::from_mode(0o600)).unwrap();
    }
    check_whole(&space, true, true, "after chmod");
}

#[test]
fn a_torn_journal_that_is_none_yet_is_ignored_and_goes() {
    let space = Space::with(&[("a", "x")]);
    space.commit(&[put("a", "y")]).unwrap();
    for name in ["journal.new", "stage-2-0", "stage-99-7"] {
        space.write(&format!(".scriptorium/recollex/{name}"), "recollex-jour");
    }
    assert_eq!((space.store.generation(), space.store.is_unfinished()), (Ok(1), Ok(false)));
    assert_eq!(contents(&space.store), state(&[("a", "y")]));
    space.commit(&[put("a", "z")]).unwrap();
    assert_eq!(std::fs::read_dir(space.root().join(".scriptorium/recollex")).unwrap().count(), 1);
}

#[test]
fn a_damaged_journal_is_kept_and_stops_nobody() {
    let journal = ".scriptorium/recollex/journal";
    // In the magic, in the generation, in the body; cut within the header, and within the body.
    for (at, cut) in [(0, None), (24, None), (100, None), (0, Some(40)), (0, Some(600)), (0, Some(0))] {
        let space = unfinished(BEFORE, &changes());
        let path = space.root().join(journal);
        let mut bytes = std::fs::read(&path).unwrap();
        match cut {
            Some(length) => {
                assert!(length < bytes.len());
                bytes.truncate(length);
            }
            None => bytes[at] ^= 1,
        }
        std::fs::write(&path, &bytes).unwrap();
        let store = space.another();
        assert_eq!(contents(&store), state(BEFORE), "readers go on");
        assert_eq!(store.is_unfinished(), Ok(true));
        let recovery = store.recover(&*space.guard()).unwrap();
        assert_eq!(recovery, Recovery { applied: 0, kept: 0, damaged: true });
        assert!(store.generation().unwrap() > 0);
        assert_eq!(contents(&store), state(BEFORE));
        let kept = store.kept().unwrap();
        assert_eq!((kept.len(), &kept[0].edit), (1, &KeptEdit::Journal));
        let content = kept[0].content.as_ref().unwrap();
        assert_eq!(std::fs::read(content.join("journal")).unwrap(), bytes);
        // What it may have spoken of is with it: put, addition to an empty file, new file, splice, state.
        assert_eq!(std::fs::read_dir(content).unwrap().count(), 1 + 5);
        space.commit(&[put("put", "again")]).unwrap();
        assert_eq!(store.kept().unwrap().len(), 1);
    }
}

#[test]
fn a_commit_of_a_newer_version_is_not_guessed_at() {
    use sha2::Digest as _;
    let space = unfinished(BEFORE, &changes());
    let path = space.root().join(".scriptorium/recollex/journal");
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[16] = 2;
    let sum = sha2::Sha256::digest(&bytes[..72]);
    bytes[72..80].copy_from_slice(&sum[..8]);
    std::fs::write(&path, &bytes).unwrap();
    let before = snapshot(space.root());
    let store = space.another();
    assert!(matches!(store.entries(Area::Tree, "", None, 0), Err(StoreError::Denied(_))));
    assert!(matches!(store.read_text(Area::Tree, "put", None, 0, 9), Err(StoreError::Denied(_))));
    assert_eq!(store.generation(), Ok(1));
    let refused = space.commit(&[put("put", "x")]);
    assert!(matches!(refused, Err(CommitError::Failed { error: StoreError::Denied(_), .. })), "{refused:?}");
    assert_eq!(snapshot(space.root()), before);
    // Done by that version, it is a generation like any other.
    std::fs::write(&path, &bytes[..80]).unwrap();
    assert_eq!(contents(&store), state(BEFORE));
}

#[test]
fn a_workspace_that_lost_the_stores_own_directory_goes_on() {
    let space = Space::with(&[("a", "x")]);
    space.commit(&[put("a", "y")]).unwrap();
    std::fs::remove_dir_all(space.root().join(".scriptorium/recollex")).unwrap();
    assert_eq!(space.store.generation(), Ok(0));
    assert_eq!(space.commit(&[put("a", "z")]).unwrap().generation, 1);
    // Something else in its place is not touched.
    std::fs::remove_dir_all(space.root().join(".scriptorium/recollex")).unwrap();
    space.write(".scriptorium/recollex", "not ours");
    assert!(matches!(space.store.generation(), Err(StoreError::Denied(_))));
    let guard = space.guard();
    let refused = space.store.commit(&*guard, 0, &[put("a", "w")], &About::default());
    assert!(matches!(refused, Err(CommitError::Failed { error: StoreError::Denied(_), .. })), "{refused:?}");
    assert_eq!(space.raw(".scriptorium/recollex").as_deref(), Some("not ours"));
}
