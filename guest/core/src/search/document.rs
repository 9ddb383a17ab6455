//! What the index is given, and what it keeps of it.
//!
//! The index keeps no text: whoever shows a hit reads it from its file. It keeps where that is, what filters and ties
//! need, and of what the text says the few bits that scores need.

use crate::ids::Span;
use crate::source::{FrameRef, Record};

/// What kind of thing a document is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// A record of evidence.
    Source,
    /// A paragraph of a topic.
    Topic,
    /// A reviewed experience.
    Experience,
}

/// Something to be found.
#[derive(Clone, Copy, Debug)]
pub struct Document<'a> {
    /// Its id, by which hits are named and ties are broken. Unique by the caller's care: the index finds what it was given
    /// as often as it was given.
    pub id: &'a str,
    /// What it is.
    pub kind: Kind,
    /// When. Of a record, what stands between its brackets: its day is the whole of it where it is written `YYYY`, `YYYY-MM`
    /// or `YYYY-MM-DD`, else the first `YYYY-MM-DD` in it, else the first in the label and the text. Of a claim, its times,
    /// joined by `; `: each is a day, month or year of its own, and nothing else says when it was.
    pub time: &'a str,
    /// The label as written in a record; of a claim, the words of its path and the headings above it. Counts as text, so that
    /// a query may name the speaker or the topic, unless it is a role.
    pub label: &'a str,
    /// Who the runtime says spoke; none where it gave nobody.
    pub speaker: Option<Speaker<'a>>,
    /// It was said by an assistant, a tool or the system, and not by a person.
    pub by_machine: bool,
    /// What was said, of any length.
    pub text: &'a str,
    /// Where it stands in its file.
    pub place: Place,
}

/// What stands between the times of a claim.
pub(super) const TIMES: &str = "; ";

/// The labels of records that nobody in particular said.
const ROLES: [&str; 4] = ["user", "assistant", "system", "tool"];

/// What a runtime calls those who are no people, as kinds of speakers.
const MACHINES: [&str; 5] = ["assistant", "agent", "runtime", "system", "tool"];

impl<'a> Document<'a> {
    /// Of a record of evidence, in which `text` was said, and which stands at that place.
    pub fn of_record(record: &'a Record, text: &'a str, place: Place) -> Document<'a> {
        let by_role = record.speaker.is_none() && record.label != "user" && ROLES.contains(&record.label.as_str());
        Document {
            id: &record.id,
            kind: Kind::Source,
            time: &record.time,
            label: &record.label,
            speaker: record.speaker.as_ref().map(|speaker| Speaker {
                id: &speaker.id,
                display: &speaker.display,
                label: &speaker.label,
            }),
            by_machine: by_role || MACHINES.contains(&record.kind.as_str()),
            text,
            place,
        }
    }

    /// The days it is about; of a claim with several times, the first of them.
    pub(super) fn days(&self) -> Option<Span> {
        match self.kind {
            Kind::Source => {
                self.dates().next().or_else(|| [self.label, self.text].into_iter().find_map(Span::first_in))
            }
            Kind::Topic | Kind::Experience => self.dates().next(),
        }
    }

    /// What its time says, as far as that are days.
    pub(super) fn dates(&self) -> impl Iterator<Item = Span> + use<'a> {
        let (times, whole) = match self.kind {
            Kind::Source => (None, Span::parse(self.time).or_else(|| Span::first_in(self.time))),
            Kind::Topic | Kind::Experience => (Some(self.time.split(TIMES).filter_map(Span::parse)), None),
        };
        times.into_iter().flatten().chain(whole)
    }

    /// What a part keeps as its id: it, and behind an LF the other days that it is about.
    pub(super) fn key(&self) -> String {
        let mut key = self.id.to_owned();
        for days in self.dates().skip(1) {
            key.push('\n');
            key.push_str(&days.code().to_string());
        }
        key
    }

    /// What of its label is text.
    pub(super) fn searched_label(&self) -> &'a str {
        let is_role = self.kind == Kind::Source && self.speaker.is_none() && ROLES.contains(&self.label);
        if is_role { "" } else { self.label }
    }
}

/// The id in a [`Document::key`].
pub(super) fn id_of(key: &str) -> &str {
    key.split('\n').next().unwrap_or_default()
}

/// The other days in a [`Document::key`].
pub(super) fn other_days(key: &str) -> impl Iterator<Item = Span> {
    key.split('\n').skip(1).filter_map(|code| Span::of_code(code.parse().ok()?))
}

/// The names of a speaker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Speaker<'a> {
    /// As the runtime gave it; may be empty.
    pub id: &'a str,
    /// The name alone; may be empty.
    pub display: &'a str,
    /// Name and id as people see them.
    pub label: &'a str,
}

/// Where a document stands in its file, so that it can be read without the rest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// Of the first byte that belongs to it: of a record, of its frame.
    pub offset: u64,
    /// Bytes from there to what was said; at most a `u32`.
    pub header: u64,
    /// Bytes of what was said.
    pub length: u64,
    /// Line of the first byte, from 1.
    pub line: u64,
}

impl Place {
    /// Of a frame, in which `text` was said, as far as the frame's record was kept.
    pub fn of_frame(frame: &FrameRef<'_>, text: &str) -> Place {
        let before = (frame.record.len() - text.len().min(frame.record.len())) as u64;
        Place {
            offset: frame.offset,
            header: frame.record_offset.saturating_sub(frame.offset).saturating_add(before),
            length: frame.record_length.saturating_sub(before),
            line: frame.anchor_line,
        }
    }
}

/// What is known of a document in one byte.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Traits(pub(super) u8);

impl Traits {
    const KIND: u8 = 3;
    pub(super) const MACHINE: u8 = 4;
    /// Ends by asking something.
    pub(super) const QUESTION: u8 = 8;
    /// Says when something was or will be.
    pub(super) const TIME: u8 = 16;
    /// Has a number.
    pub(super) const NUMBER: u8 = 32;
    /// Says how something is to be from then on.
    pub(super) const STANDING: u8 = 64;

    /// How many values there are of the bits by which a record counts for those beside it: kind, whose it is, whether it is a
    /// question.
    pub(super) const NEAR: usize = 16;

    pub(super) fn new(kind: Kind, by_machine: bool) -> Traits {
        let kind = match kind {
            Kind::Source => 0,
            Kind::Topic => 1,
            Kind::Experience => 2,
        };
        Traits(kind).with(Self::MACHINE, by_machine)
    }

    /// And that, if so.
    #[must_use]
    pub(super) fn with(self, bit: u8, is: bool) -> Traits {
        if is { Traits(self.0 | bit) } else { self }
    }

    /// Every trait there is.
    pub(super) const ANY: Traits = Traits(u8::MAX);

    /// Which of [`Traits::NEAR`] it is.
    #[inline]
    pub(super) fn near(self) -> usize {
        usize::from(self.0) % Self::NEAR
    }

    pub(super) fn kind(self) -> Kind {
        match self.0 & Self::KIND {
            1 => Kind::Topic,
            2 => Kind::Experience,
            _ => Kind::Source,
        }
    }

    pub(super) fn by_machine(self) -> bool {
        self.0 & Self::MACHINE != 0
    }

    pub(super) fn is_question(self) -> bool {
        self.0 & Self::QUESTION != 0
    }

    pub(super) fn says_when(self) -> bool {
        self.0 & Self::TIME != 0
    }

    pub(super) fn has_number(self) -> bool {
        self.0 & Self::NUMBER != 0
    }

    pub(super) fn is_standing(self) -> bool {
        self.0 & Self::STANDING != 0
    }
}
