//! Who may call what (decision D12, observed §11).
//!
//! Knows tiers and verbs. Must not know sessions, files or hosts: it is a table.

use crate::source::{NewRecord, Problem, Tier};

/// What is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    /// Makes a workspace.
    Init,
    /// Figures and health.
    Status,
    /// Adds evidence.
    Archive,
    /// Looks words up.
    Search,
    /// Reads a file or a record.
    Get,
    /// Lists files.
    Browse,
    /// Checks files.
    Verify,
}

impl Verb {
    /// Every verb.
    pub const ALL: [Self; 7] =
        [Self::Init, Self::Status, Self::Archive, Self::Search, Self::Get, Self::Browse, Self::Verify];

    /// The word people and scripts use for it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Init => "init",
            Self::Status => "status",
            Self::Archive => "archive",
            Self::Search => "search",
            Self::Get => "get",
            Self::Browse => "browse",
            Self::Verify => "verify",
        }
    }
}

/// A caller who may not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Denied {
    /// Nobody said who calls.
    #[error("this call needs a caller's tier: open the session with `owner` or `paired`")]
    TierMissing,
    /// This tier may not make this call.
    #[error("`{}` is for the owner; ask them, or open the session as the owner", .verb.name())]
    Capability {
        /// The call.
        verb: Verb,
    },
}

impl Denied {
    /// Code of the closed list (FORMAT.md, "Refusals").
    #[must_use]
    pub const fn code(self) -> &'static str {
        match self {
            Self::TierMissing => "AUTHORITY_TIER_MISSING",
            Self::Capability { .. } => "AUTHORITY_CAPABILITY_DENIED",
        }
    }
}

/// Whether `tier` may call `verb`.
///
/// # Errors
/// [`Denied`], if it may not.
pub const fn authorise(tier: Option<Tier>, verb: Verb) -> Result<(), Denied> {
    match (tier, verb) {
        (None, _) => Err(Denied::TierMissing),
        (Some(Tier::Owner), _)
        | (Some(Tier::Paired), Verb::Status | Verb::Archive | Verb::Search | Verb::Get | Verb::Browse | Verb::Verify) => {
            Ok(())
        }
        (Some(Tier::Paired), Verb::Init) => Err(Denied::Capability { verb }),
    }
}

/// Kind of speaker that only the owner may give.
const OWNER_KIND: &str = "owner";

/// Keeps a batch to what its caller may say. An owner vouches for anything. A paired caller speaks for themselves: tier and
/// principal are filled in where they are missing (`principal` is the session's, if it has one), and records that claim the
/// owner's tier or kind, or another principal, are refused.
///
/// # Errors
/// A problem for each such claim; `line` is the record's place in the batch, from 1.
pub fn keep_to_caller(
    caller: Option<Tier>,
    principal: Option<&str>,
    records: &mut [NewRecord],
) -> Result<(), Vec<Problem>> {
    if caller == Some(Tier::Owner) {
        return Ok(());
    }
    let mut problems = Vec::new();
    for (number, record) in (1..).zip(records) {
        let mut refuse = |reason, message: &str| {
            problems.push(Problem {
                code: "AUTHORITY_CAPABILITY_DENIED",
                reason,
                path: None,
                line: Some(number),
                subject: Some(format!("{}/{}/{}", record.provider, record.thread, record.id)),
                message: message.to_owned(),
            });
        };
        match record.tier.as_deref() {
            None => record.tier = Some(Tier::Paired.as_str().to_owned()),
            Some(tier) if tier == Tier::Owner.as_str() => {
                refuse("tier-above-caller", "a paired caller cannot archive as the owner; leave the tier out");
            }
            Some(_) => {}
        }
        if record.speaker_kind.as_deref() == Some(OWNER_KIND) {
            refuse("owner-kind", "a paired caller cannot archive what the owner said; give another kind of speaker");
        }
        match (record.principal.as_deref().filter(|named| !named.is_empty()), principal) {
            (None, Some(principal)) => record.principal = Some(principal.to_owned()),
            (Some(named), Some(principal)) if named != principal => {
                refuse("other-principal", "a paired caller archives under their own principal; leave it out");
            }
            _ => {}
        }
    }
    if problems.is_empty() { Ok(()) } else { Err(problems) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_whole_table() {
        for verb in Verb::ALL {
            assert_eq!(authorise(None, verb), Err(Denied::TierMissing));
            assert_eq!(authorise(Some(Tier::Owner), verb), Ok(()));
            let paired = authorise(Some(Tier::Paired), verb);
            assert_eq!(paired.is_ok(), verb != Verb::Init, "{}", verb.name());
        }
    }

    fn reasons(caller: Option<Tier>, principal: Option<&str>, record: &mut NewRecord) -> Vec<&'static str> {
        let kept = keep_to_caller(caller, principal, core::slice::from_mut(record));
        kept.err().unwrap_or_default().into_iter().map(|problem| problem.reason).collect()
    }

    #[test]
    fn only_the_owner_speaks_as_the_owner() {
        let claims = NewRecord {
            tier: Some("owner".to_owned()),
            speaker_kind: Some("owner".to_owned()),
            principal: Some("ada".to_owned()),
            ..NewRecord::default()
        };
        assert_eq!(reasons(Some(Tier::Owner), None, &mut claims.clone()), [""; 0]);
        for caller in [Some(Tier::Paired), None] {
            let found = reasons(caller, Some("tom"), &mut claims.clone());
            assert_eq!(found, ["tier-above-caller", "owner-kind", "other-principal"]);
        }
    }

    #[test]
    fn what_a_paired_caller_leaves_out_is_filled_in() {
        let mut record = NewRecord::default();
        assert_eq!(reasons(Some(Tier::Paired), Some("tom"), &mut record), [""; 0]);
        assert_eq!((record.tier.as_deref(), record.principal.as_deref()), (Some("paired"), Some("tom")));
        let mut record = NewRecord { principal: Some("tom".to_owned()), ..NewRecord::default() };
        assert_eq!(reasons(Some(Tier::Paired), Some("tom"), &mut record), [""; 0]);
        assert_eq!(reasons(Some(Tier::Paired), None, &mut record), [""; 0]);
    }
}
