//! What a writer is shown of memory: the list of topics, and blocks.
//!
//! Knows where topics are and how they are searched. How a block is shown core's `prompt` says.

use std::collections::BTreeSet;

use recollex_core::ids::TopicPath;
use recollex_core::prompt::ShownBlock;
use recollex_core::read::structure;
use recollex_core::search::{Kind, Limits, Method, Query, QueryRequest};
use recollex_core::topic::Check;
use recollex_core::writer::{Answer, Ground, Read, Search, WriterLimits};

use crate::bindings::exports::recollex::memory::turns as wit;
use crate::bindings::exports::recollex::memory::workspace::HitKind;
use crate::convert;
use crate::reading::{self, looked_through};
use crate::search;
use crate::session::{Session, settled};
use crate::topics::Topics;
use crate::view::View;

/// A batch is looked for in at most so many searches.
const SEARCHES: usize = 8;

/// So many blocks are taken of each.
const HITS: u32 = 12;

/// What there is of memory, as a writer of these texts is shown it.
pub(super) fn of_texts(
    session: &Session,
    texts: &[&str],
    model: Option<String>,
    limits: &WriterLimits,
) -> Result<Ground, wit::Error> {
    let together = texts.len().div_ceil(SEARCHES).max(1);
    let mut found: Vec<Vec<String>> = Vec::new();
    for group in texts.chunks(together) {
        found.push(blocks_about(session, &group.join("\n"), HITS)?);
    }
    // Of each search the best, then of each the next: no part of the batch is left out for another's sake.
    let mut wanted = Vec::new();
    let mut seen = BTreeSet::new();
    for rank in 0..HITS as usize {
        for id in found.iter().filter_map(|ids| ids.get(rank)) {
            if seen.insert(id.clone()) {
                wanted.push(id.clone());
            }
        }
    }
    wanted.truncate(usize::try_from(limits.blocks).unwrap_or(usize::MAX));
    let revision = session.revision(session.files())?;
    let view = session.view()?;
    let (listing, blocks) = settled(|_| {
        let topics = reading::known(session, &view)?;
        Ok((listing(&topics, &view, limits)?, shown(&topics, &view, &wanted)?))
    })?;
    Ok(Ground { revision, listing, blocks, may_only_add: false, model })
}

/// The blocks that a text may be about, best first.
fn blocks_about(session: &Session, text: &str, top_k: u32) -> Result<Vec<String>, wit::Error> {
    let settings = &session.settings;
    let cut = text.floor_char_boundary(usize::try_from(settings.query_bytes).unwrap_or(usize::MAX));
    let request = QueryRequest {
        text: text.get(..cut).unwrap_or_default(),
        top_k,
        scope: Some(Kind::Topic),
        speaker: None,
        path_prefix: None,
        from: None,
        to: None,
        explain: false,
        method: Method::Words,
    };
    let most = u32::try_from(settings.top_k_max).unwrap_or(u32::MAX).max(top_k);
    // A text without a word to look for is about nothing.
    let Ok(query) = Query::parse(&request, &Limits { top_k_max: most, query_bytes: settings.query_bytes }) else {
        return Ok(Vec::new());
    };
    let view = session.view()?;
    let answer = settled(|last| search::answer(&session.index, settings, &view, &query, last))?;
    let mut seen = BTreeSet::new();
    let topics = answer.hits.into_iter().filter(|found| found.hit.kind == HitKind::Topic);
    Ok(topics.map(|found| found.hit.id).filter(|id| seen.insert(id.clone())).collect())
}

/// The list of topics, as far as there is room for more than their paths.
pub(super) fn listing(topics: &Topics, view: &View, limits: &WriterLimits) -> Result<String, wit::Error> {
    let most = usize::try_from(limits.listing_bytes).unwrap_or(usize::MAX);
    let mut lines: Vec<String> = Vec::new();
    let mut bytes = 0_usize;
    for path in topics.paths().filter(|path| view.audience().sees(path.as_str())) {
        let line = match bytes < most {
            true => looked_through(topics, path)?.map(|check| structure(&[check])),
            false => None,
        };
        let line = line.unwrap_or_else(|| path.to_string());
        bytes = bytes.saturating_add(line.len());
        if bytes > most.saturating_mul(2) {
            break;
        }
        lines.push(line);
    }
    Ok(if lines.is_empty() { structure(&[]) } else { lines.join("\n") })
}

/// These blocks as a writer is shown them, in their order; those that are gone are left out.
pub(super) fn shown(topics: &Topics, view: &View, ids: &[String]) -> Result<Vec<ShownBlock>, wit::Error> {
    let mut shown = Vec::with_capacity(ids.len());
    for id in ids {
        let Ok(path) = reading::place(topics, view, id) else { continue };
        let Some(check) = looked_through(topics, &path)? else { continue };
        shown.extend(blocks_of(&check).into_iter().find(|block| block.id == *id || block.others.contains(id)));
    }
    Ok(shown)
}

/// All blocks of a topic as a writer is shown them.
pub(super) fn blocks_of(check: &Check<'_>) -> Vec<ShownBlock> {
    let mut shown: Vec<(usize, ShownBlock)> = Vec::new();
    for block in check.all_blocks() {
        let ids = block.ids().iter().map(|id| id.as_str().to_owned());
        // Older claims share a paragraph.
        if let Some((_, first)) = shown.last_mut().filter(|(number, _)| *number == block.number()) {
            first.others.extend(ids);
            continue;
        }
        let id = block.identity().as_str().to_owned();
        let one = ShownBlock {
            others: ids.filter(|other| *other != id).collect(),
            id,
            path: check.path().to_string(),
            headings: block.headings().into_iter().map(str::to_owned).collect(),
            text: block.paragraph().prose(),
            times: block.footnotes().filter_map(|footnote| footnote.dated()).map(str::to_owned).collect(),
            sources: block.evidence().map(ToString::to_string).collect(),
        };
        shown.push((block.number(), one));
    }
    shown.into_iter().map(|(_, block)| block).collect()
}

/// Reads what a model asks for.
pub(super) fn read(session: &Session, read: &Read) -> Answer {
    let (path, heading) = match read {
        Read::Topic { path, heading } => (path, heading),
        Read::Block(id) => return blocks(session, std::slice::from_ref(id)),
    };
    let Some(heading) = heading else { return topic(session, path) };
    match reading::section(session, path.as_str(), heading) {
        Ok(excerpt) => {
            let lines: Vec<&str> = excerpt.lines.iter().map(|line| line.text.as_str()).collect();
            Answer::Text { path: excerpt.path, text: lines.join("\n") }
        }
        Err(error) => nothing(error),
    }
}

/// These blocks, for a model.
fn blocks(session: &Session, ids: &[String]) -> Answer {
    let found = session.view().and_then(|view| settled(|_| shown(&reading::known(session, &view)?, &view, ids)));
    match found {
        Ok(blocks) if blocks.is_empty() && !ids.is_empty() => Answer::Nothing("there is no such block".to_owned()),
        Ok(blocks) => Answer::Blocks(blocks),
        Err(error) => nothing(error),
    }
}

fn topic(session: &Session, path: &TopicPath) -> Answer {
    let text = session.view().and_then(|view| {
        settled(|_| {
            let topics = reading::known(session, &view)?;
            Ok(topics.read(path)?.filter(|_| view.audience().sees(path.as_str())).map(str::to_owned))
        })
    });
    match text {
        Ok(Some(text)) => Answer::Text { path: path.to_string(), text },
        Ok(None) => Answer::Nothing(format!("there is no topic {path}")),
        Err(error) => nothing(error),
    }
}

/// Searches topics for a model.
pub(super) fn find(session: &Session, asked: &Search) -> Answer {
    let top_k = u32::try_from(asked.top_k).unwrap_or(u32::MAX);
    match blocks_about(session, &asked.query, top_k) {
        Ok(ids) => blocks(session, &ids),
        Err(error) => nothing(error),
    }
}

/// What could not be read for a model, in words for it.
fn nothing(error: wit::Error) -> Answer {
    Answer::Nothing(convert::told(error).1)
}
