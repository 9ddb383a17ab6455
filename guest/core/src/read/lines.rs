//! Which lines of a file are shown.

use crate::ids::{Location, is_v2_path};
use crate::source::{FrameRef, Limits, Scanner};

/// The lines of the file at `path` that are shown, each with its number in the file, from 1. Of a v2 archive those of whole
/// frames without their metadata; of anything else all, and a line ends at LF alone.
pub fn lines<'t>(path: &str, text: &'t str, limits: &Limits) -> Vec<(u64, &'t str)> {
    if !is_v2_path(path) {
        return (1..).zip(text.lines_at_lf()).collect();
    }
    let mut shown = Vec::new();
    let mut sink = |frame: &FrameRef<'_>| {
        let bounds = (usize::try_from(frame.offset).ok(), usize::try_from(frame.end).ok());
        let part = bounds.0.zip(bounds.1).and_then(|(start, end)| text.get(start..end)).unwrap_or_default();
        let numbered = (frame.anchor_line..).zip(part.lines_at_lf());
        shown.extend(numbered.filter(|(number, _)| Some(*number) != frame.meta_line));
    };
    let mut scanner = Scanner::new(Some(Location::of_path(path)), limits);
    scanner.push_text(text, &mut sink);
    scanner.finish(&mut sink);
    shown
}

trait LinesAtLf {
    /// What stands between LF bytes; behind the last there is no line.
    fn lines_at_lf(&self) -> impl Iterator<Item = &str>;
}

impl LinesAtLf for str {
    fn lines_at_lf(&self) -> impl Iterator<Item = &str> {
        let text = self.strip_suffix('\n').unwrap_or(self);
        (!self.is_empty()).then(|| text.split('\n')).into_iter().flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_file() {
        let shown = |text: &'static str| lines("topics/a.md", text, &Limits::default());
        assert_eq!(shown("a\r\n\nb\u{85}c"), [(1, "a\r"), (2, ""), (3, "b\u{85}c")]);
        assert_eq!(shown("a\n"), [(1, "a")]);
        assert_eq!(shown("\n"), [(1, "")]);
        assert_eq!(shown(""), []);
    }
}
