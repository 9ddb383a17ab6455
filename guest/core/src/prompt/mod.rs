//! What an agent is shown of memory, and how it is kept apart from what people say to it.
//!
//! Recalled text stands in a fence ([`fence`]) that tells the agent what it is reading. Nothing that was ever stored can
//! open or close one, hide what stands beside it, or speak as the note at its top: [`sanitize`] takes everything out that
//! could, and [`join`] does it across the seams of several texts.
//!
//! Which memories a turn gets of those that were found is [`Recall`]'s to choose.
//!
//! Models that change memory are told what to do by [`writer_system`], [`organiser_system`] and [`salvage_system`], and what there
//! is by [`writer_message`] and its kin. There, what is stored stands in lines that nothing stored can begin or end
//! ([`quoted`], [`block_lines`]).
//!
//! The bytes of fences are specified in `FORMAT.md`, "Fences". Knows text; must not know where it comes from, who asked or how much
//! there is room for.

mod fence;
mod organiser;
mod recall;
mod rules;
mod salvage;
mod stored;
mod writer;

pub use fence::{fence, join, sanitize};
pub use organiser::{organiser_message, organiser_system};
pub use recall::{Omission, Recall, memory_of_claim, memory_of_record};
pub use rules::{add_only_rules, bounds, choice_rules, evidence_rules, reading_rules, tool_rules, topic_contract};
pub use salvage::{salvage_message, salvage_system};
pub use stored::{ShownBlock, block_lines, quoted};
pub use writer::{Origin, writer_message, writer_system};
