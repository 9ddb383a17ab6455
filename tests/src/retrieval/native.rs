//! Core, called directly: the turns are archived as frames, the frames are read back, and what is read is indexed.

use std::collections::BTreeMap;

use recollex_core::ids::Location;
use recollex_core::search::{Document, Index, Limits, Place, Query, QueryError, QueryRequest, Scratch, View, Weights};
use recollex_core::session::Settings;
use recollex_core::source::{Batch, FrameRef, Limits as SourceLimits, NewRecord, Record, Scanner, said};

use super::{Conversation, DEPTH, Ranker};

/// Ranks with core's index.
pub struct Native {
    weights: Weights,
    index: Index,
    view: View,
    scratch: Scratch,
}

impl Native {
    /// With these settings of search, by name.
    ///
    /// # Errors
    /// There is no such setting, or it has no such value.
    pub fn start(settings: &[(String, String)]) -> Result<Self, String> {
        let pairs = settings.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        let weights = Settings::parse(pairs).map_err(|error| error.to_string())?.weights;
        let index = Index::new();
        let view = index.view(&weights, |_| true);
        Ok(Self { weights, index, view, scratch: Scratch::default() })
    }
}

impl Ranker for Native {
    fn take(&mut self, conversation: &Conversation) -> Result<(), String> {
        self.index = Index::new();
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
                let said = said(frame.record, frame.time, frame.label);
                // It is full at sixteen million documents.
                let _ = self.index.add(&change.path, &Document::of_record(&record, said, Place::of_frame(frame, said)));
            };
            let mut scanner = Scanner::new(Some(Location::of_path(&change.path)), &limits).keep_records(usize::MAX);
            scanner.push_text(&change.text, &mut add);
            scanner.finish(&mut add);
        }
        self.view = self.index.view(&self.weights, |_| true);
        Ok(())
    }

    fn rank(&mut self, text: &str) -> Result<Vec<String>, String> {
        let limits = Limits { top_k_max: DEPTH, query_bytes: u64::MAX };
        let request = QueryRequest { text, top_k: DEPTH, ..QueryRequest::default() };
        let query = match Query::parse(&request, &limits) {
            Ok(query) => query,
            Err(QueryError::NothingSearchable | QueryError::OnlyFunctionWords) => return Ok(Vec::new()),
            Err(error) => return Err(error.to_string()),
        };
        let ranking =
            self.index.search(&query, &self.view, &mut self.scratch).map_err(|missing| format!("{missing:?}"))?;
        Ok(ranking.hits.into_iter().map(|hit| hit.id).collect())
    }
}
