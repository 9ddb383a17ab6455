//! Imports: exports of other programs, piece by piece, as conversations of records.
//!
//! [`Import`] is fed files in pieces of any size and hands on each [`Conversation`] as soon as it is complete. Memory
//! follows the largest conversation (`limits.conversation-bytes`), never the file. What is taken from each format, and what
//! is not, is in FORMAT.md, "Imports".
//!
//! From the outside in: `elements` splits a JSON document into conversations, [`crate::text::Lines`] a file of lines; a
//! module a format (`chatgpt`, `claude`, `claude_code`, `openprogram`, `json_lines`) reads what there is into nodes; `draft`
//! checks them and makes records, `tree` puts them in order, `name` makes ids fit.
//!
//! Knows exports and the rules for records. Must not know archives, stores or who is asking: what is there already, and
//! what becomes of a record, [`crate::source::Batch`] finds out.

mod chatgpt;
mod claude;
mod claude_code;
mod draft;
mod elements;
mod json_lines;
mod name;
mod openprogram;
mod said;
mod skip;
mod tree;
pub(crate) mod value;

use crate::source::{Limits, Problem, Trust};
use crate::text::{Line, Lines};
use crate::time::Zone;
use core::ops::ControlFlow;
use draft::{Draft, TOO_LARGE, lost, problem};
use elements::{Elements, End, Found};
use name::part;
use skip::Skips;
use std::borrow::Cow;
use std::collections::BTreeMap;
use value::{Raw, document};

pub use draft::{Conversation, Imported};
pub(crate) use name::{message_part, thread_part};
pub(crate) use openprogram::{Utterance, spoken};
pub use skip::{LeftOut, SkipReason, Skipped};
pub(crate) use tree::cut_circles;

/// The reason for an element that does not have the form of a conversation.
const NOT_A_CONVERSATION: &str = "not-a-conversation";

/// So many titles of conversations that were not met yet are remembered.
const SUMMARIES_MAX: usize = 1000;

/// A title of more bytes is passed over where it is remembered beside its conversation: it is not kept anyway, and nobody
/// writes one, but a file can say anything.
const TITLE_BYTES_MAX: usize = 4096;

/// What an export is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// `conversations.json` of a ChatGPT export.
    ChatGpt,
    /// `conversations.json` of a Claude export.
    Claude,
    /// Session files of Claude Code.
    ClaudeCode,
    /// Node files of OpenProgram sessions.
    OpenProgram,
    /// Lines of the shape that `archive` takes.
    JsonLines,
}

impl Format {
    /// The provider of its records where nobody says another. None: its lines say.
    #[must_use]
    pub const fn provider(self) -> Option<&'static str> {
        match self {
            Self::ChatGpt => Some("chatgpt"),
            Self::Claude => Some("claude"),
            Self::ClaudeCode => Some("claude-code"),
            Self::OpenProgram => Some("openprogram"),
            Self::JsonLines => None,
        }
    }
}

/// A part of a source id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Provider,
    Thread,
    Message,
}

/// How an export is taken in.
#[derive(Clone, Debug)]
pub struct Options {
    /// What it is.
    pub format: Format,
    /// Instead of [`Format::provider`]; for [`Format::JsonLines`], that of lines which do not say.
    pub provider: Option<String>,
    /// For [`Format::JsonLines`]: the conversation of lines which do not say.
    pub thread: Option<String>,
    /// What records may count as: with [`Trust::Pending`] nothing is trusted, whatever the export says of itself; with
    /// [`Trust::Trusted`] is what the export does not call pending.
    pub trust: Trust,
    /// For times that the export's own program writes in a zone ([`Format::OpenProgram`]).
    pub zone: Zone,
    /// So many of the things left out of a conversation are named, what is missing first; all are counted.
    pub skipped_max: usize,
}

/// Takes a conversation. [`ControlFlow::Break`]: something went wrong, and the import is over.
pub type Sink<'a> = &'a mut dyn FnMut(Conversation) -> ControlFlow<()>;

/// An import under way.
pub struct Import {
    options: Options,
    /// As a part of source ids; empty: lines say.
    provider: String,
    /// Of lines that do not say, as a part of source ids.
    thread: String,
    limits: Limits,
    open: Option<Open>,
    held: Held,
    ended: bool,
}

struct Open {
    file: String,
    input: Input,
}

enum Input {
    /// A document of conversations.
    Document(Box<Elements>),
    /// A record, or something that happened, a line.
    Lines(Box<LineInput>),
    /// A node; its bytes until they are too many.
    Node(Option<Vec<u8>>),
}

/// A file of lines being read.
struct LineInput {
    lines: Lines,
    /// What is wrong with lines of no conversation.
    loose: Skips,
    /// Titles by the message that their conversation ends with.
    summaries: Vec<(String, String)>,
}

impl Import {
    /// Nothing taken in yet.
    ///
    /// # Errors
    /// `invalid-provider` if the provider cannot be a part of an id.
    pub fn new(options: Options, limits: &Limits) -> Result<Self, Problem> {
        let provider = options.provider.as_deref().or(options.format.provider()).unwrap_or_default();
        if options.provider.is_some() && !name::fits(provider, Part::Provider) {
            let message = "a provider is a word without slashes, brackets and control characters, and neither . nor ..";
            return Err(Problem { subject: options.provider, ..problem("invalid-provider", message) });
        }
        let named = |id: &str, of| part(id.as_bytes(), of).map(Cow::into_owned).unwrap_or_default();
        let provider = named(provider, Part::Provider);
        let thread = named(options.thread.as_deref().unwrap_or_default(), Part::Thread);
        Ok(Self { options, provider, thread, limits: *limits, open: None, held: Held::default(), ended: false })
    }

    /// Takes the next piece of `file`, and hands on the conversations that are complete with it. `last` closes the file.
    ///
    /// # Errors
    /// `file-still-open` if another file is not closed yet, `import-ended` after the end or after the sink broke off.
    /// Nothing was taken.
    pub fn push(&mut self, file: &str, data: &[u8], last: bool, sink: Sink<'_>) -> Result<(), Problem> {
        if self.ended {
            return Err(problem("import-ended", "the import is over; start another, which repeats nothing"));
        }
        if let Some(open) = self.open.as_ref().filter(|open| open.file != file) {
            let message = format!("close {} first, with a last piece that may be empty", open.file);
            return Err(Problem { subject: Some(file.to_owned()), ..problem("file-still-open", message) });
        }
        if self.run(file, data, last, sink).is_break() {
            self.abandon();
        }
        Ok(())
    }

    /// Ends the import and forgets what is held back: something that was handed on could not be kept.
    pub fn abandon(&mut self) {
        self.ended = true;
        self.open = None;
        self.held = Held::default();
    }

    /// There is no more: hands on what is still held back. A file that is open ends here.
    ///
    /// # Errors
    /// As [`Import::push`].
    pub fn finish(&mut self, sink: Sink<'_>) -> Result<(), Problem> {
        if let Some(file) = self.open.as_ref().map(|open| open.file.clone()) {
            self.push(&file, &[], true, sink)?;
        }
        if self.ended {
            return Err(problem("import-ended", "the import is over; start another, which repeats nothing"));
        }
        self.ended = true;
        let _ = self.flush(sink);
        Ok(())
    }

    fn run(&mut self, file: &str, data: &[u8], last: bool, sink: Sink<'_>) -> ControlFlow<()> {
        let mut open = match self.open.take() {
            Some(open) => open,
            None => self.open_file(file, sink)?,
        };
        match &mut open.input {
            Input::Document(elements) => {
                let mut piece = data;
                while let Some(found) = elements.next(&mut piece) {
                    sink(self.element(file, found))?;
                }
            }
            Input::Lines(input) => self.lines(file, input, data, sink)?,
            Input::Node(bytes) => {
                let room = self.limits.conversation_bytes;
                *bytes = bytes.take().filter(|bytes| (bytes.len() + data.len()) as u64 <= room);
                if let Some(bytes) = bytes {
                    bytes.extend_from_slice(data);
                }
            }
        }
        if last {
            return self.close_file(open, sink);
        }
        self.open = Some(open);
        ControlFlow::Continue(())
    }

    fn open_file(&mut self, file: &str, sink: Sink<'_>) -> ControlFlow<(), Open> {
        let max = usize::try_from(self.limits.conversation_bytes).unwrap_or(usize::MAX);
        let lines = || {
            let loose = Skips::new(self.options.skipped_max);
            Input::Lines(Box::new(LineInput { lines: Lines::new(max), loose, summaries: Vec::new() }))
        };
        let input = match self.options.format {
            Format::ChatGpt => Input::Document(Box::new(Elements::new(chatgpt::SHAPE, max))),
            Format::Claude => Input::Document(Box::new(Elements::new(claude::SHAPE, max))),
            Format::ClaudeCode | Format::JsonLines => lines(),
            Format::OpenProgram => {
                // A session's nodes come one after the other.
                if !self.held.drafts.contains_key(&self.key_of(file)) {
                    self.flush(sink)?;
                }
                Input::Node(Some(Vec::new()))
            }
        };
        ControlFlow::Continue(Open { file: file.to_owned(), input })
    }

    fn close_file(&mut self, open: Open, sink: Sink<'_>) -> ControlFlow<()> {
        let Open { file, input } = open;
        match input {
            Input::Document(elements) => match elements.finish() {
                End::Whole => ControlFlow::Continue(()),
                End::Empty => sink(self.lost(&file, 0, "no-conversation", "the file is empty")),
                End::Truncated { offset } => sink(self.lost(
                    &file,
                    offset,
                    "truncated-export",
                    "the export ends in the middle; what was whole before it is kept. Get the rest, and import it again",
                )),
            },
            Input::Lines(mut input) => {
                let LineInput { lines, loose, summaries } = &mut *input;
                if let Some(line) = lines.last() {
                    self.line(&file, &line, loose, summaries, sink)?;
                }
                self.close_lines(&file, *input, sink)
            }
            Input::Node(bytes) => {
                self.node(&file, bytes.as_deref());
                self.make_room(&self.key_of(&file), sink)
            }
        }
    }

    /// What becomes of something that was found in a document.
    fn element(&self, file: &str, found: Found<'_>) -> Conversation {
        match found {
            Found::Element { offset, bytes } => self.conversation(file, offset, bytes),
            Found::TooLarge { offset } => self.too_large(file, offset),
            Found::Damaged { offset, at } => self.lost(
                file,
                offset,
                "damaged-conversation",
                &format!("the conversation is damaged at byte {at}; those that are whole behind it are found again"),
            ),
            Found::Stray { offset } => self.lost(
                file,
                offset,
                "damaged-export",
                "the export is damaged between conversations; those that are whole behind it are found again",
            ),
            Found::Trailing { offset } => self.lost(
                file,
                offset,
                "damaged-export",
                "the export is over before this, and something else follows; conversations in it are found",
            ),
        }
    }

    fn conversation(&self, file: &str, offset: u64, bytes: &[u8]) -> Conversation {
        let Ok(text) = core::str::from_utf8(bytes) else {
            return self.lost(file, offset, "invalid-utf8", "this conversation is not UTF-8; the others are kept");
        };
        let Some(raw) = document(text) else {
            return self.lost(
                file,
                offset,
                "damaged-conversation",
                "this conversation is no JSON; the others are kept",
            );
        };
        let read = match self.options.format {
            Format::Claude => claude::conversation,
            _ => chatgpt::conversation,
        };
        match read(raw, offset, &self.provider, &self.options, &self.limits) {
            Ok(draft) => draft.finish(file, &self.options, &self.limits),
            Err(problem) => lost(file, offset, &self.provider, problem),
        }
    }

    fn lost(&self, file: &str, offset: u64, reason: &'static str, message: &str) -> Conversation {
        lost(file, offset, &self.provider, problem(reason, message))
    }

    fn too_large(&self, file: &str, offset: u64) -> Conversation {
        lost(file, offset, &self.provider, too_large(&self.limits))
    }

    fn lines(&mut self, file: &str, input: &mut LineInput, mut data: &[u8], sink: Sink<'_>) -> ControlFlow<()> {
        let LineInput { lines, loose, summaries } = input;
        while let Some(line) = lines.next(&mut data) {
            self.line(file, &line, loose, summaries, sink)?;
        }
        ControlFlow::Continue(())
    }

    fn line(
        &mut self,
        file: &str,
        line: &Line<'_>,
        loose: &mut Skips,
        summaries: &mut Vec<(String, String)>,
        sink: Sink<'_>,
    ) -> ControlFlow<()> {
        let item = format!("line {}", line.number);
        let mut bytes = line.bytes;
        if line.number == 1 {
            bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
        }
        if bytes.trim_ascii().is_empty() && !line.long {
            return ControlFlow::Continue(());
        }
        if line.long {
            loose.add(Some(&item), SkipReason::LineTooLong);
            return ControlFlow::Continue(());
        }
        let Some(raw) = core::str::from_utf8(bytes).ok().and_then(document) else {
            loose.add(Some(&item), SkipReason::Malformed);
            return ControlFlow::Continue(());
        };
        let key = match self.options.format {
            Format::ClaudeCode => self.claude_code_line(raw, line.offset, &item, loose, summaries),
            _ => self.json_line(raw, line.offset, &item, loose),
        };
        match key {
            Some(key) => self.held.make_room(&key, file, &self.options, &self.limits, sink),
            None => ControlFlow::Continue(()),
        }
    }

    fn claude_code_line(
        &mut self,
        raw: Raw<'_>,
        offset: u64,
        item: &str,
        loose: &mut Skips,
        summaries: &mut Vec<(String, String)>,
    ) -> Option<Key> {
        match claude_code::line(raw) {
            claude_code::Line::Node { session, node, skipped } => {
                let key = (self.provider.clone(), session);
                let draft = self.held.draft(&key, offset, &self.options);
                if let Some(reason) = skipped {
                    draft.skips.add(Some(&node.id), reason);
                }
                draft.push(node, &self.limits);
                Some(key)
            }
            claude_code::Line::Summary { leaf, title } => {
                if summaries.len() < SUMMARIES_MAX && leaf.len() + title.len() <= TITLE_BYTES_MAX {
                    summaries.push((leaf, title));
                }
                None
            }
            claude_code::Line::Title { session, title } => {
                let key = (self.provider.clone(), session);
                if let Some(draft) = self.held.known(&key).filter(|_| title.len() <= TITLE_BYTES_MAX) {
                    draft.title = Some(title);
                }
                None
            }
            claude_code::Line::Nothing => None,
            claude_code::Line::Bad(reason) => {
                loose.add(Some(item), reason);
                None
            }
        }
    }

    fn json_line(&mut self, raw: Raw<'_>, offset: u64, item: &str, loose: &mut Skips) -> Option<Key> {
        let line = match json_lines::line(raw, &self.provider, &self.thread) {
            Ok(line) => line,
            Err(reason) => {
                loose.add(Some(item), reason);
                return None;
            }
        };
        let key = (line.provider.clone(), line.thread.clone());
        let draft = self.held.draft(&key, offset, &self.options);
        let parent = line.parent.clone().unwrap_or(draft::Parent::Previous);
        let (node, skipped) = line.node(parent);
        if let Some(reason) = skipped {
            draft.skips.add(Some(&node.id), reason);
        }
        draft.push(node, &self.limits);
        Some(key)
    }

    /// A file of lines is over: so are its conversations.
    fn close_lines(&mut self, file: &str, input: LineInput, sink: Sink<'_>) -> ControlFlow<()> {
        let LineInput { mut loose, summaries, .. } = input;
        let is_nothing = self.held.begun == 0;
        if !summaries.is_empty() {
            let mut titles: BTreeMap<&str, &str> = BTreeMap::new();
            titles.extend(summaries.iter().map(|(leaf, title)| (leaf.as_str(), title.as_str())));
            for Slot { draft, .. } in self.held.drafts.values_mut().filter(|slot| slot.draft.title.is_none()) {
                let last = draft.nodes.iter().rev().find_map(|node| titles.get(node.id.as_str()));
                draft.title = last.map(|title| (*title).to_owned());
            }
        }
        // What is wrong in a file of one conversation is wrong with that.
        let only = match core::mem::take(&mut self.held.begun) {
            1 => self.held.drafts.values_mut().next(),
            _ => None,
        };
        if let Some(slot) = only {
            slot.draft.skips.append(core::mem::take(&mut loose));
        }
        self.held.flush(file, &self.options, &self.limits, sink)?;
        if loose.count() == 0 && !is_nothing {
            return ControlFlow::Continue(());
        }
        let problem = match loose.count() {
            0 => problem("no-conversation", "the file holds no message"),
            _ => problem("unreadable-lines", "some lines belong to no conversation and could not be taken"),
        };
        let mut conversation = lost(file, 0, &self.provider, problem);
        (conversation.skipped, conversation.left_out) = loose.finish();
        sink(conversation)
    }

    fn key_of(&self, file: &str) -> Key {
        let session = openprogram::session(file).and_then(|session| part(session.as_bytes(), Part::Thread));
        (self.provider.clone(), session.map(Cow::into_owned).unwrap_or_default())
    }

    /// A node file is over; none: it is too large.
    fn node(&mut self, file: &str, bytes: Option<&[u8]>) {
        let key = self.key_of(file);
        if key.1.is_empty() {
            self.held.strays.push(self.lost(
                file,
                0,
                "not-a-node-file",
                "a node of a session lies at <session>/history/<seq>-<role>-<id>.json",
            ));
            return;
        }
        let item = file.rsplit('/').next();
        let Self { held, options, limits, .. } = self;
        let draft = held.draft(&key, 0, options);
        let raw = bytes.map(|bytes| bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes));
        let raw = raw.map(|bytes| core::str::from_utf8(bytes).ok().and_then(document));
        let read = match raw {
            Some(Some(raw)) => openprogram::node(raw, options),
            Some(None) => Err(SkipReason::Malformed),
            None => Err(SkipReason::LineTooLong),
        };
        match read {
            Ok((node, skipped)) => {
                if let Some(reason) = skipped {
                    draft.skips.add(Some(&node.id), reason);
                }
                draft.push(node, limits);
            }
            Err(reason) => draft.skips.add(item, reason),
        }
        let slot = held.drafts.get_mut(&key);
        if let Some(slot) = slot.filter(|slot| slot.file.is_empty()) {
            slot.file = file.to_owned();
        }
    }

    fn make_room(&mut self, key: &Key, sink: Sink<'_>) -> ControlFlow<()> {
        self.held.make_room(key, "", &self.options, &self.limits, sink)
    }

    fn flush(&mut self, sink: Sink<'_>) -> ControlFlow<()> {
        self.held.flush("", &self.options, &self.limits, sink)
    }
}

fn too_large(limits: &Limits) -> Problem {
    problem(
        TOO_LARGE,
        format!(
            "the conversation is longer than the {} bytes that {} allows; raise the limit",
            limits.conversation_bytes,
            Limits::CONVERSATION_BYTES
        ),
    )
}

/// Provider and thread, as parts of source ids.
type Key = (String, String);

/// Conversations of which more may come.
#[derive(Default)]
struct Held {
    drafts: BTreeMap<Key, Slot>,
    /// What they take in memory, roughly.
    weight: u64,
    clock: u64,
    /// How many of them began in this file.
    begun: u64,
    /// What is to be told of files of no conversation.
    strays: Vec<Conversation>,
}

struct Slot {
    draft: Draft,
    /// When it was added to last.
    touched: u64,
    /// What it took in memory then.
    counted: u64,
    /// Its first file, if it has several.
    file: String,
}

impl Held {
    fn known(&mut self, key: &Key) -> Option<&mut Draft> {
        self.drafts.get_mut(key).map(|slot| &mut slot.draft)
    }

    /// The draft of a conversation, begun if need be.
    fn draft(&mut self, key: &Key, offset: u64, options: &Options) -> &mut Draft {
        self.clock += 1;
        let touched = self.clock;
        let begun = &mut self.begun;
        let slot = self.drafts.entry(key.clone()).or_insert_with(|| {
            *begun += 1;
            let draft = Draft::new(offset, &key.0, &key.1, options);
            Slot { draft, touched, counted: 0, file: String::new() }
        });
        slot.touched = touched;
        &mut slot.draft
    }

    /// Something was added to the conversation under `key`. If all of them take too much, those that were not added to for
    /// the longest time are handed on; if that one alone does, it is too large.
    fn make_room(
        &mut self,
        key: &Key,
        file: &str,
        options: &Options,
        limits: &Limits,
        sink: Sink<'_>,
    ) -> ControlFlow<()> {
        for stray in self.strays.drain(..) {
            sink(stray)?;
        }
        if let Some(Slot { draft, counted, .. }) = self.drafts.get_mut(key) {
            if draft.weight() > limits.conversation_bytes {
                draft.give_up(too_large(limits));
            }
            let before = core::mem::replace(counted, draft.weight());
            self.weight = (self.weight + *counted).saturating_sub(before);
        }
        if self.weight <= limits.conversation_bytes {
            return ControlFlow::Continue(());
        }
        let mut oldest: Vec<(u64, Key)> = self
            .drafts
            .iter()
            .map(|(other, slot)| (slot.touched, other.clone()))
            .filter(|(_, other)| other != key)
            .collect();
        oldest.sort_unstable();
        for (_, oldest) in oldest {
            // Half of the room at a time, so that this is not done for every line.
            if self.weight <= limits.conversation_bytes / 2 {
                break;
            }
            if let Some(slot) = self.drafts.remove(&oldest) {
                self.weight = self.weight.saturating_sub(slot.counted);
                sink(slot.finish(file, options, limits))?;
            }
        }
        ControlFlow::Continue(())
    }

    /// Hands on all of them.
    fn flush(&mut self, file: &str, options: &Options, limits: &Limits, sink: Sink<'_>) -> ControlFlow<()> {
        self.weight = 0;
        for stray in self.strays.drain(..) {
            sink(stray)?;
        }
        let mut first: Vec<(u64, Key)> =
            self.drafts.iter().map(|(key, slot)| (slot.draft.offset, key.clone())).collect();
        first.sort_unstable();
        for (_, key) in first {
            if let Some(slot) = self.drafts.remove(&key) {
                sink(slot.finish(file, options, limits))?;
            }
        }
        ControlFlow::Continue(())
    }
}

impl Slot {
    fn finish(self, file: &str, options: &Options, limits: &Limits) -> Conversation {
        let file = if self.file.is_empty() { file } else { &self.file };
        self.draft.finish(file, options, limits)
    }
}
