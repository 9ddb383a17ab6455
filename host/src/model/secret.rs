//! Keys, and where they are read.
//!
//! A key exists for the length of one request. It is no part of settings, which only say where it is, and nothing that is
//! printed, logged or recorded has it.

use std::fmt;
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::PathBuf;

use rustix::fs::OFlags;

use super::{ModelError, ModelErrorKind};
use crate::observer::{Level, Observer};

/// Bytes that a key has at most.
const KEY_BYTES: u64 = 16 << 10;
/// What stands where a key stood.
const SCRUBBED: &str = "[key]";

/// A key. It cannot be printed.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// A key of visible ASCII, white space around it left out; none if it is empty or holds anything else.
    #[must_use]
    pub fn new(text: &str) -> Option<Self> {
        let text = text.trim();
        let fits = |byte: u8| byte.is_ascii_graphic() && !matches!(byte, b'"' | b'\\');
        (!text.is_empty() && text.bytes().all(fits)).then(|| Self(text.to_owned()))
    }

    /// The key itself, for whoever sends it.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// A text in which the key stands nowhere.
    #[must_use]
    pub fn scrub(&self, text: String) -> String {
        if text.contains(&self.0) { text.replace(&self.0, SCRUBBED) } else { text }
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}

/// Where a key is read, each time that it is needed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum KeySource {
    /// There is none: a server on this machine, say.
    #[default]
    Nowhere,
    /// A variable of this process's environment.
    Environment(String),
    /// A file that holds it and nothing else.
    File(PathBuf),
    /// A program that has it from elsewhere.
    Given(Secret),
}

/// How it stands with a key, without showing it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeyState {
    /// None is asked for.
    Unneeded,
    /// It is there.
    Present,
    /// It is there, and others than its owner may read its file.
    Exposed,
    /// It cannot be read: why.
    Missing(String),
}

impl KeySource {
    /// Reads the key; none where there is none to be read. A file that others may read is told to the observer.
    ///
    /// # Errors
    /// `authentication`: the variable is not set, the file cannot be read, or what is there is no key.
    pub fn read(&self, observer: &dyn Observer) -> Result<Option<Secret>, ModelError> {
        let missing = |why: String| ModelError::new(ModelErrorKind::Authentication, why);
        let (secret, exposed) = self.look().map_err(missing)?;
        if let (true, Self::File(path)) = (exposed, self) {
            let path = path.display();
            observer.log(Level::Warn, &format!("others may read the key in {path}: chmod 600 takes that away"));
        }
        Ok(secret)
    }

    /// How it stands with the key now.
    #[must_use]
    pub fn state(&self) -> KeyState {
        match self.look() {
            Ok((None, _)) => KeyState::Unneeded,
            Ok((Some(_), false)) => KeyState::Present,
            Ok((Some(_), true)) => KeyState::Exposed,
            Err(why) => KeyState::Missing(why),
        }
    }

    /// The key, and whether others may read it too.
    fn look(&self) -> Result<(Option<Secret>, bool), String> {
        match self {
            Self::Nowhere => Ok((None, false)),
            Self::Given(secret) => Ok((Some(secret.clone()), false)),
            Self::Environment(name) => {
                let value = std::env::var(name).map_err(|error| match error {
                    std::env::VarError::NotPresent => format!("the key is missing: {name} is not set"),
                    std::env::VarError::NotUnicode(_) => format!("{name} holds no key: it is not text"),
                })?;
                let secret = Secret::new(&value);
                secret.map(|secret| (Some(secret), false)).ok_or_else(|| format!("{name} holds no key"))
            }
            Self::File(path) => {
                let shown = path.display();
                let (text, mode) = read(path).map_err(|error| format!("the key in {shown} cannot be read: {error}"))?;
                let secret = Secret::new(&text).ok_or_else(|| format!("{shown} holds no key"))?;
                Ok((Some(secret), mode & 0o044 != 0))
            }
        }
    }
}

/// A short regular file's text and mode. Does not wait at a pipe for someone to write.
fn read(path: &PathBuf) -> io::Result<(String, u32)> {
    let flags = i32::try_from((OFlags::NONBLOCK | OFlags::NOCTTY).bits()).unwrap_or_default();
    let file: File = fs::OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    let metadata = file.metadata()?;
    let invalid = |what| io::Error::new(io::ErrorKind::InvalidData, what);
    if !metadata.is_file() {
        return Err(invalid("it is not a regular file"));
    }
    let mut text = String::new();
    file.take(KEY_BYTES + 1).read_to_string(&mut text)?;
    if text.len() as u64 > KEY_BYTES {
        return Err(invalid("it is too long for a key"));
    }
    Ok((text, metadata.permissions().mode()))
}
