//! What commits cost, and what their cost grows with: turns that are archived through the shipped component (`wasm`), and
//! the directory store by itself (`native`).
//!
//! Everything happens in a temporary directory, with every sync, so figures are those of this machine and its medium.

use std::error::Error;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use recollex::lock::{FileLock, Lock as _};
use recollex::store::{About, Area, Change, Directory, Edit, Expect, Store as _, UndoLimits};
use recollex::types::Tier;
use recollex::workspace::Turn;
use recollex::{Limits, OpenOptions, Runtime, RuntimeOptions, Session};
use recollex_tests::turns;

use crate::line::{Line, Side, median};
use crate::{Benchmark, Measured};

/// Rounds of one size, and how many more come first to warm up.
const ROUNDS: usize = 50;
const WARM: usize = 10;
/// The same, where each round reads everything.
const SLOW_ROUNDS: usize = 5;

/// What all sizes are multiples of: a thread of so many turns has a megabyte.
const TURNS_PER_MEGABYTE: usize = 1_600;

/// `n`: bytes of the thread that is added to; files of the workspace.
pub const BENCHMARKS: &[Benchmark] =
    &[("store-append", store_append), ("append-turn", append_turn), ("commit-files", commit_files)];

pub type Done<T> = Result<T, Box<dyn Error>>;

/// Milliseconds that a commit of one addition takes, against the length of its file.
fn store_append(name: &'static str) -> Measured {
    let mut points = Vec::new();
    for megabytes in [1, 10, 100] {
        let directory = tempfile::tempdir()?;
        let root = directory.path();
        let mut length = megabytes << 20;
        fs::write(root.join("thread.md"), "x".repeat(length))?;
        let store = Directory::new(root).with_undo(UndoLimits::default());
        let time = middle(ROUNDS, WARM, |_| {
            let edit = Edit::Append { length: length as u64, text: "y".repeat(400) };
            length += 400;
            commit(&store, root, "thread.md", edit)
        })?;
        points.push(((megabytes << 20) as u64, time));
    }
    Ok(vec![Line::growth(name, "ms", Side::Native, points)])
}

/// Milliseconds that archiving one turn takes, against the length of its thread: with the record table, and where the
/// store keeps no cache.
fn append_turn(name: &'static str) -> Measured {
    let runtime = runtime()?;
    let (mut with, mut without) = (Vec::new(), Vec::new());
    for megabytes in [1, 10, 100] {
        let directory = tempfile::tempdir()?;
        let root = directory.path();
        let mut session = open(&runtime, root)?;
        let mut count = 0;
        while count < megabytes * TURNS_PER_MEGABYTE {
            let batch = (count..count + TURNS_PER_MEGABYTE).map(|number| turn("long", number)).collect::<Vec<_>>();
            session.archive(&batch)?;
            count += TURNS_PER_MEGABYTE;
        }
        let bytes = fs::metadata(root.join("sources/bench/_v2/long.md"))?.len();
        let mut archive = |session: &mut Session, rounds, warm| {
            middle(rounds, warm, |_| {
                let turn = [turn("long", count)];
                count += 1;
                time(|| Ok(session.archive(&turn).map(drop)?))
            })
        };
        with.push((bytes, archive(&mut session, ROUNDS, WARM)?));
        // What is no directory cannot hold a cache.
        let cache = root.join(".scriptorium-recollex");
        fs::remove_dir_all(&cache)?;
        fs::write(&cache, "")?;
        let mut session = open(&runtime, root)?;
        without.push((bytes, archive(&mut session, SLOW_ROUNDS, 1)?));
    }
    Ok(vec![
        Line::growth(&format!("{name}-with-table"), "ms", Side::Wasm, with),
        Line::growth(&format!("{name}-without-table"), "ms", Side::Wasm, without),
    ])
}

/// Milliseconds against the files of the workspace: of archiving one turn; of archiving it again, which looks at as much,
/// for the revision, and commits nothing; of the walk alone that both include; and of a commit by itself.
fn commit_files(name: &'static str) -> Measured {
    let runtime = runtime()?;
    let mut points: [Vec<(u64, f64)>; 4] = Default::default();
    for files in [10_u64, 1_000, 100_000] {
        let directory = tempfile::tempdir()?;
        let root = directory.path();
        for number in 0..files {
            let directory = root.join(format!("topics/{:03}", number / 1000));
            if number % 1000 == 0 {
                fs::create_dir_all(&directory)?;
            }
            fs::write(directory.join(format!("{number}.md")), "A topic.\n")?;
        }
        let mut session = open(&runtime, root)?;
        session.init()?;
        session.archive(&(0..1000).map(|number| turn("one", number)).collect::<Vec<_>>())?;
        let rounds = if files > 10_000 { SLOW_ROUNDS } else { ROUNDS };
        // In turns, so that a slow minute slows all.
        let mut times: [Vec<f64>; 4] = Default::default();
        let store = Directory::new(root).with_undo(UndoLimits::default());
        for round in 0..rounds + 2 {
            let turn = [turn("one", 1000 + round)];
            times[0].push(time(|| Ok(session.archive(&turn).map(drop)?))?);
            times[1].push(time(|| Ok(session.archive(&turn).map(drop)?))?);
            times[2].push(time(|| walk(&store))?);
            times[3].push(commit(&store, root, &format!("topics/new-{round}.md"), Edit::Put("A topic.\n".to_owned()))?);
        }
        for (points, mut times) in points.iter_mut().zip(times) {
            points.push((files, median(times.split_off(2)).unwrap_or_default()));
        }
    }
    let [turn, again, walk, commit] = points;
    let line = |what: &str, side, points| Line::growth(&format!("{name}-{what}"), "ms", side, points);
    Ok(vec![
        line("turn", Side::Wasm, turn),
        line("turn-again", Side::Wasm, again),
        line("walk", Side::Native, walk),
        line("commit", Side::Native, commit),
    ])
}

/// Lists all files of the tree.
pub fn walk(store: &Directory) -> Done<()> {
    let mut cursor = None;
    loop {
        cursor = store.entries(Area::Tree, "", cursor.as_deref(), 0)?.next;
        if cursor.is_none() {
            return Ok(());
        }
    }
}

/// The figure in the middle of so many rounds, after some that only warm up.
pub fn middle(rounds: usize, warm: usize, mut round: impl FnMut(usize) -> Done<f64>) -> Done<f64> {
    let mut figures = (0..warm + rounds).map(&mut round).collect::<Result<Vec<_>, _>>()?;
    Ok(median(figures.split_off(warm)).unwrap_or_default())
}

/// Milliseconds.
pub fn time(work: impl FnOnce() -> Done<()>) -> Done<f64> {
    let start = Instant::now();
    work()?;
    Ok(start.elapsed().as_secs_f64() * 1e3)
}

/// Milliseconds of one commit, with its lock.
pub fn commit(store: &Directory, root: &Path, path: &str, edit: Edit) -> Done<f64> {
    let change = Change { area: Area::Tree, path: path.to_owned(), expect: Expect::Any, edit };
    time(|| {
        let guard = FileLock::new(root).acquire(1_000, "bench")?;
        store.commit(&*guard, store.generation()?, &[change], &About::new("bench", ""))?;
        Ok(())
    })
}

pub fn runtime() -> Done<Runtime> {
    patient_runtime(Limits::default().deadline)
}

/// One whose calls may take so long.
pub fn patient_runtime(deadline: Duration) -> Done<Runtime> {
    let cache = std::env::temp_dir().join("recollex-bench-cache");
    let limits = Limits { deadline, ..Limits::default() };
    Ok(Runtime::new(RuntimeOptions { cache: Some(cache), limits, ..RuntimeOptions::default() })?)
}

pub fn open(runtime: &Runtime, root: &Path) -> Done<Session> {
    Ok(Session::open(runtime, root, OpenOptions::new(Tier::Owner))?)
}

/// A turn of about 400 bytes of text.
pub fn turn(thread: &str, number: usize) -> Turn {
    let text = format!("{number}: the green folder stands in the attic. ").repeat(8);
    turns::plain("bench", thread, i64::try_from(number).unwrap_or(i64::MAX), &text)
}
