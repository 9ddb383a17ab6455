//! From cursors to marks: what an older form of the other program had written is marked, and nothing else.
//!
//! That program kept a cursor a session in `runtime.json`. It is not believed: what an archive holds was written, as far as it
//! holds a session from its beginning without a gap. The cursors go once every session's marks are made; until then the
//! same comes out each time. Knows archives and sessions as they are read.

use super::dag::{at, set};
use super::session::Session;
use crate::ids::SourceId;
use crate::source::FrameRef;
use crate::text::decode;
use crate::views::RuntimeState;
use std::collections::BTreeSet;

/// The provider of sessions that had cursors.
const PROVIDER: &str = "openprogram";

/// The member of `runtime.json`.
const CURSORS: &str = "cursors";

/// Whether a `runtime.json` has cursors: then sessions are to be marked by what archives hold.
#[must_use]
pub fn has_cursors(runtime: &str) -> bool {
    RuntimeState::read(runtime).other().contains_key(CURSORS)
}

/// The same file without them: what is written once every session's marks are made.
#[must_use]
pub fn without_cursors(runtime: &str) -> String {
    RuntimeState::read(runtime).write()
}

/// What archives hold of sessions that had cursors.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CursorCandidates {
    source_ids: BTreeSet<String>,
}

impl CursorCandidates {
    /// So many bytes from the beginning of an older archive say all that matters of it: its heading and one header.
    pub const OLDER_BYTES: usize = 16 << 10;

    /// Takes note of a frame, as a scanner that knows the archive's place hands it on: those of the valid part of a file.
    pub fn see_frame(&mut self, frame: &FrameRef<'_>) {
        if SourceId::parse(frame.id).is_ok_and(|id| id.provider() == PROVIDER) {
            self.source_ids.insert(frame.id.to_owned());
        }
    }

    /// Takes note of an older archive, by its first bytes: of its first header, if nothing but the heading that such archives
    /// have comes before it. A header further down may be part of what somebody said.
    pub fn see_older(&mut self, path: &str, beginning: &[u8]) {
        self.source_ids.extend(first_header(path, beginning));
    }
}

fn first_header(path: &str, beginning: &[u8]) -> Option<String> {
    let stem = path.strip_prefix("sources/")?.strip_prefix(PROVIDER)?.strip_prefix('/')?.strip_suffix(".md")?;
    let thread = decode(stem).filter(|_| !stem.contains('/'))?;
    // What is cut off at the end does not matter; lines end in LF or CRLF.
    let text = String::from_utf8_lossy(beginning);
    let mut lines = text.split('\n').map(|line| line.strip_suffix('\r').unwrap_or(line));
    if lines.next()? != format!("# {thread}") || !lines.next()?.is_empty() {
        return None;
    }
    let anchor = lines.next()?.strip_prefix("<a id=\"")?.strip_suffix("\"></a>")?;
    let id = lines.next()?.strip_prefix("<!-- source-id:")?.strip_suffix(" -->")?;
    let source = SourceId::parse(id).ok()?;
    let is_its_own = source.provider() == PROVIDER && source.thread() == thread && source.legacy_path() == path;
    (is_its_own && source.anchor() == anchor).then(|| id.to_owned())
}

impl Session {
    /// The nodes that were written when there were cursors, in order: of every branch the leading turns that archives hold,
    /// up to the first they do not. Costs what there are nodes.
    #[must_use]
    pub fn migrated(&self, candidates: &CursorCandidates) -> Vec<&str> {
        let mut is_whole = vec![false; self.nodes.len()];
        let mut written = vec![false; self.nodes.len()];
        for place in self.dag.order() {
            let is_so_far = self.dag.above(place).is_none_or(|above| at(&is_whole, above) == Some(true));
            let held = self.turn_at(place).map(|turn| candidates.source_ids.contains(&turn.source_id()));
            set(&mut is_whole, place, is_so_far && held != Some(false));
            set(&mut written, place, is_so_far && held == Some(true));
        }
        self.nodes.iter().zip(written).filter(|(_, written)| *written).map(|(node, _)| node.id.as_str()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(path: &str, text: &str) -> Option<String> {
        first_header(path, text.as_bytes())
    }

    #[test]
    fn only_the_first_header_below_its_own_heading() {
        let id = "openprogram/a b/m1";
        let anchor = SourceId::parse(id).expect("an id").anchor();
        let text = format!("# a b\n\n<a id=\"{anchor}\"></a>\n<!-- source-id:{id} -->\n[x] user: y\n");
        let path = "sources/openprogram/a%20b.md";
        assert_eq!(header(path, &text).as_deref(), Some(id));
        assert_eq!(header(path, &text.replace('\n', "\r\n")).as_deref(), Some(id));
        for (path, text) in [
            ("sources/openprogram/other.md", text.clone()),
            ("sources/other/a%20b.md", text.clone()),
            ("sources/openprogram/_v2/a%20b.md", text.clone()),
            (path, format!("\n{text}")),
            (path, text.replace("\n\n", "\n")),
            (path, text.replace("\n\n", "\n\nx\n")),
            (path, text.replace("m1 -->", "m2 -->")),
            (path, text.replace("openprogram/a b/", "openprogram/a/")),
            (path, String::new()),
        ] {
            assert_eq!(header(path, &text), None, "{path}: {text}");
        }
    }

    #[test]
    fn cursors() {
        for none in ["", "[]", "{}", "{\"cursor\": {}}", "{\"local_batches\": {\"cursors\": 1}}", "{"] {
            assert!(!has_cursors(none), "{none}");
        }
        for some in ["{\"cursors\": {}}", "{\"cursors\": null}", "{\"cursors\": {\"s\": 1}, \"local_tokens\": 17}"] {
            assert!(has_cursors(some), "{some}");
            assert!(!has_cursors(&without_cursors(some)));
        }
    }
}
