//! What a claim rests on: who said it, when, whether it may be built on, and what links to it.

use crate::ids::{EvidenceTime, SourceRef, TopicPath};
use crate::source::Record;
use crate::topic::{Block, Check};

/// Why a claim is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Why {
    /// Its own id.
    pub id: String,
    /// Ids of blocks that were merged into it.
    pub merged: Vec<String>,
    /// Where it stands.
    pub topic: TopicPath,
    /// In which line of that, from 1.
    pub line: usize,
    /// The headings it stands under, outermost first.
    pub headings: Vec<String>,
    /// What it claims.
    pub content: String,
    /// Whether its topic's reading counts it: if not, something is wrong with it or with a footnote.
    pub sound: bool,
    /// What it rests on, citation by citation, in order.
    pub evidence: Vec<Evidence>,
    /// Every one of its sources may be built on, and there is at least one.
    pub trusted: bool,
    /// Blocks that its links name.
    pub links: Vec<String>,
    /// Blocks that link to it.
    pub linked_from: Vec<LinkedFrom>,
}

/// A citation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Evidence {
    /// The footnote's label.
    pub label: String,
    /// The text that rests on it.
    pub quote: String,
    /// When it was; none: the file does not say, or says no day there is.
    pub when: Option<EvidenceTime>,
    /// Its sources, in order. None where the file defines no such footnote.
    pub sources: Vec<Because>,
}

/// A source of a citation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Because {
    /// What its writer calls it.
    pub label: String,
    /// Its target as it is written.
    pub target: String,
    /// What that names; none: nothing there is.
    pub source: Option<SourceRef>,
    /// The record itself: who, when, where; none: there is none.
    pub record: Option<Record>,
    /// The record that it comes behind, on the branch of its conversation; none: it begins one, or nobody knows.
    pub after: Option<String>,
    /// It may be built on.
    pub trusted: bool,
}

/// A block that links to another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkedFrom {
    /// Its own id.
    pub id: String,
    /// Its topic.
    pub topic: TopicPath,
}

/// What must be known of archives.
pub trait Records {
    /// The record that is named; none: there is none that is whole.
    fn record(&self, source: &SourceRef) -> Option<Record>;

    /// Whether something may be built on it.
    fn is_trusted(&self, source: &SourceRef) -> bool;

    /// The id of the record it comes behind; none: it comes behind none, or nobody knows.
    fn after(&self, source: &SourceRef) -> Option<String>;
}

/// Why the claim with this id is there. `topic` is the topic it stands in; blocks that link to it are `linked_from`. None: the
/// topic has no such block.
pub fn why(topic: &Check<'_>, id: &str, linked_from: Vec<LinkedFrom>, records: &dyn Records) -> Option<Why> {
    let block = topic.all_blocks().find(|block| block.ids().iter().any(|name| name.as_str() == id))?;
    let evidence: Vec<Evidence> = block
        .groups()
        .flat_map(|group| {
            let quote = group.quote().into_owned();
            group
                .citations()
                .map(|citation| citation.label())
                .map(move |label| (quote.clone(), label))
                .collect::<Vec<_>>()
        })
        .map(|(quote, label)| cited(topic, label.as_str(), quote, records))
        .collect();
    let mut sources = evidence.iter().flat_map(|evidence| &evidence.sources).peekable();
    let trusted = sources.peek().is_some() && sources.all(|source| source.trusted);
    let own = block.identity().as_str().to_owned();
    Some(Why {
        merged: block.ids().iter().map(|name| name.as_str().to_owned()).filter(|id| *id != own).collect(),
        id: own,
        topic: topic.path().clone(),
        line: block.paragraph().lump().line(),
        headings: block.headings().into_iter().map(str::to_owned).collect(),
        content: block.content(),
        sound: topic.is_sound(block.number()),
        trusted,
        links: links_of(&block),
        linked_from,
        evidence,
    })
}

fn links_of(block: &Block<'_, '_>) -> Vec<String> {
    block.relations().iter().map(|id| id.as_str().to_owned()).collect()
}

fn cited(topic: &Check<'_>, label: &str, quote: String, records: &dyn Records) -> Evidence {
    let footnote = topic.footnote(label);
    let sources = footnote.iter().flat_map(|footnote| footnote.sources()).map(|source| {
        let named = source.evidence();
        Because {
            label: source.link().label().as_str().to_owned(),
            target: source.link().target().as_str().to_owned(),
            source: named.cloned(),
            record: named.and_then(|named| records.record(named)),
            after: named.and_then(|named| records.after(named)),
            trusted: named.is_some_and(|named| records.is_trusted(named)),
        }
    });
    let when = footnote.and_then(|footnote| footnote.time()).filter(|time| *time != EvidenceTime::Undated);
    Evidence { label: label.to_owned(), quote, when, sources: sources.collect() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topic::TopicRef;

    /// Turns of one conversation, the second of which is pending and the third of which there is not.
    struct Turns;

    impl Records for Turns {
        fn record(&self, source: &SourceRef) -> Option<Record> {
            (source.as_str() != "D1:3").then(|| Record {
                id: source.to_string(),
                path: "sources/D1.md".to_owned(),
                anchor: String::new(),
                line: 1,
                offset: 0,
                length: 0,
                time: "2026-01-02".to_owned(),
                label: "Ada".to_owned(),
                speaker: None,
                trust: crate::source::Trust::Trusted,
                kind: String::new(),
                principal: String::new(),
                tier: None,
            })
        }

        fn is_trusted(&self, source: &SourceRef) -> bool {
            source.as_str() == "D1:1"
        }

        fn after(&self, source: &SourceRef) -> Option<String> {
            (source.as_str() == "D1:2").then(|| "D1:1".to_owned())
        }
    }

    #[test]
    fn claims() {
        let text = "# A\n\nOne,[^a] see [two](b.md#^y).[^b] ^w ^x\n\nThree.[^c][^none] ^z\n\n\
                    [^a]: Time: `2026-01`; Sources: [l](D1:1)\n[^b]: Time: `undated`; Sources: [m](D1:1), [n](D1:2)\n\
                    [^c]: Time: `2026`; Sources: [gone](D1:3), [nowhere](x)\n";
        let topic = Check::new(TopicPath::parse("topics/a.md").expect("a topic"), TopicRef::parse(text), &());
        let from = LinkedFrom { id: "y".into(), topic: TopicPath::parse("topics/b.md").expect("a topic") };
        for id in ["w", "x"] {
            let why = why(&topic, id, vec![from.clone()], &Turns).expect("is there");
            assert_eq!((why.id.as_str(), why.merged.as_slice(), why.line), ("x", &["w".to_owned()][..], 3));
            assert_eq!((why.sound, why.trusted, why.links.as_slice()), (true, false, &["y".to_owned()][..]));
            let told: Vec<_> = why.evidence.iter().map(|one| (one.quote.as_str(), one.sources.len())).collect();
            assert_eq!(told, [("One,", 1), ("see [two](b.md#^y).", 2)]);
            assert_eq!(why.evidence[0].when.map(|time| time.to_string()).as_deref(), Some("2026-01"));
            assert_eq!(why.evidence[1].sources[1].after.as_deref(), Some("D1:1"));
            assert!(why.evidence[0].sources[0].record.is_some() && why.linked_from.len() == 1);
        }
        let faulty = why(&topic, "z", Vec::new(), &Turns).expect("is there");
        assert!(!faulty.sound && !faulty.trusted);
        let sources = &faulty.evidence[0].sources;
        assert!(sources[0].source.is_some() && sources[0].record.is_none() && sources[1].source.is_none());
        assert!(faulty.evidence[1].sources.is_empty() && faulty.evidence[1].label == "none");
        assert_eq!(why(&topic, "no", Vec::new(), &Turns), None);
    }
}
