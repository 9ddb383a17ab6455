//! What a caller may say of themselves and of others when they archive (FORMAT.md, "Callers").
//!
//! Knows what a record states of its origin. Must not know whether it is new, or where it goes.

use super::authority::CAPABILITY_DENIED;
use crate::source::{NewRecord, Problem, Tier};
use crate::text::{caseless, identity_part};

/// Kind of speaker that only the owner may give.
const OWNER_KIND: &str = "owner";

/// Keeps a batch to what its caller may say. An owner vouches for anything. A paired caller speaks for themselves: tier and
/// principal are filled in where they are missing (`principal` is the session's, if it has one), and records that claim the
/// owner's tier or kind, another principal, or that of the owner (`owner`, if it is known), are refused.
///
/// # Errors
/// A problem for each such claim; `line` is the record's place in the batch, from 1.
pub fn keep_to_caller(
    caller: Option<Tier>,
    principal: Option<&str>,
    owner: Option<&str>,
    records: &mut [NewRecord],
) -> Result<(), Vec<Problem>> {
    if caller == Some(Tier::Owner) {
        return Ok(());
    }
    let mut problems = Vec::new();
    for (number, record) in (1..).zip(records) {
        let mut refuse = |reason, message: &str| {
            problems.push(Problem {
                code: CAPABILITY_DENIED,
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
        // In whatever spelling: who reads a kind must not have to look twice.
        if record.speaker_kind.as_deref().is_some_and(|kind| caseless(&identity_part(kind)) == OWNER_KIND) {
            refuse("owner-kind", "a paired caller cannot archive what the owner said; give another kind of speaker");
        }
        match (record.principal.as_deref().filter(|named| !named.is_empty()), principal) {
            (None, Some(principal)) => record.principal = Some(principal.to_owned()),
            (Some(named), Some(principal)) if named != principal => {
                refuse("other-principal", "a paired caller archives under their own principal; leave it out");
            }
            (Some(named), None) if Some(named) == owner => {
                refuse("other-principal", "that principal is the owner's; leave it out");
            }
            _ => {}
        }
    }
    if problems.is_empty() { Ok(()) } else { Err(problems) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reasons(caller: Option<Tier>, principal: Option<&str>, record: &mut NewRecord) -> Vec<&'static str> {
        let kept = keep_to_caller(caller, principal, Some("ada"), core::slice::from_mut(record));
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
            let found = reasons(caller, None, &mut claims.clone());
            assert_eq!(found, ["tier-above-caller", "owner-kind", "other-principal"], "the owner's own principal");
        }
        for kind in ["Owner", " owner\n", "ow\u{200b}ner", "ＯＷＮＥＲ", "o\u{202e}wner"] {
            let mut record = NewRecord { speaker_kind: Some(kind.to_owned()), ..NewRecord::default() };
            assert_eq!(reasons(Some(Tier::Paired), None, &mut record), ["owner-kind"], "{kind:?}");
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
