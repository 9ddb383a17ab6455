//! An archive cut or changed at any byte is a finding in the right place: never a trap, never a frame that is not whole.

use std::collections::BTreeSet;
use std::fs;

use recollex::archive_view::Selection;
use recollex::types::{Finding, Severity, SourceRecord, Tier};
use recollex::{Archive, OpenOptions, Runtime, RuntimeOptions, Session};
use recollex_tests::turns;

use crate::support::cache;

const PATH: &str = "sources/notes/_v2/boat.md";

/// What the verifier says of one file.
struct Said {
    ok: bool,
    findings: Vec<Finding>,
    records: Vec<SourceRecord>,
}

impl Said {
    fn errors(&self) -> impl Iterator<Item = &Finding> {
        self.findings.iter().filter(|finding| finding.severity == Severity::Error)
    }
}

fn runtime() -> Runtime {
    Runtime::new(RuntimeOptions { cache: Some(cache()), ..RuntimeOptions::default() }).unwrap()
}

fn verify(runtime: &Runtime, bytes: &[u8]) -> Said {
    let mut archive = Archive::new(runtime).unwrap();
    archive.push_bytes(PATH, bytes, true).unwrap();
    Said {
        ok: archive.summary().unwrap().ok,
        findings: archive.take_findings(u32::MAX).unwrap(),
        records: archive
            .records(Selection::All, 0, u32::MAX)
            .unwrap()
            .into_iter()
            .map(|listed| listed.record)
            .collect(),
    }
}

/// An archive of a few records, as we write it: several lines, white space at their ends, text of more than one byte.
fn archive(runtime: &Runtime) -> Vec<u8> {
    let directory = tempfile::tempdir().unwrap();
    let mut session = Session::open(runtime, directory.path(), OpenOptions::new(Tier::Owner)).unwrap();
    let texts = ["The keel bolts cost 640 euros.", "喷油嘴漏油 \r\n\t\n要送去测试。🚤\n", "", "x"];
    let turns: Vec<_> =
        texts.iter().zip(0..).map(|(text, number)| turns::plain("notes", "boat", number, text)).collect();
    session.archive(&turns).unwrap();
    fs::read(directory.path().join(PATH)).unwrap()
}

#[test]
fn cut_at_any_byte() {
    let runtime = runtime();
    let bytes = archive(&runtime);
    let whole = verify(&runtime, &bytes);
    assert!(whole.ok && whole.records.len() == 4, "{:?}", whole.findings);
    // Where an archive may end: behind the marker's empty line, behind a record's last LF, behind the empty line after it.
    let mut ends = BTreeSet::from([bytes.windows(2).position(|pair| pair == b"\n\n").unwrap() + 2]);
    for record in &whole.records {
        let behind = usize::try_from(record.offset + record.length).unwrap();
        ends.extend([behind + 1, behind + 2]);
    }
    for cut in 0..=bytes.len() {
        let said = verify(&runtime, &bytes[..cut]);
        assert_eq!(said.ok, ends.contains(&cut), "cut at {cut}: {:?}", said.findings);
        let kept = whole.records.iter().filter(|record| record.offset + record.length < cut as u64).count();
        assert_eq!(said.records, whole.records[..kept], "cut at {cut}");
    }
}

#[test]
fn a_byte_that_is_no_text_anywhere() {
    let runtime = runtime();
    let bytes = archive(&runtime);
    let whole = verify(&runtime, &bytes).records;
    for at in 0..bytes.len() {
        let mut damaged = bytes.clone();
        damaged[at] = 0xFF;
        let said = verify(&runtime, &damaged);
        let line = 1 + bytes[..at].iter().filter(|byte| **byte == b'\n').count() as u64;
        let invalid = said.errors().find(|finding| finding.code == "invalid-utf8");
        let invalid = invalid.unwrap_or_else(|| panic!("nothing said of byte {at}: {:?}", said.findings));
        assert_eq!((invalid.line, invalid.path.as_deref()), (Some(line), Some(PATH)), "byte {at}");
        // A frame stands if it and the empty line behind it come before.
        let kept = whole.iter().filter(|record| record.offset + record.length + 1 < at as u64).count();
        assert_eq!(said.records, whole[..kept], "byte {at}");
    }
}

#[test]
fn another_character_anywhere() {
    let runtime = runtime();
    let bytes = archive(&runtime);
    let whole = verify(&runtime, &bytes).records;
    for at in 0..bytes.len() {
        for other in [b'\n', b'0', b' ', 0, b'>'] {
            let mut damaged = bytes.clone();
            damaged[at] = other;
            let said = verify(&runtime, &damaged);
            assert_eq!(said.ok, said.errors().next().is_none(), "byte {at}: {:?}", said.findings);
            // What comes before the change is untouched by it.
            let before = whole.iter().filter(|record| record.offset + record.length + 1 < at as u64).count();
            assert!(said.records.len() >= before, "byte {at}: {} of {before} records", said.records.len());
            assert_eq!(said.records[..before], whole[..before], "byte {at}");
        }
    }
}
