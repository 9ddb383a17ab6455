//! A recorded exchange, and how one is recorded.
//!
//! A recording is JSON Lines, one answer a line, as `host/MODELS.md` says. It holds what a model said, and of a request only
//! the digest. Keys never come here: they are below the providers that this records.

use std::collections::VecDeque;
use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::{
    Attempt, EmbeddingRole, Embeddings, ModelError, ModelErrorKind, ModelInfo, Provider, REPLY_BYTES, Reply, Request,
};
use crate::observer::Level;

/// Bytes that a recording may have in all.
const RECORDING_BYTES: u64 = 256 << 20;

/// An error as recordings and commands write it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct ErrorLine {
    kind: ModelErrorKind,
    #[serde(default)]
    retryable: Option<bool>,
    #[serde(default)]
    retry_after_ms: Option<u64>,
    #[serde(default)]
    message: String,
}

impl From<&ModelError> for ErrorLine {
    fn from(error: &ModelError) -> Self {
        let millis = |wait: Duration| u64::try_from(wait.as_millis()).unwrap_or(u64::MAX);
        Self {
            kind: error.kind,
            retryable: Some(error.retryable),
            retry_after_ms: error.retry_after.map(millis),
            message: error.message.clone(),
        }
    }
}

impl From<ErrorLine> for ModelError {
    fn from(line: ErrorLine) -> Self {
        let mut error = Self::new(line.kind, line.message);
        error.retryable = line.retryable.unwrap_or(error.retryable);
        error.after(line.retry_after_ms.map(Duration::from_millis))
    }
}

/// An answer as recordings and commands write it.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Answer {
    Reply(Reply),
    Error(ErrorLine),
}

impl From<Answer> for Result<Reply, ModelError> {
    fn from(answer: Answer) -> Self {
        match answer {
            Answer::Reply(reply) => Ok(reply),
            Answer::Error(error) => Err(error.into()),
        }
    }
}

/// A line of a recording.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Line {
    /// The request's digest; none: the answer to whatever comes next.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    request: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    reply: Option<Reply>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    error: Option<ErrorLine>,
}

/// SHA-256 of the request's JSON, in hexadecimal: two requests with one digest ask the same.
fn digest(request: &Request) -> Result<String, ModelError> {
    let json = serde_json::to_vec(request)
        .map_err(|error| ModelError::invalid(format!("the request is not JSON: {error}")))?;
    Ok(Sha256::digest(json).iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Answers from a recording.
///
/// A request gets the first answer of its digest that was not given yet; if there is none, the first one without a digest;
/// and if there is none either, `provider`, which no other try helps. The file is read with the first request; what was
/// given is remembered as long as this lives.
pub struct Replay {
    path: PathBuf,
    lines: Mutex<Option<VecDeque<Line>>>,
}

impl Replay {
    /// Of the recording in this file, which need not be there yet.
    #[must_use]
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), lines: Mutex::new(None) }
    }

    fn read(&self) -> Result<VecDeque<Line>, ModelError> {
        let shown = self.path.display();
        let unreadable =
            |error: io::Error| ModelError::provider(format!("the recording {shown} cannot be read: {error}")).lasting();
        let file = File::open(&self.path).map_err(unreadable)?;
        let mut lines = VecDeque::new();
        let mut reader = BufReader::new(file.take(RECORDING_BYTES));
        let mut text = Vec::new();
        for number in 1_u64.. {
            text.clear();
            let read = reader.by_ref().take(REPLY_BYTES.saturating_add(1)).read_until(b'\n', &mut text);
            if read.map_err(unreadable)? == 0 {
                break;
            }
            if text.trim_ascii().is_empty() {
                continue;
            }
            let line: Result<Line, _> = serde_json::from_slice(&text);
            match line {
                Ok(line) if line.reply.is_some() != line.error.is_some() => lines.push_back(line),
                Ok(_) => {
                    let fault = format!("{shown}:{number}: a line has either `reply` or `error`");
                    return Err(ModelError::provider(fault).lasting());
                }
                Err(error) => {
                    let fault = format!("{shown}:{number}: no line of a recording: {error}");
                    return Err(ModelError::provider(fault).lasting());
                }
            }
        }
        Ok(lines)
    }
}

impl Provider for Replay {
    fn describe(&self) -> ModelInfo {
        ModelInfo { tools: true, ..ModelInfo::default() }
    }

    fn complete(&self, request: &Request, attempt: &Attempt<'_>) -> Result<Reply, ModelError> {
        attempt.check()?;
        let digest = digest(request)?;
        let mut read = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        let lines = match &mut *read {
            Some(lines) => lines,
            none => none.insert(self.read()?),
        };
        let of_digest = lines.iter().position(|line| line.request.as_deref() == Some(&*digest));
        let position = of_digest.or_else(|| lines.iter().position(|line| line.request.is_none()));
        let line = position.and_then(|position| lines.remove(position)).ok_or_else(|| {
            let shown = self.path.display();
            ModelError::provider(format!("the recording {shown} has no answer left for the request {digest}")).lasting()
        })?;
        match (line.reply, line.error) {
            (Some(reply), _) => Ok(reply),
            (None, Some(error)) => Err(error.into()),
            (None, None) => Err(ModelError::provider("the recording holds an empty line").lasting()),
        }
    }
}

impl fmt::Debug for Replay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Replay").field("path", &self.path).finish_non_exhaustive()
    }
}

/// Passes on to another provider and appends what it answered to a recording. A call that was cancelled is not recorded.
pub struct Recorder {
    inner: Arc<dyn Provider>,
    path: PathBuf,
    /// Lines are whole, whoever writes them.
    writing: Mutex<()>,
}

impl Recorder {
    /// Records `inner` in this file, which is made, for its owner alone, with the first answer.
    #[must_use]
    pub fn new(inner: Arc<dyn Provider>, path: impl Into<PathBuf>) -> Self {
        Self { inner, path: path.into(), writing: Mutex::new(()) }
    }

    fn record(&self, request: &Request, outcome: &Result<Reply, ModelError>) -> Result<(), String> {
        let line = Line {
            request: Some(digest(request).map_err(|error| error.message)?),
            reply: outcome.as_ref().ok().cloned(),
            error: outcome.as_ref().err().map(Into::into),
        };
        let mut text = serde_json::to_vec(&line).map_err(|error| error.to_string())?;
        text.push(b'\n');
        let _writing = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        append(&self.path, &text).map_err(|error| error.to_string())
    }
}

/// In one write, so that two processes do not mix their lines.
fn append(path: &Path, line: &[u8]) -> io::Result<()> {
    OpenOptions::new().append(true).create(true).mode(0o600).open(path)?.write_all(line)
}

impl Provider for Recorder {
    fn describe(&self) -> ModelInfo {
        self.inner.describe()
    }

    fn complete(&self, request: &Request, attempt: &Attempt<'_>) -> Result<Reply, ModelError> {
        let outcome = self.inner.complete(request, attempt);
        if !matches!(&outcome, Err(ModelError { kind: ModelErrorKind::Cancelled, .. }))
            && let Err(why) = self.record(request, &outcome)
        {
            // The answer is worth more than its recording.
            let path = self.path.display();
            attempt.observer().log(Level::Warn, &format!("the model's answer was not recorded in {path}: {why}"));
        }
        outcome
    }

    fn embed(&self, texts: &[String], role: EmbeddingRole, attempt: &Attempt<'_>) -> Result<Embeddings, ModelError> {
        self.inner.embed(texts, role, attempt)
    }
}

impl fmt::Debug for Recorder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recorder").field("path", &self.path).finish_non_exhaustive()
    }
}
