//! Hashes: what is hashed, and how it is written down. Knows SHA-256 and hexadecimal; must not know what the bytes mean.

use sha2::digest::common::hazmat::SerializableState as _;
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
/// as it is; an empty file has no chunk. Because of that a file that grew needs only the state behind its old whole chunks
/// and the bytes from there on: see [`FileHasher::resume`].
#[derive(Clone, Default)]
pub struct FileHasher {
    chunks: Chunks,
    added: Vec<Digest>,
    open: Sha256,
    open_bytes: usize,
}

/// What a [`FileHasher`] found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileDigest {
    /// The file's digest.
    pub root: Digest,
    /// Of its whole chunks: what [`FileHasher::resume`] takes.
    pub chunks: Chunks,
    /// The digests of those whole chunks that this hasher hashed: all of them, or those behind where it was resumed.
    pub added: Vec<Digest>,
}

/// The outer hash of a file behind its whole chunks, however many there are.
#[derive(Clone, Default)]
pub struct Chunks {
    whole: u64,
    outer: Sha256,
}

impl Chunks {
    /// Length of [`Chunks::to_bytes`].
    pub const BYTES: usize = 8 + 104;

    /// Of whole chunks with these digests, in their order.
    pub fn of(digests: &[Digest]) -> Self {
        let mut chunks = Self::default();
        digests.iter().for_each(|digest| chunks.add(*digest));
        chunks
    }

    /// How many there are.
    pub fn count(&self) -> u64 {
        self.whole
    }

    /// Bytes of the file that are covered.
    pub fn offset(&self) -> u64 {
        self.whole.saturating_mul(CHUNK_BYTES as u64)
    }

    /// For caches: the number of chunks, and the state of the hash as the library of this build writes it. A test holds
    /// that form; if it ever changes, the version of the caches must.
    pub fn to_bytes(&self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        for (to, from) in bytes.iter_mut().zip(self.whole.to_le_bytes().into_iter().chain(self.outer.serialize())) {
            *to = from;
        }
        bytes
    }

    /// Reads it back. None if no hash can be in such a state.
    pub fn from_bytes(bytes: &[u8; Self::BYTES]) -> Option<Self> {
        let (whole, outer) = bytes.split_first_chunk::<8>()?;
        let outer = Sha256::deserialize(outer.try_into().ok()?).ok()?;
        Some(Self { whole: u64::from_le_bytes(*whole), outer })
    }

    fn add(&mut self, chunk: Digest) {
        self.outer.update(chunk.0);
        self.whole += 1;
    }
}

impl PartialEq for Chunks {
    fn eq(&self, other: &Self) -> bool {
        self.to_bytes() == other.to_bytes()
    }
}

impl Eq for Chunks {}

impl core::fmt::Debug for Chunks {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{} whole chunks", self.whole)
    }
}

impl FileHasher {
    /// For a file read from its start.
    pub fn new() -> Self {
        Self::default()
    }

    /// For a file whose first chunks are known not to have changed. The bytes pushed next start at
    /// [`FileHasher::offset`].
    pub fn resume(chunks: Chunks) -> Self {
        Self { chunks, ..Self::default() }
    }

    /// Bytes covered so far: where the next piece belongs in the file.
    pub fn offset(&self) -> u64 {
        self.chunks.offset() + self.open_bytes as u64
    }

    /// Takes the next piece of the file.
    pub fn push(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let room = CHUNK_BYTES - self.open_bytes;
            let (now, later) = bytes.split_at(room.min(bytes.len()));
            self.open.update(now);
            self.open_bytes += now.len();
            if self.open_bytes == CHUNK_BYTES {
                let chunk = Digest(self.open.finalize_reset().into());
                self.chunks.add(chunk);
                self.added.push(chunk);
                self.open_bytes = 0;
            }
            bytes = later;
        }
    }

    /// The digest of everything pushed.
    pub fn finish(self) -> FileDigest {
        let mut root = self.chunks.outer.clone();
        if self.open_bytes > 0 {
            root.update(self.open.finalize());
        }
        FileDigest { root: Digest(root.finalize().into()), chunks: self.chunks, added: self.added }
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
        let stored = before.finish().chunks.to_bytes();

        let mut after = FileHasher::resume(Chunks::from_bytes(&stored).expect("as written"));
        assert_eq!(after.offset(), CHUNK_BYTES as u64);
        after.push(&bytes[CHUNK_BYTES..]);

        let mut afresh = FileHasher::new();
        afresh.push(&bytes);
        let (after, afresh) = (after.finish(), afresh.finish());
        assert_eq!((after.root, &after.chunks), (afresh.root, &afresh.chunks));
        assert_eq!(after.added, afresh.added[1..]);
        assert_eq!(Chunks::of(&afresh.added), afresh.chunks);
    }

    #[test]
    fn the_stored_state_has_the_form_that_caches_hold() {
        let mut hasher = FileHasher::new();
        hasher.push(&[7; CHUNK_BYTES * 3 + 1]);
        let bytes = hasher.finish().chunks.to_bytes();
        // Three digests are 96 bytes: one block of 64 went into the state, half a block waits.
        assert_eq!(bytes[..8], 3_u64.to_le_bytes());
        assert_eq!(bytes[40..48], 1_u64.to_le_bytes());
        assert_eq!(bytes[48], 32);
        assert_eq!(bytes[49..81], Digest::of(&[7; CHUNK_BYTES]).0);
        assert!(bytes[81..].iter().all(|byte| *byte == 0));
        let mut impossible = bytes;
        impossible[48] = 99;
        assert_eq!(Chunks::from_bytes(&impossible), None);
    }
}
