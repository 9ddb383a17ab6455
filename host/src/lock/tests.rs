//! The lock between threads, processes and other programs; alive, dead and hostile.

use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use super::*;
use crate::store::tests::{directory_of_process, process};

fn workspace() -> (tempfile::TempDir, FileLock, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let lock = FileLock::new(directory.path());
    let file = directory.path().join(".scriptorium/write.lock");
    (directory, lock, file)
}

/// A process that says when it holds the lock, and holds it until it is killed.
struct Other(Child);

impl Other {
    fn start(mut command: Command) -> Self {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.as_mut().unwrap()).lines();
        while lines.next().expect("it ended without the lock").unwrap() != "held" {}
        Self(child)
    }

    fn id(&self) -> Option<u64> {
        Some(self.0.id().into())
    }

    fn kill(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

impl Drop for Other {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// As the other program locks: it makes the file if there is none, writes nothing, and leaves no note.
#[test]
#[ignore = "a process of other tests"]
fn hold_as_another_program() {
    let path = directory_of_process().join(".scriptorium/write.lock");
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    let file = std::fs::File::options().append(true).create(true).open(path).unwrap();
    rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive).unwrap();
    hold();
}

#[test]
#[ignore = "a process of other tests"]
fn hold_as_ourselves() {
    let _guard = FileLock::new(&directory_of_process()).acquire(0, "holding on").unwrap();
    hold();
}

#[allow(clippy::print_stdout, reason = "this is how the other side learns of it")]
fn hold() {
    println!("\nheld");
    loop {
        std::thread::sleep(Duration::from_secs(60));
    }
}

#[test]
fn one_at_a_time() {
    let (_directory, lock, file) = workspace();
    let guard = lock.acquire(0, "first").unwrap();
    let holder = Holder { process: Some(std::process::id().into()), purpose: Some("first".to_owned()) };
    assert_eq!(lock.current(), Ok(Some(holder.clone())));
    assert_eq!(lock.acquire(0, "second").unwrap_err(), LockError::Held(Some(holder.clone())));
    let begun = Instant::now();
    assert_eq!(lock.acquire(120, "second").unwrap_err(), LockError::Held(Some(holder)));
    assert!(begun.elapsed() >= Duration::from_millis(120));
    assert_eq!(std::fs::metadata(&file).unwrap().len(), 0, "the file stays empty for the other program");
    drop(guard);
    assert_eq!(lock.current(), Ok(None));
    drop(lock.acquire(0, "third").unwrap());
    // Nothing stays but the lock file and the place of the note.
    assert_eq!(std::fs::read_dir(file.parent().unwrap().join("recollex")).unwrap().count(), 0);
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
}

#[test]
fn waiting_ends_when_the_holder_lets_go() {
    let (_directory, lock, _) = workspace();
    let guard = lock.acquire(0, "").unwrap();
    std::thread::scope(|scope| {
        let waiter = scope.spawn(|| lock.acquire(60_000, "").map(drop));
        std::thread::sleep(Duration::from_millis(100));
        assert!(!waiter.is_finished());
        drop(guard);
        assert_eq!(waiter.join().unwrap(), Ok(()));
    });
}

#[test]
fn a_panic_gives_it_back() {
    let (_directory, lock, _) = workspace();
    let result = std::thread::scope(|scope| {
        let work = || {
            let _guard = lock.acquire(0, "").unwrap();
            std::panic::resume_unwind(Box::new("the work failed"));
        };
        scope.spawn(work).join()
    });
    assert!(result.is_err());
    lock.acquire(0, "").unwrap();
}

#[test]
fn another_program_and_this_one_exclude_each_other() {
    let (directory, lock, _) = workspace();
    let mut other = Other::start(process("lock::file::tests::hold_as_another_program", directory.path()));
    let holder = lock.current().unwrap().expect("it is held");
    assert_eq!(holder.purpose, None);
    if cfg!(target_os = "linux") {
        assert_eq!(holder.process, other.id());
    }
    assert_eq!(lock.acquire(30, "").unwrap_err(), LockError::Held(Some(holder)));
    other.kill();
    assert_eq!(lock.current(), Ok(None));

    let guard = lock.acquire(0, "").unwrap();
    let refused = process("lock::file::tests::hold_as_another_program", directory.path()).output().unwrap();
    assert!(!refused.status.success() && !String::from_utf8_lossy(&refused.stdout).contains("held"));
    drop(guard);
    Other::start(process("lock::file::tests::hold_as_another_program", directory.path()));
}

/// The same with a program that is not ours at all. Runs where there is Python, and must where `REQUIRE_HOSTS` says so.
#[test]
fn python_and_this_program_exclude_each_other() {
    let is_there = Command::new("python3").arg("--version").output().is_ok_and(|output| output.status.success());
    if !is_there {
        assert!(std::env::var_os("REQUIRE_HOSTS").is_none_or(|value| value != "1"), "python3 is not there");
        return;
    }
    let (directory, lock, file) = workspace();
    drop(lock.acquire(0, "").unwrap());
    let python = |script: &str| {
        let mut command = Command::new("python3");
        command.args(["-c", script]).arg(&file);
        command
    };
    let mut other = Other::start(python(
        "import fcntl, sys, time\n\
         f = open(sys.argv[1], 'a+')\n\
         fcntl.flock(f.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)\n\
         print('held', flush=True)\n\
         time.sleep(600)",
    ));
    assert!(matches!(lock.acquire(0, ""), Err(LockError::Held(_))));
    other.kill();
    let guard = lock.acquire(0, "").unwrap();
    let poll = "import fcntl, sys\n\
                f = open(sys.argv[1], 'a+')\n\
                try: fcntl.flock(f.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)\n\
                except BlockingIOError: sys.exit(7)";
    assert_eq!(python(poll).status().unwrap().code(), Some(7));
    drop(guard);
    assert_eq!(python(poll).status().unwrap().code(), Some(0));
    drop(directory);
}

#[test]
fn a_dead_holder_holds_nothing_and_its_note_is_not_believed() {
    let (directory, lock, file) = workspace();
    let mut other = Other::start(process("lock::file::tests::hold_as_ourselves", directory.path()));
    let holder = Holder { process: other.id(), purpose: Some("holding on".to_owned()) };
    assert_eq!(lock.current(), Ok(Some(holder)));
    other.kill();
    let note = file.parent().unwrap().join("recollex/holder");
    assert!(note.exists(), "it had no time to tidy up");
    assert_eq!(lock.current(), Ok(None));
    // Another holder, without a note, under the dead one's.
    let other = Other::start(process("lock::file::tests::hold_as_another_program", directory.path()));
    let holder = lock.current().unwrap().unwrap();
    assert_eq!(holder.purpose, None);
    assert!(holder.process.is_none() || holder.process == other.id());
    drop(other);
    let _guard = lock.acquire(0, "mine").unwrap();
    assert_eq!(lock.current().unwrap().unwrap().purpose.as_deref(), Some("mine"));
}

#[test]
fn what_the_files_hold_is_no_matter() {
    let (_directory, lock, file) = workspace();
    std::fs::create_dir_all(file.parent().unwrap().join("recollex/holder.new")).unwrap();
    std::fs::write(&file, b"\xff pid 1 \0 garbage").unwrap();
    std::fs::write(file.parent().unwrap().join("recollex/holder"), b"{\"process\":-1").unwrap();
    assert_eq!(lock.current(), Ok(None));
    let guard = lock.acquire(0, "x").unwrap();
    let holder = lock.current().unwrap().unwrap();
    assert_eq!(holder.purpose, None, "a note that cannot be written is no reason to fail");
    drop(guard);
    assert_eq!(std::fs::read(&file).unwrap(), b"\xff pid 1 \0 garbage");
}

#[test]
fn what_is_no_lock_file_is_denied() {
    for make in [
        (|path| std::fs::create_dir(path).unwrap()) as fn(&Path),
        |path| symlink("/dev/null", path).unwrap(),
        |path| symlink("elsewhere", path).unwrap(),
        |path| drop(std::os::unix::net::UnixListener::bind(path).unwrap()),
        |path| {
            let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
            rustix::fs::mknodat(rustix::fs::CWD, path, FileType::Fifo, mode, 0).unwrap();
        },
    ] {
        let (_directory, lock, file) = workspace();
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        make(&file);
        assert!(matches!(lock.acquire(0, ""), Err(LockError::Denied(_))));
    }
    // The root is a file.
    let (directory, _, _) = workspace();
    let path = directory.path().join("file");
    std::fs::write(&path, "").unwrap();
    assert!(matches!(FileLock::new(&path).acquire(0, ""), Err(LockError::Denied(_))));
}

#[test]
fn looking_makes_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let lock = FileLock::new(&directory.path().join("not/yet"));
    assert_eq!(lock.current(), Ok(None));
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
    lock.acquire(0, "").unwrap();
    assert!(directory.path().join("not/yet/.scriptorium/write.lock").exists());
}

#[test]
fn looking_keeps_nobody_out() {
    let (_directory, lock, _) = workspace();
    drop(lock.acquire(0, "").unwrap());
    let done = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                while !done.load(std::sync::atomic::Ordering::Relaxed) {
                    lock.current().unwrap();
                }
            });
        }
        for _ in 0..300 {
            drop(lock.acquire(5_000, "").unwrap());
        }
        done.store(true, std::sync::atomic::Ordering::Relaxed);
    });
}

#[test]
fn a_lock_file_that_is_replaced_is_followed() {
    let (_directory, lock, file) = workspace();
    let old = lock.acquire(0, "").unwrap();
    std::fs::rename(&file, file.with_file_name("old")).unwrap();
    // Others lock what has the name now; the store refuses the old guard by its file.
    let new = lock.acquire(0, "").unwrap();
    assert_ne!(old.file(), new.file());
    drop(old);
    assert!(matches!(lock.acquire(0, ""), Err(LockError::Held(_))));
}

#[test]
fn a_purpose_is_short_and_harmless() {
    let (_directory, lock, _) = workspace();
    let _guard = lock.acquire(0, &format!("\u{1b}[2J{}", "\u{6c49}".repeat(40))).unwrap();
    let purpose = lock.current().unwrap().unwrap().purpose.unwrap();
    assert!(purpose.len() <= 64 && purpose.starts_with(" [2J\u{6c49}"), "{purpose:?}");
}

#[test]
fn the_systems_list_of_locks_is_read() {
    let locks = "1: POSIX  ADVISORY  WRITE 11 fe:00:567 0 EOF\n\
                 2: FLOCK  ADVISORY  READ  12 fe:00:567 0 EOF\n\
                 3: FLOCK  ADVISORY  WRITE 13 fe:00:56 0 EOF\n\
                 3: -> FLOCK  ADVISORY  WRITE 14 fe:00:567 0 EOF\n\
                 4: FLOCK  ADVISORY  WRITE 15 fe:00:567 0 EOF\n";
    assert_eq!(holder_in(locks, "fe:00:567"), Some(15));
    assert_eq!(holder_in(locks, "fe:00:56"), Some(13));
    assert_eq!(holder_in(locks, "fe:00:5"), None);
    assert_eq!(holder_in("garbage\n1: FLOCK\n\n9:", "fe:00:567"), None);
}
