//! Exports of any size, in the form that each program gives them: for tests and benchmarks of the import.
//!
//! Everything is made from a seed, a conversation at a time: the same seed gives the same bytes, a longer export of a seed
//! begins as a shorter one does, and nothing is held but the conversation that is being written. Words follow Zipf's law
//! roughly, as in real text: few are in nearly every message, most are rare. There are edited messages, titles that are
//! null, times that are missing, attachments, tool calls and Chinese, each in a few of a hundred.
//!
//! Knows the forms. Must not know what an import makes of them: what was written is counted by what it is.

use std::fs;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use jiff::Timestamp;
use serde_json::{Map, Value, json};

/// The form of an export.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// `conversations.json` of ChatGPT.
    ChatGpt,
    /// `conversations.json` of Claude.
    Claude,
    /// Sessions of Claude Code, a file each.
    ClaudeCode,
    /// Sessions of OpenProgram, a directory each, with a file for each node.
    OpenProgram,
    /// JSON Lines as `recollex archive` takes them.
    Jsonl,
}

impl Format {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::ChatGpt, Self::Claude, Self::ClaudeCode, Self::OpenProgram, Self::Jsonl];

    /// What `recollex import` calls it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::ChatGpt => "chatgpt",
            Self::Claude => "claude",
            Self::ClaudeCode => "claude-code",
            Self::OpenProgram => "openprogram",
            Self::Jsonl => "jsonl",
        }
    }

    /// Whether an export is a directory of files rather than one file.
    #[must_use]
    pub const fn is_directory(self) -> bool {
        matches!(self, Self::ClaudeCode | Self::OpenProgram)
    }
}

/// What was written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Made {
    /// Bytes of all files.
    pub bytes: u64,
    /// Conversations.
    pub conversations: u64,
    /// Messages that a person or a model said in words, on every branch.
    pub said: u64,
    /// Messages of tools, calls of tools, hidden ones and empty ones.
    pub other: u64,
    /// Conversations in which somebody went back and said something else.
    pub branched: u64,
}

impl Made {
    fn add(&mut self, conversation: &Conversation) {
        self.conversations += 1;
        self.branched += u64::from(conversation.is_branched);
        for message in &conversation.messages {
            match message.kind {
                Kind::Said => self.said += 1,
                Kind::Call | Kind::Result => self.other += 1,
            }
        }
    }
}

/// A word that stands in the first message of the conversation with this number (from 0), and nowhere else.
#[must_use]
pub fn marker(seed: u64, number: u64) -> String {
    format!("marker{seed}x{number}")
}

/// Writes an export of at least `bytes` bytes: to the file `path`, or into a new directory of that name.
///
/// # Errors
/// As the file system fails.
pub fn write(format: Format, seed: u64, bytes: u64, path: &Path) -> io::Result<Made> {
    if format.is_directory() {
        return directory(format, seed, bytes, path);
    }
    let mut out = BufWriter::with_capacity(1 << 20, fs::File::create(path)?);
    let made = stream(format, seed, bytes, &mut out)?;
    out.flush()?;
    Ok(made)
}

/// Writes an export of at least `bytes` bytes that is one file.
///
/// # Errors
/// As `out` fails. An export of OpenProgram, which is never one file, is an error too.
pub fn stream(format: Format, seed: u64, bytes: u64, out: &mut dyn Write) -> io::Result<Made> {
    let mut out = Counted { out, written: 0 };
    let mut made = Made::default();
    let is_list = matches!(format, Format::ChatGpt | Format::Claude);
    if is_list {
        out.write_all(b"[")?;
    }
    while out.written < bytes {
        let conversation = Conversation::new(seed, made.conversations);
        if is_list && made.conversations > 0 {
            out.write_all(b", ")?;
        }
        match format {
            Format::ChatGpt => serde_json::to_writer(&mut out, &conversation.chatgpt())?,
            Format::Claude => serde_json::to_writer(&mut out, &conversation.claude())?,
            Format::ClaudeCode => lines(&mut out, conversation.claude_code())?,
            Format::Jsonl => lines(&mut out, conversation.jsonl())?,
            Format::OpenProgram => return Err(io::ErrorKind::InvalidInput.into()),
        }
        made.add(&conversation);
    }
    if is_list {
        out.write_all(b"]")?;
    }
    made.bytes = out.written;
    Ok(made)
}

fn directory(format: Format, seed: u64, bytes: u64, root: &Path) -> io::Result<Made> {
    let mut made = Made::default();
    while made.bytes < bytes {
        let conversation = Conversation::new(seed, made.conversations);
        // As many projects as a person has, so that no directory becomes enormous.
        let project = root.join(format!("-srv-boat-{:03}", made.conversations / 500));
        if format == Format::ClaudeCode {
            fs::create_dir_all(&project)?;
            let mut text = Vec::new();
            lines(&mut text, conversation.claude_code())?;
            fs::write(project.join(format!("{}.jsonl", conversation.id)), &text)?;
            made.bytes += text.len() as u64;
        } else {
            let history =
                root.join(format!("session-{:06}-{}", conversation.number, conversation.short())).join("history");
            fs::create_dir_all(&history)?;
            for (name, node) in conversation.openprogram() {
                let text = serde_json::to_vec_pretty(&node)?;
                fs::write(history.join(name), &text)?;
                made.bytes += text.len() as u64;
            }
        }
        made.add(&conversation);
    }
    Ok(made)
}

fn lines(out: &mut dyn Write, values: Vec<Value>) -> io::Result<()> {
    for value in values {
        serde_json::to_writer(&mut *out, &value)?;
        out.write_all(b"\n")?;
    }
    Ok(())
}

struct Counted<'a> {
    out: &'a mut dyn Write,
    written: u64,
}

impl Write for Counted<'_> {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        let written = self.out.write(data)?;
        self.written += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// A conversation, before it takes a form.
struct Conversation {
    number: u64,
    id: String,
    title: Option<String>,
    /// Seconds since 1970.
    began: u64,
    messages: Vec<Message>,
    is_branched: bool,
}

struct Message {
    id: String,
    /// The message that it answers, by its place; none: the first.
    parent: Option<usize>,
    by: By,
    kind: Kind,
    text: String,
    /// Seconds since 1970; none where the export does not say.
    time: Option<u64>,
    attachment: Option<String>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum By {
    Person,
    Model,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// In words.
    Said,
    /// The model calls a tool.
    Call,
    /// The tool answers.
    Result,
}

impl Conversation {
    fn new(seed: u64, number: u64) -> Self {
        let mut random = Random::new(seed ^ number.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let began = 1_680_000_000 + number * 7_200 + random.below(3_600);
        let id = random.uuid();
        let title = (!random.percent(5)).then(|| random.sentence(2, 6));
        let mut conversation = Self { number, id, title, began, messages: Vec::new(), is_branched: false };
        let exchanges = 1 + random.below(12);
        for exchange in 0..exchanges {
            let parent = conversation.messages.len().checked_sub(1);
            let mark = if exchange == 0 { format!("{} ", marker(seed, number)) } else { String::new() };
            conversation.ask(&mut random, parent, &mark);
            // Somebody edits what they said: both stay, and the talk goes on from the second.
            if random.percent(8) {
                conversation.is_branched = true;
                conversation.ask(&mut random, parent, "");
            }
        }
        conversation
    }

    fn ask(&mut self, random: &mut Random, parent: Option<usize>, mark: &str) {
        let text = format!("{mark}{}", random.text(1, 3));
        let attachment = random.percent(3).then(|| format!("plan-{}.pdf", random.below(1000)));
        let mut last = self.say(random, parent, By::Person, Kind::Said, text, attachment);
        if random.percent(12) {
            let call = format!("list('{}')", random.word());
            last = self.say(random, Some(last), By::Model, Kind::Call, call, None);
            let result = random.text(1, 4);
            last = self.say(random, Some(last), By::Model, Kind::Result, result, None);
        }
        let text = random.text(2, 12);
        self.say(random, Some(last), By::Model, Kind::Said, text, None);
    }

    fn say(
        &mut self,
        random: &mut Random,
        parent: Option<usize>,
        by: By,
        kind: Kind,
        text: String,
        attachment: Option<String>,
    ) -> usize {
        let time = (!random.percent(2)).then(|| self.began + 40 * self.messages.len() as u64);
        let id = random.uuid();
        self.messages.push(Message { id, parent, by, kind, text, time, attachment });
        self.messages.len() - 1
    }

    fn short(&self) -> &str {
        self.id.get(..8).unwrap_or_default()
    }

    fn parent_id(&self, message: &Message) -> Option<&str> {
        message.parent.and_then(|at| self.messages.get(at)).map(|parent| &*parent.id)
    }

    fn chatgpt(&self) -> Value {
        let (root, system) = (format!("root-{}", self.id), format!("system-{}", self.id));
        let mut mapping = Map::new();
        mapping.insert(root.clone(), json!({"id": root, "message": null, "parent": null, "children": [system]}));
        let hidden = json!({
            "id": system, "author": {"role": "system", "name": null, "metadata": {}}, "create_time": null,
            "update_time": null, "content": {"content_type": "text", "parts": [""]}, "status": "finished_successfully",
            "end_turn": true, "weight": 0.0, "metadata": {"is_visually_hidden_from_conversation": true},
            "recipient": "all", "channel": null,
        });
        let children = self.children(None);
        mapping.insert(system.clone(), json!({"id": system, "message": hidden, "parent": root, "children": children}));
        for (at, message) in self.messages.iter().enumerate() {
            let (role, name) = match (message.by, message.kind) {
                (By::Person, _) => ("user", None),
                (By::Model, Kind::Result) => ("tool", Some("python")),
                (By::Model, _) => ("assistant", None),
            };
            let content = match (message.kind, &message.attachment) {
                (Kind::Call, _) => json!({"content_type": "code", "language": "unknown", "text": message.text}),
                (Kind::Result, _) => json!({"content_type": "execution_output", "text": message.text}),
                (Kind::Said, Some(_)) => json!({"content_type": "multimodal_text", "parts": [
                    {"content_type": "image_asset_pointer", "asset_pointer": "file-service://file-1", "size_bytes": 4096,
                     "width": 640, "height": 480},
                    message.text,
                ]}),
                (Kind::Said, None) => json!({"content_type": "text", "parts": [message.text]}),
            };
            let attachments = message.attachment.as_ref().map(|name| json!([{"id": "file-1", "name": name}]));
            let body = json!({
                "id": message.id, "author": {"role": role, "name": name, "metadata": {}},
                "create_time": message.time.map(fraction), "update_time": null, "content": content,
                "status": "finished_successfully", "end_turn": null, "weight": 1.0,
                "metadata": attachments.map_or_else(|| json!({}), |list| json!({"attachments": list})),
                "recipient": if message.kind == Kind::Call { "python" } else { "all" }, "channel": null,
            });
            let parent = self.parent_id(message).unwrap_or(&system);
            let node =
                json!({"id": message.id, "message": body, "parent": parent, "children": self.children(Some(at))});
            mapping.insert(message.id.clone(), node);
        }
        json!({
            "title": self.title, "create_time": fraction(self.began), "update_time": fraction(self.began + 3_600),
            "mapping": mapping, "moderation_results": [], "current_node": self.messages.last().map(|last| &last.id),
            "plugin_ids": null, "conversation_id": self.id, "gizmo_id": null, "is_archived": false, "safe_urls": [],
            "default_model_slug": "gpt-4o", "id": self.id,
        })
    }

    fn children(&self, parent: Option<usize>) -> Vec<&str> {
        self.messages.iter().filter(|message| message.parent == parent).map(|message| &*message.id).collect()
    }

    fn claude(&self) -> Value {
        let messages: Vec<Value> = self
            .messages
            .iter()
            .map(|message| {
                let block = match message.kind {
                    Kind::Said => json!({"type": "text", "text": message.text, "citations": []}),
                    Kind::Call => json!({"type": "tool_use", "name": "repl", "input": {"code": message.text}}),
                    Kind::Result => json!({"type": "tool_result", "name": "repl",
                                           "content": [{"type": "text", "text": message.text}]}),
                };
                let attachments: Vec<Value> = message
                    .attachment
                    .iter()
                    .map(|name| json!({"file_name": name, "file_size": 4096, "file_type": "pdf", "extracted_content": "…"}))
                    .collect();
                json!({
                    "uuid": message.id, "text": if message.kind == Kind::Said { &*message.text } else { "" },
                    "content": [block], "sender": if message.by == By::Person { "human" } else { "assistant" },
                    "created_at": message.time.map(iso), "updated_at": message.time.map(iso),
                    "attachments": attachments, "files": [],
                    "parent_message_uuid": self.parent_id(message).unwrap_or("00000000-0000-4000-8000-000000000000"),
                })
            })
            .collect();
        json!({
            "uuid": self.id, "name": self.title.as_deref().unwrap_or_default(), "summary": "",
            "created_at": iso(self.began), "updated_at": iso(self.began + 3_600),
            "account": {"uuid": "7d0f9a52-0000-4000-8000-000000000001"}, "chat_messages": messages,
        })
    }

    fn claude_code(&self) -> Vec<Value> {
        let mut all = Vec::new();
        if let Some(title) = &self.title {
            let leaf = self.messages.last().map(|last| &last.id);
            all.push(json!({"type": "summary", "summary": title, "leafUuid": leaf}));
        }
        for message in &self.messages {
            let (kind, body) = match (message.by, message.kind) {
                (By::Person, _) => ("user", json!({"role": "user", "content": message.text})),
                (By::Model, Kind::Result) => (
                    "user",
                    json!({"role": "user", "content": [{"tool_use_id": "toolu_1", "type": "tool_result",
                                                        "content": message.text}]}),
                ),
                (By::Model, kind) => {
                    let block = match kind {
                        Kind::Call => json!({"type": "tool_use", "id": "toolu_1", "name": "Bash",
                                             "input": {"command": message.text}}),
                        _ => json!({"type": "text", "text": message.text}),
                    };
                    (
                        "assistant",
                        json!({"id": format!("msg_{}", self.short()), "type": "message", "role": "assistant",
                                         "model": "claude-x", "content": [block], "stop_reason": null,
                                         "usage": {"input_tokens": 3, "output_tokens": 5}}),
                    )
                }
            };
            all.push(json!({
                "parentUuid": self.parent_id(message), "isSidechain": false, "userType": "external",
                "cwd": "/srv/boat", "sessionId": self.id, "version": "2.0.14", "gitBranch": "main",
                "type": kind, "message": body, "uuid": message.id,
                // Claude Code always says when.
                "timestamp": iso(message.time.unwrap_or(self.began)),
            }));
        }
        all
    }

    fn jsonl(&self) -> Vec<Value> {
        self.messages
            .iter()
            .map(|message| {
                let role = match (message.by, message.kind) {
                    (By::Person, _) => "user",
                    (By::Model, Kind::Said) => "assistant",
                    (By::Model, _) => "tool",
                };
                let speaker =
                    (message.by == By::Person).then(|| json!({"id": "u-1", "display": "Ada", "kind": "human"}));
                json!({"provider": "notes", "thread": self.id, "id": message.id, "role": role, "text": message.text,
                       "time": message.time.map(iso), "speaker": speaker})
            })
            .collect()
    }

    fn openprogram(&self) -> Vec<(String, Value)> {
        self.messages
            .iter()
            .enumerate()
            .map(|(at, message)| {
                let (letter, role) = match (message.by, message.kind) {
                    (By::Person, _) => ('u', "user"),
                    (By::Model, Kind::Said) => ('l', "llm"),
                    (By::Model, _) => ('c', "code"),
                };
                let id = message.id.get(..8).unwrap_or_default();
                let parent = self.parent_id(message).and_then(|id| id.get(..8));
                let node = json!({
                    "id": id, "created_at": message.time.map(fraction), "seq": at, "role": role,
                    "name": if role == "code" { "list" } else { "" }, "input": null, "output": message.text, "caller": null,
                    "predecessor": parent, "reads": [], "metadata": {},
                });
                (format!("{at:04}-{letter}-{id}.json"), node)
            })
            .collect()
    }
}

#[allow(clippy::cast_precision_loss, reason = "seconds since 1970 are far below 2^52")]
fn fraction(seconds: u64) -> f64 {
    seconds as f64 + 0.123_456
}

/// `2026-05-04T18:00:00.000000Z`
fn iso(seconds: u64) -> String {
    utc(seconds, "%Y-%m-%dT%H:%M:%S.000000Z")
}

/// Seconds since 1970, in UTC.
pub(crate) fn utc(seconds: u64, format: &str) -> String {
    let second = i64::try_from(seconds).ok().and_then(|second| Timestamp::from_second(second).ok());
    second.map(|at| at.strftime(format).to_string()).unwrap_or_default()
}

/// Numbers that look random and are the same everywhere (SplitMix64).
pub(crate) struct Random(u64);

const ONSETS: [&str; 16] = ["b", "br", "d", "f", "g", "k", "kl", "l", "m", "n", "p", "r", "s", "st", "t", "v"];
const VOWELS: [&str; 8] = ["a", "e", "i", "o", "u", "ea", "ou", "ie"];
const ENDS: [&str; 8] = ["", "n", "r", "s", "t", "l", "nd", "m"];
const COMMON: [&str; 32] = [
    "the", "to", "a", "and", "of", "is", "in", "it", "you", "that", "for", "we", "on", "with", "this", "can", "not",
    "be", "what", "how", "or", "if", "do", "when", "from", "so", "have", "will", "but", "one", "there", "at",
];
const CHINESE: [&str; 16] = [
    "的",
    "我们",
    "这个",
    "可以",
    "什么",
    "龙骨",
    "螺栓",
    "发动机",
    "价格",
    "港口",
    "油漆",
    "之前",
    "更换",
    "早上",
    "看了",
    "再次",
];

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// 0 to `n` - 1.
    pub(crate) fn below(&mut self, n: u64) -> u64 {
        self.next() % n.max(1)
    }

    fn percent(&mut self, of_hundred: u64) -> bool {
        self.below(100) < of_hundred
    }

    /// The word of a rank that is drawn about as often as one over the rank: a power of two first, then a rank within it.
    fn word(&mut self) -> String {
        let power = self.below(15);
        let rank = (1 << power) + self.below(1 << power) - 1;
        let pick = |list: &'static [&'static str], at: u64| {
            usize::try_from(at).ok().and_then(|at| list.get(at % list.len().max(1))).copied().unwrap_or_default()
        };
        if rank < COMMON.len() as u64 {
            return pick(&COMMON, rank).to_owned();
        }
        // Two syllables hold 1024 * 1024 ranks; the order in which they come is that of the digits.
        let mut word = String::new();
        let mut rest = rank;
        while rest > 0 {
            word.push_str(pick(&ONSETS, rest % 16));
            word.push_str(pick(&VOWELS, rest / 16 % 8));
            word.push_str(pick(&ENDS, rest / 128 % 8));
            rest /= 1_024;
        }
        word
    }

    fn sentence(&mut self, least: u64, most: u64) -> String {
        let words = least + self.below(most - least + 1);
        if self.percent(4) {
            return (0..words).map(|_| CHINESE.get(self.below(16) as usize).copied().unwrap_or_default()).collect();
        }
        (0..words).map(|_| self.word()).collect::<Vec<_>>().join(" ")
    }

    /// Some sentences, now and then with a line break, code or quotation marks between them.
    fn text(&mut self, least: u64, most: u64) -> String {
        let mut text = String::new();
        for n in 0..least + self.below(most - least + 1) {
            if n > 0 {
                text.push_str(match self.below(12) {
                    0 => ".\n\n",
                    1 => ":\n```\nlet x = \"y\";\n```\n",
                    2 => ". \u{201c}",
                    _ => ". ",
                });
            }
            text.push_str(&self.sentence(5, 18));
        }
        text
    }

    fn uuid(&mut self) -> String {
        let (a, b) = (self.next(), self.next());
        format!(
            "{:08x}-{:04x}-4{:03x}-8{:03x}-{:012x}",
            a >> 32,
            a >> 16 & 0xffff,
            a & 0xfff,
            b >> 52,
            b & 0xffff_ffff_ffff
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(format: Format, seed: u64, bytes: u64) -> (Vec<u8>, Made) {
        let mut out = Vec::new();
        let made = stream(format, seed, bytes, &mut out).unwrap();
        (out, made)
    }

    #[test]
    fn the_same_seed_gives_the_same_bytes_and_a_longer_export_begins_alike() {
        for format in [Format::ChatGpt, Format::Claude, Format::ClaudeCode, Format::Jsonl] {
            let (short, counted) = made(format, 7, 50_000);
            assert_eq!(made(format, 7, 50_000), (short.clone(), counted), "{format:?}");
            let (long, more) = made(format, 7, 200_000);
            let end = short.len() - usize::from(short.ends_with(b"]"));
            assert_eq!(long[..end], short[..end], "{format:?}");
            assert!(more.conversations > counted.conversations && counted.said > 0 && more.branched > 0);
            assert_eq!(short.len() as u64, counted.bytes);
            assert_ne!(made(format, 8, 50_000).0, short);
        }
    }

    #[test]
    fn they_are_json_and_say_what_was_counted() {
        let (text, counted) = made(Format::ChatGpt, 1, 100_000);
        let all: Vec<Value> = serde_json::from_slice(&text).unwrap();
        assert_eq!(all.len() as u64, counted.conversations);
        // Beside what was said: a root and a hidden message each.
        let nodes: usize = all.iter().map(|it| it["mapping"].as_object().unwrap().len() - 2).sum();
        assert_eq!(nodes as u64, counted.said + counted.other);
        let (text, counted) = made(Format::Jsonl, 1, 100_000);
        let lines = text.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        assert_eq!(
            lines.filter(|line| serde_json::from_slice::<Value>(line).is_ok()).count() as u64,
            counted.said + counted.other
        );
    }

    #[test]
    fn words_are_few_often_and_many_seldom() {
        let mut random = Random::new(3);
        let mut counts = std::collections::HashMap::<String, u64>::new();
        for _ in 0..50_000 {
            *counts.entry(random.word()).or_default() += 1;
        }
        let once = counts.values().filter(|n| **n <= 2).count();
        assert!(counts["the"] > 2_000, "{}", counts["the"]);
        assert!(once > 2_000 && counts.len() > 5_000, "{once} of {}", counts.len());
    }

    #[test]
    fn days_are_those_of_the_calendar() {
        assert_eq!(iso(0), "1970-01-01T00:00:00.000000Z");
        assert_eq!(iso(951_782_400), "2000-02-29T00:00:00.000000Z");
        assert_eq!(iso(1_772_323_199), "2026-02-28T23:59:59.000000Z");
        assert_eq!(iso(1_772_323_200), "2026-03-01T00:00:00.000000Z");
    }
}
