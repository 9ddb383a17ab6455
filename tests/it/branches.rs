//! Search from a place in a conversation: the reader's own branch first, and what stands elsewhere says so.

use serde_json::{Value, json};

use crate::home::Home;

/// A question, and two answers on two branches; the second answer goes on.
fn home() -> Home {
    let home = Home::with_workspace();
    let line = |id: &str, text: &str, after: Option<&str>| {
        let mut line = json!({"id": id, "role": "user", "text": text, "time": "2026-05-05T12:15:00+02:00",
                              "trust": "trusted", "tier": "owner", "principal": "tom",
                              "speaker": {"id": "u-2", "display": "Tom", "kind": "owner"}});
        if let Some(after) = after {
            line["after"] = json!(after);
        }
        line
    };
    let lines = [
        line("1", "What does the new mast cost?", None),
        line("2", "The mast costs 9000 euros in Kiel.", Some("1")),
        line("3", "The mast costs 7000 euros in Lübeck, and the mast is spruce.", Some("1")),
        line("4", "Order the mast then.", Some("3")),
    ];
    let export: String = lines.iter().map(|line| format!("{line}\n")).collect();
    home.feed(&["import", "jsonl", "--provider", "p", "--thread", "t", "--trust", "trusted", "-"], export.as_bytes())
        .exits(0);
    home
}

fn search(home: &Home, arguments: &[&str]) -> Vec<Value> {
    let all = [&["search", "--json", "mast", "costs"], arguments].concat();
    home.run(&all).exits(0).json()["results"].as_array().cloned().unwrap_or_default()
}

fn told(hits: &[Value]) -> Vec<(&str, Option<&str>)> {
    hits.iter().map(|hit| (hit["id"].as_str().unwrap(), hit["branch"].as_str())).collect()
}

#[test]
fn the_reader_s_own_branch_comes_first() {
    let home = home();
    let plain = search(&home, &[]);
    assert!(told(&plain).iter().all(|(_, branch)| branch.is_none()), "{plain:#?}");
    for (head, other) in [("2", "p/t/3"), ("4", "p/t/2")] {
        let hits = search(&home, &["--session", "p/t", "--head", head, "--explain"]);
        let told = told(&hits);
        let of = |id: &str| told.iter().find(|(found, _)| *found == id).unwrap().1;
        assert_eq!((of("p/t/1"), of(other)), (Some("own"), Some("other")), "{head}: {told:?}");
        // Where both say the like of it, the own one is before the other.
        let place = |id: &str| told.iter().position(|(found, _)| *found == id).unwrap();
        let own = if head == "2" { "p/t/2" } else { "p/t/3" };
        assert!(place(own) < place(other), "{head}: {told:?}");
        for hit in &hits {
            let signals = hit["signals"].as_array().unwrap();
            let points: i64 = signals.iter().map(|one| one["points"].as_i64().unwrap()).sum();
            assert_eq!(hit["score"].as_i64(), Some(points), "{hit:#}");
            let is_off = hit["branch"] == "other";
            assert_eq!(signals.iter().any(|one| one["name"] == "branch"), is_off, "{hit:#}");
        }
    }
    let shown = home.run(&["search", "mast", "costs", "--session", "p/t", "--head", "4"]).exits(0).stdout;
    assert_eq!(shown.matches("on another branch").count(), 1, "{shown}");
}

#[test]
fn a_place_that_is_not_there_is_told() {
    let home = home();
    for (session, head) in [("p/t", "9"), ("p/other", "1"), ("t", "1"), ("p/t", "a/../b")] {
        let ran = home.run(&["search", "--json", "mast", "--session", session, "--head", head]);
        let error = ran.json()["error"].clone();
        assert_eq!(
            (&error["code"], &error["reason"]),
            (&json!("MEMORY_NOT_FOUND"), &json!("no-such-record")),
            "{session} {head}: {error}"
        );
    }
    home.run(&["search", "mast", "--session", "p/t"]).exits(2);
}
