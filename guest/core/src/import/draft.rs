//! A conversation on its way from an export to records.
//!
//! Every format makes the same of what it reads: nodes with an id, what each comes behind, and a turn where somebody said
//! something. What is done with them is the same for all: each record is checked by itself, branches are put in order. Knows records and their rules; must not know any format.

use super::Options;
use super::skip::{LeftOut, SkipReason, Skipped, Skips};
use super::tree::{self, Behind, Item, Link};
use crate::source::{Limits, NewRecord, Predecessor, Problem, Trust};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

/// What a node takes in memory beside its texts, roughly.
const NODE_BYTES: u64 = 256;

/// What a node comes behind, by ids as parts of source ids.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Parent {
    Start,
    /// The node before it in the export; of the first one nothing is known.
    Previous,
    Node(String),
}

/// What somebody said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Turn {
    pub(super) role: Cow<'static, str>,
    pub(super) text: String,
    pub(super) time: Option<String>,
    /// What the export vouches for, if it says anything of the kind.
    pub(super) vouched: Option<Box<Vouched>>,
}

/// What a runtime said of a turn, and the export kept.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Vouched {
    pub(super) speaker_id: Option<String>,
    pub(super) speaker_display: Option<String>,
    pub(super) kind: Option<String>,
    pub(super) principal: Option<String>,
    pub(super) tier: Option<String>,
    pub(super) trust: Option<String>,
}

/// A place in a conversation, and what was said there, if anything that is kept.
#[derive(Clone, Debug)]
pub(super) struct Node {
    /// As a part of a source id ([`super::name`]).
    pub(super) id: String,
    pub(super) parent: Parent,
    pub(super) turn: Option<Turn>,
    /// Its place in the conversation, where the export says it; those with one rank keep their order.
    pub(super) rank: i64,
}

impl Node {
    fn weight(&self) -> u64 {
        let vouched = |vouched: &Vouched| {
            let Vouched { speaker_id, speaker_display, kind, principal, tier, trust } = vouched;
            let texts = [speaker_id, speaker_display, kind, principal, tier, trust];
            texts.into_iter().flatten().map(String::len).sum::<usize>() + size_of::<Vouched>()
        };
        let turn = self
            .turn
            .as_ref()
            .map_or(0, |turn| turn.text.len() + turn.role.len() + turn.vouched.as_deref().map_or(0, vouched));
        let parent = if let Parent::Node(id) = &self.parent { id.len() } else { 0 };
        NODE_BYTES + (self.id.len() + parent + turn) as u64
    }
}

/// A record that may be kept, and how many bytes it takes in an archive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Imported {
    /// The record; its ordinal is its place in the conversation.
    pub record: NewRecord,
    /// In its archive.
    pub bytes: u64,
}

/// A conversation of an export: what can be kept of it, and what cannot.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Conversation {
    /// The file it was in, as it was given.
    pub file: String,
    /// Of its first byte in that file.
    pub offset: u64,
    /// Part of its records' ids.
    pub provider: String,
    /// Part of its records' ids; empty if it could not be found out.
    pub thread: String,
    /// As the export has it. Not kept.
    pub title: Option<String>,
    /// Each behind the one it comes behind, the main line first. Each is good by itself and no longer than a batch may be; no
    /// two have one id.
    pub records: Vec<Imported>,
    /// Records that the export has more than once, the same each time.
    pub repeated: u64,
    /// Ids of records that the export has more than once with different contents. The first counts.
    pub differs: Vec<String>,
    /// Ends of branches, of records only.
    pub branches: u64,
    /// What was left out, at most [`Options::skipped_max`]: what is missing before what nobody misses.
    pub skipped: Vec<Skipped>,
    /// All that was left out, by its reason.
    pub left_out: BTreeMap<&'static str, LeftOut>,
    /// Why there are no records.
    pub problem: Option<Problem>,
}

impl Conversation {
    /// How much was left out in all.
    #[must_use]
    pub fn skipped_count(&self) -> u64 {
        self.left_out.values().map(|one| one.count).sum()
    }

    /// Takes the records out, in batches that each fit one commit, in order.
    pub fn batches(&mut self, limits: &Limits) -> Vec<Vec<NewRecord>> {
        let mut batches = Vec::new();
        let mut batch = Vec::new();
        let mut bytes = 0;
        for Imported { record, bytes: more } in self.records.drain(..) {
            if bytes + more > limits.batch_bytes && !batch.is_empty() {
                batches.push(core::mem::take(&mut batch));
                bytes = 0;
            }
            bytes += more;
            batch.push(record);
        }
        if !batch.is_empty() {
            batches.push(batch);
        }
        batches
    }
}

/// A conversation being collected.
#[derive(Clone, Debug)]
pub(super) struct Draft {
    pub(super) offset: u64,
    /// Part of its records' ids.
    pub(super) provider: String,
    /// Part of its records' ids.
    pub(super) thread: String,
    pub(super) title: Option<String>,
    /// In the order of the export.
    pub(super) nodes: Vec<Node>,
    /// Id of the node that the main line leads to.
    pub(super) main: Option<String>,
    pub(super) skips: Skips,
    weight: u64,
    problem: Option<Problem>,
}

impl Draft {
    pub(super) fn new(offset: u64, provider: &str, thread: &str, options: &Options) -> Self {
        Self {
            offset,
            provider: provider.to_owned(),
            thread: thread.to_owned(),
            title: None,
            nodes: Vec::new(),
            main: None,
            skips: Skips::new(options.skipped_max),
            weight: 0,
            problem: None,
        }
    }

    /// Adds a node. Beyond the limits of a conversation everything is dropped, and the draft becomes a problem.
    pub(super) fn push(&mut self, node: Node, limits: &Limits) {
        if self.problem.is_some() {
            return;
        }
        self.weight += node.weight();
        self.nodes.push(node);
        if self.nodes.len() as u64 > limits.conversation_messages {
            self.give_up(problem(
                TOO_LARGE,
                format!(
                    "the conversation has more than {} messages ({} allows no more); raise the limit",
                    limits.conversation_messages,
                    Limits::CONVERSATION_MESSAGES
                ),
            ));
        }
    }

    /// Adds a node that stands for nothing that is kept.
    pub(super) fn skip(&mut self, id: String, parent: Parent, reason: SkipReason, limits: &Limits) {
        self.skips.add(Some(&id), reason);
        self.push(Node { id, parent, turn: None, rank: 0 }, limits);
    }

    /// It is too large to be kept: forgets what there is of it.
    pub(super) fn give_up(&mut self, problem: Problem) {
        self.problem = Some(problem);
        self.nodes = Vec::new();
        self.weight = 0;
    }

    /// Whether it became a problem.
    pub(super) fn is_given_up(&self) -> bool {
        self.problem.is_some()
    }

    /// Puts each node behind the one before it, and the first behind nothing.
    pub(super) fn chain(&mut self) {
        for (at, node) in self.nodes.iter_mut().enumerate() {
            node.parent = if at == 0 { Parent::Start } else { Parent::Previous };
        }
    }

    /// What it takes in memory, roughly.
    pub(super) fn weight(&self) -> u64 {
        self.weight
    }

    /// Makes records of the turns.
    pub(super) fn finish(mut self, file: &str, options: &Options, limits: &Limits) -> Conversation {
        let mut conversation = Conversation {
            file: file.to_owned(),
            offset: self.offset,
            provider: core::mem::take(&mut self.provider),
            thread: core::mem::take(&mut self.thread),
            title: self.title.take(),
            problem: self.problem.take(),
            ..Conversation::default()
        };
        if conversation.problem.is_none() {
            in_rank(&mut self.nodes);
            let repeats = take_repeats(&mut self.nodes);
            self.records(&repeats, &mut conversation, options, limits);
        }
        (conversation.skipped, conversation.left_out) = self.skips.finish();
        conversation
    }

    /// Fills in the records, in their order, and what is to be said of them. `repeats`: nodes that were taken out.
    fn records(&mut self, repeats: &[Repeat], conversation: &mut Conversation, options: &Options, limits: &Limits) {
        let sizes = self.check_turns(conversation, options, limits);
        let source_id = |id: &str| format!("{}/{}/{id}", conversation.provider, conversation.thread);
        conversation.repeated = repeats.iter().filter(|repeat| repeat.is_same).count() as u64;
        let mut differs = BTreeSet::new();
        for Repeat { id, .. } in repeats.iter().filter(|repeat| !repeat.is_same) {
            differs.insert(source_id(id));
        }
        conversation.differs.extend(differs);

        let (planned, branches) = planned(&self.nodes, self.main.as_deref());
        conversation.branches = branches;
        conversation.records.reserve_exact(planned.len());
        for (ordinal, (at, after)) in (0..).zip(planned) {
            let Some(node) = self.nodes.get_mut(at) else { continue };
            let Some(turn) = node.turn.take() else { continue };
            let mut record = NewRecord {
                provider: conversation.provider.clone(),
                thread: conversation.thread.clone(),
                ordinal,
                after,
                ..NewRecord::default()
            };
            fill(&mut record, turn, &node.id, options.trust);
            conversation.records.push(Imported { record, bytes: sizes.get(at).copied().unwrap_or_default() });
        }
    }

    /// Checks each turn as the record it will be, and takes out what is refused. How many bytes the record of each node takes.
    fn check_turns(&mut self, conversation: &Conversation, options: &Options, limits: &Limits) -> Vec<u64> {
        let mut blank = NewRecord {
            provider: conversation.provider.clone(),
            thread: conversation.thread.clone(),
            // In its place a longer name is tried than most have: with it, names are checked as they will be used.
            after: Predecessor::Start,
            ..NewRecord::default()
        };
        let mut sizes = Vec::with_capacity(self.nodes.len());
        for node in &mut self.nodes {
            let checked = node.turn.take().map(|turn| check(turn, &node.id, &mut blank, options, limits));
            let bytes = match checked {
                Some(Ok((turn, bytes))) => {
                    node.turn = Some(turn);
                    bytes
                }
                Some(Err((reason, message))) => {
                    self.skips.add_refused(Some(&node.id), reason, &message);
                    0
                }
                None => 0,
            };
            sizes.push(bytes);
        }
        sizes
    }
}

/// Places of the nodes that are kept, in their order, each with what its record comes behind; and how many branches end.
fn planned(nodes: &[Node], main: Option<&str>) -> (Vec<(usize, Predecessor)>, u64) {
    let mut previous = None;
    let items: Vec<Item<'_>> = nodes
        .iter()
        .map(|node| {
            let link = match (&node.parent, previous.replace(node.id.as_str())) {
                (Parent::Start, _) => Link::Start,
                (Parent::Previous, None) => Link::Before,
                (Parent::Previous, Some(id)) => Link::Node(id),
                (Parent::Node(id), _) => Link::Node(id),
            };
            Item { id: &node.id, link, kept: node.turn.is_some() }
        })
        .collect();
    let ordered = tree::order(&items, main);
    let predecessor = |behind: Behind<'_>| match behind {
        Behind::Start => Predecessor::Start,
        Behind::Before => Predecessor::Before,
        Behind::Place(up) => items.get(up).map_or(Predecessor::Start, |item| Predecessor::Record(item.id.to_owned())),
        Behind::Elsewhere(id) => Predecessor::Record(id.to_owned()),
    };
    let planned = ordered.order.into_iter().map(|(at, behind)| (at, predecessor(behind))).collect();
    (planned, ordered.ends)
}

/// Puts nodes in the order of their ranks, where they have any; of one rank, in the order they came in.
fn in_rank(nodes: &mut Vec<Node>) {
    if nodes.is_sorted_by_key(|node| node.rank) {
        return;
    }
    let mut ranks: Vec<(i64, usize)> = nodes.iter().enumerate().map(|(at, node)| (node.rank, at)).collect();
    ranks.sort_unstable();
    let mut from: Vec<Option<Node>> = nodes.drain(..).map(Some).collect();
    nodes.extend(ranks.into_iter().filter_map(|(_, at)| from.get_mut(at)?.take()));
}

/// A node whose id came before.
struct Repeat {
    id: String,
    is_same: bool,
}

/// Takes out nodes whose id came before. Those that say nothing need not be told.
fn take_repeats(nodes: &mut Vec<Node>) -> Vec<Repeat> {
    let mut first: BTreeMap<&str, usize> = BTreeMap::new();
    let mut again: Vec<(usize, bool)> = Vec::new();
    for (at, node) in nodes.iter().enumerate() {
        match first.get(node.id.as_str()).and_then(|first| nodes.get(*first)) {
            Some(first) => again.push((at, first.turn == node.turn)),
            None => drop(first.insert(&node.id, at)),
        }
    }
    let mut repeats = Vec::with_capacity(again.len());
    let mut again = again.into_iter().peekable();
    let mut at = 0;
    nodes.retain(|node| {
        let here = again.next_if(|(place, _)| *place == at);
        at += 1;
        if let (Some((_, is_same)), Some(_)) = (here, &node.turn) {
            repeats.push(Repeat { id: node.id.clone(), is_same });
        }
        here.is_none()
    });
    repeats
}

/// Checks a turn as the record it will be. With it, how many bytes it takes.
fn check(
    turn: Turn,
    id: &str,
    blank: &mut NewRecord,
    options: &Options,
    limits: &Limits,
) -> Result<(Turn, u64), (&'static str, String)> {
    let Turn { role, vouched, .. } = &turn;
    let (role, vouched) = (role.clone(), vouched.clone());
    fill(blank, turn, id, options.trust);
    let checked = blank.check(limits);
    let turn = Turn { role, text: core::mem::take(&mut blank.text), time: blank.time.take(), vouched };
    match checked {
        Ok(bytes) if bytes > limits.batch_bytes => {
            let reason = SkipReason::RecordTooLarge;
            Err((reason.as_str(), format!("{} ({bytes} bytes)", reason.message())))
        }
        Ok(bytes) => Ok((turn, bytes)),
        Err(problems) => Err(problems
            .into_iter()
            .next()
            .map_or((SkipReason::Malformed.as_str(), String::new()), |problem| (problem.reason, problem.message))),
    }
}

/// Puts what was said into a record. `given`: what it may count as at most, and counts as where the turn does not say.
pub(super) fn fill(record: &mut NewRecord, turn: Turn, id: &str, given: Trust) {
    let Turn { role, text, time, vouched } = turn;
    let Vouched { speaker_id, speaker_display, kind, principal, tier, trust } =
        vouched.map(|said| *said).unwrap_or_default();
    id.clone_into(&mut record.id);
    record.role = role.into_owned();
    record.text = text;
    record.time = time;
    record.speaker_id = speaker_id;
    record.speaker_display = speaker_display;
    record.speaker_kind = kind;
    record.principal = principal;
    record.tier = tier;
    record.trust = capped(trust, given);
}

/// What a record counts as: what its export says, or what whoever imports says, and never more than the latter allows. A
/// word that is none stays, and is refused as one.
fn capped(said: Option<String>, given: Trust) -> String {
    match (said, given) {
        (Some(word), Trust::Pending) if Trust::parse(&word).is_some() => given.as_str().to_owned(),
        (Some(word), _) => word,
        (None, given) => given.as_str().to_owned(),
    }
}

/// Why nothing of a conversation is kept.
pub(super) fn problem(reason: &'static str, message: impl Into<String>) -> Problem {
    Problem { code: "INVALID_ARGUMENT", reason, path: None, line: None, subject: None, message: message.into() }
}

/// The reason for a conversation that has reached a limit.
pub(super) const TOO_LARGE: &str = "conversation-too-large";

/// A place in a file of which nothing is kept.
pub(super) fn lost(file: &str, offset: u64, provider: &str, problem: Problem) -> Conversation {
    Conversation {
        file: file.to_owned(),
        offset,
        provider: provider.to_owned(),
        problem: Some(problem),
        ..Conversation::default()
    }
}
