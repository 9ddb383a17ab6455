//! Backups and restores over real directories, with faults and forgeries.

use std::collections::BTreeMap;
use std::fs;
use std::io::Cursor;
use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};

use super::bundle::{MANIFEST, SUM, header, hex};
use super::*;
use crate::lock::{FileLock, Lock as _};
use crate::store::disk::fault;
use crate::store::{Directory, Guard};

fn lock(root: &Path) -> Box<dyn Guard> {
    FileLock::new(root).acquire(10_000, "test").unwrap()
}

fn quiet() -> impl FnMut(u64, u64) {
    |done, total| assert!(done <= total)
}

/// A workspace with these files, and its parent directory.
fn workspace(files: &[(&str, &[u8])]) -> (tempfile::TempDir, PathBuf) {
    let parent = tempfile::tempdir().unwrap();
    let root = parent.path().join("memory");
    drop(lock(&root));
    for (path, content) in files {
        let path = root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }
    (parent, root)
}

/// What belongs to memory, by path.
fn contents(root: &Path) -> BTreeMap<String, Vec<u8>> {
    let (mut found, mut open) = (BTreeMap::new(), vec![root.to_owned()]);
    while let Some(directory) = open.pop() {
        for entry in fs::read_dir(&directory).unwrap() {
            let path = entry.unwrap().path();
            let name = path.strip_prefix(root).unwrap().to_str().unwrap().to_owned();
            match name.as_str() {
                ".scriptorium/recollex" | ".scriptorium/write.lock" | ".scriptorium-recollex" | ".git" => {}
                _ if path.is_dir() => open.push(path),
                _ => {
                    found.insert(name, fs::read(&path).unwrap());
                }
            }
        }
    }
    found
}

fn back_up(root: &Path, target: &Path) -> Result<Backup, BackupError> {
    backup(&Directory::new(root), &*lock(root), target, false, &mut quiet())
}

/// Restores as the command does, but for the safety backup.
fn put_back(root: &Path, bytes: &[u8]) -> Result<Plan, BackupError> {
    let mut stream = Cursor::new(bytes);
    let manifest = check(&mut stream, &mut quiet())?;
    let (store, guard) = (Directory::new(root), lock(root));
    store.recover(&*guard).unwrap();
    let plan = plan(&store, &manifest, &mut quiet())?;
    restore(&store, &*guard, &mut stream, &manifest, &plan, &mut quiet())?;
    Ok(plan)
}

const LONG: &str = "sources/a-provider-with-a-long-name/_v2/a-thread-whose-name-does-not-fit-into-the-header-of-a-tar-\
                    archive-and-so-needs-a-member-of-its-own.md";

#[test]
fn a_restored_copy_is_the_workspace() {
    let big = vec![b'x'; (3 << 20) + 7];
    let (_parent, root) = workspace(&[
        ("sources/p/_v2/t.md", b"one\n"),
        (LONG, "\u{55b7}".as_bytes()),
        ("topics/big.md", &big),
        ("topics/empty.md", b""),
        ("not-text.bin", b"\xff\0\xfe"),
        (".scriptorium/workspace-id", b"w-1\n"),
        (".scriptorium/runtime.json", b"{}"),
        (".scriptorium/recollex-receipts.jsonl", b"{\"session\":\"s\",\"nodes\":[\"n1\"]}\n"),
        (".scriptorium/unknown.json", b"stays here"),
        (".scriptorium-recollex/files", b"RCLX"),
        (".git/config", b"[core]"),
    ]);
    std::os::unix::fs::symlink("/etc", root.join("link")).unwrap();
    let target = root.with_file_name("b.tar");
    let made = back_up(&root, &target).unwrap();
    assert_eq!(made.left_out, ["link"]);
    assert_eq!(made.manifest.workspace.as_deref(), Some("w-1"));
    fs::remove_file(root.join("link")).unwrap();
    let mode = std::os::unix::fs::PermissionsExt::mode(&target.metadata().unwrap().permissions());
    assert_eq!(mode & 0o777, 0o600);

    let bytes = fs::read(&target).unwrap();
    assert_eq!(check(&mut Cursor::new(&bytes), &mut quiet()).unwrap(), made.manifest);
    let (_other, copy) = workspace(&[]);
    let done = put_back(&copy, &bytes).unwrap();
    assert!(done.is_empty);
    let mut expected = contents(&root);
    expected.remove(".scriptorium/unknown.json");
    assert_eq!(contents(&copy), expected);
    // What is as it should be is not written again.
    let again = put_back(&copy, &bytes).unwrap();
    assert!(again.is_done() && again.unchanged == 8);

    // Nothing else is left beside it, and it is not written over.
    assert_eq!(fs::read_dir(root.parent().unwrap()).unwrap().count(), 2);
    assert!(
        matches!(back_up(&root, &target), Err(BackupError::Io(error)) if error.kind() == std::io::ErrorKind::AlreadyExists)
    );
    assert_eq!(fs::read(&target).unwrap(), bytes);
}

#[test]
fn a_restore_replaces_adds_and_removes_and_leaves_alone_what_is_no_memory() {
    let (_parent, root) = workspace(&[("topics/a.md", b"old"), ("topics/d/gone.md", b"came back"), ("same.md", b"=")]);
    let target = root.with_file_name("b.tar");
    back_up(&root, &target).unwrap();
    fs::write(root.join("topics/a.md"), "newer").unwrap();
    fs::remove_dir_all(root.join("topics/d")).unwrap();
    fs::write(root.join("topics/later.md"), "later").unwrap();
    for kept in [".git/config", ".scriptorium/other.json"] {
        fs::create_dir_all(root.join(kept).parent().unwrap()).unwrap();
        fs::write(root.join(kept), "kept").unwrap();
    }
    let plan = put_back(&root, &fs::read(&target).unwrap()).unwrap();
    assert_eq!((plan.added, plan.replaced, plan.unchanged, plan.deleted, plan.bytes), (1, 1, 1, 1, 12));
    let text = |path: &str| fs::read_to_string(root.join(path)).unwrap();
    assert_eq!((text("topics/a.md"), text("topics/d/gone.md")), ("old".to_owned(), "came back".to_owned()));
    assert_eq!((text(".git/config"), text(".scriptorium/other.json")), ("kept".to_owned(), "kept".to_owned()));
    assert!(!root.join("topics/later.md").exists());
}

#[test]
fn names_in_each_others_way_are_refused_and_nothing_is_changed() {
    let (_parent, root) = workspace(&[("topics/a.md", b"x"), ("b", b"x")]);
    let target = root.with_file_name("b.tar");
    back_up(&root, &target).unwrap();
    let bytes = fs::read(&target).unwrap();
    for there in [&["topics/A.md"][..], &["b/file"]] {
        let files: Vec<(&str, &[u8])> = there.iter().map(|path| (*path, &b"theirs"[..])).collect();
        let (_other, root) = workspace(&files);
        let before = contents(&root);
        assert!(matches!(put_back(&root, &bytes), Err(BackupError::Commit(_))), "{there:?}");
        assert_eq!(contents(&root), before);
    }
    let (_twins, root) = workspace(&[("topics/a.md", b"x"), ("topics/A.md", b"x")]);
    if contents(&root).len() == 2 {
        assert!(matches!(back_up(&root, &root.with_file_name("t.tar")), Err(BackupError::Twins { .. })));
        assert_eq!(fs::read_dir(root.parent().unwrap()).unwrap().count(), 1);
    }
}

#[test]
fn a_backup_that_is_cut_or_altered_anywhere_is_refused() {
    let (_parent, root) =
        workspace(&[("topics/a.md", b"some text"), (LONG, b"more"), (".scriptorium/workspace-id", b"w")]);
    let target = root.with_file_name("b.tar");
    let made = back_up(&root, &target).unwrap().manifest;
    let bytes = fs::read(&target).unwrap();
    // Behind the last member there are only the zeros that end any tar archive.
    let end = bytes.iter().rposition(|byte| *byte != 0).unwrap() + 1;
    for length in 0..end {
        assert!(check(&mut Cursor::new(&bytes[..length]), &mut |_, _| {}).is_err(), "cut at {length}");
    }
    let mut accepted = 0;
    for at in 0..end {
        let mut altered = bytes.clone();
        altered[at] ^= 0x10;
        match check(&mut Cursor::new(&altered), &mut |_, _| {}) {
            Err(_) => {}
            // Fill between members, and two spellings of one number, say nothing.
            Ok(read) => {
                assert_eq!(read, made, "{at}");
                accepted += 1;
            }
        }
    }
    assert!(accepted > 0 && accepted < end);
}

/// A backup with these members, whatever they are called, and sums that fit.
fn forged(members: &[(&str, tar::EntryType, &[u8])], listed: &[(&str, &[u8])]) -> Vec<u8> {
    let files = listed
        .iter()
        .map(|(path, data)| Member {
            path: (*path).to_owned(),
            size: data.len() as u64,
            sha256: hex(&Sha256::digest(data)),
        })
        .collect();
    let manifest = Manifest { format: FORMAT, workspace: None, generation: 0, time: String::new(), files };
    let manifest = serde_json::to_vec(&manifest).unwrap();
    let sum = hex(&Sha256::digest(&manifest));
    let mut archive = tar::Builder::new(Vec::new());
    let mut add = |name: &str, kind: tar::EntryType, data: &[u8]| {
        let mut header = header(data.len() as u64);
        header.set_entry_type(kind);
        // Set by hand: the library refuses what is to be refused here.
        header.as_mut_bytes()[..name.len()].copy_from_slice(name.as_bytes());
        if kind.is_symlink() {
            header.set_link_name("/etc/passwd").unwrap();
        }
        header.set_cksum();
        archive.append(&header, data).unwrap();
    };
    add(MANIFEST, tar::EntryType::Regular, &manifest);
    for (name, kind, data) in members {
        add(name, *kind, data);
    }
    add(SUM, tar::EntryType::Regular, sum.as_bytes());
    archive.into_inner().unwrap()
}

#[test]
fn a_forged_backup_writes_nothing_anywhere() {
    use tar::EntryType::{GNULongName, Link, Regular, Symlink, XHeader};
    let (parent, root) = workspace(&[("topics/a.md", b"old")]);
    let before = (contents(&root), contents(parent.path()));
    let x = &b"x"[..];
    let good = forged(&[("tree/a.md", Regular, x)], &[("tree/a.md", x)]);
    assert!(check(&mut Cursor::new(&good), &mut quiet()).is_ok());
    for (what, bytes) in [
        ("above", forged(&[("tree/../../x", Regular, x)], &[("tree/../../x", x)])),
        ("absolute", forged(&[("/tmp/x", Regular, x)], &[("/tmp/x", x)])),
        ("hidden", forged(&[("tree/.scriptorium/x", Regular, x)], &[("tree/.scriptorium/x", x)])),
        ("lock", forged(&[("runtime/write.lock", Regular, x)], &[("runtime/write.lock", x)])),
        ("link", forged(&[("tree/a.md", Symlink, b"")], &[("tree/a.md", b"")])),
        ("hard link", forged(&[("tree/a.md", Link, b"")], &[("tree/a.md", b"")])),
        ("not listed", forged(&[("tree/a.md", Regular, x), ("tree/b.md", Regular, x)], &[("tree/a.md", x)])),
        ("not there", forged(&[], &[("tree/a.md", x)])),
        ("twins", forged(&[("tree/a", Regular, x), ("tree/A", Regular, x)], &[("tree/a", x), ("tree/A", x)])),
        ("twice", forged(&[("tree/a", Regular, x), ("tree/a", Regular, x)], &[("tree/a", x), ("tree/a", x)])),
        ("other bytes", forged(&[("tree/a.md", Regular, b"y")], &[("tree/a.md", x)])),
        ("other length", forged(&[("tree/a.md", Regular, b"xx")], &[("tree/a.md", x)])),
        (
            "a name without end",
            forged(&[("n", GNULongName, &[b'a'; 70_000]), ("tree/a", Regular, x)], &[("tree/a", x)]),
        ),
        ("extensions", forged(&[("n", XHeader, b"19 path=tree/../x\n"), ("tree/a", Regular, x)], &[("tree/a", x)])),
    ] {
        assert!(put_back(&root, &bytes).is_err(), "{what}");
        assert_eq!((contents(&root), contents(parent.path())), before, "{what}");
    }
    assert!(matches!(check(&mut Cursor::new(b"not a tar"), &mut quiet()), Err(BackupError::Foreign(_))));
    let newer = String::from_utf8(good).unwrap().replace("\"format\":1", "\"format\":2");
    assert!(matches!(check(&mut Cursor::new(newer.as_bytes()), &mut quiet()), Err(BackupError::Newer(2))));
}

#[test]
fn a_restore_that_dies_at_any_step_leaves_the_old_state_or_the_new_one() {
    let (_parent, root) = workspace(&[("topics/a.md", b"then"), ("topics/d/back.md", b"back"), ("same.md", b"=")]);
    let target = root.with_file_name("b.tar");
    back_up(&root, &target).unwrap();
    let bytes = fs::read(&target).unwrap();
    let then = contents(&root);
    let now: &[(&str, &[u8])] = &[("topics/a.md", b"now"), ("topics/later.md", b"later"), ("same.md", b"=")];
    let (mut old, mut new) = (0, 0);
    for step in 0.. {
        let (_parent, root) = workspace(now);
        let before = contents(&root);
        let (result, died) = fault::crashing(step, 2, || put_back(&root, &bytes));
        if !died {
            result.unwrap();
            assert_eq!(contents(&root), then);
            break;
        }
        // Who comes next finds one state, and what recovery leaves is that one.
        let (store, guard) = (Directory::new(&root), lock(&root));
        store.recover(&*guard).unwrap();
        assert_eq!(store.kept().unwrap(), []);
        let after = contents(&root);
        if after == before {
            old += 1;
        } else {
            assert_eq!(after, then, "step {step}");
            new += 1;
        }
    }
    assert!(old > 5 && new > 5, "{old} {new}");
}

#[test]
fn what_backups_that_were_killed_left_goes() {
    let (_parent, root) = workspace(&[("topics/a.md", b"x")]);
    let beside = |name: &str| root.with_file_name(name);
    let long_ago = std::time::SystemTime::now() - std::time::Duration::from_secs(7200);
    let make = |name: &str, is_old: bool| {
        fs::write(beside(name), "half").unwrap();
        if is_old {
            fs::File::options().write(true).open(beside(name)).unwrap().set_modified(long_ago).unwrap();
        }
    };
    let gone = [".b.tar.tmp-1", ".recollex-w-1-2026-01-01T000000Z.tar.tmp-77"];
    let stays = [".b.tar.tmp-x", ".c.tar.tmp-1", "b.tar.tmp-1", ".letter.tmp-1", ".b.tar"];
    gone.iter().chain(&stays).for_each(|name| make(name, true));
    // One of a process that ended a moment ago, and one of a process that lives.
    let mut ended = std::process::Command::new("true").spawn().unwrap();
    ended.wait().unwrap();
    let (ended, lives) = (ended.id(), std::os::unix::process::parent_id());
    let (ended, lives) = (format!(".b.tar.tmp-{ended}"), format!(".b.tar.tmp-{lives}"));
    make(&ended, false);
    make(&lives, false);
    back_up(&root, &beside("b.tar")).unwrap();
    for name in gone.iter().copied().chain([&*ended]) {
        assert!(!beside(name).exists(), "{name}");
    }
    for name in stays.iter().copied().chain([&*lives]) {
        assert!(beside(name).exists(), "{name}");
    }
}
