//! A model that is a program: one request on its stdin, one answer on its stdout, as JSON (`host/MODELS.md`).
//!
//! Knows processes. The program gets an empty directory of its own, an environment with next to nothing in it, and a process
//! group that ends with the request, whatever it has started. What it writes is bounded and believed nothing.

use std::ffi::OsString;
use std::fmt;
use std::io::{self, Read, Write as _};
use std::os::unix::process::CommandExt as _;
use std::process::{self, Child, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};
use serde::Serialize;

use super::replay::Answer;
use super::{Attempt, ModelError, ModelInfo, POLL, Provider, REPLY_BYTES, Reply, Request};
use crate::observer::Level;

/// The version of the documents.
const VERSION: u32 = 1;
/// Bytes of what it says on stderr that are kept, from the start.
const STDERR_BYTES: u64 = 16 << 10;
/// How long its pipes may stay open once its process group is gone: only a program that left the group holds them then.
const PIPES: Duration = Duration::from_secs(1);
/// What it finds in its environment beside `TMPDIR`, where this process has it.
const VARIABLES: [&str; 4] = ["PATH", "LANG", "LC_ALL", "TZ"];

/// A program that answers requests.
#[derive(Clone, Default)]
pub struct Command {
    /// The program and its arguments. A name without a slash is looked for in `PATH`.
    pub command: Vec<OsString>,
    /// Variables of this process that it gets too: `HOME`, say, for one that keeps its own key there.
    pub pass_env: Vec<String>,
    /// The model, as the program names it; none: it decides.
    pub model: Option<String>,
    /// How hard it shall think, in its own words.
    pub effort: Option<String>,
    /// Tokens that request and reply may have together, if known.
    pub context: Option<u32>,
    /// Tokens that a reply may have; a request for more gets so many.
    pub max_output: Option<u32>,
    /// It can call tools.
    pub tools: bool,
    /// Bytes that its answer may have.
    pub reply_bytes: u64,
}

impl Command {
    /// This program with these arguments.
    #[must_use]
    pub fn new(command: impl IntoIterator<Item = impl Into<OsString>>) -> Self {
        Self {
            command: command.into_iter().map(Into::into).collect(),
            tools: true,
            reply_bytes: REPLY_BYTES,
            ..Self::default()
        }
    }
}

impl fmt::Debug for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Command").field("command", &self.command).finish_non_exhaustive()
    }
}

/// What the program reads.
#[derive(Serialize)]
struct Document<'a> {
    version: u32,
    #[serde(flatten)]
    request: &'a Request,
    effort: Option<&'a str>,
    deadline_ms: u64,
}

impl Provider for Command {
    fn describe(&self) -> ModelInfo {
        ModelInfo {
            model: self.model.clone(),
            context: self.context,
            max_output: self.max_output,
            tools: self.tools,
            dimensions: None,
        }
    }

    fn complete(&self, request: &Request, attempt: &Attempt<'_>) -> Result<Reply, ModelError> {
        let mut request = request.clone();
        request.model = request.model.or_else(|| self.model.clone());
        request.max_output = self.max_output.map_or(request.max_output, |most| most.min(request.max_output));
        let deadline_ms = u64::try_from(attempt.left().as_millis()).unwrap_or(u64::MAX);
        let effort = self.effort.as_deref();
        let document = Document { version: VERSION, request: &request, effort, deadline_ms };
        let document = serde_json::to_vec(&document)
            .map_err(|error| ModelError::invalid(format!("the request cannot be written: {error}")))?;
        let Output { status, stdout } = self.run(document, attempt)?;
        let answer: Result<Answer, _> = serde_json::from_slice(&stdout);
        match answer {
            // Why it failed it may say itself.
            Ok(Answer::Error(error)) => Err(error.into()),
            _ if !status.success() => Err(ModelError::provider(format!("the model's command failed: {status}"))),
            Ok(answer) => answer.into(),
            Err(error) => Err(ModelError::provider(format!(
                "the model's command wrote something that is no answer (line {}, column {})",
                error.line(),
                error.column()
            ))),
        }
    }
}

struct Output {
    status: ExitStatus,
    stdout: Vec<u8>,
}

impl Command {
    fn run(&self, document: Vec<u8>, attempt: &Attempt<'_>) -> Result<Output, ModelError> {
        let failed = |what: &str, error: &io::Error| {
            ModelError::provider(format!("the model's command could not be {what}: {error}")).lasting()
        };
        let (name, arguments) =
            self.command.split_first().ok_or_else(|| ModelError::unconfigured("no command is named: set `command`"))?;
        let directory = tempfile::Builder::new()
            .prefix("recollex-model-")
            .tempdir()
            .map_err(|error| failed("given a directory", &error))?;
        let mut command = process::Command::new(name);
        command
            .args(arguments)
            .current_dir(directory.path())
            .env_clear()
            .env("TMPDIR", directory.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            // So that what it starts ends with it.
            .process_group(0);
        for name in VARIABLES.into_iter().chain(self.pass_env.iter().map(String::as_str)) {
            if let Some(value) = std::env::var_os(name) {
                command.env(name, value);
            }
        }
        attempt.check()?;
        let mut group = Group(command.spawn().map_err(|error| failed("started", &error))?);
        // Both ends are read and written at once: neither side waits for the other to read first.
        let stdin = group.0.stdin.take();
        let no_thread = |error: io::Error| failed("talked to", &error);
        thread::Builder::new()
            .name("recollex-model-stdin".to_owned())
            .spawn(move || {
                // A program that does not read its request may still answer.
                let _ = stdin.map(|mut stdin| stdin.write_all(&document));
            })
            .map_err(no_thread)?;
        // One byte more tells what is too long from what is as long as it may be.
        let stdout = collect(group.0.stdout.take(), self.reply_bytes.saturating_add(1)).map_err(no_thread)?;
        let stderr = collect(group.0.stderr.take(), STDERR_BYTES).map_err(no_thread)?;

        let mut read = None;
        let ended = loop {
            if let Err(error) = attempt.check() {
                break Err(error);
            }
            if read.is_none() {
                read = stdout.try_recv().ok();
            }
            if read.as_ref().is_some_and(|text: &Vec<u8>| text.len() as u64 > self.reply_bytes) {
                break Err(ModelError::provider(format!(
                    "the model's command wrote more than {} bytes",
                    self.reply_bytes
                )));
            }
            match group.has_ended() {
                Ok(true) => break Ok(()),
                Ok(false) => thread::sleep(POLL),
                Err(error) => break Err(failed("waited for", &error)),
            }
        };
        let status = group.end();
        let until = Instant::now() + PIPES;
        let rest = |pipe: &Receiver<Vec<u8>>| {
            pipe.recv_timeout(until.saturating_duration_since(Instant::now())).unwrap_or_default()
        };
        let said = rest(&stderr);
        let is_well = ended.is_ok() && status.as_ref().is_ok_and(ExitStatus::success);
        tell(&said, is_well, attempt);
        ended?;
        let status = status.map_err(|error| failed("waited for", &error))?;
        let stdout = read.unwrap_or_else(|| rest(&stdout));
        if stdout.len() as u64 > self.reply_bytes {
            return Err(ModelError::provider(format!(
                "the model's command wrote more than {} bytes",
                self.reply_bytes
            )));
        }
        Ok(Output { status, stdout })
    }
}

/// Reads a pipe to its end on a thread of its own, keeps its first `most` bytes and drops the rest.
fn collect(pipe: Option<impl Read + Send + 'static>, most: u64) -> io::Result<Receiver<Vec<u8>>> {
    let (done, kept) = mpsc::channel();
    thread::Builder::new().name("recollex-model-pipe".to_owned()).spawn(move || {
        let mut bytes = Vec::new();
        if let Some(mut pipe) = pipe {
            // What was read before it broke is what there is.
            let _ = pipe.by_ref().take(most).read_to_end(&mut bytes);
            let _ = done.send(bytes);
            // A program that goes on writing is not to be stopped by a full pipe.
            let _ = io::copy(&mut pipe, &mut io::sink());
        }
    })?;
    Ok(kept)
}

/// What it said on stderr: of interest to whoever looks for a cause, and to everyone where it failed.
fn tell(said: &[u8], is_well: bool, attempt: &Attempt<'_>) {
    let level = if is_well { Level::Debug } else { Level::Warn };
    let text = String::from_utf8_lossy(said);
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        let line: String = line.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        attempt.observer().log(level, &format!("the model's command: {line}"));
    }
}

/// A process that leads a group. The group does not outlive this.
struct Group(Child);

impl Group {
    /// Whether the process has ended. It is left to be waited for, so that its number stays its own.
    fn has_ended(&self) -> io::Result<bool> {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        Ok(waitid(WaitId::Pid(self.id()?), options)?.is_some())
    }

    fn id(&self) -> io::Result<Pid> {
        let id = i32::try_from(self.0.id()).ok().and_then(Pid::from_raw);
        id.ok_or_else(|| io::Error::other("the process has no number"))
    }

    /// Ends whatever is left of the group, and says how the process ended.
    fn end(&mut self) -> io::Result<ExitStatus> {
        // Before it is waited for: until then nobody else can have its number. That nothing is left is no fault.
        let _ = kill_process_group(self.id()?, Signal::KILL);
        self.0.wait()
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // Once waited for, its number may be another's.
        if matches!(self.0.try_wait(), Ok(None)) {
            let _ = self.end();
        }
    }
}
