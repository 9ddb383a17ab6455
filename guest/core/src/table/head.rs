//! How an archive ends, and what its digest has come to: what an append needs, of any archive the same few bytes.

use super::bytes::{Reader, check, put_number, put_text};
use super::{Stamp, VERSION};
use crate::digest::Chunks;
use crate::source::{Limits, Resume, Tail};

const MAGIC: &[u8; 8] = b"RCLXHEAD";

/// What is known of one version of a sound archive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArchiveHead {
    /// The version: its length,
    pub size: u64,
    /// and its token, which was not racy.
    pub token: String,
    /// How it ends.
    pub at: Resume,
    /// Its whole chunks, hashed.
    pub chunks: Chunks,
    /// Its records, and so the rows that are its own.
    pub rows: u64,
    /// The check behind the last of them.
    pub chain: [u8; 8],
}

impl ArchiveHead {
    /// Whether it is about the version with that stamp.
    pub fn is_of(&self, stamp: &Stamp<'_>) -> bool {
        self.size == stamp.size && self.token == stamp.token
    }

    /// The whole file, for the archive at `path`. None if something is too long for it.
    pub fn write(&self, path: &str, limits: &Limits) -> Option<Vec<u8>> {
        let mut out = MAGIC.to_vec();
        put_number::<4>(&mut out, u64::from(VERSION))?;
        put_number::<8>(&mut out, limits.header_bytes as u64)?;
        put_text::<2>(&mut out, path)?;
        put_number::<8>(&mut out, self.size)?;
        put_text::<1>(&mut out, &self.token)?;
        put_number::<8>(&mut out, self.at.bytes)?;
        put_number::<8>(&mut out, self.at.lines)?;
        put_number::<1>(&mut out, u64::from(tail_number(self.at.tail)?))?;
        out.extend_from_slice(&self.chunks.to_bytes());
        put_number::<8>(&mut out, self.rows)?;
        out.extend_from_slice(&self.chain);
        let seal = check(&[&out]);
        out.extend_from_slice(&seal);
        Some(out)
    }

    /// Reads it. None if it is damaged, of another version, of another archive, or made with other settings.
    pub fn read(bytes: &[u8], path: &str, limits: &Limits) -> Option<Self> {
        let (body, seal) = bytes.split_last_chunk::<8>()?;
        let mut reader = Reader(body);
        let sound = *seal == check(&[body])
            && reader.array::<8>()? == *MAGIC
            && reader.number::<4>()? == u64::from(VERSION)
            && reader.number::<8>()? == limits.header_bytes as u64
            && reader.text::<2>()? == path;
        if !sound {
            return None;
        }
        let head = Self {
            size: reader.number::<8>()?,
            token: reader.text::<1>()?.to_owned(),
            at: Resume {
                bytes: reader.number::<8>()?,
                lines: reader.number::<8>()?,
                tail: tail_of(reader.number::<1>()?)?,
            },
            chunks: Chunks::from_bytes(&reader.array()?)?,
            rows: reader.number::<8>()?,
            chain: reader.array()?,
        };
        reader.end()?;
        Some(head)
    }
}

/// Only archives that can be added to have a head.
fn tail_number(tail: Tail) -> Option<u8> {
    match tail {
        Tail::AfterBlank => Some(1),
        Tail::AfterRecord => Some(2),
        Tail::Empty | Tail::Damaged => None,
    }
}

fn tail_of(number: u64) -> Option<Tail> {
    match number {
        1 => Some(Tail::AfterBlank),
        2 => Some(Tail::AfterRecord),
        _ => None,
    }
}
