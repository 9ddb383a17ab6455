//! Claims by the time of their evidence.

use crate::ids::{EvidenceTime, Period};
use crate::topic::Check;

/// A claim at a time that something is evidence of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TimelineEntry {
    /// When it was.
    pub time: EvidenceTime,
    /// What the evidence is cited for.
    pub text: String,
    /// The block's id.
    pub block: String,
    /// Its topic.
    pub path: String,
    /// The headings it stands under, outermost first.
    pub headings: Vec<String>,
    /// What it rests on, as it is named.
    pub evidence: Vec<String>,
}

/// What a topic says of days within a period, in the order of its blocks. What is undated is not in it; ids that were merged into
/// another are not repeated.
#[must_use]
pub fn timeline_of(topic: &Check<'_>, period: &Period) -> Vec<TimelineEntry> {
    let mut entries = Vec::new();
    for block in topic.blocks() {
        // A block has a unit for each of its ids; its own comes last.
        let Some(unit) = block.units(0).into_iter().next_back() else { continue };
        for dated in unit.dated() {
            if dated.when.span().is_some_and(|days| period.meets(days)) {
                entries.push(TimelineEntry {
                    time: dated.when,
                    text: dated.quote.to_owned(),
                    block: unit.id.as_str().to_owned(),
                    path: unit.topic.to_string(),
                    headings: unit.headings.clone(),
                    evidence: dated.refs.iter().map(ToString::to_string).collect(),
                });
            }
        }
    }
    entries
}

/// Puts entries of several topics in order: by their first day, what is less exact first; then by topic, and as they stand there.
pub fn sort_timeline(entries: &mut [TimelineEntry]) {
    entries.sort_by(|a, b| {
        let day = |entry: &TimelineEntry| entry.time.span().map(|days| (days.first(), std::cmp::Reverse(days.last())));
        day(a).cmp(&day(b)).then_with(|| a.path.cmp(&b.path))
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::TopicPath;
    use crate::topic::TopicRef;

    const TOPIC: &str = "# A\n\nIn May.[^b] On a day.[^a] ^old00001 ^new00001\n\nSometime.[^c] ^new00002\n\n\
        [^a]: Time: `2026-05-04`; Sources: [x](p/t/1)\n[^b]: Time: `2026-05`; Sources: [x](p/t/2)\n\
        [^c]: Time: `undated`; Sources: [x](p/t/3)\n";

    fn told(from: Option<&str>, to: Option<&str>) -> Vec<String> {
        let path = TopicPath::parse("topics/a.md").expect("a topic");
        let check = Check::new(path, TopicRef::parse(TOPIC), &());
        let mut entries = timeline_of(&check, &Period::parse(from, to).expect("a period"));
        sort_timeline(&mut entries);
        entries.iter().map(|entry| format!("{} {} {}", entry.time, entry.block, entry.text)).collect()
    }

    #[test]
    fn by_time_and_within_a_period() {
        let all = ["2026-05 new00001 In May.", "2026-05-04 new00001 On a day."];
        assert_eq!(told(None, None), all);
        assert_eq!(told(Some("2026-05-10"), Some("2026")), all[..1]);
        assert_eq!(told(None, Some("2026-04")), [""; 0]);
    }
}
