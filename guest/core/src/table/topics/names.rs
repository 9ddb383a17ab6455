//! From a name to the topics that have it. Made when it is first asked for, and kept up to date from then on.

use super::super::bytes::Reader;
use super::Row;
use super::entry::TopicEntry;
use core::hash::Hasher as _;
use core::ops::Bound;
use std::collections::{BTreeMap, BTreeSet};
use std::hash::DefaultHasher;

/// Places of names: the beginning of a hash, and where the name stands in the table's bytes.
#[derive(Clone, Debug, Default)]
pub(super) struct Places {
    /// Ascending.
    base: Vec<u64>,
    /// Added since.
    more: BTreeSet<u64>,
}

/// A keyed hash with known keys: to find many names with one hash takes too long to be worth it, and it lives no longer
/// than the table in memory.
fn hash(name: &str) -> u32 {
    let mut hasher = DefaultHasher::new();
    hasher.write(name.as_bytes());
    (hasher.finish() >> 32) as u32
}

fn key(name: &str, at: usize) -> u64 {
    u64::from(hash(name)) << 32 | at as u64 & u64::from(u32::MAX)
}

fn at(key: u64) -> usize {
    (key & u64::from(u32::MAX)) as usize
}

/// The name at that place.
fn name_at(bytes: &[u8], at: usize) -> Option<&str> {
    Reader(bytes.get(at..)?).counted_text()
}

impl Places {
    /// Where the name stands.
    pub(super) fn of<'s>(&'s self, bytes: &'s [u8], name: &'s str) -> impl Iterator<Item = usize> + use<'s> {
        let first = u64::from(hash(name)) << 32;
        let last = first | u64::from(u32::MAX);
        let start = self.base.partition_point(|key| *key < first);
        let base = self.base.iter().skip(start).take_while(move |key| **key <= last);
        let more = self.more.range((Bound::Included(first), Bound::Included(last)));
        base.chain(more).map(|key| at(*key)).filter(move |at| name_at(bytes, *at) == Some(name))
    }

    /// Names that stand in more than one place, as far as hashes tell: some may not.
    fn repeated<'s>(&'s self, bytes: &'s [u8]) -> BTreeSet<&'s str> {
        let same = |a: u64, b: u64| a >> 32 == b >> 32;
        let twice = self.base.windows(2).filter_map(|pair| match pair {
            [a, b] if same(*a, *b) => Some(*b),
            _ => None,
        });
        twice.chain(self.more.iter().copied()).filter_map(|key| name_at(bytes, at(key))).collect()
    }
}

/// All names of a table.
#[derive(Clone, Debug, Default)]
pub(super) struct Names {
    pub(super) ids: Places,
    pub(super) labels: Places,
    pub(super) links: Places,
    pub(super) refs: Places,
    pub(super) times: Places,
    /// By archive, the topics with a place in it: numbers of rows.
    pub(super) archives: BTreeMap<String, BTreeSet<usize>>,
}

/// The five kinds of a topic's names in turn, each with its place in the table's bytes.
fn of_entry(entry: &TopicEntry<'_>, body: usize) -> [Vec<u64>; 5] {
    let places = |names: &mut dyn Iterator<Item = &super::entry::Name<'_>>| -> Vec<u64> {
        names.map(|name| key(name.text, body + name.at)).collect()
    };
    [
        places(&mut entry.ids.iter()),
        places(&mut entry.labels.iter()),
        places(&mut entry.links.iter()),
        places(&mut entry.refs.iter().map(|one| &one.name)),
        places(&mut entry.times.iter().map(|time| &time.name)),
    ]
}

impl Names {
    pub(super) fn new(bytes: &[u8], rows: &[Row]) -> Self {
        let mut names = Self::default();
        let mut all: [Vec<u64>; 5] = Default::default();
        // Most records are of few conversations.
        let mut known: BTreeMap<(u8, String), String> = BTreeMap::new();
        for (number, row) in rows.iter().enumerate().filter(|(_, row)| row.live) {
            let Some(entry) = row.entry(bytes) else { continue };
            for (all, here) in all.iter_mut().zip(of_entry(&entry, row.body)) {
                all.extend(here);
            }
            names.add_archives(&entry, number, &mut known);
        }
        let kinds = [&mut names.ids, &mut names.labels, &mut names.links, &mut names.refs, &mut names.times];
        for (places, mut base) in kinds.into_iter().zip(all) {
            base.sort_unstable();
            places.base = base;
        }
        names
    }

    /// Adds those of a new row. What stood in rows that are no longer live stays, and counts for nothing.
    pub(super) fn add(&mut self, bytes: &[u8], number: usize, row: &Row) {
        let Some(entry) = row.entry(bytes) else { return };
        let kinds = [&mut self.ids, &mut self.labels, &mut self.links, &mut self.refs, &mut self.times];
        for (places, here) in kinds.into_iter().zip(of_entry(&entry, row.body)) {
            places.more.extend(here);
        }
        self.add_archives(&entry, number, &mut BTreeMap::new());
    }

    fn add_archives(&mut self, entry: &TopicEntry<'_>, number: usize, known: &mut BTreeMap<(u8, String), String>) {
        let mut last = None;
        for one in &entry.refs {
            let conversation = one.conversation();
            if conversation.is_some() && conversation == last {
                continue;
            }
            last = conversation;
            let path = match conversation {
                Some((kind, prefix)) => match known.get(&(kind, prefix.to_owned())) {
                    Some(path) => Some(path.clone()),
                    None => {
                        let path = one.archive();
                        path.clone().and_then(|path| known.insert((kind, prefix.to_owned()), path));
                        path
                    }
                },
                None => one.archive(),
            };
            if let Some(path) = path {
                self.archives.entry(path).or_default().insert(number);
            }
        }
        for (path, _) in &entry.missing {
            self.archives.entry((*path).to_owned()).or_default().insert(number);
        }
    }

    /// Ids that may stand in more than one topic, or twice in one.
    pub(super) fn repeated_ids<'s>(&'s self, bytes: &'s [u8]) -> BTreeSet<&'s str> {
        self.ids.repeated(bytes)
    }
}
