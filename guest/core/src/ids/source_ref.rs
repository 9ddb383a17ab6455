//! What a claim may rest on.

use super::source_id::{SourceId, SourceIdError};

/// A piece of evidence, by the name that search results, tools and footnotes share.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SourceRef {
    /// A record of an archive.
    Record(SourceId),
    /// A turn of a numbered conversation, `sources/D<n>.md`.
    Turn(TurnRef),
}

impl SourceRef {
    /// Reads a handle: `D3:7`, or an id that a v2 archive may carry and that has no `#`.
    ///
    /// # Errors
    /// Why it is no id of a record, where it is no turn either.
    pub fn parse(text: &str) -> Result<Self, SourceIdError> {
        if let Some(turn) = TurnRef::parse(text) {
            return Ok(Self::Turn(turn));
        }
        if text.contains('#') {
            return Err(SourceIdError::Unsafe('#'));
        }
        SourceId::for_reading(text).map(Self::Record)
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Record(id) => id.as_str(),
            Self::Turn(turn) => turn.as_str(),
        }
    }
}

impl core::fmt::Display for SourceRef {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// `D<n>:<m>`: turn *m* of the numbered conversation *n*, both in ASCII digits, kept as they are written.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TurnRef {
    text: Box<str>,
    colon: usize,
}

impl TurnRef {
    /// Reads a reference; none unless it is exactly one.
    pub fn parse(text: &str) -> Option<Self> {
        let (conversation, turn) = text.strip_prefix('D')?.split_once(':')?;
        (is_number(conversation) && is_number(turn)).then(|| Self::new(conversation, turn))
    }

    /// The turn of an anchor as archives have it, `d3-7`; none unless it is exactly one.
    pub fn of_anchor(anchor: &str) -> Option<Self> {
        let (conversation, turn) = anchor.strip_prefix('d')?.split_once('-')?;
        (is_number(conversation) && is_number(turn)).then(|| Self::new(conversation, turn))
    }

    /// Of two numbers.
    pub(super) fn new(conversation: &str, turn: &str) -> Self {
        Self { text: format!("D{conversation}:{turn}").into(), colon: 1 + conversation.len() }
    }

    /// The turn whose anchor, `d3-7` in letters of either case, stands behind the last `#` of a link's fragment.
    pub fn in_fragment(fragment: &str) -> Option<Self> {
        let anchor = fragment.rsplit('#').next()?;
        let (conversation, turn) = anchor.strip_prefix(['d', 'D'])?.split_once('-')?;
        (is_number(conversation) && is_number(turn)).then(|| Self::new(conversation, turn))
    }

    /// The reference.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The conversation's number.
    pub fn conversation(&self) -> &str {
        self.text.get(1..self.colon).unwrap_or_default()
    }

    /// The turn's number.
    pub fn turn(&self) -> &str {
        self.text.get(self.colon + 1..).unwrap_or_default()
    }

    /// Whether this is how we write one: numbers of at most nine digits, without a zero in front.
    pub fn is_canonical(&self) -> bool {
        [self.conversation(), self.turn()]
            .into_iter()
            .all(|number| number.len() <= WRITTEN_DIGITS_MAX && (number == "0" || !number.starts_with('0')))
    }

    /// Where the conversation lies in a workspace: `sources/D3.md`.
    pub fn path(&self) -> String {
        format!("sources/{}.md", self.text.get(..self.colon).unwrap_or_default())
    }

    /// The turn's anchor in that file: `d3-7`.
    pub fn anchor(&self) -> String {
        format!("d{}-{}", self.conversation(), self.turn())
    }
}

impl AsRef<str> for TurnRef {
    fn as_ref(&self) -> &str {
        self.as_str()
    }
}

impl core::fmt::Display for TurnRef {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Digits that each number of a reference we write has at most.
const WRITTEN_DIGITS_MAX: usize = 9;

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn handles() {
        let turn = TurnRef::parse("D30:07").expect("a turn");
        assert_eq!((turn.as_str(), turn.path(), turn.anchor()), ("D30:07", "sources/D30.md".into(), "d30-07".into()));
        assert_eq!(SourceRef::parse("D30:07"), Ok(SourceRef::Turn(turn)));
        assert_eq!(SourceRef::parse("a/b/c/d").map(|id| id.to_string()), Ok("a/b/c/d".to_owned()));
        for bad in ["", "d1:1", "D1", "D:1", "D1:", "D１:1", "D1:1 ", "a/b", "../a/b", "a/b/c#d", "a/b/[c]"] {
            assert!(SourceRef::parse(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn turns_of_anchors() {
        let turn = TurnRef::of_anchor("d3-7").expect("a turn");
        assert_eq!((turn.as_str(), turn.conversation(), turn.is_canonical()), ("D3:7", "3", true));
        for bad in ["D3-7", "d3:7", "d3-", "d-7", "d3-7-8", "d3-7 ", "d３-7"] {
            assert_eq!(TurnRef::of_anchor(bad), None, "{bad:?}");
        }
        for odd in ["D03:7", "D3:07", "D1234567890:1"] {
            assert!(!TurnRef::parse(odd).expect("a turn").is_canonical(), "{odd}");
        }
        assert!(TurnRef::parse("D0:999999999").expect("a turn").is_canonical());
    }

    #[test]
    fn turns_in_fragments() {
        for (fragment, turn) in [("d1-2", "D1:2"), ("D1-2", "D1:2"), ("x#d1-1", "D1:1")] {
            assert_eq!(TurnRef::in_fragment(fragment).expect(fragment).as_str(), turn);
        }
        for fragment in ["d1-", "d-1", "d1-1x", "e1-1", "d1-1#", "d1_1", "xd1-1", ""] {
            assert_eq!(TurnRef::in_fragment(fragment), None, "{fragment:?}");
        }
    }
}
