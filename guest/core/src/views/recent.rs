//! `recent_events.jsonl`: the claims made last.

use super::json::{Json, object};
use super::runtime::RuntimeState;
use crate::topic::Unit;
use std::collections::BTreeSet;

/// The file's content: of all units that `state` has an order for, the last `limit`, the oldest first, a line each.
pub fn recent_events(units: &[Unit], state: &RuntimeState, limit: usize) -> String {
    let mut ordered: Vec<(u64, &Unit)> =
        units.iter().filter_map(|unit| state.order_of(unit.id.as_str()).map(|order| (order, unit))).collect();
    // Stable: of two with one number, the one that comes first in the topics.
    ordered.sort_by_key(|(order, _)| *order);
    let skipped = ordered.len().saturating_sub(limit);
    let mut out = String::new();
    for (order, unit) in ordered.into_iter().skip(skipped) {
        line(unit, order, &mut out);
    }
    out
}

/// Adds a unit's line.
pub(super) fn line(unit: &Unit, order: u64, out: &mut String) {
    let mut seen = BTreeSet::new();
    let whens = unit.evidence.iter().filter_map(|evidence| evidence.when).filter(|when| seen.insert(*when));
    let whens = Json::texts(whens.map(|when| when.to_string()));
    let refs = Json::texts(unit.refs.iter().map(ToString::to_string));
    let members = [
        ("memory_id", Json::text(unit.id.as_str())),
        ("when", Json::optional(unit.when.map(|when| when.to_string()))),
        ("whens", whens),
        ("content", Json::text(unit.content.as_str())),
        ("refs", refs.clone()),
        ("source_refs", refs),
        ("topic_path", Json::text(unit.topic.as_str())),
        ("headings", Json::texts(unit.headings.iter().map(String::as_str))),
        ("created_order", Json::Number(order)),
    ];
    object(members, out);
    out.push('\n');
}
