//! How fast archives are scanned: `cargo run --release -p recollex-core --example scan_speed [NAME]`.
//!
//! Frames of about 500 bytes, in English and in Chinese, as text and as bytes, in pieces of 64 KiB.

#![allow(clippy::print_stdout, reason = "it prints what it measured")]

use recollex_core::ids::Location;
use recollex_core::source::{Batch, Limits, NewRecord, Scanner};
use std::collections::BTreeMap;
use std::hint::black_box;
use std::time::Instant;

const FRAMES: usize = 40_000;
const PIECE: usize = 64 * 1024;
/// The best of so many rounds counts: the others were disturbed.
const ROUNDS: usize = 40;

fn archive(text: &str) -> String {
    let records = (0..FRAMES).map(|index| NewRecord {
        provider: "openprogram".into(),
        thread: "local_0123456789".into(),
        id: format!("msg_{index:016x}"),
        ordinal: index as i64,
        role: "user".into(),
        text: text.into(),
        time: Some("2026-01-02T03:04:05+00:00".into()),
        speaker_id: Some("owner/local".into()),
        speaker_display: Some("Owner".into()),
        speaker_kind: Some("owner".into()),
        principal: Some("owner/install/0123456789abcdef".into()),
        tier: Some("owner".into()),
        trust: "trusted".into(),
        ..NewRecord::default()
    });
    let limits = Limits { batch_bytes: u64::MAX, ..Limits::default() };
    let batch = Batch::check(records.collect(), &limits).expect("good records");
    let plan = batch.compare(BTreeMap::new()).expect("no file").plan().expect("nothing to read");
    plan.changes.into_iter().map(|change| change.text).collect()
}

fn measure(name: &str, file: &str, scan: impl Fn(&mut Scanner, &str)) {
    if std::env::args().nth(1).is_some_and(|only| !name.contains(&only)) {
        return;
    }
    let location = Location::of_path("sources/openprogram/_v2/local_0123456789.md");
    let best = (0..ROUNDS).map(|_| {
        let start = Instant::now();
        let mut scanner = Scanner::new(Some(location.clone()), &Limits::default());
        scan(&mut scanner, file);
        let end = scanner.finish(&mut |_| {});
        assert!(end.complete && end.bytes == file.len() as u64);
        start.elapsed().as_secs_f64()
    });
    let best = best.fold(f64::INFINITY, f64::min);
    let frame = file.len() / FRAMES;
    println!(
        "{name:14} {frame} bytes a frame  {:7.0} MB/s  {:4.0} ns a frame",
        file.len() as f64 / best / 1e6,
        best / FRAMES as f64 * 1e9
    );
}

fn main() {
    let english = "The budget for the spring launch is fifty thousand; we meet on Tuesday. ".repeat(2);
    let chinese = "春季发布会的预算是五万元，我们星期二开会讨论。".repeat(2);
    for (language, text) in [("english", english), ("chinese", chinese)] {
        let file = archive(&text);
        measure(&format!("{language} text"), &file, |scanner, file| {
            let mut at = 0;
            while at < file.len() {
                let end = file.floor_char_boundary((at + PIECE).min(file.len()));
                scanner.push_text(&file[at..end], &mut |frame| {
                    black_box(frame);
                });
                at = end;
            }
        });
        measure(&format!("{language} bytes"), &file, |scanner, file| {
            for piece in file.as_bytes().chunks(PIECE) {
                scanner.push_bytes(piece, &mut |frame| {
                    black_box(frame);
                });
            }
        });
    }
}
