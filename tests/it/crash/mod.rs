//! The store cannot lose anything: processes that die, a medium that loses power, and writers against writers.
//!
//! | module | what it proves |
//! |---|---|
//! | `kills` | a process killed at any system call of a commit, its recovery, its undo and redo, a restore, or at any moment: old state or new |
//! | `power` | a medium that reorders and loses what was not synced, at any point of the same: old state or new |
//! | `backup` | a backup killed at any system call, or on a medium without power: whole or not there |
//! | `binary` | the `recollex` binary killed at random moments of each verb that changes something |
//! | `archive` | the `recollex` binary killed while it archives: no turn of the batch or all, and again completes it |
//! | `promote` | the same while it vouches for a record: the mark and the line of the log, or neither |
//! | `update` | an update of topics killed at any system call or moment: topics, quoted sources and views old or new |
//! | `writers` | two writers and ten readers: nothing lost, nothing torn; other programs' locks are kept |
//!
//! The processes are real ones (`tests/src/bin/crash-child.rs`), the commits are those of [`recollex_tests::crash`].
//! `CRASH_ROUNDS=n` does n times as much of everything that is sampled rather than done exhaustively.
//!
//! Killing at a given system call needs `ptrace`: elsewhere than on Linux those tests are listed as ignored.

#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
mod archive;
#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
mod backup;
mod binary;
#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
mod kills;
#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
mod power;
#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
mod promote;
#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
mod record;
#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
mod update;
mod workspace;
mod writers;

#[cfg(not(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64"))))]
#[test]
#[ignore = "kills, power, archive, promote and update need ptrace as Linux has it on x86_64 and aarch64"]
fn processes_killed_at_a_system_call() {
    unreachable!("there is nothing to run here");
}

/// Says what a test did. Not captured by the test harness: how many kills there were is part of the result.
fn report(line: &str) {
    use std::io::Write as _;
    let _ = writeln!(std::io::stderr(), "crash: {line}");
}

/// How much of what is sampled is done.
fn rounds() -> usize {
    std::env::var("CRASH_ROUNDS").ok().map_or(1, |rounds| rounds.parse().expect("CRASH_ROUNDS is a number"))
}

/// A generator of numbers that are the same in every run.
pub struct Random(pub u64);

impl Random {
    /// SplitMix64.
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// From 0 to, not with, `end`.
    pub fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }
}

/// Does all the work there is on as many threads as there are processors. `work` gets the number of its thread too.
fn share<T: Sync>(items: &[T], work: impl Fn(usize, &T) + Sync) {
    let next = std::sync::atomic::AtomicUsize::new(0);
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for thread in 0..threads {
            let (next, work) = (&next, &work);
            scope.spawn(move || {
                while let Some(item) = items.get(next.fetch_add(1, std::sync::atomic::Ordering::Relaxed)) {
                    work(thread, item);
                }
            });
        }
    });
}
