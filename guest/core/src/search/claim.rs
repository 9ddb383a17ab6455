//! Topics as documents: what of a block is found by itself.
//!
//! A claim is what a block says with one group of citations. Which claims a topic has depends on its text alone: whether
//! the records that it names are there, and may be built on, is looked up for the few that are shown. So an archive that
//! changes makes no topic be indexed again.

use super::document::{Document, Kind, Place, TIMES};
use crate::ids::{EvidenceTime, SourceRef, TopicPath};
use crate::text::plain;
use crate::topic::{Anything, Check, Event, Sources, TopicRef};

/// A claim, as it is indexed and shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    /// The block's id and the number of the group in it, joined by `:`.
    id: String,
    label: String,
    time: String,
    /// What it says, as words: what is searched.
    words: String,
    /// Bytes that its block takes in the file, from which on.
    block_bytes: (u64, u64),
    /// What it says and when. What it rests on is what its citations name, whether that is there or not.
    pub event: Event,
    /// The headings it stands under, outermost first.
    pub headings: Vec<String>,
}

/// What a claim rests on, as far as it is there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Grounds {
    /// What it cites, each once.
    pub refs: Vec<SourceRef>,
    /// Whether that is everything it cites. If not, it must not be built on.
    pub complete: bool,
}

impl Claim {
    /// All claims of the topic at this path, in order. Costs time in proportion to the text.
    pub fn all(path: &TopicPath, text: &str) -> Vec<Claim> {
        let check = Check::new(path.clone(), TopicRef::parse(text), &Anything);
        let mut claims = Vec::new();
        for block in check.all_blocks() {
            let headings: Vec<String> = block.headings().into_iter().map(str::to_owned).collect();
            let name = path.below_topics();
            let label = [name.strip_suffix(".md").unwrap_or(name), &headings.join(" ")].join(" ");
            let body = block.body().span();
            for event in block.events() {
                let time = event.times.join(TIMES);
                claims.push(Claim {
                    id: format!("{}:{}", event.block, event.number),
                    label: label.clone(),
                    words: plain(said(&event.content, &time)),
                    time,
                    block_bytes: (body.start as u64, body.len() as u64),
                    headings: headings.clone(),
                    event,
                });
            }
        }
        claims
    }

    /// What the claims of the topic at this path rest on, as far as `sources` has it, in the order of [`Claim::all`].
    pub fn grounds(path: &TopicPath, text: &str, sources: &(impl Sources + ?Sized)) -> Vec<(String, Grounds)> {
        let check = Check::new(path.clone(), TopicRef::parse(text), sources);
        let events = check.all_blocks().flat_map(|block| block.events().collect::<Vec<_>>());
        let grounds = |event: Event| {
            (format!("{}:{}", event.block, event.number), Grounds { refs: event.refs, complete: event.complete })
        };
        events.map(grounds).collect()
    }

    /// By which it is known to the index: the block's id, `:`, and which of the block's claims it is, from 1.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Its times as they are written, joined by `; `; empty if it is undated.
    pub fn time(&self) -> &str {
        &self.time
    }

    /// What it says, its times left out.
    pub fn text(&self) -> &str {
        said(&self.event.content, &self.time)
    }

    /// As the index takes it.
    pub fn document(&self) -> Document<'_> {
        let (offset, length) = self.block_bytes;
        Document {
            id: &self.id,
            kind: Kind::Topic,
            time: &self.time,
            label: &self.label,
            speaker: None,
            by_machine: false,
            text: &self.words,
            place: Place { offset, header: 0, length, line: self.event.line as u64 },
        }
    }

    /// When it was: its times that there are.
    pub fn times(&self) -> impl Iterator<Item = EvidenceTime> {
        self.event.times.iter().filter_map(|time| EvidenceTime::parse(time))
    }
}

/// What an event says, without its times.
fn said<'c>(content: &'c str, time: &str) -> &'c str {
    let dated = content.strip_prefix('[').and_then(|rest| rest.strip_prefix(time));
    match dated.and_then(|rest| rest.strip_prefix("] ")) {
        Some(text) if !time.is_empty() => text,
        _ => content,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::search::{Index, Limits, Query, QueryRequest, Scratch, Weights};

    const TOPIC: &str = "# Boat\n\n## Keel\n\nThe bolts cost 640 euros,[^e-1] and later 710.[^e-2][^e-3] ^keel0001\n\n\
                         Nobody knows the wood.[^e-4] ^wood0001\n\n\
                         [^e-1]: Time: `2026-05-05`; Sources: [a](../sources/p/_v2/t.md#source-0123456789abcdef)\n\
                         [^e-2]: Time: `2026-05`; Sources: [a](../sources/p/_v2/t.md#source-0123456789abcdef)\n\
                         [^e-3]: Time: `2027`; Sources: [b](D1:2)\n\
                         [^e-4]: Time: `undated`; Sources: [b](D1:2)\n";

    fn path() -> TopicPath {
        TopicPath::parse("topics/the_kittiwake.md").unwrap()
    }

    fn found(text: &str, from: Option<&str>, to: Option<&str>) -> Vec<String> {
        let mut index = Index::new();
        for claim in Claim::all(&path(), TOPIC) {
            index.add(path().as_str(), &claim.document()).unwrap();
        }
        let limits = Limits { top_k_max: 10, query_bytes: 100 };
        let request = QueryRequest { text, top_k: 10, from, to, ..QueryRequest::default() };
        let view = index.view(&Weights::default(), |_| true);
        let ranking = index.search(&Query::parse(&request, &limits).unwrap(), &view, &mut Scratch::default()).unwrap();
        ranking.hits.into_iter().map(|hit| hit.id).collect()
    }

    #[test]
    fn a_claim_for_each_group_of_citations() {
        let claims = Claim::all(&path(), TOPIC);
        let shown: Vec<_> = claims.iter().map(|claim| (claim.id(), claim.time(), claim.text())).collect();
        assert_eq!(
            shown,
            [
                ("keel0001:1", "2026-05-05", "The bolts cost 640 euros,"),
                ("keel0001:2", "2026-05; 2027", "and later 710."),
                ("wood0001:1", "", "Nobody knows the wood."),
            ]
        );
        assert_eq!(claims[0].headings, ["Boat", "Keel"]);
        let document = claims[0].document();
        let block = &TOPIC[document.place.offset as usize..][..document.place.length as usize];
        assert!(block.starts_with("The bolts") && block.contains("710"), "{block}");
        assert_eq!(claims[1].times().count(), 2);
    }

    #[test]
    fn what_is_not_there_is_no_ground() {
        let grounds = Claim::grounds(&path(), TOPIC, &());
        let shown: Vec<_> = grounds.iter().map(|(id, grounds)| (id.as_str(), grounds.complete)).collect();
        // The first rests on nothing that is there; the second on one of two.
        assert_eq!(shown, [("keel0001:2", false), ("wood0001:1", true)]);
    }

    #[test]
    fn claims_are_found_by_their_headings_and_their_topic() {
        assert_eq!(found("keel", None, None).len(), 3);
        assert_eq!(found("kittiwake wood", None, None).first().map(String::as_str), Some("wood0001:1"));
    }

    #[test]
    fn each_time_of_a_claim_counts_and_one_without_does_not() {
        let keel = |from, to| found("bolts later wood", from, to);
        assert_eq!(keel(Some("2027"), None), ["keel0001:2"]);
        assert_eq!(keel(Some("2027-03"), Some("2027-03")), ["keel0001:2"]);
        assert_eq!(keel(None, Some("2026-05-04")), ["keel0001:2"]);
        assert_eq!(keel(Some("2026-06"), Some("2026-12")), [""; 0]);
        assert_eq!(keel(None, None).len(), 3);
    }
}
