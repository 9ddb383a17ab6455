//! Every vector passes on every engine that can run it, save the deviations that a decision demands.

use recollex_test_rows::Outcome;
use recollex_test_rows::derived::NO_VOCABULARY;
use recollex_tests::built;
use recollex_tests::deviations::Deviations;
use recollex_tests::engine::EngineName;
use recollex_tests::vectors::{self, Totals, VectorFile};

fn passes(engine: EngineName, ran: &[&str]) {
    let directory = built::repository().join("tests/vectors");
    let files = VectorFile::find(&[directory], &[]).unwrap();
    let deviations = Deviations::shipped().unwrap();
    let mut started = engine.start().unwrap_or_else(|error| panic!("{engine:?} does not start: {error}"));
    let mut totals = Totals::default();
    let mut counts = Vec::new();
    let mut failures = Vec::new();
    for file in &files {
        let report = vectors::run(started.as_mut(), file, &deviations);
        counts.push(report.to_string());
        assert!(
            report.run() > 0 || !ran.contains(&&*file.name),
            "{engine:?} ran no row of {}, which it is meant to run",
            file.name
        );
        totals.add(&report);
        failures.extend(report.failures.iter().map(ToString::to_string));
    }
    assert!(failures.is_empty(), "{engine:?}: {totals}\n{}\n{}", counts.join("\n"), failures.join("\n"));
}

/// What core is meant to run.
const CORE: &[&str] = &[
    "authority",
    "backfill",
    "derived",
    "fence",
    "frames_parse",
    "frames_write",
    "ids",
    "index_events",
    "inspect",
    "legacy_parse",
    "markers",
    "markers_suffix",
    "promote",
    "references",
    "structure",
    "topics_parse",
    "topics_validate",
    "unpaired_archive",
    "update",
    "writer_status",
    "writer_turns",
];

#[test]
fn native() {
    passes(EngineName::Native, CORE);
}

#[test]
fn wasm() {
    passes(EngineName::Wasm, CORE);
}

#[test]
fn component() {
    let ran = [
        "derived",
        "frames_write",
        "inspect",
        "promote",
        "references",
        "structure",
        "topics_validate",
        "unpaired_archive",
        "update",
    ];
    passes(EngineName::Component, &ran);
}

#[test]
fn verifier() {
    passes(EngineName::Verifier, &["frames_parse", "legacy_parse"]);
}

/// Natively and in wasm core does the same to the byte, also where rows compare only a part.
#[test]
fn native_and_wasm_agree() {
    let directory = built::repository().join("tests/vectors");
    let mut native = EngineName::Native.start().unwrap();
    let mut wasm = EngineName::Wasm.start().unwrap();
    let mut compared = 0;
    for file in VectorFile::find(&[directory], &[]).unwrap() {
        for row in &file.rows {
            let (native, wasm) = (native.observe(&file.name, &row.input), wasm.observe(&file.name, &row.input));
            // A vocabulary is megabytes, and the host's: in wasm nobody counts.
            if wasm == Ok(Outcome::not_here(NO_VOCABULARY)) {
                continue;
            }
            assert_eq!(native, wasm, "{}/{}", file.name, row.name);
            compared += 1;
        }
    }
    assert!(compared > 0, "nothing was compared");
}
