//! How `core.md` was made: what is kept of it so that nobody counts the same text twice, and so that a host which can only
//! estimate does not undo what one that counts has made.

use super::core_view::{CoreDraft, CoreView};
use super::json::quote;
use crate::digest::Digest;
use crate::ids::BlockId;
use serde::Deserialize;
use std::collections::BTreeMap;

/// Name of the file in the runtime directory.
pub const CORE_STATE: &str = "recollex-core.json";

/// The vocabulary that tokens are counted by.
pub const VOCABULARY: &str = "o200k_base";

const VERSION: u64 = 1;

/// Hexadecimal digits of a text's SHA-256 that stand for it.
const TEXT_DIGITS: usize = 32;

/// How `core.md` was made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CoreState {
    /// Of the file.
    file: String,
    /// `views.core-budget` as it was.
    pub budget: u64,
    /// What the file costs; an estimate unless `exact`.
    pub tokens: u64,
    /// Whether every text that decided was counted by the vocabulary itself.
    pub exact: bool,
    /// Blocks in it.
    pub blocks: u64,
    /// Blocks that are not: see [`CoreView::left_out`].
    pub left_out: Vec<BlockId>,
    /// Tokens of texts, those that were counted exactly.
    counts: BTreeMap<String, u64>,
}

/// The file as it is written.
#[derive(Deserialize)]
struct File {
    version: u64,
    file: String,
    budget: u64,
    tokens: u64,
    exact: bool,
    blocks: u64,
    left_out: Vec<String>,
    counts: BTreeMap<String, u64>,
}

fn key(text: &str) -> String {
    Digest::of(text.as_bytes()).hex_prefix(TEXT_DIGITS)
}

impl CoreState {
    /// Reads the file. None if it is none, or of another version: then `core.md` is as if another program had made it.
    pub fn read(text: &str) -> Option<Self> {
        let file: File = serde_json::from_str(text).ok().filter(|file: &File| file.version == VERSION)?;
        let File { file, budget, tokens, exact, blocks, left_out, counts, .. } = file;
        let left_out = left_out.iter().filter_map(|id| BlockId::parse(id)).collect();
        Some(Self { file, budget, tokens, exact, blocks, left_out, counts })
    }

    /// The file's content.
    pub fn write(&self) -> String {
        let Self { file, budget, tokens, exact, blocks, .. } = self;
        let mut out = format!("{{\n  \"version\": {VERSION},\n  \"file\": ");
        quote(file, &mut out);
        out.push_str(&format!(
            ",\n  \"budget\": {budget},\n  \"tokens\": {tokens},\n  \"exact\": {exact},\n  \"blocks\": {blocks},\n  \"left_out\": ["
        ));
        for (number, id) in self.left_out.iter().enumerate() {
            out.push_str(if number > 0 { ", " } else { "" });
            quote(id.as_str(), &mut out);
        }
        out.push_str("],\n  \"counts\": {");
        for (number, (text, tokens)) in self.counts.iter().enumerate() {
            out.push_str(if number > 0 { ",\n    " } else { "\n    " });
            quote(text, &mut out);
            out.push_str(&format!(": {tokens}"));
        }
        out.push_str(if self.counts.is_empty() { "}\n}\n" } else { "\n  }\n}\n" });
        out
    }

    /// Whether `core.md`, with this content, is the file that was made then.
    pub fn is_of(&self, content: &[u8]) -> bool {
        self.file == Digest::of(content).hex()
    }
}

/// A draft, and what is known of its tokens already.
#[derive(Clone, Debug)]
pub struct CoreCount {
    draft: CoreDraft,
    known: BTreeMap<String, u64>,
}

/// What `core.md` becomes, and what is to be kept of that.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CoreMade {
    /// The view.
    pub view: CoreView,
    /// Goes beside it, in the same commit.
    pub state: CoreState,
}

impl CoreCount {
    /// Of a draft; `before` is what was kept when the view was made last.
    pub fn new(draft: CoreDraft, before: Option<&CoreState>) -> Self {
        let known = before.map_or_else(BTreeMap::new, |state| state.counts.clone());
        Self { draft, known }
    }

    /// The texts that somebody must count, in this order: those that nobody has counted exactly before.
    pub fn texts(&self) -> Vec<String> {
        let mut texts = self.draft.texts();
        texts.retain(|text| !self.known.contains_key(&key(text)));
        texts
    }

    /// The view. `tokens` are those of [`CoreCount::texts`], all of them exact or none.
    pub fn make(self, tokens: &[u64], exact: bool) -> CoreMade {
        let mut given = tokens.iter().copied();
        let mut counts = BTreeMap::new();
        let mut all = Vec::new();
        let mut is_exact = true;
        for text in self.draft.texts() {
            let key = key(&text);
            let known = self.known.get(&key).copied();
            // A text that nobody counted does not fit.
            let tokens = known.or_else(|| given.next()).unwrap_or(u64::MAX);
            all.push(tokens);
            is_exact &= known.is_some() || exact;
            if known.is_some() || exact {
                counts.insert(key, tokens);
            }
        }
        let view = self.draft.render(&all);
        let state = CoreState {
            file: Digest::of(view.text.as_bytes()).hex(),
            budget: self.draft.budget(),
            tokens: view.tokens,
            exact: is_exact,
            blocks: view.blocks,
            left_out: view.left_out.clone(),
            counts,
        };
        CoreMade { view, state }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::TopicPath;
    use crate::topic::{Check, TopicRef};

    fn draft(text: &str, budget: u64) -> CoreDraft {
        let path = TopicPath::parse("topics/core.md").expect("a topic");
        CoreDraft::new(&Check::new(path, TopicRef::parse(text), &()), &|_| true, budget)
    }

    fn tokens(texts: &[String], each: u64) -> Vec<u64> {
        texts.iter().map(|_| each).collect()
    }

    const TOPIC: &str = "# Core\n\nTea.[^a] ^one\n\nMilk.[^a] ^two\n\n[^a]: Time: `2026`; Sources: [l](D1:1)\n";

    #[test]
    fn the_file_comes_back() {
        let count = CoreCount::new(draft(TOPIC, 25), None);
        let made = count.clone().make(&tokens(&count.texts(), 10), true);
        assert_eq!((made.view.tokens, made.state.exact), (20, true));
        let written = made.state.write();
        assert!(serde_json::from_str::<serde_json::Value>(&written).is_ok(), "{written}");
        assert_eq!(CoreState::read(&written).as_ref(), Some(&made.state));
        assert!(made.state.is_of(made.view.text.as_bytes()) && !made.state.is_of(b"x"));
        for bad in ["", "{}", "[]", &written.replace("\"version\": 1", "\"version\": 2")] {
            assert_eq!(CoreState::read(bad), None, "{bad}");
        }
        let nothing = CoreCount::new(draft("", 25), None).make(&[], false);
        assert_eq!(CoreState::read(&nothing.state.write()), Some(nothing.state));
    }

    #[test]
    fn what_was_counted_is_not_estimated() {
        let first = CoreCount::new(draft(TOPIC, 40), None);
        let exact = first.clone().make(&tokens(&first.texts(), 10), true);
        // A host that estimates makes the same file of the same topic, and is asked for nothing.
        let again = CoreCount::new(draft(TOPIC, 40), Some(&exact.state));
        assert!(again.texts().is_empty());
        assert_eq!(again.make(&[], false), exact);
        // Of another topic, only what is new is estimated, and that is said.
        let more = TOPIC.replace("Milk.[^a] ^two", "Milk.[^a] ^two\n\nRice.[^a] ^three");
        let more = CoreCount::new(draft(&more, 45), Some(&exact.state));
        assert_eq!(more.texts(), ["Rice.[^a] ^three"]);
        let estimated = more.make(&[20], false);
        assert_eq!((estimated.view.blocks, estimated.state.exact), (2, false));
        assert_eq!(estimated.state.left_out.iter().map(BlockId::as_str).collect::<Vec<_>>(), ["three"]);
        // An estimate is not kept: a host that counts is asked for it.
        let counted = CoreCount::new(draft(TOPIC, 40), Some(&estimated.state));
        assert!(counted.texts().is_empty());
        assert_eq!(estimated.state.counts.len(), 3);
    }

    #[test]
    fn what_nobody_counted_does_not_fit() {
        let made = CoreCount::new(draft(TOPIC, 100), None).make(&[1], true);
        assert_eq!((made.view.text.as_str(), made.view.left_out.len()), ("# Core\n", 2));
    }
}
