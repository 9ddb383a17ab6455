//! A model that changes memory: what it is asked and told, what it may do, and how its work ends.
//!
//! From the outside in:
//!
//! - [`Task`] says what a run is about: [`Task::write`] turns of a session or evidence of a backfill, [`Task::organise`] topics that
//!   [`needs`] says have to be put in order.
//! - [`Writer`] is the run: a state machine that says what it wants ([`Step`]) and is told what came of it.
//! - [`Outcome`] is what came of the run; [`second_offer`] what is offered again; [`organised`] sums organisers' runs up.
//! - [`salvage`] and [`salvaged`] are one question and its answer: what is worth keeping of messages, without memory.
//!
//! **One commit, at the end.** A model may submit changes in many calls. They are collected, and planned and committed as a whole when it says that
//! it is done: all of them or none, with the receipt of the batch in the same commit. So whoever dies before the commit has
//! changed nothing, and the batch is owed as it was; whoever dies behind it finds the receipt, and writes nothing twice. Several commits
//! would each need a receipt that says exactly what it wrote, and turns between two of them would be neither owed nor written.
//!
//! **The receipt names every node of the batch**, cited or not, with the first commit that changes memory. As long as it is open, whoever comes next
//! may offer those of its turns once more that no topic cites ([`second_offer`]; a batch that was broken off between the two offers goes on so), and
//! marks all of them. What is uncited after that is in the ledger as marked and uncited.
//!
//! **What the model cannot do**, whatever it was told by a turn: cite what is not in its batch, read or write `sources/`, change a block that it was not
//! shown, write a block of memory that was recalled to it, or go on for ever. [`GuardReason`] lists what is refused here; the rest
//! is the [update](crate::update)'s to refuse, as with anybody.
//!
//! ```
//! use recollex_core::prompt::Origin;
//! use recollex_core::update;
//! use recollex_core::writer::{
//!     Answer, Ending, Evidence, Ground, Part, Reply, Step, StopReason, Submitted, Task, ToolCall, Writer, WriterLimits,
//! };
//!
//! let limits = WriterLimits::default();
//! let ground = Ground { revision: "r1-…".to_owned(), ..Ground::default() };
//! let task = Task::write(Origin::Conversation, Evidence::default(), ground, &limits);
//! let mut writer = Writer::new(task, limits, update::Limits::default());
//! // What a model may say.
//! let finish = ToolCall { id: "1".into(), name: "finish".into(), arguments: "{\"reason\":\"small talk\"}".into() };
//! let reply = Reply {
//!     parts: vec![Part::Call(finish)], stop: StopReason::Tools, tokens_in: None, tokens_out: None, model: "m".into(),
//! };
//! let outcome = loop {
//!     match writer.next() {
//!         Step::Ask(_request) => writer.replied(Ok(reply.clone())),
//!         Step::Read(_) | Step::Search(_) => writer.answered(Answer::Nothing("There is no such topic.".to_owned())),
//!         // Plan it with `update::Draft` and `submission.offered`, commit it with the receipt, and say what came of it.
//!         Step::Submit(_submission) => writer.submitted(Submitted::Refused(Vec::new())),
//!         Step::Done(outcome) => break outcome,
//!     }
//! };
//! assert_eq!(outcome.ending, Ending::NoProgress { reason: "small talk".to_owned() });
//! ```
//!
//! Knows prompts, turns and updates. Must not know stores, providers, clocks or tokens: whoever drives it counts, waits, searches and commits.

mod facts;
mod guard;
mod limits;
mod model;
mod offer;
mod organise;
mod outcome;
mod run;
mod salvage;
mod step;
mod talk;
mod task;
mod tools;

pub use guard::GuardReason;
pub use limits::{OrganiserLimits, WriterLimits};
pub use model::{Author, Message, ModelError, Part, Purpose, Reply, Request, StopReason, Tool, ToolCall, ToolOutcome};
pub use offer::second_offer;
pub use organise::{Alike, CoreShape, Need, NeedReason, Needs, Organised, TopicShape, alike, needs, organised};
pub use outcome::{Ending, Failure, Given, Outcome, Refusal, Usage, Why, Written};
pub use run::Writer;
pub use salvage::{salvage, salvaged};
pub use step::{Answer, Read, Search, Step, Submission, Submitted};
pub use task::{AreSiblings, Evidence, Ground, OfferedTurn, Task};
