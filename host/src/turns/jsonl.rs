//! Conversations as files of JSON Lines: `<id>.jsonl`, a node a line, in the order in which they were said.
//!
//! A mark is one appended line. Whoever appends it holds the `flock` of the file and hands the line over in one write, so that a
//! program which does the same never finds its own line torn. A mark that was only half written is taken back, and if a crash comes
//! first, the next one begins with a line feed: a torn line marks nothing.
//!
//! Knows lines, and of a line whether it is a mark and what time it names. Must not know what else it says.

use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use rustix::fs::{FileType, Mode, OFlags, Stat};
use rustix::io::{Errno, retry_on_intr};
use serde::Deserialize;
use serde::de::IgnoredAny;

use super::Heads;
use super::place::{self, fault, is_sound, open_regular, open_root, seconds};
use super::store::{Listed, Listing, MarkPlanner, Marked, NodeSink, SessionStore, StoreError, StoreFault, StoreLimits};
use crate::store::disk::{self, Time};

/// How the name of a conversation's file ends.
const LINES: &str = ".jsonl";
/// Bytes handed over at a time.
const PIECE: usize = 256 << 10;
/// Bytes at the end of a file in which the last thing that was said is looked for, at first and at most. Marks may come behind.
const TAIL: u64 = 64 << 10;
const TAIL_MAX: u64 = 4 << 20;
/// So often a mark is planned anew because the file has grown meanwhile.
const TRIES: usize = 16;

/// Files of JSON Lines in one directory, or one such file.
#[derive(Clone, Debug)]
pub struct JsonlSessions {
    directory: PathBuf,
    /// The only file, where one was named.
    only: Option<String>,
    limits: StoreLimits,
}

impl JsonlSessions {
    /// The files `*.jsonl` in a directory. Touches nothing.
    #[must_use]
    pub fn directory(path: &Path) -> Self {
        Self { directory: path.to_owned(), only: None, limits: StoreLimits::default() }
    }

    /// One file; none if the path has no name at its end. Its name without `.jsonl` is the conversation's id. Touches nothing.
    #[must_use]
    pub fn file(path: &Path) -> Option<Self> {
        let name = path.file_name()?.to_str()?.to_owned();
        let above = path.parent().filter(|above| !above.as_os_str().is_empty()).unwrap_or(Path::new("."));
        Some(Self { directory: above.to_owned(), only: Some(name), limits: StoreLimits::default() })
    }

    /// Within these limits.
    #[must_use]
    pub fn limits(self, limits: StoreLimits) -> Self {
        Self { limits, ..self }
    }

    /// The file's name.
    fn name(&self, id: &str) -> Result<String, StoreFault> {
        let named = match &self.only {
            Some(name) if id_of(name) == id => Some(name.clone()),
            Some(_) => None,
            None => (is_sound(id) && !id.contains('/')).then(|| format!("{id}{LINES}")),
        };
        named.ok_or_else(|| StoreFault::new(&self.directory, format!("there is no conversation `{id}`")).of(id))
    }

    fn updated_at(&self, directory: &OwnedFd, name: &str) -> Result<f64, StoreFault> {
        let path = self.directory.join(name);
        let (file, stat) = open_regular(directory, name, &path, false)?;
        let said = last_said(&file, disk::size(&stat)).map_err(|error| fault(&path, "it cannot be read", error))?;
        Ok(said.unwrap_or_else(|| seconds(Time::modified(&stat))))
    }
}

impl SessionStore for JsonlSessions {
    fn list(&self) -> Result<Listing, StoreFault> {
        let directory = open_root(&self.directory)?;
        let mut names: Vec<Vec<u8>> = match &self.only {
            Some(name) => vec![name.clone().into_bytes()],
            None => disk::names(&directory)
                .map_err(|error| fault(&self.directory, "the conversations cannot be listed", error))?
                .into_iter()
                .filter(|(name, kind)| name.ends_with(LINES.as_bytes()) && *kind != FileType::Directory)
                .map(|(name, _)| name)
                .filter(|name| !name.starts_with(b"."))
                .collect(),
        };
        if names.len() > self.limits.conversations {
            let allowed = self.limits.conversations;
            let message = format!("the limit `conversations` allows {allowed}, and there are more");
            return Err(StoreFault::new(&self.directory, message));
        }
        names.sort_unstable();
        let mut listing = Listing::default();
        for name in names {
            let Some(name) = std::str::from_utf8(&name).ok().filter(|name| is_sound(name) && !id_of(name).is_empty())
            else {
                let shown = String::from_utf8_lossy(&name);
                let message = "this name cannot be that of a conversation; rename the file";
                listing.faults.push(StoreFault::new(&self.directory.join(&*shown), message).of(&shown));
                continue;
            };
            let id = id_of(name).to_owned();
            match self.updated_at(&directory, name) {
                Ok(updated_at) => listing.conversations.push(Listed { id, updated_at, told: false }),
                Err(fault) => listing.faults.push(fault.of(&id)),
            }
        }
        Ok(listing)
    }

    fn read(&self, id: &str, sink: &mut dyn NodeSink) -> Result<Heads, StoreError> {
        let name = self.name(id)?;
        let path = self.directory.join(&name);
        let (file, stat) =
            open_regular(open_root(&self.directory)?, &name, &path, false).map_err(|fault| fault.of(id))?;
        let size = disk::size(&stat);
        if size > self.limits.conversation_bytes {
            let allowed = self.limits.conversation_bytes;
            let message = format!("the limit `conversation-bytes` allows {allowed}, and the file has {size}");
            return Err(StoreFault::new(&path, message).of(id).into());
        }
        let (mut at, mut rest) = (0, Vec::new());
        while at < size {
            // What is added meanwhile belongs to the next time.
            let most = usize::try_from(size - at).unwrap_or(PIECE).min(PIECE);
            let piece =
                disk::read_at(&file, at, most).map_err(|error| fault(&path, "it cannot be read", error).of(id))?;
            if piece.is_empty() {
                return Err(StoreFault::new(&path, "it became shorter while it was read; try again")
                    .of(id)
                    .passing()
                    .into());
            }
            at += piece.len() as u64;
            rest.extend_from_slice(&piece);
            let (now, later) = rest.split_at(if at < size { whole(&rest) } else { rest.len() });
            sink.lines(now)?;
            rest = later.to_vec();
        }
        Ok(Heads { current: None, archived: Vec::new() })
    }

    fn mark(&self, id: &str, nodes: &[String], planner: &mut dyn MarkPlanner) -> Result<Marked, StoreError> {
        if nodes.is_empty() {
            return Ok(Marked::default());
        }
        let name = self.name(id)?;
        let path = self.directory.join(&name);
        let failed = |error| fault(&path, "its marks cannot be written", error).of(id);
        let passing = |message: &str| StoreError::from(StoreFault::new(&path, message).of(id).passing());
        let directory = open_root(&self.directory)?;
        let file = open_to_append(&directory, &name).map_err(failed)?;
        let stat = rustix::fs::fstat(&file).map_err(failed)?;
        if disk::file_type(&stat) != FileType::RegularFile {
            return Err(StoreFault::new(&path, "it is no regular file, and is not marked").of(id).into());
        }
        if place::lock(&file, self.limits.wait_ms).map_err(failed)? == Some(false) {
            return Err(passing("another program holds its lock; try again"));
        }
        for _ in 0..TRIES {
            let now = disk::look(&directory, &*name).map_err(failed)?;
            if now.as_ref().map(disk::identity) != Some(disk::identity(&stat)) {
                return Err(passing("another file was put in its place; try again"));
            }
            let length = length(&file).map_err(failed)?;
            let last = disk::read_at(&file, length.saturating_sub(1), 1).map_err(failed)?;
            let line = planner.line(nodes, length == 0 || last == b"\n")?;
            if self::length(&file).map_err(failed)? != length {
                continue;
            }
            append(&file, line.as_bytes(), length).map_err(failed)?;
            disk::sync(&file).map_err(failed)?;
            return Ok(Marked { done: nodes.to_vec(), left: Vec::new() });
        }
        Err(passing("it grows too fast to be marked; try again"))
    }
}

/// A conversation's id, from its file's name.
fn id_of(name: &str) -> &str {
    name.strip_suffix(LINES).unwrap_or(name)
}

fn open_to_append(directory: &OwnedFd, name: &str) -> disk::Sys<OwnedFd> {
    let flags = OFlags::RDWR | OFlags::APPEND | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    retry_on_intr(|| rustix::fs::openat(directory, name, flags, Mode::empty()))
}

fn length(file: &OwnedFd) -> disk::Sys<u64> {
    rustix::fs::fstat(file).map(|stat: Stat| disk::size(&stat))
}

/// Appends all of `line` behind `length` bytes. What could be written only in part is taken back, as long as nobody else has
/// written behind it: otherwise their line would be joined to ours.
fn append(file: &OwnedFd, line: &[u8], length: u64) -> disk::Sys<()> {
    let mut written = 0;
    while let Some(rest) = line.get(written..).filter(|rest| !rest.is_empty()) {
        match retry_on_intr(|| rustix::io::write(file, rest)) {
            Ok(some) if some > 0 => written += some,
            result => {
                if written > 0 && self::length(file) == Ok(length + written as u64) {
                    let _ = disk::truncate(file, length);
                }
                return Err(result.err().unwrap_or(Errno::IO));
            }
        }
    }
    Ok(())
}

/// How much of a piece to hand over now so that what is text stays text: up to the end of its last line, or else of its last whole
/// character.
fn whole(bytes: &[u8]) -> usize {
    if let Some(at) = bytes.iter().rposition(|byte| *byte == b'\n') {
        return at + 1;
    }
    match std::str::from_utf8(bytes) {
        Err(error) if error.error_len().is_none() && error.valid_up_to() > 0 => error.valid_up_to(),
        _ => bytes.len(),
    }
}

/// What is read of a line.
#[derive(Deserialize)]
struct Line {
    #[serde(default)]
    id: Option<IgnoredAny>,
    #[serde(default)]
    timestamp: Option<serde_json::Value>,
    #[serde(default, rename = "created_at")]
    created_at: Option<serde_json::Value>,
    #[serde(default, rename = "memory_written_scriptorium")]
    mark: Option<IgnoredAny>,
}

impl Line {
    fn is_mark(&self) -> bool {
        self.id.is_none() && self.mark.is_some()
    }
}

/// The time that the last line names which is no mark; none if it names none, is torn, or stands too far from the end.
fn last_said(file: &OwnedFd, size: u64) -> disk::Sys<Option<f64>> {
    let mut window = TAIL;
    loop {
        let from = size.saturating_sub(window);
        let bytes = disk::read_at(file, from, usize::try_from(size - from).unwrap_or(0))?;
        let mut lines = bytes.split(|byte| *byte == b'\n');
        if from > 0 {
            // Its beginning is not in the window.
            let _ = lines.next();
        }
        for line in lines.rev() {
            if line.trim_ascii().is_empty() {
                continue;
            }
            match serde_json::from_slice::<Line>(line) {
                Ok(line) if line.is_mark() => {}
                Ok(line) => return Ok(line.timestamp.or(line.created_at).as_ref().and_then(instant)),
                Err(_) => return Ok(None),
            }
        }
        if from == 0 || window >= TAIL_MAX {
            return Ok(None);
        }
        window = (window * 8).min(TAIL_MAX);
    }
}

/// Seconds since 1970 of a time as a number, or as text; a text without an offset is in UTC.
fn instant(value: &serde_json::Value) -> Option<f64> {
    let seconds = match value {
        serde_json::Value::Number(number) => number.as_f64()?,
        serde_json::Value::String(text) => {
            let zoned = text.parse::<Timestamp>().ok();
            let time = zoned.or_else(|| {
                let local = text.parse::<DateTime>().ok()?;
                local.to_zoned_datetime(TimeZone::UTC).ok().map(|zoned| zoned.timestamp())
            })?;
            time.as_nanosecond() as f64 / 1e9
        }
        _ => return None,
    };
    seconds.is_finite().then_some(seconds)
}
