//! What crash tests kill: a process that does one thing to a workspace, told by its arguments.
//!
//! ```text
//! crash-child WHEN ACT ROOT CASE BACKUP  an act of recollex_tests::crash upon a case: commit, undo, restore, …
//! crash-child WHEN backup ROOT TARGET    makes a backup
//! crash-child WHEN recover ROOT          completes what a dead writer left
//! crash-child WHEN update ROOT CACHE REQUEST  makes an update, told by a file, through the host library
//! crash-child WHEN exec PROGRAM [ARG]…   becomes that program
//! crash-child write ROOT NAME COUNT      commits COUNT times against other writers
//! crash-child edit ROOT CACHE NAME COUNT makes COUNT updates against other writers, once its input says so
//! crash-child read ROOT                  checks what it sees until its input ends
//! crash-child hold ROOT                  has write.lock as another program has it, until its input ends
//! ```
//!
//! WHEN is `traced` (stops for its parent to trace it, then goes on) or `free` (prints `ready` and goes on).

use std::collections::BTreeMap;
use std::error::Error;
use std::fs::OpenOptions;
use std::io::{self, Read as _, Write as _};
use std::path::Path;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use recollex::lock::{FileLock, Lock as _, LockError};
use recollex::store::{About, Area, Change, CommitError, Directory, Edit, Expect, Store, StoreError};
use recollex_tests::crash::{self, Act, COMMITTED, READY};
use recollex_tests::edits;

type Result<T> = std::result::Result<T, Box<dyn Error>>;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let done = match *arguments.as_slice() {
        [when, "recover", root] => recover(when, Path::new(root)),
        [when, "backup", root, target] => backup(when, Path::new(root), Path::new(target)),
        [when, "update", root, cache, request] => update(when, Path::new(root), Path::new(cache), Path::new(request)),
        [when, "exec", program, ref rest @ ..] => exec(when, program, rest),
        ["edit", root, cache, name, count] => edit(Path::new(root), Path::new(cache), name, count),
        ["write", root, name, count] => write(Path::new(root), name, count),
        ["read", root] => read(Path::new(root)),
        ["hold", root] => hold(Path::new(root)),
        [when, act, root, case, backup] => perform(when, act, Path::new(root), case, Path::new(backup)),
        _ => Err("see the head of tests/src/bin/crash-child.rs".into()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            say_wrong(&error.to_string());
            ExitCode::FAILURE
        }
    }
}

/// One line, in one write.
fn say(line: &str) {
    // Whoever listens may be gone, which kills nobody here.
    let _ = io::stdout().write_all(format!("{line}\n").as_bytes());
}

fn say_wrong(line: &str) {
    let _ = io::stderr().write_all(format!("{line}\n").as_bytes());
}

/// From here on it counts.
fn begin(when: &str) -> Result<()> {
    match when {
        "free" => say(READY),
        #[cfg(target_os = "linux")]
        "traced" => {
            nix::sys::ptrace::traceme()?;
            nix::sys::signal::raise(nix::sys::signal::Signal::SIGSTOP)?;
        }
        other => return Err(format!("{other} is not possible here").into()),
    }
    Ok(())
}

fn perform(when: &str, act: &str, root: &Path, case: &str, backup: &Path) -> Result<()> {
    let act = Act::ALL.into_iter().find(|known| known.name() == act).ok_or("no such act")?;
    let case = crash::case(case, root)?;
    begin(when)?;
    act.perform(root, &case, backup, &mut |number| say(&format!("{COMMITTED} {number}")))
}

fn backup(when: &str, root: &Path, target: &Path) -> Result<()> {
    begin(when)?;
    crash::backup(root, target, false)?;
    say(&format!("{COMMITTED} 1"));
    Ok(())
}

fn recover(when: &str, root: &Path) -> Result<()> {
    let (store, lock) = (Directory::new(root), FileLock::new(root));
    begin(when)?;
    let guard = lock.acquire(0, "recover")?;
    let recovery = store.recover(&*guard)?;
    say(&format!("{COMMITTED} {recovery:?}"));
    Ok(())
}

fn update(when: &str, root: &Path, cache: &Path, request: &Path) -> Result<()> {
    let request = std::fs::read_to_string(request)?;
    let mut session = edits::session(&edits::runtime(cache)?, root)?;
    begin(when)?;
    let updated = session.update(&request, &edits::quoting())?;
    say(&format!("{COMMITTED} {}", updated.revision));
    Ok(())
}

/// Adds claims against other writers.
fn edit(root: &Path, cache: &Path, name: &str, count: &str) -> Result<()> {
    let mut session = edits::session(&edits::runtime(cache)?, root)?;
    say(READY);
    io::stdin().read_line(&mut String::new())?;
    let conflicts = edits::add_claims(&mut session, name, count.parse()?)?;
    say(&format!("{count} {conflicts}"));
    Ok(())
}

fn exec(when: &str, program: &str, arguments: &[&str]) -> Result<()> {
    use std::os::unix::process::CommandExt as _;
    begin(when)?;
    Err(std::process::Command::new(program).args(arguments).exec().into())
}

/// The whole text of a file, one version of it, read in pieces.
fn whole(store: &Directory, area: Area, path: &str) -> std::result::Result<String, StoreError> {
    'again: loop {
        let (mut text, mut at) = (String::new(), None);
        loop {
            match store.read_text(area, path, at.as_ref(), text.len() as u64, 4096) {
                Ok(chunk) => {
                    text.push_str(&chunk.text);
                    at = Some(chunk.stamp);
                    if chunk.eof {
                        return Ok(text);
                    }
                }
                Err(StoreError::Changed) => continue 'again,
                Err(error) => return Err(error),
            }
        }
    }
}

/// Commits `count` times: a line to the log that all writers share, and a pair of files that must always match it.
fn write(root: &Path, name: &str, count: &str) -> Result<()> {
    let (store, lock) = (Directory::new(root), FileLock::new(root));
    let count: u32 = count.parse()?;
    let mut refused = 0_u32;
    for number in 1..=count {
        loop {
            // Planned without the lock, as a component does; whoever was faster makes it plan anew.
            let base = store.generation()?;
            let length = match store.stat(Area::Tree, "sources/log.md") {
                Ok(entry) => entry.stamp.size,
                Err(StoreError::NotFound) => 0,
                Err(error) => return Err(error.into()),
            };
            let line = format!("{name} {number} {}\n", "x".repeat(number as usize % 50));
            let change =
                |path: &str, edit| Change { area: Area::Tree, path: path.to_owned(), expect: Expect::Any, edit };
            let changes = [
                change("sources/log.md", Edit::Append { length, text: line.clone() }),
                change("pair/left.md", Edit::Put(line.clone())),
                change("pair/right.md", Edit::Put(line)),
            ];
            let guard = match lock.acquire(30_000, name) {
                Ok(guard) => guard,
                Err(LockError::Held(_)) => return Err("the lock was not given within half a minute".into()),
                Err(error) => return Err(error.into()),
            };
            let result = store.commit(&*guard, base, &changes, &About::default());
            drop(guard);
            // Whoever waits looks only now and then: a lock taken again at once would never be seen free.
            std::thread::sleep(Duration::from_micros(500));
            match result {
                Ok(_) => break,
                Err(CommitError::Stale(_) | CommitError::Changed(_)) => refused += 1,
                Err(error) => return Err(error.into()),
            }
        }
    }
    say(&format!("{count} {refused}"));
    Ok(())
}

/// Checks, until its input ends, that everything seen is whole, matches, and only grows.
fn read(root: &Path) -> Result<()> {
    static OVER: AtomicBool = AtomicBool::new(false);
    std::thread::spawn(|| {
        let mut rest = Vec::new();
        // However the input ends, it is over.
        let _ = io::stdin().read_to_end(&mut rest);
        OVER.store(true, Ordering::Relaxed);
    });
    let store = Directory::new(root);
    let mut log = String::new();
    let mut last_generation = 0;
    let (mut looks, mut matched, mut versions) = (0_u32, 0_u32, 0_u32);
    while !OVER.load(Ordering::Relaxed) || matched == 0 {
        looks += 1;
        let before = store.generation()?;
        if before < last_generation {
            return Err(format!("generation {before} after {last_generation}").into());
        }
        last_generation = before;
        if before == 0 {
            continue;
        }
        let left = whole(&store, Area::Tree, "pair/left.md")?;
        let now = whole(&store, Area::Tree, "sources/log.md")?;
        let right = whole(&store, Area::Tree, "pair/right.md")?;
        let page = store.entries(Area::Tree, "", None, 0)?;
        let is_one_version = store.generation()? == before;
        // Each file is whole and no older than before, also while commits come between.
        if !now.starts_with(&log) {
            return Err(format!("the log does not continue {:?}", log.lines().last()).into());
        }
        if now.len() > log.len() {
            versions += 1;
        }
        log = now;
        check_lines(&log)?;
        for half in [&left, &right] {
            check_line(half.strip_suffix('\n').ok_or("half of a pair has a torn end")?)?;
        }
        let paths: Vec<&str> = page.entries.iter().map(|entry| entry.path.as_str()).collect();
        if paths != ["pair/left.md", "pair/right.md", "sources/log.md"] {
            return Err(format!("a listing shows {paths:?}").into());
        }
        if is_one_version {
            matched += 1;
            let end = log.lines().last().unwrap_or_default();
            if left != right || left.strip_suffix('\n') != Some(end) {
                return Err(format!("at generation {before}: {left:?}, {right:?}, {end:?}").into());
            }
            let sizes: Vec<u64> = page.entries.iter().map(|entry| entry.stamp.size).collect();
            if sizes != [left.len() as u64, right.len() as u64, log.len() as u64] {
                return Err(format!("at generation {before} a listing has the sizes {sizes:?}").into());
            }
        }
    }
    say(&format!("{looks} {matched} {versions}"));
    Ok(())
}

/// A line is whole: it has as many x as its number says.
fn check_line(line: &str) -> Result<(&str, u32)> {
    let wrong = || format!("torn: {line:?}");
    let mut words = line.split(' ');
    let (name, number) = (words.next().ok_or_else(wrong)?, words.next().ok_or_else(wrong)?.parse::<u32>()?);
    let rest = words.next().ok_or_else(wrong)?;
    if words.next().is_some() || rest != "x".repeat(number as usize % 50) {
        return Err(wrong().into());
    }
    Ok((name, number))
}

/// Each writer's lines are there in order, none twice and none missing.
fn check_lines(log: &str) -> Result<()> {
    if !log.ends_with('\n') {
        return Err("the log has a torn end".into());
    }
    let mut last: BTreeMap<&str, u32> = BTreeMap::new();
    for line in log.lines() {
        let (name, number) = check_line(line)?;
        let before = last.insert(name, number).unwrap_or(0);
        if number != before + 1 {
            return Err(format!("{name}: {number} after {before}").into());
        }
    }
    Ok(())
}

fn hold(root: &Path) -> Result<()> {
    let runtime = root.join(".scriptorium");
    std::fs::create_dir_all(&runtime)?;
    // As the other program does it: opened for adding, locked, and nothing else.
    let file = OpenOptions::new().append(true).create(true).open(runtime.join("write.lock"))?;
    file.lock()?;
    say(READY);
    let mut rest = Vec::new();
    io::stdin().read_to_end(&mut rest)?;
    Ok(())
}
