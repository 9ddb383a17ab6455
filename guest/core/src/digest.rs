//! Hashes: what is hashed, and how it is written down. Knows SHA-256 and hexadecimal; must not know what the bytes mean.

use sha2::{Digest as _, Sha256};

/// Bytes a file digest covers with one inner hash. An append re-hashes at most this much of what was there before.
pub const CHUNK_BYTES: usize = 64 * 1024;

/// A SHA-256 value.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest(pub [u8; 32]);

impl Digest {
    /// SHA-256 of `bytes`.
    pub fn of(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }

    /// All 64 lower-case hexadecimal digits.
    pub fn hex(&self) -> String {
        self.hex_prefix(64)
    }

    /// The first `digits` lower-case hexadecimal digits, at most 64.
    pub fn hex_prefix(&self, digits: usize) -> String {
        self.0
            .iter()
            .flat_map(|byte| [byte >> 4, byte & 15])
            .take(digits)
            .filter_map(|nibble| char::from_digit(u32::from(nibble), 16))
            .collect()
    }
}

impl core::fmt::Debug for Digest {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(&self.hex())
    }
}

/// SHA-256 over pieces that come one after the other.
#[derive(Clone, Default)]
pub struct Hasher(Sha256);

impl Hasher {
    /// Nothing hashed yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes the next piece.
    pub fn push(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// The hash of all pieces as if they had been one.
    pub fn finish(self) -> Digest {
        Digest(self.0.finalize().into())
    }
}

/// The digest of one file, computed while its bytes pass by (FORMAT.md, "Revision").
///
/// It is the SHA-256 over the concatenated SHA-256 values of the file's chunks of [`CHUNK_BYTES`], the last one as long
/// as it is; an empty file has no chunk. Because of that a file that grew needs only its old chunk values and the bytes
/// from its last whole chunk on: see [`FileHasher::resume`].
#[derive(Clone, Default)]
pub struct FileHasher {
    whole: Vec<Digest>,
    open: Sha256,
    open_bytes: usize,
}

/// What a [`FileHasher`] found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileDigest {
    /// The file's digest.
    pub root: Digest,
    /// Values of its whole chunks, in order: what [`FileHasher::resume`] takes.
    pub whole_chunks: Vec<Digest>,
}

impl FileHasher {
    /// For a file read from its start.
    pub fn new() -> Self {
        Self::default()
    }

    /// For a file whose first chunks are known not to have changed. The bytes pushed next start at
    /// [`FileHasher::offset`].
    pub fn resume(whole_chunks: Vec<Digest>) -> Self {
        Self { whole: whole_chunks, ..Self::default() }
    }

    /// Bytes covered so far: where the next piece belongs in the file.
    pub fn offset(&self) -> u64 {
        (self.whole.len() as u64) * (CHUNK_BYTES as u64) + self.open_bytes as u64
    }

    /// Takes the next piece of the file.
    pub fn push(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let room = CHUNK_BYTES - self.open_bytes;
            let (now, later) = bytes.split_at(room.min(bytes.len()));
            self.open.update(now);
            self.open_bytes += now.len();
            if self.open_bytes == CHUNK_BYTES {
                self.whole.push(Digest(self.open.finalize_reset().into()));
                self.open_bytes = 0;
            }
            bytes = later;
        }
    }

    /// The digest of everything pushed.
    pub fn finish(self) -> FileDigest {
        let mut root = Sha256::new();
        for chunk in &self.whole {
            root.update(chunk.0);
        }
        if self.open_bytes > 0 {
            root.update(self.open.finalize());
        }
        FileDigest { root: Digest(root.finalize().into()), whole_chunks: self.whole }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hex_is_lower_case_and_cut() {
        let empty = Digest::of(b"");
        assert_eq!(empty.hex_prefix(16), "e3b0c44298fc1c14");
        assert_eq!(empty.hex().len(), 64);
        assert_eq!(empty.hex_prefix(99), empty.hex());
    }

    #[test]
    fn file_digest_is_the_root_over_its_chunks() {
        let bytes: Vec<u8> = (0..CHUNK_BYTES * 2 + 5).map(|n| (n % 251) as u8).collect();
        let mut expected = Vec::new();
        for chunk in bytes.chunks(CHUNK_BYTES) {
            expected.extend_from_slice(&Digest::of(chunk).0);
        }
        for piece in [1000, CHUNK_BYTES - 1, CHUNK_BYTES, CHUNK_BYTES + 1, bytes.len()] {
            let mut hasher = FileHasher::new();
            bytes.chunks(piece).for_each(|piece| hasher.push(piece));
            assert_eq!(hasher.offset(), bytes.len() as u64);
            assert_eq!(hasher.finish().root, Digest::of(&expected), "pieces of {piece}");
        }
        assert_eq!(FileHasher::new().finish().root, Digest::of(b""));
    }

    #[test]
    fn a_grown_file_needs_its_last_chunk_only() {
        let bytes: Vec<u8> = (0..CHUNK_BYTES * 3 + 77).map(|n| (n % 249) as u8).collect();
        let mut before = FileHasher::new();
        before.push(&bytes[..CHUNK_BYTES + 9]);
        let before = before.finish();

        let mut after = FileHasher::resume(before.whole_chunks);
        assert_eq!(after.offset(), CHUNK_BYTES as u64);
        after.push(&bytes[CHUNK_BYTES..]);

        let mut afresh = FileHasher::new();
        afresh.push(&bytes);
        assert_eq!(after.finish(), afresh.finish());
    }
}
