//! Conversations of any length and queries for them, to measure search by.
//!
//! Everything is made from a message's number: the same number gives the same message on every machine, and a longer
//! corpus begins as a shorter one does. Words follow Zipf's law as Mandelbrot has it: the word of rank `r` is drawn in
//! proportion to `1 / (r + 5)`, which is what is left of a text without its function words. No word is one in any language
//! and no stemmer takes anything off one, so every engine looks for the same words.
//!
//! Knows what is said and asked. Must not know who indexes it.

use std::io::{self, Write};

use serde_json::json;

use crate::exports::{Random, utc};

/// Different words.
const WORDS: u64 = 100_000;
const SHIFT: u64 = 5;
/// Words of a message: 22 on average.
const LENGTHS: (u64, u64) = (4, 40);
/// Messages of a conversation.
pub const THREAD: u64 = 200;
/// Seconds from a message to the next.
const PAUSE: u64 = 97;
const BEGIN: u64 = 1_600_000_000;
const NAMES: [&str; 16] = [
    "Ada", "Boris", "Chidi", "Dagny", "Emre", "Farah", "Goro", "Hilde", "Ines", "Jun", "Kofi", "Leila", "Milo",
    "Nadia", "Otto", "Petra",
];
const ONSETS: &[u8; 14] = b"bdfghklmnprtvz";
const VOWELS: &[u8; 5] = b"aeiou";

/// The words, and how often each is drawn.
#[derive(Debug)]
pub struct Corpus {
    /// Weight of each word and of all before it.
    weights: Vec<f64>,
}

/// Something that was said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// Its conversation.
    pub thread: String,
    /// Within the conversation.
    pub id: String,
    /// Its place there.
    pub ordinal: i64,
    /// `user` and `assistant` take turns.
    pub role: &'static str,
    /// Users have names.
    pub speaker: Option<&'static str>,
    /// ISO 8601.
    pub time: String,
    /// What was said.
    pub text: String,
}

impl Default for Corpus {
    fn default() -> Self {
        Self::new()
    }
}

impl Corpus {
    /// All corpora are the beginning of this one.
    #[must_use]
    #[allow(clippy::cast_precision_loss, reason = "ranks are far below 2^52")]
    pub fn new() -> Self {
        let mut sum = 0.0;
        // Divisions and sums are exact to the bit on every machine.
        let mut add = |rank| {
            sum += 1.0 / ((rank + SHIFT) as f64);
            sum
        };
        Self { weights: (1..=WORDS).map(&mut add).collect() }
    }

    /// The message with that number, from 0.
    #[must_use]
    pub fn message(&self, number: u64) -> Message {
        let mut random = random(number, 1);
        let count = LENGTHS.0 + random.below(LENGTHS.1 - LENGTHS.0 + 1);
        let text = (0..count).map(|_| word(self.rank(&mut random))).collect::<Vec<_>>().join(" ");
        let thread = number / THREAD;
        let is_user = number.is_multiple_of(2);
        Message {
            thread: format!("t{thread}"),
            id: format!("m{}", number % THREAD),
            ordinal: i64::try_from(number % THREAD).unwrap_or(i64::MAX),
            role: if is_user { "user" } else { "assistant" },
            speaker: name(thread).filter(|_| is_user),
            time: time(number),
            text: format!("{text}."),
        }
    }

    /// Queries for a corpus of so many messages. Each is a run of three to six words of some message; every fourth asks for
    /// what somebody said, by name, every eighth for when.
    pub fn queries(&self, messages: u64, count: u64) -> impl Iterator<Item = String> + '_ {
        (0..count).map(move |number| {
            let mut random = random(number, 2);
            let asked = random.below(messages);
            let text = self.message(asked).text;
            let words: Vec<&str> = text.trim_end_matches('.').split(' ').collect();
            let length = usize::try_from(3 + random.below(4)).unwrap_or(3).min(words.len());
            let start = usize::try_from(random.below((words.len() - length + 1) as u64)).unwrap_or(0);
            let run = words.get(start..start + length).unwrap_or_default().join(" ");
            match (number % 8, name(asked / THREAD)) {
                (0, Some(name)) => format!("When did {name} say {run}?"),
                (4, Some(name)) => format!("{name} {run}"),
                _ => run,
            }
        })
    }

    /// Writes JSON Lines for other programs: each message as `{"id","speaker","text"}`, then each query as `{"query"}`.
    ///
    /// # Errors
    /// As `out` fails.
    pub fn write(&self, messages: u64, queries: u64, out: &mut dyn Write) -> io::Result<()> {
        for number in 0..messages {
            let Message { thread, id, speaker, text, .. } = self.message(number);
            writeln!(out, "{}", json!({"id": format!("{thread}/{id}"), "speaker": speaker, "text": text}))?;
        }
        self.queries(messages, queries).try_for_each(|query| writeln!(out, "{}", json!({"query": query})))
    }

    #[allow(clippy::cast_precision_loss, reason = "only 53 bits are taken")]
    fn rank(&self, random: &mut Random) -> usize {
        let share = (random.next() >> 11) as f64 / (1_u64 << 53) as f64;
        let weight = share * self.weights.last().copied().unwrap_or_default();
        self.weights.partition_point(|upto| *upto <= weight)
    }
}

/// Of a message, or of a query. The seed is mixed: those of neighbours would give the same numbers, one later.
fn random(number: u64, stream: u64) -> Random {
    Random::new(Random::new(number ^ (stream << 56)).next())
}

fn name(thread: u64) -> Option<&'static str> {
    usize::try_from(thread).ok().and_then(|thread| NAMES.get(thread % NAMES.len())).copied()
}

/// Two or three syllables and a `k`: English has no ending that ends so.
fn word(rank: usize) -> String {
    let mut word = String::new();
    let mut rest = rank;
    let (onsets, vowels) = (ONSETS.len(), VOWELS.len());
    for syllable in 0.. {
        if rest == 0 && syllable >= 2 {
            break;
        }
        word.extend(ONSETS.get(rest % onsets).copied().map(char::from));
        word.extend(VOWELS.get(rest / onsets % vowels).copied().map(char::from));
        rest /= onsets * vowels;
    }
    word.push('k');
    word
}

fn time(number: u64) -> String {
    utc(BEGIN + number * PAUSE, "%Y-%m-%dT%H:%M:%S+00:00")
}

#[cfg(test)]
mod tests {
    use std::collections::{HashMap, HashSet};

    use super::*;

    #[test]
    fn every_machine_has_the_same() {
        let corpus = Corpus::new();
        let message = corpus.message(1_000_001);
        assert_eq!((message.thread.as_str(), message.id.as_str(), message.ordinal), ("t5000", "m1", 1));
        assert_eq!((message.role, message.speaker), ("assistant", None));
        assert_eq!(message.time, "2023-10-11T04:54:57+00:00");
        assert_eq!(corpus.message(400).speaker, Some("Chidi"));
        let mut lines = Vec::new();
        corpus.write(2, 1, &mut lines).unwrap();
        let lines = String::from_utf8(lines).unwrap();
        let mut lines = lines.lines().skip(1);
        let second = r#"{"id":"t0/m1","speaker":null,"text":"robek nuhak fadak habak babak vilak."}"#;
        assert_eq!(lines.next(), Some(second));
        assert_eq!(lines.next(), Some(r#"{"query":"When did Ada say fadak habak babak?"}"#));
    }

    #[test]
    fn words_differ_and_follow_the_law() {
        let all: HashSet<String> = (0..100_000).map(word).collect();
        assert_eq!(all.len(), 100_000);
        let corpus = Corpus::new();
        let mut counts: HashMap<String, u64> = HashMap::new();
        for number in 0..20_000 {
            for word in corpus.message(number).text.trim_end_matches('.').split(' ') {
                *counts.entry(word.to_owned()).or_default() += 1;
            }
        }
        // 1 / 6 against 1 / 15, of 440,000 words.
        let (first, tenth) = (counts[&word(0)], counts[&word(9)]);
        assert!((7_000..8_000).contains(&first) && (2_700..3_300).contains(&tenth), "{first} {tenth}");
    }

    #[test]
    fn a_query_is_of_a_message() {
        let corpus = Corpus::new();
        let queries: Vec<String> = corpus.queries(500, 16).collect();
        let texts: Vec<String> = (0..500).map(|number| corpus.message(number).text).collect();
        let said = |query: &&String| texts.iter().any(|text| text.contains(query.as_str()));
        assert_eq!(queries.iter().filter(said).count(), 12);
        assert!(queries[0].starts_with("When did ") && queries[8].starts_with("When did "));
    }
}
