//! Where results and remarks go: results to stdout, everything else to stderr.
//!
//! Knows streams, `--json`, `--quiet` and `-v`. Must not know what is said.
//!
//! Writing a result never fails where it is called: a pipe that nobody reads any more makes the rest of the output go
//! nowhere, quietly, and any other fault of stdout is kept and reported once, at the end ([`Output::finish`]).

use std::cell::{Cell, RefCell};
use std::io::{self, BufWriter, Write};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use recollex::observer::{Level, Observer};
use serde::Serialize;

use super::failure::Failure;
use super::terminal::{Look, escape, escape_line};

/// Stdout: results.
pub struct Output {
    stream: RefCell<BufWriter<Box<dyn Write>>>,
    closed: Cell<bool>,
    fault: RefCell<Option<io::Error>>,
    standing: RefCell<Option<String>>,
    /// What stdout can show.
    pub look: Look,
    /// One JSON document instead of text.
    pub json: bool,
}

impl Output {
    /// The process's stdout.
    pub fn stdout(json: bool) -> Self {
        let look = Look::of(&io::stdout());
        Self::to(Box::new(io::stdout()), look, json)
    }

    /// Any stream.
    pub fn to(stream: Box<dyn Write>, look: Look, json: bool) -> Self {
        Self {
            stream: RefCell::new(BufWriter::with_capacity(64 << 10, stream)),
            closed: Cell::new(false),
            fault: RefCell::new(None),
            standing: RefCell::new(None),
            look,
            json,
        }
    }

    fn write(&self, with: impl FnOnce(&mut dyn Write) -> io::Result<()>) {
        if !self.closed.get() {
            let result = with(&mut *self.stream.borrow_mut());
            self.keep(result);
        }
    }

    fn keep(&self, result: io::Result<()>) {
        if let Err(error) = result {
            self.closed.set(true);
            if error.kind() != io::ErrorKind::BrokenPipe {
                *self.fault.borrow_mut() = Some(error);
            }
        }
    }

    /// Text as it is.
    pub fn text(&self, text: &str) {
        self.write(|stream| stream.write_all(text.as_bytes()));
    }

    /// Bytes as they are.
    pub fn bytes(&self, bytes: &[u8]) {
        self.write(|stream| stream.write_all(bytes));
    }

    /// Text and a line feed.
    pub fn line(&self, text: &str) {
        self.write(|stream| {
            stream.write_all(text.as_bytes())?;
            stream.write_all(b"\n")
        });
    }

    /// A JSON document on a line of its own.
    pub fn document(&self, value: &impl Serialize) {
        self.write(|stream| {
            serde_json::to_writer(&mut *stream, value)?;
            stream.write_all(b"\n")
        });
    }

    /// Begins a JSON document whose first key is a long list that should not be kept in memory.
    pub fn listing(&self, key: &str) -> Listing<'_> {
        self.text(&format!("{{{}:[", serde_json::Value::from(key)));
        Listing { output: self, first: true }
    }

    /// Notes what was done and stays done, in words, for the case that the result of it cannot be written. The last note
    /// counts.
    pub fn stands(&self, done: impl Into<String>) {
        *self.standing.borrow_mut() = Some(done.into());
    }

    /// What was done and stays done, as far as a verb noted it.
    pub fn standing(&self) -> Option<String> {
        self.standing.borrow().clone()
    }

    /// Nobody reads on: long work for the output alone may stop.
    pub fn closed(&self) -> bool {
        self.closed.get()
    }

    /// Hands over what was written so far.
    pub fn flush(&self) {
        if !self.closed.get() {
            let result = self.stream.borrow_mut().flush();
            self.keep(result);
        }
    }

    /// Hands over the rest and tells whether all of it could be written.
    pub fn finish(&self) -> Result<(), io::Error> {
        self.flush();
        self.fault.borrow_mut().take().map_or(Ok(()), Err)
    }
}

/// A JSON document whose first key is a list, written item by item.
pub struct Listing<'a> {
    output: &'a Output,
    first: bool,
}

impl Listing<'_> {
    /// One more item.
    pub fn item(&mut self, item: &impl Serialize) {
        let separator: &[u8] = if std::mem::take(&mut self.first) { b"" } else { b"," };
        self.output.write(|stream| {
            stream.write_all(separator)?;
            Ok(serde_json::to_writer(&mut *stream, item)?)
        });
    }

    /// Ends the list and the document, with the keys of `rest`, which must be an object.
    pub fn finish(self, rest: &impl Serialize) {
        self.output.write(|stream| {
            let rest = serde_json::to_string(rest)?;
            let keys = rest.strip_prefix('{').unwrap_or("}");
            let separator = if keys == "}" { "" } else { "," };
            writeln!(stream, "]{separator}{keys}")
        });
    }
}

/// Stderr: progress, hints, warnings, traces, errors.
pub struct Remarks {
    look: Look,
    verbose: u8,
    quiet: bool,
    started: Instant,
    bar: Mutex<Bar>,
}

#[derive(Default)]
struct Bar {
    shown: Option<ProgressBar>,
    task: String,
    /// Set while a verb counts by itself: the component's own progress is then not shown.
    owned: bool,
}

impl Remarks {
    /// The process's stderr.
    pub fn stderr(verbose: u8, quiet: bool) -> Self {
        Self { look: Look::of(&io::stderr()), verbose, quiet, started: Instant::now(), bar: Mutex::default() }
    }

    /// Writes lines without tearing a bar apart. That stderr cannot be written is nothing that could be told anywhere.
    fn put(&self, text: &str) {
        let write = || {
            let _ = io::stderr().lock().write_all(text.as_bytes());
        };
        let shown = self.bar.lock().ok().and_then(|bar| bar.shown.clone());
        match shown {
            Some(bar) => bar.suspend(write),
            None => write(),
        }
    }

    /// Something the caller should know of; work goes on.
    pub fn warn(&self, text: &str) {
        if !self.quiet {
            self.put(&format!("{} {}\n", self.look.warning("warning:"), escape(text)));
        }
    }

    /// What came out, or what to do next.
    pub fn hint(&self, text: &str) {
        if !self.quiet {
            self.put(&format!("{}\n", escape(text)));
        }
    }

    /// What is being done (`-v`).
    pub fn trace(&self, text: &str) {
        self.at(1, text);
    }

    /// What took how long (`-v`).
    pub fn timed(&self, what: &str, since: Instant) {
        self.at(1, &format!("{what}: {}", milliseconds(since.elapsed())));
    }

    fn at(&self, level: u8, text: &str) {
        if self.verbose >= level {
            let stamp = format!("[{:>9}]", milliseconds(self.started.elapsed()));
            self.put(&format!("{} {}\n", self.look.faint(&stamp), escape(text)));
        }
    }

    /// Why nothing was done.
    pub fn failure(&self, failure: &Failure) {
        let mut text = format!("{} {}\n", self.look.bad("error:"), escape(&failure.message));
        let mut add = |name: &str, value: &str| {
            text.push_str(&format!("  {:<6} {}\n", format!("{name}:"), escape(value).replace('\n', "\n         ")));
        };
        match (&failure.path, failure.line) {
            (Some(path), Some(line)) => add("where", &format!("{path}:{line}")),
            (Some(path), None) => add("where", path),
            (None, Some(line)) => add("where", &format!("line {line}")),
            (None, None) => {}
        }
        for problem in failure.problems.iter().skip(1) {
            let place = problem.line.map(|line| format!("line {line}: ")).unwrap_or_default();
            add("also", &format!("{place}{}", problem.message));
        }
        if failure.reason.is_empty() {
            add("code", &failure.code);
        } else {
            add("code", &format!("{} ({})", failure.code, failure.reason));
        }
        if let Some(next) = &failure.next {
            add("next", next);
        }
        if let Some(backtrace) = failure.backtrace.as_ref().filter(|_| self.verbose > 0) {
            add("in", backtrace);
        }
        self.put(&text);
    }

    /// Whether a bar would be seen: what only a bar needs is not worth finding out otherwise.
    pub fn shows_progress(&self) -> bool {
        self.look.terminal && !self.quiet
    }

    /// Shows a bar for as long as the returned handle lives. `total` 0: not known.
    pub fn progress(&self, task: &str, total: u64, unit: Unit) -> Progress<'_> {
        if let Ok(mut bar) = self.bar.lock() {
            bar.owned = true;
            bar.shown = self.draw(task, total, unit);
        }
        Progress { remarks: self }
    }

    fn draw(&self, task: &str, total: u64, unit: Unit) -> Option<ProgressBar> {
        if !self.shows_progress() {
            return None;
        }
        let bar = ProgressBar::with_draw_target((total > 0).then_some(total), ProgressDrawTarget::stderr_with_hz(10));
        let figures = match (unit, total) {
            (Unit::Bytes, 0) => "{binary_bytes} {binary_bytes_per_sec}",
            (Unit::Bytes, _) => "{wide_bar} {binary_bytes}/{binary_total_bytes} {binary_bytes_per_sec}",
            (Unit::Other, 0) => "{human_pos}",
            (Unit::Other, _) => "{wide_bar} {human_pos}/{human_len}",
        };
        if let Ok(style) = ProgressStyle::with_template(&format!("{{msg}} {figures}")) {
            bar.set_style(style);
        }
        bar.set_message(escape_line(task));
        Some(bar)
    }

    fn with_bar(&self, with: impl FnOnce(&ProgressBar)) {
        if let Ok(bar) = self.bar.lock()
            && let Some(shown) = &bar.shown
        {
            with(shown);
        }
    }

    fn clear_bar(&self) {
        if let Ok(mut bar) = self.bar.lock() {
            if let Some(shown) = bar.shown.take() {
                shown.finish_and_clear();
            }
            *bar = Bar::default();
        }
    }

    /// Runs `with` while no bar is on the screen: for output to stdout on the same terminal.
    pub fn aside(&self, with: impl FnOnce()) {
        let shown = self.bar.lock().ok().and_then(|bar| bar.shown.clone());
        match shown {
            Some(bar) => bar.suspend(with),
            None => with(),
        }
    }
}

/// What a bar counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Bytes.
    Bytes,
    /// Files, turns.
    Other,
}

/// A bar on the screen, or none where nobody would see it.
pub struct Progress<'a> {
    remarks: &'a Remarks,
}

impl Progress<'_> {
    /// So much is done.
    pub fn set(&self, done: u64) {
        self.remarks.with_bar(|bar| bar.set_position(done));
    }

    /// So much of so much is done, where the whole is known only now.
    pub fn at(&self, done: u64, total: u64) {
        self.remarks.with_bar(|bar| {
            bar.set_length(total);
            bar.set_position(done);
        });
    }
}

impl Drop for Progress<'_> {
    fn drop(&mut self) {
        self.remarks.clear_bar();
    }
}

impl Observer for Remarks {
    fn log(&self, level: Level, message: &str) {
        match level {
            Level::Error | Level::Warn => self.warn(message),
            Level::Info => self.at(1, message),
            Level::Debug => self.at(2, message),
        }
    }

    fn event(&self, name: &str, fields: &[(String, String)]) {
        if self.verbose >= 2 {
            let fields: Vec<String> = fields.iter().map(|(key, value)| format!("{key}={value}")).collect();
            self.at(2, &format!("{name} {}", fields.join(" ")));
        }
    }

    fn progress(&self, task: &str, done: u64, total: u64, unit: &str) {
        let Ok(mut bar) = self.bar.lock() else { return };
        if bar.owned {
            return;
        }
        if bar.task != task {
            if let Some(old) = bar.shown.take() {
                old.finish_and_clear();
            }
            bar.task = task.to_owned();
            bar.shown = self.draw(task, total, if unit == "bytes" { Unit::Bytes } else { Unit::Other });
        }
        if let Some(shown) = &bar.shown {
            shown.set_position(done);
            if total > 0 && done >= total {
                shown.finish_and_clear();
                *bar = Bar::default();
            }
        }
    }
}

fn milliseconds(time: Duration) -> String {
    format!("{:.1} ms", time.as_secs_f64() * 1e3)
}

#[cfg(test)]
pub mod tests {
    use std::rc::Rc;

    use serde_json::json;

    use super::*;

    #[derive(Clone, Default)]
    struct Sink(Rc<RefCell<Vec<u8>>>);

    impl Write for Sink {
        fn write(&mut self, data: &[u8]) -> io::Result<usize> {
            self.0.borrow_mut().extend_from_slice(data);
            Ok(data.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// An output whose text can be looked at.
    pub fn captured(json: bool) -> (Output, Rc<RefCell<Vec<u8>>>) {
        let sink = Sink::default();
        (Output::to(Box::new(sink.clone()), Look::default(), json), sink.0)
    }

    struct Faulty(io::ErrorKind);

    impl Write for Faulty {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(self.0.into())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_listing_is_one_document() {
        for n in 0..3 {
            let (output, text) = captured(true);
            let mut listing = output.listing("findings");
            (0..n).for_each(|i| listing.item(&json!({ "i": i })));
            listing.finish(&json!({"ok": true}));
            output.finish().unwrap();
            let bytes = text.borrow();
            let value: serde_json::Value = serde_json::from_slice(&bytes).unwrap();
            assert_eq!(value["ok"], true);
            assert_eq!(value["findings"].as_array().unwrap().len(), n);
            assert_eq!(bytes.iter().filter(|b| **b == b'\n').count(), 1);
        }
    }

    #[test]
    fn a_listing_may_have_nothing_behind_it() {
        let (output, text) = captured(true);
        output.listing("files").finish(&json!({}));
        output.finish().unwrap();
        assert_eq!(*text.borrow(), b"{\"files\":[]}\n");
    }

    #[test]
    fn a_broken_pipe_is_quiet_and_other_faults_are_told() {
        let output = Output::to(Box::new(Faulty(io::ErrorKind::BrokenPipe)), Look::default(), false);
        output.line(&"x".repeat(100_000));
        assert!(output.closed());
        output.line("more");
        assert!(output.finish().is_ok());

        let output = Output::to(Box::new(Faulty(io::ErrorKind::StorageFull)), Look::default(), false);
        output.line("x");
        assert_eq!(output.finish().unwrap_err().kind(), io::ErrorKind::StorageFull);
    }
}
