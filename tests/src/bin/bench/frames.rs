//! Reading and writing frames and topics: megabytes a second, natively and in wasm.

use std::time::Instant;

use recollex_test_rows::workload;
use recollex_tests::engine::Wasm;

use crate::line::{Line, median, rounded};
use crate::{Benchmark, Measured};

/// Data that one round goes through.
const DATA_BYTES: usize = if cfg!(debug_assertions) { 1 << 20 } else { 64 << 20 };
/// Rounds, natively and in wasm each; the first of each only warms up.
const ROUNDS: usize = 8;

/// `n`: records of a round, or blocks: `topic-read` reads topics strictly, `topic-edit` puts them in order and judges them.
pub const BENCHMARKS: &[Benchmark] = &[
    ("frame-scan-ascii", throughput),
    ("frame-scan-chinese", throughput),
    ("frame-write-ascii", throughput),
    ("frame-write-chinese", throughput),
    ("topic-read-ascii", throughput),
    ("topic-read-chinese", throughput),
    ("topic-edit-ascii", throughput),
    ("topic-edit-chinese", throughput),
];

fn throughput(name: &'static str) -> Measured {
    let mut prepared = workload::prepare(name, DATA_BYTES)?;
    let mut engine = Wasm::start()?;
    let inside = engine.prepare(name, DATA_BYTES as u64)?;
    let mut native = Vec::new();
    let mut wasm = Vec::new();
    let mut records = 0;
    for _ in 0..ROUNDS {
        prepared.rewind();
        engine.rewind(inside)?;
        let start = Instant::now();
        let done = prepared.run()?;
        native.push(rate(done.bytes, start));
        records = done.items;

        let start = Instant::now();
        let same = engine.run(inside)?;
        wasm.push(rate(same.bytes, start));
        if (same.bytes, same.items) != (done.bytes, done.items) {
            return Err(format!("native did {done:?}, wasm {same:?}").into());
        }
    }
    let (native, wasm) = (median(native.split_off(1)), median(wasm.split_off(1)));
    Ok(vec![Line {
        name: name.to_owned(),
        n: records,
        unit: "MB/s",
        native: native.map(rounded),
        wasm: wasm.map(rounded),
        ratio: native.zip(wasm).map(|(native, wasm)| rounded(native / wasm)),
        ..Line::default()
    }])
}

#[allow(clippy::cast_precision_loss, reason = "byte counts are far below 2^52")]
fn rate(bytes: u64, start: Instant) -> f64 {
    bytes as f64 / 1e6 / start.elapsed().as_secs_f64()
}
