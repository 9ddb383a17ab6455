//! JSON as the views are written: a space behind each comma and colon, nothing escaped that JSON lets stand.

use std::borrow::Cow;

/// A value to be written. Views have no others.
#[derive(Clone, Debug)]
pub(super) enum Json<'a> {
    Null,
    Number(u64),
    Text(Cow<'a, str>),
    List(Vec<Self>),
}

impl<'a> Json<'a> {
    pub(super) fn text(text: impl Into<Cow<'a, str>>) -> Self {
        Self::Text(text.into())
    }

    /// Nothing or a text.
    pub(super) fn optional(text: Option<impl Into<Cow<'a, str>>>) -> Self {
        text.map_or(Self::Null, Self::text)
    }

    pub(super) fn texts<T: Into<Cow<'a, str>>>(texts: impl IntoIterator<Item = T>) -> Self {
        Self::List(texts.into_iter().map(Self::text).collect())
    }

    fn write(&self, out: &mut String) {
        match self {
            Self::Null => out.push_str("null"),
            Self::Number(number) => out.push_str(&number.to_string()),
            Self::Text(text) => quote(text, out),
            Self::List(values) => {
                out.push('[');
                separated(values, out, Self::write);
                out.push(']');
            }
        }
    }
}

/// Adds `{"key": value, …}`, in the order given.
pub(super) fn object<'k, 'v>(members: impl IntoIterator<Item = (&'k str, Json<'v>)>, out: &mut String) {
    out.push('{');
    separated(members, out, |(key, value), out| {
        quote(key, out);
        out.push_str(": ");
        value.write(out);
    });
    out.push('}');
}

fn separated<T>(values: impl IntoIterator<Item = T>, out: &mut String, write: impl Fn(T, &mut String)) {
    for (number, value) in values.into_iter().enumerate() {
        if number > 0 {
            out.push_str(", ");
        }
        write(value, out);
    }
}

/// Adds a text in quotation marks. Escaped are the quotation mark, the backslash and everything before the space, where
/// there is one by its short name.
pub(super) fn quote(text: &str, out: &mut String) {
    out.push('"');
    let mut rest = text;
    while let Some(at) = rest.bytes().position(|byte| byte < b' ' || matches!(byte, b'"' | b'\\')) {
        // What is escaped is ASCII, so both sides of it are text.
        let (plain, escaped) = rest.split_at(at);
        out.push_str(plain);
        let mut chars = escaped.chars();
        match chars.next() {
            Some('\n') => out.push_str("\\n"),
            Some('\r') => out.push_str("\\r"),
            Some('\t') => out.push_str("\\t"),
            Some('\u{8}') => out.push_str("\\b"),
            Some('\u{c}') => out.push_str("\\f"),
            Some(c @ ('"' | '\\')) => out.extend(['\\', c]),
            Some(c) => out.push_str(&format!("\\u{:04x}", u32::from(c))),
            None => {}
        }
        rest = chars.as_str();
    }
    out.push_str(rest);
    out.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quoted_text_is_what_a_json_parser_reads() {
        let text: String = ('\0'..='\u{ff}').chain(['\u{2028}', '块', '🙂']).collect();
        let mut quoted = String::new();
        quote(&text, &mut quoted);
        assert_eq!(serde_json::from_str::<String>(&quoted).expect("JSON"), text);
        assert_eq!(quoted, serde_json::to_string(&text).expect("JSON"));
    }

    #[test]
    fn objects() {
        let mut out = String::new();
        let members =
            [("a", Json::Null), ("b", Json::texts(["x", "y"])), ("c", Json::Number(7)), ("d", Json::List(vec![]))];
        object(members, &mut out);
        assert_eq!(out, r#"{"a": null, "b": ["x", "y"], "c": 7, "d": []}"#);
    }
}
