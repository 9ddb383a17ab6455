//! Taking commits back, and bringing back what was taken back: round trips, refusals, faults and deaths.

use super::*;
use crate::store::disk::fault;

fn space(files: &[(&str, &str)]) -> Space {
    let mut space = Space::with(files);
    space.store = Directory::new(space.root()).with_undo(UndoLimits::default());
    space
}

const FILES: &[(&str, &str)] =
    &[("append", "one\n"), ("put", "old"), ("splice", "abcdef"), ("gone/deleted", "back"), ("moved", "m")];

/// Each kind of edit.
fn all_kinds() -> Vec<Change> {
    vec![
        append("append", 4, "two\n"),
        put("put", "new"),
        put("new/dir/file", "n"),
        splice("splice", &[(1, 2, "XYZ")]),
        delete("gone/deleted"),
        rename("moved", "to/here"),
        Change { area: Area::Runtime, ..put("state.json", "{}") },
    ]
}

fn undo(space: &Space) -> Result<PastCommit, UndoError> {
    space.store.undo(&*space.guard()).map(|(past, _)| past)
}

fn redo(space: &Space) -> Result<PastCommit, UndoError> {
    space.store.redo(&*space.guard()).map(|(past, _)| past)
}

fn runtime(space: &Space) -> Option<String> {
    space.raw(".scriptorium/state.json")
}

/// Names beside the journal that take room for what can be taken back.
fn kept(space: &Space) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(space.root().join(".scriptorium/recollex/undo")) else { return Vec::new() };
    let mut names: Vec<String> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn each_kind_of_edit_is_taken_back_and_brought_back() {
    for changes in all_kinds().into_iter().map(|change| vec![change]).chain([all_kinds()]) {
        let space = space(FILES);
        let before = (contents(&space.store), runtime(&space));
        space.commit(&changes).unwrap();
        let after = (contents(&space.store), runtime(&space));
        assert_ne!(before, after);
        for _ in 0..3 {
            let past = undo(&space).unwrap();
            assert_eq!(past.changes.len(), changes.len());
            assert_eq!((contents(&space.store), runtime(&space)), before, "{changes:?}");
            assert_eq!(redo(&space).unwrap().changes.len(), changes.len());
            assert_eq!((contents(&space.store), runtime(&space)), after, "{changes:?}");
        }
        // What was brought back is added to in place: it has no further name.
        for path in ["append", "put", "splice"] {
            let links = std::os::unix::fs::MetadataExt::nlink(&space.root().join(path).metadata().unwrap());
            assert_eq!(links, 1, "{path} {changes:?}");
        }
    }
}

#[test]
fn where_the_journal_was_removed_no_older_commit_is_taken_for_a_new_one() {
    let space = space(&[]);
    for text in ["1", "2", "3", "4"] {
        space.commit(&[put("a", text)]).unwrap();
    }
    let journal = space.root().join(".scriptorium/recollex/journal");
    std::fs::remove_file(&journal).unwrap();
    assert_eq!(space.store.past(), Ok(Vec::new()));
    assert_eq!(undo(&space), Err(UndoError::Nothing));
    std::fs::remove_file(&journal).unwrap();
    // The first writer sees that generations went on, and the next plans on that.
    let stale = space.commit(&[put("b", "new")]).unwrap_err();
    assert_eq!(stale, CommitError::Stale(5));
    assert_eq!(space.commit(&[put("b", "new")]).unwrap().generation, 6);
    let offered =
        |space: &Space| -> Vec<u64> { space.store.past().unwrap().iter().map(|past| past.generation).collect() };
    assert_eq!(offered(&space), [6]);
    assert_eq!(undo(&space).unwrap().generation, 6);
    assert_eq!((space.raw("a").as_deref(), space.raw("b"), offered(&space)), (Some("4"), None, Vec::new()));
    assert_eq!(redo(&space).unwrap().generation, 7);
    assert_eq!((space.raw("a").as_deref(), space.raw("b").as_deref()), (Some("4"), Some("new")));
}

#[test]
fn commits_are_taken_back_one_after_the_other_and_brought_back_in_turn() {
    let space = space(&[]);
    let mut states = vec![contents(&space.store)];
    for changes in [
        vec![append("a", 0, "1")],
        vec![append("a", 1, "2"), put("b", "b")],
        vec![append("a", 2, "3")],
        vec![put("a", "whole")],
        vec![splice("a", &[(0, 1, "W")])],
    ] {
        space.commit(&changes).unwrap();
        states.push(contents(&space.store));
    }
    let generations: Vec<u64> = space.store.past().unwrap().iter().map(|past| past.generation).collect();
    assert_eq!(generations, [5, 4, 3, 2, 1]);
    let walk = |steps: &[i32], at: &mut usize| {
        for step in steps {
            if *step < 0 { undo(&space) } else { redo(&space) }.unwrap();
            *at = at.checked_add_signed(*step as isize).unwrap();
            assert_eq!(contents(&space.store), states[*at], "{steps:?} at {at}");
        }
    };
    let mut at = 5;
    walk(&[-1, -1, -1, 1, 1, -1, -1, -1, -1, 1, 1, 1, 1, 1, -1, -1, 1, -1, -1, -1, -1], &mut at);
    assert_eq!((at, undo(&space)), (0, Err(UndoError::Nothing)));
    walk(&[1, 1, 1, 1, 1], &mut at);
    assert_eq!(redo(&space), Err(UndoError::Nothing));
    // Something new ends what could be brought back, and is itself the next to be taken back.
    walk(&[-1, -1], &mut at);
    space.commit(&[put("c", "c")]).unwrap();
    assert_eq!(redo(&space), Err(UndoError::Nothing));
    undo(&space).unwrap();
    assert_eq!(contents(&space.store), states[3]);
    undo(&space).unwrap();
    assert_eq!(contents(&space.store), states[2]);
}

#[test]
fn newer_work_is_never_lost() {
    type Meddle = fn(&Space);
    let cases: [(Change, Meddle, &str); 8] = [
        (append("append", 4, "two\n"), |s| s.write("append", "one\ntwo\nthree\n"), "append"),
        (append("append", 4, "two\n"), |s| s.write("append", "One\ntwo\n"), "append"),
        (put("put", "new"), |s| s.write("put", "newer"), "put"),
        (put("fresh", "new"), |s| s.write("fresh", "newer"), "fresh"),
        (put("fresh", "new"), |s| std::fs::remove_file(s.root().join("fresh")).unwrap(), "fresh"),
        (delete("put"), |s| s.write("put", "again"), "put"),
        (rename("moved", "to/here"), |s| s.write("moved", "again"), "to/here"),
        (rename("moved", "to/here"), |s| s.write("to/here", "longer"), "to/here"),
    ];
    for (change, meddle, path) in cases {
        let space = space(FILES);
        space.commit(&[put("also", "x"), change.clone()]).unwrap();
        meddle(&space);
        let before = snapshot(space.root());
        assert_eq!(undo(&space), Err(UndoError::Changed(path.to_owned())), "{change:?}");
        assert_eq!(visible(&snapshot(space.root())), visible(&before), "{change:?}");
    }
}

#[test]
fn a_commit_that_left_nothing_ends_what_can_be_taken_back() {
    let space = space(FILES);
    space.commit(&[put("put", "1")]).unwrap();
    space.another().commit(&*space.guard(), 1, &[put("other", "2")], &About::default()).unwrap();
    assert_eq!(space.store.past(), Ok(Vec::new()));
    assert_eq!(undo(&space), Err(UndoError::Nothing));
    space.commit(&[put("put", "3")]).unwrap();
    assert_eq!(space.store.past().unwrap().len(), 1);
    undo(&space).unwrap();
    assert_eq!(undo(&space), Err(UndoError::Nothing));
    assert_eq!(space.raw("put").as_deref(), Some("1"));
}

#[test]
fn a_commit_tells_what_it_was() {
    let space = space(FILES);
    let about = About::new("archive", "into 2 conversations");
    let before = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs();
    space.store.commit(&*space.guard(), 0, &all_kinds(), &about).unwrap();
    space.commit(&[put("put", "newer")]).unwrap();
    let said = |past: &[PastCommit]| -> Vec<(u64, String, String)> {
        past.iter().map(|past| (past.generation, past.verb.clone(), past.note.clone())).collect()
    };
    let line = |generation, verb: &str, note: &str| (generation, verb.to_owned(), note.to_owned());
    let past = space.store.past().unwrap();
    assert_eq!(said(&past), [line(2, "", ""), line(1, "archive", "into 2 conversations")]);
    assert!((before..before + 100).contains(&past[0].time));
    undo(&space).unwrap();
    assert_eq!(said(&space.store.undone().unwrap().into_iter().collect::<Vec<_>>()), [line(3, "undo", "")]);
    undo(&space).unwrap();
    let undone = space.store.undone().unwrap().unwrap();
    assert_eq!(said(&[undone]), [line(4, "undo", "archive: into 2 conversations")]);
    redo(&space).unwrap();
    assert_eq!(said(&space.store.past().unwrap()), [line(5, "redo", "archive: into 2 conversations")]);
}

#[test]
fn a_note_from_before_there_were_verbs_is_read() {
    let space = space(FILES);
    space.store.commit(&*space.guard(), 0, &all_kinds(), &About::new("archive", "a line")).unwrap();
    let path = space
        .root()
        .join(".scriptorium/recollex/undo")
        .join(kept(&space).into_iter().find(|name| name.ends_with(".note")).unwrap());
    let text = std::fs::read_to_string(&path).unwrap();
    let text = text.split_once('\n').unwrap().1.replace("\"verb\":\"archive\",\"note\":\"a line\",", "");
    assert!(!text.contains("verb"));
    let sum = redo::hex(&<sha2::Sha256 as sha2::Digest>::digest(&text));
    std::fs::write(&path, format!("{sum}\n{text}")).unwrap();
    let past = space.store.past().unwrap();
    assert_eq!((past.len(), past[0].verb.as_str(), past[0].changes.len()), (1, "", 7));
    undo(&space).unwrap();
    assert_eq!(space.raw("put").as_deref(), Some("old"));
}

#[test]
fn what_is_kept_is_bounded() {
    let mut space = space(&[("a", "x")]);
    let limits = UndoLimits { commits: 3, bytes: 1000, changes: 2 };
    space.store = Directory::new(space.root()).with_undo(limits);
    for number in 0..8 {
        space.commit(&[put("a", &format!("{number}"))]).unwrap();
    }
    assert_eq!(space.store.past().unwrap().len(), 3);
    assert_eq!(kept(&space).len(), 6);
    // So many bytes that only the last is kept, then more than may be, then too many changes.
    space.commit(&[put("a", &"y".repeat(900))]).unwrap();
    space.commit(&[put("a", &"z".repeat(1100))]).unwrap();
    assert_eq!(space.store.past().unwrap().len(), 3);
    space.commit(&[put("a", "-")]).unwrap();
    assert_eq!(space.store.past().unwrap().len(), 0);
    space.commit(&[put("a", "+")]).unwrap();
    space.commit(&[put("1", ""), put("2", ""), put("3", "")]).unwrap();
    assert_eq!(space.store.past().unwrap().len(), 0);
}

/// A journal whose header is gone does not know the generation any more. What is kept to take commits back does.
#[test]
fn no_generation_comes_again_where_the_journal_is_lost() {
    let space = space(FILES);
    for number in 0..5 {
        space.commit(&[put("put", &number.to_string())]).unwrap();
    }
    space.write(".scriptorium/recollex/journal", "not a journal");
    assert!(space.store.recover(&*space.guard()).unwrap().damaged);
    assert_eq!(space.store.generation(), Ok(6));
    assert_eq!(undo(&space), Err(UndoError::Nothing), "what the lost journal did is not known");
    space.commit(&[put("put", "again")]).unwrap();
    assert_eq!(undo(&space).unwrap().generation, 7);
    assert_eq!((space.raw("put").as_deref(), undo(&space)), (Some("4"), Err(UndoError::Nothing)));
}

#[test]
fn a_torn_or_forged_note_is_no_note() {
    let space = space(FILES);
    space.commit(&[put("put", "new")]).unwrap();
    let name = kept(&space).into_iter().find(|name| name.ends_with(".note")).unwrap();
    let path = space.root().join(".scriptorium/recollex/undo").join(name);
    let whole = std::fs::read(&path).unwrap();
    for length in (0..whole.len()).step_by(7) {
        std::fs::write(&path, &whole[..length]).unwrap();
        assert_eq!(undo(&space), Err(UndoError::Nothing), "{length}");
    }
    let text = String::from_utf8(whole).unwrap().split_once('\n').unwrap().1.replace("\"put\"", "\"../put\"");
    let sum = redo::hex(&<sha2::Sha256 as sha2::Digest>::digest(&text));
    std::fs::write(&path, format!("{sum}\n{text}")).unwrap();
    assert_eq!(undo(&space), Err(UndoError::Nothing));
    assert_eq!(space.raw("put").as_deref(), Some("new"));
}

#[test]
fn it_costs_an_addition_no_sync_and_no_copy() {
    let space = space(&[("a", "x")]);
    space.commit(&[put("first", "")]).unwrap();
    let guard = space.guard();
    let plain = Directory::new(space.root());
    let mut length = 1;
    let mut steps = |store: &Directory| {
        let base = store.generation().unwrap();
        let (result, steps) =
            fault::counting(|| store.commit(&*guard, base, &[append("a", length, "y")], &About::default()));
        length += 1;
        result.unwrap();
        steps
    };
    let without = steps(&plain);
    // Directory, draft gone, made, written, renamed; the same for the final note, and the first one removed.
    assert_eq!(steps(&space.store), without + 5 + 5);
    assert_eq!(steps(&space.store), without + 5 + 5);
}

#[test]
fn a_fault_in_what_is_left_behind_is_no_fault_of_the_commit() {
    let mut all_kept = false;
    for step in 0.. {
        let space = space(FILES);
        space.commit(&[put("untouched", "u")]).unwrap();
        let before = contents(&space.store);
        let (result, failed) = fault::failing(step, rustix::io::Errno::NOSPC, || space.commit(&all_kinds()));
        let after = contents(&space.store);
        if result.is_err() {
            assert_eq!(after, before, "{step}");
            // Nothing stays of it but, perhaps, that a generation came without a change.
            let own = |name: &String| name.starts_with("1.") || name.starts_with("1-") || name == "3.0.note";
            assert!(kept(&space).iter().all(own), "{step}");
            // And what was before it can still be taken back and brought back, also under a commit on top.
            space.commit(&[put("on top", "t")]).unwrap();
            for _ in 0..2 {
                assert_eq!(undo(&space).unwrap().changes[0].path, "on top", "{step}");
                assert_eq!(undo(&space).unwrap().changes[0].path, "untouched", "{step}");
                redo(&space).unwrap();
                redo(&space).unwrap();
            }
            assert_eq!(space.raw("on top").as_deref(), Some("t"));
        } else {
            match undo(&space) {
                Ok(_) => assert_eq!(contents(&space.store), before, "{step}"),
                Err(UndoError::Nothing) => assert_eq!(contents(&space.store), after, "{step}"),
                Err(error) => panic!("{step}: {error}"),
            }
        }
        if !failed {
            all_kept = true;
            break;
        }
    }
    assert!(all_kept);
}

#[test]
fn a_death_at_any_step_leaves_no_wrong_note() {
    let (mut undone, mut nothing) = (0, 0);
    for step in 0.. {
        let space = space(FILES);
        space.commit(&[put("untouched", "u")]).unwrap();
        let before = contents(&space.store);
        let guard = space.guard();
        let (_, died) = fault::crashing(step, 5, || space.store.commit(&*guard, 1, &all_kinds(), &About::default()));
        drop(guard);
        let after = contents(&space.store);
        match (undo(&space), after == before) {
            // The commit happened, and it is what is taken back; or it did not, and the one before is.
            (Ok(past), false) => {
                assert_eq!((past.generation, contents(&space.store) == before), (2, true), "{step}");
                undone += 1;
            }
            (Ok(past), true) => assert_eq!(past.generation, 1, "{step}"),
            (Err(UndoError::Nothing), _) => {
                assert_eq!(contents(&space.store), after, "{step}");
                nothing += 1;
            }
            (Err(error), _) => panic!("{step}: {error}"),
        }
        // Nothing stays of what did not happen.
        space.commit(&[put("next", "n")]).unwrap();
        assert!(!kept(&space).contains(&"new.note".to_owned()), "{step}");
        if !died {
            break;
        }
    }
    assert!(undone > 10 && nothing < 10, "{undone} {nothing}");
}

/// What did not happen takes nothing from the commit before, also where it was to add to the files that this one made.
#[test]
fn whoever_dies_or_fails_before_a_commit_leaves_the_one_before_as_it_was() {
    let first = [append("append", 4, "two\n"), append("made", 0, "1\n")];
    let second = || [append("append", 8, "three\n"), append("made", 2, "2\n")];
    for dies in [false, true] {
        let (mut before_it, mut is_over) = (0, false);
        for step in 0.. {
            let space = space(FILES);
            let initial = contents(&space.store);
            space.commit(&first).unwrap();
            let before = contents(&space.store);
            let guard = space.guard();
            let commit = || space.store.commit(&*guard, 1, &second(), &About::default());
            let (_, happened) = if dies {
                fault::crashing(step, 3, commit)
            } else {
                fault::failing(step, rustix::io::Errno::NOSPC, commit)
            };
            drop(guard);
            is_over = !happened;
            if is_over {
                break;
            }
            if contents(&space.store) == before {
                assert_eq!(undo(&space).unwrap().changes.len(), 2, "{step}, dies: {dies}");
                assert_eq!(contents(&space.store), initial, "{step}, dies: {dies}");
                before_it += 1;
            }
        }
        assert!(is_over && before_it > 5, "{before_it}");
    }
}

#[test]
fn a_death_at_any_step_of_taking_back_leaves_one_state_or_the_other() {
    let (mut old, mut new) = (0, 0);
    for step in 0.. {
        let space = space(FILES);
        let before = contents(&space.store);
        space.commit(&all_kinds()).unwrap();
        let after = contents(&space.store);
        let guard = space.guard();
        let (_, died) = fault::crashing(step, 5, || space.store.undo(&*guard));
        space.store.recover(&*guard).unwrap();
        drop(guard);
        let now = contents(&space.store);
        assert!(now == before || now == after, "{step}");
        *if now == before { &mut new } else { &mut old } += 1;
        assert_eq!(space.store.kept().unwrap(), [], "{step}");
        // And it goes on from there.
        match if now == before { redo(&space) } else { undo(&space) } {
            Ok(_) => assert_eq!(contents(&space.store), if now == before { after } else { before }, "{step}"),
            Err(UndoError::Nothing) => assert_eq!(contents(&space.store), now, "{step}"),
            Err(error) => panic!("{step}: {error}"),
        }
        if !died {
            break;
        }
    }
    assert!(old > 10 && new > 10, "{old} {new}");
}
