//! What an agent is shown of memory, and how it is kept apart from what people say to it.
//!
//! Recalled text stands in a fence ([`fence`]) that tells the agent what it is reading. Nothing that was ever stored can
//! open or close one, hide what stands beside it, or speak as the note at its top: [`sanitize`] takes everything out that
//! could, and [`join`] does it across the seams of several texts.
//!
//! Which memories a turn gets of those that were found is [`Recall`]'s to choose.
//!
//! The bytes are specified in `FORMAT.md`, "Fences". Knows text; must not know where it comes from, who asked or how much
//! there is room for.

mod fence;
mod recall;

pub use fence::{fence, join, sanitize};
pub use recall::{Omission, Recall, memory_of_claim, memory_of_record};
