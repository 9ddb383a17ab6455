//! Unified diffs of topics.
//!
//! ```text
//! --- a/topics/tea.md
//! +++ b/topics/tea.md
//! @@ -3,1 +3,1 @@
//! -The owner likes tea.[^e-0123456789] ^abc12345
//! +The owner likes green tea.[^e-0123456789] ^abc12345
//! ```
//!
//! Hunks are found by where they begin, not by what they say there: every line that stays or goes has to be there, letter by
//! letter. The numbers of lines in a hunk's head decide nothing, since people and models miscount. The rules are in
//! FORMAT.md, "Updates".

use super::fault::{Fault, Reason};
use super::request::path_reason;
use crate::ids::TopicPath;
use crate::topic::with_lf;
use std::collections::BTreeSet;

/// A patch that was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Patch {
    files: Vec<FilePatch>,
}

/// What a patch does to one topic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FilePatch {
    path: TopicPath,
    kind: Kind,
    /// By where they begin.
    hunks: Vec<Hunk>,
}

/// Why a patch does not fit a topic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conflict {
    /// In which way.
    pub reason: Reason,
    /// The line of the topic, from 1.
    pub line: Option<usize>,
    /// What the patch expects there, and what is there; none: the topic's end.
    pub expected: Option<(String, Option<String>)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Create,
    Delete,
    Modify,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Hunk {
    /// The first line of the topic that it is about, from 1, as its head says.
    start: usize,
    /// Lines that its head announces: of the topic as it is, and as it shall be.
    counts: (usize, usize),
    lines: Vec<(Mark, String)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mark {
    Keep,
    Remove,
    Add,
}

/// Head lines of a patch that does what patches of topics cannot.
const UNSUPPORTED: &[&str] = &[
    "rename from ",
    "rename to ",
    "copy from ",
    "copy to ",
    "old mode ",
    "new mode ",
    "GIT binary patch",
    "Binary files ",
    "Subproject commit ",
];

/// Modes of files that come or go, of which one kind can be a topic.
const MODES: &[&str] = &["new file mode ", "deleted file mode "];
const REGULAR_MODE: &str = "100644";

/// Where a topic is not.
const NOWHERE: &str = "/dev/null";

impl Patch {
    /// Reads a patch.
    ///
    /// # Errors
    /// Every fault. Lines are those of the patch.
    pub fn parse(text: &str) -> Result<Self, Vec<Fault>> {
        let text = with_lf(text);
        let mut reader = Reader { lines: text.lines().collect(), at: 0, files: Vec::new(), faults: Vec::new() };
        reader.read();
        let mut seen = BTreeSet::new();
        for (file, line) in &reader.files {
            if !seen.insert(&file.path) {
                let fault = Fault::at(Reason::PathGivenTwice, "patch").in_line(*line);
                reader.faults.push(fault.about(file.path.as_str()));
            }
        }
        if reader.files.is_empty() && reader.faults.is_empty() {
            reader.faults.push(Fault::at(Reason::MalformedPatch, "patch"));
        }
        if reader.faults.is_empty() {
            Ok(Self { files: reader.files.into_iter().map(|(file, _)| file).collect() })
        } else {
            Err(reader.faults)
        }
    }

    /// What it does, topic by topic.
    #[must_use]
    pub fn files(&self) -> &[FilePatch] {
        &self.files
    }
}

impl FilePatch {
    /// The topic.
    #[must_use]
    pub fn path(&self) -> &TopicPath {
        &self.path
    }

    /// Whether the topic goes.
    #[must_use]
    pub fn deletes(&self) -> bool {
        self.kind == Kind::Delete
    }

    /// The topic as it shall be; none: gone. `text` is the topic as it is; none if there is none.
    ///
    /// # Errors
    /// The first place where the patch does not fit. Lines are those of the topic.
    pub fn apply(&self, text: Option<&str>) -> Result<Option<String>, Conflict> {
        let conflict = |reason, line| Conflict { reason, line, expected: None };
        let text = match (self.kind, text) {
            (Kind::Create, Some(_)) => return Err(conflict(Reason::TopicExists, None)),
            (Kind::Create, None) => "",
            (_, None) => return Err(conflict(Reason::NoSuchTopic, None)),
            (Kind::Delete, Some(_)) => return Ok(None),
            (Kind::Modify, Some(text)) => text,
        };
        let text = with_lf(text);
        let old: Vec<&str> = text.lines().collect();
        let mut new = String::with_capacity(text.len());
        let mut push = |line: &str| {
            new.push_str(line);
            new.push('\n');
        };
        let mut at = 0;
        for hunk in &self.hunks {
            let start = hunk.first_line();
            if start < at {
                return Err(conflict(Reason::OverlappingHunks, Some(start + 1)));
            }
            let Some(between) = old.get(at..start) else {
                return Err(conflict(Reason::PastEnd, Some(start + 1)));
            };
            between.iter().for_each(|line| push(line));
            at = start;
            for (mark, line) in &hunk.lines {
                if *mark == Mark::Add {
                    push(line);
                    continue;
                }
                let found = old.get(at).copied();
                if found != Some(line) {
                    let reason = if found.is_none() { Reason::PastEnd } else { Reason::ContextMismatch };
                    let expected = Some((line.clone(), found.map(str::to_owned)));
                    return Err(Conflict { expected, ..conflict(reason, Some(at + 1)) });
                }
                if *mark == Mark::Keep {
                    push(line);
                }
                at += 1;
            }
        }
        old.get(at..).unwrap_or_default().iter().for_each(|line| push(line));
        Ok(Some(new))
    }
}

impl Hunk {
    /// The number, from 0, of the line that it begins with. One that only adds says behind which line.
    fn first_line(&self) -> usize {
        let adds = self.lines.iter().all(|(mark, _)| *mark == Mark::Add);
        if adds { self.start } else { self.start.saturating_sub(1) }
    }

    /// Reads `@@ -3,2 +3,4 @@` and whatever stands behind.
    fn head(line: &str) -> Option<Self> {
        let (ranges, _) = line.strip_prefix("@@ -")?.split_once(" @@")?;
        let (old, new) = ranges.split_once(" +")?;
        let range = |range: &str| -> Option<(usize, usize)> {
            let (start, count) = range.split_once(',').unwrap_or((range, "1"));
            let number = |digits: &str| {
                let plain = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
                plain.then(|| digits.parse().ok())?
            };
            Some((number(start)?, number(count)?))
        };
        let ((start, removed), (_, added)) = (range(old)?, range(new)?);
        Some(Self { start, counts: (removed, added), lines: Vec::new() })
    }

    /// Whether its head announces more lines than so many, of the topic as it is and as it shall be.
    fn is_open(&self, (old, new): (usize, usize)) -> (bool, bool) {
        (old < self.counts.0, new < self.counts.1)
    }
}

struct Reader<'t> {
    lines: Vec<&'t str>,
    at: usize,
    /// With the line that each begins in.
    files: Vec<(FilePatch, usize)>,
    faults: Vec<Fault>,
}

impl<'t> Reader<'t> {
    fn line(&self) -> Option<&'t str> {
        self.lines.get(self.at).copied()
    }

    /// Adds a fault at the line that is read.
    fn fault(&mut self, reason: Reason) {
        self.faults.push(Fault::at(reason, "patch").in_line(self.at + 1));
    }

    fn read(&mut self) {
        while let Some(line) = self.line() {
            let mode = MODES.iter().find_map(|mode| line.strip_prefix(mode));
            if UNSUPPORTED.iter().any(|head| line.starts_with(head)) || mode.is_some_and(|mode| mode != REGULAR_MODE) {
                self.fault(Reason::UnsupportedPatch);
            } else if line.starts_with("--- ") {
                self.file();
                continue;
            } else if line.starts_with("@@ ") {
                // Of no topic.
                self.fault(Reason::MalformedPatch);
            }
            self.at += 1;
        }
    }

    /// Reads what is done to one topic, from its `---` on.
    fn file(&mut self) {
        let first = self.at;
        let old = self.name("--- ", "a/");
        self.at += 1;
        let Some(new) = self.name("+++ ", "b/") else {
            self.fault(Reason::MalformedPatch);
            return;
        };
        self.at += 1;
        let hunks = self.hunks();
        let named = match (old.as_deref(), new.as_str()) {
            (Some(NOWHERE) | None, NOWHERE) | (None, _) => Err(Reason::MalformedPatch),
            (Some(NOWHERE), path) => Ok((path.to_owned(), Kind::Create)),
            (Some(path), NOWHERE) => Ok((path.to_owned(), Kind::Delete)),
            (Some(old), new) if old == new => Ok((new.to_owned(), Kind::Modify)),
            _ => Err(Reason::UnsupportedPatch),
        };
        let fault = |reason| Fault::at(reason, "patch").in_line(first + 1);
        let (path, kind) = match named {
            Ok(named) => named,
            Err(reason) => {
                self.faults.push(fault(reason));
                return;
            }
        };
        if hunks.is_empty() && kind != Kind::Delete {
            self.faults.push(fault(Reason::MalformedPatch));
        }
        match TopicPath::parse(&path) {
            Ok(path) => self.files.push((FilePatch { path, kind, hunks }, first + 1)),
            Err(error) => self.faults.push(Fault::of(path_reason(error), path).in_field("patch")),
        }
    }

    /// The path behind `---` or `+++`: up to a tab, without the directory that tools put before it.
    fn name(&self, head: &str, directory: &str) -> Option<String> {
        let name = self.line()?.strip_prefix(head)?;
        let name = match name.strip_prefix('"') {
            Some(quoted) => unquoted(quoted)?,
            None => name.split('\t').next().unwrap_or_default().to_owned(),
        };
        Some(name.strip_prefix(directory).map(str::to_owned).unwrap_or(name))
    }

    fn hunks(&mut self) -> Vec<Hunk> {
        let mut hunks: Vec<Hunk> = Vec::new();
        while let Some(line) = self.line() {
            if let Some(hunk) = Hunk::head(line) {
                hunks.push(hunk);
                self.at += 1;
                self.hunk(&mut hunks);
            } else if line.starts_with("@@") {
                self.fault(Reason::MalformedPatch);
                self.at += 1;
            } else {
                break;
            }
        }
        hunks.sort_by_key(|hunk| hunk.start);
        hunks
    }

    /// Reads the lines of the last hunk.
    fn hunk(&mut self, hunks: &mut [Hunk]) {
        let Some(hunk) = hunks.last_mut() else { return };
        // Lines that came, of the topic as it is and as it shall be.
        let mut come = (0, 0);
        // Lines of no character at all that came last.
        let mut empty = 0;
        while let Some(line) = self.lines.get(self.at).copied() {
            // What mail puts behind a patch.
            if line == "-- " && !hunk.is_open(come).0 {
                self.at = self.lines.len();
                break;
            }
            let (mark, text) = match line.split_at_checked(1) {
                None if line.is_empty() => (Mark::Keep, ""),
                Some((" ", text)) => (Mark::Keep, text),
                Some(("+", text)) => (Mark::Add, text),
                Some(("-", text)) if !(begins_file(&self.lines, self.at) && hunk.is_open(come) != (true, true)) => {
                    (Mark::Remove, text)
                }
                // That a line has no end.
                Some(("\\", _)) => {
                    self.at += 1;
                    continue;
                }
                _ => break,
            };
            empty = if line.is_empty() { empty + 1 } else { 0 };
            come.0 += usize::from(mark != Mark::Add);
            come.1 += usize::from(mark != Mark::Remove);
            hunk.lines.push((mark, text.to_owned()));
            self.at += 1;
        }
        // Empty lines behind it stand between parts of the patch.
        hunk.lines.truncate(hunk.lines.len() - empty);
        self.check_end();
    }

    /// Tells of a line that belongs to no part of a patch.
    fn check_end(&mut self) {
        if let Some(line) = self.line()
            && !(line.starts_with("@@") || line.starts_with("--- ") || HEADS.iter().any(|head| line.starts_with(head)))
        {
            self.fault(Reason::MalformedPatch);
        }
    }
}

/// What lines may begin with that stand between the parts of a patch.
const HEADS: &[&str] =
    &["diff ", "index ", "Index: ", "====", "new file mode ", "deleted file mode ", "similarity index "];

/// Whether the part of another topic begins here. A line that goes and itself begins with `-- ` looks the same.
fn begins_file(lines: &[&str], at: usize) -> bool {
    let begins = |at: usize, with: &str| lines.get(at).is_some_and(|line| line.starts_with(with));
    begins(at, "--- ") && begins(at + 1, "+++ ")
}

/// A name that git has put between quotes, behind the first of them: `\"`, `\\`, `\t`, `\n` and bytes as three octal digits.
fn unquoted(quoted: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(quoted.len());
    let mut rest = quoted.bytes();
    loop {
        match rest.next()? {
            b'"' => return String::from_utf8(bytes).ok(),
            b'\\' => match rest.next()? {
                b't' => bytes.push(b'\t'),
                b'n' => bytes.push(b'\n'),
                digit @ b'0'..=b'3' => {
                    let mut value = digit - b'0';
                    for _ in 0..2 {
                        let digit = rest.next().filter(|digit| matches!(digit, b'0'..=b'7'))?;
                        value = value * 8 + (digit - b'0');
                    }
                    bytes.push(value);
                }
                other @ (b'"' | b'\\') => bytes.push(other),
                _ => return None,
            },
            byte => bytes.push(byte),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn apply(patch: &str, text: Option<&str>) -> Result<Option<String>, (Reason, u64)> {
        let patch = Patch::parse(patch).unwrap_or_else(|faults| panic!("{faults:?}"));
        let [file] = patch.files() else { panic!("one topic") };
        file.apply(text).map_err(|conflict| (conflict.reason, conflict.line.unwrap_or_default() as u64))
    }

    fn told(fault: Fault) -> (Reason, u64) {
        let super::super::fault::Why::Update(reason) = fault.why else { panic!("{fault:?}") };
        (reason, fault.line.unwrap_or_default())
    }

    fn modify(hunks: &str) -> String {
        format!("--- a/topics/n.md\n+++ b/topics/n.md\n{hunks}")
    }

    fn refused(patch: &str) -> Vec<(Reason, u64)> {
        Patch::parse(patch).expect_err("refused").into_iter().map(told).collect()
    }

    const TEXT: &str = "one\ntwo\n\nfour\n-- five\n";

    #[test]
    fn hunks_are_put_where_they_say() {
        for (hunks, becomes) in [
            ("@@ -2 +2 @@\n-two\n+2\n", "one\n2\n\nfour\n-- five\n"),
            ("@@ -4 +4 @@\n-four\n+4\n@@ -1 +1 @@\n-one\n+1\n", "1\ntwo\n\n4\n-- five\n"),
            // Counts that are wrong, and an empty line for an empty one.
            ("@@ -2,9 +2,0 @@ here\n two\n\n four\n+4.5\n", "one\ntwo\n\nfour\n4.5\n-- five\n"),
            ("@@ -0,0 +1 @@\n+zero\n", "zero\none\ntwo\n\nfour\n-- five\n"),
            ("@@ -1,0 +2 @@\n+1.5\n", "one\n1.5\ntwo\n\nfour\n-- five\n"),
            ("@@ -5,0 +6 @@\n+six\n\\ No newline at end of file\n", "one\ntwo\n\nfour\n-- five\nsix\n"),
            // What looks like the beginning of another topic.
            ("@@ -5,1 +5,1 @@\n--- five\n+++ five\n", "one\ntwo\n\nfour\n++ five\n"),
            ("@@ -1 +1 @@\r\n-one\r\n+1\r\n", "1\ntwo\n\nfour\n-- five\n"),
            ("@@ -1 +1 @@\n-one\n+1\n\n\n-- \n2.39\n", "1\ntwo\n\nfour\n-- five\n"),
        ] {
            assert_eq!(apply(&modify(hunks), Some(TEXT)), Ok(Some(becomes.to_owned())), "{hunks}");
        }
        assert_eq!(apply(&modify("@@ -2 +2 @@\n-b\n+c\n"), Some("a\r\nb")), Ok(Some("a\nc\n".to_owned())));
    }

    #[test]
    fn a_long_hunk_costs_what_it_is_long() {
        // Each pair could begin another topic, so that it matters how many lines are still to come. Counted anew each time,
        // that were minutes.
        let lines = 100_000;
        let hunk = format!("@@ -1,{lines} +1,{lines} @@\n{}", "--- a\n+++ b\n".repeat(lines));
        let begun = std::time::Instant::now();
        let becomes = apply(&modify(&hunk), Some(&"-- a\n".repeat(lines)));
        assert!(becomes == Ok(Some("++ b\n".repeat(lines))), "another text");
        assert!(begun.elapsed() < std::time::Duration::from_secs(20), "{:?}", begun.elapsed());
    }

    #[test]
    fn what_does_not_fit_is_told_with_its_line() {
        for (hunks, fault) in [
            ("@@ -1,2 +1,2 @@\n one\n-three\n+3\n", (Reason::ContextMismatch, 2)),
            ("@@ -5,2 +5,1 @@\n -- five\n-six\n", (Reason::PastEnd, 6)),
            ("@@ -9 +9 @@\n-x\n", (Reason::PastEnd, 9)),
            ("@@ -1,2 +1,2 @@\n one\n-two\n@@ -2 +2 @@\n-two\n", (Reason::OverlappingHunks, 2)),
        ] {
            assert_eq!(apply(&modify(hunks), Some(TEXT)), Err(fault), "{hunks}");
        }
        let create = "--- /dev/null\n+++ b/topics/n.md\n@@ -0,0 +1,2 @@\n+a\n+b\n";
        assert_eq!(apply(create, None), Ok(Some("a\nb\n".to_owned())));
        assert_eq!(apply(create, Some("")), Err((Reason::TopicExists, 0)));
        let delete = "--- a/topics/n.md\n+++ /dev/null\n";
        assert_eq!(apply(delete, Some("whatever")), Ok(None));
        assert_eq!(apply(delete, None), Err((Reason::NoSuchTopic, 0)));
        assert_eq!(apply(&modify("@@ -1 +1 @@\n-a\n"), None), Err((Reason::NoSuchTopic, 0)));
    }

    #[test]
    fn names() {
        for (head, path) in [
            ("--- topics/n.md\n+++ topics/n.md\n", "topics/n.md"),
            ("--- a/topics/a b.md\t\n+++ b/topics/a b.md\t2026\n", "topics/a b.md"),
            ("--- \"a/topics/\\347\\251\\272\\\".md\"\n+++ \"b/topics/\\347\\251\\272\\\".md\"\n", "topics/空\".md"),
            ("diff --git a/x b/x\nindex 1..2 100644\n--- a/topics/%20.md\n+++ b/topics/%20.md\n", "topics/%20.md"),
        ] {
            let patch = Patch::parse(&format!("{head}@@ -1 +1 @@\n-a\n")).unwrap_or_else(|faults| panic!("{faults:?}"));
            assert_eq!(patch.files()[0].path().as_str(), path);
        }
        let two = format!("{}\n{}", modify("@@ -1 +1 @@\n-a\n"), modify("@@ -1 +1 @@\n-a\n").replace("/n.md", "/m.md"));
        assert_eq!(Patch::parse(&two).map(|patch| patch.files().len()), Ok(2));
    }

    #[test]
    fn what_is_no_patch_of_topics() {
        for (patch, fault) in [
            ("hello", (Reason::MalformedPatch, 0)),
            ("--- a/topics/n.md\nfoo\n", (Reason::MalformedPatch, 2)),
            ("--- /dev/null\n+++ /dev/null\n@@ -0,0 +1 @@\n+x\n", (Reason::MalformedPatch, 1)),
            ("--- a/topics/n.md\n+++ b/topics/n.md\n", (Reason::MalformedPatch, 1)),
            ("@@ -1 +1 @@\n-a\n", (Reason::MalformedPatch, 1)),
            ("--- a/topics/n.md\n+++ b/topics/n.md\n@@ -x +1 @@\n-a\n", (Reason::MalformedPatch, 3)),
            ("--- a/topics/n.md\n+++ b/topics/n.md\n@@ -1 +1 @@\n-a\nfoo\n", (Reason::MalformedPatch, 5)),
            ("--- a/topics/n.md\n+++ b/topics/m.md\n@@ -1 +1 @@\n-a\n", (Reason::UnsupportedPatch, 1)),
            (
                "new file mode 120000\n--- /dev/null\n+++ b/topics/m.md\n@@ -0,0 +1 @@\n+a\n",
                (Reason::UnsupportedPatch, 1),
            ),
            ("--- a/../topics/n.md\n+++ b/../topics/n.md\n@@ -1 +1 @@\n-a\n", (Reason::PathOutside, 0)),
            ("--- a/core.md\n+++ b/core.md\n@@ -1 +1 @@\n-a\n", (Reason::NotATopic, 0)),
        ] {
            assert!(refused(patch).contains(&fault), "{patch}: {:?}", refused(patch));
        }
        let twice = modify("@@ -1 +1 @@\n-a\n").repeat(2);
        assert_eq!(refused(&twice), [(Reason::PathGivenTwice, 5)]);
        for mode in ["new file mode 100644", "deleted file mode 100644"] {
            assert!(Patch::parse(&format!("{mode}\n{}", modify("@@ -1 +1 @@\n-a\n"))).is_ok());
        }
    }
}
