//! From a request to what is to be done, or why not.

use super::fault::{Fault, Reason, Rejection};
use super::quoted::{Provenance, quoted_records};
use super::records::{self, Ground};
use super::request::{CheckedEdit, Request};
use crate::ids::{SourceId, SourceRef, TopicPath};
use crate::source::{self, Batch, BatchError, Kept as KeptRecord, LimitReached, Outcome, Tier};
use crate::text::{caseless, is_whitespace};
use crate::topic::edit::{Committed, Edit, Evidence, Kept, NewBlock, NewFootnote, Planned, plan as plan_edit};
use crate::topic::{Block, Check, Sources, TopicRef, with_lf};
use crate::views::CORE_TOPIC;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

/// Who asks, and for what they may rest claims on.
#[derive(Clone, Debug, Default)]
pub struct Caller {
    /// Whoever is not the owner may add to topics, and do nothing else; and nothing to `topics/core.md`.
    pub tier: Option<Tier>,
    /// On whose authority sources are quoted; none: nothing can be quoted.
    pub provenance: Option<Provenance>,
    /// The only evidence, besides what is quoted, that blocks may newly rest on; none: whatever is trusted.
    pub offered: Option<BTreeSet<SourceRef>>,
}

impl Caller {
    fn may_only_add(&self) -> bool {
        self.tier != Some(Tier::Owner)
    }
}

/// A request of somebody, as far as it can be checked without the workspace: what to look up there, and then how to plan.
#[derive(Debug)]
pub struct Draft {
    request: Request,
    caller: Caller,
    batch: Batch,
    /// The records that quoted sources become, by the names that the request gives them.
    quoted: BTreeMap<String, SourceId>,
}

/// The workspace that an update is planned in.
#[derive(Clone, Copy)]
pub struct Workspace<'w> {
    /// What its state is called now. The first is told to whom has another one; a request may name any of them.
    pub revisions: &'w [&'w str],
    /// Its topics.
    pub committed: &'w dyn Committed,
    /// Its archives, as they are before the update.
    pub evidence: &'w dyn Evidence,
}

/// What an update comes to. Nothing is done yet; made only by [`Draft::plan`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    given: Vec<TopicPath>,
    topics: BTreeMap<TopicPath, Option<String>>,
    archive: source::Plan,
    source_ids: BTreeMap<String, SourceId>,
    block_ids: Vec<NewBlock>,
    evidence_ids: Vec<NewFootnote>,
    created: Vec<String>,
    changed: Vec<String>,
    removed: Vec<String>,
    commit_message: String,
}

impl Plan {
    /// The topics that change, as they shall be; none: gone.
    #[must_use]
    pub fn topics(&self) -> &BTreeMap<TopicPath, Option<String>> {
        &self.topics
    }

    /// The topics that the request is about, in order, whether or not they change.
    #[must_use]
    pub fn given(&self) -> &[TopicPath] {
        &self.given
    }

    /// What to append to archives, and what became of each quoted source.
    #[must_use]
    pub fn archive(&self) -> &source::Plan {
        &self.archive
    }

    /// The records that quoted sources are, by the names that the request gives them.
    #[must_use]
    pub fn source_ids(&self) -> &BTreeMap<String, SourceId> {
        &self.source_ids
    }

    /// Ids that blocks were given, by topic and in order.
    #[must_use]
    pub fn block_ids(&self) -> &[NewBlock] {
        &self.block_ids
    }

    /// Labels that footnotes were given, by topic and in order. A local label means something in its topic only.
    #[must_use]
    pub fn evidence_ids(&self) -> &[NewFootnote] {
        &self.evidence_ids
    }

    /// Ids that no topic had before, in order.
    #[must_use]
    pub fn created(&self) -> &[String] {
        &self.created
    }

    /// Ids of blocks that stay and say something else, rest on something else or stand somewhere else; in order.
    #[must_use]
    pub fn changed(&self) -> &[String] {
        &self.changed
    }

    /// Ids that no topic has any longer, in order.
    #[must_use]
    pub fn removed(&self) -> &[String] {
        &self.removed
    }

    /// What is said of it in the history.
    #[must_use]
    pub fn commit_message(&self) -> &str {
        &self.commit_message
    }

    /// Whether there is nothing to do.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.topics.is_empty() && self.archive.changes.is_empty() && self.archive.branches.is_empty()
    }
}

impl Draft {
    /// Checks everything about a request that does not depend on the workspace. `provider` is the one that quoted sources
    /// are archived under.
    ///
    /// # Errors
    /// [`Rejection::Refused`]: sources are quoted on nobody's authority, or cannot be archived; or the caller may not edit
    /// what the request is about.
    pub fn new(request: Request, caller: Caller, provider: &str, limits: &source::Limits) -> Result<Self, Rejection> {
        let records = match (&caller.provenance, request.sources()) {
            (_, []) => Vec::new(),
            (Some(provenance), sources) => quoted_records(sources, provenance, provider),
            (None, _) => {
                return Err(Rejection::Refused(vec![Fault::at(Reason::AuthorityIncomplete, "sources")]));
            }
        };
        let batch = Batch::check(records, limits).map_err(|error| {
            Rejection::Refused(match error {
                BatchError::Refused(problems) => problems.into_iter().map(Fault::of_source).collect(),
                BatchError::Limit(LimitReached { name, allowed, asked, .. }) => {
                    vec![Fault::over(Reason::SourcesTooLarge, "sources", name, allowed, asked)]
                }
            })
        })?;
        // They are of one conversation, in which they keep their order.
        let ids = batch.paths().into_iter().flat_map(|path| batch.offered(path)).map(|(id, _)| id.clone());
        let quoted = request.sources().iter().map(|source| source.label.clone()).zip(ids).collect();
        Ok(Self { request, caller, batch, quoted })
    }

    /// The request.
    #[must_use]
    pub fn request(&self) -> &Request {
        &self.request
    }

    /// The records to archive; perhaps none. What archives say of them is what [`Draft::plan`] takes.
    #[must_use]
    pub fn batch(&self) -> &Batch {
        &self.batch
    }

    /// Whether the request was made for the workspace as it is.
    ///
    /// # Errors
    /// [`Rejection::Stale`].
    pub fn check_revision(&self, revisions: &[&str]) -> Result<(), Rejection> {
        let base = self.request.base_revision();
        if revisions.contains(&base) {
            return Ok(());
        }
        let revision = revisions.first().copied().unwrap_or_default().to_owned();
        Err(Rejection::Stale { base: base.to_owned(), revision })
    }

    /// Plans the update. `archive` is what [`Draft::batch`] comes to in the workspace's archives.
    ///
    /// # Errors
    /// A rejection; then nothing is to be changed. Faults are told of one stage at a time: the archive; what the request
    /// asks for; the topics as they would be.
    pub fn plan(&self, workspace: Workspace<'_>, archive: source::Plan) -> Result<Plan, Rejection> {
        self.check_revision(workspace.revisions)?;
        let differing = archive.records.iter().filter(|record| matches!(record.outcome, Outcome::Differs { .. }));
        let faults: Vec<Fault> = differing
            .map(|record| Fault::of(Reason::QuotedSourceDiffers, &*record.path).about(record.id.to_string()))
            .collect();
        refuse_if_any(faults)?;
        let evidence = WithQuoted::new(&archive.records, workspace.evidence);
        let wanted = self.wanted(workspace, &evidence)?;
        let edit = Edit {
            topics: wanted.topics.iter().map(|(path, text)| (path.clone(), text.as_deref())).collect(),
            removed: wanted.removed,
            offered: self.caller.offered.clone().map(|mut offered| {
                offered.extend(self.quoted.values().cloned().map(SourceRef::Record));
                offered
            }),
            quoted: self.quoted.clone(),
            mend: false,
        };
        let planned = plan_edit(&edit, workspace.committed, &evidence)
            .map_err(|faults| Rejection::Refused(faults.into_iter().map(Fault::of_edit).collect()))?;
        if self.caller.may_only_add() {
            refuse_if_any(rewritten(&planned, workspace.committed, &evidence))?;
        }
        let (changed, removed) = differences(&planned, workspace.committed, &evidence);
        Ok(Plan {
            given: edit.topics.keys().cloned().collect(),
            topics: planned.topics,
            archive,
            source_ids: self.quoted.clone(),
            block_ids: planned.blocks,
            evidence_ids: planned.footnotes,
            created: planned.created,
            changed,
            removed,
            commit_message: self.request.commit_message.clone(),
        })
    }

    /// The topics as the request wants them.
    fn wanted<'r>(&'r self, workspace: Workspace<'_>, evidence: &dyn Evidence) -> Result<Wanted<'r>, Rejection> {
        let committed = workspace.committed;
        let mut faults = self.denied();
        let mut wanted = Wanted { topics: BTreeMap::new(), removed: self.request.removed.clone() };
        for id in wanted.removed.iter().filter(|id| committed.topics_of(id).is_empty()) {
            faults.push(Fault::at(Reason::NoSuchRecord, "removed_blocks").about(id.as_str()));
        }
        match &self.request.edit {
            CheckedEdit::Patch(patch) => {
                for file in patch.files() {
                    let path = file.path();
                    if !file.deletes() && committed.is_there(path) && committed.text(path).is_none() {
                        faults.push(Fault::of(Reason::UnreadableTopic, path.as_str()).in_field("patch"));
                        continue;
                    }
                    // A topic that is no text may go.
                    let there = committed.text(path).or(committed.is_there(path).then_some(""));
                    match file.apply(there) {
                        Ok(text) => drop(wanted.topics.insert(path.clone(), text.map(Cow::Owned))),
                        Err(conflict) => faults.push(Fault::of_conflict(conflict, path)),
                    }
                }
            }
            CheckedEdit::Changes(changes) => {
                for (at, (path, content)) in changes.iter().enumerate() {
                    if content.is_none() && !committed.is_there(path) {
                        let field = format!("changes[{at}].path");
                        faults.push(Fault::of(Reason::NoSuchTopic, path.as_str()).in_field(field));
                    }
                    wanted.topics.insert(path.clone(), content.as_deref().map(Cow::Borrowed));
                }
            }
            CheckedEdit::Records(operations) => {
                let ground = Ground { committed, evidence, quoted: &self.quoted };
                match records::edit(operations, ground) {
                    Ok(edited) => {
                        let topics = edited.topics.into_iter();
                        wanted.topics.extend(topics.map(|(path, text)| (path, Some(Cow::Owned(text)))));
                        wanted.removed.extend(edited.removed);
                    }
                    Err(more) => faults.extend(more),
                }
            }
        }
        if self.caller.may_only_add() {
            for (path, text) in &wanted.topics {
                if !only_adds(text.as_deref(), path, committed) {
                    faults.push(Fault::of(Reason::RewritesCommitted, path.as_str()));
                }
            }
        }
        refuse_if_any(faults)?;
        Ok(wanted)
    }

    /// Topics that the request is about, and that this caller may not edit.
    fn denied(&self) -> Vec<Fault> {
        if !self.caller.may_only_add() {
            return Vec::new();
        }
        let paths: Vec<&TopicPath> = match &self.request.edit {
            CheckedEdit::Patch(patch) => patch.files().iter().map(|file| file.path()).collect(),
            CheckedEdit::Changes(changes) => changes.iter().map(|(path, _)| path).collect(),
            CheckedEdit::Records(operations) => operations.iter().filter_map(|one| one.destination()).collect(),
        };
        let core = paths.into_iter().filter(|path| is_core(path));
        core.map(|path| Fault::of(Reason::CoreOwnerOnly, path.as_str())).collect()
    }
}

fn refuse_if_any(faults: Vec<Fault>) -> Result<(), Rejection> {
    if faults.is_empty() { Ok(()) } else { Err(Rejection::Refused(faults)) }
}

/// Topics as a request wants them, and ids that are meant to disappear.
struct Wanted<'r> {
    topics: BTreeMap<TopicPath, Option<Cow<'r, str>>>,
    removed: BTreeSet<String>,
}

/// Whether this is the topic that every prompt gets, on some medium at least: one may take names that differ in case only
/// for one.
fn is_core(path: &TopicPath) -> bool {
    caseless(path.as_str()) == CORE_TOPIC
}

/// Whether a topic begins with all that it says now.
fn only_adds(text: Option<&str>, path: &TopicPath, committed: &dyn Committed) -> bool {
    let Some(text) = text else { return false };
    let Some(before) = committed.text(path) else { return !committed.is_there(path) };
    let (before, text) = (with_lf(before), with_lf(text));
    let before = before.trim_end_matches(is_whitespace);
    text.strip_prefix(before).is_some_and(|added| added.is_empty() || added.starts_with(is_whitespace))
}

/// The archives as they will be: with the quoted sources that are new.
#[derive(Clone, Copy)]
pub struct WithQuoted<'w> {
    records: &'w [KeptRecord],
    before: &'w dyn Evidence,
}

impl<'w> WithQuoted<'w> {
    /// With what a batch comes to, over the archives as they are.
    #[must_use]
    pub fn new(records: &'w [KeptRecord], before: &'w dyn Evidence) -> Self {
        Self { records, before }
    }

    /// Whether something may be built on it: it is there and trusted.
    #[must_use]
    pub fn is_trusted(&self, evidence: &SourceRef) -> bool {
        self.look_up(evidence).is_some_and(|kept| kept.trusted)
    }
}

impl Sources for WithQuoted<'_> {
    fn record_at(&self, path: &str, anchor: &str) -> Option<SourceId> {
        let new = self.records.iter().find(|record| record.path == path && record.anchor == anchor);
        new.map(|record| record.id.clone()).or_else(|| self.before.record_at(path, anchor))
    }
}

impl Evidence for WithQuoted<'_> {
    fn look_up(&self, evidence: &SourceRef) -> Option<Kept> {
        let new = self.records.iter().find(|record| {
            record.outcome == Outcome::Archived && matches!(evidence, SourceRef::Record(id) if *id == record.id)
        });
        match new {
            Some(record) => Some(Kept { path: record.path.clone(), trusted: true }),
            None => self.before.look_up(evidence),
        }
    }
}

/// Blocks of the topics that change, before and after.
struct Compared<'p> {
    path: &'p TopicPath,
    before: Option<Check<'p>>,
    after: Option<Check<'p>>,
}

fn compared<'p>(planned: &'p Planned, committed: &'p dyn Committed, evidence: &dyn Evidence) -> Vec<Compared<'p>> {
    let check = |path: &TopicPath, text: &'p str| Check::new(path.clone(), TopicRef::parse(text), evidence);
    let compare = |(path, text): (&'p TopicPath, &'p Option<String>)| Compared {
        path,
        before: committed.text(path).map(|text| check(path, text)),
        after: text.as_deref().map(|text| check(path, text)),
    };
    planned.topics.iter().map(compare).collect()
}

/// What a block says, rests on and stands under.
fn standing<'c>(block: &Block<'c, '_>) -> (String, Vec<&'c SourceRef>, Vec<String>, Vec<&'c str>) {
    let times = block.footnotes().map(|footnote| footnote.definition().time().as_str());
    let headings = block.headings().into_iter().map(str::to_owned).collect();
    (with_lf(block.body().as_str()).into_owned(), block.evidence().collect(), headings, times.collect())
}

/// Committed blocks that an edit which may only add would change all the same: by a definition, say, of what they cite.
fn rewritten(planned: &Planned, committed: &dyn Committed, evidence: &dyn Evidence) -> Vec<Fault> {
    let mut faults = Vec::new();
    for one in compared(planned, committed, evidence) {
        let Some(before) = &one.before else {
            if committed.is_there(one.path) {
                faults.push(Fault::of(Reason::RewritesCommitted, one.path.as_str()));
            }
            continue;
        };
        let after: BTreeMap<&str, Block<'_, '_>> = one.after.iter().flat_map(blocks_by_id).collect();
        for (id, block) in blocks_by_id(before) {
            let same = after.get(id).is_some_and(|now| same_claim(&block, now));
            if !same {
                let line = block.paragraph().lump().line();
                faults.push(Fault::of(Reason::RewritesCommitted, one.path.as_str()).in_line(line).about(id));
            }
        }
    }
    faults
}

/// Whether two blocks say the same and rest on the same, whatever their footnotes are called.
fn same_claim(a: &Block<'_, '_>, b: &Block<'_, '_>) -> bool {
    let times = |block: &Block<'_, '_>| -> Vec<String> {
        block.footnotes().map(|footnote| footnote.definition().time().as_str().to_owned()).collect()
    };
    a.content() == b.content() && a.evidence().eq(b.evidence()) && times(a) == times(b)
}

fn blocks_by_id<'c, 'a>(check: &'c Check<'a>) -> impl Iterator<Item = (&'a str, Block<'c, 'a>)> {
    check.all_blocks().flat_map(|block| {
        let ids: Vec<&'a str> = block.ids().iter().map(|id| id.as_str()).collect();
        ids.into_iter().map(move |id| (id, block.clone()))
    })
}

/// Ids of blocks that change, and of those that disappear.
fn differences(planned: &Planned, committed: &dyn Committed, evidence: &dyn Evidence) -> (Vec<String>, Vec<String>) {
    let compared = compared(planned, committed, evidence);
    let mut before: BTreeMap<&str, (&TopicPath, Block<'_, '_>)> = BTreeMap::new();
    let mut order = Vec::new();
    for one in &compared {
        for (id, block) in one.before.iter().flat_map(blocks_by_id) {
            if !before.contains_key(id) {
                before.insert(id, (one.path, block));
                order.push(id);
            }
        }
    }
    let mut now = BTreeSet::new();
    let mut changed = Vec::new();
    for one in &compared {
        for (id, block) in one.after.iter().flat_map(blocks_by_id) {
            if !now.insert(id) {
                continue;
            }
            let same =
                |(path, old): &(&TopicPath, Block<'_, '_>)| *path == one.path && standing(old) == standing(&block);
            if before.get(id).is_some_and(|old| !same(old)) {
                changed.push(id.to_owned());
            }
        }
    }
    let stays = |id: &str| committed.topics_of(id).iter().any(|path| !planned.topics.contains_key(path));
    let removed = order.into_iter().filter(|id| !now.contains(id) && !stays(id)).map(str::to_owned).collect();
    (changed, removed)
}
