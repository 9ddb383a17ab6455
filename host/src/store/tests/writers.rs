//! Several processes write, some are killed, and readers look on: nothing is lost, torn, or half.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::*;

const LOG: &str = "sources/p/_v2/shared.md";
const COUNTERS: [&str; 2] = ["counter", "topics/deep/counter"];

/// Adds one line to the log and one to both counters, planned on what is read without the lock.
fn count_once(store: &Directory, lock: &FileLock, line: &str) {
    loop {
        let base = store.generation().unwrap();
        let read = || -> Result<(u64, u64), StoreError> {
            let count = match store.read_text(Area::Tree, COUNTERS[0], None, 0, 64) {
                Err(StoreError::NotFound) => 0,
                read => read?.text.parse().unwrap(),
            };
            let length = match store.stat(Area::Tree, LOG) {
                Err(StoreError::NotFound) => 0,
                entry => entry?.stamp.size,
            };
            Ok((count, length))
        };
        let Ok((count, length)) = read() else { continue };
        let next = (count + 1).to_string();
        let changes = [append(LOG, length, &format!("{line}\n")), put(COUNTERS[0], &next), put(COUNTERS[1], &next)];
        let guard = lock.acquire(30_000, "counting").unwrap();
        match store.commit(&*guard, base, &changes, &About::default()) {
            Ok(_) => return,
            // Someone was faster, or what was read was of two generations.
            Err(CommitError::Stale(_) | CommitError::Changed(_)) => {}
            Err(error) => panic!("{error}"),
        }
    }
}

#[test]
#[ignore = "a process of writers_and_readers_share_a_workspace"]
fn count() {
    let root = directory_of_process();
    let (store, lock) = (Directory::new(&root), FileLock::new(&root));
    let commits: usize = std::env::var("RECOLLEX_TEST_COMMITS").unwrap().parse().unwrap();
    for number in 0..commits {
        // Mostly short, sometimes so long that a write takes its time.
        let text = "x".repeat(if number % 10 == 9 { 100_000 } else { number });
        count_once(&store, &lock, &format!("{} {number} {text}.", std::process::id()));
    }
}

#[test]
fn writers_and_readers_share_a_workspace() {
    const WRITERS: usize = 2;
    const COMMITS: usize = 60;
    const VICTIMS: usize = 10;
    let space = Space::new();
    let spawn = |commits: usize| {
        let mut command = process("store::tests::writers::count", space.root());
        command.env("RECOLLEX_TEST_COMMITS", commits.to_string()).stdout(std::process::Stdio::null());
        command.spawn().unwrap()
    };
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                let store = space.another();
                let mut seen = 0;
                while !done.load(Ordering::Relaxed) || seen < 3 {
                    let before = store.generation().unwrap();
                    // One read never sees half of an addition, whatever goes on.
                    if let Ok(chunk) = store.read_bytes(Area::Tree, LOG, None, 0, u32::MAX) {
                        assert!(!chunk.eof || chunk.data.ends_with(b".\n"), "{} bytes", chunk.data.len());
                    }
                    let log = text(&store, Area::Tree, LOG, 1 << 20);
                    let counts = COUNTERS.map(|path| text(&store, Area::Tree, path, 64));
                    let listed = list(&store, Area::Tree, "", 2).len();
                    if store.generation().unwrap() != before || before == 0 {
                        continue;
                    }
                    // Nothing came between: all of it is of one commit.
                    assert_eq!(counts[0], counts[1]);
                    let log = log.unwrap();
                    assert!(log.lines().all(|line| line.ends_with('.')));
                    assert_eq!(log.lines().count().to_string(), counts[0].clone().unwrap());
                    assert_eq!(listed, 3);
                    seen += 1;
                }
            });
        }
        let mut writers: Vec<_> = (0..WRITERS).map(|_| spawn(COMMITS)).collect();
        // Beside them, some that die in the middle of it, each a little later after its first commit.
        let mut pause = Duration::ZERO;
        let mut victims = 0;
        while victims < VICTIMS || writers.iter_mut().any(|writer| writer.try_wait().unwrap().is_none()) {
            let mut victim = spawn(usize::MAX);
            let line = format!("{} 0 ", victim.id());
            while !space.raw(LOG).unwrap_or_default().lines().any(|other| other.starts_with(&line)) {
                std::thread::sleep(Duration::from_millis(1));
            }
            std::thread::sleep(pause);
            victim.kill().unwrap();
            victim.wait().unwrap();
            pause += Duration::from_micros(700);
            victims += 1;
        }
        done.store(true, Ordering::Relaxed);
        for mut writer in writers {
            assert!(writer.wait().unwrap().success());
        }
    });
    space.store.recover(&*space.guard()).unwrap();
    let log = space.raw(LOG).unwrap();
    let count: usize = space.raw(COUNTERS[0]).unwrap().parse().unwrap();
    assert_eq!((log.lines().count(), space.raw(COUNTERS[1]).unwrap()), (count, count.to_string()));
    // Every process's lines are all there, in its order.
    let mut last: BTreeMap<&str, usize> = BTreeMap::new();
    for line in log.lines() {
        let mut words = line.split(' ');
        let (process, number) = (words.next().unwrap(), words.next().unwrap().parse().unwrap());
        let expected = last.get(process).map_or(0, |last| last + 1);
        assert_eq!(number, expected, "of {process}");
        last.insert(process, number);
    }
    assert!(last.values().filter(|last| **last == COMMITS - 1).count() >= WRITERS);
    assert!(last.len() >= WRITERS + VICTIMS);
    assert_eq!(space.store.kept(), Ok(vec![]));
}

#[test]
fn threads_of_one_process_exclude_each_other_too() {
    let space = Space::new();
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let space = &space;
            scope.spawn(move || {
                let lock = FileLock::new(space.root());
                for number in 0..10 {
                    count_once(&space.store, &lock, &format!("{thread} {number} ."));
                }
            });
        }
    });
    assert_eq!(space.raw(COUNTERS[0]).as_deref(), Some("40"));
    assert_eq!(space.raw(LOG).unwrap().lines().count(), 40);
}

#[test]
fn a_reader_is_not_held_up_by_the_lock() {
    let space = Space::with(&[("a", "x")]);
    let _guard = space.guard();
    let begun = Instant::now();
    assert_eq!(contents(&space.another()).len(), 1);
    assert!(begun.elapsed() < Duration::from_secs(2));
}
