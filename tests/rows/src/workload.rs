//! The work that benchmarks measure, made and done the same way natively and in wasm.
//!
//! A workload makes its data once, when it is prepared; running it does nothing but the work, and answers how much that
//! was, so that nothing can be optimised away and both sides can be seen to have done the same.

use std::collections::BTreeMap;

use recollex_core::ids::{Location, SourceId, TopicPath};
use recollex_core::source::{Batch, BatchError, Limits, NewRecord, Scanner};
use recollex_core::topic::edit::{Edit, Snapshot, plan};
use recollex_core::topic::{Check, TopicRef, Tree};

use crate::archives::Archives;

/// Names of all workloads.
pub const NAMES: [&str; 8] = [
    "frame-scan-ascii",
    "frame-scan-chinese",
    "frame-write-ascii",
    "frame-write-chinese",
    "topic-read-ascii",
    "topic-read-chinese",
    "topic-edit-ascii",
    "topic-edit-chinese",
];

/// Bytes of text in a record, so that its frame comes to about 500 bytes.
const TEXT_BYTES: usize = 170;
/// Pieces a scan is handed, as a host reads them.
const PIECE_BYTES: usize = 1 << 20;
/// Records of one batch: within the size of a batch, and what a backfill would do.
const BATCH_RECORDS: usize = 10_000;
/// Blocks of one topic.
const TOPIC_BLOCKS: u64 = 20;

const ENGLISH: [&str; 16] = [
    "keel", "bolt", "bronze", "price", "launch", "harbour", "engine", "paint", "the", "we", "of", "before", "replace",
    "morning", "looked", "again",
];
const CHINESE: [&str; 16] = [
    "龙骨",
    "螺栓",
    "青铜",
    "价格",
    "下水",
    "港口",
    "发动机",
    "油漆",
    "的",
    "我们",
    "之前",
    "更换",
    "早上",
    "看了",
    "再次",
    "喷油嘴",
];

/// A workload with its data.
pub enum Prepared {
    /// Scanning one archive.
    Scan {
        /// Where it belongs.
        location: Location,
        /// Its text.
        archive: String,
    },
    /// Checking batches of records and rendering what to append.
    Write {
        /// Records of one conversation.
        batches: Vec<Vec<NewRecord>>,
        /// A copy of them, for the next run to use up.
        copy: Vec<Vec<NewRecord>>,
    },
    /// Reading topics strictly, or putting them in order and judging them as one edit that gives each another title.
    Topics {
        /// As an edit.
        as_edit: bool,
        /// All of them, in order already.
        topics: Vec<(TopicPath, String)>,
        /// What they cite.
        archives: Archives,
    },
}

/// What one run got through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Done {
    /// Of text of archives or topics.
    pub bytes: u64,
    /// Records or blocks.
    pub items: u64,
}

/// Makes the data of a workload: about `bytes` bytes of text.
///
/// # Errors
/// There is no workload of that name; the text names those there are.
pub fn prepare(name: &str, bytes: usize) -> Result<Prepared, String> {
    let unknown = || format!("no workload {name:?}; there are: {}", NAMES.join(", "));
    let chinese = match name.rsplit_once('-').ok_or_else(unknown)? {
        (_, "ascii") => false,
        (_, "chinese") => true,
        _ => return Err(unknown()),
    };
    if !NAMES.contains(&name) {
        return Err(unknown());
    }
    if name.starts_with("topic-") {
        return topics(chinese, bytes, name.starts_with("topic-edit-"));
    }
    let batches = batches(chinese, bytes);
    if name.starts_with("frame-write-") {
        return Ok(Prepared::Write { copy: batches.clone(), batches });
    }
    let mut archive = String::with_capacity(bytes + bytes / 8);
    for batch in batches {
        let text = render(batch)?;
        // One file: behind the first batch the marker is left out, and an empty line comes between.
        match text.split_once("-->\n\n") {
            Some((_, frames)) if !archive.is_empty() => {
                archive.push('\n');
                archive.push_str(frames);
            }
            _ => archive.push_str(&text),
        }
    }
    Ok(Prepared::Scan { location: Location::of_path("sources/bench/_v2/thread.md"), archive })
}

impl Prepared {
    /// Gets ready for another run. Not part of the work: nothing that is measured may happen here.
    pub fn rewind(&mut self) {
        if let Self::Write { batches, copy } = self {
            copy.clone_from(batches);
        }
    }

    /// Does the work, once for each [`Prepared::rewind`].
    ///
    /// # Errors
    /// It did not come out as it must.
    pub fn run(&mut self) -> Result<Done, String> {
        match self {
            Self::Scan { location, archive } => {
                let mut items = 0;
                let mut scanner = Scanner::new(Some(location.clone()), &Limits::default());
                for piece in archive.as_bytes().chunks(PIECE_BYTES) {
                    scanner.push_bytes(piece, &mut |_| items += 1);
                }
                let end = scanner.finish(&mut |_| items += 1);
                match end.fault {
                    None => Ok(Done { bytes: end.bytes, items }),
                    Some(fault) => Err(format!("{fault:?}")),
                }
            }
            Self::Write { copy, .. } => {
                let mut done = Done { bytes: 0, items: 0 };
                for batch in core::mem::take(copy) {
                    done.items += batch.len() as u64;
                    done.bytes += render(batch)?.len() as u64;
                }
                Ok(done)
            }
            Self::Topics { as_edit, topics, archives } => {
                let bytes = topics.iter().map(|(_, text)| text.len() as u64).sum();
                let items = if *as_edit { judge(topics, archives)? } else { read(topics, archives)? };
                Ok(Done { bytes, items })
            }
        }
    }
}

/// How many blocks topics have that a strict reading finds nothing wrong with.
fn read(topics: &[(TopicPath, String)], archives: &Archives) -> Result<u64, String> {
    let checks = topics.iter().map(|(path, text)| Check::new(path.clone(), TopicRef::parse(text), archives));
    let tree = Tree::new(checks.collect());
    match tree.first_strict() {
        None => Ok(tree.blocks().count() as u64),
        Some((topic, fault)) => Err(format!("{}: {fault:?}", topic.path())),
    }
}

/// How many blocks stand in topics that an edit changes to these, each by its title.
fn judge(topics: &[(TopicPath, String)], archives: &Archives) -> Result<u64, String> {
    let edit = Edit {
        topics: topics.iter().map(|(path, text)| (path.clone(), Some(text.as_str()))).collect(),
        ..Edit::default()
    };
    let before = topics.iter().map(|(path, text)| (path.clone(), text.replacen("# Topic", "# Old topic", 1)));
    let before: Vec<(TopicPath, String)> = before.collect();
    let before = Snapshot::new(before.iter().map(|(path, text)| (path.clone(), text.as_str())));
    let planned = plan(&edit, &before, archives).map_err(|faults| format!("{:?}", faults.first()))?;
    let is_same =
        |(path, text): &(TopicPath, String)| planned.topics.get(path).is_some_and(|new| new.as_ref() == Some(text));
    if topics.iter().all(is_same) {
        Ok(topics.len() as u64 * TOPIC_BLOCKS)
    } else {
        Err("a topic in order was put in order".to_owned())
    }
}

/// Topics that come to about `bytes` bytes: blocks with a footnote each, every fourth with a link to another topic.
fn topics(chinese: bool, bytes: usize, as_edit: bool) -> Result<Prepared, String> {
    let path = |topic: u64| {
        TopicPath::parse(&format!("topics/area-{}/topic-{topic}.md", topic % 40)).map_err(|error| error.to_string())
    };
    let (mut topics, mut ids) = (Vec::new(), Vec::new());
    let (mut number, mut made) = (0, 0);
    while made < bytes {
        let here = path(topics.len() as u64)?;
        let mut text = format!("# Topic {}\n", topics.len());
        for _ in 0..TOPIC_BLOCKS {
            let id = SourceId::parse(&format!("bench/thread-{}/m{number}", number / 200))
                .map_err(|error| error.to_string())?;
            let link = match number % 4 {
                0 => format!(
                    ", see [that]({}#^{:08x})",
                    here.relative(path(number / 2 / TOPIC_BLOCKS)?.as_str()),
                    number / 2
                ),
                _ => String::new(),
            };
            let claim = sentence(number, chinese);
            text.push_str(&format!(
                "\n{}{link}.[^e-{number:010x}] ^{number:08x}\n\n\
                 [^e-{number:010x}]: Time: `2026-{:02}-{:02}`; Sources: [Ada]({}#{})\n",
                claim.trim_end(),
                number / 90 % 12 + 1,
                number % 28 + 1,
                here.relative(&id.v2_path()),
                id.anchor(),
            ));
            ids.push(id);
            number += 1;
        }
        made += text.len();
        topics.push((here, text));
    }
    topics.sort();
    Ok(Prepared::Topics { as_edit, topics, archives: Archives::trusted(ids) })
}

/// What appending a batch to a new archive writes.
fn render(records: Vec<NewRecord>) -> Result<String, String> {
    let batch = Batch::check(records, &Limits::default()).map_err(|error| match error {
        BatchError::Refused(problems) => format!("{problems:?}"),
        BatchError::Limit(limit) => limit.to_string(),
    })?;
    let comparison = batch.compare(BTreeMap::new()).map_err(|problems| format!("{problems:?}"))?;
    let plan = comparison.plan().map_err(|range| format!("{range:?}"))?;
    plan.changes.into_iter().next().map(|change| change.text).ok_or_else(|| "nothing to write".to_owned())
}

/// Records of one conversation that come to about `bytes` bytes of archive, in batches.
fn batches(chinese: bool, bytes: usize) -> Vec<Vec<NewRecord>> {
    let mut batches = Vec::new();
    let mut number = 0_u64;
    let mut made = 0;
    while made < bytes {
        let mut batch = Vec::with_capacity(BATCH_RECORDS);
        while batch.len() < BATCH_RECORDS && made < bytes {
            let text = sentence(number, chinese);
            // Anchor, id, speaker, metadata and count come to about 330 bytes.
            made += text.len() + 330;
            batch.push(NewRecord {
                provider: "bench".to_owned(),
                thread: "thread".to_owned(),
                id: format!("m{number}"),
                ordinal: number.cast_signed(),
                role: "user".to_owned(),
                text,
                time: Some("2026-03-04T08:00:00+00:00".to_owned()),
                speaker_id: Some(format!("u-{}", number % 5)),
                speaker_display: Some("Ada Brandt".to_owned()),
                speaker_kind: Some("human".to_owned()),
                principal: Some("owner/install/0123456789abcdef".to_owned()),
                tier: Some("owner".to_owned()),
                trust: "trusted".to_owned(),
                ..NewRecord::default()
            });
            number += 1;
        }
        batches.push(batch);
    }
    batches
}

/// A record's text: the same for the same number, of one to three lines.
#[must_use]
pub fn sentence(number: u64, chinese: bool) -> String {
    let words = if chinese { &CHINESE } else { &ENGLISH };
    // A full-period generator of 64 bits; its upper bits pick the words.
    let mut state = number.wrapping_mul(0x9E37_79B9_7F4A_7C15).wrapping_add(1);
    let mut text = String::with_capacity(TEXT_BYTES + 32);
    while text.len() < TEXT_BYTES {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let picked = words.get((state >> 60) as usize).copied().unwrap_or_default();
        text.push_str(picked);
        match (state >> 52) & 31 {
            0 => text.push('\n'),
            1 if chinese => text.push('，'),
            1 => text.push_str(", "),
            _ if chinese => {}
            _ => text.push(' '),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workloads_do_what_they_say() {
        for name in NAMES {
            let done = prepare(name, 1 << 20).unwrap().run().unwrap();
            let per_record = done.bytes / done.items;
            assert!((300..600).contains(&per_record), "{name}: {per_record} bytes a record");
            assert!((900_000..1_300_000).contains(&done.bytes), "{name}: {} bytes", done.bytes);
        }
        assert!(prepare("frame-fly-ascii", 1).is_err() && prepare("x", 1).is_err());
    }
}
