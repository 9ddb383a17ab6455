//! What holds for every input: an index ranks as one made anew of what it holds, however it came about; explanations add
//! up, nothing panics, nothing grows faster than its input.

mod search_support;

use proptest::prelude::*;
use recollex_core::search::{Index, Kind, Method, QUERY_TERMS, Query, QueryRequest, Ranking, Scratch, Weights};
use search_support::{LIMITS, Record, index};
use std::collections::BTreeMap;

fn search(index: &Index, text: &str, top_k: u32, weights: &Weights, visible: impl Fn(&str) -> bool) -> Ranking {
    let request = QueryRequest { text, top_k, explain: true, ..QueryRequest::default() };
    index
        .search(&Query::parse(&request, &LIMITS).unwrap(), &index.view(weights, visible), &mut Scratch::default())
        .unwrap()
}

/// A record without an id or a file: few words and names, so that records share them.
fn record() -> impl Strategy<Value = Record> {
    let speaker = prop::option::of(prop::sample::select(vec!["ada", "bo", "猫田"]));
    let time = prop::sample::select(vec!["", "2024-01-01T10:00:00", "2024-01-02", "2024-01"]);
    let word = prop::sample::select(vec![
        "budget",
        "launch",
        "the",
        "ada's",
        "猫が",
        "が",
        "x",
        "?",
        "yesterday",
        "50",
        "always",
        "from now on",
        "das ist der",
        // One form in a German text, another in an English one.
        "zeitungen",
    ]);
    let kind = prop::sample::select(vec![Kind::Source, Kind::Source, Kind::Topic]);
    (kind, time, speaker, prop::collection::vec(word, 0..12), any::<bool>()).prop_map(
        |(kind, time, name, text, by_machine)| {
            let record = Record { kind, by_machine, ..Record::new("", &text.join(" ")) }.at(time);
            match name {
                Some(name) => record.by(&format!("id-{name}"), name),
                None => record,
            }
        },
    )
}

/// What happens to an index.
#[derive(Clone, Debug)]
enum Step {
    /// Records are added to a file.
    Append(u8, Vec<Record>),
    /// A file goes.
    Remove(u8),
    /// A file is indexed anew, with other content.
    Replace(u8, Vec<Record>),
    /// What was added last becomes a segment.
    Seal,
    /// So many segments from there on become one.
    Merge(usize, usize),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let records = || prop::collection::vec(record(), 0..9);
    let step = prop_oneof![
        6 => (0_u8..4, records()).prop_map(|(file, records)| Step::Append(file, records)),
        1 => (0_u8..4).prop_map(Step::Remove),
        1 => (0_u8..4, records()).prop_map(|(file, records)| Step::Replace(file, records)),
        2 => Just(Step::Seal),
        2 => (0_usize..4, 1_usize..4).prop_map(|(first, count)| Step::Merge(first, count)),
    ];
    prop::collection::vec(step, 1..20)
}

/// An index that went through steps, and what files hold now.
#[derive(Default)]
struct Grown {
    index: Index,
    files: BTreeMap<String, Vec<Record>>,
    records: usize,
}

impl Grown {
    fn append(&mut self, file: u8, records: &[Record]) {
        let path = format!("sources/p/_v2/{file}.md");
        for record in records {
            self.records += 1;
            let record = Record { path: path.clone(), id: format!("p/{file}/{}", self.records), ..record.clone() };
            record.add_to(&mut self.index);
            self.files.entry(path.clone()).or_default().push(record);
        }
    }

    fn remove(&mut self, file: u8) {
        let path = format!("sources/p/_v2/{file}.md");
        self.index.remove(&path);
        self.files.remove(&path);
    }

    fn step(&mut self, step: &Step) {
        match step {
            Step::Append(file, records) => self.append(*file, records),
            Step::Remove(file) => self.remove(*file),
            Step::Replace(file, records) => {
                self.remove(*file);
                self.append(*file, records);
            }
            Step::Seal => self.index.seal(),
            Step::Merge(first, count) => self.index.merge(*first..first + count),
        }
    }

    fn anew(&self) -> Index {
        index(self.files.values().flatten())
    }
}

const QUERIES: &[&str] = &[
    "budget",
    "ada launch",
    "猫",
    "when x",
    "猫が budget launch",
    "launch budget ada's",
    "january 2024",
    "der x",
    "zeitungen budget",
    "how many launch x",
    "summary of the budget",
];

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

/// Weights of every size.
fn weights() -> impl Strategy<Value = Weights> {
    let weight = || prop_oneof![Just(0), Just(1000), 0..=Weights::MAX];
    prop_oneof![
        Just(Weights::default()),
        prop::array::uniform10(weight()).prop_map(|w| Weights {
            session: w[0],
            before: w[1],
            after: w[2],
            question: w[3],
            answer: w[4],
            assistant: w[5].max(1),
            named: w[6].max(1),
            adjacent: w[7],
            inquiry: (w[8] / 10).max(1),
            number: w[9].max(1),
            standing: w[9].max(1000),
            ..Weights::default()
        }),
    ]
}

proptest! {
    /// Appended to, cut up, merged, thinned out: it ranks as one made of what is there.
    #[test]
    fn an_index_ranks_as_one_made_anew(
        steps in steps(), top_k in 1_u32..30, weights in weights(), hidden in prop::option::of(0_u8..4),
    ) {
        let mut grown = Grown::default();
        let visible = |path: &str| hidden.is_none_or(|hidden| path != format!("sources/p/_v2/{hidden}.md"));
        for (number, step) in steps.iter().enumerate() {
            grown.step(step);
            if number % 5 != 4 && number + 1 < steps.len() {
                continue;
            }
            let anew = grown.anew();
            prop_assert_eq!(grown.index.len(), anew.len());
            for text in QUERIES {
                let found = search(&grown.index, text, top_k, &weights, visible);
                prop_assert_eq!(&found, &search(&anew, text, top_k, &weights, visible), "{}", text);
                // Passing blocks over changes nothing: the best of all are the best.
                let all = search(&grown.index, text, LIMITS.top_k_max, &weights, visible);
                prop_assert_eq!(found.truncated, all.hits.len() > top_k as usize);
                prop_assert!(found.hits.iter().eq(all.hits.iter().take(top_k as usize)));
            }
        }
    }

    /// The files of a workspace may be indexed in any order.
    #[test]
    fn the_order_of_files_does_not_matter(steps in steps(), reverse in any::<bool>()) {
        let mut grown = Grown::default();
        steps.iter().for_each(|step| grown.step(step));
        let mut other = Index::new();
        let files: Vec<_> = grown.files.values().collect();
        let files: Vec<_> = if reverse { files.into_iter().rev().collect() } else { files };
        files.into_iter().flatten().for_each(|record| record.add_to(&mut other));
        for text in QUERIES {
            let all = |index: &Index| search(index, text, 7, &Weights::default(), |_| true);
            prop_assert_eq!(all(&grown.index), all(&other));
        }
    }

    #[test]
    fn every_hit_holds_a_term_and_its_signals_add_up(steps in steps(), text in "(ada |budget |猫 |zebra ){1,3}") {
        let mut grown = Grown::default();
        steps.iter().for_each(|step| grown.step(step));
        let ranking = search(&grown.index, &text, 1000, &Weights::default(), |_| true);
        let holds = |record: &&Record| {
            let all = format!("{} {}", record.label, record.text);
            text.split_whitespace().any(|word| all.contains(word))
        };
        prop_assert_eq!(ranking.hits.len(), grown.files.values().flatten().filter(holds).count());
        for hit in &ranking.hits {
            prop_assert!(hit.signals.iter().any(|signal| signal.name.starts_with("term:")));
            prop_assert_eq!(hit.signals.iter().map(|signal| signal.points).sum::<i64>(), hit.score as i64);
        }
        prop_assert!(ranking.hits.is_sorted_by(|a, b| a.score >= b.score));
    }

    #[test]
    fn nothing_panics(
        texts in prop::collection::vec(anything(), 1..8), weights in weights(),
        text in anything(), speaker in prop::option::of(anything()), path_prefix in prop::option::of(anything()),
        from in prop::option::of(anything()), to in prop::option::of(anything()), top_k in any::<u32>(),
    ) {
        let mut index = Index::new();
        for text in &texts {
            let record = Record { label: text.clone(), ..Record::within(text, text, text).by(text, text).at(text) };
            record.add_to(&mut index);
        }
        index.seal();
        let request = QueryRequest {
            text: &text, top_k, scope: None, speaker: speaker.as_deref(), path_prefix: path_prefix.as_deref(),
            from: from.as_deref(), to: to.as_deref(), explain: true,
            method: Method::Words,
        };
        match Query::parse(&request, &LIMITS) {
            Ok(query) => {
                index.search(&query, &index.view(&weights, |_| true), &mut Scratch::default()).unwrap();
            }
            Err(error) => prop_assert!(!error.reason().is_empty() && !error.to_string().is_empty()),
        }
    }

    /// Whatever a text is, it is found by itself, in any normalisation form, unless there is nothing in it to look for.
    #[test]
    fn a_text_is_found_by_itself(text in anything(), other in anything()) {
        use unicode_normalization::UnicodeNormalization;
        let index = index(&[Record::new("it", &text), Record::new("other", &other)]);
        let forms = [text.clone(), text.nfc().collect(), text.nfd().collect(), text.nfkc().collect(), text.nfkd().collect()];
        let mut answers = Vec::new();
        for form in &forms {
            let request = QueryRequest { text: form, top_k: 5, ..QueryRequest::default() };
            let view = index.view(&Weights::default(), |_| true);
            let found = Query::parse(&request, &LIMITS).ok().map(|query| index.search(&query, &view, &mut Scratch::default()).unwrap());
            if let Some(ranking) = &found {
                prop_assert!(ranking.hits.iter().any(|hit| hit.id == "it"), "{form:?}");
            }
            answers.push(found);
        }
        prop_assert!(answers.iter().all(|answer| *answer == answers[0]), "{forms:?}");
    }
}

/// Enough records that most blocks are passed over: conversations that grow in turns, so that neighbours stand apart, in
/// segments that part them.
#[test]
fn passing_blocks_over_changes_nothing() {
    let mut state = 7_u64;
    let mut random = |below: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    let mut index = Index::new();
    for number in 0..12_000_u32 {
        let file = random(400);
        let count = 1 + random(12);
        let words: Vec<String> = (0..count)
            .map(|_| {
                let a = 1 + random(60);
                format!("w{}", a * (1 + random(60)) / 30)
            })
            .collect();
        let question = if random(4) == 0 { "?" } else { "" };
        let standing = if random(9) == 0 { "Always " } else { "" };
        let record = Record::within(
            &format!("{file}.md"),
            &format!("p/{file}/{number:05}"),
            &format!("{standing}{}{question}", words.join(" ")),
        );
        let record = Record { by_machine: random(3) == 0, ..record };
        let record = if random(5) == 0 { record.by("7391", "Ada") } else { record };
        record.add_to(&mut index);
        if number % 2500 == 499 {
            index.seal();
        }
    }
    let queries = [
        "w2 w5 w9",
        "w110",
        "w100 w101 w99",
        "w1",
        "w1 w115",
        "w2 w118",
        "w3 w108",
        "ada w80",
        "w3 w4 w40 w41 w42 w43 w44 w45",
        "list what you said of w2 w80",
        "when and how many w100",
    ];
    let strong = [
        Weights::default(),
        Weights::PLAIN,
        Weights { before: 10_000, ..Weights::PLAIN },
        Weights { after: 10_000, answer: 3000, decay: 1000, ..Weights::PLAIN },
        Weights { session: 10_000, ..Weights::PLAIN },
        Weights { named: 10_000, assistant: 5000, ..Weights::PLAIN },
        Weights { inquiry: 100, assistant: 10_000, asking: 10_000, ..Weights::default() },
        Weights { number: 10_000, standing: 10_000, time: 10, ..Weights::default() },
    ];
    for (text, top_k) in queries.iter().flat_map(|text| [1, 10, 300].map(|top_k| (*text, top_k))) {
        for weights in strong {
            let found = search(&index, text, top_k, &weights, |path| path != "7.md");
            let all = search(&index, text, LIMITS.top_k_max, &weights, |path| path != "7.md");
            assert_eq!(found.truncated, all.hits.len() > top_k as usize);
            assert!(found.hits.iter().eq(all.hits.iter().take(top_k as usize)), "{text} {top_k}");
        }
    }
}

/// The best record has next to nothing of its own, and its neighbour is the last of the block before.
#[test]
fn a_neighbour_in_another_block_counts() {
    let filler = |number: u32| match number {
        63 => "rare",
        64 => "common",
        _ => "nothing",
    };
    let thread = (0..200).map(|number| Record::within("a.md", &format!("a/{number:03}"), filler(number)));
    let others =
        (0..600).map(|number| Record::new(&format!("b/{number:03}"), if number < 3 { "middling" } else { "common" }));
    let index = index(&thread.chain(others).collect::<Vec<_>>());
    let weights = Weights { before: 10_000, ..Weights::PLAIN };
    let best = |top_k| search(&index, "rare common middling", top_k, &weights, |_| true).hits.remove(0).id;
    assert_eq!((best(1), best(1000)), ("a/064".to_owned(), "a/064".to_owned()));
}

/// Texts of a size at which anything quadratic would not come to an end.
#[test]
fn large_texts_of_every_kind_are_indexed_and_asked() {
    let mut index = Index::new();
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
        "the ",
        "]",
        "[]",
    ] {
        let text = piece.repeat(size / piece.len() / 8);
        let record = Record { label: text.clone(), ..Record::within(piece, piece, &text).at(&text) };
        record.add_to(&mut index);
        let request = QueryRequest { text: &text, top_k: 1000, speaker: None, ..QueryRequest::default() };
        if let Ok(query) = Query::parse(&request, &LIMITS) {
            let view = index.view(&Weights::default(), |_| true);
            let ranking = index.search(&query, &view, &mut Scratch::default()).unwrap();
            assert!(ranking.hits.iter().any(|hit| hit.id == piece), "{piece:?}");
        }
    }
}

#[test]
fn a_hundred_thousand_terms_are_indexed_and_the_rarest_are_asked() {
    let words: String = (0..100_000).map(|n| format!("w{n} ")).collect();
    let mut index = index(&[Record::new("all", &words), Record::new("first", "w0"), Record::new("other", "x")]);
    for _ in 0..2 {
        let ask = |text: &str| search(&index, text, 10, &Weights::PLAIN, |_| true);
        let ranking = ask(&words);
        assert!(ranking.terms_left_out);
        assert_eq!(ranking.hits.len(), 1, "w0 is the least rare of {QUERY_TERMS}");
        let ranking = ask("w0 w99999");
        assert!(!ranking.terms_left_out);
        assert_eq!(ranking.hits.len(), 2);
        index.seal();
    }
    let characters: String = ('\u{4e00}'..='\u{9fff}').map(|c| format!("{c} ")).collect();
    let hanzi =
        search_support::index(&[Record::new("all", &characters), Record::new("run", &characters.replace(' ', ""))]);
    assert_eq!(search(&hanzi, &characters, 10, &Weights::default(), |_| true).hits.len(), 2);
}
