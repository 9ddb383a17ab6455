//! What holds for every session: nothing is lost, nothing is written twice, a mark changes nothing but itself, nothing panics.

use proptest::prelude::*;
use recollex_core::ids::WorkspaceId;
use recollex_core::source::Limits;
use recollex_core::time::Zone;
use recollex_core::turns::{
    Citations, CursorCandidates, Heads, Lineage, MARK_KEY, MarkSplice, Session, SessionReader, TurnLimits, mark_line,
    mark_node,
};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};

const WORKSPACE: &str = "w-0a1b2c3d";
const OTHER: &str = "w-deadbeef";

fn workspace() -> WorkspaceId {
    WorkspaceId::parse(WORKSPACE).expect("an id")
}

fn reader() -> SessionReader {
    SessionReader::new("openprogram", "s", &Zone::utc(), &Limits::default())
}

/// A node as a property makes it up.
#[derive(Clone, Debug)]
struct Made {
    id: u8,
    predecessor: Option<u8>,
    role: &'static str,
    is_blank: bool,
    is_aside: bool,
    is_rewound: bool,
    lacks_authority: bool,
    mark: Option<&'static str>,
}

impl Made {
    fn json(&self) -> Value {
        let mut metadata = Map::new();
        if self.is_aside {
            metadata.insert("display".into(), "runtime".into());
        }
        if self.is_rewound {
            metadata.insert("rewound".into(), true.into());
        }
        if self.lacks_authority {
            metadata.insert("authority_schema".into(), 1.into());
        }
        if let Some(mark) = self.mark {
            metadata.insert(MARK_KEY.into(), mark.into());
        }
        json!({
            "id": format!("n{}", self.id),
            "predecessor": self.predecessor.map(|id| format!("n{id}")),
            "role": self.role,
            "output": if self.is_blank { " \n".to_owned() } else { format!("text of {}", self.id) },
            "created_at": 1_700_000_000 + u64::from(self.id),
            "metadata": metadata,
        })
    }
}

/// Any nodes: with circles, with gaps, two with one id.
fn nodes() -> impl Strategy<Value = Vec<Made>> {
    let node = (
        0..14_u8,
        proptest::option::weighted(0.9, 0..14_u8),
        prop_oneof![5 => Just("user"), 5 => Just("llm"), 1 => Just("code"), 1 => Just("oracle")],
        prop::bool::weighted(0.1),
        prop::bool::weighted(0.1),
        prop::bool::weighted(0.1),
        prop::bool::weighted(0.05),
        prop_oneof![6 => Just(None), 2 => Just(Some(WORKSPACE)), 1 => Just(Some(OTHER))],
    );
    let node = node.prop_map(|(id, predecessor, role, is_blank, is_aside, is_rewound, lacks_authority, mark)| Made {
        id,
        predecessor,
        role,
        is_blank,
        is_aside,
        is_rewound,
        lacks_authority,
        mark,
    });
    proptest::collection::vec(node, 0..20)
}

fn session(nodes: &[Made], heads: &Heads<'_>) -> Session {
    let mut reader = reader();
    for (number, node) in nodes.iter().enumerate() {
        reader.file(&format!("{number:04}.json"), node.json().to_string().as_bytes());
    }
    reader.finish(heads)
}

fn turns(session: &Session) -> BTreeSet<String> {
    session.turns().map(|turn| turn.node.id.clone()).collect()
}

fn owed(session: &Session) -> Vec<String> {
    let owed = session.owed(workspace());
    owed.segments().iter().flat_map(|segment| segment.turns.iter().map(|turn| turn.node.id.clone())).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    #[test]
    fn nothing_said_on_any_branch_is_left_behind(mut nodes in nodes()) {
        nodes.iter_mut().for_each(|node| node.mark = None);
        let session = session(&nodes, &Heads::default());
        let owed = owed(&session);
        prop_assert_eq!(owed.len(), session.owed(workspace()).count() as usize);
        prop_assert_eq!(owed.iter().cloned().collect::<BTreeSet<_>>(), turns(&session));
        prop_assert_eq!(owed.len(), turns(&session).len(), "none twice");
        // Every node is a turn, or there is a reason; the first with an id counts.
        let ids: BTreeSet<u8> = nodes.iter().map(|node| node.id).collect();
        prop_assert_eq!(session.nodes().len(), ids.len());
    }

    #[test]
    fn what_all_branches_owe_is_what_each_owes(nodes in nodes(), head in 0..16_u8, archived in 0..16_u8) {
        let (head, archived) = (format!("n{head}"), format!("n{archived}"));
        let session = session(&nodes, &Heads { current: Some(&head), archived: &[&archived] });
        let mut union = BTreeSet::new();
        for branch in session.branches().iter().filter(|branch| !branch.archived) {
            let all: Vec<String> = session.owed_on(*branch, workspace()).iter().map(|turn| turn.node.id.clone()).collect();
            let rows: Vec<&str> = session.rows(*branch).iter().map(|row| row.id.as_str()).collect();
            let path: Vec<&str> =
                rows.iter().copied().filter(|id| session.node(id).is_some_and(|node| node.turn.is_ok())).collect();
            let marked = |id: &str| session.node(id).is_some_and(|node| node.marks.iter().any(|mark| mark == WORKSPACE));
            let newest = rows.iter().rposition(|id| marked(id)).map_or(0, |at| at + 1);
            let expected: Vec<&str> = path.into_iter().filter(|id| rows[newest..].contains(id)).collect();
            prop_assert_eq!(&all, &expected);
            union.extend(all);
        }
        let owed = owed(&session);
        prop_assert_eq!(owed.iter().cloned().collect::<BTreeSet<_>>(), union);
        prop_assert_eq!(owed.iter().collect::<BTreeSet<_>>().len(), owed.len());
    }

    /// Whoever dies after any batch and begins anew ends with the same turns written, each once.
    #[test]
    fn every_turn_is_written_once_whoever_dies(nodes in nodes(), threshold in 1..40_u64, lives in 1..4_usize) {
        let mut session = session(&nodes, &Heads::default());
        let open: BTreeSet<String> = owed(&session).into_iter().collect();
        let limits = TurnLimits { batch_tokens: threshold, ..TurnLimits::default() };
        let mut written: Vec<String> = Vec::new();
        loop {
            let batches: Vec<Vec<String>> = session
                .owed(workspace())
                .batches(&limits, |turn| turn.record.text.len() as u64)
                .take(lives)
                .map(|batch| batch.nodes().into_iter().map(str::to_owned).collect())
                .collect();
            if batches.is_empty() {
                break;
            }
            for batch in batches {
                session.mark(batch.iter().map(String::as_str), WORKSPACE);
                written.extend(batch);
            }
        }
        prop_assert_eq!(written.len(), open.len());
        prop_assert_eq!(written.into_iter().collect::<BTreeSet<_>>(), open);
    }

    #[test]
    fn a_batch_reaches_the_threshold_or_ends_its_branch(nodes in nodes(), threshold in 1..60_u64) {
        let session = session(&nodes, &Heads::default());
        let owed = session.owed(workspace());
        let limits = TurnLimits { batch_tokens: threshold, ..TurnLimits::default() };
        let count = |turn: &recollex_core::turns::Turn<'_>| turn.record.text.len() as u64;
        let mut segments = owed.segments().iter().map(|segment| (segment.branch, segment.turns.as_slice()));
        let mut rest = segments.next();
        for batch in owed.batches(&limits, count) {
            let (branch, turns) = rest.expect("a segment");
            prop_assert_eq!(batch.branch, branch);
            prop_assert_eq!(&batch.turns[..], &turns[..batch.turns.len()]);
            prop_assert_eq!(batch.tokens, batch.turns.iter().map(count).sum::<u64>());
            let without_last: u64 = batch.turns[..batch.turns.len() - 1].iter().map(count).sum();
            prop_assert!(without_last < threshold);
            let left = &turns[batch.turns.len()..];
            prop_assert!(batch.tokens >= threshold || left.is_empty());
            rest = if left.is_empty() { segments.next() } else { Some((branch, left)) };
        }
        prop_assert!(rest.is_none());
    }

    #[test]
    fn the_ledger_has_every_turn_once(nodes in nodes(), cited in proptest::collection::btree_set(0..14_u8, 0..14)) {
        let session = session(&nodes, &Heads::default());
        let citations: Citations = cited.iter().map(|id| format!("openprogram/s/n{id}")).collect();
        let ledger = session.ledger(workspace(), &citations, &|_| true);
        let mut classes: BTreeMap<String, &str> = BTreeMap::new();
        for (class, entries) in [
            ("unmarked", &ledger.unmarked),
            ("marked-uncited", &ledger.marked_uncited),
            ("stranded", &ledger.stranded),
            ("cited-unmarked", &ledger.cited_unmarked),
        ] {
            for entry in entries {
                prop_assert!(classes.insert(entry.turn.node.id.clone(), class).is_none());
            }
        }
        let owed: BTreeSet<String> = owed(&session).into_iter().collect();
        for turn in session.turns() {
            let is_marked = turn.node.marks.iter().any(|mark| mark == WORKSPACE);
            let is_cited = citations.is_cited(&turn.source_id());
            let expected = match (is_marked, is_cited) {
                (true, true) => None,
                (true, false) => Some("marked-uncited"),
                (false, true) => Some("cited-unmarked"),
                // No branch was put away, so what no branch owes lies before a mark.
                (false, false) => Some(if owed.contains(&turn.node.id) { "unmarked" } else { "stranded" }),
            };
            prop_assert_eq!(classes.get(&turn.node.id).copied(), expected, "{}", &turn.node.id);
        }
        // What is stranded can be written on request, and then nothing is.
        let stranded: Vec<&str> = ledger.stranded.iter().map(|entry| entry.turn.node.id.as_str()).collect();
        let chosen = session.chosen(stranded.iter().copied());
        let chosen: Vec<&str> = chosen.segments().iter().flat_map(|one| one.turns.iter().map(|turn| turn.node.id.as_str())).collect();
        prop_assert_eq!(chosen.len(), stranded.len());
        prop_assert_eq!(chosen.iter().collect::<BTreeSet<_>>(), stranded.iter().collect::<BTreeSet<_>>());
    }

    #[test]
    fn lines_in_pieces_of_any_size_are_the_same_session(nodes in nodes(), piece in 1..50_usize, cut in 0..400_usize) {
        let mut text = String::new();
        for node in &nodes {
            text.push_str(&format!("{}\n", node.json()));
        }
        text.push_str(&mark_line(["n1", "n2", "n99"], workspace(), true));
        let bytes = &text.as_bytes()[..text.len().saturating_sub(cut)];
        let mut whole = reader();
        whole.lines(bytes);
        let whole = whole.finish(&Heads::default());
        let mut cut = reader();
        bytes.chunks(piece).for_each(|piece| cut.lines(piece));
        let cut = cut.finish(&Heads::default());
        prop_assert_eq!(whole.nodes(), cut.nodes());
        prop_assert_eq!(whole.faults(), cut.faults());
    }

    #[test]
    fn what_cursors_left_is_a_beginning_of_every_branch(nodes in nodes(), held in proptest::collection::btree_set(0..14_u8, 0..14)) {
        let mut nodes = nodes;
        nodes.iter_mut().for_each(|node| node.mark = None);
        let mut session = session(&nodes, &Heads::default());
        let candidates = archived(&held);
        let migrated: Vec<String> = session.migrated(&candidates).into_iter().map(str::to_owned).collect();
        session.mark(migrated.iter().map(String::as_str), WORKSPACE);
        for branch in session.branches() {
            let turns: Vec<&str> = session
                .rows(*branch)
                .into_iter()
                .filter(|row| row.turn.is_ok())
                .map(|row| row.id.as_str())
                .collect();
            let count = turns.iter().take_while(|id| held.iter().any(|held| **id == format!("n{held}"))).count();
            let marked: Vec<&str> = turns.iter().copied().filter(|id| migrated.iter().any(|one| one == id)).collect();
            prop_assert_eq!(&marked[..], &turns[..count]);
            prop_assert_eq!(session.owed_on(*branch, workspace()).len(), turns.len() - count);
        }
    }

    #[test]
    fn every_turn_is_on_a_line(nodes in nodes(), head in 0..14_u8) {
        let head = format!("n{head}");
        let session = session(&nodes, &Heads { current: Some(&head), archived: &[] });
        let lineage = Lineage::of_session(&session);
        let own: BTreeSet<&str> =
            session.branches().first().map(|branch| session.rows(*branch)).unwrap_or_default().iter().map(|row| row.id.as_str()).collect();
        for turn in session.turns() {
            let line = lineage.line(&turn.record.id).expect("a line").as_str();
            prop_assert_eq!(line, if own.contains(turn.node.id.as_str()) { "own" } else { "other" });
        }
    }

    #[test]
    fn no_bytes_make_it_panic(files in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..60), 0..6)) {
        let mut reader = reader();
        for (number, bytes) in files.iter().enumerate() {
            reader.file(&number.to_string(), bytes);
            reader.lines(bytes);
            let _ = mark_node(bytes, "a", workspace());
        }
        let session = reader.finish(&Heads { current: Some("a"), archived: &["b"] });
        prop_assert!(session.nodes().len() + session.faults().len() > 0 || files.iter().all(|bytes| bytes.iter().all(u8::is_ascii_whitespace)));
    }
}

/// An archive with these nodes, as far as migration asks.
fn archived(held: &BTreeSet<u8>) -> CursorCandidates {
    use recollex_core::ids::Location;
    use recollex_core::source::{Batch, FrameRef, NewRecord, Scanner};
    let records: Vec<NewRecord> = held
        .iter()
        .map(|id| NewRecord {
            provider: "openprogram".into(),
            thread: "s".into(),
            id: format!("n{id}"),
            role: "user".into(),
            text: "x".into(),
            trust: "trusted".into(),
            ..NewRecord::default()
        })
        .collect();
    let mut candidates = CursorCandidates::default();
    if !records.is_empty() {
        let batch = Batch::check(records, &Limits::default()).expect("good records");
        let plan = batch.compare(BTreeMap::new()).expect("no file").plan().expect("nothing to read");
        for change in plan.changes.iter().filter(|change| change.path.ends_with(".md")) {
            let mut see = |frame: &FrameRef<'_>| candidates.see_frame(frame);
            let mut scanner = Scanner::new(Some(Location::of_path(&change.path)), &Limits::default());
            scanner.push_text(&change.text, &mut see);
            assert!(scanner.finish(&mut see).complete);
        }
    }
    candidates
}

/// Values with everything in them that JSON can spell.
fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        (-1e9..1e9_f64).prop_map(Value::from),
        "\\PC{0,8}".prop_map(Value::from),
        Just(Value::from("\"metadata\": {\"memory_written_scriptorium\": \"x\"}")),
        Just(Value::from("\u{2028}\n\t\\\"{}[],:")),
    ];
    leaf.prop_recursive(3, 20, 4, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            proptest::collection::btree_map("[a-z_]{0,6}", inner, 0..4)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

/// Spells a value as some program might: keys in this order, white space and escapes as the numbers say.
fn spell(value: &Value, noise: &mut dyn Iterator<Item = u8>, out: &mut String) {
    let space = |noise: &mut dyn Iterator<Item = u8>, out: &mut String| {
        out.push_str(["", "", " ", "\n  ", "\t", "\r\n", "  "][usize::from(noise.next().unwrap_or(0)) % 7]);
    };
    match value {
        Value::Object(map) => {
            out.push('{');
            for (at, (key, value)) in map.iter().enumerate() {
                if at > 0 {
                    space(noise, out);
                    out.push(',');
                }
                space(noise, out);
                spell_text(key, noise, out);
                space(noise, out);
                out.push(':');
                space(noise, out);
                spell(value, noise, out);
            }
            space(noise, out);
            out.push('}');
        }
        Value::Array(items) => {
            out.push('[');
            for (at, item) in items.iter().enumerate() {
                if at > 0 {
                    out.push(',');
                }
                space(noise, out);
                spell(item, noise, out);
                space(noise, out);
            }
            out.push(']');
        }
        Value::String(text) => spell_text(text, noise, out),
        other => out.push_str(&other.to_string()),
    }
}

fn spell_text(text: &str, noise: &mut dyn Iterator<Item = u8>, out: &mut String) {
    out.push('"');
    for c in text.chars() {
        let escape = noise.next().unwrap_or(0).is_multiple_of(5);
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            c if escape || c.is_control() => {
                for unit in c.encode_utf16(&mut [0; 2]) {
                    out.push_str(&format!("\\u{unit:04x}"));
                }
            }
            c => out.push(c),
        }
    }
    out.push('"');
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3000))]

    #[test]
    fn a_mark_changes_nothing_else(
        other in proptest::collection::vec(("[a-hj-z]{1,6}", value()), 0..5),
        metadata in prop_oneof![
            Just(None),
            Just(Some(Value::Null)),
            proptest::collection::btree_map("[a-z]{1,5}", value(), 0..4).prop_map(|map| Some(Value::Object(map.into_iter().collect()))),
        ],
        old in prop_oneof![2 => Just(None), 1 => Just(Some(Value::from(OTHER))), 1 => Just(Some(Value::from(WORKSPACE))), 1 => value().prop_map(Some)],
        place in 0..6_usize,
        noise in proptest::collection::vec(any::<u8>(), 0..200),
    ) {
        let mut map = Map::new();
        for (key, value) in other {
            map.insert(key, value);
        }
        map.remove("metadata");
        let metadata = metadata.map(|mut metadata| {
            if let (Some(object), Some(old)) = (metadata.as_object_mut(), old) {
                object.insert(MARK_KEY.into(), old);
            }
            metadata
        });
        // Maps here are sorted; so that the place of the metadata is not always the same, its key is spelled by hand.
        let mut noise = noise.into_iter();
        let mut entries: Vec<(String, Value)> = map.clone().into_iter().collect();
        entries.insert(0, ("id".into(), "node \"1\" é".into()));
        if let Some(metadata) = &metadata {
            entries.insert(place.min(entries.len()), ("metadata".into(), metadata.clone()));
        }
        let mut text = String::from("{");
        for (at, (key, value)) in entries.iter().enumerate() {
            text.push_str(if at > 0 { "," } else { "" });
            spell_text(key, &mut noise, &mut text);
            text.push_str(if at % 2 == 0 { ":" } else { ": " });
            spell(value, &mut noise, &mut text);
        }
        text.push_str("}\n");
        let before: Value = serde_json::from_str(&text).expect("JSON");

        let splice = mark_node(text.as_bytes(), "node \"1\" é", workspace()).expect("it can be marked");
        let is_marked = before["metadata"].get(MARK_KEY) == Some(&Value::from(WORKSPACE));
        prop_assert_eq!(splice.is_none(), is_marked);
        let Some(splice) = splice else { return Ok(()) };
        let MarkSplice { at, insert } = &splice;
        // What gives way is nothing, a `null` in the place of metadata, or the old mark.
        let gone = &text[at.clone()];
        let old_mark = before["metadata"].get(MARK_KEY);
        let gone_value = serde_json::from_str::<Value>(gone).ok();
        prop_assert!(gone.is_empty() || gone == "null" || gone_value.as_ref() == old_mark, "{}", gone);
        let after = splice.apply(text.as_bytes()).expect("its own bytes");
        // Every other byte is where it was.
        prop_assert_eq!(&after[..at.start], &text.as_bytes()[..at.start]);
        prop_assert_eq!(&after[at.start + insert.len()..], &text.as_bytes()[at.end..]);
        // It says what it said, and that it is written.
        let mut expected = before;
        let metadata = expected.as_object_mut().expect("an object").entry("metadata").or_insert(Value::Null);
        if metadata.is_null() {
            *metadata = json!({});
        }
        metadata[MARK_KEY] = WORKSPACE.into();
        prop_assert_eq!(serde_json::from_slice::<Value>(&after).expect("JSON still"), expected);
        // Once more changes nothing.
        prop_assert_eq!(mark_node(&after, "node \"1\" é", workspace()), Ok(None));
    }
}
