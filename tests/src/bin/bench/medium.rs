//! What a commit asks of the medium, counted in a real process, and what it costs to go on after one that died.
//!
//! The process is this program again. It opens everything, stops to be traced, and makes one commit; its parent counts the
//! syncs on the way, or kills it around the rename that makes the commit.

use std::error::Error;
use std::fs;
use std::path::Path;
use std::process::Command;

use nix::libc;
use recollex::lock::{FileLock, Lock as _};
use recollex::store::{Area, Directory, Edit, Store as _, UndoLimits};
use recollex_tests::trace::{self, Stop, Traced};
use recollex_tests::turns;

use crate::line::{Line, Side, median};
use crate::store::{commit, open, runtime, time, turn};
use crate::{Benchmark, Measured};

/// Recoveries of each kind.
const ROUNDS: usize = 5;
/// Turns of a megabyte that are nearly the default limit of a batch together.
const LARGE_TURNS: usize = 60;

/// `n`: commits; bytes of the batch that was interrupted.
pub const BENCHMARKS: &[Benchmark] = &[("fsyncs", fsyncs), ("recovery", recovery)];

/// The argument that makes this program the process that is traced.
pub const CHILD: &str = "--traced-child";

type Done<T> = Result<T, Box<dyn Error>>;

/// What the process does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Act {
    /// Adds to a file, by the store alone.
    Append,
    /// Makes a file in a directory that is there, by the store alone.
    New,
    /// Archives a turn in a thread that is there.
    Turn,
    /// Archives a turn in a new thread.
    Thread,
    /// Archives as many large turns as one batch takes, in a thread that is there: all of it goes through the journal.
    Batch,
}

const ACTS: [(&str, Act); 5] =
    [("append", Act::Append), ("new", Act::New), ("turn", Act::Turn), ("thread", Act::Thread), ("batch", Act::Batch)];

/// Runs as the process: `CHILD ACT ROOT`.
pub fn child(arguments: &[String]) -> Done<()> {
    let [name, root] = arguments else { return Err("see the head of bench/medium.rs".into()) };
    let root = Path::new(root);
    let act = ACTS.iter().find(|(known, _)| known == name).ok_or("no such act")?.1;
    let store = Directory::new(root).with_undo(UndoLimits::default());
    let runtime = runtime()?;
    let mut session = open(&runtime, root)?;
    let batch = match act {
        Act::Append | Act::New => Vec::new(),
        Act::Turn => vec![turn("there", 100)],
        Act::Thread => vec![turn("new", 0)],
        Act::Batch => (1000..1000 + LARGE_TURNS).map(large).collect(),
    };
    nix::sys::ptrace::traceme()?;
    nix::sys::signal::raise(nix::sys::signal::Signal::SIGSTOP)?;
    match act {
        Act::Append => {
            let length = store.stat(Area::Tree, "topics/there.md")?.stamp.size;
            commit(&store, root, "topics/there.md", Edit::Append { length, text: "more\n".to_owned() })?;
        }
        Act::New => {
            commit(&store, root, "topics/new.md", Edit::Put("new\n".to_owned()))?;
        }
        Act::Turn | Act::Thread | Act::Batch => drop(session.archive(&batch)?),
    }
    Ok(())
}

fn large(number: usize) -> recollex::workspace::Turn {
    let text = "the green folder stands in the attic. ".repeat((1 << 20) / 38);
    turns::plain("bench", "there", i64::try_from(number).unwrap_or(i64::MAX), &text)
}

/// A workspace with a thread and a topic.
fn workspace() -> Done<tempfile::TempDir> {
    let directory = tempfile::tempdir()?;
    let mut session = open(&runtime()?, directory.path())?;
    session.init()?;
    session.archive(&(0..100).map(|number| turn("there", number)).collect::<Vec<_>>())?;
    let store = Directory::new(directory.path());
    commit(&store, directory.path(), "topics/there.md", Edit::Put("a topic\n".to_owned()))?;
    Ok(directory)
}

fn start(act: &str, root: &Path) -> Done<Traced> {
    Ok(Traced::start(Command::new(std::env::current_exe()?).args([CHILD, act]).arg(root)))
}

/// Syncs of one commit, as the kernel was asked for them.
fn fsyncs(name: &'static str) -> Measured {
    let mut lines = Vec::new();
    for (what, act, side) in [
        ("append", "append", Side::Native),
        ("new-file", "new", Side::Native),
        ("turn", "turn", Side::Wasm),
        ("first-turn-of-a-thread", "thread", Side::Wasm),
    ] {
        let directory = workspace()?;
        let mut traced = start(act, directory.path())?;
        let mut syncs = 0_u32;
        loop {
            match traced.step() {
                Stop::Enter(thread) => {
                    let number = trace::call(thread).number;
                    let all = [libc::SYS_fsync, libc::SYS_fdatasync, libc::SYS_msync, libc::SYS_sync, libc::SYS_syncfs];
                    syncs += u32::from(all.contains(&number));
                }
                Stop::Leave(_) => {}
                Stop::Over(Some(0)) => break,
                Stop::Over(code) => return Err(format!("{act} ended with {code:?}").into()),
            }
        }
        lines.push(Line::figure(&format!("{name}-{what}"), 1, "syncs", side, f64::from(syncs)));
    }
    Ok(lines)
}

/// Makes a commit in a process that dies right before the rename that makes it, or right behind.
fn interrupted(act: &str, is_made: bool) -> Done<tempfile::TempDir> {
    let directory = workspace()?;
    let mut traced = start(act, directory.path())?;
    let mut target = String::new();
    loop {
        match traced.step() {
            Stop::Enter(thread) => {
                let call = trace::call(thread);
                target = match call.number {
                    #[cfg(target_arch = "x86_64")]
                    libc::SYS_renameat => trace::string(thread, call.arguments[3]),
                    libc::SYS_renameat2 => trace::string(thread, call.arguments[3]),
                    _ => String::new(),
                };
                if target == "journal" && !is_made {
                    break;
                }
            }
            Stop::Leave(_) if target == "journal" => break,
            Stop::Leave(_) => {}
            Stop::Over(code) => return Err(format!("{act} ended with {code:?} and made no commit").into()),
        }
    }
    traced.kill();
    Ok(directory)
}

/// Milliseconds until a workspace is as its last commit made it, by the process that finds it so; and until the first
/// commit after one that was not made, which removes what that one left.
fn recovery(name: &'static str) -> Measured {
    let mut lines = Vec::new();
    for (what, act) in [("small", "turn"), ("batch", "batch")] {
        for is_made in [true, false] {
            let (mut times, mut bytes) = (Vec::new(), 0);
            for _ in 0..ROUNDS {
                let directory = interrupted(act, is_made)?;
                let root = directory.path();
                let own = root.join(".scriptorium/recollex");
                bytes =
                    fs::read_dir(&own)?.filter_map(|entry| entry.ok()?.metadata().ok()).map(|data| data.len()).sum();
                let store = Directory::new(root).with_undo(UndoLimits::default());
                let is_unfinished = store.is_unfinished()?;
                if is_unfinished != is_made {
                    return Err(format!("unfinished: {is_unfinished}, made: {is_made}").into());
                }
                times.push(if is_made {
                    time(|| {
                        let guard = FileLock::new(root).acquire(0, "bench")?;
                        store.recover(&*guard)?;
                        Ok(())
                    })?
                } else {
                    commit(&store, root, "topics/next.md", Edit::Put("next\n".to_owned()))?
                });
                if store.is_unfinished()? {
                    return Err("it is not recovered".into());
                }
            }
            let state = if is_made { "made" } else { "not-made" };
            let time = median(times).unwrap_or_default();
            lines.push(Line::figure(&format!("{name}-{what}-{state}"), bytes, "ms", Side::Native, time));
        }
    }
    Ok(lines)
}
