//! `timeline/`: a file for each time that something is evidence of.

use super::core_view::has_scheme;
use crate::ids::{EvidenceTime, SourceRef};
use crate::topic::{Evidence, Unit};
use std::collections::BTreeMap;

/// The rows of every time, not yet written: whoever knows which times changed writes those alone.
#[derive(Clone, Debug, Default)]
pub struct Timeline<'u> {
    days: BTreeMap<EvidenceTime, Vec<Row<'u>>>,
}

/// What a unit says of a time: the text that speaks for it, and what that rests on.
#[derive(Clone, Copy, Debug)]
struct Row<'u> {
    unit: &'u Unit,
    quote: &'u str,
    refs: &'u [SourceRef],
    labels: &'u [String],
    links: &'u [String],
}

impl<'u> Row<'u> {
    /// Those of a unit, each with its time. A claim of the older kind is one piece, all of it of one time.
    fn of(unit: &'u Unit) -> impl Iterator<Item = (EvidenceTime, Self)> {
        let older = unit.evidence.is_empty().then_some(unit.when).flatten().map(|when| {
            let (refs, labels, links) = (&unit.refs, &unit.labels, &unit.links);
            (when, Self { unit, quote: &unit.content, refs, labels, links })
        });
        let piece = move |evidence: &'u Evidence| {
            let Evidence { quote, refs, labels, links, .. } = evidence;
            Some((evidence.when?, Self { unit, quote, refs, labels, links }))
        };
        unit.evidence.iter().filter_map(piece).chain(older)
    }
}

impl<'u> Timeline<'u> {
    /// Of these units. Evidence without a time is in no file.
    pub fn of(units: impl IntoIterator<Item = &'u Unit>) -> Self {
        let mut days: BTreeMap<EvidenceTime, Vec<_>> = BTreeMap::new();
        for (when, row) in units.into_iter().flat_map(Row::of) {
            days.entry(when).or_default().push(row);
        }
        for rows in days.values_mut() {
            // Stable: evidence of one unit that names the same source first keeps its order.
            rows.sort_by_cached_key(|row| (row.refs.first().map(ToString::to_string), row.unit.id.as_str()));
        }
        Self { days }
    }

    /// The times there are files for.
    pub fn times(&self) -> impl Iterator<Item = EvidenceTime> {
        self.days.keys().copied()
    }

    /// Path and content of one time's file; none if nothing is evidence of that time.
    pub fn file(&self, when: EvidenceTime) -> Option<(String, String)> {
        let rows = self.days.get(&when)?;
        let path = path_of(when)?;
        let up = "../".repeat(path.matches('/').count());
        let mut out = format!("# {when}\n");
        for row in rows {
            let (topic, id) = (row.unit.topic.as_str(), row.unit.id.as_str());
            let mark = if id.starts_with("mem_") { "" } else { "^" };
            out.push_str(&format!("\n{} [Topic]({up}{topic}#{mark}{id})", row.quote));
            for (label, link) in row.labels.iter().zip(row.links) {
                out.push_str(&format!(" [{label}]({})", rebased(row.unit, link, &up)));
            }
            out.push('\n');
        }
        Some((path, out))
    }

    /// All files, by path.
    pub fn files(&self) -> BTreeMap<String, String> {
        self.times().filter_map(|when| self.file(when)).collect()
    }
}

/// Where the file of a time lies: `timeline/2026/01/02.md`, `timeline/2026/01.md`, `timeline/2026.md`.
fn path_of(when: EvidenceTime) -> Option<String> {
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
