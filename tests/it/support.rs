//! What several test modules use.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use recollex_tests::built;
use wit_parser::{PackageId, Resolve};

/// The contract as it stands in `wit/`.
pub fn contract() -> (Resolve, PackageId) {
    parse(&built::repository().join("wit"))
}

/// A directory of WIT.
pub fn parse(directory: &Path) -> (Resolve, PackageId) {
    let mut resolve = Resolve::default();
    let (package, _) = resolve.push_dir(directory).unwrap_or_else(|error| panic!("{}: {error:#}", directory.display()));
    (resolve, package)
}

/// The files that belong to the repository, relative to its root: what git tracks, or, outside a git checkout, what lies
/// there.
pub fn tracked_files() -> Vec<PathBuf> {
    let root = built::repository();
    let listed = Command::new("git").arg("-C").arg(root).args(["ls-files", "-z"]).output();
    match listed {
        Ok(output) if output.status.success() && !output.stdout.is_empty() => String::from_utf8(output.stdout)
            .unwrap()
            .split_terminator('\0')
            .map(PathBuf::from)
            // What is deleted but not yet committed is listed too.
            .filter(|path| root.join(path).is_file())
            .collect(),
        _ => {
            let mut found = Vec::new();
            walk(root, &mut |path| {
                let relative = path.strip_prefix(root).unwrap().to_path_buf();
                if relative.starts_with("target") || relative.starts_with(".git") {
                    return false;
                }
                if path.is_file() {
                    found.push(relative);
                }
                true
            });
            found
        }
    }
}

/// Calls `visit` with everything below a directory; a directory for which it answers false is not entered.
pub fn walk(directory: &Path, visit: &mut dyn FnMut(&Path) -> bool) {
    let mut paths: Vec<PathBuf> = fs::read_dir(directory)
        .unwrap_or_else(|error| panic!("{}: {error}", directory.display()))
        .map(|entry| entry.unwrap().path())
        .collect();
    paths.sort();
    for path in paths {
        let enter = visit(&path);
        if enter && fs::symlink_metadata(&path).unwrap().is_dir() {
            walk(&path, visit);
        }
    }
}

/// The `recollex` binary of this build, built if it is not there or not of these sources.
pub fn recollex() -> &'static Path {
    static BINARY: std::sync::OnceLock<PathBuf> = std::sync::OnceLock::new();
    BINARY.get_or_init(|| {
        // This test is <target>/<profile>/deps/it-<hash>.
        let test = std::env::current_exe().unwrap();
        let directory = test.parent().and_then(Path::parent).unwrap();
        let profile = match directory.file_name().and_then(|name| name.to_str()) {
            Some("debug") => "dev",
            Some(name) => name,
            None => panic!("{} is in no target directory", test.display()),
        };
        // Cargo hands CARGO_BIN_EXE_… only to the package of the binary. It knows best whether there is something to do.
        let output = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
            .current_dir(built::repository())
            .args(["build", "--quiet", "--locked", "--bin", "recollex", "--profile", profile, "--target-dir"])
            .arg(directory.parent().unwrap())
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        directory.join("recollex")
    })
}

/// A cache of compiled components that all tests share: compiling takes most of a short test.
pub fn cache() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("cache")
}

/// Every path below a directory, with its kind, mode and content: equal snapshots mean that nothing was changed.
pub fn snapshot(directory: &Path) -> Vec<(PathBuf, u32, Vec<u8>)> {
    use std::os::unix::fs::PermissionsExt as _;
    let mut found = Vec::new();
    walk(directory, &mut |path| {
        let metadata = fs::symlink_metadata(path).unwrap();
        let content = if metadata.is_file() { fs::read(path).unwrap() } else { Vec::new() };
        found.push((path.strip_prefix(directory).unwrap().to_path_buf(), metadata.permissions().mode(), content));
        true
    });
    found
}

/// python3, if it can import a module of those that `requirements` lists. Otherwise says that something is left out, or fails
/// where `REQUIRE_HOSTS=1`.
pub fn python_with(module: &str, requirements: &str) -> Option<Command> {
    let python = || {
        let mut command = Command::new("python3");
        // `-B`: no bytecode beside the sources.
        command.arg("-B").stdin(Stdio::null());
        command
    };
    let probe = python().args(["-c", &format!("import {module}")]).output();
    if probe.is_ok_and(|output| output.status.success()) {
        return Some(python());
    }
    let reason = format!("python3 cannot import {module}; see {requirements}");
    assert!(std::env::var_os("REQUIRE_HOSTS").is_none_or(|value| value != "1"), "{reason}");
    // Not captured by the test harness: whoever reads the run must see that something was left out.
    let _ = writeln!(std::io::stderr(), "skipped: {reason}");
    None
}
