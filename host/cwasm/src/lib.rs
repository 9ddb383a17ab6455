//! A private cache of compiled components.
//!
//! Compiling a component takes tenths of a second, loading compiled code a few milliseconds. The price is that compiled
//! code is run as it is: whoever can write a cache file can run anything in the process that loads it. So this crate is
//! about one question, whether a file holds what this program wrote there, and holds the one unsafe block that the answer
//! permits. It knows nothing of what the components do.
//!
//! An entry is used only if all of this is so:
//!
//! - its directory is a real directory, belongs to this user, and nobody else may write in it;
//! - it is a regular file of this user with mode 0600, opened through that directory and not through a link;
//! - its name is the SHA-256 over the component's bytes and everything of the engine that decides whether compiled code
//!   fits it, the version of wasmtime and its settings included;
//! - the BLAKE3 digest at its end is that of the code before it.
//!
//! Anything else is not an error but a reason to compile anew, and to replace the entry if that may be done. The digest
//! guards against damage; against another user the ownership does; against this user's own programs nothing can. So the code
//! can be used where it lies, mapped into memory: a start of the command reads it once for its digest, and copies nothing.

#![deny(unsafe_code)]

use std::fmt::{self, Write as _};
use std::fs::File;
use std::hash::{Hash, Hasher};
use std::io::{self, Read, Seek, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use rustix::fs::{AtFlags, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;
use sha2::{Digest, Sha256};
use wasmtime::Engine;
use wasmtime::component::Component;

/// Behind the compiled code: what this is, and the version of its layout. Behind that the digest of the code ends the file.
const MAGIC: &[u8; 16] = b"recollex cwasm 2";
const TRAILER: usize = MAGIC.len() + blake3::OUT_LEN;
/// Read at a time.
const PIECE: usize = 128 << 10;
/// Longer files are not read: no component of ours compiles to a tenth of it.
const LONGEST: u64 = 256 << 20;
/// So many entries are kept when one is added. A version of the program uses two.
const KEPT: usize = 16;
/// Leftovers of writers that died are removed once they are this old.
const LEFTOVER: Duration = Duration::from_secs(3600);
const SUFFIX: &str = ".cwasm";
const TEMPORARY: &str = ".new-";

/// A directory of compiled components.
#[derive(Clone, Debug)]
pub struct Cache {
    directory: PathBuf,
}

/// A component as it is shipped.
#[derive(Clone, Copy)]
pub struct Wasm<'w> {
    /// Its bytes.
    pub bytes: &'w [u8],
    /// Their SHA-256 in hexadecimal digits, if somebody knows it.
    digest: Option<&'w str>,
}

impl<'w> Wasm<'w> {
    /// Bytes from anywhere.
    #[must_use]
    pub fn new(bytes: &'w [u8]) -> Self {
        Self { bytes, digest: None }
    }

    /// Bytes whose SHA-256, in hexadecimal digits, is certain to be this: then finding their entry does not take reading
    /// them.
    #[must_use]
    pub fn with_digest(bytes: &'w [u8], digest: &'w str) -> Self {
        Self { bytes, digest: Some(digest) }
    }
}

impl fmt::Debug for Wasm<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Wasm").field("bytes", &self.bytes.len()).field("digest", &self.digest).finish()
    }
}

/// How a component was come by.
#[derive(Debug)]
pub enum Origin {
    /// From the cache, without compiling.
    Cache,
    /// Compiled just now.
    Compiled {
        /// Why an entry that was there was not used; none: there was none.
        passed_over: Option<Unusable>,
        /// Whether it is in the cache now, or why not.
        kept: Result<(), Unusable>,
    },
}

/// Why the cache, or an entry of it, is not used. Never more than a reason to compile.
#[derive(Debug, thiserror::Error)]
#[error("{}: {reason}", path.display())]
pub struct Unusable {
    /// The directory or the entry.
    pub path: PathBuf,
    /// What is wrong with it.
    pub reason: Reason,
}

/// What is wrong with a cache directory or an entry.
#[derive(Debug, thiserror::Error)]
pub enum Reason {
    /// A link, or something other than what is expected there.
    #[error("is not a {0}, or is behind a symbolic link")]
    Kind(&'static str),
    /// Another user's.
    #[error("belongs to user {0}")]
    Owner(u32),
    /// Others may write (a directory), or the mode is not 0600 (an entry).
    #[error("has mode {0:04o}, which lets others at it")]
    Mode(u32),
    /// Not what was written there, or cut short.
    #[error("is damaged")]
    Damaged,
    /// Written by an engine with other settings.
    #[error("does not fit this engine: {0}")]
    Engine(String),
    /// The system refused.
    #[error("{0}")]
    System(#[from] io::Error),
}

impl Cache {
    /// A cache in `directory`. Nothing is looked at or made yet.
    #[must_use]
    pub fn new(directory: impl Into<PathBuf>) -> Self {
        Self { directory: directory.into() }
    }

    /// Where the entries are.
    #[must_use]
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// The compiled component of `wasm` for `engine`: from the cache if it holds a sound entry, else compiled and kept.
    ///
    /// # Errors
    /// Only what compiling answers: the bytes are not a component that this engine accepts. Whatever is wrong with the
    /// cache is told in [`Origin`].
    pub fn component(&self, engine: &Engine, wasm: Wasm<'_>) -> wasmtime::Result<(Component, Origin)> {
        let name = entry_name(engine, wasm);
        let directory = self.open();
        let passed_over = match directory.as_ref().map(|directory| self.load(directory, &name, engine)) {
            Ok(Ok(Some(component))) => return Ok((component, Origin::Cache)),
            Ok(Err(unusable)) => Some(unusable),
            Ok(Ok(None)) | Err(_) => None,
        };
        let component = Component::from_binary(engine, wasm.bytes)?;
        let kept = directory.and_then(|directory| {
            let code = component.serialize().map_err(|error| self.at(&name, Reason::Engine(format!("{error:#}"))))?;
            self.store(&directory, &name, &code)
        });
        Ok((component, Origin::Compiled { passed_over, kept }))
    }

    /// Opens the directory, made if it is not there, once it is certain that it is this user's alone.
    fn open(&self) -> Result<OwnedFd, Unusable> {
        let fail = |reason: Reason| Unusable { path: self.directory.clone(), reason };
        match rustix::fs::mkdir(&self.directory, Mode::RWXU) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(Errno::NOENT) => {
                if let Some(parent) = self.directory.parent() {
                    std::fs::create_dir_all(parent).map_err(|error| fail(error.into()))?;
                }
                match rustix::fs::mkdir(&self.directory, Mode::RWXU) {
                    Ok(()) | Err(Errno::EXIST) => {}
                    Err(error) => return Err(fail(system(error))),
                }
            }
            // A read-only medium may still hold entries: opening decides.
            Err(_) => {}
        }
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let directory = rustix::fs::open(&self.directory, flags, Mode::empty()).map_err(|error| {
            fail(match error {
                Errno::LOOP | Errno::NOTDIR => Reason::Kind("directory"),
                error => system(error),
            })
        })?;
        let stat = rustix::fs::fstat(&directory).map_err(|error| fail(system(error)))?;
        owned(&stat).map_err(fail)?;
        if mode(&stat) & 0o022 != 0 {
            return Err(fail(Reason::Mode(mode(&stat))));
        }
        Ok(directory)
    }

    /// Loads an entry; none if there is none.
    #[expect(unsafe_code, reason = "the one place where compiled code is taken from outside")]
    fn load(&self, directory: &OwnedFd, name: &str, engine: &Engine) -> Result<Option<Component>, Unusable> {
        let Some(file) = open_entry(directory, name).map_err(|reason| self.at(name, reason))? else {
            return Ok(None);
        };
        check(&file).map_err(|reason| self.at(name, reason))?;
        // SAFETY: these two must be given nothing but what `Component::serialize` made, unchanged, and what is mapped must stay
        // so. The open file is one that only this user can have written, in a directory that only this user can write in; its
        // name and its end are ones that only `store` below gives, for the code it got from `serialize`; its digest was right
        // a moment ago; and nothing of ours writes in an entry once it has its name: `store` puts another file in its place,
        // and who has mapped it keeps the old one. What is behind the code is in no section of it and is not looked at. That the
        // code was made by this version of wasmtime with these settings is in the name, and is checked again there.
        let component = unsafe {
            // The very file that was checked, whatever has its name by now. Where there is no such path it is read.
            Component::deserialize_file(engine, format!("/proc/self/fd/{}", file.as_raw_fd())).or_else(|error| {
                let Ok(bytes) = read_all(&file) else { return Err(error) };
                Component::deserialize(engine, code_of(&bytes))
            })
        };
        component.map(Some).map_err(|error| self.at(name, Reason::Engine(format!("{error:#}"))))
    }

    /// Puts an entry in place, whole, and removes old ones. Another writer of the same entry may come first or last:
    /// both write the same.
    fn store(&self, directory: &OwnedFd, name: &str, code: &[u8]) -> Result<(), Unusable> {
        let (temporary, mut file) =
            create_temporary(directory).map_err(|error| self.at(name, Reason::System(error)))?;
        let written = (|| -> io::Result<()> {
            rustix::fs::fchmod(&file, Mode::RUSR | Mode::WUSR)?;
            file.write_all(code)?;
            file.write_all(MAGIC)?;
            file.write_all(blake3::hash(code).as_bytes())?;
            rustix::fs::renameat(directory, &*temporary, directory, name)?;
            Ok(())
        })();
        if let Err(error) = written {
            let _ = rustix::fs::unlinkat(directory, &*temporary, AtFlags::empty());
            return Err(self.at(name, Reason::System(error)));
        }
        // An old entry too many costs space and nothing else.
        let _ = prune(directory, name);
        Ok(())
    }

    fn at(&self, name: &str, reason: Reason) -> Unusable {
        Unusable { path: self.directory.join(name), reason }
    }
}

/// The name of the entry for this component and this engine.
fn entry_name(engine: &Engine, wasm: Wasm<'_>) -> String {
    let mut key = Key(Sha256::new());
    match wasm.digest {
        Some(digest) => key.0.update(digest),
        None => key.0.update(hex(&Sha256::digest(wasm.bytes))),
    }
    engine.precompile_compatibility_hash().hash(&mut key);
    hex(&key.0.finalize()) + SUFFIX
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut hex, byte| {
        // Writing to a string cannot fail.
        let _ = write!(hex, "{byte:02x}");
        hex
    })
}

/// SHA-256 as a hasher: what the engine says of itself comes as [`Hash`], and 64 bits of it would be few for a name that
/// decides what is run.
struct Key(Sha256);

impl Hasher for Key {
    fn write(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// Not used: the whole digest is. Still a hash, as the trait promises.
    fn finish(&self) -> u64 {
        let digest = self.0.clone().finalize();
        digest.iter().take(8).fold(0, |hash, byte| hash << 8 | u64::from(*byte))
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key")
    }
}

/// Opens an entry that is a regular file of this user's with mode 0600; none if there is none.
fn open_entry(directory: &OwnedFd, name: &str) -> Result<Option<File>, Reason> {
    // NONBLOCK: opening a pipe that someone put there would wait for its other end.
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = match rustix::fs::openat(directory, name, flags, Mode::empty()) {
        Ok(file) => file,
        Err(Errno::NOENT) => return Ok(None),
        Err(Errno::LOOP) => return Err(Reason::Kind("regular file")),
        Err(error) => return Err(system(error)),
    };
    let stat = rustix::fs::fstat(&file).map_err(system)?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
        return Err(Reason::Kind("regular file"));
    }
    owned(&stat)?;
    if mode(&stat) != 0o600 {
        return Err(Reason::Mode(mode(&stat)));
    }
    Ok(Some(File::from(file)))
}

/// Whether an entry ends as it must.
fn check(mut file: &File) -> Result<(), Reason> {
    let length = file.metadata()?.len();
    let code = length.checked_sub(TRAILER as u64).filter(|_| length <= LONGEST).ok_or(Reason::Damaged)?;
    let mut hasher = blake3::Hasher::new();
    let mut piece = vec![0; PIECE];
    let mut left = usize::try_from(code).map_err(|_| Reason::Damaged)?;
    while left > 0 {
        let part = piece.get_mut(..left.min(PIECE)).unwrap_or_default();
        file.read_exact(part)?;
        hasher.update(part);
        left -= part.len();
    }
    let mut trailer = [0; TRAILER];
    file.read_exact(&mut trailer)?;
    let is_sound = trailer.strip_prefix(MAGIC).is_some_and(|digest| digest == hasher.finalize().as_bytes());
    if is_sound { Ok(()) } else { Err(Reason::Damaged) }
}

fn read_all(mut file: &File) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.rewind()?;
    file.take(LONGEST).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// What is before the end of an entry.
fn code_of(entry: &[u8]) -> &[u8] {
    entry.get(..entry.len().saturating_sub(TRAILER)).unwrap_or_default()
}

/// A new file under a name that nobody has.
fn create_temporary(directory: &OwnedFd) -> io::Result<(String, File)> {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    // Names can be taken by the leftovers of a dead process that had our process id.
    for _ in 0..64 {
        let name = format!("{TEMPORARY}{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        match rustix::fs::openat(directory, &*name, flags, Mode::RUSR | Mode::WUSR) {
            Ok(file) => return Ok((name, File::from(file))),
            Err(Errno::EXIST) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Err(io::Error::other("no free name for a new entry"))
}

/// Removes the oldest entries beyond [`KEPT`], never `fresh`, and old leftovers. Touches nothing whose name is not ours.
fn prune(directory: &OwnedFd, fresh: &str) -> io::Result<()> {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let oldest_leftover = i64::try_from(now.saturating_sub(LEFTOVER).as_secs()).unwrap_or_default();
    let mut entries = Vec::new();
    for item in rustix::fs::Dir::read_from(directory)? {
        let item = item?;
        let Ok(name) = item.file_name().to_str() else { continue };
        let leftover = name.starts_with(TEMPORARY);
        if name == fresh || !(leftover || is_entry_name(name)) {
            continue;
        }
        let Ok(stat) = rustix::fs::statat(directory, name, AtFlags::SYMLINK_NOFOLLOW) else { continue };
        if !leftover {
            entries.push(((stat.st_mtime, stat.st_mtime_nsec), name.to_owned()));
        } else if stat.st_mtime < oldest_leftover {
            let _ = rustix::fs::unlinkat(directory, name, AtFlags::empty());
        }
    }
    entries.sort();
    let surplus = entries.len().saturating_sub(KEPT - 1);
    for (_, name) in entries.iter().take(surplus) {
        let _ = rustix::fs::unlinkat(directory, &**name, AtFlags::empty());
    }
    Ok(())
}

fn is_entry_name(name: &str) -> bool {
    name.strip_suffix(SUFFIX).is_some_and(|stem| {
        stem.len() == 64 && stem.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte))
    })
}

fn owned(stat: &Stat) -> Result<(), Reason> {
    if stat.st_uid == rustix::process::geteuid().as_raw() { Ok(()) } else { Err(Reason::Owner(stat.st_uid)) }
}

/// Permission bits, set-id and sticky bits included.
fn mode(stat: &Stat) -> u32 {
    // The system's type for it is narrower on some platforms.
    #[allow(clippy::useless_conversion, reason = "not useless everywhere")]
    u32::from(Mode::from_raw_mode(stat.st_mode).bits() & 0o7777)
}

fn system(error: Errno) -> Reason {
    Reason::System(error.into())
}
