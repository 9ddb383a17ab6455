//! What is kept of topics says what the topics say, whatever happened to the file it is kept in; and what is derived from a
//! change is what would be derived from everything.

use proptest::collection::vec;
use proptest::prelude::*;
use recollex_core::digest::{Digest, FileHasher};
use recollex_core::ids::{SourceId, SourceRef, TopicPath};
use recollex_core::source::Limits;
use recollex_core::table::{CommittedTopics, Save, TopicNote, TopicTable};
use recollex_core::topic::edit::{Committed, Snapshot};
use recollex_core::topic::{Check, Sources, TopicRef, Tree};
use recollex_core::views::{
    CORE_FILE, CORE_TOPIC, CoreDraft, Derivation, Derived, RuntimeState, Timeline, ViewLimits, recent_events, relations,
};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

/// The archives: records `p/t/0`, `p/t/1`, … of two conversations, so many as they have.
#[derive(Clone, Debug, Default)]
struct Archives {
    lengths: [u8; 2],
}

fn record(conversation: u8, number: u8) -> SourceId {
    SourceId::parse(&format!("p/t {conversation}/{number}")).expect("an id")
}

impl Archives {
    fn digest_of(&self, path: &str) -> Option<Digest> {
        let conversation = (0..2_u8).find(|number| record(*number, 0).v2_path() == path)?;
        let length = self.lengths[usize::from(conversation)];
        (length > 0).then(|| Digest::of(&[conversation, length]))
    }
}

impl Sources for Archives {
    fn record_at(&self, path: &str, anchor: &str) -> Option<SourceId> {
        let all = (0..2_u8).flat_map(|at| (0..self.lengths[usize::from(at)]).map(move |number| record(at, number)));
        all.into_iter().find(|id| id.v2_path() == path && id.anchor() == anchor)
    }
}

const TOPICS: [&str; 4] = ["topics/a.md", "topics/b/c.md", "topics/b.md", CORE_TOPIC];
const TIMES: [&str; 5] = ["2026", "2026-01", "2026-01-02", "undated", "2026-02-30"];

/// A piece of a topic. Numbers choose from what there is.
#[derive(Clone, Debug)]
enum Piece {
    Block { ids: Vec<u8>, cites: Vec<u8>, link: Option<(u8, u8)>, word: u8 },
    Older { ids: Vec<u8>, word: u8 },
    Definition { label: u8, time: u8, handle: Option<u8>, place: Option<(u8, u8)> },
    OlderDefinition { id: u8, time: u8 },
    Heading(u8),
    Fence(u8),
    Loose(u8),
}

fn piece() -> impl Strategy<Value = Piece> {
    let block = (vec(0_u8..10, 1..3), vec(0_u8..6, 0..3), proptest::option::of((0_u8..10, 0_u8..4)), 0_u8..3)
        .prop_map(|(ids, cites, link, word)| Piece::Block { ids, cites, link, word });
    let definition = (0_u8..6, 0_u8..4, proptest::option::of(0_u8..4), proptest::option::of((0_u8..2, 0_u8..4)))
        .prop_map(|(label, time, handle, place)| Piece::Definition { label, time, handle, place });
    prop_oneof![
        6 => block,
        1 => (vec(0_u8..4, 1..3), 0_u8..3).prop_map(|(ids, word)| Piece::Older { ids, word }),
        6 => definition,
        1 => (0_u8..4, 0_u8..5).prop_map(|(id, time)| Piece::OlderDefinition { id, time }),
        1 => (0_u8..3).prop_map(Piece::Heading),
        1 => (0_u8..6).prop_map(Piece::Fence),
        1 => (0_u8..3).prop_map(Piece::Loose),
    ]
}

fn text(path: &TopicPath, pieces: &[Piece]) -> String {
    let place = |conversation: u8, number: u8| {
        let id = record(conversation, number);
        format!("{}#{}", path.relative(&id.v2_path()), id.anchor())
    };
    let mut out = String::new();
    for piece in pieces {
        match piece {
            Piece::Block { ids, cites, link, word } => {
                out.push_str(&format!("Word {word}"));
                if let Some((id, topic)) = link {
                    out.push_str(&format!(" [see]({}#^b{id})", path.relative(TOPICS[usize::from(*topic)])));
                }
                for (at, label) in cites.iter().enumerate() {
                    out.push_str(&format!("{}[^l{label}]", if at % 2 == 1 { " and" } else { "" }));
                }
                ids.iter().for_each(|id| out.push_str(&format!(" ^b{id}")));
            }
            Piece::Older { ids, word } => {
                ids.iter().for_each(|id| out.push_str(&format!("Old {word} [x](#^b{id})[^mem_{id}] ")));
            }
            Piece::Definition { label, time, handle, place: at } => {
                let time = TIMES[usize::from(*time)];
                let handle = handle.map(|turn| format!("[turn](D1:{turn})"));
                let at = at.map(|(conversation, number)| format!("[said]({})", place(conversation, number)));
                let sources: Vec<String> = handle.into_iter().chain(at).collect();
                out.push_str(&format!("[^l{label}]: Time: `{time}`; Sources: {}", sources.join(", ")));
            }
            Piece::OlderDefinition { id, time } => {
                let time = TIMES[usize::from(*time)];
                out.push_str(&format!("[^mem_{id}]: {time} · Sources: [d](D2:{id})"));
            }
            Piece::Heading(word) => out.push_str(&format!("## Heading {word}")),
            Piece::Fence(label) => {
                out.push_str(&format!("```\n[^l{label}]: Time: `2026`; Sources: [turn](D1:1)\n```"));
            }
            Piece::Loose(word) => out.push_str(&format!("Loose {word}")),
        }
        out.push_str("\n\n");
    }
    out
}

/// A change of a workspace.
#[derive(Clone, Debug)]
enum Event {
    /// Topics become these; none: gone.
    Edit(Vec<(u8, Option<Vec<Piece>>)>),
    /// The archives become this long.
    Archives([u8; 2]),
    /// Topics become these while the archives are this long, and then archives are put back to what they were. Whether what is in
    /// memory is lost in between.
    Meanwhile([u8; 2], Vec<(u8, Option<Vec<Piece>>)>, bool),
    /// What is in memory is lost; the cache file is as it was saved.
    Reopen,
    CutCache(usize),
    FlipCache(usize, u8),
    DropCache,
}

fn event() -> impl Strategy<Value = Event> {
    let edits = || vec((0_u8..4, proptest::option::weighted(0.9, vec(piece(), 0..7))), 1..3);
    prop_oneof![
        8 => edits().prop_map(Event::Edit),
        2 => [0_u8..5, 0..5].prop_map(Event::Archives),
        1 => ([0_u8..5, 0..5], edits(), any::<bool>()).prop_map(|(lengths, edits, lost)| Event::Meanwhile(lengths, edits, lost)),
        2 => Just(Event::Reopen),
        1 => any::<usize>().prop_map(Event::CutCache),
        1 => (any::<usize>(), 1_u8..).prop_map(|(at, bits)| Event::FlipCache(at, bits)),
        1 => Just(Event::DropCache),
    ]
}

fn texts(edits: Vec<(u8, Option<Vec<Piece>>)>) -> BTreeMap<TopicPath, Option<String>> {
    let edits = edits.into_iter().map(|(topic, pieces)| (path(TOPICS[usize::from(topic)]), pieces));
    edits.map(|(path, pieces)| (path.clone(), pieces.map(|pieces| text(&path, &pieces)))).collect()
}

/// `PROPTEST_CASES`, if it is set.
fn cases() -> u32 {
    let set = std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok());
    set.unwrap_or(if cfg!(debug_assertions) { 300 } else { 3000 })
}

const LIMITS: ViewLimits = ViewLimits { core_budget: 200, recent: 4 };

/// A workspace that keeps a table and its views up to date, change by change.
struct Workspace {
    topics: BTreeMap<TopicPath, String>,
    archives: Archives,
    table: TopicTable,
    cache: Vec<u8>,
    state: RuntimeState,
    views: BTreeMap<String, String>,
}

fn digest(text: &str) -> Digest {
    let mut hasher = FileHasher::new();
    hasher.push(text.as_bytes());
    hasher.finish().root
}

fn rendered(core: &CoreDraft) -> String {
    let tokens: Vec<u64> = core.texts().iter().map(|text| text.len() as u64).collect();
    core.render(&tokens).text
}

/// Pending: every second turn.
fn trusted(source: &SourceRef) -> bool {
    !matches!(source.as_str(), "D1:1" | "D1:3")
}

impl Workspace {
    fn new() -> Self {
        let limits = Limits::default();
        let mut workspace = Self {
            topics: BTreeMap::new(),
            archives: Archives::default(),
            table: TopicTable::new(&limits),
            cache: Vec::new(),
            state: RuntimeState::default(),
            views: BTreeMap::new(),
        };
        let all = workspace.all(&RuntimeState::default());
        workspace.take(all);
        workspace
    }

    /// Everything derived from everything.
    fn all(&self, state: &RuntimeState) -> Derived {
        let derivation = Derivation::whole(&self.table, state, LIMITS);
        let mut asked = BTreeSet::new();
        let mut text = |path: &TopicPath| {
            assert!(asked.insert(path.clone()), "{path} is asked for twice");
            self.topics.get(path).map(|text| Cow::Borrowed(text.as_str()))
        };
        derivation.finish(&mut text, &trusted).expect("all topics are there")
    }

    fn take(&mut self, derived: Derived) {
        for (path, content) in derived.files {
            match content {
                Some(content) => drop(self.views.insert(path, content)),
                None => drop(self.views.remove(&path)),
            }
        }
        if let Some(core) = &derived.core {
            self.views.insert(CORE_FILE.to_owned(), rendered(core));
        }
        self.state.extend_ids(derived.created.iter().map(String::as_str));
        if let Some(runtime) = &derived.runtime {
            assert_eq!(*runtime, self.state.write());
        }
        derived.notes.iter().for_each(|note| self.table.apply(note));
    }

    fn edit(&mut self, changed: &BTreeMap<TopicPath, Option<String>>) {
        let given: BTreeMap<TopicPath, Option<&str>> =
            changed.iter().map(|(path, text)| (path.clone(), text.as_deref())).collect();
        let derivation = Derivation::of_change(&self.table, given, &self.archives, &self.state, LIMITS);
        let needs = derivation.needs();
        let mut text = |path: &TopicPath| {
            assert!(needs.contains(path));
            self.topics.get(path).map(|text| Cow::Borrowed(text.as_str()))
        };
        let anew = derivation.clone().finish(&mut text, &trusted).expect("nobody else changes topics");
        // Over the files that are there, it comes to the same, and fewer topics are read.
        let file = |path: &str| self.views.get(path).cloned();
        let derived = derivation.finish_over(&mut text, &trusted, &file).expect("nobody else changes topics");
        assert_eq!(derived.files, anew.files);
        for (path, text) in changed {
            match text {
                Some(text) => drop(self.topics.insert(path.clone(), text.clone())),
                None => drop(self.topics.remove(path)),
            }
        }
        self.take(derived);
    }

    /// What a session does when it opens: reads what the table does not know, and what archives answer otherwise now.
    fn catch_up(&mut self) {
        let mut stale = self.table.settle(&|path| self.archives.digest_of(path), &self.archives);
        stale.extend(self.table.paths().filter(|path| !self.topics.contains_key(path)));
        stale.extend(
            self.topics
                .iter()
                .filter(|(path, text)| !self.table.knows(path, &digest(text)))
                .map(|(path, _)| path.clone()),
        );
        let changed: BTreeMap<_, _> =
            stale.into_iter().map(|path| (path.clone(), self.topics.get(&path).cloned())).collect();
        self.edit(&changed);
    }

    fn save(&mut self) {
        match self.table.save() {
            Save::Nothing => {}
            Save::Append { length, bytes } => {
                assert_eq!(self.cache.len() as u64, length);
                self.cache.extend_from_slice(&bytes);
            }
            Save::Replace(bytes) => self.cache = bytes,
        }
        self.table.saved();
    }

    fn reopen(&mut self) {
        self.table = TopicTable::load(self.cache.clone(), &Limits::default());
    }

    fn bulk(&self) -> TopicTable {
        let mut table = TopicTable::new(&Limits::default());
        for (path, text) in &self.topics {
            table.apply(&TopicNote::read(path, text, &self.archives));
        }
        assert!(table.settle(&|path| self.archives.digest_of(path), &self.archives).is_empty());
        table
    }

    /// Everything holds that should.
    fn check(&mut self) {
        let snapshot = Snapshot::new(self.topics.iter().map(|(path, text)| (path.clone(), text.as_str())));
        let texts: BTreeMap<&TopicPath, &str> = self.topics.iter().map(|(path, text)| (path, text.as_str())).collect();
        let known = CommittedTopics { table: &self.table, text: &|path| texts.get(path).copied() };
        for number in 0..10 {
            for name in [format!("b{number}"), format!("mem_{number}"), format!("l{number}")] {
                assert_eq!(known.topics_of(&name), snapshot.topics_of(&name), "{name}");
                assert_eq!(known.topics_defining(&name), snapshot.topics_defining(&name), "{name}");
                assert_eq!(known.linking_to(&name), snapshot.linking_to(&name), "{name}");
            }
        }
        for number in 0..10 {
            let id = format!("b{number}");
            let mut linking = Vec::new();
            for (path, text) in &self.topics {
                let check = Check::new(path.clone(), TopicRef::parse(text), &self.archives);
                for block in
                    check.all_blocks().filter(|block| block.relations().iter().any(|other| other.as_str() == id))
                {
                    linking.push((path.clone(), block.identity().as_str().to_owned()));
                }
            }
            assert_eq!(self.table.blocks_linking_to(&id), linking, "{id}");
        }
        let bulk = self.bulk();
        for (path, entry) in self.table.entries() {
            let path = TopicPath::parse(path).expect("a topic");
            let other = bulk.entry(&path).expect("is there");
            assert_eq!(format!("{entry:?}"), format!("{other:?}"), "{path}");
        }
        assert_eq!(self.table.len(), bulk.len());
        // Views, by the functions that know nothing of tables.
        let checks =
            self.topics.iter().map(|(path, text)| Check::new(path.clone(), TopicRef::parse(text), &self.archives));
        let tree = Tree::new(checks.collect());
        let units = tree.units();
        let mut expected = Timeline::of(&units).files();
        expected.insert("relations.json".to_owned(), relations(&units));
        expected.insert("recent_events.jsonl".to_owned(), recent_events(&units, &self.state, LIMITS.recent as usize));
        if let Some(core) = tree.topics().iter().find(|topic| topic.path().as_str() == CORE_TOPIC) {
            expected.insert(CORE_FILE.to_owned(), rendered(&CoreDraft::new(core, &trusted, LIMITS.core_budget)));
        }
        assert_eq!(self.views, expected);
        assert!(units.iter().all(|unit| self.state.order_of(unit.id.as_str()).is_some()));
        let (mut seeded, mut covered) = (RuntimeState::default(), RuntimeState::default());
        seeded.seed(&units);
        assert_eq!(covered.cover(&self.table), !units.is_empty());
        assert_eq!(covered.write(), seeded.write());
        assert!(!covered.cover(&self.table) && !self.state.clone().cover(&self.table));
        // And derived whole from the table.
        let mut whole = Self {
            views: BTreeMap::new(),
            table: self.table.clone(),
            topics: self.topics.clone(),
            archives: self.archives.clone(),
            cache: Vec::new(),
            state: self.state.clone(),
        };
        let all = whole.all(&whole.state);
        assert!(all.created.is_empty());
        assert_eq!(all.stale(["timeline/0001.md", "topics/a.md"]), ["timeline/0001.md"]);
        whole.take(all);
        assert_eq!(whole.views, expected);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases()))]

    #[test]
    fn changes_come_to_the_same_as_everything_anew(events in vec(event(), 1..14)) {
        let mut workspace = Workspace::new();
        for event in events {
            match event {
                Event::Edit(edits) => {
                    workspace.edit(&texts(edits));
                    workspace.save();
                }
                Event::Meanwhile(lengths, edits, lost) => {
                    let before = std::mem::replace(&mut workspace.archives.lengths, lengths);
                    workspace.edit(&texts(edits));
                    workspace.save();
                    if lost {
                        workspace.reopen();
                    }
                    workspace.archives.lengths = before;
                    workspace.catch_up();
                    workspace.save();
                }
                Event::Archives(lengths) => {
                    workspace.archives.lengths = lengths;
                    workspace.catch_up();
                    workspace.save();
                }
                Event::Reopen => {
                    workspace.reopen();
                    // Nothing is read again that was saved.
                    let unknown = workspace.topics.iter().filter(|(path, text)| !workspace.table.knows(path, &digest(text)));
                    prop_assert_eq!(unknown.count(), 0);
                    prop_assert!(workspace.table.settle(&|path| workspace.archives.digest_of(path), &workspace.archives).is_empty());
                }
                Event::CutCache(at) => {
                    let at = at % (workspace.cache.len() + 1);
                    workspace.cache.truncate(at);
                    workspace.reopen();
                    workspace.catch_up();
                    workspace.save();
                }
                Event::FlipCache(at, bits) => {
                    if !workspace.cache.is_empty() {
                        let at = at % workspace.cache.len();
                        workspace.cache[at] ^= bits;
                    }
                    workspace.reopen();
                    workspace.catch_up();
                    workspace.save();
                }
                Event::DropCache => {
                    workspace.cache.clear();
                    workspace.reopen();
                    workspace.catch_up();
                    workspace.save();
                }
            }
            workspace.check();
        }
        // Whatever came before: written whole, the table is what it would be if it were made now.
        workspace.table.settle(&|path| workspace.archives.digest_of(path), &workspace.archives);
        workspace.table.forget_file();
        let (Save::Replace(now), Save::Replace(bulk)) = (workspace.table.save(), workspace.bulk().save()) else {
            panic!("a table that is nowhere is written whole")
        };
        prop_assert_eq!(now, bulk);
    }
}

fn path(text: &str) -> TopicPath {
    TopicPath::parse(text).expect("a topic")
}

/// A topic with one definition that leads to record `number` of a conversation.
fn resting_on(topic: &str, conversation: u8, number: u8) -> BTreeMap<TopicPath, Option<String>> {
    let place = Some((conversation, number));
    let number = TOPICS.iter().position(|path| *path == topic).expect("a topic") as u8;
    texts(vec![(number, Some(vec![Piece::Definition { label: 0, time: 0, handle: None, place }]))])
}

#[test]
fn a_topic_made_again_is_held_against_an_archive_that_is_what_it_was() {
    let mut workspace = Workspace::new();
    let archives = |workspace: &mut Workspace, lengths| {
        workspace.archives.lengths = lengths;
        workspace.catch_up();
        workspace.save();
        workspace.check();
    };
    let topic = || resting_on("topics/a.md", 0, 0);
    workspace.edit(&topic());
    archives(&mut workspace, [4, 0]);
    assert!(workspace.table.entry(&path("topics/a.md")).is_some_and(|entry| entry.refs().contains("p/t 0/0")));
    // While no topic rests on it, the archive goes; then the topic comes back, and then the archive.
    workspace.edit(&BTreeMap::from([(path("topics/a.md"), None)]));
    archives(&mut workspace, [0, 4]);
    workspace.edit(&topic());
    workspace.save();
    workspace.check();
    archives(&mut workspace, [4, 0]);
    assert!(workspace.table.entry(&path("topics/a.md")).is_some_and(|entry| entry.refs().contains("p/t 0/0")));
}

#[test]
fn a_topic_is_held_against_the_archives_behind_it_whatever_was_said_before() {
    // What was in memory is lost or not; the cache file is written whole or added to.
    for (lost, whole) in [(false, false), (false, true), (true, false), (true, true)] {
        let mut workspace = Workspace::new();
        workspace.archives.lengths = [2, 2];
        workspace.edit(&resting_on("topics/b.md", 0, 0));
        workspace.edit(&resting_on("topics/b/c.md", 1, 0));
        workspace.catch_up();
        workspace.save();
        // A record is added and a topic rests on it; then the archive is put back.
        workspace.archives.lengths = [3, 2];
        workspace.edit(&resting_on("topics/a.md", 0, 2));
        if whole {
            workspace.table.forget_file();
        }
        workspace.save();
        if lost {
            workspace.reopen();
        }
        workspace.archives.lengths = [2, 2];
        let asked = std::cell::RefCell::new(Vec::new());
        let sources = Asked { archives: &workspace.archives, asked: &asked };
        let digest_of = |path: &str| workspace.archives.digest_of(path);
        let mut table = workspace.table.clone();
        let stale = BTreeSet::from([path("topics/a.md")]);
        assert_eq!(table.settle(&digest_of, &sources), stale);
        // Only what nobody has asked for this topic.
        assert_eq!(asked.take(), [record(0, 2).anchor()]);
        // As long as nobody reads it again, it is told again, whatever became of the table.
        table.forget_file();
        let Save::Replace(bytes) = table.save() else { panic!("it is written whole") };
        let mut table = TopicTable::load(bytes, &Limits::default());
        assert_eq!(table.settle(&digest_of, &workspace.archives), stale);
        workspace.catch_up();
        workspace.check();
        let digest_of = |path: &str| workspace.archives.digest_of(path);
        assert!(workspace.table.settle(&digest_of, &workspace.archives).is_empty());
        let nothing = Asked { archives: &workspace.archives, asked: &asked };
        assert!(workspace.table.settle(&digest_of, &nothing).is_empty());
        assert_eq!(asked.take(), <[String; 0]>::default(), "it was settled");
    }
}

/// Archives that remember the anchors they were asked for.
struct Asked<'a> {
    archives: &'a Archives,
    asked: &'a std::cell::RefCell<Vec<String>>,
}

impl Sources for Asked<'_> {
    fn record_at(&self, path: &str, anchor: &str) -> Option<SourceId> {
        self.asked.borrow_mut().push(anchor.to_owned());
        self.archives.record_at(path, anchor)
    }
}

#[test]
fn a_block_counts_only_behind_those_it_was_written_behind() {
    // Two sessions have tables of one length, and the one adds to the file that the other has replaced.
    let of = |word: &str| {
        let mut table = TopicTable::new(&Limits::default());
        let archives = Archives::default();
        table.apply(&TopicNote::read(&path("topics/a.md"), word, &archives));
        let Save::Replace(file) = table.save() else { panic!("it is written whole") };
        table.saved();
        table.apply(&TopicNote::read(&path("topics/b.md"), word, &archives));
        let Save::Append { length, bytes } = table.save() else { panic!("it is added to") };
        assert_eq!(length, file.len() as u64);
        (file, bytes)
    };
    let ((mine, more), (theirs, _)) = (of("mine"), of("your"));
    assert_eq!(mine.len(), theirs.len());
    assert_eq!(TopicTable::load([mine, more.clone()].concat(), &Limits::default()).len(), 2);
    assert_eq!(TopicTable::load([theirs, more].concat(), &Limits::default()).len(), 1);
}

#[test]
fn an_edit_reads_what_shares_its_times_and_nothing_else() {
    let block = |id: &str, time: &str| format!("A.[^l] ^{id}\n\n[^l]: Time: `{time}`; Sources: [d](D1:2)\n");
    let mut workspace = Workspace::new();
    let changed = (0..300).map(|number| {
        let path = path(&format!("topics/{number}.md"));
        (path, Some(block(&format!("id-{number}"), &format!("2026-01-{:02}", number % 25 + 1))))
    });
    workspace.edit(&changed.collect());
    let edited = path("topics/3.md");
    let text = block("id-3", "2026-01-04").replace('A', "B");
    let derivation = Derivation::of_change(
        &workspace.table,
        BTreeMap::from([(edited.clone(), Some(text.as_str()))]),
        &workspace.archives,
        &workspace.state,
        LIMITS,
    );
    let needs: Vec<String> = derivation.needs().iter().map(ToString::to_string).collect();
    assert_eq!(needs.len(), 11, "{needs:?}");
    let mut text = |path: &TopicPath| workspace.topics.get(path).map(|text| Cow::Borrowed(text.as_str()));
    let anew = derivation.clone().finish(&mut text, &trusted).expect("nobody else changes topics");
    // With the file at hand, not even those.
    let file = |path: &str| workspace.views.get(path).cloned();
    let nothing = &mut |path: &TopicPath| panic!("{path} was read");
    let derived = derivation.finish_over(nothing, &trusted, &file).expect("nothing is read");
    assert_eq!(derived.files, anew.files);
    // Nothing links otherwise, nothing is new.
    assert_eq!(derived.files.keys().collect::<Vec<_>>(), ["timeline/2026/01/04.md"]);
    assert!(derived.runtime.is_none() && derived.core.is_none() && derived.created.is_empty());
}

#[test]
fn a_topic_that_was_changed_in_between_is_told() {
    let mut workspace = Workspace::new();
    let block = "A.[^l] ^a\n\n[^l]: Time: `2026`; Sources: [d](D1:2)\n";
    workspace.edit(&BTreeMap::from([(path("topics/a.md"), Some(block.to_owned()))]));
    let derivation = || {
        let text = "B.[^l] ^b\n\n[^l]: Time: `2026`; Sources: [d](D1:2)\n";
        let changed = BTreeMap::from([(path("topics/b.md"), Some(text))]);
        Derivation::of_change(&workspace.table, changed, &workspace.archives, &workspace.state, LIMITS)
    };
    for text in [None, Some("other")] {
        let error = derivation().finish(&mut |_| text.map(Cow::Borrowed), &trusted).expect_err("it is another text");
        assert_eq!(error.path, path("topics/a.md"));
    }
    assert!(derivation().finish(&mut |_| Some(Cow::Borrowed(block)), &trusted).is_ok());
}

#[test]
fn core_goes_with_its_topic_and_follows_trust() {
    let mut workspace = Workspace::new();
    let core = "# Core\n\nA.[^l] ^a\n\n[^l]: Time: `2026`; Sources: [d](D1:1)\n";
    workspace.edit(&BTreeMap::from([(path(CORE_TOPIC), Some(core.to_owned()))]));
    assert_eq!(workspace.views[CORE_FILE], "# Core\n");
    assert_eq!(workspace.table.resting_on("D1:1"), [path(CORE_TOPIC)]);
    let derivation =
        Derivation::of_change(&workspace.table, BTreeMap::new(), &workspace.archives, &workspace.state, LIMITS)
            .with_core();
    assert_eq!(derivation.needs(), BTreeSet::from([path(CORE_TOPIC)]));
    let derived = derivation.finish(&mut |_| Some(Cow::Borrowed(core)), &|_| true).expect("it is there");
    assert!(derived.files.is_empty());
    assert_eq!(rendered(&derived.core.expect("asked for")), core);
    workspace.edit(&BTreeMap::from([(path(CORE_TOPIC), None)]));
    assert!(!workspace.views.contains_key(CORE_FILE));
}

#[test]
fn other_settings_and_other_versions_are_not_read() {
    let mut workspace = Workspace::new();
    workspace.edit(&BTreeMap::from([(path("topics/a.md"), Some("# A\n".to_owned()))]));
    workspace.save();
    let limits = Limits::default();
    assert_eq!(TopicTable::load(workspace.cache.clone(), &limits).len(), 1);
    let other = Limits { header_bytes: limits.header_bytes + 1, ..limits };
    assert!(TopicTable::load(workspace.cache.clone(), &other).is_empty());
    let mut version = workspace.cache.clone();
    version[8] ^= 1;
    assert!(TopicTable::load(version, &limits).is_empty());
}

#[test]
fn a_file_that_is_no_text_has_no_blocks() {
    let mut table = TopicTable::new(&Limits::default());
    let digest = Digest::of(b"x");
    table.apply(&TopicNote::unreadable(&path("topics/a.md"), digest));
    let entry = table.entry(&path("topics/a.md")).expect("is there");
    assert!(!entry.is_text() && !entry.is_sound() && entry.ids().next().is_none());
    assert!(table.knows(&path("topics/a.md"), &digest));
    table.apply(&TopicNote::gone(&path("topics/a.md")));
    assert!(table.is_empty());
}

#[test]
fn differences_are_what_asking_for_each_tells() {
    let mut table = TopicTable::new(&Limits::default());
    // In the order of paths, which is not that of their text.
    let known = ["topics/a/z.md", "topics/a-b.md", "topics/b.md", "topics/c.md"];
    for name in known {
        table.apply(&TopicNote::unreadable(&path(name), Digest::of(name.as_bytes())));
    }
    table.apply(&TopicNote::gone(&path("topics/c.md")));
    for there in
        [&["topics/a/z.md", "topics/b.md"][..], &["topics/a/a.md", "topics/a-b.md", "topics/c.md"], &known, &[]]
    {
        let mut there: Vec<TopicPath> = there.iter().map(|name| path(name)).collect();
        there.sort();
        for other in [None, Some("topics/b.md")] {
            // Of one nobody knows the digest, another has changed.
            let digest = |path: &TopicPath| match path.as_str() {
                "topics/a-b.md" => None,
                name if other == Some(name) => Some(Digest::of(b"other")),
                name => Some(Digest::of(name.as_bytes())),
            };
            let found = table.differences(there.iter().map(|path| (path, digest(path))));
            let gone: Vec<TopicPath> = table.paths().filter(|path| !there.contains(path)).collect();
            let is_known = |path: &&TopicPath| digest(path).is_some_and(|digest| table.knows(path, &digest));
            let unknown: Vec<TopicPath> = there.iter().filter(|path| !is_known(path)).cloned().collect();
            assert_eq!((found.gone, found.unknown), (gone, unknown), "{there:?}");
        }
    }
}

#[test]
fn a_session_keeps_its_file_small() {
    let mut workspace = Workspace::new();
    let mut longest = 0;
    for turn in 0..2000 {
        let text = format!("A {turn}.[^l] ^a\n\n[^l]: Time: `2026`; Sources: [d](D1:2)\n");
        workspace.table.apply(&TopicNote::read(&path("topics/a.md"), &text, &workspace.archives));
        workspace.save();
        longest = longest.max(workspace.cache.len());
    }
    assert!(longest < 80 * 1024, "{longest}");
    workspace.reopen();
    assert_eq!(workspace.table.topics_of("a"), [path("topics/a.md")]);
}
