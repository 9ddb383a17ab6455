//! Listing and reading: order, pages, chunks, containment, and that none of it leaves a trace.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::time::Duration;

use super::*;

fn paths(entries: &[Entry]) -> Vec<&str> {
    entries.iter().map(|entry| entry.path.as_str()).collect()
}

fn fifo(path: &Path) {
    rustix::fs::mknodat(rustix::fs::CWD, path, rustix::fs::FileType::Fifo, rustix::fs::Mode::RUSR, 0).unwrap();
}

#[test]
fn a_workspace_that_does_not_exist_is_empty_and_stays_so() {
    let above = tempfile::tempdir().unwrap();
    let store = Directory::new(&above.path().join("a/b"));
    assert_eq!(store.generation(), Ok(0));
    assert_eq!(list(&store, Area::Tree, "", 0), []);
    assert_eq!(list(&store, Area::Runtime, "x", 0), []);
    assert_eq!(store.stat(Area::Tree, "x"), Err(StoreError::NotFound));
    assert_eq!(store.read_text(Area::Tree, "x", None, 0, 9), Err(StoreError::NotFound));
    assert_eq!(store.kept(), Ok(vec![]));
    assert_eq!(store.drop_cache("x"), Ok(()));
    assert!(matches!(store.put_cache("x", b""), Err(StoreError::Denied(_))));
    assert!(matches!(store.append_cache("x", 0, b""), Err(StoreError::Denied(_))));
    assert_eq!(std::fs::read_dir(above.path()).unwrap().count(), 0);
}

#[test]
fn reading_leaves_no_trace() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(directory.path().join("topics")).unwrap();
    std::fs::write(directory.path().join("topics/a.md"), "a").unwrap();
    let before = snapshot(directory.path());
    let store = Directory::new(directory.path());
    assert_eq!(paths(&list(&store, Area::Tree, "", 0)), ["topics/a.md"]);
    assert_eq!(list(&store, Area::Runtime, "", 0), []);
    assert_eq!(list(&store, Area::Cache, "", 0), []);
    assert_eq!(text(&store, Area::Tree, "topics/a.md", 9).as_deref(), Ok("a"));
    assert_eq!(store.stat(Area::Runtime, "runtime.json"), Err(StoreError::NotFound));
    assert_eq!(store.generation(), Ok(0));
    assert_eq!(store.is_unfinished(), Ok(false));
    assert_eq!(snapshot(directory.path()), before);
}

#[test]
fn listings_are_in_code_point_order_whatever_the_page() {
    let space = Space::with(&[
        ("a/x", ""),
        ("a/y/z", ""),
        ("a-b", ""),
        ("a0", ""),
        ("a.md", ""),
        ("a/y.md", ""),
        ("b/.scriptorium/c", ""),
        ("topics/.git/x.md", ""),
        ("Z", ""),
        ("\u{e9}", ""),
        ("\u{1f600}", ""),
        ("\u{ffee}", ""),
        (".scriptoriumx", ""),
        (".hidden", ""),
        (".git/config", "internal"),
        (".scriptorium-bm25.json", "internal"),
        (".nativemem-x/y", "internal"),
        (".scriptorium/runtime.json", "{}"),
    ]);
    std::fs::create_dir_all(space.root().join("empty/er")).unwrap();
    let whole = list(&space.store, Area::Tree, "", 0);
    let mut sorted = paths(&whole);
    sorted.sort_unstable();
    assert_eq!(paths(&whole), sorted);
    assert_eq!(whole.len(), 14);
    assert!(!paths(&whole).iter().any(|path| path.starts_with(".git") || path.starts_with(".nat")));
    for max in 1..=whole.len() as u32 + 1 {
        assert_eq!(paths(&list(&space.store, Area::Tree, "", max)), sorted, "pages of {max}");
    }
    // Without a walk that goes on: each cursor, those of no file included, begins in the right place.
    for cursor in sorted.iter().copied().chain(["a", "a/", "a/y", "a/y/", "b/.z", "m", "\u{10ffff}"]) {
        let page = space.another().entries(Area::Tree, "", Some(cursor), 0).unwrap();
        let behind: Vec<_> = sorted.iter().copied().filter(|path| *path > cursor).collect();
        assert_eq!(paths(&page.entries), behind, "behind {cursor:?}");
    }
    assert_eq!(paths(&list(&space.store, Area::Tree, "a", 0)), ["a/x", "a/y.md", "a/y/z"]);
    assert_eq!(paths(&list(&space.store, Area::Tree, "a/y", 0)), ["a/y/z"]);
    for nothing in ["absent", "a.md", "a.md/x", "empty"] {
        assert_eq!(list(&space.store, Area::Tree, nothing, 0), [], "{nothing}");
    }
    for denied in [".git", "..", "/", "a/", ".scriptorium"] {
        assert!(matches!(space.store.entries(Area::Tree, denied, None, 0), Err(StoreError::Denied(_))), "{denied}");
    }
    for denied in [".git", ".git/config", "..", "../a", "/", "/a", "a//b", "a/./b", "a\0b", ".scriptorium/x", "a//"] {
        for prefix in ["", "a"] {
            let page = space.store.entries(Area::Tree, prefix, Some(denied), 0);
            assert!(matches!(page, Err(StoreError::Denied(_))), "behind {denied:?} below {prefix:?}: {page:?}");
        }
    }
    symlink("/etc", space.root().join("link")).unwrap();
    assert!(matches!(space.another().entries(Area::Tree, "", Some("link/a"), 0), Err(StoreError::Denied(_))));
    assert!(paths(&space.another().entries(Area::Tree, "", Some("link"), 0).unwrap().entries).contains(&"\u{e9}"));
    assert_eq!(paths(&list(&space.store, Area::Runtime, "", 0)), ["runtime.json"]);
}

#[test]
fn pages_go_on_when_files_come_and_go() {
    let space = Space::with(&[("a", ""), ("b", ""), ("c/d", ""), ("e", "")]);
    let page = space.store.entries(Area::Tree, "", None, 2).unwrap();
    assert_eq!(paths(&page.entries), ["a", "b"]);
    std::fs::remove_dir_all(space.root().join("c")).unwrap();
    std::fs::remove_file(space.root().join("b")).unwrap();
    let rest = space.store.entries(Area::Tree, "", page.next.as_deref(), 2).unwrap();
    assert_eq!(paths(&rest.entries), ["e"]);
    // A commit makes the names that were read already worthless.
    let page = space.store.entries(Area::Tree, "", None, 1).unwrap();
    let committed = space.commit(&[put("b", "")]).unwrap();
    let rest = space.store.entries(Area::Tree, "", page.next.as_deref(), 1).unwrap();
    assert_eq!((paths(&rest.entries), rest.generation), (vec!["b"], committed.generation));
}

#[test]
fn what_is_no_file_is_shown_and_never_opened() {
    let space = Space::with(&[("d/file", "x"), ("outside/secret", "s")]);
    let root = space.root();
    symlink("d/file", root.join("link")).unwrap();
    symlink("outside", root.join("linked")).unwrap();
    symlink("/nowhere", root.join("dangling")).unwrap();
    fifo(&root.join("pipe"));
    let _socket = UnixListener::bind(root.join("socket")).unwrap();
    std::fs::write(root.join(OsStr::from_bytes(b"bad\xff.md")), "").unwrap();
    std::fs::create_dir(root.join(OsStr::from_bytes(b"worse\xfe"))).unwrap();
    std::fs::write(root.join(OsStr::from_bytes(b"worse\xfe")).join("x"), "").unwrap();

    let kinds: Vec<_> = list(&space.store, Area::Tree, "", 2).into_iter().map(|e| (e.path, e.kind)).collect();
    let expected = [
        ("bad\u{fffd}.md", Kind::Undecodable),
        ("d/file", Kind::File),
        ("dangling", Kind::Symlink),
        ("link", Kind::Symlink),
        ("linked", Kind::Symlink),
        ("outside/secret", Kind::File),
        ("pipe", Kind::Special),
        ("socket", Kind::Special),
        ("worse\u{fffd}", Kind::Undecodable),
    ];
    assert_eq!(kinds, expected.map(|(path, kind)| (path.to_owned(), kind)));

    for (path, kind) in [("link", Kind::Symlink), ("pipe", Kind::Special), ("d/file", Kind::File)] {
        assert_eq!(space.store.stat(Area::Tree, path).unwrap().kind, kind);
    }
    // In a thread of its own: a pipe without a writer would keep whoever opens it waiting.
    let (send, receive) = std::sync::mpsc::channel();
    let store = space.another();
    std::thread::spawn(move || {
        for path in ["link", "linked/secret", "dangling", "pipe", "socket", "d", "linked"] {
            send.send((path, store.read_text(Area::Tree, path, None, 0, 9))).unwrap();
            send.send((path, store.read_bytes(Area::Tree, path, None, 0, 9).map(|_| unreachable!()))).unwrap();
        }
    });
    for _ in 0..14 {
        let (path, result) = receive.recv_timeout(Duration::from_secs(10)).expect("reading waits");
        assert!(matches!(result, Err(StoreError::Denied(_))), "{path}: {result:?}");
    }
    for path in ["bad\u{fffd}.md", "d/file/x", "worse\u{fffd}/x", "none"] {
        assert_eq!(space.store.read_text(Area::Tree, path, None, 0, 9), Err(StoreError::NotFound), "{path}");
    }
    for path in ["d", "none", "d/file/x"] {
        assert_eq!(space.store.stat(Area::Tree, path), Err(StoreError::NotFound), "{path}");
    }
    assert!(matches!(space.store.stat(Area::Tree, "linked/secret"), Err(StoreError::Denied(_))));
    assert!(matches!(space.store.entries(Area::Tree, "linked", None, 0), Err(StoreError::Denied(_))));
}

#[test]
fn nothing_outside_can_be_named() {
    let space = Space::with(&[("a/b.md", "x"), (".git/config", "x"), (".scriptorium/runtime.json", "{}")]);
    let long = format!("a/{}", "n".repeat(300));
    let absolute = space.root().join("a/b.md");
    for path in [
        "",
        "..",
        "../x",
        "a/../a/b.md",
        "./a/b.md",
        "a//b.md",
        "a/b.md/",
        "a\0",
        &long,
        absolute.to_str().unwrap(),
        ".git/config",
        ".Git/config",
        ".scriptorium/runtime.json",
        ".scriptorium",
        ".nativemem/x",
        ".scriptorium-recollex/x",
    ] {
        let denied = |error: Option<StoreError>| assert!(matches!(error, Some(StoreError::Denied(_))), "{path:?}");
        denied(space.store.stat(Area::Tree, path).err());
        denied(space.store.read_text(Area::Tree, path, None, 0, 9).err());
        denied(space.store.read_bytes(Area::Tree, path, None, 0, 9).err());
        for changed in [put(path, ""), delete(path), rename("a/b.md", path), rename(path, "new")] {
            match space.commit(&[changed]) {
                Err(CommitError::Failed { path: of, error: StoreError::Denied(_) }) => assert_eq!(of, path),
                other => panic!("{path:?}: {other:?}"),
            }
        }
    }
    for path in ["recollex/journal", "write.lock", "../a/b.md"] {
        assert!(matches!(space.store.read_text(Area::Runtime, path, None, 0, 9), Err(StoreError::Denied(_))), "{path}");
    }
    assert_eq!(text(&space.store, Area::Runtime, "runtime.json", 9).as_deref(), Ok("{}"));
}

#[test]
fn the_root_may_be_behind_a_link_and_the_runtime_directory_may_not() {
    let space = Space::with(&[("a", "x")]);
    let elsewhere = tempfile::tempdir().unwrap();
    let link = elsewhere.path().join("link");
    symlink(space.root(), &link).unwrap();
    let store = Directory::new(&link);
    assert_eq!(text(&store, Area::Tree, "a", 9).as_deref(), Ok("x"));
    let guard = FileLock::new(&link).acquire(0, "").unwrap();
    store.commit(&*guard, 0, &[put("b", "y")], &About::default()).unwrap();
    drop(guard);
    assert_eq!(space.raw("b").as_deref(), Some("y"));

    std::fs::rename(space.root().join(".scriptorium"), elsewhere.path().join("runtime")).unwrap();
    symlink(elsewhere.path().join("runtime"), space.root().join(".scriptorium")).unwrap();
    assert_eq!(text(&store, Area::Tree, "a", 9).as_deref(), Ok("x"));
    assert!(matches!(store.entries(Area::Runtime, "", None, 0), Err(StoreError::Denied(_))));
    assert!(matches!(FileLock::new(&link).acquire(0, ""), Err(crate::lock::LockError::Denied(_))));
}

#[test]
fn an_old_runtime_directory_is_used_where_there_is_one() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::create_dir(directory.path().join(".nativemem")).unwrap();
    let store = Directory::new(directory.path());
    let guard = FileLock::new(directory.path()).acquire(0, "").unwrap();
    let change = Change {
        area: Area::Runtime,
        path: "runtime.json".to_owned(),
        expect: Expect::Absent,
        edit: Edit::Put("{}".to_owned()),
    };
    store.commit(&*guard, 0, &[change], &About::default()).unwrap();
    assert_eq!(std::fs::read_to_string(directory.path().join(".nativemem/runtime.json")).unwrap(), "{}");
    assert!(!directory.path().join(".scriptorium").exists());
    assert_eq!(paths(&list(&store, Area::Runtime, "", 0)), ["runtime.json"]);
}

#[test]
fn text_comes_in_whole_characters() {
    let whole = "a\u{e9}\u{6c49}\u{1f600}\u{0}\r\n\u{10ffff}z\u{6c49}\u{6c49}";
    let space = Space::with(&[("t", whole), ("empty", "")]);
    for max in 0..=whole.len() as u32 + 3 {
        assert_eq!(text(&space.store, Area::Tree, "t", max).as_deref(), Ok(whole), "in pieces of {max}");
    }
    for offset in 0..=whole.len() + 2 {
        for max in 0..6 {
            let read = space.store.read_text(Area::Tree, "t", None, offset as u64, max);
            if offset > whole.len() || whole.is_char_boundary(offset) {
                let chunk = read.unwrap();
                let rest = whole.get(offset..).unwrap_or("");
                assert!(rest.starts_with(&chunk.text));
                assert!(chunk.text.len() <= (max as usize).max(rest.chars().next().map_or(0, char::len_utf8)));
                assert_eq!(chunk.eof, chunk.text == rest);
            } else {
                assert_eq!(read, Err(StoreError::NotText(offset as u64)), "offset {offset}, {max} bytes");
            }
        }
    }
    let nothing = space.store.read_text(Area::Tree, "empty", None, 0, 0).unwrap();
    assert_eq!((nothing.text.as_str(), nothing.next, nothing.eof), ("", 0, true));
    let all = space.store.read_text(Area::Tree, "t", None, 0, u32::MAX).unwrap();
    assert_eq!((all.text.as_str(), all.eof), (whole, true));
}

#[test]
fn bytes_that_are_no_text_are_named_when_they_are_reached() {
    let space = Space::new();
    for bad in [&b"\xff"[..], b"\xc3", b"\xe6\xb1", b"\xed\xa0\x80", b"\xc0\xaf", b"\xf4\x90\x80\x80", b"\xe6\xb1x"] {
        for before in ["", "x", "\u{6c49}\u{6c49}", "0123456789"] {
            let mut bytes = before.as_bytes().to_vec();
            bytes.extend_from_slice(bad);
            space.write("t", &bytes);
            for max in [1, 3, 4, 5, 64] {
                assert_eq!(
                    text(&space.store, Area::Tree, "t", max),
                    Err(StoreError::NotText(before.len() as u64)),
                    "{bad:?} behind {before:?} in pieces of {max}"
                );
            }
            let first = space.store.read_text(Area::Tree, "t", None, 0, 64);
            if !before.is_empty() {
                assert_eq!(first.map(|chunk| (chunk.text, chunk.eof)), Ok((before.to_owned(), false)));
            }
            let chunk = space.store.read_bytes(Area::Tree, "t", None, 0, 64).unwrap();
            assert_eq!((chunk.data, chunk.eof), (bytes, true));
        }
    }
}

#[test]
fn bytes_come_by_range() {
    let space = Space::new();
    let whole: Vec<u8> = (0..=255).collect();
    space.write("b", &whole);
    for (offset, max) in [(0, 0), (0, 1), (1, 254), (1, 255), (0, 256), (0, 1000), (255, 1), (256, 1), (1 << 40, 9)] {
        let chunk = space.store.read_bytes(Area::Tree, "b", None, offset, max).unwrap();
        let from = (offset as usize).min(256);
        let to = (from + max as usize).min(256);
        assert_eq!((&chunk.data[..], chunk.eof), (&whole[from..to], to == 256), "{max} from {offset}");
    }
}

#[test]
fn a_huge_file_is_read_where_it_is_asked() {
    let space = Space::with(&[("huge", "")]);
    let length = 5 << 30;
    let file = std::fs::File::options().write(true).open(space.root().join("huge")).unwrap();
    file.set_len(length).unwrap();
    std::os::unix::fs::FileExt::write_all_at(&file, "\u{6c49}".as_bytes(), length - 4).unwrap();
    let chunk = space.store.read_text(Area::Tree, "huge", None, length - 5, 100).unwrap();
    assert_eq!((chunk.text.as_str(), chunk.next, chunk.eof), ("\0\u{6c49}\0", length, true));
    assert_eq!(space.store.read_text(Area::Tree, "huge", None, length - 3, 100), Err(StoreError::NotText(length - 3)));
    // However much is asked for, the store has its own measure.
    let chunk = space.store.read_bytes(Area::Tree, "huge", None, 0, u32::MAX).unwrap();
    assert!(!chunk.eof && chunk.data.len() <= 16 << 20);
    // And it can be added to.
    space.commit(&[append("huge", length, "end")]).unwrap();
    assert_eq!(space.store.read_text(Area::Tree, "huge", None, length, 9).unwrap().text, "end");
}

#[test]
fn a_stamp_names_a_version() {
    let space = Space::with(&[("t", "one"), ("u", "one")]);
    let stamp = space.stamp("t");
    let read = |at: &Stamp| space.store.read_text(Area::Tree, "t", Some(at), 0, 9).map(|chunk| chunk.text);
    assert_eq!(read(&stamp).as_deref(), Ok("one"));
    assert!(stamp.racy, "just written");
    std::thread::sleep(Duration::from_millis(50));
    let settled = space.stamp("t");
    assert!(settled.same_version(&stamp) && !settled.racy);

    // Same length, and the old time of the content put back: still another version.
    let path = space.root().join("t");
    let modified = path.metadata().unwrap().modified().unwrap();
    std::fs::write(&path, "two").unwrap();
    std::fs::File::options().write(true).open(&path).unwrap().set_modified(modified).unwrap();
    assert_eq!(read(&stamp), Err(StoreError::Changed));
    let bytes = space.store.read_bytes(Area::Tree, "t", Some(&stamp), 0, 9);
    assert_eq!(bytes, Err(StoreError::Changed));
    // Replaced by a file that was there all the time.
    let stamp = space.stamp("t");
    std::fs::rename(space.root().join("u"), &path).unwrap();
    assert_eq!(read(&stamp), Err(StoreError::Changed));
    std::fs::remove_file(&path).unwrap();
    assert_eq!(read(&stamp), Err(StoreError::NotFound));
}

#[test]
fn a_tree_of_any_depth_is_listed() {
    let space = Space::new();
    // Deeper than the system takes in one path, so it is made from within.
    let mut at = rustix::fs::open(space.root(), rustix::fs::OFlags::DIRECTORY, rustix::fs::Mode::empty()).unwrap();
    let name = "n".repeat(200);
    for _ in 0..30 {
        at = disk::make_dir(&at, &name).unwrap().0;
        disk::write_at(disk::create(&at, "file").unwrap(), b"x", 0).unwrap();
    }
    let entries = list(&space.store, Area::Tree, "", 7);
    let (last, files) = entries.split_last().unwrap();
    // "file" sorts before the long name: each level shows its file first, and the last shown is what is too deep.
    assert_eq!((last.kind, last.path.len() > 4000), (Kind::Special, true));
    assert_eq!(files.len(), 20);
    assert!(files.iter().all(|entry| entry.kind == Kind::File));
    let deepest = &files.last().unwrap().path;
    assert_eq!(text(&space.store, Area::Tree, deepest, 9).as_deref(), Ok("x"));
}

#[test]
fn cache_files_are_replaced_added_to_and_dropped() {
    let space = Space::with(&[("t", "x")]);
    let store = &space.store;
    let stamp = store.put_cache("index/base", b"\xff01").unwrap();
    assert_eq!(store.read_bytes(Area::Cache, "index/base", Some(&stamp), 0, 9).unwrap().data, b"\xff01");
    assert!(!stamp.racy);
    let stamp = store.append_cache("index/base", 3, b"23").unwrap();
    assert_eq!((stamp.size, paths(&list(store, Area::Cache, "", 0))), (5, vec!["index/base"]));
    assert_eq!(store.append_cache("index/base", 3, b"x"), Err(StoreError::Changed));
    assert_eq!(store.append_cache("new", 1, b"x"), Err(StoreError::Changed));
    assert_eq!(store.append_cache("new", 0, b"x").unwrap().size, 1);
    store.put_cache("new", b"").unwrap();
    assert_eq!(store.read_bytes(Area::Cache, "new", None, 0, 9).unwrap().data, b"");
    for denied in ["", "..", "a/../b", ".tmp-1", "index"] {
        assert!(matches!(store.put_cache(denied, b""), Err(StoreError::Denied(_))), "{denied}");
        assert!(matches!(store.append_cache(denied, 0, b""), Err(StoreError::Denied(_))), "{denied}");
        assert!(matches!(store.drop_cache(denied), Err(StoreError::Denied(_))), "{denied}");
    }
    let root = space.root().join(".scriptorium-recollex");
    assert_eq!(std::fs::read_dir(&root).unwrap().count(), 2, "no temporary file stays");
    store.drop_cache("new").unwrap();
    store.drop_cache("new").unwrap();
    store.drop_cache("none/at/all").unwrap();
    assert_eq!(paths(&list(store, Area::Cache, "", 0)), ["index/base"]);
    assert_eq!(paths(&list(store, Area::Tree, "", 0)), ["t"]);
    let modes: Vec<u32> = snapshot(&root).values().map(|(mode, _)| mode & 0o777).collect();
    assert_eq!(modes, [0o700, 0o600]);

    // A link in its place is not followed.
    std::fs::remove_dir_all(&root).unwrap();
    let elsewhere = tempfile::tempdir().unwrap();
    symlink(elsewhere.path(), &root).unwrap();
    assert!(matches!(store.put_cache("x", b""), Err(StoreError::Denied(_))));
    assert!(matches!(store.append_cache("x", 0, b""), Err(StoreError::Denied(_))));
    assert_eq!(std::fs::read_dir(elsewhere.path()).unwrap().count(), 0);
}

#[test]
fn temporary_cache_files_without_a_writer_go() {
    let space = Space::with(&[(".scriptorium-recollex/.tmp-1-0", "x"), (".scriptorium-recollex/.tmp-2-0", "x")]);
    let old = std::time::SystemTime::now() - Duration::from_secs(7200);
    let path = space.root().join(".scriptorium-recollex/.tmp-1-0");
    std::fs::File::options().write(true).open(&path).unwrap().set_modified(old).unwrap();
    space.store.put_cache("x", b"").unwrap();
    assert!(!path.exists());
    assert!(space.root().join(".scriptorium-recollex/.tmp-2-0").exists(), "its writer may live");
}

#[test]
fn a_cache_write_that_fails_leaves_the_old_file() {
    let space = Space::new();
    space.store.put_cache("x", b"old").unwrap();
    for step in 0.. {
        let (result, failed) =
            disk::fault::failing(step, rustix::io::Errno::NOSPC, || space.store.put_cache("x", b"newer"));
        if !failed {
            break;
        }
        // Tidying up is best effort, so not each fault is an error; but each error changes nothing.
        if let Err(error) = result {
            assert_eq!(error, StoreError::Full);
            assert_eq!(space.store.read_bytes(Area::Cache, "x", None, 0, 9).unwrap().data, b"old", "step {step}");
        }
        space.store.put_cache("x", b"old").unwrap();
        assert_eq!(paths(&list(&space.store, Area::Cache, "", 0)), ["x"]);
    }
    space.store.put_cache("x", b"old").unwrap();
    for step in 0.. {
        let (result, failed) =
            disk::fault::failing(step, rustix::io::Errno::NOSPC, || space.store.append_cache("x", 3, b"+"));
        if !failed {
            result.unwrap();
            break;
        }
        assert_eq!(result, Err(StoreError::Full));
        assert_eq!(space.store.read_bytes(Area::Cache, "x", None, 0, 9).unwrap().data, b"old", "step {step}");
    }
    assert_eq!(space.store.read_bytes(Area::Cache, "x", None, 0, 9).unwrap().data, b"old+");
    // Where there was no file, none comes of it.
    for step in 0.. {
        let (result, failed) =
            disk::fault::failing(step, rustix::io::Errno::NOSPC, || space.store.append_cache("y", 0, b"+"));
        if !failed {
            result.unwrap();
            break;
        }
        assert_eq!(result, Err(StoreError::Full));
        assert_eq!(paths(&list(&space.store, Area::Cache, "", 0)), ["x"], "step {step}");
    }
}

/// For root nothing is closed, so another user looks.
#[test]
fn what_may_not_be_looked_into_is_shown_and_ends_no_listing() {
    use std::os::unix::fs::{PermissionsExt, chown};
    use std::os::unix::process::CommandExt as _;

    const NOBODY: u32 = 65_534;
    let above = tempfile::tempdir().unwrap();
    let open = |path: &Path| std::fs::set_permissions(path, PermissionsExt::from_mode(0o755)).unwrap();
    open(above.path());
    let root = above.path().join("memory");
    for directory in ["a", "closed", "names", "z"] {
        std::fs::create_dir_all(root.join(directory)).unwrap();
        std::fs::write(root.join(directory).join("x"), "x").unwrap();
    }
    let mut command = process("store::tests::reading::look_into_everything", &root);
    command.env(DIRECTORY, &root);
    if rustix::process::geteuid().is_root() {
        // Where this test lies the other user may not come to.
        let program = above.path().join("looking");
        std::fs::copy(command.get_program(), &program).unwrap();
        open(&program);
        let arguments: Vec<_> = command.get_args().map(OsStr::to_owned).collect();
        command = Command::new(program);
        command.args(arguments).env(DIRECTORY, &root).current_dir("/").uid(NOBODY).gid(NOBODY);
        for path in ["", "a", "a/x", "closed", "names", "z", "z/x"] {
            chown(root.join(path), Some(NOBODY), Some(NOBODY)).unwrap();
        }
    }
    let mode = |directory: &str, mode| {
        std::fs::set_permissions(root.join(directory), PermissionsExt::from_mode(mode)).unwrap();
    };
    mode("closed", 0);
    mode("names", 0o400);
    let output = command.output().unwrap();
    mode("closed", 0o700);
    mode("names", 0o700);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
#[ignore = "a process of what_may_not_be_looked_into_is_shown_and_ends_no_listing"]
fn look_into_everything() {
    let store = Directory::new(&directory_of_process());
    let expected =
        [("a/x", Kind::File), ("closed", Kind::Unreadable), ("names", Kind::Unreadable), ("z/x", Kind::File)];
    for max in [1, 100] {
        let found: Vec<_> =
            list(&store, Area::Tree, "", max).into_iter().map(|entry| (entry.path, entry.kind)).collect();
        assert_eq!(found, expected.map(|(path, kind)| (path.to_owned(), kind)), "{max}");
    }
    assert_eq!(store.stat(Area::Tree, "closed"), Err(StoreError::NotFound));
    assert_eq!(store.troubles(), Ok(Vec::new()));
}
