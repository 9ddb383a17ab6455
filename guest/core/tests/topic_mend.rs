//! Topics that people have edited by hand are put in order as far as that is safe, and no further.

use recollex_core::ids::{SourceId, SourceRef, TopicPath};
use recollex_core::topic::Sources;
use recollex_core::topic::edit::{Edit, EditReason, Evidence, Kept, Planned, Snapshot, plan};
use std::collections::BTreeMap;

/// One archive with two records, the second pending.
struct Archive;

const PATH: &str = "sources/p/_v2/t.md";

fn id(message: &str) -> SourceId {
    SourceId::parse(&format!("p/t/{message}")).expect("an id")
}

impl Sources for Archive {
    fn record_at(&self, path: &str, anchor: &str) -> Option<SourceId> {
        ["m1", "m2"].map(id).into_iter().find(|id| path == PATH && id.anchor() == anchor)
    }
}

impl Evidence for Archive {
    fn look_up(&self, evidence: &SourceRef) -> Option<Kept> {
        let trusted = match evidence {
            SourceRef::Record(found) if *found == id("m1") => true,
            SourceRef::Record(found) if *found == id("m2") => false,
            _ => return None,
        };
        Some(Kept { path: PATH.to_owned(), trusted })
    }
}

fn path(name: &str) -> TopicPath {
    TopicPath::parse(name).expect("a topic")
}

/// The topics as they lie there, put in order.
fn mended(topics: &[(&str, &str)]) -> Result<BTreeMap<String, Option<String>>, Vec<EditReason>> {
    let texts: BTreeMap<TopicPath, &str> = topics.iter().map(|(name, text)| (path(name), *text)).collect();
    let committed = Snapshot::new(texts.iter().map(|(path, text)| (path.clone(), *text)));
    let edit = Edit {
        topics: texts.into_iter().map(|(path, text)| (path, Some(text))).collect(),
        mend: true,
        ..Edit::default()
    };
    match plan(&edit, &committed, &Archive) {
        Ok(Planned { topics, .. }) => Ok(topics.into_iter().map(|(path, text)| (path.to_string(), text)).collect()),
        Err(faults) => Err(faults.into_iter().map(|fault| fault.reason).collect()),
    }
}

fn definition(label: &str, target: &str) -> String {
    format!("[^{label}]: Time: `2026`; Sources: [x]({target})\n")
}

#[test]
fn links_of_a_topic_that_was_moved_lead_to_evidence_again() {
    let anchor = id("m1").anchor();
    let here = format!(
        "# A\n\nA claim.[^e-1111111111] ^aaaa1111\n\n{}",
        definition("e-1111111111", &format!("../{PATH}#{anchor}"))
    );
    let expected = here.replace("../sources", "../../../sources");
    let moved = mended(&[("topics/deep/er/a.md", &here)]).expect("nothing is wrong with it");
    assert_eq!(moved, BTreeMap::from([("topics/deep/er/a.md".to_owned(), Some(expected.clone()))]));
    // What is in order stays, and what leads to no record is nobody's to guess.
    assert_eq!(mended(&[("topics/deep/er/a.md", &expected)]), Ok(BTreeMap::new()));
    let lost = here.replace(&anchor, "source-0000000000000000");
    assert_eq!(mended(&[("topics/deep/er/a.md", &lost)]), Ok(BTreeMap::new()));
}

#[test]
fn nothing_is_taken_out() {
    for text in ["# Ideas\n", "# Ideas\n\n## Later\n", "# Ideas\n\nProse that rests on nothing.\n", ""] {
        assert_eq!(mended(&[("topics/a.md", text)]), Ok(BTreeMap::new()), "{text:?}");
    }
    let text = format!("# Ideas\n\n## Empty\n\n## Full\n\nA claim.[^e1]\n\n{}", definition("e1", "p/t/m1"));
    let after = mended(&[("topics/a.md", &text)]).expect("a plan").remove("topics/a.md").flatten().expect("a text");
    assert!(after.starts_with("# Ideas\n\n## Empty\n\n## Full\n\nA claim.[^e-") && after.contains("] ^"), "{after}");
}

#[test]
fn a_byte_order_mark_goes() {
    let text = format!("\u{feff}# A\n\nA claim.[^e-1111111111] ^aaaa1111\n\n{}", definition("e-1111111111", "p/t/m1"));
    let after = mended(&[("topics/a.md", &text)]).expect("a plan").remove("topics/a.md").flatten().expect("a text");
    assert!(after.starts_with("# A\n"), "{after:?}");
}

#[test]
fn a_link_to_no_block_does_not_keep_a_claim_from_its_id() {
    let text = format!("# A\n\nSee [b](b.md#^gone0000).[^e1]\n\n{}", definition("e1", "p/t/m1"));
    let after = mended(&[("topics/a.md", &text)]).expect("a plan").remove("topics/a.md").flatten().expect("a text");
    assert!(after.contains("(b.md#^gone0000).[^e-") && after.contains("] ^"), "{after}");
}

#[test]
fn what_is_not_safe_is_told() {
    let text = format!("# A\n\nA claim.[^e1]\n\n{}", definition("e1", "p/t/m2"));
    assert_eq!(mended(&[("topics/a.md", &text)]), Err(vec![EditReason::UntrustedSource]));
    let text = format!("# A\n\nSee [b](b.md).[^e1]\n\n{}", definition("e1", "p/t/m1"));
    assert_eq!(mended(&[("topics/a.md", &text)]), Err(vec![EditReason::TopicLinkWithoutBlock]));
}
