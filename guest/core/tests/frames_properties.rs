//! What holds for every archive, whatever is in it and however it is cut.

use proptest::prelude::*;
use recollex_core::digest::Digest;
use recollex_core::ids::{Location, SourceId, label};
use recollex_core::source::{
    Batch, BatchError, Change, ContentHasher, EntryKind, Existing, ExistingScan, FindingCode, FrameRef, Given, Limits,
    MARKER, NewRecord, Outcome, Resume, ScanEnd, Scanner, Tail, Trust, Verifier,
};
use std::collections::BTreeMap;

const PATH: &str = "sources/p/_v2/t.md";

/// All of a frame, owned, to be compared.
#[derive(Clone, Debug, PartialEq)]
struct Seen {
    id: String,
    place: [u64; 8],
    meta_line: Option<u64>,
    speaker: Option<String>,
    metadata: Option<recollex_core::source::Metadata>,
    time: String,
    label: String,
    record: String,
}

fn seen(frame: &FrameRef<'_>) -> Seen {
    Seen {
        id: frame.id.to_owned(),
        place: [
            frame.offset,
            frame.end,
            frame.anchor_line,
            frame.record_line,
            frame.record_lines,
            frame.record_offset,
            frame.record_length,
            frame.end_line(),
        ],
        meta_line: frame.meta_line,
        speaker: frame.speaker.map(str::to_owned),
        metadata: frame.metadata.cloned(),
        time: frame.time.to_owned(),
        label: frame.label.to_owned(),
        record: frame.record.to_owned(),
    }
}

fn scan_with(limits: &Limits, keep: usize, pieces: &[&[u8]]) -> (Vec<Seen>, ScanEnd) {
    let mut frames = Vec::new();
    let mut scanner = Scanner::new(Some(Location::of_path(PATH)), limits).keep_records(keep);
    for piece in pieces {
        scanner.push_bytes(piece, &mut |frame| frames.push(seen(frame)));
    }
    let end = scanner.finish(&mut |frame| frames.push(seen(frame)));
    assert_eq!(end.frames, frames.len() as u64);
    assert_eq!(end.complete, end.fault.is_none());
    (frames, end)
}

fn scan(bytes: &[u8]) -> (Vec<Seen>, ScanEnd) {
    scan_with(&Limits::default(), usize::MAX, &[bytes])
}

/// Cuts `bytes` at places that `cuts` picks.
fn cut<'a>(bytes: &'a [u8], cuts: &[prop::sample::Index]) -> Vec<&'a [u8]> {
    let mut at: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
    at.extend([0, bytes.len()]);
    at.sort_unstable();
    at.windows(2).map(|pair| &bytes[pair[0]..pair[1]]).collect()
}

fn record(id: &str, text: &str) -> NewRecord {
    NewRecord {
        provider: "p".into(),
        thread: "t".into(),
        id: id.into(),
        role: "user".into(),
        text: text.into(),
        trust: "trusted".into(),
        ..NewRecord::default()
    }
}

fn existing(batch: &Batch, bytes: &[u8]) -> BTreeMap<String, Existing> {
    let mut scan = ExistingScan::new(batch, PATH, &Limits::default());
    scan.push_bytes(bytes);
    BTreeMap::from([(PATH.to_owned(), scan.finish())])
}

/// Archives into one file and returns what became of each record.
fn archive(file: &mut Vec<u8>, records: Vec<NewRecord>) -> Vec<Outcome> {
    let batch = Batch::check(records, &Limits::default()).expect("good records");
    let mut comparison = batch.compare(existing(&batch, file)).expect("a good file");
    while let Some(range) = comparison.wanted().cloned() {
        comparison.supply(&file[range.offset as usize..(range.offset + range.length) as usize]);
    }
    let plan = comparison.plan().expect("everything was supplied");
    for Change { path, from, text } in plan.changes {
        assert_eq!((path.as_str(), from.bytes), (PATH, file.len() as u64));
        file.extend_from_slice(text.as_bytes());
    }
    plan.records.into_iter().map(|kept| kept.outcome).collect()
}

/// Text as people and attackers write it: lines, pasted frames, markers, odd separators.
fn body() -> impl Strategy<Value = String> {
    let forged = record("forged", "x");
    let mut pasted = Vec::new();
    archive(&mut pasted, vec![forged]);
    let pasted = String::from_utf8(pasted).expect("text");
    let frame = pasted.split_once("\n\n").expect("a marker").1.to_owned();
    let part = prop_oneof![
        4 => any::<String>(),
        4 => "[ -~]{0,40}",
        2 => "[你好世界：，é😀]{1,20}",
        4 => prop::sample::select(vec![
            "\n", "\n\n", "\r\n", "\r", "\u{2028}", "\u{2029}", "\u{85}", "\0", "\u{feff}", ": ", "[t] user: ",
            "<!-- record-lines:1 -->\n", "<!-- record-lines:999999999 -->\n", "<!-- speaker-id:x -->\n", "```\n", " -->",
        ]).prop_map(str::to_owned),
        1 => Just(format!("{MARKER}\n\n")),
        1 => Just(pasted.clone()),
        1 => Just(format!("\n\n{frame}")),
        1 => Just(frame.clone()),
    ];
    prop::collection::vec(part, 0..6).prop_map(|parts| parts.concat())
}

/// Any character a source id may carry.
fn id_part() -> impl Strategy<Value = String> {
    prop_oneof![3 => "[a-zA-Z0-9_.~-]{1,12}", 1 => "[a-z %:\"'#/你😀]{0,6}[a-z]", 1 => any::<String>()]
        .prop_filter("fit for an id", |part| !part.is_empty() && SourceId::for_writing(&format!("p/t/{part}")).is_ok())
}

fn new_record() -> impl Strategy<Value = NewRecord> {
    let name = || prop::option::of(prop_oneof![any::<String>(), "[A-Za-z ()\\[\\]:-]{0,20}"]);
    let time = prop::option::of(prop_oneof![
        Just("2026-01-02T03:04:05+00:00".to_owned()),
        Just(String::new()),
        Just("a: b".to_owned()),
        "[0-9: 二六T-]{0,20}",
    ]);
    let tier = prop::sample::select(vec![None, Some("owner"), Some("paired")]);
    let trust = prop::sample::select(vec!["trusted", "pending"]);
    (id_part(), body(), time, name(), name(), name(), name(), tier, trust).prop_map(
        |(id, text, time, speaker_id, speaker_display, speaker_kind, principal, tier, trust)| NewRecord {
            time,
            speaker_id,
            speaker_display,
            speaker_kind,
            principal,
            tier: tier.map(Into::into),
            trust: trust.into(),
            ..record(&id, &text)
        },
    )
}

fn new_records(max: usize) -> impl Strategy<Value = Vec<NewRecord>> {
    prop::collection::vec(new_record(), 0..max).prop_map(|mut records| {
        let mut ids = std::collections::BTreeSet::new();
        records.retain(|record| ids.insert(record.id.clone()));
        for (index, record) in records.iter_mut().enumerate() {
            record.ordinal = index as i64;
        }
        records
    })
}

/// An archive, sometimes broken: bytes changed, dropped, doubled, cut off.
fn damaged() -> impl Strategy<Value = Vec<u8>> {
    let hurt = prop::collection::vec((any::<prop::sample::Index>(), any::<u8>(), 0..5_u8), 0..4);
    (new_records(4), hurt).prop_map(|(records, hurt)| {
        let mut file = Vec::new();
        archive(&mut file, records);
        for (place, byte, how) in hurt {
            let at = place.index(file.len() + 1);
            match how {
                0 if at < file.len() => file[at] = byte,
                1 if at < file.len() => drop(file.remove(at)),
                2 => file.insert(at, byte),
                3 => file.truncate(at),
                _ => file.insert(at, b'\n'),
            }
        }
        file
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// What is written is read back, field by field, byte by byte.
    #[test]
    fn round_trip(records in new_records(6).prop_filter("something", |records| !records.is_empty())) {
        let mut file = Vec::new();
        let outcomes = archive(&mut file, records.clone());
        prop_assert!(outcomes.iter().all(|outcome| *outcome == Outcome::Archived));
        let (frames, end) = scan(&file);
        prop_assert!(end.complete);
        prop_assert_eq!(frames.len(), records.len());
        for (frame, record) in frames.iter().zip(&records) {
            prop_assert_eq!(&frame.id, &format!("p/t/{}", record.id));
            prop_assert_eq!(&frame.time, record.time.as_deref().unwrap_or_default());
            let part = |text: &Option<String>| text.clone().unwrap_or_default();
            let label = label(&part(&record.speaker_display), &part(&record.speaker_id), &record.role);
            prop_assert_eq!(&frame.record, &format!("[{}] {}: {}", frame.time, label, record.text));
            // A dropped character can leave a space in front, which reads as part of the gap.
            let shown = label.trim_start();
            prop_assert_eq!(&frame.label, if shown.is_empty() { " " } else { shown });
            let start = frame.place[5] as usize;
            prop_assert_eq!(&file[start..start + frame.record.len()], frame.record.as_bytes());
            let metadata = frame.metadata.as_ref().expect("always written");
            prop_assert_eq!(metadata.trust.as_str(), &record.trust);
            prop_assert_eq!(metadata.tier.map(|tier| tier.as_str()), record.tier.as_deref());
            let or_unknown = |text: &Option<String>| text.clone().filter(|text| !text.is_empty()).unwrap_or("unknown".into());
            prop_assert_eq!(&metadata.kind, &or_unknown(&record.speaker_kind));
            prop_assert_eq!(&metadata.principal, &or_unknown(&record.principal));
            if let Some(marker) = &frame.speaker {
                let id = recollex_core::ids::SpeakerId::from_marker(marker).expect("canonical");
                prop_assert_eq!(id.as_str(), record.speaker_id.as_deref().unwrap_or_default());
            }
        }
    }

    /// Archiving in several goes gives the same bytes as archiving at once, and doing it again changes nothing.
    #[test]
    fn appending_is_writing(records in new_records(6), at in any::<prop::sample::Index>()) {
        let mut at_once = Vec::new();
        archive(&mut at_once, records.clone());
        let (early, late) = records.split_at(at.index(records.len() + 1));
        let mut in_two = Vec::new();
        archive(&mut in_two, early.to_vec());
        archive(&mut in_two, late.to_vec());
        prop_assert_eq!(&in_two, &at_once);
        let outcomes = archive(&mut in_two, records);
        prop_assert!(outcomes.iter().all(|outcome| *outcome == Outcome::Already));
        prop_assert_eq!(&in_two, &at_once);
    }

    /// A file that someone ended with one more line is still one that can be added to.
    #[test]
    fn one_more_line_end_does_no_harm(records in new_records(3), more in new_record()) {
        prop_assume!(records.iter().all(|record| record.id != more.id));
        let mut file = Vec::new();
        archive(&mut file, records.clone());
        if file.is_empty() {
            file.extend_from_slice(MARKER.as_bytes());
            file.push(b'\n');
        }
        file.push(b'\n');
        prop_assert!(scan(&file).1.complete);
        archive(&mut file, vec![more]);
        let (frames, end) = scan(&file);
        prop_assert!(end.complete, "{:?}", end.fault);
        prop_assert_eq!(frames.len(), records.len() + 1);
    }

    /// Where the input is cut makes no difference: to frames, to faults, to figures.
    #[test]
    fn pieces_do_not_matter(
        file in damaged(),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..12),
        header_bytes in prop_oneof![Just(1_usize << 20), 1..600_usize],
        keep in prop_oneof![Just(usize::MAX), 0..60_usize],
    ) {
        let limits = Limits { header_bytes, ..Limits::default() };
        let whole = scan_with(&limits, keep, &[&file]);
        prop_assert_eq!(&scan_with(&limits, keep, &cut(&file, &cuts)), &whole);
        let single: Vec<&[u8]> = file.chunks(1).collect();
        prop_assert_eq!(&scan_with(&limits, keep, &single), &whole);
        if let Ok(text) = std::str::from_utf8(&file) {
            let mut frames = Vec::new();
            let mut scanner = Scanner::new(Some(Location::of_path(PATH)), &limits).keep_records(keep);
            let mut at = 0;
            for piece in cut(&file, &cuts) {
                let end = text.ceil_char_boundary(at + piece.len());
                scanner.push_text(&text[at.min(end)..end], &mut |frame| frames.push(seen(frame)));
                at = end;
            }
            let end = scanner.finish(&mut |frame| frames.push(seen(frame)));
            prop_assert_eq!((frames, end), whole);
        }
    }

    /// A torn file shows a prefix of its frames, and says where it ends.
    #[test]
    fn every_prefix_is_a_prefix(records in new_records(4)) {
        let mut file = Vec::new();
        archive(&mut file, records);
        let (all, _) = scan(&file);
        for length in 0..file.len() {
            let (frames, end) = scan(&file[..length]);
            let mut expected = all[..frames.len()].to_vec();
            if let (Some(last), Tail::AfterRecord) = (expected.last_mut(), end.tail) {
                // The file ends with it, without the empty line.
                last.place[1] -= 1;
            }
            prop_assert_eq!(&frames, &expected, "{} bytes", length);
            prop_assert!(end.valid_prefix_bytes <= length as u64);
            let tail = all.get(frames.len()).map_or(file.len() as u64, |next| next.place[5] + next.place[6]);
            prop_assert!(length as u64 <= tail, "a whole record is not overlooked");
            if end.complete {
                prop_assert_eq!(end.valid_prefix_bytes, length as u64);
            }
        }
    }

    /// Nothing makes the scanner or the verifier panic, and figures always add up.
    #[test]
    fn any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..400), with_marker in any::<bool>()) {
        let mut file = if with_marker { format!("{MARKER}\n\n").into_bytes() } else { Vec::new() };
        file.extend_from_slice(&bytes);
        let (_, end) = scan(&file);
        prop_assert_eq!(end.bytes, file.len() as u64);
        let open_line = file.last().is_some_and(|last| *last != b'\n');
        let lines = file.iter().filter(|byte| **byte == b'\n').count() + usize::from(open_line);
        prop_assert_eq!(end.lines, lines as u64);
        for path in ["copy.md", PATH, "sources/p/t.md", "topics/a.md", "core.md", "journal/x"] {
            let mut verifier = Verifier::new(Given::AnyPath, &Limits::default());
            verifier.file(path, EntryKind::File);
            verifier.push_bytes(&file, &mut |_, _| {});
            verifier.end(&mut |_, _| {});
            prop_assert_eq!(verifier.summary().counts.bytes, file.len() as u64);
        }
    }

    /// A body decides nothing: not how many records there are, not whose they are, not whether they are trusted.
    #[test]
    fn hostile_bodies(bodies in prop::collection::vec(body(), 1..5)) {
        let records: Vec<NewRecord> = bodies
            .iter()
            .enumerate()
            .map(|(index, body)| NewRecord { trust: "pending".into(), ..record(&format!("m{index}"), body) })
            .collect();
        let mut file = Vec::new();
        archive(&mut file, records);
        let (frames, end) = scan(&file);
        prop_assert!(end.complete);
        let ids: Vec<String> = (0..bodies.len()).map(|index| format!("p/t/m{index}")).collect();
        prop_assert_eq!(frames.iter().map(|frame| frame.id.clone()).collect::<Vec<_>>(), ids);
        for frame in &frames {
            prop_assert_eq!(frame.speaker.as_deref(), None);
            prop_assert_eq!(frame.metadata.as_ref().map(|metadata| metadata.trust), Some(Trust::Pending));
        }
    }

    /// A scan that goes on where an earlier one ended finds what one over everything finds.
    #[test]
    fn resuming(records in new_records(6), at in any::<prop::sample::Index>(), blank in any::<bool>()) {
        let (early, late) = records.split_at(at.index(records.len() + 1));
        let mut file = Vec::new();
        archive(&mut file, early.to_vec());
        if blank && !file.is_empty() {
            file.push(b'\n');
        }
        let (mut frames, end) = scan(&file);
        let resume = end.resume().unwrap_or(Resume { bytes: 0, lines: 0, tail: Tail::Empty });
        archive(&mut file, late.to_vec());
        if let (Some(last), Tail::AfterRecord, false) = (frames.last_mut(), end.tail, late.is_empty()) {
            // Now the empty line is there that ends it.
            last.place[1] += 1;
        }
        let limits = Limits::default();
        let mut scanner = Scanner::resume(Location::of_path(PATH), resume, &limits).keep_records(usize::MAX);
        scanner.push_bytes(&file[resume.bytes as usize..], &mut |frame| frames.push(seen(frame)));
        let found = scanner.finish(&mut |frame| frames.push(seen(frame)));
        let (all, whole) = scan(&file);
        prop_assert_eq!(frames, all);
        prop_assert_eq!(found.resume(), whole.resume());
        prop_assert_eq!((found.lines, found.bytes, found.fault), (whole.lines, whole.bytes, whole.fault));
    }

    /// The content digest of a stored record is that of the record offered, trust aside.
    #[test]
    fn content_digest(new in new_record()) {
        let mut file = Vec::new();
        archive(&mut file, vec![new.clone()]);
        let digest = |file: &[u8]| -> Digest {
            let mut digest = None;
            let mut scanner = Scanner::new(None, &Limits::default()).keep_records(usize::MAX);
            let mut sink = |frame: &FrameRef<'_>| {
                let mut hasher = ContentHasher::of_frame(frame);
                hasher.push(frame.record.as_bytes());
                digest = Some(hasher.finish());
            };
            scanner.push_bytes(file, &mut sink);
            scanner.finish(&mut sink);
            digest.expect("one record")
        };
        let other = if new.trust == "trusted" { "pending" } else { "trusted" };
        let turned = NewRecord { trust: other.into(), ..new.clone() };
        prop_assert_eq!(archive(&mut file, vec![turned]), [Outcome::Already]);
        let changed = NewRecord { text: format!("{}!", new.text), ..new.clone() };
        let outcomes = archive(&mut file, vec![changed.clone()]);
        let mut fresh = Vec::new();
        archive(&mut fresh, vec![changed]);
        prop_assert_eq!(outcomes, [Outcome::Differs { kept: digest(&file), offered: digest(&fresh) }]);
        let stranger = NewRecord { principal: Some("someone else".into()), ..new };
        let differs = matches!(archive(&mut file, vec![stranger])[0], Outcome::Differs { .. });
        prop_assert!(differs);
    }
}

#[test]
fn a_batch_lists_every_fault() {
    let bad = NewRecord {
        time: Some("2026\t01".into()),
        role: " ".into(),
        tier: Some("mcp_browser".into()),
        trust: "maybe".into(),
        speaker_kind: Some("recollex.redacted".into()),
        ..record("a>b", "x")
    };
    let malformed = NewRecord { provider: "..".into(), ..record("m", "x") };
    let Err(BatchError::Refused(problems)) =
        Batch::check(vec![record("good", "x"), bad, malformed], &Limits::default())
    else {
        panic!("refused")
    };
    let found: Vec<_> = problems.iter().map(|problem| (problem.line, problem.reason)).collect();
    assert_eq!(
        found,
        [
            (Some(2), "unsafe-source-id"),
            (Some(2), "unsafe-timestamp"),
            (Some(2), "empty-label"),
            (Some(2), "invalid-metadata"),
            (Some(2), "invalid-metadata"),
            (Some(2), "reserved-kind"),
            (Some(3), "malformed-source-id"),
        ]
    );
    assert!(problems.iter().all(|problem| problem.code == "INVALID_ARGUMENT"));
    assert_eq!(problems[6].subject.as_deref(), Some("../t/m"));
}

#[test]
fn a_batch_has_a_limit() {
    let limits = Limits { batch_bytes: 1000, ..Limits::default() };
    assert!(Batch::check(vec![record("m", &"x".repeat(500))], &limits).is_ok());
    let Err(BatchError::Limit(limit)) = Batch::check(vec![record("m", &"x".repeat(1001))], &limits) else {
        panic!("too large")
    };
    assert_eq!((limit.name, limit.allowed), ("limits.batch-bytes", 1000));
    assert!(limit.asked > 1001);
}

/// What can be written can be read with the same limits.
#[test]
fn a_header_that_could_not_be_read_is_not_written() {
    let limits = Limits { header_bytes: 400, ..Limits::default() };
    for length in 0..300 {
        let new = NewRecord { time: Some("9".repeat(length)), ..record("m", "x") };
        match Batch::check(vec![new], &limits) {
            Ok(batch) => {
                let plan = batch.compare(BTreeMap::new()).expect("no file").plan().expect("nothing to read");
                let (frames, end) = scan_with(&limits, 0, &[plan.changes[0].text.as_bytes()]);
                assert!(end.complete, "{length}: {:?}", end.fault);
                assert_eq!(frames[0].time.len(), length);
            }
            Err(BatchError::Refused(problems)) => {
                assert_eq!(problems[0].reason, "header-too-long");
                assert!(length > 100);
            }
            Err(BatchError::Limit(limit)) => panic!("{limit}"),
        }
    }
}

#[test]
fn damaged_archives_are_refused() {
    let batch = Batch::check(vec![record("new", "x")], &Limits::default()).expect("good");
    let mut good = Vec::new();
    archive(&mut good, vec![record("old", "x")]);
    for (file, reason) in [
        (&good[..good.len() - 1], "damaged-archive"),
        (b"\xff\xfe", "invalid-utf8"),
        (&[&good[..], b"\n<a id=\xe4"].concat(), "invalid-utf8"),
        (&[&good[..], b"\n\n\n"].concat(), "damaged-archive"),
    ] {
        let Err(problems) = batch.compare(existing(&batch, file)) else { panic!("{file:?} is damaged") };
        assert_eq!((problems[0].code, problems[0].reason), ("COMMIT_REJECTED", reason));
        assert_eq!(problems[0].path.as_deref(), Some(PATH));
    }
}

#[test]
fn twice_in_one_batch() {
    let mut file = Vec::new();
    let outcomes = archive(&mut file, vec![record("m", "one"), record("m", "two"), record("m", "one")]);
    assert_eq!(outcomes[0], Outcome::Archived);
    assert!(matches!(outcomes[1], Outcome::Differs { .. }));
    assert_eq!(outcomes[2], Outcome::Already);
    assert_eq!(scan(&file).0.len(), 1);
}

/// Records of a conversation that was archived without metadata are the same when they come with the usual ones.
#[test]
fn no_metadata_is_trusted_and_unknown() {
    let id = SourceId::parse("p/t/m").expect("an id");
    let file = format!(
        "{MARKER}\n\n<a id=\"{}\"></a>\n<!-- source-id:{id} -->\n<!-- record-lines:0001 -->\n[] user: hi\n",
        id.anchor()
    );
    let mut file = file.into_bytes();
    assert_eq!(scan(&file).0[0].metadata, None);
    assert_eq!(archive(&mut file, vec![record("m", "hi")]), [Outcome::Already]);
}

#[test]
fn memory_is_bounded_by_limits() {
    // One line of 64 MiB and a header without end: neither is kept.
    let mut scanner = Scanner::new(None, &Limits::default());
    let mut frames = Vec::new();
    let mut file = Vec::new();
    archive(&mut file, vec![record("m", "start ")]);
    file.pop();
    scanner.push_bytes(&file, &mut |frame| frames.push(seen(frame)));
    let line = vec![b'x'; 1 << 20];
    for _ in 0..64 {
        scanner.push_bytes(&line, &mut |frame| frames.push(seen(frame)));
    }
    scanner.push_bytes(b"\n", &mut |frame| frames.push(seen(frame)));
    let end = scanner.finish(&mut |frame| frames.push(seen(frame)));
    assert!(end.complete);
    assert_eq!(frames[0].place[6], "[] user: start ".len() as u64 + (64 << 20));
    assert_eq!(frames[0].record, "", "nothing was kept");

    let mut scanner = Scanner::new(None, &Limits::default());
    scanner.push_bytes(format!("{MARKER}\n\n<a id=\"").as_bytes(), &mut |_| {});
    for _ in 0..4 {
        scanner.push_bytes(&line, &mut |_| {});
    }
    let end = scanner.finish(&mut |_| {});
    assert_eq!(end.fault.expect("no end").code, FindingCode::HeaderTooLong);
}
