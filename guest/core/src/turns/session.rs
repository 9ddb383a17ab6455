//! A session as a whole: its nodes in order, its branches, its turns, and what is wrong with it.

use super::dag::{Dag, Kind, at, set};
use super::fault::{SessionFault, SessionFaultCode};
use super::node::{Entry, NoEntry, NoTurn, Node, Place, read};
use crate::import::{SkipReason, cut_circles, thread_part};
use crate::source::{Limits, NewRecord, Predecessor};
use crate::text::Lines;
use crate::time::Zone;
use std::collections::{BTreeMap, BTreeSet};

/// Reads a session: node files, one after the other, or a file of lines in pieces.
pub struct SessionReader {
    thread: String,
    provider: String,
    zone: Zone,
    limits: Limits,
    lines: Lines,
    nodes: Vec<Node>,
    marks: Vec<(String, Vec<String>)>,
    faults: Vec<SessionFault>,
}

/// What a session's store says of it besides its nodes.
#[derive(Clone, Copy, Debug, Default)]
pub struct Heads<'a> {
    /// The node the conversation is at. None: it does not say, and the newest branch counts as the current one.
    pub current: Option<&'a str>,
    /// Nodes whose branches were put away. The current branch is never one of them.
    pub archived: &'a [&'a str],
}

/// A turn: what a person said or what the assistant replied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Turn<'s> {
    /// The node it is.
    pub node: &'s Node,
    /// The record it is in an archive: complete, and such as an archive takes by itself.
    pub record: &'s NewRecord,
}

impl Turn<'_> {
    /// Its source id, which is what evidence and citations know it by.
    #[must_use]
    pub fn source_id(&self) -> String {
        let NewRecord { provider, thread, id, .. } = self.record;
        format!("{provider}/{thread}/{id}")
    }
}

/// A branch, by its last row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Branch {
    pub(super) tip: usize,
    /// The conversation is on it.
    pub current: bool,
    /// It was put away: what only it has is not owed.
    pub archived: bool,
}

/// A session. Whatever is wrong with it is in [`Session::faults`]; everything else is as if that were not there.
#[derive(Clone, Debug)]
pub struct Session {
    pub(super) nodes: Vec<Node>,
    pub(super) dag: Dag,
    by_id: BTreeMap<String, usize>,
    branches: Vec<Branch>,
    faults: Vec<SessionFault>,
}

impl SessionReader {
    /// Of the session with this id, whose turns are archived under this provider. Times are written in the zone, as the
    /// program that archives sessions besides writes them.
    #[must_use]
    pub fn new(provider: &str, session: &str, zone: &Zone, limits: &Limits) -> Self {
        let max = usize::try_from(limits.conversation_bytes).unwrap_or(usize::MAX);
        Self {
            thread: thread_part(session).unwrap_or_default().into_owned(),
            provider: provider.to_owned(),
            zone: zone.clone(),
            limits: *limits,
            lines: Lines::new(max),
            nodes: Vec::new(),
            marks: Vec::new(),
            faults: Vec::new(),
        }
    }

    /// Takes a node's file. `name` is what the store calls it; marks are written back under that name.
    pub fn file(&mut self, name: &str, bytes: &[u8]) {
        let is_long = bytes.len() as u64 > self.limits.conversation_bytes;
        self.take(Place::File(name.to_owned()), bytes, is_long);
    }

    /// Takes the next piece of a file of lines.
    pub fn lines(&mut self, mut piece: &[u8]) {
        let mut lines = core::mem::replace(&mut self.lines, Lines::new(0));
        while let Some(line) = lines.next(&mut piece) {
            self.take(Place::Line(line.number), line.bytes, line.long);
        }
        self.lines = lines;
    }

    fn take(&mut self, place: Place, bytes: &[u8], is_long: bool) {
        let is_line = matches!(place, Place::Line(_));
        if is_line && bytes.iter().all(u8::is_ascii_whitespace) {
            return;
        }
        let entry = if is_long {
            Err(NoEntry { code: SessionFaultCode::NodeTooLong, node: None, detail: String::new() })
        } else {
            read(bytes, place.clone(), &self.zone)
        };
        match entry {
            Ok(Entry::Node(node)) => self.nodes.push(node),
            Ok(Entry::Mark { workspace, nodes }) => self.marks.push((workspace, nodes)),
            Err(NoEntry { code, node, detail }) => {
                self.faults.push(SessionFault { code, place: Some(place), node, detail });
            }
        }
    }

    /// There is no more.
    #[must_use]
    pub fn finish(mut self, heads: &Heads<'_>) -> Session {
        let mut lines = core::mem::replace(&mut self.lines, Lines::new(0));
        if let Some(line) = lines.last() {
            self.take(Place::Line(line.number), line.bytes, line.long);
        }
        let Self { thread, provider, limits, mut nodes, marks, mut faults, .. } = self;
        nodes.sort_by_key(|node| node.rank.unwrap_or(i64::MAX));
        let by_id = take_repeats(&mut nodes, &mut faults);
        for (workspace, ids) in marks {
            for place in ids.iter().filter_map(|id| by_id.get(id)) {
                if let Some(node) = nodes.get_mut(*place) {
                    node.marks.insert(workspace.clone());
                }
            }
        }
        let parents = parents(&nodes, &by_id, &mut faults);
        let dag = Dag::new(nodes.iter().map(kind).collect(), &parents);
        let mut session = Session { nodes, dag, by_id, branches: Vec::new(), faults };
        session.complete_records(&provider, &thread, &limits);
        session.find_branches(heads);
        session
    }
}

fn kind(node: &Node) -> Kind {
    match &node.turn {
        Err(NoTurn::LeftOut(SkipReason::ToolCall | SkipReason::Rewound | SkipReason::UnknownRole)) => Kind::Through,
        Err(NoTurn::LeftOut(SkipReason::ProgramMessage)) => Kind::Aside,
        Ok(_) | Err(_) => Kind::Row,
    }
}

/// Takes out nodes whose id came before, their marks put with the first: none of them was written for nothing.
fn take_repeats(nodes: &mut Vec<Node>, faults: &mut Vec<SessionFault>) -> BTreeMap<String, usize> {
    let mut by_id: BTreeMap<String, usize> = BTreeMap::new();
    let mut kept: Vec<Node> = Vec::with_capacity(nodes.len());
    for node in nodes.drain(..) {
        match by_id.get(&node.id).and_then(|place| kept.get_mut(*place)) {
            Some(first) => {
                first.marks.extend(node.marks);
                if (&first.turn, &first.predecessor) != (&node.turn, &node.predecessor) {
                    faults.push(SessionFault {
                        code: SessionFaultCode::DuplicateNode,
                        detail: format!("the one that counts is in {}", first.place),
                        place: Some(node.place),
                        node: Some(node.id),
                    });
                }
            }
            None => {
                by_id.insert(node.id.clone(), kept.len());
                kept.push(node);
            }
        }
    }
    *nodes = kept;
    by_id
}

/// What each node comes behind. Where that is not there, or nodes go in a circle, something begins.
fn parents(nodes: &[Node], by_id: &BTreeMap<String, usize>, faults: &mut Vec<SessionFault>) -> Vec<Option<usize>> {
    let mut fault = |code, node: &Node, detail| {
        faults.push(SessionFault { code, place: Some(node.place.clone()), node: Some(node.id.clone()), detail });
    };
    let mut parents: Vec<Option<usize>> = Vec::with_capacity(nodes.len());
    for node in nodes {
        let parent = node.predecessor.as_ref().and_then(|id| by_id.get(id)).copied();
        if let (Some(id), None) = (&node.predecessor, parent) {
            fault(SessionFaultCode::MissingPredecessor, node, format!("it comes behind {id}"));
        }
        parents.push(parent);
    }
    let cut = cut_circles(&mut parents);
    for (node, _) in nodes.iter().zip(cut).filter(|(_, cut)| *cut) {
        let detail = format!("it comes behind {}", node.predecessor.as_deref().unwrap_or_default());
        fault(SessionFaultCode::CircularPredecessors, node, detail);
    }
    parents
}

impl Session {
    /// Gives every record its conversation and its place, and leaves out those that no archive would take.
    fn complete_records(&mut self, provider: &str, thread: &str, limits: &Limits) {
        // The message of the nearest turn at or above each node, by place.
        let mut said: Vec<Option<usize>> = vec![None; self.nodes.len()];
        let order: Vec<usize> = self.dag.order().collect();
        let mut faults: Vec<(usize, SessionFault)> = Vec::new();
        for place in order {
            let before = self.dag.above(place).and_then(|above| at(&said, above).flatten());
            let after = before.and_then(|place| self.nodes.get(place)).and_then(|node| node.turn.as_ref().ok());
            let after = after.map_or(Predecessor::Start, |record| Predecessor::Record(record.id.clone()));
            let ordinal = i64::from(self.dag.depth(place));
            let Some(node) = self.nodes.get_mut(place) else { continue };
            if let Ok(record) = &mut node.turn {
                provider.clone_into(&mut record.provider);
                thread.clone_into(&mut record.thread);
                record.ordinal = ordinal;
                record.after = after;
                if let Err((reason, detail)) = archivable(record, limits) {
                    faults.push((place, fault_of(SessionFaultCode::RefusedTurn, node, detail)));
                    node.turn = Err(NoTurn::Refused(reason));
                }
            }
            match &node.turn {
                Err(NoTurn::LeftOut(SkipReason::NoAuthority)) => {
                    faults.push((place, fault_of(SessionFaultCode::NodeWithoutAuthority, node, String::new())));
                }
                Err(NoTurn::LeftOut(SkipReason::UnknownRole)) => {
                    faults.push((place, fault_of(SessionFaultCode::UnknownRole, node, String::new())));
                }
                _ => {}
            }
            let last = if node.turn.is_ok() { Some(place) } else { before };
            set(&mut said, place, last);
        }
        faults.sort_by_key(|(place, _)| *place);
        self.faults.extend(faults.into_iter().map(|(_, fault)| fault));
    }

    fn find_branches(&mut self, heads: &Heads<'_>) {
        let head = heads.current.and_then(|id| self.by_id.get(id)).copied();
        if let (Some(id), None) = (heads.current, head) {
            self.faults.push(SessionFault {
                code: SessionFaultCode::UnknownHead,
                place: None,
                node: Some(id.to_owned()),
                detail: String::new(),
            });
        }
        let newest = || self.dag.tips().last().copied();
        let Some(head) = head.and_then(|head| self.dag.row(head)).or_else(newest) else { return };
        let archived: BTreeSet<usize> = heads
            .archived
            .iter()
            .filter_map(|id| self.dag.row(*self.by_id.get(*id)?))
            .filter(|row| *row != head)
            .collect();
        let branch = |tip: usize| Branch { tip, current: tip == head, archived: archived.contains(&tip) };
        let others = self.dag.tips().iter().copied().filter(|tip| *tip != head);
        self.branches = core::iter::once(head).chain(others).map(branch).collect();
    }

    /// What is wrong, in the order in which it was found: what was read, then how it hangs together.
    #[must_use]
    pub fn faults(&self) -> &[SessionFault] {
        &self.faults
    }

    /// Its nodes, in order. Each id is there once.
    #[must_use]
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// The node with this id.
    #[must_use]
    pub fn node(&self, id: &str) -> Option<&Node> {
        self.nodes.get(*self.by_id.get(id)?)
    }

    /// Its branches, the current one first, the others in the order of their last rows. The current one may end within
    /// another.
    #[must_use]
    pub fn branches(&self) -> &[Branch] {
        &self.branches
    }

    /// A branch's last row.
    #[must_use]
    pub fn tip(&self, branch: Branch) -> Option<&Node> {
        self.nodes.get(branch.tip)
    }

    /// The rows of a branch, oldest first, those of the runtime among them.
    #[must_use]
    pub fn rows(&self, branch: Branch) -> Vec<&Node> {
        let mut rows: Vec<&Node> = self.dag.upwards(branch.tip).filter_map(|place| self.nodes.get(place)).collect();
        rows.reverse();
        rows
    }

    /// Every turn of every branch, in the order of the nodes.
    pub fn turns(&self) -> impl Iterator<Item = Turn<'_>> {
        self.nodes.iter().filter_map(turn)
    }

    pub(super) fn turn_at(&self, place: usize) -> Option<Turn<'_>> {
        turn(self.nodes.get(place)?)
    }

    pub(super) fn place(&self, id: &str) -> Option<usize> {
        self.by_id.get(id).copied()
    }

    /// Takes note that these nodes were marked in their store. Ids that it does not have mean nothing.
    pub fn mark<'i>(&mut self, ids: impl IntoIterator<Item = &'i str>, workspace: &str) {
        for id in ids {
            if let Some(node) = self.by_id.get(id).and_then(|place| self.nodes.get_mut(*place)) {
                node.marks.insert(workspace.to_owned());
            }
        }
    }
}

fn turn(node: &Node) -> Option<Turn<'_>> {
    Some(Turn { node, record: node.turn.as_deref().ok()? })
}

fn fault_of(code: SessionFaultCode, node: &Node, detail: String) -> SessionFault {
    SessionFault { code, place: Some(node.place.clone()), node: Some(node.id.clone()), detail }
}

fn archivable(record: &NewRecord, limits: &Limits) -> Result<(), (&'static str, String)> {
    match record.check(limits) {
        Ok(bytes) if bytes > limits.batch_bytes => {
            let detail = format!("{bytes} bytes are more than {} allows", Limits::BATCH_BYTES);
            Err((SkipReason::RecordTooLarge.as_str(), detail))
        }
        Ok(_) => Ok(()),
        Err(problems) => problems.into_iter().next().map_or(Ok(()), |problem| Err((problem.reason, problem.message))),
    }
}
