//! Which tier may make which call (FORMAT.md, "Callers").
//!
//! One table says which tier has which capability, another which capability a verb of a session needs; a third names the
//! capabilities of the other program's tools, for hosts that offer those. Knows words and tables only.

use crate::source::Tier;
use crate::text::{identity_part, is_whitespace};
use serde_json::Value;

/// The check that [`decide`] makes, as decisions name it.
pub const CHECK: &str = "tier_capability_table";

/// Something that a tier may be given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Capability {
    /// Answering in a conversation.
    Reply,
    /// Reading memory, as far as the audience goes.
    MemoryRead,
    /// Adding what they said themselves.
    SourceAppend,
    /// Vouching for what others said.
    TrustedPromote,
    /// What the workspace is, who may see what, and records that no metadata speaks for.
    Manage,
    /// Files beside memory: a host's.
    FsRead,
    /// Running programs: a host's.
    ProcessExec,
    /// Steering a browser: a host's.
    BrowserControl,
}

impl Capability {
    /// The word that hosts use for it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Reply => "reply",
            Self::MemoryRead => "memory.read",
            Self::SourceAppend => "memory.source.append",
            Self::TrustedPromote => "memory.trusted.promote",
            Self::Manage => "memory.manage",
            Self::FsRead => "fs.read",
            Self::ProcessExec => "process.exec",
            Self::BrowserControl => "browser.control",
        }
    }
}

/// Whether a tier has a capability. None: there is no such tier.
fn has(tier: &str, capability: Capability) -> Option<bool> {
    match tier {
        "owner" => Some(true),
        "paired" => Some(matches!(capability, Capability::Reply | Capability::MemoryRead | Capability::SourceAppend)),
        // A page that drives a browser: it has no part in memory.
        "mcp_browser" => Some(capability == Capability::BrowserControl),
        _ => None,
    }
}

macro_rules! verbs {
    ($($(#[$doc:meta])* $name:ident = $text:literal needs $capability:ident;)*) => {
        /// What is called: one for each function of a session (`wit/workspace.wit`).
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Verb {
            $($(#[$doc])* $name,)*
        }

        impl Verb {
            /// All of them.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];

            /// The name of its function in the contract.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$name => $text,)*
                }
            }

            /// What a caller needs for it.
            #[must_use]
            pub const fn capability(self) -> Capability {
                match self {
                    $(Self::$name => Capability::$capability,)*
                }
            }
        }
    };
}

verbs! {
    /// Makes a workspace.
    Init = "init" needs Manage;
    /// Figures and health.
    Status = "status" needs MemoryRead;
    /// Adds evidence.
    Archive = "archive" needs SourceAppend;
    /// Adds to numbered conversations. Nothing in those says on whose authority a turn came about, so they are trusted:
    /// only who may vouch for anything may add to them.
    ArchiveNumbered = "archive-numbered" needs Manage;
    /// Keeps what somebody unpaired said: the runtime's own.
    ArchiveUnpaired = "archive-unpaired" needs Manage;
    /// Vouches for a record.
    Promote = "promote" needs TrustedPromote;
    /// Says what that would do.
    WouldPromote = "would-promote" needs TrustedPromote;
    /// Takes in an export, whoever speaks in it.
    StartImport = "start-import" needs Manage;
    /// Says what only the owner sees.
    Audience = "audience" needs Manage;
    /// Makes that more.
    NarrowAudience = "narrow-audience" needs Manage;
    /// Makes that less.
    WidenAudience = "widen-audience" needs Manage;
    /// Changes topics. Whoever is not the owner may only add to them.
    Update = "update" needs SourceAppend;
    /// Puts topics and views in order.
    Repair = "repair" needs Manage;
    /// Makes views anew after somebody has edited topics by hand.
    Refresh = "refresh" needs Manage;
    /// What every prompt holds.
    Core = "core" needs MemoryRead;
    /// Looks words up.
    Search = "search" needs MemoryRead;
    /// What a turn gets of it.
    Recall = "recall" needs MemoryRead;
    /// Reads a file or a record.
    Get = "get" needs MemoryRead;
    /// Reads a section of a file.
    GetSection = "get-section" needs MemoryRead;
    /// Reads a block.
    GetBlock = "get-block" needs MemoryRead;
    /// Looks lines up.
    Grep = "grep" needs MemoryRead;
    /// Claims by time.
    Timeline = "timeline" needs MemoryRead;
    /// What a claim rests on.
    Why = "why" needs MemoryRead;
    /// Lists files.
    Browse = "browse" needs MemoryRead;
    /// Lists blocks.
    Structure = "structure" needs MemoryRead;
    /// Shows blocks that another program refers to.
    References = "references" needs MemoryRead;
    /// Checks files.
    Verify = "verify" needs MemoryRead;
    /// Everything of turns: what conversations owe, writing it, putting memory in order.
    Turns = "turns" needs Manage;
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
            Self::TierMissing => TIER_MISSING,
            Self::Capability { .. } => CAPABILITY_DENIED,
        }
    }

    /// Reason of the closed list.
    #[must_use]
    pub const fn reason(self) -> &'static str {
        match self {
            Self::TierMissing => "tier-missing",
            Self::Capability { .. } => "owner-only",
        }
    }
}

const ALLOWED: &str = "AUTHORITY_ALLOWED";
const TIER_MISSING: &str = "AUTHORITY_TIER_MISSING";
const TIER_UNKNOWN: &str = "AUTHORITY_TIER_UNKNOWN";
pub(super) const CAPABILITY_DENIED: &str = "AUTHORITY_CAPABILITY_DENIED";

/// Whether `tier` may call `verb`.
///
/// # Errors
/// [`Denied`], if it may not.
pub fn authorise(tier: Option<Tier>, verb: Verb) -> Result<(), Denied> {
    let tier = tier.ok_or(Denied::TierMissing)?;
    if has(tier.as_str(), verb.capability()) == Some(true) { Ok(()) } else { Err(Denied::Capability { verb }) }
}

/// The capability that one of the other program's tools needs. None: there is no such tool, and nobody may use it.
#[must_use]
pub fn tool_capability(tool: &str) -> Option<Capability> {
    Some(match tool {
        "memory_search" | "memory_grep" | "memory_get" | "memory_browse" | "memory_status" => Capability::MemoryRead,
        "memory_update" => Capability::SourceAppend,
        "memory_promote" => Capability::TrustedPromote,
        "read" => Capability::FsRead,
        "bash" => Capability::ProcessExec,
        _ => return None,
    })
}

/// What came of asking for a capability, in words that can be logged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decision {
    /// Go on.
    pub allowed: bool,
    /// Why or why not: `AUTHORITY_…`.
    pub reason_code: &'static str,
}

/// Whether the tier of that name has a capability.
#[must_use]
pub fn decide(tier: Option<&str>, capability: Capability) -> Decision {
    let reason_code = match tier.map(|tier| has(tier, capability)) {
        None => TIER_MISSING,
        Some(None) => TIER_UNKNOWN,
        Some(Some(false)) => CAPABILITY_DENIED,
        Some(Some(true)) => ALLOWED,
    };
    Decision { allowed: reason_code == ALLOWED, reason_code }
}

/// On whose authority something comes, as the other program's nodes and sessions say it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Authority {
    /// `owner`, `human`, `runtime`, …
    pub speaker_kind: String,
    /// Who speaks, verbatim.
    pub speaker_id: String,
    /// Their name, normalised (FORMAT.md, "Labels"); `unknown` if nothing visible is left of it.
    pub speaker_display: String,
    /// On whose behalf.
    pub principal_id: String,
    /// `owner`, `paired` or `mcp_browser`.
    pub authority_tier: String,
    /// `interactive` where the owner is there in person.
    pub interaction: String,
}

impl Authority {
    /// Reads the six texts of an object. None if one is missing, is no text or is blank, or if there is no such tier: half
    /// an authority is none. Other keys mean nothing.
    #[must_use]
    pub fn read(value: &Value) -> Option<Self> {
        let text = |key: &str| {
            let text = value.get(key)?.as_str()?;
            text.chars().any(|c| !is_whitespace(c)).then(|| text.to_owned())
        };
        let display = identity_part(&text("speaker_display")?);
        let read = Self {
            speaker_kind: text("speaker_kind")?,
            speaker_id: text("speaker_id")?,
            speaker_display: if display.is_empty() { crate::source::UNKNOWN.to_owned() } else { display },
            principal_id: text("principal_id")?,
            authority_tier: text("authority_tier")?,
            interaction: text("interaction")?,
        };
        has(&read.authority_tier, Capability::Reply).map(|_| read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_whole_table() {
        let owner_only = [
            Verb::Init,
            Verb::ArchiveNumbered,
            Verb::ArchiveUnpaired,
            Verb::Promote,
            Verb::WouldPromote,
            Verb::StartImport,
            Verb::Audience,
            Verb::NarrowAudience,
            Verb::WidenAudience,
            Verb::Repair,
            Verb::Refresh,
            Verb::Turns,
        ];
        for verb in Verb::ALL.iter().copied() {
            assert_eq!(authorise(None, verb), Err(Denied::TierMissing));
            assert_eq!(authorise(Some(Tier::Owner), verb), Ok(()));
            let paired = authorise(Some(Tier::Paired), verb);
            assert_eq!(paired.is_ok(), !owner_only.contains(&verb), "{}", verb.name());
        }
    }

    #[test]
    fn half_an_authority_is_none() {
        let whole = json!({
            "speaker_kind": "human", "speaker_id": "u1", "speaker_display": " A:\u{200b} b ", "principal_id": "p",
            "authority_tier": "paired", "interaction": "interactive", "more": 1,
        });
        let read = Authority::read(&whole).expect("it is whole");
        assert_eq!((&*read.speaker_display, &*read.speaker_id), ("A： b", "u1"));
        for key in ["speaker_kind", "speaker_id", "speaker_display", "principal_id", "authority_tier", "interaction"] {
            for wrong in [json!(""), json!(" \u{3000}"), json!(1), Value::Null] {
                let mut part = whole.clone();
                part[key] = wrong.clone();
                assert_eq!(Authority::read(&part), None, "{key} {wrong}");
            }
        }
        for other in [json!("Owner"), json!("owner "), json!("root")] {
            let mut part = whole.clone();
            part["authority_tier"] = other;
            assert_eq!(Authority::read(&part), None);
        }
        assert_eq!(Authority::read(&json!([])), None);
    }
}
