//! Topics: any text can be read, everything stands where it says, and all of it takes time in proportion to the text.

use proptest::prelude::*;
use recollex_core::ids::{BlockId, EvidenceTime, FootnoteLabel, SourceId, TopicPath};
use recollex_core::text::is_whitespace;
use recollex_core::topic::{Check, Ending, FaultCode, Groups, Item, Items, Locator, Sources, TopicRef, Tree};
use std::collections::BTreeSet;

const SAMPLE: &str = "\u{feff}# 计划\r\n\r\n## Spring launch\n\nThe launch moved[^e-1111111111] to the 7th, see [hall](../a%20b.md#^hall-1).[^e2][^e-3] ^aaaa1111 ^bbbb2222\n\n\
    <!-- note -->\n- a list\r- of 😀 things[^e2] ^cccc3333\r\n\r\nOlder.[^mem_first] And more.[^mem_second]\n\nUncited.\n\n```py\n[^f]: Time: 2026; Sources: [x](D1:1)\n^x\n```\n\n~~~\n~~~\n\
    [^e-1111111111]: Time: `2026-01-02`; Sources: [hello](../sources/p/_v2/t.md#source-1), [二](D1:2)\n[^e2]: undated · Sources: [x](p/t/m)\n\
    [^e-3]: Time: 2024-02-30; Sources: x\n[^mem_first]: Time: `2026`; Sources: [ ](D1:1)\n[^mem_second]: time: `2026`; sources: [x](D1:1)\n```\nopen";

struct Archive;

impl Sources for Archive {
    fn record_at(&self, path: &str, anchor: &str) -> Option<SourceId> {
        (path == "sources/p/_v2/t.md" && anchor == "source-1").then(|| SourceId::parse("p/t/m").ok())?
    }
}

fn path(text: &str) -> TopicPath {
    TopicPath::parse(text).expect(text)
}

fn check(text: &str) -> Check<'_> {
    Check::new(path("topics/a.md"), TopicRef::parse(text), &Archive)
}

/// Asks for everything there is to ask, and holds it to what must be so of any text.
fn exercise(text: &str) {
    let mut end = 0;
    for item in Items::new(text) {
        assert_eq!(item.span().start, end);
        assert!(item.span().end > end && text.get(item.span()).is_some());
        end = item.span().end;
    }
    assert_eq!(end, text.len(), "the items are the text");

    let check = check(text);
    let in_place = |shown: &str, span: std::ops::Range<usize>| assert_eq!(text.get(span), Some(shown));
    let mut locator = Locator::new(text);
    let mut faults: Vec<_> = check.faults().iter().collect();
    faults.sort_by_key(|fault| fault.span.start);
    for fault in faults {
        assert!(text.get(fault.span.clone()).is_some(), "{fault:?}");
        assert_eq!(locator.locate(fault.span.start), (fault.line, fault.column));
        assert!(!check.subject(fault).is_empty());
    }
    let topic = check.topic();
    for (number, paragraph) in topic.paragraphs().enumerate() {
        in_place(paragraph.text().as_str(), paragraph.text().span());
        assert!(topic.headings_of(number).len() <= 6);
        assert!(!paragraph.prose().contains("  "));
        paragraph.citations().for_each(|one| in_place(one.label().as_str(), one.label().span()));
    }
    for definition in topic.definitions().iter().chain(check.footnotes().iter().map(|one| one.definition())) {
        in_place(definition.label().as_str(), definition.label().span());
        in_place(definition.time().as_str(), definition.time().span());
        assert!(EvidenceTime::is_written(definition.time().as_str()));
        assert!(FootnoteLabel::is_label(definition.label().as_str()));
        definition.links().for_each(|link| in_place(link.target().as_str(), link.target().span()));
    }
    for block in check.claimed_blocks() {
        assert!(block.ids().iter().all(|id| BlockId::is_written(id.as_str())));
        block.ids().iter().for_each(|id| in_place(id.as_str(), id.span()));
        in_place(block.body().as_str(), block.body().span());
        for event in block.events() {
            assert!(event.number >= 1 && event.line >= 1 && !event.refs.is_empty() && !event.content.is_empty());
        }
        block.links().for_each(|link| in_place(link.whole().as_str(), link.whole().span()));
    }
    for block in check.blocks() {
        let lines = block.paragraph().lump().line()..block.paragraph().lump().line() + block.paragraph().lines();
        let other = |fault: &&recollex_core::topic::Fault| fault.code.is_strict() && lines.contains(&fault.line);
        assert_eq!(check.faults().iter().find(other), None, "a sound block has no fault");
        assert!(block.footnotes().count() > 0 && block.footnotes().all(|footnote| footnote.is_sound()));
        assert!(block.evidence().count() > 0);
        for unit in block.units(0) {
            assert!(!unit.content.contains('\r') && !unit.content.is_empty());
        }
    }
    if check.first_strict().is_none() {
        let sound: BTreeSet<_> = check.blocks().map(|block| block.number()).collect();
        assert_eq!(sound.len(), topic.paragraphs().count(), "without a fault every paragraph counts");
    }
}

#[test]
fn the_sample() {
    exercise(SAMPLE);
    let check = check(SAMPLE);
    let found: Vec<_> = check.faults().iter().map(|fault| (fault.line, fault.column, fault.code.as_str())).collect();
    assert_eq!(
        found,
        [
            (24, 15, "invalid-time"),
            (24, 36, "missing-source-link"),
            (25, 39, "missing-source-label"),
            (1, 1, "missing-block-id"),
            (11, 31, "undefined-footnote"),
            (13, 1, "missing-block-id"),
            (26, 1, "malformed-footnote"),
            (27, 1, "unclosed-fence"),
            (1, 1, "byte-order-mark"),
        ]
    );
    let sound: Vec<_> = check.blocks().map(|block| block.content()).collect();
    assert_eq!(sound, ["- a list\n- of 😀 things"]);
    assert!(check.footnote("f").is_none(), "what stands in a fence counts only if it is cited");
}

#[test]
fn every_prefix_and_every_changed_byte() {
    for end in (0..=SAMPLE.len()).filter(|end| SAMPLE.is_char_boundary(*end)) {
        exercise(&SAMPLE[..end]);
    }
    for at in 0..SAMPLE.len() {
        for byte in [b'\n', b'\r', b' ', b'^', b'[', b']', b'`', b'#', b'a', 0, 0xff] {
            let mut bytes = SAMPLE.as_bytes().to_vec();
            bytes[at] = byte;
            exercise(&String::from_utf8_lossy(&bytes));
        }
        let mut bytes = SAMPLE.as_bytes().to_vec();
        bytes.remove(at);
        exercise(&String::from_utf8_lossy(&bytes));
    }
}

/// A topic as a person would go through it: whole lines in memory, no offsets.
mod naive {
    use super::*;

    #[derive(Debug, PartialEq)]
    pub enum Thing {
        Blank,
        Heading(usize, String),
        Paragraph { lines: Vec<String>, ids: Vec<String>, groups: Vec<(String, Vec<String>)>, rest: String },
        Definition(String, String, String),
        Fence(Vec<String>),
        Comment,
    }

    fn lines(text: &str) -> Vec<String> {
        let text = text.replace("\r\n", "\n").replace('\r', "\n");
        let mut lines: Vec<String> = text.split('\n').map(str::to_owned).collect();
        if lines.last().is_some_and(String::is_empty) {
            lines.pop();
        }
        lines
    }

    fn words(text: &str) -> Vec<&str> {
        text.split(is_whitespace).filter(|word| !word.is_empty()).collect()
    }

    fn definition(line: &str) -> Option<Thing> {
        let (label, rest) = line.strip_prefix("[^")?.split_once("]:")?;
        if !FootnoteLabel::is_label(label) {
            return None;
        }
        let current = || {
            let (time, sources) = rest.trim_start_matches(is_whitespace).strip_prefix("Time:")?.split_once(';')?;
            let time = time.trim_matches(is_whitespace);
            let time = time.strip_prefix('`').map_or(Some(time), |time| time.strip_suffix('`'))?;
            Some((time, sources))
        };
        let older = || rest.split_once('·').map(|(time, sources)| (time.trim_matches(is_whitespace), sources));
        let (time, sources) = if rest.trim_matches(is_whitespace).starts_with("Time:") { current()? } else { older()? };
        let sources = sources.trim_start_matches(is_whitespace).strip_prefix("Sources:")?.trim_matches(is_whitespace);
        (EvidenceTime::is_written(time) && !sources.is_empty())
            .then(|| Thing::Definition(label.to_owned(), time.to_owned(), sources.to_owned()))
    }

    fn heading(line: &str) -> Option<Thing> {
        let marks = words(line).first()?.len();
        let plain = line.chars().take_while(|c| *c == '#').count() == marks && (1..=6).contains(&marks);
        let text = line.get(marks..)?.trim_matches(is_whitespace);
        (plain && !text.is_empty()).then(|| Thing::Heading(marks, text.to_owned()))
    }

    fn paragraph(lines: Vec<String>) -> Thing {
        let text = lines.join("\n");
        let mut body = text.trim_end_matches(is_whitespace);
        let mut ids = Vec::new();
        while let Some(word) = words(body).last().copied() {
            let before = &body[..body.len() - word.len()];
            let id = word.strip_prefix('^').filter(|id| BlockId::is_written(id) && !before.is_empty());
            let Some(id) = id else { break };
            ids.insert(0, id.to_owned());
            body = before.trim_end_matches(is_whitespace);
        }
        if ids.is_empty() {
            body = &text;
        }
        let (mut groups, mut quote, mut cited) = (Vec::new(), String::new(), Vec::new());
        let mut rest = body;
        while let Some(first) = rest.chars().next() {
            let label = rest.strip_prefix("[^").and_then(|rest| rest.split_once(']')).map(|(label, _)| label);
            match label.filter(|label| FootnoteLabel::is_label(label)) {
                Some(label) => {
                    cited.push(label.to_owned());
                    rest = &rest[label.len() + 3..];
                }
                None => {
                    if !cited.is_empty() {
                        groups.push((std::mem::take(&mut quote), std::mem::take(&mut cited)));
                    }
                    quote.push(first);
                    rest = &rest[first.len_utf8()..];
                }
            }
        }
        if !cited.is_empty() {
            groups.push((std::mem::take(&mut quote), cited));
        }
        for (quote, _) in &mut groups {
            *quote = quote.trim_matches(is_whitespace).to_owned();
        }
        Thing::Paragraph { lines, ids, groups, rest: quote }
    }

    pub fn things(text: &str) -> Vec<Thing> {
        let (mut things, mut text_lines, mut fence) = (Vec::new(), Vec::new(), None::<(String, Vec<String>)>);
        for line in lines(text) {
            let start = line.trim_start_matches(is_whitespace);
            let mark = ["```", "~~~"].into_iter().find(|mark| start.starts_with(mark));
            if let Some((open, mut held)) = fence.take() {
                if mark == Some(&open) {
                    things.push(Thing::Fence(held));
                } else {
                    held.push(line);
                    fence = Some((open, held));
                }
                continue;
            }
            let comment = start.starts_with("<!--")
                || start.strip_prefix("<a").is_some_and(|rest| rest.starts_with(is_whitespace));
            let thing = if let Some(mark) = mark {
                fence = Some((mark.to_owned(), Vec::new()));
                None
            } else if start.is_empty() {
                Some(Thing::Blank)
            } else if comment {
                Some(Thing::Comment)
            } else if let Some(thing) = definition(&line).or_else(|| heading(&line)) {
                Some(thing)
            } else {
                text_lines.push(line);
                continue;
            };
            if !text_lines.is_empty() {
                things.push(paragraph(std::mem::take(&mut text_lines)));
            }
            if !(thing == Some(Thing::Blank) && things.last() == Some(&Thing::Blank)) {
                things.extend(thing);
            }
        }
        if !text_lines.is_empty() {
            things.push(paragraph(text_lines));
        }
        things.extend(fence.map(|(_, held)| Thing::Fence(held)));
        things
    }
}

fn with_lf(text: &str) -> String {
    text.replace("\r\n", "\n").replace('\r', "\n")
}

fn split(text: &str) -> Vec<String> {
    with_lf(text).split('\n').map(str::to_owned).collect()
}

/// The same of the real thing.
fn things(text: &str) -> Vec<naive::Thing> {
    use naive::Thing;
    let show = |item| match item {
        Item::Blank(_) => Thing::Blank,
        Item::Comment(_) => Thing::Comment,
        Item::Heading(heading) => Thing::Heading(usize::from(heading.level()), heading.text().as_str().to_owned()),
        Item::Definition(definition) => {
            let part = |part: recollex_core::topic::Part<'_>| part.as_str().to_owned();
            Thing::Definition(part(definition.label()), part(definition.time()), part(definition.sources()))
        }
        Item::Fence(fence) => {
            let mut held = split(fence.body().as_str());
            held.pop_if(|last| last.is_empty());
            Thing::Fence(held)
        }
        Item::Paragraph(paragraph) => {
            let (ids, mut groups) = match paragraph.ending() {
                Ending::Ids { ids, body } => (ids.iter().map(|id| id.as_str().to_owned()).collect(), Groups::new(body)),
                Ending::Unfit(_) | Ending::Plain => (Vec::new(), Groups::new(paragraph.text())),
            };
            let shown = groups
                .by_ref()
                .map(|group| {
                    let labels = group.citations().map(|citation| citation.label().as_str().to_owned()).collect();
                    (group.quote().into_owned(), labels)
                })
                .collect();
            let rest = with_lf(groups.rest().as_str());
            Thing::Paragraph { lines: split(paragraph.text().as_str()), ids, groups: shown, rest }
        }
    };
    Items::new(text).map(show).collect()
}

fn pieces() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "\n",
        "\n",
        "\n\n",
        "\r\n",
        "\r",
        " ",
        "\t",
        "\u{3000}",
        "\u{2028}",
        "\u{85}",
        "# ",
        "### H",
        "#",
        "text",
        "你好",
        "😀",
        "[^e1]",
        "[^e1]",
        "[^mem_a]",
        "[^",
        "]",
        "[",
        "^",
        " ^a",
        " ^b-1",
        " ^x_y",
        "\n^c",
        "[x](y#^a)",
        "](",
        ")",
        ":",
        "```",
        "~~~",
        "`",
        "<!-- ",
        "<a id",
        "<ab",
        "\n[^e1]: Time: `2026-01-02`; Sources: [x](D1:1)\n",
        "\n[^mem_a]: undated · Sources: [y](p/t/m)",
        "[^e1]: ",
        "Time:",
        " 2026 ",
        "undated",
        ";",
        "·",
        "Sources:",
        "[x](D1:1)",
        "\u{feff}",
        "\0",
    ]);
    prop::collection::vec(piece, 0..24).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 20_000, ..ProptestConfig::default() })]

    #[test]
    fn as_a_person_would_read_it(text in pieces()) {
        prop_assert_eq!(things(&text), naive::things(&text), "{:?}", text);
    }

    #[test]
    fn whatever_is_composed(text in pieces()) {
        exercise(&text);
    }

    /// How lines end makes no difference to what a topic claims, or to what is wrong with it and where.
    #[test]
    fn line_ends_do_not_matter(text in pieces()) {
        let lf = with_lf(&text);
        let told = |check: &Check<'_>| {
            let units: Vec<_> = check.blocks().flat_map(|block| block.units(0)).collect();
            let events: Vec<_> = check.claimed_blocks().flat_map(|block| block.events().collect::<Vec<_>>()).collect();
            let faults: Vec<_> = check.faults().iter().map(|fault| (fault.code, fault.line, fault.column)).collect();
            (units, events, faults)
        };
        for other in [&text, &lf.replace('\n', "\r\n"), &lf.replace('\n', "\r")] {
            prop_assert_eq!(told(&check(other)), told(&check(&lf)), "{:?}", other);
        }
    }

    #[test]
    fn any_text(text in "\\PC{0,200}") {
        exercise(&text);
    }
}

/// Half a million bytes of what is worst for something, and paragraphs of ten: anything but a few passes would not come back.
#[test]
fn hostile_topics_take_time_in_proportion() {
    const BYTES: usize = 10_000_000;
    let unit = [
        "[",
        "]",
        "[^",
        "[^a]",
        "[^a",
        "a[^a]",
        " ^a",
        " ^",
        "^",
        " ^x_",
        "x\n\n",
        "# h\n",
        "###### h\n",
        "```\n",
        "~~~\n",
        "\n",
        "\r",
        "\r\n",
        " ",
        "\u{2028}",
        "<!--\n",
        "<!--\nx\n",
        "x\n<!--\n",
        "[^a]: Time: 2026; Sources: [x](D1:1)\n",
        "[^a]: x\n",
        "a[^mem_a] ",
        "[a](",
        "[a](b)",
        "(",
        "`",
        "x ^a\n\n",
        "x[^a] ^a\n\n",
        "a\r",
    ];
    for unit in unit {
        let text = unit.repeat(BYTES / 20 / unit.len());
        let check = check(&text);
        assert!(
            check.blocks().all(|block| block.when().is_some() && block.evidence().count() + block.links().count() > 0)
        );
        assert!(check.claimed_blocks().all(|block| block.content().len() <= text.len()));
    }
    let paragraph = format!("{}[^e1] ^a\n\n[^e1]: Time: 2026; Sources: [x](D1:1)\n", "word [x](y) ".repeat(BYTES / 12));
    assert_eq!(check(&paragraph).blocks().count(), 1);
    assert_eq!(check(&paragraph).faults(), []);
    let nested = format!("{}x{}", "[".repeat(BYTES / 4), "](".repeat(BYTES / 8));
    assert_eq!(check(&nested).faults().len(), 1);
    let unclosed = format!("```{}", "\n[^a]: Time: 2026; Sources: [x](D1:1)".repeat(BYTES / 40));
    assert_eq!(
        check(&unclosed).faults().iter().map(|fault| fault.code).collect::<Vec<_>>(),
        [FaultCode::UnclosedFence]
    );
}

/// Many blocks that cite one footnote with many sources, one block with many ids that cites many footnotes: whoever asks
/// for one thing does not pay for all.
#[test]
fn what_is_shared_is_not_copied() {
    let sources = "[a](D1:1)".repeat(200_000);
    let blocks: String = (0..100_000).map(|n| format!("a[^e] ^b{n}\n\n")).collect();
    let text = format!("{blocks}[^e]: Time: 2026; Sources: {sources}\n");
    let topic = check(&text);
    assert_eq!(topic.blocks().count(), 100_000);
    assert_eq!(topic.faults(), []);
    assert_eq!(topic.blocks().filter(|block| block.when().is_some()).count(), 100_000);
    let ids: String = (0..500_000).map(|n| format!(" ^b{n}")).collect();
    let text = format!("{}[^e]{ids}\n\n[^e]: Time: 2026; Sources: [a](D1:1)\n", "x".repeat(5_000_000));
    let topic = check(&text);
    let block = topic.blocks().next().expect("one");
    assert_eq!((block.ids().len(), block.content().len()), (500_000, 5_000_000));
}

/// A hundred thousand blocks in one file or in many, each with a name of its own or all with the same.
#[test]
fn many_blocks() {
    let block = |id: &str| format!("A fact.[^e] ^{id}\n\n");
    let definition = "[^e]: Time: 2026; Sources: [x](D1:1)\n";
    let one: String = (0..100_000).map(|n| block(&format!("b{n}"))).chain([definition.to_owned()]).collect();
    assert_eq!(Tree::new(vec![check(&one)]).units().len(), 100_000);
    let same = format!("{}{definition}", block("same").repeat(100));
    let topics = (0..1_000).map(|n| Check::new(path(&format!("topics/{n}.md")), TopicRef::parse(&same), &Archive));
    let tree = Tree::new(topics.collect());
    assert_eq!(tree.faults().filter(|(_, fault)| fault.code == FaultCode::DuplicateBlockId).count(), 99_999);
}
