//! Rows of `topics_parse.jsonl`: a workspace's files, and what its topics claim, strictly and leniently read, where their
//! paragraphs are, and what search finds of them.

use std::collections::BTreeMap;

use recollex_core::ids::{EvidenceTime, FootnoteLabel, TopicPath};
use recollex_core::topic::{Block, Check, Event, Evidence, Items, Locator, SourceTarget, TopicRef, Tree, Unit};
use serde_json::{Map, Value, json};

use crate::archives::Archives;
use crate::{Input, Malformed, Observed, Outcome};

pub(crate) fn observe(input: &Input<'_>) -> Observed {
    let files = input
        .field("files")?
        .entries()?
        .map(|(path, content)| Ok((path, content.bytes()?)))
        .collect::<Result<BTreeMap<_, _>, Malformed>>()?;
    let archives = Archives::new(files.iter().map(|(path, bytes)| (*path, bytes.as_slice())));
    let (mut spans, mut events) = (Map::new(), Map::new());
    let mut topics = Vec::new();
    let mut undecodable = None;
    for (path, bytes) in files.iter().filter(|(path, _)| path.starts_with("topics/")) {
        let topic = TopicPath::parse(path);
        match (core::str::from_utf8(bytes), topic) {
            (Ok(text), topic) => {
                spans.insert((*path).to_owned(), show_spans(text)?);
                // What is no topic has no events.
                events.insert((*path).to_owned(), json!([]));
                topics.extend(topic.ok().map(|path| Check::new(path, TopicRef::parse(text), &archives)));
            }
            (Err(_), Ok(path)) => undecodable = undecodable.into_iter().chain([path]).min(),
            (Err(_), Err(_)) => {}
        }
    }
    events.extend(topics.iter().map(|topic| (topic.path().to_string(), show_events(topic))));
    events.extend(undecodable.iter().map(|path| (path.to_string(), json!([]))));
    let prose: Vec<String> = topics_in_order(&topics)
        .into_iter()
        .flat_map(|topic| topic.topic().paragraphs())
        .map(|paragraph| paragraph.prose())
        .filter(|prose| !prose.is_empty())
        .collect();
    let tree = Tree::new(topics);
    for topic in tree.topics() {
        in_place(topic)?;
    }
    let units: Vec<Value> = tree.units().iter().map(show_unit).collect();
    let first = tree.first_strict();
    let strict = match (first, undecodable) {
        (Some((topic, fault)), undecodable) if undecodable.as_ref().is_none_or(|path| topic.path() < path) => {
            json!({"error": {"code": fault.code.as_str(), "subject": topic.subject(fault)}})
        }
        (_, Some(_)) => json!({"error": {"code": "invalid-utf8"}}),
        (_, None) => json!({"units": units.clone()}),
    };
    Ok(Outcome::Shown(json!({
        "strict": strict,
        "lenient": {"units": units},
        "paragraph_spans": spans,
        "index_events": events,
        "prose": prose.join("\n"),
        // What rows do not note down: every fault, and where.
        "faults": tree.faults().map(|(topic, fault)| json!({
            "path": topic.path().as_str(),
            "code": fault.code.as_str(),
            "line": fault.line,
            "column": fault.column,
            "subject": topic.subject(fault),
        })).collect::<Vec<_>>(),
    })))
}

fn topics_in_order<'t, 'a>(topics: &'t [Check<'a>]) -> Vec<&'t Check<'a>> {
    let mut ordered: Vec<_> = topics.iter().collect();
    ordered.sort_by_key(|topic| topic.path());
    ordered
}

/// Paragraphs as lines from 0, the end not included, and the headings above.
fn show_spans(text: &str) -> Result<Value, Malformed> {
    let mut end = 0;
    for item in Items::new(text) {
        if item.span().start != end {
            return Err(Malformed::new("items", format!("{item:?} does not begin at {end}")));
        }
        end = item.span().end;
    }
    if end != text.len() {
        return Err(Malformed::new("items", format!("they end at {end} of {}", text.len())));
    }
    let topic = TopicRef::parse(text);
    let spans = topic.paragraphs().enumerate().map(|(number, paragraph)| {
        let start = paragraph.lump().line() - 1;
        let headings = topic.headings_of(number);
        let headings: Vec<&str> = headings.iter().map(|heading| heading.text().as_str()).collect();
        json!([start, start + paragraph.lines(), headings])
    });
    Ok(spans.collect())
}

/// Whether everything stands where it says, which rows do not show.
fn in_place(check: &Check<'_>) -> Result<(), Malformed> {
    let topic = check.topic();
    let text = topic.text();
    let fault = |what: &str, at: String| Err(Malformed::new(what, format!("{at} in {}", check.path())));
    for fault_found in check.faults() {
        let mut locator = Locator::new(text);
        let place = locator.locate(fault_found.span.start);
        if text.get(fault_found.span.clone()).is_none() || place != (fault_found.line, fault_found.column) {
            return fault("fault", format!("{fault_found:?}, not at {place:?},"));
        }
    }
    for block in check.claimed_blocks() {
        if block.ids().iter().any(|id| text.get(id.span()) != Some(id.as_str())) {
            return fault("id", format!("{:?}", block.ids()));
        }
        let mut groups = block.groups();
        for group in groups.by_ref() {
            for citation in group.citations() {
                if text.get(citation.span()) != Some(&format!("[^{}]", citation.label().as_str())) {
                    return fault("citation", format!("{citation:?}"));
                }
            }
        }
        for link in block.links() {
            let shown = format!("[{}]({})", link.label().as_str(), link.target().as_str());
            if text.get(link.whole().span()) != Some(&shown) {
                return fault("link", format!("{link:?}"));
            }
        }
    }
    for definition in topic.definitions() {
        let line = definition.lump().text().as_str();
        let prefix = format!("[^{}]:", definition.label().as_str());
        let known = FootnoteLabel::parse(definition.label().as_str()).is_some();
        if !known || !line.starts_with(&prefix) || !line.contains(definition.sources().as_str()) {
            return fault("definition", line.to_owned());
        }
        for link in definition.links() {
            // What a target says does not depend on where it is said.
            if SourceTarget::parse(link.target().as_str()) != SourceTarget::parse(link.target().as_str().trim()) {
                return fault("target", format!("{link:?}"));
            }
        }
    }
    Ok(())
}

fn show_unit(unit: &Unit) -> Value {
    json!({
        "memory_id": unit.id.as_str(),
        "content": unit.content,
        "when": show_time(unit.when),
        "source_refs": unit.refs.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "source_links": unit.links,
        "topic_path": unit.topic.below_topics(),
        "headings": unit.headings,
        "created_order": unit.order,
        "source_labels": unit.labels,
        "evidence": unit.evidence.iter().map(show_evidence).collect::<Vec<_>>(),
        "relation_targets": unit.relations.iter().map(ToString::to_string).collect::<Vec<_>>(),
    })
}

fn show_evidence(evidence: &Evidence) -> Value {
    json!({
        "citation_id": evidence.citation.as_str(),
        "quote": evidence.quote,
        "when": show_time(evidence.when),
        "source_refs": evidence.refs.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "source_links": evidence.links,
        "source_labels": evidence.labels,
    })
}

fn show_time(time: Option<EvidenceTime>) -> Value {
    time.map(|time| time.to_string()).into()
}

fn show_events(check: &Check<'_>) -> Value {
    let show = |block: Block<'_, '_>| {
        let headings = block.headings();
        block.events().map(|event| show_event(check.path(), &headings, &event)).collect::<Vec<_>>()
    };
    check.claimed_blocks().flat_map(show).collect()
}

fn show_event(path: &TopicPath, headings: &[&str], event: &Event) -> Value {
    json!({
        "event_id": format!("{}:{}", event.block, event.number),
        "path": path.as_str(),
        "line": event.line,
        "headings": headings,
        "date": event.times.first().map_or("", String::as_str),
        "dates": event.times,
        "content": event.content,
        "refs": event.refs.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "speaker_id": "",
        "speaker_display": "",
        "speaker_label": "",
        "speaker_trusted": false,
        // Nobody has asked yet: that takes the trust of every source.
        "trust_state": "unknown",
        "speaker_kind": "unknown",
        "principal_id": "unknown",
        "authority_tier": null,
        "visibility": null,
    })
}
