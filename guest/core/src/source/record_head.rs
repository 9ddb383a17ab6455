//! The first line of a record: `[time] label: text`.
//!
//! Both forms of archives have it. Knows one line. Must not know whether what stands in it is to be believed.

use crate::text::is_whitespace;
use core::ops::Range;
use memchr::memchr;

/// What stands before a record's text. Positions count from the line's first byte.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RecordHead {
    /// Between the brackets.
    pub(super) time: Range<usize>,
    /// Before the first `": "`.
    pub(super) label: Range<usize>,
    /// Of the text: behind that `": "`.
    pub(super) end: usize,
}

/// Why there is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NoHead {
    /// So far so good, but the text ends before the head does.
    More,
    /// No line that begins so is a record's first.
    Bad,
}

/// Reads it off the line that `text` is; or, if not `whole`, off the beginning of that line.
pub(super) fn record_head(text: &str, whole: bool) -> Result<RecordHead, NoHead> {
    // What is missing may still come, unless the line is over.
    let missing = if whole { NoHead::Bad } else { NoHead::More };
    let bytes = text.as_bytes();
    match bytes.first() {
        Some(b'[') => {}
        Some(_) => return Err(NoHead::Bad),
        None => return Err(missing),
    }
    let close = memchr(b']', bytes).ok_or(missing)?;
    let behind = text.get(close + 1..).unwrap_or_default();
    let label_at = behind.find(|c| !is_whitespace(c)).map(|at| close + 1 + at).ok_or(missing)?;
    if label_at == close + 1 {
        return Err(NoHead::Bad);
    }
    let label_text = text.get(label_at..).unwrap_or_default();
    // The label has at least one character, and is the shortest that a colon and a space can end.
    let first = label_text.chars().next().map_or(0, char::len_utf8);
    let label = match find_colon(label_text.as_bytes(), first) {
        Some(end) => label_at..label_at + end,
        None if !whole => return Err(NoHead::More),
        // Only if no label can be found so, white space may be one: `[t]  : text`.
        None if label_text.starts_with(": ") => {
            let space = text.get(close + 1..label_at).and_then(|gap| gap.chars().next_back());
            let start = label_at - space.map_or(0, char::len_utf8);
            if start == close + 1 {
                return Err(NoHead::Bad);
            }
            start..label_at
        }
        None => return Err(NoHead::Bad),
    };
    Ok(RecordHead { time: 1..close, end: label.end + 2, label })
}

/// Where, from `from` on, `": "` stands.
fn find_colon(bytes: &[u8], from: usize) -> Option<usize> {
    let mut at = from;
    loop {
        at += memchr(b':', bytes.get(at..)?)?;
        if bytes.get(at + 1) == Some(&b' ') {
            return Some(at);
        }
        at += 1;
    }
}
