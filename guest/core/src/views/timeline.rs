//! `timeline/`: a file for each time that something is evidence of.

use super::core_view::has_scheme;
use crate::ids::EvidenceTime;
use crate::topic::{Dated, Unit};
use std::collections::BTreeMap;

/// The rows of times, each file not yet put together: whoever knows which times changed asks for those alone.
#[derive(Clone, Debug, Default)]
pub struct Timeline {
    days: BTreeMap<EvidenceTime, Vec<Row>>,
}

/// What a unit says of a time.
#[derive(Clone, Debug)]
struct Row {
    /// The first source it rests on, by name; rows go by that, and then by the unit's id.
    source: Option<String>,
    id: String,
    /// Its line.
    text: String,
}

impl Row {
    fn new(unit: &Unit, piece: Dated<'_>) -> Self {
        let up = "../".repeat(depth(piece.when));
        let (topic, id) = (unit.topic.as_str(), unit.id.as_str());
        let mark = if id.starts_with("mem_") { "" } else { "^" };
        let mut text = format!("\n{} [Topic]({up}{topic}#{mark}{id})", piece.quote);
        for (label, link) in piece.labels.iter().zip(piece.links) {
            text.push_str(&format!(" [{label}]({})", rebased(unit, link, &up)));
        }
        text.push('\n');
        Self { source: piece.refs.first().map(ToString::to_string), id: id.to_owned(), text }
    }
}

impl Timeline {
    /// Of these units, all of their times. Evidence without a time is in no file.
    pub fn of<'u>(units: impl IntoIterator<Item = &'u Unit>) -> Self {
        let mut timeline = Self::default();
        units.into_iter().for_each(|unit| timeline.add(unit, &|_| true));
        timeline
    }

    /// Adds what a unit says of the times that are wanted. Units come in their order.
    pub fn add(&mut self, unit: &Unit, wanted: &dyn Fn(EvidenceTime) -> bool) {
        for piece in unit.dated().filter(|piece| wanted(piece.when)) {
            self.days.entry(piece.when).or_default().push(Row::new(unit, piece));
        }
    }

    /// Adds a row that a file has, as it stands there.
    pub(super) fn keep(&mut self, when: EvidenceTime, source: Option<&str>, id: &str, text: &str) {
        let row = Row { source: source.map(str::to_owned), id: id.to_owned(), text: format!("\n{text}\n") };
        self.days.entry(when).or_default().push(row);
    }

    /// The times there are files for.
    pub fn times(&self) -> impl Iterator<Item = EvidenceTime> {
        self.days.keys().copied()
    }

    /// Path and content of one time's file; none if nothing is evidence of that time.
    pub fn file(&self, when: EvidenceTime) -> Option<(String, String)> {
        let mut rows: Vec<&Row> = self.days.get(&when)?.iter().collect();
        // Stable: evidence of one unit that names the same source first keeps its order.
        rows.sort_by(|a, b| (&a.source, &a.id).cmp(&(&b.source, &b.id)));
        let path = timeline_path(when)?;
        let mut out = format!("# {when}\n");
        rows.iter().for_each(|row| out.push_str(&row.text));
        Some((path, out))
    }

    /// All files, by path.
    pub fn files(&self) -> BTreeMap<String, String> {
        self.times().filter_map(|when| self.file(when)).collect()
    }
}

/// The rows of a time's file, without the empty lines between them; none if it is no such file. No row has an empty line in it, so
/// a file that has as many rows as expected has those.
pub(super) fn rows_of(file: &str, when: EvidenceTime) -> Option<Vec<&str>> {
    let rows = file.strip_prefix("# ")?.strip_prefix(&*when.to_string())?.strip_prefix('\n')?;
    let rows = rows.strip_prefix('\n')?.strip_suffix('\n')?;
    Some(rows.split("\n\n").collect())
}

/// How many directories the file of a time lies below the workspace.
fn depth(when: EvidenceTime) -> usize {
    timeline_path(when).map_or(0, |path| path.matches('/').count())
}

/// Where the file of a time lies: `timeline/2026/01/02.md`, `timeline/2026/01.md`, `timeline/2026.md`.
pub(super) fn timeline_path(when: EvidenceTime) -> Option<String> {
    (when != EvidenceTime::Undated).then(|| format!("timeline/{}.md", when.to_string().replace('-', "/")))
}

/// A link of a topic as it reads from a timeline file, `up` leading from there to the workspace. What does not lead to a
/// file of the workspace stays as it is.
fn rebased(unit: &Unit, link: &str, up: &str) -> String {
    let (path, fragment) = link.split_at(link.find('#').unwrap_or(link.len()));
    match unit.topic.join(path).filter(|_| !path.is_empty() && !has_scheme(path)) {
        Some(within) => format!("{up}{within}{fragment}"),
        None => link.to_owned(),
    }
}
