//! What a search promises to its caller.

mod search_support;

use recollex_core::search::{
    Document, Index, IndexFull, Kind, Place, Query, QueryError, QueryRequest, Scratch, Weights,
};
use search_support::{LIMITS, Record, ask, ids, index, search, search_with};

/// Ids of the hits, in order of id.
fn found(documents: &[(&str, &str)], text: &str) -> Vec<String> {
    let records: Vec<Record> = documents.iter().map(|(id, text)| Record::new(id, text)).collect();
    let mut ids = ids(&index(&records), &ask(text));
    ids.sort();
    ids
}

#[test]
fn only_what_holds_a_term_is_returned() {
    let documents = [("a", "the spring budget"), ("b", "the summer plan"), ("c", "the autumn")];
    assert_eq!(found(&documents, "spring plan zebra"), ["a", "b"]);
    assert!(found(&documents, "zebra").is_empty());
    assert!(found(&documents, "where is the zebra").is_empty());
    assert!(found(&[], "anything").is_empty());
    // Not even beside one that does.
    let thread = |id, text| Record::within("sources/p/_v2/t.md", id, text);
    let index = index(&[thread("a", "budget"), thread("b", "launch"), thread("c", "budget launch")]);
    assert_eq!(ids(&index, &ask("launch")), ["c", "b"]);
}

#[test]
fn a_query_without_a_word_is_an_error_also_where_nothing_is_indexed() {
    assert_eq!(Query::parse(&ask("…"), &LIMITS).unwrap_err(), QueryError::NothingSearchable);
    assert_eq!(Query::parse(&ask("who is the"), &LIMITS).unwrap_err(), QueryError::OnlyFunctionWords);
}

#[test]
fn more_and_rarer_terms_and_shorter_texts_rank_higher() {
    let filler = "one two three four five six seven eight";
    let records = [
        Record::new("both", "budget launch"),
        Record::new("rare", "launch party tonight"),
        Record::new("common", "budget party tonight"),
        Record::new("longer", &format!("budget {filler}")),
        Record::new("other", filler),
    ];
    assert_eq!(ids(&index(&records), &ask("budget launch")), ["both", "rare", "common", "longer"]);
}

#[test]
fn spelling_case_and_width_make_no_difference() {
    let documents = [("nfc", "Café Ａｍélie"), ("nfd", "CAFE\u{301} Ame\u{301}lie"), ("other", "cafeteria")];
    for query in ["café", "cafe\u{301}", "CAFÉ", "ｃａｆé", "amélie"] {
        assert_eq!(found(&documents, query), ["nfc", "nfd"], "{query}");
    }
    assert_eq!(found(&[("a", "Ada's house"), ("b", "Adam house")], "ada"), ["a"]);
}

#[test]
fn forms_of_a_word_are_one_word() {
    let documents =
        [("a", "She went to the shops"), ("b", "buying bolts"), ("c", "two children"), ("d", "a child's toy")];
    assert_eq!(found(&documents, "going shopping"), ["a"]);
    assert_eq!(found(&documents, "bought a bolt"), ["b"]);
    assert_eq!(found(&documents, "child"), ["c", "d"]);
}

#[test]
fn other_languages_have_their_own_forms() {
    let documents = [
        ("de", "Wir haben die Häuser in der Stadt nicht gekauft"),
        ("fr", "Nous avons acheté les maisons dans la ville"),
        ("es", "Hemos comprado las casas en la ciudad para mi hermano"),
        ("ru", "Мы купили книги в городе"),
    ];
    assert_eq!(found(&documents, "Haus"), ["de"]);
    assert_eq!(found(&documents, "haus kaufen"), ["de"]);
    assert_eq!(found(&documents, "maison"), ["fr"]);
    assert_eq!(found(&documents, "casa comprar"), ["es"]);
    assert_eq!(found(&documents, "книга"), ["ru"]);
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
    assert_eq!(found(&[("ko", "한국어 책"), ("no", "한글")], "국"), ["ko"]);
    assert_eq!(found(&[("th", "ภาษาไทย"), ("no", "ลาว")], "ไ"), ["th"]);
    assert_eq!(found(&[("rare", "𠀋𠀀"), ("no", "𠀋")], "𠀀"), ["rare"]);
}

#[test]
fn pairs_count_more_than_their_characters() {
    let documents = [("both", "黒猫です"), ("parts", "猫と黒"), ("none", "犬です")];
    let records: Vec<Record> = documents.iter().map(|(id, text)| Record::new(id, text)).collect();
    assert_eq!(ids(&index(&records), &ask("黒猫")), ["both", "parts"]);
    // What carries grammar alone finds nothing by itself, and no more than it should beside other words.
    assert_eq!(ids(&index(&records), &ask("黒猫です"))[0], "both");
}

#[test]
fn one_character_ranks_by_how_often_it_stands_there() {
    let records =
        [Record::new("once", "猫和狗在玩"), Record::new("twice", "猫爱猫粮呀"), Record::new("other", "鱼在水里游")];
    assert_eq!(ids(&index(&records), &ask("猫")), ["twice", "once"]);
}

#[test]
fn scripts_do_not_stick_to_each_other() {
    let documents = [("a", "2023年预算v2"), ("b", "约会")];
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
    let budget = |id: &str, time: &str| Record::within(&format!("{id}.md"), id, "budget").at(time);
    let records = [
        budget("p/t/b", ""),
        budget("p/t/z", "2024-01-01T23:00:00"),
        budget("p/t/a", ""),
        budget("p/t/y", "2024-01-01T01:00:00"),
        budget("p/t/x", "2023-12-31"),
    ];
    let expected = ["p/t/x", "p/t/y", "p/t/z", "p/t/a", "p/t/b"];
    assert_eq!(ids(&index(&records), &ask("budget")), expected);
    assert_eq!(ids(&index(&records), &QueryRequest { top_k: 2, ..ask("budget") }), expected[..2]);
}

#[test]
fn more_than_asked_for_is_told() {
    let records: Vec<Record> = (0..200).map(|n| Record::new(&format!("p/t/{n:03}"), "budget")).collect();
    let index = index(&records);
    let asked = |top_k| search(&index, &QueryRequest { top_k, ..ask("budget") });
    assert!(asked(1).truncated && asked(199).truncated && !asked(200).truncated && !asked(500).truncated);
    assert_eq!(asked(500).hits.len(), 200);
}

#[test]
fn what_a_filter_leaves_out_is_not_more() {
    let records = [Record::new("1", "budget"), Record::within("topics/x.md", "2", "budget budget")];
    let ranking = search(&index(&records), &QueryRequest { top_k: 1, path_prefix: Some("sources"), ..ask("budget") });
    assert_eq!((ranking.hits.len(), ranking.truncated), (1, false));
}

/// Three conversations, two people, four days and a topic.
fn workspace() -> Index {
    let said = |id: &str, path: &str, time: &str| Record::within(path, id, "the budget is 50k").at(time);
    let (g1, g2, g10) = ("sources/op/_v2/g1.md", "sources/op/_v2/g2.md", "sources/op/_v2/g10.md");
    index(&[
        said("op/g1/1", g1, "2026-01-02T10:00:00").by("7391", "Ada"),
        said("op/g1/2", g1, "2026-01-31T10:00:00").by("4402", "Bo"),
        Record { label: "assistant".to_owned(), by_machine: true, ..said("op/g1/3", g1, "2026-02-01T10:00:00") },
        said("op/g2/1", g2, "2026-02-02T10:00:00").by("7391", "Ada"),
        said("op/g10/1", g10, "").by("7391", "Ada"),
        Record { kind: Kind::Topic, ..said("^ada1", "topics/people/ada.md", "2026-01").by("7391", "Ada") },
    ])
}

#[test]
fn the_speaker_filter_takes_id_name_and_label_of_records() {
    let index = workspace();
    let by = |speaker| {
        let mut ids = ids(&index, &QueryRequest { speaker: Some(speaker), ..ask("budget") });
        ids.sort();
        ids
    };
    for name in ["7391", "ada", " ADA (7391)", "Ada [7391]"] {
        assert_eq!(by(name), ["op/g1/1", "op/g10/1", "op/g2/1"], "{name}");
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
    let score = |request| search(&index, request).hits.into_iter().find(|hit| hit.id == "op/g2/1").unwrap().score;
    assert_eq!(score(&request), score(&ask("budget")));
    let topics = QueryRequest { scope: Some(Kind::Topic), ..ask("budget") };
    assert_eq!(ids(&index, &topics), ["^ada1"]);
    assert!(ids(&index, &QueryRequest { speaker: Some("Ada"), ..topics }).is_empty());
}

#[test]
fn what_a_caller_may_not_see_leaves_no_trace() {
    let secret = |id: &str, text: &str| Record::within("topics/secret.md", id, text);
    let open = [Record::new("a", "budget launch"), Record::new("b", "launch party"), Record::new("c", "garden")];
    let hidden = [secret("s1", "launch launch"), secret("s2", "budget zebra"), secret("s3", "party party party")];
    let (all, visible) = (index(open.iter().chain(&hidden)), index(&open));
    for text in ["launch", "budget party", "zebra", "garden launch"] {
        let query = Query::parse(&QueryRequest { explain: true, ..ask(text) }, &LIMITS).unwrap();
        let ranked = |index: &Index| {
            let view = index.view(&Weights::default(), |path| path != "topics/secret.md");
            index.search(&query, &view, &mut Scratch::default()).unwrap()
        };
        assert_eq!(ranked(&all), ranked(&visible), "{text}");
    }
}

/// Names of the signals of the best hit.
fn signals(index: &Index, text: &str) -> Vec<String> {
    let ranking = search(index, &QueryRequest { explain: true, ..ask(text) });
    ranking.hits[0].signals.iter().map(|signal| signal.name.clone()).collect()
}

#[test]
fn who_is_named_counts_more() {
    let records = [
        Record::new("1", "we should paint the house").by("a", "Ada Lovelace"),
        Record::new("2", "we should paint the house").by("b", "Bo"),
        Record::new("3", "we should paint the house").by("c", "王小明"),
        Record::new("4", "paint paint paint"),
    ];
    let index = index(&records);
    assert_eq!(ids(&index, &ask("what did Lovelace paint"))[0], "1");
    assert_eq!(ids(&index, &ask("BO's house"))[0], "2");
    assert_eq!(ids(&index, &ask("小明 house"))[0], "3");
    assert_eq!(signals(&index, "ada paint"), ["term:ada", "term:paint", "session", "speaker-named"]);
}

#[test]
fn what_stands_around_counts() {
    let thread = |id, text| Record::within("sources/p/_v2/t.md", id, text);
    let records = [
        thread("question", "Where did you buy the lamp?"),
        thread("answer", "In a small shop by the harbour, the lamp was cheap"),
        thread("far-1", "It rained"),
        thread("far-2", "Lunch"),
        thread("far-3", "Tea"),
        thread("far-4", "Nothing"),
        thread("far-5", "Good"),
        Record::new("elsewhere", "A lamp in a small shop by the station was cheap"),
    ];
    let index = index(&records);
    assert_eq!(ids(&index, &ask("buy lamp"))[..2], ["answer", "question"]);
    assert_eq!(signals(&index, "cheap lamp harbour"), ["term:cheap", "term:lamp", "term:harbour", "before", "session"]);
    assert_eq!(signals(&index, "rained"), ["term:rained", "session"]);
    // What comes behind something says less of when it was.
    let before = |text| {
        let ranking = search(&index, &QueryRequest { explain: true, ..ask(text) });
        let hit = ranking.hits.into_iter().find(|hit| hit.id == "answer").unwrap();
        hit.signals.into_iter().find(|signal| signal.name == "before").unwrap().points
    };
    let (what, when) = (before("buy the lamp"), before("when did you buy the lamp"));
    assert!(when > 0 && when * 2 <= what + 1, "{what} {when}");
}

#[test]
fn words_side_by_side_count_more() {
    let records = [Record::new("near", "the blue lamp and a chair"), Record::new("apart", "a lamp and the blue chair")];
    let index = index(&records);
    assert_eq!(ids(&index, &ask("blue lamp")), ["near", "apart"]);
    assert_eq!(signals(&index, "blue lamp"), ["term:blue", "term:lamp", "adjacent:blue lamp", "session"]);
    assert_eq!(signals(&index, "blue of the lamp"), ["term:blue", "term:lamp", "adjacent:blue lamp", "session"]);
    assert_eq!(signals(&index, "lamp, blue and green lamp")[2], "adjacent:lamp blue");
}

#[test]
fn a_query_for_a_time_prefers_what_says_one() {
    let records = [Record::new("when", "the launch was last Friday"), Record::new("what", "the launch was very loud")];
    let index = index(&records);
    assert_eq!(ids(&index, &ask("When was the launch?")), ["when", "what"]);
    assert_eq!(signals(&index, "When was the launch?"), ["term:launch", "session", "time"]);
    assert_eq!(signals(&index, "the launch"), ["term:launch", "session"]);
}

#[test]
fn a_query_for_a_number_prefers_what_has_one() {
    let records = [Record::new("number", "we keep two dogs"), Record::new("none", "we keep small dogs")];
    let index = index(&records);
    assert_eq!(ids(&index, &ask("How many dogs are there?")), ["number", "none"]);
    assert_eq!(signals(&index, "How many dogs are there?"), ["term:dogs", "session", "number"]);
    assert_eq!(signals(&index, "the dogs"), ["term:dogs", "session"]);
}

#[test]
fn what_an_assistant_is_to_keep_in_mind_counts_more() {
    let answer = Record { by_machine: true, ..Record::within("a.md", "answer", "Understood") };
    let records = [
        Record::within("a.md", "standing", "Always answer with an example when it is about proofs"),
        answer,
        Record::within("b.md", "between-people", "Always a pleasure to see proofs with an example of yours"),
        Record::within("b.md", "yes", "So it is"),
    ];
    let index = index(&records);
    let ranking = search(&index, &QueryRequest { explain: true, ..ask("proofs by induction") });
    let standing: Vec<(&str, bool)> = ranking
        .hits
        .iter()
        .map(|hit| (hit.id.as_str(), hit.signals.iter().any(|signal| signal.name == "standing" && signal.points > 0)))
        .collect();
    assert_eq!(standing, [("standing", true), ("between-people", false)]);
    for text in ["have I ever asked for proofs?", "how many proofs are there?"] {
        let ranking = search(&index, &QueryRequest { explain: true, ..ask(text) });
        assert!(ranking.hits.iter().flat_map(|hit| &hit.signals).all(|signal| signal.name != "standing"), "{text}");
    }
}

#[test]
fn a_day_is_found_as_people_say_it() {
    let records = [
        Record::new("a", "we met").at("2023-05-08T10:00:00+00:00"),
        Record::new("b", "we met").at("2023-06-18"),
        Record::new("c", "we met").at("2022-05"),
    ];
    let index = index(&records);
    assert_eq!(ids(&index, &ask("met on 8 May 2023")), ["a", "c", "b"]);
    assert_eq!(ids(&index, &ask("met in June"))[0], "b");
}

#[test]
fn an_assistant_counts_less_unless_told_otherwise() {
    let said = |id, by_machine| Record { by_machine, ..Record::new(id, "the budget is 50k") };
    let index = index(&[said("assistant", true), said("person", false)]);
    assert_eq!(ids(&index, &ask("budget")), ["person", "assistant"]);
    let as_much = Weights { assistant: 1000, ..Weights::default() };
    let hits = search_with(&index, &ask("budget"), &as_much).hits;
    assert_eq!(hits[0].score, hits[1].score);
}

#[test]
fn what_an_assistant_said_counts_where_it_is_asked_for() {
    let said = |id, by_machine| Record { by_machine, ..Record::new(id, "lentils are good for iron") };
    let index = index(&[said("assistant", true), said("person", false)]);
    for text in ["what did you recommend for iron?", "summarise what there is on iron", "the lentils you suggested"] {
        let hits = search(&index, &ask(text)).hits;
        assert_eq!(hits[0].score, hits[1].score, "{text}");
    }
    assert_eq!(ids(&index, &ask("what would you recommend for iron?")), ["person", "assistant"]);
}

#[test]
fn a_question_between_people_counts_less_than_what_was_told() {
    let text = ["I keep bees on the roof", "Do you keep bees on the roof?", "Yes", "Are bees on the roof dangerous?"];
    let texts = || text.iter().zip(["told", "asked", "yes", "to-assistant"]);
    let mut records: Vec<Record> = texts().map(|(text, id)| Record::within("a.md", id, text)).collect();
    let answer = Record { by_machine: true, ..Record::within("a.md", "answer", "Hardly") };
    let alone = Weights { before: 0, after: 0, ..Weights::default() };
    let score = |records: &[Record], id: &str| {
        let ranking = search_with(&index(records), &ask("bees roof"), &alone);
        ranking.hits.iter().find(|hit| hit.id == id).map(|hit| hit.score).unwrap()
    };
    assert!(score(&records, "told") > score(&records, "asked"));
    // Of the last question nobody knows yet who answers it.
    let unanswered = score(&records, "to-assistant");
    records.push(answer);
    assert!(score(&records, "to-assistant") > unanswered);
    let ranking = search(&index(&records), &QueryRequest { explain: true, ..ask("bees roof") });
    let told: Vec<(&str, bool)> = ranking
        .hits
        .iter()
        .map(|hit| (hit.id.as_str(), hit.signals.iter().any(|signal| signal.name == "inquiry" && signal.points < 0)))
        .collect();
    assert!(told.contains(&("asked", true)) && told.contains(&("to-assistant", false)), "{told:?}");
}

#[test]
fn words_of_asking_count_less() {
    let records = [Record::new("about", "the harbour at night"), Record::new("asks", "a summary of the night")];
    let index = index(&records);
    assert_eq!(ids(&index, &ask("give me a summary of the harbour")), ["about", "asks"]);
    let as_much = Weights { asking: 1000, ..Weights::default() };
    let scores: Vec<u64> = search_with(&index, &ask("give me a summary of the harbour"), &as_much)
        .hits
        .iter()
        .map(|hit| hit.score)
        .collect();
    assert_eq!(scores[0], scores[1]);
}

#[test]
fn an_explanation_adds_up() {
    let index = workspace();
    for text in [
        "budget 50k",
        "ada budget",
        "when is the budget",
        "7391 bo 50k zebra",
        "2 January 2026",
        "tell me what you said about 50k",
    ] {
        let plain = search(&index, &ask(text));
        let explained = search(&index, &QueryRequest { explain: true, ..ask(text) });
        assert!(!plain.hits.is_empty());
        for (hit, plain) in explained.hits.iter().zip(&plain.hits) {
            assert_eq!((&hit.id, hit.score), (&plain.id, plain.score));
            assert!(plain.signals.is_empty() && !hit.signals.is_empty());
            let sum: i64 = hit.signals.iter().map(|signal| signal.points).sum();
            assert_eq!(u64::try_from(sum), Ok(hit.score), "{text}");
        }
    }
}

#[test]
fn a_full_index_says_so_and_goes_on_answering() {
    let mut index = Index::with_room_for(2);
    for id in ["1", "2"] {
        Record::new(id, "budget").add_to(&mut index);
    }
    let (kind, place) = (Kind::Source, Place::default());
    let more =
        Document { id: "3", kind, time: "", label: "user", speaker: None, by_machine: false, text: "budget", place };
    assert_eq!(index.add("x.md", &more), Err(IndexFull { documents: 2 }));
    assert_eq!(ids(&index, &ask("budget")), ["1", "2"]);
}

#[test]
fn what_is_kept_of_a_document_comes_back() {
    let mut index = Index::new();
    assert!(index.is_empty());
    let place = Place { offset: 1 << 40, header: 70_000, length: 1 << 33, line: 1 << 34 };
    let document = Document {
        id: "p/t/m/1",
        kind: Kind::Experience,
        time: "2024-02-29",
        label: "user",
        speaker: None,
        by_machine: false,
        text: "x",
        place,
    };
    index.add("sources/p/_v2/t.md", &document).unwrap();
    for _ in 0..2 {
        let hit = search(&index, &ask("x")).hits.remove(0);
        assert_eq!((hit.id.as_str(), hit.path.as_str(), hit.kind), ("p/t/m/1", "sources/p/_v2/t.md", Kind::Experience));
        let day = hit.days.unwrap().first();
        assert_eq!((hit.place, day.year(), day.month(), day.day()), (place, 2024, 2, 29));
        // The same from a segment.
        index.seal();
    }
    assert_eq!(index.len(), 1);
    index.remove("sources/p/_v2/t.md");
    assert!(index.is_empty() && search(&index, &ask("x")).hits.is_empty());
}

#[test]
fn scratch_carries_nothing_from_one_search_to_the_next() {
    let (small, large) = (index(&[Record::new("1", "猫が budget")]), workspace());
    let mut scratch = Scratch::default();
    for _ in 0..2 {
        for (index, text) in [(&large, "budget"), (&small, "猫 budget"), (&large, "ada 50k"), (&small, "猫が")] {
            let query = Query::parse(&QueryRequest { explain: true, ..ask(text) }, &LIMITS).unwrap();
            let view = index.view(&Weights::default(), |_| true);
            let fresh = index.search(&query, &view, &mut Scratch::default());
            assert_eq!(index.search(&query, &view, &mut scratch), fresh, "{text}");
        }
    }
}

/// A claim of a topic of its own.
fn claim(id: &str, text: &str) -> Record {
    let path = format!("topics/{id}.md");
    Record { kind: Kind::Topic, label: String::new(), ..Record::within(&path, id, text) }
}

#[test]
fn short_claims_and_long_records_are_of_one_measure() {
    let filler = |word: &str, count: usize| format!("{word} ").repeat(count);
    let mut all = Vec::new();
    // Records are ten times as long as claims, and there are ten times as many.
    for number in 0..200 {
        all.push(Record::new(&format!("r{number}"), &filler(&format!("gravel{number}"), 60)));
        if number % 10 == 0 {
            all.push(claim(&format!("c{number}"), &filler(&format!("gravel{number}"), 6)));
        }
    }
    all.push(Record::new("said", &format!("keel {}", filler("gravel", 59))));
    all.push(claim("claimed", &format!("keel {}", filler("gravel", 5))));
    let index = index(&all);
    let scores: Vec<u64> = search(&index, &ask("keel")).hits.iter().map(|hit| hit.score).collect();
    let [best, worst] = scores[..] else { panic!("{scores:?}") };
    assert!(best - worst < best / 50, "{scores:?}");
}

#[test]
fn neither_records_nor_claims_drown_the_other() {
    let words = ["anchor", "mast", "rope", "sail", "tide", "dock", "hull", "deck"];
    let word = |number: usize| words[number % words.len()];
    let passing = |number: usize| format!("{} {} and the keel", word(number), word(number / 8 + number));
    for (many, one) in [("record", "claim"), ("claim", "record")] {
        let make =
            |kind: &str, id: &str, text: &str| if kind == "claim" { claim(id, text) } else { Record::new(id, text) };
        // Hundreds of one kind mention it in passing; one of the other kind is about it.
        let mut all: Vec<Record> = (0..400).map(|number| make(many, &format!("m{number}"), &passing(number))).collect();
        all.push(make(one, "about", "keel bolts cost much"));
        all.push(make(one, "beside", "the price of paint"));
        let found = ids(&index(&all), &ask("keel bolts"));
        assert_eq!(found.first().map(String::as_str), Some("about"), "{one} among {many}s");
        // And what is said as well by both is shown of both.
        all.push(make(many, "too", "keel bolts cost much"));
        let found = ids(&index(&all), &ask("keel bolts"));
        assert!(found[..2].contains(&"about".to_owned()) && found[..2].contains(&"too".to_owned()), "{found:?}");
    }
}

/// The scores themselves, so that a change of them on any machine is seen.
#[test]
fn scores_are_the_same_everywhere() {
    let index = workspace();
    let ranking = search(&index, &ask("Ada budget 2026 预算"));
    let scores: Vec<u64> = ranking.hits.iter().map(|hit| hit.score).collect();
    assert_eq!(scores, [1_269_398, 1_136_793, 1_082_572, 809_811, 624_278, 238_946]);
}

#[test]
fn a_word_has_its_forms_in_whichever_parts_they_are() {
    let records =
        [Record::new("de", "das ist die Liste der Zeitungen"), Record::new("en", "the zeitungen of the town")];
    let one = index(&records);
    let mut two = Index::new();
    for record in &records {
        record.add_to(&mut two);
        two.seal();
    }
    let request = QueryRequest { explain: true, ..ask("zeitungen") };
    let found = search(&one, &request);
    assert_eq!(found.hits.len(), 2);
    assert_eq!(found, search(&two, &request));
    // What is gone has no forms.
    let mut rest = one;
    rest.remove(&records[1].path);
    assert_eq!(search(&rest, &request), search(&index(&records[..1]), &request));
}
