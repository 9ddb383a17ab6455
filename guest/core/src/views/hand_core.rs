//! A `core.md` that somebody wrote by hand, from the time before it was made of a topic.
//!
//! Before topics are read for a change, such a file becomes `topics/core.md`, so that its ids and citations are committed ones.
//! What is no topic becomes evidence of the migration, and is never shown as it stands.

use super::core_state::CoreState;
use super::core_view::{CORE_TOPIC, has_scheme};
use crate::digest::Digest;
use crate::ids::{SourceRef, TopicPath};
use crate::source::{NewRecord, Tier, Trust};
use crate::topic::{Check, Fault, Sources, TopicRef};

/// Where what cannot be a topic is archived, and in whose name.
const PROVIDER: &str = "openprogram-migration";
const THREAD: &str = "legacy-core";
const ID_DIGITS: usize = 24;
const SPEAKER: &str = "runtime:legacy-core";
const DISPLAY: &str = "Legacy core migration";
const KIND: &str = "runtime";
const ROLE: &str = "system";

/// What is to be done about a `core.md` without a `topics/core.md`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HandCore {
    /// Nothing: it is ours, is archived already, holds nothing, or is not UTF-8 (which is a finding of its own).
    Leave,
    /// It is a topic: this is `topics/core.md`.
    Promote(String),
    /// It is none: this record is to be kept, and the first fault to be told. The workspace is degraded as long as the file
    /// lies there.
    Archive {
        /// The evidence.
        record: Box<NewRecord>,
        /// Why it is no topic; lines are those of the file.
        fault: Fault,
    },
}

/// Decides about `core.md`, where there is no `topics/core.md`. `state` is what is kept of the view that was made last,
/// `taken` tells ids that blocks of other topics have, `sources` answers for the archives, and `principal` is on whose behalf
/// the record would be kept, the owner's.
pub fn hand_written_core(
    content: &[u8],
    state: Option<&CoreState>,
    taken: &dyn Fn(&str) -> bool,
    sources: &dyn Sources,
    archived: &dyn Fn(&SourceRef) -> bool,
    principal: Option<&str>,
) -> HandCore {
    let (text, fault) = match read(content, state, taken, sources) {
        None => return HandCore::Leave,
        Some(Ok(topic)) => return HandCore::Promote(topic),
        Some(Err(read)) => read,
    };
    let id = Digest::of(content).hex_prefix(ID_DIGITS);
    if SourceRef::parse(&format!("{PROVIDER}/{THREAD}/{id}")).is_ok_and(|source| archived(&source)) {
        return HandCore::Leave;
    }
    let record = NewRecord {
        provider: PROVIDER.to_owned(),
        thread: THREAD.to_owned(),
        id,
        role: ROLE.to_owned(),
        text: text.to_owned(),
        speaker_id: Some(SPEAKER.to_owned()),
        speaker_display: Some(DISPLAY.to_owned()),
        speaker_kind: Some(KIND.to_owned()),
        principal: principal.map(str::to_owned),
        tier: Some(Tier::Owner.as_str().to_owned()),
        trust: Trust::Trusted.as_str().to_owned(),
        ..NewRecord::default()
    };
    HandCore::Archive { record: Box::new(record), fault }
}

/// Why `core.md`, where there is no `topics/core.md`, cannot become that, archived or not: its first fault; lines are those
/// of the file. None: it can, it is ours, it holds nothing, or it is not UTF-8. As for [`hand_written_core`].
pub fn hand_core_fault(
    content: &[u8],
    state: Option<&CoreState>,
    taken: &dyn Fn(&str) -> bool,
    sources: &dyn Sources,
) -> Option<Fault> {
    read(content, state, taken, sources)?.err().map(|(_, fault)| fault)
}

/// The topic that a `core.md` of hand is, or its text and its first fault. None: nobody has written anything by hand.
fn read<'c>(
    content: &'c [u8],
    state: Option<&CoreState>,
    taken: &dyn Fn(&str) -> bool,
    sources: &dyn Sources,
) -> Option<Result<String, (&'c str, Fault)>> {
    if state.is_some_and(|state| state.is_of(content)) {
        return None;
    }
    let text = core::str::from_utf8(content).ok()?;
    let path = TopicPath::parse(CORE_TOPIC).ok()?;
    if text.trim_matches(crate::text::is_whitespace).is_empty() {
        return None;
    }
    let topic = below_topics(text, &path);
    let mut check = Check::new(path, TopicRef::parse(&topic), sources);
    check.yield_to(taken);
    match check.first_strict().cloned() {
        Some(fault) => Some(Err((text, fault))),
        None => Some(Ok(topic)),
    }
}

/// The text of a file in the workspace's own directory as it reads from a topic: the path of each link leads from there. The
/// inverse of what the view does with links.
fn below_topics(text: &str, topic: &TopicPath) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("](") {
        let (before, link) = rest.split_at(at + 2);
        out.push_str(before);
        let end = link.find([')', '#']).unwrap_or(link.len());
        let (path, behind) = link.split_at(end);
        let stays = behind.is_empty() || path.is_empty() || path.starts_with('/') || has_scheme(path);
        // No handle of a record has a fragment or an ending, so what has neither stays one.
        let is_handle = behind.starts_with(')') && SourceRef::parse(path).is_ok() && !path.ends_with(".md");
        let within = path.split('/').filter(|part| !matches!(*part, "" | ".")).collect::<Vec<_>>();
        if stays || is_handle || within.contains(&"..") {
            out.push_str(path);
        } else {
            out.push_str(&topic.relative(&within.join("/")));
        }
        rest = behind;
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::super::core_state::CoreCount;
    use super::super::core_view::CoreDraft;
    use super::*;
    use crate::source::Limits;

    fn decide(content: &[u8]) -> HandCore {
        hand_written_core(content, None, &|id| id == "taken", &(), &|_| false, None)
    }

    const TOPIC: &str = "# Core\n\nTea, see [a](topics/a.md#^b), [w](https://x/y#z), [abs](/c), [f](#^one).[^a] ^one\n\n\
                         [^a]: Time: `2026`; Sources: [l](D1:1), [m](x#d1-2)\n";

    #[test]
    fn a_topic_is_promoted_and_its_view_is_what_was_written() {
        let HandCore::Promote(topic) = decide(TOPIC.as_bytes()) else { panic!("it is a topic") };
        let expected = TOPIC.replace("(topics/a.md", "(a.md").replace("(x#", "(../x#");
        assert_eq!(topic, expected);
        let path = TopicPath::parse(CORE_TOPIC).expect("a topic");
        let check = Check::new(path, TopicRef::parse(&topic), &());
        let count = CoreCount::new(CoreDraft::new(&check, &|_| true, 1000), None);
        let tokens: Vec<u64> = count.texts().iter().map(|_| 1).collect();
        let view = count.make(&tokens, true).view.text;
        // Except that a link within the file now names the topic.
        assert_eq!(view, TOPIC.replace("(#^one", "(topics/core.md#^one"));
        let handle = "A.[^a] ^one\n\n[^a]: Time: `2026`; Sources: [m](openprogram/s/m1)\n";
        assert_eq!(decide(handle.as_bytes()), HandCore::Promote(handle.to_owned()));
        assert_eq!(decide(b"# Only a heading\n"), HandCore::Promote("# Only a heading\n".to_owned()));
    }

    #[test]
    fn what_is_no_topic_is_archived_once() {
        for text in ["Prefers tea.\n", "# Core\n\nTea.[^a] ^taken\n\n[^a]: Time: `2026`; Sources: [l](D1:1)\n"] {
            let HandCore::Archive { record, fault } = decide(text.as_bytes()) else { panic!("{text} is no topic") };
            assert_eq!((record.text.as_str(), record.id.len()), (text, ID_DIGITS));
            assert!(fault.code.is_strict());
            assert!(record.check(&Limits::default()).is_ok());
            let again = hand_written_core(text.as_bytes(), None, &|_| true, &(), &|_| true, None);
            assert_eq!(again, HandCore::Leave);
            let told = hand_core_fault(text.as_bytes(), None, &|id| id == "taken", &());
            assert_eq!(told.as_ref(), Some(&fault));
        }
    }

    #[test]
    fn what_says_nothing_or_is_ours_stays() {
        for content in [&b""[..], b" \n", b"\xff"] {
            assert_eq!(decide(content), HandCore::Leave);
            assert_eq!(hand_core_fault(content, None, &|_| true, &()), None);
        }
        let path = TopicPath::parse(CORE_TOPIC).expect("a topic");
        let made = CoreCount::new(CoreDraft::new(&Check::new(path, TopicRef::parse(TOPIC), &()), &|_| true, 9), None)
            .make(&[1, 1], true);
        let ours = made.view.text.as_bytes();
        assert_eq!(hand_written_core(ours, Some(&made.state), &|_| false, &(), &|_| false, None), HandCore::Leave);
        assert_ne!(decide(ours), HandCore::Leave);
    }
}
