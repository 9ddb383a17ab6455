//! A child process, stopped at each of its system calls.
//!
//! Knows `ptrace`, system calls as numbers, and how to read the child's memory. Must not know what the calls mean.

use std::collections::BTreeMap;
use std::io::{IoSliceMut, Read as _};
use std::process::{Child, Command, Stdio};

use nix::errno::Errno;
use nix::sys::ptrace::{self, Options};
use nix::sys::signal::{self, Signal};
use nix::sys::uio::{RemoteIoVec, process_vm_readv};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;

/// A system call.
#[derive(Clone, Copy, Debug)]
pub struct Call {
    /// As in `nix::libc::SYS_…`.
    pub number: i64,
    /// As they are in the registers.
    pub arguments: [u64; 6],
}

/// Where the child stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// This thread is about to enter a system call.
    Enter(Pid),
    /// This thread returned from one.
    Leave(Pid),
    /// The process is gone, with this exit code unless a signal killed it.
    Over(Option<i32>),
}

/// A child with all its threads. Only the thread that started it can trace it. Dropping kills it.
pub struct Traced {
    child: Child,
    leader: Pid,
    /// Each thread, and whether it is inside a system call.
    threads: BTreeMap<Pid, bool>,
    stopped: Option<Pid>,
    over: Option<Option<i32>>,
}

impl Traced {
    /// Starts a command which, by itself, asks to be traced and stops. Returns when it does.
    pub fn start(command: &mut Command) -> Self {
        let child = command.stdout(Stdio::piped()).spawn().unwrap();
        let leader = Pid::from_raw(child.id().try_into().unwrap());
        match waitpid(leader, Some(WaitPidFlag::WUNTRACED)).unwrap() {
            WaitStatus::Stopped(_, Signal::SIGSTOP) => {}
            other => panic!("the child did not stop to be traced: {other:?}"),
        }
        let options = Options::PTRACE_O_TRACESYSGOOD
            | Options::PTRACE_O_EXITKILL
            | Options::PTRACE_O_TRACECLONE
            | Options::PTRACE_O_TRACEFORK
            | Options::PTRACE_O_TRACEVFORK
            | Options::PTRACE_O_TRACEEXEC;
        ptrace::setoptions(leader, options).unwrap();
        Self { child, leader, threads: BTreeMap::from([(leader, false)]), stopped: Some(leader), over: None }
    }

    /// Goes on to the next stop.
    pub fn step(&mut self) -> Stop {
        if let Some(thread) = self.stopped.take() {
            resume(thread, None);
        }
        loop {
            if let Some(code) = self.over {
                return Stop::Over(code);
            }
            match self.wait() {
                WaitStatus::PtraceSyscall(thread) => {
                    let inside = self.threads.entry(thread).or_insert(false);
                    *inside = !*inside;
                    self.stopped = Some(thread);
                    return if *inside { Stop::Enter(thread) } else { Stop::Leave(thread) };
                }
                // Each thread begins with such a stop.
                WaitStatus::Stopped(thread, Signal::SIGSTOP) if !self.threads.contains_key(&thread) => {
                    self.threads.insert(thread, false);
                    resume(thread, None);
                }
                WaitStatus::Stopped(thread, signal) => resume(thread, Some(signal)),
                WaitStatus::PtraceEvent(thread, ..) => resume(thread, None),
                _ => {}
            }
        }
    }

    /// Waits for any thread of the child, and for no child of any other thread here.
    fn wait(&mut self) -> WaitStatus {
        let status = loop {
            match waitpid(Pid::from_raw(-1), Some(WaitPidFlag::__WALL | WaitPidFlag::__WNOTHREAD)) {
                Err(Errno::EINTR) => {}
                other => break other.unwrap(),
            }
        };
        match status {
            WaitStatus::Exited(thread, code) if thread == self.leader => self.over = Some(Some(code)),
            WaitStatus::Signaled(thread, ..) if thread == self.leader => self.over = Some(None),
            WaitStatus::Exited(thread, _) | WaitStatus::Signaled(thread, ..) => {
                self.threads.remove(&thread);
            }
            _ => {}
        }
        status
    }

    /// Kills it where it stands: a system call that it was about to enter does not happen. Returns what it had said.
    pub fn kill(&mut self) -> String {
        if self.over.is_none() {
            signal::kill(self.leader, Signal::SIGKILL).unwrap();
            while self.over.is_none() {
                self.wait();
            }
        }
        self.said()
    }

    fn said(&mut self) -> String {
        let mut said = String::new();
        if let Some(mut output) = self.child.stdout.take() {
            output.read_to_string(&mut said).unwrap();
        }
        said
    }

    /// The process.
    pub fn process(&self) -> Pid {
        self.leader
    }
}

impl Drop for Traced {
    fn drop(&mut self) {
        self.kill();
    }
}

/// A thread that was killed meanwhile is reported as such by the next wait.
fn resume(thread: Pid, signal: Option<Signal>) {
    match ptrace::syscall(thread, signal) {
        Ok(()) | Err(Errno::ESRCH) => {}
        Err(error) => panic!("{error}"),
    }
}

/// The system call that a thread is about to enter.
pub fn call(thread: Pid) -> Call {
    let registers = ptrace::getregs(thread).unwrap();
    #[cfg(target_arch = "x86_64")]
    return Call {
        number: registers.orig_rax as i64,
        arguments: [registers.rdi, registers.rsi, registers.rdx, registers.r10, registers.r8, registers.r9],
    };
    #[cfg(target_arch = "aarch64")]
    Call { number: registers.regs[8] as i64, arguments: std::array::from_fn(|index| registers.regs[index]) }
}

/// What the system call that a thread returned from came to; an error as a negative number.
pub fn result(thread: Pid) -> i64 {
    let registers = ptrace::getregs(thread).unwrap();
    #[cfg(target_arch = "x86_64")]
    return registers.rax as i64;
    #[cfg(target_arch = "aarch64")]
    return registers.regs[0] as i64;
}

/// Bytes of a thread's memory.
pub fn memory(thread: Pid, at: u64, length: usize) -> Vec<u8> {
    let mut bytes = vec![0; length];
    let mut done = 0;
    while done < length {
        let remote = RemoteIoVec { base: at as usize + done, len: length - done };
        let read = process_vm_readv(thread, &mut [IoSliceMut::new(&mut bytes[done..])], &[remote]).unwrap();
        assert!(read > 0, "nothing to read at {at:x}");
        done += read;
    }
    bytes
}

/// A string in a thread's memory.
pub fn string(thread: Pid, at: u64) -> String {
    const PAGE: u64 = 4096;
    let mut bytes = Vec::new();
    loop {
        // Never into a page that may not be there.
        let from = at + bytes.len() as u64;
        let piece = memory(thread, from, (PAGE - from % PAGE) as usize);
        if let Some(end) = piece.iter().position(|byte| *byte == 0) {
            bytes.extend_from_slice(&piece[..end]);
            return String::from_utf8(bytes).unwrap();
        }
        bytes.extend(piece);
    }
}
