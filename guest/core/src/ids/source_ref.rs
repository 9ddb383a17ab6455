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
        (is_number(conversation) && is_number(turn)).then(|| Self { text: text.into(), colon: 1 + conversation.len() })
    }

    /// The turn whose anchor, `d3-7` in letters of either case, stands behind the last `#` of a link's fragment.
    pub fn in_fragment(fragment: &str) -> Option<Self> {
        let anchor = fragment.rsplit('#').next()?;
        let (conversation, turn) = anchor.strip_prefix(['d', 'D'])?.split_once('-')?;
        (is_number(conversation) && is_number(turn))
            .then(|| Self { text: format!("D{conversation}:{turn}").into(), colon: 1 + conversation.len() })
    }

    /// The reference.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Where the conversation lies in a workspace: `sources/D3.md`.
    pub fn path(&self) -> String {
        format!("sources/{}.md", self.text.get(..self.colon).unwrap_or_default())
    }

    /// The turn's anchor in that file: `d3-7`.
    pub fn anchor(&self) -> String {
        self.text.replacen('D', "d", 1).replacen(':', "-", 1)
    }
}

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
    fn turns_in_fragments() {
        for (fragment, turn) in [("d1-2", "D1:2"), ("D1-2", "D1:2"), ("x#d1-1", "D1:1")] {
            assert_eq!(TurnRef::in_fragment(fragment).expect(fragment).as_str(), turn);
        }
        for fragment in ["d1-", "d-1", "d1-1x", "e1-1", "d1-1#", "d1_1", "xd1-1", ""] {
            assert_eq!(TurnRef::in_fragment(fragment), None, "{fragment:?}");
        }
    }
}
