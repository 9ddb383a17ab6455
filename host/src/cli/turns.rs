//! Turns as JSON Lines, read one at a time with their line numbers.
//!
//! Knows the keys of a line and the types of their values. Must not know which values are allowed: that is the
//! component's to say. Every fault of a line is a value with the line, never an end of the program.

use std::fmt;
use std::io::{self, BufRead, Read};

use recollex::workspace::Turn;
use serde::de::{self, DeserializeSeed, Deserializer, IgnoredAny, MapAccess, Visitor};

use super::failure::Failure;

/// The longest line that is read, in bytes. A turn that fills a whole batch of 64 MiB still fits unless most of it is
/// written as `\uXXXX`.
const LINE_BYTES_MAX: usize = 192 << 20;

/// A line's turn.
#[derive(Debug)]
pub struct Numbered {
    /// Line in the input, from 1.
    pub line: u64,
    /// Without its ordinal: that is for the caller to count.
    pub turn: Turn,
    /// Keys that mean nothing here.
    pub unknown: Vec<String>,
}

/// What lines that do not say it themselves belong to.
#[derive(Clone, Debug, Default)]
pub struct Defaults {
    /// Provider.
    pub provider: Option<String>,
    /// Thread.
    pub thread: Option<String>,
}

/// Reads turns from any stream. Skips empty lines; takes a byte order mark at the start, CRLF, and a last line without
/// its line feed.
pub struct Turns<R> {
    input: R,
    defaults: Defaults,
    line: u64,
    bytes: u64,
    buffer: Vec<u8>,
    line_bytes_max: usize,
}

impl<R: BufRead> Turns<R> {
    /// Reads from `input`.
    pub fn new(input: R, defaults: Defaults) -> Self {
        Self { input, defaults, line: 0, bytes: 0, buffer: Vec::new(), line_bytes_max: LINE_BYTES_MAX }
    }

    /// Bytes read so far.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The next turn; none at the end.
    ///
    /// # Errors
    /// What is wrong with the next line, with its number, or that the stream cannot be read.
    pub fn next(&mut self) -> Result<Option<Numbered>, Failure> {
        loop {
            if !self.read_line().map_err(|error| {
                Failure::usage("unreadable-input", format!("the input cannot be read: {error}"))
                    .at_line(self.line + 1)
                    .next("nothing of this batch was archived; see to the input and repeat the call")
            })? {
                return Ok(None);
            }
            self.line += 1;
            if self.buffer.len() > self.line_bytes_max {
                return Err(Failure::limit(
                    "line-bytes",
                    format!("a line is longer than {} bytes", self.line_bytes_max),
                )
                .at_line(self.line)
                .next("split the turn, or check that the input has one turn a line"));
            }
            let mut bytes = &*self.buffer;
            if self.line == 1 {
                bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
            }
            if !bytes.trim_ascii().is_empty() {
                return self.parse(bytes).map(Some).map_err(|failure| {
                    let failure = failure.at_line(self.line);
                    if failure.next.is_none() { failure.next(FORM) } else { failure }
                });
            }
        }
    }

    /// Reads a line into the buffer, its line feed included, at most one byte more than is allowed.
    fn read_line(&mut self) -> io::Result<bool> {
        self.buffer.clear();
        let read = self.input.by_ref().take(self.line_bytes_max as u64 + 1).read_until(b'\n', &mut self.buffer)?;
        self.bytes += read as u64;
        Ok(read > 0)
    }

    fn parse(&self, bytes: &[u8]) -> Result<Numbered, Failure> {
        let text = std::str::from_utf8(bytes).map_err(|error| {
            let failure =
                Failure::usage("invalid-utf8", format!("byte {} of the line is not UTF-8", error.valid_up_to() + 1));
            if self.line == 1 && (bytes.starts_with(b"\xff\xfe") || bytes.starts_with(b"\xfe\xff")) {
                failure.next("the input looks like UTF-16: convert it to UTF-8")
            } else {
                failure
            }
        })?;
        let mut fault = None;
        let mut json = serde_json::Deserializer::from_str(text);
        let raw = LineSeed { fault: &mut fault }.deserialize(&mut json).and_then(|raw| json.end().map(|()| raw));
        let raw = raw.map_err(|error| fault.take().unwrap_or_else(|| not_json(&error)))?;
        raw.into_turn(&self.defaults).map(|(turn, unknown)| Numbered { line: self.line, turn, unknown })
    }
}

/// Where the form of a line is described.
const FORM: &str = "each line is one turn as a JSON object: see `recollex help archive`";

/// Every key that means something here.
const KEYS: [&str; 13] = [
    "provider",
    "thread",
    "id",
    "role",
    "text",
    "time",
    "principal",
    "tier",
    "trust",
    "speaker",
    "speaker.id",
    "speaker.display",
    "speaker.kind",
];

/// The key that was probably meant by one that means nothing: it differs by letters' case alone, or by one character too
/// many, too few, or another.
pub fn meant(key: &str) -> Option<&'static str> {
    let is = |known: &&str| known.eq_ignore_ascii_case(key);
    KEYS.into_iter().find(is).or_else(|| KEYS.into_iter().find(|known| is_one_edit(known, &key.to_ascii_lowercase())))
}

/// Whether one character put in, taken out or replaced makes `b` of `a`.
fn is_one_edit(a: &str, b: &str) -> bool {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().take(a.chars().count() + 2).collect());
    let same = a.iter().zip(&b).take_while(|(a, b)| a == b).count();
    let (a, b) = (a.get(same..).unwrap_or_default(), b.get(same..).unwrap_or_default());
    let but_first = |rest: &[char]| rest.get(1..).unwrap_or_default().to_vec();
    match a.len().cmp(&b.len()) {
        std::cmp::Ordering::Less => but_first(b) == a,
        std::cmp::Ordering::Greater => but_first(a) == b,
        std::cmp::Ordering::Equal => !a.is_empty() && but_first(a) == but_first(b),
    }
}

fn not_json(error: &serde_json::Error) -> Failure {
    let text = error.to_string();
    // The place within the line is worth keeping, the line number "1" is not: ours follows.
    let said = text.rsplit_once(" at line ").map_or(&*text, |(said, _)| said);
    let place = if error.column() > 0 { format!(", at byte {}", error.column()) } else { String::new() };
    Failure::usage("invalid-json", format!("not a turn in JSON: {said}{place}"))
}

/// A line as it stands.
#[derive(Debug, Default)]
struct Line {
    provider: Option<String>,
    thread: Option<String>,
    id: Option<String>,
    role: Option<String>,
    text: Option<String>,
    time: Option<String>,
    speaker_id: Option<String>,
    speaker_display: Option<String>,
    speaker_kind: Option<String>,
    principal: Option<String>,
    tier: Option<String>,
    trust: Option<String>,
    unknown: Vec<String>,
}

impl Line {
    fn into_turn(self, defaults: &Defaults) -> Result<(Turn, Vec<String>), Failure> {
        let missing = |name: &str| {
            let failure = Failure::usage("missing-field", format!("`{name}` is missing"));
            match self.unknown.iter().find(|key| meant(key) == Some(name)) {
                Some(key) => failure.next(format!("the line has `{key}`, which means nothing: is `{name}` meant?")),
                None => failure,
            }
        };
        let unless_meant =
            |failure: Failure, next: &str| if failure.next.is_none() { failure.next(next) } else { failure };
        let turn = Turn {
            provider: self
                .provider
                .or_else(|| defaults.provider.clone())
                .ok_or_else(|| unless_meant(missing("provider"), "name it for all lines: --provider NAME"))?,
            thread: self
                .thread
                .or_else(|| defaults.thread.clone())
                .ok_or_else(|| unless_meant(missing("thread"), "name it for all lines: --thread NAME"))?,
            id: self.id.ok_or_else(|| missing("id"))?,
            ordinal: 0,
            role: self.role.ok_or_else(|| missing("role"))?,
            text: self.text.ok_or_else(|| missing("text"))?,
            time: self.time,
            speaker_id: self.speaker_id,
            speaker_display: self.speaker_display,
            speaker_kind: self.speaker_kind,
            principal: self.principal,
            tier: self.tier,
            trust: self.trust.unwrap_or_else(|| "trusted".to_owned()),
        };
        Ok((turn, self.unknown))
    }
}

/// Reads an object key by key, so that a key given twice, or of the wrong type, can be named.
struct LineSeed<'f> {
    fault: &'f mut Option<Failure>,
}

impl<'de> DeserializeSeed<'de> for LineSeed<'_> {
    type Value = Line;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Line, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for LineSeed<'_> {
    type Value = Line;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Line, A::Error> {
        let mut line = Line::default();
        let mut seen: Vec<String> = Vec::new();
        while let Some(key) = map.next_key::<String>()? {
            once(&key, &mut seen, self.fault)?;
            let place = match &*key {
                "provider" => &mut line.provider,
                "thread" => &mut line.thread,
                "id" => &mut line.id,
                "role" => &mut line.role,
                "text" => &mut line.text,
                "time" => &mut line.time,
                "principal" => &mut line.principal,
                "tier" => &mut line.tier,
                "trust" => &mut line.trust,
                "speaker" => {
                    map.next_value_seed(SpeakerSeed { line: &mut line, fault: self.fault })?;
                    continue;
                }
                _ => {
                    map.next_value::<IgnoredAny>()?;
                    line.unknown.push(key);
                    continue;
                }
            };
            *place = map.next_value_seed(TextSeed { name: &key, fault: self.fault })?;
        }
        Ok(line)
    }
}

struct SpeakerSeed<'l, 'f> {
    line: &'l mut Line,
    fault: &'f mut Option<Failure>,
}

impl<'de> DeserializeSeed<'de> for SpeakerSeed<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for SpeakerSeed<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object for `speaker`")
    }

    fn visit_unit<E: de::Error>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let mut seen: Vec<String> = Vec::new();
        while let Some(key) = map.next_key::<String>()? {
            let name = format!("speaker.{key}");
            once(&name, &mut seen, self.fault)?;
            let place = match &*key {
                "id" => &mut self.line.speaker_id,
                "display" => &mut self.line.speaker_display,
                "kind" => &mut self.line.speaker_kind,
                _ => {
                    map.next_value::<IgnoredAny>()?;
                    self.line.unknown.push(name);
                    continue;
                }
            };
            *place = map.next_value_seed(TextSeed { name: &name, fault: self.fault })?;
        }
        Ok(())
    }
}

/// Evidence must not depend on which of two values a reader takes.
fn once<E: de::Error>(key: &str, seen: &mut Vec<String>, fault: &mut Option<Failure>) -> Result<(), E> {
    if seen.iter().any(|name| name == key) {
        *fault = Some(Failure::usage("duplicate-field", format!("`{key}` stands twice in the line")));
        return Err(E::custom("duplicate"));
    }
    seen.push(key.to_owned());
    Ok(())
}

/// A string, or `null` for none.
struct TextSeed<'n, 'f> {
    name: &'n str,
    fault: &'f mut Option<Failure>,
}

impl TextSeed<'_, '_> {
    fn wrong<E: de::Error>(self, found: &str) -> E {
        *self.fault = Some(Failure::usage("wrong-type", format!("`{}` must be a string, not {found}", self.name)));
        E::custom("type")
    }
}

impl<'de> DeserializeSeed<'de> for TextSeed<'_, '_> {
    type Value = Option<String>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Option<String>, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for TextSeed<'_, '_> {
    type Value = Option<String>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a string for `{}`", self.name)
    }

    fn visit_unit<E: de::Error>(self) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Self::Value, E> {
        Ok(Some(text.to_owned()))
    }

    fn visit_string<E: de::Error>(self, text: String) -> Result<Self::Value, E> {
        Ok(Some(text))
    }

    fn visit_bool<E: de::Error>(self, _: bool) -> Result<Self::Value, E> {
        Err(self.wrong("true or false"))
    }

    fn visit_i64<E: de::Error>(self, _: i64) -> Result<Self::Value, E> {
        Err(self.wrong("a number"))
    }

    fn visit_u64<E: de::Error>(self, _: u64) -> Result<Self::Value, E> {
        Err(self.wrong("a number"))
    }

    fn visit_f64<E: de::Error>(self, _: f64) -> Result<Self::Value, E> {
        Err(self.wrong("a number"))
    }

    fn visit_seq<A: de::SeqAccess<'de>>(self, _: A) -> Result<Self::Value, A::Error> {
        Err(self.wrong("a list"))
    }

    fn visit_map<A: MapAccess<'de>>(self, _: A) -> Result<Self::Value, A::Error> {
        Err(self.wrong("an object"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn defaults() -> Defaults {
        Defaults { provider: Some("p".to_owned()), thread: Some("t".to_owned()) }
    }

    fn read_with(input: &[u8], defaults: Defaults) -> Result<Vec<Numbered>, Failure> {
        let mut turns = Turns::new(input, defaults);
        let mut all = Vec::new();
        while let Some(turn) = turns.next()? {
            all.push(turn);
        }
        assert_eq!(turns.bytes(), input.len() as u64);
        Ok(all)
    }

    fn read(input: &[u8]) -> Result<Vec<Numbered>, Failure> {
        read_with(input, defaults())
    }

    #[test]
    fn all_keys_arrive() {
        let all = read(
            br#"{"id":"m","role":"user","text":"a\r\n\u0000b ","time":"2026-05-04","speaker":{"id":"u","display":"U","kind":"human"},"principal":"o","tier":"owner","trust":"pending","provider":"q","thread":"r"}"#,
        )
        .unwrap();
        let turn = &all[0].turn;
        assert_eq!((&*turn.provider, &*turn.thread, &*turn.id, &*turn.text), ("q", "r", "m", "a\r\n\0b "));
        assert_eq!(turn.speaker_id.as_deref(), Some("u"));
        assert_eq!(turn.speaker_display.as_deref(), Some("U"));
        assert_eq!(turn.speaker_kind.as_deref(), Some("human"));
        assert_eq!(
            (turn.time.as_deref(), turn.tier.as_deref(), &*turn.trust),
            (Some("2026-05-04"), Some("owner"), "pending")
        );
        assert!(all[0].unknown.is_empty());
    }

    #[test]
    fn defaults_invent_nothing_but_trust() {
        let all = read(br#"{"id":"m","role":"user","text":"","time":null,"speaker":null}"#).unwrap();
        let turn = &all[0].turn;
        assert_eq!((&*turn.provider, &*turn.thread, &*turn.trust), ("p", "t", "trusted"));
        assert_eq!((&turn.time, &turn.speaker_id, &turn.principal, &turn.tier), (&None, &None, &None, &None));
    }

    #[test]
    fn marks_line_ends_and_empty_lines_are_no_trouble() {
        let one = r#"{"id":"m","role":"user","text":"x"}"#;
        let input = format!("\u{feff}{one}\r\n\r\n  \n\n{one}\n{one}");
        let lines: Vec<u64> = read(input.as_bytes()).unwrap().iter().map(|turn| turn.line).collect();
        assert_eq!(lines, [1, 5, 6]);
        assert!(read(b"").unwrap().is_empty());
        assert!(read(b"\xef\xbb\xbf\n").unwrap().is_empty());
    }

    #[test]
    fn faults_name_line_and_reason() {
        let good = r#"{"id":"m","role":"user","text":"x"}"#;
        let cases: &[(&[u8], &str)] = &[
            (br#"{"role":"user","text":"x"}"#, "missing-field"),
            (br#"{"id":"m","text":"x"}"#, "missing-field"),
            (br#"{"id":"m","role":"user"}"#, "missing-field"),
            (br#"{"id":"m","role":"user","text":null}"#, "missing-field"),
            (br#"{"id":7,"role":"user","text":"x"}"#, "wrong-type"),
            (br#"{"id":"m","role":"user","text":["x"]}"#, "wrong-type"),
            (br#"{"id":"m","role":"user","text":{"a":1}}"#, "wrong-type"),
            (br#"{"id":"m","role":"user","text":"x","speaker":{"id":true}}"#, "wrong-type"),
            (br#"{"id":"m","role":"user","text":"x","speaker":"Ada"}"#, "invalid-json"),
            (br#"{"id":"m","role":"user","text":"x","text":"y"}"#, "duplicate-field"),
            (br#"{"id":"m","role":"user","text":"x","speaker":{"id":"a","id":"b"}}"#, "duplicate-field"),
            (br#"{"id":"m","role":"user","text":"x"} {}"#, "invalid-json"),
            (br#"{"id":"m","role":"user","text":"\ud800"}"#, "invalid-json"),
            (br#"{"id":"m","role":"user","text":"\udc00x"}"#, "invalid-json"),
            (br#"{"id":"m","role":"user","te"#, "invalid-json"),
            (br#"["id"]"#, "invalid-json"),
            (b"hello", "invalid-json"),
            (b"{\"id\":\"m\",\"role\":\"user\",\"text\":\"\xff\"}", "invalid-utf8"),
            (b"{\"id\":\"m\",\"role\":\"user\",\"text\":\"\xe5\x96\"}", "invalid-utf8"),
        ];
        for (bad, reason) in cases {
            let input = [good.as_bytes(), b"\n", bad, b"\n", good.as_bytes()].concat();
            let failure = read(&input).unwrap_err();
            let shown = String::from_utf8_lossy(bad);
            assert_eq!(
                (&*failure.reason, failure.line, failure.exit.0),
                (*reason, Some(2), 2),
                "{shown}: {}",
                failure.message
            );
        }
    }

    #[test]
    fn a_line_cut_anywhere_is_a_fault_and_no_panic() {
        let whole = r#"{"id":"m","role":"user","text":"é喷👩🏽‍🔧\u00e9","speaker":{"id":"u"}}"#.as_bytes();
        for end in 1..whole.len() {
            assert_eq!(read(&whole[..end]).unwrap_err().line, Some(1), "cut at {end}");
        }
    }

    #[test]
    fn unknown_keys_are_told_however_deep() {
        let all = read(br#"{"id":"m","x":{"y":[1,{"z":null}]},"role":"user","speaker":{"id":"u","age":3},"text":"t"}"#)
            .unwrap();
        assert_eq!(all[0].unknown, ["x", "speaker.age"]);
        let deep =
            format!(r#"{{"id":"m","role":"user","text":"t","x":{}{}}}"#, "[".repeat(100_000), "]".repeat(100_000));
        assert_eq!(read(deep.as_bytes()).unwrap()[0].unknown, ["x"]);
    }

    #[test]
    fn a_key_that_was_probably_meant_is_named() {
        for (key, known) in [
            ("Trust", "trust"),
            ("trst", "trust"),
            ("truest", "trust"),
            ("TRUXT", "trust"),
            ("speaker.Display", "speaker.display"),
            ("speaker_id", "speaker.id"),
            ("Provider", "provider"),
        ] {
            assert_eq!(meant(key), Some(known), "{key}");
        }
        for key in ["", "content", "timestamp", "trut_", "speaker.name", &"x".repeat(1 << 20)] {
            assert_eq!(meant(key), None);
        }
    }

    #[test]
    fn what_is_missing_may_be_there_under_another_name() {
        let failure = read(br#"{"id":"m","role":"user","Text":"x"}"#).unwrap_err();
        assert_eq!(failure.message, "`text` is missing");
        assert!(failure.next.unwrap().contains("`Text`"));
        assert!(read(b"{").unwrap_err().next.unwrap().contains("help archive"));
    }

    #[test]
    fn where_it_belongs_must_be_said_once() {
        let line = br#"{"id":"m","role":"user","text":"x","provider":"q"}"#;
        let failure = read_with(line, Defaults::default()).unwrap_err();
        assert_eq!(failure.message, "`thread` is missing");
        assert!(failure.next.unwrap().contains("--thread"));
    }

    #[test]
    fn a_line_without_end_is_a_limit() {
        let mut turns = Turns::new(io::BufReader::new(io::repeat(b'x')), defaults());
        turns.line_bytes_max = 1 << 10;
        let failure = turns.next().unwrap_err();
        assert_eq!((&*failure.reason, failure.line, failure.exit.0), ("line-bytes", Some(1), 7));
    }
}
