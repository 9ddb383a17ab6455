//! Stdin, for verbs that read what they work on from it.
//!
//! Knows streams. Must not know what comes through them.

use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{FileTypeExt as _, OpenOptionsExt as _};
use std::path::Path;

use rustix::fs::{FileType, OFlags, fcntl_getfl, fcntl_setfl, fstat, stat};

use super::failure::Failure;

/// Stdin, if there is one.
///
/// # Errors
/// It was closed when the program began: an input that is missing is not one that is empty.
pub fn stdin() -> Result<io::Stdin, Failure> {
    let stdin = io::stdin();
    if is_stand_in(&stdin) {
        return Err(Failure::usage("unreadable-input", "there is nothing to read from: stdin is closed")
            .at_path("stdin")
            .next("name a file, or give the input on stdin"));
    }
    Ok(stdin)
}

/// Opens a file to be read. `what` names in words what is in it.
///
/// # Errors
/// It cannot be opened, or is a pipe: who is at its other end may never come.
pub fn open(path: &Path, what: &str) -> Result<File, Failure> {
    let failed = |error: io::Error| Failure::io(&format!("read the {what}"), path, &error);
    let flags = OFlags::NONBLOCK | OFlags::NOCTTY;
    let mut options = OpenOptions::new();
    options.read(true).custom_flags(i32::try_from(flags.bits()).unwrap_or_default());
    let file = options.open(path).map_err(failed)?;
    let kind = file.metadata().map_err(failed)?.file_type();
    if kind.is_dir() {
        return Err(failed(io::ErrorKind::IsADirectory.into()));
    }
    // What a shell opens in the place of a file (`<(…)`) is a pipe too, and there is somebody at its other end.
    if kind.is_fifo() && !is_of_this_process(path) {
        return Err(Failure::usage("unreadable-input", format!("the {what} cannot be read from a pipe by its name"))
            .at_path(path.display().to_string())
            .next("read it from stdin: - in its place, and < PIPE"));
    }
    fcntl_setfl(&file, OFlags::empty()).map_err(|error| failed(error.into()))?;
    Ok(file)
}

/// Whether a path names a file that this process was given open.
fn is_of_this_process(path: &Path) -> bool {
    ["/dev/fd", "/proc/self/fd", "/dev/stdin"].iter().any(|above| path.starts_with(above))
}

/// All of a file, or of stdin (no file, or `-`), as text, and what to call it. `what` names it in words.
///
/// # Errors
/// It cannot be read, is longer than `bytes_max`, or is not UTF-8: then with the line.
pub fn whole(file: Option<&Path>, what: &str, bytes_max: u64) -> Result<(String, String), Failure> {
    let file = file.filter(|path| *path != Path::new("-"));
    let name = file.map_or_else(|| "stdin".to_owned(), |path| path.display().to_string());
    let mut bytes = Vec::new();
    let read = match file {
        Some(file) => open(file, what)?.take(bytes_max + 1).read_to_end(&mut bytes),
        None => stdin()?.take(bytes_max + 1).read_to_end(&mut bytes),
    };
    read.map_err(|error| Failure::io(&format!("read the {what}"), Path::new(&name), &error))?;
    if bytes.len() as u64 > bytes_max {
        let message = format!("the {what} may have at most {bytes_max} bytes");
        return Err(Failure::usage("unreadable-input", message).at_path(name).next("give less at a time"));
    }
    match String::from_utf8(bytes) {
        Ok(text) => Ok((text, name)),
        Err(error) => {
            let valid = error.as_bytes().iter().take(error.utf8_error().valid_up_to());
            let line = valid.filter(|byte| **byte == b'\n').count() as u64 + 1;
            Err(Failure::usage("invalid-utf8", format!("the {what} is not UTF-8")).at_path(name).at_line(line))
        }
    }
}

/// Whether this is what the runtime opens in place of a stdin that is closed: the null device, for reading and writing.
/// A shell's `< /dev/null` is for reading only, and an empty input like any other.
fn is_stand_in(stdin: &io::Stdin) -> bool {
    let opened_for_both = fcntl_getfl(stdin).is_ok_and(|flags| flags & OFlags::RWMODE == OFlags::RDWR);
    let is_null = || {
        let (Ok(here), Ok(null)) = (fstat(stdin), stat("/dev/null")) else { return false };
        FileType::from_raw_mode(here.st_mode) == FileType::CharacterDevice && here.st_rdev == null.st_rdev
    };
    opened_for_both && is_null()
}
