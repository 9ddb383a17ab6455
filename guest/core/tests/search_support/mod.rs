//! What the tests of search share.

// Each test crate uses a part of it.
#![allow(dead_code)]

use recollex_core::search::{
    Document, Index, Kind, Limits, Place, Query, QueryRequest, Ranking, Scratch, Speaker, Weights,
};

pub const LIMITS: Limits = Limits { top_k_max: 100_000, query_bytes: 16 << 20 };

/// An owned document and its file.
#[derive(Clone, Debug)]
pub struct Record {
    pub id: String,
    pub path: String,
    pub kind: Kind,
    pub time: String,
    pub label: String,
    pub speaker: Option<[String; 3]>,
    pub by_machine: bool,
    pub text: String,
}

impl Record {
    /// By nobody in particular, in a file of its own, so that nothing stands around it.
    pub fn new(id: &str, text: &str) -> Record {
        Record::within(&format!("sources/p/_v2/{id}.md"), id, text)
    }

    /// The same in that file.
    pub fn within(path: &str, id: &str, text: &str) -> Record {
        Record {
            id: id.to_owned(),
            path: path.to_owned(),
            kind: Kind::Source,
            time: String::new(),
            label: "user".to_owned(),
            speaker: None,
            by_machine: false,
            text: text.to_owned(),
        }
    }

    /// Said by somebody of that id and name.
    pub fn by(self, id: &str, display: &str) -> Record {
        let label = if id == display || id.is_empty() { display.to_owned() } else { format!("{display} ({id})") };
        let speaker = Some([id.to_owned(), display.to_owned(), label.clone()]);
        Record { label, speaker, ..self }
    }

    pub fn at(self, time: &str) -> Record {
        Record { time: time.to_owned(), ..self }
    }

    pub fn add_to(&self, index: &mut Index) {
        let speaker = self.speaker.as_ref().map(|[id, display, label]| Speaker { id, display, label });
        let Record { id, kind, time, label, by_machine, text, .. } = self;
        let (kind, by_machine, place) = (*kind, *by_machine, Place::default());
        let document = Document { id, kind, time, label, speaker, by_machine, text, place };
        index.add(&self.path, &document).unwrap();
    }
}

pub fn index<'a>(records: impl IntoIterator<Item = &'a Record>) -> Index {
    let mut index = Index::new();
    records.into_iter().for_each(|record| record.add_to(&mut index));
    index
}

pub fn ask(text: &str) -> QueryRequest<'_> {
    QueryRequest { text, top_k: 10, ..QueryRequest::default() }
}

pub fn search_with(index: &Index, request: &QueryRequest<'_>, weights: &Weights) -> Ranking {
    let query = Query::parse(request, &LIMITS).unwrap();
    index.search(&query, &index.view(weights, |_| true), &mut Scratch::default()).unwrap()
}

pub fn search(index: &Index, request: &QueryRequest<'_>) -> Ranking {
    search_with(index, request, &Weights::default())
}

/// Ids of the hits, best first.
pub fn ids(index: &Index, request: &QueryRequest<'_>) -> Vec<String> {
    search(index, request).hits.into_iter().map(|hit| hit.id).collect()
}
