//! A workspace in a directory of its own and one session on it, for tests that make many calls; what topics say, read by rules
//! of the test's own.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use recollex::workspace::{UpdateOptions, Updated};
use recollex::{Error, OpenOptions, Runtime, Session, Tier};
use recollex_tests::{edits, turns};
use serde_json::{Value, json};

use crate::support::{cache, snapshot};

/// The record that claims rest on.
pub const RECORD: &str = edits::RECORD;

static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| edits::runtime(&cache()).unwrap());

pub struct Ground {
    directory: tempfile::TempDir,
    pub session: Session,
}

impl Ground {
    /// With nine trusted records.
    pub fn new() -> Self {
        Self::with(OpenOptions::new(Tier::Owner).principal("owner"))
    }

    pub fn with(options: OpenOptions) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let session = Session::open(&RUNTIME, &directory.path().join("w"), options).unwrap();
        let mut ground = Self { directory, session };
        let turns: Vec<_> = (1..10).map(|number| turns::plain("p", "t", number, "I drink tea.")).collect();
        ground.session.archive(&turns).unwrap();
        ground
    }

    pub fn root(&self) -> PathBuf {
        self.directory.path().join("w")
    }

    pub fn revision(&mut self) -> String {
        self.session.status().unwrap().revision
    }

    #[track_caller]
    pub fn read(&self, path: &str) -> String {
        fs::read_to_string(self.root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
    }

    /// As a person with an editor does it.
    pub fn write(&self, path: &str, content: impl AsRef<[u8]>) {
        let path = self.root().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    /// A request for the workspace as it is now, with `edit` its other fields.
    pub fn update(&mut self, edit: &Value) -> Result<Updated, Error> {
        let mut request = edit.clone();
        request["base_revision"] = self.revision().into();
        let updated = self.session.update(&request.to_string(), &UpdateOptions { provenance: None, dry_run: false })?;
        assert_eq!(updated.revision, self.revision(), "{edit}: the revision that it told");
        Ok(updated)
    }

    #[track_caller]
    pub fn updated(&mut self, edit: &Value) -> Updated {
        self.update(edit).unwrap_or_else(|error| panic!("{error}: {:?}", error.problems()))
    }

    /// Asks for something that is refused and changes nothing; the reasons.
    #[track_caller]
    pub fn refused(&mut self, edit: &Value) -> Vec<String> {
        let before = self.kept();
        let error = self.update(edit).expect_err("refused");
        assert!(self.kept() == before, "{error}: something changed");
        assert!(!error.problems().is_empty(), "{error}");
        error.problems().iter().map(|problem| problem.reason.clone()).collect()
    }

    /// Every finding of a verification: where, line, code.
    pub fn findings(&mut self) -> Vec<(String, u64, String)> {
        let mut found = Vec::new();
        let mut verification = self.session.verify("").unwrap();
        while let Some(findings) = verification.step(&mut self.session, u64::MAX).unwrap() {
            found.extend(
                findings
                    .into_iter()
                    .map(|finding| (finding.path.unwrap_or_default(), finding.line.unwrap_or_default(), finding.code)),
            );
        }
        found
    }

    /// Everything but the cache.
    pub fn kept(&self) -> Vec<(PathBuf, u32, Vec<u8>)> {
        kept(&self.root())
    }

    /// What somebody who knows nothing yet makes of the topics is what is there, to the byte.
    #[track_caller]
    pub fn assert_views_are_whole(&self, what: &str) {
        let aside = self.directory.path().join("aside");
        if aside.exists() {
            fs::remove_dir_all(&aside).unwrap();
        }
        copy(&self.root(), &aside);
        let mut session = Session::open(&RUNTIME, &aside, OpenOptions::new(Tier::Owner)).unwrap();
        let made = session.repair(false).unwrap();
        let (here, there) = (kept(&self.root()), kept(&aside));
        for (path, _, bytes) in &there {
            if let Some((_, _, old)) = here.iter().find(|(other, ..)| other == path) {
                assert!(
                    old == bytes,
                    "{what}: {} made anew is {}, not {}",
                    path.display(),
                    String::from_utf8_lossy(bytes),
                    String::from_utf8_lossy(old)
                );
            }
        }
        assert_eq!((made.committed, made.changed_files), (false, vec![]), "{what}: made anew");
    }
}

fn kept(root: &Path) -> Vec<(PathBuf, u32, Vec<u8>)> {
    let mut found = snapshot(root);
    found.retain(|(path, ..)| !path.starts_with(".scriptorium-recollex") && !path.starts_with(".scriptorium/recollex"));
    found
}

/// Without the cache.
fn copy(from: &Path, to: &Path) {
    for (path, _, bytes) in snapshot(from) {
        if path.starts_with(".scriptorium-recollex") {
            continue;
        }
        if from.join(&path).is_dir() {
            fs::create_dir_all(to.join(&path)).unwrap();
        } else {
            fs::write(to.join(&path), bytes).unwrap();
        }
    }
}

/// One claim on a line, as this test reads it: its id, what it says (links without their paths), and its times.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    pub id: String,
    pub text: String,
    pub times: Vec<String>,
}

impl Claim {
    /// Ids that it links to.
    pub fn links(&self) -> impl Iterator<Item = &str> {
        self.text.split("](#^").skip(1).filter_map(|rest| rest.split(')').next())
    }
}

/// What a topic says whose claims take a line each.
pub fn claims(topic: &str) -> Vec<Claim> {
    let mut times = BTreeMap::new();
    for line in topic.lines() {
        if let Some((label, rest)) = line.strip_prefix("[^").and_then(|rest| rest.split_once("]: Time: `")) {
            times.insert(label, rest.split('`').next().unwrap().to_owned());
        }
    }
    let claim = |line: &str| {
        let (body, id) = line.rsplit_once(" ^")?;
        let (text, cited) = body.split_once("[^")?;
        let labels = cited.split("[^").map(|label| label.trim_end_matches(']'));
        Some(Claim {
            id: id.to_owned(),
            text: pathless(text),
            times: labels.map(|label| times[label].clone()).collect(),
        })
    };
    topic.lines().filter_map(claim).collect()
}

/// Where a block is decides what the path of a link says; what it means is the id.
fn pathless(text: &str) -> String {
    let mut out = String::new();
    for (number, piece) in text.split("](").enumerate() {
        let piece = match piece.split_once("#^") {
            Some((_, rest)) if number > 0 => format!("](#^{rest}"),
            _ if number > 0 => format!("]({piece}"),
            _ => piece.to_owned(),
        };
        out.push_str(&piece);
    }
    out
}

/// An operation for one claim at the end of a topic.
pub fn create(topic: &str, content: &str) -> Value {
    json!({"op": "create_record", "content": content, "time": "2026-01-02", "source_refs": [RECORD],
           "destination": {"topic_path": topic, "headings": ["Notes"], "position": "end"}})
}

/// A topic as a whole.
pub fn whole(path: &str, content: &str) -> Value {
    json!({"path": path, "action": "write", "content": content})
}

/// A claim as somebody writes it who knows neither ids nor labels.
pub fn written(text: &str, time: &str, label: &str) -> String {
    format!("{text}[^{label}]\n\n[^{label}]: Time: `{time}`; Sources: [it]({RECORD})\n")
}
