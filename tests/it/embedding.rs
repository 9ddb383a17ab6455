//! Search by what a text means: what goes to the model and how often, what comes of it, and what goes wrong with models.
//! The command, a real server, and vectors of which everybody can see what they are; and once a small model that is not ours.
//!
//! The model needs python3 with the packages of `tests/requirements.txt`; where they are missing the test says so and passes,
//! unless `REQUIRE_HOSTS=1`.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::process::Stdio;
use std::sync::{Arc, Mutex};

use recollex_test_model::{Received, Server, Step, openai};
use recollex_tests::built;
use serde_json::{Value, json};

use crate::home::{Home, Ran};
use crate::support::python_with;

/// What the server does with a request.
type Answers = fn(&Received) -> Step;

/// Words that mean the same, a dimension each.
const CLASSES: [&[&str]; 3] = [&["car", "automobile"], &["soup", "broth"], &["rent", "tenancy"]];

fn turn(id: &str, text: &str) -> Value {
    json!({"id": id, "role": "user", "text": text, "time": "2026-05-05T12:15:00+02:00",
           "speaker": {"id": "u-2", "display": "Tom", "kind": "owner"}, "tier": "owner", "principal": "tom"})
}

/// Three records, and a claim over the first.
fn home() -> Home {
    let home = Home::with_workspace();
    let turns = [
        turn("1", "The car broke down on the way."),
        turn("2", "The soup was far too salty."),
        turn("3", "Rent goes up in May."),
    ];
    home.archive(&turns).exits(0);
    let revision = home.run(&["status", "--json"]).exits(0).json()["revision"].clone();
    let record = json!({"op": "create_record", "content": "Tom owns a car.", "time": "2026-05-05",
                        "source_refs": ["p/t/1"],
                        "destination": {"topic_path": "topics/tom.md", "headings": ["Things"], "position": "end"}});
    let request = json!({"base_revision": revision, "memory_changes": [record]});
    home.feed(&["update", "--json"], request.to_string().as_bytes()).exits(0);
    home
}

fn texts(request: &Received) -> Vec<String> {
    let input = request.json()["input"].clone();
    serde_json::from_value(input).unwrap_or_else(|error| panic!("{error} in {}", request.body))
}

/// How often each class is mentioned.
fn vector(text: &str) -> Vec<f32> {
    let text = text.to_lowercase();
    let words: Vec<&str> = text.split(|c: char| !c.is_alphabetic()).collect();
    CLASSES.iter().map(|class| words.iter().filter(|word| class.contains(word)).count() as f32).collect()
}

fn embedded(request: &Received) -> Step {
    openai::vectors(&texts(request).iter().map(|text| vector(text)).collect::<Vec<_>>())
}

/// A vector for a text alone, as a query is, and something else for several.
fn for_query(request: &Received, other: impl FnOnce() -> Step) -> Step {
    if texts(request).len() == 1 { embedded(request) } else { other() }
}

/// A server whose answers a test can change.
struct Model {
    server: Server,
    step: Arc<Mutex<Answers>>,
}

impl Model {
    fn start() -> Self {
        let step: Arc<Mutex<Answers>> = Arc::new(Mutex::new(embedded));
        let server = Server::answering({
            let step = Arc::clone(&step);
            move |request| (step.lock().unwrap())(request)
        });
        Self { server: server.unwrap(), step }
    }

    fn answers(&self, step: fn(&Received) -> Step) {
        *self.step.lock().unwrap() = step;
    }

    /// The texts of each request so far.
    fn asked(&self) -> Vec<Vec<String>> {
        self.server.received().iter().map(texts).collect()
    }

    /// What is asked for while something is done.
    fn asked_by<T>(&self, act: impl FnOnce() -> T) -> (T, Vec<Vec<String>>) {
        let before = self.asked().len();
        let done = act();
        (done, self.asked().split_off(before))
    }
}

fn search_at(url: &str, home: &Home, arguments: &[&str]) -> Ran {
    let mut command = home.command(arguments);
    command
        .env("RECOLLEX_EMBEDDING_PROVIDER", "openai")
        .env("RECOLLEX_EMBEDDING_MODEL", "m-1")
        .env("RECOLLEX_EMBEDDING_BASE_URL", url);
    Ran::of(&command.output().unwrap())
}

fn search(model: &Model, home: &Home, method: &str, words: &[&str]) -> Ran {
    let arguments = [&["search", "--json", "--explain", "--method", method], words].concat();
    search_at(&format!("{}/v1", model.server.url()), home, &arguments)
}

/// The evidence of each hit, best first, `!` before a claim's.
fn found(ran: &Ran) -> Vec<String> {
    let results = ran.json()["results"].as_array().unwrap_or_else(|| panic!("{}", ran.stdout)).clone();
    let shown = |hit: &Value| {
        let mark = if hit["kind"] == "topic" { "!" } else { "" };
        format!("{mark}{}", hit["evidence"][0].as_str().unwrap())
    };
    for hit in &results {
        let points: i64 = hit["signals"].as_array().unwrap().iter().map(|one| one["points"].as_i64().unwrap()).sum();
        assert_eq!(hit["score"].as_i64(), Some(points), "{hit:#}");
    }
    results.iter().map(shown).collect()
}

/// The same, whichever of two that are equally good comes first.
fn sorted(ran: &Ran) -> Vec<String> {
    let mut found = found(ran);
    found.sort();
    found
}

fn findings(ran: &Ran) -> Vec<String> {
    let all = ran.json()["findings"].as_array().cloned().unwrap_or_default();
    all.iter().map(|finding| finding["code"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn what_words_cannot_find_is_found_by_what_it_means() {
    let (home, model) = (home(), Model::start());
    assert_eq!(found(&search(&model, &home, "words", &["automobile"]).exits(1)), [""; 0]);
    assert_eq!(model.asked(), Vec::<Vec<String>>::new(), "words need no model");

    let (ran, asked) = model.asked_by(|| search(&model, &home, "embedding", &["automobile"]).exits(0));
    assert_eq!((sorted(&ran), findings(&ran)), (vec!["!p/t/1".to_owned(), "p/t/1".to_owned()], vec![]));
    assert_eq!(asked[0], ["automobile"]);
    let passages = [
        "tom Things\nTom owns a car.",
        "The car broke down on the way.",
        "The soup was far too salty.",
        "Rent goes up in May.",
    ];
    assert_eq!(asked[1..], [passages], "claims first, and each text once");
    for hit in ran.json()["results"].as_array().unwrap() {
        assert_eq!(hit["signals"], json!([{"name": "meaning", "points": 1_000_000}]), "{hit:#}");
    }

    // From then on only the query.
    let (ran, asked) = model.asked_by(|| search(&model, &home, "hybrid", &["salty", "automobile"]).exits(0));
    assert_eq!(
        (sorted(&ran), asked),
        (vec!["!p/t/1".into(), "p/t/1".into(), "p/t/2".into()], vec![vec!["salty automobile".to_owned()]])
    );
    let names = |hit: &Value| -> Vec<String> {
        hit["signals"].as_array().unwrap().iter().map(|one| one["name"].as_str().unwrap().to_owned()).collect()
    };
    for hit in ran.json()["results"].as_array().unwrap() {
        let by_words = hit["evidence"][0] == "p/t/2";
        assert_eq!(names(hit), [if by_words { "words-rank" } else { "meaning-rank" }], "{hit:#}");
    }
    let ran = search(&model, &home, "hybrid", &["car", "broke"]).exits(0);
    let results = ran.json()["results"].clone();
    assert_eq!(names(&results[0]), ["words-rank", "meaning-rank"]);
}

#[test]
fn what_changes_is_embedded_and_nothing_else() {
    let (home, model) = (home(), Model::start());
    search(&model, &home, "embedding", &["automobile"]).exits(0);
    home.archive(&[turn("4", "An automobile show.")]).exits(0);
    let topic = home.workspace().join("topics/tom.md");
    let text = fs::read_to_string(&topic).unwrap();
    assert!(text.contains("owns a car"), "{text}");
    fs::write(&topic, text.replace("owns a car", "owns a pot of broth")).unwrap();
    let (ran, asked) = model.asked_by(|| search(&model, &home, "embedding", &["car"]).exits(0));
    assert_eq!(sorted(&ran), ["p/t/1", "p/t/4"]);
    assert_eq!(asked[1..], [["tom Things\nTom owns a pot of broth.", "An automobile show."]]);
    assert_eq!(sorted(&search(&model, &home, "embedding", &["soup"]).exits(0)), ["!p/t/1", "p/t/2"]);
    // What stood there before costs nothing when it comes back.
    fs::write(&topic, text).unwrap();
    let (_, asked) = model.asked_by(|| search(&model, &home, "embedding", &["car"]).exits(0));
    assert_eq!(asked, [["car"]]);
}

#[test]
fn only_what_passes_the_filters_goes_to_the_model() {
    let (home, model) = (home(), Model::start());
    let (ran, asked) =
        model.asked_by(|| search(&model, &home, "embedding", &["automobile", "--kind", "topic"]).exits(0));
    assert_eq!(
        (found(&ran), &asked[1..]),
        (vec!["!p/t/1".to_owned()], &[vec!["tom Things\nTom owns a car.".to_owned()]][..])
    );
    let (_, asked) = model.asked_by(|| {
        let error = search(&model, &home, "embedding", &["car", "--speaker", "Tom"]).exits(2).json()["error"].clone();
        assert_eq!((&error["code"], &error["reason"]), (&json!("INVALID_ARGUMENT"), &json!("speaker-with-embedding")));
        let ran = search(&model, &home, "hybrid", &["car", "--from", "2027"]).exits(1);
        assert_eq!(found(&ran), [""; 0]);
    });
    assert_eq!(asked, [["car"]]);
}

#[test]
fn a_search_embeds_so_much_and_says_what_is_left() {
    let (home, model) = (home(), Model::start());
    let url = format!("{}/v1", model.server.url());
    let arguments =
        ["--set", "search.embed-texts=1", "search", "--json", "--explain", "--method", "embedding", "automobile"];
    for embedded in 1..=4 {
        let (ran, asked) = model.asked_by(|| search_at(&url, &home, &arguments));
        let left = if embedded < 4 { vec!["vectors-incomplete".to_owned()] } else { vec![] };
        assert_eq!((findings(&ran), asked.len()), (left, 2), "{}", ran.stdout);
    }
    let (ran, asked) = model.asked_by(|| search_at(&url, &home, &arguments));
    assert_eq!((findings(&ran), asked.len(), sorted(&ran).len()), (vec![], 1, 2));
}

#[test]
fn a_model_that_fails_is_an_error_or_leaves_the_words() {
    let (home, model) = (home(), Model::start());
    let wrong: [fn(&Received) -> Step; 5] = [
        |_| openai::vectors(&[]),
        |_| openai::vectors(&[vec![1.0, 2.0, 3.0], vec![1.0, 2.0, 3.0]]),
        |_| openai::vectors(&[vec![]]),
        |_| Step::text(200, "application/json", r#"{"data":[{"embedding":[1e39,0]}],"model":"v"}"#),
        |_| Step::text(200, "application/json", r#"{"data":[{"embedding":[NaN,0]}],"model":"v"}"#),
    ];
    for answer in wrong {
        model.answers(answer);
        let error = search(&model, &home, "embedding", &["car"]).refuses(2);
        assert_eq!(error["error"]["code"], "MODEL_PROVIDER_INTERNAL", "{error}");
        let ran = search(&model, &home, "hybrid", &["car"]);
        assert_eq!((sorted(&ran).len(), findings(&ran)), (2, vec!["meaning-unavailable".to_owned()]));
    }
    model.answers(|_| openai::error(401, "invalid_api_key", "no"));
    let error = search(&model, &home, "embedding", &["car"]).refuses(2);
    let told = (&error["error"]["code"], &error["error"]["reason"]);
    assert_eq!(told, (&json!("MODEL_AUTHENTICATION"), &json!("embedding-failed")));

    // The query has a vector, and nothing else gets one.
    let passages: [(Answers, &str); 3] = [
        (|asked| for_query(asked, || openai::error(500, "oops", "no")), "embedding-failed"),
        (|asked| for_query(asked, || openai::vectors(&[vec![1.0; 3]])), "embedding-failed"),
        (|asked| for_query(asked, || openai::vectors(&vec![vec![1.0; 5]; 4])), "unusable-vectors"),
    ];
    for (answer, reason) in passages {
        model.answers(answer);
        let error = search(&model, &home, "embedding", &["car"]).refuses(2);
        assert_eq!(
            (&error["error"]["code"], &error["error"]["reason"]),
            (&json!("MODEL_PROVIDER_INTERNAL"), &json!(reason)),
            "{error}"
        );
        let ran = search(&model, &home, "hybrid", &["car"]);
        assert_eq!((sorted(&ran).len(), findings(&ran)), (2, vec!["vectors-incomplete".to_owned()]));
    }
    model.answers(embedded);
    assert_eq!(findings(&search(&model, &home, "embedding", &["car"]).exits(0)), [""; 0]);

    let url = format!("{}/v1", model.server.url());
    drop(model);
    let gone = ["search", "--json", "--explain", "--method", "embedding", "car"];
    assert_eq!(search_at(&url, &home, &gone).refuses(2)["error"]["code"], "MODEL_TRANSPORT");
}

#[test]
fn a_small_model_finds_what_is_meant() {
    let Some(mut python) = python_with("wordllama", "tests/requirements.txt") else { return };
    let script = built::repository().join("tests/it/embedding_server.py");
    let mut server = python.arg(script).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut url = String::new();
    BufReader::new(server.stdout.take().unwrap()).read_line(&mut url).unwrap();
    let home = Home::with_workspace();
    let said = [
        "We bought a red one last spring, with a new engine and four tyres.",
        "The soup was far too salty yesterday.",
        "My sister plays the violin in an orchestra.",
        "The doctor says my blood pressure is too high.",
        "The rent goes up by ten percent in May.",
        "Their puppy chewed up my shoes.",
    ];
    let turns: Vec<Value> = said.iter().zip(1..).map(|(text, id)| turn(&format!("{id}"), text)).collect();
    home.archive(&turns).exits(0);
    for (query, id) in [
        ("automobile", "p/t/1"),
        ("meal that tasted bad", "p/t/2"),
        ("music instruments", "p/t/3"),
        ("health problems", "p/t/4"),
        ("cost of the apartment", "p/t/5"),
        ("dog", "p/t/6"),
    ] {
        for method in ["embedding", "hybrid"] {
            let arguments = ["search", "--json", "--explain", "--method", method, query];
            let ran = search_at(url.trim(), &home, &arguments).exits(0);
            assert_eq!(found(&ran)[0], id, "{query}: {}", ran.stdout);
        }
    }
    drop(server.stdin.take());
    server.wait().unwrap();
}
