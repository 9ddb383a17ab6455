//! What is wrong with a session, and stays one node's trouble.

use super::node::Place;
use core::fmt;

/// Something wrong with a session. The rest of it goes on, and so do other sessions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionFault {
    /// What kind of fault.
    pub code: SessionFaultCode,
    /// The file or line it is about; none: the session as a whole.
    pub place: Option<Place>,
    /// The node's id as it stands there, as far as known.
    pub node: Option<String>,
    /// Details for people.
    pub detail: String,
}

impl fmt::Display for SessionFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(place) = &self.place {
            write!(f, "{place}: ")?;
        }
        f.write_str(self.code.what())?;
        if let Some(node) = &self.node {
            write!(f, " ({node})")?;
        }
        if !self.detail.is_empty() {
            write!(f, ": {}", self.detail)?;
        }
        write!(f, "; {}", self.code.remedy())
    }
}

macro_rules! fault_codes {
    ($($(#[$doc:meta])* $name:ident = $text:literal, $what:literal, $remedy:literal;)*) => {
        /// Kinds of faults of a session (FORMAT.md, "Faults of sessions").
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum SessionFaultCode {
            $($(#[$doc])* $name,)*
        }

        impl SessionFaultCode {
            /// All of them, in the order of FORMAT.md.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];

            /// The stable, kebab-case word.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$name => $text,)*
                }
            }

            /// What is wrong, for people.
            #[must_use]
            pub const fn what(self) -> &'static str {
                match self {
                    $(Self::$name => $what,)*
                }
            }

            /// What becomes of it and what to do.
            #[must_use]
            pub const fn remedy(self) -> &'static str {
                match self {
                    $(Self::$name => $remedy,)*
                }
            }
        }
    };
}

fault_codes! {
    /// The JSON is not over where the file or line is.
    HalfWrittenNode = "half-written-node",
        "the file or line ends within its JSON",
        "it is read again next time; if it stays so, restore it from a copy";
    /// No JSON object, or one that two readers would read differently.
    MalformedNode = "malformed-node",
        "this is no node: not UTF-8, no JSON object, a key given twice, or metadata that is no object",
        "put it right where the conversation is kept; it is neither written nor marked until then";
    /// Longer than a node may be.
    NodeTooLong = "node-too-long",
        "longer than limits.conversation-bytes allows",
        "raise the limit";
    /// It cannot be known again.
    NodeWithoutId = "node-without-id",
        "the node has no id",
        "none is made up; give it one where the conversation is kept";
    /// A second node says something else under the same id.
    DuplicateNode = "duplicate-node",
        "an earlier node has the id and says something else",
        "the earlier one counts; give this one an id of its own";
    /// What a node comes behind is not there.
    MissingPredecessor = "missing-predecessor",
        "the node it comes behind is not there",
        "a branch begins here until it is; what stands before the gap is a branch of its own";
    /// Nodes come behind one another in a circle.
    CircularPredecessors = "circular-predecessors",
        "nodes come behind one another in a circle",
        "the first of them begins a branch; correct its predecessor";
    /// The session says it is at a node that it does not have.
    UnknownHead = "unknown-head",
        "the session's head is no node of it",
        "the newest branch counts as the current one";
    /// It should say on whose authority it came about (D25).
    NodeWithoutAuthority = "node-without-authority",
        "the node does not say on whose authority it came about, as it should",
        "it is left out; the rest of the session is written";
    /// Who spoke is said with a word that is not known.
    UnknownRole = "unknown-role",
        "who spoke is said with a word that is not known",
        "it is left out; known are user, assistant, llm, tool and code";
    /// The archive would refuse it.
    RefusedTurn = "refused-turn",
        "no archive can hold the turn",
        "it is left out; the rest of the session is written";
    /// A line that should say which nodes are written does not.
    BadMarkLine = "bad-mark-line",
        "the line says that nodes were written, and not which or where",
        "it counts for nothing; what it was about is offered again";
}
