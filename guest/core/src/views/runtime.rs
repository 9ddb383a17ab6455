//! `runtime.json`: in which order claims were made, and what else the file keeps.

use super::json::quote;
use crate::topic::Unit;
use core::fmt::{self, Write as _};
use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::{Map, Value};
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, DefaultHasher};
use std::sync::Arc;

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

/// About as many bytes a block takes in the file.
const ENTRY_BYTES: usize = 32;

/// State of the derived views. Only the order is this program's to change; the other members belong to whoever organises
/// memory, and are handed through as they are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuntimeState {
    /// Ids with their numbers, in the order in which they came.
    order: Vec<(Arc<str>, u64)>,
    /// The same by id. Nobody goes through it, so its own order, which is the same everywhere, shows nowhere.
    known: Known,
    members: Vec<Value>,
    other: Map<String, Value>,
}

type Known = HashMap<Arc<str>, u64, BuildHasherDefault<DefaultHasher>>;

/// The file's members, those of the order apart: it may be long.
struct Members {
    order: Vec<(Arc<str>, u64)>,
    rest: Map<String, Value>,
}

impl<'de> Deserialize<'de> for Members {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct OfFile;
        impl<'de> Visitor<'de> for OfFile {
            type Value = Members;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object with an order that is one")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members, A::Error> {
                let mut members = Members { order: Vec::new(), rest: Map::new() };
                while let Some(name) = map.next_key::<String>()? {
                    if name == ORDER {
                        members.order = map.next_value::<Order>()?.0;
                    } else {
                        members.rest.insert(name, map.next_value()?);
                    }
                }
                Ok(members)
            }
        }
        deserializer.deserialize_map(OfFile)
    }
}

/// The order, as it stands in the file. What is no whole number does not count.
struct Order(Vec<(Arc<str>, u64)>);

impl<'de> Deserialize<'de> for Order {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct OfOrder;
        impl<'de> Visitor<'de> for OfOrder {
            type Value = Order;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object of ids")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Order, A::Error> {
                let mut order = Vec::new();
                while let Some((id, number)) = map.next_entry::<String, Value>()? {
                    order.extend(number.as_u64().map(|number| (Arc::from(id), number)));
                }
                Ok(Order(order))
            }
        }
        deserializer.deserialize_map(OfOrder)
    }
}

impl Default for RuntimeState {
    fn default() -> Self {
        Self::read("{}")
    }
}

impl RuntimeState {
    /// Reads the file. One that is no JSON object is as if it were empty; an order that is no whole number does not count.
    pub fn read(text: &str) -> Self {
        if let Ok(Members { order, rest }) = serde_json::from_str(text) {
            let state = Self::of(order, rest);
            // Of an id that comes twice the last counts, as in any JSON object.
            if state.known.len() == state.order.len() {
                return state;
            }
        }
        let mut members = match serde_json::from_str(text) {
            Ok(Value::Object(members)) => members,
            _ => Map::new(),
        };
        let order = match members.remove(ORDER) {
            Some(Value::Object(order)) => {
                order.into_iter().filter_map(|(id, number)| Some((Arc::from(id), number.as_u64()?))).collect()
            }
            _ => Vec::new(),
        };
        Self::of(order, members)
    }

    fn of(mut order: Vec<(Arc<str>, u64)>, mut members: Map<String, Value>) -> Self {
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
        self.order.iter().rev().map(|(id, number)| (&**id, *number))
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
            self.order = order.into_iter().map(|(id, number)| (Arc::from(id), number)).collect();
            self.known = self.order.iter().cloned().collect();
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
                let id: Arc<str> = Arc::from(id);
                self.known.insert(Arc::clone(&id), next);
                self.order.push((id, next));
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
        let mut out = String::with_capacity((self.order.len() + new.len()) * ENTRY_BYTES + ENTRY_BYTES * MEMBERS.len());
        out.push_str("{\n  \"creation_order\": {");
        let known = self.order.iter().map(|(id, number)| (&**id, *number));
        let new = new.iter().map(String::as_str);
        let numbers = (0..).map(|more| self.next().saturating_add(more));
        for (at, (id, number)) in known.chain(new.clone().zip(numbers)).enumerate() {
            out.push_str(if at == 0 { "\n    " } else { ",\n    " });
            quote(id, &mut out);
            // Writing to a string cannot fail.
            let _ = write!(out, ": {number}");
        }
        out.push_str(if self.order.is_empty() && new.len() == 0 { "}" } else { "\n  }" });
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
    fn of_an_id_that_comes_twice_the_last_counts() {
        let state = RuntimeState::read(r#"{"creation_order": {"a": 5, "b": 1, "a": 0, "c": -1}, "local_batches": 2}"#);
        assert_eq!((state.order_of("a"), state.order_of("b"), state.order_of("c")), (Some(0), Some(1), None));
        assert_eq!(state.newest().collect::<Vec<_>>(), [("b", 1), ("a", 0)]);
        assert!(state.write().contains("\"local_batches\": 2"));
        let again = RuntimeState::read(&state.write());
        assert_eq!(again, state);
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
