//! What it does to the place of a hit that it stands on another branch than the reader.
//!
//! Knows lines and scores. Which hits there are, and on which line they stand, others know.

use crate::turns::Line;

/// What a score counts for off the reader's own line, in thousandths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LineWeights {
    /// `search.weight.other-branch`: on another branch.
    pub other: u64,
    /// `search.weight.abandoned-branch`: where nobody goes on.
    pub abandoned: u64,
}

/// A whole weight.
const WHOLE: u64 = 1000;

impl LineWeights {
    /// The defaults.
    pub const DEFAULT: Self = Self { other: 700, abandoned: 400 };

    /// The score of a hit that stands on this line; one of another conversation keeps it.
    #[must_use]
    pub fn score(self, score: u64, line: Option<Line>) -> u64 {
        let weight = match line {
            None | Some(Line::Own) => WHOLE,
            Some(Line::Other) => self.other,
            Some(Line::Abandoned) => self.abandoned,
        };
        let weighed = u128::from(score) * u128::from(weight) / u128::from(WHOLE);
        u64::try_from(weighed).unwrap_or(u64::MAX)
    }
}

impl Default for LineWeights {
    fn default() -> Self {
        Self::DEFAULT
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_own_line_comes_first() {
        let weights = LineWeights::DEFAULT;
        let of = |line| weights.score(1000, line);
        assert_eq!(
            [of(None), of(Some(Line::Own)), of(Some(Line::Other)), of(Some(Line::Abandoned))],
            [1000, 1000, 700, 400]
        );
        assert_eq!(LineWeights { other: 1000, ..weights }.score(u64::MAX, Some(Line::Other)), u64::MAX);
    }
}
