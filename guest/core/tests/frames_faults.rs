//! Each fault of an archive, and what a verifier makes of files.

use recollex_core::ids::{Location, SourceId};
use recollex_core::source::{
    Batch, BatchError, EntryKind, FileClass, FindingCode, Given, Health, Limits, MARKER, Metadata, NewRecord, ScanEnd,
    Scanner, Severity, Tail, Verifier,
};

const PATH: &str = "sources/p/_v2/t.md";

/// A good frame, its lines changed by `edit`.
fn frame(id: &str, edit: impl FnOnce(&mut Vec<String>)) -> String {
    let id = SourceId::parse(id).expect("an id");
    let mut lines = vec![
        format!("<a id=\"{}\"></a>", id.anchor()),
        format!("<!-- source-id:{id} -->"),
        "<!-- speaker-id:ada -->".to_owned(),
        format!("<!-- source-meta:{} -->", Metadata::absent().encode()),
        "<!-- record-lines:2 -->".to_owned(),
        "[2026-01-02] Ada (ada): hello".to_owned(),
        "more".to_owned(),
        String::new(),
    ];
    edit(&mut lines);
    lines.into_iter().map(|line| line + "\n").collect()
}

fn good(id: &str) -> String {
    frame(id, |_| {})
}

fn archive(frames: &[String]) -> String {
    format!("{MARKER}\n\n{}", frames.concat())
}

fn scan(bytes: &[u8]) -> ScanEnd {
    let mut scanner = Scanner::new(Some(Location::of_path(PATH)), &Limits::default());
    scanner.push_bytes(bytes, &mut |_| {});
    scanner.finish(&mut |_| {})
}

#[test]
fn every_fault_of_a_frame() {
    use FindingCode::*;
    type Edit = fn(&mut Vec<String>);
    let cases: &[(FindingCode, u64, Edit)] = &[
        (BadAnchor, 1, |lines| lines[0] = lines[0].replace('"', "'")),
        (BadAnchor, 1, |lines| lines[0] = "<a id=\"\"></a>".into()),
        (BadAnchor, 1, |lines| lines[0].push('\r')),
        (BadAnchor, 1, |lines| lines.insert(0, String::new())),
        (BadAnchor, 1, |lines| lines.insert(0, "note to self".into())),
        (AnchorMismatch, 1, |lines| {
            lines[0] = lines[0].to_uppercase().replace("<A ID=", "<a id=").replace("</A>", "</a>")
        }),
        (AnchorMismatch, 1, |lines| lines[1] = "<!-- source-id:p/t/other -->".into()),
        (BadSourceId, 2, |lines| lines[1] = "<!-- source-id: -->".into()),
        (BadSourceId, 2, |lines| lines[1] = "<!-- source-id:p/t -->".into()),
        (BadSourceId, 2, |lines| lines[1] = "<!-- source-id:p/t/a>b -->".into()),
        (BadSourceId, 2, |lines| lines[1] = "<!-- source-id:p/t/\u{200b} -->".into()),
        (BadSourceId, 2, |lines| lines[1] = "<!-- record-lines:1 -->".into()),
        (WrongLocation, 2, |lines| lines[1] = "<!-- source-id:p/T/m -->".into()),
        (BadSpeaker, 3, |lines| lines[2] = "<!-- speaker-id:a-b -->".into()),
        (BadSpeaker, 3, |lines| lines[2] = "<!-- speaker-id:%61 -->".into()),
        (BadSpeaker, 3, |lines| lines[2] = "<!-- speaker-id:ada-->".into()),
        (BadMetadata, 4, |lines| lines[3] = "<!-- source-meta:eyJ9 -->".into()),
        (BadMetadata, 4, |lines| lines[3] = lines[3].replace(" -->", "= -->")),
        (BadRecordCount, 4, |lines| lines.swap(2, 3)),
        (BadRecordCount, 5, |lines| drop(lines.remove(4))),
        (BadRecordCount, 5, |lines| lines[4] = "<!-- record-lines:0 -->".into()),
        (BadRecordCount, 5, |lines| lines[4] = "<!-- record-lines:+2 -->".into()),
        (BadRecordCount, 5, |lines| lines[4] = "<!-- record-lines:0000000002 -->".into()),
        (BadRecordCount, 5, |lines| lines[4] = "<!-- record-lines:٢ -->".into()),
        (BadRecord, 6, |lines| lines[5] = "2026 Ada: hello".into()),
        (BadRecord, 6, |lines| lines[5] = "[2026]Ada: hello".into()),
        (BadRecord, 6, |lines| lines[5] = "[2026 Ada: hello".into()),
        (BadRecord, 6, |lines| lines[5] = "[2026] : hello".into()),
        (BadRecord, 6, |lines| lines[5] = "[2026] Ada:hello".into()),
        (BadRecord, 6, |lines| lines[5].clear()),
        (MissingTerminator, 8, |lines| lines[7] = " ".into()),
        (MissingTerminator, 7, |lines| lines[4] = "<!-- record-lines:1 -->".into()),
        (TruncatedFrame, 1, |lines| lines[4] = "<!-- record-lines:99 -->".into()),
        (TruncatedFrame, 1, |lines| lines.truncate(3)),
    ];
    for (number, (code, line, edit)) in cases.iter().enumerate() {
        let bad = frame("p/t/m", edit);
        let file = archive(&[good("p/t/first"), bad]);
        let end = scan(file.as_bytes());
        let fault = end.fault.as_ref().unwrap_or_else(|| panic!("case {number}: {code:?}"));
        // The marker, its empty line and the first frame's eight come before.
        assert_eq!((fault.code, fault.line), (*code, 10 + line), "case {number}");
        assert_eq!((end.frames, end.valid_prefix_lines, end.tail), (1, 10, Tail::Damaged), "case {number}");
        assert_eq!(end.valid_prefix_bytes, archive(&[good("p/t/first")]).len() as u64, "case {number}");
        let at = fault.offset as usize;
        assert_eq!(file[..at].matches('\n').count() as u64 + 1, fault.line, "case {number}");
        assert!(at == 0 || file.as_bytes()[at - 1] == b'\n', "case {number}");
        let shown = file[at..].split('\n').next().unwrap_or_default();
        if shown.len() < 100 && shown.is_ascii() && !shown.contains('\r') {
            assert_eq!(fault.excerpt, shown, "case {number}");
        }
    }
}

#[test]
fn the_same_id_twice() {
    let end = scan(archive(&[good("p/t/m"), good("p/t/n"), good("p/t/m")]).as_bytes());
    let fault = end.fault.expect("a fault");
    assert_eq!((fault.code, fault.line, end.frames), (FindingCode::DuplicateId, 20, 2));
    assert_eq!(fault.excerpt, "<!-- source-id:p/t/m -->");
}

#[test]
fn markers() {
    for (file, line) in [
        (String::new(), 1),
        ("<!-- open".into(), 1),
        (MARKER.to_owned(), 1),
        (format!("{MARKER}\n"), 2),
        (format!("{MARKER}\r\n\n"), 1),
        (format!("\u{feff}{MARKER}\n\n"), 1),
        (format!("{MARKER} \n\n"), 1),
        (format!("{MARKER}\n \n"), 2),
        (format!("{MARKER}\n<a id="), 2),
        ("# A topic\n\ntext\n".into(), 1),
    ] {
        let end = scan(file.as_bytes());
        let fault = end.fault.expect("a fault");
        assert_eq!((fault.code, fault.line), (FindingCode::MissingMarker, line), "{file:?}");
        assert_eq!((end.valid_prefix_bytes, end.valid_prefix_lines), (0, 0));
        assert_eq!(end.tail, if file.is_empty() { Tail::Empty } else { Tail::Damaged });
    }
}

#[test]
fn a_record_without_a_place_takes_the_first_id_s() {
    let mut scanner = Scanner::new(None, &Limits::default());
    scanner.push_text(&archive(&[good("a b/t/m"), good("a b/t/n"), good("other/t/m")]), &mut |_| {});
    let end = scanner.finish(&mut |_| {});
    assert_eq!(end.location.expect("known").path(), "sources/a%20b/_v2/t.md");
    assert_eq!((end.frames, end.fault.expect("a fault").code), (2, FindingCode::WrongLocation));
}

#[test]
fn white_space_as_a_label() {
    for (first, label) in [
        ("[t]   : x", Some(" ")),
        ("[t] \u{3000}: x", Some("\u{3000}")),
        ("[t]   : x: y", Some(": x")),
        ("[t] : x: y", Some(": x")),
        ("[t]  a: : x", Some("a")),
        ("[t] a:: x", Some("a:")),
        ("[t]\u{1c}a: x", Some("a")),
        ("[t] : x", None),
        ("[t]  :x", None),
    ] {
        let file = archive(&[frame("p/t/m", |lines| lines[5] = first.into())]);
        let mut found = None;
        let mut scanner = Scanner::new(None, &Limits::default());
        scanner.push_text(&file, &mut |frame| found = Some(frame.label.to_owned()));
        scanner.finish(&mut |_| {});
        assert_eq!(found.as_deref(), label, "{first:?}");
    }
}

struct Checked {
    findings: Vec<(&'static str, Option<String>, Option<u64>)>,
    verifier: Verifier,
}

fn verify(given: Given, files: &[(&str, &[u8])]) -> Checked {
    let mut verifier = Verifier::new(given, &Limits::default());
    for (path, bytes) in files {
        verifier.file(path, EntryKind::File);
        for piece in bytes.chunks(3) {
            verifier.push_bytes(piece, &mut |_, _| {});
        }
        verifier.end(&mut |_, _| {});
    }
    let findings = verifier.take_findings(usize::MAX);
    for finding in &findings {
        assert!(!finding.message.is_empty());
        assert_eq!(finding.line.is_some(), finding.excerpt.is_some());
    }
    let findings = findings.into_iter().map(|finding| (finding.code, finding.path, finding.line)).collect();
    Checked { findings, verifier }
}

#[test]
fn a_workspace() {
    let archive = archive(&[good("p/t/m"), good("p/t/n")]);
    let checked = verify(
        Given::InWorkspace,
        &[
            ("core.md", b"text"),
            ("sources/D1.md", b"# D1\n"),
            ("sources/note.txt", b"\xff"),
            ("sources/p/_v2/t.md", archive.as_bytes()),
            ("sources/p/_v2/u.md", b""),
            ("sources/p/t.md", b"one\ntwo \xff\xfe\nthree\n"),
            ("topics/a.md", b"# A\n\nline\n\xe4\xbd"),
            ("topics/b.md", b"# B\r\n"),
            (".scriptorium/write.lock", b"\xff"),
            (".git/x.md", b"\xff"),
            ("journal/2020.md", b"x"),
            ("journal/2021.md", b"x"),
            ("unrelated/\u{1}.md", b"\xff"),
        ],
    );
    let path = |path: &str| Some(path.to_owned());
    assert_eq!(
        checked.findings,
        [
            ("empty-archive", path("sources/p/_v2/u.md"), None),
            ("invalid-utf8", path("sources/p/t.md"), Some(2)),
            ("legacy-loose-text", path("sources/p/t.md"), Some(1)),
            ("invalid-utf8", path("topics/a.md"), Some(4)),
            ("old-layout", path("journal"), None),
        ]
    );
    let summary = checked.verifier.summary();
    assert!(!summary.ok);
    assert_eq!(summary.health, Health::Degraded);
    assert_eq!((summary.counts.source_files, summary.counts.frames, summary.counts.topic_files), (4, 2, 2));
}

#[test]
fn health() {
    assert_eq!(verify(Given::InWorkspace, &[]).verifier.summary().health, Health::Empty);
    assert_eq!(verify(Given::InWorkspace, &[("core.md", b"x")]).verifier.summary().health, Health::Empty);
    let fine = verify(Given::InWorkspace, &[("sources/D1.md", b"x")]).verifier.summary();
    assert_eq!((fine.health, fine.ok), (Health::Ok, true));
    let torn = verify(Given::InWorkspace, &[(PATH, &archive(&[good("p/t/m")]).as_bytes()[..200])]).verifier.summary();
    assert_eq!((torn.health, torn.ok, torn.counts.frames), (Health::Degraded, false, 0));
}

#[test]
fn paths_as_people_type_them() {
    let file = archive(&[good("p/t/m")]);
    let at = |path: &'static str| {
        let checked = verify(Given::AnyPath, &[(path, file.as_bytes())]);
        checked.findings.into_iter().map(|(code, _, _)| code).collect::<Vec<_>>()
    };
    assert_eq!(at("copy.md"), ["location-unchecked"]);
    assert_eq!(at("/tmp/x/copy.txt"), ["location-unchecked"]);
    assert_eq!(at("/home/me/memory/sources/p/_v2/t.md"), [""; 0]);
    assert_eq!(at("p/_v2/t.md"), [""; 0]);
    assert_eq!(at("/home/me/memory/sources/p/_v2/other.md"), ["wrong-location"]);
    // Its frames are records of the older form too, were it not for their metadata.
    assert_eq!(at("/home/me/memory/sources/p/t.md"), ["legacy-bad-record", "legacy-loose-text"]);
    let mut verifier = Verifier::new(Given::AnyPath, &Limits::default());
    assert_eq!(verifier.file("/home/me/memory/topics/a/b.md", EntryKind::File), FileClass::Topic);
    assert_eq!(verifier.file("memory/core.md", EntryKind::File), FileClass::Derived);
    assert_eq!(verifier.file("copy.md", EntryKind::File), FileClass::Archive);
}

#[test]
fn paths_of_a_directory_that_someone_chose() {
    let verifier = Verifier::new(Given::InDirectory, &Limits::default());
    for (path, class) in [
        ("mem/sources/p/_v2/t.md", FileClass::Archive),
        ("backups/monday/mem/sources/p/_v2/t.md", FileClass::Archive),
        ("sources/p/_v2/t.md", FileClass::Archive),
        ("p/_v2/t.md", FileClass::Archive),
        ("copy.md", FileClass::Archive),
        ("core.md", FileClass::Derived),
        ("mem/sources/p/t.md", FileClass::OlderArchive),
        ("mem/sources/D1.md", FileClass::OlderArchive),
        ("mem/topics/.git/x.md", FileClass::Topic),
        ("mem/core.md", FileClass::Derived),
        ("mem/timeline/2026/05.md", FileClass::Derived),
        ("mem/README.md", FileClass::Other),
        ("mem/sources/picture.png", FileClass::Other),
        ("project/wiki/page.md", FileClass::Other),
        ("mem/.git/sources/p/_v2/t.md", FileClass::Other),
        ("mem/.scriptorium-block-backup/topics/a.md", FileClass::Other),
        ("_v2/t.md", FileClass::Other),
    ] {
        assert_eq!(verifier.class(path), class, "{path}");
    }
    let file = archive(&[good("p/t/m")]);
    let at = |path: &'static str| {
        let checked = verify(Given::InDirectory, &[(path, file.as_bytes())]);
        checked.findings.into_iter().map(|(code, _, _)| code).collect::<Vec<_>>()
    };
    assert_eq!(at("mem/sources/p/_v2/t.md"), [""; 0]);
    assert_eq!(at("p/_v2/t.md"), [""; 0]);
    assert_eq!(at("mem/sources/p/_v2/other.md"), ["wrong-location"]);
    // In a workspace no id belongs there either.
    assert_eq!(at("mem/sources/q/p/_v2/t.md"), ["wrong-location"]);
    assert_eq!(at("copy.md"), ["location-unchecked"]);

    let mut verifier = Verifier::new(Given::InDirectory, &Limits::default());
    verifier.file("mem/.git/link", EntryKind::Symlink);
    verifier.file("mem/locked", EntryKind::Unreadable);
    let codes: Vec<_> = verifier.take_findings(9).into_iter().map(|finding| finding.code).collect();
    assert_eq!(codes, ["unreadable-file"]);
}

#[test]
fn the_place_is_told_where_it_was_found_out() {
    let mut verifier = Verifier::new(Given::AnyPath, &Limits::default());
    verifier.file("copy.md", EntryKind::File);
    verifier.push_text(&archive(&[good("p/t/m")]), &mut |_, _| {});
    verifier.end(&mut |_, _| {});
    let finding = verifier.take_findings(1).remove(0);
    assert_eq!((finding.code, finding.severity), ("location-unchecked", Severity::Info));
    assert_eq!(finding.subject.as_deref(), Some("sources/p/_v2/t.md"));
}

#[test]
fn what_is_no_file_is_told() {
    let mut verifier = Verifier::new(Given::InWorkspace, &Limits::default());
    for (path, kind) in [
        ("sources/p/_v2/t.md", EntryKind::Symlink),
        ("topics/x", EntryKind::Special),
        ("topics/\u{fffd}.md", EntryKind::Undecodable),
        ("topics/locked", EntryKind::Unreadable),
        (".git/link", EntryKind::Symlink),
    ] {
        assert_eq!(verifier.file(path, kind), FileClass::Other);
        verifier.push_bytes(b"\xff", &mut |_, _| {});
    }
    verifier.file("topics/gone.md", EntryKind::File);
    assert!(verifier.unreadable("it is gone").is_some());
    assert!(verifier.unreadable("nothing is open").is_none());
    let findings = verifier.take_findings(99);
    let codes: Vec<_> = findings.iter().map(|finding| finding.code).collect();
    assert_eq!(codes, ["symlink-ignored", "special-file", "undecodable-name", "unreadable-file", "unreadable-file"]);
    let locked = &findings[3];
    assert_eq!((locked.path.as_deref(), locked.severity), (Some("topics/locked"), Severity::Error));
    assert!(locked.message.contains("mode"), "{}", locked.message);
    assert_eq!(verifier.summary().counts.source_files, 0);
}

/// A fault and, behind it, bytes that are no text: both are told, with their own lines.
#[test]
fn damage_and_bad_bytes() {
    let mut file = archive(&[good("p/t/m"), frame("p/t/n", |lines| lines[4].clear())]).into_bytes();
    let line = file.iter().filter(|byte| **byte == b'\n').count() as u64 + 1;
    file.extend_from_slice(b"abc \xe4\xbd\ndef\n");
    let checked = verify(Given::InWorkspace, &[(PATH, &file)]);
    let found: Vec<_> = checked.findings.iter().map(|(code, _, line)| (*code, *line)).collect();
    assert_eq!(found, [("bad-record-count", Some(15)), ("invalid-utf8", Some(line))]);
    assert_eq!(checked.verifier.summary().counts.frames, 1);
}

#[test]
fn findings_have_a_limit() {
    let mut verifier = Verifier::new(Given::InWorkspace, &Limits { findings_max: 2, ..Limits::default() });
    for number in 0..5 {
        verifier.file(&format!("sources/D{number}.md"), EntryKind::File);
        verifier.push_text("text\n", &mut |_, _| {});
    }
    verifier.file("topics/bad.md", EntryKind::File);
    verifier.push_bytes(b"\xff", &mut |_, _| {});
    verifier.end(&mut |_, _| {});
    assert_eq!(verifier.take_findings(1).len(), 1);
    assert_eq!(verifier.take_findings(9).len(), 1);
    let summary = verifier.summary();
    assert_eq!(summary.findings_dropped, 4);
    assert_eq!(summary.health, Health::Degraded, "also by what was dropped");
}

#[test]
fn names_that_no_file_system_takes() {
    let reasons = |provider: &str, thread: &str| {
        let record = NewRecord {
            provider: provider.to_owned(),
            thread: thread.to_owned(),
            id: "m".repeat(10_000),
            role: "user".to_owned(),
            trust: "trusted".to_owned(),
            ..NewRecord::default()
        };
        match Batch::check(vec![record], &Limits::default()) {
            Ok(_) => Vec::new(),
            Err(BatchError::Refused(problems)) => problems.into_iter().map(|problem| problem.reason).collect(),
            Err(BatchError::Limit(limit)) => vec![limit.name],
        }
    };
    // The thread's name has `.md` behind it, and 你 takes nine bytes.
    assert_eq!(reasons("p", &"t".repeat(252)), [""; 0]);
    assert_eq!(reasons("p", &"t".repeat(253)), ["name-too-long"]);
    assert_eq!(reasons(&"p".repeat(255), "t"), [""; 0]);
    assert_eq!(reasons(&"p".repeat(256), "t"), ["name-too-long"]);
    assert_eq!(reasons("p", &"你".repeat(28)), [""; 0]);
    assert_eq!(reasons("p", &"你".repeat(29)), ["name-too-long"]);
}

#[test]
fn a_batch_knows_which_record_needs_a_name() {
    let record = |provider: &str, thread: &str, id: &str| NewRecord {
        provider: provider.into(),
        thread: thread.into(),
        id: id.into(),
        role: "user".into(),
        text: "hello".into(),
        trust: "trusted".into(),
        ..NewRecord::default()
    };
    // The order of the batch is not that of its archives.
    let records = vec![record("q", "t", "1"), record("p", "b c", "2"), record("p", "a", "3"), record("p", "b c", "4")];
    let batch = Batch::check(records, &Limits::default()).expect("good records");
    let first = |path: &str| batch.first_at(path).map(|(number, id)| (number, id.to_string()));
    assert_eq!(first("sources/p/_v2/b%20c.md"), Some((2, "p/b c/2".into())));
    assert_eq!(first("sources/p/_v2/a.md"), Some((3, "p/a/3".into())));
    assert_eq!(first("sources/p"), Some((2, "p/b c/2".into())));
    assert_eq!(first("sources"), Some((1, "q/t/1".into())));
    for none in ["sources/p/_v2/b", "source", "sources/P", ""] {
        assert_eq!(first(none), None, "{none}");
    }
}
