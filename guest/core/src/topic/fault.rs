//! What can be wrong with a topic.

use core::ops::Range;

/// Something that is wrong with a topic, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// What is wrong.
    pub code: FaultCode,
    /// The offending bytes of the file.
    pub span: Range<usize>,
    /// Where they begin: line, from 1.
    pub line: usize,
    /// And column, from 1, in characters.
    pub column: usize,
    /// The bytes that name what it is about: a label, an id, a time, a target. None: the file.
    pub subject: Option<Range<usize>>,
}

impl Fault {
    /// What it is about, given the file's text and what the file is called.
    pub fn subject<'a>(&self, text: &'a str, file: &'a str) -> &'a str {
        self.subject.clone().and_then(|span| text.get(span)).unwrap_or(file)
    }
}

macro_rules! fault_codes {
    ($($(#[$doc:meta])* $name:ident = $text:literal, $strict:literal, $what:literal, $remedy:literal;)*) => {
        /// Every fault of a topic. A word, once released, keeps its meaning.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum FaultCode {
            $($(#[$doc])* $name,)*
        }

        impl FaultCode {
            /// All of them, in the order of FORMAT.md.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];

            /// The stable, kebab-case word.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$name => $text,)*
                }
            }

            /// Whether a strict reading refuses the file for it. If not, it is advice.
            pub const fn is_strict(self) -> bool {
                match self {
                    $(Self::$name => $strict,)*
                }
            }

            /// For people: what is wrong.
            pub const fn what(self) -> &'static str {
                match self {
                    $(Self::$name => $what,)*
                }
            }

            /// For people: what to do.
            pub const fn remedy(self) -> &'static str {
                match self {
                    $(Self::$name => $remedy,)*
                }
            }
        }
    };
}

fault_codes! {
    /// Two definitions of one label in a file.
    DuplicateFootnote = "duplicate-footnote", true,
        "the file defines this footnote more than once, so nobody knows what rests on which",
        "Keep one definition, or give the other a label of its own and cite that";
    /// A definition's time is written as one, but there is no such day.
    InvalidTime = "invalid-time", true,
        "there is no such day",
        "Write a day of the calendar as YYYY-MM-DD, a month as YYYY-MM, a year as YYYY, or undated";
    /// A definition without a link.
    MissingSourceLink = "missing-source-link", true,
        "the footnote names no source as a link",
        "Behind Sources: write at least one [label](target)";
    /// A link in a definition whose label is white space.
    MissingSourceLabel = "missing-source-label", true,
        "a source of the footnote has a blank label",
        "Between the brackets write what the source is";
    /// A link in a definition that leads to no evidence.
    UnresolvedSource = "unresolved-source", true,
        "this leads to no evidence",
        "Name a record by its id, or by its archive's path, relative to this file, # and its anchor; a search shows both";
    /// A line of a paragraph that begins like a definition.
    MalformedFootnote = "malformed-footnote", true,
        "this begins like a footnote, but is not written as one",
        "At the beginning of a line write [^label]: Time: `YYYY-MM-DD`; Sources: [label](target)";
    /// A paragraph without an id.
    MissingBlockId = "missing-block-id", true,
        "this text has no block id",
        "If it cites evidence, an update gives it one; what rests on nothing belongs in a heading, a comment or a code fence";
    /// A paragraph ends with `^` and what is no id.
    InvalidBlockId = "invalid-block-id", true,
        "what stands behind the last ^ is no block id",
        "An id has the letters A to Z and a to z, digits and hyphens only; leave it out, and an update gives one";
    /// A block that cites nothing.
    UncitedBlock = "uncited-block", true,
        "the block cites nothing",
        "Behind what it claims write [^label], and define that label in this file";
    /// A citation with no text before it.
    CitationWithoutClaim = "citation-without-claim", true,
        "nothing is claimed between this citation and the one before",
        "Write the claim before its citation, or put both citations side by side";
    /// A citation of a label that the file does not define.
    UndefinedFootnote = "undefined-footnote", true,
        "the file does not define this footnote",
        "Add a line [^label]: Time: `YYYY-MM-DD`; Sources: [label](target)";
    /// Text behind the last citation of a block.
    TextAfterCitation = "text-after-citation", true,
        "nothing is cited for the text behind the last citation",
        "Cite evidence at its end, or put it before the citation it rests on";
    /// Two blocks with one id.
    DuplicateBlockId = "duplicate-block-id", true,
        "another block has this id",
        "Leave this one's id out, and an update gives it one of its own";
    /// A definition that nothing cites.
    UnusedFootnote = "unused-footnote", true,
        "nothing cites this footnote",
        "Cite it behind the claim that rests on it, or remove it";
    /// A fence that no line closes.
    UnclosedFence = "unclosed-fence", false,
        "the code fence is not closed, so everything to the end of the file is code",
        "Close it with a line of its own";
    /// A byte order mark at the beginning.
    ByteOrderMark = "byte-order-mark", false,
        "the file begins with a byte order mark, which makes text of its first line",
        "Save the file as UTF-8 without one";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_fault_says_what_to_do() {
        for code in FaultCode::ALL {
            assert!(!code.what().is_empty() && !code.remedy().is_empty());
            assert!(code.as_str().bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-'), "{code:?}");
            assert!(code.remedy().starts_with(char::is_uppercase) && !code.remedy().ends_with('.'), "{code:?}");
        }
    }
}
