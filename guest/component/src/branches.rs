//! Where hits stand from where a reader is.
//!
//! Knows which archive to read, and remembers what it found as long as that stays as it is. What an archive says of branches
//! core's `turns` knows, and what that does to a hit core's `session`.

use std::cell::RefCell;
use std::rc::Rc;

use recollex_core::ids::SourceId;
use recollex_core::session::Settings;
use recollex_core::source::Branches;
use recollex_core::turns::{Line, Lineage};

use crate::bindings::exports::recollex::memory::workspace as wit;
use crate::bindings::recollex::memory::store::StoreError;
use crate::convert;
use crate::read;
use crate::search::Found;
use crate::tree::{self, Reader};
use crate::view::View;

/// The lineage that was asked for last, and of what it is true.
#[derive(Clone, Default)]
pub(crate) struct Remembered(Rc<RefCell<Option<Known>>>);

type Known = (String, Rc<Lineage>);

/// A reader's place, and what is on the way to it.
pub(crate) struct Place {
    /// `provider/thread/`.
    conversation: String,
    lineage: Rc<Lineage>,
}

impl Place {
    /// Of a reader whom the caller may know of. `not-found` where there is no such record.
    pub(crate) fn find(
        remembered: &Remembered,
        settings: &Settings,
        view: &View,
        reader: &wit::Reader,
    ) -> Result<Self, wit::Error> {
        let conversation = format!("{}/", reader.session);
        let id = format!("{conversation}{}", reader.head);
        let missing = || {
            let message = "no record has the id of the reader's place; check the session and the head".to_owned();
            let problem = convert::problem("MEMORY_NOT_FOUND", "no-such-record", None, message);
            wit::Error::NotFound(wit::Problem { subject: Some(id.clone()), ..problem })
        };
        let source = SourceId::for_reading(&id).map_err(|_| missing())?;
        let find = |path: &str| match view.find(path) {
            Ok(entry) => Ok(entry.filter(tree::is_file)),
            Err(StoreError::Denied(_) | StoreError::NotFound) => Ok(None),
            Err(error) => Err(convert::store_error(error, Some(path))),
        };
        let archive = find(&source.v2_path())?.ok_or_else(missing)?;
        let beside = find(&source.branches_path())?;
        let version = beside.as_ref().map(|entry| entry.stamp.token.as_str()).unwrap_or_default();
        let key = format!("{id}\n{}\n{version}", archive.stamp.token);
        if let Some((_, lineage)) = remembered.0.borrow().as_ref().filter(|(of, _)| *of == key) {
            return Ok(Self { conversation, lineage: Rc::clone(lineage) });
        }
        let mut records = Vec::new();
        read::scan(&archive, &settings.limits(), |frame| {
            records.extend(SourceId::for_reading(frame.id).map(|id| id.message().to_owned()));
            true
        })?;
        let mut branches = Branches::new();
        if let Some(entry) = &beside {
            let mut reader = Reader::listed(entry);
            while let Some(piece) = reader.next().map_err(|error| convert::store_error(error, Some(&entry.path)))? {
                branches.push(piece.as_bytes());
            }
        }
        let names: Vec<&str> = records.iter().map(String::as_str).collect();
        let lineage = Lineage::of_archive(&names, &branches.finish(), source.message()).ok_or_else(missing)?;
        let lineage = Rc::new(lineage);
        remembered.0.replace(Some((key, Rc::clone(&lineage))));
        Ok(Self { conversation, lineage })
    }

    /// Where a hit stands; none: it is of another conversation.
    fn line(&self, hit: &wit::Hit) -> Option<Line> {
        let of = |id: &String| self.lineage.line(id.strip_prefix(&self.conversation)?);
        match hit.kind {
            wit::HitKind::Source => of(&hit.id),
            wit::HitKind::Topic | wit::HitKind::Experience => Line::of_claim(hit.evidence.iter().map(of)),
        }
    }

    /// Puts hits in the order in which they count for the reader: at most so many. The others keep theirs.
    pub(crate) fn order(&self, settings: &Settings, hits: Vec<Found>, max: u32) -> Vec<Found> {
        let mut hits: Vec<Found> = hits
            .into_iter()
            .map(|mut found| {
                let line = self.line(&found.hit);
                let score = settings.lines.score(found.hit.score, line);
                if !found.hit.signals.is_empty() && score != found.hit.score {
                    let points = i64::try_from(found.hit.score - score).unwrap_or(i64::MAX);
                    found.hit.signals.push(wit::Signal { name: "branch".to_owned(), points: -points });
                }
                found.hit.score = score;
                found.hit.branch = line.map(|line| match line {
                    Line::Own => wit::Branch::Own,
                    Line::Other => wit::Branch::Other,
                    Line::Abandoned => wit::Branch::Abandoned,
                });
                found
            })
            .collect();
        hits.sort_by_key(|found| core::cmp::Reverse(found.hit.score));
        hits.truncate(usize::try_from(max).unwrap_or(usize::MAX));
        hits
    }
}
