//! The id of a record of evidence.

use crate::digest::Digest;
use crate::text::{encode_path_part, is_printable_reading, is_printable_writing};

/// `provider/thread/message`: cut at the first two slashes, so a message may contain more. No part is empty and the
/// provider is neither `.` nor `..`. It names exactly one place: [`SourceId::v2_path`] and [`SourceId::anchor`].
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SourceId {
    text: String,
    provider_end: usize,
    thread_end: usize,
}

/// Why a text is no source id, or not one for a v2 archive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SourceIdError {
    /// Fewer than three parts, an empty part, or a provider that is a directory's own name.
    #[error("a source id is provider/thread/message, no part empty, the provider neither . nor ..")]
    Malformed,
    /// A character that no v2 archive may carry in an id.
    #[error("a source id must not contain {0:?}")]
    Unsafe(char),
}

impl SourceIdError {
    /// The stable reason: `malformed-source-id` or `unsafe-source-id`.
    pub fn reason(self) -> &'static str {
        match self {
            Self::Malformed => "malformed-source-id",
            Self::Unsafe(_) => "unsafe-source-id",
        }
    }
}

impl SourceId {
    /// Checks the form only; legacy archives carry such ids. See [`SourceId::for_reading`], [`SourceId::for_writing`].
    ///
    /// # Errors
    /// [`SourceIdError::Malformed`].
    pub fn parse(text: &str) -> Result<Self, SourceIdError> {
        let provider_end = text.find('/').ok_or(SourceIdError::Malformed)?;
        let behind = text.get(provider_end + 1..).ok_or(SourceIdError::Malformed)?;
        let thread_end = provider_end + 1 + behind.find('/').ok_or(SourceIdError::Malformed)?;
        let id = Self { text: text.to_owned(), provider_end, thread_end };
        if [id.provider(), id.thread(), id.message()].contains(&"") || matches!(id.provider(), "." | "..") {
            return Err(SourceIdError::Malformed);
        }
        Ok(id)
    }

    /// An id as a v2 archive may show it: also no `[` `]` `<` `>`, and nothing unprintable. Characters that Unicode 14
    /// had not assigned are accepted.
    ///
    /// # Errors
    /// [`SourceIdError::Malformed`], or [`SourceIdError::Unsafe`] with the first offending character.
    pub fn for_reading(text: &str) -> Result<Self, SourceIdError> {
        let id = Self::parse(text)?;
        match text.chars().find(|&c| !is_allowed(c, is_printable_reading)) {
            Some(c) => Err(SourceIdError::Unsafe(c)),
            None => Ok(id),
        }
    }

    /// An id as we write it: every character printable in Unicode 14, so that every program can read it back.
    ///
    /// # Errors
    /// [`SourceIdError::Malformed`], or [`SourceIdError::Unsafe`] with the first offending character.
    pub fn for_writing(text: &str) -> Result<Self, SourceIdError> {
        let id = Self::parse(text)?;
        match text.chars().find(|&c| !is_allowed(c, is_printable_writing)) {
            Some(c) => Err(SourceIdError::Unsafe(c)),
            None => Ok(id),
        }
    }

    /// The whole id.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The part before the first slash.
    pub fn provider(&self) -> &str {
        self.text.get(..self.provider_end).unwrap_or_default()
    }

    /// The part between the first two slashes.
    pub fn thread(&self) -> &str {
        self.text.get(self.provider_end + 1..self.thread_end).unwrap_or_default()
    }

    /// Everything behind the second slash.
    pub fn message(&self) -> &str {
        self.text.get(self.thread_end + 1..).unwrap_or_default()
    }

    /// SHA-256 of the id; its beginning is in the anchor.
    pub fn digest(&self) -> Digest {
        Digest::of(self.text.as_bytes())
    }

    /// The record's anchor within its file: `source-` and 16 hexadecimal digits.
    pub fn anchor(&self) -> String {
        anchor_of(&self.digest())
    }

    /// Where a v2 archive keeps it: `sources/<provider>/_v2/<thread>.md`.
    pub fn v2_path(&self) -> String {
        format!("sources/{}/_v2/{}.md", encode_path_part(self.provider()), encode_path_part(self.thread()))
    }

    /// Where the branches of its conversation are kept: `sources/<provider>/_branches/<thread>.jsonl`.
    pub fn branches_path(&self) -> String {
        format!("sources/{}/_branches/{}.jsonl", encode_path_part(self.provider()), encode_path_part(self.thread()))
    }

    /// Where a legacy archive keeps it: `sources/<provider>/<thread>.md`.
    pub fn legacy_path(&self) -> String {
        format!("sources/{}/{}.md", encode_path_part(self.provider()), encode_path_part(self.thread()))
    }
}

/// The anchor of the source id with that SHA-256.
pub fn anchor_of(id: &Digest) -> String {
    format!("source-{}", id.hex_prefix(16))
}

/// Whether a v2 id may contain `c`, given what is printable.
pub(crate) fn is_allowed(c: char, printable: impl Fn(char) -> bool) -> bool {
    printable(c) && !matches!(c, '[' | ']' | '<' | '>')
}

impl core::fmt::Display for SourceId {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(&self.text)
    }
}

impl core::fmt::Debug for SourceId {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "SourceId({:?})", self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts() {
        let id = SourceId::parse("a/b/c/d").expect("three parts");
        assert_eq!((id.provider(), id.thread(), id.message()), ("a", "b", "c/d"));
        let dots = SourceId::parse("a/../c").expect("a thread may be ..");
        assert_eq!(dots.v2_path(), "sources/a/_v2/...md");
        for bad in ["", "a", "a/b", "/b/c", "a//c", "a/b/", "./b/c", "../b/c"] {
            assert_eq!(SourceId::parse(bad), Err(SourceIdError::Malformed), "{bad:?}");
        }
    }

    #[test]
    fn writing_is_narrower_than_reading() {
        let later = "a/b/\u{1fae8}";
        assert!(SourceId::for_reading(later).is_ok());
        assert_eq!(SourceId::for_writing(later), Err(SourceIdError::Unsafe('\u{1fae8}')));
        assert_eq!(SourceId::for_reading("a/b/c]"), Err(SourceIdError::Unsafe(']')));
        assert!(SourceId::parse("a/b/c]").is_ok());
    }
}
