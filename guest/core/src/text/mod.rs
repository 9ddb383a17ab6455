//! Characters: what counts as white space or printable, how names and texts are escaped, where lines and UTF-8 end, what is a link.
//!
//! Knows code points and bytes; must not know what a source, a record or a speaker is.

mod chars;
mod excerpt;
mod identity;
mod json;
mod lines;
mod link;
mod markdown;
mod percent;
mod plain;
mod unicode14;
mod utf8;

pub use chars::{caseless, collapse_whitespace, is_printable_reading, is_printable_writing, is_whitespace};
pub use excerpt::{EXCERPT_BYTES, excerpt};
pub use identity::{IDENTITY_CHARS, identity_part};
pub use json::{json_line, json_string};
pub use lines::{Line, Lines};
pub use link::{Link, Links};
pub use markdown::plain;
pub use percent::{decode, encode_path_bytes, encode_path_part, encode_speaker, is_canonical_speaker};
pub use plain::clean;
pub use utf8::{InvalidUtf8, Utf8Pieces};
