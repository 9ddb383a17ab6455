//! Why an edit is refused.

use super::super::fault::FaultCode;
use crate::ids::TopicPath;

/// One thing for which an edit is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EditFault {
    /// Why.
    pub reason: EditReason,
    /// The topic it is about.
    pub path: TopicPath,
    /// The line, from 1: of the topic as the edit gives it; where something of a topic disappears, or the edit does not give
    /// it, of the topic as it was.
    pub line: usize,
    /// The column in it, from 1, in characters.
    pub column: usize,
    /// What it is about: a label, an id, a time, a target, a piece of evidence; or the topic's path below `topics/`.
    pub subject: String,
}

/// Why an edit is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EditReason {
    /// The topic would have this fault, and did not have it before.
    Topic(FaultCode),
    /// A block would disappear, and the request does not say that it shall.
    BlockIdRemoved,
    /// A link leads to a topic, and to no block in it.
    TopicLinkWithoutBlock,
    /// A link leads to a block that there is not.
    DanglingBlockLink,
    /// A block newly rests on something that may not be built on yet.
    UntrustedSource,
    /// A block newly rests on something outside of what this edit was given to work with.
    SourceNotOffered,
    /// A name for a quoted source, and the request quotes no such source.
    MissingSource,
}

impl EditReason {
    /// Those that are no faults of a topic by itself.
    pub const OWN: &'static [Self] = &[
        Self::BlockIdRemoved,
        Self::TopicLinkWithoutBlock,
        Self::DanglingBlockLink,
        Self::UntrustedSource,
        Self::SourceNotOffered,
        Self::MissingSource,
    ];

    /// The stable, kebab-case word.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Topic(code) => code.as_str(),
            Self::BlockIdRemoved => "block-id-removed",
            Self::TopicLinkWithoutBlock => "topic-link-without-block",
            Self::DanglingBlockLink => "dangling-block-link",
            Self::UntrustedSource => "untrusted-source",
            Self::SourceNotOffered => "source-not-offered",
            Self::MissingSource => "missing-source",
        }
    }

    /// The coarse code that other programs know.
    pub const fn code(self) -> &'static str {
        match self {
            Self::MissingSource => "MISSING_SOURCE",
            _ => "INVALID_TOPIC_FORMAT",
        }
    }

    /// For people: what is wrong.
    pub const fn what(self) -> &'static str {
        match self {
            Self::Topic(code) => code.what(),
            Self::BlockIdRemoved => "this block would disappear",
            Self::TopicLinkWithoutBlock => "this link leads to a topic and to no block in it",
            Self::DanglingBlockLink => "there is no block of this id",
            Self::UntrustedSource => "this source is pending, so nothing may be built on it",
            Self::SourceNotOffered => "this source is not among those this edit may cite",
            Self::MissingSource => "the request quotes no source of this name",
        }
    }

    /// For people: what to do.
    pub const fn remedy(self) -> &'static str {
        match self {
            Self::Topic(code) => code.remedy(),
            Self::BlockIdRemoved => {
                "Keep its id, at the end of the paragraph that now says it, or name it among the blocks to remove"
            }
            Self::TopicLinkWithoutBlock => "Link to topic.md#^id of a block, or write the topic's name without a link",
            Self::DanglingBlockLink => "Link to a block that there is, or leave the link out",
            Self::UntrustedSource => "Promote it first, or cite something else",
            Self::SourceNotOffered => "Cite only what the batch contains",
            Self::MissingSource => "Add it to the request's sources, or name a record that is archived",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reason_says_what_to_do() {
        for reason in EditReason::OWN {
            assert!(!reason.what().is_empty() && reason.remedy().starts_with(char::is_uppercase), "{reason:?}");
            assert!(FaultCode::ALL.iter().all(|code| code.as_str() != reason.as_str()));
        }
        assert_eq!(EditReason::Topic(FaultCode::InvalidTime).as_str(), "invalid-time");
    }
}
