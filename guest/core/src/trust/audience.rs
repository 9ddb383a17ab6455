//! Who may see what (FORMAT.md, "Audience").
//!
//! Whoever may read sees everything, until the owner narrows a path to themselves in the settings file of the workspace.
//! Then a paired caller sees of the tree only `sources/`, and of that what is not narrowed: topics and what is made of them
//! may tell of anything, and which evidence a paragraph rests on is not known here. A settings file that cannot be read
//! shows a paired caller nothing.
//!
//! A prefix covers whole parts of a path, in whatever spelling: letter case, composed or not, percent-encoded or not, with
//! or without `_v2`, because on some medium, or to some reader, all of them are one name. Where in doubt it covers more.
//!
//! Knows paths and the settings file. Must not know what is asked, or what lies at a path.

use super::authority::CAPABILITY_DENIED;
use crate::ids::is_internal_path;
use crate::source::{Finding, FindingCode, Problem, Tier};
use crate::text::{caseless, decode, excerpt, json_string};
use serde::Deserialize;
use serde_json::Value;
use std::borrow::Cow;

/// The workspace's settings file, in the runtime directory.
pub const SETTINGS_PATH: &str = "recollex.json";

/// No settings file is longer, in bytes.
pub const SETTINGS_BYTES_MAX: u32 = 1 << 20;

/// No prefix is longer, in bytes.
const PREFIX_BYTES_MAX: usize = 4096;

/// What the settings file says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Narrowing {
    /// By what they cover, each once.
    owner_only: Vec<Prefix>,
}

/// The settings file as it is written. A key that a later version knows may narrow something, so none is passed over.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    audience: AudienceKeys,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct AudienceKeys {
    #[serde(default)]
    owner: Vec<String>,
}

/// A settings file that says nothing that could be relied on.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what}")]
pub struct SettingsFault {
    /// From 1, as far as known.
    pub line: Option<u64>,
    /// What is wrong, for people.
    pub what: String,
}

impl SettingsFault {
    /// What the owner is told of it. `place` is the file's path in the workspace.
    pub fn finding(&self, place: &str) -> Finding {
        let code = FindingCode::BadSettingsFile;
        Finding {
            code: code.as_str(),
            severity: code.severity(),
            path: Some(place.to_owned()),
            line: self.line,
            subject: None,
            excerpt: None,
            message: format!("{}; put it right or delete it: until then paired callers are shut out", self.what),
        }
    }

    /// What a caller is told who would be shown what the file may hide; without what is in it.
    pub fn problem(&self) -> Problem {
        Problem {
            code: CAPABILITY_DENIED,
            reason: "audience-unreadable",
            path: None,
            line: None,
            subject: None,
            message: "which part of memory is the owner's alone cannot be read; ask them to put that right".to_owned(),
        }
    }
}

/// A path, or the beginning of one, by whole parts. It exists only through [`Prefix::parse`].
#[derive(Clone, Debug)]
pub struct Prefix {
    text: String,
    parts: Vec<Vec<String>>,
}

/// Two prefixes are one if they are the same name to some medium.
impl PartialEq for Prefix {
    fn eq(&self, other: &Self) -> bool {
        caseless(&self.text) == caseless(&other.text)
    }
}

impl Eq for Prefix {}

/// A text that is no prefix of a path.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{shown}` is no path of memory: give a file or directory of the workspace, such as topics/health")]
pub struct InvalidPrefix {
    /// As it was given, safe to print.
    pub shown: String,
}

impl Prefix {
    /// A file or directory of the workspace; slashes at its ends mean nothing.
    ///
    /// # Errors
    /// It is empty or too long, has an empty part, `.`, `..` or a NUL, or is the program's own.
    pub fn parse(text: &str) -> Result<Self, InvalidPrefix> {
        let trimmed = text.trim_matches('/');
        let fits = trimmed.len() <= PREFIX_BYTES_MAX
            && !is_internal_path(trimmed)
            && !trimmed.contains('\0')
            && trimmed.split('/').all(|part| !matches!(part, "" | "." | ".."));
        if !fits {
            return Err(InvalidPrefix { shown: excerpt(text.as_bytes()) });
        }
        let parts = parts(trimmed).iter().map(|part| spellings(part)).collect();
        Ok(Self { text: trimmed.to_owned(), parts })
    }

    /// As it is kept.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Whether a path is what this names, or lies below it.
    pub fn covers(&self, path: &str) -> bool {
        self.covers_parts(&path_parts(path))
    }

    fn covers_parts(&self, path: &[Vec<String>]) -> bool {
        let is_part = |(ours, theirs): (&Vec<String>, &Vec<String>)| ours.iter().any(|one| theirs.contains(one));
        self.parts.len() <= path.len() && self.parts.iter().zip(path).all(is_part)
    }
}

/// The parts of a path by which people know it: what is kept of one conversation is one name, `sources/P/T.md`, whether it is
/// in `sources/P/_v2/T.md`, in the form before that, or in `sources/P/_branches/T.jsonl`.
fn parts(path: &str) -> Vec<Cow<'_, str>> {
    let is_source = caseless(path.split('/').next().unwrap_or_default()) == "sources";
    let mut is_of_branches = false;
    let mut parts: Vec<Cow<'_, str>> = Vec::new();
    for (at, part) in path.split('/').enumerate() {
        match caseless(part).as_str() {
            "_v2" if is_source && at >= 2 => {}
            "_branches" if is_source && at >= 2 => is_of_branches = true,
            _ => parts.push(part.into()),
        }
    }
    let file = parts.last().filter(|_| is_of_branches).and_then(|file| file.strip_suffix(".jsonl"));
    if let Some(file) = file.map(|file| format!("{file}.md"))
        && let Some(last) = parts.last_mut()
    {
        *last = file.into();
    }
    parts
}

/// What a part may be meant by: as it stands, and decoded.
fn spellings(part: &str) -> Vec<String> {
    let plain = caseless(part);
    let decoded = decode(part).map(|decoded| caseless(&decoded)).filter(|decoded| *decoded != plain);
    core::iter::once(plain).chain(decoded).collect()
}

/// The same of the parts of a file's path: its ending may be left off.
fn path_parts(path: &str) -> Vec<Vec<String>> {
    let with_short = |part: &Cow<'_, str>| {
        let mut all = spellings(part);
        let short: Vec<String> = all.iter().filter_map(|part| part.strip_suffix(".md")).map(str::to_owned).collect();
        all.extend(short);
        all
    };
    parts(path).iter().map(with_short).collect()
}

/// Why an audience could not be widened.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` covers it as well; widen that")]
pub struct NarrowedAbove(pub String);

impl Narrowing {
    /// Reads the settings file.
    ///
    /// # Errors
    /// It is no JSON, has a key that means nothing or one twice, or names something that is no path.
    pub fn parse(text: &str) -> Result<Self, SettingsFault> {
        let fault =
            |error: serde_json::Error| SettingsFault { line: Some(error.line() as u64), what: error.to_string() };
        let file: File = serde_json::from_str(text).map_err(fault)?;
        // A list with as many values as there are keys would pass for the object.
        let value: Value = serde_json::from_str(text).map_err(fault)?;
        if !value.is_object() || value.get("audience").is_some_and(|audience| !audience.is_object()) {
            return Err(SettingsFault { line: None, what: "it is no JSON object of objects".to_owned() });
        }
        let mut narrowing = Self::default();
        for text in &file.audience.owner {
            let prefix = Prefix::parse(text).map_err(|error| SettingsFault { line: None, what: error.to_string() })?;
            narrowing.add(prefix);
        }
        Ok(narrowing)
    }

    /// The settings file.
    pub fn file(&self) -> String {
        let list: Vec<String> = self.prefixes().map(|prefix| format!("      {}", json_string(prefix))).collect();
        let list = if list.is_empty() { "[]".to_owned() } else { format!("[\n{}\n    ]", list.join(",\n")) };
        format!("{{\n  \"audience\": {{\n    \"owner\": {list}\n  }}\n}}\n")
    }

    /// What only the owner sees, in code-point order.
    pub fn prefixes(&self) -> impl Iterator<Item = &str> {
        self.owner_only.iter().map(Prefix::as_str)
    }

    /// Narrows what `prefix` covers. False: it was.
    pub fn narrow(&mut self, prefix: Prefix) -> bool {
        let is_new = self.above(&prefix).is_none();
        if is_new {
            self.add(prefix);
        }
        is_new
    }

    /// Takes a prefix back. False: nothing was narrowed there.
    ///
    /// # Errors
    /// Another one covers it too, so that nothing would change.
    pub fn widen(&mut self, prefix: &Prefix) -> Result<bool, NarrowedAbove> {
        let others = |other: &&Prefix| *other != prefix && other.covers(&prefix.text);
        if let Some(other) = self.owner_only.iter().find(others) {
            return Err(NarrowedAbove(other.text.clone()));
        }
        let before = self.owner_only.len();
        self.owner_only.retain(|kept| kept != prefix);
        Ok(self.owner_only.len() < before)
    }

    fn above(&self, prefix: &Prefix) -> Option<&Prefix> {
        self.owner_only.iter().find(|kept| kept.covers(&prefix.text))
    }

    fn add(&mut self, prefix: Prefix) {
        if !self.owner_only.contains(&prefix) {
            self.owner_only.push(prefix);
            self.owner_only.sort_by(|a, b| a.text.cmp(&b.text));
        }
    }
}

/// What one caller sees of the tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Audience {
    /// None: everything.
    hidden: Option<Narrowing>,
}

impl Audience {
    /// Of somebody who sees everything.
    pub fn owner() -> Self {
        Self { hidden: None }
    }

    /// Of a caller of that tier, where the settings file says `narrowing`.
    pub fn of(tier: Tier, narrowing: Narrowing) -> Self {
        let is_narrowed = tier != Tier::Owner && !narrowing.owner_only.is_empty();
        Self { hidden: is_narrowed.then_some(narrowing) }
    }

    /// Whether nothing is hidden.
    pub fn is_everything(&self) -> bool {
        self.hidden.is_none()
    }

    /// Refuses a caller who would add to a path that is hidden from them: what became of it would tell what is there.
    ///
    /// # Errors
    /// `owner-only-path`, for each such path.
    pub fn check_paths<'a>(&self, paths: impl IntoIterator<Item = &'a str>) -> Result<(), Vec<Problem>> {
        let hidden = paths.into_iter().filter(|path| !self.sees(path));
        let problems: Vec<Problem> = hidden
            .map(|path| Problem {
                code: CAPABILITY_DENIED,
                reason: "owner-only-path",
                path: Some(path.to_owned()),
                line: None,
                subject: None,
                message: "this is the owner's alone; ask them to widen the audience, or write elsewhere".to_owned(),
            })
            .collect();
        if problems.is_empty() { Ok(()) } else { Err(problems) }
    }

    /// Whether this caller may know of what is, or might be, at a path.
    pub fn sees(&self, path: &str) -> bool {
        let Some(narrowing) = &self.hidden else { return true };
        // Anything else may have been made of what is hidden.
        if path.split('/').next() != Some("sources") {
            return false;
        }
        let parts = path_parts(path);
        !narrowing.owner_only.iter().any(|prefix| prefix.covers_parts(&parts))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prefix(text: &str) -> Prefix {
        Prefix::parse(text).expect("a path")
    }

    fn paired(prefixes: &[&str]) -> Audience {
        let mut narrowing = Narrowing::default();
        for text in prefixes {
            narrowing.narrow(prefix(text));
        }
        Audience::of(Tier::Paired, narrowing)
    }

    #[test]
    fn a_prefix_covers_whole_parts_in_any_spelling() {
        for (given, path) in [
            ("sources/p", "sources/p/_v2/t.md"),
            ("sources/p", "sources/p"),
            ("/sources/p/", "sources/p/t.md"),
            ("sources/p/t", "sources/p/_v2/t.md"),
            ("sources/p/t.md", "sources/p/_v2/t.md"),
            ("sources/p/_v2/t.md", "sources/p/t.md"),
            ("sources/p/_v2", "sources/p/t.md"),
            ("sources/p/t", "sources/p/_branches/t.jsonl"),
            ("sources/p/_v2/t.md", "sources/p/_branches/t.jsonl"),
            ("sources/p/_branches/t.jsonl", "sources/p/_v2/t.md"),
            ("Sources/P", "sources/p/_v2/t.md"),
            ("sources/\u{e9}", "sources/E\u{301}/_v2/t.md"),
            ("sources/p/plan a", "sources/p/_v2/plan%20a.md"),
            ("sources/p/plan%20a", "sources/p/_v2/plan%20a.md"),
            ("sources/p/a%2fb", "sources/p/_v2/a%2Fb.md"),
            // The thread as ids show it, and the file's name.
            ("sources/channel-slack/acct%3AC1", "sources/channel-slack/_v2/acct%253AC1.md"),
            ("sources/channel-slack/acct%253AC1", "sources/channel-slack/_v2/acct%253AC1.md"),
            ("sources/p/...md", "sources/p/_v2/...md"),
            ("topics/health", "topics/health.md"),
            ("topics/health", "topics/health/teeth.md"),
            ("sources/D3", "sources/D3.md"),
            ("sources/_v2", "sources/_v2/_v2/t.md"),
            ("sources/%_/x", "sources/%_/x"),
        ] {
            assert!(prefix(given).covers(path), "{given} {path}");
        }
        for (given, path) in [
            ("sources/p", "sources/pq/_v2/t.md"),
            ("sources/p", "sources/q/p/t.md"),
            ("sources/p/t", "sources/p/_v2/tt.md"),
            ("sources/p/t", "sources/p/_v2/t.md5"),
            ("topics/health.md", "topics/health/teeth.md"),
            ("sources/p/t/u", "sources/p/_v2/t.md"),
            ("topics/_v2/t", "topics/t.md"),
            ("p", "sources/p/_v2/t.md"),
            ("sources/\u{430}", "sources/a/_v2/t.md"),
        ] {
            assert!(!prefix(given).covers(path), "{given} {path}");
        }
    }

    #[test]
    fn what_is_no_prefix() {
        let long = "x".repeat(4097);
        for text in ["", "/", "a//b", "./a", "a/..", "a\0", ".git", ".scriptorium/x", ".nativemem-x", &long] {
            assert!(Prefix::parse(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn the_owner_sees_everything_and_others_what_is_left() {
        let all = ["sources/p/_v2/t.md", "sources/q/_v2/t.md", "topics/a.md", "core.md", "notes.txt", "SOURCES/q/x"];
        let mut narrowing = Narrowing::default();
        narrowing.narrow(prefix("sources/p"));
        for path in all {
            assert!(Audience::of(Tier::Owner, narrowing.clone()).sees(path));
            assert!(Audience::of(Tier::Paired, Narrowing::default()).sees(path));
        }
        let audience = paired(&["sources/p"]);
        assert!(!audience.is_everything());
        let seen: Vec<&str> = all.into_iter().filter(|path| audience.sees(path)).collect();
        assert_eq!(seen, ["sources/q/_v2/t.md"]);
        let refused = audience.check_paths(all).expect_err("some are hidden");
        assert_eq!(refused.len(), all.len() - 1);
        assert_eq!(Audience::owner().check_paths(all), Ok(()));
        // What was never there is hidden alike.
        assert!(!audience.sees("sources/p/_v2/other.md") && !audience.sees("sources/p/_v2/t.md/x"));
    }

    #[test]
    fn the_file_comes_back() {
        let mut narrowing = Narrowing::default();
        assert_eq!(Narrowing::parse(&narrowing.file()), Ok(narrowing.clone()));
        assert!(narrowing.narrow(prefix("topics/health/")));
        assert!(narrowing.narrow(prefix("sources/p\"")));
        let file = narrowing.file();
        assert_eq!(
            file,
            "{\n  \"audience\": {\n    \"owner\": [\n      \"sources/p\\\"\",\n      \"topics/health\"\n    ]\n  }\n}\n"
        );
        assert_eq!(Narrowing::parse(&file), Ok(narrowing));
        assert_eq!(Narrowing::parse("{}"), Ok(Narrowing::default()));
        assert_eq!(Narrowing::parse("{\"audience\":{}}"), Ok(Narrowing::default()));
    }

    #[test]
    fn a_file_that_cannot_be_relied_on_is_none() {
        for (text, line) in [
            ("", Some(1)),
            ("{\"audience\":\n{\"owner\":[\"a\"],\n\"paired\":[]}}", Some(3)),
            ("{\"Audience\":{}}", Some(1)),
            ("{\"audience\":{\"owner\":[\"a\"]},\n\"audience\":{}}", Some(2)),
            ("{\"audience\":{\"owner\":\"a\"}}", Some(1)),
            ("{\"audience\":{\"owner\":[1]}}", Some(1)),
            ("{\"audience\":null}", Some(1)),
            ("{\"audience\":{\"owner\":[\"../a\"]}}", None),
            ("{\"audience\":{\"owner\":[\"\"]}}", None),
            ("{} {}", Some(1)),
            ("[]", None),
            ("[{}]", None),
            ("{\"audience\":[]}", None),
            ("{\"audience\":[[\"a\"]]}", None),
            ("\u{feff}{}", Some(1)),
        ] {
            assert_eq!(Narrowing::parse(text).map_err(|fault| fault.line), Err(line), "{text}");
        }
    }

    #[test]
    fn narrowing_and_widening() {
        let mut narrowing = Narrowing::default();
        assert!(narrowing.narrow(prefix("topics/a/b")));
        assert!(narrowing.narrow(prefix("topics/a")));
        assert!(!narrowing.narrow(prefix("Topics/A/c")), "it is covered");
        assert_eq!(narrowing.prefixes().collect::<Vec<_>>(), ["topics/a", "topics/a/b"]);
        assert_eq!(narrowing.widen(&prefix("topics/a/b")), Err(NarrowedAbove("topics/a".to_owned())));
        assert_eq!(narrowing.widen(&prefix("topics/a/x")), Err(NarrowedAbove("topics/a".to_owned())));
        assert_eq!(narrowing.widen(&prefix("TOPICS/a")), Ok(true));
        assert_eq!(narrowing.widen(&prefix("topics/a")), Ok(false));
        assert_eq!(narrowing.prefixes().collect::<Vec<_>>(), ["topics/a/b"]);
    }
}
