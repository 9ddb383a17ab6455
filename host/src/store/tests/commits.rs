//! Commits that happen, and commits that do not: what each leaves behind.

use std::os::unix::fs::symlink;

use super::*;

#[test]
fn each_edit_does_what_it_says() {
    let space = Space::with(&[
        ("put", "old"),
        ("append", "one\n"),
        ("splice", "a\u{e9}b\u{6c49}c"),
        ("gone/deep/file", "x"),
        ("moved", "m"),
        ("kept", "k"),
    ]);
    let runtime = Change {
        area: Area::Runtime,
        path: "sub/state.json".to_owned(),
        expect: Expect::Absent,
        edit: Edit::Put("{}".to_owned()),
    };
    let changes = [
        put("put", "new"),
        put("new/dir/file", "n"),
        append("append", 4, "two\n"),
        append("fresh", 0, "f"),
        splice("splice", &[(0, 1, "A"), (3, 1, ""), (4, 3, "\u{1f600}"), (8, 0, "!")]),
        delete("gone/deep/file"),
        rename("moved", "to/here"),
        runtime,
    ];
    let committed = space.commit(&changes).unwrap();
    assert_eq!(committed.generation, 1);
    let expected = [
        ("append", "one\ntwo\n"),
        ("fresh", "f"),
        ("kept", "k"),
        ("new/dir/file", "n"),
        ("put", "new"),
        ("splice", "A\u{e9}\u{1f600}c!"),
        ("to/here", "m"),
    ];
    let expected: BTreeMap<_, _> = expected.map(|(path, text)| (path.to_owned(), text.to_owned())).into();
    assert_eq!(contents(&space.store), expected);
    assert_eq!(space.raw(".scriptorium/sub/state.json").as_deref(), Some("{}"));
    assert!(space.root().join("gone").exists() && !space.root().join("gone/deep").exists());
    for (change, stamp) in changes.iter().zip(&committed.stamps) {
        let path = match &change.edit {
            Edit::MoveTo(to) => to,
            _ => &change.path,
        };
        match stamp {
            None => assert_eq!(change.edit, Edit::Delete),
            Some(stamp) => assert!(space.store.stat(change.area, path).unwrap().stamp.same_version(stamp), "{path}"),
        }
    }
    // Nothing of the making of it stays but the journal's header.
    let own: Vec<_> = std::fs::read_dir(space.root().join(".scriptorium/recollex"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    assert_eq!(own, ["journal"]);
    assert_eq!(space.root().join(".scriptorium/recollex/journal").metadata().unwrap().len(), 80);
}

#[test]
fn generations_rise_and_an_empty_commit_is_none() {
    let space = Space::new();
    for generation in 1..=3 {
        let committed = space.commit(&[put("a", &generation.to_string())]).unwrap();
        assert_eq!((committed.generation, space.another().generation()), (generation, Ok(generation)));
    }
    let before = snapshot(space.root());
    assert_eq!(space.commit(&[]), Ok(Committed { generation: 3, stamps: vec![] }));
    let nothing = space.commit(&[append("a", 1, "")]).unwrap();
    assert_eq!((nothing.generation, nothing.stamps), (3, vec![Some(space.stamp("a"))]));
    assert_eq!(snapshot(space.root()), before);
    let guard = space.guard();
    for base in [0, 2, 4, u64::MAX] {
        assert_eq!(space.store.commit(&*guard, base, &[put("a", "x")], &About::default()), Err(CommitError::Stale(3)));
    }
}

#[test]
fn what_was_just_written_is_known_at_once() {
    let space = Space::new();
    let committed = space.commit(&[put("a", "x"), append("b", 0, "y")]).unwrap();
    assert!(committed.stamps.iter().all(|stamp| !stamp.as_ref().unwrap().racy));
    let stamp = committed.stamps[1].clone().unwrap();
    let committed = space.commit(&[append("b", 1, "z")]).unwrap();
    let newer = committed.stamps[0].clone().unwrap();
    assert!(!newer.racy && !newer.same_version(&stamp));
    // In the same tick, at the same length: another program's write shows.
    space.write("b", "yy");
    assert!(!space.stamp("b").same_version(&newer));
}

#[test]
fn an_expectation_that_fails_stops_everything() {
    let space = Space::with(&[("a", "one"), ("b", "two")]);
    let stamp = space.stamp("a");
    space.write("a", "three");
    let expecting = |path: &str, expect, edit| Change { area: Area::Tree, path: path.to_owned(), expect, edit };
    let text = || Edit::Put("x".to_owned());
    let cases = [
        (expecting("a", Expect::Same(stamp.clone()), text()), CommitError::Changed("a".to_owned())),
        (expecting("a", Expect::Same(stamp.clone()), Edit::Delete), CommitError::Changed("a".to_owned())),
        (expecting("none", Expect::Same(stamp.clone()), text()), CommitError::Changed("none".to_owned())),
        (expecting("a", Expect::Absent, text()), CommitError::Changed("a".to_owned())),
        (append("a", 4, "x"), CommitError::Changed("a".to_owned())),
        (append("a", 6, "x"), CommitError::Changed("a".to_owned())),
        (append("a", 0, "x"), CommitError::Changed("a".to_owned())),
        (append("none", 1, "x"), CommitError::Changed("none".to_owned())),
        (expecting("a", Expect::Same(stamp.clone()), Edit::Keep), CommitError::Changed("a".to_owned())),
        (expecting("none", Expect::Same(stamp.clone()), Edit::Keep), CommitError::Changed("none".to_owned())),
        (expecting("a", Expect::Absent, Edit::Keep), CommitError::Changed("a".to_owned())),
        (rename("a", "b"), CommitError::Changed("b".to_owned())),
        (splice("a", &[(4, 2, "")]), CommitError::Changed("a".to_owned())),
        (splice("a", &[(6, 0, "")]), CommitError::Changed("a".to_owned())),
        (splice("a", &[(u64::MAX, 2, "")]), CommitError::Changed("a".to_owned())),
    ];
    refused(&space, &cases);
    let not_found = [delete("none"), rename("none", "new"), splice("none", &[]), delete("no/such/directory")];
    refused(
        &space,
        &not_found.map(|change| {
            let path = change.path.clone();
            (change, CommitError::Failed { path, error: StoreError::NotFound })
        }),
    );
    // And one that holds does not.
    let stamp = space.stamp("a");
    space.commit(&[expecting("a", Expect::Same(stamp), text()), expecting("c", Expect::Absent, text())]).unwrap();
}

#[test]
fn a_commit_may_depend_on_what_it_does_not_change() {
    let space = Space::with(&[("a", "one")]);
    let keep = |path: &str, expect| Change { area: Area::Tree, path: path.to_owned(), expect, edit: Edit::Keep };
    let stamp = space.stamp("a");
    // How fresh a stamp was does not count.
    let same = || Expect::Same(Stamp { racy: !stamp.racy, ..stamp.clone() });
    let committed = space.commit(&[put("b", "x"), keep("a", same()), keep("c/d", Expect::Absent)]).unwrap();
    assert_eq!((committed.generation, committed.stamps.len()), (1, 3));
    assert_eq!((&committed.stamps[1], &committed.stamps[2]), (&Some(space.stamp("a")), &None));
    // Nothing but that is no commit.
    let before = snapshot(space.root());
    let kept = space.commit(&[keep("a", same()), keep("b", Expect::Any), keep("c", Expect::Absent)]).unwrap();
    assert_eq!((kept.generation, space.store.generation()), (1, Ok(1)));
    assert_eq!(snapshot(space.root()), before);
    // A path is named once, also if it is only kept.
    assert!(space.commit(&[keep("a", same()), append("a", 3, "x")]).is_err());
    assert_eq!(space.commit(&[keep("b/c", Expect::Absent)]), Err(CommitError::WrongKind("b".to_owned())));
    assert_eq!(snapshot(space.root()), before);
}

/// Each change is refused with its error, alone and after one that could be made, and leaves everything as it was.
fn refused(space: &Space, cases: &[(Change, CommitError)]) {
    let generation = space.store.generation();
    drop(space.guard());
    let _ = space.commit(&[]);
    let before = snapshot(space.root());
    for (change, error) in cases {
        assert_eq!(space.commit(std::slice::from_ref(change)).as_ref(), Err(error), "{change:?}");
        let both = [put("new/file", "x"), append("other", 0, "y"), change.clone()];
        assert_eq!(space.commit(&both).as_ref(), Err(error), "{change:?}");
        assert_eq!(snapshot(space.root()), before, "{change:?}");
    }
    assert_eq!(space.store.generation(), generation);
}

#[test]
fn twins_never_both_come_into_being() {
    let space = Space::with(&[
        ("sources/p/_v2/sess-1.md", "x"),
        ("sources/q/_V2/other.md", "x"),
        ("topics/caf\u{e9}.md", "x"),
        ("Upper/x.md", "x"),
        ("m", "x"),
    ]);
    let case = |change: Change, planned: &str, existing: &str| {
        (change, CommitError::Collision { planned: planned.to_owned(), existing: existing.to_owned() })
    };
    refused(
        &space,
        &[
            case(put("sources/p/_v2/SESS-1.md", "y"), "sources/p/_v2/SESS-1.md", "sources/p/_v2/sess-1.md"),
            case(append("sources/p/_v2/Sess-1.md", 0, "y"), "sources/p/_v2/Sess-1.md", "sources/p/_v2/sess-1.md"),
            case(put("sources/q/_v2/sess-1.md", "y"), "sources/q/_v2", "sources/q/_V2"),
            case(put("Sources/p/_v2/new.md", "y"), "Sources", "sources"),
            case(put("topics/cafe\u{301}.md", "y"), "topics/cafe\u{301}.md", "topics/caf\u{e9}.md"),
            case(put("topics/CAFE\u{301}.md", "y"), "topics/CAFE\u{301}.md", "topics/caf\u{e9}.md"),
            case(put("upper/y.md", "y"), "upper", "Upper"),
            case(rename("m", "topics/CAF\u{c9}.md"), "topics/CAF\u{c9}.md", "topics/caf\u{e9}.md"),
            // Even a file's own name: whether a medium could tell the two apart, nobody knows.
            case(rename("m", "M"), "M", "m"),
        ],
    );
    // Within one commit.
    let before = snapshot(space.root());
    let collision = |changes: &[Change], planned: &str, existing: &str| {
        let error = CommitError::Collision { planned: planned.to_owned(), existing: existing.to_owned() };
        assert_eq!(space.commit(changes), Err(error));
        assert_eq!(snapshot(space.root()), before);
    };
    collision(&[put("new/A.md", ""), put("new/a.md", "")], "new/a.md", "new/A.md");
    collision(&[put("n\u{e9}w/a.md", ""), put("ne\u{301}w/b.md", "")], "ne\u{301}w", "n\u{e9}w");
    collision(&[put("stra\u{df}e", ""), rename("m", "STRASSE")], "STRASSE", "stra\u{df}e");
    collision(&[delete("m"), put("M", "")], "M", "m");
    // One name for a file and a directory is no collision of spellings.
    assert_eq!(space.commit(&[put("f", ""), put("f/g", "")]), Err(CommitError::WrongKind("f".to_owned())));
    assert_eq!(space.commit(&[put("f/g", ""), put("f", "")]), Err(CommitError::WrongKind("f".to_owned())));
    // Twins that exist already, from elsewhere, can both be written.
    space.write("sources/p/_v2/SESS-1.md", "z");
    space.commit(&[append("sources/p/_v2/SESS-1.md", 1, "y"), put("sources/p/_v2/sess-1.md", "y")]).unwrap();
}

#[test]
fn files_and_directories_do_not_replace_each_other() {
    let space = Space::with(&[("sources/a.md", "x"), ("d/file", "x"), ("m", "x")]);
    std::fs::create_dir(space.root().join("empty")).unwrap();
    let case = |change: Change, path: &str| (change, CommitError::WrongKind(path.to_owned()));
    refused(
        &space,
        &[
            case(put("sources/a.md/_v2/t.md", "y"), "sources/a.md"),
            case(append("sources/a.md/t.md", 0, "y"), "sources/a.md"),
            case(put("d", "y"), "d"),
            case(put("empty", "y"), "empty"),
            case(delete("d"), "d"),
            case(rename("d", "e"), "d"),
            case(rename("m", "d"), "d"),
            case(rename("m", "m/n"), "m"),
            case(rename("m", "sources/a.md/m"), "sources/a.md"),
        ],
    );
}

#[test]
fn links_and_special_files_are_not_written() {
    let space = Space::with(&[("m", "x"), ("target/file", "x")]);
    let outside = tempfile::tempdir().unwrap();
    symlink(outside.path(), space.root().join("out")).unwrap();
    symlink("target", space.root().join("in")).unwrap();
    symlink("target/file", space.root().join("link")).unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(space.root().join("socket")).unwrap();
    let before = snapshot(space.root());
    for changed in [
        put("out/x", ""),
        append("out/x", 0, "y"),
        put("in/file", ""),
        put("in/deep/er/file", ""),
        put("link", ""),
        append("link", 1, "y"),
        delete("link"),
        rename("link", "new"),
        rename("m", "out/m"),
        rename("m", "link"),
        put("socket", ""),
        delete("socket"),
        splice("in/file", &[]),
    ] {
        let error = space.commit(std::slice::from_ref(&changed));
        assert!(
            matches!(error, Err(CommitError::Failed { error: StoreError::Denied(_), .. })),
            "{changed:?}: {error:?}"
        );
        assert_eq!(snapshot(space.root()), before, "{changed:?}");
    }
    assert_eq!(std::fs::read_dir(outside.path()).unwrap().count(), 0);
}

#[test]
fn commits_that_make_no_sense_are_refused() {
    let space = Space::with(&[("a", "a\u{6c49}b"), ("b", "x")]);
    let _ = space.commit(&[]);
    let before = snapshot(space.root());
    let denied = |changes: &[Change], at: &str| match space.commit(changes) {
        Err(CommitError::Failed { path, error: StoreError::Denied(_) }) => assert_eq!(path, at),
        other => panic!("{changes:?}: {other:?}"),
    };
    denied(&[put("c", ""), put("c", "")], "c");
    denied(&[rename("a", "c"), put("c", "")], "c");
    denied(&[put("c", ""), rename("a", "c")], "c");
    denied(&[delete("a"), rename("a", "c")], "a");
    denied(&[rename("a", "a")], "a");
    denied(&[splice("a", &[(1, 3, ""), (0, 0, "")])], "a");
    denied(&[splice("a", &[(0, 4, ""), (1, 3, "")])], "a");
    for (area, path) in [
        (Area::Cache, "x"),
        (Area::Runtime, "write.lock"),
        (Area::Runtime, "recollex/journal"),
        (Area::Runtime, "Recollex/x"),
        (Area::Runtime, "recollex"),
    ] {
        denied(&[Change { area, path: path.to_owned(), expect: Expect::Any, edit: Edit::Put(String::new()) }], path);
    }
    for (splices, at) in [(&[(2, 0, "x")][..], 2), (&[(1, 1, "")], 2), (&[(0, 1, ""), (3, 1, "")], 3)] {
        let error = CommitError::Failed { path: "a".to_owned(), error: StoreError::NotText(at) };
        assert_eq!(space.commit(&[splice("a", splices)]), Err(error));
    }
    assert_eq!(snapshot(space.root()), before);
    // The largest splice there is, and none at all.
    space.commit(&[splice("a", &[(0, 5, "")]), splice("b", &[])]).unwrap();
    assert_eq!((space.raw("a").as_deref(), space.raw("b").as_deref()), (Some(""), Some("x")));
}

#[test]
fn only_the_holder_of_this_workspaces_lock_commits() {
    #[derive(Debug)]
    struct Forged(Option<FileId>);
    impl Guard for Forged {
        fn file(&self) -> Option<FileId> {
            self.0
        }
    }
    let (space, other) = (Space::new(), Space::new());
    let before = snapshot(space.root());
    let not_held = |guard: &dyn Guard| {
        let error = space.store.commit(guard, 0, &[put("a", "x")], &About::default());
        assert_eq!(error, Err(CommitError::LockLost));
        assert!(matches!(space.store.recover(guard), Err(StoreError::Denied(_))));
        assert_eq!(snapshot(space.root()), before);
    };
    let guard = other.guard();
    not_held(&*guard);
    not_held(&Forged(None));
    not_held(&Forged(Some(FileId { device: 1, inode: 1 })));
    // A lock file that was replaced is another lock.
    let guard = space.guard();
    let lock = space.root().join(".scriptorium/write.lock");
    std::fs::rename(&lock, space.root().join("old.lock")).unwrap();
    std::fs::write(&lock, "").unwrap();
    let error = space.store.commit(&*guard, 0, &[put("a", "x")], &About::default());
    assert_eq!(error, Err(CommitError::LockLost));
    drop(guard);
    space.commit(&[put("a", "x")]).unwrap();
}

#[test]
fn a_file_that_has_another_name_elsewhere_is_not_changed_there() {
    let space = Space::with(&[("a", "one\n"), ("b", "one\n"), ("c", "one\n")]);
    let backup = tempfile::tempdir_in(space.root().parent().unwrap()).unwrap();
    for name in ["a", "b", "c"] {
        std::fs::hard_link(space.root().join(name), backup.path().join(name)).unwrap();
    }
    space.commit(&[append("a", 4, "two\n"), put("b", "new"), splice("c", &[(0, 3, "two")])]).unwrap();
    assert_eq!(space.raw("a").as_deref(), Some("one\ntwo\n"));
    for name in ["a", "b", "c"] {
        assert_eq!(std::fs::read_to_string(backup.path().join(name)).unwrap(), "one\n");
    }
}

#[test]
fn everything_is_private_whatever_the_umask() {
    for umask in ["000", "027", "077", "277"] {
        let above = tempfile::tempdir().unwrap();
        let root = above.path().join("memory");
        let command = process("store::tests::commits::write_everything", &root);
        let status = Command::new("sh")
            .args(["-c", "umask \"$1\"; shift; exec \"$@\"", "sh", umask])
            .arg(command.get_program())
            .args(command.get_args())
            .env(DIRECTORY, &root)
            .stdout(std::process::Stdio::null())
            .status()
            .unwrap();
        assert!(status.success(), "umask {umask}");
        let found = snapshot(&root);
        assert!(found.len() > 8, "{found:?}");
        for (path, (mode, _)) in found {
            let private = if path.is_dir() { 0o700 } else { 0o600 };
            assert_eq!(mode & 0o7777, private, "{} under umask {umask}", path.display());
        }
        assert_eq!(root.metadata().unwrap().permissions().mode() & 0o7777, 0o700);
    }
}

#[test]
#[ignore = "a process of everything_is_private_whatever_the_umask"]
fn write_everything() {
    let root = directory_of_process();
    let guard = FileLock::new(&root).acquire(0, "writing").unwrap();
    let store = Directory::new(&root);
    let runtime = |path: &str| Change { area: Area::Runtime, ..put(path, "{}") };
    store
        .commit(
            &*guard,
            0,
            &[put("sources/p/_v2/t.md", "x"), put("core.md", "x"), runtime("sub/x.json")],
            &About::default(),
        )
        .unwrap();
    store
        .commit(
            &*guard,
            1,
            &[append("core.md", 1, "y"), rename("sources/p/_v2/t.md", "sources/q/t.md")],
            &About::default(),
        )
        .unwrap();
    store.commit(&*guard, 2, &[splice("core.md", &[(0, 1, "z")])], &About::default()).unwrap();
    store.put_cache("a/b", b"x").unwrap();
    store.append_cache("c/d", 0, b"x").unwrap();
}

#[test]
fn each_commit_syncs_what_it_must() {
    let space = Space::with(&[("a", "x"), ("d/b", "x")]);
    // The store's own directory is made, and synced, once.
    space.commit(&[put("first", "")]).unwrap();
    let cost = |changes: &[Change]| {
        let guard = space.guard();
        let base = space.store.generation().unwrap();
        let (result, steps) = disk::fault::counting(|| space.store.commit(&*guard, base, changes, &About::default()));
        result.unwrap();
        steps
    };
    // Journal made, written, synced, renamed, directory synced; then, before and after, what the edit needs:
    let journal = 5;
    let settle = 1;
    // And the names of staged files synced, once for all of them.
    let staging = 1;
    assert_eq!(cost(&[append("a", 1, "y")]), journal + settle + 6, "room: make, reserve, remove; write, seal, sync");
    assert_eq!(
        cost(&[put("a", "z")]),
        journal + settle + staging + 6,
        "make, write, seal, sync, rename, sync directory"
    );
    assert_eq!(cost(&[put("d/c", "z"), put("d/e", "z")]), journal + settle + staging + 2 * 5 + 1, "one directory");
    assert_eq!(
        cost(&[put("new/dir/c", "z")]),
        journal + settle + staging + 6 + 2 * 2,
        "each new directory made, its name synced"
    );
    assert_eq!(cost(&[delete("d/c")]), journal + settle + 2, "remove, sync directory");
}
