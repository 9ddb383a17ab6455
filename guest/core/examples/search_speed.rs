//! What searches cost: `cargo run --release -p recollex-core --example search_speed [MESSAGES...]`.
//!
//! Conversations of 200 messages whose words follow Zipf's law as Mandelbrot has it, kept in files of an index that lie in
//! memory. Queries are runs of words that were said; every fourth names a speaker, every eighth asks when. The digest is one
//! over everything that was found, with scores: it must not change with the speed.

#![allow(clippy::print_stdout, reason = "it prints what it measured")]

use recollex_core::search::{
    CATALOG, Document, Index, Kind, Limits, Opening, Place, Query, QueryRequest, Ranking, Scratch, Speaker, View,
    Wanted, Weights, Write,
};
use recollex_core::table::Stamp;
use std::collections::{BTreeMap, HashMap};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::time::Instant;

/// Messages, unless the arguments say how many.
const SIZES: [u64; 2] = [100_000, 1_000_000];
const QUERIES: u64 = 1000;
/// The best of so many rounds counts: the others were disturbed.
const ROUNDS: usize = 5;
/// Messages of a conversation.
const THREAD: u64 = 200;
const WORDS: u64 = 100_000;
const NAMES: [&str; 16] = [
    "Ada", "Boris", "Chidi", "Dagny", "Emre", "Farah", "Goro", "Hilde", "Ines", "Jun", "Kofi", "Leila", "Milo",
    "Nadia", "Otto", "Petra",
];
/// Random numbers after `SplitMix64`.
struct Random(u64);

impl Random {
    fn of(number: u64, stream: u64) -> Random {
        Random(Random(number ^ (stream << 56)).next())
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }
}

/// What is said and asked; all of it follows from its number.
struct Corpus {
    /// Weight of each word and of all before it.
    weights: Vec<f64>,
}

impl Corpus {
    fn new() -> Corpus {
        let mut sum = 0.0;
        let mut add = |rank: u64| {
            sum += 1.0 / (rank + 5) as f64;
            sum
        };
        Corpus { weights: (1..=WORDS).map(&mut add).collect() }
    }

    fn words(&self, number: u64) -> Vec<String> {
        let mut random = Random::of(number, 1);
        let count = 4 + random.below(37);
        let all = self.weights.last().copied().unwrap_or_default();
        let mut rank = || (random.next() >> 11) as f64 / (1_u64 << 53) as f64 * all;
        (0..count).map(|_| rank()).map(|rank| word(self.weights.partition_point(|upto| *upto <= rank))).collect()
    }

    fn query(&self, messages: u64, number: u64) -> String {
        let mut random = Random::of(number, 2);
        let asked = random.below(messages);
        let words = self.words(asked);
        let length = (3 + random.below(4) as usize).min(words.len());
        let start = random.below((words.len() - length + 1) as u64) as usize;
        let said = words[start..start + length].join(" ");
        let name = NAMES[(asked / THREAD) as usize % NAMES.len()];
        match number % 8 {
            0 => format!("When did {name} say {said}?"),
            4 => format!("{name} {said}"),
            _ => said,
        }
    }
}

/// Two or three syllables and a `k`: no stemmer takes anything off.
fn word(mut rank: usize) -> String {
    const SYLLABLES: usize = 14 * 5;
    let mut word = String::new();
    for syllable in 0.. {
        if rank == 0 && syllable >= 2 {
            break;
        }
        word.push(char::from(b"bdfghklmnprtvz"[rank % 14]));
        word.push(char::from(b"aeiou"[rank / 14 % 5]));
        rank /= SYLLABLES;
    }
    word + "k"
}

/// An index and the files that it is kept in.
struct Bench {
    corpus: Corpus,
    messages: u64,
    files: HashMap<String, Vec<u8>>,
    index: Index,
    view: View,
    weights: Weights,
    scratch: Scratch,
}

impl Bench {
    /// Over files that [`Bench::build`] made.
    fn open(messages: u64, files: HashMap<String, Vec<u8>>) -> Bench {
        let index = Index::new();
        let view = index.view(&Weights::DEFAULT, |_| true);
        let scratch = Scratch::default();
        let mut bench =
            Bench { corpus: Corpus::new(), messages, files, index, view, weights: Weights::DEFAULT, scratch };
        bench.reopen();
        bench
    }

    /// Opens the index as a new process does.
    fn reopen(&mut self) {
        let mut opening = Opening::new(self.files.get(CATALOG).map(Vec::as_slice), b"");
        while let Some(wanted) = opening.wanted().cloned() {
            opening.supply(read(&self.files, &wanted));
        }
        self.index = opening.finish();
        self.scratch = Scratch::default();
        self.look();
    }

    fn look(&mut self) {
        self.view = self.index.view(&self.weights, |_| true);
    }

    fn build(messages: u64) -> Bench {
        let mut bench = Bench::open(messages, HashMap::new());
        // As an index begins that nobody has written yet.
        bench.index = Index::new();
        (0..messages).for_each(|number| bench.add(number, number / THREAD, ""));
        bench.index.seal();
        bench.save();
        bench
    }

    /// Adds a message to the end of a thread.
    fn add(&mut self, number: u64, thread: u64, marker: &str) {
        let text = format!("{}.{marker}", self.corpus.words(number).join(" "));
        let (id, path) = (format!("bench/t{thread}/m{number}"), format!("sources/bench/_v2/t{thread}.md"));
        let (day, by_machine) = (number / 1000, !number.is_multiple_of(2));
        let time = format!("{}-{:02}-{:02}T10:00:00+00:00", 2000 + day / 336, day / 28 % 12 + 1, day % 28 + 1);
        let name = NAMES[thread as usize % NAMES.len()];
        let document = Document {
            id: &id,
            kind: Kind::Source,
            time: &time,
            label: if by_machine { "assistant" } else { name },
            speaker: (!by_machine).then_some(Speaker { id: "", display: name, label: name }),
            by_machine,
            text: &text,
            place: Place::default(),
        };
        self.index.add(&path, &document).expect("there is room");
        if number % THREAD == THREAD - 1 || !marker.is_empty() {
            let token = number.to_string();
            self.index.finish(&path, &Stamp { size: number, token: &token, racy: false }, false);
        }
    }

    fn save(&mut self) {
        let writes = loop {
            match self.index.save() {
                Ok(writes) => break writes,
                Err(missing) => self.supply(&missing),
            }
        };
        for write in writes {
            match write {
                Write::Put { name, bytes } => drop(self.files.insert(name, bytes)),
                Write::Append { name, bytes, .. } => self.files.entry(name).or_default().extend(bytes),
                Write::Drop { name } => drop(self.files.remove(&name)),
            }
        }
    }

    fn supply(&mut self, missing: &recollex_core::search::MissingPages) {
        for wanted in self.index.wanted(missing) {
            let bytes = read(&self.files, &wanted);
            assert!(self.index.supply(&wanted, bytes.as_deref()), "{wanted:?}");
        }
    }

    fn query(&self, number: u64, explain: bool) -> Query {
        parse(&self.corpus.query(self.messages, number), explain)
    }

    fn ask(&mut self, query: &Query) -> Ranking {
        loop {
            match self.index.search(query, &self.view, &mut self.scratch) {
                Ok(ranking) => return ranking,
                Err(missing) => self.supply(&missing),
            }
        }
    }

    /// Adds a turn to an old thread, writes it down, and finds it.
    fn append(&mut self, number: u64) {
        let marker = format!(" added{number}");
        self.add(self.messages + number, self.messages / THREAD / 2, &marker);
        self.save();
        self.look();
        let found = self.ask(&parse(&marker, false));
        assert!(found.hits[0].id.ends_with(&format!("/m{}", self.messages + number)), "{found:?}");
    }

    /// Of everything that is found.
    fn digest(&mut self) -> u64 {
        let mut hasher = DefaultHasher::new();
        for number in 0..QUERIES {
            let query = self.query(number, number % 4 == 0);
            for hit in self.ask(&query).hits {
                (&hit.id, hit.score).hash(&mut hasher);
                hit.signals.iter().for_each(|signal| (&signal.name, signal.points).hash(&mut hasher));
            }
        }
        hasher.finish()
    }
}

fn parse(text: &str, explain: bool) -> Query {
    let request = QueryRequest { text, top_k: 10, explain, ..QueryRequest::default() };
    Query::parse(&request, &Limits { top_k_max: 10, query_bytes: 1 << 20 }).expect("a query")
}

fn read(files: &HashMap<String, Vec<u8>>, wanted: &Wanted) -> Option<Vec<u8>> {
    let bytes = files.get(&wanted.name)?;
    let end = wanted.range.end.min(bytes.len() as u64);
    Some(bytes.get(wanted.range.start as usize..end as usize)?.to_vec())
}

fn milliseconds(work: impl FnOnce()) -> f64 {
    let start = Instant::now();
    work();
    start.elapsed().as_secs_f64() * 1e3
}

/// The best round.
fn best(work: impl FnMut() -> f64) -> f64 {
    core::iter::repeat_with(work).take(ROUNDS).fold(f64::INFINITY, f64::min)
}

fn main() {
    let asked: Vec<u64> = std::env::args().skip(1).filter_map(|size| size.parse().ok()).collect();
    for messages in if asked.is_empty() { SIZES.to_vec() } else { asked } {
        let mut built = None;
        let build = milliseconds(|| built = Some(Bench::build(messages)));
        let mut bench = built.expect("it was built");
        println!("{messages} messages, built in {:.1} s", build / 1e3);
        let query = bench.query(1, false);
        println!("  open               {:8.3} ms", best(|| milliseconds(|| bench.reopen())));
        println!("  view made anew     {:8.3} ms", best(|| milliseconds(|| bench.look())));
        let first = best(|| {
            milliseconds(|| {
                bench.reopen();
                bench.ask(&query);
            })
        });
        println!("  open, first answer {first:8.3} ms");
        let mut digests = BTreeMap::new();
        for (name, weights) in [("full", Weights::DEFAULT), ("plain", Weights::PLAIN)] {
            bench.weights = weights;
            bench.look();
            digests.insert(name, bench.digest());
            let queries: Vec<Query> = (0..QUERIES).map(|number| bench.query(number, false)).collect();
            let mut times: Vec<f64> =
                queries.iter().map(|query| best(|| milliseconds(|| drop(bench.ask(query))))).collect();
            times.sort_by(f64::total_cmp);
            let at = |share: usize| times[times.len() * share / 100];
            println!("  {name:5} p50 {:.3} ms, p99 {:.3} ms", at(50), at(99));
        }
        bench.weights = Weights::DEFAULT;
        bench.look();
        let mut number = 0;
        let mut append = || {
            number += 1;
            milliseconds(|| bench.append(number))
        };
        append();
        println!("  a turn added, found {:7.3} ms", best(append));
        println!("  digests {digests:x?}");
    }
}
