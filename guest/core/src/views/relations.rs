//! `relations.json`: which block links to which.

use super::json::quote;
use crate::topic::Unit;

/// The file's content: for every unit the blocks its links name, and the same the other way round for blocks that any link
/// names, a link to itself included. Everything in code-point order, each once.
pub fn relations(units: &[Unit]) -> String {
    relations_of(units.iter().map(|unit| (unit.id.as_str(), unit.relations.iter().map(|id| id.as_str()).collect())))
}

/// The same of ids of units, each with the blocks its links name.
pub(super) fn relations_of<'u>(units: impl Iterator<Item = (&'u str, Vec<&'u str>)>) -> String {
    // Sorted once, in the place of maps of sets: there may be a hundred thousand.
    let mut outbound: Vec<(&str, Vec<&str>)> = units.collect();
    outbound.sort_by_key(|(id, _)| *id);
    let mut named: Vec<(&str, &str)> = Vec::new();
    for (id, targets) in &mut outbound {
        targets.sort_unstable();
        targets.dedup();
        named.extend(targets.iter().map(|target| (*target, *id)));
    }
    named.sort_unstable();
    named.dedup();
    let mut out = String::from("{\"backlinks\": {");
    for (number, same) in named.chunk_by(|(a, _), (b, _)| a == b).enumerate() {
        let target = same.first().map_or("", |(target, _)| *target);
        member(number, target, same.iter().map(|(_, from)| *from), &mut out);
    }
    out.push_str("}, \"outbound\": {");
    for (number, (id, targets)) in outbound.iter().enumerate() {
        member(number, id, targets.iter().copied(), &mut out);
    }
    out.push_str("}}\n");
    out
}

fn member<'u>(number: usize, id: &str, others: impl Iterator<Item = &'u str>, out: &mut String) {
    if number > 0 {
        out.push_str(", ");
    }
    quote(id, out);
    out.push_str(": [");
    for (number, other) in others.enumerate() {
        if number > 0 {
            out.push_str(", ");
        }
        quote(other, out);
    }
    out.push(']');
}
