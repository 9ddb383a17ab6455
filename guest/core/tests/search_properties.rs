//! What holds for every input: order of insertion does not matter, explanations add up, nothing panics, nothing grows
//! faster than its input.

use proptest::prelude::*;
use recollex_core::search::{
    Document, Index, Kind, Limits, QUERY_TERMS, Query, QueryRequest, Ranking, Scratch, Speaker, Weights,
};

const LIMITS: Limits = Limits { top_k_max: 1000, query_bytes: 16 << 20 };

/// An owned [`Document`].
#[derive(Clone, Debug)]
struct Record {
    id: String,
    path: String,
    time: String,
    label: String,
    speaker: Option<[String; 3]>,
    text: String,
}

impl Record {
    fn borrow(&self) -> Document<'_> {
        let speaker = self.speaker.as_ref().map(|[id, display, label]| Speaker { id, display, label });
        let Record { id, path, time, label, text, .. } = self;
        Document { id, path, kind: Kind::Source, time, label, speaker, text }
    }
}

fn index<'a>(records: impl IntoIterator<Item = &'a Record>) -> Index {
    let mut index = Index::new(Weights::default());
    for record in records {
        index.add(&record.borrow()).unwrap();
    }
    index
}

fn search(index: &Index, text: &str, top_k: u32) -> Ranking {
    let request = QueryRequest { text, top_k, explain: true, ..QueryRequest::default() };
    index.search(&Query::parse(&request, &LIMITS).unwrap(), &mut Scratch::default())
}

/// A hit: id, score, and the signals it is the sum of.
type Seen = (String, u64, Vec<(String, i64)>);

/// All of an answer that does not depend on numbers of documents.
fn seen(index: &Index, ranking: &Ranking) -> Vec<Seen> {
    let hit = |hit: &recollex_core::search::Ranked| {
        let id = index.document(hit.document).unwrap().id.to_string();
        (id, hit.score, hit.signals.iter().map(|signal| (signal.name.clone(), signal.points)).collect())
    };
    ranking.hits.iter().map(hit).collect()
}

/// Few words and names, so that documents share them; ids are made unique by whoever needs it.
fn record() -> impl Strategy<Value = Record> {
    let speaker = prop::option::of(prop::sample::select(vec!["ada", "bo", "猫田"]));
    let time = prop::sample::select(vec!["", "2024-01-01T10:00:00", "2024-01-02", "2024-01"]);
    let text =
        prop::collection::vec(prop::sample::select(vec!["budget", "launch", "the", "ada's", "猫が", "が", "x"]), 0..40);
    (prop::sample::select(vec!["p/a/", "p/b/", "q/a/"]), time, speaker, text).prop_map(|(thread, time, name, text)| {
        Record {
            id: thread.to_owned(),
            path: format!("sources/{thread}.md"),
            time: time.to_owned(),
            label: name.unwrap_or("user").to_owned(),
            speaker: name.map(|name| [format!("id-{name}"), name.to_owned(), name.to_owned()]),
            text: text.join(" "),
        }
    })
}

fn records() -> impl Strategy<Value = Vec<Record>> {
    prop::collection::vec(record(), 0..60).prop_map(|mut records| {
        for (number, record) in records.iter_mut().enumerate() {
            record.id += &number.to_string();
        }
        records
    })
}

/// Text of every kind: letters, scripts without spaces, marks, directions, joiners, controls.
fn anything() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        any::<String>(),
        "[a-c' ]{0,8}",
        "[\u{300}-\u{36f}\u{591}-\u{5c7}\u{610}-\u{61a}\u{64b}-\u{65f}\u{e31}\u{e34}-\u{e3a}]{0,6}",
        "[\u{200b}-\u{200f}\u{202a}-\u{202e}\u{2060}-\u{206f}\u{feff}\u{ad}\u{fe00}-\u{fe0f}]{0,3}",
        "[一-龥ぁ-んァ-ヶ가-힣ก-๛ក-៹က-႟]{0,6}",
        "[\u{1100}-\u{11ff}\u{ff00}-\u{ffef}\u{fb00}-\u{fdff}İıßςΐ]{0,6}",
    ];
    prop::collection::vec(piece, 0..6).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn insertion_order_does_not_matter(
        (records, shuffled) in records().prop_flat_map(|records| (Just(records.clone()), Just(records).prop_shuffle())),
        text in prop::sample::select(vec!["budget", "the", "ada launch", "猫", "が x", "猫が budget launch"]),
        top_k in 1_u32..20,
    ) {
        let (a, b) = (index(&records), index(&shuffled));
        let (in_a, in_b) = (search(&a, text, top_k), search(&b, text, top_k));
        prop_assert_eq!(seen(&a, &in_a), seen(&b, &in_b));
        prop_assert_eq!(in_a.truncated, in_b.truncated);
    }

    /// An index that answers while it grows is at every size the index of what it holds.
    #[test]
    fn a_growing_index_is_the_index_of_all(records in records(), text in "(ada |budget |猫 |the ){1,3}") {
        let mut growing = Index::new(Weights::default());
        for (size, record) in (1..).zip(&records) {
            growing.add(&record.borrow()).unwrap();
            if size % 7 == 0 || size == records.len() {
                let fresh = index(&records[..size]);
                prop_assert_eq!(search(&growing, &text, 50), search(&fresh, &text, 50));
            }
        }
    }

    #[test]
    fn every_hit_holds_a_term_and_its_signals_add_up(records in records(), text in "(ada |budget |猫 |zebra ){1,3}") {
        let index = index(&records);
        let ranking = search(&index, &text, 1000);
        let holds = |record: &&Record| {
            let all = format!("{} {}", record.label, record.text);
            text.split_whitespace().any(|word| all.contains(word))
        };
        prop_assert_eq!(ranking.hits.len(), records.iter().filter(holds).count());
        for hit in &ranking.hits {
            prop_assert!(hit.signals.iter().any(|signal| signal.name.starts_with("term:")));
            prop_assert_eq!(hit.signals.iter().map(|signal| signal.points).sum::<i64>(), hit.score as i64);
        }
        prop_assert!(ranking.hits.is_sorted_by(|a, b| a.score >= b.score));
    }

    #[test]
    fn nothing_panics(
        texts in prop::collection::vec(anything(), 1..8),
        text in anything(), speaker in prop::option::of(anything()), path_prefix in prop::option::of(anything()),
        from in prop::option::of(anything()), to in prop::option::of(anything()), top_k in any::<u32>(),
    ) {
        let mut index = Index::new(Weights::new(0, 1000).unwrap());
        for text in &texts {
            let speaker = Some(Speaker { id: text, display: text, label: text });
            let document = Document { id: text, path: text, kind: Kind::Topic, time: text, label: text, speaker, text };
            index.add(&document).unwrap();
        }
        let request = QueryRequest {
            text: &text, top_k, scope: None, speaker: speaker.as_deref(), path_prefix: path_prefix.as_deref(),
            from: from.as_deref(), to: to.as_deref(), explain: true,
        };
        match Query::parse(&request, &LIMITS) {
            Ok(query) => {
                index.search(&query, &mut Scratch::default());
            }
            Err(error) => prop_assert!(!error.reason().is_empty() && !error.to_string().is_empty()),
        }
    }

    /// Whatever a text is, it is found by itself, in any normalisation form, unless there is nothing in it to look for.
    #[test]
    fn a_text_is_found_by_itself(text in anything(), other in anything()) {
        use unicode_normalization::UnicodeNormalization;
        let records = [&text, &other].map(|text| Record {
            id: text.clone(), path: String::new(), time: String::new(), label: String::new(), speaker: None,
            text: text.clone(),
        });
        let index = index(&records);
        let forms = [text.clone(), text.nfc().collect(), text.nfd().collect(), text.nfkc().collect(), text.nfkd().collect()];
        let mut answers = Vec::new();
        for form in &forms {
            let request = QueryRequest { text: form, top_k: 5, ..QueryRequest::default() };
            let found = Query::parse(&request, &LIMITS).ok().map(|query| index.search(&query, &mut Scratch::default()));
            if let Some(ranking) = &found {
                prop_assert!(ranking.hits.iter().any(|hit| hit.document.get() == 0), "{form:?}");
            }
            answers.push(found);
        }
        prop_assert!(answers.iter().all(|answer| *answer == answers[0]), "{forms:?}");
    }
}

/// Texts of a size at which anything quadratic would not come to an end.
#[test]
fn large_texts_of_every_kind_are_indexed_and_asked() {
    let mut index = Index::new(Weights::default());
    let size = 4 << 20;
    for piece in [
        "a",
        "ab ",
        "é",
        "e\u{301}",
        "\u{301}",
        "猫",
        "猫犬 ",
        "ｶﾞ",
        "ก\u{e34}",
        "'",
        "a'",
        "ß",
        "\u{fdfa}",
        "\u{5d0}\u{5b7}",
        "\u{200d}",
        ".",
        "1",
        "\u{0}",
        "가\u{11a8}",
        "\u{1161}",
        "2024-01-01 ",
        "-",
    ] {
        let text = piece.repeat(size / piece.len() / 8);
        let document =
            Document { id: piece, path: "", kind: Kind::Source, time: &text, label: &text, speaker: None, text: &text };
        let added = index.add(&document).unwrap();
        let request = QueryRequest { text: &text, top_k: 1000, speaker: None, ..QueryRequest::default() };
        if let Ok(query) = Query::parse(&request, &LIMITS) {
            let ranking = index.search(&query, &mut Scratch::default());
            assert!(ranking.hits.iter().any(|hit| hit.document == added), "{piece:?}");
        }
    }
}

#[test]
fn a_hundred_thousand_terms_are_indexed_and_the_rarest_are_asked() {
    let words: String = (0..100_000).map(|n| format!("w{n} ")).collect();
    let record = |id: &str, text: &str| Record {
        id: id.to_owned(),
        path: String::new(),
        time: String::new(),
        label: String::new(),
        speaker: None,
        text: text.to_owned(),
    };
    let index = index(&[record("all", &words), record("first", "w0"), record("other", "x")]);
    let ranking = search(&index, &words, 10);
    assert!(ranking.terms_left_out);
    assert_eq!(seen(&index, &ranking).len(), 1, "w0 is the least rare of {QUERY_TERMS}");
    let ranking = search(&index, "w0 w99999", 10);
    assert!(!ranking.terms_left_out);
    assert_eq!(ranking.hits.len(), 2);
    let characters: String = ('\u{4e00}'..='\u{9fff}').map(|c| format!("{c} ")).collect();
    let hanzi = self::index(&[record("all", &characters), record("run", &characters.replace(' ', ""))]);
    assert_eq!(search(&hanzi, &characters, 10).hits.len(), 2);
}
