//! Finding records by what they say: index, query, ranking.
//!
//! ```text
//! text -> fold (characters) -> token (terms) -> dictionary (numbers) -> index (postings) -> score -> rank
//! ```
//!
//! Pure: documents and queries in, rankings out. It knows nothing of files, of who may see what, or of when an index is
//! out of date; the caller reads the text of the hits it shows. Everything is bounded by a named limit, nothing panics,
//! and the same documents with the same query give the same ranking with the same scores on every machine, in whatever
//! order the documents were added.
//!
//! ```
//! use recollex_core::search::{Document, Index, Kind, Limits, Query, QueryRequest, Scratch, Weights};
//!
//! let mut index = Index::new(Weights::default());
//! let record = Document {
//!     id: "openprogram/t1/m1",
//!     path: "sources/openprogram/_v2/t1.md",
//!     kind: Kind::Source,
//!     time: "2026-01-02T10:00:00+00:00",
//!     label: "Ada (7391)",
//!     speaker: None,
//!     text: "The budget is 50k for the spring launch.",
//! };
//! let document = index.add(&record)?;
//!
//! let limits = Limits { top_k_max: 50, query_bytes: 1 << 20 };
//! let request = QueryRequest { text: "spring budget", top_k: 5, ..QueryRequest::default() };
//! let ranking = index.search(&Query::parse(&request, &limits)?, &mut Scratch::default());
//! assert_eq!(ranking.hits.first().map(|hit| hit.document), Some(document));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod dictionary;
mod document;
mod fold;
mod index;
mod query;
mod rank;
mod score;
mod token;
mod words;

pub use crate::ids::{Day, Span};
pub use document::{DocId, Document, Id, Kind, Speaker, Stored};
pub use index::{DOCUMENTS, Index, IndexFull, Scratch};
pub use query::{Limits, QUERY_TERMS, Query, QueryError, QueryRequest};
pub use rank::{Ranked, Ranking, Signal};
pub use score::Weights;
pub use token::WORD_BYTES;
