//! A process that dies, at every system call of a commit, at every one of a recovery, and at random moments.
//!
//! The kernel outlives it: everything it did is there, in order. What a medium adds to that is `power`'s subject.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use nix::libc;
use recollex_tests::crash::{Act, COMMITTED, READY};

use super::workspace::{After, Template, child, copy, scratch};
use super::{Random, report, rounds, share};
use recollex_tests::trace::{self, Stop, Traced};

/// As many as the tests of this module together make, at least.
const KILLS: usize = 2_000;

/// A place for one workspace at a time.
struct Spot {
    directory: tempfile::TempDir,
}

impl Spot {
    fn new() -> Self {
        Self { directory: scratch() }
    }

    /// Where nothing is.
    fn cleared(&self) -> PathBuf {
        let root = self.directory.path().join("w");
        if root.exists() {
            fs::remove_dir_all(&root).unwrap();
        }
        root
    }
}

pub fn perform(root: &Path, template: &Template) -> Traced {
    Traced::start(&mut template.child("traced", root))
}

fn recover(root: &Path) -> Traced {
    Traced::start(child().args(["traced", "recover"]).arg(root))
}

/// How many commits a child said had returned.
pub fn reported(said: &str) -> usize {
    said.lines().filter(|line| line.starts_with(COMMITTED)).count()
}

/// All stops of a child, to the end. Those right behind the one step that makes a commit are returned too.
pub fn stops(mut traced: Traced) -> (usize, Vec<usize>) {
    let mut count = 0;
    let mut made = Vec::new();
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
            }
            Stop::Leave(_) if target == "journal" => made.push(count),
            Stop::Leave(_) => {}
            Stop::Over(code) => {
                assert_eq!(code, Some(0), "without any interruption");
                return (count, made);
            }
        }
        count += 1;
    }
}

/// Lets a child go on to its stop with this number, from 0, and kills it there. None: it ended before.
pub fn kill_at(mut traced: Traced, stop: usize) -> Option<String> {
    for _ in 0..=stop {
        if matches!(traced.step(), Stop::Over(_)) {
            return None;
        }
    }
    Some(traced.kill())
}

/// Kills what is done with templates before each system call and at the end. What a call has left is what there is before
/// the next, so a stop behind each would find nothing else.
fn at_every_system_call(templates: &[Template], what: &str) -> usize {
    let spots: Vec<_> = std::thread::available_parallelism().map_or(vec![()], |n| vec![(); n.get()]);
    let spots: Vec<_> = spots.iter().map(|()| Spot::new()).collect();
    let mut all = Vec::new();
    for template in templates {
        let root = spots[0].cleared();
        template.copy_to(&root);
        let (count, made) = stops(perform(&root, template));
        assert_eq!(made.len(), template.commits(), "{}", template.name());
        let end = template.settle(&root, After::Death, made.len(), &template.name());
        assert_eq!(end, made.len(), "{}", template.name());
        // The stops come in pairs but for the last: no call returns from the end.
        all.extend((0..count).step_by(2).map(|stop| (template, stop)));
    }
    let kills = AtomicUsize::new(0);
    let outcomes: Vec<AtomicUsize> = (0..4).map(|_| AtomicUsize::new(0)).collect();
    share(&all, |thread, &(template, stop)| {
        let root = spots[thread].cleared();
        template.copy_to(&root);
        let what = format!("{} killed at stop {stop}", template.name());
        let Some(said) = kill_at(perform(&root, template), stop) else { return };
        kills.fetch_add(1, Ordering::Relaxed);
        let state = template.settle(&root, After::Death, reported(&said), &what);
        outcomes[state].fetch_add(1, Ordering::Relaxed);
    });
    let kills = kills.into_inner();
    let taken_back: usize = templates.iter().map(|template| template.taken_back.load(Ordering::Relaxed)).sum();
    report(&format!(
        "{kills} kills at {} system calls of {} {what}; states they came to: {outcomes:?}; taken back behind: {taken_back}",
        all.len(),
        templates.len()
    ));
    assert!(outcomes[0].load(Ordering::Relaxed) > 50 && outcomes[1].load(Ordering::Relaxed) > 50, "{outcomes:?}");
    // Whoever dies loses nothing that could be taken back.
    let noted: usize =
        templates.iter().filter(|template| template.act != Act::Bare && template.case.is_workspace).count();
    assert!(taken_back >= kills * noted / templates.len() / 2, "{taken_back} of {kills}");
    kills
}

#[test]
fn at_every_system_call_of_a_commit() {
    let kills = at_every_system_call(&Template::all(Act::Commit), "commits");
    let bare = at_every_system_call(&Template::of(Act::Bare, &["everything", "archive", "first"]), "bare commits");
    assert!(kills + bare >= KILLS, "only {kills} and {bare} kills");
}

#[test]
fn at_every_system_call_of_undo_redo_and_restore() {
    let of = |act| Template::of(act, &["everything"]);
    let templates: Vec<_> = [Act::Undo, Act::Redo, Act::Restore].into_iter().flat_map(of).collect();
    at_every_system_call(&templates, "undos, redos and restores");
}

/// Kills a recovery, too, and sees that the commit, which was made, is completed by the next.
#[test]
fn at_every_system_call_of_a_recovery() {
    let spots: Vec<_> = (0..std::thread::available_parallelism().map_or(1, usize::from)).map(|_| Spot::new()).collect();
    let begun = Spot::new();
    let kills = AtomicUsize::new(0);
    for template in &Template::of(Act::Bare, &["everything", "archive", "move-between"]) {
        let name = template.name();
        let root = spots[0].cleared();
        template.copy_to(&root);
        let (count, made) = stops(perform(&root, template));
        // The commit is made, and nothing, or about half, of it is in place.
        for first in [made[0], made[0] + (count - made[0]) / 2] {
            let interrupted = begun.cleared();
            template.copy_to(&interrupted);
            kill_at(perform(&interrupted, template), first).unwrap();
            let root = spots[0].cleared();
            copy(&interrupted, &root);
            let (count, _) = stops(recover(&root));
            share(&(0..count).collect::<Vec<_>>(), |thread, &stop| {
                let root = spots[thread].cleared();
                copy(&interrupted, &root);
                if kill_at(recover(&root), stop).is_some() {
                    kills.fetch_add(1, Ordering::Relaxed);
                    let what = format!("{name} killed at stop {first}, then its recovery at {stop}");
                    template.settle(&root, After::Death, 1, &what);
                }
            });
        }
    }
    let kills = kills.into_inner();
    report(&format!("{kills} kills of recoveries"));
    assert!(kills > 500, "only {kills} kills");
}

/// Between system calls and inside of them, on the medium that tests are built on.
#[test]
fn at_random_moments() {
    let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let root = directory.path().join("w");
    let mut random = Random(1);
    let mut kills = 0;
    let mut completed = 0;
    let undo = Template::of(Act::Undo, &["everything"]);
    let restore = Template::of(Act::Restore, &["everything"]);
    for template in Template::all(Act::Commit).iter().chain(&undo).chain(&restore) {
        let name = template.name();
        let mut usual = Duration::ZERO;
        for round in 0..4 + 12 * rounds() {
            if root.exists() {
                fs::remove_dir_all(&root).unwrap();
            }
            template.copy_to(&root);
            let mut process = template.child("free", &root).stdout(Stdio::piped()).spawn().unwrap();
            let mut output = BufReader::new(process.stdout.take().unwrap());
            let mut said = String::new();
            output.read_line(&mut said).unwrap();
            assert_eq!(said.trim_end(), READY);
            let begun = Instant::now();
            // The first few show how long it takes.
            if round >= 4 {
                let moment = usual.mul_f64(random.below(1_000) as f64 / 1_000.0);
                while begun.elapsed() < moment {
                    std::hint::spin_loop();
                }
                process.kill().unwrap();
            }
            output.read_to_string(&mut said).unwrap();
            let status = process.wait().unwrap();
            if round < 4 {
                assert!(status.success(), "{name} without any interruption");
                usual = begun.elapsed();
            } else {
                kills += usize::from(!status.success());
                completed += usize::from(status.success());
            }
            template.settle(&root, After::Death, reported(&said), &format!("{name} killed in round {round}"));
        }
    }
    report(&format!("{kills} kills at random moments, {completed} too late"));
    assert!(kills > 50, "only {kills} kills");
}
