//! Days and spans of days: of evidence, for the date filter, for ties.
//!
//! The proleptic Gregorian calendar, years 0001 to 9999, ASCII digits only (decisions D01 and D29). Time of day and time
//! zone do not count: a record's day is the one it was written with.

use crate::text::excerpt;
use memchr::memchr_iter;

/// A day, ordered as days are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Day {
    year: u16,
    month: u8,
    day: u8,
}

/// From one day to another, both included; the first is never after the last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    first: Day,
    last: Day,
}

impl Day {
    /// Year, 1 to 9999.
    pub fn year(self) -> u16 {
        self.year
    }

    /// Month, 1 to 12.
    pub fn month(self) -> u8 {
        self.month
    }

    /// Day of the month, 1 to 31.
    pub fn day(self) -> u8 {
        self.day
    }

    /// A day of the calendar; none if there is no such day.
    pub fn new(year: u16, month: u8, day: u8) -> Option<Day> {
        let real = (1..=9999).contains(&year) && (1..=12).contains(&month) && (1..=length(year, month)).contains(&day);
        real.then_some(Day { year, month, day })
    }
}

impl Span {
    /// The day, month or year that is written as `YYYY-MM-DD`, `YYYY-MM` or `YYYY`, and as nothing else.
    pub fn parse(written: &str) -> Option<Span> {
        let mut parts = written.split('-');
        let year = u16::try_from(number(parts.next()?, 4)?).ok()?;
        let month = parts.next().map(|part| number(part, 2));
        let day = parts.next().map(|part| number(part, 2));
        if parts.next().is_some() {
            return None;
        }
        let (first, last) = match (month, day) {
            (None, _) => ((1, 1), (12, 31)),
            (Some(month), None) => {
                let month = u8::try_from(month?).ok()?;
                ((month, 1), (month, length(year, month)))
            }
            (Some(month), Some(day)) => {
                let day = (u8::try_from(month?).ok()?, u8::try_from(day?).ok()?);
                (day, day)
            }
        };
        Some(Span { first: Day::new(year, first.0, first.1)?, last: Day::new(year, last.0, last.1)? })
    }

    /// The first day that stands in `text` as `YYYY-MM-DD` with no further digit at either end.
    pub fn first_in(text: &str) -> Option<Span> {
        let bytes = text.as_bytes();
        memchr_iter(b'-', bytes).find_map(|dash| {
            let start = dash.checked_sub(4)?;
            let alone = |at: Option<usize>| at.and_then(|at| bytes.get(at)).is_none_or(|b| !b.is_ascii_digit());
            if !alone(start.checked_sub(1)) || !alone(Some(start + 10)) {
                return None;
            }
            Span::parse(text.get(start..start + 10)?)
        })
    }

    /// A number that stands for it, above 0: year, month and day in bits, month or day 0 where all of them are meant.
    pub fn code(self) -> u32 {
        let Day { year, month, day } = self.first;
        let year_code = u32::from(year) << 9;
        let month_code = u32::from(month) << 5;
        match (month == self.last.month, day == self.last.day) {
            (false, _) => year_code,
            (true, false) => year_code | month_code,
            (true, true) => year_code | month_code | u32::from(day),
        }
    }

    /// What a [`Span::code`] stands for; none for other numbers.
    pub fn of_code(code: u32) -> Option<Span> {
        let year = u16::try_from(code >> 9).ok()?;
        // Four and five bits.
        let (month, day) = ((code >> 5 & 15) as u8, (code & 31) as u8);
        let (first, last) = match (month, day) {
            (0, 0) => ((1, 1), (12, 31)),
            (_, 0) => ((month, 1), (month, length(year, month))),
            _ => ((month, day), (month, day)),
        };
        Some(Span { first: Day::new(year, first.0, first.1)?, last: Day::new(year, last.0, last.1)? })
    }

    /// First day.
    pub fn first(self) -> Day {
        self.first
    }

    /// Last day.
    pub fn last(self) -> Day {
        self.last
    }
}

fn number(digits: &str, length: usize) -> Option<u32> {
    (digits.len() == length && digits.bytes().all(|b| b.is_ascii_digit())).then(|| digits.parse().ok())?
}

/// Days in a month; of a month that is none, 31.
fn length(year: u16, month: u8) -> u8 {
    match month {
        4 | 6 | 9 | 11 => 30,
        2 if year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400)) => 29,
        2 => 28,
        _ => 31,
    }
}

/// Days from one to another, both included; open at either end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Period {
    from: Option<Day>,
    to: Option<Day>,
}

/// Why there is no such period.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PeriodError {
    /// What it begins with is no date.
    #[error("`{0}` is no date to begin with; write YYYY, YYYY-MM or YYYY-MM-DD")]
    From(String),
    /// What it ends with is none.
    #[error("`{0}` is no date to end with; write YYYY, YYYY-MM or YYYY-MM-DD")]
    To(String),
    /// It ends before it begins.
    #[error("the period ends before it begins; exchange its two dates")]
    Reversed,
}

impl PeriodError {
    /// The stable, kebab-case word.
    #[must_use]
    pub const fn reason(&self) -> &'static str {
        match self {
            Self::From(_) => "invalid-date-from",
            Self::To(_) => "invalid-date-to",
            Self::Reversed => "date-range-reversed",
        }
    }
}

impl Period {
    /// From the first day of one date to the last day of another.
    ///
    /// # Errors
    /// One of them is no date, or they are the wrong way round.
    pub fn parse(from: Option<&str>, to: Option<&str>) -> Result<Self, PeriodError> {
        let span = |given: Option<&str>| {
            given.map(|text| Span::parse(text.trim()).ok_or_else(|| excerpt(text.as_bytes()))).transpose()
        };
        let from = span(from).map_err(PeriodError::From)?.map(Span::first);
        let to = span(to).map_err(PeriodError::To)?.map(Span::last);
        match (from, to) {
            (Some(from), Some(to)) if from > to => Err(PeriodError::Reversed),
            (from, to) => Ok(Self { from, to }),
        }
    }

    /// Whether some of these days lie in it.
    #[must_use]
    pub fn meets(&self, days: Span) -> bool {
        self.from.is_none_or(|from| from <= days.last()) && self.to.is_none_or(|to| days.first() <= to)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(written: &str) -> Option<(Day, Day)> {
        Span::parse(written).map(|s| (s.first(), s.last()))
    }

    fn day(year: u16, month: u8, day: u8) -> Day {
        Day::new(year, month, day).unwrap()
    }

    #[test]
    fn a_year_a_month_and_a_day_are_spans() {
        assert_eq!(span("2024"), Some((day(2024, 1, 1), day(2024, 12, 31))));
        assert_eq!(span("2024-02"), Some((day(2024, 2, 1), day(2024, 2, 29))));
        assert_eq!(span("1900-02"), Some((day(1900, 2, 1), day(1900, 2, 28))));
        assert_eq!(span("2000-02-29"), Some((day(2000, 2, 29), day(2000, 2, 29))));
        assert_eq!(span("0001"), Some((day(1, 1, 1), day(1, 12, 31))));
        assert_eq!(span("9999-12-31"), Some((day(9999, 12, 31), day(9999, 12, 31))));
    }

    #[test]
    fn periods_include_both_ends() {
        let period = Period::parse(Some("2024-02"), Some(" 2024 ")).unwrap();
        let meets = |days: &str| period.meets(Span::parse(days).unwrap());
        assert!(meets("2024-02-01") && meets("2024-12-31") && meets("2024") && !meets("2024-01") && !meets("2025"));
        assert!(Period::parse(None, None).unwrap().meets(Span::parse("0001").unwrap()));
        assert_eq!(Period::parse(Some("2025"), Some("2024")), Err(PeriodError::Reversed));
        assert_eq!(Period::parse(None, Some("soon")), Err(PeriodError::To("soon".to_owned())));
    }

    #[test]
    fn a_code_stands_for_a_span() {
        for written in ["2024", "2024-02", "2024-02-29", "0001-01-01", "9999", "9999-12", "9999-12-31", "2023-12-31"] {
            let span = Span::parse(written).unwrap();
            assert_eq!(Span::of_code(span.code()), Some(span), "{written}");
            assert!(span.code() > 0);
        }
        for code in [0, 1, 31, 2024 << 9 | 1, 2024 << 9 | 13 << 5, 2024 << 9 | 2 << 5 | 30, u32::MAX] {
            assert_eq!(Span::of_code(code), None, "{code}");
        }
    }

    #[test]
    fn what_is_no_date_is_none() {
        for written in [
            "",
            "-",
            "24",
            "02024",
            "0000",
            "0000-01-01",
            "2024-",
            "2024-1",
            "2024-13",
            "2024-00",
            "2024-02-30",
            "1900-02-29",
            "2024-04-31",
            "2024-01-01-",
            "2024-01-01T00:00",
            " 2024",
            "２０２４",
            "+024",
            "2024/01",
        ] {
            assert_eq!(Span::parse(written), None, "{written}");
        }
    }

    #[test]
    fn the_first_real_day_of_a_text_counts() {
        let first = |text| Span::first_in(text).map(|s| s.first());
        assert_eq!(first("2024-03-15T10:00:00+00:00"), Some(day(2024, 3, 15)));
        assert_eq!(first("x-2024-13-01 2024-02-30 2024-02-28, 2023-01-01"), Some(day(2024, 2, 28)));
        assert_eq!(first("12024-03-15 2024-03-155"), None);
        assert_eq!(first("é2024-03-15é"), Some(day(2024, 3, 15)));
        assert_eq!(first("2024-03 ----"), None);
        assert_eq!(first("١2024-03-15"), Some(day(2024, 3, 15)));
    }

    #[test]
    fn days_are_ordered() {
        assert!(day(2024, 1, 31) < day(2024, 2, 1) && day(999, 12, 31) < day(1000, 1, 1));
    }
}
