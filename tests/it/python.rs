//! The component runs in a Python program too: `examples/python` gives it a store and a lock written in Python, over a
//! directory that it shares with the host in Rust.
//!
//! Needs python3, for the example also its package `wasmtime`. Where that is missing a test says so and passes, unless
//! `REQUIRE_HOSTS=1`.

use std::path::PathBuf;
use std::process::{Command, Output};

use recollex_tests::built;

use crate::support::{self, cache, recollex};

fn examples() -> PathBuf {
    built::repository().join("examples/python")
}

/// python3 in the directory of the examples, if it can import a module.
fn python_with(module: &str) -> Option<Command> {
    let mut python = support::python_with(module, "examples/python/requirements.txt")?;
    python.current_dir(examples());
    Some(python)
}

#[track_caller]
fn succeeded(output: &Output) -> String {
    let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}\n{stdout}\n{stderr}", output.status);
    stdout
}

#[test]
fn a_python_program_archives_verifies_and_searches() {
    let Some(mut python) = python_with("wasmtime.component") else { return };
    let directory = tempfile::tempdir().unwrap();
    let workspace = directory.path().join("memory");
    let said = succeeded(&python.arg("example.py").arg(built::memory()).arg(&workspace).output().unwrap());
    assert!(said.contains("all as it should be"), "{said}");

    // What it kept, the host in Rust finds whole.
    let ours = |verb: &str| {
        let mut command = Command::new(recollex());
        command.args([verb, "--json", "--workspace"]).arg(&workspace).env("XDG_CACHE_HOME", cache());
        command
    };
    let report = succeeded(&ours("verify").output().unwrap());
    let report: serde_json::Value = serde_json::from_str(&report).unwrap();
    assert_eq!(report["ok"], true, "{report}");
    assert!(report["counts"]["frames"].as_u64().is_some_and(|frames| frames > 0), "{report}");
    assert!(succeeded(&ours("search").args(["喷油嘴"]).output().unwrap()).contains("喷油嘴"));
}

#[test]
fn its_store_keeps_its_promises_and_shares_a_workspace_with_ours() {
    let Some(mut python) = python_with("unittest") else { return };
    let output = python.args(["-m", "unittest", "discover"]).env("RECOLLEX_BIN", recollex()).output().unwrap();
    succeeded(&output);
    // unittest writes its summary to stderr. A run that found no tests or left some out proves nothing.
    let summary = String::from_utf8_lossy(&output.stderr);
    assert!(summary.contains("Ran ") && !summary.contains("Ran 0 ") && !summary.contains("skipped="), "{summary}");
}
