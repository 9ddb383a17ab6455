//! Holds an outcome against what a row expects.

use core::fmt;

use serde_json::{Map, Value};

/// The first place where an outcome is not as expected.
#[derive(Clone, Debug, PartialEq)]
pub struct Difference {
    /// Where, as a path into the row's `expected`: `scan.frames[1].record_end`.
    pub at: String,
    /// What should be there; none: nothing.
    pub expected: Option<Value>,
    /// What is there; none: nothing.
    pub got: Option<Value>,
}

impl fmt::Display for Difference {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = |value: &Option<Value>| value.as_ref().map_or_else(|| "nothing".to_owned(), Value::to_string);
        let place = if self.at.is_empty() { "the outcome" } else { &self.at };
        write!(out, "{place}: expected {}, got {}", shown(&self.expected), shown(&self.got))
    }
}

/// Which keys of an object count.
#[derive(Clone, Copy, PartialEq)]
enum Keys {
    All,
    /// The expected ones: an outcome may tell more than the observation noted down.
    Expected,
}

/// The first difference between what a row expects and what came out; none: they agree.
///
/// Everything counts, with two exceptions where rows note down less than there is: at the top level (some rows leave
/// out `visible_lines` or `modes`) and in objects named `error` (some rows have no `subject`), only the keys that the
/// row has are compared.
#[must_use]
pub fn judge(expected: &Value, got: &Value) -> Option<Difference> {
    let mut at = String::new();
    differ(expected, got, Keys::Expected, &mut at)
}

/// `at` is the path so far; it is restored before returning.
fn differ(expected: &Value, got: &Value, keys: Keys, at: &mut String) -> Option<Difference> {
    match (expected, got) {
        (Value::Object(expected), Value::Object(got)) => differ_in_objects(expected, got, keys, at),
        (Value::Array(expected), Value::Array(got)) => {
            let longest = expected.len().max(got.len());
            (0..longest).find_map(|index| {
                within(at, &format!("[{index}]"), |at| match (expected.get(index), got.get(index)) {
                    (Some(expected), Some(got)) => differ(expected, got, Keys::All, at),
                    (expected, got) => Some(difference(at, expected, got)),
                })
            })
        }
        _ => (expected != got).then(|| difference(at, Some(expected), Some(got))),
    }
}

fn differ_in_objects(
    expected: &Map<String, Value>,
    got: &Map<String, Value>,
    keys: Keys,
    at: &mut String,
) -> Option<Difference> {
    let extra = got.keys().filter(|key| keys == Keys::All && !expected.contains_key(*key));
    expected.keys().chain(extra).find_map(|key| {
        let below = if key == "error" { Keys::Expected } else { Keys::All };
        let step = if at.is_empty() { key.clone() } else { format!(".{key}") };
        within(at, &step, |at| match (expected.get(key), got.get(key)) {
            (Some(expected), Some(got)) => differ(expected, got, below, at),
            (expected, got) => Some(difference(at, expected, got)),
        })
    })
}

fn within<T>(at: &mut String, step: &str, act: impl FnOnce(&mut String) -> T) -> T {
    let length = at.len();
    at.push_str(step);
    let result = act(at);
    at.truncate(length);
    result
}

fn difference(at: &str, expected: Option<&Value>, got: Option<&Value>) -> Difference {
    Difference { at: at.to_owned(), expected: expected.cloned(), got: got.cloned() }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn place(expected: &Value, got: &Value) -> Option<String> {
        judge(expected, got).map(|difference| difference.at)
    }

    #[test]
    fn equal_values_agree() {
        let value = json!({"scan": {"frames": [1, {"a": null}]}, "n": "x"});
        assert_eq!(judge(&value, &value), None);
    }

    #[test]
    fn the_first_difference_is_named_by_its_path() {
        let expected = json!({"scan": {"frames": [{"end": 1}, {"end": 2}]}});
        assert_eq!(
            place(&expected, &json!({"scan": {"frames": [{"end": 1}, {"end": 3}]}})).as_deref(),
            Some("scan.frames[1].end")
        );
        assert_eq!(place(&expected, &json!({"scan": {"frames": [{"end": 1}]}})).as_deref(), Some("scan.frames[1]"));
        assert_eq!(place(&expected, &json!({})).as_deref(), Some("scan"));
        assert_eq!(place(&json!(true), &json!("true")).as_deref(), Some(""));
    }

    #[test]
    fn more_is_fine_only_at_the_top_and_in_errors() {
        let expected = json!({"calls": [{"error": {"code": "x"}, "ok": false}]});
        assert_eq!(
            place(&expected, &json!({"calls": [{"error": {"code": "x", "subject": "s"}, "ok": false}], "modes": 1})),
            None
        );
        assert_eq!(
            place(&expected, &json!({"calls": [{"error": {"code": "y"}, "ok": false}]})).as_deref(),
            Some("calls[0].error.code")
        );
        assert_eq!(
            place(&expected, &json!({"calls": [{"error": {"code": "x"}, "ok": false, "refs": []}]})).as_deref(),
            Some("calls[0].refs")
        );
    }

    #[test]
    fn an_empty_object_is_not_an_array() {
        assert_eq!(place(&json!({"a": {}}), &json!({"a": []})).as_deref(), Some("a"));
        assert_eq!(place(&json!({"a": null}), &json!({})).as_deref(), Some("a"));
    }
}
