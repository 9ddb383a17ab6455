//! FORMAT.md says what the code does: its example and its tables are held against it.

use recollex_core::digest::{Digest, FileHasher};
use recollex_core::ids::{Location, Revision, SourceId, TopicPath, WorkspaceId};
use recollex_core::import::SkipReason;
use recollex_core::prompt::Origin;
use recollex_core::search;
use recollex_core::session::Settings;
use recollex_core::source::{
    Batch, ContentHasher, FindingCode, FrameRef, LegacyItem, LegacyKind, LegacyScanner, Limits, NewNumbered, NewRecord,
    NumberedBatch, Record, Scanner, Severity, Tier,
};
use recollex_core::time::Zone;
use recollex_core::topic::edit::EditReason;
use recollex_core::topic::{Check, FaultCode, Sources, TopicRef};
use recollex_core::trust::{Denied, Narrowing, Prefix, Quota, Verb, authorise};
use recollex_core::turns::{
    Heads, LastFailure, LastOutcome, ModelFailure, SessionFaultCode, SessionReader, WriterCode, WriterFailure,
    WriterStatus, mark_line,
};
use recollex_core::update::Reason;
use recollex_core::writer::{Evidence, Ground, GuardReason, Step, Task, Why, Writer, WriterLimits};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

const DOCUMENT: &str = include_str!("../FORMAT.md");

/// The part below a heading, up to the next of any level.
fn section(heading: &str) -> &'static str {
    let start = DOCUMENT.find(&format!("# {heading}\n")).unwrap_or_else(|| panic!("no heading {heading:?}"));
    let body = &DOCUMENT[start + heading.len() + 3..];
    let mut fenced = false;
    let mut at = 0;
    for line in body.split_inclusive('\n') {
        fenced ^= line.starts_with("```");
        if line.starts_with('#') && !fenced {
            break;
        }
        at += line.len();
    }
    &body[..at]
}

/// The first code block of a section.
fn block(heading: &str, number: usize) -> &'static str {
    let block = section(heading).split("```").nth(2 * number + 1).unwrap_or_else(|| panic!("no block in {heading:?}"));
    block.split_once('\n').expect("a line").1
}

/// Rows of the section's table, cells trimmed, heading and rule left out.
fn table(heading: &str) -> Vec<Vec<&'static str>> {
    let rows = section(heading).lines().filter(|line| line.starts_with('|')).skip(2);
    rows.map(|row| row.trim_matches('|').split('|').map(str::trim).collect()).collect()
}

fn code(word: &str) -> String {
    format!("`{word}`")
}

fn example() -> (String, Vec<String>) {
    let first = NewRecord {
        provider: "openprogram".into(),
        thread: "plan a".into(),
        id: "m1".into(),
        role: "user".into(),
        text: "Move the launch to May?\nThe hall is free on the 7th.".into(),
        time: Some("2026-01-02T03:04:05+00:00".into()),
        speaker_id: Some("channel-7/u:42".into()),
        speaker_display: Some("Ada".into()),
        speaker_kind: Some("human".into()),
        principal: Some("ada".into()),
        tier: Some("paired".into()),
        trust: "pending".into(),
        ..NewRecord::default()
    };
    let second = NewRecord {
        id: "m2".into(),
        ordinal: 1,
        role: "assistant".into(),
        text: "好的。".into(),
        time: None,
        speaker_id: None,
        speaker_display: None,
        speaker_kind: None,
        principal: None,
        tier: None,
        trust: "trusted".into(),
        ..first.clone()
    };
    let batch = Batch::check(vec![first, second], &Limits::default()).expect("good records");
    let plan = batch.compare(BTreeMap::new()).expect("no file").plan().expect("nothing to read");
    let [change] = &plan.changes[..] else { panic!("one file") };
    let mut contents = Vec::new();
    let location = Location::of_path(&change.path);
    let mut scanner = Scanner::new(Some(location), &Limits::default()).keep_records(usize::MAX);
    let mut sink = |frame: &FrameRef<'_>| {
        let mut hasher = ContentHasher::of_frame(frame);
        hasher.push(frame.record.as_bytes());
        contents.push(hasher.finish().hex());
    };
    scanner.push_text(&change.text, &mut sink);
    assert!(scanner.finish(&mut sink).complete);
    assert_eq!(change.path, "sources/openprogram/_v2/plan%20a.md");
    (change.text.clone(), contents)
}

#[test]
fn the_example_is_what_is_written() {
    let (file, _) = example();
    let mut listing = String::new();
    let mut offset = 0;
    for (number, line) in file.lines().enumerate() {
        let row = format!("{offset:4}  {:2}  {line}", number + 1);
        writeln!(listing, "{}", row.trim_end()).expect("a string takes everything");
        offset += line.len() + 1;
    }
    assert_eq!(offset, file.len());
    assert_eq!(block("Worked example", 0), listing);
    assert!(section("Worked example").contains(&format!("{} bytes", file.len())));
}

#[test]
fn the_example_s_digests_are_right() {
    let (file, contents) = example();
    let id = Digest::of(b"openprogram/plan a/m1");
    let mut hasher = FileHasher::new();
    hasher.push(file.as_bytes());
    let root = hasher.finish().root;
    let revision = Revision::of([("sources/openprogram/_v2/plan%20a.md", root)]);
    let expected = format!(
        "id      {}\ncontent {}\ncontent {}\nchunk   {}\nfile    {}\nstate   {}\n",
        id.hex(),
        contents[0],
        contents[1],
        Digest::of(file.as_bytes()).hex(),
        root.hex(),
        revision,
    );
    assert_eq!(block("Worked example", 1), expected);
    // The first record is pending, so its content digest is the hash of bytes of this very file.
    let start = file.find("<a id=").expect("an anchor");
    let end = file.rfind("\n\n<a id=").expect("a second frame");
    assert_eq!(Digest::of(&file.as_bytes()[start..end]).hex(), contents[0]);
    assert!(section("Worked example").contains(&format!("bytes {start} to {}", end - 1)));
}

/// The files of the older example, without offsets and line numbers.
fn older_example() -> [(&'static str, String); 2] {
    ["sources/notes/boat.md", "sources/D3.md"].map(|path| {
        let number = usize::from(path.ends_with("D3.md"));
        let mut file = String::new();
        for (index, row) in block("Older example", number).lines().enumerate() {
            assert!(row.starts_with(&format!("{:4}  {:2}", file.len(), index + 1)), "{row}");
            file.push_str(row.get(10..).unwrap_or_default());
            file.push('\n');
        }
        assert!(section("Older example").contains(&format!("`{path}`, {} bytes", file.len())));
        (path, file)
    })
}

#[test]
fn the_older_example_is_what_is_read() {
    let mut found = String::new();
    for (path, file) in older_example() {
        writeln!(found, "{path}").expect("a string takes everything");
        let mut sink = |item: LegacyItem<'_>| {
            let LegacyItem::Found(legacy) = item else { panic!("nothing is wrong: {item:?}") };
            if !legacy.stands_alone() {
                return;
            }
            let is_mention = legacy.kind == LegacyKind::Mention;
            let record = if is_mention { Record::of_mention(path, legacy) } else { Record::of_legacy(path, legacy) };
            let (kind, what) = match legacy.kind {
                LegacyKind::Mention => {
                    let references: Vec<String> = legacy.references().iter().map(ToString::to_string).collect();
                    ("mention", format!("of {}", references.join(", ")))
                }
                LegacyKind::Message => ("message", format!("[{}] {}", record.time, record.label)),
                _ => ("turn", format!("[{}] {}", record.time, record.label)),
            };
            let hint = record.speaker.map_or_else(String::new, |hint| format!(", as it says {}", hint.label));
            let place = format!("{:3} {:4} {:4}", record.line, record.offset, record.length);
            writeln!(found, "{place}  {kind:7}  {} {what}{hint}", record.id).expect("a string takes everything");
        };
        let mut scanner = LegacyScanner::new(path, &Limits::default());
        scanner.push_text(&file, &mut sink);
        let end = scanner.finish(&mut sink);
        assert_eq!(end.loose_lines, u64::from(path == "sources/notes/boat.md"));
    }
    assert_eq!(block("Older example", 2), found);
}

/// The numbered conversation of the older example is what is written for its turns.
#[test]
fn the_older_example_is_what_is_written() {
    let turn = |reference: &str, label: &str, text: &str| NewNumbered {
        reference: reference.into(),
        date: "2024-05-05".into(),
        label: label.into(),
        text: text.into(),
    };
    let turns = vec![turn("D3:7", "Ada", "The keel is done."), turn("D3:8", "Tom", "Two things:\nbolts, paint")];
    let batch = NumberedBatch::check(turns, &Limits::default()).expect("good turns");
    let plan = batch.compare(BTreeMap::new()).expect("no file").plan().expect("nothing to read");
    let [change] = &plan.changes[..] else { panic!("one file") };
    let [_, (path, file)] = older_example();
    assert_eq!((change.path.as_str(), &change.text), (path, &file));
}

#[test]
fn findings_are_all_listed() {
    let listed: Vec<(String, String)> =
        table("Findings").into_iter().map(|row| (row[0].to_owned(), row[1].to_owned())).collect();
    let made: Vec<(String, String)> = FindingCode::ALL
        .iter()
        .map(|finding| {
            let severity = match finding.severity() {
                Severity::Info => "info",
                Severity::Warning => "warning",
                Severity::Error => "error",
            };
            (code(finding.as_str()), severity.to_owned())
        })
        .collect();
    assert_eq!(listed[..made.len()], made);
    assert_eq!(listed.iter().map(|(code, _)| code).collect::<BTreeSet<_>>().len(), listed.len());
}

#[test]
fn reasons_to_leave_out_are_all_listed() {
    let listed: Vec<&str> = table("Left out").into_iter().map(|row| row[0]).collect();
    let known: Vec<String> = SkipReason::ALL.iter().map(|reason| code(reason.as_str())).collect();
    assert_eq!(listed, known);
}

#[test]
fn settings_are_all_listed() {
    let listed: Vec<[String; 3]> =
        table("Settings").into_iter().map(|row| [row[0], row[1], row[2]].map(str::to_owned)).collect();
    let known: Vec<[String; 3]> = Settings::table()
        .map(|(name, default, allowed)| {
            let allowed = allowed.to_string();
            let allowed = allowed.strip_prefix("a whole number from ").unwrap_or(&allowed).to_owned();
            [code(name), if default.is_empty() { "not set".to_owned() } else { code(&default) }, allowed]
        })
        .collect();
    assert_eq!(listed, known);
}

/// Every reason that a source file of the guests spells out is in the table of refusals.
#[test]
fn refusals_are_all_listed() {
    let listed: BTreeSet<&str> =
        table("Refusals").into_iter().flat_map(|row| row[1].split(", ").collect::<Vec<_>>()).collect();
    let codes: BTreeSet<&str> = table("Refusals").into_iter().map(|row| row[0]).collect();
    let mut missing = BTreeSet::new();
    for (file, text) in sources() {
        for word in literals(text.split("#[cfg(test)]").next().unwrap_or_default()) {
            let upper = word.contains('_') && word.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'_');
            if upper && !NO_CODES.contains(&word) && !codes.contains(code(word).as_str()) {
                missing.insert(format!("{file}: {word}"));
            }
            let kebab = word.contains('-') && word.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-');
            let reason = kebab && word.as_bytes().first().is_some_and(u8::is_ascii_lowercase) && !word.ends_with('-');
            if reason && !listed.contains(code(word).as_str()) && !NO_REASONS.contains(&word) {
                missing.insert(format!("{file}: {word}"));
            }
        }
    }
    assert!(missing.is_empty(), "not in FORMAT.md: {missing:#?}");
    for denied in [Denied::TierMissing, Denied::Capability { verb: Verb::Init }] {
        assert!(codes.contains(code(denied.code()).as_str()));
    }
    for error in [search::QueryError::NothingSearchable, search::QueryError::OnlyFunctionWords] {
        assert!(listed.contains(code(error.reason()).as_str()));
    }
}

/// Codes of something that is no refusal: of what is allowed, and of a conflict.
const NO_CODES: &[&str] = &["AUTHORITY_ALLOWED", "CONCURRENT_UPDATE"];

/// Words of that shape that are something else.
const NO_REASONS: &[&str] = &[
    "words-rank",
    "meaning-rank",
    "local-owner",
    "legacy-unknown",
    "workspace-id",
    "archive-numbered",
    "archive-unpaired",
    "start-import",
    "would-promote",
    "get-block",
    "get-section",
    "source-id",
    "speaker-id",
    "record-lines",
    "claude-code",
    "narrow-audience",
    "widen-audience",
    "touched-topics",
];

fn literals(text: &str) -> impl Iterator<Item = &str> {
    let code = text.lines().filter(|line| !line.trim_start().starts_with("//"));
    code.flat_map(|line| line.split('"').skip(1).step_by(2))
}

/// The sources whose literals may be refusals: all of the guests' but the codes of findings.
fn sources() -> Vec<(String, String)> {
    let guest = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
    let mut open: Vec<std::path::PathBuf> = [
        "core/src/session",
        "core/src/trust",
        "core/src/source",
        "core/src/ids",
        "core/src/import/draft.rs",
        "core/src/import/mod.rs",
        "core/src/read/fault.rs",
        "core/src/search/query.rs",
        "component/src",
        "verifier/src",
    ]
    .iter()
    .map(|part| format!("{guest}/{part}").into())
    .collect();
    let mut found = Vec::new();
    while let Some(path) = open.pop() {
        if path.is_dir() {
            open.extend(std::fs::read_dir(&path).expect("a directory").map(|entry| entry.expect("an entry").path()));
        } else if path.file_name().is_none_or(|name| name != "report.rs") {
            found.push((path.display().to_string(), std::fs::read_to_string(&path).expect("a source file")));
        }
    }
    assert!(found.len() > 10);
    found
}

/// The archive of the worked example, for topics to cite.
struct Example;

impl Sources for Example {
    fn record_at(&self, path: &str, anchor: &str) -> Option<SourceId> {
        let id = SourceId::parse("openprogram/plan a/m1").ok()?;
        (path == id.v2_path() && anchor == id.anchor()).then_some(id)
    }
}

#[test]
fn the_topic_says_what_is_listed() {
    let text = block("Topic example", 0);
    let check = Check::new(TopicPath::parse("topics/spring.md").expect("a topic"), TopicRef::parse(text), &Example);
    assert_eq!(check.faults(), []);
    let [block_found] = &check.blocks().collect::<Vec<_>>()[..] else { panic!("one block") };
    let mut rows = Vec::new();
    let mut row = |span: std::ops::Range<usize>, what: String| rows.push((span, what));
    let body = block_found.body();
    let ids: Vec<&str> = block_found.ids().iter().map(|id| id.as_str()).collect();
    let [also, own] = ids[..] else { panic!("two ids") };
    row(body.span(), format!("block {own}, also {also}, under {}", block_found.headings().join(" / ")));
    for group in block_found.groups() {
        let quote = text[group.before().span()].trim();
        let start = group.before().start() + text[group.before().span()].find(quote).expect("the quote");
        row(start..start + quote.len(), format!("quote {:?}", group.quote()));
        for link in block_found.links().filter(|link| group.before().span().contains(&link.whole().start())) {
            let target = link.target().as_str().rsplit_once("#^").expect("a block").1;
            row(link.whole().span(), format!("links to block {target}"));
        }
        for citation in group.citations() {
            let footnote = block_found.footnote(&citation).expect("defined");
            let evidence: Vec<String> =
                footnote.sources().iter().filter_map(|source| source.evidence()).map(ToString::to_string).collect();
            let (label, time) = (citation.label().as_str(), footnote.time().expect("a time"));
            row(citation.span(), format!("cites {label}, {time}: {}", evidence.join(", ")));
        }
    }
    let mut locator = check.topic().locator();
    let mut listing = String::new();
    for (span, what) in rows {
        let (line, column) = locator.locate(span.start);
        let place = format!("{line}:{column}");
        writeln!(listing, "{place:>6}  {:>4}..{:<4}  {what}", span.start, span.end).expect("a string takes everything");
    }
    assert_eq!(block("Topic example", 1), listing);
}

fn sentence(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().into_iter().flat_map(char::to_uppercase).chain(letters).chain(['.']).collect()
}

#[test]
fn reasons_of_edits_are_all_listed() {
    let listed: Vec<[String; 4]> =
        table("Edits of topics").into_iter().map(|row| [row[0], row[1], row[2], row[3]].map(str::to_owned)).collect();
    let known: Vec<[String; 4]> = EditReason::OWN
        .iter()
        .map(|reason| [code(reason.as_str()), code(reason.code()), sentence(reason.what()), sentence(reason.remedy())])
        .collect();
    assert_eq!(listed, known);
    let faults = FaultCode::ALL.iter().filter(|fault| fault.is_strict()).map(|fault| EditReason::Topic(*fault));
    for reason in faults.chain(EditReason::OWN.iter().copied()) {
        let rows = table("Refusals");
        let row = rows.iter().find(|row| row[0] == code(reason.code())).expect("a row for the code");
        assert!(row[1].split(", ").any(|listed| listed == code(reason.as_str())), "{reason:?}");
    }
}

#[test]
fn reasons_of_updates_are_all_listed() {
    let listed: Vec<[String; 4]> = table("Reasons of updates")
        .into_iter()
        .map(|row| [row[0], row[1], row[2], row[3]].map(str::to_owned))
        .collect();
    let known: Vec<[String; 4]> = Reason::ALL
        .iter()
        .map(|reason| {
            let code_of = code(reason.code().as_str());
            [code(reason.as_str()), code_of, sentence(reason.what()), sentence(reason.remedy())]
        })
        .collect();
    assert_eq!(listed, known);
    for reason in Reason::ALL {
        let rows = table("Refusals");
        let row = rows.iter().find(|row| row[0] == code(reason.code().as_str())).expect("a row for the code");
        assert!(row[1].split(", ").any(|listed| listed == code(reason.as_str())), "{reason:?}");
    }
}

#[test]
fn faults_of_topics_are_all_listed() {
    let listed: Vec<[String; 4]> =
        table("Faults of topics").into_iter().map(|row| [row[0], row[1], row[2], row[3]].map(str::to_owned)).collect();
    let known: Vec<[String; 4]> = FaultCode::ALL
        .iter()
        .map(|fault| {
            let strict = if fault.is_strict() { "refused" } else { "advice" };
            [code(fault.as_str()), strict.to_owned(), sentence(fault.what()), sentence(fault.remedy())]
        })
        .collect();
    assert_eq!(listed, known);
}

#[test]
fn who_may_call_what() {
    let may = |tier, verb| if authorise(Some(tier), verb).is_ok() { "yes" } else { "no" };
    let expected: Vec<Vec<String>> = Verb::ALL
        .iter()
        .map(|verb| vec![code(verb.name()), may(Tier::Owner, *verb).to_owned(), may(Tier::Paired, *verb).to_owned()])
        .collect();
    assert_eq!(table("Callers"), expected);
}

#[test]
fn files_of_trust_are_as_written() {
    let mut narrowing = Narrowing::default();
    for path in ["topics/health", "sources/channel-slack"] {
        narrowing.narrow(Prefix::parse(path).expect("a path"));
    }
    assert_eq!(block("Audience", 0), narrowing.file());
    let quota = block("Unpaired people", 0);
    assert_eq!(Quota::parse(quota).expect("a quota").file(), quota);
}

#[test]
fn faults_of_sessions_are_all_listed() {
    let known: Vec<Vec<String>> = SessionFaultCode::ALL
        .iter()
        .map(|fault| vec![code(fault.as_str()), sentence(fault.what()), sentence(fault.remedy())])
        .collect();
    assert_eq!(table("Faults of sessions"), known);
}

#[test]
fn codes_of_writers_are_all_listed() {
    let known: Vec<Vec<String>> = WriterCode::ALL
        .iter()
        .map(|one| vec![code(one.as_str()), one.retry().as_str().to_owned(), sentence(one.what())])
        .collect();
    assert_eq!(table("Codes of writers"), known);
}

#[test]
fn how_runs_of_writers_fail_is_all_listed() {
    let known: Vec<Vec<String>> = Why::ALL.iter().map(|why| vec![code(why.as_str()), sentence(why.what())]).collect();
    assert_eq!(table("How runs fail"), known);
    let known: Vec<Vec<String>> =
        GuardReason::ALL.iter().map(|reason| vec![code(reason.as_str()), sentence(reason.what())]).collect();
    assert_eq!(table("What a model may not do"), known);
    let rows = table("Refusals");
    let rejected = rows.iter().find(|row| row[0] == "`COMMIT_REJECTED`").expect("a row");
    for reason in GuardReason::ALL {
        assert!(rejected[1].split(", ").any(|listed| listed == code(reason.as_str())), "{reason:?}");
    }
}

#[test]
fn tools_of_writers_are_all_listed() {
    let task = Task::write(Origin::Conversation, Evidence::default(), Ground::default(), &WriterLimits::default());
    let Step::Ask(request) = Writer::new(task, WriterLimits::default(), Default::default()).next() else {
        panic!("it asks first")
    };
    let listed: Vec<&str> = table("Writers").into_iter().map(|row| row[0]).collect();
    let known: Vec<String> = request.tools.iter().map(|tool| code(tool.name)).collect();
    assert_eq!(listed, known);
}

#[test]
fn files_of_turns_are_as_written() {
    // Both spellings of a node say the same.
    let nodes: Vec<_> = block("Turns", 0)
        .lines()
        .map(|line| {
            let mut reader = SessionReader::new("openprogram", "s", &Zone::utc(), &Limits::default());
            reader.lines(format!("{line}\n{{\"id\":\"u1\",\"role\":\"user\",\"content\":\"x\"}}").as_bytes());
            let session = reader.finish(&Heads::default());
            assert_eq!(session.faults(), []);
            session.node("a1").expect("the node").turn.clone()
        })
        .collect();
    assert_eq!(nodes.len(), 2);
    assert!(nodes[0].is_ok() && nodes[0] == nodes[1]);
    let workspace = WorkspaceId::parse("w-0a1b2c3d").expect("an id");
    assert_eq!(block("Marks", 0), mark_line(["u1", "a1"], workspace, true));
    let status = WriterStatus {
        last_outcome: Some(LastOutcome::Failure),
        last_success_at: Some("2026-05-04T05:05:05+00:00".into()),
        last_failure: Some(LastFailure {
            at: "2026-05-05T05:05:05+00:00".into(),
            failure: WriterFailure::of_model(ModelFailure::Timeout, true),
        }),
    };
    assert_eq!(block("Codes of writers", 0), status.file());
}

#[test]
fn links_lead_to_headings() {
    let name = |heading: &str| heading.trim_matches(['#', ' ']).to_lowercase().replace(' ', "-");
    let headings: BTreeSet<String> = DOCUMENT.lines().filter(|line| line.starts_with('#')).map(name).collect();
    let links: Vec<&str> =
        DOCUMENT.split("](#").skip(1).map(|rest| rest.split(')').next().unwrap_or_default()).collect();
    assert!(links.len() > 20, "{links:?}");
    assert_eq!(links.iter().filter(|link| !headings.contains(**link)).collect::<Vec<_>>(), [&""; 0]);
}
