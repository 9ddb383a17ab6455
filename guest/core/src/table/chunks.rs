//! The digests of an archive's whole chunks, one behind the other: with them a change in the middle of an archive needs
//! only its own chunk read again. No check of their own: the head has the hash over all of them.

use crate::digest::{Chunks, Digest};
use core::ops::Range;

const DIGEST_BYTES: usize = 32;

/// The bytes of the file that hold the digests of the first `count` chunks.
pub fn chunks_range(count: u64) -> Range<u64> {
    0..count.saturating_mul(DIGEST_BYTES as u64)
}

/// What to write for these.
pub fn write_chunks(digests: &[Digest]) -> Vec<u8> {
    digests.iter().flat_map(|digest| digest.0).collect()
}

/// Reads the bytes of a [`chunks_range`]. None if they are not the digests that `chunks` was made of.
pub fn read_chunks(bytes: &[u8], chunks: &Chunks) -> Option<Vec<Digest>> {
    let (digests, rest) = bytes.as_chunks::<DIGEST_BYTES>();
    let digests: Vec<Digest> = digests.iter().copied().map(Digest).collect();
    (rest.is_empty() && Chunks::of(&digests) == *chunks).then_some(digests)
}
