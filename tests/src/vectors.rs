//! Runs vector files on an engine and counts.

use std::collections::BTreeSet;
use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use recollex_test_rows::{Outcome, judge};
use serde::Deserialize;
use serde_json::Value;

use crate::deviations::Deviations;
use crate::engine::Engine;

/// One line of a vector file.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Row {
    /// Unique within its file.
    pub name: String,
    /// What is done.
    pub input: Value,
    /// What it comes to.
    pub expected: Value,
}

/// A vector file.
#[derive(Clone, Debug)]
pub struct VectorFile {
    /// Without `.jsonl`.
    pub name: String,
    /// Where it is.
    pub path: PathBuf,
    /// Its rows, in order.
    pub rows: Vec<Row>,
}

/// Why vectors could not be run.
#[derive(Debug, thiserror::Error)]
pub enum VectorsError {
    /// A file or directory cannot be read.
    #[error("cannot read {}", path.display())]
    Unreadable {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A line is no row.
    #[error("{}:{line}: not a row", path.display())]
    NotARow {
        /// The vector file.
        path: PathBuf,
        /// From 1.
        line: usize,
        /// What is wrong.
        source: serde_json::Error,
    },
    /// Two rows have one name.
    #[error("{}:{line}: {name} is there twice", path.display())]
    Twice {
        /// The vector file.
        path: PathBuf,
        /// Of the second, from 1.
        line: usize,
        /// Their name.
        name: String,
    },
    /// A file was asked for that no directory has.
    #[error("no vector file is named {name}")]
    NoSuchFile {
        /// As it was asked for.
        name: String,
    },
}

impl VectorFile {
    /// Reads a vector file.
    ///
    /// # Errors
    /// It cannot be read, a line is no row, or two rows have one name.
    pub fn read(path: &Path) -> Result<Self, VectorsError> {
        let path = path.to_path_buf();
        let text =
            fs::read_to_string(&path).map_err(|source| VectorsError::Unreadable { path: path.clone(), source })?;
        let mut names = BTreeSet::new();
        let mut rows = Vec::new();
        for (index, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
            let line_number = index + 1;
            let row: Row = serde_json::from_str(line).map_err(|source| VectorsError::NotARow {
                path: path.clone(),
                line: line_number,
                source,
            })?;
            if !names.insert(row.name.clone()) {
                return Err(VectorsError::Twice { path, line: line_number, name: row.name });
            }
            rows.push(row);
        }
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        Ok(Self { name, path, rows })
    }

    /// All vector files of the directories, each directory's in the order of their names. With names in `only`
    /// (`.jsonl` may be left out), those alone.
    ///
    /// # Errors
    /// A directory or file cannot be read, or no file has a name of `only`.
    pub fn find(directories: &[PathBuf], only: &[String]) -> Result<Vec<Self>, VectorsError> {
        let only: Vec<&str> = only.iter().map(|name| name.strip_suffix(".jsonl").unwrap_or(name)).collect();
        let mut paths = Vec::new();
        for directory in directories {
            let unreadable = |source| VectorsError::Unreadable { path: directory.clone(), source };
            let mut here = Vec::new();
            for entry in fs::read_dir(directory).map_err(unreadable)? {
                let path = entry.map_err(unreadable)?.path();
                let stem = path.file_stem().unwrap_or_default().to_string_lossy();
                let wanted = only.is_empty() || only.contains(&&*stem);
                if wanted && path.extension().is_some_and(|extension| extension == "jsonl") {
                    here.push(path);
                }
            }
            here.sort();
            paths.append(&mut here);
        }
        let files = paths.iter().map(|path| Self::read(path)).collect::<Result<Vec<_>, _>>()?;
        match only.iter().find(|name| files.iter().all(|file| file.name != **name)) {
            Some(name) => Err(VectorsError::NoSuchFile { name: (*name).to_owned() }),
            None => Ok(files),
        }
    }
}

/// A row that did not come to what it should.
#[derive(Clone, Debug)]
pub struct Failure {
    /// `file/name`.
    pub row: String,
    /// For people: what it came to instead, or why it came to nothing.
    pub reason: String,
}

impl fmt::Display for Failure {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}: {}", self.row, self.reason)
    }
}

/// How the rows of one file went.
#[derive(Clone, Debug, Default)]
pub struct FileReport {
    /// The file's name without `.jsonl`.
    pub file: String,
    /// Came to what was observed.
    pub passed: usize,
    /// Came to what a decision demands instead.
    pub deviations: usize,
    /// Came to anything else.
    pub failures: Vec<Failure>,
    /// Not rows for this engine.
    pub not_here: usize,
}

impl FileReport {
    /// Rows that were run.
    #[must_use]
    pub fn run(&self) -> usize {
        self.passed + self.failures.len() + self.deviations
    }
}

impl fmt::Display for FileReport {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            out,
            "{}: {} run, {} passed, {} failed, {} deviations, {} not for this engine",
            self.file,
            self.run(),
            self.passed,
            self.failures.len(),
            self.deviations,
            self.not_here
        )
    }
}

/// How all files went.
#[derive(Clone, Debug, Default)]
pub struct Totals {
    /// Rows that came to what they should, deviations included.
    pub passed: usize,
    /// Rows that did not.
    pub failed: usize,
}

impl Totals {
    /// Adds a file's figures.
    pub fn add(&mut self, report: &FileReport) {
        self.passed += report.passed + report.deviations;
        self.failed += report.failures.len();
    }

    /// Something ran, and nothing failed.
    #[must_use]
    pub const fn is_success(&self) -> bool {
        self.failed == 0 && self.passed > 0
    }
}

impl fmt::Display for Totals {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} passed, {} failed", self.passed, self.failed)
    }
}

/// What a row came to.
enum Standing {
    Passed,
    Deviates,
    Failed(String),
    NotHere,
}

/// Runs the rows of one file.
pub fn run(engine: &mut dyn Engine, file: &VectorFile, deviations: &Deviations) -> FileReport {
    let mut report = FileReport { file: file.name.clone(), ..FileReport::default() };
    for row in &file.rows {
        match stand(engine, &file.name, row, deviations) {
            Standing::Passed => report.passed += 1,
            Standing::Deviates => report.deviations += 1,
            Standing::NotHere => report.not_here += 1,
            Standing::Failed(reason) => {
                report.failures.push(Failure { row: format!("{}/{}", file.name, row.name), reason });
            }
        }
    }
    for name in deviations.names(&file.name).filter(|name| file.rows.iter().all(|row| row.name != *name)) {
        report.failures.push(Failure {
            row: format!("{}/{name}", file.name),
            reason: "listed as a deviation, but there is no such row".to_owned(),
        });
    }
    report
}

fn stand(engine: &mut dyn Engine, file: &str, row: &Row, deviations: &Deviations) -> Standing {
    let got = match engine.observe(file, &row.input) {
        Ok(Outcome::Shown(got)) => got,
        Ok(Outcome::NotHere(_)) => return Standing::NotHere,
        Err(error) => return Standing::Failed(error),
    };
    let original = engine.view(file, &row.input, &row.expected);
    let Some(deviation) = deviations.of(file, &row.name) else {
        return judge(&original, &got).map_or(Standing::Passed, |difference| Standing::Failed(difference.to_string()));
    };
    let decided = engine.view(file, &row.input, &deviation.expected);
    match (judge(&decided, &got), judge(&original, &got)) {
        (None, Some(_)) => Standing::Deviates,
        // What this engine can show of the row is the same before and after the decision.
        (None, None) if decided == original || (engine.shows_less() && judge(&original, &decided).is_none()) => {
            Standing::Passed
        }
        (_, None) => Standing::Failed(format!(
            "comes to what was observed: the deviation ({}) is no longer needed",
            deviation.decision
        )),
        (Some(difference), Some(_)) => {
            Standing::Failed(format!("not what {} demands: {difference}", deviation.decision))
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Shows each input as it is; rows with the input `null` are not for it.
    struct Echo;

    impl Engine for Echo {
        fn observe(&mut self, _file: &str, input: &Value) -> Result<Outcome, String> {
            match input {
                Value::Null => Ok(Outcome::not_here("null")),
                Value::String(error) => Err(error.clone()),
                value => Ok(Outcome::Shown(value.clone())),
            }
        }
    }

    fn report(rows: &[(&str, Value, Value)], deviations: &str) -> FileReport {
        let rows = rows
            .iter()
            .map(|(name, input, expected)| Row {
                name: (*name).to_owned(),
                input: input.clone(),
                expected: expected.clone(),
            })
            .collect();
        let file = VectorFile { name: "f".to_owned(), path: PathBuf::from("f.jsonl"), rows };
        run(&mut Echo, &file, &Deviations::parse("here", deviations).unwrap())
    }

    #[test]
    fn rows_are_counted_by_how_they_went() {
        let rows = [
            ("same", json!(1), json!(1)),
            ("other", json!(1), json!(2)),
            ("broken", json!("cannot"), json!(1)),
            ("later", json!(null), json!(1)),
        ];
        let report = report(&rows, "");
        assert_eq!(report.to_string(), "f: 3 run, 1 passed, 2 failed, 0 deviations, 1 not for this engine");
        assert!(report.failures[0].to_string().starts_with("f/other: "));
        assert_eq!(report.failures[1].reason, "cannot");
    }

    #[test]
    fn a_deviating_row_must_come_to_the_decided_outcome() {
        let list = |expected: u8| format!("[[deviation]]\nvector = 'f/r'\ndecision = 'D01'\nexpected = {expected}\n");
        assert_eq!(report(&[("r", json!(2), json!(1))], &list(2)).deviations, 1);
        let wrong = report(&[("r", json!(3), json!(1))], &list(2));
        assert!(wrong.failures[0].reason.contains("not what D01 demands"), "{wrong:?}");
        let stale = report(&[("r", json!(1), json!(1))], &list(2));
        assert!(stale.failures[0].reason.contains("no longer needed"), "{stale:?}");
    }

    #[test]
    fn a_deviation_without_its_row_is_a_failure() {
        let list = "[[deviation]]\nvector = 'f/gone'\ndecision = 'D01'\nexpected = 1\n";
        let report = report(&[("r", json!(1), json!(1))], list);
        assert_eq!(report.failures.len(), 1);
        assert_eq!(report.failures[0].row, "f/gone");
    }

    #[test]
    fn nothing_run_is_no_success() {
        let mut totals = Totals::default();
        assert!(!totals.is_success());
        totals.add(&report(&[("r", json!(1), json!(1))], ""));
        assert!(totals.is_success());
        assert_eq!(totals.to_string(), "1 passed, 0 failed");
        totals.add(&report(&[("r", json!(1), json!(2))], ""));
        assert!(!totals.is_success());
    }
}
