//! The text of an edited topic as it is committed: every name in place, every link leading where it should, sections that
//! are empty gone.

use super::names::Names;
use super::rewrite::{Rewritten, Splices};
use super::{Edit, Evidence};
use crate::ids::{SourceRef, TopicPath};
use crate::text::{encode_path_part, is_whitespace};
use crate::topic::block::linked_block;
use crate::topic::item::{DefinitionRef, Item, Items};
use crate::topic::line::Part;
use crate::topic::paragraph::{Ending, ParagraphRef, links_of_text};
use crate::topic::resolve::SourceTarget;
use crate::topic::view::TopicRef;
use core::ops::Range;
use std::collections::BTreeMap;

/// Where evidence was found: what it is, and the file within the workspace if the target named one.
pub(super) type Located = (SourceRef, Option<String>);

/// What rendering a topic takes.
pub(super) struct Renderer<'r> {
    pub(super) path: &'r TopicPath,
    pub(super) edit: &'r Edit<'r>,
    pub(super) evidence: &'r dyn Evidence,
    /// Where the block of an id is, once the edit is made.
    pub(super) place: &'r dyn Fn(&str) -> Option<TopicPath>,
    /// What targets named in the files that blocks of this one were in before.
    pub(super) recovered: &'r BTreeMap<String, Located>,
}

/// A rendered topic.
pub(super) struct Rendered {
    /// Its text, and where that comes from.
    pub(super) text: Rewritten,
    /// Whether nothing is left in it.
    pub(super) empty: bool,
    /// Names of quoted sources that the request does not quote, where they stand in the text that was rendered.
    pub(super) unquoted: Vec<Range<usize>>,
}

impl<'r> Renderer<'r> {
    /// Renders a prepared topic.
    pub(super) fn render<'t>(&self, topic: &TopicRef<'t>, names: &Names<'t>) -> Rendered {
        let text = topic.text();
        let mut splices = Splices::default();
        let mut unquoted = Vec::new();
        for (number, paragraph) in topic.paragraphs().enumerate() {
            self.paragraph(paragraph, names, names.ids.get(&number).map(String::as_str), &mut splices);
        }
        for definition in topic.definitions() {
            self.definition(definition, names, &mut splices, &mut unquoted);
        }
        let empty = !self.edit.mend && drop_empty_sections(text, &mut splices);
        let mut text = splices.apply(text);
        text.end_with_lf();
        Rendered { text, empty, unquoted }
    }

    fn paragraph<'t>(
        &self,
        paragraph: ParagraphRef<'t>,
        names: &Names<'t>,
        new_id: Option<&str>,
        splices: &mut Splices,
    ) {
        let text = paragraph.text();
        let mut cited: Vec<Range<usize>> = Vec::new();
        for citation in paragraph.citations() {
            let (label, span) = (citation.label(), citation.span());
            cited.push(span.clone());
            // A citation follows what it speaks for; at a line's beginning there is nothing to follow.
            let before = text.as_str().get(..span.start - text.start()).unwrap_or_default();
            let kept = before.trim_end_matches(|c| is_whitespace(c) && c != '\n');
            if !kept.is_empty() && !kept.ends_with('\n') {
                splices.replace(text.start() + kept.len()..span.start, "");
            }
            let named = names.label(label.as_str(), label.start());
            if named != label.as_str() {
                splices.replace(label.span(), named);
            }
        }
        for link in links_of_text(text) {
            let target = link.target();
            let next = cited.partition_point(|span| span.end <= target.start());
            let free = cited.get(next).is_none_or(|span| span.start >= target.end());
            if let Some(new) = self.block_link(target.as_str()).filter(|new| free && new != target.as_str()) {
                splices.replace(target.span(), new);
            }
        }
        match (paragraph.ending(), new_id) {
            (Ending::Ids { ids, body }, _) => {
                let run: String = ids.iter().flat_map(|id| [" ^", id.as_str()]).collect();
                splices.replace(body.end()..text.end(), run);
            }
            (_, Some(id)) => {
                let kept = text.as_str().trim_end_matches(is_whitespace);
                splices.replace(text.start() + kept.len()..text.end(), format!(" ^{id}"));
            }
            _ => {}
        }
    }

    /// The target that leads to the block a target names; none if it names none, or there is none.
    fn block_link(&self, target: &str) -> Option<String> {
        let id = linked_block(target)?;
        Some(link_to_block(self.path, &(self.place)(id)?, id))
    }

    fn definition<'t>(
        &self,
        definition: &DefinitionRef<'t>,
        names: &Names<'t>,
        splices: &mut Splices,
        unquoted: &mut Vec<Range<usize>>,
    ) {
        let (label, line) = (definition.label(), definition.lump().text());
        let named = names.labels.get(label.as_str()).map_or(label.as_str(), String::as_str);
        let (sources, plain) = self.sources(definition, unquoted);
        let canonical = (plain && !sources.is_empty()).then(|| {
            let sources: Vec<String> =
                sources.iter().map(|source| format!("[{}]({})", source.label, source.target)).collect();
            format!("[^{named}]: Time: `{}`; Sources: {}", definition.time().as_str(), sources.join(", "))
        });
        let mut in_place = Splices::default();
        if named != label.as_str() {
            in_place.replace(label.span(), named);
        }
        for source in sources {
            if let Some(at) = source.at.filter(|at| at.as_str() != source.target) {
                in_place.replace(at.span(), source.target);
            }
        }
        match canonical {
            // If that is all there is to do, what is found in it later can be told to the character.
            Some(canonical) if in_place.applied(line) != canonical => splices.replace(line.span(), canonical),
            // Without a canonical form there is more in it than sources; that stays.
            _ => splices.append(in_place),
        }
    }

    /// The sources of a definition, each with its target as it is to be written; and whether there is nothing else among
    /// them.
    fn sources<'t>(
        &self,
        definition: &DefinitionRef<'t>,
        unquoted: &mut Vec<Range<usize>>,
    ) -> (Vec<Written<'t>>, bool) {
        let all = definition.sources();
        let mut sources = Vec::new();
        let mut plain = true;
        let mut at = all.start();
        for link in definition.links() {
            plain &=
                self.items(all.slice(at - all.start()..link.whole().start() - all.start()), &mut sources, unquoted);
            let target = link.target();
            if is_quoted(target.as_str()) && !self.edit.quoted.contains_key(target.as_str().trim_matches(is_whitespace))
            {
                unquoted.push(target.span());
            }
            let label = link.label().as_str().to_owned();
            sources.push(Written { label, target: self.target(target.as_str()), at: Some(target) });
            at = link.whole().end();
        }
        plain &= self.items(all.slice(at - all.start()..all.as_str().len()), &mut sources, unquoted);
        (sources, plain)
    }

    /// Sources that are named without a link. Whether the piece holds nothing else.
    fn items<'t>(&self, piece: Part<'t>, sources: &mut Vec<Written<'t>>, unquoted: &mut Vec<Range<usize>>) -> bool {
        let mut plain = true;
        let mut start = 0;
        for item in piece.as_str().split_inclusive(SEPARATORS) {
            let part = piece.slice(start..start + item.trim_end_matches(SEPARATORS).len()).trim();
            start += item.len();
            let name = part.as_str();
            if name.is_empty() {
                continue;
            }
            let handle = match self.edit.quoted.get(name) {
                Some(id) => Some(id.as_str()),
                None => SourceRef::parse(name).is_ok().then_some(name),
            };
            match handle {
                Some(handle) => sources.push(Written { label: handle.to_owned(), target: self.target(name), at: None }),
                None => {
                    plain = false;
                    if is_quoted(name) {
                        unquoted.push(part.span());
                    }
                }
            }
        }
        plain
    }

    /// A source's target as it is to be written: relative to this topic. What names nothing stays as it is.
    fn target(&self, target: &str) -> String {
        let name = target.trim_matches(is_whitespace);
        let located = match self.edit.quoted.get(name) {
            Some(id) => Some((SourceRef::Record(id.clone()), None)),
            None => {
                let target = SourceTarget::parse(name);
                let mended = |target: &SourceTarget<'_>| target.locate_moved(self.evidence).filter(|_| self.edit.mend);
                let recovered = || self.recovered.get(name).cloned();
                target.locate(self.path, self.evidence).or_else(recovered).or_else(|| mended(&target))
            }
        };
        let Some((evidence, found)) = located else { return target.to_owned() };
        let path = found.or_else(|| self.evidence.look_up(&evidence).map(|kept| kept.path));
        let (path, anchor) = match &evidence {
            SourceRef::Record(id) => (path.unwrap_or_else(|| id.legacy_path()), id.anchor()),
            SourceRef::Turn(turn) => (turn.path(), turn.anchor()),
        };
        format!("{}#{anchor}", self.path.relative(&path))
    }
}

/// What may stand between sources.
const SEPARATORS: [char; 3] = [',', '·', ';'];

/// A source as it is to be written; `at`: the target as it stands, if it stands in a link.
struct Written<'t> {
    label: String,
    target: String,
    at: Option<Part<'t>>,
}

/// Whether a name is one for a source that the request itself quotes.
pub(super) fn is_quoted(name: &str) -> bool {
    name.trim_matches(is_whitespace).strip_prefix("new-source-").is_some_and(|rest| {
        !rest.is_empty() && rest.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-'))
    })
}

/// The target of a link from one topic to a block of another.
pub(super) fn link_to_block(from: &TopicPath, to: &TopicPath, id: &str) -> String {
    let path: Vec<String> = from.relative(to.as_str()).split('/').map(encode_path_part).collect();
    format!("{}#^{id}", path.join("/"))
}

/// Takes out headings that nothing stands under, with the blank lines under them; definitions stay. Whether nothing but
/// such is left of the whole.
fn drop_empty_sections(text: &str, splices: &mut Splices) -> bool {
    struct Section {
        parent: Option<usize>,
        /// Of the heading and of blank lines under it.
        spans: Vec<Range<usize>>,
        full: bool,
    }
    let mut sections = vec![Section { parent: None, spans: Vec::new(), full: false }];
    let mut open: Vec<usize> = Vec::new();
    let mut here = 0;
    for item in Items::new(text) {
        match item {
            Item::Heading(heading) => {
                open.truncate(usize::from(heading.level() - 1));
                here = sections.len();
                sections.push(Section { parent: open.last().copied(), spans: vec![item.span()], full: false });
                open.push(here);
            }
            Item::Blank(_) => sections.get_mut(here).into_iter().for_each(|section| section.spans.push(item.span())),
            Item::Definition(_) => {}
            Item::Paragraph(_) | Item::Fence(_) | Item::Comment(_) => {
                let mut above = Some(here);
                while let Some(section) = above.and_then(|at| sections.get_mut(at)).filter(|section| !section.full) {
                    section.full = true;
                    above = section.parent;
                }
            }
        }
    }
    let empty = sections.iter().all(|section| !section.full);
    for span in sections.iter().skip(1).filter(|section| !section.full).flat_map(|section| &section.spans) {
        splices.replace(span.clone(), "");
    }
    empty
}

/// A topic that no edit gives, with its links to these blocks leading where they are now: nothing else of it changes.
pub(super) fn relink(path: &TopicPath, text: &str, moved: &BTreeMap<&str, TopicPath>) -> String {
    let mut splices = Splices::default();
    for paragraph in TopicRef::parse(text).paragraphs() {
        for link in links_of_text(paragraph.text()) {
            let id = linked_block(link.target().as_str());
            if let Some((id, to)) = id.and_then(|id| Some((id, moved.get(id)?))) {
                splices.replace(link.target().span(), link_to_block(path, to, id));
            }
        }
    }
    splices.apply(text).text
}
