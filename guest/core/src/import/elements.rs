//! Splits an export that is one JSON document into its conversations, while it comes in.
//!
//! It looks for the elements of the array at the top, or of the array under a known key of an object at the top, or takes
//! that object itself. Of an element it keeps the bytes, up to a limit; of the rest, nothing. It knows the grammar of JSON
//! and one key that every conversation has, its **mark**. It must not know what a conversation says: an element that is
//! handed out may still be none.
//!
//! # Damage
//!
//! A byte that cannot stand where it stands ends the reading of the element it is in. From there on the reading is *lost*:
//! it looks for the next `{`, and takes an object for a conversation only if it has the mark and is whole. An undamaged
//! conversation is found again wherever the damage is, because one of these holds where it begins:
//!
//! - a value is expected: then it is one;
//! - something else is expected: then its `{` is the damage that is noticed, and the search finds it;
//! - its `{` seems to stand in a text, since a quote before it was lost or made. Its own first quote ends that text, and its
//!   first key cannot follow the end of a text: so the place of a `{` with nothing but spaces behind it is remembered
//!   ([`Elements::brace`]), and the reading goes on from there;
//! - it seems to be an item of a list of the conversation before it, whose end was lost, or to stand where the array should:
//!   an object with the mark in such a place ([`Nested`]) is handed out by itself.
//!
//! What stands deeper in a whole object is never taken for a conversation, so that a document within a message, a tool's
//! answer for one, cannot pass for one.

use memchr::{memchr, memchr2};

/// Bytes of a key that are looked at.
const KEY_BYTES: usize = 32;

const BOM: [u8; 3] = [0xef, 0xbb, 0xbf];

/// What an export looks like from above.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shape {
    /// The key that every conversation has, and nothing above or beside one.
    pub(super) mark: &'static str,
    /// The key of the array, where the export is an object.
    pub(super) list: &'static str,
}

/// What was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Found<'a> {
    /// A whole value where a conversation belongs, without white space between its parts.
    Element {
        /// Of its first byte.
        offset: u64,
        /// Its bytes.
        bytes: &'a [u8],
    },
    /// An element that is longer than is allowed. It was passed over.
    TooLarge {
        /// Of its first byte.
        offset: u64,
    },
    /// An element that is damaged.
    Damaged {
        /// Of its first byte.
        offset: u64,
        /// Where it was noticed.
        at: u64,
    },
    /// Damage between elements.
    Stray {
        /// Of the damage.
        offset: u64,
    },
    /// The export was over, and something else comes.
    Trailing {
        /// Of its first byte.
        offset: u64,
    },
}

/// How an input ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// As it should.
    Whole,
    /// There was nothing but white space.
    Empty,
    /// Before its end.
    Truncated {
        /// Of the element it ended in, or of the end.
        offset: u64,
    },
}

/// A finding, its bytes as a place in the buffer.
enum Event {
    Element { offset: u64, from: usize },
    TooLarge { offset: u64 },
    Damaged { offset: u64, at: u64 },
    Stray { offset: u64 },
    Trailing { offset: u64 },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Expect {
    /// Any value.
    Value,
    /// Any value, or the end of the list.
    ValueOrEnd,
    Key,
    KeyOrEnd,
    Colon,
    CommaOrEnd,
    /// Nothing more.
    Nothing,
    /// Lost: the next object, whatever comes before it.
    Search,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Token {
    None,
    /// Within quotes; of a key, or of a value.
    Text {
        key: bool,
        escape: Escape,
    },
    Number,
    /// What is left of `true`, `false`, `null`.
    Word(&'static [u8]),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Escape {
    None,
    Backslash,
    /// Hexadecimal digits still to come.
    Hex(u8),
}

/// An object that is directly in a list of the element being read, or in the place of the array of an object at the top.
struct Nested {
    /// Brackets open around it within the element.
    depth: usize,
    /// Of its first byte in the buffer.
    from: usize,
    /// Of its first byte in the input.
    offset: u64,
    marked: bool,
}

/// The splitter.
pub(super) struct Elements {
    shape: Shape,
    max: usize,
    /// Of the next byte.
    at: u64,
    /// Anything but white space came.
    any: bool,
    expect: Expect,
    token: Token,
    /// `{` or `[` of what is open.
    stack: Vec<u8>,
    /// Elements are values with so many brackets open around them; none: there are none here.
    base: Option<usize>,
    lost: bool,
    /// Of the element being read.
    start: u64,
    in_element: bool,
    marked: bool,
    over: bool,
    nested: Option<Nested>,
    buffer: Vec<u8>,
    /// What is in the buffer was handed out.
    handed: bool,
    key: Vec<u8>,
    /// The last key was that of the array, in an object at the top.
    is_list: bool,
    /// A `{` in the text being read with nothing but spaces behind it.
    brace: Option<u64>,
    /// The same, and the spaces behind the end of that text, until what follows shows that it was one.
    reopen: Option<(u64, usize)>,
}

impl Elements {
    /// At the start of an input, for elements of at most `max` bytes.
    pub(super) fn new(shape: Shape, max: usize) -> Self {
        Self {
            shape,
            max,
            at: 0,
            any: false,
            expect: Expect::Value,
            token: Token::None,
            stack: Vec::new(),
            base: Some(0),
            lost: false,
            start: 0,
            in_element: false,
            marked: false,
            over: false,
            nested: None,
            buffer: Vec::new(),
            handed: false,
            key: Vec::new(),
            is_list: false,
            brace: None,
            reopen: None,
        }
    }

    /// The next finding in `piece`, whose bytes up to there are taken off it. None: all of it is taken.
    pub(super) fn next(&mut self, piece: &mut &[u8]) -> Option<Found<'_>> {
        if core::mem::take(&mut self.handed) {
            self.buffer.clear();
        }
        Some(match self.step(piece)? {
            Event::Element { offset, from } => {
                Found::Element { offset, bytes: self.buffer.get(from..).unwrap_or_default() }
            }
            Event::TooLarge { offset } => Found::TooLarge { offset },
            Event::Damaged { offset, at } => Found::Damaged { offset, at },
            Event::Stray { offset } => Found::Stray { offset },
            Event::Trailing { offset } => Found::Trailing { offset },
        })
    }

    /// The input is over.
    pub(super) fn finish(self) -> End {
        let told = !self.lost || self.marked;
        if !self.any {
            End::Empty
        } else if self.in_element && told {
            End::Truncated { offset: self.start }
        } else if !self.lost && !self.stack.is_empty() {
            End::Truncated { offset: self.at }
        } else {
            End::Whole
        }
    }

    fn step(&mut self, piece: &mut &[u8]) -> Option<Event> {
        loop {
            let event = match self.token {
                _ if piece.is_empty() => return None,
                Token::Text { key, escape: Escape::None } => self.text(piece, key),
                Token::Text { key, escape } => self.escape(piece, key, escape),
                Token::Number => self.number(piece),
                Token::Word(rest) => self.word(piece, rest),
                Token::None if self.expect == Expect::Search => {
                    self.search(piece);
                    None
                }
                Token::None => self.structure(piece),
            };
            if event.is_some() {
                return event;
            }
        }
    }

    /// Between tokens.
    fn structure(&mut self, piece: &mut &[u8]) -> Option<Event> {
        let &byte = piece.first()?;
        if let b' ' | b'\t' | b'\n' | b'\r' = byte {
            self.white_space(piece);
            return None;
        }
        // A byte order mark, at the start only.
        if !self.any && BOM.get(self.at as usize) == Some(&byte) {
            self.skip(piece, 1);
            return None;
        }
        self.any = true;
        match (self.expect, byte) {
            (Expect::Value | Expect::ValueOrEnd, b'{' | b'[') => {
                // Each level is a byte, so that nothing is deeper than it is long.
                if self.stack.len() > self.max {
                    return self.too_deep();
                }
                self.open(byte);
                self.take(piece, 1);
                None
            }
            (Expect::Value | Expect::ValueOrEnd, b'"' | b'-' | b'0'..=b'9' | b't' | b'f' | b'n') => {
                self.begin_if_element();
                self.reopen = None;
                self.take(piece, 1);
                self.token = match byte {
                    b'"' => self.begin_text(false),
                    b't' => Token::Word(b"rue"),
                    b'f' => Token::Word(b"alse"),
                    b'n' => Token::Word(b"ull"),
                    _ => Token::Number,
                };
                None
            }
            (Expect::Key | Expect::KeyOrEnd, b'"') => {
                self.reopen = None;
                self.take(piece, 1);
                self.token = self.begin_text(true);
                None
            }
            (Expect::Colon, b':') => {
                self.accept(piece, Expect::Value);
                None
            }
            (Expect::CommaOrEnd, b',') => {
                let next = if self.stack.last() == Some(&b'{') { Expect::Key } else { Expect::Value };
                self.accept(piece, next);
                None
            }
            (Expect::KeyOrEnd | Expect::CommaOrEnd, b'}') if self.stack.last() == Some(&b'{') => self.close(piece),
            (Expect::ValueOrEnd | Expect::CommaOrEnd, b']') if self.stack.last() == Some(&b'[') => self.close(piece),
            _ => self.broken(),
        }
    }

    fn accept(&mut self, piece: &mut &[u8], next: Expect) {
        self.reopen = None;
        self.take(piece, 1);
        self.expect = next;
    }

    /// White space between tokens is not kept: it means nothing.
    fn white_space(&mut self, piece: &mut &[u8]) {
        let length = piece.iter().position(|byte| !matches!(byte, b' ' | b'\t' | b'\n' | b'\r')).unwrap_or(piece.len());
        if let Some((_, spaces)) = &mut self.reopen {
            *spaces += length;
            // In a text nothing but spaces could stand here.
            if piece.iter().take(length).any(|byte| *byte != b' ') {
                self.reopen = None;
            }
        }
        self.skip(piece, length);
    }

    /// How many brackets are open within the element being read.
    fn depth(&self) -> Option<usize> {
        self.stack.len().checked_sub(self.base?)
    }

    fn begin_if_element(&mut self) {
        if self.depth() == Some(0) {
            self.begin(self.at);
        }
    }

    fn begin(&mut self, start: u64) {
        self.start = start;
        self.in_element = true;
        self.marked = false;
        self.over = false;
        self.nested = None;
        self.buffer.clear();
    }

    fn open(&mut self, byte: u8) {
        self.reopen = None;
        match self.depth() {
            // The array at the top is no element.
            Some(0) if byte == b'[' && self.stack.is_empty() && !self.lost => self.base = Some(1),
            Some(0) => self.begin(self.at),
            // Neither is an object that has the array.
            Some(1) if byte == b'[' && self.base == Some(0) && self.is_list => {
                self.base = Some(self.stack.len() + 1);
                self.in_element = false;
                self.buffer.clear();
            }
            Some(1) if byte == b'{' && self.base == Some(0) && self.is_list => self.nest(1),
            Some(2) if byte == b'{' && self.stack.ends_with(b"{[") => self.nest(2),
            _ => {}
        }
        self.is_list = false;
        self.stack.push(byte);
        self.expect = if byte == b'{' { Expect::KeyOrEnd } else { Expect::ValueOrEnd };
    }

    fn nest(&mut self, depth: usize) {
        if self.over {
            self.buffer.clear();
        }
        self.nested = Some(Nested { depth, from: self.buffer.len(), offset: self.at, marked: false });
    }

    fn close(&mut self, piece: &mut &[u8]) -> Option<Event> {
        self.reopen = None;
        self.take(piece, 1);
        self.stack.pop();
        let depth = self.depth();
        if let Some(Nested { from, offset, marked, .. }) = self.nested.take_if(|nested| depth == Some(nested.depth)) {
            self.expect = Expect::CommaOrEnd;
            let event = (marked && (self.marked || !self.lost)).then_some(Event::Element { offset, from });
            if self.over {
                self.leave_buffer(event.is_some());
            }
            return event;
        }
        self.value_ended()
    }

    /// A value ended, with the brackets open that are open now.
    fn value_ended(&mut self) -> Option<Event> {
        let ended = self.in_element && self.depth() == Some(0);
        if self.base.is_some_and(|base| self.stack.len() < base) {
            self.base = None;
        }
        self.expect = match (self.stack.is_empty(), self.lost) {
            (false, _) => Expect::CommaOrEnd,
            (true, false) => Expect::Nothing,
            (true, true) => Expect::Search,
        };
        if self.stack.is_empty() {
            self.base = Some(0);
        }
        if !ended {
            return None;
        }
        self.in_element = false;
        let told = self.marked || !self.lost;
        self.leave_buffer(told && !self.over);
        told.then_some(if self.over {
            Event::TooLarge { offset: self.start }
        } else {
            Event::Element { offset: self.start, from: 0 }
        })
    }

    /// What is in the buffer is not needed any more, or only until the next call.
    fn leave_buffer(&mut self, is_handed: bool) {
        self.handed = is_handed;
        if !is_handed {
            self.buffer.clear();
        }
    }

    fn begin_text(&mut self, key: bool) -> Token {
        self.brace = None;
        self.key.clear();
        Token::Text { key, escape: Escape::None }
    }

    fn text(&mut self, piece: &mut &[u8], key: bool) -> Option<Event> {
        let end = memchr2(b'"', b'\\', piece).unwrap_or(piece.len());
        let chunk = piece.get(..end).unwrap_or_default();
        // Without an early end this is done for many bytes at once.
        if chunk.iter().fold(false, |any, byte| any | (*byte < 0x20)) {
            let control = chunk.iter().position(|byte| *byte < 0x20).unwrap_or(end);
            self.text_chunk(piece, control, key);
            return self.broken();
        }
        self.text_chunk(piece, end, key);
        match piece.first() {
            Some(b'"') => {
                self.take(piece, 1);
                self.text_ended(key)
            }
            Some(_) => {
                self.take(piece, 1);
                self.brace = None;
                self.token = Token::Text { key, escape: Escape::Backslash };
                None
            }
            None => None,
        }
    }

    fn text_chunk(&mut self, piece: &mut &[u8], length: usize, key: bool) {
        let chunk = piece.get(..length).unwrap_or_default();
        let shown = chunk.trim_ascii_end();
        if let Some(last) = shown.last() {
            self.brace = (*last == b'{').then(|| self.at + shown.len() as u64 - 1);
        }
        if key {
            let room = KEY_BYTES.saturating_sub(self.key.len());
            self.key.extend_from_slice(chunk.get(..room.min(length)).unwrap_or_default());
        }
        self.take(piece, length);
    }

    fn text_ended(&mut self, key: bool) -> Option<Event> {
        self.token = Token::None;
        self.reopen = self.brace.take().map(|brace| (brace, 0));
        if !key {
            return self.value_ended();
        }
        self.expect = Expect::Colon;
        let is_mark = self.key == self.shape.mark.as_bytes();
        self.is_list = false;
        match (self.depth(), &mut self.nested) {
            (Some(1), _) => {
                self.marked |= is_mark;
                self.is_list = self.key == self.shape.list.as_bytes();
            }
            (Some(depth), Some(nested)) if depth == nested.depth + 1 => nested.marked |= is_mark,
            _ => {}
        }
        None
    }

    fn escape(&mut self, piece: &mut &[u8], key: bool, escape: Escape) -> Option<Event> {
        let &byte = piece.first()?;
        let next = match (escape, byte) {
            (Escape::Backslash, b'u') => Escape::Hex(4),
            (Escape::Backslash, b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => Escape::None,
            (Escape::Hex(left), _) if byte.is_ascii_hexdigit() => match left {
                0 | 1 => Escape::None,
                left => Escape::Hex(left - 1),
            },
            _ => return self.broken(),
        };
        if key {
            // No key that is looked for has one.
            self.key.push(b'\\');
        }
        self.take(piece, 1);
        self.token = Token::Text { key, escape: next };
        None
    }

    fn number(&mut self, piece: &mut &[u8]) -> Option<Event> {
        let is_part = |byte: &u8| matches!(byte, b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E');
        let length = piece.iter().position(|byte| !is_part(byte)).unwrap_or(piece.len());
        self.take(piece, length);
        if piece.is_empty() {
            return None;
        }
        self.token = Token::None;
        self.value_ended()
    }

    fn word(&mut self, piece: &mut &[u8], rest: &'static [u8]) -> Option<Event> {
        let (expected, rest) = rest.split_first()?;
        if piece.first() != Some(expected) {
            return self.broken();
        }
        self.take(piece, 1);
        if rest.is_empty() {
            self.token = Token::None;
            return self.value_ended();
        }
        self.token = Token::Word(rest);
        None
    }

    fn search(&mut self, piece: &mut &[u8]) {
        let length = memchr(b'{', piece).unwrap_or(piece.len());
        self.skip(piece, length);
        if !piece.is_empty() {
            self.open(b'{');
            self.take(piece, 1);
        }
    }

    /// The next byte cannot stand where it stands. It is not taken.
    fn broken(&mut self) -> Option<Event> {
        let (was_lost, was_done) = (self.lost, self.expect == Expect::Nothing);
        let element = core::mem::take(&mut self.in_element).then_some(self.start);
        let told = !was_lost || self.marked;
        let in_text = matches!(self.token, Token::Text { escape: Escape::None, .. });
        self.lost = true;
        self.any = true;
        self.base = Some(0);
        self.token = Token::None;
        self.expect = Expect::Search;
        self.stack.clear();
        self.is_list = false;
        match (self.reopen.take(), self.brace.take()) {
            // What was taken for the end of a text was the start of the first key.
            (Some((brace, spaces)), _) => {
                self.reopened(brace);
                self.token = self.begin_text(true);
                self.keep(b"\"");
                for _ in 0..spaces {
                    self.keep(b" ");
                }
            }
            // The text could go on no longer, and this is white space behind the bracket.
            (None, Some(brace)) if in_text => self.reopened(brace),
            _ => {}
        }
        let at = self.at;
        match element {
            _ if was_done => Some(Event::Trailing { offset: at }),
            Some(offset) if told => Some(Event::Damaged { offset, at }),
            None if !was_lost => Some(Event::Stray { offset: at }),
            _ => None,
        }
    }

    /// There are more brackets open than an element may have bytes: it is given up where it stands, since what is open cannot
    /// be remembered.
    fn too_deep(&mut self) -> Option<Event> {
        Some(match self.broken()? {
            Event::Damaged { offset, .. } => Event::TooLarge { offset },
            other => other,
        })
    }

    /// An object began at `brace`.
    fn reopened(&mut self, brace: u64) {
        self.begin(brace);
        self.stack.push(b'{');
        self.expect = Expect::KeyOrEnd;
        self.keep(b"{");
    }

    fn skip(&mut self, piece: &mut &[u8], length: usize) {
        self.at += length as u64;
        *piece = piece.get(length..).unwrap_or_default();
    }

    /// Takes bytes off the piece, and keeps them if they belong to an element.
    fn take(&mut self, piece: &mut &[u8], length: usize) {
        let taken = piece.get(..length).unwrap_or(piece);
        self.keep(taken);
        self.skip(piece, length);
    }

    fn keep(&mut self, bytes: &[u8]) {
        if !self.in_element || (self.over && self.nested.is_none()) {
            return;
        }
        if bytes.len() > self.max.saturating_sub(self.buffer.len()) {
            // One that is in the list of another has its own room, once that one is too large.
            self.nested = self.nested.take().filter(|nested| !self.over && nested.from > 0);
            self.over = true;
            match &mut self.nested {
                Some(nested) => drop(self.buffer.drain(..core::mem::take(&mut nested.from))),
                None => self.buffer = Vec::new(),
            }
            return self.keep(bytes);
        }
        self.buffer.extend_from_slice(bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHAPE: Shape = Shape { mark: "mapping", list: "conversations" };

    #[derive(Clone, Debug, PartialEq, Eq)]
    enum Seen {
        Element(u64, String),
        TooLarge(u64),
        Damaged(u64),
        Stray(u64),
        Trailing(u64),
        Truncated(u64),
        Empty,
    }
    use Seen::*;

    fn run(input: &[u8], piece: usize, max: usize) -> Vec<Seen> {
        let mut elements = Elements::new(SHAPE, max);
        let mut seen = Vec::new();
        for mut piece in input.chunks(piece) {
            while let Some(found) = elements.next(&mut piece) {
                seen.push(match found {
                    Found::Element { offset, bytes } => Element(offset, String::from_utf8_lossy(bytes).into_owned()),
                    Found::TooLarge { offset } => TooLarge(offset),
                    Found::Damaged { offset, .. } => Damaged(offset),
                    Found::Stray { offset } => Stray(offset),
                    Found::Trailing { offset } => Trailing(offset),
                });
            }
        }
        match elements.finish() {
            End::Whole => {}
            End::Empty => seen.push(Empty),
            End::Truncated { offset } => seen.push(Truncated(offset)),
        }
        seen
    }

    fn of(input: &str) -> Vec<Seen> {
        let whole = run(input.as_bytes(), input.len().max(1), 1 << 20);
        for piece in 1..input.len() {
            assert_eq!(run(input.as_bytes(), piece, 1 << 20), whole, "{input:?} in pieces of {piece}");
        }
        whole
    }

    fn element(offset: u64, text: &str) -> Seen {
        Element(offset, text.to_owned())
    }

    #[test]
    fn elements_of_the_array_at_the_top_and_of_one_below() {
        assert_eq!(of("[]"), []);
        assert_eq!(
            of("\u{feff} [ {\"a\" : [1, 2.5e-3]} ,\n\"x\", -1, true, null, [[]]]\n"),
            [
                element(6, "{\"a\":[1,2.5e-3]}"),
                element(28, "\"x\""),
                element(33, "-1"),
                element(37, "true"),
                element(43, "null"),
                element(49, "[[]]"),
            ]
        );
        assert_eq!(
            of("{\"n\":[1],\"conversations\":[{\"mapping\":{}},{}],\"more\":[{\"x\":1}]}"),
            [element(26, "{\"mapping\":{}}"), element(41, "{}"),]
        );
        // Not below another key, and not deeper.
        let one = "{\"mapping\":{\"conversations\":[{}]},\"conversations\":{}}";
        assert_eq!(of(one), [element(0, one)]);
    }

    #[test]
    fn texts_hold_anything() {
        let one = r#"{"a":"}],[{\"\\","b\u005b\n":"\ud83d {"}"#;
        assert_eq!(of(&format!("[{one},{one}]")), [element(1, one), element(2 + one.len() as u64, one)]);
    }

    #[test]
    fn an_end_that_is_missing_or_not_the_end() {
        assert_eq!(of(""), [Empty]);
        assert_eq!(of("\u{feff}\n"), [Empty]);
        assert_eq!(of("[{\"a\":1},{\"b\""), [element(1, "{\"a\":1}"), Truncated(9)]);
        assert_eq!(of("[{\"a\":1},"), [element(1, "{\"a\":1}"), Truncated(9)]);
        assert_eq!(of("[{\"a\":1}"), [element(1, "{\"a\":1}"), Truncated(8)]);
        assert_eq!(of("[{\"a\":1}] x"), [element(1, "{\"a\":1}"), Trailing(10)]);
        assert_eq!(of("[1][{\"mapping\":2}]"), [element(1, "1"), Trailing(3), element(4, "{\"mapping\":2}")]);
        assert_eq!(of("id,text\n1,\"hello {\"\n"), [Stray(0)]);
    }

    #[test]
    fn one_that_is_too_large_is_passed_over() {
        let (small, large) = ("{\"mapping\":1}", format!("{{\"mapping\":[\"{}\"]}}", "x".repeat(40)));
        let input = format!("[{small},{large},{small}]");
        let end = 2 + (small.len() + large.len()) as u64;
        for piece in 1..input.len() {
            assert_eq!(run(input.as_bytes(), piece, 20), [element(1, small), TooLarge(15), element(end + 1, small),]);
        }
    }

    /// Depth is no fault: what is deep is taken as far as it may be long, and what is longer is told as that.
    #[test]
    fn depth_is_bounded_by_length_only() {
        let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        let (deep, small) = (nested(50_000), "{\"mapping\":1}");
        let input = format!("[{deep},{small}]");
        let behind = element(2 + deep.len() as u64, small);
        assert_eq!(run(input.as_bytes(), 1000, 1 << 20), [element(1, &deep), behind.clone()]);
        // Longer than is allowed, and passed over as long as its brackets can be remembered.
        assert_eq!(run(input.as_bytes(), 1000, 60_000), [TooLarge(1), behind.clone()]);
        assert_eq!(run(input.as_bytes(), 1000, 1000), [TooLarge(1), behind]);
        let endless = "{\"a\":".repeat(1 << 18);
        assert_eq!(run(endless.as_bytes(), 1 << 12, 1 << 12), [TooLarge(0)]);
        assert_eq!(run(endless.as_bytes(), 1 << 12, 1 << 24), [Truncated(0)]);
    }

    #[test]
    fn damage_spoils_one_element_and_the_next_are_found() {
        let (a, b) = (r#"{"mapping":{"k":"v {"},"l":["x"]}"#, r#"{"title":"b","mapping":{}}"#);
        let whole = format!("[{a},\n {b},{b}]");
        let expected = [element(4 + a.len() as u64, b), element(5 + (a.len() + b.len()) as u64, b)];
        for at in 0..=a.len() + 1 {
            for byte in [0, b' ', b'"', b'x', b'{', b'}', b'[', b']', b',', b':', b'\\', 0xff, b'7', b'\n'] {
                let mut input = whole.clone().into_bytes();
                input[at] = byte;
                for piece in [1, 7, input.len()] {
                    let seen = run(&input, piece, 1 << 20);
                    for one in &expected {
                        assert!(seen.contains(one), "{:?}: {seen:?}", String::from_utf8_lossy(&input));
                    }
                }
            }
        }
    }

    #[test]
    fn a_conversation_whose_separation_is_lost_is_found_and_a_document_within_one_is_not() {
        let inner = r#"{"mapping":{}}"#;
        // The brackets that ended the first are gone.
        let input = format!("[{{\"mapping\":1,\"l\":[\"x\"  ,{inner}]");
        let offset = 1 + input[1..].find(inner).unwrap() as u64;
        assert_eq!(of(&input), [element(offset, inner), Truncated(1)]);
        // The bracket that began the array is gone.
        assert_eq!(
            of("{\"conversations\":{\"mapping\":{}},{\"mapping\":1}]}"),
            [element(17, inner), Damaged(0), element(32, "{\"mapping\":1}"),]
        );
        // Deeper, in whole objects, it belongs to what it is in.
        for around in [
            format!("{{\"mapping\":{{\"n\":{{\"tool\":[{inner}]}}}}}}"),
            format!("{{\"mapping\":[{{\"tool\":{inner}}}]}}"),
        ] {
            assert_eq!(of(&format!("[{around}]")), [element(1, &around)]);
            // Also behind damage.
            assert_eq!(of(&format!("[!{around}]")), [Stray(1), element(2, &around)]);
            let unmarked = around.replacen("mapping", "message", 1);
            assert_eq!(of(&format!("[!{unmarked}]")), [Stray(1)]);
        }
    }

    #[test]
    fn what_was_found_too_large_may_hold_one_whose_separation_is_lost() {
        let inner = r#"{"mapping":{}}"#;
        let input = format!("[{{\"mapping\":1,\"l\":[\"{}\",{{\"other\":1}},{inner}", "x".repeat(60));
        let offset = input.rfind(inner).unwrap() as u64;
        for piece in 1..input.len() {
            assert_eq!(run(input.as_bytes(), piece, 40), [element(offset, inner), Truncated(1)]);
        }
    }
}
