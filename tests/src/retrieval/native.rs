//! Core, called directly: the turns are archived as frames, the frames are read back, and what is read is indexed.

use std::collections::BTreeMap;

use recollex_core::ids::Location;
use recollex_core::search::{
    Document, Index, Kind, Limits, Query, QueryError, QueryRequest, Scratch, Speaker, Weights,
};
use recollex_core::source::{Batch, FrameRef, Limits as SourceLimits, NewRecord, Record, Scanner, said};

use super::{Conversation, DEPTH, Ranker};

/// Ranks with core's index.
pub struct Native {
    index: Index,
    scratch: Scratch,
}

impl Native {
    /// With these settings of search, by name.
    ///
    /// # Errors
    /// There is no such setting.
    pub fn start(settings: &[(String, String)]) -> Result<Self, String> {
        if let Some((name, _)) = settings.first() {
            return Err(format!("unknown setting {name}"));
        }
        Ok(Self { index: Index::new(Weights::default()), scratch: Scratch::default() })
    }
}

impl Ranker for Native {
    fn take(&mut self, conversation: &Conversation) -> Result<(), String> {
        self.index = Index::new(Weights::default());
        let records = conversation.archived().map(|kept| NewRecord {
            provider: kept.provider.to_owned(),
            thread: kept.thread,
            id: kept.turn.id.clone(),
            ordinal: kept.ordinal,
            role: kept.turn.role.clone(),
            text: kept.turn.text.clone(),
            time: kept.turn.time.clone(),
            speaker_display: kept.display.map(str::to_owned),
            trust: "trusted".to_owned(),
            ..NewRecord::default()
        });
        let limits = SourceLimits::default();
        let batch = Batch::check(records.collect(), &limits).map_err(|error| format!("{error:?}"))?;
        let plan = batch.compare(BTreeMap::new()).map_err(|problems| format!("{problems:?}"))?.plan();
        for change in plan.map_err(|range| format!("{range:?}"))?.changes {
            let mut add = |frame: &FrameRef<'_>| {
                let record = Record::new(&change.path, frame);
                let document = Document {
                    id: &record.id,
                    path: &record.path,
                    kind: Kind::Source,
                    time: &record.time,
                    label: &record.label,
                    speaker: record.speaker.as_ref().map(|speaker| Speaker {
                        id: &speaker.id,
                        display: &speaker.display,
                        label: &speaker.label,
                    }),
                    text: said(frame.record, frame.time, frame.label),
                };
                // It is full at sixteen million documents.
                let _ = self.index.add(&document);
            };
            let mut scanner = Scanner::new(Some(Location::of_path(&change.path)), &limits).keep_records(usize::MAX);
            scanner.push_text(&change.text, &mut add);
            scanner.finish(&mut add);
        }
        Ok(())
    }

    fn rank(&mut self, text: &str) -> Result<Vec<String>, String> {
        let limits = Limits { top_k_max: DEPTH, query_bytes: u64::MAX };
        let request = QueryRequest { text, top_k: DEPTH, ..QueryRequest::default() };
        let query = match Query::parse(&request, &limits) {
            Ok(query) => query,
            Err(QueryError::NothingSearchable) => return Ok(Vec::new()),
            Err(error) => return Err(error.to_string()),
        };
        let ranking = self.index.search(&query, &mut self.scratch);
        let id = |document| self.index.document(document).map(|kept| kept.id.to_string());
        Ok(ranking.hits.iter().filter_map(|hit| id(hit.document)).collect())
    }
}
