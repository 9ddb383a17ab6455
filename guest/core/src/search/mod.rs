//! Finding records and claims by what they say: index, query, ranking.
//!
//! ```text
//! text -> fold (characters) -> token -> analysis (words, language) -> stem -> part (postings) -> index
//!                              query -> engine (sums, scores) -> ranking
//!                              query -> nearest (what may be found) + vectors -> ranking;  two rankings -> fusion
//! ```
//!
//! Pure: documents and queries in, rankings out. It knows nothing of where files are, of who may see what, or of when an
//! index is out of date; the caller reads the text of the hits it shows. Everything is bounded by a named limit, nothing
//! panics, and the same documents with the same query give the same ranking with the same scores on every machine, in
//! whatever steps the index was made.
//!
//! ```
//! use recollex_core::search::{Document, Index, Kind, Limits, Place, Query, QueryRequest, Scratch, Weights};
//!
//! let mut index = Index::new();
//! let record = Document {
//!     id: "openprogram/t1/m1",
//!     kind: Kind::Source,
//!     time: "2026-01-02T10:00:00+00:00",
//!     label: "Ada (7391)",
//!     speaker: None,
//!     by_machine: false,
//!     text: "The budget is 50k for the spring launch.",
//!     place: Place::default(),
//! };
//! index.add("sources/openprogram/_v2/t1.md", &record)?;
//!
//! let limits = Limits { top_k_max: 50, query_bytes: 1 << 20 };
//! let request = QueryRequest { text: "launching in spring", top_k: 5, ..QueryRequest::default() };
//! let view = index.view(&Weights::default(), |_path| true);
//! let ranking = index.search(&Query::parse(&request, &limits)?, &view, &mut Scratch::default());
//! let ranking = ranking.expect("an index in memory has all its pages");
//! assert_eq!(ranking.hits.first().map(|hit| hit.id.as_str()), Some("openprogram/t1/m1"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod analysis;
mod claim;
mod document;
mod engine;
mod files;
mod filter;
mod fold;
mod fusion;
mod index;
mod kept;
mod names;
mod nearest;
mod pairs;
mod part;
mod query;
mod rank;
mod score;
mod select;
mod stem;
mod sums;
mod token;
mod vectors;
mod view;
mod weights;
mod words;

pub use crate::ids::{Day, Span};
pub use claim::{Claim, Grounds};
pub use document::{Document, Kind, Place, Speaker};
pub use engine::MissingPages;
pub use fusion::{FUSED, fuse};
pub use index::{DOCUMENTS, Index, IndexFull};
pub use kept::{CATALOG, DIRECTORY, Extension, Known, LOG_BYTES, LOG_DOCUMENTS, Opening, Wanted, Write, log_of};
pub use nearest::Candidate;
pub use query::{EmbeddingUnavailable, Limits, Method, QUERY_TERMS, Query, QueryError, QueryRequest};
pub use rank::{Ranked, Ranking, Signal};
pub use sums::Scratch;
pub use token::WORD_BYTES;
pub use vectors::{DIMENSIONS, Key, Space, VECTORS, Vector, Vectors};
pub use view::View;
pub use weights::Weights;
