//! `relations.json`: which block links to which.

use super::json::{Json, object};
use crate::topic::Unit;
use std::collections::{BTreeMap, BTreeSet};

/// The file's content: for every unit the blocks its links name, and the same the other way round for blocks that any link
/// names, a link to itself included. Everything in code-point order, each once.
pub fn relations(units: &[Unit]) -> String {
    let mut outbound: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    let mut backlinks: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for unit in units {
        let from = unit.id.as_str();
        let targets = outbound.entry(from).or_default();
        for target in &unit.relations {
            targets.insert(target.as_str());
            backlinks.entry(target.as_str()).or_default().insert(from);
        }
    }
    let mut out = String::from("{\"backlinks\": ");
    write(backlinks, &mut out);
    out.push_str(", \"outbound\": ");
    write(outbound, &mut out);
    out.push_str("}\n");
    out
}

fn write(relations: BTreeMap<&str, BTreeSet<&str>>, out: &mut String) {
    object(relations.into_iter().map(|(id, others)| (id, Json::texts(others))), out);
}
