//! Branches: which lines a batch writes, what they mean when read, what a verification says of them.

use recollex_core::source::{
    Batch, Branches, EntryKind, Existing, ExistingScan, Given, Limits, NewRecord, Plan, Predecessor, Verifier,
};
use std::collections::BTreeMap;

const ARCHIVE: &str = "sources/p/_v2/t%20u.md";
const BRANCHES: &str = "sources/p/_branches/t%20u.jsonl";

fn record(id: &str, after: Predecessor) -> NewRecord {
    NewRecord {
        provider: "p".into(),
        thread: "t u".into(),
        id: id.into(),
        role: "user".into(),
        text: format!("I am {id}."),
        trust: "trusted".into(),
        after,
        ..NewRecord::default()
    }
}

fn behind(id: &str) -> Predecessor {
    Predecessor::Record(id.into())
}

/// Files of a workspace, changed as plans say.
#[derive(Default)]
struct Files(BTreeMap<String, String>);

impl Files {
    fn plan(&self, records: Vec<NewRecord>) -> Plan {
        let limits = Limits::default();
        let batch = Batch::check(records, &limits).expect("good records");
        let existing: BTreeMap<String, Existing> = batch
            .paths()
            .into_iter()
            .filter_map(|path| {
                let mut scan = ExistingScan::new(&batch, path, &limits);
                scan.push_text(self.0.get(path)?);
                Some((path.to_owned(), scan.finish()))
            })
            .collect();
        let mut comparison = batch.compare(existing).expect("sound archives");
        while let Some(range) = comparison.wanted() {
            let (start, end) = (range.offset as usize, (range.offset + range.length) as usize);
            let piece = self.0[&range.path].as_bytes()[start..end].to_vec();
            comparison.supply(&piece);
        }
        comparison.plan().expect("nothing is missing")
    }

    /// Keeps records and returns the lines that were added.
    fn keep(&mut self, records: Vec<NewRecord>) -> String {
        let plan = self.plan(records);
        for change in plan.changes {
            self.0.entry(change.path).or_default().push_str(&change.text);
        }
        let mut lines = String::new();
        for change in plan.branches {
            assert_eq!(change.path, BRANCHES);
            lines.push_str(&change.text);
            self.0.entry(change.path).or_default().push_str(&change.text);
        }
        lines
    }

    fn branches(&self) -> Branches {
        let mut branches = Branches::new();
        branches.push(self.0.get(BRANCHES).map_or("", String::as_str).as_bytes());
        branches.finish()
    }

    fn findings(&self) -> Vec<(&'static str, Option<u64>, Option<String>)> {
        self.findings_as(Given::InWorkspace)
    }

    fn findings_as(&self, given: Given) -> Vec<(&'static str, Option<u64>, Option<String>)> {
        let mut verifier = Verifier::new(given, &Limits::default());
        for (path, text) in &self.0 {
            verifier.file(path, EntryKind::File);
            verifier.push_text(text, &mut |_, _| {});
            verifier.end(&mut |_, _| {});
        }
        verifier.take_findings(usize::MAX).into_iter().map(|found| (found.code, found.line, found.subject)).collect()
    }
}

#[test]
fn one_line_of_conversation_needs_no_lines() {
    let mut files = Files::default();
    let lines =
        files.keep(vec![record("a", Predecessor::Start), record("b", behind("a")), record("c", Predecessor::Before)]);
    assert_eq!(lines, "");
    assert_eq!(files.branches().predecessor("b"), Predecessor::Before);
    assert_eq!(files.keep(vec![record("d", Predecessor::Before)]), "");
}

#[test]
fn a_fork_has_a_line_and_what_goes_on_has_none() {
    let mut files = Files::default();
    let lines = files.keep(vec![
        record("a", Predecessor::Start),
        record("b", behind("a")),
        record("c", behind("b")),
        record("b2", behind("a")),
        record("c2", behind("b2")),
        record("z", Predecessor::Start),
    ]);
    assert_eq!(lines, "{\"id\":\"b2\",\"after\":\"a\"}\n{\"id\":\"z\",\"after\":null}\n");
    assert_eq!(files.findings(), []);
}

#[test]
fn the_first_new_record_of_an_archive_that_exists_has_a_line() {
    let mut files = Files::default();
    files.keep(vec![record("a", Predecessor::Start), record("b", behind("a"))]);
    // Nothing new, nothing said.
    assert_eq!(files.keep(vec![record("a", Predecessor::Start), record("b", behind("a"))]), "");
    let lines = files.keep(vec![record("b", behind("a")), record("c", behind("b")), record("d", behind("c"))]);
    assert_eq!(lines, "{\"id\":\"c\",\"after\":\"b\"}\n");
    assert_eq!(files.keep(vec![record("e", Predecessor::Start)]), "{\"id\":\"e\",\"after\":null}\n");
    // A predecessor that only the archive has.
    assert_eq!(files.keep(vec![record("f", behind("b"))]), "{\"id\":\"f\",\"after\":\"b\"}\n");
    assert_eq!(files.findings(), []);
}

#[test]
fn a_record_that_nobody_has_is_none() {
    let mut files = Files::default();
    // Nothing has to be said of the first record of all: it comes behind none.
    assert_eq!(
        files.keep(vec![record("a", behind("lost")), record("b", behind("also"))]),
        "{\"id\":\"b\",\"after\":null}\n"
    );
    // Nor can one come behind itself, or behind a later one.
    let lines = files.keep(vec![record("c", behind("c")), record("d", behind("e")), record("e", behind("d"))]);
    assert_eq!(lines, "{\"id\":\"c\",\"after\":null}\n{\"id\":\"d\",\"after\":null}\n");
    assert_eq!(files.findings(), []);
}

#[test]
fn a_record_that_differs_is_there_to_come_behind() {
    let mut files = Files::default();
    files.keep(vec![record("a", Predecessor::Start)]);
    let edited = NewRecord { text: "Something else.".into(), ..record("a", Predecessor::Start) };
    assert_eq!(files.keep(vec![edited, record("b", behind("a"))]), "{\"id\":\"b\",\"after\":\"a\"}\n");
}

#[test]
fn a_name_that_fits_the_archive_but_not_its_branches_is_refused_only_where_there_may_be_some() {
    let reasons = |after: Predecessor, length: usize| {
        let new = NewRecord { thread: "t".repeat(length), ..record("a", after) };
        match new.check(&Limits::default()) {
            Ok(_) => Vec::new(),
            Err(problems) => problems.into_iter().map(|problem| problem.reason).collect(),
        }
    };
    assert_eq!(reasons(Predecessor::Before, 252), [""; 0]);
    assert_eq!(reasons(Predecessor::Start, 249), [""; 0]);
    assert_eq!(reasons(Predecessor::Start, 250), ["name-too-long"]);
}

#[test]
fn a_record_is_as_long_alone_as_in_its_batch() {
    let new = record("a", Predecessor::Start);
    let bytes = new.check(&Limits::default()).expect("a good record");
    let limits = Limits { batch_bytes: bytes, ..Limits::default() };
    assert!(Batch::check(vec![new.clone()], &limits).is_ok());
    let limits = Limits { batch_bytes: bytes - 1, ..Limits::default() };
    assert!(Batch::check(vec![new], &limits).is_err());
}

#[test]
fn damage_of_the_file_is_found() {
    let mut files = Files::default();
    files.keep(vec![record("a", Predecessor::Start), record("b", behind("a"))]);
    files.0.insert(
        BRANCHES.to_owned(),
        "\n{\"id\":\"b\",\"after\":\"a\"}\nnonsense\n{\"id\":\"x\",\"after\":null}\n{\"id\":\"b\"}\n{\"id\":\"b\",\"after\":\"y\"}"
            .to_owned(),
    );
    let unknown = ("unknown-branch-record", Some(4), Some("p/t u/x".to_owned()));
    assert_eq!(files.findings(), [("bad-branch-line", Some(3), None), unknown.clone()]);
    // The same in a directory that holds the workspace.
    let inside = Files(files.0.iter().map(|(path, text)| (format!("backup/mem/{path}"), text.clone())).collect());
    assert_eq!(inside.findings_as(Given::InDirectory), [("bad-branch-line", Some(3), None), unknown]);
    // Where the archive is damaged, its records may be behind the damage.
    files.0.insert(ARCHIVE.to_owned(), "not an archive".to_owned());
    let codes: Vec<&str> = files.findings().into_iter().map(|(code, ..)| code).collect();
    assert_eq!(codes, ["bad-branch-line", "missing-marker"]);
}
