//! What commits cost, and what their cost grows with: the directory store by itself (`native`).
//!
//! Everything happens on the medium that tests are built on, with every sync, so figures are those of this machine.

use std::error::Error;
use std::fs;
use std::path::Path;
use std::time::Instant;

use recollex::lock::{FileLock, Lock as _};
use recollex::store::{About, Area, Change, Directory, Edit, Expect, Store as _, UndoLimits};

use crate::line::{Line, Side, median};
use crate::{Benchmark, Measured};

/// Rounds of one size; the first warm up.
const ROUNDS: usize = 60;
const WARM: usize = 10;

/// `n`: bytes of the thread that is added to.
pub const BENCHMARKS: &[Benchmark] = &[("store-append", store_append)];

/// Milliseconds that a commit of one addition takes, against the length of its file.
fn store_append(name: &'static str) -> Measured {
    let mut points = Vec::new();
    for megabytes in [1, 10, 100] {
        let directory = tempfile::tempdir()?;
        let root = directory.path();
        let mut length = megabytes << 20;
        fs::write(root.join("thread.md"), "x".repeat(length))?;
        let store = Directory::new(root).with_undo(UndoLimits::default());
        let mut times = Vec::new();
        for _ in 0..ROUNDS {
            let text = "y".repeat(400);
            let edit = Edit::Append { length: length as u64, text };
            length += 400;
            times.push(commit(&store, root, "thread.md", edit)?);
        }
        points.push(((megabytes << 20) as u64, median(times.split_off(WARM)).unwrap_or_default()));
    }
    Ok(vec![Line::growth(name, "ms", Side::Native, points)])
}

/// Milliseconds of one commit, with its lock.
fn commit(store: &Directory, root: &Path, path: &str, edit: Edit) -> Result<f64, Box<dyn Error>> {
    let change = Change { area: Area::Tree, path: path.to_owned(), expect: Expect::Any, edit };
    let start = Instant::now();
    let guard = FileLock::new(root).acquire(1_000, "bench")?;
    store.commit(&*guard, store.generation()?, &[change], &About::new("bench", ""))?;
    drop(guard);
    Ok(start.elapsed().as_secs_f64() * 1e3)
}
