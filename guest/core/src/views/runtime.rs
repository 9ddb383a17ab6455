//! `runtime.json`: in which order claims were made, and what else the file keeps.

use super::json::quote;
use crate::topic::Unit;
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// Members besides the order, in the order of the file, with what stands for one that is missing.
const MEMBERS: [(&str, Value); 4] = [
    ("write_commits_since_global", Value::Null),
    ("local_batches", Value::Null),
    ("local_tokens", Value::Null),
    ("last_global_at", Value::Null),
];

/// Members that count from nought.
const COUNTERS: usize = 3;

const ORDER: &str = "creation_order";

/// State of the derived views. Only the order is this program's to change; the other members belong to whoever organises
/// memory, and are handed through as they are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuntimeState {
    /// Ids with their numbers, in the order in which they came.
    order: Vec<(String, u64)>,
    known: BTreeMap<String, u64>,
    members: Vec<Value>,
    other: Map<String, Value>,
}

impl Default for RuntimeState {
    fn default() -> Self {
        Self::read("{}")
    }
}

impl RuntimeState {
    /// Reads the file. One that is no JSON object is as if it were empty; an order that is no whole number does not count.
    pub fn read(text: &str) -> Self {
        let mut members = match serde_json::from_str(text) {
            Ok(Value::Object(members)) => members,
            _ => Map::new(),
        };
        let mut order: Vec<(String, u64)> = match members.remove(ORDER) {
            Some(Value::Object(order)) => {
                order.into_iter().filter_map(|(id, number)| Some((id, number.as_u64()?))).collect()
            }
            _ => Vec::new(),
        };
        order.sort_by_key(|(_, number)| *number);
        let known = order.iter().cloned().collect();
        let kept = MEMBERS.iter().enumerate().map(|(at, (name, _))| {
            let missing = if at < COUNTERS { Value::from(0) } else { Value::Null };
            members.remove(*name).unwrap_or(missing)
        });
        let kept = kept.collect();
        Self { order, known, members: kept, other: members }
    }

    /// What the file has besides: other programs' members. They are not written, because their programs drop them too;
    /// whoever needs one keeps it elsewhere first.
    pub fn other(&self) -> &Map<String, Value> {
        &self.other
    }

    /// The number of a block, if it has one.
    pub fn order_of(&self, id: &str) -> Option<u64> {
        self.known.get(id).copied()
    }

    /// Ids with their numbers, the greatest number first; of equal numbers in no order that means anything.
    pub fn newest(&self) -> impl Iterator<Item = (&str, u64)> {
        self.order.iter().rev().map(|(id, number)| (id.as_str(), *number))
    }

    /// The number that the next new block gets.
    pub fn next(&self) -> u64 {
        self.order.last().map_or(0, |(_, number)| number.saturating_add(1))
    }

    /// Where no block has a number yet: gives each its place among all units, which the ids of one block share.
    pub fn seed(&mut self, units: &[Unit]) {
        self.seed_with(units.iter().map(|unit| (unit.id.as_str().to_owned(), unit.order as u64)).collect());
    }

    /// The same, the numbers given.
    pub(super) fn seed_with(&mut self, order: Vec<(String, u64)>) {
        if self.order.is_empty() {
            self.known = order.iter().cloned().collect();
            self.order = order;
        }
    }

    /// Whether no block has a number.
    pub fn is_empty(&self) -> bool {
        self.order.is_empty()
    }

    /// Gives numbers to blocks that have none: behind the greatest, in the order of `units`. Those of blocks that are gone
    /// stay taken.
    pub fn extend(&mut self, units: &[Unit]) {
        self.extend_ids(units.iter().map(|unit| unit.id.as_str()));
    }

    /// The same for ids.
    pub fn extend_ids<'i>(&mut self, ids: impl IntoIterator<Item = &'i str>) {
        let mut next = self.next();
        for id in ids {
            if !self.known.contains_key(id) {
                self.known.insert(id.to_owned(), next);
                self.order.push((id.to_owned(), next));
                next = next.saturating_add(1);
            }
        }
    }

    /// The file's content.
    pub fn write(&self) -> String {
        self.write_with(&[])
    }

    /// The file's content once these ids, which have no number, have been given one each, in order.
    pub fn write_with(&self, new: &[String]) -> String {
        let mut out = String::from("{\n  \"creation_order\": {");
        let known = self.order.iter().map(|(id, number)| (id, *number));
        let numbers = (0..).map(|more| self.next().saturating_add(more));
        for (at, (id, number)) in known.chain(new.iter().zip(numbers)).enumerate() {
            out.push_str(if at == 0 { "\n    " } else { ",\n    " });
            quote(id, &mut out);
            out.push_str(": ");
            out.push_str(&number.to_string());
        }
        out.push_str(if self.order.is_empty() && new.is_empty() { "}" } else { "\n  }" });
        for ((name, _), value) in MEMBERS.iter().zip(&self.members) {
            out.push_str(&format!(",\n  \"{name}\": "));
            // A value that came from JSON can be written as JSON.
            out.push_str(&indented(value));
        }
        out.push_str("\n}\n");
        out
    }
}

/// A value over several lines, one level in.
fn indented(value: &Value) -> String {
    serde_json::to_string_pretty(value).unwrap_or_else(|_| "null".to_owned()).replace('\n', "\n  ")
}

#[cfg(test)]
mod tests {
    use super::*;

    const EMPTY: &str = "{\n  \"creation_order\": {},\n  \"write_commits_since_global\": 0,\n  \"local_batches\": 0,\n  \
                         \"local_tokens\": 0,\n  \"last_global_at\": null\n}\n";

    #[test]
    fn what_cannot_be_read_is_as_if_empty() {
        for text in
            ["", "[]", "null", "{", "{\"creation_order\": 7}", "{\"creation_order\": {\"a\": \"x\", \"b\": -1}}"]
        {
            assert_eq!(RuntimeState::read(text).write(), EMPTY, "{text}");
        }
    }

    #[test]
    fn values_are_handed_through() {
        let text = "{\"local_batches\": \"x\", \"last_global_at\": {\"a\": [1]}, \"cursors\": {\"s\": 1}}";
        let state = RuntimeState::read(text);
        let written = state.write();
        assert!(written.contains("\"local_batches\": \"x\""), "{written}");
        assert!(written.contains("\"last_global_at\": {\n    \"a\": [\n      1\n    ]\n  }\n}"), "{written}");
        assert!(state.other().contains_key("cursors"));
        assert_eq!(RuntimeState::read(&written).write(), written);
    }
}
