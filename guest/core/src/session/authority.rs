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

/// Problems of records that claim more authority than their caller has: a paired caller cannot speak as the owner.
#[must_use]
pub fn overclaims(caller: Option<Tier>, records: &[NewRecord]) -> Vec<Problem> {
    if caller == Some(Tier::Owner) {
        return Vec::new();
    }
    let claimed = (1..).zip(records).filter(|(_, record)| record.tier.as_deref() == Some(Tier::Owner.as_str()));
    let problem = |(number, record): (u64, &NewRecord)| Problem {
        code: "AUTHORITY_CAPABILITY_DENIED",
        reason: "tier-above-caller",
        path: None,
        line: Some(number),
        subject: Some(format!("{}/{}/{}", record.provider, record.thread, record.id)),
        message: "a paired caller cannot archive as the owner; leave the tier out or give `paired`".to_owned(),
    };
    claimed.map(problem).collect()
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

    #[test]
    fn only_the_owner_speaks_as_the_owner() {
        let record = |tier: Option<&str>| NewRecord { tier: tier.map(str::to_owned), ..NewRecord::default() };
        let records = [record(None), record(Some("paired")), record(Some("owner")), record(Some("nobody"))];
        assert_eq!(overclaims(Some(Tier::Owner), &records), []);
        let lines: Vec<_> = overclaims(Some(Tier::Paired), &records).into_iter().map(|problem| problem.line).collect();
        assert_eq!(lines, [Some(3)]);
    }
}
