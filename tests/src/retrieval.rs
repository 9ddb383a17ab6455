//! Retrieval quality: conversations with questions whose evidence is known, and how high a ranking puts that evidence.
//!
//! A conversation is one workspace, a turn one record (`provider` the set, `thread` the conversation and its session,
//! `message` the turn). Knows the shape of the lines and the measures; what ranks is a [`Ranker`]. The sets themselves
//! are not part of this repository.

use std::collections::{BTreeMap, HashMap, HashSet};

use serde::Deserialize;
use serde_json::{Map, Value, json};

mod component;
mod native;

pub use component::Component;
pub use native::Native;

/// So many hits are looked at for the rank of the first evidence; behind them it counts as not found.
pub const DEPTH: u32 = 100;

/// The category of LoCoMo that asks about the wrong person: no part of its headline.
const APART: (&str, &str) = ("locomo", "5");

/// A line of a set.
#[derive(Debug, Deserialize)]
pub struct Conversation {
    /// The set's name.
    pub set: String,
    /// The conversation's, within the set.
    pub id: String,
    /// In their order.
    pub turns: Vec<Turn>,
    /// What is asked of them.
    pub queries: Vec<Question>,
}

/// Something that was said.
#[derive(Debug, Deserialize)]
pub struct Turn {
    /// Within the conversation.
    pub id: String,
    /// The part of the conversation it belongs to.
    pub session: String,
    /// A name; empty or the role where nobody has one.
    pub speaker: Option<String>,
    /// `user` or `assistant`.
    pub role: String,
    /// ISO 8601, as far as known.
    pub time: Option<String>,
    /// What was said.
    pub text: String,
}

/// A question about a conversation.
#[derive(Debug, Deserialize)]
pub struct Question {
    /// Its words.
    pub text: String,
    /// Its kind, within the set.
    pub category: String,
    /// Ids of the turns that answer it.
    pub evidence: Vec<String>,
}

/// A turn as a caller archives it.
#[derive(Clone, Debug)]
pub struct Archived<'a> {
    /// The set.
    pub provider: &'a str,
    /// Conversation and session.
    pub thread: String,
    /// The turn.
    pub turn: &'a Turn,
    /// Its place in the conversation.
    pub ordinal: i64,
    /// The speaker, where the turn names one.
    pub display: Option<&'a str>,
}

impl Conversation {
    /// Its turns as they are archived.
    pub fn archived(&self) -> impl Iterator<Item = Archived<'_>> {
        self.turns.iter().zip(0..).map(|(turn, ordinal)| Archived {
            provider: &self.set,
            thread: format!("{}-{}", self.id, turn.session),
            turn,
            ordinal,
            display: turn.speaker.as_deref().filter(|name| !name.is_empty() && *name != turn.role),
        })
    }
}

/// Something that ranks the turns of a conversation.
pub trait Ranker {
    /// Takes a conversation in, in place of the one before.
    ///
    /// # Errors
    /// It cannot be archived; the text is for people.
    fn take(&mut self, conversation: &Conversation) -> Result<(), String>;

    /// Record ids of the best [`DEPTH`] hits, best first; none where the query says nothing to look for.
    ///
    /// # Errors
    /// The search fails; the text is for people.
    fn rank(&mut self, text: &str) -> Result<Vec<String>, String>;
}

/// The engines, as the command line names them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum RankerName {
    /// Core, called directly.
    Native,
    /// The shipped component `memory` over a real directory, through the host library.
    Component,
}

impl RankerName {
    /// Makes the engine ready; `settings` are those of search, by name.
    ///
    /// # Errors
    /// A setting is none, or the component does not start.
    pub fn start(self, settings: &[(String, String)]) -> Result<Box<dyn Ranker>, Box<dyn std::error::Error>> {
        Ok(match self {
            Self::Native => Box::new(Native::start(settings)?),
            Self::Component => Box::new(Component::start(settings)?),
        })
    }
}

/// Sums over questions.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Sums {
    questions: u64,
    recall: [f64; 3],
    reciprocal_rank: f64,
    ndcg: f64,
}

/// Where recall is measured.
const CUTS: [usize; 3] = [1, 5, 10];

impl Sums {
    /// Adds a question: its evidence, and the turns that were found, best first.
    fn add(&mut self, evidence: &HashSet<&str>, found: &[&str]) {
        let is_evidence = |turn: &&&str| evidence.contains(**turn);
        self.questions += 1;
        for (sum, cut) in self.recall.iter_mut().zip(CUTS) {
            let hits = found.iter().take(cut).filter(is_evidence).count();
            *sum += hits as f64 / evidence.len() as f64;
        }
        if let Some(first) = found.iter().position(|turn| evidence.contains(turn)) {
            self.reciprocal_rank += 1.0 / (first as f64 + 1.0);
        }
        let gain = |rank: usize| 1.0 / (rank as f64 + 2.0).log2();
        let gained: f64 =
            found.iter().take(10).enumerate().filter(|(_, turn)| is_evidence(turn)).map(|(rank, _)| gain(rank)).sum();
        let most: f64 = (0..evidence.len().min(10)).map(gain).sum();
        self.ndcg += gained / most;
    }

    fn plus(mut self, other: &Sums) -> Sums {
        self.questions += other.questions;
        for (sum, more) in self.recall.iter_mut().zip(other.recall) {
            *sum += more;
        }
        self.reciprocal_rank += other.reciprocal_rank;
        self.ndcg += other.ndcg;
        self
    }

    fn shown(&self) -> Map<String, Value> {
        let mean = |sum: f64| if self.questions == 0 { Value::Null } else { json!(sum / self.questions as f64) };
        let mut shown = Map::new();
        shown.insert("n".to_owned(), json!(self.questions));
        for (cut, sum) in CUTS.iter().zip(self.recall) {
            shown.insert(format!("recall@{cut}"), mean(sum));
        }
        shown.insert("mrr".to_owned(), mean(self.reciprocal_rank));
        shown.insert("ndcg@10".to_owned(), mean(self.ndcg));
        shown
    }
}

/// What was measured so far.
#[derive(Debug, Default)]
pub struct Report {
    /// By set, then category.
    sets: BTreeMap<String, BTreeMap<String, Sums>>,
}

impl Report {
    /// Asks every question of a conversation.
    ///
    /// # Errors
    /// The ranker's; or a question has no evidence, or evidence that is no turn.
    pub fn run(&mut self, ranker: &mut dyn Ranker, conversation: &Conversation) -> Result<(), String> {
        ranker.take(conversation)?;
        let turns: HashMap<String, &str> = conversation
            .archived()
            .map(|kept| (format!("{}/{}/{}", kept.provider, kept.thread, kept.turn.id), kept.turn.id.as_str()))
            .collect();
        let known: HashSet<&str> = turns.values().copied().collect();
        for question in &conversation.queries {
            let evidence: HashSet<&str> = question.evidence.iter().map(String::as_str).collect();
            if evidence.is_empty() || !evidence.is_subset(&known) {
                return Err(format!("{}: a question without evidence among the turns", conversation.id));
            }
            let ranked = ranker.rank(&question.text)?;
            let found: Vec<&str> = ranked.iter().filter_map(|id| turns.get(id.as_str()).copied()).collect();
            let set = self.sets.entry(conversation.set.clone()).or_default();
            set.entry(question.category.clone()).or_default().add(&evidence, &found);
        }
        Ok(())
    }

    /// The document of the command: fractions by set, without the category that stands apart, and by category.
    #[must_use]
    pub fn shown(&self) -> Value {
        let sets = self.sets.iter().map(|(name, categories)| {
            let counts = |category: &str| (name.as_str(), category) != APART;
            let total = categories
                .iter()
                .filter(|(category, _)| counts(category))
                .fold(Sums::default(), |total, (_, sums)| total.plus(sums));
            let mut shown = total.shown();
            let parts = categories.iter().map(|(name, sums)| (name.clone(), Value::Object(sums.shown())));
            shown.insert("categories".to_owned(), Value::Object(parts.collect()));
            (name.clone(), Value::Object(shown))
        });
        json!({"sets": sets.collect::<Map<_, _>>()})
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sums(evidence: &[&str], found: &[&str]) -> Sums {
        let mut sums = Sums::default();
        sums.add(&evidence.iter().copied().collect(), found);
        sums
    }

    #[test]
    fn the_measures_are_those_of_the_field() {
        let all = sums(&["a", "b"], &["a", "b", "c"]);
        assert_eq!((all.recall, all.reciprocal_rank, all.ndcg), ([0.5, 1.0, 1.0], 1.0, 1.0));
        let late = sums(&["a"], &["x", "y", "a"]);
        assert_eq!((late.recall, late.reciprocal_rank), ([0.0, 1.0, 1.0], 1.0 / 3.0));
        assert!((late.ndcg - 0.5).abs() < 1e-12);
        let none = sums(&["a"], &["x"; 20]);
        assert_eq!((none.recall, none.reciprocal_rank, none.ndcg), ([0.0; 3], 0.0, 0.0));
        // Behind the tenth a hit counts for the rank of the first evidence alone.
        let mut found = vec!["x"; 10];
        found.push("a");
        assert_eq!(
            sums(&["a"], &found),
            Sums { questions: 1, recall: [0.0; 3], reciprocal_rank: 1.0 / 11.0, ndcg: 0.0 }
        );
    }

    /// Finds what was said by the words of the question, nothing else.
    struct Words(Vec<(String, String)>);

    impl Ranker for Words {
        fn take(&mut self, conversation: &Conversation) -> Result<(), String> {
            let id = |kept: &Archived<'_>| format!("{}/{}/{}", kept.provider, kept.thread, kept.turn.id);
            self.0 = conversation.archived().map(|kept| (id(&kept), kept.turn.text.clone())).collect();
            Ok(())
        }

        fn rank(&mut self, text: &str) -> Result<Vec<String>, String> {
            Ok(self.0.iter().filter(|(_, said)| said.contains(text)).map(|(id, _)| id.clone()).collect())
        }
    }

    #[test]
    fn the_wrong_person_stands_apart() {
        let line = r#"{"set": "locomo", "id": "c", "turns": [
            {"id": "1", "session": "s", "speaker": "Ada", "role": "user", "time": null, "text": "red"},
            {"id": "2", "session": "s", "speaker": "", "role": "user", "time": "2024-01-01", "text": "blue"}],
            "queries": [{"text": "red", "category": "1", "evidence": ["1"]}, {"text": "none", "category": "5", "evidence": ["2"]}]}"#;
        let conversation: Conversation = serde_json::from_str(line).unwrap();
        assert_eq!(conversation.archived().map(|kept| kept.display).collect::<Vec<_>>(), [Some("Ada"), None]);
        let mut report = Report::default();
        report.run(&mut Words(Vec::new()), &conversation).unwrap();
        let shown = &report.shown()["sets"]["locomo"];
        assert_eq!((&shown["n"], &shown["recall@10"]), (&json!(1), &json!(1.0)));
        assert_eq!(shown["categories"]["5"]["recall@10"], json!(0.0));
    }
}
