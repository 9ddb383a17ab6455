//! Which derived files a change of topics changes, and what they become.
//!
//! An edit costs the topics it changes and the files it changes. Where those files are not at hand it costs, in their place,
//! the topics that say something of the same times, and those that hold the claims made last; no others are read. What comes
//! of it is what deriving everything anew would give, to the byte.

use super::core_view::{CORE_FILE, CORE_TOPIC, CoreDraft};
use super::recent::line;
use super::relations::relations_of;
use super::runtime::RuntimeState;
use super::timeline::{Timeline, rows_of, timeline_path};
use crate::digest::{Digest, FileHasher};
use crate::ids::{BlockId, EvidenceTime, SourceRef, TopicPath};
use crate::table::{TopicEntry, TopicNote, TopicTable};
use crate::topic::{Check, Sources, TopicRef};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

/// How large views may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ViewLimits {
    /// `views.core-budget`: tokens of `core.md`.
    pub core_budget: u64,
    /// `views.recent`: units in `recent_events.jsonl`.
    pub recent: u64,
}

impl Default for ViewLimits {
    fn default() -> Self {
        Self { core_budget: 2000, recent: 50 }
    }
}

/// A change of topics, and what it means for what is derived from them.
///
/// 1. [`Derivation::of_change`] reads the topics as they shall be, or [`Derivation::whole`] takes all as they are.
/// 2. [`Derivation::needs`] says which other topics must be read.
/// 3. [`Derivation::finish`] reads them, one after the other, and gives the files.
///
/// Once the commit is made, `table.apply` takes in [`Derived::notes`], and `state.extend_ids` takes [`Derived::created`].
#[derive(Clone, Debug)]
pub struct Derivation<'a> {
    table: &'a TopicTable,
    state: &'a RuntimeState,
    limits: ViewLimits,
    /// Of the topics that change, what they shall be; none: gone.
    changed: BTreeMap<TopicPath, Option<&'a str>>,
    notes: BTreeMap<TopicPath, TopicNote>,
    /// Ids in more than one topic, once the change is made, with the first of these; and before.
    shared: BTreeMap<String, TopicPath>,
    before: BTreeMap<String, TopicPath>,
    /// Of topics that do not change, other blocks count than before.
    others: bool,
    /// Units of `recent_events.jsonl` before the change.
    old_recent: Vec<Recent>,
    /// Ids that get a number, in order.
    created: Vec<String>,
    /// Times whose files are to be made anew.
    times: BTreeSet<EvidenceTime>,
    /// Units of `recent_events.jsonl`, if it is to be made anew.
    recent: Option<Vec<Recent>>,
    relations: bool,
    runtime: bool,
    core: bool,
    /// Everything is made anew.
    whole: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Recent {
    order: u64,
    topic: TopicPath,
    /// Its place among the ids of its topic.
    place: usize,
    id: String,
}

/// What stays of derived files, because it is of topics that do not change.
#[derive(Default)]
struct Kept {
    /// Times of which it is known.
    times: BTreeSet<EvidenceTime>,
    timeline: Timeline,
    /// Lines of `recent_events.jsonl`; none: it is not known.
    recent: Option<BTreeMap<Recent, String>>,
}

/// What derived files become.
#[derive(Clone, Debug, Default)]
pub struct Derived {
    /// Derived files of the tree that may have changed, by path; none: it goes. A file that has these bytes already need
    /// not be written.
    pub files: BTreeMap<String, Option<String>>,
    /// Content of `runtime.json` in the runtime directory, if that changes.
    pub runtime: Option<String>,
    /// What `core.md` is to be made of, if it is to be made: through [`CoreCount`](super::CoreCount), which keeps what was
    /// counted before.
    pub core: Option<CoreDraft>,
    /// Ids that got a number in `runtime`.
    pub created: Vec<String>,
    /// What the table is to know once the commit is made.
    pub notes: Vec<TopicNote>,
    /// Every file of the timeline is in `files`: others are out of date.
    pub whole: bool,
}

impl Derived {
    /// Of the files that there are, those that are derived from what is no longer so and are not in `files`.
    pub fn stale<'p>(&self, existing: impl IntoIterator<Item = &'p str>) -> Vec<&'p str> {
        let is_stale = |path: &&str| self.whole && path.starts_with("timeline/") && !self.files.contains_key(*path);
        existing.into_iter().filter(is_stale).collect()
    }
}

/// A topic that must be read could not be, or is not what the table knows: somebody has changed it in between.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{path} changed while it was read; try again")]
pub struct ChangedTopic {
    /// The topic.
    pub path: TopicPath,
}

/// The topics once the change is made.
struct After<'d> {
    table: &'d TopicTable,
    notes: &'d BTreeMap<TopicPath, TopicNote>,
    /// Topics by the ids that they shall have.
    ids: BTreeMap<String, BTreeSet<TopicPath>>,
}

impl After<'_> {
    fn entry(&self, path: &TopicPath) -> Option<TopicEntry<'_>> {
        match self.notes.get(path) {
            Some(note) => note.entry(),
            None => self.table.entry(path),
        }
    }

    fn topics_of(&self, id: &str) -> BTreeSet<TopicPath> {
        let kept = self.table.topics_of(id).into_iter().filter(|path| !self.notes.contains_key(path));
        kept.chain(self.ids.get(id).into_iter().flatten().cloned()).collect()
    }
}

/// A unit, as much of it as a topic's entry tells.
#[derive(Clone)]
struct KnownUnit<'b> {
    id: &'b str,
    /// Its place among all ids of the topic.
    place: usize,
    /// Which of the topic's blocks it is.
    block: usize,
    /// The blocks its links name.
    links: Vec<&'b str>,
}

/// Units of a topic as its entry tells them: of ids that count. `shared` has the ids of several topics, with the first of
/// these.
fn units_of<'b>(entry: &TopicEntry<'b>, path: &TopicPath, shared: &BTreeMap<String, TopicPath>) -> Vec<KnownUnit<'b>> {
    let taken = |id: &str| shared.get(id).is_some_and(|first| first < path);
    let lost: BTreeSet<usize> =
        entry.blocks().filter(|block| block.ids().any(&taken)).map(|block| block.paragraph()).collect();
    let mut units = Vec::new();
    let mut place = 0;
    for (number, block) in entry.blocks().enumerate() {
        let counts = block.is_sound() && !lost.contains(&block.paragraph());
        let links: Vec<&str> = if counts { block.links().collect() } else { Vec::new() };
        for id in block.ids() {
            if counts {
                units.push(KnownUnit { id, place, block: number, links: links.clone() });
            }
            place += 1;
        }
    }
    units
}

/// The places, among the ids of a topic, of those that count.
fn places_of(entry: &TopicEntry<'_>, path: &TopicPath, shared: &BTreeMap<String, TopicPath>) -> BTreeSet<usize> {
    units_of(entry, path, shared).into_iter().map(|unit| unit.place).collect()
}

impl<'a> Derivation<'a> {
    /// Of a change. `table` knows all topics as they are, `changed` says what some shall be (none: gone), `sources` answers
    /// for the archives as they shall be. `state` has a number for every unit there is
    /// ([`RuntimeState::cover`]).
    pub fn of_change(
        table: &'a TopicTable,
        changed: BTreeMap<TopicPath, Option<&'a str>>,
        sources: &dyn Sources,
        state: &'a RuntimeState,
        limits: ViewLimits,
    ) -> Self {
        let note = |(path, text): (&TopicPath, &Option<&str>)| {
            let note = match text {
                Some(text) => TopicNote::read(path, text, sources),
                None => TopicNote::gone(path),
            };
            (path.clone(), note)
        };
        let notes: BTreeMap<TopicPath, TopicNote> = changed.iter().map(note).collect();
        let mut after = After { table, notes: &notes, ids: BTreeMap::new() };
        for (path, note) in &notes {
            for id in note.entry().iter().flat_map(TopicEntry::ids) {
                after.ids.entry(id.to_owned()).or_default().insert(path.clone());
            }
        }
        let before: BTreeMap<String, TopicPath> =
            table.shared_ids().into_iter().map(|(id, path)| (id.to_owned(), path)).collect();
        let Shared { shared, touched } = shared_after(&after, &before);

        let mut relations = touched.iter().any(|path| !notes.contains_key(path));
        let mut created = Vec::new();
        let mut new: BTreeSet<String> = BTreeSet::new();
        let mut times = BTreeSet::new();
        for (path, note) in &notes {
            let (old, entry) = (table.entry(path), note.entry());
            let old_units: Vec<_> = old.iter().flat_map(|entry| units_of(entry, path, &before)).collect();
            let units: Vec<_> = entry.iter().flat_map(|entry| units_of(entry, path, &shared)).collect();
            let links = |units: &[KnownUnit<'_>]| -> BTreeMap<String, BTreeSet<String>> {
                let owned = |links: &[&str]| links.iter().map(|link| (*link).to_owned()).collect();
                units.iter().map(|unit| (unit.id.to_owned(), owned(&unit.links))).collect()
            };
            relations |= links(&old_units) != links(&units);
            let said = |entry: &Option<TopicEntry<'_>>| -> BTreeMap<EvidenceTime, [u8; 8]> {
                entry.iter().flat_map(TopicEntry::times).collect()
            };
            let (old, now) = (said(&old), said(&entry));
            let all = touched.contains(path);
            let differs = |time: &&EvidenceTime| all || old.get(time) != now.get(time);
            times.extend(old.keys().chain(now.keys()).filter(differs).copied());
        }
        for path in notes.keys().chain(&touched).collect::<BTreeSet<_>>() {
            let entry = after.entry(path);
            for unit in entry.iter().flat_map(|entry| units_of(entry, path, &shared)) {
                if state.order_of(unit.id).is_none() && new.insert(unit.id.to_owned()) {
                    created.push(unit.id.to_owned());
                }
            }
        }
        for path in touched.iter().filter(|path| !notes.contains_key(path)) {
            times.extend(table.entry(path).iter().flat_map(TopicEntry::times).map(|(time, _)| time));
        }

        let (recent, old_recent) = {
            let limit = usize::try_from(limits.recent).unwrap_or(usize::MAX);
            let old = After { table, notes: &BTreeMap::new(), ids: BTreeMap::new() };
            let old = recent_of(&old, &before, state, &[], limit);
            let now = recent_of(&after, &shared, state, &created, limit);
            let moves = |one: &Recent| notes.contains_key(&one.topic) || touched.contains(&one.topic);
            ((old != now || now.iter().any(moves)).then_some(now), old)
        };
        let core_topic = core_topic();
        let core = core_topic.is_some_and(|path| notes.contains_key(&path) || touched.contains(&path));
        let (runtime, whole) = (!created.is_empty(), false);
        let others = touched.iter().any(|path| !notes.contains_key(path));
        Self {
            table,
            state,
            limits,
            changed,
            notes,
            shared,
            before,
            others,
            old_recent,
            created,
            times,
            recent,
            relations,
            runtime,
            core,
            whole,
        }
    }

    /// Of all topics as the table knows them: everything is made anew.
    pub fn whole(table: &'a TopicTable, state: &'a RuntimeState, limits: ViewLimits) -> Self {
        let shared: BTreeMap<String, TopicPath> =
            table.shared_ids().into_iter().map(|(id, path)| (id.to_owned(), path)).collect();
        let mut created = Vec::new();
        let mut times = BTreeSet::new();
        for (path, entry) in table.entries() {
            let Ok(path) = TopicPath::parse(path) else { continue };
            times.extend(entry.times().map(|(time, _)| time));
            let units = units_of(&entry, &path, &shared);
            created
                .extend(units.iter().map(|unit| unit.id).filter(|id| state.order_of(id).is_none()).map(str::to_owned));
        }
        let notes = BTreeMap::new();
        let after = After { table, notes: &notes, ids: BTreeMap::new() };
        let limit = usize::try_from(limits.recent).unwrap_or(usize::MAX);
        let recent = Some(recent_of(&after, &shared, state, &created, limit));
        let core = core_topic().is_some_and(|path| table.entry(&path).is_some());
        let changed = BTreeMap::new();
        let (relations, runtime, whole) = (true, true, true);
        Self {
            table,
            state,
            limits,
            changed,
            notes,
            before: shared.clone(),
            shared,
            others: false,
            old_recent: Vec::new(),
            created,
            times,
            recent,
            relations,
            runtime,
            core,
            whole,
        }
    }

    /// Has `core.md` made anew even if its topic does not change: what it rests on may, or may no longer, be built on.
    pub fn with_core(mut self) -> Self {
        let there = |path: &TopicPath| self.changed.get(path).map_or(self.table.entry(path).is_some(), Option::is_some);
        self.core |= core_topic().is_some_and(|path| there(&path));
        self
    }

    /// The topics, besides those that change, that must be read where no derived file is at hand; in order.
    pub fn needs(&self) -> BTreeSet<TopicPath> {
        self.needs_beside(&Kept::default())
    }

    fn needs_beside(&self, kept: &Kept) -> BTreeSet<TopicPath> {
        let mut needs: BTreeSet<TopicPath> = if self.whole {
            self.table.paths().collect()
        } else {
            let times = self.times.iter().filter(|time| !kept.times.contains(time));
            times.flat_map(|time| self.table.topics_at_time(&time.to_string())).collect()
        };
        if kept.recent.is_none() {
            needs.extend(self.recent.iter().flatten().map(|one| one.topic.clone()));
        } else {
            // One that comes in again because another is gone was in no file.
            let known = |one: &&Recent| !kept.recent.as_ref().is_some_and(|kept| kept.contains_key(one));
            needs.extend(self.recent.iter().flatten().filter(known).map(|one| one.topic.clone()));
        }
        needs.extend(core_topic().filter(|_| self.core));
        needs.retain(|path| !self.changed.contains_key(path));
        needs
    }

    /// What of the files as they are stays, because it is of topics that do not change.
    fn kept(&self, file: &dyn Fn(&str) -> Option<String>) -> Kept {
        let mut kept = Kept::default();
        if self.whole || self.others {
            return kept;
        }
        for time in &self.times {
            let Some(text) = timeline_path(*time).and_then(|path| file(&path)) else { continue };
            let name = time.to_string();
            let mut rows = Vec::new();
            for path in self.table.topics_at_time(&name) {
                let Some(entry) = self.table.entry(&path) else { continue };
                let counts = places_of(&entry, &path, &self.before);
                let stays = !self.changed.contains_key(&path);
                rows.extend(entry.rows_at(&name).filter(|row| counts.contains(&row.place)).map(|row| (row, stays)));
            }
            // As the file has them: stable, since units come in their order.
            rows.sort_by_key(|(row, _)| (row.source, row.id));
            let Some(texts) = rows_of(&text, *time).filter(|texts| texts.len() == rows.len()) else { continue };
            for ((row, _), text) in rows.iter().zip(texts).filter(|((_, stays), _)| *stays) {
                kept.timeline.keep(*time, row.source, row.id, text);
            }
            kept.times.insert(*time);
        }
        if self.recent.is_some()
            && let Some(text) = file(RECENT_FILE)
        {
            let lines: Vec<&str> = text.split_inclusive('\n').collect();
            if lines.len() == self.old_recent.len() {
                let lines = self.old_recent.iter().zip(lines).filter(|(one, _)| !self.changed.contains_key(&one.topic));
                kept.recent = Some(lines.map(|(one, line)| (one.clone(), line.to_owned())).collect());
            }
        }
        kept
    }

    /// Makes the files. `text` gives the topics of [`Derivation::needs`], each asked for once and in order; `trusted` says
    /// whether something may be built on a source.
    ///
    /// # Errors
    /// [`ChangedTopic`]: it has no text, or another one than the table is about.
    pub fn finish<'t>(
        self,
        text: &mut dyn FnMut(&TopicPath) -> Option<Cow<'t, str>>,
        trusted: &dyn Fn(&SourceRef) -> bool,
    ) -> Result<Derived, ChangedTopic> {
        self.finish_over(text, trusted, &|_| None)
    }

    /// The same where the derived files are what the topics make of them before the change. `file` gives their content, none if
    /// it is not at hand: what in them is of topics that do not change is taken from there, and those topics are not read.
    ///
    /// # Errors
    /// As [`Derivation::finish`].
    pub fn finish_over<'t>(
        self,
        text: &mut dyn FnMut(&TopicPath) -> Option<Cow<'t, str>>,
        trusted: &dyn Fn(&SourceRef) -> bool,
        file: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Derived, ChangedTopic> {
        let mut kept = self.kept(file);
        let mut paths = self.needs_beside(&kept);
        paths.extend(self.changed.iter().filter(|(_, text)| text.is_some()).map(|(path, _)| path.clone()));
        let mut timeline = core::mem::take(&mut kept.timeline);
        // Of a topic that is read only for what is not in a file, nothing comes a second time.
        let wanted_of = |path: &TopicPath, time: EvidenceTime| {
            self.times.contains(&time) && (self.changed.contains_key(path) || !kept.times.contains(&time))
        };
        let mut recent: BTreeMap<(u64, TopicPath, usize), String> = BTreeMap::new();
        let stays = |one: &&Recent| kept.recent.as_ref().is_some_and(|kept| kept.contains_key(one));
        for one in self.recent.iter().flatten().filter(stays) {
            let line = kept.recent.as_ref().and_then(|kept| kept.get(one)).cloned().unwrap_or_default();
            recent.insert((one.order, one.topic.clone(), one.place), line);
        }
        let numbers: BTreeMap<(&TopicPath, &str), (u64, usize)> = self
            .recent
            .iter()
            .flatten()
            .filter(|one| !stays(one))
            .map(|one| ((&one.topic, one.id.as_str()), (one.order, one.place)))
            .collect();
        let mut core = None;
        for path in &paths {
            let (entry, given) = match self.changed.get(path) {
                Some(given) => (self.notes.get(path).and_then(TopicNote::entry), given.map(Cow::Borrowed)),
                None => (self.table.entry(path), None),
            };
            let Some(entry) = entry else { return Err(ChangedTopic { path: path.clone() }) };
            let text = match given {
                Some(text) => text,
                None if !entry.is_text() => continue,
                None => text(path)
                    .filter(|text| digest_of(text) == entry.digest())
                    .ok_or_else(|| ChangedTopic { path: path.clone() })?,
            };
            let mut check = Check::new(path.clone(), TopicRef::parse(&text), &entry.sources());
            check.yield_to(&|id| self.shared.get(id).is_some_and(|first| first < path));
            let wanted = |time: EvidenceTime| wanted_of(path, time);
            for block in check.blocks() {
                // A unit is a copy of its block: only of those that are needed.
                let is_dated = || block.footnotes().filter_map(|footnote| footnote.time()).any(wanted);
                let is_recent = || block.ids().iter().any(|id| numbers.contains_key(&(path, id.as_str())));
                if !is_dated() && !is_recent() {
                    continue;
                }
                for unit in &block.units(0) {
                    timeline.add(unit, &wanted);
                    if let Some((order, place)) = numbers.get(&(path, unit.id.as_str())) {
                        let mut out = String::new();
                        line(unit, *order, &mut out);
                        recent.insert((*order, path.clone(), *place), out);
                    }
                }
            }
            if self.core && path.as_str() == CORE_TOPIC {
                core = Some(CoreDraft::new(&check, trusted, self.limits.core_budget));
            }
        }
        let mut files: BTreeMap<String, Option<String>> = BTreeMap::new();
        for time in &self.times {
            let Some(path) = timeline_path(*time) else { continue };
            files.insert(path, timeline.file(*time).map(|(_, content)| content));
        }
        if self.recent.is_some() {
            files.insert(RECENT_FILE.to_owned(), Some(recent.into_values().collect()));
        }
        if self.relations {
            files.insert(RELATIONS_FILE.to_owned(), Some(self.relations_file()));
        }
        if core_topic().is_some_and(|path| self.changed.get(&path) == Some(&None) && self.table.entry(&path).is_some())
        {
            files.insert(CORE_FILE.to_owned(), None);
        }
        let runtime = self.runtime.then(|| self.state.write_with(&self.created));
        let notes = self.notes.into_values().collect();
        Ok(Derived { files, runtime, core, created: self.created, notes, whole: self.whole })
    }

    fn relations_file(&self) -> String {
        let mut units: Vec<(&str, Vec<&str>)> = Vec::new();
        for (path, entry) in self.table.entries() {
            let Ok(path) = TopicPath::parse(path) else { continue };
            if !self.notes.contains_key(&path) {
                units.extend(units_of(&entry, &path, &self.shared).into_iter().map(|unit| (unit.id, unit.links)));
            }
        }
        for (path, note) in &self.notes {
            let entry = note.entry();
            let here = entry.iter().flat_map(|entry| units_of(entry, path, &self.shared));
            units.extend(here.map(|unit| (unit.id, unit.links)));
        }
        relations_of(units.into_iter())
    }
}

const RECENT_FILE: &str = "recent_events.jsonl";
const RELATIONS_FILE: &str = "relations.json";

fn core_topic() -> Option<TopicPath> {
    TopicPath::parse(CORE_TOPIC).ok()
}

fn digest_of(text: &str) -> Digest {
    let mut hasher = FileHasher::new();
    hasher.push(text.as_bytes());
    hasher.finish().root
}

/// Ids that several topics have.
struct Shared {
    /// Each with the first of them, once the change is made.
    shared: BTreeMap<String, TopicPath>,
    /// Topics of which, because of the change, other blocks count than before, or may.
    touched: BTreeSet<TopicPath>,
}

fn shared_after(after: &After<'_>, before: &BTreeMap<String, TopicPath>) -> Shared {
    let mut shared = before.clone();
    let mut touched = BTreeSet::new();
    let mut ids: BTreeSet<String> = after.ids.keys().cloned().collect();
    for entry in after.notes.keys().filter_map(|path| after.table.entry(path)) {
        ids.extend(entry.ids().map(str::to_owned));
    }
    for id in ids {
        let topics = after.topics_of(&id);
        let was_shared = shared.remove(&id).is_some();
        if was_shared || topics.len() > 1 {
            touched.extend(after.table.topics_of(&id));
            touched.extend(topics.iter().cloned());
        }
        if topics.len() > 1
            && let Some(first) = topics.into_iter().next()
        {
            shared.insert(id, first);
        }
    }
    Shared { shared, touched }
}

/// The `limit` units with the greatest numbers, ascending; of equal numbers those that come later in the topics.
fn recent_of(
    topics: &After<'_>,
    shared: &BTreeMap<String, TopicPath>,
    state: &RuntimeState,
    created: &[String],
    limit: usize,
) -> Vec<Recent> {
    let numbers = (0..).map(|more| state.next().saturating_add(more));
    let new: Vec<(&str, u64)> = created.iter().map(String::as_str).zip(numbers).collect();
    let mut places: BTreeMap<TopicPath, BTreeMap<String, usize>> = BTreeMap::new();
    let mut recent: Vec<Recent> = Vec::new();
    for (id, order) in new.into_iter().rev().chain(state.newest()) {
        // One number may stand for several ids, of which it is not yet told which come last.
        if recent.len() >= limit && recent.last().is_none_or(|last| last.order != order) {
            break;
        }
        for topic in topics.topics_of(id) {
            let here = places.entry(topic.clone()).or_insert_with(|| {
                let entry = topics.entry(&topic);
                let units = entry.iter().flat_map(|entry| units_of(entry, &topic, shared));
                units.map(|unit| (unit.id.to_owned(), unit.place)).collect()
            });
            if let Some(place) = here.get(id) {
                recent.push(Recent { order, topic, place: *place, id: id.to_owned() });
            }
        }
    }
    recent.sort();
    recent.drain(..recent.len().saturating_sub(limit));
    recent
}

impl RuntimeState {
    /// Gives numbers to the units of the table that have none, in their order: where no unit has one yet, each its place among
    /// all units, which the ids of one block share. Whether there was one without: then the file is out of date.
    pub fn cover(&mut self, table: &TopicTable) -> bool {
        let seeds = self.is_empty();
        let (mut new, mut place) = (Vec::new(), 0_u64);
        let shared: BTreeMap<String, TopicPath> =
            table.shared_ids().into_iter().map(|(id, path)| (id.to_owned(), path)).collect();
        for (path, entry) in table.entries() {
            let Ok(path) = TopicPath::parse(path) else { continue };
            // The ids of a block that was merged share its place; older claims have one each.
            let mut last = None;
            for unit in units_of(&entry, &path, &shared) {
                if last.replace(unit.block) != Some(unit.block) || BlockId::is_older(unit.id) {
                    place = new.len() as u64;
                }
                if seeds || self.order_of(unit.id).is_none() {
                    new.push((unit.id.to_owned(), place));
                }
            }
        }
        if seeds {
            self.seed_with(new);
            return !self.is_empty();
        }
        self.extend_ids(new.iter().map(|(id, _)| id.as_str()));
        !new.is_empty()
    }
}
