//! Rows where Recollex differs on purpose from what was observed.
//!
//! A deviation names its row, the decision that demands it, and the right outcome. A listed row must come to exactly
//! that outcome; one that comes to the observed outcome after all is a failure too, so that the list cannot outlive its
//! reasons.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::Value;

/// The list that comes with the vectors in `tests/vectors`.
const SHIPPED: &str = include_str!("../vectors/deviations.toml");

/// A deviation.
#[derive(Clone, Debug)]
pub struct Deviation {
    /// The decision that demands it: `D01`.
    pub decision: String,
    /// What the row must come to, in its own shape.
    pub expected: Value,
}

/// Deviations by row, `file/name`.
#[derive(Clone, Debug, Default)]
pub struct Deviations {
    rows: BTreeMap<String, Deviation>,
}

/// Why a list of deviations cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum DeviationsError {
    /// The file cannot be read.
    #[error("cannot read {}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The text is no TOML, or not of this shape.
    #[error("{origin} is not a list of deviations")]
    NotAList {
        /// Where the text is from.
        origin: String,
        /// What is wrong, and in which line.
        source: Box<toml::de::Error>,
    },
    /// An entry makes no sense.
    #[error("{origin}: {vector}: {problem}")]
    Entry {
        /// Where the text is from.
        origin: String,
        /// The entry's row.
        vector: String,
        /// What is wrong.
        problem: String,
    },
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct List {
    #[serde(default)]
    deviation: Vec<Entry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    vector: String,
    decision: String,
    /// For people: what a user would lose without it.
    #[serde(rename = "why")]
    _why: Option<String>,
    /// JSON as text, or the value in TOML.
    expected: toml::Value,
}

impl Deviations {
    /// The list that comes with the vectors.
    ///
    /// # Errors
    /// It is malformed.
    pub fn shipped() -> Result<Self, DeviationsError> {
        Self::parse("tests/vectors/deviations.toml", SHIPPED)
    }

    /// The list in a file.
    ///
    /// # Errors
    /// It cannot be read or is malformed.
    pub fn read(path: &Path) -> Result<Self, DeviationsError> {
        let text = fs::read_to_string(path)
            .map_err(|source| DeviationsError::Unreadable { path: path.to_path_buf(), source })?;
        Self::parse(&path.display().to_string(), &text)
    }

    /// The list in a text; `origin` names it in errors.
    ///
    /// # Errors
    /// It is malformed: no TOML, an unknown key, a row listed twice, a decision without a number, an outcome that is no JSON.
    pub fn parse(origin: &str, text: &str) -> Result<Self, DeviationsError> {
        let list: List = toml::from_str(text)
            .map_err(|source| DeviationsError::NotAList { origin: origin.to_owned(), source: Box::new(source) })?;
        let mut rows = BTreeMap::new();
        for entry in list.deviation {
            let fault = |problem: String| DeviationsError::Entry {
                origin: origin.to_owned(),
                vector: entry.vector.clone(),
                problem,
            };
            if !entry.vector.split_once('/').is_some_and(|(file, name)| !file.is_empty() && !name.is_empty()) {
                return Err(fault("a row is named file/name".to_owned()));
            }
            if !is_decision(&entry.decision) {
                return Err(fault(format!("{:?} names no decision; one looks like D01", entry.decision)));
            }
            let expected = match &entry.expected {
                toml::Value::String(json) => serde_json::from_str(json),
                value => serde_json::to_value(value),
            }
            .map_err(|error| fault(format!("expected: {error}")))?;
            let deviation = Deviation { decision: entry.decision.clone(), expected };
            if rows.insert(entry.vector.clone(), deviation).is_some() {
                return Err(fault("listed twice".to_owned()));
            }
        }
        Ok(Self { rows })
    }

    /// The deviation of a row.
    #[must_use]
    pub fn of(&self, file: &str, name: &str) -> Option<&Deviation> {
        self.rows.get(&format!("{file}/{name}"))
    }

    /// The rows of one file that are listed, by name.
    pub fn names(&self, file: &str) -> impl Iterator<Item = &str> {
        self.rows.keys().filter_map(move |row| row.strip_prefix(file)?.strip_prefix('/'))
    }
}

fn is_decision(text: &str) -> bool {
    let number = text.strip_prefix('D').unwrap_or_default();
    number.len() >= 2 && number.bytes().take(2).all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_shipped_list_is_well_formed() {
        Deviations::shipped().unwrap();
    }

    #[test]
    fn expected_is_json_text_or_toml() {
        let list = Deviations::parse(
            "here",
            r#"
            [[deviation]]
            vector = "frames_parse/a"
            decision = "D01"
            expected = '{"scan": {"frames": []}, "x": null}'
            [[deviation]]
            vector = "frames_parse/b"
            decision = "D18a"
            why = "because"
            expected = { ok = true }
            "#,
        )
        .unwrap();
        assert_eq!(list.of("frames_parse", "a").unwrap().expected, json!({"scan": {"frames": []}, "x": null}));
        assert_eq!(list.of("frames_parse", "b").unwrap().expected, json!({"ok": true}));
        assert_eq!(list.names("frames_parse").collect::<Vec<_>>(), ["a", "b"]);
        assert!(list.names("frames").next().is_none());
    }

    #[test]
    fn a_bad_entry_is_refused_with_its_row() {
        for (vector, decision, expected) in
            [("norow", "D01", "'1'"), ("f/r", "because", "'1'"), ("f/r", "D", "'1'"), ("f/r", "D01", "'{'")]
        {
            let text = format!("[[deviation]]\nvector = {vector:?}\ndecision = {decision:?}\nexpected = {expected}\n");
            let error = Deviations::parse("here", &text).unwrap_err().to_string();
            assert!(error.contains(vector), "{error}");
        }
        let twice = "[[deviation]]\nvector = 'f/r'\ndecision = 'D01'\nexpected = 1\n".repeat(2);
        assert!(Deviations::parse("here", &twice).unwrap_err().to_string().contains("twice"));
        assert!(Deviations::parse("here", "[[deviations]]").is_err());
    }
}
