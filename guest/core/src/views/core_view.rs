//! `core.md`: the part of the topics that an agent always sees.

use crate::ids::{BlockId, SourceRef, TopicPath};
use crate::topic::{Check, Item, Items};
use std::collections::{BTreeMap, BTreeSet};

/// The topic it is made from.
pub const CORE_TOPIC: &str = "topics/core.md";

/// The file it becomes.
pub const CORE_FILE: &str = "core.md";

/// More bytes than one token of any vocabulary has: what is longer than this for each token of the budget cannot fit, so
/// nobody need count it.
const TOKEN_BYTES_MAX: u64 = 1024;

/// A piece of the topic that is kept whole or not at all: lines without an empty one between them, and behind them the
/// definitions of what they cite that no piece before has brought.
#[derive(Clone, Debug)]
struct Chunk {
    text: String,
    /// Its last block, by its own id.
    block: Option<BlockId>,
    /// It cites something that may not be built on.
    pending: bool,
}

/// What `core.md` would be made of. Counting tokens is not done here: [`CoreDraft::texts`] says what to count.
#[derive(Clone, Debug)]
pub struct CoreDraft {
    chunks: Vec<Chunk>,
    budget: u64,
    /// Of the chunks that are not pending, so many can fit.
    counted: usize,
}

/// What `core.md` becomes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CoreView {
    /// The file's content.
    pub text: String,
    /// What it costs.
    pub tokens: u64,
    /// Blocks in it.
    pub blocks: u64,
    /// Blocks that are not: those that cite pending evidence, and all behind the first that did not fit. By their own
    /// ids, in order.
    pub left_out: Vec<BlockId>,
}

impl CoreDraft {
    /// Of the topic `topics/core.md`. `trusted` says whether evidence may be built on; a block that rests on any that may
    /// not is left out. `budget` is in tokens.
    pub fn new(topic: &Check<'_>, trusted: &dyn Fn(&SourceRef) -> bool, budget: u64) -> Self {
        let mut draft = Self { chunks: Vec::new(), budget, counted: 0 };
        let marks = marks_of(topic, trusted);
        let mut brought = BTreeSet::new();
        for piece in pieces(topic.topic().text()) {
            let mut chunk = Chunk { text: piece.text(topic), block: None, pending: false };
            let mut cited = Vec::new();
            for line in &piece.paragraphs {
                let Some(mark) = marks.get(line) else { continue };
                chunk.block = mark.block.clone().or(chunk.block);
                chunk.pending |= mark.pending;
                cited.extend(mark.cites.iter().copied());
            }
            if chunk.text.is_empty() {
                continue;
            }
            if !chunk.pending {
                let missing: Vec<_> = cited.into_iter().filter(|label| brought.insert(*label)).collect();
                chunk.add_definitions(topic, &missing);
            }
            draft.chunks.push(chunk);
        }
        draft.counted = draft.worth_counting();
        draft
    }

    /// How many chunks may fit, going by their bytes alone.
    fn worth_counting(&self) -> usize {
        let most = self.budget.saturating_add(1).saturating_mul(TOKEN_BYTES_MAX);
        let mut bytes = 0_u64;
        let offered = self.offered().take_while(|chunk| {
            let fits = bytes <= most;
            bytes = bytes.saturating_add(chunk.text.len() as u64);
            fits
        });
        offered.count()
    }

    fn offered(&self) -> impl Iterator<Item = &Chunk> {
        self.chunks.iter().filter(|chunk| !chunk.pending)
    }

    /// What it may cost, in tokens.
    pub fn budget(&self) -> u64 {
        self.budget
    }

    /// The texts whose tokens [`CoreDraft::render`] must know, in this order.
    pub fn texts(&self) -> Vec<String> {
        self.offered().take(self.counted).map(|chunk| chunk.text.clone()).collect()
    }

    /// The view: chunks from the first on, pending ones left out, until one does not fit. `tokens` are those of
    /// [`CoreDraft::texts`]; a text that nobody counted does not fit.
    pub fn render(&self, tokens: &[u64]) -> CoreView {
        let mut view = CoreView { text: String::new(), tokens: 0, blocks: 0, left_out: Vec::new() };
        let mut counts = tokens.iter();
        let mut full = false;
        for chunk in &self.chunks {
            let cost = if chunk.pending || full { None } else { counts.next() };
            let total = cost.and_then(|cost| view.tokens.checked_add(*cost)).filter(|total| *total <= self.budget);
            match total {
                Some(total) => {
                    view.tokens = total;
                    view.blocks += u64::from(chunk.block.is_some());
                    if !view.text.is_empty() {
                        view.text.push_str("\n\n");
                    }
                    view.text.push_str(&chunk.text);
                }
                None => {
                    full |= !chunk.pending;
                    view.left_out.extend(chunk.block.clone());
                }
            }
        }
        view.text.truncate(view.text.trim_end_matches(crate::text::is_whitespace).len());
        view.text.push('\n');
        view
    }
}

impl Chunk {
    fn add_definitions(&mut self, topic: &Check<'_>, labels: &[&str]) {
        let footnotes = labels.iter().filter_map(|label| topic.footnote(label));
        for (number, footnote) in footnotes.enumerate() {
            self.text.push_str(if number == 0 { "\n\n" } else { "\n" });
            self.text.push_str(&rebased(footnote.definition().lump().text().as_str(), topic.path()));
        }
    }
}

/// What is to be known of a paragraph.
struct Mark<'a> {
    block: Option<BlockId>,
    pending: bool,
    cites: Vec<&'a str>,
}

/// The paragraphs of a topic that are blocks, by the byte they begin at.
fn marks_of<'a>(topic: &Check<'a>, trusted: &dyn Fn(&SourceRef) -> bool) -> BTreeMap<usize, Mark<'a>> {
    let mut marks: BTreeMap<usize, Mark<'a>> = BTreeMap::new();
    for paragraph in topic.topic().paragraphs() {
        let cites = paragraph.citations().map(|citation| citation.label().as_str()).collect();
        marks.insert(paragraph.text().start(), Mark { block: None, pending: false, cites });
    }
    for block in topic.blocks() {
        let Some(mark) = marks.get_mut(&block.paragraph().text().start()) else { continue };
        mark.block = BlockId::parse(block.identity().as_str());
        mark.pending |= !block.evidence().all(trusted);
    }
    marks
}

/// Lines without an empty one between them.
#[derive(Default)]
struct Piece<'a> {
    /// Its lines but definitions; what is in a code fence is opaque.
    parts: Vec<(&'a str, bool)>,
    /// Where its paragraphs begin.
    paragraphs: Vec<usize>,
}

impl Piece<'_> {
    fn text(&self, topic: &Check<'_>) -> String {
        let parts = self.parts.iter().map(|(text, opaque)| match opaque {
            true => (*text).to_owned(),
            false => rebased(text, topic.path()),
        });
        let text: String = parts.collect();
        text.trim_end_matches(['\r', '\n']).to_owned()
    }
}

fn pieces(text: &str) -> Vec<Piece<'_>> {
    let mut pieces = vec![Piece::default()];
    for item in Items::new(text) {
        let lines = text.get(item.span()).unwrap_or_default();
        let Some(piece) = pieces.last_mut() else { break };
        match item {
            Item::Blank(_) => pieces.push(Piece::default()),
            Item::Definition(_) => {}
            Item::Paragraph(paragraph) => {
                piece.paragraphs.push(paragraph.text().start());
                piece.parts.push((lines, false));
            }
            Item::Fence(_) => piece.parts.push((lines, true)),
            Item::Heading(_) | Item::Comment(_) => piece.parts.push((lines, false)),
        }
    }
    pieces.retain(|piece| !piece.parts.is_empty());
    pieces
}

/// The text of a topic as it reads from the workspace's own directory: the path of each link leads from there. Links with a
/// scheme and absolute ones stay.
pub(super) fn rebased(text: &str, topic: &TopicPath) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("](") {
        let (before, link) = rest.split_at(at + 2);
        out.push_str(before);
        let end = link.find([')', '#']).unwrap_or(link.len());
        let (path, behind) = link.split_at(end);
        let stays = behind.is_empty() || path.starts_with('/') || has_scheme(path);
        let moved = match path {
            "" => Some(topic.as_str().to_owned()),
            path => topic.join(path),
        };
        match moved.filter(|_| !stays) {
            Some(moved) => out.push_str(&moved),
            None => out.push_str(path),
        }
        rest = behind;
    }
    out.push_str(rest);
    out
}

/// Whether a link's path is none: a colon in its first part, as in `https://…`, `mailto:…` and `D3:7`.
pub(super) fn has_scheme(path: &str) -> bool {
    path.split('/').next().is_some_and(|first| first.contains(':'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topic::TopicRef;

    fn path() -> TopicPath {
        TopicPath::parse(CORE_TOPIC).expect("a topic")
    }

    /// A view whose tokens are its bytes.
    fn view(text: &str, budget: u64) -> CoreView {
        let topic = Check::new(path(), TopicRef::parse(text), &());
        let trusted = |source: &SourceRef| source.to_string() != "D9:9";
        let draft = CoreDraft::new(&topic, &trusted, budget);
        let tokens: Vec<u64> = draft.texts().iter().map(|text| text.len() as u64).collect();
        draft.render(&tokens)
    }

    fn left_out(view: &CoreView) -> Vec<&str> {
        view.left_out.iter().map(BlockId::as_str).collect()
    }

    const TOPIC: &str = "# Core\n\nTea.[^a] ^one\n\nCoffee.[^b] ^two\n\nMilk.[^a][^c] ^three\n\n\
                         [^a]: Time: `2026`; Sources: [l](D1:1)\n[^b]: Time: `2026`; Sources: [l](D9:9)\n\
                         [^c]: Time: `2026`; Sources: [l](D1:2)\n";

    #[test]
    fn every_chunk_stands_alone() {
        let all = view(TOPIC, 10_000);
        let text = "# Core\n\nTea.[^a] ^one\n\n[^a]: Time: `2026`; Sources: [l](D1:1)\n\n\
                    Milk.[^a][^c] ^three\n\n[^c]: Time: `2026`; Sources: [l](D1:2)\n";
        assert_eq!((all.text.as_str(), all.blocks, left_out(&all)), (text, 2, vec!["two"]));
        // Whatever the budget, a definition comes with what cites it, and the text is a beginning of the whole.
        for budget in 0..all.tokens {
            let part = view(TOPIC, budget);
            assert!(part.tokens <= budget);
            assert!(all.text.starts_with(part.text.trim_end()), "{budget}: {}", part.text);
            for label in ["a", "c"] {
                let cited = part.text.contains(&format!("[^{label}] ^")) || part.text.contains(&format!("[^{label}]["));
                assert!(!cited || part.text.contains(&format!("[^{label}]: ")), "{budget}: {}", part.text);
            }
        }
    }

    #[test]
    fn the_first_that_does_not_fit_ends_it() {
        let text = "Long long long.[^a] ^one\n\nS.[^a] ^two\n\n[^a]: Time: `2026`; Sources: [l](D1:1)\n";
        let none = view(text, 60);
        assert_eq!((none.text.as_str(), left_out(&none)), ("\n", vec!["one", "two"]));
    }

    #[test]
    fn what_is_fenced_is_opaque() {
        let text = "```\n[a](b.md)\n\n[^x]: Time: `2026`; Sources: [l](D1:1)\n```\n[a](b.md)\n";
        let whole = view(text, 1000);
        let expected = "```\n[a](b.md)\n\n[^x]: Time: `2026`; Sources: [l](D1:1)\n```\n[a](topics/b.md)\n";
        assert_eq!(whole.text, expected);
    }

    #[test]
    fn links() {
        for (link, moved) in [
            ("[a](b.md)", "[a](topics/b.md)"),
            ("[a](../sources/x.md#y)", "[a](sources/x.md#y)"),
            ("[a](#^b)", "[a](topics/core.md#^b)"),
            ("[a](https://x/y#z) [b](/c) [d](mailto:e)", "[a](https://x/y#z) [b](/c) [d](mailto:e)"),
            ("[a](../../out.md)", "[a](../../out.md)"),
            ("[a](b", "[a](b"),
            ("](](x)", "](topics/](x)"),
        ] {
            assert_eq!(rebased(link, &path()), moved, "{link}");
        }
    }

    #[test]
    fn a_long_topic_is_not_counted_to_its_end() {
        let text = "word ".repeat(2000) + "\n\n";
        let topic = text.repeat(100);
        let topic = Check::new(path(), TopicRef::parse(&topic), &());
        let draft = CoreDraft::new(&topic, &|_| true, 10);
        assert!(draft.texts().len() < 4, "{}", draft.texts().len());
    }
}
