//! When something was said, as requests write it.
//!
//! The other program reads these times with its language's own reader of ISO 8601 and writes them in one form. That form is
//! part of a source's identity, so the reading is the same here: FORMAT.md, "Quoted sources".

use jiff::civil::{Date, ISOWeekDate, Weekday};

/// The time in the one form that is written: `2026-02-01T10:00:00`, with six digits of a second's fraction unless they are
/// zero, and with the offset if there is one. None if it is no time.
pub(super) fn canonical(text: &str) -> Option<String> {
    let (date, behind) = date(text)?;
    let clock = match behind {
        "" => Clock::default(),
        // Whatever character stands between a date and a time.
        _ => clock(behind.strip_prefix(|separator: char| !separator.is_ascii_digit())?)?,
    };
    let mut out = format!(
        "{:04}-{:02}-{:02}T{:02}:{:02}:{:02}",
        date.year(),
        date.month(),
        date.day(),
        clock.time.hour,
        clock.time.minute,
        clock.time.second
    );
    if clock.time.micros != 0 {
        out.push_str(&format!(".{:06}", clock.time.micros));
    }
    if let Some((sign, offset)) = clock.offset {
        out.push_str(&format!("{sign}{:02}:{:02}", offset.hour, offset.minute));
        if offset.second != 0 || offset.micros != 0 {
            out.push_str(&format!(":{:02}", offset.second));
        }
        if offset.micros != 0 {
            out.push_str(&format!(".{:06}", offset.micros));
        }
    }
    Some(out)
}

/// A date, and what stands behind it: `2026-02-01`, `20260201`, `2026-W05-1`, `2026W051`, and weeks without a day.
fn date(text: &str) -> Option<(Date, &str)> {
    let (year, rest) = digits(text, 4)?;
    let year = i16::try_from(year).ok().filter(|year| *year >= 1)?;
    let (dashed, rest) = rest.strip_prefix('-').map_or((false, rest), |rest| (true, rest));
    if let Some(rest) = rest.strip_prefix('W') {
        let (week, rest) = digits(rest, 2)?;
        let day = match (dashed, rest.strip_prefix('-')) {
            (true, Some(rest)) => Some(digits(rest, 1)?),
            (true, None) => None,
            (false, _) => digits(rest, 1),
        };
        let (day, rest) = day.unwrap_or((1, rest));
        let weekday = Weekday::from_monday_one_offset(i8::try_from(day).ok()?).ok()?;
        let date = ISOWeekDate::new(year, i8::try_from(week).ok()?, weekday).ok()?.date();
        return (date.year() >= 1).then_some((date, rest));
    }
    let (month, rest) = digits(rest, 2)?;
    let rest = if dashed { rest.strip_prefix('-')? } else { rest };
    let (day, rest) = digits(rest, 2)?;
    Some((Date::new(year, i8::try_from(month).ok()?, i8::try_from(day).ok()?).ok()?, rest))
}

/// A time of day with its offset from UTC, if that is said.
#[derive(Clone, Copy, Default)]
struct Clock {
    time: Time,
    offset: Option<(char, Time)>,
}

#[derive(Clone, Copy, Default)]
struct Time {
    hour: u32,
    minute: u32,
    second: u32,
    micros: u32,
}

fn clock(text: &str) -> Option<Clock> {
    let zone = text.find(['+', '-', 'Z']);
    let (written, zone) = zone.map_or((text, ""), |at| text.split_at(at));
    let time = time(if zone.is_empty() { written } else { written.strip_suffix(' ').unwrap_or(written) })?;
    let offset = match zone.split_at_checked(1) {
        None => None,
        Some(("Z", "")) => Some(('+', Time::default())),
        Some(("Z", _)) => return None,
        Some((sign, offset)) => {
            let offset = self::time(offset)?;
            // Nothing is behind UTC by nothing.
            let zero = offset.hour == 0 && offset.minute == 0 && offset.second == 0 && offset.micros == 0;
            Some((if sign == "-" && !zero { '-' } else { '+' }, offset))
        }
    };
    Some(Clock { time, offset })
}

/// `10`, `10:00`, `10:00:00`, or the same without colons. A fraction is one of a second, behind whichever part it stands;
/// six digits of it count.
fn time(text: &str) -> Option<Time> {
    let (written, fraction) = text.split_once(['.', ',']).map_or((text, None), |(written, rest)| (written, Some(rest)));
    let (hour, mut rest) = digits(written, 2)?;
    let colons = rest.starts_with(':');
    let mut parts = [0; 2];
    for part in &mut parts {
        if !rest.is_empty() {
            (*part, rest) = digits(if colons { rest.strip_prefix(':')? } else { rest }, 2)?;
        }
    }
    let micros = match fraction {
        None => 0,
        Some(fraction) if !fraction.is_empty() && fraction.bytes().all(|byte| byte.is_ascii_digit()) => {
            let counted: String = fraction.chars().chain("000000".chars()).take(6).collect();
            counted.parse().ok()?
        }
        Some(_) => return None,
    };
    let [minute, second] = parts;
    (rest.is_empty() && hour < 24 && minute < 60 && second < 60).then_some(Time { hour, minute, second, micros })
}

/// The number that so many digits at the beginning are, and what stands behind them.
fn digits(text: &str, count: usize) -> Option<(u32, &str)> {
    let (number, rest) = text.split_at_checked(count)?;
    number.bytes().all(|byte| byte.is_ascii_digit()).then(|| number.parse().ok())?.map(|number| (number, rest))
}

#[cfg(test)]
mod tests {
    use super::canonical;

    /// What the other program's reader makes of them (Python 3.11).
    const READ: &[(&str, &str)] = &[
        ("2026-02-01", "2026-02-01T00:00:00"),
        ("20260201", "2026-02-01T00:00:00"),
        ("2026-W05-1", "2026-01-26T00:00:00"),
        ("2026W051", "2026-01-26T00:00:00"),
        ("2026-W05", "2026-01-26T00:00:00"),
        ("2026W05", "2026-01-26T00:00:00"),
        ("2026-02-01T10", "2026-02-01T10:00:00"),
        ("2026-02-01 10:00", "2026-02-01T10:00:00"),
        ("2026-02-01T10:00:00", "2026-02-01T10:00:00"),
        ("2026-02-01T10:00:00.1", "2026-02-01T10:00:00.100000"),
        ("2026-02-01T10:00:00.123", "2026-02-01T10:00:00.123000"),
        ("2026-02-01T10:00:00,123456", "2026-02-01T10:00:00.123456"),
        ("2026-02-01T10:00:00.123456789", "2026-02-01T10:00:00.123456"),
        ("2026-02-01T100000", "2026-02-01T10:00:00"),
        ("20260201T1000", "2026-02-01T10:00:00"),
        ("20260201T100000.5Z", "2026-02-01T10:00:00.500000+00:00"),
        ("2026-02-01T10:00:00Z", "2026-02-01T10:00:00+00:00"),
        ("2026-02-01T10:00:00+00:00", "2026-02-01T10:00:00+00:00"),
        ("2026-02-01T10:00:00-00:00", "2026-02-01T10:00:00+00:00"),
        ("2026-02-01T10:00+0530", "2026-02-01T10:00:00+05:30"),
        ("2026-02-01T10:00-08", "2026-02-01T10:00:00-08:00"),
        ("2026-02-01T10:00:00+01:02:03", "2026-02-01T10:00:00+01:02:03"),
        ("2026-02-01T10:00:00+01:02:03.000004", "2026-02-01T10:00:00+01:02:03.000004"),
        ("2026-02-01x10:00", "2026-02-01T10:00:00"),
        ("2026-02-01é10:00", "2026-02-01T10:00:00"),
        ("2026-02-01T10.5", "2026-02-01T10:00:00.500000"),
        ("2026-W01-1", "2025-12-29T00:00:00"),
        ("2026-W53-7", "2027-01-03T00:00:00"),
        ("2020-W53-7", "2021-01-03T00:00:00"),
        ("0001-01-01", "0001-01-01T00:00:00"),
        ("9999-12-31T23:59:59.999999", "9999-12-31T23:59:59.999999"),
        ("2026-02-01T10:00.5", "2026-02-01T10:00:00.500000"),
        ("2026-02-01T10:00:00+23:59", "2026-02-01T10:00:00+23:59"),
        ("2026-02-01T10:00:00 +00:00", "2026-02-01T10:00:00+00:00"),
        ("2026-02-01T10+05", "2026-02-01T10:00:00+05:00"),
        ("2026-02-01T10:00:00.1234567", "2026-02-01T10:00:00.123456"),
        ("0001-W01-1", "0001-01-01T00:00:00"),
        ("2026-02-01-10:00", "2026-02-01T10:00:00"),
        ("2026-W05-1T10:00", "2026-01-26T10:00:00"),
        ("2026-W05T10:00", "2026-01-26T10:00:00"),
        ("2026W05T10:00", "2026-01-26T10:00:00"),
        ("2026W051T10:00", "2026-01-26T10:00:00"),
        ("2026-02-01T10:00:00.12345678Z", "2026-02-01T10:00:00.123456+00:00"),
        ("2026-02-01T10:00:00+00:00:00.000000", "2026-02-01T10:00:00+00:00"),
        ("2026-02-01T10:00:00-00:00:01", "2026-02-01T10:00:00-00:00:01"),
    ];

    const NONE: &[&str] = &[
        "2026-02-01T24:00",
        "2026-02-01T",
        "2026-02-01T1",
        "2026-02-01T10:0",
        "2026-02-01T10:00:00.",
        "2026-02-01T10:0000",
        "2026-02-01T1000:00",
        "2026-02",
        "2026",
        "2026-2-1",
        "2026-0201",
        "202602-01",
        "2026-02-30",
        "0000-01-01",
        "2026-W54-1",
        "2025-W53-1",
        "2026-W05-8",
        "2026-W05-0",
        "2026-02-01T10:00:00Zx",
        "2026-02-01T10:00:00z",
        "2026-02-01T10:00:00+24:00",
        "2026-02-01T10:00:00+",
        "２０２６-02-01",
        " 2026-02-01",
        "2026-02-01 ",
        "yesterday",
        "2026W05110:00",
        "",
        "1769940000",
        "2026-02-01T10:60",
        "2026-02-01T10:00:60",
        "2026-W051",
        "2026W05-1",
        "2026-02-0110:00",
        "20260201100000",
        "9999-W52-7",
        "9999-W53-1",
    ];

    #[test]
    fn read_as_the_other_program_does() {
        for (text, written) in READ {
            assert_eq!(canonical(text).as_deref(), Some(*written), "{text}");
        }
        for text in NONE {
            assert_eq!(canonical(text), None, "{text}");
        }
    }
}
