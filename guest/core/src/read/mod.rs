//! Reading: what a person or a tool is shown of files that are there.
//!
//! - [`lines`] are the lines of a file that are shown at all: of an archive those of whole frames, without metadata;
//! - [`select`] takes from a file its first lines, a section, or a block with the footnotes it cites;
//! - [`Grep`] finds lines, by text or by a regular expression, in time in proportion to what it looks through;
//! - [`timeline_of`] is what a topic says of days;
//! - [`listed`] and [`structure`] list the blocks of topics;
//! - [`resolve`] and [`render`] are for other programs that keep references to blocks;
//! - [`why`] says what a claim rests on.
//!
//! Pure: texts in, values out. What a caller may see is decided before: nothing here asks who is asking, and whoever hands in
//! a text hands it to the reader. Knows topics and archives; must not know where files are, or how an answer travels.

mod fault;
mod grep;
mod lines;
mod references;
mod section;
mod structure;
mod timeline;
mod why;

pub use fault::ReadFault;
pub use grep::{Found, Grep, GrepLimits, Matches, Pattern, PatternOptions};
pub use lines::lines;
pub use references::{BlockReference, REFERENCES_MAX, ReferencedBlock, referable, render, resolve};
pub use section::{Excerpt, Mode, Selection, part, select};
pub use structure::{ListedBlock, listed, structure};
pub use timeline::{TimelineEntry, sort_timeline, timeline_of};
pub use why::{Because, Evidence, LinkedFrom, Records, Why, why};

/// The beginning of a text, and whether that is not all of it. Counts characters.
fn first_chars(text: &str, most: usize) -> (&str, bool) {
    match text.char_indices().nth(most) {
        Some((end, _)) => (text.get(..end).unwrap_or_default(), true),
        None => (text, false),
    }
}
