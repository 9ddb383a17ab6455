//! Putting memory in order: which topics need it, why, in which runs, and what came of it.
//!
//! Decided by sizes and counts that whoever derived the topics knows; nothing is read here. Must not know where they come from.

use super::facts::{are_alike, grams, numbers};
use super::limits::OrganiserLimits;
use super::outcome::{Ending, Outcome};
use crate::ids::BlockId;
use crate::prompt::{ShownBlock, quoted};
use crate::topic::Check;
use std::collections::{BTreeMap, BTreeSet};

/// Blocks that are compared with each other.
const COMPARED: usize = 200;
/// Pairs of them that are told.
const PAIRS: usize = 50;
/// Ids that are named of what is wrong with a topic.
const NAMED: usize = 20;

/// What is known of a topic.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TopicShape {
    /// Its path.
    pub path: String,
    /// Its bytes.
    pub bytes: u64,
    /// Its blocks.
    pub blocks: u64,
    /// Its headings of the first level that occurs in it: the subjects it is about.
    pub subjects: u64,
    /// Ids of its blocks with links that lead nowhere.
    pub broken_links: Vec<String>,
    /// Pairs of its blocks that seem to say the same and may be merged.
    pub alike: u64,
}

impl TopicShape {
    /// Of a topic and its blocks as an organiser would be shown them. `is_there` says whether any topic has a block of this id. Blocks
    /// of which one rests on a sibling branch of what the other rests on are not counted as alike: they stay apart.
    #[must_use]
    pub fn of(
        topic: &Check<'_>,
        shown: &[ShownBlock],
        is_there: impl Fn(&BlockId) -> bool,
        are_siblings: impl Fn(&str, &str) -> bool,
    ) -> Self {
        let levels = || topic.topic().headings().map(|heading| heading.level());
        let first = levels().min();
        let blocks = || topic.all_blocks();
        let is_broken = |id: &BlockId| !is_there(id);
        let broken = blocks().filter(|block| block.relations().iter().any(is_broken));
        Self {
            path: topic.path().to_string(),
            bytes: topic.topic().text().len() as u64,
            blocks: blocks().count() as u64,
            subjects: levels().filter(|level| Some(*level) == first).count() as u64,
            broken_links: broken.map(|block| block.identity().as_str().to_owned()).collect(),
            alike: mergeable(shown, are_siblings),
        }
    }
}

/// Pairs of blocks that are alike, do not differ in a number and do not rest on sibling branches.
fn mergeable(blocks: &[ShownBlock], are_siblings: impl Fn(&str, &str) -> bool) -> u64 {
    let of = |id: &String| blocks.iter().find(|block| block.id == *id).map_or(&[][..], |block| &block.sources);
    let may_be_merged = |pair: &Alike| {
        let (a, b) = (of(&pair.ids.0), of(&pair.ids.1));
        !pair.do_numbers_differ && !a.iter().any(|a| b.iter().any(|b| are_siblings(a, b)))
    };
    alike(blocks).iter().filter(|pair| may_be_merged(pair)).count() as u64
}

/// What is known of the topic that is always shown, if it does not fit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CoreShape {
    /// Its topic's path.
    pub path: String,
    /// Tokens that there are (`views.core-budget`).
    pub budget: u64,
    /// Ids of its blocks that did not fit. None: it fits.
    pub left_out: Vec<String>,
}

/// Why a topic needs to be put in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NeedReason {
    /// Of what is always shown, these blocks did not fit into so many tokens.
    CoreOverflow {
        /// Tokens.
        budget: u64,
        /// The blocks.
        left_out: Vec<String>,
    },
    /// These blocks have links that lead nowhere.
    BrokenLinks(Vec<String>),
    /// It has more bytes than `organiser.file-bytes`.
    TooLong(u64),
    /// It has more blocks than `organiser.file-blocks`.
    TooManyBlocks(u64),
    /// So many pairs of its blocks seem to say the same.
    Alike(u64),
    /// It has several headings of its first level.
    SeveralSubjects(u64),
}

impl NeedReason {
    /// In words.
    fn told(&self) -> String {
        let ids = |ids: &[String]| {
            let mut named: Vec<String> = ids.iter().take(NAMED).map(|id| format!("^{id}")).collect();
            if let Some(more) = ids.len().checked_sub(NAMED).filter(|more| *more > 0) {
                named.push(format!("and {more} more"));
            }
            named.join(", ")
        };
        match self {
            Self::CoreOverflow { budget, left_out } => {
                format!("does not fit into the {budget} tokens that are always shown; left out are {}", ids(left_out))
            }
            Self::BrokenLinks(blocks) => format!("has links that lead nowhere, in {}", ids(blocks)),
            Self::TooLong(bytes) => format!("has {bytes} bytes, which is too long for one topic"),
            Self::TooManyBlocks(blocks) => format!("has {blocks} blocks, which are too many for one topic"),
            Self::Alike(1) => "has two blocks that seem to say the same".to_owned(),
            Self::Alike(pairs) => format!("has {pairs} pairs of blocks that seem to say the same"),
            Self::SeveralSubjects(subjects) => format!("has {subjects} headings of the first level"),
        }
    }

    /// What is seen to first.
    const fn rank(&self) -> u8 {
        match self {
            Self::CoreOverflow { .. } => 0,
            Self::BrokenLinks(_) => 1,
            Self::TooLong(_) | Self::TooManyBlocks(_) => 2,
            Self::Alike(_) => 3,
            Self::SeveralSubjects(_) => 4,
        }
    }
}

/// A topic that needs to be put in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Need {
    /// Its path.
    pub path: String,
    /// Its bytes.
    pub bytes: u64,
    /// Why: at least one reason.
    pub reasons: Vec<NeedReason>,
}

/// What one run is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Needs {
    topics: Vec<Need>,
    shown_bytes: u64,
}

impl Needs {
    /// The topics, most urgent first. Their blocks are what the run is shown.
    #[must_use]
    pub fn topics(&self) -> &[Need] {
        &self.topics
    }

    pub(super) const fn shown_bytes(&self) -> u64 {
        self.shown_bytes
    }

    /// What the organiser is told: a line a topic, and a line for each two blocks that are alike.
    pub(super) fn lines(&self, blocks: &[ShownBlock]) -> String {
        let mut lines: Vec<String> = Vec::new();
        for need in &self.topics {
            let reasons: Vec<String> = need.reasons.iter().map(NeedReason::told).collect();
            lines.push(format!("{} {}", need.path, reasons.join("; ")));
        }
        for pair in alike(blocks) {
            let differs = if pair.do_numbers_differ { ", but differ in numbers: both stay" } else { "" };
            lines.push(format!("^{} and ^{} are alike{differs}", pair.ids.0, pair.ids.1));
        }
        quoted(&lines.join("\n"), usize::MAX)
    }
}

/// Which topics need to be put in order, in runs. Most urgent first: what is always shown and does not fit, links, size, blocks that say the
/// same, subjects; the larger topic before the smaller.
#[must_use]
pub fn needs(topics: &[TopicShape], core: Option<&CoreShape>, limits: &OrganiserLimits) -> Vec<Needs> {
    let mut found: Vec<Need> = topics.iter().filter_map(|topic| need(topic, core, limits)).collect();
    let urgency = |need: &Need| need.reasons.iter().map(NeedReason::rank).min();
    found.sort_by(|a, b| (urgency(a), b.bytes, &a.path).cmp(&(urgency(b), a.bytes, &b.path)));
    let mut runs: Vec<Needs> = Vec::new();
    for need in found {
        let fits = |run: &&mut Needs| {
            let bytes: u64 = run.topics.iter().map(|topic| topic.bytes).sum();
            (run.topics.len() as u64) < limits.files && bytes.saturating_add(need.bytes) <= limits.shown_bytes
        };
        match runs.last_mut().filter(fits) {
            Some(run) => run.topics.push(need),
            None => runs.push(Needs { topics: vec![need], shown_bytes: limits.shown_bytes }),
        }
    }
    runs
}

fn need(topic: &TopicShape, core: Option<&CoreShape>, limits: &OrganiserLimits) -> Option<Need> {
    let mut reasons = Vec::new();
    if let Some(core) = core.filter(|core| core.path == topic.path && !core.left_out.is_empty()) {
        reasons.push(NeedReason::CoreOverflow { budget: core.budget, left_out: core.left_out.clone() });
    }
    if !topic.broken_links.is_empty() {
        reasons.push(NeedReason::BrokenLinks(topic.broken_links.clone()));
    }
    // A topic of one block cannot be split.
    if topic.bytes > limits.file_bytes && topic.blocks > 1 {
        reasons.push(NeedReason::TooLong(topic.bytes));
    }
    if topic.blocks > limits.file_blocks {
        reasons.push(NeedReason::TooManyBlocks(topic.blocks));
    }
    if topic.alike > 0 {
        reasons.push(NeedReason::Alike(topic.alike));
    }
    if topic.subjects > 1 {
        reasons.push(NeedReason::SeveralSubjects(topic.subjects));
    }
    (!reasons.is_empty()).then(|| Need { path: topic.path.clone(), bytes: topic.bytes, reasons })
}

/// Two blocks that may say the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Alike {
    /// Their ids.
    pub ids: (String, String),
    /// There is a number in one that is not in the other: they do not say the same.
    pub do_numbers_differ: bool,
}

/// Blocks that are alike, of the first 200; at most 50 pairs.
#[must_use]
pub fn alike(blocks: &[ShownBlock]) -> Vec<Alike> {
    let known: Vec<(&ShownBlock, BTreeSet<[char; 3]>)> =
        blocks.iter().take(COMPARED).map(|block| (block, grams(&block.text))).collect();
    let mut pairs = Vec::new();
    for (at, (a, grams_a)) in known.iter().enumerate() {
        for (b, grams_b) in known.iter().skip(at + 1) {
            if are_alike(grams_a, grams_b) {
                let do_numbers_differ = numbers(&a.text) != numbers(&b.text);
                pairs.push(Alike { ids: (a.id.clone(), b.id.clone()), do_numbers_differ });
                if pairs.len() >= PAIRS {
                    return pairs;
                }
            }
        }
    }
    pairs
}

/// What came of putting memory in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Organised {
    /// Topics that have changed, each once, ascending.
    pub changed: Vec<String>,
    /// Topics that needed it and have not, with the reason in words: the organiser's, or of what its run failed.
    pub unchanged: BTreeMap<String, String>,
}

/// Sums runs up. None: nothing needed it, which is all there is to say.
#[must_use]
pub fn organised<'r>(runs: impl IntoIterator<Item = (&'r Needs, &'r Outcome)>) -> Organised {
    let mut changed = BTreeSet::new();
    let mut unchanged = BTreeMap::new();
    for (needs, outcome) in runs {
        let why = match &outcome.ending {
            Ending::Committed { .. } => "the organiser left it as it is".to_owned(),
            Ending::NoProgress { reason } if reason.is_empty() => {
                "the organiser changed nothing and did not say why".to_owned()
            }
            Ending::NoProgress { reason } => format!("the organiser changed nothing: {reason}"),
            Ending::Failed(failure) => format!("{}: {}", failure.failure.code.as_str(), failure.message),
        };
        changed.extend(outcome.files.iter().cloned());
        unchanged.extend(needs.topics.iter().map(|need| (need.path.clone(), why.clone())));
    }
    unchanged.retain(|path, _| !changed.contains(path));
    Organised { changed: changed.into_iter().collect(), unchanged }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(path: &str, bytes: u64, blocks: u64, subjects: u64) -> TopicShape {
        TopicShape { path: path.into(), bytes, blocks, subjects, broken_links: vec![], alike: 0 }
    }

    #[test]
    fn the_shape_of_a_topic() {
        use crate::ids::TopicPath;
        use crate::topic::TopicRef;
        let text = "## A\n\nSee [b](b.md#^b1) and [c](c.md#^c1).[^x] ^a1\n\n### Below\n\n## B\n\nMore.[^x] ^a2\n";
        let topic = Check::new(TopicPath::parse("topics/a.md").expect("a topic"), TopicRef::parse(text), &());
        let found = TopicShape::of(&topic, &[], |id| id.as_str() == "b1", |_, _| false);
        let expected = TopicShape { broken_links: vec!["a1".into()], ..shape("topics/a.md", text.len() as u64, 2, 2) };
        assert_eq!(found, expected);
    }

    #[test]
    fn what_needs_it_most_comes_first() {
        let limits = OrganiserLimits { file_bytes: 100, file_blocks: 5, files: 2, shown_bytes: 1000 };
        let broken = TopicShape { broken_links: vec!["b1".into()], ..shape("topics/links.md", 10, 1, 1) };
        let core = CoreShape { path: "topics/core.md".into(), budget: 7, left_out: vec!["c9".into()] };
        let topics = [
            shape("topics/two.md", 10, 2, 2),
            shape("topics/long.md", 200, 2, 1),
            shape("topics/longer.md", 300, 2, 1),
            shape("topics/fine.md", 99, 5, 1),
            shape("topics/one-long-block.md", 999, 1, 1),
            broken,
            shape("topics/core.md", 20, 3, 1),
            TopicShape { alike: 1, ..shape("topics/twice.md", 5, 2, 1) },
        ];
        let runs = needs(&topics, Some(&core), &limits);
        let paths: Vec<Vec<&str>> =
            runs.iter().map(|run| run.topics().iter().map(|need| need.path.as_str()).collect()).collect();
        let expected = [
            vec!["topics/core.md", "topics/links.md"],
            vec!["topics/longer.md", "topics/long.md"],
            vec!["topics/twice.md", "topics/two.md"],
        ];
        assert_eq!(paths, expected);
        let lines = runs[0].lines(&[]);
        assert!(lines.starts_with("| topics/core.md does not fit into the 7 tokens"), "{lines}");
        assert!(lines.contains("^c9") && lines.contains("^b1"), "{lines}");
        assert_eq!(needs(&topics[3..5], None, &limits), []);
    }

    #[test]
    fn a_run_shows_no_more_than_it_may() {
        let limits = OrganiserLimits { file_bytes: 1, file_blocks: 5, files: 9, shown_bytes: 100 };
        let topics: Vec<TopicShape> = (0..4).map(|n| shape(&format!("topics/{n}.md"), 60, 2, 1)).collect();
        assert_eq!(needs(&topics, None, &limits).len(), 4);
        assert_eq!(needs(&topics, None, &OrganiserLimits { shown_bytes: 120, ..limits }).len(), 2);
    }

    #[test]
    fn what_is_alike_and_what_only_looks_so() {
        let block = |id: &str, text: &str| ShownBlock {
            id: id.into(),
            others: vec![],
            path: "topics/a.md".into(),
            headings: vec![],
            text: text.into(),
            times: vec![],
            sources: vec![],
        };
        let blocks = [
            block("a", "The hall costs 640 euros a day."),
            block("b", "The hall costs 640 euros per day."),
            block("c", "The hall costs 650 euros a day."),
            block("d", "Ada drinks tea."),
        ];
        let pairs: Vec<_> = alike(&blocks).into_iter().map(|pair| (pair.ids, pair.do_numbers_differ)).collect();
        let pair = |a: &str, b: &str| (a.to_owned(), b.to_owned());
        assert_eq!(pairs[..2], [(pair("a", "b"), false), (pair("a", "c"), true)]);
        assert!(pairs.iter().all(|(ids, _)| ids.1 != "d"));
        // Two of them may be merged, unless what they rest on was said on sibling branches.
        let mut blocks = blocks;
        for block in &mut blocks {
            block.sources = vec![format!("p/t/{}", block.id)];
        }
        assert_eq!(mergeable(&blocks, |_, _| false), 1);
        assert_eq!(mergeable(&blocks, |a, b| (a, b) == ("p/t/a", "p/t/b")), 0);
    }
}
