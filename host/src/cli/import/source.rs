//! What is named on the command line, as a row of files to read: files, directories, zip archives, stdin.
//!
//! Knows paths, which names below a directory are an export's, and what must not be opened. Must not know what the files
//! say.
//!
//! Below a directory nothing is followed or opened but directories and regular files: a symbolic link, a pipe or a device
//! there is told and left out, as is what may not be read, and the rest goes on. What is named on the command line itself
//! may be a link, because a person named it.

use std::collections::VecDeque;
use std::fs::{self, File};
use std::io::{self, BufReader, Read};
use std::os::unix::fs::{FileTypeExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::Duration;

use recollex::workspace::ImportFormat;
use rustix::fs::OFlags;

use super::interrupt::Interrupt;
use super::looks::{self, BEGINNING_BYTES, Looks};
use super::zip::{Entry, Zip};
use crate::cli::failure::{Exit, Failure};
use crate::cli::input;

/// Directories within directories are entered so deep.
const DEPTH_MAX: usize = 64;

/// A file that was not taken in, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeftOut {
    /// As people know it.
    pub file: String,
    /// Stable, kebab-case.
    pub reason: &'static str,
    /// For people.
    pub message: String,
}

impl LeftOut {
    fn new(file: impl Into<String>, reason: &'static str, message: impl Into<String>) -> Self {
        Self { file: file.into(), reason, message: message.into() }
    }

    /// A fault of reading.
    pub fn io(file: impl Into<String>, error: &io::Error) -> Self {
        // What a link leads to is not looked at: opening it says "too many levels".
        let reason = match error.kind() {
            io::ErrorKind::PermissionDenied => "denied",
            io::ErrorKind::NotFound => "gone",
            io::ErrorKind::InvalidData => "damaged",
            _ if error.raw_os_error() == Some(rustix::io::Errno::LOOP.raw_os_error()) => "symlink",
            _ => "io",
        };
        Self::new(file, reason, format!("cannot be read: {error}"))
    }
}

/// Something named on the command line that can be read.
pub struct Operand {
    /// As it was typed; `stdin`.
    shown: String,
    kind: Kind,
}

enum Kind {
    Stdin,
    File(PathBuf, u64),
    Directory(PathBuf),
    Zip(Rc<Zip>),
}

/// A file to read.
pub struct Input {
    /// For the component: tells files apart, and its last parts are what the file's own name says.
    pub name: String,
    /// For people.
    pub shown: String,
    /// It was named itself, so that a fault of it is the call's.
    pub is_named: bool,
    place: Place,
}

enum Place {
    Stdin,
    /// Named itself.
    File(PathBuf),
    /// Found below a directory: not to be followed if it has become a link.
    Found(PathBuf),
    Entry(Rc<Zip>, Entry),
}

/// A file that is open, with its beginning read ahead.
pub struct Opened {
    /// What comes of it, from its first byte.
    pub stream: Box<dyn Read>,
    /// What it seems to be.
    pub looks: Option<Looks>,
}

impl Operand {
    /// Looks at everything that was named, so that what cannot be read, and what is plainly something else, is told before
    /// anything is taken in. A zip archive may unpack to `unpacked_bytes_max` bytes.
    ///
    /// # Errors
    /// The first that cannot be.
    pub fn all(paths: &[PathBuf], format: ImportFormat, unpacked_bytes_max: u64) -> Result<Vec<Self>, Failure> {
        let mut stdin = false;
        let operands = paths.iter().map(|path| {
            if path == Path::new("-") {
                if std::mem::replace(&mut stdin, true) {
                    return Err(Failure::usage("stdin-twice", "stdin can be read once only"));
                }
                input::stdin()?;
                return Ok(Self { shown: "stdin".to_owned(), kind: Kind::Stdin });
            }
            Self::of(path, format, unpacked_bytes_max)
        });
        operands.collect()
    }

    fn of(path: &Path, format: ImportFormat, unpacked_bytes_max: u64) -> Result<Self, Failure> {
        let shown = path.display().to_string();
        let fail = |error: io::Error| Failure::io("read the export", path, &error);
        let mut file = open(path, OFlags::empty()).map_err(fail)?;
        let metadata = file.metadata().map_err(fail)?;
        if metadata.is_dir() {
            return Ok(Self { shown, kind: Kind::Directory(path.to_owned()) });
        }
        if let Some(what) = special(metadata.file_type()) {
            return Err(Failure::usage("special-file", format!("this is {what}, not a file"))
                .at_path(shown)
                .next("give what comes out of it on stdin: name `-`"));
        }
        let beginning = beginning(&mut file).map_err(fail)?;
        let looks = looks::looks(&beginning);
        if looks == Some(Looks::Zip) {
            let zip = Zip::open(file, shown.clone(), |name| wanted(format, name), unpacked_bytes_max)?;
            return Ok(Self { shown, kind: Kind::Zip(Rc::new(zip)) });
        }
        if let Some(failure) = unfit(looks, format) {
            return Err(failure.at_path(shown));
        }
        Ok(Self { shown, kind: Kind::File(path.to_owned(), metadata.len()) })
    }

    /// The files that belong to it, in the order of their names.
    pub fn files(&self, format: ImportFormat) -> Box<dyn Iterator<Item = Result<Input, LeftOut>> + '_> {
        let one = |place: Place, name: String| {
            Box::new(std::iter::once(Ok(Input { name, shown: self.shown.clone(), is_named: true, place })))
        };
        match &self.kind {
            Kind::Stdin => one(Place::Stdin, self.shown.clone()),
            Kind::File(path, _) => {
                // Where the name has a meaning, so have the directories that it was typed without.
                let full = std::path::absolute(path).unwrap_or_else(|_| path.clone());
                if let Some(left_out) = undecodable(format, &full, &self.shown) {
                    return Box::new(std::iter::once(Err(left_out)));
                }
                one(Place::File(path.clone()), full.to_string_lossy().into_owned())
            }
            Kind::Directory(path) => Box::new(Walk::new(path, format)),
            Kind::Zip(zip) => Box::new(zip.entries().map(|entry| {
                let name = format!("{}/{}", self.shown, entry.name);
                let place = Place::Entry(Rc::clone(zip), entry);
                Ok(Input { shown: name.clone(), name, is_named: false, place })
            })),
        }
    }

    /// Bytes that will be read; none if that cannot be known, or only by walking through everything.
    pub fn size(&self, format: ImportFormat) -> Option<u64> {
        match &self.kind {
            Kind::Stdin => None,
            Kind::File(_, size) => Some(*size),
            Kind::Directory(path) => size_below(path, format),
            // Checked first, then taken in.
            Kind::Zip(zip) => Some(zip.entries().map(|entry| 2 * entry.size).sum()),
        }
    }

    /// What was left out before any file was read.
    pub fn left_out(&self) -> Vec<LeftOut> {
        match &self.kind {
            Kind::Zip(zip) => zip
                .left_out()
                .iter()
                .map(|(name, reason, message)| LeftOut::new(format!("{}/{name}", self.shown), reason, message))
                .collect(),
            _ => Vec::new(),
        }
    }

    /// Nothing in it had a name of the format.
    pub fn nothing(&self, format: ImportFormat) -> Failure {
        let names = match format {
            ImportFormat::Chatgpt | ImportFormat::Claude => "`conversations.json` (or `conversations-000.json`, …)",
            ImportFormat::ClaudeCode | ImportFormat::Jsonl => "`*.jsonl`",
            ImportFormat::Openprogram => "`history/*.json`",
        };
        Failure::usage("nothing-to-import", format!("there is no file here whose name is {names}"))
            .at_path(self.shown.clone())
            .next("name the export itself; `recollex help import` says where each program has it")
    }
}

impl Input {
    /// Opens it and looks at its beginning. `checked` hears of bytes that are read only to check them.
    ///
    /// # Errors
    /// It cannot be read, it is no regular file any more, or what it holds is damaged.
    pub fn open(&self, interrupt: &Interrupt, checked: &dyn Fn(u64)) -> Result<Opened, LeftOut> {
        let mut stream: Box<dyn Read> = match &self.place {
            Place::Stdin => Box::new(Background::stdin(interrupt.clone())),
            Place::File(path) => Box::new(self.regular(path, OFlags::empty())?),
            Place::Found(path) => Box::new(self.regular(path, OFlags::NOFOLLOW)?),
            Place::Entry(zip, entry) => zip
                .check(entry, interrupt, checked)
                .and_then(|()| Zip::read(zip, entry))
                .map_err(|error| LeftOut::io(&self.shown, &error))?,
        };
        let beginning = beginning(&mut stream).map_err(|error| LeftOut::io(&self.shown, &error))?;
        let looks = looks::looks(&beginning);
        Ok(Opened { stream: Box::new(io::Cursor::new(beginning).chain(stream)), looks })
    }

    fn regular(&self, path: &Path, flags: OFlags) -> Result<File, LeftOut> {
        let file = open(path, flags).map_err(|error| LeftOut::io(&self.shown, &error))?;
        let metadata = file.metadata().map_err(|error| LeftOut::io(&self.shown, &error))?;
        match special(metadata.file_type()) {
            Some(what) => Err(LeftOut::new(&self.shown, "special-file", format!("is {what}, not a file"))),
            None => Ok(file),
        }
    }

    /// Why it is not read, if it looks like something that cannot be what was asked for: of a file that was named itself the
    /// call's failure, of one that was found one more that is left out. None: it may be what was asked for.
    pub fn unfit(&self, looks: Option<Looks>, format: ImportFormat) -> Option<Result<LeftOut, Failure>> {
        let failure = unfit(looks, format)?;
        Some(if self.is_named {
            Err(failure.at_path(self.shown.clone()))
        } else {
            Ok(LeftOut::new(&self.shown, "other-format", failure.message))
        })
    }
}

/// Why a file that looks so is not of the format, if that is certain.
fn unfit(looks: Option<Looks>, format: ImportFormat) -> Option<Failure> {
    let (reason, message, next) = match looks? {
        Looks::Export(found) if found == format => return None,
        Looks::Export(found) => {
            let (title, name) = (looks::title(found), looks::name(found));
            ("other-format", format!("this looks like {title}"), format!("take it in with: recollex import {name}"))
        }
        Looks::Zip => (
            "packed",
            "this is a zip archive, and can be read only where it lies".to_owned(),
            "name the file, or unpack it".to_owned(),
        ),
        Looks::Compressed(how) => ("packed", format!("this is compressed with {how}"), "unpack it first".to_owned()),
        Looks::Encoded(how) => ("encoding", format!("this is {how}, not UTF-8"), "convert it to UTF-8".to_owned()),
        Looks::Html => (
            "other-format",
            "this is a web page".to_owned(),
            "what is wanted lies beside it: for ChatGPT and Claude `conversations.json`".to_owned(),
        ),
    };
    Some(Failure::usage(reason, message).next(next))
}

/// Whether a file below a directory, or in a zip archive, is one of the format's, by its name.
fn wanted(format: ImportFormat, path: &str) -> bool {
    let mut parts = path.rsplit('/');
    let (Some(name), directory) = (parts.next(), parts.next()) else { return false };
    match format {
        ImportFormat::Chatgpt | ImportFormat::Claude => name.starts_with("conversations") && name.ends_with(".json"),
        ImportFormat::ClaudeCode | ImportFormat::Jsonl => name.ends_with(".jsonl"),
        ImportFormat::Openprogram => directory == Some("history") && name.ends_with(".json"),
    }
}

/// Why a file is left out whose name means something and is not UTF-8: told in UTF-8, two such names may be one, and with
/// them two sessions.
fn undecodable(format: ImportFormat, full: &Path, shown: &str) -> Option<LeftOut> {
    // `<session>/history/<node>.json`
    let is_text = format != ImportFormat::Openprogram || full.iter().rev().take(3).all(|part| part.to_str().is_some());
    let message = "its name, or that of its session, is not UTF-8; rename it";
    (!is_text).then(|| LeftOut::new(shown, "undecodable-name", message))
}

/// Opens without waiting for anybody at the other end, and without taking a terminal over.
fn open(path: &Path, flags: OFlags) -> io::Result<File> {
    let flags = OFlags::NONBLOCK | OFlags::NOCTTY | flags;
    fs::OpenOptions::new().read(true).custom_flags(i32::try_from(flags.bits()).unwrap_or_default()).open(path)
}

/// What kind of thing it is, if it is neither a file nor a directory.
fn special(kind: fs::FileType) -> Option<&'static str> {
    Some(match kind {
        kind if kind.is_file() || kind.is_dir() => return None,
        kind if kind.is_symlink() => "a symbolic link",
        kind if kind.is_fifo() => "a pipe",
        kind if kind.is_socket() => "a socket",
        _ => "a device",
    })
}

/// Up to [`BEGINNING_BYTES`] bytes.
fn beginning(stream: &mut dyn Read) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    stream.take(BEGINNING_BYTES as u64).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Bytes of a format's files below a directory; none where there is too much to look through.
fn size_below(path: &Path, format: ImportFormat) -> Option<u64> {
    const FILES_MAX: u64 = 200_000;
    let (mut open, mut bytes, mut files) = (vec![(path.to_owned(), 0)], 0_u64, 0_u64);
    while let Some((directory, depth)) = open.pop() {
        for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
            files += 1;
            if files > FILES_MAX {
                return None;
            }
            match entry.file_type() {
                Ok(kind) if kind.is_dir() && depth < DEPTH_MAX => open.push((entry.path(), depth + 1)),
                Ok(kind) if kind.is_file() && wanted(format, &entry.path().to_string_lossy()) => {
                    bytes += entry.metadata().map_or(0, |metadata| metadata.len());
                }
                _ => {}
            }
        }
    }
    Some(bytes)
}

/// The files of a format below a directory, in the order of their names, directory by directory. It holds the names of
/// the directories that it is in, not those of all.
struct Walk {
    format: ImportFormat,
    shown: PathBuf,
    full: PathBuf,
    levels: Vec<VecDeque<PathBuf>>,
}

impl Walk {
    fn new(path: &Path, format: ImportFormat) -> Self {
        let full = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        let first = VecDeque::from([PathBuf::new()]);
        Self { format, shown: path.to_owned(), full, levels: vec![first] }
    }

    fn look(&mut self, inside: &Path) -> Option<Result<Input, LeftOut>> {
        let full = self.full.join(inside);
        let shown = self.shown.join(inside).display().to_string();
        let is_root = inside.as_os_str().is_empty();
        // The directory that was named may be a link; what lies in it may not.
        let kind = match if is_root { fs::metadata(&full) } else { fs::symlink_metadata(&full) } {
            Ok(metadata) => metadata.file_type(),
            Err(error) => return Some(Err(LeftOut::io(shown, &error))),
        };
        let name = full.to_string_lossy().into_owned();
        if kind.is_dir() {
            if inside.file_name().is_some_and(|name| name == ".git") {
                return None;
            }
            if self.levels.len() > DEPTH_MAX {
                let message = format!("is more than {DEPTH_MAX} directories deep");
                return Some(Err(LeftOut::new(shown, "too-deep", message)));
            }
            return match children(&full, inside) {
                Ok(children) => {
                    self.levels.push(children);
                    None
                }
                Err(error) => Some(Err(LeftOut::io(shown, &error))),
            };
        }
        if kind.is_symlink() {
            // It may stand for a file or for a directory of them: either way something is missing that seems to be there.
            let is_ours = wanted(self.format, &name) || fs::metadata(&full).is_ok_and(|metadata| metadata.is_dir());
            let message = "is a symbolic link, and is not followed: name what it leads to, if it belongs to the export";
            return is_ours.then(|| Err(LeftOut::new(shown, "symlink", message)));
        }
        if !wanted(self.format, &name) {
            return None;
        }
        if let Some(left_out) = undecodable(self.format, &full, &shown) {
            return Some(Err(left_out));
        }
        Some(match special(kind) {
            Some(what) => Err(LeftOut::new(shown, "special-file", format!("is {what}, not a file"))),
            None => Ok(Input { name, shown, is_named: false, place: Place::Found(full) }),
        })
    }
}

/// Paths of what is in a directory, sorted.
fn children(full: &Path, inside: &Path) -> io::Result<VecDeque<PathBuf>> {
    let names = fs::read_dir(full)?.map(|entry| Ok(inside.join(entry?.file_name())));
    let mut names = names.collect::<io::Result<Vec<PathBuf>>>()?;
    names.sort();
    Ok(names.into())
}

impl Iterator for Walk {
    type Item = Result<Input, LeftOut>;

    fn next(&mut self) -> Option<Self::Item> {
        while let Some(level) = self.levels.last_mut() {
            match level.pop_front() {
                Some(inside) => {
                    if let Some(found) = self.look(&inside) {
                        return Some(found);
                    }
                }
                None => {
                    self.levels.pop();
                }
            }
        }
        None
    }
}

/// Stdin, read by a thread of its own: who waits at it can be told to stop.
struct Background {
    pieces: Receiver<io::Result<Vec<u8>>>,
    piece: io::Cursor<Vec<u8>>,
    interrupt: Interrupt,
}

/// How often it is looked whether to stop.
const PATIENCE: Duration = Duration::from_millis(100);
/// Bytes that the thread reads at a time.
const STEP_BYTES: usize = 256 << 10;

impl Background {
    fn stdin(interrupt: Interrupt) -> Self {
        let (sender, pieces) = sync_channel(2);
        // It ends with the stream, when nobody takes what it read, or with the process.
        std::thread::spawn(move || {
            let mut stdin = BufReader::with_capacity(STEP_BYTES, io::stdin());
            loop {
                let read = match io::BufRead::fill_buf(&mut stdin) {
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                    Err(error) => Err(error),
                    Ok(bytes) => Ok(bytes.to_vec()),
                };
                let length = read.as_ref().map_or(0, Vec::len);
                io::BufRead::consume(&mut stdin, length);
                if sender.send(read).is_err() || length == 0 {
                    break;
                }
            }
        });
        Self { pieces, piece: io::Cursor::default(), interrupt }
    }
}

impl Read for Background {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            let read = self.piece.read(buffer)?;
            if read > 0 || buffer.is_empty() {
                return Ok(read);
            }
            if self.interrupt.asked() {
                return Err(Interrupt::error());
            }
            match self.pieces.recv_timeout(PATIENCE) {
                Ok(piece) => {
                    let piece = piece?;
                    if piece.is_empty() {
                        return Ok(0);
                    }
                    self.piece = io::Cursor::new(piece);
                }
                Err(RecvTimeoutError::Timeout) => {}
                // The thread has told of the end before.
                Err(RecvTimeoutError::Disconnected) => return Ok(0),
            }
        }
    }
}

/// How a call ends for which everything that was named turned out to be unreadable.
pub const NOTHING_READ: Exit = Exit::USAGE;

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    const UNPACKED: u64 = 1 << 20;

    fn made(files: &[(&str, &str)]) -> tempfile::TempDir {
        let directory = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = directory.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        directory
    }

    /// Names below `root` of what is found there, and what is left out with its reason.
    fn found(root: &Path, format: ImportFormat) -> (Vec<String>, Vec<(String, &'static str)>) {
        let operands = Operand::all(&[root.to_owned()], format, UNPACKED).map_err(|failure| failure.message).unwrap();
        let below = |shown: &str| shown.strip_prefix(&format!("{}/", root.display())).unwrap_or(shown).to_owned();
        let (mut names, mut left_out) = (Vec::new(), Vec::new());
        for file in operands[0].files(format) {
            match file {
                Ok(input) => names.push(below(&input.shown)),
                Err(it) => left_out.push((below(&it.file), it.reason)),
            }
        }
        (names, left_out)
    }

    fn refused(path: &Path, format: ImportFormat) -> Failure {
        Operand::all(&[path.to_owned()], format, UNPACKED).err().unwrap()
    }

    #[test]
    fn each_format_finds_its_files_in_the_order_of_their_names() {
        let directory = made(&[
            ("b/conversations.json", ""),
            ("a/conversations-001.json", ""),
            ("a/conversations-000.json", ""),
            ("a/shared_conversations.json", ""),
            ("a/chat.html", ""),
            ("p/s2.jsonl", ""),
            ("p/s1.jsonl", ""),
            ("p/.git/x.jsonl", ""),
            ("s1/history/0002-l-b.json", ""),
            ("s1/history/0001-u-a.json", ""),
            ("s1/meta.json", ""),
        ]);
        let names = |format| found(directory.path(), format).0;
        let conversations = ["a/conversations-000.json", "a/conversations-001.json", "b/conversations.json"];
        assert_eq!(names(ImportFormat::Chatgpt), conversations);
        assert_eq!(names(ImportFormat::Claude), conversations);
        assert_eq!(names(ImportFormat::ClaudeCode), ["p/s1.jsonl", "p/s2.jsonl"]);
        assert_eq!(names(ImportFormat::Openprogram), ["s1/history/0001-u-a.json", "s1/history/0002-l-b.json"]);
        let empty = made(&[]);
        let operands = Operand::all(&[empty.path().to_owned()], ImportFormat::Claude, UNPACKED).ok().unwrap();
        assert_eq!(operands[0].files(ImportFormat::Claude).count(), 0);
        assert_eq!(operands[0].nothing(ImportFormat::Claude).exit, Exit::USAGE);
    }

    #[test]
    fn only_directories_and_regular_files_are_opened() {
        let outside = made(&[("s/history/0001-u-a.json", "{}")]);
        let directory = made(&[("s1/history/0001-u-a.json", "{}"), ("s3/history/keep", "")]);
        let root = directory.path();
        symlink(outside.path().join("s"), root.join("s0")).unwrap();
        fs::create_dir(root.join("s2")).unwrap();
        symlink(outside.path().join("s/history"), root.join("s2/history")).unwrap();
        symlink(outside.path().join("s/history/0001-u-a.json"), root.join("s3/history/0001-u-a.json")).unwrap();
        symlink("nowhere", root.join("s3/history/0002-u-b.json")).unwrap();
        symlink(root, root.join("s3/loop")).unwrap();
        symlink("nowhere", root.join("s3/other")).unwrap();
        let made = std::process::Command::new("mkfifo").arg(root.join("s3/history/0003-u-c.json")).status();
        let (names, mut left_out) = found(root, ImportFormat::Openprogram);
        assert_eq!(names, ["s1/history/0001-u-a.json"]);
        if made.is_ok_and(|status| status.success()) {
            assert_eq!(left_out.remove(4), ("s3/history/0003-u-c.json".to_owned(), "special-file"));
        }
        let links: Vec<&str> =
            left_out.iter().filter(|(_, reason)| *reason == "symlink").map(|(name, _)| &**name).collect();
        assert_eq!(
            links,
            ["s0", "s2/history", "s3/history/0001-u-a.json", "s3/history/0002-u-b.json", "s3/loop"],
            "a link to nothing that is not ours is nobody's loss: {left_out:?}"
        );

        // What is named itself may be a link.
        let link = outside.path().join("link");
        symlink(root, &link).unwrap();
        assert_eq!(found(&link, ImportFormat::Openprogram).0, ["s1/history/0001-u-a.json"]);
    }

    #[test]
    fn a_file_that_becomes_a_link_before_it_is_opened_is_left_out() {
        let directory = made(&[("a.jsonl", "{}"), ("secret", "x")]);
        let operands = Operand::all(&[directory.path().to_owned()], ImportFormat::Jsonl, UNPACKED).ok().unwrap();
        let input = operands[0].files(ImportFormat::Jsonl).next().unwrap().unwrap();
        fs::remove_file(directory.path().join("a.jsonl")).unwrap();
        symlink(directory.path().join("secret"), directory.path().join("a.jsonl")).unwrap();
        assert_eq!(input.open(&Interrupt::default(), &|_| {}).err().unwrap().reason, "symlink");
    }

    #[test]
    fn what_is_named_must_be_readable_and_may_not_be_plainly_something_else() {
        let directory = made(&[
            ("claude.json", r#"[{"uuid":"u","chat_messages":[]}]"#),
            ("page.html", "<html>"),
            ("packed.gz", "\u{1f}\u{8b}"),
            ("unknown.json", "[]"),
        ]);
        let path = |name: &str| directory.path().join(name);
        fs::write(path("packed.gz"), b"\x1f\x8b\x08").unwrap();
        for (name, reason, hint) in [
            ("claude.json", "other-format", "recollex import claude"),
            ("page.html", "other-format", "conversations.json"),
            ("packed.gz", "packed", "unpack"),
            ("nowhere.json", "io", "nothing is there"),
        ] {
            let failure = refused(&path(name), ImportFormat::Chatgpt);
            assert_eq!((&*failure.reason, failure.exit), (reason, Exit::USAGE), "{name}");
            assert!(failure.next.as_ref().unwrap().contains(hint), "{name}: {:?}", failure.next);
            assert!(failure.path.unwrap().ends_with(name));
        }
        // What tells nothing is for the component to judge.
        assert!(Operand::all(&[path("unknown.json")], ImportFormat::Chatgpt, UNPACKED).is_ok());
        assert!(Operand::all(&[path("claude.json")], ImportFormat::Claude, UNPACKED).is_ok());
        assert_eq!(refused(Path::new("/dev/null"), ImportFormat::Jsonl).reason, "special-file");
        let made = std::process::Command::new("mkfifo").arg(path("pipe")).status();
        if made.is_ok_and(|status| status.success()) {
            // Nobody writes: opening it must not wait.
            assert_eq!(refused(&path("pipe"), ImportFormat::Jsonl).reason, "special-file");
        }
        let failure = Operand::all(&["-".into(), "-".into()], ImportFormat::Jsonl, UNPACKED).err().unwrap();
        assert_eq!(failure.reason, "stdin-twice");
    }

    #[test]
    fn deeper_than_deep_is_told() {
        let directory = tempfile::tempdir().unwrap();
        let deep: PathBuf = std::iter::repeat_n("d", DEPTH_MAX + 2).collect();
        fs::create_dir_all(directory.path().join(&deep)).unwrap();
        fs::write(directory.path().join(&deep).join("a.jsonl"), "").unwrap();
        let (names, left_out) = found(directory.path(), ImportFormat::Jsonl);
        assert!(names.is_empty());
        assert_eq!(left_out.iter().map(|(_, reason)| *reason).collect::<Vec<_>>(), ["too-deep"]);
    }
}
