//! Why something cannot be read as asked.

/// Why something cannot be read as asked. Nothing was shown.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReadFault {
    /// More than one of heading, block and lines.
    #[error("ask for one thing at a time: a heading, a block, or lines")]
    SeveralSelections,
    /// The file has no such heading.
    #[error("there is no heading `{0}`; leave the heading out to see the file")]
    NoSuchHeading(String),
    /// The file, or memory, has no such block.
    #[error("there is no block `{0}`; a search shows the ids of blocks")]
    NoSuchBlock(String),
    /// A pattern of nothing.
    #[error("the pattern is empty; give the text to look for")]
    EmptyPattern,
    /// No regular expression.
    #[error("this is no regular expression: {0}; without `regex` it is looked for as it stands")]
    InvalidPattern(String),
    /// A regular expression that takes too much memory.
    #[error("this regular expression takes more than {0} bytes; make it shorter, or repeat less")]
    PatternTooLarge(usize),
    /// No reference to a block.
    #[error(
        "reference {0} is none: it has a workspace_id and a memory_id of 1 to 128 letters, digits, hyphens, underscores"
    )]
    MalformedReference(usize),
    /// More references than one task has.
    #[error("more than {} references; leave some out", super::REFERENCES_MAX)]
    TooManyReferences,
    /// A reference into another workspace.
    #[error("`{0}` is another workspace; a reference leads into the workspace it was made in")]
    ForeignWorkspace(String),
    /// Not even the beginning of each block fits.
    #[error("{given} characters are too few: {needed} are needed; allow more, or give fewer references")]
    TooFewChars {
        /// How many there are.
        given: usize,
        /// The least that does.
        needed: usize,
    },
}

impl ReadFault {
    /// The coarse word that other programs know.
    pub fn code(&self) -> &'static str {
        "INVALID_ARGUMENT"
    }

    /// The fine one.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::SeveralSelections => "several-selections",
            Self::NoSuchHeading(_) => "no-such-heading",
            Self::NoSuchBlock(_) => "no-such-block",
            Self::EmptyPattern => "empty-pattern",
            Self::InvalidPattern(_) => "invalid-pattern",
            Self::PatternTooLarge(_) => "pattern-too-large",
            Self::MalformedReference(_) => "malformed-reference",
            Self::TooManyReferences => "too-many-references",
            Self::ForeignWorkspace(_) => "foreign-workspace",
            Self::TooFewChars { .. } => "too-few-characters",
        }
    }
}
