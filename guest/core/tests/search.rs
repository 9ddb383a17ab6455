//! What a search promises to its caller.

use recollex_core::search::{
    Document, Index, IndexFull, Kind, Limits, Query, QueryError, QueryRequest, Ranking, Scratch, Speaker, Weights,
};

const LIMITS: Limits = Limits { top_k_max: 50, query_bytes: 1 << 20 };

/// A record by nobody in particular.
fn record<'a>(id: &'a str, text: &'a str) -> Document<'a> {
    Document { id, path: "sources/p/_v2/t.md", kind: Kind::Source, time: "", label: "user", speaker: None, text }
}

fn index(documents: &[Document<'_>]) -> Index {
    let mut index = Index::new(Weights::default());
    for document in documents {
        index.add(document).unwrap();
    }
    index
}

fn ask(text: &str) -> QueryRequest<'_> {
    QueryRequest { text, top_k: 10, ..QueryRequest::default() }
}

fn search(index: &Index, request: &QueryRequest<'_>) -> Ranking {
    index.search(&Query::parse(request, &LIMITS).unwrap(), &mut Scratch::default())
}

/// Ids of the hits, best first.
fn ids(index: &Index, request: &QueryRequest<'_>) -> Vec<String> {
    search(index, request).hits.iter().map(|hit| index.document(hit.document).unwrap().id.to_string()).collect()
}

/// Ids of the hits, in order of id.
fn found(documents: &[(&str, &str)], text: &str) -> Vec<String> {
    let documents: Vec<Document<'_>> = documents.iter().map(|(id, text)| record(id, text)).collect();
    let mut ids = ids(&index(&documents), &ask(text));
    ids.sort();
    ids
}

#[test]
fn only_what_holds_a_term_is_returned() {
    let documents = [("a", "the spring budget"), ("b", "the summer plan"), ("c", "the autumn")];
    assert_eq!(found(&documents, "spring plan zebra"), ["a", "b"]);
    assert!(found(&documents, "zebra").is_empty());
    assert!(found(&documents, "where is the zebra").is_empty());
    assert_eq!(found(&documents, "the"), ["a", "b", "c"]);
    assert!(found(&[], "anything").is_empty());
}

#[test]
fn a_query_without_a_word_is_an_error_also_where_nothing_is_indexed() {
    assert_eq!(Query::parse(&ask("…"), &LIMITS).unwrap_err(), QueryError::NothingSearchable);
}

#[test]
fn more_and_rarer_terms_and_shorter_texts_rank_higher() {
    let filler = "one two three four five six seven eight";
    let long = format!("budget {filler}");
    let documents = [
        record("both", "budget launch"),
        record("rare", "launch party now"),
        record("common", "budget party now"),
        record("longer", &long),
        record("other", filler),
    ];
    assert_eq!(ids(&index(&documents), &ask("budget launch")), ["both", "rare", "common", "longer"]);
}

#[test]
fn spelling_case_and_width_make_no_difference() {
    let documents = [("nfc", "Café Ａｍélie"), ("nfd", "CAFE\u{301} Ame\u{301}lie"), ("other", "cafeteria")];
    for query in ["café", "cafe\u{301}", "CAFÉ", "ｃａｆé", "amélie"] {
        assert_eq!(found(&documents, query), ["nfc", "nfd"], "{query}");
    }
    assert_eq!(found(&[("a", "Ada's house"), ("b", "Adas house")], "ada"), ["a"]);
}

#[test]
fn one_character_finds_every_text_that_contains_it() {
    let documents = [
        ("first", "猫が好き"),
        ("middle", "黒猫です"),
        ("last", "これは猫"),
        ("alone", "a 猫 b"),
        ("marked", "猫\u{3099}"),
        ("border", "x猫9"),
        ("none", "犬です"),
    ];
    assert_eq!(found(&documents, "猫"), ["alone", "border", "first", "last", "marked", "middle"]);
    assert_eq!(found(&documents, "黒猫"), ["middle"]);
    assert_eq!(found(&[("ko", "한국어 책"), ("no", "한글")], "국"), ["ko"]);
    assert_eq!(found(&[("th", "ภาษาไทย"), ("no", "ลาว")], "ไ"), ["th"]);
    assert_eq!(found(&[("rare", "𠀋𠀀"), ("no", "𠀋")], "𠀀"), ["rare"]);
}

#[test]
fn one_character_ranks_by_how_often_it_stands_there() {
    let documents = [record("once", "猫和狗在玩"), record("twice", "猫爱猫粮啊"), record("other", "鱼在水里游")];
    assert_eq!(ids(&index(&documents), &ask("猫")), ["twice", "once"]);
}

#[test]
fn scripts_do_not_stick_to_each_other() {
    let documents = [("a", "2023年预算v2"), ("b", "预约")];
    for query in ["预算", "2023", "v2", "预算v2", "年"] {
        assert_eq!(found(&documents, query), ["a"], "{query}");
    }
}

#[test]
fn right_to_left_and_marks() {
    let documents = [("he", "שָׁלוֹם עולם"), ("ar", "\u{202b}مُحَمَّد\u{202c}"), ("hi", "नमस्ते"), ("mark", "\u{301}")];
    assert_eq!(found(&documents, "שלום"), ["he"]);
    assert_eq!(found(&documents, "محمد"), ["ar"]);
    assert_eq!(found(&documents, "नमस्ते"), ["hi"]);
}

#[test]
fn ties_go_by_day_then_id_and_no_day_is_last() {
    let at = |id, time| Document { time, ..record(id, "budget") };
    let documents = [
        at("p/t/b", ""),
        at("p/t/z", "2024-01-01T23:00:00"),
        at("p/t/a", ""),
        at("p/t/y", "2024-01-01T01:00:00"),
        at("p/t/x", "2023-12-31"),
    ];
    let expected = ["p/t/x", "p/t/y", "p/t/z", "p/t/a", "p/t/b"];
    assert_eq!(ids(&index(&documents), &ask("budget")), expected);
    assert_eq!(ids(&index(&documents), &QueryRequest { top_k: 2, ..ask("budget") }), expected[..2]);
}

#[test]
fn more_than_asked_for_is_told() {
    let documents: Vec<String> = (0..200).map(|n| format!("p/t/{n:03}")).collect();
    let documents: Vec<Document<'_>> = documents.iter().map(|id| record(id, "budget")).collect();
    let index = index(&documents);
    let truncated = |top_k| search(&index, &QueryRequest { top_k, ..ask("budget") }).truncated;
    let limits = Limits { top_k_max: 1000, ..LIMITS };
    let all = Query::parse(&QueryRequest { top_k: 200, ..ask("budget") }, &limits).unwrap();
    let all = index.search(&all, &mut Scratch::default());
    assert!(truncated(1) && truncated(50) && !all.truncated);
    assert_eq!(all.hits.len(), 200);
}

#[test]
fn what_a_filter_leaves_out_is_not_more() {
    let documents = [record("p/t/1", "budget"), Document { path: "topics/x.md", ..record("p/t/2", "budget budget") }];
    let ranking = search(&index(&documents), &QueryRequest { top_k: 1, path_prefix: Some("sources"), ..ask("budget") });
    assert_eq!((ranking.hits.len(), ranking.truncated), (1, false));
}

/// Three conversations, two people, four days and a topic.
fn workspace() -> Index {
    let ada = Speaker { id: "7391", display: "Ada", label: "Ada (7391)" };
    let bo = Speaker { id: "4402", display: "Bo", label: "Bo (4402)" };
    let said = |id, path, time, speaker: Option<Speaker<'static>>| Document {
        id,
        path,
        kind: Kind::Source,
        time,
        label: speaker.map_or("assistant", |speaker| speaker.label),
        speaker,
        text: "the budget is 50k",
    };
    index(&[
        said("op/g1/1", "sources/op/_v2/g1.md", "2026-01-02T10:00:00", Some(ada)),
        said("op/g1/2", "sources/op/_v2/g1.md", "2026-01-31T10:00:00", Some(bo)),
        said("op/g1/3", "sources/op/_v2/g1.md", "2026-02-01T10:00:00", None),
        said("op/g2/1", "sources/op/_v2/g2.md", "2026-02-02T10:00:00", Some(ada)),
        said("op/g10/1", "sources/op/_v2/g10.md", "", Some(ada)),
        Document {
            kind: Kind::Topic,
            time: "2026-01",
            label: "",
            ..said("^ada1", "topics/people/ada.md", "", Some(ada))
        },
    ])
}

#[test]
fn the_speaker_filter_takes_id_name_and_label_of_records() {
    let index = workspace();
    let by = |speaker| ids(&index, &QueryRequest { speaker: Some(speaker), ..ask("budget") });
    for name in ["7391", "ada", " ADA (7391)", "Ada [7391]"] {
        assert_eq!(by(name), ["op/g1/1", "op/g2/1", "op/g10/1"], "{name}");
    }
    assert_eq!(by("bo"), ["op/g1/2"]);
    assert!(by("assistant").is_empty() && by("Eve").is_empty());
    assert_eq!(by("").len(), 6);
}

#[test]
fn the_path_filter_takes_directories_and_files() {
    let index = workspace();
    let below = |prefix| {
        let mut ids = ids(&index, &QueryRequest { path_prefix: Some(prefix), ..ask("budget") });
        ids.sort();
        ids
    };
    assert_eq!(below("sources/op/g1.md"), ["op/g1/1", "op/g1/2", "op/g1/3"]);
    assert_eq!(below("sources/op/_v2/g1"), ["op/g1/1", "op/g1/2", "op/g1/3"]);
    assert_eq!(below("/sources/op/").len(), 5);
    assert_eq!(below("people"), ["^ada1"]);
    assert!(below("sources/o").is_empty());
}

#[test]
fn the_date_filter_takes_years_months_and_days() {
    let index = workspace();
    let between = |from, to| {
        let mut ids = ids(&index, &QueryRequest { from, to, ..ask("budget") });
        ids.sort();
        ids
    };
    assert_eq!(between(Some("2026-02"), None), ["op/g1/3", "op/g2/1"]);
    assert_eq!(between(None, Some("2026-01")), ["^ada1", "op/g1/1", "op/g1/2"]);
    assert_eq!(between(Some("2026-01-31"), Some("2026-02-01")), ["^ada1", "op/g1/2", "op/g1/3"]);
    assert_eq!(between(Some("0001"), Some("9999")).len(), 5);
    assert!(between(Some("2027"), None).is_empty());
}

#[test]
fn filters_compose_and_leave_scores_alone() {
    let index = workspace();
    let request = QueryRequest {
        speaker: Some("Ada"),
        path_prefix: Some("sources/op"),
        from: Some("2026-02"),
        to: Some("2026"),
        scope: Some(Kind::Source),
        ..ask("budget")
    };
    assert_eq!(ids(&index, &request), ["op/g2/1"]);
    let score = |request| {
        let hits = search(&index, request).hits;
        hits.iter().find(|hit| index.document(hit.document).unwrap().id.to_string() == "op/g2/1").unwrap().score
    };
    assert_eq!(score(&request), score(&ask("budget")));
    let topics = QueryRequest { scope: Some(Kind::Topic), ..ask("budget") };
    assert_eq!(ids(&index, &topics), ["^ada1"]);
    assert!(ids(&index, &QueryRequest { speaker: Some("Ada"), ..topics }).is_empty());
}

#[test]
fn who_is_named_counts_more() {
    let by = |id, display| Document {
        label: display,
        speaker: Some(Speaker { id, display, label: display }),
        ..record(id, "we should paint the house")
    };
    let documents = [by("1", "Ada Lovelace"), by("2", "Bo"), by("3", "王小明"), record("4", "paint paint paint")];
    let index = index(&documents);
    assert_eq!(ids(&index, &ask("what did Lovelace paint"))[0], "1");
    assert_eq!(ids(&index, &ask("BO's house"))[0], "2");
    assert_eq!(ids(&index, &ask("小明 house"))[0], "3");

    let explained = search(&index, &QueryRequest { explain: true, ..ask("ada paint") });
    let names: Vec<&str> = explained.hits[0].signals.iter().map(|signal| signal.name.as_str()).collect();
    assert_eq!(names, ["term:ada", "term:paint", "speaker-named"]);
}

#[test]
fn an_explanation_adds_up() {
    let index = workspace();
    for text in ["budget 50k", "ada budget", "the is", "7391 bo 50k zebra"] {
        let plain = search(&index, &ask(text));
        let explained = search(&index, &QueryRequest { explain: true, ..ask(text) });
        assert!(!plain.hits.is_empty());
        for (hit, plain) in explained.hits.iter().zip(&plain.hits) {
            assert_eq!((hit.document, hit.score), (plain.document, plain.score));
            assert!(plain.signals.is_empty() && !hit.signals.is_empty());
            let sum: i64 = hit.signals.iter().map(|signal| signal.points).sum();
            assert_eq!(u64::try_from(sum), Ok(hit.score), "{text}");
        }
    }
}

#[test]
fn a_full_index_says_so_and_goes_on_answering() {
    let mut index = Index::with_room_for(Weights::default(), 2);
    for id in ["1", "2"] {
        index.add(&record(id, "budget")).unwrap();
    }
    assert_eq!(index.add(&record("3", "budget")), Err(IndexFull { documents: 2 }));
    assert_eq!(ids(&index, &ask("budget")), ["1", "2"]);
}

#[test]
fn what_is_kept_of_a_document_comes_back() {
    let mut index = Index::new(Weights::default());
    assert!(index.is_empty());
    let document = index.add(&Document { time: "2024-02-29T10:00:00", ..record("p/t/m/1", "x") }).unwrap();
    let kept = index.document(document).unwrap();
    assert_eq!((kept.id.to_string().as_str(), kept.path, kept.kind), ("p/t/m/1", "sources/p/_v2/t.md", Kind::Source));
    let day = kept.days.unwrap().first();
    assert_eq!((day.year(), day.month(), day.day()), (2024, 2, 29));
    assert_eq!(index.len(), 1);
    assert!(Index::new(Weights::default()).document(document).is_none());
}

#[test]
fn scratch_carries_nothing_from_one_search_to_the_next() {
    let (small, large) = (index(&[record("1", "猫が budget")]), workspace());
    let mut scratch = Scratch::default();
    for _ in 0..2 {
        for (index, text) in [(&large, "budget"), (&small, "猫 budget"), (&large, "ada 50k"), (&small, "が")] {
            let query = Query::parse(&QueryRequest { explain: true, ..ask(text) }, &LIMITS).unwrap();
            assert_eq!(index.search(&query, &mut scratch), index.search(&query, &mut Scratch::default()), "{text}");
        }
    }
}

/// The scores themselves, so that a change of them on any machine is seen.
#[test]
fn scores_are_the_same_everywhere() {
    let index = workspace();
    let ranking = search(&index, &ask("Ada budget 2026 预算"));
    let scores: Vec<u64> = ranking.hits.iter().map(|hit| hit.score).collect();
    assert_eq!(scores, [697_890, 697_890, 697_890, 76_519, 47_784, 44_939]);
}
