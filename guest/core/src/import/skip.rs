//! What was left out of a conversation, and why.

use std::collections::BTreeMap;

/// Something that was left out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Skipped {
    /// Its id in the export, or its line, as far as known.
    pub item: Option<String>,
    /// A [`SkipReason`], or a reason why a record is refused (FORMAT.md, "Refusals").
    pub reason: &'static str,
    /// For people.
    pub message: String,
}

macro_rules! skip_reasons {
    ($($(#[$doc:meta])* $name:ident = $text:literal, $message:literal;)*) => {
        /// Why something of a conversation is not kept.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum SkipReason {
            $($(#[$doc])* $name,)*
        }

        impl SkipReason {
            /// All of them, in the order of FORMAT.md.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];

            /// The stable, kebab-case word.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$name => $text,)*
                }
            }

            /// The same for people.
            #[must_use]
            pub const fn message(self) -> &'static str {
                match self {
                    $(Self::$name => $message,)*
                }
            }
        }
    };
}

skip_reasons! {
    /// What the model was told before anybody spoke.
    SystemPrompt = "system-prompt", "instructions to the model; nobody said it in the conversation";
    /// The model called a tool.
    ToolCall = "tool-call", "the model called a tool";
    /// A tool answered.
    ToolResult = "tool-result", "what a tool answered";
    /// What the model wrote for itself.
    Thinking = "thinking", "what the model wrote for itself";
    /// The program that was talked with did not show it.
    Hidden = "hidden", "not shown in the conversation";
    /// Between the model and helpers of its own.
    Sidechain = "sidechain", "between the model and a helper of its own; no person took part";
    /// A summary that a program made of what was said.
    Summary = "summary", "a summary that the program made of what was said before";
    /// Written by the program that was talked with, not by a person or the model.
    ProgramMessage = "program-message", "written by the program itself";
    /// Taken back by the person.
    Rewound = "rewound", "taken back";
    /// On an authority that may not add to memory.
    NotPermitted = "not-permitted", "came about on an authority that may not add to memory";
    /// There is no text in it.
    Empty = "empty", "there is no text in it";
    /// It should say on whose authority it came about, and does not.
    NoAuthority = "no-authority", "does not say on whose authority it came about, as it should";
    /// It has no id, and none is made up.
    NoId = "no-id", "has no id, so it could not be known again";
    /// It says who spoke with a word that is not known.
    UnknownRole = "unknown-role", "who spoke is said with a word that is not known";
    /// It is of a kind that is not known, without text.
    UnknownContent = "unknown-content", "of a kind that is not known, and without text";
    /// It does not have the form that it should.
    Malformed = "malformed", "does not have the form that it should";
    /// Something is missing without which it cannot be kept.
    MissingField = "missing-field", "provider, thread, id, role or text is missing";
    /// Longer than a batch may be.
    RecordTooLarge = "record-too-large", "longer than limits.batch-bytes allows";
    /// Longer than a conversation may be.
    LineTooLong = "line-too-long", "longer than limits.conversation-bytes allows";
}

impl SkipReason {
    /// Whether something is missing: what a person or a model said to the other, as far as can be told, and what the rules
    /// let be kept. What is refused as a record is missing too.
    #[must_use]
    pub const fn is_missing(self) -> bool {
        match self {
            Self::SystemPrompt
            | Self::ToolCall
            | Self::ToolResult
            | Self::Thinking
            | Self::Hidden
            | Self::Sidechain
            | Self::Summary
            | Self::ProgramMessage
            | Self::Rewound
            | Self::NotPermitted
            | Self::Empty => false,
            Self::NoAuthority
            | Self::NoId
            | Self::UnknownRole
            | Self::UnknownContent
            | Self::Malformed
            | Self::MissingField
            | Self::RecordTooLarge
            | Self::LineTooLong => true,
        }
    }
}

/// How much was left out for one reason.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LeftOut {
    /// How often.
    pub count: u64,
    /// For people: what was said of each, or, where that was not the same each time, what the reason says of all; where it
    /// says nothing, the first few messages.
    pub message: String,
    /// [`SkipReason::is_missing`].
    pub missing: bool,
}

/// Collects what is left out: counts everything, and names the first so many, what is missing before the rest.
#[derive(Clone, Debug, Default)]
pub(super) struct Skips {
    /// The first of what is missing.
    missing: Vec<Skipped>,
    /// The first of what nobody misses.
    others: Vec<Skipped>,
    counts: BTreeMap<&'static str, Tally>,
    max: usize,
}

/// So many messages of one reason are told.
const MESSAGES_MAX: usize = 3;

/// How much was left out for one reason, and what was said of it.
#[derive(Clone, Debug, Default)]
struct Tally {
    count: u64,
    /// The first, each once.
    messages: Vec<String>,
    /// There were more than are told.
    more: bool,
    missing: bool,
}

impl Tally {
    fn say(&mut self, message: &str) {
        if self.messages.iter().any(|known| known == message) {
            return;
        }
        if self.messages.len() < MESSAGES_MAX {
            self.messages.push(message.to_owned());
        } else {
            self.more = true;
        }
    }

    fn finish(self, reason: &str) -> LeftOut {
        let Self { count, messages, more, missing } = self;
        let general = SkipReason::ALL.iter().find(|known| known.as_str() == reason).map(|known| known.message());
        let message = match general {
            Some(general) if messages.len() > 1 => general.to_owned(),
            _ => messages.join("; or: ") + if more { "; or …" } else { "" },
        };
        LeftOut { count, message, missing }
    }
}

impl Skips {
    pub(super) fn new(max: usize) -> Self {
        Self { max, ..Self::default() }
    }

    pub(super) fn add(&mut self, item: Option<&str>, reason: SkipReason) {
        self.note(item, reason.as_str(), reason.message(), reason.is_missing());
    }

    /// For a reason why records are refused.
    pub(super) fn add_refused(&mut self, item: Option<&str>, reason: &'static str, message: &str) {
        self.note(item, reason, message, true);
    }

    fn note(&mut self, item: Option<&str>, reason: &'static str, message: &str, missing: bool) {
        let tally = self.counts.entry(reason).or_insert_with(|| Tally { missing, ..Tally::default() });
        tally.count += 1;
        tally.say(message);
        let named = if missing { &mut self.missing } else { &mut self.others };
        if named.len() < self.max {
            let item = item.map(|item| item.chars().take(ITEM_CHARS).collect());
            named.push(Skipped { item, reason, message: message.to_owned() });
        }
    }

    pub(super) fn append(&mut self, other: Self) {
        for (reason, more) in other.counts {
            let tally =
                self.counts.entry(reason).or_insert_with(|| Tally { missing: more.missing, ..Tally::default() });
            tally.count += more.count;
            tally.more |= more.more;
            more.messages.iter().for_each(|message| tally.say(message));
        }
        let max = self.max;
        for (named, more) in [(&mut self.missing, other.missing), (&mut self.others, other.others)] {
            let room = max.saturating_sub(named.len());
            named.extend(more.into_iter().take(room));
        }
    }

    /// How much was left out in all.
    pub(super) fn count(&self) -> u64 {
        self.counts.values().map(|one| one.count).sum()
    }

    /// What is named, and everything by its reason.
    pub(super) fn finish(self) -> (Vec<Skipped>, BTreeMap<&'static str, LeftOut>) {
        let Self { mut missing, others, counts, max } = self;
        let room = max.saturating_sub(missing.len());
        missing.extend(others.into_iter().take(room));
        (missing, counts.into_iter().map(|(reason, tally)| (reason, tally.finish(reason))).collect())
    }
}

/// So much of an id is shown: an export may have any.
const ITEM_CHARS: usize = 256;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_named_first_and_everything_is_counted() {
        let mut skips = Skips::new(3);
        for at in 0..5 {
            skips.add(Some(&format!("call {at}")), SkipReason::ToolCall);
        }
        let mut other = Skips::new(3);
        other.add(Some("line 1"), SkipReason::Malformed);
        other.add(None, SkipReason::ToolCall);
        skips.append(other);
        skips.add_refused(Some("m"), "unsafe-timestamp", "the time contains '['");
        assert_eq!(skips.count(), 8);
        let (named, counts) = skips.finish();
        let named: Vec<_> = named.iter().map(|one| (one.item.as_deref(), one.reason)).collect();
        assert_eq!(
            named,
            [(Some("line 1"), "malformed"), (Some("m"), "unsafe-timestamp"), (Some("call 0"), "tool-call")]
        );
        let counts: Vec<_> = counts.iter().map(|(reason, one)| (*reason, one.count, one.missing)).collect();
        assert_eq!(counts, [("malformed", 1, true), ("tool-call", 6, false), ("unsafe-timestamp", 1, true)]);
    }

    #[test]
    fn a_reason_with_several_messages_tells_each_or_the_general_one() {
        let message = |say: &dyn Fn(&mut Skips), reason: &str| {
            let mut skips = Skips::new(0);
            say(&mut skips);
            skips.finish().1[reason].message.clone()
        };
        let refuse = |messages: &[&str]| {
            message(
                &|skips| messages.iter().for_each(|one| skips.add_refused(None, "invalid-metadata", one)),
                "invalid-metadata",
            )
        };
        assert_eq!(refuse(&["a tier", "a tier"]), "a tier");
        assert_eq!(refuse(&["a tier", "a trust", "a tier"]), "a tier; or: a trust");
        assert_eq!(refuse(&["a", "b", "c", "d"]), "a; or: b; or: c; or …");
        let large = |skips: &mut Skips| {
            let mut other = Skips::new(0);
            skips.add_refused(None, "record-too-large", "800 bytes");
            other.add_refused(None, "record-too-large", "900 bytes");
            skips.append(other);
        };
        assert_eq!(message(&large, "record-too-large"), SkipReason::RecordTooLarge.message());
    }

    #[test]
    fn what_is_missing_is_counted_where_nothing_is_named() {
        let mut skips = Skips::new(0);
        skips.add(Some("m"), SkipReason::NoId);
        let (named, counts) = skips.finish();
        assert_eq!((named.len(), counts["no-id"].count, counts["no-id"].missing), (0, 1, true));
    }
}
