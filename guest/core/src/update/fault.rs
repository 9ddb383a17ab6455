//! Why an update is refused.

use super::patch::Conflict;
use crate::ids::TopicPath;
use crate::source::Problem;
use crate::topic::FaultCode;
use crate::topic::edit::{EditFault, EditReason};

macro_rules! codes {
    ($($(#[$doc:meta])* $name:ident = $text:literal;)*) => {
        /// The coarse word of a refusal: those of the closed list (FORMAT.md, "Refusals") that an update can come to.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Code {
            $($(#[$doc])* $name,)*
        }

        impl Code {
            /// All of them.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];

            /// The word.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$name => $text,)*
                }
            }
        }
    };
}

codes! {
    /// The request is not as requests are, or asks for what cannot be.
    InvalidArgument = "INVALID_ARGUMENT";
    /// The workspace is no longer as the request takes it to be. The only one that is worth another try with the same edit.
    ConcurrentUpdate = "CONCURRENT_UPDATE";
    /// A path leads out of the workspace.
    PathOutsideWorkspace = "PATH_OUTSIDE_WORKSPACE";
    /// A path is none that this caller may edit.
    ReadOnlyPath = "READ_ONLY_PATH";
    /// A patch does not fit the topic.
    PatchConflict = "PATCH_CONFLICT";
    /// A quoted source is named that the request does not quote.
    MissingSource = "MISSING_SOURCE";
    /// There is no such record.
    MemoryNotFound = "MEMORY_NOT_FOUND";
    /// The caller may only add, and the edit would do more.
    AppendOnlyRequired = "APPEND_ONLY_REQUIRED";
    /// The topics would not be sound.
    InvalidTopicFormat = "INVALID_TOPIC_FORMAT";
    /// Nobody vouches for the sources that the request quotes.
    WriterPreconditionFailed = "WRITER_PRECONDITION_FAILED";
    /// What is there already stands against it.
    CommitRejected = "COMMIT_REJECTED";
}

impl Code {
    fn parse(text: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|code| code.as_str() == text)
    }
}

macro_rules! reasons {
    ($($(#[$doc:meta])* $name:ident = $text:literal, $code:ident, $what:literal, $remedy:literal;)*) => {
        /// Why an update is refused, besides the reasons of [edits](EditReason) and of
        /// [new records](crate::source::Batch::check). A word, once released, keeps its meaning.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Reason {
            $($(#[$doc])* $name,)*
        }

        impl Reason {
            /// All of them, in the order of FORMAT.md.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];

            /// The stable, kebab-case word.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$name => $text,)*
                }
            }

            /// The coarse code that other programs know.
            #[must_use]
            pub const fn code(self) -> Code {
                match self {
                    $(Self::$name => Code::$code,)*
                }
            }

            /// For people: what is wrong.
            #[must_use]
            pub const fn what(self) -> &'static str {
                match self {
                    $(Self::$name => $what,)*
                }
            }

            /// For people: what to do.
            #[must_use]
            pub const fn remedy(self) -> &'static str {
                match self {
                    $(Self::$name => $remedy,)*
                }
            }
        }
    };
}

reasons! {
    /// The text is no JSON object.
    MalformedRequest = "malformed-request", InvalidArgument,
        "the request is no JSON object",
        "Give one object with base_revision and one of patch, changes and memory_changes";
    /// Something that has to be said is not.
    MissingField = "missing-field", InvalidArgument,
        "a field is missing",
        "Add it";
    /// Something is said that means nothing there.
    UnknownField = "unknown-field", InvalidArgument,
        "there is no such field here",
        "Leave it out";
    /// A value is of another kind than it has to be.
    WrongType = "wrong-type", InvalidArgument,
        "a value is not of the kind that it has to be",
        "Give it as FORMAT.md says";
    /// A text that has to say something is white space.
    BlankValue = "blank-value", InvalidArgument,
        "a text is blank",
        "Say something, or leave the field out where it may be";
    /// Not exactly one form of edit.
    NotOneEdit = "not-one-edit", InvalidArgument,
        "a request is exactly one of patch, changes and memory_changes",
        "Give one of them, with at least one change";
    /// The request quotes too many sources.
    TooManySources = "too-many-sources", InvalidArgument,
        "the request quotes more sources than it may",
        "Quote fewer, in requests one after the other";
    /// They are too long together.
    SourcesTooLarge = "sources-too-large", InvalidArgument,
        "the quoted sources have more text than a request may quote",
        "Quote less, or archive the conversation and cite its records";
    /// The request makes too many changes.
    TooManyChanges = "too-many-changes", InvalidArgument,
        "the request makes more changes than it may",
        "Make fewer, in requests one after the other";
    /// They are too long together.
    ChangesTooLarge = "changes-too-large", InvalidArgument,
        "the changes have more text than a request may have",
        "Change less at a time, or name records in place of whole topics";
    /// A quoted source has a name of another form.
    InvalidSourceLabel = "invalid-source-label", InvalidArgument,
        "a quoted source is named new-source- and lower-case letters, digits and hyphens",
        "Give it such a name, and cite it by that";
    /// Two quoted sources have one name.
    DuplicateSourceLabel = "duplicate-source-label", InvalidArgument,
        "another quoted source has this name",
        "Give each a name of its own";
    /// A time is none.
    InvalidTime = "invalid-time", InvalidArgument,
        "there is no such time",
        "For a record write YYYY, YYYY-MM, YYYY-MM-DD or undated; for a source a date, or a date and a time, as ISO 8601";
    /// An action is neither of the two.
    UnknownAction = "unknown-action", InvalidArgument,
        "an action is write or delete",
        "Give one of the two";
    /// A topic is to go, and comes with what it shall be.
    ContentWithDelete = "content-with-delete", InvalidArgument,
        "a topic that is deleted has no content",
        "Leave the content out";
    /// A topic is given twice.
    PathGivenTwice = "path-given-twice", InvalidArgument,
        "the request gives this topic more than once",
        "Give it once, as it shall be in the end";
    /// A patch cannot be read.
    MalformedPatch = "malformed-patch", InvalidArgument,
        "this is no unified diff",
        "For each topic give --- and +++ lines with its path, then hunks that begin with @@ -line,count +line,count @@";
    /// A patch does what patches of topics cannot.
    UnsupportedPatch = "unsupported-patch", InvalidArgument,
        "a patch changes, adds and removes lines of topics, and nothing else",
        "To rename a topic delete it and create the other; modes, links and binary files are no part of topics";
    /// There is no such operation.
    UnknownOperation = "unknown-operation", InvalidArgument,
        "there is no such operation",
        "Give create_record, update_record, delete_record or move_records";
    /// A record's text has an empty line.
    ContentWithBlankLine = "content-with-blank-line", InvalidArgument,
        "a record is one paragraph, and this text has an empty line",
        "Make two records of it, or leave the empty line out";
    /// A line of a record's text begins with `#`.
    ContentWithHeading = "content-with-heading", InvalidArgument,
        "a line of a record's text begins with #, as headings do",
        "Name headings in the destination";
    /// A record's text has a citation.
    ContentWithCitation = "content-with-citation", InvalidArgument,
        "a record's text cites something by itself",
        "Leave [^label] out and name what the record rests on in source_refs or sources";
    /// A line of a record's text ends with an id.
    ContentWithBlockId = "content-with-block-id", InvalidArgument,
        "a line of a record's text ends with a block id",
        "Leave ^id out: ids are given";
    /// A source is named twice, or in two ways.
    DuplicateReference = "duplicate-reference", InvalidArgument,
        "a record names its sources once each, in source_refs or in sources",
        "Name each once, in one of the two";
    /// More headings than there are levels.
    TooManyHeadings = "too-many-headings", InvalidArgument,
        "headings have six levels",
        "Put the record under fewer";
    /// A heading that would be none.
    InvalidHeading = "invalid-heading", InvalidArgument,
        "this cannot be a heading",
        "Give one line of text";
    /// A position is none.
    InvalidPosition = "invalid-position", InvalidArgument,
        "a position is start, end, before or after",
        "Give one of them; before and after with anchor_memory_id, start and end without";
    /// The record that a position is relative to is not under those headings.
    AnchorElsewhere = "anchor-elsewhere", InvalidArgument,
        "the anchor is not a record directly under these headings",
        "Name a record that is, or the headings it is under";
    /// A record is named by more operations than one.
    RecordNamedTwice = "record-named-twice", InvalidArgument,
        "the request does two things to one record",
        "Update or delete a record once; move it once";
    /// Not all ids of a merged record are named.
    MergedRecordsApart = "merged-records-apart", InvalidArgument,
        "records that were merged move together",
        "Name all ids of the paragraph";
    /// A path leads out of the workspace.
    PathOutside = "path-outside", PathOutsideWorkspace,
        "the path leads out of the workspace",
        "Leave .. out, and give it relative to the workspace";
    /// A path is no topic's.
    NotATopic = "not-a-topic", ReadOnlyPath,
        "only topics can be edited, and this is the path of none",
        "Give topics/….md; core.md and timeline/ follow from topics, and sources/ is never edited";
    /// The topic that every prompt gets is the owner's.
    CoreOwnerOnly = "core-owner-only", ReadOnlyPath,
        "topics/core.md is in every prompt, so only the owner may edit it",
        "Put it into another topic, or ask the owner";
    /// A patch expects other text.
    ContextMismatch = "context-mismatch", PatchConflict,
        "the patch expects other text at this line",
        "Read the topic again and make the patch anew";
    /// A patch goes on behind the topic's end.
    PastEnd = "past-end", PatchConflict,
        "the patch expects lines behind the end of the topic",
        "Read the topic again and make the patch anew";
    /// Two hunks change the same lines.
    OverlappingHunks = "overlapping-hunks", PatchConflict,
        "two hunks of the patch are about the same lines",
        "Make one of them";
    /// A topic is to be created that there is.
    TopicExists = "topic-exists", PatchConflict,
        "there is such a topic already",
        "Change it in place of creating it";
    /// A topic is to be changed or deleted that there is not.
    NoSuchTopic = "no-such-topic", PatchConflict,
        "there is no such topic",
        "Look the path up, or create the topic";
    /// A topic is to be changed in part whose bytes are no text.
    UnreadableTopic = "unreadable-topic", InvalidTopicFormat,
        "the topic is not UTF-8, so no part of it can be changed",
        "Give it anew as a whole, or delete it";
    /// There is no record of this id.
    NoSuchRecord = "no-such-record", MemoryNotFound,
        "there is no record of this id",
        "Look it up with a search: ids stand at the end of paragraphs, behind ^";
    /// The caller may only add.
    RewritesCommitted = "rewrites-committed", AppendOnlyRequired,
        "you may add to topics, and this would change what is there",
        "Write new paragraphs at the end of the topic, and leave everything else as it is";
    /// Sources are quoted, and nobody says on whose authority.
    AuthorityIncomplete = "authority-incomplete", WriterPreconditionFailed,
        "the session does not say on whose authority sources are quoted",
        "Open the session with the speaker's kind, id and name, a principal, a tier and how they take part";
    /// A record has the id of a quoted source, and says something else.
    QuotedSourceDiffers = "quoted-source-differs", CommitRejected,
        "the archive holds another record under the id of this source, and the first stays",
        "Verify the archive: ids of quoted sources are made from what they say";
}

/// What a fault is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Why {
    /// The request, or what it would do.
    Update(Reason),
    /// The topics as they would be.
    Edit(EditReason),
    /// A quoted source as a record, with code and reason as archives give them.
    Source(Code, &'static str),
}

impl Why {
    /// The coarse code that other programs know.
    #[must_use]
    pub fn code(self) -> Code {
        match self {
            Self::Update(reason) => reason.code(),
            Self::Edit(EditReason::MissingSource) => Code::MissingSource,
            Self::Edit(_) => Code::InvalidTopicFormat,
            Self::Source(code, _) => code,
        }
    }

    /// The stable, kebab-case word.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Update(reason) => reason.as_str(),
            Self::Edit(reason) => reason.as_str(),
            Self::Source(_, reason) => reason,
        }
    }
}

/// One thing for which an update is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Why.
    pub why: Why,
    /// The file it is about.
    pub path: Option<String>,
    /// The line, from 1: of that file, or, for a patch that cannot be read, of the patch.
    pub line: Option<u64>,
    /// The column in it, from 1, in characters.
    pub column: Option<u64>,
    /// Where in the request it stands: `memory_changes[2].content`.
    pub field: Option<String>,
    /// What it is about: an id, a label, a path, the name of a limit.
    pub subject: Option<String>,
    /// What was expected and what was found, where that is what is wrong; none: nothing, the topic's end.
    pub expected: Option<(String, Option<String>)>,
    /// For people: what is wrong and what to do.
    pub message: String,
}

impl Fault {
    /// Of the request, at this place of it.
    pub(super) fn at(reason: Reason, field: impl Into<String>) -> Self {
        Self { field: Some(field.into()), ..Self::new(reason) }
    }

    /// Of what the request would do to this file.
    pub(super) fn of(reason: Reason, path: impl Into<String>) -> Self {
        Self { path: Some(path.into()), ..Self::new(reason) }
    }

    pub(super) fn new(reason: Reason) -> Self {
        Self {
            why: Why::Update(reason),
            path: None,
            line: None,
            column: None,
            field: None,
            subject: None,
            expected: None,
            message: format!("{}. {}", reason.what(), reason.remedy()),
        }
    }

    /// About this.
    pub(super) fn about(self, subject: impl Into<String>) -> Self {
        Self { subject: Some(subject.into()), ..self }
    }

    /// At this place of the request.
    pub(super) fn in_field(self, field: impl Into<String>) -> Self {
        Self { field: Some(field.into()), ..self }
    }

    /// In this line.
    pub(super) fn in_line(self, line: usize) -> Self {
        Self { line: Some(line as u64), ..self }
    }

    /// For a limit: its name, what it is set to, and what was asked for.
    pub(super) fn over(reason: Reason, field: &str, limit: &'static str, allowed: u64, asked: u64) -> Self {
        let message = format!("{} ({asked}; {limit} allows {allowed}). {}", reason.what(), reason.remedy());
        Self { message, ..Self::at(reason, field).about(limit) }
    }

    /// Of a record's footnote, which could not be written so that it says what the request does.
    pub(super) fn of_record(code: FaultCode, field: impl Into<String>) -> Self {
        Self {
            why: Why::Edit(EditReason::Topic(code)),
            message:
                "the footnote could not be written: what a source is called stands in a link. Leave ] and line breaks \
                      out of it"
                    .to_owned(),
            ..Self::at(Reason::WrongType, field)
        }
    }

    /// Of a patch that does not fit a topic.
    pub(super) fn of_conflict(conflict: Conflict, path: &TopicPath) -> Self {
        let line = conflict.line.map(|line| line as u64);
        Self { line, expected: conflict.expected, ..Self::of(conflict.reason, path.as_str()).in_field("patch") }
    }

    pub(super) fn of_edit(fault: EditFault) -> Self {
        Self {
            why: Why::Edit(fault.reason),
            path: Some(fault.path.to_string()),
            line: Some(fault.line as u64),
            column: Some(fault.column as u64),
            field: None,
            subject: Some(fault.subject),
            expected: None,
            message: format!("{}. {}", fault.reason.what(), fault.reason.remedy()),
        }
    }

    /// Of quoted sources, which are records like others. What stands for a line there is the place in the list.
    pub(super) fn of_source(problem: Problem) -> Self {
        Self {
            why: Why::Source(Code::parse(problem.code).unwrap_or(Code::InvalidArgument), problem.reason),
            path: problem.path,
            line: None,
            column: None,
            field: problem.line.and_then(|number| number.checked_sub(1)).map(|at| format!("sources[{at}]")),
            subject: problem.subject,
            expected: None,
            message: problem.message,
        }
    }
}

impl core::fmt::Display for Fault {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match (&self.path, self.line) {
            (Some(path), Some(line)) => write!(f, "{path}:{line}: ")?,
            (Some(path), None) => write!(f, "{path}: ")?,
            (None, _) => {}
        }
        if let Some(field) = &self.field {
            write!(f, "{field}: ")?;
        }
        if let Some(subject) = &self.subject {
            write!(f, "{subject}: ")?;
        }
        f.write_str(&self.message)
    }
}

/// An update that is not made. Nothing is to be changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rejection {
    /// The workspace is not as the request takes it to be: read again, and plan anew.
    Stale {
        /// The revision that the request names.
        base: String,
        /// The revision now.
        revision: String,
    },
    /// It breaks rules: every fault that was found, at least one. The first is the one that a program which stops at the
    /// first would tell.
    Refused(Vec<Fault>),
}

impl Rejection {
    /// The coarse code of the first thing that is wrong.
    #[must_use]
    pub fn code(&self) -> Code {
        match self {
            Self::Stale { .. } => Code::ConcurrentUpdate,
            Self::Refused(faults) => faults.first().map_or(Code::InvalidArgument, |fault| fault.why.code()),
        }
    }

    /// Its faults; none if it is stale.
    #[must_use]
    pub fn faults(&self) -> &[Fault] {
        match self {
            Self::Stale { .. } => &[],
            Self::Refused(faults) => faults,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reason_says_what_to_do() {
        for (at, reason) in Reason::ALL.iter().enumerate() {
            assert!(!reason.what().is_empty() && !reason.remedy().ends_with('.'), "{reason:?}");
            assert!(reason.remedy().starts_with(char::is_uppercase), "{reason:?}");
            assert!(reason.as_str().bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-'), "{reason:?}");
            assert!(Reason::ALL[..at].iter().all(|other| other.as_str() != reason.as_str()), "{reason:?}");
            assert!(EditReason::OWN.iter().all(|other| other.as_str() != reason.as_str()), "{reason:?}");
        }
    }
}
