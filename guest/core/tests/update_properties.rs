//! Updates of any kind, one after the other, against a simple model; and requests of any shape.

mod update_support;

use proptest::prelude::*;
use recollex_core::update::{
    Caller, Limits, Patch, Plan, Position, Proposal, ProposedDestination, ProposedEdit, ProposedOperation,
    ProposedRecord, Reference, Request,
};
use std::collections::{BTreeMap, BTreeSet};
use update_support::{Memory, REVISION, request, told};

/// A block of the model: what it is called, once it is, and what it says.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Block {
    ids: Vec<String>,
    content: String,
}

/// A heading of the model with what stands under it.
#[derive(Clone, Debug, Default)]
struct Section {
    blocks: Vec<Block>,
    below: Vec<(String, Section)>,
}

impl Section {
    /// The section of these headings; those that are missing are made.
    fn at(&mut self, headings: &[String]) -> &mut Section {
        let Some((first, rest)) = headings.split_first() else { return self };
        let place = self.below.iter().position(|(heading, _)| heading == first).unwrap_or_else(|| {
            self.below.push((first.clone(), Section::default()));
            self.below.len() - 1
        });
        self.below[place].1.at(rest)
    }

    fn prune(&mut self) -> bool {
        self.below.retain_mut(|(_, section)| section.prune());
        !self.blocks.is_empty() || !self.below.is_empty()
    }

    fn list(&self, topic: &str, above: &mut Vec<String>, out: &mut Vec<(String, Vec<String>, Vec<String>, String)>) {
        for block in &self.blocks {
            out.push((topic.to_owned(), above.clone(), block.ids.clone(), block.content.clone()));
        }
        for (heading, section) in &self.below {
            above.push(heading.clone());
            section.list(topic, above, out);
            above.pop();
        }
    }

    fn find(&mut self, id: &str) -> Option<(&mut Section, usize)> {
        if let Some(at) = self.blocks.iter().position(|block| block.ids.iter().any(|one| one == id)) {
            return Some((self, at));
        }
        self.below.iter_mut().find_map(|(_, section)| section.find(id))
    }
}

#[derive(Clone, Debug, Default)]
struct Model {
    topics: BTreeMap<String, Section>,
}

/// What an update would have to do to be refused.
struct No;

impl Model {
    fn find(&mut self, id: &str) -> Option<(&mut Section, usize)> {
        self.topics.values_mut().find_map(|section| section.find(id))
    }

    fn ids_of(&mut self, id: &str) -> Result<Vec<String>, No> {
        let (section, at) = self.find(id).ok_or(No)?;
        Ok(section.blocks[at].ids.clone())
    }

    fn put(&mut self, destination: &ProposedDestination, blocks: Vec<Block>) -> Result<(), No> {
        let section = self.topics.entry(destination.topic.clone()).or_default().at(&destination.headings);
        let place = |id: &str| section.blocks.iter().position(|block| block.ids.iter().any(|one| one == id)).ok_or(No);
        let at = match &destination.position {
            Position::Start => 0,
            Position::End => section.blocks.len(),
            Position::Before(id) => place(id)?,
            Position::After(id) => place(id)? + 1,
        };
        section.blocks.splice(at..at, blocks);
        Ok(())
    }

    /// What the operations come to.
    fn make(&self, operations: &[ProposedOperation]) -> Result<Self, No> {
        let mut model = self.clone();
        let (mut updated, mut deleted, mut moved) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
        let mut touched = BTreeSet::new();
        for operation in operations {
            let anchor = match operation {
                ProposedOperation::Create { destination, .. } | ProposedOperation::Move { destination, .. } => {
                    match &destination.position {
                        Position::Before(id) | Position::After(id) => Some(id),
                        Position::Start | Position::End => None,
                    }
                }
                _ => None,
            };
            if let Some(anchor) = anchor {
                model.ids_of(anchor)?;
            }
            match operation {
                ProposedOperation::Create { .. } => {}
                ProposedOperation::Update { id, .. } => {
                    let key = model.ids_of(id)?;
                    if !updated.insert(key.clone()) || touched.contains(&key) {
                        return Err(No);
                    }
                }
                ProposedOperation::Delete { id } => {
                    let key = model.ids_of(id)?;
                    if !deleted.insert(id.clone()) || updated.contains(&key) || moved.contains(&key) {
                        return Err(No);
                    }
                    touched.insert(key);
                }
                ProposedOperation::Move { ids, .. } => {
                    let named: BTreeSet<&String> = ids.iter().collect();
                    let mut here = BTreeSet::new();
                    for id in ids {
                        let key = model.ids_of(id)?;
                        if key.iter().any(|one| !named.contains(one)) || touched.contains(&key) || moved.contains(&key)
                        {
                            return Err(No);
                        }
                        here.insert(key);
                    }
                    if named.len() < ids.len() || anchor.is_some_and(|anchor| named.contains(anchor)) {
                        return Err(No);
                    }
                    moved.extend(here);
                }
            }
        }
        let is_move = |operation: &&ProposedOperation| matches!(operation, ProposedOperation::Move { .. });
        for operation in operations.iter().filter(|one| !is_move(one)).chain(operations.iter().filter(is_move)) {
            match operation {
                ProposedOperation::Create { record, destination } => {
                    model.put(destination, vec![Block { ids: Vec::new(), content: record.content.clone() }])?;
                }
                ProposedOperation::Update { id, record } => {
                    let (section, at) = model.find(id).ok_or(No)?;
                    section.blocks[at].content = record.content.clone();
                }
                ProposedOperation::Delete { id } => {
                    let (section, at) = model.find(id).ok_or(No)?;
                    section.blocks[at].ids.retain(|one| one != id);
                    if section.blocks[at].ids.is_empty() {
                        section.blocks.remove(at);
                    }
                }
                ProposedOperation::Move { ids, destination } => {
                    let mut blocks = Vec::new();
                    for id in ids {
                        if let Some((section, at)) = model.find(id) {
                            blocks.push(section.blocks.remove(at));
                        }
                    }
                    model.put(destination, blocks)?;
                }
            }
        }
        model.topics.retain(|_, section| section.prune());
        Ok(model)
    }

    /// Gives new blocks the ids that the plan gave them.
    fn name(&mut self, plan: &Plan) {
        fn unnamed<'s>(section: &'s mut Section, out: &mut Vec<&'s mut Block>) {
            out.extend(section.blocks.iter_mut().filter(|block| block.ids.is_empty()));
            section.below.iter_mut().for_each(|(_, section)| unnamed(section, out));
        }
        let mut given: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for block in plan.block_ids() {
            given.entry(block.topic.as_str()).or_default().push(&block.id);
        }
        for (topic, section) in &mut self.topics {
            let mut blocks = Vec::new();
            unnamed(section, &mut blocks);
            let ids = given.remove(topic.as_str()).unwrap_or_default();
            assert_eq!(blocks.len(), ids.len(), "{topic}");
            blocks.into_iter().zip(ids).for_each(|(block, id)| block.ids.push(id.to_owned()));
        }
        assert!(given.is_empty());
    }

    fn list(&self) -> Vec<(String, Vec<String>, Vec<String>, String)> {
        let mut out = Vec::new();
        for (topic, section) in &self.topics {
            section.list(topic, &mut Vec::new(), &mut out);
        }
        out
    }

    fn ids(&self) -> Vec<String> {
        self.list().into_iter().flat_map(|(_, _, ids, _)| ids).collect()
    }
}

/// An operation whose ids are yet to be chosen among those there are.
#[derive(Clone, Debug)]
enum Rough {
    Create(String, Where),
    Update(usize, String),
    Delete(usize),
    Move(Vec<usize>, bool, Where),
}

#[derive(Clone, Debug)]
struct Where {
    topic: usize,
    headings: Vec<String>,
    position: u8,
    anchor: usize,
}

fn place() -> impl Strategy<Value = Where> {
    let headings = prop::collection::vec(prop::sample::select(vec!["A", "B"]).prop_map(str::to_owned), 0..3);
    (0..3usize, headings, 0..6u8, any::<usize>()).prop_map(|(topic, headings, position, anchor)| Where {
        topic,
        headings,
        position,
        anchor,
    })
}

fn content() -> impl Strategy<Value = String> {
    prop::sample::select(vec!["One.", "Two\nlines.", "你好 😀", "a | b", "x ^ y [z]", "50% (of it)"])
        .prop_map(str::to_owned)
}

fn rough() -> impl Strategy<Value = Rough> {
    prop_oneof![
        4 => (content(), place()).prop_map(|(content, place)| Rough::Create(content, place)),
        2 => (any::<usize>(), content()).prop_map(|(id, content)| Rough::Update(id, content)),
        2 => any::<usize>().prop_map(Rough::Delete),
        2 => (prop::collection::vec(any::<usize>(), 1..4), prop::bool::weighted(0.8), place())
            .prop_map(|(ids, whole, place)| Rough::Move(ids, whole, place)),
    ]
}

const TOPICS: [&str; 3] = ["topics/a.md", "topics/b/c d.md", "topics/z.md"];

fn settle(rough: &Rough, model: &mut Model) -> Option<ProposedOperation> {
    let ids = model.ids();
    let pick = |number: usize| ids.get(number.checked_rem(ids.len())?).cloned();
    let destination = |place: &Where, model: &mut Model| {
        let mut to = ProposedDestination {
            topic: TOPICS[place.topic].to_owned(),
            headings: place.headings.clone(),
            position: if place.position.is_multiple_of(2) { Position::Start } else { Position::End },
        };
        if place.position > 2
            && let Some(anchor) = pick(place.anchor)
        {
            // Mostly where the anchor is.
            if place.position > 3 {
                let at = model.list().into_iter().find(|(_, _, ids, _)| ids.contains(&anchor)).expect("is there");
                (to.topic, to.headings) = (at.0, at.1);
            }
            to.position =
                if place.position.is_multiple_of(2) { Position::Before(anchor) } else { Position::After(anchor) };
        }
        to
    };
    let record = |content: &str| ProposedRecord {
        content: content.to_owned(),
        time: None,
        sources: vec![Reference { source: "D1:1".to_owned(), label: None }],
    };
    Some(match rough {
        Rough::Create(content, place) => {
            ProposedOperation::Create { record: record(content), destination: destination(place, model) }
        }
        Rough::Update(id, content) => ProposedOperation::Update { id: pick(*id)?, record: record(content) },
        Rough::Delete(id) => ProposedOperation::Delete { id: pick(*id)? },
        Rough::Move(numbers, whole, place) => {
            let mut chosen = Vec::new();
            for number in numbers {
                let id = pick(*number)?;
                if *whole {
                    let all = model.ids_of(&id).ok()?;
                    chosen.extend(all.into_iter().filter(|id| !chosen.contains(id)).collect::<Vec<_>>());
                } else {
                    chosen.push(id);
                }
            }
            ProposedOperation::Move { ids: chosen, destination: destination(place, model) }
        }
    })
}

/// A workspace with a merged block, and its model.
fn start() -> (Memory, Model) {
    let text = "# A\n\nMerged.[^e-1] ^ma ^mb\n\nAlone.[^e-1] ^al\n\n[^e-1]: Time: `2026`; Sources: [x](../sources/D1.md#d1-1)\n";
    let block = |ids: &[&str], content: &str| Block {
        ids: ids.iter().map(|id| (*id).to_owned()).collect(),
        content: content.to_owned(),
    };
    let section =
        Section { blocks: vec![block(&["ma", "mb"], "Merged."), block(&["al"], "Alone.")], below: Vec::new() };
    let root = Section { blocks: Vec::new(), below: vec![("A".to_owned(), section)] };
    (Memory::new(&[(TOPICS[0], text)]), Model { topics: BTreeMap::from([(TOPICS[0].to_owned(), root)]) })
}

fn records(operations: Vec<ProposedOperation>) -> Proposal {
    Proposal {
        base_revision: REVISION.to_owned(),
        edit: ProposedEdit::Records(operations),
        sources: Vec::new(),
        commit_message: None,
        removed_blocks: Vec::new(),
    }
}

fn changes(changes: Vec<(String, Option<String>)>) -> Proposal {
    Proposal { edit: ProposedEdit::Changes(changes), ..records(Vec::new()) }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn sequences_of_operations_do_what_a_simple_model_does(
        updates in prop::collection::vec(prop::collection::vec(rough(), 1..5), 1..8)
    ) {
        let (mut memory, mut model) = start();
        for rough in updates {
            let operations: Vec<_> = rough.iter().filter_map(|one| settle(one, &mut model)).collect();
            if operations.is_empty() {
                continue;
            }
            let before = memory.topics.clone();
            let repeated = operations.iter().any(|operation| match operation {
                ProposedOperation::Move { ids, .. } => ids.iter().collect::<BTreeSet<_>>().len() < ids.len(),
                _ => false,
            });
            let proposal = records(operations.clone());
            let Ok(request) = Request::new(proposal, &Limits::default()) else {
                prop_assert!(repeated, "{operations:?}");
                continue;
            };
            match (model.make(&operations), memory.update(request, Memory::owner())) {
                (Ok(mut next), Ok(plan)) => {
                    next.name(&plan);
                    model = next;
                    prop_assert_eq!(memory.blocks(), model.list(), "{:?}", operations);
                    prop_assert_eq!(memory.faults(), Vec::<String>::new(), "{:?}\n{:#?}", operations, memory.topics);
                    let known = |id: &String| before.values().any(|text| text.contains(&format!("^{id}")));
                    prop_assert!(plan.created().iter().all(|id| !known(id)));
                    prop_assert!(plan.removed().iter().all(|id| known(id) && !model.ids().contains(id)));
                    prop_assert!(plan.changed().iter().all(|id| known(id) && model.ids().contains(id)));
                }
                (Err(No), Err(_)) => prop_assert_eq!(&memory.topics, &before),
                (expected, got) => {
                    let got = got.map(|_| ()).map_err(|error| told(&error));
                    prop_assert!(false, "expected {}, got {got:?}: {operations:#?}", expected.is_ok());
                }
            }
            // What is committed is in order: given as it is, nothing changes.
            let same = memory.topics.iter().map(|(path, text)| (path.clone(), Some(text.clone()))).collect::<Vec<_>>();
            if !same.is_empty() {
                let plan = memory.plan(self::request(changes(same)), Memory::owner());
                prop_assert!(plan.is_ok_and(|plan| plan.is_empty()), "{:#?}", memory.topics);
            }
        }
    }
}

fn topic_text() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "# A\n",
        "## B\n",
        "\n",
        "\n\n",
        "Text",
        " more.",
        "[^e1]",
        "[^e-1]",
        "[^x]",
        " ^aa",
        " ^new",
        "\n",
        "[^e1]: Time: 2026; Sources: D1:1\n",
        "[^e-1]: Time: `2026`; Sources: [x](../sources/D1.md#d1-1)\n",
        "[^x]: Time: 2026-13; Sources: new-source-a, p/t/pending\n",
        "```\n",
        "~~~\n",
        "<!-- c -->\n",
        "\r\n",
        "\r",
        "\u{feff}",
        "\u{85}",
        "[l](b.md#^aa)",
        "[l](b.md)",
        "😀",
        "Fact.[^e-1] ^bb\n",
        "One.[^mem_1] ",
        "[^mem_1]: Time: 2026; Sources: D1:2\n",
    ]);
    prop::collection::vec(piece, 0..14).prop_map(|pieces| pieces.concat())
}

fn patch_text() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "--- a/topics/a.md\n",
        "+++ b/topics/a.md\n",
        "--- /dev/null\n",
        "+++ /dev/null\n",
        "@@ -1,3 +1,4 @@\n",
        "@@ -0,0 +1 @@\n",
        "@@ -9 +2 @@\n",
        "@@ -x +1 @@\n",
        " \n",
        "\n",
        " Text\n",
        "-Text\n",
        "+New\n",
        "\\ No newline\n",
        "diff --git a/x b/x\n",
        "rename from x\n",
        "-- \n",
        "garbage\n",
        "--- \"a/topics/\\303\\251.md\"\n",
        "@@ -99999999999999999999 +1 @@\n",
        "---\n",
        "--- a/core.md\n",
        "+++ b/core.md\n",
        " # A\n",
        "é",
        "\r\n",
    ]);
    prop::collection::vec(piece, 0..14).prop_map(|pieces| pieces.concat())
}

fn json_text() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        Just("null".to_owned()),
        Just("1".to_owned()),
        Just("true".to_owned()),
        prop::sample::select(vec![
            "",
            " ",
            "r1-now",
            "topics/a.md",
            "write",
            "delete",
            "create",
            "move_records",
            "update_record",
            "new-source-a",
            "D1:1",
            "aa",
            "start",
            "before",
            "2026"
        ])
        .prop_map(|text| format!("{text:?}")),
    ];
    leaf.prop_recursive(4, 40, 6, |inner| {
        let key = prop::sample::select(vec![
            "base_revision",
            "patch",
            "changes",
            "memory_changes",
            "sources",
            "commit_message",
            "removed_blocks",
            "path",
            "action",
            "content",
            "op",
            "memory_id",
            "memory_ids",
            "destination",
            "topic_path",
            "headings",
            "position",
            "anchor_memory_id",
            "time",
            "source_refs",
            "source",
            "label",
            "role",
            "observed_at",
            "other",
        ]);
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(|items| format!("[{}]", items.join(","))),
            prop::collection::vec((key, inner), 0..8).prop_map(|fields| {
                let fields: Vec<String> = fields.into_iter().map(|(key, value)| format!("{key:?}:{value}")).collect();
                format!("{{{}}}", fields.join(","))
            }),
        ]
    })
}

proptest! {
    #[test]
    fn requests_of_any_shape_are_read_or_refused(text in prop_oneof![json_text(), any::<String>()]) {
        match Request::from_json(&text, &Limits::default()) {
            Ok(request) => {
                let mut memory = start().0;
                let before = memory.topics.clone();
                if memory.update(request, Memory::owner()).is_err() {
                    prop_assert_eq!(memory.topics, before);
                }
            }
            Err(faults) => prop_assert!(!faults.is_empty()),
        }
    }

    #[test]
    fn patches_of_any_shape_are_read_or_refused(patch in prop_oneof![patch_text(), any::<String>()], text in topic_text()) {
        match Patch::parse(&patch) {
            Ok(patch) => {
                for file in patch.files() {
                    let _ = (file.apply(Some(&text)), file.apply(None));
                }
            }
            Err(faults) => prop_assert!(!faults.is_empty()),
        }
    }

    #[test]
    fn a_patch_makes_of_a_text_what_it_was_made_from(
        old in prop::collection::vec(prop::sample::select(vec!["", "a", "b", "-- c", "++ d", " e", "\\f", "@@ g"]), 0..12),
        edits in prop::collection::vec((any::<prop::sample::Index>(), 0..3usize, prop::collection::vec(prop::sample::select(vec!["", "x", "-- y", "++ z"]), 0..3)), 1..4),
        context in 0..3usize,
    ) {
        // Disjoint replacements, each a hunk of its own with lines around it that no other has.
        let mut spots: Vec<(usize, usize, Vec<&str>)> = edits
            .into_iter()
            .map(|(at, length, new)| {
                let at = at.index(old.len() + 1);
                (at, length.min(old.len() - at), new)
            })
            .filter(|(_, length, new)| *length > 0 || !new.is_empty())
            .collect();
        spots.sort();
        let mut patch = String::from("--- a/topics/a.md\n+++ b/topics/a.md\n");
        let (mut new, mut at, mut hunks) = (Vec::new(), 0, 0);
        for (start, length, lines) in spots {
            if start < at || (hunks > 0 && start == at) {
                continue;
            }
            let before = context.min(start - at);
            let shown = &old[start - before..start];
            let removed = &old[start..start + length];
            new.extend_from_slice(&old[at..start]);
            new.extend_from_slice(&lines);
            at = start + length;
            let first = if shown.is_empty() && removed.is_empty() { start } else { start - before + 1 };
            patch.push_str(&format!("@@ -{first},{} +1,{} @@\n", shown.len() + removed.len(), shown.len() + lines.len()));
            let marked = shown.iter().map(|line| (' ', line)).chain(removed.iter().map(|line| ('-', line))).chain(lines.iter().map(|line| ('+', line)));
            marked.for_each(|(mark, line)| patch.push_str(&format!("{mark}{line}\n")));
            hunks += 1;
        }
        new.extend_from_slice(&old[at..]);
        prop_assume!(hunks > 0);
        let join = |lines: &[&str]| lines.iter().map(|line| format!("{line}\n")).collect::<String>();
        let parsed = Patch::parse(&patch).map_err(|faults| TestCaseError::fail(format!("{patch}{faults:?}")))?;
        prop_assert_eq!(parsed.files()[0].apply(Some(&join(&old))), Ok(Some(join(&new))), "{}", patch);
    }

    #[test]
    fn whatever_is_written_is_planned_or_refused(
        committed in topic_text(),
        other in topic_text(),
        given in topic_text(),
        append in any::<bool>(),
        paired in any::<bool>(),
    ) {
        let mut memory = Memory::new(&[("topics/a.md", &committed), ("topics/b.md", &other), ("topics/core.md", "Core.[^e-1] ^core\n\n[^e-1]: Time: `2026`; Sources: [x](D1:1)\n")]);
        let text = if append { format!("{committed}\n{given}") } else { given };
        let caller = || -> Caller { if paired { Memory::paired() } else { Memory::owner() } };
        let before = memory.clone();
        let proposal = changes(vec![("topics/a.md".to_owned(), Some(text))]);
        match memory.update(request(proposal), caller()) {
            Ok(plan) => {
                prop_assert_eq!(&memory.topics["topics/core.md"], &before.topics["topics/core.md"]);
                if paired {
                    // Every sound block still says what it said.
                    let now = memory.blocks();
                    for block in before.blocks() {
                        prop_assert!(now.iter().any(|one| one.0 == block.0 && one.2 == block.2 && one.3 == block.3), "{block:?} is gone from {now:?}");
                    }
                }
                let same = memory.topics.iter().map(|(path, text)| (path.clone(), Some(text.clone()))).collect();
                let again = memory.plan(request(changes(same)), Memory::owner());
                let _ = (plan, again);
            }
            Err(rejection) => {
                prop_assert!(!told(&rejection).is_empty());
                prop_assert_eq!(memory.topics, before.topics);
            }
        }
    }
}
