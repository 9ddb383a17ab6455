//! Rows of `authority.jsonl`: which tier may use which tool, and what of an authority is kept.

use recollex_core::trust::{Authority, CHECK, decide, tool_capability};
use serde_json::json;

use crate::{Input, Observed, Outcome};

pub(crate) fn observe(input: &Input<'_>) -> Observed {
    if let Some(op) = input.maybe("op") {
        return match op.text()? {
            "normalize" => Ok(Outcome::Shown(normalize(&input.field("value")?))),
            _ => Err(op.fault("no such operation")),
        };
    }
    let tool = input.field("tool")?;
    let capability = tool_capability(tool.text()?).ok_or_else(|| tool.fault("no such tool"))?;
    let tier = input.field("tier")?.optional_text()?;
    let decision = decide(tier, capability);
    Ok(Outcome::Shown(json!({
        "allowed": decision.allowed,
        "check": CHECK,
        "reason_code": decision.reason_code,
        "tier": tier,
        "capability": capability.as_str(),
    })))
}

/// The six texts, or an empty object where they are no authority.
fn normalize(value: &Input<'_>) -> serde_json::Value {
    Authority::read(value.value()).map_or_else(
        || json!({}),
        |authority| {
            json!({
                "speaker_kind": authority.speaker_kind,
                "speaker_id": authority.speaker_id,
                "speaker_display": authority.speaker_display,
                "principal_id": authority.principal_id,
                "authority_tier": authority.authority_tier,
                "interaction": authority.interaction,
            })
        },
    )
}
