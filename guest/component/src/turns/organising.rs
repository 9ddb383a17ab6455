//! Putting memory in order, a group of topics at a time.
//!
//! Knows how topics are measured and shown. Which of them need it, and what an organiser may do, core's `writer` says.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::rc::Rc;

use recollex_core::ids::{BlockId, SourceId, TopicPath};
use recollex_core::source::{Branches, Tier};
use recollex_core::table::TopicTable;
use recollex_core::turns::{Line, Lineage};
use recollex_core::views::CORE_TOPIC;
use recollex_core::writer::{CoreShape, Ending, Ground, Needs, Task, TopicShape, needs, organised};

use super::ground::{blocks_of, listing};
use super::writing::{Commits, Ran, failure_of, run};
use crate::bindings::exports::recollex::memory::turns as wit;
use crate::bindings::exports::recollex::memory::workspace::SessionBorrow;
use crate::cache;
use crate::core_view;
use crate::read;
use crate::reading::{self, looked_through};
use crate::session::{Session, settled};
use crate::topics::Topics;
use crate::tree::{self, Reader};
use crate::view::View;

/// Name of the cache file with the topics that were written to since the last time, a line each. That it is lost costs nothing:
/// once a day all of memory is put in order.
const TOUCHED: &str = "touched-topics";

/// Topics that were written to.
pub(super) fn touched(files: &[String]) {
    let mut known = touched_topics();
    let before = known.len();
    known.extend(files.iter().filter(|path| TopicPath::parse(path).is_ok()).cloned());
    if known.len() > before {
        let lines: String = known.iter().map(|path| format!("{path}\n")).collect();
        cache::put(TOUCHED, lines.as_bytes());
    }
}

fn touched_topics() -> BTreeSet<String> {
    let text = cache::read_all(TOUCHED).and_then(|bytes| String::from_utf8(bytes).ok()).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

/// Memory that is being put in order.
pub(crate) struct Organising {
    session: Session,
    model: Option<String>,
    state: RefCell<State>,
}

struct State {
    /// What is to be done, the most urgent first.
    runs: VecDeque<Needs>,
    /// Nothing needed it.
    is_tidy: bool,
}

impl wit::GuestOrganising for Organising {
    fn start(of: SessionBorrow<'_>, what: wit::Upkeep, model: Option<String>) -> Result<wit::Organising, wit::Error> {
        let session = super::of(&of)?;
        let only = match what {
            wit::Upkeep::Recent => Some(touched_topics()),
            wit::Upkeep::Whole => None,
        };
        let runs: VecDeque<Needs> = settled(|_| what_needs_it(&session, only.as_ref()))?.into();
        let state = RefCell::new(State { is_tidy: runs.is_empty(), runs });
        // From here on it is the time before.
        cache::drop(TOUCHED);
        Ok(wit::Organising::new(Self { session, model, state }))
    }

    fn step(&self) -> Result<wit::Organised, wit::Error> {
        let mut state = self.state.borrow_mut();
        let Some(needs) = state.runs.pop_front() else {
            let notes = if state.is_tidy { vec!["no topic needs to be put in order".to_owned()] } else { Vec::new() };
            let revision = self.session.revision(self.session.files())?;
            return Ok(wit::Organised {
                changed_files: Vec::new(),
                revision,
                notes,
                requests: 0,
                tokens_in: 0,
                tokens_out: 0,
                failure: None,
                more: false,
            });
        };
        let siblings = Siblings::of(&self.session);
        let ground = self.ground(&needs)?;
        let revision = ground.revision.clone();
        let are_siblings = Box::new(|a: &str, b: &str| siblings.are(a, b));
        let task = Task::organise(&needs, ground, &self.session.settings.writer, are_siblings);
        let nothing = |_: &TopicTable| Ok(Vec::new());
        let commits = Commits { session: &self.session, verb: "organise", beside: &nothing, tokens: None };
        let Ran { outcome, updated, requests, .. } = run(task, &commits)?;
        let failure = failure_of(&outcome);
        let summary = organised([(&needs, &outcome)]);
        let mut notes: Vec<String> =
            summary.unchanged.into_iter().map(|(path, why)| format!("{path}: {why}")).collect();
        if let Ending::NoProgress { reason } = &outcome.ending
            && notes.is_empty()
        {
            notes.push(reason.clone());
        }
        Ok(wit::Organised {
            revision: updated.as_ref().map_or(revision, |updated| updated.revision.clone()),
            changed_files: updated.map(|updated| updated.changed_files).unwrap_or_default(),
            notes,
            requests,
            tokens_in: outcome.usage.tokens_in,
            tokens_out: outcome.usage.tokens_out,
            more: !state.runs.is_empty() && failure.is_none(),
            failure,
        })
    }
}

impl Organising {
    fn ground(&self, needs: &Needs) -> Result<Ground, wit::Error> {
        let session = &self.session;
        let view = session.view()?;
        let revision = session.revision(session.files())?;
        settled(|_| {
            let topics = reading::known(session, &view)?;
            let mut blocks = Vec::new();
            for need in needs.topics() {
                let Ok(path) = TopicPath::parse(&need.path) else { continue };
                if let Some(check) = looked_through(&topics, &path)? {
                    blocks.extend(blocks_of(&check));
                }
            }
            let listing = listing(&topics, &view, &session.settings.writer)?;
            let (revision, model) = (revision.clone(), self.model.clone());
            Ok(Ground { revision, listing, blocks, may_only_add: false, model })
        })
    }
}

/// Which topics need to be put in order: all, or `only` these.
fn what_needs_it(session: &Session, only: Option<&BTreeSet<String>>) -> Result<Vec<Needs>, wit::Error> {
    let view = View::of(Tier::Owner)?;
    let topics = reading::known(session, &view)?;
    let siblings = Siblings::of(session);
    let mut shapes = Vec::new();
    for path in topics.paths().filter(|path| only.is_none_or(|only| only.contains(path.as_str()))) {
        shapes.extend(shape(&topics, path, &siblings)?);
    }
    let core = core_view::shown(&view, &session.settings.limits())?;
    let core = core.filter(|core| !core.left_out.is_empty()).map(|core| CoreShape {
        path: CORE_TOPIC.to_owned(),
        budget: core.budget,
        left_out: core.left_out,
    });
    Ok(needs(&shapes, core.as_ref(), &session.settings.organiser))
}

/// What is known of a topic; none if it is no text.
fn shape(topics: &Topics, path: &TopicPath, siblings: &Siblings) -> Result<Option<TopicShape>, wit::Error> {
    let Some(check) = looked_through(topics, path)? else { return Ok(None) };
    let is_there = |id: &BlockId| !topics.table.topics_of(id.as_str()).is_empty();
    Ok(Some(TopicShape::of(&check, &blocks_of(&check), is_there, |a, b| siblings.are(a, b))))
}

/// Conversations as far as somebody asked which of their records are of sibling branches.
struct Siblings {
    session: Session,
    /// By conversation. None: it has no archive of that form.
    known: RefCell<BTreeMap<String, Option<Known>>>,
}

/// The records of a conversation in order, and its branches.
type Known = Rc<(Vec<String>, Branches)>;

impl Siblings {
    fn of(session: &Session) -> Self {
        Self { session: session.clone(), known: RefCell::default() }
    }

    /// Whether neither of two records was said on the way to the other. Records of different conversations never are; what cannot be
    /// read is taken for siblings: what may not be merged is not.
    fn are(&self, a: &str, b: &str) -> bool {
        let (Ok(a), Ok(b)) = (SourceId::for_reading(a), SourceId::for_reading(b)) else { return false };
        if (a.provider(), a.thread()) != (b.provider(), b.thread()) || a.message() == b.message() {
            return false;
        }
        let Some(conversation) = self.conversation(&a) else { return true };
        let (records, branches) = &*conversation;
        let names: Vec<&str> = records.iter().map(String::as_str).collect();
        let is_above = |one: &SourceId, other: &SourceId| {
            Lineage::of_archive(&names, branches, other.message())
                .and_then(|lineage| lineage.line(one.message()))
                .is_some_and(|line| line == Line::Own)
        };
        !is_above(&a, &b) && !is_above(&b, &a)
    }

    fn conversation(&self, id: &SourceId) -> Option<Known> {
        let name = format!("{}/{}", id.provider(), id.thread());
        if let Some(known) = self.known.borrow().get(&name) {
            return known.clone();
        }
        let found = self.read(id).map(Rc::new);
        self.known.borrow_mut().insert(name, found.clone());
        found
    }

    fn read(&self, id: &SourceId) -> Option<(Vec<String>, Branches)> {
        let view = View::of(Tier::Owner).ok()?;
        let archive = view.find(&id.v2_path()).ok()??;
        let mut records = Vec::new();
        read::scan(&archive, &self.session.settings.limits(), |frame| {
            records.extend(SourceId::for_reading(frame.id).map(|id| id.message().to_owned()));
            true
        })
        .ok()?;
        let mut branches = Branches::new();
        if let Some(entry) = view.find(&id.branches_path()).ok()?.filter(tree::is_file) {
            let mut reader = Reader::listed(&entry);
            while let Some(piece) = reader.next().ok()? {
                branches.push(piece.as_bytes());
            }
        }
        Some((records, branches.finish()))
    }
}
