//! The labelled set of `tests/labelled`, written by what stands there in place of a model: that the measure measures.

use std::process::Command;
use std::sync::Arc;

use recollex::model::{Live, RolesSettings};
use recollex_tests::built;
use recollex_tests::extraction::{Counts, run};

#[test]
fn a_writer_that_copies_leaves_out_what_only_two_turns_say_together() {
    // The standard library is all it needs.
    if Command::new("python3").arg("--version").output().is_err() {
        assert!(std::env::var_os("REQUIRE_HOSTS").is_none_or(|value| value != "1"), "there is no python3");
        return;
    }
    let directory = built::repository().join("tests/labelled");
    let set = std::fs::read_to_string(directory.join("conversations.jsonl")).unwrap();
    let conversations: Vec<_> = set.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let mut settings: RolesSettings =
        toml::from_str(&std::fs::read_to_string(directory.join("verbatim.toml")).unwrap()).unwrap();
    let command = settings.writer.as_mut().unwrap().command.as_mut().unwrap();
    *command.last_mut().unwrap() = directory.join("verbatim.py").to_str().unwrap().to_owned();
    let report = run(&conversations, Arc::new(Live::new(move || Ok(settings.clone())))).unwrap();
    assert_eq!(report.models, ["verbatim"]);
    let expected = Counts {
        facts: 15,
        extracted: 14,
        sourced: 14,
        omitted: 1,
        blocks: 15,
        noise: 5,
        requests: 12,
        ..Counts::default()
    };
    assert_eq!(report.all, expected);
    assert_eq!(report.conversations["correction"].omitted, 1, "who is allergic to what, no turn says by itself");
    assert_eq!(report.languages.keys().collect::<Vec<_>>(), ["en", "zh"]);
}
