//! What is told of changes, against two listings: whatever the second has otherwise must be at or below what was told.

use std::collections::BTreeSet;
use std::fs;
use std::io::Write as _;

use proptest::prelude::*;

use super::disk::fault;
use super::*;

/// The tree as it is listed.
fn listed(store: &Directory) -> BTreeMap<String, (Kind, Stamp)> {
    let entry = |entry: Entry| (entry.path, (entry.kind, Stamp { racy: false, ..entry.stamp }));
    list(store, Area::Tree, "", 0).into_iter().map(entry).collect()
}

/// Paths at which two listings differ.
fn different(before: &BTreeMap<String, (Kind, Stamp)>, after: &BTreeMap<String, (Kind, Stamp)>) -> BTreeSet<String> {
    let all = before.keys().chain(after.keys());
    all.filter(|path| before.get(*path) != after.get(*path)).cloned().collect()
}

fn is_told(told: &[String], path: &str) -> bool {
    told.iter().any(|told| path == told || path.strip_prefix(told.as_str()).is_some_and(|rest| rest.starts_with('/')))
}

/// A watch that has begun.
fn watch(space: &Space) -> Box<dyn Watch> {
    let mut watch = space.store.watch().unwrap();
    assert_eq!(watch.changes(), None, "nothing is known of before");
    watch
}

#[test]
fn what_did_not_change_is_not_told() {
    let space = Space::with(&[("sources/a/x.md", "x"), ("topics/t.md", "t")]);
    let mut watch = watch(&space);
    assert_eq!(watch.changes(), Some(vec![]));
    listed(&space.store);
    // What is no part of the tree is nobody's business.
    space.write(".git/index", "x");
    space.write(".scriptorium/recollex/other", "x");
    space.store.put_cache("table", b"x").unwrap();
    assert_eq!(watch.changes(), Some(vec![]));
}

#[test]
fn each_change_is_told_once() {
    let space = Space::with(&[("sources/a/x.md", "x"), ("sources/a/y.md", "y"), ("topics/t.md", "t")]);
    let mut watch = watch(&space);
    space.write("sources/a/x.md", "longer");
    assert_eq!(watch.changes(), Some(vec!["sources/a/x.md".to_owned()]));
    assert_eq!(watch.changes(), Some(vec![]));
    let (generation, stamp) = (space.store.generation().unwrap(), space.stamp("topics/t.md"));
    let append = |text: &str, length| Edit::Append { length, text: text.to_owned() };
    space.commit(&[change("sources/a/y.md", append("+", 1)), change("topics/n.md", append("new", 0))]).unwrap();
    assert_eq!(watch.changes(), Some(vec!["sources/a/y.md".to_owned(), "topics/n.md".to_owned()]));
    assert!(space.store.generation().unwrap() > generation && space.stamp("topics/t.md") == stamp);
    fs::remove_file(space.root().join("topics/t.md")).unwrap();
    fs::rename(space.root().join("topics/n.md"), space.root().join("topics/m.md")).unwrap();
    let told = ["topics/m.md", "topics/n.md", "topics/t.md"].map(str::to_owned);
    assert_eq!(watch.changes(), Some(told.to_vec()));
}

#[test]
fn where_directories_come_or_go_everything_is_to_be_looked_at() {
    let space = Space::with(&[("sources/a/x.md", "x"), ("sources/b/y.md", "y")]);
    let mut watch = watch(&space);
    space.write("sources/c/d/e/z.md", "z");
    assert_eq!(watch.changes(), None);
    space.write("sources/c/d/e/z.md", "z, longer");
    assert_eq!(watch.changes(), Some(vec!["sources/c/d/e/z.md".to_owned()]), "the new one is watched too");
    fs::rename(space.root().join("sources/c"), space.root().join("sources/f")).unwrap();
    assert_eq!(watch.changes(), None);
    space.write("sources/f/d/e/z.md", "z");
    assert_eq!(watch.changes(), Some(vec!["sources/f/d/e/z.md".to_owned()]), "by the name it has now");
    fs::remove_dir_all(space.root().join("sources/b")).unwrap();
    assert_eq!(watch.changes(), None);
    // The root itself is another.
    fs::rename(space.root(), space.root().with_extension("old")).unwrap();
    fs::create_dir(space.root()).unwrap();
    space.write("sources/f/new.md", "n");
    assert_eq!(watch.changes(), None);
    space.write("sources/f/new.md", "newer");
    assert_eq!(watch.changes(), Some(vec!["sources/f/new.md".to_owned()]));
    fs::remove_dir_all(space.root().with_extension("old")).unwrap();
}

#[test]
fn more_than_can_be_told_is_everything() {
    let space = Space::with(&[("sources/a/x.md", "x")]);
    let mut watch = watch(&space);
    for number in 0..2000 {
        space.write(&format!("sources/a/{number}.md"), "x");
    }
    assert_eq!(watch.changes(), None);
    assert_eq!(watch.changes(), Some(vec![]));
    let limit = fs::read_to_string("/proc/sys/fs/inotify/max_queued_events").unwrap();
    let limit: usize = limit.trim().parse().unwrap();
    let mut file = fs::OpenOptions::new().append(true).open(space.root().join("sources/a/x.md")).unwrap();
    let mut other = fs::OpenOptions::new().append(true).open(space.root().join("sources/a/1.md")).unwrap();
    // Of the same thing twice in a row the system tells once.
    for _ in 0..limit / 2 + 2 {
        file.write_all(b".").unwrap();
        other.write_all(b".").unwrap();
    }
    assert_eq!(watch.changes(), None, "the queue ran over");
    space.write("sources/a/x.md", "x");
    assert_eq!(watch.changes(), Some(vec!["sources/a/x.md".to_owned()]));
}

#[test]
fn a_commit_that_waits_to_be_put_in_place_is_no_time_to_tell() {
    let edit = |text: &str| Edit::Put(text.to_owned());
    let mut waited = 0;
    for step in 0.. {
        let space = Space::with(&[("sources/x.md", "x"), ("topics/t.md", "t")]);
        let mut watch = watch(&space);
        let before = contents(&space.store);
        let changes = [change("sources/x.md", edit("y")), change("topics/t.md", edit("u"))];
        let (guard, base) = (space.guard(), space.store.generation().unwrap());
        let (_, died) = fault::crashing(step, 0, || space.store.commit(&*guard, base, &changes, &About::default()));
        drop(guard);
        let told = watch.changes();
        let after = contents(&space.another());
        if let Some(told) = &told {
            let differing = before.keys().filter(|path| before.get(*path) != after.get(*path));
            differing.for_each(|path| assert!(is_told(told, path), "step {step}: {path} is not in {told:?}"));
        } else {
            waited += 1;
        }
        if !died {
            break;
        }
    }
    assert!(waited > 0, "no death left a commit waiting");
}

/// What programs do to files.
#[derive(Clone, Debug)]
enum Act {
    Write(&'static str, u8),
    Append(&'static str),
    Delete(&'static str),
    Rename(&'static str, &'static str),
    Link(&'static str, &'static str),
    Mode(&'static str, u32),
    Commit(&'static str, u8),
}

const PATHS: &[&str] = &["a", "a/b", "a/b/c", "d/e.md", "d/e.md/f", "a-b", "core.md", ".git/x", "d/\u{e9}"];

fn act() -> impl Strategy<Value = Act> {
    let path = || prop::sample::select(PATHS);
    prop_oneof![
        3 => (path(), any::<u8>()).prop_map(|(path, length)| Act::Write(path, length)),
        2 => path().prop_map(Act::Append),
        1 => path().prop_map(Act::Delete),
        2 => (path(), path()).prop_map(|(from, to)| Act::Rename(from, to)),
        1 => (path(), path()).prop_map(|(from, to)| Act::Link(from, to)),
        1 => (path(), prop::sample::select(&[0o600_u32, 0o644][..])).prop_map(|(path, mode)| Act::Mode(path, mode)),
        2 => (path(), any::<u8>()).prop_map(|(path, length)| Act::Commit(path, length)),
    ]
}

/// Many of them cannot be done where they are tried.
fn perform(space: &Space, act: &Act) {
    let at = |path: &str| space.root().join(path);
    let above = |path: &str| drop(fs::create_dir_all(at(path).parent().unwrap()));
    match act {
        Act::Write(path, length) => {
            above(path);
            drop(fs::write(at(path), "w".repeat((*length).into())));
        }
        Act::Append(path) => {
            if let Ok(mut file) = fs::OpenOptions::new().append(true).open(at(path)) {
                file.write_all(b"+").unwrap();
            }
        }
        Act::Delete(path) => match fs::symlink_metadata(at(path)) {
            Ok(found) if found.is_dir() => fs::remove_dir_all(at(path)).unwrap(),
            Ok(_) => fs::remove_file(at(path)).unwrap(),
            Err(_) => {}
        },
        Act::Rename(from, to) => {
            above(to);
            drop(fs::rename(at(from), at(to)));
        }
        Act::Link(from, to) => {
            above(to);
            drop(std::os::unix::fs::symlink(at(from), at(to)));
        }
        Act::Mode(path, mode) => {
            if at(path).is_file() {
                fs::set_permissions(at(path), fs::Permissions::from_mode(*mode)).unwrap();
            }
        }
        Act::Commit(path, length) => {
            drop(space.commit(&[change(path, Edit::Put("c".repeat((*length).into())))]));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn nothing_changes_that_is_not_told(rounds in prop::collection::vec(prop::collection::vec(act(), 0..4), 1..8)) {
        let space = Space::with(&[("a/b/c", "c"), ("d/e.md", "e")]);
        let mut watch = watch(&space);
        let mut before = listed(&space.store);
        for round in &rounds {
            round.iter().for_each(|act| perform(&space, act));
            let told = watch.changes();
            let after = listed(&space.store);
            if let Some(told) = &told {
                for path in different(&before, &after) {
                    prop_assert!(is_told(told, &path), "{} is not in {:?} after {:?}", path, told, round);
                }
            }
            before = after;
        }
    }
}
