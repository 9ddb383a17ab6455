//! Commits that erase: what they remove is nowhere below the workspace, whatever was kept of it, and whoever dies when.

use rustix::io::Errno;

use super::disk::fault;
use super::recovery::unfinished;
use super::*;

/// What is to be gone.
const SECRET: &str = "the secret word";

/// Where it is, when it is nowhere.
const NOWHERE: [PathBuf; 0] = [];

fn with_undo(space: Space) -> Space {
    let store = Directory::new(space.root()).with_undo(UndoLimits::default());
    Space { store, ..space }
}

/// A workspace in whose history the secret is in every way: written, added, replaced, moved about, taken back and brought
/// back, and in files that are gone.
fn with_history() -> Space {
    let space = with_undo(Space::with(&[("put", SECRET), ("whole", "w\n"), ("thread", "one\n"), ("other", "o\n")]));
    let commit = |changes: &[Change]| drop(space.commit(changes).unwrap());
    commit(&[append("thread", 4, &format!("{SECRET}\ntwo\n"))]);
    commit(&[put("whole", &format!("w\n{SECRET}\n")), put("copy/of/it", SECRET)]);
    commit(&[delete("copy/of/it"), append("other", 2, "p\n")]);
    commit(&[rename("put", "moved")]);
    commit(&[splice("moved", &[(0, 3, "THE")])]);
    space.store.undo(&*space.guard()).unwrap();
    space.store.redo(&*space.guard()).unwrap();
    space.store.undo(&*space.guard()).unwrap();
    commit(&[append("other", 4, &format!("{SECRET} again\n"))]);
    space.store.undo(&*space.guard()).unwrap();
    space
}

/// What makes the workspace of [`with_history`] one without the secret, in each kind of edit.
fn erasing() -> Vec<Change> {
    let length = SECRET.len() as u64;
    vec![splice("thread", &[(4, length, "-")]), put("whole", "w\n-\n"), delete("moved")]
}

fn erase(space: &Space, changes: &[Change]) -> Result<Committed, CommitError> {
    let about = About::new("redact", "one record").erasing();
    space.store.commit(&*space.guard(), space.store.generation().unwrap(), changes, &about)
}

/// Every file below the workspace that holds the secret, or the end of it that an edit may have left.
fn where_it_is(space: &Space) -> Vec<PathBuf> {
    let needle = SECRET.trim_start_matches("the ").as_bytes();
    let holds = |content: &[u8]| content.windows(needle.len()).any(|part| part == needle);
    snapshot(space.root()).into_iter().filter(|(_, (_, content))| holds(content)).map(|(path, _)| path).collect()
}

#[test]
fn what_is_erased_is_nowhere() {
    let space = with_history();
    assert!(where_it_is(&space).len() > 5, "{:?}", where_it_is(&space));
    erase(&space, &erasing()).unwrap();
    assert_eq!(where_it_is(&space), NOWHERE);
    assert_eq!(space.raw("thread").as_deref(), Some("one\n-\ntwo\n"));
    // It says why nothing can be taken back, and that nothing of it can be brought back.
    let generation = space.store.generation().unwrap();
    let undo = || space.store.undo(&*space.guard());
    assert_eq!(undo(), Err(UndoError::Erased(generation)));
    assert_eq!(space.store.would_undo(false), Err(UndoError::Erased(generation)));
    assert_eq!(space.store.redo(&*space.guard()), Err(UndoError::Nothing));
    assert_eq!(space.store.past(), Ok(vec![]));
    let erased = space.store.erased().unwrap().unwrap();
    assert_eq!((erased.generation, erased.verb.as_str(), erased.note.as_str()), (generation, "redact", "one record"));
    assert_eq!(erased.changes, []);
    // Later commits can be taken back and brought back, down to there.
    space.commit(&[put("later", "1")]).unwrap();
    space.commit(&[put("later", "2")]).unwrap();
    assert_eq!(space.store.past().unwrap().len(), 2);
    undo().unwrap();
    undo().unwrap();
    assert_eq!(undo(), Err(UndoError::Erased(generation)));
    assert_eq!(space.store.erased().unwrap(), Some(erased));
    space.store.redo(&*space.guard()).unwrap();
    space.store.redo(&*space.guard()).unwrap();
    assert_eq!(space.raw("later").as_deref(), Some("2"));
}

#[test]
fn a_store_that_keeps_nothing_itself_erases_what_others_kept() {
    let mut space = with_history();
    space.store = Directory::new(space.root());
    erase(&space, &erasing()).unwrap();
    assert_eq!(where_it_is(&space), NOWHERE);
    assert_eq!(space.store.undo(&*space.guard()), Err(UndoError::Nothing));
    // Nor does anything stay of what a dead writer was about to keep.
    for step in 0.. {
        let mut space = with_history();
        let guard = space.guard();
        let base = space.store.generation().unwrap();
        let change = [append("thread", 24, "three\n"), put("other", SECRET)];
        let (_, died) = fault::crashing(step, 9, || space.store.commit(&*guard, base, &change, &About::default()));
        drop(guard);
        space.store = Directory::new(space.root());
        erase(&space, &[erasing(), vec![put("other", "-")]].concat()).unwrap();
        assert_eq!(where_it_is(&space), NOWHERE, "death at step {step}");
        if !died {
            assert!(step > 20);
            break;
        }
    }
}

#[test]
fn a_death_at_any_step_leaves_it_whole_or_nowhere() {
    let (mut old, mut new) = (0, 0);
    for step in 0.. {
        let space = with_history();
        let before = contents(&space.store);
        let guard = space.guard();
        let base = space.store.generation().unwrap();
        let about = About::new("redact", "").erasing();
        let (result, died) = fault::crashing(step, 5, || space.store.commit(&*guard, base, &erasing(), &about));
        space.store.recover(&*guard).unwrap();
        drop(guard);
        let past = space.store.past().unwrap();
        if contents(&space.store) == before {
            assert!(result.is_err(), "{step}");
            // Nothing was erased, and so nothing is lost.
            assert!(!past.is_empty(), "{step}");
            space.store.undo(&*space.guard()).unwrap();
            old += 1;
        } else {
            assert_eq!(where_it_is(&space), NOWHERE, "death at step {step}");
            assert_eq!(past, [], "{step}");
            assert_eq!(space.store.undo(&*space.guard()), Err(UndoError::Erased(base + 1)), "{step}");
            new += 1;
        }
        if !died {
            break;
        }
    }
    assert!(old > 10 && new > 10, "{old} {new}");
}

/// A commit that cannot remove what was kept stands, and is not done before somebody could.
#[test]
fn a_fault_does_not_end_the_erasing() {
    let (mut refused, mut late) = (0, 0);
    for step in 0.. {
        let space = with_history();
        let before = contents(&space.store);
        let (result, failed) = fault::failing(step, Errno::IO, || erase(&space, &erasing()));
        match result {
            Err(_) => {
                assert_eq!(contents(&space.store), before, "{step}");
                assert!(!space.store.past().unwrap().is_empty(), "{step}");
                refused += 1;
            }
            Ok(_) => {
                late += usize::from(!where_it_is(&space).is_empty());
                space.commit(&[put("next", "n")]).unwrap();
                assert_eq!(where_it_is(&space), NOWHERE, "fault at step {step}");
            }
        }
        if !failed {
            break;
        }
    }
    assert!(refused > 10 && late > 5, "{refused} {late}");
}

#[test]
fn what_lies_aside_may_hold_it_and_a_person_decides() {
    let space = with_undo(unfinished(
        &[("thread", "one\n"), ("whole", SECRET)],
        &[append("thread", 4, &format!("{SECRET}\nand what nobody else has\n"))],
    ));
    space.write("thread", "another program's");
    space.store.recover(&*space.guard()).unwrap();
    let kept = space.store.kept().unwrap();
    assert_eq!((kept.len(), kept[0].erases), (1, false));
    let before = snapshot(space.root());
    let denied = erase(&space, &[put("whole", "-")]).unwrap_err();
    let CommitError::Failed { error: StoreError::Denied(why), .. } = denied else { panic!("{denied}") };
    assert!(why.contains("aside"), "{why}");
    assert_eq!(snapshot(space.root()), before);
    // The rest goes on, and so does this once somebody has seen to it.
    space.commit(&[put("next", "n")]).unwrap();
    std::fs::remove_file(kept[0].content.as_ref().unwrap()).unwrap();
    erase(&space, &[put("whole", "-")]).unwrap();
    assert_eq!(where_it_is(&space), NOWHERE);
}

#[test]
fn a_damaged_journal_may_hold_it_too() {
    let space = with_undo(unfinished(&[("a", "1")], &[put("a", SECRET), append("b", 0, SECRET)]));
    let journal = space.root().join(".scriptorium/recollex/journal");
    let mut bytes = std::fs::read(&journal).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    std::fs::write(&journal, bytes).unwrap();
    assert!(space.store.recover(&*space.guard()).unwrap().damaged);
    assert!(!where_it_is(&space).is_empty());
    assert!(matches!(erase(&space, &[put("a", "2")]), Err(CommitError::Failed { error: StoreError::Denied(_), .. })));
}

#[test]
fn another_program_that_came_between_is_told_of() {
    for step in 0.. {
        let space = with_undo(Space::with(&[("thread", SECRET), ("also", SECRET)]));
        let guard = space.guard();
        let changes = [put("thread", "-"), put("also", "-")];
        let about = About::new("redact", "").erasing();
        let (result, died) = fault::crashing(step, 0, || space.store.commit(&*guard, 0, &changes, &about));
        assert!(died, "no such step");
        if result.is_err() {
            continue;
        }
        // The commit is made, and nothing of it in place. Theirs stays, secret and all, and whoever looks is told.
        space.write("thread", format!("{SECRET}, and more"));
        space.store.recover(&*guard).unwrap();
        drop(guard);
        assert_eq!(where_it_is(&space), [space.root().join("thread")]);
        let kept = space.store.kept().unwrap();
        assert_eq!((kept.len(), kept[0].erases), (1, true));
        let troubles = space.store.troubles().unwrap();
        assert!(troubles[0].message.contains("erased"), "{troubles:?}");
        break;
    }
}
