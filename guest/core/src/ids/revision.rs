//! Which state a workspace is in.

use super::path::path_order;
use crate::digest::{Digest, Hasher};

const DIGITS: usize = 32;

/// Names a workspace's state: `r1-` and 32 hexadecimal digits over paths and file digests (FORMAT.md, "Revision").
/// Opaque to callers; equal revisions mean equal files.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Revision(String);

impl Revision {
    /// Of these files, given in any order: each path once, with the root of its [`crate::digest::FileHasher`]. Which
    /// files count is the caller's to know (all that are not internal, and the runtime directory's `runtime.json`).
    pub fn of<P: AsRef<str>>(files: impl IntoIterator<Item = (P, Digest)>) -> Self {
        let mut files: Vec<(P, Digest)> = files.into_iter().collect();
        files.sort_by(|(a, _), (b, _)| path_order(a.as_ref(), b.as_ref()));
        let mut hasher = Hasher::new();
        for (path, digest) in &files {
            hasher.push(path.as_ref().as_bytes());
            hasher.push(&[0]);
            hasher.push(&digest.0);
        }
        Self(format!("r1-{}", hasher.finish().hex_prefix(DIGITS)))
    }

    /// Reads a token. None unless it has the form.
    pub fn parse(token: &str) -> Option<Self> {
        is_hex(token.strip_prefix("r1-")?).then(|| Self(token.to_owned()))
    }

    /// The token.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl core::fmt::Display for Revision {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(&self.0)
    }
}

/// Collects files for a [`Revision`].
#[derive(Clone, Debug, Default)]
pub struct RevisionBuilder {
    files: Vec<(String, Digest)>,
}

impl RevisionBuilder {
    /// Adds a file; the order does not matter.
    pub fn add(&mut self, path: &str, digest: Digest) {
        self.files.push((path.to_owned(), digest));
    }

    /// The files added.
    pub fn into_files(self) -> impl Iterator<Item = (String, Digest)> {
        self.files.into_iter()
    }

    /// The revision of the files added.
    pub fn finish(self) -> Revision {
        Revision::of(self.files)
    }
}

/// The other program's revision: 32 hexadecimal digits over every byte of every file. Costs a read of the whole
/// workspace; needed only to honour a revision that came from there.
///
/// Files must be added in [`path_order`]; each is opened by its path and then fed its bytes.
#[derive(Clone, Default)]
pub struct FlatRevision {
    hasher: Hasher,
    open: bool,
}

impl FlatRevision {
    /// No file yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Whether a token has the form of such a revision.
    pub fn is_token(token: &str) -> bool {
        is_hex(token)
    }

    /// Starts the next file.
    pub fn file(&mut self, path: &str) {
        self.close();
        self.hasher.push(path.as_bytes());
        self.hasher.push(&[0]);
        self.open = true;
    }

    /// The next bytes of the file started last.
    pub fn push(&mut self, bytes: &[u8]) {
        self.hasher.push(bytes);
    }

    /// The token.
    pub fn finish(mut self) -> String {
        self.close();
        self.hasher.finish().hex_prefix(DIGITS)
    }

    fn close(&mut self) {
        if core::mem::take(&mut self.open) {
            self.hasher.push(&[0]);
        }
    }
}

fn is_hex(digits: &str) -> bool {
    digits.len() == DIGITS && digits.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn token() {
        let empty = Revision::of(core::iter::empty::<(&str, Digest)>());
        assert_eq!(empty.as_str(), "r1-e3b0c44298fc1c149afbf4c8996fb924");
        assert_eq!(Revision::parse(empty.as_str()), Some(empty));
        for bad in ["", "r1-", "e3b0c44298fc1c149afbf4c8996fb924", "r1-E3B0C44298FC1C149AFBF4C8996FB924"] {
            assert_eq!(Revision::parse(bad), None);
        }
        assert!(FlatRevision::is_token(&FlatRevision::new().finish()));
    }

    #[test]
    fn order_of_adding_does_not_matter() {
        let (one, two) = (("a/z", Digest::of(b"1")), ("a-b", Digest::of(b"2")));
        assert_eq!(Revision::of([one, two]), Revision::of([two, one]));
        assert_ne!(Revision::of([one, two]), Revision::of([("a/z", two.1), ("a-b", one.1)]));
    }
}
