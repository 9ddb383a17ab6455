//! Values of an export, taken out of JSON one by one, borrowed where possible.
//!
//! Knows JSON. Must not know any format; [`crate::turns`] reads nodes with it too. A value of another kind than is asked for is
//! as good as absent: exports change without notice, and a field of a new shape must not cost a conversation.

use serde::de::{Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::fmt;

/// A value as it stands.
pub(crate) type Raw<'a> = &'a RawValue;

/// The value that a whole document is. None if it is no JSON, or not only one value.
pub(crate) fn document(text: &str) -> Option<Raw<'_>> {
    serde_json::from_str(text).ok()
}

/// The values of an object under these keys, in their order; absent ones are none, `null` is there. None if it is no
/// object, or has one of the keys twice: what is kept must not depend on which of two a reader takes.
pub(crate) fn fields<'a, const N: usize>(raw: Raw<'a>, keys: [&str; N]) -> Option<[Option<Raw<'a>>; N]> {
    let mut found = [None; N];
    let mut sound = true;
    entries(raw, &mut |key, value| {
        if let Some(at) = keys.iter().position(|wanted| wanted.as_bytes() == key.bytes())
            && let Some(slot) = found.get_mut(at)
        {
            sound &= slot.replace(value).is_none();
        }
        true
    })?;
    sound.then_some(found)
}

/// Hands on every key of an object with its value, until `each` answers false. None if it is no object.
pub(crate) fn entries<'a>(raw: Raw<'a>, each: &mut dyn FnMut(&Literal<'a>, Raw<'a>) -> bool) -> Option<()> {
    if !raw.get().starts_with('{') {
        return None;
    }
    serde_json::Deserializer::from_str(raw.get()).deserialize_map(Entries(each)).ok()
}

/// Hands on every item of a list, until `each` answers false. None if it is no list.
pub(crate) fn items<'a>(raw: Raw<'a>, each: &mut dyn FnMut(Raw<'a>) -> bool) -> Option<()> {
    if !raw.get().starts_with('[') {
        return None;
    }
    serde_json::Deserializer::from_str(raw.get()).deserialize_seq(Items(each)).ok()
}

/// A text. None for anything else. Half of a surrogate pair, which no text can hold, becomes U+FFFD.
pub(crate) fn text(raw: Raw<'_>) -> Option<Cow<'_, str>> {
    literal(raw).map(Literal::text)
}

/// A text, and not only what can be shown of it: for ids, of which no two may become one. None for anything else.
pub(crate) fn literal(raw: Raw<'_>) -> Option<Literal<'_>> {
    serde_json::from_str(raw.get()).ok()
}

/// A text that says something: not empty.
pub(crate) fn name(raw: Option<Raw<'_>>) -> Option<Cow<'_, str>> {
    text(raw?).filter(|name| !name.is_empty())
}

/// A number, as near as a float comes.
pub(crate) fn number(raw: Raw<'_>) -> Option<f64> {
    // The parser of floats in the standard library rounds correctly; JSON's grammar for numbers is within its own.
    let digits = raw.get();
    digits.starts_with(|first: char| first == '-' || first.is_ascii_digit()).then(|| digits.parse().ok())?
}

/// Whether it is `true`.
pub(crate) fn is_true(raw: Option<Raw<'_>>) -> bool {
    raw.is_some_and(|raw| raw.get() == "true")
}

/// Whether it is absent or `null`.
pub(crate) fn is_absent(raw: Option<Raw<'_>>) -> bool {
    raw.is_none_or(|raw| raw.get() == "null")
}

struct Entries<'e, 'a>(&'e mut dyn FnMut(&Literal<'a>, Raw<'a>) -> bool);

impl<'a> Visitor<'a> for Entries<'_, 'a> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'a>>(self, mut map: A) -> Result<(), A::Error> {
        let mut go_on = true;
        while let Some(key) = map.next_key()? {
            if go_on {
                go_on = (self.0)(&key, map.next_value()?);
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(())
    }
}

struct Items<'e, 'a>(&'e mut dyn FnMut(Raw<'a>) -> bool);

impl<'a> Visitor<'a> for Items<'_, 'a> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list")
    }

    fn visit_seq<A: SeqAccess<'a>>(self, mut list: A) -> Result<(), A::Error> {
        while let Some(item) = list.next_element()? {
            if !(self.0)(item) {
                while list.next_element::<IgnoredAny>()?.is_some() {}
            }
        }
        Ok(())
    }
}

/// A text as JSON has it. Halves of surrogate pairs, of which JSON can have any, stand in it as three bytes each (WTF-8), so
/// that two of them are equal only where every code unit is. Read as bytes: the parser of texts refuses halves, and whole
/// conversations with them.
pub(crate) struct Literal<'a>(Cow<'a, [u8]>);

impl<'a> Literal<'a> {
    /// All of it; UTF-8 unless there is half of a surrogate pair.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// What can be shown of it: half of a surrogate pair becomes U+FFFD.
    pub(crate) fn to_text(&self) -> String {
        core::str::from_utf8(&self.0).map_or_else(|_| repaired(&self.0), str::to_owned)
    }

    fn text(self) -> Cow<'a, str> {
        match self.0 {
            Cow::Borrowed(bytes) => {
                core::str::from_utf8(bytes).map_or_else(|_| Cow::Owned(repaired(bytes)), Cow::Borrowed)
            }
            Cow::Owned(bytes) => {
                Cow::Owned(String::from_utf8(bytes).unwrap_or_else(|error| repaired(error.as_bytes())))
            }
        }
    }
}

impl<'a> Deserialize<'a> for Literal<'a> {
    fn deserialize<D: Deserializer<'a>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_bytes(LiteralVisitor)
    }
}

struct LiteralVisitor;

impl<'a> Visitor<'a> for LiteralVisitor {
    type Value = Literal<'a>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text")
    }

    fn visit_borrowed_bytes<E: Error>(self, bytes: &'a [u8]) -> Result<Literal<'a>, E> {
        Ok(Literal(Cow::Borrowed(bytes)))
    }

    fn visit_bytes<E: Error>(self, bytes: &[u8]) -> Result<Literal<'a>, E> {
        Ok(Literal(Cow::Owned(bytes.to_owned())))
    }

    fn visit_borrowed_str<E: Error>(self, text: &'a str) -> Result<Literal<'a>, E> {
        Ok(Literal(Cow::Borrowed(text.as_bytes())))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Literal<'a>, E> {
        Ok(Literal(Cow::Owned(text.as_bytes().to_owned())))
    }
}

/// Text of bytes in which halves of surrogate pairs stand as three bytes each.
fn repaired(mut bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len());
    loop {
        let valid = match core::str::from_utf8(bytes) {
            Ok(_) => bytes.len(),
            Err(error) => error.valid_up_to(),
        };
        let (good, rest) = bytes.split_at_checked(valid).unwrap_or((bytes, &[]));
        out.push_str(core::str::from_utf8(good).unwrap_or_default());
        bytes = match rest {
            [] => return out,
            [0xed, 0xa0..=0xbf, 0x80..=0xbf, rest @ ..] | [_, rest @ ..] => rest,
        };
        out.push(char::REPLACEMENT_CHARACTER);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_by_their_keys() {
        let raw = document(r#" {"a": 1, "b": null, "c": {"a": 2}, "d": [{"deep": [[]]}]} "#).unwrap();
        let [a, b, c, x] = fields(raw, ["a", "b", "c", "x"]).unwrap();
        assert_eq!(a.and_then(number), Some(1.0));
        assert!(b.is_some() && is_absent(b) && is_absent(x));
        assert_eq!(c.map(|c| c.get()), Some(r#"{"a": 2}"#));
        assert!(fields(document(r#"{"a":1,"a":1}"#).unwrap(), ["a"]).is_none());
        assert!(fields(document(r#"{"a":1,"a":1}"#).unwrap(), ["b"]).is_some());
        assert!(fields(document("[1]").unwrap(), ["a"]).is_none());
        for none in ["", "{", "{} {}", "[1,]", "{\"a\":01}", "nul"] {
            assert!(document(none).is_none(), "{none}");
        }
    }

    #[test]
    fn lists_end_where_they_are_told_to() {
        let mut seen = Vec::new();
        let raw = document("[1, \"two\", [3], 4]").unwrap();
        items(raw, &mut |item| {
            seen.push(item.get());
            seen.len() < 3
        })
        .unwrap();
        assert_eq!(seen, ["1", "\"two\"", "[3]"]);
        assert!(items(document("{}").unwrap(), &mut |_| true).is_none());
    }

    #[test]
    fn texts() {
        let of = |json: &str| document(json).and_then(|raw| text(raw).map(Cow::into_owned));
        assert_eq!(of(r#""a\n\u4f60\ud83d\ude00""#).as_deref(), Some("a\n你😀"));
        assert_eq!(of(r#""x\ud83dy""#).as_deref(), Some("x\u{fffd}y"));
        assert_eq!(of(r#""\ude00\ud83d""#).as_deref(), Some("\u{fffd}\u{fffd}"));
        for none in ["1", "null", "[\"a\"]", "[97]", "{}", "true"] {
            assert_eq!(of(none), None, "{none}");
        }
        let bytes = |json: &str| literal(document(json).unwrap()).unwrap().bytes().to_owned();
        assert_ne!(bytes(r#""\ud800""#), bytes(r#""\udc00""#));
        assert_ne!(bytes(r#""\ud800""#), bytes("\"\u{fffd}\""));
        assert_eq!(bytes(r#""\ud83d\ude00""#), "😀".as_bytes());
        let raw = document("\"plain\"").unwrap();
        assert!(matches!(text(raw), Some(Cow::Borrowed("plain"))));
    }

    #[test]
    fn numbers() {
        let of = |json: &str| document(json).and_then(number);
        assert_eq!(of("1700000000.123456"), Some(1_700_000_000.123_456));
        assert_eq!(of("-2e3"), Some(-2000.0));
        for none in ["\"1\"", "null", "[1]", "true", "{}"] {
            assert_eq!(of(none), None, "{none}");
        }
    }

    #[test]
    fn depth_costs_no_stack() {
        let deep = format!("{{\"a\":{}1{},\"b\":2}}", "[".repeat(1_000_000), "]".repeat(1_000_000));
        let [b] = fields(document(&deep).unwrap(), ["b"]).unwrap();
        assert_eq!(b.and_then(number), Some(2.0));
    }
}
