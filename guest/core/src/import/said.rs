//! What was said in one message: its texts and the names of what was attached.
//!
//! Texts are joined by LF, each byte for byte. What was attached is a line with its name at the end, and nothing of what is in
//! it: a memory of words keeps that there was a file, not the file.

use super::value::{Raw, fields, items, name, text};
use crate::text::{collapse_whitespace, is_printable_writing, is_whitespace};
use crate::time::{Instant, Zone};

/// So much of a name is shown.
const NAME_CHARS: usize = 200;

/// So many names are shown; nobody attaches more, but a file can say anything.
const NAMES_MAX: usize = 1000;

/// Collects a message.
#[derive(Default)]
pub(super) struct Said {
    text: String,
    any: bool,
    attached: Vec<String>,
}

impl Said {
    /// A text. One that is empty says nothing.
    pub(super) fn text(&mut self, text: &str) {
        if text.is_empty() {
            return;
        }
        if self.any {
            self.text.push('\n');
        }
        self.any = true;
        self.text.push_str(text);
    }

    /// Something was attached, by this name or of this kind. The same name counts once.
    pub(super) fn attached(&mut self, name: &str) {
        if self.attached.len() == NAMES_MAX {
            return;
        }
        let shown = collapse_whitespace(name);
        let shown: String = shown.chars().filter(|c| !c.is_control()).take(NAME_CHARS).collect();
        if !shown.is_empty() && !self.attached.contains(&shown) {
            self.attached.push(shown);
        }
    }

    /// The whole; none if nothing but white space was said and nothing attached.
    pub(super) fn whole(self) -> Option<String> {
        let Self { mut text, attached, .. } = self;
        if text.chars().all(is_whitespace) {
            text.clear();
        }
        for name in attached {
            if !text.is_empty() {
                text.push('\n');
            }
            text.push_str("[attachment: ");
            text.push_str(&name);
            text.push(']');
        }
        (!text.is_empty()).then_some(text)
    }
}

/// The names in a list of attachments, under one of these keys each.
pub(super) fn attachments(said: &mut Said, list: Option<Raw<'_>>, keys: [&str; 2]) {
    let Some(list) = list else { return };
    items(list, &mut |item| {
        let found = fields(item, keys).unwrap_or_default();
        match found.into_iter().find_map(name) {
            Some(name) => said.attached(&name),
            None => said.attached("file"),
        }
        true
    });
}

/// A time of an export that has instants: as it is written everywhere in UTC. One that is no instant stays as it stands, if it
/// can stand in a record.
pub(super) fn instant(raw: Option<Raw<'_>>) -> Option<String> {
    written(raw, &Zone::utc())
}

/// The same in a zone.
pub(super) fn written(raw: Option<Raw<'_>>, zone: &Zone) -> Option<String> {
    let raw = raw?;
    match text(raw) {
        Some(text) => match Instant::parse(&text) {
            Some(instant) => Some(instant.iso(zone)),
            None => Some(text.into_owned()).filter(|text| !text.is_empty() && text.chars().all(stands_in_time)),
        },
        None => Instant::from_seconds(super::value::number(raw)?).map(|instant| instant.iso(zone)),
    }
}

fn stands_in_time(c: char) -> bool {
    is_printable_writing(c) && !matches!(c, '[' | ']')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::import::value::document;

    #[test]
    fn texts_and_names() {
        let mut said = Said::default();
        said.text(" a\r\n");
        said.text("");
        said.text("b");
        said.attached(" plan\n[x].pdf\u{7} ");
        said.attached("plan [x].pdf");
        assert_eq!(said.whole().as_deref(), Some(" a\r\n\nb\n[attachment: plan [x].pdf]"));
        let mut said = Said::default();
        said.text(" \n\u{3000}");
        assert_eq!(said.whole(), None);
        let mut said = Said::default();
        said.text("\n");
        said.attached("a.png");
        assert_eq!(said.whole().as_deref(), Some("[attachment: a.png]"));
        assert_eq!(Said::default().whole(), None);
    }

    #[test]
    fn times() {
        let of = |json: &str| instant(document(json));
        assert_eq!(of("1700000000").as_deref(), Some("2023-11-14T22:13:20+00:00"));
        assert_eq!(of("\"2023-11-14T23:13:20.5+01:00\"").as_deref(), Some("2023-11-14T22:13:20.500000+00:00"));
        assert_eq!(of("\"last May\"").as_deref(), Some("last May"));
        for none in ["null", "\"\"", "{}", "1e300", "true", "\"[now]\"", "\"a\\nb\""] {
            assert_eq!(of(none), None, "{none}");
        }
    }
}
