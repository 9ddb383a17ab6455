//! Vectors, their file, rankings by them, and rankings made one: whole numbers that are the same everywhere, and a cache
//! that never says what was not put into it.

mod search_support;

use proptest::collection::vec;
use proptest::prelude::*;
use recollex_core::search::{
    Index, Key, Kind, Limits, Method, Place, Query, QueryRequest, Ranked, Space, Vector, Vectors, Weights, Write, fuse,
};
use recollex_core::table::Stamp;
use search_support::Record;
use std::collections::BTreeSet;

fn space(dimensions: usize) -> Space {
    Space { model: "m-1".to_owned(), dimensions }
}

fn vector(numbers: &[f32]) -> Vector {
    Vector::new(numbers).expect("finite")
}

/// The file after a write.
fn written(file: &mut Vec<u8>, vectors: &mut Vectors) {
    match vectors.save() {
        Some(Write::Put { name, bytes }) => {
            assert_eq!(name, vectors.space().file());
            *file = bytes;
        }
        Some(Write::Append { length, bytes, .. }) => {
            assert_eq!(length, file.len() as u64);
            file.extend_from_slice(&bytes);
        }
        other => panic!("{other:?}"),
    }
    vectors.saved();
    assert_eq!((vectors.file_bytes(), vectors.save()), (Some(file.len() as u64), None));
}

#[test]
fn a_cosine_is_that_of_the_numbers_and_ignores_their_scale() {
    let one = vector(&[1.0, 2.0, -3.0]);
    assert_eq!(one.cosine(&one), 1_000_000);
    assert_eq!(one.cosine(&vector(&[1e-30, 2e-30, -3e-30])), 1_000_000);
    assert_eq!(one.cosine(&vector(&[f32::MAX, f32::MAX, 0.0])), vector(&[1.0, 1.0, 0.0]).cosine(&one));
    assert_eq!(one.cosine(&vector(&[-1.0, -2.0, 3.0])), 0);
    assert_eq!(one.cosine(&vector(&[0.0, 0.0, 0.0])), 0);
    assert_eq!(one.cosine(&vector(&[1.0, 2.0])), 0);
    for numbers in [&[][..], &[1.0, f32::NAN], &[f32::INFINITY]] {
        assert_eq!(Vector::new(numbers), None);
    }
}

#[test]
fn a_file_says_again_what_was_put_into_it_and_no_other_model_reads_it() {
    let (texts, notes) = (["a", "b", "c"].map(Key::of_text), ["x", "y", "z"].map(Key::of_text));
    let mut vectors = Vectors::open(space(2), None);
    let mut file = Vec::new();
    for (at, (text, note)) in texts.into_iter().zip(notes).enumerate() {
        assert!(vectors.add(text, &vector(&[at as f32, 1.0])));
        assert!(!vectors.add(text, &vector(&[1.0])));
        vectors.note(note, text);
        written(&mut file, &mut vectors);
        let again = Vectors::open(space(2), Some(&file));
        assert_eq!(again.file_bytes(), Some(file.len() as u64));
        for text in texts {
            assert_eq!(again.has(text), vectors.has(text));
            let with = vector(&[0.3, -0.1]);
            assert_eq!(again.cosine(text, &with), vectors.cosine(text, &with));
        }
        assert_eq!(notes.map(|note| again.text_of(note)), notes.map(|note| vectors.text_of(note)));
    }
    for other in [space(3), Space { model: "m-2".to_owned(), dimensions: 2 }] {
        let foreign = Vectors::open(other, Some(&file));
        assert_eq!((foreign.file_bytes(), foreign.documents(), foreign.has(texts[0])), (None, 0, false));
    }
    assert_eq!(vectors.gone(&BTreeSet::from([notes[1]])), 2);
    vectors.keep_only(&BTreeSet::from([notes[1]]));
    written(&mut file, &mut vectors);
    let again = Vectors::open(space(2), Some(&file));
    assert_eq!(texts.map(|text| again.has(text)), [false, true, false]);
    assert!(again.bytes() <= file.len() as u64);
    assert_eq!(again.room(file.len() as u64), 0);
}

#[test]
fn damage_at_every_byte_is_noticed() {
    let mut vectors = Vectors::open(space(4), None);
    let (mut file, mut before) = (Vec::new(), 0);
    for name in ["a", "b"] {
        before = file.len();
        let text = Key::of_text(name);
        vectors.add(text, &vector(&[1.0, -0.5, 0.25, 0.0]));
        vectors.note(Key::of_text(&format!("at {name}")), text);
        written(&mut file, &mut vectors);
    }
    let sound = vector(&[1.0, -0.5, 0.25, 0.0]);
    let check = |bytes: &[u8], at: usize| {
        let read = Vectors::open(space(4), Some(bytes));
        assert_eq!(read.file_bytes(), None, "byte {at}");
        for name in ["a", "b"] {
            // What is said is what was put there, or nothing.
            let (note, text) = (read.text_of(Key::of_text(&format!("at {name}"))), Key::of_text(name));
            assert!(note.is_none_or(|note| note == text), "byte {at}");
            assert!(!read.has(text) || read.cosine(text, &sound) == 1_000_000, "byte {at}");
        }
        // What stands before the damage is not embedded again.
        assert_eq!(read.has(Key::of_text("a")), at >= before, "byte {at}");
        assert!(!read.has(Key::of_text("b")));
        assert!(!matches!(read.save(), Some(Write::Append { .. })));
    };
    for at in 0..file.len() {
        let mut bytes = file.clone();
        bytes[at] ^= 0x40;
        check(&bytes, at);
        // An end between blocks is an end.
        if at != before && at != file.len() && !is_header(&file, at) {
            check(&file[..at], at);
        }
    }
    // Blocks in another order are no file.
    let header = 8 + 4 + 4 + 4 + 3 + 8;
    let swapped = [&file[..header], &file[before..], &file[header..before]].concat();
    assert_eq!(Vectors::open(space(4), Some(&swapped)).documents(), 0);
}

/// Whether a file cut here is only its header: one without a block.
fn is_header(file: &[u8], at: usize) -> bool {
    Vectors::open(space(4), Some(&file[..at])).file_bytes() == Some(at as u64)
}

#[test]
fn what_two_have_learned_becomes_one_file() {
    let mut file = Vec::new();
    let mut first = Vectors::open(space(2), None);
    first.add(Key::of_text("a"), &vector(&[1.0, 0.0]));
    let mut second = first.clone();
    written(&mut file, &mut first);
    second.add(Key::of_text("b"), &vector(&[0.0, 1.0]));
    second.note(Key::of_text("at b"), Key::of_text("b"));
    let mut both = Vectors::open(space(2), Some(&file));
    both.take_in(&second);
    written(&mut file, &mut both);
    let again = Vectors::open(space(2), Some(&file));
    assert!(again.has(Key::of_text("a")) && again.has(Key::of_text("b")) && again.has(Key::of_text(" \n")));
    assert_eq!(again.text_of(Key::of_text("at b")), Some(Key::of_text("b")));
}

const LIMITS: Limits = Limits { top_k_max: 100, query_bytes: 1000 };

fn query(request: QueryRequest<'_>) -> Query {
    Query::parse(&QueryRequest { text: "anything", method: Method::Embedding, ..request }, &LIMITS).expect("a query")
}

#[test]
fn candidates_are_what_is_seen_and_passes_and_their_keys_follow_their_files() {
    let mut index = Index::new();
    let stamp = |size, token| Stamp { size, token, racy: false };
    for (path, texts) in [("sources/p/_v2/a.md", &["one", "two"][..]), ("sources/p/_v2/b.md", &["three"])] {
        for text in texts {
            Record::within(path, text, text).add_to(&mut index);
        }
        index.finish(path, &stamp(10, "1-1"), false);
    }
    let keys = |index: &Index, request, seen: &str| -> Vec<Key> {
        let view = index.view(&Weights::default(), |path| path.starts_with(seen));
        let found = index.candidates(Some(&query(request)), &view, b"m").expect("all in memory");
        found.into_iter().map(|one| one.key.expect("of a version")).collect()
    };
    let request = QueryRequest { top_k: 5, ..QueryRequest::default() };
    let all = keys(&index, request, "");
    assert_eq!(all.iter().collect::<BTreeSet<_>>().len(), 3);
    assert_eq!(keys(&index, request, "sources/p/_v2/b"), all[2..]);
    assert_eq!(keys(&index, QueryRequest { path_prefix: Some("sources/p/a"), ..request }, ""), all[..2]);
    assert_eq!(keys(&index, QueryRequest { scope: Some(Kind::Topic), ..request }, ""), []);
    // What is added changes no key of what was there, and neither does sealing it.
    Record::within("sources/p/_v2/b.md", "four", "four").add_to(&mut index);
    index.finish("sources/p/_v2/b.md", &stamp(20, "2-1"), false);
    assert_eq!(keys(&index, request, "sources/p/_v2/a"), all[..2]);
    index.seal();
    assert_eq!(keys(&index, request, "sources/p/_v2/a"), all[..2]);
    // A file that was written anew may say something else.
    index.replace("sources/p/_v2/a.md");
    Record::within("sources/p/_v2/a.md", "one", "uno").add_to(&mut index);
    let view = index.view(&Weights::default(), |path| path.ends_with("a.md"));
    let found = index.candidates(None, &view, b"m").expect("at hand");
    assert_eq!(found.iter().map(|one| one.key).collect::<Vec<_>>(), [None], "nobody said of which version");
    index.finish("sources/p/_v2/a.md", &stamp(10, "3-1"), false);
    assert!(keys(&index, request, "sources/p/_v2/a").iter().all(|key| !all.contains(key)));
}

#[test]
fn documents_stand_in_the_order_of_their_scores_then_days_then_ids() {
    let mut index = Index::new();
    for (id, time) in [("d", ""), ("c", "2026-01-02"), ("b", "2026-01-01"), ("a", "2026-01-02"), ("e", "")] {
        let record = Record { time: time.to_owned(), ..Record::new(id, "text") };
        record.add_to(&mut index);
    }
    let view = index.view(&Weights::default(), |_| true);
    let asked = query(QueryRequest { top_k: 4, explain: true, ..QueryRequest::default() });
    let found = index.candidates(Some(&asked), &view, b"").expect("at hand");
    let ids: Vec<String> = index.placed(&found, &view).expect("at hand").into_iter().map(|one| one.id).collect();
    let scored: Vec<_> = found.into_iter().zip(&ids).map(|(one, id)| (if id == "e" { 9 } else { 5 }, one)).collect();
    let ranking = index.rank_by(&asked, &view, &scored, "meaning").expect("at hand");
    let shown: Vec<&str> = ranking.hits.iter().map(|hit| hit.id.as_str()).collect();
    assert_eq!((shown, ranking.truncated), (vec!["e", "b", "a", "c"], true));
    assert!(ranking.hits.iter().all(|hit| hit.signals.iter().map(|one| one.points as u64).sum::<u64>() == hit.score));
    let none: Vec<_> = scored.iter().map(|(_, one)| (0, *one)).collect();
    assert_eq!(index.rank_by(&asked, &view, &none, "meaning").expect("at hand").hits, []);
}

fn hit(number: usize) -> Ranked {
    Ranked {
        id: format!("id{number}"),
        path: format!("sources/p/_v2/{}.md", number % 3),
        place: Place { line: number as u64 % 5, ..Place::default() },
        kind: Kind::Source,
        days: None,
        score: 7,
        signals: Vec::new(),
    }
}

proptest! {
    #[test]
    fn a_fusion_is_of_ranks_alone(words in ranking(), meaning in ranking()) {
        let both = [("words-rank", hits(&words)), ("meaning-rank", hits(&meaning))];
        let mut turned = both.clone();
        turned.reverse();
        let fused = fuse(both, true);
        prop_assert_eq!(&fused, &fuse(turned, true));
        let ids: BTreeSet<&str> = fused.iter().map(|hit| hit.id.as_str()).collect();
        let all: BTreeSet<usize> = words.iter().chain(&meaning).copied().collect();
        prop_assert_eq!((ids.len(), fused.len()), (all.len(), all.len()));
        for hit in &fused {
            let points: i64 = hit.signals.iter().map(|one| one.points).sum();
            prop_assert_eq!(points as u64, hit.score);
        }
        // Nothing stands before what no ranking puts behind it.
        let rank = |ranking: &[usize], id: &str| {
            ranking.iter().position(|one| format!("id{one}") == id).unwrap_or(usize::MAX)
        };
        let ranks = |id: &str| (rank(&words, id), rank(&meaning, id));
        for (at, behind) in fused.iter().enumerate() {
            let (a, b) = ranks(&behind.id);
            for before in &fused[..at] {
                let (c, d) = ranks(&before.id);
                prop_assert!(c < a || d < b, "{} before {}", before.id, behind.id);
            }
        }
        // One ranking alone stays as it is.
        let alone: Vec<String> = fuse([("words-rank", hits(&words))], false).into_iter().map(|hit| hit.id).collect();
        prop_assert_eq!(alone, words.iter().map(|one| format!("id{one}")).collect::<Vec<_>>());
    }

    #[test]
    fn a_cosine_is_near_the_one_of_the_numbers(
        one in vec(-1.0_f32..1.0, 16),
        other in vec(-1.0_f32..1.0, 16),
        scale in 0.001_f32..1000.0,
    ) {
        let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum::<f64>();
        prop_assume!(dot(&one, &one) > 0.1 && dot(&other, &other) > 0.1);
        let exact = dot(&one, &other) / (dot(&one, &one) * dot(&other, &other)).sqrt();
        let scaled: Vec<f32> = one.iter().map(|number| number * scale).collect();
        let found = vector(&scaled).cosine(&vector(&other));
        prop_assert!((found as f64 / 1e6 - exact.max(0.0)).abs() < 0.02, "{found} for {exact}");
        prop_assert_eq!(found, vector(&other).cosine(&vector(&scaled)));
    }

    #[test]
    fn no_bytes_are_too_odd_to_be_read(bytes in vec(any::<u8>(), 0..200), header in any::<bool>()) {
        let mut begun = Vectors::open(space(3), None);
        begun.note(Key::of_text("x"), Key::BLANK);
        let file = match (header, begun.save()) {
            (true, Some(Write::Put { bytes: empty, .. })) => [empty, bytes].concat(),
            _ => bytes,
        };
        let mut vectors = Vectors::open(space(3), Some(&file));
        let text = Key::of_text("a");
        prop_assert!(vectors.add(text, &vector(&[1.0, 2.0, 3.0])));
        let mut out = file;
        written(&mut out, &mut vectors);
        prop_assert!(Vectors::open(space(3), Some(&out)).has(text));
    }
}

fn ranking() -> impl Strategy<Value = Vec<usize>> {
    Just((0..12).collect::<Vec<usize>>())
        .prop_shuffle()
        .prop_flat_map(|all| (0..=all.len()).prop_map(move |length| all[..length].to_vec()))
}

fn hits(numbers: &[usize]) -> Vec<Ranked> {
    numbers.iter().copied().map(hit).collect()
}
