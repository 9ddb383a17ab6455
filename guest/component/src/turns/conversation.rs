//! A conversation: its nodes as they are handed over, what it owes, and its marks.
//!
//! Knows the order of calls. What a conversation says core's `turns` knows.

use std::cell::RefCell;
use std::collections::BTreeMap;

use recollex_core::ids::{SourceId, SourceRef, WorkspaceId};
use recollex_core::source::Tier;
use recollex_core::topic::edit::Evidence as _;
use recollex_core::turns::{
    Batch, Citations, Heads, LedgerEntry, Owed, Place, Receipts, Session as Nodes, SessionFault, SessionReader, Turn,
    TurnLimits, mark_line, mark_node,
};
use recollex_core::views::VOCABULARY;

use super::files;
use super::writing;
use crate::bindings::exports::recollex::memory::turns as wit;
use crate::bindings::exports::recollex::memory::workspace::SessionBorrow;
use crate::bindings::recollex::memory::model;
use crate::bindings::recollex::memory::types::Severity;
use crate::change::{self, carry_out};
use crate::convert;
use crate::evidence::Archives;
use crate::reading;
use crate::session::{Session, refused, settled};
use crate::view::View;

/// So many turns are counted by one call of the host.
const COUNTED_TOGETHER: usize = 64;

/// A conversation.
pub(crate) struct Conversation {
    pub(super) session: Session,
    /// As its store knows it.
    pub(super) id: String,
    state: RefCell<State>,
}

enum State {
    /// Nodes come.
    Taking(Box<SessionReader>),
    /// All came.
    Whole(Box<Nodes>),
}

impl Conversation {
    fn taking<T>(&self, take: impl FnOnce(&mut SessionReader) -> T) -> Result<T, wit::Error> {
        match &mut *self.state.borrow_mut() {
            State::Taking(reader) => Ok(take(reader)),
            State::Whole(_) => Err(out_of_order("the conversation was finished; open it anew")),
        }
    }

    /// Asks the whole conversation.
    pub(super) fn whole<T>(&self, ask: impl FnOnce(&Nodes) -> Result<T, wit::Error>) -> Result<T, wit::Error> {
        match &*self.state.borrow() {
            State::Whole(nodes) => ask(nodes),
            State::Taking(_) => Err(out_of_order("hand all nodes over and finish the conversation first")),
        }
    }

    /// Receipts whose nodes are all marked go.
    pub(super) fn settle(&self, nodes: &Nodes, workspace: WorkspaceId) -> Result<(), wit::Error> {
        let settled = || {
            let (mut receipts, found) = files::receipts()?;
            Ok(receipts.settle(&self.id, nodes, workspace).then_some((receipts, found)))
        };
        // No lock is taken to find out that there is nothing to do.
        if settled()?.is_none() {
            return Ok(());
        }
        let plan = || {
            let changes = settled()?.and_then(|(receipts, found)| found.change(Receipts::PATH, receipts.file()));
            Ok(change::Planned { changes: changes.into_iter().collect(), note: "receipts".to_owned(), basis: () })
        };
        carry_out(&self.session, "marked", plan, |error| error).map(|_| ())
    }

    /// These nodes were marked in their store.
    fn note_marks(&self, nodes: &[String], workspace: &str) {
        if let State::Whole(whole) = &mut *self.state.borrow_mut() {
            whole.mark(nodes.iter().map(String::as_str), workspace);
        }
    }
}

impl wit::GuestConversation for Conversation {
    fn open(of: SessionBorrow<'_>, provider: String, id: String) -> Result<wit::Conversation, wit::Error> {
        let session = super::of(&of)?;
        let reader = SessionReader::new(&provider, &id, &session.zone, &session.settings.limits());
        let state = RefCell::new(State::Taking(Box::new(reader)));
        Ok(wit::Conversation::new(Self { session, id, state }))
    }

    fn push_file(&self, name: String, text: String) -> Result<(), wit::Error> {
        self.taking(|reader| reader.file(&name, text.as_bytes()))
    }

    fn push_file_bytes(&self, name: String, data: Vec<u8>) -> Result<(), wit::Error> {
        self.taking(|reader| reader.file(&name, &data))
    }

    fn push_lines(&self, text: String) -> Result<(), wit::Error> {
        self.taking(|reader| reader.lines(text.as_bytes()))
    }

    fn push_lines_bytes(&self, data: Vec<u8>) -> Result<(), wit::Error> {
        self.taking(|reader| reader.lines(&data))
    }

    fn finish(&self, heads: wit::Heads) -> Result<Vec<wit::Finding>, wit::Error> {
        let fresh = SessionReader::new("", "", &self.session.zone, &self.session.settings.limits());
        let reader = self.taking(|reader| core::mem::replace(reader, fresh))?;
        let archived: Vec<&str> = heads.archived.iter().map(String::as_str).collect();
        let nodes = reader.finish(&Heads { current: heads.current.as_deref(), archived: &archived });
        let findings = nodes.faults().iter().map(|fault| finding(&self.id, fault)).collect();
        self.state.replace(State::Whole(Box::new(nodes)));
        Ok(findings)
    }

    fn pending(&self) -> Result<wit::Pending, wit::Error> {
        let workspace = files::workspace()?;
        let (receipts, _) = files::receipts()?;
        self.whole(|nodes| {
            let unmarked = receipts.unmarked(&self.id, nodes, workspace);
            if unmarked.is_empty() {
                return Ok(pending(nodes, &nodes.owed(workspace), 0));
            }
            let mut marked = nodes.clone();
            marked.mark(unmarked.iter().copied(), &workspace.to_string());
            Ok(pending(&marked, &marked.owed(workspace), unmarked.len() as u64))
        })
    }

    fn ledger(&self) -> Result<wit::Ledger, wit::Error> {
        let workspace = files::workspace()?;
        let view = View::of(Tier::Owner)?;
        settled(|_| {
            let topics = reading::known(&self.session, &view)?;
            let citations = Citations::of(&topics.table);
            let faulty = topics.table.entries().filter(|(_, entry)| !entry.is_sound());
            let faulty_topics = faulty.map(|(path, _)| path.to_string()).collect();
            let archives = Archives::of(&view, &self.session.settings.limits());
            let is_archived =
                |id: &str| SourceId::for_reading(id).is_ok_and(|id| archives.look_up(&SourceRef::Record(id)).is_some());
            let entries = self.whole(|nodes| {
                let ledger = nodes.ledger(workspace, &citations, &is_archived);
                let classes = [
                    (wit::LedgerClass::Unmarked, &ledger.unmarked),
                    (wit::LedgerClass::MarkedUncited, &ledger.marked_uncited),
                    (wit::LedgerClass::Stranded, &ledger.stranded),
                    (wit::LedgerClass::CitedUnmarked, &ledger.cited_unmarked),
                ];
                let of = |(class, entries): (_, &Vec<LedgerEntry<'_>>)| {
                    entries.iter().map(move |entry| listed(class, entry)).collect::<Vec<_>>()
                };
                Ok(classes.into_iter().flat_map(of).collect())
            })?;
            archives.check()?;
            Ok(wit::Ledger { entries, faulty_topics })
        })
    }

    fn write(&self, options: wit::WriteOptions) -> Result<wit::Written, wit::Error> {
        writing::write(self, &options)
    }

    fn plan_mark(&self, node: String, text: String) -> Result<Option<wit::Splice>, wit::Error> {
        let workspace = files::workspace()?;
        let splice =
            mark_node(text.as_bytes(), &node, workspace).map_err(|error| refused(vec![error.problem(&node)]))?;
        Ok(splice.map(|splice| wit::Splice {
            start: splice.at.start as u64,
            end: splice.at.end as u64,
            insert: splice.insert,
        }))
    }

    fn mark_line(&self, nodes: Vec<String>, ended: bool) -> Result<String, wit::Error> {
        Ok(mark_line(nodes.iter().map(String::as_str), files::workspace()?, ended))
    }

    fn marked(&self, nodes: Vec<String>) -> Result<(), wit::Error> {
        let workspace = files::workspace()?;
        self.note_marks(&nodes, &workspace.to_string());
        self.whole(|nodes| self.settle(nodes, workspace))
    }
}

/// A call that comes too early or too late.
pub(super) fn out_of_order(message: &str) -> wit::Error {
    wit::Error::Invalid(convert::problem("INVALID_ARGUMENT", "out-of-order", None, message))
}

fn finding(session: &str, fault: &SessionFault) -> wit::Finding {
    let (path, line) = match &fault.place {
        Some(Place::File(name)) => (Some(name.clone()), None),
        Some(Place::Line(line)) => (None, Some(*line)),
        None => (None, None),
    };
    wit::Finding {
        code: fault.code.as_str().to_owned(),
        severity: Severity::Warning,
        path,
        line,
        subject: Some(fault.node.clone().unwrap_or_else(|| session.to_owned())),
        excerpt: None,
        message: fault.to_string(),
    }
}

fn pending(nodes: &Nodes, owed: &Owed<'_>, unmarked: u64) -> wit::Pending {
    let branch = |segment: &recollex_core::turns::Segment<'_>| wit::OwingBranch {
        tip: nodes.tip(segment.branch).map(|node| node.id.clone()).unwrap_or_default(),
        current: segment.branch.current,
        turns: segment.turns.len() as u64,
    };
    wit::Pending { turns: owed.count(), branches: owed.segments().iter().map(branch).collect(), unmarked }
}

fn listed(class: wit::LedgerClass, entry: &LedgerEntry<'_>) -> wit::LedgerEntry {
    wit::LedgerEntry {
        class,
        node: entry.turn.node.id.clone(),
        source_id: entry.source_id.clone(),
        archived: entry.archived,
    }
}

/// Counts the leading turns of a segment, as many as a batch needs. By their nodes' ids.
fn counted<'s>(turns: &[Turn<'s>], threshold: u64) -> BTreeMap<&'s str, u64> {
    let mut counted = BTreeMap::new();
    let mut sum = 0_u64;
    for group in turns.chunks(COUNTED_TOGETHER) {
        let texts: Vec<String> = group.iter().map(|turn| turn.record.text.clone()).collect();
        let tokens = model::count_tokens(VOCABULARY, &texts).tokens;
        for (turn, tokens) in group.iter().zip(tokens) {
            sum = sum.saturating_add(tokens.into());
            counted.insert(turn.node.id.as_str(), u64::from(tokens));
        }
        if sum >= threshold {
            break;
        }
    }
    counted
}

/// Counts all turns of a batch. By their nodes' ids.
pub(super) fn counted_all<'s>(turns: &[Turn<'s>]) -> BTreeMap<&'s str, u64> {
    counted(turns, u64::MAX)
}

/// The next batch of a write, if anything is due.
pub(super) fn next_batch<'s>(
    owed: &Owed<'s>,
    trigger: wit::Trigger,
    limits: &TurnLimits,
    now: recollex_core::time::Instant,
) -> Option<Batch<'s>> {
    let turns = owed.segments().first().map(|segment| segment.turns.as_slice())?;
    let counted = counted(turns, limits.batch_tokens);
    let tokens = |turn: &Turn<'s>| counted.get(turn.node.id.as_str()).copied().unwrap_or_default();
    match trigger {
        wit::Trigger::Due => owed.unforced(limits, now, tokens),
        wit::Trigger::Everything => owed.batches(limits, tokens).next(),
    }
}
