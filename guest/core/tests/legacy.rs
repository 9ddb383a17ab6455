//! Archives of the older form: what is read is what a simple reader makes of FORMAT.md, however the file is cut, broken or
//! forged; what is written is read back and makes nothing else.

use proptest::prelude::*;
use recollex_core::digest::Digest;
use recollex_core::ids::{REFERENCES_MAX, SourceId, TurnRef, anchor_of, references_in};
use recollex_core::source::{
    BatchError, EntryKind, Event, FindingCode, Given, Health, LegacyEnd, LegacyItem, LegacyKind, LegacyScanner, Limits,
    NewNumbered, NumberedBatch, NumberedPlan, NumberedScan, Outcome, Record, Trust, Verifier,
};
use std::collections::{BTreeMap, BTreeSet};

const MESSAGES: &str = "sources/openprogram/sess-1.md";
const TURNS: &str = "sources/D1.md";
const BOTH: &str = "sources/x/D1.md";
const NEITHER: &str = "sources/notes.md";

fn anchor(id: &str) -> String {
    anchor_of(&Digest::of(id.as_bytes()))
}

/// The two lines of a header.
fn header(id: &str) -> String {
    format!("<a id=\"{}\"></a>\n<!-- source-id:{id} -->\n", anchor(id))
}

/// All that was handed on, owned, to be compared.
#[derive(Clone, Debug, PartialEq)]
#[allow(clippy::large_enum_variant, reason = "a few of each, in tests")]
enum Seen {
    Found {
        kind: LegacyKind,
        id: String,
        anchor: String,
        place: [u64; 4],
        time: String,
        label: String,
        hint: Option<(String, String, String)>,
        headings: Vec<String>,
        references: Vec<TurnRef>,
        repeated: bool,
        inside: bool,
        text: String,
    },
    Wrong(&'static str, u64, Option<String>),
}

impl Seen {
    /// Id and text of a record.
    fn record(&self) -> Option<(&str, &str)> {
        match self {
            Self::Found { kind: LegacyKind::Message | LegacyKind::Numbered, id, text, repeated: false, .. } => {
                Some((id, text))
            }
            _ => None,
        }
    }
}

fn seen(item: LegacyItem<'_>) -> Seen {
    match item {
        LegacyItem::Found(found) => Seen::Found {
            kind: found.kind,
            id: found.id.to_owned(),
            anchor: found.anchor.to_owned(),
            place: [found.line, found.lines, found.offset, found.length],
            time: found.time.to_owned(),
            label: found.label.to_owned(),
            hint: found.hint.map(|hint| {
                assert!(!hint.trusted, "a hint is never trusted");
                (hint.id.clone(), hint.display.clone(), hint.label.clone())
            }),
            headings: found.headings.to_vec(),
            references: found.references(),
            repeated: found.repeated,
            inside: found.inside,
            text: found.text.to_owned(),
        },
        LegacyItem::Wrong(fault, id) => Seen::Wrong(fault.code.as_str(), fault.line, id.map(str::to_owned)),
    }
}

fn scan_with(path: &str, limits: &Limits, keep: usize, pieces: &[&[u8]]) -> (Vec<Seen>, LegacyEnd) {
    let mut all = Vec::new();
    let mut scanner = LegacyScanner::new(path, limits).keep_records(keep);
    for piece in pieces {
        scanner.push_bytes(piece, &mut |item| all.push(seen(item)));
    }
    let end = scanner.finish(&mut |item| all.push(seen(item)));
    assert_eq!(end.records, all.iter().filter_map(Seen::record).count() as u64);
    (all, end)
}

fn scan(path: &str, text: &str) -> (Vec<Seen>, LegacyEnd) {
    scan_with(path, &Limits::default(), usize::MAX, &[text.as_bytes()])
}

fn records(path: &str, text: &str) -> Vec<(String, String)> {
    let (all, _) = scan(path, text);
    all.iter().filter_map(Seen::record).map(|(id, text)| (id.to_owned(), text.to_owned())).collect()
}

fn faults(path: &str, text: &str) -> Vec<(&'static str, u64)> {
    let wrong = |seen: Seen| match seen {
        Seen::Wrong(code, line, _) => Some((code, line)),
        Seen::Found { .. } => None,
    };
    scan(path, text).0.into_iter().filter_map(wrong).collect()
}

// --- A simple reader: all lines at hand, looking ahead as far as it likes.

mod model {
    use super::*;

    fn space(c: char) -> bool {
        c.is_whitespace() || ('\u{1c}'..='\u{1f}').contains(&c)
    }

    pub struct Model<'t> {
        path: &'t str,
        lines: Vec<&'t str>,
        offsets: Vec<u64>,
        headings: Vec<String>,
        ids: BTreeSet<String>,
        pub out: Vec<Seen>,
        pub loose: Vec<u64>,
    }

    impl<'t> Model<'t> {
        pub fn read(path: &'t str, text: &'t str) -> Self {
            let lines: Vec<&str> = text.split('\n').collect();
            let offsets = lines.iter().scan(0, |at, line| {
                let here = *at;
                *at += line.len() as u64 + 1;
                Some(here)
            });
            let mut model = Self {
                path,
                offsets: offsets.collect(),
                lines,
                headings: Vec::new(),
                ids: BTreeSet::new(),
                out: Vec::new(),
                loose: Vec::new(),
            };
            let mut at = 0;
            while at < model.lines.len() {
                at = model.step(at);
            }
            model
        }

        fn number(&self) -> Option<&str> {
            self.path.rsplit('/').next()?.strip_prefix('D')?.strip_suffix(".md")
        }

        fn anchor(&self, at: usize) -> Option<&'t str> {
            let line = self.lines.get(at)?.trim_matches(space);
            line.strip_prefix("<a id=\"")?
                .strip_suffix("\"></a>")
                .filter(|name| !name.is_empty() && name.len() <= 64 && !name.contains('"'))
        }

        fn comment(&self, at: usize, word: &str) -> Option<&'t str> {
            let line = self.lines.get(at)?.trim_matches(space).strip_prefix("<!--")?.strip_suffix("-->")?;
            let value = line.trim_start_matches(space).strip_prefix(&format!("{word}:"))?.trim_end_matches(space);
            (!value.contains('>')).then_some(value)
        }

        /// The turn whose anchor stands here.
        fn turn(&self, at: usize) -> Option<TurnRef> {
            let id = TurnRef::of_anchor(self.anchor(at)?)?;
            (self.number()? == id.conversation()).then_some(id)
        }

        /// The id of the header that begins here.
        fn header(&self, at: usize) -> Option<&'t str> {
            let name = self.anchor(at)?;
            let text = self.comment(at + 1, "source-id")?;
            let id = SourceId::parse(text).ok()?;
            let shown = text.chars().all(recollex_core::text::is_printable_reading);
            (id.legacy_path() == self.path && id.anchor() == name && shown).then_some(text)
        }

        /// Time, label and text of a record's first line.
        fn first(&self, at: usize) -> Option<(&'t str, &'t str, &'t str)> {
            let (time, rest) = self.lines.get(at)?.strip_prefix('[')?.split_once(']')?;
            let behind = rest.trim_start_matches(space);
            if behind.len() == rest.len() {
                return None;
            }
            let skip = behind.chars().next()?.len_utf8();
            if let Some(end) = behind[skip..].find(": ") {
                return Some((time, &behind[..skip + end], &behind[skip + end + 2..]));
            }
            // White space is a label only where there is no other and some is left in front of it.
            let text = behind.strip_prefix(": ")?;
            let gap = &rest[..rest.len() - behind.len()];
            let label = gap.chars().next_back()?.len_utf8();
            (gap.len() > label).then(|| (time, &gap[gap.len() - label..], text))
        }

        fn wrong(&mut self, code: &'static str, at: usize, id: Option<&str>) {
            self.out.push(Seen::Wrong(code, at as u64 + 1, id.map(str::to_owned)));
        }

        fn markup(line: &str) -> bool {
            let line = line.trim_start_matches(space);
            line.starts_with("<a ") || line.starts_with("<!--")
        }

        fn heading(line: &str) -> Option<(usize, &str)> {
            let level = line.chars().take_while(|c| *c == '#').count();
            let text = &line[level..];
            let fits = (1..=6).contains(&level) && text.starts_with(space) && !text.trim_matches(space).is_empty();
            fits.then(|| (level, text.trim_matches(space)))
        }

        /// A line that is no part of a message, for what it says by itself.
        fn line(&mut self, at: usize, inside: bool) {
            let line = self.lines[at];
            if line.trim_matches(space).is_empty() {
            } else if let Some((level, text)) = Self::heading(line) {
                self.headings.truncate(level - 1);
                self.headings.push(text.to_owned());
            } else if Self::markup(line) {
            } else if let references @ [_, ..] = &references_in(line)[..] {
                self.out.push(Seen::Found {
                    kind: LegacyKind::Mention,
                    id: String::new(),
                    anchor: String::new(),
                    place: [at as u64 + 1, 1, self.offsets[at], line.len() as u64],
                    time: String::new(),
                    label: String::new(),
                    hint: None,
                    headings: self.headings.clone(),
                    references: references.to_vec(),
                    repeated: false,
                    inside,
                    text: line.to_owned(),
                });
            } else if !inside {
                self.loose.push(at as u64 + 1);
            }
        }

        /// One thing from line `at` on; where the next begins.
        fn step(&mut self, at: usize) -> usize {
            if let Some(id) = self.turn(at) {
                return self.read_turn(at, id);
            }
            if let Some(id) = self.header(at) {
                return self.read_message(at, id);
            }
            let name = self.anchor(at);
            if name.is_some_and(|name| TurnRef::of_anchor(name).is_some()) {
                self.wrong("legacy-bad-header", at, None);
                return at + 1;
            }
            if name.is_some_and(|name| name.starts_with("source-")) {
                let beside = self.comment(at + 1, "source-id");
                self.wrong("legacy-bad-header", at, beside);
                return at + 1 + usize::from(beside.is_some());
            }
            if self.comment(at, "source-id").is_some() {
                self.wrong("legacy-bad-header", at, None);
            }
            self.line(at, false);
            at + 1
        }

        fn bare(&mut self, at: usize, id: &str) {
            self.out.push(Seen::Found {
                kind: LegacyKind::Bare,
                id: id.to_owned(),
                anchor: self.anchor(at).expect("it was there").to_owned(),
                place: [at as u64 + 1, 0, self.offsets[at], 0],
                time: String::new(),
                label: String::new(),
                hint: None,
                headings: self.headings.clone(),
                references: Vec::new(),
                repeated: false,
                inside: false,
                text: String::new(),
            });
            self.wrong("legacy-bad-record", at, Some(id));
        }

        #[allow(clippy::too_many_arguments, reason = "a record's parts, once")]
        fn record(
            &mut self,
            kind: LegacyKind,
            id: &str,
            anchor_at: usize,
            lines: std::ops::Range<usize>,
            hint: Option<(String, String, String)>,
            headings: Vec<String>,
            repeated: bool,
        ) {
            let (time, label, _) = self.first(lines.start).expect("it was there");
            let text = self.lines[lines.clone()].join("\n");
            self.out.push(Seen::Found {
                kind,
                id: id.to_owned(),
                anchor: self.anchor(anchor_at).expect("it was there").to_owned(),
                place: [lines.start as u64 + 1, lines.len() as u64, self.offsets[lines.start], text.len() as u64],
                time: time.to_owned(),
                label: label.to_owned(),
                hint,
                headings,
                references: Vec::new(),
                repeated,
                inside: false,
                text,
            });
        }

        fn is_repeated(&mut self, id: &str, anchor_at: usize) -> bool {
            let repeated = !self.ids.insert(id.to_owned());
            if repeated {
                self.wrong("legacy-duplicate-id", anchor_at, Some(id));
            }
            repeated
        }

        /// Without the empty lines at the end.
        fn solid(&self, lines: std::ops::Range<usize>) -> std::ops::Range<usize> {
            let mut end = lines.end;
            while end > lines.start && self.lines[end - 1].trim_matches(space).is_empty() {
                end -= 1;
            }
            lines.start..end
        }

        fn read_message(&mut self, at: usize, id: &str) -> usize {
            let mut next = at + 2;
            next += usize::from(self.comment(next, "speaker-id").is_some());
            let mut count = None;
            if let Some(digits) = self.comment(next, "record-lines") {
                let good = (1..=9).contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_digit());
                count = if good { digits.parse().ok().filter(|count| *count > 0_usize) } else { None };
                next += 1;
                if count.is_none() {
                    self.bare(at, id);
                    return next;
                }
            }
            let Some((_, label, text)) = self.first(next) else {
                self.bare(at, id);
                return next;
            };
            let is_user = recollex_core::text::identity_part(label).replace('ſ', "s").eq_ignore_ascii_case("user");
            let hint = if count.is_none() && is_user { hint(text) } else { None };
            let repeated = self.is_repeated(id, at);
            let end = next + count.unwrap_or(1);
            let is_cut = end > self.lines.len();
            let lines = if is_cut { self.solid(next..self.lines.len()) } else { next..end };
            self.record(LegacyKind::Message, id, at, lines, hint, self.headings.clone(), repeated);
            if is_cut {
                self.wrong("legacy-cut-record", at, Some(id));
            }
            end
        }

        fn read_turn(&mut self, at: usize, id: TurnRef) -> usize {
            let name = id.to_string();
            let start = at + 1;
            if self.first(start).is_none() {
                self.bare(at, &name);
                return start;
            }
            let repeated = self.is_repeated(&name, at);
            let headings = self.headings.clone();
            let mut end = start;
            let is_cut = loop {
                self.line(end, true);
                let line = self.lines[end];
                end += 1;
                let from = line.ceil_char_boundary(line.len().saturating_sub(128));
                if line[from..].trim_end_matches(space).ends_with(&format!("[{id}]")) {
                    break false;
                }
                if end == self.lines.len() || self.turn(end).is_some() || self.header(end).is_some() {
                    break true;
                }
            };
            let lines = if is_cut { self.solid(start..end) } else { start..end };
            self.record(LegacyKind::Numbered, &name, at, lines, None, headings, repeated);
            if is_cut {
                self.wrong("legacy-cut-record", at, Some(&name));
            }
            end
        }
    }

    fn hint(text: &str) -> Option<(String, String, String)> {
        let (name, _) = text.strip_prefix('[')?.split_once(']')?;
        let label = recollex_core::text::identity_part(name);
        if name.contains(['\r', '\n']) || label.is_empty() {
            return None;
        }
        if let Some(open) = label.rfind(" (").filter(|at| *at > 0)
            && let Some(id) = label[open + 2..].strip_suffix(')')
            && !id.contains(['(', ')'])
        {
            return Some((id.to_owned(), label[..open].to_owned(), label));
        }
        Some((String::new(), label.clone(), label))
    }
}

/// Lines as such files have them, and as they could be forged.
fn line() -> impl Strategy<Value = String> {
    let ids = [
        "openprogram/sess-1/m1",
        "openprogram/sess-1/m2",
        "openprogram/other/m1",
        "x/D1/a",
        "openprogram/sess-1/\u{202e}m",
    ];
    let anchors = prop::sample::select(
        ids.iter()
            .map(|id| anchor(id))
            .chain(["d1-1", "d1-2", "d1-01", "d2-1", "source-0", "top"].map(str::to_owned))
            .map(|name| format!("<a id=\"{name}\"></a>"))
            .collect::<Vec<_>>(),
    );
    let comments = prop::sample::select(ids.map(|id| format!("<!-- source-id:{id} -->")).to_vec());
    let fixed = prop::sample::select(
        [
            "",
            "",
            " ",
            "\r",
            "# one",
            "## two",
            "###### six ##",
            "#none",
            "[2026-01-02] user: [Ada (7391)] hello",
            "[2026-01-02] assistant: see D2:1-3",
            "[] user: x [D1:1]",
            "[] B: y",
            "more [D1:1]",
            "more [D1:2]\r",
            "[D1:2] not at the end",
            "D1:5 mention",
            "plain text",
            "<!-- record-lines:2 -->",
            "<!-- record-lines:0 -->",
            "<!-- record-lines:9 -->",
            "<!-- record-lines:１ -->",
            "<!-- speaker-id:u1 -->",
            "<!-- speaker-id: -->",
            "<!-- source-meta:x -->",
            "<a name='x'>",
            "<!-- source-id: -->",
            "[t]  : x",
            "[t] uſer: [Bo] x",
            "[t]: x",
        ]
        .map(str::to_owned)
        .to_vec(),
    );
    let whole = prop_oneof![4 => anchors, 4 => comments, 8 => fixed, 1 => "[ -~]{0,80}", 1 => any::<String>()];
    (whole, prop_oneof![8 => Just(("", "")), 1 => Just(("  ", "\r")), 1 => Just(("\u{3000}", " \t"))])
        .prop_map(|(line, (before, behind))| format!("{before}{line}{behind}"))
}

/// Whole headers and turns among such lines, so that records come about often.
fn page() -> impl Strategy<Value = String> {
    let block = prop_oneof![
        3 => line(),
        2 => prop::sample::select(vec!["openprogram/sess-1/m1", "openprogram/sess-1/m3", "x/D1/a"])
            .prop_map(|id| header(id).trim_end().to_owned()),
        2 => prop::sample::select(vec![1, 2, 3]).prop_map(|turn| format!("<a id=\"d1-{turn}\"></a>\n[] A: x [D1:{turn}]")),
        1 => prop::sample::select(vec![1, 2]).prop_map(|turn| format!("<a id=\"d1-{turn}\"></a>\n[] A: x")),
    ];
    prop::collection::vec(block, 0..14).prop_map(|lines| lines.join("\n"))
}

fn path() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec![MESSAGES, TURNS, BOTH, NEITHER])
}

/// Cuts `bytes` at places that `cuts` picks.
fn cut<'a>(bytes: &'a [u8], cuts: &[prop::sample::Index]) -> Vec<&'a [u8]> {
    let mut at: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
    at.extend([0, bytes.len()]);
    at.sort_unstable();
    at.windows(2).map(|pair| &bytes[pair[0]..pair[1]]).collect()
}

fn cuts() -> impl Strategy<Value = Vec<prop::sample::Index>> {
    prop::collection::vec(any::<prop::sample::Index>(), 0..12)
}

// --- Writing.

type Files = BTreeMap<String, Vec<u8>>;

fn turn(reference: &str, text: &str) -> NewNumbered {
    NewNumbered { reference: reference.into(), date: "2026-01-02".into(), label: "Ada".into(), text: text.into() }
}

fn plan(files: &Files, batch: &NumberedBatch) -> Result<NumberedPlan, Vec<&'static str>> {
    let look = |path: &str| {
        let mut scan = NumberedScan::new(batch, path, &Limits::default());
        files.get(path)?.chunks(5).for_each(|piece| scan.push_bytes(piece));
        Some((path.to_owned(), scan.finish()))
    };
    let existing = batch.paths().into_iter().filter_map(look).collect();
    let reasons = |problems: Vec<recollex_core::source::Problem>| problems.into_iter().map(|problem| problem.reason);
    let mut comparison = batch.compare(existing).map_err(|problems| reasons(problems).collect::<Vec<_>>())?;
    while let Some(range) = comparison.wanted().cloned() {
        let file = &files[&range.path];
        // Shorter than asked for, so that it has to ask again.
        let piece = (range.length as usize).div_ceil(2);
        comparison.supply(&file[range.offset as usize..range.offset as usize + piece]);
    }
    Ok(comparison.plan().expect("everything was supplied"))
}

fn write(files: &mut Files, turns: Vec<NewNumbered>) -> Result<Vec<Outcome>, Vec<&'static str>> {
    let batch = NumberedBatch::check(turns, &Limits::default()).map_err(|error| match error {
        BatchError::Refused(problems) => problems.into_iter().map(|problem| problem.reason).collect::<Vec<_>>(),
        BatchError::Limit(limit) => vec![limit.name],
    })?;
    let plan = plan(files, &batch)?;
    for change in plan.changes {
        let file = files.entry(change.path).or_default();
        assert_eq!(file.len() as u64, change.length);
        file.extend_from_slice(change.text.as_bytes());
    }
    Ok(plan.turns.into_iter().map(|turn| turn.outcome).collect())
}

/// Text as people and attackers write it.
fn body() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => prop::collection::vec(line(), 0..5).prop_map(|lines| lines.join("\n")),
        1 => any::<String>(),
        1 => "[ -~]{0,40}",
        1 => page(),
    ]
}

fn new_turns() -> impl Strategy<Value = Vec<NewNumbered>> {
    let label = prop_oneof![3 => "[A-Za-z]{1,8}", 1 => "[A-Z\\[\\]:()<>\n#]{1,8}", 1 => any::<String>()];
    let date = prop_oneof![3 => Just("2026-01-02".to_owned()), 1 => Just(String::new()), 1 => "[0-9T: -]{0,12}"];
    let one = (1..3_u32, body(), label, date);
    prop::collection::vec(one, 0..6).prop_map(|turns| {
        let number = |(turn, (conversation, text, label, date)): (usize, (u32, String, String, String))| NewNumbered {
            reference: format!("D{conversation}:{turn}"),
            date,
            label,
            text,
        };
        turns.into_iter().enumerate().map(number).collect()
    })
}

/// The turns of these that can be written.
fn writable(turns: Vec<NewNumbered>) -> Vec<NewNumbered> {
    turns.into_iter().filter(|turn| NumberedBatch::check(vec![turn.clone()], &Limits::default()).is_ok()).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 512, ..ProptestConfig::default() })]

    /// The scanner finds what the simple reader finds, in the same order.
    #[test]
    fn as_the_model_reads(path in path(), page in page()) {
        let (all, end) = scan(path, &page);
        let model = model::Model::read(path, &page);
        prop_assert_eq!(all, model.out);
        prop_assert_eq!(end.loose_lines, model.loose.len() as u64);
        prop_assert_eq!(end.first_loose.map(|fault| fault.line), model.loose.first().copied());
        prop_assert_eq!(end.bytes, page.len() as u64);
        prop_assert_eq!(end.invalid_utf8, None);
    }

    /// Where the input is cut makes no difference, whatever is kept and whatever lines are too long.
    #[test]
    fn pieces_do_not_matter(
        path in path(),
        page in page(),
        hurt in prop::option::of((any::<prop::sample::Index>(), any::<u8>())),
        cuts in cuts(),
        header_bytes in prop_oneof![Just(1_usize << 20), 1..100_usize],
        keep in prop_oneof![Just(usize::MAX), 0..60_usize],
    ) {
        let mut file = page.into_bytes();
        if let Some((at, byte)) = hurt {
            let at = at.index(file.len() + 1);
            file.insert(at, byte);
        }
        let limits = Limits { header_bytes, ..Limits::default() };
        let whole = scan_with(path, &limits, keep, &[&file]);
        prop_assert_eq!(&scan_with(path, &limits, keep, &cut(&file, &cuts)), &whole);
        let single: Vec<&[u8]> = file.chunks(1).collect();
        prop_assert_eq!(&scan_with(path, &limits, keep, &single), &whole);
        if let Ok(text) = std::str::from_utf8(&file) {
            let mut all = Vec::new();
            let mut scanner = LegacyScanner::new(path, &limits).keep_records(keep);
            let mut at = 0;
            for piece in cut(&file, &cuts) {
                let end = text.ceil_char_boundary(at + piece.len());
                scanner.push_text(&text[at.min(end)..end], &mut |item| all.push(seen(item)));
                at = end;
            }
            let end = scanner.finish(&mut |item| all.push(seen(item)));
            prop_assert_eq!((all, end), whole);
        }
    }

    /// What is kept of a text is its beginning, and everything else is as if all of it were kept.
    #[test]
    fn keeping_less_changes_nothing_else(path in path(), page in page(), keep in 0..80_usize) {
        let (less, _) = scan_with(path, &Limits::default(), keep, &[page.as_bytes()]);
        let (all, _) = scan(path, &page);
        prop_assert_eq!(less.len(), all.len());
        for (less, all) in less.into_iter().zip(all) {
            match (less, all) {
                (Seen::Found { text: part, kind, .. }, Seen::Found { text, .. }) if kind != LegacyKind::Mention => {
                    prop_assert_eq!(&part, &text[..text.floor_char_boundary(keep)]);
                }
                (less, all) => prop_assert_eq!(less, all),
            }
        }
    }

    /// Offsets and lengths name the text in the file.
    #[test]
    fn places_are_right(path in path(), page in page()) {
        for item in scan(path, &page).0 {
            let Seen::Found { place: [line, lines, offset, length], text, kind, .. } = item else { continue };
            let (from, to) = (offset as usize, (offset + length) as usize);
            prop_assert_eq!(&page[from..to], &text);
            prop_assert_eq!(page[..from].matches('\n').count() as u64 + 1, line);
            let counted = text.matches('\n').count() as u64 + 1;
            prop_assert_eq!(lines, if kind == LegacyKind::Bare { 0 } else { counted });
        }
    }

    /// A file that is cut anywhere names no more, and shows nothing that is not there.
    #[test]
    fn every_prefix_is_less(path in path(), page in page()) {
        let (all, _) = scan(path, &page);
        let whole: BTreeMap<&str, &str> = all.iter().filter_map(Seen::record).collect();
        for length in (0..page.len()).filter(|length| page.is_char_boundary(*length)) {
            let page = &page[..length];
            let (found, _) = scan(path, page);
            let is_cut = |id: &str| found.iter().any(|seen| {
                matches!(seen, Seen::Wrong("legacy-cut-record", _, Some(subject)) if subject == id)
            });
            for (id, text) in found.iter().filter_map(Seen::record) {
                let all = whole.get(id);
                prop_assert!(all.is_some(), "{} bytes: {:?} is not in the file", length, id);
                // What is told to be cut may go on with what became of a line that is not whole.
                let same = is_cut(id) || all.is_some_and(|all| all.starts_with(text));
                prop_assert!(same, "{} bytes: {:?}", length, id);
            }
        }
    }

    /// What is written is read back, turn by turn, byte by byte, and nothing else is.
    #[test]
    fn written_is_read(turns in new_turns()) {
        let turns = writable(turns);
        let mut files = Files::new();
        let outcomes = write(&mut files, turns.clone()).expect("good turns");
        prop_assert!(outcomes.iter().all(|outcome| *outcome == Outcome::Archived));
        let mut read = BTreeMap::new();
        for (path, file) in &files {
            let text = std::str::from_utf8(file).expect("text");
            prop_assert_eq!(faults(path, text), []);
            let (all, end) = scan(path, text);
            prop_assert_eq!((end.loose_lines, end.closing_lfs), (0, 1));
            for item in all {
                match item {
                    Seen::Found { kind: LegacyKind::Numbered, id, text, headings, hint: None, .. } => {
                        prop_assert_eq!(headings, [path["sources/".len()..].trim_end_matches(".md")]);
                        prop_assert!(read.insert(id, text).is_none());
                    }
                    Seen::Found { kind: LegacyKind::Mention, inside: true, .. } => {}
                    other => prop_assert!(false, "{:?}", other),
                }
            }
        }
        prop_assert_eq!(read.len(), turns.len());
        for turn in &turns {
            let text = &read[&turn.reference];
            let head = format!("[{}] ", turn.date);
            prop_assert!(text.starts_with(&head), "{:?}", text);
            let said = format!(": {} [{}]", turn.text, turn.reference);
            prop_assert!(text.ends_with(&said), "{:?} {:?}", text, said);
        }
    }

    /// Archiving in several goes gives the same bytes as archiving at once, and doing it again changes nothing.
    #[test]
    fn appending_is_writing(turns in new_turns(), at in any::<prop::sample::Index>()) {
        let turns = writable(turns);
        let mut at_once = Files::new();
        write(&mut at_once, turns.clone()).expect("good turns");
        let (early, late) = turns.split_at(at.index(turns.len() + 1));
        let mut in_two = Files::new();
        write(&mut in_two, early.to_vec()).expect("good turns");
        write(&mut in_two, late.to_vec()).expect("good turns");
        prop_assert_eq!(&in_two, &at_once);
        let outcomes = write(&mut in_two, turns).expect("good turns");
        prop_assert!(outcomes.iter().all(|outcome| *outcome == Outcome::Already));
        prop_assert_eq!(&in_two, &at_once);
    }

    /// Whatever stands in a file already, adding to it adds exactly the new turns and changes nothing of what was found.
    #[test]
    fn appending_to_anything(page in page(), text in body()) {
        let mut files = Files::from([(TURNS.to_owned(), page.clone().into_bytes())]);
        let before = records(TURNS, &page);
        let outcome = write(&mut files, vec![turn("D1:1", &text), turn("D1:77", "new")]);
        let after = records(TURNS, std::str::from_utf8(&files[TURNS]).expect("text"));
        match outcome {
            Err(_) => prop_assert_eq!(&after, &before),
            Ok(outcomes) => {
                prop_assert_eq!(&after[..before.len()], &before[..]);
                let new: Vec<&str> = after[before.len()..].iter().map(|(id, _)| id.as_str()).collect();
                let known = before.iter().any(|(id, _)| id == "D1:1");
                prop_assert_eq!(&new[..], if known { &["D1:77"][..] } else { &["D1:1", "D1:77"][..] });
                prop_assert_eq!(outcomes[0] == Outcome::Archived, !known);
                prop_assert_eq!(outcomes[1], Outcome::Archived);
            }
        }
    }

    /// Nothing makes the scanner panic, and figures always add up.
    #[test]
    fn any_bytes(path in path(), bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let (_, end) = scan_with(path, &Limits::default(), 9, &[&bytes]);
        prop_assert_eq!(end.bytes, bytes.len() as u64);
        let open_line = bytes.last().is_some_and(|last| *last != b'\n');
        let lines = bytes.iter().filter(|byte| **byte == b'\n').count() + usize::from(open_line);
        prop_assert_eq!(end.lines, lines as u64);
        let invalid = std::str::from_utf8(&bytes).err().map(|error| error.valid_up_to() as u64);
        prop_assert_eq!(end.invalid_utf8.map(|fault| fault.offset), invalid);
    }
}

// --- Cases worth a name.

fn message(id: &str, record: &str) -> String {
    format!("{}{record}\n\n", header(id))
}

/// What a forger can write into a text, a label, a comment: it changes no identity, no trust and no count.
#[test]
fn forged_headers_name_nothing() {
    let good = message("openprogram/sess-1/m1", "[] user: hello");
    let names = |page: &str| records(MESSAGES, page).into_iter().map(|(id, _)| id).collect::<Vec<_>>();
    assert_eq!(names(&good), ["openprogram/sess-1/m1"]);
    let m2 = anchor("openprogram/sess-1/m2");
    let forged = [
        // Another file's, in this one.
        message("openprogram/other/m2", "[] user: forged"),
        // Not the anchor's.
        format!("<a id=\"{m2}\"></a>\n<!-- source-id:openprogram/sess-1/m3 -->\n[] user: forged\n"),
        // Not directly below it.
        format!("<a id=\"{m2}\"></a>\n\n<!-- source-id:openprogram/sess-1/m2 -->\n[] user: forged\n"),
        format!("<a id=\"{m2}\"></a>\u{2028}<!-- source-id:openprogram/sess-1/m2 -->\n[] user: forged\n"),
        // Not lines of their own.
        format!("> <a id=\"{m2}\"></a>\n> <!-- source-id:openprogram/sess-1/m2 -->\n> [] user: forged\n"),
        format!("<a id=\"{m2}\"></a> x\n<!-- source-id:openprogram/sess-1/m2 -->\n[] user: forged\n"),
        "x <!-- source-id:openprogram/sess-1/m2 --> y\n".to_owned(),
        // Homoglyphs, case, width, marks that turn the direction.
        message("оpenprogram/sess-1/m2", "[] user: forged"),
        message("OpenProgram/sess-1/m2", "[] user: forged"),
        message("openprogram/ｓess-1/m2", "[] user: forged"),
        message("openprogram/sess-1/\u{202e}2m", "[] user: forged"),
        message("openprogram/sess-1/m2\u{200f}", "[] user: forged"),
        message("openprogram/sess-1/m\u{0}2", "[] user: forged"),
        message("openprogram\u{200b}/sess-1/m2", "[] user: forged"),
        // Parts of other forms.
        "<a id=\"d1-1\"></a>\n[] user: forged [D1:1]\n".to_owned(),
        format!("<a id=\"{m2}\"></a>\n<!-- speaker-id:owner -->\n<!-- source-id:openprogram/sess-1/m2 -->\n[] u: x\n"),
    ];
    for forged in forged {
        let page = format!("{good}{forged}");
        assert_eq!(names(&page), ["openprogram/sess-1/m1"], "{forged}");
        let named = scan(MESSAGES, &page)
            .0
            .into_iter()
            .filter(|seen| matches!(seen, Seen::Found { kind: LegacyKind::Bare, .. }));
        assert_eq!(named.count(), 0, "{forged}");
    }
}

/// A file lies in one place: elsewhere its headers name nothing.
#[test]
fn a_file_that_was_moved() {
    let page = message("openprogram/sess-1/m1", "[] user: hello");
    for path in [
        "sources/openprogram/sess-2.md",
        "sources/sess-1.md",
        "sources/openprogram/x/sess-1.md",
        "sources/Openprogram/sess-1.md",
    ] {
        assert_eq!(records(path, &page), []);
        assert_eq!(faults(path, &page), [("legacy-bad-header", 1)]);
    }
    let turns = "<a id=\"d1-1\"></a>\n[] A: x [D1:1]\n";
    assert_eq!(records(BOTH, turns).len(), 1);
    assert_eq!(
        (records("sources/D2.md", turns), faults("sources/D2.md", turns)),
        (vec![], vec![("legacy-bad-header", 1)])
    );
}

#[test]
fn the_first_with_an_id_stays() {
    let page = message("openprogram/sess-1/m1", "[] user: first")
        + &message("openprogram/sess-1/m1", "[] user: [Bo (9)] again");
    assert_eq!(records(MESSAGES, &page), [("openprogram/sess-1/m1".to_owned(), "[] user: first".to_owned())]);
    assert_eq!(faults(MESSAGES, &page), [("legacy-duplicate-id", 5)]);
}

/// A speaker comment says nothing, and a counted message has no hint.
#[test]
fn nobody_speaks_in_older_archives() {
    let speaker = "<!-- speaker-id:owner -->\n";
    for (between, hinted) in [("", true), (speaker, true), ("<!-- record-lines:1 -->\n", false)] {
        let page = format!("{}{between}[] user: [Ada (7391)] x\n", header("openprogram/sess-1/m1"));
        let mut found = Vec::new();
        let mut scanner = LegacyScanner::new(MESSAGES, &Limits::default());
        let mut sink = |item: LegacyItem<'_>| {
            if let LegacyItem::Found(legacy) = item {
                found.push(Record::of_legacy(MESSAGES, legacy));
            }
        };
        scanner.push_text(&page, &mut sink);
        scanner.finish(&mut sink);
        let [record] = &found[..] else { panic!("one record") };
        let hint = record.speaker.as_ref().map(|hint| (hint.id.as_str(), hint.trusted));
        assert_eq!(hint, hinted.then_some(("7391", false)));
        assert_eq!((record.trust, record.kind.as_str(), record.tier), (Trust::Trusted, "unknown", None));
    }
}

#[test]
fn damage() {
    let head = header("openprogram/sess-1/m1");
    for (page, expected) in [
        (head.clone(), vec![("legacy-bad-record", 1)]),
        (format!("{head}no record\n"), vec![("legacy-bad-record", 1)]),
        (format!("{head}\n[] user: too late\n"), vec![("legacy-bad-record", 1)]),
        (format!("{head}<!-- record-lines:3 -->\n[] user: a\nb"), vec![("legacy-cut-record", 1)]),
        (format!("{head}<!-- record-lines:3 -->\n[] user: a\nb\n"), vec![]),
        (head.lines().next().unwrap_or_default().to_owned(), vec![("legacy-bad-header", 1)]),
        (format!("{head}{head}[] user: a\n"), vec![("legacy-bad-record", 1)]),
    ] {
        assert_eq!(faults(MESSAGES, &page), expected, "{page}");
    }
    for (page, expected) in [
        ("<a id=\"d1-1\"></a>\n", vec![("legacy-bad-record", 1)]),
        ("<a id=\"d1-1\"></a>\n\n[] A: x [D1:1]\n", vec![("legacy-bad-record", 1)]),
        ("<a id=\"d1-1\"></a>\n[] A: x\n\n<a id=\"d1-2\"></a>\n[] B: y [D1:2]\n", vec![("legacy-cut-record", 1)]),
        ("<a id=\"d1-1\"></a>\n[] A: x [D1:2]\n", vec![("legacy-cut-record", 1)]),
        (
            "<a id=\"d1-1\"></a>\n[] A: x [D1:1]\n<a id=\"d1-1\"></a>\n[] A: x [D1:1]\n",
            vec![("legacy-duplicate-id", 3)],
        ),
    ] {
        assert_eq!(faults(TURNS, page), expected, "{page}");
    }
}

/// What stands before bytes that are no text stays in use; the line they are in, and its record, does not.
#[test]
fn bytes_that_are_no_text() {
    let mut file = message("openprogram/sess-1/m1", "[] user: hello").into_bytes();
    file.extend_from_slice(header("openprogram/sess-1/m2").as_bytes());
    file.extend_from_slice(b"[] user: \xff\nmore\n");
    for piece in [1, 3, file.len()] {
        let pieces: Vec<&[u8]> = file.chunks(piece).collect();
        let (all, end) = scan_with(MESSAGES, &Limits::default(), usize::MAX, &pieces);
        assert_eq!(all.iter().filter_map(Seen::record).count(), 1);
        let invalid = end.invalid_utf8.expect("there is such a byte");
        assert_eq!(
            (invalid.code, invalid.line, invalid.excerpt.as_str()),
            (FindingCode::InvalidUtf8, 7, "[] user: \\xff")
        );
        assert_eq!(end.fault, Some(invalid));
    }
}

#[test]
fn long_lines_are_text() {
    let limits = Limits { header_bytes: 200, ..Limits::default() };
    let page = format!(
        "# {x}\n{}[] user: {x}\n<a id=\"{}\"></a>{space}\n<!-- source-id:openprogram/sess-1/m2 -->\n[] user: b\n{x} D1:1\nD1:2\n",
        header("openprogram/sess-1/m1"),
        anchor("openprogram/sess-1/m2"),
        x = "x".repeat(300),
        space = " ".repeat(300),
    );
    let (all, end) = scan_with(MESSAGES, &limits, usize::MAX, &[page.as_bytes()]);
    let found: Vec<_> = all
        .iter()
        .map(|seen| match seen {
            Seen::Found { kind, headings, text, .. } => (format!("{kind:?}"), headings.len(), text.len()),
            Seen::Wrong(code, ..) => ((*code).to_owned(), 0, 0),
        })
        .collect();
    let expected = [("Message", 0, 309), ("legacy-bad-header", 0, 0), ("Mention", 0, 4)];
    assert_eq!(found, expected.map(|(kind, headings, length)| (kind.to_owned(), headings, length)));
    // The heading, the anchor, the record behind it, the line with the mention.
    assert_eq!(end.loose_lines, 4);
    // A label that does not show within the limit is none.
    let page = format!("{}[] {}: a\n", header("openprogram/sess-1/m1"), "l".repeat(300));
    let (all, _) = scan_with(MESSAGES, &limits, usize::MAX, &[page.as_bytes()]);
    assert!(matches!(&all[..], [Seen::Found { kind: LegacyKind::Bare, .. }, Seen::Wrong("legacy-bad-record", ..)]));
    // A turn may be as long as it likes, and ends all the same.
    let page = format!("<a id=\"d1-1\"></a>\n[] A: {x}\n{x} [D1:1]\n", x = "你".repeat(300));
    let (all, end) = scan_with(TURNS, &limits, 7, &[page.as_bytes()]);
    assert!(matches!(&all[..], [Seen::Found { kind: LegacyKind::Numbered, .. }]), "{all:?}");
    assert_eq!((end.records, end.fault), (1, None));
}

#[test]
fn reading_is_linear() {
    let start = std::time::Instant::now();
    for unit in [
        "<a id=\"source-0\"></a>\n",
        "[D1:1-100] ",
        "D1:1-100\n",
        "# x\n",
        "<!-- source-id:x -->\n",
        "<!--",
        "[",
        "D1:",
        " ",
    ] {
        let page = unit.repeat(20_000);
        for path in [MESSAGES, TURNS] {
            scan_with(path, &Limits::default(), 0, &[page.as_bytes()]);
        }
    }
    let page = format!("<a id=\"d1-1\"></a>\n[] A: x\n{}", "<a id=\"source-0\"></a>\n".repeat(20_000));
    scan_with(TURNS, &Limits::default(), 0, &page.as_bytes().chunks(3).collect::<Vec<_>>());
    assert!(start.elapsed().as_secs() < 60, "{:?}", start.elapsed());
    assert_eq!(references_in(&"D1:1-100 ".repeat(1000)).len(), REFERENCES_MAX);
}

#[test]
fn the_verifier_counts_and_hands_on() {
    let page = message("openprogram/sess-1/m1", "[] user: hello")
        + "plain\n"
        + &message("openprogram/sess-1/m1", "[] user: x")
        + &header("openprogram/sess-1/m2");
    let mut found = Vec::new();
    let mut verifier = Verifier::new(Given::InWorkspace, &Limits::default()).keep_records(100);
    verifier.file(MESSAGES, EntryKind::File);
    verifier.push_text(&page, &mut |path, record| found.push((path.to_owned(), record.text().to_owned())));
    let outcome =
        verifier.end(&mut |path, record| found.push((path.to_owned(), record.text().to_owned()))).expect("a file");
    assert_eq!((outcome.legacy_records, outcome.clean), (1, false));
    assert_eq!(found.iter().map(|(_, text)| text.as_str()).collect::<Vec<_>>(), ["[] user: hello", "[] user: x", ""]);
    let summary = verifier.summary();
    assert_eq!((summary.counts.legacy_records, summary.counts.source_files), (1, 1));
    assert_eq!((summary.health, summary.ok), (Health::Degraded, false));
    let findings: Vec<_> =
        verifier.take_findings(9).into_iter().map(|finding| (finding.code, finding.line, finding.subject)).collect();
    let id = |id: &str| Some(id.to_owned());
    assert_eq!(
        findings,
        [
            ("legacy-duplicate-id", Some(6), id("openprogram/sess-1/m1")),
            ("legacy-bad-record", Some(10), id("openprogram/sess-1/m2")),
            ("legacy-loose-text", Some(5), None),
        ]
    );
}

#[test]
fn events_are_cut_from_the_lines() {
    let page = "# D1\n\n<a id=\"d1-1\"></a>\n[2026-01-01] Calvin: one [D1:1]\n";
    let mut events = Vec::new();
    let mut scanner = LegacyScanner::new(BOTH, &Limits::default()).keep_records(usize::MAX);
    let mut sink = |item: LegacyItem<'_>| {
        if let LegacyItem::Found(legacy) = item {
            events.extend(Event::of_legacy(BOTH, legacy));
        }
    };
    scanner.push_text(page, &mut sink);
    scanner.finish(&mut sink);
    let [event] = &events[..] else { panic!("one event: {events:?}") };
    // Of the row `legacy_parse/D_subdir`.
    assert_eq!(event.record.id, "lex_4dcb1d8e2ca7d656");
    assert_eq!((event.record.anchor.as_str(), event.date.as_deref()), ("lex_4dcb1d8e2ca7d656", Some("2026-01-01")));
    assert_eq!((&event.headings[..], &event.references[..]), (&["D1".to_owned()][..], &["D1:1".to_owned()][..]));
}

// --- Writing.

#[test]
fn a_batch_lists_every_fault() {
    let bad =
        NewNumbered { reference: "D01:1".into(), date: "[x".into(), label: "\u{200b}".into(), text: String::new() };
    let turns = vec![turn("D1:1", "fine"), bad, turn("D1:2", "a\n# b"), turn("x/y/z", "c")];
    let Err(BatchError::Refused(problems)) = NumberedBatch::check(turns, &Limits::default()) else { panic!("refused") };
    let found: Vec<_> = problems.iter().map(|problem| (problem.line, problem.reason)).collect();
    assert_eq!(
        found,
        [
            (Some(2), "malformed-reference"),
            (Some(2), "unsafe-timestamp"),
            (Some(2), "empty-label"),
            (Some(3), "forged-line"),
            (Some(4), "malformed-reference"),
        ]
    );
    assert!(problems.iter().all(|problem| problem.code == "INVALID_ARGUMENT"));
    let mut files = Files::new();
    assert_eq!(write(&mut files, vec![turn("D1:1", "fine"), turn("D2:1", "x\n<!-- y")]), Err(vec!["forged-line"]));
    assert!(files.is_empty(), "nothing of a bad batch is written");
}

#[test]
fn texts_that_look_like_structure() {
    for text in [
        "x\n<a id=\"d1-9\"></a>",
        "x\n \t<a id=\"d1-9\"></a>\n[] Bo: forged [D1:9]",
        "x\n\u{3000}<!-- source-id:a/b/c -->",
        "x\n## heading",
        "x [D1:2]\nmore",
        "x\ny [D1:2] \r\nmore",
        "[D1:2]\n",
    ] {
        assert_eq!(write(&mut Files::new(), vec![turn("D1:2", text)]), Err(vec!["forged-line"]), "{text:?}");
    }
    for text in [
        "<a id=\"d1-9\"></a>",
        "# x",
        "<!-- x",
        "",
        "\n",
        "x [D1:2]",
        "x\n[D1:2] y",
        "x [D1:3]\nmore",
        "x\n#y",
        "a\u{2028}# b",
        "a\r# b",
        "see <a id=\"d1-9\"></a>\nand D9:9",
    ] {
        let mut files = Files::new();
        assert_eq!(
            write(&mut files, vec![turn("D1:2", text), turn("D1:3", "next")]),
            Ok(vec![Outcome::Archived; 2]),
            "{text:?}"
        );
        let file = String::from_utf8(files.remove(TURNS).expect("a file")).expect("text");
        let found = records(TURNS, &file);
        assert_eq!(found.len(), 2, "{file}");
        assert_eq!(found[0], ("D1:2".to_owned(), format!("[2026-01-02] Ada: {text} [D1:2]")));
    }
}

/// A label cannot end early, begin a line or turn the direction of reading.
#[test]
fn labels_are_normalised() {
    for (label, shown) in [
        ("Ada: x", "Ada： x"),
        ("A\n<a id=\"d1-9\"></a>", "A <a id=\"d1-9\"></a>"),
        ("[x]", "(x)"),
        ("\u{202e}adA", "adA"),
    ] {
        let mut files = Files::new();
        write(&mut files, vec![NewNumbered { label: label.into(), ..turn("D1:1", "x") }]).expect("good");
        let file = String::from_utf8(files.remove(TURNS).expect("a file")).expect("text");
        assert_eq!(records(TURNS, &file), [("D1:1".to_owned(), format!("[2026-01-02] {shown}: x [D1:1]"))]);
    }
}

#[test]
fn known_turns_stay() {
    let mut files = Files::new();
    write(&mut files, vec![turn("D1:1", "one"), turn("D1:2", "two\nlines")]).expect("good");
    let before = files.clone();
    let outcomes =
        write(&mut files, vec![turn("D1:2", "two\nlines"), turn("D1:1", "other"), turn("D1:1", "one")]).expect("good");
    assert_eq!(files, before);
    let digest = |text: &str| Digest::of(format!("[2026-01-02] Ada: {text} [D1:1]").as_bytes());
    assert_eq!(
        outcomes,
        [Outcome::Already, Outcome::Differs { kept: digest("one"), offered: digest("other") }, Outcome::Already]
    );
    let outcomes =
        write(&mut Files::new(), vec![turn("D1:1", "one"), turn("D1:1", "one"), turn("D1:1", "two")]).expect("good");
    assert!(matches!(outcomes[..], [Outcome::Archived, Outcome::Already, Outcome::Differs { .. }]));
}

#[test]
fn files_that_nothing_is_added_to() {
    for (file, reason) in [
        (&b"# D1\n\n<a id=\"d1-1\"></a>\n"[..], "damaged-archive"),
        (b"# D1\n\n<a id=\"d1-1\"></a>\n[] A: x", "damaged-archive"),
        (b"# D1\n\n\xff\n", "invalid-utf8"),
    ] {
        let mut files = Files::from([(TURNS.to_owned(), file.to_vec())]);
        let outcome = write(&mut files, vec![turn("D2:1", "fine"), turn("D1:9", "x")]);
        assert_eq!(outcome, Err(vec![reason]));
        assert_eq!(files.len(), 1, "the other file is not written either");
    }
    // What is only odd is no obstacle, and line ends are completed.
    for (file, between) in [("# D1", "\n\n"), ("text\n", "\n"), ("text\n\n", ""), ("text\n\n\n", ""), ("", "# D1\n\n")]
    {
        let mut files = Files::from([(TURNS.to_owned(), file.as_bytes().to_vec())]);
        write(&mut files, vec![turn("D1:9", "x")]).expect("good");
        let expected = format!("{file}{between}<a id=\"d1-9\"></a>\n[2026-01-02] Ada: x [D1:9]\n");
        assert_eq!(String::from_utf8_lossy(&files[TURNS]), expected);
    }
}

#[test]
fn a_batch_has_a_limit() {
    let limits = Limits { batch_bytes: 1000, ..Limits::default() };
    assert!(NumberedBatch::check(vec![turn("D1:1", &"x".repeat(500))], &limits).is_ok());
    let Err(BatchError::Limit(limit)) = NumberedBatch::check(vec![turn("D1:1", &"x".repeat(1001))], &limits) else {
        panic!("too large")
    };
    assert_eq!((limit.name, limit.allowed), ("limits.batch-bytes", 1000));
}
