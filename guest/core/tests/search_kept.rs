//! The index in files: what is read back ranks as what was written, whatever happened to the files in between.

mod search_support;

use proptest::prelude::*;
use recollex_core::search::{
    CATALOG, Document, Extension, Index, Kind, Known, LOG_BYTES, LOG_DOCUMENTS, Opening, Place, Query, QueryRequest,
    Ranking, Scratch, Weights, Write, log_of,
};
use recollex_core::table::Stamp;
use search_support::{LIMITS, Record, ask};
use std::collections::{BTreeMap, BTreeSet};

const MANNER: &[u8] = b"as in tests";

/// A cache area.
#[derive(Clone, Default)]
struct Cache(BTreeMap<String, Vec<u8>>);

impl Cache {
    fn apply(&mut self, writes: Vec<Write>) {
        for write in writes {
            match write {
                Write::Put { name, bytes } => {
                    self.0.insert(name, bytes);
                }
                Write::Append { name, length, bytes } => {
                    let file = self.0.entry(name).or_default();
                    assert_eq!(file.len() as u64, length);
                    file.extend(bytes);
                }
                Write::Drop { name } => {
                    self.0.remove(&name);
                }
            }
        }
    }

    fn read(&self, name: &str, range: core::ops::Range<u64>) -> Option<Vec<u8>> {
        let file = self.0.get(name)?;
        let (start, end) = (range.start.min(file.len() as u64), range.end.min(file.len() as u64));
        Some(file[start as usize..end as usize].to_vec())
    }

    fn open(&self) -> Index {
        let mut opening = Opening::new(self.0.get(CATALOG).map(Vec::as_slice), MANNER);
        while let Some(wanted) = opening.wanted().cloned() {
            opening.supply(self.read(&wanted.name, wanted.range));
        }
        opening.finish()
    }

    fn save(&mut self, index: &mut Index) {
        let writes = loop {
            match index.save() {
                Ok(writes) => break writes,
                Err(missing) => self.supply(index, &missing),
            }
        };
        self.apply(writes);
    }

    fn supply(&self, index: &mut Index, missing: &recollex_core::search::MissingPages) {
        let wanted = index.wanted(missing);
        assert!(!wanted.is_empty());
        for wanted in wanted {
            let bytes = self.read(&wanted.name, wanted.range.clone());
            index.supply(&wanted, bytes.as_deref());
        }
    }

    fn search(&self, index: &mut Index, text: &str) -> Ranking {
        let request = QueryRequest { explain: true, ..ask(text) };
        let query = Query::parse(&request, &LIMITS).unwrap();
        loop {
            let view = index.view(&Weights::default(), |_| true);
            match index.search(&query, &view, &mut Scratch::default()) {
                Ok(ranking) => return ranking,
                Err(missing) => self.supply(index, &missing),
            }
        }
    }
}

/// Files of a workspace: their records, and which version they are.
#[derive(Clone, Default)]
struct Workspace {
    files: BTreeMap<String, (u64, Vec<Record>)>,
    versions: u64,
    records: u64,
    /// Files that have been changed just now, so that their stamps cannot be relied on.
    racy: BTreeSet<String>,
}

fn token(version: u64) -> String {
    format!("v{version}")
}

fn stamp<'t>(records: &[Record], token: &'t str) -> Stamp<'t> {
    Stamp { size: records.len() as u64, token, racy: false }
}

fn document(record: &Record) -> Document<'_> {
    Document {
        id: &record.id,
        kind: Kind::Source,
        time: &record.time,
        label: &record.label,
        speaker: None,
        by_machine: record.by_machine,
        text: &record.text,
        place: Place { offset: record.id.len() as u64, header: 3, length: record.text.len() as u64, line: 7 },
    }
}

impl Workspace {
    fn path(file: u8) -> String {
        format!("sources/p/_v2/{file}.md")
    }

    /// Adds texts to a file; what was there before, and its version.
    fn append(&mut self, file: u8, texts: &[String]) -> (u64, Option<(u64, u64)>) {
        let path = Self::path(file);
        let before = self.files.get(&path).map(|(version, records)| (*version, records.len() as u64));
        self.versions += 1;
        let entry = self.files.entry(path.clone()).or_default();
        let count = entry.1.len() as u64;
        entry.0 = self.versions;
        for text in texts {
            self.records += 1;
            entry.1.push(Record::within(&path, &format!("p/{file}/{:04}", self.records), text));
        }
        (count, before)
    }

    /// Brings an index up to date, as a searcher does. How many files it had to read.
    fn index(&self, index: &mut Index) -> usize {
        let mut read = 0;
        index.begin_survey();
        for (path, (version, records)) in &self.files {
            let token = token(*version);
            let stamp = Stamp { racy: self.racy.contains(path), ..stamp(records, &token) };
            if index.known(path, &stamp) != Known::Not {
                continue;
            }
            read += 1;
            index.replace(path);
            records.iter().for_each(|record| index.add(path, &document(record)).unwrap());
            index.finish(path, &stamp, false);
        }
        for path in index.unseen() {
            index.remove(&path);
        }
        read
    }

    fn anew(&self) -> Index {
        let mut index = Index::new();
        self.index(&mut index);
        index
    }

    /// Tells the log of an addition, as a writer does that has no index at hand.
    fn note(&self, cache: &mut Cache, file: u8, count: u64, before: Option<(u64, u64)>) {
        let path = Self::path(file);
        let (version, records) = &self.files[&path];
        let catalog = cache.0.get(CATALOG).cloned().unwrap_or_default();
        let Some(log) = log_of(&catalog, MANNER) else { return };
        let length = cache.0.get(&log).map_or(0, Vec::len) as u64;
        let before = before.map(|(version, size)| (token(version), size));
        let before = before.as_ref().map(|(token, size)| Stamp { size: *size, token, racy: false });
        let mut extension = Extension::new(&path, count, before.as_ref());
        records.iter().skip(count as usize).for_each(|record| extension.add(&document(record)));
        let token = token(*version);
        cache.apply(extension.finish(&catalog, MANNER, length, &stamp(records, &token)).into_iter().collect());
    }
}

#[derive(Clone, Debug)]
enum Step {
    /// Records are added, and the log is told of it, or not.
    Append(u8, Vec<String>, bool),
    Remove(u8),
    /// A file becomes another one.
    Rewrite(u8, Vec<String>),
    /// Somebody searches, with an index of their own.
    Search,
    /// Somebody else searches, and keeps their index.
    SearchElsewhere,
    /// A byte of a cache file is another one.
    Damage(usize, usize),
    /// A cache file is cut, or lost.
    Cut(usize, usize),
    /// What was added last becomes a segment.
    Seal,
    /// Time does not go on: what a file was changed to just now may change without a sign. Or it goes on.
    Racy(Option<u8>),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let text =
        prop::sample::select(vec!["budget launch", "the budget?", "launch", "猫が好き", "x", "yesterday budget"]);
    let texts = || prop::collection::vec(text.clone().prop_map(str::to_owned), 0..5);
    let step = prop_oneof![
        8 => (0_u8..4, texts(), any::<bool>()).prop_map(|(file, texts, told)| Step::Append(file, texts, told)),
        1 => (0_u8..4).prop_map(Step::Remove),
        1 => (0_u8..4, texts()).prop_map(|(file, texts)| Step::Rewrite(file, texts)),
        4 => Just(Step::Search),
        3 => Just(Step::SearchElsewhere),
        1 => (any::<usize>(), any::<usize>()).prop_map(|(file, at)| Step::Damage(file, at)),
        1 => (any::<usize>(), any::<usize>()).prop_map(|(file, at)| Step::Cut(file, at)),
        1 => Just(Step::Seal),
        2 => prop::option::of(0_u8..4).prop_map(Step::Racy),
    ];
    prop::collection::vec(step, 1..25)
}

const QUERIES: &[&str] = &["budget", "launch x", "when budget", "猫", "zebra"];

/// Opens the index if the cache has another one than `index` is of, takes in what is new, searches and saves.
fn search_as(cache: &mut Cache, workspace: &Workspace, index: &mut Option<Index>) {
    let catalog = cache.0.get(CATALOG).cloned();
    let mut at_hand = match index.take() {
        Some(index) if catalog.as_ref().is_some_and(|catalog| index.is_of(catalog)) => index,
        _ => cache.open(),
    };
    if let Some((log, taken)) = at_hand.log() {
        let length = cache.0.get(&log).map_or(0, Vec::len) as u64;
        if length < taken {
            at_hand = cache.open();
        } else if length > taken {
            at_hand.take_log(&cache.read(&log, taken..length).unwrap());
        }
    }
    workspace.index(&mut at_hand);
    let anew = workspace.anew();
    for text in QUERIES {
        // What a damaged segment had is not there any more: then the files are indexed once more.
        let mut found = cache.search(&mut at_hand, text);
        if workspace.index(&mut at_hand) > 0 {
            found = cache.search(&mut at_hand, text);
        }
        assert_eq!(found, Cache::default().search(&mut anew.clone(), text), "{text}");
    }
    cache.save(&mut at_hand);
    *index = Some(at_hand);
}

proptest! {
    #[test]
    fn an_index_in_files_ranks_as_one_made_anew(steps in steps()) {
        let (mut cache, mut workspace) = (Cache::default(), Workspace::default());
        let (mut here, mut elsewhere) = (None, None);
        for step in steps {
            match step {
                Step::Append(file, texts, told) => {
                    let (count, before) = workspace.append(file, &texts);
                    if told {
                        workspace.note(&mut cache, file, count, before);
                    }
                }
                Step::Remove(file) => {
                    workspace.files.remove(&Workspace::path(file));
                }
                Step::Rewrite(file, texts) => {
                    workspace.files.remove(&Workspace::path(file));
                    workspace.append(file, &texts);
                }
                Step::Search => search_as(&mut cache, &workspace, &mut here),
                Step::SearchElsewhere => search_as(&mut cache, &workspace, &mut elsewhere),
                Step::Damage(file, at) => {
                    let count = cache.0.len().max(1);
                    if let Some(bytes) = cache.0.values_mut().nth(file % count).filter(|bytes| !bytes.is_empty()) {
                        let at = at % bytes.len();
                        bytes[at] ^= 0x40;
                    }
                }
                Step::Cut(file, at) => {
                    let name = cache.0.keys().nth(file % cache.0.len().max(1)).cloned();
                    if let Some(name) = name {
                        let bytes = cache.0.get_mut(&name).unwrap();
                        bytes.truncate(at % (bytes.len() + 1));
                        if bytes.is_empty() {
                            cache.0.remove(&name);
                        }
                    }
                }
                Step::Racy(Some(file)) => {
                    workspace.racy.insert(Workspace::path(file));
                }
                Step::Racy(None) => workspace.racy.clear(),
                Step::Seal => {
                    if let Some(index) = &mut here {
                        index.seal();
                    }
                }
            }
        }
        search_as(&mut cache, &workspace, &mut here);
        search_as(&mut cache, &workspace, &mut elsewhere);
    }
}

/// A workspace of that many records in threads of fifty.
fn large(records: usize) -> Workspace {
    let mut workspace = Workspace::default();
    for thread in 0..records / 50 {
        let texts: Vec<String> =
            (0..50).map(|number| format!("w{} w{} common", thread % 97, number * thread % 89)).collect();
        workspace.append((thread % 200) as u8, &texts);
    }
    workspace
}

#[test]
fn a_log_becomes_a_segment_and_segments_are_merged() {
    let (mut cache, mut workspace) = (Cache::default(), Workspace::default());
    let mut index = cache.open();
    let mut segments = Vec::new();
    for thread in 0..180_u8 {
        workspace.append(thread, &vec!["budget launch".to_owned(); 50]);
        assert_eq!(workspace.index(&mut index), 1);
        cache.save(&mut index);
        let count = cache.0.keys().filter(|name| name.ends_with(".segment")).count();
        if segments.last() != Some(&count) {
            segments.push(count);
        }
        let log = index.log().unwrap();
        assert!(log.1 <= LOG_BYTES + (1 << 16));
        assert_eq!(cache.0.keys().filter(|name| name.ends_with(".log")).count(), usize::from(log.1 > 0));
    }
    // Four of one size become one.
    assert_eq!(segments, [0, 1, 2, 3, 1, 2, 3, 4, 2]);
    let mut again = cache.open();
    assert_eq!(workspace.index(&mut again), 0, "everything is known");
    assert_eq!(cache.search(&mut again, "budget"), cache.search(&mut workspace.anew(), "budget"));
    assert!(again.len() > LOG_DOCUMENTS);
}

#[test]
fn a_search_reads_the_pages_it_needs() {
    let (mut cache, workspace) = (Cache::default(), large(20_000));
    let mut index = cache.open();
    workspace.index(&mut index);
    cache.save(&mut index);
    let whole: usize = cache.0.values().map(Vec::len).sum();
    let mut index = cache.open();
    let query = Query::parse(&ask("w3"), &LIMITS).unwrap();
    let view = index.view(&Weights::default(), |_| true);
    let mut read = 0;
    let ranking = loop {
        match index.search(&query, &view, &mut Scratch::default()) {
            Ok(ranking) => break ranking,
            Err(missing) => {
                for wanted in index.wanted(&missing) {
                    let bytes = cache.read(&wanted.name, wanted.range.clone()).unwrap();
                    read += bytes.len();
                    assert!(index.supply(&wanted, Some(&bytes)));
                }
            }
        }
    };
    assert_eq!(
        ranking,
        cache.search(&mut workspace.anew(), "w3").hits.into_iter().fold(
            Ranking { hits: Vec::new(), ..ranking.clone() },
            |mut all, hit| {
                all.hits.push(recollex_core::search::Ranked { signals: Vec::new(), ..hit });
                all
            },
        )
    );
    assert!(read * 2 < whole, "{read} of {whole}");
    // A second time everything is at hand, until it is let go.
    assert!(index.search(&query, &view, &mut Scratch::default()).is_ok());
    index.shrink(0);
    assert!(index.search(&query, &view, &mut Scratch::default()).is_ok());
    index.shrink(0);
    index.shrink(0);
    assert!(index.search(&query, &view, &mut Scratch::default()).is_err());
}

#[test]
fn another_manner_is_another_index() {
    let (mut cache, workspace) = (Cache::default(), large(100));
    let mut index = cache.open();
    workspace.index(&mut index);
    cache.save(&mut index);
    assert_eq!(cache.open().len(), 100);
    let catalog = cache.0.get(CATALOG).unwrap();
    let mut other = Opening::new(Some(catalog), b"otherwise");
    assert!(other.wanted().is_none());
    other.supply(None);
    assert!(other.finish().is_empty());
    assert_eq!(log_of(catalog, b"otherwise"), None);
}

#[test]
fn what_cannot_be_relied_on_is_not_kept() {
    let mut index = Index::new();
    let racy = Stamp { size: 1, token: "t", racy: true };
    index.finish("a.md", &racy, false);
    assert_eq!(index.known("a.md", &racy), Known::Not);
    let long = "t".repeat(256);
    index.finish("a.md", &Stamp { size: 1, token: &long, racy: false }, false);
    assert_eq!(index.known("a.md", &Stamp { size: 1, token: &long, racy: false }), Known::Not);
    // It is there all the same, and found.
    index.begin_survey();
    index.replace("a.md");
    index.add("a.md", &document(&Record::within("a.md", "p/a/1", "budget"))).unwrap();
    index.finish("a.md", &racy, false);
    assert!(index.unseen().is_empty() && index.len() == 1);
    let stamp = Stamp { racy: false, ..racy };
    index.finish("a.md", &stamp, true);
    // It was reliable once.
    assert_eq!(index.known("a.md", &racy), Known::This { faulty: true });
    assert_eq!(index.known("a.md", &Stamp { size: 2, ..stamp }), Known::Not);
}

/// What [`Index::new`] makes can be opened again: with empty settings, as it has none.
#[test]
fn an_index_of_no_settings_opens_with_empty_ones() {
    let mut cache = Cache::default();
    let mut index = Index::new();
    let record = Record::new("p/t/1", "budget");
    record.add_to(&mut index);
    index.finish(&record.path, &stamp(&[], "v1"), false);
    cache.save(&mut index);
    let mut opening = Opening::new(cache.0.get(CATALOG).map(Vec::as_slice), b"");
    while let Some(wanted) = opening.wanted().cloned() {
        opening.supply(cache.read(&wanted.name, wanted.range));
    }
    assert_eq!(cache.search(&mut opening.finish(), "budget").hits.len(), 1);
}
