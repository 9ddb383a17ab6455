//! Edits of topics: what is done for a writer, what is refused, and that nothing else happens.

use proptest::prelude::*;
use recollex_core::ids::{SourceId, SourceRef, TopicPath};
use recollex_core::text::clean;
use recollex_core::topic::edit::{Edit, EditFault, Evidence, Kept, Planned, Snapshot, plan};
use recollex_core::topic::{Check, FaultCode, Item, Items, Sources, TopicRef, Tree};
use std::collections::{BTreeMap, BTreeSet};

/// Two trusted records, a pending one, an older one, and two turns.
struct Archive;

const RECORDS: [(&str, &str, bool); 4] = [
    ("p/t/m1", "sources/p/_v2/t.md", true),
    ("p/t/m2", "sources/p/_v2/t.md", true),
    ("p/t/pending", "sources/p/_v2/t.md", false),
    ("p/old/m1", "sources/p/old.md", true),
];

impl Sources for Archive {
    fn record_at(&self, path: &str, anchor: &str) -> Option<SourceId> {
        let mut ids =
            RECORDS.iter().filter(|record| record.1 == path).filter_map(|record| SourceId::parse(record.0).ok());
        ids.find(|id| id.anchor() == anchor)
    }
}

impl Evidence for Archive {
    fn look_up(&self, evidence: &SourceRef) -> Option<Kept> {
        let turn = matches!(evidence.as_str(), "D1:1" | "D1:2").then_some(("", "sources/D1.md", true));
        let record = RECORDS.iter().copied().find(|record| record.0 == evidence.as_str());
        record.or(turn).map(|(_, path, trusted)| Kept { path: path.to_owned(), trusted })
    }
}

fn path(text: &str) -> TopicPath {
    TopicPath::parse(text).expect(text)
}

fn snapshot<'a>(topics: &[(&str, &'a str)]) -> Snapshot<'a> {
    Snapshot::new(topics.iter().map(|(name, text)| (path(name), *text)))
}

fn edit<'a>(topics: &[(&str, Option<&'a str>)]) -> Edit<'a> {
    Edit { topics: topics.iter().map(|(name, text)| (path(name), *text)).collect(), ..Edit::default() }
}

fn planned(before: &[(&str, &str)], edit: &Edit<'_>) -> Planned {
    plan(edit, &snapshot(before), &Archive).unwrap_or_else(|faults| panic!("{:#?}", told(&faults)))
}

fn refused(before: &[(&str, &str)], edit: &Edit<'_>) -> Vec<String> {
    told(&plan(edit, &snapshot(before), &Archive).expect_err("refused"))
}

fn told(faults: &[EditFault]) -> Vec<String> {
    let shown = |fault: &EditFault| {
        let (path, place) = (fault.path.below_topics(), format!("{}:{}", fault.line, fault.column));
        format!("{path}:{place} {} {}", fault.reason.as_str(), fault.subject)
    };
    faults.iter().map(shown).collect()
}

fn topic<'p>(planned: &'p Planned, name: &str) -> Option<&'p str> {
    planned.topics.get(&path(name)).unwrap_or_else(|| panic!("{name} does not change")).as_deref()
}

/// A link to the record, from a topic so many directories down.
fn link(id: &str, up: usize) -> String {
    let id = SourceId::parse(id).expect(id);
    let file = RECORDS.iter().find(|record| record.0 == id.as_str()).expect("a record").1;
    format!("{}{file}#{}", "../".repeat(up), id.anchor())
}

fn definition(label: &str, target: &str) -> String {
    format!("[^{label}]: Time: `2026-01-02`; Sources: [x]({target})\n")
}

fn base() -> String {
    format!("# Base\n\nBase fact.[^e-0000000001] ^base0001\n\n{}", definition("e-0000000001", &link("p/t/m1", 1)))
}

#[test]
fn what_is_done_for_a_writer() {
    let text = "# Note\n\n## Empty\n\n## Full\n\nA claim. [^e1]\nand another [^e2]\t[^e1]   ^invented\n\n  [^e1]: 2026 · Sources: p/t/m1, D1:2\n[^e2]:Time:undated;Sources:[two]( p/old/m1 )\n\n\n";
    let planned = planned(&[], &edit(&[("topics/n.md", Some(text))]));
    let [block] = &planned.blocks[..] else { panic!("one block") };
    let [one, two] = &planned.footnotes[..] else { panic!("two footnotes") };
    assert_eq!((one.local.as_str(), two.local.as_str(), block.number), ("e1", "e2", 0));
    assert_eq!(planned.created.iter().collect::<Vec<_>>(), [&block.id]);
    let (a, b, id) = (&one.label, &two.label, &block.id);
    let expected = format!(
        "# Note\n\n## Full\n\nA claim.[^{a}]\nand another[^{b}][^{a}] ^{id}\n\n[^{a}]: Time: `2026`; Sources: [p/t/m1]({}), [D1:2](../sources/D1.md#d1-2)\n[^{b}]: Time: `undated`; Sources: [two]({})\n",
        link("p/t/m1", 1),
        link("p/old/m1", 1),
    );
    assert_eq!(topic(&planned, "topics/n.md"), Some(expected.as_str()));
}

#[test]
fn prose_without_evidence_is_refused_with_its_line() {
    let text = format!(
        "# N\n\nJust prose.\n\n## H\n\nNamed. ^some-id\n\n- \"A list\"[^e1] rest\n\n{}",
        definition("e1", "D1:1")
    );
    assert_eq!(
        refused(&[], &edit(&[("topics/n.md", Some(&text))]))
            .iter()
            .map(|fault| fault.split_once(' ').expect("a reason"))
            .map(|(place, reason)| (place, reason.split(' ').next().unwrap_or_default()))
            .collect::<Vec<_>>(),
        [("n.md:3:1", "missing-block-id"), ("n.md:7:9", "uncited-block"), ("n.md:9:17", "text-after-citation")]
    );
}

#[test]
fn only_what_is_empty_goes() {
    let one = base();
    let fenced =
        format!("{one}\n## Fenced\n\n```\ncode\n```\n\n## Said\n\n<!-- later -->\n\n## Nothing\n\n### At all\n");
    let plan = planned(&[], &edit(&[("topics/n.md", Some(&fenced))]));
    let kept = topic(&plan, "topics/n.md").expect("kept");
    assert!(kept.ends_with("## Fenced\n\n```\ncode\n```\n\n## Said\n\n<!-- later -->\n"), "{kept}");
    for nothing in ["", "\n \n", "# H\n\n## I\n", &definition("e1", "D1:1")] {
        let before = [("topics/other.md", one.as_str())];
        assert_eq!(planned(&before, &edit(&[("topics/n.md", Some(nothing))])).topics, BTreeMap::new(), "{nothing:?}");
    }
    // What was there goes only on purpose.
    let before = [("topics/n.md", one.as_str())];
    let emptied = edit(&[("topics/n.md", Some("# Base\n"))]);
    assert_eq!(refused(&before, &emptied), ["n.md:3:28 block-id-removed base0001"]);
    let meant = Edit { removed: BTreeSet::from(["base0001".to_owned()]), ..emptied };
    assert_eq!(topic(&planned(&before, &meant), "topics/n.md"), None);
}

#[test]
fn fences_stay_as_they_are() {
    let fences = "```\nx [^e1]  ^invented\n  [^e1]: Time: 2026; Sources: p/t/m1\n# h\n```\n\n~~~\n[l](wrong.md#^base0001) [^e1]\n```\n~~~";
    let text = format!("# N\n\n{fences}\n\nA.[^e1]\n\n{}", definition("e1", "D1:1"));
    let plan = planned(&[("topics/base.md", &base())], &edit(&[("topics/n.md", Some(&text))]));
    assert!(topic(&plan, "topics/n.md").expect("kept").contains(&format!("\n{fences}\n")));
    // A definition in a fence counts for those who cite it, and its label stays.
    let text = format!("A.[^e-x]\n\n```\n{}```\n", definition("e-x", "D1:1"));
    let plan = planned(&[], &edit(&[("topics/n.md", Some(&text))]));
    assert!(topic(&plan, "topics/n.md").expect("kept").contains(&definition("e-x", "D1:1")));
    let local = text.replace("e-x", "e1");
    assert_eq!(planned(&[], &edit(&[("topics/n.md", Some(&local))])).footnotes, []);
}

#[test]
fn an_edit_answers_for_what_it_changes() {
    let broken = format!(
        "# B\n\nOld prose.\n\nDangling [x](nowhere.md#^gone).[^e-b] ^brok0001\n\nUndefined.[^nobody] ^brok0002\n\n{}",
        definition("e-b", "p/t/pending")
    );
    let before = [("topics/b.md", broken.as_str()), ("topics/base.md", &base())];
    let more = format!("{broken}\nNew.[^e1]\n\n{}", definition("e1", "D1:1"));
    let plan = planned(&before, &edit(&[("topics/b.md", Some(&more))]));
    assert_eq!(plan.blocks.len(), 1);
    // The same faults again, in something new, are the edit's own; so are changes of what was faulty.
    let worse = broken.replace("Old prose.", "Other prose.").replace("Dangling", "Still dangling")
        + "\nMore.[^nobody] ^brok0002\n";
    assert_eq!(
        refused(&before, &edit(&[("topics/b.md", Some(&worse))])),
        [
            "b.md:3:1 missing-block-id b.md",
            "b.md:11:8 undefined-footnote nobody",
            "b.md:11:17 duplicate-block-id brok0002",
            "b.md:5:20 dangling-block-link gone",
        ]
    );
    // A topic elsewhere does not matter at all.
    planned(&before, &edit(&[("topics/base.md", Some(&base().replace("fact", "truth")))]));
    // It may be repaired, or removed.
    let repaired = format!("# B\n\nFine.[^e-b] ^brok0001 ^brok0002\n\n{}", definition("e-b", "p/t/pending"));
    planned(&before, &edit(&[("topics/b.md", Some(&repaired))]));
    let gone = Edit { removed: ["brok0001", "brok0002"].map(str::to_owned).into(), ..edit(&[("topics/b.md", None)]) };
    assert_eq!(topic(&planned(&before, &gone), "topics/b.md"), None);
}

#[test]
fn links_that_an_edit_breaks_are_its_own() {
    let linking = format!(
        "See [b](base.md#^base0001)\nand [it](base.md#^base0001).[^e-2] ^link0001\n\n{}",
        definition("e-2", "D1:1")
    );
    let before = [("topics/base.md", base()), ("topics/link.md", linking)];
    let before: Vec<(&str, &str)> = before.iter().map(|(path, text)| (*path, text.as_str())).collect();
    let gone = Edit { removed: ["base0001".to_owned()].into(), ..edit(&[("topics/base.md", None)]) };
    assert_eq!(
        refused(&before, &gone),
        ["link.md:1:9 dangling-block-link base0001", "link.md:2:10 dangling-block-link base0001"]
    );
}

#[test]
fn what_may_be_newly_cited() {
    let cite = |target: &str| format!("A.[^e1]\n\n{}", definition("e1", target));
    let one = base();
    let before = [("topics/base.md", one.as_str())];
    for trusted in ["p/t/m2", "p/old/m1", "D1:2", "../sources/D1.md#d1-2"] {
        planned(&before, &edit(&[("topics/n.md", Some(&cite(trusted)))]));
    }
    assert_eq!(
        refused(&before, &edit(&[("topics/n.md", Some(&cite("p/t/pending")))])),
        ["n.md:3:41 untrusted-source p/t/pending"]
    );
    let nobody = cite("p/none/m");
    assert!(
        refused(&before, &edit(&[("topics/n.md", Some(&nobody))]))[0]
            .starts_with("n.md:3:41 unresolved-source ../sources/p/none.md#")
    );
    assert_eq!(refused(&before, &edit(&[("topics/n.md", Some(&cite("D7:1")))])), ["n.md:3:41 unresolved-source D7:1"]);
    // Restricted to a batch; what a block rests on already does not count.
    let offered = Some([SourceRef::parse("p/t/m2").expect("an id")].into());
    let both = base()
        .replace("fact.", "fact now.")
        .replace("\n\n[^e", "[^e2]\n\n[^e")
        .replace(" ^base0001[^e2]", "[^e2] ^base0001")
        + &definition("e2", "p/t/m2");
    planned(&before, &Edit { offered: offered.clone(), ..edit(&[("topics/base.md", Some(&both))]) });
    let other = both.replace("p/t/m2", "D1:1");
    let restricted = Edit { offered, ..edit(&[("topics/base.md", Some(&other))]) };
    assert_eq!(refused(&before, &restricted), ["base.md:6:41 source-not-offered D1:1"]);
}

#[test]
fn a_local_label_means_something_in_its_file_only() {
    let one = format!("A.[^e1]\n\n{}", definition("e1", "D1:1"));
    let two = format!("B.[^e1]\n\n{}", definition("e1", "D1:2"));
    let plan =
        planned(&[], &edit(&[("topics/a.md", Some(&one)), ("topics/b.md", Some(&two)), ("topics/c.md", Some(&one))]));
    let labels: BTreeSet<&str> = plan.footnotes.iter().map(|footnote| footnote.label.as_str()).collect();
    assert_eq!(labels.len(), 3, "three pieces of evidence: {labels:?}");
    let other = format!("C.[^e1]\n\n{}", definition("e2", "D1:1"));
    assert_eq!(
        refused(&[("topics/a.md", &one)], &edit(&[("topics/c.md", Some(&format!("{other}D.[^e2]\n")))])),
        ["c.md:1:5 undefined-footnote e1"]
    );
}

#[test]
fn quoted_sources_are_named_where_a_source_is_named() {
    let quoted = BTreeMap::from([("new-source-a".to_owned(), SourceId::parse("p/t/m1").expect("an id"))]);
    let text = "About new-source-a.[^e1] And.[^e2]\n\n[^e1]: Time: `2026`; Sources: [a](new-source-a)\n[^e2]: Time: `2026`; Sources: new-source-a\n";
    let plan = planned(&[], &Edit { quoted: quoted.clone(), ..edit(&[("topics/n.md", Some(text))]) });
    let new = topic(&plan, "topics/n.md").expect("kept");
    assert!(new.starts_with("About new-source-a.[^e-"), "{new}");
    assert!(
        new.contains(&format!("[a]({})", link("p/t/m1", 1)))
            && new.contains(&format!("[p/t/m1]({})", link("p/t/m1", 1))),
        "{new}"
    );
    let unknown =
        text.replace("](new-source-a)", "](new-source-b)").replace(": new-source-a", ": [x](D1:1), new-source-c");
    let faults = refused(&[], &Edit { quoted, ..edit(&[("topics/n.md", Some(&unknown))]) });
    assert_eq!(faults[..2], ["n.md:3:35 missing-source new-source-b", "n.md:4:42 missing-source new-source-c"]);
}

#[test]
fn line_ends() {
    let crlf = |text: &str| text.replace('\n', "\r\n");
    let (one, linking) = (
        crlf(&base()),
        crlf("See [b](base.md#^base0001).[^e-2] ^link0001\n\n[^e-2]: Time: 2026; Sources: [x](D1:1)\n"),
    );
    let before = [("topics/base.md", one.as_str()), ("topics/link.md", linking.as_str())];
    // As it was, in whatever line ends: it keeps its bytes.
    for same in [base(), one.clone(), base().replace('\n', "\r")] {
        assert_eq!(planned(&before, &edit(&[("topics/base.md", Some(&same))])).topics, BTreeMap::new());
    }
    let plan = planned(&before, &edit(&[("topics/base.md", Some(&one.replace("fact", "truth")))]));
    assert_eq!(topic(&plan, "topics/base.md"), Some(base().replace("fact", "truth").as_str()));
    // What only links to something that moves keeps everything else.
    let moved = base().replace(&link("p/t/m1", 1), &link("p/t/m1", 2));
    let plan = planned(&before, &edit(&[("topics/base.md", None), ("topics/a b/c.md", Some(&moved))]));
    assert_eq!(topic(&plan, "topics/link.md"), Some(linking.replace("base.md#", "a%20b/c.md#").as_str()));
}

#[test]
fn blocks_that_move_take_their_links_with_them() {
    let text = format!(
        "To [self](#^base0001), [other](deep/o.md#^othr0001).[^e-1] ^base0001\n\n{}",
        definition("e-1", &link("p/t/m1", 1))
    );
    let other = format!("Back [b](../base.md#^base0001).[^e-2] ^othr0001\n\n{}", definition("e-2", "D1:1"));
    let before = [("topics/base.md", text.as_str()), ("topics/deep/o.md", other.as_str())];
    // The text is moved as it is; every relative link in it is wrong now.
    let plan = planned(&before, &edit(&[("topics/base.md", None), ("topics/x/y/n.md", Some(&text))]));
    let expected = format!(
        "To [self](n.md#^base0001), [other](../../deep/o.md#^othr0001).[^e-1] ^base0001\n\n{}",
        definition("e-1", &link("p/t/m1", 3))
    );
    assert_eq!(topic(&plan, "topics/x/y/n.md"), Some(expected.as_str()));
    assert_eq!(topic(&plan, "topics/deep/o.md"), Some(other.replace("../base.md#", "../x/y/n.md#").as_str()));
    // Copied, it is there twice.
    assert_eq!(
        refused(&before, &edit(&[("topics/x/y/n.md", Some(&text))])),
        ["x/y/n.md:1:61 duplicate-block-id base0001"]
    );
}

#[test]
fn a_footnote_that_says_more_keeps_it() {
    let said = "[^e1]: Time: 2026; Sources: see [x](D1:1), and [y](p/t/m1) as well";
    let plan = planned(&[], &edit(&[("topics/n.md", Some(&format!("A.[^e1]\n\n{said}\n")))]));
    let label = &plan.footnotes[0].label;
    let expected =
        said.replace("e1", label).replace("D1:1", "../sources/D1.md#d1-1").replace("p/t/m1", &link("p/t/m1", 1));
    assert!(topic(&plan, "topics/n.md").expect("kept").ends_with(&format!("{expected}\n")));
}

#[test]
fn every_fault_is_told_at_once() {
    let text = format!(
        "## Gone\n\nA [l](other.md) and [m](x.md#^nope).[^e1] ^one\n\n{}[^e1]: Time: `2026`; Sources: [ ](p/none/m)\nTail. ^t_t\n",
        definition("e1", "p/t/pending"),
    );
    assert_eq!(
        refused(&[("topics/base.md", &base())], &edit(&[("topics/n.md", Some(&text)), ("topics/base.md", None)]))
            .iter()
            .map(|fault| fault.split(' ').take(2).collect::<Vec<_>>().join(" "))
            .collect::<Vec<_>>(),
        [
            "n.md:6:3 duplicate-footnote",
            "n.md:6:32 missing-source-label",
            "n.md:6:35 unresolved-source",
            "n.md:7:8 invalid-block-id",
            "base.md:3:28 block-id-removed",
            "n.md:3:7 topic-link-without-block",
            "n.md:3:25 dangling-block-link",
            "n.md:5:41 untrusted-source",
        ]
    );
}

/// What a topic says, whatever its footnotes and blocks are called.
fn said(text: &str) -> Vec<String> {
    let mut said = Vec::new();
    for item in Items::new(text) {
        match item {
            // A link that follows an id without a space is no part of it.
            Item::Paragraph(paragraph) => said.push(paragraph.prose().replace('[', " [")),
            Item::Fence(fence) => said.push(fence.lump().text().as_str().to_owned()),
            Item::Comment(comment) => said.push(comment.text().as_str().to_owned()),
            Item::Definition(definition) => {
                said.push(clean(definition.sources().as_str()).replace([',', '·', ';'], " "));
            }
            Item::Heading(_) | Item::Blank(_) => {}
        }
    }
    said
}

fn pieces() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "\n",
        "\n\n",
        "\n\n",
        "\r\n",
        " ",
        "# H\n",
        "## I\n\n",
        "text",
        "你好 ",
        "[^e1]",
        "[^e2] ",
        "[^e1]",
        "[^e-0000000001]",
        "[^mem_a]",
        " ^base0001",
        " ^base0001-x",
        " ^link0001",
        " ^new1",
        " ^x_y",
        "[x](base.md#^base0001)",
        "[y](#^new1)",
        "[z](other.md)",
        "[w](../sources/D1.md)",
        "```\n",
        "~~~\n",
        "<!-- c -->\n",
        "\n[^e1]: Time: `2026`; Sources: [x](D1:1)\n",
        "\n [^e2]: undated · Sources: p/t/m1 · D1:2\n",
        "\n[^mem_a]: Time: 2026; Sources: [m](D1:1)\n",
        "\n[^e-0000000001]: Time: `2026-01-02`; Sources: [x](D1:2)\n",
        "\n[^e3]: time\n",
        "[n](new-source-a)",
    ]);
    prop::collection::vec(piece, 0..20).prop_map(|pieces| pieces.concat())
}

/// A topic as a careful writer might give it: claims that cite, footnotes in any form, other things between.
fn written() -> impl Strategy<Value = String> {
    let claim = (
        prop::sample::select(vec![
            "The hall is free",
            "- 张三住在东京",
            "> One\nof two lines",
            "See [b](base.md#^base0001)",
            "See [l](#^link0001) and [u](https://x.y/z.md)",
        ]),
        prop::collection::vec(
            (prop::sample::select(vec![1, 2, 3]), prop::sample::select(vec!["", " ", ", and more"])),
            1..4,
        ),
        prop::sample::select(vec!["", "", " ^invented", "  ^a ^b", "\n^own-line", " ^base0001-x"]),
        prop::sample::select(vec!["\n", "\n\n", "\r\n\r\n", "\n \n"]),
    );
    let claim = claim.prop_map(|(text, cites, id, end)| {
        let mut out = text.to_owned();
        for (number, (label, between)) in cites.iter().enumerate() {
            // What comes behind a citation is a claim of its own; nothing comes behind the last.
            if number > 0 {
                out += if *between == ", and more" { between } else { "" };
            }
            out += &format!("{}[^e{label}]", if *between == " " { " " } else { "" });
        }
        out + id + end
    });
    let other = prop::sample::select(vec![
        "# H\n\n",
        "## I\n",
        "### J\n\n",
        "```\n[^e9] ^x\n# no\n```\n",
        "~~~\n```\n~~~\n\n",
        "<!-- c -->\n",
        "\n\n",
    ]);
    let part = prop_oneof![3 => claim.prop_map(|claim| format!("{claim}\n")), 2 => other.prop_map(str::to_owned)];
    let form = prop::sample::select(vec![
        "[^e{}]: Time: `2026-01-02`; Sources: [x](D1:1)\n",
        "  [^e{}]: undated · Sources: p/t/m1, D1:2\n",
        "[^e{}]:Time:2026;Sources:[a](p/t/m2)·[b](p/old/m1)\r\n",
        "[^e{}]: Time: `2025`; Sources: see [x](D1:2) too\n",
    ]);
    (prop::collection::vec(part, 0..6), prop::collection::vec(form, 3)).prop_map(|(parts, forms)| {
        let mut text = parts.concat() + "\n";
        for (number, form) in (1..).zip(forms) {
            if text.contains(&format!("[^e{number}]")) {
                text += &form.replace("{}", &number.to_string());
            }
        }
        text
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3_000, ..ProptestConfig::default() })]

    /// Whatever is written is refused with reasons that have a place, or committed so that it is sound, says all of what was
    /// written and nothing else, keeps every id, and stays as it is when it is given once more.
    #[test]
    fn whatever_is_written(one in prop_oneof![pieces(), written()], two in written(), also in prop::bool::weighted(0.1)) {
        let turn = "../sources/D1.md#d1-1";
        let linking = format!("See [b](base.md#^base0001).[^e-2] ^link0001\n\n{}", definition("e-2", turn));
        let base = base();
        let before = [("topics/base.md", base.as_str()), ("topics/link.md", linking.as_str())];
        let committed = snapshot(&before);
        let mut given = vec![("topics/n/one.md", Some(one.as_str())), ("topics/two.md", Some(two.as_str()))];
        if also {
            given.push(("topics/base.md", None));
        }
        match plan(&edit(&given), &committed, &Archive) {
            Err(faults) => {
                prop_assert!(!faults.is_empty());
                for fault in faults {
                    prop_assert!(fault.line >= 1 && fault.column >= 1 && !fault.subject.is_empty(), "{:?}", fault);
                }
            }
            Ok(planned) => {
                let mut after: BTreeMap<TopicPath, String> = before.iter().map(|(name, text)| (path(name), (*text).to_owned())).collect();
                for (path, text) in &planned.topics {
                    match text {
                        Some(text) => drop(after.insert(path.clone(), text.clone())),
                        None => drop(after.remove(path)),
                    }
                }
                for (name, text) in &given {
                    let kept = after.get(&path(name)).map_or("", String::as_str);
                    let text = text.unwrap_or_default();
                    if kept.is_empty() {
                        // Footnotes that nothing cites are all that may go.
                        prop_assert!(TopicRef::parse(&unindented(text)).paragraphs().next().is_none() || *name == "topics/base.md");
                    } else {
                        prop_assert_eq!(letters(&said(kept)), letters(&said(&unindented(text))), "{:?} became {:?}", text, kept);
                    }
                }
                let checks = after.iter().map(|(path, text)| Check::new(path.clone(), TopicRef::parse(text), &Archive));
                let tree = Tree::new(checks.collect());
                prop_assert_eq!(tree.first_strict().map(|(topic, fault)| (topic.path(), fault)), None, "{:?} {:?}", one, two);
                let ids: BTreeSet<String> = tree.units().iter().map(|unit| unit.id.to_string()).collect();
                prop_assert!(ids.contains("base0001") && ids.contains("link0001"));
                let again = Edit { topics: after.iter().map(|(path, text)| (path.clone(), Some(text.as_str()))).collect(), ..Edit::default() };
                let committed = Snapshot::new(after.iter().map(|(path, text)| (path.clone(), text.as_str())));
                let planned = plan(&again, &committed, &Archive);
                prop_assert_eq!(planned.map(|planned| planned.topics), Ok(BTreeMap::new()), "{:?} {:?}", one, two);
            }
        }
    }
}

/// Indented definitions count as definitions.
fn unindented(text: &str) -> String {
    let lines = text.replace("\r\n", "\n");
    let mut fenced = None;
    let line = |line: &str| {
        let start = line.trim_start();
        let mark = ["```", "~~~"].into_iter().find(|mark| start.starts_with(mark));
        match fenced {
            None if mark.is_some() => fenced = mark,
            Some(open) if mark == Some(open) => fenced = None,
            None if start.starts_with("[^") && line != start => return start.to_owned(),
            _ => {}
        }
        line.to_owned()
    };
    lines.split('\n').map(line).collect::<Vec<_>>().join("\n")
}

/// All of it without white space, which goes before citations; ids at lines' ends may go, and targets may change.
fn letters(said: &[String]) -> String {
    let plain = said.iter().map(|text| clean(text)).collect::<Vec<_>>().join(" ");
    plain.split_whitespace().filter(|word| !word.starts_with('^')).collect()
}

#[test]
fn hostile_edits_take_time_in_proportion() {
    const BYTES: usize = 100_000;
    let definition = "[^e]: Time: 2026; Sources: [x](D1:1)\n";
    let units = [
        "[^e1]",
        "a [^e1]",
        " ^a",
        "a[^e] ^a ",
        "x\n\n",
        "# h\n",
        "###### h\n",
        "```\n",
        "[^e1]: x\n",
        " [^e1]: Time: 2026; Sources: D1:1\n",
        "a[^mem_a] ",
        "a[^e1]\n\n",
        "[x](y#^a)",
        "[x](y.md)",
        "a-",
        "^a-",
        "new-source-a, ",
        "[^e1]: Time: 2026; Sources: [x](D1:1)\n",
        "A.[^e9]\n\n[^f]: Time: 2026; Sources: [x](D1:1)\n",
    ];
    for unit in units {
        let text = format!("{}\n\n{definition}", unit.repeat(BYTES / unit.len()));
        let empty = snapshot(&[]);
        let _ = plan(&edit(&[("topics/n.md", Some(&text))]), &empty, &Archive);
        // And against itself, whatever is wrong with it.
        let itself = snapshot(&[("topics/n.md", &text)]);
        let _ = plan(&edit(&[("topics/n.md", Some(&text)), ("topics/m.md", Some(&text))]), &itself, &Archive);
    }
    let aliases: String = (0..30_000).map(|n| format!(" ^b{n}")).collect();
    let merged = format!("A.[^e]{aliases}\n\n{definition}");
    let before = snapshot(&[("topics/n.md", &merged)]);
    assert!(plan(&edit(&[("topics/n.md", None), ("topics/m.md", Some(&merged))]), &before, &Archive).is_ok());
    let faults = plan(&edit(&[("topics/n.md", None)]), &before, &Archive).expect_err("they would be gone");
    assert_eq!(faults.len(), 30_000);
    let older: String = (0..30_000).map(|n| format!("A.[^mem_{n}] ")).collect();
    let labels: String =
        (0..30_000).map(|n| format!("[^mem_{n}]: Time: `2026`; Sources: [x](../sources/D1.md#d1-1)\n")).collect();
    let older = format!("{}\n\n{labels}", older.trim_end());
    let before = snapshot(&[("topics/n.md", &older)]);
    assert!(plan(&edit(&[("topics/n.md", None), ("topics/m.md", Some(&older))]), &before, &Archive).is_ok());
    let broken = snapshot(&[("topics/n.md", "x\n\n")]);
    let more = "x\n\n".repeat(BYTES / 3);
    let faults = plan(&edit(&[("topics/n.md", Some(&more))]), &broken, &Archive).expect_err("prose");
    assert_eq!(faults.len(), BYTES / 3 - 1, "one was there before");
    assert!(faults.iter().all(|fault| fault.reason.as_str() == FaultCode::MissingBlockId.as_str()));
}

/// A block that a thousand others link to moves: all of them follow, and so do a hundred thousand that do not care.
#[test]
fn a_block_that_many_link_to() {
    let names: Vec<String> = (0..1_000).map(|n| format!("topics/l/{n}.md")).collect();
    let linking = |n: usize| format!("See [b](../base.md#^base0001).[^e-2] ^link{n}\n\n{}", definition("e-2", "D1:1"));
    let mut texts: Vec<(String, String)> =
        names.iter().enumerate().map(|(n, name)| (name.clone(), linking(n))).collect();
    texts.push(("topics/base.md".to_owned(), base()));
    let before = Snapshot::new(texts.iter().map(|(name, text)| (path(name), text.as_str())));
    let moved = base();
    let plan =
        plan(&edit(&[("topics/base.md", None), ("topics/x/n.md", Some(&moved))]), &before, &Archive).expect("moves");
    assert_eq!(plan.topics.len(), 1_002);
    assert!(topic(&plan, "topics/l/7.md").expect("there").starts_with("See [b](../x/n.md#^base0001)"));
}
