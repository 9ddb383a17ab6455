//! The verifier runs in a browser too: the page of `examples/browser` shows of archives what the command says of them, and
//! nothing leaves it.
//!
//! Needs node, the packages of `examples/browser/package-lock.json` and Chromium. Where one is missing the test says so and
//! passes, unless `REQUIRE_HOSTS=1`.

use std::ffi::OsString;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use recollex_tests::built;

use crate::support::{cache, recollex};

fn example() -> PathBuf {
    built::repository().join("examples/browser")
}

fn chromium() -> OsString {
    std::env::var_os("CHROMIUM").unwrap_or_else(|| "/usr/bin/chromium".into())
}

fn node() -> Command {
    let mut command = Command::new("node");
    command.stdin(Stdio::null()).current_dir(example());
    command
}

/// What is missing, in words.
fn missing() -> Option<String> {
    let has_node = node().arg("--version").output().is_ok_and(|output| output.status.success());
    if !has_node {
        return Some("there is no node".to_owned());
    }
    if !example().join("node_modules/playwright-core").is_dir() {
        return Some("examples/browser has no packages: run `npm ci` there".to_owned());
    }
    let browser = chromium();
    (!Path::new(&browser).is_file())
        .then(|| format!("{browser:?} is not there: install Chromium, or name it in CHROMIUM"))
}

#[test]
fn the_page_shows_what_the_command_says_and_nothing_leaves_it() {
    if let Some(missing) = missing() {
        assert!(std::env::var_os("REQUIRE_HOSTS").is_none_or(|value| value != "1"), "{missing}");
        // Not captured by the test harness: whoever reads the run must see that something was left out.
        let _ = writeln!(std::io::stderr(), "skipped: {missing}");
        return;
    }
    let pages = Path::new(env!("CARGO_TARGET_TMPDIR")).join("browser");
    let output = node().arg("build.mjs").arg(built::verifier()).arg(&pages).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));

    let tests = ["test/page.test.mjs", "test/private.test.mjs"];
    let output = node()
        .args(["--test", "--test-concurrency=1", "--test-reporter=tap"])
        .args(tests)
        .env("RECOLLEX_PAGE", pages.join("recollex-verify.html"))
        .env("RECOLLEX_BIN", recollex())
        .env("CHROMIUM", chromium())
        .env("XDG_CACHE_HOME", cache())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}\n{}", String::from_utf8_lossy(&output.stderr));
    // A run that found no tests or left some out proves nothing.
    let count = |what: &str| {
        let line = said.lines().find_map(|line| line.strip_prefix(&format!("# {what} ")));
        line.and_then(|number| number.parse::<u32>().ok()).unwrap_or_else(|| panic!("no {what} in {said}"))
    };
    assert!(
        count("pass") >= 17 && count("fail") + count("skipped") + count("todo") + count("cancelled") == 0,
        "{said}"
    );
}
