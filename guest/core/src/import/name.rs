//! Ids of an export as parts of source ids.
//!
//! Knows what a part may hold and how long it may be. No two ids become one, and the same id becomes the same part on every
//! machine and every time, so that what was imported is known again. Every id of an export becomes a part where it is read.

use super::Part;
use super::value::{Raw, literal};
use crate::digest::Digest;
use crate::ids::SourceId;
use crate::text::{encode_path_bytes, encode_path_part};
use std::borrow::Cow;

/// Greatest length of a message's part in bytes; what is longer is named by its digest.
const MESSAGE_BYTES_MAX: usize = 1024;

/// Greatest length of a provider in a path, percent-encoded: it names a directory.
const PROVIDER_BYTES_MAX: usize = 255;

/// Greatest length of a thread in a path, percent-encoded. With `.jsonl` it is a name that file systems take.
const THREAD_BYTES_MAX: usize = 249;

/// Begins a part that is not the id itself.
const MARK: char = '%';

/// The part of a source id for an id of an export. None where it is no text, or empty: it names nothing.
pub(super) fn id_part(raw: Option<Raw<'_>>, of: Part) -> Option<String> {
    part(literal(raw?)?.bytes(), of).map(Cow::into_owned)
}

/// The part of a source id for `id`: the id as it is, if it can stand there and does not begin with `%`; otherwise `%` and
/// the id percent-encoded; and if that is too long, `%sha256=` and the digest of the id. An encoded id has no `=`, and is that
/// of its bytes, so no two ids have one part. None for an empty id: it names nothing.
pub(super) fn part(id: &[u8], part: Part) -> Option<Cow<'_, str>> {
    if id.is_empty() {
        return None;
    }
    let text = core::str::from_utf8(id).ok();
    if let Some(text) = text.filter(|text| !text.starts_with(MARK) && fits(text, part)) {
        return Some(Cow::Borrowed(text));
    }
    let encoded = format!("{MARK}{}", encode_path_bytes(id));
    Some(Cow::Owned(if fits(&encoded, part) { encoded } else { format!("{MARK}sha256={}", Digest::of(id).hex()) }))
}

/// As the thread's part of a source id.
pub(crate) fn thread_part(id: &str) -> Option<Cow<'_, str>> {
    part(id.as_bytes(), Part::Thread)
}

/// As the message's part of a source id.
pub(crate) fn message_part(id: &str) -> Option<Cow<'_, str>> {
    part(id.as_bytes(), Part::Message)
}

/// Whether an id can be that part as it is.
pub(super) fn fits(id: &str, part: Part) -> bool {
    let stands = |text: &str| SourceId::for_writing(text).is_ok();
    match part {
        Part::Provider => {
            !id.contains('/') && stands(&format!("{id}/t/m")) && encode_path_part(id).len() <= PROVIDER_BYTES_MAX
        }
        Part::Thread => {
            !id.contains('/') && stands(&format!("p/{id}/m")) && encode_path_part(id).len() <= THREAD_BYTES_MAX
        }
        Part::Message => id.len() <= MESSAGE_BYTES_MAX && stands(&format!("p/t/{id}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(id: &str, part_: Part) -> String {
        part(id.as_bytes(), part_).unwrap().into_owned()
    }

    #[test]
    fn ids_that_can_stand_are_themselves() {
        for id in ["9c1f6a0e-1111-4222-8333-944445555666", "m 1", "你", "a%2Fb", "..", "."] {
            assert_eq!(of(id, Part::Thread), id);
            assert_eq!(of(id, Part::Message), id);
        }
        assert_eq!(of("a/b", Part::Message), "a/b");
        assert_eq!(of(&"m".repeat(1024), Part::Message).len(), 1024);
    }

    #[test]
    fn others_are_encoded_and_no_two_are_one() {
        assert_eq!(of("a/b", Part::Thread), "%a%2Fb");
        assert_eq!(of("%a%2Fb", Part::Thread), "%%25a%252Fb");
        assert_eq!(of("[x]\n", Part::Message), "%%5Bx%5D%0A");
        assert_eq!(of("..", Part::Provider), "%..");
        assert_eq!(part(b"", Part::Message), None);
        // Newer than Unicode 14, which other programs read with.
        assert_eq!(of("\u{1fae8}", Part::Message), "%%F0%9F%AB%A8");
        let long = "t".repeat(250);
        assert_eq!(of(&long, Part::Thread), format!("%sha256={}", Digest::of(long.as_bytes()).hex()));
        assert_eq!(of(&format!("{long}!"), Part::Thread).len(), 8 + 64);
        // A thread that is short in itself and long in a path.
        assert!(of(&"你".repeat(30), Part::Thread).starts_with("%sha256="));
        assert!(of(&"你".repeat(27), Part::Thread).starts_with('你'));
    }

    #[test]
    fn halves_of_surrogate_pairs_stay_apart() {
        use crate::import::value::document;
        let of = |json: &str, of: Part| id_part(document(json), of).unwrap();
        for part_ in [Part::Provider, Part::Thread, Part::Message] {
            assert_eq!(of(r#""a\ud800""#, part_), "%a%ED%A0%80");
            assert_eq!(of(r#""a\udc00""#, part_), "%a%ED%B0%80");
            assert_eq!(of(r#""a\ufffd""#, part_), "a\u{fffd}");
            assert_eq!(of(r#""%a%ED%A0%80""#, part_), "%%25a%25ED%25A0%2580");
        }
        let long = |end: &str| of(&format!("\"{}{end}\"", "x".repeat(2000)), Part::Message);
        assert!(long("\\ud800").starts_with("%sha256=") && long("\\ud800") != long("\\udc00"));
        assert_eq!((id_part(document("7"), Part::Thread), id_part(None, Part::Thread)), (None, None));
    }

    #[test]
    fn every_part_stands_in_an_id() {
        for id in
            ["a", "/", "//", "%", "%sha256=", "\0", "<!-- -->", "]", "\u{202e}", &"x/".repeat(3000), &"%".repeat(500)]
        {
            for part_ in [Part::Provider, Part::Thread, Part::Message] {
                let part_text = of(id, part_);
                assert!(fits(&part_text, part_), "{id:?} {part_:?} {part_text}");
                assert_eq!(of(&part_text, part_) == part_text, !part_text.starts_with(MARK));
            }
        }
    }
}
