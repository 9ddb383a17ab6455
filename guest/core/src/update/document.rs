//! A topic as a row of pieces that can be taken out and put in.
//!
//! Knows what a topic looks like. Must not know who asks for what.

use crate::topic::{Citations, Ending, Groups, Item, Items, ParagraphRef, is_older, with_lf};
use core::ops::Range;
use std::borrow::Cow;
use std::collections::BTreeSet;

/// A topic taken apart.
#[derive(Clone, Debug, Default)]
pub(super) struct Document<'a> {
    pieces: Vec<Piece<'a>>,
}

/// Whole lines, the last one's end included.
#[derive(Clone, Debug)]
struct Piece<'a> {
    kind: Kind,
    text: Cow<'a, str>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Kind {
    Blank,
    Heading(u8, String),
    Paragraph,
    /// Of the footnote with this label.
    Definition(String),
    Fence,
    Comment,
}

/// A paragraph that is to stand somewhere, with the definitions of what it cites that have to come with it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Entry {
    /// Its lines, without the last one's end.
    pub(super) text: String,
    /// Lines, without their ends.
    pub(super) definitions: Vec<String>,
}

/// A record in a document: its paragraph, and its ids.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Found {
    at: usize,
    /// Those of blocks that were merged into it, and last its own.
    pub(super) ids: Vec<String>,
    /// What of the paragraph it is; none: all of it.
    part: Option<Range<usize>>,
}

/// Where something is to be put in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Place {
    at: usize,
    /// Headings to put in first: level and text.
    headings: Vec<(u8, String)>,
}

/// Where under the headings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Spot<'p> {
    Start,
    End,
    Before(&'p str),
    After(&'p str),
}

impl<'a> Document<'a> {
    /// Takes a topic apart.
    pub(super) fn parse(text: &'a str) -> Self {
        match with_lf(text) {
            Cow::Borrowed(text) => Self { pieces: Items::new(text).map(|item| Piece::of(item, text)).collect() },
            Cow::Owned(text) => Self { pieces: Items::new(&text).map(|item| Piece::of(item, &text).owned()).collect() },
        }
    }

    /// The topic.
    pub(super) fn text(&self) -> String {
        let mut text = String::with_capacity(self.pieces.iter().map(|piece| piece.text.len()).sum());
        self.pieces.iter().for_each(|piece| text.push_str(&piece.text));
        text
    }

    /// The record that has the id.
    pub(super) fn find(&self, id: &str) -> Option<Found> {
        self.pieces.iter().enumerate().find_map(|(at, piece)| {
            let (ids, part) = piece.record(id)?;
            Some(Found { at, ids, part })
        })
    }

    /// The whole paragraph that a record stands in, if all records in it are among these.
    pub(super) fn with_neighbours(&self, found: Found, named: &BTreeSet<&str>) -> Found {
        let Some(paragraph) = self.pieces.get(found.at).filter(|_| found.part.is_some()).and_then(Piece::paragraph)
        else {
            return found;
        };
        let all = paragraph.citations().all(|citation| named.contains(citation.label().as_str()));
        if all { Found { part: None, ..found } } else { found }
    }

    /// Takes the id off a record: what is left of it stays, with its other ids, and without any it goes.
    pub(super) fn drop_id(&mut self, id: &str) {
        let Some(found) = self.find(id) else { return };
        if found.ids.len() == 1 {
            self.take(&found);
            return;
        }
        let Some(piece) = self.pieces.get_mut(found.at) else { return };
        let mark = if found.part.is_some() { format!("[^{id}]") } else { format!(" ^{id}") };
        let text = piece.text.trim_end_matches('\n');
        let from = found.part.as_ref().map_or_else(|| run_of_ids(text), |part| part.start);
        let to = found.part.as_ref().map_or(text.len(), |part| part.end);
        let run = text.get(from..to).unwrap_or_default();
        let left = match found.part {
            Some(_) => run.replacen(&mark, "", 1),
            None => {
                let kept = found.ids.iter().filter(|one| *one != id);
                kept.fold(String::new(), |run, id| format!("{run} ^{id}"))
            }
        };
        let cited = citations(&piece.text);
        piece.splice(from..to, &left);
        self.drop_definitions(&cited);
    }

    /// Makes a record say something else, and rest on something else; it keeps its ids.
    pub(super) fn rewrite(&mut self, found: &Found, content: &str, definition: &dyn Fn(&str) -> String, label: &str) {
        let Some(piece) = self.pieces.get_mut(found.at) else { return };
        let cited = citations(&piece.text);
        match &found.part {
            None => {
                let ids = found.ids.iter().fold(String::new(), |run, id| format!("{run} ^{id}"));
                piece.text = format!("{content}[^{label}]{ids}\n").into();
                let entry = Entry { text: String::new(), definitions: vec![definition(label)] };
                self.insert_pieces(found.at + 1, entry.pieces_behind());
            }
            Some(part) => {
                // Records of the older kind are named by their footnotes.
                let space = if part.start == 0 { "" } else { " " };
                let marks: String = found.ids.iter().map(|id| format!("[^{id}]")).collect();
                piece.splice(part.clone(), &format!("{space}{content}{marks}"));
                for id in &found.ids {
                    self.redefine(id, &definition(id), found.at);
                }
            }
        }
        self.drop_definitions(&cited);
    }

    /// Takes a record out, with the definitions that nothing else cites.
    pub(super) fn take(&mut self, found: &Found) -> Entry {
        let Some(piece) = self.pieces.get_mut(found.at) else { return Entry::default() };
        let text = match &found.part {
            None => piece.text.trim_end_matches('\n').to_owned(),
            Some(part) => {
                piece.text.get(part.clone()).unwrap_or_default().trim_matches(crate::text::is_whitespace).to_owned()
            }
        };
        let cited = citations(&text);
        let rest = found.part.clone().map(|part| {
            piece.splice(part, "");
            piece.text.trim_matches(crate::text::is_whitespace).to_owned()
        });
        match rest.filter(|rest| !rest.is_empty()) {
            Some(rest) => piece.text = format!("{rest}\n").into(),
            None => self.remove(found.at),
        }
        let definitions = cited.iter().filter_map(|label| self.definition(label)).collect();
        self.drop_definitions(&cited);
        Entry { text, definitions }
    }

    /// The line that defines a footnote, in a fence if it is nowhere else.
    pub(super) fn definition(&self, label: &str) -> Option<String> {
        let defines = |piece: &&Piece<'_>| matches!(&piece.kind, Kind::Definition(defined) if defined == label);
        let outside = self.pieces.iter().find(defines).map(|piece| piece.text.trim_end_matches('\n').to_owned());
        outside.or_else(|| {
            let fences = self.pieces.iter().filter(|piece| piece.kind == Kind::Fence);
            fences.into_iter().find_map(|piece| match Items::new(&piece.text).next() {
                Some(Item::Fence(fence)) => fence
                    .definitions()
                    .find(|definition| definition.label().as_str() == label)
                    .map(|definition| definition.lump().text().as_str().to_owned()),
                _ => None,
            })
        })
    }

    /// Whether a label is cited or defined anywhere.
    pub(super) fn knows(&self, label: &str) -> bool {
        self.definition(label).is_some() || self.cites(label)
    }

    /// Where to put something in, so that it stands under these headings, of which there are at most six. None if that is
    /// relative to a record that is not directly under them.
    pub(super) fn place(&self, headings: &[String], spot: Spot<'_>) -> Option<Place> {
        let (section, matched) = self.section(headings);
        if matched < headings.len() {
            if matches!(spot, Spot::Before(_) | Spot::After(_)) {
                return None;
            }
            // One level below what is there: that makes the path of headings what it shall be, whatever levels the topic uses.
            let missing = (1..).zip(headings).skip(matched).map(|(level, text)| (level, text.clone())).collect();
            let end = self.end_of(section, Some(matched));
            return Some(Place { at: self.behind_last(section, end), headings: missing });
        }
        let (start, end) = (section.map_or(0, |at| at + 1), self.end_of(section, None));
        let at = match spot {
            Spot::Start => start,
            Spot::End => self.behind_last(section, end),
            Spot::Before(id) | Spot::After(id) => {
                let found = self.find(id).filter(|found| (start..end).contains(&found.at))?;
                if matches!(spot, Spot::Before(_)) { found.at } else { found.at + 1 }
            }
        };
        Some(Place { at, headings: Vec::new() })
    }

    /// Puts records in, one behind the other.
    pub(super) fn insert(&mut self, place: Place, entries: Vec<Entry>) {
        let mut pieces: Vec<Piece<'a>> = Vec::new();
        for (level, text) in place.headings {
            let line = format!("{} {text}", "#".repeat(usize::from(level)));
            pieces.push(Piece::new(Kind::Heading(level, text), line));
            pieces.push(Piece::blank());
        }
        for entry in entries {
            let behind = entry.pieces_behind();
            pieces.push(Piece::new(Kind::Paragraph, entry.text));
            pieces.extend(behind);
            pieces.push(Piece::blank());
        }
        pieces.pop();
        let mut at = place.at;
        if at > 0 && self.pieces.get(at - 1).is_some_and(|piece| piece.kind != Kind::Blank) {
            self.end_line(at - 1);
            self.pieces.insert(at, Piece::blank());
            at += 1;
        }
        self.insert_pieces(at, pieces);
    }

    /// Puts pieces in, and an empty line behind them where text would follow directly.
    fn insert_pieces(&mut self, at: usize, mut pieces: Vec<Piece<'a>>) {
        if self.pieces.get(at).is_some_and(|piece| piece.kind != Kind::Blank) {
            pieces.push(Piece::blank());
        }
        if let Some(before) = at.checked_sub(1) {
            self.end_line(before);
        }
        let at = at.min(self.pieces.len());
        self.pieces.splice(at..at, pieces);
    }

    /// Sees to it that a piece ends with a line's end.
    fn end_line(&mut self, at: usize) {
        if let Some(piece) = self.pieces.get_mut(at).filter(|piece| !piece.text.ends_with('\n')) {
            piece.text.to_mut().push('\n');
        }
    }

    /// Takes a piece out. Paragraphs that it kept apart stay so.
    fn remove(&mut self, at: usize) {
        let is_text = |at: Option<usize>| {
            at.and_then(|at| self.pieces.get(at)).is_some_and(|piece| piece.kind == Kind::Paragraph)
        };
        let between = is_text(at.checked_sub(1)) && is_text(Some(at + 1));
        if let Some(piece) = self.pieces.get_mut(at) {
            if between {
                *piece = Piece::blank();
            } else {
                self.pieces.remove(at);
            }
        }
    }

    /// Takes the definitions of those of these footnotes out that nothing cites.
    fn drop_definitions(&mut self, labels: &[String]) {
        let mut free: BTreeSet<&str> = labels.iter().map(String::as_str).collect();
        for piece in self.pieces.iter().filter(|piece| piece.kind == Kind::Paragraph) {
            if free.is_empty() {
                return;
            }
            if let Some(paragraph) = piece.paragraph() {
                for citation in paragraph.citations() {
                    free.remove(citation.label().as_str());
                }
            }
        }
        let mut at = 0;
        while let Some(piece) = self.pieces.get(at) {
            match &piece.kind {
                Kind::Definition(label) if free.contains(label.as_str()) => {
                    let before = self.pieces.len();
                    self.remove(at);
                    at += usize::from(self.pieces.len() == before);
                }
                _ => at += 1,
            }
        }
    }

    fn redefine(&mut self, label: &str, line: &str, near: usize) {
        let defines = |piece: &Piece<'_>| matches!(&piece.kind, Kind::Definition(defined) if defined == label);
        match self.pieces.iter_mut().find(|piece| defines(piece)) {
            Some(piece) => piece.text = format!("{line}\n").into(),
            None => {
                let entry = Entry { text: String::new(), definitions: vec![line.to_owned()] };
                self.insert_pieces(near + 1, entry.pieces_behind());
            }
        }
    }

    fn cites(&self, label: &str) -> bool {
        let paragraphs = self.pieces.iter().filter(|piece| piece.kind == Kind::Paragraph);
        paragraphs
            .into_iter()
            .any(|piece| piece.text.contains("[^") && citations(&piece.text).iter().any(|one| one == label))
    }

    /// The first heading that stands under the most of these, itself included, and how many that are.
    fn section(&self, headings: &[String]) -> (Option<usize>, usize) {
        let mut best = (None, 0);
        let mut open: Vec<&str> = Vec::new();
        for (at, piece) in self.pieces.iter().enumerate() {
            let Kind::Heading(level, text) = &piece.kind else { continue };
            // As everywhere: one of level k takes the place of everything from level k on.
            open.truncate(usize::from(level.saturating_sub(1)));
            open.push(text);
            let fits = open.len() <= headings.len() && open.iter().zip(headings).all(|(a, b)| *a == b.as_str());
            if fits && open.len() > best.1 {
                best = (Some(at), open.len());
                if best.1 == headings.len() {
                    break;
                }
            }
        }
        best
    }

    /// Where the section of a heading ends, or what stands under none: with the next heading or, as a whole, with the next
    /// that does not stand below this one, which is so many headings deep.
    fn end_of(&self, section: Option<usize>, whole: Option<usize>) -> usize {
        let from = section.map_or(0, |at| at + 1);
        let ends = |piece: &Piece<'_>| match &piece.kind {
            Kind::Heading(level, _) => whole.is_none_or(|depth| usize::from(*level) <= depth),
            _ => false,
        };
        let behind = self.pieces.iter().skip(from).position(ends);
        behind.map_or(self.pieces.len(), |behind| from + behind)
    }

    /// Behind the last piece before `end` that is not blank, within the section.
    fn behind_last(&self, section: Option<usize>, end: usize) -> usize {
        let from = section.map_or(0, |at| at + 1);
        let pieces = self.pieces.get(from..end).unwrap_or_default();
        pieces.iter().rposition(|piece| piece.kind != Kind::Blank).map_or(from, |last| from + last + 1)
    }
}

impl Entry {
    /// The definitions, an empty line before each.
    fn pieces_behind<'a>(&self) -> Vec<Piece<'a>> {
        let mut pieces = Vec::with_capacity(self.definitions.len() * 2);
        for line in &self.definitions {
            pieces.push(Piece::blank());
            let kind = match Items::new(line).next() {
                Some(Item::Definition(definition)) => Kind::Definition(definition.label().as_str().to_owned()),
                _ => Kind::Paragraph,
            };
            pieces.push(Piece::new(kind, line.clone()));
        }
        pieces
    }
}

impl<'a> Piece<'a> {
    fn new(kind: Kind, mut line: String) -> Self {
        line.push('\n');
        Self { kind, text: line.into() }
    }

    fn blank() -> Self {
        Self { kind: Kind::Blank, text: "\n".into() }
    }

    fn of(item: Item<'_>, text: &'a str) -> Self {
        let kind = match item {
            Item::Blank(_) => Kind::Blank,
            Item::Heading(heading) => Kind::Heading(heading.level(), heading.text().as_str().to_owned()),
            Item::Paragraph(_) => Kind::Paragraph,
            Item::Definition(definition) => Kind::Definition(definition.label().as_str().to_owned()),
            Item::Fence(_) => Kind::Fence,
            Item::Comment(_) => Kind::Comment,
        };
        Self { kind, text: text.get(item.span()).unwrap_or_default().into() }
    }

    fn owned<'b>(self) -> Piece<'b> {
        Piece { kind: self.kind, text: self.text.into_owned().into() }
    }

    fn splice(&mut self, range: Range<usize>, with: &str) {
        if self.text.get(range.clone()).is_some() {
            self.text.to_mut().replace_range(range, with);
        }
    }

    fn paragraph(&self) -> Option<ParagraphRef<'_>> {
        match Items::new(&self.text).next() {
            Some(Item::Paragraph(paragraph)) => Some(paragraph),
            _ => None,
        }
    }

    /// The ids of the record in it that has this id, and which part of it that is if not all.
    fn record(&self, id: &str) -> Option<(Vec<String>, Option<Range<usize>>)> {
        if self.kind != Kind::Paragraph || !self.text.contains(id) {
            return None;
        }
        let paragraph = self.paragraph()?;
        match paragraph.ending() {
            Ending::Ids { ids, .. } if ids.iter().any(|one| one.as_str() == id) => {
                Some((ids.iter().map(|id| id.as_str().to_owned()).collect(), None))
            }
            Ending::Plain if is_older(paragraph) => Groups::new(paragraph.text()).find_map(|group| {
                let ids: Vec<String> = group.citations().map(|one| one.label().as_str().to_owned()).collect();
                ids.iter().any(|one| one == id).then(|| (ids, Some(group.before().start()..group.run().end())))
            }),
            _ => None,
        }
    }
}

/// What a paragraph cites, each once, in order.
fn citations(text: &str) -> Vec<String> {
    let mut labels: Vec<String> = Vec::new();
    let mut seen = BTreeSet::new();
    if let Some(Item::Paragraph(paragraph)) = Items::new(text).next() {
        for citation in Citations::new(paragraph.text()) {
            if seen.insert(citation.label().as_str()) {
                labels.push(citation.label().as_str().to_owned());
            }
        }
    }
    labels
}

/// Where the ids at a block's end begin, white space before them included.
fn run_of_ids(text: &str) -> usize {
    match Items::new(text).next() {
        Some(Item::Paragraph(paragraph)) => match paragraph.ending() {
            Ending::Ids { body, .. } => body.end(),
            _ => text.len(),
        },
        _ => text.len(),
    }
}
