//! Reading what topics say, and lines of any file: sections, blocks, matches, claims by time, what a claim rests on.
//!
//! Knows which files to open. What of them is shown, and how, core's `read` says; what the caller sees, the view.

use std::collections::BTreeSet;

use recollex_core::digest::Digest;
use recollex_core::ids::{EvidenceTime, Period, SourceRef, TopicPath, is_internal_path, path_order};
use recollex_core::read::{
    BlockReference, Grep, GrepLimits, LinkedFrom, ListedBlock, Pattern, PatternOptions, ReadFault, Records,
    ReferencedBlock, Selection, TimelineEntry, Why, lines, listed, part, render, resolve, sort_timeline, timeline_of,
    why as why_of,
};
use recollex_core::source::{self, Record};
use recollex_core::topic::{Check, TopicRef};
use recollex_core::trust::Verb;

use crate::bindings::exports::recollex::memory::workspace as wit;
use crate::bindings::recollex::memory::store::{Area, Entry, StoreError};
use crate::bindings::recollex::memory::types::Problem;
use crate::convert;
use crate::evidence::Archives;
use crate::read;
use crate::session::{Session, settled, visible_prefix, workspace_id};
use crate::topics::Topics;
use crate::tree::{self, Piece, Reader};
use crate::view::View;

/// The part of a file under a heading.
pub(crate) fn section(session: &Session, path: &str, heading: &str) -> Result<wit::Excerpt, wit::Error> {
    session.allow(Verb::GetSection)?;
    if is_internal_path(path) {
        return Err(read::internal(path));
    }
    let view = session.view()?;
    settled(|_| {
        let failed = |error| convert::store_error(error, Some(path));
        let entry = view.find(path).map_err(failed)?.ok_or(StoreError::NotFound).map_err(failed)?;
        let text = text_of(&entry)?;
        show(session, path, &text, Selection::Heading(heading))
    })
}

/// A block with its footnotes, in whichever topic it is.
pub(crate) fn block(session: &Session, block: &str) -> Result<wit::Excerpt, wit::Error> {
    session.allow(Verb::GetBlock)?;
    let view = session.view()?;
    settled(|_| {
        let topics = known(session, &view)?;
        let path = place(&topics, &view, block)?;
        let text = topics.read(&path)?.unwrap_or_default();
        show(session, path.as_str(), text, Selection::Block(block))
    })
}

/// Lines that match.
pub(crate) fn grep(session: &Session, query: &wit::GrepQuery) -> Result<wit::Matches, wit::Error> {
    session.allow(Verb::Grep)?;
    let prefix = visible_prefix(&query.path_prefix)?;
    let settings = &session.settings;
    let options = PatternOptions { regex: query.regex, case_sensitive: query.case_sensitive };
    let pattern = Pattern::new(&query.pattern, options).map_err(|fault| invalid(&fault))?;
    let count = |asked: u32, most: u64| usize::try_from(most.min(asked.into())).unwrap_or(usize::MAX);
    let matches = if query.max == 0 { settings.grep_matches } else { query.max.into() };
    let limits = GrepLimits {
        matches: usize::try_from(matches).unwrap_or(usize::MAX),
        context: count(query.context, settings.grep_context),
        line_chars: usize::try_from(settings.grep_line_chars).unwrap_or(usize::MAX),
    };
    let view = session.view()?;
    settled(|last| {
        let failed = |error| convert::store_error(error, Some(prefix).filter(|prefix| !prefix.is_empty()));
        let mut entries = view.list(prefix).map_err(failed)?;
        if entries.is_empty() && !prefix.is_empty() {
            // A file is its own prefix.
            entries.push(view.find(prefix).map_err(failed)?.ok_or(StoreError::NotFound).map_err(failed)?);
        }
        let mut grep = Grep::new(&pattern, limits);
        let mut findings = Vec::new();
        for entry in entries.iter().filter(|entry| tree::is_file(entry)) {
            match text_of(entry) {
                Ok(text) => grep.file(&entry.path, lines(&entry.path, &text, &settings.limits())),
                Err(error) if convert::is_changed(&error) && !last => return Err(error),
                Err(error) => findings.push(unread(&entry.path, convert::told(error).1)),
            }
        }
        let found = grep.finish();
        Ok(wit::Matches {
            lines: found.lines.into_iter().map(found_line).collect(),
            total: found.total,
            truncated: found.truncated,
            findings,
        })
    })
}

/// Claims by time.
pub(crate) fn timeline(
    session: &Session,
    from: Option<&str>,
    to: Option<&str>,
    max: u32,
) -> Result<wit::TimelinePage, wit::Error> {
    session.allow(Verb::Timeline)?;
    let period = Period::parse(from, to).map_err(|error| {
        wit::Error::Invalid(convert::problem("INVALID_ARGUMENT", error.reason(), None, error.to_string()))
    })?;
    let most = if max == 0 { session.settings.timeline_entries } else { max.into() };
    let most = usize::try_from(most).unwrap_or(usize::MAX);
    let view = session.view()?;
    settled(|_| {
        let topics = known(session, &view)?;
        let archives = Archives::of(&view, &session.settings.limits());
        let shared = topics.table.shared_ids();
        let mut entries: Vec<TimelineEntry> = Vec::new();
        for path in topics.paths().filter(|path| view.audience().sees(path.as_str())) {
            let speaks = topics
                .table
                .entry(path)
                .is_some_and(|entry| entry.times().any(|(time, _)| time.span().is_some_and(|days| period.meets(days))));
            if !speaks {
                continue;
            }
            let Some(text) = topics.read(path)? else { continue };
            let mut check = Check::new(path.clone(), TopicRef::parse(text), &archives);
            check.yield_to(&|id| shared.get(id).is_some_and(|first| first < path));
            entries.extend(timeline_of(&check, &period));
        }
        archives.check()?;
        sort_timeline(&mut entries);
        let truncated = entries.len() > most;
        entries.truncate(most);
        Ok(wit::TimelinePage { entries: entries.into_iter().map(timeline_entry).collect(), truncated })
    })
}

/// What a claim rests on.
pub(crate) fn why(session: &Session, block: &str) -> Result<wit::Account, wit::Error> {
    session.allow(Verb::Why)?;
    let view = session.view()?;
    settled(|_| {
        let topics = known(session, &view)?;
        let path = place(&topics, &view, block)?;
        let archives = Archives::of(&view, &session.settings.limits());
        let text = topics.read(&path)?.unwrap_or_default();
        let check = Check::new(path.clone(), TopicRef::parse(text), &archives);
        let mut ids = BTreeSet::from([block.to_owned()]);
        for one in check.all_blocks().filter(|one| one.ids().iter().any(|id| id.as_str() == block)) {
            ids.extend(one.ids().iter().map(|id| id.as_str().to_owned()));
        }
        let mut linked_from = Vec::new();
        let linking: BTreeSet<TopicPath> = ids.iter().flat_map(|id| topics.table.linking_to(id)).collect();
        for topic in linking.into_iter().filter(|topic| view.audience().sees(topic.as_str())) {
            let Some(entry) = topics.table.entry(&topic) else { continue };
            let links = entry.blocks().filter(|one| one.links().any(|link| ids.contains(link)));
            let own: BTreeSet<String> = links.filter_map(|one| one.ids().last().map(str::to_owned)).collect();
            linked_from.extend(own.into_iter().map(|id| LinkedFrom { id, topic: topic.clone() }));
        }
        let account = why_of(&check, block, linked_from, &archives);
        archives.check()?;
        account.map(account_of).ok_or_else(|| missing(block))
    })
}

/// Blocks of topics.
pub(crate) fn structure(
    session: &Session,
    prefix: &str,
    matching: &str,
    cursor: Option<&str>,
    max: u32,
) -> Result<wit::StructurePage, wit::Error> {
    session.allow(Verb::Structure)?;
    let prefix = visible_prefix(prefix)?;
    let most = if max == 0 { session.settings.browse_blocks } else { max.into() };
    let most = usize::try_from(most).unwrap_or(usize::MAX);
    // Of the block that was shown last: its topic, and its line there.
    let (last, line) = cursor.map_or(("", 0), |cursor| {
        let place = cursor.rsplit_once(':').and_then(|(path, line)| Some((path, line.parse().ok()?)));
        place.unwrap_or((cursor, usize::MAX))
    });
    let view = session.view()?;
    settled(|_| {
        let topics = known(session, &view)?;
        let wanted = |path: &&TopicPath| {
            view.audience().sees(path.as_str())
                && is_below(prefix, path.as_str())
                && path_order(path.as_str(), last).is_ge()
        };
        let mut blocks: Vec<ListedBlock> = Vec::new();
        for path in topics.paths().filter(wanted) {
            let Some(check) = looked_through(&topics, path)? else { continue };
            let behind = |one: &ListedBlock| path.as_str() != last || one.line > line;
            blocks.extend(listed(&check, matching).into_iter().filter(behind));
            if blocks.len() > most {
                break;
            }
        }
        let is_more = blocks.len() > most;
        blocks.truncate(most);
        let next = blocks.last().filter(|_| is_more).map(|one| format!("{}:{}", one.topic, one.line));
        Ok(wit::StructurePage { blocks: blocks.into_iter().map(listed_block).collect(), next })
    })
}

/// Blocks that another program refers to.
pub(crate) fn references(
    session: &Session,
    given: Vec<wit::BlockReference>,
    max_chars: u32,
) -> Result<wit::ReferencedBlocks, wit::Error> {
    session.allow(Verb::References)?;
    let refused = |fault: ReadFault| match fault {
        ReadFault::NoSuchBlock(block) => missing(&block),
        fault => invalid(&fault),
    };
    let pairs = given.into_iter().map(|one| (one.workspace, one.block)).collect();
    let references = BlockReference::of_pairs(pairs).map_err(refused)?;
    let chars = if max_chars == 0 { session.settings.references_chars } else { max_chars.into() };
    let id = workspace_id()?.map(|id| id.to_string()).unwrap_or_default();
    let view = session.view()?;
    settled(|_| {
        let topics = known(session, &view)?;
        let failed = std::cell::RefCell::new(None);
        let find = |block: &str| {
            let path = place(&topics, &view, block).ok()?;
            let check = looked_through(&topics, &path).unwrap_or_else(|error| {
                failed.replace(Some(error));
                None
            })?;
            check.blocks().flat_map(|one| one.units(0)).find(|unit| unit.id.as_str() == block)
        };
        let blocks = resolve(&references, &id, &find);
        failed.take().map_or(Ok(()), Err)?;
        let blocks = blocks.map_err(refused)?;
        let prompt = render(&blocks, usize::try_from(chars).unwrap_or(usize::MAX)).map_err(refused)?;
        Ok(wit::ReferencedBlocks { blocks: blocks.into_iter().map(referenced_block).collect(), prompt })
    })
}

/// A topic, looked through, with what the table knows of the archives; none if it is not UTF-8, or no longer known.
pub(crate) fn looked_through<'t>(topics: &'t Topics, path: &TopicPath) -> Result<Option<Check<'t>>, wit::Error> {
    let (Some(entry), Some(text)) = (topics.table.entry(path), topics.read(path)?) else { return Ok(None) };
    let mut check = Check::new(path.clone(), TopicRef::parse(text), &entry.sources());
    check.yield_to(&|id| topics.table.topics_of(id).first().is_some_and(|first| first < path));
    Ok(Some(check))
}

/// Whether a path is at or below a prefix, by whole parts.
fn is_below(prefix: &str, path: &str) -> bool {
    let rest = path.strip_prefix(prefix);
    prefix.is_empty() || rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// The topics, as far as the table knows them. What is hidden from the caller is in it.
pub(crate) fn known(session: &Session, view: &View) -> Result<Topics, wit::Error> {
    let failed = |error| convert::store_error(error, Some("topics"));
    let entries = tree::list(Area::Tree, "topics").or_else(|error| match error {
        StoreError::NotFound => Ok(Vec::new()),
        error => Err(failed(error)),
    })?;
    let files = std::cell::RefCell::new(session.files());
    let digest_of = |path: &str| -> Option<Digest> {
        let entry = tree::find(Area::Tree, path).ok().flatten()?;
        let state = files.borrow_mut().known(path, &tree::version(&entry.stamp))?;
        Some(state.root)
    };
    let everything = View::of(source::Tier::Owner)?;
    let archives = Archives::of(&everything, &session.settings.limits());
    let mut topics = Topics::load(entries, &digest_of, &archives, &session.kept, &session.settings.limits())?;
    if view.is_everything() {
        topics.save();
    }
    Ok(topics)
}

/// The topic that a block is in, if the caller sees it.
pub(crate) fn place(topics: &Topics, view: &View, block: &str) -> Result<TopicPath, wit::Error> {
    let first = topics.table.topics_of(block).into_iter().find(|path| view.audience().sees(path.as_str()));
    first.ok_or_else(|| missing(block))
}

fn missing(block: &str) -> wit::Error {
    let problem = convert::problem(
        "MEMORY_NOT_FOUND",
        "no-such-block",
        None,
        "no topic has a block of this id; `browse --blocks` lists ids",
    );
    wit::Error::NotFound(Problem { subject: Some(block.to_owned()), ..problem })
}

fn unread(path: &str, why: String) -> wit::Finding {
    let code = source::FindingCode::UnreadableFile;
    convert::finding(source::Finding {
        code: code.as_str(),
        severity: code.severity(),
        path: Some(path.to_owned()),
        line: None,
        subject: None,
        excerpt: None,
        message: why,
    })
}

fn invalid(fault: &ReadFault) -> wit::Error {
    wit::Error::Invalid(convert::problem(fault.code(), fault.reason(), None, fault.to_string()))
}

/// A whole file's text.
pub(crate) fn text_of(entry: &Entry) -> Result<String, wit::Error> {
    let failed = |error| convert::store_error(error, Some(&entry.path));
    if !tree::is_file(entry) {
        return Err(failed(StoreError::Denied("not a regular file".to_owned())));
    }
    let mut text = String::new();
    let mut reader = Reader::listed(entry);
    while let Some(piece) = reader.next().map_err(failed)? {
        match piece {
            Piece::Text(piece) if text.is_empty() => text = piece,
            Piece::Text(piece) => text.push_str(&piece),
            Piece::Bytes(_) => return Err(failed(StoreError::NotText(reader.offset()))),
        }
    }
    Ok(text)
}

/// A part of a file, with the numbers its lines have there.
fn show(session: &Session, path: &str, text: &str, selection: Selection<'_>) -> Result<wit::Excerpt, wit::Error> {
    let shown = part(path, text, selection, &session.settings.limits()).map_err(|fault| match fault {
        ReadFault::NoSuchHeading(heading) => {
            let fault = ReadFault::NoSuchHeading(heading.clone());
            let problem = convert::problem("MEMORY_NOT_FOUND", fault.reason(), Some(path), fault.to_string());
            wit::Error::NotFound(Problem { subject: Some(heading), ..problem })
        }
        ReadFault::NoSuchBlock(block) => missing(&block),
        fault => invalid(&fault),
    })?;
    let mut left = session.settings.get_bytes;
    let mut lines = Vec::new();
    let mut next_line = None;
    for (number, line) in shown {
        let length = line.len() as u64;
        if length > left && !lines.is_empty() {
            next_line = Some(number);
            break;
        }
        let fits = usize::try_from(left).unwrap_or(usize::MAX).min(line.len());
        let cut = line.floor_char_boundary(fits);
        let text = line.get(..cut).unwrap_or_default().to_owned();
        lines.push(wit::NumberedLine { number, text, cut: cut < line.len() });
        left = left.saturating_sub(length);
    }
    Ok(wit::Excerpt { path: path.to_owned(), lines, record: None, next_line })
}

fn found_line(found: recollex_core::read::Found) -> wit::FoundLine {
    let line = wit::NumberedLine { number: found.line, text: found.text, cut: found.cut };
    wit::FoundLine { path: found.path, line, is_match: found.is_match }
}

fn timeline_entry(entry: TimelineEntry) -> wit::TimelineEntry {
    let TimelineEntry { time, text, block, path, headings, evidence } = entry;
    wit::TimelineEntry { time: time.to_string(), text, block, path, headings, evidence }
}

fn listed_block(one: ListedBlock) -> wit::ListedBlock {
    let ListedBlock { id, others, topic, line, headings, text, when, is_sound } = one;
    wit::ListedBlock {
        id,
        others,
        path: topic.to_string(),
        line: line as u64,
        headings,
        text,
        time: dated(when),
        sound: is_sound,
    }
}

fn referenced_block(one: ReferencedBlock) -> wit::ReferencedBlock {
    wit::ReferencedBlock {
        block: one.reference.memory_id,
        path: format!("topics/{}", one.topic_path),
        text: one.content,
        time: dated(one.when),
    }
}

/// A time, unless there is none.
fn dated(when: Option<EvidenceTime>) -> Option<String> {
    when.filter(|when| when.span().is_some()).map(|when| when.to_string())
}

fn account_of(why: Why) -> wit::Account {
    let source = |because: recollex_core::read::Because| wit::CitedSource {
        label: because.label,
        target: because.target,
        id: because.source.map(|source| source.to_string()),
        record: because.record.map(convert::record),
        after: because.after,
        trust: trust(because.trusted),
    };
    let citation = |evidence: recollex_core::read::Evidence| wit::Citation {
        label: evidence.label,
        time: dated(evidence.when),
        quote: evidence.quote,
        sources: evidence.sources.into_iter().map(source).collect(),
    };
    wit::Account {
        block: why.id,
        merged: why.merged,
        path: why.topic.to_string(),
        line: why.line as u64,
        headings: why.headings,
        text: why.content,
        sound: why.sound,
        trust: trust(why.trusted),
        citations: why.evidence.into_iter().map(citation).collect(),
        links: why.links,
        linked_from: why
            .linked_from
            .into_iter()
            .map(|from| wit::Backlink { block: from.id, path: from.topic.to_string() })
            .collect(),
    }
}

fn trust(trusted: bool) -> wit::Trust {
    if trusted { wit::Trust::Trusted } else { wit::Trust::Pending }
}

impl Records for Archives {
    fn record(&self, source: &SourceRef) -> Option<Record> {
        self.whole_record(source)
    }

    fn is_trusted(&self, source: &SourceRef) -> bool {
        use recollex_core::topic::edit::Evidence as _;
        self.look_up(source).is_some_and(|kept| kept.trusted)
    }

    fn after(&self, source: &SourceRef) -> Option<String> {
        self.predecessor(source)
    }
}
