//! When something happened, as far as that is known.

use super::date::{Day, Span};

/// The time of a piece of evidence: a day, a month, a year, or nothing. The calendar's, years 0001 to 9999, ASCII digits
/// only (FORMAT.md, "Topics").
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EvidenceTime {
    /// `undated`.
    Undated,
    /// `YYYY`: sometime in that year, 1 to 9999.
    Year(u16),
    /// `YYYY-MM`: sometime in that month, 1 to 12.
    Month(u16, u8),
    /// `YYYY-MM-DD`.
    Day(Day),
}

/// The word for no time.
const UNDATED: &str = "undated";

impl EvidenceTime {
    /// Reads a time; none unless it is written as one and there is such a day.
    pub fn parse(text: &str) -> Option<Self> {
        if text == UNDATED {
            return Some(Self::Undated);
        }
        let first = Span::parse(text)?.first();
        match text.len() {
            4 => Some(Self::Year(first.year())),
            7 => Some(Self::Month(first.year(), first.month())),
            _ => Some(Self::Day(first)),
        }
    }

    /// Whether the text is written as a time: `undated`, or groups of 4, 2 and 2 digits joined by hyphens, one to three
    /// of them. Whether there is such a day is [`EvidenceTime::parse`]'s to say.
    pub fn is_written(text: &str) -> bool {
        let shaped = matches!(text.len(), 4 | 7 | 10)
            && text.bytes().enumerate().all(|(at, byte)| match at {
                4 | 7 => byte == b'-',
                _ => byte.is_ascii_digit(),
            });
        shaped || text == UNDATED
    }

    /// The days it may have been; none if undated.
    pub fn span(self) -> Option<Span> {
        match self {
            Self::Undated => None,
            _ => Span::parse(&self.to_string()),
        }
    }
}

impl core::fmt::Display for EvidenceTime {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Undated => f.write_str(UNDATED),
            Self::Year(year) => write!(f, "{year:04}"),
            Self::Month(year, month) => write!(f, "{year:04}-{month:02}"),
            Self::Day(day) => write!(f, "{:04}-{:02}-{:02}", day.year(), day.month(), day.day()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn precision_and_back() {
        for text in ["undated", "0001", "2026", "9999", "2026-01", "2024-02-29", "9999-12-31"] {
            let time = EvidenceTime::parse(text).expect(text);
            assert_eq!(time.to_string(), text);
            assert_eq!(time.span(), Span::parse(text), "{text}");
            assert!(EvidenceTime::is_written(text));
        }
    }

    #[test]
    fn what_is_written_as_a_time_need_not_be_one() {
        for text in ["0000", "2026-00", "2026-13", "2026-02-30", "2023-02-29", "0000-01-01", "2026-01-00"] {
            assert!(EvidenceTime::is_written(text) && EvidenceTime::parse(text).is_none(), "{text}");
        }
        for text in
            ["", " 2026", "2026 ", "26", "2026-1", "20260102", "２０２６", "2026-01-02T00", "Undated", "2026/01"]
        {
            assert!(!EvidenceTime::is_written(text) && EvidenceTime::parse(text).is_none(), "{text}");
        }
    }
}
