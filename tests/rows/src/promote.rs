//! Rows of `promote.jsonl`: who vouches for which record, and what of an archive and of the audit log changes.

use recollex_core::ids::{Location, SourceId};
use recollex_core::source::{FrameRef, Limits, Scanner, Tier};
use recollex_core::trust::{Authority, Promoter, Promotion, Verb, authorise, damaged};
use serde_json::{Map, Value, json};

use crate::{Input, Malformed, Observed, Outcome, bytes_value};

/// The principal of the installation that the rows were observed on.
pub const OWNER: &str = "owner/install/0123456789abcdef";

/// Where the audit log lies in a workspace.
pub const AUDIT: &str = ".scriptorium/trust-audit.jsonl";

pub(crate) fn observe(input: &Input<'_>) -> Observed {
    let id = input.field("source_id")?.text()?;
    let authority = input.field("authority")?;
    Ok(Outcome::Shown(match promote(input, id, Authority::read(authority.value()).as_ref())? {
        Some(changed) => {
            let is_new = !changed.is_empty();
            json!({
                "result": {"source_id": id, "promoted": is_new, "trust_state": "trusted"},
                "changed": changed,
            })
        }
        None => refused(),
    }))
}

/// A refusal, as rows show one: they do not say why.
#[must_use]
pub fn refused() -> Value {
    json!({"result": {"error": {"code": "error"}}, "changed": {}})
}

/// What changes; none if it is refused.
fn promote(
    input: &Input<'_>,
    id: &str,
    authority: Option<&Authority>,
) -> Result<Option<Map<String, Value>>, Malformed> {
    let tier = authority.and_then(|authority| Tier::parse(&authority.authority_tier));
    let promoter = Promoter {
        is_interactive: authority.is_some_and(|authority| authority.interaction == "interactive"),
        principal: authority.map(|authority| authority.principal_id.as_str()),
        owner: Some(OWNER),
    };
    if authorise(tier, Verb::Promote).is_err() || promoter.check().is_err() {
        return Ok(None);
    }
    let Ok(source) = SourceId::for_reading(id) else { return Ok(None) };
    let path = source.v2_path();
    let Some(file) = input.field("files")?.maybe(&path) else { return Ok(None) };
    let mut bytes = file.bytes()?;
    let mut planned = None;
    let mut sink = |frame: &FrameRef<'_>| {
        let header = bytes.get(frame.offset as usize..frame.record_offset as usize).unwrap_or_default();
        if frame.id == id {
            planned = Some(Promotion::plan(&path, frame, &String::from_utf8_lossy(header)));
        }
    };
    let mut scanner = Scanner::new(Some(Location::of_path(&path)), &Limits::default());
    scanner.push_bytes(&bytes, &mut sink);
    let end = scanner.finish(&mut sink);
    let fault = end.invalid_utf8.or(end.fault).map(|fault| damaged(&path, id, &fault));
    let (None, Some(Ok(promotion))) = (fault, planned) else { return Ok(None) };
    let mut changed = Map::new();
    if let Promotion::Needed(vouched) = promotion {
        let place = vouched.offset() as usize..(vouched.offset() + vouched.length()) as usize;
        bytes.splice(place, vouched.insert().bytes());
        changed.insert(
            AUDIT.to_owned(),
            promoter.audit_line(&vouched, 0.0).replace("1970-01-01T00:00:00+00:00", "<now>").into(),
        );
        changed.insert(path, bytes_value(&bytes));
    }
    Ok(Some(changed))
}
