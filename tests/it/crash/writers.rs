//! Processes that write and read one workspace at the same time, and other programs that have its lock.

use std::fs::{self, OpenOptions};
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use recollex::lock::{FileLock, Lock as _, LockError};
use recollex::store::{Area, Directory, Store as _};
use recollex_tests::crash::READY;

use super::report;
use super::workspace::{child, scratch};

const COMMITS: usize = 500;
const READERS: usize = 10;

fn start(arguments: &[&str], root: &Path, rest: &[&str]) -> Child {
    child()
        .args(arguments)
        .arg(root)
        .args(rest)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Waits for a child that says numbers at its end.
#[track_caller]
fn numbers(child: Child, who: &str) -> Vec<usize> {
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{who}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().split_whitespace().map(|number| number.parse().unwrap()).collect()
}

#[test]
fn two_writers_and_ten_readers_lose_and_tear_nothing() {
    let directory = scratch();
    let root = directory.path().join("w");
    let readers: Vec<_> = (0..READERS).map(|_| start(&["read"], &root, &[])).collect();
    let count = COMMITS.to_string();
    let writers: Vec<_> = ["one", "two"].map(|name| start(&["write"], &root, &[name, &count])).into();
    let mut refused = 0;
    for writer in writers {
        let said = numbers(writer, "a writer");
        assert_eq!(said[0], COMMITS);
        refused += said[1];
    }
    // The readers check while they read; their input ends now.
    let (mut looks, mut matched, mut versions) = (0, 0, 0);
    for reader in readers {
        let said = numbers(reader, "a reader");
        assert!(said[1] > 0 && said[2] > 0, "a reader saw too little: {said:?}");
        looks += said[0];
        matched += said[1];
        versions += said[2];
    }
    report(&format!(
        "{refused} commits planned anew; {looks} looks of readers, {matched} of them during one generation, \
         {versions} times a longer log"
    ));

    let store = Directory::new(&root);
    assert_eq!(store.generation(), Ok(2 * COMMITS as u64));
    let log = fs::read_to_string(root.join("sources/log.md")).unwrap();
    assert_eq!(log.lines().count(), 2 * COMMITS);
    for name in ["one ", "two "] {
        let numbers: Vec<usize> = log
            .lines()
            .filter_map(|line| line.strip_prefix(name))
            .map(|line| line.split(' ').next().unwrap().parse().unwrap())
            .collect();
        assert_eq!(numbers, (1..=COMMITS).collect::<Vec<_>>());
    }
    let names: Vec<&str> = log.lines().filter_map(|line| line.split(' ').next()).collect();
    let turns = names.windows(2).filter(|pair| pair[0] != pair[1]).count();
    assert!(turns > 20, "the writers took turns only {turns} times");
    let last = format!("{}\n", log.lines().last().unwrap());
    for half in ["pair/left.md", "pair/right.md"] {
        assert_eq!(fs::read_to_string(root.join(half)).unwrap(), last);
    }
    assert_eq!(store.entries(Area::Tree, "", None, 0).unwrap().entries.len(), 3);
    assert_eq!(store.kept(), Ok(vec![]));
}

#[test]
fn the_lock_of_another_program_is_respected_and_dies_with_it() {
    let directory = scratch();
    let root = directory.path().join("w");
    let mut other = start(&["hold"], &root, &[]);
    let mut output = BufReader::new(other.stdout.take().unwrap());
    let mut said = String::new();
    output.read_line(&mut said).unwrap();
    assert_eq!(said.trim_end(), READY);

    let lock = FileLock::new(&root);
    let begun = Instant::now();
    match lock.acquire(200, "test") {
        Err(LockError::Held(holder)) => {
            // Where the system lists locks it says who holds it; this program wrote no note.
            if let Some(holder) = holder.filter(|holder| holder.process.is_some()) {
                assert_eq!(holder.process, Some(other.id().into()));
                assert_eq!(holder.purpose, None);
            }
        }
        other => panic!("{other:?}"),
    }
    assert!(begun.elapsed() >= Duration::from_millis(200));
    assert!(lock.current().unwrap().is_some());

    // Killed, not asked.
    other.kill().unwrap();
    other.wait().unwrap();
    let guard = lock.acquire(0, "test").unwrap();
    let file = OpenOptions::new().append(true).open(root.join(".scriptorium/write.lock")).unwrap();
    assert!(matches!(file.try_lock(), Err(fs::TryLockError::WouldBlock)));
    drop(guard);
    file.try_lock().unwrap();
    file.unlock().unwrap();

    // And one that ends by itself.
    let mut other = start(&["hold"], &root, &[]);
    let mut output = BufReader::new(other.stdout.take().unwrap());
    said.clear();
    output.read_line(&mut said).unwrap();
    assert!(matches!(lock.acquire(0, "test"), Err(LockError::Held(_))));
    drop(other.stdin.take());
    output.read_to_string(&mut said).unwrap();
    assert!(other.wait().unwrap().success());
    lock.acquire(0, "test").unwrap();
}
