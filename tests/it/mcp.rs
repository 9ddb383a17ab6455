//! `recollex mcp`, driven by the official client in Python, and by hand where a client would not go.
//!
//! Needs python3 with the packages of `tests/requirements.txt`; where they are missing the test says so and passes, unless
//! `REQUIRE_HOSTS=1`.

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use recollex_tests::built;
use serde_json::{Value, json};

use crate::support::{cache, python_with, recollex};

/// A workspace with the sample conversation.
fn sample(root: &Path) {
    let conversation = built::repository().join("examples/data/conversation.jsonl");
    let mut archive = Command::new(recollex());
    archive.args(["archive", "--chunk", "--workspace"]).arg(root).arg(conversation).env("XDG_CACHE_HOME", cache());
    let output = archive.output().unwrap();
    assert!(output.status.success(), "{output:?}");
}

#[test]
fn a_client_that_is_not_ours_reads_memory() {
    let Some(mut python) = python_with("mcp", "tests/requirements.txt") else { return };
    let directory = tempfile::tempdir().unwrap();
    let workspace = directory.path().join("memory");
    sample(&workspace);
    let script = built::repository().join("tests/it/mcp_client.py");
    let output = python.arg(script).arg(recollex()).arg(&workspace).arg(cache()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let seen: Value = serde_json::from_slice(&output.stdout).unwrap();

    assert_eq!(seen["server"], "recollex");
    let tools = seen["tools"].as_array().unwrap();
    let names: Vec<&str> = tools.iter().filter_map(|tool| tool["name"].as_str()).collect();
    assert_eq!(
        names,
        ["memory_search", "memory_recall", "memory_get", "memory_browse", "memory_grep", "memory_status"]
    );
    for tool in tools {
        assert_eq!(tool["hints"]["read_only_hint"], true, "{tool}");
        assert_eq!(tool["hints"]["open_world_hint"], false, "{tool}");
        assert_eq!(tool["input"]["additionalProperties"], false, "{tool}");
        assert_eq!(tool["output"]["type"], "object", "{tool}");
    }

    let answer = |what: &str| {
        assert_eq!(seen[what]["error"], false, "{what}: {}", seen[what]);
        seen[what]["answer"].clone()
    };
    let (first, next) = (answer("search"), answer("next"));
    let ids = |answer: &Value| -> Vec<Value> {
        answer["results"].as_array().unwrap().iter().map(|hit| hit["id"].clone()).collect()
    };
    assert_eq!((ids(&first).len(), &first["truncated"], &first["cursor"]), (2, &json!(true), &json!("2")));
    assert_eq!(ids(&next).len(), 2);
    assert!(ids(&next).iter().all(|id| !ids(&first).contains(id)), "{next}");
    // Who reads the text alone reads the same.
    let text: Value = serde_json::from_str(seen["search"]["text"].as_str().unwrap()).unwrap();
    assert_eq!(text, first);

    let record = answer("get");
    assert_eq!(record["record"]["id"], ids(&first)[0]);
    let (page, rest) = (answer("page"), answer("rest"));
    assert_eq!((page["lines"].as_array().unwrap().len(), &page["truncated"]), (3, &json!(true)));
    // What is not shown of an archive has numbers too.
    assert_eq!(page["cursor"], rest["lines"][0]["number"].to_string());
    assert!(page["lines"][2]["number"].as_u64() < rest["lines"][0]["number"].as_u64(), "{page} {rest}");
    assert!(answer("browse")["files"].as_array().is_some_and(|files| !files.is_empty()));
    let grep = answer("grep");
    assert!(grep["total"].as_u64() > Some(1) && grep["truncated"] == true, "{grep}");
    assert_eq!(answer("status")["health"], "ok");
    assert_eq!(answer("nothing")["results"], json!([]));

    // An error says what is wrong and never looks like an empty answer.
    for (what, code) in [
        ("backwards", "INVALID_ARGUMENT"),
        ("absent", "MEMORY_NOT_FOUND"),
        ("unknown", "INVALID_ARGUMENT"),
        ("both", "INVALID_ARGUMENT"),
    ] {
        assert_eq!(seen[what]["error"], true, "{what}: {}", seen[what]);
        assert_eq!(seen[what]["answer"]["error"]["code"], code, "{what}: {}", seen[what]);
    }
    assert!(seen["no_tool"].as_str().is_some_and(|said| said.contains("memory_delete")), "{seen}");
    assert_eq!(seen["together"], json!(vec![ids(&first)[0].clone(); 8]));
}

/// What the server answers to these lines, and how it ends.
fn served(root: &Path, lines: &[&str]) -> Output {
    let mut server = Command::new(recollex());
    server.args(["mcp", "--workspace"]).arg(root).env("XDG_CACHE_HOME", cache());
    let mut server = server.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut stdin = server.stdin.take().unwrap();
    for line in lines {
        // It may be gone already.
        let _ = writeln!(stdin, "{line}");
    }
    drop(stdin);
    server.wait_with_output().unwrap()
}

#[test]
fn stdout_is_the_protocol_and_nothing_else() {
    let directory = tempfile::tempdir().unwrap();
    let workspace = directory.path().join("memory");
    sample(&workspace);
    let output = served(
        &workspace,
        &[
            r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}"#,
            r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
            "this is no message",
            r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"memory_status","arguments":{}}}"#,
        ],
    );
    let stdout = String::from_utf8(output.stdout).unwrap();
    let messages: Vec<Value> = stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(messages.iter().all(|message| message["jsonrpc"] == "2.0"), "{stdout}");
    let first = messages.iter().find(|message| message["id"] == 1).unwrap();
    assert_eq!(first["result"]["protocolVersion"], "2025-06-18");
    let status = messages.iter().find(|message| message["id"] == 2).unwrap();
    assert_eq!(status["result"]["structuredContent"]["health"], "ok", "{stdout}");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn a_client_that_says_nothing_ends_it() {
    let directory = tempfile::tempdir().unwrap();
    let output = served(directory.path(), &[]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(output.stdout.is_empty());
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0, "looking leaves nothing behind");
}
