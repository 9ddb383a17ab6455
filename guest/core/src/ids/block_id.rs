//! What a claim and its footnotes are called.

/// The id of a block: what links and tools name a claim by, for ever.
///
/// Either of the form that is written, `1*( ALPHA / DIGIT / "-" )`, or an older one, `mem_` and
/// `1*( ALPHA / DIGIT / "-" / "_" )`, which stands in the place of a footnote's label (FORMAT.md, "Topics").
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BlockId(Box<str>);

/// What an older id begins with.
const OLDER: &str = "mem_";

impl BlockId {
    /// Reads an id of either form; none if the text is neither.
    pub fn parse(text: &str) -> Option<Self> {
        (Self::is_written(text) || Self::is_older(text)).then(|| Self(text.into()))
    }

    /// Whether the text has the form that stands behind a `^` at a block's end.
    pub fn is_written(text: &str) -> bool {
        !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
    }

    /// Whether the text has the older form.
    pub fn is_older(text: &str) -> bool {
        text.strip_prefix(OLDER).is_some_and(|name| !name.is_empty() && name.bytes().all(is_label_byte))
    }

    /// The id.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl core::fmt::Display for BlockId {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(&self.0)
    }
}

/// The label of a footnote, `1*( ALPHA / DIGIT / "-" / "_" )`: what `[^label]` cites and `[^label]:` defines.
///
/// A *local* label (`e1`, `new-evidence-x`) is a writer's: it means something within one file only, and is replaced by a
/// stable one when the file is committed.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FootnoteLabel(Box<str>);

impl FootnoteLabel {
    /// Reads a label; none if the text is none.
    pub fn parse(text: &str) -> Option<Self> {
        Self::is_label(text).then(|| Self(text.into()))
    }

    /// Whether the text has the form.
    pub fn is_label(text: &str) -> bool {
        !text.is_empty() && text.bytes().all(is_label_byte)
    }

    /// Whether a label is local: `e` and digits, or `new-evidence-` and something.
    pub fn is_local(text: &str) -> bool {
        let numbered = |rest: &str| !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_digit());
        text.strip_prefix('e').is_some_and(numbered)
            || text.strip_prefix("new-evidence-").is_some_and(|name| !name.is_empty() && Self::is_label(text))
    }

    /// The label.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl core::fmt::Display for FootnoteLabel {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(&self.0)
    }
}

/// Whether a label may contain the byte.
pub(crate) fn is_label_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn block_ids() {
        for id in ["aaaa1111", "ABC-def-9", "-", "mem_x", "mem_a-b_c", "mem"] {
            assert_eq!(BlockId::parse(id).expect(id).as_str(), id);
        }
        for id in ["", "mem_", "a_b", "块一", "a b", "a^b", "mem_块", "xmem_a", "１"] {
            assert_eq!(BlockId::parse(id), None, "{id:?}");
        }
        assert!(BlockId::is_written("a-1") && !BlockId::is_written("mem_x"));
    }

    #[test]
    fn labels() {
        for label in ["e1", "e-1111111111", "mem_x", "_", "A-9"] {
            assert_eq!(FootnoteLabel::parse(label).expect(label).as_str(), label);
        }
        for label in ["", "e 1", "é", "a]", "^a"] {
            assert_eq!(FootnoteLabel::parse(label), None, "{label:?}");
        }
        for local in ["e1", "e10", "new-evidence-x", "new-evidence-_"] {
            assert!(FootnoteLabel::is_local(local), "{local}");
        }
        for stable in ["e", "e-1", "e1a", "E1", "new-evidence-", "new-evidence", "ee1", "e１", "new-evidence-ä"] {
            assert!(!FootnoteLabel::is_local(stable), "{stable}");
        }
    }
}
