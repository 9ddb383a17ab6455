//! Measures search engines that are Rust crates, for `../peers.py`: `recollex-peers build|ask tantivy|bm25 CORPUS DIRECTORY`.
//!
//! Prints a JSON object of figures, in the units that the script has. What they mean stands there.

use std::error::Error;
use std::fs::{self, File};
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::time::{Duration, Instant};

use bm25::{Document, Language, SearchEngine, SearchEngineBuilder};
use serde_json::{Value, json};
use tantivy::collector::TopDocs;
use tantivy::query::QueryParser;
use tantivy::schema::{FAST, Field, IndexRecordOption, Schema, TextFieldIndexing, TextOptions};
use tantivy::{Index, IndexReader, IndexWriter, ReloadPolicy, doc};

type Done<T> = Result<T, Box<dyn Error>>;

const HITS: usize = 10;
const ADDED: u64 = 20;
/// For a pass over the queries: whoever needs longer is asked fewer, in their order.
const LONGEST: Duration = Duration::from_secs(60);
const WRITER_BYTES: usize = 256 << 20;

fn main() -> Done<()> {
    let start = Instant::now();
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [step, name, corpus, directory] = arguments.as_slice() else {
        return Err("give build or ask, tantivy or bm25, a corpus and a directory".into());
    };
    let (corpus, directory) = (Path::new(corpus), Path::new(directory));
    let figures = match (step.as_str(), name.as_str()) {
        ("build", "tantivy") => build_tantivy(corpus, directory)?,
        ("ask", "tantivy") => {
            let asked = queries(corpus)?;
            let read = start.elapsed();
            let mut engine = Tantivy::open(directory)?;
            engine.ask(asked.first().ok_or("no queries")?)?;
            let first = (start.elapsed() - read).as_secs_f64() * 1e3;
            with(ask(&mut engine, corpus, &asked)?, &[("first", json!(first))])
        }
        // It lives in memory only.
        ("build", "bm25") => json!({}),
        ("ask", "bm25") => {
            let texts = messages(corpus)?.collect::<Done<Vec<String>>>()?;
            let count = texts.len();
            let start = Instant::now();
            let mut engine = Bm25::build(texts);
            let build = start.elapsed().as_secs_f64();
            let asked = queries(corpus)?;
            with(ask(&mut engine, corpus, &asked)?, &[("build", json!(build)), ("n", json!(count))])
        }
        _ => return Err(format!("{step} {name}: no such step or engine").into()),
    };
    writeln!(io::stdout(), "{figures}")?;
    Ok(())
}

fn lines(corpus: &Path) -> Done<impl Iterator<Item = Done<Value>>> {
    let lines = BufReader::with_capacity(1 << 20, File::open(corpus)?).lines();
    Ok(lines.map(|line| Ok(serde_json::from_str(&line?)?)))
}

/// The texts, with the name of who spoke in front.
fn messages(corpus: &Path) -> Done<impl Iterator<Item = Done<String>>> {
    let text = |line: Value| match (line["speaker"].as_str(), line["text"].as_str()) {
        (Some(speaker), Some(text)) => Some(format!("{speaker}: {text}")),
        (None, Some(text)) => Some(text.to_owned()),
        (_, None) => None,
    };
    Ok(lines(corpus)?.filter_map(move |line| line.map(text).transpose()))
}

fn queries(corpus: &Path) -> Done<Vec<String>> {
    let query = |line: Value| line["query"].as_str().map(str::to_owned);
    lines(corpus)?.filter_map(|line| line.map(query).transpose()).collect()
}

fn with(mut figures: Value, more: &[(&str, Value)]) -> Value {
    for (name, value) in more {
        figures[name] = value.clone();
    }
    figures
}

trait Engine {
    /// Numbers of the messages that are found, best first.
    fn ask(&mut self, query: &str) -> Done<Vec<u64>>;
    fn add(&mut self, number: u64, text: &str) -> Done<()>;
}

/// Milliseconds.
fn timed<T>(work: impl FnOnce() -> Done<T>) -> Done<(f64, T)> {
    let start = Instant::now();
    let done = work()?;
    Ok((start.elapsed().as_secs_f64() * 1e3, done))
}

/// Milliseconds of each query.
fn one_pass(engine: &mut dyn Engine, asked: &[String]) -> Done<Vec<f64>> {
    let start = Instant::now();
    let mut times = Vec::new();
    for query in asked {
        times.push(timed(|| engine.ask(query))?.0);
        if start.elapsed() > LONGEST {
            break;
        }
    }
    Ok(times)
}

fn ask(engine: &mut dyn Engine, corpus: &Path, asked: &[String]) -> Done<Value> {
    one_pass(engine, asked)?;
    let times = one_pass(engine, asked)?;
    let memory = memory()?;
    let count = messages(corpus)?.count() as u64;
    let text = messages(corpus)?.next().ok_or("no messages")??;
    let mut added = Vec::new();
    for number in 0..ADDED {
        let marker = format!("added{number}");
        let (time, found) = timed(|| {
            engine.add(count + number, &format!("{marker}, {text}"))?;
            engine.ask(&marker)
        })?;
        if found.first() != Some(&(count + number)) {
            return Err(format!("{marker} is not found, but {found:?}").into());
        }
        added.push(time);
    }
    let at = |mut times: Vec<f64>, share: usize| {
        times.sort_by(f64::total_cmp);
        times[times.len() * share / 100]
    };
    Ok(json!({"p50": at(times.clone(), 50), "p99": at(times, 99), "memory": memory, "append": at(added, 50)}))
}

/// The most that this process has had, in MiB (Linux).
fn memory() -> Done<f64> {
    let status = fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).ok_or("no word of memory")?;
    Ok(line.trim().trim_end_matches("kB").trim().parse::<f64>()? / 1024.0)
}

/// Word counts without positions, and a column of numbers: the least that plain BM25 needs.
fn schema() -> (Schema, Field, Field) {
    let mut schema = Schema::builder();
    let indexing =
        TextFieldIndexing::default().set_tokenizer("en_stem").set_index_option(IndexRecordOption::WithFreqs);
    let text = schema.add_text_field("text", TextOptions::default().set_indexing_options(indexing));
    let number = schema.add_u64_field("number", FAST);
    (schema.build(), text, number)
}

fn build_tantivy(corpus: &Path, directory: &Path) -> Done<Value> {
    let texts = messages(corpus)?.collect::<Done<Vec<String>>>()?;
    let count = texts.len();
    let start = Instant::now();
    let (schema, said, number) = schema();
    let index = Index::create_in_dir(directory, schema)?;
    let mut writer: IndexWriter = index.writer_with_num_threads(1, WRITER_BYTES)?;
    for (at, text) in (0_u64..).zip(texts) {
        writer.add_document(doc!(said => text, number => at))?;
    }
    writer.commit()?;
    writer.wait_merging_threads()?;
    let build = start.elapsed().as_secs_f64();
    let mut size = 0;
    for entry in fs::read_dir(directory)? {
        size += entry?.metadata()?.len();
    }
    Ok(json!({"n": count, "build": build, "size": size as f64 / f64::from(1 << 20)}))
}

struct Tantivy {
    index: Index,
    reader: IndexReader,
    parser: QueryParser,
    writer: Option<IndexWriter>,
}

impl Tantivy {
    fn open(directory: &Path) -> Done<Self> {
        let index = Index::open_in_dir(directory)?;
        let reader = index.reader_builder().reload_policy(ReloadPolicy::Manual).try_into()?;
        let parser = QueryParser::for_index(&index, vec![schema().1]);
        Ok(Self { index, reader, parser, writer: None })
    }
}

impl Engine for Tantivy {
    fn ask(&mut self, query: &str) -> Done<Vec<u64>> {
        let (query, _) = self.parser.parse_query_lenient(query);
        let searcher = self.reader.searcher();
        let mut numbers = Vec::new();
        for (_, at) in searcher.search(&query, &TopDocs::with_limit(HITS).order_by_score())? {
            let column = searcher.segment_reader(at.segment_ord).fast_fields().u64("number")?;
            numbers.extend(column.first(at.doc_id));
        }
        Ok(numbers)
    }

    fn add(&mut self, at: u64, text: &str) -> Done<()> {
        let (_, said, number) = schema();
        let writer = match self.writer.take() {
            Some(writer) => writer,
            None => self.index.writer_with_num_threads(1, WRITER_BYTES)?,
        };
        let writer = self.writer.insert(writer);
        writer.add_document(doc!(said => text, number => at))?;
        writer.commit()?;
        Ok(self.reader.reload()?)
    }
}

struct Bm25(SearchEngine<u64>);

impl Bm25 {
    fn build(texts: Vec<String>) -> Self {
        let documents = (0_u64..).zip(texts).map(|(number, text)| Document::new(number, text));
        Self(SearchEngineBuilder::with_documents(Language::English, documents).build())
    }
}

impl Engine for Bm25 {
    fn ask(&mut self, query: &str) -> Done<Vec<u64>> {
        Ok(self.0.search(query, HITS).into_iter().map(|found| found.document.id).collect())
    }

    fn add(&mut self, number: u64, text: &str) -> Done<()> {
        self.0.upsert(Document::new(number, text));
        Ok(())
    }
}
