//! `recollex verify`: checks a workspace through a session, or one file through the component that imports nothing.
//!
//! Findings are written as they come; a verification of any size needs no more memory than its pieces.

use std::io::{self, Read};
use std::path::{Path, PathBuf};

use recollex::archive_view::Origin;
use recollex::types::{Counts, Finding, Health, Severity};
use recollex::{Runtime, Session};
use serde::Serialize;

use super::args::Verify;
use super::context::Context;
use super::failure::{Exit, Failure};
use super::input;
use super::output::{Listing, Output, Unit};
use super::status::{health, place, sources};
use super::terminal::{Look, count};
use super::views::{self, CountsView, FindingView};

/// Bytes read, and handed to a component, at a time.
const PIECE_BYTES: usize = 1 << 20;
/// Findings taken from the component at a time.
const FINDINGS_MAX: u32 = 1000;

/// How a verification ended.
#[derive(Debug)]
pub struct Outcome {
    /// No finding above `info`.
    pub ok: bool,
    /// How memory is.
    pub health: Health,
    /// Of the workspace; a file has none.
    pub revision: Option<String>,
    /// Figures.
    pub counts: Counts,
    /// Findings that were counted only, because too many came.
    pub dropped: u64,
}

#[derive(Serialize)]
struct Rest<'a, T> {
    ok: bool,
    health: &'static str,
    revision: Option<&'a str>,
    counts: CountsView,
    findings_dropped: u64,
    #[serde(flatten)]
    more: &'a T,
}

/// Runs the verb.
pub fn run(args: &Verify, context: &Context) -> Result<Exit, Failure> {
    let runtime = context.runtime()?;
    // Reads nothing yet; memory that is off is told here, whatever is to be verified.
    let mut session = context.open(&runtime, &context.setup.workspace)?;
    let target = target(args, context)?;
    let fixed = if args.fix { Some(put_in_order(&mut session, context, args.dry_run)?) } else { None };
    let mut report = Report::new(&context.out);
    let outcome = match target {
        Target::Stream(name) => verify_stream(&runtime, context, &mut input::stdin()?.lock(), &name, 0, &mut report),
        Target::File(file, name) => {
            let fail = |error: io::Error| Failure::io("read the file", &file, &error);
            let mut stream = input::open(&file, "file")?;
            let size = stream.metadata().map(|metadata| metadata.len()).unwrap_or(0);
            let mut beginning = Vec::new();
            (&mut stream).take(TAR_HEADER as u64).read_to_end(&mut beginning).map_err(fail)?;
            if let Some(failure) = packed(&beginning) {
                return Err(failure.at_path(name.shown));
            }
            let mut stream = io::Cursor::new(beginning).chain(stream);
            verify_stream(&runtime, context, &mut stream, &name, size, &mut report)
        }
        Target::Directory(root) => {
            session = context.open(&runtime, &root)?;
            verify_workspace(context, &mut session, "", &mut report)
        }
        Target::Inside(prefix) => verify_workspace(context, &mut session, &prefix, &mut report),
        Target::Part(root, path) => {
            session = context.open(&runtime, &root)?;
            verify_workspace(context, &mut session, &path, &mut report)
        }
    };
    // A document that has begun is ended, so that a reader gets the findings up to here; the error follows on stderr.
    let outcome = match outcome {
        Ok(outcome) => outcome,
        Err(failure) => return report.broken_off(context, failure),
    };
    match &fixed {
        Some(fixed) => report.finish_with(&outcome, &Fixed { fixed, dry_run: args.dry_run }),
        None => report.finish(&outcome),
    };
    if outcome.health == Health::Empty {
        let none = session.status().is_ok_and(|status| status.workspace.is_none());
        context.hint(if outcome.revision.is_some() && none {
            "There was nothing to check: no workspace, no archive and no topic."
        } else {
            "There was nothing to check: no archive and no topic. Name a file, or the directory above `sources/`."
        });
    }
    if outcome.dropped > 0 {
        context.hint("There were more findings. For all of them: --set limits.findings-max=N");
    }
    // Whoever names something to be checked must not take "nothing there" for "nothing wrong".
    let is_idle = args.path.is_some() && outcome.health == Health::Empty;
    Ok(if outcome.ok && !is_idle { Exit::DONE } else { Exit::NOTHING })
}

/// What was put in order before the check.
#[derive(Serialize)]
struct Fixed<'a> {
    fixed: &'a [String],
    dry_run: bool,
}

/// Puts topics and views in order. The files that changed, or would.
fn put_in_order(session: &mut Session, context: &Context, dry_run: bool) -> Result<Vec<String>, Failure> {
    let updated = context.time("repair", || session.repair(dry_run))?;
    if !context.out.json {
        let word = if dry_run { "would put in order" } else { "put in order" };
        for path in &updated.changed_files {
            context.out.line(&format!("{word}: {}", context.out.look.foreign(path)));
        }
    }
    Ok(updated.changed_files)
}

/// Bytes of a tar archive's first header, and where its signature is in it.
const TAR_HEADER: usize = 512;
const TAR_SIGNATURE: std::ops::Range<usize> = 257..262;

/// A backup holds archives and is none: every line of it would be a finding.
fn packed(beginning: &[u8]) -> Option<Failure> {
    if beginning.get(TAR_SIGNATURE) != Some(b"ustar") {
        return None;
    }
    Some(if beginning.starts_with(b"recollex-backup.json\0") {
        Failure::usage("backup", "this is a backup of a workspace, not an archive of a conversation")
            .next("`recollex restore FILE --dry-run` checks a backup to its last byte and says what it would change")
    } else {
        Failure::usage("packed", "this is a tar archive, not an archive of a conversation").next("unpack it first")
    })
}

enum Target {
    /// Stdin.
    Stream(Name),
    /// A file.
    File(PathBuf, Name),
    /// A workspace.
    Directory(PathBuf),
    /// A part of this call's workspace; empty: all.
    Inside(String),
    /// A topic, or `core.md`, of another one: its root, and the path there.
    Part(PathBuf, String),
}

/// What a file is called.
#[derive(Debug)]
pub struct Name {
    /// For the component, which tells by it what the file is and which records belong there.
    pub full: String,
    /// For people: as they typed it.
    pub shown: String,
}

impl Name {
    /// One for both.
    pub fn plain(name: &str) -> Self {
        Self { full: name.to_owned(), shown: name.to_owned() }
    }

    /// A file on this machine: where it lies may say more than what was typed.
    fn of(path: &Path) -> Self {
        let full = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        Self { full: full.to_string_lossy().into_owned(), shown: path.to_string_lossy().into_owned() }
    }
}

fn target(args: &Verify, context: &Context) -> Result<Target, Failure> {
    let given = args.path_in_workspace.as_deref();
    let Some(path) = &args.path else {
        context.setup.check_workspace()?;
        if context.is_absent() {
            // A wrong word in a path must not be taken for a clean archive.
            return Err(Failure::no_workspace("verify", &context.setup.workspace));
        }
        return Ok(Target::Inside(String::new()));
    };
    if path == Path::new("-") {
        return Ok(Target::Stream(given.map_or_else(|| Name::plain("stdin"), Name::plain)));
    }
    match path.metadata() {
        Ok(metadata) if metadata.is_dir() => Ok(Target::Directory(path.clone())),
        Ok(_)
            if given.is_none()
                && let Some(target) = among_topics(path, &context.setup.workspace) =>
        {
            Ok(target)
        }
        Ok(_) => Ok(Target::File(path.clone(), given.map_or_else(|| Name::of(path), Name::plain))),
        Err(error) => {
            // Not from here: perhaps a path within the workspace, as findings and listings show them.
            let there = context.setup.workspace.join(path);
            match (path.to_str().filter(|_| path.is_relative()), there.metadata()) {
                (Some(inside), Ok(metadata)) if metadata.is_dir() => Ok(Target::Inside(inside.to_owned())),
                (Some(inside), Ok(_)) if is_of_topics(inside) => Ok(Target::Inside(inside.to_owned())),
                (Some(inside), Ok(_)) => Ok(Target::File(there, Name::plain(given.unwrap_or(inside)))),
                _ => Err(Failure::io("read what is to be verified", path, &error)),
            }
        }
    }
}

/// Whether a path within a workspace is that of something whose faults depend on other files: links lead to blocks of other
/// topics and to records.
fn is_of_topics(path: &str) -> bool {
    path == "core.md" || path.strip_prefix("topics/").is_some_and(|rest| rest.ends_with(".md"))
}

/// A file on this machine as part of the workspace it lies in, if it is a topic there: the files around it decide what is wrong
/// with it. A directory is taken for a workspace if it has a runtime directory or evidence.
fn among_topics(file: &Path, workspace: &Path) -> Option<Target> {
    let file = std::path::absolute(file).ok()?;
    let root = file.ancestors().skip(1).find(|root| {
        let inside = file.strip_prefix(root).ok().and_then(Path::to_str);
        inside.is_some_and(is_of_topics)
            && ["sources", ".scriptorium", ".nativemem"].iter().any(|name| root.join(name).is_dir())
    })?;
    let inside = file.strip_prefix(root).ok()?.to_str()?.to_owned();
    let is_same = |a: &Path, b: &Path| matches!((a.canonicalize(), b.canonicalize()), (Ok(a), Ok(b)) if a == b);
    Some(if is_same(root, workspace) { Target::Inside(inside) } else { Target::Part(root.to_owned(), inside) })
}

/// Checks a workspace, or what lies below `prefix`.
pub fn verify_workspace(
    context: &Context,
    session: &mut Session,
    prefix: &str,
    report: &mut Report<'_>,
) -> Result<Outcome, Failure> {
    let mut verification = session.verify(prefix)?;
    while let Some(findings) = verification.step(session, 8 * PIECE_BYTES as u64)? {
        context.remarks.aside(|| report.findings(&findings));
    }
    let end = verification.report(session)?;
    Ok(Outcome {
        ok: end.ok,
        health: end.health,
        revision: Some(end.revision),
        counts: end.counts,
        dropped: end.findings_dropped,
    })
}

/// Whether a finding leaves a workspace clean.
pub fn is_remark(finding: &Finding) -> bool {
    finding.severity == Severity::Info
}

/// Checks one file as it comes.
pub fn verify_stream(
    runtime: &Runtime,
    context: &Context,
    stream: &mut dyn Read,
    name: &Name,
    size: u64,
    report: &mut Report<'_>,
) -> Result<Outcome, Failure> {
    let progress = context.remarks.progress("verify", size, Unit::Bytes);
    // What is in the file is not listed here.
    let mut settings = context.settings();
    settings.retain(|(name, _)| recollex::Archive::SETTINGS.contains(name));
    settings.push(("limits.records-max", "0"));
    let mut archive =
        recollex::Archive::open(runtime, Origin::Named, settings).map_err(|error| context.who_set_it(error))?;
    let mut piece = vec![0; PIECE_BYTES];
    let mut done = 0;
    loop {
        let read = match stream.read(&mut piece) {
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(Failure::io("read the file", Path::new(&name.shown), &error)),
        };
        let last = read == 0;
        archive.push_bytes(&name.full, piece.get(..read).unwrap_or_default(), last)?;
        done += read as u64;
        progress.set(done);
        if last {
            archive.finish()?;
        }
        loop {
            let mut findings = archive.take_findings(FINDINGS_MAX)?;
            if findings.is_empty() {
                break;
            }
            for finding in &mut findings {
                if finding.path.as_ref() == Some(&name.full) {
                    finding.path = Some(name.shown.clone());
                }
            }
            context.remarks.aside(|| report.findings(&findings));
        }
        if last {
            break;
        }
    }
    let end = archive.summary()?;
    Ok(Outcome { ok: end.ok, health: end.health, revision: None, counts: end.counts, dropped: end.findings_dropped })
}

/// Writes findings as they come, and the end.
pub struct Report<'a> {
    out: &'a Output,
    listing: Option<Listing<'a>>,
    seen: [u64; 3],
}

impl<'a> Report<'a> {
    /// Nothing found yet.
    pub fn new(out: &'a Output) -> Self {
        Self { out, listing: None, seen: [0; 3] }
    }

    /// Writes these.
    pub fn findings(&mut self, findings: &[Finding]) {
        for finding in findings {
            if let Some(n) = self.seen.get_mut(level(finding.severity)) {
                *n += 1;
            }
            if self.out.json {
                self.listing.get_or_insert_with(|| self.out.listing("findings")).item(&FindingView::from(finding));
            } else {
                lines(self.out.look, finding).iter().for_each(|line| self.out.line(line));
            }
        }
        if self.out.look.terminal {
            self.out.flush();
        }
    }

    /// How many of this severity there were so far.
    pub fn seen(&self, severity: Severity) -> u64 {
        self.seen.get(level(severity)).copied().unwrap_or(0)
    }

    /// Writes the end, and answers the summary that people get.
    pub fn finish(self, outcome: &Outcome) -> String {
        self.finish_with(outcome, &serde_json::Map::new())
    }

    /// The same, with further keys of the document.
    pub fn finish_with(self, outcome: &Outcome, more: &impl Serialize) -> String {
        let plain = summary(Look::default(), self.seen, outcome);
        if self.out.json {
            self.listing.unwrap_or_else(|| self.out.listing("findings")).finish(&Rest {
                ok: outcome.ok,
                health: views::health(outcome.health),
                revision: outcome.revision.as_deref(),
                counts: CountsView::from(&outcome.counts),
                findings_dropped: outcome.dropped,
                more,
            });
        } else {
            self.out.line(&summary(self.out.look, self.seen, outcome));
        }
        plain
    }

    /// Ends a document that has begun, with the failure.
    pub fn broken_off(self, context: &Context, failure: Failure) -> Result<Exit, Failure> {
        match self.listing {
            Some(listing) => {
                listing.finish(&failure.document());
                context.remarks.failure(&failure);
                Ok(failure.exit)
            }
            None => Err(failure),
        }
    }
}

fn level(severity: Severity) -> usize {
    match severity {
        Severity::Info => 0,
        Severity::Warning => 1,
        Severity::Error => 2,
    }
}

/// `path:line: severity: code: message`, and the beginning of the line it is about.
pub fn lines(look: Look, finding: &Finding) -> Vec<String> {
    let severity = views::severity(finding.severity);
    let severity = match finding.severity {
        Severity::Info => look.faint(severity),
        Severity::Warning => look.warning(severity),
        Severity::Error => look.bad(severity),
    };
    let place = look.strong(&look.foreign(&place(finding.path.as_deref(), finding.line)));
    let mut lines = vec![format!("{place}{severity}: {}: {}", finding.code, look.foreign(&finding.message))];
    if let Some(excerpt) = &finding.excerpt {
        lines.push(format!("    {}", look.faint(&look.foreign(excerpt))));
    }
    lines
}

fn summary(look: Look, [infos, warnings, errors]: [u64; 3], outcome: &Outcome) -> String {
    let verdict = match outcome.health {
        Health::Empty => look.warning("nothing to check"),
        _ if outcome.ok => look.good("clean"),
        other => health(look, other),
    };
    let mut text = format!("{verdict}: {}", sources(&outcome.counts));
    for (n, one, many) in [(errors, "error", "errors"), (warnings, "warning", "warnings"), (infos, "remark", "remarks")]
    {
        if n > 0 {
            text.push_str(&format!(", {}", count(n, one, many)));
        }
    }
    if outcome.dropped > 0 {
        text.push_str(&format!(", {} not shown", count(outcome.dropped, "finding", "findings")));
    }
    if let Some(revision) = outcome.revision.as_deref().filter(|revision| !revision.is_empty()) {
        text.push_str(&format!(", revision {revision}"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finding(severity: Severity) -> Finding {
        Finding {
            code: "invalid-utf8".to_owned(),
            severity,
            path: Some("sources/p/_v2/t.md".to_owned()),
            line: Some(7),
            subject: None,
            excerpt: Some("[] user: a\\xff".to_owned()),
            message: "not UTF-8".to_owned(),
        }
    }

    fn counts() -> Counts {
        Counts { source_files: 1, frames: 52, legacy_records: None, topic_files: 0, blocks: None, bytes: 900 }
    }

    #[test]
    fn a_backup_is_told_from_an_archive() {
        let mut header = [0; TAR_HEADER];
        header[..20].copy_from_slice(b"recollex-backup.json");
        assert!(packed(&header).is_none());
        header[TAR_SIGNATURE].copy_from_slice(b"ustar");
        assert_eq!(packed(&header).unwrap().reason, "backup");
        header[0] = b'x';
        assert_eq!(packed(&header).unwrap().reason, "packed");
        assert!(packed(b"<!-- openprogram").is_none());
    }

    #[test]
    fn a_finding_is_a_line_that_editors_understand() {
        let lines = lines(Look::default(), &finding(Severity::Error));
        assert_eq!(lines[0], "sources/p/_v2/t.md:7: error: invalid-utf8: not UTF-8");
        assert_eq!(lines[1], "    [] user: a\\xff");
    }

    #[test]
    fn the_summary_counts() {
        let outcome = Outcome {
            ok: false,
            health: Health::Degraded,
            revision: Some("r1-00".to_owned()),
            counts: counts(),
            dropped: 2,
        };
        assert_eq!(
            summary(Look::default(), [0, 1, 3], &outcome),
            "degraded: 1 file, 52 records, 900 B, 3 errors, 1 warning, 2 findings not shown, revision r1-00"
        );
    }

    #[test]
    fn json_is_one_document_with_the_stable_keys() {
        let (out, text) = crate::cli::output::tests::captured(true);
        let mut report = Report::new(&out);
        report.findings(&[finding(Severity::Warning), finding(Severity::Error)]);
        report.finish(&Outcome { ok: false, health: Health::Degraded, revision: None, counts: counts(), dropped: 0 });
        out.finish().unwrap();
        let value: serde_json::Value = serde_json::from_slice(&text.borrow()).unwrap();
        assert_eq!(value["ok"], false);
        assert_eq!(value["health"], "degraded");
        assert_eq!(value["counts"]["frames"], 52);
        assert_eq!(value["findings"][1]["severity"], "error");
        assert_eq!(value["findings"][0]["line"], 7);
    }

    #[test]
    fn a_topic_is_checked_in_its_workspace() {
        let parent = tempfile::tempdir().unwrap();
        let root = parent.path().join("memory");
        for directory in ["sources", "topics/a"] {
            std::fs::create_dir_all(root.join(directory)).unwrap();
        }
        let at = |path: &str| among_topics(&root.join(path), parent.path());
        let inside = |path: &str| match at(path) {
            Some(Target::Part(found, inside)) if found == root => Some(inside),
            _ => None,
        };
        assert_eq!(inside("topics/a/tea.md").as_deref(), Some("topics/a/tea.md"));
        assert_eq!(inside("core.md").as_deref(), Some("core.md"));
        assert!(at("sources/p/_v2/t.md").is_none() && at("topics/tea.txt").is_none());
        assert!(
            matches!(among_topics(&root.join("topics/b.md"), &root), Some(Target::Inside(path)) if path == "topics/b.md")
        );
        // A loose file of such a name belongs to nothing.
        assert!(among_topics(&parent.path().join("elsewhere/topics/a.md"), &root).is_none());
    }
}
