//! What is said about files and requests: findings (while reading) and problems (why a request was refused).
//!
//! Knows codes, severities and the shape of both (FORMAT.md, "Findings" and "Refusals"). Must not know how anything is found out.

/// How much a finding matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// Worth knowing; nothing is wrong.
    Info,
    /// Something is not as it should be, but no evidence is out of reach because of it.
    Warning,
    /// Evidence is out of reach or cannot be relied on.
    Error,
}

/// Something that was found while reading.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Stable, kebab-case; those of this crate are [`FindingCode`]s.
    pub code: &'static str,
    /// How much it matters.
    pub severity: Severity,
    /// The file, as it was given.
    pub path: Option<String>,
    /// From 1.
    pub line: Option<u64>,
    /// What it is about: a record id, a limit's name.
    pub subject: Option<String>,
    /// The beginning of the offending line, safe to print.
    pub excerpt: Option<String>,
    /// For people: what is wrong and what to do.
    pub message: String,
}

/// Why a request was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// From the closed list of FORMAT.md: `INVALID_ARGUMENT`, `COMMIT_REJECTED`, …
    pub code: &'static str,
    /// Finer, kebab-case: `unsafe-source-id`.
    pub reason: &'static str,
    /// The file it is about.
    pub path: Option<String>,
    /// From 1; in a batch, which record.
    pub line: Option<u64>,
    /// What it is about: an id, a name.
    pub subject: Option<String>,
    /// For people: what is wrong and what to do next.
    pub message: String,
}

macro_rules! finding_codes {
    ($($(#[$doc:meta])* $name:ident = $text:literal, $severity:ident;)*) => {
        /// Every finding this module can make.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum FindingCode {
            $($(#[$doc])* $name,)*
        }

        impl FindingCode {
            /// All of them, in the order of FORMAT.md.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];

            /// The stable, kebab-case word.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$name => $text,)*
                }
            }

            /// How much it matters.
            pub const fn severity(self) -> Severity {
                match self {
                    $(Self::$name => Severity::$severity,)*
                }
            }
        }
    };
}

finding_codes! {
    /// A v2 archive does not begin with the marker and an empty line.
    MissingMarker = "missing-marker", Error;
    /// A frame does not begin with an anchor line.
    BadAnchor = "bad-anchor", Error;
    /// The line behind the anchor names no source id that a v2 archive may carry.
    BadSourceId = "bad-source-id", Error;
    /// The record belongs to another file.
    WrongLocation = "wrong-location", Error;
    /// The anchor is not the id's.
    AnchorMismatch = "anchor-mismatch", Error;
    /// The file has a record with this id already.
    DuplicateId = "duplicate-id", Error;
    /// The speaker marker is not canonical.
    BadSpeaker = "bad-speaker", Error;
    /// The metadata token cannot be read.
    BadMetadata = "bad-metadata", Error;
    /// The line that says how many lines the record has is missing or malformed.
    BadRecordCount = "bad-record-count", Error;
    /// The record's first line is not `[time] label: text`.
    BadRecord = "bad-record", Error;
    /// The line behind the record's last line is not empty.
    MissingTerminator = "missing-terminator", Error;
    /// The file ends within a frame.
    TruncatedFrame = "truncated-frame", Error;
    /// A frame's header is longer than `limits.header-bytes`.
    HeaderTooLong = "header-too-long", Error;
    /// A byte that is not UTF-8.
    InvalidUtf8 = "invalid-utf8", Error;
    /// The file could not be read.
    UnreadableFile = "unreadable-file", Error;
    /// In an archive of the older form, a header or the anchor of a numbered turn without its record.
    LegacyBadRecord = "legacy-bad-record", Error;
    /// In an archive of the older form, a record that is over before it should be.
    LegacyCutRecord = "legacy-cut-record", Error;
    /// In an archive of the older form, lines that look like a header and name nothing of this file.
    LegacyBadHeader = "legacy-bad-header", Warning;
    /// In an archive of the older form, a second record with the same id.
    LegacyDuplicateId = "legacy-duplicate-id", Warning;
    /// A v2 archive without a single byte.
    EmptyArchive = "empty-archive", Warning;
    /// A symbolic link; not followed.
    SymlinkIgnored = "symlink-ignored", Warning;
    /// Neither file nor directory; not opened.
    SpecialFile = "special-file", Warning;
    /// A name that is not UTF-8; not opened.
    UndecodableName = "undecodable-name", Warning;
    /// A file of a layout from before archives and topics.
    OldLayout = "old-layout", Warning;
    /// The cache was wrong about a file.
    StaleIndex = "stale-index", Warning;
    /// What only the store knows of a workspace could not be asked.
    StoreSilent = "store-silent", Warning;
    /// The workspace's settings file cannot be read.
    BadSettingsFile = "bad-settings-file", Warning;
    /// A line of a branches file that does not say what a record comes behind.
    BadBranchLine = "bad-branch-line", Warning;
    /// A line of a branches file that names a record which its archive does not have.
    UnknownBranchRecord = "unknown-branch-record", Warning;
    /// A topic links to a block that no topic has.
    DanglingBlockLink = "dangling-block-link", Warning;
    /// A derived file is not what its topics make of it.
    StaleView = "stale-view", Warning;
    /// A `core.md` of hand that is no topic.
    CoreNotATopic = "core-not-a-topic", Warning;
    /// A topic that was handed over was not checked, for want of room.
    TopicUnchecked = "topic-unchecked", Warning;
    /// A query has too many words; only its rarest were looked for.
    QueryTermsLeftOut = "query-terms-left-out", Info;
    /// Not everything has a vector, and what has none was not found by what it means.
    VectorsIncomplete = "vectors-incomplete", Warning;
    /// No model could be asked what a query means; it was answered by words alone.
    MeaningUnavailable = "meaning-unavailable", Warning;
    /// An archive was given without its place in a workspace.
    LocationUnchecked = "location-unchecked", Info;
    /// Topics were handed over without the archives that their citations lead to.
    CitationsUnchecked = "citations-unchecked", Info;
    /// An archive of the older form has text that belongs to no record.
    LegacyLooseText = "legacy-loose-text", Info;
}
