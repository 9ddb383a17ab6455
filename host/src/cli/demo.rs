//! `recollex demo`: the main job end to end on the sample conversation, in a temporary workspace.
//!
//! Every step runs what the verb of that name runs, and is checked: a demonstration that shows wrong results fails. The
//! sample and what must be found in it are described in `examples/data/README.md`.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Parser;
use recollex::history;
use recollex::model::RolesSettings;
use recollex::types::Severity;
use recollex::workspace::{Answer, Hit};
use recollex::{Runtime, Session};
use serde::Serialize;

use super::archive;
use super::args::{Cli, Demo, Verb};
use super::config::{ModelsSource, Origin, Setup};
use super::context::Context;
use super::failure::{Exit, Failure};
use super::output::Output;
use super::search;
use super::terminal::{Look, one_line};
use super::verify::{self, Name, Report};

/// The sample, as the repository has it.
const SAMPLE: &str = include_str!("../../../examples/data/conversation.jsonl");

/// A record of the sample, and the file that holds it: the one that is damaged.
const VICTIM: &str = "openprogram/repair/r-031";

#[derive(Serialize)]
struct Document<'a> {
    ok: bool,
    directory: Option<&'a str>,
    steps: &'a [Step],
}

/// A step that gave what it must.
#[derive(Serialize)]
struct Step {
    step: &'static str,
    command: String,
    /// What came out, in a few words.
    result: String,
}

/// Runs the verb.
pub fn run(args: &Demo, context: &Context) -> Result<Exit, Failure> {
    let runtime = context.runtime()?;
    // Memory that is off is told before the directory is made.
    context.open(&runtime, &context.setup.workspace)?;
    let directory = tempfile::Builder::new()
        .prefix("recollex-demo-")
        .tempdir()
        .map_err(|error| Failure::io("make a temporary directory", &std::env::temp_dir(), &error))?;
    let mut stage = Stage::new(directory.path().to_owned(), context, &runtime)?;
    let played = stage.play();
    let kept = args.keep.then(|| directory.keep().display().to_string());
    if played.is_ok() {
        stage.last_words(kept.as_deref());
    } else if let Some(kept) = &kept {
        context.hint(&format!("The directory is kept: {kept}"));
    }
    if let Err(error) = stage.inner.out.finish() {
        return Err(Failure::output(&error));
    }
    played?;
    if context.out.json {
        context.out.document(&Document { ok: true, directory: kept.as_deref(), steps: &stage.steps });
    }
    Ok(Exit::DONE)
}

struct Stage {
    directory: PathBuf,
    /// Its workspace is the temporary one.
    inner: Context,
    runtime: Runtime,
    session: Session,
    steps: Vec<Step>,
}

impl Stage {
    fn new(directory: PathBuf, context: &Context, runtime: &Runtime) -> Result<Self, Failure> {
        let workspace = directory.join("memory");
        let inner = Context {
            global: context.global.clone(),
            setup: Setup {
                time_zone: context.setup.time_zone.clone(),
                unpacked_bytes: context.setup.unpacked_bytes,
                workspace: workspace.clone(),
                workspace_from: Origin::Default,
                profile: None,
                config: context.setup.config.clone(),
                compiled: context.setup.compiled.clone(),
                settings: context.setup.settings.clone(),
                history: history::Mode::Off,
                // It asks none.
                models: RolesSettings::default(),
                models_from: ModelsSource::default(),
                limits: context.setup.limits.clone(),
                // Nothing of anybody's conversations.
                sessions: super::config::Sessions::default(),
                daemon: super::config::DaemonTimes::default(),
                home: None,
            },
            out: if context.out.json {
                Output::to(Box::new(std::io::sink()), Look::default(), false)
            } else {
                Output::stdout(false)
            },
            remarks: Arc::clone(&context.remarks),
        };
        let session = inner.open(runtime, &workspace)?;
        Ok(Self { directory, inner, runtime: runtime.clone(), session, steps: Vec::new() })
    }

    fn play(&mut self) -> Result<(), Failure> {
        let turns = SAMPLE.lines().filter(|line| !line.trim().is_empty()).count() as u64;
        self.say("Three people and their assistant talk about a boat for six days, in English and Chinese.");
        self.init()?;
        self.archive("archive", turns, 0)?;
        self.archive("repeat", 0, turns)?;
        self.verify(turns)?;
        self.search("english", &["search", "keel", "bolts", "price", "--top-k", "5"], |answer| {
            let prices = ["openprogram/repair/r-008", "openprogram/repair/r-030", "openprogram/repair/r-032"];
            expect_any(answer, &prices)
        })?;
        self.search("chinese", &["search", "喷油嘴", "--top-k", "2"], |answer| {
            expect_any(answer, &["openprogram/repair/r-017", "openprogram/repair/r-035", "openprogram/预算/b-008"])
        })?;
        self.say("");
        self.say(
            "Tom pasted a line that looks like Ada's. It stays his text: a search for what Ada said leaves it out.",
        );
        self.search("speaker", &["search", "boat", "--speaker", "Ada", "--top-k", "2"], |answer| {
            expect_any(answer, &["openprogram/repair/r-028"])?;
            let others = answer.hits.iter().find(|hit| !is_ada(hit));
            others.map_or(Ok(()), |hit| Err(format!("{} is not Ada's", hit.id)))
        })?;
        self.damage()
    }

    fn say(&self, text: &str) {
        self.inner.out.line(text);
    }

    /// Shows a command as it would be typed.
    fn command(&self, words: &str) -> String {
        let look = self.inner.out.look;
        self.say("");
        self.say(&format!("{} {}", look.faint("$"), look.strong(words)));
        words.to_owned()
    }

    fn passed(&mut self, step: &'static str, command: String, result: String) {
        self.inner.remarks.trace(&format!("{step}: {result}"));
        self.inner.out.flush();
        self.steps.push(Step { step, command, result });
    }

    fn init(&mut self) -> Result<(), Failure> {
        let command = self.command("recollex init");
        let initialised = self.session.init()?;
        self.say(&format!("Made workspace {}", initialised.workspace));
        if !initialised.created {
            return Err(Failure::demo("init", "a workspace was there already in a new directory"));
        }
        self.passed("init", command, initialised.workspace);
        Ok(())
    }

    fn archive(&mut self, step: &'static str, archived: u64, already: u64) -> Result<(), Failure> {
        let file = self.directory.join("conversation.jsonl");
        fs::write(&file, SAMPLE).map_err(|error| Failure::io("write the sample", &file, &error))?;
        let command = self.command("recollex archive --chunk conversation.jsonl");
        let args = super::args::Archive { provider: None, thread: None, chunk: true, file: Some(file) };
        let (result, totals, _) = archive::keep(&args, &self.inner, &mut self.session)?;
        result?;
        let summary = archive::summary(&totals);
        self.say(&summary);
        if (totals.archived, totals.already, totals.differs.len()) != (archived, already, 0) {
            let wanted = format!("{archived} new and {already} known turns were to be expected, not: {summary}");
            return Err(Failure::demo(step, wanted));
        }
        self.passed(step, command, summary);
        Ok(())
    }

    fn verify(&mut self, records: u64) -> Result<(), Failure> {
        let command = self.command("recollex verify");
        let mut report = Report::new(&self.inner.out);
        let outcome = verify::verify_workspace(&self.inner, &mut self.session, "", &mut report)?;
        let result = report.finish(&outcome);
        if !outcome.ok || outcome.counts.frames != records {
            let message = format!("{records} records and no finding were to be expected, not: {result}");
            return Err(Failure::demo("verify", message));
        }
        self.passed("verify", command, result);
        Ok(())
    }

    fn search(
        &mut self,
        step: &'static str,
        words: &[&str],
        check: impl FnOnce(&Answer) -> Result<(), String>,
    ) -> Result<(), Failure> {
        let command = self.command(&format!("recollex {}", words.join(" ")));
        // What is shown is what is run.
        let parsed = Cli::try_parse_from(std::iter::once(&"recollex").chain(words));
        let Ok(Cli { verb: Verb::Search(args), .. }) = parsed else {
            return Err(Failure::demo(step, format!("`{command}` is not a search")));
        };
        let query = search::query(&args);
        let answer = self.session.search(&query)?;
        search::render(&self.inner.out, &query, &answer);
        check(&answer).map_err(|message| Failure::demo(step, message))?;
        let ids: Vec<&str> = answer.hits.iter().map(|hit| &*hit.id).collect();
        self.passed(step, command, ids.join(", "));
        Ok(())
    }

    /// Changes one byte of a copy, and shows that it is found.
    fn damage(&mut self) -> Result<(), Failure> {
        let path = self.session.get(VICTIM, None, 1)?.path;
        let original = self.inner.setup.workspace.join(&path);
        let copy = self.directory.join("copy").join(&path);
        let mut bytes = fs::read(&original).map_err(|error| Failure::io("read the archive", &original, &error))?;
        let (offset, was, is) = change_one_byte(&mut bytes)
            .ok_or_else(|| Failure::demo("damage", format!("{VICTIM} is not in {path}, where it was archived")))?;
        write_copy(&copy, &bytes).map_err(|error| Failure::io("write the copy", &copy, &error))?;
        self.say("");
        self.say(&format!(
            "Now a copy is damaged: in copy/{path}, byte {offset} is `{}` instead of `{}`.",
            char::from(is),
            char::from(was)
        ));
        let command = self.command(&format!("recollex verify copy/{path}"));
        let mut report = Report::new(&self.inner.out);
        let name = Name::plain(&format!("copy/{path}"));
        let size = bytes.len() as u64;
        let outcome = verify::verify_stream(&self.runtime, &self.inner, &mut &*bytes, &name, size, &mut report)?;
        let found = report.seen(Severity::Error) + report.seen(Severity::Warning);
        let result = report.finish(&outcome);
        if outcome.ok || found == 0 {
            return Err(Failure::demo("damage", "the changed byte was not found"));
        }
        self.passed("damage", command, result);
        Ok(())
    }

    fn last_words(&self, kept: Option<&str>) {
        let look = self.inner.out.look;
        self.say("");
        self.say(&look.good("Every step gave what it must."));
        let search = match kept {
            Some(directory) => {
                self.say(&format!("The directory is kept: {directory}"));
                format!("recollex --workspace {directory}/memory browse")
            }
            None => "recollex demo --keep".to_owned(),
        };
        self.say("");
        self.say("Go on with:");
        for (command, what) in [
            (&*search, "look around in this sample"),
            ("recollex init", "make a workspace of your own"),
            ("recollex archive --provider notes --thread boat turns.jsonl", "keep a conversation"),
            ("recollex search WORDS", "find what was said"),
            ("recollex help", "everything else"),
        ] {
            self.say(&format!("  {}", look.strong(command)));
            self.say(&format!("      {}", look.faint(what)));
        }
    }
}

/// One of these must be among the results.
fn expect_any(answer: &Answer, ids: &[&str]) -> Result<(), String> {
    if answer.hits.iter().any(|hit| ids.contains(&&*hit.id)) {
        return Ok(());
    }
    let found: Vec<&str> = answer.hits.iter().map(|hit| &*hit.id).collect();
    Err(format!("one of {} was to be found, not: {}", ids.join(", "), one_line(&found.join(", "))))
}

fn is_ada(hit: &Hit) -> bool {
    hit.speaker.as_ref().is_some_and(|speaker| speaker.id == "u-1" && speaker.trusted)
}

/// Flips a bit in the id of a record. Answers offset, old byte and new byte.
fn change_one_byte(bytes: &mut [u8]) -> Option<(usize, u8, u8)> {
    let at = bytes.windows(VICTIM.len()).position(|window| window == VICTIM.as_bytes())? + VICTIM.len() - 1;
    let byte = bytes.get_mut(at)?;
    let was = *byte;
    *byte ^= 1;
    Some((at, was, *byte))
}

fn write_copy(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent)?;
    }
    fs::write(path, bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::turns::{Defaults, Turns};

    #[test]
    fn the_sample_can_be_read_and_has_what_is_searched_for() {
        let mut turns = Turns::new(SAMPLE.as_bytes(), Defaults::default());
        let mut ids = Vec::new();
        while let Some(next) = turns.next().unwrap() {
            assert!(next.unknown.is_empty(), "line {}", next.line);
            ids.push(format!("{}/{}/{}", next.turn.provider, next.turn.thread, next.turn.id));
        }
        for id in [VICTIM, "openprogram/repair/r-008", "openprogram/预算/b-008"] {
            assert!(ids.iter().any(|known| known == id), "{id}");
        }
    }

    #[test]
    fn one_byte_is_changed() {
        let text = format!("x {VICTIM} y");
        let mut bytes = text.clone().into_bytes();
        assert_eq!(change_one_byte(&mut bytes), Some((25, b'1', b'0')));
        assert_eq!(text.bytes().zip(bytes).filter(|(a, b)| a != b).count(), 1);
        assert_eq!(change_one_byte(&mut [0; 3]), None);
    }
}
