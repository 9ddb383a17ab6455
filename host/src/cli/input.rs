//! Stdin, for verbs that read what they work on from it.
//!
//! Knows streams. Must not know what comes through them.

use std::io;

use rustix::fs::{FileType, OFlags, fcntl_getfl, fstat, stat};

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
