//! Vouching for a record: what it costs against the length of the archive that the record is in.
//!
//! The archives are threads of pending turns, which lie on the medium that tests are built on. What was vouched for is
//! checked: a call that changed nothing is an error and no figure.

use std::cell::Cell;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use recollex::Session;
use recollex::workspace::Turn;
use recollex_tests::turns;
use serde_json::Value;

use crate::line::{Line, Side};
use crate::shipped::release_binary;
use crate::store::{Done, middle, open, runtime, time};
use crate::{Benchmark, Measured};

/// Sizes of the archives.
const MEGABYTES: [usize; 3] = [1, 10, 100];
/// Turns of one batch, which make a megabyte.
const TURNS_PER_MEGABYTE: usize = 1_600;
/// A prime that no size is a multiple of.
const STRIDE: usize = 797;
/// Rounds of one size, after some that only warm up.
const ROUNDS: usize = 15;
const WARM: usize = 2;
/// The same, where each round reads the whole archive.
const SLOW_ROUNDS: usize = 5;

/// `n`: bytes of the archive. Milliseconds of `NAME` (a call, with the record table), `NAME-without-table` (where the store
/// keeps no cache), `NAME-command` (the command as a process) and `NAME-preview` (the same with `--dry-run`).
pub const BENCHMARKS: &[Benchmark] = &[("promote", promote)];

fn promote(name: &'static str) -> Measured {
    let runtime = runtime()?;
    let binary = release_binary();
    let mut points: [Vec<(u64, f64)>; 4] = Default::default();
    for megabytes in MEGABYTES {
        let directory = tempfile::tempdir()?;
        let home = directory.path();
        let root = home.join("memory");
        fs::create_dir_all(&root)?;
        let mut session = open(&runtime, &root)?;
        let turns = megabytes * TURNS_PER_MEGABYTE;
        for from in (0..turns).step_by(TURNS_PER_MEGABYTE) {
            session.archive(&(from..from + TURNS_PER_MEGABYTE).map(pending).collect::<Vec<_>>())?;
        }
        let bytes = fs::metadata(root.join("sources/bench/_v2/long.md"))?.len();
        // From all over the archive, each once.
        let next = Cell::new(0);
        let id = || format!("bench/long/m{}", next.replace(next.get() + 1) * STRIDE % turns);
        let vouch = |session: &mut Session, rounds, warm| {
            middle(rounds, warm, |_| {
                let id = id();
                time(|| session.promote(&id)?.promoted.then_some(()).ok_or_else(|| "it was trusted".into()))
            })
        };
        points[0].push((bytes, vouch(&mut session, ROUNDS, WARM)?));
        if let Some(binary) = &binary {
            for (at, preview) in [(3, true), (2, false)] {
                let figure = middle(SLOW_ROUNDS, 1, |_| command(binary, home, &id(), preview))?;
                points[at].push((bytes, figure));
            }
        }
        // What is no directory cannot hold a cache.
        let cache = root.join(".scriptorium-recollex");
        fs::remove_dir_all(&cache)?;
        fs::write(&cache, "")?;
        let mut session = open(&runtime, &root)?;
        points[1].push((bytes, vouch(&mut session, SLOW_ROUNDS, 1)?));
    }
    let [with, without, process, preview] = points;
    let line = |what: &str, points| Line::growth(&format!("{name}{what}"), "ms", Side::Wasm, points);
    let mut lines = vec![line("", with), line("-without-table", without)];
    if binary.is_some() {
        lines.extend([line("-command", process), line("-preview", preview)]);
    }
    Ok(lines)
}

/// A process that vouches for a record, or says that it would.
fn command(binary: &Path, home: &Path, id: &str, preview: bool) -> Done<f64> {
    let mut said = Vec::new();
    let figure = time(|| {
        let output = Command::new(binary)
            .args(["promote", id, if preview { "--dry-run" } else { "--yes" }, "--json", "--workspace"])
            .arg(home.join("memory"))
            .env("XDG_CACHE_HOME", home.join("cache"))
            .env("XDG_CONFIG_HOME", home.join("config"))
            .env("XDG_DATA_HOME", home.join("data"))
            .stdin(Stdio::null())
            .output()?;
        said = output.stdout;
        Ok(())
    })?;
    let said: Value = serde_json::from_slice(&said)?;
    if said["records"][0]["promoted"] == true {
        Ok(figure)
    } else {
        Err(format!("{id} was not vouched for: {said}").into())
    }
}

/// A turn of about 400 bytes of text that nobody has vouched for.
fn pending(number: usize) -> Turn {
    let text = format!("{number}: the green folder stands in the attic. ").repeat(8);
    let turn = turns::plain("bench", "long", i64::try_from(number).unwrap_or(i64::MAX), &text);
    Turn { trust: "pending".to_owned(), ..turn }
}
